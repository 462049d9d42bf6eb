//! Machines on a perfect network: each layout serves, goes on while a brick is away, and repairs what is rotten.

use crate::common::{Cluster, nonce_of, pattern};
use base::{BLOCK, BrickId, NodeId, Payload, VolumeId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest, Io, IoError, IoReply, IoTimeout, Message};

const LAYOUTS: [(&str, u32); 7] = [
    ("raid0x2", 2),
    ("raid1x1", 1),
    ("raid1x2", 2),
    ("raid1x3", 3),
    ("raid4-2+1", 3),
    ("raid5-4+1", 5),
    ("rs-4+2", 6),
];
const SIZE: u64 = 8 << 20;

/// Random reads and writes of all sizes and alignments, compared with a copy in memory.
fn exercise(cluster: &mut Cluster, volume: VolumeId, gateways: u64, copy: &mut [u8], seed: u64) {
    let mut rng = base::Rng::with_seed(seed);
    for round in 0..60 {
        let offset = rng.u64(0..SIZE - 1) / 512 * 512;
        let longest = (SIZE - offset).min([512, 4096, 70_000, 600_000][rng.usize(0..4)]);
        let length = (rng.u64(0..longest) / 512 * 512 + 512).min(SIZE - offset) as usize;
        let (start, gateway) = (offset as usize, rng.u64(1..=gateways));
        match rng.u8(0..4) {
            0 => {
                assert_eq!(cluster.read(gateway, volume, offset, length as u32), copy[start..start + length])
            }
            1 => {
                let io = Io::Zero { offset, length: length as u64 };
                let of = cluster.begin(gateway, volume, io, Payload::new());
                cluster.run(Duration::from_secs(8));
                assert_eq!(cluster.reply(of).expect("an answer").0, Ok(IoReply::Done));
                copy[start..start + length].fill(0);
            }
            _ => {
                let bytes = pattern(seed ^ round, length);
                assert_eq!(cluster.write(gateway, volume, offset, bytes.clone()), Ok(IoReply::Done));
                copy[start..start + length].copy_from_slice(&bytes);
            }
        }
    }
    let step = 1 << 20;
    for offset in (0..SIZE).step_by(step) {
        let read = cluster.read(1, volume, offset, step as u32);
        assert!(
            read == copy[offset as usize..offset as usize + step],
            "the volume differs from its copy at {offset}"
        );
    }
}

#[test]
fn every_read_policy_serves_and_what_is_bound_late_is_served_once() {
    for policy in wire::ReadPolicy::ALL {
        let mut cluster = Cluster::new(3, 2);
        let volume = cluster.volume("raid1x3", SIZE);
        let set = wire::AdminRequest::SetReadPolicy { name: "raid1x3".to_owned(), read_policy: policy };
        cluster.admin(set).expect("set");
        cluster.run(Duration::from_secs(3));
        let mut copy = vec![0; SIZE as usize];
        exercise(&mut cluster, volume, 2, &mut copy, 7);
        let left: u64 = cluster.bricks.values().map(|(brick, _)| brick.contested_reads().1).sum();
        assert_eq!(
            left > 0,
            policy == wire::ReadPolicy::Claim,
            "{policy}: {left} reads left to another brick"
        );
        for gateway in cluster.gateways.values() {
            let traffic = gateway.traffic();
            assert!(traffic.reads > 0 && traffic.rescues == 0, "{policy}: {traffic:?}");
            assert!(traffic.duplicate_answers * 20 <= traffic.reads, "{policy}: {traffic:?}");
        }
    }
}

#[test]
fn every_layout_serves_what_was_written() {
    for (layout, bricks) in LAYOUTS {
        let mut cluster = Cluster::new(bricks, 2);
        let volume = cluster.volume(layout, SIZE);
        exercise(&mut cluster, volume, 2, &mut vec![0; SIZE as usize], 1);
    }
}

#[test]
fn redundant_layouts_go_on_without_a_brick() {
    for (layout, bricks) in LAYOUTS.into_iter().filter(|(layout, _)| !["raid0x2", "raid1x1"].contains(layout))
    {
        for dead in [1, bricks] {
            let mut cluster = Cluster::new(bricks, 2);
            let volume = cluster.volume(layout, SIZE);
            let mut copy = vec![0; SIZE as usize];
            exercise(&mut cluster, volume, 2, &mut copy, 2);
            cluster.kill(NodeId::Brick(BrickId(dead)));
            exercise(&mut cluster, volume, 2, &mut copy, 3);
            let view = cluster.directory.views().next().expect("one group").clone();
            assert!(!view.is_current(BrickId(dead)), "{layout}: a dead brick is left out");
        }
    }
}

#[test]
fn a_write_waits_for_all_current_members_and_a_read_does_not() {
    let mut cluster = Cluster::new(3, 1);
    let volume = cluster.volume("raid1x3", SIZE);
    cluster.write(1, volume, 0, pattern(1, BLOCK)).expect("written");
    cluster.kill(NodeId::Brick(BrickId(2)));
    let write = cluster.begin(1, volume, Io::Write { offset: 8192 }, Payload::from(pattern(2, BLOCK)));
    cluster.run(Duration::from_millis(150));
    assert_eq!(cluster.reply(write), None, "acknowledged before the dead brick's lease had ended");
    assert_eq!(cluster.read(1, volume, 0, 4096), pattern(1, BLOCK));
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.reply(write).expect("an answer under the new view").0, Ok(IoReply::Done));
}

fn set_timeout(cluster: &mut Cluster, name: &str, io_timeout: IoTimeout) {
    cluster.admin(AdminRequest::SetIoTimeout { name: name.to_owned(), io_timeout }).expect("set");
    cluster.run(Duration::from_secs(3));
}

/// Found from outside: clients of a group below its quorum waited without end.
#[test]
fn what_cannot_be_served_ends_with_an_error_after_the_volume_s_time() {
    for (layout, bricks) in [("raid1x1", 1), ("raid1x2", 2), ("raid5-4+1", 5)] {
        let mut cluster = Cluster::new(bricks, 2);
        let volume = cluster.volume(layout, SIZE);
        let name = layout.replace('+', "p");
        set_timeout(&mut cluster, &name, IoTimeout::After(Duration::from_secs(20)));
        cluster.write(1, volume, 0, pattern(1, 2 * BLOCK)).expect("written");
        (1..=bricks).for_each(|brick| cluster.kill(NodeId::Brick(BrickId(brick))));
        let mut asked: Vec<_> = (0..3)
            .map(|_| cluster.begin(1, volume, Io::Write { offset: 512 }, Payload::from(pattern(2, 512))))
            .collect();
        asked.push(cluster.begin(1, volume, Io::Write { offset: 0 }, Payload::from(pattern(3, BLOCK))));
        asked.push(cluster.begin(2, volume, Io::Read { offset: 0, length: 4096 }, Payload::new()));
        cluster.run(Duration::from_secs(19));
        assert!(asked.iter().all(|of| cluster.reply(*of).is_none()), "{layout}: too early");
        cluster.run(Duration::from_secs(2));
        for of in asked {
            let (result, _) = cluster.reply(of).expect("an answer in time");
            assert_eq!(result, Err(IoError::TimedOut), "{layout}");
        }
        assert!(cluster.gateways.values().all(|gateway| gateway.requests_under_way() == 0));
        (1..=bricks).for_each(|brick| cluster.revive(NodeId::Brick(BrickId(brick))));
        cluster.run(Duration::from_secs(20));
        // In doubt: each is there or not, and stays as it was read first.
        let found = cluster.read(1, volume, 0, 2 * BLOCK as u32);
        assert_eq!(found[BLOCK..], pattern(1, 2 * BLOCK)[BLOCK..]);
        cluster.run(Duration::from_secs(90));
        assert_eq!(cluster.read(2, volume, 0, 2 * BLOCK as u32), found, "{layout}");
        cluster.write(2, volume, 0, pattern(4, BLOCK)).expect("written");
        cluster.run(Duration::from_secs(90));
        assert_eq!(
            cluster.read(1, volume, 0, BLOCK as u32),
            pattern(4, BLOCK),
            "{layout}: nothing of before comes back"
        );
    }
}

#[test]
fn a_volume_that_waits_without_end_does() {
    let mut cluster = Cluster::new(2, 1);
    let volume = cluster.volume("raid1x2", SIZE);
    set_timeout(&mut cluster, "raid1x2", IoTimeout::Never);
    (1..=2).for_each(|brick| cluster.kill(NodeId::Brick(BrickId(brick))));
    let of = cluster.begin(1, volume, Io::Write { offset: 0 }, Payload::from(pattern(1, BLOCK)));
    cluster.run(Duration::from_secs(900));
    assert_eq!(cluster.reply(of), None);
    (1..=2).for_each(|brick| cluster.revive(NodeId::Brick(BrickId(brick))));
    cluster.run(Duration::from_secs(20));
    assert_eq!(cluster.reply(of).expect("served").0, Ok(IoReply::Done));
}

#[test]
fn a_read_goes_around_a_dead_brick_before_any_view_changes() {
    for (layout, bricks) in [("raid5-4+1", 5), ("rs-4+2", 6)] {
        let mut cluster = Cluster::new(bricks, 1);
        let volume = cluster.volume(layout, SIZE);
        let bytes = pattern(4, 1 << 20);
        cluster.write(1, volume, 0, bytes.clone()).expect("written");
        cluster.run(Duration::from_millis(100));
        for dead in 1..=bricks - 4 {
            cluster.kill(NodeId::Brick(BrickId(dead)));
        }
        let read = cluster.begin(1, volume, Io::Read { offset: 0, length: 1 << 20 }, Payload::new());
        cluster.run(Duration::from_millis(700));
        let (result, content) = cluster.reply(read).expect("an answer while the dead brick's lease lasts");
        assert!(result == Ok(IoReply::Done) && content.to_vec() == bytes, "{layout}: wrong bytes");
    }
}

/// No view can be made of a group that lost too many bricks at once, so it is not changing, and status called it served.
#[test]
fn status_counts_groups_that_lost_too_many_bricks_at_once_as_unavailable() {
    for (layout, bricks, tolerated) in
        [("raid0x3", 3, 0), ("raid1x2", 2, 1), ("raid5-4+1", 5, 1), ("rs-4+2", 6, 2)]
    {
        let unavailable = |dead: u32| {
            let mut cluster = Cluster::new(bricks, 1);
            cluster.volume(layout, SIZE);
            cluster.run(Duration::from_secs(1));
            (1..=dead).for_each(|brick| cluster.kill(NodeId::Brick(BrickId(brick))));
            cluster.run(Duration::from_secs(20));
            let Ok(AdminReply::Status(status)) = cluster.admin(AdminRequest::STATUS) else {
                panic!("no status")
            };
            assert!(status.volumes[0].groups > 0);
            (status.volumes[0].unavailable, status.volumes[0].groups)
        };
        assert_eq!(unavailable(tolerated).0, 0, "{layout}");
        let (count, groups) = unavailable(tolerated + 1);
        assert_eq!(count, groups, "{layout}");
    }
}

#[test]
fn concurrent_small_writes_in_one_block_lose_nothing() {
    let mut cluster = Cluster::new(5, 2);
    for layout in ["raid1x3", "raid5-4+1"] {
        let volume = cluster.volume(layout, SIZE);
        let writes: Vec<_> = (0..8u64)
            .map(|sector| {
                let payload = Payload::from(vec![sector as u8 + 1; 512]);
                cluster.begin(1 + sector % 2, volume, Io::Write { offset: sector * 512 }, payload)
            })
            .collect();
        cluster.run(Duration::from_secs(5));
        for of in writes {
            assert_eq!(cluster.reply(of).expect("an answer").0, Ok(IoReply::Done));
        }
        let expected: Vec<u8> = (1..=8u8).flat_map(|sector| vec![sector; 512]).collect();
        assert_eq!(cluster.read(1, volume, 0, 4096), expected);
        let name = layout.replace('+', "p");
        cluster.admin(AdminRequest::DeleteVolume { nonce: nonce_of(&name) ^ 1, name }).expect("deleted");
    }
}

#[test]
fn rotten_blocks_are_served_from_elsewhere_and_repaired() {
    for (layout, bricks) in [("raid1x3", 3), ("raid5-4+1", 5), ("rs-4+2", 6)] {
        let mut cluster = Cluster::new(bricks, 1);
        let volume = cluster.volume(layout, SIZE);
        let bytes = pattern(7, 1 << 20);
        cluster.write(1, volume, 0, bytes.clone()).expect("written");
        cluster.run(Duration::from_secs(1));
        let head = cluster.directory.views().next().expect("a group").lineage.branch_of(volume);
        for lba in [0, 3, 17] {
            cluster.bricks.get_mut(&BrickId(1)).expect("there").1.rotten.push((head, lba));
        }
        for _ in 0..3 {
            assert!(cluster.read(1, volume, 0, 1 << 20) == bytes, "{layout}: wrong bytes");
        }
        // A small write over the rotten parity or data needs the old content: it is repaired first.
        cluster.write(1, volume, 0, vec![9; 300 * 512]).expect("written over rot");
        cluster.run(Duration::from_secs(5));
        assert_eq!(cluster.read(1, volume, 0, 512), vec![9; 512]);
    }
}

#[test]
fn a_reader_settles_what_a_dead_gateway_left_in_doubt() {
    let mut cluster = Cluster::new(3, 2);
    let volume = cluster.volume("raid1x3", SIZE);
    let old = pattern(1, BLOCK);
    cluster.write(1, volume, 0, old.clone()).expect("written");
    cluster.run(Duration::from_millis(100));
    // The prepare reaches two of three; then the gateway dies.
    cluster.passes =
        |_, to, message| !(matches!(message, Message::Prepare { .. }) && to == NodeId::Brick(BrickId(3)));
    cluster.begin(1, volume, Io::Write { offset: 0 }, Payload::from(pattern(2, BLOCK)));
    cluster.run(Duration::from_millis(5));
    cluster.kill(NodeId::Gateway(base::GatewayId(1)));
    cluster.passes = |_, _, _| true;
    assert_eq!(cluster.read(2, volume, 0, 4096), old, "not everywhere: it never took effect");

    // The prepare reaches all; no answer comes back.
    let mut cluster = Cluster::new(3, 2);
    let volume = cluster.volume("raid1x3", SIZE);
    cluster.passes = |_, to, message| {
        !(matches!(message, Message::Prepared { .. }) && to == NodeId::Gateway(base::GatewayId(1)))
    };
    cluster.begin(1, volume, Io::Write { offset: 0 }, Payload::from(old.clone()));
    cluster.run(Duration::from_millis(5));
    cluster.kill(NodeId::Gateway(base::GatewayId(1)));
    assert_eq!(cluster.read(2, volume, 0, 4096), old, "everywhere: it may have been acknowledged");
}

#[test]
fn requests_outside_the_volume_are_refused() {
    let mut cluster = Cluster::new(1, 1);
    let volume = cluster.volume("raid1x1", SIZE);
    for (offset, length) in [(SIZE, 512), (SIZE - 512, 1024), (u64::MAX - 100, 512), (0, 0)] {
        let of = cluster.begin(1, volume, Io::Read { offset, length }, Payload::new());
        assert_eq!(cluster.reply(of).expect("at once").0, Err(IoError::OutOfRange));
    }
    let of = cluster.begin(1, VolumeId(99), Io::Read { offset: 0, length: 512 }, Payload::new());
    assert_eq!(cluster.reply(of).expect("at once").0, Err(IoError::NoVolume));
}
