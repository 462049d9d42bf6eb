//! The theorems of DSFQ as properties of random systems, and what they say of long runs.

use base::{Rng, StreamId, Time};
use model::Draw;
use rules::fair::{Clock, Discipline, Entry, History, Ledger, Sfq, Share, Ticket};
use sim::theorems::{Brick, Run, Stream, System, Threads, drawn, measured, too_weak};
use std::collections::BTreeMap;
use wire::Service;

/// What rounding may add.
const ROUNDED: f64 = 1.0 + 1e-9;

#[test]
fn theorem_1_bounds_the_unfairness_of_one_brick() {
    let mut draw = Draw::new(1);
    for seed in 0..5_000 {
        let system = drawn(&mut draw, 1, 1);
        let (seen, bounds) = measured(system.clone(), seed, 300);
        assert!(seen <= bounds.one_brick * ROUNDED, "seed {seed}: {seen} > {bounds:?}: {system:?}");
    }
}

/// Theorems 2 (one gateway a stream) and 4 (several).
#[test]
fn theorems_2_and_4_bound_the_unfairness_of_all_bricks() {
    let mut draw = Draw::new(2);
    for seed in 0..5_000 {
        let system = drawn(&mut draw, 4, if seed % 2 == 0 { 1 } else { 4 });
        let (seen, bounds) = measured(system.clone(), seed, 400);
        assert!(seen <= bounds.corrected * ROUNDED, "seed {seed}: {seen} > {bounds:?}: {system:?}");
    }
}

#[test]
fn the_printed_premise_of_theorem_2_is_too_weak() {
    let (seen, bounds) = too_weak();
    assert!(seen > 2.0 * bounds.printed, "{seen} exceeds what is printed: {bounds:?}");
    assert!(seen <= bounds.corrected, "{seen}: {bounds:?}");
}

/// Long runs on one shared brick of capacity 1 (a unit a microsecond): the services of all streams, divided by weights.
fn long_run(streams: Vec<Stream>, bricks: Vec<Brick>, history: History) -> Vec<[f64; 2]> {
    let mut run = Run::new(System { bricks, streams, history }, 7);
    run.start();
    (0..20_000).for_each(|_| run.step());
    let before = run.served().to_vec();
    (0..200_000).for_each(|_| run.step());
    let of = |stream: usize| {
        let weight = f64::from(run.system().streams[stream].share.weight());
        let here = (run.served()[stream][0] - before[stream][0]) as f64;
        let elsewhere = run.served()[stream].iter().sum::<u64>() - before[stream].iter().sum::<u64>();
        [here / weight, (elsewhere as f64 - here) / weight]
    };
    (0..run.system().streams.len()).map(of).collect()
}

fn threads(brick: usize, count: u32) -> Threads {
    Threads { brick, count, costs: (5, 15) }
}

/// Theorem 3, first case: what others serve can be made up for at the shared brick.
#[test]
fn all_totals_are_equal_where_they_can_be() {
    let bricks = vec![Brick { places: 4, unit_ns: 1000 }, Brick { places: 1, unit_ns: 2000 }];
    let stream = |weight, threads| Stream { share: Share::total(weight), threads, gateways: vec![0, 1] };
    let streams = vec![
        stream(1, vec![threads(0, 20)]),
        stream(1, vec![threads(0, 20), threads(1, 10)]),
        stream(3, vec![threads(0, 20)]),
    ];
    let rates = long_run(streams, bricks, History::Forget);
    let totals: Vec<f64> = rates.iter().map(|[here, elsewhere]| here + elsewhere).collect();
    assert!(rates[1][1] > 0.1 * totals[1] && rates[1][0] > 0.0, "{rates:?}");
    totals.iter().for_each(|total| assert!((total / totals[0] - 1.0).abs() < 0.02, "{rates:?}"));
}

/// Theorem 3, second case, and example 2: who is served more elsewhere than the others can get gets nothing at the shared brick, and the others
/// share it. With a minimum it gets its minimum.
#[test]
fn who_gets_more_elsewhere_gets_its_minimum_at_the_shared_brick() {
    let bricks = vec![Brick { places: 4, unit_ns: 1000 }, Brick { places: 16, unit_ns: 500 }];
    let systems = |share: Share| {
        let stream = |share, threads| Stream { share, threads, gateways: vec![0] };
        vec![
            stream(Share::total(100), vec![threads(0, 20)]),
            stream(share, vec![threads(0, 20), threads(1, 40)]),
            stream(Share::total(100), vec![threads(0, 20)]),
        ]
    };
    let total = long_run(systems(Share::total(100)), bricks.clone(), History::Forget);
    assert!(total[1][0] < 0.01 * total[0][0], "{total:?}");
    assert!((total[0][0] / total[2][0] - 1.0).abs() < 0.02, "{total:?}");
    assert!(total[0][0] <= total[1][1], "{total:?}");
    for (minimum, history) in [(25, History::Forget), (10, History::USUAL), (100, History::USUAL)] {
        let share = Share::total(100).with_minimum(minimum);
        let hybrid = long_run(systems(share), bricks.clone(), history);
        let part = hybrid[1][0] / (hybrid[0][0] + hybrid[1][0] + hybrid[2][0]);
        let wanted = f64::from(minimum) / f64::from(minimum + 200);
        assert!((part / wanted - 1.0).abs() < 0.03, "{part} of the brick, and not {wanted}: {hybrid:?}");
    }
}

/// Fig 4: every request is sent to all bricks, and those that are meant for others take no time there. For streams that wait all the time the
/// order of the real ones is that of the delays.
#[test]
fn delays_order_requests_as_broadcast_ones_would() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let weights: Vec<u32> = (0..3).map(|_| rng.u32(1..9)).collect();
        // For each stream what it sends: to this brick or elsewhere, and the cost.
        let sent: Vec<Vec<(bool, u64)>> =
            (0..3).map(|_| (0..200).map(|_| (rng.u32(0..3) > 0, rng.u64(1..30))).collect()).collect();
        // All are there from the beginning: tags follow one another, whatever virtual time is.
        let mut broadcast: Vec<(f64, usize, usize)> = Vec::new();
        for (stream, requests) in sent.iter().enumerate() {
            let mut finish = 0;
            for (at, (is_here, cost)) in requests.iter().enumerate() {
                if *is_here {
                    broadcast.push((finish as f64 / f64::from(weights[stream]), at, stream));
                }
                finish += cost;
            }
        }
        let mut ledger = Ledger::default();
        let mut sfq = Sfq::new(Clock::StartTime, History::Forget);
        let shares =
            weights.iter().enumerate().map(|(id, weight)| (StreamId(id as u32), Share::total(*weight)));
        sfq.set_shares(Time::ZERO, &shares.collect());
        let mut names = BTreeMap::new();
        for (stream, requests) in sent.iter().enumerate() {
            let id = StreamId(stream as u32);
            ledger.introduce(id, true);
            for (at, (is_here, cost)) in requests.iter().enumerate() {
                let delay = ledger.charge(id, *is_here, *cost) as u32;
                if *is_here {
                    let ticket = Ticket(1 + names.len() as u64);
                    names.insert(ticket, (at, stream));
                    let entry = Entry { ticket, service: Service { stream: id, delay }, cost: *cost as u32 };
                    sfq.push(Time::ZERO, entry);
                }
            }
        }
        let mut last = f64::NEG_INFINITY;
        let tags: BTreeMap<(usize, usize), f64> =
            broadcast.iter().map(|(tag, at, stream)| ((*at, *stream), *tag)).collect();
        while let Some(ticket) = sfq.pop(Time::ZERO) {
            let tag = tags[&names.remove(&ticket).expect("it waits")];
            assert!(tag >= last - 1e-6, "seed {seed}: {tag} after {last}");
            assert!((sfq.virtual_time().units() - tag).abs() < 1e-6, "the start tag is the same");
            last = tag;
        }
        assert!(names.is_empty());
    }
}
