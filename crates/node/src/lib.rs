//! A brick put together: the protocol's [`Brick`] and the [`Store`] of each of its disks, as one machine. Both worlds
//! drive this value, so that what is simulated is what runs.
//!
//! Deliberately absent: protocol, formats. Whatever goes between brick and stores goes through unchanged.

use base::{BrickId, Depth, Machine, NodeId, Time};
use proto::brick::{Brick, BrickConfig, BrickEffect, BrickEvent};
use proto::counters::{Counter, Counters};
use proto::distribute::claim::{Attempt, Holders};
use std::collections::{BTreeSet, VecDeque};
use store::{Io, IoDone, Store, StoreConfig, StoreEffect, StoreEvent};
use wire::Packet;
use wire::disk::Recovered;

/// What happens to a brick.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Whether the heads of the disks are seen from now on.
    HeadsSeen(bool),
    /// A disk is about to serve a contested read.
    Claims {
        disk: usize,
        attempt: Attempt,
        /// What it will take, in nanoseconds.
        bid_ns: u64,
        holders: Holders,
    },
}

/// What a brick asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this; it may get lost.
    Send {
        to: NodeId,
        packet: Packet,
    },
    /// Another brick is reached there.
    Address {
        node: NodeId,
        /// Where.
        address: String,
    },
    Disk {
        disk: usize,
        io: Io,
    },
    /// Another brick serves a contested read: if it waits here it is answered with [`store::IoFault::Left`].
    Claimed {
        disk: usize,
        attempt: Attempt,
        /// What it takes there, in nanoseconds.
        bid_ns: u64,
        brick: BrickId,
    },
    /// All disks are open: it serves from now on.
    Ready,
    /// A disk is refused: the brick cannot start.
    Failed {
        /// Which disk, what is wrong with it, and what to do.
        why: String,
    },
}

enum Phase {
    /// Disks are being read; what each held, once it is known.
    Opening(Vec<Option<Recovered>>),
    Running(Box<Brick>),
    Failed,
}

/// What one part has for another.
enum Job {
    Brick(BrickEvent),
    Store(usize, StoreEvent),
}

/// A brick and its stores.
pub struct BrickNode {
    config: BrickConfig,
    stores: Vec<Store>,
    phase: Phase,
    /// Who could be reached before the brick ran; it is told when it does.
    reached: BTreeSet<NodeId>,
    queue: VecDeque<Job>,
    heads_seen: bool,
    #[cfg(feature = "planted")]
    rules: &'static dyn proto::rules::Rules,
    /// Kept between steps so that they allocate nothing.
    store_fx: Vec<StoreEffect>,
    brick_fx: Vec<BrickEffect>,
}

impl BrickNode {
    /// A brick whose disks have yet to be read: the first `settle` asks for it.
    pub fn open(config: BrickConfig, disks: Vec<StoreConfig>) -> BrickNode {
        assert!(!disks.is_empty(), "a brick has a disk");
        BrickNode {
            phase: Phase::Opening(vec![None; disks.len()]),
            stores: disks.into_iter().map(Store::open).collect(),
            config,
            reached: BTreeSet::new(),
            queue: VecDeque::new(),
            heads_seen: false,
            #[cfg(feature = "planted")]
            rules: proto::rules::SOUND,
            store_fx: Vec::new(),
            brick_fx: Vec::new(),
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
    pub fn set_rules(&mut self, rules: &'static dyn proto::rules::Rules) {
        self.rules = rules;
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> Option<&Counters> {
        self.brick().map(Brick::counters)
    }

    /// Its stores, for their statistics.
    pub fn stores(&self) -> &[Store] {
        &self.stores
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
                BrickEffect::Store { disk, command } => {
                    self.queue.push_back(Job::Store(disk, StoreEvent::Command(command)));
                }
                BrickEffect::Claimed { disk, attempt, bid_ns, brick } => {
                    fx.push(Effect::Claimed { disk, attempt, bid_ns, brick });
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
        work: impl FnOnce(&mut Store, &mut Vec<StoreEffect>),
    ) {
        let Some(store) = self.stores.get_mut(disk) else { return };
        let mut store_fx = core::mem::take(&mut self.store_fx);
        work(store, &mut store_fx);
        for effect in store_fx.drain(..) {
            match effect {
                StoreEffect::Io(io) => fx.push(Effect::Disk { disk, io }),
                StoreEffect::Reply(reply) => {
                    self.queue.push_back(Job::Brick(BrickEvent::Store { disk, reply }))
                }
                StoreEffect::Opened(result) => self.opened(now, disk, result.map(|found| *found), fx),
            }
        }
        self.store_fx = store_fx;
    }

    fn with_stores(
        &mut self,
        now: Time,
        fx: &mut Vec<Effect>,
        work: impl Fn(&mut Store, &mut Vec<StoreEffect>),
    ) {
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
        let Phase::Opening(found) = &mut self.phase else { return };
        match result {
            Ok(recovered) => found[disk] = Some(recovered),
            Err(error) => {
                self.phase = Phase::Failed;
                return fx.push(Effect::Failed { why: format!("disk {disk}: {error}") });
            }
        }
        if found.iter().all(Option::is_some) {
            let found = core::mem::take(found).into_iter().flatten().collect();
            let mut brick = Brick::new(self.config.clone(), found, now);
            #[cfg(feature = "planted")]
            brick.set_rules(self.rules);
            let mut none = Vec::new();
            brick.step(now, BrickEvent::HeadsSeen(self.heads_seen), &mut none);
            brick.set_disks(self.stores.iter().filter_map(Store::identity).collect());
            if self.stores.iter().any(|store| store.stats().journal.torn_tails > 0) {
                brick.count(Counter::TornJournalTailAtRecovery);
            }
            self.phase = Phase::Running(Box::new(brick));
            let reached = core::mem::take(&mut self.reached);
            self.queue.extend(reached.into_iter().map(|peer| Job::Brick(BrickEvent::Up(peer))));
            fx.push(Effect::Ready);
        }
    }

    /// Reading the disks takes its time: who comes and goes meanwhile must not be forgotten.
    fn note_peer(&mut self, event: &Event) {
        match event {
            _ if !matches!(self.phase, Phase::Opening(_)) => {}
            Event::Up(peer) => drop(self.reached.insert(*peer)),
            Event::Down(peer) => drop(self.reached.remove(peer)),
            Event::HeadsSeen(seen) => self.heads_seen = *seen,
            Event::Packet { .. } | Event::Disk { .. } | Event::Claims { .. } => {}
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
        }
    }
}

impl Machine for BrickNode {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Time, event: Event, fx: &mut Vec<Effect>) {
        self.note_peer(&event);
        self.queue.push_back(match event {
            Event::Packet { from, packet } => Job::Brick(BrickEvent::Packet { from, packet }),
            Event::Up(node) => Job::Brick(BrickEvent::Up(node)),
            Event::Down(node) => Job::Brick(BrickEvent::Down(node)),
            Event::Disk { disk, done } => Job::Store(disk, StoreEvent::Io(done)),
            Event::HeadsSeen(seen) => Job::Brick(BrickEvent::HeadsSeen(seen)),
            Event::Claims { disk, attempt, bid_ns, holders } => {
                Job::Brick(BrickEvent::Claims { disk, attempt, bid_ns, holders })
            }
        });
        self.run(now, fx);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Effect>) {
        self.with_brick(fx, |brick, brick_fx| brick.settle(now, brick_fx));
        self.run(now, fx);
        self.with_stores(now, fx, |store, store_fx| store.settle(now, store_fx));
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
        self.stores.iter().map(Machine::deadline).chain([brick]).flatten().min()
    }

    fn check(&self, depth: Depth) {
        self.stores.iter().for_each(|store| store.check(depth));
        if let Some(brick) = self.brick() {
            brick.check(depth);
        }
    }
}
