//! Through which of its attachments a client asks, and where in a volume: for clients on machines of their own, and for volumes that lie on
//! several groups of bricks.

use super::load::Port;
use base::{BLOCK_U64, SECTOR_BYTES, VolumeId};
use rules::layout::{Geometry, Layout, placement};
use wire::{Placement, VolumeMap};

/// One volume over all bricks of a cluster, on groups of as many as its layout is wide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// How many groups there are.
    pub groups: u32,
    /// How bricks make groups, and extents come to them.
    pub placement: Placement,
    /// How many extents are used.
    pub extents: u64,
    /// How much of each extent is used, from its beginning. Extents are larger (4 MiB on each member): what is asked for is put together of such
    /// pieces.
    pub piece_bytes: u64,
}

impl Spread {
    /// Sectors that requests may be for.
    pub(super) fn sectors(&self) -> u64 {
        self.extents * self.piece_bytes / SECTOR_BYTES
    }

    /// Stripes of the volume.
    pub(super) fn stripes(&self, layout: Layout, unit_blocks: u64) -> u64 {
        self.extents * extent_blocks(layout) / (u64::from(layout.data()) * unit_blocks)
    }

    /// Where in the volume that sector is.
    pub(super) fn place(&self, layout: Layout, sector: u64) -> u64 {
        let piece_sectors = self.piece_bytes / SECTOR_BYTES;
        let extent_sectors = extent_blocks(layout) * BLOCK_U64 / SECTOR_BYTES;
        sector / piece_sectors * extent_sectors + sector % piece_sectors
    }
}

fn extent_blocks(layout: Layout) -> u64 {
    u64::from(layout.data()) * u64::from(Geometry::COLUMN_BLOCKS)
}

/// How clients with machines of their own reach the volume.
#[derive(Default)]
pub(super) struct Routes {
    /// Machines of clients, each of which has a port at each gateway, or one that keeps to a gateway or finds its gateways; none where each port is
    /// a session of its gateway.
    machines: u64,
    /// Where blocks are, if they are asked for through the gateway on the machine that has them.
    places: Option<Places>,
}

/// Where a volume's blocks are.
struct Places {
    geometry: Geometry,
    placement: Placement,
    family: VolumeId,
    /// The members of each group, by slot, as gateways are numbered.
    groups: Vec<Vec<usize>>,
}

impl Routes {
    pub(super) fn new(machines: u32) -> Routes {
        Routes { machines: u64::from(machines), places: None }
    }

    /// From now on blocks are asked for where this map says that they are.
    pub(super) fn go_to_holders(&mut self, map: &VolumeMap, layout: Layout) {
        let unit_blocks = map.volume.stripe_unit_blocks;
        let geometry =
            Geometry::new(layout, unit_blocks, Geometry::COLUMN_BLOCKS).expect("the volume has it");
        let members =
            |view: &wire::GroupView| view.members.iter().map(|brick| brick.0 as usize - 1).collect();
        self.places = Some(Places {
            geometry,
            placement: map.volume.placement,
            family: map.volume.family,
            groups: map.groups.iter().map(members).collect(),
        });
    }

    /// The port for the request that is the `turn`th, for what begins with this block of the volume.
    pub(super) fn port<'a>(&self, ports: &'a [Port], turn: u64, block: u64) -> &'a Port {
        let machines = self.machines.max(1);
        let gateways = (ports.len() as u64 / machines).max(1);
        if self.machines == 0 || gateways == 1 {
            return &ports[turn as usize % ports.len()];
        }
        let gateway = match &self.places {
            Some(places) => places.holder(block) as u64 % gateways,
            None => turn / machines % gateways,
        };
        &ports[(turn % machines * gateways + gateway) as usize]
    }
}

impl Places {
    fn holder(&self, block: u64) -> usize {
        let location = self.geometry.locate(block);
        let rule = placement::rule(self.placement);
        let group = rule.group_of(self.family, location.extent, self.groups.len());
        self.groups[group][usize::from(location.slot)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_at_the_beginnings_of_extents() {
        let layout: Layout = "raid4-4+1".parse().expect("a layout");
        let spread = Spread { groups: 3, placement: Placement::Hashed, extents: 4, piece_bytes: 256 << 10 };
        assert_eq!(spread.sectors(), 2048);
        let extent = (16 << 20) / SECTOR_BYTES;
        let places = [0, 511, 512, 2047].map(|sector| spread.place(layout, sector));
        assert_eq!(places, [0, 511, extent, 3 * extent + 511]);
        assert_eq!(spread.stripes(layout, 2) * 8, 4 * extent / 8, "it has room for all extents");
    }
}
