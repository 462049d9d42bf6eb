//! Figure 7: what writes of full stripes place on memories, and in messages.

use super::counted::{self, Counting, Form, Operation, Raid};
use super::setup::{self, Topology};
use crate::cell::Row;
use crate::claim::Claim;
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig7;

const COUNTING: Counting =
    Counting { operations: &[(Raid::Four, Operation::FullStripe)], with_ours: false, form };

/// Four units go to the XOR engine and a parity comes; five are sent, received and go to disks. Among bricks each data brick sends its unit
/// on to the parity brick.
fn form(topology: Topology, _: (Raid, Operation)) -> Form {
    match topology {
        Topology::Direct => Form::new(10.0, 0.0, 10.0),
        Topology::Gateway | Topology::Coordinator => Form::new(4.0, 14.0, 10.0),
        Topology::Amongst => Form::new(4.0, 0.0, 22.0),
    }
}

impl Experiment for Fig7 {
    fn id(&self) -> &str {
        "netraid.fig7"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Full stripes: crossings of memory buses, and messages"
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
        let mut claims = COUNTING.claims(table);
        claims.extend(counted::same_for_locks_and_stamps(table, Raid::Four));
        claims.extend(counted::exchanges(table, 5.0));
        claims.extend(counted::direct_is_extreme(table));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        COUNTING.charts(self.id(), table)
    }

    fn notes(&self) -> Vec<String> {
        counted::notes()
    }
}
