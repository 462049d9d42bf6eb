//! Which blocks hold data: what a branch does not hold its parent may.

use super::context::Context;
use super::disk::{Allocating, Disk};
use crate::netraid::pending::PendingTable;
use base::Payload;
use wire::disk::StoreError;
use wire::{Message, Span};

/// Which blocks hold data? Only who is sure to know of every acknowledged write, and has lost none, may call a block a hole.
pub(super) fn begin(cx: &mut Context<'_>, disk: &mut Disk, undecided: &PendingTable, asked: Allocating) {
    let may_lack = !cx.leased || cx.groups.is_bare(asked.group);
    if may_lack || undecided.in_doubt(asked.span).next().is_some() {
        let runs = Ok(vec![(asked.span.count, true)]);
        let operation = asked.operation;
        return cx.send(asked.from, Message::AllocationDone { operation, runs }, Payload::new());
    }
    disk.allocation(cx, asked);
}

/// A branch was asked: answers, or asks its parent.
pub(super) fn on_runs(
    cx: &mut Context<'_>,
    disk: &mut Disk,
    asked: Allocating,
    result: Result<Vec<(u32, bool)>, StoreError>,
) {
    let Allocating { from, operation, group, span, above } = asked;
    let parent = cx.groups.parent_of(group, span.volume);
    let runs = match result {
        Ok(runs) if above.is_some() || parent.is_some() => {
            let mut holds: Vec<bool> =
                runs.iter().flat_map(|&(count, holds)| core::iter::repeat_n(holds, count as usize)).collect();
            above.iter().flatten().zip(&mut holds).for_each(|(above, here)| *here |= above);
            if let Some(volume) = parent.filter(|_| holds.contains(&false)) {
                let (span, above) = (Span { volume, ..span }, Some(holds));
                return disk.allocation(cx, Allocating { from, operation, group, span, above });
            }
            Ok(holds.chunk_by(|a, b| a == b).map(|run| (run.len() as u32, run[0])).collect())
        }
        other => other.map_err(|_| None),
    };
    cx.send(from, Message::AllocationDone { operation, runs }, Payload::new());
}
