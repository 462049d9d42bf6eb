//! A part of a segment: the fragments that it is, and all others where one of these does not come.

use super::{Access, Place};
use base::Time;
use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeSet;

/// Asks for the blocks that are wanted, as they are stored. Once one of them is late, or will not come, the whole segment is read; at once where there is
/// no patience.
#[derive(Debug)]
pub(super) struct Ranged {
    wanted: Range<u32>,
    /// After so long without all blocks that are wanted, those that have not come are late.
    patience: Duration,
    until: Option<Time>,
    whole: Box<dyn Access + Send>,
    /// What is asked for if the whole segment is read; none once it is.
    rest: Option<Vec<Place>>,
}

impl Ranged {
    pub(super) fn new(wanted: Range<u32>, patience: Duration, whole: Box<dyn Access + Send>) -> Ranged {
        Ranged { wanted, patience, until: None, whole, rest: None }
    }

    fn read_all(&mut self, now: Time) -> Vec<Place> {
        self.rest.take().map_or_else(Vec::new, |rest| self.whole.begin(now, &rest))
    }
}

impl Access for Ranged {
    fn begin(&mut self, now: Time, places: &[Place]) -> Vec<Place> {
        let mut asked = BTreeSet::new();
        let is_first = |(symbol, _): &&Place| self.wanted.contains(symbol) && asked.insert(*symbol);
        let mut first: Vec<Place> = places.iter().filter(is_first).copied().collect();
        self.rest = Some(places.iter().filter(|place| !first.contains(place)).copied().collect());
        if first.len() == self.wanted.len() {
            match self.patience.is_zero() {
                true => first.extend(self.read_all(now)),
                false => self.until = Some(now + self.patience),
            }
            return first;
        }
        self.rest = Some(places.to_vec());
        self.read_all(now)
    }

    fn ended(&mut self, now: Time, place: Place, has_come: bool) -> Vec<Place> {
        match (&self.rest, has_come) {
            (Some(_), true) => Vec::new(),
            (Some(_), false) => self.read_all(now),
            (None, _) => self.whole.ended(now, place, has_come),
        }
    }

    fn late(&mut self, now: Time, place: Place) -> Vec<Place> {
        match self.rest {
            Some(_) => self.read_all(now),
            None => self.whole.late(now, place),
        }
    }

    fn deadline(&self) -> Option<Time> {
        match self.rest {
            Some(_) => self.until,
            None => self.whole.deadline(),
        }
    }

    fn wake(&mut self, now: Time) -> Vec<Place> {
        match self.rest {
            Some(_) => self.read_all(now),
            None => self.whole.wake(now),
        }
    }

    fn unwanted(&mut self) -> Vec<Place> {
        self.whole.unwanted()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Speculative;
    use super::*;
    use base::BrickId;

    const PATIENCE: Duration = Duration::from_millis(9);

    fn ranged(patience: Duration, places: &[Place]) -> (Ranged, Vec<Place>) {
        let mut ranged = Ranged::new(1..3, patience, Box::new(Speculative));
        let first = ranged.begin(Time(0), places);
        (ranged, first)
    }

    #[test]
    fn a_part_is_read_alone_until_some_of_it_does_not_come() {
        let at = |symbol: u32| (symbol, BrickId(symbol + 1));
        let places: Vec<Place> = (0..5).map(at).collect();
        let (mut one, first) = ranged(PATIENCE, &places);
        assert_eq!(first, [at(1), at(2)]);
        assert_eq!(one.ended(Time(0), at(1), true), []);
        assert_eq!(one.ended(Time(0), at(2), false), [at(0), at(3), at(4)]);
        assert_eq!(one.ended(Time(0), at(0), true), []);
        let (mut other, _) = ranged(PATIENCE, &places);
        assert_eq!(other.late(Time(0), at(1)), [at(0), at(3), at(4)]);
        assert_eq!(other.late(Time(0), at(2)), [], "all are asked for");
        let (_, first) = ranged(PATIENCE, &places[2..]);
        assert_eq!(first, places[2..], "a block of the part is not stored as it is");
    }

    #[test]
    fn the_whole_is_read_when_there_is_no_patience_any_more() {
        let at = |symbol: u32| (symbol, BrickId(symbol + 1));
        let places: Vec<Place> = (0..5).map(at).collect();
        let (mut ranged_later, _) = ranged(PATIENCE, &places);
        let until = Time(0) + PATIENCE;
        assert_eq!(ranged_later.deadline(), Some(until));
        assert_eq!(ranged_later.wake(until), [at(0), at(3), at(4)]);
        assert_eq!(ranged_later.deadline(), None);
        let (ranged_at_once, first) = ranged(Duration::ZERO, &places);
        assert_eq!(first, [at(1), at(2), at(0), at(3), at(4)]);
        assert_eq!(ranged_at_once.deadline(), None);
    }
}
