//! A request that passes a gate before it begins: the coordinator's line, the lock server, or a question for the time.
//!
//! What is behind the gate is an operation like any other, begun as a child, and knows nothing of it. So an order with locks is no other way to
//! write. Nor can a lock harm a write: who has waited too long for one goes on without, and meets the others at bricks.

use super::locks::{Place, Wish};
use super::version::TimeOperation;
use super::{Gate, Manner, rule};
use crate::netraid::answer::{Answer, FromAnswer};
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::confirm::Confirmed;
use crate::netraid::context::gates::Leaving;
use crate::netraid::operate::{Context, Operate, Operation, retry_delay};
use crate::netraid::outcome::{Child, LatestStamp, OperationId, Outcome, Progress, Written};
use crate::netraid::path::gw::Path;
use crate::netraid::read::ReadOperation;
use crate::netraid::write::WriteOperation;
use base::{BrickId, GroupId, Payload, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use wire::{LockOutcome, Message, Order, Reads, Span};

/// Who has not got a lock after so long goes on without it: the server cannot be reached, or too many want the same.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is behind a gate.
#[derive(Clone)]
pub enum Work {
    Write {
        path: Path,
        origin: Origin,
    },
    /// Of these blocks of a data unit.
    Read {
        group: GroupId,
        span: Span,
        data_index: u8,
        /// What it counts on.
        reads: Reads,
    },
}

impl Work {
    fn group(&self) -> GroupId {
        match self {
            Work::Write { path, .. } => path.group(),
            Work::Read { group, .. } => *group,
        }
    }

    fn volume(&self) -> VolumeId {
        match self {
            Work::Write { path, .. } => path.volume(),
            Work::Read { span, .. } => span.volume,
        }
    }

    /// The rows, whichever of their units are meant: writes of one row's units meet at its parity.
    fn place(&self) -> Place {
        match self {
            Work::Write { path, .. } => Place { group: path.group(), span: path.span(), is_shared: false },
            Work::Read { group, span, .. } => Place { group: *group, span: *span, is_shared: true },
        }
    }

    /// As an operation that no gate is before.
    fn begin(self, manner: Manner) -> Operation {
        match self {
            Work::Write { path, origin } => {
                Operation::new(WriteOperation::new(path, origin).in_manner(manner))
            }
            Work::Read { group, span, data_index, reads } => {
                let read = ReadOperation::new(group, span, data_index, false);
                match reads {
                    Reads::Leased => Operation::new(read),
                    Reads::Confirmed => Operation::new(Confirmed::new(read)),
                }
            }
        }
    }
}

/// The operation that does a part of a request under an order.
pub fn ordered(order: Order, work: Work) -> Operation {
    let rule = rule(order);
    let gate = match work {
        Work::Write { .. } => rule.gate(),
        Work::Read { .. } => rule.read_gate(),
    };
    match gate {
        Gate::Open => work.begin(rule.manner(false)),
        gate => Operation::new(GatedOperation { order, gate, work, state: State::Begins, refused: false }),
    }
}

enum State {
    Begins,
    InLine,
    /// A member was asked for the latest stamp.
    AskingTheTime,
    /// The lock server was asked.
    Asking {
        server: BrickId,
        holder: u64,
        until: Time,
        attempt: u32,
    },
    /// What is behind the gate is under way, with this lock of a server, if it got one.
    Works {
        lock: Option<(BrickId, u64)>,
    },
}

struct GatedOperation {
    order: Order,
    gate: Gate,
    work: Work,
    state: State,
    /// Whether what is behind the gate gave up without it.
    refused: bool,
}

type Gated = Progress<Outcome>;

impl GatedOperation {
    /// The gate is open: what is behind it begins.
    fn works(&mut self, cx: &mut Context<'_>, lock: Option<(BrickId, u64)>, is_behind_gate: bool) -> Gated {
        self.state = State::Works { lock };
        cx.begin_operation(self.work.clone().begin(rule(self.order).manner(is_behind_gate)));
        Progress::Sleeps
    }

    fn get_in_line(&mut self, cx: &mut Context<'_>) -> Gated {
        self.state = State::InLine;
        match cx.get_in_line(self.work.place()) {
            Wish::Granted | Wish::Full => self.works(cx, None, true),
            Wish::Waits => {
                cx.counters.count(Counter::RequestWaitedInLine);
                Progress::Sleeps
            }
        }
    }

    fn ask_the_time(&mut self, cx: &mut Context<'_>) -> Gated {
        let Work::Write { path, .. } = &self.work else { return self.works(cx, None, true) };
        cx.begin(TimeOperation::before(path.clone()));
        self.state = State::AskingTheTime;
        Progress::Sleeps
    }

    fn ask_server(&mut self, cx: &mut Context<'_>) -> Gated {
        let view = cx.views.view(self.work.group());
        let Some(slot) = view.current.iter().next() else {
            self.state = State::Begins;
            return Progress::WaitsFor(Duration::from_millis(100));
        };
        let server = view.members[usize::from(slot)];
        let (holder, until, attempt) = match self.state {
            State::Asking { server: before, holder, until, attempt } if before == server => {
                (holder, until, attempt + 1)
            }
            _ => (cx.draw_number(), cx.now + PATIENCE, 0),
        };
        self.state = State::Asking { server, holder, until, attempt };
        let Place { group, span, .. } = self.work.place();
        cx.counters.count(Counter::LockAskedFor);
        cx.call(&view, slot, Payload::new(), |operation| Message::Lock {
            operation,
            group,
            view: view.number,
            span,
            holder,
        });
        Progress::WaitsFor(retry_delay(attempt))
    }
}

/// What a lock server answers.
pub(crate) struct LockAnswer(LockOutcome);

impl FromAnswer for LockAnswer {
    fn from_answer(answer: Answer) -> Option<LockAnswer> {
        match answer {
            Answer::Locked(outcome) => Some(LockAnswer(outcome)),
            _ => None,
        }
    }
}

impl Child for Outcome {
    fn from_outcome(outcome: Outcome) -> Option<Outcome> {
        Some(outcome)
    }
}

impl Operate for GatedOperation {
    type Answer = LockAnswer;
    type Child = Outcome;
    type Outcome = Outcome;

    fn start(&mut self, cx: &mut Context<'_>) -> Gated {
        match self.gate {
            Gate::Line => self.get_in_line(cx),
            Gate::ServerWhereRefused if !self.refused && !cx.is_contended(&self.work.place()) => {
                self.works(cx, None, false)
            }
            Gate::Server | Gate::ServerWhereRefused => self.ask_server(cx),
            Gate::Time => self.ask_the_time(cx),
            Gate::Open => unreachable!("what no gate is before is not gated"),
        }
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, _slot: u8, answer: LockAnswer) -> Gated {
        let State::Asking { server, holder, .. } = self.state else {
            unreachable!("a lock comes to who asked for it")
        };
        match answer.0 {
            LockOutcome::Granted { waited } => {
                if waited {
                    cx.note_contention(&self.work.place());
                }
                cx.forget_calls();
                self.works(cx, Some((server, holder)), true)
            }
            LockOutcome::Stale { view } => {
                cx.on_stale(self.work.group(), view);
                Progress::WaitsFor(Duration::from_millis(20))
            }
            LockOutcome::Busy => {
                cx.counters.count(Counter::WriteWentOnWithoutALock);
                cx.forget_calls();
                self.works(cx, None, true)
            }
        }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, outcome: Outcome) -> Gated {
        match outcome {
            Outcome::Written(Ok(Written::Refused)) => {
                cx.counters.count(Counter::WriteWentToTheLockServer);
                cx.note_contention(&self.work.place());
                self.refused = true;
                self.ask_server(cx)
            }
            Outcome::LatestStamp(LatestStamp(latest)) => {
                latest.into_iter().for_each(|latest| cx.see(latest));
                self.works(cx, None, true)
            }
            outcome => Progress::Ended(outcome),
        }
    }

    fn on_turn(&mut self, cx: &mut Context<'_>) -> Gated {
        self.works(cx, None, true)
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Gated {
        match self.state {
            State::Begins => self.start(cx),
            State::Asking { until, .. } if until <= cx.now => {
                cx.counters.count(Counter::WriteWentOnWithoutALock);
                cx.forget_calls();
                let lock = self.lock();
                self.works(cx, lock, true)
            }
            State::Asking { .. } => {
                cx.forget_calls();
                self.ask_server(cx)
            }
            State::InLine | State::AskingTheTime | State::Works { .. } => Progress::Waits,
        }
    }

    /// The view's locks are void, and what was behind the gate is ended. A place in the line has nothing to do with views.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Gated {
        cx.forget_calls();
        match (&self.state, self.gate) {
            (State::InLine, _) => Progress::Waits,
            (State::Works { .. }, Gate::Line) => self.works(cx, None, true),
            _ => {
                self.state = State::Begins;
                self.start(cx)
            }
        }
    }

    fn group(&self) -> GroupId {
        self.work.group()
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.work.volume())
    }

    fn release(&self, id: OperationId, left: &mut Leaving<'_>) {
        if let Some((server, holder)) = self.lock() {
            left.unlock(server, holder);
        }
        left.leave_line(id);
    }
}

impl GatedOperation {
    /// The lock that it has of a server, or asked for.
    fn lock(&self) -> Option<(BrickId, u64)> {
        match self.state {
            State::Asking { server, holder, .. } => Some((server, holder)),
            State::Works { lock } => lock,
            State::Begins | State::InLine | State::AskingTheTime => None,
        }
    }
}
