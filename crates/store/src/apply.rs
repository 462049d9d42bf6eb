//! Carrying out applications and mends: those of the same blocks in the order in which they were asked for; the application of
//! a delta first reads the parity that it changes.

use crate::discard::Region;
use crate::queue::Item;
use crate::read::{ReadOp, Reader, Wanted};
use crate::record::{Body, Extent};
use crate::running::Running;
use crate::works::WorkKind;
use base::{BLOCK, Payload, Stamp};
use wire::disk::StoreError;
use wire::{Change, Span};

impl Running {
    pub(crate) fn enlist(&mut self, span: Span, kind: WorkKind) {
        let at = self.log.works.push(span, kind);
        self.start_work(at);
    }

    /// Starts a work unless an earlier one on its blocks is not finished. Gives back whether it finished.
    fn start_work(&mut self, at: usize) -> bool {
        let Some(work) = self.log.works.startable(at) else { return false };
        let is_discarded = self.blocks.discards.cover_span(&work.span());
        let (id, now) = (work.id(), self.device.now());
        match *work.kind() {
            WorkKind::Mend(_) if is_discarded => {
                self.refuse_mend(at);
                true
            }
            WorkKind::Mend(_) => {
                self.log.works.start(at);
                self.log.queue.push(Item::Mend(id), now);
                false
            }
            WorkKind::Apply(stamp) if is_discarded || self.log.writes.known(stamp).is_doomed() => {
                self.log.works.end_apply(stamp);
                self.give_up(stamp);
                true
            }
            WorkKind::Apply(stamp) => {
                self.log.works.start(at);
                self.apply(stamp)
            }
        }
    }

    /// Refuses the mends that have not begun on blocks that are given back.
    pub(crate) fn refuse_mends(&mut self, region: Region) {
        while let Some(at) = self.log.works.waiting_mend(region) {
            self.refuse_mend(at);
        }
        self.go_on();
    }

    /// Blocks that are given back take no more content.
    fn refuse_mend(&mut self, at: usize) {
        let mend = self.log.works.take_mend(at);
        self.blocks.release(mend.need);
        for extent in &mend.extents {
            if let Body::Slot(slot) = extent.body {
                self.log.bring_no_more(slot);
            }
            self.blocks.free_slot_of(extent);
        }
        self.device.staged(mend.token, Err(StoreError::Busy));
    }

    /// Drops a write whose application had begun.
    fn give_up(&mut self, stamp: Stamp) {
        self.log.writes.known_mut(stamp).set_dropped();
        self.log.queue.push(Item::Drop(stamp), self.device.now());
    }

    /// Gives back whether the application finished.
    fn apply(&mut self, stamp: Stamp) -> bool {
        let write = self.log.writes.known_mut(stamp);
        let span = write.staged().write.span;
        if matches!(write.staged().change, Change::Xor { .. }) {
            self.start_read(ReadOp::new(Reader::Apply(stamp), span, 1, Wanted::Content));
            return false;
        }
        write.set_applied();
        self.blocks.layers.apply(span, stamp, write.setting(), write.extents());
        self.log.works.end_apply(stamp);
        self.log.queue.push(Item::Apply(stamp), self.device.now());
        true
    }

    /// The parity that a delta changes is here: `base` of content, `lost` blocks among them without.
    pub(crate) fn on_base(&mut self, stamp: Stamp, base: &Payload, lost: &[u32]) {
        self.log.works.end_apply(stamp);
        let write = self.log.writes.known_mut(stamp);
        let span = write.staged().write.span;
        if self.blocks.discards.cover_span(&span) || write.is_doomed() {
            self.give_up(stamp);
        } else {
            write.set_applied();
            let image = image(write.extents(), base, lost);
            self.blocks.layers.apply(span, stamp, write.setting(), &image);
            self.log.queue.push(Item::Image(stamp, image), self.device.now());
        }
        self.go_on();
    }

    /// Starts what a finished work has held up.
    pub(crate) fn go_on(&mut self) {
        let mut at = 0;
        while at < self.log.works.len() {
            at += usize::from(!self.start_work(at));
        }
        let works = &self.log.works;
        let free = self.reads.take_free(|span| works.overlap(span));
        free.into_iter().for_each(|read| self.start_read(read));
    }
}

/// `base ^ delta`, a block an extent where content is lost.
fn image(delta: &[Extent], base: &Payload, lost: &[u32]) -> Vec<Extent> {
    let mut image: Vec<Extent> = Vec::new();
    for extent in delta {
        let Some(content) = extent.inline() else { continue };
        let start = extent.offset as usize * BLOCK;
        let sum = content.xor(&base.slice(start, content.len()));
        for i in 0..extent.count {
            let offset = extent.offset + i;
            if lost.binary_search(&offset).is_ok() {
                image.push(Extent { offset, count: 1, sums: Vec::new(), body: Body::Lost });
                continue;
            }
            let block = sum.block(i as usize);
            let sums = vec![block.checksum()];
            image.push(Extent { offset, count: 1, sums, body: Body::Inline(block) });
        }
    }
    image
}
