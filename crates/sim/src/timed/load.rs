//! What is asked of a measured cluster: the clients, each a session at a gateway.

use super::cluster::WriteRelease;
use super::conditions::{Conditions, Incident, Window, Windows, Witness};
use super::grain::Grain;
use super::measured::Measured;
use super::measured::Meter;
use super::packets::Packets;
use super::record::{DiskAccess, RequestRecord, ServedBy};
use super::requests::{Answered, Requests, Sight};
use super::routes::{Routes, Spread};
use super::sharing::{Served, ServedByVolume};
use super::source::Source;
use super::workload::{Length, Shape, Workload};
use crate::checkers::Violation;
use crate::world::World;
use crate::world::event::{Event, Input};
use crate::world::hosts::Task;
use base::{BLOCK_U64, BrickId, HashMap, NodeId, Payload, Time, VolumeId};
use core::time::Duration;
use model::drive::SECTOR_BYTES;
use model::{Draw, PowerCut};
use rules::layout::Layout;
use std::collections::VecDeque;
use wire::{Io, IoError, IoReply, Packet};

/// Whoever waits so long waits for ever.
const STALLED: Duration = Duration::from_secs(60);

/// What happens to the load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoadEvent {
    /// The next request of an open workload comes.
    Arrival,
    /// So many slots of a closed loop are free in a group from the beginning.
    Slots { group: u32, count: u32 },
    /// From now on there are so many threads at a volume.
    Threads { group: u32, count: u32 },
    /// Something happens to the brick at this node.
    Incident { node: usize, incident: Incident },
    /// The gateway at this node is killed, with the clients in its process.
    GatewayKilled { node: usize },
    /// It has lasted long enough.
    End,
}

/// Where a group's requests go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// The gateway's node, or that of the client that is attached to one.
    pub(super) node: usize,
    pub(super) door: Door,
    /// How many bricks hold each block.
    pub(super) holders: u32,
}

/// How a client is connected with its gateway.
#[derive(Clone, Copy, Debug)]
pub(super) enum Door {
    /// By a session of the gateway's process.
    Session { session: u64, volume: Option<VolumeId> },
    /// Over the network, by an attach of its own.
    Attached { is_open: bool },
}

impl Port {
    fn is_open(&self) -> bool {
        match self.door {
            Door::Session { volume, .. } => volume.is_some(),
            Door::Attached { is_open } => is_open,
        }
    }

    /// A request, as its node takes it.
    fn input(&self, tag: u64, io: Io, payload: Payload) -> Input {
        match self.door {
            Door::Session { session, volume } => {
                let volume = volume.expect("the session is open");
                Input::SessionIo { session, tag, volume, io, payload }
            }
            Door::Attached { .. } => Input::ClientIo { tag, io, payload },
        }
    }
}

/// The sessions, and what bricks call their volumes.
#[derive(Default)]
struct Ports {
    /// Of each group, one at each gateway; of each machine of a client, where there are any.
    groups: Vec<Vec<Port>>,
    routes: Routes,
    /// Requests of each group so far, where its gateways take turns; empty where requests of all groups together do.
    turns: Vec<u64>,
    names: HashMap<VolumeId, u32>,
    /// The group whose volume is written to find its name out.
    named: Option<u32>,
}

/// What is asked for, and when.
struct Arrivals {
    source: Source,
    /// Sectors of each group's address space.
    sectors: u64,
    /// What a block of the protocol stands for.
    grain: Grain,
    /// Where the address space is, if it is not all of one volume's.
    spread: Option<(Spread, Layout)>,
    /// When the load begins: arrivals count from then.
    origin: Time,
    draw: Draw,
}

/// Requests that came and are not asked yet, where only so many may be outstanding.
struct Backlog {
    outstanding_max: usize,
    /// When each came, its group, and what it asks for.
    waiting: VecDeque<(Time, u32, Shape)>,
}

/// How far a run is.
struct Progress {
    length: Length,
    answered: u64,
    last_answer: Time,
    /// Whether no more arrive.
    has_ended: bool,
    is_over: bool,
    /// The warm-up ended just now.
    is_warm: bool,
    /// The first request that was refused, and why.
    refused: Option<String>,
}

/// What was seen.
struct Record {
    meter: Meter,
    packets: Packets,
    /// What bricks are called in the cluster, by their ids.
    bricks: Vec<usize>,
    /// Bytes of a message without content.
    message_bytes: u64,
    windows: Windows,
    served: ServedByVolume,
    /// Where checkers watch.
    witness: Option<Witness>,
}

pub(crate) struct Load {
    arrivals: Arrivals,
    backlog: Backlog,
    ports: Ports,
    requests: Requests,
    progress: Progress,
    record: Record,
}

impl Arrivals {
    /// Where in the volume that sector of the address space is.
    fn place(&self, sector: u64) -> u64 {
        self.spread.map_or(sector, |(spread, layout)| spread.place(layout, sector))
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        self.source.next_at().map(|after| Time(self.origin.0 + after.0).max(now))
    }

    /// The request of an arrival: its group, of so many, and what it asks for.
    fn take(&mut self, groups: u64) -> Option<(u32, Shape)> {
        self.source.take(groups, self.sectors, &mut self.draw)
    }

    /// What the next request of a closed loop asks for, and in which group.
    fn next_of_loop(&mut self, group: u32, groups: u64) -> Option<(u32, Shape)> {
        self.source.next_of_loop(group, groups, self.sectors)
    }
}

impl Load {
    pub(super) fn new(
        workload: Workload,
        length: Length,
        release: WriteRelease,
        (sectors, grain): (u64, Grain),
        message_bytes: u64,
        mut draw: Draw,
    ) -> Load {
        let source = Source::new(workload, &mut draw);
        Load {
            arrivals: Arrivals { source, sectors, grain, spread: None, origin: Time::ZERO, draw },
            backlog: Backlog { outstanding_max: usize::MAX, waiting: VecDeque::new() },
            ports: Ports::default(),
            requests: Requests::new(release, grain),
            progress: Progress {
                length,
                answered: 0,
                last_answer: Time::ZERO,
                has_ended: false,
                is_over: false,
                is_warm: false,
                refused: None,
            },
            record: Record {
                meter: Meter::new(Time::ZERO, false),
                packets: Packets::default(),
                bricks: Vec::new(),
                message_bytes,
                windows: Windows::new(Time::ZERO, Duration::ZERO),
                served: ServedByVolume::new(Time::ZERO, Duration::ZERO, 0),
                witness: None,
            },
        }
    }

    pub(super) fn add_ports(&mut self, ports: Vec<Port>) {
        self.ports.groups.push(ports);
    }

    /// Requests are for pieces of a volume with that layout.
    pub(super) fn spread_over(&mut self, spread: Spread, layout: Layout) {
        self.arrivals.spread = Some((spread, layout));
        self.arrivals.sectors = spread.sectors();
    }

    /// Which requests are one access of a disk. Bricks are those of the cluster, by their ids.
    pub(super) fn see(&mut self, sight: Sight, bricks: &[usize]) {
        self.requests.see(sight);
        self.record.bricks = bricks.to_vec();
    }

    /// How clients with machines of their own reach volumes.
    pub(super) fn routes(&mut self) -> &mut Routes {
        &mut self.ports.routes
    }

    /// From now on a group is asked through these gateways alone.
    pub(super) fn ask_through(&mut self, group: u32, gateways: &[u32]) {
        let ports = &mut self.ports.groups[group as usize];
        *ports = gateways.iter().map(|gateway| ports[*gateway as usize]).collect();
    }

    /// Whether every session has its volume.
    pub(super) fn is_open(&self) -> bool {
        self.ports.groups.iter().flatten().all(Port::is_open)
    }

    /// Whether it is known what bricks call the volume of each group.
    pub(super) fn has_names(&self) -> bool {
        self.ports.names.len() == self.ports.groups.len()
    }

    pub(super) fn is_over(&self) -> bool {
        self.progress.is_over
    }

    /// Whether the warm-up ended just now; said once.
    pub(super) fn take_warm(&mut self) -> bool {
        core::mem::take(&mut self.progress.is_warm)
    }

    /// How many requests were lost with their clients.
    pub(super) fn lost(&self) -> u64 {
        self.requests.lost()
    }

    pub(super) fn take_refused(&mut self) -> Option<String> {
        self.progress.refused.take()
    }

    /// The load's own time: the cluster's set-up is before it.
    fn since_begin(&self, now: Time) -> Time {
        Time(now.0 - self.arrivals.origin.0)
    }

    fn since_load_began(&self, record: RequestRecord) -> RequestRecord {
        let [asked, answered] = [record.asked, record.answered].map(|at| self.since_begin(at));
        let served_by = match record.served_by {
            ServedBy::Disk(access) => {
                let [begun, done] = [access.begun, access.done].map(|at| self.since_begin(at));
                ServedBy::Disk(DiskAccess { begun, done, ..access })
            }
            other => other,
        };
        RequestRecord { asked, answered, served_by, ..record }
    }

    /// Measures from `now` on.
    pub(super) fn measure_from(&mut self, now: Time) {
        self.record.meter = self.record.meter.anew(self.since_begin(now));
    }

    /// A packet is sent.
    pub(crate) fn on_packet(&mut self, ends: (NodeId, NodeId), packet: &Packet) {
        let content_bytes = self.arrivals.grain.on_disk(packet.payload.len() as u64);
        let Record { meter, packets, message_bytes, .. } = &mut self.record;
        packets.sent(ends, packet, content_bytes, *message_bytes, meter);
    }

    /// What each volume was served until now.
    pub(super) fn served(&self, now: Time) -> Vec<Vec<Served>> {
        self.record.served.until(now)
    }

    pub(super) fn windows(&self) -> Vec<Window> {
        self.record.windows.all()
    }

    /// What was measured until now, but for the bricks.
    pub(super) fn finish(self, scheme: &'static str, now: Time) -> Measured {
        let wrapped = self.arrivals.source.wrapped();
        let now = self.since_begin(now);
        let Progress { length, answered, .. } = &self.progress;
        // All of it was warm-up: nothing was measured.
        let meter = if *answered < length.warmup { self.record.meter.anew(now) } else { self.record.meter };
        Measured { wrapped, ..meter.finish(scheme, now) }
    }

    /// Why it does not go on, if nothing was answered for too long.
    pub(super) fn stalled(&self, now: Time) -> Option<String> {
        if now.since(self.progress.last_answer) <= STALLED {
            return None;
        }
        self.requests.describe().map(|open| format!("no request was answered for {STALLED:?}; {open}"))
    }

    /// Begins now, under these conditions: what is to happen first.
    pub(super) fn begin(&mut self, now: Time, conditions: &Conditions) -> Vec<(Time, LoadEvent)> {
        (self.arrivals.origin, self.progress.last_answer) = (now, now);
        self.record.meter = Meter::new(Time::ZERO, conditions.keeps_requests);
        self.record.windows = Windows::new(now, conditions.window);
        self.backlog.outstanding_max = conditions.outstanding_max.map_or(usize::MAX, |most| most as usize);
        self.record.witness = conditions.is_judged.then(|| Witness::new(conditions.protocol));
        let end = conditions.end.map(|after| (now + after, LoadEvent::End));
        if let Some(count) = self.arrivals.source.outstanding() {
            let slots = |group| (now, LoadEvent::Slots { group, count });
            return (0..self.ports.groups.len() as u32).map(slots).chain(end).collect();
        }
        if let Source::Threads(crews) = &self.arrivals.source {
            self.ports.turns = vec![0; crews.len()];
            self.record.served = ServedByVolume::new(now, conditions.window, crews.len());
            let step = |group, &(after, count)| (now + after, LoadEvent::Threads { group, count });
            let steps =
                (0..).zip(crews).flat_map(|(group, crew)| crew.count.iter().map(move |at| step(group, at)));
            return steps.chain(end).collect();
        }
        let are_copies = conditions.layout.is_none_or(|layout| layout.data() == 1);
        if matches!(self.arrivals.source, Source::Stream { .. })
            && are_copies
            && conditions.incidents.is_empty()
            && !conditions.are_blocks
        {
            self.requests.last_to_disks();
        }
        let first = self.arrivals.next(now).map(|at| (at, LoadEvent::Arrival));
        self.progress.has_ended = first.is_none();
        self.end_with_the_last();
        first.into_iter().chain(end).collect()
    }

    /// What a write brings.
    fn content(&mut self, tag: u64, length: u64) -> Payload {
        match (self.requests.seen(tag), &mut self.record.witness) {
            (Some(seen), Some(witness)) => witness.content(seen),
            _ => Payload::zeros(length as usize),
        }
    }

    /// A checker sees an answer.
    fn witness(&mut self, now: Time, tag: u64, content: &Payload) -> Result<(), Violation> {
        match (self.requests.seen(tag), &mut self.record.witness) {
            (Some(seen), Some(witness)) => witness.ended(seen, Some(now), content),
            _ => Ok(()),
        }
    }

    /// What the checkers say of all that clients saw; what is not answered yet may have taken effect.
    pub(super) fn judge(&mut self) -> Result<(), Violation> {
        let Some(mut witness) = self.record.witness.take() else { return Ok(()) };
        for seen in self.requests.unanswered() {
            witness.ended(seen, None, &Payload::new())?;
        }
        witness.judge()
    }

    /// A request is answered. The group in which a slot is free now.
    fn on_answer(&mut self, now: Time, tag: u64) -> Option<u32> {
        let Answered { record, free } = self.requests.on_answer(now, tag)?;
        // Several may come at the moment at which the last one is counted.
        if self.progress.is_over {
            return free;
        }
        let (response_ns, grain) = (record.response_ns(), self.arrivals.grain);
        let bytes = grain.blocks(record.count) * grain.block_bytes();
        self.record.windows.add(now, response_ns);
        self.record.served.add(now, record.group, (bytes, response_ns));
        self.record.meter.answered(self.since_load_began(record));
        let progress = &mut self.progress;
        (progress.last_answer, progress.answered) = (now, progress.answered + 1);
        let Length { warmup, requests } = progress.length;
        progress.is_warm = progress.answered == warmup;
        progress.is_over |= progress.answered >= warmup.saturating_add(requests);
        self.end_with_the_last();
        free
    }

    /// Clients that are part of this node are gone: nobody asks there any more, and what they had asked stays unanswered. The groups in which a slot
    /// is free with it.
    fn lose(&mut self, node: usize) -> Vec<u32> {
        for ports in &mut self.ports.groups {
            ports.retain(|port| port.node != node);
            assert!(!ports.is_empty(), "a gateway is left for each group");
        }
        let free = self.requests.lose(node);
        self.end_with_the_last();
        free
    }

    /// Nothing more arrives, and nothing is open: then the run is over.
    fn end_with_the_last(&mut self) {
        let is_idle = self.requests.are_over() && self.backlog.waiting.is_empty();
        self.progress.is_over |= self.progress.has_ended && is_idle;
    }

    /// A disk begins an access at a block of a volume.
    fn on_access(&mut self, (volume, block): (VolumeId, u64), is_write: bool, access: DiskAccess) {
        if let Some(&group) = self.ports.names.get(&volume) {
            self.requests.on_access((group, block, is_write), access);
        }
    }

    /// A disk has written a block of a volume. The group in which a slot is free now.
    fn on_written(&mut self, volume: VolumeId, block: u64) -> Option<u32> {
        let Ports { names, named, .. } = &mut self.ports;
        match names.get(&volume) {
            Some(&group) => {
                let free = self.requests.on_written(group, block);
                self.end_with_the_last();
                free
            }
            None => {
                names.extend(named.map(|group| (volume, group)));
                None
            }
        }
    }
}

impl World {
    /// Writes a block of a group's volume, to see what bricks call it. The answer counts for nothing.
    pub(super) fn write_to_name(&mut self, group: u32) {
        let load = self.load.as_mut().expect("it has a load");
        load.ports.named = Some(group);
        let port = load.ports.groups[group as usize][0];
        // It stays in the caches: where loads seldom begin or end.
        let middle = load.arrivals.sectors / load.arrivals.grain.block_sectors() / 2;
        let io = Io::Write { offset: middle * BLOCK_U64 };
        let payload = Payload::zeros(BLOCK_U64 as usize);
        self.deliver(port.node, port.input(0, io, payload));
    }

    pub(crate) fn on_load(&mut self, what: LoadEvent) {
        let now = Time(self.time.now_ns());
        match what {
            LoadEvent::Incident { node, incident } => match incident {
                Incident::Killed => self.crash(node, PowerCut::ProcessOnly),
                Incident::Started => self.boot(node),
                Incident::Stopped => self.pause(node),
                Incident::Continued => self.resume(node),
            },
            LoadEvent::GatewayKilled { node } => self.kill_gateway(node),
            LoadEvent::End => {
                let load = self.load.as_mut().expect("it has a load");
                load.progress.is_over = true;
            }
            LoadEvent::Threads { group, count } => {
                let load = self.load.as_mut().expect("it has a load");
                let Source::Threads(crews) = &mut load.arrivals.source else { return };
                let begin = crews[group as usize].set(count);
                (0..begin).for_each(|_| self.ask_next(group));
            }
            LoadEvent::Slots { group, count } => (0..count).for_each(|_| self.ask_next(group)),
            LoadEvent::Arrival => {
                let load = self.load.as_mut().expect("it has a load");
                if let Some((group, shape)) = load.arrivals.take(load.ports.groups.len() as u64) {
                    load.backlog.waiting.push_back((now, group, shape));
                }
                self.ask_waiting();
                let load = self.load.as_mut().expect("it has a load");
                match load.arrivals.next(now) {
                    Some(at) => self.time.at(at.0, Event::Load(LoadEvent::Arrival)),
                    None => {
                        load.progress.has_ended = true;
                        load.end_with_the_last();
                    }
                }
            }
        }
    }

    /// Attached clients that kept to the gateway go to any other; clients in its process die with it, and others ask in their place.
    fn kill_gateway(&mut self, node: usize) {
        self.crash(node, PowerCut::ProcessOnly);
        self.let_go_of(node);
        let load = self.load.as_mut().expect("it has a load");
        for group in load.lose(node) {
            self.ask_next(group);
            self.ask_waiting();
        }
    }

    /// Asks for what came, as far as it may.
    fn ask_waiting(&mut self) {
        let load = self.load.as_mut().expect("it has a load");
        if load.requests.outstanding() < load.backlog.outstanding_max
            && let Some((came, group, shape)) = load.backlog.waiting.pop_front()
        {
            self.ask_for(came, group, shape);
        }
    }

    /// A slot of a closed loop is free.
    fn ask_next(&mut self, group: u32) {
        let load = self.load.as_mut().expect("it has a load");
        let groups = load.ports.groups.len() as u64;
        if let Some((group, shape)) = load.arrivals.next_of_loop(group, groups) {
            let now = Time(self.time.now_ns());
            return self.ask_for(now, group, shape);
        }
        if matches!(load.arrivals.source, Source::Replayed { .. }) {
            load.progress.has_ended = true;
            load.end_with_the_last();
        }
    }

    /// A request that came at that moment goes out.
    fn ask_for(&mut self, came: Time, group: u32, shape: Shape) {
        let load = self.load.as_mut().expect("it has a load");
        let shape = load.arrivals.grain.fit(shape);
        let ports = &load.ports.groups[group as usize];
        let turn = load.ports.turns.get_mut(group as usize).map_or(load.requests.next_tag(), |turn| {
            *turn += 1;
            *turn
        });
        let grain = load.arrivals.grain;
        let sector = load.arrivals.place(shape.sector);
        let port = *load.ports.routes.port(ports, turn, sector / grain.block_sectors());
        let tag = load.requests.ask(came, (group, port), shape);
        let [offset, length] =
            [sector, u64::from(shape.count)].map(|sectors| grain.in_protocol(sectors * SECTOR_BYTES));
        let (io, payload) = if shape.is_write {
            (Io::Write { offset }, self.load.as_mut().expect("it has a load").content(tag, length))
        } else {
            (Io::Read { offset, length: length as u32 }, Payload::new())
        };
        let Port { node, .. } = port;
        let (life, input) = (self.nodes[node].life(), port.input(tag, io, payload));
        self.client_has(Task::Ask { node, life, input });
    }

    /// A client does what it has to do.
    pub(crate) fn carry_out(&mut self, task: Task) {
        match task {
            // Behind what happens now, so that nothing calls itself.
            Task::Ask { node, life, input } => {
                self.time.at(self.time.now_ns(), Event::Node { node, life, input });
            }
            Task::Answer { tag, result, payload } => self.on_load_reply(tag, result, &payload),
        }
    }

    pub(crate) fn on_load_opened(&mut self, session: u64, volume: Option<VolumeId>) {
        let load = self.load.as_mut().expect("it has a load");
        for port in load.ports.groups.iter_mut().flatten() {
            if let Door::Session { session: mine, volume: opened } = &mut port.door
                && *mine == session
            {
                *opened = volume;
            }
        }
    }

    /// A client has found its volume, or has not.
    pub(crate) fn on_load_attached(&mut self, node: usize, found: bool) {
        let load = self.load.as_mut().expect("it has a load");
        let mine = load.ports.groups.iter_mut().flatten().filter(|port| port.node == node);
        mine.for_each(|port| {
            if let Door::Attached { is_open } = &mut port.door {
                *is_open = found;
            }
        });
    }

    fn on_load_reply(&mut self, tag: u64, result: Result<IoReply, IoError>, content: &Payload) {
        let now = Time(self.time.now_ns());
        let load = self.load.as_mut().expect("it has a load");
        if let Err(error) = result {
            let progress = &mut load.progress;
            progress.refused.get_or_insert_with(|| format!("a request was answered with {error:?}"));
            progress.is_over = true;
            return;
        }
        let verdict = load.witness(now, tag, content);
        self.judge(verdict);
        let load = self.load.as_mut().expect("it has a load");
        if let Some(group) = load.on_answer(now, tag) {
            self.ask_next(group);
        }
        self.ask_waiting();
    }

    /// A disk begins an access at this byte, from then to then.
    pub(crate) fn on_shelf_access(&mut self, node: usize, offset: u64, is_write: bool, times: [Time; 2]) {
        let Some(load) = self.load.as_mut() else { return };
        let here = &self.nodes[node];
        let (Some(place), Some(BrickId(id))) = (here.shelf_place(offset), here.brick()) else { return };
        let Some(brick) = load.record.bricks.get(id as usize - 1) else { return };
        let (sector, waiting) = here.shelf_queue(offset);
        let [begun, done] = times;
        load.on_access(place, is_write, DiskAccess { brick: *brick as u32, sector, waiting, begun, done });
    }

    /// A disk has written what begins at this byte.
    pub(crate) fn on_shelf_written(&mut self, node: usize, offset: u64) {
        let Some((volume, block)) = self.nodes[node].shelf_place(offset) else { return };
        let Some(load) = self.load.as_mut() else { return };
        if let Some(group) = load.on_written(volume, block) {
            self.ask_next(group);
        }
    }
}
