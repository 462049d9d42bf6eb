//! Rot: stable pages that hold a block change their content, or cannot be read any more.

use super::Fault;
use super::Incident;
use crate::rare::Seen;
use crate::units::SECOND;
use crate::world::World;
use crate::world::event::Event;
use base::BrickId;
use wire::GroupView;
use wire::directory::ScrubStatus;

impl World {
    /// Some stable page with a block rots, if its group can repair that.
    pub(super) fn rot(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let Some(id) = self.nodes[node].brick() else { return };
        self.forget_rewritten(node, id);
        if !self.may_lose(id) {
            return;
        }
        let disk = self.faults.draw.below(u64::from(self.shape.disks.per_brick)) as usize;
        let pages = self.rottable(node, disk);
        if pages.is_empty() {
            return;
        }
        let count = if self.faults.draw.percent(70) { 1 } else { self.faults.draw.between(2, 6) };
        for _ in 0..count {
            self.rot_one(node, id, disk, &pages);
        }
        // Until they are found little else may go wrong: mostly somebody looks soon.
        if self.faults.draw.percent(80) {
            let delay_ns = self.faults.draw.below(6 * SECOND);
            self.later(delay_ns, Event::FaultEnd(Fault::Rot));
        }
    }

    fn rot_one(&mut self, node: usize, id: BrickId, disk: usize, pages: &[u64]) {
        let bad_sector = self.faults.draw.percent(25);
        self.faults.count(if bad_sector { Incident::UnreadableSectors } else { Incident::RottenSectors });
        let page = *self.faults.draw.pick(pages);
        self.faults.rot.add(id, disk, page);
        let bay = self.nodes[node].disks_mut();
        let target = &mut bay.disks_mut()[disk];
        if bad_sector {
            target.spoil(page)
        } else {
            target.rot(page, &mut self.faults.draw)
        }
        self.note(node, &format!("page {page} of disk {disk} rots"));
    }

    /// A brick whose scrub began and ended after its blocks rotted, and repaired all that it found, is sound if it was
    /// current in all its groups meanwhile, as a scrub passes over the others: what rots elsewhere on its disks holds no
    /// block.
    pub(crate) fn follow_scrub(&mut self, brick: BrickId, scrub: &ScrubStatus) {
        if !self.faults.rot.is_rotten(brick) {
            return;
        }
        let is_out = self.is_out_somewhere(brick);
        if self.faults.rot.follow_scrub(brick, scrub, is_out) {
            self.judges.count_rare(Seen::RottenBrickScrubbedClean);
        }
    }

    /// A view was seen: the scrubs of whoever is not current in it are not complete.
    pub(crate) fn doubt_scrubs(&mut self, view: &GroupView) {
        self.faults.rot.doubt_scrubs(view);
    }

    /// Whether a brick has a slot of a group without being current there.
    fn is_out_somewhere(&self, brick: BrickId) -> bool {
        let is_out = |view: &GroupView| view.has_part(brick) && !view.is_current(brick);
        self.judges.views().groups().into_iter().any(|group| self.views_of(group).into_iter().any(is_out))
    }

    /// Pages that were written anew since are sound.
    fn forget_rewritten(&mut self, node: usize, id: BrickId) {
        let bay = self.nodes[node].disks();
        let is_bad = |&(disk, page): &(usize, u64)| bay.disks()[disk].is_spoiled(page);
        self.faults.rot.retain(id, is_bad);
    }

    /// Pages of a brick's disk that hold a block and nothing else.
    fn rottable(&self, node: usize, disk: usize) -> Vec<u64> {
        let bay = self.nodes[node].disks();
        let is_block = |page: &[u8]| {
            page[..8] != [0; 8] && page.as_chunks::<8>().0.iter().all(|word| *word == page[..8])
        };
        let first = self.shape.disks.journal_end() / model::disk::PAGE as u64;
        let pages =
            bay.disks()[disk].stable_pages().filter(|(index, page)| *index >= first && is_block(page));
        pages.map(|(index, _)| index).collect()
    }
}
