//! A brick was away while volumes were deleted, and the directory has forgotten the deletions: the brick says which families it knows, a page
//! at a time in the order of their ids, and hears which of them are gone.

use super::{Brick, BrickEffect, reply};
use base::{NodeId, Time, VolumeId};
use std::collections::BTreeSet;
use wire::Message;

/// How far the brick is with what it says.
#[derive(Debug)]
pub(super) struct Held {
    /// So many families are named at a time.
    at_once: usize,
    /// Of the question under way: its number, and the first id that it may name.
    asked: Option<(u64, VolumeId)>,
    questions: u64,
}

impl Held {
    pub(super) fn new(at_once: usize) -> Held {
        Held { at_once, asked: None, questions: 0 }
    }

    /// It says all that it knows, from the beginning.
    pub(super) fn begin(&mut self) {
        self.ask_from(VolumeId(0));
    }

    fn ask_from(&mut self, first: VolumeId) {
        self.questions += 1;
        self.asked = Some((self.questions, first));
    }
}

impl Brick {
    /// Says the page that is due, again if there was no answer: with each heartbeat.
    pub(super) fn tell_held(&mut self, fx: &mut Vec<BrickEffect>) {
        let Some((operation, first)) = self.held.asked else { return };
        let mut families: BTreeSet<VolumeId> = self.volumes_held().filter(|id| *id >= first).collect();
        if let Some(next) = families.iter().nth(self.held.at_once).copied() {
            families.split_off(&next);
        }
        if families.is_empty() {
            self.held.asked = None;
            return;
        }
        let (brick, families) = (self.membership.id(), families.into_iter().collect());
        reply(fx, NodeId::Directory, Message::Held { brick, operation, families });
    }

    pub(super) fn on_held_done(
        &mut self,
        now: Time,
        (operation, through): (u64, VolumeId),
        gone: Vec<VolumeId>,
        fx: &mut Vec<BrickEffect>,
    ) {
        if self.held.asked.is_none_or(|(asked, _)| asked != operation) {
            return;
        }
        let gone: BTreeSet<VolumeId> = gone.into_iter().collect();
        if !gone.is_empty() {
            let branches: Vec<VolumeId> = self.groups.branches_of(&gone).into_iter().collect();
            // What becomes of the notes is no matter: after a restart it asks again.
            self.on_deleted(now, &branches, Some(gone.into_iter().collect()), fx);
            self.look_at_groups(now);
            // Of branches that it does not know any more it may still have blocks.
            self.maintenance.give_back();
        }
        self.held.ask_from(VolumeId(through.0.saturating_add(1)));
        self.tell_held(fx);
    }
}
