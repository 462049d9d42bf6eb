//! Which blocks of a volume hold data: asked of the member that has them. Blocks whose member is away count as
//! holding data.

use super::coordinator::{Answer, Operate, Outcome, Shared};
use crate::layout::Piece;
use base::{GroupId, Payload, VolumeId};
use core::time::Duration;
use wire::{Message, Span};

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

    fn unknown(&self) -> Option<Outcome> {
        Some(Outcome::Allocation(vec![(self.piece.count, true)]))
    }
}

impl Operate for AllocationOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let view = shared.view(self.group);
        let mirrored = shared.geometry(self.group).layout().copies() > 1;
        let slot = if mirrored { view.current.iter().next().unwrap_or(0) } else { self.piece.slot };
        if !view.current.has(slot) || self.attempt > 2 {
            return self.unknown();
        }
        let Some(branch) = shared.branch_of(&view, self.volume) else { return self.unknown() };
        let span = Span { volume: branch, lba: self.piece.lba, count: self.piece.count };
        let (group, number) = (self.group, view.number);
        shared.call(&view, slot, Payload::new(), |operation| Message::Allocation {
            operation,
            group,
            view: number,
            span,
        });
        shared.wake_to_retry(self.attempt);
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, _slot: u8, answer: Answer) -> Option<Outcome> {
        match answer {
            Answer::Allocation(Ok(runs))
                if runs.iter().map(|run| u64::from(run.0)).sum::<u64>() == u64::from(self.piece.count) =>
            {
                Some(Outcome::Allocation(runs))
            }
            Answer::Allocation(Err(view)) => {
                shared.on_stale(self.group, view);
                shared.wake_after(Duration::from_millis(20));
                None
            }
            _ => self.unknown(),
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.attempt += 1;
        shared.forget_calls();
        self.start(shared)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.volume)
    }
}
