//! Settling a write in doubt: any gateway may, whoever wrote it.
//!
//! A member that does not have the write refuses it for ever, durably; so either all members that can say have it,
//! then it may have been acknowledged and is committed, or it never can be, and is aborted. Both answers stay true.

use super::coordinator::{Answer, Operate, Operation, Outcome, Shared, participants, width_at};
use crate::counters::Counter;
use base::{GroupId, Payload};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Fate, Message, Slots, Span, WriteId};

/// Begins to settle those of `writes` that hold up a reader of `span`, on behalf of the current operation; how many. Not
/// those of this gateway's own writers: they are at work on them.
pub fn settle_foreign(shared: &mut Shared, group: GroupId, span: Span, writes: Vec<WriteId>) -> usize {
    let holds_up =
        |write: &WriteId| write.group == group && write.span.volume == span.volume && write.span.is_valid();
    let foreign: Vec<WriteId> =
        writes.into_iter().filter(|write| holds_up(write) && !shared.own.contains(&write.stamp)).collect();
    let count = foreign.len();
    for write in foreign {
        shared.begin(Operation::Settle(SettleOperation::new(write)));
    }
    count
}

/// Finds out and tells a write's fate.
pub struct SettleOperation {
    write: WriteId,
    asked: Slots,
    fates: BTreeMap<u8, Fate>,
    /// A member that told the writer that it does not take the write: newer writes there do not hide it.
    refused_by: Option<u8>,
    /// Whether the members that have it were asked again after another had no say.
    asked_again: bool,
    attempt: u32,
}

impl SettleOperation {
    /// Of this write.
    pub fn new(write: WriteId) -> SettleOperation {
        SettleOperation {
            write,
            asked: Slots::default(),
            fates: BTreeMap::new(),
            refused_by: None,
            asked_again: false,
            attempt: 0,
        }
    }

    /// Of this write, which the member at `slot` refused.
    pub fn refused(write: WriteId, slot: u8) -> SettleOperation {
        SettleOperation { refused_by: Some(slot), ..SettleOperation::new(write) }
    }

    /// The write's stamp.
    pub fn stamp(&self) -> base::Stamp {
        self.write.stamp
    }

    fn ask(&mut self, shared: &mut Shared) {
        let view = shared.view(self.write.group);
        let geometry = shared.geometry(self.write.group);
        for slot in self.asked.iter().filter(|slot| !self.fates.contains_key(slot)) {
            let (write, width) = (self.write, width_at(&geometry, self.write.span.lba, slot));
            shared.call(&view, slot, Payload::new(), |operation| Message::Query {
                operation,
                view: view.number,
                write,
                width,
            });
        }
        shared.wake_to_retry(self.attempt);
    }

    fn decide(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let any = |fate| self.fates.values().any(|known| *known == fate);
        let all = self.asked.iter().all(|slot| self.fates.contains_key(&slot));
        if all && any(Fate::Prepared) && any(Fate::Unreadable) && !self.asked_again {
            // A member may have no say because a later write went over it: then this one was decided meanwhile, and
            // who had it before may not have it any more.
            self.asked_again = true;
            self.fates.retain(|_, fate| *fate != Fate::Prepared);
            self.ask(shared);
            return None;
        }
        let commit = match () {
            () if any(Fate::Committed) => true,
            () if any(Fate::Refused) => false,
            () if all => any(Fate::Prepared),
            () => return None,
        };
        let name = if commit { Counter::WriteInDoubtCommitted } else { Counter::WriteInDoubtAborted };
        shared.counters.count(name);
        if !shared.is_own_writer(self.write.stamp) {
            shared.counters.count(Counter::InDoubtWriteSettledByAnotherGateway);
        }
        let view = shared.view(self.write.group);
        shared.decide(&view, self.asked, &self.write, commit);
        Some(Outcome::Settled(Some(commit)))
    }
}

impl Operate for SettleOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let view = shared.view(self.write.group);
        let geometry = shared.geometry(self.write.group);
        self.asked = participants(&geometry, view.writers(), &self.write);
        self.fates.clear();
        self.asked_again = false;
        if self.asked.is_empty() {
            return Some(Outcome::Settled(None));
        }
        self.ask(shared);
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, slot: u8, answer: Answer) -> Option<Outcome> {
        match answer {
            Answer::Fate(Ok(fate)) => {
                let refused = fate == Fate::Unreadable && self.refused_by == Some(slot);
                self.fates.insert(slot, if refused { Fate::Refused } else { fate });
                self.decide(shared)
            }
            Answer::Fate(Err(view)) => {
                shared.on_stale(self.write.group, view);
                shared.wake_after(Duration::from_millis(20 << self.attempt.min(5)));
                None
            }
            _ => None,
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.attempt += 1;
        shared.forget_calls();
        self.ask(shared);
        None
    }

    fn group(&self) -> GroupId {
        self.write.group
    }

    /// The new view has settled it.
    fn on_view(&mut self, _shared: &mut Shared) -> Option<Outcome> {
        Some(Outcome::Settled(None))
    }
}
