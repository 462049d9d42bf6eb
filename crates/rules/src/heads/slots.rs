//! Where what waits lies: places that are used again, and lists through them. No place is freed but by the queue itself,
//! so that nothing is allocated once the queue has been as long as it gets.

use base::Position;

/// Names a queued access. A place's later tenants have other tickets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket {
    slot: u32,
    tenancy: u32,
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot<T> {
    position: Position,
    sequence: u64,
    item: Option<T>,
    tenancy: u32,
    // Neighbours in the lists it is in; a free slot's first `next` is the next free one.
    links: [Links; 2],
}

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

const UNLINKED: Links = Links { previous: NONE, next: NONE };

#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: usize,
    pushed: u64,
}

/// A list through the slots, in the order of pushing. A slot can be in one of each `LANE`, 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<const LANE: usize> {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl<const LANE: usize> Default for List<LANE> {
    fn default() -> List<LANE> {
        List { first: NONE, last: NONE }
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), free: NONE, len: 0, pushed: 0 }
    }
}

impl<T> Slots<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn position(&self, slot: u32) -> &Position {
        &self.slots[slot as usize].position
    }

    /// When it was pushed, relative to others.
    pub(super) fn sequence(&self, slot: u32) -> u64 {
        self.slots[slot as usize].sequence
    }

    /// The number of the next push.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(super) fn item(&self, slot: u32) -> &T {
        self.slots[slot as usize].item.as_ref().expect("a slot in use holds an item")
    }

    pub(super) fn ticket(&self, slot: u32) -> Ticket {
        Ticket { slot, tenancy: self.slots[slot as usize].tenancy }
    }

    /// Where the access of `ticket` waits, if it still does.
    pub(super) fn find(&self, ticket: Ticket) -> Option<u32> {
        let slot = self.slots.get(ticket.slot as usize)?;
        (slot.tenancy == ticket.tenancy && slot.item.is_some()).then_some(ticket.slot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &T)> {
        let ticket = |index: usize, slot: &Slot<T>| Ticket { slot: index as u32, tenancy: slot.tenancy };
        self.slots
            .iter()
            .enumerate()
            .filter_map(move |(index, slot)| Some((ticket(index, slot), slot.item.as_ref()?)))
    }

    pub(super) fn insert(&mut self, position: Position, item: T) -> u32 {
        let sequence = self.pushed;
        self.pushed += 1;
        self.len += 1;
        if self.free == NONE {
            let index = u32::try_from(self.slots.len()).ok().filter(|&index| index != NONE);
            self.slots.push(Slot { position, sequence, item: Some(item), tenancy: 0, links: [UNLINKED; 2] });
            return index.expect("fewer than 2^32 accesses wait");
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        self.free = slot.links[0].next;
        *slot = Slot { position, sequence, item: Some(item), tenancy: slot.tenancy, links: [UNLINKED; 2] };
        index
    }

    /// Gives the slot free. The caller has taken it out of its list.
    pub(super) fn take(&mut self, index: u32) -> T {
        let slot = &mut self.slots[index as usize];
        slot.tenancy = slot.tenancy.wrapping_add(1);
        slot.links[0].next = self.free;
        self.free = index;
        self.len -= 1;
        slot.item.take().expect("a slot in use holds an item")
    }

    /// The one after `slot` in its list of lane 0, or [`NONE`].
    pub(super) fn next(&self, slot: u32) -> u32 {
        self.slots[slot as usize].links[0].next
    }

    pub(super) fn append<const LANE: usize>(&mut self, list: &mut List<LANE>, slot: u32) {
        self.slots[slot as usize].links[LANE] = Links { previous: list.last, next: NONE };
        match list.last {
            NONE => list.first = slot,
            last => self.slots[last as usize].links[LANE].next = slot,
        }
        list.last = slot;
    }

    pub(super) fn unlink<const LANE: usize>(&mut self, list: &mut List<LANE>, slot: u32) {
        let Links { previous, next } = self.slots[slot as usize].links[LANE];
        match previous {
            NONE => list.first = next,
            previous => self.slots[previous as usize].links[LANE].next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.slots[next as usize].links[LANE].previous = previous,
        }
    }

    /// Where in an array the slot is listed, for who keeps one instead of a list of lane 0.
    pub(super) fn index(&self, slot: u32) -> usize {
        self.slots[slot as usize].links[0].next as usize
    }

    pub(super) fn set_index(&mut self, slot: u32, index: usize) {
        self.slots[slot as usize].links[0].next = index as u32;
    }
}
