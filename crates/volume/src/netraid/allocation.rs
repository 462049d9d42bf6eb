//! Which blocks of a volume hold data: asked of the member that has them. Blocks whose member is away count as
//! holding data.

use super::answer::{Answer, FromAnswer};
use super::members::is_mirrored;
use super::operate::{Context, Operate, retry_delay};
use super::outcome::{NoChild, Progress};
use base::{GroupId, Payload, VolumeId};
use core::time::Duration;
use rules::layout::Piece;
use wire::{GroupView, Message, Span};

/// `(blocks, holds data)`, one after the other.
type Runs = Vec<(u32, bool)>;

/// Asks for one piece.
pub struct AllocationOperation {
    volume: VolumeId,
    group: GroupId,
    piece: Piece,
    attempt: u32,
}

impl AllocationOperation {
    /// Of `piece`, which lies on `group`.
    pub fn new(volume: VolumeId, group: GroupId, piece: Piece) -> AllocationOperation {
        AllocationOperation { volume, group, piece, attempt: 0 }
    }

    fn unknown(&self) -> Progress<Runs> {
        Progress::Ended(vec![(self.piece.count, true)])
    }
}

/// What the member says: runs, or the view under which it would answer.
pub struct AllocationAnswer(Result<Runs, Option<GroupView>>);

impl FromAnswer for AllocationAnswer {
    fn from_answer(answer: Answer) -> Option<AllocationAnswer> {
        match answer {
            Answer::Allocation(runs) => Some(AllocationAnswer(runs)),
            _ => None,
        }
    }
}

impl Operate for AllocationOperation {
    type Answer = AllocationAnswer;
    type Child = NoChild;
    type Outcome = Runs;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Runs> {
        let view = cx.views.view(self.group);
        let mirrored = is_mirrored(&cx.views.geometry(self.group));
        let slot = if mirrored { view.current.iter().next().unwrap_or(0) } else { self.piece.slot };
        if !view.current.has(slot) || self.attempt > 2 {
            return self.unknown();
        }
        let Some(branch) = cx.branch_of(&view, self.volume) else { return self.unknown() };
        let span = Span { volume: branch, lba: self.piece.lba, count: self.piece.count };
        let (group, number) = (self.group, view.number);
        cx.call(&view, slot, Payload::new(), |operation| Message::Allocation {
            operation,
            group,
            view: number,
            span,
        });
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, _slot: u8, answer: AllocationAnswer) -> Progress<Runs> {
        let is_whole =
            |runs: &Runs| runs.iter().map(|run| u64::from(run.0)).sum::<u64>() == u64::from(self.piece.count);
        match answer.0 {
            Ok(runs) if is_whole(&runs) => Progress::Ended(runs),
            Ok(_) => self.unknown(),
            Err(view) => {
                cx.on_stale(self.group, view);
                Progress::WaitsFor(Duration::from_millis(20))
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Progress<Runs> {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Runs> {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.volume)
    }
}
