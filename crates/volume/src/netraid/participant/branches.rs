//! Branches: a block that a branch does not have is its parent's.
//!
//! The store knows nothing of this: to it each branch is an address space of its own. A read goes down the chain of the
//! view's lineage for the blocks whose stamps are all zero and not unreadable; a volume without a parent never comes
//! here. What a read finds further down cannot change meanwhile: only heads are written, and a branch that was merged
//! is given back only after the reads that had begun.
//!
//! A parity delta changes a block where it is, so an inherited one is *copied up* first, with its whole vector. Deltas of
//! different units may come for one block at once. One of them copies it up, those that met it meanwhile look again:
//! otherwise a late copy could go over the first delta.

use super::context::Context;
use base::{GroupId, VolumeId};
use std::collections::BTreeMap;
use wire::Span;
use wire::disk::{Blocks, Command, StoreError, Token};

/// What is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) group: GroupId,
    pub(super) span: Span,
    /// Stamps a block.
    pub(super) width: u8,
    pub(super) wanted: Wanted,
}

/// What is asked of each branch on the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Stamps,
    Content,
    /// Stamps, of what is checked on the disk.
    Check,
}

impl Wanted {
    /// Stamps, and `content` where that is wanted.
    pub(super) fn with(content: bool) -> Wanted {
        if content { Wanted::Content } else { Wanted::Stamps }
    }
}

/// Blocks, and which of them, from 0, are an ancestor's, and whose.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) blocks: Blocks,
    pub(super) inherited: Vec<(u32, VolumeId)>,
}

/// Where a read is after an answer of the store.
pub(super) enum Step {
    /// The next branch is asked for what is missing.
    Down(Command),
    /// Nothing more is inherited.
    End(Result<Found, StoreError>),
}

/// A read on its way down the branches.
#[derive(Debug)]
struct Descent {
    look: Look,
    /// Which branch was asked last.
    branch: VolumeId,
    found: Option<Found>,
}

/// A stretch that goes once the reads before `mark` have ended.
#[derive(Debug)]
struct LateDiscard {
    mark: Token,
    job: u64,
    volume: VolumeId,
    stretch: u64,
}

/// The reads on their way down, and what waits for their end.
#[derive(Debug, Default)]
pub(super) struct Descents {
    under_way: BTreeMap<Token, Descent>,
    late_discards: Vec<LateDiscard>,
}

impl Descents {
    /// The answer to `token` is completed by what the branch inherits.
    pub(super) fn begin(&mut self, cx: &Context<'_>, token: Token, look: Look) {
        if cx.groups.parent_of(look.group, look.span.volume).is_some() {
            self.under_way.insert(token, Descent { look, branch: look.span.volume, found: None });
        }
    }

    /// A branch was looked at.
    pub(super) fn on_blocks(
        &mut self,
        cx: &Context<'_>,
        token: Token,
        result: Result<Blocks, StoreError>,
    ) -> Step {
        let Some(mut descent) = self.under_way.remove(&token) else {
            return Step::End(result.map(|blocks| Found { blocks, inherited: Vec::new() }));
        };
        let blocks = match result {
            Ok(blocks) => blocks,
            Err(error) => return Step::End(Err(error)),
        };
        let Look { group, span, width, wanted } = descent.look;
        let found = match descent.found.take() {
            None => Found { blocks, inherited: Vec::new() },
            Some(above) => above.over(blocks, descent.branch, usize::from(width), span.count),
        };
        let parent = cx.groups.parent_of(group, descent.branch);
        let Some(parent) = parent.filter(|_| found.has_absent(usize::from(width), span.count)) else {
            return Step::End(Ok(found));
        };
        let span = Span { volume: parent, ..span };
        // An ancestor is checked as a branch of its own, but for one that is being merged: its heir is looked at instead.
        let checks = wanted == Wanted::Check && cx.groups.is_merging(group, parent);
        self.under_way.insert(token, Descent { branch: parent, found: Some(found), ..descent });
        Step::Down(match checks {
            true => Command::Verify { token, span, width },
            false => {
                Command::Read { token, span, width, content: wanted == Wanted::Content, contested: None }
            }
        })
    }

    /// A stretch goes once no read with a token up to `mark` is on its way down.
    pub(super) fn discard_late(&mut self, mark: Token, job: u64, volume: VolumeId, stretch: u64) {
        self.late_discards.push(LateDiscard { mark, job, volume, stretch });
    }

    /// Gives back what no read can come to any more, and names the jobs that asked for it.
    pub(super) fn discard_due(&mut self, cx: &mut Context<'_>) -> Vec<u64> {
        let first = self.under_way.keys().next().copied().unwrap_or(Token(u64::MAX));
        let (due, wait): (Vec<_>, Vec<_>) =
            core::mem::take(&mut self.late_discards).into_iter().partition(|discard| discard.mark < first);
        self.late_discards = wait;
        let discard = |LateDiscard { job, volume, stretch, .. }| {
            cx.store(Command::Discard { volume, stretch: Some(stretch) });
            job
        };
        due.into_iter().map(discard).collect()
    }
}

impl Found {
    fn is_absent(&self, block: u32, width: usize) -> bool {
        let at = block as usize * width;
        self.blocks.stamps[at..at + width].iter().all(|stamp| stamp.is_zero())
            && !self.blocks.unreadable.contains(&block)
    }

    fn has_absent(&self, width: usize, count: u32) -> bool {
        (0..count).any(|block| self.is_absent(block, width))
    }

    /// What is absent here is taken from `below`.
    fn over(self, below: Blocks, branch: VolumeId, width: usize, count: u32) -> Found {
        let mut merged = Found { inherited: self.inherited.clone(), ..Found::default() };
        for block in 0..count {
            let absent = self.is_absent(block, width);
            let from = if absent { &below } else { &self.blocks };
            let at = block as usize * width;
            merged.blocks.stamps.extend_from_slice(&from.stamps[at..at + width]);
            if from.unreadable.contains(&block) {
                merged.blocks.unreadable.push(block);
            }
            if !from.content.is_empty() {
                merged.blocks.content.append(&from.content.block(block as usize));
            }
            if absent && !merged.is_absent(block, width) {
                merged.inherited.push((block, branch));
            }
        }
        merged
    }
}
