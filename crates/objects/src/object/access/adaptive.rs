//! Copies of what is missing.

use super::{Access, Place};
use base::{BrickId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Asks for one copy of each block, and whoever has nothing left to do for what is still missing: the *adaptive* access of the RobuSTore
/// paper (RRAID-A), for segments of copies. A copy may be asked for while another is on its way, and then one of them is read in vain.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    blocks: u32,
    window: usize,
    /// Of each block that has not come: its copies that nobody was asked for.
    missing: BTreeMap<u32, BTreeSet<Place>>,
    /// Blocks that each brick was meant to give, and was not asked for.
    left: BTreeMap<BrickId, Vec<u32>>,
    /// What each brick was asked for and has not given.
    open: BTreeMap<BrickId, BTreeSet<u32>>,
}

impl Adaptive {
    /// Of a segment of so many blocks; at most so many fragments of a brick are under way, one at least.
    pub(super) fn new(blocks: u32, window: usize) -> Adaptive {
        let window = window.max(1);
        Adaptive { blocks, window, missing: BTreeMap::new(), left: BTreeMap::new(), open: BTreeMap::new() }
    }

    /// A block may not come from where it was asked for: whoever has another copy, and room, is asked.
    fn instead(&mut self, block: u32) -> Vec<Place> {
        self.assign(block);
        let bricks: Vec<BrickId> = self.open.keys().copied().collect();
        bricks.into_iter().flat_map(|brick| self.fill(brick, true)).collect()
    }

    /// A block is meant for the brick with the least to do, of those that have a copy and were not asked for it.
    fn assign(&mut self, block: u32) {
        let copies = self.missing.get(&block).into_iter().flatten();
        let least = copies.min_by_key(|(index, brick)| (self.left[brick].len(), *index));
        if let Some((_, brick)) = least {
            self.left.get_mut(brick).expect("a brick with a copy").push(block);
        }
    }

    /// What this brick is asked for, as far as its window goes: what it was meant for, and then what others were if it `helps`.
    fn fill(&mut self, brick: BrickId, helps: bool) -> Vec<Place> {
        let mut asked = Vec::new();
        while self.open.entry(brick).or_default().len() < self.window {
            let Some(block) = self.next(brick, helps) else { break };
            let copies = self.missing.get_mut(&block).expect("a block that is missing");
            let place = *copies.iter().find(|(_, at)| *at == brick).expect("a copy that is there");
            copies.remove(&place);
            self.open.entry(brick).or_default().insert(block);
            asked.push(place);
        }
        asked
    }

    /// The next block that this brick is to give: its own first, then one of whoever has the most left to do.
    fn next(&mut self, brick: BrickId, helps: bool) -> Option<u32> {
        let has_copy = |missing: &BTreeMap<u32, BTreeSet<Place>>, block: u32| {
            missing.get(&block).is_some_and(|copies| copies.iter().any(|(_, at)| *at == brick))
        };
        let own = self.left.entry(brick).or_default();
        while let Some(block) = own.pop() {
            if has_copy(&self.missing, block) {
                return Some(block);
            }
        }
        if !helps {
            return None;
        }
        let mut busiest: Vec<BrickId> = self.open.keys().copied().filter(|other| *other != brick).collect();
        let to_do = |other: &BrickId| self.left.get(other).map_or(0, Vec::len) + self.open[other].len();
        busiest.sort_by_key(|other| (std::cmp::Reverse(to_do(other)), *other));
        busiest.into_iter().find_map(|other| {
            // What it comes to last, and then what it was asked for last.
            let left = self.left.get(&other).into_iter().flatten();
            let open = self.open[&other].iter().rev();
            left.chain(open).copied().find(|block| has_copy(&self.missing, *block))
        })
    }
}

impl Access for Adaptive {
    fn begin(&mut self, _: Time, places: &[Place]) -> Vec<Place> {
        for place in places {
            self.missing.entry(place.0 % self.blocks).or_default().insert(*place);
            self.left.entry(place.1).or_default();
        }
        // The highest first, as bricks begin with the last.
        let blocks: Vec<u32> = self.missing.keys().rev().copied().collect();
        blocks.into_iter().for_each(|block| self.assign(block));
        let bricks: Vec<BrickId> = self.left.keys().copied().collect();
        bricks.into_iter().flat_map(|brick| self.fill(brick, false)).collect()
    }

    fn ended(&mut self, _: Time, (index, brick): Place, has_come: bool) -> Vec<Place> {
        let block = index % self.blocks;
        self.open.entry(brick).or_default().remove(&block);
        if has_come {
            self.missing.remove(&block);
            return self.fill(brick, true);
        }
        self.instead(block)
    }

    fn late(&mut self, _: Time, (index, _): Place) -> Vec<Place> {
        self.instead(index % self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BrickId = BrickId(1);
    const B: BrickId = BrickId(2);

    /// Four blocks, each at both bricks.
    fn places() -> Vec<Place> {
        (0..4).flat_map(|block| [(block, A), (block + 4, B)]).collect()
    }

    #[test]
    fn who_is_done_takes_over_what_is_missing() {
        let mut adaptive = Adaptive::new(4, 1);
        let first = adaptive.begin(Time(0), &places());
        assert_eq!(first.len(), 2, "one of each brick");
        // B gives all that it was meant for, and then what A was.
        let mut given = BTreeSet::new();
        let mut next = first.into_iter().find(|(_, brick)| *brick == B);
        while let Some(place) = next {
            assert!(given.insert(place.0 % 4), "no block twice from one brick");
            next = adaptive.ended(Time(0), place, true).first().copied();
        }
        assert_eq!(given.len(), 4);
    }

    #[test]
    fn what_cannot_be_read_is_asked_of_another() {
        let mut adaptive = Adaptive::new(1, 1);
        let first = adaptive.begin(Time(0), &[(0, A), (1, B)]);
        assert_eq!(first.len(), 1);
        let second = adaptive.ended(Time(0), first[0], false);
        assert!(second.len() == 1 && second[0].1 != first[0].1, "{second:?}");
        assert_eq!(adaptive.ended(Time(0), second[0], false), []);
    }

    /// Found by the torture with objects (seed 163): a block was given up whose first copy could not be read.
    #[test]
    fn each_copy_is_asked_for_before_a_block_is_given_up() {
        for lost in [A, B] {
            let mut adaptive = Adaptive::new(4, 2);
            let mut open = adaptive.begin(Time(0), &places());
            let mut came = BTreeSet::new();
            while let Some(place) = open.pop() {
                let has_come = place.1 != lost;
                came.extend(has_come.then_some(place.0 % 4));
                open.extend(adaptive.ended(Time(0), place, has_come));
            }
            assert_eq!(came.len(), 4, "without {lost}");
        }
    }
}
