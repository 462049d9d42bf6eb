//! Streams from the command to the disk: an operator says weights, and volumes get service in proportion to them.

use crate::common::Cluster;
use base::{BLOCK, BrickId, Payload, StreamId, Time, VolumeId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest, Io, IoReply, ReadPolicy, StreamsStatus};

const SIZE: u64 = 1 << 20;
const BRICK: BrickId = BrickId(1);
/// Requests that each volume keeps outstanding: more than the disk takes at a time.
const OUTSTANDING: usize = 16;
/// What the disk takes for each request, of which it serves two at a time.
const DISK: Duration = Duration::from_millis(2);

/// A volume that always has requests outstanding.
struct Load {
    volume: VolumeId,
    open: Vec<(u64, u64)>,
    next: u64,
    outstanding: usize,
    /// Through which it asks.
    gateway: u64,
}

impl Load {
    fn new(volume: VolumeId) -> Load {
        Load { volume, open: Vec::new(), next: 0, outstanding: OUTSTANDING, gateway: 1 }
    }

    /// Takes answers and asks for more; how many were served.
    fn go_on(&mut self, cluster: &mut Cluster) -> u64 {
        let before = self.open.len();
        self.open.retain(|of| {
            let reply = cluster.reply(*of);
            assert!(reply.as_ref().is_none_or(|(result, _)| *result == Ok(IoReply::Done)), "{reply:?}");
            reply.is_none()
        });
        let served = before - self.open.len();
        while self.open.len() < self.outstanding {
            let offset = self.next % (SIZE / BLOCK as u64) * BLOCK as u64;
            let io = Io::Read { offset, length: BLOCK as u32 };
            self.open.push(cluster.begin(self.gateway, self.volume, io, Payload::new()));
            self.next += 1;
        }
        served as u64
    }
}

/// How many requests of each were served within this time.
fn serve(cluster: &mut Cluster, loads: &mut [Load; 2], time: Duration) -> [u64; 2] {
    let (end, mut served) = (cluster.now + time, [0, 0]);
    while cluster.now < end {
        for (served, load) in served.iter_mut().zip(loads.iter_mut()) {
            *served += load.go_on(cluster);
        }
        cluster.run(Duration::from_micros(500));
    }
    served
}

fn assert_ratio(served: [u64; 2], expected: f64, when: &str) {
    let ratio = served[1] as f64 / served[0] as f64;
    println!("{when}: {served:?}, 1:{ratio:.2}");
    assert!((ratio / expected - 1.0).abs() < 0.1, "{when}: {served:?} is 1:{ratio:.2}, not 1:{expected}");
}

fn create(cluster: &mut Cluster, name: &str, weight: u32, nonce: u64) -> StreamId {
    let request = AdminRequest::CreateStream {
        name: name.to_owned(),
        weight,
        minimum: None,
        reservation: 0,
        limit: 0,
        nonce,
        latency_us: 0,
    };
    match cluster.admin(request) {
        Ok(AdminReply::Stream(info)) => info.id,
        other => panic!("{other:?}"),
    }
}

fn set_weight(name: &str, weight: u32) -> AdminRequest {
    let name = name.to_owned();
    AdminRequest::SetStream {
        name,
        weight: Some(weight),
        minimum: None,
        reservation: None,
        limit: None,
        latency_us: None,
    }
}

fn streams(cluster: &mut Cluster) -> StreamsStatus {
    match cluster.admin(AdminRequest::ListStreams) {
        Ok(AdminReply::Streams(status)) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn volumes_are_served_in_proportion_to_the_weights_of_their_streams() {
    let mut cluster = Cluster::new(1, 1);
    // Nobody has said anything of streams: all are served as they come.
    let plain = cluster.volume_of("raid0x1", SIZE, (ReadPolicy::default(), StreamId(0)));
    cluster.late_disk = Some((BRICK, DISK));
    let [one, three] = [("one", 100, 901), ("three", 300, 902)]
        .map(|(name, weight, nonce)| create(&mut cluster, name, weight, nonce));
    cluster.admin(AdminRequest::SetPlaces { places: 2 }).expect("set");
    let mut loads = [one, three]
        .map(|stream| Load::new(cluster.volume_of("raid0x1", SIZE, (ReadPolicy::default(), stream))));
    let second = Duration::from_secs(1);

    serve(&mut cluster, &mut loads, second);
    assert_ratio(serve(&mut cluster, &mut loads, 4 * second), 3.0, "weights 100 and 300");

    // What the operator sees is what was served: a read of a block costs 9 units.
    let status = streams(&mut cluster);
    let of = |id| status.streams.iter().find(|stream| stream.stream == id).expect("it is there");
    let (poor, rich) = (of(one), of(three));
    assert!(poor.waiting > 0 && poor.turn_us > rich.turn_us, "{status:?}");
    let all = (poor.requests_per_second + rich.requests_per_second) as f64;
    assert!((all - 1000.0).abs() < 200.0, "two at a time, 2 ms each: {status:?}");
    assert_eq!(poor.served_per_second / poor.requests_per_second.max(1), 9);
    assert_eq!((status.bricks, status.bricks_informed), (1, 1));

    // A weight takes effect with the next heartbeat.
    cluster.admin(set_weight("one", 300)).expect("set");
    serve(&mut cluster, &mut loads, second);
    assert_ratio(serve(&mut cluster, &mut loads, 2 * second), 1.0, "both 300");

    cluster.restart_directory();
    serve(&mut cluster, &mut loads, second);
    assert_eq!(streams(&mut cluster).table.get(one).map(|info| info.weight), Some(300));
    cluster.admin(set_weight("one", 100)).expect("set");
    serve(&mut cluster, &mut loads, second);
    assert_ratio(serve(&mut cluster, &mut loads, 2 * second), 3.0, "after the directory's restart");

    // A volume moves to another stream, under load.
    let to = AdminRequest::SetVolumeStream { volume: format!("raid0x1-{one}"), stream: "three".to_owned() };
    cluster.admin(to).expect("moved");
    serve(&mut cluster, &mut loads, second);
    assert_ratio(serve(&mut cluster, &mut loads, 2 * second), 1.0, "both of one stream");

    // Once there is nothing to share all are served as they come again, and what waited is.
    let back =
        AdminRequest::SetVolumeStream { volume: format!("raid0x1-{one}"), stream: "default".to_owned() };
    cluster.admin(back).expect("moved");
    let back =
        AdminRequest::SetVolumeStream { volume: format!("raid0x1-{three}"), stream: "default".to_owned() };
    cluster.admin(back).expect("moved");
    serve(&mut cluster, &mut loads, second);
    for (name, nonce) in [("one", 903), ("three", 904)] {
        cluster.admin(AdminRequest::DeleteStream { name: name.to_owned(), nonce }).expect("deleted");
    }
    cluster.run(second);
    for load in &mut loads {
        load.open.drain(..).for_each(|of| cluster.finish(of));
    }
    assert_eq!(cluster.read(1, plain, 0, BLOCK as u32), vec![0; BLOCK]);
}

/// What bricks serve under load is measured, told to the directory, and what is beyond that is not promised.
#[test]
fn a_reservation_beyond_what_the_cluster_was_seen_to_serve_is_refused() {
    let mut cluster = Cluster::new(1, 1);
    let [one, three] = [("one", 100, 901), ("three", 300, 902)]
        .map(|(name, weight, nonce)| create(&mut cluster, name, weight, nonce));
    cluster.admin(AdminRequest::SetPlaces { places: 2 }).expect("set");
    let volumes =
        [one, three].map(|stream| cluster.volume_of("raid0x1", SIZE, (ReadPolicy::default(), stream)));
    let reserve = |iops: u64| AdminRequest::SetStream {
        name: "one".to_owned(),
        weight: None,
        minimum: None,
        reservation: Some(9 * iops),
        limit: None,
        latency_us: None,
    };
    cluster.admin(reserve(1_000_000)).expect("nobody knows what the brick can serve");
    cluster.admin(reserve(0)).expect("taken away");
    cluster.late_disk = Some((BRICK, DISK));
    let mut loads = volumes.map(Load::new);
    serve(&mut cluster, &mut loads, Duration::from_secs(8));

    // Two at a time, 2 ms each: a thousand requests a second, of which an eighth is left to weights.
    let [of_brick] = streams(&mut cluster).capacities[..] else { panic!("one brick") };
    let measured = of_brick.capacity as f64 / 9.0;
    assert!((measured / 1000.0 - 1.0).abs() < 0.05, "{measured} of 1000 a second");
    let why = cluster.admin(reserve(1000)).expect_err("refused").to_string();
    assert!(why.contains("brick-1 cannot meet this") && why.contains("would add 1000iops"), "{why}");
    cluster.admin(reserve(800)).expect("it fits");
    // It is worth something: the stream has a quarter by its weight.
    serve(&mut cluster, &mut loads, Duration::from_secs(1));
    let served = serve(&mut cluster, &mut loads, Duration::from_secs(2));
    assert!(served[0] > 3 * served[1], "{served:?}");
}

/// A volume of this stream on this brick, open at one gateway. Who gets a volume is drawn: others are made as well.
fn volume_on(cluster: &mut Cluster, name: &str, stream: StreamId, brick: BrickId, gateway: u64) -> VolumeId {
    for number in 0..64 {
        let name = format!("{name}-{number}");
        let request = AdminRequest::CreateVolume {
            name: name.clone(),
            size_bytes: SIZE,
            layout: "raid0x1".to_owned(),
            stripe_unit_blocks: 0,
            groups: 1,
            read_policy: ReadPolicy::default(),
            io_timeout: wire::IoTimeout::default(),
            protocol: wire::Protocol::default(),
            placement: wire::Placement::default(),
            stream,
            nonce: number << 8 | u64::from(stream.0) << 32 | u64::from(brick.0) << 40 | 1,
            reads: wire::Reads::default(),
        };
        cluster.admin(request).expect("created");
        match cluster.admin(AdminRequest::VolumeMap { name: name.clone() }) {
            Ok(AdminReply::Map(map)) if map.groups[0].members == [brick] => {
                return cluster.open_at(gateway, &name);
            }
            Ok(AdminReply::Map(_)) => {
                cluster.admin(AdminRequest::DeleteVolume { name, nonce: number << 50 | 2 }).expect("deleted");
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("no volume came to lie on {brick}");
}

/// What a stream is served at one brick, through one gateway, counts at another brick where it comes through another gateway. Neither gateway has both
/// volumes open: the directory tells them where the stream lies.
#[test]
fn service_through_one_gateway_counts_at_bricks_that_only_another_asks() {
    let mut cluster = Cluster::new(2, 2);
    let [narrow, wide] =
        [("narrow", 901), ("wide", 902)].map(|(name, nonce)| create(&mut cluster, name, 100, nonce));
    cluster.admin(AdminRequest::SetPlaces { places: 2 }).expect("set");
    let shared =
        [volume_on(&mut cluster, "n", narrow, BRICK, 1), volume_on(&mut cluster, "w", wide, BRICK, 1)];
    let elsewhere = volume_on(&mut cluster, "e", wide, BrickId(2), 2);
    cluster.late_disk = Some((BRICK, DISK));
    let mut loads = shared.map(Load::new);
    serve(&mut cluster, &mut loads, Duration::from_secs(3));
    assert_ratio(serve(&mut cluster, &mut loads, Duration::from_secs(2)), 1.0, "nothing elsewhere");

    // The other brick is fast, and serves the wide stream more than its share.
    let mut other = Load { gateway: 2, ..Load::new(elsewhere) };
    let mut go_on = |cluster: &mut Cluster, seconds| {
        let (end, mut served) = (cluster.now + Duration::from_secs(seconds), [0, 0]);
        while cluster.now < end {
            other.go_on(cluster);
            for (served, load) in served.iter_mut().zip(loads.iter_mut()) {
                *served += load.go_on(cluster);
            }
            cluster.run(Duration::from_micros(500));
        }
        served
    };
    go_on(&mut cluster, 2);
    let [narrow, wide] = go_on(&mut cluster, 2);
    // It keeps its minimum there: 10 beside 100.
    assert!((80..120).contains(&(narrow * 10 / wide.max(1))), "{narrow} and {wide}");
}

/// A client that asks for one thing after the other, with pauses.
struct Quiet {
    volume: VolumeId,
    open: Option<(Time, (u64, u64))>,
    next: Time,
    took: Vec<Duration>,
}

impl Quiet {
    fn new(volume: VolumeId) -> Quiet {
        Quiet { volume, open: None, next: Time::ZERO, took: Vec::new() }
    }

    fn go_on(&mut self, cluster: &mut Cluster) {
        match self.open {
            Some((since, of)) if cluster.reply(of).is_some() => {
                self.took.push(cluster.now.since(since));
                self.open = None;
                self.next = cluster.now + Duration::from_millis(7);
            }
            None if cluster.now >= self.next => {
                let io = Io::Read { offset: 0, length: BLOCK as u32 };
                self.open = Some((cluster.now, cluster.begin(1, self.volume, io, Payload::new())));
            }
            _ => {}
        }
    }
}

/// One request beside 64 of another stream, on a disk that serves one each millisecond and takes 32.
#[test]
fn a_latency_target_is_kept_beside_a_greedy_stream_and_costs_nothing_when_its_stream_has_left() {
    const TARGET: Duration = Duration::from_millis(8);
    let mut cluster = Cluster::new(1, 1);
    let [quiet, greedy] =
        [("quiet", 901), ("greedy", 902)].map(|(name, nonce)| create(&mut cluster, name, 100, nonce));
    cluster.admin(AdminRequest::SetPlaces { places: 32 }).expect("set");
    let [quiet_volume, greedy_volume] =
        [quiet, greedy].map(|stream| cluster.volume_of("raid0x1", SIZE, (ReadPolicy::default(), stream)));
    (cluster.late_disk, cluster.is_serial) = (Some((BRICK, Duration::from_millis(1))), true);
    let mut greedy = Load { outstanding: 64, ..Load::new(greedy_volume) };
    let mut go_on = |cluster: &mut Cluster, quiet: &mut Quiet, seconds: u64| {
        let end = cluster.now + Duration::from_secs(seconds);
        let (mut served, before) = (0, quiet.took.len());
        while cluster.now < end {
            served += greedy.go_on(cluster);
            quiet.go_on(cluster);
            cluster.run(Duration::from_micros(250));
        }
        let took = &quiet.took[before..];
        let in_time = took.iter().filter(|took| **took <= TARGET + Duration::from_micros(500)).count();
        (took.len(), in_time, served)
    };
    let mut client = Quiet::new(quiet_volume);
    go_on(&mut cluster, &mut client, 2);
    let (asked, in_time, without) = go_on(&mut cluster, &mut client, 8);
    println!("without a target: {in_time} of {asked} in time, {without} of the other stream");
    assert!(asked > 100 && in_time * 2 < asked, "{in_time} of {asked} in time without a target");

    let target = |latency: Duration| AdminRequest::SetStream {
        name: "quiet".to_owned(),
        weight: None,
        minimum: None,
        reservation: None,
        limit: None,
        latency_us: Some(latency.as_micros() as u32),
    };
    cluster.admin(target(TARGET)).expect("set");
    go_on(&mut cluster, &mut client, 2);
    let (asked, in_time, with) = go_on(&mut cluster, &mut client, 8);
    println!("with a target: {in_time} of {asked} in time, {with} of the other stream");
    assert!(asked > 300 && in_time * 100 >= asked * 95, "{in_time} of {asked} in time");
    assert!(with + asked as u64 > 7_900, "the disk is never idle: {with} and {asked}");
    let used = cluster.bricks[&BRICK].0.places_used(cluster.now);
    assert!((1..16).contains(&used[0]), "{used:?}");
    let status = streams(&mut cluster);
    let told = status.streams.iter().find(|stream| stream.stream == quiet).expect("it is there");
    assert!(told.timed == 128 && told.late <= 6, "{told:?}");

    // The quiet client leaves: the disk has all its places again.
    let mut nobody = Quiet { next: Time::MAX, ..Quiet::new(quiet_volume) };
    go_on(&mut cluster, &mut nobody, 6);
    assert_eq!(cluster.bricks[&BRICK].0.places_used(cluster.now), [32]);
}

/// A brick keeps nothing of streams: it hears of them with its first heartbeat.
#[test]
fn a_brick_that_restarts_shares_again() {
    let mut cluster = Cluster::new(1, 1);
    cluster.late_disk = Some((BRICK, DISK));
    let [one, three] = [("one", 100, 901), ("three", 300, 902)]
        .map(|(name, weight, nonce)| create(&mut cluster, name, weight, nonce));
    cluster.admin(AdminRequest::SetPlaces { places: 2 }).expect("set");
    let volumes =
        [one, three].map(|stream| cluster.volume_of("raid0x1", SIZE, (ReadPolicy::default(), stream)));
    cluster.kill(base::NodeId::Brick(BRICK));
    cluster.run(Duration::from_secs(1));
    cluster.restart(BRICK);
    cluster.run_until_whole();
    cluster.run(Duration::from_secs(2));
    let mut loads = volumes.map(Load::new);
    serve(&mut cluster, &mut loads, Duration::from_secs(1));
    let served = serve(&mut cluster, &mut loads, Duration::from_secs(4));
    assert_ratio(served, 3.0, "after the brick's restart");
}
