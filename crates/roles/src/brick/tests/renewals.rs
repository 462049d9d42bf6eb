//! How a brick renews its lease between heartbeats.

use super::*;
use core::time::Duration;

const LEASE_NS: u64 = 300_000_000;

fn ms(ms: u64) -> Time {
    NOW + Duration::from_millis(ms)
}

/// A brick that was granted a lease at [`NOW`] and is to renew it every 100 ms.
fn leased() -> Bench {
    let mut bench = Bench::new(1, Vec::new());
    bench.wake(NOW);
    let orders = Box::new(wire::Orders { renew_ns: LEASE_NS / 3, ..wire::Orders::default() });
    let (views, deleted, time) = (Vec::new(), Vec::new(), ClusterTime::FIRST);
    let (sent, version, lease_ns) = (NOW, 0, LEASE_NS);
    bench.tell(Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time });
    bench.sent.clear();
    bench
}

/// What it says to the directory until then, each with the moment.
fn said(bench: &mut Bench, until: Time) -> Vec<(u64, &'static str)> {
    let mut said = Vec::new();
    while let Some((due, _)) = bench.brick.deadline().filter(|(due, _)| *due <= until) {
        bench.wake(due);
        said.extend(bench.sent.drain(..).filter_map(|message| match message {
            Message::Renew { sent, .. } => Some((sent.since(NOW).as_millis() as u64, "renews")),
            Message::Heartbeat { sent, .. } => Some((sent.since(NOW).as_millis() as u64, "beats")),
            _ => None,
        }));
    }
    said
}

fn renewed(bench: &mut Bench, (sent, at): (Time, Time), run: u64, lease_ns: u64) {
    let packet = Message::Renewed { sent, run, lease_ns }.into();
    let mut fx = Vec::new();
    bench.brick.step(at, BrickEvent::Packet { from: NodeId::Directory, packet }, &mut fx);
    bench.take(fx);
}

#[test]
fn it_renews_between_heartbeats_and_its_lease_counts_from_when_it_asked() {
    let mut bench = leased();
    assert!(bench.brick.is_leased(ms(299)) && !bench.brick.is_leased(ms(300)), "nothing was answered yet");
    let all = said(&mut bench, ms(900));
    let renewals: Vec<u64> = all.iter().filter(|(_, what)| *what == "renews").map(|(at, _)| *at).collect();
    let beats: Vec<u64> = all.iter().filter(|(_, what)| *what == "beats").map(|(at, _)| *at).collect();
    assert_eq!((beats, renewals), (vec![400, 800], vec![100, 200, 300, 500, 600, 700, 900]));
    renewed(&mut bench, (ms(100), ms(150)), 0, LEASE_NS);
    assert!(bench.brick.is_leased(ms(399)) && !bench.brick.is_leased(ms(400)));
    renewed(&mut bench, (ms(200), ms(250)), 5, LEASE_NS);
    assert!(!bench.brick.is_leased(ms(400)), "that was said to another process");
}

#[test]
fn an_answer_without_a_lease_has_it_send_a_heartbeat_at_once_and_a_heartbeat_without_one_ends_the_renewals() {
    let mut bench = leased();
    renewed(&mut bench, (ms(100), ms(120)), 0, 0);
    assert_eq!(said(&mut bench, ms(125)), [(100, "renews"), (120, "beats")]);
    let orders = Box::new(wire::Orders { renew_ns: LEASE_NS / 3, ..wire::Orders::default() });
    let (views, deleted, time) = (Vec::new(), Vec::new(), ClusterTime::FIRST);
    let (sent, version, lease_ns) = (ms(120), 0, 0);
    let packet = Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time }.into();
    let mut fx = Vec::new();
    bench.brick.step(ms(130), BrickEvent::Packet { from: NodeId::Directory, packet }, &mut fx);
    bench.take(fx);
    assert!(said(&mut bench, ms(900)).iter().all(|(_, what)| *what == "beats"));
}

#[test]
fn a_lease_that_was_given_back_is_not_revived_by_an_answer_that_was_on_its_way() {
    let mut bench = leased();
    let asked = |bench: &mut Bench, at, run| {
        let mut fx = Vec::new();
        let packet = Message::Yield { run }.into();
        bench.brick.step(at, BrickEvent::Packet { from: NodeId::Directory, packet }, &mut fx);
        bench.take(fx);
    };
    asked(&mut bench, ms(120), 5);
    assert!(bench.brick.is_leased(ms(121)) && bench.sent.is_empty(), "that was said to another process");
    asked(&mut bench, ms(120), 0);
    assert!(!bench.brick.is_leased(ms(121)));
    let given_back = |message: &Message| matches!(message, Message::Yielded { sent, .. } if *sent == ms(120));
    assert!(bench.sent.drain(..).any(|message| given_back(&message)));
    for sent in [ms(100), ms(120)] {
        renewed(&mut bench, (sent, ms(150)), 0, LEASE_NS);
        assert!(!bench.brick.is_leased(ms(151)), "{sent:?}");
    }
    assert!(said(&mut bench, ms(399)).is_empty(), "there is nothing to renew");
    renewed(&mut bench, (ms(400), ms(401)), 0, LEASE_NS);
    assert!(bench.brick.is_leased(ms(402)), "it was granted another one");
}
