//! What bricks do with reads.

use super::brick::{Brick, Job, Serving, blocks};
use super::client::key;
use super::cluster::Scheme;
use super::measured::Message;
use super::request::{NOBODY, Ref, Request};
use super::run::{Chooser, Run, attempt};
use base::{BrickId, Mechanics};
use model::drive::{Access, SECTOR_BYTES};
use proto::distribute::claim::{Event, Holders};
use proto::distribute::hash;

/// A read at one of the bricks that were told of it.
#[derive(Clone, Copy)]
struct At {
    brick: u32,
    member: u8,
    is_first: bool,
}

impl Run<'_> {
    /// `is_first`: from the client itself, not passed on by another brick.
    pub(super) fn on_read(&mut self, brick: u32, request: Ref, is_first: bool) {
        let Some(known) = self.known(request) else { return };
        let bricks = &self.groups[known.group as usize].bricks;
        let member = bricks.iter().position(|other| *other == brick).unwrap_or(0) as u8;
        let at = At { brick, member, is_first };
        match &self.chooser {
            Chooser::Claim { told_by_client } => {
                let is_only = at.is_first && !told_by_client;
                self.on_shared_read(at, is_only, request, &known);
            }
            Chooser::Central => self.on_central_read(brick, request, &known),
            Chooser::Tied(_) => {
                let holders = self.tied_holders(&known);
                self.serve_read(at, request, &known, holders);
            }
            Chooser::Hash | Chooser::WeightedHash(_) | Chooser::Lard(_) => {
                self.on_homed_read(at, request, &known)
            }
            Chooser::ShortestQueue(_) | Chooser::Hedged(_) | Chooser::Probing(_) => {
                self.serve_alone(at, request, &known);
            }
        }
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

    /// The read has one home; a brick that is not passes it on.
    fn on_homed_read(&mut self, at: At, request: Ref, known: &Request) {
        if !at.is_first {
            return self.serve_alone(at, request, known);
        }
        let candidates = &self.groups[known.group as usize].candidates;
        let home = match &mut self.chooser {
            Chooser::Hash => hash::choose(key(known), candidates),
            Chooser::WeightedHash(policy) => policy.choose(key(known), candidates),
            Chooser::Lard(lard) => {
                let home = lard.choose(self.now, address(known), candidates);
                home.into_iter().for_each(|home| lard.begin(candidates[usize::from(home)].1));
                home
            }
            _ => None,
        };
        let home = home.unwrap_or(at.member);
        if matches!(self.chooser, Chooser::Lard(_))
            && let Some(known) = self.requests.get_mut(request)
        {
            known.asked[0] = home;
        }
        if home == at.member {
            return self.serve_alone(at, request, known);
        }
        let to = self.groups[known.group as usize].bricks[usize::from(home)];
        self.send(Some(at.brick), to, Message::Forward, request);
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
        let group = &self.groups[known.group as usize];
        let [first, second] = known.asked.map(usize::from);
        if known.asked[1] == NOBODY {
            return group.alone[first].clone();
        }
        group.pairs[first * group.bricks.len() + second].clone()
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
            self.meter.duplicates += 1;
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
        let homed = match &self.chooser {
            Chooser::Lard(lard) => lard.home(address(known)),
            Chooser::WeightedHash(policy) => {
                let member = policy.choose(key(known), &group.candidates);
                member.map(|member| group.candidates[usize::from(member)].1)
            }
            _ => None,
        };
        homed.or_else(|| hash::keeper(key(known), &group.holders))
    }
}

/// Where LARD finds a request: a byte address that is the cluster's.
fn address(known: &Request) -> u64 {
    (u64::from(known.group) << 49) | (known.sector * SECTOR_BYTES)
}

fn is_cached(cache: &mut super::cache::Lru, known: &Request) -> bool {
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
