//! The names of what a volume's data go by: the protocol of its writes, and the placement of its extents.

use crate::choices;

choices! {
    /// Who coordinates, what orders, and what makes a write atomic: `path,order,atomicity`. Its parts are in `proto::netraid`.
    Protocol, "protocol";
    /// A gateway coordinates; stamps order, and a later one waits behind an earlier one; a write is prepared at all members, then
    /// decided, and stamps are compared where a read has no lease.
    GwTsWait2pcwRead = "gw,ts-wait,2pcw+read",
}

choices! {
    /// Which group of bricks gets an extent.
    Placement, "placement";
    /// The one that a hash of the extent's number picks.
    Hashed = "hashed",
}
