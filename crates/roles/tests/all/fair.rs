//! Writers that are in each other's way: each one's write ends within a bound, however many others there are.
//!
//! Found by torture seed 1621: a write of 64 KiB to RAID-5 needs room at five bricks at once. Each that was told by one
//! of them to come again held what the others had taken, let go of all after a while, and began anew: at bricks with room
//! for one write nearly none ever had all five.
//!
//! Then those that went from brick to brick held room at some, and waited at another, where writers of single blocks came
//! and went: these let go of their room, and had it again before whoever waited for it had asked again.
//!
//! Found by torture seed 31152: a disk that lacked room for a moment went on turning writes away for seconds, as each that
//! had to make way for an earlier one was made way for in its turn.

use crate::common::Cluster;
use base::{Payload, VolumeId};
use core::time::Duration;
use wire::{Io, IoReply, Message};

const SIZE: u64 = 8 << 20;
const STEP: Duration = Duration::from_millis(5);
/// The directory looks for trouble, and clients go elsewhere, after some seconds.
const BOUND: Duration = Duration::from_secs(4);

/// A writer's outstanding write, and for how long it has been.
struct Writer {
    gateway: u64,
    outstanding: Option<(u64, u64)>,
    since: Duration,
    /// When its writes ended.
    ends: Vec<Duration>,
    longest: Duration,
}

/// For how many writes each disk has room, at a time.
type Room = fn(Duration) -> Option<usize>;

fn for_one_write(_: Duration) -> Option<usize> {
    Some(1)
}

/// So many writers, one a gateway, each of which writes one span after the other; `place` says where its next one goes
/// and how long that is.
fn contend(
    layout: &str,
    bricks: u32,
    writers: u64,
    room: Room,
    place: impl Fn(&mut base::Rng, u64) -> (u64, usize),
) -> Vec<Writer> {
    let mut cluster = Cluster::new(bricks, writers);
    let volume: VolumeId = cluster.volume(layout, SIZE);
    // A brick takes a while to put a write on stable storage.
    cluster.late_messages =
        Some((|_, _, message| matches!(message, Message::Prepared { .. }), Duration::from_millis(2)));
    let mut rng = base::Rng::with_seed(1621);
    let new = |gateway| Writer {
        gateway,
        outstanding: None,
        since: Duration::ZERO,
        ends: Vec::new(),
        longest: Duration::ZERO,
    };
    let mut all: Vec<Writer> = (1..=writers).map(new).collect();
    let mut now = Duration::ZERO;
    while now < Duration::from_secs(10) {
        for (_, disk) in cluster.bricks.values_mut() {
            disk.staged_max = room(now);
        }
        for writer in &mut all {
            if let Some((result, _)) = writer.outstanding.and_then(|of| cluster.reply(of)) {
                assert_eq!(result, Ok(IoReply::Done));
                writer.outstanding = None;
                writer.ends.push(now);
            }
            writer.longest = writer.longest.max(now - writer.since);
            if writer.outstanding.is_none() {
                let (offset, length) = place(&mut rng, writer.gateway);
                let payload = Payload::from(vec![writer.gateway as u8; length]);
                writer.since = now;
                writer.outstanding =
                    Some(cluster.begin(writer.gateway, volume, Io::Write { offset }, payload));
            }
        }
        cluster.run(STEP);
        now += STEP;
    }
    all
}

fn assert_fair(name: &str, writers: &[Writer]) {
    let told: Vec<(usize, Duration)> =
        writers.iter().map(|writer| (writer.ends.len(), writer.longest)).collect();
    assert!(told.iter().all(|(done, longest)| *done > 0 && *longest < BOUND), "{name}: {told:?}");
}

const ROW: usize = 64 << 10;

#[test]
fn whole_rows_at_bricks_with_room_for_one_write_end_within_a_bound() {
    let anywhere = |rng: &mut base::Rng, _| (rng.u64(0..16) * ROW as u64, ROW);
    assert_fair("raid5-4+1", &contend("raid5-4+1", 5, 6, for_one_write, anywhere));
}

#[test]
fn writers_of_the_same_row_have_each_their_turn() {
    assert_fair("one row", &contend("raid5-4+1", 5, 4, for_one_write, |_, _| (0, ROW)));
    assert_fair("one mirror", &contend("raid1x3", 3, 4, for_one_write, |_, _| (0, ROW)));
}

const BLOCK: usize = 4 << 10;

#[test]
fn a_writer_of_rows_has_its_turn_among_writers_of_single_blocks() {
    let rows_by_the_first = |rng: &mut base::Rng, gateway| match gateway {
        1 => (rng.u64(0..16) * ROW as u64, ROW),
        _ => (rng.u64(0..256) * BLOCK as u64, BLOCK),
    };
    for layout in ["raid5-4+1", "raid4-4+1"] {
        assert_fair(layout, &contend(layout, 5, 8, for_one_write, rows_by_the_first));
    }
}

#[test]
fn disks_that_lack_room_now_and_then_serve_nearly_as_many_writes() {
    let anywhere = |rng: &mut base::Rng, _| (rng.u64(0..256) * BLOCK as u64, BLOCK);
    let none_for_10_ms_of_200: Room = |now| (now.as_millis() % 200 < 10).then_some(0);
    let [always, mostly] = [(|_| None) as Room, none_for_10_ms_of_200].map(|room| {
        let writers = contend("raid5-4+1", 5, 8, room, anywhere);
        writers.iter().map(|writer| writer.ends.len()).sum::<usize>()
    });
    assert!(4 * mostly >= 3 * always, "{mostly} writes, and {always} where there is always room");
}

/// The disk gives back the blocks of one write, which so comes again for a while: others have no part in that.
#[test]
fn a_write_whose_blocks_are_given_back_holds_up_no_other() {
    let mut cluster = Cluster::new(3, 2);
    let volume = cluster.volume("raid1x3", SIZE);
    for (_, disk) in cluster.bricks.values_mut() {
        disk.given_back = Some(0);
    }
    let held_up = cluster.begin(1, volume, Io::Write { offset: 0 }, Payload::from(vec![1; BLOCK]));
    cluster.run(STEP);
    for n in 1..20 {
        let write = Io::Write { offset: n * BLOCK as u64 };
        let other = cluster.begin(2, volume, write, Payload::from(vec![2; BLOCK]));
        cluster.run(STEP);
        assert!(matches!(cluster.reply(other), Some((Ok(IoReply::Done), _))), "write {n}");
    }
    assert!(cluster.reply(held_up).is_none());
    for (_, disk) in cluster.bricks.values_mut() {
        disk.given_back = None;
    }
    cluster.run(Duration::from_secs(1));
    assert!(matches!(cluster.reply(held_up), Some((Ok(IoReply::Done), _))));
}
