//! Where a client sends a request of a volume whose data path says which brick coordinates (`coord`, `amongst`): to the gateway beside that
//! brick.
//!
//! Any gateway serves any request, so a route that is old costs a way and nothing else: a sequencer that is not asked orders nothing,
//! and stamps do.

use base::{BLOCK_U64, BrickId};
use rules::layout::{Geometry, placement};
use volume::netraid::members::is_mirrored;
use wire::{DataPath, GroupView, Io, VolumeMap};

/// Which brick coordinates what.
#[derive(Debug)]
pub(super) struct Routes {
    geometry: Geometry,
    map: VolumeMap,
}

impl Routes {
    /// Of a volume that the directory told of; `None` where its path leaves it to any gateway, or the map makes no sense.
    pub(super) fn of(map: VolumeMap) -> Option<Routes> {
        let info = &map.volume;
        let layout = info.layout.parse().ok()?;
        let geometry = Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks).ok()?;
        (info.protocol.path.is_of_bricks() && !map.groups.is_empty()).then_some(Routes { geometry, map })
    }

    /// The brick that coordinates a request: by its first block, also where it goes on into another extent.
    pub(super) fn coordinator(&self, io: &Io) -> Option<BrickId> {
        let info = &self.map.volume;
        let offset = match io {
            Io::Read { offset, .. }
            | Io::Write { offset }
            | Io::Zero { offset, .. }
            | Io::Allocation { offset, .. } => *offset,
        };
        let at = self.geometry.locate(offset / BLOCK_U64);
        let group = placement::rule(info.placement).group_of(info.family, at.extent, self.map.groups.len());
        let view = self.map.groups.get(group)?;
        let has_unit = info.protocol.path == DataPath::Amongst && !is_mirrored(&self.geometry);
        let of_unit = Some(at.slot).filter(|slot| has_unit && view.current.has(*slot));
        of_unit.or_else(|| first_current(view)).and_then(|slot| view.members.get(usize::from(slot)).copied())
    }
}

fn first_current(view: &GroupView) -> Option<u8> {
    view.current.iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, ViewNumber, VolumeId};
    use wire::{Slots, VolumeInfo};

    fn routes(protocol: &str, layout: &str, current: u32) -> Option<Routes> {
        let protocol = protocol.parse().expect("a protocol");
        let volume = VolumeInfo { protocol, ..VolumeInfo::new(VolumeId(7), "v", 1 << 30, layout) };
        let view = GroupView {
            group: GroupId(1),
            volume: VolumeId(7),
            number: ViewNumber(1),
            members: (11..16).map(BrickId).collect(),
            current: Slots(current),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        };
        let map = VolumeMap { volume, groups: vec![view], bricks: Vec::new(), stream_bricks: Vec::new() };
        Routes::of(map)
    }

    fn asked(routes: &Routes, unit: u64) -> Option<u32> {
        routes.coordinator(&Io::Write { offset: unit << 16 }).map(|brick| brick.0)
    }

    #[test]
    fn the_first_current_brick_coordinates_all_or_each_brick_its_own() {
        let coordinator = routes("coord,seq,none", "raid4-4+1", 0b11111).expect("routes");
        assert_eq!([0, 1, 3].map(|unit| asked(&coordinator, unit)), [Some(11); 3]);
        let amongst = routes("amongst,ts,2pcw", "raid4-4+1", 0b11111).expect("routes");
        assert_eq!([0, 1, 3].map(|unit| asked(&amongst, unit)), [Some(11), Some(12), Some(14)]);
        let mirrored = routes("amongst,ts,2pcw", "raid1x5", 0b11110).expect("routes");
        assert_eq!(asked(&mirrored, 3), Some(12));
    }

    #[test]
    fn who_is_left_out_coordinates_nothing() {
        let coordinator = routes("coord,seq,none", "raid4-4+1", 0b11110).expect("routes");
        assert_eq!(asked(&coordinator, 0), Some(12));
        let amongst = routes("amongst,ts,2pcw", "raid4-4+1", 0b11110).expect("routes");
        assert_eq!([0, 2].map(|unit| asked(&amongst, unit)), [Some(12), Some(13)]);
        assert!(routes("gw,ts,2pcw", "raid4-4+1", 0b11111).is_none());
    }
}
