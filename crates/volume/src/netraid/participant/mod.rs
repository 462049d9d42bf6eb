//! A brick's side of the family, for one disk: prepares writes, learns their decision, serves reads.
//!
//! What must hold here (`docs/protocol` argues why):
//! - A block has at most one undecided write (a parity block: one for each data unit). A later stamp waits behind it,
//!   an earlier one is refused: waits go from later to earlier stamps only, so they form no circle (wait-die).
//! - `Prepared` is said only when the write is on stable storage; nothing is forgotten afterwards but by a decision.
//! - A write that was refused by [`wire::Message::Query`] is refused for ever (a durable *seal*), so that an abort is final.
//! - A read is served from blocks without a write in doubt, or (under `log`) with what is decided beside it and the write's name.
//!
//! A participant is put together from parts, each with its own fields; this file passes to them what comes. From below to
//! above: [`context`] (what a step may see and ask for), [`disk`] (questions to the store, and whose their answers are) with
//! [`branches`] (what a block inherits), [`reads`] with [`contests`] (reads that other members were asked for too),
//! [`outcomes`] (what took effect), [`room`] (for whom room is kept), [`writes`] (writes in doubt), then [`repair`] and
//! [`jobs`] (what the brick itself asks). Begin with [`writes`].

mod allocation;
mod answers;
mod arrivals;
mod branches;
mod completions;
mod contests;
pub mod context;
mod copy_ups;
mod disk;
mod fates;
mod fragments;
mod fresh;
pub mod jobs;
mod outcomes;
mod reads;
mod repair;
mod room;
mod writes;

pub use context::{
    Asker, Context, Effect, FragmentRequest, FragmentWish, ReadRequest, RepairAsker, RepairRequest,
};
pub use fates::FoundFate;
pub use reads::READ_PATIENCE;

use super::pending::{Pending, Prepare, WriteKey};
use ::reads::distribute::claim::{Attempt, Counts, Holders, estimate::Calibration};
use ::reads::seat::{Entered, Kept, Notice, Places, Request as _, Seat, Stay, Targets, Turns};
use arrivals::{Arrival, ArrivalId, MergeJob};
use base::{BrickId, GroupId, NodeId, Payload, RequestId, Stamp, StreamId, Time, ViewNumber, VolumeId};
use branches::{Found, Look, Wanted};
use contests::Contests;
use core::time::Duration;
use disk::{Allocating, Disk, Looking, Noting, Staging};
use fragments::Fragments;
use jobs::{Finding, Jobs};
use reads::Reads;
use rules::counters::Counter;
use rules::fair::{Discipline, Shares, Unserved};
use wire::disk::{Command, Recovered, Reply, StoreError, Token};
use wire::{Claim, Completion, Decision, FragmentOutcome, GroupView, Service, Span, StreamUse, WriteId};
use writes::{Around, Writes};

/// The participant of one disk.
pub struct Participant {
    seat: Seat<Arrival>,
    disk: Disk,
    reads: Reads,
    writes: Writes,
    fragments: Fragments,
    jobs: Jobs,
}

/// Lends the parts that writes work with, beside the writes themselves.
macro_rules! around {
    ($participant:ident, $cx:ident) => {
        &mut Around { cx: $cx, disk: &mut $participant.disk, reads: &mut $participant.reads }
    };
}

impl Participant {
    /// The participant of a disk of the brick `me`, of which that much is known, where `recovered` was found.
    pub fn new(
        me: BrickId,
        calibration: Calibration,
        turns: Turns,
        recovered: &Recovered,
        now: Time,
    ) -> Participant {
        Participant {
            seat: Seat::new(turns),
            disk: Disk::default(),
            reads: Reads::new(Contests::new(me, calibration)),
            writes: Writes::recover(recovered, now),
            fragments: Fragments::default(),
            jobs: Jobs::default(),
        }
    }

    /// Drops writes that were found staged although they are sealed. Called once, before anything else.
    pub fn drop_sealed(&mut self, cx: &mut Context<'_>) {
        self.writes.drop_sealed(around!(self, cx));
    }

    // ---- writes ----

    /// A gateway asks to prepare a write. It never again asks for what is below `floor`.
    pub fn on_prepare(&mut self, cx: &mut Context<'_>, prepare: Prepare, floor: u64) {
        self.arrive(cx, Arrival::Prepare { prepare, floor });
    }

    /// A write was decided, or given up.
    pub fn on_decide(&mut self, cx: &mut Context<'_>, decision: &Decision, commit: bool) {
        if !commit
            && self
                .seat
                .withdraw(cx.now, &ArrivalId::Write(WriteKey::from(decision)), Unserved::Dropped)
                .is_some()
        {
            cx.counters.count(Counter::WriteGivenUpBeforeItsTurn);
        }
        self.writes.on_decide(around!(self, cx), decision, commit);
    }

    /// What is the fate of `write` here? If it is not here, it never will be, unless the asker only looks.
    ///
    /// One that waits for its turn goes ahead, and is not refused: whoever asks waits for it in doubt and shall not wait for its
    /// stream's turn, and asks again. Impatient readers of a busy block could keep its writers out for ever otherwise.
    pub fn on_query(&mut self, cx: &mut Context<'_>, asker: Asker, write: WriteId, width: u8) {
        if let Asker::Looker(..) = asker {
            return self.writes.on_query(around!(self, cx), asker, write, width);
        }
        if let Some(waiting) = self.seat.go_ahead(cx.now, &ArrivalId::Write(WriteKey::of(&write))) {
            cx.counters.count(Counter::WriteWentAheadAsItsFateWasAsked);
            return self.begin(cx, waiting);
        }
        self.writes.on_query(around!(self, cx), asker, write, width);
    }

    /// A later view of `group` was promised: nothing more is prepared or read under the old one. Gives the writes
    /// in doubt.
    pub fn fence(&mut self, cx: &mut Context<'_>, group: GroupId) -> Vec<WriteId> {
        self.refuse_old(cx, group);
        self.writes.fence(around!(self, cx), group)
    }

    /// A view begins: every write of the group that it does not commit is dropped.
    pub fn activate(&mut self, cx: &mut Context<'_>, view: &GroupView, commits: &[Decision]) {
        self.refuse_old(cx, view.group);
        self.writes.activate(around!(self, cx), view, commits);
    }

    /// The volume is deleted: its writes end without an answer.
    pub fn discard(&mut self, cx: &mut Context<'_>, volume: VolumeId) {
        for arrival in self.seat.withdraw_where(cx.now, |arrival| arrival.volume() == Some(volume)) {
            // Only the brick's own jobs have to hear of it.
            if arrival.asker().is_none() {
                arrivals::refuse(cx, &mut self.jobs, &arrival);
            }
        }
        self.writes.discard(around!(self, cx), volume);
    }

    /// A gateway cannot be reached: what it asked for and was not begun is forgotten. It asks again if it lives.
    pub fn on_gateway_down(&mut self, now: Time, node: NodeId) {
        self.seat.withdraw_where(now, |arrival| arrival.asker().is_some_and(|(asker, _)| asker == node));
        self.writes.forget_node(node);
        self.reads.forget_node(node);
    }

    /// The fates found since the last call, for the making of views.
    pub fn take_fates(&mut self) -> Vec<FoundFate> {
        self.writes.take_fates()
    }

    // ---- reads ----

    /// A gateway asks for blocks.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadRequest) {
        self.arrive(cx, Arrival::Read(read));
    }

    /// Which blocks hold data?
    pub fn on_allocation(
        &mut self,
        cx: &mut Context<'_>,
        from: NodeId,
        operation: u64,
        group: GroupId,
        span: Span,
    ) {
        let asked = Allocating { from, operation, group, span, above: None };
        allocation::begin(cx, &mut self.disk, self.writes.undecided(), asked);
    }

    /// Another member serves a read.
    pub fn on_claim(&mut self, cx: &mut Context<'_>, from: BrickId, claim: Claim) {
        let read = ArrivalId::Contested(NodeId::Gateway(claim.gateway), claim.number);
        if self.seat.withdraw(cx.now, &read, Unserved::ByAnother).is_some() {
            cx.counters.count(Counter::ReadLeftBeforeItsTurn);
            return cx.counters.count(Counter::ReadLeftToAnotherMember);
        }
        self.reads.on_claim(cx, from, claim);
    }

    /// From now on the disk shows its head, or does not.
    pub fn see_heads(&mut self, seen: bool) {
        self.reads.see_heads(seen);
    }

    /// The disk is about to serve a contested read.
    pub fn on_disk_claims(&mut self, attempt: Attempt, bid_ns: u64, holders: &Holders) {
        self.reads.on_disk_claims(attempt, bid_ns, holders);
    }

    /// Serves what is this brick's turn, and what those who were expected to be first let pass. After a batch: of a brick that
    /// stood still for a while the reads that others claimed meanwhile come with their claims.
    pub fn settle_contests(&mut self, cx: &mut Context<'_>) {
        self.reads.settle(cx, &mut self.disk, self.writes.undecided());
    }

    /// Claims to be told, and whom.
    pub fn take_claims(&mut self) -> impl Iterator<Item = (BrickId, Claim)> + use<> {
        self.reads.take_claims()
    }

    /// How often contested reads were claimed, left to others, and taken over.
    pub fn contest_counts(&self) -> Counts {
        self.reads.contest_counts()
    }

    // ---- fragments ----

    /// A fragment is brought, or asked for.
    pub fn on_fragment(&mut self, cx: &mut Context<'_>, request: FragmentRequest) {
        // A repeat of what is at the disk must not wait for a turn of its own: a slow disk would do everything twice.
        if self.fragments.are_at_work_for(&request) {
            return cx.counters.count(Counter::DuplicateRequestSuppressed);
        }
        self.arrive(cx, Arrival::Fragment(request));
    }

    /// Gives all blocks of a version of an object back. What of it waits for its turn comes too late.
    pub fn drop_version(&mut self, cx: &mut Context<'_>, version: VolumeId) {
        for arrival in self.seat.withdraw_where(cx.now, |arrival| arrival.volume() == Some(version)) {
            if let Arrival::Fragment(request) = arrival {
                fragments::refuse(cx, &request, FragmentOutcome::Missing);
            }
        }
        cx.store(Command::Discard { volume: version, stretch: None });
    }

    /// Questions about small fragments that are not here, and are to be asked of the disk where these may lie alone.
    pub fn take_to_look_alone(&mut self) -> Vec<FragmentRequest> {
        self.fragments.take_to_look_alone()
    }

    /// Whoever put these fragments does not count on them.
    pub fn give_back_fragments(&mut self, cx: &mut Context<'_>, from: NodeId, operations: &[u64]) {
        for operation in operations {
            self.fragments.give_back(cx, &mut self.disk, (from, *operation));
        }
    }

    /// Gives the blocks of one fragment back.
    pub fn erase(&mut self, cx: &mut Context<'_>, span: Span) {
        self.disk.erase(cx, span);
    }

    /// Looks up which blocks of fragments there are, for a job.
    pub fn survey(&mut self, cx: &mut Context<'_>, job: u64, span: Span) {
        self.disk.look_here(cx, (span, 1), false, Looking::Own { job });
    }

    // ---- repairs, and what the brick itself asks ----

    /// Puts good content in place of unreadable or old blocks, unless something newer is there or under way.
    pub fn on_repair(&mut self, cx: &mut Context<'_>, request: RepairRequest) {
        self.arrive(cx, Arrival::Repair(request));
    }

    /// Marks blocks as lost that nobody can make out, unless they are here, or something newer is.
    pub fn lose(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        (group, view): (GroupId, ViewNumber),
        span: Span,
        width: u8,
        stamps: Vec<Stamp>,
    ) {
        let (asker, content, stay) = (RepairAsker::Lost(job), Payload::new(), Stay::from(cx.now));
        let service = Service { stream: StreamId::MAINTENANCE, delay: 0 };
        self.on_repair(cx, RepairRequest { asker, group, view, span, width, stamps, content, service, stay });
    }

    /// Looks up the stamps of own blocks; with `verify` checks what is on the disk, too.
    pub fn examine(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        group: GroupId,
        span: Span,
        width: u8,
        verify: bool,
    ) {
        let wanted = if verify { Wanted::Check } else { Wanted::Stamps };
        self.arrive(cx, Arrival::Examine { job, look: Look { group, span, width, wanted } });
    }

    /// Which stretches hold stamps on this disk?
    pub fn list_stretches(&mut self, cx: &mut Context<'_>, job: u64, after: Option<(VolumeId, u64)>) {
        self.disk.inventory(cx, job, after);
    }

    /// At most `max` of the parts of requests that took effect here after `after`, in order.
    pub fn list_completions(&self, after: Option<(RequestId, u64)>, max: usize) -> Vec<Completion> {
        self.writes.outcomes().page(after, max)
    }

    /// Takes over which requests took effect at another member.
    pub fn remember(&mut self, cx: &mut Context<'_>, job: u64, completions: Vec<Completion>) {
        self.writes.outcomes().remember(cx, &mut self.disk, job, completions);
    }

    /// Copies the blocks of `from`, an ancestor, up that the branch of `span` lacks.
    pub fn merge(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        group: GroupId,
        span: Span,
        width: u8,
        from: VolumeId,
    ) {
        self.arrive(cx, Arrival::Merge(MergeJob { job, group, span, width, from }));
    }

    /// Gives a stretch of a branch back, once no write of it is under way.
    pub fn discard_stretch(&mut self, cx: &mut Context<'_>, volume: VolumeId, stretch: u64) {
        cx.store(Command::Discard { volume, stretch: Some(stretch) });
    }

    /// Gives a stretch of a merged branch back once no read that began before now can come to it.
    pub fn discard_merged(&mut self, cx: &mut Context<'_>, job: u64, volume: VolumeId, stretch: u64) {
        let gone = self.disk.discard_merged(cx, job, volume, stretch);
        gone.into_iter().for_each(|job| self.jobs.on_durable(job, true));
    }

    /// Says so once all that was asked of the disk so far is durable.
    pub fn settle(&mut self, cx: &mut Context<'_>, job: u64) {
        Jobs::settle(around!(self, cx), job);
    }

    /// What was found since the last call.
    pub fn take_findings(&mut self) -> Vec<(u64, Finding)> {
        self.jobs.take()
    }

    // ---- the store's answers ----

    pub fn on_store(&mut self, cx: &mut Context<'_>, reply: Reply) {
        self.seat.on_progress(cx.now);
        match reply {
            Reply::Staged { token, result } => self.on_staged(cx, token, result),
            Reply::Read { token, result } => {
                if let Some((looking, found)) = self.disk.found(cx, token, result) {
                    self.on_found(cx, token, looking, found);
                    let gone = self.disk.discard_due(cx);
                    gone.into_iter().for_each(|job| self.jobs.on_durable(job, true));
                }
            }
            Reply::Noted { token, result } => self.on_noted(cx, token, result.is_ok()),
            Reply::Allocation { token, result } => {
                let asked = self.disk.allocated(cx.now, token);
                allocation::on_runs(cx, &mut self.disk, asked, result);
            }
            Reply::Inventory { token, result } => {
                let job = self.disk.listed(cx.now, token);
                self.jobs.on_stretches(job, result);
            }
            Reply::WantsToDestage { blocks } => self.arrive(cx, Arrival::Destage { blocks }),
            Reply::Room { bytes } => {
                self.disk.set_room(bytes);
                self.seat.on_home(cx.now);
            }
            Reply::Home { .. } => self.seat.on_home(cx.now),
            Reply::Destaged { token } => self.disk.destaged(cx.now, token),
            Reply::Broken { .. } => cx.counters.count(Counter::DiskFailed),
        }
    }

    fn on_staged(&mut self, cx: &mut Context<'_>, token: Token, result: Result<(), StoreError>) {
        let Some((staging, took)) = self.disk.staged(cx.now, token) else { return };
        let (writes, jobs, at) = (&mut self.writes, &mut self.jobs, around!(self, cx));
        match staging {
            Staging::Stage(key) => writes.on_staged(at, (key, took), result),
            Staging::CopyUp(key) => writes.on_copied_up(at, key, result),
            Staging::Mend { key, told } => repair::on_mended(writes, jobs, at, (key, told), (took, result)),
            Staging::Merge(key) => jobs.on_merged(writes, at, key, result),
            Staging::Fragment(told) => self.fragments.on_put(at.cx, at.disk, (told, took), result),
        }
    }

    fn on_found(
        &mut self,
        cx: &mut Context<'_>,
        token: Token,
        (looking, took): (Looking, Duration),
        found: Result<Found, StoreError>,
    ) {
        let (writes, jobs, at) = (&mut self.writes, &mut self.jobs, around!(self, cx));
        let blocks = |found: Result<Found, StoreError>| found.map(|found| found.blocks);
        match looking {
            Looking::Check { key, copy_ups } => {
                writes.on_checked(at, token, (key, copy_ups), (took, found));
            }
            Looking::Read { mut request, leased, begun, undecided } => {
                request.stay.at_disk(took);
                let seen = (undecided.as_deref(), writes.undecided());
                at.reads.on_done(at.cx, &request, (leased, begun), seen, at.disk, blocks(found));
            }
            Looking::Fate { asker, write, width } => {
                writes.on_fate(at, asker, (write, width), blocks(found));
            }
            Looking::Repair { key, request } => {
                repair::on_checked(writes, jobs, at, (key, *request), (took, found));
            }
            Looking::Own { job } => jobs.on_blocks(job, blocks(found)),
            Looking::Merge(request) => jobs.on_merge_found(writes, at, request, found),
            Looking::Fragment(told) => self.fragments.on_found(at.cx, told, took, blocks(found)),
        }
    }

    fn on_noted(&mut self, cx: &mut Context<'_>, token: Token, durable: bool) {
        let noting = self.disk.noted(cx.now, token);
        let (writes, jobs, at) = (&mut self.writes, &mut self.jobs, around!(self, cx));
        match noting {
            Noting::Seal { asker } if durable => writes.on_sealed(at.cx, asker),
            // Whoever asks asks again; a seal that stays is one too many, which refuses what is earlier than the floor.
            Noting::Seal { .. } | Noting::SealDropped => {}
            Noting::Horizon { job, latest, completions } => {
                jobs.on_horizon(writes, at, (job, latest), completions, durable);
            }
            Noting::Remember { job, completions } => jobs.on_remembered(writes, job, completions, durable),
            Noting::Settle { job } => jobs.on_durable(job, durable),
        }
    }

    // ---- turns ----

    /// A request comes: it begins, or waits for its turn.
    fn arrive(&mut self, cx: &mut Context<'_>, mut arrival: Arrival) {
        self.look_at_room(cx);
        if self.seat.is_timed(arrival.service().stream)
            && let Some(stay) = arrival.stay_mut()
        {
            stay.count();
        }
        if !self.wants_turn(&arrival) || self.seat.admits(cx.now, self.at_disk(), &arrival) {
            return self.begin(cx, arrival);
        }
        if let Arrival::Read(read) = &arrival
            && self.reads.was_claimed(read)
        {
            // Whoever claimed it answers.
            self.seat.turn_away(cx.now, &arrival, Unserved::ByAnother);
            return cx.counters.count(Counter::ClaimOvertookItsRead);
        }
        let waited = match &arrival {
            _ if self.seat.lacks_room(&arrival) => Counter::ContentWaitedForRoom,
            Arrival::Destage { .. } => Counter::ContentWaitedForItsTurnToBeDestaged,
            Arrival::Examine { .. } | Arrival::Merge(_) => Counter::MaintenanceWaitedForItsTurn,
            Arrival::Read(_) | Arrival::Prepare { .. } | Arrival::Repair(_) | Arrival::Fragment(_) => {
                Counter::RequestWaitedForItsTurn
            }
        };
        match self.seat.enter(cx.now, arrival) {
            Entered::Waits => cx.counters.count(waited),
            Entered::Repeats(_) => cx.counters.count(Counter::RepeatOfARequestThatWaits),
            Entered::Full(arrival) => {
                if !arrivals::refuse(cx, &mut self.jobs, &arrival) {
                    self.begin(cx, arrival);
                }
            }
        }
    }

    /// There is room for what the disk takes, but for what is on its way there.
    fn look_at_room(&mut self, cx: &Context<'_>) {
        let on_its_way = (self.writes.undecided().checking_bytes() + self.disk.repairing_bytes()) as u64;
        let told = self.disk.room().map_or(u64::MAX, |room| room.saturating_sub(on_its_way));
        self.seat.set_room(cx.groups.rules().room(told));
    }

    /// Whether a request has to wait for its turn. A prepare that was here before had its turn: whoever asks for it again waits for
    /// it in doubt.
    fn wants_turn(&self, arrival: &Arrival) -> bool {
        match arrival {
            Arrival::Prepare { prepare, .. } => !self.writes.knows(prepare),
            Arrival::Read(read) => read.content || read.stamps,
            Arrival::Repair(_)
            | Arrival::Fragment(_)
            | Arrival::Examine { .. }
            | Arrival::Merge(_)
            | Arrival::Destage { .. } => true,
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>, arrival: Arrival) {
        if self.at_disk() == 0 {
            self.seat.on_progress(cx.now);
        }
        match arrival {
            Arrival::Read(read) => {
                self.writes.note_read(read.sight);
                self.reads.on_read(cx, &mut self.disk, self.writes.undecided(), read);
            }
            Arrival::Prepare { prepare, floor } => self.writes.on_prepare(around!(self, cx), prepare, floor),
            Arrival::Repair(request) => {
                repair::begin(&mut self.writes, &mut self.jobs, around!(self, cx), request);
            }
            Arrival::Fragment(request) => self.fragments.begin(cx, &mut self.disk, request),
            Arrival::Examine { job, look } => self.jobs.examine(&self.writes, around!(self, cx), job, look),
            Arrival::Merge(merge) => self.jobs.merge(&mut self.writes, around!(self, cx), merge),
            Arrival::Destage { blocks } => self.disk.destage(cx, blocks),
        }
    }

    /// What has its turn begins. After each step, since any may have made a place free.
    pub fn take_turns(&mut self, cx: &mut Context<'_>) {
        self.look_at_room(cx);
        while let Some(arrival) = self.seat.next(cx.now, self.at_disk()) {
            self.begin(cx, arrival);
        }
        self.seat.observe(cx.now, self.at_disk());
    }

    /// What waits under a view that is over is told so.
    fn refuse_old(&mut self, cx: &mut Context<'_>, group: GroupId) {
        let is_old = |arrival: &Arrival| {
            arrival.view().is_some_and(|(of, view)| of == group && cx.groups.takes(group, view).is_err())
        };
        for arrival in self.seat.withdraw_where(cx.now, is_old) {
            self.begin(cx, arrival);
        }
    }

    /// The question of `from` is of no interest any more. Whether it had not begun.
    pub fn withdraw(&mut self, now: Time, from: NodeId, operation: u64) -> bool {
        self.seat.withdraw(now, &ArrivalId::Asked(from, operation), Unserved::Dropped).is_some()
            || self.reads.withdraw(from, operation)
    }

    /// Requests that the disk works for, or that it may claim.
    fn at_disk(&self) -> usize {
        self.disk.at_work() + self.reads.contested()
    }

    /// How many are before a request of `stream` that comes now.
    pub fn queued(&self, stream: StreamId) -> u32 {
        let at_disk = u32::try_from(self.at_disk()).unwrap_or(u32::MAX);
        at_disk.saturating_add(self.seat.queued(stream))
    }

    /// Who is to be told now that what it asked for waits.
    pub fn take_notices(&mut self, now: Time) -> Vec<Notice> {
        self.seat.take_notices(now, self.at_disk())
    }

    /// Lets requests take their turns otherwise, by this discipline. What waits begins at once.
    pub fn set_turns(&mut self, cx: &mut Context<'_>, discipline: Box<dyn Discipline>, turns: Turns) {
        let before = core::mem::take(&mut self.seat);
        let (seat, waited) = Seat::after(cx.now, before, discipline, turns);
        self.seat = seat;
        waited.into_iter().for_each(|arrival| self.begin(cx, arrival));
    }

    /// How many requests are at the disk at a time from now on.
    pub fn set_places(&mut self, places: Places) {
        self.seat.set_places(places);
    }

    /// Within what streams are to be served from now on.
    pub fn set_targets(&mut self, targets: &Targets) {
        self.seat.set_targets(targets);
    }

    /// A request of a stream was answered.
    pub fn on_answer(&mut self, now: Time, stream: StreamId, stay: &Stay) {
        self.seat.on_answer(now, stream, stay);
    }

    /// How targets were kept lately, by stream.
    pub fn targets_kept(&self) -> impl Iterator<Item = (StreamId, Kept)> + '_ {
        self.seat.targets_kept()
    }

    /// How many requests are at the disk at a time now, as targets are missed or kept.
    pub fn places_used(&self, now: Time) -> Places {
        Places(self.seat.places_used(now))
    }

    /// What streams were served here, and what waits of them.
    pub fn stream_uses(&self) -> impl Iterator<Item = StreamUse> + '_ {
        self.seat.uses()
    }

    /// What the disk can serve, in units of cost a second, as far as it was seen to; 0 as long as that is not known.
    pub fn capacity(&self) -> u64 {
        self.seat.capacity()
    }

    /// For how long content has waited for room so far, all in all.
    pub fn held(&self, now: Time) -> Duration {
        self.seat.held(now)
    }

    /// What streams are entitled to from now on.
    pub fn set_shares(&mut self, now: Time, shares: &Shares) {
        self.seat.set_shares(now, shares);
    }

    /// Requests that were not served here, with or without their turn, by stream, and of how many blocks: they are not charged.
    pub fn take_unserved(&mut self, now: Time) -> Vec<(StreamId, u32)> {
        let began = self.reads.take_unserved().into_iter().map(|(stream, blocks, why)| {
            self.seat.refund(now, stream, blocks, why);
            (stream, blocks)
        });
        let mut unserved: Vec<_> = began.collect();
        unserved.extend(self.seat.take_given_up());
        unserved
    }

    /// A stream was served elsewhere.
    pub fn on_elsewhere(&mut self, now: Time, service: Service) {
        self.seat.elsewhere(now, service.stream, service.delay);
    }

    // ---- time ----

    /// When the first waiting read loses its patience, or one that was left to another member is due here.
    pub fn deadline(&self) -> Option<Time> {
        self.reads.deadline().into_iter().chain(self.seat.deadline(self.at_disk())).min()
    }

    /// Answers the reads that waited long enough.
    pub fn wake(&mut self, cx: &mut Context<'_>) {
        self.reads.wake(cx, self.writes.undecided());
        self.settle_contests(cx);
    }

    // ---- what is known ----

    /// Writes in doubt since before `before`.
    pub fn doubtful(&self, before: Time) -> impl Iterator<Item = WriteId> + '_ {
        let long = move |pending: &&Pending| pending.staged_since().is_some_and(|since| since <= before);
        self.writes.undecided().iter().filter(long).map(|pending| pending.prepare.write)
    }

    /// Whether a write is under way here, and not decided.
    pub fn is_undecided(&self, write: &WriteId) -> bool {
        self.writes.undecided().get(&WriteKey::of(write)).is_some()
    }

    /// Writes that are staged and not decided.
    pub fn in_doubt(&self) -> usize {
        self.writes.undecided().iter().filter(|pending| pending.is_staged()).count()
    }

    /// Writes and reads that clients wait for here.
    pub fn load(&self) -> usize {
        let own = [StreamId::MAINTENANCE, StreamId::DESTAGE].map(|stream| self.seat.queued(stream) as usize);
        self.writes.load() + self.reads.held() + self.seat.len() - own.iter().sum::<usize>()
    }

    /// Asserts what must hold; `deep` looks at every pair of writes.
    pub fn check_invariants(&self, deep: bool) {
        self.seat.check();
        self.reads.check(deep);
        self.writes.check_invariants(deep);
    }
}
