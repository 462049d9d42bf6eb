//! What a disk holds: which stretches have stamps, for another member to compare itself with, and which blocks have data.

use crate::blocks::Blocks;
use crate::discard::Region;
use crate::metadata::PAGE_BLOCKS;
use crate::superblock::SLOT_BLOCKS;
use base::VolumeId;
use wire::Span;
use wire::disk::INVENTORY_MAX;

/// A volume and the number of one of its stretches.
type Stretch = (VolumeId, u64);

/// The stretches behind `after` that hold stamps, at home or not. A stretch of which a metadata page was lost as a whole may be
/// missing: nobody knows any more that it was there.
pub(crate) fn stretches(blocks: &Blocks, after: Option<Stretch>) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut from = after.map_or(Some((VolumeId(0), 0)), following);
    while let Some(stretch) = from.filter(|_| found.len() < INVENTORY_MAX).and_then(|from| next(blocks, from))
    {
        let (volume, number) = stretch;
        if !blocks.discards.cover(volume, number.saturating_mul(Span::STRETCH_BLOCKS)) {
            found.push(stretch);
        }
        from = following(stretch);
    }
    found
}

/// Which blocks of a span hold data, as runs `(blocks, whether they do)`.
pub(crate) fn allocation(blocks: &Blocks, span: Span) -> Vec<(u32, bool)> {
    let mut runs: Vec<(u32, bool)> = Vec::new();
    let mut lba = span.lba;
    let end = span.lba.saturating_add(u64::from(span.count));
    while lba < end {
        let count = blocks.run_length(span.volume, lba).min(end - lba) as u32;
        let data = blocks.holds_data(span.volume, lba);
        match runs.last_mut() {
            Some((length, last)) if *last == data => *length += count,
            _ => runs.push((count, data)),
        }
        lba += u64::from(count);
    }
    runs
}

/// The first stretch from `from` on of which there is a page, or a block that is not at home.
fn next(blocks: &Blocks, from: Stretch) -> Option<Stretch> {
    let begin = Region { volume: from.0, stretch: Some(from.1) };
    let page = blocks.pages.first_from(*begin.pages().start());
    let page = page.map(|key| (key.volume, key.page / (Span::STRETCH_BLOCKS / PAGE_BLOCKS)));
    let group = blocks.layers.first_from(*begin.groups().start());
    let group = group.map(|(volume, number)| (volume, number / (Span::STRETCH_BLOCKS / SLOT_BLOCKS)));
    group.into_iter().chain(page).min()
}

/// The stretch behind this one, of this volume or the next.
fn following((volume, number): Stretch) -> Option<Stretch> {
    if number < u64::MAX / Span::STRETCH_BLOCKS {
        return Some((volume, number + 1));
    }
    volume.0.checked_add(1).map(|next| (VolumeId(next), 0))
}
