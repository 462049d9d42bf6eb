//! The loop of a run: events in the order of time, and what the machines ask for.

use super::asker::Asker;
use super::brick::{BLOCK_SECTORS, Brick, Job, Serving};
use super::request::{Ref, Request, Requests};
use crate::queue::EventQueue;
use crate::shelf::cache::Lru;
use crate::timed::cluster::{BrickSpec, Cluster};
use crate::timed::measured::{Measured, Message, Meter};
use crate::timed::source::Source;
use crate::timed::workload::{Length, Workload};
use base::{BrickId, Depth, Machine, Time};
use core::time::Duration;
use model::Draw;
use model::drive::SECTOR_BYTES;
use proto::distribute::claim::{Attempt, Effect, Event, Holders, ReadId};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// The next open request comes.
    Arrival,
    /// A slot of a closed loop is free.
    Slot {
        group: u32,
    },
    /// A brick hears something; a claim comes with its bid.
    Heard {
        to: u32,
        from: u32,
        kind: Message,
        request: Ref,
        bid_ns: u64,
    },
    /// A client hears something.
    Told {
        from: u32,
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
    /// A disk's speed changes.
    Speed {
        brick: u32,
        percent: u32,
    },
    /// A read's policy is asked again, unless it is answered.
    Next {
        request: Ref,
    },
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) bricks: Vec<u32>,
    pub(super) holders: Holders,
    pub(super) candidates: Vec<(u8, BrickId)>,
    /// For each member, the holders when it alone is asked.
    pub(super) alone: Vec<Holders>,
    /// Where on each member's disk the group's data begin, in sectors.
    pub(super) offsets: Vec<u64>,
}

/// How far a run is.
pub(super) struct Progress {
    length: Length,
    /// Requests, those of the warm-up among them.
    answered: u64,
    is_over: bool,
}

impl Progress {
    /// A request more was answered. Whether the warm-up ends with it.
    pub(super) fn count_answer(&mut self) -> bool {
        self.answered += 1;
        self.is_over |= self.answered >= self.length.warmup.saturating_add(self.length.requests);
        self.answered == self.length.warmup
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

pub(super) struct Run<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) progress: Progress,
    pub(super) queue: EventQueue<Happening>,
    pub(super) bricks: Vec<Brick>,
    pub(super) groups: Vec<Group>,
    /// Sectors of each group's address space.
    pub(super) sectors: u64,
    pub(super) requests: Requests,
    pub(super) asker: Asker,
    /// The cache of the central ideal.
    pub(super) central_cache: Lru,
    pub(super) source: Source,
    pub(super) draw: Draw,
    pub(super) meter: Meter,
    pub(super) now: Time,
    events: u64,
    effects: Vec<Effect<Job>>,
    pending: VecDeque<(u32, Effect<Job>)>,
}

impl<'a> Run<'a> {
    pub(super) fn new(cluster: &'a Cluster, workload: Workload, length: Length, seed: u64) -> Run<'a> {
        let mut draw = Draw::new(seed);
        let (groups, sectors) = groups(cluster);
        let mut phases = draw.fork();
        let mut brick = |(id, spec): (usize, &BrickSpec)| {
            let turn_ns = spec.drive.revolution_ns().filter(|_| !cluster.synchronised).unwrap_or(1);
            Brick::new(id as u32, spec, cluster, phases.below(turn_ns))
        };
        let bricks = cluster.bricks.iter().enumerate().map(&mut brick).collect();
        let cache_bytes: u64 = cluster.bricks.iter().map(|brick| brick.cache_bytes).sum();
        let mut run = Run {
            cluster,
            progress: Progress { length, answered: 0, is_over: false },
            queue: EventQueue::new(),
            bricks,
            groups,
            sectors,
            requests: Requests::default(),
            asker: Asker::new(&cluster.scheme, &cluster.network),
            central_cache: Lru::new(cache_bytes / base::BLOCK_U64),
            source: Source::new(workload, &mut draw),
            draw,
            meter: Meter::new(Time::ZERO),
            now: Time::ZERO,
            events: 0,
            effects: Vec::new(),
            pending: VecDeque::new(),
        };
        run.schedule_speeds();
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
        self.finish()
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Arrival => self.on_arrival(),
            Happening::Slot { group } => self.on_slot(group),
            Happening::Heard { to, from, kind, request, bid_ns } => {
                self.on_heard(to, from, kind, request, bid_ns)
            }
            Happening::Told { from, request } => self.on_told(from, request),
            Happening::Done { brick, place } => self.on_done(brick, place),
            Happening::Wake { brick } => self.on_wake(brick),
            Happening::Speed { brick, percent } => {
                self.bricks[brick as usize].claims.device_mut().set_percent(self.now, percent);
            }
            Happening::Next { request } => self.on_next(request),
        }
    }

    fn on_heard(&mut self, to: u32, from: u32, kind: Message, request: Ref, bid_ns: u64) {
        match kind {
            Message::Read | Message::Forward => self.on_read(to, request),
            Message::Claim => {
                let event = Event::Claim { attempt: attempt(request), bid_ns, brick: BrickId(from) };
                self.step(to, event);
            }
            Message::Cancel => self.step(to, Event::Cancel { read: attempt(request).read }),
            Message::Write => self.on_write(to, request, true),
            Message::WriteForward => self.on_write(to, request, false),
            Message::Journaled => self.on_journaled(to, request),
            _ => unreachable!("bricks are not told what clients are"),
        }
    }

    fn on_wake(&mut self, brick: u32) {
        let at = &mut self.bricks[brick as usize];
        if at.wake != Some(self.now) {
            return;
        }
        at.wake = None;
        at.claims.wake(self.now, &mut self.effects);
        self.carry_out(brick);
    }

    fn on_done(&mut self, brick: u32, place: u32) {
        let at = &mut self.bricks[brick as usize];
        let served = at.serving[place as usize].take().expect("the disk was at it");
        at.done(self.now, &served);
        at.claims.step(self.now, Event::Done, &mut self.effects);
        if served.job.access.is_write {
            self.on_destaged(brick, &served.job);
        } else {
            self.on_fetched(brick, &served);
        }
        self.settle(brick);
    }

    /// Gives a brick's machine an event, and does what it asks for.
    pub(super) fn step(&mut self, brick: u32, event: Event<Job>) {
        self.bricks[brick as usize].claims.step(self.now, event, &mut self.effects);
        self.settle(brick);
    }

    pub(super) fn settle(&mut self, brick: u32) {
        self.bricks[brick as usize].claims.settle(self.now, &mut self.effects);
        self.carry_out(brick);
    }

    fn carry_out(&mut self, brick: u32) {
        self.pending.extend(self.effects.drain(..).map(|effect| (brick, effect)));
        while let Some((brick, effect)) = self.pending.pop_front() {
            match effect {
                Effect::Claim { attempt, bid_ns, holders } => self.claim(brick, attempt, bid_ns, &holders),
                Effect::Issue { item } => self.issue(brick, item),
                Effect::Drop { .. } => {}
            }
        }
        self.schedule_wake(brick);
    }

    fn schedule_wake(&mut self, brick: u32) {
        let at = &mut self.bricks[brick as usize];
        let Some((due, _)) = at.claims.deadline() else { return };
        if at.wake.is_none_or(|wake| due < wake) {
            at.wake = Some(due);
            self.queue.push(due, Happening::Wake { brick });
        }
    }

    fn issue(&mut self, brick: u32, job: Job) {
        let at = &mut self.bricks[brick as usize];
        let place =
            at.serving.iter().position(Option::is_none).expect("the machine knows how many the disk takes");
        let (free, depth) = at.claims.device_mut().serve(self.now, job.access);
        at.serving[place] = Some(Serving { job, since: self.now, depth });
        self.queue.push(free, Happening::Done { brick, place: place as u32 });
        if at.claims.device().is_seen() {
            at.claims.step(self.now, Event::Busy { free }, &mut self.effects);
        }
        at.claims.settle(self.now, &mut self.effects);
        self.pending.extend(self.effects.drain(..).map(|effect| (brick, effect)));
    }

    /// Tells the other holders of a claim. The central ideal knows at once.
    fn claim(&mut self, brick: u32, attempt: Attempt, bid_ns: u64, holders: &Holders) {
        let request = Ref::from_number(attempt.read.sequence);
        if let Some(known) = self.requests.get_mut(request) {
            self.meter.contention.conflicts += u64::from(known.claims > 0);
            self.meter.contention.contested += u64::from(known.claims == 1);
            known.claims = known.claims.saturating_add(1);
        }
        for &BrickId(to) in holders.iter().filter(|to| to.0 != brick) {
            if self.asker.is_central() {
                let event = Event::Claim { attempt, bid_ns, brick: BrickId(brick) };
                self.bricks[to as usize].claims.step(self.now, event, &mut self.effects);
                self.effects.clear();
            } else {
                self.send_claim(brick, to, request, bid_ns);
            }
        }
    }

    fn send_claim(&mut self, from: u32, to: u32, request: Ref, bid_ns: u64) {
        let arrival = self.sent(Some(from), Message::Claim, 0, self.cluster.network.one_way_ns);
        if !self.draw.chance(self.cluster.network.claims_lost_ppm) {
            let heard = Happening::Heard { to, from, kind: Message::Claim, request, bid_ns };
            self.queue.push(arrival, heard);
        }
    }

    /// Sends a message from a brick, or from a client, to a brick.
    pub(super) fn send(&mut self, from: Option<u32>, to: u32, kind: Message, request: Ref) {
        let network = &self.cluster.network;
        let way_ns = if from.is_some() { network.one_way_ns } else { network.client_one_way_ns };
        let arrival = self.sent(from, kind, self.data_bytes(kind, request), way_ns);
        let from = from.unwrap_or(u32::MAX);
        self.queue.push(arrival, Happening::Heard { to, from, kind, request, bid_ns: 0 });
    }

    /// Sends a message from a brick to a client.
    pub(super) fn tell(&mut self, from: u32, kind: Message, request: Ref) {
        let way_ns = self.cluster.network.client_one_way_ns;
        let arrival = self.sent(Some(from), kind, self.data_bytes(kind, request), way_ns);
        self.queue.push(arrival, Happening::Told { from, request });
    }

    fn data_bytes(&self, kind: Message, request: Ref) -> u64 {
        let sectors =
            self.requests.get(request).filter(|_| kind.carries_data()).map_or(0, |known| known.count);
        u64::from(sectors) * SECTOR_BYTES
    }

    /// Counts a message, and returns when it arrives.
    fn sent(&mut self, from: Option<u32>, kind: Message, data_bytes: u64, way_ns: u64) -> Time {
        let network = &self.cluster.network;
        let bytes = network.message_bytes + data_bytes;
        self.meter.sent(kind, bytes);
        let mut gone = self.now;
        if let (Some(from), Some(per_second)) = (from, network.bytes_per_second) {
            let card_free = &mut self.bricks[from as usize].card_free;
            gone = gone.max(*card_free) + Duration::from_nanos(bytes * 1_000_000_000 / per_second.max(1));
            *card_free = gone;
        }
        gone + Duration::from_nanos(way_ns)
    }

    pub(super) fn at(&mut self, at: Time, what: Happening) {
        self.queue.push(at, what);
    }

    /// A request, which is not over.
    pub(super) fn known(&self, request: Ref) -> Option<Request> {
        self.requests.get(request).copied()
    }

    pub(super) fn warmed_up(&mut self) {
        self.meter = Meter::new(self.now);
        self.bricks.iter_mut().for_each(|brick| brick.forget(self.now));
    }

    fn schedule_speeds(&mut self) {
        for (brick, spec) in self.cluster.bricks.iter().enumerate() {
            for &(at, percent) in &spec.speed {
                self.queue.push(at, Happening::Speed { brick: brick as u32, percent });
            }
        }
    }

    fn finish(self) -> Measured {
        self.bricks.iter().for_each(|brick| brick.claims.check(Depth::Deep));
        let mut measured = self.meter.finish(self.cluster.scheme.name(), self.now);
        measured.events = self.events;
        measured.wrapped = self.source.wrapped();
        let (now, seconds) = (self.now, measured.seconds);
        measured.bricks = self.bricks.iter().map(|brick| brick.measured(now, seconds)).collect();
        let claimed = self.bricks.iter().map(Brick::claimed);
        let add = |all: (u64, u64), one: (u64, u64)| (all.0 + one.0, all.1 + one.1);
        (measured.contention.claims, measured.contention.overtaken) = claimed.fold((0, 0), add);
        measured.moves = self.asker.moves();
        measured
    }
}

/// How the machines at bricks name a request.
pub(super) fn attempt(request: Ref) -> Attempt {
    Attempt { read: ReadId { asker: 0, sequence: request.number() }, number: 0 }
}

/// The groups, and the sectors that each of them has on each of its bricks: whole blocks, so that what is aligned stays
/// so on every disk, and where a trace wraps around.
fn groups(cluster: &Cluster) -> (Vec<Group>, u64) {
    let groups = &cluster.groups.0;
    let of_brick = |brick: u32| groups.iter().filter(|group| group.contains(&brick)).count() as u64;
    let counts: Vec<u64> = (0..cluster.bricks.len() as u32).map(of_brick).collect();
    let share = |(spec, &count): (&BrickSpec, &u64)| spec.drive.capacity_sectors() / count.max(1);
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
            candidates: bricks
                .iter()
                .enumerate()
                .map(|(slot, &brick)| (slot as u8, BrickId(brick)))
                .collect(),
            alone: bricks.iter().map(|&brick| Holders::from([BrickId(brick)])).collect(),
            bricks: bricks.clone(),
        }
    });
    (built.collect(), sectors)
}
