//! A client that brings more than the disk takes home, and goes by what the store says of its room.

use crate::common::*;
use std::collections::BTreeSet;
use store::IoKind;
use wire::Change;
use wire::disk::{Command, Reply, Token};

const DATA: u64 = 1;
/// Writes under way, of so many blocks at most: what is not decided stays within a quarter of the bound.
const WINDOW: usize = 24;
const WRITE_MAX: u32 = 4;

/// What came of many writes over so many blocks: how often the client had to wait for room, and the most that was in use of the journal.
struct Outcome {
    waited: u32,
    journal_most: f64,
}

/// One write home in so many steps; all else is done at once. With one in one step the client waits until the disk has nothing to do.
fn overload(seed: u64, blocks: u64, journal_bytes: u64, slow: u32) -> Outcome {
    let mut world = World::new(128 << 20, journal_bytes, seed);
    let mut outcome = Outcome { waited: 0, journal_most: 0.0 };
    let (mut stamp, mut under_way) = (0, BTreeSet::<(Token, u64)>::new());
    let mut steps = 0;
    while stamp < 6000 || !under_way.is_empty() {
        steps += 1;
        assert!(steps < 4_000_000, "it comes to an end");
        let keeps_up = slow == 1 && stamp < 6000;
        if keeps_up && world.complete() {
        } else if stamp < 6000 && under_way.len() < WINDOW && world.room > 0 {
            stamp += 1;
            let count = world.rng.u32(1..=WRITE_MAX);
            let lba = world.rng.u64(..blocks / 8) * 8;
            let content = payload((0..u64::from(count)).map(|at| stamp + at));
            if world.room != u64::MAX {
                world.room = world.room.saturating_sub(content.len() as u64);
            }
            let token = world.next_token();
            let staged = staged(span(DATA, lba, count), stamp, Change::Data);
            under_way.insert((token, stamp));
            world.command(Command::Stage { token, staged, payload: content, kept_bytes: 0 });
        } else {
            outcome.waited += u32::from(world.room == 0);
            let may_go_home = world.rng.u32(..slow) == 0;
            let is_done = match may_go_home {
                true => world.complete(),
                false => world.complete_if(|io| !matches!(io, IoKind::Write { durable: false, .. })),
            };
            if !is_done && world.waits_for_turn() {
                world.give_turn();
            } else if !is_done && may_go_home {
                world.wake();
            }
        }
        world.settle();
        for reply in std::mem::take(&mut world.replies) {
            let Reply::Staged { token, result } = reply else { continue };
            assert_eq!(result, Ok(()), "who goes by the store's room is not refused");
            let write = *under_way.iter().find(|write| write.0 == token).expect("each is answered once");
            under_way.remove(&write);
            world.command(Command::Apply { stamp: base::Stamp(write.1) });
        }
        let journal = world.store.stats().journal;
        outcome.journal_most =
            outcome.journal_most.max(journal.used_bytes as f64 / journal.capacity_bytes as f64);
    }
    world.run(true);
    assert_eq!(world.room, u64::MAX, "an idle disk holds nothing back");
    outcome
}

#[test]
fn who_goes_by_the_store_s_room_is_never_refused_however_slowly_the_disk_writes() {
    for seed in 0..6 {
        let outcome = overload(seed, 1 << 14, 32 << 20, 40);
        assert!(outcome.waited > 100, "it is held back: {}", outcome.waited);
    }
}

#[test]
fn the_journal_is_not_full_either_where_the_same_blocks_are_written_again_and_again() {
    for seed in 0..6 {
        let outcome = overload(seed, 24, 4 << 20, 40);
        assert!(outcome.waited > 0 && outcome.journal_most < 0.9, "{:.2} of it", outcome.journal_most);
    }
}

#[test]
fn a_disk_that_keeps_up_holds_nothing_back() {
    let outcome = overload(1, 1 << 14, 32 << 20, 1);
    assert_eq!(outcome.waited, 0);
}
