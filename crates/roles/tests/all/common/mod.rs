//! A cluster of machines in one process: a perfect network, disks in memory, one clock. What is delivered when is up to
//! the test; faults are the simulator's business.

#![allow(unreachable_pub, reason = "shared by test binaries")]

use base::{BLOCK, BrickId, ClientId, GatewayId, Machine, NodeId, Payload, RequestId, Stamp, Time, VolumeId};
use core::time::Duration;
use roles::brick::{Brick, BrickConfig, BrickEffect, BrickEvent};
use roles::directory::rebuild::Recount;
use roles::directory::{Directory, DirectoryConfig, DirectoryEffect, DirectoryEvent};
use roles::gateway::{Gateway, GatewayConfig, GatewayEffect, GatewayEvent, Serves};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::disk::{Blocks, Command, Recovered, Reply, Staged, StoreError};
use wire::{AdminReply, AdminRequest, Change, Completion, Io, IoError, IoReply, Message, Packet, Span};

/// A store in memory, always durable at once.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    blocks: BTreeMap<(VolumeId, u64), (Vec<Stamp>, Payload)>,
    staged: BTreeMap<Stamp, (Staged, Payload)>,
    pub rotten: Vec<(VolumeId, u64)>,
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    completions: BTreeMap<(RequestId, u64), Completion>,
    /// Whether repairs of blocks that are not here find no room.
    pub is_full: bool,
    /// So many undecided writes have room in memory; what comes beyond is told that the disk is busy.
    pub staged_max: Option<usize>,
    /// This block is being given back: its writes are told to come again.
    pub given_back: Option<u64>,
}

impl MemoryDisk {
    fn read(&self, span: Span, width: u8, content: bool, verify: bool) -> Blocks {
        let mut blocks = Blocks::default();
        for lba in span.lba..span.end() {
            let zero = (vec![Stamp::ZERO; usize::from(width)], Payload::zeros(BLOCK));
            let (stamps, bytes) = self.blocks.get(&(span.volume, lba)).cloned().unwrap_or(zero);
            if (content || verify) && self.rotten.contains(&(span.volume, lba)) {
                blocks.unreadable.push((lba - span.lba) as u32);
            }
            blocks.stamps.extend((0..usize::from(width)).map(|i| stamps.get(i).copied().unwrap_or_default()));
            if content {
                blocks.content.append(&bytes);
            }
        }
        blocks
    }

    /// What a brick that starts finds on it.
    fn recover(&self) -> Recovered {
        Recovered {
            staged: self.staged.values().map(|(staged, _)| staged.clone()).collect(),
            completions: self.completions.values().copied().collect(),
            completions_max: usize::MAX,
            notes: self.notes.clone().into_iter().collect(),
        }
    }

    fn holds(&self, span: Span) -> bool {
        (span.lba..span.end()).all(|lba| self.blocks.contains_key(&(span.volume, lba)))
    }

    /// How many blocks hold stamps.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Loses blocks, and knows that something was there.
    pub fn forget(&mut self, places: impl Iterator<Item = (VolumeId, u64)>) {
        for place in places {
            self.blocks.remove(&place);
            self.rotten.push(place);
        }
    }

    /// The branches that have blocks.
    pub fn branches(&self) -> BTreeSet<VolumeId> {
        self.blocks.keys().map(|(branch, _)| *branch).collect()
    }

    /// The blocks that a branch has.
    pub fn blocks_of(&self, branch: VolumeId) -> Vec<u64> {
        self.blocks.keys().filter(|(of, _)| *of == branch).map(|(_, lba)| *lba).collect()
    }

    /// Which requests took effect.
    pub fn completions(&self) -> BTreeMap<(RequestId, u64), Completion> {
        self.completions.clone()
    }

    fn put(&mut self, volume: VolumeId, lba: u64, stamps: Vec<Stamp>, bytes: Payload) {
        self.rotten.retain(|place| *place != (volume, lba));
        self.blocks.insert((volume, lba), (stamps, bytes));
    }

    /// It counts writes, however long they are.
    fn lacks_room(&self, kept_bytes: usize) -> bool {
        let kept = usize::from(kept_bytes > 0);
        self.staged_max.is_some_and(|max| self.staged.len() + kept >= max)
    }

    fn apply(&mut self, stamp: Stamp) {
        let (staged, payload) = self.staged.remove(&stamp).expect("applied once, after it was staged");
        let Staged { request, part, .. } = staged;
        self.completions.insert((request, part), Completion { request, part, stamp });
        let span = staged.write.span;
        for (i, lba) in (span.lba..span.end()).enumerate() {
            let old = self.read(Span { lba, count: 1, ..span }, staged.change.width(), true, false);
            let (stamps, bytes) = match &staged.change {
                Change::Data => (vec![stamp], payload.block(i)),
                Change::Zero => (vec![stamp], Payload::zeros(BLOCK)),
                Change::Parity { width } => (vec![stamp; usize::from(*width)], payload.block(i)),
                Change::Replace { index, .. } => {
                    let mut stamps = old.stamps;
                    stamps[usize::from(*index)] = stamp;
                    (stamps, payload.block(i))
                }
                Change::Xor { index, .. } => {
                    let mut stamps = old.stamps;
                    stamps[usize::from(*index)] = stamp;
                    (stamps, old.content.xor(&payload.block(i)))
                }
            };
            self.put(span.volume, lba, stamps, bytes);
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm a command")]
    fn on(&mut self, command: Command) -> Option<Reply> {
        Some(match command {
            Command::Stage { token, kept_bytes, .. } if self.lacks_room(kept_bytes) => {
                Reply::Staged { token, result: Err(StoreError::NoRoomYet) }
            }
            Command::Stage { token, ref staged, .. }
                if self
                    .given_back
                    .is_some_and(|lba| (staged.write.span.lba..staged.write.span.end()).contains(&lba)) =>
            {
                Reply::Staged { token, result: Err(StoreError::Busy) }
            }
            Command::Stage { token, staged, payload, .. } => {
                self.staged.insert(staged.write.stamp, (staged, payload));
                Reply::Staged { token, result: Ok(()) }
            }
            Command::Apply { stamp } => {
                self.apply(stamp);
                return None;
            }
            Command::Erase { .. } => unreachable!("no fragments are given back here"),
            Command::Drop { stamp } => {
                self.staged.remove(&stamp);
                return None;
            }
            // There is no cache here.
            Command::Forget { .. } | Command::Refresh { .. } => return None,
            Command::Mend { token, span, .. } if self.is_full && !self.holds(span) => {
                Reply::Staged { token, result: Err(StoreError::NoSpace) }
            }
            Command::Mend { token, span, width, stamps, payload } => {
                for (i, lba) in (span.lba..span.end()).enumerate() {
                    let width = usize::from(width);
                    let is_lost = payload.is_empty();
                    let block = if is_lost { Payload::zeros(BLOCK) } else { payload.block(i) };
                    self.put(span.volume, lba, stamps[i * width..(i + 1) * width].to_vec(), block);
                    if is_lost {
                        self.rotten.push((span.volume, lba));
                    }
                }
                Reply::Staged { token, result: Ok(()) }
            }
            Command::Read { token, span, width, content, .. } => {
                Reply::Read { token, result: Ok(self.read(span, width, content, false)) }
            }
            Command::Allocation { token, span } => {
                let runs =
                    (span.lba..span.end()).map(|lba| (1, self.blocks.contains_key(&(span.volume, lba))));
                Reply::Allocation { token, result: Ok(runs.collect()) }
            }
            Command::Note { token, key, value } => {
                match value {
                    Some(value) => self.notes.insert(key, value),
                    None => self.notes.remove(&key),
                };
                Reply::Noted { token, result: Ok(()) }
            }
            Command::Discard { volume, stretch } => {
                let goes = |lba: u64| stretch.is_none_or(|stretch| lba / Span::STRETCH_BLOCKS == stretch);
                self.blocks.retain(|(of, lba), _| *of != volume || !goes(*lba));
                return None;
            }
            Command::Inventory { token, after } => {
                let all: BTreeSet<(VolumeId, u64)> =
                    self.blocks.keys().map(|(volume, lba)| (*volume, lba / Span::STRETCH_BLOCKS)).collect();
                let later = all.into_iter().filter(|place| Some(*place) > after);
                Reply::Inventory { token, result: Ok(later.take(wire::disk::INVENTORY_MAX).collect()) }
            }
            Command::Verify { token, span, width } => {
                Reply::Read { token, result: Ok(self.read(span, width, false, true)) }
            }
            Command::Barrier { token } => Reply::Noted { token, result: Ok(()) },
            Command::Destage { token, .. } => Reply::Destaged { token },
            Command::Remember { token, completions } => {
                self.completions.extend(completions.into_iter().map(|of| ((of.request, of.part), of)));
                Reply::Noted { token, result: Ok(()) }
            }
        })
    }
}

/// Picks messages by sender, receiver and content.
pub type Selects = fn(NodeId, NodeId, &Message) -> bool;

pub struct Cluster {
    pub now: Time,
    pub directory: Directory,
    /// The directory's store.
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    pub bricks: BTreeMap<BrickId, (Brick, MemoryDisk)>,
    pub gateways: BTreeMap<GatewayId, Gateway>,
    pub dead: Vec<NodeId>,
    /// Messages for which this says no are lost.
    pub passes: Selects,
    /// The disk of this brick answers so much later.
    pub late_disk: Option<(BrickId, Duration)>,
    /// Whether the late disk answers one thing after the other.
    pub is_serial: bool,
    /// When it has answered all that it was asked, if so.
    disk_free: Time,
    /// Messages for which this says yes arrive so much later.
    pub late_messages: Option<(Selects, Duration)>,
    /// What is under way for longer than a moment, by when it arrives and in the order in which it was sent.
    delayed: BTreeMap<(Time, u64), Delayed>,
    wire: VecDeque<(NodeId, NodeId, Packet)>,
    replies: BTreeMap<(u64, u64), (Result<IoReply, IoError>, Payload)>,
    opened: Option<VolumeId>,
    admin: Vec<Result<AdminReply, wire::AdminError>>,
    tag: u64,
    /// In place of the directory, while it is rebuilt.
    recount: Option<Recount>,
    /// Processes of bricks that were begun on other disks.
    runs: u64,
}

enum Delayed {
    Packet(NodeId, NodeId, Packet),
    Reply(BrickId, Reply),
}

const OPERATOR: NodeId = NodeId::Client(ClientId::operator(1));

impl Cluster {
    /// `bricks` bricks and `gateways` gateways that know each other.
    pub fn new(bricks: u32, gateways: u64) -> Cluster {
        let now = Time(1_000_000_000_000_000);
        let directory = Directory::new(DirectoryConfig::default(), Vec::new(), now).expect("an empty store");
        let mut cluster = Cluster {
            now,
            directory,
            stored: BTreeMap::new(),
            bricks: BTreeMap::new(),
            gateways: BTreeMap::new(),
            dead: Vec::new(),
            passes: |_, _, _| true,
            late_disk: None,
            is_serial: false,
            disk_free: Time::ZERO,
            late_messages: None,
            delayed: BTreeMap::new(),
            wire: VecDeque::new(),
            replies: BTreeMap::new(),
            opened: None,
            admin: Vec::new(),
            tag: 0,
            recount: None,
            runs: 0,
        };
        for nonce in 1..=u64::from(bricks) {
            cluster.admin(AdminRequest::AdmitBrick { nonce }).expect("admitted");
            let id = BrickId(nonce as u32);
            let mut brick = Brick::new(config(id), vec![Recovered::default()], now);
            brick.set_space(1 << 30, 0, 0, 0);
            cluster.bricks.insert(id, (brick, MemoryDisk::default()));
        }
        for id in (1..=gateways).map(GatewayId) {
            let config = GatewayConfig {
                id,
                name: String::new(),
                address: format!("{id}:1"),
                serves: Serves::Anyone,
                beside: None,
            };
            let mut gateway = Gateway::new(config, now);
            for brick in cluster.bricks.keys() {
                gateway.step(now, GatewayEvent::Up(NodeId::Brick(*brick)), &mut Vec::new());
            }
            cluster.gateways.insert(id, gateway);
            for (brick, _) in cluster.bricks.values_mut() {
                brick.step(now, BrickEvent::Up(NodeId::Gateway(id)), &mut Vec::new());
            }
        }
        cluster.run(Duration::from_secs(1));
        cluster
    }

    /// A volume, open at all gateways.
    pub fn volume(&mut self, layout: &str, size_bytes: u64) -> VolumeId {
        self.volume_of(layout, size_bytes, (wire::ReadPolicy::default(), base::StreamId::default()))
    }

    /// The same, of a stream.
    pub fn volume_of(
        &mut self,
        layout: &str,
        size_bytes: u64,
        (read_policy, stream): (wire::ReadPolicy, base::StreamId),
    ) -> VolumeId {
        let (name, layout) = (layout.replace('+', "p"), layout.to_owned());
        let name = if stream.0 == 0 { name } else { format!("{name}-{stream}") };
        let request = AdminRequest::CreateVolume {
            name: name.clone(),
            size_bytes,
            layout,
            stripe_unit_blocks: 0,
            groups: 1,
            read_policy,
            io_timeout: wire::IoTimeout::default(),
            protocol: wire::Protocol::default(),
            placement: wire::Placement::default(),
            stream,
            nonce: nonce_of(&name),
            reads: wire::Reads::default(),
        };
        let created = self.admin(request);
        let Ok(AdminReply::Volume(volume)) = created else { panic!("not created: {created:?}") };
        assert_eq!(self.open(&name), volume.id);
        volume.id
    }

    /// Opens a volume at all gateways.
    pub fn open(&mut self, name: &str) -> VolumeId {
        for id in self.gateways.keys().copied().collect::<Vec<_>>() {
            self.gateway(id, GatewayEvent::Open { session: id.0, name: name.to_owned() });
        }
        self.run(Duration::from_millis(100));
        self.opened.expect("the volume opens")
    }

    /// Opens a volume at one gateway.
    pub fn open_at(&mut self, gateway: u64, name: &str) -> VolumeId {
        self.gateway(GatewayId(gateway), GatewayEvent::Open { session: gateway, name: name.to_owned() });
        self.run(Duration::from_millis(100));
        self.opened.expect("the volume opens")
    }

    /// A command to the directory, and its answer.
    pub fn admin(&mut self, request: AdminRequest) -> Result<AdminReply, wire::AdminError> {
        let message = Message::Admin { operation: 1, request };
        self.wire.push_back((OPERATOR, NodeId::Directory, message.into()));
        self.run(Duration::from_millis(500));
        self.admin.pop().expect("an answer")
    }

    /// Begins I/O through a gateway.
    pub fn begin(&mut self, gateway: u64, volume: VolumeId, io: Io, payload: Payload) -> (u64, u64) {
        self.tag += 1;
        let event = GatewayEvent::Io { session: gateway, tag: self.tag, volume, stream: None, io, payload };
        self.gateway(GatewayId(gateway), event);
        (gateway, self.tag)
    }

    /// The answer to I/O, if it is there.
    pub fn reply(&mut self, of: (u64, u64)) -> Option<(Result<IoReply, IoError>, Payload)> {
        self.replies.remove(&of)
    }

    /// Writes, and waits for the answer.
    pub fn write(
        &mut self,
        gateway: u64,
        volume: VolumeId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<IoReply, IoError> {
        let of = self.begin(gateway, volume, Io::Write { offset }, Payload::from(bytes));
        self.wait(of).0
    }

    /// Reads, and waits for the answer.
    pub fn read(&mut self, gateway: u64, volume: VolumeId, offset: u64, length: u32) -> Vec<u8> {
        let of = self.begin(gateway, volume, Io::Read { offset, length }, Payload::new());
        let (result, payload) = self.wait(of);
        assert_eq!(result, Ok(IoReply::Done));
        payload.to_vec()
    }

    /// Reads, and waits for the answer, which may be an error.
    pub fn try_read(
        &mut self,
        gateway: u64,
        volume: VolumeId,
        offset: u64,
        length: u32,
    ) -> Result<Vec<u8>, IoError> {
        let of = self.begin(gateway, volume, Io::Read { offset, length }, Payload::new());
        let (result, payload) = self.wait(of);
        result.map(|_| payload.to_vec())
    }

    /// Waits for the answer to a write.
    pub fn finish(&mut self, of: (u64, u64)) {
        assert_eq!(self.wait(of).0, Ok(IoReply::Done));
    }

    fn wait(&mut self, of: (u64, u64)) -> (Result<IoReply, IoError>, Payload) {
        for _ in 0..100 {
            if let Some(reply) = self.reply(of) {
                return reply;
            }
            self.run(Duration::from_millis(100));
        }
        panic!("no answer within ten seconds");
    }

    /// Nothing reaches or leaves the node any more.
    pub fn kill(&mut self, node: NodeId) {
        self.dead.push(node);
        if let NodeId::Brick(_) = node {
            for id in self.gateways.keys().copied().collect::<Vec<_>>() {
                self.gateway(id, GatewayEvent::Down(node));
            }
        }
    }

    /// The node is reached again; what it did not hear meanwhile is lost.
    pub fn revive(&mut self, node: NodeId) {
        self.dead.retain(|dead| *dead != node);
        if let NodeId::Brick(id) = node {
            for gateway in self.gateways.keys().copied().collect::<Vec<_>>() {
                self.gateway(gateway, GatewayEvent::Up(node));
                let (brick, _) = self.bricks.get_mut(&id).expect("a known brick");
                brick.step(self.now, BrickEvent::Up(NodeId::Gateway(gateway)), &mut Vec::new());
            }
        }
    }

    /// The brick's process ends and another one begins on the same disk.
    pub fn restart(&mut self, id: BrickId) {
        let (brick, disk) = self.bricks.get_mut(&id).expect("a known brick");
        *brick = Brick::new(config(id), vec![disk.recover()], self.now);
        brick.set_space(1 << 30, 0, 0, 0);
        self.revive(NodeId::Brick(id));
    }

    /// The disk had nothing of what it answered as stored, and the brick begins anew on it.
    pub fn forget_all(&mut self, id: BrickId) {
        let (_, disk) = self.bricks.get_mut(&id).expect("a known brick");
        *disk = MemoryDisk::default();
        self.restart(id);
    }

    /// Gives the disk of each brick an identity, as formatted ones have.
    pub fn identify_disks(&mut self) {
        for (id, (brick, _)) in &mut self.bricks {
            brick.set_disks(vec![u64::from(id.0)]);
            brick.set_journals([(0, 0)].into_iter());
        }
        self.run(Duration::from_secs(1));
    }

    /// The brick's process ends and another one begins on another disk. Gives the disk of before.
    pub fn exchange_disk(&mut self, id: BrickId, identity: u64, disk: MemoryDisk) -> MemoryDisk {
        self.runs += 1;
        let config = BrickConfig { run: self.runs, ..config(id) };
        let mut brick = Brick::new(config, vec![disk.recover()], self.now);
        brick.set_space(1 << 30, 0, 0, 0);
        brick.set_disks(vec![identity]);
        brick.set_journals([(0, 0)].into_iter());
        let (_, before) = self.bricks.insert(id, (brick, disk)).expect("a known brick");
        self.revive(NodeId::Brick(id));
        before
    }

    /// The directory's process ends and another one begins on the same store.
    pub fn restart_directory(&mut self) {
        let contents = self.stored.clone().into_iter().collect();
        self.directory =
            Directory::new(DirectoryConfig::default(), contents, self.now).expect("its own store");
    }

    /// The directory's store is lost, and is made anew from what bricks know.
    pub fn rebuild_directory(&mut self) {
        self.recount = Some(Recount::default());
        self.run(Duration::from_secs(2));
        let recount = self.recount.take().expect("just put there");
        let rebuilt = recount.verdict(false).expect("all bricks are there");
        self.stored = rebuilt.puts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        self.restart_directory();
    }

    /// Runs until the group of the first volume has all its slots current.
    pub fn run_until_whole(&mut self) {
        for _ in 0..600 {
            self.run(Duration::from_millis(100));
            if self.directory.views().all(|view| usize::from(view.current.len()) == view.members.len()) {
                return;
            }
        }
        panic!("not whole within a minute: {:?}", self.directory.views().collect::<Vec<_>>());
    }

    /// Lets time pass and all that is due happen.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while let Some((from, to, packet)) = self.wire.pop_front() {
                match self.late_messages {
                    Some((is_late, by)) if is_late(from, to, &packet.message) => {
                        self.delay(by, Delayed::Packet(from, to, packet));
                    }
                    _ => self.deliver(from, to, packet),
                }
            }
            let arrives = self.delayed.keys().next().map_or(Time::MAX, |(at, _)| *at);
            let due = self.deadline();
            if due.min(arrives) > end {
                break;
            }
            self.now = self.now.max(due.min(arrives));
            match arrives < due {
                true => self.arrive(),
                false => self.wake(),
            }
        }
        self.now = end;
    }

    fn delay(&mut self, by: Duration, what: Delayed) {
        self.tag += 1;
        self.delayed.insert((self.now + by, self.tag), what);
    }

    fn arrive(&mut self) {
        match self.delayed.pop_first() {
            Some((_, Delayed::Packet(from, to, packet))) => self.deliver(from, to, packet),
            Some((_, Delayed::Reply(id, reply))) => self.disk_answers(id, reply),
            None => {}
        }
    }

    fn disk_answers(&mut self, id: BrickId, reply: Reply) {
        let mut fx = Vec::new();
        let (brick, _) = self.bricks.get_mut(&id).expect("a known brick");
        brick.step(self.now, BrickEvent::Store { disk: 0, reply }, &mut fx);
        brick.settle(self.now, &mut fx);
        self.brick_effects(id, fx);
    }

    fn deadline(&self) -> Time {
        let bricks = self.bricks.values().map(|(brick, _)| brick.deadline());
        let gateways = self.gateways.values().map(Machine::deadline);
        let all = bricks.chain(gateways).chain([self.directory.deadline()]);
        all.flatten().map(|(due, _)| due).min().expect("the directory always has one")
    }

    fn wake(&mut self) {
        let now = self.now;
        let mut fx = Vec::new();
        self.directory.wake(now, &mut fx);
        self.directory_effects(fx);
        for id in self.bricks.keys().copied().collect::<Vec<_>>() {
            let mut fx = Vec::new();
            self.bricks.get_mut(&id).expect("listed").0.wake(now, &mut fx);
            self.brick_effects(id, fx);
        }
        for id in self.gateways.keys().copied().collect::<Vec<_>>() {
            let mut fx = Vec::new();
            self.gateways.get_mut(&id).expect("listed").wake(now, &mut fx);
            self.gateway_effects(id, fx);
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, packet: Packet) {
        if self.dead.contains(&from) || self.dead.contains(&to) || !(self.passes)(from, to, &packet.message) {
            return;
        }
        match to {
            NodeId::Directory => {
                let mut fx = Vec::new();
                if let Some(recount) = &mut self.recount {
                    recount.step(self.now, DirectoryEvent::Packet { from, packet }, &mut fx);
                    return self.directory_effects(fx);
                }
                self.directory.step(self.now, DirectoryEvent::Packet { from, packet }, &mut fx);
                self.directory_effects(fx);
            }
            NodeId::Brick(id) => {
                let mut fx = Vec::new();
                let (brick, _) = self.bricks.get_mut(&id).expect("a known brick");
                brick.step(self.now, BrickEvent::Packet { from, packet }, &mut fx);
                brick.settle(self.now, &mut fx);
                self.brick_effects(id, fx);
            }
            NodeId::Gateway(id) => self.gateway(id, GatewayEvent::Packet { from, packet }),
            NodeId::Client(_) => {
                if let Message::AdminDone { result, .. } = packet.message {
                    self.admin.push(result);
                }
            }
        }
    }

    fn gateway(&mut self, id: GatewayId, event: GatewayEvent) {
        let mut fx = Vec::new();
        let gateway = self.gateways.get_mut(&id).expect("a known gateway");
        gateway.step(self.now, event, &mut fx);
        gateway.settle(self.now, &mut fx);
        self.gateway_effects(id, fx);
    }

    fn gateway_effects(&mut self, id: GatewayId, fx: Vec<GatewayEffect>) {
        for effect in fx {
            match effect {
                GatewayEffect::Compute { number, computation } => {
                    let mut more = Vec::new();
                    let gateway = self.gateways.get_mut(&id).expect("a known gateway");
                    let made = computation.run();
                    gateway.step(self.now, GatewayEvent::Computed { number, made }, &mut more);
                    gateway.settle(self.now, &mut more);
                    self.gateway_effects(id, more);
                }
                GatewayEffect::Send { to, packet } => self.wire.push_back((NodeId::Gateway(id), to, packet)),
                GatewayEffect::Reply { session, tag, result, payload } => {
                    assert_eq!(self.replies.insert((session, tag), (result, payload)), None, "answered once");
                }
                GatewayEffect::Opened { volume, .. } => {
                    self.opened = Some(volume.expect("the volume opens").id);
                }
                _ => {}
            }
        }
    }

    fn brick_effects(&mut self, id: BrickId, fx: Vec<BrickEffect>) {
        let mut fx = VecDeque::from(fx);
        while let Some(effect) = fx.pop_front() {
            let (brick, disk) = self.bricks.get_mut(&id).expect("a known brick");
            match effect {
                BrickEffect::Send { to, packet } => self.wire.push_back((NodeId::Brick(id), to, packet)),
                BrickEffect::Address { .. } => {}
                BrickEffect::Compute { number, computation } => {
                    let (mut more, made) = (Vec::new(), computation.run());
                    brick.step(self.now, BrickEvent::Computed { number, made }, &mut more);
                    brick.settle(self.now, &mut more);
                    fx.extend(more);
                }
                BrickEffect::Claimed { .. } => {
                    panic!("no disk here shows its head")
                }
                BrickEffect::Store { command, .. } => {
                    if let Some(reply) = disk.on(command) {
                        if let Some((_, by)) = self.late_disk.filter(|(late, _)| *late == id) {
                            let begins = if self.is_serial { self.disk_free.max(self.now) } else { self.now };
                            self.disk_free = begins + by;
                            self.delay(self.disk_free.since(self.now), Delayed::Reply(id, reply));
                            continue;
                        }
                        let mut more = Vec::new();
                        brick.step(self.now, BrickEvent::Store { disk: 0, reply }, &mut more);
                        brick.settle(self.now, &mut more);
                        fx.extend(more);
                    }
                }
            }
        }
        self.bricks[&id].0.check(base::Depth::Deep);
    }

    fn directory_effects(&mut self, fx: Vec<DirectoryEffect>) {
        let mut fx = VecDeque::from(fx);
        while let Some(effect) = fx.pop_front() {
            match effect {
                DirectoryEffect::Tell(_) => {}
                DirectoryEffect::Shard { .. } => unreachable!("nobody asks for objects"),
                DirectoryEffect::Send { to, packet } => self.wire.push_back((NodeId::Directory, to, packet)),
                DirectoryEffect::Store { token, puts } => {
                    for (key, value) in puts {
                        match value {
                            Some(value) => drop(self.stored.insert(key, value)),
                            None => drop(self.stored.remove(&key)),
                        }
                    }
                    let mut more = Vec::new();
                    self.directory.step(
                        self.now,
                        DirectoryEvent::Stored { token, result: Ok(()) },
                        &mut more,
                    );
                    fx.extend(more);
                }
            }
        }
    }
}

/// A nonce of a request that makes `name`: another one for another name.
pub fn nonce_of(name: &str) -> u64 {
    name.bytes().fold(7, |nonce: u64, byte| nonce.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

fn config(id: BrickId) -> BrickConfig {
    BrickConfig {
        id,
        address: format!("{id}:1"),
        labels: Vec::new(),
        disks: Vec::new(),
        durability: Vec::new(),
        turns: reads::seat::Turns::default(),
        shares: rules::fair::Shares::default(),
        garbage_every: BrickConfig::GARBAGE_EVERY,
        rebalance_above: BrickConfig::REBALANCE_ABOVE,
        page_bytes: 1,
        held_at_once: BrickConfig::HELD_AT_ONCE,
        packs: true,
        run: 0,
        place: wire::Place::default(),
    }
}

/// Bytes that a seed draws.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = base::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// The size of a bench's volume.
pub const SIZE: u64 = 4 << 20;

/// A cluster with a volume, and what the volume should hold.
pub struct Bench {
    pub cluster: Cluster,
    pub volume: VolumeId,
    pub copy: Vec<u8>,
    pub rng: base::Rng,
}

impl Bench {
    pub fn new(layout: &str, bricks: u32, seed: u64) -> Bench {
        let mut cluster = Cluster::new(bricks, 2);
        let volume = cluster.volume(layout, SIZE);
        Bench { cluster, volume, copy: vec![0; SIZE as usize], rng: base::Rng::with_seed(seed) }
    }

    /// Reads everything, through the first gateway.
    pub fn check(&mut self) {
        for offset in (0..SIZE).step_by(1 << 20) {
            let read = self.cluster.read(1, self.volume, offset, 1 << 20);
            assert!(read == self.copy[offset as usize..][..1 << 20], "wrong bytes from {offset} on");
        }
    }
}
