//! A node: its identity and its disks, which outlive its process, and the process while it runs.

use super::bay::Bay;
use super::event::{Input, Output};
use super::operator::Operator;
use super::role::Role;
use crate::checkers::bounded::WAKES_MAX;
use crate::timed::ShelfDisk;
use crate::units::SECOND;
use base::{
    BrickId, ClientId, Depth, GatewayId, HashMap, NodeId, ObjectVersion, Payload, SECTOR_BYTES, Time,
    VolumeId,
};
use core::ops::{Index, IndexMut};
use core::time::Duration;
use model::Clock;
use node::Backing;
use reads::seat::heads::Served;
use roles::client::Client;
use roles::directory::Directory;
use roles::gateway::Gateway;
use rules::Counters;
use std::collections::BTreeSet;
use store::IoKind;
use wire::object::Pack;
use wire::{FragmentId, Place, Span};

/// What a node is, over all its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Brick(BrickId),
    /// It stands beside this brick, if any.
    Gateway(GatewayId, Option<BrickId>),
    Client(ClientId, String),
    Operator,
}

pub(crate) struct Node {
    id: NodeId,
    kind: Kind,
    life: u32,
    /// It will never run again.
    is_gone: bool,
    /// The cluster has forgotten it.
    is_forgotten: bool,
    /// It began with a copy of another one's disks, under its id.
    is_copy: bool,
    /// How often its machine was started anew, and its disks were exchanged.
    boots: u32,
    exchanges: u32,
    bay: Option<Bay>,
    shelves: Vec<ShelfDisk>,
    past: Past,
    clock: Clock,
    /// The only gateway that it is connected with, where it was told one.
    gateway: Option<NodeId>,
    /// The node that took its address, under an id of its own.
    successor: Option<usize>,
    process: Option<Process>,
}

/// What a node did in runs that are over.
#[derive(Default)]
struct Past {
    /// Its disks' heads.
    served: Served,
    cache_hits: u64,
    duplicate_answers: u64,
}

/// What a node is while it runs.
struct Process {
    role: Role,
    is_paused: bool,
    /// Since when its clock stands.
    stands_since_ns: Option<u64>,
    /// What came while it was paused.
    backlog: Vec<Input>,
    /// Inputs since its effects last went out.
    batch: u32,
    wake_at_ns: u64,
    wakes: Wakes,
}

/// How often it was woken at one moment.
#[derive(Clone, Copy, Default)]
struct Wakes {
    at_ns: u64,
    count: u32,
}

/// Whether a wake finds something due.
pub(super) enum Wake {
    /// The deadline has moved.
    Early,
    Due,
    /// It is woken again and again at one moment, for that reason.
    ForEver(&'static str),
}

impl Node {
    fn new(id: NodeId, kind: Kind) -> Node {
        let clock = Clock::new(0, Time(SECOND), 0);
        Node {
            id,
            kind,
            life: 0,
            is_gone: false,
            is_forgotten: false,
            is_copy: false,
            boots: 0,
            exchanges: 0,
            bay: None,
            shelves: Vec::new(),
            past: Past::default(),
            clock,
            gateway: None,
            successor: None,
            process: None,
        }
    }

    /// From now on it goes to no other gateway.
    pub(crate) fn keep_to(&mut self, gateway: NodeId) {
        self.gateway = Some(gateway);
    }

    /// It may go to any gateway, if it kept to this one.
    pub(super) fn let_go_of(&mut self, gateway: NodeId) -> bool {
        self.gateway.take_if(|kept| *kept == gateway).is_some()
    }

    /// Whether it connects with that one, if it is told of it.
    pub(super) fn may_reach(&self, peer: NodeId) -> bool {
        !matches!(peer, NodeId::Gateway(_)) || self.gateway.is_none_or(|gateway| gateway == peer)
    }

    /// The node that took its address, if any did.
    pub(super) fn successor(&self) -> Option<usize> {
        self.successor
    }

    pub(crate) fn set_successor(&mut self, node: usize) {
        self.successor = Some(node);
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Its number among this node's runs.
    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// Whether it has a process, which may stand still.
    pub(crate) fn is_alive(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.is_paused)
    }

    /// Whether it has a process that does not stand still.
    pub(crate) fn runs(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.is_paused)
    }

    /// Whether it will never run again.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(crate) fn set_gone(&mut self) {
        self.is_gone = true;
    }

    /// Its machine is started anew with its next run.
    pub(super) fn reboot(&mut self) {
        self.boots += 1;
    }

    /// Where a brick's process runs there as this node, by its number.
    pub(super) fn place(&self, node: usize) -> Place {
        let disk = (node as u64 + 1) << 32 | u64::from(self.exchanges);
        Place { disk, boot: disk << 16 | u64::from(self.boots) }
    }

    pub(crate) fn set_copy(&mut self) {
        self.is_copy = true;
    }

    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// The number of a running brick's run.
    pub(crate) fn run_number(&self) -> Option<u64> {
        Some(self.machine()?.brick()?.status().run.number)
    }

    pub(crate) fn set_forgotten(&mut self) {
        self.is_forgotten = true;
    }

    /// Whether the cluster has forgotten it.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// The brick that it is.
    pub(crate) fn brick(&self) -> Option<BrickId> {
        match self.kind {
            Kind::Brick(id) => Some(id),
            _ => None,
        }
    }

    /// The gateway that serves it, if it is an attached client.
    pub(crate) fn client_gateway(&self) -> Option<GatewayId> {
        match &self.process.as_ref()?.role {
            Role::Client(client, _) => client.gateway(),
            _ => None,
        }
    }

    /// The client that it is, while it runs.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.process.as_ref()?.role {
            Role::Client(client, _) => Some(client),
            _ => None,
        }
    }

    /// Whether a view is being made, if it is the directory.
    pub(crate) fn is_changing(&self) -> bool {
        let role = self.process.as_ref().map(|process| &process.role);
        matches!(role, Some(Role::Directory(directory, _)) if directory.is_changing())
    }

    /// Whether it is a directory whose store is older than what bricks know.
    pub(crate) fn is_outdated(&self) -> bool {
        let role = self.process.as_ref().map(|process| &process.role);
        matches!(role, Some(Role::Directory(directory, _)) if directory.is_outdated())
    }

    /// Whether it is a brick that has a lease, by its own clock.
    pub(crate) fn is_leased(&self, now_ns: u64) -> bool {
        let brick = match self.process.as_ref().map(|process| &process.role) {
            Some(Role::Brick(node, _)) => node.brick(),
            _ => None,
        };
        brick.is_some_and(|brick| brick.is_leased(self.local(now_ns)))
    }

    /// The version of the map that a running directory has, or that a running brick has heard of; 0 of others.
    pub(crate) fn map_version(&self) -> u64 {
        match self.process.as_ref().map(|process| &process.role) {
            Some(Role::Directory(directory, _)) => directory.version(),
            Some(Role::Brick(node, _)) => node.brick().map_or(0, |brick| brick.status().run.newest_known),
            _ => 0,
        }
    }

    /// Of each disk of a running brick its identity, and where its journal ends: what is being written included.
    pub(crate) fn journal_ends(&self) -> Vec<(u64, u64)> {
        let Some(Role::Brick(brick, _)) = self.process.as_ref().map(|process| &process.role) else {
            return Vec::new();
        };
        let stores = brick.stores().iter();
        stores.filter_map(|store| Some((store.identity()?, store.stats().journal.head_bytes))).collect()
    }

    /// Whether it is a directory that has heard of a position of any of these disks of a brick behind that one.
    pub(crate) fn knows_more(&self, brick: BrickId, mut disks: impl Iterator<Item = (u64, u64)>) -> bool {
        let role = self.process.as_ref().map(|process| &process.role);
        let Some(Role::Directory(directory, _)) = role else { return false };
        let known = directory.journals(brick);
        disks.any(|(disk, head)| known.iter().any(|of| of.disk == disk && of.durable > head))
    }

    /// The segments of versions of which the disks have something.
    pub(crate) fn segments(&self) -> BTreeSet<(ObjectVersion, u64)> {
        let mut segments = BTreeSet::new();
        for (store, volume, stretch) in self.stretches() {
            let Some(version) = FragmentId::version_of(volume) else { continue };
            match Pack::of_stretch((volume, stretch)) {
                Some(pack) => {
                    let has = |version: ObjectVersion| store.has_stamp(volume, pack.room(version).lba);
                    let its = pack.versions().filter(|version| has(*version) == Some(true));
                    segments.extend(its.map(|version| (version, 0)));
                    // A page that says nothing is to go as well.
                    if pack.versions().all(|version| has(version) == Some(false)) {
                        segments.insert((version, Pack::FIRST_STRETCH));
                    }
                }
                None => drop(segments.insert((version, FragmentId::segment_of_stretch(stretch)))),
            }
        }
        segments
    }

    /// The branches of volumes of which the disks have something.
    pub(crate) fn branches(&self) -> BTreeSet<VolumeId> {
        let branches = self.stretches().map(|(_, branch, _)| branch);
        branches.filter(|branch| FragmentId::version_of(*branch).is_none()).collect()
    }

    /// All stretches that its disks hold while it runs, each beside its disk's store.
    fn stretches(&self) -> impl Iterator<Item = (&dyn Backing, VolumeId, u64)> {
        let stores = self.machine().into_iter().flat_map(|brick| brick.stores());
        stores.flat_map(|store| {
            let mut page = Vec::new().into_iter();
            let mut last = None;
            core::iter::from_fn(move || {
                if page.as_slice().is_empty() {
                    page = store.stretches(last).into_iter();
                }
                last = page.next();
                last.map(|(volume, stretch)| (&**store, volume, stretch))
            })
        })
    }

    // ---- disks ----

    /// Its disks; only bricks have any.
    pub(crate) fn disks(&self) -> &Bay {
        self.bay.as_ref().expect("a brick has disks")
    }

    pub(crate) fn disks_mut(&mut self) -> &mut Bay {
        self.bay.as_mut().expect("a brick has disks")
    }

    pub(crate) fn bay_mut(&mut self) -> Option<&mut Bay> {
        self.bay.as_mut()
    }

    /// Whether its disks keep their contents elsewhere.
    pub(super) fn has_shelves(&self) -> bool {
        !self.shelves.is_empty()
    }

    pub(super) fn shelves(&self) -> &[ShelfDisk] {
        &self.shelves
    }

    pub(super) fn set_shelves(&mut self, shelves: Vec<ShelfDisk>) {
        self.shelves = shelves;
    }

    /// From when to when such a disk serves what it is asked now.
    pub(super) fn shelf_serves_ns(&mut self, disk: usize, now_ns: u64, kind: &IoKind) -> [u64; 2] {
        let times = self.shelves[disk].serve(self.clock.local(now_ns), kind);
        times.map(|at| self.clock.world(at))
    }

    /// How much of the time for which its disks were busy is still to come at this moment.
    pub(crate) fn ahead(&self, now_ns: u64) -> Duration {
        let now = self.local(now_ns);
        let seen = self.machine().map(|machine| machine.ahead(now)).unwrap_or_default();
        self.shelves.iter().map(|shelf| shelf.ahead(now)).fold(seen, |sum, ahead| sum + ahead)
    }

    /// What its disks have done in all its runs.
    pub(crate) fn served(&self) -> Served {
        let seen = self.machine().map(super::role::Brick::served).unwrap_or_default();
        self.shelves.iter().map(ShelfDisk::served).fold(self.past.served + seen, |sum, served| sum + served)
    }

    /// Blocks that were in its caches in all its runs.
    pub(crate) fn cache_hits(&self) -> u64 {
        let stores = self.machine().map_or(&[][..], |machine| machine.stores());
        self.past.cache_hits + stores.iter().map(|store| store.stats().reads.cache_hits).sum::<u64>()
    }

    /// Answers to reads that were answered before, in all its runs; only gateways get any.
    pub(crate) fn duplicate_answers(&mut self) -> u64 {
        let now = self.gateway().map_or(0, |gateway| gateway.traffic().duplicate_answers);
        self.past.duplicate_answers + now
    }

    /// Slots of which some store of it has journalled content that is not at its final place; none where there are none.
    pub(crate) fn waiting_to_be_destaged(&self) -> Option<u64> {
        let waiting = self.machine()?.stores().iter().map(|store| store.stats().destage.waiting_slots).sum();
        (waiting > 0).then_some(waiting)
    }

    /// Which block of which volume lies at this byte of its first disk.
    pub(crate) fn shelf_place(&self, offset: u64) -> Option<(VolumeId, u64)> {
        self.shelves.first()?.place(offset)
    }

    /// Where that is on its first disk, in sectors, and how many accesses wait there, if its head is seen.
    pub(crate) fn shelf_queue(&self, offset: u64) -> (u64, Option<u32>) {
        let heads = self.machine().and_then(|machine| machine.heads().first());
        let seen = heads.and_then(|heads| Some((heads.sector_of(offset)?, Some(heads.waiting() as u32))));
        seen.unwrap_or((offset / SECTOR_BYTES, None))
    }

    /// Content is on its first disk from now on, without an access.
    pub(crate) fn lay(&mut self, span: Span, content: &Payload) {
        self.shelves.first_mut().into_iter().for_each(|shelf| shelf.lay(span, content));
    }

    /// The brick's machine, while it runs.
    pub(crate) fn machine(&self) -> Option<&super::role::Brick> {
        match &self.process.as_ref()?.role {
            Role::Brick(brick, _) => Some(brick),
            _ => None,
        }
    }

    /// The directory's machine, while it runs.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.process.as_ref()?.role {
            Role::Directory(directory, _) => Some(directory),
            _ => None,
        }
    }

    /// The gateway's machine, while it runs.
    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        match &self.process.as_ref()?.role {
            Role::Gateway(gateway, _) => Some(gateway),
            _ => None,
        }
    }

    pub(crate) fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        match &mut self.process.as_mut()?.role {
            Role::Gateway(gateway, _) => Some(gateway),
            _ => None,
        }
    }

    /// From now on its disks say that they are full, or what is so.
    pub(crate) fn close_shelves(&self, are_closed: bool) {
        self.shelves.iter().for_each(|shelf| shelf.close(are_closed));
    }

    /// From now on it is known when its disks' speeds change.
    pub(crate) fn begin_speeds(&self, now_ns: u64) {
        self.shelves.iter().for_each(|shelf| shelf.begin(self.clock.local(now_ns)));
    }

    pub(super) fn shows_heads(&self) -> bool {
        self.bay.as_ref().is_some_and(|bay| bay.shows_heads)
    }

    pub(super) fn set_disks(&mut self, bay: Bay) {
        self.exchanges += 1;
        self.bay = Some(bay);
    }

    // ---- its clock ----

    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// What its clock shows.
    pub(crate) fn local(&self, now_ns: u64) -> Time {
        self.clock.local(now_ns)
    }

    /// When its clock shows that.
    pub(super) fn world(&self, local: Time) -> u64 {
        self.clock.world(local)
    }

    // ---- its process ----

    pub(super) fn start(&mut self, role: Role) {
        let (backlog, wakes) = (Vec::new(), Wakes::default());
        self.process = Some(Process {
            role,
            is_paused: false,
            stands_since_ns: None,
            backlog,
            batch: 0,
            wake_at_ns: u64::MAX,
            wakes,
        });
    }

    /// Its process is gone; gateways and clients come back under other ids only.
    pub(super) fn stop(&mut self) {
        let seen = self.machine().map(super::role::Brick::served).unwrap_or_default();
        self.past = Past {
            served: self.past.served + seen,
            cache_hits: self.cache_hits(),
            duplicate_answers: self.duplicate_answers(),
        };
        self.process = None;
        self.life += 1;
        self.is_gone = matches!(self.kind, Kind::Gateway(..) | Kind::Client(..));
    }

    pub(super) fn pause(&mut self) {
        self.process().is_paused = true;
    }

    /// Its clock stands until it goes on.
    pub(super) fn stop_clock(&mut self, now_ns: u64) {
        self.process().stands_since_ns.get_or_insert(now_ns);
    }

    /// Its clock goes on by `span` at once.
    pub(super) fn pass(&mut self, now_ns: u64, span: Duration) {
        self.clock = self.clock.ahead(now_ns, span);
    }

    /// Goes on with what came meanwhile.
    /// Whether its clock has stood.
    pub(super) fn resume(&mut self, now_ns: u64) -> bool {
        self.process().is_paused = false;
        let stood = self.process().stands_since_ns.take();
        if let Some(then_ns) = stood {
            self.clock = self.clock.after_standing(then_ns, now_ns);
        }
        stood.is_some()
    }

    pub(super) fn take_backlog(&mut self) -> Vec<Input> {
        core::mem::take(&mut self.process().backlog)
    }

    /// What it can take now: a process that stands still takes it later, no process takes nothing.
    pub(super) fn accept(&mut self, input: Input) -> Option<Input> {
        let process = self.process.as_mut()?;
        if !process.is_paused {
            return Some(input);
        }
        match input {
            Input::Wake => process.wake_at_ns = u64::MAX,
            input => process.backlog.push(input),
        }
        None
    }

    /// The wake that was scheduled has come.
    pub(super) fn begin_wake(&mut self, now_ns: u64) -> Wake {
        let now = self.clock.local(now_ns);
        let Process { role, wake_at_ns, wakes, .. } = self.process();
        if *wake_at_ns <= now_ns {
            *wake_at_ns = u64::MAX;
        }
        if role.deadline().is_none_or(|at| at > now) {
            return Wake::Early;
        }
        if wakes.at_ns != now_ns {
            *wakes = Wakes { at_ns: now_ns, count: 0 };
        }
        wakes.count += 1;
        if wakes.count > WAKES_MAX { Wake::ForEver(role.reason()) } else { Wake::Due }
    }

    /// Why it wants to be woken.
    pub(super) fn reason(&self) -> &'static str {
        self.process.as_ref().map_or("nothing", |process| process.role.reason())
    }

    /// Takes one input; how many it took since its effects last went out.
    pub(super) fn step(&mut self, now_ns: u64, input: Input, depth: Option<Depth>) -> u32 {
        let now = self.clock.local(now_ns);
        let process = self.process();
        match input {
            Input::Wake => process.role.wake(now),
            input => process.role.step(now, input),
        }
        depth.into_iter().for_each(|depth| process.role.check(depth));
        process.batch += 1;
        process.batch
    }

    /// Whether inputs came since its effects last went out.
    pub(super) fn is_in_batch(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.batch > 0)
    }

    /// Ends a batch: its effects go out.
    pub(super) fn settle(&mut self, now_ns: u64, out: &mut Vec<Output>) {
        let now = self.clock.local(now_ns);
        let process = self.process();
        process.batch = 0;
        process.role.settle(now);
        process.role.drain(out);
    }

    /// When to wake it, if not before it is woken anyway.
    pub(super) fn arm(&mut self, now_ns: u64) -> Option<u64> {
        let process = self.process.as_mut()?;
        let at_ns = self.clock.world(process.role.deadline()?).max(now_ns);
        (at_ns < process.wake_at_ns).then(|| {
            process.wake_at_ns = at_ns;
            at_ns
        })
    }

    /// What its machine has counted in this run.
    pub(super) fn counters(&self) -> Option<&Counters> {
        self.process.as_ref()?.role.counters()
    }

    /// The operator that it is.
    pub(super) fn operator(&mut self) -> &mut Operator {
        match &mut self.process().role {
            Role::Operator(operator) => operator,
            _ => panic!("only the operator asks"),
        }
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a process that runs")
    }
}

/// All nodes there ever were, in the order in which they came.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    by_id: HashMap<NodeId, usize>,
}

impl Nodes {
    pub(super) fn new() -> Nodes {
        Nodes { nodes: Vec::new(), by_id: HashMap::default() }
    }

    /// A node that does not run yet: its number.
    pub(super) fn add(&mut self, id: NodeId, kind: Kind) -> usize {
        self.nodes.push(Node::new(id, kind));
        self.by_id.insert(id, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// A node has its id for itself from now on.
    pub(crate) fn give_id(&mut self, node: usize) {
        self.by_id.insert(self.nodes[node].id, node);
    }

    /// Which node has this id now: of two of them the later one.
    pub(crate) fn slot(&self, id: NodeId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// All nodes that match, in order.
    pub(crate) fn matching(&self, matches: impl Fn(&Node) -> bool) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| matches(&self.nodes[node])).collect()
    }
}

impl Index<usize> for Nodes {
    type Output = Node;

    fn index(&self, node: usize) -> &Node {
        &self.nodes[node]
    }
}

impl IndexMut<usize> for Nodes {
    fn index_mut(&mut self, node: usize) -> &mut Node {
        &mut self.nodes[node]
    }
}
