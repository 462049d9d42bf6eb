//! The cluster as the directory knows it: its records and what is on its way to the store, leases, gateways. All parts of
//! the directory look at this; none of it knows of them.

use super::age::Age;
use super::event::{DirectoryConfig, DirectoryEffect, Put, send};
use super::gateways::{Gateways, Registration};
use super::leases::Leases;
use super::loans;
use super::news::News;
use super::records::Records;
use super::runs::Runs;
use super::store::{After, Asker, Store, Write};
use super::streams::Streams;
use super::time::Timekeeper;
use base::{BrickId, GatewayId, GroupId, Loan, NodeId, StampClock, Time, VolumeId};
use core::fmt;
use core::time::Duration;
use rules::counters::{Counter, Counters};
use rules::layout::{Geometry, Layout};
use rules::promises::{Rules, SOUND};
use std::collections::{BTreeMap, BTreeSet};
use wire::{AdminError, AdminReply, BrickStatus, Care, GroupView, Message, Version, VolumeInfo};

/// Between two looks at leases, members and families.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// The answer to a command, unless it has to wait for something.
pub(super) type Answered = Option<Result<AdminReply, AdminError>>;

pub(super) struct Cluster {
    pub(super) config: DirectoryConfig,
    pub(super) records: Records,
    pub(super) store: Store,
    pub(super) leases: Leases,
    pub(super) runs: Runs,
    pub(super) age: Age,
    pub(super) gateways: Gateways,
    /// The time of the cluster.
    pub(super) time: Timekeeper,
    /// The newest version that each brick speaks which was heard.
    pub(super) bricks_speak: BTreeMap<BrickId, Version>,
    pub(super) streams: Streams,
    pub(super) counters: Counters,
    pub(super) rules: &'static dyn Rules,
    /// Volumes whose latest change is not stored yet, as they may be told.
    told: BTreeMap<VolumeId, VolumeInfo>,
    /// The map's version at which a brick's address changed last, as far as is known: bricks that know it know all addresses.
    moved: u64,
}

impl Cluster {
    pub(super) fn new(config: DirectoryConfig, mut records: Records, now: Time) -> Cluster {
        let time = Timekeeper::new(now, records.time_at_start(now, config.first_time));
        if !records.bricks.is_empty() {
            records.events.begin_at(time.time(now));
        }
        let moved = records.counts.version;
        Cluster {
            leases: Leases::new(&config, now, !records.bricks.is_empty()),
            runs: Runs::new(now),
            age: Age::new(now),
            store: Store::new(records.counts.version),
            streams: Streams::new(&records),
            config,
            records,
            gateways: Gateways::default(),
            time,
            bricks_speak: BTreeMap::new(),
            counters: Counters::default(),
            rules: SOUND,
            told: BTreeMap::new(),
            moved,
        }
    }

    // ---- storage ----

    pub(super) fn put(&mut self, mut puts: Vec<Put>, after: Vec<After>, fx: &mut Vec<DirectoryEffect>) {
        // A store from before must be known as old: it would deny what somebody was told is done.
        if after.iter().any(|after| matches!(after, After::Answer(_, Ok(_)))) {
            self.records.bump();
            puts.push(self.records.put_counts());
        }
        self.store.put(Write::new(puts, self.records.counts.version, after), fx);
    }

    /// The same for what is news: it is an event, stored with the puts, and a line in the log once these are stored.
    pub(super) fn put_news(
        &mut self,
        now: Time,
        mut puts: Vec<Put>,
        mut after: Vec<After>,
        news: News,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let (number, put) = self.records.events.note(now, &news);
        puts.push(put);
        after.extend([After::Tell(news), After::Noted(number)]);
        self.put(puts, after, fx);
    }

    /// News of what was put just now, or of what needs no put: lines in the log now, and events once they are stored.
    pub(super) fn tell(&mut self, now: Time, news: Vec<News>, fx: &mut Vec<DirectoryEffect>) {
        let noted: Vec<(u64, Put)> = news.iter().map(|news| self.records.events.note(now, news)).collect();
        let Some((last, _)) = noted.last() else { return };
        let after = vec![After::Noted(*last)];
        let puts = noted.into_iter().map(|(_, put)| put).collect();
        self.store.put_along(Write::new(puts, self.records.counts.version, after), fx);
        fx.extend(news.into_iter().map(DirectoryEffect::Tell));
    }

    /// Notes what time it is, every few minutes.
    pub(super) fn note_time(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if let Some(time) = self.time.take_note(now) {
            self.records.time = Some(time);
            let mut puts = loans::forget_ended(&mut self.records, time.time);
            puts.push(self.records.put_time());
            self.put(puts, Vec::new(), fx);
        }
    }

    /// Lends a gateway a number for its stamps, or its own for longer, if that is due.
    pub(super) fn lend(&mut self, now: Time, said: &Registration, fx: &mut Vec<DirectoryEffect>) {
        let time = self.time.time(now);
        // It asks again. What is begun now would have to be kept until the store works, and an old store would lend what is lent already.
        let is_due = self.gateways.is_loan_due(said.gateway, |loan| loans::is_due(&self.config, loan, time));
        if !is_due || self.store.is_failing() || self.holds_still(now) {
            return;
        }
        let Some((first, loan)) = loans::lend(&mut self.records, &self.config, self.rules, time, said) else {
            return self.counters.count(Counter::GatewayWaitsForANumber);
        };
        self.gateways.begin_lending(said.gateway);
        // A store from before must be known as old: it would lend the same number to another gateway.
        self.records.bump();
        let puts = vec![self.records.put_loan(first), self.records.put_counts()];
        self.put(puts, vec![After::Lent(said.gateway, first, loan)], fx);
    }

    /// Tells a gateway which number it has, and for how long, and what time it is.
    pub(super) fn tell_registered(
        &self,
        now: Time,
        gateway: GatewayId,
        lent: Option<(u16, Loan)>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let time = self.time.time(now);
        let (first_writer, loan) =
            lent.map_or((StampClock::WRITERS, None), |(first, loan)| (first, Some(loan)));
        send(fx, NodeId::Gateway(gateway), Message::Registered { first_writer, time, loan });
    }

    /// The answer to a command that has changed something or been refused for the state of something: it may rest on what
    /// is not stored yet, and goes out behind that.
    pub(super) fn answer_behind(
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

    /// A volume is another from now on. Until that is stored it is told as it was.
    pub(super) fn set_volume(&mut self, info: VolumeInfo) {
        let (volumes, id) = (&mut self.records.volumes, info.id);
        if let Some(before) = volumes.change(&id, |record| core::mem::replace(&mut record.info, info)) {
            self.told.entry(id).or_insert(before);
        }
    }

    pub(super) fn on_settled(&mut self, info: VolumeInfo) {
        if self.store.is_changing(&Records::volume_key(info.id)) {
            self.told.insert(info.id, info);
        } else {
            self.told.remove(&info.id);
        }
    }

    /// A volume is deleted: nothing is told of it any more.
    pub(super) fn forget_told(&mut self, volume: VolumeId) {
        self.told.remove(&volume);
    }

    /// A volume as a restart would not take it back.
    pub(super) fn shown<'a>(&'a self, info: &'a VolumeInfo) -> &'a VolumeInfo {
        self.told.get(&info.id).unwrap_or(info)
    }

    // ---- views ----

    /// The views in force.
    pub(super) fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.records.groups.values().filter_map(|group| group.active.as_ref())
    }

    pub(super) fn active(&self, group: GroupId) -> Option<&GroupView> {
        self.records.groups.get(&group)?.active.as_ref()
    }

    /// The view that is being made, or else the one in force. One that may be revoked is not sure to come: the one in
    /// force counts.
    pub(super) fn latest_view(&self, group: GroupId) -> Option<&GroupView> {
        let record = self.records.groups.get(&group)?;
        record.next.as_ref().filter(|_| !self.is_revocable(group)).or(record.active.as_ref())
    }

    /// Whether the view to come may be revoked: no member can have begun it.
    pub(super) fn is_revocable(&self, group: GroupId) -> bool {
        let next = self.records.groups.get(&group).and_then(|record| record.next.as_ref());
        next.is_some_and(|next| self.records.revocable.get(&group) == Some(&next.number))
    }

    /// Whether the view to come is this one, whatever its number.
    pub(super) fn is_under_way(&self, view: &GroupView) -> bool {
        let next = self.records.groups.get(&view.group).and_then(|record| record.next.as_ref());
        next.is_some_and(|next| *view == GroupView { number: view.number, ..next.clone() })
    }

    /// Of the volumes of a family: they all have the same.
    pub(super) fn geometry(&self, family: VolumeId) -> Option<Geometry> {
        let info = &self.records.volumes_of(family).next()?.info;
        let layout: Layout = info.layout.parse().ok()?;
        Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks).ok()
    }

    /// Whether a view to come moves a volume to another head: then all groups fence before any goes on.
    pub(super) fn moves_branches(&self, next: &GroupView) -> bool {
        let Some(active) = self.active(next.group) else { return false };
        let moves_a_head = active.lineage.heads.iter().any(|(volume, head)| {
            let moved = next.lineage.heads.iter().find(|(of, _)| of == volume);
            moved.is_some_and(|(_, to)| to != head)
        });
        self.rules.fences_family(moves_a_head)
    }

    // ---- bricks and volumes ----

    pub(super) fn draw_id(&mut self) -> VolumeId {
        self.records.counts.next_volume += 1;
        VolumeId(self.records.counts.next_volume - 1)
    }

    /// Something of the family changed: bricks are to learn of it.
    pub(super) fn touch_family(&mut self, family: VolumeId) -> Vec<Put> {
        let version = self.records.bump();
        self.records.families.change(&family, |record| record.changed = version);
        vec![self.records.put_family(family), self.records.put_counts()]
    }

    /// Whether all daemons that were heard serve volumes with this protocol as it promises. Of what came before they do not say.
    pub(super) fn may_have(&self, since: Version, what: impl fmt::Display) -> Result<(), AdminError> {
        if since < Version::TOLD {
            return Ok(());
        }
        match self.older_than(since) {
            None => Ok(()),
            Some(name) => Err(AdminError::NotNow(format!(
                "{name} is of a release that does not know {what}: upgrade all bricks and gateways first"
            ))),
        }
    }

    /// A daemon that was heard and does not speak this version.
    pub(super) fn older_than(&self, since: Version) -> Option<String> {
        // One that is to be emptied may never come again.
        let stays = |(brick, _): &(&BrickId, &Version)| self.takes_part(**brick);
        let bricks = self.bricks_speak.iter().filter(stays);
        let bricks = bricks.map(|(brick, speaks)| (brick.to_string(), *speaks));
        bricks.chain(self.gateways.speak()).find(|(_, speaks)| *speaks < since).map(|(name, _)| name)
    }

    /// Whether nothing is left of a family, and no restart brings it back.
    pub(super) fn is_gone(&self, family: VolumeId) -> bool {
        !self.records.families.contains_key(&family) && !self.store.is_changing(&Records::family_key(family))
    }

    /// Groups in which the brick has a place, in the view in force or in one to come.
    pub(super) fn groups_of(&self, brick: BrickId) -> impl Iterator<Item = GroupId> {
        self.records.groups.index().of_member(brick)
    }

    /// The name of a volume whose blocks a group has.
    pub(super) fn volume_on(&self, group: GroupId) -> &str {
        let family = self.records.groups.get(&group).map(|record| record.volume);
        let volume = family.and_then(|family| self.records.volumes_of(family).next());
        volume.map_or("", |volume| volume.info.name.as_str())
    }

    /// Removes all that is known of a brick that has no place in a group; the puts that make that durable.
    pub(super) fn forget_brick(&mut self, brick: BrickId) -> Vec<Put> {
        self.leases.forget(brick);
        self.runs.forget(brick);
        self.bricks_speak.remove(&brick);
        self.streams.forget_brick(brick);
        self.records.forget_brick(brick)
    }

    /// Whether the brick is one that is not to be emptied.
    fn takes_part(&self, brick: BrickId) -> bool {
        self.records.bricks.get(&brick).is_some_and(|record| !record.evicted)
    }

    /// The number of the brick's process that counts; zero if it has told none.
    pub(super) fn run_of(&self, brick: BrickId) -> u64 {
        self.records.runs.get(&brick).map_or(0, |record| record.number)
    }

    /// Whether the brick may get groups at all.
    pub(super) fn takes_groups(&self, brick: BrickId) -> bool {
        self.takes_part(brick) && !self.is_slow(brick)
    }

    /// How bricks look after their blocks.
    pub(super) fn care(&self) -> Care {
        self.records.care.over(self.config.care)
    }

    /// Whether the brick is left out for being slow, or is to be.
    pub(super) fn is_slow(&self, brick: BrickId) -> bool {
        self.records.slow.get(&brick).is_some_and(|record| record.is_out)
    }

    /// Whether the brick's disks lack what it promised, or may, and it is not entered yet as having lost that.
    pub(super) fn lags(&self, brick: BrickId) -> bool {
        self.records.runs.get(&brick).is_some_and(|run| run.is_behind || run.is_suspect)
    }

    /// Whether all that the brick's disks lost is entered. Before that no group begins there and no member becomes current: it would be taken for
    /// one that the brick lost.
    pub(super) fn knows_what_is_lost(&self, brick: BrickId) -> bool {
        !self.lags(brick) && !self.has_other_disks(brick)
    }

    /// The bricks that [lack](Self::lacks) something; usually none.
    pub(super) fn lacking(&self) -> BTreeSet<BrickId> {
        let bricks = self.records.bricks.iter();
        let lacking =
            bricks.filter(|(brick, record)| !record.lost.is_empty() || !self.knows_what_is_lost(**brick));
        lacking.map(|(brick, _)| *brick).collect()
    }

    /// Whether the brick has lost its blocks of the group, and a view that says otherwise has yet to be replaced: or lost some, and it is not
    /// entered yet which.
    pub(super) fn lacks(&self, brick: BrickId, group: GroupId) -> bool {
        !self.knows_what_is_lost(brick)
            || self.records.bricks.get(&brick).is_some_and(|record| record.lost.contains(&group))
    }

    /// Whether the brick came with other disks than it is known with, and it is not entered yet as having lost its blocks.
    fn has_other_disks(&self, brick: BrickId) -> bool {
        let disks = self.status(brick).map_or(&[][..], |status| &status.disks);
        let known = self.records.bricks.get(&brick).map_or(&[][..], |record| &record.disks);
        !disks.is_empty() && !known.is_empty() && disks != known || self.runs.waits_with_other_disks(brick)
    }

    /// What the brick said last.
    pub(super) fn status(&self, brick: BrickId) -> Option<&BrickStatus> {
        self.leases.get(brick).map(|lease| &lease.status)
    }

    /// Whether the store is older than what bricks know, or may be.
    pub(super) fn holds_still(&self, now: Time) -> bool {
        self.age.holds_still(now, &self.records.bricks)
    }

    /// Whether bricks were not heard yet that could know that the store is old.
    pub(super) fn listens(&self, now: Time) -> bool {
        self.age.listens(now, &self.records.bricks)
    }

    /// Behind how many bytes a page ends of what is told.
    pub(super) fn page_bytes(&self) -> usize {
        self.rules.page_bytes(self.config.page_bytes)
    }

    // ---- publishing ----

    pub(super) fn publish(&self, group: GroupId, to: Option<NodeId>, fx: &mut Vec<DirectoryEffect>) {
        let views: Vec<GroupView> = self.active(group).cloned().into_iter().collect();
        match to {
            _ if views.is_empty() => {}
            Some(to) => {
                let (volumes, deleted, bricks) = (Vec::new(), Vec::new(), self.addresses_in(&views));
                send(fx, to, Message::Published { views, volumes, deleted, bricks });
            }
            None => self.tell_gateways(views, Vec::new(), Vec::new(), fx),
        }
    }

    pub(super) fn publish_volume(&self, volume: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let volumes = self.records.volumes.get(&volume).map(|record| self.shown(&record.info).clone());
        let volumes = volumes.into_iter().collect();
        self.tell_gateways(Vec::new(), volumes, Vec::new(), fx);
    }

    /// A brick has another address: it is stored, and told to all.
    pub(super) fn move_brick(&mut self, brick: BrickId, fx: &mut Vec<DirectoryEffect>) {
        self.moved = self.records.bump();
        let puts = vec![self.records.put_brick(brick), self.records.put_counts()];
        self.put(puts, Vec::new(), fx);
        let (views, volumes, deleted) = (Vec::new(), Vec::new(), Vec::new());
        let bricks = self.address(brick).into_iter().collect();
        self.tell_all(&Message::Published { views, volumes, deleted, bricks }, fx);
    }

    pub(super) fn tell_gateways(
        &self,
        views: Vec<GroupView>,
        volumes: Vec<VolumeInfo>,
        deleted: Vec<VolumeId>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let bricks = self.addresses_in(&views);
        self.tell_all(&Message::Published { views, volumes, deleted, bricks }, fx);
    }

    fn tell_all(&self, message: &Message, fx: &mut Vec<DirectoryEffect>) {
        for gateway in self.gateways.ids() {
            send(fx, NodeId::Gateway(gateway), message.clone());
        }
    }

    fn address(&self, brick: BrickId) -> Option<(BrickId, String)> {
        let record = self.records.bricks.get(&brick).filter(|record| !record.address.is_empty())?;
        Some((brick, record.address.clone()))
    }

    pub(super) fn addresses(&self) -> Vec<(BrickId, String)> {
        self.records.bricks.keys().filter_map(|brick| self.address(*brick)).collect()
    }

    /// For a brick that knows the map as it was at version `known`: none where no address has changed since.
    pub(super) fn addresses_since(&self, known: u64) -> Vec<(BrickId, String)> {
        if known < self.moved { self.addresses() } else { Vec::new() }
    }

    /// The addresses of all members of these views.
    pub(super) fn addresses_in(&self, views: &[GroupView]) -> Vec<(BrickId, String)> {
        let members: BTreeSet<BrickId> = views.iter().flat_map(|view| view.members.iter().copied()).collect();
        members.into_iter().filter_map(|brick| self.address(brick)).collect()
    }
}

pub(super) fn answer(fx: &mut Vec<DirectoryEffect>, asker: Asker, result: Result<AdminReply, AdminError>) {
    send(fx, asker.node, Message::AdminDone { operation: asker.operation, result });
}
