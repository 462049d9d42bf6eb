//! A brick put together: the protocol's [`Brick`] and the [`Store`] of each of its disks, as one machine. Both worlds
//! drive this value, so that what is simulated is what runs.
//!
//! Deliberately absent: protocol, formats. Whatever goes between brick and stores goes through unchanged.

use base::{Depth, Machine, NodeId, Time};
use proto::brick::{Brick, BrickConfig, BrickEffect, BrickEvent};
use proto::counters::Counters;
use std::collections::VecDeque;
use store::{Io, IoDone, Store, StoreConfig, StoreEffect, StoreEvent};
use wire::Packet;
use wire::disk::{Command, Recovered};

/// What happens to a brick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet came. `from` is what the transport has authenticated.
    Packet {
        /// The sender.
        from: NodeId,
        /// What it says.
        packet: Packet,
    },
    /// A peer can be reached (again).
    Up(NodeId),
    /// The connection to a peer is gone.
    Down(NodeId),
    /// A disk answers.
    Disk {
        /// Which.
        disk: usize,
        /// The answer.
        done: IoDone,
    },
}

/// What a brick asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this; it may get lost.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        packet: Packet,
    },
    /// Ask a disk.
    Disk {
        /// Which.
        disk: usize,
        /// What.
        io: Io,
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

/// A brick and its stores.
pub struct BrickNode {
    config: BrickConfig,
    stores: Vec<Store>,
    phase: Phase,
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

    /// What happened so far, by name.
    pub fn counters(&self) -> Option<&Counters> {
        self.brick().map(Brick::counters)
    }

    /// Its stores, for their statistics.
    pub fn stores(&self) -> &[Store] {
        &self.stores
    }

    fn to_store(&mut self, now: Time, disk: usize, event: StoreEvent, fx: &mut Vec<Effect>) {
        let Some(store) = self.stores.get_mut(disk) else { return };
        let mut store_fx = core::mem::take(&mut self.store_fx);
        store.step(now, event, &mut store_fx);
        self.from_store(now, disk, store_fx, fx);
    }

    fn from_store(&mut self, now: Time, disk: usize, mut store_fx: Vec<StoreEffect>, fx: &mut Vec<Effect>) {
        let mut replies = VecDeque::new();
        for effect in store_fx.drain(..) {
            match effect {
                StoreEffect::Io(io) => fx.push(Effect::Disk { disk, io }),
                StoreEffect::Reply(reply) => replies.push_back(reply),
                StoreEffect::Opened(result) => self.opened(now, disk, result.map(|found| *found), fx),
            }
        }
        self.store_fx = store_fx;
        for reply in replies {
            self.to_brick(now, BrickEvent::Store { disk, reply }, fx);
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
            self.phase = Phase::Running(Box::new(Brick::new(self.config.clone(), found, now)));
            fx.push(Effect::Ready);
        }
    }

    fn to_brick(&mut self, now: Time, event: BrickEvent, fx: &mut Vec<Effect>) {
        self.with_brick(now, fx, |brick, brick_fx| brick.step(now, event, brick_fx));
    }

    /// Lets the brick work, and passes on what it asks for.
    fn with_brick(&mut self, now: Time, fx: &mut Vec<Effect>, work: impl FnOnce(&mut Brick, &mut Vec<BrickEffect>)) {
        let Phase::Running(brick) = &mut self.phase else { return };
        let mut brick_fx = core::mem::take(&mut self.brick_fx);
        work(brick, &mut brick_fx);
        let mut commands: Vec<(usize, Command)> = Vec::new();
        for effect in brick_fx.drain(..) {
            match effect {
                BrickEffect::Send { to, packet } => fx.push(Effect::Send { to, packet }),
                BrickEffect::Store { disk, command } => commands.push((disk, command)),
            }
        }
        self.brick_fx = brick_fx;
        for (disk, command) in commands {
            self.to_store(now, disk, StoreEvent::Command(command), fx);
        }
    }

    fn with_stores(
        &mut self,
        now: Time,
        fx: &mut Vec<Effect>,
        work: impl Fn(&mut Store, Time, &mut Vec<StoreEffect>),
    ) {
        for disk in 0..self.stores.len() {
            let mut store_fx = core::mem::take(&mut self.store_fx);
            work(&mut self.stores[disk], now, &mut store_fx);
            self.from_store(now, disk, store_fx, fx);
        }
    }

    fn report_space(&mut self) {
        let (mut capacity, mut used, mut unreadable) = (0, 0, 0);
        for store in &self.stores {
            capacity += store.space().capacity_bytes;
            used += store.space().used_bytes;
            unreadable += store.stats().unreadable_blocks;
        }
        if let Phase::Running(brick) = &mut self.phase {
            brick.set_space(capacity, used, unreadable);
        }
    }
}

impl Machine for BrickNode {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Time, event: Event, fx: &mut Vec<Effect>) {
        match event {
            Event::Packet { from, packet } => self.to_brick(now, BrickEvent::Packet { from, packet }, fx),
            Event::Up(node) => self.to_brick(now, BrickEvent::Up(node), fx),
            Event::Down(node) => self.to_brick(now, BrickEvent::Down(node), fx),
            Event::Disk { disk, done } => self.to_store(now, disk, StoreEvent::Io(done), fx),
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Effect>) {
        self.with_brick(now, fx, |brick, brick_fx| brick.settle(now, brick_fx));
        self.with_stores(now, fx, |store, now, store_fx| store.settle(now, store_fx));
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<Effect>) {
        self.report_space();
        self.with_brick(now, fx, |brick, brick_fx| brick.wake(now, brick_fx));
        self.with_stores(now, fx, |store, now, store_fx| store.wake(now, store_fx));
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
