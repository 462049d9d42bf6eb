//! Puts good content in place of blocks that a member could not read, or that it lacks because it only joins. A member
//! that has something newer, or a write under way there, refuses it: then it ends with [`Repaired::Changed`], and where the
//! member has no room with [`IoError::NoSpace`], otherwise with [`Repaired::Taken`].
//!
//! Where a write waits for it the repair is *patient*: refused, it fetches what is good by then and offers it again. Both
//! make progress on a hot row. The repair is refused only while writes are under way there; a write that needs the repair
//! is not one of them, as it is settled before the repair begins, and comes back only when the repair has ended. So each
//! write that is kept waiting makes a gap for the repair of all, and the writes that still come in are those that build on
//! what the member has: they go through. When the repair is through (or somebody else's, or a write of the whole block,
//! was before it) all that waited find what they need. What a repair gains is kept: no stamp of the block goes back.

use super::answer::{Answer, FromAnswer, ReadAnswer};
use super::members::{is_mirrored, width_at};
use super::operate::{BlocksWanted, Context, Operate, retry_delay};
use super::outcome::{Fetched, Progress, Repaired};
use super::read::ReadOperation;
use super::reconstruct::ReconstructOperation;
use base::{GroupId, Payload, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use wire::{IoError, Message, ReadOutcome, RepairOutcome, Slots, Span};

/// How often a patient repair is offered before it lets the write that waits for it look again: the block may need no
/// repair any more.
const OFFERS_MAX: u32 = 4;

type Repairing = Progress<Result<Repaired, IoError>>;

/// Repairs one span at one member.
pub struct RepairOperation {
    group: GroupId,
    slot: u8,
    span: Span,
    good: Option<(Vec<Stamp>, Payload)>,
    is_patient: bool,
    offers: u32,
    attempt: u32,
}

impl RepairOperation {
    /// With content and stamps that are known.
    pub(crate) fn new(
        group: GroupId,
        slot: u8,
        span: Span,
        stamps: Vec<Stamp>,
        content: Payload,
    ) -> RepairOperation {
        RepairOperation { good: Some((stamps, content)), ..RepairOperation::from_row(group, slot, span) }
    }

    /// With what the rest of the rows says: of mirrors any other member, of parity layouts the code.
    pub fn from_row(group: GroupId, slot: u8, span: Span) -> RepairOperation {
        RepairOperation { group, slot, span, good: None, is_patient: false, offers: 0, attempt: 0 }
    }

    /// A write waits for it.
    #[must_use]
    pub(crate) fn patient(self) -> RepairOperation {
        RepairOperation { is_patient: true, ..self }
    }

    fn fetch(&mut self, cx: &mut Context<'_>) -> Repairing {
        let geometry = cx.views.geometry(self.group);
        let excluded = Slots::one(self.slot);
        if let Some(source) = self.sole_source(cx) {
            return self.fetch_from(cx, source);
        }
        if is_mirrored(&geometry) {
            cx.begin(ReadOperation::of_branch(self.group, self.span, excluded));
        } else {
            let wanted = geometry.shard_at(self.span.lba, self.slot);
            cx.begin(ReconstructOperation::new(self.group, self.span, wanted, excluded));
        }
        Progress::Waits
    }

    /// The one member to fetch a copy from, by the rules; the first time only.
    fn sole_source(&self, cx: &Context<'_>) -> Option<u8> {
        let is_first = self.attempt == 0 && is_mirrored(&cx.views.geometry(self.group));
        let source = is_first.then(|| cx.rules.repair_source(&cx.views.view(self.group), self.slot));
        source.flatten()
    }

    fn fetch_from(&self, cx: &mut Context<'_>, slot: u8) -> Repairing {
        let view = cx.views.view(self.group);
        cx.read(&view, slot, BlocksWanted::decided(self.span, true, true));
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_offered(&mut self, cx: &mut Context<'_>, outcome: RepairOutcome) -> Repairing {
        if outcome == RepairOutcome::Taken {
            cx.counters.count(Counter::RepairTakenByAMember);
            return Progress::Ended(Ok(Repaired::Taken));
        }
        if !self.is_patient || self.offers >= OFFERS_MAX {
            return Progress::Ended(match outcome {
                RepairOutcome::NoSpace => Err(IoError::NoSpace),
                _ => Ok(Repaired::Changed),
            });
        }
        cx.counters.count(Counter::RepairRefusedAndOfferedAgain);
        self.good = None;
        self.offers += 1;
        cx.again_after(Duration::from_millis(1 << self.offers.min(5)))
    }

    fn on_fetched(&mut self, cx: &mut Context<'_>, Fetched { content, stamps }: Fetched) -> Repairing {
        self.good = Some((stamps, content));
        self.start(cx)
    }
}

/// What the member says that is offered content, or the sole source of it.
pub enum RepairAnswer {
    Offered(RepairOutcome),
    Source(ReadAnswer),
}

impl FromAnswer for RepairAnswer {
    fn from_answer(answer: Answer) -> Option<RepairAnswer> {
        match answer {
            Answer::Repaired(outcome) => Some(RepairAnswer::Offered(outcome)),
            answer => ReadAnswer::from_answer(answer).map(RepairAnswer::Source),
        }
    }
}

impl Operate for RepairOperation {
    type Answer = RepairAnswer;
    type Child = Result<Fetched, IoError>;
    type Outcome = Result<Repaired, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Repairing {
        let view = cx.views.view(self.group);
        if !view.writers().has(self.slot) || (self.attempt > 3 && !self.is_patient) {
            return Progress::Ended(Ok(Repaired::Changed));
        }
        let Some((stamps, content)) = self.good.clone() else { return self.fetch(cx) };
        let (group, span) = (self.group, self.span);
        let (width, service) = (width_at(&cx.views.geometry(group), span.lba, self.slot), cx.service());
        cx.call(&view, self.slot, content, |operation| Message::Repair {
            operation,
            group,
            view: view.number,
            span,
            width,
            stamps,
            service,
        });
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, _slot: u8, answer: RepairAnswer) -> Repairing {
        match answer {
            RepairAnswer::Offered(outcome) => self.on_offered(cx, outcome),
            RepairAnswer::Source(ReadAnswer { outcome: ReadOutcome::Done { stamps, .. }, content }) => {
                self.on_fetched(cx, Fetched { content, stamps })
            }
            RepairAnswer::Source(_) => Progress::Waits,
        }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, fetched: Result<Fetched, IoError>) -> Repairing {
        match fetched {
            Ok(fetched) => self.on_fetched(cx, fetched),
            Err(error) => Progress::Ended(Err(error)),
        }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Repairing {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn on_view(&mut self, _: &mut Context<'_>) -> Repairing {
        Progress::Ended(Ok(Repaired::ByView))
    }
}
