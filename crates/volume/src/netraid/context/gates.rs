//! The line in which a coordinator's requests pass one after the other, and the locks that it gives back.

use super::confirmations::Confirmations;
use super::links::Links;
use super::stamps::Stamps;
use crate::netraid::order::locks::{Locks, Place, Wish};
use crate::netraid::outcome::OperationId;
use base::{BrickId, GroupId, Time, VolumeId};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Message, OPERATIONS_MAX};

/// For how long rows count as contended after writes met there.
const CONTENDED: Duration = Duration::from_secs(10);
/// How many blocks count as one place.
const GRAIN: u64 = 16;
/// The most places that are remembered.
const PLACES_MAX: usize = 4096;

/// The line, whose turn has come, locks of servers that nobody needs any more, and where writes met lately.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    line: Locks<OperationId>,
    granted: Vec<OperationId>,
    unlocks: BTreeMap<BrickId, Vec<u64>>,
    /// Until when, by place.
    contended: BTreeMap<(GroupId, VolumeId, u64), Time>,
}

/// What an operation has that is over.
pub struct Leaving<'a> {
    pub(crate) now: Time,
    pub(crate) stamps: &'a mut Stamps,
    pub(crate) gates: &'a mut Gates,
    pub(crate) links: &'a mut Links,
    pub(crate) confirmations: &'a mut Confirmations,
}

impl Gates {
    /// An operation wants its turn.
    pub(crate) fn get_in_line(&mut self, now: Time, id: OperationId, place: Place) -> Wish {
        self.line.want(now, id, place)
    }

    /// Writes met there.
    pub(crate) fn note_contention(&mut self, now: Time, place: &Place) {
        for key in places(place) {
            if self.contended.len() >= PLACES_MAX && !self.contended.contains_key(&key) {
                self.contended.retain(|_, until| *until > now);
            }
            if self.contended.len() < PLACES_MAX {
                self.contended.insert(key, now + CONTENDED);
            }
        }
    }

    /// Whether writes met there lately.
    pub(crate) fn is_contended(&self, now: Time, place: &Place) -> bool {
        places(place).any(|key| self.contended.get(&key).is_some_and(|until| *until > now))
    }

    /// Whose turn has come, since the last call.
    pub(crate) fn take_granted(&mut self) -> Vec<OperationId> {
        core::mem::take(&mut self.granted)
    }

    /// What servers are to be told.
    pub(crate) fn take_unlocks(&mut self) -> impl Iterator<Item = (BrickId, Message)> + use<> {
        let told = |(brick, holders): (BrickId, Vec<u64>)| {
            let chunks: Vec<Vec<u64>> = holders.chunks(OPERATIONS_MAX).map(<[u64]>::to_vec).collect();
            chunks.into_iter().map(move |holders| (brick, Message::Unlock { holders }))
        };
        core::mem::take(&mut self.unlocks).into_iter().flat_map(told)
    }
}

fn places(place: &Place) -> impl Iterator<Item = (GroupId, VolumeId, u64)> + use<> {
    let Place { group, span, .. } = *place;
    (span.lba / GRAIN..span.end().div_ceil(GRAIN)).map(move |at| (group, span.volume, at))
}

impl Leaving<'_> {
    /// A lock of `server` is not needed any more.
    pub(crate) fn unlock(&mut self, server: BrickId, holder: u64) {
        self.gates.unlocks.entry(server).or_default().push(holder);
    }

    /// Those behind it may have their turn.
    pub(crate) fn leave_line(&mut self, id: OperationId) {
        let turns = self.gates.line.leave(self.now, id);
        self.gates.granted.extend(turns);
    }
}
