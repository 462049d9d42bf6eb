//! What a store tells of itself: room, and counts since it was opened. Each part of the store counts for itself.

/// The room on a disk, in bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Space {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    /// How full it is, in percent, with what describes the data: 100 as long as there is no room for what was refused
    /// last.
    pub full_percent: u8,
}

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Requests to the disk.
    pub disk: DiskStats,
    pub journal: JournalStats,
    /// Reads, and what checks found.
    pub reads: ReadStats,
    /// Content on its way to its final place.
    pub destage: DestageStats,
    /// What describes the blocks.
    pub pages: PageStats,
}

/// What was asked of the disk to make writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DiskStats {
    pub flushes: u64,
    /// Durable writes asked for (each as good as a flush).
    pub durable_writes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JournalStats {
    pub groups: u64,
    pub group_records: u64,
    /// The most records in one group.
    pub group_records_max: u64,
    /// Bytes written to the journal.
    pub written_bytes: u64,
    /// Bytes of the journal in use now.
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    /// Blocks written straight to their slots.
    pub direct_blocks: u64,
    /// Sheets of notes that stand beside it now.
    pub sheets: u64,
    /// Sheets that were written.
    pub sheets_written: u64,
    /// Whether the journal's last frame was found torn when the disk was opened: 1 or 0.
    pub torn_tails: u64,
    /// Where the journal ended when the disk was opened, in bytes that were ever written to it.
    pub found_bytes: u64,
    /// All bytes that were ever written to it, or are being written.
    pub head_bytes: u64,
    /// Up to where the bytes that were ever written to it are on stable storage, without a checkpoint at the end. It only grows, and the next
    /// opening finds all of it.
    pub durable_bytes: u64,
}

/// Reads of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ReadStats {
    /// Blocks read from the cache.
    pub cache_hits: u64,
    /// Blocks read from the disk.
    pub cache_misses: u64,
    /// Bytes in the cache now.
    pub cache_bytes: u64,
    /// Blocks read from the disk to check them.
    pub verified_blocks: u64,
    /// Blocks found unreadable.
    pub unreadable_blocks: u64,
}

/// Cycles that write journalled content to its final place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DestageStats {
    /// Blocks written to their final place.
    pub blocks: u64,
    pub cycles: u64,
    /// Slots (16 blocks each) of which content is journalled and not at its final place now.
    pub waiting_slots: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PageStats {
    /// Metadata pages on the disk.
    pub count: u64,
    /// Metadata pages whose owner is unknown because nothing of them can be read.
    pub lost: u64,
    /// Metadata pages that were read when the disk was opened, because the map of pages did not say what is there.
    pub read_at_open: u64,
    /// Whether the map was read then, and said where all others are.
    pub is_mapped: bool,
    /// Metadata pages that were damaged on the disk, and written again from memory.
    pub rewritten: u64,
}
