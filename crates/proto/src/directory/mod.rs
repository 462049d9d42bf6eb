//! The directory: bricks, volumes, groups and their views; leases; view changes.
//!
//! [`records`] is what it keeps on stable storage, [`leases`] who may trust its views until when, [`members`] decides who is
//! in a group, [`slow`] who is too slow to stay, [`views`] drives the changes that [`crate::member::change`] describes, [`families`] has snapshots and
//! clones, [`admin`] answers commands (with [`volumes`], [`bricks`], [`status`]), [`rebuild`] makes a lost directory anew.

mod admin;
mod bricks;
mod families;
mod leases;
mod members;
pub mod rebuild;
mod records;
mod slow;
mod status;
#[cfg(test)]
mod tests;
mod views;
mod volumes;

use crate::counters::Counters;
use crate::member::change::Change;
use crate::rules::{Rules, SOUND};
use base::{BrickId, Depth, GatewayId, GroupId, Machine, NodeId, StampClock, Time, ViewNumber, VolumeId};
use core::time::Duration;
use families::Wish;
use leases::Leases;
use records::Records;
use slow::Slowness;
use std::collections::{BTreeMap, VecDeque};
use wire::{
    AdminError, AdminReply, AdminRequest, BrickStatus, Care, Family, GroupView, Message, Orders, Packet,
    VolumeInfo,
};

/// What happens to the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryEvent {
    /// A packet came. `from` is what the transport has authenticated.
    Packet {
        /// The sender.
        from: NodeId,
        /// What it says.
        packet: Packet,
    },
    /// The connection to a peer is gone.
    Down(NodeId),
    /// A [`DirectoryEffect::Store`] is on stable storage, or why not.
    Stored {
        /// Which.
        token: u64,
        /// What became of it.
        result: Result<(), String>,
    },
}

/// A change of the directory's store: `None` removes the key.
pub type Put = (Vec<u8>, Option<Vec<u8>>);

/// What the directory asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryEffect {
    /// Send this; it may get lost.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        packet: Packet,
    },
    /// Put all of these on stable storage, or none. Asked in order; answered in order.
    Store {
        /// Names the answer.
        token: u64,
        /// The changes.
        puts: Vec<Put>,
    },
}

/// What the directory is told when it starts.
#[derive(Clone, Debug)]
pub struct DirectoryConfig {
    /// For how long a brick may trust its views after a heartbeat.
    pub lease_ns: u64,
    /// By how much clocks may differ in rate, in parts per million.
    pub drift_ppm: u32,
    /// Failure-domain labels, the widest first.
    pub domains: Vec<String>,
    /// How bricks look after their blocks, until a command says otherwise.
    pub care: Care,
    /// For how long a brick that was left out for being slow must be well again before it returns: doubled each time,
    /// between these.
    pub slow_hold_ns: (u64, u64),
}

impl Default for DirectoryConfig {
    fn default() -> DirectoryConfig {
        DirectoryConfig {
            lease_ns: 2_000_000_000,
            drift_ppm: 10_000,
            domains: vec!["rack".to_owned(), "host".to_owned()],
            care: Care::default(),
            slow_hold_ns: (10_000_000_000, 600_000_000_000),
        }
    }
}

/// What follows when a change is on stable storage.
#[derive(Debug)]
enum After {
    /// Answer.
    Send(NodeId, Message),
    /// The view to come of a group is stored.
    Change(GroupId, ViewNumber),
    /// The active view of a group is stored: publish it.
    Publish(GroupId),
    /// It is stored that the view to come of a group is not revoked any more.
    Confirmed(GroupId, ViewNumber),
    /// Tell gateways of a volume that changed.
    Changed(VolumeId),
    /// Tell gateways of a volume that is gone.
    Deleted(VolumeId),
}

/// The answer to a command, unless it has to wait for something.
type Answered = Option<Result<AdminReply, AdminError>>;

/// A gateway that is known to live.
#[derive(Debug)]
struct GatewayEntry {
    address: String,
    first_writer: u16,
    heard: Time,
}

/// The machine.
pub struct Directory {
    config: DirectoryConfig,
    records: Records,
    leases: Leases,
    gateways: BTreeMap<GatewayId, GatewayEntry>,
    changes: BTreeMap<GroupId, Change>,
    /// Who waits for a volume to be ready.
    creating: BTreeMap<VolumeId, Vec<(NodeId, u64)>>,
    /// Requests that wait for groups to be in order.
    wishes: Vec<Wish>,
    /// Nonces of requests for cuts that were refused, the latest ones.
    refused_cuts: VecDeque<u64>,
    /// Since when bricks have been away, as far as is known since the start.
    away: BTreeMap<BrickId, Time>,
    /// What is known of slow bricks beside the records.
    slowness: Slowness,
    /// Bricks that did not answer when they were to join a group, and until when they may not.
    refused: BTreeMap<(GroupId, BrickId), Time>,
    /// What follows on a store, and the map's version that it makes durable.
    after: BTreeMap<u64, (u64, Vec<After>)>,
    serial: u64,
    next_tick: Time,
    /// The map's version that is on stable storage: bricks are told of nothing later.
    durable: u64,
    broken: Option<String>,
    counters: Counters,
    rules: &'static dyn Rules,
}

const TICK: Duration = Duration::from_millis(100);
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// A gateway that did not register again for this long is forgotten.
const GATEWAY_SILENCE: Duration = Duration::from_secs(10);

impl Directory {
    /// A directory whose store holds `contents`, by key.
    pub fn new(
        config: DirectoryConfig,
        contents: Vec<(Vec<u8>, Vec<u8>)>,
        now: Time,
    ) -> Result<Directory, String> {
        let mut records = Records::load(&contents)?;
        records.finish_or_drop_volumes();
        let records_version = records.counts.version;
        let mut directory = Directory {
            leases: Leases::new(&config, now),
            config,
            records,
            gateways: BTreeMap::new(),
            changes: BTreeMap::new(),
            creating: BTreeMap::new(),
            wishes: Vec::new(),
            refused_cuts: VecDeque::new(),
            away: BTreeMap::new(),
            slowness: Slowness::default(),
            refused: BTreeMap::new(),
            after: BTreeMap::new(),
            serial: 0,
            next_tick: now,
            durable: records_version,
            broken: None,
            counters: Counters::default(),
            rules: SOUND,
        };
        directory.resume_changes(now);
        Ok(directory)
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// Why its store failed, if it did: it does nothing any more and must be restarted.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// The views in force.
    pub fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.records.groups.values().filter_map(|group| group.active.as_ref())
    }

    /// Whether a view is being made.
    pub fn is_changing(&self) -> bool {
        !self.changes.is_empty()
    }

    fn on_packet(&mut self, now: Time, from: NodeId, message: Message, fx: &mut Vec<DirectoryEffect>) {
        match (from, message) {
            (NodeId::Brick(brick), message) => self.on_brick(now, brick, message, fx),
            (NodeId::Gateway(gateway), Message::Register { gateway: named, address, writers, held })
                if gateway == named =>
            {
                self.on_register(now, gateway, (address, writers, held), fx);
            }
            (NodeId::Gateway(gateway), Message::Observed { members }) => {
                self.slowness.on_observed(now, gateway, members);
            }
            (NodeId::Gateway(_), Message::GetView { group }) => self.publish(group, Some(from), fx),
            (NodeId::Gateway(_) | NodeId::Client(_), Message::OpenVolume { operation, name }) => {
                let map = self.volume_map(&name);
                send(fx, from, Message::VolumeOpened { operation, map });
            }
            (NodeId::Gateway(_), Message::Admin { operation, request }) => {
                let result = match request {
                    AdminRequest::ListVolumes => Ok(self.list()),
                    _ => Err(AdminError::Invalid("a gateway may not administer the cluster".to_owned())),
                };
                send(fx, from, Message::AdminDone { operation, result });
            }
            (NodeId::Client(_), Message::Admin { operation, request }) => {
                self.on_admin(now, from, operation, request, fx)
            }
            (_, Message::Ping { nonce }) => send(fx, from, Message::Pong { nonce }),
            _ => self.counters.count("message from a stranger to this role ignored"),
        }
    }

    fn on_brick(&mut self, now: Time, from: BrickId, message: Message, fx: &mut Vec<DirectoryEffect>) {
        match message {
            Message::Heartbeat { brick, sent, known, status } if brick == from => {
                self.on_heartbeat(now, from, sent, known, *status, fx);
            }
            Message::Fenced { group, number, doubts } => {
                self.advance(now, group, fx, |change| change.on_fenced(from, number, doubts))
            }
            Message::Resolved { group, number, fates } => {
                self.advance(now, group, fx, |change| change.on_resolved(from, number, fates))
            }
            Message::Activated { group, number } => {
                self.advance(now, group, fx, |change| change.on_activated(from, number))
            }
            _ => {}
        }
    }

    fn on_heartbeat(
        &mut self,
        now: Time,
        from: BrickId,
        sent: Time,
        known: u64,
        status: BrickStatus,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some(record) = self.records.bricks.get_mut(&from) else {
            return self.counters.count("heartbeat of a brick that was never admitted");
        };
        if !record.fits(&status) {
            record.address.clone_from(&status.address);
            record.labels.clone_from(&status.labels);
            let put = self.records.put_brick(from);
            self.store(vec![put], Vec::new(), fx);
            self.publish_addresses(fx);
        }
        let has_lost = self.on_disks(now, from, &status.disks, fx);
        self.on_left(from, &status.left, fx);
        let views = self.records.groups.values().filter(|group| group.changed > known);
        let views: Vec<GroupView> = views
            .filter_map(|group| group.active.clone())
            .filter(|view| view.slot_of(from).is_some())
            .collect();
        let version = self.durable;
        let since = self.records.deleted.iter().filter(|(at, _)| (known + 1..version + 1).contains(at));
        let deleted = since.map(|(_, volume)| *volume).collect();
        // A brick may trust its views again once it knows of all that left it out, and only while none is being made
        // that will.
        let informed = views.iter().all(|view| view.is_writer(from));
        let left_out = self.changes.values().any(|change| {
            let before = self.active(change.next.group);
            before.is_some_and(|view| view.is_writer(from)) && !change.next.is_writer(from)
        });
        let grant = informed && !left_out && !has_lost && status.failed.is_none() && self.takes_groups(from);
        self.leases.on_heartbeat(now, from, status, grant);
        let lease_ns = if grant { self.leases.length_ns(from) } else { 0 };
        // Of views in which it takes part it hears when they are made.
        let is_told = |view: &GroupView| !view.is_writer(from) && self.is_durable(view.group);
        let views = views.into_iter().filter(is_told).collect();
        let orders = Box::new(self.orders(from, known));
        send(
            fx,
            NodeId::Brick(from),
            Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders },
        );
    }

    fn orders(&self, to: BrickId, known: u64) -> Orders {
        let is_member = |group: &GroupId| {
            self.records.groups.get(group).is_some_and(|record| {
                record.active.iter().chain(&record.next).any(|view| view.slot_of(to).is_some())
            })
        };
        // A brick that is new in a group may have missed its family, however old.
        let has_changed = |group: &GroupId| self.records.groups[group].changed > known;
        let families = self.records.families.iter().filter(|(_, record)| {
            let mut of_brick = record.groups.iter().filter(|group| is_member(group)).peekable();
            let concerns = of_brick.peek().is_some() && (record.changed > known || of_brick.any(has_changed));
            concerns && record.changed <= self.durable
        });
        let families = families.map(|(family, record)| Family {
            number: record.changed,
            volumes: self.records.volumes_of(*family).map(|volume| volume.info.clone()).collect(),
            groups: record.groups.clone(),
        });
        let left = self.records.groups.values().filter(|record| {
            record.changed <= self.durable && record.former.iter().any(|(brick, _)| *brick == to)
        });
        let left = left.filter_map(|record| record.active.clone()).filter(|view| view.slot_of(to).is_none());
        Orders {
            families: families.collect(),
            left: left.collect(),
            bricks: self.addresses(),
            care: self.care(),
            is_slow: self.is_slow(to),
        }
    }

    fn is_durable(&self, group: GroupId) -> bool {
        self.records.groups.get(&group).is_some_and(|record| record.changed <= self.durable)
    }

    fn on_register(
        &mut self,
        now: Time,
        gateway: GatewayId,
        (address, writers, held): (String, u16, Option<u16>),
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if let Some(entry) = self.gateways.get_mut(&gateway) {
            entry.heard = now;
            entry.address = address;
            let first_writer = entry.first_writer;
            return send(fx, NodeId::Gateway(gateway), Message::Registered { first_writer });
        }
        if let Some(first_writer) = held {
            // It registered before the directory restarted, and goes on under its number.
            self.gateways.insert(gateway, GatewayEntry { address, first_writer, heard: now });
            return send(fx, NodeId::Gateway(gateway), Message::Registered { first_writer });
        }
        let first_writer = self.free_writers(writers.clamp(1, 64));
        self.records.counts.next_writer = (first_writer + writers.clamp(1, 64)) % StampClock::WRITERS;
        self.gateways.insert(gateway, GatewayEntry { address, first_writer, heard: now });
        let answer = Message::Registered { first_writer };
        let put = self.records.put_counts();
        self.store(vec![put], vec![After::Send(NodeId::Gateway(gateway), answer)], fx);
    }

    /// The next run of numbers that no gateway known to live has.
    fn free_writers(&self, count: u16) -> u16 {
        let mut first = self.records.counts.next_writer;
        loop {
            if first + count > StampClock::WRITERS {
                first = 0;
            }
            let taken = |entry: &GatewayEntry| (first..first + count).contains(&entry.first_writer);
            if !self.gateways.values().any(taken) {
                return first;
            }
            first += count;
        }
    }

    // ---- storage ----

    fn store(&mut self, puts: Vec<Put>, after: Vec<After>, fx: &mut Vec<DirectoryEffect>) {
        self.serial += 1;
        self.after.insert(self.serial, (self.records.counts.version, after));
        fx.push(DirectoryEffect::Store { token: self.serial, puts });
    }

    fn on_stored(
        &mut self,
        now: Time,
        token: u64,
        result: Result<(), String>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some((version, after)) = self.after.remove(&token) else { return };
        if let Err(why) = result {
            // What is in memory is no longer what is stored: nothing may follow from it.
            self.broken.get_or_insert(why);
            return;
        }
        self.durable = self.durable.max(version);
        for after in after {
            match after {
                After::Send(to, message) => send(fx, to, message),
                After::Change(group, number) => self.on_change_stored(now, group, number, fx),
                After::Confirmed(group, number) => self.on_confirmed(now, group, number, fx),
                After::Publish(group) => self.on_active_stored(group, fx),
                After::Changed(volume) => self.publish_volume(volume, fx),
                After::Deleted(volume) => self.tell_gateways(Vec::new(), Vec::new(), vec![volume], fx),
            }
        }
    }

    // ---- publishing ----

    fn publish(&self, group: GroupId, to: Option<NodeId>, fx: &mut Vec<DirectoryEffect>) {
        let views: Vec<GroupView> = self.active(group).cloned().into_iter().collect();
        match to {
            _ if views.is_empty() => {}
            Some(to) => {
                let (volumes, deleted, bricks) = (Vec::new(), Vec::new(), self.addresses());
                send(fx, to, Message::Published { views, volumes, deleted, bricks });
            }
            None => self.tell_gateways(views, Vec::new(), Vec::new(), fx),
        }
    }

    fn publish_volume(&self, volume: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let volumes =
            self.records.volumes.get(&volume).map(|record| record.info.clone()).into_iter().collect();
        self.tell_gateways(Vec::new(), volumes, Vec::new(), fx);
    }

    fn publish_addresses(&self, fx: &mut Vec<DirectoryEffect>) {
        self.tell_gateways(Vec::new(), Vec::new(), Vec::new(), fx);
    }

    fn tell_gateways(
        &self,
        views: Vec<GroupView>,
        volumes: Vec<VolumeInfo>,
        deleted: Vec<VolumeId>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let message = Message::Published { views, volumes, deleted, bricks: self.addresses() };
        for gateway in self.gateways.keys() {
            send(fx, NodeId::Gateway(*gateway), message.clone());
        }
    }

    fn addresses(&self) -> Vec<(BrickId, String)> {
        let known = self.records.bricks.iter().filter(|(_, record)| !record.address.is_empty());
        known.map(|(id, record)| (*id, record.address.clone())).collect()
    }

    fn active(&self, group: GroupId) -> Option<&GroupView> {
        self.records.groups.get(&group)?.active.as_ref()
    }
}

fn send(fx: &mut Vec<DirectoryEffect>, to: NodeId, message: Message) {
    fx.push(DirectoryEffect::Send { to, packet: message.into() });
}

impl Machine for Directory {
    type Event = DirectoryEvent;
    type Effect = DirectoryEffect;

    fn step(&mut self, now: Time, event: DirectoryEvent, fx: &mut Vec<DirectoryEffect>) {
        if self.broken.is_some() {
            return;
        }
        match event {
            DirectoryEvent::Packet { from, packet } => self.on_packet(now, from, packet.message, fx),
            DirectoryEvent::Down(_) => {}
            DirectoryEvent::Stored { token, result } => self.on_stored(now, token, result, fx),
        }
    }

    fn settle(&mut self, _now: Time, _fx: &mut Vec<DirectoryEffect>) {}

    fn wake(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if now < self.next_tick || self.broken.is_some() {
            return;
        }
        // A directory that did not run for a while has heard nobody: that is no sign that they are dead.
        if now.since(self.next_tick) > Duration::from_nanos(self.config.lease_ns / 4) {
            self.counters.count("directory was paused");
            self.leases.renew_grace(now);
        }
        self.next_tick = now + TICK;
        self.gateways.retain(|_, entry| now.since(entry.heard) < GATEWAY_SILENCE);
        self.keep_members(now, fx);
        self.keep_families(now, fx);
        self.grant_wishes(now, fx);
        self.ask_again(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        Some((self.next_tick, "leases are looked at"))
    }

    fn check(&self, _depth: Depth) {
        for record in self.records.groups.values() {
            let (Some(active), Some(next)) = (&record.active, &record.next) else { continue };
            assert!(next.number > active.number, "views are numbered upward");
            assert!(next.current.and(next.joining).is_empty(), "who joins is not current yet");
            let has_a_say = next.current.and(record.voters).and(active.writers());
            assert_eq!(has_a_say, next.current, "a new current set is a part of those that took every write");
            let same = |slot: u8| next.members[usize::from(slot)] == active.members[usize::from(slot)];
            assert!(record.voters.iter().all(same), "who has a say is who took the writes");
        }
    }
}
