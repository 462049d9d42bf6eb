//! Random commands, random completions and crashes, against a reference model of what a disk must hold.

use super::{Disk, World, payload, span, staged, words};
use base::{Depth, Machine, Payload, RequestId, Rng, Stamp, VolumeId};
use std::collections::{BTreeMap, BTreeSet};
use wire::disk::{Blocks, Command, HORIZON_NOTE, Recovered, Reply, Staged, StoreError, Token};
use wire::{Change, Completion, Span, Wire};

const DATA: u64 = 1;
const PARITY: u64 = 2;
const WIDTH: u8 = 3;
/// Where blocks are written, on each volume: stretches 0, 1 and 5, and a second page in the first one.
const PLACES: [u64; 4] = [0, 256, 1024, 5 * 1024];
/// Blocks from each of them on.
const PLACE_BLOCKS: u64 = 80;

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
    Replace(u8),
    Xor(u8),
    Parity,
    /// With a bit for each entry that is not zero.
    Mend(u8),
    Discard,
}

impl State {
    fn after(mut self, op: &Op) -> State {
        match op.kind {
            OpKind::Data => self.stamps[0] = op.stamp,
            OpKind::Xor(index) | OpKind::Replace(index) => self.stamps[index as usize] = op.stamp,
            OpKind::Parity => self.stamps = [op.stamp; WIDTH as usize],
            OpKind::Mend(entries) => self.stamps = stamps_of(entries, op.stamp),
            OpKind::Discard => return State::default(),
        }
        self.word = if let OpKind::Xor(_) = op.kind { self.word ^ op.word } else { op.word };
        self
    }
}

/// `stamp` in the entries that have a bit, zero in the others.
fn stamps_of(entries: u8, stamp: u64) -> [u64; WIDTH as usize] {
    core::array::from_fn(|entry| if entries & 1 << entry == 0 { 0 } else { stamp })
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

/// A long run on a disk of 27 slots: less than the test wants to write.
pub fn on_a_small_disk(seed: u64) -> Reached {
    let mut test = Test::over(World::new(2_300_000, 256 * 1024, seed));
    (0..2500).for_each(|_| test.act());
    test.finish();
    test.reached
}

/// A store over a disk, and what is known of it.
/// What a note says: so many bytes of this one.
type NoteValue = Option<(u8, usize)>;

pub struct Test {
    pub world: World,
    clock: u64,
    blocks: BTreeMap<Block, History>,
    writes: BTreeMap<u64, (Staged, Vec<u64>, Fate)>,
    applied: Vec<u64>,
    stage_tokens: BTreeMap<Token, u64>,
    mend_tokens: BTreeMap<Token, u64>,
    /// Mends and discards of which it is not known whether the journal has them.
    unsure: BTreeSet<u64>,
    /// Discards that are unsure, and the token asked last before them.
    discards: Vec<(u64, Token)>,
    /// Writes whose blocks were given back.
    doomed: BTreeSet<u64>,
    remember_tokens: BTreeMap<Token, Vec<Completion>>,
    remembered: Vec<Completion>,
    reads: BTreeMap<Token, (Span, Vec<usize>)>,
    notes: BTreeMap<u8, BTreeSet<NoteValue>>,
    note_tokens: BTreeMap<Token, (u8, NoteValue)>,
    /// How long notes may be.
    note_bytes_max: usize,
    pub reached: Reached,
}

/// How often a run got where it is meant to get.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    pub acknowledged: u64,
    pub staged_again: u64,
    pub crashes: u64,
    pub crashes_while_going_home: u64,
    pub torn_tails: u64,
    pub destages: u64,
    pub direct_blocks: u64,
    pub laps: u64,
    pub discards: u64,
    pub written_after_discard: u64,
    pub remembered: u64,
    pub refused_for_space: u64,
    pub notes_refused: u64,
    pub sheets_written: u64,
    pub sheets_max: u64,
    /// Openings by the map of pages, and those at which some pages were stale.
    pub mapped: u64,
    pub mapped_with_stale: u64,
}

impl Test {
    /// Over an empty disk in memory.
    pub fn new(seed: u64) -> Test {
        let journal = [128, 192, 256, 1024][seed as usize % 4] * 1024;
        let note_bytes_max = [2, 400, 4000][seed as usize / 4 % 3];
        Test { note_bytes_max, ..Test::over(World::new(8 << 20, journal, seed)) }
    }

    /// Over a disk that was just formatted.
    pub fn over(world: World) -> Test {
        Test {
            world,
            clock: 0,
            blocks: BTreeMap::new(),
            writes: BTreeMap::new(),
            applied: Vec::new(),
            stage_tokens: BTreeMap::new(),
            mend_tokens: BTreeMap::new(),
            unsure: BTreeSet::new(),
            discards: Vec::new(),
            doomed: BTreeSet::new(),
            remember_tokens: BTreeMap::new(),
            remembered: Vec::new(),
            reads: BTreeMap::new(),
            notes: BTreeMap::new(),
            note_tokens: BTreeMap::new(),
            note_bytes_max: 2,
            reached: Reached::default(),
        }
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.world.rng
    }

    /// Any of what can happen, a crash included.
    pub fn act(&mut self) {
        if self.rng().u16(..300) == 0 {
            return self.crash();
        }
        self.go();
    }

    /// Any of what can happen but a crash.
    pub fn go(&mut self) {
        match self.rng().u8(..100) {
            0..22 => self.stage(),
            22..35 => self.decide(),
            35..39 => self.mend(),
            39..46 => self.read(),
            46..49 => self.note(),
            49..62 => self.world.settle(),
            62..64 => drop(self.world.wake()),
            64..65 if self.rng().u8(..3) == 0 => self.discard(),
            65..66 => self.remember(),
            _ => drop(self.world.complete()),
        }
        self.take_replies();
    }

    fn draw_span(&mut self) -> Span {
        let volume = if self.rng().bool() { DATA } else { PARITY };
        let big = self.rng().u8(..5) == 0;
        let count = if big { self.rng().u32(16..40) } else { self.rng().u32(1..6) };
        // Five slots a place; large writes are aligned every other time.
        let page = PLACES[self.rng().usize(..PLACES.len())];
        let lba = if big && self.rng().bool() {
            self.rng().u64(..3) * 16
        } else {
            self.rng().u64(..(PLACE_BLOCKS - count as u64))
        };
        span(volume, page + lba, count)
    }

    fn stage(&mut self) {
        let span = self.draw_span();
        let change = match (span.volume.0, self.rng().u8(..4)) {
            (DATA, 0) => Change::Zero,
            (DATA, _) => Change::Data,
            (_, 0) => Change::Parity { width: WIDTH },
            (_, 1) => Change::Replace {
                index: self.rng().u8(..WIDTH),
                width: WIDTH,
                previous: vec![Stamp(1); span.count as usize * usize::from(WIDTH)],
            },
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
        self.world.command(Command::Stage { token, staged: staged.clone(), payload, kept_bytes: 0 });
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
            Change::Replace { index, .. } => OpKind::Replace(index),
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
        // The first entry is a block's own. Others are zero as long as nobody wrote their units.
        let entries = self.rng().u8(..) | 1;
        let stamps = stamps_of(entries, stamp).map(Stamp).repeat(span.count as usize);
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
            push(&mut self.blocks, block, Op { stamp, kind: OpKind::Mend(entries), word });
        }
        self.mend_tokens.insert(token, stamp);
        self.unsure.insert(stamp);
    }

    fn read(&mut self) {
        let span = self.draw_span();
        let token = self.world.next_token();
        let seen = blocks_of(span).map(|b| self.blocks.entry(b).or_default().states.len() - 1).collect();
        self.reads.insert(token, (span, seen));
        self.world.command(Command::Read { token, span, width: WIDTH, content: true, contested: None });
    }

    fn note(&mut self) {
        let (key, length) = (self.rng().u8(..48), self.note_bytes_max);
        let value = (self.rng().u8(..), self.rng().usize(1..length));
        let value = Some(value).filter(|(byte, _)| *byte > 60);
        let token = self.world.next_token();
        self.notes.entry(key).or_insert_with(|| BTreeSet::from([None])).insert(value);
        self.note_tokens.insert(token, (key, value));
        self.world.command(Command::Note {
            token,
            key: vec![key],
            value: value.map(|(byte, length)| vec![byte; length]),
        });
    }

    fn remember(&mut self) {
        let token = self.world.next_token();
        let count = self.rng().u64(1..6);
        let effect = |part| {
            let request = RequestId { client: base::ClientId(90 + part % 2), sequence: 0 };
            Completion { request, part, stamp: Stamp(0) }
        };
        let mut completions: Vec<_> = (0..count).map(effect).collect();
        for Completion { request, stamp, .. } in &mut completions {
            self.clock += 1;
            (request.sequence, *stamp) = (self.clock, Stamp(self.clock));
        }
        self.remember_tokens.insert(token, completions.clone());
        self.world.command(Command::Remember { token, completions });
    }

    fn discard(&mut self) {
        let volume = if self.rng().bool() { DATA } else { PARITY };
        let place = PLACES[self.rng().usize(..PLACES.len())];
        let stretch = Some(place / Span::STRETCH_BLOCKS).filter(|_| self.rng().u8(..4) > 0);
        let is_in = |v: u64, lba: u64| v == volume && stretch.is_none_or(|s| s == lba / Span::STRETCH_BLOCKS);
        self.clock += 1;
        let stamp = self.clock;
        for (block, history) in &mut self.blocks {
            if is_in(block.0, block.1) {
                history.after(Op { stamp, kind: OpKind::Discard, word: 0 });
            }
        }
        for (&stamp, (staged, _, fate)) in &mut self.writes {
            if is_in(staged.write.span.volume.0, staged.write.span.lba) {
                self.doomed.insert(stamp);
                if *fate != Fate::Applied {
                    *fate = Fate::Dropped;
                }
            }
        }
        self.unsure.insert(stamp);
        self.discards.push((stamp, self.world.token));
        self.reached.discards += 1;
        self.world.command(Command::Discard { volume: VolumeId(volume), stretch });
    }

    /// What was asked before something that is in the journal is in the journal.
    fn is_logged(&mut self, token: Token) {
        let (sure, unsure) = std::mem::take(&mut self.discards).into_iter().partition(|d| d.1 < token);
        self.discards = unsure;
        let sure: Vec<(u64, Token)> = sure;
        self.unsure.retain(|stamp| !sure.iter().any(|(gone, _)| gone == stamp));
    }

    fn take_replies(&mut self) {
        for reply in std::mem::take(&mut self.world.replies) {
            match reply {
                Reply::Staged { token, result } => self.on_staged(token, result),
                Reply::Read { token, result } => self.on_read(token, result),
                Reply::Noted { token, result: Err(StoreError::NoSpace) } => {
                    self.note_tokens.remove(&token).expect("only a note is refused for want of room");
                    self.reached.notes_refused += 1;
                }
                Reply::Noted { token, result } => {
                    result.unwrap();
                    self.is_logged(token);
                    if let Some(effects) = self.remember_tokens.remove(&token) {
                        self.reached.remembered += effects.len() as u64;
                        self.remembered.extend(effects);
                        continue;
                    }
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

    fn on_staged(&mut self, token: Token, result: Result<(), StoreError>) {
        if let Some(stamp) = self.mend_tokens.remove(&token) {
            // A mend that waited for others may find its blocks given back.
            if result.is_ok() {
                self.unsure.remove(&stamp);
                self.is_logged(token);
            }
        } else if let Some(stamp) = self.stage_tokens.remove(&token) {
            match result {
                Ok(()) => {
                    let (staged, _, fate) = self.writes.get_mut(&stamp).unwrap();
                    if *fate == Fate::Asked {
                        *fate = Fate::Staged;
                    }
                    let block = (staged.write.span.volume.0, staged.write.span.lba);
                    let history = self.blocks.get(&block);
                    let discarded = |h: &History| h.ops.last().is_some_and(|op| op.kind == OpKind::Discard);
                    self.reached.written_after_discard += u64::from(history.is_some_and(discarded));
                    self.reached.acknowledged += 1;
                    self.is_logged(token);
                }
                Err(StoreError::Failed) => panic!("the disk does not fail here"),
                Err(error) => {
                    self.reached.refused_for_space += u64::from(error == StoreError::NoSpace);
                    self.writes.remove(&stamp);
                }
            }
        }
    }

    fn on_read(&mut self, token: Token, result: Result<Blocks, StoreError>) {
        let (span, seen) = self.reads.remove(&token).unwrap();
        for ((block, found), seen) in blocks_of(span).zip(states(&result.unwrap())).zip(seen) {
            let history = &self.blocks[&block];
            assert!(
                history.states[seen..].contains(&found),
                "{block:?}: {found:?} is none of {history:?} from {seen}"
            );
        }
    }

    /// The power goes, and comes back; what is there then is compared.
    pub fn crash(&mut self) {
        self.crash_with(|_| ());
    }

    /// The same, with a look at the disk in between.
    pub fn crash_with(&mut self, look: impl FnOnce(&mut Disk)) {
        let stats = self.world.store.stats();
        self.reached.crashes += 1;
        self.reached.crashes_while_going_home += u64::from(self.world.is_writing_home());
        self.reached.destages += stats.destage.cycles;
        self.reached.direct_blocks += stats.journal.direct_blocks;
        self.reached.sheets_written += stats.journal.sheets_written;
        self.reached.sheets_max = self.reached.sheets_max.max(stats.journal.sheets);
        self.reached.laps += stats.journal.written_bytes / stats.journal.capacity_bytes;
        self.world.cut_power();
        look(&mut self.world.disk);
        let recovered = self.world.open().unwrap();
        let pages = self.world.store.stats().pages;
        self.reached.mapped += u64::from(pages.is_mapped);
        self.reached.mapped_with_stale += u64::from(pages.is_mapped && pages.read_at_open > 0);
        self.reached.staged_again += recovered.staged.len() as u64;
        self.reads.clear();
        self.stage_tokens.clear();
        self.mend_tokens.clear();
        self.note_tokens.clear();
        self.remember_tokens.clear();
        self.reached.torn_tails += self.world.store.stats().journal.torn_tails;
        self.check_staged(&recovered);
        self.check_notes(&recovered);
        self.check_effects(&recovered);
        self.check_blocks(&recovered);
        self.check_inventory();
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
            let mended_late = |op: &Op| self.unsure.contains(&op.stamp);
            let settled =
                history.ops.iter().zip(again).filter(|(op, _)| !mended_late(op)).map(|(_, again)| again);
            assert!(settled.is_sorted(), "applied out of order: {history:?}");
        }
    }

    fn check_notes(&mut self, recovered: &Recovered) {
        let own = recovered.notes.iter().filter(|(key, _)| key != HORIZON_NOTE);
        let found: BTreeMap<u8, (u8, usize)> = own.map(|(k, v)| (k[0], (v[0], v.len()))).collect();
        for (key, possible) in &mut self.notes {
            let value = found.get(key).copied();
            assert!(possible.contains(&value), "note {key} is {value:?}, not one of {possible:?}");
            *possible = BTreeSet::from([value]);
        }
        assert!(found.keys().all(|key| self.notes.contains_key(key)));
    }

    fn check_effects(&self, recovered: &Recovered) {
        let again: BTreeSet<u64> = recovered.staged.iter().map(|s| s.write.stamp.0).collect();
        let known: BTreeSet<u64> =
            recovered.completions.iter().map(|completion| completion.stamp.0).collect();
        let sure = |stamp: &&u64| !again.contains(stamp) && !self.doomed.contains(stamp);
        for stamp in self.applied.iter().rev().take(50).filter(sure) {
            assert!(known.contains(stamp), "the effect of {stamp} is forgotten");
        }
        let note = recovered.notes.iter().find(|(key, _)| key == HORIZON_NOTE);
        let horizon = note.map_or(0, |(_, value)| Stamp::from_bytes(value).unwrap().0);
        let forgotten = self.applied.iter().filter(sure).filter(|stamp| !known.contains(stamp)).max();
        assert!(
            forgotten.is_none_or(|stamp| *stamp <= horizon),
            "{forgotten:?} is forgotten, beyond {horizon}"
        );
        for effect in self.remembered.iter().rev().take(30) {
            assert!(
                recovered.completions.contains(effect),
                "{effect:?} took effect elsewhere and is forgotten"
            );
        }
        for Completion { request, part, stamp } in &recovered.completions {
            let Some((staged, ..)) = self.writes.get(&stamp.0) else { continue };
            assert_eq!((staged.request, staged.part), (*request, *part));
        }
    }

    fn check_blocks(&mut self, recovered: &Recovered) {
        let again: BTreeSet<u64> = recovered.staged.iter().map(|s| s.write.stamp.0).collect();
        // What is unsure happened as a whole or not at all.
        let (mut must, mut must_not) = (BTreeSet::<u64>::new(), BTreeSet::<u64>::new());
        for (block, found) in self.found() {
            let history = self.blocks.entry(block).or_default();
            let ops: Vec<&Op> = history.ops.iter().filter(|op| !again.contains(&op.stamp)).collect();
            let unsure: Vec<u64> =
                ops.iter().map(|op| op.stamp).filter(|stamp| self.unsure.contains(stamp)).collect();
            // It also happened in order: up to some point.
            let is_possible = |sure: &usize| {
                let gone = &unsure[*sure..];
                let ops = ops.iter().filter(|op| !gone.contains(&op.stamp));
                ops.fold(history.states[0], |state, op| state.after(op)) == found
            };
            let possible: Vec<usize> = (0..=unsure.len()).filter(is_possible).collect();
            let (Some(&least), Some(&most)) = (possible.first(), possible.last()) else {
                panic!("{block:?}: {found:?} after {history:?}, staged again {again:?}");
            };
            must.extend(&unsure[..least]);
            must_not.extend(&unsure[most..]);
            *history = History { states: vec![found], ops: Vec::new() };
        }
        assert!(must.is_disjoint(&must_not), "half of {:?} is there", must.intersection(&must_not));
        self.unsure.clear();
        self.discards.clear();
        self.doomed.clear();
    }

    /// Every block of every place, written or not.
    fn found(&mut self) -> Vec<(Block, State)> {
        let places = [DATA, PARITY].into_iter().flat_map(|volume| PLACES.map(|lba| (volume, lba)));
        let mut found = Vec::new();
        for (volume, lba) in places {
            let span = span(volume, lba, PLACE_BLOCKS as u32);
            let blocks = self.world.read(span, WIDTH).unwrap();
            found.extend(blocks_of(span).zip(states(&blocks)));
        }
        found
    }

    fn check_inventory(&mut self) {
        let stamped = self.blocks.iter().filter(|(_, history)| history.states[0].stamps != [0; 3]);
        let expected: BTreeSet<(VolumeId, u64)> =
            stamped.map(|(&(volume, lba), _)| (VolumeId(volume), lba / Span::STRETCH_BLOCKS)).collect();
        let found = self.world.inventory(None);
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
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

    /// Nothing is left to do, nothing unanswered.
    pub fn finish(&mut self) {
        self.world.run(true);
        self.take_replies();
        assert!(self.reads.is_empty() && self.stage_tokens.is_empty() && self.mend_tokens.is_empty());
        assert!(self.note_tokens.is_empty() && self.remember_tokens.is_empty());
        self.crash();
        self.world.run(true);
        self.world.store.check(Depth::Deep);
    }
}

impl History {
    fn after(&mut self, op: Op) {
        self.states.push(self.states.last().unwrap().after(&op));
        self.ops.push(op);
    }
}

fn push(blocks: &mut BTreeMap<Block, History>, block: Block, op: Op) {
    blocks.entry(block).or_default().after(op);
}

fn blocks_of(span: Span) -> impl Iterator<Item = Block> {
    (span.lba..span.end()).map(move |lba| (span.volume.0, lba))
}

fn states(blocks: &Blocks) -> Vec<State> {
    assert!(blocks.unreadable.is_empty(), "unreadable: {:?}", blocks.unreadable);
    let stamps = blocks.stamps.chunks(WIDTH as usize).map(|s| [s[0].0, s[1].0, s[2].0]);
    stamps.zip(words(&blocks.content)).map(|(stamps, word)| State { stamps, word }).collect()
}
