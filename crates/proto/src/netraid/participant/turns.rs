//! Whose turn room is, at a disk that has not enough for all writes.
//!
//! A write that is told that the disk is busy keeps its place here: the next room is for the earliest stamp among those
//! that were turned away, and writes with later stamps are told to come again, though there be room for them. Otherwise
//! room goes to whoever happens to ask when it becomes free, and a write that needs room at many disks at once may never
//! find it. Writes give way to earlier stamps only, so that they form no circle; and a place is kept for a while after
//! its writer asked last, so that a writer that died holds up nobody for longer.

use base::{GroupId, Stamp, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::WriteId;

/// How long a place is kept after its writer asked last: longer than writers wait before they ask a busy disk again.
const KEPT: Duration = Duration::from_millis(200);
/// The most places that are kept. Who comes when there are so many with earlier stamps is turned away without one.
const PLACES_MAX: usize = 64;

/// The writes that were turned away lately.
#[derive(Debug, Default)]
pub(super) struct Turns {
    places: BTreeMap<Stamp, Place>,
}

#[derive(Debug)]
struct Place {
    group: GroupId,
    /// When its writer asked last.
    asked: Time,
}

impl Place {
    fn is_kept(&self, now: Time) -> bool {
        now.since(self.asked) < KEPT
    }
}

impl Turns {
    /// Whether room is kept for a write with an earlier stamp.
    pub(super) fn is_behind(&self, stamp: Stamp, now: Time) -> bool {
        self.places.range(..stamp).any(|(_, place)| place.is_kept(now))
    }

    /// The write is told that there is no room: it keeps its place, or gets one.
    pub(super) fn turn_away(&mut self, write: &WriteId, now: Time) {
        self.places.retain(|_, place| place.is_kept(now));
        self.places.insert(write.stamp, Place { group: write.group, asked: now });
        if self.places.len() > PLACES_MAX {
            self.places.pop_last();
        }
    }

    /// The write has its room, or wants none any more.
    pub(super) fn end(&mut self, stamp: Stamp) {
        self.places.remove(&stamp);
    }

    /// No write of the group comes again with the stamp that it had.
    pub(super) fn end_group(&mut self, group: GroupId) {
        self.places.retain(|_, place| place.group != group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::VolumeId;
    use wire::{Scope, Span};

    const GROUP: GroupId = GroupId(1);

    fn write(stamp: u64) -> WriteId {
        let span = Span { volume: VolumeId(1), lba: 0, count: 1 };
        WriteId { group: GROUP, span, stamp: Stamp(stamp), scope: Scope::Row }
    }

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn room_is_kept_for_the_earliest_that_was_turned_away() {
        let mut turns = Turns::default();
        assert!(!turns.is_behind(Stamp(9), at(0)), "nothing is kept where nobody is turned away");
        turns.turn_away(&write(5), at(0));
        turns.turn_away(&write(7), at(1));
        assert!(!turns.is_behind(Stamp(4), at(2)), "nobody gives way to a later stamp");
        assert!(!turns.is_behind(Stamp(5), at(2)), "nor to itself");
        assert!(turns.is_behind(Stamp(6), at(2)));
        turns.end(Stamp(5));
        assert!(!turns.is_behind(Stamp(6), at(2)));
        assert!(turns.is_behind(Stamp(8), at(2)));
        turns.end_group(GroupId(2));
        assert!(turns.is_behind(Stamp(8), at(2)), "of another group");
        turns.end_group(GROUP);
        assert!(!turns.is_behind(Stamp(8), at(2)));
    }

    #[test]
    fn a_writer_that_asks_no_more_loses_its_place() {
        let mut turns = Turns::default();
        turns.turn_away(&write(5), at(0));
        turns.turn_away(&write(5), at(150));
        assert!(turns.is_behind(Stamp(6), at(349)), "it asked again");
        assert!(!turns.is_behind(Stamp(6), at(350)));
    }

    #[test]
    fn the_places_are_bounded_and_go_to_the_earliest() {
        let mut turns = Turns::default();
        for stamp in (1..=2 * PLACES_MAX as u64).rev() {
            turns.turn_away(&write(stamp), at(0));
        }
        assert_eq!(turns.places.len(), PLACES_MAX);
        assert!(turns.is_behind(Stamp(2), at(0)));
    }
}
