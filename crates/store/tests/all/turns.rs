//! Turns in which journalled content is destaged.

use crate::common::*;
use wire::Change;

const DATA: u64 = 1;
/// More blocks than a turn has.
const BLOCKS: u64 = 300;

/// A world with so much in its journal, which waits for its first turn.
fn waiting() -> World {
    let mut world = World::new(128 << 20, 32 << 20, 1);
    world.config.limits.destage_bytes = usize::MAX;
    // So a cycle begins with 309 blocks at the latest, and content begins to be held back when 412 are away.
    world.config.limits.backlog_bytes = 1100 * base::BLOCK;
    world.open().unwrap();
    for stamp in 1..=BLOCKS {
        // Each in a slot of its own.
        world.write(staged(span(DATA, stamp * 16, 1), stamp, Change::Data), payload([stamp])).unwrap();
    }
    world.run(false);
    while !world.waits_for_turn() {
        world.settle();
        assert!(world.complete_one() || world.wake(), "content is to be destaged");
    }
    world
}

#[test]
fn nothing_is_destaged_without_a_turn_and_a_turn_takes_no_more_than_its_blocks() {
    let mut world = waiting();
    let destaged = |world: &World| world.store.stats().destage.blocks;
    while world.complete_one() {}
    assert_eq!(destaged(&world), 0, "no turn was given");
    let mut before = 0;
    while world.give_turn() {
        while world.complete_one() {}
        assert_eq!(world.turns, world.turns_over, "what was begun in the turn is written");
        let now = destaged(&world);
        assert!(now > before && now - before <= 64 + 16, "a turn wrote {}", now - before);
        before = now;
    }
    assert_eq!((before, world.home), (BLOCKS, BLOCKS), "and the store tells of them");
    assert!(world.turns >= BLOCKS / 80, "{} turns", world.turns);
    assert_eq!(world.store.stats().destage.cycles, 1);
}

#[test]
fn a_write_that_lacks_room_needs_nobody_to_give_a_turn() {
    let mut world = waiting();
    assert_eq!(world.store.stats().destage.blocks, 0);
    // Together more than may be away from home.
    for stamp in BLOCKS + 1..=BLOCKS + 120 {
        let write = staged(span(DATA, stamp * 16, 1), stamp, Change::Data);
        world.stage_without_turns(write, payload([stamp]));
    }
    while world.complete_one() {
        world.settle();
    }
    assert_eq!(world.turns, 0);
    assert!(world.store.stats().destage.blocks >= BLOCKS, "{:?}", world.store.stats().destage);
}
