//! The directory's store is put back from an older copy, as by an operator who has a backup and does not know better; and, once
//! the directory says that it is old, the newest one is put in its place.

use super::{Fault, Incident};
use crate::units::{MS, SECOND};
use crate::world::World;
use crate::world::event::Event;
use model::PowerCut;

/// So long after its start a directory has heard all bricks: they call it again, and send a heartbeat.
const HEARD_NS: u64 = 5 * SECOND;

/// What the directory's store holds.
type Contents = Vec<(Vec<u8>, Vec<u8>)>;

/// Contents of the directory's store that are kept aside.
pub(super) enum Kept {
    /// An older copy, to be put back.
    Old(Contents),
    /// What was there when the older copy was put back.
    Newest(Contents),
}

impl World {
    /// Copies the directory's store, to put it back later.
    pub(super) fn copy_store(&mut self) {
        if self.faults.store.is_some() {
            return;
        }
        self.faults.store = Some(Kept::Old(self.store_contents()));
        let after_ns = self.faults.draw.between(500 * MS, 10 * SECOND);
        self.later(after_ns, Event::FaultEnd(Fault::StoreCopied));
    }

    /// Puts the old one back, or the newest.
    pub(super) fn exchange_store(&mut self) {
        match self.faults.store.take() {
            Some(Kept::Old(old)) if self.may_put_store_back() => {
                self.judges.failover().clear();
                self.faults.count(Incident::OldStoresPutBack);
                let outage_ns = self.faults.draw.between(50 * MS, 2 * SECOND);
                self.crash(0, PowerCut::ProcessOnly);
                self.faults.store = Some(Kept::Newest(self.store_contents()));
                self.set_store_contents(old);
                self.note(0, "gets an old copy of its store");
                self.later(outage_ns, Event::Boot { node: 0 });
                // Who is away could not tell that it is old.
                self.faults.quiet_until_ns = self.time.now_ns() + outage_ns + HEARD_NS;
                self.faults.armed = None;
                self.later(outage_ns + HEARD_NS, Event::FaultEnd(Fault::StoreCopied));
            }
            Some(Kept::Newest(newest)) if self.nodes[0].is_outdated() => {
                self.judges.failover().clear();
                self.crash(0, PowerCut::ProcessOnly);
                self.set_store_contents(newest);
                self.note(0, "gets its newest store back");
                self.later(50 * MS, Event::Boot { node: 0 });
            }
            // Nothing that counts had changed since, or it is not the time for it.
            _ => {}
        }
    }

    /// Whether all bricks that will ever run are there to say what they know.
    fn may_put_store_back(&self) -> bool {
        let is_calm =
            self.physics.net().config().loss_ppm == 0 && self.faults.disturbed_ns < self.time.now_ns();
        let is_there = |node: usize| self.nodes[node].runs() || self.nodes[node].is_gone();
        let bricks = self.nodes.matching(|node| node.brick().is_some());
        // Bricks hear of the map with each heartbeat, and a store that was put back sooner is not known as old.
        let is_told =
            bricks.iter().any(|brick| self.nodes[*brick].map_version() >= self.nodes[0].map_version());
        let is_quiet = self.faults.are_quiet(self.time.now_ns());
        self.faults.until_ns > 0
            && !is_quiet
            && is_calm
            && is_told
            && self.nodes[0].runs()
            && bricks.into_iter().all(is_there)
    }
}
