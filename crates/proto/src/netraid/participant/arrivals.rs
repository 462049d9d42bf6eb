//! What comes for a disk, and waits in its seat for its turn.

use super::answers;
use super::contests;
use super::context::{Context, ReadRequest, RepairAsker, RepairRequest};
use super::jobs::Jobs;
use super::repair;
use crate::netraid::pending::{Prepare, WriteKey};
use crate::seat::{self, Request};
use base::{GroupId, NodeId, Payload, ViewNumber, VolumeId};
use wire::{PrepareOutcome, ReadOutcome, RepairOutcome, Service, Span};

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
}

/// What names one: a write is the same however often it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ArrivalId {
    Asked(NodeId, u64),
    Write(WriteKey),
    /// A job of the brick's own.
    Job(u64),
}

impl Arrival {
    pub(super) fn group(&self) -> GroupId {
        match self {
            Arrival::Read(read) => read.group,
            Arrival::Prepare { prepare, .. } => prepare.write.group,
            Arrival::Repair(repair) => repair.group,
        }
    }

    /// The view under which it was asked.
    pub(super) fn view(&self) -> ViewNumber {
        match self {
            Arrival::Read(read) => read.view,
            Arrival::Prepare { prepare, .. } => prepare.view,
            Arrival::Repair(repair) => repair.view,
        }
    }

    pub(super) fn volume(&self) -> VolumeId {
        self.span().volume
    }

    fn span(&self) -> Span {
        match self {
            Arrival::Read(read) => read.span,
            Arrival::Prepare { prepare, .. } => prepare.write.span,
            Arrival::Repair(repair) => repair.span,
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
        }
    }

    fn asker(&self) -> Option<(NodeId, u64)> {
        match self {
            Arrival::Read(read) => Some((read.from, read.operation)),
            Arrival::Prepare { prepare, .. } => prepare.reply_to,
            Arrival::Repair(repair) => match repair.asker {
                RepairAsker::Node(from, operation) => Some((from, operation)),
                RepairAsker::Lost(_) => None,
            },
        }
    }

    fn service(&self) -> Service {
        match self {
            Arrival::Read(read) => read.service,
            Arrival::Prepare { prepare, .. } => prepare.service,
            Arrival::Repair(repair) => repair.service,
        }
    }

    fn cost(&self) -> u32 {
        seat::cost(self.span().count)
    }

    fn bytes(&self) -> usize {
        match self {
            Arrival::Read(_) => 0,
            Arrival::Prepare { prepare, .. } => prepare.payload.len(),
            Arrival::Repair(repair) => repair.content.len(),
        }
    }
}

/// There is no room for it to wait.
pub(super) fn refuse(cx: &mut Context<'_>, jobs: &mut Jobs, arrival: &Arrival) {
    match arrival {
        Arrival::Read(read) => contests::answer(cx, read, ReadOutcome::Busy, Payload::new()),
        Arrival::Prepare { prepare, .. } => answers::answer(cx, prepare, PrepareOutcome::Busy),
        Arrival::Repair(repair) => repair::tell(jobs, cx, &repair.told(), RepairOutcome::Refused),
    }
}
