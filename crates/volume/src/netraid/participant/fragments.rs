//! Fragments of large objects. Each is written once, and what it holds follows from its name; so there is no view, no order and no
//! doubt about them. A disk keeps a fragment as it keeps repaired blocks: content under a stamp, in one durable step.

use super::context::{Alone, Context, FragmentRequest, FragmentTold, FragmentWish};
use super::disk::{Disk, Looking, Staging};
use super::fresh::Fresh;
use base::{BLOCK, HashSet, NodeId, Payload, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use wire::disk::{Blocks, Command, StoreError};
use wire::{FragmentOutcome, Message, Span};

/// The stamp of all fragments' blocks: that they are there.
const WRITTEN: Stamp = Stamp(1);

/// The fragments that the disk works for.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Who asked, and which question it is: asked for again it is the same work.
    at_work: HashSet<(NodeId, u64)>,
    /// What is not where it is put today, and may lie alone.
    to_look_alone: Vec<FragmentRequest>,
    /// What was put lately, and may be called off.
    fresh: Fresh,
}

impl Fragments {
    /// Whether the disk works for this question already, which is answered then.
    pub(super) fn are_at_work_for(&self, request: &FragmentRequest) -> bool {
        self.at_work.contains(&(request.from, request.operation))
    }

    /// Puts it on the disk, or looks it up.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, disk: &mut Disk, request: FragmentRequest) {
        if !self.at_work.insert((request.from, request.operation)) {
            return;
        }
        let (told, span) = (request.told(), request.span());
        match request.wish {
            FragmentWish::Put { content: payload, is_new } => {
                self.fresh.begin(request.fragment, is_new.then_some((told.from, told.operation, span)));
                let stamps = vec![WRITTEN; span.count as usize];
                let mend = |token| Command::Mend { token, span, width: 1, stamps, payload };
                disk.stage(cx, Staging::Fragment(told), mend);
            }
            wish @ (FragmentWish::Get | FragmentWish::Check { .. }) => {
                disk.look_here(cx, (span, 1), wish.moves(), Looking::Fragment(told));
            }
        }
    }

    /// What is to be looked for where it may lie alone: that may be another disk.
    pub(super) fn take_to_look_alone(&mut self) -> Vec<FragmentRequest> {
        core::mem::take(&mut self.to_look_alone)
    }

    /// It is on stable storage, or not.
    pub(super) fn on_put(
        &mut self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        (told, took): (FragmentTold, Duration),
        result: Result<(), StoreError>,
    ) {
        if let Some(span) = self.fresh.end((told.from, told.operation), result.is_ok()) {
            erase(cx, disk, span);
        }
        let outcome = result.map_or_else(failed, |()| FragmentOutcome::Done);
        self.end(cx, told, took, outcome, Payload::new());
    }

    /// Whoever put it does not count on it.
    pub(super) fn give_back(&mut self, cx: &mut Context<'_>, disk: &mut Disk, put: (NodeId, u64)) {
        if let Some(span) = self.fresh.call_off(put) {
            erase(cx, disk, span);
        }
    }

    /// It was looked up.
    pub(super) fn on_found(
        &mut self,
        cx: &mut Context<'_>,
        mut told: FragmentTold,
        took: Duration,
        result: Result<Blocks, StoreError>,
    ) {
        let (outcome, content) = match result {
            // Stamps of blocks that cannot be read may be lost as well.
            Ok(blocks) if !blocks.unreadable.is_empty() => (FragmentOutcome::Unreadable, Payload::new()),
            Ok(blocks) if blocks.stamps.iter().any(|stamp| stamp.is_zero()) => {
                (told.otherwise, Payload::new())
            }
            Ok(blocks) if told.is_wanted => (FragmentOutcome::Done, blocks.content),
            Ok(_) => (FragmentOutcome::Done, Payload::new()),
            Err(error) => (failed(error), Payload::new()),
        };
        match (told.alone, outcome) {
            (Some(alone), FragmentOutcome::Missing | FragmentOutcome::Unreadable) => {
                self.at_work.remove(&(told.from, told.operation));
                told.stay.at_disk(took);
                self.to_look_alone.push(alone.request(&told, outcome));
            }
            _ => self.end(cx, told, took, outcome, content),
        }
    }

    fn end(
        &mut self,
        cx: &mut Context<'_>,
        mut told: FragmentTold,
        took: Duration,
        outcome: FragmentOutcome,
        content: Payload,
    ) {
        self.at_work.remove(&(told.from, told.operation));
        told.stay.at_disk(took);
        tell(cx, &told, outcome, content);
    }
}

fn erase(cx: &mut Context<'_>, disk: &mut Disk, span: Span) {
    cx.counters.count(Counter::UnwantedFragmentsGivenBack);
    disk.erase(cx, span);
}

/// It does not begin: there is no room for it to wait, or its version is dropped.
pub(super) fn refuse(cx: &mut Context<'_>, request: &FragmentRequest, why: FragmentOutcome) {
    tell(cx, &request.told(), why, Payload::new());
}

fn failed(error: StoreError) -> FragmentOutcome {
    match error {
        StoreError::NoSpace => FragmentOutcome::NoSpace,
        StoreError::NoRoomYet | StoreError::Busy | StoreError::Left => FragmentOutcome::Busy,
        StoreError::Failed => FragmentOutcome::Failed,
    }
}

fn tell(cx: &mut Context<'_>, told: &FragmentTold, outcome: FragmentOutcome, content: Payload) {
    let FragmentTold { from, operation, is_put, service, stay, .. } = *told;
    let wait = stay.wait(cx.now);
    let message = match is_put {
        true => Message::FragmentPut { operation, outcome, wait },
        false => Message::Fragment { operation, outcome, wait },
    };
    cx.answer(from, (service, stay), message, content);
}

impl Alone {
    /// The same question as that one, which had this outcome.
    fn request(self, told: &FragmentTold, otherwise: FragmentOutcome) -> FragmentRequest {
        let Alone { fragment, blocks, reads } = self;
        let FragmentTold { from, operation, is_wanted, service, stay, .. } = *told;
        let wish = if is_wanted { FragmentWish::Get } else { FragmentWish::Check { reads } };
        FragmentRequest { from, operation, fragment, blocks, alone: Some(otherwise), wish, service, stay }
    }
}

impl FragmentRequest {
    /// Where the disk keeps it.
    pub fn span(&self) -> Span {
        match self.alone {
            Some(_) => self.fragment.span_alone(self.blocks),
            None => self.fragment.span(self.blocks),
        }
    }

    /// So many blocks the disk moves.
    pub fn moves(&self) -> u32 {
        if self.wish.moves() { self.blocks } else { 0 }
    }

    /// Whom to tell what becomes of it.
    pub(super) fn told(&self) -> FragmentTold {
        let FragmentRequest { from, operation, service, stay, .. } = *self;
        let (is_put, is_wanted) = (self.wish.is_put(), matches!(self.wish, FragmentWish::Get));
        let FragmentRequest { fragment, blocks, .. } = *self;
        let may_lie_alone = !is_put && fragment.span_alone(blocks) != self.span();
        let alone = may_lie_alone.then(|| Alone { fragment, blocks, reads: self.wish.moves() });
        let otherwise = self.alone.unwrap_or(FragmentOutcome::Missing);
        FragmentTold { from, operation, is_put, is_wanted, alone, otherwise, service, stay }
    }

    /// Whether a stranger's request is one that a brick may work on: content comes in whole blocks.
    pub fn is_valid(&self) -> bool {
        let fits = !self.wish.is_put() || self.wish.bytes() == self.blocks as usize * BLOCK;
        self.fragment.is_valid() && self.span().is_valid() && fits
    }
}
