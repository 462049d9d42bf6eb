//! A disk lied about its syncs: after a power cut its brick is up, and remembers none of what it promised. The other
//! members have all that was acknowledged, and are to be asked.

use crate::common::{Cluster, pattern};
use base::{BLOCK, BrickId, NodeId, StreamId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest, ReadPolicy};

const SIZE: u64 = 32 * BLOCK as u64;

/// What was written is read through each gateway while brick `lost` remembers nothing.
fn is_read(layout: &str, bricks: u32, lost: BrickId, policy: ReadPolicy) {
    let mut cluster = Cluster::new(bricks, 2);
    let volume = cluster.volume_of(layout, SIZE, (policy, StreamId::default()));
    let content = pattern(7, SIZE as usize);
    cluster.write(1, volume, 0, content.clone()).expect("all are there");
    cluster.run(Duration::from_secs(1));
    cluster.forget_all(lost);
    cluster.run(Duration::from_secs(3));
    for at in (0..SIZE).step_by(BLOCK) {
        let gateway = 1 + at / BLOCK as u64 % 2;
        let read = cluster.try_read(gateway, volume, at, BLOCK as u32);
        let is_right = read.as_deref() == Ok(&content[at as usize..][..BLOCK]);
        assert!(is_right, "{layout}, {policy}, without {lost}: {:?} at {at}", read.map(|_| "other bytes"));
    }
}

#[test]
fn copies_are_read_beside_a_brick_that_has_lost_its_memory() {
    for policy in [ReadPolicy::Claim, ReadPolicy::Quickest, ReadPolicy::Hash, ReadPolicy::Tied] {
        for lost in 1..=3 {
            is_read("raid1x3", 3, BrickId(lost), policy);
        }
    }
}

#[test]
fn rows_are_read_beside_a_brick_that_has_lost_its_memory() {
    for (layout, bricks) in [("raid5-2+1", 3), ("rs-2+2", 4)] {
        for lost in 1..=bricks {
            is_read(layout, bricks, BrickId(lost), ReadPolicy::Claim);
        }
    }
}

/// Another member is away for a moment: the view without it needs the word of the one that remembers nothing, which stays silent,
/// while the third one has promised to serve nothing under the view before. Two good copies are there, and no read is served.
#[test]
fn a_group_that_waits_for_a_brick_without_memory_names_it_and_goes_on_when_it_is_evicted() {
    let (lost, other) = (BrickId(1), BrickId(2));
    let mut cluster = Cluster::new(3, 2);
    let volume = cluster.volume_of("raid1x3", SIZE, (ReadPolicy::Claim, StreamId::default()));
    let content = pattern(7, SIZE as usize);
    cluster.write(1, volume, 0, content.clone()).expect("all are there");
    cluster.run(Duration::from_secs(1));
    cluster.forget_all(lost);
    cluster.run(Duration::from_secs(3));
    cluster.kill(NodeId::Brick(other));
    cluster.run(Duration::from_secs(6));
    cluster.revive(NodeId::Brick(other));
    cluster.run(Duration::from_secs(6));
    let Ok(AdminReply::Status(status)) = cluster.admin(AdminRequest::STATUS) else { panic!("no status") };
    assert_eq!((status.volumes[0].unavailable, &status.volumes[0].waits_for[..]), (1, &[lost][..]));
    assert!(status.bricks.iter().all(|brick| brick.alive), "to bring bricks back is no remedy");
    cluster.admin(AdminRequest::EvictBrick { brick: lost }).expect("the others have it all");
    cluster.run(Duration::from_secs(8));
    assert_eq!(cluster.read(1, volume, 0, SIZE as u32), content);
}
