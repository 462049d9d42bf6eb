//! What maintenance asks of the brick's own disks, and what they answer: each question is kept with whom it is for, and
//! paired with its answer here. An answer to what nobody waits for any more is dropped; one of another kind than its
//! question cannot be.

use super::job::{Merge, SpanId, Stretch};
use super::versions::Listed;
use base::{GroupId, ObjectVersion, Stamp, ViewNumber, VolumeId};
use objects::object::{Inspection, Rebalance};
use std::collections::BTreeMap;
use volume::netraid::participant::jobs::Finding;
use wire::disk::{Blocks, StoreError};
use wire::{Completion, GroupView, Span};

/// Names a question to the brick's own disks. The answer carries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DiskQuestion(pub(crate) u64);

/// What maintenance asks its brick to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// The stamps of own blocks, `width` a block; with `verify` the disk is checked, too. Answered by [`Finding::Blocks`].
    Examine { question: DiskQuestion, group: GroupId, span: Span, width: u8, verify: bool },
    /// Marks a block as lost that nobody can make out, under the stamps that it should have; `view` is the one under which
    /// this is known. Answered by [`Finding::Lost`].
    Lose {
        question: DiskQuestion,
        group: GroupId,
        view: ViewNumber,
        span: Span,
        width: u8,
        stamps: Vec<Stamp>,
    },
    /// Completions at other members, for every disk; each answers with [`Finding::Remembered`].
    Remember { question: DiskQuestion, completions: Vec<Completion> },
    /// The stretches on one disk behind `after`, answered by [`Finding::Stretches`].
    Stretches { question: DiskQuestion, disk: usize, after: Option<Stretch> },
    /// Versions of objects on one disk behind `after`, answered by [`Finding::Stretches`].
    Versions { question: DiskQuestion, disk: usize, after: Stretch },
    /// The stamps of blocks on one disk, answered by [`Finding::Blocks`].
    Survey { question: DiskQuestion, disk: usize, span: Span },
    /// Gives the blocks of one fragment on one disk back.
    Erase { disk: usize, span: Span },
    /// Asks the index which of these versions are gone. [`super::Maintenance::on_gone`] follows.
    AskGone { operation: u64, versions: Vec<ObjectVersion> },
    /// Makes again what bricks have lost of a version. [`super::Maintenance::on_restored`] follows.
    Restore { tag: u64, version: ObjectVersion, inspection: Inspection },
    /// Looks after the brick's own share of a version. [`super::Maintenance::on_rebalanced`] follows.
    Rebalance { tag: u64, wanted: Rebalance },
    /// Whoever restores or moves may read as much as it said.
    ReadMore { tag: u64 },
    /// Which bricks are lost? [`super::Maintenance::on_bricks`] follows when that is known.
    LookAtBricks,
    /// Gives all that is here of a version back, on every disk.
    DropVersion(ObjectVersion),
    /// Gives a stretch of a branch back, on every disk.
    Discard { branch: VolumeId, stretch: u64 },
    /// Copies blocks of the ancestor `from` up that the branch of `span` lacks, answered by [`Finding::CopiedUp`].
    CopyUp { question: DiskQuestion, group: GroupId, span: Span, width: u8, from: VolumeId },
    /// Gives a stretch of a merged branch back once no read that began before can come to it; its disk answers with
    /// [`Finding::Remembered`].
    DiscardMerged { question: DiskQuestion, branch: VolumeId, stretch: u64 },
    /// Every disk says with [`Finding::Remembered`] when all that was given back is gone for good.
    Settle { question: DiskQuestion },
    /// Forgets a group of which this brick is no member any more, durably: [`super::Maintenance::on_dropped`] follows.
    Drop(GroupView),
    /// Notes the number of the last scrub that was asked for and is done.
    NoteScrub(u64),
    /// Tells the directory soon.
    Report,
}

/// Who goes through the versions of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Walker {
    Garbage,
    /// For what is lost.
    Lost,
    Scrub,
    /// For what is to be moved, or given back.
    Shares,
}

/// For whom a question is, and how many disks have still to answer.
#[derive(Debug)]
enum Asked {
    Examine(SpanId),
    Lose(SpanId),
    Remember { group: GroupId, disks: usize },
    Stretches,
    Versions(Walker),
    Survey(Walker),
    Settle { disks: usize },
    CopyUp(Merge),
    DiscardMerged(Merge),
}

/// An answer, for whoever asked.
pub(super) enum Found {
    Examined(SpanId, Result<Blocks, StoreError>),
    /// Whether the block is marked as lost.
    Lost(SpanId, Span, bool),
    /// Whether the completions are durable on all disks.
    Remembered(GroupId, bool),
    Stretches(Result<Vec<Stretch>, StoreError>),
    Versions(Walker, Listed),
    /// Whether all that was given back is gone for good on all disks.
    Settled(bool),
    /// Which blocks, from 0, could not be read.
    CopiedUp(Merge, Span, Result<Vec<u32>, StoreError>),
    Discarded(Merge),
}

/// Questions that are outstanding, and what goes out.
#[derive(Default)]
pub(super) struct Disks {
    count: usize,
    asked: BTreeMap<DiskQuestion, Asked>,
    serial: u64,
    effects: Vec<Effect>,
}

impl Disks {
    pub(super) fn new(count: usize) -> Disks {
        Disks { count, ..Disks::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn examine(&mut self, id: SpanId, group: GroupId, span: Span, width: u8, verify: bool) {
        let question = self.ask(Asked::Examine(id));
        self.effects.push(Effect::Examine { question, group, span, width, verify });
    }

    pub(super) fn lose(&mut self, id: SpanId, view: &GroupView, span: Span, stamps: Vec<Stamp>) {
        let question = self.ask(Asked::Lose(id));
        let (group, view, width) = (view.group, view.number, stamps.len() as u8);
        self.effects.push(Effect::Lose { question, group, view, span, width, stamps });
    }

    pub(super) fn remember(&mut self, group: GroupId, completions: Vec<Completion>) {
        let question = self.ask(Asked::Remember { group, disks: self.count });
        self.effects.push(Effect::Remember { question, completions });
    }

    pub(super) fn list(&mut self, disk: usize, after: Option<Stretch>) {
        let question = self.ask(Asked::Stretches);
        self.effects.push(Effect::Stretches { question, disk, after });
    }

    pub(super) fn list_versions(&mut self, of: Walker, disk: usize, after: Stretch) {
        let question = self.ask(Asked::Versions(of));
        self.effects.push(Effect::Versions { question, disk, after });
    }

    pub(super) fn survey(&mut self, of: Walker, disk: usize, span: Span) {
        let question = self.ask(Asked::Survey(of));
        self.effects.push(Effect::Survey { question, disk, span });
    }

    pub(super) fn settle(&mut self) {
        let question = self.ask(Asked::Settle { disks: self.count });
        self.effects.push(Effect::Settle { question });
    }

    pub(super) fn copy_up(&mut self, merge: Merge, span: Span, width: u8) {
        let question = self.ask(Asked::CopyUp(merge));
        let Merge { group, branch: from } = merge;
        self.effects.push(Effect::CopyUp { question, group, span, width, from });
    }

    pub(super) fn discard_merged(&mut self, merge: Merge, stretch: u64) {
        let question = self.ask(Asked::DiscardMerged(merge));
        self.effects.push(Effect::DiscardMerged { question, branch: merge.branch, stretch });
    }

    /// What needs no answer.
    pub(super) fn tell(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.effects)
    }

    /// What a disk answered, for whoever asked. Of a question to every disk the last answer counts, or the first that says
    /// that something is not durable.
    pub(super) fn take(&mut self, question: DiskQuestion, own: Finding) -> Option<Found> {
        let asked = self.asked.get_mut(&question)?;
        if let (Asked::Remember { disks, .. } | Asked::Settle { disks }, Finding::Remembered(true)) =
            (asked, &own)
            && *disks > 1
        {
            *disks -= 1;
            return None;
        }
        self.asked.remove(&question).map(|asked| pair(asked, own))
    }

    /// What was asked for a group counts for nothing under another view.
    pub(super) fn abandon(&mut self, group: GroupId) {
        self.asked.retain(|_, asked| match asked {
            Asked::Remember { group: of, .. } => *of != group,
            Asked::CopyUp(merge) | Asked::DiscardMerged(merge) => merge.group != group,
            Asked::Examine(_)
            | Asked::Lose(_)
            | Asked::Stretches
            | Asked::Versions(_)
            | Asked::Survey(_)
            | Asked::Settle { .. } => true,
        });
    }

    fn ask(&mut self, asked: Asked) -> DiskQuestion {
        self.serial += 1;
        self.asked.insert(DiskQuestion(self.serial), asked);
        DiskQuestion(self.serial)
    }
}

fn pair(asked: Asked, own: Finding) -> Found {
    match (asked, own) {
        (Asked::Examine(id), Finding::Blocks(result)) => Found::Examined(id, result),
        (Asked::Lose(id), Finding::Lost(span, marked)) => Found::Lost(id, span, marked),
        (Asked::Remember { group, .. }, Finding::Remembered(durable)) => Found::Remembered(group, durable),
        (Asked::Stretches, Finding::Stretches(result)) => Found::Stretches(result),
        (Asked::Versions(of), Finding::Stretches(result)) => Found::Versions(of, Listed::Page(result)),
        (Asked::Survey(of), Finding::Blocks(result)) => Found::Versions(of, Listed::Survey(result)),
        (Asked::Settle { .. }, Finding::Remembered(durable)) => Found::Settled(durable),
        (Asked::CopyUp(merge), Finding::CopiedUp(span, result)) => Found::CopiedUp(merge, span, result),
        (Asked::DiscardMerged(merge), Finding::Remembered(_)) => Found::Discarded(merge),
        (asked, own) => panic!("a disk was asked for {asked:?} and answered {own:?}"),
    }
}
