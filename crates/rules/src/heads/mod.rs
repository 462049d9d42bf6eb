//! What a disk does next: the queue before its arm, and the policies that choose from it.
//!
//! A drive says where an access begins ([`Position`]) and how long its head needs to get there ([`Mechanics`]); a
//! [`HeadQueue`] keeps what waits, and chooses by its [`Policy`] each time the head becomes free. It is deterministic:
//! among equals the one that was pushed first wins.
//!
//! Reading order: this file, then a policy each: `fcfs`, `sstf`, `clook`, `sptf`; below them `slots` (where what waits
//! lies) and `cylinders` (who waits where).
//!
//! Costs with `n` queued, in the steady state without allocation:
//!
//! | policy | push, remove | pick | evaluations of the positioning time a pick |
//! |---|---|---|---|
//! | FCFS | O(1) | O(1) | 1 |
//! | SSTF, C-LOOK | O(1) | O(log64 cylinders) | 1 |
//! | SPTF | O(1) | O(evaluations) | to 32 queued all; then those that the seek bound cannot rule out |
//!
//! Before an Atlas 10K with uniform accesses the seek bound leaves 12 of 64 to evaluate, 33 of 1,000 and 64 of 10,000.
//!
//! Deliberately absent: the drives (in the models), and when to choose (whoever owns the queue).

mod clook;
mod cylinders;
mod fcfs;
mod slots;
mod sptf;
mod sstf;
#[cfg(test)]
mod tests;

use base::{Mechanics, Position, Time};
use clook::Clook;
use fcfs::Fcfs;
use slots::Slots;
pub use slots::Ticket;
use sptf::Sptf;
use sstf::Sstf;

/// How the next access is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Shortest seek time first: the nearest cylinder. It may starve who is far away.
    Sstf,
    /// One-way elevator: the next cylinder upwards, and from the last one back to the first.
    Clook,
    /// Shortest positioning time first (seek, settling and rotation), over the whole queue. It may starve an access.
    Sptf,
    /// [`Policy::Sptf`], but the oldest goes first as soon as `later_max` came after it: an access is passed by at most
    /// so many later ones. A queue that is always longer than this is served in the order of arrival.
    AgedSptf {
        /// Later accesses that may be served before an earlier one.
        later_max: u32,
    },
}

/// An access that was chosen and taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Picked<T> {
    pub item: T,
    /// The ticket it had.
    pub ticket: Ticket,
    /// From when the head is free until the first sector is under it, in nanoseconds.
    pub positioning_ns: u64,
}

/// Accesses that wait for one arm.
///
/// Its memory is bounded by the most that ever waited, and for policies that look at cylinders by 9 bytes for each
/// cylinder of the drive.
#[derive(Debug)]
pub struct HeadQueue<T> {
    slots: Slots<T>,
    order: Order,
    policy: Policy,
}

#[derive(Debug)]
enum Order {
    Fcfs(Fcfs),
    Sstf(Sstf),
    Clook(Clook),
    Sptf(Sptf),
}

impl<T> HeadQueue<T> {
    pub fn new(policy: Policy) -> HeadQueue<T> {
        let order = match policy {
            Policy::Fcfs => Order::Fcfs(Fcfs::default()),
            Policy::Sstf => Order::Sstf(Sstf::default()),
            Policy::Clook => Order::Clook(Clook::default()),
            Policy::Sptf => Order::Sptf(Sptf::new(None)),
            Policy::AgedSptf { later_max } => Order::Sptf(Sptf::new(Some(later_max))),
        };
        HeadQueue { slots: Slots::default(), order, policy }
    }

    pub fn policy(&self) -> Policy {
        self.policy
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == 0
    }

    /// Queues an access that begins at `position`. The ticket names it until it leaves, and nothing else afterwards.
    pub fn push(&mut self, position: Position, item: T) -> Ticket {
        let slot = self.slots.insert(position, item);
        match &mut self.order {
            Order::Fcfs(fcfs) => fcfs.insert(&mut self.slots, slot),
            Order::Sstf(sstf) => sstf.cylinders.insert(&mut self.slots, slot),
            Order::Clook(clook) => clook.cylinders.insert(&mut self.slots, slot),
            Order::Sptf(sptf) => sptf.insert(&mut self.slots, slot),
        }
        self.slots.ticket(slot)
    }

    /// What waits under `ticket`.
    pub fn get(&self, ticket: Ticket) -> Option<&T> {
        self.slots.find(ticket).map(|slot| self.slots.item(slot))
    }

    /// Takes an access out, such as one that a peer claimed. `None` when it has already left.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let slot = self.slots.find(ticket)?;
        Some(self.take(slot))
    }

    /// Which access the policy would serve next when the head is free at `free`, and its positioning time in
    /// nanoseconds. Nothing changes.
    pub fn choose(&self, free: Time, mechanics: &impl Mechanics) -> Option<(Ticket, u64)> {
        let (slot, positioning_ns) = self.best(free, mechanics)?;
        Some((self.slots.ticket(slot), positioning_ns))
    }

    /// Takes out what [`HeadQueue::choose`] names. `None` when nothing waits.
    pub fn pick(&mut self, free: Time, mechanics: &impl Mechanics) -> Option<Picked<T>> {
        let (slot, positioning_ns) = self.best(free, mechanics)?;
        let ticket = self.slots.ticket(slot);
        Some(Picked { item: self.take(slot), ticket, positioning_ns })
    }

    /// What waits, with its ticket, in no particular order that would depend on anything but what was pushed and taken.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &T)> {
        self.slots.iter()
    }

    fn best(&self, free: Time, mechanics: &impl Mechanics) -> Option<(u32, u64)> {
        let slot = match &self.order {
            Order::Fcfs(fcfs) => fcfs.first(),
            Order::Sstf(sstf) => sstf.nearest(&self.slots, mechanics.cylinder()),
            Order::Clook(clook) => clook.next(mechanics.cylinder()),
            Order::Sptf(sptf) => return sptf.soonest(&self.slots, free, mechanics),
        }?;
        Some((slot, mechanics.positioning_ns(free, self.slots.position(slot))))
    }

    fn take(&mut self, slot: u32) -> T {
        match &mut self.order {
            Order::Fcfs(fcfs) => fcfs.remove(&mut self.slots, slot),
            Order::Sstf(sstf) => sstf.cylinders.remove(&mut self.slots, slot),
            Order::Clook(clook) => clook.cylinders.remove(&mut self.slots, slot),
            Order::Sptf(sptf) => sptf.remove(&mut self.slots, slot),
        }
        self.slots.take(slot)
    }
}
