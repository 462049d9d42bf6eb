//! From a command to stable storage: staging, deciding, mending, notes, and the journal groups that carry them.
//!
//! All records pass through one queue, so that the journal has them in the order in which they were asked for. A group takes
//! what has gathered while the one before was in flight.

use crate::discard::Region;
use crate::io::IoKind;
use crate::machine::{Purpose, Running};
use crate::overlay::{Need, Setting};
use crate::record::{Body, Extent, FrameBuilder, Record, WIDTH_MAX, inline_bytes};
use crate::room::{Cause, Plan};
use crate::superblock::SLOT_BLOCKS;
use crate::works::{Mend, Work, WorkKind};
use base::{BLOCK, Payload, Stamp, Time};
use core::time::Duration;
use std::collections::VecDeque;
use wire::disk::{Reply, Staged, StoreError, Token};
use wire::{Change, Completion, Span, Wire};

/// The longest frame of several records.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Batches of effects from elsewhere that wait for the journal.
const REMEMBER_MAX: usize = 64;

/// A write between being asked for and its decision being journalled.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) staged: Staged,
    pub(crate) extents: Vec<Extent>,
    pub(crate) need: Need,
    pub(crate) cost: usize,
    pub(crate) state: WriteState,
    /// What to do once it is staged.
    decision: Option<Verdict>,
    tokens: Vec<Token>,
}

/// How far a write is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteState {
    /// Not journalled.
    Queued,
    /// Undecided.
    Staged,
    /// Being applied: its turn or its parity has to come.
    Applying,
    /// Applied; the journal does not know yet.
    Applied,
    /// Dropped; the journal does not know yet.
    Dropped,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Apply,
    Drop,
}

impl Write {
    /// As recovery finds it.
    pub(crate) fn recovered(staged: Staged, extents: Vec<Extent>, cost: usize) -> Write {
        let need = Need::default();
        Write { staged, extents, need, cost, state: WriteState::Staged, decision: None, tokens: Vec::new() }
    }

    /// The stamps that it sets.
    pub(crate) fn setting(&self) -> Setting<'static> {
        Setting::of(&self.staged.change, self.staged.write.stamp)
    }

    /// Whether it is to be dropped although it is being applied.
    pub(crate) fn is_doomed(&self) -> bool {
        self.state == WriteState::Applying && self.decision == Some(Verdict::Drop)
    }

    /// Whether it is decided, and its decision has no record in the queue yet.
    pub(crate) fn is_being_decided(&self) -> bool {
        match self.state {
            WriteState::Queued => self.decision.is_some(),
            WriteState::Applying => true,
            _ => false,
        }
    }

    /// What a retry of its request has to know.
    pub(crate) fn effect(&self) -> Completion {
        Completion { request: self.staged.request, part: self.staged.part, stamp: self.staged.write.stamp }
    }
}

/// A record on its way into the journal.
#[derive(Debug)]
pub(crate) enum Item {
    Stage(Stamp),
    Apply(Stamp),
    Image(Stamp, Vec<Extent>),
    Drop(Stamp),
    /// The work's id.
    Mend(u64),
    Note(Token, Vec<u8>, Option<Vec<u8>>),
    Remember(Token, Vec<Completion>),
    Discard(Region),
    /// No record: all that is before it is in the journal.
    Barrier(Token),
    Checkpoint,
}

impl Item {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        matches!(
            self,
            Item::Stage(_) | Item::Mend(_) | Item::Note(..) | Item::Remember(..) | Item::Barrier(_)
        )
    }
}

/// The records that wait for the next group.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) items: VecDeque<Item>,
    urgent: usize,
    /// When the oldest record came for which nobody waits.
    pub(crate) lazy_since: Option<Time>,
    /// Whether the next group has to wait for room in the journal.
    blocked: bool,
    pub(crate) next_work: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, item: Item, now: Time) {
        if item.is_urgent() {
            self.urgent += 1;
        } else {
            self.lazy_since.get_or_insert(now);
        }
        self.items.push_back(item);
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.urgent -= usize::from(item.is_urgent());
        if self.items.len() == self.urgent {
            self.lazy_since = None;
        }
        Some(item)
    }

    /// Whether it waits for room in the journal.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Takes everything away.
    pub(crate) fn drain(&mut self) -> Vec<Item> {
        self.items.drain(..).collect()
    }
}

/// The journal group in flight.
pub(crate) struct Group {
    pub(crate) items: Vec<Item>,
    /// Writes not answered yet.
    parts: usize,
    /// Whether a flush has to follow them.
    flush: bool,
}

impl Running {
    pub(crate) fn on_stage(&mut self, token: Token, staged: Staged, payload: Payload) {
        let stamp = staged.write.stamp;
        if let Some(known) = self.writes.get_mut(&stamp) {
            match known.state {
                WriteState::Queued => return known.tokens.push(token),
                WriteState::Dropped => return self.answer(token, Err(StoreError::Busy)),
                _ => return self.answer(token, Ok(())),
            }
        }
        let sound = match &staged.change {
            Change::Zero => payload.is_empty(),
            Change::Xor { index, .. } => *index < WIDTH_MAX && payload.len() == staged.write.span.bytes(),
            Change::Parity { width } => {
                (1..=WIDTH_MAX).contains(width) && payload.len() == staged.write.span.bytes()
            }
            Change::Data => payload.len() == staged.write.span.bytes(),
        };
        let direct = matches!(staged.change, Change::Data | Change::Parity { .. });
        let record_bytes = staged.to_bytes().len();
        let setting = Setting::of(&staged.change, stamp);
        let planned = if sound && staged.write.span.is_valid() {
            self.plan(staged.write.span, setting, &payload, Cause::stage(direct), record_bytes)
        } else {
            Err(StoreError::Failed)
        };
        match planned {
            Err(error) => self.answer(token, Err(error)),
            Ok(Plan { extents, need, cost }) => {
                let (state, decision, tokens) = (WriteState::Queued, None, vec![token]);
                self.writes.insert(stamp, Write { staged, extents, need, cost, state, decision, tokens });
                self.queue.push(Item::Stage(stamp), self.now);
            }
        }
    }

    pub(crate) fn on_apply(&mut self, stamp: Stamp) {
        let Some(write) = self.writes.get_mut(&stamp) else { return };
        match write.state {
            WriteState::Queued => write.decision = Some(Verdict::Apply),
            WriteState::Staged => {
                write.state = WriteState::Applying;
                let span = write.staged.write.span;
                self.enlist(span, WorkKind::Apply(stamp));
            }
            _ => {}
        }
    }

    pub(crate) fn on_drop(&mut self, stamp: Stamp) {
        let Some(write) = self.writes.get_mut(&stamp) else { return };
        match write.state {
            WriteState::Queued => write.decision = Some(Verdict::Drop),
            WriteState::Staged => {
                write.state = WriteState::Dropped;
                self.queue.push(Item::Drop(stamp), self.now);
            }
            _ => {}
        }
    }

    pub(crate) fn on_mend(
        &mut self,
        token: Token,
        span: Span,
        width: u8,
        stamps: Vec<Stamp>,
        payload: Payload,
    ) {
        let is_lost = payload.is_empty();
        let sound = span.is_valid()
            && (1..=WIDTH_MAX).contains(&width)
            && stamps.len() == span.count as usize * width as usize
            && (is_lost || payload.len() == span.bytes());
        let planned = if sound {
            self.plan(span, Setting::Each(width, &stamps), &payload, Cause::Mend, stamps.len() * 8 + 32)
        } else {
            Err(StoreError::Failed)
        };
        match planned {
            Err(error) => self.answer(token, Err(error)),
            Ok(Plan { mut extents, need, cost }) => {
                if is_lost {
                    extents.iter_mut().for_each(|extent| extent.body = Body::Lost);
                }
                self.enlist(
                    span,
                    WorkKind::Mend(Box::new(Mend { token, width, stamps, extents, need, cost })),
                );
            }
        }
    }

    pub(crate) fn on_note(&mut self, token: Token, key: Vec<u8>, value: Option<Vec<u8>>) {
        let size = |key: &[u8], value: &[u8]| key.len() + value.len() + 8;
        let old = self.notes.get(&key).map_or(0, |old| size(&key, old));
        let new = value.as_ref().map_or(0, |new| size(&key, new));
        let full = new > old && self.notes_bytes - old + new > self.journal.capacity() as usize / 20;
        if full || self.queue.items.len() >= self.limits.queue_max {
            let error = if full { StoreError::NoSpace } else { StoreError::Busy };
            return self.reply(Reply::Noted { token, result: Err(error) });
        }
        self.notes_bytes = self.notes_bytes - old + new;
        match &value {
            Some(value) => drop(self.notes.insert(key.clone(), value.clone())),
            None => drop(self.notes.remove(&key)),
        }
        self.queue.push(Item::Note(token, key, value), self.now);
    }

    /// Takes over what took effect elsewhere. Of more than would be remembered the latest are taken.
    pub(crate) fn on_remember(&mut self, token: Token, mut completions: Vec<Completion>) {
        let waiting = self.queue.items.iter().filter(|item| matches!(item, Item::Remember(..))).count();
        if waiting >= REMEMBER_MAX || self.queue.items.len() >= self.limits.queue_max {
            return self.reply(Reply::Noted { token, result: Err(StoreError::Busy) });
        }
        completions.sort_unstable_by_key(|completion| completion.stamp);
        completions.drain(..completions.len().saturating_sub(self.effects.max()));
        self.queue.push(Item::Remember(token, completions), self.now);
    }

    pub(crate) fn on_discard(&mut self, region: Region) {
        if !region.is_sound() || !self.holds_any(region) {
            return;
        }
        let is_now = self.discards.add(region);
        for stamp in self.writes_in(region) {
            self.on_drop(stamp);
            let write = self.writes.get_mut(&stamp).expect("just seen");
            if write.state == WriteState::Applying {
                write.decision = Some(Verdict::Drop);
            }
        }
        self.refuse_mends(region);
        if is_now {
            self.queue.push(Item::Discard(region), self.now);
        }
    }

    /// The writes of a region that are not over.
    pub(crate) fn writes_in(&self, region: Region) -> Vec<Stamp> {
        let inside = self.writes.iter().filter(|(_, write)| region.holds_span(&write.staged.write.span));
        inside.map(|(&stamp, _)| stamp).collect()
    }

    /// Whether there is anything in a region to be given back.
    fn holds_any(&self, region: Region) -> bool {
        let layers = [&self.fresh, &self.durable, &self.destaging];
        self.pages.of(region).next().is_some()
            || layers.into_iter().any(|layer| layer.holds_any(region))
            || !self.writes_in(region).is_empty()
            || self.works.iter().any(|work| region.holds_span(&work.span))
    }

    pub(crate) fn answer(&mut self, token: Token, result: Result<(), StoreError>) {
        self.reply(Reply::Staged { token, result });
    }

    /// Starts the next group if there is reason to and none is in flight.
    pub(crate) fn start_group(&mut self) {
        if self.group.is_some() {
            return;
        }
        self.answer_barriers();
        if self.cycle.is_wanted() {
            return self.start_checkpoint();
        }
        let lazy = self.queue.lazy_since.is_some_and(|since| {
            self.now >= since + Duration::from_nanos(self.limits.lazy_ns) || self.queue.items.len() > 256
        });
        if self.queue.urgent == 0 && !lazy {
            return;
        }
        let mut builder = FrameBuilder::default();
        let (mut items, mut starts) = (Vec::new(), Vec::new());
        let mut direct = Vec::new();
        while let Some(item) = self.queue.items.front() {
            if let Item::Barrier(_) = item {
                starts.push(builder.length());
                items.extend(self.queue.pop());
                continue;
            }
            let record = self.record_of(item);
            let length = builder.length() + 2 * BLOCK + record_bytes(&record);
            if !items.is_empty() && length > GROUP_BYTES_MAX || !self.has_room(length) {
                break;
            }
            let item = self.queue.pop().expect("just seen");
            direct.extend(record.fresh_slots().map(|(slot, _)| slot));
            starts.push(builder.push(&record));
            self.note_effect(&item);
            items.push(item);
        }
        self.queue.blocked = items.is_empty();
        if items.is_empty() {
            self.cycle.want(true);
            return if self.cycle.is_wanted() {
                self.start_checkpoint()
            };
        }
        self.send_group(builder, items, starts, direct);
    }

    /// Whether a frame of `length` leaves the journal enough room for a checkpoint that carries all that is undecided.
    fn has_room(&self, length: usize) -> bool {
        let kept = self.live_cost + self.checkpoint_bytes() + 2 * BLOCK;
        self.journal.used() as usize + length + kept <= self.journal.capacity() as usize
    }

    fn checkpoint_bytes(&self) -> usize {
        self.effects.len() * 32 + self.notes_bytes + self.discards.checkpoint_bytes() + 64
    }

    fn start_checkpoint(&mut self) {
        let mut builder = FrameBuilder::default();
        let (mut items, mut starts) = (Vec::new(), Vec::new());
        for (&stamp, write) in self.writes.iter().filter(|(_, write)| write.state != WriteState::Queued) {
            let (staged, extents) = (write.staged.clone(), write.extents.clone());
            starts.push(builder.push(&Record::Stage { staged, extents, fresh: false }));
            items.push(Item::Stage(stamp));
        }
        starts.push(builder.push(&Record::Checkpoint {
            notes: self.notes.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            effects: self.effects.iter().collect(),
            discards: self.discards.logged().filter(|r| r.stretch.is_none()).map(|r| r.volume).collect(),
        }));
        for region in self.discards.logged().filter(|region| region.stretch.is_some()) {
            builder.push(&Record::discard(region));
        }
        items.push(Item::Checkpoint);
        if self.journal.used() + builder.length() as u64 > self.journal.capacity() {
            return self.fail("the journal holds more than this store can have written; replace the disk");
        }
        self.cycle.seal(self.journal.head);
        self.send_group(builder, items, starts, Vec::new());
    }

    fn send_group(
        &mut self,
        builder: FrameBuilder,
        mut items: Vec<Item>,
        starts: Vec<usize>,
        direct: Vec<u32>,
    ) {
        self.stats.groups += 1;
        self.stats.group_records += items.len() as u64;
        self.stats.group_records_max = self.stats.group_records_max.max(items.len() as u64);
        let frame = builder.finish(self.journal.head, self.seed);
        self.stats.journal_bytes_written += frame.bytes.len() as u64;
        for (item, start) in items.iter_mut().zip(starts) {
            match item {
                Item::Image(_, extents) => frame.adopt(extents, start),
                Item::Stage(stamp) => {
                    frame.adopt(&mut self.writes.get_mut(stamp).expect("queued").extents, start);
                }
                Item::Mend(id) => frame.adopt(&mut mend_of(&mut self.works, *id).extents, start),
                _ => {}
            }
        }
        let flush = !direct.is_empty();
        let writes = self.journal.append(&frame.bytes);
        let parts = writes.len() + direct.len();
        for slot in direct {
            let content = self.direct.remove(&slot).expect("a fresh slot has content");
            let offset = self.geometry.block_offset(u64::from(slot) * SLOT_BLOCKS);
            self.write(Purpose::Group, offset, content, false);
        }
        writes.into_iter().for_each(|(offset, part)| self.write(Purpose::Group, offset, part, !flush));
        self.group = Some(Group { items, parts, flush });
    }

    fn record_of(&self, item: &Item) -> Record {
        match item {
            Item::Stage(stamp) => {
                let write = &self.writes[stamp];
                let (staged, extents) = (write.staged.clone(), write.extents.clone());
                Record::Stage { staged, extents, fresh: true }
            }
            Item::Apply(stamp) => Record::Apply { stamp: *stamp },
            Item::Image(stamp, extents) => Record::Image { stamp: *stamp, extents: extents.clone() },
            Item::Drop(stamp) => Record::Drop { stamp: *stamp },
            Item::Mend(id) => {
                let work = self.works.iter().find(|work| work.id == *id).expect("a queued mend is at work");
                let WorkKind::Mend(mend) = &work.kind else { unreachable!("work {id} is a mend") };
                let (stamps, extents) = (mend.stamps.clone(), mend.extents.clone());
                Record::Mend { span: work.span, width: mend.width, stamps, extents, fresh: true }
            }
            Item::Note(_, key, value) => Record::Note { key: key.clone(), value: value.clone() },
            Item::Remember(_, effects) => Record::Remember { effects: effects.clone() },
            Item::Discard(region) => Record::discard(*region),
            Item::Checkpoint => unreachable!("a checkpoint is built apart"),
            Item::Barrier(_) => unreachable!("a barrier is no record"),
        }
    }

    /// Effects are remembered in the order of the journal, so that a checkpoint says what the records before it say.
    fn note_effect(&mut self, item: &Item) {
        match item {
            Item::Apply(stamp) | Item::Image(stamp, _) => self.effects.insert(self.writes[stamp].effect()),
            Item::Remember(_, effects) => effects.iter().for_each(|&effect| self.effects.insert(effect)),
            _ => {}
        }
    }

    pub(crate) fn on_group_part(&mut self) {
        let group = self.group.as_mut().expect("a group is in flight");
        group.parts -= 1;
        if group.parts > 0 {
            return;
        }
        if group.flush {
            self.ask(Purpose::GroupFlush, IoKind::Flush);
        } else {
            self.on_group_durable();
        }
    }

    pub(crate) fn on_group_durable(&mut self) {
        let group = self.group.take().expect("a group is in flight");
        self.journal.durable = self.journal.head;
        let checkpoint = matches!(group.items.last(), Some(Item::Checkpoint));
        group.items.into_iter().for_each(|item| self.on_logged(item));
        if checkpoint {
            self.start_writing_home();
        }
        if self.durable_since.is_none() && !self.durable.is_empty() {
            self.durable_since = Some(self.now);
        }
    }

    fn on_logged(&mut self, item: Item) {
        match item {
            Item::Stage(stamp) => self.on_staged(stamp),
            Item::Apply(stamp) => self.on_applied(stamp, None),
            Item::Image(stamp, extents) => self.on_applied(stamp, Some(extents)),
            Item::Drop(stamp) => {
                let write = self.take_write(stamp);
                self.release(write.need);
                write.extents.iter().for_each(|extent| self.free_slot_of(extent));
            }
            Item::Mend(id) => self.on_mended(id),
            Item::Note(token, ..) | Item::Remember(token, _) => {
                self.settling.push(token);
                self.answer_notes();
            }
            Item::Discard(region) => {
                self.discards.log(region);
                let slots = self.durable.remove_region(region);
                slots.into_iter().for_each(|slot| self.slots.free(slot));
                self.answer_notes();
                self.cycle.want(true);
            }
            Item::Barrier(token) => self.reply(Reply::Noted { token, result: Ok(()) }),
            Item::Checkpoint => {}
        }
    }

    fn answer_notes(&mut self) {
        if self.discards.are_logged() {
            let notes = core::mem::take(&mut self.settling);
            notes.into_iter().for_each(|token| self.reply(Reply::Noted { token, result: Ok(()) }));
        }
    }

    fn on_staged(&mut self, stamp: Stamp) {
        let write = self.writes.get_mut(&stamp).expect("a write in flight is known");
        if write.state != WriteState::Queued {
            return;
        }
        write.state = WriteState::Staged;
        let decision = write.decision.take();
        for token in core::mem::take(&mut write.tokens) {
            self.answer(token, Ok(()));
        }
        match decision {
            Some(Verdict::Apply) => self.on_apply(stamp),
            Some(Verdict::Drop) => self.on_drop(stamp),
            None => {}
        }
    }

    fn on_applied(&mut self, stamp: Stamp, image: Option<Vec<Extent>>) {
        let write = self.take_write(stamp);
        let span = write.staged.write.span;
        self.fresh.remove(span, stamp);
        self.durable.put(span, stamp, write.setting(), image.as_ref().unwrap_or(&write.extents));
        self.durable.need.add(write.need);
    }

    fn on_mended(&mut self, id: u64) {
        let at = self.works.iter().position(|work| work.id == id).expect("a mend in flight is at work");
        let work = self.works.remove(at).expect("just seen");
        let WorkKind::Mend(mend) = work.kind else { unreachable!("work {id} is a mend") };
        self.live_cost -= mend.cost;
        self.durable.put(work.span, Stamp::ZERO, Setting::Each(mend.width, &mend.stamps), &mend.extents);
        self.durable.need.add(mend.need);
        self.answer(mend.token, Ok(()));
        self.go_on();
    }

    fn take_write(&mut self, stamp: Stamp) -> Write {
        let write = self.writes.remove(&stamp).expect("a write in flight is known");
        self.live_cost -= write.cost;
        write
    }

    pub(crate) fn free_slot_of(&mut self, extent: &Extent) {
        if let Body::Slot(slot) = extent.body {
            self.slots.free(slot);
        }
    }

    /// The answers that a record's fate is awaited with, when the disk failed.
    pub(crate) fn tokens_of(&mut self, item: &Item) -> Vec<Reply> {
        let failed = Err(StoreError::Failed);
        match item {
            Item::Stage(stamp) => {
                let tokens = self.writes.get_mut(stamp).map(|write| core::mem::take(&mut write.tokens));
                let replies = tokens.unwrap_or_default().into_iter();
                replies.map(|token| Reply::Staged { token, result: failed }).collect()
            }
            Item::Note(token, ..) | Item::Remember(token, _) | Item::Barrier(token) => {
                vec![Reply::Noted { token: *token, result: failed }]
            }
            _ => Vec::new(),
        }
    }
}

fn mend_of(works: &mut VecDeque<Work>, id: u64) -> &mut Mend {
    let work = works.iter_mut().find(|work| work.id == id).expect("a queued mend is at work");
    let WorkKind::Mend(mend) = &mut work.kind else { unreachable!("work {id} is a mend") };
    mend
}

/// A bound of what a record takes of a frame, and of the next checkpoint where it adds to that.
fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Stage { staged, extents, .. } => {
            let previous =
                if let Change::Xor { previous, .. } = &staged.change { previous.len() * 8 } else { 0 };
            inline_bytes(extents) + previous + 160 + sums_bytes(extents)
        }
        Record::Mend { stamps, extents, .. } => {
            inline_bytes(extents) + stamps.len() * 8 + 64 + sums_bytes(extents)
        }
        Record::Image { extents, .. } => inline_bytes(extents) + 32 + sums_bytes(extents),
        Record::Remember { effects } => effects.len() * 64 + 16,
        Record::Note { key, value } => key.len() + value.as_ref().map_or(0, Vec::len) + 16,
        _ => 32,
    }
}

fn sums_bytes(extents: &[Extent]) -> usize {
    extents.iter().map(|extent| 24 + extent.sums.len() * 4).sum()
}
