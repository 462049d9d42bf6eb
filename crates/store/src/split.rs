//! How a write gets onto the disk: whole slots directly, the rest through the journal.

use crate::record::{Body, Extent};
use crate::superblock::{SLOT_BLOCKS, SLOT_BYTES};
use base::BLOCK;
use wire::Span;

/// Why room is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// A write that can go to fresh slots.
    Stage,
    /// A write that changes what is there.
    Delta,
    /// A repair, which may take the last of it.
    Mend,
}

impl Cause {
    /// Of a staged write.
    pub(crate) fn stage(direct: bool) -> Cause {
        if direct { Cause::Stage } else { Cause::Delta }
    }
}

/// How a stretch of a write gets onto the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Inline,
    Direct,
    Zero,
}

/// A stretch of a write, in blocks from its first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Portion {
    pub(crate) offset: u32,
    pub(crate) count: u32,
    pub(crate) way: Way,
}

impl Portion {
    /// As recovery finds it.
    pub(crate) fn of(extent: &Extent) -> Portion {
        let way = match extent.body {
            Body::Slot(_) => Way::Direct,
            Body::Inline(_) => Way::Inline,
            Body::Zero | Body::Lost => Way::Zero,
        };
        Portion { offset: extent.offset, count: extent.count, way }
    }
}

/// Cuts a write: whole slots go to `free` ones directly, the rest through the journal.
pub(crate) fn split(span: Span, zero: bool, free: u32) -> Vec<Portion> {
    if zero {
        return vec![Portion { offset: 0, count: span.count, way: Way::Zero }];
    }
    let mut portions: Vec<Portion> = Vec::new();
    let (mut offset, mut free) = (0, free);
    while offset < span.count {
        let to_next = (SLOT_BLOCKS - (span.lba + u64::from(offset)) % SLOT_BLOCKS) as u32;
        let count = to_next.min(span.count - offset);
        let direct = u64::from(count) * BLOCK as u64 == SLOT_BYTES && free > 0;
        match portions.last_mut() {
            Some(Portion { count: length, way: Way::Inline, .. }) if !direct => *length += count,
            _ => {
                portions.push(Portion { offset, count, way: if direct { Way::Direct } else { Way::Inline } })
            }
        }
        free -= u32::from(direct);
        offset += count;
    }
    portions
}
