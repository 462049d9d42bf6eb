//! What is likely cached where: which brick served a place last, and how often memory answered when it was asked again.
//!
//! Bricks cache what they read, and nobody says what they have dropped since. An asker can learn that: of each place it remembers which
//! brick served it last, and how many reads that brick has answered since then (the *distance*). For each brick and each power of two of
//! distances it counts how often memory answered. So the size of a cache, and how much of it others use, show by themselves.
//!
//! The table has a fixed size, and a place drives out another one that falls on the same entry.

use base::{BrickId, HashMap};

/// Places that are remembered: 1.5 MiB in all, and 4 GiB of data where a read has 64 KiB.
const PLACES: usize = 1 << 16;
/// Distances count by their powers of two.
const DISTANCES: usize = 20;
/// How much the newest answer weighs.
const NEWEST: f64 = 0.1;

/// A place that a brick served.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    address: u64,
    brick: BrickId,
    /// How many reads the brick had answered then; 0 where nothing is remembered.
    at: u32,
}

/// What is known of a brick.
#[derive(Debug, Default)]
struct Known {
    /// Reads that it has answered.
    answered: u32,
    /// Whether it ever said that its disk was asked. One that never did may be of a release that does not tell.
    tells: bool,
    /// How often memory answered what it had served before, by the distance; none where that did not happen yet.
    from_memory: [Option<f64>; DISTANCES],
}

/// See the module's text. Nothing is kept before somebody asks ([`Cached::likely`]), since most policies never do.
#[derive(Debug, Default)]
pub struct Cached {
    places: Vec<Place>,
    bricks: HashMap<BrickId, Known>,
}

impl Cached {
    /// Who is likely to have `address` in memory, and how likely that is, above nothing at all.
    pub fn likely(&mut self, address: u64) -> Option<(BrickId, f64)> {
        if self.places.is_empty() {
            self.places.resize(PLACES, Place::default());
        }
        let served = self.places[entry(address)];
        let known = self.bricks.get(&served.brick).filter(|_| served.at > 0 && served.address == address)?;
        let likely = known.from_memory[distance(known.answered, served.at)]?;
        (likely > 0.0).then_some((served.brick, likely))
    }

    /// A brick has answered a read, from memory or not.
    pub fn answered(&mut self, brick: BrickId, address: u64, is_from_memory: bool) {
        if self.places.is_empty() {
            return;
        }
        let served = &mut self.places[entry(address)];
        let known = self.bricks.entry(brick).or_default();
        known.tells |= !is_from_memory;
        if !known.tells {
            return;
        }
        if served.at > 0 && served.brick == brick && served.address == address {
            let from_memory = &mut known.from_memory[distance(known.answered, served.at)];
            let new = f64::from(u8::from(is_from_memory));
            *from_memory = Some(from_memory.map_or(new, |old| old + (new - old) * NEWEST));
        }
        known.answered = known.answered.wrapping_add(1).max(1);
        *served = Place { address, brick, at: known.answered };
    }
}

fn entry(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES
}

/// The power of two of how many reads were answered since.
fn distance(answered: u32, at: u32) -> usize {
    let since = answered.wrapping_sub(at);
    ((u32::BITS - since.leading_zeros()) as usize).min(DISTANCES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BrickId = BrickId(1);
    const B: BrickId = BrickId(2);

    /// A brick with a cache of so many places, of which those read least lately are dropped, answers reads of `0..count` in turn.
    fn read_in_turn(cached: &mut Cached, brick: BrickId, cache: u64, count: u64, rounds: u64) {
        for round in 0..rounds {
            for at in 0..count {
                cached.answered(brick, at << 16, round > 0 && count <= cache);
            }
        }
    }

    #[test]
    fn what_fits_into_a_cache_is_likely_there_and_what_does_not_is_not() {
        let mut cached = Cached::default();
        assert_eq!(cached.likely(0), None, "nothing is known yet");
        read_in_turn(&mut cached, A, 100, 50, 3);
        read_in_turn(&mut cached, B, 100, 1_000, 3);
        assert_eq!(cached.likely(7 << 16), None, "the other brick read it later, from its disk");
        read_in_turn(&mut cached, A, 100, 50, 3);
        assert_eq!(cached.likely(7 << 16), Some((A, 1.0)));
        assert_eq!(cached.likely(70 << 16), None);
    }

    #[test]
    fn another_user_of_the_cache_is_noticed() {
        let mut cached = Cached::default();
        cached.likely(0);
        cached.answered(A, 0, false);
        (0..40).for_each(|_| cached.answered(A, 1 << 16, true));
        assert!(cached.likely(1 << 16).is_some_and(|(_, likely)| likely > 0.9));
        (0..40).for_each(|_| cached.answered(A, 1 << 16, false));
        assert!(cached.likely(1 << 16).is_none_or(|(_, likely)| likely < 0.1));
    }

    #[test]
    fn a_brick_that_never_tells_of_its_disk_is_not_taken_for_one_that_has_all_in_memory() {
        let mut cached = Cached::default();
        cached.likely(0);
        (0..10).for_each(|_| cached.answered(A, 0, true));
        assert_eq!(cached.likely(0), None);
    }

    #[test]
    fn a_place_that_falls_on_the_entry_of_another_is_not_taken_for_it() {
        let mut cached = Cached::default();
        cached.likely(0);
        let other =
            (1..).map(|at: u64| at << 16).find(|other| entry(*other) == entry(0)).expect("there is one");
        cached.answered(A, 0, false);
        (0..3).for_each(|_| cached.answered(A, 0, true));
        assert!(cached.likely(0).is_some());
        assert_eq!(cached.likely(other), None);
    }
}
