//! A gateway and the directory: it registers, opens volumes, learns of views.
//!
//! All that the directory says is repeated on asking, so nothing here is lost for long with a message; and I/O on open
//! volumes needs no directory while their views last.

use super::users::{User, Users};
use super::{GatewayConfig, GatewayEffect, Serves, send};
use base::{ClusterTime, Loan, NodeId, StampClock, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use rules::layout::{Geometry, Layout};
use std::collections::BTreeMap;
use volume::netraid::coordinator::Coordinator;
use wire::{AdminError, AdminReply, AdminRequest, DataPath, Message, Version, VolumeInfo, VolumeMap};

const ASK_AGAIN: Duration = Duration::from_millis(300);
const REFRESH: Duration = Duration::from_secs(2);
const VIEWS_AGAIN: Duration = Duration::from_millis(50);
/// Between two questions for the time: a stamp that no honest gateway drew makes each write that meets it ask.
const TIME_AGAIN: Duration = Duration::from_millis(50);

/// Who wants a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    Session(u64),
    Client { node: NodeId, operation: u64 },
}

/// A volume that is open here.
#[derive(Debug)]
pub(super) struct OpenVolume {
    pub(super) info: VolumeInfo,
    pub(super) geometry: Geometry,
    pub(super) groups: Vec<base::GroupId>,
}

pub(super) struct Metadata {
    config: GatewayConfig,
    /// The number of its stamps, once the directory gave it one.
    held: Option<u16>,
    next: Time,
    registered: Time,
    views_asked: Time,
    serial: u64,
    opening: BTreeMap<String, Vec<Waiter>>,
    questions: BTreeMap<u64, String>,
    /// Sessions that wait for the list of all volumes, under which number its next page is asked for, and what came of it.
    listing: Vec<u64>,
    list_asked: u64,
    listed: Vec<VolumeInfo>,
    pub(super) users: Users,
    pub(super) volumes: BTreeMap<VolumeId, OpenVolume>,
}

impl Metadata {
    pub(super) fn new(config: GatewayConfig, now: Time) -> Metadata {
        Metadata {
            config,
            held: None,
            next: now,
            registered: Time::ZERO,
            views_asked: Time::ZERO,
            serial: 0,
            opening: BTreeMap::new(),
            questions: BTreeMap::new(),
            listing: Vec::new(),
            list_asked: 0,
            listed: Vec::new(),
            users: Users::default(),
            volumes: BTreeMap::new(),
        }
    }

    pub(super) fn deadline(&self) -> (Time, &'static str) {
        (self.next, "the directory is asked again")
    }

    pub(super) fn ask_now(&mut self, now: Time) {
        self.next = now;
    }

    /// A client wants a volume.
    pub(super) fn open(&mut self, now: Time, waiter: Waiter, name: String, fx: &mut Vec<GatewayEffect>) {
        let known = self.volumes.values().find(|open| open.info.name == name);
        // Without a number for its stamps the gateway serves nobody.
        if let Some(open) = known.filter(|_| self.held.is_some()) {
            let served = self.may_serve(waiter, open.info.clone());
            return self.answer(waiter, served, fx);
        }
        let waiting = self.opening.entry(name.clone()).or_default();
        waiting.push(waiter);
        if waiting.len() == 1 {
            self.ask_for(name, fx);
            self.next = self.next.min(now + ASK_AGAIN);
        }
    }

    /// A client wants to know all volumes.
    pub(super) fn list(&mut self, session: u64, now: Time, fx: &mut Vec<GatewayEffect>) {
        self.listing.push(session);
        self.ask_for_list(fx);
        self.next = self.next.min(now + ASK_AGAIN);
    }

    fn ask_for(&mut self, name: String, fx: &mut Vec<GatewayEffect>) {
        self.serial += 1;
        self.questions.insert(self.serial, name.clone());
        send(fx, NodeId::Directory, Message::OpenVolume { operation: self.serial, name });
    }

    fn ask_for_list(&mut self, fx: &mut Vec<GatewayEffect>) {
        self.serial += 1;
        self.list_asked = self.serial;
        let request = AdminRequest::ListVolumes { from: Some(self.list_from()) };
        send(fx, NodeId::Directory, Message::Admin { operation: self.serial, request });
    }

    /// With which volume the next page of the list begins.
    fn list_from(&self) -> VolumeId {
        self.listed.last().map_or(VolumeId(0), |last| VolumeId(last.id.0 + 1))
    }

    /// A page of the list of all volumes, or why there is none.
    fn on_listed(&mut self, result: Result<Vec<VolumeInfo>, AdminError>, fx: &mut Vec<GatewayEffect>) {
        let volumes = match result {
            Ok(page) => {
                let from = self.list_from();
                // Directories of earlier releases have no pages: they answer with all, whatever is asked.
                let is_all = page.first().is_none_or(|first| first.id < from);
                if !is_all {
                    self.listed.extend(page);
                    return self.ask_for_list(fx);
                }
                Ok(core::mem::take(&mut self.listed))
            }
            Err(error) => Err(error),
        };
        self.listed.clear();
        for session in core::mem::take(&mut self.listing) {
            fx.push(GatewayEffect::Listed { session, volumes: volumes.clone() });
        }
    }

    /// Asks for the views that turned out to be old, a few times a second at most.
    pub(super) fn ask_for_views(&mut self, coordinator: &mut Coordinator, fx: &mut Vec<GatewayEffect>) {
        if !coordinator.views().has_stale() || coordinator.now() < self.views_asked + VIEWS_AGAIN {
            return;
        }
        self.views_asked = coordinator.now();
        for group in coordinator.take_stale() {
            send(fx, NodeId::Directory, Message::GetView { group });
        }
    }

    /// Registers again where a write met a stamp that is far ahead of the time as it is known here: the answer tells the time.
    pub(super) fn ask_for_time(&mut self, coordinator: &mut Coordinator, fx: &mut Vec<GatewayEffect>) {
        let now = coordinator.now();
        if coordinator.takes_behind() && now >= self.registered + TIME_AGAIN {
            self.register(now, coordinator.time(), fx);
        }
    }

    /// Tells the directory how long members take beside each other, while there are writes.
    pub(super) fn report(&mut self, coordinator: &mut Coordinator, fx: &mut Vec<GatewayEffect>) {
        if let Some(members) = coordinator.take_report() {
            coordinator.count(Counter::MembersTimesToldToTheDirectory);
            send(fx, NodeId::Directory, Message::Observed { members });
        }
    }

    /// `time` is what time of the cluster this gateway believes it is.
    pub(super) fn wake(&mut self, now: Time, time: ClusterTime, fx: &mut Vec<GatewayEffect>) {
        if now < self.next {
            return;
        }
        self.register(now, time, fx);
        self.questions.clear();
        for name in self.opening.keys().cloned().collect::<Vec<_>>() {
            self.ask_for(name, fx);
        }
        for name in self.volumes.values().map(|open| open.info.name.clone()).collect::<Vec<_>>() {
            self.ask_for(name, fx);
        }
        if !self.listing.is_empty() {
            self.ask_for_list(fx);
        }
        let has_number = self.held.is_some() || self.config.serves == Serves::Nobody;
        let idle = has_number && self.opening.is_empty() && self.listing.is_empty();
        self.next = now + if idle { REFRESH } else { ASK_AGAIN };
    }

    fn register(&mut self, now: Time, time: ClusterTime, fx: &mut Vec<GatewayEffect>) {
        self.registered = now;
        let GatewayConfig { id: gateway, name, address, beside, serves } = self.config.clone();
        let writers = if serves == Serves::Nobody { 0 } else { 1 };
        let (held, opened, speaks, sent) = (self.held, self.users.counts(), Version::CURRENT, now);
        send(
            fx,
            NodeId::Directory,
            Message::Register { gateway, address, speaks, writers, held, beside, time, sent, name, opened },
        );
    }

    /// A volume is no more. Its family's views stay while another volume of the family is open: they are the same.
    fn forget(&mut self, coordinator: &mut Coordinator, volume: VolumeId) {
        let Some(gone) = self.volumes.remove(&volume) else { return };
        coordinator.forget(volume);
        let family = gone.info.family;
        if !self.volumes.values().any(|open| open.info.family == family) {
            coordinator.forget_family(family);
        }
    }

    fn on_opened(
        &mut self,
        coordinator: &mut Coordinator,
        operation: u64,
        map: Result<Box<VolumeMap>, AdminError>,
        fx: &mut Vec<GatewayEffect>,
    ) {
        let Some(name) = self.questions.remove(&operation) else { return };
        let result = map.and_then(|map| self.take_in(coordinator, *map, fx));
        // Without a number for its stamps the gateway cannot serve yet; the waiters are answered on the next round.
        if result.is_ok() && self.held.is_none() {
            return;
        }
        for waiter in self.opening.remove(&name).unwrap_or_default() {
            let served = result.clone().and_then(|volume| self.may_serve(waiter, volume));
            self.answer(waiter, served, fx);
        }
    }

    /// The volume, unless its data path leaves `waiter` to another coordinator than this one.
    fn may_serve(&self, waiter: Waiter, volume: VolumeInfo) -> Result<VolumeInfo, AdminError> {
        match (volume.protocol.path, waiter) {
            (DataPath::Direct, Waiter::Client { .. }) => Err(left_to_its_client(&volume)),
            (DataPath::Direct, Waiter::Session(_)) => Ok(volume),
            // Whichever gateway is asked: what stands beside the right brick is the shorter way, and no other one.
            (DataPath::Gateway | DataPath::Coordinator | DataPath::Amongst, _) => Ok(volume),
        }
    }

    fn answer(
        &mut self,
        waiter: Waiter,
        volume: Result<VolumeInfo, AdminError>,
        fx: &mut Vec<GatewayEffect>,
    ) {
        let user = match waiter {
            Waiter::Session(session) => User::Session(session),
            Waiter::Client { node, .. } => User::Client(node),
        };
        if let Ok(volume) = &volume {
            self.users.opened(user, volume.id);
        }
        match waiter {
            Waiter::Session(session) => fx.push(GatewayEffect::Opened { session, volume }),
            Waiter::Client { node, operation } => send(fx, node, Message::Attached { operation, volume }),
        }
    }

    fn take_in(
        &mut self,
        coordinator: &mut Coordinator,
        map: VolumeMap,
        fx: &mut Vec<GatewayEffect>,
    ) -> Result<VolumeInfo, AdminError> {
        if self.config.serves == Serves::Anyone && map.volume.protocol.path == DataPath::Direct {
            return Err(left_to_its_client(&map.volume));
        }
        let invalid = |why: String| AdminError::Invalid(format!("volume '{}': {why}", map.volume.name));
        let layout: Layout = map.volume.layout.parse().map_err(|error| invalid(format!("{error}")))?;
        let geometry = Geometry::new(layout, map.volume.stripe_unit_blocks, map.volume.column_blocks)
            .map_err(|error| invalid(error.to_string()))?;
        let fits = |view: &wire::GroupView| {
            view.members.len() == usize::from(layout.width()) && view.volume == map.volume.family
        };
        if map.groups.is_empty() || !map.groups.iter().all(fits) {
            return Err(invalid("its groups do not fit its layout and family".to_owned()));
        }
        learn_addresses(map.bricks, fx);
        coordinator.open_family(map.volume.family, geometry);
        let groups = map.groups.iter().map(|view| view.group).collect();
        coordinator.serve(&map.volume);
        coordinator.stream_lies_on(map.volume.stream, map.stream_bricks);
        coordinator.on_views(map.groups);
        let open = OpenVolume { info: map.volume.clone(), geometry, groups };
        let before = self.volumes.insert(map.volume.id, open);
        if before.is_some_and(|before| before.info != map.volume) {
            fx.push(GatewayEffect::Changed { volume: map.volume.clone() });
        }
        Ok(map.volume)
    }
}

impl super::Gateway {
    pub(super) fn on_directory(&mut self, message: Message, fx: &mut Vec<GatewayEffect>) {
        let (metadata, coordinator) = (&mut self.metadata, &mut self.coordinator);
        match message {
            Message::IndexDone { .. } | Message::Bricks { .. } => {
                self.objects.on_directory(coordinator.now(), message, fx);
            }
            Message::Registered { first_writer, time, loan } if first_writer < StampClock::WRITERS => {
                let is_new = metadata.held.replace(first_writer) != Some(first_writer);
                let loan = loan.unwrap_or(Loan::UNBOUNDED);
                coordinator.lend(time_of(coordinator.now(), time), first_writer, loan);
                if is_new {
                    metadata.next = coordinator.now();
                }
            }
            Message::Registered { time, .. } if time.is_valid() => coordinator.hear_time(time),
            Message::VolumeOpened { operation, map } => {
                if let Some(name) = metadata.questions.get(&operation) {
                    // The name may be that of another volume now, or of none.
                    let now = map.as_ref().ok().map(|map| map.volume.id);
                    let gone = !matches!(map, Err(ref error) if !matches!(error, AdminError::NoVolume(_)));
                    let stale = metadata.volumes.values().filter(|open| open.info.name == *name && gone);
                    let stale: Vec<VolumeId> =
                        stale.map(|open| open.info.id).filter(|id| Some(*id) != now).collect();
                    stale.into_iter().for_each(|volume| metadata.forget(coordinator, volume));
                }
                metadata.on_opened(coordinator, operation, map, fx);
                self.requests.keep_time(metadata);
            }
            Message::Published { views, volumes, deleted, bricks } => {
                learn_addresses(bricks, fx);
                deleted.into_iter().for_each(|volume| metadata.forget(coordinator, volume));
                for info in volumes {
                    if let Some(open) = metadata.volumes.get_mut(&info.id) {
                        open.info = info.clone();
                        coordinator.serve(&info);
                        fx.push(GatewayEffect::Changed { volume: info });
                    }
                }
                coordinator.on_views(views);
                self.requests.keep_time(metadata);
            }
            Message::AdminDone { operation, result } if operation == metadata.list_asked => match result {
                Ok(AdminReply::Volumes(volumes)) => metadata.on_listed(Ok(volumes), fx),
                Ok(_) => {}
                Err(error) => metadata.on_listed(Err(error), fx),
            },
            _ => {}
        }
    }
}

/// A directory of before there was a time of the cluster tells none: then stamps go on from those of its gateways.
fn time_of(now: Time, told: ClusterTime) -> ClusterTime {
    if told.is_valid() { told } else { ClusterTime::of_earlier_builds(now) }
}

fn left_to_its_client(volume: &VolumeInfo) -> AdminError {
    AdminError::Invalid(format!(
        "volume '{}' has the data path 'direct', on which its client coordinates by itself: use `brickwork attach --direct`",
        volume.name
    ))
}

fn learn_addresses(bricks: Vec<(base::BrickId, String)>, fx: &mut Vec<GatewayEffect>) {
    fx.extend(
        bricks
            .into_iter()
            .map(|(brick, address)| GatewayEffect::Address { node: NodeId::Brick(brick), address }),
    );
}
