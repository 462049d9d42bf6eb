//! Applications and mends: what makes content committed. Those of the same blocks happen in the order in which they were
//! asked for.

use crate::discard::Region;
use crate::overlay::{Need, Setting};
use crate::record::{Extent, Record};
use base::Stamp;
use std::collections::VecDeque;
use wire::Span;
use wire::disk::{Reply, StoreError, Token};

/// Names a work as long as it lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct WorkId(u64);

/// An application or a mend.
#[derive(Debug)]
pub(crate) struct Work {
    id: WorkId,
    span: Span,
    kind: WorkKind,
    is_started: bool,
}

#[derive(Debug)]
pub(crate) enum WorkKind {
    Apply(Stamp),
    Mend(Box<Mend>),
}

/// Content that is put in place with given stamps.
#[derive(Debug)]
pub(crate) struct Mend {
    pub(crate) token: Token,
    pub(crate) span: Span,
    pub(crate) width: u8,
    pub(crate) stamps: Vec<Stamp>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) need: Need,
    pub(crate) cost: usize,
}

impl Mend {
    /// The stamps that it sets.
    pub(crate) fn setting(&self) -> Setting<'_> {
        Setting::Each(self.width, &self.stamps)
    }

    pub(crate) fn record(&self) -> Record {
        let (stamps, extents) = (self.stamps.clone(), self.extents.clone());
        Record::Mend { span: self.span, width: self.width, stamps, extents, fresh: true }
    }
}

impl Work {
    pub(crate) fn id(&self) -> WorkId {
        self.id
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn kind(&self) -> &WorkKind {
        &self.kind
    }

    fn mend(&self) -> Option<&Mend> {
        match &self.kind {
            WorkKind::Apply(_) => None,
            WorkKind::Mend(mend) => Some(mend),
        }
    }

    /// The content that it mends with; that of an application is its write's.
    pub(crate) fn mended(&self) -> &[Extent] {
        self.mend().map_or(&[], |mend| &mend.extents)
    }
}

/// The works that are not done, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Works {
    all: VecDeque<Work>,
    last: WorkId,
    /// What the mends take of the journal.
    cost: usize,
}

impl Works {
    /// Adds one at the end. Gives back where.
    pub(crate) fn push(&mut self, span: Span, kind: WorkKind) -> usize {
        self.last.0 += 1;
        let work = Work { id: self.last, span, kind, is_started: false };
        self.cost += work.mend().map_or(0, |mend| mend.cost);
        self.all.push_back(work);
        self.all.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// What the mends take of the journal, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// The work at a place, unless it is started or an earlier one on its blocks is not done.
    pub(crate) fn startable(&self, at: usize) -> Option<&Work> {
        let work = &self.all[at];
        let is_blocked = || self.all.iter().take(at).any(|earlier| earlier.span.overlaps(&work.span));
        (!work.is_started && !is_blocked()).then_some(work)
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.all[at].is_started = true;
    }

    /// Takes out an application.
    pub(crate) fn end_apply(&mut self, stamp: Stamp) {
        let at = self.all.iter().position(|work| matches!(work.kind, WorkKind::Apply(s) if s == stamp));
        self.all.remove(at.expect("a write that is being applied is at work"));
    }

    /// Takes out a mend.
    pub(crate) fn end_mend(&mut self, id: WorkId) -> Box<Mend> {
        let at = self.all.iter().position(|work| work.id == id).expect("a mend in flight is at work");
        self.take_mend(at)
    }

    /// Takes out the mend at a place.
    pub(crate) fn take_mend(&mut self, at: usize) -> Box<Mend> {
        let work = self.all.remove(at).expect("the caller has seen it");
        let WorkKind::Mend(mend) = work.kind else { unreachable!("work {:?} is a mend", work.id) };
        self.cost -= mend.cost;
        mend
    }

    /// A mend of a region that has not begun.
    pub(crate) fn waiting_mend(&self, region: Region) -> Option<usize> {
        let waits = |work: &Work| !work.is_started && work.mend().is_some() && region.holds_span(&work.span);
        self.all.iter().position(waits)
    }

    /// A mend that a record names.
    pub(crate) fn mend(&self, id: WorkId) -> &Mend {
        let work = self.all.iter().find(|work| work.id == id).expect("a queued mend is at work");
        work.mend().unwrap_or_else(|| unreachable!("work {id:?} is a mend"))
    }

    /// The extents of a mend that a record names.
    pub(crate) fn mend_extents(&mut self, id: WorkId) -> &mut [Extent] {
        let work = self.all.iter_mut().find(|work| work.id == id).expect("a queued mend is at work");
        let WorkKind::Mend(mend) = &mut work.kind else { unreachable!("work {id:?} is a mend") };
        &mut mend.extents
    }

    /// Whether any are on these blocks.
    pub(crate) fn overlap(&self, span: &Span) -> bool {
        self.all.iter().any(|work| work.span.overlaps(span))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Work> {
        self.all.iter()
    }

    /// Takes all away when the disk failed, with the answers to whoever waits.
    pub(crate) fn refuse(&mut self) -> impl Iterator<Item = Reply> {
        self.cost = 0;
        let failed = |mend: &Mend| Reply::Staged { token: mend.token, result: Err(StoreError::Failed) };
        self.all.drain(..).filter_map(move |work| work.mend().map(failed))
    }

    pub(crate) fn check(&self) {
        let cost: usize = self.all.iter().filter_map(Work::mend).map(|mend| mend.cost).sum();
        assert_eq!(cost, self.cost, "the accounts of mends");
    }
}
