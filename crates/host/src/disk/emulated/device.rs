//! One modelled drive and what waits for its arm, in the drive's own time. It serves one access at a time; the head
//! scheduler chooses the next when one is done.

use super::settings::DriveSettings;
use base::{BLOCK_U64, Mechanics, Time};
use model::drive::{Access, Drive, SECTOR_BYTES};
use proto::heads::HeadQueue;
use std::ops::{Add, Range};
use std::time::Duration;

/// The drive.
#[derive(Debug)]
pub(super) struct Device {
    drive: Drive,
    queue: HeadQueue<Waiting>,
    serving: Option<(Time, Owner)>,
    /// When the last access was done.
    free: Time,
    map: Map,
    has_nvram: bool,
    nvram_left: u64,
    served: Served,
}

/// Whom an access is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// A request of the store that waits for it.
    Request(u64),
    /// Nobody waits: so many bytes leave the memory when it is done.
    Destage(u64),
}

#[derive(Debug)]
struct Waiting {
    access: Access,
    arrived: Time,
    owner: Owner,
}

/// What a drive has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Accesses that read.
    pub reads: u64,
    /// Accesses that wrote.
    pub writes: u64,
    /// For how long it was busy, in the drive's time.
    pub busy: Duration,
    /// Accesses that the head scheduler chose from, summed over all choices.
    pub choices: u64,
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
    /// A drive at rest, with the blocks at `area` of the real disk.
    pub(super) fn new(settings: &DriveSettings, area: Range<u64>, now: Time) -> Device {
        let drive = Drive::with_options(settings.model.clone(), settings.options);
        let area_bytes = (area.end - area.start).max(BLOCK_U64);
        let map = Map {
            area,
            spread_bytes: settings.data_bytes.map_or(area_bytes, |bytes| bytes.min(area_bytes)),
            capacity_sectors: drive.model().capacity_sectors(),
        };
        Device {
            drive,
            queue: HeadQueue::new(settings.heads),
            serving: None,
            free: now,
            map,
            has_nvram: settings.nvram_bytes > 0,
            nvram_left: settings.nvram_bytes,
            served: Served::default(),
        }
    }

    /// Queues a read that came at `now`. `false` when these bytes cost no time.
    pub(super) fn read(&mut self, now: Time, offset: u64, bytes: u64, token: u64) -> bool {
        let Some(access) = self.map.access(offset, bytes, false) else { return false };
        self.push(now, access, Owner::Request(token));
        true
    }

    /// Queues a write that came at `now`. `false` when it is answered at once: its bytes are none of the drive's, or
    /// the memory before the drive has room for them.
    pub(super) fn write(&mut self, now: Time, offset: u64, bytes: u64, token: u64) -> bool {
        let Some(access) = self.map.access(offset, bytes, true) else { return false };
        if bytes <= self.nvram_left {
            self.nvram_left -= bytes;
            self.push(now, access, Owner::Destage(bytes));
            return false;
        }
        self.served.nvram_full += u64::from(self.has_nvram);
        self.push(now, access, Owner::Request(token));
        true
    }

    /// Ends what is done by `now`, and begins what follows: `(when, whose request)` for each that somebody waits for.
    ///
    /// What follows begins when the one before is done, however late that is noticed, so that a late loop makes answers
    /// late and not the drive slow.
    pub(super) fn advance(&mut self, now: Time, mut done: impl FnMut(Time, u64)) {
        loop {
            match self.serving {
                Some((end, _)) if end > now => return,
                Some((end, owner)) => {
                    self.serving = None;
                    self.free = end;
                    match owner {
                        Owner::Request(token) => done(end, token),
                        Owner::Destage(bytes) => self.nvram_left += bytes,
                    }
                }
                None => {}
            }
            if !self.begin() {
                return;
            }
        }
    }

    /// When the access under way is done.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.serving.map(|(end, _)| end)
    }

    /// All requests that wait, in no order that matters.
    pub(super) fn requests(&self) -> impl Iterator<Item = u64> + '_ {
        let waiting = self.queue.iter().map(|(_, waiting)| waiting.owner);
        self.serving.map(|(_, owner)| owner).into_iter().chain(waiting).filter_map(|owner| match owner {
            Owner::Request(token) => Some(token),
            Owner::Destage(_) => None,
        })
    }

    /// What it has done.
    pub(super) fn served(&self) -> Served {
        self.served
    }

    fn push(&mut self, now: Time, access: Access, owner: Owner) {
        let position = self.drive.position_of(access.sector, access.is_write);
        self.queue.push(position, Waiting { access, arrived: now, owner });
    }

    fn begin(&mut self) -> bool {
        let choices = self.queue.len() as u64;
        let Some(picked) = self.queue.pick(self.begins_at(), &self.drive) else { return false };
        let Waiting { access, arrived, owner } = picked.item;
        let start = self.free.max(arrived);
        let end = self.drive.serve(start, access).done;
        self.served.choices += choices;
        self.served.busy += end.since(start);
        *if access.is_write { &mut self.served.writes } else { &mut self.served.reads } += 1;
        self.serving = Some((end, owner));
        true
    }

    /// When the head can be sent off: when it is free, and something is there.
    fn begins_at(&self) -> Time {
        let first = self.queue.iter().map(|(_, waiting)| waiting.arrived).min();
        self.free.max(first.unwrap_or(self.free))
    }
}
