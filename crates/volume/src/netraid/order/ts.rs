//! Timestamp order, by refusing (`ts`): a write that meets another one under way is refused, whichever is earlier, and comes again after a
//! while. (Kenchammana-Hosekote et al., section 2.2.2: "it delays operations by rejecting and retrying them".)
//!
//! The paper's members keep the timestamps of reads as well, on stable storage, and refuse a write that is earlier than a read. Here
//! a read takes no timestamp: it is served while no write is under way, and so comes after all that were acknowledged before it and before all
//! that begin later, whatever their stamps are. What that leaves open are reads of several blocks at one moment, which no protocol
//! here promises.

use super::{Manner, Meeting, Rule};
use base::Stamp;
use rules::counters::Counter;
use wire::Order;

#[derive(Debug)]
pub(super) struct Ts;

impl Rule for Ts {
    fn manner(&self, _is_behind_gate: bool) -> Manner {
        Manner { members: Order::Ts, ..Manner::WAITS }
    }

    fn meets(&self, _own: Stamp, _other: Stamp) -> Meeting {
        Meeting::Refused
    }

    fn refusal(&self) -> Counter {
        Counter::WriteRefusedForAnotherUnderWay
    }

    fn about(&self) -> &'static str {
        "a write that meets another one of the same block is refused, and comes again after a while"
    }
}
