//! Nodes come and go: start, crash, restart, pause.

use super::bay::Bay;
use super::event::Input;
use super::heads;
use super::role::Role;
use super::{Kind, World};
use crate::objects::named::HOLD_NS;
use crate::options::Bounds;
use base::{BrickId, ClientId, ClusterId, GatewayId, Machine, NodeId, Time};
use core::time::Duration;
use model::{Clock, PowerCut};
use node::{Backing, BrickNode};
use objects::index::IndexConfig;
use roles::brick::BrickConfig;
use roles::client::{Client, ClientConfig};
use roles::directory::{Directory, DirectoryConfig};
use roles::gateway::{Gateway, GatewayConfig, Serves};
use store::{FormatOptions, Store, StoreConfig};

const CLUSTER: ClusterId = ClusterId(*b"simulated world.");

impl World {
    pub(crate) fn add_directory(&mut self) {
        let node = self.nodes.add(NodeId::Directory, Kind::Directory);
        self.boot(node);
    }

    /// Starts a brick on empty disks.
    pub(crate) fn add_brick(&mut self, id: BrickId) {
        let node = self.nodes.add(NodeId::Brick(id), Kind::Brick(id));
        match &self.shape.hardware {
            Some(hardware) => {
                let shelves = hardware.shelves(id, self.physics.draw());
                self.nodes[node].set_shelves(shelves);
            }
            None => {
                let bay = self.format(id);
                self.nodes[node].set_disks(bay);
            }
        }
        self.boot(node);
    }

    /// Another node with a brick's id and a copy of its disks; it does not run yet.
    pub(crate) fn add_copy(&mut self, node: usize, id: BrickId) -> usize {
        let bay = self.nodes[node].disks().copy();
        let copy = self.nodes.add(NodeId::Brick(id), Kind::Brick(id));
        self.nodes[copy].set_disks(bay);
        self.nodes[copy].set_copy();
        copy
    }

    /// A gateway under an id of its own, on the machine of a brick or on its own; it does not run yet.
    pub(crate) fn add_gateway(&mut self, beside: Option<BrickId>) -> usize {
        let id = GatewayId(self.physics.draw().bits() >> 1);
        let node = self.nodes.add(NodeId::Gateway(id), Kind::Gateway(id, beside));
        self.faults.appoint_liar(node);
        node
    }

    /// An attached client under an id of its own; it does not run yet.
    pub(crate) fn add_client(&mut self, volume: String) -> usize {
        let id = ClientId(self.physics.draw().bits());
        self.nodes.add(NodeId::Client(id), Kind::Client(id, volume))
    }

    /// Puts empty, newly formatted disks into a brick that does not run.
    pub(crate) fn exchange(&mut self, node: usize, id: BrickId) {
        let bay = self.format(id);
        self.nodes[node].set_disks(bay);
        self.note(node, "gets new disks");
    }

    /// Starts a node that does not run.
    pub(crate) fn boot(&mut self, node: usize) {
        if self.nodes[node].is_alive() || self.nodes[node].is_gone() {
            return;
        }
        self.draw_clock(node);
        let now = self.nodes[node].local(self.time.now_ns());
        let role = match self.nodes[node].kind().clone() {
            Kind::Directory => self.open_directory(now),
            Kind::Brick(id) => Some(self.open_brick(node, id, now)),
            Kind::Gateway(id, beside) => {
                // Its sessions stand for clients of its own process, so that volumes of the path `direct` are served. No gateway here
                // refuses one: that is tested in `roles` and with real processes.
                let (address, serves) = (NodeId::Gateway(id).to_string(), Serves::OwnClient);
                let config = GatewayConfig { id, name: String::new(), address, serves, beside };
                let mut gateway = Gateway::new(config, now);
                self.plant_gateway(&mut gateway);
                Some(Role::Gateway(Box::new(gateway), Vec::new()))
            }
            Kind::Client(id, volume) => {
                let config = ClientConfig { id, volume, window: self.shape.load.window };
                Some(Role::Client(Box::new(Client::new(config, now)), Vec::new()))
            }
            Kind::Operator => None,
        };
        let Some(role) = role else { return };
        self.note(node, "starts");
        self.nodes[node].start(role);
        if node != 0 {
            self.want(node, NodeId::Directory);
        }
        self.settle(node);
    }

    /// Kills a node. What it had not sent, and what was on its way to it, is lost.
    pub(crate) fn crash(&mut self, node: usize, cut: PowerCut) {
        if !self.nodes[node].is_alive() {
            return;
        }
        if let Some(counters) = self.nodes[node].counters() {
            self.judges.keep(counters);
        }
        self.note(node, &format!("crashes: {cut:?}"));
        self.clear_desk(node);
        let this = &mut self.nodes[node];
        this.stop();
        if cut != PowerCut::ProcessOnly {
            this.reboot();
        }
        if let Some(bay) = this.bay_mut() {
            self.physics.cut_power(bay, cut);
        }
        if *this.kind() == Kind::Directory {
            self.cabinet.crash(self.physics.draw());
            for shard in self.shards.values_mut().filter(|shard| !shard.is_idle()) {
                shard.crash(self.physics.draw());
            }
        }
        self.drop_connections(node);
        self.abandon(node);
        self.abandon_segments(node);
        self.abandon_objects(node);
    }

    /// Lets a node stand still: it keeps its connections, and takes all that came meanwhile when it goes on.
    pub(crate) fn pause(&mut self, node: usize) {
        if self.nodes[node].is_alive() {
            if self.nodes[node].is_in_batch() {
                self.settle(node);
            }
            self.nodes[node].pause();
            self.note(node, "stands still");
        }
    }

    /// The same, and its clock stands meanwhile, as that of a machine whose hypervisor paused it.
    pub(crate) fn pause_with_its_clock(&mut self, node: usize) {
        self.pause(node);
        if self.nodes[node].is_paused() {
            self.nodes[node].stop_clock(self.time.now_ns());
        }
    }

    /// Lets a paused node go on: with its timers or with its messages first.
    pub(crate) fn resume(&mut self, node: usize) {
        if !self.nodes[node].is_paused() {
            return;
        }
        let has_stood = self.nodes[node].resume(self.time.now_ns());
        if let Some(brick) = self.nodes[node].brick().filter(|_| has_stood) {
            self.judges.has_stood(brick);
        }
        self.note(node, "goes on");
        if self.physics.draw().percent(50) {
            self.deliver(node, Input::Wake);
        }
        let backlog = self.nodes[node].take_backlog();
        backlog.into_iter().for_each(|input| self.deliver(node, input));
        if self.nodes[node].is_alive() {
            self.settle(node);
        }
    }

    /// A node's clock goes on by `span` at once, and what is due then is due now.
    pub(crate) fn pass(&mut self, node: usize, span: Duration) {
        self.nodes[node].pass(self.time.now_ns(), span);
        self.arm(node);
    }

    /// Writes into the trace what the world does to a node.
    pub(crate) fn note(&mut self, node: usize, what: &str) {
        self.trace.note(self.time.now_ns(), self.nodes[node].id(), what);
    }

    pub(super) fn on_brick_failed(&mut self, node: usize, why: String) {
        let what = format!("{} failed: {why}", self.nodes[node].id());
        self.judge(Err(crate::checkers::Violation::new("live", what)));
    }

    fn draw_clock(&mut self, node: usize) {
        let ppm_max = u64::from(self.shape.clocks.skew_ppm);
        let draw = self.physics.draw();
        let rate_ppm = draw.between(0, 2 * ppm_max) as i32 - ppm_max as i32;
        let clocks = &self.shape.clocks;
        let now_ns = self.time.now_ns();
        let origin = Time(clocks.date.ns() + draw.below(clocks.offset_ns.max(1)) + now_ns);
        let clock = Clock::new(now_ns, origin, rate_ppm);
        self.nodes[node].set_clock(clock);
    }

    fn open_directory(&mut self, now: Time) -> Option<Role> {
        let first_time = self.shape.clocks.first_time();
        let index = IndexConfig { shards: 3, drawn: 0x0b1ec, hold: Duration::from_nanos(HOLD_NS) };
        let Bounds { page_bytes, shortest_loan, slow_hold_ns, .. } = self.shape.bounds;
        let config = DirectoryConfig {
            slow_hold_ns,
            index,
            first_time,
            page_bytes,
            shortest_loan,
            ..DirectoryConfig::default()
        };
        match Directory::new(config, self.cabinet.contents(), now) {
            Ok(mut directory) => {
                self.plant_directory(&mut directory);
                self.judges.on_directory_start();
                Some(Role::Directory(Box::new(directory), Vec::new()))
            }
            Err(why) => {
                let what = format!("the directory cannot start from its own store: {why}");
                self.judge(Err(crate::checkers::Violation::new("durable", what)));
                None
            }
        }
    }

    fn open_brick(&self, node: usize, id: BrickId, now: Time) -> Role {
        let config = BrickConfig {
            id,
            address: NodeId::Brick(id).to_string(),
            labels: vec![("host".to_owned(), format!("host-{}", id.0))],
            disks: Vec::new(),
            durability: Vec::new(),
            turns: self.shape.turns,
            shares: self.shape.shares.clone(),
            // Often, so that what is wrong with it shows within a run; with every other number of bricks as seldom as the product does, as
            // what is wrong with that shows otherwise.
            garbage_every: Duration::from_secs(if self.shape.bricks.is_multiple_of(2) { 30 } else { 2 }),
            // Disks of the torture are hardly filled: bricks are never as full as each other.
            rebalance_above: 0.0,
            page_bytes: self.shape.bounds.page_bytes,
            held_at_once: self.shape.bounds.held_at_once,
            // A block of a shelf stands for many.
            packs: !self.nodes[node].has_shelves(),
            run: self.draw_run(node),
            place: self.nodes[node].place(node),
        };
        let mut fx = Vec::new();
        if self.nodes[node].has_shelves() {
            let shelves = self.nodes[node].shelves();
            let backings = shelves.iter().map(|shelf| Box::new(shelf.open()) as Box<dyn Backing>).collect();
            let mut brick = BrickNode::over(config, backings);
            self.plant_brick(&mut brick);
            let heads: Vec<_> = shelves.iter().filter_map(|shelf| shelf.heads(now)).collect();
            brick.step(now, node::Event::Heads(heads), &mut fx);
            return Role::Brick(Box::new(brick), fx);
        }
        let store = |disk| Box::new(Store::open(self.store_config(id, disk))) as Box<dyn Backing>;
        let stores = (0..self.shape.disks.per_brick as u16).map(store).collect();
        let mut brick = BrickNode::over(config, stores);
        self.plant_brick(&mut brick);
        if self.nodes[node].shows_heads() {
            let disks = &self.shape.disks;
            let heads = heads::heads(id, disks.per_brick as usize, disks.model.bytes, now);
            brick.step(now, node::Event::Heads(heads), &mut fx);
        }
        Role::Brick(Box::new(brick), fx)
    }

    /// The number of a brick's run: of two with one id each has its own.
    fn draw_run(&self, node: usize) -> u64 {
        let of_copy = if self.nodes[node].is_copy() { node as u64 } else { 0 };
        of_copy << 32 | u64::from(self.nodes[node].life())
    }

    fn store_config(&self, brick: BrickId, disk: u16) -> StoreConfig {
        let shape = &self.shape;
        let (limits, map) = (shape.disks.limits, shape.disks.map);
        let config = StoreConfig::new(CLUSTER, brick, disk, shape.disks.model.bytes);
        self.plant_store(StoreConfig { cache_bytes: shape.disks.cache_bytes, limits, map, ..config })
    }

    /// Fresh disks for a brick.
    fn format(&mut self, brick: BrickId) -> Bay {
        let shows_heads = self.physics.draw().percent(30);
        let mut bay = Bay::new((0..self.shape.disks.per_brick).map(|_| self.shape.disks.model), shows_heads);
        for disk in 0..self.shape.disks.per_brick as u16 {
            let mut uuid = [disk as u8; 16];
            uuid[..8].copy_from_slice(&self.physics.draw().bits().to_le_bytes());
            let disk_bytes = self.shape.disks.model.bytes;
            let journal_bytes = self.shape.disks.journal_bytes;
            let options =
                FormatOptions { cluster: CLUSTER, brick, disk_index: disk, uuid, disk_bytes, journal_bytes };
            let writes = store::format(options).expect("the simulator draws disks that are large enough");
            writes.into_iter().for_each(|(offset, content)| bay.put(usize::from(disk), offset, content));
        }
        bay
    }
}
