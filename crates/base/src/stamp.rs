//! Timestamps of writes (the papers' `ts`): what orders two writes of one block.

use crate::{ClusterClock, ClusterTime, Time};
use core::fmt;

/// Bits of a stamp that name the writer.
const WRITER_BITS: u32 = 14;

/// The timestamp of a write. Stamps are unique and totally ordered: the upper 50 bits are a hybrid logical clock that
/// follows the [time of the cluster](ClusterTime), the lower 14 the writer. `Stamp::ZERO` means "never written".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The stamp of a block that was never written.
    pub const ZERO: Stamp = Stamp(0);

    fn new(time: ClusterTime, writer: u16) -> Stamp {
        assert!(time <= ClusterTime::LAST, "{time:?} is after the last stamp");
        Stamp(time.0 << WRITER_BITS | u64::from(writer))
    }

    /// Whether the block was never written.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The number of the writer that drew it.
    pub fn writer(self) -> u16 {
        (self.0 & ((1 << WRITER_BITS) - 1)) as u16
    }

    /// When it was drawn.
    pub fn time(self) -> ClusterTime {
        ClusterTime(self.0 >> WRITER_BITS)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.time().0, self.writer())
    }
}

/// Draws stamps for one writer. No two writers that live at the same time share a number (the directory gives them
/// out in turn), so no stamp is drawn twice.
#[derive(Debug, Clone)]
pub struct StampClock {
    writer: u16,
    /// Of the stamp drawn last, or of a later one that was seen.
    last: ClusterTime,
    clock: ClusterClock,
}

impl StampClock {
    /// How many writers can be told apart.
    pub const WRITERS: u16 = 1 << WRITER_BITS;

    /// A clock for `writer`, below [`StampClock::WRITERS`].
    pub fn new(writer: u16, clock: ClusterClock) -> StampClock {
        assert!(writer < StampClock::WRITERS, "writer {writer} does not fit in a stamp");
        StampClock { writer, last: ClusterTime::default(), clock }
    }

    pub fn writer(&self) -> u16 {
        self.writer
    }

    /// What it knows of the cluster's time.
    pub fn clock(&self) -> &ClusterClock {
        &self.clock
    }

    /// The directory said what time it is.
    pub fn hear(&mut self, now: Time, time: ClusterTime) {
        self.clock.hear(now, time);
    }

    /// A stamp later than all that this clock drew or [saw](StampClock::see), close to the cluster's time.
    pub fn draw(&mut self, now: Time) -> Stamp {
        self.last = ClusterTime(self.last.0 + 1).max(self.clock.time(now));
        Stamp::new(self.last, self.writer)
    }

    /// Takes note of another writer's stamp: the next one drawn here is later, as far as bricks take such stamps. True where `other` is
    /// beyond that: either its writer lied, or this clock has not heard what time it is.
    #[must_use]
    pub fn see(&mut self, now: Time, other: Stamp) -> bool {
        let limit = self.clock.follows_to(now);
        self.last = self.last.max(other.time().min(limit));
        other.time() > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);
    /// Days on which machines' clocks may stand: 1970, 2026, 2038, 2042, 2106, 2500.
    const DATES_S: [u64; 6] = [0, 1_796_000_000, 2_147_483_647, 2_302_000_000, 4_294_967_296, 16_725_225_600];

    fn at(writer: u16, date_s: u64) -> (StampClock, Time) {
        let now = Time(date_s * 1_000_000_000);
        (StampClock::new(writer, ClusterClock::new(now, ClusterTime::FIRST)), now)
    }

    #[test]
    fn stamps_are_unique_and_follow_what_was_seen() {
        for date_s in DATES_S {
            let ((mut a, noon), (mut b, _)) = (at(1, date_s), at(2, date_s));
            let first = a.draw(noon + Duration::from_millis(5));
            assert!(a.draw(noon) > first, "a clock that jumps back draws later stamps all the same");
            let second = b.draw(noon);
            assert!(!b.see(noon, first), "it is not far ahead");
            assert!(second < first && b.draw(noon) > first);
            assert_eq!((first.writer(), second.writer()), (1, 2));
        }
    }

    #[test]
    fn clocks_of_any_dates_draw_the_same_stamps() {
        let of = |date_s| {
            let (mut clock, now) = at(1, date_s);
            clock.draw(now + HOUR)
        };
        assert!(DATES_S.iter().all(|date_s| of(*date_s) == of(0)));
    }

    #[test]
    fn a_stamp_from_the_end_of_all_times_takes_nobody_there() {
        let (mut clock, now) = at(1, DATES_S[1]);
        assert!(clock.see(now, Stamp(u64::MAX)), "it is far ahead");
        let drawn = clock.draw(now).time();
        assert!(drawn > ClusterTime::FIRST && drawn < clock.clock().limit(now), "{drawn:?}");
    }

    #[test]
    fn at_the_end_of_time_there_are_stamps_left() {
        let now = Time(DATES_S[1] * 1_000_000_000);
        let mut clock = StampClock::new(1, ClusterClock::new(now, ClusterTime::LAST));
        let (first, later) = (clock.draw(now), clock.draw(now + 1000 * HOUR));
        assert!(clock.see(now, Stamp(u64::MAX)));
        assert!(first < later && later < clock.draw(now));
    }
}
