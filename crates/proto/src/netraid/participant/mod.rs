//! A brick's side of the family, for one disk: prepares writes, learns their decision, serves reads.
//!
//! What must hold here (`docs/protocol` argues why):
//! - A block has at most one undecided write (a parity block: one for each data unit). A later stamp waits behind it,
//!   an earlier one is refused: waits go from later to earlier stamps only, so they form no circle (wait-die).
//! - `Prepared` is said only when the write is on stable storage; nothing is forgotten afterwards but by a decision.
//! - A write that was refused by [`Message::Query`] is refused for ever (a durable *seal*), so that an abort is final.
//! - A read is served only from blocks without a write in doubt.
//!
//! Reading order: [`Participant::on_prepare`], [`Participant::on_store`], [`Participant::on_decide`],
//! [`Participant::on_read`], then [`contests`] (reads that other members were asked for too), [`settling`], [`repair`], [`views`], [`branches`], [`own`].

mod branches;
mod contests;
pub mod own;
mod reads;
mod repair;
mod settling;
mod views;

use super::completions::{Applied, Completions};
use super::pending::{Pending, PendingTable, Prepare, State, WriteKey};
use crate::brick::BrickEffect;
use crate::counters::Counters;
use crate::distribute::claim::estimate::Calibration;
use crate::view::Groups;
use base::{BrickId, GroupId, HashMap, NodeId, Payload, Stamp, Time, ViewNumber, VolumeId};
use branches::{CopyUps, Descent, Found, LateDiscard, MergeUnderWay};
use contests::{Begun, Contests};
use core::time::Duration;
use own::Own;
use std::collections::{BTreeMap, BTreeSet};
use wire::disk::{Blocks, Command, Recovered, Reply, StoreError, Token};
use wire::{
    Change, Completion, Contest, Decision, Fate, GroupView, Message, Packet, PrepareOutcome, ReadOutcome,
    Span, Wire, WriteId,
};

/// How long a read waits for a decision before it says that it is in doubt.
pub const READ_PATIENCE: Duration = Duration::from_millis(200);
/// The most writes under way or waiting at a disk, and the most reads that wait.
const QUEUE_MAX: usize = 4096;
/// The most seals kept; older stamps than the oldest seal dropped are refused altogether. So many fit into what the
/// smallest journal has for notes, with room to spare: a seal that finds none would hold up whoever asked for it.
const SEALS_MAX: usize = 256;
/// The most late writes remembered.
const LATE_MAX: usize = 4096;
const SEAL_PREFIX: u8 = b's';
const FLOOR_KEY: &[u8] = b"f";
const HORIZON_KEY: &[u8] = b"h";
const SETTLED_KEY: &[u8] = b"b";

/// What a step may look at and do beside the participant itself.
pub struct Context<'a> {
    /// Now.
    pub now: Time,
    /// The brick's views.
    pub groups: &'a Groups,
    /// Whether the brick's lease is in force.
    pub leased: bool,
    /// Effects.
    pub fx: &'a mut Vec<BrickEffect>,
    /// Counts.
    pub counters: &'a mut Counters,
}

impl Context<'_> {
    fn send(&mut self, to: NodeId, message: Message, payload: Payload) {
        self.fx.push(BrickEffect::Send { to, packet: Packet { message, payload } });
    }
}

/// A read as it was asked.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Whom to answer.
    pub from: NodeId,
    /// Which question.
    pub operation: u64,
    /// The group.
    pub group: GroupId,
    /// The view under which it was asked.
    pub view: ViewNumber,
    /// The blocks.
    pub span: Span,
    /// Stamps a block.
    pub width: u8,
    /// Whether stamps are wanted.
    pub stamps: bool,
    /// Whether content is wanted.
    pub content: bool,
    /// Who else was asked the same.
    pub contest: Option<Contest>,
}

/// A repair as it was asked.
#[derive(Clone, Debug)]
pub struct RepairRequest {
    /// Whom to answer.
    pub asker: RepairAsker,
    /// The group.
    pub group: GroupId,
    /// The view under which it was asked.
    pub view: ViewNumber,
    /// The blocks.
    pub span: Span,
    /// Stamps a block.
    pub width: u8,
    /// The content's stamps.
    pub stamps: Vec<Stamp>,
    /// The content; none where the brick itself found that it is lost.
    pub content: Payload,
}

/// Who wants blocks repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAsker {
    /// A gateway or brick that has good content, and which question it is.
    Node(NodeId, u64),
    /// This brick, which found a block lost, and for which job.
    Lost(u64),
}

/// Who wants to know a write's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A gateway that settles it.
    Gateway(NodeId, u64),
    /// The making of a view: `(job, index)`.
    View(u64, usize),
}

#[derive(Debug)]
enum Lookup {
    /// With the count of copies up that were made before.
    Check(WriteKey, u64),
    CopyUp(WriteKey),
    Stage(WriteKey),
    Read {
        request: ReadRequest,
        leased: bool,
        begun: Begun,
    },
    Fate {
        asker: Asker,
        write: WriteId,
        width: u8,
    },
    Seal {
        asker: Asker,
    },
    RepairCheck {
        key: WriteKey,
        request: Box<RepairRequest>,
    },
    Repair {
        key: WriteKey,
        asker: RepairAsker,
        span: Span,
    },
    Allocation {
        from: NodeId,
        operation: u64,
        group: GroupId,
        span: Span,
        above: Option<Vec<bool>>,
    },
    Own {
        job: u64,
    },
    Merge {
        job: u64,
        key: WriteKey,
        span: Span,
        width: u8,
        from: VolumeId,
    },
    Merged {
        key: WriteKey,
    },
    Horizon {
        job: u64,
        latest: Stamp,
        completions: Vec<Completion>,
    },
    Remember {
        job: u64,
        completions: Vec<Completion>,
    },
    Ignore,
}

/// The participant of one disk.
pub struct Participant {
    disk: usize,
    pending: PendingTable,
    waiting: BTreeMap<WriteKey, Prepare>,
    held: BTreeMap<u64, (Time, ReadRequest)>,
    lookups: HashMap<Token, Lookup>,
    completions: Completions,
    applied: Applied,
    seals: BTreeSet<Stamp>,
    /// Writes refused for being earlier than what is here: a settler that asks gets that sealed.
    late: BTreeSet<Stamp>,
    floor: Stamp,
    serial: u64,
    fates: Vec<(u64, usize, Fate)>,
    descents: BTreeMap<Token, Descent>,
    copy_ups: CopyUps,
    merges: BTreeMap<WriteKey, MergeUnderWay>,
    late_discards: Vec<LateDiscard>,
    /// About writes up to this it has no say after a restart, unless it remembers them.
    noted_horizon: Stamp,
    own: Vec<(u64, Own)>,
    contests: Contests,
}

impl Participant {
    /// The participant of disk number `disk` of the brick `me`, of which that much is known, where `recovered` was found.
    pub fn new(
        me: BrickId,
        (disk, calibration): (usize, Calibration),
        recovered: &Recovered,
        now: Time,
    ) -> Participant {
        let mut participant = Participant {
            disk,
            pending: PendingTable::default(),
            waiting: BTreeMap::new(),
            held: BTreeMap::new(),
            lookups: HashMap::default(),
            completions: Completions::recover(&recovered.completions),
            applied: Applied::recover(recovered),
            seals: recovered.notes.iter().filter_map(|(key, _)| seal_of(key)).collect(),
            late: BTreeSet::new(),
            floor: Stamp::ZERO,
            serial: 0,
            fates: Vec::new(),
            descents: BTreeMap::new(),
            copy_ups: CopyUps::default(),
            merges: BTreeMap::new(),
            late_discards: Vec::new(),
            noted_horizon: Stamp::ZERO,
            own: Vec::new(),
            contests: Contests::new(me, calibration),
        };
        if let Some((_, value)) = recovered.notes.iter().find(|(key, _)| key == HORIZON_KEY) {
            participant.noted_horizon = Stamp::from_bytes(value).unwrap_or_default();
            participant.applied.raise_horizon(participant.noted_horizon);
        }
        if let Some((_, value)) = recovered.notes.iter().find(|(key, _)| key == FLOOR_KEY) {
            participant.floor = Stamp::from_bytes(value).unwrap_or_default();
        }
        for staged in &recovered.staged {
            participant.pending.insert(Pending {
                prepare: Prepare {
                    reply_to: None,
                    view: ViewNumber(0),
                    write: staged.write,
                    change: staged.change.clone(),
                    base: None,
                    want_delta: false,
                    request: staged.request,
                    part: staged.part,
                    payload: Payload::new(),
                },
                state: State::Staged,
                doomed: false,
                token: 0,
                since: now,
                answer: None,
            });
        }
        participant
    }

    /// Drops writes that were found staged although they are sealed (a crash came between the seal and the drop).
    /// Called once, before anything else.
    pub fn drop_sealed(&mut self, cx: &mut Context<'_>) {
        let sealed: Vec<WriteKey> = self
            .pending
            .iter()
            .map(|p| p.prepare.key())
            .filter(|key| self.seals.contains(&key.stamp))
            .collect();
        for key in sealed {
            self.finish_abort(cx, key);
        }
    }

    // ---- phase one ----

    /// A gateway asks to prepare a write.
    pub fn on_prepare(&mut self, cx: &mut Context<'_>, prepare: Prepare, floor: u64) {
        if let Err(view) = cx.groups.takes(prepare.write.group, prepare.view) {
            if view.is_some() {
                cx.counters.count("request under an old view refused");
            }
            return answer(cx, &prepare, PrepareOutcome::Stale { view });
        }
        if let Some(view) = cx.groups.active(prepare.write.group)
            && !view.lineage.is_head(prepare.write.span.volume)
        {
            // A gateway that knows the view knows the heads: it has to look at it once more.
            cx.counters.count("write to a frozen branch refused");
            let view = Some(view.clone());
            return answer(cx, &prepare, PrepareOutcome::Stale { view });
        }
        if !is_well_formed(&prepare) {
            cx.counters.count("malformed prepare refused");
            return answer(cx, &prepare, PrepareOutcome::Failed);
        }
        self.completions.raise_floor(prepare.request.client, floor);
        self.admit(cx, prepare);
    }

    fn admit(&mut self, cx: &mut Context<'_>, prepare: Prepare) {
        let key = prepare.key();
        if self.completions.contains(prepare.request, prepare.part)
            || self.completions.is_past(prepare.request)
        {
            cx.counters.count("duplicate request suppressed");
            return answer(cx, &prepare, PrepareOutcome::Duplicate);
        }
        if self.is_sealed(key.stamp) {
            return answer(cx, &prepare, PrepareOutcome::Late { newest: key.stamp.max(self.floor) });
        }
        if self.pending.get(&key).is_some() {
            return self.admit_again(cx, key, prepare);
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.reply_to = prepare.reply_to;
            return;
        }
        self.commit_implied(cx, &prepare);
        match self.conflict(&prepare) {
            Conflict::None => self.check(cx, prepare),
            Conflict::Later(newest) => {
                cx.counters.count("write refused by wait-die");
                answer(cx, &prepare, PrepareOutcome::Late { newest });
            }
            Conflict::Earlier if self.waiting.len() >= QUEUE_MAX => {
                answer(cx, &prepare, PrepareOutcome::Busy)
            }
            Conflict::Earlier => {
                cx.counters.count("write waited behind an undecided one");
                self.waiting.insert(key, prepare);
            }
        }
    }

    /// The same prepare came again: answer again if it was answered.
    fn admit_again(&mut self, cx: &mut Context<'_>, key: WriteKey, prepare: Prepare) {
        let pending = self.pending.get_mut(&key).expect("looked up by the caller");
        pending.prepare.reply_to = prepare.reply_to;
        if pending.state != State::Staged {
            return;
        }
        if !prepare.want_delta || pending.answer.is_some() {
            return answer_prepared(cx, pending);
        }
        // Found again after a restart: the delta is computed anew from the committed content, still the old one.
        pending.prepare.want_delta = true;
        pending.prepare.payload = prepare.payload;
        let (group, span, width) = (prepare.write.group, prepare.write.span, prepare.change.width());
        let lookup = Lookup::Check(key, self.copy_ups.made);
        let token = self.look(cx, group, span, width, true, lookup);
        self.pending.get_mut(&key).expect("still there").token = token;
    }

    /// A parity delta that follows on a write says that this write is decided: its data brick took it for committed.
    fn commit_implied(&mut self, cx: &mut Context<'_>, prepare: &Prepare) {
        let Change::Xor { previous, .. } = &prepare.change else { return };
        let implied: Vec<WriteKey> = self
            .pending
            .in_doubt(prepare.write.span)
            .filter(|p| p.prepare.lanes() & prepare.lanes() != 0 && previous.contains(&p.prepare.write.stamp))
            .map(|p| p.prepare.key())
            .collect();
        for key in implied {
            cx.counters.count("commit implied by the next delta");
            self.finish_commit(cx, key);
        }
    }

    fn conflict(&self, prepare: &Prepare) -> Conflict {
        let mut conflict = Conflict::None;
        for other in self.pending.overlapping(prepare.write.span) {
            let stamp = other.prepare.write.stamp;
            if other.prepare.lanes() & prepare.lanes() == 0 {
                continue;
            }
            conflict = match conflict {
                Conflict::Later(newest) if newest >= stamp => conflict,
                _ if stamp > prepare.write.stamp => Conflict::Later(stamp),
                Conflict::Later(_) => conflict,
                _ => Conflict::Earlier,
            };
        }
        conflict
    }

    /// Takes the place, and looks up what is there.
    fn check(&mut self, cx: &mut Context<'_>, prepare: Prepare) {
        if self.pending.len() >= QUEUE_MAX {
            return answer(cx, &prepare, PrepareOutcome::Busy);
        }
        let (key, group) = (prepare.key(), prepare.write.group);
        let (span, width) = (prepare.write.span, prepare.change.width());
        // A delta on an inherited block needs its content, to copy it up.
        let inherits =
            matches!(prepare.change, Change::Xor { .. }) && cx.groups.parent_of(group, span.volume).is_some();
        let content = prepare.want_delta || inherits;
        let token = self.look(cx, group, span, width, content, Lookup::Check(key, self.copy_ups.made));
        self.pending.insert(Pending {
            prepare,
            state: State::Checking,
            doomed: false,
            token,
            since: cx.now,
            answer: None,
        });
    }

    fn on_checked(
        &mut self,
        cx: &mut Context<'_>,
        token: Token,
        (key, made): (WriteKey, u64),
        result: Result<Found, StoreError>,
    ) {
        let Some(pending) = self.pending.get_mut(&key).filter(|pending| pending.token == token) else {
            return;
        };
        if pending.state == State::Staged {
            return answer_again(cx, pending, result.map(|found| found.blocks));
        }
        let catches_up =
            cx.groups.active(pending.prepare.write.group).is_some_and(|view| view.is_joining(cx.groups.me()));
        let verdict = match &result {
            Err(error) => Err(refusal(*error)),
            Ok(found) => {
                let by_stamps = verify(&pending.prepare, &found.blocks, catches_up);
                cx.groups.rules().verdict(by_stamps)
            }
        };
        if let Err(outcome) = verdict {
            return self.refuse_checked(cx, key, outcome);
        }
        let found = result.expect("verified");
        if matches!(pending.prepare.change, Change::Xor { .. }) && !found.inherited.is_empty() {
            return self.copy_up(cx, key, made, &found);
        }
        let blocks = found.blocks;
        if pending.prepare.want_delta {
            let delta = delta_of(&pending.prepare, &blocks);
            pending.answer = Some((blocks.stamps, delta));
        }
        self.stage(cx, key);
    }

    fn refuse_checked(&mut self, cx: &mut Context<'_>, key: WriteKey, outcome: PrepareOutcome) {
        if matches!(outcome, PrepareOutcome::Late { .. }) {
            self.note_late(key.stamp);
        }
        if self.pending.get(&key).is_some_and(|pending| pending.state == State::Checking) {
            let pending = self.remove(cx, key);
            answer(cx, &pending.prepare, outcome);
        }
    }

    fn stage(&mut self, cx: &mut Context<'_>, key: WriteKey) {
        let token = self.token();
        let pending = self.pending.get_mut(&key).expect("checked");
        pending.state = State::Staging;
        pending.token = token;
        let prepare = &mut pending.prepare;
        let staged = wire::disk::Staged {
            write: prepare.write,
            change: prepare.change.clone(),
            request: prepare.request,
            part: prepare.part,
        };
        let payload = core::mem::take(&mut prepare.payload);
        self.ask(cx, token, Lookup::Stage(key), Command::Stage { token, staged, payload });
    }

    fn on_staged(&mut self, cx: &mut Context<'_>, key: WriteKey, result: Result<(), StoreError>) {
        let Some(pending) = self.pending.get_mut(&key) else { return };
        if let Err(error) = result {
            let pending = self.remove(cx, key);
            return answer(cx, &pending.prepare, refusal(error));
        }
        pending.state = State::Staged;
        pending.since = cx.now;
        if pending.doomed {
            return self.finish_abort(cx, key);
        }
        answer_prepared(cx, pending);
    }

    // ---- phase two ----

    /// A write was decided, or given up.
    pub fn on_decide(&mut self, cx: &mut Context<'_>, decision: Decision, commit: bool) {
        let key = WriteKey::from(&decision);
        let Some(pending) = self.pending.get(&key) else {
            if !commit {
                self.waiting.remove(&key);
            }
            return;
        };
        match (commit, pending.state) {
            (true, State::Staged) => self.finish_commit(cx, key),
            (true, _) => cx.counters.count("commit of a write that is not staged ignored"),
            // What a view change has listed as in doubt stays so until the view begins.
            (false, _) if cx.groups.is_fenced(pending.prepare.write.group) => {
                cx.counters.count("abort ignored under a fence");
            }
            (false, _) => self.finish_abort(cx, key),
        }
    }

    fn finish_commit(&mut self, cx: &mut Context<'_>, key: WriteKey) {
        let pending = self.pending.remove(&key).expect("checked by the caller");
        self.store(cx, Command::Apply { stamp: key.stamp });
        self.applied.insert(key.stamp);
        let Prepare { request, part, .. } = pending.prepare;
        self.completions.insert(Completion { request, part, stamp: key.stamp });
        self.release(cx, pending.prepare.write.span);
    }

    fn finish_abort(&mut self, cx: &mut Context<'_>, key: WriteKey) {
        let pending = self.pending.get_mut(&key).expect("checked by the caller");
        match pending.state {
            State::Staging => pending.doomed = true,
            State::Mending => {}
            State::Checking => drop(self.remove(cx, key)),
            State::Staged => {
                self.store(cx, Command::Drop { stamp: key.stamp });
                self.remove(cx, key);
            }
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, key: WriteKey) -> Pending {
        let pending = self.pending.remove(&key).expect("checked by the caller");
        self.release(cx, pending.prepare.write.span);
        pending
    }

    /// A place is free: those that waited for it try again, the earliest stamp first.
    fn release(&mut self, cx: &mut Context<'_>, span: Span) {
        let mut free: Vec<WriteKey> = self
            .waiting
            .iter()
            .filter(|(_, prepare)| prepare.write.span.overlaps(&span))
            .map(|(key, _)| *key)
            .collect();
        free.sort_by_key(|key| key.stamp);
        for key in free {
            let Some(prepare) = self.waiting.remove(&key) else { continue };
            match cx.groups.takes(prepare.write.group, prepare.view) {
                Ok(()) => self.admit(cx, prepare),
                Err(view) => answer(cx, &prepare, PrepareOutcome::Stale { view }),
            }
        }
        let free: Vec<u64> =
            self.held.iter().filter(|(_, (_, read))| read.span.overlaps(&span)).map(|(id, _)| *id).collect();
        for id in free {
            let (since, read) = self.held.remove(&id).expect("listed");
            self.admit_read(cx, id, since, read);
        }
    }

    // ---- the store's answers ----

    /// The store answers.
    pub fn on_store(&mut self, cx: &mut Context<'_>, reply: Reply) {
        match reply {
            Reply::Staged { token, result } => match self.lookups.remove(&token) {
                Some(Lookup::Stage(key)) => self.on_staged(cx, key, result),
                Some(Lookup::Repair { key, asker, span }) => self.on_mended(cx, (key, asker, span), result),
                Some(Lookup::CopyUp(key)) => self.on_copied_up(cx, key, result),
                Some(Lookup::Merged { key }) => self.on_merged(cx, key, result),
                _ => {}
            },
            Reply::Read { token, result } => {
                if let Some(found) = self.descend(cx, token, result) {
                    self.on_blocks(cx, token, found);
                    self.discard_late(cx);
                }
            }
            Reply::Noted { token, result } => match self.lookups.remove(&token) {
                Some(Lookup::Seal { asker }) if result.is_ok() => self.tell(cx, asker, Fate::Refused),
                Some(Lookup::Horizon { job, latest, completions }) => {
                    self.on_horizon(cx, (job, latest, completions), result.is_ok());
                }
                Some(Lookup::Remember { job, completions }) => {
                    self.on_remembered(job, completions, result.is_ok())
                }
                _ => {}
            },
            Reply::Allocation { token, result } => self.on_allocated(cx, token, result),
            Reply::Inventory { token, result } => {
                if let Some(Lookup::Own { job }) = self.lookups.remove(&token) {
                    self.own.push((job, Own::Stretches(result)));
                }
            }
            Reply::Broken { .. } => cx.counters.count("disk failed"),
        }
    }

    fn on_blocks(&mut self, cx: &mut Context<'_>, token: Token, found: Result<Found, StoreError>) {
        let lookup = self.lookups.remove(&token);
        if let Some(Lookup::Check(key, made)) = lookup {
            return self.on_checked(cx, token, (key, made), found);
        }
        if let Some(Lookup::Merge { job, key, span, width, from }) = lookup {
            return self.on_merge_found(cx, (job, key, span), (width, from), found);
        }
        if let Some(Lookup::RepairCheck { key, request }) = lookup {
            return self.on_repair_checked(cx, key, *request, found);
        }
        let result = found.map(|found| found.blocks);
        match lookup {
            Some(Lookup::Read { request, leased, begun }) => {
                self.on_read_done(cx, &request, (leased, begun), result);
            }
            Some(Lookup::Fate { asker, write, width }) => self.on_fate(cx, asker, write, width, result),
            Some(Lookup::Own { job }) => self.own.push((job, Own::Blocks(result))),
            _ => {}
        }
    }

    /// What a branch does not hold its parent may.
    fn on_allocated(
        &mut self,
        cx: &mut Context<'_>,
        token: Token,
        result: Result<Vec<(u32, bool)>, StoreError>,
    ) {
        let Some(Lookup::Allocation { from, operation, group, span, above }) = self.lookups.remove(&token)
        else {
            return;
        };
        let parent = cx.groups.parent_of(group, span.volume);
        let runs = match result {
            Ok(runs) if above.is_some() || parent.is_some() => {
                let mut holds: Vec<bool> = runs
                    .iter()
                    .flat_map(|&(count, holds)| core::iter::repeat_n(holds, count as usize))
                    .collect();
                above.iter().flatten().zip(&mut holds).for_each(|(above, here)| *here |= above);
                if let Some(volume) = parent.filter(|_| holds.contains(&false)) {
                    let (token, span) = (self.token(), Span { volume, ..span });
                    let lookup = Lookup::Allocation { from, operation, group, span, above: Some(holds) };
                    return self.ask(cx, token, lookup, Command::Allocation { token, span });
                }
                Ok(holds.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0])).collect())
            }
            other => other.map_err(|_| None),
        };
        cx.send(from, Message::AllocationDone { operation, runs }, Payload::new());
    }

    // ---- time ----

    /// When the first waiting read loses its patience, or one that was left to another member is due here.
    pub fn deadline(&self) -> Option<Time> {
        let held = self.held.values().next().map(|(since, _)| *since + READ_PATIENCE);
        held.into_iter().chain(self.contests.deadline()).min()
    }

    /// Answers the reads that waited long enough.
    pub fn wake(&mut self, cx: &mut Context<'_>) {
        while let Some((&id, (since, _))) = self.held.first_key_value()
            && *since + READ_PATIENCE <= cx.now
        {
            let (_, read) = self.held.remove(&id).expect("first");
            let writes: Vec<WriteId> = self.pending.in_doubt(read.span).map(|p| p.prepare.write).collect();
            cx.counters.count("read in doubt");
            read_answer(cx, &read, ReadOutcome::InDoubt { writes }, Payload::new());
        }
        self.settle_contests(cx);
    }

    /// Writes in doubt since before `before`.
    pub fn doubtful(&self, before: Time) -> impl Iterator<Item = WriteId> + '_ {
        self.pending
            .iter()
            .filter(move |p| p.state == State::Staged && p.since <= before)
            .map(|p| p.prepare.write)
    }

    /// Writes that are staged and not decided.
    pub fn in_doubt(&self) -> usize {
        self.pending.iter().filter(|pending| pending.state == State::Staged).count()
    }

    /// Asserts what must hold; `deep` looks at every pair of writes.
    pub fn check_invariants(&self, deep: bool) {
        assert!(self.waiting.len() <= QUEUE_MAX && self.held.len() <= QUEUE_MAX, "queues are bounded");
        self.contests.check(deep);
        if !deep {
            return;
        }
        for pending in self.pending.iter() {
            let prepare = &pending.prepare;
            let rivals = self.pending.overlapping(prepare.write.span).filter(|other| {
                other.prepare.key() != prepare.key() && other.prepare.lanes() & prepare.lanes() != 0
            });
            assert_eq!(rivals.count(), 0, "one undecided write a block: {:?}", prepare.write);
            let sealed = self.seals.contains(&prepare.write.stamp) && pending.state == State::Staged;
            assert!(!sealed, "a sealed write is staged: {:?}", prepare.write);
        }
    }

    // ---- small things ----

    fn token(&mut self) -> Token {
        self.serial += 1;
        self.serial
    }

    fn ask(&mut self, cx: &mut Context<'_>, token: Token, lookup: Lookup, command: Command) {
        self.lookups.insert(token, lookup);
        self.store(cx, command);
    }

    fn store(&self, cx: &mut Context<'_>, command: Command) {
        cx.fx.push(BrickEffect::Store { disk: self.disk, command });
    }
}

enum Conflict {
    None,
    Earlier,
    Later(Stamp),
}

/// Whether a read is served here; if not, the view to tell the reader.
fn admits(cx: &Context<'_>, read: &ReadRequest) -> Result<(), Option<GroupView>> {
    // Its own questions, to catch up, ask for what is here.
    let admitted = match read.from == NodeId::Brick(cx.groups.me()) {
        true => cx.groups.takes(read.group, read.view),
        false => cx.groups.serves(read.group, read.view),
    };
    cx.groups.rules().serves_read(admitted, read.from)
}

fn seal_key(stamp: Stamp) -> Vec<u8> {
    let mut key = vec![SEAL_PREFIX];
    stamp.encode(&mut key);
    key
}

fn seal_of(key: &[u8]) -> Option<Stamp> {
    (key.first() == Some(&SEAL_PREFIX)).then(|| Stamp::from_bytes(&key[1..]).ok()).flatten()
}

/// Whether a stranger's request makes sense in itself.
fn is_well_formed(prepare: &Prepare) -> bool {
    let (span, change) = (prepare.write.span, &prepare.change);
    let content = match change {
        Change::Zero => prepare.payload.is_empty(),
        _ => prepare.payload.len() == span.bytes(),
    };
    let shape = match change {
        Change::Xor { index, width, previous } => index < width && previous.len() == span.count as usize,
        _ => true,
    };
    span.is_valid()
        && content
        && shape
        && (1..=32).contains(&change.width())
        && prepare.write.stamp.0 > u64::from(u32::MAX)
        && (prepare.base.is_none() || span.count == 1)
}

/// Whether the change fits what is there.
///
/// Who catches up and meets a change that builds on something later than what is here lacks that: it is unreadable here
/// until it is mended.
fn verify(prepare: &Prepare, blocks: &Blocks, catches_up: bool) -> Result<(), PrepareOutcome> {
    let stamp = prepare.write.stamp;
    let needs_content =
        prepare.want_delta || prepare.base.is_some() || matches!(prepare.change, Change::Xor { .. });
    if needs_content && !blocks.unreadable.is_empty() {
        return Err(PrepareOutcome::Unreadable);
    }
    if let Change::Xor { index, width, previous } = &prepare.change {
        let (index, width) = (usize::from(*index), usize::from(*width));
        let fits =
            previous.iter().enumerate().all(|(block, old)| blocks.stamps[block * width + index] == *old);
        let lacks = previous
            .iter()
            .enumerate()
            .any(|(block, old)| blocks.stamps[block * width + index] < *old && *old < stamp);
        return match fits && previous.iter().all(|old| *old < stamp) {
            true => Ok(()),
            false if catches_up && lacks => Err(PrepareOutcome::Unreadable),
            false => Err(PrepareOutcome::Changed),
        };
    }
    let newest = blocks.stamps.iter().copied().max().unwrap_or_default();
    if newest >= stamp {
        return Err(PrepareOutcome::Late { newest });
    }
    match prepare.base {
        Some(base) if catches_up && blocks.stamps.first() < Some(&base) => Err(PrepareOutcome::Unreadable),
        Some(base) if blocks.stamps.first() != Some(&base) => Err(PrepareOutcome::Changed),
        _ => Ok(()),
    }
}

fn delta_of(prepare: &Prepare, blocks: &Blocks) -> Payload {
    match prepare.change {
        Change::Zero => blocks.content.clone(),
        _ => prepare.payload.xor(&blocks.content),
    }
}

fn refusal(error: StoreError) -> PrepareOutcome {
    match error {
        StoreError::NoSpace => PrepareOutcome::NoSpace,
        StoreError::Busy | StoreError::Left => PrepareOutcome::Busy,
        StoreError::Failed => PrepareOutcome::Failed,
    }
}

fn answer(cx: &mut Context<'_>, prepare: &Prepare, outcome: PrepareOutcome) {
    if let Some((to, operation)) = prepare.reply_to {
        cx.send(to, Message::Prepared { operation, outcome }, Payload::new());
    }
}

/// A staged write was found again after a restart, and its delta computed anew from the old content.
fn answer_again(cx: &mut Context<'_>, pending: &mut Pending, result: Result<Blocks, StoreError>) {
    match result {
        Ok(blocks) if blocks.unreadable.is_empty() => {
            let delta = delta_of(&pending.prepare, &blocks);
            pending.answer = Some((blocks.stamps, delta));
            answer_prepared(cx, pending);
        }
        Ok(_) => answer(cx, &pending.prepare, PrepareOutcome::Unreadable),
        Err(error) => answer(cx, &pending.prepare, refusal(error)),
    }
}

fn answer_prepared(cx: &mut Context<'_>, pending: &Pending) {
    let Some((to, operation)) = pending.prepare.reply_to else { return };
    let (previous, delta) = pending.answer.clone().unwrap_or_default();
    cx.send(to, Message::Prepared { operation, outcome: PrepareOutcome::Prepared { previous } }, delta);
}

fn read_answer(cx: &mut Context<'_>, read: &ReadRequest, outcome: ReadOutcome, content: Payload) {
    cx.send(read.from, Message::ReadDone { operation: read.operation, outcome }, content);
}
