//! Questions to members and their answers: which message is which, and what answers what. This table stands here once.

use base::Payload;
use wire::{
    Completion, Fate, GroupView, Inventory, LockOutcome, Message, OPERATIONS_MAX, Packet, PrepareOutcome,
    ReadOutcome, RepairOutcome, Wait, WriteId,
};

/// Names a question; on the wire it is the `operation` of the message and of its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub(crate) u64);

#[derive(Clone, Debug)]
pub enum Answer {
    Prepared(PrepareOutcome, Payload),
    Read(ReadOutcome, Payload),
    Fate(Result<Fate, Option<GroupView>>),
    Repaired(RepairOutcome),
    /// To a question about allocation.
    Allocation(Result<Vec<(u32, bool)>, Option<GroupView>>),
    /// To a question about stretches.
    Stretches(Result<Inventory, Option<GroupView>>),
    /// To a question about completions.
    Completions(Result<Vec<Completion>, Option<GroupView>>),
    /// To the wish for a lock.
    Locked(LockOutcome),
    /// To the question which writes are undecided.
    Undecided(Result<Vec<WriteId>, Option<GroupView>>),
}

/// What came from a member.
pub enum Received {
    /// And what the question met at the member's disk.
    Answer(CallId, Answer, Wait),
    /// These questions wait for their turn at the member's disk.
    Waiting(Vec<CallId>),
    /// These were withdrawn, and those were not: they had begun.
    Cancelled {
        withdrawn: Vec<CallId>,
        late: Vec<CallId>,
    },
    Other(Message),
}

/// The kinds of questions, each of which has its kind of answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    Prepare,
    Read,
    Query,
    Repair,
    Allocation,
    Stretches,
    Completions,
    Lock,
    Decided,
}

impl Question {
    /// Of which kind the question in a message is.
    pub(crate) fn of(message: &Message) -> Question {
        match message {
            Message::Prepare { .. } => Question::Prepare,
            Message::Read { .. } => Question::Read,
            Message::Query { .. } => Question::Query,
            Message::Repair { .. } => Question::Repair,
            Message::Allocation { .. } => Question::Allocation,
            Message::Inventory { .. } => Question::Stretches,
            Message::GetCompletions { .. } => Question::Completions,
            Message::Lock { .. } => Question::Lock,
            Message::AreDecided { .. } => Question::Decided,
            other => unreachable!("an operation asks a member what has no answer: {other:?}"),
        }
    }
}

impl Answer {
    /// What a packet of a member is: an answer, or something else.
    pub fn from_packet(packet: Packet) -> Received {
        let Packet { mut message, payload } = packet;
        let wait = message.wait_mut().map(|wait| *wait).unwrap_or_default();
        let calls = |operations: Vec<u64>| operations.into_iter().take(OPERATIONS_MAX).map(CallId).collect();
        let (number, answer) = match message {
            Message::Prepared { operation, outcome, .. } => (operation, Answer::Prepared(outcome, payload)),
            Message::ReadDone { operation, outcome, .. } => (operation, Answer::Read(outcome, payload)),
            Message::QueryDone { operation, fate } => (operation, Answer::Fate(fate)),
            Message::Repaired { operation, outcome, .. } => (operation, Answer::Repaired(outcome)),
            Message::AllocationDone { operation, runs } => (operation, Answer::Allocation(runs)),
            Message::InventoryDone { operation, stretches } => (operation, Answer::Stretches(stretches)),
            Message::CompletionsDone { operation, completions } => {
                (operation, Answer::Completions(completions))
            }
            Message::Locked { operation, outcome } => (operation, Answer::Locked(outcome)),
            Message::AreDecidedDone { operation, undecided } => (operation, Answer::Undecided(undecided)),
            Message::Waiting { operations } => return Received::Waiting(calls(operations)),
            Message::Cancelled { withdrawn, late } => {
                return Received::Cancelled { withdrawn: calls(withdrawn), late: calls(late) };
            }
            message => return Received::Other(message),
        };
        Received::Answer(CallId(number), answer, wait)
    }

    pub(crate) fn question(&self) -> Question {
        match self {
            Answer::Prepared(..) => Question::Prepare,
            Answer::Read(..) => Question::Read,
            Answer::Fate(_) => Question::Query,
            Answer::Repaired(_) => Question::Repair,
            Answer::Allocation(_) => Question::Allocation,
            Answer::Stretches(_) => Question::Stretches,
            Answer::Completions(_) => Question::Completions,
            Answer::Locked(_) => Question::Lock,
            Answer::Undecided(_) => Question::Decided,
        }
    }

    /// Why the member did not do what was asked; `None` where it did. For people.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        const STALE: &str = "it has another view";
        const BUSY: &str = "too much waits there";
        match self {
            Answer::Prepared(outcome, _) => match outcome {
                PrepareOutcome::Prepared { .. } | PrepareOutcome::Duplicate => None,
                PrepareOutcome::Late { .. } => Some("it has seen a later stamp"),
                PrepareOutcome::Changed => Some("what the write was computed from has changed there"),
                PrepareOutcome::Stale { .. } => Some(STALE),
                PrepareOutcome::Busy => Some(BUSY),
                PrepareOutcome::NoSpace => Some("it has no room"),
                PrepareOutcome::Unreadable => Some("it cannot read its stamps"),
                PrepareOutcome::Failed => Some("it failed"),
            },
            Answer::Read(outcome, _) => match outcome {
                ReadOutcome::Done { unreadable, .. } | ReadOutcome::Older { unreadable, .. } => {
                    (!unreadable.is_empty()).then_some("it cannot read its blocks")
                }
                ReadOutcome::InDoubt { .. } => Some("writes there are not decided"),
                ReadOutcome::Stale { .. } => Some(STALE),
                ReadOutcome::Busy => Some(BUSY),
                ReadOutcome::Failed => Some("it failed"),
            },
            Answer::Repaired(outcome) => match outcome {
                RepairOutcome::Taken => None,
                RepairOutcome::Refused => Some("something newer is there, or a write is outstanding"),
                RepairOutcome::NoSpace => Some("it has no room"),
            },
            Answer::Locked(outcome) => match outcome {
                LockOutcome::Granted { .. } => None,
                LockOutcome::Stale { .. } => Some(STALE),
                LockOutcome::Busy => Some(BUSY),
            },
            Answer::Fate(Ok(Fate::Unreadable)) => Some("it cannot read its stamps"),
            Answer::Fate(Ok(_))
            | Answer::Allocation(Ok(_))
            | Answer::Stretches(Ok(_))
            | Answer::Completions(Ok(_))
            | Answer::Undecided(Ok(_)) => None,
            Answer::Fate(Err(_))
            | Answer::Allocation(Err(_))
            | Answer::Stretches(Err(_))
            | Answer::Completions(Err(_))
            | Answer::Undecided(Err(_)) => Some(STALE),
        }
    }

    /// Whether the member did what was asked, so that the time it took says something of its speed.
    pub(crate) fn is_work(&self) -> bool {
        matches!(
            self,
            Answer::Prepared(PrepareOutcome::Prepared { .. }, _)
                | Answer::Read(ReadOutcome::Done { .. } | ReadOutcome::Older { .. }, _)
        )
    }
}

/// What members answer to the questions of one kind of operation.
pub trait FromAnswer: Sized {
    /// `None` where no operation of the kind asks what this answers.
    fn from_answer(answer: Answer) -> Option<Self>;
}

/// The answers to an operation that asks members nothing: what it begins does.
pub enum NoAnswer {}

impl FromAnswer for NoAnswer {
    fn from_answer(_: Answer) -> Option<NoAnswer> {
        None
    }
}

/// To a prepare: what became of it, and the delta if it was wanted.
pub(crate) struct PrepareAnswer {
    pub(crate) outcome: PrepareOutcome,
    pub(crate) delta: Payload,
}

/// To a read: what became of it, and the content if it was wanted.
pub struct ReadAnswer {
    pub(crate) outcome: ReadOutcome,
    pub(crate) content: Payload,
}

impl FromAnswer for PrepareAnswer {
    fn from_answer(answer: Answer) -> Option<PrepareAnswer> {
        match answer {
            Answer::Prepared(outcome, delta) => Some(PrepareAnswer { outcome, delta }),
            _ => None,
        }
    }
}

impl FromAnswer for ReadAnswer {
    fn from_answer(answer: Answer) -> Option<ReadAnswer> {
        match answer {
            Answer::Read(outcome, content) => Some(ReadAnswer { outcome, content }),
            _ => None,
        }
    }
}
