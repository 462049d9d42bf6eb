//! What bricks do with writes: into every holder's journal, acknowledged after all, and to the disks when their heads
//! come by (D-SPTF, section 3).

use super::brick::{Job, blocks};
use super::request::Ref;
use super::run::Run;
use crate::timed::cluster::Scheme;
use crate::timed::measured::Message;
use base::BrickId;
use model::drive::Access;
use proto::distribute::claim::Event;

impl Run<'_> {
    /// `is_first`: from the client itself, not passed on by another brick.
    pub(super) fn on_write(&mut self, brick: u32, request: Ref, is_first: bool) {
        let Some(known) = self.known(request) else { return };
        if is_first {
            for member in 0..self.groups[known.group as usize].bricks.len() {
                let to = self.groups[known.group as usize].bricks[member];
                if to != brick {
                    self.send(Some(brick), to, Message::WriteForward, request);
                }
            }
        }
        if self.bricks[brick as usize].blocked.is_empty() && self.bricks[brick as usize].journal(known.count)
        {
            self.journaled(brick, request);
        } else {
            self.bricks[brick as usize].blocked.push_back(request);
        }
    }

    /// The write is safe here: it is in memory, waits for the disk, and the first brick is told.
    fn journaled(&mut self, brick: u32, request: Ref) {
        let Some(known) = self.known(request) else { return };
        let group = &self.groups[known.group as usize];
        let member = group.bricks.iter().position(|other| *other == brick).unwrap_or(0);
        let access =
            Access { sector: group.offsets[member] + known.sector, count: known.count, is_write: true };
        let first = group.bricks[usize::from(known.first)];
        let cache = match self.cluster.scheme {
            Scheme::Central => &mut self.central_cache,
            _ => &mut self.bricks[brick as usize].cache,
        };
        if !cache.is_off() {
            blocks(known.group, known.sector, known.count).for_each(|block| cache.touch(block));
        }
        let (item, sector) = (Job { request, access }, access.sector);
        self.step(brick, Event::Local { sector, is_write: true, item });
        if brick == first {
            self.on_journaled(first, request);
        } else {
            self.send(Some(brick), first, Message::Journaled, request);
        }
    }

    /// The first brick hears that one more journal holds the write.
    pub(super) fn on_journaled(&mut self, first: u32, request: Ref) {
        let Some(known) = self.requests.get_mut(request) else { return };
        known.journaled += 1;
        if usize::from(known.journaled) == self.groups[known.group as usize].bricks.len() {
            self.tell(first, Message::Acknowledged, request);
        }
    }

    /// A disk has written: the journal has room again, and all but one holder drop the block.
    pub(super) fn on_destaged(&mut self, brick: u32, job: &Job) {
        self.drop_copy(brick, job.request);
        if let Some(known) = self.requests.get_mut(job.request) {
            known.written += 1;
            self.release_written(job.request);
        }
        while let Some(&next) = self.bricks[brick as usize].blocked.front() {
            let count = self.known(next).map_or(1, |known| known.count);
            if !self.bricks[brick as usize].journal(count) {
                return;
            }
            self.bricks[brick as usize].blocked.pop_front();
            self.journaled(brick, next);
        }
    }

    fn drop_copy(&mut self, brick: u32, request: Ref) {
        let is_shared = matches!(self.cluster.scheme, Scheme::Central) || !self.cluster.exclusive;
        if is_shared || self.bricks[brick as usize].cache.is_off() {
            return;
        }
        let Some(known) = self.known(request) else { return };
        if self.keeper(&known) != Some(BrickId(brick)) {
            let cache = &mut self.bricks[brick as usize].cache;
            blocks(known.group, known.sector, known.count).for_each(|block| cache.remove(block));
        }
    }

    /// Frees the slot of a write when it is acknowledged and on as many disks as is asked for; forgets it when it is on
    /// all.
    pub(super) fn release_written(&mut self, request: Ref) {
        let Some(known) = self.requests.get_mut(request).filter(|known| known.is_answered) else { return };
        let holders = self.groups[known.group as usize].bricks.len();
        let is_enough = u32::from(known.written) >= self.cluster.write_release.needed(holders);
        let is_due = is_enough && !known.is_released;
        known.is_released = is_enough;
        let (group, is_forgotten) = (known.group, usize::from(known.written) == holders);
        if is_forgotten {
            self.requests.remove(request);
            self.note_end();
        }
        if is_due {
            self.slot_free(group);
        }
    }
}
