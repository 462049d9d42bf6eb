//! A disk that forgets, and a driver that runs a store over it.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use base::{
    BLOCK, BrickId, ClusterId, Depth, GroupId, Machine, Payload, RequestId, Rng, Stamp, Time, VolumeId,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::rc::Rc;
use store::{
    FormatOptions, Io, IoDone, IoFault, IoKind, MapUse, OpenError, Store, StoreConfig, StoreEffect,
    StoreEvent,
};
use wire::disk::{Blocks, Command, Recovered, Reply, Staged, StoreError, Token};
use wire::{Change, Scope, Span, WriteId};

pub mod oracle;

const SECTOR: usize = 512;

/// Where synced sectors are, when that is not in memory.
pub trait Medium {
    fn pwrite(&self, offset: u64, bytes: &[u8]);
    fn pread(&self, offset: u64, bytes: &mut [u8]);
}

/// A disk that promises no more than 512 bytes at once. What was not synced may be lost, in any subset.
#[derive(Clone, Default)]
pub struct Disk {
    pub bytes: u64,
    stable: Stable,
    /// Sectors written and not synced: all versions, oldest first, with the write's number.
    volatile: BTreeMap<u64, Vec<(u64, [u8; SECTOR])>>,
    writes: u64,
    pub cuts: Cuts,
    /// Sectors that cannot be read.
    pub bad: std::collections::BTreeSet<u64>,
}

/// What a power cut leaves.
#[derive(Clone, Default)]
struct Stable {
    sectors: BTreeMap<u64, [u8; SECTOR]>,
    medium: Option<Rc<dyn Medium>>,
}

impl Stable {
    fn insert(&mut self, number: u64, sector: [u8; SECTOR]) {
        match &self.medium {
            Some(medium) => medium.pwrite(number * SECTOR as u64, &sector),
            None => drop(self.sectors.insert(number, sector)),
        }
    }

    fn get(&self, number: u64) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        match &self.medium {
            Some(medium) => medium.pread(number * SECTOR as u64, &mut sector),
            None => sector = self.sectors.get(&number).copied().unwrap_or(sector),
        }
        sector
    }
}

/// What became of what was not synced.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cuts {
    /// Sectors that kept what was there before.
    pub lost: u64,
    /// Sectors that have what was written last, or earlier but not synced.
    pub kept: u64,
    /// Writes of which some sectors were kept and others lost.
    pub torn: u64,
}

impl Disk {
    /// A disk whose synced sectors are elsewhere.
    pub fn on(bytes: u64, medium: Rc<dyn Medium>) -> Disk {
        let stable = Stable { medium: Some(medium), ..Stable::default() };
        Disk { bytes, stable, ..Disk::default() }
    }

    /// Goes on with the same bytes behind another medium.
    pub fn swap_medium(&mut self, medium: Rc<dyn Medium>) {
        self.stable.medium = Some(medium);
    }

    pub fn new(bytes: u64) -> Disk {
        Disk { bytes, ..Disk::default() }
    }

    pub fn mark(&self) -> u64 {
        self.writes
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8], durable: bool) {
        assert!(
            offset.is_multiple_of(BLOCK as u64) && bytes.len().is_multiple_of(BLOCK) && !bytes.is_empty()
        );
        assert!(offset + bytes.len() as u64 <= self.bytes, "a write beyond the disk");
        self.writes += 1;
        for (i, sector) in bytes.as_chunks::<SECTOR>().0.iter().enumerate() {
            let number = offset / SECTOR as u64 + i as u64;
            // A disk puts a spare sector in the place of a bad one that is written.
            self.bad.remove(&number);
            if durable {
                self.stable.insert(number, *sector);
                self.volatile.remove(&number);
            } else {
                self.volatile.entry(number).or_default().push((self.writes, *sector));
            }
        }
    }

    /// Makes what was written up to `mark` stable.
    pub fn sync(&mut self, mark: u64) {
        for (&number, versions) in &mut self.volatile {
            if let Some((_, newest)) = versions.iter().rev().find(|(write, _)| *write <= mark) {
                self.stable.insert(number, *newest);
            }
            versions.retain(|(write, _)| *write > mark);
        }
        self.volatile.retain(|_, versions| !versions.is_empty());
    }

    pub fn read(&self, offset: u64, length: usize) -> Result<Bytes, IoFault> {
        let first = offset / SECTOR as u64;
        let mut bytes = Vec::with_capacity(length);
        for number in first..first + (length / SECTOR) as u64 {
            if self.bad.contains(&number) {
                return Err(IoFault::Unreadable);
            }
            let newest = self.volatile.get(&number).and_then(|v| v.last()).map(|(_, sector)| sector);
            bytes.extend_from_slice(&newest.copied().unwrap_or_else(|| self.stable.get(number)));
        }
        Ok(Bytes::from(bytes))
    }

    /// The power goes: of each sector any version that was not synced stays, or none.
    pub fn crash(&mut self, rng: &mut Rng) {
        let all = rng.u8(..);
        let mut fates: BTreeMap<u64, [bool; 2]> = BTreeMap::new();
        for (number, versions) in std::mem::take(&mut self.volatile) {
            let pick = match all {
                0..40 => versions.len(),
                40..80 => 0,
                _ => rng.usize(..=versions.len()),
            };
            for (n, (write, _)) in versions.iter().enumerate() {
                fates.entry(*write).or_default()[usize::from(n + 1 == pick)] = true;
            }
            self.cuts.lost += u64::from(pick == 0);
            self.cuts.kept += u64::from(pick > 0);
            if pick > 0 {
                self.stable.insert(number, versions[pick - 1].1);
            }
        }
        self.cuts.torn += fates.values().filter(|fate| **fate == [true; 2]).count() as u64;
    }

    /// Overwrites bytes behind the store's back.
    pub fn spoil(&mut self, offset: u64, rng: &mut Rng, sectors: u64) {
        self.sync(u64::MAX);
        for number in offset / SECTOR as u64..offset / SECTOR as u64 + sectors {
            let mut noise = [0; SECTOR];
            rng.fill(&mut noise);
            self.stable.insert(number, noise);
        }
    }
}

/// A store over a disk.
pub struct World {
    pub disk: Disk,
    pub store: Store,
    pub config: StoreConfig,
    pub now: Time,
    pub rng: Rng,
    in_flight: Vec<(Io, u64)>,
    /// Blocks that wait for a turn to be destaged.
    waiting_turn: Option<u32>,
    pub replies: Vec<Reply>,
    pub opened: Option<Result<Box<Recovered>, OpenError>>,
    pub token: Token,
    /// How many turns to destage were given, and how many are over.
    pub turns: u64,
    pub turns_over: u64,
    /// How much content may come, as the store told last.
    pub room: u64,
    /// How many blocks it said are home.
    pub home: u64,
    fx: Vec<StoreEffect>,
}

pub fn config(disk_bytes: u64) -> StoreConfig {
    let mut config = StoreConfig::new(ClusterId([7; 16]), BrickId(3), 1, disk_bytes);
    config.cache_bytes = 256 * 1024;
    config.limits.backlog_bytes = 2 << 20;
    config.limits.destage_bytes = 64 * 1024;
    config.map = MapUse::Compared;
    config
}

pub fn options(disk_bytes: u64, journal_bytes: u64) -> FormatOptions {
    FormatOptions {
        cluster: ClusterId([7; 16]),
        brick: BrickId(3),
        disk_index: 1,
        uuid: [9; 16],
        disk_bytes,
        journal_bytes,
    }
}

impl World {
    pub fn new(disk_bytes: u64, journal_bytes: u64, seed: u64) -> World {
        World::on(Disk::new(disk_bytes), journal_bytes, seed)
    }

    /// Formats a disk and opens it.
    pub fn on(mut disk: Disk, journal_bytes: u64, seed: u64) -> World {
        let disk_bytes = disk.bytes;
        for (offset, payload) in store::format(options(disk_bytes, journal_bytes)).unwrap() {
            disk.write(offset, &payload.to_vec(), true);
        }
        let config = config(disk_bytes);
        let mut world = World {
            disk,
            store: Store::open(config.clone()),
            config,
            now: Time(1),
            rng: Rng::with_seed(seed),
            in_flight: Vec::new(),
            waiting_turn: None,
            replies: Vec::new(),
            opened: None,
            token: Token(0),
            turns: 0,
            turns_over: 0,
            room: u64::MAX,
            home: 0,
            fx: Vec::new(),
        };
        world.open().unwrap();
        world
    }

    /// Starts the store anew over the disk as it is.
    pub fn open(&mut self) -> Result<Box<Recovered>, OpenError> {
        self.store = Store::open(self.config.clone());
        self.in_flight.clear();
        self.waiting_turn = None;
        self.replies.clear();
        self.opened = None;
        self.settle();
        while self.opened.is_none() {
            self.complete();
        }
        self.store.check(Depth::Deep);
        self.opened.take().unwrap()
    }

    /// The power goes, and comes back.
    pub fn crash(&mut self) -> Result<Box<Recovered>, OpenError> {
        self.cut_power();
        self.open()
    }

    pub fn cut_power(&mut self) {
        for (io, _) in std::mem::take(&mut self.in_flight) {
            if let IoKind::Write { offset, payload, .. } = io.kind {
                self.disk.write(offset, &payload.to_vec(), false);
            }
        }
        self.disk.crash(&mut self.rng);
    }

    pub fn command(&mut self, command: Command) {
        self.step(StoreEvent::Command(command));
    }

    fn step(&mut self, event: StoreEvent) {
        self.now.0 += 1000;
        let mut fx = std::mem::take(&mut self.fx);
        self.store.step(self.now, event, &mut fx);
        self.fx = fx;
        self.take_effects();
        self.store.check(Depth::Cheap);
    }

    pub fn settle(&mut self) {
        let mut fx = std::mem::take(&mut self.fx);
        self.store.settle(self.now, &mut fx);
        self.fx = fx;
        self.take_effects();
    }

    /// Lets the deadline come, if there is one.
    pub fn wake(&mut self) -> bool {
        let Some((at, _)) = self.store.deadline() else { return false };
        self.now = self.now.max(at);
        let mut fx = std::mem::take(&mut self.fx);
        self.store.wake(self.now, &mut fx);
        self.fx = fx;
        self.take_effects();
        true
    }

    fn take_effects(&mut self) {
        for effect in std::mem::take(&mut self.fx) {
            match effect {
                StoreEffect::Io(io) => self.in_flight.push((io, self.disk.mark())),
                StoreEffect::Reply(Reply::WantsToDestage { blocks }) => {
                    assert_eq!(self.waiting_turn.replace(blocks), None, "it asks for one turn at a time");
                }
                StoreEffect::Reply(Reply::Destaged { .. }) => self.turns_over += 1,
                StoreEffect::Reply(Reply::Room { bytes }) => self.room = bytes,
                StoreEffect::Reply(Reply::Home { blocks, .. }) => self.home += blocks,
                StoreEffect::Reply(reply) => self.replies.push(reply),
                StoreEffect::Opened(result) => self.opened = Some(result),
            }
        }
    }

    /// Gives a turn to destage, if one was asked for.
    pub fn give_turn(&mut self) -> bool {
        let Some(blocks) = self.waiting_turn.take() else { return false };
        self.turns += 1;
        self.command(Command::Destage { token: Token(u64::MAX), blocks });
        true
    }

    pub fn waits_for_turn(&self) -> bool {
        self.waiting_turn.is_some()
    }

    /// Completes one request to the disk, any of them, or gives a turn.
    pub fn complete(&mut self) -> bool {
        let is_turn = self.waits_for_turn() && (self.in_flight.is_empty() || self.rng.bool());
        if is_turn { self.give_turn() } else { self.complete_one() }
    }

    /// Completes one request to the disk, any of them.
    pub fn complete_one(&mut self) -> bool {
        if self.in_flight.is_empty() {
            return false;
        }
        let (io, mark) = self.in_flight.swap_remove(self.rng.usize(..self.in_flight.len()));
        self.answer(io, mark);
        true
    }

    fn answer(&mut self, io: Io, mark: u64) {
        let result = match io.kind {
            IoKind::Read { offset, length, .. } => self.disk.read(offset, length),
            IoKind::Write { offset, payload, durable } => {
                self.disk.write(offset, &payload.to_vec(), durable);
                Ok(Bytes::new())
            }
            IoKind::Flush => {
                self.disk.sync(mark);
                Ok(Bytes::new())
            }
        };
        self.step(StoreEvent::Io(IoDone { token: io.token, result }));
    }

    /// Completes a request that `which` chooses.
    pub fn complete_if(&mut self, which: impl Fn(&IoKind) -> bool) -> bool {
        let Some(at) = self.in_flight.iter().position(|(io, _)| which(&io.kind)) else { return false };
        let last = self.in_flight.len() - 1;
        self.in_flight.swap(at, last);
        let (io, mark) = self.in_flight.pop().unwrap();
        self.answer(io, mark);
        true
    }

    /// Fails the next request of the kind that `which` chooses.
    pub fn fail_one(&mut self, which: impl Fn(&IoKind) -> bool, fault: IoFault) -> bool {
        let Some(at) = self.in_flight.iter().position(|(io, _)| which(&io.kind)) else { return false };
        let (io, _) = self.in_flight.swap_remove(at);
        self.step(StoreEvent::Io(IoDone { token: io.token, result: Err(fault) }));
        true
    }

    /// Whether writes to places beyond the journal are in flight.
    pub fn is_writing_home(&self) -> bool {
        self.in_flight.iter().any(|(io, _)| matches!(io.kind, IoKind::Write { durable: false, .. }))
    }

    /// The requests in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = &IoKind> {
        self.in_flight.iter().map(|(io, _)| &io.kind)
    }

    /// Runs until nothing is under way; with `idle`, until nothing is left to do either.
    pub fn run(&mut self, idle: bool) {
        for _ in 0..1_000_000 {
            self.settle();
            let busy = self.complete() || idle && self.wake();
            if !busy {
                return self.store.check(Depth::Deep);
            }
        }
        panic!("the store does not come to rest");
    }

    pub fn next_token(&mut self) -> Token {
        self.token.0 += 1;
        self.token
    }

    pub fn stage(&mut self, staged: Staged, payload: Payload) -> Result<(), StoreError> {
        self.stage_beside(staged, payload, 0)
    }

    /// Stages a write that must leave so much room to others.
    pub fn stage_beside(
        &mut self,
        staged: Staged,
        payload: Payload,
        kept_bytes: usize,
    ) -> Result<(), StoreError> {
        let token = self.next_token();
        self.command(Command::Stage { token, staged, payload, kept_bytes });
        self.run(false);
        let at = self.replies.iter().position(|r| matches!(r, Reply::Staged { token: t, .. } if *t == token));
        match self.replies.swap_remove(at.expect("an answer")) {
            Reply::Staged { result, .. } => result,
            _ => unreachable!(),
        }
    }

    /// Stages and applies a write, whatever is answered, while nobody gives turns.
    pub fn stage_without_turns(&mut self, staged: Staged, payload: Payload) {
        let (token, stamp) = (self.next_token(), staged.write.stamp);
        self.command(Command::Stage { token, staged, payload, kept_bytes: 0 });
        self.settle();
        while self.complete_one() {
            self.settle();
        }
        self.command(Command::Apply { stamp });
        self.settle();
    }

    /// Writes, again and again while the store is busy.
    pub fn write(&mut self, staged: Staged, payload: Payload) -> Result<(), StoreError> {
        let stamp = staged.write.stamp;
        for _ in 0..10 {
            match self.stage(staged.clone(), payload.clone()) {
                Err(StoreError::NoRoomYet | StoreError::Busy) => self.run(true),
                other => {
                    self.command(Command::Apply { stamp });
                    return other;
                }
            }
        }
        Err(StoreError::Busy)
    }

    pub fn read(&mut self, span: Span, width: u8) -> Result<Blocks, StoreError> {
        let token = self.next_token();
        self.command(Command::Read { token, span, width, content: true, contested: None });
        self.run(false);
        let at = self.replies.iter().position(|r| matches!(r, Reply::Read { token: t, .. } if *t == token));
        match self.replies.swap_remove(at.expect("an answer")) {
            Reply::Read { result, .. } => result,
            _ => unreachable!(),
        }
    }

    /// A batch of stretches behind `after`.
    pub fn inventory(&mut self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        self.command(Command::Inventory { token: Token(0), after });
        match self.replies.pop() {
            Some(Reply::Inventory { result, .. }) => result.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub fn allocation(&mut self, span: Span) -> Vec<(u32, bool)> {
        self.command(Command::Allocation { token: Token(0), span });
        match self.replies.pop() {
            Some(Reply::Allocation { result, .. }) => result.unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

pub fn span(volume: u64, lba: u64, count: u32) -> Span {
    Span { volume: VolumeId(volume), lba, count }
}

pub fn staged(span: Span, stamp: u64, change: Change) -> Staged {
    let write = WriteId { group: GroupId(1), span, stamp: Stamp(stamp), scope: Scope::Row, link: None };
    let request = RequestId { client: base::ClientId(stamp % 3), sequence: stamp };
    Staged { write, change, request, part: stamp % 2 }
}

/// Blocks that are each filled with one word.
pub fn payload(words: impl IntoIterator<Item = u64>) -> Payload {
    let mut payload = Payload::new();
    for word in words {
        payload.push(Bytes::from(word.to_le_bytes().repeat(BLOCK / 8)));
    }
    payload
}

/// The words of such blocks; panics when a block is a mixture.
pub fn words(content: &Payload) -> Vec<u64> {
    let bytes = content.to_vec();
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().unwrap());
    bytes
        .chunks(BLOCK)
        .map(|block| {
            assert!(block.chunks(8).all(|chunk| chunk == &block[..8]), "a block is a mixture");
            word(&block[..8])
        })
        .collect()
}
