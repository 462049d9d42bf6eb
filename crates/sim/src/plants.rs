//! Bugs on purpose: that the checkers find each of them, under the same mix of faults as any run, shows what they are
//! worth. Without the feature `planted` none can be planted.

/// The names of the bugs.
pub const NAMES: [&str; 35] = [
    "fencing_off",
    "old_store_unnoticed",
    "old_disk_unnoticed",
    "counts_at_once",
    "lease_outlives_view",
    "stand_in_counts_early",
    "sealed_is_believed",
    "tells_all_at_once",
    "keeps_deletions",
    "repeats_at_once",
    "forgets_no_volume",
    "keeps_branches",
    "lends_twice",
    "checksum_on_read_off",
    "journal_sync_off",
    "timestamp_check_off",
    "later_stamps_unseen",
    "resync_skips_a_block",
    "rebuild_reads_stale_copy",
    "snapshot_brick_by_brick",
    "undecided_unseen",
    "goes_back_unasked",
    "units_in_pieces",
    "record_unasked",
    "believes_one",
    "put_ends_early",
    "commits_unheld",
    "replaces_unasked",
    "restores_nothing",
    "forgets_sharers",
    "shares_moved",
    "gives_back_unnoted",
    "trusts_fragments",
    "keeps_called_off",
    "looks_late",
];

/// The last so many take objects to be found: where one of them is planted objects are put and read.
const OF_OBJECTS_COUNT: usize = 10;
pub(crate) const OF_OBJECTS: &[&str] = NAMES.split_at(NAMES.len() - OF_OBJECTS_COUNT).1;

/// Each is found within so many seeds.
pub const SEEDS: u64 = 200;

#[cfg(feature = "planted")]
mod planted {
    use crate::world::role::Brick;
    use crate::world::{Durability, World};
    use roles::directory::Directory;
    use roles::gateway::Gateway;
    use rules::planted::{Plant, rules};
    use store::StoreConfig;

    fn plant_of(name: Option<&str>) -> Option<Plant> {
        Some(match name? {
            "fencing_off" => Plant::FencingOff,
            "old_store_unnoticed" => Plant::OldStoreUnnoticed,
            "old_disk_unnoticed" => Plant::OldDiskUnnoticed,
            "counts_at_once" => Plant::CountsAtOnce,
            "lease_outlives_view" => Plant::LeaseOutlivesView,
            "stand_in_counts_early" => Plant::StandInCountsEarly,
            "sealed_is_believed" => Plant::SealedIsBelieved,
            "tells_all_at_once" => Plant::TellsAllAtOnce,
            "keeps_deletions" => Plant::KeepsDeletions,
            "repeats_at_once" => Plant::RepeatsAtOnce,
            "forgets_no_volume" => Plant::ForgetsNoVolume,
            "keeps_branches" => Plant::KeepsBranches,
            "lends_twice" => Plant::LendsTwice,
            "timestamp_check_off" => Plant::TimestampCheckOff,
            "later_stamps_unseen" => Plant::LaterStampsUnseen,
            "resync_skips_a_block" => Plant::ResyncSkipsABlock,
            "rebuild_reads_stale_copy" => Plant::RebuildReadsStaleCopy,
            "snapshot_brick_by_brick" => Plant::SnapshotBrickByBrick,
            "undecided_unseen" => Plant::UndecidedUnseen,
            "goes_back_unasked" => Plant::GoesBackUnasked,
            "units_in_pieces" => Plant::UnitsInPieces,
            "record_unasked" => Plant::RecordUnasked,
            "believes_one" => Plant::BelievesOne,
            "put_ends_early" => Plant::PutEndsEarly,
            "commits_unheld" => Plant::CommitsUnheld,
            "replaces_unasked" => Plant::ReplacesUnasked,
            "restores_nothing" => Plant::RestoresNothing,
            "forgets_sharers" => Plant::ForgetsSharers,
            "shares_moved" => Plant::SharesMoved,
            "gives_back_unnoted" => Plant::GivesBackUnnoted,
            "trusts_fragments" => Plant::TrustsFragments,
            "keeps_called_off" => Plant::KeepsCalledOff,
            "looks_late" => Plant::LooksLate,
            // Found by runs of the timed world, whose disks are slow, and not by the torture.
            "door_stands_open" => Plant::DoorStandsOpen,
            "door_opens_late" => Plant::DoorOpensLate,
            _ => return None,
        })
    }

    impl World {
        pub(crate) fn plant_all(&mut self) {
            let plant = self.shape.plant.as_deref();
            if plant == Some("journal_sync_off") {
                self.physics.set_durability(Durability::Cached);
            }
        }

        pub(crate) fn plant_store(&self, config: StoreConfig) -> StoreConfig {
            match self.shape.plant.as_deref() {
                Some("checksum_on_read_off") => StoreConfig { sum_check: store::planted::ANY_SUM, ..config },
                _ => config,
            }
        }

        pub(crate) fn plant_directory(&self, directory: &mut Directory) {
            directory.set_rules(rules(plant_of(self.shape.plant.as_deref())));
        }

        pub(crate) fn plant_gateway(&self, gateway: &mut Gateway) {
            gateway.set_rules(rules(plant_of(self.shape.plant.as_deref())));
        }

        pub(crate) fn plant_brick(&self, brick: &mut Brick) {
            brick.set_rules(rules(plant_of(self.shape.plant.as_deref())));
        }
    }
}

#[cfg(not(feature = "planted"))]
mod planted {
    use crate::world::World;
    use crate::world::role::Brick;
    use roles::directory::Directory;
    use roles::gateway::Gateway;
    use store::StoreConfig;

    impl World {
        pub(crate) fn plant_all(&mut self) {
            assert!(self.shape.plant.is_none(), "a build without the feature `planted` has no bugs to plant");
        }
        pub(crate) fn plant_store(&self, config: StoreConfig) -> StoreConfig {
            config
        }
        pub(crate) fn plant_directory(&self, _directory: &mut Directory) {}
        pub(crate) fn plant_gateway(&self, _gateway: &mut Gateway) {}
        pub(crate) fn plant_brick(&self, _brick: &mut Brick) {}
    }
}
