//! A disk of pages of 4 KiB, torn at sectors of 512 bytes.
//!
//! A write that was answered is read back at once, but lies in the disk's volatile cache until it was written
//! `durable` or a flush that was asked for after its answer is done. A power cut keeps any part of what is volatile or
//! under way, sector by sector. A killed process loses only what is under way: the machine's cache lives on.
//!
//! The driver asks with [`Disk::submit`], which says how long it takes, and gets the answer then with
//! [`Disk::complete`].

use crate::Draw;
use base::Payload;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// The unit of requests.
pub const PAGE: usize = 4096;
/// The unit of tearing and of bit rot.
pub const SECTOR: usize = 512;
const PAGE_U64: u64 = PAGE as u64;

/// A disk's size and speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    pub bytes: u64,
    /// A read takes this long, and up to twice.
    pub read_ns: u64,
    /// A write into the volatile cache takes this long, and up to twice.
    pub write_ns: u64,
    /// A flush or a durable write takes this long, and up to twice.
    pub flush_ns: u64,
}

/// What is asked of a disk. Offsets and lengths are multiples of [`PAGE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskRequest {
    Read {
        /// From byte.
        offset: u64,
        /// How many bytes.
        length: usize,
    },
    Write {
        /// To byte.
        offset: u64,
        payload: Payload,
        /// Whether it is on stable storage when it is answered.
        durable: bool,
    },
    /// Puts all that was answered before on stable storage.
    Flush,
}

/// Why a disk could not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Some sectors cannot be read.
    Unreadable,
    /// Outside the disk, or not in whole pages.
    Misplaced,
}

/// What a power cut leaves of volatile and unfinished writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// The process died, the machine did not: what was answered stays.
    ProcessOnly,
    LoseAll,
    /// Some writes whole, others not at all.
    LoseWrites,
    /// Of each write, any of its sectors.
    TearSectors,
}

#[derive(Clone)]
struct Version {
    write: u64,
    page: Bytes,
}

enum Flight {
    Read { offset: u64, length: usize },
    Write { offset: u64, payload: Payload, durable: bool },
    Flush { answered: u64 },
}

pub struct Disk {
    config: DiskConfig,
    /// Factor on every latency, in percent.
    slowness_percent: u64,
    stable: BTreeMap<u64, Bytes>,
    /// Answered and not on stable storage: a page's versions in the order of their answers.
    volatile: BTreeMap<u64, Vec<Version>>,
    bad: BTreeSet<u64>,
    /// Rotten or bad, and not written since.
    spoiled: BTreeSet<u64>,
    flights: BTreeMap<u64, Flight>,
    next_ticket: u64,
    answered: u64,
}

impl Disk {
    /// A disk full of zeros.
    pub fn new(config: DiskConfig) -> Disk {
        Disk {
            config,
            slowness_percent: 100,
            stable: BTreeMap::new(),
            volatile: BTreeMap::new(),
            bad: BTreeSet::new(),
            spoiled: BTreeSet::new(),
            flights: BTreeMap::new(),
            next_ticket: 0,
            answered: 0,
        }
    }

    /// Another disk with what this one would show after its process ended: what was answered, and nothing that is under way.
    pub fn copy(&self) -> Disk {
        Disk {
            stable: self.stable.clone(),
            volatile: self.volatile.clone(),
            bad: self.bad.clone(),
            spoiled: self.spoiled.clone(),
            flights: BTreeMap::new(),
            ..*self
        }
    }

    /// Its size and speed.
    pub fn config(&self) -> &DiskConfig {
        &self.config
    }

    /// Makes it slower, or with 100 as fast as it was made.
    pub fn set_slowness(&mut self, percent: u64) {
        self.slowness_percent = percent;
    }

    /// How many requests are under way.
    pub fn under_way(&self) -> usize {
        self.flights.len()
    }

    /// Takes a request: the ticket for its answer, and in how many nanoseconds that is there.
    pub fn submit(&mut self, request: DiskRequest, draw: &mut Draw) -> (u64, u64) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let base_ns = match &request {
            DiskRequest::Read { .. } => self.config.read_ns,
            DiskRequest::Write { durable: false, .. } => self.config.write_ns,
            DiskRequest::Write { .. } | DiskRequest::Flush => self.config.flush_ns,
        };
        let flight = match request {
            DiskRequest::Read { offset, length } => Flight::Read { offset, length },
            DiskRequest::Write { offset, payload, durable } => Flight::Write { offset, payload, durable },
            DiskRequest::Flush => Flight::Flush { answered: self.answered },
        };
        self.flights.insert(ticket, flight);
        (ticket, (base_ns + draw.between(0, base_ns)) * self.slowness_percent / 100)
    }

    /// The answer of a request whose time has come. Panics for a ticket that is not under way.
    pub fn complete(&mut self, ticket: u64) -> Result<Bytes, DiskFault> {
        match self.flights.remove(&ticket).expect("a ticket of this disk, under way") {
            Flight::Read { offset, length } => self.read(offset, length),
            Flight::Write { offset, payload, durable } => self.write(offset, &payload, durable),
            Flight::Flush { answered } => {
                self.flush(answered);
                Ok(Bytes::new())
            }
        }
    }

    /// The disk is without its process, or without power, and what was under way is over.
    pub fn crash(&mut self, cut: PowerCut, draw: &mut Draw) {
        let flights = core::mem::take(&mut self.flights);
        let writes = flights.into_values().filter_map(|flight| match flight {
            Flight::Write { offset, payload, .. } => Some((offset, payload)),
            _ => None,
        });
        for (offset, payload) in writes {
            if self.is_misplaced(offset, payload.len()) {
                continue;
            }
            match cut {
                PowerCut::LoseAll => {}
                PowerCut::ProcessOnly if draw.percent(50) => {}
                _ => self.cache(offset, &payload),
            }
        }
        if cut != PowerCut::ProcessOnly {
            self.settle_volatile(cut, draw);
        }
    }

    /// The content of a page as a read would see it; `None` when it was never written.
    pub fn page(&self, index: u64) -> Option<&Bytes> {
        self.volatile
            .get(&index)
            .and_then(|versions| versions.last())
            .map(|v| &v.page)
            .or(self.stable.get(&index))
    }

    /// The pages that are on stable storage, in order.
    pub fn stable_pages(&self) -> impl Iterator<Item = (u64, &Bytes)> {
        self.stable.iter().map(|(&index, page)| (index, page))
    }

    /// Flips bits of one sector of a stable page. The page must be there.
    pub fn rot(&mut self, index: u64, draw: &mut Draw) {
        let page = self.stable.get_mut(&index).expect("a page that was written");
        let mut bytes = BytesMut::from(&page[..]);
        let sector = draw.index(PAGE / SECTOR) * SECTOR;
        for _ in 0..=draw.below(8) {
            bytes[sector + draw.index(SECTOR)] ^= 1 << draw.below(8);
        }
        bytes[sector + draw.index(SECTOR)] ^= 0xff;
        *page = bytes.freeze();
        self.spoiled.insert(index);
    }

    /// Makes a page unreadable until it is written again.
    pub fn spoil(&mut self, index: u64) {
        self.bad.insert(index);
        self.spoiled.insert(index);
    }

    /// Whether a page [rotted](Disk::rot) or was [spoiled](Disk::spoil), and was not written since.
    pub fn is_spoiled(&self, index: u64) -> bool {
        self.spoiled.contains(&index)
    }

    fn is_misplaced(&self, offset: u64, length: usize) -> bool {
        let length = length as u64;
        let whole = offset.is_multiple_of(PAGE_U64) && length.is_multiple_of(PAGE_U64);
        !whole || offset.checked_add(length).is_none_or(|end| end > self.config.bytes)
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes, DiskFault> {
        if self.is_misplaced(offset, length) {
            return Err(DiskFault::Misplaced);
        }
        let first = offset / PAGE_U64;
        let pages = length / PAGE;
        if self.bad.range(first..first + pages as u64).next().is_some() {
            return Err(DiskFault::Unreadable);
        }
        if let (1, Some(page)) = (pages, self.page(first)) {
            return Ok(page.clone());
        }
        let mut bytes = BytesMut::zeroed(length);
        for (index, target) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
            if let Some(page) = self.page(index) {
                target.copy_from_slice(page);
            }
        }
        Ok(bytes.freeze())
    }

    fn write(&mut self, offset: u64, payload: &Payload, durable: bool) -> Result<Bytes, DiskFault> {
        if self.is_misplaced(offset, payload.len()) {
            return Err(DiskFault::Misplaced);
        }
        if durable {
            self.put(offset, payload);
        } else {
            self.cache(offset, payload);
        }
        Ok(Bytes::new())
    }

    /// Puts whole pages on stable storage at once.
    pub fn put(&mut self, offset: u64, payload: &Payload) {
        for (index, page) in pages(offset, payload) {
            self.volatile.remove(&index);
            self.bad.remove(&index);
            self.spoiled.remove(&index);
            self.stable.insert(index, page);
        }
    }

    fn cache(&mut self, offset: u64, payload: &Payload) {
        self.answered += 1;
        for (index, page) in pages(offset, payload) {
            self.bad.remove(&index);
            self.volatile.entry(index).or_default().push(Version { write: self.answered, page });
        }
    }

    fn flush(&mut self, answered: u64) {
        let (stable, spoiled) = (&mut self.stable, &mut self.spoiled);
        self.volatile.retain(|&index, versions| {
            let count = versions.partition_point(|version| version.write <= answered);
            if let Some(last) = versions.drain(..count).next_back() {
                spoiled.remove(&index);
                stable.insert(index, last.page);
            }
            !versions.is_empty()
        });
    }

    fn settle_volatile(&mut self, cut: PowerCut, draw: &mut Draw) {
        let volatile = core::mem::take(&mut self.volatile);
        let mut whole: BTreeMap<u64, bool> = BTreeMap::new();
        for (index, versions) in volatile {
            for version in versions {
                let keep = match cut {
                    PowerCut::LoseAll => 0,
                    PowerCut::TearSectors => draw.below(256),
                    _ if *whole.entry(version.write).or_insert_with(|| draw.percent(50)) => 255,
                    _ => 0,
                };
                self.keep_sectors(index, &version.page, keep);
            }
        }
    }

    /// Puts those sectors of `page` in place whose bit is set in `keep`.
    fn keep_sectors(&mut self, index: u64, page: &Bytes, keep: u64) {
        if keep == 255 {
            self.spoiled.remove(&index);
            self.stable.insert(index, page.clone());
        } else if keep != 0 {
            let mut mixed =
                self.stable.get(&index).map_or(BytesMut::zeroed(PAGE), |old| BytesMut::from(&old[..]));
            for sector in (0..PAGE / SECTOR).filter(|sector| keep >> sector & 1 == 1) {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                mixed[range.clone()].copy_from_slice(&page[range]);
            }
            self.stable.insert(index, mixed.freeze());
        }
    }
}

/// The pages of a write; a page within one part is shared, not copied.
fn pages(offset: u64, payload: &Payload) -> impl Iterator<Item = (u64, Bytes)> + '_ {
    let mut parts = payload.parts();
    let mut skip = 0;
    (0..payload.len() / PAGE).map(move |at| {
        let index = offset / PAGE_U64 + at as u64;
        if parts[0].len() - skip >= PAGE {
            let page = parts[0].slice(skip..skip + PAGE);
            skip += PAGE;
            if skip == parts[0].len() {
                (parts, skip) = (&parts[1..], 0);
            }
            return (index, page);
        }
        let mut page = BytesMut::with_capacity(PAGE);
        while page.len() < PAGE {
            let take = (PAGE - page.len()).min(parts[0].len() - skip);
            page.extend_from_slice(&parts[0][skip..skip + take]);
            skip += take;
            if skip == parts[0].len() {
                (parts, skip) = (&parts[1..], 0);
            }
        }
        (index, page.freeze())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: DiskConfig = DiskConfig { bytes: 1 << 20, read_ns: 1, write_ns: 1, flush_ns: 1 };

    fn run(disk: &mut Disk, draw: &mut Draw, request: DiskRequest) -> Result<Bytes, DiskFault> {
        let (ticket, _) = disk.submit(request, draw);
        disk.complete(ticket)
    }

    fn write(offset: u64, byte: u8, pages: usize, durable: bool) -> DiskRequest {
        DiskRequest::Write { offset, payload: Payload::from(vec![byte; pages * PAGE]), durable }
    }

    fn page_of(disk: &Disk, index: u64) -> Vec<u8> {
        disk.page(index).map_or(vec![0; PAGE], |page| page.to_vec())
    }

    #[test]
    fn what_was_flushed_or_durable_survives_a_power_cut() {
        for seed in 0..200 {
            let mut draw = Draw::new(seed);
            let mut disk = Disk::new(CONFIG);
            run(&mut disk, &mut draw, write(0, 1, 2, false)).unwrap();
            run(&mut disk, &mut draw, DiskRequest::Flush).unwrap();
            run(&mut disk, &mut draw, write(8192, 2, 1, true)).unwrap();
            run(&mut disk, &mut draw, write(4096, 3, 1, false)).unwrap();
            disk.submit(write(8192, 4, 1, true), &mut draw);
            let cut = *draw.pick(&[PowerCut::LoseAll, PowerCut::LoseWrites, PowerCut::TearSectors]);
            disk.crash(cut, &mut draw);
            assert_eq!(page_of(&disk, 0), vec![1; PAGE]);
            for (page, old, new) in [(1, 1, 3), (2, 2, 4)] {
                for sector in page_of(&disk, page).chunks(SECTOR) {
                    assert!(sector == vec![old; SECTOR] || sector == vec![new; SECTOR]);
                    assert!(cut != PowerCut::LoseAll || sector[0] == old);
                }
            }
        }
    }

    #[test]
    fn a_flush_does_not_cover_what_was_answered_after_it_was_asked() {
        let mut draw = Draw::new(1);
        let mut disk = Disk::new(CONFIG);
        run(&mut disk, &mut draw, write(0, 1, 1, false)).unwrap();
        let (flush, _) = disk.submit(DiskRequest::Flush, &mut draw);
        run(&mut disk, &mut draw, write(0, 2, 1, false)).unwrap();
        disk.complete(flush).unwrap();
        assert_eq!(page_of(&disk, 0), vec![2; PAGE]);
        disk.crash(PowerCut::LoseAll, &mut draw);
        assert_eq!(page_of(&disk, 0), vec![1; PAGE]);
    }

    #[test]
    fn a_killed_process_keeps_what_was_answered() {
        let mut draw = Draw::new(1);
        let mut disk = Disk::new(CONFIG);
        run(&mut disk, &mut draw, write(0, 1, 1, false)).unwrap();
        disk.crash(PowerCut::ProcessOnly, &mut draw);
        assert_eq!(page_of(&disk, 0), vec![1; PAGE]);
    }

    #[test]
    fn rot_and_bad_pages_show_and_go_away_with_a_write() {
        let mut draw = Draw::new(1);
        let mut disk = Disk::new(CONFIG);
        run(&mut disk, &mut draw, write(0, 1, 2, true)).unwrap();
        disk.rot(0, &mut draw);
        disk.spoil(1);
        let read = |offset| DiskRequest::Read { offset, length: PAGE };
        assert_ne!(run(&mut disk, &mut draw, read(0)).unwrap(), vec![1; PAGE]);
        assert_eq!(run(&mut disk, &mut draw, read(4096)), Err(DiskFault::Unreadable));
        run(&mut disk, &mut draw, write(0, 5, 2, false)).unwrap();
        assert_eq!(
            run(&mut disk, &mut draw, DiskRequest::Read { offset: 0, length: 2 * PAGE }).unwrap(),
            vec![5; 8192]
        );
        assert_eq!(run(&mut disk, &mut draw, read(1 << 20)), Err(DiskFault::Misplaced));
    }
}
