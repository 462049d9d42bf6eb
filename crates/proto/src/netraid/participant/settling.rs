//! A write in doubt, as one member sees it: what it knows of its fate, and its promise to refuse it for ever.

use super::{Asker, Context, FLOOR_KEY, LATE_MAX, Lookup, Participant, SEALS_MAX, answer, seal_key};
use crate::netraid::pending::{State, WriteKey};
use base::{Payload, Stamp};
use wire::disk::{Blocks, Command, StoreError};
use wire::{Fate, Message, PrepareOutcome, Scope, Wire, WriteId};

impl Participant {
    /// What is the fate of `write` here? If it is not here, it never will be.
    pub fn on_query(&mut self, cx: &mut Context<'_>, asker: Asker, write: WriteId, width: u8) {
        let key = WriteKey::of(&write);
        if self.pending.get(&key).is_some_and(|pending| pending.state == State::Staged) {
            return self.tell(cx, asker, Fate::Prepared);
        }
        // A write that waits its turn is not refused for being asked about: those before it end, then it is staged, and
        // whoever asks asks again. Otherwise impatient readers of a busy block could keep its writers out for ever.
        if self.waiting.contains_key(&key) {
            cx.counters.count("fate of a waiting write asked");
            return;
        }
        let token = self.token();
        let command = Command::Read { token, span: write.span, width, content: false, contested: None };
        self.ask(cx, token, Lookup::Fate { asker, write, width }, command);
    }

    pub(super) fn on_fate(
        &mut self,
        cx: &mut Context<'_>,
        asker: Asker,
        write: WriteId,
        width: u8,
        result: Result<Blocks, StoreError>,
    ) {
        let key = WriteKey::of(&write);
        let staged = self.pending.get(&key).is_some_and(|pending| pending.state == State::Staged);
        let fate = match result {
            _ if staged => Some(Fate::Prepared),
            _ if self.applied.contains(write.stamp) => Some(Fate::Committed),
            _ if self.seals.contains(&write.stamp) => None,
            // It can say, but not now: whoever asks asks again.
            Err(StoreError::Busy) => return,
            Err(_) => Some(Fate::Unreadable),
            Ok(blocks) if !blocks.unreadable.is_empty() => Some(Fate::Unreadable),
            Ok(blocks) => fate_by_stamps(&write, width, &blocks.stamps),
        };
        // What the blocks show took effect. For the rest a seal may have been here, and be part of the floor by now.
        let fate = fate.filter(|fate| *fate != Fate::Unreadable || write.stamp > self.floor);
        match fate {
            // Newer writes wiped its traces; but what took effect here lately is remembered.
            Some(Fate::Unreadable)
                if self.applied.covers(write.stamp) || self.late.contains(&write.stamp) =>
            {
                self.seal(cx, asker, key)
            }
            Some(fate) => self.tell(cx, asker, fate),
            None => self.seal(cx, asker, key),
        }
    }

    pub(super) fn seal(&mut self, cx: &mut Context<'_>, asker: Asker, key: WriteKey) {
        cx.counters.count("write refused for ever");
        self.seals.insert(key.stamp);
        if let Some(prepare) = self.waiting.remove(&key) {
            answer(cx, &prepare, PrepareOutcome::Late { newest: key.stamp });
        }
        if let Some(pending) = self.pending.get(&key) {
            answer(cx, &pending.prepare, PrepareOutcome::Late { newest: key.stamp });
            self.finish_abort(cx, key);
        }
        let token = self.token();
        let command = Command::Note { token, key: seal_key(key.stamp), value: Some(Vec::new()) };
        self.ask(cx, token, Lookup::Seal { asker }, command);
        // The floor must not rise above a write that is staged and may be acknowledged.
        let oldest_staged =
            self.pending.iter().filter(|p| p.state == State::Staged).map(|p| p.prepare.write.stamp).min();
        while self.seals.len() > SEALS_MAX && self.seals.first() < oldest_staged.as_ref().or(Some(&key.stamp))
        {
            self.forget_oldest_seal(cx);
        }
    }

    /// A write was refused here for being late.
    pub(super) fn note_late(&mut self, stamp: Stamp) {
        self.late.insert(stamp);
        if self.late.len() > LATE_MAX {
            self.late.pop_first();
        }
    }

    pub(super) fn forget_oldest_seal(&mut self, cx: &mut Context<'_>) {
        let oldest = self.seals.pop_first().expect("more than none");
        self.floor = self.floor.max(oldest);
        for (key, value) in [(FLOOR_KEY.to_vec(), Some(self.floor.to_bytes())), (seal_key(oldest), None)] {
            let token = self.token();
            self.ask(cx, token, Lookup::Ignore, Command::Note { token, key, value });
        }
    }

    pub(super) fn is_sealed(&self, stamp: Stamp) -> bool {
        stamp <= self.floor || self.seals.contains(&stamp)
    }

    pub(super) fn tell(&mut self, cx: &mut Context<'_>, asker: Asker, fate: Fate) {
        match asker {
            Asker::Gateway(from, operation) => {
                cx.send(from, Message::QueryDone { operation, fate: Ok(fate) }, Payload::new());
            }
            Asker::View(job, index) => self.fates.push((job, index, fate)),
        }
    }

    /// The fates found since the last call, for the making of views: `(job, index, fate)`.
    pub fn take_fates(&mut self) -> Vec<(u64, usize, Fate)> {
        core::mem::take(&mut self.fates)
    }
}

/// What the committed stamps tell of a write that is not staged here. A member takes a write whole, and stamps only grow:
/// one block with its stamp proves that it took effect, one with an earlier stamp that it did not (`None`: it can still be
/// refused). Where all blocks are newer, later writes have wiped its traces, and this member has no say.
fn fate_by_stamps(write: &WriteId, width: u8, stamps: &[Stamp]) -> Option<Fate> {
    let is_touched = |entry: usize| match write.scope {
        Scope::Unit { index } if width > 1 => entry == usize::from(index),
        _ => true,
    };
    let touched =
        || stamps.iter().enumerate().filter(|(at, _)| is_touched(at % usize::from(width))).map(|(_, s)| *s);
    if touched().any(|stamp| stamp == write.stamp) {
        return Some(Fate::Committed);
    }
    touched().all(|stamp| stamp > write.stamp).then_some(Fate::Unreadable)
}
