//! More writes than the disks take: equal bricks keep their places, and writes go on evenly.

use base::{BrickId, Time};
use core::time::Duration;
use model::drive::{DriveModel, DriveOptions, find};
use sim::timed::{
    self, BrickSpec, CACHED, Cluster, Conditions, Length, Lived, Locality, Mix, Scheme, Sizes, Workload,
    WriteRelease,
};
use std::sync::Arc;

const SPAN: Duration = Duration::from_secs(12);
const WINDOW: Duration = Duration::from_millis(500);
/// The second brick that joins.
const SLOWER: BrickId = BrickId(2);

/// Three copies on three bricks under so many writes at a time. One brick's drive takes so many times as long.
fn overload(outstanding: u32, slower: u32, plant: Option<&str>) -> Lived {
    let brick = BrickSpec { options: DriveOptions::MECHANICS, journal_bytes: 1 << 20, ..atlas() };
    overload_on(brick, SPAN, [outstanding, slower], plant)
}

fn atlas() -> BrickSpec {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    BrickSpec::new(Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive")))
}

fn overload_on(
    brick: BrickSpec,
    span: Duration,
    [outstanding, slower]: [u32; 2],
    plant: Option<&str>,
) -> Lived {
    let mut cluster = Cluster::uniform(brick, 3, 3, Scheme::named("usual").expect("a scheme"));
    cluster.write_release = WriteRelease::Nvram;
    cluster.bricks[SLOWER.0 as usize - 1].speed = vec![(Time::ZERO, 100 * slower)];
    let mix = Mix { reads: 0.0, sizes: Sizes::Blocks(1), locality: Locality::Uniform };
    let plant = plant.map(str::to_owned);
    let conditions =
        Conditions { window: WINDOW, end: Some(span), watches_bricks: true, plant, ..Conditions::default() };
    let length = Length { warmup: 0, requests: u64::MAX };
    let workload = Workload::Closed { outstanding, mix };
    timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs")
}

/// Writes in the worst interval as a part of those in the mean, once the journals are full.
fn evenness(lived: &Lived) -> f64 {
    let answered = lived.windows.iter().map(|window| window.requests);
    // The last one ends with the load, before its time is over.
    let mut each: Vec<u64> = answered.skip(2).collect();
    each.resize((SPAN.as_millis() / WINDOW.as_millis()) as usize - 2, 0);
    let mean = each.iter().sum::<u64>() as f64 / each.len() as f64;
    each[..each.len() - 1].iter().copied().min().unwrap_or(0) as f64 / mean
}

/// Writes at a time: what saturates the disks, and two, five and ten times as many.
const LOADS: [u32; 4] = [16, 32, 80, 160];

#[test]
fn equal_bricks_keep_their_places_and_writes_go_on_evenly() {
    let mut rates = Vec::new();
    for outstanding in LOADS {
        let lived = overload(outstanding, 1, None);
        let standings = &lived.standings;
        assert_eq!((standings.left, &standings.changes[..]), (0, &[][..]), "{outstanding} at a time");
        assert!(!standings.lacks_redundancy && standings.named.is_empty(), "{standings:?}");
        let evenness = evenness(&lived);
        assert!(evenness > 0.8, "{outstanding} at a time: {evenness:.2} of the mean in the worst interval");
        rates.push(lived.measured.requests_per_second());
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    assert!(rates.iter().all(|rate| *rate > 0.9 * best), "{rates:?}");
}

/// A brick twice and three times as slow sets the pace, and is left out at ten times: a drive with a long queue chooses nearer blocks than
/// its peers, so that it is not quite as much slower as it would be for one block.
#[test]
fn a_slower_brick_keeps_its_place_unless_it_is_several_times_slower() {
    for slower in [2, 3] {
        let lived = overload(80, slower, None);
        assert_eq!(lived.standings.left, 0, "{slower} times slower: {:?}", lived.standings);
        assert!(!lived.standings.lacks_redundancy && evenness(&lived) > 0.7, "{slower} times slower");
    }
    let lived = overload(80, 10, None);
    let standings = &lived.standings;
    assert_eq!(standings.left, 1, "{standings:?}");
    assert!(standings.changes.iter().all(|change| change.brick == SLOWER), "{standings:?}");
    assert!(standings.named.keys().eq([&SLOWER]), "{standings:?}");
}

/// It is left out, and comes back while the load goes on. Writes do not wait for it for longer than they would if it had stayed.
#[test]
fn a_much_slower_brick_that_comes_back_costs_no_more_than_if_it_had_stayed() {
    const LONG: Duration = Duration::from_secs(120);
    for outstanding in [32, 64] {
        let brick = BrickSpec { journal_bytes: 8 << 20, cache_bytes: CACHED, ..atlas() };
        let lived = |slower| {
            let lived = overload_on(brick.clone(), LONG, [outstanding, slower], None);
            let answered = lived.windows.iter().skip(lived.windows.len() / 2).map(|window| window.requests);
            (answered.sum::<u64>(), lived.standings.left)
        };
        let (equal, _) = lived(1);
        let (answered, left) = lived(10);
        assert!(left > 1, "{outstanding} at a time: it does not come back");
        assert!(
            answered * 10 >= equal,
            "{outstanding} at a time: {answered} writes, {equal} of equal bricks"
        );
    }
}

/// Without the door a write begins, and waits at the brick whose journal happens to be full first: that one looks slow, and is left out.
#[cfg(feature = "planted")]
#[test]
fn with_a_door_that_stands_open_an_equal_brick_is_left_out() {
    let lost = LOADS.map(|outstanding| overload(outstanding, 1, Some("door_stands_open")).standings.left);
    assert!(lost.iter().any(|left| *left > 0), "{lost:?}");
}

#[cfg(feature = "planted")]
#[test]
fn with_a_door_that_opens_late_writes_stop_and_go() {
    for outstanding in LOADS {
        let evenness = evenness(&overload(outstanding, 1, Some("door_opens_late")));
        assert!(evenness < 0.7, "{outstanding} at a time: {evenness:.2} of the mean in the worst interval");
    }
}
