//! What bricks do with reads.

use super::brick::{Brick, Job, Serving, blocks};
use super::client::key;
use super::request::{Bound, Ref, Request};
use super::run::{Run, attempt};
use crate::timed::cluster::Scheme;
use crate::timed::measured::Message;
use base::{BrickId, Mechanics};
use model::drive::Access;
use proto::distribute::claim::{Event, Holders};
use proto::distribute::hash;
use proto::distribute::policy::{First, Plan};

/// A read at one of the bricks that were told of it.
#[derive(Clone, Copy)]
struct At {
    brick: u32,
    member: u8,
}

impl Run<'_> {
    pub(super) fn on_read(&mut self, brick: u32, request: Ref) {
        let Some(known) = self.known(request) else { return };
        let bricks = &self.groups[known.group as usize].bricks;
        let member = bricks.iter().position(|other| *other == brick).unwrap_or(0) as u8;
        let at = At { brick, member };
        if self.asker.is_central() {
            return self.on_central_read(brick, request, &known);
        }
        match known.bound {
            Bound::Undecided => self.on_undecided_read(at, request, &known),
            Bound::Contest => self.on_shared_read(at, false, request, &known),
            Bound::Alone => self.serve_alone(at, request, &known),
            Bound::Tied => {
                let holders = self.tied_holders(&known);
                self.serve_read(at, request, &known, holders);
            }
        }
    }

    /// The policy is consulted at this brick, which is the only one that knows of the read yet; where the read has one
    /// home that is another brick, it is passed on.
    fn on_undecided_read(&mut self, at: At, request: Ref, known: &Request) {
        let holders = &self.groups[known.group as usize].candidates;
        let Some(Plan { first, .. }) = self.asker.plan(self.now, known, holders) else { return };
        let home = match first {
            First::Contest { .. } => {
                self.bind(request, Bound::Contest);
                return self.on_shared_read(at, true, request, known);
            }
            First::One(home) => home,
            First::Tied { .. } => unreachable!("reads are tied by clients"),
        };
        self.bind(request, Bound::Alone);
        self.note_asked(request, 0, home);
        if home == at.member {
            return self.serve_alone(at, request, known);
        }
        let to = self.groups[known.group as usize].bricks[usize::from(home)];
        self.send(Some(at.brick), to, Message::Forward, request);
    }

    /// D-SPTF, section 3: a hit is answered, and claimed when others know of the read; a miss waits at all holders.
    /// `is_only`: nobody else knows of the read yet.
    fn on_shared_read(&mut self, at: At, is_only: bool, request: Ref, known: &Request) {
        let holders = self.groups[known.group as usize].holders.clone();
        if self.is_hit(at.brick, known) {
            if !is_only {
                self.step(at.brick, Event::Hit { attempt: attempt(request), holders });
            }
            return self.tell(at.brick, Message::Data, request);
        }
        if is_only {
            for member in 0..holders.len() {
                if member != usize::from(at.member) {
                    self.send(Some(at.brick), holders[member].0, Message::Forward, request);
                }
            }
        }
        self.enqueue(at, request, known, holders);
    }

    /// The ideal knows all queues: the read goes into each, and the idle disk that is nearest is given it first.
    fn on_central_read(&mut self, brick: u32, request: Ref, known: &Request) {
        if is_cached(&mut self.central_cache, known) {
            self.bricks[brick as usize].account.hits += 1;
            return self.tell(brick, Message::Data, request);
        }
        let (now, group) = (self.now, known.group as usize);
        let mut nearest: Option<(u64, u32)> = None;
        for member in 0..self.groups[group].bricks.len() {
            let (brick, event) = self.read_event(group, member, request, known);
            let mut nothing = Vec::new();
            let claims = &mut self.bricks[brick as usize].claims;
            if claims.serving() == 0 {
                let Event::Read { sector, .. } = &event else { unreachable!("a read was made") };
                let positioning_ns =
                    claims.device().positioning_ns(now, &claims.device().position_of(*sector, false));
                nearest =
                    Some(nearest.map_or((positioning_ns, brick), |other| other.min((positioning_ns, brick))));
            }
            base::Machine::step(claims, now, event, &mut nothing);
        }
        if let Some((_, brick)) = nearest {
            self.settle(brick);
        }
        for member in 0..self.groups[group].bricks.len() {
            self.settle(self.groups[group].bricks[member]);
        }
    }

    fn read_event(&self, group: usize, member: usize, request: Ref, known: &Request) -> (u32, Event<Job>) {
        let group = &self.groups[group];
        let access =
            Access { sector: group.offsets[member] + known.sector, count: known.count, is_write: false };
        let item = Job { request, access };
        let (attempt, data, holders) = (attempt(request), key(known), group.holders.clone());
        (group.bricks[member], Event::Read { attempt, data, sector: access.sector, holders, item })
    }

    fn serve_alone(&mut self, at: At, request: Ref, known: &Request) {
        let alone = self.groups[known.group as usize].alone[usize::from(at.member)].clone();
        self.serve_read(at, request, known, alone);
    }

    fn serve_read(&mut self, at: At, request: Ref, known: &Request, holders: Holders) {
        if !self.is_hit(at.brick, known) {
            return self.enqueue(at, request, known, holders);
        }
        if holders.len() > 1 {
            self.step(at.brick, Event::Hit { attempt: attempt(request), holders });
        }
        self.tell(at.brick, Message::Data, request);
    }

    fn tied_holders(&self, known: &Request) -> Holders {
        let bricks = &self.groups[known.group as usize].bricks;
        Holders::from(known.asked.map(|member| BrickId(bricks[usize::from(member)])))
    }

    fn enqueue(&mut self, at: At, request: Ref, known: &Request, holders: Holders) {
        let queue = self.bricks[at.brick as usize].claims.waiting() as u32;
        if let Some(known) = self.requests.get_mut(request) {
            known.queue = queue;
        }
        let offset = self.groups[known.group as usize].offsets[usize::from(at.member)];
        let access = Access { sector: offset + known.sector, count: known.count, is_write: false };
        let (item, sector) = (Job { request, access }, access.sector);
        let (attempt, data) = (attempt(request), key(known));
        self.step(at.brick, Event::Read { attempt, data, sector, holders, item });
    }

    fn is_hit(&mut self, brick: u32, known: &Request) -> bool {
        let Brick { cache, account, .. } = &mut self.bricks[brick as usize];
        let is_hit = is_cached(cache, known);
        account.hits += u64::from(is_hit);
        is_hit
    }

    /// A disk has read: the block stays in memory, and the client gets it.
    pub(super) fn on_fetched(&mut self, brick: u32, served: &Serving) {
        let request = served.job.request;
        let Some(known) = self.requests.get_mut(request) else {
            // Served a second time, after the answer: the client would squash it.
            self.meter.contention.duplicates += 1;
            return;
        };
        known.service_ns = self.now.0 - served.since.0;
        let (group, sector, count) = (known.group, known.sector, known.count);
        let cache = match self.cluster.scheme {
            Scheme::Central => &mut self.central_cache,
            _ => &mut self.bricks[brick as usize].cache,
        };
        if !cache.is_off() {
            blocks(group, sector, count).for_each(|block| cache.touch(block));
        }
        self.tell(brick, Message::Data, request);
    }

    /// Who keeps a block that was written.
    pub(super) fn keeper(&self, known: &Request) -> Option<BrickId> {
        let group = &self.groups[known.group as usize];
        let homed = self.asker.home(known, &group.candidates);
        homed.or_else(|| hash::keeper(key(known), &group.holders))
    }
}

fn is_cached(cache: &mut crate::shelf::cache::Lru, known: &Request) -> bool {
    if cache.is_off() {
        return false;
    }
    let blocks = blocks(known.group, known.sector, known.count);
    let is_hit = blocks.clone().all(|block| cache.holds(block));
    if is_hit {
        blocks.for_each(|block| cache.touch(block));
    }
    is_hit
}
