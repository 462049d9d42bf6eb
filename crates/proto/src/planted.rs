//! Faults that tests plant on purpose, to see that the checkers find them. None is reachable without the feature
//! `planted`.

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Plant {
    /// Nothing.
    #[default]
    None,
    /// A brick works on requests under any view once it has one.
    FencingOff,
    /// A member takes a write whatever stamps are there.
    TimestampCheckOff,
    /// A member that catches up takes one block in many for equal without looking.
    ResyncSkipsABlock,
    /// A member that catches up fetches from members that themselves lack writes.
    RebuildReadsStaleCopy,
    /// The groups of a family move to a new head each at its own time.
    SnapshotBrickByBrick,
}

impl Plant {
    /// Whether `plant` is planted.
    pub(crate) fn has(self, plant: Plant) -> bool {
        cfg!(feature = "planted") && self == plant
    }
}
