//! Requests that are not over: not answered yet, or written and not on all disks yet.

use crate::timed::DiskAccess;
use base::{BLOCK_U64, SECTOR_BYTES, Time};

/// Sectors of a cached block.
pub(super) const BLOCK_SECTORS: u64 = BLOCK_U64 / SECTOR_BYTES;

/// A request. Stale as soon as the request is over, so that what is still on its way to it finds nobody.
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
}

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) born: Time,
    pub(super) group: u32,
    pub(super) sector: u64,
    pub(super) count: u32,
    pub(super) is_write: bool,
    pub(super) is_answered: bool,
    pub(super) is_released: bool,
    /// The brick that its client asks.
    pub(super) brick: u32,
    /// Journals that hold it.
    pub(super) journaled: u32,
    /// Disks that hold it.
    pub(super) written: u32,
    /// The disk that it waited for.
    pub(super) access: Option<DiskAccess>,
}

impl Request {
    /// The cache's names of the blocks that it touches.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> + Clone + use<> {
        let group = u64::from(self.group);
        let last = (self.sector + u64::from(self.count) - 1) / BLOCK_SECTORS;
        (self.sector / BLOCK_SECTORS..=last).map(move |block| group << 40 | block)
    }
}

/// Requests in slots that are used again.
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

    pub(super) fn get(&self, at: Ref) -> Option<Request> {
        let (turn, request) = self.slots[at.slot as usize];
        request.filter(|_| turn == at.turn)
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

    pub(super) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }
}
