//! The families of volumes that a brick has groups of: what tells it where a block belongs, and what a directory that lost
//! its disk is made of again. A durable note each, on the brick's first disk.

use base::{GroupId, VolumeId};
use rules::layout::{Geometry, Layout, placement};
use std::collections::BTreeMap;
use wire::{Family, Placement, Span, Wire};

const NOTE_PREFIX: u8 = b'F';

/// A family, and what its volumes have in common.
#[derive(Debug)]
struct Known {
    family: Family,
    geometry: Geometry,
    placement: Placement,
}

/// All families of a brick.
#[derive(Debug, Default)]
pub struct Families {
    families: BTreeMap<VolumeId, Known>,
}

impl Families {
    /// What the notes of the first disk say.
    pub fn recover(notes: &[(Vec<u8>, Vec<u8>)]) -> Families {
        let mut families = Families::default();
        for (key, value) in notes.iter().filter(|(key, _)| key.first() == Some(&NOTE_PREFIX)) {
            if key.len() > 1
                && let Ok(family) = Family::from_bytes(value)
            {
                families.learn(family);
            }
        }
        families
    }

    /// The key and value of a family's note.
    pub fn note(&self, family: VolumeId) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut key = vec![NOTE_PREFIX];
        family.append(&mut key);
        (key, self.families.get(&family).map(|known| known.family.to_bytes()))
    }

    /// Takes in a family; its name if this is news. One that makes no sense is ignored.
    pub fn learn(&mut self, family: Family) -> Option<VolumeId> {
        let first = family.volumes.first()?;
        let (name, layout) = (first.family, first.layout.parse::<Layout>().ok()?);
        let geometry = Geometry::new(layout, first.stripe_unit_blocks, first.column_blocks).ok()?;
        let is_known = self.families.get(&name).is_some_and(|known| known.family == family);
        if is_known || family.groups.is_empty() {
            return None;
        }
        let placement = first.placement;
        self.families.insert(name, Known { family, geometry, placement });
        Some(name)
    }

    /// Forgets a deleted family.
    pub fn forget(&mut self, family: VolumeId) -> bool {
        self.families.remove(&family).is_some()
    }

    /// The families, from this one on.
    pub fn from(&self, first: VolumeId) -> impl Iterator<Item = (VolumeId, &Family)> {
        self.families.range(first..).map(|(id, known)| (*id, &known.family))
    }

    pub fn geometry(&self, family: VolumeId) -> Option<Geometry> {
        self.families.get(&family).map(|known| known.geometry)
    }

    /// A family's groups; none of one that is unknown.
    pub fn groups_of(&self, family: VolumeId) -> Vec<GroupId> {
        self.families.get(&family).map_or_else(Vec::new, |known| known.family.groups.clone())
    }

    /// The group that holds an address of a family's branches.
    pub fn group_at(&self, family: VolumeId, lba: u64) -> Option<GroupId> {
        let Known { family: Family { groups, .. }, geometry, placement } = self.families.get(&family)?;
        let rule = placement::rule(*placement);
        Some(groups[rule.group_of(family, geometry.extent_of_lba(lba), groups.len())])
    }

    /// The groups that hold parts of a stretch.
    pub fn groups_of_stretch(&self, family: VolumeId, stretch: u64) -> Vec<GroupId> {
        let Some(geometry) = self.geometry(family) else { return Vec::new() };
        let from = stretch * Span::STRETCH_BLOCKS;
        let extents = geometry.extent_of_lba(from)..=geometry.extent_of_lba(from + Span::STRETCH_BLOCKS - 1);
        extents.filter_map(|extent| self.group_at(family, geometry.lbas(extent).start)).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.families.values().map(|known| &known.family)
    }
}
