//! Latency targets: how many of its places a disk uses, so that streams with a target get it.
//!
//! A request that has its turn is delayed by all that are at the disk before it. The fewer places, the sooner it is served. So a disk lowers its places
//! while a target is missed, and raises them while targets are kept: additive increase, multiplicative decrease, by what happens and not by a clock.
//!
//! *What is measured*: from a request's arrival at the disk's queue to its answer. Only a request counts that came while nobody of its own stream
//! waited: a stream that queues behind itself is not helped by fewer places.
//!
//! One place there is always, so that work is conserved. With no request that counts for [`QUIET`] the places return, one each [`STEP`].

use base::{StreamId, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// After so many requests in time there is one place more. Where that is one too many, a request is late by it: less than one of 50.
const RAISE_AFTER: u32 = 50;
/// Longer than the pauses of a client that asks for one thing after the other, and shorter than what operators call idle.
const QUIET: Duration = Duration::from_secs(1);
/// From one place to the usual 32 in three seconds.
const STEP: Duration = Duration::from_millis(100);
/// Whether a target is kept is told of so many of the latest requests: the bits of a word.
const LATEST: u32 = u128::BITS;

/// What streams are to be served within, by stream.
pub type Targets = BTreeMap<StreamId, Duration>;

/// How a stream's target was kept lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// The latest requests that count, 128 at the most.
    pub timed: u32,
    /// Those of them that were late.
    pub late: u32,
}

/// A stream's latest requests, one a bit: whether they were late.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    timed: u32,
    late: u128,
}

impl Latest {
    fn note(&mut self, is_late: bool) {
        self.timed = (self.timed + 1).min(LATEST);
        self.late = self.late << 1 | u128::from(is_late);
    }
}

/// The places of one disk.
#[derive(Debug, Default)]
pub(super) struct Pace {
    targets: Targets,
    latest: BTreeMap<StreamId, Latest>,
    /// How many places fewer than it may use the disk uses, as of the last request that counted.
    fewer: usize,
    /// Requests in time since the last change.
    in_time: u32,
    /// When places were taken away last. What came before was delayed by those, and says nothing of what is left.
    lowered: Time,
    /// When the last request that counts was answered.
    heard: Time,
}

impl Pace {
    /// What streams are to be served within from now on.
    pub(super) fn set_targets(&mut self, targets: &Targets) {
        self.targets.clone_from(targets);
        self.latest.retain(|stream, _| targets.contains_key(stream));
        if targets.is_empty() {
            self.fewer = 0;
        }
    }

    pub(super) fn has_target(&self, stream: StreamId) -> bool {
        self.targets.contains_key(&stream)
    }

    /// How many places the disk uses of those that it may.
    pub(super) fn in_force(&self, now: Time, places: usize) -> usize {
        match self.fewer {
            0 => places,
            fewer => places.saturating_sub(fewer.saturating_sub(self.returned(now))).max(1),
        }
    }

    /// Places that returned since the last request that counts.
    fn returned(&self, now: Time) -> usize {
        match now.since(self.heard).checked_sub(QUIET) {
            Some(quiet) => 1 + (quiet.as_nanos() / STEP.as_nanos()) as usize,
            None => 0,
        }
    }

    /// A request that counts was answered, which came at `since`.
    pub(super) fn on_answer(&mut self, now: Time, stream: StreamId, since: Time, places: usize) {
        let Some(target) = self.targets.get(&stream) else { return };
        let used = self.in_force(now, places);
        let is_late = now.since(since) > *target;
        self.latest.entry(stream).or_default().note(is_late);
        self.heard = now;
        let used = match is_late {
            false => {
                self.in_time += 1;
                used.saturating_add(usize::from(self.in_time >= RAISE_AFTER))
            }
            true if since >= self.lowered => {
                self.lowered = now;
                used / 2
            }
            true => used,
        };
        if used != self.in_force(now, places) {
            self.in_time = 0;
        }
        self.fewer = places.saturating_sub(used.max(1));
    }

    /// How targets were kept lately, by stream.
    pub(super) fn kept(&self) -> impl Iterator<Item = (StreamId, Kept)> {
        let kept = |latest: &Latest| Kept { timed: latest.timed, late: latest.late.count_ones() };
        self.latest.iter().map(move |(stream, latest)| (*stream, kept(latest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);
    const STREAM: StreamId = StreamId(7);

    fn pace(target: Duration) -> Pace {
        let mut pace = Pace::default();
        pace.set_targets(&Targets::from([(STREAM, target)]));
        pace
    }

    /// A disk whose answers take as long as it has places, which are all used: how many requests of the last half were late.
    fn run(pace: &mut Pace, from: Time, places: usize, each: Duration, requests: u32) -> (Time, u32) {
        let (mut now, mut late) = (from, 0);
        for number in 0..requests {
            let took = each * pace.in_force(now, places) as u32;
            let came = now;
            now += took;
            late +=
                u32::from(number >= requests / 2 && took > *pace.targets.get(&STREAM).expect("it has one"));
            pace.on_answer(now, STREAM, came, places);
            now += MS;
        }
        (now, late)
    }

    #[test]
    fn places_are_found_that_keep_the_target_and_return_when_the_stream_leaves() {
        for (each, most) in [(MS, 5), (MS / 2, 10), (MS / 8, 32), (4 * MS, 1), (20 * MS, 1)] {
            let mut pace = pace(5 * MS);
            let (now, late) = run(&mut pace, Time(1), 32, each, 2000);
            let used = pace.in_force(now, 32);
            assert!(used <= most + 1 && used >= most.div_ceil(2).min(32), "{each:?}: {used} places");
            let is_possible = each <= 5 * MS;
            assert!(!is_possible || late <= 50, "{each:?}: {late} of 1000 are late");
            assert_eq!(pace.in_force(now + QUIET + 32 * STEP, 32), 32, "they return");
        }
    }

    #[test]
    fn what_came_before_places_were_taken_away_does_not_take_away_more() {
        let mut pace = pace(5 * MS);
        for number in 1..20 {
            pace.on_answer(Time(100_000_000 + number), STREAM, Time(number), 32);
        }
        assert_eq!(pace.in_force(Time(100_000_030), 32), 16);
        pace.on_answer(Time(200_000_000), STREAM, Time(100_000_001), 32);
        assert_eq!(pace.in_force(Time(200_000_001), 32), 8);
        assert_eq!(pace.kept().collect::<Vec<_>>(), [(STREAM, Kept { timed: 20, late: 20 })]);
        // Who has no target changes nothing, and with the last target all places are there again.
        pace.on_answer(Time(900_000_000), StreamId(8), Time(200_000_001), 32);
        assert_eq!(pace.in_force(Time(200_000_001), 32), 8);
        pace.set_targets(&Targets::new());
        assert_eq!((pace.in_force(Time(200_000_001), 32), pace.kept().count()), (32, 0));
    }

    proptest! {
        /// Whatever comes, in whatever order, and however many places the cluster has: one is in force at least, and no more than the cluster's; and all
        /// of them some time after the last request.
        #[test]
        fn one_place_is_always_there_and_no_more_than_the_clusters(
            steps in prop::collection::vec((0u64..2_000, 0u64..30, 1usize..64), 1..300),
        ) {
            let (mut pace, mut now) = (pace(5 * MS), Time(1_000_000_000));
            for (pause_ms, took_ms, places) in steps {
                now += MS * pause_ms as u32;
                pace.on_answer(now, STREAM, now - MS * took_ms as u32, places);
                prop_assert!((1..=places).contains(&pace.in_force(now, places)));
            }
            for places in [1, 32, 64] {
                prop_assert_eq!(pace.in_force(now + QUIET + 64 * STEP, places), places);
            }
        }
    }
}
