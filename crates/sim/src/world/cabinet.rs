//! A store of the directory, its own or one of a shard of its index: what is on stable storage, and the puts under way.

use model::Draw;
use objects::index::{Page, Pair};
use roles::directory::Put;
use std::collections::{BTreeMap, VecDeque};

/// The store. It outlives the directory's process.
#[derive(Default)]
pub(super) struct Cabinet {
    contents: BTreeMap<Vec<u8>, Vec<u8>>,
    puts: VecDeque<(u64, Vec<Put>)>,
    /// When the last of them is done.
    done_ns: u64,
}

impl Cabinet {
    /// A store with this in it.
    pub(super) fn holding(contents: Vec<(Vec<u8>, Vec<u8>)>) -> Cabinet {
        Cabinet { contents: contents.into_iter().collect(), ..Cabinet::default() }
    }

    /// What a directory that starts finds.
    pub(super) fn contents(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.contents.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Takes puts in that would be done at `at_ns`, but are not before earlier ones: when they are.
    pub(super) fn begin(&mut self, token: u64, puts: Vec<Put>, at_ns: u64) -> u64 {
        self.puts.push_back((token, puts));
        self.done_ns = self.done_ns.max(at_ns);
        self.done_ns
    }

    /// What is on stable storage of a page.
    pub(super) fn page(&self, page: &Page) -> Vec<Pair> {
        let range = self.contents.range(page.from.clone()..page.to.clone());
        let value = |value: &Vec<u8>| if page.values { value.clone() } else { Vec::new() };
        range.take(page.limit as usize).map(|(key, kept)| (key.clone(), value(kept))).collect()
    }

    /// Whether nothing is on its way there.
    pub(super) fn is_idle(&self) -> bool {
        self.puts.is_empty()
    }

    /// The earliest puts reach stable storage.
    pub(super) fn end(&mut self, token: u64) {
        let (first, puts) = self.puts.pop_front().expect("a put under way");
        assert_eq!(first, token, "puts are done in order");
        self.apply(puts);
    }

    /// The directory is killed: the first so many puts reach stable storage all the same.
    pub(super) fn crash(&mut self, draw: &mut Draw) {
        let puts = core::mem::take(&mut self.puts);
        let kept = draw.below(puts.len() as u64 + 1) as usize;
        puts.into_iter().take(kept).for_each(|(_, puts)| self.apply(puts));
    }

    fn apply(&mut self, puts: Vec<Put>) {
        for (key, value) in puts {
            match value {
                Some(value) => drop(self.contents.insert(key, value)),
                None => drop(self.contents.remove(&key)),
            }
        }
    }
}
