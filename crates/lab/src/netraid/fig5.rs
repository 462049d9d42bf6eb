//! Figure 5: what reads place on memories, and in messages.

use super::counted::{Counting, Form, Operation, Raid};
use super::setup::Topology;

pub(super) const FIG5: Counting = Counting {
    id: "netraid.fig5",
    title: "Reads: crossings of memory buses, and messages",
    operations: &[(Raid::One, Operation::Read), (Raid::Four, Operation::Read)],
    with_ours: false,
    form,
    in_text: |_| Vec::new(),
};

/// A unit goes once from disk to memory and once to the network; whoever takes it has it once, and passes it on once more.
fn form(topology: Topology, _: (Raid, Operation)) -> Form {
    match topology {
        Topology::Direct | Topology::Amongst => Form::new(1.0, 0.0, 2.0),
        Topology::Gateway | Topology::Coordinator => Form::new(1.0, 2.0, 2.0),
    }
}
