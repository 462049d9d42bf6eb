//! The writes that wait at a member behind undecided ones, and what a write does that comes. A block has at most one undecided write (a
//! parity block: one for each *lane*, the stamps' entry of one data unit). A write that is later than nothing undecided, but earlier
//! than what is committed, is refused by `atomicity::two_phase::member` (`check`).

use super::{Meeting, rule};
use crate::netraid::pending::{PendingTable, Prepare, WriteKey};
use base::{GroupId, NodeId, Stamp, VolumeId};
use std::collections::BTreeMap;
use wire::Span;

/// The most writes that wait at a disk.
pub const QUEUE_MAX: usize = 4096;

/// What the order says of a write that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its blocks are free.
    Now,
    /// It waits behind all that are in its way.
    Wait,
    /// It would wait, but the queue is full.
    Full,
    /// A write with this stamp is in its way, and it is refused.
    Refused(Stamp),
}

/// The writes that wait behind undecided ones.
#[derive(Debug, Default)]
pub struct Waiting {
    writes: BTreeMap<WriteKey, Prepare>,
}

impl Waiting {
    /// Whether a write has its turn among those that are undecided.
    pub fn turn(&self, undecided: &PendingTable, prepare: &Prepare) -> Turn {
        let (rule, own) = (rule(prepare.order), prepare.write.stamp);
        let mut turn = Turn::Now;
        for other in undecided.overlapping(prepare.write.span) {
            let stamp = other.prepare.write.stamp;
            if other.prepare.lanes() & prepare.lanes() == 0 {
                continue;
            }
            turn = match (turn, rule.meets(own, stamp)) {
                (Turn::Refused(newest), Meeting::Refused) => Turn::Refused(newest.max(stamp)),
                (Turn::Refused(_), Meeting::Waits) => turn,
                (_, Meeting::Refused) => Turn::Refused(stamp),
                (_, Meeting::Waits) => Turn::Wait,
            };
        }
        if turn == Turn::Wait && self.writes.len() >= QUEUE_MAX { Turn::Full } else { turn }
    }

    /// The staged writes that a parity delta declares committed: it follows on them in its lane, and the data brick that
    /// sent it took them for committed.
    pub fn implied(undecided: &PendingTable, prepare: &Prepare, previous: &[Stamp]) -> Vec<WriteKey> {
        undecided
            .in_doubt(prepare.write.span)
            .filter(|p| p.prepare.lanes() & prepare.lanes() != 0 && previous.contains(&p.prepare.write.stamp))
            .map(|p| p.prepare.key())
            .collect()
    }

    /// Lets a write wait.
    pub fn enqueue(&mut self, prepare: Prepare) {
        self.writes.insert(prepare.key(), prepare);
    }

    /// Whether the write waits.
    pub fn has(&self, key: &WriteKey) -> bool {
        self.writes.contains_key(key)
    }

    /// The waiting write, to answer whoever asked for it last.
    pub fn get_mut(&mut self, key: &WriteKey) -> Option<&mut Prepare> {
        self.writes.get_mut(key)
    }

    /// The write waits no more.
    pub fn take(&mut self, key: &WriteKey) -> Option<Prepare> {
        self.writes.remove(key)
    }

    /// Those that touch a block of `span`, the earliest stamp first.
    pub fn behind(&self, span: Span) -> Vec<WriteKey> {
        let behind = self.writes.iter().filter(|(_, prepare)| prepare.write.span.overlaps(&span));
        let mut keys: Vec<WriteKey> = behind.map(|(key, _)| *key).collect();
        keys.sort_by_key(|key| key.stamp);
        keys
    }

    /// Takes out those of a group, by place.
    pub fn take_group(&mut self, group: GroupId) -> impl Iterator<Item = Prepare> + use<> {
        let (gone, stay): (BTreeMap<_, _>, BTreeMap<_, _>) = core::mem::take(&mut self.writes)
            .into_iter()
            .partition(|(_, prepare)| prepare.write.group == group);
        self.writes = stay;
        gone.into_values()
    }

    /// Forgets those of a deleted volume.
    pub fn forget_volume(&mut self, volume: VolumeId) {
        self.writes.retain(|key, _| key.volume != volume);
    }

    /// Forgets those that a node asked for which cannot be reached any more.
    pub fn forget_node(&mut self, node: NodeId) {
        self.writes.retain(|_, prepare| prepare.reply_to.is_none_or(|(of, _)| of != node));
    }

    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}

/// Asserts that no two undecided writes of one block share a lane.
pub fn assert_one_a_block(undecided: &PendingTable) {
    for pending in undecided.iter() {
        let prepare = &pending.prepare;
        let rivals = undecided.overlapping(prepare.write.span).filter(|other| {
            other.prepare.key() != prepare.key() && other.prepare.lanes() & prepare.lanes() != 0
        });
        assert_eq!(rivals.count(), 0, "one undecided write a block: {:?}", prepare.write);
    }
}
