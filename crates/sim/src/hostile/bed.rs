//! The cluster: a directory, three bricks with disks in memory, a gateway with a client, and a network that only the
//! moves of an input disturb.

use super::objects::{self, Objects};
use crate::world::event::{Input, Output};
use crate::world::role::Role;
use ::objects::object::{ObjectNews, ObjectWish};
use base::{BLOCK, BrickId, ClientId, ClusterId, Depth, GatewayId, NodeId, Payload, Time, VolumeId};
use bytes::Bytes;
use core::time::Duration;
use node::{Backing, BrickNode};
use roles::brick::BrickConfig;
use roles::directory::{Directory, DirectoryConfig};
use roles::gateway::{Gateway, GatewayConfig, Serves};
#[cfg(feature = "planted")]
use rules::promises::Rules;
use std::collections::{BTreeMap, VecDeque};
use store::{FormatOptions, IoDone, IoFault, IoKind, Store, StoreConfig};
use wire::{AdminRequest, Io, Message, Packet, Wire};

const CLUSTER: ClusterId = ClusterId([3; 16]);
const BRICKS: u32 = 3;
const DISK_BYTES: u64 = 16 << 20;
const JOURNAL_BYTES: u64 = 512 << 10;
const VOLUME_BYTES: u64 = 4 << 20;
const OPERATOR: NodeId = NodeId::Client(ClientId::operator(9));
const GATEWAY: NodeId = NodeId::Gateway(GatewayId(1));
/// Packets of each kind that an input may say again, the latest ones.
const HEARD_MAX: usize = 16;
/// Packets under way above which the oldest are lost: a lie may make two machines talk without end.
const WIRE_MAX: usize = 4096;
/// Steps within one move, by far more than a cluster of this size takes in seconds.
const STEPS_MAX: usize = 200_000;
/// Requests of a client that are not answered.
const REQUESTS_MAX: usize = 64;

/// A packet on its way.
#[derive(Clone)]
pub(super) struct Parcel {
    pub(super) from: NodeId,
    to: NodeId,
    pub(super) packet: Packet,
}

/// What was said, by the kind of message: else heartbeats would be nearly all of it.
#[derive(Default)]
struct Said(BTreeMap<u8, VecDeque<Parcel>>);

impl Said {
    fn push(&mut self, parcel: Parcel) {
        // A message's first byte tells its kind.
        let kind = parcel.packet.message.to_bytes()[0];
        let latest = self.0.entry(kind).or_default();
        latest.truncate(HEARD_MAX - 1);
        latest.push_front(parcel);
    }

    /// The high byte of `which` chooses the kind, the low byte one of it.
    fn get(&self, which: usize) -> Option<&Parcel> {
        let latest = self.0.values().nth((which >> 8) % self.0.len().max(1))?;
        latest.get((which & 0xff) % latest.len())
    }
}

struct Todo {
    node: NodeId,
    input: Input,
}

/// Changes the bytes of a manifest.
type Bend = Box<dyn FnOnce(&mut Vec<u8>)>;

pub(super) struct Bed {
    now: Time,
    victim: NodeId,
    roles: BTreeMap<NodeId, Role>,
    disks: BTreeMap<NodeId, BTreeMap<u64, Bytes>>,
    todo: VecDeque<Todo>,
    wire: VecDeque<Parcel>,
    /// What the victim was told, and what others were.
    heard: Said,
    overheard: Said,
    volume: Option<VolumeId>,
    tag: u64,
    unanswered: usize,
    objects: Objects,
    /// What becomes of the next manifest that a gateway commits.
    bend: Option<Bend>,
}

impl Bed {
    /// A cluster that serves a volume, some of which is written.
    pub(super) fn new(victim: NodeId) -> Bed {
        let now = Time(1_000_000_000);
        let directory = Directory::new(DirectoryConfig::default(), Vec::new(), now).expect("an empty store");
        let gateway = Gateway::new(
            GatewayConfig {
                id: GatewayId(1),
                name: String::new(),
                address: "gateway".to_owned(),
                serves: Serves::Anyone,
                beside: None,
            },
            now,
        );
        let mut bed = Bed {
            now,
            victim,
            roles: BTreeMap::from([
                (NodeId::Directory, Role::Directory(Box::new(directory), Vec::new())),
                (GATEWAY, Role::Gateway(Box::new(gateway), Vec::new())),
            ]),
            disks: BTreeMap::new(),
            todo: VecDeque::new(),
            wire: VecDeque::new(),
            heard: Said::default(),
            overheard: Said::default(),
            volume: None,
            tag: 0,
            unanswered: 0,
            objects: Objects::new(),
            bend: None,
        };
        (1..=BRICKS).for_each(|brick| bed.add_brick(BrickId(brick)));
        bed.set_up();
        bed
    }

    fn add_brick(&mut self, id: BrickId) {
        self.ask(AdminRequest::AdmitBrick { nonce: u64::from(id.0) });
        let config = BrickConfig {
            id,
            address: id.to_string(),
            labels: vec![("host".to_owned(), id.to_string())],
            disks: Vec::new(),
            durability: Vec::new(),
            turns: reads::seat::Turns::default(),
            shares: rules::fair::Shares::default(),
            garbage_every: BrickConfig::GARBAGE_EVERY,
            rebalance_above: BrickConfig::REBALANCE_ABOVE,
            page_bytes: BrickConfig::PAGE_BYTES,
            held_at_once: BrickConfig::HELD_AT_ONCE,
            packs: true,
            run: 0,
            place: wire::Place::default(),
        };
        let format = FormatOptions {
            cluster: CLUSTER,
            brick: id,
            disk_index: 0,
            uuid: [id.0 as u8; 16],
            disk_bytes: DISK_BYTES,
            journal_bytes: JOURNAL_BYTES,
        };
        let node = NodeId::Brick(id);
        let mut disk = BTreeMap::new();
        for (offset, content) in store::format(format).expect("the disk is large enough") {
            write(&mut disk, offset, &content);
        }
        self.disks.insert(node, disk);
        let brick = BrickNode::over(
            config,
            vec![Box::new(Store::open(StoreConfig::new(CLUSTER, id, 0, DISK_BYTES))) as Box<dyn Backing>],
        );
        self.roles.insert(node, Role::Brick(Box::new(brick), Vec::new()));
    }

    fn set_up(&mut self) {
        self.pass(Duration::from_secs(1));
        let nodes: Vec<NodeId> = self.roles.keys().copied().collect();
        for node in &nodes {
            nodes.iter().filter(|peer| *peer != node).for_each(|peer| self.step(*node, Input::Up(*peer)));
        }
        self.pass(Duration::from_secs(2));
        self.ask(AdminRequest::CreateVolume {
            name: "v".to_owned(),
            size_bytes: VOLUME_BYTES,
            layout: "raid5-2+1".to_owned(),
            stripe_unit_blocks: 4,
            groups: 1,
            read_policy: wire::ReadPolicy::default(),
            io_timeout: wire::IoTimeout::default(),
            protocol: wire::Protocol::default(),
            placement: wire::Placement::default(),
            stream: base::StreamId::default(),
            nonce: 77,
            reads: wire::Reads::default(),
        });
        self.pass(Duration::from_secs(3));
        self.step(GATEWAY, Input::Open { session: 1, name: "v".to_owned() });
        self.pass(Duration::from_secs(1));
        assert!(self.volume.is_some(), "an honest cluster opens its volume");
        for offset in [0, 10_000, 70_000] {
            self.begin_io(Io::Write { offset }, Payload::from(vec![5; 9000]));
        }
        self.pass(Duration::from_secs(1));
        assert_eq!(self.unanswered, 0, "an honest cluster answers");
        for (key, bytes) in [(0, 5000), (1, 600 << 10)] {
            self.begin_put(key, Payload::from(vec![6; bytes]));
        }
        self.pass(Duration::from_secs(2));
        assert_eq!(self.objects.put, 2, "an honest cluster puts objects");
    }

    /// Goes by other rules from now on.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn Rules) {
        for role in self.roles.values_mut() {
            if let Role::Directory(directory, _) = role {
                directory.set_rules(rules);
            }
        }
    }

    pub(super) fn begin_put(&mut self, key: usize, content: Payload) {
        self.tag += 1;
        let wish = self.objects.put(self.tag, key, content);
        self.wish(wish);
    }

    pub(super) fn begin_get(&mut self, key: usize) {
        self.tag += 1;
        self.wish(Objects::get(key));
        self.wish(ObjectWish::More);
    }

    fn wish(&mut self, wish: ObjectWish) {
        self.step(GATEWAY, Input::Object { tag: self.tag, wish: Box::new(wish) });
    }

    /// What a brick might say that knows the record of an object.
    pub(super) fn amendment(&mut self, which: usize, bend: impl FnOnce(&mut Vec<u8>)) -> Option<Packet> {
        self.tag += 1;
        let (version, was, mut manifest) = self.objects.amendment(which)?;
        bend(&mut manifest);
        let request = Box::new(objects::amend((version, was, manifest)));
        Some(Message::Index { operation: self.tag, request }.into())
    }

    /// The gateway commits something else than it has put, the next time that it commits.
    pub(super) fn bend_commit(&mut self, bend: impl FnOnce(&mut Vec<u8>) + 'static) {
        self.bend = Some(Box::new(bend));
    }

    fn ask(&mut self, request: AdminRequest) {
        self.tag += 1;
        let packet = Message::Admin { operation: self.tag, request }.into();
        self.wire.push_back(Parcel { from: OPERATOR, to: NodeId::Directory, packet });
    }

    pub(super) fn begin_io(&mut self, io: Io, payload: Payload) {
        let Some(volume) = self.volume.filter(|_| self.unanswered < REQUESTS_MAX) else { return };
        (self.tag, self.unanswered) = (self.tag + 1, self.unanswered + 1);
        self.step(GATEWAY, Input::SessionIo { session: 1, tag: self.tag, volume, io, payload });
    }

    /// Something that the victim was told.
    pub(super) fn heard(&self, which: usize) -> Option<&Parcel> {
        self.heard.get(which)
    }

    /// Something that others were told.
    pub(super) fn overheard(&self, which: usize) -> Option<&Parcel> {
        self.overheard.get(which)
    }

    /// Tells the victim something, in the name of `from`.
    pub(super) fn lie(&mut self, from: NodeId, packet: Packet) {
        self.step(self.victim, Input::Packet { from, packet });
    }

    /// Delivers the next packets.
    pub(super) fn deliver(&mut self, count: usize) {
        for _ in 0..count {
            let Some(parcel) = self.wire.pop_front() else { break };
            let list = if parcel.to == self.victim { &mut self.heard } else { &mut self.overheard };
            list.push(parcel.clone());
            self.step(parcel.to, Input::Packet { from: parcel.from, packet: parcel.packet });
        }
    }

    /// Loses the next packets.
    pub(super) fn lose(&mut self, count: usize) {
        self.wire.drain(..count.min(self.wire.len()));
    }

    /// The victim and a peer find their connection gone, or made.
    pub(super) fn part(&mut self, peer: usize, is_up: bool) {
        let peers: Vec<NodeId> = self.roles.keys().copied().filter(|node| *node != self.victim).collect();
        let peer = peers[peer % peers.len()];
        for (node, other) in [(self.victim, peer), (peer, self.victim)] {
            self.step(node, if is_up { Input::Up(other) } else { Input::Down(other) });
        }
    }

    /// Lets time pass, in which all that is under way arrives.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..STEPS_MAX {
            if !self.wire.is_empty() {
                self.deliver(1);
                continue;
            }
            let due = self.roles.values().filter_map(Role::deadline).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            self.wake();
        }
        panic!("the cluster does not come to rest within {STEPS_MAX} steps and {time:?}");
    }

    pub(super) fn check_deep(&self) {
        self.roles.values().for_each(|role| role.check(Depth::Deep));
    }

    fn wake(&mut self) {
        let due = |role: &Role, now| role.deadline().is_some_and(|due| due <= now);
        let nodes: Vec<NodeId> =
            self.roles.iter().filter(|(_, role)| due(role, self.now)).map(|(node, _)| *node).collect();
        for node in nodes {
            let role = self.roles.get_mut(&node).expect("listed");
            role.wake(self.now);
            self.hand_out(node);
            self.work();
        }
    }

    fn step(&mut self, node: NodeId, input: Input) {
        self.todo.push_back(Todo { node, input });
        self.work();
    }

    /// Steps, and what the disks and the directory's store answer to them.
    fn work(&mut self) {
        for _ in 0..STEPS_MAX {
            let Some(Todo { node, input }) = self.todo.pop_front() else { return };
            let Some(role) = self.roles.get_mut(&node) else { continue };
            role.step(self.now, input);
            role.settle(self.now);
            self.hand_out(node);
        }
        panic!("{:?} asks its disk without end", self.victim);
    }

    fn hand_out(&mut self, node: NodeId) {
        let mut outputs = Vec::new();
        let role = self.roles.get_mut(&node).expect("it was stepped");
        role.check(Depth::Cheap);
        role.drain(&mut outputs);
        for output in outputs {
            match output {
                Output::Send { to, mut packet } => {
                    if let Some(manifest) = objects::committed(&mut packet.message)
                        && let Some(bend) = self.bend.take()
                    {
                        bend(manifest);
                    }
                    self.wire.push_back(Parcel { from: node, to, packet });
                }
                Output::Compute { number, computation } => {
                    self.answer(node, Input::Computed { number, made: computation.run() });
                }
                Output::Store { token, .. } => self.answer(node, Input::Stored { token }),
                Output::Disk { disk, io, .. } => {
                    let done = IoDone { token: io.token, result: self.serve(node, io.kind) };
                    self.answer(node, Input::Disk { disk, done });
                }
                Output::Opened { volume, .. } => self.volume = self.volume.or(volume),
                Output::Reply { .. } => self.unanswered = self.unanswered.saturating_sub(1),
                Output::Failed(why) => panic!("{node} gave up: {why}"),
                Output::Shard { shard, effect } => {
                    let event = self.objects.serve(shard, effect);
                    self.answer(node, Input::Shard { shard, event });
                }
                Output::Object { tag, news } => self.on_news(tag, &news),
                Output::Address(_)
                | Output::Forget(_)
                | Output::Ready
                | Output::Attached(_)
                | Output::Segment { .. } => {}
            }
        }
        let excess = self.wire.len().saturating_sub(WIRE_MAX);
        self.wire.drain(..excess);
    }

    fn on_news(&mut self, tag: u64, news: &ObjectNews) {
        if let Some(wish) = self.objects.on_news(tag, news) {
            self.answer(GATEWAY, Input::Object { tag, wish: Box::new(wish) });
        }
    }

    fn answer(&mut self, node: NodeId, input: Input) {
        self.todo.push_back(Todo { node, input });
    }

    fn serve(&mut self, node: NodeId, kind: IoKind) -> Result<Bytes, IoFault> {
        let disk = self.disks.get_mut(&node).expect("a brick has a disk");
        match kind {
            IoKind::Read { offset, length, .. } => read(disk, offset, length),
            IoKind::Write { offset, payload, .. } => {
                assert!(offset + payload.len() as u64 <= DISK_BYTES, "a write beyond the disk");
                write(disk, offset, &payload);
                Ok(Bytes::new())
            }
            IoKind::Flush => Ok(Bytes::new()),
        }
    }
}

fn write(disk: &mut BTreeMap<u64, Bytes>, offset: u64, content: &Payload) {
    for index in 0..content.len() / BLOCK {
        disk.insert(offset / BLOCK as u64 + index as u64, content.block(index).contiguous());
    }
}

fn read(disk: &BTreeMap<u64, Bytes>, offset: u64, length: usize) -> Result<Bytes, IoFault> {
    assert!(offset + length as u64 <= DISK_BYTES, "a read beyond the disk");
    let mut content = Vec::with_capacity(length);
    for index in 0..(length / BLOCK) as u64 {
        match disk.get(&(offset / BLOCK as u64 + index)) {
            Some(sector) => content.extend_from_slice(sector),
            None => content.resize(content.len() + BLOCK, 0),
        }
    }
    Ok(content.into())
}
