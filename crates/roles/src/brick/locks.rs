//! The lock server of the groups of which this brick is the first current member: for writers under the orders `slock` and `hybrid`
//! (`netraid::order`).
//!
//! Its locks are in memory alone. When it dies they are gone, and writers ask its successor: what locks keep apart, stamps put in order.

use super::{Brick, BrickEffect, reply};
use base::{GroupId, NodeId, Time, ViewNumber};
use rules::counters::{Counter, Counters};
use std::collections::BTreeMap;
use volume::netraid::order::locks::{Locks, Place, Wish};
use volume::view::Groups;
use wire::{LockOutcome, Message, OPERATIONS_MAX, Span};

/// Who wants a lock: a node, and its name of it.
type Holder = (NodeId, u64);

/// The line, and under which view and by which question each asked last.
#[derive(Debug, Default)]
pub(super) struct LockServer {
    line: Locks<Holder>,
    asked: BTreeMap<Holder, (u64, ViewNumber)>,
}

/// A writer's wish.
pub(super) struct Wanted {
    pub(super) operation: u64,
    pub(super) group: GroupId,
    pub(super) view: ViewNumber,
    pub(super) span: Span,
    pub(super) holder: u64,
}

impl LockServer {
    /// What becomes of a wish now; `None` where it waits.
    fn want(
        &mut self,
        now: Time,
        from: NodeId,
        wanted: &Wanted,
        counters: &mut Counters,
    ) -> Option<LockOutcome> {
        let &Wanted { operation, group, view, span, holder } = wanted;
        match self.line.want(now, (from, holder), Place { group, span, is_shared: false }) {
            Wish::Full => Some(LockOutcome::Busy),
            wish => {
                let is_new = self.asked.insert((from, holder), (operation, view)).is_none();
                if wish == Wish::Granted {
                    counters.count(Counter::LockGranted);
                    return Some(LockOutcome::Granted { waited: !is_new });
                }
                if is_new {
                    counters.count(Counter::LockWaitedFor);
                }
                None
            }
        }
    }

    /// Tells those whose turn has come.
    fn tell(&mut self, granted: Vec<Holder>, counters: &mut Counters, fx: &mut Vec<BrickEffect>) {
        for holder in granted {
            if let Some((operation, _)) = self.asked.get(&holder) {
                counters.count(Counter::LockGranted);
                let outcome = LockOutcome::Granted { waited: true };
                reply(fx, holder.0, Message::Locked { operation: *operation, outcome });
            }
        }
    }

    /// Whoever asked under a view that is over asks anew under the next one.
    pub(super) fn on_groups(&mut self, now: Time, groups: &Groups) {
        let asked = &self.asked;
        let is_void = |holder: &Holder, place: &Place| {
            asked.get(holder).is_none_or(|(_, view)| groups.takes(place.group, *view).is_err())
        };
        let (gone, _) = self.line.leave_where(now, is_void);
        self.asked.retain(|holder, _| !gone.contains(holder));
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.line.deadline()
    }

    /// Asserts what must hold.
    pub(super) fn check(&self) {
        self.line.check();
    }
}

impl Brick {
    pub(super) fn on_lock(&mut self, now: Time, from: NodeId, wanted: &Wanted, fx: &mut Vec<BrickEffect>) {
        let outcome = match self.groups.takes(wanted.group, wanted.view) {
            Err(view) => Some(LockOutcome::Stale { view }),
            Ok(()) if !wanted.span.is_valid() => Some(LockOutcome::Busy),
            Ok(()) => self.locks.want(now, from, wanted, &mut self.counters),
        };
        if let Some(outcome) = outcome {
            reply(fx, from, Message::Locked { operation: wanted.operation, outcome });
        }
    }

    pub(super) fn on_unlock(
        &mut self,
        now: Time,
        from: NodeId,
        holders: Vec<u64>,
        fx: &mut Vec<BrickEffect>,
    ) {
        for holder in holders.into_iter().take(OPERATIONS_MAX) {
            self.locks.asked.remove(&(from, holder));
            let granted = self.locks.line.leave(now, (from, holder));
            self.locks.tell(granted, &mut self.counters, fx);
        }
    }

    /// A node cannot be reached: its locks are free.
    pub(super) fn release_locks_of(&mut self, now: Time, node: NodeId, fx: &mut Vec<BrickEffect>) {
        let (gone, granted) = self.locks.line.leave_where(now, |(of, _), _| *of == node);
        self.locks.asked.retain(|holder, _| !gone.contains(holder));
        self.locks.tell(granted, &mut self.counters, fx);
    }

    /// Takes locks back whose lease is over.
    pub(super) fn take_locks_back(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        let (over, granted) = self.locks.line.expire(now);
        for holder in &over {
            self.counters.count(Counter::LockTakenBack);
            self.locks.asked.remove(holder);
        }
        self.locks.tell(granted, &mut self.counters, fx);
    }
}
