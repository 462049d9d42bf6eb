//! The directory: bricks, volumes, groups and their views; leases; view changes.
//!
//! From below to above; no file knows those above it:
//!
//! - [`event`] is what happens and what is asked for; [`names`] which names may be given; [`records`] what is kept on stable storage (in a [`table`] with its [`indices`]), [`store`] what is on its
//!   way there and what follows; [`leases`] says who may trust its views until when, [`gateways`] who lives and under
//!   which numbers it writes; [`time`] keeps the cluster's time, from which they draw stamps; [`waiting`] keeps commands that
//!   wait.
//! - [`age`] says whether the store is as new as what bricks know.
//! - [`deletions`] says what is forgotten of what was deleted.
//! - [`runs`] says which process of a brick counts, and whether its disks hold what was promised.
//! - [`cluster`] puts these side by side. All that is above looks at it. [`admission`] says whether its bricks can meet what is reserved.
//! - [`change`] is how one view is made, [`views`] drives all that are being made, [`slow`] decides who is too slow to
//!   stay, [`members`] who is in a group, with [`substitutes`] (who takes a slot), [`stand_ins`] and [`returns`] (how far those are that came back); [`heartbeat`] is what a brick says and is told, [`briefing`] what it does not know yet; [`news`] what the log tells of bricks,
//!   [`events`] what is remembered of that.
//! - [`desk`] puts the parts side by side for commands: [`volumes`], [`snapshots`] (snapshots, clones, rollbacks), [`bricks`],
//!   [`streams`], [`status`]; [`admin`] says who carries out which.
//! - [`index`] is the way to the index of objects, which has stores of its own, and says which bricks take fragments.
//! - [`Directory`] here passes events on; [`rebuild`] makes a lost directory anew, [`past`] one that is not young.

mod admin;
mod admission;
mod age;
mod bricks;
mod briefing;
mod buckets;
mod change;
mod cluster;
mod cut;
mod deletions;
mod desk;
mod event;
mod events;
mod gateways;
mod heartbeat;
mod index;
mod indices;
mod leases;
mod loans;
mod members;
mod names;
mod news;
mod past;
pub mod rebuild;
mod records;
mod returns;
mod runs;
mod saturated;
mod slow;
mod snapshots;
mod stand_ins;
mod status;
mod store;
mod streams;
mod substitutes;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod views;
mod volumes;
mod waiting;

pub use event::{DirectoryConfig, DirectoryEffect, DirectoryEvent, Put, StoreToken};
pub use news::{Cause, Move, News};
pub use past::Past;

use crate::admission::{Refused, Role, admit, admit_anyone};
use base::{BrickId, Depth, Machine, NodeId, Time};
use cluster::{Cluster, TICK, answer};
use core::time::Duration;
use desk::Desk;
use event::send;
use gateways::Registration;
use heartbeat::{Heartbeat, on_heartbeat, on_renewal};
use index::Objects;
use members::Members;
use records::Records;
use rules::counters::{Counter, Counters};
#[cfg(feature = "planted")]
use rules::promises::Rules;
use slow::Slow;
use store::{After, Asker};
use views::Views;
use waiting::Waiting;
use wire::{
    AdminError, AdminRequest, ClusterStatus, GroupView, IndexError, IndexRequest, JournalReport, Message,
    StatusPart,
};

/// The machine: it passes events to its parts, and looks after them at each tick.
pub struct Directory {
    desk: Desk,
    objects: Objects,
    /// What was asked before it is known whether the store is the newest.
    held: Vec<(NodeId, Message)>,
    next_tick: Time,
    /// When it looked last, and when it ran last.
    looked: Time,
    awake: Time,
}

/// Between two looks, however much there is to look at.
const EARLIEST: Duration = Duration::from_millis(20);
/// A directory that comes so late to a look was paused.
const PAUSE: Duration = Duration::from_millis(500);

/// So many questions are held; whoever asks beyond gets no answer, and asks again.
const HELD_MAX: usize = 1024;

impl Directory {
    /// A directory whose store holds `contents`, by key.
    pub fn new(
        config: DirectoryConfig,
        contents: Vec<(Vec<u8>, Vec<u8>)>,
        now: Time,
    ) -> Result<Directory, String> {
        let mut records = Records::load(&contents)?;
        records.finish_or_drop_volumes();
        let objects = Objects::new(&config.index, &records.streams_of_buckets());
        let (mut cluster, mut views) = (Cluster::new(config, records, now), Views::default());
        views.resume(&mut cluster, now);
        let (members, slow, waiting) = (Members::default(), Slow::default(), Waiting::default());
        let desk = Desk { cluster, views, members, slow, waiting };
        Ok(Directory { desk, objects, held: Vec::new(), next_tick: now, looked: Time::ZERO, awake: now })
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> &Counters {
        &self.desk.cluster.counters
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.desk.cluster.rules = rules;
        self.objects.set_rules(rules);
    }

    /// Whether its store fails: it is tried again, and nothing can be made or changed meanwhile.
    pub fn store_is_failing(&self) -> bool {
        self.desk.cluster.store.is_failing()
    }

    /// The views in force.
    pub fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.desk.cluster.views()
    }

    /// How many groups there are, how many of them lack a current member, and in how many of them members catch up.
    pub fn group_counts(&self) -> [usize; 3] {
        let groups = &self.desk.cluster.records.groups;
        [groups.len(), groups.index().count_of_incomplete(), groups.index().joining().count()]
    }

    /// What it answers an operator who asks for its status.
    pub fn status(&self, now: Time, part: StatusPart) -> ClusterStatus {
        self.desk.cluster_status(now, part)
    }

    /// How many bricks are left out for being slow, or are to be.
    pub fn slow_bricks(&self) -> usize {
        self.desk.cluster.records.slow.values().filter(|record| record.is_out).count()
    }

    /// The version of the map, also where it is not stored yet.
    pub fn version(&self) -> u64 {
        self.desk.cluster.records.counts.version
    }

    /// How many deletions it remembers of those that it will forget.
    pub fn deletions(&self) -> usize {
        let records = &self.desk.cluster.records;
        records.deleted.values().filter(|id| **id >= records.forgotten.counts_from).count()
    }

    /// How far the journals of a brick's disks are, as far as it was heard of.
    pub fn journals(&self, brick: BrickId) -> &[JournalReport] {
        self.desk.cluster.records.runs.get(&brick).map_or(&[], |run| &run.journals)
    }

    /// How many entries there are in its memory beside what is stored: of bricks and gateways that it hears, of changes under way, of who waits.
    pub fn entries(&self) -> usize {
        let Desk { cluster, views, .. } = &self.desk;
        let heard =
            cluster.leases.len() + cluster.runs.len() + cluster.bricks_speak.len() + cluster.gateways.len();
        heard + views.changing().count() + self.held.len()
    }

    /// The number of the run of a brick that counts.
    pub fn run_that_counts(&self, brick: BrickId) -> Option<u64> {
        Some(self.desk.cluster.records.runs.get(&brick)?.number)
    }

    /// How often a brick came with an old disk.
    pub fn found_old(&self, brick: BrickId) -> u64 {
        self.desk.cluster.records.runs.get(&brick).map_or(0, |run| run.found_old)
    }

    /// Whether a brick's disks lack what it promised, and that has yet to be entered as lost.
    pub fn lags(&self, brick: BrickId) -> bool {
        self.desk.cluster.lags(brick)
    }

    /// What is to be in the log once: disks that are older than they say, and bricks that run twice.
    pub fn alarms(&self, now: Time) -> Vec<String> {
        let cluster = &self.desk.cluster;
        cluster
            .age
            .warning(cluster.records.counts.version)
            .into_iter()
            .chain(cluster.runs.warnings(now))
            .collect()
    }

    /// Whether its store is older than what bricks know: then it does nothing.
    pub fn is_outdated(&self) -> bool {
        self.desk.cluster.age.is_old()
    }

    /// Whether a view is being made.
    pub fn is_changing(&self) -> bool {
        self.desk.views.are_changing()
    }

    fn on_packet(&mut self, now: Time, from: NodeId, message: Message, fx: &mut Vec<DirectoryEffect>) {
        let admit = if self.desk.cluster.config.anyone_administers { admit_anyone } else { admit };
        if let Err(why) = admit(Role::Directory, from, &message) {
            return self.refuse(from, message, why, fx);
        }
        if asks_for_records(&message) && self.desk.cluster.listens(now) {
            // Asked again it is one question still.
            let question = (from, message);
            if self.held.len() < HELD_MAX && !self.held.contains(&question) {
                self.held.push(question);
            }
            return;
        }
        self.on_admitted(now, from, message, fx);
    }

    /// Answers what was held, once it is known whether the store is the newest.
    fn release(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if self.held.is_empty() || self.desk.cluster.listens(now) {
            return;
        }
        for (from, message) in core::mem::take(&mut self.held) {
            self.on_admitted(now, from, message, fx);
        }
    }

    fn on_admitted(&mut self, now: Time, from: NodeId, message: Message, fx: &mut Vec<DirectoryEffect>) {
        match (from, message) {
            (NodeId::Brick(_) | NodeId::Gateway(_), Message::Index { operation, request }) => {
                self.on_index(now, (from, operation), *request, fx);
            }
            (NodeId::Gateway(_) | NodeId::Brick(_), Message::GetBricks { operation }) => {
                // Without an answer it is asked again in a moment.
                if let Some(bricks) = self.desk.places_of_fragments(now) {
                    send(fx, from, Message::Bricks { operation, bricks });
                }
            }
            (NodeId::Brick(brick), message) => self.on_brick(now, brick, message, fx),
            (
                NodeId::Gateway(gateway),
                Message::Register {
                    gateway: named,
                    address,
                    writers,
                    held,
                    beside,
                    speaks,
                    time,
                    sent,
                    name,
                    opened,
                },
            ) => {
                debug_assert_eq!(gateway, named, "it was admitted");
                self.desk.cluster.time.hear(now, time);
                let said =
                    Registration { gateway, address, writers, held, beside, speaks, sent, name, opened };
                self.on_register(now, said, fx);
            }
            (NodeId::Gateway(gateway), Message::Observed { members }) => {
                // Writes wait for who is slow: the next look at bricks comes at once.
                if self.desk.slow.on_observed(now, gateway, members) {
                    self.look_by(now);
                }
            }
            // An old store does not know who is who: volumes are served as while the directory is away.
            (NodeId::Gateway(_), Message::GetView { .. }) | (_, Message::OpenVolume { .. })
                if self.desk.cluster.age.is_old() => {}
            (NodeId::Gateway(_), Message::GetView { group }) => {
                self.desk.cluster.publish(group, Some(from), fx)
            }
            (NodeId::Gateway(_) | NodeId::Client(_), Message::OpenVolume { operation, name }) => {
                let map = self.desk.open_volume(&name);
                send(fx, from, Message::VolumeOpened { operation, map });
            }
            (NodeId::Gateway(_) | NodeId::Client(_), Message::Admin { operation, request }) => {
                self.desk.on_admin(now, Asker { node: from, operation }, request, fx)
            }
            (_, Message::Ping { nonce }) => send(fx, from, Message::Pong { nonce }),
            _ => self.desk.cluster.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored),
        }
    }

    /// Whoever asked is told why it is refused: it may be a mistake.
    fn refuse(&mut self, from: NodeId, message: Message, why: Refused, fx: &mut Vec<DirectoryEffect>) {
        self.desk.cluster.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored);
        match message {
            Message::Admin { operation, .. } => {
                let result = Err(AdminError::Invalid(why.to_string()));
                send(fx, from, Message::AdminDone { operation, result });
            }
            Message::Index { operation, .. } => {
                let result = Box::new(Err(IndexError::Invalid(why.to_string())));
                send(fx, from, Message::IndexDone { operation, result });
            }
            _ => {}
        }
    }

    fn on_index(
        &mut self,
        now: Time,
        (from, operation): (NodeId, u64),
        request: IndexRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if let IndexRequest::Amend { .. } = request {
            // Whose fragments may be moved is not known yet: it is asked again.
            let Some(staying) = self.desk.bricks_that_stay(now) else { return };
            self.objects.set_staying(staying);
        }
        self.objects.on_request(now, from, operation, request, fx);
    }

    fn on_brick(&mut self, now: Time, from: BrickId, message: Message, fx: &mut Vec<DirectoryEffect>) {
        let Desk { cluster, views, .. } = &mut self.desk;
        // Nothing follows from what members say of views that may have ended.
        if cluster.age.is_old() && !matches!(message, Message::Heartbeat { .. }) {
            return;
        }
        match message {
            Message::Heartbeat { brick, sent, known, status, streams, speaks, time } if brick == from => {
                cluster.time.hear(now, time);
                let heartbeat = Heartbeat { from, sent, known, status: *status, streams, speaks };
                let counts = |cluster: &Cluster| {
                    cluster.records.runs.get(&from).map(|record| (record.number, record.place))
                };
                let before = counts(cluster);
                on_heartbeat(cluster, views, now, heartbeat, fx);
                if let Some((number, place)) = counts(cluster)
                    && before.is_none_or(|(of, _)| of != number)
                {
                    let is_same_disk = before.is_none_or(|(_, of)| of.ends_with(place));
                    views.on_new_run(cluster, now, from, is_same_disk);
                    self.look_by(now);
                }
            }
            Message::Renew { brick, sent, run, known } if brick == from => {
                on_renewal(cluster, views, now, (from, run), (sent, known), fx);
            }
            Message::Yielded { brick, run, sent } if brick == from => self.on_yielded(now, from, (run, sent)),
            Message::Fenced { run, .. } | Message::Resolved { run, .. } | Message::Activated { run, .. }
                if run != 0 && run != cluster.run_of(from) =>
            {
                cluster.counters.count(Counter::AnswerOfAnotherRunIgnored);
            }
            Message::Fenced { group, number, doubts, .. } => {
                views.advance(cluster, now, group, fx, |change| change.on_fenced(from, number, doubts))
            }
            Message::Resolved { group, number, fates, .. } => {
                views.advance(cluster, now, group, fx, |change| change.on_resolved(from, number, fates))
            }
            Message::QueryDone { operation, fate: Ok(fate) } => {
                views.on_record(cluster, now, (from, operation, fate), fx);
            }
            // It names them again with its next heartbeat.
            Message::Held { .. } if cluster.holds_still(now) => {}
            Message::Held { operation, families, .. } => {
                let Some(through) = families.last().copied() else { return };
                let gone = deletions::gone(cluster, &families);
                send(fx, NodeId::Brick(from), Message::HeldDone { operation, through, gone });
            }
            Message::Doubtful { writes } => views.settle_doubts(cluster, now, from, &writes, fx),
            Message::Activated { group, number, .. } => {
                views.advance(cluster, now, group, fx, |change| change.on_activated(from, number))
            }
            _ => {}
        }
    }

    fn on_register(&mut self, now: Time, said: Registration, fx: &mut Vec<DirectoryEffect>) {
        let (cluster, gateway) = (&mut self.desk.cluster, said.gateway);
        let lent = cluster.gateways.hear(now, &said);
        if said.writers == 0 || lent.is_some() {
            cluster.tell_registered(now, gateway, lent, fx);
        }
        if said.writers > 0 {
            cluster.lend(now, &said, fx);
        }
    }

    // ---- storage ----

    fn on_stored(
        &mut self,
        now: Time,
        token: StoreToken,
        result: Result<(), String>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        for after in self.desk.cluster.store.on_stored(now, token, result, fx) {
            match after {
                After::Answer(asker, result) => answer(fx, asker, result),
                After::Lent(gateway, first, loan) => {
                    if self.desk.cluster.gateways.on_stored(gateway, (first, loan)) {
                        self.desk.cluster.tell_registered(now, gateway, Some((first, loan)), fx);
                    }
                }
                After::Change(group, number) => {
                    let Desk { cluster, views, .. } = &mut self.desk;
                    views.on_change_stored(cluster, now, group, number, fx);
                }
                After::Confirmed(group, number) => {
                    let Desk { cluster, views, .. } = &mut self.desk;
                    views.on_confirmed(cluster, now, group, number, fx);
                }
                After::Publish(group) => {
                    let Desk { cluster, views, .. } = &mut self.desk;
                    if let Some(family) = views.on_active_stored(cluster, group, fx) {
                        self.desk.on_family_advanced(family, fx);
                    }
                }
                After::Settled(info) => self.desk.cluster.on_settled(*info),
                After::Streams(table) => self.desk.cluster.streams.on_stored(*table),
                After::Buckets(streams) => self.objects.set_streams(&streams),
                After::Tell(news) => fx.push(DirectoryEffect::Tell(news)),
                After::Noted(number) => self.desk.cluster.records.events.on_stored(number),
                After::Changed(volume) => self.desk.cluster.publish_volume(volume, fx),
                After::Deleted(volume) => {
                    self.desk.cluster.tell_gateways(Vec::new(), Vec::new(), vec![volume], fx)
                }
            }
        }
    }

    /// A directory that did not run for a while has heard nobody: that is no sign that they are gone. This is noted before anything
    /// that came meanwhile is looked at.
    fn note_lateness(&mut self, now: Time) {
        let late = now.since(self.next_tick.max(self.awake));
        self.awake = self.awake.max(now);
        if late.is_zero() {
            return;
        }
        self.desk.cluster.leases.forgive(late);
        if late > PAUSE {
            self.desk.cluster.counters.count(Counter::DirectoryWasPaused);
            self.desk.cluster.leases.on_pause(now);
        }
    }

    /// Writes wait for this one to leave: the next look at bricks comes at once.
    fn on_yielded(&mut self, now: Time, brick: BrickId, (run, sent): (u64, Time)) {
        if self.desk.cluster.leases.on_yielded(now, brick, (run, sent)) {
            self.desk.cluster.counters.count(Counter::LeaseGivenBack);
            self.look_by(now);
        }
    }

    /// The next look comes no later than when a brick may be dead.
    fn look_at_ends(&mut self, now: Time) {
        if let Some(end) = self.desk.cluster.leases.next_end(now) {
            self.look_by(end);
        }
    }

    fn look_by(&mut self, at: Time) {
        self.next_tick = self.next_tick.min(at.max(self.looked + EARLIEST));
    }

    /// Tries a store that fails again, and tells those that have waited for it too long.
    fn keep_store(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let Some(mut askers) = self.desk.cluster.store.take_impatient(now) else {
            return self.desk.cluster.store.retry(now, fx);
        };
        askers.extend(self.desk.waiting.take_all());
        let refusal = self.desk.cluster.store.refusal().expect("it fails");
        askers.into_iter().for_each(|asker| answer(fx, asker, Err(refusal.clone())));
        self.desk.cluster.store.retry(now, fx);
    }
}

/// Whether the answer comes from the records: an old store would deny what was made since.
fn asks_for_records(message: &Message) -> bool {
    match message {
        Message::Admin { request, .. } => !matches!(request, AdminRequest::Status { .. }),
        message => matches!(message, Message::OpenVolume { .. }),
    }
}

impl Machine for Directory {
    type Event = DirectoryEvent;
    type Effect = DirectoryEffect;

    fn step(&mut self, now: Time, event: DirectoryEvent, fx: &mut Vec<DirectoryEffect>) {
        self.note_lateness(now);
        match event {
            DirectoryEvent::Packet { from, packet } => self.on_packet(now, from, packet.message, fx),
            DirectoryEvent::Down(NodeId::Gateway(gateway)) => self.desk.cluster.gateways.on_down(gateway),
            DirectoryEvent::Down(NodeId::Brick(brick)) => {
                self.desk.cluster.leases.on_down(now, brick);
                self.look_at_ends(now);
            }
            DirectoryEvent::Down(_) => {}
            DirectoryEvent::Stored { token, result } => self.on_stored(now, token, result, fx),
            DirectoryEvent::Shard { shard, event } => self.objects.on_shard(now, shard, event, fx),
        }
        self.release(now, fx);
    }

    fn settle(&mut self, _now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.objects.settle(fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.note_lateness(now);
        self.objects.wake(now, fx);
        self.keep_store(now, fx);
        self.release(now, fx);
        if now < self.next_tick {
            return;
        }
        (self.next_tick, self.looked) = (now + TICK, now);
        if self.desk.cluster.holds_still(now) {
            return;
        }
        self.desk.cluster.gateways.forget_silent(now);
        self.desk.cluster.note_time(now, fx);
        runs::keep(&mut self.desk.cluster, now, fx);
        deletions::keep(&mut self.desk.cluster, now, fx);
        let Desk { cluster, views, members, slow, .. } = &mut self.desk;
        slow.keep(cluster, now, fx);
        members.keep(cluster, views, now, fx);
        self.desk.keep_families(now, fx);
        self.desk.grant_wishes(now, fx);
        let Desk { cluster, views, .. } = &mut self.desk;
        views.ask_again(cluster, now, fx);
        views.note_the_mute(cluster, now);
        cluster.tell(now, views.take_news().collect(), fx);
        self.look_at_ends(now);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let tick = (self.next_tick, "leases are looked at");
        let retry = self.desk.cluster.store.deadline().map(|at| (at, "the store is tried again"));
        let objects = self.objects.deadline().map(|at| (at, "versions of objects are held no more"));
        retry.into_iter().chain([tick]).chain(objects).min_by_key(|(at, _)| *at)
    }

    fn check(&self, depth: Depth) {
        self.objects.check();
        let records = &self.desk.cluster.records;
        if depth == Depth::Deep {
            let are_sound =
                [records.volumes.is_sound(), records.families.is_sound(), records.groups.is_sound()];
            assert_eq!(are_sound, [true; 3], "what is found by an index is what there is");
        }
        for record in self.desk.cluster.records.groups.values() {
            let (Some(active), Some(next)) = (&record.active, &record.next) else { continue };
            assert!(next.number > active.number, "views are numbered upward");
            assert!(next.current.and(next.joining).is_empty(), "who joins is not current yet");
            let has_a_say = record.voters.and(active.writers());
            let is_heard = self.desk.cluster.records.is_heard(next, has_a_say);
            assert!(is_heard, "a new current set is a part of those that took every write");
            let same = |slot: u8| next.members[usize::from(slot)] == active.members[usize::from(slot)];
            assert!(record.voters.iter().all(same), "who has a say is who took the writes");
            let joins = |view: &GroupView| {
                view.stand_ins().len() as usize == view.sealed.len()
                    && view.sealed.iter().all(|(_, member)| view.slot_of(*member).is_none())
            };
            assert!(joins(active) && joins(next), "who stands in is not current: {active:?}, {next:?}");
        }
    }
}
