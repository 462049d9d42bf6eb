//! Reads without a lease while a member joins: they go on, and never show what is of long ago.

use crate::common::Cluster;
use base::{BLOCK, BrickId, GatewayId, NodeId, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use wire::{IoReply, Message};

const BACK: BrickId = BrickId(2);

/// Two copies, of which the one at brick 2 was away for a write and now joins.
fn while_it_joins(layout: &str, bricks: u32) -> (Cluster, VolumeId) {
    let mut cluster = Cluster::new(bricks, 2);
    let volume = cluster.volume(layout, 1 << 20);
    assert_eq!(cluster.write(1, volume, 0, vec![1; BLOCK]), Ok(IoReply::Done));
    cluster.kill(NodeId::Brick(BACK));
    assert_eq!(cluster.write(1, volume, 0, vec![2; BLOCK]), Ok(IoReply::Done));
    // It does not learn what took effect, and so does not get through.
    cluster.passes =
        |_, to, message| !(to == NodeId::Brick(BACK) && matches!(message, Message::CompletionsDone { .. }));
    cluster.restart(BACK);
    for _ in 0..200 {
        let view = cluster.directory.views().next().expect("one group");
        if view.is_joining(BACK) {
            cluster.run(Duration::from_millis(100));
            return (cluster, volume);
        }
        cluster.run(Duration::from_millis(50));
    }
    panic!("it does not join");
}

#[test]
fn reads_go_on_while_a_member_joins_and_the_directory_is_away() {
    for (layout, bricks) in [("raid1x2", 2), ("raid1x3", 3), ("raid5-2+1", 3), ("rs-2+2", 4)] {
        let (mut cluster, volume) = while_it_joins(layout, bricks);
        cluster.kill(NodeId::Directory);
        cluster.run(Duration::from_secs(6));
        assert_eq!(cluster.read(2, volume, 0, BLOCK as u32), vec![2; BLOCK], "{layout}");
        assert_eq!(cluster.write(1, volume, 0, vec![3; BLOCK]), Ok(IoReply::Done));
        assert_eq!(cluster.read(2, volume, 0, BLOCK as u32), vec![3; BLOCK], "{layout}");
        let counts = |id| cluster.bricks[&BrickId(id)].0.counters().get(Counter::ReadAnsweredWithoutALease);
        assert!((1..=bricks).map(counts).sum::<u64>() > 0, "{layout}");
    }
}

/// View 8 = {A}, B joins; view 9 = {A, B} is to come, of which A hears nothing; A is silent and left out: view 10 = {B}.
/// A gateway that hears no more of the directory than A still reaches both.
#[test]
fn a_member_that_was_left_out_unheard_is_not_believed() {
    let (mut cluster, volume) = while_it_joins("raid1x2", 2);
    cluster.passes = |from, to, _| {
        let apart = |node| node == NodeId::Brick(BrickId(1)) || node == NodeId::Gateway(GatewayId(1));
        !(from == NodeId::Directory && apart(to) || to == NodeId::Directory && apart(from))
    };
    let is_alone = |cluster: &Cluster| {
        let view = cluster.directory.views().next().expect("one group");
        view.is_current(BACK) && !view.is_writer(BrickId(1))
    };
    for _ in 0..400 {
        if is_alone(&cluster) {
            break;
        }
        cluster.run(Duration::from_millis(50));
    }
    assert!(is_alone(&cluster), "{:?}", cluster.directory.views().next());
    assert_eq!(cluster.write(2, volume, 0, vec![9; BLOCK]), Ok(IoReply::Done));
    assert_eq!(cluster.read(1, volume, 0, BLOCK as u32), vec![9; BLOCK]);
}
