//! The map of pages: what it says is compared with the pages at each opening, over crashes at every point; and where it is damaged,
//! missing or wrong, the pages count.

use crate::common::{World, options, payload, span, staged, words};
use base::{BLOCK_U64, Payload, Rng, Stamp, VolumeId};
use store::{FsckOptions, IoFault, IoKind, MapUse, Outcome, Sectors, fsck};
use wire::Change;
use wire::disk::Command;

const JOURNAL: u64 = 1 << 20;
const DISK: u64 = 64 << 20;
const PAGES_AT: u64 = 64 * 1024 + JOURNAL;
/// One page for each 128 KiB of what the journal leaves, the last twelfth of them for the map.
const PAGES: u64 = (DISK - PAGES_AT - BLOCK_U64) / (128 * 1024);
const MAP_PAGES: u64 = PAGES / 12;

/// Zeros in page `page` of a volume: they take a page and no slot.
fn fill(world: &mut World, volume: u64, page: u64, stamp: u64) {
    world.stage_without_turns(staged(span(volume, page * 256, 1), stamp, Change::Zero), Payload::new());
}

/// Hundreds of pages, so that a round takes several cycles; they come, change and go, and the power is cut at any point. The store asserts
/// at each opening that the map says what the pages say.
#[test]
fn rounds_of_many_cycles_say_what_the_pages_say() {
    let (mut mapped, mut stale, mut opened) = (0, 0, 0);
    for seed in 0..40 {
        let mut world = World::new(DISK, JOURNAL, seed);
        let mut rng = Rng::with_seed(seed);
        let mut stamp = 1;
        for _ in 0..40 {
            for _ in 0..rng.u64(1..25) {
                stamp += 1;
                let (volume, page) = (rng.u64(1..7), rng.u64(..60));
                match rng.u32(..20) {
                    0..3 => {
                        let stretch = rng.bool().then(|| rng.u64(..15));
                        world.command(Command::Discard { volume: VolumeId(volume), stretch });
                    }
                    3..9 => {
                        let write = staged(span(volume, page * 256, 1), stamp, Change::Data);
                        world.stage_without_turns(write, payload([stamp]));
                    }
                    _ => fill(&mut world, volume, page, stamp),
                }
            }
            if rng.u32(..3) == 0 {
                world.run(true);
            } else {
                go_on(&mut world, rng.u32(..120));
                world.crash().unwrap();
                let pages = world.store.stats().pages;
                (opened, mapped) = (opened + 1, mapped + u32::from(pages.is_mapped));
                stale += u32::from(pages.is_mapped && pages.read_at_open > 0);
                assert!(!pages.is_mapped || pages.read_at_open < 200, "{pages:?}");
            }
        }
    }
    assert!(mapped > opened / 10 * 8 && stale > 100, "{mapped} of {opened}, {stale} with stale pages");
}

/// A world with some pages, all at home.
fn used() -> World {
    let mut world = World::new(DISK, JOURNAL, 5);
    world.config.cache_bytes = 0;
    for page in 0..150 {
        let write = staged(span(1, page * 256, 2), page + 1, Change::Data);
        world.write(write, payload([page, page + 1000])).unwrap();
        world.run(page % 10 == 9);
    }
    world.run(true);
    world.crash().unwrap();
    let pages = world.store.stats().pages;
    assert_eq!((pages.count, pages.is_mapped, pages.read_at_open), (150, true, 0));
    world
}

fn holds_all(world: &mut World) {
    for page in 0..150 {
        let read = world.read(span(1, page * 256, 2), 1).unwrap();
        assert_eq!((words(&read.content), read.unreadable), (vec![page, page + 1000], vec![]));
    }
}

/// Wherever the map is damaged, by noise or by bad sectors, all pages are read, and soon there is a map again.
#[test]
fn a_damaged_map_is_not_believed() {
    let (mut believed, mut doubted) = (0, 0);
    for page in PAGES - MAP_PAGES..PAGES {
        let mut world = used();
        let offset = PAGES_AT + page * BLOCK_U64;
        if page % 2 == 0 {
            world.disk.spoil(offset + 512 * (page % 8), &mut Rng::with_seed(page), 1);
        } else {
            world.disk.bad.insert(offset / 512 + page % 8);
        }
        world.crash().unwrap();
        let pages = world.store.stats().pages;
        if pages.is_mapped {
            believed += 1;
            continue;
        }
        doubted += 1;
        assert_eq!(pages.read_at_open, 150);
        holds_all(&mut world);
        world.run(true);
        world.crash().unwrap();
        assert!(world.store.stats().pages.is_mapped, "an idle disk makes a new map");
        holds_all(&mut world);
    }
    assert!(believed > 0 && doubted > 1, "{believed} {doubted}");
}

/// Goes on for some steps, so that a cycle is somewhere in its middle.
fn go_on(world: &mut World, steps: u32) {
    for _ in 0..steps {
        world.settle();
        if !world.complete() {
            world.wake();
        }
    }
}

/// A disk so large that a round takes many cycles: what a cycle leaves unsaid stays so for a while.
const LARGE: u64 = 512 << 20;
const LARGE_PAGES: u64 = (LARGE - PAGES_AT - BLOCK_U64) / (128 * 1024);
/// Pages on it, all at home: a stretch has four.
const FILLED: u64 = 2400;

/// So many times the same large disk, each with other luck.
fn large_worlds(seeds: u64) -> impl Iterator<Item = (World, Rng)> {
    let mut first = World::new(LARGE, JOURNAL, 1);
    for page in 0..FILLED {
        fill(&mut first, 1, page, page + 1);
        first.run(page % 100 == 99);
    }
    let disk = first.disk;
    (0..seeds).map(move |seed| {
        let mut world = World::new(8 << 20, JOURNAL, seed);
        (world.disk, world.config.disk_bytes) = (disk.clone(), LARGE);
        world.open().unwrap();
        assert!(world.store.stats().pages.is_mapped);
        (world, Rng::with_seed(seed))
    })
}

/// Gives back the pages of a stretch, and interrupts the cycle that does so.
fn interrupt_discard(world: &mut World, rng: &mut Rng) {
    let stretch = rng.u64(..FILLED / 4);
    world.command(Command::Discard { volume: VolumeId(1), stretch: Some(stretch) });
    interrupt(world, rng);
}

/// Cuts the power when a cycle has written a page and has not ended.
fn interrupt(world: &mut World, rng: &mut Rng) {
    let pages = PAGES_AT..PAGES_AT + (LARGE_PAGES - LARGE_PAGES / 12) * BLOCK_U64;
    let is_page = |kind: &IoKind| matches!(kind, IoKind::Write { offset, durable: false, .. } if pages.contains(offset));
    while !world.in_flight().any(is_page) {
        world.settle();
        assert!(world.complete() || world.wake(), "a cycle gives the pages back");
    }
    for _ in 0..rng.u32(1..5) {
        world.complete_if(is_page);
    }
    world.cut_power();
}

/// Pages that an interrupted cycle has given back are free, also if no cycle ever writes them again.
#[test]
fn what_an_interrupted_cycle_gave_back_is_said_by_the_next_one() {
    let mut stale = 0;
    for (mut world, mut rng) in large_worlds(24) {
        interrupt_discard(&mut world, &mut rng);
        world.open().unwrap();
        let pages = world.store.stats().pages;
        stale += u32::from(pages.is_mapped && pages.read_at_open > 0);
        world.run(true);
        world.crash().unwrap();
    }
    assert!(stale > 20, "{stale}");
}

/// Whoever reads all pages knows no intents, and its first cycle takes their place: what the map was counts no more. Also where the power goes in
/// that cycle, and what made the map unreadable is over.
#[test]
fn a_map_that_was_not_gone_on_with_counts_no_more() {
    let mut tried = 0;
    for (mut world, mut rng) in large_worlds(24) {
        let before = generation(&world);
        interrupt_discard(&mut world, &mut rng);
        world.config.map = MapUse::Ignored;
        world.open().unwrap();
        interrupt_discard(&mut world, &mut rng);
        world.config.map = MapUse::Compared;
        world.open().unwrap();
        // Where the first cycle had given back all pages, one without any came to its end.
        if generation(&world) == before {
            assert!(!world.store.stats().pages.is_mapped);
            tried += 1;
        }
    }
    assert!(tried > 12, "{tried}");
}

/// Two cycles were interrupted, and nothing is left of the second one's intent: its checkpoint says that there was one. (Where the second checkpoint
/// took the place of the first one the journal is the same, and the first intent names all that the second one did.)
#[test]
fn an_intent_of_which_nothing_is_left_is_missed() {
    for (mut world, mut rng) in large_worlds(24) {
        let before = generation(&world);
        fill(&mut world, 2, 0, 10_000);
        interrupt(&mut world, &mut rng);
        // An idle disk would begin the next cycle at once, with its checkpoint in the place of the first one.
        world.config.limits.idle_ns = 3_600_000_000_000;
        world.open().unwrap();
        for page in 0..20 {
            let write = staged(span(3, page * 256, 1), 20_000 + page, Change::Data);
            world.stage_without_turns(write, payload([page]));
        }
        interrupt(&mut world, &mut rng);
        let (_, last) = intents(&world).max().expect("cycles have begun");
        world.disk.spoil(last, &mut rng, 8);
        world.open().unwrap();
        assert_eq!(generation(&world), before, "no cycle has come to its end");
        assert!(!world.store.stats().pages.is_mapped);
    }
}

/// That of the newest header.
fn generation(world: &World) -> u64 {
    headers(world)[0].0.max(headers(world)[1].0)
}

/// The generations of both headers, and where they lie.
fn headers(world: &World) -> [(u64, u64); 2] {
    [BLOCK_U64, 2 * BLOCK_U64].map(|offset| {
        let sector = world.disk.read(offset, 4096).unwrap();
        (u64::from_le_bytes(sector[12..20].try_into().unwrap()), offset)
    })
}

/// The intents in the ring of a large disk: their positions, and where they lie.
fn intents(world: &World) -> impl Iterator<Item = (u64, u64)> {
    let seed = u64::from(base::checksum(&[9; 16]));
    let mask = seed << 32 | seed;
    let places = LARGE_PAGES - LARGE_PAGES / 12..LARGE_PAGES;
    places.map(|place| PAGES_AT + place * BLOCK_U64).filter_map(move |offset| {
        let sector = world.disk.read(offset, 4096).unwrap();
        let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().unwrap()) ^ mask;
        let is_intent = word(0) == u64::from_le_bytes(*b"BWPGMAP1") && sector[28] == 0;
        is_intent.then(|| (word(8), offset))
    })
}

/// The newest header cannot be read, and the one before names a map that a later cycle went on with, and an interrupted one after that.
#[test]
fn the_header_before_the_newest_one_names_no_map() {
    for seed in 0..60 {
        let mut world = World::new(DISK, JOURNAL, seed);
        let mut rng = Rng::with_seed(seed);
        for page in 0..40 {
            fill(&mut world, 1, page, page + 1);
        }
        world.run(true);
        fill(&mut world, 1, 50, 1000);
        world.run(true);
        let write = staged(span(1, 7 * 256, 1), 2000, Change::Data);
        world.stage_without_turns(write, payload([9]));
        world.command(Command::Discard { volume: VolumeId(1), stretch: Some(3) });
        go_on(&mut world, rng.u32(..60));
        world.cut_power();
        let generation = |offset: u64| {
            let sector = world.disk.read(offset, 4096).unwrap();
            u64::from_le_bytes(sector[12..20].try_into().unwrap())
        };
        let newest =
            if generation(BLOCK_U64) > generation(2 * BLOCK_U64) { BLOCK_U64 } else { 2 * BLOCK_U64 };
        world.disk.bad.insert(newest / 512);
        world.open().unwrap();
        assert!(!world.store.stats().pages.is_mapped, "seed {seed}");
        world.run(true);
        world.crash().unwrap();
    }
}

/// What the ring holds of an earlier life of the disk is nothing.
#[test]
fn a_disk_that_is_formatted_again_has_a_map_of_its_own() {
    let mut world = used();
    let again = store::FormatOptions { uuid: [3; 16], ..options(DISK, JOURNAL) };
    for (offset, content) in store::format(again).unwrap() {
        world.disk.write(offset, &content.to_vec(), true);
    }
    world.open().unwrap();
    for page in 0..30 {
        fill(&mut world, 1, page, page + 1);
        world.run(true);
        world.crash().unwrap();
        assert!(world.store.stats().pages.is_mapped, "page {page}");
    }
}

/// Nobody but a reader or a scrub finds a page that rots while the map knows whose it is; and then it costs the blocks that it describes, and no
/// others.
#[test]
fn with_the_map_a_rotten_page_costs_its_own_blocks() {
    let mut world = used();
    world.disk.spoil(PAGES_AT + 7 * BLOCK_U64, &mut Rng::with_seed(4), 8);
    world.crash().unwrap();
    let pages = world.store.stats().pages;
    assert_eq!((pages.lost, pages.is_mapped), (0, true));
    assert_eq!(world.read(span(1, 7 * 256, 3), 1).unwrap().unreadable, [0, 1, 2]);
    assert_eq!(world.read(span(2, 0, 3), 1).unwrap().unreadable, [], "what was never written is zero");
    let stamps = vec![Stamp(8), Stamp(8)];
    let (token, content) = (world.next_token(), payload([7, 1007]));
    world.command(Command::Mend { token, span: span(1, 7 * 256, 2), width: 1, stamps, payload: content });
    world.run(true);
    world.crash().unwrap();
    assert!(world.store.stats().pages.is_mapped);
    holds_all(&mut world);
}

struct Raw<'a>(&'a mut World);

impl Sectors for Raw<'_> {
    fn read(&mut self, offset: u64, length: usize) -> Result<bytes::Bytes, IoFault> {
        self.0.disk.read(offset, length)
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IoFault> {
        self.0.disk.write(offset, bytes, true);
        Ok(())
    }
    fn sync(&mut self) -> Result<(), IoFault> {
        self.0.disk.sync(u64::MAX);
        Ok(())
    }
}

fn check(world: &mut World, repair: bool) -> (Outcome, Vec<&'static str>) {
    let options = FsckOptions { disk_bytes: DISK, owner: None, repair };
    let report = fsck(&mut Raw(world), &options, &mut |_, _| ()).unwrap();
    (report.outcome(), report.findings.iter().map(|finding| finding.what.name()).collect())
}

/// A page that is put back from an earlier copy.
#[test]
fn fsck_finds_a_map_that_the_pages_contradict() {
    let mut world = used();
    assert_eq!(check(&mut world, false), (Outcome::Clean, vec![]));
    let at = PAGES_AT + 7 * BLOCK_U64;
    let before = world.disk.read(at, BLOCK_U64 as usize).unwrap();
    world.write(staged(span(1, 7 * 256 + 100, 1), 3000, Change::Data), payload([3])).unwrap();
    world.run(true);
    world.disk.write(at, &before, true);
    assert_eq!(check(&mut world, false), (Outcome::Damaged, vec!["page-map"]));
    assert_eq!(check(&mut world, true), (Outcome::Repaired, vec!["page-map"]));
    assert_eq!(check(&mut world, false), (Outcome::Clean, vec![]));
    world.crash().unwrap();
    assert!(!world.store.stats().pages.is_mapped);
    holds_all(&mut world);
}

/// The releases before the map may have used the places that it lies in.
#[test]
fn a_disk_whose_last_places_have_pages_goes_on_without_a_map() {
    let mut world = World::new(8 << 20, JOURNAL, 5);
    // As they are in the map's places: the header says that all places were used.
    world.write(staged(span(1, 0, 1), 1, Change::Data), payload([1])).unwrap();
    world.run(true);
    let places = ((8 << 20) - PAGES_AT - BLOCK_U64) / (128 * 1024);
    let (_, at) = headers(&world).into_iter().max().unwrap();
    let mut header = world.disk.read(at, 4096).unwrap().to_vec();
    header[36..40].copy_from_slice(&(places as u32).to_le_bytes());
    header[64..].fill(0);
    let seed = base::checksum(&[9; 16]);
    let sum =
        base::checksum::checksum_append(base::checksum::checksum_append(seed, &header[..8]), &header[12..40]);
    header[8..12].copy_from_slice(&sum.to_le_bytes());
    world.disk.write(at, &header, true);
    for _ in 0..2 {
        world.crash().unwrap();
        let pages = world.store.stats().pages;
        assert_eq!((pages.is_mapped, pages.count, pages.read_at_open), (false, 1, places));
        world.write(staged(span(1, 0, 1), 2, Change::Data), payload([2])).unwrap();
        world.run(true);
        assert_eq!(words(&world.read(span(1, 0, 1), 1).unwrap().content), [2]);
    }
}
