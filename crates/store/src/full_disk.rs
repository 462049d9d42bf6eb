//! When a disk is full: what room a write asks for, whether the room is there, and what is refused when it is not.
//!
//! The last slots and pages are not for new data, so that a disk that is full to its users can still be repaired, written
//! over and emptied. What the client of a refused write gets is said in `volume::netraid::write` (`on_no_space`). A file
//! system that is full under a disk is another matter: `host::full_file_system`.

use crate::slots::Allocator;
use crate::superblock::SLOT_BYTES;
use wire::disk::StoreError;

/// One in so many pages is for zeros and repairs.
pub(crate) const PAGES_KEPT: u32 = 16;

/// What a write asks of the room that is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Slots that it takes, for good or until those that it replaces are given up.
    pub(crate) slots: u32,
    /// By how many it leaves more in use than before, as far as is known; none for a repair.
    pub(crate) new_slots: u32,
    /// Pages that it takes, with those that it must leave; none if it takes none.
    pub(crate) pages: u32,
}

impl Demand {
    /// With so many bytes of other writes, each slot of which may need a page.
    fn beside(self, kept_bytes: usize) -> Demand {
        let kept = kept_bytes.div_ceil(SLOT_BYTES as usize) as u32;
        Demand {
            slots: self.slots.saturating_add(kept),
            pages: self.pages.saturating_add(kept),
            new_slots: self.new_slots,
        }
    }
}

/// By what room may come.
#[derive(Clone, Copy)]
pub(crate) struct Coming {
    /// Journalled content is on its way to its final place, and may hold more than it needs there.
    pub(crate) brings_home: bool,
    /// Blocks of deleted volumes are being given back.
    pub(crate) gives_back: bool,
}

/// What is refused for want of room.
#[derive(Debug)]
pub(crate) struct Room {
    /// Slots in use, in percent, beyond which new data are refused.
    used_percent_max: u8,
    /// What was refused last.
    lacked: Option<Demand>,
}

/// Slots and pages, by what counts as taken: what is set aside, or only what is in use.
#[derive(Clone, Copy)]
pub(crate) struct Taken<'a> {
    slots: &'a Allocator,
    places: &'a Allocator,
    counts_reserved: bool,
}

impl<'a> Taken<'a> {
    pub(crate) fn with_reserved(slots: &'a Allocator, places: &'a Allocator) -> Taken<'a> {
        Taken { slots, places, counts_reserved: true }
    }

    pub(crate) fn in_use(slots: &'a Allocator, places: &'a Allocator) -> Taken<'a> {
        Taken { slots, places, counts_reserved: false }
    }

    fn reserved(&self, of: &Allocator) -> u32 {
        if self.counts_reserved { of.reserved() } else { 0 }
    }
}

impl Room {
    pub(crate) fn new(used_percent_max: u8) -> Room {
        Room { used_percent_max, lacked: None }
    }

    /// Takes a write that leaves `kept_bytes` of room over, or says why not: [`StoreError::NoRoomYet`] where room comes by
    /// content that is on its way home, and [`StoreError::NoSpace`] otherwise. What was refused is remembered: the disk is full as long as
    /// it would be again.
    pub(crate) fn admit(
        &mut self,
        demand: Demand,
        kept_bytes: usize,
        taken: Taken<'_>,
        coming: Coming,
    ) -> Result<(), StoreError> {
        if self.fits(demand, taken) {
            let is_left_over = kept_bytes == 0 || self.fits(demand.beside(kept_bytes), taken);
            return if is_left_over { Ok(()) } else { Err(StoreError::NoRoomYet) };
        }
        self.lacked = Some(demand);
        // Content on its way home may hold more than it turns out to need. What is in use already is no such promise.
        let lacks_pages = demand.pages > taken.places.unused() && !coming.gives_back;
        let is_full = lacks_pages || demand.new_slots > self.new_slots_max(taken.slots);
        Err(if coming.brings_home && !is_full { StoreError::NoRoomYet } else { StoreError::NoSpace })
    }

    /// How full the disk is, in percent: of slots or of pages, whichever is more. It is full, too, as long as what is in
    /// use alone leaves no room for what was refused last: on a small disk, or with many stamps a block, that can be far
    /// below any percentage, and whoever asks must see it.
    pub(crate) fn full_percent(&self, taken: Taken<'_>) -> u8 {
        if self.lacked.is_some_and(|lacked| !self.fits(lacked, taken)) {
            return 100;
        }
        taken.slots.used_percent().max(taken.places.used_percent())
    }

    fn fits(&self, demand: Demand, taken: Taken<'_>) -> bool {
        let (slots, pages) = (taken.reserved(taken.slots), taken.reserved(taken.places));
        demand.slots + slots <= taken.slots.unused()
            && (demand.pages == 0 || demand.pages + pages <= taken.places.unused())
            && (demand.new_slots == 0 || demand.new_slots + slots <= self.new_slots_max(taken.slots))
    }

    /// How many more slots new data may take.
    fn new_slots_max(&self, slots: &Allocator) -> u32 {
        self.slots_max(slots).saturating_sub(slots.used())
    }

    /// The slots that may be in use before new data are refused.
    fn slots_max(&self, slots: &Allocator) -> u32 {
        (u64::from(slots.count()) * u64::from(self.used_percent_max) / 100) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_where_room_kept_for_others_would_not_be_left_over() {
        let (slots, pages) = (Allocator::new(20), Allocator::new(20));
        let mut room = Room::new(95);
        let mut admit = |demand, kept_bytes, brings_home| {
            let coming = Coming { brings_home, gives_back: false };
            room.admit(demand, kept_bytes, Taken::with_reserved(&slots, &pages), coming)
        };
        let of = |slots| Demand { slots, new_slots: slots, pages: 1 };
        let slot = SLOT_BYTES as usize;
        assert_eq!(admit(of(10), 10 * slot, false), Ok(()));
        assert_eq!(admit(of(10), 10 * slot + 1, false), Err(StoreError::NoRoomYet));
        assert_eq!(admit(of(21), 0, false), Err(StoreError::NoSpace), "nothing is on its way home");
        assert_eq!(admit(of(21), 0, true), Err(StoreError::NoSpace), "more than there is");
    }
}
