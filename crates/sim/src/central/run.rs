//! The loop of a run: what clients ask for, events in the order of time, and what disks choose.

use super::disk::{Disk, Job};
use super::requests::{BLOCK_SECTORS, Ref, Request, Requests};
use crate::queue::EventQueue;
use crate::shelf::cache::Lru;
use crate::timed::cluster::{BrickSpec, Cluster, Scheme};
use crate::timed::measured::{Measured, Meter};
use crate::timed::source::Source;
use crate::timed::workload::{Length, Shape, Workload};
use crate::timed::{DiskAccess, RequestRecord, ServedBy};
use base::{BLOCK_U64, BrickId, Machine, Mechanics, SECTOR_BYTES, Time};
use core::time::Duration;
use model::Draw;
use model::drive::Access;
use reads::distribute::claim::{Attempt, Effect, Event, Holders, ReadId};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The next open request comes.
    Arrival,
    /// A slot of a closed loop is free.
    Slot {
        group: u32,
    },
    /// The brick that a client asks hears of its read.
    Read {
        request: Ref,
    },
    /// The first brick hears of a write, and tells the others.
    Write {
        request: Ref,
    },
    /// One of the others hears of it.
    WriteForward {
        brick: u32,
        request: Ref,
    },
    /// The first brick hears that one more journal holds a write.
    Journaled {
        request: Ref,
    },
    /// A client hears of its request.
    Told {
        request: Ref,
    },
    /// An access of a disk is done.
    Done {
        brick: u32,
        place: u32,
    },
    Wake {
        brick: u32,
    },
}

/// Bricks with the same data.
#[derive(Debug)]
struct Group {
    bricks: Vec<u32>,
    holders: Holders,
    /// Where on each brick's disk the group's data begin, in sectors.
    offsets: Vec<u64>,
}

/// How far a run is.
struct Progress {
    length: Length,
    /// Requests, those of the warm-up among them.
    answered: u64,
    /// Whether no more of what is replayed is left to ask.
    has_ended: bool,
    is_over: bool,
}

pub(super) struct Run<'a> {
    cluster: &'a Cluster,
    progress: Progress,
    queue: EventQueue<Happening>,
    disks: Vec<Disk>,
    groups: Vec<Group>,
    /// Sectors of each group's address space.
    sectors: u64,
    requests: Requests,
    /// As large as the caches of all bricks together.
    cache: Lru,
    source: Source,
    draw: Draw,
    meter: Meter,
    now: Time,
    events: u64,
    effects: Vec<Effect<Job>>,
    pending: VecDeque<(u32, Effect<Job>)>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        workload: Workload,
        length: Length,
        keeps_requests: bool,
        seed: u64,
    ) -> Run<'a> {
        let mut draw = Draw::new(seed);
        let (groups, sectors) = groups(cluster);
        let mut phases = draw.fork();
        let mut disk = |(id, spec): (usize, &BrickSpec)| {
            let turn_ns = spec.drive.revolution_ns().filter(|_| !cluster.synchronised).unwrap_or(1);
            Disk::new(id as u32, spec, phases.below(turn_ns))
        };
        let disks = cluster.bricks.iter().enumerate().map(&mut disk).collect();
        let cache_bytes: u64 = cluster.bricks.iter().map(|brick| brick.cache_bytes).sum();
        let mut run = Run {
            cluster,
            progress: Progress { length, answered: 0, has_ended: false, is_over: false },
            queue: EventQueue::new(),
            disks,
            groups,
            sectors,
            requests: Requests::default(),
            cache: Lru::new(cache_bytes / BLOCK_U64),
            source: Source::new(workload, &mut draw),
            draw,
            meter: Meter::new(Time::ZERO, keeps_requests),
            now: Time::ZERO,
            events: 0,
            effects: Vec::new(),
            pending: VecDeque::new(),
        };
        run.begin_clients();
        run
    }

    pub(super) fn run(mut self) -> Measured {
        while !self.progress.is_over
            && let Some((now, what)) = self.queue.pop()
        {
            self.now = now;
            self.events += 1;
            self.happen(what);
        }
        // All of it was warm-up: nothing was measured.
        let Progress { length, answered, .. } = self.progress;
        let meter = if answered < length.warmup { self.meter.anew(self.now) } else { self.meter };
        let mut measured = meter.finish(Scheme::Central.name(), self.now);
        measured.events = self.events;
        measured.wrapped = self.source.wrapped();
        let (now, seconds) = (self.now, measured.seconds);
        measured.bricks = self.disks.iter().map(|disk| disk.measured(now, seconds)).collect();
        measured
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Arrival => self.on_arrival(),
            Happening::Slot { group } => self.on_slot(group),
            Happening::Read { request } => self.on_read(request),
            Happening::Write { request } => self.on_write(request),
            Happening::WriteForward { brick, request } => self.journal(brick, request),
            Happening::Journaled { request } => self.on_journaled(request),
            Happening::Told { request } => self.on_told(request),
            Happening::Done { brick, place } => self.on_done(brick, place),
            Happening::Wake { brick } => self.on_wake(brick),
        }
    }

    // ---- clients ----

    fn begin_clients(&mut self) {
        if let Some(outstanding) = self.source.outstanding() {
            for group in 0..self.groups.len() as u32 {
                (0..outstanding).for_each(|_| self.queue.push(Time::ZERO, Happening::Slot { group }));
            }
        } else {
            self.schedule_arrival();
        }
    }

    fn schedule_arrival(&mut self) {
        match self.source.next_at() {
            Some(at) => self.queue.push(at.max(self.now), Happening::Arrival),
            None => self.note_end(),
        }
    }

    fn on_arrival(&mut self) {
        let (groups, sectors) = (self.groups.len() as u64, self.sectors);
        if let Some((group, shape)) = self.source.take(groups, sectors, &mut self.draw) {
            self.ask(group, shape);
            self.schedule_arrival();
        }
    }

    fn on_slot(&mut self, group: u32) {
        if let Some((group, shape)) = self.source.next_of_loop(group, self.groups.len() as u64, self.sectors)
        {
            return self.ask(group, shape);
        }
        self.progress.has_ended |= matches!(self.source, Source::Replayed { .. });
        self.note_end();
    }

    /// A client asks any one of the bricks.
    fn ask(&mut self, group: u32, shape: Shape) {
        let bricks = &self.groups[group as usize].bricks;
        let brick = bricks[self.draw.index(bricks.len())];
        let request = self.requests.insert(Request {
            born: self.now,
            group,
            sector: shape.sector,
            count: shape.count,
            is_write: shape.is_write,
            is_answered: false,
            is_released: false,
            brick,
            journaled: 0,
            written: 0,
            access: None,
        });
        let heard = if shape.is_write { Happening::Write { request } } else { Happening::Read { request } };
        self.queue.push(self.now + self.client_way(), heard);
    }

    /// A client hears: the data, or that a write is safe.
    fn on_told(&mut self, request: Ref) {
        let Some(known) = self.requests.get_mut(request).filter(|known| !known.is_answered) else { return };
        known.is_answered = true;
        let known = *known;
        let Request { born, group, sector, count, is_write, access, .. } = known;
        let served_by = access.map_or(ServedBy::Memory, ServedBy::Disk);
        let (asked, answered) = (born, self.now);
        self.meter.answered(RequestRecord { asked, answered, group, sector, count, is_write, served_by });
        if known.is_write {
            self.release_written(request);
        } else {
            self.requests.remove(request);
            self.on_slot(known.group);
        }
        self.count_answer();
    }

    fn count_answer(&mut self) {
        let Length { warmup, requests } = self.progress.length;
        self.progress.answered += 1;
        self.progress.is_over |= self.progress.answered >= warmup.saturating_add(requests);
        if self.progress.answered == warmup {
            self.meter = self.meter.anew(self.now);
            self.disks.iter_mut().for_each(|disk| disk.forget(self.now));
        }
        self.note_end();
    }

    /// A stream is over when its last request is.
    fn note_end(&mut self) {
        let has_ended = self.progress.has_ended || matches!(self.source, Source::Stream { next: None, .. });
        self.progress.is_over |= has_ended && self.requests.is_empty();
    }

    // ---- ways ----

    fn client_way(&self) -> Duration {
        Duration::from_nanos(self.cluster.network.client_one_way_ns)
    }

    /// When a message with so many sectors, sent by a brick, has left its card.
    fn gone(&mut self, from: u32, sectors: u32) -> Time {
        let network = &self.cluster.network;
        let bytes = network.message_bytes + u64::from(sectors) * SECTOR_BYTES;
        self.disks[from as usize].send(self.now, bytes, network.bytes_per_second)
    }

    fn tell_client(&mut self, from: u32, request: Ref, sectors: u32) {
        let at = self.gone(from, sectors) + self.client_way();
        self.queue.push(at, Happening::Told { request });
    }

    fn tell_brick(&mut self, from: u32, sectors: u32, heard: Happening) {
        let at = self.gone(from, sectors) + Duration::from_nanos(self.cluster.network.one_way_ns);
        self.queue.push(at, heard);
    }

    // ---- reads ----

    /// The read goes into the queue of each disk, and the idle disk that is nearest is given it first.
    fn on_read(&mut self, request: Ref) {
        let Some(known) = self.requests.get(request) else { return };
        if self.is_cached(&known) {
            self.disks[known.brick as usize].hit();
            return self.tell_client(known.brick, request, known.count);
        }
        let mut nearest: Option<(u64, u32)> = None;
        let group = known.group as usize;
        for member in 0..self.groups[group].bricks.len() {
            let Group { bricks, holders, offsets } = &self.groups[group];
            let (brick, sector) = (bricks[member], offsets[member] + known.sector);
            let access = Access { sector, count: known.count, is_write: false };
            let (item, holders) = (Job { request, access }, holders.clone());
            let data = (u64::from(known.group) << 40) | (known.sector / BLOCK_SECTORS);
            let claims = &mut self.disks[brick as usize].claims;
            if claims.serving() == 0 {
                let position = claims.device().position_of(sector, false);
                let this = (claims.device().positioning_ns(self.now, &position), brick);
                nearest = Some(nearest.map_or(this, |other| other.min(this)));
            }
            let event = Event::Read { attempt: attempt(request), data, sector, holders, item };
            // It only waits: nothing follows before the disk is settled.
            claims.step(self.now, event, &mut Vec::new());
        }
        if let Some((_, brick)) = nearest {
            self.settle(brick);
        }
        for member in 0..self.groups[group].bricks.len() {
            self.settle(self.groups[group].bricks[member]);
        }
    }

    fn is_cached(&mut self, known: &Request) -> bool {
        let is_hit = !self.cache.is_off() && known.blocks().all(|block| self.cache.holds(block));
        if is_hit {
            self.remember(known);
        }
        is_hit
    }

    fn remember(&mut self, known: &Request) {
        if !self.cache.is_off() {
            known.blocks().for_each(|block| self.cache.touch(block));
        }
    }

    // ---- writes ----

    fn on_write(&mut self, request: Ref) {
        let Some(known) = self.requests.get(request) else { return };
        for member in 0..self.groups[known.group as usize].bricks.len() {
            let brick = self.groups[known.group as usize].bricks[member];
            if brick != known.brick {
                self.tell_brick(known.brick, known.count, Happening::WriteForward { brick, request });
            }
        }
        self.journal(known.brick, request);
    }

    fn journal(&mut self, brick: u32, request: Ref) {
        let Some(known) = self.requests.get(request) else { return };
        let disk = &mut self.disks[brick as usize];
        if disk.blocked.is_empty() && disk.journal(known.count) {
            self.journaled(brick, request);
        } else {
            disk.blocked.push_back(request);
        }
    }

    /// The write is safe here: it is in memory, waits for the disk, and the first brick is told.
    fn journaled(&mut self, brick: u32, request: Ref) {
        let Some(known) = self.requests.get(request) else { return };
        let group = &self.groups[known.group as usize];
        let member = group.bricks.iter().position(|other| *other == brick).unwrap_or(0);
        let sector = group.offsets[member] + known.sector;
        let item = Job { request, access: Access { sector, count: known.count, is_write: true } };
        self.remember(&known);
        let event = Event::Local { sector, is_write: true, item };
        self.disks[brick as usize].claims.step(self.now, event, &mut self.effects);
        self.settle(brick);
        if !self.disks[brick as usize].writes_through {
            self.tell_first(brick, request);
        }
    }

    /// The first brick hears that this one has a write.
    fn tell_first(&mut self, brick: u32, request: Ref) {
        let Some(known) = self.requests.get(request) else { return };
        if brick == known.brick {
            self.on_journaled(request);
        } else {
            self.tell_brick(brick, 0, Happening::Journaled { request });
        }
    }

    fn on_journaled(&mut self, request: Ref) {
        let Some(known) = self.requests.get_mut(request) else { return };
        known.journaled += 1;
        let known = *known;
        if known.journaled as usize == self.groups[known.group as usize].bricks.len() {
            self.tell_client(known.brick, request, 0);
        }
    }

    /// A disk has written: the journal has room again.
    fn on_written(&mut self, brick: u32, request: Ref, access: DiskAccess) {
        let writes_through = self.disks[brick as usize].writes_through;
        if let Some(known) = self.requests.get_mut(request) {
            known.written += 1;
            if writes_through {
                known.access = Some(access);
                self.tell_first(brick, request);
            }
            self.release_written(request);
        }
        while let Some(&next) = self.disks[brick as usize].blocked.front() {
            let count = self.requests.get(next).map_or(1, |known| known.count);
            if !self.disks[brick as usize].journal(count) {
                return;
            }
            self.disks[brick as usize].blocked.pop_front();
            self.journaled(brick, next);
        }
    }

    /// Frees the slot of a write when it is acknowledged and on as many disks as is asked for; forgets it when it is on all.
    fn release_written(&mut self, request: Ref) {
        let Some(known) = self.requests.get_mut(request).filter(|known| known.is_answered) else { return };
        let holders = self.groups[known.group as usize].bricks.len();
        let is_enough = known.written >= self.cluster.write_release.needed(holders);
        let is_due = is_enough && !known.is_released;
        known.is_released = is_enough;
        let (group, is_forgotten) = (known.group, known.written as usize == holders);
        if is_forgotten {
            self.requests.remove(request);
            self.note_end();
        }
        if is_due {
            self.on_slot(group);
        }
    }

    // ---- disks ----

    fn on_wake(&mut self, brick: u32) {
        let at = &mut self.disks[brick as usize];
        if at.wake != Some(self.now) {
            return;
        }
        at.wake = None;
        at.claims.wake(self.now, &mut self.effects);
        self.carry_out(brick);
    }

    fn on_done(&mut self, brick: u32, place: u32) {
        let served = self.disks[brick as usize].end(self.now, place);
        self.disks[brick as usize].claims.step(self.now, Event::Done, &mut self.effects);
        let (request, sector) = (served.job.request, served.job.access.sector);
        let access =
            DiskAccess { brick, sector, waiting: Some(served.waiting), begun: served.since, done: self.now };
        if served.job.access.is_write {
            self.on_written(brick, request, access);
        } else if let Some(known) = self.requests.get_mut(request) {
            known.access = Some(access);
            let known = *known;
            self.remember(&known);
            self.tell_client(brick, request, known.count);
        }
        self.settle(brick);
    }

    fn settle(&mut self, brick: u32) {
        self.disks[brick as usize].claims.settle(self.now, &mut self.effects);
        self.carry_out(brick);
    }

    fn carry_out(&mut self, brick: u32) {
        self.pending.extend(self.effects.drain(..).map(|effect| (brick, effect)));
        while let Some((brick, effect)) = self.pending.pop_front() {
            match effect {
                Effect::Claim { attempt, bid_ns, holders } => self.take(brick, attempt, bid_ns, &holders),
                Effect::Issue { item } => self.issue(brick, item),
                Effect::Drop { .. } => {}
            }
        }
        self.schedule_wake(brick);
    }

    fn schedule_wake(&mut self, brick: u32) {
        let at = &mut self.disks[brick as usize];
        let Some((due, _)) = at.claims.deadline() else { return };
        if at.wake.is_none_or(|wake| due < wake) {
            at.wake = Some(due);
            self.queue.push(due, Happening::Wake { brick });
        }
    }

    fn issue(&mut self, brick: u32, job: Job) {
        let disk = &mut self.disks[brick as usize];
        let (place, free) = disk.begin(self.now, job);
        self.queue.push(free, Happening::Done { brick, place });
        disk.claims.step(self.now, Event::Busy { free }, &mut self.effects);
        disk.claims.settle(self.now, &mut self.effects);
        self.pending.extend(self.effects.drain(..).map(|effect| (brick, effect)));
    }

    /// A disk takes a read: the others know at once.
    fn take(&mut self, brick: u32, attempt: Attempt, bid_ns: u64, holders: &Holders) {
        for &BrickId(to) in holders.iter().filter(|to| to.0 != brick) {
            let event = Event::Claim { attempt, bid_ns, brick: BrickId(brick) };
            self.disks[to as usize].claims.step(self.now, event, &mut self.effects);
            self.effects.clear();
        }
    }
}

/// How disks name a request.
fn attempt(request: Ref) -> Attempt {
    Attempt { read: ReadId { asker: 0, sequence: request.number() }, number: 0 }
}

/// The groups, and the sectors that each of them has on each of its bricks: whole blocks, so that what is aligned stays
/// so on every disk, and where a trace wraps around.
fn groups(cluster: &Cluster) -> (Vec<Group>, u64) {
    let groups = &cluster.groups.0;
    let of_brick = |brick: u32| groups.iter().filter(|group| group.contains(&brick)).count() as u64;
    let counts: Vec<u64> = (0..cluster.bricks.len() as u32).map(of_brick).collect();
    let share = |(spec, &count): (&BrickSpec, &u64)| spec.data_sectors() / count.max(1);
    let sectors = cluster.bricks.iter().zip(&counts).map(share).min().unwrap_or(1);
    let sectors = (sectors / BLOCK_SECTORS * BLOCK_SECTORS).max(1);
    let mut used = vec![0u64; cluster.bricks.len()];
    let built = groups.iter().map(|bricks| {
        let mut next = |brick: u32| {
            used[brick as usize] += sectors;
            used[brick as usize] - sectors
        };
        Group {
            offsets: bricks.iter().map(|&brick| next(brick)).collect(),
            holders: bricks.iter().map(|&brick| BrickId(brick)).collect(),
            bricks: bricks.clone(),
        }
    });
    (built.collect(), sectors)
}
