//! What a change of view means for the writes and reads of its group.

use super::{Context, Participant, ReadRequest, answer, read_answer};
use crate::netraid::pending::{Prepare, State, WriteKey};
use base::{GroupId, NodeId, Payload, VolumeId};
use std::collections::BTreeMap;
use wire::disk::Command;
use wire::{Decision, GroupView, PrepareOutcome, ReadOutcome, WriteId};

impl Participant {
    /// A later view of `group` was promised: nothing more is prepared or read under the old one. Gives the writes
    /// in doubt.
    pub fn fence(&mut self, cx: &mut Context<'_>, group: GroupId) -> Vec<WriteId> {
        let of_group: Vec<(WriteKey, State)> = self
            .pending
            .iter()
            .filter(|p| p.prepare.write.group == group)
            .map(|p| (p.prepare.key(), p.state))
            .collect();
        for (key, state) in &of_group {
            if !matches!(state, State::Staged | State::Mending) {
                self.finish_abort(cx, *key);
            }
        }
        self.refuse_waiting(cx, |of| of == group);
        of_group
            .iter()
            .filter(|(_, state)| *state == State::Staged)
            .filter_map(|(key, _)| self.pending.get(key))
            .map(|pending| pending.prepare.write)
            .collect()
    }

    /// A view begins: every write of the group that it does not commit is dropped.
    pub fn activate(&mut self, cx: &mut Context<'_>, view: &GroupView, commits: &[Decision]) {
        let of_group: Vec<WriteKey> = self
            .pending
            .iter()
            .filter(|p| p.prepare.write.group == view.group && p.state != State::Mending)
            .map(|p| p.prepare.key())
            .collect();
        for key in of_group {
            let Some(pending) = self.pending.get(&key) else { continue };
            let commit = commits.contains(&Decision::from(&pending.prepare.write));
            if commit && pending.state == State::Staged {
                cx.counters.count("write decided by a view change");
                self.finish_commit(cx, key);
            } else {
                cx.counters.count("write dropped by a view change");
                self.finish_abort(cx, key);
            }
        }
        self.refuse_waiting(cx, |of| of == view.group);
    }

    /// The volume is deleted: its writes end without an answer.
    pub fn discard(&mut self, cx: &mut Context<'_>, volume: VolumeId) {
        self.waiting.retain(|key, _| key.volume != volume);
        let keys: Vec<WriteKey> =
            self.pending.iter().map(|p| p.prepare.key()).filter(|key| key.volume == volume).collect();
        keys.into_iter().for_each(|key| self.finish_abort(cx, key));
        self.store(cx, Command::Discard { volume, stretch: None });
    }

    pub(super) fn refuse_waiting(&mut self, cx: &mut Context<'_>, is_of: impl Fn(GroupId) -> bool) {
        let (gone, stay) = core::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, prepare): &(WriteKey, Prepare)| is_of(prepare.write.group));
        self.waiting = stay;
        for prepare in BTreeMap::into_values(gone) {
            let view = cx.groups.takes(prepare.write.group, prepare.view).err().flatten();
            answer(cx, &prepare, PrepareOutcome::Stale { view });
        }
        let gone: Vec<u64> =
            self.held.iter().filter(|(_, (_, read))| is_of(read.group)).map(|(id, _)| *id).collect();
        for id in gone {
            let (_, read) = self.held.remove(&id).expect("listed");
            let view = cx.groups.serves(read.group, read.view).err().flatten();
            read_answer(cx, &read, ReadOutcome::Stale { view }, Payload::new());
        }
    }

    /// A gateway cannot be reached: what it asked for and was not begun is forgotten. It asks again if it lives.
    pub fn on_gateway_down(&mut self, node: NodeId) {
        self.waiting.retain(|_, prepare| prepare.reply_to.is_none_or(|(of, _)| of != node));
        self.held.retain(|_, (_, read)| read.from != node);
    }
}

/// Asked for neither content nor stamps: whether the view is in force here. A member that joins may say so too, as it needs
/// to know no write for that: a reader without a lease relies on it (`super::super::read`).
pub(super) fn bear_witness(cx: &mut Context<'_>, read: &ReadRequest) {
    let outcome = match cx.groups.takes(read.group, read.view) {
        Ok(()) => ReadOutcome::Done { leased: cx.leased, stamps: Vec::new(), unreadable: Vec::new() },
        Err(view) => ReadOutcome::Stale { view },
    };
    read_answer(cx, read, outcome, Payload::new());
}
