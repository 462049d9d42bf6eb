//! A cache of blocks; the one that was used least lately makes room.

use base::HashMap;

const NONE: u32 = u32::MAX;

/// Which blocks are in memory. Allocates until it is full, and then no more.
#[derive(Debug)]
pub(crate) struct Lru {
    places: HashMap<u64, u32>,
    links: Vec<Link>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    blocks_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    block: u64,
    newer: u32,
    older: u32,
}

impl Lru {
    pub(crate) fn new(blocks_max: u64) -> Lru {
        let blocks_max = u32::try_from(blocks_max).unwrap_or(NONE - 1);
        let (places, links, free) = (HashMap::default(), Vec::new(), Vec::new());
        Lru { places, links, free, newest: NONE, oldest: NONE, blocks_max }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.blocks_max == 0
    }

    pub(crate) fn holds(&self, block: u64) -> bool {
        self.places.contains_key(&block)
    }

    /// `block` is used, and in memory from now on.
    pub(crate) fn touch(&mut self, block: u64) {
        if self.is_off() {
            return;
        }
        if let Some(&at) = self.places.get(&block) {
            self.unlink(at);
            return self.link(at);
        }
        let at = self.room();
        self.links[at as usize].block = block;
        self.places.insert(block, at);
        self.link(at);
    }

    /// `block` is no longer in memory.
    pub(crate) fn remove(&mut self, block: u64) {
        if let Some(at) = self.places.remove(&block) {
            self.unlink(at);
            self.free.push(at);
        }
    }

    fn room(&mut self) -> u32 {
        if let Some(at) = self.free.pop() {
            return at;
        }
        if self.links.len() < self.blocks_max as usize {
            self.links.push(Link { block: 0, newer: NONE, older: NONE });
            return self.links.len() as u32 - 1;
        }
        let oldest = self.oldest;
        self.places.remove(&self.links[oldest as usize].block);
        self.unlink(oldest);
        oldest
    }

    fn link(&mut self, at: u32) {
        let older = self.newest;
        (self.links[at as usize].newer, self.links[at as usize].older) = (NONE, older);
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Link { newer, older, .. } = self.links[at as usize];
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_list_does(steps in proptest::collection::vec((0u64..12, 0u8..4), 1..200), room in 0u64..6) {
            let (mut lru, mut list) = (Lru::new(room), Vec::<u64>::new());
            for (block, what) in steps {
                list.retain(|other| *other != block);
                if what == 0 {
                    lru.remove(block);
                } else {
                    lru.touch(block);
                    list.push(block);
                    if list.len() > room as usize {
                        list.remove(0);
                    }
                }
                for block in 0..12 {
                    prop_assert_eq!(lru.holds(block), list.contains(&block), "block {} of {:?}", block, list);
                }
            }
        }
    }
}
