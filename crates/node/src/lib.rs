//! A brick put together: the protocol's [`Brick`], the [`Store`] of each of its disks, and before a disk whose heads are
//! seen its [`Heads`], as one machine. Both worlds drive this value, so that what is simulated is what runs.
//!
//! Deliberately absent: protocol, formats. Whatever goes between the parts goes through unchanged.

use base::{Depth, Machine, NodeId, Time, VolumeId};
use code::{Computation, Computed};
use core::ops::{Add, Range};
use core::time::Duration;
use reads::seat::heads::{self, Heads, Served};
use roles::brick::{Brick, BrickConfig, BrickEffect, BrickEvent};
use rules::counters::{Counter, Counters};
use std::collections::{BTreeSet, VecDeque};
use store::{Io, IoDone, IoFault, IoKind, Space, Stats, Store, StoreConfig, StoreEffect, StoreEvent};
use wire::Packet;
use wire::disk::{Recovered, Reply};

/// What happens to a brick.
#[derive(Debug)]
pub enum Event {
    /// A packet came. `from` is what the transport has authenticated.
    Packet {
        from: NodeId,
        packet: Packet,
    },
    /// A peer can be reached (again).
    Up(NodeId),
    /// The connection to a peer is gone.
    Down(NodeId),
    Disk {
        disk: usize,
        done: IoDone,
    },
    /// Answers [`Effect::Compute`].
    Computed {
        number: u64,
        made: Computed,
    },
    /// The heads of each disk from now on, in order; empty where no heads are seen.
    Heads(Vec<Heads<Io>>),
}

/// What a brick asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// Another brick is reached there.
    Address {
        node: NodeId,
        /// Where.
        address: String,
    },
    Disk {
        disk: usize,
        io: Io,
        /// When it is done, where a head that is seen serves it; otherwise, and for journal, metadata and what non-volatile memory
        /// takes, as soon as can be.
        due: Option<Time>,
    },
    /// Compute this, where there is a processor for it. Answered by [`Event::Computed`] under the same number, always.
    Compute { number: u64, computation: Computation },
    /// All disks are open: it serves from now on.
    Ready,
    /// A disk is refused: the brick cannot start.
    Failed {
        /// Which disk, what is wrong with it, and what to do.
        why: String,
    },
}

enum Phase {
    Opening(Opening),
    Running(Box<Brick>),
    Failed,
}

/// Disks are being read: what the brick is told as soon as it runs.
struct Opening {
    /// What each disk held, once it is known.
    found: Vec<Option<Recovered>>,
    /// Who can be reached.
    reached: BTreeSet<NodeId>,
    /// What stores that are open already have said. They say it once: that one wants to destage, or that its disk failed.
    replies: Vec<(usize, Reply)>,
}

/// What one part has for another.
enum Job {
    Brick(BrickEvent),
    Store(usize, StoreEvent),
    Heads(usize, heads::Event<Io>),
}

/// What a brick keeps its blocks in: the words of [`wire::disk`] over reads and writes of one disk. It is the [`Store`] where
/// data are to last.
pub trait Backing: Machine<Event = StoreEvent, Effect = StoreEffect> {
    /// What tells its disk from all others; `None` before it is open.
    fn identity(&self) -> Option<u64>;
    fn space(&self) -> Space;
    fn stats(&self) -> Stats;
    /// Where the disk keeps blocks, in bytes from its beginning; `None` before it is open.
    fn blocks_region(&self) -> Option<Range<u64>>;
    /// What it holds behind `after`, as [`wire::disk::Command::Inventory`] tells it.
    fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)>;
    /// Whether a block of data has a stamp, as far as that is known without reading.
    fn has_stamp(&self, volume: VolumeId, lba: u64) -> Option<bool>;
}

impl Backing for Store {
    fn identity(&self) -> Option<u64> {
        Store::identity(self)
    }

    fn space(&self) -> Space {
        Store::space(self)
    }

    fn stats(&self) -> Stats {
        Store::stats(self)
    }

    fn blocks_region(&self) -> Option<Range<u64>> {
        Store::blocks_region(self)
    }

    fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        Store::stretches(self, after)
    }

    fn has_stamp(&self, volume: VolumeId, lba: u64) -> Option<bool> {
        Store::has_stamp(self, volume, lba)
    }
}

impl<B: Backing + ?Sized> Backing for Box<B> {
    fn identity(&self) -> Option<u64> {
        (**self).identity()
    }

    fn space(&self) -> Space {
        (**self).space()
    }

    fn stats(&self) -> Stats {
        (**self).stats()
    }

    fn blocks_region(&self) -> Option<Range<u64>> {
        (**self).blocks_region()
    }

    fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        (**self).stretches(after)
    }

    fn has_stamp(&self, volume: VolumeId, lba: u64) -> Option<bool> {
        (**self).has_stamp(volume, lba)
    }
}

/// A brick and its stores.
pub struct BrickNode<B = Store> {
    config: BrickConfig,
    stores: Vec<B>,
    phase: Phase,
    queue: VecDeque<Job>,
    /// One for each disk, or none.
    heads: Vec<Heads<Io>>,
    /// What heads have done that are seen no more.
    served: Served,
    #[cfg(feature = "planted")]
    rules: &'static dyn rules::promises::Rules,
    /// Kept between steps so that they allocate nothing.
    store_fx: Vec<StoreEffect>,
    brick_fx: Vec<BrickEffect>,
    heads_fx: Vec<heads::Effect<Io>>,
}

impl BrickNode {
    /// A brick whose disks have yet to be read: the first `settle` asks for it.
    pub fn open(config: BrickConfig, disks: Vec<StoreConfig>) -> BrickNode {
        BrickNode::over(config, disks.into_iter().map(Store::open).collect())
    }
}

impl<B: Backing> BrickNode<B> {
    /// A brick over stores that have yet to be opened: the first `settle` does it.
    pub fn over(config: BrickConfig, stores: Vec<B>) -> BrickNode<B> {
        assert!(!stores.is_empty(), "a brick has a disk");
        BrickNode {
            phase: Phase::Opening(Opening {
                found: vec![None; stores.len()],
                reached: BTreeSet::new(),
                replies: Vec::new(),
            }),
            stores,
            config,
            queue: VecDeque::new(),
            heads: Vec::new(),
            served: Served::default(),
            #[cfg(feature = "planted")]
            rules: rules::promises::SOUND,
            store_fx: Vec::new(),
            brick_fx: Vec::new(),
            heads_fx: Vec::new(),
        }
    }

    /// The brick, once its disks are open.
    pub fn brick(&self) -> Option<&Brick> {
        match &self.phase {
            Phase::Running(brick) => Some(brick),
            _ => None,
        }
    }

    /// Goes by other rules from when the brick runs, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.rules = rules;
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> Option<&Counters> {
        self.brick().map(Brick::counters)
    }

    /// Its stores, for their statistics.
    pub fn stores(&self) -> &[B] {
        &self.stores
    }

    /// The heads of its disks, where they are seen.
    pub fn heads(&self) -> &[Heads<Io>] {
        &self.heads
    }

    /// How much of the time for which its heads were busy is still to come, in the devices' time.
    pub fn ahead(&self, now: Time) -> Duration {
        self.heads.iter().map(|heads| heads.ahead(now)).sum()
    }

    /// What all heads have done since the start, together.
    pub fn served(&self) -> Served {
        self.heads.iter().map(Heads::served).fold(self.served, Served::add)
    }

    /// Does what is queued, and what follows from it, in order. Nothing here calls itself: a chain of commands and
    /// answers is as long as it is, not as deep.
    fn run(&mut self, now: Time, fx: &mut Vec<Effect>) {
        while let Some(job) = self.queue.pop_front() {
            match job {
                Job::Brick(event) => self.with_brick(fx, |brick, brick_fx| brick.step(now, event, brick_fx)),
                Job::Store(disk, event) => {
                    self.with_store(now, disk, fx, |store, store_fx| store.step(now, event, store_fx));
                }
                Job::Heads(disk, event) => {
                    self.with_heads(disk, fx, |heads, heads_fx| heads.step(now, event, heads_fx));
                }
            }
        }
    }

    /// Lets the brick work, and queues what it asks of its stores.
    fn with_brick(&mut self, fx: &mut Vec<Effect>, work: impl FnOnce(&mut Brick, &mut Vec<BrickEffect>)) {
        let Phase::Running(brick) = &mut self.phase else { return };
        work(brick, &mut self.brick_fx);
        for effect in self.brick_fx.drain(..) {
            match effect {
                BrickEffect::Send { to, packet } => fx.push(Effect::Send { to, packet }),
                BrickEffect::Address { node, address } => fx.push(Effect::Address { node, address }),
                BrickEffect::Compute { number, computation } => {
                    fx.push(Effect::Compute { number, computation });
                }
                BrickEffect::Store { disk, command } => {
                    self.queue.push_back(Job::Store(disk, StoreEvent::Command(command)));
                }
                BrickEffect::Claimed { disk, attempt, bid_ns, brick } => {
                    let claimed = heads::Event::Claimed { attempt, bid_ns, brick };
                    self.queue.push_back(Job::Heads(disk, claimed));
                }
            }
        }
    }

    /// Lets a store work, and queues its answers.
    fn with_store(
        &mut self,
        now: Time,
        disk: usize,
        fx: &mut Vec<Effect>,
        work: impl FnOnce(&mut B, &mut Vec<StoreEffect>),
    ) {
        let Some(store) = self.stores.get_mut(disk) else { return };
        let mut store_fx = core::mem::take(&mut self.store_fx);
        work(store, &mut store_fx);
        for effect in store_fx.drain(..) {
            match effect {
                StoreEffect::Io(io) if self.heads.is_empty() => fx.push(Effect::Disk { disk, io, due: None }),
                StoreEffect::Io(io) => match to_heads(io) {
                    Ok(event) => self.queue.push_back(Job::Heads(disk, event)),
                    Err(io) => fx.push(Effect::Disk { disk, io, due: None }),
                },
                StoreEffect::Reply(reply) => match &mut self.phase {
                    Phase::Opening(opening) => opening.replies.push((disk, reply)),
                    _ => self.queue.push_back(Job::Brick(BrickEvent::Store { disk, reply })),
                },
                StoreEffect::Opened(result) => self.opened(now, disk, result.map(|found| *found), fx),
            }
        }
        self.store_fx = store_fx;
    }

    /// Lets the heads of a disk work, and queues what they have for others.
    fn with_heads(
        &mut self,
        disk: usize,
        fx: &mut Vec<Effect>,
        work: impl FnOnce(&mut Heads<Io>, &mut Vec<heads::Effect<Io>>),
    ) {
        let Some(heads) = self.heads.get_mut(disk) else { return };
        work(heads, &mut self.heads_fx);
        for effect in self.heads_fx.drain(..) {
            match effect {
                heads::Effect::Issue { item: io, due } => fx.push(Effect::Disk { disk, io, due }),
                heads::Effect::Left { item: Io { token, .. } } => {
                    let done = IoDone { token, result: Err(IoFault::Left) };
                    self.queue.push_back(Job::Store(disk, StoreEvent::Io(done)));
                }
                heads::Effect::Claim { attempt, bid_ns, holders } => {
                    self.queue.push_back(Job::Brick(BrickEvent::Claims { disk, attempt, bid_ns, holders }));
                }
            }
        }
    }

    /// Other heads, or none, from now on. What waited for those before goes to the disk at once.
    fn set_heads(&mut self, heads: Vec<Heads<Io>>, fx: &mut Vec<Effect>) {
        assert!(heads.is_empty() || heads.len() == self.stores.len(), "each disk has heads, or none has");
        self.served = self.served();
        let before = core::mem::replace(&mut self.heads, heads);
        for (disk, heads) in before.into_iter().enumerate() {
            fx.extend(heads.into_waiting().map(|io| Effect::Disk { disk, io, due: None }));
        }
        self.see_heads();
    }

    /// The heads know the blocks, and the brick knows of the heads.
    fn see_heads(&mut self) {
        let regions = self.stores.iter().map(B::blocks_region);
        for (heads, region) in self.heads.iter_mut().zip(regions) {
            region.into_iter().for_each(|region| heads.set_area(region));
        }
        self.queue.push_back(Job::Brick(BrickEvent::HeadsSeen(!self.heads.is_empty())));
    }

    fn with_stores(&mut self, now: Time, fx: &mut Vec<Effect>, work: impl Fn(&mut B, &mut Vec<StoreEffect>)) {
        for disk in 0..self.stores.len() {
            self.with_store(now, disk, fx, &work);
            self.run(now, fx);
        }
    }

    fn opened(
        &mut self,
        now: Time,
        disk: usize,
        result: Result<Recovered, store::OpenError>,
        fx: &mut Vec<Effect>,
    ) {
        let Phase::Opening(opening) = &mut self.phase else { return };
        match result {
            Ok(recovered) => opening.found[disk] = Some(recovered),
            Err(error) => {
                self.phase = Phase::Failed;
                return fx.push(Effect::Failed { why: format!("disk {disk}: {error}") });
            }
        }
        if opening.found.iter().any(Option::is_none) {
            return;
        }
        let found = opening.found.drain(..).flatten().collect();
        let (reached, replies) =
            (core::mem::take(&mut opening.reached), core::mem::take(&mut opening.replies));
        let mut brick = Brick::new(self.config.clone(), found, now);
        #[cfg(feature = "planted")]
        brick.set_rules(self.rules);
        brick.set_disks(self.stores.iter().filter_map(B::identity).collect());
        if self.stores.iter().any(|store| store.stats().journal.torn_tails > 0) {
            brick.count(Counter::TornJournalTailAtRecovery);
        }
        let pages = || self.stores.iter().map(|store| store.stats().pages);
        if pages().any(|pages| pages.is_mapped && pages.count > 0) {
            brick.count(Counter::DiskOpenedByItsMap);
        }
        if pages().any(|pages| pages.is_mapped && pages.read_at_open > 0) {
            brick.count(Counter::DiskOpenedByItsMapAfterAnInterruptedCycle);
        }
        if pages().any(|pages| !pages.is_mapped && pages.read_at_open > 0) {
            brick.count(Counter::DiskOpenedByAllItsPages);
        }
        self.phase = Phase::Running(Box::new(brick));
        // They were seen before it was known where the blocks are.
        self.see_heads();
        let said = replies.into_iter().map(|(disk, reply)| BrickEvent::Store { disk, reply });
        self.queue.extend(said.chain(reached.into_iter().map(BrickEvent::Up)).map(Job::Brick));
        fx.push(Effect::Ready);
    }

    /// Reading the disks takes its time: who comes and goes meanwhile must not be forgotten.
    fn note_peer(&mut self, event: &Event) {
        let Phase::Opening(Opening { reached, .. }) = &mut self.phase else { return };
        match event {
            Event::Up(peer) => drop(reached.insert(*peer)),
            Event::Down(peer) => drop(reached.remove(peer)),
            Event::Packet { .. } | Event::Disk { .. } | Event::Computed { .. } | Event::Heads(_) => {}
        }
    }

    fn report_space(&mut self) {
        let (mut capacity, mut used, mut unreadable, mut fullest) = (0, 0, 0, 0);
        for store in &self.stores {
            let space = store.space();
            capacity += space.capacity_bytes;
            used += space.used_bytes;
            unreadable += store.stats().reads.unreadable_blocks;
            fullest = fullest.max(space.full_percent);
        }
        if let Phase::Running(brick) = &mut self.phase {
            brick.set_space(capacity, used, fullest, unreadable);
            let journals = self.stores.iter().map(|store| store.stats().journal);
            brick.set_journals(journals.map(|journal| (journal.found_bytes, journal.durable_bytes)));
        }
    }
}

impl<B: Backing> Machine for BrickNode<B> {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Time, event: Event, fx: &mut Vec<Effect>) {
        self.note_peer(&event);
        match event {
            Event::Packet { from, packet } => {
                self.queue.push_back(Job::Brick(BrickEvent::Packet { from, packet }));
            }
            Event::Up(node) => self.queue.push_back(Job::Brick(BrickEvent::Up(node))),
            Event::Down(node) => self.queue.push_back(Job::Brick(BrickEvent::Down(node))),
            Event::Disk { disk, done } => self.queue.push_back(Job::Store(disk, StoreEvent::Io(done))),
            Event::Computed { number, made } => {
                self.queue.push_back(Job::Brick(BrickEvent::Computed { number, made }));
            }
            Event::Heads(heads) => self.set_heads(heads, fx),
        }
        self.run(now, fx);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Effect>) {
        loop {
            self.with_brick(fx, |brick, brick_fx| brick.settle(now, brick_fx));
            self.run(now, fx);
            self.with_stores(now, fx, |store, store_fx| store.settle(now, store_fx));
            for disk in 0..self.heads.len() {
                self.with_heads(disk, fx, |heads, heads_fx| heads.settle(now, heads_fx));
            }
            // Heads that claimed a read, or left one to another brick, have something for those before them.
            if self.queue.is_empty() {
                return;
            }
            self.run(now, fx);
        }
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<Effect>) {
        self.report_space();
        self.with_brick(fx, |brick, brick_fx| brick.wake(now, brick_fx));
        self.run(now, fx);
        self.with_stores(now, fx, |store, store_fx| store.wake(now, store_fx));
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let brick = self.brick().and_then(Machine::deadline);
        let heads = self.heads.iter().map(Machine::deadline);
        self.stores.iter().map(Machine::deadline).chain(heads).chain([brick]).flatten().min()
    }

    fn check(&self, depth: Depth) {
        self.stores.iter().for_each(|store| store.check(depth));
        self.heads.iter().for_each(|heads| heads.check(depth));
        if let Some(brick) = self.brick() {
            brick.check(depth);
        }
    }
}

/// What waits for the heads of a disk: reads and writes. A flush moves no block, and does not wait.
fn to_heads(io: Io) -> Result<heads::Event<Io>, Io> {
    Ok(match &io.kind {
        IoKind::Read { offset, length, contested } => {
            let (offset, bytes, contested) = (*offset, *length as u64, contested.clone());
            heads::Event::Read { offset, bytes, contested, item: io }
        }
        IoKind::Write { offset, payload, .. } => {
            let (offset, bytes) = (*offset, payload.len() as u64);
            heads::Event::Write { offset, bytes, item: io }
        }
        IoKind::Flush => return Err(io),
    })
}
