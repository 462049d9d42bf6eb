//! Whose turn room is, at a disk that has not enough for all writes.
//!
//! A write that is told that the disk is busy keeps its place here: the next room is for the earliest stamp among those
//! that were turned away, and writes with later stamps are told to come again, though there be room for them. Otherwise
//! room goes to whoever happens to ask when it becomes free, and a write that needs room at many disks at once may never
//! find it. Writes give way to earlier stamps only, so that they form no circle; and a place is kept for a while after
//! its writer asked last, so that a writer that died holds up nobody for longer.

use base::{Stamp, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// How long a place is kept after its writer asked last: longer than writers wait before they ask a busy disk again.
const KEPT: Duration = Duration::from_millis(200);
/// The most places that are kept. Who comes when there are so many with earlier stamps is turned away without one.
const PLACES_MAX: usize = 64;

/// The writes that were turned away lately.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// When each asked last.
    asked: BTreeMap<Stamp, Time>,
}

impl Turns {
    /// Whether room is kept for a write with an earlier stamp.
    pub(super) fn is_behind(&self, stamp: Stamp, now: Time) -> bool {
        self.asked.range(..stamp).any(|(_, asked)| is_kept(*asked, now))
    }

    /// The write is told that the disk is busy: it keeps its place, or gets one.
    pub(super) fn turn_away(&mut self, stamp: Stamp, now: Time) {
        self.asked.retain(|_, asked| is_kept(*asked, now));
        self.asked.insert(stamp, now);
        if self.asked.len() > PLACES_MAX {
            self.asked.pop_last();
        }
    }

    /// The write has its room, or wants none any more.
    pub(super) fn end(&mut self, stamp: Stamp) {
        self.asked.remove(&stamp);
    }
}

fn is_kept(asked: Time, now: Time) -> bool {
    now.since(asked) < KEPT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn room_is_kept_for_the_earliest_that_was_turned_away() {
        let mut turns = Turns::default();
        assert!(!turns.is_behind(Stamp(9), at(0)), "nothing is kept where nobody is turned away");
        turns.turn_away(Stamp(5), at(0));
        turns.turn_away(Stamp(7), at(1));
        assert!(!turns.is_behind(Stamp(4), at(2)), "nobody gives way to a later stamp");
        assert!(!turns.is_behind(Stamp(5), at(2)), "nor to itself");
        assert!(turns.is_behind(Stamp(6), at(2)));
        turns.end(Stamp(5));
        assert!(!turns.is_behind(Stamp(6), at(2)));
        assert!(turns.is_behind(Stamp(8), at(2)));
    }

    #[test]
    fn a_writer_that_asks_no_more_loses_its_place() {
        let mut turns = Turns::default();
        turns.turn_away(Stamp(5), at(0));
        turns.turn_away(Stamp(5), at(150));
        assert!(turns.is_behind(Stamp(6), at(349)), "it asked again");
        assert!(!turns.is_behind(Stamp(6), at(350)));
    }

    #[test]
    fn the_places_are_bounded_and_go_to_the_earliest() {
        let mut turns = Turns::default();
        for stamp in (1..=2 * PLACES_MAX as u64).rev() {
            turns.turn_away(Stamp(stamp), at(0));
        }
        assert_eq!(turns.asked.len(), PLACES_MAX);
        assert!(turns.is_behind(Stamp(2), at(0)));
    }
}
