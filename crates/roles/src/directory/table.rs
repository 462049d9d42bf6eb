//! Records by their key, beside an index of them that cannot be stale.
//!
//! A tick, a heartbeat and a question cost what they are about and not what the cluster has, as long as what they are about can be
//! found without looking at all records. Nobody changes a record but through [`Table::change`], which takes it out of the index
//! and enters it again.

use core::borrow::Borrow;
use core::ops::{Deref, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be found of records without looking at all of them.
pub(super) trait Index: Default {
    type Key: Ord + Copy;
    type Record;

    fn enter(&mut self, key: Self::Key, record: &Self::Record);
    /// Takes out what [`Index::enter`] entered of the very same record.
    fn take_out(&mut self, key: Self::Key, record: &Self::Record);
}

#[derive(Debug)]
pub(super) struct Table<I: Index> {
    records: BTreeMap<I::Key, I::Record>,
    index: I,
}

impl<I: Index> Default for Table<I> {
    fn default() -> Table<I> {
        Table { records: BTreeMap::new(), index: I::default() }
    }
}

/// The records; none of them can be changed so.
impl<I: Index> Deref for Table<I> {
    type Target = BTreeMap<I::Key, I::Record>;
    fn deref(&self) -> &BTreeMap<I::Key, I::Record> {
        &self.records
    }
}

impl<I: Index> Table<I> {
    pub(super) fn index(&self) -> &I {
        &self.index
    }

    pub(super) fn insert(&mut self, key: I::Key, record: I::Record) {
        self.remove(&key);
        self.index.enter(key, &record);
        self.records.insert(key, record);
    }

    pub(super) fn remove(&mut self, key: &I::Key) -> Option<I::Record> {
        let record = self.records.remove(key)?;
        self.index.take_out(*key, &record);
        Some(record)
    }

    /// What `change` gives; nothing where there is no such record.
    pub(super) fn change<R>(&mut self, key: &I::Key, change: impl FnOnce(&mut I::Record) -> R) -> Option<R> {
        let record = self.records.get_mut(key)?;
        self.index.take_out(*key, record);
        let result = change(record);
        self.index.enter(*key, record);
        Some(result)
    }

    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut I::Record)) {
        for key in self.records.keys().copied().collect::<Vec<_>>() {
            self.change(&key, &mut change);
        }
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&I::Key, &I::Record) -> bool) {
        let gone: Vec<I::Key> =
            self.records.iter().filter(|(key, record)| !stays(key, record)).map(|(key, _)| *key).collect();
        gone.iter().for_each(|key| drop(self.remove(key)));
    }

    /// Whether the index is one of these records and of nothing else.
    pub(super) fn is_sound(&self) -> bool
    where
        I: PartialEq,
    {
        let mut anew = I::default();
        self.records.iter().for_each(|(key, record)| anew.enter(*key, record));
        anew == self.index
    }
}

/// Keys by something that several records may have.
#[derive(Debug, PartialEq)]
pub(super) struct Places<P, K>(BTreeMap<P, BTreeSet<K>>);

impl<P, K> Default for Places<P, K> {
    fn default() -> Places<P, K> {
        Places(BTreeMap::new())
    }
}

impl<P: Ord, K: Ord + Copy> Places<P, K> {
    pub(super) fn enter(&mut self, place: P, key: K) {
        self.0.entry(place).or_default().insert(key);
    }

    pub(super) fn take_out<Q: Ord + ?Sized>(&mut self, place: &Q, key: K)
    where
        P: Borrow<Q>,
    {
        let Some(keys) = self.0.get_mut(place) else { return };
        keys.remove(&key);
        if keys.is_empty() {
            self.0.remove(place);
        }
    }

    /// The keys at a place, in order.
    pub(super) fn at<Q: Ord + ?Sized>(&self, place: &Q) -> impl Iterator<Item = K> + use<'_, Q, P, K>
    where
        P: Borrow<Q>,
    {
        self.0.get(place).into_iter().flatten().copied()
    }

    /// How many keys are at a place.
    pub(super) fn count<Q: Ord + ?Sized>(&self, place: &Q) -> usize
    where
        P: Borrow<Q>,
    {
        self.0.get(place).map_or(0, BTreeSet::len)
    }

    /// The keys at these places, each with its place, in the order of the places.
    pub(super) fn within(&self, places: RangeInclusive<P>) -> impl Iterator<Item = (P, K)> + use<'_, P, K>
    where
        P: Copy,
    {
        let is_some = places.start() <= places.end();
        let range = is_some.then(|| self.0.range(places)).into_iter().flatten();
        range.flat_map(|(place, keys)| keys.iter().map(|key| (*place, *key)))
    }

    /// The places at which there are keys.
    pub(super) fn places(&self) -> impl Iterator<Item = &P> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers by their remainder.
    #[derive(Debug, Default, PartialEq)]
    struct ByRemainder(Places<u32, u32>);

    impl Index for ByRemainder {
        type Key = u32;
        type Record = u32;
        fn enter(&mut self, key: u32, record: &u32) {
            self.0.enter(record % 3, key);
        }
        fn take_out(&mut self, key: u32, record: &u32) {
            self.0.take_out(&(record % 3), key);
        }
    }

    #[test]
    fn what_was_changed_is_found_where_it_is_now() {
        let mut table: Table<ByRemainder> = Table::default();
        (0..9).for_each(|key| table.insert(key, key));
        table.insert(4, 3);
        assert_eq!(table.change(&7, |record| core::mem::replace(record, 9)), Some(7));
        assert_eq!(table.change(&70, |_| ()), None);
        table.remove(&0);
        table.retain(|key, _| *key != 6);
        assert!(table.is_sound());
        assert_eq!(table.index().0.at(&0).collect::<Vec<_>>(), [3, 4, 7]);
        assert_eq!((table.index().0.at(&1).count(), table.len()), (1, 7));
    }
}
