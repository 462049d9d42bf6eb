//! Random commands, random completions, and crashes at every point, against a reference model.

use crate::common::oracle::{Reached, Test};
use crate::common::{World, payload, span, staged, words};
use base::{Payload, Stamp};
use proptest::prelude::*;
use wire::Change;
use wire::disk::{Command, Reply, Token};

const DATA: u64 = 1;

fn run(seed: u64, steps: usize) -> Test {
    let mut test = Test::new(seed);
    (0..steps).for_each(|_| test.act());
    test.finish();
    test
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_acknowledged_is_lost(seed: u64) {
        run(seed, 1500);
    }
}

/// A large write goes beside its frame. A crash that keeps the frame and loses the rest must not leave it staged.
#[test]
fn a_large_write_is_staged_whole_or_not_at_all() {
    let mut found = [0, 0];
    for seed in 0..200 {
        let mut world = World::new(8 << 20, 1 << 20, seed);
        // The slot has an earlier content, which must not be taken for the new one.
        world.write(staged(span(DATA, 16, 16), 1, Change::Data), payload([1; 16])).unwrap();
        world.write(staged(span(DATA, 16, 16), 2, Change::Zero), Payload::new()).unwrap();
        world.run(true);
        let token = world.next_token();
        let write = staged(span(DATA, 32, 16), 3, Change::Data);
        world.command(Command::Stage { token, staged: write, payload: payload([3; 16]), kept_bytes: 0 });
        world.settle();
        let completions = world.rng.usize(..4);
        for _ in 0..completions {
            world.complete();
        }
        let recovered = world.crash().unwrap();
        found[recovered.staged.len()] += 1;
        if let Some(again) = recovered.staged.first() {
            // What is staged stays so over another crash behind later frames.
            world.write(staged(span(DATA, 64, 1), 4, Change::Data), payload([4])).unwrap();
            assert_eq!(world.crash().unwrap().staged[0], *again);
            world.command(Command::Apply { stamp: Stamp(3) });
            let read = world.read(span(DATA, 32, 16), 1).unwrap();
            assert_eq!((read.unreadable, words(&read.content)), (vec![], vec![3; 16]));
        } else {
            assert!(!world.replies.iter().any(|reply| matches!(reply, Reply::Staged { .. })));
        }
    }
    assert!(found[0] > 30 && found[1] > 30, "{found:?}");
}

/// A checkpoint is durable, the frame behind it is torn but for its header. The checkpoint must not be dropped then: the
/// frame that would take its place, torn in its turn, would stand before that header as if damaged.
#[test]
fn a_frame_torn_behind_a_checkpoint_does_not_accuse_the_next_one() {
    for seed in 0..200 {
        let mut world = World::new(8 << 20, 1 << 20, seed);
        // What the checkpoint says fills several sectors.
        world.command(Command::Note { token: Token(0), key: vec![1; 3000], value: Some(vec![2]) });
        world.write(staged(span(DATA, 0, 1), 1, Change::Data), payload([1])).unwrap();
        world.run(false);
        while !world.is_writing_home() {
            world.settle();
            assert!(world.complete() || world.wake());
        }
        // From now on no checkpoint comes first.
        world.config.limits.idle_ns = 3_600_000_000_000;
        for stamp in 2..5 {
            let token = world.next_token();
            let write = staged(span(DATA, stamp * 3, 3), stamp, Change::Data);
            world.command(Command::Stage {
                token,
                staged: write,
                payload: payload([stamp; 3]),
                kept_bytes: 0,
            });
            world.settle();
            world.crash().unwrap();
        }
    }
}

/// Decisions are lazy: those of deltas wait for the parity that they change, others for earlier ones on their blocks. Once a
/// barrier behind them is answered no crash shows their writes as staged again.
#[test]
fn what_is_decided_before_a_barrier_is_not_staged_again() {
    let mut found = [0, 0];
    for seed in 0..200 {
        let mut world = World::new(8 << 20, 1 << 20, seed);
        let parity = staged(span(DATA, 0, 4), 1, Change::Parity { width: 2 });
        world.write(parity, payload([1; 4])).unwrap();
        world.run(true);
        // Nothing is in memory any more: a delta has to read what it changes.
        world.crash().unwrap();
        let xor = |index, previous| Change::Xor { index, width: 2, previous: vec![Stamp(previous); 4] };
        world.stage(staged(span(DATA, 0, 4), 2, xor(0, 1)), payload([2; 4])).unwrap();
        world.stage(staged(span(DATA, 0, 4), 3, xor(1, 1)), payload([3; 4])).unwrap();
        world.stage(staged(span(DATA, 64, 1), 4, Change::Data), payload([4])).unwrap();
        world.stage(staged(span(DATA, 65, 1), 5, Change::Data), payload([5])).unwrap();
        let queued = world.next_token();
        let write = staged(span(DATA, 80, 1), 6, Change::Data);
        world.command(Command::Stage { token: queued, staged: write, payload: payload([6]), kept_bytes: 0 });
        for stamp in [Stamp(2), Stamp(3), Stamp(4), Stamp(6)] {
            world.command(Command::Apply { stamp });
        }
        world.command(Command::Drop { stamp: Stamp(5) });
        let token = world.next_token();
        world.replies.clear();
        world.command(Command::Barrier { token });
        for _ in 0..world.rng.usize(..12) {
            world.settle();
            world.complete();
        }
        let answered = world.replies.contains(&Reply::Noted { token, result: Ok(()) });
        let recovered = world.crash().unwrap();
        found[usize::from(answered)] += 1;
        assert!(!answered || recovered.staged.is_empty(), "{:?}", recovered.staged);
    }
    assert!(found[0] > 30 && found[1] > 30, "{found:?}");
}

/// A barrier with nothing before it is answered at once; on a disk that fails it is refused.
#[test]
fn a_barrier_is_always_answered() {
    let mut world = World::new(8 << 20, 1 << 20, 1);
    world.command(Command::Barrier { token: Token(7) });
    world.settle();
    assert_eq!(world.replies, [Reply::Noted { token: Token(7), result: Ok(()) }]);
}

/// Long runs, each on a journal of another size; every state that the test is about is reached.
#[test]
fn the_journal_wraps_around_many_times() {
    let all: Vec<Reached> = (0..12).map(|seed| run(seed, 12_000).reached).collect();
    let sum = |of: fn(&Reached) -> u64| all.iter().map(of).sum::<u64>();
    assert!(sum(|r| r.acknowledged) > 2000, "{all:?}");
    assert!(sum(|r| r.staged_again) > 100, "{all:?}");
    assert!(sum(|r| r.crashes) > 50 && sum(|r| r.crashes_while_going_home) > 5, "{all:?}");
    assert!(sum(|r| r.destages) > 100 && sum(|r| r.direct_blocks) > 2000, "{all:?}");
    assert!(sum(|r| r.laps) > 10, "{all:?}");
    assert!(sum(|r| r.discards) > 50 && sum(|r| r.written_after_discard) > 10, "{all:?}");
    assert!(sum(|r| r.sheets_written) > 50 && all.iter().any(|r| r.sheets_max > 2), "{all:?}");
    assert!(sum(|r| r.mapped) > 20 && sum(|r| r.mapped_with_stale) > 5, "{all:?}");
    assert!(sum(|r| r.remembered) > 200 && sum(|r| r.torn_tails) > 5, "{all:?}");
}
