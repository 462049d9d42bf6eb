//! In how many groups a brick that returns catches up at a time.

use super::{Stage, brick_at, volume_request};
use crate::directory::members::LOOKS_MAX;
use base::{BrickId, GroupId};
use rules::counters::Counter;
use wire::{AdminReply, AdminRequest, BrickStatus, GroupView, Slots};

const BACK: BrickId = BrickId(2);

/// A cluster whose second brick was away, and is back; all groups are to take it in.
fn returned(groups: u32) -> Stage {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", groups);
    let status = stage.bricks.remove(&BACK).expect("a brick");
    stage.run(5000);
    stage.bricks.insert(BACK, status);
    stage
}

/// How many groups it joins at a time in each of some rounds; it is done with those of a round when that ends.
fn joins(stage: &mut Stage, rounds: usize, milliseconds: u64) -> Vec<usize> {
    let mut counts = Vec::new();
    for _ in 0..rounds {
        stage.run(milliseconds);
        counts.push(stage.directory.views().filter(|view| view.is_joining(BACK)).count());
        stage.catch_up(BACK);
    }
    counts
}

#[test]
fn it_joins_more_groups_at_a_time_while_it_is_soon_done_with_each() {
    let mut stage = returned(300);
    let counts = joins(&mut stage, 20, 500);
    assert_eq!(counts[0], 4, "{counts:?}");
    assert_eq!(counts.iter().max(), Some(&64), "{counts:?}");
    stage.run(2000);
    assert!(stage.directory.views().all(|view| view.is_current(BACK)), "{counts:?}");
}

#[test]
fn it_joins_few_groups_at_a_time_where_each_takes_long() {
    let mut stage = returned(100);
    let counts = joins(&mut stage, 10, 3000);
    assert!(counts.iter().all(|count| *count == 4), "{counts:?}");
}

#[test]
fn it_joins_fewer_groups_again_once_they_take_longer() {
    let mut stage = returned(400);
    let quick = joins(&mut stage, 5, 500);
    let slow = joins(&mut stage, 3, 3000);
    assert!(quick.last() > Some(&8) && slow.last() == Some(&4), "{quick:?} {slow:?}");
}

/// Some take very long, once the brick was soon done with others.
#[test]
fn a_group_that_takes_long_holds_up_no_others_and_four_of_them_all() {
    for (long, holds_all) in [(1, false), (4, true)] {
        let mut stage = returned(400);
        joins(&mut stage, 3, 500);
        stage.run(500);
        let joining = stage.directory.views().filter(|view| view.is_joining(BACK));
        let heavy: Vec<GroupId> = joining.map(|view| view.group).take(long).collect();
        for _ in 0..10 {
            stage.catch_up(BACK);
            let done = &mut stage.bricks.get_mut(&BACK).expect("alive").groups.catching_up;
            done.retain(|known| !heavy.contains(&known.group));
            stage.run(500);
        }
        let mut views = stage.directory.views();
        let are_others_done = views.all(|view| view.is_current(BACK) || heavy.contains(&view.group));
        assert_eq!(are_others_done, !holds_all, "{long}");
    }
}

#[test]
fn how_fast_it_was_is_forgotten_after_a_while() {
    let mut stage = returned(40);
    let quick = joins(&mut stage, 10, 500);
    assert!(quick.iter().max() > Some(&8) && quick.last() == Some(&0), "{quick:?}");
    let status = stage.bricks.remove(&BACK).expect("alive");
    stage.run(15_000);
    stage.bricks.insert(BACK, status);
    assert_eq!(joins(&mut stage, 1, 500), [4], "after {quick:?}");
}

/// Of groups that are not complete only some are looked at in each tick.
#[test]
fn it_is_taken_back_also_where_many_groups_wait_for_another_brick() {
    let mut stage = Stage::new(5).without_stand_ins();
    for nonce in 1..=2 {
        stage.volume_named(&format!("v{nonce}"), "raid1x3", 1000, nonce);
    }
    stage.bricks.remove(&BrickId(3));
    let status = stage.bricks.remove(&BACK).expect("a brick");
    stage.run(5000);
    stage.bricks.insert(BACK, status);
    joins(&mut stage, 40, 500);
    stage.run(2000);
    let views = || stage.directory.views();
    assert!(views().all(|view| view.slot_of(BACK).is_none() || view.is_current(BACK)));
    let waiting = views().filter(|view| view.current.len() < 3).count();
    let of = |brick| views().filter(|view| view.slot_of(brick).is_some()).count();
    let all: Vec<usize> = (1..=5).map(|brick| of(BrickId(brick))).collect();
    assert!(waiting > LOOKS_MAX, "{waiting}, {all:?}");
}

/// Nobody can join these before that brick is back.
#[test]
fn groups_that_wait_for_a_brick_that_died_meanwhile_hold_up_no_others() {
    let mut stage = Stage::new(3).without_stand_ins();
    stage.volume("raid1x2", 200);
    let status = stage.bricks.remove(&BACK).expect("a brick");
    stage.run(5000);
    let died = BrickId(3);
    stage.bricks.remove(&died);
    stage.bricks.insert(BACK, status);
    joins(&mut stage, 20, 500);
    stage.run(2000);
    let waiting = |view: &wire::GroupView| view.slot_of(died).is_some() && view.slot_of(BACK).is_some();
    let of_back = || stage.directory.views().filter(|view| view.slot_of(BACK).is_some());
    assert!(of_back().filter(|view| waiting(view)).count() > 4);
    assert!(of_back().all(|view| waiting(view) || view.is_current(BACK)));
}

/// Found by torture seeds 2401781 and 2430811. The view without the silent one waited for ever for the one that was lost, although the silent one was
/// back and had all.
#[test]
fn who_is_back_before_the_view_without_it_is_sure_to_come_takes_the_place_of_one_that_is_lost() {
    for restarts in [false, true] {
        let mut stage = Stage::new(3);
        stage.volume("raid5-2+1", 1);
        let (silent, lost) = (brick_at(&stage.view(), 0), brick_at(&stage.view(), 1));
        let has_all = stage.bricks.remove(&silent).expect("a brick");
        stage.mute.push(lost);
        stage.run(4000);
        assert_eq!(stage.view().current, Slots(0b111), "who is lost has not promised");
        let status = stage.bricks.remove(&lost).expect("a brick");
        if restarts {
            stage.restart();
        }
        // The group bears the loss of one, and that one is back with nothing.
        stage.run(1000);
        stage.bricks.insert(silent, has_all);
        stage.run(1000);
        stage.bricks.insert(lost, BrickStatus { disks: vec![77], ..status });
        // It promises nothing for what it lost.
        stage.run(if restarts { 12_000 } else { 6000 });
        assert_eq!(stage.view().current, Slots(0b101), "{restarts}");
        stage.mute.clear();
        stage.run(35_000);
        assert_eq!((stage.view().current, stage.view().joining), (Slots(0b101), Slots(0b010)));
        assert!(stage.directory.counters().get(Counter::ViewChangeRevoked) > 0);
        stage.catch_up(lost);
        stage.run(1000);
        assert_eq!(stage.view().current, Slots(0b111));
    }
}

/// What a brick has lost is remembered until no view counts on it any more: the view without it may yet be revoked.
#[test]
fn a_loss_is_not_forgotten_with_a_view_that_is_revoked() {
    let mut stage = Stage::new(3);
    stage.volume("raid5-2+1", 1);
    let (lost, silent) = (brick_at(&stage.view(), 0), brick_at(&stage.view(), 1));
    // The view without the one that lost its disk waits for a member that becomes silent meanwhile.
    stage.mute.push(silent);
    stage.bricks.get_mut(&lost).expect("a brick").disks = vec![77];
    stage.run(4000);
    assert_eq!(stage.view().current, Slots(0b111), "who is asked has not promised");
    let has_all = stage.bricks.remove(&silent).expect("a brick");
    stage.run(6000);
    assert_eq!(stage.view().current, Slots(0b111), "of the two that are there one has nothing");
    stage.mute.clear();
    stage.bricks.insert(silent, has_all);
    stage.run(3000);
    assert!(stage.view().is_current(silent) && !stage.view().is_current(lost), "{:?}", stage.view());
}

/// A volume whose first view is stored, asked for, and not begun anywhere.
fn yet_to_begin(bricks: u32, layout: &str) -> (Stage, GroupView) {
    let mut stage = Stage::new(bricks);
    stage.mutes_activation = true;
    stage.send(1, volume_request("v", layout, 1, 9));
    stage.run(200);
    let records = &stage.directory.desk.cluster.records;
    let next = records.groups.iter().find_map(|(_, record)| record.next.clone());
    (stage, next.expect("a view to come"))
}

fn begins(stage: &mut Stage) -> GroupView {
    stage.mutes_activation = false;
    stage.run(4000);
    assert!(matches!(stage.answers.pop_front(), Some(Ok(AdminReply::Volume(_)))), "it is made");
    assert!(stage.directory.desk.cluster.records.bare.is_empty(), "nobody has written there");
    stage.view()
}

#[test]
fn a_first_view_takes_its_own_members_back() {
    let (mut stage, first) = yet_to_begin(3, "raid1x2");
    let (one, other) = (brick_at(&first, 0), brick_at(&first, 1));
    let status = stage.bricks.remove(&one).expect("a brick");
    stage.run(4000);
    stage.bricks.remove(&other);
    stage.bricks.insert(one, status);
    stage.run(4000);
    let view = begins(&mut stage);
    assert!(view.is_current(one) && !view.is_writer(other) && view.current == Slots(0b11), "{view:?}");
}

#[test]
fn a_first_view_begins_on_a_brick_whose_disks_were_exchanged_meanwhile() {
    let (mut stage, first) = yet_to_begin(4, "raid0x3");
    stage.bricks.remove(&brick_at(&first, 2));
    stage.run(4000);
    let records = &stage.directory.desk.cluster.records;
    let next = records.groups.iter().find_map(|(_, record)| record.next.clone()).expect("a view to come");
    let taker = brick_at(&next, 2);
    assert_ne!(taker, brick_at(&first, 2));
    stage.bricks.get_mut(&taker).expect("a brick").disks = vec![77];
    stage.run(5000);
    assert!(begins(&mut stage).is_current(taker));
}

#[test]
fn of_a_deleted_volume_no_view_is_left_that_could_be_revoked() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.bricks.remove(&brick_at(&stage.view(), 0));
    stage.mute.push(brick_at(&stage.view(), 1));
    stage.run(4000);
    assert!(stage.directory.desk.cluster.is_revocable(stage.view().group));
    stage.ask(AdminRequest::DeleteVolume { name: "v".to_owned(), nonce: 5 }).expect("it is deleted");
    stage.restart();
    assert!(stage.directory.desk.cluster.records.revocable.is_empty(), "nor stored");
}
