//! The store's machine: its state, its inputs and outputs, and who handles what.
//!
//! Commands and journal groups are in `commit`, reads in `read`, the way home in `destage`, opening in `recovery`.

use crate::barrier::Barrier;
use crate::cache::BlockCache;
use crate::commit::{Item, Queue, Write};
use crate::destage::Cycle;
use crate::discard::{Discards, Region};
use crate::effects::Effects;
use crate::io::{Io, IoDone, IoFault, IoKind};
use crate::journal::Journal;
use crate::metadata::Key;
use crate::overlay::Overlay;
use crate::pages::Pages;
use crate::read::{ReadOp, Run, Wanted};
use crate::recovery::{Next, OpenError, Recovery};
use crate::room::Demand;
use crate::slots::Allocator;
use crate::superblock::{Geometry, SLOT_BYTES, Superblock};
use crate::works::Work;
use base::{BrickId, Checksum, ClusterId, Depth, HashMap, Machine, Payload, Stamp, Time};
use bytes::Bytes;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::disk::{Command, Recovered, Reply, StoreError, Token};

/// What happens to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// The participant asks.
    Command(Command),
    /// The disk answers.
    Io(IoDone),
}

/// What a store asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEffect {
    /// Of the disk.
    Io(Io),
    /// An answer to the participant.
    Reply(Reply),
    /// The end of opening: what was found, or why the disk is refused. A refused store answers all with
    /// [`StoreError::Failed`].
    Opened(Result<Box<Recovered>, OpenError>),
}

/// Whose disk it is expected to be, and how much memory it may take.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The cluster.
    pub cluster: ClusterId,
    /// The brick.
    pub brick: BrickId,
    /// Which of the brick's disks.
    pub disk_index: u16,
    /// The size of the disk as it is.
    pub disk_bytes: u64,
    /// Memory for clean blocks.
    pub cache_bytes: usize,
    /// Bounds of its queues.
    pub limits: Limits,
}

/// Bounds of the queues of a store, and how long lazy work may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Content in memory that is staged or not at home yet; beyond it a write gets [`StoreError::Busy`].
    pub backlog_bytes: usize,
    /// Journalled content at which it is brought home.
    pub destage_bytes: usize,
    /// Commands that wait for the journal.
    pub queue_max: usize,
    /// Reads under way.
    pub reads_max: usize,
    /// Metadata pages in memory.
    pub pages_max: usize,
    /// Slots in use, in percent of all, beyond which a write that needs new room gets [`StoreError::NoSpace`]. The rest is
    /// for what gives room back, or makes good what was there.
    pub used_percent_max: u8,
    /// How long an applied write may stay out of the journal.
    pub lazy_ns: u64,
    /// How long journalled content may stay away from home on an idle disk.
    pub idle_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            backlog_bytes: 16 << 20,
            destage_bytes: 4 << 20,
            queue_max: 4096,
            reads_max: 4096,
            pages_max: 512,
            used_percent_max: 95,
            lazy_ns: 20_000_000,
            idle_ns: 1_000_000_000,
        }
    }
}

impl StoreConfig {
    /// With default limits and 64 MiB of cache.
    pub fn new(cluster: ClusterId, brick: BrickId, disk_index: u16, disk_bytes: u64) -> StoreConfig {
        let limits = Limits::default();
        StoreConfig { cluster, brick, disk_index, disk_bytes, cache_bytes: 64 << 20, limits }
    }
}

/// The room on a disk, in bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Space {
    /// All of it.
    pub capacity_bytes: u64,
    /// In use.
    pub used_bytes: u64,
    /// How full it is, in percent, with what describes the data: 100 as long as there is no room for what was refused
    /// last.
    pub full_percent: u8,
}

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Flushes asked for.
    pub flushes: u64,
    /// Durable writes asked for (each as good as a flush).
    pub durable_writes: u64,
    /// Journal groups.
    pub groups: u64,
    /// Records in them.
    pub group_records: u64,
    /// The most records in one group.
    pub group_records_max: u64,
    /// Bytes written to the journal.
    pub journal_bytes_written: u64,
    /// Bytes of the journal in use now.
    pub journal_used_bytes: u64,
    /// The journal's size.
    pub journal_capacity_bytes: u64,
    /// Blocks written straight to their slots.
    pub direct_blocks: u64,
    /// Blocks brought home.
    pub destaged_blocks: u64,
    /// How often blocks were brought home.
    pub destages: u64,
    /// Blocks read from the cache.
    pub cache_hits: u64,
    /// Blocks read from the disk.
    pub cache_misses: u64,
    /// Bytes in the cache now.
    pub cache_bytes: u64,
    /// Whether the journal's last frame was found torn when the disk was opened: 1 or 0.
    pub torn_tails: u64,
    /// Blocks read from the disk to check them.
    pub verified_blocks: u64,
    /// Blocks found unreadable.
    pub unreadable_blocks: u64,
    /// Metadata pages that were damaged on the disk, and written again from memory.
    pub rewritten_pages: u64,
    /// Metadata pages on the disk.
    pub pages: u64,
    /// Metadata pages whose owner is unknown because nothing of them can be read.
    pub lost_pages: u64,
}

/// A brick's disk. The first [`Machine::settle`] (or step) asks for what recovery reads; [`StoreEffect::Opened`] ends it.
pub struct Store {
    phase: Phase,
}

enum Phase {
    Opening { recovery: Box<Recovery>, next_token: u64, waiting: bool },
    Refused,
    Open(Box<Running>),
}

impl Store {
    /// A store over a disk that was [formatted](crate::format).
    pub fn open(config: StoreConfig) -> Store {
        let recovery = Box::new(Recovery::new(config));
        Store { phase: Phase::Opening { recovery, next_token: 0, waiting: false } }
    }

    /// What tells this disk, as it was formatted, from all others; `None` before it is open. Drawn by whoever formatted
    /// it: the first half of [`FormatOptions::uuid`](crate::FormatOptions::uuid).
    pub fn identity(&self) -> Option<u64> {
        let Phase::Open(running) = &self.phase else { return None };
        Some(running.identity)
    }

    /// The room on the disk; nothing before it is open.
    pub fn space(&self) -> Space {
        let Phase::Open(running) = &self.phase else { return Space::default() };
        Space {
            capacity_bytes: u64::from(running.slots.count()) * SLOT_BYTES,
            used_bytes: u64::from(running.slots.used()) * SLOT_BYTES,
            full_percent: running.full_percent(),
        }
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        let Phase::Open(running) = &self.phase else { return Stats::default() };
        Stats {
            journal_used_bytes: running.journal.used(),
            journal_capacity_bytes: running.journal.capacity(),
            cache_bytes: running.cache.bytes() as u64,
            pages: running.pages.counts().0 as u64,
            lost_pages: u64::from(running.pages.lost),
            ..running.stats
        }
    }

    /// Goes on with opening: the first time, and with each answer of the disk.
    fn advance(&mut self, answer: Option<Result<Bytes, IoFault>>, fx: &mut Vec<StoreEffect>) {
        let Phase::Opening { recovery, next_token, waiting } = &mut self.phase else { return };
        let kind = match recovery.advance(answer) {
            Next::Read { offset, length } => IoKind::read(offset, length),
            Next::Flush => IoKind::Flush,
            Next::Done(running, recovered) => {
                self.phase = Phase::Open(running);
                return fx.push(StoreEffect::Opened(Ok(recovered)));
            }
            Next::Refused(error) => {
                self.phase = Phase::Refused;
                return fx.push(StoreEffect::Opened(Err(error)));
            }
        };
        *next_token += 1;
        *waiting = true;
        fx.push(StoreEffect::Io(Io { token: *next_token, kind }));
    }
}

impl Machine for Store {
    type Event = StoreEvent;
    type Effect = StoreEffect;

    fn step(&mut self, now: Time, event: StoreEvent, fx: &mut Vec<StoreEffect>) {
        match (&mut self.phase, event) {
            (Phase::Open(running), event) => running.step(now, event, fx),
            (Phase::Opening { next_token, .. }, StoreEvent::Io(done)) if done.token == *next_token => {
                self.advance(Some(done.result), fx);
            }
            (Phase::Opening { .. }, StoreEvent::Command(command)) => {
                fx.extend(refusal(&command, StoreError::Busy).map(StoreEffect::Reply));
            }
            (Phase::Refused, StoreEvent::Command(command)) => {
                fx.extend(refusal(&command, StoreError::Failed).map(StoreEffect::Reply));
            }
            (_, StoreEvent::Io(_)) => {}
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        match &mut self.phase {
            Phase::Open(running) => running.settle(now, fx),
            Phase::Opening { waiting: false, .. } => self.advance(None, fx),
            _ => {}
        }
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        match &self.phase {
            Phase::Open(running) => running.deadline(),
            _ => None,
        }
    }

    fn check(&self, depth: Depth) {
        if let Phase::Open(running) = &self.phase {
            running.check(depth);
        }
    }
}

/// The answer to a command that is not carried out, if it wants one.
pub(crate) fn refusal(command: &Command, error: StoreError) -> Option<Reply> {
    Some(match *command {
        Command::Stage { token, .. } | Command::Mend { token, .. } => {
            Reply::Staged { token, result: Err(error) }
        }
        Command::Read { token, .. } | Command::Verify { token, .. } => {
            Reply::Read { token, result: Err(error) }
        }
        Command::Allocation { token, .. } => Reply::Allocation { token, result: Err(error) },
        Command::Note { token, .. } | Command::Remember { token, .. } | Command::Barrier { token } => {
            Reply::Noted { token, result: Err(error) }
        }
        Command::Inventory { token, .. } => Reply::Inventory { token, result: Err(error) },
        Command::Apply { .. } | Command::Drop { .. } | Command::Discard { .. } | Command::Forget { .. } => {
            return None;
        }
    })
}

/// What an answer of the disk is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// Part of the journal group in flight.
    Group,
    /// The flush behind it.
    GroupFlush,
    /// A metadata page.
    Page(Key),
    /// A metadata page that is in memory, to see whether the disk has it, too; and after how many cycles that was.
    Look(Key, u64),
    /// Blocks of a read.
    Blocks(u64, Run),
    /// A block or page on its way home.
    Home(Option<Key>),
    /// The flush behind them.
    CycleFlush,
    /// The journal header that moves the tail.
    Header,
}

/// An open store.
pub(crate) struct Running {
    pub(crate) limits: Limits,
    pub(crate) geometry: Geometry,
    pub(crate) seed: Checksum,
    identity: u64,
    pub(crate) now: Time,
    pub(crate) out: Vec<StoreEffect>,
    pub(crate) stats: Stats,
    next_token: u64,
    pub(crate) in_flight: HashMap<u64, Purpose>,
    pub(crate) broken: bool,

    pub(crate) journal: Journal,
    pub(crate) queue: Queue,
    pub(crate) group: Option<crate::commit::Group>,
    /// Writes whose decision is not journalled.
    pub(crate) writes: BTreeMap<Stamp, Write>,
    /// What a frame that carries all of `writes` forward takes at most, with the mends that are not journalled.
    pub(crate) live_cost: usize,
    /// Content of large writes that goes to fresh slots together with the group that says so.
    pub(crate) direct: HashMap<u32, Payload>,
    /// Applications and mends in the order in which they must happen.
    pub(crate) works: VecDeque<Work>,
    /// Barriers behind decisions that have no record yet.
    pub(crate) barriers: VecDeque<Barrier>,
    pub(crate) notes: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) notes_bytes: usize,
    pub(crate) effects: Effects,
    /// What is being given back.
    pub(crate) discards: Discards,
    /// Notes in the journal whose answer waits for discards that are not: whoever has an answer takes all that it asked
    /// for before as durable.
    pub(crate) settling: Vec<Token>,

    /// Applied, not journalled.
    pub(crate) fresh: Overlay,
    /// Journalled.
    pub(crate) durable: Overlay,
    /// On its way home.
    pub(crate) destaging: Overlay,
    pub(crate) cycle: Cycle,
    /// Pages in memory, pinned, that are damaged on the disk.
    pub(crate) rewrites: BTreeSet<Key>,
    pub(crate) durable_since: Option<Time>,

    pub(crate) slots: Allocator,
    pub(crate) pages: Pages,
    /// What was refused last for want of room.
    pub(crate) lacked: Option<Demand>,
    pub(crate) cache: BlockCache,
    pub(crate) reads: BTreeMap<u64, ReadOp>,
    pub(crate) next_read: u64,
    /// Reads that wait for works on their blocks.
    pub(crate) held_reads: Vec<ReadOp>,
    /// Pages on their way in, and the reads that wait for them.
    pub(crate) loading: BTreeMap<Key, BTreeSet<u64>>,
}

impl Running {
    /// With nothing known yet but where things are.
    pub(crate) fn new(config: &StoreConfig, superblock: &Superblock, journal: Journal) -> Running {
        let geometry = superblock.geometry;
        Running {
            limits: config.limits,
            geometry,
            seed: superblock.seed(),
            identity: superblock.identity(),
            now: Time::ZERO,
            out: Vec::new(),
            stats: Stats::default(),
            next_token: 1 << 32,
            in_flight: HashMap::default(),
            broken: false,
            journal,
            queue: Queue::default(),
            group: None,
            writes: BTreeMap::new(),
            live_cost: 0,
            direct: HashMap::default(),
            works: VecDeque::new(),
            barriers: VecDeque::new(),
            notes: BTreeMap::new(),
            notes_bytes: 0,
            effects: Effects::new(effects_max(journal.capacity())),
            discards: Discards::new(journal.capacity()),
            settling: Vec::new(),
            fresh: Overlay::default(),
            durable: Overlay::default(),
            destaging: Overlay::default(),
            cycle: Cycle::Idle,
            rewrites: BTreeSet::new(),
            durable_since: None,
            slots: Allocator::new(geometry.slot_count),
            pages: Pages::new(geometry.page_count, config.limits.pages_max.max(128)),
            lacked: None,
            cache: BlockCache::new(config.cache_bytes),
            reads: BTreeMap::new(),
            next_read: 0,
            held_reads: Vec::new(),
            loading: BTreeMap::new(),
        }
    }

    fn step(&mut self, now: Time, event: StoreEvent, fx: &mut Vec<StoreEffect>) {
        self.now = now;
        match event {
            StoreEvent::Command(command) if self.broken => {
                self.out.extend(refusal(&command, StoreError::Failed).map(StoreEffect::Reply));
            }
            StoreEvent::Command(command) => self.on_command(command),
            StoreEvent::Io(done) => self.on_io(done),
        }
        fx.append(&mut self.out);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.now = now;
        if !self.broken {
            self.enqueue_barriers();
            self.consider_cycle();
            self.start_group();
            self.pages.trim();
        }
        fx.append(&mut self.out);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        if self.broken || self.group.is_some() {
            return None;
        }
        let lazy = self.queue.lazy_since.filter(|_| !self.queue.is_blocked());
        let lazy = lazy.map(|t| (t + Duration::from_nanos(self.limits.lazy_ns), "journal applied writes"));
        let idle = self.durable_since.filter(|_| self.cycle.is_idle());
        let idle = idle.map(|t| (t + Duration::from_nanos(self.limits.idle_ns), "bring blocks home"));
        lazy.into_iter().chain(idle).min()
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Stage { token, staged, payload } => self.on_stage(token, staged, payload),
            Command::Apply { stamp } => self.on_apply(stamp),
            Command::Drop { stamp } => self.on_drop(stamp),
            Command::Mend { token, span, width, stamps, payload } => {
                self.on_mend(token, span, width, stamps, payload);
            }
            Command::Read { token, span, width, content, contested } => {
                let wanted = if content { Wanted::Content } else { Wanted::Stamps };
                self.on_read(token, span, width, wanted, contested);
            }
            Command::Allocation { token, span } => self.on_allocation(token, span),
            Command::Note { token, key, value } => self.on_note(token, key, value),
            Command::Discard { volume, stretch } => self.on_discard(Region { volume, stretch }),
            Command::Verify { token, span, width } => self.on_read(token, span, width, Wanted::Check, None),
            Command::Inventory { token, after } => self.on_inventory(token, after),
            Command::Remember { token, completions } => self.on_remember(token, completions),
            Command::Barrier { token } => self.on_barrier(token),
            Command::Forget { span } => self.on_forget(span),
        }
    }

    fn on_io(&mut self, done: IoDone) {
        let Some(purpose) = self.in_flight.remove(&done.token) else { return };
        match (purpose, done.result) {
            _ if self.broken => {}
            (_, Err(IoFault::Failed(why))) => self.fail(&why),
            // What a read needs to find its blocks no other brick can give.
            (Purpose::Page(key), Err(IoFault::Left)) => self.ask_page(key, None),
            (Purpose::Page(key), result) => self.on_page(key, result.ok()),
            (Purpose::Look(key, destages), result) => self.on_looked(key, destages, result.ok()),
            (Purpose::Blocks(read, _), Err(IoFault::Left)) => self.on_left(read),
            (Purpose::Blocks(read, run), result) => self.on_blocks(read, run, result.ok()),
            (purpose, Err(fault)) => self.fail(&format!("{}: {fault}", purpose.what())),
            (Purpose::Group, Ok(_)) => self.on_group_part(),
            (Purpose::GroupFlush, Ok(_)) => self.on_group_durable(),
            (Purpose::Home(page), Ok(_)) => self.on_home_written(page),
            (Purpose::CycleFlush, Ok(_)) => self.on_cycle_flushed(),
            (Purpose::Header, Ok(_)) => self.on_header_written(),
        }
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.out.push(StoreEffect::Reply(reply));
    }

    pub(crate) fn ask(&mut self, purpose: Purpose, kind: IoKind) {
        self.next_token += 1;
        match &kind {
            IoKind::Flush => self.stats.flushes += 1,
            IoKind::Write { durable: true, .. } => self.stats.durable_writes += 1,
            _ => {}
        }
        self.in_flight.insert(self.next_token, purpose);
        self.out.push(StoreEffect::Io(Io { token: self.next_token, kind }));
    }

    pub(crate) fn write(&mut self, purpose: Purpose, offset: u64, payload: Payload, durable: bool) {
        self.ask(purpose, IoKind::Write { offset, payload, durable });
    }

    /// Ends all work: after a failed write or flush nobody knows what is on the disk, and asking again may be answered
    /// with a success that is none.
    pub(crate) fn fail(&mut self, why: &str) {
        self.broken = true;
        self.reply(Reply::Broken { why: why.to_string() });
        let items = self.group.take().into_iter().flat_map(|group| group.items);
        let items: Vec<Item> = items.chain(self.queue.drain()).collect();
        let mut replies: Vec<Reply> = items.iter().flat_map(|item| self.tokens_of(item)).collect();
        let settling = core::mem::take(&mut self.settling).into_iter();
        replies.extend(settling.map(|token| Reply::Noted { token, result: Err(StoreError::Failed) }));
        let held = core::mem::take(&mut self.held_reads);
        let reads = core::mem::take(&mut self.reads).into_values().chain(held);
        replies.extend(reads.filter_map(|read| read.refusal()));
        replies.extend(self.works.drain(..).filter_map(|work| work.refusal()));
        replies.extend(self.refuse_barriers());
        replies.into_iter().for_each(|reply| self.reply(reply));
    }

    fn check(&self, depth: Depth) {
        assert!(self.journal.used() <= self.journal.capacity(), "the journal overran its tail");
        assert!(
            self.fresh.is_empty() || !self.writes.is_empty() || self.broken,
            "applied content without its write"
        );
        if depth == Depth::Deep && !self.broken {
            self.check_deep();
        }
    }

    fn check_deep(&self) {
        [&self.fresh, &self.durable, &self.destaging].into_iter().for_each(Overlay::check);
        self.cache.check();
        self.slots.check();
        self.pages.places.check();
        let cost: usize = self.writes.values().map(|write| write.cost).sum();
        let mends: usize = self.works.iter().map(Work::cost).sum();
        assert_eq!(cost + mends, self.live_cost, "the accounts of live writes");
        let homes: u32 = self.pages.iter().map(|(_, home)| home.slots.count_ones()).sum();
        assert!(homes <= self.slots.used(), "{homes} slots are mapped, {} in use", self.slots.used());
        let mut seen = BTreeSet::new();
        for (key, page) in self.pages.residents() {
            assert_eq!(self.pages.home(key).map(|home| home.slots), Some(page.slot_mask()), "page {key:?}");
            for slot in page.slots() {
                assert!(
                    self.slots.is_used(slot) && seen.insert(slot),
                    "slot {slot} is mapped twice, or free"
                );
            }
        }
        assert!(self.durable.slots().all(|slot| self.slots.is_used(slot)), "a journalled slot is free");
    }
}

impl Purpose {
    fn what(&self) -> &'static str {
        match self {
            Purpose::Group => "journal write",
            Purpose::GroupFlush => "journal flush",
            Purpose::Page(_) | Purpose::Look(..) => "metadata read",
            Purpose::Blocks(..) => "data read",
            Purpose::Home(None) => "data write",
            Purpose::Home(Some(_)) => "metadata write",
            Purpose::CycleFlush => "data flush",
            Purpose::Header => "journal header write",
        }
    }
}

/// A twentieth of the journal for the memory of effects, 32 bytes each, and at most what one client's bound times 64 is.
fn effects_max(journal_bytes: u64) -> usize {
    (journal_bytes as usize / 20 / 32).min(64 * 4096)
}
