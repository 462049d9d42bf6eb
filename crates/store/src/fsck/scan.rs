//! How a disk is looked through: superblocks, headers, journal, metadata pages, and behind each page its blocks.

use super::finding::{Finding, State, What};
use super::repair;
use super::report::{FsckOptions, FsckReport, Owner, Sectors};
use crate::config::{MapUse, StoreConfig};
use crate::header::Header;
use crate::io::IoFault;
use crate::metadata::{Decoded, Entry, Key, Kind, PAGE_BLOCKS, PAGE_MAX, PAGE_SLOTS, Page, Site};
use crate::open_error::OpenError;
use crate::overlay::Place;
use crate::record::{Body, FrameHeader};
use crate::recovery::{Next, Recovery};
use crate::running::Running;
use crate::slots::Allocator;
use crate::superblock::{FORMAT_VERSION, Found, HEADERS_AT, SLOT_BLOCKS, SLOT_BYTES, Superblock};
use base::{BLOCK, BLOCK_U64, Checksum, VolumeId, checksum};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Pages read at a time.
const PAGES_AT_ONCE: u32 = 64;

/// A check under way.
pub(super) struct Scan<'a> {
    pub(super) disk: &'a mut dyn Sectors,
    progress: &'a mut dyn FnMut(u64, u64),
    superblock: Superblock,
    repair: bool,
    report: FsckReport,
    /// The header that counts, and where it is.
    header: Option<(u64, Header)>,
    /// Whether a page was found damaged.
    has_damaged_page: bool,
    done: u64,
    total: u64,
    slots: Allocator,
    keys: BTreeSet<Key>,
}

/// What is done with a page: its place and its bytes, empty when they cannot be read.
type Look<'f, 'a> = dyn FnMut(&mut Scan<'a>, u32, &[u8]) -> Result<(), OpenError> + 'f;

/// Blocks of one slot whose content has to match: address and checksum.
type Expected = Vec<(u64, Checksum)>;

impl<'a> Scan<'a> {
    /// Reads the superblocks, and restores one from the other.
    pub(super) fn new(
        disk: &'a mut dyn Sectors,
        options: &FsckOptions,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Result<Scan<'a>, OpenError> {
        let superblock = superblock(disk, options)?;
        let slots = Allocator::new(superblock.geometry.slot_count);
        let report = FsckReport::new(owner(&superblock), superblock.identity());
        let repair = options.repair;
        let total = superblock.geometry.journal_bytes;
        let mut scan = Scan {
            disk,
            progress,
            superblock,
            repair,
            report,
            header: None,
            has_damaged_page: false,
            done: 0,
            total,
            slots,
            keys: BTreeSet::new(),
        };
        scan.superblocks()?;
        Ok(scan)
    }

    fn superblocks(&mut self) -> Result<(), OpenError> {
        for (offset, is_copy) in [(0, false), (self.superblock.geometry.copy_at(), true)] {
            let sector = self.read(offset, BLOCK)?;
            let found = sector.map_or(Found::Damaged, |sector| Superblock::decode_sector(&sector));
            if !matches!(found, Found::Superblock(found) if *found == self.superblock) {
                self.write(offset, &self.superblock.encode_sector())?;
                self.found(offset, What::Superblock { is_copy }, true);
            }
        }
        Ok(())
    }

    /// Looks at the two journal headers; a damaged one becomes one that was never written.
    pub(super) fn headers(&mut self) -> Result<(), OpenError> {
        let mut sectors = Vec::new();
        for place in [HEADERS_AT, HEADERS_AT + BLOCK_U64] {
            sectors.push(self.read(place, BLOCK)?.unwrap_or_default());
        }
        let seed = self.superblock.seed();
        let headers: Vec<_> = sectors.iter().map(|sector| Header::decode_sector(sector, seed)).collect();
        let offsets = [HEADERS_AT, HEADERS_AT + BLOCK_U64];
        let whole =
            offsets.into_iter().zip(&headers).filter_map(|(offset, header)| Some((offset, (*header)?)));
        self.header = whole.max_by_key(|(_, header)| header.generation);
        if self.header.is_none() {
            return Ok(());
        }
        for (which, header) in (0..).zip(&headers) {
            let sector = &sectors[usize::from(which)];
            let is_blank = sector.len() == BLOCK && sector.iter().all(|&byte| byte == 0);
            if header.is_none() && !is_blank {
                let offset = HEADERS_AT + u64::from(which) * BLOCK_U64;
                self.write(offset, &[0; BLOCK])?;
                self.found(offset, What::JournalHeader { which }, true);
            }
        }
        Ok(())
    }

    /// Finds out what the journal says, as a brick does. A repair ends a torn tail, and brings home what the journal holds.
    pub(super) fn journal(&mut self) -> Result<Option<Box<Running>>, OpenError> {
        let mut opened = self.recover()?;
        if let Some(running) = &opened {
            self.tail(running)?;
            if self.repair
                && (!running.blocks.layers.durable().is_empty() || !running.blocks.discards.is_empty())
            {
                // What comes home is written by whole pages, over what is damaged of them.
                self.each_page(&mut |scan, place, bytes| scan.sectors(place, bytes))?;
                let config = self.config();
                repair::bring_home(self.disk, config)?;
                self.headers()?;
                opened = self.recover()?;
            }
        }
        if let Some(running) = &opened {
            self.report.journal_bytes = running.log.journal().used();
            self.report.staged_writes = running.log.writes.len() as u64;
            self.total += u64::from(running.blocks.slots.used()) * SLOT_BYTES;
        }
        self.total += u64::from(self.pages_high()) * BLOCK_U64;
        self.advance(self.superblock.geometry.journal_bytes);
        Ok(opened)
    }

    /// Whether the journal's end was cut off in the middle of a frame.
    fn tail(&mut self, running: &Running) -> Result<(), OpenError> {
        let journal = running.log.journal();
        let offset = journal.offset_of(journal.head());
        let sector = self.read(offset, BLOCK)?.unwrap_or_default();
        let looks_damaged = FrameHeader::is_damaged(&sector, journal.head(), running.device.seed());
        if running.log.has_torn_tail() || looks_damaged {
            self.write(offset, &[0; BLOCK])?;
            self.found(offset, What::TornTail, true);
        }
        Ok(())
    }

    /// Looks at every metadata page and at the blocks that it describes; without `opened` at the pages alone.
    pub(super) fn metadata(&mut self, opened: Option<&Running>) -> Result<(), OpenError> {
        self.each_page(&mut |scan, place, bytes| {
            scan.advance(BLOCK_U64);
            scan.page(place, bytes, opened)
        })?;
        opened.map_or(Ok(()), |running| self.content_in_journal(running))
    }

    /// Metadata pages from this one on were never used.
    fn pages_high(&self) -> u32 {
        self.header.map_or(0, |(_, header)| header.pages_high.min(self.superblock.geometry.page_count))
    }

    /// Looks whether the map of pages says what `opened` has read from the pages.
    pub(super) fn map(&mut self, opened: Option<&Running>) -> Result<(), OpenError> {
        let (Some(running), Some((offset, header))) = (opened, self.header) else { return Ok(()) };
        if header.map.is_none_or(|map| !map.is_whole()) || self.has_damaged_page {
            return Ok(());
        }
        // Where a power cut tore it, or it is damaged, a brick reads all pages.
        let mapped = self.open(MapUse::Trusted)?.ok().filter(|mapped| mapped.is_mapped);
        if mapped.is_some_and(|mapped| !mapped.blocks.is_same(&running.blocks, &BTreeSet::new())) {
            self.forget_map()?;
            self.found(offset, What::PageMap, true);
        }
        Ok(())
    }

    /// Before a repair changes a page: the map of pages counts no more.
    fn forget_map(&mut self) -> Result<(), OpenError> {
        let Some((offset, header)) = self.header.as_mut() else { return Ok(()) };
        if header.map.take().is_some() {
            let (offset, sector) = (*offset, header.encode_sector(self.superblock.seed()));
            self.write(offset, &sector)?;
            if self.repair {
                self.sync()?;
            }
        }
        Ok(())
    }

    fn write_page(&mut self, place: u32, page: &[u8]) -> Result<(), OpenError> {
        if self.repair {
            self.forget_map()?;
        }
        self.write(self.superblock.geometry.page_offset(place), page)
    }

    fn each_page(&mut self, look: &mut Look<'_, 'a>) -> Result<(), OpenError> {
        let mut place = 0;
        while place < self.pages_high() {
            let count = PAGES_AT_ONCE.min(self.pages_high() - place);
            let offset = self.superblock.geometry.page_offset(place);
            let pages = self.read(offset, count as usize * BLOCK)?;
            for n in 0..count {
                let page = match &pages {
                    Some(pages) => Some(pages.slice(n as usize * BLOCK..(n as usize + 1) * BLOCK)),
                    None => self.read(offset + u64::from(n) * BLOCK_U64, BLOCK)?,
                };
                look(self, place + n, &page.unwrap_or_default())?;
            }
            place += count;
        }
        Ok(())
    }

    /// Makes sure that a brick can open what was repaired.
    pub(super) fn end(mut self) -> Result<FsckReport, OpenError> {
        if self.repair && self.report.is_damage_found() {
            self.sync()?;
            let was_refused = self.report.findings.iter().any(|f| matches!(f.what, What::Refused(_)));
            if !was_refused {
                self.recover()?;
            }
        }
        self.total = self.done.max(self.total);
        self.advance(self.total - self.done);
        Ok(self.report)
    }

    /// Damaged sectors of a page; a repair makes them sectors that say so.
    fn sectors(&mut self, place: u32, bytes: &[u8]) -> Result<(), OpenError> {
        let Decoded { key, page, damaged, is_after_loss } = self.decode(place, bytes);
        let Some(key) = key.filter(|_| damaged > 0) else { return Ok(()) };
        self.has_damaged_page = true;
        let offset = self.superblock.geometry.page_offset(place);
        let (volume, first) = (key.volume, key.page * PAGE_BLOCKS);
        for sector in (0..8_u8).filter(|sector| damaged & 1 << sector != 0) {
            let what = What::Metadata { volume, lba: first + u64::from(sector) * 32, blocks: 32 };
            self.found(offset + u64::from(sector) * 512, what, true);
        }
        let site = Site { place, is_after_loss };
        self.write_page(place, &page.encode(key, site, self.superblock.seed()))
    }

    fn decode(&self, place: u32, bytes: &[u8]) -> Decoded {
        Page::decode(bytes, place, self.superblock.geometry.slot_count, self.superblock.seed())
    }

    fn page(&mut self, place: u32, bytes: &[u8], opened: Option<&Running>) -> Result<(), OpenError> {
        let offset = self.superblock.geometry.page_offset(place);
        let Decoded { key, mut page, damaged, is_after_loss } = self.decode(place, bytes);
        let is_lost = damaged > 0 || bytes.is_empty() || key.is_some();
        let key = key.filter(|key| key.page < PAGE_MAX);
        if is_after_loss || key.is_none() && is_lost {
            self.has_damaged_page = true;
            self.found(offset, What::LostPage, false);
        }
        let Some(key) = key else { return Ok(()) };
        self.report.pages += 1;
        self.sectors(place, bytes)?;
        let first = key.page * PAGE_BLOCKS;
        if !self.keys.insert(key) {
            self.found(offset, What::PageTwice { volume: key.volume, lba: first }, false);
        }
        for number in key.page * PAGE_SLOTS..(key.page + 1) * PAGE_SLOTS {
            let lba = number * SLOT_BLOCKS;
            if page.slot(lba).is_some_and(|slot| !self.slots.mark(slot)) {
                self.found(offset, What::SlotTwice { volume: key.volume, lba }, false);
            }
        }
        let mut has_changed = false;
        if let Some(running) =
            opened.filter(|r| key.plane == 0 && !r.blocks.discards.cover(key.volume, first))
        {
            for number in key.page * PAGE_SLOTS..(key.page + 1) * PAGE_SLOTS {
                has_changed |= self.group(key.volume, number, &mut page, running, offset)?;
            }
        }
        if has_changed {
            let site = Site { place, is_after_loss };
            self.write_page(place, &page.encode(key, site, self.superblock.seed()))?;
        }
        Ok(())
    }

    /// Checks the blocks of one slot, and notes in the page which ones are lost. True when there are any.
    fn group(
        &mut self,
        volume: VolumeId,
        number: u64,
        page: &mut Page,
        running: &Running,
        page_offset: u64,
    ) -> Result<bool, OpenError> {
        let (mut expected, mut lost) = (Expected::new(), Vec::new());
        let slot = page.slot(number * SLOT_BLOCKS);
        for lba in number * SLOT_BLOCKS..(number + 1) * SLOT_BLOCKS {
            let entry = page.entry(lba);
            // What the journal has anew may be half-written here.
            let is_replaced = running.blocks.layers.durable().get(volume, lba).is_some();
            match entry.kind {
                _ if is_replaced => {}
                Kind::Data if slot.is_some() => expected.push((lba, entry.sum)),
                Kind::Data => lost.push(lba),
                Kind::Lost | Kind::Unknown => self.report.lost_blocks += 1,
                Kind::Absent | Kind::Zero => {}
            }
        }
        for &lba in &lost {
            self.found(page_offset, What::Placeless { volume, lba, blocks: 1 }, true);
        }
        if let Some(slot) = slot {
            for lba in self.mismatches(slot, &expected)? {
                let offset = self.block_offset(slot, lba);
                self.found(offset, What::Rotten { volume, lba, blocks: 1 }, true);
                lost.push(lba);
            }
            self.advance(SLOT_BYTES);
        }
        self.report.lost_blocks += lost.len() as u64;
        for &lba in &lost {
            page.set_entry(lba, Entry { kind: Kind::Lost, ..page.entry(lba) });
        }
        Ok(!lost.is_empty())
    }

    /// Content that lies in slots of which the journal alone knows.
    fn content_in_journal(&mut self, running: &Running) -> Result<(), OpenError> {
        let notes = &running.log.facts.notes;
        for slot in notes.worn() {
            let (offset, what) = (self.block_offset(slot, 0), What::NotesCopy);
            self.report.add(Finding { offset, what, state: State::Harmless });
        }
        self.advance(notes.slots().count() as u64 * SLOT_BYTES);
        for (volume, number, group) in running.blocks.layers.durable().groups() {
            let first = number * SLOT_BLOCKS;
            let placed = group.versions.iter().filter_map(|(index, version)| match version.place {
                Place::Slot(slot) => Some((slot, first + u64::from(*index), version.sum)),
                _ => None,
            });
            for (slot, lba, sum) in placed {
                self.check_in_journal(volume, slot, &vec![(lba, sum)], true)?;
            }
        }
        for (_, write) in running.log.writes.iter() {
            let span = write.staged().write.span;
            for extent in write.extents() {
                let Body::Slot(slot) = extent.body else { continue };
                let lbas = span.lba + u64::from(extent.offset)..;
                let expected = lbas.zip(extent.sums.iter().copied()).collect();
                self.check_in_journal(span.volume, slot, &expected, false)?;
            }
        }
        Ok(())
    }

    fn check_in_journal(
        &mut self,
        volume: VolumeId,
        slot: u32,
        expected: &Expected,
        is_repairable: bool,
    ) -> Result<(), OpenError> {
        for lba in self.mismatches(slot, expected)? {
            let offset = self.block_offset(slot, lba);
            self.found(offset, What::RottenInJournal { volume, lba, blocks: 1 }, is_repairable);
        }
        Ok(())
    }

    /// Which of a slot's blocks do not match.
    fn mismatches(&mut self, slot: u32, expected: &Expected) -> Result<Vec<u64>, OpenError> {
        let (Some(&(first, _)), Some(&(last, _))) = (expected.first(), expected.last()) else {
            return Ok(Vec::new());
        };
        self.report.blocks += expected.len() as u64;
        let all = self.read(self.block_offset(slot, first), (last - first + 1) as usize * BLOCK)?;
        let mut wrong = Vec::new();
        for &(lba, sum) in expected {
            let block = match &all {
                Some(all) => Some(all.slice((lba - first) as usize * BLOCK..).slice(..BLOCK)),
                // One bad sector must not cost its neighbours.
                None => self.read(self.block_offset(slot, lba), BLOCK)?,
            };
            if block.is_none_or(|block| checksum(&block) != sum) {
                wrong.push(lba);
            }
        }
        Ok(wrong)
    }

    fn block_offset(&self, slot: u32, lba: u64) -> u64 {
        self.superblock.geometry.block_offset(u64::from(slot) * SLOT_BLOCKS + lba % SLOT_BLOCKS)
    }

    /// Opens the disk; why a brick would refuse it is a finding.
    fn recover(&mut self) -> Result<Option<Box<Running>>, OpenError> {
        match self.open(MapUse::Ignored)? {
            Ok(running) => Ok(Some(running)),
            Err(error) => {
                self.found(offset_of(&error), What::Refused(error), false);
                Ok(None)
            }
        }
    }

    /// Opens the disk; the inner error is why a brick would refuse it.
    fn open(&mut self, map: MapUse) -> Result<Result<Box<Running>, OpenError>, OpenError> {
        let mut recovery = Recovery::new(StoreConfig { map, ..self.config() });
        let mut answer = None;
        loop {
            match recovery.advance(answer.take()) {
                Next::Read { offset, length } => answer = Some(self.disk.read(offset, length)),
                Next::Flush => answer = Some(Ok(Bytes::new())),
                Next::Done(running, _) => return Ok(Ok(running)),
                Next::Refused(error @ OpenError::Io { .. }) => return Err(error),
                Next::Refused(error) => return Ok(Err(error)),
            }
        }
    }

    fn config(&self) -> StoreConfig {
        let Superblock { cluster, brick, disk_index, geometry, .. } = &self.superblock;
        let config = StoreConfig::new(*cluster, *brick, *disk_index, geometry.disk_bytes);
        StoreConfig { cache_bytes: 0, map: MapUse::Ignored, ..config }
    }

    fn found(&mut self, offset: u64, what: What, is_repairable: bool) {
        let is_damage = what != What::TornTail;
        let state = match (is_repairable, self.repair) {
            (false, _) => State::Beyond,
            (true, true) => State::Repaired,
            (true, false) if is_damage => State::Repairable,
            (true, false) => State::Harmless,
        };
        self.report.add(Finding { offset, what, state });
    }

    /// `None` when the sectors are bad.
    fn read(&mut self, offset: u64, length: usize) -> Result<Option<Bytes>, OpenError> {
        read(self.disk, offset, length)
    }

    /// Writes, if this is a repair.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), OpenError> {
        if !self.repair {
            return Ok(());
        }
        self.disk.write(offset, bytes).map_err(|fault| OpenError::Io { offset, fault })
    }

    fn sync(&mut self) -> Result<(), OpenError> {
        self.disk.sync().map_err(|fault| OpenError::Io { offset: 0, fault })
    }

    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        (self.progress)(self.done, self.total.max(self.done));
    }
}

/// The superblock that counts, if it is one of the disk that is meant.
fn superblock(disk: &mut dyn Sectors, options: &FsckOptions) -> Result<Superblock, OpenError> {
    if options.disk_bytes < SLOT_BYTES {
        return Err(OpenError::NotFormatted);
    }
    let last = options.disk_bytes / BLOCK_U64 * BLOCK_U64 - BLOCK_U64;
    let mut is_damaged = false;
    for offset in [0, last] {
        match read(disk, offset, BLOCK)?.map_or(Found::Damaged, |sector| Superblock::decode_sector(&sector)) {
            Found::Superblock(superblock) => return accept(*superblock, options),
            Found::Newer(found) => return Err(OpenError::NewerFormat { found, known: FORMAT_VERSION }),
            Found::Damaged => is_damaged = true,
            Found::Nothing => {}
        }
    }
    Err(if is_damaged { OpenError::SuperblockCorrupt } else { OpenError::NotFormatted })
}

fn accept(superblock: Superblock, options: &FsckOptions) -> Result<Superblock, OpenError> {
    let (found, needed_bytes) = (owner(&superblock), superblock.geometry.disk_bytes);
    let expected = options.owner.unwrap_or(found);
    if found.cluster != expected.cluster {
        return Err(OpenError::OtherCluster { found: found.cluster, expected: expected.cluster });
    }
    if found.brick != expected.brick {
        return Err(OpenError::OtherBrick { found: found.brick, expected: expected.brick });
    }
    if found.disk_index != expected.disk_index {
        return Err(OpenError::OtherDisk { found: found.disk_index, expected: expected.disk_index });
    }
    if options.disk_bytes < needed_bytes {
        return Err(OpenError::Truncated { disk_bytes: options.disk_bytes, needed_bytes });
    }
    Ok(superblock)
}

fn owner(superblock: &Superblock) -> Owner {
    let &Superblock { cluster, brick, disk_index, .. } = superblock;
    Owner { cluster, brick, disk_index }
}

fn read(disk: &mut dyn Sectors, offset: u64, length: usize) -> Result<Option<Bytes>, OpenError> {
    match disk.read(offset, length) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(IoFault::Unreadable) => Ok(None),
        Err(fault) => Err(OpenError::Io { offset, fault }),
    }
}

fn offset_of(error: &OpenError) -> u64 {
    match error {
        OpenError::JournalCorrupt { offset }
        | OpenError::MetadataCorrupt { offset }
        | OpenError::NotesCorrupt { offset } => *offset,
        _ => HEADERS_AT,
    }
}
