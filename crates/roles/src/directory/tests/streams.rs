//! Streams: commands (whether bricks can meet a reservation is in [`super::admission`]), what bricks are told, and what is known of what they served.

use super::*;
use base::{Rng, StreamId};
use wire::{
    StreamInfo, StreamReport, StreamStatus, StreamTable, StreamUse, StreamsStatus, TargetUse, Wire as _,
};

fn create(name: &str, weight: u32, nonce: u64) -> AdminRequest {
    AdminRequest::CreateStream {
        name: name.to_owned(),
        weight,
        minimum: None,
        reservation: 0,
        limit: 0,
        nonce,
        latency_us: 0,
    }
}

fn set_weight(name: &str, weight: u32) -> AdminRequest {
    AdminRequest::SetStream {
        name: name.to_owned(),
        weight: Some(weight),
        minimum: None,
        reservation: None,
        limit: None,
        latency_us: None,
    }
}

fn delete(name: &str, nonce: u64) -> AdminRequest {
    AdminRequest::DeleteStream { name: name.to_owned(), nonce }
}

fn move_to(stream: &str) -> AdminRequest {
    AdminRequest::SetVolumeStream { volume: "v".to_owned(), stream: stream.to_owned() }
}

impl Stage {
    fn streams(&mut self) -> StreamsStatus {
        let Ok(AdminReply::Streams(status)) = self.ask(AdminRequest::ListStreams) else {
            panic!("no streams")
        };
        *status
    }

    fn stream(&mut self, id: StreamId) -> StreamStatus {
        self.streams().streams.into_iter().find(|stream| stream.stream == id).expect("it is there")
    }

    fn refusal(&mut self, request: AdminRequest) -> String {
        self.ask(request).expect_err("it cannot be").to_string()
    }
}

fn names(table: &StreamTable) -> Vec<&str> {
    table.streams.iter().map(|stream| stream.name.as_str()).collect()
}

#[test]
fn streams_are_made_set_and_deleted_and_survive_a_restart() {
    let mut stage = Stage::new(3);
    assert_eq!(names(&stage.streams().table), ["default", "destage", "repair", "maintenance"]);
    let Ok(AdminReply::Stream(gold)) = stage.ask(create("gold", 300, 70)) else { panic!("not made") };
    assert_eq!((gold.id, gold.weight, gold.minimum), (StreamId(1), 300, 30));
    assert_eq!(
        stage.ask(create("gold", 300, 70)),
        Ok(AdminReply::Stream(gold.clone())),
        "the same come again"
    );
    assert!(stage.refusal(create("gold", 300, 71)).contains("exists already"));
    for name in ["default", "repair"] {
        stage.ask(set_weight(name, 50)).expect("it can be set");
    }
    stage.ask(AdminRequest::SetPlaces { places: 4 }).expect("set");
    stage.volume("raid1x3", 1);
    stage.ask(move_to("gold")).expect("moved");
    let before = stage.streams();
    stage.restart();
    stage.run(1000);
    let after = stage.streams();
    assert_eq!(after.table, before.table);
    assert_eq!((after.table.places, names(&after.table)[1]), (4, "gold"));
    assert_eq!(stage.stream(gold.id).volumes, ["v"]);
    let repair = after.table.get(StreamId::REPAIR).expect("it is there");
    assert_eq!((repair.weight, repair.minimum), (50, 50), "the minimum of background work follows");

    let refusal = stage.refusal(delete("gold", 80));
    assert!(refusal.contains("has volumes") && refusal.contains('v'), "{refusal}");
    stage.ask(move_to("default")).expect("moved");
    assert_eq!(stage.ask(delete("gold", 81)), Ok(AdminReply::Done));
    assert_eq!(stage.ask(delete("gold", 81)), Ok(AdminReply::Done), "the same come again");
    assert!(stage.refusal(create("gold", 300, 70)).contains("deleted since"), "it came late");
    let Ok(AdminReply::Stream(second)) = stage.ask(create("gold", 5, 72)) else { panic!("not made") };
    assert_eq!((second.id, second.minimum), (StreamId(2), 1), "no number is given twice");
}

#[test]
fn a_latency_target_is_told_to_bricks_and_survives_a_restart_and_records_without_one_are_as_they_were() {
    let mut stage = Stage::new(3);
    let Ok(AdminReply::Stream(gold)) = stage.ask(create("gold", 300, 70)) else { panic!("not made") };
    let mut before = Vec::new();
    gold.encode(&mut wire::Writer::of(wire::Version(5), &mut before));
    70u64.append(&mut before);
    let key = stage.stored.keys().find(|key| key[0] == b't').expect("its record").clone();
    assert_eq!(stage.stored[&key], before, "as a directory of version 5 stored it");
    stage.restart();
    let target = |latency_us| AdminRequest::SetStream {
        name: "gold".to_owned(),
        weight: None,
        minimum: None,
        reservation: None,
        limit: None,
        latency_us: Some(latency_us),
    };
    stage.ask(target(5000)).expect("set");
    stage.restart();
    stage.run(1000);
    assert_eq!(stage.streams().table.get(gold.id).map(|info| info.latency_us), Some(5000));
    assert_eq!(stage.tables[&BrickId(1)].get(gold.id).map(|info| info.latency_us), Some(5000));
    // What bricks say of it is summed, as long as they are heard.
    for brick in [1, 2] {
        let kept = TargetUse { stream: gold.id, timed: 128, late: brick };
        stage.reports.entry(BrickId(brick)).or_default().targets = vec![kept];
    }
    stage.run(1000);
    let seen = stage.stream(gold.id);
    assert_eq!((seen.timed, seen.late), (256, 3));
    stage.ask(target(0)).expect("taken away");
    assert_eq!(stage.stored[&key], before);
    let background = AdminRequest::SetStream {
        name: "repair".to_owned(),
        weight: None,
        minimum: None,
        reservation: None,
        limit: None,
        latency_us: Some(5),
    };
    assert!(stage.refusal(background).contains("only its weight"));
}

#[test]
fn what_cannot_be_is_refused_with_what_is_wrong() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.ask(create("gold", 300, 70)).expect("made");
    let set = |minimum, reservation, limit| AdminRequest::SetStream {
        name: "gold".to_owned(),
        weight: None,
        minimum,
        reservation,
        limit,
        latency_us: None,
    };
    let background = AdminRequest::SetStream {
        name: "destage".to_owned(),
        weight: Some(1),
        minimum: Some(1),
        reservation: None,
        limit: None,
        latency_us: None,
    };
    for (request, hint) in [
        (create("Not/Allowed", 1, 71), "cannot be a stream's name"),
        (create("zero", 0, 71), "1 to 1000000"),
        (create("much", 1_000_001, 71), "1 to 1000000"),
        (set(Some(301), None, None), "the minimum of stream 'gold' is 301 and its weight 300"),
        (set_weight("gold", 20), "the minimum of stream 'gold' is 30 and its weight 20"),
        (set(None, Some(900), Some(899)), "less than the 900"),
        (background, "only its weight"),
        (set_weight("none", 1), "no stream named 'none'"),
        (delete("none", 72), "no stream named 'none'"),
        (delete("default", 72), "not deleted"),
        (delete("maintenance", 72), "not deleted"),
        (move_to("none"), "no stream named 'none'"),
        (move_to("repair"), "background work"),
        (AdminRequest::SetPlaces { places: 0 }, "1 to 4096"),
    ] {
        let version = stage.streams().table.version;
        let refusal = stage.refusal(request.clone());
        assert!(refusal.contains(hint), "{request:?}: {refusal}");
        assert_eq!(stage.streams().table.version, version, "nothing changed");
    }
    let volume = AdminRequest::SetVolumeStream { volume: "w".to_owned(), stream: "gold".to_owned() };
    assert_eq!(stage.ask(volume), Err(AdminError::NoVolume("w".to_owned())));
}

#[test]
fn buckets_are_given_to_streams_that_stay_while_they_have_them() {
    let mut stage = Stage::new(3);
    let Ok(AdminReply::Stream(gold)) = stage.ask(create("gold", 300, 70)) else { panic!("not made") };
    let give = |bucket: &str, stream: &str| AdminRequest::SetBucketStream {
        bucket: bucket.to_owned(),
        stream: stream.to_owned(),
    };
    for (bucket, stream, hint) in [
        ("Photos", "gold", "no name for a bucket"),
        ("photos", "golden", "no stream named 'golden'"),
        ("photos", "repair", "is background work"),
    ] {
        let refusal = stage.refusal(give(bucket, stream));
        assert!(refusal.contains(hint), "{bucket} {stream}: {refusal}");
    }
    for bucket in ["photos", "films", "photos"] {
        assert_eq!(stage.ask(give(bucket, "gold")), Ok(AdminReply::Done));
    }
    assert_eq!(stage.stream(gold.id).buckets, ["films", "photos"]);
    assert!(stage.refusal(delete("gold", 71)).contains("give films, photos another one first"));
    stage.ask(give("films", "default")).expect("given back");
    stage.restart();
    assert_eq!(stage.stream(gold.id).buckets, ["photos"]);
    assert_eq!(stage.stream(StreamId::default()).buckets, [""; 0]);
    stage.ask(give("photos", "default")).expect("given back");
    assert_eq!(stage.ask(delete("gold", 71)), Ok(AdminReply::Done));
}

#[test]
fn snapshots_follow_their_volume() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let snapshot = AdminRequest::Snapshot { volume: "v".to_owned(), snapshot: "monday".to_owned(), nonce: 5 };
    stage.ask(snapshot).expect("taken");
    let Ok(AdminReply::Stream(gold)) = stage.ask(create("gold", 300, 70)) else { panic!("not made") };
    stage.ask(move_to("gold")).expect("moved");
    assert_eq!(stage.stream(gold.id).volumes, ["v", "v@monday"]);
    let alone = AdminRequest::SetVolumeStream { volume: "v@monday".to_owned(), stream: "default".to_owned() };
    assert!(stage.refusal(alone).contains("stream of its volume"));
}

#[test]
fn bricks_are_told_what_is_stored_and_only_what_they_do_not_know() {
    let mut stage = Stage::new(3);
    stage.run(2000);
    assert!(stage.tables.is_empty(), "where nobody speaks of streams bricks hear of none");
    stage.storage_fails = Some("No space left on device".to_owned());
    stage.send(9, create("gold", 300, 70));
    stage.run(1000);
    assert!(stage.tables.is_empty(), "it is not stored");
    assert_eq!(names(&stage.streams().table).len(), 4, "and not shown");
    stage.storage_fails = None;
    stage.run(2000);
    assert_eq!(stage.tables.len(), 3);
    let told = stage.tables[&BrickId(1)].clone();
    assert!(told.is_shared() && names(&told).contains(&"gold"));
    stage.tables.clear();
    stage.run(2000);
    assert!(stage.tables.is_empty(), "they know it");
    // A brick that restarts knows nothing.
    stage.reports.remove(&BrickId(2));
    stage.run(200);
    assert_eq!(stage.tables.keys().copied().collect::<Vec<_>>(), [BrickId(2)]);
    assert_eq!(stage.tables[&BrickId(2)], told);
}

/// A directory that was made anew knows of streams what its volumes say.
#[test]
fn a_stream_that_only_a_volume_names_is_there_under_its_number() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.ask(create("gold", 300, 70)).expect("made");
    stage.ask(move_to("gold")).expect("moved");
    stage.stored.retain(|key, _| key[0] != b't' && key[0] != b'p');
    stage.restart();
    assert_eq!(stage.streams().table.get(StreamId(1)), Some(&StreamInfo::usual(StreamId(1), "stream-1")));
    let Ok(AdminReply::Stream(other)) = stage.ask(create("silver", 50, 71)) else { panic!("not made") };
    assert_eq!(other.id, StreamId(2), "its number is taken");
    stage.ask(set_weight("stream-1", 70)).expect("set");
    assert_eq!(stage.streams().table.get(StreamId(1)).map(|info| info.weight), Some(70));
}

#[test]
fn what_bricks_report_is_summed_by_the_second() {
    let mut stage = Stage::new(3);
    let Ok(AdminReply::Stream(gold)) = stage.ask(create("gold", 300, 70)) else { panic!("not made") };
    stage.run(500);
    let tell = |stage: &mut Stage, tenths: u64, brick: u32, waiting| {
        let used = StreamUse {
            stream: gold.id,
            served: 90 * tenths,
            requests: 10 * tenths,
            turn_us: 50 * tenths,
            waiting,
        };
        let report = stage.reports.entry(BrickId(brick)).or_default();
        *report = StreamReport { uses: vec![used], ..report.clone() };
    };
    for tenths in 1..=40 {
        (1..=3).for_each(|brick| tell(&mut stage, tenths, brick, 2));
        stage.run(100);
    }
    let seen = stage.stream(gold.id);
    assert_eq!((seen.served_per_second, seen.requests_per_second), (2700, 300));
    assert_eq!((seen.turn_us, seen.waiting), (5, 6));
    // A brick begins anew, and another one falls silent: what they served before stays counted, once.
    let served = seen.served;
    for tenths in 1..=20 {
        tell(&mut stage, tenths, 1, 0);
        stage.run(100);
    }
    let seen = stage.stream(gold.id);
    assert_eq!((seen.served - served, seen.served_per_second), (90 * 20, 900));
    stage.bricks.remove(&BrickId(2));
    stage.run(6000);
    let seen = stage.streams();
    assert_eq!((seen.bricks, seen.bricks_informed), (2, 2));
    assert_eq!(seen.streams.iter().map(|stream| stream.waiting).sum::<u32>(), 2, "of the brick that is left");
}

/// Whatever is asked for in whatever order: what is shown is valid, what a restart brings back is the same, and a command that came twice is carried
/// out once.
#[test]
fn any_commands_leave_streams_that_are_valid_and_durable() {
    let mut rng = Rng::with_seed(5);
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    const NAMES: [&str; 6] = ["default", "repair", "a", "b", "c", "d"];
    for nonce in 1000..1400 {
        let named = NAMES[rng.usize(0..NAMES.len())].to_owned();
        let weight = rng.u32(0..40);
        let request = match rng.u8(0..6) {
            0 | 1 => AdminRequest::CreateStream {
                name: named,
                weight,
                minimum: rng.bool().then(|| rng.u32(0..40)),
                reservation: rng.u64(0..3),
                limit: rng.u64(0..3),
                nonce,
                latency_us: rng.u32(0..3),
            },
            2 => AdminRequest::SetStream {
                name: named,
                weight: rng.bool().then_some(weight),
                minimum: rng.bool().then(|| rng.u32(0..40)),
                reservation: rng.bool().then(|| rng.u64(0..3)),
                limit: rng.bool().then(|| rng.u64(0..3)),
                latency_us: rng.bool().then(|| rng.u32(0..3)),
            },
            3 => delete(&named, nonce),
            4 => move_to(&named),
            _ => set_weight("default", weight),
        };
        let (before, first) = (stage.streams(), stage.ask(request.clone()));
        let after = stage.streams();
        if first.is_err() {
            assert_eq!(after, before, "{request:?} was refused");
        } else if !matches!(request, AdminRequest::SetVolumeStream { .. }) {
            assert_eq!(stage.ask(request.clone()), first, "{request:?} came again");
            assert_eq!(stage.streams(), after, "{request:?} came again");
        }
        let mut names = names(&after.table);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), after.table.streams.len(), "names are unique");
        for stream in &after.table.streams {
            assert!(stream.weight >= 1 && stream.minimum <= stream.weight, "{stream:?}");
            assert!(stream.limit == 0 || stream.limit >= stream.reservation, "{stream:?}");
        }
        let volumes: Vec<String> = after.streams.iter().flat_map(|stream| stream.volumes.clone()).collect();
        assert_eq!(volumes, ["v"], "its volume belongs to one stream that is there");
        if rng.u8(0..20) == 0 {
            stage.restart();
            let brought_back = stage.streams();
            assert_eq!((brought_back.table, brought_back.streams.len()), (after.table, after.streams.len()));
            stage.run(1000);
        }
    }
}
