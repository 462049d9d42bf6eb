//! Good content in place of blocks that cannot be read or are old here.
//!
//! A repair is *monotone*: it is taken where no entry of the blocks' stamps is later here than in what was fetched, and
//! some block is unreadable or has an earlier entry. Why this undoes nothing and lets nothing through:
//!
//! - What was fetched is decided: members answer only from blocks without a write in doubt, and parity fits the data
//!   whose stamps its vector names.
//! - A data block is always replaced whole, and a patch names the stamp that it was computed from: so the later version
//!   of a block contains the earlier one. Parity is the sum of the versions that its vector names: with no entry
//!   earlier, each of its terms is the version that is here or a later one. Where one entry is later here and another
//!   earlier (a write came while the rest was being fetched) it is refused, and fetched again.
//! - A write that is staged or under way here keeps the repair out, and writes that come while it is looked at and put in
//!   place wait behind a place-holder. So no delta is applied to another content than the one that it was checked against,
//!   and a write with a fate still to be told is never gone over.
//! - A write whose stamp is earlier than the repaired block's is refused from then on as late, like any other that comes
//!   after a newer one. The repaired stamps also answer for fates: a block with the stamp of a write says that it took
//!   effect, and it did, elsewhere.
//! - A member that joins may find a block that nobody can make out: it is marked as lost under the stamps that it should
//!   have. It takes the same way, so it never goes over what is later here, nor over what is readable and as new.
//! - The stamps of a block that is lost come as zeros, and anything may replace them. What was there was decided, and each
//!   member that was asked after the loss was found had it staged or applied, so it is in what was fetched.

use super::branches::{Found, Look, Wanted};
use super::context::{Context, RepairAsker, RepairRequest, RepairTold};
use super::disk::{Looking, Staging};
use super::jobs::Jobs;
use super::writes::{Around, Writes};
use crate::netraid::pending::WriteKey;
use base::{Payload, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use wire::disk::{Blocks, Command, StoreError};
use wire::{Message, RepairOutcome, Span};

/// Puts good content in place of unreadable or old blocks, unless something newer is there or under way.
pub(super) fn begin(writes: &mut Writes, jobs: &mut Jobs, at: &mut Around<'_, '_>, request: RepairRequest) {
    let takes = at.cx.groups.takes(request.group, request.view).is_ok();
    let bytes = if let RepairAsker::Lost(_) = request.asker { 0 } else { request.span.bytes() };
    let fits = request.span.is_valid()
        && (1..=32).contains(&request.width)
        && request.content.len() == bytes
        && request.stamps.len() == request.span.count as usize * usize::from(request.width);
    let is_far_ahead = request.stamps.iter().any(|stamp| at.cx.is_far_ahead(*stamp));
    if !takes || !fits || is_far_ahead || writes.undecided().overlapping(request.span).next().is_some() {
        return tell(jobs, at.cx, &request.told(), RepairOutcome::Refused);
    }
    let RepairRequest { group, span, width, .. } = request;
    let key = writes.hold(at.disk, group, span);
    let look = Look { group, span, width, wanted: Wanted::Content };
    at.disk.look(at.cx, look, Looking::Repair { key, request: Box::new(request) });
}

/// What is here was looked up.
pub(super) fn on_checked(
    writes: &mut Writes,
    jobs: &mut Jobs,
    at: &mut Around<'_, '_>,
    (key, mut request): (WriteKey, RepairRequest),
    (took, result): (Duration, Result<Found, StoreError>),
) {
    request.stay.at_disk(took);
    let here = request.span.volume;
    let (fit, owner) = match result {
        Ok(found) => match fit(&request, &found.blocks) {
            Fit::Same if must_own(at.cx, &request, &found) => (Fit::Inherited, here),
            fit => (fit, owner(at.cx, &request, &found)),
        },
        Err(_) => (Fit::Later, here),
    };
    let replaces = at.cx.groups.rules().repair_replaces(fit == Fit::Later);
    // A later view may have begun while the disk looked, and the group have been left.
    let takes = at.cx.groups.takes(request.group, request.view).is_ok();
    if !takes || !replaces || fit == Fit::Same {
        writes.end_hold(at, key);
        let is_there = takes && fit == Fit::Same;
        let outcome = if is_there { RepairOutcome::Taken } else { RepairOutcome::Refused };
        return tell(jobs, at.cx, &request.told(), outcome);
    }
    let name = match fit {
        Fit::Lost => Counter::UnreadableBlocksRepaired,
        Fit::Inherited => Counter::InheritedBlockCopiedUp,
        _ => Counter::OldBlocksCaughtUp,
    };
    if matches!(request.asker, RepairAsker::Node(..)) {
        at.cx.counters.count(name);
    }
    let told = request.told();
    let RepairRequest { span, width, stamps, content: payload, .. } = request;
    let owned = Span { volume: owner, ..span };
    at.disk.stage(at.cx, Staging::Mend { key, told }, |token| Command::Mend {
        token,
        span: owned,
        width,
        stamps,
        payload,
    });
}

/// The content is in place, or not.
pub(super) fn on_mended(
    writes: &mut Writes,
    jobs: &mut Jobs,
    at: &mut Around<'_, '_>,
    (key, mut told): (WriteKey, RepairTold),
    (took, result): (Duration, Result<(), StoreError>),
) {
    writes.end_hold(at, key);
    told.stay.at_disk(took);
    let outcome = match result {
        Ok(()) => RepairOutcome::Taken,
        Err(StoreError::NoSpace) => RepairOutcome::NoSpace,
        Err(_) => RepairOutcome::Refused,
    };
    tell(jobs, at.cx, &told, outcome);
}

pub(super) fn tell(jobs: &mut Jobs, cx: &mut Context<'_>, told: &RepairTold, outcome: RepairOutcome) {
    match told.asker {
        RepairAsker::Node(to, operation) => {
            let message = Message::Repaired { operation, outcome, wait: told.stay.wait(cx.now) };
            cx.answer(to, (told.service, told.stay), message, Payload::new());
        }
        RepairAsker::Lost(job) => jobs.on_lost(job, told.span, outcome == RepairOutcome::Taken),
    }
}

/// The branch in which a repair puts the blocks. One that is the same version as an ancestor's is mended there: a disk that
/// is full has no room for a second copy, and all branches that inherit the block are mended by it. An ancestor that is
/// being merged takes no block that it lacks, as it may have been found empty. What it has is mended there, too, as a disk
/// that is full may never get to give it back; and it is given back only after each repair that found a block there was
/// asked of the disk, which keeps the order.
fn owner(cx: &Context<'_>, request: &RepairRequest, found: &Found) -> VolumeId {
    let here = request.span.volume;
    let Some(&(_, branch)) = found.inherited.first() else { return here };
    let width = usize::from(request.width);
    let takes_more = !cx.groups.is_merging(request.group, branch);
    // What no branch has is mended nowhere.
    let is_nobodys = |block: u32| {
        let stamps = &found.blocks.stamps[block as usize * width..][..width];
        stamps.iter().all(|stamp| stamp.is_zero()) && !found.blocks.unreadable.contains(&block)
    };
    let is_its = found.blocks.stamps == request.stamps
        && (0..request.span.count)
            .all(|block| found.inherited.contains(&(block, branch)) || takes_more && is_nobodys(block));
    if is_its { branch } else { here }
}

/// A member that joins takes no change of a parity block that it only inherits (see [`super::writes`]), and is repaired for that: so it must have the block in its own branch
/// then, as a stand-in joins for as long as it may. Else the write would wait for ever.
fn must_own(cx: &Context<'_>, request: &RepairRequest, found: &Found) -> bool {
    let joins = cx.groups.active(request.group).is_some_and(|view| view.is_joining(cx.groups.me()));
    joins && matches!(request.asker, RepairAsker::Node(..)) && !found.inherited.is_empty()
}

/// How what was fetched stands to what is here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Something is later here.
    Later,
    /// All is here, and readable.
    Same,
    /// It is, but of a branch before this one, where that does not do.
    Inherited,
    /// Something is earlier here.
    Earlier,
    /// Something cannot be read here.
    Lost,
}

fn fit(request: &RepairRequest, here: &Blocks) -> Fit {
    let mut pairs = here.stamps.iter().zip(&request.stamps);
    if here.stamps.len() != request.stamps.len() || pairs.clone().any(|(here, good)| here > good) {
        return Fit::Later;
    }
    match () {
        () if !here.unreadable.is_empty() => Fit::Lost,
        () if pairs.any(|(here, good)| here < good) => Fit::Earlier,
        () => Fit::Same,
    }
}
