//! A disk whose heads are seen, over a device whose way to a track is a millisecond a track.

use super::*;
use crate::distribute::claim::ReadId;
use base::{Mechanics, Position};

const MS: u64 = 1_000_000;
/// Blocks from the second MiB on.
const AREA: Range<u64> = (1 << 20)..(65 << 20);
const ME: BrickId = BrickId(3);
const OTHER: BrickId = BrickId(7);
/// Sectors of a track, and of 64 tracks.
const TRACK: u64 = 2048;
const CAPACITY: u64 = 64 * TRACK;

#[derive(Debug, Default)]
struct Arm {
    track: u32,
}

impl Mechanics for Arm {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        Position { cylinder: (sector / TRACK) as u32, is_write, ..Position::default() }
    }

    fn cylinder(&self) -> u32 {
        self.track
    }

    fn positioning_ns(&self, _free: Time, to: &Position) -> u64 {
        (u64::from(self.track.abs_diff(to.cylinder)) + 1) * MS
    }

    fn rotation_ns(&self, _free: Time, _to: &Position) -> u64 {
        0
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        u64::from(cylinders) * MS
    }
}

impl Device for Arm {
    fn capacity_sectors(&self) -> u64 {
        CAPACITY
    }

    fn serve(&mut self, start: Time, access: Access) -> Time {
        let to = self.position_of(access.sector, access.is_write);
        let end = Time(start.0 + self.positioning_ns(start, &to));
        self.track = to.cylinder;
        end
    }
}

/// Heads, and what they asked for.
struct Bench {
    heads: Heads<u64>,
    fx: Vec<Effect<u64>>,
}

fn bench(change: impl FnOnce(&mut Surroundings)) -> Bench {
    let claims = Config::disk(ME, 50_000);
    let mut surroundings = Surroundings { claims, dilate: 1, nvram_bytes: 0, data_bytes: None };
    change(&mut surroundings);
    let mut heads = Heads::new(surroundings, Box::<Arm>::default(), Time(0));
    heads.set_area(AREA);
    Bench { heads, fx: Vec::new() }
}

fn attempt(read: u64) -> Attempt {
    Attempt { read: ReadId { asker: 9, sequence: read }, number: 0 }
}

impl Bench {
    /// Track `track` begins there.
    fn offset(track: u64) -> u64 {
        AREA.start + track * (1 << 20)
    }

    fn read(&mut self, now: u64, item: u64, track: u64) {
        let event = Event::Read { offset: Bench::offset(track), bytes: 4096, contested: None, item };
        self.heads.step(Time(now), event, &mut self.fx);
    }

    fn contested(&mut self, now: u64, item: u64, track: u64) {
        let contested = Some(Contested { attempt: attempt(item), holders: [ME, OTHER].into() });
        let event = Event::Read { offset: Bench::offset(track), bytes: 4096, contested, item };
        self.heads.step(Time(now), event, &mut self.fx);
    }

    fn write(&mut self, now: u64, item: u64, offset: u64) {
        self.heads.step(Time(now), Event::Write { offset, bytes: 4096, item }, &mut self.fx);
    }

    fn claimed(&mut self, now: u64, read: u64, bid_ns: u64) {
        let event = Event::Claimed { attempt: attempt(read), bid_ns, brick: OTHER };
        self.heads.step(Time(now), event, &mut self.fx);
    }

    /// What is asked for up to `now`.
    fn until(&mut self, now: u64) -> Vec<Effect<u64>> {
        self.heads.settle(Time(now), &mut self.fx);
        self.heads.check(Depth::Deep);
        core::mem::take(&mut self.fx)
    }

    /// Runs until nothing is left to do: what was issued, and when it was due.
    fn run(&mut self) -> Vec<(u64, u64)> {
        let mut issued = Vec::new();
        let mut now = 0;
        loop {
            for effect in self.until(now) {
                if let Effect::Issue { item, due } = effect {
                    issued.push((item, due.map_or(0, |due| due.0)));
                }
            }
            let Some((next, _)) = self.heads.deadline() else { return issued };
            now = next.0.max(now);
        }
    }
}

fn issue(item: u64) -> Effect<u64> {
    Effect::Issue { item, due: None }
}

fn claims(fx: &[Effect<u64>]) -> Vec<u64> {
    let read = |effect: &Effect<u64>| match effect {
        Effect::Claim { attempt, .. } => Some(attempt.read.sequence),
        _ => None,
    };
    fx.iter().filter_map(read).collect()
}

#[test]
fn the_nearest_is_next_one_at_a_time_and_journal_and_metadata_cost_nothing() {
    let mut bench = bench(|_| {});
    bench.write(0, 1, 0);
    bench.read(0, 2, 0);
    bench.heads.step(
        Time(0),
        Event::Read { offset: AREA.end, bytes: 4096, contested: None, item: 3 },
        &mut bench.fx,
    );
    assert_eq!(core::mem::take(&mut bench.fx), [issue(1), issue(3)]);
    for (item, track) in [(4, 30), (5, 10), (6, 20)] {
        bench.read(0, item, track);
    }
    assert_eq!(bench.run(), [(2, MS), (5, 12 * MS), (6, 23 * MS), (4, 34 * MS)]);
    let served = bench.heads.served();
    assert_eq!((served.reads, served.choices, served.seen), (4, 4, 4 + 3 + 2 + 1));
    assert_eq!(served.busy, Duration::from_millis(34));
    assert!(bench.heads.is_empty());
}

#[test]
fn a_late_loop_makes_no_device_slow() {
    let mut bench = bench(|_| {});
    bench.read(0, 1, 0);
    bench.read(0, 2, 1);
    let issued = bench.until(0).into_iter().chain(bench.until(50 * MS));
    let dues: Vec<_> = issued.collect();
    assert_eq!(
        dues,
        [Effect::Issue { item: 1, due: Some(Time(MS)) }, Effect::Issue { item: 2, due: Some(Time(3 * MS)) }]
    );
}

#[test]
fn dilated_time_passes_slower_and_nothing_else() {
    let [once, five_times] = [1, 5].map(|dilate| {
        let mut bench = bench(|surroundings| surroundings.dilate = dilate);
        (0..9).for_each(|item| bench.read(0, item, item * 37 % 64));
        bench.run()
    });
    let stretched: Vec<_> = once.iter().map(|(item, due)| (*item, due * 5)).collect();
    assert_eq!(stretched, five_times);
}

#[test]
fn memory_answers_writes_until_it_is_full_and_again_when_they_are_destaged() {
    let mut bench = bench(|surroundings| surroundings.nvram_bytes = 8192);
    (1..=3).for_each(|item| bench.write(0, item, Bench::offset(item)));
    assert_eq!(core::mem::take(&mut bench.fx), [issue(1), issue(2)], "the third finds no room");
    assert_eq!(bench.run(), [(3, 4 * MS + 2 * MS)], "it was nearest when the first two were done");
    bench.write(100 * MS, 4, Bench::offset(1));
    assert_eq!(core::mem::take(&mut bench.fx), [issue(4)]);
    bench.run();
    let served = bench.heads.served();
    assert_eq!((served.writes, served.nvram_full), (4, 1));
}

#[test]
fn a_contested_read_is_claimed_before_it_is_served() {
    let mut bench = bench(|_| {});
    (1..=4).for_each(|item| bench.contested(0, item, item * 7));
    let mut all = bench.until(0);
    assert_eq!(claims(&all).len(), 1, "one is chosen: {all:?}");
    while let Some((next, _)) = bench.heads.deadline() {
        all.extend(bench.until(next.0));
    }
    let issued: Vec<u64> = all
        .iter()
        .filter_map(|effect| match effect {
            Effect::Issue { item, .. } => Some(*item),
            _ => None,
        })
        .collect();
    assert_eq!(claims(&all), issued, "in the order of service");
    assert_eq!(issued.len(), 4);
}

#[test]
fn a_read_that_another_brick_claims_is_left_to_it() {
    let mut bench = bench(|_| {});
    (1..=3).for_each(|item| bench.contested(0, item, item * 7));
    let chosen = claims(&bench.until(0));
    let other = (1..=3).find(|item| !chosen.contains(item)).expect("one waits");
    bench.claimed(1_000, other, MS);
    assert_eq!(bench.until(1_000), [Effect::Left { item: other }]);
    assert_eq!(bench.run().len(), 1, "and the third was under way");
    bench.contested(900 * MS, 4, 28);
    bench.claimed(900 * MS, 4, 0);
    assert_eq!(bench.until(900 * MS), [Effect::Left { item: 4 }], "the chosen one, too");
    assert_eq!((bench.heads.served().reads, bench.heads.served().left), (2, 2));
}

#[test]
fn a_device_that_goes_gives_back_what_waited_for_it() {
    let mut bench = bench(|surroundings| surroundings.nvram_bytes = 4096);
    bench.write(0, 9, Bench::offset(1));
    (0..5).for_each(|item| bench.read(0, item, item));
    bench.until(0);
    let mut waited: Vec<u64> = bench.heads.into_waiting().collect();
    waited.sort_unstable();
    assert_eq!(waited, [1, 2, 3, 4], "all but the one at the device, and what nobody waits for");
}
