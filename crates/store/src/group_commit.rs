//! Group commit: which of the waiting records one group takes to the journal, and when a group begins ([`Log::is_due`]) and
//! is durable. One group is in flight at a time. Whether one begins now, or content is taken to its final place first, is
//! decided in `commands` (`start_group`).
//!
//! A group takes what has gathered while the one before was in flight. A group is durable by one durable write, or by a flush
//! when it brought slots beside its frame; only then is anything answered.

use crate::barrier::Barriers;
use crate::blocks::Blocks;
use crate::config::Limits;
use crate::device::{Device, FlushPurpose, WritePurpose};
use crate::discard::Discards;
use crate::facts::Facts;
use crate::journal::Journal;
use crate::metadata::{Key, PAGE_BLOCKS};
use crate::queue::{Item, Queue};
use crate::record::{Extent, FrameBuilder, Record, inline_bytes};
use crate::stats::JournalStats;
use crate::superblock::SLOT_BLOCKS;
use crate::works::Works;
use crate::writes::Writes;
use base::{BLOCK, HashMap, Payload, Stamp, Time, VolumeId};
use core::time::Duration;
use wire::Span;
use wire::disk::{Reply, StoreError, Token};

/// The longest frame of several records.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Records for which nobody waits that may gather, before they are journalled however young they are.
const LAZY_MAX: usize = 256;
/// Writes that are not decided take at most one in so many bytes of the journal, so that they can be carried forward beside
/// a checkpoint and what is being appended.
const LIVE_SHARE: usize = 5;

/// The group in flight.
#[derive(Debug)]
struct Group {
    items: Vec<Item>,
    /// Writes not answered yet.
    parts: usize,
    /// Whether a flush has to follow them.
    needs_flush: bool,
}

/// Records on their way into a frame: what each is, and where in the frame it begins.
#[derive(Default)]
struct Gathered {
    frame: FrameBuilder,
    items: Vec<Item>,
    starts: Vec<usize>,
    /// Slots whose content goes along.
    direct: Vec<u32>,
}

/// The journal, and what waits for it.
pub(crate) struct Log {
    limits: Limits,
    pub(crate) queue: Queue,
    pub(crate) writes: Writes,
    pub(crate) works: Works,
    pub(crate) facts: Facts,
    pub(crate) barriers: Barriers,
    journal: Journal,
    group: Option<Group>,
    /// Whether the next group has to wait for room in the journal.
    is_blocked: bool,
    /// Content of large writes that goes to fresh slots together with the group that says so.
    direct: HashMap<u32, Payload>,
    /// Notes in the journal whose answer waits for discards that are not: whoever has an answer takes all that it asked
    /// for before as durable.
    settling: Vec<Token>,
    /// The end of the last durable group that says something new. A checkpoint says nothing new: one at the journal's end is dropped at recovery.
    promised: u64,
    stats: JournalStats,
}

impl Log {
    pub(crate) fn new(limits: Limits, journal: Journal) -> Log {
        Log {
            limits,
            queue: Queue::default(),
            writes: Writes::default(),
            works: Works::default(),
            facts: Facts::new(journal.capacity()),
            barriers: Barriers::default(),
            promised: journal.durable(),
            journal,
            group: None,
            is_blocked: false,
            direct: HashMap::default(),
            settling: Vec::new(),
            stats: JournalStats::default(),
        }
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn stats(&self) -> JournalStats {
        let (used_bytes, capacity_bytes) = (self.journal.used(), self.journal.capacity());
        JournalStats {
            used_bytes,
            capacity_bytes,
            head_bytes: self.journal.head(),
            durable_bytes: self.promised,
            sheets: self.facts.notes.sheets() as u64,
            sheets_written: self.facts.notes.sheets_written(),
            ..self.stats
        }
    }

    /// Recovery ended at `head`: the next frame begins there, in the place of a torn one if there was one.
    pub(crate) fn resume_at(&mut self, head: u64, has_torn_tail: bool) {
        self.journal.resume_at(head);
        self.promised = head;
        self.stats.found_bytes = head;
        self.stats.torn_tails = u64::from(has_torn_tail);
    }

    /// Whether the last frame was found torn when the disk was opened.
    pub(crate) fn has_torn_tail(&self) -> bool {
        self.stats.torn_tails > 0
    }

    /// The header says that the journal begins at `tail`.
    pub(crate) fn move_tail(&mut self, tail: u64) {
        self.journal.move_tail(tail);
    }

    pub(crate) fn is_group_in_flight(&self) -> bool {
        self.group.is_some()
    }

    /// When records for which nobody waits are to be journalled; never while they wait for room.
    pub(crate) fn due(&self) -> Option<Time> {
        self.lazy_due().filter(|_| !self.is_blocked)
    }

    /// Whether there is reason to begin a group: somebody waits for a record, or others have waited long enough, or are many.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let is_late = |due| now >= due || self.queue.len() > LAZY_MAX;
        self.queue.has_urgent() || self.lazy_due().is_some_and(is_late)
    }

    fn lazy_due(&self) -> Option<Time> {
        self.queue.lazy_since().map(|since| since + Duration::from_nanos(self.limits.lazy_ns))
    }

    /// Refuses a write of `cost` bytes that even an empty journal has no room for.
    pub(crate) fn check_size(&self, cost: usize) -> Result<(), StoreError> {
        if cost > self.live_max() { Err(StoreError::NoSpace) } else { Ok(()) }
    }

    /// The same of a write that takes `cost` bytes beside others that are decided with it, and so make no room before it is staged.
    pub(crate) fn check_together(&self, cost: usize, together: Stamp) -> Result<(), StoreError> {
        self.check_size(cost + self.writes.cost_together(together))
    }

    fn live_max(&self) -> usize {
        self.journal.capacity() as usize / LIVE_SHARE
    }

    /// Whether there is room in the journal for a write of `cost` bytes, beside `away_bytes` of journalled content that is
    /// not in its final place.
    pub(crate) fn admit(&self, cost: usize, away_bytes: usize) -> Result<(), StoreError> {
        let live = self.live_cost();
        let is_full = live + cost > self.live_max()
            || (away_bytes + live > 0 && away_bytes + live + cost > self.limits.backlog_bytes)
            || self.queue.len() + self.works.len() >= self.limits.queue_max;
        if is_full { Err(StoreError::NoRoomYet) } else { Ok(()) }
    }

    /// Whether the queue takes a note.
    pub(crate) fn is_queue_full(&self) -> bool {
        self.queue.len() >= self.limits.queue_max
    }

    /// What a frame that carries all undecided writes forward takes at most, with the mends that are not journalled.
    pub(crate) fn live_cost(&self) -> usize {
        self.writes.cost() + self.works.cost()
    }

    /// Content for a slot, which goes there together with the group that says so.
    pub(crate) fn bring(&mut self, slot: u32, content: Payload) {
        self.stats.direct_blocks += SLOT_BLOCKS;
        self.direct.insert(slot, content);
    }

    /// Content that no group says anything of.
    pub(crate) fn bring_no_more(&mut self, slot: u32) {
        self.direct.remove(&slot);
    }

    /// Whether a write or mend that is not over brings content through the journal to a slot's blocks.
    pub(crate) fn brings_content(&self, volume: VolumeId, number: u64) -> bool {
        let blocks = Span { volume, lba: number * SLOT_BLOCKS, count: SLOT_BLOCKS as u32 };
        let covers = |span: &Span, extents: &[Extent]| {
            let inline = extents.iter().filter(|extent| extent.inline().is_some());
            let mut spans =
                inline.map(|e| Span { lba: span.lba + u64::from(e.offset), count: e.count, ..*span });
            span.overlaps(&blocks) && spans.any(|span| span.overlaps(&blocks))
        };
        self.writes.iter().any(|(_, write)| covers(&write.staged().write.span, write.extents()))
            || self.works.iter().any(|work| covers(&work.span(), work.mended()))
    }

    /// Whether a write or mend that is not over changes what a page says.
    pub(crate) fn changes_page(&self, key: Key) -> bool {
        let lba = key.page * PAGE_BLOCKS;
        let blocks = Span { volume: key.volume, lba, count: PAGE_BLOCKS as u32 };
        self.works.overlap(&blocks)
            || self.writes.iter().any(|(_, write)| write.staged().write.span.overlaps(&blocks))
    }

    /// Answers the barriers at the head of the queue; no group is in flight.
    pub(crate) fn answer_barriers(&mut self, device: &mut Device) {
        while let Some(&Item::Barrier(token)) = self.queue.front() {
            self.queue.pop();
            device.noted(token, Ok(()));
        }
    }

    /// Begins a group with what waits. False when the journal, or the next checkpoint, has no room for any of it.
    pub(crate) fn begin_group(&mut self, blocks: &Blocks, device: &mut Device) -> bool {
        let mut group = Gathered::default();
        while let Some(item) = self.queue.front() {
            if let &Item::Barrier(token) = item {
                // All before it was refused: a frame without a record would take room for nothing.
                if group.items.is_empty() {
                    device.noted(token, Ok(()));
                    self.queue.pop();
                    continue;
                }
                group.starts.push(group.frame.length());
                group.items.extend(self.queue.pop());
                continue;
            }
            if let Item::Note { token, key, value } = item {
                match self.facts.notes.admit(key, value.as_deref(), blocks.slots.available()) {
                    Ok(()) => {}
                    Err(StoreError::NoRoomYet) => break,
                    Err(error) => {
                        device.noted(*token, Err(error));
                        self.queue.pop();
                        continue;
                    }
                }
            }
            let record = self.record_of(item);
            let length = group.frame.length() + 2 * BLOCK + record_bytes(&record);
            let is_long = !group.items.is_empty() && length > GROUP_BYTES_MAX;
            if is_long || !self.has_room(length, &blocks.discards) {
                break;
            }
            let item = self.queue.pop().expect("just seen");
            group.direct.extend(record.fresh_slots().map(|(slot, _)| slot));
            group.starts.push(group.frame.push(&record));
            self.remember_facts(&item);
            group.items.push(item);
        }
        self.is_blocked = group.items.is_empty() && self.queue.front().is_some();
        if !group.items.is_empty() {
            self.send(group, device);
        }
        !self.is_blocked
    }

    /// Begins a group that carries all undecided writes forward, and says all small state anew. Gives back where it begins.
    pub(crate) fn begin_checkpoint(&mut self, blocks: &mut Blocks, device: &mut Device) -> Option<u64> {
        let mut group = Gathered::default();
        let sheets = self.facts.notes.write_sheets(blocks);
        let discards = &blocks.discards;
        for (stamp, write) in self.writes.iter().filter(|(_, write)| write.is_journalled()) {
            let (staged, extents) = (write.staged().clone(), write.extents().to_vec());
            group.starts.push(group.frame.push(&Record::Stage { staged, extents, fresh: false }));
            group.items.push(Item::Stage(stamp));
        }
        let volumes = discards.logged().filter(|region| region.stretch.is_none());
        let checkpoint = self.facts.checkpoint(volumes.map(|region| region.volume).collect());
        group.starts.push(group.frame.push(&checkpoint));
        for record in self.facts.notes.records() {
            group.frame.push(&record);
        }
        for (slot, content) in sheets {
            self.bring(slot, content);
            group.direct.push(slot);
        }
        for region in discards.logged().filter(|region| region.stretch.is_some()) {
            group.frame.push(&Record::discard(region));
        }
        group.items.push(Item::Checkpoint);
        let has_room = self.journal.used() + group.frame.length() as u64 <= self.journal.capacity();
        let begins_at = self.journal.head();
        has_room.then(|| {
            self.send(group, device);
            begins_at
        })
    }

    /// Sends a group's frame, and the content of the slots that it names.
    fn send(&mut self, group: Gathered, device: &mut Device) {
        let Gathered { frame, mut items, starts, direct } = group;
        self.stats.groups += 1;
        self.stats.group_records += items.len() as u64;
        self.stats.group_records_max = self.stats.group_records_max.max(items.len() as u64);
        let frame = frame.finish(self.journal.head(), device.seed());
        self.stats.written_bytes += frame.bytes.len() as u64;
        for (item, start) in items.iter_mut().zip(starts) {
            match item {
                Item::Image(_, extents) => frame.adopt(extents, start),
                Item::Stage(stamp) => frame.adopt(self.writes.known_mut(*stamp).extents_mut(), start),
                Item::Mend(id) => frame.adopt(self.works.mend_extents(*id), start),
                _ => {}
            }
        }
        let needs_flush = !direct.is_empty();
        let writes = self.journal.append(&frame.bytes);
        let parts = writes.len() + direct.len();
        for slot in direct {
            let content = self.direct.remove(&slot).expect("a fresh slot has content");
            let offset = device.geometry().block_offset(u64::from(slot) * SLOT_BLOCKS);
            device.write(WritePurpose::Group, offset, content, false);
        }
        for (offset, part) in writes {
            device.write(WritePurpose::Group, offset, part, !needs_flush);
        }
        self.group = Some(Group { items, parts, needs_flush });
    }

    /// A part of the group is written. Gives back what is in the journal now, if that was the last one.
    pub(crate) fn on_part(&mut self, device: &mut Device) -> Option<Vec<Item>> {
        let group = self.group.as_mut().expect("a group is in flight");
        group.parts -= 1;
        if group.parts > 0 {
            return None;
        }
        if group.needs_flush {
            device.flush(FlushPurpose::Group);
            return None;
        }
        Some(self.on_durable())
    }

    /// The group is on stable storage.
    pub(crate) fn on_durable(&mut self) -> Vec<Item> {
        let group = self.group.take().expect("a group is in flight");
        self.journal.set_durable();
        if !group.items.iter().any(|item| matches!(item, Item::Checkpoint)) {
            self.promised = self.journal.durable();
        }
        group.items
    }

    /// The journal has a note; it is answered when the journal has all discards that were asked for before.
    pub(crate) fn settle_note(&mut self, token: Token, discards: &Discards, device: &mut Device) {
        self.settling.push(token);
        self.answer_notes(discards, device);
    }

    /// Answers the notes that waited for discards.
    pub(crate) fn answer_notes(&mut self, discards: &Discards, device: &mut Device) {
        if discards.are_logged() {
            self.settling.drain(..).for_each(|token| device.noted(token, Ok(())));
        }
    }

    /// The answers to all that wait for the journal when the disk failed.
    pub(crate) fn refuse(&mut self) -> Vec<Reply> {
        let items = self.group.take().into_iter().flat_map(|group| group.items);
        let items: Vec<Item> = items.chain(self.queue.drain()).collect();
        let failed = Err(StoreError::Failed);
        let mut replies = Vec::new();
        for item in items {
            match item {
                Item::Stage(stamp) => {
                    let tokens = self.writes.get_mut(stamp).map(|write| write.take_tokens());
                    let tokens = tokens.unwrap_or_default().into_iter();
                    replies.extend(tokens.map(|token| Reply::Staged { token, result: failed }));
                }
                Item::Note { token, .. } | Item::Remember(token, _) | Item::Barrier(token) => {
                    replies.push(Reply::Noted { token, result: failed });
                }
                _ => {}
            }
        }
        let settling = self.settling.drain(..);
        replies.extend(settling.map(|token| Reply::Noted { token, result: failed }));
        replies
    }

    /// Whether a frame of `length` leaves the journal enough room for a checkpoint that carries all that is undecided.
    fn has_room(&self, length: usize, discards: &Discards) -> bool {
        let checkpoint = self.facts.checkpoint_bytes() + discards.checkpoint_bytes();
        let kept = self.live_cost() + checkpoint + 2 * BLOCK;
        self.journal.used() as usize + length + kept <= self.journal.capacity() as usize
    }

    fn record_of(&self, item: &Item) -> Record {
        match item {
            Item::Stage(stamp) => {
                let write = self.writes.known(*stamp);
                let (staged, extents) = (write.staged().clone(), write.extents().to_vec());
                Record::Stage { staged, extents, fresh: true }
            }
            Item::Apply(stamp) => Record::Apply { stamp: *stamp },
            Item::Image(stamp, extents) => Record::Image { stamp: *stamp, extents: extents.clone() },
            Item::Drop(stamp) => Record::Drop { stamp: *stamp },
            Item::Mend(id) => self.works.mend(*id).record(),
            Item::Note { key, value, .. } => Record::Note { key: key.clone(), value: value.clone() },
            Item::Remember(_, completions) | Item::Refresh(completions) => {
                Record::Remember { completions: completions.clone() }
            }
            Item::Discard(region) => Record::discard(*region),
            Item::Checkpoint => unreachable!("a checkpoint is built apart"),
            Item::Barrier(_) => unreachable!("a barrier is no record"),
        }
    }

    /// Effects and notes are remembered in the order of the journal, so that a checkpoint says what the records before it say.
    fn remember_facts(&mut self, item: &Item) {
        match item {
            Item::Note { key, value, .. } => self.facts.note(key.clone(), value.clone()),
            Item::Apply(stamp) | Item::Image(stamp, _) => {
                self.facts.remember(self.writes.known(*stamp).completion());
            }
            Item::Remember(_, completions) | Item::Refresh(completions) => {
                completions.iter().for_each(|&completion| self.facts.remember(completion))
            }
            _ => {}
        }
    }

    /// Asserts what is cheap to see.
    pub(crate) fn check(&self) {
        assert!(self.journal.used() <= self.journal.capacity(), "the journal overran its tail");
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check_deep(&self) {
        self.writes.check();
        self.works.check();
        self.facts.notes.check();
    }
}

/// A bound of what a record takes of a frame, and of the next checkpoint where it adds to that.
fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Stage { staged, extents, .. } => {
            let previous = staged.change.previous().len() * 8;
            inline_bytes(extents) + previous + 160 + sums_bytes(extents)
        }
        Record::Mend { stamps, extents, .. } => {
            inline_bytes(extents) + stamps.len() * 8 + 64 + sums_bytes(extents)
        }
        Record::Image { extents, .. } => inline_bytes(extents) + 32 + sums_bytes(extents),
        Record::Remember { completions } => completions.len() * 64 + 16,
        Record::Note { key, value } => 2 * (key.len() + value.as_ref().map_or(0, Vec::len) + 16),
        _ => 32,
    }
}

fn sums_bytes(extents: &[Extent]) -> usize {
    extents.iter().map(|extent| 24 + extent.sums.len() * 4).sum()
}
