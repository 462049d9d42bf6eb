//! Who waits on which cylinder: a list a cylinder, and a bitmap in levels of 64 to find the next one that is not empty.

use super::slots::{List, NONE, Slots};

/// More than any drive has: what bounds the memory against a model that is out of its mind.
const CYLINDERS_MAX: u32 = 1 << 24;

/// Accesses by cylinder, on each in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Cylinders {
    lists: Vec<List<0>>,
    // `levels[0]` has a bit for each cylinder, each further level one for each word below it that is not zero.
    levels: Vec<Vec<u64>>,
}

impl Cylinders {
    pub(super) fn insert<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        let cylinder = slots.position(slot).cylinder;
        self.reach(cylinder);
        let list = &mut self.lists[cylinder as usize];
        if list.first == NONE {
            mark(&mut self.levels, cylinder);
        }
        slots.append(list, slot);
    }

    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        let cylinder = slots.position(slot).cylinder;
        let list = &mut self.lists[cylinder as usize];
        slots.unlink(list, slot);
        if list.first == NONE {
            clear(&mut self.levels, cylinder);
        }
    }

    /// Who came first to `cylinder`, where somebody waits.
    pub(super) fn first(&self, cylinder: u32) -> u32 {
        self.lists[cylinder as usize].first
    }

    /// The first cylinder at or after `cylinder` where somebody waits.
    pub(super) fn from(&self, cylinder: u32) -> Option<u32> {
        let mut place = cylinder as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let word = *level.get(place / 64)? & (!0 << (place % 64));
            if word != 0 {
                let found = place / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(height, found, |word| word.trailing_zeros()));
            }
            place = place / 64 + 1;
        }
        None
    }

    /// The last cylinder before `cylinder` where somebody waits.
    pub(super) fn below(&self, cylinder: u32) -> Option<u32> {
        let mut place = (cylinder as usize).min(self.lists.len()).checked_sub(1)?;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level[place / 64] & (!0 >> (63 - place % 64));
            if word != 0 {
                let found = place / 64 * 64 + 63 - word.leading_zeros() as usize;
                return Some(self.descend(height, found, |word| 63 - word.leading_zeros()));
            }
            place = (place / 64).checked_sub(1)?;
        }
        None
    }

    /// The cylinders where somebody waits and how far from `arm` they are, nearest first.
    pub(super) fn outwards(&self, arm: u32) -> impl Iterator<Item = (u32, u32)> {
        let (mut above, mut below) = (self.from(arm), self.below(arm));
        core::iter::from_fn(move || {
            let away = above.map_or(u32::MAX, |cylinder| cylinder - arm);
            let back = below.map_or(u32::MAX, |cylinder| arm - cylinder);
            if away <= back {
                let cylinder = above?;
                above = self.from(cylinder + 1);
                Some((cylinder, away))
            } else {
                let cylinder = below?;
                below = self.below(cylinder);
                Some((cylinder, back))
            }
        })
    }

    fn descend(&self, height: usize, found: usize, end: impl Fn(u64) -> u32) -> u32 {
        let down = |found: usize, level: &Vec<u64>| found * 64 + end(level[found]) as usize;
        self.levels[..height].iter().rev().fold(found, down) as u32
    }

    /// Makes room for `cylinder`. Drives have a fixed number, so this comes to rest soon.
    fn reach(&mut self, cylinder: u32) {
        if (cylinder as usize) < self.lists.len() {
            return;
        }
        assert!(cylinder < CYLINDERS_MAX, "cylinder {cylinder}: a drive has fewer than {CYLINDERS_MAX}");
        let count = (cylinder as usize + 1).next_power_of_two().max(64);
        self.lists.resize(count, List::default());
        self.levels = levels(count);
        let used = self.lists.iter().enumerate().filter(|(_, list)| list.first != NONE);
        used.for_each(|(cylinder, _)| mark(&mut self.levels, cylinder as u32));
    }
}

fn levels(count: usize) -> Vec<Vec<u64>> {
    let words =
        core::iter::successors(Some(count.div_ceil(64)), |&words| (words > 1).then(|| words.div_ceil(64)));
    words.map(|words| vec![0; words]).collect()
}

fn mark(levels: &mut [Vec<u64>], cylinder: u32) {
    let mut place = cylinder as usize;
    for level in levels {
        let was = level[place / 64];
        level[place / 64] = was | 1 << (place % 64);
        if was != 0 {
            return;
        }
        place /= 64;
    }
}

fn clear(levels: &mut [Vec<u64>], cylinder: u32) {
    let mut place = cylinder as usize;
    for level in levels {
        level[place / 64] &= !(1 << (place % 64));
        if level[place / 64] != 0 {
            return;
        }
        place /= 64;
    }
}
