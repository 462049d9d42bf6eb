//! Questions to bricks about fragments: each has a number, is asked again while it is not answered, and is called off when nobody wants
//! its answer any more.

use base::{BrickId, Payload, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{FragmentId, Message, OPERATIONS_MAX, Packet, Service};

/// After so long without an answer a question is asked again: it, or its answer, may be lost.
const AGAIN: Duration = Duration::from_secs(2);
/// A brick that was busy is asked again after so long.
const BUSY: Duration = Duration::from_millis(50);

/// A question to a brick.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) brick: BrickId,
    pub(crate) fragment: FragmentId,
    /// What is put; nothing for a get.
    pub(crate) content: Option<Payload>,
    /// The blocks of a get.
    pub(crate) blocks: u32,
    pub(crate) service: Service,
}

/// Questions about fragments have numbers from here on, so that no question about blocks of the same process has one of these.
const FIRST: u64 = 1 << 63;

/// The questions of all transfers.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    under_way: BTreeMap<u64, UnderWay<T>>,
    /// When each is asked again.
    due: BTreeSet<(Time, u64)>,
    last: u64,
    /// To be sent.
    outbox: Vec<(BrickId, Packet)>,
    called_off: BTreeMap<BrickId, Vec<u64>>,
}

#[derive(Debug)]
struct UnderWay<T> {
    transfer: T,
    call: Call,
    again: Time,
}

impl<T> Default for Calls<T> {
    fn default() -> Calls<T> {
        Calls {
            under_way: BTreeMap::new(),
            due: BTreeSet::new(),
            last: FIRST,
            outbox: Vec::new(),
            called_off: BTreeMap::new(),
        }
    }
}

impl<T: Copy + PartialEq> Calls<T> {
    /// Asks, for `transfer`.
    pub(crate) fn ask(&mut self, now: Time, transfer: T, call: Call) {
        self.last += 1;
        self.send(self.last, &call);
        let again = now + AGAIN;
        self.due.insert((again, self.last));
        self.under_way.insert(self.last, UnderWay { transfer, call, again });
    }

    fn send(&mut self, operation: u64, call: &Call) {
        let Call { brick, fragment, ref content, blocks, service } = *call;
        let message = match content {
            Some(_) => Message::PutFragment { operation, fragment, service },
            None => Message::GetFragment { operation, fragment, blocks, service },
        };
        self.outbox.push((brick, Packet { message, payload: content.clone().unwrap_or_default() }));
    }

    /// An answer came: whose question it answers, if it was not called off or answered before.
    pub(crate) fn answered(&mut self, from: BrickId, operation: u64) -> Option<(T, Call)> {
        let there = self.under_way.get(&operation)?;
        if there.call.brick != from {
            return None;
        }
        let UnderWay { transfer, call, again } = self.under_way.remove(&operation)?;
        self.due.remove(&(again, operation));
        Some((transfer, call))
    }

    /// The brick has no room for this question now.
    pub(crate) fn busy(&mut self, now: Time, from: BrickId, operation: u64) {
        self.postpone(from, operation, now + BUSY);
    }

    /// The brick lets these wait: they have come.
    pub(crate) fn wait(&mut self, now: Time, from: BrickId, operations: &[u64]) {
        operations.iter().for_each(|operation| self.postpone(from, *operation, now + AGAIN));
    }

    fn postpone(&mut self, from: BrickId, operation: u64, until: Time) {
        if let Some(there) = self.under_way.get_mut(&operation).filter(|there| there.call.brick == from) {
            self.due.remove(&(there.again, operation));
            there.again = until;
            self.due.insert((until, operation));
        }
    }

    /// Nobody wants the answers of a transfer any more.
    pub(crate) fn call_off(&mut self, transfer: T) {
        for (operation, there) in self.under_way.extract_if(.., |_, there| there.transfer == transfer) {
            self.due.remove(&(there.again, operation));
            self.called_off.entry(there.call.brick).or_default().push(operation);
        }
    }

    /// The brick is gone, and its answers with it: whose questions these were.
    pub(crate) fn take_down(&mut self, brick: BrickId) -> Vec<(T, Call)> {
        let there = self.under_way.extract_if(.., |_, there| there.call.brick == brick);
        there
            .map(|(operation, UnderWay { transfer, call, again })| {
                self.due.remove(&(again, operation));
                (transfer, call)
            })
            .collect()
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(again, _)| *again)
    }

    /// Asks again what is due.
    pub(crate) fn wake(&mut self, now: Time) {
        while let Some((again, operation)) = self.due.first().copied().filter(|(again, _)| *again <= now) {
            self.due.remove(&(again, operation));
            self.due.insert((now + AGAIN, operation));
            let there = self.under_way.get_mut(&operation).expect("what is due is under way");
            there.again = now + AGAIN;
            let call = there.call.clone();
            self.send(operation, &call);
        }
    }

    /// What is to be sent since the last call. What was called off goes out in as few messages as it takes.
    pub(crate) fn take_outbox(&mut self) -> Vec<(BrickId, Packet)> {
        let mut outbox = core::mem::take(&mut self.outbox);
        for (brick, operations) in core::mem::take(&mut self.called_off) {
            for operations in operations.chunks(OPERATIONS_MAX) {
                outbox.push((brick, Message::Cancel { operations: operations.to_vec() }.into()));
            }
        }
        outbox
    }
}
