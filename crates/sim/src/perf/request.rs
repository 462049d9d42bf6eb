//! Requests under way: slots that are used again, named by references that go stale.

use base::Time;

/// A request under way. Stale as soon as the request is over, so that what is still on its way to it finds nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ref {
    slot: u32,
    turn: u32,
}

impl Ref {
    /// A number of its own.
    pub(super) fn number(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.slot)
    }

    pub(super) fn from_number(number: u64) -> Ref {
        Ref { slot: number as u32, turn: (number >> 32) as u32 }
    }
}

/// No member of a group.
pub(super) const NOBODY: u8 = u8::MAX;

/// Who may serve a read, once its policy was consulted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    Undecided,
    /// Whoever is asked serves it.
    Alone,
    Contest,
    /// The two that are asked.
    Tied,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) born: Time,
    pub(super) sector: u64,
    pub(super) count: u32,
    pub(super) group: u32,
    pub(super) is_write: bool,
    pub(super) is_answered: bool,
    pub(super) is_released: bool,
    /// The member that its client told first.
    pub(super) first: u8,
    /// The members that were chosen for a read, and count as loaded with it.
    pub(super) asked: [u8; 2],
    pub(super) asked_at: [Time; 2],
    pub(super) bound: Bound,
    /// Bricks that have claimed it.
    pub(super) claims: u8,
    /// Journals that hold it.
    pub(super) journaled: u8,
    /// Disks that hold it.
    pub(super) written: u8,
    /// For policies that listen to answers.
    pub(super) service_ns: u64,
    pub(super) queue: u32,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    slots: Vec<(u32, Option<Request>)>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn insert(&mut self, request: Request) -> Ref {
        if let Some(slot) = self.free.pop() {
            let (turn, place) = &mut self.slots[slot as usize];
            *place = Some(request);
            return Ref { slot, turn: *turn };
        }
        self.slots.push((0, Some(request)));
        Ref { slot: self.slots.len() as u32 - 1, turn: 0 }
    }

    pub(super) fn get(&self, at: Ref) -> Option<&Request> {
        let (turn, request) = &self.slots[at.slot as usize];
        request.as_ref().filter(|_| *turn == at.turn)
    }

    pub(super) fn get_mut(&mut self, at: Ref) -> Option<&mut Request> {
        let (turn, request) = &mut self.slots[at.slot as usize];
        request.as_mut().filter(|_| *turn == at.turn)
    }

    pub(super) fn remove(&mut self, at: Ref) {
        let (turn, request) = &mut self.slots[at.slot as usize];
        if *turn == at.turn && request.take().is_some() {
            *turn = turn.wrapping_add(1);
            self.free.push(at.slot);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
