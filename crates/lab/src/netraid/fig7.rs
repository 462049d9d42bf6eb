//! Figure 7: what writes of full stripes place on memories, and in messages.

use super::counted::{self, Counting, Form, Operation, Raid};
use super::setup::Topology;
use crate::claim::Claim;
use crate::experiment::Table;

pub(super) const FIG7: Counting = Counting {
    id: "netraid.fig7",
    title: "Full stripes: crossings of memory buses, and messages",
    operations: &[(Raid::Four, Operation::FullStripe)],
    with_ours: false,
    form,
    in_text,
};

/// Four units go to the XOR engine and a parity comes; five are sent, received and go to disks. Among bricks each data brick sends its unit
/// on to the parity brick.
fn form(topology: Topology, _: (Raid, Operation)) -> Form {
    match topology {
        Topology::Direct => Form::new(10.0, 0.0, 10.0),
        Topology::Gateway | Topology::Coordinator => Form::new(4.0, 14.0, 10.0),
        Topology::Amongst => Form::new(4.0, 0.0, 22.0),
    }
}

fn in_text(table: &Table) -> Vec<Claim> {
    let mut claims = counted::same_for_locks_and_stamps(table, Raid::Four);
    claims.extend(counted::exchanges(table, 5.0));
    claims.extend(counted::direct_is_extreme(table));
    claims
}
