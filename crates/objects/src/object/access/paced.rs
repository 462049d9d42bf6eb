//! A few at a time.

use super::{Access, Place};
use base::{BrickId, Time};
use std::collections::{BTreeMap, VecDeque};

/// Asks each brick for a few fragments at a time, the lowest numbers first: a fast brick is asked for more, and what is read in vain is what
/// is under way at the end.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    window: usize,
    left: BTreeMap<BrickId, VecDeque<u32>>,
}

impl Paced {
    /// At most so many fragments of a brick are under way, one at least.
    pub(super) fn new(window: usize) -> Paced {
        Paced { window: window.max(1), left: BTreeMap::new() }
    }
}

impl Access for Paced {
    fn begin(&mut self, _: Time, places: &[Place]) -> Vec<Place> {
        let mut places = places.to_vec();
        places.sort_unstable();
        places.iter().for_each(|(index, brick)| self.left.entry(*brick).or_default().push_back(*index));
        let first = |(brick, left): (&BrickId, &mut VecDeque<u32>)| {
            let count = self.window.min(left.len());
            left.drain(..count).map(|index| (index, *brick)).collect::<Vec<Place>>()
        };
        self.left.iter_mut().flat_map(first).collect()
    }

    fn ended(&mut self, _: Time, (_, brick): Place, _: bool) -> Vec<Place> {
        let next = self.left.get_mut(&brick).and_then(VecDeque::pop_front);
        next.map(|index| (index, brick)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brick_is_asked_again_as_it_answers() {
        let [a, b] = [BrickId(1), BrickId(2)];
        let mut paced = Paced::new(2);
        let places = [(0, a), (1, b), (2, a), (3, b), (4, a)];
        assert_eq!(paced.begin(Time(0), &places), [(0, a), (2, a), (1, b), (3, b)]);
        assert_eq!(paced.ended(Time(0), (0, a), true), [(4, a)]);
        assert_eq!(paced.ended(Time(0), (2, a), true), []);
        assert_eq!(paced.ended(Time(0), (1, b), false), []);
    }
}
