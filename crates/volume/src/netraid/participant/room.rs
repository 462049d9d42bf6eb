//! For whom room is kept, at a disk that has not enough for all writes.
//!
//! A write for which there is no room keeps its place here, with the room that it wants. A write with a later stamp is
//! staged only where that much is left over for it: otherwise room goes to whoever happens to ask when it becomes free,
//! and a write that needs room at many disks at once may never find it. Writes give way to earlier stamps only, so that
//! they form no circle; and a place is kept for a while after its writer asked last, so that a writer that died holds up
//! nobody for longer.
//!
//! Room is kept, not the disk: where there is enough for both, the later write goes first. If it had to make way all the
//! same it would be made way for in its turn, and a disk that lacked room for a moment would from then on serve one write
//! each time that somebody asks again. Blocks that a write copies up before it is staged are not held back.

use base::{GroupId, Stamp, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::WriteId;

/// How long a place is kept after its writer asked last: longer than writers wait before they ask a busy disk again, and than they wait there for
/// their turn under most limits.
const KEPT: Duration = Duration::from_millis(400);
/// The most places that are kept. Who comes when there are so many with earlier stamps is turned away without one.
const PLACES_MAX: usize = 64;

/// What a write takes at most beside its content: its record, and stamps and checksums a block.
const RECORD_BYTES: usize = 512;
const BYTES_A_BLOCK: usize = 64;

/// The room that a write wants.
fn room(write: &WriteId) -> usize {
    write.span.bytes() + BYTES_A_BLOCK * write.span.count as usize + RECORD_BYTES
}

/// The writes that were turned away lately.
#[derive(Debug, Default)]
pub(super) struct KeptRoom {
    places: BTreeMap<Stamp, Place>,
}

#[derive(Debug)]
struct Place {
    group: GroupId,
    /// The room that it wants.
    bytes: usize,
    /// When its writer asked last.
    asked: Time,
}

impl Place {
    fn is_kept(&self, now: Time) -> bool {
        now.since(self.asked) < KEPT
    }
}

impl KeptRoom {
    /// The room that is kept for writes with earlier stamps, in bytes.
    pub(super) fn kept_before(&self, stamp: Stamp, now: Time) -> usize {
        let kept = self.places.range(..stamp).filter(|(_, place)| place.is_kept(now));
        kept.map(|(_, place)| place.bytes).sum()
    }

    /// There is no room for the write: it keeps its place, or gets one.
    pub(super) fn turn_away(&mut self, write: &WriteId, now: Time) {
        self.places.retain(|_, place| place.is_kept(now));
        let place = Place { group: write.group, bytes: room(write), asked: now };
        self.places.insert(write.stamp, place);
        if self.places.len() > PLACES_MAX {
            self.places.pop_last();
        }
    }

    /// The write asks the disk itself, or wants no room any more.
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
        WriteId { group: GROUP, span, stamp: Stamp(stamp), scope: Scope::Row, link: None }
    }

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn room_is_kept_for_the_earlier_ones_that_were_turned_away() {
        let (mut kept, one) = (KeptRoom::default(), room(&write(1)));
        assert_eq!(kept.kept_before(Stamp(9), at(0)), 0, "nothing is kept where nobody is turned away");
        kept.turn_away(&write(5), at(0));
        kept.turn_away(&write(7), at(1));
        assert_eq!(kept.kept_before(Stamp(4), at(2)), 0, "nobody gives way to a later stamp");
        assert_eq!(kept.kept_before(Stamp(5), at(2)), 0, "nor to itself");
        assert_eq!(kept.kept_before(Stamp(6), at(2)), one);
        assert_eq!(kept.kept_before(Stamp(8), at(2)), 2 * one);
        kept.end(Stamp(5));
        assert_eq!(kept.kept_before(Stamp(6), at(2)), 0);
        assert_eq!(kept.kept_before(Stamp(8), at(2)), one);
        kept.end_group(GroupId(2));
        assert_eq!(kept.kept_before(Stamp(8), at(2)), one, "of another group");
        kept.end_group(GROUP);
        assert_eq!(kept.kept_before(Stamp(8), at(2)), 0);
    }

    #[test]
    fn a_writer_that_asks_no_more_loses_its_place() {
        let (mut kept, one) = (KeptRoom::default(), room(&write(1)));
        kept.turn_away(&write(5), at(0));
        kept.turn_away(&write(5), at(150));
        assert_eq!(kept.kept_before(Stamp(6), at(549)), one, "it asked again");
        assert_eq!(kept.kept_before(Stamp(6), at(550)), 0);
    }

    #[test]
    fn the_places_are_bounded_and_go_to_the_earliest() {
        let (mut kept, one) = (KeptRoom::default(), room(&write(1)));
        for stamp in (1..=2 * PLACES_MAX as u64).rev() {
            kept.turn_away(&write(stamp), at(0));
        }
        assert_eq!(kept.places.len(), PLACES_MAX);
        assert_eq!(kept.kept_before(Stamp(2), at(0)), one);
    }
}
