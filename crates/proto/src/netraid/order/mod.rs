//! Which of the writes that want a block at the same time goes first: the protocol family's *serialization*.
//!
//! Each order is a file with a [`Rule`]: what a member does with a write that meets an undecided one. Common to all are the writes that
//! wait at a member ([`waiting`]), and how a write comes back that was refused ([`writer`]). Under every order a member takes writes of
//! a block in the order of their stamps: what a rule decides may cost time, and never correctness.
//!
//! A new order is a file here (with its `mod` line), a line in [`rule`], and its name in [`wire::Order`].

mod ts;
mod ts_wait;
pub mod waiting;
pub(crate) mod writer;

use crate::counters::Counter;
use base::Stamp;
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

/// What an order says at a member.
pub trait Rule {
    /// A write with the stamp `own` meets an undecided one with the stamp `other`.
    fn meets(&self, own: Stamp, other: Stamp) -> Meeting;

    /// As what a refusal is counted.
    fn refusal(&self) -> Counter;

    /// What becomes of writes that meet, for operators: the end of a sentence.
    fn about(&self) -> &'static str;
}

/// The rule of an order.
pub fn rule(order: Order) -> &'static dyn Rule {
    match order {
        Order::TsWait => &ts_wait::TsWait,
        Order::Ts => &ts::Ts,
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
}
