//! The names of what a volume's data go by: the protocol of its writes, and the rule by which its groups and extents are placed.

use crate::{Version, Writer, choices};

choices! {
    /// Who coordinates, what orders, and what makes a write atomic: `path,order,atomicity`. Its parts are in `proto::netraid`.
    Protocol, "protocol";
    /// A gateway coordinates; stamps order, and a later one waits behind an earlier one; a write is prepared at all members, then
    /// decided, and stamps are compared where a read has no lease.
    GwTsWait2pcwRead = "gw,ts-wait,2pcw+read",
}

choices! {
    /// How a family's groups are made of bricks, and which of them gets an extent. What each does is in `proto::layout::placement`.
    Placement, "placement rule";
    /// Bricks are drawn by hashing, in proportion to their capacity; an extent's group is drawn by its number.
    Hashed = "hashed",
    /// Bricks are taken by the formula of replicated declustering, equally often; consecutive extents lie on consecutive groups.
    Periodic = "periodic",
    /// Bricks are drawn so that each is in as many groups as its capacity says, or one more or less; extents are placed as by `hashed`.
    Weighted = "weighted",
    ; known_to known_to
}

/// The version that brought rules other than `hashed`.
const RULES: u32 = 7;

impl Placement {
    /// Whether the reader finds extents that are placed by it. One that knows no rules finds those of `weighted` volumes, which
    /// lie on groups as those of `hashed` ones do; which bricks make a group it reads in the group's view.
    pub(crate) fn is_clear_to(self, out: &Writer<'_>) -> bool {
        out.knows(RULES) || self != Placement::Periodic
    }

    /// The version of a directory that makes volumes by it.
    pub(crate) fn since(self) -> Version {
        if self == Placement::Hashed { Version::OLDEST } else { Version(RULES) }
    }
}

/// The rule itself, or what a reader that knows no rules takes all for.
fn known_to(out: &Writer<'_>, placement: Placement) -> Placement {
    if out.knows(RULES) { placement } else { Placement::Hashed }
}
