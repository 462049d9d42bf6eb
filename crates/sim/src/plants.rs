//! Bugs on purpose: that the checkers find each of them, under the same mix of faults as any run, shows what they are
//! worth. Without the feature `planted` none can be planted.

/// The names of the bugs.
pub const NAMES: [&str; 7] = [
    "fencing_off",
    "checksum_on_read_off",
    "journal_sync_off",
    "timestamp_check_off",
    "resync_skips_a_block",
    "rebuild_reads_stale_copy",
    "snapshot_brick_by_brick",
];

/// Each is found within so many seeds.
pub const SEEDS: u64 = 200;

#[cfg(feature = "planted")]
mod planted {
    use crate::world::World;
    use node::BrickNode;
    use proto::directory::Directory;
    use proto::planted::Plant;

    fn plant_of(name: Option<&str>) -> Plant {
        match name {
            Some("fencing_off") => Plant::FencingOff,
            Some("timestamp_check_off") => Plant::TimestampCheckOff,
            Some("resync_skips_a_block") => Plant::ResyncSkipsABlock,
            Some("rebuild_reads_stale_copy") => Plant::RebuildReadsStaleCopy,
            Some("snapshot_brick_by_brick") => Plant::SnapshotBrickByBrick,
            _ => Plant::None,
        }
    }

    impl World {
        /// Breaks what is broken for all that runs on this thread.
        pub(crate) fn plant_all(&self) {
            store::planted::ignore_sums(self.shape.plant.as_deref() == Some("checksum_on_read_off"));
        }

        pub(crate) fn plant_directory(&self, directory: &mut Directory) {
            directory.plant(plant_of(self.shape.plant.as_deref()));
        }

        pub(crate) fn plant_brick(&self, brick: &mut BrickNode) {
            brick.plant(plant_of(self.shape.plant.as_deref()));
        }

        /// Whether what is to be durable is only cached.
        pub(crate) fn forgets_to_sync(&self) -> bool {
            self.shape.plant.as_deref() == Some("journal_sync_off")
        }
    }
}

#[cfg(not(feature = "planted"))]
mod planted {
    use crate::world::World;
    use node::BrickNode;
    use proto::directory::Directory;

    impl World {
        pub(crate) fn plant_all(&self) {
            assert!(self.shape.plant.is_none(), "a build without the feature `planted` has no bugs to plant");
        }
        pub(crate) fn plant_directory(&self, _directory: &mut Directory) {}
        pub(crate) fn plant_brick(&self, _brick: &mut BrickNode) {}
        pub(crate) fn forgets_to_sync(&self) -> bool {
            false
        }
    }
}
