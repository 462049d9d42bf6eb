//! Figure 6: what small writes place on memories, and in messages.

use super::counted::{self, Counting, Form, Operation, Raid};
use super::setup::{self, DIRECT_TS, GW_TS, Topology, find, is_papers};
use crate::cell::Row;
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig6;

const COUNTING: Counting = Counting {
    operations: &[(Raid::One, Operation::SmallWrite), (Raid::Four, Operation::SmallWrite)],
    with_ours: true,
    form,
};

/// Of copies: each is sent, received, and goes to a disk. Of a unit with parity: the old unit and the old parity are read and received, both and the
/// new unit go to the XOR engine and a new parity comes, and both are sent, received and go to disks. Among bricks, each of both reads what it has, and
/// adds something to it; only the difference is sent on.
fn form(topology: Topology, what: (Raid, Operation)) -> Form {
    match (what.0, topology) {
        (Raid::One, Topology::Direct) => Form::new(2.0, 0.0, 4.0),
        (Raid::One, Topology::Gateway | Topology::Coordinator) => Form::new(1.0, 3.0, 4.0),
        (Raid::One, Topology::Amongst) => Form::new(1.0, 0.0, 5.0),
        (Raid::Four, Topology::Direct) => Form::new(8.0, 0.0, 8.0),
        (Raid::Four, Topology::Gateway | Topology::Coordinator) => Form::new(1.0, 9.0, 8.0),
        (Raid::Four, Topology::Amongst) => Form::new(1.0, 0.0, 13.0),
    }
}

impl Experiment for Fig6 {
    fn id(&self) -> &str {
        "netraid.fig6"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Small writes: crossings of memory buses, and messages"
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
        let client = |protocol: &str| counted::figure(table, Raid::Four, protocol, "client");
        let mut claims = COUNTING.claims(table);
        if let (Some(direct), Some(gw)) = (find(DIRECT_TS), find(GW_TS))
            && is_papers(direct)
        {
            let what = format!("RAID 4: client, {direct} over {gw}: \"7 or 8 times\"");
            claims.push(claim(what, 7.5, client(direct) / client(gw), [7.0, 8.0]));
        }
        claims.extend(counted::same_for_locks_and_stamps(table, Raid::Four));
        claims.extend(counted::exchanges(table, 2.0));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        COUNTING.charts(self.id(), table)
    }

    fn notes(&self) -> Vec<String> {
        counted::notes()
    }
}
