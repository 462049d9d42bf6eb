//! Stand-ins: who takes the writes of a member that is away, and for how long.

use super::*;
use wire::Wire;

/// A group of three copies and the bricks beside it.
fn stage(bricks: u32) -> (Stage, GroupView) {
    let mut stage = Stage::new(bricks);
    stage.volume("raid1x3", 1);
    let view = stage.view();
    (stage, view)
}

impl Stage {
    fn lose(&mut self, brick: BrickId) -> BrickStatus {
        self.bricks.remove(&brick).expect("it is there")
    }

    /// Lets time pass until the group has another view.
    fn next_view(&mut self) -> GroupView {
        let before = self.view().number;
        for _ in 0..100 {
            if self.view().number != before {
                return self.view();
            }
            self.run(100);
        }
        panic!("the view stays {:?}", self.view());
    }

    fn count(&self, counter: Counter) -> u64 {
        self.directory.counters().get(counter)
    }
}

#[test]
fn the_view_that_leaves_a_member_out_names_who_stands_in() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 1), spare(&first));
    stage.lose(lost);
    let view = stage.next_view();
    assert_eq!((view.number.0, view.current, view.joining), (first.number.0 + 1, Slots(0b101), Slots(0b010)));
    assert_eq!((&view.sealed[..], view.members[1]), (&[(1, lost)][..], spare));
    assert!(
        view.stands_in(spare) && !view.is_catching_up(spare) && view.has_part(lost) && !view.is_writer(lost)
    );
    let of =
        |brick| stage.directory.desk.brick_entries(stage.now, &BTreeSet::new()).find(|of| of.id == brick);
    let (of_spare, of_lost) = (of(spare).expect("listed"), of(lost).expect("listed"));
    assert_eq!((of_spare.groups, of_spare.stand_in_groups, of_spare.joining_groups), (0, 1, 0));
    assert_eq!((of_lost.groups, of_lost.stale_groups), (1, 1));
    let told: Vec<String> = stage.news.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|line| line.contains(&format!("{spare} stands in for {lost} in 1 group"))),
        "{told:?}"
    );
    // Nothing else follows from that.
    stage.run(20_000);
    assert_eq!(stage.view(), view);
}

#[test]
fn a_member_that_returns_has_its_slot_again_and_the_stand_in_gives_back_what_it_took() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 0), spare(&first));
    let status = stage.lose(lost);
    assert!(stage.next_view().stands_in(spare));
    stage.bricks.insert(lost, status);
    let view = stage.next_view();
    assert_eq!((&view.members, view.joining, view.sealed.len()), (&first.members, Slots(0b001), 0));
    assert!(view.is_catching_up(lost));
    stage.catch_up(lost);
    stage.run(500);
    assert_eq!(stage.view().current, Slots(0b111));
    assert_eq!((stage.count(Counter::StandInNamed), stage.count(Counter::SealedMemberReturned)), (1, 1));
    let told: Vec<String> = stage.news.iter().map(ToString::to_string).collect();
    let stands_down = format!("{spare} stands in for {lost} no more in 1 group: that one is back");
    assert!(
        told.contains(&stands_down) && !told.iter().any(|line| line.contains("does not answer")),
        "{told:?}"
    );
    // It stands in again only once it has given its blocks back.
    stage.lose(lost);
    let view = stage.next_view();
    assert!(view.sealed.is_empty() && !view.has_part(spare), "{view:?}");
    stage.bricks.get_mut(&spare).expect("alive").groups.left = vec![(view.group, view.number)];
    assert!(stage.next_view().stands_in(spare));
}

#[test]
fn the_stand_in_of_a_member_that_stays_away_catches_up_and_keeps_the_slot() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 2), spare(&first));
    let status = stage.lose(lost);
    stage.run(50_000);
    assert!(stage.view().stands_in(spare), "not yet given up");
    stage.run(15_000);
    let view = stage.view();
    assert!(view.is_catching_up(spare) && view.sealed.is_empty() && !view.has_part(lost), "{view:?}");
    assert_eq!((view.current, view.joining), (Slots(0b011), Slots(0b100)));
    stage.catch_up(spare);
    stage.run(500);
    assert!(stage.view().is_current(spare));
    let told: Vec<String> = stage.news.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|line| line.contains(&format!("{spare} takes the place of {lost}"))), "{told:?}");
    // The former member is asked to give back what it has, and comes back no more.
    stage.bricks.insert(lost, status);
    stage.run(5000);
    assert!(!stage.view().has_part(lost));
}

#[test]
fn who_is_to_stand_in_and_does_not_answer_is_done_without() {
    let (mut stage, first) = stage(5);
    let lost = brick_at(&first, 1);
    let spares: Vec<BrickId> = (1..=5).map(BrickId).filter(|brick| !first.has_part(*brick)).collect();
    stage.mute = spares.clone();
    stage.lose(lost);
    let begun = stage.now;
    let view = stage.next_view();
    assert!(
        view.sealed.is_empty() && view.current == Slots(0b101) && view.member_at(1) == Some(lost),
        "{view:?}"
    );
    let lease = core::time::Duration::from_millis(2500);
    assert!(
        stage.now.since(begun) < lease + core::time::Duration::from_millis(400),
        "{:?}",
        stage.now.since(begun)
    );
    // Each try costs the writes a moment.
    stage.run(20_000);
    assert_eq!(stage.view(), view);
    stage.mute.clear();
    stage.run(15_000);
    assert!(spares.iter().any(|spare| stage.view().stands_in(*spare)), "{:?}", stage.view());
}

#[test]
fn a_stand_in_that_dies_leaves_the_slot_to_the_member_and_the_writes_to_another() {
    let (mut stage, first) = stage(5);
    let lost = brick_at(&first, 0);
    let status = stage.lose(lost);
    let stand_in = brick_at(&stage.next_view(), 0);
    stage.lose(stand_in);
    let view = stage.next_view();
    assert_eq!(view.sealed, [(0, lost)]);
    assert!(!view.has_part(stand_in) && view.members[0] != lost, "{view:?}");
    // Both that are left may go now: the group has no more than it needs.
    stage.bricks.insert(lost, status);
    assert!(stage.next_view().is_catching_up(lost));
}

#[test]
fn a_stand_in_that_falls_silent_together_with_a_member_is_waited_for_no_longer_than_that_one() {
    let (mut stage, first) = stage(5);
    stage.lose(brick_at(&first, 0));
    let stand_in = brick_at(&stage.next_view(), 0);
    stage.lose(stand_in);
    stage.lose(brick_at(&first, 1));
    let begun = stage.now;
    let lives =
        |stage: &Stage| stage.view().writing_bricks().all(|(_, brick)| stage.bricks.contains_key(&brick));
    while !lives(&stage) {
        stage.run(100);
        assert!(stage.now.since(begun) < core::time::Duration::from_secs(4), "{:?}", stage.view());
    }
    assert_eq!(stage.view().current, Slots(0b100), "{:?}", stage.view());
}

#[test]
fn a_directory_that_restarts_knows_who_stands_in_for_whom() {
    for answers in [true, false] {
        let (mut stage, first) = stage(4);
        let (lost, spare) = (brick_at(&first, 1), spare(&first));
        let status = stage.lose(lost);
        if !answers {
            // It is stored, and not in force yet.
            stage.mute = vec![brick_at(&first, 2)];
            while stage.count(Counter::StandInNamed) == 0 {
                stage.run(100);
            }
        } else {
            stage.next_view();
        }
        stage.restart();
        stage.mute.clear();
        stage.run(10_000);
        assert_eq!(stage.view().sealed, [(1, lost)], "answers: {answers}");
        assert!(stage.view().stands_in(spare));
        stage.restart();
        stage.bricks.insert(lost, status);
        stage.run(10_000);
        assert!(stage.view().is_catching_up(lost), "{:?}", stage.view());
    }
}

#[test]
fn nobody_stands_in_where_nobody_is_to_spare_or_it_is_not_wanted() {
    let (mut stage, first) = stage(3);
    stage.lose(brick_at(&first, 1));
    let view = stage.next_view();
    assert_eq!((view.sealed.len(), view.writers()), (0, Slots(0b101)));
    let (stage, first) = self::stage(4);
    let mut stage = stage.without_stand_ins();
    stage.lose(brick_at(&first, 1));
    let view = stage.next_view();
    assert_eq!((view.sealed.len(), view.writers()), (0, Slots(0b101)));
}

#[test]
fn a_brick_that_comes_too_late_to_be_named_stands_in_later() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 1), spare(&first));
    let status = stage.lose(spare);
    stage.run(10_000);
    stage.lose(lost);
    assert!(stage.next_view().sealed.is_empty());
    stage.bricks.insert(spare, status);
    assert!(stage.next_view().stands_in(spare));
}

fn spare(view: &GroupView) -> BrickId {
    (1..).map(BrickId).find(|brick| !view.has_part(*brick)).expect("a fourth brick")
}

#[test]
fn only_where_some_stand_in_is_a_group_stored_otherwise_than_by_older_releases() {
    let (mut stage, first) = stage(4);
    let stored = |stage: &Stage| {
        let record = stage.stored.iter().find(|(key, _)| key[0] == b'g').expect("a group");
        record.1.clone()
    };
    let older = |bytes: &[u8]| {
        let mut reader = wire::Reader::of(wire::Version::BEFORE_STAND_INS, bytes);
        let _: VolumeId = Wire::decode(&mut reader).expect("a volume");
        let active: Option<GroupView> = Wire::decode(&mut reader).expect("a view");
        let _: Option<GroupView> = Wire::decode(&mut reader).expect("maybe another one");
        let _: (Slots, u64) =
            (Wire::decode(&mut reader).expect("slots"), Wire::decode(&mut reader).expect("a version"));
        let _: Vec<(BrickId, base::ViewNumber)> = Wire::decode(&mut reader).expect("bricks");
        (active, reader.left())
    };
    assert_eq!(older(&stored(&stage)), (Some(first.clone()), 0));
    let status = stage.lose(brick_at(&first, 1));
    let view = stage.next_view();
    stage.run(500);
    let (active, left) = older(&stored(&stage));
    assert!(
        active.is_some_and(|active| active.sealed.is_empty()) && left > 0,
        "it refuses what it does not know"
    );
    let record = records::GroupRecord::from_bytes(&stored(&stage)).expect("a group");
    assert_eq!(record.active, Some(view));
    stage.bricks.insert(brick_at(&first, 1), status);
    stage.next_view();
    stage.run(500);
    assert_eq!(older(&stored(&stage)).1, 0, "and not for longer than they do");
}

#[test]
fn a_second_member_that_is_lost_gets_a_stand_in_of_its_own_and_each_is_asked_once() {
    let (mut stage, first) = stage(6);
    let (one, two) = (brick_at(&first, 0), brick_at(&first, 1));
    stage.lose(one);
    let stand_in = brick_at(&stage.next_view(), 0);
    let others: Vec<BrickId> =
        (1..=6).map(BrickId).filter(|brick| !first.has_part(*brick) && *brick != stand_in).collect();
    // The others do not answer: the group goes on without them, and asks no further one.
    stage.mute = others.clone();
    stage.lose(two);
    let view = stage.next_view();
    assert_eq!((&view.sealed[..], view.writers()), (&[(0, one)][..], Slots(0b101)));
    assert!(view.stands_in(stand_in));
    stage.run(10_000);
    assert_eq!(stage.view(), view);
    stage.mute.clear();
    stage.run(30_000);
    let view = stage.view();
    assert!(view.sealed.len() == 2 && others.contains(&view.members[1]), "{view:?}");
}

/// Also of an earlier release, which catches up at once.
#[test]
fn a_stand_in_is_not_promoted_whatever_it_says() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 1), spare(&first));
    let status = stage.lose(lost);
    let view = stage.next_view();
    let done = CatchUp {
        group: view.group,
        number: view.number,
        compared_blocks: 9,
        total_blocks: 9,
        fetched_bytes: 0,
        done: true,
    };
    stage.bricks.get_mut(&spare).expect("alive").groups.catching_up = vec![done];
    stage.run(5000);
    assert_eq!(stage.view(), view);
    stage.bricks.insert(lost, status);
    assert!(stage.next_view().is_catching_up(lost));
}

#[test]
fn an_evicted_member_goes_and_whoever_an_operator_named_takes_its_slot() {
    for named in [false, true] {
        let (mut stage, first) = stage(5);
        let lost = brick_at(&first, 1);
        stage.lose(lost);
        let stand_in = brick_at(&stage.next_view(), 1);
        let other = (1..=5).map(BrickId).find(|brick| !first.has_part(*brick) && *brick != stand_in);
        let other = other.expect("a fifth brick");
        let request = match named {
            true => AdminRequest::ReplaceBrick { brick: lost, by: Some(other) },
            false => AdminRequest::EvictBrick { brick: lost },
        };
        stage.ask(request).expect("two copies are left");
        stage.run(2000);
        let (view, taker) = (stage.view(), if named { other } else { stand_in });
        assert!(view.is_catching_up(taker) && !view.has_part(lost) && view.sealed.is_empty(), "{view:?}");
        assert!(!named || !view.has_part(stand_in), "{view:?}");
        let told: Vec<String> = stage.news.iter().map(ToString::to_string).collect();
        assert!(!told.iter().any(|line| line.contains("does not answer")), "{told:?}");
        let replaced = format!("{stand_in} stands in for {lost} no more in 1 group: {other} takes its place");
        assert_eq!(told.contains(&replaced), named, "{told:?}");
    }
}

#[test]
fn a_stand_in_that_has_no_room_for_all_leaves_the_slot_of_a_member_that_stays_away_to_another() {
    let (mut stage, first) = stage(5);
    let lost = brick_at(&first, 1);
    stage.lose(lost);
    let stand_in = brick_at(&stage.next_view(), 1);
    stage.fill(stand_in, 91);
    stage.run(50_000);
    assert!(stage.view().stands_in(stand_in), "it has room for what is new");
    stage.run(15_000);
    let view = stage.view();
    let taker = view.members[1];
    assert!(taker != stand_in && view.is_catching_up(taker) && !view.has_part(lost), "{view:?}");
}

#[test]
fn it_is_told_where_nobody_can_take_the_slot_for_good() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 1), spare(&first));
    stage.lose(lost);
    stage.next_view();
    stage.fill(spare, 91);
    let unplaced = |stage: &mut Stage| match stage.ask(AdminRequest::STATUS) {
        Ok(AdminReply::Status(status)) => (status.volumes[0].covered, status.volumes[0].unplaced),
        other => panic!("{other:?}"),
    };
    assert_eq!(unplaced(&mut stage), (1, 0));
    stage.run(65_000);
    assert!(stage.view().stands_in(spare), "what is new has room");
    assert_eq!(unplaced(&mut stage), (1, 1));
}

#[test]
fn a_stand_in_that_is_full_or_slow_makes_way_for_another() {
    for slow in [false, true] {
        let (mut stage, first) = stage(5);
        let lost = brick_at(&first, 1);
        stage.lose(lost);
        let stand_in = brick_at(&stage.next_view(), 1);
        if slow {
            stage.observe(6000, &[(slow::FIRST, &[stand_in])]);
        } else {
            stage.bricks.get_mut(&stand_in).expect("alive").space.fullest_percent = 94;
        }
        stage.run(12_000);
        let view = stage.view();
        assert!(!view.has_part(stand_in) && view.sealed == [(1, lost)], "slow: {slow}, {view:?}");
    }
}

/// One that has stood in for long and is late with a promise is waited for like a brick that catches up.
#[test]
fn who_stands_in_already_is_not_dropped_for_a_late_answer() {
    let (mut stage, first) = stage(4);
    let (lost, spare) = (brick_at(&first, 1), spare(&first));
    stage.lose(lost);
    let view = stage.next_view();
    assert!(view.stands_in(spare));
    stage.mute = vec![spare];
    let volume = "v".to_owned();
    stage.send(2, AdminRequest::Snapshot { volume, snapshot: "s".to_owned(), nonce: 77 });
    stage.run(2000);
    stage.mute.clear();
    stage.run(3000);
    let after = stage.view();
    assert!(after.number > view.number && after.stands_in(spare), "{after:?}");
}

#[test]
fn a_brick_that_was_not_heard_since_a_restart_has_no_stand_in_before_that_says_anything() {
    let (mut stage, first) = stage(4);
    let lost = brick_at(&first, 1);
    stage.lose(lost);
    stage.directory.desk.cluster.config.stand_ins = false;
    stage.next_view();
    stage.restart();
    stage.directory.desk.cluster.config.stand_ins = true;
    stage.run(2000);
    assert!(stage.view().sealed.is_empty(), "it may be about to call");
    stage.run(10_000);
    assert_eq!(stage.view().sealed, [(1, lost)]);
}
