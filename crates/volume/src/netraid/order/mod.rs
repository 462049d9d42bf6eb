//! Which of the writes that want a block at the same time goes first: the protocol family's *serialization*.
//!
//! An order is a file with a [`Rule`]. It says what a request passes before it begins ([`Gate`]), and how its writes go to the members
//! ([`Manner`]). Common to all are the gates ([`gate`], [`locks`]), the writes that wait at a member ([`waiting`]), and how a write comes back
//! that was refused ([`writer`]). Under every order a member takes writes of a block in the order of their stamps: what a rule
//! decides may cost time, and never correctness. So a lock may be lost, and two may hold it.
//!
//! A new order is a file here (with its `mod` line), a line in [`rule`], and its name in [`wire::Order`].

mod dlock;
pub mod gate;
mod hybrid;
pub mod locks;
mod none;
mod seq;
mod seq_opt;
mod slock;
mod ts;
mod ts_wait;
mod version;
pub mod waiting;
pub(crate) mod writer;

use base::Stamp;
use rules::counters::Counter;
use wire::Order;

/// What a write does at a member that has another write of the same block, which is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// It waits until the other one is decided. Only a write with a later stamp may wait: so waits go from later to earlier stamps,
    /// and form no circle.
    Waits,
    /// It is refused, settled, and comes again under a later stamp.
    Refused,
}

/// What a request passes before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    Open,
    /// The coordinator's own line: requests of the same rows go one after the other.
    Line,
    /// The lock server: the first current brick of the group.
    Server,
    /// A question for the latest stamp of its blocks, than which its own is later.
    Time,
    /// Nothing at first; the lock server once it was refused, and where writes of these rows were lately.
    ServerWhereRefused,
}

/// How a write goes to the members that take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// By which order members are told to go where it meets another write: `ts` or `ts-wait`, which every release knows.
    pub members: Order,
    /// Whether one member is asked before all others: the one of the lowest number, at which it waits for its turn.
    pub first_alone: bool,
    /// After so many refusals it ends, and its gate decides what follows.
    pub refusals_max: Option<u32>,
}

impl Manner {
    /// To all at once, waiting where it meets an earlier write.
    pub const WAITS: Manner = Manner { members: Order::TsWait, first_alone: false, refusals_max: None };
}

/// What an order says.
pub trait Rule {
    /// What a write passes before it begins.
    fn gate(&self) -> Gate {
        Gate::Open
    }

    /// What a read passes.
    fn read_gate(&self) -> Gate {
        Gate::Open
    }

    /// How a write goes to members, before its gate or behind it.
    fn manner(&self, _is_behind_gate: bool) -> Manner {
        Manner::WAITS
    }

    /// At a member: a write with the stamp `own` meets an undecided one with the stamp `other`.
    fn meets(&self, own: Stamp, other: Stamp) -> Meeting {
        if other < own { Meeting::Waits } else { Meeting::Refused }
    }

    /// As what a refusal is counted.
    fn refusal(&self) -> Counter {
        Counter::WriteRefusedByWaitDie
    }

    /// What becomes of writes that meet, for operators: the end of a sentence.
    fn about(&self) -> &'static str;
}

/// The rule of an order.
pub fn rule(order: Order) -> &'static dyn Rule {
    match order {
        Order::TsWait => &ts_wait::TsWait,
        Order::Ts => &ts::Ts,
        Order::None => &none::None,
        Order::ServerLock => &slock::ServerLock,
        Order::DataLock => &dlock::DataLock,
        Order::Sequencer => &seq::Sequencer,
        Order::SequencerOfWrites => &seq_opt::SequencerOfWrites,
        Order::Hybrid => &hybrid::Hybrid,
        Order::Version => &version::Version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_earlier_write_waits_for_a_later_one() {
        for order in Order::ALL {
            assert_eq!(rule(order).meets(Stamp(1), Stamp(2)), Meeting::Refused, "{order}");
        }
        assert_eq!(rule(Order::TsWait).meets(Stamp(2), Stamp(1)), Meeting::Waits);
        assert_eq!(rule(Order::Ts).meets(Stamp(2), Stamp(1)), Meeting::Refused);
    }

    #[test]
    fn members_are_told_an_order_that_the_release_before_knows() {
        for (order, gated) in Order::ALL.into_iter().flat_map(|order| [(order, false), (order, true)]) {
            assert!(matches!(rule(order).manner(gated).members, Order::TsWait | Order::Ts), "{order}");
        }
    }
}
