//! Reading committed blocks: from the layers in memory, the cache, then the disk.
//!
//! A read is resolved from the start again whenever something it waited for has come, and what it fetched counts only as long
//! as it still is what the metadata name. So nothing that changes meanwhile can make it return a mixture.
//!
//! A read of the participant's is answered here. One for the application of a delta is given back when it is done: whoever
//! applies is the one to go on.

use crate::blocks::{Blocks, Source};
use crate::config::SumCheck;
use crate::device::{Device, ReadId, ReadPurpose, Run};
use crate::metadata::Key;
use crate::pass::Pass;
use crate::record::WIDTH_MAX;
use crate::stats::ReadStats;
use base::{BLOCK, Checksum, Stamp};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::Span;
use wire::disk::{Blocks as Content, Contested, Reply, StoreError, Token};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reader {
    Participant(Token),
    /// The application of a delta, for the parity that it changes.
    Apply(Stamp),
}

/// What a read is to find out, beside stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Stamps,
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
    /// A read that nothing is known of yet.
    pub(crate) fn new(reader: Reader, span: Span, width: u8, wanted: Wanted) -> ReadOp {
        let (fetched, buffers, pinned) = (BTreeMap::new(), Vec::new(), Vec::new());
        let contested = None;
        ReadOp { reader, span, width, wanted, contested, fetched, buffers, waiting: 0, pinned }
    }

    /// Other bricks were asked for it as well.
    pub(crate) fn contest(&mut self, contested: Option<Contested>) {
        self.contested = contested;
    }

    /// Whether there can be such blocks.
    pub(crate) fn is_sound(&self) -> bool {
        self.span.is_valid() && (1..=WIDTH_MAX).contains(&self.width)
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Stamps a block.
    pub(crate) fn width(&self) -> u8 {
        self.width
    }

    pub(crate) fn is_check(&self) -> bool {
        self.wanted == Wanted::Check
    }

    /// What the requests of a pass say of the read's contest. Only a single request can be left to another brick: a read
    /// that its first pass serves from memory, or by several requests, is served here in any case.
    fn contested_by_one_request(&mut self, pass: &Pass, blocks: &Blocks) -> Option<Contested> {
        let contested = self.contested.take()?;
        let requests = if pass.pages.is_empty() {
            pass.runs.len()
        } else {
            pass.pages.iter().filter(|&&key| !blocks.pages.is_wanted(key)).count()
        };
        (requests == 1).then_some(contested)
    }

    /// The answer when it cannot be served.
    pub(crate) fn refusal(&self, error: StoreError) -> Option<Reply> {
        match self.reader {
            Reader::Participant(token) => Some(Reply::Read { token, result: Err(error) }),
            Reader::Apply(_) => None,
        }
    }

    fn unpin(&self, blocks: &mut Blocks) {
        self.pinned.iter().for_each(|&key| blocks.pages.unpin(key));
    }

    fn resolve_block(&self, index: u32, blocks: &mut Blocks, pass: &mut Pass) {
        let lba = self.span.lba + u64::from(index);
        let volume = self.span.volume;
        let mut readable = true;
        for plane in 0..self.width {
            let stamp = match blocks.stamp(volume, lba, plane) {
                Ok(stamp) => stamp,
                Err(key) => return pass.pages.push(key),
            };
            readable &= stamp.is_some();
            pass.blocks.stamps.push(stamp.unwrap_or_default());
        }
        if !readable {
            let from = pass.blocks.stamps.len() - self.width as usize;
            pass.blocks.stamps[from..].fill(Stamp::ZERO);
        }
        if self.wanted != Wanted::Stamps && readable {
            readable = self.resolve_content(index, blocks, pass);
        } else if self.wanted == Wanted::Content {
            pass.push(zero_block());
        }
        if !readable {
            pass.blocks.unreadable.push(index);
        }
    }

    /// False when the content is known to be lost.
    fn resolve_content(&self, index: u32, blocks: &mut Blocks, pass: &mut Pass) -> bool {
        let block = match blocks.source(self.span.volume, self.span.lba + u64::from(index)) {
            Source::Memory(bytes) => Some(bytes),
            Source::Zero => Some(zero_block()),
            Source::Bad => None,
            Source::Missing(key) => {
                pass.pages.push(key);
                return true;
            }
            Source::Disk { physical, sum } => return self.block_of_disk(index, physical, sum, blocks, pass),
        };
        let is_good = block.is_some();
        if self.wanted == Wanted::Content {
            pass.push(block.unwrap_or_else(zero_block));
        }
        is_good
    }

    /// A block of the disk: fetched for this read, cached, or to be asked for. False when it was and does not match.
    fn block_of_disk(
        &self,
        index: u32,
        physical: u64,
        sum: Checksum,
        blocks: &mut Blocks,
        pass: &mut Pass,
    ) -> bool {
        let fetched = self.fetched.get(&index).filter(|found| (found.physical, found.sum) == (physical, sum));
        if let Some(found) = fetched {
            match found.place {
                _ if self.wanted == Wanted::Check => {}
                Some((buffer, offset)) => pass.push_from(&self.buffers[buffer], offset),
                None => pass.push(zero_block()),
            }
            return found.place.is_some();
        }
        let cached = if self.wanted == Wanted::Check { None } else { blocks.cache.get(physical, sum) };
        match cached {
            Some((buffer, offset)) => {
                pass.push_from(buffer, offset);
                pass.cache_hits += 1;
            }
            None => pass.miss(index, physical, sum),
        }
        true
    }

    fn take_run(&mut self, run: &Run, bytes: &Bytes, blocks: &mut Blocks, is_good: SumCheck) {
        let mut good = true;
        let buffer = self.buffers.len();
        let is_check = self.wanted == Wanted::Check;
        if !is_check {
            self.buffers.push(bytes.clone());
        }
        for (i, &(index, sum)) in run.blocks.iter().enumerate() {
            let offset = i * BLOCK;
            let place = is_good(&bytes[offset..offset + BLOCK], sum).then_some((buffer, offset));
            if place.is_none() {
                // A good copy in memory would hide from whoever comes to repair it that there is anything to repair.
                blocks.cache.forget(run.first + i as u64, 1);
            }
            good &= place.is_some();
            self.fetched.insert(index, Fetched { physical: run.first + i as u64, sum, place });
        }
        if good && !is_check {
            let sums = run.blocks.iter().map(|&(_, sum)| sum).collect();
            blocks.cache.insert(run.first, sums, bytes.clone());
        }
    }
}

/// The parity that a delta changes: its content, and which blocks of it are lost.
#[derive(Debug)]
#[must_use = "an application waits for it"]
pub(crate) struct Base {
    pub(crate) stamp: Stamp,
    pub(crate) blocks: Content,
}

/// The reads that are not answered.
pub(crate) struct Reads {
    max: usize,
    is_good: SumCheck,
    by_id: BTreeMap<ReadId, ReadOp>,
    last: ReadId,
    /// Reads that wait for works on their blocks.
    held: Vec<ReadOp>,
    stats: ReadStats,
}

impl Reads {
    /// None; at most `max` at a time, whose blocks are what was written where `is_good` says so.
    pub(crate) fn new(max: usize, is_good: SumCheck) -> Reads {
        let (by_id, held) = (BTreeMap::new(), Vec::new());
        Reads { max, is_good, by_id, last: ReadId::default(), held, stats: ReadStats::default() }
    }

    pub(crate) fn stats(&self) -> ReadStats {
        self.stats
    }

    /// Whether there is room for one more.
    pub(crate) fn is_full(&self) -> bool {
        self.by_id.len() + self.held.len() >= self.max
    }

    /// Keeps a read until the works on its blocks are done.
    pub(crate) fn hold(&mut self, read: ReadOp) {
        self.held.push(read);
    }

    /// Takes out the held reads whose blocks are free.
    pub(crate) fn take_free(&mut self, is_worked_on: impl Fn(&Span) -> bool) -> Vec<ReadOp> {
        let all = core::mem::take(&mut self.held).into_iter();
        let (held, free) = all.partition(|read| is_worked_on(&read.span));
        self.held = held;
        free
    }

    pub(crate) fn start(&mut self, read: ReadOp, blocks: &mut Blocks, device: &mut Device) -> Option<Base> {
        self.last.0 += 1;
        self.by_id.insert(self.last, read);
        self.resolve(self.last, blocks, device)
    }

    /// A page that a read waited for has come, or turned out to be nowhere.
    pub(crate) fn on_page(
        &mut self,
        id: ReadId,
        key: Key,
        blocks: &mut Blocks,
        device: &mut Device,
    ) -> Option<Base> {
        let read = self.by_id.get_mut(&id)?;
        if blocks.pages.is_resident(key) {
            blocks.pages.pin(key);
            read.pinned.push(key);
        }
        read.waiting -= 1;
        if read.waiting > 0 {
            return None;
        }
        self.resolve(id, blocks, device)
    }

    /// Blocks have come; none when the disk cannot read them.
    pub(crate) fn on_blocks(
        &mut self,
        id: ReadId,
        run: &Run,
        bytes: Option<Bytes>,
        blocks: &mut Blocks,
        device: &mut Device,
    ) -> Option<Base> {
        let mut read = self.by_id.remove(&id)?;
        read.waiting -= 1;
        let expected = run.blocks.len() * BLOCK;
        match bytes.filter(|bytes| bytes.len() == expected) {
            Some(bytes) => read.take_run(run, &bytes, blocks, self.is_good),
            None if run.blocks.len() > 1 => {
                // One bad sector must not cost its neighbours: ask for each block alone.
                read.waiting += run.blocks.len();
                for (i, &block) in run.blocks.iter().enumerate() {
                    let alone = Run { first: run.first + i as u64, blocks: vec![block] };
                    self.fetch(id, &read, alone, None, device);
                }
            }
            None => {
                let (index, sum) = run.blocks[0];
                read.fetched.insert(index, Fetched { physical: run.first, sum, place: None });
                blocks.cache.forget(run.first, 1);
            }
        }
        let done = read.waiting == 0;
        self.by_id.insert(id, read);
        if done { self.resolve(id, blocks, device) } else { None }
    }

    /// Another brick reads for whoever asked. What else the read waits for finds nobody.
    pub(crate) fn on_left(&mut self, id: ReadId, blocks: &mut Blocks, device: &mut Device) {
        let Some(read) = self.by_id.remove(&id) else { return };
        read.unpin(blocks);
        if let Reader::Participant(token) = read.reader {
            device.reply(Reply::Read { token, result: Err(StoreError::Left) });
        }
    }

    /// The answers to those under way when the disk failed.
    pub(crate) fn refuse(&mut self) -> impl Iterator<Item = Reply> {
        let held = core::mem::take(&mut self.held);
        let reads = core::mem::take(&mut self.by_id).into_values().chain(held);
        reads.filter_map(|read| read.refusal(StoreError::Failed))
    }

    /// Answers the read if all that it needs is there; asks for the rest otherwise.
    fn resolve(&mut self, id: ReadId, blocks: &mut Blocks, device: &mut Device) -> Option<Base> {
        let mut read = self.by_id.remove(&id).expect("a read to resolve is under way");
        let mut pass = Pass::default();
        for index in 0..read.span.count {
            read.resolve_block(index, blocks, &mut pass);
        }
        pass.close();
        self.stats.cache_hits += pass.cache_hits;
        pass.pages.sort_unstable();
        pass.pages.dedup();
        if pass.pages.is_empty() && pass.runs.is_empty() {
            return self.finish(&read, pass.blocks, blocks, device);
        }
        let contested = read.contested_by_one_request(&pass, blocks);
        if pass.pages.is_empty() {
            read.waiting = pass.runs.len();
            pass.runs.into_iter().for_each(|run| self.fetch(id, &read, run, contested.clone(), device));
        } else {
            read.waiting = pass.pages.len();
            let pages = pass.pages.into_iter();
            pages.for_each(|key| blocks.load_page(key, Some(id), contested.clone(), device));
        }
        self.by_id.insert(id, read);
        None
    }

    fn fetch(
        &mut self,
        id: ReadId,
        read: &ReadOp,
        run: Run,
        contested: Option<Contested>,
        device: &mut Device,
    ) {
        let count = run.blocks.len();
        match read.wanted {
            Wanted::Check => self.stats.verified_blocks += count as u64,
            Wanted::Stamps | Wanted::Content => self.stats.cache_misses += count as u64,
        }
        let offset = device.geometry().block_offset(run.first);
        device.read_contested(ReadPurpose::Blocks(id, run), offset, count * BLOCK, contested);
    }

    fn finish(
        &mut self,
        read: &ReadOp,
        content: Content,
        blocks: &mut Blocks,
        device: &mut Device,
    ) -> Option<Base> {
        read.unpin(blocks);
        self.stats.unreadable_blocks += content.unreadable.len() as u64;
        match read.reader {
            Reader::Participant(token) => {
                device.reply(Reply::Read { token, result: Ok(content) });
                None
            }
            Reader::Apply(stamp) => Some(Base { stamp, blocks: content }),
        }
    }
}

fn zero_block() -> Bytes {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    Bytes::from_static(&ZEROS)
}
