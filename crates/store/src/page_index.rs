//! Where each metadata page is: in memory for every page of the disk, and so as small as can be.
//!
//! Pages that lie close to each other in a volume share a chunk, in which each takes 12 bytes. A chunk itself takes some 55 bytes. So a page of a
//! volume that is written densely takes some 13 bytes, and one that stands alone 55.

use crate::metadata::Key;
use crate::pages::Home;
use base::VolumeId;
use core::ops::RangeInclusive;
use std::collections::BTreeMap;

/// Pages of a volume that share a chunk, in all their planes.
const CHUNK_PAGES: u64 = 64;

/// All pages and their homes, in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct PageIndex {
    chunks: BTreeMap<(VolumeId, u64), Chunk>,
    count: usize,
}

/// Pages in the order of their keys; never none.
#[derive(Debug)]
enum Chunk {
    One(Slim),
    More(Box<[Slim]>),
}

/// A page within its chunk.
#[derive(Clone, Copy, Debug)]
struct Slim {
    place: u32,
    slots: u16,
    unsure: u16,
    /// The page's number within the chunk.
    number: u8,
    plane: u8,
}

impl Slim {
    fn of(key: Key, home: Home) -> Slim {
        let Home { place, slots, unsure } = home;
        Slim { place, slots, unsure, number: (key.page % CHUNK_PAGES) as u8, plane: key.plane }
    }

    fn order(&self) -> (u8, u8) {
        (self.number, self.plane)
    }

    fn key(&self, (volume, chunk): (VolumeId, u64)) -> Key {
        Key { volume, page: chunk * CHUNK_PAGES + u64::from(self.number), plane: self.plane }
    }

    fn home(&self) -> Home {
        Home { place: self.place, slots: self.slots, unsure: self.unsure }
    }
}

impl Chunk {
    fn as_slice(&self) -> &[Slim] {
        match self {
            Chunk::One(page) => core::slice::from_ref(page),
            Chunk::More(pages) => pages,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Slim] {
        match self {
            Chunk::One(page) => core::slice::from_mut(page),
            Chunk::More(pages) => pages,
        }
    }

    /// Where a page is in it, or would be.
    fn find(&self, key: Key) -> Result<usize, usize> {
        let order = ((key.page % CHUNK_PAGES) as u8, key.plane);
        self.as_slice().binary_search_by_key(&order, Slim::order)
    }

    fn insert(&mut self, at: usize, page: Slim) {
        let mut pages = Vec::with_capacity(self.as_slice().len() + 1);
        pages.extend_from_slice(&self.as_slice()[..at]);
        pages.push(page);
        pages.extend_from_slice(&self.as_slice()[at..]);
        *self = Chunk::More(pages.into_boxed_slice());
    }

    /// Takes one of several out.
    fn remove(&mut self, at: usize) {
        let mut pages = self.as_slice().to_vec();
        pages.remove(at);
        *self = match pages[..] {
            [page] => Chunk::One(page),
            _ => Chunk::More(pages.into_boxed_slice()),
        };
    }
}

fn chunk_of(key: Key) -> (VolumeId, u64) {
    (key.volume, key.page / CHUNK_PAGES)
}

impl PageIndex {
    pub(crate) fn get(&self, key: Key) -> Option<Home> {
        let chunk = self.chunks.get(&chunk_of(key))?;
        Some(chunk.as_slice()[chunk.find(key).ok()?].home())
    }

    /// Adds a page. False, and without effect, when it is there.
    pub(crate) fn insert(&mut self, key: Key, home: Home) -> bool {
        let page = Slim::of(key, home);
        match self.chunks.get_mut(&chunk_of(key)) {
            Some(chunk) => match chunk.find(key) {
                Ok(_) => return false,
                Err(at) => chunk.insert(at, page),
            },
            None => drop(self.chunks.insert(chunk_of(key), Chunk::One(page))),
        }
        self.count += 1;
        true
    }

    /// Changes what is known of a page that is there.
    pub(crate) fn set(&mut self, key: Key, home: Home) {
        let chunk = self.chunks.get_mut(&chunk_of(key)).expect("the page is there");
        let at = chunk.find(key).expect("the page is there");
        chunk.as_mut_slice()[at] = Slim::of(key, home);
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let Some(chunk) = self.chunks.get_mut(&chunk_of(key)) else { return };
        let Ok(at) = chunk.find(key) else { return };
        self.count -= 1;
        if chunk.as_slice().len() > 1 {
            chunk.remove(at);
        } else {
            self.chunks.remove(&chunk_of(key));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Home)> {
        self.chunks.iter().flat_map(of_chunk)
    }

    /// Those with keys of a range.
    pub(crate) fn range(&self, keys: RangeInclusive<Key>) -> impl Iterator<Item = (Key, Home)> {
        let (first, last) = keys.into_inner();
        let chunks = self.chunks.range(chunk_of(first)..=chunk_of(last));
        let pages = chunks.flat_map(of_chunk);
        pages.skip_while(move |(key, _)| *key < first).take_while(move |(key, _)| *key <= last)
    }

    /// The first one from `key` on.
    pub(crate) fn first_from(&self, key: Key) -> Option<Key> {
        let mut pages = self.chunks.range(chunk_of(key)..).flat_map(of_chunk).map(|(key, _)| key);
        pages.find(|found| *found >= key)
    }
}

fn of_chunk<'a>((&at, chunk): (&'a (VolumeId, u64), &'a Chunk)) -> impl Iterator<Item = (Key, Home)> + 'a {
    chunk.as_slice().iter().map(move |page| (page.key(at), page.home()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Key> {
        (0..3_u64, 0..200_u64, 0..3_u8).prop_map(|(volume, page, plane)| Key {
            volume: VolumeId(volume),
            page,
            plane,
        })
    }

    proptest! {
        /// Against a map of all keys.
        #[test]
        fn knows_what_was_told(acts in proptest::collection::vec((key(), 0..4_u8, any::<u32>()), 0..400), from in key(), to in key()) {
            let (mut index, mut model) = (PageIndex::default(), BTreeMap::new());
            for (key, act, place) in acts {
                let home = Home { place, slots: place as u16, unsure: (place >> 16) as u16 };
                match act {
                    0 | 1 => {
                        let is_new = !model.contains_key(&key);
                        prop_assert_eq!(index.insert(key, home), is_new);
                        model.entry(key).or_insert(home);
                    }
                    2 if model.contains_key(&key) => {
                        index.set(key, home);
                        model.insert(key, home);
                    }
                    _ => {
                        index.remove(key);
                        model.remove(&key);
                    }
                }
                prop_assert_eq!(index.get(key), model.get(&key).copied());
            }
            prop_assert_eq!(index.len(), model.len());
            prop_assert!(index.iter().eq(model.iter().map(|(&key, &home)| (key, home))));
            prop_assert_eq!(index.first_from(from), model.range(from..).next().map(|(&key, _)| key));
            if from <= to {
                let range = model.range(from..=to).map(|(&key, &home)| (key, home));
                prop_assert!(index.range(from..=to).eq(range));
            }
        }
    }

    /// The size of what each page of a disk takes in memory is what this file promises.
    #[test]
    fn a_page_is_small() {
        assert_eq!((size_of::<Slim>(), size_of::<Chunk>()), (12, 24));
    }
}
