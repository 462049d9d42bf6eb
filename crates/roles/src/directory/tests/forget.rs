//! Bricks that are gone are forgotten, and those that something needs are not.

use super::*;

impl Stage {
    fn forget(&mut self, brick: BrickId) -> Result<AdminReply, AdminError> {
        self.ask(AdminRequest::ForgetBrick { brick })
    }

    fn why_not(&mut self, brick: BrickId) -> String {
        self.forget(brick).expect_err("it is still needed").to_string()
    }

    fn knows(&mut self, brick: BrickId) -> bool {
        let Ok(AdminReply::Status(status)) = self.ask(AdminRequest::STATUS) else { panic!("no status") };
        status.bricks.iter().any(|entry| entry.id == brick)
    }
}

/// Whoever could ask had hundreds of them admitted, and nothing removed them.
#[test]
fn bricks_that_were_admitted_and_never_came_are_forgotten_at_once() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    for nonce in 100..400 {
        let Ok(AdminReply::Brick(brick)) = stage.ask(AdminRequest::AdmitBrick { nonce }) else { panic!() };
        assert_eq!(stage.forget(brick), Ok(AdminReply::Done));
    }
    stage.restart();
    assert_eq!(stage.directory.desk.cluster.records.bricks.len(), 3);
    stage.run(1000);
    let Ok(AdminReply::Brick(next)) = stage.ask(AdminRequest::AdmitBrick { nonce: 7 << 40 }) else {
        panic!()
    };
    assert_eq!(next, BrickId(304), "no id is given twice");
}

#[test]
fn a_brick_that_something_needs_is_not_forgotten_and_the_reason_says_what_to_do() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 1);
    let brick = brick_at(&stage.view(), 1);
    let journals = vec![wire::JournalReport { disk: 1, found: 0, durable: 9 }];
    stage.bricks.get_mut(&brick).expect("a brick").run =
        wire::Run { number: 7, journals, ..wire::Run::default() };
    stage.run(1000);
    assert!(stage.directory.desk.cluster.records.runs.contains_key(&brick));
    assert!(stage.why_not(BrickId(99)).contains("there is no brick-99"));
    assert!(
        stage
            .why_not(brick)
            .contains("member of 1 groups, one of them of volume 'v': if it is gone for good, evict")
    );
    stage.bricks.remove(&brick);
    stage.run(6000);
    assert!(stage.why_not(brick).contains("evict it first"), "it may come back");
    stage.ask(AdminRequest::EvictBrick { brick }).expect("two copies are left");
    assert!(stage.why_not(brick).contains("wait until others have its blocks"));
    stage.run(2000);
    assert!(stage.view().slot_of(brick).is_none(), "another brick has its place");
    assert_eq!(stage.forget(brick), Ok(AdminReply::Done));
    assert!(!stage.knows(brick) && stage.forget(brick) == Err(AdminError::NoBrick(brick)));
    let group = stage.view().group;
    let records = &stage.directory.desk.cluster.records;
    assert!(records.groups[&group].former.is_empty() && records.runs.is_empty());
    stage.restart();
    stage.run(1000);
    assert!(!stage.knows(brick), "nor after a restart");
}

#[test]
fn a_brick_without_groups_that_is_up_or_may_hold_fragments_is_not_forgotten() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 1);
    let view = stage.view();
    let idle = (1..=4).map(BrickId).find(|brick| view.slot_of(*brick).is_none()).expect("a fourth one");
    assert!(stage.why_not(idle).contains("is up: stop its process first"));
    stage.bricks.remove(&idle);
    stage.run(6000);
    assert!(stage.why_not(idle).contains("may hold fragments of objects"));
    stage.ask(AdminRequest::EvictBrick { brick: idle }).expect("it has no groups");
    stage.restart();
    assert!(stage.why_not(idle).contains("not known yet"), "a moment after a start nobody was heard");
    stage.run(6000);
    assert_eq!(stage.forget(idle), Ok(AdminReply::Done));
}

/// `brick evict` promised a rebuild that no brick could take.
#[test]
fn whether_others_can_take_the_places_of_a_brick_is_known_before_it_is_evicted() {
    for (bricks, is_free) in [(3, false), (4, true)] {
        let mut stage = Stage::new(bricks);
        stage.volume("raid1x3", 4);
        let brick = brick_at(&stage.view(), 1);
        let of_it = stage.directory.views().filter(|view| view.slot_of(brick).is_some()).count();
        let told = stage.ask(AdminRequest::MayEvict { brick });
        assert_eq!(told.is_ok(), is_free, "{told:?}");
        let expected = format!("in {of_it} of its {of_it} groups, one of them of volume 'v'");
        assert!(is_free || told.expect_err("no room").to_string().contains(&expected));
        // A brick that is full takes none either.
        (1..=bricks).for_each(|of| stage.fill(BrickId(of), 90));
        stage.run(200);
        assert!(stage.ask(AdminRequest::MayEvict { brick }).is_err());
    }
    let mut stage = Stage::new(3);
    assert!(stage.ask(AdminRequest::MayEvict { brick: BrickId(1) }).is_ok(), "it has no groups");
    assert!(stage.ask(AdminRequest::MayEvict { brick: BrickId(9) }).is_err());
}

#[test]
fn one_that_comes_after_all_is_a_stranger() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 1);
    let view = stage.view();
    let idle = (1..=4).map(BrickId).find(|brick| view.slot_of(*brick).is_none()).expect("a fourth one");
    let status = stage.bricks.remove(&idle).expect("a brick");
    stage.ask(AdminRequest::EvictBrick { brick: idle }).expect("it has no groups");
    stage.run(6000);
    stage.forget(idle).expect("it is gone");
    stage.bricks.insert(idle, status);
    stage.run(2000);
    assert!(!stage.knows(idle));
}
