//! How versions get their ids: each is given out once, whatever becomes of the index's files.
//!
//! An id has an epoch, which was drawn when the index was made, the shard's number, and a number that grows. Epoch and number together are the *position*, of
//! 56 bits.
//!
//! Files that are put back from a copy have an earlier position: what was given out since they do not know of, and bricks have its fragments. So each *life* of a
//! shard, from a start of its process on, begins ahead of the life before, by more than any life gives out, and by a distance that is drawn. Two lives that go on
//! from the same files begin at different positions. What is skipped was not given out by this index, as far as it knows: it never says that such a version is gone.

use super::keys::Counts;
use base::ObjectVersion;
use wire::object::Pack;
use wire::{DecodeError, Wire, wire_struct};

const NUMBER_BITS: u32 = 36;
const SHARD_BITS: u32 = 7;
pub(super) const EPOCH_BITS: u32 = 20;
/// The most shards of an index.
pub(super) const SHARDS_MAX: u16 = 1 << SHARD_BITS;
const POSITIONS: u64 = 1 << (EPOCH_BITS + NUMBER_BITS);
/// A life begins ahead of the one before by one to two of so many parts of what is left: then that lasts for tens of thousands of lives, and a life may give out 2^40 ids.
const PARTS_BITS: u32 = 14;

/// Whether a stranger's epoch and number are ones that may be.
pub(super) fn is_sound(epoch: u32, number: u64) -> bool {
    epoch >> EPOCH_BITS == 0 && number >> NUMBER_BITS == 0
}

/// The shard that gave a version out.
pub(super) fn shard_of(version: ObjectVersion) -> u16 {
    (version.0 >> NUMBER_BITS) as u16 & (SHARDS_MAX - 1)
}

fn position(epoch: u32, number: u64) -> u64 {
    u64::from(epoch) << NUMBER_BITS | number
}

fn position_of(version: ObjectVersion) -> u64 {
    let epoch = (version.0 >> (NUMBER_BITS + SHARD_BITS)) as u32;
    position(epoch, version.0 & ((1 << NUMBER_BITS) - 1))
}

/// The lives of a shard, as they are stored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Lives {
    /// What each gave out but the last: the first position, and what follows the last one.
    past: Vec<(u64, u64)>,
    /// Where the last one began.
    from: u64,
}

wire_struct!(Lives { past, from });

/// What a shard has given out, and gives out next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ids {
    shard: u16,
    counts: Counts,
    past: Vec<(u64, u64)>,
    /// Where this life began; none as long as it has given out nothing.
    from: Option<u64>,
    drawn: u64,
}

impl Ids {
    /// Of a shard that starts, by what it finds; `drawn` is another number for each start.
    pub(super) fn start(
        shard: u16,
        drawn: u64,
        counts: Option<&[u8]>,
        lives: Option<&[u8]>,
    ) -> Result<Ids, DecodeError> {
        let Some(counts) = counts.map(Counts::from_bytes).transpose()? else {
            return Ok(Ids { shard, counts: Counts::new(drawn), past: Vec::new(), from: None, drawn });
        };
        // Earlier releases had one life.
        let one = Lives { past: Vec::new(), from: position(counts.epoch, 0) };
        let Lives { mut past, from } = lives.map(Lives::from_bytes).transpose()?.unwrap_or(one);
        past.push((from, position(counts.epoch, counts.next)));
        Ok(Ids { shard, counts, past, from: None, drawn })
    }

    /// The next id, and whether it is the first one of this life: then [`Ids::lives`] are to be stored with it.
    pub(super) fn take(&mut self) -> (ObjectVersion, bool) {
        let is_first = self.from.is_none();
        if is_first {
            self.begin_life();
        }
        let Counts { epoch, next, .. } = self.counts;
        self.counts.next += 1;
        assert!(is_sound(epoch, next), "no shard lives to see so many versions");
        let of_shard = u64::from(epoch) << SHARD_BITS | u64::from(self.shard);
        (ObjectVersion(of_shard << NUMBER_BITS | next), is_first)
    }

    fn begin_life(&mut self) {
        let last = position(self.counts.epoch, self.counts.next);
        let from = match self.past.is_empty() {
            true => last,
            false => {
                let step = ((POSITIONS - last) >> PARTS_BITS).max(1);
                let ahead =
                    last + step + mix(self.drawn ^ u64::from(self.shard) ^ last.rotate_left(20)) % step;
                // Neighbours lie together from the first one on.
                ahead.next_multiple_of(Pack::VERSIONS).min(POSITIONS - 1)
            }
        };
        self.from = Some(from);
        self.counts.epoch = (from >> NUMBER_BITS) as u32;
        self.counts.next = from & ((1 << NUMBER_BITS) - 1);
    }

    /// Whether this shard, in some life that it knows of, gave a version out.
    pub(super) fn gave(&self, version: ObjectVersion) -> bool {
        let at = position_of(version);
        let end = position(self.counts.epoch, self.counts.next);
        let before = self.past.partition_point(|(from, _)| *from <= at);
        let in_past = before.checked_sub(1).is_some_and(|last| at < self.past[last].1);
        let is_now = self.from.is_some_and(|from| (from..end).contains(&at));
        shard_of(version) == self.shard && version.0 >> 63 == 0 && (in_past || is_now)
    }

    pub(super) fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// What is to be stored of lives.
    pub(super) fn lives(&self) -> Lives {
        let from = self.from.expect("a life that has begun is stored");
        Lives { past: self.past.clone(), from }
    }
}

/// An even number for each.
fn mix(of: u64) -> u64 {
    let mixed = of.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What a shard finds when it starts.
    type Files = (Option<Vec<u8>>, Option<Vec<u8>>);

    fn start(drawn: u64, files: &Files) -> Ids {
        Ids::start(3, drawn, files.0.as_deref(), files.1.as_deref()).expect("sound files")
    }

    /// Gives so many out: what they are, and the files that it leaves.
    fn live(mut ids: Ids, count: usize) -> (Vec<ObjectVersion>, Files, Ids) {
        let given: Vec<ObjectVersion> = (0..count).map(|_| ids.take().0).collect();
        let files = (Some(ids.counts().to_bytes()), Some(ids.lives().to_bytes()));
        (given, files, ids)
    }

    #[test]
    fn versions_name_their_shard_and_their_index() {
        let mut ids = start(0xfff_ffff_ffff, &(None, None));
        let (version, is_first) = ids.take();
        assert!(is_first && version.0 >> 63 == 0 && shard_of(version) == 3 && ids.gave(version));
        assert!(!ids.gave(ObjectVersion(version.0 + 1)), "it is not given out yet");
        assert!(!ids.gave(ObjectVersion(version.0 ^ 1 << NUMBER_BITS)), "another shard gave it out");
        assert!(!start(7, &(None, None)).gave(version), "another index gave it out");
        assert!(!ids.take().1);
    }

    /// Found by reading: an index whose files were put back gave numbers out once more whose fragments bricks had.
    #[test]
    fn files_that_are_put_back_give_nothing_out_again_and_do_not_judge_what_they_do_not_know() {
        let (first, copy, _) = live(start(1, &(None, None)), 1000);
        let mut given: BTreeSet<ObjectVersion> = first.iter().copied().collect();
        let (since, _, _) = live(start(2, &copy), 1000);
        given.extend(since.iter().copied());
        // The copy is put back again and again; now and then it lives on.
        for drawn in 3..50 {
            let ids = start(drawn, &copy);
            assert!(first.iter().all(|version| ids.gave(*version)), "of before the copy");
            assert!(!since.iter().any(|version| ids.gave(*version)), "of after the copy");
            let (more, files, ids) = live(ids, 100);
            let (again, _, ids_again) = live(start(drawn + 1000, &files), 100);
            assert!(more.iter().all(|version| ids.gave(*version) && ids_again.gave(*version)));
            assert!(more[0] < again[0] && first[999] < more[0], "later ones are larger");
            for version in more.iter().chain(&again) {
                assert!(given.insert(*version), "{version} is given out twice");
            }
        }
    }

    #[test]
    fn files_of_earlier_releases_go_on_and_starts_without_end_use_nothing_up() {
        let counts = Counts { epoch: (1 << EPOCH_BITS) - 2, next: 500, has_shares: false };
        let mut files = (Some(counts.to_bytes()), None);
        let old = ObjectVersion((u64::from(counts.epoch) << SHARD_BITS | 3) << NUMBER_BITS | 499);
        let mut last = old;
        for drawn in 0..3000 {
            let (given, now, ids) = live(start(drawn, &files), 200);
            assert!(ids.gave(old) && given[0] > last, "{drawn}");
            (last, files) = (given[199], now);
        }
        let left = POSITIONS - position_of(last);
        assert!(left > 1 << 35, "{left} are left of {}", 1_u64 << 37);
    }
}
