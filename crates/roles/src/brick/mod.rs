//! A brick: takes part in the writes of its groups, serves reads, keeps its lease.
//!
//! The data plane is a [`Participant`] a disk; this file routes packets to them. [`membership`] speaks with the
//! directory: heartbeats, leases, views; [`streams`] takes in what it says of streams; [`maintain`] with other bricks, for its [`Maintenance`]; [`restore`] puts and reads fragments for it; [`vitals`] measures the brick.

#[cfg(test)]
mod contested;
mod decided;
mod doubts;
#[cfg(test)]
mod fragments;
mod held;
mod lease;
mod locks;
mod maintain;
mod maintenance;
mod membership;
mod recount;
mod restore;
mod sharing;
mod streams;
#[cfg(test)]
mod tests;
mod time;
mod tokens;
#[cfg(test)]
mod turns;
mod vitals;

use crate::admission::{Role, admit};
use base::{BLOCK, BrickId, Depth, Machine, NodeId, ObjectVersion, Time};
use code::{Computation, Computed};
use core::time::Duration;
use decided::Decided;
use held::Held;
use locks::{LockServer, Wanted};
use maintain::Listing;
use maintenance::Maintenance;
use membership::Membership;
use reads::distribute::claim::{Attempt, Holders, estimate::Calibration};
use reads::seat::{Notice, Places, Stay, Turns};
use restore::{COMPUTATION, Restores};
use rules::counters::{Counter, Counters};
use rules::fair::{Discipline, Shares};
use sharing::Sharing;
use std::collections::BTreeMap;
use streams::Streams;
use tokens::Asker as StoreAsker;
use vitals::Vitals;
use volume::netraid::context::computations::ComputationId;
use volume::netraid::participant::{
    self, Asker, Context, FragmentRequest, FragmentWish, Participant, ReadRequest, RepairAsker, RepairRequest,
};
use volume::netraid::pending::Prepare;
use volume::view::{Families, Groups};
use wire::object::{Pack, VERSIONS_MAX};
use wire::{
    BrickStatus, CLAIMS_MAX, Claim, Decision, Durability, FragmentId, FragmentOutcome, GroupView,
    JournalReport, Message, OPERATIONS_MAX, Packet, Place, Service, Span, Standing, Wait, disk,
};

/// What happens to a brick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrickEvent {
    /// A packet came. `from` is what the transport has authenticated.
    Packet {
        from: NodeId,
        packet: Packet,
    },
    /// A peer can be reached (again).
    Up(NodeId),
    /// The connection to a peer is gone.
    Down(NodeId),
    Store {
        disk: usize,
        reply: disk::Reply,
    },
    /// Whether the heads of its disks are seen from now on: then it is the disks that choose among contested reads.
    HeadsSeen(bool),
    /// A disk is about to serve a contested read.
    Claims {
        disk: usize,
        attempt: Attempt,
        /// What it will take, in nanoseconds.
        bid_ns: u64,
        holders: Holders,
    },
    /// Answers [`BrickEffect::Compute`].
    Computed {
        number: u64,
        made: Computed,
    },
}

/// What a brick asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrickEffect {
    /// Send this; it may get lost.
    Send {
        to: NodeId,
        packet: Packet,
    },
    /// This node is reached there.
    Address {
        node: NodeId,
        /// Where.
        address: String,
    },
    Store {
        disk: usize,
        command: disk::Command,
    },
    /// Compute this, where there is a processor for it. Answered by [`BrickEvent::Computed`] under the same number, always.
    Compute {
        number: u64,
        computation: Computation,
    },
    /// Another brick serves a contested read.
    Claimed {
        /// At which disk it waits here.
        disk: usize,
        attempt: Attempt,
        /// What it takes there, in nanoseconds.
        bid_ns: u64,
        brick: BrickId,
    },
}

/// What a brick is told when it starts.
#[derive(Clone, Debug)]
pub struct BrickConfig {
    pub id: BrickId,
    /// Where gateways reach it.
    pub address: String,
    pub labels: Vec<(String, String)>,
    /// What is known of its disks, in their order; of those that are missing nothing is.
    pub disks: Vec<Calibration>,
    /// How durable writes reach their stable storage, in their order: for the operator alone.
    pub durability: Vec<Durability>,
    /// How requests take their turns at each of its disks.
    pub turns: Turns,
    /// What streams are entitled to there until the directory says.
    pub shares: Shares,
    /// How long it waits before it looks for garbage of objects again.
    pub garbage_every: Duration,
    /// It moves fragments of objects if its used share is by more than this above that of all bricks taken together.
    pub rebalance_above: f64,
    /// So many bytes of what it knows it says at a time where a directory is made anew.
    pub page_bytes: usize,
    /// So many families it names at a time where it missed deletions that are forgotten.
    pub held_at_once: usize,
    /// Whether small fragments lie together (see [`wire::object::Pack`]). They do not in simulations whose disks keep one block for many.
    pub packs: bool,
    /// Drawn by the driver, new for each run: an answer to what an earlier run asked is none to what this one asks.
    pub run: u64,
    /// Where its first disk is.
    pub place: Place,
}

impl BrickConfig {
    /// Usually it says so much at a time.
    pub const PAGE_BYTES: usize = 1 << 20;
    /// Usually it names so many families at a time: 32 KiB.
    pub const HELD_AT_ONCE: usize = 4096;
    /// Usually it looks for garbage as often as this.
    pub const GARBAGE_EVERY: Duration = Duration::from_secs(30);
    /// Usually it moves fragments of objects if its used share is 5 points above that of all bricks taken together.
    pub const REBALANCE_ABOVE: f64 = 0.05;
}

pub struct Brick {
    membership: Membership,
    vitals: Vitals,
    groups: Groups,
    families: Families,
    participants: Vec<Participant>,
    sharing: Sharing,
    streams: Streams,
    locks: LockServer,
    decided: Decided,
    /// What a participant asks for in a step. Kept between steps so that it allocates nothing.
    asked: Vec<participant::Effect>,
    maintenance: Maintenance,
    restores: Restores,
    held: Held,
    /// So many bytes of what it knows it says at a time.
    page_bytes: usize,
    listings: BTreeMap<u64, Listing>,
    listings_begun: u64,
    counters: Counters,
    /// Views whose blocks went with a disk.
    lost: Vec<GroupView>,
    /// Whether small fragments lie together.
    packs: bool,
    /// Whether it was woken since it started.
    awake: bool,
}

impl Brick {
    /// A brick whose stores found `recovered` on its disks, one a disk.
    pub fn new(config: BrickConfig, recovered: Vec<disk::Recovered>, now: Time) -> Brick {
        let notes = recovered.first().map_or(&[][..], |first| &first.notes);
        let mut counters = Counters::default();
        if recovered.iter().any(|disk| !disk.staged.is_empty()) {
            counters.count(Counter::RecoveredWithWritesInDoubt);
        }
        let calibrations = config.disks.iter().copied().chain(core::iter::repeat(Calibration::default()));
        let participant = |(found, disk): (&disk::Recovered, Calibration)| {
            let mut participant = Participant::new(config.id, disk, config.turns, found, now);
            participant.set_shares(now, &config.shares);
            participant
        };
        let mut brick = Brick {
            families: Families::recover(notes),
            maintenance: Maintenance::new(
                (config.id, recovered.len()),
                membership::scrubbed(notes),
                config.garbage_every,
                config.rebalance_above,
                now,
            ),
            restores: Restores::new(config.run),
            held: Held::new(config.held_at_once),
            page_bytes: config.page_bytes,
            listings: BTreeMap::new(),
            listings_begun: 0,
            groups: Groups::recover(config.id, notes),
            participants: recovered.iter().zip(calibrations).map(participant).collect(),
            sharing: Sharing::new(recovered.len(), config.turns.cost),
            streams: Streams::new(config.turns),
            packs: config.packs,
            locks: LockServer::default(),
            decided: Decided::default(),
            asked: Vec::new(),
            membership: Membership::new(config, notes, now),
            vitals: Vitals::new(recovered.len()),
            lost: Vec::new(),
            counters,
            awake: false,
        };
        // What an earlier run did not get to give back.
        brick.maintenance.give_back();
        brick.look_at_groups(now);
        brick
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.groups.set_rules(rules);
        self.maintenance.set_rules(rules);
        self.restores.set_rules(rules);
    }

    /// The identities of its disks, in order, before it is first woken. Where any is another than when its groups were
    /// noted it has lost what it took for them, and forgets them all: it must neither serve them nor speak for them.
    pub fn set_disks(&mut self, identities: Vec<u64>) {
        self.membership.status.disks = identities;
        if self.membership.has_other_disks() {
            self.counters.count(Counter::GroupsForgottenWithADisk);
            self.lost = self.groups.bury_all();
            self.lost.iter().for_each(|view| self.membership.note_later(view.group));
        }
    }

    /// How far the journals of its disks are: `(found, durable)` each, in order. They stay as they were when another run took over: what this
    /// one notes since is nothing that the other one lacks.
    pub fn set_journals(&mut self, ends: impl Iterator<Item = (u64, u64)>) {
        if matches!(self.standing(), Standing::Ousted { .. }) {
            return;
        }
        let BrickStatus { disks, run, .. } = &mut self.membership.status;
        run.journals.clear();
        let reports = disks.iter().zip(ends).map(|(disk, (found, durable))| JournalReport {
            disk: *disk,
            found,
            durable,
        });
        run.journals.extend(reports);
    }

    /// What the directory says of this run of the brick.
    pub fn standing(&self) -> &Standing {
        self.membership.standing()
    }

    /// What its disks say of themselves, for the next heartbeat.
    pub fn set_space(
        &mut self,
        capacity_bytes: u64,
        used_bytes: u64,
        fullest_percent: u8,
        unreadable_blocks: u64,
    ) {
        self.membership.status.space.fullest_percent = fullest_percent;
        self.membership.status.space.capacity_bytes = capacity_bytes;
        self.membership.status.space.used_bytes = used_bytes;
        self.membership.status.unreadable_blocks = unreadable_blocks;
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Of the reads that other members were asked for, too: those claimed here, left to others, and taken over from one that
    /// was expected to be first.
    pub fn contested_reads(&self) -> (u64, u64, u64) {
        let counts = self.participants.iter().map(Participant::contest_counts);
        counts.fold((0, 0, 0), |(claims, left, overtaken), counts| {
            (
                claims + counts.claims,
                left + counts.claimed_away + counts.squashed,
                overtaken + counts.overtaken,
            )
        })
    }

    /// Lets requests at a disk take their turns by a discipline that is in no list.
    pub fn set_discipline(
        &mut self,
        now: Time,
        disk: usize,
        discipline: Box<dyn Discipline>,
        places: Places,
        fx: &mut Vec<BrickEffect>,
    ) {
        let turns = Turns { places, ..Turns::default() };
        self.with_disk(now, fx, disk, |participant, cx| participant.set_turns(cx, discipline, turns));
    }

    /// What streams are entitled to at each of its disks from now on.
    pub fn set_shares(&mut self, now: Time, shares: &Shares) {
        self.participants.iter_mut().for_each(|participant| participant.set_shares(now, shares));
    }

    /// What happened around it counts as its own.
    pub fn count(&mut self, counter: Counter) {
        self.counters.count(counter);
    }

    /// Whether its lease is in force at `now`.
    pub fn is_leased(&self, now: Time) -> bool {
        self.membership.is_leased(now)
    }

    /// What it says of itself with the next heartbeat.
    pub fn status(&self) -> &BrickStatus {
        &self.membership.status
    }

    /// The families of which it knows, or holds a view.
    pub fn volumes_held(&self) -> impl Iterator<Item = base::VolumeId> {
        let known = self.families.iter().filter_map(|family| family.volumes.first());
        known.map(|volume| volume.family).chain(self.groups.families())
    }

    /// The views that it holds.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    fn on_packet(&mut self, now: Time, from: NodeId, packet: Packet, fx: &mut Vec<BrickEffect>) {
        if admit(Role::Brick, from, &packet.message).is_err() {
            return self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored);
        }
        match from {
            NodeId::Gateway(_) => self.on_gateway(now, from, packet, fx),
            NodeId::Directory => self.on_directory(now, packet.message, fx),
            NodeId::Brick(brick) => self.on_brick(now, brick, packet, fx),
            NodeId::Client(_) => self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored),
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm a message; not cut up yet")]
    fn on_gateway(&mut self, now: Time, from: NodeId, packet: Packet, fx: &mut Vec<BrickEffect>) {
        let Packet { message, payload } = packet;
        match message {
            Message::Prepare {
                operation,
                view,
                write,
                change,
                base,
                want_delta,
                request,
                floor,
                part,
                service,
                order,
            } => {
                let reply_to = Some((from, operation));
                let service = self.at_disk_of(write.span, service);
                let prepare = Prepare {
                    reply_to,
                    view,
                    write,
                    change,
                    base,
                    want_delta,
                    request,
                    part,
                    payload,
                    service,
                    order,
                    stay: Stay::from(now),
                };
                self.with(now, fx, write.span, |participant, cx| participant.on_prepare(cx, prepare, floor));
            }
            Message::Decide { commits, aborts } => {
                commits.into_iter().for_each(|decision| self.decide(now, fx, decision, true));
                aborts.into_iter().for_each(|decision| self.decide(now, fx, decision, false));
            }
            Message::Read {
                operation,
                group,
                view,
                span,
                width,
                stamps,
                content,
                contest,
                service,
                sight,
            } => {
                let service = match content || stamps {
                    true => self.at_disk_of(span, service),
                    // Whether a view is in force no disk is asked.
                    false => self.sharing.hear(service),
                };
                let read = ReadRequest {
                    from,
                    operation,
                    group,
                    view,
                    span,
                    width,
                    stamps,
                    content,
                    contest,
                    service,
                    sight,
                    stay: Stay::from(now),
                };
                self.with(now, fx, span, |participant, cx| participant.on_read(cx, read));
            }
            Message::Query { operation, view, write, width, only_looks } => {
                match self.groups.takes(write.group, view) {
                    Ok(()) if write.span.is_valid() && (1..=32).contains(&width) => {
                        let asker = if only_looks { Asker::Looker } else { Asker::Gateway };
                        self.with(now, fx, write.span, |participant, cx| {
                            participant.on_query(cx, asker(from, operation), write, width);
                        });
                    }
                    Ok(()) => {}
                    Err(view) => {
                        if view.is_some() {
                            self.counters.count(Counter::RequestUnderAnOldViewRefused);
                        }
                        reply(fx, from, Message::QueryDone { operation, fate: Err(view) });
                    }
                }
            }
            Message::Repair { operation, group, view, span, width, stamps, service } => {
                let (content, stay) = (payload, Stay::from(now));
                let asker = RepairAsker::Node(from, operation);
                let service = self.at_disk_of(span, service);
                let request =
                    RepairRequest { asker, group, view, span, width, stamps, content, service, stay };
                self.with(now, fx, span, |participant, cx| participant.on_repair(cx, request));
            }
            Message::PutFragment { operation, fragment, service, is_new } => {
                let blocks = u32::try_from(payload.len() / BLOCK).unwrap_or(u32::MAX);
                let asked = FragmentWish::Put { content: payload, is_new };
                self.on_fragment(now, (from, operation), (fragment, blocks), (asked, service), fx);
            }
            Message::GetFragment { operation, fragment, blocks, service } => {
                let asked = FragmentWish::Get;
                self.on_fragment(now, (from, operation), (fragment, blocks), (asked, service), fx);
            }
            Message::CheckFragment { operation, fragment, blocks, reads, service } => {
                let asked = FragmentWish::Check { reads };
                self.on_fragment(now, (from, operation), (fragment, blocks), (asked, service), fx);
            }
            Message::DropVersions { versions } => {
                // What lies with others is found by the look for garbage.
                let is_alone = |version: &ObjectVersion| {
                    FragmentId::is_version(*version) && !(self.packs && Pack::begins_with(*version))
                };
                let alone: Vec<ObjectVersion> = versions.into_iter().filter(is_alone).collect();
                for version in alone.into_iter().take(VERSIONS_MAX) {
                    self.drop_version(now, version, fx);
                }
            }
            Message::Allocation { operation, group, view, span } => match self.groups.serves(group, view) {
                Ok(()) if !span.is_valid() => {}
                Ok(()) => self.with(now, fx, span, |participant, cx| {
                    participant.on_allocation(cx, from, operation, group, span);
                }),
                Err(view) => reply(fx, from, Message::AllocationDone { operation, runs: Err(view) }),
            },
            Message::Lock { operation, group, view, span, holder } => {
                self.on_lock(now, from, &Wanted { operation, group, view, span, holder }, fx);
            }
            Message::Unlock { holders } => self.on_unlock(now, from, holders, fx),
            Message::AreDecided { operation, group, view, writes } => {
                self.on_are_decided(from, operation, (group, view), writes, fx);
            }
            Message::Cancel { operations } => self.on_cancel(now, from, operations, fx),
            Message::Elsewhere { of } => self.on_elsewhere(now, of, fx),
            _ => self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored),
        }
    }

    /// A fragment is brought, or asked for. One that cannot be is refused, so that its asker does not ask for ever.
    fn on_fragment(
        &mut self,
        now: Time,
        (from, operation): (NodeId, u64),
        (fragment, blocks): (FragmentId, u32),
        (wish, service): (FragmentWish, Service),
        fx: &mut Vec<BrickEffect>,
    ) {
        let stay = Stay::from(now);
        let alone = (!self.packs).then_some(FragmentOutcome::Missing);
        let request = FragmentRequest { from, operation, fragment, blocks, alone, wish, service, stay };
        let is_put = request.wish.is_put();
        let refused = match request.is_valid() {
            false => {
                self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored);
                Some(FragmentOutcome::Failed)
            }
            true => (is_put && !self.restores.takes(fragment)).then_some(FragmentOutcome::Busy),
        };
        if let Some(outcome) = refused {
            let wait = Wait::default();
            let message = match is_put {
                true => Message::FragmentPut { operation, outcome, wait },
                false => Message::Fragment { operation, outcome, wait },
            };
            return reply(fx, from, message);
        }
        if is_put {
            self.maintenance.on_fragment(now);
        }
        let span = request.span();
        let service = self.sharing.arrive(request.service, self.place_of(span), request.moves());
        let request = FragmentRequest { service, ..request };
        self.with(now, fx, span, |participant, cx| participant.on_fragment(cx, request));
    }

    /// All that is here of a version of an object is given back.
    fn drop_version(&mut self, now: Time, version: ObjectVersion, fx: &mut Vec<BrickEffect>) {
        let volume = FragmentId::volume(version);
        self.with_all(now, fx, |participant, cx| participant.drop_version(cx, volume));
    }

    /// Streams were served elsewhere through a gateway.
    fn on_elsewhere(&mut self, now: Time, mut of: Vec<Service>, fx: &mut Vec<BrickEffect>) {
        of.truncate(OPERATIONS_MAX);
        for disk in 0..self.participants.len() {
            let here: Vec<Service> =
                of.iter().map(|service| self.sharing.elsewhere(*service, disk)).collect();
            self.with_disk(now, fx, disk, |participant, cx| {
                here.iter().for_each(|service| participant.on_elsewhere(cx.now, *service));
            });
        }
    }

    /// For whom a request is, as the disk of its blocks hears it.
    fn at_disk_of(&mut self, span: Span, service: Service) -> Service {
        let disk = self.place_of(span);
        self.sharing.arrive(service, disk, span.count)
    }

    /// Questions are of no interest any more to `from`.
    fn on_cancel(&mut self, now: Time, from: NodeId, mut operations: Vec<u64>, fx: &mut Vec<BrickEffect>) {
        operations.truncate(OPERATIONS_MAX);
        let has_waited = |operation: &u64| {
            self.participants.iter_mut().any(|participant| participant.withdraw(now, from, *operation))
        };
        let (withdrawn, late): (Vec<u64>, Vec<u64>) = operations.into_iter().partition(has_waited);
        withdrawn.iter().for_each(|_| self.counters.count(Counter::RequestWithdrawnBeforeItsTurn));
        if !late.is_empty() {
            self.with_all(now, fx, |participant, cx| participant.give_back_fragments(cx, from, &late));
        }
        reply(fx, from, Message::Cancelled { withdrawn, late });
    }

    fn decide(&mut self, now: Time, fx: &mut Vec<BrickEffect>, decision: Decision, commit: bool) {
        let span = Span { volume: decision.volume, lba: decision.lba, count: 1 };
        self.with(now, fx, span, |participant, cx| participant.on_decide(cx, &decision, commit));
    }

    /// Runs `work` on the participant whose disk holds `span`.
    fn with(
        &mut self,
        now: Time,
        fx: &mut Vec<BrickEffect>,
        span: Span,
        work: impl FnOnce(&mut Participant, &mut Context<'_>),
    ) {
        self.with_disk(now, fx, self.place_of(span), work);
    }

    fn with_disk(
        &mut self,
        now: Time,
        fx: &mut Vec<BrickEffect>,
        disk: usize,
        work: impl FnOnce(&mut Participant, &mut Context<'_>),
    ) {
        let leased =
            self.groups.rules().counts_on_lease(self.membership.is_leased(now), self.membership.is_known);
        let stamps_until = self.membership.time().stamps_until(now);
        let Some(participant) = self.participants.get_mut(disk) else { return };
        let asked = &mut self.asked;
        let cx = &mut Context {
            now,
            groups: &self.groups,
            leased,
            stamps_until,
            fx: asked,
            counters: &mut self.counters,
        };
        work(participant, cx);
        for (stream, blocks) in participant.take_unserved(now) {
            self.sharing.unserved(stream, disk, blocks);
        }
        participant.take_turns(cx);
        fx.extend(asked.drain(..).map(|effect| match effect {
            participant::Effect::Send { to, packet } => BrickEffect::Send { to, packet },
            participant::Effect::Answer { to, stream, stay, mut packet } => {
                participant.on_answer(now, stream, &stay);
                if let Some(wait) = packet.message.wait_mut() {
                    wait.queued = participant.queued(stream);
                }
                BrickEffect::Send { to, packet }
            }
            participant::Effect::Store(command) => BrickEffect::Store { disk, command },
            participant::Effect::Claimed { attempt, bid_ns, brick } => {
                BrickEffect::Claimed { disk, attempt, bid_ns, brick }
            }
        }));
    }

    /// A store answers whichever part of the brick asked.
    fn on_store(&mut self, now: Time, disk: usize, reply: disk::Reply, fx: &mut Vec<BrickEffect>) {
        if let disk::Reply::Noted { token, result } = &reply {
            match StoreAsker::of(*token) {
                StoreAsker::Vitals => return self.vitals.on_answered(now, disk, &reply),
                StoreAsker::Membership => return self.on_note_or_barrier(*token, *result, fx),
                StoreAsker::Decided => return self.on_decided_barrier(*token, result.is_ok(), fx),
                StoreAsker::Participant => {}
            }
        }
        if let disk::Reply::Broken { why } = &reply {
            self.membership.status.failed = Some(format!("disk {disk}: {why}"));
        }
        self.vitals.on_answered(now, disk, &reply);
        self.with_disk(now, fx, disk, |participant, cx| participant.on_store(cx, reply));
        self.look_alone(now, disk, fx);
        self.collect_fates(fx);
    }

    /// Small fragments that are not where they are put today may be where earlier releases have put them, perhaps at another disk.
    fn look_alone(&mut self, now: Time, disk: usize, fx: &mut Vec<BrickEffect>) {
        for request in self.participants[disk].take_to_look_alone() {
            self.counters.count(Counter::SmallFragmentsLookedForAlone);
            // What the stream was served elsewhere was said with the first question.
            let asked = Service { delay: 0, ..request.service };
            let service = self.sharing.arrive(asked, self.place_of(request.span()), request.moves());
            let request = FragmentRequest { service, ..request };
            self.with(now, fx, request.span(), |participant, cx| participant.on_fragment(cx, request));
        }
    }

    /// Who asked for what waits for its turn is told so, where that is due.
    fn tell_who_waits(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        for participant in &mut self.participants {
            for Notice { to, operations } in participant.take_notices(now) {
                reply(fx, to, Message::Waiting { operations });
            }
        }
    }

    fn with_all(
        &mut self,
        now: Time,
        fx: &mut Vec<BrickEffect>,
        mut work: impl FnMut(&mut Participant, &mut Context<'_>),
    ) {
        for disk in 0..self.participants.len() {
            self.with_disk(now, fx, disk, &mut work);
        }
    }
}

impl Machine for Brick {
    type Event = BrickEvent;
    type Effect = BrickEffect;

    fn step(&mut self, now: Time, event: BrickEvent, fx: &mut Vec<BrickEffect>) {
        let begun = fx.len();
        match event {
            BrickEvent::Packet { from, packet } => self.on_packet(now, from, packet, fx),
            BrickEvent::Up(node) => {
                self.membership.on_up(now, node);
                if let NodeId::Brick(brick) = node {
                    self.maintenance.on_up(brick);
                }
                self.restores.on_up(now, node);
            }
            BrickEvent::Down(node) => {
                self.membership.on_down(node);
                if let NodeId::Brick(brick) = node {
                    self.maintenance.on_down(now, brick);
                }
                self.with_all(now, fx, |participant, cx| participant.on_gateway_down(cx.now, node));
                self.release_locks_of(now, node, fx);
            }
            BrickEvent::HeadsSeen(seen) => {
                self.with_all(now, fx, |participant, _| participant.see_heads(seen));
            }
            BrickEvent::Claims { disk, attempt, bid_ns, holders } => {
                self.with_disk(now, fx, disk, |participant, _| {
                    participant.on_disk_claims(attempt, bid_ns, &holders);
                });
            }
            BrickEvent::Store { disk, reply } => self.on_store(now, disk, reply, fx),
            BrickEvent::Computed { number, made } if number & COMPUTATION != 0 => {
                self.restores.on_computed(now, number, made);
            }
            BrickEvent::Computed { number, made } => {
                self.maintenance.on_computed(now, ComputationId(number), made);
            }
        }
        self.tend(now, begun, fx);
        self.vitals.on_asked(now, &fx[begun..]);
    }

    /// Claims of a batch go out together, one message to each brick.
    fn settle(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        let begun = fx.len();
        self.with_all(now, fx, |participant, cx| participant.settle_contests(cx));
        let mut by_brick: BTreeMap<BrickId, Vec<Claim>> = BTreeMap::new();
        for (brick, claim) in self.participants.iter_mut().flat_map(Participant::take_claims) {
            by_brick.entry(brick).or_default().push(claim);
        }
        self.tell_who_waits(now, fx);
        for (brick, claims) in by_brick {
            for claims in claims.chunks(CLAIMS_MAX) {
                reply(fx, NodeId::Brick(brick), Message::Claims { claims: claims.to_vec() });
            }
        }
        self.vitals.on_asked(now, &fx[begun..]);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        let begun = fx.len();
        // A read that came with this batch is due at once, and says nothing of the process.
        let (due, _) = self.membership.deadline().min(self.vitals.deadline());
        if self.awake {
            self.vitals.wake(now, due);
        }
        if !core::mem::replace(&mut self.awake, true) {
            self.with_all(now, fx, |participant, cx| participant.drop_sealed(cx));
            for view in core::mem::take(&mut self.lost) {
                self.with_all(now, fx, |participant, cx| participant.activate(cx, &view, &[]));
            }
            self.look_at_groups(now);
        }
        self.with_all(now, fx, |participant, cx| participant.wake(cx));
        self.tell_who_waits(now, fx);
        self.keep_lease(now, fx);
        self.report_doubts(now, fx);
        self.take_locks_back(now, fx);
        self.restores.wake(now);
        self.tend(now, begun, fx);
        self.vitals.on_asked(now, &fx[begun..]);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let reads = self.participants.iter().filter_map(Participant::deadline).min();
        let reads = reads.map(|time| (time, "a request waits"));
        let own = self.membership.deadline().min(self.vitals.deadline());
        let locks = self.locks.deadline().map(|time| (time, "a lock is taken back"));
        [reads, locks, Some(own), self.maintenance.deadline(), self.restores.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn check(&self, depth: Depth) {
        self.participants.iter().for_each(|participant| participant.check_invariants(depth == Depth::Deep));
        self.locks.check();
    }
}

fn reply(fx: &mut Vec<BrickEffect>, to: NodeId, message: Message) {
    fx.push(BrickEffect::Send { to, packet: message.into() });
}

/// Which of `disks` holds a span: stretches of a volume are spread over the disks by a hash.
fn disk_of(span: Span, disks: usize) -> usize {
    let stretch = span.volume.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (span.lba / Span::STRETCH_BLOCKS);
    let mixed = (stretch ^ stretch >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed ^ mixed >> 32) % disks.max(1) as u64) as usize
}
