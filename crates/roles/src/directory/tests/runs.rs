//! A brick whose disk is older than it says, and one that runs twice.

use super::*;
use base::GroupId;
use wire::{ClusterStatus, JournalReport, Place, Run, Standing, StatusPart};

const MINE: BrickId = BrickId(1);
const HERE: Place = Place { disk: 1, boot: 1 };
const AFTER_A_REBOOT: Place = Place { boot: 2, ..HERE };
pub(super) const ELSEWHERE: Place = Place { disk: 2, boot: 3 };

pub(super) fn run(number: u64, found: u64, durable: u64) -> Run {
    let journals = vec![JournalReport { disk: 1, found, durable }];
    Run { number, journals, place: HERE, ..Run::default() }
}

impl Stage {
    /// The process of the first brick from now on.
    fn runs(&mut self, run: Run) {
        self.bricks.get_mut(&MINE).expect("a brick").run = run;
    }

    fn standing(&self, number: u64) -> Option<&(u64, Standing)> {
        self.standings.get(&(MINE, number))
    }

    fn is_current(&self) -> bool {
        self.view().is_current(MINE)
    }

    /// A heartbeat of a process that is not the one of [`Stage::runs`].
    pub(super) fn beat(&mut self, run: Run, address: &str) {
        let status = BrickStatus { run, address: address.to_owned(), ..self.bricks[&MINE].clone() };
        let message = Message::Heartbeat {
            brick: MINE,
            sent: self.now,
            known: u64::MAX - 1,
            status: Box::new(status),
            streams: wire::StreamReport::default(),
            speaks: wire::Version::CURRENT,
            time: base::ClusterTime::FIRST,
        };
        self.event(DirectoryEvent::Packet { from: NodeId::Brick(MINE), packet: message.into() });
    }
}

/// A cluster whose first brick has told that its journal is durable up to 900.
pub(super) fn stage() -> Stage {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.runs(run(7, 0, 900));
    stage.run(2000);
    let Some((lease_ns, Standing::Stands { incarnation: 1, behind })) = stage.standing(7) else {
        panic!("it counts: {:?}", stage.standings)
    };
    assert!(*lease_ns > 0 && behind.is_empty());
    stage
}

/// It has the lock that the process before had.
#[test]
fn a_restart_at_the_same_place_counts_at_once() {
    let mut stage = stage();
    stage.runs(run(8, 900, 900));
    stage.run(200);
    let Some((lease_ns, Standing::Stands { incarnation: 2, behind })) = stage.standing(8) else {
        panic!("it counts: {:?}", stage.standings)
    };
    assert!(*lease_ns > 0 && behind.is_empty() && stage.is_current());
    stage.restart();
    stage.runs(run(9, 900, 900));
    stage.run(200);
    let standing = stage.standing(9);
    assert!(matches!(standing, Some((_, Standing::Stands { incarnation: 3, .. }))), "{standing:?}");
}

/// Until the lease of the process before has ended it may be cut off from the directory alone, and serve others.
#[test]
fn whoever_comes_from_where_the_process_before_may_still_run_waits_for_the_end_of_its_lease() {
    for place in [AFTER_A_REBOOT, ELSEWHERE, Place::default()] {
        let mut stage = stage();
        let lease_ns = stage.directory.desk.cluster.config.lease_ns;
        stage.runs(Run { place, ..run(8, 900, 900) });
        let mut waited_ms = 0;
        while !matches!(stage.standing(8), Some((_, Standing::Stands { .. }))) {
            stage.run(100);
            waited_ms += 100;
            assert!(waited_ms < 5000, "{place:?}: {:?}", stage.standings);
        }
        // The last heartbeat of the process before may have been one interval ago.
        assert!(waited_ms * 1_000_000 + 500_000_000 > lease_ns, "{place:?}: {waited_ms} ms");
    }
}

/// Between the copy and the end of its lease the process before may have taken writes that it told nobody of.
#[test]
fn a_disk_that_is_elsewhere_is_compared_where_others_have_all() {
    let mut stage = Stage::new(3);
    let (bare, whole) =
        (stage.volume_named("bare", "raid0x3", 1, 1), stage.volume_named("whole", "raid1x3", 1, 2));
    stage.runs(run(7, 0, 900));
    stage.run(2000);
    stage.runs(Run { place: ELSEWHERE, ..run(8, 900, 900) });
    stage.run(3500);
    let is_current = |stage: &Stage, volume: &VolumeInfo| {
        let records = &stage.directory.desk.cluster.records;
        let group = records.families.get(&volume.family).expect("a family").groups[0];
        records.groups.get(&group).and_then(|of| of.active.as_ref()).is_some_and(|view| view.is_current(MINE))
    };
    assert!(!is_current(&stage, &whole) && is_current(&stage, &bare), "{:?}", stage.standings);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameElsewhere), 1);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk), 0);
    stage.run(4000);
    stage.catch_up(MINE);
    stage.run(5000);
    assert!(is_current(&stage, &whole) && is_current(&stage, &bare), "it was compared");
    // It is at home there now.
    stage.runs(Run { place: ELSEWHERE, ..run(9, 950, 950) });
    stage.run(200);
    assert!(matches!(stage.standing(9), Some((_, Standing::Stands { behind, .. })) if behind.is_empty()));
}

/// A member that was silent is back and has all. The view without it waits for the one with the suspect disk, and must not be a reason to trust that.
#[test]
fn a_view_that_can_be_revoked_is_no_reason_to_trust_a_suspect_disk() {
    let mut stage = Stage::new(3);
    stage.volume("raid5-2+1", 1);
    stage.runs(run(7, 0, 900));
    stage.run(2000);
    let silent = BrickId(2);
    let has_all = stage.bricks.remove(&silent).expect("a brick");
    stage.mute.push(MINE);
    stage.run(4000);
    assert!(stage.directory.desk.cluster.is_revocable(stage.view().group) && stage.is_current());
    stage.bricks.insert(silent, has_all);
    stage.runs(Run { place: ELSEWHERE, ..run(8, 900, 900) });
    stage.run(4000);
    assert!(!stage.is_current() && stage.view().is_current(silent), "{:?}", stage.view());
}

/// Found by torture seed 2401559: a directory that restarted does not know which lease the process before had, nor when the other one came.
#[test]
fn a_disk_that_is_elsewhere_is_compared_also_if_the_directory_restarted_meanwhile() {
    for came_before in [true, false] {
        let mut stage = stage();
        stage.runs(Run { place: ELSEWHERE, ..run(8, 900, 900) });
        if came_before {
            stage.run(300);
            assert!(matches!(stage.standing(8), Some((_, Standing::Waits))), "{:?}", stage.standings);
        }
        stage.restart();
        stage.run(3000);
        assert!(matches!(stage.standing(8), Some((0, Standing::Waits))) && stage.is_current());
        stage.run(3000);
        assert_eq!(stage.directory.counters().get(Counter::BrickCameElsewhere), 1);
        assert!(stage.view().is_joining(MINE), "{came_before}: {:?}", stage.view());
        stage.catch_up(MINE);
        stage.run(3000);
        assert!(stage.is_current(), "it was compared");
    }
}

/// Without a lease the process before takes writes as long as a view counts on it. The next look at leases would leave it out.
#[test]
fn a_disk_that_is_elsewhere_is_compared_also_if_the_lease_of_the_process_before_has_just_ended() {
    let mut stage = stage();
    let status = stage.bricks.remove(&MINE).expect("a brick");
    let ends_next = |stage: &Stage| {
        let then = stage.now + core::time::Duration::from_millis(100);
        stage.directory.desk.cluster.leases.has_ended(then, MINE)
    };
    while !ends_next(&stage) {
        stage.run(100);
    }
    assert!(stage.is_current(), "no view has left it out");
    stage.bricks.insert(MINE, status);
    stage.runs(Run { place: ELSEWHERE, ..run(8, 900, 900) });
    stage.run(100);
    while matches!(stage.standing(8), Some((_, Standing::Waits))) {
        stage.run(100);
    }
    let standing = stage.standing(8);
    assert!(
        matches!(standing, Some((0, Standing::Stands { behind, .. })) if behind.len() == 1),
        "{standing:?}"
    );
    assert!(!stage.is_current());
    stage.run(3000);
    stage.catch_up(MINE);
    stage.run(3000);
    assert!(stage.is_current(), "it was compared");
}

/// Where a view has left it out it compares all that it has when it joins, and nothing of it counts as lost.
#[test]
fn a_disk_that_was_moved_while_its_brick_was_away_costs_nothing_more() {
    let mut stage = stage();
    let status = stage.bricks.remove(&MINE).expect("a brick");
    stage.run(5000);
    assert!(!stage.is_current());
    stage.bricks.insert(MINE, status);
    stage.runs(Run { place: ELSEWHERE, ..run(8, 900, 900) });
    stage.run(100);
    assert!(matches!(stage.standing(8), Some((_, Standing::Stands { behind, .. })) if behind.is_empty()));
    let cluster = &stage.directory.desk.cluster;
    assert!(!cluster.lags(MINE) && cluster.records.bricks[&MINE].lost.is_empty());
}

/// An empty disk is no copy: what the brick lost with the other one is entered as with any disk that was exchanged.
#[test]
fn another_disk_at_another_place_is_not_suspect() {
    let mut stage = stage();
    let journals = vec![JournalReport { disk: 99, found: 0, durable: 0 }];
    stage.bricks.get_mut(&MINE).expect("a brick").disks = vec![99];
    stage.runs(Run { journals, place: ELSEWHERE, ..run(8, 0, 0) });
    stage.run(5000);
    assert!(stage.view().is_joining(MINE), "{:?}", stage.view());
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithOtherDisks), 1);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameElsewhere), 0);
}

#[test]
fn a_disk_that_is_older_than_what_was_told_of_it_is_left_out_and_compared() {
    let mut stage = stage();
    let before = stage.view();
    stage.runs(run(8, 899, 2000));
    stage.run(200);
    assert!(stage.is_current(), "no view leaves it out while the process before may serve");
    stage.run(4000);
    let told = stage.standings.iter().filter(|((brick, number), _)| (*brick, *number) == (MINE, 8));
    assert_eq!(told.count(), 1);
    assert!(stage.view().number > before.number && !stage.is_current());
    stage.run(3000);
    assert!(stage.view().is_joining(MINE), "it catches up: {:?}", stage.view());
    assert!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk) == 1);
    let mut fences = stage.sent.iter().filter_map(|(brick, message)| match message {
        Message::Fence { speaks, .. } if *brick == MINE => Some(*speaks),
        _ => None,
    });
    assert_eq!(fences.next_back(), Some(false), "it does not speak for what it lacks");
    stage.catch_up(MINE);
    stage.run(3000);
    assert!(stage.is_current(), "it has been compared");
    let status = stage.ask(AdminRequest::STATUS).expect("a status");
    let AdminReply::Status(status) = status else { panic!("{status:?}") };
    assert!(status.warnings.iter().any(|why| why.contains("a disk of brick-1")), "{:?}", status.warnings);
}

/// The whole cluster was down, and what the directory heard last is what it stored.
#[test]
fn an_old_disk_is_known_by_a_directory_that_restarted() {
    let mut stage = stage();
    stage.restart();
    stage.runs(run(8, 899, 899));
    stage.run(15_000);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk), 1);
    assert!(!stage.is_current());
}

/// Bricks make again what a disk lacks of objects when the number of its brick is another one: of what an old disk lacks altogether nobody else would know.
#[test]
fn an_old_disk_is_another_one_to_those_who_look_after_objects() {
    let mut stage = stage();
    let disks = |stage: &Stage| {
        let places = stage.directory.desk.places_of_fragments(stage.now).expect("bricks are known");
        places.iter().find(|place| place.brick == MINE).expect("one of them").disks
    };
    let before = disks(&stage);
    stage.runs(run(8, 900, 900));
    stage.run(3000);
    assert_eq!(disks(&stage), before, "it has all that it had");
    stage.runs(run(9, 899, 899));
    stage.run(10_000);
    let first = disks(&stage);
    assert_ne!(first, before);
    stage.restart();
    stage.run(15_000);
    assert_eq!(disks(&stage), first, "a directory that restarts tells the same");
    stage.runs(run(10, 898, 898));
    stage.run(10_000);
    assert!(![before, first].contains(&disks(&stage)), "each time anew");
}

/// One of two disks is old.
#[test]
fn each_disk_is_looked_at() {
    let mut stage = stage();
    let disk = |disk, found| JournalReport { disk, found, durable: found };
    let of = |number, found: [u64; 2]| Run {
        journals: vec![disk(1, found[0]), disk(2, found[1])],
        ..run(number, 0, 0)
    };
    stage.runs(of(8, [900, 500]));
    stage.run(3000);
    assert!(stage.is_current());
    stage.runs(of(9, [5000, 499]));
    stage.run(10_000);
    assert!(!stage.is_current());
}

#[test]
fn of_two_processes_with_one_id_the_later_counts_and_has_all_compared() {
    let mut stage = stage();
    stage.runs(Run { incarnation: 1, ..run(7, 0, 900) });
    let (mut leases, mut ousted) = (Vec::new(), None);
    for _ in 0..200 {
        stage.run(100);
        stage.beat(Run { place: ELSEWHERE, ..run(8, 900, 950) }, "b:2");
        let granted = |number| stage.standing(number).is_some_and(|(lease_ns, _)| *lease_ns > 0);
        leases.push((granted(7), granted(8)));
        if let Some((_, Standing::Ousted { by })) = stage.standing(7) {
            ousted = Some(*by);
            let first = run(7, 0, 960);
            stage.runs(Run { incarnation: 1, ousted_by: *by, ..first });
        }
    }
    assert_eq!(ousted, Some(2));
    assert!(leases.iter().all(|(first, second)| !(*first && *second)), "never both: {leases:?}");
    assert!(leases[0].0 && leases.last().is_some_and(|last| last.1));
    assert!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk) > 0, "both took writes");
    let alarms = stage.directory.alarms(stage.now);
    assert!(alarms.iter().any(|why| why.contains("brick-1 runs twice: at b:2 and at")), "{alarms:?}");
}

#[test]
fn a_question_about_views_names_the_process_that_counts_and_goes_to_the_next_one_as_soon_as_that_does() {
    let mut stage = stage();
    stage.mute.push(MINE);
    stage.send(1, snapshot("s", 5));
    // By then it is asked once a second.
    stage.run(3900);
    let asked = |stage: &Stage| {
        stage.sent.iter().rev().find_map(|(brick, message)| match message {
            Message::Fence { run, .. } if *brick == MINE => Some(*run),
            _ => None,
        })
    };
    assert_eq!(asked(&stage), Some(7));
    stage.runs(run(8, 900, 900));
    stage.run(500);
    assert_eq!(asked(&stage), Some(8));
    // What the process before says late is not its word.
    let view = stage.view();
    let late = |run| Message::Fenced {
        group: view.group,
        number: base::ViewNumber(view.number.0 + 1),
        doubts: Vec::new(),
        run,
    };
    stage.sent.clear();
    for (run, counts) in [(7, false), (8, true)] {
        stage.event(DirectoryEvent::Packet { from: NodeId::Brick(MINE), packet: late(run).into() });
        let next = stage.sent.iter().any(|(_, message)| matches!(message, Message::Activate { .. }));
        assert_eq!(next, counts, "{run}");
    }
}

/// Found by torture seed 2650047: no process of the brick counted any more.
#[test]
fn a_process_that_another_store_gave_the_same_incarnation_is_not_ousted() {
    for place in [HERE, ELSEWHERE] {
        let mut stage = stage();
        stage.runs(Run { incarnation: 1, place, ..run(8, 900, 900) });
        stage.run(200);
        let counts =
            |stage: &Stage| matches!(stage.standing(8), Some((_, Standing::Stands { incarnation: 2, .. })));
        assert_eq!(counts(&stage), place == HERE, "{:?}", stage.standings);
        stage.run(5000);
        assert!(counts(&stage), "{:?}", stage.standings);
    }
}

/// What a killed process sent arrives after the process that follows it has begun to count.
#[test]
fn a_late_word_of_a_process_that_ended_is_no_second_process() {
    let mut stage = stage();
    stage.runs(run(8, 900, 950));
    stage.run(3000);
    stage.beat(Run { incarnation: 1, ..run(7, 0, 900) }, "a:1");
    stage.run(3000);
    assert!(stage.is_current() && stage.directory.alarms(stage.now).is_empty());
    // But if it has taken what the later one did not find, the later one lacks that.
    stage.beat(Run { incarnation: 1, ..run(7, 0, 901) }, "a:1");
    stage.run(8000);
    assert!(!stage.is_current());
}

/// Found by torture seed 2400430. The killed process had not heard yet that it counted, so that its word looked like one of a new process with an
/// older copy of the disk: the process that runs was ousted, and served nothing any more.
#[test]
fn a_late_word_of_a_process_that_never_knew_that_it_counted_ousts_nobody() {
    let mut stage = stage();
    stage.runs(run(8, 900, 950));
    stage.beat(run(8, 900, 950), "a:1");
    for durable in [960, 970] {
        // It was killed before the answer came.
        stage.runs(run(9, 960, durable));
        stage.run(100);
        stage.beat(run(8, 900, 950), "a:1");
    }
    stage.run(5000);
    let standing = stage.standing(9);
    assert!(
        matches!(standing, Some((1.., Standing::Stands { behind, .. })) if behind.is_empty()),
        "{standing:?}"
    );
    assert!(stage.is_current() && stage.directory.alarms(stage.now).is_empty());
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk), 0);
}

/// The copy was made before the process came that counts: nobody but the one with the copy is heard from then on.
#[test]
fn an_old_disk_at_the_same_place_is_known_at_the_latest_when_the_process_before_is_silent() {
    for (end, waits) in [(880, true), (940, false)] {
        let mut stage = stage();
        stage.runs(run(8, 900, 950));
        stage.run(500);
        stage.runs(run(9, end, end));
        stage.run(200);
        let found_old = |stage: &Stage| stage.directory.counters().get(Counter::BrickCameWithAnOldDisk);
        assert_eq!(stage.standing(9), Some(&(0, Standing::Waits)));
        assert_eq!(found_old(&stage), u64::from(!waits), "{end}");
        stage.run(1000);
        assert_eq!(found_old(&stage), 1, "{end}");
        stage.run(4000);
        assert!(!stage.is_current(), "{end}");
    }
}

/// Found by torture seed 2401781. Its machine had restarted: it was left out as dead in the moment in which it was to count. Then the disk of another
/// member was lost, which the view to come was waiting for, and the group served nobody although this one had all.
#[test]
fn a_run_that_only_waits_for_the_end_of_a_lease_is_not_dead() {
    let mut stage = stage();
    let before = stage.view();
    let (back, mut is_looked_at_in_between) = (Run { place: AFTER_A_REBOOT, ..run(8, 900, 900) }, false);
    for _ in 0..10 {
        let status = stage.bricks.remove(&MINE).expect("a brick");
        stage.run(300);
        let has_ended = stage.directory.desk.cluster.leases.has_ended(stage.now, MINE);
        is_looked_at_in_between |= has_ended && stage.standing(8) == Some(&(0, Standing::Waits));
        stage.bricks.insert(MINE, status);
        stage.beat(back.clone(), "a:1");
    }
    assert!(is_looked_at_in_between);
    let standing = stage.standing(8);
    assert!(matches!(standing, Some((1.., Standing::Stands { .. }))), "{standing:?}");
    assert_eq!(stage.view().number, before.number, "it has all that it had: {:?}", stage.view());
    // One that falls silent while it waits goes.
    stage.beat(Run { place: ELSEWHERE, ..run(9, 950, 950) }, "a:1");
    stage.bricks.remove(&MINE);
    stage.run(5000);
    assert!(!stage.is_current());
}

/// Found by torture seed 3001703. Writes wait for a brick that the directory gives no lease, and gateways call that slow; and who is heard is not away.
#[test]
fn time_in_which_a_process_waits_to_count_is_held_against_no_brick() {
    let mut stage = stage();
    // A directory that restarts does not know for how long the process before has its lease.
    stage.restart();
    stage.runs(Run { place: AFTER_A_REBOOT, ..run(8, 900, 900) });
    let mut waited_ms = 0;
    for _ in 0..12 {
        stage.observe(500, &[(super::slow::FIRST, &[MINE])]);
        let is_away = stage.directory.desk.members.is_away(MINE);
        assert!(!is_away, "after {waited_ms} ms: {:?}", stage.standings);
        waited_ms += if stage.standing(8) == Some(&(0, Standing::Waits)) { 500 } else { 0 };
    }
    assert!(waited_ms > 2000, "{waited_ms}");
    let standing = stage.standing(8);
    assert!(matches!(standing, Some((1.., Standing::Stands { .. }))), "{standing:?}");
    assert!(stage.is_current() && stage.directory.counters().get(Counter::MemberHeldForSlow) == 0);
    // What they see of the process that counts is its own.
    stage.observe(4000, &[(super::slow::FIRST, &[MINE])]);
    assert_eq!(stage.directory.counters().get(Counter::MemberHeldForSlow), 1);
}

/// The store was put back from a backup: nothing follows from it.
#[test]
fn a_directory_whose_store_is_older_than_what_bricks_know_does_nothing() {
    let mut stage = stage();
    let backup = stage.stored.clone();
    let lost = brick_at(&stage.view(), 1);
    let status = stage.bricks.remove(&lost).expect("a brick");
    stage.run(5000);
    let after = stage.view();
    assert!(!after.is_current(lost));
    let newest = stage.directory.desk.cluster.records.counts.version;
    for brick in stage.bricks.values_mut() {
        brick.run.newest_known = newest;
    }
    // The one that was left out is there again, and knows nothing of that.
    stage.bricks.insert(lost, status);
    stage.stored = backup.clone();
    (stage.sent, stage.standings) = (Vec::new(), BTreeMap::new());
    stage.restart();
    stage.run(20_000);
    assert!(stage.directory.is_outdated() && stage.sent.is_empty(), "{:?}", stage.sent);
    assert!(stage.standings.values().all(|(lease_ns, _)| *lease_ns == 0), "{:?}", stage.standings);
    let refused = stage.ask(AdminRequest::AdmitBrick { nonce: 77 });
    let Err(AdminError::Unknown(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("`brickwork directory rebuild`"), "{why}");
    let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::STATUS) else { panic!("a status") };
    assert!(
        status.warnings.iter().any(|why| why.contains("older than what brick-")),
        "{:?}",
        status.warnings
    );
}

/// What was made since the backup is not denied in the moment in which bricks are listened to.
#[test]
fn a_directory_that_may_be_outdated_denies_nothing() {
    let mut stage = stage();
    let backup = stage.stored.clone();
    let made = AdminRequest::CreateStream {
        name: "late".to_owned(),
        weight: 1,
        minimum: None,
        reservation: 0,
        limit: 0,
        nonce: 5,
        latency_us: 0,
    };
    stage.ask(made).expect("a stream more");
    let newest = stage.directory.desk.cluster.records.counts.version;
    for brick in stage.bricks.values_mut() {
        brick.run.newest_known = newest;
    }
    stage.stored = backup;
    stage.restart();
    let deleted = stage.ask(AdminRequest::DeleteStream { name: "late".to_owned(), nonce: 6 });
    let Err(AdminError::Unknown(why)) = deleted else { panic!("{deleted:?}") };
    assert!(why.contains("older than what brick-"), "{why}");
    let opened = Message::OpenVolume { operation: 9, name: "v".to_owned() };
    let mut fx = Vec::new();
    let packet = DirectoryEvent::Packet { from: ADMIN, packet: opened.into() };
    stage.directory.step(stage.now, packet, &mut fx);
    assert!(fx.is_empty(), "{fx:?}");
    let asked = stage.ask(AdminRequest::ListVolumes { from: None });
    assert!(
        matches!(asked, Err(AdminError::NotNow(_))),
        "of a question there is nothing to be known: {asked:?}"
    );
}

/// The first brick left its group, and has said so, after a copy of its disk was made that knows the map up to a version.
fn has_left() -> (Stage, GroupId, u64) {
    let mut stage = stage();
    let group = stage.view().group;
    let knew = stage.directory.desk.cluster.records.counts.version;
    // A fourth brick takes its place; it has left, and has said so.
    stage.ask(AdminRequest::AdmitBrick { nonce: 44 }).expect("a brick more");
    let space = Space { capacity_bytes: 1 << 40, ..Space::default() };
    stage.bricks.insert(BrickId(4), BrickStatus { space, disks: vec![4], ..BrickStatus::default() });
    stage.run(1000);
    stage.ask(AdminRequest::EvictBrick { brick: MINE }).expect("evicted");
    stage.run(5000);
    assert!(stage.view().slot_of(MINE).is_none());
    stage.bricks.get_mut(&MINE).expect("a brick").groups.left = vec![(group, stage.view().number)];
    stage.run(1000);
    assert!(!has_to_leave(&stage, group));
    stage.bricks.get_mut(&MINE).expect("a brick").groups.left.clear();
    (stage, group, knew)
}

fn has_to_leave(stage: &Stage, group: GroupId) -> bool {
    let record = &stage.directory.desk.cluster.records.groups[&group];
    record.former.iter().any(|(brick, _)| *brick == MINE)
}

/// Found by torture seed 2410344. The copy was made before the process before left a group, and no view counts on the brick: the copy scrubbed that group's
/// blocks for ever, which nobody compared with it, and kept them.
#[test]
fn a_copy_of_a_disk_leaves_what_the_process_before_had_left() {
    let (mut stage, group, knew) = has_left();
    stage.runs(Run { newest_known: knew, place: ELSEWHERE, ..run(8, 900, 900) });
    stage.run(5000);
    assert!(has_to_leave(&stage, group));
}

#[test]
fn a_brick_with_an_old_disk_leaves_what_it_had_left_already() {
    let (mut stage, group, knew) = has_left();
    stage.runs(Run { newest_known: knew, ..run(8, 100, 100) });
    stage.run(5000);
    assert!(has_to_leave(&stage, group));
}

/// Found by torture seed 990417. While it waits it hears of the newest version and notes that; what its disks know is older all the same.
#[test]
fn a_brick_with_an_old_disk_that_restarts_before_it_is_entered_leaves_what_it_had_left_already() {
    let (mut stage, group, knew) = has_left();
    // Who had which lease is not known: nobody is entered for a while.
    stage.restart();
    stage.runs(Run { newest_known: knew, ..run(8, 100, 150) });
    stage.run(2000);
    assert!(stage.directory.desk.cluster.lags(MINE) && !has_to_leave(&stage, group));
    stage.runs(Run { newest_known: stage.directory.version(), ..run(9, 150, 150) });
    stage.run(8000);
    assert!(!stage.directory.desk.cluster.lags(MINE), "it is entered");
    assert!(has_to_leave(&stage, group));
}

/// It was left out while it was away. As long as an earlier run of it may believe in its views it is not entered as lagging; what it
/// joined meanwhile would count as lost all the same, and a group that has lost another member by then would serve nobody.
#[test]
fn a_brick_with_an_old_disk_joins_nothing_before_it_is_entered_as_lagging() {
    let mut stage = stage();
    let status = stage.bricks.remove(&MINE).expect("a brick");
    stage.run(5000);
    assert!(!stage.is_current(), "it is away");
    stage.restart();
    stage.bricks.insert(MINE, status);
    stage.runs(run(8, 899, 899));
    let mut joined_early = false;
    for _ in 0..100 {
        stage.run(100);
        let record = &stage.directory.desk.cluster.records.runs[&MINE];
        joined_early |= record.is_behind && stage.view().is_joining(MINE);
        stage.catch_up(MINE);
    }
    assert!(!joined_early);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithAnOldDisk), 1);
    let record = &stage.directory.desk.cluster.records.bricks[&MINE];
    assert!(stage.is_current() && record.lost.is_empty(), "{record:?}");
}

/// It gave the number of a branch out again that bricks knew already, as nobody had been told yet that the snapshot is made.
#[test]
fn what_bricks_act_on_makes_a_store_of_before_an_old_one() {
    let mut stage = stage();
    let backup = stage.directory.version();
    stage.mutes_activation = true;
    stage.send(1, snapshot("v", 9));
    assert!(
        stage.sent.iter().any(|(_, message)| matches!(message, Message::Activate { .. })),
        "bricks act on it"
    );
    assert!(stage.answers.is_empty() && stage.directory.is_changing());
    assert!(stage.directory.version() > backup);
    assert_eq!(
        Records::load(&stage.stored.clone().into_iter().collect::<Vec<_>>()).unwrap().counts.version,
        stage.directory.version()
    );
}

/// Between the first word of a brick with new disks and the view that leaves it out it is heard, and still a current member.
#[test]
fn a_volume_is_not_said_to_be_whole_while_a_disk_of_it_is_new() {
    let degraded = (1, 0, 1, 0);
    let lost = (0, 1, 0, 1);
    for (layout, expected) in [("raid1x3", &[degraded][..]), ("raid0x3", &[degraded, lost])] {
        let mut stage = Stage::new(3);
        stage.volume(layout, 1);
        stage.runs(run(7, 0, 900));
        stage.run(2000);
        let status = stage.bricks.remove(&MINE).expect("a brick");
        stage.run(500);
        let journals = vec![JournalReport { disk: 99, found: 0, durable: 0 }];
        let run = Run { journals, ..run(8, 0, 0) };
        stage.bricks.insert(MINE, BrickStatus { disks: vec![99], run, ..status });
        while status_of(&mut stage, StatusPart::All).bricks[0].status.disks != [99] {
            stage.run(100);
        }
        let mut told = Vec::new();
        for _ in 0..100 {
            let all = status_of(&mut stage, StatusPart::All);
            let (volume, brick) = (&all.volumes[0], &all.bricks[0]);
            told.push((volume.degraded, volume.lost, brick.stale_groups, brick.status.groups.bare.len()));
            let summary = status_of(&mut stage, StatusPart::Summary { most: 50 });
            let counts = summary.counts.expect("a summary has them");
            assert_eq!((counts.unwell_volumes, summary.volumes.first()), (1, Some(volume)), "{layout}");
            stage.run(100);
        }
        told.dedup();
        assert_eq!(told, expected, "{layout}");
    }
}

fn status_of(stage: &mut Stage, part: StatusPart) -> ClusterStatus {
    match stage.ask(AdminRequest::Status { part }) {
        Ok(AdminReply::Status(status)) => *status,
        other => panic!("no status: {other:?}"),
    }
}

/// It was made while the run before had its lease, and the new run begins nothing before its disks are known.
#[test]
fn what_a_new_disk_has_yet_to_begin_is_not_lost() {
    let mut stage = Stage::new(3);
    stage.runs(run(7, 0, 900));
    stage.run(2000);
    stage.mutes_activation = true;
    let status = stage.bricks.remove(&MINE).expect("a brick");
    stage.send(1, volume_request("v", "raid0x3", 1, 1));
    let journals = vec![JournalReport { disk: 99, found: 0, durable: 0 }];
    let run = Run { journals, ..run(8, 0, 0) };
    stage.bricks.insert(MINE, BrickStatus { disks: vec![99], run, ..status });
    stage.run(8000);
    assert_eq!(stage.directory.counters().get(Counter::BrickCameWithOtherDisks), 1);
    stage.mutes_activation = false;
    stage.run(3000);
    assert!(matches!(stage.answers.pop_front(), Some(Ok(AdminReply::Volume(_)))), "it is made");
    let all = status_of(&mut stage, StatusPart::All);
    let (volume, brick) = (&all.volumes[0], &all.bricks[0]);
    assert_eq!((volume.lost, volume.unavailable, volume.degraded, brick.stale_groups), (0, 0, 0, 0));
}

/// What it says of its groups before the directory has judged it, nobody may take for content.
#[test]
fn a_run_that_waits_with_another_disk_already_counts_as_behind() {
    let mut stage = stage();
    let journals = vec![JournalReport { disk: 99, found: 0, durable: 0 }];
    stage.bricks.get_mut(&MINE).expect("a brick").disks = vec![99];
    stage.runs(Run { journals, place: ELSEWHERE, ..run(8, 0, 0) });
    stage.run(200);
    assert_eq!(stage.standing(8), Some(&(0, Standing::Waits)));
    assert_eq!(status_of(&mut stage, StatusPart::All).volumes[0].degraded, 1);
    // The one before goes on: the other process was stopped.
    stage.bricks.get_mut(&MINE).expect("a brick").disks = vec![1];
    stage.runs(run(7, 0, 900));
    stage.run(200);
    assert_eq!(status_of(&mut stage, StatusPart::All).volumes[0].degraded, 0);
}

/// It gets no lease before its groups have left it out, and begins nothing.
#[test]
fn no_group_of_a_new_volume_is_placed_on_a_brick_that_has_yet_to_be_left_out() {
    let mut stage = stage();
    let records = &mut stage.directory.desk.cluster.records;
    let group = records.groups.keys().next().copied().expect("a group");
    records.bricks.get_mut(&MINE).expect("a brick").lost.push(group);
    let refused = stage.ask(volume_request("w", "raid0x3", 1, 2));
    assert!(matches!(refused, Err(AdminError::TooFewBricks { needed: 3, available: 2 })), "{refused:?}");
}

/// It began to count while a directory of an earlier release ran.
#[test]
fn a_run_that_counts_tells_its_place_later() {
    let mut stage = stage();
    stage.runs(Run { place: Place::default(), ..run(8, 900, 900) });
    stage.run(5000);
    stage.runs(run(8, 900, 900));
    stage.run(1500);
    stage.restart();
    stage.runs(run(9, 900, 900));
    stage.run(200);
    let standing = stage.standing(9);
    assert!(matches!(standing, Some((_, Standing::Stands { .. }))), "its place was stored: {standing:?}");
}

#[test]
fn a_place_proves_nothing_where_the_start_of_the_machine_is_not_known() {
    let (clone, somewhere) = (Place { boot: 0, ..HERE }, Place::default());
    assert!(HERE.ends_with(HERE) && !HERE.ends_with(AFTER_A_REBOOT));
    assert!(!clone.ends_with(clone) && !somewhere.ends_with(somewhere));
    assert!(
        HERE.is_elsewhere(ELSEWHERE) && !HERE.is_elsewhere(AFTER_A_REBOOT) && !HERE.is_elsewhere(somewhere)
    );
}
