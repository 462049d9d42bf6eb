//! A sequencer of writes (`seq-opt`): as `seq`, and reads go past it. (Kenchammana-Hosekote et al., section 2.2.2: it "uses the sequencer
//! for writes and degraded reads, but allows clients to read directly from storage bricks".)

use super::{Gate, Rule};

#[derive(Debug)]
pub(super) struct SequencerOfWrites;

impl Rule for SequencerOfWrites {
    fn gate(&self) -> Gate {
        Gate::Line
    }

    fn about(&self) -> &'static str {
        "the coordinator lets writes of the same rows pass one after the other; reads go past them"
    }
}
