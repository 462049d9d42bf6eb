//! What members that catch up, scrubs and the directory ask of a store beside reads and writes.

use crate::common::{World, options, payload, span, staged, words};
use base::{BLOCK, BLOCK_U64, ClientId, Payload, RequestId, Rng, Stamp, VolumeId};
use proptest::prelude::*;
use std::collections::BTreeSet;
use store::IoKind;
use wire::disk::{
    CLIENT_COMPLETIONS_MAX, Command, HORIZON_NOTE, INVENTORY_MAX, Recovered, Reply, StoreError, Token,
};
use wire::{Change, Completion, Wire};

const JOURNAL: u64 = 1 << 20;

fn write(world: &mut World, volume: u64, lba: u64, words: &[u64], stamp: u64) -> Result<(), StoreError> {
    let span = span(volume, lba, words.len() as u32);
    world.write(staged(span, stamp, Change::Data), payload(words.iter().copied()))
}

fn verify(world: &mut World, volume: u64, lba: u64, count: u32) -> wire::disk::Blocks {
    let token = world.next_token();
    world.command(Command::Verify { token, span: span(volume, lba, count), width: 1 });
    world.run(false);
    match world.replies.pop() {
        Some(Reply::Read { token: t, result }) if t == token => result.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_inventory_names_every_stretch_with_a_stamp_at_home_or_not() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    assert_eq!(world.inventory(None), []);
    let stretch = |volume, number| (VolumeId(volume), number);
    write(&mut world, 2, 5 * 1024 + 1023, &[1], 1).unwrap();
    world.write(staged(span(1, 7 * 1024, 3), 2, Change::Zero), Payload::new()).unwrap();
    world.run(true);
    // At home up to here; from here on in the journal only.
    write(&mut world, 2, 0, &[1], 3).unwrap();
    write(&mut world, u64::MAX, (1 << 40) - 1, &[1], 4).unwrap();
    let last = stretch(u64::MAX, (1 << 30) - 1);
    assert_eq!(world.inventory(None), [stretch(1, 7), stretch(2, 0), stretch(2, 5), last]);
    assert_eq!(world.inventory(Some(stretch(1, 7))), [stretch(2, 0), stretch(2, 5), last]);
    assert_eq!(world.inventory(Some(stretch(2, 1))), [stretch(2, 5), last]);
    assert_eq!(world.inventory(Some(last)), []);
    // Undecided, it is nothing yet; applied, it is, although only memory has it.
    world.stage(staged(span(3, 0, 1), 5, Change::Data), payload([1])).unwrap();
    assert_eq!(world.inventory(Some(stretch(2, 5))), [last]);
    world.command(Command::Apply { stamp: Stamp(5) });
    assert_eq!(world.inventory(Some(stretch(2, 5))), [stretch(3, 0), last]);
    world.command(Command::Discard { volume: VolumeId(2), stretch: Some(0) });
    assert_eq!(world.inventory(None), [stretch(1, 7), stretch(2, 5), stretch(3, 0), last]);
    world.run(true);
    world.crash().unwrap();
    assert_eq!(world.inventory(None), [stretch(1, 7), stretch(2, 5), stretch(3, 0), last]);
}

#[test]
fn a_long_inventory_comes_in_batches() {
    let mut world = World::new(640 << 20, 4 * JOURNAL, 3);
    let count = INVENTORY_MAX as u64 + 300;
    for n in 0..count {
        let zero = staged(span(n % 7, n * 1024, 1), n + 1, Change::Zero);
        world.write(zero, Payload::new()).unwrap();
    }
    let first = world.inventory(None);
    let second = world.inventory(first.last().copied());
    assert_eq!((first.len(), second.len()), (INVENTORY_MAX, 300));
    let expected: BTreeSet<_> = (0..count).map(|n| (VolumeId(n % 7), n)).collect();
    assert!(first.into_iter().chain(second).eq(expected));
}

#[test]
fn a_check_reads_the_disk_and_fills_no_cache() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    write(&mut world, 1, 0, &(10..30).collect::<Vec<_>>(), 1).unwrap();
    world.run(true);
    let home = |world: &World, word: u64| {
        let needle = word.to_le_bytes().repeat(BLOCK / 8);
        let all = (0..(8 << 20) / BLOCK_U64).rev();
        all.map(|n| n * BLOCK_U64).find(|at| world.disk.read(*at, BLOCK).unwrap() == needle).unwrap()
    };
    let (rotten, bad) = (home(&world, 13), home(&world, 17));
    world.read(span(1, 0, 20), 1).unwrap();
    world.disk.spoil(rotten, &mut Rng::with_seed(1), 1);
    world.disk.bad.insert(bad / 512);
    // The cache has all of it, and does not hide what the disk has become.
    let read = world.read(span(1, 0, 20), 1).unwrap();
    assert_eq!(words(&read.content), (10..30).collect::<Vec<_>>());
    let before = world.store.stats();
    let found = verify(&mut world, 1, 0, 24);
    assert_eq!((found.unreadable, found.content.len()), (vec![3, 7], 0));
    assert_eq!(found.stamps, [[Stamp(1); 20].as_slice(), &[Stamp::ZERO; 4]].concat());
    let after = world.store.stats();
    assert!(after.reads.cache_bytes <= before.reads.cache_bytes);
    assert!(after.reads.verified_blocks - before.reads.verified_blocks >= 20);
    // What was found stays found, so that who comes to repair it sees that there is something to repair.
    assert_eq!(world.read(span(1, 0, 20), 1).unwrap().unreadable, [3, 7]);
    // What is written again, or mended, is good.
    world.disk.bad.clear();
    let (token, stamps) = (world.next_token(), vec![Stamp(1)]);
    world.command(Command::Mend { token, span: span(1, 3, 1), width: 1, stamps, payload: payload([13]) });
    write(&mut world, 1, 7, &[17], 2).unwrap();
    assert_eq!(verify(&mut world, 1, 0, 24).unreadable, Vec::<u32>::new());
    world.run(true);
    assert_eq!(verify(&mut world, 1, 0, 24).unreadable, Vec::<u32>::new());
}

/// A scrub finds metadata rotten on the disk that memory still has, and has them written again.
#[test]
fn a_check_heals_metadata_that_are_rotten_on_the_disk_alone() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    write(&mut world, 1, 0, &(10..30).collect::<Vec<_>>(), 1).unwrap();
    world.run(true);
    let page = 64 * 1024 + JOURNAL;
    let good = world.disk.read(page, BLOCK).unwrap();
    world.disk.spoil(page + 512, &mut Rng::with_seed(1), 7);
    // Content of the page goes home in the very cycle that is to heal it.
    let staged = staged(span(1, 100, 1), 2, Change::Data);
    assert_eq!(verify(&mut world, 1, 0, 20).unreadable, Vec::<u32>::new());
    assert_eq!(world.store.stats().pages.rewritten, 1);
    world.run(true);
    assert_eq!(world.disk.read(page, BLOCK).unwrap(), good);
    world.disk.spoil(page, &mut Rng::with_seed(1), 2);
    world.stage(staged, payload([7])).unwrap();
    world.command(Command::Apply { stamp: Stamp(2) });
    assert_eq!(verify(&mut world, 1, 0, 20).unreadable, Vec::<u32>::new());
    world.run(true);
    world.crash().unwrap();
    let read = world.read(span(1, 0, 101), 1).unwrap();
    assert_eq!((read.unreadable, words(&read.content)[100], words(&read.content)[19]), (vec![], 7, 29));
    verify(&mut world, 1, 0, 20);
    assert_eq!(world.store.stats().pages.rewritten, 0, "nothing is wrong any more");
}

#[test]
fn what_took_effect_elsewhere_is_remembered_within_the_bounds() {
    let mut world = World::new(64 << 20, 4 * JOURNAL, 3);
    let effect = |sequence: u64| {
        let request = RequestId { client: ClientId(7), sequence };
        Completion { request, part: sequence % 3, stamp: Stamp(sequence) }
    };
    let count = CLIENT_COMPLETIONS_MAX as u64 + 100;
    world
        .command(Command::Remember { token: Token(5), completions: (1..=count).rev().map(effect).collect() });
    assert_eq!(world.replies, [], "not before the journal has it");
    world.run(false);
    assert_eq!(world.replies, [Reply::Noted { token: Token(5), result: Ok(()) }]);
    let expected: Vec<_> = (101..=count).map(effect).collect();
    assert_eq!(world.crash().unwrap().completions, expected);
    // A checkpoint has them too.
    write(&mut world, 1, 0, &[1], count + 1).unwrap();
    world.run(true);
    assert_eq!(world.crash().unwrap().completions.len(), CLIENT_COMPLETIONS_MAX + 1);
    // More than a small journal can take at once: the latest stay.
    let mut world = World::new(8 << 20, 128 * 1024, 3);
    world.command(Command::Remember { token: Token(5), completions: (1..=count).map(effect).collect() });
    world.run(true);
    assert_eq!(world.replies, [Reply::Noted { token: Token(5), result: Ok(()) }]);
    let effects = world.crash().unwrap().completions;
    assert!(effects.len() > 100 && effects.contains(&effect(count)), "{} are left", effects.len());
}

#[test]
fn what_is_remembered_again_stays_and_what_is_forgotten_is_under_the_horizon() {
    let mut world = World::new(8 << 20, 128 * 1024, 3);
    let effect = |sequence: u64| {
        let request = RequestId { client: ClientId(sequence % 7), sequence };
        Completion { request, part: 0, stamp: Stamp(sequence) }
    };
    let last = 1000;
    for sequence in 2..=last {
        let again = (sequence % 50 == 2).then_some(1);
        for sequence in again.into_iter().chain([sequence]) {
            world.command(Command::Remember { token: Token(sequence), completions: vec![effect(sequence)] });
            world.run(false);
        }
        if sequence % 300 != 0 && sequence != last {
            continue;
        }
        let Recovered { completions, completions_max, notes, .. } = *world.crash().unwrap();
        assert!(completions.len() <= completions_max && completions_max < last as usize / 2);
        assert!(completions.contains(&effect(1)), "it was remembered again at {sequence} at the latest");
        let note = notes.iter().find(|(key, _)| key == HORIZON_NOTE);
        let horizon = note.map_or(Stamp::ZERO, |(_, value)| Stamp::from_bytes(value).unwrap());
        assert_eq!(horizon > Stamp::ZERO, sequence as usize > completions_max, "{horizon:?} at {sequence}");
        let mut unknown = (1..=sequence).filter(|sequence| !completions.contains(&effect(*sequence)));
        assert!(
            unknown.all(|sequence| Stamp(sequence) <= horizon),
            "a brick would say that they never took effect"
        );
    }
}

#[test]
fn a_disk_has_an_identity_from_its_format_on() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    let first = world.store.identity().unwrap();
    world.crash().unwrap();
    assert_eq!(world.store.identity(), Some(first));
    let mut again = options(8 << 20, JOURNAL);
    again.uuid[..8].copy_from_slice(&0x0123_4567_89AB_CDEF_u64.to_le_bytes());
    for (offset, content) in store::format(again).unwrap() {
        world.disk.write(offset, &content.to_vec(), true);
    }
    world.open().unwrap();
    assert_eq!(world.store.identity(), Some(0x0123_4567_89AB_CDEF));
    let closed = store::Store::open(world.config.clone());
    assert_eq!(closed.identity(), None);
}

/// A stretch is given back; its neighbours, and other volumes, are not.
#[test]
fn a_discarded_stretch_gives_its_room_back_and_can_be_written_again() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    let places = [(1, 0), (1, 1000), (1, 1024), (1, 2047), (1, 2048), (2, 1024)];
    for (n, &(volume, lba)) in places.iter().enumerate() {
        write(&mut world, volume, lba, &[n as u64 + 1], n as u64 + 1).unwrap();
    }
    world.run(true);
    let used = world.store.space().used_bytes;
    write(&mut world, 1, 1500, &[9], 10).unwrap();
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(1) });
    let busy = world.stage(staged(span(1, 1024, 1), 11, Change::Data), payload([1]));
    assert_eq!(busy, Err(StoreError::Busy), "not before it is over");
    world.run(true);
    assert_eq!(world.store.space().used_bytes, used - 2 * (64 << 10));
    write(&mut world, 1, 2047, &[77], 12).unwrap();
    world.run(true);
    for _ in 0..2 {
        let mut word = |volume, lba| words(&world.read(span(volume, lba, 1), 1).unwrap().content)[0];
        let found = places.map(|(volume, lba)| word(volume, lba));
        assert_eq!((found, word(1, 1500)), ([1, 2, 0, 77, 5, 6], 0));
        world.crash().unwrap();
    }
}

/// More discards at once than a checkpoint has room for.
#[test]
fn many_discards_are_all_done() {
    let mut world = World::new(48 << 20, 128 * 1024, 3);
    for n in 0..300 {
        let zero = staged(span(n % 2 + 1, n * 1024, 1), n + 1, Change::Zero);
        world.write(zero, Payload::new()).unwrap();
    }
    world.run(true);
    assert_eq!(world.inventory(None).len(), 300);
    let discard = |volume, n| Command::Discard { volume: VolumeId(volume), stretch: Some(n) };
    (0..300).for_each(|n| world.command(discard(n % 2 + 1, n)));
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(u64::MAX) });
    assert_eq!(world.inventory(None), []);
    // Whoever has the answer to a note takes what it asked for before as durable.
    world.command(Command::Note { token: Token(7), key: vec![1], value: None });
    while !world.replies.contains(&Reply::Noted { token: Token(7), result: Ok(()) }) {
        world.settle();
        assert!(world.complete() || world.wake());
    }
    world.crash().unwrap();
    assert_eq!(world.inventory(None), []);
    world.run(true);
    world.crash().unwrap();
    assert_eq!((world.inventory(None).len(), world.store.stats().pages.count), (0, 0));
}

/// The parity that a delta changes is still being read when its blocks are given back; the delta must not come after that.
#[test]
fn a_delta_does_not_come_back_after_its_blocks_were_given_back() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.cache_bytes = 0;
    world.open().unwrap();
    world.write(staged(span(1, 0, 2), 1, Change::Parity { width: 2 }), payload([6, 7])).unwrap();
    world.run(true);
    let delta = Change::Xor { index: 1, width: 2, previous: vec![Stamp(1); 2] };
    world.stage(staged(span(1, 0, 2), 5, delta), payload([1, 1])).unwrap();
    world.command(Command::Apply { stamp: Stamp(5) });
    let token = world.next_token();
    let stamps = vec![Stamp(6); 2];
    world.command(Command::Mend { token, span: span(1, 1, 1), width: 2, stamps, payload: payload([9]) });
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(0) });
    let refused = Reply::Staged { token, result: Err(StoreError::Busy) };
    assert!(world.replies.contains(&refused), "a mend that waits for the delta: {:?}", world.replies);
    while world.store.stats().pages.count > 0 {
        world.settle();
        let more = world.complete_if(|kind| !matches!(kind, IoKind::Read { .. }));
        assert!(more || world.wake(), "the discard waits for the read");
    }
    world.run(true);
    assert_eq!((world.inventory(None), world.store.space().used_bytes), (vec![], 0));
}

#[test]
fn the_last_slots_are_not_for_new_data() {
    let mut world = World::new(6 << 20, JOURNAL, 3);
    let mut lba = 0;
    let error = loop {
        match write(&mut world, 1, lba, &[lba + 1; 16], lba + 1) {
            Ok(()) => lba += 16,
            Err(error) => break error,
        }
    };
    assert_eq!(error, StoreError::NoSpace);
    world.run(true);
    let space = world.store.space();
    let percent = space.used_bytes * 100 / space.capacity_bytes;
    assert!((93..=95).contains(&percent), "{percent} percent in use");
    // In one piece, in pieces, with others that are there already: new room is refused at once.
    let deny = |world: &mut World, lba: u64, count: usize| {
        let staged = staged(span(1, lba, count as u32), 9000, Change::Data);
        assert_eq!(world.stage(staged, payload(vec![1; count])), Err(StoreError::NoSpace), "{lba} {count}");
    };
    deny(&mut world, lba, 16);
    deny(&mut world, lba + 3, 2);
    deny(&mut world, lba - 16, 32);
    // What is there is written over, whole slots too; stamps of zeros, notes, mends go on.
    write(&mut world, 1, 0, &[50; 32], 9001).unwrap();
    write(&mut world, 1, 40, &[51; 3], 9002).unwrap();
    world.write(staged(span(1, lba, 16), 9003, Change::Zero), Payload::new()).unwrap();
    let mend = |world: &mut World, lba: u64| {
        let (token, stamps) = (world.next_token(), vec![Stamp(9004); 16]);
        let payload = payload([52; 16]);
        world.command(Command::Mend { token, span: span(1, lba, 16), width: 1, stamps, payload });
        world.run(true);
        world.replies.pop()
    };
    let mut mended = 0;
    while let Some(Reply::Staged { result: Ok(()), .. }) = mend(&mut world, lba + mended * 16) {
        mended += 1;
    }
    let space = world.store.space();
    assert!(mended > 2 && space.used_bytes == space.capacity_bytes, "{mended} {space:?}");
    world.crash().unwrap();
    assert_eq!(words(&world.read(span(1, 0, 32), 1).unwrap().content), [50; 32]);
    // Room that is given back is room for data again.
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(0) });
    world.run(true);
    write(&mut world, 1, 0, &[53; 32], 9005).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    /// On a disk that is full most of the time nothing is lost, no staged write fails to be applied, and nothing comes to
    /// a standstill.
    #[test]
    fn a_nearly_full_disk_loses_nothing(seed: u64) {
        let reached = crate::common::oracle::on_a_small_disk(seed);
        prop_assert!(reached.refused_for_space > 0, "{reached:?}");
    }
}

/// Nobody can make a block out: it is unreadable from now on, also over crashes and at home, until it is written or mended.
#[test]
fn a_block_that_is_mended_without_content_is_lost_until_it_is_written() {
    let mut world = World::new(8 << 20, 1 << 20, 1);
    world.write(staged(span(1, 0, 4), 1, Change::Data), payload([1; 4])).unwrap();
    world.run(true);
    let mend = |world: &mut World, lba, stamp, content| {
        let token = world.next_token();
        let (span, stamps) = (span(1, lba, 1), vec![Stamp(stamp)]);
        world.command(Command::Mend { token, span, width: 1, stamps, payload: content });
        world.run(false);
        assert!(world.replies.contains(&Reply::Staged { token, result: Ok(()) }));
    };
    mend(&mut world, 1, 5, Payload::new());
    mend(&mut world, 2, 5, Payload::new());
    for is_home in [false, true] {
        let read = world.read(span(1, 0, 4), 1).unwrap();
        assert_eq!(read.unreadable, [1, 2]);
        assert_eq!(words(&read.content), [1, 0, 0, 1]);
        world.run(!is_home);
        world.crash().unwrap();
    }
    mend(&mut world, 1, 5, payload([8]));
    world.write(staged(span(1, 2, 1), 6, Change::Data), payload([9])).unwrap();
    let read = world.read(span(1, 0, 4), 1).unwrap();
    assert_eq!((read.unreadable, words(&read.content)), (vec![], vec![1, 8, 9, 1]));
    assert_eq!(read.stamps, [1, 5, 6, 1].map(Stamp));
}

#[test]
fn what_another_member_keeps_in_memory_leaves_the_cache() {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    write(&mut world, 1, 0, &[1, 2], 1).unwrap();
    world.run(true);
    let misses = |world: &World| world.store.stats().reads.cache_misses;
    let read = |world: &mut World| words(&world.read(span(1, 0, 2), 1).unwrap().content);
    assert_eq!(read(&mut world), [1, 2]);
    assert_eq!(misses(&world), 0, "what was brought home is still in memory");
    world.command(Command::Forget { span: span(1, 0, 1) });
    assert_eq!(read(&mut world), [1, 2]);
    assert_eq!(misses(&world), 1, "the first block was read from the disk");
    assert_eq!(read(&mut world), [1, 2]);
    assert_eq!(misses(&world), 1, "and is kept");
    world.command(Command::Forget { span: span(9, 77, 3) });
    assert_eq!(read(&mut world), [1, 2]);
}

/// Each stamp of parity has a page of its own: they run out long before the slots do, and what asks how full the disk is
/// must see that. Nothing is on its way home when the first write is refused, and something always is later.
#[test]
fn a_disk_without_room_for_stamps_is_full() {
    let mut world = World::new(6 << 20, JOURNAL, 3);
    let parity = |lba: u64| staged(span(1, lba, 1), lba + 1, Change::Parity { width: 4 });
    let pages_apart = 1 << 10;
    let mut lba = 0;
    while world.write(parity(lba), payload([1])) == Ok(()) {
        world.run(true);
        lba += pages_apart;
    }
    assert_eq!(world.stage(parity(lba), payload([1])), Err(StoreError::NoSpace));
    let space = world.store.space();
    assert!(space.used_bytes * 100 / space.capacity_bytes < 50, "slots abound: {space:?}");
    assert_eq!(space.full_percent, 100);
    // What is there is written over, and being on its way home it makes no room for what is new.
    world.write(staged(span(1, 0, 1), 1 << 40, Change::Parity { width: 4 }), payload([2])).unwrap();
    assert_eq!(world.stage(parity(lba), payload([1])), Err(StoreError::NoSpace));
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(0) });
    world.run(true);
    assert!(world.store.space().full_percent < 100, "{:?}", world.store.space());
    world.write(parity(lba), payload([1])).unwrap();
}
