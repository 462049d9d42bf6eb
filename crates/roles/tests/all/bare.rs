//! A disk is gone that no other brick can stand in for: what was on it is known as lost.

use crate::common::{Cluster, MemoryDisk};
use base::{BLOCK, BrickId, NodeId, VolumeId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest};

const UNIT: u64 = 64 << 10;
/// The identity of the disk that comes in place of one that is lost.
const NEW: u64 = 1000;

/// A striped volume of two bricks with something in its first two stripe units, of which one lost its disk: the cluster, the
/// volume, the brick, and its disk of before.
fn cluster() -> (Cluster, VolumeId, BrickId, MemoryDisk) {
    let mut cluster = Cluster::new(2, 1);
    cluster.identify_disks();
    let volume = cluster.volume("raid0x2", 1 << 20);
    for unit in 0..2 {
        cluster.write(1, volume, unit * UNIT, vec![unit as u8 + 1; UNIT as usize]).expect("written");
    }
    let lost = cluster.directory.views().next().expect("a group").members[0];
    cluster.kill(NodeId::Brick(lost));
    let before = cluster.exchange_disk(lost, NEW, MemoryDisk::default());
    cluster.run(Duration::from_secs(12));
    (cluster, volume, lost, before)
}

fn status(cluster: &mut Cluster) -> wire::ClusterStatus {
    match cluster.admin(AdminRequest::STATUS) {
        Ok(AdminReply::Status(status)) => *status,
        other => panic!("{other:?}"),
    }
}

/// Which of the first two stripe units cannot be read.
fn lost_units(cluster: &mut Cluster, volume: VolumeId) -> Vec<u64> {
    (0..2).filter(|unit| cluster.try_read(1, volume, unit * UNIT, UNIT as u32).is_err()).collect()
}

#[test]
fn what_a_lost_disk_had_is_an_error_at_once_and_is_written_again() {
    let (mut cluster, volume, lost, _) = cluster();
    let before = cluster.now;
    let units = lost_units(&mut cluster, volume);
    assert_eq!(units.len(), 1, "one of the two is on the other brick");
    assert!(cluster.now.since(before) < Duration::from_secs(1), "nobody waits for what will not come");
    let told = status(&mut cluster);
    assert_eq!(told.volumes[0].lost, 1);
    let entry = told.bricks.iter().find(|entry| entry.id == lost).expect("the brick");
    assert_eq!(entry.status.groups.bare.len(), 1);
    // A block that is written is good, and those beside it stay lost.
    let at = units[0] * UNIT;
    cluster.write(1, volume, at, vec![7; BLOCK]).expect("written again");
    assert_eq!(cluster.read(1, volume, at, BLOCK as u32), vec![7; BLOCK]);
    assert!(cluster.try_read(1, volume, at + BLOCK as u64, BLOCK as u32).is_err());
    // Nor does a restart of the brick bring zeros in their place.
    let disk = cluster.bricks[&lost].1.clone();
    cluster.exchange_disk(lost, NEW, disk);
    cluster.run(Duration::from_secs(5));
    assert!(cluster.try_read(1, volume, at + BLOCK as u64, BLOCK as u32).is_err());
    cluster.write(1, volume, at, vec![8; UNIT as usize]).expect("written again");
    assert!(lost_units(&mut cluster, volume).is_empty());
}

#[test]
fn what_is_forgotten_as_lost_is_zeros() {
    let (mut cluster, volume, ..) = cluster();
    let at = lost_units(&mut cluster, volume)[0] * UNIT;
    let name = status(&mut cluster).volumes[0].volume.name.clone();
    assert_eq!(cluster.admin(AdminRequest::ForgetLost { name }), Ok(AdminReply::Done));
    cluster.run(Duration::from_secs(3));
    assert_eq!(cluster.read(1, volume, at, UNIT as u32), vec![0; UNIT as usize]);
    assert_eq!(status(&mut cluster).volumes[0].lost, 0);
}

#[test]
fn the_volume_that_needs_a_brick_is_named() {
    let mut cluster = Cluster::new(3, 1);
    cluster.volume("raid0x2", 1 << 20);
    let brick = cluster.directory.views().next().expect("a group").members[0];
    let Err(wire::AdminError::NotNow(why)) = cluster.admin(AdminRequest::ReplaceBrick { brick, by: None })
    else {
        panic!("it cannot go")
    };
    assert!(why.contains("of volume 'raid0x2' (raid0x2)") && why.contains("copy the volume"), "{why}");
}

#[test]
fn a_disk_that_was_given_up_and_comes_back_does_not_pass_for_what_was_written_since() {
    let (mut cluster, volume, lost, before) = cluster();
    let at = lost_units(&mut cluster, volume)[0] * UNIT;
    cluster.write(1, volume, at, vec![7; UNIT as usize]).expect("written again");
    cluster.kill(NodeId::Brick(lost));
    cluster.exchange_disk(lost, u64::from(lost.0), before);
    cluster.run(Duration::from_secs(12));
    let read =
        cluster.begin(1, volume, wire::Io::Read { offset: at, length: UNIT as u32 }, base::Payload::new());
    cluster.run(Duration::from_secs(5));
    let read = cluster.reply(read).map(|(result, payload)| result.map(|_| payload.to_vec()));
    assert!(!matches!(read, Some(Ok(_))), "what was written since is not there");
    let told = status(&mut cluster);
    assert!(told.volumes[0].unavailable > 0, "{told:?}");
    let warns = |text: &str| told.warnings.iter().any(|warning| warning.contains(text));
    assert!(
        warns("came back older than it was") && warns("brick format --disk PATH --force"),
        "{:?}",
        told.warnings
    );
}

/// What the first two stripe units begin with, where they can be read.
fn reads(cluster: &mut Cluster, volume: VolumeId) -> Vec<Option<u8>> {
    let read = |unit| cluster.try_read(1, volume, unit * UNIT, BLOCK as u32).ok().map(|bytes| bytes[0]);
    (0..2).map(read).collect()
}

#[test]
fn copies_and_parity_wait_where_too_many_disks_are_gone() {
    for (layout, bricks) in [("raid1x2", 2), ("raid5-2+1", 3)] {
        let mut cluster = Cluster::new(bricks, 1);
        cluster.identify_disks();
        let volume = cluster.volume(layout, 1 << 20);
        cluster.write(1, volume, 0, vec![1; UNIT as usize]).expect("written");
        let members = cluster.directory.views().next().expect("a group").members.clone();
        members[..2].iter().for_each(|brick| cluster.kill(NodeId::Brick(*brick)));
        for (brick, identity) in members[..2].iter().zip(NEW..) {
            cluster.exchange_disk(*brick, identity, MemoryDisk::default());
        }
        cluster.run(Duration::from_secs(20));
        let told = status(&mut cluster);
        assert!(told.volumes[0].unavailable > 0 && told.volumes[0].lost == 0, "{layout}: {told:?}");
        let warns = told.warnings.iter().any(|warning| warning.contains("cannot do without it now"));
        assert!(warns, "{layout}: {:?}", told.warnings);
    }
}

/// Whoever copies a volume by what it says of holes must come by the error.
#[test]
fn a_lost_block_is_no_hole() {
    let (mut cluster, volume, ..) = cluster();
    let at = lost_units(&mut cluster, volume)[0] * UNIT;
    let asked = wire::Io::Allocation { offset: at, length: UNIT as u32 };
    let asked = cluster.begin(1, volume, asked, base::Payload::new());
    cluster.run(Duration::from_secs(2));
    let Some((Ok(wire::IoReply::Allocation { runs }), _)) = cluster.reply(asked) else { panic!("an answer") };
    assert!(runs.iter().all(|(_, holds)| *holds), "{runs:?}");
}

#[test]
fn a_rebuilt_directory_knows_all_that_is_lost() {
    let mut cluster = Cluster::new(2, 1);
    cluster.identify_disks();
    let volume = cluster.volume("raid0x2", 1 << 20);
    cluster.write(1, volume, 0, vec![1; 2 * UNIT as usize]).expect("written");
    let members = cluster.directory.views().next().expect("a group").members.clone();
    members.iter().for_each(|brick| cluster.kill(NodeId::Brick(*brick)));
    for (brick, identity) in members.iter().zip(NEW..) {
        cluster.exchange_disk(*brick, identity, MemoryDisk::default());
    }
    cluster.run(Duration::from_secs(12));
    assert_eq!(reads(&mut cluster, volume), [None, None]);
    cluster.rebuild_directory();
    cluster.run(Duration::from_secs(12));
    let volume_name = status(&mut cluster).volumes[0].volume.name.clone();
    let cut = AdminRequest::Snapshot { volume: volume_name, snapshot: "s".to_owned(), nonce: 77 };
    cluster.admin(cut).expect("a view more");
    cluster.run(Duration::from_secs(3));
    assert_eq!(reads(&mut cluster, volume), [None, None]);
    assert_eq!(status(&mut cluster).volumes[0].lost, 1);
}

/// A directory that was rebuilt does not know of former disks: the brick itself refuses to call what it has nothing.
#[test]
fn an_old_disk_does_not_pass_for_an_empty_one_after_a_rebuild() {
    let (mut cluster, volume, lost, before) = cluster();
    let at = lost_units(&mut cluster, volume)[0] * UNIT;
    cluster.write(1, volume, at, vec![7; UNIT as usize]).expect("written again");
    cluster.rebuild_directory();
    cluster.run(Duration::from_secs(12));
    assert_eq!(cluster.read(1, volume, at, BLOCK as u32), vec![7; BLOCK]);
    let mut disk = before;
    for _ in 0..2 {
        cluster.kill(NodeId::Brick(lost));
        disk = {
            cluster.exchange_disk(lost, u64::from(lost.0), disk);
            cluster.run(Duration::from_secs(20));
            cluster.bricks[&lost].1.clone()
        };
        let read = wire::Io::Read { offset: at, length: BLOCK as u32 };
        let read = cluster.begin(1, volume, read, base::Payload::new());
        cluster.run(Duration::from_secs(5));
        let read = cluster.reply(read).map(|(result, payload)| result.map(|_| payload.to_vec()[0]));
        assert!(!matches!(read, Some(Ok(_))), "{read:?}, and 7 was acknowledged");
    }
}

#[test]
fn nothing_is_forgotten_while_a_brick_is_away() {
    let (mut cluster, volume, lost, _) = cluster();
    let other = 1 - lost_units(&mut cluster, volume)[0];
    let name = status(&mut cluster).volumes[0].volume.name.clone();
    cluster.kill(NodeId::Brick(lost));
    cluster.run(Duration::from_secs(12));
    let refused = cluster.admin(AdminRequest::ForgetLost { name });
    assert!(matches!(&refused, Err(wire::AdminError::NotNow(why)) if why.contains("is away")), "{refused:?}");
    assert_eq!(cluster.read(1, volume, other * UNIT, BLOCK as u32), vec![other as u8 + 1; BLOCK]);
}
