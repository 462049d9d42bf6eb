//! Volumes are placed by a rule, which outlives the directory, and which a brick's death does not touch.

use super::*;
use wire::Placement;

impl Stage {
    fn place(
        &mut self,
        placement: Placement,
        layout: &str,
        groups: u32,
    ) -> Result<Vec<Vec<u32>>, AdminError> {
        let mut request = volume_request("v", layout, groups, 7);
        if let AdminRequest::CreateVolume { size_bytes, placement: rule, .. } = &mut request {
            (*size_bytes, *rule) = (1 << 40, placement);
        }
        self.ask(request)?;
        Ok(self.members())
    }

    /// Of each group, in their order.
    fn members(&self) -> Vec<Vec<u32>> {
        let ids = |view: &GroupView| view.members.iter().map(|brick| brick.0).collect();
        self.directory.views().map(ids).collect()
    }

    fn info(&self) -> VolumeInfo {
        let volumes = &self.directory.desk.cluster.records.volumes;
        volumes.values().next().expect("a volume").info.clone()
    }

    fn label(&mut self, label: &str, value: impl Fn(u32) -> u32) {
        for (brick, status) in &mut self.bricks {
            status.labels.push((label.to_owned(), value(brick.0).to_string()));
        }
        self.run(1000);
    }
}

#[test]
fn a_periodic_volume_lies_on_the_grid_of_its_bricks() {
    let mut stage = Stage::new(7);
    let groups = stage.place(Placement::Periodic, "raid1x2", 0).expect("enough bricks");
    // Four rows of seven: bricks 1 to 7 are the figure's disks 0 to 6.
    assert_eq!(groups.len(), 28);
    assert_eq!(groups[..3], [[4, 3], [5, 4], [6, 5]]);
    for brick in 1..=7 {
        let slots = |slot: usize| groups.iter().filter(|group| group[slot] == brick).count();
        assert_eq!((slots(0), slots(1)), (4, 4), "brick {brick}");
    }
}

#[test]
fn a_weighted_volume_has_bricks_in_proportion_to_their_room() {
    let mut stage = Stage::new(6);
    for (brick, status) in &mut stage.bricks {
        status.space.capacity_bytes = if brick.0 <= 3 { 1 << 40 } else { 3 << 40 };
    }
    stage.run(1000);
    let groups = stage.place(Placement::Weighted, "raid1x2", 48).expect("enough bricks");
    let shares = |brick| groups.iter().filter(|group| group.contains(&brick)).count();
    assert_eq!([1, 2, 3, 4, 5, 6].map(shares), [8, 8, 8, 24, 24, 24]);
}

#[test]
fn the_rule_survives_the_directory_and_a_clone_has_it() {
    for placement in Placement::ALL {
        let mut stage = Stage::new(4);
        stage.place(placement, "raid1x2", 4).expect("enough bricks");
        stage.restart();
        stage.run(1000);
        assert_eq!(stage.info().placement, placement);
        let (volume, snapshot) = ("v".to_owned(), "s".to_owned());
        stage.ask(AdminRequest::Snapshot { volume, snapshot, nonce: 8 }).expect("all are there");
        let (snapshot, name) = ("v@s".to_owned(), "w".to_owned());
        let cloned = stage.ask(AdminRequest::Clone { snapshot, name, nonce: 9 });
        let Ok(AdminReply::Volume(clone)) = cloned else { panic!("{cloned:?}") };
        assert_eq!(clone.placement, placement, "it shares the family's groups");
    }
}

#[test]
fn under_every_rule_a_lost_brick_is_replaced_and_nobody_else_moves() {
    for placement in Placement::ALL {
        let mut stage = Stage::new(8);
        let before = stage.place(placement, "raid1x3", 16).expect("enough bricks");
        stage.bricks.remove(&BrickId(2));
        for _ in 0..40 {
            stage.run(2000);
            stage
                .bricks
                .keys()
                .copied()
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|brick| stage.catch_up(brick));
        }
        let after = stage.members();
        assert_eq!(before.len(), after.len());
        let mut substitutes = std::collections::BTreeSet::new();
        for (before, after) in before.iter().zip(&after) {
            for (was, is) in before.iter().zip(after) {
                assert_eq!(was == is, *was != 2, "{placement}: {before:?} became {after:?}");
                substitutes.extend((was != is).then_some(*is));
            }
            let distinct: std::collections::BTreeSet<&u32> = after.iter().collect();
            assert_eq!(distinct.len(), 3, "{placement}: {after:?}");
        }
        assert!(substitutes.len() > 1, "{placement}: all of it is rebuilt onto one brick");
    }
}

/// Of 88 bricks in one rack and two in another, those two are found; in the second case by a brick that stays, and not by a stand-in.
#[test]
fn a_small_rack_is_not_overlooked_in_a_large_cluster() {
    for stage in [Stage::new(90), Stage::new(90).without_stand_ins()] {
        let mut stage = stage;
        stage.label("rack", |brick| u32::from(brick > 88));
        stage.place(Placement::Hashed, "raid1x2", 32).expect("two racks");
        stage.bricks.remove(&BrickId(89));
        // Brick 90 takes four groups at a time, and the others wait for it.
        for _ in 0..200 {
            stage.run(1000);
            if stage.members().iter().all(|group| !group.contains(&89)) {
                break;
            }
            let bricks: Vec<BrickId> = stage.bricks.keys().copied().collect();
            bricks.into_iter().for_each(|brick| stage.catch_up(brick));
        }
        for group in stage.members() {
            assert!(group.contains(&90), "{group:?} is in one rack");
        }
    }
}

#[test]
fn a_rule_that_cannot_keep_failure_domains_apart_is_refused_and_names_what_can() {
    let mut stage = Stage::new(8);
    stage.label("rack", |brick| brick % 3);
    let refusal = stage.place(Placement::Periodic, "raid1x3", 8).expect_err("racks of two sizes");
    let expected = "placement periodic cannot keep the 3 bricks of each group of volume-1 in different failure domains \
                    (by rack, host) on these 8 bricks: give every domain the same number of bricks, or use placement \
                    hashed or weighted";
    assert_eq!(refusal.to_string(), expected);
    let groups = stage.place(Placement::Weighted, "raid1x3", 8).expect("as it says");
    for group in groups {
        let racks: std::collections::BTreeSet<u32> = group.iter().map(|brick| brick % 3).collect();
        assert_eq!(racks.len(), 3, "{group:?}");
    }
}

#[test]
fn more_groups_than_the_directory_keeps_are_refused_under_every_rule() {
    for placement in Placement::ALL {
        let mut stage = Stage::new(4);
        let refusal = stage.place(placement, "raid1x2", 1025).expect_err("too many").to_string();
        assert_eq!(refusal, "1025 groups are too many: at most 1024");
    }
}
