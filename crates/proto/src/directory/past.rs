//! A directory behind which lie years. Runs of the simulator take a minute: counters that always begin at one, and a map in which
//! nothing was ever deleted, would not show what comes of years.

use super::records::Records;
use base::VolumeId;

/// What is left of the years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The version of the map; larger than the number of deletions.
    pub version: u64,
    /// The id of the next volume or branch; larger than the number of deletions.
    pub next_volume: u64,
    pub next_group: u64,
    /// The number of the next gateway's stamps.
    pub next_writer: u16,
    /// So many volumes were deleted last.
    pub deletions: u64,
}

impl Past {
    /// A new cluster.
    pub const NONE: Past = Past { version: 1, next_volume: 1, next_group: 1, next_writer: 1, deletions: 0 };

    /// What the directory's store holds.
    pub fn contents(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = Records::load(&[]).expect("nothing is well-formed");
        records.counts.version = self.version;
        records.counts.next_volume = self.next_volume;
        records.counts.next_group = self.next_group;
        records.counts.next_writer = self.next_writer;
        let deleted = (1..=self.deletions).map(|n| (self.version - n, VolumeId(self.next_volume - n)));
        records.deleted = deleted.collect();
        let puts = records.deleted.keys().map(|version| records.put_deleted(*version));
        let puts = puts.chain([records.put_counts()]);
        puts.filter_map(|(key, value)| Some((key, value?))).collect()
    }
}
