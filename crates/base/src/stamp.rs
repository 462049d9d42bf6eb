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

/// The times of the cluster for which a number is lent to one writer, both ends included. No two loans of a number have a time in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loan {
    pub from: ClusterTime,
    pub until: ClusterTime,
}

impl Loan {
    /// Of a number that is lent without an end, as by releases that knew none.
    pub const UNBOUNDED: Loan = Loan { from: ClusterTime(0), until: ClusterTime::LAST };

    /// Whether a stamp of this time may be drawn.
    pub fn covers(self, time: ClusterTime) -> bool {
        (self.from..=self.until).contains(&time)
    }
}

/// Draws stamps for one writer, of the times for which its number is lent to it: so no stamp is drawn twice.
#[derive(Debug, Clone)]
pub struct StampClock {
    writer: u16,
    loan: Loan,
    /// Of the stamp drawn last, or of a later one that was seen.
    last: ClusterTime,
    clock: ClusterClock,
}

impl StampClock {
    /// How many writers can be told apart.
    pub const WRITERS: u16 = 1 << WRITER_BITS;

    /// A clock for `writer`, below [`StampClock::WRITERS`].
    pub fn new(writer: u16, loan: Loan, clock: ClusterClock) -> StampClock {
        assert!(writer < StampClock::WRITERS, "writer {writer} does not fit in a stamp");
        StampClock { writer, loan, last: ClusterTime::default(), clock }
    }

    pub fn writer(&self) -> u16 {
        self.writer
    }

    /// The number is lent to it from now on: the one that it has for longer, or another one.
    pub fn lend(&mut self, writer: u16, loan: Loan) {
        assert!(writer < StampClock::WRITERS, "writer {writer} does not fit in a stamp");
        let is_older = writer == self.writer && self.loan != Loan::UNBOUNDED && loan.until < self.loan.until;
        if !is_older {
            (self.writer, self.loan) = (writer, loan);
        }
    }

    /// Whether it drew `stamp`, under the number that it has.
    pub fn drew(&self, stamp: Stamp) -> bool {
        stamp.writer() == self.writer && self.loan.covers(stamp.time())
    }

    /// What it knows of the cluster's time.
    pub fn clock(&self) -> &ClusterClock {
        &self.clock
    }

    /// The directory said what time it is.
    pub fn hear(&mut self, now: Time, time: ClusterTime) {
        self.clock.hear(now, time);
    }

    /// A stamp later than all that this clock drew or [saw](StampClock::see), close to the cluster's time. None where that is after the end of
    /// the loan.
    pub fn draw(&mut self, now: Time) -> Option<Stamp> {
        let next = ClusterTime(self.last.0 + 1).max(self.clock.time(now)).max(self.loan.from);
        if next > self.loan.until.min(ClusterTime::LAST) {
            return None;
        }
        self.last = next;
        Some(Stamp::new(next, self.writer))
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
        (StampClock::new(writer, Loan::UNBOUNDED, ClusterClock::new(now, ClusterTime::FIRST)), now)
    }

    fn draw(clock: &mut StampClock, now: Time) -> Stamp {
        clock.draw(now).expect("its number is lent to it")
    }

    #[test]
    fn stamps_are_unique_and_follow_what_was_seen() {
        for date_s in DATES_S {
            let ((mut a, noon), (mut b, _)) = (at(1, date_s), at(2, date_s));
            let first = draw(&mut a, noon + Duration::from_millis(5));
            assert!(draw(&mut a, noon) > first, "a clock that jumps back draws later stamps all the same");
            let second = draw(&mut b, noon);
            assert!(!b.see(noon, first), "it is not far ahead");
            assert!(second < first && draw(&mut b, noon) > first);
            assert_eq!((first.writer(), second.writer()), (1, 2));
        }
    }

    #[test]
    fn clocks_of_any_dates_draw_the_same_stamps() {
        let of = |date_s| {
            let (mut clock, now) = at(1, date_s);
            draw(&mut clock, now + HOUR)
        };
        assert!(DATES_S.iter().all(|date_s| of(*date_s) == of(0)));
    }

    #[test]
    fn a_stamp_from_the_end_of_all_times_takes_nobody_there() {
        let (mut clock, now) = at(1, DATES_S[1]);
        assert!(clock.see(now, Stamp(u64::MAX)), "it is far ahead");
        let drawn = draw(&mut clock, now).time();
        assert!(drawn > ClusterTime::FIRST && drawn < clock.clock().limit(now), "{drawn:?}");
    }

    #[test]
    fn at_the_end_of_time_there_are_stamps_left() {
        let now = Time(DATES_S[1] * 1_000_000_000);
        let mut clock = StampClock::new(1, Loan::UNBOUNDED, ClusterClock::new(now, ClusterTime::LAST));
        let (first, later) = (draw(&mut clock, now), draw(&mut clock, now + 1000 * HOUR));
        assert!(clock.see(now, Stamp(u64::MAX)));
        assert!(first < later && later < draw(&mut clock, now));
    }

    #[test]
    fn no_stamp_is_drawn_outside_the_loan() {
        let now = Time(DATES_S[1] * 1_000_000_000);
        let (from, until) = (ClusterTime::FIRST + HOUR, ClusterTime::FIRST + 2 * HOUR);
        let mut clock = StampClock::new(1, Loan { from, until }, ClusterClock::new(now, ClusterTime::FIRST));
        let first = draw(&mut clock, now);
        assert_eq!(first.time(), from, "its clock is behind the directory's");
        assert!(clock.drew(first));
        assert!(clock.draw(now + 2 * HOUR).is_some());
        assert_eq!(clock.draw(now + 3 * HOUR), None);
    }

    #[test]
    fn a_loan_is_made_longer_and_never_shorter_by_a_message_that_comes_late() {
        let now = Time(DATES_S[1] * 1_000_000_000);
        let loan = |hours| Loan { from: ClusterTime::FIRST, until: ClusterTime::FIRST + hours * HOUR };
        let mut clock = StampClock::new(1, Loan::UNBOUNDED, ClusterClock::new(now, ClusterTime::FIRST));
        clock.lend(1, loan(1));
        assert_eq!(clock.draw(now + 2 * HOUR), None, "an end was set to it");
        clock.lend(1, loan(3));
        clock.lend(1, loan(2));
        assert!(clock.draw(now + 3 * HOUR - Duration::from_secs(1)).is_some());
        let before = draw(&mut clock, now);
        clock.lend(2, Loan { from: ClusterTime::FIRST + 5 * HOUR, until: ClusterTime::FIRST + 6 * HOUR });
        assert!(!clock.drew(before));
        assert!(draw(&mut clock, now) > before);
    }
}
