//! Which bytes of a volume lay on members that lost them.

use super::{Geometry, Layout, placement};
use base::{BLOCK_U64, BrickId, GroupId};
use core::ops::Range;
use wire::{GroupView, VolumeInfo};

/// The ranges of bytes of a volume without redundancy, in order, that lay on members for which `is_bare` says so. `groups` are the volume's, in their
/// order. Ranges are as long as they can be; a volume that makes no sense has none.
pub fn lost_ranges(
    info: &VolumeInfo,
    groups: &[GroupView],
    is_bare: impl Fn(GroupId, BrickId) -> bool,
) -> Vec<Range<u64>> {
    let Ok(layout) = info.layout.parse::<Layout>() else { return Vec::new() };
    let Ok(geometry) = Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks) else {
        return Vec::new();
    };
    let (unit, rule) = (u64::from(info.stripe_unit_blocks), placement::rule(info.placement));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for first in (0..info.size_bytes.div_ceil(BLOCK_U64)).step_by(unit as usize) {
        let at = geometry.locate(first);
        let Some(view) = groups.get(rule.group_of(info.family, at.extent, groups.len())) else { continue };
        let is_bare = |brick: &BrickId| is_bare(view.group, *brick);
        let is_lost = view.members.get(usize::from(at.slot)).is_some_and(is_bare);
        let bytes = first * BLOCK_U64..((first + unit) * BLOCK_U64).min(info.size_bytes);
        match ranges.last_mut() {
            Some(last) if is_lost && last.end == bytes.start => last.end = bytes.end,
            _ if is_lost => ranges.push(bytes),
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ViewNumber, VolumeId};
    use wire::Slots;

    #[test]
    fn every_other_stripe_unit_lay_on_one_of_two_members() {
        let info = VolumeInfo::new(VolumeId(1), "v", 1 << 20, "raid0x2");
        let view = GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(1),
            members: vec![BrickId(1), BrickId(2)],
            current: Slots(3),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        };
        let of =
            |lost: u32| lost_ranges(&info, core::slice::from_ref(&view), |_, brick| brick == BrickId(lost));
        let total = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        assert_eq!(total(&of(1)) + total(&of(2)), 1 << 20);
        assert_eq!(of(1)[0], 0..64 << 10);
        assert_eq!(of(2)[0], 64 << 10..128 << 10);
        assert!(of(3).is_empty());
    }
}
