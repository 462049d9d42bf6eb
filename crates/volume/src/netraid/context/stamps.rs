//! The stamps of this gateway's writes, and of those that it settles.

use base::{ClusterClock, ClusterTime, HashSet, Loan, Stamp, StampClock, Time};
use core::time::Duration;

/// So long a write waits before it asks again for a stamp: the directory makes loans longer as soon as it hears of their gateway.
pub(crate) const LOAN_AGAIN: Duration = Duration::from_millis(100);

/// The clock of stamps, own writes, writes being settled.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// `None` until the directory gave this gateway a number.
    clock: Option<StampClock>,
    /// Whether a stamp was seen that is too far ahead of the cluster's time as it is known here.
    is_behind: bool,
    /// Of this gateway's writes under way: they are not to be settled by its own readers.
    own: HashSet<Stamp>,
    /// Of writes being settled: on the bricks' request each is, once at a time.
    settling: HashSet<Stamp>,
}

impl Stamps {
    /// The directory lends this gateway a number, and says what time of the cluster it is.
    pub(crate) fn lend(&mut self, now: Time, time: ClusterTime, writer: u16, loan: Loan) {
        match &mut self.clock {
            Some(clock) => {
                clock.lend(writer, loan);
                clock.hear(now, time);
            }
            None => self.clock = Some(StampClock::new(writer, loan, ClusterClock::new(now, time))),
        }
    }

    /// The number of its writer.
    pub(crate) fn writer(&self) -> Option<u16> {
        self.clock.as_ref().map(StampClock::writer)
    }

    /// A new stamp for a write, whose stamp was `before` so far. None where the number is lent for no longer: the directory is away. Operations that
    /// write begin only once there is a clock.
    pub(crate) fn begin_write(&mut self, now: Time, before: Stamp) -> Option<Stamp> {
        self.own.remove(&before);
        let stamp = self.clock.as_mut().expect("registered before volumes are opened").draw(now)?;
        self.own.insert(stamp);
        Some(stamp)
    }

    /// The write is no longer under way.
    pub(crate) fn end_write(&mut self, stamp: Stamp) {
        self.own.remove(&stamp);
    }

    /// Whether this gateway's writer is still at work on the write.
    pub(crate) fn is_own(&self, stamp: Stamp) -> bool {
        self.own.contains(&stamp)
    }

    /// Whether this gateway's clock drew `stamp`.
    pub(crate) fn is_own_writer(&self, stamp: Stamp) -> bool {
        self.clock.as_ref().is_some_and(|clock| clock.drew(stamp))
    }

    /// The directory said what time of the cluster it is.
    pub(crate) fn hear(&mut self, now: Time, time: ClusterTime) {
        if let Some(clock) = &mut self.clock {
            clock.hear(now, time);
        }
    }

    /// Whether the directory is to be asked for the time, as a stamp is far ahead of it; says so once.
    pub(crate) fn takes_behind(&mut self) -> bool {
        core::mem::take(&mut self.is_behind)
    }

    /// What time of the cluster it is, once this gateway has a number.
    pub(crate) fn time(&self, now: Time) -> Option<ClusterTime> {
        self.clock.as_ref().map(|clock| clock.clock().time(now))
    }

    /// The next stamp is later than `stamp`.
    pub(crate) fn see(&mut self, now: Time, stamp: Stamp) {
        if let Some(clock) = &mut self.clock {
            self.is_behind |= clock.see(now, stamp);
        }
    }

    /// A write in doubt is being settled.
    pub(crate) fn begin_settling(&mut self, stamp: Stamp) {
        self.settling.insert(stamp);
    }

    /// It is settled, or nobody goes on with it.
    pub(crate) fn end_settling(&mut self, stamp: Stamp) {
        self.settling.remove(&stamp);
    }

    /// Whether nobody here is at work on the write: neither its writer nor a settler.
    pub(crate) fn is_left(&self, stamp: Stamp) -> bool {
        !self.own.contains(&stamp) && !self.settling.contains(&stamp)
    }
}
