//! Barriers: applications and drops are lazy, and whoever is about to rely on them asks for a barrier.
//!
//! A decision gets its record only when its turn has come: behind earlier works on its blocks, behind the read of the
//! parity that it changes, behind its own staging. So a barrier is no record in the queue until all that were decided
//! before it have theirs there; from then on the order of the queue does the rest.

use crate::queue::{Item, Queue};
use crate::writes::Writes;
use base::{Stamp, Time};
use std::collections::{BTreeSet, VecDeque};
use wire::disk::{Reply, StoreError, Token};

#[derive(Debug)]
struct Barrier {
    token: Token,
    /// Writes that were decided before it and whose decision has no record yet.
    writes: BTreeSet<Stamp>,
}

/// Barriers that are not in the queue yet.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    waiting: VecDeque<Barrier>,
}

impl Barriers {
    pub(crate) fn push(&mut self, token: Token, writes: &Writes) {
        let undone = writes.iter().filter(|(_, write)| write.is_being_decided());
        let writes = undone.map(|(stamp, _)| stamp).collect();
        self.waiting.push_back(Barrier { token, writes });
    }

    /// Puts those barriers into the queue behind whose decisions all have a record.
    pub(crate) fn enqueue(&mut self, writes: &Writes, queue: &mut Queue, now: Time) {
        while let Some(barrier) = self.waiting.front() {
            let waits = |&stamp| writes.get(stamp).is_some_and(|write| write.is_being_decided());
            if barrier.writes.iter().any(waits) {
                return;
            }
            queue.push(Item::Barrier(barrier.token), now);
            self.waiting.pop_front();
        }
    }

    /// The answers when the disk failed.
    pub(crate) fn refuse(&mut self) -> impl Iterator<Item = Reply> {
        let failed = Err(StoreError::Failed);
        self.waiting.drain(..).map(move |barrier| Reply::Noted { token: barrier.token, result: failed })
    }
}
