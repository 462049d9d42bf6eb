//! Writes in doubt: prepared here, and not decided. Put together from an *order* ([`Waiting`]: which write has its turn) and
//! an *atomicity* ([`two_phase`]: what is checked before a write is staged, and [`Fates`]: what is refused for ever).
//!
//! Reading order: [`Writes::on_prepare`], [`Writes::on_checked`], [`Writes::on_staged`], [`Writes::on_decide`], then what a
//! change of view means ([`Writes::fence`], [`Writes::activate`]), and what is told of a write's fate ([`Writes::on_query`]).

mod retries;

use super::answers::{answer, answer_again, answer_prepared, old_content};
use super::branches::{Found, Look, Wanted};
use super::context::{Asker, Context};
use super::copy_ups::{self, CopyUps, Turn as CopyUpTurn};
use super::disk::{Disk, Looking, Staging};
use super::fates::{Fates, FoundFate, Verdict};
use super::outcomes::Outcomes;
use super::reads::Reads;
use super::room::KeptRoom;
use crate::netraid::atomicity::two_phase::{self, member::refusal};
use crate::netraid::order::rule;
use crate::netraid::order::waiting::{QUEUE_MAX, Turn, Waiting, assert_one_a_block};
use crate::netraid::pending::{OldContent, Pending, PendingTable, Prepare, State, WriteKey};
use base::{GroupId, NodeId, Stamp, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use wire::disk::{Blocks, Command, Recovered, StoreError, Token};
use wire::{Change, Completion, Decision, Fate, GroupView, PrepareOutcome, Scope, Sight, Span, WriteId};

/// What a step on the writes works with beside them: the disk, and the reads that wait for decisions.
pub(super) struct Around<'a, 'c> {
    pub(super) cx: &'a mut Context<'c>,
    pub(super) disk: &'a mut Disk,
    pub(super) reads: &'a mut Reads,
}

/// The writes of a disk that are not decided, and what is known of those that were.
pub(super) struct Writes {
    undecided: PendingTable,
    waiting: Waiting,
    /// What is kept for those for which there was none.
    room: KeptRoom,
    /// What is told of them, and which are refused for ever.
    fates: Fates,
    outcomes: Outcomes,
    copy_ups: CopyUps,
    /// Whether reads come that see what is not decided: then the content of staged writes is kept for them, too.
    keeps_content: bool,
}

impl Writes {
    /// What a store found again at `now`.
    pub(super) fn recover(recovered: &Recovered, now: Time) -> Writes {
        let mut undecided = PendingTable::default();
        for staged in &recovered.staged {
            let (prepare, state) = (Prepare::recovered(staged), State::recovered(now));
            undecided.insert(Pending { prepare, state });
        }
        Writes {
            undecided,
            waiting: Waiting::default(),
            room: KeptRoom::default(),
            fates: Fates::recover(&recovered.notes),
            outcomes: Outcomes::recover(recovered),
            copy_ups: CopyUps::default(),
            keeps_content: false,
        }
    }

    /// A read comes. From the first one on that sees what is staged, content is kept for such: no write pays for them where there
    /// are none.
    pub(super) fn note_read(&mut self, sight: Sight) {
        self.keeps_content |= sight == Sight::Staged;
    }

    /// Drops writes that were found staged although they are sealed: a crash came between the seal and the drop.
    pub(super) fn drop_sealed(&mut self, at: &mut Around<'_, '_>) {
        for key in self.keys_where(|pending| self.fates.is_sealed(pending.prepare.write.stamp)) {
            self.abort(at, key);
        }
    }

    // ---- phase one ----

    /// A gateway asks to prepare a write.
    pub(super) fn on_prepare(&mut self, at: &mut Around<'_, '_>, prepare: Prepare, floor: u64) {
        let cx = &mut *at.cx;
        if let Err(view) = cx.groups.takes(prepare.write.group, prepare.view) {
            if view.is_some() {
                cx.counters.count(Counter::RequestUnderAnOldViewRefused);
            }
            return answer(cx, &prepare, PrepareOutcome::Stale { view });
        }
        if let Some(view) = cx.groups.active(prepare.write.group)
            && !view.lineage.is_head(prepare.write.span.volume)
        {
            // A gateway that knows the view knows the heads: it has to look at it once more.
            cx.counters.count(Counter::WriteToAFrozenBranchRefused);
            let view = Some(view.clone());
            return answer(cx, &prepare, PrepareOutcome::Stale { view });
        }
        if !two_phase::member::is_well_formed(&prepare) {
            cx.counters.count(Counter::MalformedPrepareRefused);
            return answer(cx, &prepare, PrepareOutcome::Failed);
        }
        let record = prepare.write.link.as_ref().map(|link| link.stamp);
        if cx.is_far_ahead(prepare.write.stamp) || record.is_some_and(|record| cx.is_far_ahead(record)) {
            // A moment later it may be taken: the cluster's time goes on.
            return answer(cx, &prepare, PrepareOutcome::Busy);
        }
        self.outcomes.raise_floor(prepare.request.client, floor);
        self.admit(at, prepare);
    }

    fn admit(&mut self, at: &mut Around<'_, '_>, prepare: Prepare) {
        let Some(prepare) = self.answer_retry(at, prepare) else { return };
        self.commit_implied(at, &prepare);
        match self.waiting.turn(&self.undecided, &prepare) {
            Turn::Now => self.check(at, prepare),
            Turn::Refused(newest) => {
                at.cx.counters.count(rule(prepare.order).refusal());
                answer(at.cx, &prepare, PrepareOutcome::Late { newest });
            }
            // It lacks a place to wait, not room: others need not make way for it.
            Turn::Full => answer(at.cx, &prepare, PrepareOutcome::Busy),
            Turn::Wait => {
                at.cx.counters.count(Counter::WriteWaitedBehindAnUndecidedOne);
                self.waiting.enqueue(prepare);
            }
        }
    }

    /// A parity delta that follows on a write says that this write is decided: its data brick took it for committed.
    fn commit_implied(&mut self, at: &mut Around<'_, '_>, prepare: &Prepare) {
        let Change::Xor { previous, .. } = &prepare.change else { return };
        for key in Waiting::implied(&self.undecided, prepare, previous) {
            at.cx.counters.count(Counter::CommitImpliedByTheNextDelta);
            self.commit(at, key);
        }
    }

    /// Takes the place, and looks up what is there.
    fn check(&mut self, at: &mut Around<'_, '_>, prepare: Prepare) {
        if self.undecided.len() >= QUEUE_MAX {
            return answer(at.cx, &prepare, PrepareOutcome::Busy);
        }
        let (key, group, volume) = (prepare.key(), prepare.write.group, prepare.write.span.volume);
        // A delta on an inherited block needs its content, to copy it up.
        let inherits = prepare.change.keeps_other_stamps() && at.cx.groups.parent_of(group, volume).is_some();
        let look = look_of(&prepare, Wanted::with(prepare.want_delta || inherits));
        let looking = Looking::Check { key, copy_ups: self.copy_ups.made() };
        let token = at.disk.look(at.cx, look, looking);
        self.undecided.insert(Pending { prepare, state: State::Checking { token } });
    }

    /// What was looked up for a write when so many copies up were made.
    pub(super) fn on_checked(
        &mut self,
        at: &mut Around<'_, '_>,
        token: Token,
        (key, copy_ups): (WriteKey, u64),
        (took, result): (Duration, Result<Found, StoreError>),
    ) {
        let Some(pending) = self.undecided.get_mut(&key) else { return };
        pending.prepare.stay.at_disk(took);
        match &mut pending.state {
            State::Checking { token: counts } if *counts == token => {}
            State::Staged { old, looked_up: Some(counts), .. } if *counts == token => {
                return answer_again(at.cx, &pending.prepare, old, result.map(|found| found.blocks));
            }
            // Given up meanwhile, or asked again.
            _ => return,
        }
        let cx = &mut *at.cx;
        let prepare = &pending.prepare;
        let view = cx.groups.active(prepare.write.group);
        let catches_up = view.is_some_and(|view| view.is_joining(cx.groups.me()));
        let verdict = match &result {
            Err(error) => Err(refusal(*error)),
            Ok(found) => {
                let by_stamps = two_phase::member::check(prepare, &found.blocks, catches_up);
                cx.groups.rules().verdict(by_stamps)
            }
        };
        if let Err(outcome) = verdict {
            return self.refuse_checked(at, key, outcome);
        }
        let found = result.expect("checked");
        if prepare.change.keeps_other_stamps() && !found.inherited.is_empty() {
            // Who catches up may inherit what was written over meanwhile, by other units than this one. It would be copied up with it, and nobody
            // look at it again.
            return match catches_up {
                true => self.refuse_checked(at, key, PrepareOutcome::Unreadable),
                false => self.copy_up(at, key, copy_ups, &found),
            };
        }
        let old = prepare.want_delta.then(|| old_content(prepare, found.blocks));
        self.stage(at, key, old);
    }

    /// The disk did not take something of a write. If it lacks room, room is kept for the write before those behind it
    /// try; whatever else the disk is busy with, such as giving back the write's blocks, is no reason for others to make way.
    fn refuse_for(&mut self, at: &mut Around<'_, '_>, key: WriteKey, error: StoreError) {
        if let (StoreError::NoRoomYet, Some(pending)) = (error, self.undecided.get(&key)) {
            self.room.turn_away(&pending.prepare.write, at.cx.now);
        }
        self.refuse(at, key, refusal(error));
    }

    /// A write that has its place and is not staged loses it. What comes again keeps its turn.
    fn refuse(&mut self, at: &mut Around<'_, '_>, key: WriteKey, outcome: PrepareOutcome) {
        if !matches!(outcome, PrepareOutcome::Busy) {
            self.room.end(key.stamp);
        }
        let pending = self.remove(at, key);
        answer(at.cx, &pending.prepare, outcome);
    }

    fn refuse_checked(&mut self, at: &mut Around<'_, '_>, key: WriteKey, outcome: PrepareOutcome) {
        if matches!(outcome, PrepareOutcome::Late { .. }) {
            self.fates.note_late(key.stamp);
        }
        if self.undecided.get(&key).is_some_and(Pending::is_checking) {
            self.refuse(at, key, outcome);
        }
    }

    fn stage(&mut self, at: &mut Around<'_, '_>, key: WriteKey, old: Option<OldContent>) {
        let pending = self.undecided.begin_staging(&key, old).expect("checked");
        let staged = pending.prepare.staged();
        let payload = match self.keeps_content {
            true => pending.prepare.payload.clone(),
            false => core::mem::take(&mut pending.prepare.payload),
        };
        let kept_bytes = self.room.kept_before(key.stamp, at.cx.now);
        self.room.end(key.stamp);
        let command = |token| Command::Stage { token, staged, payload, kept_bytes };
        at.disk.stage(at.cx, Staging::Stage(key), command);
    }

    /// A write is on stable storage, or not.
    pub(super) fn on_staged(
        &mut self,
        at: &mut Around<'_, '_>,
        (key, took): (WriteKey, Duration),
        result: Result<(), StoreError>,
    ) {
        let pending = self.undecided.get_mut(&key).expect("it has its place until it is staged");
        pending.prepare.stay.at_disk(took);
        let State::Staging { doomed, old } = &mut pending.state else {
            panic!("a write is staged once: {:?}", pending.prepare.write)
        };
        if let Err(error) = result {
            return self.refuse_for(at, key, error);
        }
        let (doomed, old) = (*doomed, old.take());
        if !doomed {
            answer_prepared(at.cx, &pending.prepare, old.as_ref());
            pending.prepare.stay.answered();
        }
        pending.state = State::Staged { since: at.cx.now, old, looked_up: None };
        if doomed {
            self.abort(at, key);
        }
    }

    // ---- inherited blocks that a delta changes ----

    /// A delta met inherited blocks: they are copied up, then it is checked again.
    fn copy_up(&mut self, at: &mut Around<'_, '_>, key: WriteKey, made_before: u64, found: &Found) {
        let pending = self.undecided.get(&key).expect("checked by the caller");
        let (span, width) = (pending.prepare.write.span, pending.prepare.change.width());
        let overlaps = |other: &WriteKey| {
            self.undecided.get(other).is_some_and(|other| other.prepare.write.span.overlaps(&span))
        };
        match self.copy_ups.turn(key, made_before, overlaps) {
            CopyUpTurn::Behind => {}
            CopyUpTurn::LookAgain => self.look_again(at, key),
            CopyUpTurn::Begin => {
                at.cx.counters.count(Counter::InheritedBlockCopiedUp);
                // Only what is inherited: blocks that are here may be changed meanwhile by deltas of other units.
                let blocks = found.inherited.iter().map(|(block, _)| *block).collect();
                let runs = copy_ups::runs(span, width, found, blocks);
                self.copy_ups.begin(key, runs.len());
                for run in runs {
                    at.disk.stage(at.cx, Staging::CopyUp(key), |token| run.mend(token));
                }
            }
        }
    }

    /// Blocks were copied up, or not.
    pub(super) fn on_copied_up(
        &mut self,
        at: &mut Around<'_, '_>,
        key: WriteKey,
        result: Result<(), StoreError>,
    ) {
        let Some(ended) = self.copy_ups.on_run(key, result) else { return };
        match ended.result {
            Ok(()) => self.look_again(at, key),
            Err(error) if self.undecided.get(&key).is_some_and(Pending::is_checking) => {
                self.refuse_for(at, key, error);
            }
            Err(_) => {}
        }
        ended.behind.into_iter().for_each(|key| self.look_again(at, key));
    }

    fn look_again(&mut self, at: &mut Around<'_, '_>, key: WriteKey) {
        let Some(pending) = self.undecided.get_mut(&key) else { return };
        let State::Checking { token } = &mut pending.state else { return };
        let looking = Looking::Check { key, copy_ups: self.copy_ups.made() };
        *token = at.disk.look(at.cx, look_of(&pending.prepare, Wanted::Content), looking);
    }

    // ---- phase two ----

    /// A write was decided, or given up.
    pub(super) fn on_decide(&mut self, at: &mut Around<'_, '_>, decision: &Decision, commit: bool) {
        let key = WriteKey::from(decision);
        let Some(pending) = self.undecided.get(&key) else {
            if !commit {
                self.waiting.take(&key);
                self.room.end(key.stamp);
            }
            return;
        };
        match commit {
            true if pending.is_staged() => self.commit(at, key),
            true => at.cx.counters.count(Counter::CommitOfAWriteThatIsNotStagedIgnored),
            // What a view change has listed as in doubt stays so until the view begins.
            false if at.cx.groups.is_fenced(pending.prepare.write.group) => {
                at.cx.counters.count(Counter::AbortIgnoredUnderAFence);
            }
            false => self.abort(at, key),
        }
    }

    fn commit(&mut self, at: &mut Around<'_, '_>, key: WriteKey) {
        let pending = self.undecided.remove(&key).expect("checked by the caller");
        at.cx.store(Command::Apply { stamp: key.stamp });
        let Prepare { request, part, .. } = pending.prepare;
        self.outcomes.note(Completion { request, part, stamp: key.stamp });
        self.outcomes.refresh(at.cx);
        self.release(at, pending.prepare.write.span);
    }

    fn abort(&mut self, at: &mut Around<'_, '_>, key: WriteKey) {
        self.room.end(key.stamp);
        let pending = self.undecided.get_mut(&key).expect("checked by the caller");
        match &mut pending.state {
            State::Staging { doomed, .. } => *doomed = true,
            State::Mending => {}
            State::Checking { .. } => drop(self.remove(at, key)),
            State::Staged { .. } => {
                at.cx.store(Command::Drop { stamp: key.stamp });
                self.remove(at, key);
            }
        }
    }

    fn remove(&mut self, at: &mut Around<'_, '_>, key: WriteKey) -> Pending {
        let pending = self.undecided.remove(&key).expect("checked by the caller");
        self.release(at, pending.prepare.write.span);
        pending
    }

    /// A place is free: those that waited for it try again, the earliest stamp first, then the reads.
    fn release(&mut self, at: &mut Around<'_, '_>, span: Span) {
        for key in self.waiting.behind(span) {
            let Some(prepare) = self.waiting.take(&key) else { continue };
            match at.cx.groups.takes(prepare.write.group, prepare.view) {
                Ok(()) => self.admit(at, prepare),
                Err(view) => answer(at.cx, &prepare, PrepareOutcome::Stale { view }),
            }
        }
        at.reads.release(at.cx, at.disk, &self.undecided, span);
    }

    // ---- places of repairs ----

    /// Takes the place: writes that come meanwhile wait behind a place-holder, as its stamp is earlier than every real one.
    pub(super) fn hold(&mut self, disk: &mut Disk, group: GroupId, span: Span) -> WriteKey {
        let prepare =
            Prepare::of(WriteId { group, span, stamp: Stamp(disk.draw()), scope: Scope::Row, link: None });
        let key = prepare.key();
        self.undecided.insert(Pending { prepare, state: State::Mending });
        key
    }

    /// The repair is over.
    pub(super) fn end_hold(&mut self, at: &mut Around<'_, '_>, key: WriteKey) {
        self.remove(at, key);
    }

    // ---- views ----

    /// A later view of `group` was promised: nothing more is prepared or read under the old one. Gives the writes
    /// in doubt.
    pub(super) fn fence(&mut self, at: &mut Around<'_, '_>, group: GroupId) -> Vec<WriteId> {
        let of_group = self.keys_where(|pending| pending.prepare.write.group == group);
        let is_staged = |pending: &Pending| pending.is_staged();
        let (staged, others): (Vec<WriteKey>, Vec<WriteKey>) =
            of_group.into_iter().partition(|key| self.undecided.get(key).is_some_and(is_staged));
        for key in others {
            if !self.undecided.get(&key).expect("nothing else ends it").is_mending() {
                self.abort(at, key);
            }
        }
        self.refuse_waiting(at, group);
        staged.iter().filter_map(|key| self.undecided.get(key)).map(|pending| pending.prepare.write).collect()
    }

    /// A view begins: every write of the group that it does not commit is dropped.
    pub(super) fn activate(&mut self, at: &mut Around<'_, '_>, view: &GroupView, commits: &[Decision]) {
        let of_view = |pending: &Pending| pending.prepare.write.group == view.group && !pending.is_mending();
        for key in self.keys_where(of_view) {
            let Some(pending) = self.undecided.get(&key) else { continue };
            let commit = commits.contains(&Decision::from(&pending.prepare.write));
            if commit && pending.is_staged() {
                at.cx.counters.count(Counter::WriteDecidedByAViewChange);
                self.commit(at, key);
            } else {
                at.cx.counters.count(Counter::WriteDroppedByAViewChange);
                self.abort(at, key);
            }
        }
        self.refuse_waiting(at, view.group);
    }

    /// Writes of the group that wait are told so. They begin anew under the next view with later stamps: nothing waits
    /// for the stamps that they had.
    fn refuse_waiting(&mut self, at: &mut Around<'_, '_>, group: GroupId) {
        self.room.end_group(group);
        for prepare in self.waiting.take_group(group) {
            let view = at.cx.groups.takes(group, prepare.view).err().flatten();
            answer(at.cx, &prepare, PrepareOutcome::Stale { view });
        }
        at.reads.refuse(at.cx, group);
    }

    /// The volume is deleted: its writes end without an answer.
    pub(super) fn discard(&mut self, at: &mut Around<'_, '_>, volume: VolumeId) {
        self.waiting.forget_volume(volume);
        for key in self.keys_where(|pending| pending.prepare.write.span.volume == volume) {
            self.abort(at, key);
        }
        at.cx.store(Command::Discard { volume, stretch: None });
    }

    /// A node cannot be reached: its writes that wait are forgotten.
    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.waiting.forget_node(node);
    }

    // ---- fates ----

    /// What is the fate of `write` here? If it is not here, it never will be, unless the asker only looks.
    pub(super) fn on_query(&mut self, at: &mut Around<'_, '_>, asker: Asker, write: WriteId, width: u8) {
        let key = WriteKey::of(&write);
        if self.undecided.get(&key).is_some_and(Pending::is_staged) {
            return self.fates.tell(at.cx, asker, Fate::Prepared);
        }
        // A write that waits its turn is not refused for being asked about: those before it end, then it is staged, and
        // whoever asks asks again. Otherwise impatient readers of a busy block could keep its writers out for ever.
        if self.waiting.has(&key) && !matches!(asker, Asker::Looker(..)) {
            at.cx.counters.count(Counter::FateOfAWaitingWriteAsked);
            return;
        }
        at.disk.look_here(at.cx, (write.span, width), false, Looking::Fate { asker, write, width });
    }

    /// What the blocks of a write show whose fate was asked for.
    pub(super) fn on_fate(
        &mut self,
        at: &mut Around<'_, '_>,
        asker: Asker,
        (write, width): (WriteId, u8),
        result: Result<Blocks, StoreError>,
    ) {
        let key = WriteKey::of(&write);
        let is_staged = self.undecided.get(&key).is_some_and(Pending::is_staged);
        match self.fates.verdict(&self.outcomes, is_staged, (write, width), result) {
            Verdict::Tell(fate) => self.fates.tell(at.cx, asker, fate),
            Verdict::Seal if matches!(asker, Asker::Looker(..)) => {
                self.fates.tell(at.cx, asker, Fate::Absent)
            }
            // No honest writer drew it. As a seal it would become the floor below which the disk refuses all writes.
            Verdict::Seal if at.cx.is_far_ahead(write.stamp) => {}
            Verdict::Seal => self.seal(at, asker, key),
            Verdict::Later => {}
        }
    }

    fn seal(&mut self, at: &mut Around<'_, '_>, asker: Asker, key: WriteKey) {
        at.cx.counters.count(Counter::WriteRefusedForEver);
        let note = self.fates.seal(key.stamp);
        self.room.end(key.stamp);
        if let Some(prepare) = self.waiting.take(&key) {
            answer(at.cx, &prepare, PrepareOutcome::Late { newest: key.stamp });
        }
        if let Some(pending) = self.undecided.get(&key) {
            answer(at.cx, &pending.prepare, PrepareOutcome::Late { newest: key.stamp });
            self.abort(at, key);
        }
        // The floor must not rise above a write that is staged and may be acknowledged.
        let staged = self.undecided.iter().filter(|pending| pending.is_staged());
        let bound = staged.map(|pending| pending.prepare.write.stamp).min().unwrap_or(key.stamp);
        self.fates.note_seal(at.cx, at.disk, (note, asker), bound);
    }

    /// The seal of a write is durable: it is refused for ever.
    pub(super) fn on_sealed(&mut self, cx: &mut Context<'_>, asker: Asker) {
        self.fates.tell(cx, asker, Fate::Refused);
    }

    /// The fates found since the last call, for the making of views.
    pub(super) fn take_fates(&mut self) -> Vec<FoundFate> {
        self.fates.take()
    }

    // ---- what is known ----

    /// The writes that are not decided.
    pub(super) fn undecided(&self) -> &PendingTable {
        &self.undecided
    }

    pub(super) fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// The same, for what took effect elsewhere.
    pub(super) fn outcomes_mut(&mut self) -> &mut Outcomes {
        &mut self.outcomes
    }

    /// Writes that clients wait for here.
    pub(super) fn load(&self) -> usize {
        self.undecided.len() + self.waiting.len()
    }

    fn keys_where(&self, is_it: impl Fn(&Pending) -> bool) -> Vec<WriteKey> {
        let those = self.undecided.iter().filter(|pending| is_it(pending));
        those.map(|pending| pending.prepare.key()).collect()
    }

    /// Asserts what must hold; `deep` looks at every pair of writes.
    pub(super) fn check_invariants(&self, deep: bool) {
        assert!(self.waiting.len() <= QUEUE_MAX, "writes that wait are bounded");
        if deep {
            self.undecided.check();
            assert_one_a_block(&self.undecided);
            let sealed =
                self.undecided.iter().find(|p| p.is_staged() && self.fates.is_sealed(p.prepare.write.stamp));
            assert!(sealed.is_none(), "a sealed write is staged: {sealed:?}");
        }
    }
}

fn look_of(prepare: &Prepare, wanted: Wanted) -> Look {
    let WriteId { group, span, .. } = prepare.write;
    Look { group, span, width: prepare.change.width(), wanted }
}
