//! A list from the most to the least recently used in which both questions are fast: what lies at this depth, and how deep does
//! this lie. It is the stack of Mattson's stack distance.
//!
//! Items stand in slots in the order of use; a bitmap says which slots are live, and a Fenwick tree counts the live ones in
//! each group of 512. A step down the tree touches a few cache lines, so that millions of items cost hardly more than thousands.

/// Slots that one counter of the tree stands for: a cache line of the bitmap.
const GROUP_SLOTS: usize = 512;
const GROUP_WORDS: usize = GROUP_SLOTS / 64;
/// Slots of an empty list.
const SLOTS_MIN: usize = 8 * GROUP_SLOTS;

pub(crate) struct Recency<T> {
    items: Vec<T>,
    live: Vec<u64>,
    /// A Fenwick tree over groups: `tree[i]` counts the live slots of the groups `i & (i + 1) ..= i`.
    tree: Vec<u32>,
    len: usize,
}

impl<T: Copy> Recency<T> {
    pub(crate) fn new() -> Recency<T> {
        let mut list = Recency { items: Vec::new(), live: Vec::new(), tree: Vec::new(), len: 0 };
        list.resize(SLOTS_MIN);
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts `item` in front and returns its slot. Slots may be given anew on the way: `moved` hears of each.
    pub(crate) fn push(&mut self, item: T, moved: impl FnMut(&T, usize)) -> usize {
        if self.items.len() == self.live.len() * 64 {
            self.compact(moved);
        }
        let slot = self.items.len();
        self.items.push(item);
        self.live[slot / 64] |= 1 << (slot % 64);
        self.count(slot, 1);
        self.len += 1;
        slot
    }

    /// Takes out what is in `slot`, which has to be live.
    pub(crate) fn remove(&mut self, slot: usize) -> T {
        let bit = 1 << (slot % 64);
        assert!(self.live[slot / 64] & bit != 0, "slot {slot} is not live");
        self.live[slot / 64] &= !bit;
        self.count(slot, -1);
        self.len -= 1;
        self.items[slot]
    }

    /// The slot at `depth`; 0 is the front. It has to be less than the length.
    pub(crate) fn at_depth(&self, depth: usize) -> usize {
        assert!(depth < self.len, "depth {depth} of {}", self.len);
        let mut before = self.len - 1 - depth;
        let (mut group, mut step) = (0, self.tree.len().next_power_of_two());
        while step > 0 {
            if let Some(&count) = self.tree.get(group + step - 1)
                && before >= count as usize
            {
                before -= count as usize;
                group += step;
            }
            step /= 2;
        }
        let mut word = group * GROUP_WORDS;
        loop {
            let count = self.live[word].count_ones() as usize;
            if before < count {
                return word * 64 + nth_one(self.live[word], before);
            }
            before -= count;
            word += 1;
        }
    }

    /// How many lie in front of what is in `slot`.
    pub(crate) fn depth(&self, slot: usize) -> usize {
        let (word, group) = (slot / 64, slot / GROUP_SLOTS);
        let mut through = (self.live[word] & (u64::MAX >> (63 - slot % 64))).count_ones() as usize;
        through +=
            self.live[group * GROUP_WORDS..word].iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let mut end = group;
        while end > 0 {
            through += self.tree[end - 1] as usize;
            end &= end - 1;
        }
        self.len - through
    }

    fn count(&mut self, slot: usize, change: i32) {
        let mut index = slot / GROUP_SLOTS;
        while let Some(count) = self.tree.get_mut(index) {
            *count = count.wrapping_add_signed(change);
            index |= index + 1;
        }
    }

    /// Moves what is live together, with as many free slots behind it.
    fn compact(&mut self, mut moved: impl FnMut(&T, usize)) {
        let mut to = 0;
        for slot in 0..self.items.len() {
            if self.live[slot / 64] >> (slot % 64) & 1 == 1 {
                self.items[to] = self.items[slot];
                moved(&self.items[to], to);
                to += 1;
            }
        }
        self.items.truncate(to);
        self.resize((2 * to).max(SLOTS_MIN));
    }

    /// Makes room for `slots` slots, of which the items held are the first.
    fn resize(&mut self, slots: usize) {
        let groups = slots.div_ceil(GROUP_SLOTS);
        self.live.clear();
        self.live.resize(groups * GROUP_WORDS, 0);
        self.tree.clear();
        self.tree.resize(groups, 0);
        self.items.reserve_exact(groups * GROUP_SLOTS - self.items.len());
        for slot in 0..self.items.len() {
            self.live[slot / 64] |= 1 << (slot % 64);
        }
        for group in 0..groups {
            let words = &self.live[group * GROUP_WORDS..(group + 1) * GROUP_WORDS];
            self.tree[group] += words.iter().map(|word| word.count_ones()).sum::<u32>();
            let above = group | (group + 1);
            if above < groups {
                self.tree[above] += self.tree[group];
            }
        }
    }
}

/// The place of the one bit of `word` that has `before` ones below it.
fn nth_one(mut word: u64, before: usize) -> usize {
    (0..before).for_each(|_| word &= word - 1);
    word.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Against a plain vector, through compactions.
        #[test]
        fn agrees_with_a_vector(seed: u64, most in 1_usize..3_000) {
            let mut random = base::Rng::with_seed(seed);
            let (mut list, mut plain) = (Recency::new(), Vec::<u32>::new());
            let mut slots = std::collections::BTreeMap::new();
            for step in 0..10_000_u32 {
                let item = if plain.is_empty() || (plain.len() < most && random.bool()) {
                    step
                } else {
                    let depth = random.usize(..plain.len());
                    let slot = list.at_depth(depth);
                    prop_assert_eq!(list.depth(slot), depth);
                    let item = plain.remove(plain.len() - 1 - depth);
                    prop_assert_eq!(slots.get(&item), Some(&slot));
                    prop_assert_eq!(list.remove(slot), item);
                    item
                };
                plain.push(item);
                let slot = list.push(item, |item, slot| {
                    slots.insert(*item, slot);
                });
                slots.insert(item, slot);
                prop_assert_eq!(list.len(), plain.len());
            }
        }
    }
}
