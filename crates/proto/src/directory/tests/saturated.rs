//! Bricks where content waits for room: all of them, which is nobody's fault, or one that is slower than its peers.

use super::{Stage, brick_at};
use crate::counters::Counter;
use base::BrickId;
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
    fn healths(&mut self, of: impl Fn(BrickId) -> Health) {
        for (brick, status) in &mut self.bricks {
            status.health = of(*brick);
        }
    }

    fn warnings(&mut self) -> Vec<String> {
        match self.ask(AdminRequest::STATUS) {
            Ok(AdminReply::Status(status)) => status.warnings,
            other => panic!("{other:?}"),
        }
    }

    fn held_for_slow(&self) -> u64 {
        self.directory.counters().get(Counter::MemberHeldForSlow)
    }
}

#[test]
fn where_all_are_saturated_nobody_is_slow_and_status_says_so() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 2);
    stage.healths(|brick| saturated(2_000 + 900 * brick.0));
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
    let warnings = stage.warnings();
    assert_eq!(
        warnings.iter().filter(|warning| warning.contains("are saturated")).count(),
        3,
        "{warnings:?}"
    );
}

#[test]
fn a_saturated_brick_that_is_three_times_slower_than_its_peers_leaves_after_four_seconds() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let slow = brick_at(&stage.view(), 1);
    stage.healths(|brick| if brick == slow { saturated(6_200) } else { KEEPS_UP });
    stage.run(3_900);
    assert_eq!(stage.held_for_slow(), 0);
    stage.run(5_000);
    assert_eq!(stage.held_for_slow(), 1);
    let why = stage.directory.desk.cluster.records.slow[&slow].why.clone();
    assert_eq!(
        why,
        "it brings a block home in 6.2 ms, 3.1 times the median of its peers (2.0 ms), and content has waited for that for 4 s"
    );
    assert!(!stage.view().is_writer(slow), "{:?}", stage.view());
}

#[test]
fn one_that_is_not_so_slow_keeps_its_place_and_is_named() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let slow = brick_at(&stage.view(), 1);
    stage.healths(|brick| if brick == slow { saturated(5_800) } else { KEEPS_UP });
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
    let warnings = stage.warnings();
    assert!(
        warnings.iter().any(|warning| warning.contains("2.9 times the median of its peers")),
        "{warnings:?}"
    );
    assert_eq!(warnings.len(), 1, "nobody else is saturated");
    // The load ends.
    stage.healths(|_| KEEPS_UP);
    stage.run(1_000);
    assert!(stage.warnings().is_empty());
}

#[test]
fn one_that_is_slow_where_nothing_waits_for_it_keeps_its_place() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let slow = brick_at(&stage.view(), 1);
    stage.healths(|brick| Health { home_us: if brick == slow { 50_000 } else { 2_000 }, ..KEEPS_UP });
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
    // For a while, again and again, and never for long enough.
    for _ in 0..5 {
        stage.healths(|brick| if brick == slow { saturated(50_000) } else { KEEPS_UP });
        stage.run(3_000);
        stage.healths(|_| KEEPS_UP);
        stage.run(1_500);
    }
    assert_eq!(stage.held_for_slow(), 0);
}

/// Bad input: what a brick says of itself takes nobody else's place.
#[test]
fn one_that_claims_to_be_fast_makes_nobody_slow() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let liar = brick_at(&stage.view(), 1);
    stage.healths(|brick| if brick == liar { Health { home_us: 1, ..HELD } } else { saturated(2_000) });
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
    stage
        .healths(|brick| if brick == liar { Health { home_us: u32::MAX, ..HELD } } else { saturated(2_000) });
    stage.run(10_000);
    assert!(
        stage.directory.desk.cluster.is_slow(liar) && stage.held_for_slow() == 1,
        "its own place it loses"
    );
}

#[test]
fn bricks_of_other_groups_are_no_peers() {
    let mut stage = Stage::new(6);
    stage.volume("raid1x3", 1);
    let members = stage.view().members.clone();
    stage.healths(|brick| {
        if members.contains(&brick) { saturated(9_000) } else { Health { home_us: 20, ..KEEPS_UP } }
    });
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
}

#[test]
fn who_is_needed_stays_and_is_named() {
    let mut stage = Stage::new(3);
    stage.volume("raid5-2+1", 1);
    let slow = brick_at(&stage.view(), 1);
    stage.healths(|brick| if brick == slow { saturated(20_000) } else { KEEPS_UP });
    stage.run(10_000);
    assert_eq!((stage.held_for_slow(), stage.view().writers().len()), (0, 3));
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
    stage.healths(
        |brick| if hot.contains(&brick) { saturated(8_000) } else { Health { home_us: 300, ..KEEPS_UP } },
    );
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
}

#[test]
fn one_peer_alone_makes_nobody_slow() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let (slow, silent) = (brick_at(&stage.view(), 1), brick_at(&stage.view(), 2));
    stage.healths(|brick| match brick {
        _ if brick == slow => saturated(20_000),
        _ if brick == silent => Health { home_us: 0, ..KEEPS_UP },
        _ => Health { home_us: 1, ..KEEPS_UP },
    });
    stage.run(30_000);
    assert_eq!(stage.held_for_slow(), 0);
}

#[test]
fn a_brick_that_waits_less_than_half_of_the_time_is_slow_no_more() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let slow = brick_at(&stage.view(), 1);
    stage.healths(|brick| if brick == slow { saturated(20_000) } else { KEEPS_UP });
    stage.run(2_500);
    stage.healths(|brick| match brick == slow {
        true => Health { held_permille: 300, ..saturated(20_000) },
        false => KEEPS_UP,
    });
    stage.run(20_000);
    assert_eq!(stage.held_for_slow(), 0);
    // It dies, and is not told of as saturated.
    stage.bricks.remove(&slow);
    stage.mute.push(slow);
    stage.run(6_000);
    let warnings = stage.warnings();
    assert!(!warnings.iter().any(|warning| warning.contains("are saturated")), "{warnings:?}");
}
