//! Measured clusters of whole machines against theory, against themselves, and against what D-SPTF promises.

use base::{BrickId, Time};
use model::drive::{DriveModel, DriveOptions, find};
use proptest::prelude::*;
use reads::distribute::lard::LardConfig;
use rules::heads::Policy;
use sim::central;
use sim::timed::{
    Arrival, Arrivals, BrickSpec, Cluster, Conditions, Groups, Length, Measured, Message, Mix, RequestRecord,
    Scheme, ServedBy, Sizes, Workload, WriteRelease, live_through, run,
};
use std::sync::Arc;

const SCHEMES: [&str; 9] =
    ["claim", "hash", "weighted-hash", "lard", "shortest-queue", "hedged", "tied", "probing", "usual"];

fn atlas() -> BrickSpec {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = DriveModel::parse("quantum-atlas-10k", entry.text).expect("a sound drive");
    BrickSpec { options: DriveOptions::MECHANICS, ..BrickSpec::new(Arc::new(drive)) }
}

/// Reads and writes take a tenth of a millisecond.
fn flash() -> BrickSpec {
    let text = "name = \"flash\"\ncapacity_sectors = 1000000\n[access]\nread_ms = 0.1\nwrite_ms = 0.1\n";
    let drive = DriveModel::parse("flash", text).expect("a sound drive");
    BrickSpec { policy: Policy::Fcfs, ..BrickSpec::new(Arc::new(drive)) }
}

fn scheme(name: &str) -> Scheme {
    Scheme::named(name).expect("a scheme")
}

fn closed(cluster: &Cluster, reads: f64, requests: u64) -> Measured {
    let workload = Workload::Closed { outstanding: 16, mix: Mix::random(reads) };
    run(cluster, workload, Length { warmup: requests / 4, requests }, 7).expect("a sound cluster")
}

fn table1(name: &str, requests: u64) -> Measured {
    closed(&Cluster::uniform(atlas(), 8, 8, scheme(name)), 0.9, requests)
}

fn assert_account(measured: &Measured) {
    for brick in &measured.bricks {
        let busy = brick.throughput_iops * brick.service_ms / 1e3;
        assert!((busy - (1.0 - brick.idle)).abs() < 1e-9, "{}: {brick:?}", measured.scheme);
        assert!((-1e-9..=1.0).contains(&brick.idle), "{}: {brick:?}", measured.scheme);
    }
    let busy = measured.throughput_iops() * measured.service_ms() / 1e3;
    assert!((busy - (1.0 - measured.idle())).abs() < 1e-9, "{}", measured.scheme);
}

#[test]
fn the_account_is_exact_and_a_seed_is_the_run_under_every_scheme() {
    for name in SCHEMES {
        let measured = table1(name, 400);
        assert_account(&measured);
        assert_eq!(measured, table1(name, 400), "{name}");
        assert_eq!((measured.scheme, measured.answered.requests), (name, 400));
    }
}

#[test]
fn claims_are_as_good_as_the_ideal_and_better_than_hashing() {
    let workload = Workload::Closed { outstanding: 16, mix: Mix::random(0.9) };
    let length = Length { warmup: 1000, requests: 4000 };
    let ideal = Cluster::uniform(atlas(), 8, 8, Scheme::Central);
    let central = central::run(&ideal, workload, length, 7).expect("a sound cluster").throughput_iops();
    let [claim, hash] = ["claim", "hash"].map(|name| table1(name, 4000).throughput_iops());
    assert!((0.98..1.02).contains(&(claim / central)), "claim {claim}, central {central}");
    assert!(claim > hash * 1.3, "claim {claim}, hash {hash}");
}

#[test]
fn a_read_is_served_once_and_takes_two_messages_a_holder() {
    let measured = table1("claim", 4000);
    assert!(measured.device_reads_per_read() < 1.001, "{}", measured.device_reads_per_read());
    let reads = measured.answered.reads as f64;
    let per_read = |kind: Message| measured.traffic.by_kind[kind as usize] as f64 / reads;
    let [asked, claims, data] = [Message::Read, Message::Claim, Message::Data].map(per_read);
    assert!((7.95..8.05).contains(&asked), "{asked} questions a read");
    assert!((6.9..7.2).contains(&claims), "{claims} claims a read");
    assert!((0.99..1.01).contains(&data), "{data} answers a read");
    let first_claims = measured.contention.claims - measured.contention.conflicts;
    assert!(first_claims.abs_diff(measured.answered.reads) < 32, "{first_claims} of {reads}");
    let contested = measured.contention.contested;
    assert!(contested > 0 && contested <= measured.contention.conflicts, "{contested}");
}

#[test]
fn lost_claims_cost_a_second_service_and_no_answer() {
    let mut cluster = Cluster::uniform(atlas(), 4, 4, scheme("claim"));
    cluster.network.claims_lost_ppm = 100_000;
    let measured = closed(&cluster, 0.9, 2000);
    assert_eq!(measured.answered.requests, 2000);
    assert!(measured.contention.duplicates > 100, "{}", measured.contention.duplicates);
    assert!(measured.device_reads_per_read() > 1.1, "{}", measured.device_reads_per_read());
    assert_account(&measured);
}

/// M/D/1: the mean wait is half the load over the rest, in service times.
#[test]
fn one_queue_with_poisson_arrivals_waits_as_long_as_theory_says() {
    let mut cluster = Cluster::uniform(flash(), 1, 1, scheme("hash"));
    (cluster.network.one_way_ns, cluster.network.client_one_way_ns) = (0, 0);
    let mix = Mix { sizes: Sizes::Fixed(1), ..Mix::random(1.0) };
    for load in [0.3, 0.7] {
        let workload = Workload::Open { per_second: load * 10_000.0, arrivals: Arrivals::Poisson, mix };
        let length = Length { warmup: 1000, requests: 100_000 };
        let measured = run(&cluster, workload, length, 1).expect("a sound cluster");
        let theory_ms = 0.1 * (1.0 + load / (2.0 * (1.0 - load)));
        let response_ms = measured.answered.response.mean_ms;
        assert!(
            (0.97..1.03).contains(&(response_ms / theory_ms)),
            "load {load}: {response_ms} ms, theory {theory_ms}"
        );
        assert!((measured.idle() - (1.0 - load)).abs() < 0.01, "{}", measured.idle());
    }
}

#[test]
fn bursts_keep_the_mean_rate_and_lengthen_the_wait() {
    let cluster = Cluster::uniform(flash(), 2, 2, scheme("shortest-queue"));
    let mix = Mix::random(1.0);
    let length = Length { warmup: 0, requests: 20_000 };
    let of = |arrivals| {
        let workload = Workload::Open { per_second: 5000.0, arrivals, mix };
        run(&cluster, workload, length, 1).expect("a sound cluster")
    };
    let bursts = of(Arrivals::Bursts { factor: 4.0, period_ns: 100_000_000 });
    let (poisson, regular) = (of(Arrivals::Poisson), of(Arrivals::Regular));
    for measured in [&bursts, &poisson, &regular] {
        let rate = measured.requests_per_second();
        assert!((4800.0..5200.0).contains(&rate), "{rate}");
    }
    assert!(bursts.answered.response.mean_ms > poisson.answered.response.mean_ms);
    assert!(poisson.answered.response.mean_ms > regular.answered.response.mean_ms);
}

/// Where nothing turns, bricks leave a read to the best bidder.
#[test]
fn flash_reads_once_under_light_load() {
    let cluster = Cluster::uniform(flash(), 3, 3, scheme("claim"));
    let workload = Workload::Open { per_second: 3000.0, arrivals: Arrivals::Poisson, mix: Mix::random(1.0) };
    let length = Length { warmup: 500, requests: 10_000 };
    let measured = run(&cluster, workload, length, 1).expect("a sound cluster");
    assert!(measured.device_reads_per_read() <= 1.01, "{}", measured.device_reads_per_read());
    let response_ms = measured.answered.response.mean_ms;
    assert!(response_ms < 0.26, "a tenth, and the messages: {response_ms}");
}

/// A brick that is 50 times slower from some moment on hardly shows: it is found out by its bids.
#[test]
fn a_slow_brick_is_dodged_though_its_head_cannot_be_seen() {
    let of = |scheme: Scheme, percent: u32| {
        let mut cluster = Cluster::uniform(BrickSpec { depth: 4, ..flash() }, 3, 3, scheme);
        cluster.bricks[0].speed = vec![(Time(100_000_000), percent)];
        let workload =
            Workload::Open { per_second: 3000.0, arrivals: Arrivals::Poisson, mix: Mix::random(1.0) };
        let length = Length { warmup: 1000, requests: 10_000 };
        let measured = run(&cluster, workload, length, 1).expect("a sound cluster");
        (measured.answered.response.p99_ms, measured.device_reads_per_read())
    };
    let [(healthy, read_once), (slow, read_beside)] = [100, 5000].map(|percent| of(scheme("claim"), percent));
    assert!(slow < healthy * 1.5, "{slow} ms, healthy {healthy} ms");
    assert!(read_once <= 1.05 && read_beside <= 1.05, "{read_once}, and beside a slow brick {read_beside}");
    // A gateway asks another where the slow brick's queue grows for a quarter of a second.
    let (hashed, read_again) = of(scheme("hash"), 5000);
    assert!(hashed > healthy * 10.0, "hashing waits for it");
    assert!((1.05..1.1).contains(&read_again), "{read_again}");
}

#[test]
fn one_cache_and_caches_that_keep_a_block_once_hit_as_often() {
    let cached = BrickSpec { cache_bytes: 4 << 20, ..atlas() };
    let hits = |name: &str, exclusive: bool| {
        let mut cluster = Cluster::uniform(cached.clone(), 4, 4, scheme(name));
        cluster.exclusive = exclusive;
        // Whole blocks: what lies across two of them may be in two memories, and in none as a whole.
        let mut draw = model::Draw::new(1);
        let block = move |at: u64| {
            // What is hot lies scattered: LARD gives each MiB to whoever is idle when it is first asked for, which shares a dozen of them
            // out evenly or not, as it happens, and hundreds evenly.
            let block = if draw.percent(90) { draw.below(3_000) * 64 } else { draw.below(2_000_000) };
            Arrival { at: Time(at * 1_500_000), sector: block * 8, count: 8, is_write: draw.percent(30) }
        };
        let workload = Workload::Stream(Box::new((0..24_000).map(block)));
        let length = Length { warmup: 12_000, requests: 12_000 };
        let measured = match cluster.scheme {
            Scheme::Central => central::run(&cluster, workload, length, 1).expect("a sound cluster"),
            _ => run(&cluster, workload, length, 1).expect("a sound cluster"),
        };
        // In contests some reads are answered twice, 24 of 8384.
        let most = if name == "claim" { 1.03 } else { 1.01 };
        assert!(measured.device_reads_per_read() < most, "what one has in memory the others do not read");
        measured.hit_rate()
    };
    let central = hits("central", true);
    assert!((0.4..0.95).contains(&central), "{central}");
    for name in ["claim", "hash", "lard"] {
        let exclusive = hits(name, true);
        assert!((central - exclusive).abs() < 0.05, "{name}: {exclusive}, central {central}");
    }
    let copies = hits("hash", false);
    assert!(copies < central - 0.05, "copies of what was written take room: {copies}");
}

#[test]
fn a_journal_without_room_makes_writes_wait_for_the_disk() {
    let response_ms = |journal_bytes| {
        let brick = BrickSpec { journal_bytes, ..atlas() };
        let mut cluster = Cluster::uniform(brick, 2, 2, scheme("claim"));
        cluster.write_release = WriteRelease::Nvram;
        closed(&cluster, 0.5, 1000).answered.write_response.mean_ms
    };
    assert!(response_ms(1 << 30) < 0.3, "two hops and back: {}", response_ms(1 << 30));
    assert!(response_ms(1 << 15) > 10.0, "{}", response_ms(1 << 15));
}

#[test]
fn writes_are_released_by_what_is_asked() {
    let of = |write_release| {
        let cluster = Cluster { write_release, ..Cluster::uniform(atlas(), 4, 4, scheme("hash")) };
        closed(&cluster, 0.5, 1000).requests_per_second()
    };
    let rates = [WriteRelease::All, WriteRelease::Half, WriteRelease::Of(1)].map(of);
    assert!(rates.is_sorted(), "{rates:?}");
    assert_eq!(of(WriteRelease::Of(9)), of(WriteRelease::All));
}

#[test]
fn a_disk_at_half_speed_does_half_as_much_and_recovers() {
    let mut cluster = Cluster::uniform(atlas(), 1, 1, scheme("hash"));
    let whole = closed(&cluster, 1.0, 1000).throughput_iops();
    cluster.bricks[0].speed = vec![(Time::ZERO, 200)];
    let half = closed(&cluster, 1.0, 1000).throughput_iops();
    assert!((half * 2.0 / whole - 1.0).abs() < 0.03, "{half} of {whole}");
    cluster.bricks[0].speed = vec![(Time::ZERO, 200), (Time(1_000_000), 100)];
    let recovered = closed(&cluster, 1.0, 1000).throughput_iops();
    assert!((recovered / whole - 1.0).abs() < 0.03, "{recovered} of {whole}");
}

#[test]
fn the_slow_disk_serves_less_where_load_decides() {
    for (name, factor) in [("claim", 1.7), ("lard", 1.4), ("probing", 1.4), ("shortest-queue", 1.3)] {
        let mut cluster = Cluster::uniform(atlas(), 2, 2, scheme(name));
        cluster.bricks[1].speed = vec![(Time::ZERO, 200)];
        let measured = closed(&cluster, 1.0, 2000);
        let [fast, slow] = [0, 1].map(|brick| measured.bricks[brick].throughput_iops);
        assert!(fast > slow * factor, "{name}: {fast} and {slow}");
    }
}

/// Weights are the operator's: three of four reads go where they say.
#[test]
fn given_weights_share_reads_out() {
    let cluster = Cluster::uniform(flash(), 2, 2, Scheme::WeightedHash(vec![1.0, 3.0]));
    let measured = closed(&cluster, 1.0, 8000);
    let share = measured.bricks[1].reads as f64 / 8000.0;
    assert!((0.73..0.77).contains(&share), "{share}");
}

#[test]
fn hedged_and_tied_reads_ask_a_second_holder() {
    for (name, most) in [("hedged", 1.2), ("tied", 2.0)] {
        let cluster = Cluster::uniform(atlas(), 3, 3, scheme(name));
        let workload =
            Workload::Open { per_second: 60.0, arrivals: Arrivals::Poisson, mix: Mix::random(1.0) };
        let measured = run(&cluster, workload, Length { warmup: 500, requests: 2000 }, 1).expect("sound");
        let asked = measured.messages(Message::Read);
        assert!(asked > 1.01 && asked <= most, "{name} asks {asked} bricks a read");
        assert!(measured.device_reads_per_read() < most, "{name}: {}", measured.device_reads_per_read());
    }
}

#[test]
fn a_stream_ends_when_its_last_request_does() {
    let arrival = |at: u64| Arrival {
        at: Time(at * 1_000_000),
        sector: at * 999_999_937,
        count: 8,
        is_write: at.is_multiple_of(3),
    };
    let mut cluster = Cluster::uniform(atlas(), 4, 2, scheme("claim"));
    cluster.bricks[0].speed = vec![(Time(1 << 60), 200)];
    let workload = Workload::Stream(Box::new((0..500).map(arrival)));
    let measured = run(&cluster, workload, Length { warmup: 0, requests: u64::MAX }, 1).expect("sound");
    assert_eq!(measured.answered.requests, 500);
    let writes: u64 = measured.bricks.iter().map(|brick| brick.writes).sum();
    assert_eq!(writes, 2 * 167, "all that was written is on both disks");
    assert!(measured.seconds < 10.0, "{}", measured.seconds);
    let answered: u64 = measured.answered.series.iter().map(|interval| interval.requests).sum();
    assert_eq!(answered, 500);
    let nothing = Workload::Stream(Box::new(core::iter::empty()));
    let none = run(&cluster, nothing, Length { warmup: 0, requests: 1 }, 1).expect("sound");
    assert_eq!(none.answered.requests, 0);
}

/// Eight disks that turn in step all claim each of these reads: seven claims too many, and one request.
#[test]
fn a_read_that_many_claim_is_one_conflict() {
    let mut cluster = Cluster::uniform(atlas(), 8, 8, scheme("claim"));
    cluster.synchronised = true;
    let arrival = |at: u64| Arrival {
        at: Time(at * 1_000_000_000),
        sector: 900_001 * (at + 1),
        count: 8,
        is_write: false,
    };
    let workload = Workload::Stream(Box::new((0..10).map(arrival)));
    let measured = run(&cluster, workload, Length { warmup: 0, requests: u64::MAX }, 1).expect("sound");
    assert_eq!(
        (measured.contention.claims, measured.contention.conflicts, measured.contention.contested),
        (80, 70, 10)
    );
    assert_eq!(measured.conflicts_per_request(), 1.0);
}

/// 17,938,984 sectors are the whole blocks of the drive.
#[test]
fn a_stream_longer_than_the_cluster_reads_the_same_block_where_it_wraps() {
    let cluster = Cluster::uniform(BrickSpec { cache_bytes: 1 << 20, ..atlas() }, 1, 1, scheme("hash"));
    let arrival = |(at, &(sector, count)): (usize, &(u64, u32))| Arrival {
        at: Time(at as u64 * 1_000_000_000),
        sector,
        count,
        is_write: false,
    };
    let hits = |asked: &[(u64, u32)]| {
        let workload =
            Workload::Stream(Box::new(asked.iter().enumerate().map(arrival).collect::<Vec<_>>().into_iter()));
        let measured = run(&cluster, workload, Length { warmup: 0, requests: u64::MAX }, 1).expect("sound");
        (measured.bricks[0].hits, measured.wrapped)
    };
    // 16 sectors are in the cache; then the block of 8 that they begin with is, and where it wraps to.
    assert_eq!(hits(&[(20_000_000, 16), (20_000_000, 8), (20_000_000 - 17_938_984, 16)]), (2, 2.0 / 3.0));
    assert_eq!(hits(&[(17_938_976, 8), (17_938_980, 8), (17_938_976, 16)]), (1, 2.0 / 3.0));
    assert_eq!(hits(&[(0, 8), (8, 8)]), (0, 0.0));
}

#[test]
fn a_narrow_network_is_the_bound() {
    let mut cluster = Cluster::uniform(flash(), 1, 1, scheme("hash"));
    cluster.network.bytes_per_second = Some(1_000_000);
    let workload =
        Workload::Closed { outstanding: 4, mix: Mix { sizes: Sizes::Fixed(8), ..Mix::random(1.0) } };
    let measured = run(&cluster, workload, Length { warmup: 10, requests: 1000 }, 1).expect("sound");
    let expected = 1_000_000.0 / (4096.0 + 50.0);
    let rate = measured.requests_per_second();
    assert!((rate / expected - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn what_cannot_be_is_refused() {
    let good = Cluster::uniform(flash(), 4, 2, scheme("hash"));
    let broken = |change: &dyn Fn(&mut Cluster)| {
        let mut cluster = good.clone();
        change(&mut cluster);
        cluster.validate().expect_err("it cannot be").to_string()
    };
    assert!(broken(&|cluster| cluster.groups = Groups::disjoint(1, 2)).contains("no group"));
    assert!(broken(&|cluster| cluster.groups.0[1][0] = 9).contains("group 1 names brick 9"));
    assert!(broken(&|cluster| cluster.groups.0[1] = vec![2, 2]).contains("group 1 names brick 2"));
    assert!(broken(&|cluster| cluster.groups.0[0].clear()).contains("group 0 has 0 bricks"));
    assert!(broken(&|cluster| cluster.bricks[2].depth = 0).contains("brick 2"));
    assert!(
        broken(&|cluster| cluster.bricks[1] = BrickSpec { depth: 2, ..atlas() }).contains("disk that turns")
    );
    assert!(broken(&|cluster| cluster.bricks[3].speed = vec![(Time::ZERO, 0)]).contains("brick 3"));
    assert_eq!(Scheme::named("nothing").map(|scheme| scheme.name()), None);
    SCHEMES.iter().for_each(|name| assert_eq!(scheme(name).name(), *name));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is combined, all is answered, and every account is kept.
    #[test]
    fn nothing_is_lost_in_any_cluster(
        name in proptest::sample::select(&SCHEMES[..]),
        replicas in 1u32..5,
        (reads, one_way_us) in (0.0..=1.0, 0u64..3000),
        (cache_bytes, journal_bytes) in (0u64..1 << 24, 1u64..1 << 20),
        (lost_ppm, percent, seed) in (0u32..200_000, 50u32..400, 0u64..1 << 20),
    ) {
        let brick = BrickSpec { cache_bytes, journal_bytes, ..atlas() };
        let mut cluster = Cluster::uniform(brick, 5, replicas, scheme(name));
        (cluster.network.one_way_ns, cluster.network.claims_lost_ppm) = (one_way_us * 1000, lost_ppm);
        cluster.bricks[0].speed = vec![(Time(50_000_000), percent)];
        all_is_answered(&cluster, reads, seed);
    }
}

/// 200 requests of up to 32 KiB, one every 4 ms: more than disks take that turn. Only a brick that is slower leaves its groups, and only where one
/// left some copies are written by others.
fn all_is_answered(cluster: &Cluster, reads: f64, seed: u64) {
    let arrival = move |at: u64| Arrival {
        at: Time(at * 4_000_000),
        sector: (at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36,
        count: 1 + (at % 64) as u32,
        is_write: (at.wrapping_mul(seed | 1) % 1000) as f64 >= reads * 1000.0,
    };
    let workload = Workload::Stream(Box::new((0..200).map(arrival)));
    let conditions = Conditions { watches_bricks: true, ..Conditions::default() };
    let length = Length { warmup: 0, requests: u64::MAX };
    let lived = live_through(cluster, workload, length, &conditions, seed).expect("a sound cluster");
    let (measured, standings) = (lived.measured, lived.standings);
    assert_eq!(measured.answered.requests, 200);
    assert_account(&measured);
    let is_slower = cluster.bricks[0].speed.iter().any(|(_, percent)| *percent >= SLOWER_PERCENT);
    let may_leave = |brick: BrickId| brick == BrickId(1) && is_slower;
    assert!(standings.changes.iter().all(|change| may_leave(change.brick)), "{standings:?}");
    if standings.left == 0 {
        let writes: u64 = measured.bricks.iter().map(|brick| brick.writes).sum();
        let copies = cluster.groups.0[0].len() as u64;
        assert_eq!(writes, (measured.answered.requests - measured.answered.reads) * copies);
    }
}

/// A brick is slow only if its writes take half as long again as those of the others.
const SLOWER_PERCENT: u32 = 150;

/// The quickest brick's memory fills with writes that wait for their turn at the other two, and takes the next ones late for that.
#[test]
fn a_quick_brick_is_not_slow_for_writes_that_wait_for_the_others() {
    let brick = BrickSpec { cache_bytes: 0, journal_bytes: 91_648, ..atlas() };
    let mut cluster = Cluster::uniform(brick, 5, 3, scheme("claim"));
    cluster.network.one_way_ns = 0;
    cluster.bricks[0].speed = vec![(Time(50_000_000), 59)];
    all_is_answered(&cluster, 0.0, 183_965);
}

#[test]
fn lard_forgets_no_home_while_there_is_room() {
    let config = LardConfig { granule: 64 << 20, ..LardConfig::default() };
    let measured = closed(&Cluster::uniform(atlas(), 4, 4, Scheme::Lard(config)), 0.9, 2000);
    assert_eq!(measured.moves, 0, "16 requests never reach a threshold of 65");
    let scaled = LardConfig { scale: 0.05, ..config };
    let measured = closed(&Cluster::uniform(atlas(), 4, 4, Scheme::Lard(scaled)), 0.9, 2000);
    assert!(measured.moves > 0);
}

fn recorded(cluster: &Cluster, workload: Workload, length: Length) -> Measured {
    let conditions = Conditions { keeps_requests: true, ..Conditions::default() };
    live_through(cluster, workload, length, &conditions, 3).expect("a sound cluster").measured
}

/// What must be true of every record: times follow one another, and what the meter says is what the records add up to.
fn assert_records(measured: &Measured) {
    let requests = &measured.requests;
    assert_eq!(requests.len() as u64, measured.answered.requests);
    assert!(requests.is_sorted_by_key(|request| request.answered));
    for request in requests {
        let ServedBy::Disk(access) = request.served_by else { continue };
        let times = [request.asked, access.begun, access.done, request.answered];
        assert!(times.is_sorted(), "{request:?}");
    }
    let mean_ms = |is_meant: &dyn Fn(&RequestRecord) -> bool| {
        let meant: Vec<u64> =
            requests.iter().filter(|request| is_meant(request)).map(RequestRecord::response_ns).collect();
        meant.iter().sum::<u64>() as f64 / meant.len().max(1) as f64 / 1e6
    };
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
    close(mean_ms(&|_| true), measured.answered.response.mean_ms);
    close(mean_ms(&RequestRecord::is_disk_read), measured.answered.disk_read_response.mean_ms);
    let last = measured.answered.distribution.last().expect("something was answered");
    assert!(last[1] == 1.0 && measured.answered.distribution.is_sorted_by_key(|[_, share]| *share));
}

/// Whether a write of the same sectors was under way while a read was: it waits for that.
fn met_a_write(read: &RequestRecord, all: &[RequestRecord]) -> bool {
    let end = |of: &RequestRecord| of.sector + u64::from(of.count);
    all.iter().filter(|of| of.is_write && of.group == read.group).any(|write| {
        let shares_sectors = write.sector < end(read) && read.sector < end(write);
        shares_sectors && write.asked < read.answered && read.asked < write.answered
    })
}

#[test]
fn records_tell_which_reads_a_cache_answered_and_which_disk_the_others() {
    let hot = Mix { locality: sim::timed::Locality::Hot { share: 0.9, space: 0.0001 }, ..Mix::random(0.8) };
    let mut cluster = Cluster::uniform(atlas(), 4, 2, scheme("claim"));
    cluster.bricks.iter_mut().for_each(|brick| brick.cache_bytes = 64 << 20);
    let length = Length { warmup: 200, requests: 2000 };
    let measured = recorded(&cluster, Workload::Closed { outstanding: 4, mix: hot }, length);
    assert_records(&measured);
    let (mut memory, mut disk) = (0u64, 0u64);
    for request in &measured.requests {
        match request.served_by {
            ServedBy::Memory if request.is_write => {}
            ServedBy::Memory => {
                memory += 1;
                let is_slow = request.response_ns() >= 1_000_000;
                assert!(!is_slow || met_a_write(request, &measured.requests), "{request:?}");
            }
            ServedBy::Disk(access) => {
                disk += 1;
                assert!(!request.is_write, "writes are answered by journals");
                assert_eq!(access.brick / 2, request.group, "{request:?}");
            }
            ServedBy::Several => panic!("copies are one access: {request:?}"),
        }
    }
    assert!(memory > 200 && disk > 200, "{memory} {disk}");
    assert_eq!(measured.answered.memory_reads, Some(memory));
    let reads: u64 = measured.bricks.iter().map(|brick| brick.reads).sum();
    assert!(disk.abs_diff(reads) * 20 < reads, "{disk} answers of disks, which have read {reads} times");
}

#[test]
fn a_drive_alone_serves_what_is_replayed_one_after_the_other() {
    // With one outstanding request nothing waits; with several, the scheduler shortens the way.
    let alone = |policy, outstanding| {
        let brick = BrickSpec { policy, writes_through: true, ..atlas() };
        let mut cluster = Cluster::uniform(brick, 1, 1, Scheme::Central);
        (cluster.network.one_way_ns, cluster.network.client_one_way_ns) = (0, 0);
        let mut draw = model::Draw::new(5);
        let requests: Vec<Arrival> = (0..1000)
            .map(|at| Arrival {
                at: Time(0),
                sector: draw.below(17_000_000),
                count: 8,
                is_write: at % 3 == 0,
            })
            .collect();
        let workload = Workload::Replayed { outstanding, requests: Box::new(requests.into_iter()) };
        central::run_recorded(&cluster, workload, Length { warmup: 0, requests: u64::MAX }, 1)
            .expect("a sound cluster")
    };
    let one = alone(Policy::Sptf, 1);
    assert_records(&one);
    assert_eq!(one.answered.requests, 1000);
    for pair in one.requests.windows(2) {
        assert_eq!(pair[0].answered, pair[1].asked, "the next is asked with the answer");
    }
    for request in &one.requests {
        let ServedBy::Disk(access) = request.served_by else { panic!("nothing else serves: {request:?}") };
        assert_eq!(
            (access.begun, access.done, access.waiting),
            (request.asked, request.answered, Some(0)),
            "{request:?}"
        );
        assert_eq!(access.sector, request.sector);
    }
    let [fcfs, sptf] = [Policy::Fcfs, Policy::Sptf].map(|policy| alone(policy, 16));
    assert_eq!(sptf.answered.requests, 1000);
    assert_records(&sptf);
    assert!(
        sptf.throughput_iops() > fcfs.throughput_iops() * 1.4,
        "{} {}",
        sptf.throughput_iops(),
        fcfs.throughput_iops()
    );
}

#[test]
fn machines_replay_as_many_at_a_time_as_they_are_told_to() {
    let cluster = Cluster::uniform(atlas(), 2, 2, scheme("claim"));
    let requests = (0..500u64).map(|at| Arrival {
        at: Time(0),
        sector: at * 31_337 % 17_000_000,
        count: 8,
        is_write: false,
    });
    let workload = Workload::Replayed { outstanding: 4, requests: Box::new(requests) };
    let measured = recorded(&cluster, workload, Length { warmup: 0, requests: u64::MAX });
    assert_records(&measured);
    assert_eq!(measured.answered.requests, 500);
    let under_way = |at: Time| {
        measured.requests.iter().filter(|request| request.asked <= at && at < request.answered).count()
    };
    let middle = measured.requests[250].answered;
    assert_eq!(under_way(middle), 4);
}

#[test]
fn all_that_waits_for_a_drive_alone_is_in_the_order_of_its_scheduler() {
    // More than any journal would hold: 128 MiB of writes at one moment, and a read behind them.
    let brick = BrickSpec { policy: Policy::Fcfs, writes_through: true, ..atlas() };
    let mut cluster = Cluster::uniform(brick, 1, 1, Scheme::Central);
    (cluster.network.one_way_ns, cluster.network.client_one_way_ns) = (0, 0);
    let write = |at: u64| Arrival { at: Time(0), sector: at * 1000, count: 1024, is_write: true };
    let read = Arrival { at: Time(1), sector: 5, count: 8, is_write: false };
    let requests = (0..256).map(write).chain([read]);
    let workload = Workload::Stream(Box::new(requests));
    let length = Length { warmup: 0, requests: u64::MAX };
    let measured = central::run_recorded(&cluster, workload, length, 1).expect("a sound cluster");
    let last = measured.requests.last().expect("they are answered");
    assert!(
        measured.requests.len() == 257 && !last.is_write,
        "the read came last, and is served last: {last:?}"
    );
}
