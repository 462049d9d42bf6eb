//! A disk whose heads are seen, and what waits for them: the last door of a disk's seat, between its store and the device.
//!
//! The device serves one access at a time (or as many as [`Config::depth`] says). What is next is chosen among all that
//! waits by the head scheduler, and reads that other bricks were asked for as well only after a claim
//! ([`crate::distribute::claim`]). When it is done is known when it begins: whoever carries it out for real answers then.
//!
//! Blocks are spread evenly over all sectors of the device, so that blocks that are equally likely are sectors that are
//! equally likely, however small the real disk is. Within an access sectors follow one another. What lies outside the blocks
//! (journal, metadata) costs no time, as if it lay in the non-volatile memory that D-SPTF's bricks have (section 3); written
//! blocks are answered from such a memory as long as it has room.

#[cfg(test)]
mod tests;

use crate::distribute::claim::{
    Attempt, Claims, Config, Dropped, Effect as ClaimEffect, Event as ClaimEvent, Holders,
};
use base::{Access, BLOCK_U64, BrickId, Depth, Device, Machine, SECTOR_BYTES, Time};
use core::fmt;
use core::ops::{Add, Range};
use core::time::Duration;
use wire::disk::Contested;

/// What surrounds a device.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    pub claims: Config,
    /// How many times slower than the clock the device's time passes; at least 1.
    pub dilate: u32,
    /// Bytes of written blocks that are answered before the device has them; 0 for none.
    pub nvram_bytes: u64,
    /// Bytes of the area of blocks that are spread over the device; `None` for all.
    pub data_bytes: Option<u64>,
}

/// What can happen.
#[derive(Debug)]
pub enum Event<T> {
    /// A read of so many bytes of the disk.
    Read { offset: u64, bytes: u64, contested: Option<Contested>, item: T },
    /// A write of so many bytes.
    Write { offset: u64, bytes: u64, item: T },
    /// Another brick serves a read, which takes it `bid_ns`.
    Claimed { attempt: Attempt, bid_ns: u64, brick: BrickId },
}

/// What it asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// Give this to the disk now. It is done at `due`, or as soon as can be.
    Issue { item: T, due: Option<Time> },
    /// This is left to another brick.
    Left { item: T },
    /// The others are to be told that this read is served here, and how long that takes, in the device's time.
    Claim { attempt: Attempt, bid_ns: u64, holders: Holders },
}

/// What a device has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    pub reads: u64,
    pub writes: u64,
    /// For how long it was busy, in its own time.
    pub busy: Duration,
    /// Times that the next access was chosen.
    pub choices: u64,
    /// Accesses to choose from, summed over all choices.
    pub seen: u64,
    /// Reads left to other bricks.
    pub left: u64,
    /// Writes that found no room in the memory before the device.
    pub nvram_full: u64,
}

impl Add for Served {
    type Output = Served;

    fn add(self, other: Served) -> Served {
        Served {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            busy: self.busy + other.busy,
            choices: self.choices + other.choices,
            seen: self.seen + other.seen,
            left: self.left + other.left,
            nvram_full: self.nvram_full + other.nvram_full,
        }
    }
}

/// An access that waits for the head.
#[derive(Debug)]
struct Waiting<T> {
    access: Access,
    work: Work<T>,
}

/// Whom an access is for.
enum Work<T> {
    /// Someone who waits for it.
    Asked(T),
    /// Nobody waits: so many bytes leave the memory when it is done.
    Destage(u64),
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Asked(_) => f.write_str("Asked"),
            Work::Destage(bytes) => write!(f, "Destage({bytes})"),
        }
    }
}

/// An access at the device.
#[derive(Clone, Copy, Debug)]
struct Serving {
    end: Time,
    /// Bytes that leave the memory with it.
    destaged: u64,
}

/// The heads of one disk, and what waits for them.
#[derive(Debug)]
pub struct Heads<T> {
    claims: Claims<Box<dyn Device>, Waiting<T>>,
    fx: Vec<ClaimEffect<Waiting<T>>>,
    surroundings: Surroundings,
    /// Where the disk keeps its blocks; nothing before that is known.
    area: Range<u64>,
    serving: Vec<Serving>,
    /// Up to when the device has gone on, in its own time: nothing happens before this any more.
    now: Time,
    /// When it began, in its own time.
    began: Time,
    nvram_left: u64,
    served: Served,
}

impl<T> Heads<T> {
    /// A device at rest. It has no blocks yet ([`Heads::set_area`]).
    pub fn new(surroundings: Surroundings, device: Box<dyn Device>, now: Time) -> Heads<T> {
        assert!(surroundings.dilate > 0, "the time of a device passes");
        let own = Time(now.0 / u64::from(surroundings.dilate));
        Heads {
            claims: Claims::new(surroundings.claims, device),
            fx: Vec::new(),
            area: 0..0,
            serving: Vec::new(),
            now: own,
            began: own,
            nvram_left: surroundings.nvram_bytes,
            served: Served::default(),
            surroundings,
        }
    }

    /// The disk keeps its blocks there.
    pub fn set_area(&mut self, area: Range<u64>) {
        self.area = area;
    }

    /// What it has done.
    pub fn served(&self) -> Served {
        let counts = self.claims.counts();
        let left = counts.claimed_away + counts.squashed;
        Served { choices: counts.choices, seen: counts.choices_seen, left, ..self.served }
    }

    /// How much of the time for which it was busy ([`Served::busy`]) is still to come, in its own time.
    pub fn ahead(&self, now: Time) -> Duration {
        let own = self.own(now);
        self.serving.iter().map(|serving| serving.end.since(own)).sum()
    }

    /// For how long there has been such a device, in its own time.
    pub fn clock(&self, now: Time) -> Duration {
        self.own(now).since(self.began)
    }

    /// The sector of the device at which that byte of the disk lies; `None` for bytes that are not blocks.
    pub fn sector_of(&self, offset: u64) -> Option<u64> {
        self.access(offset, 1, false).map(|access| access.sector)
    }

    /// How many wait, without those at the device.
    pub fn waiting(&self) -> usize {
        self.claims.waiting()
    }

    /// How many wait, or are at the device.
    pub fn len(&self) -> usize {
        self.claims.waiting() + self.serving.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// There is no such device any more: what waited for it.
    pub fn into_waiting(self) -> impl Iterator<Item = T> {
        self.claims.into_waiting().filter_map(|waiting| match waiting.work {
            Work::Asked(item) => Some(item),
            Work::Destage(_) => None,
        })
    }

    /// The access for bytes of the disk; `None` for bytes that are not blocks.
    fn access(&self, offset: u64, bytes: u64, is_write: bool) -> Option<Access> {
        if !self.area.contains(&offset) || bytes == 0 {
            return None;
        }
        let area_bytes = (self.area.end - self.area.start).max(BLOCK_U64);
        let spread_bytes = self.surroundings.data_bytes.map_or(area_bytes, |bytes| bytes.min(area_bytes));
        let capacity_sectors = self.claims.device().capacity_sectors();
        let at = (offset - self.area.start) % spread_bytes;
        let sector = match at.checked_mul(capacity_sectors) {
            Some(product) => product / spread_bytes,
            // Wide division takes ten times as long.
            None => (u128::from(at) * u128::from(capacity_sectors) / u128::from(spread_bytes)) as u64,
        };
        let count = bytes.div_ceil(SECTOR_BYTES).min(capacity_sectors);
        let sector = sector.min(capacity_sectors - count);
        Some(Access { sector, count: u32::try_from(count).ok()?, is_write })
    }

    fn own(&self, now: Time) -> Time {
        Time(now.0 / u64::from(self.surroundings.dilate))
    }

    fn real(&self, own: Time) -> Time {
        Time(own.0.saturating_mul(u64::from(self.surroundings.dilate)))
    }

    fn on_read(&mut self, (access, item): (Access, T), contested: Option<Contested>) {
        let item = Waiting { access, work: Work::Asked(item) };
        let sector = access.sector;
        let event = match contested {
            Some(Contested { attempt, holders }) => {
                ClaimEvent::Read { attempt, data: sector, sector, holders, item }
            }
            None => ClaimEvent::Local { sector, is_write: false, item },
        };
        self.claims.step(self.now, event, &mut self.fx);
    }

    fn on_write(&mut self, (access, item): (Access, T), bytes: u64, fx: &mut Vec<Effect<T>>) {
        let work = if bytes <= self.nvram_left {
            self.nvram_left -= bytes;
            fx.push(Effect::Issue { item, due: None });
            Work::Destage(bytes)
        } else {
            self.served.nvram_full += u64::from(self.surroundings.nvram_bytes > 0);
            Work::Asked(item)
        };
        let event =
            ClaimEvent::Local { sector: access.sector, is_write: true, item: Waiting { access, work } };
        self.claims.step(self.now, event, &mut self.fx);
    }

    /// Does all that is due by `until`, each at its time however late that is noticed, so that a late loop makes answers late
    /// and not the device slow.
    fn advance(&mut self, until: Time, fx: &mut Vec<Effect<T>>) {
        self.carry_out(fx);
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.end_what_is_done();
            self.claims.settle(self.now, &mut self.fx);
            self.carry_out(fx);
        }
        self.now = self.now.max(until);
    }

    /// When something is to happen next, in the device's time; the past when at once.
    fn next(&self) -> Option<Time> {
        let claims = self.claims.deadline().map(|(at, _)| at);
        self.serving.iter().map(|serving| serving.end).chain(claims).min()
    }

    fn end_what_is_done(&mut self) {
        let now = self.now;
        while let Some(at) = self.serving.iter().position(|serving| serving.end <= now) {
            let Serving { end, destaged } = self.serving.remove(at);
            self.nvram_left += destaged;
            self.claims.step(end, ClaimEvent::Done, &mut self.fx);
        }
    }

    fn carry_out(&mut self, fx: &mut Vec<Effect<T>>) {
        let mut asked = core::mem::take(&mut self.fx);
        for effect in asked.drain(..) {
            match effect {
                ClaimEffect::Issue { item } => self.serve(item, fx),
                ClaimEffect::Claim { attempt, bid_ns, holders } => {
                    fx.push(Effect::Claim { attempt, bid_ns, holders });
                }
                // Too many wait here for it to be contested: it is served here, whoever else serves it.
                ClaimEffect::Drop { item, why: Dropped::Full } => {
                    let event = ClaimEvent::Local { sector: item.access.sector, is_write: false, item };
                    self.claims.step(self.now, event, &mut self.fx);
                }
                ClaimEffect::Drop { item: Waiting { work: Work::Asked(item), .. }, .. } => {
                    fx.push(Effect::Left { item });
                }
                ClaimEffect::Drop { .. } => unreachable!("nobody else destages what is written here"),
            }
        }
        // What serving asks for has come to stand in the other list.
        asked.append(&mut self.fx);
        self.fx = asked;
    }

    fn serve(&mut self, Waiting { access, work }: Waiting<T>, fx: &mut Vec<Effect<T>>) {
        let end = self.claims.device_mut().serve(self.now, access);
        self.served.busy += end.since(self.now);
        *if access.is_write { &mut self.served.writes } else { &mut self.served.reads } += 1;
        let destaged = match work {
            Work::Asked(item) => {
                fx.push(Effect::Issue { item, due: Some(self.real(end)) });
                0
            }
            Work::Destage(bytes) => bytes,
        };
        self.serving.push(Serving { end, destaged });
        self.claims.step(self.now, ClaimEvent::Busy { free: end }, &mut self.fx);
    }
}

impl<T> Machine for Heads<T> {
    type Event = Event<T>;
    type Effect = Effect<T>;

    /// What comes at one moment is chosen from together, when the batch ends.
    fn step(&mut self, now: Time, event: Event<T>, fx: &mut Vec<Effect<T>>) {
        let own = self.own(now);
        if own > self.now {
            self.advance(own, fx);
        }
        match event {
            Event::Read { offset, bytes, contested, item } => match self.access(offset, bytes, false) {
                Some(access) => self.on_read((access, item), contested),
                None => fx.push(Effect::Issue { item, due: None }),
            },
            Event::Write { offset, bytes, item } => match self.access(offset, bytes, true) {
                Some(access) => self.on_write((access, item), bytes, fx),
                None => fx.push(Effect::Issue { item, due: None }),
            },
            Event::Claimed { attempt, bid_ns, brick } => {
                self.claims.step(self.now, ClaimEvent::Claim { attempt, bid_ns, brick }, &mut self.fx);
            }
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        let own = self.own(now);
        self.advance(own.max(self.now), fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        self.next().map(|at| (self.real(at), "the heads of a disk"))
    }

    fn check(&self, depth: Depth) {
        self.claims.check(depth);
        assert!(self.nvram_left <= self.surroundings.nvram_bytes, "no more leaves the memory than came");
        assert_eq!(self.serving.len(), self.claims.serving() as usize, "what is at the device is known");
    }
}
