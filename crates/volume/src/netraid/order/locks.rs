//! A line of those who want blocks for themselves: each gets them once all that came before and want any of the same are gone.
//!
//! A coordinator has such a line for its own requests, where its order is `seq`; a brick has one for the writers of its groups, where it is the
//! lock server. A lock guards no data, which is why it may be taken away: of a lock server nobody has it for longer than a lease ([`LEASE`]).

use base::{GroupId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::Span;

/// How long a lock server lets a writer have its lock.
pub const LEASE: Duration = Duration::from_secs(2);

/// The most in a line.
pub const LINE_MAX: usize = 4096;

/// What is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub group: GroupId,
    /// Blocks of a volume.
    pub span: Span,
    /// Whether others that only share may have it at the same time.
    pub is_shared: bool,
}

impl Place {
    /// Whether both cannot have it at once.
    fn excludes(&self, other: &Place) -> bool {
        self.group == other.group && self.span.overlaps(&other.span) && !(self.is_shared && other.is_shared)
    }
}

#[derive(Debug)]
struct Entry<T> {
    who: T,
    place: Place,
    /// When it got it.
    since: Option<Time>,
}

/// The line; `T` names those in it.
#[derive(Debug)]
pub struct Locks<T> {
    /// By the order in which they came.
    line: BTreeMap<u64, Entry<T>>,
    numbers: BTreeMap<T, u64>,
    came: u64,
}

/// What came of the wish for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    Granted,
    Waits,
    /// The line is full.
    Full,
}

impl<T> Default for Locks<T> {
    fn default() -> Locks<T> {
        Locks { line: BTreeMap::new(), numbers: BTreeMap::new(), came: 0 }
    }
}

impl<T: Copy + Ord> Locks<T> {
    /// `who` wants `place`. Who is in the line already keeps its turn.
    pub fn want(&mut self, now: Time, who: T, place: Place) -> Wish {
        if let Some(entry) = self.numbers.get(&who).and_then(|number| self.line.get(number)) {
            return if entry.since.is_some() { Wish::Granted } else { Wish::Waits };
        }
        if self.line.len() >= LINE_MAX {
            return Wish::Full;
        }
        self.came += 1;
        let number = self.came;
        let since = self.is_free(number, &place).then_some(now);
        self.line.insert(number, Entry { who, place, since });
        self.numbers.insert(who, number);
        if since.is_some() { Wish::Granted } else { Wish::Waits }
    }

    /// Whether nobody who came before `number` is in the way.
    fn is_free(&self, number: u64, place: &Place) -> bool {
        self.line.range(..number).all(|(_, entry)| !entry.place.excludes(place))
    }

    /// `who` leaves the line, or gives back what it had: who has it now.
    pub fn leave(&mut self, now: Time, who: T) -> Vec<T> {
        let Some(gone) = self.numbers.remove(&who).and_then(|number| self.line.remove(&number)) else {
            return Vec::new();
        };
        self.grant(now, &[gone.place])
    }

    /// All leave of whom `is_meant` says so: who they were, and who has now what they had.
    pub fn leave_where(&mut self, now: Time, is_meant: impl Fn(&T, &Place) -> bool) -> (Vec<T>, Vec<T>) {
        let meant = |entry: &&Entry<T>| is_meant(&entry.who, &entry.place);
        let gone: Vec<(T, Place)> =
            self.line.values().filter(meant).map(|entry| (entry.who, entry.place)).collect();
        for (who, _) in &gone {
            self.numbers.remove(who).map(|number| self.line.remove(&number));
        }
        let places: Vec<Place> = gone.iter().map(|(_, place)| *place).collect();
        (gone.into_iter().map(|(who, _)| who).collect(), self.grant(now, &places))
    }

    /// Takes back what somebody has had for longer than a lease: who they were, and who has it now.
    pub fn expire(&mut self, now: Time) -> (Vec<T>, Vec<T>) {
        let is_over = |since: Option<Time>| since.is_some_and(|since| since + LEASE <= now);
        let over: Vec<T> =
            self.line.values().filter(|entry| is_over(entry.since)).map(|entry| entry.who).collect();
        let granted = over.iter().flat_map(|who| self.leave(now, *who)).collect();
        (over, granted)
    }

    /// When the next lease is over.
    pub fn deadline(&self) -> Option<Time> {
        self.line.values().filter_map(|entry| entry.since).min().map(|since| since + LEASE)
    }

    /// Those whose turn has come, now that these places are free.
    fn grant(&mut self, now: Time, freed: &[Place]) -> Vec<T> {
        let waits = |entry: &Entry<T>| {
            entry.since.is_none() && freed.iter().any(|place| place.group == entry.place.group)
        };
        let waiting = self.line.iter().filter(|(_, entry)| waits(entry));
        let granted: Vec<u64> = waiting
            .filter(|(number, entry)| self.is_free(**number, &entry.place))
            .map(|(number, _)| *number)
            .collect();
        let at = |number: u64, line: &mut BTreeMap<u64, Entry<T>>| {
            let entry = line.get_mut(&number).expect("listed");
            entry.since = Some(now);
            entry.who
        };
        granted.into_iter().map(|number| at(number, &mut self.line)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Asserts that no two have what excludes each other.
    pub fn check(&self) {
        let had: Vec<&Entry<T>> = self.line.values().filter(|entry| entry.since.is_some()).collect();
        for (at, entry) in had.iter().enumerate() {
            assert!(
                had[at + 1..].iter().all(|other| !entry.place.excludes(&other.place)),
                "one has a lock at a time: {:?}",
                entry.place
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::VolumeId;
    use proptest::prelude::*;

    fn place(lba: u64, count: u32, is_shared: bool) -> Place {
        Place { group: GroupId(1), span: Span { volume: VolumeId(1), lba, count }, is_shared }
    }

    #[test]
    fn writers_of_the_same_rows_come_one_after_the_other() {
        let (mut locks, now) = (Locks::default(), Time(0));
        assert_eq!(locks.want(now, 1, place(0, 4, false)), Wish::Granted);
        assert_eq!(locks.want(now, 2, place(3, 2, false)), Wish::Waits);
        // It could have its blocks, but came after one that wants some of them.
        assert_eq!(locks.want(now, 3, place(4, 1, false)), Wish::Waits);
        assert_eq!(locks.want(now, 4, place(9, 1, false)), Wish::Granted);
        assert_eq!(locks.want(now, 2, place(3, 2, false)), Wish::Waits, "asked again, it keeps its turn");
        assert_eq!(locks.leave(now, 1), [2]);
        assert_eq!(locks.leave(now, 2), [3]);
        assert!(locks.leave(now, 7).is_empty());
    }

    #[test]
    fn readers_pass_together_and_not_before_a_writer_that_came_first() {
        let (mut locks, now) = (Locks::default(), Time(0));
        assert_eq!(locks.want(now, 1, place(0, 1, true)), Wish::Granted);
        assert_eq!(locks.want(now, 2, place(0, 1, true)), Wish::Granted);
        assert_eq!(locks.want(now, 3, place(0, 1, false)), Wish::Waits);
        assert_eq!(locks.want(now, 4, place(0, 1, true)), Wish::Waits);
        assert!(locks.leave(now, 1).is_empty());
        assert_eq!(locks.leave(now, 2), [3]);
        assert_eq!(locks.leave(now, 3), [4]);
    }

    #[test]
    fn nobody_has_a_lock_for_longer_than_a_lease() {
        let mut locks = Locks::default();
        locks.want(Time(0), 1, place(0, 1, false));
        locks.want(Time(5), 2, place(0, 1, false));
        assert!(locks.expire(Time(5)).0.is_empty());
        assert_eq!(locks.deadline(), Some(Time(0) + LEASE));
        assert_eq!(locks.expire(Time(0) + LEASE), (vec![1], vec![2]));
        assert!(locks.leave(Time(0) + LEASE, 1).is_empty(), "it has nothing to give back");
    }

    proptest! {
        #[test]
        fn one_has_a_lock_at_a_time_and_all_come_to_have_it(
            steps in prop::collection::vec((0u64..12, 0u64..6, 1u32..4, any::<bool>(), any::<bool>()), 1..120)
        ) {
            let (mut locks, now) = (Locks::default(), Time(0));
            let mut had = std::collections::BTreeSet::new();
            let mut in_line = std::collections::BTreeSet::new();
            for (who, lba, count, is_shared, leaves) in steps {
                if leaves {
                    had.remove(&who);
                    in_line.remove(&who);
                    had.extend(locks.leave(now, who));
                } else {
                    in_line.insert(who);
                    if locks.want(now, who, place(lba, count, is_shared)) == Wish::Granted {
                        had.insert(who);
                    }
                }
                locks.check();
            }
            while let Some(who) = had.pop_first() {
                in_line.remove(&who);
                had.extend(locks.leave(now, who));
                locks.check();
            }
            prop_assert!(in_line.is_empty() && locks.is_empty());
        }
    }
}
