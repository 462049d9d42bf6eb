//! Opening a disk: whose it is, what the journal says, where the blocks are.
//!
//! One request to the disk at a time: superblocks, journal headers, the journal from its tail, the data that the last frame
//! brought beside it, a flush (what was read may so far be in a volatile cache only), the map of metadata pages and those pages that it does not
//! know, the sheets of notes. If the map cannot be trusted, all begins again, and all pages are read.

use crate::blocks::Blocks;
use crate::config::{MapUse, StoreConfig};
use crate::frames::Frames;
use crate::header::Header;
use crate::io::IoFault;
use crate::open_error::OpenError;
use crate::page_map::{Looked, MapScan, Untrusted};
use crate::page_scan::PageScan;
use crate::record::Record;
use crate::running::Running;
use crate::superblock::{FORMAT_VERSION, Found, Geometry, HEADERS_AT, SLOT_BLOCKS, SLOT_BYTES, Superblock};
use base::{BLOCK, BLOCK_U64, Checksum, checksum};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::disk::Recovered;

/// What opening needs next.
pub(crate) enum Next {
    Read { offset: u64, length: usize },
    Flush,
    Done(Box<Running>, Box<Recovered>),
    Refused(OpenError),
}

/// A disk being opened.
pub(crate) struct Recovery {
    config: StoreConfig,
    step: Step,
    /// Whether the map of pages is read: not when it was found damaged.
    reads_map: bool,
    /// Where the last request went, for errors.
    offset: u64,
}

enum Step {
    Start,
    /// The first superblock is asked for.
    Superblock,
    /// Its copy is, because the first one is no good.
    SuperblockCopy {
        damaged: bool,
    },
    /// The first header, once it was read; then the second one is asked for.
    Headers(Box<Superblock>, Option<Option<Header>>),
    Journal(Box<Replay>),
    /// Slots that came with the last frame are being read, and have these checksums.
    Verify(Box<Replay>, VecDeque<(u32, Vec<Checksum>)>),
    Flush(Box<Replay>),
    Map(Box<Running>, Box<MapScan>),
    Pages(Box<Running>, PageScan),
    /// All pages are being read, beside what is known of them by the map.
    Compare(Box<Running>, PageScan, Box<Comparison>),
    /// A slot of a sheet of notes is being read.
    Sheets(Box<Running>, PageScan),
    Over,
}

/// An accepted disk whose journal is being read.
struct Replay {
    running: Running,
    frames: Frames,
    header: Header,
}

/// What all pages say, whatever the map does.
struct Comparison {
    blocks: Blocks,
    pages: PageScan,
}

impl Replay {
    fn replay(&mut self, records: Vec<Record>) {
        records.into_iter().for_each(|record| self.running.replay(record));
    }
}

impl Recovery {
    /// Of the disk that the configuration describes.
    pub(crate) fn new(config: StoreConfig) -> Recovery {
        let reads_map = config.map != MapUse::Ignored;
        Recovery { config, step: Step::Start, reads_map, offset: 0 }
    }

    /// Takes the answer to the last request, if there was one.
    pub(crate) fn advance(&mut self, answer: Option<Result<Bytes, IoFault>>) -> Next {
        let next = match self.take(answer) {
            Ok(next) => next,
            // Of a map that contradicts itself, or the pages.
            Err(OpenError::MetadataCorrupt { .. }) if self.reads_map => {
                (self.reads_map, self.step) = (false, Step::Start);
                return self.advance(None);
            }
            Err(error) => Next::Refused(error),
        };
        if let Next::Read { offset, .. } = next {
            self.offset = offset;
        }
        next
    }

    fn take(&mut self, answer: Option<Result<Bytes, IoFault>>) -> Result<Next, OpenError> {
        let step = core::mem::replace(&mut self.step, Step::Over);
        let bytes = match answer {
            Some(Err(fault @ IoFault::Failed(_))) => {
                return Err(OpenError::Io { offset: self.offset, fault });
            }
            Some(Err(IoFault::Unreadable | IoFault::Left)) => None,
            Some(Ok(bytes)) => Some(bytes),
            None => None,
        };
        match step {
            Step::Start if self.config.disk_bytes < SLOT_BYTES => Err(OpenError::NotFormatted),
            Step::Start => {
                self.step = Step::Superblock;
                Ok(Next::Read { offset: 0, length: BLOCK })
            }
            Step::Superblock => self.on_superblock(bytes),
            Step::SuperblockCopy { damaged } => self.on_superblock_copy(bytes, damaged),
            Step::Headers(superblock, None) => Ok(self.on_first_header(superblock, bytes)),
            Step::Headers(superblock, Some(first)) => self.on_headers(&superblock, first, bytes),
            Step::Journal(replay) => self.on_journal(replay, bytes),
            Step::Verify(replay, slots) => self.on_verify(replay, slots, bytes),
            Step::Flush(replay) => {
                let Replay { mut running, frames, header } = *replay;
                let wanted = running.slots_to_bring_home();
                let (geometry, seed) = (*running.device.geometry(), running.device.seed());
                let pages = PageScan::new(geometry, seed, header.pages_high, wanted.iter().copied());
                let last_checkpoint = frames.last_checkpoint();
                let map = &running.destage.map;
                let scan = MapScan::new(map, seed, header.tail, last_checkpoint, pages);
                match scan.filter(|_| self.reads_map) {
                    Some(scan) => Ok(self.read_map(Box::new(running), Box::new(scan))),
                    None => {
                        self.reads_map = false;
                        running.destage.map.begin_anew(running.device.now(), header.pages_high);
                        let pages = PageScan::new(geometry, seed, header.pages_high, wanted);
                        self.read_pages(Box::new(running), pages)
                    }
                }
            }
            Step::Map(mut running, mut scan) => {
                let running_parts = &mut *running;
                let looked = scan.take(bytes, &mut running_parts.blocks, &mut running_parts.destage.map);
                match looked {
                    Ok(Looked::More) => Ok(self.read_map(running, scan)),
                    Ok(Looked::Whole) => self.read_pages(running, scan.into_pages()),
                    Err(Untrusted) => Err(OpenError::MetadataCorrupt { offset: self.offset }),
                }
            }
            Step::Pages(mut running, mut pages) => {
                pages.take(bytes, &mut running.blocks)?;
                self.read_pages(running, pages)
            }
            Step::Compare(running, pages, mut all) => {
                let Comparison { blocks, pages: all_pages } = &mut *all;
                all_pages.take(bytes, blocks)?;
                self.compare(running, pages, all)
            }
            Step::Sheets(mut running, pages) => {
                let geometry = *running.device.geometry();
                running.log.facts.notes.take(bytes.as_ref()).map_err(|slot| notes_damage(&geometry, slot))?;
                self.read_sheets(running, pages)
            }
            Step::Over => unreachable!("a disk is opened once"),
        }
    }

    fn on_superblock(&mut self, sector: Option<Bytes>) -> Result<Next, OpenError> {
        match sector.map_or(Found::Damaged, |sector| Superblock::decode_sector(&sector)) {
            Found::Superblock(superblock) => self.accept(*superblock),
            Found::Newer(found) => Err(OpenError::NewerFormat { found, known: FORMAT_VERSION }),
            other => {
                self.step = Step::SuperblockCopy { damaged: matches!(other, Found::Damaged) };
                let offset = self.config.disk_bytes / BLOCK_U64 * BLOCK_U64 - BLOCK_U64;
                Ok(Next::Read { offset, length: BLOCK })
            }
        }
    }

    fn on_superblock_copy(&mut self, sector: Option<Bytes>, damaged: bool) -> Result<Next, OpenError> {
        match sector.map_or(Found::Damaged, |sector| Superblock::decode_sector(&sector)) {
            Found::Superblock(superblock) => self.accept(*superblock),
            Found::Newer(found) => Err(OpenError::NewerFormat { found, known: FORMAT_VERSION }),
            Found::Damaged => Err(OpenError::SuperblockCorrupt),
            Found::Nothing if damaged => Err(OpenError::SuperblockCorrupt),
            Found::Nothing => Err(OpenError::NotFormatted),
        }
    }

    fn accept(&mut self, superblock: Superblock) -> Result<Next, OpenError> {
        let (config, needed_bytes) = (&self.config, superblock.geometry.disk_bytes);
        if superblock.cluster != config.cluster {
            return Err(OpenError::OtherCluster { found: superblock.cluster, expected: config.cluster });
        }
        if superblock.brick != config.brick {
            return Err(OpenError::OtherBrick { found: superblock.brick, expected: config.brick });
        }
        if superblock.disk_index != config.disk_index {
            return Err(OpenError::OtherDisk { found: superblock.disk_index, expected: config.disk_index });
        }
        if config.disk_bytes < needed_bytes {
            return Err(OpenError::Truncated { disk_bytes: config.disk_bytes, needed_bytes });
        }
        self.step = Step::Headers(Box::new(superblock), None);
        Ok(Next::Read { offset: HEADERS_AT, length: BLOCK })
    }

    fn on_first_header(&mut self, superblock: Box<Superblock>, sector: Option<Bytes>) -> Next {
        let header = sector.and_then(|sector| Header::decode_sector(&sector, superblock.seed()));
        self.step = Step::Headers(superblock, Some(header));
        Next::Read { offset: HEADERS_AT + BLOCK_U64, length: BLOCK }
    }

    fn on_headers(
        &mut self,
        superblock: &Superblock,
        first: Option<Header>,
        sector: Option<Bytes>,
    ) -> Result<Next, OpenError> {
        let second = sector.and_then(|sector| Header::decode_sector(&sector, superblock.seed()));
        let headers = || first.into_iter().chain(second);
        let header =
            headers().max_by_key(|header| header.generation).ok_or(OpenError::JournalHeaderCorrupt)?;
        // Where the other one is not the one before, this may be the one before: then it names a map that a later cycle went on with.
        let has_before = |of: Header| of.generation + 1 == header.generation;
        self.reads_map &= header.generation == 0 || headers().any(has_before);
        let geometry = &superblock.geometry;
        let within =
            header.head - header.tail <= geometry.journal_bytes && header.pages_high <= geometry.page_count;
        if !within || !header.tail.is_multiple_of(BLOCK_U64) {
            return Err(OpenError::JournalHeaderCorrupt);
        }
        let running = Running::new(&self.config, superblock, &header);
        let frames = Frames::new(*running.log.journal(), header, superblock.seed());
        self.read_journal(Box::new(Replay { running, frames, header }))
    }

    /// Asks for the next piece of the ring, or ends the reading when all of it was read.
    fn read_journal(&mut self, mut replay: Box<Replay>) -> Result<Next, OpenError> {
        let Some((offset, length)) = replay.frames.piece() else {
            // The data that the last frame brought is checked, unless its presence is certain.
            let unverified = replay.frames.end_reading()?;
            return self.verify(replay, unverified.into());
        };
        self.step = Step::Journal(replay);
        Ok(Next::Read { offset, length })
    }

    fn on_journal(&mut self, mut replay: Box<Replay>, bytes: Option<Bytes>) -> Result<Next, OpenError> {
        replay.frames.take(bytes)?;
        let records = replay.frames.take_records();
        replay.replay(records);
        self.read_journal(replay)
    }

    fn verify(
        &mut self,
        mut replay: Box<Replay>,
        slots: VecDeque<(u32, Vec<Checksum>)>,
    ) -> Result<Next, OpenError> {
        let geometry = *replay.running.device.geometry();
        let Some(&(slot, _)) = slots.front() else {
            let records = replay.frames.take_last();
            replay.replay(records);
            replay.running.log.resume_at(replay.frames.head(), replay.frames.has_torn_tail());
            self.step = Step::Flush(replay);
            return Ok(Next::Flush);
        };
        if slot >= geometry.slot_count {
            return Err(replay.frames.damage());
        }
        let offset = geometry.block_offset(u64::from(slot) * SLOT_BLOCKS);
        self.step = Step::Verify(replay, slots);
        Ok(Next::Read { offset, length: SLOT_BYTES as usize })
    }

    fn on_verify(
        &mut self,
        mut replay: Box<Replay>,
        mut slots: VecDeque<(u32, Vec<Checksum>)>,
        bytes: Option<Bytes>,
    ) -> Result<Next, OpenError> {
        let (_, sums) = slots.pop_front().expect("a slot is being verified");
        let matches = |bytes: Bytes| bytes.chunks(BLOCK).map(checksum).eq(sums.iter().copied());
        if !bytes.is_some_and(matches) {
            replay.frames.drop_last();
            slots.clear();
        }
        self.verify(replay, slots)
    }

    fn read_map(&mut self, running: Box<Running>, scan: Box<MapScan>) -> Next {
        let (offset, length) = scan.next().expect("it says when it is whole");
        self.step = Step::Map(running, scan);
        Next::Read { offset, length }
    }

    fn read_pages(&mut self, running: Box<Running>, mut pages: PageScan) -> Result<Next, OpenError> {
        if let Some((offset, length)) = pages.next() {
            self.step = Step::Pages(running, pages);
            return Ok(Next::Read { offset, length });
        }
        if self.config.map == MapUse::Compared && self.reads_map {
            let all = Comparison { blocks: running.blank_blocks(&self.config), pages: pages.of_all() };
            return self.compare(running, pages, Box::new(all));
        }
        self.read_sheets(running, pages)
    }

    fn compare(
        &mut self,
        running: Box<Running>,
        pages: PageScan,
        mut all: Box<Comparison>,
    ) -> Result<Next, OpenError> {
        if let Some((offset, length)) = all.pages.next() {
            self.step = Step::Compare(running, pages, all);
            return Ok(Next::Read { offset, length });
        }
        let is_true = running.blocks.is_same(&all.blocks, all.pages.damaged());
        assert!(is_true, "the map of pages does not say what the pages say");
        self.read_sheets(running, pages)
    }

    fn read_sheets(&mut self, mut running: Box<Running>, pages: PageScan) -> Result<Next, OpenError> {
        running.is_mapped = self.reads_map;
        if let Some(slot) = running.log.facts.notes.to_read() {
            let geometry = *running.device.geometry();
            if slot >= geometry.slot_count {
                return Err(notes_damage(&geometry, slot));
            }
            let offset = geometry.block_offset(u64::from(slot) * SLOT_BLOCKS);
            self.step = Step::Sheets(running, pages);
            return Ok(Next::Read { offset, length: SLOT_BYTES as usize });
        }
        let recovered = running.end_replay(&pages).map_err(|slot| {
            let offset = running.device.geometry().block_offset(u64::from(slot) * SLOT_BLOCKS);
            OpenError::MetadataCorrupt { offset }
        })?;
        Ok(Next::Done(running, Box::new(recovered)))
    }
}

/// No copy of this slot of notes can be read.
fn notes_damage(geometry: &Geometry, slot: u32) -> OpenError {
    OpenError::NotesCorrupt { offset: geometry.block_offset(u64::from(slot) * SLOT_BLOCKS) }
}
