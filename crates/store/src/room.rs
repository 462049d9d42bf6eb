//! Room for a write, in the journal and on the disk: taken before it is staged, so that its application cannot fail.
//!
//! The last slots and pages are not for new data, so that a disk that is full to its users can still be repaired, written
//! over and emptied.

use crate::machine::Running;
use crate::metadata::{Key, PAGE_BLOCKS};
use crate::overlay::{Need, Setting};
use crate::record::{Body, Extent};
use crate::superblock::{SLOT_BLOCKS, SLOT_BYTES};
use base::{BLOCK, Payload, Stamp, VolumeId};
use wire::Span;
use wire::disk::StoreError;

/// Why room is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// A write that can go to fresh slots.
    Stage,
    /// A write that changes what is there.
    Delta,
    /// A repair, which may take the last of it.
    Mend,
}

impl Cause {
    /// Of a staged write.
    pub(crate) fn stage(direct: bool) -> Cause {
        if direct { Cause::Stage } else { Cause::Delta }
    }
}

/// What a write would take.
pub(crate) struct Plan {
    pub(crate) extents: Vec<Extent>,
    pub(crate) need: Need,
    pub(crate) cost: usize,
}

/// What a write asks of the room that is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Slots that it takes, for good or until those that it replaces are given up.
    slots: u32,
    /// By how many it leaves more in use than before, as far as is known; none for a repair.
    new_slots: u32,
    /// Pages that it takes, with those that it must leave; none if it takes none.
    pages: u32,
}

/// One in so many pages is for zeros and repairs.
const PAGES_KEPT: u32 = 16;

impl Running {
    /// Cuts a write into extents and sets room aside for it.
    pub(crate) fn plan(
        &mut self,
        span: Span,
        setting: Setting<'_>,
        payload: &Payload,
        cause: Cause,
        record_bytes: usize,
    ) -> Result<Plan, StoreError> {
        let mut free = if cause == Cause::Delta { 0 } else { self.slots.available() };
        let cuts = cut(span, payload.is_empty(), &mut free);
        let inline: u32 = cuts.iter().filter(|cut| cut.2 == Cut::Inline).map(|cut| cut.1).sum();
        let cost = inline as usize * BLOCK + record_bytes + cuts.len() * 32 + span.count as usize * 28 + 96;
        self.admit(&span, cost)?;
        let need = self.need(span, setting, &cuts);
        self.admit_space(self.demand(span, cause, &cuts, need))?;
        self.reserve(need);
        self.live_cost += cost;
        let extents = cuts.into_iter().map(|cut| self.extent(payload, cut)).collect();
        Ok(Plan { extents, need, cost })
    }

    /// A fifth of the journal is for writes that are not decided, so that they can be carried forward beside a checkpoint
    /// and what is being appended.
    pub(crate) fn admit(&mut self, span: &Span, cost: usize) -> Result<(), StoreError> {
        let live_max = self.journal.capacity() as usize / 5;
        if cost > live_max {
            return Err(StoreError::NoSpace);
        }
        let away = self.durable.bytes() + self.destaging.bytes();
        let full = self.live_cost + cost > live_max
            || (away + self.live_cost > 0 && away + self.live_cost + cost > self.limits.backlog_bytes)
            || self.queue.items.len() + self.works.len() >= self.limits.queue_max;
        if full || self.discards.cover_span(span) {
            self.cycle.want(!self.durable.is_empty());
            return Err(StoreError::Busy);
        }
        Ok(())
    }

    /// What a write asks of the room that is left.
    fn demand(&self, span: Span, cause: Cause, cuts: &[(u32, u32, Cut)], need: Need) -> Demand {
        let direct = || cuts.iter().filter(|cut| cut.2 == Cut::Direct);
        let number = |offset: u32| (span.lba + u64::from(offset)) / SLOT_BLOCKS;
        let fresh = direct().filter(|cut| !self.has_slot(span.volume, number(cut.0))).count();
        let is_zero = cuts.iter().all(|cut| cut.2 == Cut::Zero);
        let pages_kept = match cause == Cause::Mend || is_zero || need.pages == 0 {
            true => 0,
            false => self.pages.places.count() / PAGES_KEPT,
        };
        Demand {
            slots: need.slots + direct().count() as u32,
            new_slots: if cause == Cause::Mend { 0 } else { need.slots + fresh as u32 },
            pages: need.pages + pages_kept,
        }
    }

    /// Refuses what the disk has no room for, and new data when it is nearly full.
    fn admit_space(&mut self, demand: Demand) -> Result<(), StoreError> {
        let reserved = (self.slots.reserved(), self.pages.places.reserved());
        if self.fits(demand, reserved) {
            return Ok(());
        }
        self.lacked = Some(demand);
        // Content on its way home may hold more than it turns out to need. What is in use already is no such promise.
        let moving = !self.fresh.is_empty() || !self.durable.is_empty() || !self.destaging.is_empty();
        let lacks_pages = demand.pages > self.pages.places.unused() && self.discards.is_empty();
        let is_full = demand.new_slots > self.new_slots_max() || lacks_pages;
        self.cycle.want(!self.durable.is_empty());
        Err(if moving && !is_full { StoreError::Busy } else { StoreError::NoSpace })
    }

    /// Whether there is room for a write beside so many slots and pages that are set aside.
    fn fits(&self, demand: Demand, (slots, pages): (u32, u32)) -> bool {
        demand.slots + slots <= self.slots.unused()
            && (demand.pages == 0 || demand.pages + pages <= self.pages.places.unused())
            && (demand.new_slots == 0 || demand.new_slots + slots <= self.new_slots_max())
    }

    /// How full the disk is, in percent: of slots or of pages, whichever is more. It is full, too, as long as what is in
    /// use alone leaves no room for what was refused last: on a small disk, or with many stamps a block, that can be far
    /// below any percentage, and whoever asks must see it.
    pub(crate) fn full_percent(&self) -> u8 {
        if self.lacked.is_some_and(|lacked| !self.fits(lacked, (0, 0))) {
            return 100;
        }
        self.slots.used_percent().max(self.pages.places.used_percent())
    }

    /// How many more slots new data may take.
    fn new_slots_max(&self) -> u32 {
        self.slots_max().saturating_sub(self.slots.used())
    }

    /// The slots that may be in use before new data are refused.
    fn slots_max(&self) -> u32 {
        (u64::from(self.slots.count()) * u64::from(self.limits.used_percent_max) / 100) as u32
    }

    pub(crate) fn need(&self, span: Span, setting: Setting<'_>, cuts: &[(u32, u32, Cut)]) -> Need {
        let mut need = Need::default();
        for &(offset, count, _) in cuts.iter().filter(|cut| cut.2 == Cut::Inline) {
            let first = span.lba + u64::from(offset);
            let numbers = first / SLOT_BLOCKS..=(first + u64::from(count) - 1) / SLOT_BLOCKS;
            need.slots += numbers.filter(|&number| !self.has_slot(span.volume, number)).count() as u32;
        }
        for page in span.lba / PAGE_BLOCKS..=(span.end() - 1) / PAGE_BLOCKS {
            let missing = |plane| self.pages.home(Key { volume: span.volume, page, plane }).is_none();
            let planes = setting.planes_used(self.needs_page_for_zero());
            need.pages += planes.filter(|&plane| missing(plane)).count() as u32;
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
        let cuts: Vec<_> =
            write.extents.iter().map(|extent| (extent.offset, extent.count, Cut::of(extent))).collect();
        let need = self.need(write.staged.write.span, write.setting(), &cuts);
        let need = self.reserve(need);
        self.writes.get_mut(&stamp).expect("just seen").need = need;
    }

    pub(crate) fn release(&mut self, need: Need) {
        self.slots.release(need.slots);
        self.pages.places.release(need.pages);
    }

    pub(crate) fn extent(&mut self, payload: &Payload, (offset, count, cut): (u32, u32, Cut)) -> Extent {
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

    pub(crate) fn queue_direct(&mut self, slot: u32, content: Payload) {
        self.stats.direct_blocks += SLOT_BLOCKS;
        self.cache.forget(u64::from(slot) * SLOT_BLOCKS, SLOT_BLOCKS);
        self.direct.insert(slot, content);
    }
}

/// How a stretch of a write gets onto the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
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
