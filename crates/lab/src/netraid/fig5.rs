//! Figure 5: what reads place on memories, and in messages.

use super::counted::{self, Counting, Form, Operation, Raid};
use super::setup::{self, Topology};
use crate::cell::Row;
use crate::claim::Claim;
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig5;

const COUNTING: Counting = Counting {
    operations: &[(Raid::One, Operation::Read), (Raid::Four, Operation::Read)],
    with_ours: false,
    form,
};

/// A unit goes once from disk to memory and once to the network; whoever takes it has it once, and passes it on once more.
fn form(topology: Topology, _: (Raid, Operation)) -> Form {
    match topology {
        Topology::Direct | Topology::Amongst => Form::new(1.0, 0.0, 2.0),
        Topology::Gateway | Topology::Coordinator => Form::new(1.0, 2.0, 2.0),
    }
}

impl Experiment for Fig5 {
    fn id(&self) -> &str {
        "netraid.fig5"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Reads: crossings of memory buses, and messages"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, counted::ASSUMED, &["coordinator_apart"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        COUNTING.points(parameters, scale)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        Counting::rows(runs)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        COUNTING.claims(table)
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        COUNTING.charts(self.id(), table)
    }

    fn notes(&self) -> Vec<String> {
        counted::notes()
    }
}
