//! Bricks that come back, on a perfect network: they catch up, are promoted, and hold what was acknowledged meanwhile.

use crate::common::{Bench, Cluster, SIZE, pattern};
use base::{BLOCK, BrickId, NodeId, Payload, VolumeId};
use core::time::Duration;
use wire::{AdminRequest, Io, IoReply};

const LAYOUTS: [(&str, u32, u32); 3] = [("raid1x3", 3, 2), ("raid5-4+1", 5, 1), ("rs-4+2", 6, 2)];

impl Bench {
    /// Every block is written.
    fn filled(layout: &str, bricks: u32, seed: u64) -> Bench {
        let mut bench = Bench::new(layout, bricks, seed);
        bench.copy = pattern(5, SIZE as usize);
        for offset in (0..SIZE as usize).step_by(1 << 20) {
            let bytes = bench.copy[offset..][..1 << 20].to_vec();
            assert_eq!(bench.cluster.write(1, bench.volume, offset as u64, bytes), Ok(IoReply::Done));
        }
        bench
    }

    /// Writes of all sizes.
    fn write(&mut self, count: u32) {
        for _ in 0..count {
            let offset = self.rng.u64(0..SIZE - 512) / 512 * 512;
            let longest = (SIZE - offset).min([512, 4096, 70_000, 600_000][self.rng.usize(0..4)]);
            let length = (self.rng.u64(0..longest) / 512 * 512 + 512).min(SIZE - offset) as usize;
            let bytes = pattern(self.rng.u64(..), length);
            let gateway = self.rng.u64(1..3);
            assert_eq!(self.cluster.write(gateway, self.volume, offset, bytes.clone()), Ok(IoReply::Done));
            self.copy[offset as usize..][..length].copy_from_slice(&bytes);
        }
    }

    /// The branch that the volume writes to.
    fn head(&self) -> VolumeId {
        let view = self.cluster.directory.views().next().expect("a group");
        view.lineage.branch_of(self.volume)
    }

    /// Reads everything without so many of the other bricks: `back` must have what it should.
    fn check_without_others(&mut self, back: u32, others: u32) {
        let bricks = self.cluster.bricks.len() as u32;
        for dead in (1..=bricks).filter(|brick| *brick != back).take(others as usize) {
            self.cluster.kill(NodeId::Brick(BrickId(dead)));
        }
        self.check();
    }
}

#[test]
fn a_brick_that_was_away_catches_up_and_serves() {
    for (layout, bricks, tolerates) in LAYOUTS {
        for back in [1, bricks] {
            let mut bench = Bench::new(layout, bricks, u64::from(back));
            bench.write(30);
            bench.cluster.kill(NodeId::Brick(BrickId(back)));
            bench.write(30);
            bench.cluster.restart(BrickId(back));
            bench.write(10);
            bench.cluster.run_until_whole();
            bench.write(5);
            bench.check_without_others(back, tolerates);
        }
    }
}

#[test]
fn writes_go_on_while_a_brick_catches_up() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 7);
        bench.write(20);
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        bench.write(20);
        bench.cluster.restart(BrickId(2));
        // Many at once, on few blocks.
        for round in 0..40 {
            let writes: Vec<_> = (0..8u64)
                .map(|n| {
                    let offset = (round * 3 + n) % 40 * BLOCK as u64;
                    let bytes = pattern(round * 100 + n, BLOCK);
                    self::keep(&mut bench.copy, offset, &bytes);
                    let io = Io::Write { offset };
                    bench.cluster.begin(1 + n % 2, bench.volume, io, Payload::from(bytes))
                })
                .collect();
            bench.cluster.run(Duration::from_millis(5 * round));
            for write in writes {
                bench.cluster.finish(write);
            }
        }
        bench.cluster.run_until_whole();
        bench.check_without_others(2, tolerates);
    }
}

#[test]
fn snapshots_clones_and_heads_keep_apart_also_when_a_brick_was_away() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 17);
        bench.write(20);
        let name = layout.replace('+', "p");
        let snapshot = AdminRequest::Snapshot { volume: name.clone(), snapshot: "s".into(), nonce: 1 };
        bench.cluster.admin(snapshot).expect("taken");
        let before = bench.copy.clone();
        let frozen = bench.cluster.open(&format!("{name}@s"));
        bench.write(20);
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        bench.write(20);
        let clone = AdminRequest::Clone { snapshot: format!("{name}@s"), name: "c".into(), nonce: 2 };
        bench.cluster.admin(clone).expect("made");
        let clone = bench.cluster.open("c");
        let (head, head_copy) = (bench.volume, bench.copy.clone());
        (bench.volume, bench.copy) = (clone, before.clone());
        bench.write(20);
        bench.cluster.restart(BrickId(2));
        bench.write(20);
        bench.cluster.run_until_whole();
        bench.write(20);
        bench.check_without_others(2, tolerates);
        (bench.volume, bench.copy) = (head, head_copy);
        bench.check();
        (bench.volume, bench.copy) = (frozen, before);
        bench.check();
    }
}

#[test]
fn a_deleted_snapshot_merges_into_its_child() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 19);
        bench.write(20);
        let name = layout.replace('+', "p");
        for snapshot in ["s", "t"] {
            let nonce = u64::from(snapshot.as_bytes()[0]);
            let snapshot = AdminRequest::Snapshot { volume: name.clone(), snapshot: snapshot.into(), nonce };
            bench.cluster.admin(snapshot).expect("taken");
            bench.write(10);
        }
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        bench.write(10);
        for snapshot in ["s", "t"] {
            let request = AdminRequest::DeleteVolume {
                name: format!("{name}@{snapshot}"),
                nonce: u64::from(snapshot.as_bytes()[0]) << 8,
            };
            bench.cluster.admin(request).expect("deleted");
        }
        bench.cluster.restart(BrickId(2));
        bench.write(10);
        bench.cluster.run_until_whole();
        bench.cluster.run(Duration::from_secs(20));
        bench.cluster.run_until_whole();
        let view = bench.cluster.directory.views().next().expect("a group").clone();
        assert!(
            view.lineage.parents.is_empty() && view.lineage.merging.is_empty(),
            "{layout}: {:?}",
            view.lineage
        );
        let head = bench.head();
        for (id, (_, disk)) in &bench.cluster.bricks {
            assert_eq!(disk.branches(), [head].into(), "{layout}: {id} holds other branches");
        }
        bench.check_without_others(2, tolerates);
    }
}

fn keep(copy: &mut [u8], offset: u64, bytes: &[u8]) {
    copy[offset as usize..][..bytes.len()].copy_from_slice(bytes);
}

/// Rates are made low, so that what is tested is met in the middle.
fn slow_down(bench: &mut Bench, rebuild_bytes_per_second: u64) {
    let request = AdminRequest::SetCare {
        rebuild_bytes_per_second: Some(rebuild_bytes_per_second),
        scrub_bytes_per_second: None,
        scrub_interval_s: None,
        rebuild_after_s: None,
    };
    bench.cluster.admin(request).expect("set");
    bench.cluster.run(Duration::from_secs(1));
}

fn status(cluster: &Cluster, brick: u32) -> wire::BrickStatus {
    cluster.bricks[&BrickId(brick)].0.status().clone()
}

/// Runs until the brick has fetched something and is not through.
fn run_into_the_middle(bench: &mut Bench, brick: u32) {
    for _ in 0..200 {
        bench.cluster.run(Duration::from_millis(50));
        let status = status(&bench.cluster, brick);
        if status.groups.catching_up.iter().any(|run| run.fetched_bytes > 0 && !run.done) {
            return;
        }
    }
    panic!("never in the middle: {:?}", status(&bench.cluster, brick).groups.catching_up);
}

#[test]
fn a_restart_in_the_middle_of_catching_up_loses_nothing() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 3);
        bench.write(20);
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        bench.write(30);
        slow_down(&mut bench, 1 << 18);
        bench.cluster.restart(BrickId(2));
        run_into_the_middle(&mut bench, 2);
        bench.cluster.restart(BrickId(2));
        bench.write(5);
        run_into_the_middle(&mut bench, 2);
        bench.cluster.restart(BrickId(2));
        slow_down(&mut bench, 1 << 30);
        bench.cluster.run_until_whole();
        bench.check_without_others(2, tolerates);
    }
}

#[test]
fn a_new_view_in_the_middle_of_catching_up_begins_the_comparison_again() {
    let mut bench = Bench::new("rs-4+2", 6, 3);
    bench.write(20);
    bench.cluster.kill(NodeId::Brick(BrickId(2)));
    bench.write(30);
    slow_down(&mut bench, 1 << 20);
    bench.cluster.restart(BrickId(2));
    run_into_the_middle(&mut bench, 2);
    bench.cluster.kill(NodeId::Brick(BrickId(5)));
    bench.write(20);
    bench.cluster.restart(BrickId(5));
    slow_down(&mut bench, 1 << 30);
    bench.cluster.run_until_whole();
    bench.write(5);
    bench.check_without_others(2, 1);
    bench.cluster.revive(NodeId::Brick(BrickId(1)));
    bench.cluster.run_until_whole();
    bench.check_without_others(5, 2);
}

#[test]
fn a_full_brick_does_not_spin() {
    let mut bench = Bench::new("raid1x2", 2, 3);
    bench.write(10);
    bench.cluster.kill(NodeId::Brick(BrickId(2)));
    bench.write(10);
    bench.cluster.bricks.get_mut(&BrickId(2)).expect("there").1.is_full = true;
    bench.cluster.restart(BrickId(2));
    bench.cluster.run(Duration::from_secs(20));
    let full = status(&bench.cluster, 2);
    assert!(full.groups.catching_up.iter().all(|run| !run.done), "nothing found room, and it is through");
    bench.check();
    bench.cluster.bricks.get_mut(&BrickId(2)).expect("there").1.is_full = false;
    bench.cluster.run_until_whole();
    bench.check_without_others(2, 1);
}

#[test]
fn a_retry_meets_its_effect_at_a_promoted_brick() {
    let mut bench = Bench::new("raid1x2", 2, 3);
    bench.cluster.kill(NodeId::Brick(BrickId(2)));
    bench.write(20);
    bench.cluster.restart(BrickId(2));
    bench.cluster.run_until_whole();
    let [one, two] = [1, 2].map(|brick| bench.cluster.bricks[&BrickId(brick)].1.completions());
    // Earlier ones are answered and never asked again.
    let latest = one.last_key_value().expect("the last write took effect");
    assert_eq!(two.last_key_value(), Some(latest));
}

#[test]
fn a_scrub_repairs_what_rots_and_names_what_is_lost() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::filled(layout, bricks, 11);
        let head = bench.head();
        bench.cluster.run(Duration::from_secs(1));
        for brick in 1..=bricks {
            let disk = &mut bench.cluster.bricks.get_mut(&BrickId(brick)).expect("there").1;
            // One row more than can be borne, and rows that can.
            disk.rotten.push((head, 40));
            if brick <= tolerates {
                disk.rotten.extend([3, 17, 18, 100].map(|lba| (head, lba)));
            }
        }
        bench.cluster.admin(AdminRequest::Scrub).expect("begun");
        bench.cluster.run(Duration::from_secs(10));
        for brick in 1..=bricks {
            let after = status(&bench.cluster, brick);
            assert!(
                after.scrub.completed >= 1 && !after.scrub.running,
                "{layout} brick {brick}: {:?}",
                after.scrub
            );
            assert_eq!(
                after.rot.lost_blocks, 1,
                "{layout}: the lost row is named once: {:?}",
                after.rot.lost
            );
            assert_eq!(
                bench.cluster.bricks[&BrickId(brick)].1.rotten,
                [(head, 40)],
                "{layout} brick {brick}"
            );
        }
        let of_layout: std::collections::BTreeSet<u64> = (1..=bricks)
            .flat_map(|brick| status(&bench.cluster, brick).rot.lost)
            .map(|lost| lost.offset)
            .collect();
        let data = if layout == "raid1x3" { 1 } else { 4 };
        assert_eq!(of_layout.len(), data, "{layout}: each data block of the row: {of_layout:?}");
        // Whole rows need nothing of what was there: the lost ones vanish with them, at the latest by the next scrub.
        let (rows, first) = (64 * BLOCK, of_layout.first().expect("some") / (64 * BLOCK) as u64);
        let bytes = pattern(9, rows);
        let offset = first * rows as u64;
        assert_eq!(bench.cluster.write(1, bench.volume, offset, bytes.clone()), Ok(IoReply::Done));
        keep(&mut bench.copy, offset, &bytes);
        bench.cluster.admin(AdminRequest::Scrub).expect("begun");
        bench.cluster.run(Duration::from_secs(10));
        assert!((1..=bricks).all(|brick| status(&bench.cluster, brick).rot.lost_blocks == 0), "{layout}");
        bench.check();
    }
}

/// Who is away may have what the others lack. Its return is enough: nobody has to scrub again.
#[test]
fn what_a_scrub_names_as_lost_is_repaired_when_a_member_returns_that_has_it() {
    for (layout, bricks) in [("raid1x2", 2), ("raid5-4+1", 5), ("rs-4+2", 6)] {
        let mut bench = Bench::filled(layout, bricks, 31);
        let head = bench.head();
        bench.cluster.run(Duration::from_secs(1));
        let spare = if layout == "rs-4+2" { 1 } else { 0 };
        for brick in 1..=1 + spare {
            let disk = &mut bench.cluster.bricks.get_mut(&BrickId(brick)).expect("there").1;
            disk.rotten.extend([(head, 40), (head, 41)]);
        }
        bench.cluster.kill(NodeId::Brick(BrickId(bricks)));
        bench.cluster.run(Duration::from_secs(6));
        bench.cluster.admin(AdminRequest::Scrub).expect("begun");
        bench.cluster.run(Duration::from_secs(10));
        let named = status(&bench.cluster, 1);
        assert_eq!((named.scrub.running, named.rot.lost_blocks), (false, 2), "{layout} {named:?}");
        bench.cluster.restart(BrickId(bricks));
        bench.cluster.run_until_whole();
        bench.cluster.run(Duration::from_secs(5));
        for brick in 1..=1 + spare {
            let after = status(&bench.cluster, brick);
            assert_eq!(after.rot.lost_blocks, 0, "{layout} brick {brick}: {:?}", after.rot.lost);
            assert_eq!(bench.cluster.bricks[&BrickId(brick)].1.rotten, [], "{layout} brick {brick}");
            let (before, scrub) = (&named.scrub, &after.scrub);
            assert_eq!((before.completed, before.checked_blocks), (scrub.completed, scrub.checked_blocks));
            assert_eq!((scrub.found_blocks, scrub.repaired_blocks), (2, 2), "{layout} brick {brick}");
        }
        bench.check();
    }
}

/// Runs until a brick says so of itself.
fn run_until(
    bench: &mut Bench,
    brick: u32,
    is_reached: impl Fn(&wire::BrickStatus) -> bool,
) -> wire::BrickStatus {
    for _ in 0..20_000 {
        let status = status(&bench.cluster, brick);
        if is_reached(&status) {
            return status;
        }
        bench.cluster.run(Duration::from_millis(50));
    }
    panic!("not reached: {:?}", status(&bench.cluster, brick))
}

/// A scrub of a large disk takes hours, and members come and go meanwhile.
#[test]
fn a_scrub_looks_again_at_what_it_named_as_lost_before_a_member_returned() {
    let mut bench = Bench::filled("raid1x2", 2, 32);
    let head = bench.head();
    bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1.rotten.extend([(head, 5), (head, 6)]);
    bench.cluster.kill(NodeId::Brick(BrickId(2)));
    bench.cluster.run(Duration::from_secs(6));
    let slowly = AdminRequest::SetCare {
        rebuild_bytes_per_second: None,
        scrub_bytes_per_second: Some(128 << 10),
        scrub_interval_s: Some(1000),
        rebuild_after_s: None,
    };
    bench.cluster.admin(slowly).expect("stored");
    let named = run_until(&mut bench, 1, |status| status.rot.lost_blocks == 2);
    assert!(named.scrub.running && named.scrub.checked_blocks < named.scrub.total_blocks / 2, "{named:?}");
    bench.cluster.restart(BrickId(2));
    bench.cluster.run_until_whole();
    let scrub = run_until(&mut bench, 1, |status| status.scrub.completed == 1).scrub;
    assert_eq!((scrub.found_blocks, scrub.repaired_blocks), (2, 2));
    assert_eq!(scrub.checked_blocks, scrub.total_blocks);
    bench.check();
}

/// A full disk has no room for a second copy, and the snapshot must be made good by what its volume reads.
#[test]
fn an_inherited_block_is_repaired_where_it_lies() {
    for (layout, bricks, _) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 12);
        bench.write(60);
        let root = bench.head();
        let (volume, snapshot) = (layout.replace('+', "p"), "s".to_owned());
        bench.cluster.admin(AdminRequest::Snapshot { volume, snapshot, nonce: 1 }).expect("taken");
        let head = bench.head();
        assert_ne!(head, root);
        bench.cluster.run(Duration::from_secs(1));
        let disk = &mut bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1;
        disk.rotten.extend([3, 17, 40].map(|lba| (root, lba)));
        for _ in 0..4 {
            // Readers of mirrors choose among members.
            bench.check();
        }
        bench.cluster.admin(AdminRequest::Scrub).expect("begun");
        bench.cluster.run(Duration::from_secs(10));
        let disk = &bench.cluster.bricks[&BrickId(1)].1;
        assert_eq!(disk.rotten, [], "{layout}");
        assert!(!disk.branches().contains(&head), "{layout}: a second copy");
        bench.check();
    }
}

/// A full disk has no room to copy up what a deleted snapshot leaves, so its branch stays for as long: a scrub finds what
/// rots there, and makes it good there.
#[test]
fn what_rots_in_a_branch_that_cannot_be_merged_is_found_and_repaired() {
    for (layout, bricks, _) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 14);
        bench.write(60);
        let (root, volume) = (bench.head(), layout.replace('+', "p"));
        let snapshot = AdminRequest::Snapshot { volume: volume.clone(), snapshot: "s".to_owned(), nonce: 1 };
        bench.cluster.admin(snapshot).expect("taken");
        bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1.is_full = true;
        bench
            .cluster
            .admin(AdminRequest::DeleteVolume { name: format!("{volume}@s"), nonce: 77 })
            .expect("deleted");
        bench.cluster.run(Duration::from_secs(3));
        let disk = &mut bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1;
        assert!(disk.branches().contains(&root), "{layout}: merged without room");
        let held = disk.blocks_of(root);
        disk.rotten.extend(held.into_iter().filter(|lba| lba % 7 == 3).map(|lba| (root, lba)));
        assert_ne!(disk.rotten, [], "{layout}");
        bench.cluster.admin(AdminRequest::Scrub).expect("begun");
        bench.cluster.run(Duration::from_secs(10));
        let disk = &mut bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1;
        assert_eq!(disk.rotten, [], "{layout}");
        disk.is_full = false;
        bench.cluster.run(Duration::from_secs(10));
        let disk = &bench.cluster.bricks[&BrickId(1)].1;
        assert!(!disk.branches().contains(&root), "{layout}: not given back once there is room");
        bench.check();
    }
}

/// What a disk says nothing of any more takes room to be mended. Without room the scrub tries for a while, ends, and tells
/// that not all it found is repaired; the next one repairs it.
#[test]
fn a_scrub_ends_on_a_disk_without_room_for_its_repairs() {
    for (layout, bricks, _) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 15);
        bench.write(60);
        let head = bench.head();
        let disk = &mut bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1;
        let held = disk.blocks_of(head);
        let forgotten = held.iter().copied().filter(|lba| lba % 7 == 3);
        disk.forget(forgotten.map(|lba| (head, lba)));
        disk.rotten.push((head, held[0]));
        let rotten = disk.rotten.len() as u64;
        assert!(rotten > 2, "{layout}");
        for (is_full, found, repaired) in [(true, rotten, 1), (false, rotten - 1, rotten - 1)] {
            bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1.is_full = is_full;
            bench.cluster.admin(AdminRequest::Scrub).expect("begun");
            bench.cluster.run(Duration::from_secs(20));
            let scrub = status(&bench.cluster, 1).scrub;
            let counts = (scrub.found_blocks, scrub.repaired_blocks);
            assert_eq!((scrub.running, counts), (false, (found, repaired)), "{layout}");
        }
        assert_eq!(bench.cluster.bricks[&BrickId(1)].1.rotten, [], "{layout}");
        bench.check();
    }
}

/// One block of the row is lost for good. All others have their redundancy back, nobody reads what is older instead, and
/// a write of the whole row makes it good.
#[test]
fn a_block_that_nobody_can_make_out_does_not_stop_who_joins() {
    for (layout, bricks) in [("raid1x2", 2), ("raid5-2+1", 3)] {
        let mut bench = Bench::filled(layout, bricks, 13);
        let head = bench.head();
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        let bytes = pattern(6, 1 << 20);
        assert_eq!(bench.cluster.write(1, bench.volume, 0, bytes.clone()), Ok(IoReply::Done));
        keep(&mut bench.copy, 0, &bytes);
        bench.cluster.bricks.get_mut(&BrickId(1)).expect("there").1.rotten.push((head, 5));
        bench.cluster.restart(BrickId(2));
        bench.cluster.run_until_whole();
        bench.cluster.run(Duration::from_secs(1));
        let named = (1..=bricks).map(|brick| status(&bench.cluster, brick).rot.lost_blocks).sum::<u64>();
        assert!(named > 0, "{layout}: it is named");
        let mut failed = 0;
        for offset in (0..1 << 20).step_by(BLOCK) {
            match bench.cluster.try_read(1, bench.volume, offset as u64, BLOCK as u32) {
                Ok(read) => assert!(read == bench.copy[offset..][..BLOCK], "{layout}: old bytes at {offset}"),
                Err(error) => failed += u32::from(error == wire::IoError::Unreadable),
            }
        }
        assert!((1..=2).contains(&failed), "{layout}: {failed}");
        assert_eq!(bench.cluster.write(1, bench.volume, 0, bytes), Ok(IoReply::Done), "{layout}");
        bench.check_without_others(2, 1);
    }
}

#[test]
fn a_substitute_is_filled_and_the_former_member_gives_its_space_back() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks + 1, 13);
        bench.write(30);
        let view = bench.cluster.directory.views().next().expect("a group").clone();
        let replaced = view.members[1];
        let spare =
            (1..=bricks + 1).map(BrickId).find(|brick| view.slot_of(*brick).is_none()).expect("a spare");
        bench.cluster.admin(AdminRequest::ReplaceBrick { brick: replaced, by: Some(spare) }).expect("begun");
        bench.write(10);
        bench.cluster.run(Duration::from_secs(3));
        bench.cluster.run_until_whole();
        bench.cluster.run(Duration::from_secs(3));
        let view = bench.cluster.directory.views().next().expect("a group").clone();
        assert!(view.is_current(spare) && view.slot_of(replaced).is_none(), "{view:?}");
        assert_eq!(bench.cluster.bricks[&replaced].1.len(), 0, "{layout}: {replaced} still holds blocks");
        bench.cluster.kill(NodeId::Brick(replaced));
        let others: Vec<BrickId> = view.members.iter().copied().filter(|brick| *brick != spare).collect();
        others.iter().take(tolerates as usize).for_each(|brick| bench.cluster.kill(NodeId::Brick(*brick)));
        bench.check();
    }
}

/// Groups end and others begin, views begin in the middle, and clients write all the time.
#[test]
fn how_much_a_brick_has_of_what_it_lacked_only_grows() {
    let mut bench = Bench::new("raid1x3", 3, 23);
    let request = AdminRequest::CreateVolume {
        name: "many".to_owned(),
        size_bytes: 64 << 20,
        layout: "raid1x3".to_owned(),
        stripe_unit_blocks: 0,
        groups: 12,
        read_policy: wire::ReadPolicy::default(),
        io_timeout: wire::IoTimeout::default(),
        protocol: wire::Protocol::default(),
        placement: wire::Placement::default(),
        stream: base::StreamId::default(),
        nonce: 99,
        reads: wire::Reads::default(),
    };
    bench.cluster.admin(request).expect("made");
    let many = bench.cluster.open("many");
    let fill = |bench: &mut Bench, seed: u64, step: usize| {
        for offset in (0..64 << 20).step_by(step) {
            let bytes = pattern(seed + offset as u64, 64 << 10);
            assert_eq!(bench.cluster.write(1, many, offset as u64, bytes), Ok(IoReply::Done));
        }
    };
    fill(&mut bench, 1, 1 << 20);
    bench.cluster.kill(NodeId::Brick(BrickId(2)));
    fill(&mut bench, 2, 1 << 20);
    slow_down(&mut bench, 1 << 20);
    bench.cluster.restart(BrickId(2));
    let (mut told, mut is_whole) = (Vec::new(), false);
    for look in 0..2000 {
        bench.cluster.run(Duration::from_millis(50));
        if look % 10 == 0 {
            let offset = bench.rng.u64(0..63) << 20;
            assert_eq!(bench.cluster.write(1, many, offset, pattern(look, BLOCK)), Ok(IoReply::Done));
        }
        // A view of each group, so that all are compared anew.
        if look == 40 || look == 90 {
            let snapshot =
                AdminRequest::Snapshot { volume: "many".into(), snapshot: format!("s{look}"), nonce: look };
            bench.cluster.admin(snapshot).expect("taken");
        }
        let status = bench.cluster.directory.status(bench.cluster.now, wire::StatusPart::All);
        let brick = status.bricks.iter().find(|brick| brick.id == BrickId(2)).expect("listed");
        if let Some(percent) = brick.caught_up_percent.filter(|_| brick.alive) {
            // No less than the groups that are done, and no more than that and those under way.
            let done = |open: u32| 100 * (12_u32.saturating_sub(open)) / 12;
            let under_way = brick.joining_groups;
            assert!(
                u32::from(percent) + 1 >= done(brick.stale_groups),
                "{percent}% with {} open",
                brick.stale_groups
            );
            assert!(
                u32::from(percent) <= done(brick.stale_groups - under_way).max(*told.last().unwrap_or(&0))
            );
            told.push(u32::from(percent));
        }
        is_whole = brick.alive && brick.stale_groups == 0 && look > 10;
        if is_whole {
            assert_eq!(brick.caught_up_percent, None);
            break;
        }
    }
    assert!(is_whole && told.is_sorted(), "{told:?}");
    told.dedup();
    assert!(told.len() > 10 && told.last() > Some(&80), "{told:?}");
}

/// Blocks that were overwritten before anybody could repair them are found by nobody any more.
#[test]
fn a_clean_scrub_settles_what_was_found_unreadable_before() {
    let mut bench = Bench::new("raid1x3", 3, 5);
    bench.cluster.bricks.get_mut(&BrickId(1)).expect("a brick").0.set_space(1 << 30, 0, 0, 2);
    bench.cluster.run(Duration::from_secs(1));
    assert_eq!(
        (status(&bench.cluster, 1).unreadable_blocks, status(&bench.cluster, 1).scrub.settled_blocks),
        (2, 0)
    );
    bench.cluster.admin(AdminRequest::Scrub).expect("begun");
    bench.cluster.run(Duration::from_secs(20));
    let status = status(&bench.cluster, 1);
    assert_eq!((status.scrub.completed, status.scrub.found_blocks, status.scrub.settled_blocks), (1, 0, 2));
}
