//! No more than suffices, and that from whoever gives it first.

use super::{Access, Place};
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The pace of a brick is the mean of what it took for so many fragments, of which the newest count most.
const REMEMBERED: u32 = 8;
/// A fragment that is expected late by less than this part of its time is let go on: paces are not known better.
const GRACE: u32 = 8;
/// No finer than this is anything expected.
const FINEST: Duration = Duration::from_millis(1);

/// Claims fragments: of all that bricks have those that are expected first, and no more than suffice. A code's fragments are as good as
/// each other, and so only their number counts. What a brick is expected to give later than the last claimed fragment is not asked for,
/// or is called off before the brick begins on it. If a claimed fragment is late, others are claimed in its place.
///
/// What is expected follows from when fragments came ([`Lane`]), and bricks say nothing of it. A brick is taken to work on one fragment
/// after another, in the order in which it is asked.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    /// At most so many fragments of a brick are under way.
    window: usize,
    /// So many more than the blocks are claimed: not all that is enough by number can be decoded, and not all comes when it is expected.
    spare: usize,
    /// So many more fragments are to come.
    needed: usize,
    bricks: BTreeMap<BrickId, Lane>,
    /// The network, there and back; none before it was seen.
    trip: Option<Duration>,
    /// Called off since somebody asked.
    unwanted: Vec<Place>,
    /// When the next one is expected. If it does not come, what is expected changes.
    again: Option<Time>,
}

/// What a brick has, and how fast it gives.
#[derive(Clone, Debug)]
struct Lane {
    left: VecDeque<u32>,
    /// Asked for, in this order.
    open: VecDeque<u32>,
    /// When it began on the first of these, as far as can be seen: when it gave the one before, or heard that it is to.
    since: Time,
    pace: Pace,
    /// It was asked again and has given nothing since: nothing is expected of it.
    is_late: bool,
}

/// What is known when it is planned.
#[derive(Clone, Copy, Debug)]
struct Known {
    now: Time,
    /// The network, there and back.
    trip: Duration,
    /// The mean pace of bricks; none before one is known.
    pace: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Nothing has come.
    Unknown,
    /// The first came so long after it was asked for: with the network in it.
    First(Duration),
    /// The mean of so many others.
    Known(Duration, u32),
}

/// One block in so many is claimed beyond them: of `lt-precoded` 0.2% of the blocks are lacking on average.
const BLOCKS_PER_SPARE: u32 = 256;

/// So many more symbols than blocks are claimed.
fn spare(blocks: u32) -> usize {
    blocks.div_ceil(BLOCKS_PER_SPARE) as usize
}

impl Claimed {
    /// Of a segment of so many blocks.
    pub(super) fn new(blocks: u32, window: usize) -> Claimed {
        let spare = spare(blocks);
        Claimed {
            window: window.max(1),
            spare,
            needed: blocks as usize + spare,
            bricks: BTreeMap::new(),
            trip: None,
            unwanted: Vec::new(),
            again: None,
        }
    }

    /// Claims what is expected until enough has come, and nothing else.
    fn plan(&mut self, now: Time) -> Vec<Place> {
        let known = self.known(now);
        let end = self.end(known);
        let due = |lane: &Lane| end.map_or(usize::MAX, |end| lane.due(known, end));
        for (brick, lane) in &mut self.bricks {
            // Whoever is nearly in time is let go on: to be asked anew costs it the network's way.
            let grace = known.trip + lane.pace(known) / GRACE;
            let hoped = end.map_or(usize::MAX, |end| lane.due(known, end + grace));
            // The first may have begun.
            while lane.open.len() > hoped.max(1) {
                let index = lane.open.pop_back().expect("more than one");
                lane.left.push_front(index);
                self.unwanted.push((index, *brick));
            }
        }
        let counted = self.bricks.values().filter(|lane| !lane.is_late);
        let counted: usize = counted.map(|lane| lane.open.len().min(due(lane))).sum();
        // Bricks that are as fast as each other would all give the last one at the same moment.
        let mut lacking = self.needed.saturating_sub(counted);
        let mut asked = Vec::new();
        for depth in 0..self.window {
            for (brick, lane) in &mut self.bricks {
                let is_asked = lacking > 0 && lane.open.len() == depth && depth < due(lane);
                let Some(index) = lane.left.pop_front_if(|_| is_asked) else { continue };
                if lane.open.is_empty() {
                    lane.since = now + known.trip;
                }
                lane.open.push_back(index);
                asked.push((index, *brick));
                lacking -= 1;
            }
        }
        let firsts = self.bricks.values().filter(|lane| !lane.open.is_empty()).map(|lane| lane.first(known));
        let is_all_asked = self.bricks.values().all(|lane| lane.left.is_empty());
        self.again = firsts.min().filter(|_| !is_all_asked).map(|first| first.max(now + FINEST));
        asked
    }

    fn known(&self, now: Time) -> Known {
        let paces = self.bricks.values().filter_map(|lane| match lane.pace {
            Pace::Unknown => None,
            Pace::First(pace) | Pace::Known(pace, _) => Some(pace),
        });
        let (count, sum) = paces.fold((0, Duration::ZERO), |(count, sum), pace| (count + 1, sum + pace));
        let pace = (count > 0).then(|| sum / count);
        Known { now, trip: self.trip.unwrap_or_default(), pace }
    }

    /// When enough is expected to have come; none if nothing is known yet, or all that is expected at all must come.
    fn end(&self, known: Known) -> Option<Time> {
        let lanes = || self.bricks.values().filter(|lane| !lane.is_late);
        let all: usize = lanes().map(|lane| lane.open.len() + lane.left.len()).sum();
        if all <= self.needed || known.pace.is_none() {
            return None;
        }
        let is_enough = |span: Duration| {
            lanes().map(|lane| lane.due(known, known.now + span)).sum::<usize>() >= self.needed
        };
        let mut most = FINEST;
        while !is_enough(most) {
            most *= 2;
        }
        let mut least = Duration::ZERO;
        while most - least > FINEST / 4 {
            let middle = (least + most) / 2;
            *(if is_enough(middle) { &mut most } else { &mut least }) = middle;
        }
        Some(known.now + most)
    }
}

impl Lane {
    /// A fragment's time, as far as is known. Of a brick that has given nothing it is known that it takes longer than until now.
    fn pace(&self, known: Known) -> Duration {
        let pace = match self.pace {
            Pace::Unknown if self.open.is_empty() => known.pace.unwrap_or_default(),
            Pace::Unknown => (known.now.since(self.since) * 2).max(known.pace.unwrap_or_default()),
            Pace::First(pace) | Pace::Known(pace, _) => pace,
        };
        pace.max(Duration::from_nanos(1))
    }

    /// A fragment has come.
    fn learn(&mut self, now: Time, trip: &mut Option<Duration>) {
        let took = now.since(self.since);
        self.pace = match self.pace {
            Pace::Unknown => Pace::First(took),
            Pace::First(first) => {
                let seen = first.saturating_sub(took);
                *trip = Some(trip.map_or(seen, |trip| trip.min(seen)));
                Pace::Known(took, 1)
            }
            Pace::Known(pace, of) => {
                let of = (of + 1).min(REMEMBERED);
                Pace::Known((pace * (of - 1) + took) / of, of)
            }
        };
        self.since = now;
        self.is_late = false;
    }

    /// When the first that is open is expected. What is overdue is expected to be overdue for as long again.
    fn first(&self, known: Known) -> Time {
        let (now, expected) = (known.now, self.since + self.pace(known));
        if expected > now { expected } else { now + now.since(expected) }
    }

    /// How many fragments it is expected to give until `at`, if it is asked for all now.
    fn due(&self, known: Known, at: Time) -> usize {
        if self.is_late {
            return 0;
        }
        let pace = self.pace(known);
        let until = |from: Time| (at.since(from).as_nanos() as u64 / pace.as_nanos() as u64) as usize;
        let asked_now = known.now + known.trip;
        let (open, behind) = match self.open.len() {
            0 => (0, asked_now),
            open => {
                let first = self.first(known);
                let due = if at < first { 0 } else { (1 + until(first)).min(open) };
                (due, asked_now.max(first + pace * (open as u32 - 1)))
            }
        };
        let more = if at < behind { 0 } else { until(behind).min(self.left.len()) };
        open + more
    }
}

impl Access for Claimed {
    fn begin(&mut self, now: Time, places: &[Place]) -> Vec<Place> {
        let mut places = places.to_vec();
        places.sort_unstable();
        for (index, brick) in places {
            let idle = || Lane {
                left: VecDeque::new(),
                open: VecDeque::new(),
                since: now,
                pace: Pace::Unknown,
                is_late: false,
            };
            self.bricks.entry(brick).or_insert_with(idle).left.push_back(index);
        }
        self.plan(now)
    }

    fn ended(&mut self, now: Time, (index, brick): Place, has_come: bool) -> Vec<Place> {
        let is_open = |lane: &&mut Lane| lane.open.contains(&index);
        // A part of a segment may have been asked for before all of it was.
        if let Some(lane) = self.bricks.get_mut(&brick).filter(is_open) {
            lane.open.retain(|open| *open != index);
            if has_come {
                lane.learn(now, &mut self.trip);
            }
        }
        if has_come {
            self.needed -= 1;
        }
        if self.needed == 0 {
            self.needed = self.spare;
        }
        self.plan(now)
    }

    fn late(&mut self, now: Time, (index, brick): Place) -> Vec<Place> {
        if let Some(lane) = self.bricks.get_mut(&brick).filter(|lane| lane.open.contains(&index)) {
            lane.is_late = true;
        }
        self.plan(now)
    }

    fn deadline(&self) -> Option<Time> {
        self.again
    }

    fn wake(&mut self, now: Time) -> Vec<Place> {
        self.plan(now)
    }

    fn unwanted(&mut self) -> Vec<Place> {
        core::mem::take(&mut self.unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Paced, Speculative};
    use super::*;
    use proptest::prelude::*;

    /// Bricks that give one fragment after another, each at its pace, and what is on its way.
    struct Bench {
        now: Time,
        one_way: Duration,
        bricks: Vec<Brick>,
        happens: BTreeMap<(Time, u64), Happening>,
        last: u64,
    }

    #[derive(Clone, Default)]
    struct Brick {
        pace: Duration,
        waiting: VecDeque<u32>,
        at_work: bool,
        /// It does nothing from when until when.
        stops: (Time, Time),
        given: usize,
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Happening {
        Asked(Place),
        CalledOff(Place),
        Read(Place),
        Came(Place),
    }

    /// What a read took, and what was read for it at bricks.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Took {
        time: Duration,
        read: usize,
    }

    impl Bench {
        fn new(paces_ms: &[u64], round_trip_ms: u64) -> Bench {
            let brick = |ms: &u64| Brick { pace: Duration::from_millis(*ms), ..Brick::default() };
            let bricks = paces_ms.iter().map(brick).collect();
            let one_way = Duration::from_millis(round_trip_ms) / 2;
            Bench { now: Time(0), one_way, bricks, happens: BTreeMap::new(), last: 0 }
        }

        fn later(&mut self, after: Duration, happening: Happening) {
            self.last += 1;
            self.happens.insert((self.now + after, self.last), happening);
        }

        fn tell(&mut self, access: &mut dyn Access, asked: Vec<Place>) {
            let off: Vec<Place> = access.unwanted();
            off.into_iter().for_each(|place| self.later(self.one_way, Happening::CalledOff(place)));
            asked.into_iter().for_each(|place| self.later(self.one_way, Happening::Asked(place)));
        }

        fn begin(&mut self, at: BrickId) {
            let brick = &mut self.bricks[at.0 as usize];
            if brick.at_work {
                return;
            }
            let Some(index) = brick.waiting.pop_front() else { return };
            brick.at_work = true;
            let (from, until) = brick.stops;
            let stands =
                if (from..until).contains(&self.now) { until.since(self.now) } else { Duration::ZERO };
            self.later(stands + self.bricks[at.0 as usize].pace, Happening::Read((index, at)));
        }

        /// A segment of so many blocks is read, and so many symbols of it lie evenly.
        fn read(mut self, mut access: Box<dyn Access + Send>, blocks: usize, symbols: u32) -> Took {
            let bricks = self.bricks.len() as u32;
            let places: Vec<Place> = (0..symbols).map(|index| (index, BrickId(index % bricks))).collect();
            let asked = access.begin(self.now, &places);
            self.tell(&mut *access, asked);
            let mut came = 0;
            loop {
                let next = self.happens.keys().next().copied();
                let woken = access.deadline().filter(|at| next.is_none_or(|(next, _)| *at < next));
                if let Some(at) = woken {
                    assert!(at >= self.now, "it is woken in time");
                    self.now = at;
                    let asked = access.wake(at);
                    self.tell(&mut *access, asked);
                    continue;
                }
                let (at, happening) = self.happens.pop_first().expect("it waits for something");
                self.now = at.0;
                match happening {
                    Happening::Asked((index, brick)) => {
                        self.bricks[brick.0 as usize].waiting.push_back(index);
                        self.begin(brick);
                    }
                    Happening::CalledOff((index, brick)) => {
                        self.bricks[brick.0 as usize].waiting.retain(|waiting| *waiting != index);
                    }
                    Happening::Read(place) => {
                        let brick = &mut self.bricks[place.1.0 as usize];
                        brick.at_work = false;
                        brick.given += 1;
                        self.later(self.one_way, Happening::Came(place));
                        self.begin(place.1);
                    }
                    Happening::Came(place) => {
                        came += 1;
                        if came == blocks {
                            break;
                        }
                        let asked = access.ended(self.now, place, true);
                        self.tell(&mut *access, asked);
                    }
                }
            }
            let read = self.bricks.iter().map(|brick| brick.given + usize::from(brick.at_work)).sum();
            Took { time: self.now.since(Time(0)), read }
        }
    }

    fn claimed(blocks: u32, window: usize) -> Box<dyn Access + Send> {
        Box::new(Claimed::new(blocks, window))
    }

    /// Twenty bricks, the fastest twenty times as fast as the slowest.
    fn mixed() -> Vec<u64> {
        (1..=20).map(|at| 10 * at).collect()
    }

    #[test]
    fn hardly_anything_is_read_in_vain_and_it_takes_no_longer() {
        for (round_trip_ms, window) in [(0, 2), (1, 2), (40, 6)] {
            let bench = || Bench::new(&mixed(), round_trip_ms);
            let speculative = bench().read(Box::new(Speculative), 400, 1600);
            let paced = bench().read(Box::new(Paced::new(window)), 400, 1600);
            let claimed = bench().read(claimed(400, window), 400, 1600);
            assert!(claimed.time <= speculative.time.mul_f64(1.05), "{claimed:?}, {speculative:?}");
            assert!(claimed.read <= 408 && paced.read >= 418, "{claimed:?}, {paced:?}");
        }
    }

    /// A brick that stops while it has claims costs what others take for these, and not the time for which it stops.
    #[test]
    fn a_brick_that_stops_is_not_waited_for() {
        for from_ms in [20, 60, 70, 75] {
            let mut bench = Bench::new(&[10; 8], 1);
            let undisturbed = Bench::new(&[10; 8], 1).read(claimed(64, 4), 64, 128);
            bench.bricks[3].stops = (Time(from_ms * 1_000_000), Time((from_ms + 200) * 1_000_000));
            let took = bench.read(claimed(64, 4), 64, 128);
            assert!(took.time <= undisturbed.time + Duration::from_millis(35), "{took:?}, {undisturbed:?}");
        }
    }

    /// Symbols that do not suffice by number, as copies do not, are all read in the end.
    #[test]
    fn more_is_claimed_where_it_is_not_enough() {
        let took = Bench::new(&[10; 3], 1).read(claimed(4, 2), 30, 30);
        assert_eq!(took.read, 30);
    }

    /// Found by the torture with objects (seed 30039): nobody was asked for what a brick had that was not asked at first, while others
    /// that were gone were waited for.
    #[test]
    fn whoever_was_not_asked_is_asked_when_others_are_late() {
        let [one, two, three] = [1, 2, 3].map(|at| (at, BrickId(at)));
        let mut claimed = Claimed::new(1, 1);
        assert_eq!(claimed.begin(Time(1), &[one, two, three]), [one, two]);
        assert_eq!(claimed.late(Time(2_000_000_001), one), [three]);
        assert_eq!(claimed.late(Time(2_000_000_001), two), []);
    }

    #[test]
    fn what_does_not_come_is_replaced() {
        let at = |index: u32| (index, BrickId(index % 2));
        let mut claimed = Claimed::new(2, 1);
        let mut open: VecDeque<Place> = claimed.begin(Time(0), &(0..8).map(at).collect::<Vec<_>>()).into();
        let mut asked = open.len();
        while let Some(place) = open.pop_front() {
            let more = claimed.ended(Time(asked as u64 * 1000), place, false);
            assert_eq!(claimed.unwanted(), []);
            asked += more.len();
            open.extend(more);
        }
        assert_eq!(asked, 8, "all are asked for before it is given up");
        // A part of a segment was read before, at a brick that has nothing else.
        assert_eq!(claimed.ended(Time(0), (99, BrickId(9)), true), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn a_read_ends_soon_after_the_earliest(
            paces_ms in proptest::collection::vec(1..200_u64, 1..12),
            blocks in 1..100_u32, copies in 1..5_u32, round_trip_ms in 0..50_u64, window in 1..6_usize,
            stops: bool, from_ms in 0..2000_u64,
        ) {
            let bench = || {
                let mut bench = Bench::new(&paces_ms, round_trip_ms);
                if stops {
                    bench.bricks[0].stops = (Time(from_ms * 1_000_000), Time((from_ms + 200) * 1_000_000));
                }
                bench
            };
            let symbols = blocks * copies;
            let paced = bench().read(Box::new(Paced::new(window)), blocks as usize, symbols);
            let took = bench().read(claimed(blocks, window), blocks as usize, symbols);
            let slowest = Duration::from_millis(paces_ms.iter().copied().max().unwrap_or(0) + round_trip_ms);
            prop_assert!(took.time <= paced.time * 2 + slowest * 2, "{:?}, paced {:?}", took, paced);
            prop_assert!(took.read <= blocks as usize + spare(blocks) + 2 * window * paces_ms.len(), "{:?}", took);
        }
    }
}
