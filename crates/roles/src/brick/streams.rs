//! Streams as the directory tells them: shares for every disk, by whose weights requests take their turns while there is anything to share; and what
//! the directory is told of what they were served.
//!
//! Nothing of it is durable. A brick that starts goes by its configuration, until the answer to its first heartbeat.

use super::{Brick, BrickEffect};
use base::{StreamId, Time};
use core::cmp::Reverse;
use core::time::Duration;
use reads::seat::{Kept, Places, Targets, Turns};
use rules::counters::Counter;
use rules::fair::{Order, Share, Shares};
use std::collections::BTreeMap;
use volume::netraid::participant::Participant;
use wire::{StreamInfo, StreamReport, StreamTable, StreamUse, TargetUse};

#[derive(Debug)]
pub(super) struct Streams {
    /// How requests take their turns as long as there is nothing to share.
    usual: Turns,
    table: Option<StreamTable>,
    /// What was served of each stream by the last report, to tell which are the busiest since.
    reported: BTreeMap<StreamId, u64>,
}

impl Streams {
    pub(super) fn new(usual: Turns) -> Streams {
        Streams { usual, table: None, reported: BTreeMap::new() }
    }

    /// How requests take their turns under a table.
    fn turns(&self, table: Option<&StreamTable>) -> Turns {
        match table.filter(|table| table.is_shared()) {
            Some(table) => {
                Turns { order: Order::FAIR, places: Places(table.places.max(1) as usize), ..self.usual }
            }
            None => self.usual,
        }
    }

    /// The busiest streams since the last report; those that wait count as busy.
    fn report(&mut self, uses: Vec<StreamUse>) -> StreamReport {
        let since = |used: &StreamUse| {
            used.served - self.reported.get(&used.stream).copied().unwrap_or(0).min(used.served)
        };
        let mut busiest = uses.clone();
        busiest.sort_by_key(|used| (Reverse(used.waiting > 0), Reverse(since(used)), used.stream));
        busiest.truncate(StreamReport::USES_MAX);
        self.reported = uses.into_iter().map(|used| (used.stream, used.served)).collect();
        let known = self.table.as_ref().map_or(0, |table| table.version);
        StreamReport { known, uses: busiest, ..StreamReport::default() }
    }
}

fn share(stream: &StreamInfo) -> Share {
    Share::total(stream.weight).with_minimum(stream.minimum).with_rates(stream.reservation, stream.limit)
}

impl Brick {
    /// The directory tells what streams are entitled to.
    pub(super) fn on_streams(&mut self, now: Time, table: StreamTable, fx: &mut Vec<BrickEffect>) {
        let before = self.streams.turns(self.streams.table.as_ref());
        let turns = self.streams.turns(Some(&table));
        let shares: Shares = table.streams.iter().map(|stream| (stream.id, share(stream))).collect();
        let timed = table.streams.iter().filter(|stream| stream.latency_us > 0);
        let targets: Targets =
            timed.map(|stream| (stream.id, Duration::from_micros(u64::from(stream.latency_us)))).collect();
        if self.waits_of_changed(&table) {
            self.counters.count(Counter::StreamChangedWhileItsRequestsWaited);
        }
        self.streams.table = Some(table);
        self.with_all(now, fx, |participant, cx| {
            if turns.order != before.order {
                participant.set_turns(cx, turns.order.discipline(), turns);
            }
            participant.set_places(turns.places);
            participant.set_shares(now, &shares);
            participant.set_targets(&targets);
        });
    }

    /// Whether requests wait of a stream that is another one in this table.
    fn waits_of_changed(&self, table: &StreamTable) -> bool {
        let before = |id| self.streams.table.as_ref().and_then(|before| before.get(id));
        self.stream_uses()
            .iter()
            .any(|used| used.waiting > 0 && before(used.stream) != table.get(used.stream))
    }

    /// What the directory is told with a heartbeat.
    pub(super) fn report_streams(&mut self) -> StreamReport {
        let uses = self.stream_uses();
        let (capacity, targets) = (self.capacity(), self.targets_kept());
        StreamReport { capacity, targets, ..self.streams.report(uses) }
    }

    /// How targets were kept lately, over all disks: of the first streams, as many as a report has room for.
    fn targets_kept(&self) -> Vec<TargetUse> {
        let mut all: BTreeMap<StreamId, TargetUse> = BTreeMap::new();
        for (stream, Kept { timed, late }) in self.participants.iter().flat_map(Participant::targets_kept) {
            let sum = all.entry(stream).or_insert(TargetUse { stream, ..TargetUse::default() });
            (sum.timed, sum.late) = (sum.timed + timed, sum.late + late);
        }
        all.into_values().take(StreamReport::USES_MAX).collect()
    }

    /// How many requests each disk has at a time now, while streams share it: fewer than the cluster says while a stream's latency target is missed.
    pub fn places_used(&self, now: Time) -> Vec<usize> {
        let used = self.participants.iter().map(|participant| participant.places_used(now));
        used.filter(|places| *places != Places::UNLIMITED).map(|places| places.0).collect()
    }

    /// What all disks together can serve, in units of cost a second, as far as they were seen to; 0 as long as that is not known of one of them. Blocks
    /// are spread evenly over the disks, so the slowest one says what a brick can serve.
    pub fn capacity(&self) -> u64 {
        let slowest = self.participants.iter().map(Participant::capacity).min().unwrap_or(0);
        slowest.saturating_mul(self.participants.len() as u64)
    }

    /// What each stream was served here, over all disks.
    pub fn stream_uses(&self) -> Vec<StreamUse> {
        let mut all: BTreeMap<StreamId, StreamUse> = BTreeMap::new();
        for used in self.participants.iter().flat_map(|participant| participant.stream_uses()) {
            let sum = all.entry(used.stream).or_default();
            *sum = StreamUse {
                stream: used.stream,
                served: sum.served + used.served,
                requests: sum.requests + used.requests,
                turn_us: sum.turn_us.saturating_add(used.turn_us),
                waiting: sum.waiting + used.waiting,
            };
        }
        all.into_values().collect()
    }

    /// A stream's name, where the directory has told it.
    pub fn stream_name(&self, id: StreamId) -> Option<&str> {
        Some(&self.streams.table.as_ref()?.get(id)?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_streams_are_reported_and_who_waits_is_among_them() {
        let mut streams = Streams::new(Turns::default());
        let used = |stream, served, waiting| StreamUse {
            stream: StreamId(stream),
            served,
            requests: served,
            turn_us: 0,
            waiting,
        };
        let all = |of: &dyn Fn(u32) -> StreamUse| (0..200).map(of).collect::<Vec<_>>();
        let first = streams.report(all(&|n| used(n, u64::from(n), 0)));
        assert_eq!(first.uses.len(), StreamReport::USES_MAX);
        assert!(first.uses.iter().all(|used| used.stream.0 >= 136), "{:?}", first.uses);
        // Since then the first ones were served, and one waits that was not.
        let second =
            streams.report(all(&|n| used(n, if n < 50 { 1000 } else { u64::from(n) }, u32::from(n == 150))));
        let is_told = |n| second.uses.iter().any(|used| used.stream == StreamId(n));
        assert!((0..50).all(is_told) && is_told(150), "{:?}", second.uses);
    }
}
