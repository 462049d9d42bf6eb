//! Large objects that a client puts and gets in a world in which things take time.

use ::objects::object::{AccessStrategy, LtDecoder};
use core::time::Duration;
use model::drive::{DriveModel, find};
use reads::seat::{Places, Turns};
use rules::fair::Order;
use sim::timed::objects::{
    self, FragmentOrder, Mapping, ObjectCode, ObjectLayout, ObjectMeasured, Objects, Transferred, Writing,
};
use sim::timed::{Arrivals, Background, BrickSpec, Cluster, Locality, Mix, Network, Scheme, Sizes};
use std::collections::BTreeSet;
use std::sync::Arc;

const BRICKS: u32 = 8;
const BLOCKS: u32 = 64;
const MIB: u64 = 1 << 20;
/// Of fast disks and of slow ones, a block.
const FAST_MS: u32 = 20;
const SLOW_MS: u32 = 200;

fn brick(block_ms: u32) -> BrickSpec {
    let text = format!(
        "name = \"disk\"\ncapacity_sectors = 200000000\n[access]\nread_ms = {block_ms}\nwrite_ms = {block_ms}\n"
    );
    let drive = DriveModel::parse("disk", &text).expect("a drive");
    BrickSpec { writes_through: true, ..BrickSpec::new(Arc::new(drive)) }
}

/// So many of the bricks are slow.
fn cluster(slow: u32, one_way_ms: u64) -> Cluster {
    let bricks = (0..BRICKS).map(|at| brick(if at < slow { SLOW_MS } else { FAST_MS })).collect();
    let one_way_ns = one_way_ms * 1_000_000;
    let network = Network { one_way_ns, client_one_way_ns: one_way_ns, ..Network::default() };
    Cluster { bricks, network, exclusive: false, ..Cluster::uniform(brick(1), BRICKS, BRICKS, Scheme::Hash) }
}

fn plan(code: ObjectCode, copies: u32, layout: ObjectLayout, strategies: Vec<AccessStrategy>) -> Objects {
    Objects {
        objects: 1,
        blocks: BLOCKS,
        block_bytes: MIB,
        code,
        symbols: BLOCKS * copies,
        at_once: 1,
        bricks: BRICKS,
        layout,
        writing: Writing::Put,
        window: 2,
        strategies,
        order: FragmentOrder::AsWritten,
        turns: Turns { order: Order::Arrival, places: Places(1), ..Turns::default() },
        weights: Vec::new(),
        pause: Duration::from_secs(3),
    }
}

fn run(cluster: &Cluster, objects: &Objects) -> ObjectMeasured {
    let measured = objects::run(cluster, objects, 1).expect("it runs");
    measured.objects.into_iter().next().expect("an object")
}

fn ms(transferred: Transferred) -> u128 {
    transferred.took.as_millis()
}

/// Blocks that were sent beyond the object's own.
fn beyond(transferred: Transferred) -> i64 {
    (transferred.sent_bytes / MIB) as i64 - i64::from(BLOCKS)
}

const EVEN: ObjectLayout = ObjectLayout::Even(Mapping::Rotated);

#[test]
fn stripes_wait_for_the_slowest_disk_and_send_each_block_once() {
    let objects = plan(ObjectCode::Copies, 1, EVEN, vec![AccessStrategy::Speculative]);
    for (slow, block_ms) in [(0, FAST_MS), (1, SLOW_MS)] {
        let ObjectMeasured { put, gets, .. } = run(&cluster(slow, 1), &objects);
        let expected = u128::from(BLOCKS / BRICKS * block_ms) + 2;
        assert_eq!((ms(put), ms(gets[0])), (expected, expected));
        assert_eq!((beyond(put), beyond(gets[0])), (0, 0));
    }
}

#[test]
fn coded_objects_take_what_all_disks_give_together() {
    let lt = ObjectCode::Lt(LtDecoder::Peeling);
    let objects = plan(lt, 4, ObjectLayout::ByPace, vec![AccessStrategy::Speculative]);
    let ObjectMeasured { put, gets, .. } = run(&cluster(1, 1), &objects);
    let a_second = f64::from(BRICKS - 1) / f64::from(FAST_MS) + 1.0 / f64::from(SLOW_MS);
    let best_ms = f64::from(BLOCKS * 4) / a_second;
    assert!((ms(put) as f64 / best_ms - 1.0).abs() < 0.05, "{} ms, {best_ms} at best", ms(put));
    // What was on its way at the end was sent in vain.
    let most = i64::from(2 * BRICKS);
    assert!((3 * 64..=3 * 64 + most).contains(&beyond(put)), "{}", beyond(put));
    let came = f64::from(BLOCKS) + beyond(gets[0]) as f64;
    let needed_ms = came / a_second;
    assert!((ms(gets[0]) as f64 / needed_ms - 1.0).abs() < 0.1, "{} ms for {came} blocks", ms(gets[0]));
    assert!((16..64).contains(&beyond(gets[0])), "peeling takes more: {}", beyond(gets[0]));
    let precoded =
        Objects { code: ObjectCode::Precoded, strategies: vec![AccessStrategy::Speculative], ..objects };
    let got = run(&cluster(1, 1), &precoded).gets[0];
    // Disks that are equally fast are done at one moment, and begin what is called off then.
    assert!((0..=i64::from(2 * BRICKS)).contains(&beyond(got)), "solving takes no more: {}", beyond(got));
}

#[test]
fn copies_are_sent_in_vain_where_all_are_asked_for() {
    let strategies = vec![AccessStrategy::Speculative, AccessStrategy::Adaptive { window: 2 }];
    for layout in [EVEN, ObjectLayout::Even(Mapping::Drawn)] {
        let objects = plan(ObjectCode::Copies, 4, layout, strategies.clone());
        let ObjectMeasured { put, gets, .. } = run(&cluster(2, 1), &objects);
        assert_eq!((ms(put), beyond(put)), (u128::from(BLOCKS / BRICKS * 4 * SLOW_MS) + 2, 3 * 64));
        assert!(gets[1].took < gets[0].took * 2 && beyond(gets[1]) < beyond(gets[0]), "{gets:?}");
        // In the end each brick gives copies of what is outstanding at others.
        assert!(beyond(gets[1]) <= i64::from(2 * 2 * BRICKS), "{gets:?}");
    }
}

/// Disks that are equally fast, and disks that are not, near and far: what is claimed is hardly more than the object, and takes no longer.
#[test]
fn claimed_reads_send_hardly_more_than_the_object() {
    let window = 2;
    let strategies = vec![AccessStrategy::Speculative, AccessStrategy::Claimed { window }];
    for (slow, one_way_ms) in [(0, 1), (2, 1), (2, 10)] {
        let objects = plan(ObjectCode::Precoded, 3, EVEN, strategies.clone());
        let ObjectMeasured { gets, .. } = run(&cluster(slow, one_way_ms), &objects);
        let [speculative, claimed] = gets[..] else { panic!("two gets") };
        assert!((0..=4).contains(&beyond(claimed)), "{slow} slow, {one_way_ms} ms: {gets:?}");
        assert!(ms(claimed) <= ms(speculative) + u128::from(2 * FAST_MS), "{gets:?}");
    }
}

#[test]
fn a_long_way_is_paid_once_where_all_is_asked_for_at_once() {
    let objects = plan(ObjectCode::Precoded, 3, ObjectLayout::ByPace, vec![AccessStrategy::Speculative]);
    let near = run(&cluster(0, 0), &objects).gets[0];
    let far = run(&cluster(0, 50), &objects).gets[0];
    let more = ms(far) - ms(near);
    assert!((90..=130).contains(&more), "{more} ms more for a round trip of 100 ms");
    // What disks have begun, and what was sent until they heard of the end.
    assert!(beyond(far) <= i64::from(BRICKS * (2 + 100 / FAST_MS)), "{}", beyond(far));
}

/// Reads are the same whether objects were put or laid.
#[test]
fn what_is_laid_is_what_a_put_would_have_brought() {
    let lt = ObjectCode::Lt(LtDecoder::Peeling);
    for code in [ObjectCode::Copies, ObjectCode::Precoded, lt] {
        let objects = plan(code, 3, EVEN, vec![AccessStrategy::Speculative]);
        let put = run(&cluster(2, 1), &objects);
        let laid = run(&cluster(2, 1), &Objects { writing: Writing::Laid, ..objects });
        assert_eq!(laid.put, Transferred::default());
        let ratio = laid.gets[0].took.as_secs_f64() / put.gets[0].took.as_secs_f64();
        assert!((ratio - 1.0).abs() < 0.15, "{code:?}: {ratio}");
    }
}

/// Reads of what was written while disks had other paces: those that were fast have the symbols, and are not fast any more.
#[test]
fn what_lies_at_slow_disks_is_read_slowly() {
    let paces: Arc<[f64]> = (0..BRICKS).map(|at| if at < 4 { 1.0 } else { 10.0 }).collect();
    let uneven = ObjectLayout::ByOtherPaces(paces);
    let got = |layout, writing| {
        let objects = plan(ObjectCode::Precoded, 2, layout, vec![AccessStrategy::Speculative]);
        ms(run(&cluster(4, 1), &Objects { writing, ..objects }).gets[0])
    };
    let (same, other) = (got(ObjectLayout::ByPace, Writing::Put), got(uneven, Writing::Laid));
    assert!(other > same, "{other} ms with other paces, {same} with those of the put");
}

#[test]
fn clients_that_read_at_the_same_time_share_what_disks_give() {
    let cluster = cluster(0, 1);
    let window = 2;
    let layout = ObjectLayout::ByPace;
    let alone = plan(ObjectCode::Precoded, 2, layout, vec![AccessStrategy::Paced { window }]);
    let together = Objects { objects: 4, at_once: 2, ..alone.clone() };
    let one = ms(run(&cluster, &alone).gets[0]) as f64;
    let measured = objects::run(&cluster, &together, 1).expect("it runs");
    assert_eq!(measured.objects.len(), 4);
    for object in measured.objects {
        let of_two = ms(object.gets[0]) as f64 / one;
        assert!((1.6..2.4).contains(&of_two), "each has half of it: {of_two}");
    }
}

#[test]
fn clients_share_what_disks_give_in_proportion_to_the_weights_of_their_streams() {
    let turns = Turns { order: Order::FAIR, places: Places(1), ..Turns::default() };
    let alone = plan(ObjectCode::Precoded, 2, ObjectLayout::ByPace, vec![AccessStrategy::Speculative]);
    let alone = Objects { blocks: 2 * BLOCKS, symbols: 4 * BLOCKS, turns, ..alone };
    let cluster = cluster(0, 1);
    let one = ms(run(&cluster, &alone).gets[0]) as f64;
    // Whoever has three quarters of the disks takes 4/3 as long as alone. The other one has a third of the rest done by then, and all after twice the time.
    for (weights, expected) in [(vec![3, 1], [4.0 / 3.0, 2.0]), (vec![1, 3], [2.0, 4.0 / 3.0])] {
        let together = Objects { objects: 2, at_once: 2, weights, ..alone.clone() };
        let measured = objects::run(&cluster, &together, 1).expect("it runs");
        for (object, expected) in measured.objects.iter().zip(expected) {
            let of_two = ms(object.gets[0]) as f64 / one;
            assert!((0.93..1.07).contains(&(of_two / expected)), "{of_two}, expected {expected}");
        }
    }
}

/// With so many reads of 4 KiB of other applications a second at each disk.
fn shared(mut cluster: Cluster, arrivals: Arrivals, per_second: f64) -> Cluster {
    let mix = Mix { reads: 1.0, sizes: Sizes::Fixed(8), locality: Locality::Uniform };
    let background = Some(Background { per_second, arrivals, mix });
    cluster.bricks.iter_mut().for_each(|brick| brick.background = background);
    cluster
}

#[test]
fn other_applications_take_their_part_of_a_disks_time() {
    let objects = plan(ObjectCode::Copies, 1, EVEN, vec![AccessStrategy::Speculative]);
    let objects = Objects { blocks: 8 * BLOCKS, symbols: 8 * BLOCKS, ..objects };
    let alone = run(&cluster(0, 1), &objects);
    for (arrivals, tolerance) in [(Arrivals::Regular, 0.05), (Arrivals::Poisson, 0.35)] {
        // Half of the time: each access takes 20 ms.
        let beside = run(&shared(cluster(0, 1), arrivals, 25.0), &objects);
        for (alone, beside) in [(alone.put, beside.put), (alone.gets[0], beside.gets[0])] {
            let longer = beside.took.as_secs_f64() / alone.took.as_secs_f64();
            assert!((longer / 2.0 - 1.0).abs() < tolerance, "{arrivals:?}: {longer} times as long");
        }
        let sorted = |of: &ObjectMeasured| of.places.iter().copied().collect::<BTreeSet<_>>();
        assert!(sorted(&alone) == sorted(&beside), "the bricks are the same");
    }
}

/// What the RobuSTore experiments say of other applications: a disk that moves its arm for each run loses their part, and one that reads on loses more.
#[test]
fn to_return_to_a_long_run_costs_a_movement() {
    let objects = plan(ObjectCode::Copies, 1, EVEN, vec![AccessStrategy::Speculative]);
    let slower = |run_bytes, blocks: u32| {
        let entry = find("robustore-disk").expect("the drive is in the library");
        let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
        let brick = BrickSpec { writes_through: true, run_bytes: Some(run_bytes), ..BrickSpec::new(drive) };
        let cluster = Cluster { bricks: vec![brick; BRICKS as usize], ..cluster(0, 1) };
        let objects = Objects { blocks, symbols: blocks, writing: Writing::Laid, ..objects.clone() };
        let of = |cluster: &Cluster| run(cluster, &objects).gets[0].took.as_secs_f64();
        of(&shared(cluster.clone(), Arrivals::Regular, 80.0)) / of(&cluster)
    };
    // 80 accesses of 7.5 ms are 60% of the time. They wait while the first block is read, and so a few blocks would not show all of it.
    let (short_runs, one_run) = (slower(4096, 4 * BLOCKS), slower(1 << 40, 8 * BLOCKS));
    assert!((2.2..2.8).contains(&short_runs), "{short_runs} times as long in short runs");
    assert!(one_run > 2.9, "{one_run} times as long in one run");
}

#[test]
fn background_needs_a_disk_that_serves_in_the_order_of_arrival() {
    let objects = plan(ObjectCode::Copies, 1, EVEN, Vec::new());
    let entry = find("robustore-disk").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let turning = Cluster { bricks: vec![BrickSpec::new(drive); BRICKS as usize], ..cluster(0, 1) };
    for cluster in [shared(turning, Arrivals::Regular, 1.0), shared(cluster(0, 1), Arrivals::Regular, 0.0)] {
        let why = objects::run(&cluster, &objects, 1).expect_err("it is refused").to_string();
        assert!(why.contains("background"), "{why}");
    }
}

#[test]
fn a_client_alone_does_one_access_after_another() {
    let objects = plan(ObjectCode::Copies, 1, EVEN, vec![AccessStrategy::Speculative]);
    let objects = Objects { objects: 7, ..objects };
    let measured = objects::run_sequences(&cluster(0, 1), &objects, (3, 2), 1).expect("it runs");
    assert_eq!((measured.puts.len(), measured.gets.len()), (3, 4));
    let alone = Duration::from_millis(u64::from(BLOCKS / BRICKS * FAST_MS) + 2);
    assert!(measured.puts.iter().chain(&measured.gets).all(|took| *took == alone), "{measured:?}");
}

#[test]
fn puts_and_gets_of_several_clients_compete() {
    let alone = (BLOCKS / BRICKS * FAST_MS) as f64 / 1e3;
    for strategy in [AccessStrategy::Speculative, AccessStrategy::Paced { window: 2 }] {
        let objects = plan(ObjectCode::Precoded, 1, EVEN, vec![strategy]);
        let objects = Objects { objects: 16, at_once: 2, ..objects };
        let measured = objects::run_sequences(&cluster(0, 1), &objects, (8, 8), 1).expect("it runs");
        assert_eq!((measured.puts.len(), measured.gets.len()), (8, 8));
        let mean = |took: &[Duration]| {
            took.iter().map(Duration::as_secs_f64).sum::<f64>() / took.len() as f64 / alone
        };
        let (puts, gets) = (mean(&measured.puts), mean(&measured.gets));
        let both = (puts + gets) / 2.0;
        assert!((1.5..2.2).contains(&both), "{strategy:?}: puts take {puts} times as long, gets {gets}");
        let same = objects::run_sequences(&cluster(0, 1), &objects, (8, 8), 1).expect("it runs");
        assert_eq!(measured, same);
    }
}

#[test]
fn sequences_that_cannot_be_are_refused() {
    let strategies = vec![AccessStrategy::Speculative];
    let sound = Objects { objects: 4, ..plan(ObjectCode::Precoded, 2, EVEN, strategies) };
    let paces: Arc<[f64]> = vec![1.0; BRICKS as usize].into();
    let layout = ObjectLayout::ByOtherPaces(paces);
    let wrong = [
        (sound.clone(), (5, 1)),
        (sound.clone(), (1, 0)),
        (Objects { strategies: Vec::new(), ..sound.clone() }, (1, 1)),
        (Objects { layout, writing: Writing::Laid, ..sound }, (1, 1)),
    ];
    for (objects, mixed) in wrong {
        assert!(objects::run_sequences(&cluster(0, 1), &objects, mixed, 1).is_err(), "{objects:?} {mixed:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let lt = ObjectCode::Lt(LtDecoder::Peeling);
    let objects = plan(lt, 3, ObjectLayout::ByPace, vec![AccessStrategy::Speculative]);
    let objects = Objects { objects: 2, bricks: 5, order: FragmentOrder::Drawn, ..objects };
    let of = |seed| objects::run(&cluster(3, 1), &objects, seed).expect("it runs");
    assert_eq!(of(7), of(7));
    assert_ne!(of(7).objects, of(8).objects);
}

#[test]
fn what_cannot_be_is_refused() {
    let sound = plan(ObjectCode::Copies, 2, EVEN, Vec::new());
    let wrong = [
        Objects { bricks: BRICKS + 1, ..sound.clone() },
        Objects { blocks: 0, ..sound.clone() },
        Objects { block_bytes: 4095, ..sound.clone() },
        Objects { symbols: BLOCKS - 1, ..sound.clone() },
        Objects { symbols: BLOCKS * BRICKS + 1, ..sound.clone() },
        Objects { writing: Writing::Laid, layout: ObjectLayout::ByPace, ..sound.clone() },
        Objects { layout: ObjectLayout::ByOtherPaces(Arc::new([1.0; BRICKS as usize])), ..sound.clone() },
        Objects { symbols: BLOCKS * 5, layout: ObjectLayout::Even(Mapping::Drawn), ..sound },
    ];
    for objects in wrong {
        assert!(objects::run(&cluster(0, 1), &objects, 1).is_err(), "{objects:?}");
    }
}
