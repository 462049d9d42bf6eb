//! What each stream was served at a disk, and for how long its requests waited for their turn.

use base::StreamId;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::StreamUse;

/// So many streams are counted at a time; an asker that names one after the other finds no more memory than this.
const STREAMS_MAX: usize = 1024;

/// What was counted of a stream. Each figure only grows, so that whoever compares two looks sees which is the later one.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    served: u64,
    requests: u64,
    turn_us: u64,
    /// Charged, and not served after all: what is served next counts against it.
    refunded: u64,
    /// Whether it was served since room was looked for last.
    is_busy: bool,
}

/// The counts of a disk, since the brick started.
#[derive(Debug, Default)]
pub(super) struct Tally {
    streams: BTreeMap<StreamId, Counted>,
}

impl Tally {
    /// A request has its turn.
    pub(super) fn served(&mut self, stream: StreamId, cost: u32, waited: Duration) {
        let Some(counted) = self.entry(stream) else { return };
        let cost = u64::from(cost);
        let refunded = counted.refunded.min(cost);
        counted.refunded -= refunded;
        counted.served += cost - refunded;
        counted.requests += 1;
        counted.turn_us += u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        counted.is_busy = true;
    }

    /// One that had its turn was not served here.
    pub(super) fn refund(&mut self, stream: StreamId, cost: u32) {
        if let Some(counted) = self.streams.get_mut(&stream) {
            counted.refunded += u64::from(cost);
        }
    }

    /// A stream's counts, and none once there are too many streams. Those that were idle lately are forgotten then, and begin anew.
    fn entry(&mut self, stream: StreamId) -> Option<&mut Counted> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            self.streams.retain(|_, counted| core::mem::replace(&mut counted.is_busy, false));
            if self.streams.len() >= STREAMS_MAX {
                return None;
            }
        }
        Some(self.streams.entry(stream).or_default())
    }

    /// Whether a stream is counted.
    pub(super) fn counts(&self, stream: StreamId) -> bool {
        self.streams.contains_key(&stream)
    }

    /// All that are counted; of those nobody waits, as far as is known here.
    pub(super) fn uses(&self) -> impl Iterator<Item = StreamUse> {
        self.streams.iter().map(|(stream, counted)| StreamUse {
            stream: *stream,
            served: counted.served,
            requests: counted.requests,
            turn_us: counted.turn_us,
            waiting: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refunded_is_not_counted_and_no_figure_shrinks() {
        let mut tally = Tally::default();
        let (stream, ms) = (StreamId(7), Duration::from_millis(1));
        tally.served(stream, 9, ms);
        tally.refund(stream, 9);
        let served =
            |tally: &Tally| tally.uses().map(|used| (used.served, used.requests)).collect::<Vec<_>>();
        assert_eq!(served(&tally), [(9, 1)]);
        tally.served(stream, 12, ms);
        assert_eq!(served(&tally), [(12, 2)], "9 of 12 are what was not served before");
        assert_eq!(tally.uses().map(|used| used.turn_us).sum::<u64>(), 2000);
    }

    #[test]
    fn who_names_many_streams_takes_no_more_memory() {
        let mut tally = Tally::default();
        for stream in 0..10_000 {
            tally.served(StreamId(stream), 9, Duration::ZERO);
            tally.served(StreamId::REPAIR, 9, Duration::ZERO);
        }
        assert!(tally.streams.len() <= STREAMS_MAX);
        let repairs = tally.uses().find(|used| used.stream == StreamId::REPAIR).expect("it is busy");
        assert_eq!(repairs.requests, 10_000);
    }
}
