//! Nodes come and go: start, crash, restart, pause.

use super::bay::Bay;
use super::event::Input;
use super::role::Role;
use super::{Kind, Node, SECOND, World};
use base::{BrickId, ClientId, ClusterId, GatewayId, NodeId, Time};
use model::{Clock, PowerCut};
use node::BrickNode;
use proto::brick::BrickConfig;
use proto::client::{Client, ClientConfig};
use proto::directory::{Directory, DirectoryConfig};
use proto::gateway::{Gateway, GatewayConfig};
use store::{FormatOptions, StoreConfig};

const CLUSTER: ClusterId = ClusterId(*b"simulated world.");

impl World {
    /// Adds a node that does not run yet.
    pub(super) fn add_node(&mut self, id: NodeId, kind: Kind) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            id,
            kind,
            life: 0,
            alive: false,
            gone: false,
            paused: false,
            bay: None,
            role: Role::Down,
            clock: Clock::new(0, Time(SECOND), 0),
            backlog: Vec::new(),
            batch: 0,
            wake_at_ns: u64::MAX,
            wakes: (0, 0),
        });
        self.by_id.insert(id, node);
        node
    }

    /// Starts the directory.
    pub(crate) fn add_directory(&mut self) {
        let node = self.add_node(NodeId::Directory, Kind::Directory);
        self.boot(node);
    }

    /// Starts a brick on empty disks.
    pub(crate) fn add_brick(&mut self, id: BrickId) {
        let node = self.add_node(NodeId::Brick(id), Kind::Brick(id));
        self.nodes[node].bay = Some(self.format(id));
        self.boot(node);
    }

    /// A gateway under an id of its own; it does not run yet.
    pub(crate) fn add_gateway(&mut self) -> usize {
        let id = GatewayId(self.draw.bits() >> 1);
        self.add_node(NodeId::Gateway(id), Kind::Gateway(id))
    }

    /// An attached client under an id of its own; it does not run yet.
    pub(crate) fn add_client(&mut self, volume: String) -> usize {
        let id = ClientId(self.draw.bits());
        self.add_node(NodeId::Client(id), Kind::Client(id, volume))
    }

    /// Puts empty, newly formatted disks into a brick that does not run.
    pub(crate) fn exchange(&mut self, node: usize, id: BrickId) {
        self.nodes[node].bay = Some(self.format(id));
        self.note(node, "gets new disks");
    }

    /// Starts a node that does not run.
    pub(crate) fn boot(&mut self, node: usize) {
        if self.nodes[node].alive || self.nodes[node].gone {
            return;
        }
        self.draw_clock(node);
        let now = self.nodes[node].clock.local(self.now_ns);
        let kind = self.nodes[node].kind.clone();
        let role = match kind {
            Kind::Directory => self.open_directory(now),
            Kind::Brick(id) => self.open_brick(id),
            Kind::Gateway(id) => {
                let config = GatewayConfig { id, address: NodeId::Gateway(id).to_string() };
                Role::Gateway(Box::new(Gateway::new(config, now)), Vec::new())
            }
            Kind::Client(id, volume) => {
                let config = ClientConfig { id, volume, window: self.shape.window };
                Role::Client(Box::new(Client::new(config, now)), Vec::new())
            }
            Kind::Operator => return,
        };
        self.note(node, "starts");
        let this = &mut self.nodes[node];
        (this.role, this.alive, this.paused) = (role, true, false);
        if node != 0 {
            self.want(node, NodeId::Directory);
        }
        if self.nodes[node].bay.as_ref().is_some_and(|bay| bay.shows_heads) {
            self.deliver(node, Input::HeadsSeen);
        }
        self.settle(node);
    }

    /// Kills a node. What it had not sent, and what was on its way to it, is lost.
    pub(crate) fn crash(&mut self, node: usize, cut: PowerCut) {
        if !self.nodes[node].alive {
            return;
        }
        self.keep_counters(node);
        self.note(node, &format!("crashes: {cut:?}"));
        let this = &mut self.nodes[node];
        this.life += 1;
        this.alive = false;
        this.paused = false;
        this.role = Role::Down;
        this.backlog.clear();
        this.batch = 0;
        this.wake_at_ns = u64::MAX;
        this.gone = matches!(this.kind, Kind::Gateway(_) | Kind::Client(..));
        if let Some(bay) = &mut this.bay {
            bay.crash(cut, &mut self.draw);
        }
        if this.kind == Kind::Directory {
            self.crash_cabinet();
        }
        self.drop_connections(node);
        self.abandon(node);
    }

    /// Lets a node stand still: it keeps its connections, and takes all that came meanwhile when it goes on.
    pub(crate) fn pause(&mut self, node: usize) {
        if self.nodes[node].alive {
            if self.nodes[node].batch > 0 {
                self.settle(node);
            }
            self.nodes[node].paused = true;
            self.note(node, "stands still");
        }
    }

    /// Lets a paused node go on: with its timers or with its messages first.
    pub(crate) fn resume(&mut self, node: usize) {
        if !self.nodes[node].paused {
            return;
        }
        self.nodes[node].paused = false;
        self.note(node, "goes on");
        if self.draw.percent(50) {
            self.deliver(node, Input::Wake);
        }
        let backlog = core::mem::take(&mut self.nodes[node].backlog);
        backlog.into_iter().for_each(|input| self.deliver(node, input));
        if self.nodes[node].alive {
            self.settle(node);
        }
    }

    /// Writes into the trace what the world does to a node.
    pub(crate) fn note(&mut self, node: usize, what: &str) {
        self.trace.note(self.now_ns, self.nodes[node].id, what);
    }

    /// All nodes that match, in order.
    pub(crate) fn nodes_where(&self, matches: impl Fn(&Node) -> bool) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| matches(&self.nodes[node])).collect()
    }

    pub(super) fn on_brick_failed(&mut self, node: usize, why: String) {
        let what = format!("{} failed: {why}", self.nodes[node].id);
        self.judge(Err(crate::checkers::Violation::new("live", what)));
    }

    fn draw_clock(&mut self, node: usize) {
        let ppm_max = u64::from(self.shape.skew_ppm);
        let rate_ppm = self.draw.between(0, 2 * ppm_max) as i32 - ppm_max as i32;
        let origin = Time(self.draw.between(SECOND, SECOND + self.shape.offset_ns));
        self.nodes[node].clock =
            Clock::new(self.now_ns, origin + std::time::Duration::from_nanos(self.now_ns), rate_ppm);
    }

    fn open_directory(&mut self, now: Time) -> Role {
        let contents =
            self.cabinet.contents.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        // A run is short: who was slow must be able to return within it, and more than once.
        let slow_hold_ns = (2 * SECOND, 8 * SECOND);
        let config = DirectoryConfig { slow_hold_ns, ..DirectoryConfig::default() };
        match Directory::new(config, contents, now) {
            Ok(mut directory) => {
                self.plant_directory(&mut directory);
                Role::Directory(Box::new(directory), Vec::new())
            }
            Err(why) => {
                let what = format!("the directory cannot start from its own store: {why}");
                self.judge(Err(crate::checkers::Violation::new("durable", what)));
                Role::Down
            }
        }
    }

    fn open_brick(&self, id: BrickId) -> Role {
        let config = BrickConfig {
            id,
            address: NodeId::Brick(id).to_string(),
            labels: vec![("host".to_owned(), format!("host-{}", id.0))],
            disks: Vec::new(),
        };
        let stores = (0..self.shape.disks as u16).map(|disk| self.store_config(id, disk)).collect();
        let mut brick = BrickNode::open(config, stores);
        self.plant_brick(&mut brick);
        Role::Brick(Box::new(brick), Vec::new())
    }

    fn store_config(&self, brick: BrickId, disk: u16) -> StoreConfig {
        let shape = &self.shape;
        let limits = shape.store_limits;
        let config = StoreConfig::new(CLUSTER, brick, disk, shape.disk.bytes);
        StoreConfig { cache_bytes: shape.cache_bytes, limits, ..config }
    }

    /// Fresh disks for a brick.
    fn format(&mut self, brick: BrickId) -> Bay {
        let shows_heads = self.draw.percent(30);
        let mut bay = Bay::new((0..self.shape.disks).map(|_| self.shape.disk), shows_heads);
        for disk in 0..self.shape.disks as u16 {
            let mut uuid = [disk as u8; 16];
            uuid[..8].copy_from_slice(&self.draw.bits().to_le_bytes());
            let disk_bytes = self.shape.disk.bytes;
            let journal_bytes = self.shape.journal_bytes;
            let options =
                FormatOptions { cluster: CLUSTER, brick, disk_index: disk, uuid, disk_bytes, journal_bytes };
            let writes = store::format(options).expect("the simulator draws disks that are large enough");
            writes.into_iter().for_each(|(offset, content)| bay.put(usize::from(disk), offset, content));
        }
        bay
    }

    /// What the directory's store had under way: the first so many puts reached stable storage all the same.
    fn crash_cabinet(&mut self) {
        let puts = core::mem::take(&mut self.cabinet.puts);
        let kept = self.draw.below(puts.len() as u64 + 1) as usize;
        puts.into_iter().take(kept).for_each(|(_, puts)| self.cabinet.apply(puts));
    }

    fn keep_counters(&mut self, node: usize) {
        let counters = self.nodes[node].role.counters();
        counters.into_iter().flatten().for_each(|(name, count)| *self.rare.entry(name).or_default() += count);
    }
}
