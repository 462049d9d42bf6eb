//! From a command to stable storage: staging, deciding, mending, notes, and the journal groups that carry them.
//!
//! All records pass through one queue, so that the journal has them in the order in which they were asked for. A group takes
//! what has gathered while the one before was in flight.

use crate::io::IoKind;
use crate::machine::{Purpose, Running};
use crate::metadata::{Key, PAGE_BLOCKS};
use crate::overlay::{Need, Setting};
use crate::record::{Body, Effect, Extent, FrameBuilder, Record, inline_bytes};
use crate::superblock::{SLOT_BLOCKS, SLOT_BYTES};
use base::{BLOCK, Payload, Stamp, Time, VolumeId};
use core::time::Duration;
use std::collections::VecDeque;
use wire::disk::{Reply, Staged, StoreError, Token};
use wire::{Change, Span, Wire};

/// The most stamps a block that a command may name.
const WIDTH_MAX: u8 = 32;
/// The longest frame of several records.
const GROUP_BYTES_MAX: usize = 4 << 20;

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

    /// What a retry of its request has to know.
    pub(crate) fn effect(&self) -> Effect {
        Effect { request: self.staged.request, part: self.staged.part, stamp: self.staged.write.stamp }
    }
}

/// An application or a mend. Those of the same blocks happen in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Work {
    id: u64,
    pub(crate) span: Span,
    kind: WorkKind,
    started: bool,
}

#[derive(Debug)]
enum WorkKind {
    Apply(Stamp),
    Mend(Box<Mend>),
}

#[derive(Debug)]
struct Mend {
    token: Token,
    width: u8,
    stamps: Vec<Stamp>,
    extents: Vec<Extent>,
    need: Need,
    cost: usize,
}

impl Work {
    /// What it takes of the journal beside what writes take.
    pub(crate) fn cost(&self) -> usize {
        match &self.kind {
            WorkKind::Apply(_) => 0,
            WorkKind::Mend(mend) => mend.cost,
        }
    }

    /// The answer when the disk failed.
    pub(crate) fn refusal(&self) -> Option<Reply> {
        match &self.kind {
            WorkKind::Apply(_) => None,
            WorkKind::Mend(mend) => Some(Reply::Staged { token: mend.token, result: Err(StoreError::Failed) }),
        }
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
    Discard(VolumeId),
    Checkpoint,
}

impl Item {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        matches!(self, Item::Stage(_) | Item::Mend(_) | Item::Note(..))
    }
}

/// The records that wait for the next group.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    urgent: usize,
    /// When the oldest record came for which nobody waits.
    pub(crate) lazy_since: Option<Time>,
    /// Whether the next group has to wait for room in the journal.
    blocked: bool,
    next_work: u64,
}

impl Queue {
    fn push(&mut self, item: Item, now: Time) {
        if item.is_urgent() {
            self.urgent += 1;
        } else {
            self.lazy_since.get_or_insert(now);
        }
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
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

/// What a write would take.
struct Plan {
    extents: Vec<Extent>,
    need: Need,
    cost: usize,
}

impl Running {
    // Commands.

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
            Change::Parity { width } => (1..=WIDTH_MAX).contains(width) && payload.len() == staged.write.span.bytes(),
            Change::Data => payload.len() == staged.write.span.bytes(),
        };
        let direct = matches!(staged.change, Change::Data | Change::Parity { .. });
        let record_bytes = staged.to_bytes().len();
        let setting = Setting::of(&staged.change, stamp);
        let planned = if sound && staged.write.span.is_valid() {
            self.plan(staged.write.span, setting, &payload, direct, record_bytes)
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

    pub(crate) fn on_mend(&mut self, token: Token, span: Span, width: u8, stamps: Vec<Stamp>, payload: Payload) {
        let sound = span.is_valid()
            && (1..=WIDTH_MAX).contains(&width)
            && stamps.len() == span.count as usize * width as usize
            && payload.len() == span.bytes();
        let planned = if sound {
            self.plan(span, Setting::Each(width, &stamps), &payload, true, stamps.len() * 8 + 32)
        } else {
            Err(StoreError::Failed)
        };
        match planned {
            Err(error) => self.answer(token, Err(error)),
            Ok(Plan { extents, need, cost }) => {
                self.enlist(span, WorkKind::Mend(Box::new(Mend { token, width, stamps, extents, need, cost })));
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

    pub(crate) fn on_discard(&mut self, volume: VolumeId) {
        if self.discards.contains_key(&volume) {
            return;
        }
        let of_volume = self.writes.values().map(|write| write.staged.write).filter(|w| w.span.volume == volume);
        let doomed: Vec<Stamp> = of_volume.map(|write| write.stamp).collect();
        doomed.into_iter().for_each(|stamp| self.on_drop(stamp));
        self.discards.insert(volume, false);
        self.queue.push(Item::Discard(volume), self.now);
    }

    fn answer(&mut self, token: Token, result: Result<(), StoreError>) {
        self.reply(Reply::Staged { token, result });
    }

    // Room for a write.

    /// Cuts a write into extents and sets room aside for it.
    fn plan(
        &mut self,
        span: Span,
        setting: Setting<'_>,
        payload: &Payload,
        direct: bool,
        record_bytes: usize,
    ) -> Result<Plan, StoreError> {
        let mut free = if direct { self.slots.available() } else { 0 };
        let cuts = cut(span, payload.is_empty(), &mut free);
        let inline: u32 = cuts.iter().filter(|cut| cut.2 == Cut::Inline).map(|cut| cut.1).sum();
        let cost = inline as usize * BLOCK + record_bytes + cuts.len() * 32 + span.count as usize * 28 + 96;
        self.admit(span.volume, cost)?;
        let need = self.need(span, setting, &cuts);
        self.admit_space(need, payload.is_empty(), cuts.iter().filter(|cut| cut.2 == Cut::Direct).count())?;
        self.reserve(need);
        self.live_cost += cost;
        let extents = cuts.into_iter().map(|cut| self.extent(payload, cut)).collect();
        Ok(Plan { extents, need, cost })
    }

    /// A fifth of the journal is for writes that are not decided, so that they can be carried forward beside a checkpoint
    /// and what is being appended.
    fn admit(&mut self, volume: VolumeId, cost: usize) -> Result<(), StoreError> {
        let live_max = self.journal.capacity() as usize / 5;
        if cost > live_max {
            return Err(StoreError::NoSpace);
        }
        let away = self.durable.bytes() + self.destaging.bytes();
        let full = self.live_cost + cost > live_max
            || (away + self.live_cost > 0 && away + self.live_cost + cost > self.limits.backlog_bytes)
            || self.queue.items.len() + self.works.len() >= self.limits.queue_max;
        if full || self.discards.contains_key(&volume) {
            self.cycle.want(!self.durable.is_empty());
            return Err(StoreError::Busy);
        }
        Ok(())
    }

    /// Some room for pages is kept for zeros, so that space can be given back on a full disk.
    fn admit_space(&mut self, need: Need, zero: bool, direct: usize) -> Result<(), StoreError> {
        let kept = if zero { 0 } else { self.pages.places.count() / 16 };
        let fits = need.slots as usize + direct <= self.slots.available() as usize
            && (need.pages == 0 || need.pages + kept <= self.pages.places.available());
        if fits {
            return Ok(());
        }
        // Content on its way home may hold more than it turns out to need.
        let moving = !self.fresh.is_empty() || !self.durable.is_empty() || !self.destaging.is_empty();
        self.cycle.want(!self.durable.is_empty());
        Err(if moving { StoreError::Busy } else { StoreError::NoSpace })
    }

    fn need(&self, span: Span, setting: Setting<'_>, cuts: &[(u32, u32, Cut)]) -> Need {
        let mut need = Need::default();
        for &(offset, count, _) in cuts.iter().filter(|cut| cut.2 == Cut::Inline) {
            let first = span.lba + u64::from(offset);
            let numbers = first / SLOT_BLOCKS..=(first + u64::from(count) - 1) / SLOT_BLOCKS;
            need.slots += numbers.filter(|&number| !self.has_slot(span.volume, number)).count() as u32;
        }
        for page in span.lba / PAGE_BLOCKS..=(span.end() - 1) / PAGE_BLOCKS {
            let missing = |plane| self.pages.home(Key { volume: span.volume, page, plane }).is_none();
            need.pages += setting.planes_used().filter(|&plane| missing(plane)).count() as u32;
        }
        need
    }

    /// Whether a slot is at home at these blocks.
    pub(crate) fn has_slot(&self, volume: VolumeId, number: u64) -> bool {
        let home = self.pages.home(Key::of(volume, number * SLOT_BLOCKS, 0));
        home.is_some_and(|home| home.slots & 1 << (number % (PAGE_BLOCKS / SLOT_BLOCKS)) != 0)
    }

    /// Sets room aside; as much as there is when recovery asks for more.
    pub(crate) fn reserve(&mut self, need: Need) -> Need {
        let slots = need.slots.min(self.slots.available());
        let pages = need.pages.min(self.pages.places.available());
        self.slots.reserve(slots);
        self.pages.places.reserve(pages);
        Need { slots, pages }
    }

    /// Room for a recovered write.
    pub(crate) fn reserve_recovered(&mut self, stamp: Stamp) {
        let write = &self.writes[&stamp];
        let cuts: Vec<_> = write.extents.iter().map(|extent| (extent.offset, extent.count, Cut::of(extent))).collect();
        let need = self.need(write.staged.write.span, write.setting(), &cuts);
        let need = self.reserve(need);
        self.writes.get_mut(&stamp).expect("just seen").need = need;
    }

    fn release(&mut self, need: Need) {
        self.slots.release(need.slots);
        self.pages.places.release(need.pages);
    }

    fn extent(&mut self, payload: &Payload, (offset, count, cut): (u32, u32, Cut)) -> Extent {
        if cut == Cut::Zero {
            return Extent { offset, count, sums: Vec::new(), body: Body::Zero };
        }
        let content = payload.slice(offset as usize * BLOCK, count as usize * BLOCK);
        let sums = (0..count as usize).map(|i| content.block(i).checksum()).collect();
        let body = match cut {
            Cut::Direct => {
                let slot = self.slots.allocate().expect("room was counted");
                self.queue_direct(slot, content);
                Body::Slot(slot)
            }
            _ => Body::Inline(content),
        };
        Extent { offset, count, sums, body }
    }

    fn queue_direct(&mut self, slot: u32, content: Payload) {
        self.stats.direct_blocks += SLOT_BLOCKS;
        self.cache.forget(u64::from(slot) * SLOT_BLOCKS, SLOT_BLOCKS);
        self.direct.insert(slot, content);
    }

    // Applications and mends, in order.

    fn enlist(&mut self, span: Span, kind: WorkKind) {
        self.queue.next_work += 1;
        let id = self.queue.next_work;
        self.works.push_back(Work { id, span, kind, started: false });
        self.start_work(self.works.len() - 1);
    }

    /// Starts a work unless an earlier one on its blocks is not finished. Gives back whether it finished.
    fn start_work(&mut self, at: usize) -> bool {
        let work = &self.works[at];
        let blocked = self.works.iter().take(at).any(|earlier| earlier.span.overlaps(&work.span));
        if work.started || blocked {
            return false;
        }
        let id = work.id;
        let discarded = self.discards.contains_key(&work.span.volume);
        match work.kind {
            WorkKind::Mend(_) if discarded => {
                self.refuse_mend(at);
                true
            }
            WorkKind::Apply(stamp) if discarded => {
                self.works.remove(at);
                self.forget_write(stamp);
                true
            }
            WorkKind::Mend(_) => {
                self.works[at].started = true;
                self.queue.push(Item::Mend(id), self.now);
                false
            }
            WorkKind::Apply(stamp) => {
                self.works[at].started = true;
                self.apply(stamp, at)
            }
        }
    }

    /// A volume that is being discarded takes no more content.
    fn refuse_mend(&mut self, at: usize) {
        let work = self.works.remove(at).expect("the caller has seen it");
        let WorkKind::Mend(mend) = work.kind else { unreachable!("work {} is a mend", work.id) };
        self.live_cost -= mend.cost;
        self.release(mend.need);
        for extent in &mend.extents {
            if let Body::Slot(slot) = extent.body {
                self.direct.remove(&slot);
            }
            self.free_slot_of(extent);
        }
        self.answer(mend.token, Err(StoreError::Busy));
    }

    fn forget_write(&mut self, stamp: Stamp) {
        self.writes.get_mut(&stamp).expect("a write being applied is known").state = WriteState::Dropped;
        self.queue.push(Item::Drop(stamp), self.now);
    }

    fn apply(&mut self, stamp: Stamp, at: usize) -> bool {
        let write = self.writes.get_mut(&stamp).expect("a write being applied is known");
        let span = write.staged.write.span;
        if matches!(write.staged.change, Change::Xor { .. }) {
            self.read_base(stamp, span);
            return false;
        }
        write.state = WriteState::Applied;
        let write = &self.writes[&stamp];
        self.fresh.put(span, stamp, write.setting(), &write.extents);
        self.works.remove(at);
        self.queue.push(Item::Apply(stamp), self.now);
        true
    }

    /// The parity that a delta changes is here: `blocks` of content, `lost` ones among them without.
    pub(crate) fn on_base(&mut self, stamp: Stamp, base: &Payload, lost: &[u32]) {
        let at = self.works.iter().position(|work| matches!(work.kind, WorkKind::Apply(s) if s == stamp));
        self.works.remove(at.expect("a write that reads its base is at work"));
        let write = self.writes.get_mut(&stamp).expect("a write being applied is known");
        let span = write.staged.write.span;
        if self.discards.contains_key(&span.volume) {
            self.forget_write(stamp);
        } else {
            write.state = WriteState::Applied;
            let image = image(&write.extents, base, lost);
            self.fresh.put(span, stamp, self.writes[&stamp].setting(), &image);
            self.queue.push(Item::Image(stamp, image), self.now);
        }
        self.go_on();
    }

    /// Starts what a finished work has held up.
    fn go_on(&mut self) {
        let mut at = 0;
        while at < self.works.len() {
            at += usize::from(!self.start_work(at));
        }
        self.release_reads();
    }

    /// Whether works on these blocks are under way.
    pub(crate) fn is_worked_on(&self, span: &Span) -> bool {
        self.works.iter().any(|work| work.span.overlaps(span))
    }

    // Groups.

    /// Starts the next group if there is reason to and none is in flight.
    pub(crate) fn start_group(&mut self) {
        if self.group.is_some() {
            return;
        }
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
            return if self.cycle.is_wanted() { self.start_checkpoint() };
        }
        self.send_group(builder, items, starts, direct);
    }

    /// Whether a frame of `length` leaves the journal enough room for a checkpoint that carries all that is undecided.
    fn has_room(&self, length: usize) -> bool {
        let kept = self.live_cost + self.checkpoint_bytes() + 2 * BLOCK;
        self.journal.used() as usize + length + kept <= self.journal.capacity() as usize
    }

    fn checkpoint_bytes(&self) -> usize {
        self.effects.len() * 32 + self.notes_bytes + self.discards.len() * 8 + 64
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
            discards: self.discards.iter().filter(|(_, logged)| **logged).map(|(&volume, _)| volume).collect(),
        }));
        items.push(Item::Checkpoint);
        self.cycle.seal(self.journal.head);
        self.send_group(builder, items, starts, Vec::new());
    }

    fn send_group(&mut self, builder: FrameBuilder, mut items: Vec<Item>, starts: Vec<usize>, direct: Vec<u32>) {
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
            Item::Discard(volume) => Record::Discard { volume: *volume },
            Item::Checkpoint => unreachable!("a checkpoint is built apart"),
        }
    }

    /// Effects are remembered in the order of the journal, so that a checkpoint says what the records before it say.
    fn note_effect(&mut self, item: &Item) {
        if let Item::Apply(stamp) | Item::Image(stamp, _) = item {
            self.effects.insert(self.writes[stamp].effect());
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
            Item::Note(token, ..) => self.reply(Reply::Noted { token, result: Ok(()) }),
            Item::Discard(volume) => {
                self.discards.insert(volume, true);
                let slots = self.durable.remove_volume(volume);
                slots.into_iter().for_each(|slot| self.slots.free(slot));
                self.cycle.want(true);
            }
            Item::Checkpoint => {}
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

    fn free_slot_of(&mut self, extent: &Extent) {
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
            Item::Note(token, ..) => vec![Reply::Noted { token: *token, result: failed }],
            _ => Vec::new(),
        }
    }
}

/// How a stretch of a write gets onto the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Inline,
    Direct,
    Zero,
}

impl Cut {
    fn of(extent: &Extent) -> Cut {
        match extent.body {
            Body::Slot(_) => Cut::Direct,
            Body::Inline(_) => Cut::Inline,
            Body::Zero | Body::Lost => Cut::Zero,
        }
    }
}

/// Cuts a write into stretches `(offset, count, how)`: whole slots go to `free` ones directly, the rest through the journal.
fn cut(span: Span, zero: bool, free: &mut u32) -> Vec<(u32, u32, Cut)> {
    if zero {
        return vec![(0, span.count, Cut::Zero)];
    }
    let mut cuts: Vec<(u32, u32, Cut)> = Vec::new();
    let mut offset = 0;
    while offset < span.count {
        let to_next = (SLOT_BLOCKS - (span.lba + u64::from(offset)) % SLOT_BLOCKS) as u32;
        let count = to_next.min(span.count - offset);
        let direct = u64::from(count) * BLOCK as u64 == SLOT_BYTES && *free > 0;
        match cuts.last_mut() {
            Some((_, length, Cut::Inline)) if !direct => *length += count,
            _ => cuts.push((offset, count, if direct { Cut::Direct } else { Cut::Inline })),
        }
        *free -= u32::from(direct);
        offset += count;
    }
    cuts
}

/// `base ^ delta`, a block an extent where content is lost.
fn image(delta: &[Extent], base: &Payload, lost: &[u32]) -> Vec<Extent> {
    let mut image: Vec<Extent> = Vec::new();
    for extent in delta {
        let Some(content) = extent.inline() else { continue };
        let start = extent.offset as usize * BLOCK;
        let sum = content.xor(&base.slice(start, content.len()));
        for i in 0..extent.count {
            let offset = extent.offset + i;
            if lost.binary_search(&offset).is_ok() {
                image.push(Extent { offset, count: 1, sums: Vec::new(), body: Body::Lost });
                continue;
            }
            let block = sum.block(i as usize);
            let sums = vec![block.checksum()];
            image.push(Extent { offset, count: 1, sums, body: Body::Inline(block) });
        }
    }
    image
}

fn mend_of(works: &mut VecDeque<Work>, id: u64) -> &mut Mend {
    let work = works.iter_mut().find(|work| work.id == id).expect("a queued mend is at work");
    let WorkKind::Mend(mend) = &mut work.kind else { unreachable!("work {id} is a mend") };
    mend
}

/// A bound of what a record takes of a frame.
fn record_bytes(record: &Record) -> usize {
    match record {
        Record::Stage { staged, extents, .. } => {
            let previous = if let Change::Xor { previous, .. } = &staged.change { previous.len() * 8 } else { 0 };
            inline_bytes(extents) + previous + 160 + sums_bytes(extents)
        }
        Record::Mend { stamps, extents, .. } => inline_bytes(extents) + stamps.len() * 8 + 64 + sums_bytes(extents),
        Record::Image { extents, .. } => inline_bytes(extents) + 32 + sums_bytes(extents),
        Record::Note { key, value } => key.len() + value.as_ref().map_or(0, Vec::len) + 16,
        _ => 16,
    }
}

fn sums_bytes(extents: &[Extent]) -> usize {
    extents.iter().map(|extent| 24 + extent.sums.len() * 4).sum()
}
