//! Virtual time at a disk: where a stream's next request may stand in the order, whatever it was served before.

use base::Time;
use core::ops::{Add, Sub};

/// Service divided by weight. Only differences matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tag(u128);

/// Of so many parts each is one unit of cost at a weight of 1: fine enough for a unit at the greatest weight.
const PARTS: u128 = 1 << 40;

impl Tag {
    /// The start of all.
    pub const ZERO: Tag = Tag(0);

    /// What `cost` adds to the tag of a stream of this weight.
    pub fn of(cost: u64, weight: u32) -> Tag {
        Tag(u128::from(cost) * PARTS / u128::from(weight.max(1)))
    }

    /// In units of cost at a weight of 1, for people.
    pub fn units(self) -> f64 {
        self.0 as f64 / PARTS as f64
    }
}

impl Add for Tag {
    type Output = Tag;

    fn add(self, more: Tag) -> Tag {
        Tag(self.0.saturating_add(more.0))
    }
}

impl Sub for Tag {
    type Output = Tag;

    /// 0 at the least.
    fn sub(self, less: Tag) -> Tag {
        Tag(self.0.saturating_sub(less.0))
    }
}

/// How a stream's start tags are bound to virtual time (section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Start-time fair queueing: who did not use its share loses it, and who used the shares of others does not pay for it.
    #[default]
    StartTime,
    /// A start tag is at most so far from virtual time, to both sides: who did not use its share gets so much of it later.
    Window(Tag),
    /// Virtual Clock: bound to real time, in which a stream of weight 1 is promised so many units of cost a second. Shares are those of the
    /// time since a stream was idle last.
    Real { units_per_second: u64 },
}

impl Clock {
    /// The start tag of a stream's first request, where virtual time was `since` when the stream began to wait, and is `now` at this moment;
    /// `next` is where what the stream was served before would put it.
    pub(super) fn start(self, next: Tag, (since, now): (Tag, Time)) -> Tag {
        match self {
            Clock::StartTime => next.max(since),
            Clock::Window(width) => next.clamp(since - width, since + width),
            Clock::Real { units_per_second } => {
                let units = u128::from(now.0) * u128::from(units_per_second) / 1_000_000_000;
                next.max(Tag::of(u64::try_from(units).unwrap_or(u64::MAX), 1))
            }
        }
    }
}
