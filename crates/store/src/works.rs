//! Applications and mends: what makes content committed. Those of the same blocks happen in the order in which they were
//! asked for; the application of a delta first reads the parity that it changes.

use crate::commit::{Item, WriteState};
use crate::discard::Region;
use crate::machine::Running;
use crate::overlay::Need;
use crate::record::{Body, Extent};
use base::{BLOCK, Payload, Stamp};
use wire::disk::{Reply, StoreError, Token};
use wire::{Change, Span};

/// An application or a mend. Those of the same blocks happen in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) span: Span,
    pub(crate) kind: WorkKind,
    pub(crate) started: bool,
}

#[derive(Debug)]
pub(crate) enum WorkKind {
    Apply(Stamp),
    Mend(Box<Mend>),
}

#[derive(Debug)]
pub(crate) struct Mend {
    pub(crate) token: Token,
    pub(crate) width: u8,
    pub(crate) stamps: Vec<Stamp>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) need: Need,
    pub(crate) cost: usize,
}

impl Work {
    /// What it takes of the journal beside what writes take.
    pub(crate) fn cost(&self) -> usize {
        match &self.kind {
            WorkKind::Apply(_) => 0,
            WorkKind::Mend(mend) => mend.cost,
        }
    }

    /// The content that it mends with; that of an application is its write's.
    pub(crate) fn mended(&self) -> &[Extent] {
        match &self.kind {
            WorkKind::Apply(_) => &[],
            WorkKind::Mend(mend) => &mend.extents,
        }
    }

    /// The answer when the disk failed.
    pub(crate) fn refusal(&self) -> Option<Reply> {
        match &self.kind {
            WorkKind::Apply(_) => None,
            WorkKind::Mend(mend) => {
                Some(Reply::Staged { token: mend.token, result: Err(StoreError::Failed) })
            }
        }
    }
}

impl Running {
    pub(crate) fn enlist(&mut self, span: Span, kind: WorkKind) {
        self.queue.next_work += 1;
        let id = self.queue.next_work;
        self.works.push_back(Work { id, span, kind, started: false });
        self.start_work(self.works.len() - 1);
    }

    /// Starts a work unless an earlier one on its blocks is not finished. Gives back whether it finished.
    pub(crate) fn start_work(&mut self, at: usize) -> bool {
        let work = &self.works[at];
        let blocked = self.works.iter().take(at).any(|earlier| earlier.span.overlaps(&work.span));
        if work.started || blocked {
            return false;
        }
        let id = work.id;
        let discarded = self.discards.cover_span(&work.span) || self.is_doomed(work);
        match work.kind {
            WorkKind::Mend(_) if discarded => {
                self.refuse_mend(at);
                true
            }
            WorkKind::Apply(stamp) if discarded => {
                self.works.remove(at);
                self.forget_write(stamp);
                true
            }
            WorkKind::Mend(_) => {
                self.works[at].started = true;
                self.queue.push(Item::Mend(id), self.now);
                false
            }
            WorkKind::Apply(stamp) => {
                self.works[at].started = true;
                self.apply(stamp, at)
            }
        }
    }

    /// Mends that wait for others on blocks that are given back.
    pub(crate) fn refuse_mends(&mut self, region: Region) {
        let is_refused = |work: &Work| {
            !work.started && matches!(work.kind, WorkKind::Mend(_)) && region.holds_span(&work.span)
        };
        while let Some(at) = self.works.iter().position(is_refused) {
            self.refuse_mend(at);
        }
        self.go_on();
    }

    /// Blocks that are given back take no more content.
    pub(crate) fn refuse_mend(&mut self, at: usize) {
        let work = self.works.remove(at).expect("the caller has seen it");
        let WorkKind::Mend(mend) = work.kind else { unreachable!("work {} is a mend", work.id) };
        self.live_cost -= mend.cost;
        self.release(mend.need);
        for extent in &mend.extents {
            if let Body::Slot(slot) = extent.body {
                self.direct.remove(&slot);
            }
            self.free_slot_of(extent);
        }
        self.answer(mend.token, Err(StoreError::Busy));
    }

    pub(crate) fn forget_write(&mut self, stamp: Stamp) {
        self.writes.get_mut(&stamp).expect("a write being applied is known").state = WriteState::Dropped;
        self.queue.push(Item::Drop(stamp), self.now);
    }

    pub(crate) fn apply(&mut self, stamp: Stamp, at: usize) -> bool {
        let write = self.writes.get_mut(&stamp).expect("a write being applied is known");
        let span = write.staged.write.span;
        if matches!(write.staged.change, Change::Xor { .. }) {
            self.read_base(stamp, span);
            return false;
        }
        write.state = WriteState::Applied;
        let write = &self.writes[&stamp];
        self.fresh.put(span, stamp, write.setting(), &write.extents);
        self.works.remove(at);
        self.queue.push(Item::Apply(stamp), self.now);
        true
    }

    /// The parity that a delta changes is here: `blocks` of content, `lost` ones among them without.
    pub(crate) fn on_base(&mut self, stamp: Stamp, base: &Payload, lost: &[u32]) {
        let at = self.works.iter().position(|work| matches!(work.kind, WorkKind::Apply(s) if s == stamp));
        self.works.remove(at.expect("a write that reads its base is at work"));
        let span = self.writes[&stamp].staged.write.span;
        if self.discards.cover_span(&span) || self.writes[&stamp].is_doomed() {
            self.forget_write(stamp);
        } else {
            let write = self.writes.get_mut(&stamp).expect("a write being applied is known");
            write.state = WriteState::Applied;
            let image = image(&write.extents, base, lost);
            self.fresh.put(span, stamp, self.writes[&stamp].setting(), &image);
            self.queue.push(Item::Image(stamp, image), self.now);
        }
        self.go_on();
    }

    /// Starts what a finished work has held up.
    pub(crate) fn go_on(&mut self) {
        let mut at = 0;
        while at < self.works.len() {
            at += usize::from(!self.start_work(at));
        }
        self.release_reads();
    }

    /// Whether it is the application of a write whose blocks were given back meanwhile.
    fn is_doomed(&self, work: &Work) -> bool {
        matches!(work.kind, WorkKind::Apply(stamp) if self.writes[&stamp].is_doomed())
    }

    /// Whether works on these blocks are under way.
    pub(crate) fn is_worked_on(&self, span: &Span) -> bool {
        self.works.iter().any(|work| work.span.overlaps(span))
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
