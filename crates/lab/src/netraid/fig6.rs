//! Figure 6: what small writes place on memories, and in messages.

use super::counted::{self, Counting, Form, Operation, Raid};
use super::setup::{DIRECT_TS, GW_TS, Topology, find, is_papers};
use crate::claim::{Claim, claim};
use crate::experiment::Table;

pub(super) const FIG6: Counting = Counting {
    id: "netraid.fig6",
    title: "Small writes: crossings of memory buses, and messages",
    operations: &[(Raid::One, Operation::SmallWrite), (Raid::Four, Operation::SmallWrite)],
    with_ours: true,
    form,
    in_text,
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

fn in_text(table: &Table) -> Vec<Claim> {
    let client = |protocol: &str| counted::figure(table, Raid::Four, protocol, "client");
    let mut claims = Vec::new();
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
