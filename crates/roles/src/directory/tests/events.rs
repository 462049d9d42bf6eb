//! What is remembered of what happened to bricks: all that the log tells, the latest of it, and no event before what it tells of.

use super::slow::FIRST;
use super::*;
use rules::counters::Counter;
use wire::{Events, Wire};

const BRICK: BrickId = BrickId(2);

impl Stage {
    fn page(&mut self, after: u64, most: u32) -> Events {
        match self.ask(AdminRequest::ListEvents { after, most }) {
            Ok(AdminReply::Events(page)) => *page,
            other => panic!("{other:?}"),
        }
    }

    /// All events, in pages.
    fn events(&mut self) -> Vec<wire::Event> {
        let mut events: Vec<wire::Event> = Vec::new();
        loop {
            let page = self.page(events.last().map_or(0, |last| last.number), 300);
            if page.events.is_empty() {
                return events;
            }
            events.extend(page.events);
        }
    }

    /// Something happens to a brick, so many times.
    fn evict_and_readmit(&mut self, times: usize) {
        for _ in 0..times / 2 {
            self.ask(AdminRequest::EvictBrick { brick: BRICK }).expect("it has no groups");
            self.ask(AdminRequest::ReadmitBrick { brick: BRICK }).expect("it is there");
        }
    }

    /// Records of events in the store.
    fn records(&self) -> usize {
        self.stored.keys().filter(|key| key[0] == super::super::events::PREFIX).count()
    }

    fn catch_up_with_all(&mut self, brick: BrickId) {
        for _ in 0..4 {
            self.catch_up(brick);
            self.run(500);
        }
    }

    /// A brick dies and comes back.
    fn lose_and_find(&mut self, brick: BrickId) {
        let status = self.bricks.remove(&brick).expect("a brick");
        self.run(5000);
        self.bricks.insert(brick, status);
        self.run(1000);
        self.catch_up(brick);
        self.run(500);
    }
}

fn numbers(events: &[wire::Event]) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}

#[test]
fn what_the_log_tells_is_remembered_over_a_restart_with_time_cause_and_evidence() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 4);
    let began = stage.now;
    let gone = brick_at(&stage.view(), 1);
    stage.lose_and_find(gone);
    let other = brick_at(&stage.view(), 0);
    stage.ask(AdminRequest::EvictBrick { brick: other }).expect("two copies are left");
    stage.run(6000);
    let events = stage.events();
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    let told = sorted(stage.news.iter().map(ToString::to_string).collect());
    assert_eq!(sorted(events.iter().map(|event| event.text.clone()).collect()), told);
    assert_eq!(numbers(&events), (1..=told.len() as u64).collect::<Vec<_>>());
    let left = events.iter().find(|event| event.kind == "left-out").expect("it died");
    assert_eq!((left.brick, left.cause.as_str(), left.is_trouble), (gone, "silent", true));
    assert!(left.at > began + Duration::from_secs(2) && left.at < began + Duration::from_secs(5), "{left:?}");
    assert!(left.text.starts_with(&format!("{gone} is left out of ")), "{left:?}");
    assert!(left.text.contains("nothing was heard of it for 2."), "{left:?}");
    let kinds: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = [
        "admitted",
        "came",
        "evicted",
        "left-out",
        "returns",
        "serves",
        "stands-down",
        "stands-in",
        "takes-over",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);

    stage.restart();
    stage.run(2000);
    assert_eq!(stage.events(), events);
    stage.ask(AdminRequest::ReadmitBrick { brick: other }).expect("it may come back");
    let after = stage.page(told.len() as u64, 1);
    assert_eq!(
        (numbers(&after.events), after.events[0].kind.as_str()),
        (vec![told.len() as u64 + 1], "readmitted")
    );
}

#[test]
fn the_latest_thousand_are_kept_and_numbers_go_on_after_a_restart() {
    let kept = Events::KEPT as u64;
    let mut stage = Stage::new(3);
    let before = stage.page(0, u32::MAX).newest;
    stage.evict_and_readmit(Events::KEPT + 300);
    let newest = before + kept + 300;
    for restarts in [false, true] {
        if restarts {
            stage.restart();
            stage.run(2000);
        }
        let events = stage.events();
        assert_eq!(
            numbers(&events),
            (newest - kept + 1..=newest).collect::<Vec<_>>(),
            "restarts: {restarts}"
        );
        let page = stage.page(0, 1);
        assert_eq!((page.oldest, page.newest), (events[0].number, newest));
        assert_eq!(stage.records(), Events::KEPT);
    }
    stage.evict_and_readmit(2);
    assert_eq!(numbers(&stage.page(newest, 9).events), [newest + 1, newest + 2]);
    assert_eq!(stage.records(), Events::KEPT);
}

#[test]
fn a_page_ends_with_so_many_events_or_bytes_and_has_one_at_least() {
    let mut stage = Stage::new(3);
    stage.evict_and_readmit(40);
    let all = stage.events();
    let some = stage.page(4, 3);
    assert_eq!(some.events, all[4..7]);
    assert_eq!((some.oldest, some.newest), (1, all.len() as u64));
    assert_eq!(stage.page(4, 0).events, []);
    for after in [all.len() as u64, u64::MAX] {
        assert_eq!(stage.page(after, 9).events, []);
    }
    for page_bytes in [600, 1] {
        stage.directory.desk.cluster.config.page_bytes = page_bytes;
        let page = stage.page(0, u32::MAX);
        let length: usize = page.events.iter().map(|event| event.to_bytes().len()).sum();
        assert!(length <= page_bytes || page.events.len() == 1, "{length} bytes in {page_bytes}");
        assert!(page.events.len() < 9 && !page.events.is_empty());
        assert_eq!(stage.events(), all);
    }
}

#[test]
fn an_event_is_told_once_it_is_stored() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let before = stage.events();
    let lost = brick_at(&stage.view(), 1);
    stage.storage_fails = Some("full".to_owned());
    stage.bricks.remove(&lost);
    stage.ask(AdminRequest::EvictBrick { brick: lost }).expect_err("it cannot be stored");
    stage.run(10_000);
    let is_left_out = |news: &News| news.cause().is_some();
    assert!(stage.news.iter().any(is_left_out), "the log tells at once");
    assert_eq!(stage.events(), before);
    // What has not been stored is taken back by a restart, and so are its numbers.
    stage.storage_fails = None;
    stage.restart();
    stage.run(10_000);
    let events = stage.events();
    assert_eq!(events[..before.len()], before[..]);
    assert_eq!(events[before.len()].number, before.len() as u64 + 1);
    assert!(events[before.len()..].iter().all(|event| event.kind == "left-out"), "{events:?}");

    stage.storage_fails = Some("full".to_owned());
    stage.ask(AdminRequest::EvictBrick { brick: lost }).expect_err("it cannot be stored");
    stage.storage_fails = None;
    stage.run(3000);
    assert_eq!(stage.events().last().expect("it is stored").kind, "evicted");
    let answer = stage.ask(AdminRequest::ReadmitBrick { brick: lost });
    assert_eq!(answer, Ok(AdminReply::Done), "all is as before");
}

/// However much happens meanwhile, what waits for the store has a place for each event that is kept.
#[test]
fn a_store_that_fails_for_long_has_no_more_events_waiting_than_are_kept() {
    let mut stage = Stage::new(3);
    stage.storage_fails = Some("full".to_owned());
    let mut fx = Vec::new();
    for round in 0..Events::KEPT * 3 {
        let news = News::Came { brick: BRICK, address: format!("10.0.0.1:{round}") };
        stage.directory.desk.cluster.tell(stage.now, vec![news], &mut fx);
        stage.follow(core::mem::take(&mut fx));
    }
    let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::STATUS) else { panic!("no status") };
    assert_eq!(status.store.expect("it fails").waiting as usize, Events::KEPT);
    stage.storage_fails = None;
    stage.run(2000);
    let events = stage.events();
    assert_eq!(events.len(), Events::KEPT);
    assert!(events.last().expect("the last one").text.ends_with(":2999"));
    stage.restart();
    stage.run(2000);
    assert_eq!(stage.events(), events);
}

/// Of earlier releases, and of a directory that was made anew: numbers that a directory before may have given are not given again.
#[test]
fn a_store_without_events_begins_above_all_numbers_that_were_ever_given() {
    let mut stage = Stage::new(3);
    stage.evict_and_readmit(20);
    let before = stage.page(0, 9).newest;
    stage.stored.retain(|key, _| key[0] != super::super::events::PREFIX);
    stage.restart();
    stage.run(2000);
    assert_eq!(stage.page(0, 9), Events::default());
    stage.evict_and_readmit(2);
    let first = stage.events();
    assert_eq!(first.len(), 2);
    assert!(first[0].number > before && first[1].number == first[0].number + 1, "{first:?}");
    assert!(first[0].number >= base::ClusterTime::FIRST.0);
    stage.restart();
    stage.run(2000);
    assert_eq!(stage.events(), first);
}

/// When a brick dies, its event is in the last of the writes of the views that go on without it.
#[test]
fn what_happens_to_views_is_stored_with_them_and_costs_no_write() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 4);
    stage.writes.clear();
    stage.bricks.remove(&BRICK);
    stage.run(5000);
    let is_of = |write: &Vec<u8>, prefix| write.contains(&prefix);
    let of_views = stage.writes.iter().filter(|write| is_of(write, b'r')).take(4);
    let with_events = of_views.map(|write| is_of(write, b'e')).collect::<Vec<_>>();
    assert_eq!(with_events, [false, false, false, true], "{:?}", stage.writes);
    assert_eq!(stage.writes.iter().filter(|write| is_of(write, b'e')).count(), 1, "{:?}", stage.writes);
    let last = stage.events().pop().expect("it is told");
    assert_eq!((last.brick, last.cause.as_str()), (BRICK, "silent"));
}

#[test]
fn nothing_is_stored_while_nothing_happens() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 4);
    stage.run(2000);
    let (stored, version) = (stage.stored.clone(), stage.directory.version());
    stage.run(10_000);
    assert_eq!((stage.stored.clone(), stage.directory.version()), (stored, version));
}

#[test]
fn a_brick_that_is_slow_is_a_count_a_line_and_an_event_for_each_thing_that_is_decided() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 6);
    let slow = brick_at(&stage.view(), 1);
    let needs = |stage: &Stage| stage.directory.views().filter(|view| view.is_writer(slow)).count();
    let groups = needs(&stage);
    stage.observe(6000, &[(FIRST, &[slow])]);
    assert_eq!(needs(&stage), 0);
    stage.run(11_000);
    stage.catch_up_with_all(slow);
    assert_eq!(needs(&stage), groups, "it has returned to all");
    let lost = stage.bricks.keys().copied().find(|brick| *brick != slow).expect("another one");
    stage.observe(6000, &[(FIRST, &[slow])]);
    stage.bricks.remove(&lost);
    stage.run(8000);
    stage.catch_up_with_all(slow);
    stage.observe(4000, &[(FIRST, &[slow])]);

    let events = stage.events();
    let of = |kind: &str, cause: &str| {
        let are_told = events.iter().filter(|event| event.kind == kind && event.cause == cause);
        are_told.filter(|event| event.brick == slow).count() as u64
    };
    let lines = |is_so: &dyn Fn(&News) -> bool| stage.news.iter().filter(|news| is_so(news)).count() as u64;
    let counted = |counter| stage.directory.counters().get(counter);
    let held = counted(Counter::MemberHeldForSlow);
    assert_eq!((held, of("held-for-slow", "")), (2, 2));
    assert_eq!(lines(&|news| matches!(news, News::HeldForSlow { .. })), 2);
    let (came, needed) = (counted(Counter::SlowMemberCameBack), counted(Counter::SlowMemberNeededAgain));
    assert_eq!((came, needed, of("well-again", "")), (1, 1, 2));
    assert_eq!(lines(&|news| matches!(news, News::WellAgain { .. })), 2);
    let kept = counted(Counter::SlowMemberKeptWhereItsGroupsNeedIt);
    assert_eq!((kept, of("kept-though-slow", "")), (1, 1));
    // It leaves all groups at once, and is counted for each.
    let left = stage.news.iter().filter_map(|news| match news {
        News::Moved { groups, how: Move::LeftOut(Cause::Slow(_)), .. } => Some(*groups),
        _ => None,
    });
    let left: Vec<usize> = left.collect();
    assert_eq!((left[0], left.len() as u64), (groups, of("left-out", "slow")));
    assert_eq!(counted(Counter::SlowMemberLeftOut), left.iter().sum::<usize>() as u64);
}
