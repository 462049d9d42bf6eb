//! A sequencer (`seq`): the coordinator lets requests that touch the same rows pass one after the other, in the order in which they came.
//! (Kenchammana-Hosekote et al., section 2.2.2: "maintains an internal scoreboard that ensures that each operation is delayed until there
//! are no conflicts with preceding operations".) Reads pass together, and wait for writes.
//!
//! It orders what one coordinator is asked. Requests that come by two coordinators meet at bricks, where stamps decide.

use super::{Gate, Rule};

#[derive(Debug)]
pub(super) struct Sequencer;

impl Rule for Sequencer {
    fn gate(&self) -> Gate {
        Gate::Line
    }

    fn read_gate(&self) -> Gate {
        Gate::Line
    }

    fn about(&self) -> &'static str {
        "the coordinator lets requests of the same rows pass one after the other"
    }
}
