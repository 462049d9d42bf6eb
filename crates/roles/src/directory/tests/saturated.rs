//! Bricks where content waits for room: all of them, which is nobody's fault, or one that is slower than its peers.

use super::{Stage, brick_at};
use base::BrickId;
use rules::counters::Counter;
use wire::{AdminReply, AdminRequest, Health};

/// Content waits all the time, and a block comes home in so many microseconds.
fn saturated(home_us: u32) -> Health {
    Health { home_us, ..HELD }
}

const HELD: Health =
    Health { write_us: 900, read_us: 100, late_us: 100, round_trip_us: 200, home_us: 0, held_permille: 980 };
/// Nothing waits, as a slower brick of the same groups holds them up.
const KEEPS_UP: Health = Health { home_us: 2_000, held_permille: 0, ..HELD };

impl Stage {
    /// Three bricks with one volume of this layout, and the member that is to be slower than the others.
    fn with_member(layout: &str) -> (Stage, BrickId) {
        let mut stage = Stage::new(3);
        stage.volume(layout, 1);
        let member = brick_at(&stage.view(), 1);
        (stage, member)
    }

    fn healths(&mut self, of: impl Fn(BrickId) -> Health) {
        for (brick, status) in &mut self.bricks {
            status.health = of(*brick);
        }
    }

    /// One brick is so, and the others keep up.
    fn beside(&mut self, brick: BrickId, health: Health) {
        self.healths(|of| if of == brick { health } else { KEEPS_UP });
    }

    fn warnings(&mut self) -> Vec<String> {
        match self.ask(AdminRequest::STATUS) {
            Ok(AdminReply::Status(status)) => status.warnings,
            other => panic!("{other:?}"),
        }
    }

    /// How many bricks were held for slow, when so much time has passed.
    fn slow_after(&mut self, milliseconds: u64) -> u64 {
        self.run(milliseconds);
        self.directory.counters().get(Counter::MemberHeldForSlow)
    }
}

#[test]
fn where_all_are_saturated_nobody_is_slow_and_status_says_so() {
    let (mut stage, _) = Stage::with_member("raid1x3");
    stage.healths(|brick| saturated(2_000 + 900 * brick.0));
    assert_eq!(stage.slow_after(30_000), 0);
    let warnings = stage.warnings();
    assert_eq!(
        warnings.iter().filter(|warning| warning.contains("are saturated")).count(),
        3,
        "{warnings:?}"
    );
}

#[test]
fn a_saturated_brick_that_is_three_times_slower_than_its_peers_leaves_after_four_seconds() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.beside(slow, saturated(6_200));
    assert_eq!((stage.slow_after(3_900), stage.slow_after(5_000)), (0, 1));
    let why = stage.directory.desk.cluster.records.slow[&slow].why.clone();
    assert_eq!(
        why,
        "it brings a block home in 6.2 ms, 3.1 times the median of its peers (2.0 ms), and content has waited for that for 4 s"
    );
    assert!(!stage.view().is_writer(slow), "{:?}", stage.view());
}

/// A slow brick that returns holds up all writes of its groups, until its peers have brought home what they had.
#[test]
fn one_whose_peers_have_nothing_left_to_bring_home_is_as_slow_as_it_was() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.beside(slow, saturated(20_000));
    assert_eq!(stage.slow_after(2_500), 0);
    stage.healths(|of| if of == slow { saturated(20_000) } else { Health { home_us: 0, ..KEEPS_UP } });
    assert_eq!(stage.slow_after(5_000), 1);
    // Where they never had any, nothing is known.
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.healths(|of| if of == slow { saturated(20_000) } else { Health { home_us: 0, ..KEEPS_UP } });
    assert_eq!(stage.slow_after(30_000), 0);
}

#[test]
fn one_that_is_not_so_slow_keeps_its_place_and_is_named() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.beside(slow, saturated(5_800));
    assert_eq!(stage.slow_after(30_000), 0);
    let warnings = stage.warnings();
    let [warning] = &warnings[..] else { panic!("nobody else is saturated: {warnings:?}") };
    assert!(warning.contains("2.9 times the median of its peers"), "{warning}");
    // The load ends.
    stage.beside(slow, KEEPS_UP);
    stage.run(1_000);
    assert!(stage.warnings().is_empty());
}

#[test]
fn one_that_is_slow_where_nothing_waits_for_it_keeps_its_place() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.beside(slow, Health { home_us: 50_000, ..KEEPS_UP });
    assert_eq!(stage.slow_after(30_000), 0);
    // For a while, again and again, and never for long enough.
    for _ in 0..5 {
        stage.beside(slow, saturated(50_000));
        stage.run(3_000);
        stage.beside(slow, KEEPS_UP);
        assert_eq!(stage.slow_after(1_500), 0);
    }
}

/// Bad input: what a brick says of itself takes nobody else's place.
#[test]
fn one_that_claims_to_be_fast_makes_nobody_slow() {
    let (mut stage, liar) = Stage::with_member("raid1x3");
    stage.healths(|brick| saturated(if brick == liar { 1 } else { 2_000 }));
    assert_eq!(stage.slow_after(30_000), 0);
    stage.healths(|brick| saturated(if brick == liar { u32::MAX } else { 2_000 }));
    assert_eq!(stage.slow_after(10_000), 1);
    assert!(stage.directory.desk.cluster.is_slow(liar), "its own place it loses");
}

#[test]
fn bricks_of_other_groups_are_no_peers() {
    let mut stage = Stage::new(6);
    stage.volume("raid1x3", 1);
    let members = stage.view().members.clone();
    let fast = Health { home_us: 20, ..KEEPS_UP };
    stage.healths(|brick| if members.contains(&brick) { saturated(9_000) } else { fast });
    assert_eq!(stage.slow_after(30_000), 0);
}

#[test]
fn who_is_needed_stays_and_is_named() {
    let (mut stage, slow) = Stage::with_member("raid5-2+1");
    stage.beside(slow, saturated(20_000));
    assert_eq!((stage.slow_after(10_000), stage.view().writers().len()), (0, 3));
    let kept = stage.directory.counters().get(Counter::SlowMemberKeptWhereItsGroupsNeedIt);
    assert_eq!(kept, 1);
}

#[test]
fn where_groups_have_unlike_loads_those_with_the_same_load_are_compared() {
    let mut stage = Stage::new(16);
    stage.volume_named("w", "raid1x3", 64, 2);
    let busy = stage.volume("raid1x3", 1).id;
    stage.run(2000);
    let hot = stage.directory.views().find(|view| view.volume == busy).expect("made").members.clone();
    // The others bring home what lies in rows.
    let in_rows = Health { home_us: 300, ..KEEPS_UP };
    stage.healths(|brick| if hot.contains(&brick) { saturated(8_000) } else { in_rows });
    assert_eq!(stage.slow_after(30_000), 0);
}

#[test]
fn one_peer_alone_makes_nobody_slow() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    let silent = brick_at(&stage.view(), 2);
    stage.healths(|brick| match brick {
        _ if brick == slow => saturated(20_000),
        _ => Health { home_us: u32::from(brick != silent), ..KEEPS_UP },
    });
    assert_eq!(stage.slow_after(30_000), 0);
}

#[test]
fn a_brick_that_waits_less_than_half_of_the_time_is_slow_no_more() {
    let (mut stage, slow) = Stage::with_member("raid1x3");
    stage.beside(slow, saturated(20_000));
    stage.run(2_500);
    stage.beside(slow, Health { held_permille: 300, ..saturated(20_000) });
    assert_eq!(stage.slow_after(20_000), 0);
    // It dies, and is not told of as saturated.
    stage.bricks.remove(&slow);
    stage.mute.push(slow);
    stage.run(6_000);
    let warnings = stage.warnings();
    assert!(!warnings.iter().any(|warning| warning.contains("are saturated")), "{warnings:?}");
}
