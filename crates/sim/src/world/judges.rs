//! Who watches the world: the checkers that see each message, the first violation that any of them found, and how often
//! rare states were reached.

use crate::checkers::Violation;
use crate::checkers::evicted::Evicted;
use crate::checkers::failover::Watched;
use crate::checkers::loans::Loans;
use crate::checkers::once::Once;
use crate::checkers::progress::Progress;
use crate::checkers::repeats::Repeats;
use crate::checkers::sizes::Sizes;
use crate::checkers::stand_in::StandIns;
use crate::options::Bounds;
use crate::rare::{Reached, Seen};
use base::{BrickId, NodeId, Time};
use rules::Counters;
use wire::{Message, Packet};

#[derive(Default)]
pub(crate) struct Judges {
    violation: Option<Violation>,
    once: Once,
    progress: Progress,
    evicted: Evicted,
    sizes: Sizes,
    repeats: Repeats,
    loans: Loans,
    stand_ins: StandIns,
    failover: Watched,
    /// Rare states that machines of past runs, and the world itself, have reached.
    reached: Reached,
}

impl Judges {
    /// Of a world with these bounds.
    pub(super) fn within(bounds: &Bounds) -> Judges {
        let loans = Loans::after(bounds.past.loans());
        Judges { sizes: Sizes::new(bounds.page_bytes), loans, ..Judges::default() }
    }

    /// Takes note of a violation, if there is one and it is the first.
    pub(crate) fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        }
    }

    /// Whether nothing was violated so far.
    pub(crate) fn are_content(&self) -> bool {
        self.violation.is_none()
    }

    pub(crate) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// A packet is sent.
    pub(super) fn watch(&mut self, now: Time, from: NodeId, to: NodeId, packet: &Packet) {
        let message = &packet.message;
        let verdict = self.sizes.watch(from, to, packet);
        self.judge(verdict);
        let verdict = self.repeats.watch(now, to, message);
        self.judge(verdict);
        let verdict = self.loans.watch(to, message);
        self.judge(verdict);
        let verdict = self.once.watch(message);
        self.judge(verdict);
        self.progress.watch(from, message);
        let judged = self.stand_ins.judged();
        let verdict = self.stand_ins.watch(from, to, message);
        if self.stand_ins.judged() > judged {
            self.reached.count(Seen::WriteDecidedBesideAStandIn);
        }
        self.judge(verdict);
        if let Message::Heartbeat { status, .. } = message
            && let Some(why) = &status.failed
        {
            // The simulator's disks lose content, but never fail: this store has given up for a reason of its own.
            self.judge(Err(Violation::new("live", format!("{from} gave up its disk: {why}"))));
        }
        let vouched = self.evicted.vouched();
        let verdict = self.evicted.watch(from, to, message);
        if self.evicted.vouched() > vouched {
            self.reached.count(Seen::BrickVouchedForAReadAsItsClockHadStood);
        }
        self.judge(verdict);
    }

    /// A directory starts.
    pub(super) fn on_directory_start(&mut self) {
        self.repeats.on_restart();
    }

    /// The clock of a brick stood, and goes on now.
    pub(super) fn has_stood(&mut self, brick: BrickId) {
        self.evicted.has_stood(brick);
    }

    /// A message reaches somebody.
    pub(super) fn hear(&mut self, to: NodeId, message: &Message) {
        let verdict = self.progress.hear(to, message);
        self.judge(verdict);
    }

    /// The views of all groups, as far as messages have shown them.
    pub(crate) fn views(&self) -> &Evicted {
        &self.evicted
    }

    /// Requests whose gateway was killed at a calm moment.
    pub(crate) fn failover(&mut self) -> &mut Watched {
        &mut self.failover
    }

    /// One more of a rare state.
    pub(crate) fn count_rare(&mut self, seen: Seen) {
        self.reached.count(seen);
    }

    /// What a machine has counted that runs no more.
    pub(super) fn keep(&mut self, counters: &Counters) {
        self.reached.add(counters);
    }

    /// What machines of past runs, and the world itself, have counted.
    pub(super) fn reached(&self) -> &Reached {
        &self.reached
    }
}
