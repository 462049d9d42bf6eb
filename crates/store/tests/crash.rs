//! Random commands, random completions, and crashes at every point, against a reference model.

mod common;

use base::{Depth, Machine, Payload, Rng, Stamp};
use common::{World, payload, span, staged, words};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use wire::disk::{Blocks, Command, Recovered, Reply, Staged, StoreError};
use wire::{Change, Span};

const DATA: u64 = 1;
const PARITY: u64 = 2;
const WIDTH: u8 = 3;

type Block = (u64, u64);

/// A committed block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct State {
    stamps: [u64; WIDTH as usize],
    word: u64,
}

/// What becomes of one block.
#[derive(Clone, Copy, Debug)]
struct Op {
    /// Of the write, or of the mend.
    stamp: u64,
    kind: OpKind,
    word: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpKind {
    Data,
    Xor(u8),
    Parity,
    Mend,
}

impl State {
    fn after(mut self, op: &Op) -> State {
        match op.kind {
            OpKind::Data => self.stamps[0] = op.stamp,
            OpKind::Xor(index) => self.stamps[index as usize] = op.stamp,
            OpKind::Parity | OpKind::Mend => self.stamps = [op.stamp; WIDTH as usize],
        }
        self.word = if let OpKind::Xor(_) = op.kind { self.word ^ op.word } else { op.word };
        self
    }
}

/// All states of a block since the last start, and the operation that led to each but the first.
#[derive(Clone, Debug)]
struct History {
    states: Vec<State>,
    ops: Vec<Op>,
}

impl Default for History {
    fn default() -> History {
        History { states: vec![State::default()], ops: Vec::new() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Asked,
    Staged,
    Applied,
    Dropped,
}

struct Test {
    world: World,
    clock: u64,
    blocks: BTreeMap<Block, History>,
    writes: BTreeMap<u64, (Staged, Vec<u64>, Fate)>,
    applied: Vec<u64>,
    stage_tokens: BTreeMap<u64, u64>,
    mend_tokens: BTreeMap<u64, u64>,
    unsure_mends: BTreeSet<u64>,
    reads: BTreeMap<u64, (Span, Vec<usize>)>,
    notes: BTreeMap<u8, BTreeSet<Option<u8>>>,
    note_tokens: BTreeMap<u64, (u8, Option<u8>)>,
    reached: Reached,
}

/// How often a run got where it is meant to get.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    acknowledged: u64,
    staged_again: u64,
    crashes: u64,
    crashes_while_going_home: u64,
    destages: u64,
    direct_blocks: u64,
    laps: u64,
}

impl Test {
    fn new(seed: u64) -> Test {
        let journal = [128, 192, 256, 1024][seed as usize % 4] * 1024;
        Test {
            world: World::new(8 << 20, journal, seed),
            clock: 0,
            blocks: BTreeMap::new(),
            writes: BTreeMap::new(),
            applied: Vec::new(),
            stage_tokens: BTreeMap::new(),
            mend_tokens: BTreeMap::new(),
            unsure_mends: BTreeSet::new(),
            reads: BTreeMap::new(),
            notes: BTreeMap::new(),
            note_tokens: BTreeMap::new(),
            reached: Reached::default(),
        }
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.world.rng
    }

    fn act(&mut self) {
        match self.rng().u8(..100) {
            0..22 => self.stage(),
            22..35 => self.decide(),
            35..39 => self.mend(),
            39..46 => self.read(),
            46..49 => self.note(),
            49..62 => self.world.settle(),
            62..64 => drop(self.world.wake()),
            64..65 if self.rng().u8(..3) == 0 => self.crash(),
            _ => drop(self.world.complete()),
        }
        self.take_replies();
    }

    fn draw_span(&mut self) -> Span {
        let volume = if self.rng().bool() { DATA } else { PARITY };
        let big = self.rng().u8(..5) == 0;
        let count = if big { self.rng().u32(16..40) } else { self.rng().u32(1..6) };
        // Two metadata pages, four slots each; large writes are aligned every other time.
        let page = self.rng().u64(..2) * 256;
        let lba = if big && self.rng().bool() {
            self.rng().u64(..3) * 16
        } else {
            self.rng().u64(..(64 - count as u64))
        };
        span(volume, page + lba, count)
    }

    fn stage(&mut self) {
        let span = self.draw_span();
        let change = match (span.volume.0, self.rng().u8(..4)) {
            (DATA, 0) => Change::Zero,
            (DATA, _) => Change::Data,
            (_, 0) => Change::Parity { width: WIDTH },
            _ => Change::Xor {
                index: self.rng().u8(..WIDTH),
                width: WIDTH,
                previous: vec![Stamp(1); span.count as usize],
            },
        };
        let conflict = self.writes.values().any(|(other, _, fate)| {
            let apart = match (&change, &other.change) {
                (Change::Xor { index: a, .. }, Change::Xor { index: b, .. }) => a != b,
                _ => false,
            };
            *fate != Fate::Applied && *fate != Fate::Dropped && !apart && other.write.span.overlaps(&span)
        });
        if conflict {
            return;
        }
        self.clock += 1;
        let stamp = self.clock;
        let zero = change == Change::Zero;
        let content: Vec<u64> = (0..span.count).map(|_| if zero { 0 } else { self.rng().u64(..) }).collect();
        let payload = if zero { Payload::new() } else { payload(content.iter().copied()) };
        let staged = staged(span, stamp, change);
        let token = self.world.next_token();
        self.world.command(Command::Stage { token, staged: staged.clone(), payload });
        self.writes.insert(stamp, (staged, content, Fate::Asked));
        self.stage_tokens.insert(token, stamp);
    }

    fn decide(&mut self) {
        let undecided: Vec<u64> =
            self.writes.iter().filter(|(_, w)| w.2 == Fate::Staged).map(|(&stamp, _)| stamp).collect();
        if undecided.is_empty() {
            return;
        }
        let stamp = undecided[self.rng().usize(..undecided.len())];
        if self.rng().u8(..6) == 0 {
            self.writes.get_mut(&stamp).unwrap().2 = Fate::Dropped;
            return self.world.command(Command::Drop { stamp: Stamp(stamp) });
        }
        self.apply(stamp);
    }

    fn apply(&mut self, stamp: u64) {
        let (staged, content, fate) = self.writes.get_mut(&stamp).unwrap();
        *fate = Fate::Applied;
        let kind = match staged.change {
            Change::Data | Change::Zero => OpKind::Data,
            Change::Xor { index, .. } => OpKind::Xor(index),
            Change::Parity { .. } => OpKind::Parity,
        };
        for (i, &word) in content.iter().enumerate() {
            let block = (staged.write.span.volume.0, staged.write.span.lba + i as u64);
            push(&mut self.blocks, block, Op { stamp, kind, word });
        }
        self.applied.push(stamp);
        self.world.command(Command::Apply { stamp: Stamp(stamp) });
    }

    fn mend(&mut self) {
        let span = self.draw_span();
        self.clock += 1;
        let stamp = self.clock;
        let content: Vec<u64> = (0..span.count).map(|_| self.rng().u64(..)).collect();
        let token = self.world.next_token();
        let stamps = vec![Stamp(stamp); span.count as usize * WIDTH as usize];
        let payload = payload(content.iter().copied());
        self.world.command(Command::Mend { token, span, width: WIDTH, stamps, payload });
        if let Some(Reply::Staged { token: t, result: Err(_) }) = self.world.replies.last()
            && *t == token
        {
            self.world.replies.pop();
            return;
        }
        for (i, word) in content.into_iter().enumerate() {
            let block = (span.volume.0, span.lba + i as u64);
            push(&mut self.blocks, block, Op { stamp, kind: OpKind::Mend, word });
        }
        self.mend_tokens.insert(token, stamp);
        self.unsure_mends.insert(stamp);
    }

    fn read(&mut self) {
        let span = self.draw_span();
        let token = self.world.next_token();
        let seen = blocks_of(span).map(|b| self.blocks.entry(b).or_default().states.len() - 1).collect();
        self.reads.insert(token, (span, seen));
        self.world.command(Command::Read { token, span, width: WIDTH, content: true });
    }

    fn note(&mut self) {
        let (key, value) = (self.rng().u8(..4), Some(self.rng().u8(..)).filter(|v| *v > 60));
        let token = self.world.next_token();
        self.notes.entry(key).or_insert_with(|| BTreeSet::from([None])).insert(value);
        self.note_tokens.insert(token, (key, value));
        self.world.command(Command::Note { token, key: vec![key], value: value.map(|v| vec![v]) });
    }

    fn take_replies(&mut self) {
        for reply in std::mem::take(&mut self.world.replies) {
            match reply {
                Reply::Staged { token, result } => self.on_staged(token, result),
                Reply::Read { token, result } => self.on_read(token, result),
                Reply::Noted { token, result } => {
                    result.unwrap();
                    let (key, value) = self.note_tokens.remove(&token).unwrap();
                    // Notes asked for after this one may have been taken in already.
                    let later = self.note_tokens.values().filter(|(k, _)| *k == key).map(|(_, v)| *v);
                    let possible = later.chain([value]).collect();
                    self.notes.insert(key, possible);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn on_staged(&mut self, token: u64, result: Result<(), StoreError>) {
        if let Some(stamp) = self.mend_tokens.remove(&token) {
            result.unwrap();
            self.unsure_mends.remove(&stamp);
        } else if let Some(stamp) = self.stage_tokens.remove(&token) {
            match result {
                Ok(()) => {
                    self.writes.get_mut(&stamp).unwrap().2 = Fate::Staged;
                    self.reached.acknowledged += 1;
                }
                Err(StoreError::Failed) => panic!("the disk does not fail here"),
                Err(_) => drop(self.writes.remove(&stamp)),
            }
        }
    }

    fn on_read(&mut self, token: u64, result: Result<Blocks, StoreError>) {
        let (span, seen) = self.reads.remove(&token).unwrap();
        for ((block, found), seen) in blocks_of(span).zip(states(&result.unwrap())).zip(seen) {
            let history = &self.blocks[&block];
            assert!(
                history.states[seen..].contains(&found),
                "{block:?}: {found:?} is none of {history:?} from {seen}"
            );
        }
    }

    fn crash(&mut self) {
        let stats = self.world.store.stats();
        self.reached.crashes += 1;
        self.reached.crashes_while_going_home += u64::from(self.world.is_writing_home());
        self.reached.destages += stats.destages;
        self.reached.direct_blocks += stats.direct_blocks;
        self.reached.laps += stats.journal_bytes_written / stats.journal_capacity_bytes;
        let recovered = self.world.crash().unwrap();
        self.reached.staged_again += recovered.staged.len() as u64;
        self.reads.clear();
        self.stage_tokens.clear();
        self.mend_tokens.clear();
        self.note_tokens.clear();
        self.check_staged(&recovered);
        self.check_notes(&recovered);
        self.check_effects(&recovered);
        self.check_blocks(&recovered);
        self.go_on(&recovered);
    }

    fn check_staged(&self, recovered: &Recovered) {
        let found: BTreeMap<u64, &Staged> = recovered.staged.iter().map(|s| (s.write.stamp.0, s)).collect();
        for (stamp, (staged, _, fate)) in &self.writes {
            match found.get(stamp) {
                Some(found) => assert_eq!(*found, staged),
                None => assert_ne!(*fate, Fate::Staged, "acknowledged write {stamp} is lost"),
            }
        }
        assert!(found.keys().all(|stamp| self.writes.contains_key(stamp)), "a write that nobody asked for");
        // What is staged again was applied last, block by block.
        for history in self.blocks.values() {
            let again = history.ops.iter().map(|op| found.contains_key(&op.stamp));
            let mended_late = |op: &Op| op.kind == OpKind::Mend && self.unsure_mends.contains(&op.stamp);
            let settled =
                history.ops.iter().zip(again).filter(|(op, _)| !mended_late(op)).map(|(_, again)| again);
            assert!(settled.is_sorted(), "applied out of order: {history:?}");
        }
    }

    fn check_notes(&mut self, recovered: &Recovered) {
        let found: BTreeMap<u8, u8> = recovered.notes.iter().map(|(k, v)| (k[0], v[0])).collect();
        for (key, possible) in &mut self.notes {
            let value = found.get(key).copied();
            assert!(possible.contains(&value), "note {key} is {value:?}, not one of {possible:?}");
            *possible = BTreeSet::from([value]);
        }
        assert!(found.keys().all(|key| self.notes.contains_key(key)));
    }

    fn check_effects(&self, recovered: &Recovered) {
        let again: BTreeSet<u64> = recovered.staged.iter().map(|s| s.write.stamp.0).collect();
        let known: BTreeSet<u64> = recovered.effects.iter().map(|(_, _, stamp)| stamp.0).collect();
        for stamp in self.applied.iter().rev().take(50).filter(|stamp| !again.contains(stamp)) {
            assert!(known.contains(stamp), "the effect of {stamp} is forgotten");
        }
        for (request, part, stamp) in &recovered.effects {
            let Some((staged, ..)) = self.writes.get(&stamp.0) else { continue };
            assert_eq!((staged.request, staged.part), (*request, *part));
        }
    }

    fn check_blocks(&mut self, recovered: &Recovered) {
        let again: BTreeSet<u64> = recovered.staged.iter().map(|s| s.write.stamp.0).collect();
        for block in self.blocks.keys().copied().collect::<Vec<_>>() {
            let found = states(&self.world.read(span(block.0, block.1, 1), WIDTH).unwrap())[0];
            let history = self.blocks.get_mut(&block).unwrap();
            let ops: Vec<&Op> = history.ops.iter().filter(|op| !again.contains(&op.stamp)).collect();
            let unsure: Vec<u64> =
                ops.iter().map(|op| op.stamp).filter(|stamp| self.unsure_mends.contains(stamp)).collect();
            // Mends without an answer happened up to some point.
            let possible = (0..=unsure.len()).any(|sure| {
                let gone = &unsure[sure..];
                let ops = ops.iter().filter(|op| !gone.contains(&op.stamp));
                ops.fold(history.states[0], |state, op| state.after(op)) == found
            });
            assert!(possible, "{block:?}: {found:?} after {history:?}, staged again {again:?}");
            *history = History { states: vec![found], ops: Vec::new() };
        }
        self.unsure_mends.clear();
    }

    /// The participant finds out the fate of what is staged again.
    fn go_on(&mut self, recovered: &Recovered) {
        let again: BTreeSet<u64> = recovered.staged.iter().map(|s| s.write.stamp.0).collect();
        let order = std::mem::take(&mut self.applied);
        self.writes.retain(|stamp, _| again.contains(stamp));
        for stamp in order.into_iter().filter(|stamp| again.contains(stamp)) {
            self.apply(stamp);
        }
        for stamp in again {
            // What was dropped may turn out to be decided: it has to be whole, too.
            let undecided = self.rng().bool();
            let fate = &mut self.writes.get_mut(&stamp).unwrap().2;
            match fate {
                Fate::Asked => *fate = Fate::Staged,
                Fate::Dropped if undecided => *fate = Fate::Staged,
                Fate::Dropped => self.world.command(Command::Drop { stamp: Stamp(stamp) }),
                _ => {}
            }
        }
    }

    fn finish(&mut self) {
        self.world.run(true);
        self.take_replies();
        assert!(self.reads.is_empty() && self.stage_tokens.is_empty() && self.mend_tokens.is_empty());
        self.crash();
        self.world.run(true);
        self.world.store.check(Depth::Deep);
    }
}

fn push(blocks: &mut BTreeMap<Block, History>, block: Block, op: Op) {
    let history = blocks.entry(block).or_default();
    history.states.push(history.states.last().unwrap().after(&op));
    history.ops.push(op);
}

fn blocks_of(span: Span) -> impl Iterator<Item = Block> {
    (span.lba..span.end()).map(move |lba| (span.volume.0, lba))
}

fn states(blocks: &Blocks) -> Vec<State> {
    assert!(blocks.unreadable.is_empty(), "unreadable: {:?}", blocks.unreadable);
    let stamps = blocks.stamps.chunks(WIDTH as usize).map(|s| [s[0].0, s[1].0, s[2].0]);
    stamps.zip(words(&blocks.content)).map(|(stamps, word)| State { stamps, word }).collect()
}

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
        world.command(Command::Stage { token, staged: write, payload: payload([3; 16]) });
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

/// Long runs, each on a journal of another size; every state that the test is about is reached.
#[test]
fn the_journal_wraps_around_many_times() {
    let all: Vec<Reached> = (0..4).map(|seed| run(seed, 12_000).reached).collect();
    let sum = |of: fn(&Reached) -> u64| all.iter().map(of).sum::<u64>();
    assert!(sum(|r| r.acknowledged) > 2000, "{all:?}");
    assert!(sum(|r| r.staged_again) > 100, "{all:?}");
    assert!(sum(|r| r.crashes) > 50 && sum(|r| r.crashes_while_going_home) > 5, "{all:?}");
    assert!(sum(|r| r.destages) > 100 && sum(|r| r.direct_blocks) > 2000, "{all:?}");
    assert!(sum(|r| r.laps) > 10, "{all:?}");
}
