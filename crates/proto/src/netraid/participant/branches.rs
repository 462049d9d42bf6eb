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

use super::own::Own;
use super::{Context, Lookup, Participant};
use crate::netraid::pending::{State, WriteKey};
use base::{BLOCK, GroupId, VolumeId};
use std::collections::BTreeMap;
use wire::Span;
use wire::disk::{Blocks, Command, Contested, StoreError, Token};

/// A read on its way down the branches.
#[derive(Debug)]
pub(super) struct Descent {
    group: GroupId,
    span: Span,
    /// Which branch was asked last.
    branch: VolumeId,
    width: u8,
    wanted: Wanted,
    found: Option<Found>,
}

/// What is looked up.
pub(super) struct Looked {
    pub(super) group: GroupId,
    pub(super) span: Span,
    pub(super) width: u8,
    pub(super) content: bool,
}

/// What is asked of each branch on the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Stamps,
    Content,
    /// Stamps, of what is checked on the disk.
    Check,
}

/// Blocks, and which of them, from 0, are an ancestor's, and whose.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) blocks: Blocks,
    pub(super) inherited: Vec<(u32, VolumeId)>,
}

/// Blocks that are being copied up out of a branch that goes.
#[derive(Debug)]
pub(super) struct MergeUnderWay {
    job: u64,
    span: Span,
    left: usize,
    /// The blocks that could not be read.
    result: Result<Vec<u32>, StoreError>,
}

/// A stretch that goes once the reads before `mark` have ended.
#[derive(Debug)]
pub(super) struct LateDiscard {
    mark: Token,
    job: u64,
    volume: VolumeId,
    stretch: u64,
}

/// Blocks that are being copied up, and who looks again afterwards.
#[derive(Debug, Default)]
pub(super) struct CopyUps {
    /// How many runs of blocks are not in place yet, and what went wrong.
    under_way: BTreeMap<WriteKey, (usize, Result<(), StoreError>)>,
    behind: Vec<WriteKey>,
    /// How many were made so far.
    pub(super) made: u64,
}

impl Participant {
    /// Asks the store for blocks, and for what they inherit.
    pub(super) fn look(
        &mut self,
        cx: &mut Context<'_>,
        group: GroupId,
        span: Span,
        width: u8,
        content: bool,
        lookup: Lookup,
    ) -> Token {
        self.look_contested(cx, Looked { group, span, width, content }, None, lookup)
    }

    /// The same, where other bricks may claim it before this disk comes to it.
    pub(super) fn look_contested(
        &mut self,
        cx: &mut Context<'_>,
        Looked { group, span, width, content }: Looked,
        contested: Option<Contested>,
        lookup: Lookup,
    ) -> Token {
        let token = self.token();
        let command = Command::Read { token, span, width, content, contested };
        let wanted = if content { Wanted::Content } else { Wanted::Stamps };
        self.descend_from(cx, token, group, span, width, wanted);
        self.ask(cx, token, lookup, command);
        token
    }

    /// The answer to `token` is completed by what the branch at `span` inherits.
    pub(super) fn descend_from(
        &mut self,
        cx: &Context<'_>,
        token: Token,
        group: GroupId,
        span: Span,
        width: u8,
        wanted: Wanted,
    ) {
        if cx.groups.parent_of(group, span.volume).is_some() {
            let descent = Descent { group, span, branch: span.volume, width, wanted, found: None };
            self.descents.insert(token, descent);
        }
    }

    /// The store's answer, once nothing more is inherited.
    pub(super) fn descend(
        &mut self,
        cx: &mut Context<'_>,
        token: Token,
        result: Result<Blocks, StoreError>,
    ) -> Option<Result<Found, StoreError>> {
        let Some(mut descent) = self.descents.remove(&token) else {
            return Some(result.map(|blocks| Found { blocks, inherited: Vec::new() }));
        };
        let blocks = match result {
            Ok(blocks) => blocks,
            Err(error) => return Some(Err(error)),
        };
        let width = usize::from(descent.width);
        let found = match descent.found.take() {
            None => Found { blocks, inherited: Vec::new() },
            Some(above) => above.over(blocks, descent.branch, width, descent.span.count),
        };
        let parent = cx.groups.parent_of(descent.group, descent.branch);
        let Some(parent) = parent.filter(|_| found.has_absent(width, descent.span.count)) else {
            return Some(Ok(found));
        };
        let span = Span { volume: parent, ..descent.span };
        let (width, content) = (descent.width, descent.wanted == Wanted::Content);
        // An ancestor is checked as a branch of its own, but for one that is being merged: its heir is looked at instead.
        let checks = descent.wanted == Wanted::Check && cx.groups.is_merging(descent.group, parent);
        self.descents.insert(token, Descent { branch: parent, found: Some(found), ..descent });
        self.store(
            cx,
            match checks {
                true => Command::Verify { token, span, width },
                false => Command::Read { token, span, width, content, contested: None },
            },
        );
        None
    }

    /// A delta met inherited blocks: they are copied up, then it is checked again.
    pub(super) fn copy_up(&mut self, cx: &mut Context<'_>, key: WriteKey, made_before: u64, found: &Found) {
        let pending = self.pending.get(&key).expect("checked by the caller");
        let (span, width) = (pending.prepare.write.span, pending.prepare.change.width());
        let overlaps = |other: &WriteKey| {
            self.pending.get(other).is_some_and(|other| other.prepare.write.span.overlaps(&span))
        };
        if self.copy_ups.under_way.keys().any(overlaps) {
            return self.copy_ups.behind.push(key);
        }
        if self.copy_ups.made != made_before {
            return self.look_again(cx, key);
        }
        cx.counters.count("inherited block copied up");
        // Only what is inherited: blocks that are here may be changed meanwhile by deltas of other units.
        let blocks = found.inherited.iter().map(|(block, _)| *block).collect();
        let mends = self.mends(span, width, found, blocks);
        self.copy_ups.under_way.insert(key, (mends.len(), Ok(())));
        for (token, command) in mends {
            self.ask(cx, token, Lookup::CopyUp(key), command);
        }
    }

    /// What puts blocks that were found further down in place.
    fn mends(&mut self, span: Span, width: u8, found: &Found, mut blocks: Vec<u32>) -> Vec<(Token, Command)> {
        blocks.sort_unstable();
        let runs = blocks.chunk_by(|a, b| a + 1 == *b);
        runs.map(|run| {
            let (first, count) = (run[0] as usize, run.len());
            let entries = first * usize::from(width)..(first + count) * usize::from(width);
            let stamps = found.blocks.stamps[entries].to_vec();
            let payload = found.blocks.content.slice(first * BLOCK, count * BLOCK);
            let span = Span { lba: span.lba + first as u64, count: count as u32, ..span };
            let token = self.token();
            (token, Command::Mend { token, span, width, stamps, payload })
        })
        .collect()
    }

    /// Copies the blocks of `from`, an ancestor, up that the branch of `span` lacks.
    pub fn merge(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        group: GroupId,
        span: Span,
        width: u8,
        from: VolumeId,
    ) {
        if self.pending.overlapping(span).next().is_some() {
            return self.own.push((job, Own::CopiedUp(span, Err(StoreError::Busy))));
        }
        let key = self.hold(cx, group, span);
        self.look(cx, group, span, width, true, Lookup::Merge { job, key, span, width, from });
    }

    pub(super) fn on_merge_found(
        &mut self,
        cx: &mut Context<'_>,
        (job, key, span): (u64, WriteKey, Span),
        (width, from): (u8, VolumeId),
        result: Result<Found, StoreError>,
    ) {
        let found = match result {
            Ok(found) => found,
            Err(error) => return self.end_merge(cx, (job, key, span), Err(error)),
        };
        let of_ancestor =
            found.inherited.iter().filter(|(_, branch)| *branch == from).map(|(block, _)| *block);
        let (unreadable, blocks): (Vec<u32>, Vec<u32>) =
            of_ancestor.partition(|block| found.blocks.unreadable.contains(block));
        let mends = self.mends(span, width, &found, blocks);
        if mends.is_empty() {
            return self.end_merge(cx, (job, key, span), Ok(unreadable));
        }
        let merge = MergeUnderWay { job, span, left: mends.len(), result: Ok(unreadable) };
        self.merges.insert(key, merge);
        for (token, command) in mends {
            self.ask(cx, token, Lookup::Merged { key }, command);
        }
    }

    pub(super) fn on_merged(&mut self, cx: &mut Context<'_>, key: WriteKey, result: Result<(), StoreError>) {
        let Some(merge) = self.merges.get_mut(&key) else { return };
        merge.left -= 1;
        if let Err(error) = result {
            merge.result = Err(error);
        }
        if merge.left == 0 {
            let merge = self.merges.remove(&key).expect("just seen");
            self.end_merge(cx, (merge.job, key, merge.span), merge.result);
        }
    }

    fn end_merge(
        &mut self,
        cx: &mut Context<'_>,
        (job, key, span): (u64, WriteKey, Span),
        result: Result<Vec<u32>, StoreError>,
    ) {
        self.remove(cx, key);
        self.own.push((job, Own::CopiedUp(span, result)));
    }

    /// Gives a stretch of a merged branch back once no read that began before now can come to it.
    pub fn discard_merged(&mut self, cx: &mut Context<'_>, job: u64, volume: VolumeId, stretch: u64) {
        let discard = LateDiscard { mark: self.serial, job, volume, stretch };
        self.late_discards.push(discard);
        self.discard_late(cx);
    }

    pub(super) fn discard_late(&mut self, cx: &mut Context<'_>) {
        let first = self.descents.keys().next().copied().unwrap_or(Token::MAX);
        let (due, wait) =
            core::mem::take(&mut self.late_discards).into_iter().partition(|discard| discard.mark < first);
        self.late_discards = wait;
        for LateDiscard { job, volume, stretch, .. } in Vec::<LateDiscard>::into_iter(due) {
            self.store(cx, Command::Discard { volume, stretch: Some(stretch) });
            self.own.push((job, Own::Remembered(true)));
        }
    }

    pub(super) fn on_copied_up(
        &mut self,
        cx: &mut Context<'_>,
        key: WriteKey,
        result: Result<(), StoreError>,
    ) {
        let Some((left, so_far)) = self.copy_ups.under_way.get_mut(&key) else { return };
        *left -= 1;
        *so_far = so_far.and(result);
        if *left > 0 {
            return;
        }
        let result = *so_far;
        self.copy_ups.under_way.remove(&key);
        self.copy_ups.made += 1;
        let behind = core::mem::take(&mut self.copy_ups.behind);
        match result {
            Ok(()) => self.look_again(cx, key),
            Err(error) => self.refuse_checked(cx, key, super::refusal(error)),
        }
        behind.into_iter().for_each(|key| self.look_again(cx, key));
    }

    fn look_again(&mut self, cx: &mut Context<'_>, key: WriteKey) {
        let Some(pending) = self.pending.get(&key).filter(|pending| pending.state == State::Checking) else {
            return;
        };
        let prepare = &pending.prepare;
        let (group, span, width) = (prepare.write.group, prepare.write.span, prepare.change.width());
        let made = self.copy_ups.made;
        let token = self.look(cx, group, span, width, true, Lookup::Check(key, made));
        self.pending.get_mut(&key).expect("still there").token = token;
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
