//! Reading what a small write replaces, at the coordinator: the unit's old content, and the parity of its rows.
//!
//! No lease is needed, nor that all members answer: the parity members take the new parity only over the very stamps that were read here.
//! The answers fit together when each parity's stamps name the version of the data that was read; otherwise a write is under way.

use super::answer::ReadAnswer;
use super::operate::{BlocksWanted, Context, Operate, retry_delay};
use super::outcome::{NoChild, OldRow, Progress};
use base::{GroupId, Payload, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::BTreeMap;
use wire::{IoError, ReadOutcome, Slots, Span};

const SOON: Duration = Duration::from_millis(5);

/// How often it asks before it ends in vain: who waits for it has another way.
const TRIES_MAX: u32 = 3;

type Reading = Progress<Result<OldRow, IoError>>;

/// Ends with an error where some member cannot tell.
pub(super) struct OldRowOperation {
    group: GroupId,
    span: Span,
    index: u8,
    asked: Slots,
    shards: BTreeMap<u8, (Vec<Stamp>, Payload)>,
    tries: u32,
}

impl OldRowOperation {
    /// Of data unit `index` in the rows at `span`, whose data brick and parity bricks are all current.
    pub(super) fn new(group: GroupId, span: Span, index: u8) -> OldRowOperation {
        OldRowOperation { group, span, index, asked: Slots::default(), shards: BTreeMap::new(), tries: 0 }
    }

    fn again(&mut self, cx: &mut Context<'_>, delay: Duration) -> Reading {
        match self.tries < TRIES_MAX {
            true => cx.again_after(delay),
            false => Progress::Ended(Err(IoError::Failed)),
        }
    }

    fn combine(&mut self, cx: &mut Context<'_>) -> Reading {
        let geometry = cx.views.geometry(self.group);
        let (width, index) = (usize::from(geometry.layout().data()), usize::from(self.index));
        let slot = geometry.slot_of(self.span.lba, self.index);
        let (stamps, content) = self.shards.remove(&slot).expect("all have answered");
        let Some((vectors, _)) = self.shards.values().next() else {
            return Progress::Ended(Err(IoError::Failed));
        };
        let names_it = vectors.iter().skip(index).step_by(width).eq(stamps.iter());
        if !names_it || self.shards.values().any(|(others, _)| others != vectors) {
            cx.counters.count(Counter::OldRowMetAWriteUnderWay);
            return self.again(cx, SOON);
        }
        let vectors = vectors.clone();
        let parities = core::mem::take(&mut self.shards).into_iter();
        let parities = parities.map(|(slot, (_, parity))| (slot, parity)).collect();
        Progress::Ended(Ok(OldRow { content, vectors, parities }))
    }
}

impl Operate for OldRowOperation {
    type Answer = ReadAnswer;
    type Child = NoChild;
    type Outcome = Result<OldRow, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Reading {
        let (view, geometry) = (cx.views.view(self.group), cx.views.geometry(self.group));
        let lba = self.span.lba;
        self.tries += 1;
        self.shards.clear();
        self.asked = geometry
            .parity_slots(lba)
            .fold(Slots::one(geometry.slot_of(lba, self.index)), |slots, (_, slot)| slots.with(slot));
        if self.asked.and(view.current) != self.asked {
            return Progress::Ended(Err(IoError::Failed));
        }
        for slot in self.asked.iter() {
            cx.read(&view, slot, BlocksWanted::decided(self.span, true, true));
        }
        Progress::WaitsFor(retry_delay(self.tries))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: ReadAnswer) -> Reading {
        match answer.outcome {
            ReadOutcome::Done { stamps, unreadable, .. }
                if unreadable.is_empty() && answer.content.len() == self.span.bytes() =>
            {
                self.shards.insert(slot, (stamps, answer.content));
                let all = self.asked.iter().all(|slot| self.shards.contains_key(&slot));
                if all { self.combine(cx) } else { Progress::Waits }
            }
            ReadOutcome::Stale { view } => {
                cx.on_stale(self.group, view);
                self.again(cx, SOON)
            }
            ReadOutcome::Busy => self.again(cx, SOON),
            // Whoever waits for it has the data brick tell the difference, which finds out what is wrong.
            ReadOutcome::Done { .. }
            | ReadOutcome::Older { .. }
            | ReadOutcome::InDoubt { .. }
            | ReadOutcome::Failed => Progress::Ended(Err(IoError::Failed)),
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Reading {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Reading {
        if self.tries >= TRIES_MAX {
            return Progress::Ended(Err(IoError::Failed));
        }
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }
}
