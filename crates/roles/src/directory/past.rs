//! A directory behind which lie years. Runs of the simulator take a minute: counters that always begin at one, and a map in which
//! nothing was ever deleted, would not show what comes of years.

use super::records::{LoanRecord, Records};
use base::{GatewayId, Loan, VolumeId};

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
    /// So many numbers a little behind that one are lent for centuries to gateways that nobody hears any more.
    pub lent: u16,
    /// So many volumes were deleted last.
    pub deletions: u64,
    /// Whether ids have been known as deleted by their numbers from the first one on.
    pub is_numbered: bool,
}

impl Past {
    /// So many numbers from the next one on are free where some behind them are lent.
    const FREE_BEFORE: u16 = 2;
    /// A new cluster.
    pub const NONE: Past = Past {
        version: 1,
        next_volume: 1,
        next_group: 1,
        next_writer: 1,
        lent: 0,
        deletions: 0,
        is_numbered: false,
    };

    fn loan(&self) -> (u16, Loan) {
        (self.next_writer + Past::FREE_BEFORE, Loan::UNBOUNDED)
    }

    /// The numbers that are lent, and for which times.
    pub fn loans(&self) -> impl Iterator<Item = (u16, Loan)> {
        let (first, loan) = self.loan();
        (first..first + self.lent).map(move |number| (number, loan))
    }

    /// What the directory's store holds.
    pub fn contents(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = Records::load(&[]).expect("nothing is well-formed");
        records.counts.version = self.version;
        records.counts.next_volume = self.next_volume;
        records.counts.next_group = self.next_group;
        records.counts.next_writer = self.next_writer;
        let (first, loan) = self.loan();
        let gateway = GatewayId(u64::MAX);
        if self.lent > 0 {
            records.loans.insert(first, LoanRecord { gateway, count: self.lent, loan });
        }
        let deleted = (1..=self.deletions).map(|n| (self.version - n, VolumeId(self.next_volume - n)));
        records.deleted = deleted.collect();
        records.forgotten.counts_from = VolumeId(1);
        let puts = records.deleted.keys().map(|version| records.put_deleted(*version));
        let forgotten = self.is_numbered.then(|| records.put_forgotten());
        let puts = puts.chain([records.put_counts(), records.put_loan(first)]).chain(forgotten);
        puts.filter_map(|(key, value)| Some((key, value?))).collect()
    }
}
