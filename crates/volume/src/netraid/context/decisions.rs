//! What became of writes, for the members to be told at leisure: it rides along with other messages to them, or goes by
//! itself when it has waited long enough.

use base::{BrickId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Decision, GroupView, Message, Packet, Slots, WriteId};

/// How long decisions wait for a message that they can ride along with.
pub(crate) const DECISION_DELAY: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Untold {
    commits: Vec<Decision>,
    aborts: Vec<Decision>,
}

/// Decisions that members are still to be told.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    untold: BTreeMap<BrickId, Untold>,
    due: Option<Time>,
}

impl Decisions {
    /// Tells the members at `slots` what became of a write; it rides along with the next message to them.
    pub(crate) fn decide(
        &mut self,
        now: Time,
        view: &GroupView,
        slots: Slots,
        write: &WriteId,
        commit: bool,
    ) {
        for slot in slots.iter() {
            let Some(&brick) = view.members.get(usize::from(slot)) else { continue };
            let Untold { commits, aborts } = self.untold.entry(brick).or_default();
            if commit { commits } else { aborts }.push(Decision::from(write));
        }
        self.due.get_or_insert(now + DECISION_DELAY);
    }

    /// When decisions go by themselves.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Puts decisions before what goes to the same brick, and those that have waited long enough before all.
    pub(crate) fn ride(&mut self, now: Time, messages: Vec<(BrickId, Packet)>) -> Vec<(BrickId, Packet)> {
        if self.untold.is_empty() {
            self.due = None;
            return messages;
        }
        let mut with_decisions = Vec::with_capacity(messages.len() + self.untold.len());
        if self.due.is_some_and(|due| due <= now) {
            let all = core::mem::take(&mut self.untold);
            with_decisions.extend(all.into_iter().map(|(brick, untold)| (brick, untold.into_packet())));
        }
        for (brick, packet) in messages {
            with_decisions.extend(self.untold.remove(&brick).map(|untold| (brick, untold.into_packet())));
            with_decisions.push((brick, packet));
        }
        if self.untold.is_empty() {
            self.due = None;
        }
        with_decisions
    }
}

impl Untold {
    fn into_packet(self) -> Packet {
        Message::Decide { commits: self.commits, aborts: self.aborts }.into()
    }
}
