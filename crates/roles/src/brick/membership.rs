//! A brick and the directory: heartbeats and leases, promises of views to come, views that begin.
//!
//! [`super::lease`] has until when a brick may trust its views, [`super::doubts`] which writes it wants settled.

use super::doubts::{Doubts, LINKED_PATIENCE};
use super::lease::Lease;
use super::time::BrickTime;
use super::tokens::Asker as StoreAsker;
use super::{Brick, BrickConfig, BrickEffect, reply};
use base::{BrickId, GroupId, HashMap, NodeId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use volume::netraid::participant::{Asker, FoundFate};
use wire::disk::{Command, StoreError, Token};
use wire::{
    BrickStatus, Decision, Fate, GroupView, IndexReply, Message, OPERATIONS_MAX, Orders, Run, Slots,
    Standing, Version, Wire, WriteId,
};

/// What follows when a note is durable.
#[derive(Debug)]
enum Note {
    Fence { group: GroupId, number: ViewNumber, doubts: Vec<WriteId> },
    Activate { group: GroupId, number: ViewNumber },
    Learned { group: GroupId },
    Family { family: VolumeId },
    Dropped { group: GroupId },
    Scrubbed,
    Disks(Vec<u64>),
    Newest,
    Time,
}

/// A note of a group, and what follows it. It waits until all that was decided before is durable on every disk: a crash
/// must not bring a write back as staged of which this brick has said, by a promise or a new view, that it is not in doubt.
#[derive(Debug)]
struct Barred {
    token: Token,
    /// The disks that have still to answer.
    left: usize,
    durable: bool,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    after: Note,
}

/// What a note that found no room is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Unnoted {
    Group(GroupId),
    Family(VolumeId),
    Dropped(GroupId),
}

/// A run that does not count yet asks again so soon: its groups wait for it.
const WAITING: Duration = Duration::from_millis(100);

/// So many deleted families are remembered: a directory asks for the views of few at a time, and repeats a question once a second.
const GONE_MAX: usize = 1024;

/// The number of the last scrub that was asked for and is done.
const SCRUBBED_KEY: &[u8] = b"c";

/// The newest version of the cluster's map of which it ever heard.
const NEWEST_KEY: &[u8] = b"n";

/// The newest version of the map that the notes name.
fn newest_known(notes: &[(Vec<u8>, Vec<u8>)]) -> u64 {
    let note = notes.iter().find(|(key, _)| key == NEWEST_KEY);
    note.and_then(|(_, value)| u64::from_bytes(value).ok()).unwrap_or(0)
}

/// The identities of the disks on which the groups' blocks are.
const DISKS_KEY: &[u8] = b"d";

/// The disks with which the groups were noted.
pub(super) fn noted_disks(notes: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u64>> {
    let (_, value) = notes.iter().find(|(key, _)| key == DISKS_KEY)?;
    Vec::from_bytes(value).ok()
}

/// What the notes say of the last scrub that was asked for.
pub(super) fn scrubbed(notes: &[(Vec<u8>, Vec<u8>)]) -> u64 {
    let note = notes.iter().find(|(key, _)| key == SCRUBBED_KEY);
    note.and_then(|(_, value)| u64::from_bytes(value).ok()).unwrap_or(0)
}

/// A question of the directory whose fates are being looked up.
#[derive(Debug)]
struct Resolving {
    group: GroupId,
    number: ViewNumber,
    writes: Vec<WriteId>,
    fates: Vec<Option<Fate>>,
}

pub(super) struct Membership {
    id: BrickId,
    pub(super) status: BrickStatus,
    /// The disks that the notes name.
    noted_disks: Option<Vec<u64>>,
    /// Whether this run has had a lease: the directory gives one only to whom it knows with the disks that are here.
    pub(super) is_known: bool,
    lease: Lease,
    time: BrickTime,
    doubts: Doubts,
    pub(super) known: u64,
    /// Families that were deleted lately, the latest last.
    gone: VecDeque<VolumeId>,
    /// The version that `known` becomes once the notes of these are durable.
    learning: Option<(u64, BTreeSet<Token>)>,
    /// Notes behind barriers, in the order in which they are written.
    barred: VecDeque<Barred>,
    /// The view in force that a note of a group tells of.
    telling: BTreeMap<Token, (GroupId, ViewNumber)>,
    notes: HashMap<Token, Note>,
    /// What is to be noted with the next heartbeat: again, where these notes of it found no room.
    unnoted: BTreeMap<Unnoted, BTreeSet<Token>>,
    /// Since the last heartbeat the first disk had no room for a note.
    found_no_room: bool,
    resolving: BTreeMap<u64, Resolving>,
    serial: u64,
    /// What the directory says of this run, and the heartbeat that it answered with that.
    pub(super) standing: (Time, Standing),
    /// Whether the directory has said that it waits, and not only nothing yet.
    pub(super) is_told_to_wait: bool,
}

impl Membership {
    pub(super) fn new(config: BrickConfig, notes: &[(Vec<u8>, Vec<u8>)], now: Time) -> Membership {
        Membership {
            id: config.id,
            status: BrickStatus {
                address: config.address,
                labels: config.labels,
                durability: config.durability,
                run: Run {
                    number: config.run,
                    place: config.place,
                    newest_known: newest_known(notes),
                    ..Run::default()
                },
                ..BrickStatus::default()
            },
            noted_disks: noted_disks(notes),
            lease: Lease::new(now),
            time: BrickTime::recover(notes, now),
            doubts: Doubts::new(now),
            known: 0,
            gone: VecDeque::new(),
            learning: None,
            barred: VecDeque::new(),
            telling: BTreeMap::new(),
            notes: HashMap::default(),
            unnoted: BTreeMap::new(),
            found_no_room: false,
            resolving: BTreeMap::new(),
            serial: 0,
            standing: (Time::ZERO, Standing::Waits),
            is_told_to_wait: false,
            is_known: false,
        }
    }

    pub(super) fn id(&self) -> BrickId {
        self.id
    }

    pub(super) fn is_leased(&self, now: Time) -> bool {
        self.lease.is_held(now)
    }

    /// What is known of the cluster's time.
    pub(super) fn time(&self) -> &BrickTime {
        &self.time
    }

    /// Whether this run may count on a lease.
    fn counts(&self) -> bool {
        matches!(self.standing(), Standing::Untold | Standing::Stands { .. })
    }

    fn is_barrier(&self, token: Token) -> bool {
        self.barred.iter().any(|barred| barred.token == token)
    }

    pub(super) fn deadline(&self) -> (Time, &'static str) {
        let renewal = (self.lease.renewal_due(), "the lease is renewed");
        (self.lease.heartbeat_due(), "heartbeat")
            .min(renewal)
            .min((self.doubts.report_due(), "doubts are reported"))
    }

    pub(super) fn on_up(&mut self, now: Time, node: NodeId) {
        match node {
            NodeId::Gateway(id) => self.doubts.on_gateway_up(id),
            NodeId::Directory => self.lease.heartbeat_at(now),
            _ => {}
        }
    }

    pub(super) fn on_down(&mut self, node: NodeId) {
        if let NodeId::Gateway(id) = node {
            self.doubts.on_gateway_down(id);
        }
    }

    /// Whether any disk is another than when the groups were noted.
    pub(super) fn has_other_disks(&self) -> bool {
        self.noted_disks.as_ref().is_some_and(|noted| *noted != self.status.disks)
    }

    #[cfg(test)]
    pub(super) fn noted_disks(&self) -> Option<&[u64]> {
        self.noted_disks.as_deref()
    }

    /// What is known of a group has changed, and is noted with the next heartbeat.
    pub(super) fn note_later(&mut self, group: GroupId) {
        self.unnoted.entry(Unnoted::Group(group)).or_default();
    }

    /// A note found no room. It is made once more, however often others ask for what follows it.
    fn not_noted(&mut self, token: Token, what: Unnoted) {
        self.unnoted.entry(what).or_default().insert(token);
    }

    /// What the directory says of this run.
    pub(super) fn standing(&self) -> &Standing {
        &self.standing.1
    }

    /// Whether notes are under way, or to be written again.
    fn is_noting(&self) -> bool {
        !(self.notes.is_empty() && self.barred.is_empty() && self.unnoted.is_empty())
    }

    /// The directory is to hear of this brick soon.
    pub(super) fn report_soon(&mut self, now: Time) {
        self.lease.heartbeat_by(now);
    }

    fn token(&mut self) -> Token {
        self.serial += 1;
        StoreAsker::Membership.token(self.serial)
    }
}

impl Brick {
    pub(super) fn keep_lease(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        if now < self.membership.lease.heartbeat_due().min(self.membership.lease.renewal_due()) {
            return;
        }
        if self.membership.lease.takes_end(now) {
            self.counters.count(Counter::LeaseRanOut);
        }
        if now < self.membership.lease.heartbeat_due() {
            self.membership.lease.on_renewal_sent(now);
            let Membership { id: brick, known, status, .. } = &self.membership;
            let renew = Message::Renew { brick: *brick, sent: now, run: status.run.number, known: *known };
            return reply(fx, NodeId::Directory, renew);
        }
        self.membership.lease.on_heartbeat_sent(now);
        self.note_disks(fx);
        if let Some(note) = self.membership.time.take_note(now) {
            self.put_note(note, Note::Time, fx);
        }
        let again = self.membership.unnoted.values().filter(|failed| !failed.is_empty()).count() as u32;
        let found_no_room = core::mem::take(&mut self.membership.found_no_room);
        self.membership.status.groups.unnoted = if found_no_room { again } else { 0 };
        for (what, failed) in core::mem::take(&mut self.membership.unnoted) {
            let again = match what {
                Unnoted::Group(group) => self.note(group, Note::Learned { group }, fx),
                Unnoted::Family(family) => self.note_family(family, fx),
                Unnoted::Dropped(group) => self.note_dropped(group, fx),
            };
            if let Some((_, tokens)) = &mut self.membership.learning
                && !tokens.is_disjoint(&failed)
            {
                tokens.retain(|token| !failed.contains(token));
                tokens.insert(again);
            }
        }
        self.membership.status.in_doubt = self.participants.iter().map(|p| p.in_doubt() as u32).sum();
        self.maintenance.report(&mut self.membership.status, &self.families, &self.groups);
        self.membership.status.groups.bare = self.groups.bare().collect();
        self.vitals.probe(now, fx);
        self.membership.status.health =
            self.vitals.report(now, self.participants.iter().map(|participant| participant.held(now)));
        let streams = self.report_streams();
        let time = self.membership.time.time(now);
        let Membership { id: brick, known, status, .. } = &self.membership;
        let status = Box::new(status.clone());
        let heartbeat = Message::Heartbeat {
            brick: *brick,
            speaks: Version::CURRENT,
            sent: now,
            known: *known,
            status,
            streams,
            time,
        };
        reply(fx, NodeId::Directory, heartbeat);
        self.tell_held(fx);
    }

    /// Asks gateways to settle writes that have been in doubt for long.
    pub(super) fn report_doubts(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        if now < self.membership.doubts.report_due() {
            return;
        }
        let groups = &self.groups;
        let doubtful = self.membership.doubts.name(now, |before| {
            let all = self.participants.iter().flat_map(move |participant| participant.doubtful(before));
            all.filter(|write| !groups.is_fenced(write.group))
        });
        if doubtful.is_empty() {
            return;
        }
        let before = now - LINKED_PATIENCE;
        let old = self.participants.iter().flat_map(|participant| participant.doubtful(before));
        let old = old.filter(|write| write.link.is_some() && !self.groups.is_fenced(write.group));
        let writes: Vec<WriteId> = old.take(OPERATIONS_MAX).collect();
        if !writes.is_empty() {
            reply(fx, NodeId::Directory, Message::Doubtful { writes });
        }
        for gateway in self.membership.doubts.gateways() {
            reply(fx, NodeId::Gateway(gateway), Message::Doubtful { writes: doubtful.clone() });
        }
    }

    pub(super) fn on_directory(&mut self, now: Time, message: Message, fx: &mut Vec<BrickEffect>) {
        match message {
            Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time } => {
                self.membership.time.hear(now, time);
                self.on_heartbeat_done(now, (sent, version, lease_ns), views, deleted, *orders, fx);
            }
            Message::Renewed { sent, run, lease_ns } => self.on_renewed(now, sent, run, lease_ns),
            Message::Yield { run } => self.on_yield(now, run, fx),
            Message::HeldDone { operation, through, gone } => {
                self.on_held_done(now, (operation, through), gone, fx);
            }
            Message::Fence { view, speaks, run } => self.on_fence(now, &view, (speaks, run), fx),
            Message::Resolve { group, number, writes, run } => {
                self.on_resolve(now, (group, number), (writes, run), fx);
            }
            Message::Recount { from } => self.on_recount(now, from, fx),
            Message::Activate { view, commits, aborts, bare, run } => {
                self.on_activate(now, (&view, bare, run), &commits, &aborts, fx)
            }
            Message::Bricks { .. } => self.restores.on_directory(now, message),
            Message::IndexDone { operation, result } => {
                if !matches!(*result, Ok(IndexReply::Gone { .. })) {
                    return self.restores.on_directory(now, Message::IndexDone { operation, result });
                }
                // Where the index cannot tell it is asked again.
                if let Ok(IndexReply::Gone { versions, partly }) = *result {
                    self.maintenance.on_gone(now, operation, &versions, &partly);
                }
            }
            // It makes a view of a group that has a write which goes by a record here. And of versions it alone knows that they will not be visible.
            Message::Query { .. } | Message::Decide { .. } | Message::DropVersions { .. } => {
                self.on_gateway(now, NodeId::Directory, message.into(), fx)
            }
            _ => self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored),
        }
    }

    fn on_heartbeat_done(
        &mut self,
        now: Time,
        (sent, version, lease_ns): (Time, u64, u64),
        views: Vec<GroupView>,
        deleted: Vec<VolumeId>,
        orders: Orders,
        fx: &mut Vec<BrickEffect>,
    ) {
        let Orders { families, left, bricks, care, is_slow, streams, run, standing, .. } = orders;
        let Orders { newest, gone, asks_held, renew_ns, .. } = orders;
        if run != self.membership.status.run.number && standing != Standing::Untold {
            return self.counters.count(Counter::AnswerToAnotherRunIgnored);
        }
        // A directory of an earlier release does not say which families are gone.
        let gone = (standing != Standing::Untold).then_some(gone);
        self.on_standing(now, sent, standing);
        if self.membership.counts() {
            self.membership.lease.extend(now, sent, lease_ns);
            self.membership.is_known |= lease_ns > 0;
        }
        let every = if lease_ns > 0 { Duration::from_nanos(renew_ns) } else { Duration::ZERO };
        self.membership.lease.renew_every(now, every);
        self.note_newest(version.max(newest), fx);
        self.vitals.on_heartbeat_done(now, sent, is_slow);
        if let Some(table) = streams {
            self.on_streams(now, table, fx);
        }
        self.maintenance.on_care(now, care);
        // An answer that was overtaken has old orders.
        if version >= self.membership.known {
            self.maintenance.on_left(left, &self.groups);
            for (brick, address) in bricks {
                fx.push(BrickEffect::Address { node: NodeId::Brick(brick), address });
            }
        }
        if version <= self.membership.known || self.membership.learning.is_some() {
            return;
        }
        if asks_held {
            self.held.begin();
        }
        let is_wide = !(families.is_empty() && deleted.is_empty() && gone.as_ref().is_none_or(Vec::is_empty));
        let mut tokens = self.on_deleted(now, &deleted, gone, fx);
        for family in families {
            if let Some(family) = self.families.learn(family) {
                tokens.insert(self.note_family(family, fx));
            }
        }
        for view in views {
            tokens.extend(self.learn(now, &view, fx));
        }
        match is_wide {
            true => self.look_at_groups(now),
            // It may have said that groups are doubted.
            false => self.locks.on_groups(now, &self.groups),
        }
        if tokens.is_empty() {
            self.membership.known = version;
            // What it waits for comes with the next answer.
            if lease_ns == 0 || newest > version {
                self.membership.lease.heartbeat_at(now);
            }
        } else {
            self.membership.learning = Some((version, tokens));
        }
    }

    fn on_renewed(&mut self, now: Time, sent: Time, run: u64, lease_ns: u64) {
        if run != self.membership.status.run.number {
            return self.counters.count(Counter::AnswerToAnotherRunIgnored);
        }
        self.vitals.on_renewed(now, sent);
        match lease_ns {
            0 => self.membership.lease.heartbeat_by(now),
            _ if self.membership.counts() => self.membership.lease.extend(now, sent, lease_ns),
            _ => {}
        }
    }

    fn on_yield(&mut self, now: Time, run: u64, fx: &mut Vec<BrickEffect>) {
        if run != self.membership.status.run.number {
            return self.counters.count(Counter::ViewForAnotherProcessIgnored);
        }
        self.membership.lease.give_back(now);
        let brick = self.membership.id;
        reply(fx, NodeId::Directory, Message::Yielded { brick, run, sent: now });
    }

    /// The directory says whether this run of the brick counts, and in which groups its disks lag.
    fn on_standing(&mut self, now: Time, sent: Time, standing: Standing) {
        let (last, before) = &self.membership.standing;
        if sent < *last || sent > now || matches!(before, Standing::Ousted { .. }) {
            return;
        }
        match &standing {
            Standing::Waits => {
                if *before == Standing::Waits {
                    self.membership.is_told_to_wait = true;
                    self.membership.lease.heartbeat_by(now + WAITING);
                }
                return;
            }
            Standing::Untold => self.groups.settle_doubts(&[]),
            Standing::Stands { incarnation, behind } => {
                self.membership.status.run.incarnation = *incarnation;
                match before {
                    Standing::Stands { .. } => self.groups.doubt(behind),
                    _ => self.groups.settle_doubts(behind),
                }
                if !behind.is_empty() {
                    self.counters.count(Counter::GroupsHeldBackForAnOldDisk);
                }
            }
            Standing::Ousted { by } => {
                self.membership.status.run.ousted_by = *by;
                self.membership.lease = Lease::new(now);
                self.groups.doubt_all();
                self.counters.count(Counter::RunOustedByALaterOne);
            }
        }
        self.membership.standing = (sent, standing);
    }

    /// A directory that comes back with an older store is known by this.
    fn note_newest(&mut self, version: u64, fx: &mut Vec<BrickEffect>) {
        let newest = &mut self.membership.status.run.newest_known;
        if version > *newest {
            *newest = version;
            self.put_note((NEWEST_KEY.to_vec(), Some(version.to_bytes())), Note::Newest, fx);
        }
    }

    /// These branches are no more, and nothing is left of the families that are `gone`, if the directory says so.
    pub(super) fn on_deleted(
        &mut self,
        now: Time,
        deleted: &[VolumeId],
        gone: Option<Vec<VolumeId>>,
        fx: &mut Vec<BrickEffect>,
    ) -> BTreeSet<Token> {
        let mut tokens = BTreeSet::new();
        self.discard(now, deleted.iter().copied(), fx);
        let gone: BTreeSet<VolumeId> = match gone {
            Some(gone) => gone.into_iter().collect(),
            None => deleted.iter().copied().filter(|of| self.groups.is_family_of(*of, deleted)).collect(),
        };
        let of_families = gone.iter().flat_map(|family| self.families.groups_of(*family)).collect();
        for group in self.groups.forget(&gone, &of_families) {
            tokens.insert(self.note(group, Note::Learned { group }, fx));
        }
        for family in gone {
            if self.families.forget(family) {
                tokens.insert(self.note_family(family, fx));
            }
            self.membership.gone.push_back(family);
        }
        let excess = self.membership.gone.len().saturating_sub(GONE_MAX);
        self.membership.gone.drain(..excess);
        tokens
    }

    fn discard(
        &mut self,
        now: Time,
        branches: impl IntoIterator<Item = VolumeId>,
        fx: &mut Vec<BrickEffect>,
    ) {
        for branch in branches {
            self.with_all(now, fx, |participant, cx| participant.discard(cx, branch));
        }
    }

    /// Takes in a view that began without this brick.
    fn learn(&mut self, now: Time, view: &GroupView, fx: &mut Vec<BrickEffect>) -> Option<Token> {
        let current = self.groups.active(view.group).map_or(ViewNumber(0), |active| active.number);
        let left_out = self.groups.left_out_by(view);
        let is_news = view.number > current && !view.is_writer(self.membership.id);
        if !is_news || !self.has_none_of_another_slot(view) || !self.groups.activate(view) {
            return None;
        }
        self.counters.count(Counter::LearnedThatItWasLeftOutOfAView);
        self.with_all(now, fx, |participant, cx| participant.activate(cx, view, &[]));
        self.discard(now, left_out, fx);
        self.look_at_group(now, view.group);
        Some(self.note(view.group, Note::Learned { group: view.group }, fx))
    }

    /// Whether no blocks are here that were written for another slot of the group than the view gives this brick. If there are they are given back first.
    fn has_none_of_another_slot(&mut self, view: &GroupView) -> bool {
        if self.groups.has_another_slot(view) {
            self.maintenance.leave_slot(view);
            return false;
        }
        !self.groups.is_buried(view.group) || self.maintenance.is_clean(view.group)
    }

    /// Whether the view is one of a deleted volume: a late question, which would leave a group here that nobody speaks of again.
    fn is_of_the_past(&mut self, view: &GroupView) -> bool {
        let is_gone = !self.groups.has(view.group) && self.membership.gone.contains(&view.volume);
        if is_gone {
            self.counters.count(Counter::ViewOfADeletedVolumeIgnored);
        }
        is_gone
    }

    /// Whether a question about views is for another process of this brick. A directory of an earlier release does not say for which it is: then, whether it
    /// goes by another one, as far as is known.
    fn is_for_another_process(&mut self, run: u64) -> bool {
        let is_so = match run {
            0 => {
                !self.membership.counts()
                    && (self.membership.is_told_to_wait || *self.membership.standing() != Standing::Waits)
            }
            run => run != self.membership.status.run.number,
        };
        if is_so {
            self.counters.count(Counter::ViewForAnotherProcessIgnored);
        }
        is_so
    }

    fn on_fence(
        &mut self,
        now: Time,
        view: &GroupView,
        (speaks, run): (bool, u64),
        fx: &mut Vec<BrickEffect>,
    ) {
        if self.is_of_the_past(view) || self.is_for_another_process(run) {
            return;
        }
        if !self.has_none_of_another_slot(view) {
            return self.counters.count(Counter::ViewWaitsForBlocksOfAnotherSlot);
        }
        // With its disks it has lost what it took, or another process of this brick took it in a view that this one has not heard of: its silence about a
        // write would be taken for a refusal.
        let me = self.membership.id;
        let wrote = self.groups.active(view.group).is_some_and(|active| active.is_writer(me));
        let may_lack = !wrote || self.groups.is_doubted(view.group);
        if speaks && may_lack {
            return self.counters.count(Counter::FenceNotAnsweredForWantOfMemory);
        }
        let began = self.groups.active(view.group).is_some_and(|active| active.number == view.number);
        if view.slot_of(self.membership.id).is_none()
            || !(began || self.groups.promise(view.group, view.number))
        {
            return;
        }
        let mut doubts = Vec::new();
        // A view that began here already is being made once more (the directory restarted): nothing older is in doubt.
        if !began {
            self.with_all(now, fx, |participant, cx| doubts.extend(participant.fence(cx, view.group)));
        }
        self.note(view.group, Note::Fence { group: view.group, number: view.number, doubts }, fx);
    }

    fn on_resolve(
        &mut self,
        now: Time,
        (group, number): (GroupId, ViewNumber),
        (writes, run): (Vec<(WriteId, u8)>, u64),
        fx: &mut Vec<BrickEffect>,
    ) {
        if self.is_for_another_process(run) {
            return;
        }
        let valid = writes.iter().all(|(write, width)| write.span.is_valid() && (1..=32).contains(width));
        if !valid || self.groups.promised(group) != number || self.groups.is_doubted(group) {
            return;
        }
        self.membership.serial += 1;
        let job = self.membership.serial;
        // The directory asks again when it gets no answer; the earlier question is dropped.
        self.membership.resolving.retain(|_, resolving| resolving.group != group);
        let asked = writes.iter().map(|(write, _)| *write).collect();
        let fates = vec![None; writes.len()];
        self.membership.resolving.insert(job, Resolving { group, number, writes: asked, fates });
        for (index, (write, width)) in writes.into_iter().enumerate() {
            self.with(now, fx, write.span, |participant, cx| {
                participant.on_query(cx, Asker::View(job, index), write, width);
            });
        }
        self.collect_fates(fx);
    }

    pub(super) fn collect_fates(&mut self, fx: &mut Vec<BrickEffect>) {
        let found = self.participants.iter_mut().flat_map(|p| p.take_fates()).collect::<Vec<_>>();
        for FoundFate { job, index, fate } in found {
            let Some(resolving) = self.membership.resolving.get_mut(&job) else { continue };
            resolving.fates[index] = Some(fate);
            if resolving.fates.iter().all(Option::is_some) {
                let Resolving { group, number, writes, fates } =
                    self.membership.resolving.remove(&job).expect("just seen");
                let fates = writes.into_iter().zip(fates.into_iter().flatten()).collect();
                reply(
                    fx,
                    NodeId::Directory,
                    Message::Resolved { group, number, fates, run: self.membership.status.run.number },
                );
            }
        }
    }

    fn on_activate(
        &mut self,
        now: Time,
        (view, bare, run): (&GroupView, Option<Slots>, u64),
        commits: &[Decision],
        aborts: &[Decision],
        fx: &mut Vec<BrickEffect>,
    ) {
        if self.is_of_the_past(view) || self.is_for_another_process(run) {
            return;
        }
        let began = self.groups.active(view.group).is_some_and(|active| active.number >= view.number);
        // Every view but a group's first is promised before it begins; who has lost its disks meanwhile did not.
        let promised = view.number == ViewNumber(1) || self.groups.promised(view.group) >= view.number;
        // Said of each slot where the directory knows.
        let bare = bare.map(|bare| view.slot_of(self.membership.id).is_some_and(|slot| bare.has(slot)));
        // A group that counts on this brick before the directory has heard which disks are here would count as lost if they are others than it knows.
        let is_known =
            self.groups.has(view.group) || view.is_joining(self.membership.id) || self.membership.is_known;
        let may_begin = is_known && (bare != Some(true) || self.groups.may_be_bare(view.group));
        let is_party = view.is_writer(self.membership.id) && promised && may_begin;
        let left_out = self.groups.left_out_by(view);
        if !is_party || !self.has_none_of_another_slot(view) || (!began && !self.groups.activate(view)) {
            return;
        }
        if !began {
            debug_assert!(aborts.iter().all(|abort| !commits.contains(abort)), "a decision is one of two");
            if let Some(is_bare) = bare {
                self.groups.set_bare(view.group, is_bare);
            }
            self.with_all(now, fx, |participant, cx| participant.activate(cx, view, commits));
            self.discard(now, left_out, fx);
        }
        self.look_at_group(now, view.group);
        self.note(view.group, Note::Activate { group: view.group, number: view.number }, fx);
    }

    pub(super) fn note_family(&mut self, family: VolumeId, fx: &mut Vec<BrickEffect>) -> Token {
        let note = self.families.note(family);
        self.put_note(note, Note::Family { family }, fx)
    }

    pub(super) fn note_dropped(&mut self, group: GroupId, fx: &mut Vec<BrickEffect>) -> Token {
        self.note(group, Note::Dropped { group }, fx)
    }

    pub(super) fn note_scrub(&mut self, number: u64, fx: &mut Vec<BrickEffect>) {
        self.put_note((SCRUBBED_KEY.to_vec(), Some(number.to_bytes())), Note::Scrubbed, fx);
    }

    /// The disks are noted once everything that was forgotten with others is noted.
    fn note_disks(&mut self, fx: &mut Vec<BrickEffect>) {
        let disks = &self.membership.status.disks;
        if disks.is_empty()
            || self.membership.noted_disks.as_ref() == Some(disks)
            || self.membership.is_noting()
        {
            return;
        }
        let disks = disks.clone();
        self.put_note((DISKS_KEY.to_vec(), Some(disks.to_bytes())), Note::Disks(disks), fx);
    }

    /// Puts what is known of a group on stable storage, behind a barrier on every disk; `after` follows.
    fn note(&mut self, group: GroupId, after: Note, fx: &mut Vec<BrickEffect>) -> Token {
        let (key, value) = self.groups.note(group);
        let (token, left) = (self.membership.token(), self.participants.len());
        let active = self.groups.active(group).map(|active| (group, active.number));
        self.membership.telling.extend(active.map(|active| (token, active)));
        self.membership.barred.push_back(Barred { token, left, durable: true, key, value, after });
        for disk in 0..left {
            fx.push(BrickEffect::Store { disk, command: Command::Barrier { token } });
        }
        token
    }

    /// A disk answers a barrier before a note, or the first disk the note itself.
    pub(super) fn on_note_or_barrier(
        &mut self,
        token: Token,
        result: Result<(), StoreError>,
        fx: &mut Vec<BrickEffect>,
    ) {
        self.membership.found_no_room |= result == Err(StoreError::NoSpace);
        let durable = result.is_ok();
        match self.membership.is_barrier(token) {
            true => self.on_barrier(token, durable, fx),
            false => self.on_noted(token, durable, fx),
        }
    }

    /// A disk has all that was decided before a note. Notes follow in the order in which they were made: a later one says
    /// all that an earlier one does.
    fn on_barrier(&mut self, token: Token, durable: bool, fx: &mut Vec<BrickEffect>) {
        if let Some(barred) = self.membership.barred.iter_mut().find(|barred| barred.token == token) {
            barred.left -= 1;
            barred.durable &= durable;
        }
        while self.membership.barred.front().is_some_and(|barred| barred.left == 0) {
            let Barred { token, durable, key, value, after, .. } =
                self.membership.barred.pop_front().expect("just seen");
            self.membership.notes.insert(token, after);
            match durable {
                true => fx.push(BrickEffect::Store { disk: 0, command: Command::Note { token, key, value } }),
                false => self.on_noted(token, false, fx),
            }
        }
    }

    fn put_note(
        &mut self,
        (key, value): (Vec<u8>, Option<Vec<u8>>),
        after: Note,
        fx: &mut Vec<BrickEffect>,
    ) -> Token {
        let token = self.membership.token();
        self.membership.notes.insert(token, after);
        fx.push(BrickEffect::Store { disk: 0, command: Command::Note { token, key, value } });
        token
    }

    fn on_noted(&mut self, token: Token, durable: bool, fx: &mut Vec<BrickEffect>) {
        let note = self.membership.notes.remove(&token).expect("a note is answered once");
        let told = self.membership.telling.remove(&token);
        let run = self.membership.status.run.number;
        if let Some((group, number)) = told.filter(|_| durable) {
            self.groups.on_noted(group, number);
        }
        match note {
            // What is known must become durable before the next heartbeat may say so: it is noted again by then. A view
            // that is not noted is not served.
            Note::Learned { group } | Note::Fence { group, .. } | Note::Activate { group, .. }
                if !durable =>
            {
                self.membership.not_noted(token, Unnoted::Group(group));
            }
            Note::Family { family } if !durable => {
                self.membership.not_noted(token, Unnoted::Family(family));
            }
            Note::Dropped { group } if !durable => {
                self.membership.not_noted(token, Unnoted::Dropped(group));
            }
            Note::Scrubbed | Note::Disks(_) | Note::Newest | Note::Time if !durable => {}
            Note::Fence { group, number, doubts } => {
                reply(fx, NodeId::Directory, Message::Fenced { group, number, doubts, run });
            }
            Note::Activate { group, number } => {
                reply(fx, NodeId::Directory, Message::Activated { group, number, run })
            }
            Note::Learned { .. } | Note::Family { .. } => self.learned(token),
            Note::Dropped { group } => self.maintenance.on_dropped(group),
            Note::Scrubbed | Note::Newest | Note::Time => {}
            Note::Disks(disks) => self.membership.noted_disks = Some(disks),
        }
    }

    fn learned(&mut self, token: Token) {
        let Some((version, tokens)) = &mut self.membership.learning else { return };
        tokens.remove(&token);
        if tokens.is_empty() {
            self.membership.known = *version;
            self.membership.learning = None;
            self.membership.lease.heartbeat_at(Time::ZERO);
        }
    }
}
