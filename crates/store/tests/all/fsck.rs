//! The offline check: every region damaged in turn, found, repaired where that is possible.

use crate::common::oracle::Test;
use crate::common::{Disk, World, payload, span, staged, words};
use base::{BLOCK, BLOCK_U64, BrickId, ClusterId, Rng, Stamp};
use bytes::Bytes;
use proptest::prelude::*;
use store::fsck::{FINDINGS_MAX, Finding};
use store::{FsckOptions, FsckReport, IoFault, OpenError, Outcome, Owner, Sectors, State, What, fsck};
use wire::Change;
use wire::disk::Command;

const DISK: u64 = 8 << 20;
const JOURNAL: u64 = 1 << 20;
const JOURNAL_AT: u64 = 64 << 10;
const PAGES_AT: u64 = JOURNAL_AT + JOURNAL;

/// The disk as a check sees it, and what it did to it.
struct Checked<'a> {
    disk: &'a mut Disk,
    writes: u64,
}

impl Sectors for Checked<'_> {
    fn read(&mut self, offset: u64, length: usize) -> Result<Bytes, IoFault> {
        self.disk.read(offset, length)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IoFault> {
        self.writes += 1;
        self.disk.write(offset, bytes, false);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), IoFault> {
        self.disk.sync(u64::MAX);
        Ok(())
    }
}

pub(crate) fn check(disk: &mut Disk, repair: bool) -> Result<FsckReport, OpenError> {
    let mut checked = Checked { disk, writes: 0 };
    let (mut last, mut all) = (0, 0);
    let options = FsckOptions { disk_bytes: DISK, owner: None, repair };
    let report = fsck(&mut checked, &options, &mut |done, total| {
        assert!(done >= last && done <= total, "{done} of {total} after {last}");
        (last, all) = (done, total);
    });
    assert!(repair || checked.writes == 0, "a check writes nothing");
    assert!(report.is_err() || (last == all && all > 0));
    report
}

/// A disk with content at home, in the journal, and staged; a page of each of two planes.
fn used(seed: u64) -> World {
    let mut world = World::new(DISK, JOURNAL, seed);
    let mut write = |lba: u64, count: u32, stamp: u64| {
        let change = if stamp.is_multiple_of(2) { Change::Parity { width: 2 } } else { Change::Data };
        let words = (0..u64::from(count)).map(|n| stamp * 1000 + n);
        world.write(staged(span(stamp % 2 + 1, lba, count), stamp, change), payload(words)).unwrap();
    };
    write(0, 40, 1);
    write(300, 5, 2);
    write(3, 4, 2 + 2);
    world.run(true);
    let stage = |world: &mut World, lba, count: u32, stamp| {
        let content = payload(vec![stamp; count as usize]);
        world.stage(staged(span(1, lba, count), stamp, Change::Data), content).unwrap();
    };
    stage(&mut world, 50, 3, 11);
    world.command(Command::Apply { stamp: Stamp(11) });
    stage(&mut world, 64, 16, 12);
    stage(&mut world, 128, 2, 13);
    world
}

fn flip(disk: &mut Disk, at: u64, rng: &mut Rng) {
    let sector = at / BLOCK_U64 * BLOCK_U64;
    let mut bytes = disk.read(sector, BLOCK).unwrap().to_vec();
    bytes[(at - sector) as usize] ^= 1 << rng.u8(..8);
    disk.write(sector, &bytes, true);
}

/// Where the newest block of this word is.
fn place_of(disk: &Disk, word: u64, from: u64) -> u64 {
    let needle = word.to_le_bytes().repeat(BLOCK / 8);
    let all = (from / BLOCK_U64..DISK / BLOCK_U64).map(|n| n * BLOCK_U64);
    all.rev().find(|at| disk.read(*at, BLOCK).unwrap() == needle).expect("the block is on the disk")
}

fn names(report: &FsckReport) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.what.name()).collect()
}

#[test]
fn a_used_disk_is_clean_and_is_not_touched() {
    let mut world = used(1);
    world.disk.sync(u64::MAX);
    let report = check(&mut world.disk, false).unwrap();
    assert_eq!((report.outcome(), names(&report)), (Outcome::Clean, vec![]));
    let owner = Owner { cluster: ClusterId([7; 16]), brick: BrickId(3), disk_index: 1 };
    assert_eq!((report.owner, report.identity), (owner, u64::from_le_bytes([9; 8])));
    assert_eq!((report.blocks, report.staged_writes, report.lost_blocks), (40 + 5 + 4 + 16, 2, 0));
    assert!(report.pages >= 4 && report.journal_bytes > 0);
    let before: Vec<Bytes> =
        (0..DISK / BLOCK_U64).map(|n| world.disk.read(n * BLOCK_U64, BLOCK).unwrap()).collect();
    assert_eq!(check(&mut world.disk, false).unwrap(), report);
    assert!((0..).zip(&before).all(|(n, was)| world.disk.read(n * BLOCK_U64, BLOCK).unwrap() == was));
}

#[test]
fn says_whose_disk_it_cannot_check() {
    let mut world = used(1);
    let mut refusal = |owner: Option<Owner>, disk_bytes: u64| {
        let mut checked = Checked { disk: &mut world.disk, writes: 0 };
        fsck(&mut checked, &FsckOptions { disk_bytes, owner, repair: true }, &mut |_, _| ()).unwrap_err()
    };
    let owner = Owner { cluster: ClusterId([7; 16]), brick: BrickId(3), disk_index: 1 };
    let other = ClusterId([1; 16]);
    let error = OpenError::OtherCluster { found: owner.cluster, expected: other };
    assert_eq!(refusal(Some(Owner { cluster: other, ..owner }), DISK), error);
    let error = OpenError::OtherBrick { found: BrickId(3), expected: BrickId(4) };
    assert_eq!(refusal(Some(Owner { brick: BrickId(4), ..owner }), DISK), error);
    let error = OpenError::OtherDisk { found: 1, expected: 0 };
    assert_eq!(refusal(Some(Owner { disk_index: 0, ..owner }), DISK), error);
    let error = OpenError::Truncated { disk_bytes: DISK / 2, needed_bytes: DISK };
    assert_eq!(refusal(Some(owner), DISK / 2), error);
    assert_eq!(refusal(None, 100), OpenError::NotFormatted);
    world.disk = Disk::new(DISK);
    assert_eq!(check(&mut world.disk, true), Err(OpenError::NotFormatted));
    world.disk.write(0, &used(1).disk.read(0, BLOCK).unwrap(), true);
    flip(&mut world.disk, 33, &mut Rng::with_seed(1));
    assert_eq!(check(&mut world.disk, true), Err(OpenError::SuperblockCorrupt));
}

/// Finds `name` at `offset`, repairs it, and finds nothing any more; the disk opens, and what was not hit is there.
fn is_repaired(world: &mut World, name: &str, offset: u64) -> FsckReport {
    let report = check(&mut world.disk, false).unwrap();
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.what.name() == name).collect();
    assert!(found.iter().any(|f| f.offset == offset), "{name} at {offset}: {:?}", report.findings);
    let repaired = check(&mut world.disk, true).unwrap();
    assert_eq!(repaired.outcome(), Outcome::Repaired, "{:?}", repaired.findings);
    let again = check(&mut world.disk, false).unwrap();
    assert_eq!((again.outcome(), names(&again)), (Outcome::Clean, vec![]), "{name}: {:?}", again.findings);
    assert_eq!(again.lost_blocks, repaired.lost_blocks);
    world.open().unwrap();
    report
}

#[test]
fn superblocks_are_restored_from_each_other() {
    let mut rng = Rng::with_seed(2);
    for at in [0, 9, 16, 30, 100, 4095] {
        let mut world = used(1);
        flip(&mut world.disk, at, &mut rng);
        assert_eq!(is_repaired(&mut world, "superblock", 0).outcome(), Outcome::Damaged);
        flip(&mut world.disk, DISK - BLOCK_U64 + at, &mut rng);
        is_repaired(&mut world, "superblock-copy", DISK - BLOCK_U64);
        world.disk.bad.insert(at / 512);
        let report = check(&mut world.disk, false).unwrap();
        assert_eq!(names(&report), ["superblock"], "a sector that cannot be read");
    }
}

#[test]
fn a_damaged_journal_header_is_found() {
    let mut rng = Rng::with_seed(2);
    for at in [0, 8, 12, 20, 28, 36] {
        let mut world = used(1);
        let headers = [BLOCK_U64, 2 * BLOCK_U64].map(|at| world.disk.read(at, BLOCK).unwrap()[12]);
        let older = if headers[0] < headers[1] { 0 } else { 1 };
        let offset = BLOCK_U64 * (1 + older);
        flip(&mut world.disk, offset + at, &mut rng);
        is_repaired(&mut world, "journal-header", offset);
        // Without any the brick has nowhere to begin.
        let mut world = used(1);
        flip(&mut world.disk, BLOCK_U64 + at, &mut rng);
        flip(&mut world.disk, 2 * BLOCK_U64 + at, &mut rng);
        let report = check(&mut world.disk, true).unwrap();
        assert_eq!((report.outcome(), names(&report)), (Outcome::Damaged, vec!["refused"]));
        assert_eq!(report.findings[0].what, What::Refused(OpenError::JournalHeaderCorrupt));
    }
}

#[test]
fn a_torn_tail_is_dropped_and_damage_before_it_is_not_rolled_back() {
    let mut rng = Rng::with_seed(2);
    // The last frame: two blocks of 13 behind one sector of header and records.
    let last = place_of(&used(1).disk, 13, JOURNAL_AT) - 2 * BLOCK_U64;
    for at in [0, 8, 17, 26, 30, 33, 60, BLOCK_U64 + 5, 2 * BLOCK_U64 + 4095] {
        let mut world = used(1);
        flip(&mut world.disk, last + at, &mut rng);
        let report = is_repaired(&mut world, "torn-tail", last);
        assert_eq!(report.outcome(), Outcome::Clean, "it is what every power cut leaves");
        assert_eq!(
            world.open().unwrap().staged.len(),
            1,
            "the write of the last frame was never acknowledged"
        );
    }
    let mut world = used(1);
    let middle = place_of(&world.disk, 11, JOURNAL_AT);
    flip(&mut world.disk, middle, &mut rng);
    for repair in [false, true, false] {
        let report = check(&mut world.disk, repair).unwrap();
        assert!(matches!(report.findings[0].what, What::Refused(OpenError::JournalCorrupt { .. })));
        assert_eq!((report.outcome(), report.findings[0].state), (Outcome::Damaged, State::Beyond));
    }
}

#[test]
fn rotten_blocks_are_marked_lost_and_their_neighbours_are_not() {
    let mut rng = Rng::with_seed(2);
    for _ in 0..4 {
        let mut world = used(1);
        let at = place_of(&world.disk, 1007, PAGES_AT);
        flip(&mut world.disk, at + rng.u64(..BLOCK_U64), &mut rng);
        world.disk.bad.insert((at + BLOCK_U64) / 512);
        let report = is_repaired_but_for_bad_sectors(&mut world, at);
        assert_eq!(report.findings[0].what, What::Rotten { volume: base::VolumeId(2), lba: 7, blocks: 2 });
        let read = world.read(span(2, 0, 40), 1).unwrap();
        assert_eq!((read.unreadable, read.stamps), (vec![7, 8], vec![Stamp(1); 40]));
        // A mend makes them good again.
        let token = world.next_token();
        let stamps = vec![Stamp(1); 2];
        world.command(Command::Mend {
            token,
            span: span(2, 7, 2),
            width: 1,
            stamps,
            payload: payload([1007, 1008]),
        });
        world.run(true);
        assert_eq!(words(&world.read(span(2, 0, 40), 1).unwrap().content), (1000..1040).collect::<Vec<_>>());
        assert_eq!(check(&mut world.disk, false).unwrap().lost_blocks, 0);
    }
}

/// As [`is_repaired`]; what is marked lost is not read any more, so that bad sectors do no harm.
fn is_repaired_but_for_bad_sectors(world: &mut World, offset: u64) -> FsckReport {
    let report = is_repaired(world, "rotten", offset);
    world.disk.bad.clear();
    report
}

#[test]
fn damaged_metadata_cost_their_blocks_only() {
    let mut rng = Rng::with_seed(2);
    let mut hit = 0;
    for sector in 0..5 * 8 {
        let mut world = used(1);
        let offset = PAGES_AT + sector * 512;
        flip(&mut world.disk, offset + rng.u64(..512), &mut rng);
        let report = is_repaired(&mut world, "metadata", offset);
        let (volume, lba, blocks) = report.findings[0].what.blocks().unwrap();
        assert_eq!(blocks, 32);
        let read = world.read(span(volume.0, lba / 256 * 256, 256), 2).unwrap();
        let mut unknown: Vec<u32> = (0..32).map(|n| (lba % 256) as u32 + n).collect();
        // What the journal had is known again.
        unknown.retain(|n| read.unreadable.contains(n) || !(50..53).contains(n));
        assert_eq!(read.unreadable, unknown);
        hit += 1;
    }
    assert_eq!(hit, 40);
    // A page of which nothing is left could be anybody's.
    let mut world = used(1);
    world.disk.spoil(PAGES_AT, &mut rng, 8);
    for repair in [false, true, false] {
        let report = check(&mut world.disk, repair).unwrap();
        assert_eq!((report.outcome(), names(&report)), (Outcome::Damaged, vec!["lost-page"]));
    }
    world.open().unwrap();
}

#[test]
fn content_beside_the_journal_is_checked_too() {
    let mut rng = Rng::with_seed(2);
    let mut world = used(1);
    let at = place_of(&world.disk, 12, PAGES_AT) - 15 * BLOCK_U64;
    flip(&mut world.disk, at + 4 * BLOCK_U64, &mut rng);
    let report = check(&mut world.disk, false).unwrap();
    let what = What::RottenInJournal { volume: base::VolumeId(1), lba: 68, blocks: 1 };
    let finding = Finding { offset: at + 4 * BLOCK_U64, what, state: State::Beyond };
    assert_eq!((report.outcome(), &report.findings[..]), (Outcome::Damaged, &[finding][..]));
    // Applied, it is at home like any other, and is repaired like any other.
    world.open().unwrap();
    world.command(Command::Apply { stamp: Stamp(12) });
    world.run(false);
    world.wake();
    world.run(false);
    let report = check(&mut world.disk, false).unwrap();
    assert_eq!((names(&report), report.findings[0].state), (vec!["rotten-in-journal"], State::Repairable));
    let report = check(&mut world.disk, true).unwrap();
    assert_eq!((names(&report), report.outcome()), (vec!["rotten"], Outcome::Repaired));
    assert_eq!(check(&mut world.disk, false).unwrap().outcome(), Outcome::Clean);
}

#[test]
fn many_findings_are_counted() {
    let mut world = World::new(DISK, JOURNAL, 1);
    for n in 0..6 {
        world.write(staged(span(1, n * 256, 128), n + 1, Change::Data), payload(vec![n + 1; 128])).unwrap();
    }
    world.run(true);
    let slots_at = PAGES_AT + (1 << 19);
    for block in (slots_at / BLOCK_U64..DISK / BLOCK_U64 - 1).step_by(2) {
        world.disk.write(block * BLOCK_U64, &vec![0xEE; BLOCK], true);
    }
    let report = check(&mut world.disk, false).unwrap();
    assert!(report.findings.len() > 300 && report.findings.len() < FINDINGS_MAX && report.left_out == 0);
    assert_eq!(report.blocks, 768);
    let repaired = check(&mut world.disk, true).unwrap();
    assert_eq!(repaired.lost_blocks, report.findings.len() as u64);
    assert_eq!(check(&mut world.disk, true).unwrap().outcome(), Outcome::Clean);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a power cut leaves is clean, or a torn tail at most; a repair changes nothing that a brick would see.
    #[test]
    fn what_a_power_cut_leaves_is_clean(seed: u64) {
        let mut test = Test::over(World::new(DISK, [128, 192, 256, 1024][seed as usize % 4] * 1024, seed));
        for round in 0..6 {
            let steps = test.world.rng.usize(1..500);
            (0..steps).for_each(|_| test.go());
            test.crash_with(|disk| {
                let report = check(disk, false).unwrap();
                assert!(report.findings.iter().all(|f| f.what == What::TornTail), "{:?}", report.findings);
                if round % 2 == 0 {
                    let repaired = check(disk, true).unwrap();
                    assert!(repaired.outcome() != Outcome::Damaged);
                    assert_eq!(names(&check(disk, false).unwrap()), Vec::<&str>::new());
                }
            });
        }
        test.finish();
    }
}
