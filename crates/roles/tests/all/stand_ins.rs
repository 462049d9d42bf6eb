//! Stand-ins, on a perfect network: a brick to spare takes what is written while a member is away, and that alone.

use crate::common::{Bench, pattern};
use base::{BLOCK, BrickId, NodeId};
use core::time::Duration;
use wire::{AdminRequest, GroupView, IoReply};

const LAYOUTS: [(&str, u32, u32); 3] = [("raid1x3", 3, 2), ("raid5-4+1", 5, 1), ("rs-4+2", 6, 2)];

/// A volume of which all is written, with one brick to spare, and who that is.
fn filled(layout: &str, bricks: u32) -> (Bench, BrickId) {
    let mut bench = Bench::new(layout, bricks + 1, 3);
    for offset in (0..bench.copy.len()).step_by(1 << 20) {
        let bytes = pattern(offset as u64, 1 << 20);
        overwrite(&mut bench, offset, bytes);
    }
    let view = view(&bench);
    let spare = (1..=bricks + 1).map(BrickId).find(|brick| !view.has_part(*brick)).expect("one to spare");
    (bench, spare)
}

fn view(bench: &Bench) -> GroupView {
    bench.cluster.directory.views().next().expect("a group").clone()
}

fn overwrite(bench: &mut Bench, offset: usize, bytes: Vec<u8>) {
    bench.copy[offset..][..bytes.len()].copy_from_slice(&bytes);
    assert_eq!(bench.cluster.write(1, bench.volume, offset as u64, bytes), Ok(IoReply::Done));
}

fn blocks(bench: &Bench, brick: BrickId) -> usize {
    bench.cluster.bricks[&brick].1.len()
}

/// A member dies, and what is written then is on whoever stands in for it.
fn lose_one(bench: &mut Bench, spare: BrickId, layout: &str) -> BrickId {
    let lost = view(bench).members[1];
    bench.cluster.kill(NodeId::Brick(lost));
    assert_eq!(blocks(bench, spare), 0);
    bench.cluster.run(Duration::from_secs(6));
    let stood_in = view(bench);
    assert!(stood_in.stands_in(spare) && stood_in.sealed_at(1) == Some(lost), "{layout}: {stood_in:?}");
    // Of each row that is written, whole or in part, it has what is due in the slot; so of copies all.
    for offset in (0..bench.copy.len()).step_by(64 << 10) {
        overwrite(bench, offset, pattern(offset as u64 + 1, BLOCK));
    }
    overwrite(bench, 1 << 20, pattern(9, 1 << 20));
    bench.cluster.run(Duration::from_secs(3));
    let (held, all) = (blocks(bench, spare), bench.copy.len() / BLOCK);
    if layout == "raid1x3" {
        let rewritten = bench.copy.len() / (64 << 10) + (1 << 20) / BLOCK - (1 << 20) / (64 << 10);
        assert_eq!(held, rewritten, "of {all}");
    }
    assert!(held > 0 && held < all, "{layout}: {held} of {all}");
    let status = bench.cluster.bricks[&spare].0.status();
    assert!(status.groups.catching_up.is_empty(), "{layout}: it fetches nothing");
    lost
}

#[test]
fn what_is_written_while_a_member_is_away_is_on_the_stand_in_until_the_member_is_back() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let (mut bench, spare) = filled(layout, bricks);
        let lost = lose_one(&mut bench, spare, layout);
        bench.check();
        bench.cluster.restart(lost);
        bench.cluster.run_until_whole();
        let whole = view(&bench);
        assert!(whole.is_current(lost) && !whole.has_part(spare), "{layout}: {whole:?}");
        bench.cluster.run(Duration::from_secs(3));
        assert_eq!(blocks(&bench, spare), 0, "{layout}: it gave back what it took");
        let others: Vec<BrickId> = whole.members.iter().copied().filter(|brick| *brick != lost).collect();
        others.iter().take(tolerates as usize).for_each(|brick| bench.cluster.kill(NodeId::Brick(*brick)));
        bench.check();
    }
}

#[test]
fn a_stand_in_whose_member_stays_away_fetches_the_rest_and_serves() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let (mut bench, spare) = filled(layout, bricks);
        let lost = lose_one(&mut bench, spare, layout);
        let care = AdminRequest::SetCare {
            rebuild_bytes_per_second: None,
            scrub_bytes_per_second: None,
            scrub_interval_s: None,
            rebuild_after_s: Some(10),
        };
        bench.cluster.admin(care).expect("set");
        bench.cluster.run(Duration::from_secs(10));
        bench.cluster.run_until_whole();
        let whole = view(&bench);
        assert!(whole.is_current(spare) && !whole.has_part(lost), "{layout}: {whole:?}");
        let others: Vec<BrickId> = whole.members.iter().copied().filter(|brick| *brick != spare).collect();
        others.iter().take(tolerates as usize).for_each(|brick| bench.cluster.kill(NodeId::Brick(*brick)));
        bench.check();
    }
}

/// Found by torture seed 2701395: of parity that it had written before a snapshot, a stand-in said that it could not change what it only inherits, and of each
/// repair that it has the block.
#[test]
fn a_small_write_goes_on_beside_a_stand_in_after_a_snapshot() {
    for (layout, bricks, _) in LAYOUTS {
        let (mut bench, spare) = filled(layout, bricks);
        lose_one(&mut bench, spare, layout);
        let (volume, snapshot) = (layout.replace('+', "p"), "s".to_owned());
        bench.cluster.admin(AdminRequest::Snapshot { volume, snapshot, nonce: 1 }).expect("taken");
        for offset in (0..bench.copy.len()).step_by(64 << 10) {
            overwrite(&mut bench, offset, pattern(offset as u64 + 2, BLOCK));
        }
        bench.check();
    }
}

#[test]
fn all_is_served_again_after_all_members_but_the_stand_in_were_killed() {
    for (layout, bricks, _) in LAYOUTS {
        let (mut bench, spare) = filled(layout, bricks);
        let lost = lose_one(&mut bench, spare, layout);
        let members = view(&bench).members.clone();
        for brick in members.iter().filter(|brick| **brick != spare) {
            bench.cluster.kill(NodeId::Brick(*brick));
        }
        bench.cluster.run(Duration::from_secs(5));
        members.iter().filter(|brick| **brick != spare).for_each(|brick| bench.cluster.restart(*brick));
        bench.cluster.run(Duration::from_secs(5));
        bench.check();
        bench.cluster.restart(lost);
        bench.cluster.run_until_whole();
        bench.check();
    }
}
