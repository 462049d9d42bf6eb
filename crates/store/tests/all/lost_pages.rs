//! Disks without a page to spare on which a metadata page is lost as a whole. Nobody knows whose it was, so that from then on
//! zeros need pages that nobody set aside, and a journal may need the very page that is gone.

use crate::common::{World, payload, span, staged, words};
use base::{Payload, Rng, Stamp};
use store::{MapUse, OpenError};
use wire::Change;
use wire::disk::{Command, Reply, StoreError};

const JOURNAL: u64 = 1 << 20;
const PAGES_AT: u64 = 64 * 1024 + JOURNAL;
/// The volume that takes all pages, and one whose only page can be given back.
const FILLER: u64 = 2;
const SPARE: u64 = 9;

/// Zeros in page `page` of the filling volume: they take a page and no slot.
fn fill(world: &mut World, page: u64) -> Result<(), StoreError> {
    world.write(staged(span(FILLER, page * 256, 1), page + 2, Change::Zero), Payload::new())
}

/// A disk with parity at one block of volume 1, whose stamps but the first are zero and have no page, and with pages taken by
/// the filling volume until none is left. Gives back how many that took.
fn full_disk() -> (World, u64) {
    let mut world = World::new(8 << 20, JOURNAL, 3);
    world.config.cache_bytes = 0;
    // With a map the brick would know whose page it was.
    world.config.map = MapUse::Ignored;
    world.open().unwrap();
    let delta = Change::Xor { index: 0, width: 4, previous: vec![Stamp::ZERO] };
    world.write(staged(span(1, 44, 1), 1, delta), payload([77])).unwrap();
    world.write(staged(span(SPARE, 0, 1), 1000, Change::Zero), Payload::new()).unwrap();
    world.run(true);
    let taken = (0..).find(|&page| fill(&mut world, page) == Err(StoreError::NoSpace)).unwrap();
    world.run(true);
    assert_eq!(fill(&mut world, taken), Err(StoreError::NoSpace));
    (world, taken)
}

/// Nothing of the page at a place can be read any more, and the power goes.
fn lose(world: &mut World, place: u64) -> Result<(), OpenError> {
    world.disk.spoil(PAGES_AT + place * 4096, &mut Rng::with_seed(4), 8);
    world.crash().map(drop)
}

fn mend(world: &mut World, stamps: [u64; 4]) -> Result<(), StoreError> {
    let (token, stamps) = (world.next_token(), stamps.map(Stamp).to_vec());
    world.command(Command::Mend { token, span: span(1, 44, 1), width: 4, stamps, payload: payload([77]) });
    world.run(false);
    match world.replies.pop() {
        Some(Reply::Staged { token: t, result }) if t == token => result,
        other => panic!("{other:?}"),
    }
}

/// Write 2000 is applied, durably.
fn apply(world: &mut World) {
    world.command(Command::Apply { stamp: Stamp(2000) });
    let token = world.next_token();
    world.command(Command::Barrier { token });
    world.run(false);
    assert!(world.replies.contains(&Reply::Noted { token, result: Ok(()) }));
}

/// Brings everything to its final place, which must not break the disk.
fn come_home(world: &mut World) {
    world.run(true);
    let broken = world.replies.iter().find(|reply| matches!(reply, Reply::Broken { .. }));
    assert_eq!(broken, None);
}

/// A mend was taken before the loss, so no pages were set aside for its zeros; a write behind it in the same cycle has its one
/// page. The zeros came first, took that page, and the write found none: the disk broke at each opening.
#[test]
fn zeros_take_no_page_that_was_set_aside_for_a_stamp() {
    for is_decided in [true, false] {
        let (mut world, _) = full_disk();
        world.command(Command::Discard { volume: base::VolumeId(SPARE), stretch: None });
        come_home(&mut world);
        assert_eq!(mend(&mut world, [1, 0, 0, 0]), Ok(()));
        let late = staged(span(3, 0, 1), 2000, Change::Zero);
        assert_eq!(world.stage(late.clone(), Payload::new()), Ok(()), "the last page is set aside for it");
        if is_decided {
            apply(&mut world);
        }
        lose(&mut world, 7).unwrap();
        if !is_decided {
            come_home(&mut world);
            world.command(Command::Apply { stamp: Stamp(2000) });
        }
        come_home(&mut world);
        world.crash().unwrap();
        let read = world.read(span(3, 0, 1), 1).unwrap();
        assert_eq!((read.stamps, read.unreadable), (vec![Stamp(2000)], vec![]));
        assert_eq!(
            world.read(span(1, 44, 1), 4).unwrap().unreadable,
            [0],
            "zeros that have no page are unknown"
        );
    }
}

/// The journal has content for blocks whose page is lost, and every other place is taken: there was no place for that page, and
/// the disk broke at each opening. It takes the lost one's, and what else was lost stays known as lost for ever.
#[test]
fn a_journal_that_needs_the_lost_page_opens_on_a_disk_full_of_pages() {
    for is_decided in [true, false] {
        let (mut world, taken) = full_disk();
        let again = staged(span(FILLER, 3 * 256 + 1, 1), 2000, Change::Zero);
        assert_eq!(world.stage(again, Payload::new()), Ok(()));
        if is_decided {
            apply(&mut world);
        }
        let place = page_of(&world, FILLER, 3);
        lose(&mut world, place).unwrap();
        world.command(Command::Apply { stamp: Stamp(2000) });
        come_home(&mut world);
        for _ in 0..2 {
            world.crash().unwrap();
            assert_eq!(world.store.stats().pages.lost, 1);
            let read = world.read(span(FILLER, 3 * 256, 3), 1).unwrap();
            assert_eq!((read.stamps, read.unreadable), ([0, 2000, 0].map(Stamp).to_vec(), vec![0, 2]));
            // The page might have been any volume's: whatever has none is unknown, not zero.
            assert_eq!(world.read(span(50, 0, 1), 1).unwrap().unreadable, [0]);
            assert_eq!(words(&world.read(span(1, 44, 1), 1).unwrap().content), [77]);
            let whole = world.read(span(FILLER, (taken - 1) * 256, 1), 1).unwrap();
            assert_eq!((whole.stamps, whole.unreadable), (vec![Stamp(taken + 1)], vec![]));
            come_home(&mut world);
        }
    }
}

/// What the lost page described comes back from redundancy block by block: a mend finds room in the lost page's place. Giving the
/// volume back does not make the loss forgotten.
#[test]
fn a_lost_page_is_mended_on_a_disk_full_of_pages() {
    let (mut world, _) = full_disk();
    let place = page_of(&world, 1, 0);
    lose(&mut world, place).unwrap();
    assert_eq!(world.read(span(1, 44, 1), 1).unwrap().unreadable, [0]);
    let token = world.next_token();
    let stamps = vec![Stamp(1)];
    world.command(Command::Mend { token, span: span(1, 44, 1), width: 1, stamps, payload: payload([77]) });
    come_home(&mut world);
    assert!(world.replies.contains(&Reply::Staged { token, result: Ok(()) }));
    world.crash().unwrap();
    let read = world.read(span(1, 44, 2), 1).unwrap();
    assert_eq!((words(&read.content)[0], read.unreadable), (77, vec![1]));

    world.command(Command::Discard { volume: base::VolumeId(1), stretch: None });
    come_home(&mut world);
    world.crash().unwrap();
    assert_eq!(world.store.stats().pages.lost, 1);
    assert_eq!(world.read(span(50, 0, 1), 1).unwrap().unreadable, [0]);
}

/// The power goes in the middle of cycles that write into the place of a lost page. Whatever sectors of them were written, a block
/// has the stamp that it was given, or is known to be lost; never does it pass for one that was never written.
#[test]
fn no_power_cut_makes_a_lost_page_pass_for_zeros() {
    for seed in 0..40 {
        let (mut world, taken) = full_disk();
        let mut rng = Rng::with_seed(seed);
        let again: Vec<u64> = (0..6).map(|_| rng.u64(..taken - 1)).collect();
        for (stamp, page) in (2000..).zip(&again) {
            let write = staged(span(FILLER, page * 256 + 1, 1), stamp, Change::Zero);
            assert_eq!(world.write(write, Payload::new()), Ok(()));
        }
        let lost = again[rng.usize(..again.len())];
        let place = page_of(&world, FILLER, lost);
        lose(&mut world, place).unwrap();
        for _ in 0..3 {
            for _ in 0..rng.u32(..40) {
                world.wake();
                world.settle();
                world.complete();
            }
            world.crash().unwrap();
        }
        come_home(&mut world);
        world.crash().unwrap();
        for page in 0..taken - 1 {
            let read = world.read(span(FILLER, page * 256, 1), 1).unwrap();
            let expected =
                if page == lost { (vec![Stamp::ZERO], vec![0]) } else { (vec![Stamp(page + 2)], vec![]) };
            assert_eq!((read.stamps, read.unreadable), expected, "seed {seed}, page {page} of {lost}");
        }
        assert_eq!(world.read(span(50, 0, 1), 1).unwrap().unreadable, [0]);
    }
}

/// The place of a page of plane 0.
fn page_of(world: &World, volume: u64, page: u64) -> u64 {
    let is_it = |place: &u64| {
        let sector = world.disk.read(PAGES_AT + place * 4096, 4096).unwrap();
        let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().unwrap());
        &sector[4..8] == b"BWPG" && (word(8), word(16), sector[24]) == (volume, page, 0)
    };
    (0..64).find(is_it).expect("the page is on the disk")
}
