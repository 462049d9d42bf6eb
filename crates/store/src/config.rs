//! Whose disk a store expects, and the bounds of its memory and queues.

use base::{BrickId, Checksum, ClusterId, checksum};

/// Whose disk it is expected to be, and how much memory it may take.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub cluster: ClusterId,
    pub brick: BrickId,
    /// Which of the brick's disks.
    pub disk_index: u16,
    /// The size of the disk as it is.
    pub disk_bytes: u64,
    /// Memory for clean blocks.
    pub cache_bytes: usize,
    /// Bounds of its queues.
    pub limits: Limits,
    /// Whether a block is what was written, by its checksum. Only tests of the checkers hand in another answer.
    pub sum_check: SumCheck,
    /// What the map of pages is good for when the disk is opened.
    pub map: MapUse,
}

/// What the map of pages is good for when a disk is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MapUse {
    /// What it says need not be read from the pages.
    #[default]
    Trusted,
    /// All pages are read, too, and it is asserted that they say the same: for tests.
    Compared,
    /// All pages are read instead.
    Ignored,
}

/// Tells whether a block fits its checksum.
pub type SumCheck = fn(&[u8], Checksum) -> bool;

fn fits(block: &[u8], sum: Checksum) -> bool {
    checksum(block) == sum
}

/// Bounds of the queues of a store, and how long lazy work may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Content in memory that is staged or not at home yet; beyond it a write gets [`StoreError::NoRoomYet`].
    pub backlog_bytes: usize,
    /// Journalled content at which it is brought home.
    pub destage_bytes: usize,
    /// Commands that wait for the journal.
    pub queue_max: usize,
    pub reads_max: usize,
    /// Metadata pages in memory.
    pub pages_max: usize,
    /// Slots in use, in percent of all, beyond which a write that needs new room gets [`StoreError::NoSpace`]. The rest is
    /// for what gives room back, or makes good what was there.
    pub used_percent_max: u8,
    /// How long an applied write may stay out of the journal.
    pub lazy_ns: u64,
    /// How long journalled content may stay away from home on an idle disk.
    pub idle_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            backlog_bytes: 16 << 20,
            destage_bytes: 4 << 20,
            queue_max: 4096,
            reads_max: 4096,
            pages_max: 512,
            used_percent_max: 95,
            lazy_ns: 20_000_000,
            idle_ns: 1_000_000_000,
        }
    }
}

impl StoreConfig {
    /// With default limits and 64 MiB of cache.
    pub fn new(cluster: ClusterId, brick: BrickId, disk_index: u16, disk_bytes: u64) -> StoreConfig {
        let (limits, map) = (Limits::default(), MapUse::default());
        StoreConfig {
            cluster,
            brick,
            disk_index,
            disk_bytes,
            cache_bytes: 64 << 20,
            limits,
            sum_check: fits,
            map,
        }
    }
}
