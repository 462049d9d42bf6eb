//! Reservations: refused where a brick that is known could not meet them.

use super::*;
use base::StreamId;
use wire::{BrickCapacity, ReservedOn, StreamInfo, StreamsStatus};

/// Units of a request for 4 KiB.
const IO: u64 = StreamInfo::BLOCK_UNITS;

fn create(name: &str, reservation: u64, nonce: u64) -> AdminRequest {
    AdminRequest::CreateStream {
        name: name.to_owned(),
        weight: 100,
        minimum: None,
        reservation: reservation * IO,
        limit: 0,
        nonce,
        latency_us: 0,
    }
}

fn reserve(name: &str, reservation: u64) -> AdminRequest {
    AdminRequest::SetStream {
        name: name.to_owned(),
        weight: None,
        minimum: None,
        reservation: Some(reservation * IO),
        limit: None,
        latency_us: None,
    }
}

fn weigh(name: &str, weight: u32) -> AdminRequest {
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

fn move_to(volume: &str, stream: &str) -> AdminRequest {
    AdminRequest::SetVolumeStream { volume: volume.to_owned(), stream: stream.to_owned() }
}

impl Stage {
    /// Bricks say from now on what they can serve, in requests for 4 KiB a second.
    fn measure(&mut self, capacities: &[u64]) {
        for (brick, capacity) in (1..).map(BrickId).zip(capacities) {
            self.reports.entry(brick).or_default().capacity = capacity * IO;
        }
        self.run(200);
    }

    fn made(&mut self, request: AdminRequest) -> StreamId {
        match self.ask(request) {
            Ok(AdminReply::Stream(info)) => info.id,
            other => panic!("{other:?}"),
        }
    }

    fn volume_of(&mut self, name: &str, layout: &str, stream: StreamId) -> Result<AdminReply, AdminError> {
        let mut request = volume_request(name, layout, 1, name.bytes().map(u64::from).sum());
        if let AdminRequest::CreateVolume { stream: of_volume, .. } = &mut request {
            *of_volume = stream;
        }
        self.ask(request)
    }

    fn status(&mut self) -> StreamsStatus {
        match self.ask(AdminRequest::ListStreams) {
            Ok(AdminReply::Streams(status)) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// What is reserved on each brick, in requests for 4 KiB a second.
    fn reserved(&mut self) -> Vec<u64> {
        self.status().capacities.iter().map(|of| of.reserved / IO).collect()
    }

    fn reserved_on(&mut self, id: StreamId) -> ReservedOn {
        let status = self.status();
        status.streams.iter().find(|stream| stream.stream == id).expect("it is there").reserved_on
    }

    fn refused(&mut self, request: AdminRequest) -> String {
        let (before, why) = (self.status(), self.ask(request).expect_err("refused"));
        assert_eq!(self.status(), before, "nothing changed");
        why.to_string()
    }
}

#[test]
fn a_reservation_that_a_brick_cannot_meet_is_refused_with_the_reason_and_a_lower_one_is_not() {
    let mut stage = Stage::new(3);
    stage.measure(&[1000, 1000, 800]);
    let gold = stage.made(create("gold", 400, 70));
    stage.volume_of("v", "raid1x3", gold).expect("made");
    let silver = stage.made(create("silver", 0, 71));
    stage.volume_of("w", "raid1x3", silver).expect("made");
    assert_eq!(stage.reserved(), [400, 400, 400], "every copy may be asked for every read");
    let why = stage.refused(reserve("silver", 301));
    assert_eq!(
        why,
        "brick-3 cannot meet this: it serves 800iops as measured, of which 700iops can be reserved; 400iops are \
         reserved there and this would add 301iops. Reserve less, or spread the data over more bricks"
    );
    stage.ask(reserve("silver", 300)).expect("it fits");
    assert_eq!(stage.reserved_on(silver), ReservedOn { bricks: 3, measured: 3 });
    // What others were promised leaves less for this one, and what it is promised itself can be lowered.
    assert!(
        stage.refused(reserve("gold", 500)).contains("700iops are reserved there and this would add 100")
    );
    stage.ask(reserve("silver", 200)).expect("less");
    stage.ask(reserve("gold", 500)).expect("it fits now");
}

#[test]
fn a_reservation_for_a_bucket_falls_evenly_on_all_bricks() {
    let mut stage = Stage::new(3);
    stage.measure(&[1000, 1000, 400]);
    let gold = stage.made(create("gold", 900, 70));
    stage.volume_of("v", "raid1x3", gold).expect_err("the third brick has room for 350");
    let give = |bucket: &str, stream: &str| AdminRequest::SetBucketStream {
        bucket: bucket.to_owned(),
        stream: stream.to_owned(),
    };
    stage.ask(give("photos", "gold")).expect("300 at each");
    assert_eq!(stage.reserved(), [300, 300, 300]);
    assert_eq!(stage.reserved_on(gold), ReservedOn { bricks: 3, measured: 3 });
    stage.ask(give("films", "gold")).expect("nothing is added");
    stage.made(create("silver", 300, 71));
    assert!(stage.refused(give("films", "silver")).contains("brick-3 cannot meet this"));
    stage.ask(reserve("silver", 150)).expect("less");
    stage.ask(give("films", "silver")).expect("50 at each");
    stage.ask(give("photos", "default")).expect("given back");
    assert_eq!(stage.reserved(), [50, 50, 50]);
}

#[test]
fn bricks_that_are_not_measured_or_away_refuse_nothing() {
    let mut stage = Stage::new(3);
    let gold = stage.made(create("gold", 1_000_000, 70));
    stage.volume_of("v", "raid1x3", gold).expect("made");
    assert_eq!(stage.reserved_on(gold), ReservedOn { bricks: 3, measured: 0 });
    stage.measure(&[0, 1000]);
    let capacities = stage.status().capacities;
    let of_second = BrickCapacity { brick: BrickId(2), capacity: 1000 * IO, reserved: 1_000_000 * IO };
    assert_eq!(capacities[1], of_second);
    assert_eq!(stage.reserved_on(gold), ReservedOn { bricks: 3, measured: 1 });
    assert!(stage.refused(reserve("gold", 2_000_000)).contains("brick-2"));
    // What was promised before stays, and may become less without being little enough; the weight has nothing to do with it.
    stage.ask(reserve("gold", 500_000)).expect("less");
    stage.ask(weigh("gold", 300)).expect("a weight is no reservation");
    stage.bricks.remove(&BrickId(2));
    stage.run(6000);
    stage.ask(reserve("gold", 2_000_000)).expect("it is away");
    assert_eq!(stage.reserved_on(gold), ReservedOn { bricks: 3, measured: 0 });
}

#[test]
fn what_moves_data_of_a_reserved_stream_onto_bricks_is_refused_too() {
    let mut stage = Stage::new(4);
    stage.measure(&[1000; 4]);
    let gold = stage.made(create("gold", 800, 70));
    stage.volume_of("v", "raid0x4", gold).expect("made");
    assert_eq!(stage.reserved(), [200; 4], "each holds a quarter of the data");
    let silver = stage.made(create("silver", 700, 71));
    let why = stage.volume_of("w", "raid1x4", silver).expect_err("refused").to_string();
    assert!(why.contains("200iops are reserved there and this would add 700iops"), "{why}");
    stage.volume_of("w", "raid1x4", StreamId(0)).expect("made");
    assert!(stage.refused(move_to("w", "silver")).contains("would add 700iops"));
    stage.ask(reserve("silver", 600)).expect("set");
    stage.ask(move_to("w", "silver")).expect("moved");
    assert_eq!(stage.reserved(), [800; 4]);
    let resized = AdminRequest::ResizeVolume { name: "w".to_owned(), size_bytes: 1 << 31 };
    stage.ask(resized).expect("the only volume of its stream has all of the reservation, whatever its size");
    // A second volume of the stream takes its part, by size.
    stage.volume_of("x", "raid0x1", silver).expect("made");
    let reserved = stage.reserved();
    assert_eq!(reserved.iter().sum::<u64>(), 4 * 600 + 200, "{reserved:?}");
}

#[test]
fn a_brick_that_is_to_take_the_place_of_another_one_gets_what_falls_there() {
    let mut stage = Stage::new(3);
    let gold = stage.made(create("gold", 500, 70));
    stage.volume_of("v", "raid1x2", gold).expect("made");
    let reserved = stage.reserved();
    let spare = BrickId(reserved.iter().position(|units| *units == 0).expect("two of three") as u32 + 1);
    let other = BrickId(spare.0 % 3 + 1);
    let mut capacities = [1000; 3];
    capacities[spare.0 as usize - 1] = 400;
    stage.measure(&capacities);
    let replace = AdminRequest::ReplaceBrick { brick: other, by: Some(spare) };
    let why = stage.refused(replace.clone());
    assert!(why.contains(&format!("{spare} cannot meet this")) && why.contains("add 500iops"), "{why}");
    stage.ask(reserve("gold", 300)).expect("less");
    stage.ask(replace).expect("it fits");
    // Who says no substitute leaves it to the directory: a rebuild is not refused.
    stage.ask(AdminRequest::ReadmitBrick { brick: other }).expect("readmitted");
    stage.measure(&[1; 3]);
    stage.ask(AdminRequest::EvictBrick { brick: other }).expect("rebuilds are not refused");
}

/// Both hold a copy, and go on holding one each: somebody else gets what the brick held.
#[test]
fn a_brick_that_holds_a_copy_already_gets_no_second_one_of_it() {
    let mut stage = Stage::new(3);
    let gold = stage.made(create("gold", 500, 70));
    stage.volume_of("v", "raid1x2", gold).expect("made");
    let reserved = stage.reserved();
    let members: Vec<u32> = (0..3).filter(|at| reserved[*at as usize] > 0).map(|at| at + 1).collect();
    stage.measure(&[700; 3]);
    let replace = AdminRequest::ReplaceBrick { brick: BrickId(members[0]), by: Some(BrickId(members[1])) };
    stage.ask(replace).expect("nothing is added to either");
}

#[test]
fn a_reservation_beyond_all_bricks_is_refused_before_it_has_volumes() {
    let mut stage = Stage::new(2);
    stage.measure(&[1000, 600]);
    let why = stage.refused(create("gold", 1401, 70));
    assert!(why.contains("1401iops for 'gold'") && why.contains("1600iops as measured"), "{why}");
    let gold = stage.made(create("gold", 1400, 70));
    assert_eq!(stage.reserved_on(gold), ReservedOn::default(), "nothing of it lies anywhere");
    stage.measure(&[1000, 0]);
    stage.ask(reserve("gold", 5000)).expect("one of them may serve that much");
}
