//! What comes for a disk, and waits in its seat for its turn: what others ask for, and what the brick does of its own.

use super::answers;
use super::branches::Look;
use super::contests;
use super::context::{Context, FragmentRequest, ReadRequest, RepairAsker, RepairRequest};
use super::fragments;
use super::jobs::Jobs;
use super::repair;
use crate::netraid::pending::{Prepare, WriteKey};
use base::{GroupId, NodeId, Payload, StreamId, ViewNumber, VolumeId};
use reads::seat::{Request, Stay};
use wire::disk::StoreError;
use wire::{FragmentOutcome, PrepareOutcome, ReadOutcome, RepairOutcome, Service, Span};

/// A request that leads to an access of the disk.
#[derive(Debug)]
pub(super) enum Arrival {
    Read(ReadRequest),
    Prepare {
        prepare: Prepare,
        /// What its client never asks for again.
        floor: u64,
    },
    Repair(RepairRequest),
    Fragment(FragmentRequest),
    /// Maintenance looks at own blocks.
    Examine {
        job: u64,
        look: Look,
    },
    Merge(MergeJob),
    /// The store writes about so many journalled blocks to their final places.
    Destage {
        blocks: u32,
    },
}

/// Maintenance copies blocks of a branch that goes up into its heir.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeJob {
    pub(super) job: u64,
    pub(super) group: GroupId,
    /// The blocks, in the heir.
    pub(super) span: Span,
    pub(super) width: u8,
    /// The branch that goes.
    pub(super) from: VolumeId,
}

/// What names one: a write is the same however often it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ArrivalId {
    Asked(NodeId, u64),
    /// A read that other members were asked for as well: whoever serves it names it so.
    Contested(NodeId, u64),
    Write(WriteKey),
    /// A job of the brick's own.
    Job(u64),
    Destage,
}

impl Arrival {
    /// The view under which it was asked; none for what needs none.
    pub(super) fn view(&self) -> Option<(GroupId, ViewNumber)> {
        match self {
            Arrival::Read(read) => Some((read.group, read.view)),
            Arrival::Prepare { prepare, .. } => Some((prepare.write.group, prepare.view)),
            Arrival::Repair(repair) => Some((repair.group, repair.view)),
            Arrival::Fragment(_) | Arrival::Examine { .. } | Arrival::Merge(_) | Arrival::Destage { .. } => {
                None
            }
        }
    }

    /// The volume whose blocks it is about.
    pub(super) fn volume(&self) -> Option<VolumeId> {
        self.span().map(|span| span.volume)
    }

    fn stay(&self) -> Option<&Stay> {
        match self {
            Arrival::Read(read) => Some(&read.stay),
            Arrival::Prepare { prepare, .. } => Some(&prepare.stay),
            Arrival::Repair(repair) => Some(&repair.stay),
            Arrival::Fragment(fragment) => Some(&fragment.stay),
            Arrival::Examine { .. } | Arrival::Merge(_) | Arrival::Destage { .. } => None,
        }
    }

    /// What it met here so far; none for what the brick does of its own.
    pub(super) fn stay_mut(&mut self) -> Option<&mut Stay> {
        match self {
            Arrival::Read(read) => Some(&mut read.stay),
            Arrival::Prepare { prepare, .. } => Some(&mut prepare.stay),
            Arrival::Repair(repair) => Some(&mut repair.stay),
            Arrival::Fragment(fragment) => Some(&mut fragment.stay),
            Arrival::Examine { .. } | Arrival::Merge(_) | Arrival::Destage { .. } => None,
        }
    }

    fn span(&self) -> Option<Span> {
        match self {
            Arrival::Read(read) => Some(read.span),
            Arrival::Prepare { prepare, .. } => Some(prepare.write.span),
            Arrival::Repair(repair) => Some(repair.span),
            Arrival::Fragment(fragment) => Some(fragment.span()),
            Arrival::Examine { look, .. } => Some(look.span),
            Arrival::Merge(merge) => Some(merge.span),
            Arrival::Destage { .. } => None,
        }
    }
}

impl Request for Arrival {
    type Id = ArrivalId;

    fn id(&self) -> ArrivalId {
        match self {
            Arrival::Read(read) => ArrivalId::Asked(read.from, read.operation),
            Arrival::Prepare { prepare, .. } => ArrivalId::Write(prepare.key()),
            Arrival::Repair(repair) => match repair.asker {
                RepairAsker::Node(from, operation) => ArrivalId::Asked(from, operation),
                RepairAsker::Lost(job) => ArrivalId::Job(job),
            },
            Arrival::Fragment(fragment) => ArrivalId::Asked(fragment.from, fragment.operation),
            Arrival::Examine { job, .. } | Arrival::Merge(MergeJob { job, .. }) => ArrivalId::Job(*job),
            Arrival::Destage { .. } => ArrivalId::Destage,
        }
    }

    fn alias(&self) -> Option<ArrivalId> {
        let Arrival::Read(ReadRequest { from, contest: Some(contest), .. }) = self else { return None };
        Some(ArrivalId::Contested(*from, contest.number))
    }

    fn asker(&self) -> Option<(NodeId, u64)> {
        match self {
            Arrival::Read(read) => Some((read.from, read.operation)),
            Arrival::Prepare { prepare, .. } => prepare.reply_to,
            Arrival::Repair(repair) => match repair.asker {
                RepairAsker::Node(from, operation) => Some((from, operation)),
                RepairAsker::Lost(_) => None,
            },
            Arrival::Fragment(fragment) => Some((fragment.from, fragment.operation)),
            Arrival::Examine { .. } | Arrival::Merge(_) | Arrival::Destage { .. } => None,
        }
    }

    fn service(&self) -> Service {
        let own = |stream| Service { stream, delay: 0 };
        match self {
            Arrival::Read(read) => read.service,
            Arrival::Prepare { prepare, .. } => prepare.service,
            Arrival::Repair(repair) => repair.service,
            Arrival::Fragment(fragment) => fragment.service,
            Arrival::Examine { .. } | Arrival::Merge(_) => own(StreamId::MAINTENANCE),
            Arrival::Destage { .. } => own(StreamId::DESTAGE),
        }
    }

    fn blocks(&self) -> u32 {
        match self {
            Arrival::Destage { blocks } => *blocks,
            Arrival::Fragment(fragment) => fragment.moves(),
            other => other.span().map_or(0, |span| span.count),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Arrival::Prepare { prepare, .. } => prepare.payload.len(),
            Arrival::Repair(repair) => repair.content.len(),
            Arrival::Fragment(fragment) => fragment.wish.bytes(),
            Arrival::Read(_) | Arrival::Examine { .. } | Arrival::Merge(_) | Arrival::Destage { .. } => 0,
        }
    }

    fn repeats(&mut self, before: &Arrival) {
        if let (Arrival::Fragment(request), Arrival::Fragment(before)) = (&mut *self, before) {
            // It was not there.
            request.alone = before.alone;
        }
        if let (Some(stay), Some(before)) = (self.stay_mut(), before.stay()) {
            stay.repeats(before);
        }
    }
}

/// There is no room for it to wait, or its volume goes. False for what cannot be refused: it has its turn at once.
pub(super) fn refuse(cx: &mut Context<'_>, jobs: &mut Jobs, arrival: &Arrival) -> bool {
    match arrival {
        Arrival::Read(read) => contests::answer(cx, read, ReadOutcome::Busy, Payload::new()),
        Arrival::Prepare { prepare, .. } => answers::answer(cx, prepare, PrepareOutcome::Busy),
        Arrival::Repair(repair) => repair::tell(jobs, cx, &repair.told(), RepairOutcome::Refused),
        Arrival::Fragment(fragment) => fragments::refuse(cx, fragment, FragmentOutcome::Busy),
        Arrival::Examine { job, .. } => jobs.on_blocks(*job, Err(StoreError::Busy)),
        Arrival::Merge(MergeJob { job, span, .. }) => jobs.on_copied_up(*job, *span, Err(StoreError::Busy)),
        Arrival::Destage { .. } => return false,
    }
    true
}
