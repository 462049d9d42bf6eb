//! Reading committed blocks: from the layers in memory, the cache, then the disk.
//!
//! A read is resolved from the start again whenever something it waited for has come, and what it fetched counts only as long
//! as it still is what the metadata name. So nothing that changes meanwhile can make it return a mixture.

use crate::io::IoKind;
use crate::machine::{Purpose, Running};
use crate::metadata::{Entry, Key, Kind, Page};
use crate::overlay::{Place, Version};
use crate::record::WIDTH_MAX;
use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK, Checksum, Stamp, VolumeId, checksum};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::Span;
use wire::disk::{Blocks, Contested, Reply, StoreError, Token};

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reader {
    /// The participant.
    Participant(Token),
    /// The application of a delta, for the parity that it changes.
    Apply(Stamp),
}

/// What a read is to find out, beside stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// Nothing.
    Stamps,
    /// The content.
    Content,
    /// Whether what the disk holds matches its checksum. Past the cache, and leaving no trace in it.
    Check,
}

/// A read under way.
#[derive(Debug)]
pub(crate) struct ReadOp {
    reader: Reader,
    span: Span,
    width: u8,
    wanted: Wanted,
    /// Until the first pass: other bricks were asked for the read as well.
    contested: Option<Contested>,
    /// Blocks that came from the disk, by index: from where, which checksum was expected, and the content if it matched.
    fetched: BTreeMap<u32, Fetched>,
    /// The buffers that came from the disk.
    buffers: Vec<Bytes>,
    /// Requests to the disk not answered yet.
    waiting: usize,
    pinned: Vec<Key>,
}

/// A block that came from the disk.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    physical: u64,
    sum: Checksum,
    /// Which of the read's buffers it is in (none is kept for a check), and where, if it matched.
    place: Option<(usize, usize)>,
}

impl ReadOp {
    /// The answer when the disk failed.
    pub(crate) fn refusal(&self) -> Option<Reply> {
        match self.reader {
            Reader::Participant(token) => Some(Reply::Read { token, result: Err(StoreError::Failed) }),
            Reader::Apply(_) => None,
        }
    }
}

/// Adjacent blocks that one request reads.
#[derive(Debug)]
pub(crate) struct Run {
    first: u64,
    /// Index within the read, and expected checksum.
    blocks: Vec<(u32, Checksum)>,
}

/// What a pass over a read's blocks has found, and what it misses.
#[derive(Default)]
struct Pass {
    blocks: Blocks,
    pages: Vec<Key>,
    runs: Vec<Run>,
    /// A stretch of one buffer that is still growing: `(buffer, from, to)`. Neighbours in a buffer leave as one part,
    /// which costs one reference for all of them.
    stretch: Option<(Bytes, usize, usize)>,
}

impl Pass {
    /// Adds one block that stands alone.
    fn push(&mut self, block: Bytes) {
        self.close();
        self.blocks.content.push(block);
    }

    /// Adds the block at `offset` of a buffer.
    fn push_from(&mut self, buffer: &Bytes, offset: usize) {
        match &mut self.stretch {
            Some((open, _, to)) if *to == offset && open.as_ptr() == buffer.as_ptr() => *to += BLOCK,
            _ => {
                self.close();
                self.stretch = Some((buffer.clone(), offset, offset + BLOCK));
            }
        }
    }

    /// Ends the growing stretch.
    fn close(&mut self) {
        if let Some((buffer, from, to)) = self.stretch.take() {
            self.blocks.content.push(buffer.slice(from..to));
        }
    }
}

/// Where a committed block is.
enum Source {
    Memory(Bytes),
    Disk {
        physical: u64,
        sum: Checksum,
    },
    Zero,
    Bad,
    /// Not known before this page is in memory.
    Missing(Key),
}

impl Running {
    pub(crate) fn on_read(
        &mut self,
        token: Token,
        span: Span,
        width: u8,
        wanted: Wanted,
        contested: Option<Contested>,
    ) {
        let sound = span.is_valid() && (1..=WIDTH_MAX).contains(&width);
        let full = self.reads.len() + self.held_reads.len() >= self.limits.reads_max;
        if !sound || full {
            let error = if sound { StoreError::Busy } else { StoreError::Failed };
            return self.reply(Reply::Read { token, result: Err(error) });
        }
        let mut read = self.new_read(Reader::Participant(token), span, width, wanted);
        if self.is_worked_on(&span) {
            return self.held_reads.push(read);
        }
        if wanted == Wanted::Check {
            self.look_at_pages(&span, width);
        }
        read.contested = contested;
        self.start_read(read);
    }

    /// Reads the parity that the delta of write `stamp` changes.
    pub(crate) fn read_base(&mut self, stamp: Stamp, span: Span) {
        let read = self.new_read(Reader::Apply(stamp), span, 1, Wanted::Content);
        self.start_read(read);
    }

    /// Starts the reads that waited for works on their blocks.
    pub(crate) fn release_reads(&mut self) {
        let (held, free): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.held_reads).into_iter().partition(|read| self.is_worked_on(&read.span));
        self.held_reads = held;
        free.into_iter().for_each(|read| self.start_read(read));
    }

    pub(crate) fn on_allocation(&mut self, token: Token, span: Span) {
        let mut runs: Vec<(u32, bool)> = Vec::new();
        let mut lba = span.lba;
        let end = span.lba.saturating_add(u64::from(span.count));
        while lba < end {
            let count = self.run_length(span.volume, lba).min(end - lba) as u32;
            let data = self.holds_data(span.volume, lba);
            match runs.last_mut() {
                Some((length, last)) if *last == data => *length += count,
                _ => runs.push((count, data)),
            }
            lba += u64::from(count);
        }
        self.reply(Reply::Allocation { token, result: Ok(runs) });
    }

    pub(crate) fn on_page(&mut self, key: Key, bytes: Option<Bytes>) {
        let Some(readers) = self.loading.remove(&key) else { return };
        if let Some(home) = self.pages.home(key).filter(|_| !self.pages.is_resident(key)) {
            let decoded = bytes.map(|b| Page::decode(&b, home.place, self.geometry.slot_count, self.seed));
            let page = decoded.filter(|decoded| decoded.key == Some(key)).map(|decoded| decoded.page);
            let page = page.unwrap_or_else(|| Page::of(Kind::Unknown));
            self.pages.put(key, page);
            self.pages.update(key, |_| ());
        }
        for id in readers {
            let Some(read) = self.reads.get_mut(&id) else { continue };
            if self.pages.is_resident(key) {
                self.pages.pin(key);
                read.pinned.push(key);
            }
            read.waiting -= 1;
            if read.waiting == 0 {
                self.resolve(id);
            }
        }
        self.write_home();
    }

    pub(crate) fn on_blocks(&mut self, id: u64, run: Run, bytes: Option<Bytes>) {
        let Some(mut read) = self.reads.remove(&id) else { return };
        read.waiting -= 1;
        let expected = run.blocks.len() * BLOCK;
        match bytes.filter(|bytes| bytes.len() == expected) {
            Some(bytes) => self.take_run(&mut read, &run, &bytes),
            None if run.blocks.len() > 1 => {
                // One bad sector must not cost its neighbours: ask for each block alone.
                read.waiting += run.blocks.len();
                for (i, &block) in run.blocks.iter().enumerate() {
                    let alone = Run { first: run.first + i as u64, blocks: vec![block] };
                    self.fetch(id, alone, None);
                }
            }
            None => {
                let (index, sum) = run.blocks[0];
                read.fetched.insert(index, Fetched { physical: run.first, sum, place: None });
                self.cache.forget(run.first, 1);
            }
        }
        let done = read.waiting == 0;
        self.reads.insert(id, read);
        if done {
            self.resolve(id);
        }
    }

    /// Another brick reads for whoever asked. What else the read waits for finds nobody.
    pub(crate) fn on_left(&mut self, id: u64) {
        let Some(read) = self.reads.remove(&id) else { return };
        read.pinned.iter().for_each(|&key| self.pages.unpin(key));
        if let Reader::Participant(token) = read.reader {
            self.reply(Reply::Read { token, result: Err(StoreError::Left) });
        }
    }

    /// Asks for a page unless it is on its way; `reader` is told when it is there.
    pub(crate) fn load_page(&mut self, key: Key, reader: Option<u64>, contested: Option<Contested>) {
        let on_its_way = self.loading.contains_key(&key);
        self.loading.entry(key).or_default().extend(reader);
        if !on_its_way {
            self.ask_page(key, contested);
        }
    }

    pub(crate) fn ask_page(&mut self, key: Key, contested: Option<Contested>) {
        let place = self.pages.home(key).expect("a page to load has a home").place;
        let offset = self.geometry.page_offset(place);
        self.ask(Purpose::Page(key), IoKind::Read { offset, length: BLOCK, contested });
    }

    fn new_read(&self, reader: Reader, span: Span, width: u8, wanted: Wanted) -> ReadOp {
        ReadOp {
            reader,
            span,
            width,
            wanted,
            contested: None,
            fetched: BTreeMap::new(),
            buffers: Vec::new(),
            waiting: 0,
            pinned: Vec::new(),
        }
    }

    fn start_read(&mut self, read: ReadOp) {
        self.next_read += 1;
        self.reads.insert(self.next_read, read);
        self.resolve(self.next_read);
    }

    /// Answers the read if all that it needs is there; asks for the rest otherwise.
    fn resolve(&mut self, id: u64) {
        let mut read = self.reads.remove(&id).expect("a read to resolve is under way");
        let mut pass = Pass::default();
        for index in 0..read.span.count {
            self.resolve_block(&read, index, &mut pass);
        }
        pass.close();
        pass.pages.sort_unstable();
        pass.pages.dedup();
        if pass.pages.is_empty() && pass.runs.is_empty() {
            return self.finish_read(read, pass.blocks);
        }
        read.waiting = pass.pages.len() + if pass.pages.is_empty() { pass.runs.len() } else { 0 };
        let contested = self.contested_by_one_request(&mut read, &pass);
        self.reads.insert(id, read);
        if pass.pages.is_empty() {
            pass.runs.into_iter().for_each(|run| self.fetch(id, run, contested.clone()));
        } else {
            pass.pages.into_iter().for_each(|key| self.load_page(key, Some(id), contested.clone()));
        }
    }

    /// What the requests of this pass say of the read's contest. Only a single request can be left to another brick: a read
    /// that its first pass serves from memory, or by several requests, is served here in any case.
    fn contested_by_one_request(&self, read: &mut ReadOp, pass: &Pass) -> Option<Contested> {
        let contested = read.contested.take()?;
        let requests = match pass.pages.is_empty() {
            true => pass.runs.len(),
            false => pass.pages.iter().filter(|key| !self.loading.contains_key(key)).count(),
        };
        (requests == 1).then_some(contested)
    }

    fn resolve_block(&mut self, read: &ReadOp, index: u32, pass: &mut Pass) {
        let lba = read.span.lba + u64::from(index);
        let volume = read.span.volume;
        let mut readable = true;
        for plane in 0..read.width {
            let stamp = match self.stamp(volume, lba, plane) {
                Ok(stamp) => stamp,
                Err(key) => return pass.pages.push(key),
            };
            readable &= stamp.is_some();
            pass.blocks.stamps.push(stamp.unwrap_or_default());
        }
        if !readable {
            let from = pass.blocks.stamps.len() - read.width as usize;
            pass.blocks.stamps[from..].fill(Stamp::ZERO);
        }
        if read.wanted != Wanted::Stamps && readable {
            readable = self.resolve_content(read, index, pass);
        } else if read.wanted == Wanted::Content {
            pass.push(zero_block());
        }
        if !readable {
            pass.blocks.unreadable.push(index);
        }
    }

    /// False when the content is known to be lost.
    fn resolve_content(&mut self, read: &ReadOp, index: u32, pass: &mut Pass) -> bool {
        let block = match self.source(read.span.volume, read.span.lba + u64::from(index)) {
            Source::Memory(bytes) => Some(bytes),
            Source::Zero => Some(zero_block()),
            Source::Bad => None,
            Source::Missing(key) => {
                pass.pages.push(key);
                return true;
            }
            Source::Disk { physical, sum } => return self.block_of_disk(read, index, physical, sum, pass),
        };
        let is_good = block.is_some();
        if read.wanted == Wanted::Content {
            pass.push(block.unwrap_or_else(zero_block));
        }
        is_good
    }

    /// A block of the disk: fetched for this read, cached, or to be asked for. False when it was and does not match.
    fn block_of_disk(
        &mut self,
        read: &ReadOp,
        index: u32,
        physical: u64,
        sum: Checksum,
        pass: &mut Pass,
    ) -> bool {
        let fetched = read.fetched.get(&index).filter(|found| (found.physical, found.sum) == (physical, sum));
        if let Some(found) = fetched {
            match found.place {
                _ if read.wanted == Wanted::Check => {}
                Some((buffer, offset)) => pass.push_from(&read.buffers[buffer], offset),
                None => pass.push(zero_block()),
            }
            return found.place.is_some();
        }
        let cached = if read.wanted == Wanted::Check { None } else { self.cache.get(physical, sum) };
        match cached {
            Some((buffer, offset)) => {
                pass.push_from(buffer, offset);
                self.stats.cache_hits += 1;
            }
            None => miss(&mut pass.runs, index, physical, sum),
        }
        true
    }

    /// Entry `plane` of a block's stamps: `None` when it cannot be read, an error when a page is missing.
    fn stamp(&mut self, volume: VolumeId, lba: u64, plane: u8) -> Result<Option<Stamp>, Key> {
        let mut versions = self.versions(volume, lba);
        if let Some(stamp) = versions.find_map(|version| version.stamps.get(plane)) {
            return Ok(Some(stamp));
        }
        drop(versions);
        let (entry, _) = self.at_home(volume, lba, plane)?;
        Ok((entry.kind != Kind::Unknown).then_some(entry.stamp))
    }

    fn source(&mut self, volume: VolumeId, lba: u64) -> Source {
        if let Some(version) = self.versions(volume, lba).next() {
            return match &version.place {
                Place::Memory(bytes) => Source::Memory(bytes.clone()),
                Place::Slot(slot) => Source::Disk { physical: physical(*slot, lba), sum: version.sum },
                Place::Zero => Source::Zero,
                Place::Lost => Source::Bad,
            };
        }
        match self.at_home(volume, lba, 0) {
            Err(key) => Source::Missing(key),
            Ok((Entry { kind: Kind::Data, sum, .. }, Some(slot))) => {
                Source::Disk { physical: physical(slot, lba), sum }
            }
            Ok((Entry { kind: Kind::Absent | Kind::Zero, .. }, _)) => Source::Zero,
            Ok(_) => Source::Bad,
        }
    }

    /// Clean blocks that another member keeps in memory leave the cache, as far as it takes no reading to find them.
    pub(crate) fn on_forget(&mut self, span: Span) {
        for lba in span.lba..span.end() {
            if let Source::Disk { physical, .. } = self.source(span.volume, lba) {
                self.cache.forget(physical, 1);
            }
        }
    }

    /// The versions of a block that are not at home, newest first.
    fn versions(&self, volume: VolumeId, lba: u64) -> impl Iterator<Item = &Version> {
        let discarded = self.discards.cover(volume, lba);
        let layers = [&self.fresh, &self.durable, &self.destaging];
        layers.into_iter().filter(move |_| !discarded).filter_map(move |layer| layer.get(volume, lba))
    }

    /// What a block's page says of it, and its slot.
    fn at_home(&mut self, volume: VolumeId, lba: u64, plane: u8) -> Result<(Entry, Option<u32>), Key> {
        let key = Key::of(volume, lba, plane);
        if self.discards.cover(volume, lba) {
            return Ok((Entry::default(), None));
        }
        if self.pages.home(key).is_none() {
            return Ok((self.nowhere(), None));
        }
        let page = self.pages.get(key).ok_or(key)?;
        Ok((page.entry(lba), page.slot(lba)))
    }

    /// What is known of blocks without a page: nothing was ever written there, unless pages were lost.
    pub(crate) fn nowhere(&self) -> Entry {
        let kind = if self.pages.lost > 0 { Kind::Unknown } else { Kind::Absent };
        Entry { kind, ..Entry::default() }
    }

    /// Whether an entry of zero needs a page to say so: without one that is what is known of it, unless pages were lost.
    /// A block that is mended where it lies must not ask for pages that it never had, as a full disk has none.
    pub(crate) fn needs_page_for_zero(&self) -> bool {
        self.pages.lost > 0
    }

    fn fetch(&mut self, id: u64, run: Run, contested: Option<Contested>) {
        let length = run.blocks.len() * BLOCK;
        match self.reads.get(&id) {
            Some(read) if read.wanted == Wanted::Check => {
                self.stats.verified_blocks += run.blocks.len() as u64
            }
            _ => self.stats.cache_misses += run.blocks.len() as u64,
        }
        let offset = self.geometry.block_offset(run.first);
        self.ask(Purpose::Blocks(id, run), IoKind::Read { offset, length, contested });
    }

    fn take_run(&mut self, read: &mut ReadOp, run: &Run, bytes: &Bytes) {
        let mut good = true;
        let buffer = read.buffers.len();
        let is_check = read.wanted == Wanted::Check;
        if !is_check {
            read.buffers.push(bytes.clone());
        }
        for (i, &(index, sum)) in run.blocks.iter().enumerate() {
            let offset = i * BLOCK;
            let place = is_good(&bytes[offset..offset + BLOCK], sum).then_some((buffer, offset));
            if place.is_none() {
                // A good copy in memory would hide from whoever comes to repair it that there is anything to repair.
                self.cache.forget(run.first + i as u64, 1);
            }
            good &= place.is_some();
            read.fetched.insert(index, Fetched { physical: run.first + i as u64, sum, place });
        }
        if good && !is_check {
            let sums = run.blocks.iter().map(|&(_, sum)| sum).collect();
            self.cache.insert(run.first, sums, bytes.clone());
        }
    }

    fn finish_read(&mut self, read: ReadOp, blocks: Blocks) {
        read.pinned.iter().for_each(|&key| self.pages.unpin(key));
        self.stats.unreadable_blocks += blocks.unreadable.len() as u64;
        match read.reader {
            Reader::Participant(token) => self.reply(Reply::Read { token, result: Ok(blocks) }),
            Reader::Apply(stamp) => self.on_base(stamp, &blocks.content, &blocks.unreadable),
        }
    }

    /// Whether a block may hold anything but zeros.
    fn holds_data(&self, volume: VolumeId, lba: u64) -> bool {
        if self.discards.cover(volume, lba) {
            return false;
        }
        match self.versions(volume, lba).next() {
            Some(version) => !matches!(version.place, Place::Zero),
            None => self.pages.lost > 0 || self.has_slot(volume, lba / SLOT_BLOCKS),
        }
    }

    /// For how many blocks from `lba` on the answer of [`Running::holds_data`] is the same without being asked again.
    fn run_length(&self, volume: VolumeId, lba: u64) -> u64 {
        let number = lba / SLOT_BLOCKS;
        let layered = [&self.fresh, &self.durable, &self.destaging]
            .into_iter()
            .any(|layer| layer.group(volume, number).is_some());
        if layered { 1 } else { SLOT_BLOCKS - lba % SLOT_BLOCKS }
    }
}

fn physical(slot: u32, lba: u64) -> u64 {
    u64::from(slot) * SLOT_BLOCKS + lba % SLOT_BLOCKS
}

fn zero_block() -> Bytes {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    Bytes::from_static(&ZEROS)
}

/// Adds a block to the runs to be read; a run stays within one slot.
fn miss(runs: &mut Vec<Run>, index: u32, physical: u64, sum: Checksum) {
    match runs.last_mut() {
        Some(run)
            if run.first + run.blocks.len() as u64 == physical && !physical.is_multiple_of(SLOT_BLOCKS) =>
        {
            run.blocks.push((index, sum));
        }
        _ => runs.push(Run { first: physical, blocks: vec![(index, sum)] }),
    }
}

/// Whether a block is what was written.
fn is_good(block: &[u8], sum: u32) -> bool {
    #[cfg(feature = "planted")]
    if crate::planted::ignores_sums() {
        return true;
    }
    checksum(block) == sum
}
