//! Optimistic first, then locked (`hybrid`): a write goes as under `ts`; once it was refused it asks the lock server and goes as under
//! `slock`. So do other writes by this coordinator of the same rows, until for some seconds none was refused and none waited for a lock. Where
//! writes seldom meet it costs no lock, and where they meet all the time they come in line. (Not in the paper, whose Fig 12 shows why: each
//! of the parents is the better one at one end.)

use super::{Gate, Manner, Rule};
use wire::Order;

/// A lock costs a round trip, which is less than to come again in vain.
const REFUSALS_MAX: u32 = 1;

#[derive(Debug)]
pub(super) struct Hybrid;

impl Rule for Hybrid {
    fn gate(&self) -> Gate {
        Gate::ServerWhereRefused
    }

    fn manner(&self, is_behind_gate: bool) -> Manner {
        match is_behind_gate {
            true => Manner::WAITS,
            false => Manner { members: Order::Ts, refusals_max: Some(REFUSALS_MAX), ..Manner::WAITS },
        }
    }

    fn about(&self) -> &'static str {
        "a write that meets another one is refused, and asks for a lock as under slock; so do later writes of the same rows, for a while"
    }
}
