//! The rule `periodic`: the groups are the buckets of a grid that is declustered by a formula (Altiparmak and Tosun, Fig. 1), and
//! consecutive extents are consecutive buckets of it, row after row.
//!
//! With N bricks, a row of N groups has each brick once in every slot. So any N consecutive extents, from the start of a
//! row on, lie on all bricks equally, and a large request can be read from all of them at once. Weights say only who takes part.
//!
//! *Failure domains*: the bricks stand in a row in which neighbours are in different domains, as far as can be: one brick of
//! each rack after another, and in each rack one of each host. Rows of the grid in which two bricks of a group would still share
//! a domain are left out like those in which they would be the same brick. With racks of one size some rows remain; where
//! none does, the rule refuses.

use super::domains::{Limits, Path};
use super::{Candidate, PlacementError, Rule, USUAL_GROUPS_MAX, USUAL_GROUPS_PER_BRICK, Wanted, able};
use crate::layout::declustering::{periodic, periodic_rows};
use base::{BrickId, VolumeId};
use std::collections::{BTreeMap, VecDeque};

pub(super) struct Periodic;

impl Rule for Periodic {
    fn place(
        &self,
        wanted: Wanted,
        candidates: &[Candidate],
        domains: &[&str],
    ) -> Result<Vec<Vec<BrickId>>, PlacementError> {
        let able = able(wanted, candidates)?.into_iter();
        let row = in_a_row(able.map(|brick| (brick.id, Path::of(brick, domains))).collect(), 0);
        let (bricks, paths): (Vec<BrickId>, Vec<Path<'_>>) = row.into_iter().unzip();
        let limits = Limits::new(&paths, domains.len(), wanted.width);
        let grid = Grid { bricks: bricks.len() as u32, width: u32::from(wanted.width) };
        let rows: Vec<u32> = grid.rows(&limits).take(wanted.groups.div_ceil(grid.bricks) as usize).collect();
        if rows.is_empty() {
            return Err(PlacementError::DomainsNotKept {
                volume: wanted.family,
                width: wanted.width,
                bricks: bricks.len(),
                labels: domains.iter().map(|label| (*label).to_owned()).collect(),
            });
        }
        let group = |group: u32| {
            let row = rows[(group / grid.bricks) as usize % rows.len()];
            grid.group(row, group % grid.bricks).into_iter().map(|member| bricks[member]).collect()
        };
        Ok((0..wanted.groups).map(group).collect())
    }

    fn group_of(&self, family: VolumeId, extent: u64, groups: usize) -> usize {
        assert!(groups > 0, "{family} has no group to place extent {extent} on");
        (extent % groups as u64) as usize
    }

    /// Whole rows of the grid.
    fn usual_groups(&self, bricks: u32) -> u32 {
        bricks * (USUAL_GROUPS_MAX / bricks.max(1)).clamp(1, USUAL_GROUPS_PER_BRICK)
    }
}

/// The bricks in an order in which neighbours are in different domains as far as can be: from each domain of the level one after
/// another, each in its own such order, and by their ids where there is no narrower domain.
fn in_a_row(mut bricks: Vec<(BrickId, Path<'_>)>, level: usize) -> Vec<(BrickId, Path<'_>)> {
    if bricks.iter().all(|(_, path)| path.label(level).is_none()) {
        bricks.sort();
        return bricks;
    }
    let count = bricks.len();
    let mut domains: BTreeMap<Option<&str>, Vec<(BrickId, Path<'_>)>> = BTreeMap::new();
    for (id, path) in bricks {
        domains.entry(path.label(level)).or_default().push((id, path));
    }
    let mut queues: Vec<VecDeque<_>> =
        domains.into_values().map(|domain| in_a_row(domain, level + 1).into()).collect();
    let mut row = Vec::with_capacity(count);
    while row.len() < count {
        row.extend(queues.iter_mut().filter_map(VecDeque::pop_front));
    }
    row
}

/// The grid of buckets, as wide as there are bricks.
#[derive(Clone, Copy)]
struct Grid {
    bricks: u32,
    /// Copies of a bucket, or other columns.
    width: u32,
}

impl Grid {
    /// The bricks of the group in row `i` and column `j`, by their places.
    fn group(self, i: u32, j: u32) -> Vec<usize> {
        (0..self.width).map(|slot| periodic(u64::from(i), u64::from(j), slot, self.bricks) as usize).collect()
    }

    /// The rows whose groups are all of different bricks, and within the limits of failure domains.
    fn rows(self, limits: &Limits) -> impl Iterator<Item = u32> {
        let are_allowed = move |row: &u32| (0..self.bricks).all(|j| limits.allow(&self.group(*row, j)));
        periodic_rows(self.bricks, self.width).filter(are_allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DOMAINS, brick, bricks, sets, shares};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn wanted(groups: u32, width: u8) -> Wanted {
        Wanted { family: VolumeId(7), groups, width }
    }

    /// Bricks in racks of one size, and hosts of one size in these.
    fn regular(racks: u32, hosts: u32, disks: u32) -> Vec<Candidate> {
        (0..racks * hosts * disks).map(|id| brick(id, 10, id % racks, id / racks % hosts)).collect()
    }

    #[test]
    fn with_seven_bricks_the_groups_are_the_buckets_of_figure_1() {
        let groups = Periodic.place(wanted(14, 2), &bricks(7), &[]).expect("enough bricks");
        let ids = |group: &Vec<BrickId>| group.iter().map(|id| id.0).collect::<Vec<_>>();
        let groups: Vec<Vec<u32>> = groups.iter().map(ids).collect();
        // The figure's rows 1 and 2: in its row 0 both copies are on one disk.
        assert_eq!(groups[..7], [[3, 2], [4, 3], [5, 4], [6, 5], [0, 6], [1, 0], [2, 1]]);
        assert_eq!(groups[7..], [[6, 4], [0, 5], [1, 6], [2, 0], [3, 1], [4, 2], [5, 3]]);
    }

    #[test]
    fn consecutive_extents_lie_on_consecutive_groups() {
        let group_of = |extent| Periodic.group_of(VolumeId(7), extent, 12);
        assert_eq!([0, 1, 11, 12, 25, u64::MAX].map(group_of), [0, 1, 11, 0, 1, 3]);
    }

    #[test]
    fn usual_groups_are_whole_rows() {
        assert_eq!(
            [1, 4, 16, 17, 30, 64, 100].map(|bricks| Periodic.usual_groups(bricks)),
            [4, 16, 64, 51, 60, 64, 100]
        );
    }

    #[test]
    fn racks_of_different_sizes_are_refused_where_no_row_keeps_them_apart() {
        // Racks of three, three and two bricks.
        let bricks: Vec<Candidate> = (0..8).map(|id| brick(id, 10, id % 3, id)).collect();
        let refusal = Periodic.place(wanted(8, 3), &bricks, &DOMAINS).expect_err("two in a rack").to_string();
        let expected = "placement periodic cannot keep the 3 bricks of each group of volume-7 in different failure domains \
                        (by rack, host) on these 8 bricks: give every domain the same number of bricks, or use placement hashed or weighted";
        assert_eq!(refusal, expected);
        assert!(Periodic.place(wanted(8, 3), &bricks, &["host"]).is_ok(), "each is on a host of its own");
        let refusal = Periodic.place(wanted(8, 9), &bricks, &[]).expect_err("too few").to_string();
        assert_eq!(
            refusal,
            "group 0 of volume-7 needs 9 bricks and 8 can take it: 1 more must join or come back"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_row_has_each_brick_once_in_every_slot(count in 1..40_u32, width in 1..9_u8, rows in 1..6_u32) {
            prop_assume!(u32::from(width) <= count);
            let groups = Periodic.place(wanted(rows * count, width), &bricks(count), &DOMAINS);
            let groups = groups.expect("enough bricks");
            for row in groups.chunks(count as usize) {
                for slot in 0..usize::from(width) {
                    let in_slot: BTreeSet<BrickId> = row.iter().map(|group| group[slot]).collect();
                    prop_assert_eq!(in_slot.len(), count as usize);
                }
            }
            let sets = sets(Ok(groups));
            prop_assert!(shares(&sets, count as usize).iter().all(|share| *share == rows * u32::from(width)));
        }

        #[test]
        fn racks_and_hosts_of_one_size_are_kept_apart(racks in 1..6_u32, hosts in 1..4_u32, disks in 1..4_u32, width in 1..6_u8, groups in 1..200_u32) {
            let bricks = regular(racks, hosts, disks);
            prop_assume!(bricks.len() >= usize::from(width));
            let most = |domains: u32| u32::from(width).div_ceil(domains) as usize;
            for group in sets(Periodic.place(wanted(groups, width), &bricks, &DOMAINS)) {
                for rack in 0..racks {
                    let here: Vec<u32> = group.iter().map(|id| id.0).filter(|id| id % racks == rack).collect();
                    prop_assert!(here.len() <= most(racks), "{} in rack {rack}", here.len());
                    for host in 0..hosts {
                        let here = here.iter().filter(|id| *id / racks % hosts == host).count();
                        prop_assert!(here <= most(racks * hosts), "{here} on host {host} of rack {rack}");
                    }
                }
            }
        }
    }
}
