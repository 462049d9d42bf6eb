//! Disks that are full, damaged, foreign, or broken.

use crate::common::{World, config, options, payload, span, staged, words};
use crate::fsck;
use base::{BLOCK, BLOCK_U64, BrickId, ClusterId, Payload, Rng, Stamp, VolumeId};
use proptest::prelude::*;
use store::{FormatError, IoFault, IoKind, MapUse, OpenError, State, format};
use wire::Change;
use wire::disk::{Attempt, Command, Contested, Reply, StoreError, Token};

const JOURNAL: u64 = 1 << 20;

fn write_all(world: &mut World, volume: u64, lba: u64, words: &[u64], stamp: u64) -> Result<(), StoreError> {
    let span = span(volume, lba, words.len() as u32);
    world.write(staged(span, stamp, Change::Data), payload(words.iter().copied()))
}

/// Where the block of these words is at home: behind the journal, which has a copy.
fn at_home(world: &World, word: u64) -> u64 {
    let needle = word.to_le_bytes().repeat(BLOCK / 8);
    let found =
        (0..(8 << 20) / BLOCK_U64).rev().find(|n| world.disk.read(n * BLOCK_U64, BLOCK).unwrap() == needle);
    found.expect("the block is on the disk") * BLOCK_U64
}

#[test]
fn refuses_what_is_not_its_disk() {
    let mut world = World::new(8 << 20, JOURNAL, 1);
    let good = world.config.clone();
    let mut refusal = |change: &dyn Fn(&mut store::StoreConfig)| {
        world.config = good.clone();
        change(&mut world.config);
        world.open().unwrap_err()
    };
    let (theirs, ours) = (ClusterId([1; 16]), ClusterId([7; 16]));
    assert_eq!(refusal(&|c| c.cluster = theirs), OpenError::OtherCluster { found: ours, expected: theirs });
    let brick = OpenError::OtherBrick { found: BrickId(3), expected: BrickId(4) };
    assert_eq!(refusal(&|c| c.brick = BrickId(4)), brick);
    assert_eq!(refusal(&|c| c.disk_index = 0), OpenError::OtherDisk { found: 1, expected: 0 });
    let short = OpenError::Truncated { disk_bytes: 4 << 20, needed_bytes: 8 << 20 };
    assert_eq!(refusal(&|c| c.disk_bytes = 4 << 20), short);
    assert!(short.to_string().contains("cut short"));
    assert_eq!(refusal(&|c| c.disk_bytes = 100), OpenError::NotFormatted);

    let mut empty = World::new(8 << 20, JOURNAL, 1);
    empty.disk = crate::common::Disk::new(8 << 20);
    assert_eq!(empty.open().unwrap_err(), OpenError::NotFormatted);
    empty.command(Command::Note { token: Token(5), key: vec![1], value: None });
    assert_eq!(empty.replies, [Reply::Noted { token: Token(5), result: Err(StoreError::Failed) }]);
}

#[test]
fn refuses_a_newer_format_and_survives_one_lost_superblock() {
    let mut world = World::new(8 << 20, JOURNAL, 1);
    write_all(&mut world, 1, 0, &[5], 1).unwrap();
    world.run(true);
    let sector = world.disk.read(0, BLOCK).unwrap();
    world.disk.write(0, &vec![0xA5; BLOCK], true);
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(1, 0, 1), 1).unwrap().content), [5]);

    let mut newer = sector.to_vec();
    newer[8..12].copy_from_slice(&9u32.to_le_bytes());
    let sum = base::checksum::checksum_append(base::checksum(&newer[..16]), &newer[20..]);
    newer[16..20].copy_from_slice(&sum.to_le_bytes());
    world.disk.write(0, &newer, true);
    assert_eq!(world.open().unwrap_err(), OpenError::NewerFormat { found: 9, known: 1 });

    let mut rng = Rng::with_seed(1);
    let mut damaged = sector.to_vec();
    damaged[30] ^= 1;
    world.disk.write(0, &damaged, true);
    world.disk.spoil((8 << 20) - BLOCK_U64, &mut rng, 8);
    assert_eq!(world.open().unwrap_err(), OpenError::SuperblockCorrupt);
}

#[test]
fn a_disk_that_cannot_be_formatted_says_why() {
    let small = format(options(8 << 20, 4096)).unwrap_err();
    assert_eq!(small, FormatError::JournalTooSmall { journal_bytes: 4096 });
    assert!(matches!(format(options(1 << 20, JOURNAL)), Err(FormatError::DiskTooSmall { .. })));
    assert!(matches!(format(options(0, JOURNAL)), Err(FormatError::DiskTooSmall { .. })));
}

#[test]
fn a_journal_suits_its_disk() {
    let (kib, mib) = (1u64 << 10, 1u64 << 20);
    let sizes = [(mib, 256 * kib), (4 * mib, 256 * kib), (8 * mib, 512 * kib), (100 * mib, 6400 * kib)];
    for (disk, journal) in sizes.into_iter().chain([(1 << 30, 64 * mib), (1 << 40, 64 * mib)]) {
        assert_eq!(store::journal_bytes_default(disk), journal, "{disk}");
    }
    let uneven = store::journal_bytes_default(100 * mib + 16 * 5000);
    assert_eq!(uneven, 6400 * kib, "in whole slots");
}

#[test]
fn two_disks_are_never_confused() {
    // The whole journal of one disk, copied into the same place of another one of the same brick.
    let mut one = World::new(8 << 20, JOURNAL, 1);
    write_all(&mut one, 1, 0, &[5], 1).unwrap();
    let mut two = World::new(8 << 20, JOURNAL, 1);
    let mut theirs = options(8 << 20, JOURNAL);
    theirs.uuid = [8; 16];
    for (offset, content) in format(theirs).unwrap() {
        two.disk.write(offset, &content.to_vec(), true);
    }
    let journal = one.disk.read(64 * 1024, JOURNAL as usize).unwrap();
    two.disk.write(64 * 1024, &journal, true);
    assert_eq!(two.open().unwrap().staged, []);
    let headers = one.disk.read(BLOCK_U64, 2 * BLOCK).unwrap();
    two.disk.write(BLOCK_U64, &headers, true);
    assert_eq!(two.open().unwrap_err(), OpenError::JournalHeaderCorrupt);
}

#[test]
fn a_full_disk_refuses_data_and_loses_nothing() {
    let mut world = World::new(6 << 20, JOURNAL, 3);
    let mut written = Vec::new();
    for n in 0.. {
        match write_all(&mut world, 1, n * 8, &[n + 1; 8], n + 1) {
            Ok(()) => written.push(n),
            Err(error) => {
                assert_eq!(error, StoreError::NoSpace);
                break;
            }
        }
    }
    let space = world.store.space();
    assert!(space.used_bytes > space.capacity_bytes / 10 * 9 && written.len() > 80, "{space:?}");
    // What is there can be written again, also in whole slots, which then have to go through the journal.
    write_all(&mut world, 1, 0, &[77; 16], 1000).unwrap();
    world.run(true);
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(1, 0, 16), 1).unwrap().content), [77; 16]);
    for n in written.iter().skip(2) {
        assert_eq!(words(&world.read(span(1, n * 8, 8), 1).unwrap().content), [n + 1; 8]);
    }
    // Zeros give room, once they are at home.
    let zero = staged(span(1, 0, 256), 1001, Change::Zero);
    world.write(zero, Payload::new()).unwrap();
    world.run(true);
    assert_eq!(world.store.space().used_bytes, space.used_bytes - (1 << 20));
    let read = world.read(span(1, 0, 256), 1).unwrap();
    assert!(read.content.is_zero() && read.stamps.iter().all(|&stamp| stamp == Stamp(1001)));
    write_all(&mut world, 2, 0, &[9; 16], 1002).unwrap();
    world.run(true);
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(2, 0, 16), 1).unwrap().content), [9; 16]);
}

#[test]
fn a_discarded_volume_gives_all_its_room_back_across_a_crash() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    for n in 0..20 {
        write_all(&mut world, n % 2 + 1, n * 40, &[n + 1; 20], n + 1).unwrap();
    }
    world.run(true);
    let both = world.store.space().used_bytes;
    write_all(&mut world, 1, 0, &[4; 32], 100).unwrap();
    world.command(Command::Discard { volume: VolumeId(1), stretch: None });
    assert_eq!(world.allocation(span(1, 0, 800)), [(800, false)]);
    assert_eq!(world.read(span(1, 0, 1), 1).unwrap().stamps, [Stamp::ZERO]);
    world.run(true);
    world.crash().unwrap();
    world.run(true);
    assert_eq!(world.read(span(1, 0, 32), 1).unwrap().stamps, [Stamp::ZERO; 32]);
    assert_eq!(words(&world.read(span(2, 40, 20), 1).unwrap().content), [2; 20]);
    let used = world.store.space().used_bytes;
    assert!(used > 0 && used < both * 2 / 3, "{used} of {both}");
    world.command(Command::Discard { volume: VolumeId(2), stretch: None });
    world.run(true);
    assert_eq!((world.store.space().used_bytes, world.store.stats().pages.count), (0, 0));
}

#[test]
fn allocation_tells_holes_from_data() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    write_all(&mut world, 1, 3, &[1, 2], 1).unwrap();
    assert_eq!(world.allocation(span(1, 0, 40)), [(3, false), (2, true), (35, false)]);
    world.run(true);
    assert_eq!(world.allocation(span(1, 0, 40)), [(16, true), (24, false)]);
    world.write(staged(span(1, 3, 2), 2, Change::Zero), Payload::new()).unwrap();
    world.run(true);
    assert_eq!(world.allocation(span(1, 0, 5000)), [(5000, false)]);
    assert_eq!(world.store.space().used_bytes, 0);
}

/// A client that copies a volume takes a hole for zeros. What nobody can read any more is no hole: a read of it is repaired, or
/// fails.
#[test]
fn blocks_of_a_damaged_metadata_sector_are_no_holes() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    write_all(&mut world, 1, 3, &[1, 2], 1).unwrap();
    write_all(&mut world, 1, 200, &[3], 2).unwrap();
    world.run(true);
    world.disk.spoil(64 * 1024 + JOURNAL, &mut Rng::with_seed(4), 1);
    world.crash().unwrap();
    assert_eq!(world.read(span(1, 3, 2), 1).unwrap().unreadable, [0, 1]);
    assert_eq!(world.allocation(span(1, 0, 256)), [(32, true), (160, false), (16, true), (48, false)]);
}

/// A block whose content no member has any more is marked as lost: it has a stamp and no slot, and is no hole.
#[test]
fn a_lost_block_is_no_hole() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    let (token, stamps) = (world.next_token(), vec![Stamp(7)]);
    world.command(Command::Mend { token, span: span(1, 40, 1), width: 1, stamps, payload: Payload::new() });
    world.run(true);
    assert_eq!(world.allocation(span(1, 0, 64)), [(32, false), (16, true), (16, false)]);
    world.crash().unwrap();
    assert_eq!(world.allocation(span(1, 0, 64)), [(32, false), (16, true), (16, false)]);
}

/// What is read from the disk around a block that memory has.
#[test]
fn a_block_in_memory_between_blocks_at_home() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    write_all(&mut world, 1, 0, &[1, 2, 3, 4, 5], 1).unwrap();
    world.run(true);
    write_all(&mut world, 1, 1, &[7], 2).unwrap();
    write_all(&mut world, 1, 3, &[8], 3).unwrap();
    let read = world.read(span(1, 0, 5), 1).unwrap();
    assert_eq!((words(&read.content), read.unreadable), (vec![1, 7, 3, 8, 5], vec![]));
}

#[test]
fn blocks_never_written_need_no_disk() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.command(Command::Read {
        token: Token(1),
        span: span(9, 1 << 40, 256),
        width: 4,
        content: true,
        contested: None,
    });
    let Some(Reply::Read { result: Ok(blocks), .. }) = world.replies.pop() else {
        panic!("no answer at once")
    };
    assert!(blocks.content.is_zero() && blocks.stamps == [Stamp::ZERO; 1024] && blocks.unreadable.is_empty());
}

#[test]
fn one_flush_carries_many_writes() {
    let mut world = World::new(8 << 20, 1 << 20, 3);
    let before = world.store.stats();
    let stage = |world: &mut World, n: u64| {
        let staged = staged(span(1, n, 1), n + 1, Change::Data);
        world.command(Command::Stage { token: Token(n), staged, payload: payload([n]), kept_bytes: 0 });
    };
    stage(&mut world, 0);
    world.settle();
    (1..30).for_each(|n| stage(&mut world, n));
    world.run(false);
    let after = world.store.stats();
    assert_eq!(
        (after.disk.durable_writes - before.disk.durable_writes, after.disk.flushes - before.disk.flushes),
        (2, 0)
    );
    assert_eq!(world.replies.len(), 30);
}

#[test]
fn room_that_is_kept_for_others_is_left_over() {
    let mut world = World::new(16 << 20, 1 << 20, 3);
    let (little, more_than_the_journal) = (16 << 10, 1 << 20);
    let results = [(1, little), (2, more_than_the_journal), (3, 0)].map(|(n, kept_bytes)| {
        let staged = staged(span(1, 16 * n, 4), n, Change::Data);
        world.stage_beside(staged, payload([n; 4]), kept_bytes)
    });
    assert_eq!(results, [Ok(()), Err(StoreError::NoRoomYet), Ok(())]);
}

#[test]
fn large_writes_are_not_written_twice() {
    let mut world = World::new(16 << 20, 1 << 20, 3);
    world.command(Command::Stage {
        token: Token(1),
        staged: staged(span(1, 16, 256), 1, Change::Data),
        payload: payload([6; 256]),
        kept_bytes: 0,
    });
    world.settle();
    let writes = world.in_flight().filter_map(|kind| match kind {
        IoKind::Write { payload, .. } => Some(payload.len()),
        _ => None,
    });
    assert_eq!(writes.sum::<usize>(), (256 + 1) * BLOCK);
    world.run(false);
    assert_eq!(world.store.stats().disk.flushes, 1);
    world.command(Command::Apply { stamp: Stamp(1) });
    world.run(true);
    assert_eq!(world.store.stats().destage.blocks, 0);
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(1, 16, 256), 1).unwrap().content), [6; 256]);
}

#[test]
fn a_full_queue_says_busy_and_recovers() {
    let mut world = World::new(8 << 20, 256 * 1024, 3);
    for n in 0..40 {
        let staged = staged(span(1, n, 1), n + 1, Change::Data);
        world.command(Command::Stage { token: Token(n), staged, payload: payload([n]), kept_bytes: 0 });
    }
    world.run(false);
    let results: Vec<_> = world
        .replies
        .drain(..)
        .filter_map(|reply| match reply {
            Reply::Staged { result, .. } => Some(result),
            _ => None,
        })
        .collect();
    let good = results.iter().filter(|result| result.is_ok()).count() as u64;
    assert!(good > 5 && results.contains(&Err(StoreError::NoRoomYet)), "{results:?}");
    (0..40).for_each(|n| world.command(Command::Apply { stamp: Stamp(n + 1) }));
    world.run(true);
    write_all(&mut world, 1, 100, &[1], 100).unwrap();
    let large = staged(span(2, 1, 14), 200, Change::Data);
    assert_eq!(
        world.write(large, payload([1; 14])),
        Err(StoreError::NoSpace),
        "more than the journal can hold"
    );
}

/// A journal of 256 KiB takes about 51 KiB of writes that are not decided. What waits for others of its own makes no room for itself.
#[test]
fn writes_that_are_decided_together_and_never_find_room_at_once_hear_so() {
    let record = 99;
    let part = |n: u64, linked: bool| {
        let mut staged = staged(span(1, 16 * n + 1, 4), n, Change::Data);
        let link = wire::Link::new(base::GroupId(1), 1 << 43, Stamp(record));
        staged.write.link = linked.then_some(link);
        staged
    };
    let last = |linked| {
        let mut world = World::new(8 << 20, 256 * 1024, 3);
        (1..=3).for_each(|n| assert_eq!(world.stage_beside(part(n, linked), payload([n; 4]), 0), Ok(())));
        world.stage_beside(staged(span(1, 1 << 20, 4), record, Change::Data), payload([9; 4]), 0)
    };
    assert_eq!(last(false), Err(StoreError::NoRoomYet), "others end");
    assert_eq!(last(true), Err(StoreError::NoSpace));
}

fn note(world: &mut World, key: &[u8], bytes: usize) -> Result<(), StoreError> {
    let value = Some(vec![key[0]; bytes]).filter(|_| bytes > 0);
    world.command(Command::Note { token: Token(1), key: key.to_vec(), value });
    world.run(false);
    match world.replies.pop() {
        Some(Reply::Noted { result, .. }) => result,
        other => panic!("{other:?}"),
    }
}

/// What the notes of a disk say, by key.
fn sizes(world: &mut World) -> Vec<(u8, usize)> {
    let notes = world.crash().unwrap().notes;
    notes.iter().map(|(key, value)| (key[0], value.len())).collect()
}

/// Checkpoints repeat at most a twentieth of the journal of them: the others lie in sheets. Before, there was no room for more.
#[test]
fn notes_have_room_beyond_their_share_of_the_journal() {
    let mut world = World::new(8 << 20, 256 * 1024, 3);
    // A twentieth of 256 KiB is 13107 bytes; a note takes its key, its value, and 8.
    assert_eq!(note(&mut world, &[1], 13_107 - 9 + 1), Err(StoreError::NoSpace));
    assert_eq!(note(&mut world, &[1], 6000), Ok(()));
    assert_eq!(world.store.stats().journal.sheets, 0);
    assert_eq!(note(&mut world, &[2], 13_107 - 6009 - 9), Ok(()));
    for key in 3..60 {
        assert_eq!(note(&mut world, &[key], 5000), Ok(()));
    }
    assert!(world.store.stats().journal.sheets > 4, "{:?}", world.store.stats().journal);
    let others = || (3..60).map(|key| (key, 5000));
    let first = [(1, 6000), (2, 13_107 - 6009 - 9)];
    assert_eq!(sizes(&mut world), first.into_iter().chain(others()).collect::<Vec<_>>());
    assert_eq!(note(&mut world, &[1], 7000), Ok(()), "longer");
    assert_eq!(note(&mut world, &[2], 0), Ok(()), "gone");
    assert_eq!(sizes(&mut world), [(1, 7000)].into_iter().chain(others()).collect::<Vec<_>>());
    for key in 3..60 {
        assert_eq!(note(&mut world, &[key], 0), Ok(()));
    }
    assert_eq!(sizes(&mut world), [(1, 7000)]);
    // What is gone gives its room back, once a checkpoint is due for it.
    for round in 0..40 {
        assert_eq!(note(&mut world, &[2, round], 5000), Ok(()));
        assert_eq!(note(&mut world, &[2, round], 0), Ok(()));
    }
    assert!(world.store.stats().journal.sheets <= 1, "{:?}", world.store.stats().journal);
}

/// A disk without room for a sheet refuses notes, and takes what gives room; once there is room it takes all.
#[test]
fn notes_that_find_no_room_for_a_sheet_are_refused_until_there_is_some() {
    let mut world = World::new(8 << 20, 256 * 1024, 3);
    let mut stamp = 0;
    let mut written = Vec::new();
    // Zeros and repairs may have the last slots: mends take all.
    for lba in (0..).step_by(16) {
        stamp += 1;
        let token = world.next_token();
        let (stamps, payload) = (vec![Stamp(stamp); 16], payload([stamp; 16]));
        world.command(Command::Mend { token, span: span(1, lba, 16), width: 1, stamps, payload });
        world.run(false);
        match world.replies.pop() {
            Some(Reply::Staged { result: Ok(()), .. }) => written.push(lba),
            Some(Reply::Staged { result: Err(StoreError::NoSpace), .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    let mut refused = 0;
    for key in 1..40 {
        match note(&mut world, &[key], 1000) {
            Ok(()) => {}
            Err(StoreError::NoSpace) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!((20..30).contains(&refused), "{refused} of 39 found no room");
    // A barrier behind a note that is refused takes nothing of the journal.
    let head = world.store.stats().journal.head_bytes;
    for _ in 0..5 {
        world.command(Command::Note { token: Token(1), key: vec![99], value: Some(vec![1; 1000]) });
        world.command(Command::Barrier { token: Token(2) });
        world.run(false);
        let refused = Reply::Noted { token: Token(1), result: Err(StoreError::NoSpace) };
        assert_eq!(world.replies, [refused, Reply::Noted { token: Token(2), result: Ok(()) }]);
        world.replies.clear();
    }
    assert_eq!(world.store.stats().journal.head_bytes, head);
    assert_eq!(note(&mut world, &[1], 500), Ok(()), "it takes less room");
    assert_eq!(note(&mut world, &[2], 0), Ok(()));
    world.command(Command::Discard { volume: VolumeId(1), stretch: None });
    world.run(true);
    for key in 1..40 {
        assert_eq!(note(&mut world, &[key], 1000), Ok(()));
    }
    assert_eq!(sizes(&mut world), (1..40).map(|key| (key, 1000)).collect::<Vec<_>>());
}

/// Found in a review: what came and went after a checkpoint was taken for something that a sheet says, once the disk was opened again. The next checkpoint
/// named all of it, and found no room.
#[test]
fn what_came_and_went_takes_no_room_of_a_checkpoint_after_a_restart() {
    // Short of what would have the next checkpoint write a sheet.
    (100..200).step_by(5).for_each(|bytes| come_and_go(&vec![0; bytes]));
}

fn come_and_go(name: &[u8]) {
    let mut world = World::new(16 << 20, 1 << 20, 3);
    for key in 1..30 {
        assert_eq!(note(&mut world, &[key], 1000), Ok(()));
    }
    assert!(world.store.stats().journal.sheets > 0);
    world.run(true);
    // Each in a frame of its own, until the journal is full, and power goes in the cycle that this begins: its checkpoint is the last frame.
    let is_in_cycle = |world: &World| world.in_flight().any(|kind| matches!(kind, IoKind::Flush));
    let mut round: u32 = 0;
    'full: loop {
        round += 1;
        let key = [&[2], &round.to_le_bytes()[..], name].concat();
        for value in [Some(vec![1]), None] {
            world.command(Command::Note { token: Token(1), key: key.clone(), value });
            world.settle();
            while world.in_flight().next().is_some() {
                if is_in_cycle(&world) {
                    break 'full;
                }
                world.complete();
                world.settle();
            }
        }
    }
    assert!((100..200).contains(&round), "{round}");
    world.crash().unwrap();
    for bytes in [900, 901] {
        assert_eq!(note(&mut world, &[1], bytes), Ok(()));
        world.run(true);
        let notes = world.crash().unwrap().notes;
        assert_eq!(notes[0], (vec![1], vec![1; bytes]));
    }
}

/// There are two copies of each sheet. With one that is damaged the disk opens, and has the sheet written anew; with both it does not open.
#[test]
fn a_damaged_copy_of_notes_is_written_anew() {
    let mut world = World::new(8 << 20, 256 * 1024, 3);
    let fill = |world: &mut World| {
        (1..9).for_each(|key| note(world, &[key], 1000).unwrap());
        assert_eq!(world.store.stats().journal.sheets, 1);
        // Its copies are in the first slots.
        let start = world.store.blocks_region().expect("it is open").start;
        [start, start + 64 * 1024]
    };
    let places = fill(&mut world);
    let mut rng = Rng::with_seed(4);
    let noted: Vec<(u8, usize)> = (1..9).map(|key| (key, 1000)).collect();
    for place in places {
        world.disk.spoil(place, &mut rng, 1);
        let report = fsck::check(&mut world.disk, false).unwrap();
        let found: Vec<(&str, State)> =
            report.findings.iter().map(|found| (found.what.name(), found.state)).collect();
        assert_eq!(found, [("notes-copy", State::Harmless)]);
        assert_eq!(sizes(&mut world), noted);
        assert_eq!(world.store.stats().journal.sheets_written, 0);
        world.run(true);
        assert_eq!(world.store.stats().journal.sheets_written, 1, "with the next checkpoint");
        assert_eq!(fsck::check(&mut world.disk, false).unwrap().findings, []);
        assert_eq!(sizes(&mut world), noted);
        if place == places[0] {
            world = World::new(8 << 20, 256 * 1024, 3);
            fill(&mut world);
        }
    }
    let mut world = World::new(8 << 20, 256 * 1024, 3);
    for place in fill(&mut world) {
        world.disk.spoil(place, &mut rng, 1);
    }
    assert!(matches!(world.crash(), Err(OpenError::NotesCorrupt { .. })));
}

#[test]
fn a_failed_write_or_flush_breaks_the_store_for_good() {
    let journal: fn(&IoKind) -> bool = |kind| matches!(kind, IoKind::Write { durable: true, .. });
    let flush: fn(&IoKind) -> bool = |kind| matches!(kind, IoKind::Flush);
    for (which, fault) in [(journal, IoFault::Failed("gone".into())), (flush, IoFault::Unreadable)] {
        let mut world = World::new(8 << 20, 1 << 20, 3);
        let staged = staged(span(1, 0, 17), 1, Change::Data);
        let direct = which(&IoKind::Flush);
        let count = if direct { 17 } else { 3 };
        let staged =
            wire::disk::Staged { write: wire::WriteId { span: span(1, 0, count), ..staged.write }, ..staged };
        world.command(Command::Stage {
            token: Token(1),
            staged,
            payload: payload(vec![1; count as usize]),
            kept_bytes: 0,
        });
        world.command(Command::Note { token: Token(2), key: vec![1], value: None });
        world.settle();
        while !world.fail_one(which, fault.clone()) {
            assert!(world.complete());
        }
        assert!(matches!(&world.replies[0], Reply::Broken { .. }), "{:?}", world.replies);
        assert_eq!(world.replies[1], Reply::Staged { token: Token(1), result: Err(StoreError::Failed) });
        assert_eq!(world.replies[2], Reply::Noted { token: Token(2), result: Err(StoreError::Failed) });
        world.run(true);
        assert_eq!(world.read(span(1, 0, 1), 1).unwrap_err(), StoreError::Failed);
        assert_eq!(world.in_flight().count(), 0, "a failed flush is not tried again");
    }
}

#[test]
fn a_lost_frame_behind_which_others_stand_is_not_rolled_back() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    (0..5).for_each(|n| write_all(&mut world, 1, n, &[n], n + 1).unwrap());
    let mut rng = Rng::with_seed(4);
    // The second frame: its block lies behind the sector of its header.
    world.disk.spoil(64 * 1024 + 3 * BLOCK_U64, &mut rng, 1);
    let error = world.crash().unwrap_err();
    assert_eq!(error, OpenError::JournalCorrupt { offset: 64 * 1024 + 2 * BLOCK_U64 });
}

#[test]
fn a_lost_frame_that_a_header_vouches_for_is_not_taken_for_a_torn_one() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.command(Command::Note { token: Token(1), key: vec![1], value: Some(vec![2]) });
    write_all(&mut world, 1, 0, &[1], 1).unwrap();
    world.run(true);
    // Everything is at home but the note, which only the checkpoint holds: the last frame.
    let frames = world.store.stats().journal.written_bytes;
    let offset = 64 * 1024 + frames - BLOCK_U64;
    world.disk.spoil(offset, &mut Rng::with_seed(4), 1);
    assert_eq!(world.crash().unwrap_err(), OpenError::JournalCorrupt { offset });
}

/// A sector of the journal that nobody needs cannot be read. What was acknowledged just before it must not go with it.
#[test]
fn a_bad_sector_beside_the_journals_frames_costs_nothing() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    (0..5).for_each(|n| write_all(&mut world, 1, n, &[n + 1], n + 1).unwrap());
    world.disk.bad.extend([(64 * 1024 + JOURNAL / 2) / 512, (64 * 1024 + JOURNAL - BLOCK_U64) / 512 + 3]);
    let recovered = world.crash().unwrap();
    assert_eq!(recovered.staged.len() + recovered.completions.len(), 5);
    // Nor does one of the two headers, or one of the superblocks.
    for n in 5..8 {
        write_all(&mut world, 1, n, &[n + 1], n + 1).unwrap();
        world.run(true);
    }
    for sector in [4096 / 512, 8192 / 512 + 1, 0] {
        world.disk.bad = [sector].into();
        world.crash().unwrap();
        assert_eq!(words(&world.read(span(1, 5, 3), 1).unwrap().content), [6, 7, 8], "sector {sector}");
    }
}

#[test]
fn rotten_data_and_metadata_are_told_and_mended() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    write_all(&mut world, 1, 0, &(0..12).collect::<Vec<_>>(), 1).unwrap();
    write_all(&mut world, 1, 40, &(0..12).collect::<Vec<_>>(), 2).unwrap();
    world.run(true);
    let mut rng = Rng::with_seed(4);
    // Rot in one block at home; its neighbours are good.
    let first = at_home(&world, 3);
    world.disk.spoil(first, &mut rng, 1);
    let read = world.read(span(1, 40, 12), 1).unwrap();
    assert_eq!(read.unreadable, [3]);
    let mut expected: Vec<u64> = (0..12).collect();
    expected[3] = 0;
    assert_eq!(words(&read.content), expected);
    // A sector that cannot be read.
    world.disk.bad.insert(at_home(&world, 5) / 512);
    assert_eq!(world.read(span(1, 40, 12), 1).unwrap().unreadable, [3, 5]);
    world.disk.bad.clear();
    // Rot in the metadata: the second sector, of blocks 32 to 63.
    let pages_at = 64 * 1024 + JOURNAL;
    world.disk.spoil(pages_at + 512, &mut rng, 1);
    world.crash().unwrap();
    let read = world.read(span(1, 0, 64), 1).unwrap();
    assert_eq!(read.unreadable, (32..64).collect::<Vec<_>>());
    assert_eq!(read.stamps[..12], [Stamp(1); 12]);
    // A mend and a write make their blocks good, and only those.
    let stamps = vec![Stamp(9); 20];
    world.command(Command::Mend {
        token: Token(5),
        span: span(1, 36, 20),
        width: 1,
        stamps,
        payload: payload([8; 20]),
    });
    write_all(&mut world, 1, 60, &[7], 3).unwrap();
    world.run(true);
    world.crash().unwrap();
    let read = world.read(span(1, 0, 64), 1).unwrap();
    let still: Vec<u32> = (32..64).filter(|n| !(36..56).contains(n) && *n != 60).collect();
    assert_eq!(read.unreadable, still);
    assert_eq!((words(&read.content)[40], words(&read.content)[60]), (8, 7));
}

/// Deltas to parity whose other units nobody wrote leave it stamps of zero, in planes that have no page. What has rotted
/// there is mended where it lies: it asks for no pages that it never had, as a full disk has none.
#[test]
fn rotten_parity_is_mended_on_a_disk_without_a_page_to_spare() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.map = MapUse::Ignored;
    world.config.cache_bytes = 0;
    world.open().unwrap();
    let delta = Change::Xor { index: 0, width: 4, previous: vec![Stamp::ZERO] };
    world.write(staged(span(1, 44, 1), 1, delta), payload([77])).unwrap();
    world.run(true);
    let zero = |page: u64| staged(span(2, page * 256, 1), page + 2, Change::Zero);
    let pages =
        (0..).find(|&page| world.write(zero(page), Payload::new()) == Err(StoreError::NoSpace)).unwrap();
    world.run(true);
    assert_eq!(world.stage(zero(pages), Payload::new()), Err(StoreError::NoSpace));
    let mend = |world: &mut World, stamps: [u64; 4]| {
        let (token, stamps) = (world.next_token(), stamps.map(Stamp).to_vec());
        let payload = payload([77]);
        world.command(Command::Mend { token, span: span(1, 44, 1), width: 4, stamps, payload });
        world.run(false);
        match world.replies.pop() {
            Some(Reply::Staged { token: t, result }) if t == token => result,
            other => panic!("{other:?}"),
        }
    };
    let rotten = at_home(&world, 77);
    for is_home in [false, true] {
        world.disk.spoil(rotten, &mut Rng::with_seed(4), 1);
        assert_eq!(world.read(span(1, 44, 1), 4).unwrap().unreadable, [0]);
        assert_eq!(mend(&mut world, [1, 9, 0, 0]), Err(StoreError::NoSpace), "a stamp that is new");
        assert_eq!(mend(&mut world, [1, 0, 0, 0]), Ok(()));
        world.run(is_home);
        world.crash().unwrap();
        let read = world.read(span(1, 44, 1), 4).unwrap();
        assert_eq!((read.unreadable, words(&read.content)), (vec![], vec![77]));
        assert_eq!(read.stamps, [1, 0, 0, 0].map(Stamp));
        world.run(true);
    }

    // A page is lost before a mend is home, and from now on zeros need pages: those of the mend have none, and are unknown.
    world.disk.spoil(rotten, &mut Rng::with_seed(4), 1);
    assert_eq!(mend(&mut world, [1, 0, 0, 0]), Ok(()));
    world.disk.spoil(64 * 1024 + JOURNAL + 4096, &mut Rng::with_seed(4), 8);
    world.crash().unwrap();
    assert_eq!(world.store.stats().pages.lost, 1);
    world.run(true);
    world.crash().unwrap();
    assert_eq!(world.read(span(1, 44, 1), 4).unwrap().unreadable, [0]);
    assert_eq!(world.read(span(2, 512, 1), 1).unwrap().stamps, [Stamp(4)], "what was not lost is there");
}

/// Where a page was lost, what has none is not known to be zero: a mend says that it is.
#[test]
fn stamps_of_zero_are_told_where_a_page_was_lost() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.map = MapUse::Ignored;
    write_all(&mut world, 2, 0, &[3], 1).unwrap();
    let delta = Change::Xor { index: 0, width: 3, previous: vec![Stamp::ZERO] };
    world.write(staged(span(1, 44, 1), 2, delta), payload([77])).unwrap();
    world.run(true);
    // That of volume 1 is the first.
    world.disk.spoil(64 * 1024 + JOURNAL + 4096, &mut Rng::with_seed(4), 8);
    world.crash().unwrap();
    assert_eq!(world.store.stats().pages.lost, 1);
    assert_eq!(world.read(span(1, 44, 1), 3).unwrap().unreadable, [0]);
    let stamps = [2, 0, 0].map(Stamp).to_vec();
    world.command(Command::Mend {
        token: Token(5),
        span: span(1, 44, 1),
        width: 3,
        stamps,
        payload: payload([77]),
    });
    for is_home in [false, true] {
        world.run(is_home);
        world.crash().unwrap();
        let read = world.read(span(1, 44, 1), 3).unwrap();
        assert_eq!((read.unreadable, words(&read.content)), (vec![], vec![77]));
        assert_eq!(read.stamps, [2, 0, 0].map(Stamp));
    }
}

#[test]
fn a_lost_page_is_never_taken_for_a_hole() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.map = MapUse::Ignored;
    write_all(&mut world, 1, 0, &[1, 2], 1).unwrap();
    write_all(&mut world, 2, 0, &[3, 4], 2).unwrap();
    world.run(true);
    world.disk.spoil(64 * 1024 + JOURNAL, &mut Rng::with_seed(4), 8);
    world.crash().unwrap();
    assert_eq!(world.store.stats().pages.lost, 1);
    assert_eq!(world.read(span(1, 0, 2), 1).unwrap().unreadable, [0, 1]);
    assert_eq!(words(&world.read(span(2, 0, 2), 1).unwrap().content), [3, 4]);
    write_all(&mut world, 1, 0, &[5], 3).unwrap();
    world.run(true);
    world.crash().unwrap();
    let read = world.read(span(1, 0, 2), 1).unwrap();
    assert_eq!((words(&read.content)[0], read.unreadable), (5, vec![1]));
}

#[test]
fn a_delta_over_lost_parity_stays_lost() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    let change = Change::Parity { width: 2 };
    world.write(staged(span(1, 0, 2), 1, change), payload([6, 7])).unwrap();
    world.run(true);
    let at = at_home(&world, 6);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    world.disk.spoil(at, &mut Rng::with_seed(4), 1);
    let delta = Change::Xor { index: 1, width: 2, previous: vec![Stamp(1); 2] };
    world.write(staged(span(1, 0, 2), 5, delta), payload([1, 1])).unwrap();
    for _ in 0..2 {
        let read = world.read(span(1, 0, 2), 2).unwrap();
        assert_eq!(read.stamps, [1, 5, 1, 5].map(Stamp));
        assert_eq!((read.unreadable, words(&read.content)), (vec![0], vec![0, 6]));
        world.run(true);
        world.crash().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Noise anywhere: the disk is refused, or every block is right, older than the noise, or told to be unreadable.
    #[test]
    fn noise_is_never_returned(seed: u64, at in 0u64..(2 << 20) / 512, sectors in 1u64..300) {
        let mut world = World::new(2 << 20, 128 * 1024, seed);
        for n in 0..30 {
            let lba = n % 6 * 11;
            write_all(&mut world, 1, lba, &vec![n * 100; 2 + n as usize % 4], n + 1).unwrap();
            if n % 7 == 0 {
                world.run(true);
            }
        }
        let before = world.read(span(1, 0, 70), 1).unwrap();
        let sectors = sectors.min((2 << 20) / 512 - at);
        let mut rng = Rng::with_seed(seed);
        world.disk.spoil(at * 512, &mut rng, sectors);
        if world.crash().is_ok() {
            let after = world.read(span(1, 0, 70), 1).unwrap();
            let (was, is) = (words(&before.content), words(&after.content));
            for block in (0..70).filter(|block| !after.unreadable.contains(block)) {
                let block = block as usize;
                let stamp = after.stamps[block];
                // The last frame may be taken for a torn one; what is there then is an older write, whole.
                prop_assert!(stamp <= before.stamps[block]);
                prop_assert!(stamp != before.stamps[block] || is[block] == was[block]);
                prop_assert!(stamp.is_zero() == (is[block] == 0 && stamp != Stamp(1)) || stamp == Stamp(1));
                prop_assert!(stamp.is_zero() || is[block] == (stamp.0 - 1) * 100);
            }
            world.run(true);
        }
    }
}

#[test]
fn an_old_configuration_opens_a_grown_disk() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    write_all(&mut world, 1, 0, &[1], 1).unwrap();
    world.run(true);
    world.config = config(16 << 20);
    world.disk.bytes = 16 << 20;
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(1, 0, 1), 1).unwrap().content), [1]);
}

#[test]
fn a_read_that_is_left_to_another_brick_is_over_and_nothing_else_is() {
    let mut world = World::new(8 << 20, JOURNAL, 1);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    write_all(&mut world, 1, 0, &[5, 6], 1).unwrap();
    world.run(true);
    let token = world.next_token();
    world.command(Command::Read { token, span: span(1, 0, 1), width: 1, content: true, contested: None });
    // Its metadata page first, if that is not in memory.
    while !world.in_flight().any(|kind| matches!(kind, IoKind::Read { length: BLOCK, .. })) {
        assert!(world.complete(), "the block is not in memory");
    }
    assert!(world.fail_one(|kind| matches!(kind, IoKind::Read { .. }), IoFault::Left));
    assert_eq!(world.replies.pop(), Some(Reply::Read { token, result: Err(StoreError::Left) }));
    let blocks = world.read(span(1, 0, 2), 1).unwrap();
    assert_eq!((words(&blocks.content), blocks.unreadable), (vec![5, 6], Vec::new()));
}

/// A read of two slots that do not lie together leads to two requests: had one of them been left, the other would have been served for
/// nothing.
#[test]
fn only_a_read_of_one_request_is_contested_at_the_disk() {
    let mut world = World::new(8 << 20, JOURNAL, 1);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    let values: Vec<u64> = (0..32).collect();
    write_all(&mut world, 1, 0, &values, 1).unwrap();
    world.run(true);
    let holders = [BrickId(1), BrickId(2)].into();
    let contested = Some(Contested { attempt: Attempt::default(), holders });
    let cases = [(1, false, 1, true), (16, false, 1, true), (32, false, 1, true), (32, true, 2, false)];
    for (count, is_first_moved, requests, are_contested) in cases {
        if is_first_moved {
            // It is written anew, to a slot behind the other.
            write_all(&mut world, 1, 0, &values[..16], 2).unwrap();
            world.run(true);
        }
        let (token, contested) = (world.next_token(), contested.clone());
        world.command(Command::Read { token, span: span(1, 0, count), width: 1, content: true, contested });
        let asked: Vec<bool> = world
            .in_flight()
            .filter_map(|kind| match kind {
                IoKind::Read { contested, .. } => Some(contested.is_some()),
                _ => None,
            })
            .collect();
        assert_eq!(asked, vec![are_contested; requests], "{count} blocks, {is_first_moved}");
        world.run(false);
    }
}

#[test]
fn a_metadata_page_is_not_left_to_another_brick() {
    let mut world = World::new(8 << 20, JOURNAL, 1);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    write_all(&mut world, 1, 0, &[5, 6], 1).unwrap();
    world.run(true);
    world.crash().unwrap();
    let token = world.next_token();
    world.command(Command::Read { token, span: span(1, 0, 2), width: 1, content: true, contested: None });
    assert!(world.fail_one(|kind| matches!(kind, IoKind::Read { length: BLOCK, .. }), IoFault::Left));
    assert!(world.replies.is_empty(), "it is asked for again");
    world.run(false);
    match world.replies.pop() {
        Some(Reply::Read { result: Ok(blocks), .. }) => {
            assert_eq!((words(&blocks.content), blocks.unreadable), (vec![5, 6], Vec::new()));
        }
        other => panic!("{other:?}"),
    }
}
