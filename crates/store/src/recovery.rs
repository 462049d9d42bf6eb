//! Opening a disk: whose it is, what the journal says, where the blocks are.
//!
//! One request to the disk at a time: superblocks, journal headers, the journal from its tail, the data that the last frame
//! brought beside it, a flush (what was read may so far be in a volatile cache only), the metadata pages.

use crate::commit::Write;
use crate::destage::need_of;
use crate::discard::Region;
use crate::io::IoFault;
use crate::journal::{Header, Journal};
use crate::machine::{Running, StoreConfig};
use crate::metadata::{PAGE_SLOTS, Page};
use crate::overlay::Setting;
use crate::pages::Home;
use crate::record::{Body, Extent, FrameHeader, Record};
use crate::superblock::{FORMAT_VERSION, Found, HEADERS_AT, SLOT_BLOCKS, SLOT_BYTES, Superblock};
use base::{BLOCK, BLOCK_U64, BrickId, Checksum, ClusterId, Stamp, VolumeId, checksum};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wire::Change;
use wire::disk::{Recovered, Staged};

/// Bytes read at a time.
const CHUNK: u64 = 1 << 20;

/// Why a disk is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No superblock.
    #[error("the disk holds no Brickwork superblock: format it, or name the right disk")]
    NotFormatted,
    /// Both superblocks are damaged.
    #[error(
        "both superblocks of the disk are damaged: replace the disk, its content comes back from the other bricks"
    )]
    SuperblockCorrupt,
    /// Of another cluster.
    #[error("the disk belongs to cluster {found}, not to {expected}: name the right disk")]
    OtherCluster {
        /// Whose it is.
        found: ClusterId,
        /// Whose it should be.
        expected: ClusterId,
    },
    /// Of another brick.
    #[error("the disk belongs to {found}, not to {expected}: name the right disk")]
    OtherBrick {
        /// Whose it is.
        found: BrickId,
        /// Whose it should be.
        expected: BrickId,
    },
    /// Another one of the brick's disks.
    #[error("the disk is number {found} of its brick, not {expected}: put the brick's disks in their order")]
    OtherDisk {
        /// Which it is.
        found: u16,
        /// Which it should be.
        expected: u16,
    },
    /// Written by a later version.
    #[error("the disk has format {found}, this version knows up to {known}: use a newer brickwork")]
    NewerFormat {
        /// The disk's format.
        found: u32,
        /// The newest format that this code knows.
        known: u32,
    },
    /// Smaller than it was.
    #[error(
        "the disk has {disk_bytes} bytes, it was formatted with {needed_bytes}: it was cut short; restore its size"
    )]
    Truncated {
        /// Its size.
        disk_bytes: u64,
        /// The size it had.
        needed_bytes: u64,
    },
    /// No journal header is whole.
    #[error(
        "both journal headers of the disk are damaged: replace the disk, its content comes back from the other bricks"
    )]
    JournalHeaderCorrupt,
    /// A journal frame that was on stable storage is damaged: what was acknowledged is missing.
    #[error(
        "the journal is damaged at byte {offset} of the disk, and acknowledged writes with it: replace the disk, its \
         content comes back from the other bricks"
    )]
    JournalCorrupt {
        /// Where, in bytes from the disk's start.
        offset: u64,
    },
    /// Two metadata pages contradict each other.
    #[error(
        "the metadata at byte {offset} of the disk contradict others: replace the disk, its content comes back from the \
         other bricks"
    )]
    MetadataCorrupt {
        /// Where, in bytes from the disk's start.
        offset: u64,
    },
    /// The disk does not answer.
    #[error("the disk failed at byte {offset} while it was being opened: {fault}")]
    Io {
        /// Where, in bytes from the disk's start.
        offset: u64,
        /// How.
        fault: IoFault,
    },
}

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
    Verify(Box<Replay>),
    Flush(Box<Replay>),
    Pages(Box<Replay>),
    Over,
}

/// What is being read from an accepted disk.
struct Replay {
    running: Box<Running>,
    header: Header,
    /// The journal's bytes from `at` on that no frame was made of yet.
    window: Vec<u8>,
    /// How many bytes of the window are used up.
    taken: usize,
    at: u64,
    /// Where the next bytes come from.
    fetched: u64,
    /// Up to here one sector is read at a time, because some cannot be read.
    careful_until: u64,
    /// Where the first frame is that is not whole; later ones are looked for from there on.
    torn: Option<u64>,
    /// The last whole frame, not replayed yet: where it begins, its end, its records.
    last: Option<(u64, u64, Vec<Record>)>,
    /// Slots that came with the last frame, and their checksums.
    unverified: VecDeque<(u32, Vec<Checksum>)>,
    /// The next page place to read, and how many are being read.
    place: u32,
    places: u32,
    /// Whose slots are: the volume, and the address in slots.
    owners: BTreeMap<u32, (VolumeId, u64)>,
}

impl Recovery {
    /// Of the disk that the configuration describes.
    pub(crate) fn new(config: StoreConfig) -> Recovery {
        Recovery { config, step: Step::Start, offset: 0 }
    }

    /// Takes the answer to the last request, if there was one.
    pub(crate) fn advance(&mut self, answer: Option<Result<Bytes, IoFault>>) -> Next {
        let next = match self.take(answer) {
            Ok(next) => next,
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
            Step::Verify(replay) => self.on_verify(replay, bytes),
            Step::Flush(mut replay) => {
                replay.places = 0;
                self.read_pages(replay)
            }
            Step::Pages(replay) => self.on_pages(replay, bytes),
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
        let headers = first.into_iter().chain(second);
        let header = headers.max_by_key(|header| header.generation).ok_or(OpenError::JournalHeaderCorrupt)?;
        let geometry = &superblock.geometry;
        let within =
            header.head - header.tail <= geometry.journal_bytes && header.pages_high <= geometry.page_count;
        if !within || !header.tail.is_multiple_of(BLOCK_U64) {
            return Err(OpenError::JournalHeaderCorrupt);
        }
        let journal = Journal::new(geometry, &header, header.tail);
        let running = Box::new(Running::new(&self.config, superblock, journal));
        self.read_journal(Box::new(Replay {
            running,
            header,
            window: Vec::new(),
            taken: 0,
            at: header.tail,
            fetched: header.tail,
            careful_until: header.tail,
            torn: None,
            last: None,
            unverified: VecDeque::new(),
            place: 0,
            places: 0,
            owners: BTreeMap::new(),
        }))
    }

    /// Asks for the next piece of the ring, or ends the reading when all of it was read.
    fn read_journal(&mut self, replay: Box<Replay>) -> Result<Next, OpenError> {
        let left = replay.end() - replay.fetched;
        if left == 0 {
            return self.end_journal(replay);
        }
        let (offset, length) = replay.piece(left);
        self.step = Step::Journal(replay);
        Ok(Next::Read { offset, length })
    }

    fn on_journal(&mut self, mut replay: Box<Replay>, bytes: Option<Bytes>) -> Result<Next, OpenError> {
        let (_, length) = replay.piece(replay.end() - replay.fetched);
        match bytes.filter(|bytes| bytes.len() == length) {
            Some(bytes) => replay.window.extend_from_slice(&bytes),
            // Whole frames beside a bad sector are whole.
            None if length > BLOCK => {
                replay.careful_until = replay.fetched + length as u64;
                return self.read_journal(replay);
            }
            // Sectors that cannot be read match no checksum, as zeros do not.
            None => replay.window.resize(replay.window.len() + length, 0),
        }
        replay.fetched += length as u64;
        replay.take_frames()?;
        self.read_journal(replay)
    }

    /// Checks the data that the last frame brought, unless its presence is certain.
    fn end_journal(&mut self, mut replay: Box<Replay>) -> Result<Next, OpenError> {
        replay.take_rest()?;
        replay.drop_last_checkpoint();
        if let Some((_, end, records)) = &replay.last
            && *end > replay.header.head
        {
            let fresh = records.iter().flat_map(Record::fresh_slots);
            replay.unverified = fresh.map(|(slot, sums)| (slot, sums.to_vec())).collect();
        }
        self.verify(replay)
    }

    fn verify(&mut self, mut replay: Box<Replay>) -> Result<Next, OpenError> {
        let Some(&(slot, _)) = replay.unverified.front() else {
            replay.replay_last();
            (replay.running.journal.head, replay.running.journal.durable) = (replay.at, replay.at);
            self.step = Step::Flush(replay);
            return Ok(Next::Flush);
        };
        if slot >= replay.running.geometry.slot_count {
            return Err(OpenError::JournalCorrupt { offset: replay.offset(replay.at) });
        }
        let offset = replay.running.geometry.block_offset(u64::from(slot) * SLOT_BLOCKS);
        self.step = Step::Verify(replay);
        Ok(Next::Read { offset, length: SLOT_BYTES as usize })
    }

    fn on_verify(&mut self, mut replay: Box<Replay>, bytes: Option<Bytes>) -> Result<Next, OpenError> {
        let (_, sums) = replay.unverified.pop_front().expect("a slot is being verified");
        let matches = |bytes: Bytes| bytes.chunks(BLOCK).map(checksum).eq(sums.iter().copied());
        if !bytes.is_some_and(matches) {
            // The frame's data did not make it: the frame was never acknowledged, and the next one takes its place.
            let (begin, ..) = replay.last.take().expect("the last frame is being verified");
            replay.running.stats.torn_tails = 1;
            replay.unverified.clear();
            replay.at = begin;
        }
        self.verify(replay)
    }

    fn read_pages(&mut self, mut replay: Box<Replay>) -> Result<Next, OpenError> {
        let left = replay.header.pages_high - replay.place;
        if left == 0 {
            return self.end(replay);
        }
        // After an unreadable stretch its pages are asked for one by one.
        let most = if replay.places == 1 { 1 } else { (CHUNK / BLOCK_U64) as u32 };
        replay.places = left.min(most);
        let offset = replay.running.geometry.page_offset(replay.place);
        let length = replay.places as usize * BLOCK;
        self.step = Step::Pages(replay);
        Ok(Next::Read { offset, length })
    }

    fn on_pages(&mut self, mut replay: Box<Replay>, bytes: Option<Bytes>) -> Result<Next, OpenError> {
        let count = replay.places;
        match bytes.filter(|bytes| bytes.len() == count as usize * BLOCK) {
            Some(bytes) => {
                for (i, page) in bytes.chunks(BLOCK).enumerate() {
                    replay.take_page(replay.place + i as u32, page)?;
                }
                replay.place += count;
            }
            None if count > 1 => replay.places = 1,
            None => {
                replay.take_page(replay.place, &[])?;
                replay.place += 1;
            }
        }
        self.read_pages(replay)
    }

    fn end(&mut self, replay: Box<Replay>) -> Result<Next, OpenError> {
        let mut running = replay.running;
        running.pages.high = replay.header.pages_high;
        running.forget_doomed();
        let staged: Vec<Stamp> = running.writes.keys().copied().collect();
        for (slot, owner) in running.slots_in_journal() {
            // A slot that is at home already must be so at the very blocks that the journal has it for.
            let at_home = owner.is_some() && replay.owners.get(&slot).copied() == owner;
            if !at_home && !running.slots.mark(slot) {
                let offset = running.geometry.block_offset(u64::from(slot) * SLOT_BLOCKS);
                return Err(OpenError::MetadataCorrupt { offset });
            }
        }
        let need = need_of(&running.durable, &running);
        running.durable.need = running.reserve(need);
        staged.into_iter().for_each(|stamp| running.reserve_recovered(stamp));
        running.durable_since = (!running.durable.is_empty()).then_some(running.now);
        running.notes_bytes = running.notes.iter().map(|(key, value)| key.len() + value.len() + 8).sum();
        let recovered = Recovered {
            staged: running.writes.values().map(|write| write.staged.clone()).collect(),
            completions: running.effects.iter().collect(),
            notes: running.notes.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        };
        let more = !running.discards.is_empty();
        running.cycle.want(more);
        Ok(Next::Done(running, Box::new(recovered)))
    }
}

impl Replay {
    /// One past the last byte that a frame may have.
    fn end(&self) -> u64 {
        self.header.tail + self.running.journal.capacity()
    }

    /// Where a position is on the disk.
    fn offset(&self, position: u64) -> u64 {
        self.running.geometry.journal_at + position % self.running.journal.capacity()
    }

    /// The next piece of the ring, as `(offset, length)`.
    fn piece(&self, left: u64) -> (u64, usize) {
        let to_end = self.running.journal.capacity() - self.fetched % self.running.journal.capacity();
        let most = if self.fetched < self.careful_until { BLOCK_U64 } else { CHUNK };
        (self.offset(self.fetched), left.min(to_end).min(most) as usize)
    }

    /// Takes what frames the window holds.
    fn take_frames(&mut self) -> Result<(), OpenError> {
        while self.torn.is_none() && self.window.len() - self.taken >= BLOCK {
            let left = &self.window[self.taken..];
            let header = FrameHeader::decode(left, self.at, self.running.seed);
            let Some(header) = header.filter(|header| header.position + header.length <= self.end()) else {
                self.torn = Some(self.at);
                break;
            };
            if (left.len() as u64) < header.length {
                break;
            }
            self.take_frame(&header);
        }
        if self.torn.is_some() {
            return self.look_for_later_frames();
        }
        self.window.drain(..self.taken);
        self.taken = 0;
        Ok(())
    }

    fn take_frame(&mut self, header: &FrameHeader) {
        let frame = Bytes::copy_from_slice(&self.window[self.taken..self.taken + header.length as usize]);
        match header.records(&frame, self.running.seed) {
            Some(records) => {
                self.replay_last();
                self.taken += frame.len();
                self.at += header.length;
                self.last = Some((header.position, self.at, records));
            }
            None => {
                self.running.stats.torn_tails = 1;
                self.torn = Some(self.at);
            }
        }
    }

    /// What is left in the window when the ring was read once round is no whole frame.
    fn take_rest(&mut self) -> Result<(), OpenError> {
        self.torn.get_or_insert(self.at);
        self.look_for_later_frames()?;
        if self.at < self.header.head {
            return Err(OpenError::JournalCorrupt { offset: self.offset(self.at) });
        }
        Ok(())
    }

    /// A checkpoint at the very end, whose cycle did not end, may have taken the last of the room. It says nothing that the
    /// journal before it does not say: it is dropped, so that the next one finds room in its place.
    ///
    /// Not when a torn frame stands behind it: that one found room, so there is enough, and its header would make a frame
    /// that took the checkpoint's place, and was torn as well, look like damage.
    fn drop_last_checkpoint(&mut self) {
        let Some((begin, _, records)) = &self.last else { return };
        let is_checkpoint = records.iter().any(|record| matches!(record, Record::Checkpoint { .. }));
        let is_behind = *begin > self.header.tail && *begin >= self.header.head;
        if is_checkpoint && is_behind && self.running.stats.torn_tails == 0 {
            self.at = *begin;
            self.last = None;
        }
    }

    /// Behind a torn frame there can be none: only one is in flight. If there is, the torn one was whole once. What has
    /// been looked at is given away.
    fn look_for_later_frames(&mut self) -> Result<(), OpenError> {
        let begin = self.fetched - self.window.len() as u64;
        for (i, sector) in self.window.chunks_exact(BLOCK).enumerate() {
            let position = begin + i as u64 * BLOCK_U64;
            if position > self.at && FrameHeader::decode(sector, position, self.running.seed).is_some() {
                return Err(OpenError::JournalCorrupt { offset: self.offset(self.at) });
            }
        }
        self.window.clear();
        self.taken = 0;
        Ok(())
    }

    fn replay_last(&mut self) {
        let Some((_, _, records)) = self.last.take() else { return };
        records.into_iter().for_each(|record| self.running.replay(record));
    }

    /// Takes what is at a place of the page region; nothing when it cannot be read.
    fn take_page(&mut self, place: u32, bytes: &[u8]) -> Result<(), OpenError> {
        let running = &mut self.running;
        let corrupt = OpenError::MetadataCorrupt { offset: running.geometry.page_offset(place) };
        let decoded = Page::decode(bytes, place, running.geometry.slot_count, running.seed);
        let Some(key) = decoded.key.filter(|key| key.page < 1 << 36) else {
            if decoded.damaged > 0 || bytes.is_empty() || decoded.key.is_some() {
                // It may have been any volume's. Its place is not used again.
                running.pages.lost += 1;
                running.pages.places.mark(place);
            }
            return Ok(());
        };
        running.pages.places.mark(place);
        if !running.pages.add(key, Home { place, slots: decoded.page.slot_mask() }) {
            return Err(corrupt);
        }
        for number in key.page * PAGE_SLOTS..(key.page + 1) * PAGE_SLOTS {
            let Some(slot) = decoded.page.slot(number * SLOT_BLOCKS) else { continue };
            if !running.slots.mark(slot) {
                return Err(corrupt);
            }
            self.owners.insert(slot, (key.volume, number));
        }
        Ok(())
    }
}

impl Running {
    /// Does again what a record says.
    fn replay(&mut self, record: Record) {
        match record {
            Record::Stage { staged, extents, .. } => self.replay_stage(staged, extents),
            Record::Apply { stamp } => self.replay_apply(stamp, None),
            Record::Image { stamp, extents } => self.replay_apply(stamp, Some(extents)),
            Record::Drop { stamp } => self.forget(stamp),
            Record::Mend { span, width, stamps, extents, .. } => {
                self.discards.end_at(&span);
                self.durable.put(span, Stamp::ZERO, Setting::Each(width, &stamps), &extents);
            }
            Record::Note { key, value: Some(value) } => drop(self.notes.insert(key, value)),
            Record::Note { key, value: None } => drop(self.notes.remove(&key)),
            Record::Discard { volume } => self.replay_discard(Region::volume(volume)),
            Record::DiscardStretch { volume, stretch } => {
                self.replay_discard(Region { volume, stretch: Some(stretch) });
            }
            Record::Remember { effects } => {
                effects.into_iter().for_each(|effect| self.effects.insert(effect))
            }
            Record::Checkpoint { notes, effects, discards } => {
                self.notes = notes.into_iter().collect();
                effects.into_iter().for_each(|effect| self.effects.insert(effect));
                self.discards.reset(discards);
            }
        }
    }

    fn replay_stage(&mut self, staged: Staged, extents: Vec<Extent>) {
        let stamp = staged.write.stamp;
        self.forget(stamp);
        self.discards.end_at(&staged.write.span);
        let previous = if let Change::Xor { previous, .. } = &staged.change { previous.len() * 8 } else { 0 };
        let cost =
            crate::record::inline_bytes(&extents) + staged.write.span.count as usize * 28 + 160 + previous;
        self.live_cost += cost;
        self.writes.insert(stamp, Write::recovered(staged, extents, cost));
    }

    fn replay_apply(&mut self, stamp: Stamp, image: Option<Vec<Extent>>) {
        // A write that is not known is at home: it was applied before the tail.
        let Some(write) = self.writes.remove(&stamp) else { return };
        self.live_cost -= write.cost;
        self.effects.insert(write.effect());
        let extents = image.as_ref().unwrap_or(&write.extents);
        self.durable.put(write.staged.write.span, stamp, write.setting(), extents);
    }

    fn replay_discard(&mut self, region: Region) {
        self.durable.remove_region(region);
        self.writes_in(region).into_iter().for_each(|stamp| self.forget(stamp));
        self.discards.log(region);
    }

    /// Writes that a checkpoint carried forward although their blocks were being given back.
    fn forget_doomed(&mut self) {
        let doomed: Vec<Stamp> = self.discards.logged().flat_map(|region| self.writes_in(region)).collect();
        doomed.into_iter().for_each(|stamp| self.forget(stamp));
    }

    fn forget(&mut self, stamp: Stamp) {
        self.live_cost -= self.writes.remove(&stamp).map_or(0, |write| write.cost);
    }

    /// The slots that the journal holds, and which blocks they are for if that is decided. Those that a later large write
    /// has replaced are free again.
    fn slots_in_journal(&mut self) -> Vec<(u32, Option<(VolumeId, u64)>)> {
        self.durable.forget_replaced();
        let journalled = self.durable.groups();
        let journalled =
            journalled.filter_map(|(volume, number, group)| Some((group.slot?, Some((volume, number)))));
        let staged = self.writes.values().flat_map(|write| &write.extents);
        let staged = staged.filter_map(|extent| match extent.body {
            Body::Slot(slot) => Some((slot, None)),
            _ => None,
        });
        journalled.chain(staged).collect()
    }
}
