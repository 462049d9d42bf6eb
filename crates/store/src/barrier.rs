//! Barriers: applications and drops are lazy, and whoever is about to rely on them asks for a barrier.
//!
//! A decision gets its record only when its turn has come: behind earlier works on its blocks, behind the read of the
//! parity that it changes, behind its own staging. So a barrier is no record in the queue until all that were decided
//! before it have theirs there; from then on the order of the queue does the rest.

use crate::commit::Item;
use crate::machine::Running;
use base::Stamp;
use std::collections::BTreeSet;
use wire::disk::{Reply, StoreError, Token};

/// A barrier that is not in the queue yet.
#[derive(Debug)]
pub(crate) struct Barrier {
    token: Token,
    /// Writes that were decided before it and whose decision has no record yet.
    writes: BTreeSet<Stamp>,
}

impl Running {
    pub(crate) fn on_barrier(&mut self, token: Token) {
        let under_way = self.writes.iter().filter(|(_, write)| write.is_being_decided());
        let writes = under_way.map(|(&stamp, _)| stamp).collect();
        self.barriers.push_back(Barrier { token, writes });
    }

    /// Puts those barriers into the queue behind whose decisions all have a record.
    pub(crate) fn enqueue_barriers(&mut self) {
        while let Some(barrier) = self.barriers.front() {
            let waits = |stamp| self.writes.get(stamp).is_some_and(|write| write.is_being_decided());
            if barrier.writes.iter().any(waits) {
                return;
            }
            let token = barrier.token;
            self.barriers.pop_front();
            self.queue.push(Item::Barrier(token), self.now);
        }
    }

    /// Answers the barriers at the head of the queue; no group is in flight.
    pub(crate) fn answer_barriers(&mut self) {
        while let Some(&Item::Barrier(token)) = self.queue.items.front() {
            self.queue.pop();
            self.reply(Reply::Noted { token, result: Ok(()) });
        }
    }

    /// The answers to those that are not in the queue when the disk failed.
    pub(crate) fn refuse_barriers(&mut self) -> Vec<Reply> {
        let refusal =
            |barrier: Barrier| Reply::Noted { token: barrier.token, result: Err(StoreError::Failed) };
        self.barriers.drain(..).map(refusal).collect()
    }
}
