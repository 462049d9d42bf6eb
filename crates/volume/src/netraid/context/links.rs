//! Where a coordinator puts the records of requests whose parts are decided together ([`crate::netraid::link`]).
//!
//! Of each group it has a number of addresses, at which nobody else writes. A record must stand for as long as one of the writes that it decides may
//! be in doubt: whoever finds another record at its address takes it for one that never took effect. So an address is written again only
//! when the record there did not take effect, or all its writes are decided on stable storage.

use base::{GroupId, HashMap, Stamp, VolumeId};
use wire::{OPERATIONS_MAX, WriteId};

/// Where the records of a volume lie that a group decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Records {
    pub volume: VolumeId,
    pub group: GroupId,
    /// The first address.
    pub first: u64,
    /// How many there are.
    pub count: u32,
}

/// An address, and the stamp of what is there. A record is written only over that: what became of it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) lba: u64,
    pub(crate) stamp: Stamp,
}

/// A record that took effect, or may have, and the writes that go by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) at: Address,
    pub(crate) writes: Vec<WriteId>,
}

/// What is at the addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Found {
    pub(crate) free: Vec<Address>,
    pub(crate) kept: Vec<Kept>,
}

#[derive(Debug, Default)]
struct Pool {
    known: Known,
    /// Those that may be used, the latest used last.
    free: Vec<Address>,
    kept: Vec<Kept>,
    /// Whether it is being found out which of them are needed no more.
    is_releasing: bool,
}

/// Whether it is known what an earlier gateway with the same number has left at the addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Known {
    #[default]
    No,
    IsLookedAt,
    Yes,
}

/// The addresses of all records, and which are free.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pools: HashMap<Records, Pool>,
}

impl Links {
    /// Whether somebody has to look what is at the addresses. Then whoever asks is to see to it.
    pub(crate) fn is_to_be_looked_at(&mut self, records: Records) -> bool {
        let pool = self.pools.entry(records).or_default();
        let is_unknown = pool.known == Known::No;
        if is_unknown {
            pool.known = Known::IsLookedAt;
        }
        is_unknown
    }

    /// That is at the addresses; `None` where it was not found out. What is in neither list cannot be used.
    pub(crate) fn on_looked_at(&mut self, records: Records, found: Option<Found>) {
        let Some(pool) = self.pools.get_mut(&records) else { return };
        let Some(Found { free, kept }) = found else {
            pool.known = Known::No;
            return;
        };
        *pool = Pool { known: Known::Yes, free, kept, is_releasing: false };
    }

    /// Something else was there than is known here: it has to be looked at anew.
    pub(crate) fn is_unknown(&mut self, records: Records) {
        self.pools.remove(&records);
    }

    /// An address for a new record; none while all are needed, or it is not known what is there. Those that were used lately come first, so that not
    /// more are used than have to be.
    pub(crate) fn take(&mut self, records: Records) -> Option<Address> {
        self.known(records)?.free.pop()
    }

    fn known(&mut self, records: Records) -> Option<&mut Pool> {
        self.pools.get_mut(&records).filter(|pool| pool.known == Known::Yes)
    }

    /// No record took effect at the address, nor will any that was begun: what was there is there still.
    pub(crate) fn give_back(&mut self, records: Records, at: Address) {
        if let Some(pool) = self.known(records) {
            // Behind the others: a member may still have what was begun.
            pool.free.insert(0, at);
        }
    }

    /// A record took effect, or may have.
    pub(crate) fn keep(&mut self, records: Records, kept: Kept) {
        if let Some(pool) = self.known(records) {
            pool.kept.push(kept);
        }
    }

    /// Whether it is time to find out which records are needed no more: half of the addresses are taken up by such as took effect. Then
    /// whoever asks is to see to it.
    pub(crate) fn is_release_due(&mut self, records: Records) -> bool {
        let Some(pool) = self.known(records) else { return false };
        let is_due = !pool.is_releasing && pool.kept.len() * 2 >= records.count as usize;
        pool.is_releasing |= is_due;
        is_due
    }

    /// The earliest of those records, with as many writes as a brick is asked about at once.
    pub(crate) fn take_kept(&mut self, records: Records) -> Vec<Kept> {
        let Some(pool) = self.known(records) else { return Vec::new() };
        let mut writes = 0;
        let fits = |kept: &&Kept| {
            writes += kept.writes.len();
            writes <= OPERATIONS_MAX
        };
        let count = pool.kept.iter().take_while(fits).count();
        pool.kept.drain(..count).collect()
    }

    /// Of some records it was found out that nothing is in doubt any more, and of others it was not. Those are tried again after all others.
    pub(crate) fn end_release(&mut self, records: Records, decided: Vec<Kept>, others: Vec<Kept>) {
        let Some(pool) = self.known(records) else { return };
        pool.is_releasing = false;
        pool.free.extend(decided.into_iter().map(|kept| kept.at));
        pool.kept.extend(others);
    }

    /// A volume is no more.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.pools.retain(|records, _| records.volume != volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: Records = Records { volume: VolumeId(1), group: GroupId(1), first: 100, count: 4 };

    fn at(lba: u64, stamp: u64) -> Address {
        Address { lba, stamp: Stamp(stamp) }
    }

    fn kept(lba: u64, stamp: u64) -> Kept {
        Kept { at: at(lba, stamp), writes: Vec::new() }
    }

    fn opened(found: Found) -> Links {
        let mut links = Links::default();
        assert!(links.is_to_be_looked_at(RECORDS) && !links.is_to_be_looked_at(RECORDS), "one sees to it");
        links.on_looked_at(RECORDS, None);
        assert!(links.is_to_be_looked_at(RECORDS) && links.take(RECORDS).is_none());
        links.on_looked_at(RECORDS, Some(found));
        links
    }

    #[test]
    fn an_address_is_used_again_only_when_its_writes_are_decided() {
        let free = (0..4).map(|n| at(100 + n, 0)).collect();
        let mut links = opened(Found { free, kept: Vec::new() });
        let taken: Vec<Address> = (0..4).filter_map(|_| links.take(RECORDS)).collect();
        assert_eq!((taken[0], taken.len(), links.take(RECORDS)), (at(103, 0), 4, None));
        links.give_back(RECORDS, at(102, 0));
        assert_eq!(links.take(RECORDS), Some(at(102, 0)), "nothing took effect there");
        links.keep(RECORDS, kept(101, 7));
        assert!(!links.is_release_due(RECORDS));
        links.keep(RECORDS, kept(100, 8));
        assert!(links.is_release_due(RECORDS) && !links.is_release_due(RECORDS), "one sees to it");
        let all = links.take_kept(RECORDS);
        links.end_release(RECORDS, Vec::new(), all);
        assert_eq!(links.take(RECORDS), None, "that was not found out");
        assert!(links.is_release_due(RECORDS));
        let mut all = links.take_kept(RECORDS);
        links.end_release(RECORDS, vec![all.remove(0)], all);
        assert_eq!(
            (links.take(RECORDS), links.take(RECORDS)),
            (Some(at(101, 7)), None),
            "over what is there"
        );
    }

    #[test]
    fn what_an_earlier_gateway_left_is_in_use() {
        let found = Found { free: vec![at(102, 0), at(100, 3)], kept: vec![kept(101, 5)] };
        let mut links = opened(found);
        assert_eq!((links.take(RECORDS), links.take(RECORDS)), (Some(at(100, 3)), Some(at(102, 0))));
        links.is_unknown(RECORDS);
        links.give_back(RECORDS, at(100, 3));
        assert_eq!(links.take(RECORDS), None, "it has to be looked at anew");
    }
}
