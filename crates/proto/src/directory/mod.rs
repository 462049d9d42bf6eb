//! The directory: bricks, volumes, groups and their views; leases; view changes.
//!
//! [`records`] is what it keeps on stable storage, [`leases`] who may trust its views until when, [`members`] decides who is
//! in a group, [`slow`] who is too slow to stay, [`views`] drives the changes that [`crate::member::change`] describes, [`families`] has snapshots and
//! clones, [`admin`] answers commands (with [`volumes`], [`bricks`], [`status`]), [`rebuild`] makes a lost directory anew.

mod admin;
mod bricks;
mod event;
mod families;
mod gateways;
mod leases;
mod members;
pub mod rebuild;
mod records;
mod slow;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod views;
mod volumes;

pub use event::{DirectoryConfig, DirectoryEffect, DirectoryEvent, Put, StoreToken};

use crate::counters::Counters;
use crate::member::change::Change;
use crate::rules::{Rules, SOUND};
use base::{BrickId, Depth, GroupId, Machine, NodeId, Time, VolumeId};
use core::time::Duration;
use event::send;
use families::Wish;
use gateways::{Gateways, Heard, Registration};
use leases::Leases;
use records::Records;
use slow::Slowness;
use std::collections::BTreeMap;
use store::{After, Asker, Store, Write};
use wire::{
    AdminError, AdminReply, AdminRequest, BrickStatus, Family, GroupView, Message, Orders, VolumeInfo,
};

/// The answer to a command, unless it has to wait for something.
type Answered = Option<Result<AdminReply, AdminError>>;

/// The machine.
pub struct Directory {
    config: DirectoryConfig,
    records: Records,
    leases: Leases,
    gateways: Gateways,
    changes: BTreeMap<GroupId, Change>,
    /// Who waits for a volume to be ready.
    creating: BTreeMap<VolumeId, Vec<Asker>>,
    /// Volumes whose latest change is not stored yet, as they may be told.
    told: BTreeMap<VolumeId, VolumeInfo>,
    /// Requests that wait for groups to be in order.
    wishes: Vec<Wish>,
    /// Since when bricks have been away, as far as is known since the start.
    away: BTreeMap<BrickId, Time>,
    /// What is known of slow bricks beside the records.
    slowness: Slowness,
    /// Bricks that did not answer when they were to join a group, and until when they may not.
    refused: BTreeMap<(GroupId, BrickId), Time>,
    store: Store,
    next_tick: Time,
    counters: Counters,
    rules: &'static dyn Rules,
}

const TICK: Duration = Duration::from_millis(100);
const ASK_AGAIN: Duration = Duration::from_millis(250);

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
            gateways: Gateways::default(),
            changes: BTreeMap::new(),
            creating: BTreeMap::new(),
            told: BTreeMap::new(),
            wishes: Vec::new(),
            away: BTreeMap::new(),
            slowness: Slowness::default(),
            refused: BTreeMap::new(),
            store: Store::new(records_version),
            next_tick: now,
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

    /// Whether its store fails: it is tried again, and nothing can be made or changed meanwhile.
    pub fn store_is_failing(&self) -> bool {
        self.store.is_failing()
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
                self.on_register(now, Registration { gateway, address, writers, held }, fx);
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
                self.on_admin(now, Asker { node: from, operation }, request, fx)
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
            self.put(vec![put], Vec::new(), fx);
            self.publish_addresses(fx);
        }
        let has_lost = self.on_disks(now, from, &status.disks, fx);
        self.on_left(from, &status.left, fx);
        let views = self.records.groups.values().filter(|group| group.changed > known);
        let views: Vec<GroupView> = views
            .filter_map(|group| group.active.clone())
            .filter(|view| view.slot_of(from).is_some())
            .collect();
        let version = self.store.durable();
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
            concerns && record.changed <= self.store.durable()
        });
        let families = families.map(|(family, record)| Family {
            number: record.changed,
            volumes: self.records.volumes_of(*family).map(|volume| volume.info.clone()).collect(),
            groups: record.groups.clone(),
        });
        let left = self.records.groups.values().filter(|record| {
            record.changed <= self.store.durable() && record.former.iter().any(|(brick, _)| *brick == to)
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
        self.records.groups.get(&group).is_some_and(|record| record.changed <= self.store.durable())
    }

    fn on_register(&mut self, now: Time, said: Registration, fx: &mut Vec<DirectoryEffect>) {
        let gateway = said.gateway;
        match self.gateways.hear(now, said) {
            Heard::Known(first_writer) => {
                send(fx, NodeId::Gateway(gateway), Message::Registered { first_writer });
            }
            Heard::Waits => {}
            // It asks again. What is begun now would have to be kept until the store works.
            Heard::New(_) if self.store.is_failing() => {}
            Heard::New(said) => {
                let run = self.gateways.enter(now, said, self.records.counts.next_writer);
                self.records.counts.next_writer = run.next_writer;
                let put = self.records.put_counts();
                self.put(vec![put], vec![After::Registered(gateway)], fx);
            }
        }
    }

    // ---- storage ----

    fn put(&mut self, puts: Vec<Put>, after: Vec<After>, fx: &mut Vec<DirectoryEffect>) {
        self.store.put(Write::new(puts, self.records.counts.version, after), fx);
    }

    fn on_stored(
        &mut self,
        now: Time,
        token: StoreToken,
        result: Result<(), String>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        for after in self.store.on_stored(now, token, result, fx) {
            match after {
                After::Answer(asker, result) => answer(fx, asker, result),
                After::Registered(gateway) => {
                    if let Some(first_writer) = self.gateways.on_stored(gateway) {
                        send(fx, NodeId::Gateway(gateway), Message::Registered { first_writer });
                    }
                }
                After::Change(group, number) => self.on_change_stored(now, group, number, fx),
                After::Confirmed(group, number) => self.on_confirmed(now, group, number, fx),
                After::Publish(group) => self.on_active_stored(group, fx),
                After::Settled(info) => self.on_settled(*info),
                After::Changed(volume) => self.publish_volume(volume, fx),
                After::Deleted(volume) => self.tell_gateways(Vec::new(), Vec::new(), vec![volume], fx),
            }
        }
    }

    /// Tries a store that fails again, and tells those that have waited for it too long.
    fn keep_store(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let Some(mut askers) = self.store.take_impatient(now) else { return self.store.retry(now, fx) };
        askers.extend(core::mem::take(&mut self.creating).into_values().flatten());
        askers.extend(core::mem::take(&mut self.wishes).into_iter().map(|wish| wish.asker));
        let refusal = self.store.refusal().expect("it fails");
        askers.into_iter().for_each(|asker| answer(fx, asker, Err(refusal.clone())));
        self.store.retry(now, fx);
    }

    /// The answer to a command that has changed something or been refused for the state of something: it may rest on what
    /// is not stored yet, and goes out behind that.
    fn answer_behind(
        &mut self,
        asker: Asker,
        result: Result<AdminReply, AdminError>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if let Some(After::Answer(asker, result)) = self.store.follow(After::Answer(asker, result)) {
            answer(fx, asker, result);
        }
    }

    // ---- what is told of volumes ----

    /// A volume is about to change: until that is stored it is told as it was.
    fn hold_back(&mut self, info: VolumeInfo) {
        self.told.entry(info.id).or_insert(info);
    }

    fn on_settled(&mut self, info: VolumeInfo) {
        if self.store.is_changing(&Records::volume_key(info.id)) {
            self.told.insert(info.id, info);
        } else {
            self.told.remove(&info.id);
        }
    }

    /// A volume as a restart would not take it back.
    fn shown<'a>(&'a self, info: &'a VolumeInfo) -> &'a VolumeInfo {
        self.told.get(&info.id).unwrap_or(info)
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
        let volumes = self.records.volumes.get(&volume).map(|record| self.shown(&record.info).clone());
        let volumes = volumes.into_iter().collect();
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
        for gateway in self.gateways.ids() {
            send(fx, NodeId::Gateway(gateway), message.clone());
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

fn answer(fx: &mut Vec<DirectoryEffect>, asker: Asker, result: Result<AdminReply, AdminError>) {
    send(fx, asker.node, Message::AdminDone { operation: asker.operation, result });
}

impl Machine for Directory {
    type Event = DirectoryEvent;
    type Effect = DirectoryEffect;

    fn step(&mut self, now: Time, event: DirectoryEvent, fx: &mut Vec<DirectoryEffect>) {
        match event {
            DirectoryEvent::Packet { from, packet } => self.on_packet(now, from, packet.message, fx),
            DirectoryEvent::Down(_) => {}
            DirectoryEvent::Stored { token, result } => self.on_stored(now, token, result, fx),
        }
    }

    fn settle(&mut self, _now: Time, _fx: &mut Vec<DirectoryEffect>) {}

    fn wake(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.keep_store(now, fx);
        if now < self.next_tick {
            return;
        }
        // A directory that did not run for a while has heard nobody: that is no sign that they are dead.
        if now.since(self.next_tick) > Duration::from_nanos(self.config.lease_ns / 4) {
            self.counters.count("directory was paused");
            self.leases.renew_grace(now);
        }
        self.next_tick = now + TICK;
        self.gateways.forget_silent(now);
        self.keep_members(now, fx);
        self.keep_families(now, fx);
        self.grant_wishes(now, fx);
        self.ask_again(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let tick = (self.next_tick, "leases are looked at");
        let retry = self.store.deadline().map(|at| (at, "the store is tried again"));
        retry.into_iter().chain([tick]).min_by_key(|(at, _)| *at)
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
