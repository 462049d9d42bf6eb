//! The holder that a hash of the address names: always the same one, so that a block is cached at one brick. D-SPTF's
//! "decentralized hashing", and its rule for who keeps a written block (section 3: hash(address) mod replicas).
//!
//! The hash is taken with each brick, and the highest wins: when one is away, only its addresses go elsewhere.

use super::load::Load;
use super::policy::{Part, Policy};
use base::{BrickId, Time};

/// The holder that a hash of the place names.
#[derive(Debug)]
pub struct Hash {
    /// How many bytes are one place, which is served by one brick.
    pub granule: u64,
}

impl Policy for Hash {
    fn one(&mut self, _now: Time, part: &Part<'_>, _load: &Load) -> Option<u8> {
        choose(part.address / self.granule, part.holders)
    }
}

/// The holder of `address` among `candidates` `(slot, brick)`.
pub fn choose(address: u64, candidates: &[(u8, BrickId)]) -> Option<u8> {
    candidates.iter().max_by_key(|(_, brick)| weight(address, *brick)).map(|(slot, _)| *slot)
}

/// The one of `holders` that keeps the block at `address` in its cache after it was written.
pub fn keeper(address: u64, holders: &[BrickId]) -> Option<BrickId> {
    holders.iter().copied().max_by_key(|brick| weight(address, *brick))
}

/// Spreads `(address, brick)` over 64 bits, the same everywhere.
pub(super) fn weight(address: u64, brick: BrickId) -> u64 {
    let mut mixed =
        address.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(brick.0).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_spread_evenly_and_move_only_when_their_brick_leaves() {
        let all: Vec<(u8, BrickId)> = (0..8).map(|slot| (slot, BrickId(u32::from(slot) + 40))).collect();
        let mut counts = [0u32; 8];
        for address in 0..80_000 {
            let slot = choose(address * 8, &all).expect("eight candidates");
            counts[usize::from(slot)] += 1;
            let rest: Vec<_> = all.iter().copied().filter(|(other, _)| *other != 3).collect();
            assert!(slot == 3 || choose(address * 8, &rest) == Some(slot));
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(choose(1, &[]), None);
    }
}
