//! A disk as the papers assume it, in the place of the real store: the words of [`wire::disk`] answered from memory, under a
//! cache, before a non-volatile memory of bounded size, over a device.
//!
//! What is certain: a write is on stable storage as soon as the non-volatile memory has room for it, and goes to the device
//! when it is applied; a block lies where its address says, so that nothing has to be looked up; a read of blocks that are
//! not in the cache is one access of the device. Where it writes through, a write goes to the device before it is acknowledged, and the
//! non-volatile memory has what was there until the write is decided. What is left out: the journal and its format, checksums, space.
//!
//! Overload is as at the real store: once much of the memory waits for the device, the shelf tells how much more content may come
//! ([`store::Pace`]), and how long the device takes for a block ([`store::Labour`]). A write that comes all the same waits in the shelf until the memory
//! has room for it.

pub(crate) mod cache;
mod contents;

use crate::timed::{CACHED, Grain, Keeper};
use base::{BLOCK_U64, Depth, HashMap, Machine, Payload, Stamp, Time, VolumeId};
use cache::Lru;
pub(crate) use contents::Contents;
use core::ops::Range;
use node::Backing;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use store::{
    Bound, Io, IoDone, IoFault, IoKind, IoToken, Labour, Pace, Room, Space, Stats, StoreEffect, StoreEvent,
};
use wire::disk::{Blocks, Command, Contested, Reply, Staged, StoreError, Token};
use wire::{Change, Span};

/// How full a disk is that has all of its volumes: too full for another one (85%), and not too full to return to a group (90%;
/// [`roles::directory`]).
const FULL_PERCENT: u64 = 88;

/// Of the non-volatile memory, how much content may be away from the device: so many in eight parts. A store lets half as much be away when a cycle
/// begins, since a cycle frees all at its end; here each block that is written frees its place. What is left is for who brings more than was told.
const AWAY_SHARE: u64 = 6;

/// How a disk is assumed to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShelfConfig {
    /// What a block stands for on the device.
    pub(crate) grain: Grain,
    pub(crate) capacity_blocks: u64,
    /// Volumes that share it evenly.
    pub(crate) volumes: u64,
    /// Bytes of the block cache; 0 for none.
    pub(crate) cache_bytes: u64,
    /// Bytes of written blocks that may wait for the device. An empty memory takes any write.
    pub(crate) nvram_bytes: u64,
    /// Whether the device has what is written before it is acknowledged.
    pub(crate) writes_through: bool,
}

impl ShelfConfig {
    /// Bytes of the device that so much content stands for.
    fn bytes(&self, payload: &Payload) -> u64 {
        self.grain.on_disk(payload.len() as u64)
    }

    /// The cache's names of blocks of 4 KiB of the device.
    fn keys(&self, span: Span) -> impl Iterator<Item = u64> + use<> {
        let in_key = (BLOCK_U64 / self.grain.block_bytes()).max(1);
        (span.lba / in_key..=(span.end() - 1) / in_key).map(move |key| span.volume.0 << 40 | key)
    }

    /// Where a block of the volume of this number lies, in bytes.
    pub(crate) fn offset(&self, number: u64, lba: u64) -> u64 {
        let share = self.share_blocks();
        (number % self.volumes.max(1) * share + lba % share) * self.grain.block_bytes()
    }

    /// Blocks of the disk that are one volume's.
    pub(crate) fn share_blocks(&self) -> u64 {
        (self.capacity_blocks / self.volumes.max(1)).max(1)
    }
}

/// A disk's contents, which outlive the process.
pub(crate) type Kept = Rc<RefCell<Contents>>;

/// One disk of a brick.
pub(crate) struct Shelf {
    config: ShelfConfig,
    kept: Kept,
    keeper: Option<Keeper>,
    is_open: bool,
    cache: Lru,
    nvram_bytes: u64,
    /// Of these, those of writes that are not decided.
    undecided_bytes: u64,
    pace: Pace,
    labour: Labour,
    /// Writes whose content is on its way to the device, and the parity that is read for that.
    destaging: u64,
    /// Writes that found no room in the non-volatile memory.
    blocked: VecDeque<(Token, Staged, Payload)>,
    under_way: HashMap<IoToken, Purpose>,
    last_token: IoToken,
    stats: Stats,
}

/// What an access of the device is for.
enum Purpose {
    Read(Token, Span, u8),
    /// To see whether it can be read, past the cache.
    Verify(Token, Span, u8),
    /// The parity that a delta changes, which is written behind it.
    Parity(Span, u64),
    /// The same, of a write that is acknowledged behind that.
    ParityThrough(Token, Span),
    /// A write that is acknowledged then.
    Through(Token, Span),
    /// So many bytes leave the memory when what was written there is done.
    Destage(Span, u64),
}

impl Shelf {
    /// `keeper` says which blocks stay in the cache after they were written; all where there is none.
    pub(crate) fn new(config: ShelfConfig, kept: Kept, keeper: Option<Keeper>) -> Shelf {
        let nvram_bytes = kept.borrow().staged().map(|(_, payload)| config.bytes(payload)).sum();
        Shelf {
            cache: Lru::new(config.cache_bytes / BLOCK_U64),
            config,
            kept,
            keeper,
            is_open: false,
            nvram_bytes,
            undecided_bytes: nvram_bytes,
            pace: Pace::default(),
            labour: Labour::default(),
            destaging: 0,
            blocked: VecDeque::new(),
            under_way: HashMap::default(),
            last_token: IoToken::default(),
            stats: Stats::default(),
        }
    }

    /// Where a block lies, in bytes.
    fn offset(&self, volume: VolumeId, lba: u64) -> u64 {
        let number = self.kept.borrow_mut().number_of(volume);
        self.config.offset(number, lba)
    }

    fn ask(&mut self, purpose: Purpose, kind: IoKind, fx: &mut Vec<StoreEffect>) {
        self.last_token.0 += 1;
        self.under_way.insert(self.last_token, purpose);
        fx.push(StoreEffect::Io(Io { token: self.last_token, kind }));
    }

    fn on_command(&mut self, command: Command, fx: &mut Vec<StoreEffect>) {
        match command {
            Command::Stage { token, staged, payload, .. } => {
                self.pace.take(payload.len());
                self.on_stage(token, staged, payload, fx);
            }
            Command::Apply { stamp } => self.on_apply(stamp, fx),
            Command::Drop { stamp } => {
                let Some((staged, payload)) = self.kept.borrow_mut().take_staged(stamp) else { return };
                let bytes = self.config.bytes(&payload);
                self.undecided_bytes -= bytes;
                match self.config.writes_through {
                    // What was there goes back to its place.
                    true => self.destage(staged.write.span, bytes, fx),
                    false => self.free(bytes, fx),
                }
            }
            Command::Mend { token, span, width, stamps, payload } => {
                // No device of this world loses what it holds, so that nothing can be lost for good.
                assert!(!payload.is_empty(), "a shelf has no unreadable blocks");
                self.pace.take(payload.len());
                self.kept.borrow_mut().put(span, &stamps, usize::from(width), &payload);
                if self.config.writes_through {
                    return self.write(Purpose::Through(token, span), span, fx);
                }
                self.destage(span, 0, fx);
                fx.push(StoreEffect::Reply(Reply::Staged { token, result: Ok(()) }));
            }
            Command::Erase { token, span } => {
                self.kept.borrow_mut().erase(span);
                fx.push(StoreEffect::Reply(Reply::Staged { token, result: Ok(()) }));
            }
            Command::Read { token, span, width, content, contested } => {
                self.on_read(token, (span, width), content, contested, fx);
            }
            Command::Verify { token, span, width } => {
                let kind = self.read_of(span, None);
                self.ask(Purpose::Verify(token, span, width), kind, fx);
            }
            Command::Allocation { token, span } => {
                let result = Ok(self.kept.borrow().allocation(span));
                fx.push(StoreEffect::Reply(Reply::Allocation { token, result }));
            }
            Command::Inventory { token, after } => {
                let result = Ok(self.kept.borrow().stretches(after));
                fx.push(StoreEffect::Reply(Reply::Inventory { token, result }));
            }
            Command::Note { token, key, value } => {
                self.kept.borrow_mut().note(key, value);
                fx.push(noted(token));
            }
            Command::Remember { token, completions } => {
                self.kept.borrow_mut().remember(completions);
                fx.push(noted(token));
            }
            Command::Barrier { token } => fx.push(noted(token)),
            Command::Discard { volume, stretch } => self.kept.borrow_mut().discard(volume, stretch),
            Command::Forget { span } => self.forget(span),
            Command::Refresh { completions } => self.kept.borrow_mut().remember(completions),
            Command::Destage { .. } => unreachable!("a shelf asks for no turns"),
        }
    }

    fn on_stage(&mut self, token: Token, staged: Staged, payload: Payload, fx: &mut Vec<StoreEffect>) {
        let bytes = self.config.bytes(&payload);
        let has_room = self.nvram_bytes == 0 || self.nvram_bytes + bytes <= self.config.nvram_bytes;
        if !has_room || !self.blocked.is_empty() {
            return self.blocked.push_back((token, staged, payload));
        }
        self.take(token, staged, payload, fx);
    }

    /// Puts a write into the memory, which has room for it.
    fn take(&mut self, token: Token, staged: Staged, payload: Payload, fx: &mut Vec<StoreEffect>) {
        let bytes = self.config.bytes(&payload);
        (self.nvram_bytes, self.undecided_bytes) = (self.nvram_bytes + bytes, self.undecided_bytes + bytes);
        let (span, is_delta) = (staged.write.span, matches!(staged.change, Change::Xor { .. }));
        let is_zero = matches!(staged.change, Change::Zero);
        self.kept.borrow_mut().stage(staged, payload);
        if !self.config.writes_through || is_zero {
            return fx.push(StoreEffect::Reply(Reply::Staged { token, result: Ok(()) }));
        }
        if is_delta && !self.is_cached(span) {
            let kind = self.read_of(span, None);
            return self.ask(Purpose::ParityThrough(token, span), kind, fx);
        }
        self.write(Purpose::Through(token, span), span, fx);
    }

    /// So many bytes of the memory are free: who waits for room has it.
    fn free(&mut self, bytes: u64, fx: &mut Vec<StoreEffect>) {
        self.nvram_bytes -= bytes;
        while let Some((_, _, payload)) = self.blocked.front() {
            let bytes = self.config.bytes(payload);
            if self.nvram_bytes > 0 && self.nvram_bytes + bytes > self.config.nvram_bytes {
                return;
            }
            let Some((token, staged, payload)) = self.blocked.pop_front() else { return };
            self.take(token, staged, payload, fx);
        }
    }

    fn on_apply(&mut self, stamp: Stamp, fx: &mut Vec<StoreEffect>) {
        let Some((staged, payload)) = self.kept.borrow_mut().take_staged(stamp) else { return };
        let (span, bytes) = (staged.write.span, self.config.bytes(&payload));
        self.undecided_bytes -= bytes;
        let has_base = !matches!(staged.change, Change::Xor { .. }) || self.is_cached(span);
        self.kept.borrow_mut().apply(&staged, &payload);
        self.touch(span);
        if matches!(staged.change, Change::Zero) || self.config.writes_through {
            return self.free(bytes, fx);
        }
        if has_base {
            return self.destage(span, bytes, fx);
        }
        let kind = self.read_of(span, None);
        self.destaging += 1;
        self.ask(Purpose::Parity(span, bytes), kind, fx);
    }

    fn destage(&mut self, span: Span, bytes: u64, fx: &mut Vec<StoreEffect>) {
        self.destaging += 1;
        self.write(Purpose::Destage(span, bytes), span, fx);
    }

    fn write(&mut self, purpose: Purpose, span: Span, fx: &mut Vec<StoreEffect>) {
        let offset = self.offset(span.volume, span.lba);
        // The device is told where and how much; what it holds is kept here.
        let payload = Payload::zeros(self.device_bytes(span));
        self.ask(purpose, IoKind::Write { offset, payload, durable: false }, fx);
    }

    /// Bytes of the device that these blocks are.
    fn device_bytes(&self, span: Span) -> usize {
        self.config.grain.on_disk(span.bytes() as u64) as usize
    }

    fn read_of(&self, span: Span, contested: Option<Contested>) -> IoKind {
        let (offset, length) = (self.offset(span.volume, span.lba), self.device_bytes(span));
        IoKind::Read { offset, length, contested }
    }

    fn on_read(
        &mut self,
        token: Token,
        (span, width): (Span, u8),
        content: bool,
        contested: Option<Contested>,
        fx: &mut Vec<StoreEffect>,
    ) {
        if content && !self.is_cached(span) {
            self.stats.reads.cache_misses += 1;
            let kind = self.read_of(span, contested);
            return self.ask(Purpose::Read(token, span, width), kind, fx);
        }
        // A read is one access here, however many blocks it has.
        self.stats.reads.cache_hits += u64::from(content);
        fx.push(self.blocks(token, span, width, content));
    }

    fn blocks(&self, token: Token, span: Span, width: u8, content: bool) -> StoreEffect {
        let (stamps, bytes) = self.kept.borrow().get(span, usize::from(width), content);
        let blocks = Blocks { stamps, content: bytes, unreadable: Vec::new() };
        StoreEffect::Reply(Reply::Read { token, result: Ok(blocks) })
    }

    fn is_cached(&mut self, span: Span) -> bool {
        if self.config.cache_bytes == CACHED {
            return true;
        }
        let is_hit = !self.cache.is_off() && self.config.keys(span).all(|key| self.cache.holds(key));
        if is_hit {
            self.touch(span);
        }
        is_hit
    }

    fn touch(&mut self, span: Span) {
        if !self.cache.is_off() && self.config.cache_bytes != CACHED {
            self.config.keys(span).for_each(|key| self.cache.touch(key));
        }
    }

    fn forget(&mut self, span: Span) {
        self.config.keys(span).for_each(|key| self.cache.remove(key));
    }

    fn on_io(&mut self, done: IoDone, fx: &mut Vec<StoreEffect>) {
        let Some(purpose) = self.under_way.remove(&done.token) else { return };
        match (purpose, done.result) {
            (Purpose::Read(token, ..), Err(IoFault::Left)) => {
                fx.push(StoreEffect::Reply(Reply::Read { token, result: Err(StoreError::Left) }));
            }
            (Purpose::Read(token, ..), Err(_)) => {
                fx.push(StoreEffect::Reply(Reply::Read { token, result: Err(StoreError::Failed) }));
            }
            (Purpose::Read(token, span, width), Ok(_)) => {
                self.touch(span);
                fx.push(self.blocks(token, span, width, true));
            }
            (Purpose::Verify(token, span, width), _) => fx.push(self.blocks(token, span, width, false)),
            (Purpose::Parity(span, bytes), _) => {
                self.destaging -= 1;
                self.destage(span, bytes, fx);
            }
            (Purpose::ParityThrough(token, span), _) => self.write(Purpose::Through(token, span), span, fx),
            (Purpose::Through(token, span), _) => {
                self.touch(span);
                fx.push(StoreEffect::Reply(Reply::Staged { token, result: Ok(()) }));
            }
            (Purpose::Destage(span, bytes), _) => {
                self.stats.destage.blocks += u64::from(span.count);
                self.destaging -= 1;
                self.labour.brought(u64::from(span.count));
                if self.keeper.as_ref().is_some_and(|keeper| !keeper.keeps(span)) {
                    self.forget(span);
                }
                self.free(bytes, fx);
            }
        }
    }
}

impl Shelf {
    /// Tells how much new content may come, where that is bounded, and how long the device takes for a block.
    fn tell(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.labour.note(now, self.destaging > 0);
        let told = [self.pace.tell(self.room()), self.labour.tell(now, false)];
        fx.extend(told.into_iter().flatten().map(StoreEffect::Reply));
    }

    fn room(&self) -> Room {
        let away = self.nvram_bytes - self.undecided_bytes;
        // Where it writes through, each write waits for the device itself, and nothing piles up.
        if away == 0 || self.config.writes_through {
            return Room::Plenty;
        }
        let most = self.config.nvram_bytes / 8 * AWAY_SHARE;
        let bytes = [most, away, self.undecided_bytes].map(|bytes| self.config.grain.in_protocol(bytes));
        Room::within(&[Bound::new(bytes[0], bytes[1], bytes[2])])
    }
}

fn noted(token: Token) -> StoreEffect {
    StoreEffect::Reply(Reply::Noted { token, result: Ok(()) })
}

impl Machine for Shelf {
    type Event = StoreEvent;
    type Effect = StoreEffect;

    fn step(&mut self, _now: Time, event: StoreEvent, fx: &mut Vec<StoreEffect>) {
        match event {
            StoreEvent::Command(command) => self.on_command(command, fx),
            StoreEvent::Io(done) => self.on_io(done, fx),
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        if !self.is_open {
            self.is_open = true;
            fx.push(StoreEffect::Opened(Ok(Box::new(self.kept.borrow().recovered()))));
        }
        self.tell(now, fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        None
    }

    fn check(&self, _depth: Depth) {
        assert!(self.blocked.is_empty() || self.nvram_bytes > 0, "who waits for room waits for something");
        assert!(self.undecided_bytes <= self.nvram_bytes, "what is not decided is in the memory");
    }
}

impl Backing for Shelf {
    fn identity(&self) -> Option<u64> {
        self.is_open.then(|| self.kept.borrow().identity())
    }

    fn space(&self) -> Space {
        // A volume has its share of the disk from the beginning, whatever of it was written.
        let capacity_bytes = self.config.capacity_blocks * self.config.grain.block_bytes();
        let used = self.kept.borrow().volumes().min(self.config.volumes);
        let used_bytes = used * self.config.share_blocks() * self.config.grain.block_bytes();
        let full_percent = match self.kept.borrow().is_closed {
            true => FULL_PERCENT as u8,
            false => (used * FULL_PERCENT / self.config.volumes.max(1)) as u8,
        };
        Space { capacity_bytes, used_bytes, full_percent }
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn blocks_region(&self) -> Option<Range<u64>> {
        Some(0..self.config.capacity_blocks * self.config.grain.block_bytes())
    }

    fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        self.kept.borrow().stretches(after)
    }

    fn has_stamp(&self, volume: VolumeId, lba: u64) -> Option<bool> {
        let (stamps, _) = self.kept.borrow().get(Span { volume, lba, count: 1 }, 1, false);
        Some(!stamps[0].is_zero())
    }
}
