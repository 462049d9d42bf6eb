//! Which bricks make the groups of a family of volumes, and which group gets an extent.
//!
//! A family goes by one *rule* from its first day on, as its groups and the places of its extents outlive everybody who
//! computes them. What becomes of a group when a brick is lost is the same under every rule: [`Pool::substitute`].
//!
//! | rule | groups | an extent's group |
//! |---|---|---|
//! | `hashed` | drawn one by one, bricks in proportion to their weights | drawn by its number |
//! | `periodic` | by the formula of replicated declustering, bricks equally often | its number modulo the groups |
//! | `weighted` | drawn together: each brick is in as many as its weight says, or one more or less | drawn by its number |
//!
//! Reading order: this file, `domains` (failure domains), `rendezvous` (how bricks are drawn for one group), `pool` (who takes the place of a lost one), then a file a
//! rule. A new rule is a file beside them, a line in [`rule`], and its name in [`wire::Placement`].

mod domains;
mod hashed;
mod jump;
mod periodic;
mod pool;
mod rendezvous;
#[cfg(test)]
mod testing;
mod weighted;

pub use pool::Pool;
pub use rendezvous::score;

use base::{BrickId, VolumeId};
use thiserror::Error;
use wire::Placement;

/// A brick that a group could be placed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub id: BrickId,
    /// Its share of the data relative to others, such as its capacity in bytes. A brick of weight 0 gets no group.
    pub weight: u64,
    /// Its failure domains, such as `("rack", "2")`.
    pub labels: Vec<(String, String)>,
}

/// The groups that a new family of volumes is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub family: VolumeId,
    pub groups: u32,
    /// Bricks in each group.
    pub width: u8,
}

/// Why there is no place for a family's groups.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PlacementError {
    /// There are too few bricks.
    #[error(
        "group {group_index} of {volume} needs {width} bricks and {available} can take it: \
         {} more must join or come back", usize::from(*width) - available
    )]
    TooFewBricks {
        volume: VolumeId,
        /// The group's number in the volume.
        group_index: u32,
        /// Bricks in the group.
        width: u8,
        /// Bricks with a weight.
        available: usize,
    },
    /// The formula puts bricks of one failure domain into each of its rows, although there are domains enough.
    #[error(
        "placement periodic cannot keep the {width} bricks of each group of {volume} in different failure domains (by {}) \
         on these {bricks} bricks: give every domain the same number of bricks, or use placement hashed or weighted",
        labels.join(", ")
    )]
    DomainsNotKept {
        volume: VolumeId,
        width: u8,
        /// Bricks with a weight.
        bricks: usize,
        /// The labels that tell domains apart.
        labels: Vec<String>,
    },
}

/// How a family's groups are made of bricks, and which of them gets an extent.
pub trait Rule: Sync {
    /// The bricks of each group, in the order of its slots. No brick is in a group twice.
    ///
    /// `domains` names the labels that tell failure domains apart, the widest first, such as `["rack", "host"]`; a domain
    /// lies within one of the wider ones. The bricks of a group are all in different domains of the widest label that has
    /// enough of them, and spread as evenly as can be over the domains of wider ones; a rule that cannot keep this refuses.
    /// Bricks without the label share a domain. The candidates' ids differ, and their order does not matter.
    fn place(
        &self,
        wanted: Wanted,
        candidates: &[Candidate],
        domains: &[&str],
    ) -> Result<Vec<Vec<BrickId>>, PlacementError>;

    /// Which of the family's `groups` groups an extent lies on.
    fn group_of(&self, family: VolumeId, extent: u64, groups: usize) -> usize;

    /// How many groups a volume has whose owner does not say, where `bricks` could take them.
    fn usual_groups(&self, bricks: u32) -> u32 {
        (bricks * USUAL_GROUPS_PER_BRICK).min(USUAL_GROUPS_MAX)
    }
}

/// So many groups a brick let a lost brick's blocks be rebuilt by several others at a time.
const USUAL_GROUPS_PER_BRICK: u32 = 4;
/// More groups than this spread a usual volume no better, and each is a view that the directory keeps.
const USUAL_GROUPS_MAX: u32 = 64;

/// The rule of a name.
pub fn rule(placement: Placement) -> &'static dyn Rule {
    match placement {
        Placement::Hashed => &hashed::Hashed,
        Placement::Periodic => &periodic::Periodic,
        Placement::Weighted => &weighted::Weighted,
    }
}

/// The candidates that can take groups: as many as a group needs, at least.
fn able(wanted: Wanted, candidates: &[Candidate]) -> Result<Vec<&Candidate>, PlacementError> {
    let able: Vec<&Candidate> = candidates.iter().filter(|candidate| candidate.weight > 0).collect();
    let (available, width) = (able.len(), wanted.width);
    if available < usize::from(width) {
        let (volume, group_index) = (wanted.family, 0);
        return Err(PlacementError::TooFewBricks { volume, group_index, width, available });
    }
    Ok(able)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), one step on, so that 0 is nothing special.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_stay_where_they_are() {
        // Extents outlive the process that placed them: these must never change.
        let groups =
            |placement| [0, 1, 2, 3, 4, 5].map(|extent| rule(placement).group_of(VolumeId(1), extent, 4));
        assert_eq!(groups(Placement::Hashed), [1, 1, 1, 1, 1, 0]);
        // Nodes that know no rules take weighted volumes for hashed ones.
        assert_eq!(groups(Placement::Weighted), groups(Placement::Hashed));
        assert_eq!(groups(Placement::Periodic), [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn the_layout_that_older_nodes_are_told_of_periodic_volumes_is_refused() {
        let refusal =
            "raid1x3 (periodic)".parse::<crate::layout::Layout>().expect_err("no layout").to_string();
        assert_eq!(refusal, "`raid1x3 (periodic)` is not a layout; write it like raid1x3");
    }
}
