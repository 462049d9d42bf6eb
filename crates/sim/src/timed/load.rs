//! What is asked of a measured cluster: the clients, each a session at a gateway.

use super::conditions::{Incident, Seen, Windows, Witness};
use crate::checkers::Violation;
use crate::perf::measured::Meter;
use crate::perf::source::Source;
use crate::perf::workload::{Length, Shape, Workload};
use crate::perf::{Measured, WriteRelease};
use crate::world::World;
use crate::world::event::{Event, Input};
use base::{BLOCK_U64, HashMap, Payload, Time, VolumeId};
use core::time::Duration;
use model::drive::SECTOR_BYTES;
use model::{Draw, PowerCut};
use std::collections::VecDeque;
use wire::{Io, IoError, IoReply};

/// Whoever waits so long waits for ever.
const STALLED: Duration = Duration::from_secs(60);

/// What happens to the load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoadEvent {
    /// The next request of an open workload comes.
    Arrival,
    /// So many slots of a closed loop are free in a group from the beginning.
    Slots { group: u32, count: u32 },
    /// Something happens to the brick at this node.
    Incident { node: usize, incident: Incident },
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Asked {
    born: Time,
    group: u32,
    /// The blocks in the group's volume: the first, and how many.
    block: u64,
    blocks: u64,
    is_write: bool,
    is_answered: bool,
    is_released: bool,
    /// Disks that have what was written.
    written: u32,
}

/// Where a group's requests go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// The gateway's node.
    pub(super) node: usize,
    pub(super) session: u64,
    pub(super) volume: Option<VolumeId>,
    /// How many bricks hold each block.
    pub(super) holders: u32,
}

pub(crate) struct Load {
    source: Source,
    release: WriteRelease,
    ports: Vec<Port>,
    /// Sectors of each group's address space.
    sectors: u64,
    /// What bricks call the volume of a group.
    names: HashMap<VolumeId, u32>,
    /// The group whose volume is written to find that out.
    named: Option<u32>,
    asked: HashMap<u64, Asked>,
    unanswered: u64,
    /// Whether no more arrive.
    has_ended: bool,
    /// Writes that are not on all disks yet, by group and block, in the order in which they were asked.
    writing: HashMap<(u32, u64), VecDeque<u64>>,
    last_tag: u64,
    length: Length,
    answered: u64,
    draw: Draw,
    pub(super) meter: Meter,
    /// When it begins: arrivals count from then.
    origin: Time,
    last_answer: Time,
    pub(super) windows: Windows,
    /// Where checkers watch.
    pub(super) witness: Option<Witness>,
    pub(super) is_over: bool,
    /// The warm-up ended just now.
    pub(super) is_warm: bool,
    /// The first request that was refused, and why.
    pub(super) refused: Option<String>,
}

impl Load {
    pub(super) fn new(
        workload: Workload,
        length: Length,
        release: WriteRelease,
        sectors: u64,
        mut draw: Draw,
    ) -> Load {
        Load {
            source: Source::new(workload, &mut draw),
            release,
            ports: Vec::new(),
            sectors,
            names: HashMap::default(),
            named: None,
            asked: HashMap::default(),
            unanswered: 0,
            has_ended: false,
            writing: HashMap::default(),
            last_tag: 0,
            length,
            answered: 0,
            draw,
            meter: Meter::new(Time::ZERO),
            origin: Time::ZERO,
            last_answer: Time::ZERO,
            windows: Windows::new(Time::ZERO, Duration::ZERO),
            witness: None,
            is_over: false,
            is_warm: false,
            refused: None,
        }
    }

    pub(super) fn add_port(&mut self, port: Port) {
        self.ports.push(port);
    }

    /// Whether every session has its volume.
    pub(super) fn is_open(&self) -> bool {
        self.ports.iter().all(|port| port.volume.is_some())
    }

    /// Whether it is known what bricks call the volume of each group.
    pub(super) fn has_names(&self) -> bool {
        self.names.len() == self.ports.len()
    }

    pub(super) fn wrapped(&self) -> f64 {
        self.source.wrapped()
    }

    /// What was measured until now, but for the bricks.
    pub(super) fn finish(self, scheme: &'static str, now: Time) -> Measured {
        self.meter.finish(scheme, now)
    }

    /// Why it does not go on, if nothing was answered for too long.
    pub(super) fn stalled(&self, now: Time) -> Option<String> {
        let oldest = (now.since(self.last_answer) > STALLED)
            .then(|| self.asked.iter().min_by_key(|(tag, _)| **tag))??;
        Some(format!(
            "no request was answered for {STALLED:?}; {} are open, the oldest is {:?}",
            self.asked.len(),
            oldest.1
        ))
    }

    /// What to begin with.
    pub(super) fn first_events(&mut self, now: Time) -> Vec<(Time, LoadEvent)> {
        (self.origin, self.last_answer) = (now, now);
        self.meter = Meter::new(now);
        if let Source::Closed { outstanding, .. } = &self.source {
            let slots = |group| (now, LoadEvent::Slots { group, count: *outstanding });
            return (0..self.ports.len() as u32).map(slots).collect();
        }
        self.next_arrival(now).into_iter().map(|at| (at, LoadEvent::Arrival)).collect()
    }

    fn next_arrival(&mut self, now: Time) -> Option<Time> {
        match &mut self.source {
            Source::Closed { .. } => None,
            Source::Open { moments, .. } => Some(moments.next()),
            Source::Stream { records, next, .. } => {
                *next = records.next();
                next.map(|record| record.at)
            }
        }
        .map(|at| Time(self.origin.0 + at.0).max(now))
    }

    /// The request of an arrival: its group, and what it asks for.
    fn arrival(&mut self) -> Option<(u32, Shape)> {
        let groups = self.ports.len() as u64;
        let sectors = self.sectors;
        match &mut self.source {
            Source::Closed { .. } => None,
            Source::Open { drawn, .. } => Some((self.draw.below(groups) as u32, drawn.next(sectors))),
            Source::Stream { next, told, .. } => {
                next.as_ref().map(|record| told.place(record, groups, sectors))
            }
        }
    }

    /// What the next request of a closed loop asks for.
    fn next_of_loop(&mut self) -> Option<Shape> {
        match &mut self.source {
            Source::Closed { drawn, .. } => Some(drawn.next(self.sectors)),
            Source::Open { .. } | Source::Stream { .. } => None,
        }
    }

    /// Takes a request up: its tag, and where it goes.
    fn ask(&mut self, now: Time, group: u32, shape: Shape) -> (Port, u64) {
        self.last_tag += 1;
        let block = shape.sector * SECTOR_BYTES / BLOCK_U64;
        let blocks = (u64::from(shape.count) * SECTOR_BYTES).div_ceil(BLOCK_U64);
        let is_write = shape.is_write;
        let (is_answered, is_released) = (false, false);
        let asked = Asked { born: now, group, block, blocks, is_write, is_answered, is_released, written: 0 };
        self.asked.insert(self.last_tag, asked);
        self.unanswered += 1;
        if is_write && self.release != WriteRelease::Nvram {
            self.writing.entry((group, block)).or_default().push_back(self.last_tag);
        }
        (self.ports[group as usize], self.last_tag)
    }

    /// A request as checkers see it.
    fn seen(&self, tag: u64) -> Option<Seen> {
        let Asked { born, group, block, blocks, is_write, .. } = *self.asked.get(&tag)?;
        Some(Seen { tag, group, block, blocks, is_write, born })
    }

    /// What a write brings.
    fn content(&mut self, tag: u64, length: u64) -> Payload {
        match (self.seen(tag), &mut self.witness) {
            (Some(seen), Some(witness)) => witness.content(seen),
            _ => Payload::zeros(length as usize),
        }
    }

    /// A checker sees an answer.
    fn witness(&mut self, now: Time, tag: u64, content: &Payload) -> Result<(), Violation> {
        match (self.seen(tag), &mut self.witness) {
            (Some(seen), Some(witness)) => witness.ended(seen, Some(now), content),
            _ => Ok(()),
        }
    }

    /// What the checkers say of all that clients saw; what is not answered yet may have taken effect.
    pub(super) fn judge(&mut self) -> Result<(), Violation> {
        let Some(mut witness) = self.witness.take() else { return Ok(()) };
        let mut open: Vec<u64> =
            self.asked.iter().filter(|(_, asked)| !asked.is_answered).map(|(tag, _)| *tag).collect();
        open.sort_unstable();
        for seen in open.into_iter().filter_map(|tag| self.seen(tag)) {
            witness.ended(seen, None, &Payload::new())?;
        }
        witness.judge()
    }

    /// A request is answered. The group in which a slot is free now.
    fn on_answer(&mut self, now: Time, tag: u64) -> Option<u32> {
        let asked = self.asked.get_mut(&tag)?;
        asked.is_answered = true;
        self.last_answer = now;
        self.unanswered -= 1;
        self.meter.answered(now, asked.is_write, now.0 - asked.born.0);
        self.windows.add(now, now.0 - asked.born.0);
        self.answered += 1;
        self.is_warm = self.answered == self.length.warmup;
        self.is_over |= self.answered >= self.length.warmup.saturating_add(self.length.requests);
        self.is_over |= self.has_ended && self.unanswered == 0;
        if asked.is_write && self.release != WriteRelease::Nvram {
            return self.release_written(tag);
        }
        let group = asked.group;
        self.asked.remove(&tag);
        Some(group)
    }

    /// A disk has written a block of a volume. The group in which a slot is free now.
    fn on_written(&mut self, volume: VolumeId, block: u64) -> Option<u32> {
        let Some(&group) = self.names.get(&volume) else {
            self.names.extend(self.named.map(|group| (volume, group)));
            return None;
        };
        let tag = *self.writing.get(&(group, block))?.front()?;
        self.asked.get_mut(&tag)?.written += 1;
        self.release_written(tag)
    }

    /// Frees the slot of a write when it is acknowledged and on as many disks as is asked for; forgets it when it is on all.
    fn release_written(&mut self, tag: u64) -> Option<u32> {
        let asked = self.asked.get_mut(&tag).filter(|asked| asked.is_answered)?;
        let holders = self.ports[asked.group as usize].holders;
        let is_enough = asked.written >= self.release.needed(holders as usize);
        let is_due = is_enough && !asked.is_released;
        asked.is_released = is_enough;
        let (group, block) = (asked.group, asked.block);
        if asked.written >= holders {
            self.asked.remove(&tag);
            if let Some(queue) = self.writing.get_mut(&(group, block)) {
                queue.retain(|other| *other != tag);
                if queue.is_empty() {
                    self.writing.remove(&(group, block));
                }
            }
        }
        is_due.then_some(group)
    }
}

impl World {
    /// Writes a block of a group's volume, to see what bricks call it. The answer counts for nothing.
    pub(super) fn write_to_name(&mut self, group: u32) {
        let load = self.load.as_mut().expect("it has a load");
        load.named = Some(group);
        let Port { node, session, volume, .. } = load.ports[group as usize];
        let (volume, io) = (volume.expect("the session is open"), Io::Write { offset: 0 });
        let payload = Payload::zeros(BLOCK_U64 as usize);
        self.deliver(node, Input::SessionIo { session, tag: 0, volume, io, payload });
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
            LoadEvent::Slots { group, count } => (0..count).for_each(|_| self.ask_next(group)),
            LoadEvent::Arrival => {
                let load = self.load.as_mut().expect("it has a load");
                if let Some((group, shape)) = load.arrival() {
                    self.ask_for(group, shape);
                }
                let load = self.load.as_mut().expect("it has a load");
                match load.next_arrival(now) {
                    Some(at) => self.time.at(at.0, Event::Load(LoadEvent::Arrival)),
                    None => {
                        load.has_ended = true;
                        load.is_over |= load.unanswered == 0;
                    }
                }
            }
        }
    }

    /// A slot of a closed loop is free.
    fn ask_next(&mut self, group: u32) {
        let load = self.load.as_mut().expect("it has a load");
        if let Some(shape) = load.next_of_loop() {
            self.ask_for(group, shape);
        }
    }

    fn ask_for(&mut self, group: u32, shape: Shape) {
        let now = Time(self.time.now_ns());
        let load = self.load.as_mut().expect("it has a load");
        let (Port { node, session, volume, .. }, tag) = load.ask(now, group, shape);
        let volume = volume.expect("the session is open");
        let (offset, length) = (shape.sector * SECTOR_BYTES, u64::from(shape.count) * SECTOR_BYTES);
        let (io, payload) = if shape.is_write {
            (Io::Write { offset }, self.load.as_mut().expect("it has a load").content(tag, length))
        } else {
            (Io::Read { offset, length: length as u32 }, Payload::new())
        };
        let life = self.nodes[node].life();
        // Behind what happens now, so that nothing calls itself.
        let input = Input::SessionIo { session, tag, volume, io, payload };
        self.time.at(now.0, Event::Node { node, life, input });
    }

    pub(crate) fn on_load_opened(&mut self, session: u64, volume: Option<VolumeId>) {
        let load = self.load.as_mut().expect("it has a load");
        let ports = load.ports.iter_mut().filter(|port| port.session == session);
        ports.for_each(|port| port.volume = volume);
    }

    pub(crate) fn on_load_reply(&mut self, tag: u64, result: Result<IoReply, IoError>, content: &Payload) {
        let now = Time(self.time.now_ns());
        let load = self.load.as_mut().expect("it has a load");
        if let Err(error) = result {
            load.refused.get_or_insert_with(|| format!("a request was answered with {error:?}"));
            load.is_over = true;
            return;
        }
        let verdict = load.witness(now, tag, content);
        self.judge(verdict);
        let load = self.load.as_mut().expect("it has a load");
        if let Some(group) = load.on_answer(now, tag) {
            self.ask_next(group);
        }
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
