//! Two-phase commit of writes (`2pcw`), a member's rules: what it checks before it stages a write beside the old content,
//! what a delta says of that content, and what the committed stamps tell of the fate of a write that is not staged.

use crate::netraid::pending::Prepare;
use base::{Payload, Stamp};
use wire::disk::{Blocks, StoreError};
use wire::{Change, Fate, PrepareOutcome, Scope, WriteId};

/// Whether a stranger's request makes sense in itself.
pub fn is_well_formed(prepare: &Prepare) -> bool {
    let (span, change) = (prepare.write.span, &prepare.change);
    let content = match change {
        Change::Zero => prepare.payload.is_empty(),
        _ => prepare.payload.len() == span.bytes(),
    };
    let shape = match change {
        Change::Xor { index, width, previous } => index < width && previous.len() == span.count as usize,
        Change::Replace { index, width, previous } => {
            index < width && previous.len() == span.count as usize * usize::from(*width)
        }
        _ => true,
    };
    span.is_valid()
        && content
        && shape
        && (1..=32).contains(&change.width())
        && prepare.write.stamp.0 > u64::from(u32::MAX)
        && (prepare.base.is_none() || span.count == 1)
}

/// Whether the change fits what is there.
///
/// Who catches up and meets a change that builds on something later than what is here lacks that: it is unreadable here
/// until it is mended.
pub fn check(prepare: &Prepare, blocks: &Blocks, catches_up: bool) -> Result<(), PrepareOutcome> {
    let stamp = prepare.write.stamp;
    // What keeps the stamps of other units may have to be copied up with its content, whether it adds to that or not.
    let needs_content = prepare.want_delta || prepare.base.is_some() || prepare.change.keeps_other_stamps();
    if needs_content && !blocks.unreadable.is_empty() {
        return Err(PrepareOutcome::Unreadable);
    }
    if let Change::Xor { index, width, previous } = &prepare.change {
        let (index, width) = (usize::from(*index), usize::from(*width));
        let fits =
            previous.iter().enumerate().all(|(block, old)| blocks.stamps[block * width + index] == *old);
        let lacks = previous
            .iter()
            .enumerate()
            .any(|(block, old)| blocks.stamps[block * width + index] < *old && *old < stamp);
        return match fits && previous.iter().all(|old| *old < stamp) {
            true => Ok(()),
            false if catches_up && lacks => Err(PrepareOutcome::Unreadable),
            false => Err(PrepareOutcome::Changed),
        };
    }
    if let Change::Replace { index, width, previous } = &prepare.change {
        // It was computed from what these stamps name, in all units of the row; only its own unit's must be earlier.
        let own = || blocks.stamps.iter().skip(usize::from(*index)).step_by(usize::from(*width)).copied();
        return match own().filter(|newest| *newest >= stamp).max() {
            Some(newest) => Err(PrepareOutcome::Late { newest }),
            None if blocks.stamps != *previous => Err(PrepareOutcome::Changed),
            None => Ok(()),
        };
    }
    let newest = blocks.stamps.iter().copied().max().unwrap_or_default();
    if newest >= stamp {
        return Err(PrepareOutcome::Late { newest });
    }
    match prepare.base {
        Some(base) if catches_up && blocks.stamps.first() < Some(&base) => Err(PrepareOutcome::Unreadable),
        Some(base) if blocks.stamps.first() != Some(&base) => Err(PrepareOutcome::Changed),
        _ => Ok(()),
    }
}

/// Old content xor new.
pub fn delta_of(prepare: &Prepare, blocks: &Blocks) -> Payload {
    match prepare.change {
        Change::Zero => blocks.content.clone(),
        _ => prepare.payload.xor(&blocks.content),
    }
}

/// What the gateway is told of a disk's error.
pub fn refusal(error: StoreError) -> PrepareOutcome {
    match error {
        StoreError::NoSpace => PrepareOutcome::NoSpace,
        StoreError::NoRoomYet | StoreError::Busy | StoreError::Left => PrepareOutcome::Busy,
        StoreError::Failed => PrepareOutcome::Failed,
    }
}

/// What the committed stamps tell of a write that is not staged here. A member takes a write whole, and stamps only grow:
/// one block with its stamp proves that it took effect, one with an earlier stamp that it did not (`None`: it can still be
/// refused). Where all blocks are newer, later writes have wiped its traces, and this member has no say.
pub fn fate_by_stamps(write: &WriteId, width: u8, stamps: &[Stamp]) -> Option<Fate> {
    let is_touched = |entry: usize| match write.scope {
        Scope::Unit { index } if width > 1 => entry == usize::from(index),
        _ => true,
    };
    let touched =
        || stamps.iter().enumerate().filter(|(at, _)| is_touched(at % usize::from(width))).map(|(_, s)| *s);
    if touched().any(|stamp| stamp == write.stamp) {
        return Some(Fate::Committed);
    }
    touched().all(|stamp| stamp > write.stamp).then_some(Fate::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, VolumeId};
    use wire::Span;

    #[test]
    fn parity_is_replaced_only_where_all_that_is_there_can_be_read_and_is_what_it_was_computed_from() {
        let write = WriteId {
            group: GroupId(1),
            span: Span { volume: VolumeId(1), lba: 0, count: 1 },
            stamp: Stamp(9 << 32),
            scope: Scope::Unit { index: 0 },
            link: None,
        };
        let previous = vec![Stamp(3 << 32), Stamp(12 << 32)];
        let change = Change::Replace { index: 0, width: 2, previous: previous.clone() };
        let prepare = Prepare { change, ..Prepare::of(write) };
        let found = |stamps: [u64; 2], unreadable: &[u32]| {
            let stamps = stamps.map(|stamp| Stamp(stamp << 32)).to_vec();
            check(&prepare, &Blocks { stamps, unreadable: unreadable.to_vec(), ..Blocks::default() }, false)
        };
        assert_eq!(found([3, 12], &[]), Ok(()), "another unit's stamp may be later");
        assert_eq!(found([3, 12], &[0]), Err(PrepareOutcome::Unreadable), "it may have to be copied up");
        assert_eq!(found([3, 13], &[]), Err(PrepareOutcome::Changed));
        assert_eq!(found([10, 12], &[]), Err(PrepareOutcome::Late { newest: Stamp(10 << 32) }));
    }
}
