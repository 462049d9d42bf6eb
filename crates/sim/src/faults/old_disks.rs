//! Disks that are put back from an older copy: taken while the brick ran, and put in its place after the brick, or the whole
//! cluster, was stopped.
//!
//! A copy counts only if the directory has heard since of a position beyond it: what a brick took within a heartbeat before the
//! copy nobody can know, and the product does not promise it.

use super::harm::SETTLE_NS;
use super::{Fault, Incident};
use crate::units::{MS, SECOND};
use crate::world::event::Event;
use crate::world::{Kind, World};
use base::BrickId;
use model::{Disk, PowerCut};

/// Positions are stored within this time by a directory that runs.
const STORED_NS: u64 = 2500 * MS;

/// Between two tries to put a copy back.
const AGAIN_NS: u64 = 500 * MS;

/// A copy of some of a brick's disks.
pub(super) struct Copy {
    node: usize,
    brick: BrickId,
    disks: Vec<DiskCopy>,
    /// Whether all nodes are stopped when it is put back.
    of_all: bool,
}

struct DiskCopy {
    index: usize,
    disk: Disk,
    identity: u64,
    /// Where the journal's last frame ends that can be in the copy.
    head: u64,
}

impl World {
    /// Copies disks of a brick, to put them back later.
    pub(super) fn copy_disks(&mut self) {
        if self.faults.copy.is_some() || self.shape.disks.are_small {
            return;
        }
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let Some(brick) = self.nodes[node].brick().filter(|id| !self.faults.may_be_rotten(*id)) else {
            return;
        };
        let ends = self.nodes[node].journal_ends();
        let draw = &mut self.faults.draw;
        let one = (ends.len() > 1 && draw.percent(60)).then(|| draw.index(ends.len()));
        let of_all = draw.percent(30);
        let after_ns = draw.between(SECOND, 12 * SECOND);
        let Some(bay) = self.nodes[node].bay_mut() else { return };
        let copies = bay.disks().iter().zip(ends).enumerate();
        let wanted = copies.filter(|(index, _)| one.is_none_or(|one| one == *index));
        let disks = wanted.map(|(index, (disk, (identity, head)))| DiskCopy {
            index,
            disk: disk.copy(),
            identity,
            head,
        });
        let copy = Copy { node, brick, disks: disks.collect(), of_all };
        if copy.disks.is_empty() {
            return;
        }
        self.faults.copy = Some(copy);
        self.later(after_ns, Event::FaultEnd(Fault::Copied { is_stored: false }));
    }

    /// The copy is put back, if that is something that must be noticed and is survived.
    pub(super) fn put_back(&mut self, is_stored: bool) {
        let Some(copy) = self.faults.copy.take().filter(|_| self.faults.until_ns > 0) else { return };
        let is_old = self.nodes[0].knows_more(copy.brick, copy.disks.iter().map(|of| (of.identity, of.head)));
        let bears = self.may_lose(copy.brick) && !self.faults.may_be_rotten(copy.brick);
        if !self.nodes[copy.node].runs() || !is_old || !bears || self.faults.are_quiet(self.time.now_ns()) {
            // It may be both a little later.
            self.faults.copy = Some(copy);
            return self.later(AGAIN_NS, Event::FaultEnd(Fault::Copied { is_stored: false }));
        }
        // A directory that crashes before it has stored what it heard does not know that the disks are old.
        self.faults.quiet_until_ns = self.time.now_ns() + STORED_NS;
        if copy.of_all && !is_stored {
            self.faults.copy = Some(copy);
            return self.later(STORED_NS, Event::FaultEnd(Fault::Copied { is_stored: true }));
        }
        self.judges.failover().clear();
        self.faults.count(Incident::OldDisksPutBack);
        self.note_wiped(copy.brick);
        let others = match copy.of_all {
            true => self
                .nodes
                .matching(|node| node.is_alive() && matches!(node.kind(), Kind::Directory | Kind::Brick(_))),
            false => vec![copy.node],
        };
        for node in others {
            // Mostly so short that its lease outlasts it: who was left out meanwhile is compared anyway.
            let outage_ns = match copy.of_all || self.faults.draw.percent(75) {
                true => self.faults.draw.between(50 * MS, SECOND),
                false => self.draw_outage_ns(),
            };
            self.crash(node, PowerCut::ProcessOnly);
            if let Some(id) = self.nodes[node].brick() {
                self.faults.unsettle(id, self.time.now_ns() + outage_ns + SETTLE_NS);
            }
            self.later(outage_ns, Event::Boot { node });
        }
        self.note(copy.node, "gets an old copy of its disks");
        if let Some(bay) = self.nodes[copy.node].bay_mut() {
            copy.disks.into_iter().for_each(|of| bay.disks_mut()[of.index] = of.disk);
        }
    }
}
