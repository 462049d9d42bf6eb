//! Which stamps the blocks of one member should have, by what the current members say.
//!
//! A mirror's are those of any current member. In a parity layout a data unit's are in the vectors of its parity, and
//! a parity's vector is made of what the data units have and of the other parity's vector.
//!
//! Why no lease is needed: a current member answers under a view only after it applied all that the making of this view
//! committed, so its stamps are at least those of every write acknowledged under earlier views. Later ones are the
//! business of the write itself, which is not acknowledged without the member that asks here. Where two members
//! differ the later stamp counts: answers come from blocks without a write in doubt, so it is decided.

use super::answer::ReadAnswer;
use super::members::{is_mirrored, width_at};
use super::operate::{BlocksWanted, Context, Operate, retry_delay};
use super::outcome::{Expected, Progress, Settled};
use super::settle::SettleOperation;
use base::{GroupId, Stamp};
use core::time::Duration;
use rules::layout::Geometry;
use std::collections::BTreeMap;
use wire::{GroupView, ReadOutcome, Slots, Span, WriteId};

const SOON: Duration = Duration::from_millis(10);

/// What a member said: a stamp an entry, and the blocks that it cannot say. Nothing of either where it has no say.
#[derive(Default)]
struct Said {
    stamps: Vec<Stamp>,
    unreadable: Vec<u32>,
}

/// Asks for the stamps that the blocks of `span` at `slot` should have.
pub struct ExpectedOperation {
    group: GroupId,
    slot: u8,
    span: Span,
    answers: BTreeMap<u8, Said>,
    asked: Slots,
    settling: usize,
    attempt: u32,
}

impl ExpectedOperation {
    /// Of the member at `slot`; the span lies within one stripe unit, or on mirrors.
    pub fn new(group: GroupId, slot: u8, span: Span) -> ExpectedOperation {
        let (answers, asked) = (BTreeMap::new(), Slots::default());
        ExpectedOperation { group, slot, span, answers, asked, settling: 0, attempt: 0 }
    }

    fn sources(&self, geometry: &Geometry, view: &GroupView) -> Slots {
        let others = view.current.without(self.slot);
        if is_mirrored(geometry) {
            let unasked = others.iter().filter(|slot| !self.answers.contains_key(slot)).collect::<Vec<_>>();
            let turn = self.attempt as usize % unasked.len().max(1);
            return unasked.get(turn).map_or(Slots::default(), |slot| Slots::one(*slot));
        }
        let is_data = geometry.data_index_at(self.span.lba, self.slot).is_some();
        let says = |slot: &u8| !is_data || geometry.data_index_at(self.span.lba, *slot).is_none();
        others.iter().filter(says).fold(Slots::default(), Slots::with)
    }

    fn has_all_answers(&self) -> bool {
        self.asked.iter().all(|slot| self.answers.contains_key(&slot))
    }

    fn finish(&mut self, cx: &mut Context<'_>) -> Progress<Expected> {
        let geometry = cx.views.geometry(self.group);
        let known = self.known(&geometry);
        let width = usize::from(width_at(&geometry, self.span.lba, self.slot));
        let unknown: Vec<u32> = (0..self.span.count)
            .filter(|block| known[*block as usize * width..][..width].contains(&None))
            .collect();
        if !unknown.is_empty() && is_mirrored(&geometry) {
            let view = cx.views.view(self.group);
            if !self.sources(&geometry, &view).is_empty() {
                return self.start(cx);
            }
        }
        let stamps = known.into_iter().map(Option::unwrap_or_default).collect();
        Progress::Ended(Expected { stamps, unknown })
    }

    /// Each entry of the member's stamps, as far as somebody knows it.
    fn known(&self, geometry: &Geometry) -> Vec<Option<Stamp>> {
        let (lba, count) = (self.span.lba, self.span.count as usize);
        let width = usize::from(width_at(geometry, lba, self.slot));
        let mine = geometry.data_index_at(lba, self.slot);
        let mut known: Vec<Option<Stamp>> = vec![None; count * width];
        for (slot, Said { stamps, unreadable }) in &self.answers {
            let (their_width, theirs) =
                (usize::from(width_at(geometry, lba, *slot)), geometry.data_index_at(lba, *slot));
            for (at, stamp) in stamps.iter().enumerate() {
                let (block, entry) = (at / their_width, at % their_width);
                let entry = match (mine, theirs) {
                    (Some(_), Some(_)) => Some(0),
                    (Some(mine), None) => (entry == usize::from(mine)).then_some(0),
                    (None, Some(theirs)) => Some(usize::from(theirs)),
                    (None, None) => Some(entry),
                };
                if let Some(entry) = entry
                    && !unreadable.contains(&(block as u32))
                {
                    let known = &mut known[block * width + entry];
                    *known = (*known).max(Some(*stamp));
                }
            }
        }
        known
    }

    fn on_doubt(&mut self, cx: &mut Context<'_>, writes: Vec<WriteId>) -> Progress<Expected> {
        let known: Vec<WriteId> = writes
            .into_iter()
            .filter(|write| {
                write.group == self.group && write.span.volume == self.span.volume && write.span.is_valid()
            })
            .collect();
        if known.is_empty() || self.attempt < 2 {
            return cx.again_after(SOON);
        }
        cx.forget_calls();
        self.settling = known.len();
        known.into_iter().for_each(|write| cx.begin(SettleOperation::new(write)));
        Progress::Waits
    }
}

impl Operate for ExpectedOperation {
    type Answer = ReadAnswer;
    type Child = Settled;
    type Outcome = Expected;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Expected> {
        let (view, geometry) = (cx.views.view(self.group), cx.views.geometry(self.group));
        self.asked = self.sources(&geometry, &view);
        if self.has_all_answers() {
            return self.finish(cx);
        }
        for slot in self.asked.iter().filter(|slot| !self.answers.contains_key(slot)) {
            cx.read(&view, slot, BlocksWanted::decided(self.span, true, false));
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: ReadAnswer) -> Progress<Expected> {
        let geometry = cx.views.geometry(self.group);
        let entries = self.span.count as usize * usize::from(width_at(&geometry, self.span.lba, slot));
        let said = match answer.outcome {
            ReadOutcome::Done { stamps, unreadable, .. } if stamps.len() == entries => {
                Said { stamps, unreadable }
            }
            // It has no say.
            ReadOutcome::Done { .. } | ReadOutcome::Older { .. } | ReadOutcome::Failed => Said::default(),
            ReadOutcome::InDoubt { writes } => return self.on_doubt(cx, writes),
            ReadOutcome::Stale { view } => {
                cx.on_stale(self.group, view);
                return cx.again_after(SOON * 2);
            }
            ReadOutcome::Busy => return cx.again_after(SOON),
        };
        self.answers.insert(slot, said);
        if self.has_all_answers() { self.finish(cx) } else { Progress::Waits }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, _: Settled) -> Progress<Expected> {
        self.settling = self.settling.saturating_sub(1);
        if self.settling == 0 { cx.again_after(Duration::ZERO) } else { Progress::Waits }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Expected> {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Expected> {
        // What was said under another view says nothing of this one.
        self.answers.clear();
        self.settling = 0;
        cx.forget_calls();
        self.start(cx)
    }
}
