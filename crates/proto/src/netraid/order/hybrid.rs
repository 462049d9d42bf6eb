//! Optimistic first, then locked (`hybrid`): a write goes as under `ts`, and once it was refused twice it asks the lock server and goes
//! as under `slock`. Where writes seldom meet it costs no lock, and where they meet all the time they come in line. (Not in the paper, whose
//! Fig 12 shows why: each of the parents is the better one at one end.)

use super::{Gate, Manner, Rule};
use wire::Order;

/// A second refusal says that the first was no accident.
const REFUSALS_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Hybrid;

impl Rule for Hybrid {
    fn gate(&self) -> Gate {
        Gate::ServerOnceRefused
    }

    fn manner(&self, is_behind_gate: bool) -> Manner {
        match is_behind_gate {
            true => Manner::WAITS,
            false => Manner { members: Order::Ts, refusals_max: Some(REFUSALS_MAX), ..Manner::WAITS },
        }
    }

    fn about(&self) -> &'static str {
        "a write that meets another one is refused, and comes again; refused twice, it asks for a lock as under slock"
    }
}
