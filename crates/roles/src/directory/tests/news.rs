//! What the log tells of bricks. That no member goes or comes silently is checked after each look of every test here.

use super::*;
use base::GroupId;

impl Stage {
    /// The views that are to come, or else are in force.
    pub(super) fn latest_views(&self) -> Vec<GroupView> {
        let records = self.directory.desk.cluster.records.groups.iter();
        records.filter_map(|(_, record)| record.next.clone().or(record.active.clone())).collect()
    }

    /// Of each brick that writes in other groups than before the log has a line since it had so many.
    pub(super) fn check_news(&self, before: &[GroupView], told: usize) {
        let after = self.latest_views();
        let of = |views: &[GroupView], brick| {
            let writes = views.iter().filter(|view| view.is_writer(brick));
            writes.map(|view| (view.group, view.is_current(brick))).collect::<Vec<_>>()
        };
        let known: Vec<GroupId> = before.iter().map(|view| view.group).collect();
        let after: Vec<GroupView> = after.into_iter().filter(|view| known.contains(&view.group)).collect();
        for brick in after.iter().chain(before).flat_map(|view| view.members.clone()) {
            let is_told = self.news[told..].iter().any(|news| news.brick() == brick);
            assert!(of(before, brick) == of(&after, brick) || is_told, "nothing is told of {brick}");
        }
    }

    fn lines(&mut self) -> Vec<String> {
        core::mem::take(&mut self.news).iter().map(ToString::to_string).collect()
    }
}

#[test]
fn a_brick_that_dies_and_returns_is_a_line_each_however_many_groups_it_has() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 8);
    let admitted = stage.lines();
    assert_eq!(admitted.iter().filter(|line| line.ends_with("is admitted")).count(), 3, "{admitted:?}");
    assert!(admitted.iter().any(|line| line.starts_with("brick-2 is heard for the first time")));
    let status = stage.bricks.remove(&BrickId(2)).expect("a brick");
    stage.run(5000);
    let [News::Moved { brick: BrickId(2), groups: 8, how: Move::LeftOut(Cause::Silent(Some(span))) }] =
        &stage.news[..]
    else {
        panic!("{:?}", stage.news)
    };
    assert!((2..5).contains(&span.as_secs()), "{span:?}");
    stage.lines();
    stage.bricks.insert(BrickId(2), status);
    stage.run(1000);
    assert_eq!(
        stage.lines(),
        ["brick-2 returns to 4 groups and catches up"],
        "as many as may catch up at a time"
    );
    stage.catch_up(BrickId(2));
    stage.run(200);
    let lines = stage.lines();
    assert!(lines.contains(&"brick-2 has caught up in 4 groups and serves there".to_owned()), "{lines:?}");
}

#[test]
fn an_eviction_names_who_asked_and_what_follows() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 1);
    let gone = brick_at(&stage.view(), 1);
    stage.lines();
    stage.ask(AdminRequest::EvictBrick { brick: gone }).expect("two copies are left");
    stage.run(6000);
    let lines = stage.lines();
    assert_eq!(lines[0], format!("{gone} is evicted: {ADMIN} asked for it"));
    assert_eq!(lines[1], format!("{gone} is left out of 1 group: it is evicted"));
    assert!(lines[2].ends_with(&format!("takes the place of {gone} in 1 group and catches up")), "{lines:?}");
    stage.ask(AdminRequest::ReadmitBrick { brick: gone }).expect("it may come back");
    assert!(stage.lines()[0].contains("is readmitted"));
}

#[test]
fn what_a_disk_said_when_it_failed_is_in_the_log() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.lines();
    stage.bricks.get_mut(&BrickId(3)).expect("alive").failed = Some("input/output error".to_owned());
    stage.run(6000);
    let how = Move::LeftOut(Cause::DiskFailed("input/output error".to_owned()));
    assert_eq!(stage.news, [News::Moved { brick: BrickId(3), groups: 1, how }]);
}

#[test]
fn other_disks_are_told_with_the_identities_of_both() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let status = stage.bricks.remove(&BrickId(1)).expect("a brick");
    stage.run(500);
    stage.lines();
    stage.bricks.insert(BrickId(1), BrickStatus { disks: vec![99], ..status });
    stage.run(5000);
    let expected = News::OtherDisks { brick: BrickId(1), before: vec![1], now: vec![99], groups: 1 };
    assert_eq!(stage.news[0], expected);
    let how = Move::LeftOut(Cause::LostItsBlocks);
    assert_eq!(stage.news[1], News::Moved { brick: BrickId(1), groups: 1, how });
}

/// A member whose disk lost the record of a group is silent when it is asked about it, and the others are fenced meanwhile.
#[test]
fn a_member_that_is_up_and_does_not_answer_is_named_in_the_log_and_in_status() {
    let mut stage = Stage::new(3);
    let volume = stage.volume("raid1x3", 2);
    stage.lines();
    let (mute, other) = (BrickId(1), BrickId(2));
    stage.mute = vec![mute];
    let status = stage.bricks.remove(&other).expect("a brick");
    stage.run(6000);
    let waits_for = |stage: &mut Stage| {
        let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::STATUS) else { panic!("no status") };
        let of = status.volumes.into_iter().find(|of| of.volume.id == volume.id).expect("known");
        (of.unavailable, of.waits_for)
    };
    assert_eq!(waits_for(&mut stage), (2, vec![mute]));
    stage.run(20_000);
    let told = stage.news.iter().filter(|news| matches!(news, News::Moved { how: Move::DoesNotAnswer, .. }));
    let told: Vec<String> = told.map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "once: {told:?}");
    assert!(told[0].starts_with("brick-1 is up and does not answer about the views of 2 groups"), "{told:?}");
    stage.mute.clear();
    stage.bricks.insert(other, status);
    stage.run(1000);
    assert_eq!(waits_for(&mut stage), (0, vec![]));
}

/// What was not stored is not said to be done.
#[test]
fn a_command_is_told_when_it_is_stored() {
    let mut stage = Stage::new(3);
    stage.lines();
    stage.storage_fails = Some("full".to_owned());
    stage.ask(AdminRequest::EvictBrick { brick: BrickId(1) }).expect_err("it cannot be stored");
    assert!(stage.news.is_empty(), "{:?}", stage.news);
    stage.storage_fails = None;
    stage.run(2000);
    assert!(stage.lines().iter().any(|line| line.contains("is evicted")), "it was begun, and is done now");
}
