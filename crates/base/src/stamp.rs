//! Timestamps of writes (the papers' `ts`): what orders two writes of one block.

use crate::Time;
use core::fmt;

/// Bits of a stamp that name the writer.
const WRITER_BITS: u32 = 14;

/// The timestamp of a write. Stamps are unique and totally ordered: the upper 50 bits are a hybrid logical clock in
/// units of 1024 ns (35 years from its epoch), the lower 14 the writer. `Stamp::ZERO` means "never written".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The stamp of a block that was never written.
    pub const ZERO: Stamp = Stamp(0);

    /// Whether the block was never written.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The number of the writer that drew it.
    pub fn writer(self) -> u16 {
        (self.0 & ((1 << WRITER_BITS) - 1)) as u16
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.0 >> WRITER_BITS, self.writer())
    }
}

/// Draws stamps for one writer. No two writers that live at the same time share a number (the directory gives them
/// out in turn), so no stamp is drawn twice.
#[derive(Debug, Clone)]
pub struct StampClock {
    writer: u16,
    last: u64,
}

impl StampClock {
    /// How many writers can be told apart.
    pub const WRITERS: u16 = 1 << WRITER_BITS;

    /// A clock for `writer`, below [`StampClock::WRITERS`].
    pub fn new(writer: u16) -> StampClock {
        assert!(writer < StampClock::WRITERS, "writer {writer} does not fit in a stamp");
        StampClock { writer, last: 0 }
    }

    pub fn writer(&self) -> u16 {
        self.writer
    }

    /// A stamp later than all that this clock drew or [saw](StampClock::see), close to `now`.
    pub fn draw(&mut self, now: Time) -> Stamp {
        self.last = (self.last + 1).max(now.0 >> 10);
        Stamp(self.last << WRITER_BITS | u64::from(self.writer))
    }

    /// Takes note of another writer's stamp: the next one drawn here is later.
    pub fn see(&mut self, other: Stamp) {
        self.last = self.last.max(other.0 >> WRITER_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_unique_and_follow_what_was_seen() {
        let (mut a, mut b) = (StampClock::new(1), StampClock::new(2));
        let first = a.draw(Time(5_000_000));
        assert!(a.draw(Time(0)) > first, "a clock that jumps back draws later stamps all the same");
        let second = b.draw(Time(0));
        b.see(first);
        assert!(second < first && b.draw(Time(0)) > first);
        assert_eq!((first.writer(), second.writer()), (1, 2));
    }
}
