//! One modelled drive and what waits for its arm, in the drive's own time. It serves one access at a time. What is next is
//! chosen by the machine that D-SPTF's bricks have before their disks ([`proto::distribute::claim`]): among all that waits
//! by the head scheduler, and reads that other bricks were asked for as well only after a claim.

use super::settings::DriveSettings;
use base::{BLOCK_U64, BrickId, Machine, Time};
use model::drive::{Access, Drive, SECTOR_BYTES};
use proto::distribute::claim::{Attempt, Claims, Config, Effect, Event, Holders};
use std::ops::{Add, Range};
use std::time::Duration;
use store::IoToken;
use wire::disk::Contested;

#[derive(Debug)]
pub(super) struct Device {
    claims: Claims<Drive, Waiting>,
    fx: Vec<Effect<Waiting>>,
    serving: Option<(Time, Owner)>,
    /// Nothing happens before this any more.
    now: Time,
    map: Map,
    has_nvram: bool,
    nvram_left: u64,
    served: Served,
}

/// Whom an access is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// A request of the store that waits for it.
    Request(IoToken),
    /// Nobody waits: so many bytes leave the memory when it is done.
    Destage(u64),
}

#[derive(Debug)]
struct Waiting {
    access: Access,
    owner: Owner,
}

/// What comes of a drive's work.
#[derive(Debug)]
pub(super) enum Happening {
    /// The request with this token is done.
    Done(Time, IoToken),
    /// The request with this token is left to another brick.
    Left(IoToken),
    /// The others are to be told that this read is served here, and how long that takes.
    Claim(Attempt, u64, Holders),
}

/// What a drive has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    pub reads: u64,
    pub writes: u64,
    /// For how long it was busy, in the drive's time.
    pub busy: Duration,
    /// Times that the next access was chosen.
    pub choices: u64,
    /// Accesses to choose from, summed over all choices.
    pub seen: u64,
    /// Reads left to other bricks.
    pub left: u64,
    /// Writes that found no room in the memory before the drive.
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

/// Where blocks lie on the drive: the area of blocks is spread evenly over all sectors, so that blocks that are equally
/// likely are sectors that are equally likely, however small the real file is. Within an access, sectors follow one
/// another.
#[derive(Debug, Clone)]
struct Map {
    area: Range<u64>,
    spread_bytes: u64,
    capacity_sectors: u64,
}

impl Map {
    /// The access for bytes of the disk; `None` for bytes that are not blocks.
    fn access(&self, offset: u64, bytes: u64, is_write: bool) -> Option<Access> {
        if !self.area.contains(&offset) || bytes == 0 {
            return None;
        }
        let at = (offset - self.area.start) % self.spread_bytes;
        let sector = u128::from(at) * u128::from(self.capacity_sectors) / u128::from(self.spread_bytes);
        let count = bytes.div_ceil(SECTOR_BYTES).min(self.capacity_sectors);
        let sector = (sector as u64).min(self.capacity_sectors - count);
        Some(Access { sector, count: u32::try_from(count).ok()?, is_write })
    }
}

impl Device {
    /// A drive at rest, of `brick`, with the blocks at `area` of the real disk.
    pub(super) fn new(settings: &DriveSettings, brick: BrickId, area: Range<u64>, now: Time) -> Device {
        let drive = Drive::with_options(settings.model.clone(), settings.options);
        let area_bytes = (area.end - area.start).max(BLOCK_U64);
        let map = Map {
            area,
            spread_bytes: settings.data_bytes.map_or(area_bytes, |bytes| bytes.min(area_bytes)),
            capacity_sectors: drive.model().capacity_sectors(),
        };
        let config = Config { policy: settings.heads, ..Config::disk(brick, settings.claim_one_way_ns) };
        Device {
            claims: Claims::new(config, drive),
            fx: Vec::new(),
            serving: None,
            now,
            map,
            has_nvram: settings.nvram_bytes > 0,
            nvram_left: settings.nvram_bytes,
            served: Served::default(),
        }
    }

    /// Queues a read that comes now. `false` when these bytes cost no time.
    pub(super) fn read(
        &mut self,
        offset: u64,
        bytes: u64,
        token: IoToken,
        contested: Option<Contested>,
    ) -> bool {
        let Some(access) = self.map.access(offset, bytes, false) else { return false };
        let item = Waiting { access, owner: Owner::Request(token) };
        let sector = access.sector;
        let event = match contested {
            Some(Contested { attempt, holders }) => {
                Event::Read { attempt, data: sector, sector, holders, item }
            }
            None => Event::Local { sector, is_write: false, item },
        };
        self.claims.step(self.now, event, &mut self.fx);
        true
    }

    /// Queues a write that comes now. `false` when it is answered at once: its bytes are none of the drive's, or the
    /// memory before the drive has room for them.
    pub(super) fn write(&mut self, offset: u64, bytes: u64, token: IoToken) -> bool {
        let Some(access) = self.map.access(offset, bytes, true) else { return false };
        let has_room = bytes <= self.nvram_left;
        let owner = if has_room { Owner::Destage(bytes) } else { Owner::Request(token) };
        self.nvram_left -= if has_room { bytes } else { 0 };
        self.served.nvram_full += u64::from(self.has_nvram && !has_room);
        let event = Event::Local { sector: access.sector, is_write: true, item: Waiting { access, owner } };
        self.claims.step(self.now, event, &mut self.fx);
        !has_room
    }

    /// Another brick serves a read, which takes it `bid_ns`.
    pub(super) fn claimed(&mut self, attempt: Attempt, bid_ns: u64, brick: BrickId) {
        self.claims.step(self.now, Event::Claim { attempt, bid_ns, brick }, &mut self.fx);
    }

    /// Does all that is due by `now`, each at its time however late that is noticed, so that a late loop makes answers late
    /// and not the drive slow.
    pub(super) fn advance(&mut self, now: Time, mut tell: impl FnMut(Happening)) {
        self.carry_out(&mut tell);
        while let Some(next) = self.deadline().filter(|next| *next <= now) {
            self.now = self.now.max(next);
            if let Some((end, owner)) = self.serving.filter(|(end, _)| *end <= self.now) {
                self.serving = None;
                self.claims.step(end, Event::Done, &mut self.fx);
                match owner {
                    Owner::Request(token) => tell(Happening::Done(end, token)),
                    Owner::Destage(bytes) => self.nvram_left += bytes,
                }
            }
            self.claims.settle(self.now, &mut self.fx);
            self.carry_out(&mut tell);
        }
        self.now = self.now.max(now);
    }

    /// When something is to happen next; the past when at once.
    pub(super) fn deadline(&self) -> Option<Time> {
        let claims = self.claims.deadline().map(|(at, _)| at);
        self.serving.map(|(end, _)| end).into_iter().chain(claims).min()
    }

    /// What it has done.
    pub(super) fn served(&self) -> Served {
        let counts = self.claims.counts();
        let left = counts.claimed_away + counts.squashed;
        Served { choices: counts.choices, seen: counts.choices_seen, left, ..self.served }
    }

    fn carry_out(&mut self, tell: &mut impl FnMut(Happening)) {
        for effect in std::mem::take(&mut self.fx) {
            match effect {
                Effect::Issue { item } => self.serve(&item),
                Effect::Claim { attempt, bid_ns, holders } => {
                    tell(Happening::Claim(attempt, bid_ns, holders))
                }
                Effect::Drop { item: Waiting { owner: Owner::Request(token), .. }, .. } => {
                    tell(Happening::Left(token));
                }
                Effect::Drop { .. } => unreachable!("nobody else destages what is written here"),
            }
        }
    }

    fn serve(&mut self, item: &Waiting) {
        let end = self.claims.device_mut().serve(self.now, item.access).done;
        self.served.busy += end.since(self.now);
        *if item.access.is_write { &mut self.served.writes } else { &mut self.served.reads } += 1;
        self.serving = Some((end, item.owner));
        self.claims.step(self.now, Event::Busy { free: end }, &mut self.fx);
    }
}
