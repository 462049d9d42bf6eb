//! The administrator: gives commands to the directory while everything else goes on, and remembers what came of them.
//!
//! What it remembers is here; `commands` is how it acts in the world; `streams` what it does with streams, and
//! `churn` with volumes that nobody opens, in runs of which it is asked.

mod churn;
mod commands;
mod streams;

use crate::units::{MS, SECOND};
use base::{BrickId, GroupId, VolumeId};
use churn::{Churn, Idle};
use model::Draw;
use std::collections::{BTreeMap, BTreeSet};
use streams::Streams;
use wire::AdminRequest;

/// Commands under way at a time.
const OPEN_MAX: usize = 3;
/// Snapshots, clones and rollbacks of a run.
const CUTS_MAX: u64 = 5;
/// A cut is made while requests come as fast as they can.
const BURST_NS: u64 = 120 * MS;
/// A command that got no clear answer is asked again after this.
const ASK_AGAIN_NS: u64 = 500 * MS;
/// So much later than the others, at most, one group hears of a cut.
const LATE_NS: u64 = 60 * MS;

/// What an administrator does in some run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    Evict,
    Readmit,
    Replace,
    Care,
    Scrub,
    Snapshot,
    Clone,
    Rollback,
    Delete,
}

/// Each duty, and in how many of a hundred seeds it is done.
const DUTIES: [(Duty, u32); 9] = [
    (Duty::Evict, 30),
    (Duty::Readmit, 80),
    (Duty::Replace, 25),
    (Duty::Care, 30),
    (Duty::Scrub, 50),
    (Duty::Snapshot, 60),
    (Duty::Clone, 60),
    (Duty::Rollback, 40),
    (Duty::Delete, 50),
];

/// A command under way.
#[derive(Clone, Debug)]
struct Command {
    request: AdminRequest,
    asked_ns: u64,
    /// The volume or snapshot that it is about.
    volume: usize,
    /// The volume that nobody opens that it is about instead.
    idle: Option<Idle>,
}

/// A cut of a volume that was made.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    /// The snapshot, by its number among the volumes.
    pub(crate) snapshot: usize,
    /// The volume that was made of it or was rolled back to it; the volume that it was taken of.
    pub(crate) volume: usize,
    pub(crate) asked_ns: u64,
    pub(crate) answered_ns: u64,
}

/// The administrator and what it did.
pub(crate) struct Administrator {
    draw: Draw,
    duties: Vec<Duty>,
    interval_ns: u64,
    open: BTreeMap<u64, Command>,
    snapshots: Vec<Cut>,
    /// Clones and rollbacks: what they write to every block.
    restored: Vec<Cut>,
    /// Volumes that were deleted, or may have been.
    deleted: BTreeSet<usize>,
    /// Snapshots that something was made of.
    used: BTreeSet<usize>,
    evicted: BTreeSet<BrickId>,
    cuts: u64,
    /// The newest lineage of each family that was seen coming.
    coming: BTreeMap<VolumeId, u64>,
    /// The group that hears late of the cut that is being made, and until when.
    late: Option<(GroupId, u64)>,
    streams: Option<Streams>,
    churn: Option<Churn>,
}

impl Administrator {
    /// `streams` are the draws of what it does with streams, and `churn` with volumes that nobody opens.
    pub(crate) fn new(mut draw: Draw, streams: Option<u64>, churn: Option<u64>) -> Administrator {
        let duties = DUTIES.iter().filter(|(_, percent)| draw.percent(*percent)).map(|(duty, _)| *duty);
        Administrator {
            duties: duties.collect(),
            interval_ns: draw.between(500 * MS, 6 * SECOND),
            draw,
            open: BTreeMap::new(),
            snapshots: Vec::new(),
            restored: Vec::new(),
            deleted: BTreeSet::new(),
            used: BTreeSet::new(),
            evicted: BTreeSet::new(),
            cuts: 0,
            coming: BTreeMap::new(),
            late: None,
            streams: streams.map(Streams::new),
            churn: churn.map(Churn::new),
        }
    }

    /// It makes idle volumes for as long as it is asked.
    pub(crate) fn goes_on_for_ever(&mut self) {
        self.churn.iter_mut().for_each(Churn::go_on_for_ever);
    }

    /// These volumes of the shape are not made.
    pub(crate) fn leave_out(&mut self, volumes: &BTreeSet<usize>) {
        self.deleted.extend(volumes);
    }

    /// The snapshots that were taken.
    pub(crate) fn snapshots(&self) -> &[Cut] {
        &self.snapshots
    }

    /// Whether all that was asked is answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Bricks that were told to leave for good.
    pub(crate) fn evicted(&self) -> Vec<BrickId> {
        self.evicted.iter().copied().collect()
    }

    /// Whether a brick was told to leave for good: it may do so much later.
    pub(crate) fn has_evicted(&self, brick: BrickId) -> bool {
        self.evicted.contains(&brick)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        (!choices.is_empty()).then(|| *self.draw.pick(choices))
    }
}
