//! Leases that are renewed between heartbeats, and who is dead when.

use super::runs::{ELSEWHERE, run, stage};
use super::*;
use core::time::Duration;
use wire::Run;

const MINE: BrickId = BrickId(1);
const LEASE_NS: u64 = 2_000_000_000;
/// The process of the first brick.
const RUN: u64 = 7;

impl Stage {
    /// How long a lease is that the first brick gets by asking for more; none if it is not answered.
    fn renew(&mut self, run: u64, known: u64) -> Option<u64> {
        let packet = Message::Renew { brick: MINE, sent: self.now, run, known }.into();
        let mut fx = Vec::new();
        self.directory.step(self.now, DirectoryEvent::Packet { from: NodeId::Brick(MINE), packet }, &mut fx);
        fx.iter().find_map(|effect| match effect {
            DirectoryEffect::Send { to: NodeId::Brick(MINE), packet } => match packet.message {
                Message::Renewed { lease_ns, .. } => Some(lease_ns),
                _ => None,
            },
            _ => None,
        })
    }

    fn newest(&self) -> u64 {
        self.directory.version()
    }

    /// As products are, a while after its start.
    fn with_short_leases(mut self) -> Stage {
        self.directory.desk.cluster.config.lease_ns = 300_000_000;
        self.restart();
        self.run(6000);
        self
    }

    /// Lets so much time pass in which nobody says anything.
    fn fall_silent(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some((due, _)) = self.directory.deadline().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            let mut fx = Vec::new();
            self.directory.wake(self.now, &mut fx);
            self.follow(fx);
        }
        self.now = end;
    }

    fn milliseconds_until_it_is_left_out(&mut self) -> u64 {
        let begun = self.now;
        while self.view().is_writer(MINE) {
            self.fall_silent(Duration::from_millis(1));
            assert!(self.now.since(begun) < Duration::from_secs(10), "it stays");
        }
        self.now.since(begun).as_millis() as u64
    }
}

#[test]
fn a_lease_is_renewed_for_the_process_that_counts_and_has_one() {
    let mut stage = stage();
    let newest = stage.newest();
    assert_eq!(stage.renew(RUN, newest), Some(LEASE_NS));
    assert_eq!(stage.renew(RUN - 1, newest), None, "an earlier process");
    stage.restart();
    assert_eq!(stage.renew(RUN, newest), None, "a directory that started has granted nothing yet");
    stage.run(1100);
    assert_eq!(stage.renew(RUN, newest), Some(LEASE_NS));
    stage.bricks.get_mut(&MINE).expect("a brick").failed = Some("input/output error".to_owned());
    stage.run(100);
    assert_eq!(stage.renew(RUN, newest), None, "its last heartbeat got none");
}

#[test]
fn whoever_was_left_out_hears_of_that_before_its_lease_is_renewed() {
    let mut stage = stage();
    let known = stage.newest();
    stage.bricks.remove(&MINE);
    stage.run(5000);
    assert!(!stage.view().is_writer(MINE));
    assert_eq!(stage.renew(RUN, known), Some(0));
    let newest = stage.newest();
    assert_eq!(stage.renew(RUN, newest), Some(LEASE_NS), "it knows");
}

#[test]
fn no_lease_is_renewed_while_a_view_is_made_that_leaves_the_brick_out() {
    let mut stage = stage();
    stage.mute.push(BrickId(2));
    stage.bricks.remove(&MINE);
    stage.run(5000);
    assert!(stage.view().is_writer(MINE) && stage.directory.is_changing());
    let newest = stage.newest();
    assert_eq!(stage.renew(RUN, newest), Some(0));
}

/// It answers no reads there, and may have the lease for its other groups.
#[test]
fn who_only_joins_keeps_its_lease_while_a_view_is_made_that_leaves_it_out() {
    let mut stage = stage();
    let status = stage.bricks.remove(&MINE).expect("a brick");
    stage.run(5000);
    stage.bricks.insert(MINE, status);
    stage.run(3000);
    assert!(stage.view().is_catching_up(MINE), "{:?}", stage.view());
    stage.mute.push(BrickId(2));
    stage.bricks.get_mut(&MINE).expect("a brick").space.fullest_percent = 95;
    stage.run(500);
    assert!(
        stage.view().is_catching_up(MINE) && stage.directory.is_changing(),
        "it is to stop, as it is full"
    );
    let newest = stage.newest();
    assert_eq!(stage.renew(RUN, newest), Some(LEASE_NS));
}

#[test]
fn no_lease_is_renewed_of_a_brick_that_is_to_go_or_has_lost_something() {
    let mut stage = stage();
    let (newest, group) = (stage.newest(), stage.view().group);
    let record = |stage: &mut Stage, evicted, lost| {
        let record = stage.directory.desk.cluster.records.bricks.get_mut(&MINE).expect("a brick");
        (record.evicted, record.lost) = (evicted, lost);
    };
    for (evicted, lost, renewed) in
        [(true, Vec::new(), 0), (false, vec![group], 0), (false, Vec::new(), LEASE_NS)]
    {
        record(&mut stage, evicted, lost);
        assert_eq!(stage.renew(RUN, newest), Some(renewed));
    }
}

#[test]
fn a_brick_that_is_held_for_slow_and_one_whose_id_another_process_wants_are_not_answered() {
    let mut slow = stage();
    slow.observe(1000, &[(GatewayId(1), &[MINE])]);
    assert!(slow.directory.desk.cluster.is_slow(MINE) && slow.view().is_writer(MINE));
    let newest = slow.newest();
    assert_eq!(slow.renew(RUN, newest), None);
    let mut contested = stage();
    for _ in 0..30 {
        contested.beat(Run { place: ELSEWHERE, ..run(8, 900, 900) }, "elsewhere:1");
        contested.run(100);
    }
    let newest = contested.newest();
    assert_eq!(contested.renew(RUN, newest), None);
}

#[test]
fn a_pause_of_the_directory_makes_no_brick_irregular() {
    let mut stage = stage().with_short_leases();
    stage.now += Duration::from_secs(2);
    let packet = stage.heartbeat(MINE).into();
    stage.event(DirectoryEvent::Packet { from: NodeId::Brick(MINE), packet });
    assert_eq!(stage.directory.desk.cluster.leases.length_ns(MINE), 300_000_000);
}

#[test]
fn bricks_that_die_one_after_the_other_are_looked_at_together() {
    let mut stage = stage().with_short_leases();
    for brick in [MINE, BrickId(2)] {
        stage.event(DirectoryEvent::Down(NodeId::Brick(brick)));
        let looked = stage.directory.looked;
        assert!(stage.directory.next_tick >= looked + EARLIEST);
    }
}

#[test]
fn a_brick_is_left_out_when_its_lease_has_ended_and_its_connection_or_half_a_second_of_silence() {
    for (is_down, expected) in [(true, 303..325), (false, 500..522)] {
        let mut stage = stage().with_short_leases();
        if is_down {
            stage.event(DirectoryEvent::Down(NodeId::Brick(MINE)));
        }
        // The others are heard: nobody is silent but this one.
        stage.bricks.remove(&MINE);
        let mut waited = 0;
        while stage.view().is_writer(MINE) {
            stage.fall_silent(Duration::from_millis(1));
            waited += 1;
            if waited % 50 == 0 {
                for brick in stage.bricks.keys().copied().collect::<Vec<_>>() {
                    let packet = stage.heartbeat(brick).into();
                    stage.event(DirectoryEvent::Packet { from: NodeId::Brick(brick), packet });
                }
            }
            assert!(waited < 5000);
        }
        assert!(expected.contains(&waited), "{waited} ms, {is_down}");
    }
}

#[test]
fn what_became_of_connections_while_the_directory_stood_still_is_no_sign() {
    let mut stage = stage().with_short_leases();
    let view = stage.view();
    stage.now += Duration::from_secs(3);
    for brick in 1..=3 {
        stage.event(DirectoryEvent::Down(NodeId::Brick(BrickId(brick))));
    }
    stage.fall_silent(Duration::from_millis(900));
    // They have called again.
    stage.run(2000);
    assert_eq!(stage.view().number, view.number, "nobody was left out");
    stage.bricks.remove(&MINE);
    stage.event(DirectoryEvent::Down(NodeId::Brick(MINE)));
    assert!(stage.milliseconds_until_it_is_left_out() < 400);
}

#[test]
fn a_brick_that_a_gateway_begins_to_hold_for_slow_is_looked_at_at_once_and_no_more_often_than_that() {
    let mut stage = stage();
    stage.fall_silent(Duration::from_millis(50));
    let tell = |stage: &mut Stage, is_slow| {
        let members = vec![wire::Observed { brick: MINE, is_slow, prepare_us: 50_000, others_us: 2000 }];
        let (from, packet) = (NodeId::Gateway(GatewayId(9)), Message::Observed { members }.into());
        stage.event(DirectoryEvent::Packet { from, packet });
        stage.directory.deadline().expect("it looks").0
    };
    let due = tell(&mut stage, true);
    assert!(due <= stage.now, "{due:?} at {:?}", stage.now);
    stage.fall_silent(Duration::from_millis(1));
    assert!(tell(&mut stage, true) > stage.now + Duration::from_millis(50), "it is no news");
    tell(&mut stage, false);
    assert!(tell(&mut stage, true) > stage.now + Duration::from_millis(10), "a gateway that lies");
}
