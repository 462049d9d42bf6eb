//! The seat alone: order, repeats, withdrawals, notices, bounds.

use super::*;
use base::GatewayId;
use core::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Asked {
    what: u64,
    asker: u64,
    operation: u64,
    stream: u32,
}

impl Request for Asked {
    type Id = u64;
    fn id(&self) -> u64 {
        self.what
    }
    fn asker(&self) -> Option<(NodeId, u64)> {
        Some((NodeId::Gateway(GatewayId(self.asker)), self.operation))
    }
    fn service(&self) -> Service {
        Service { stream: StreamId(self.stream), delay: 0 }
    }
    fn blocks(&self) -> u32 {
        1
    }
    fn bytes(&self) -> usize {
        self.operation as usize % 7
    }
}

fn asked(what: u64) -> Asked {
    Asked { what, asker: 1, operation: what, stream: 0 }
}

fn seat(depth: usize) -> Seat<Asked> {
    Seat::new(Turns { places: Places(depth), ..Turns::default() })
}

#[test]
fn without_a_limit_everybody_has_a_turn_at_once() {
    assert!(seat(usize::MAX).admits(Time(0), 1 << 20, &asked(1)));
    assert!(!seat(4).admits(Time(0), 4, &asked(1)));
}

#[test]
fn turns_go_to_who_came_first_as_places_become_free() {
    let mut seat = seat(2);
    (1..=4).for_each(|what| assert_eq!(seat.enter(Time(0), asked(what)), Entered::Waits));
    assert_eq!(seat.next(Time(0), 2), None);
    assert_eq!((seat.next(Time(0), 1), seat.next(Time(0), 1)), (Some(asked(1)), Some(asked(2))));
    assert!(!seat.admits(Time(0), 0, &asked(5)), "who comes waits behind those that wait");
    assert_eq!(seat.queued(StreamId(0)), 2);
}

#[test]
fn a_repeat_takes_the_place_of_what_it_repeats() {
    let mut seat = seat(1);
    (1..=2).for_each(|what| assert_eq!(seat.enter(Time(0), asked(what)), Entered::Waits));
    let again = Asked { operation: 77, ..asked(1) };
    assert_eq!(seat.enter(Time(0), again), Entered::Repeats(asked(1)));
    assert_eq!((seat.len(), seat.next(Time(0), 0)), (2, Some(again)));
}

#[test]
fn what_is_withdrawn_has_no_turn() {
    let mut seat = seat(1);
    (1..=4).for_each(|what| assert_eq!(seat.enter(Time(0), asked(what)), Entered::Waits));
    assert_eq!(seat.withdraw(Time(0), &2, Unserved::Dropped), Some(asked(2)));
    assert_eq!(seat.withdraw(Time(0), &2, Unserved::Dropped), None);
    assert_eq!(seat.withdraw_where(Time(0), |asked| asked.what == 3), [asked(3)]);
    assert_eq!(
        (seat.next(Time(0), 0), seat.next(Time(0), 0), seat.next(Time(0), 0)),
        (Some(asked(1)), Some(asked(4)), None)
    );
}

#[test]
fn askers_are_told_at_once_and_then_as_long_as_they_wait() {
    let mut seat = seat(1);
    assert_eq!(seat.deadline(0), None);
    for what in 1..=3 {
        let request = Asked { asker: what % 2, ..asked(what) };
        assert_eq!(seat.enter(Time(0), request), Entered::Waits);
    }
    let told = |seat: &mut Seat<Asked>, at: u64| {
        seat.take_notices(Time(at), 0).into_iter().map(|notice| notice.operations).collect::<Vec<_>>()
    };
    assert_eq!(seat.deadline(0), Some(Time(0)));
    assert_eq!(told(&mut seat, 0), [vec![2], vec![1, 3]]);
    assert_eq!(told(&mut seat, MS), Vec::<Vec<u64>>::new());
    seat.enter(Time(MS), Asked { asker: 0, ..asked(4) });
    assert_eq!(seat.deadline(0), Some(Time(5 * MS)), "not more often than it is worth");
    assert_eq!(told(&mut seat, 5 * MS), [vec![2, 4], vec![1, 3]]);
    assert_eq!(seat.deadline(0), Some(Time(5 * MS) + NOTICE_EVERY));
    while seat.next(Time(0), 0).is_some() {}
    assert_eq!(seat.deadline(0), None);
    assert_eq!(told(&mut seat, 500 * MS), Vec::<Vec<u64>>::new());
    assert!(NOTICE_EVERY > Duration::from_millis(5));
}

#[test]
fn nobody_is_asked_to_be_patient_with_a_disk_that_stands_still() {
    let mut seat = seat(1);
    seat.on_progress(Time(0));
    seat.enter(Time(0), asked(1));
    let told = |seat: &mut Seat<Asked>, at: u64| !seat.take_notices(Time(at * MS), 1).is_empty();
    assert!(told(&mut seat, 0) && told(&mut seat, 100) && told(&mut seat, 200));
    assert!(!told(&mut seat, 300) && !told(&mut seat, 400));
    seat.on_progress(Time(450 * MS));
    assert!(told(&mut seat, 500));
}

#[test]
fn what_waits_is_bounded() {
    let mut seat = seat(1);
    (0..WAITING_MAX as u64).for_each(|what| assert_eq!(seat.enter(Time(0), asked(what)), Entered::Waits));
    assert_eq!(seat.enter(Time(0), asked(1 << 40)), Entered::Full(asked(1 << 40)));
    let names_few = |notice: &Notice| notice.operations.len() <= wire::OPERATIONS_MAX;
    assert!(seat.take_notices(Time(0), 0).iter().all(names_few));
}

#[test]
fn content_waits_for_room_and_what_brings_none_passes_it() {
    let mut seat = seat(usize::MAX);
    // As many bytes as its number says, up to six.
    let of = |what, bytes| Asked { operation: bytes, ..asked(what) };
    assert!(seat.admits(Time(0), 0, &of(1, 6)), "a seat knows of no bound before it hears of one");
    seat.set_room(5);
    assert!(seat.admits(Time(0), 0, &of(2, 3)) && seat.admits(Time(0), 0, &of(3, 4)), "the last is not cut");
    assert!(!seat.admits(Time(0), 0, &of(4, 1)) && seat.admits(Time(0), 0, &of(5, 0)));
    for request in [of(4, 1), of(6, 2), of(7, 3)] {
        assert!(seat.lacks_room(&request));
        assert_eq!(seat.enter(Time(0), request), Entered::Waits);
    }
    assert_eq!(seat.enter(Time(0), of(8, 0)), Entered::Waits);
    assert_eq!((seat.next(Time(0), 0), seat.next(Time(0), 0)), (Some(of(8, 0)), None), "it brings nothing");
    seat.set_room(2);
    assert_eq!(
        (seat.next(Time(0), 0), seat.next(Time(0), 0), seat.next(Time(0), 0)),
        (Some(of(4, 1)), Some(of(6, 2)), None)
    );
    assert_eq!(seat.withdraw(Time(0), &7, Unserved::Dropped), Some(of(7, 3)));
    seat.check();
    assert!(seat.is_empty());
}

/// A write whose fate is asked goes ahead, and room for what was withdrawn behind the door is there for others.
#[test]
fn room_of_what_was_withdrawn_is_given_back() {
    let mut seat = seat(1);
    seat.set_room(6);
    assert_eq!(seat.enter(Time(0), Asked { operation: 6, ..asked(1) }), Entered::Waits);
    assert_eq!(seat.enter(Time(0), Asked { operation: 1, ..asked(2) }), Entered::Waits);
    assert_eq!(seat.next(Time(0), 1), None, "the place is taken");
    assert!(seat.withdraw(Time(0), &1, Unserved::Dropped).is_some());
    assert_eq!(seat.next(Time(0), 0).map(|asked| asked.what), Some(2));
    seat.check();
}

#[test]
fn a_stream_that_brings_more_than_there_is_room_for_does_not_keep_others_out() {
    let clock = rules::fair::Clock::default();
    let order = Order::Shares { clock, history: rules::fair::History::USUAL };
    let mut seat: Seat<Asked> = Seat::new(Turns { order, ..Turns::default() });
    seat.set_room(0);
    let write = |what: u64, stream| Asked { what, asker: 1, operation: 1 + 7 * what, stream };
    (1..=200).for_each(|what| assert_eq!(seat.enter(Time(0), write(what, 1)), Entered::Waits));
    (201..=210).for_each(|what| assert_eq!(seat.enter(Time(0), write(what, 2)), Entered::Waits));
    seat.set_room(20);
    let passed: Vec<u32> = core::iter::from_fn(|| seat.next(Time(0), 0)).map(|asked| asked.stream).collect();
    assert_eq!(passed.len(), 20);
    assert_eq!(passed.iter().filter(|stream| **stream == 2).count(), 10, "{passed:?}");
}

/// A stream that reads as much as its limit allows passes no door with its writes meanwhile: they would keep the room until the limit lets them go on.
#[test]
fn a_stream_at_its_limit_keeps_no_room_from_others() {
    let order = Order::Shares { clock: rules::fair::Clock::default(), history: rules::fair::History::USUAL };
    let mut seat: Seat<Asked> = Seat::new(Turns { order, ..Turns::default() });
    let mut shares = Shares::default();
    let limit = 100 * u64::from(seat.cost.of(1));
    shares.give(StreamId(1), rules::fair::Share::USUAL.with_rates(0, limit));
    seat.set_shares(Time(0), &shares);
    seat.set_room(0);
    let ask = |what: u64, stream, bytes| Asked { what, asker: 1, operation: bytes + 7 * what, stream };
    let mut others = 0;
    for round in 0..500 {
        let now = Time(round * 10 * MS);
        // Twice as many reads and as many writes as the limited stream may have, and writes of another one.
        for (at, stream, bytes) in [(1, 1, 0), (2, 1, 0), (3, 1, 1), (4, 2, 1)] {
            let request = ask(10 * round + at, stream, bytes);
            if !seat.admits(now, 0, &request) {
                seat.enter(now, request);
            }
        }
        seat.set_room(1);
        others += core::iter::from_fn(|| seat.next(now, 0)).filter(|asked| asked.stream == 2).count();
        seat.check();
    }
    assert!(others > 400, "{others} of 500 writes of the other stream");
}

/// Without a door that knows when nothing gets on, gateways would wait for a broken disk for ever.
#[test]
fn nobody_is_asked_to_wait_for_room_at_a_disk_that_stands_still() {
    let mut seat = seat(usize::MAX);
    seat.set_room(0);
    seat.enter(Time(0), asked(1));
    let told = |seat: &mut Seat<Asked>, at: u64| {
        // It goes on reading.
        seat.on_progress(Time(at * MS));
        !seat.take_notices(Time(at * MS), 1).is_empty()
    };
    assert!(told(&mut seat, 0) && told(&mut seat, 900) && !told(&mut seat, 1000));
    seat.on_home(Time(1050 * MS));
    assert!(told(&mut seat, 1100) && told(&mut seat, 2000) && !told(&mut seat, 2100));
}

proptest! {
    /// Whatever room there is and whoever comes or is withdrawn: each leaves once, content in the order in which it came and no more than one
    /// request beyond the room, and nothing that brings none waits for room.
    #[test]
    fn no_more_content_passes_than_there_is_room_for(steps in prop::collection::vec((0u8..6, 0u64..12), 1..200)) {
        let mut seat = seat(usize::MAX);
        seat.set_room(0);
        let (mut inside, mut left) = (Vec::<Asked>::new(), 0i64);
        for (serial, (step, what)) in steps.into_iter().enumerate() {
            match step {
                0..=2 if inside.iter().all(|known| known.what != what) => {
                    let request = Asked { operation: serial as u64, ..asked(what) };
                    prop_assert_eq!(seat.enter(Time(0), request), Entered::Waits);
                    inside.push(request);
                }
                3 => {
                    let known = inside.iter().position(|known| known.what == what);
                    prop_assert_eq!(seat.withdraw(Time(0), &what, Unserved::Dropped), known.map(|at| inside.remove(at)));
                }
                4 => {
                    seat.set_room(what);
                    left = what as i64;
                }
                _ => {}
            }
            while let Some(begun) = seat.next(Time(0), 0) {
                let at = inside.iter().position(|known| (known.bytes() > 0) == (begun.bytes() > 0));
                prop_assert_eq!(at.map(|at| inside.remove(at)), Some(begun), "in order");
                prop_assert!(begun.bytes() == 0 || left > 0, "there was room");
                left -= begun.bytes() as i64;
            }
            prop_assert!(inside.iter().all(|known| known.bytes() > 0));
            prop_assert!(inside.is_empty() || left <= 0, "nobody waits who has room");
            seat.check();
        }
    }
}

proptest! {
    /// Whatever comes, is withdrawn and begins: each request leaves once, and those that begin do so in the order in which they came.
    #[test]
    fn each_request_leaves_once(steps in prop::collection::vec((0u8..4, 0u64..12), 1..200), depth in 1usize..4) {
        let mut seat = seat(depth);
        let (mut inside, mut at_disk) = (Vec::<Asked>::new(), 0usize);
        let mut serial = 0;
        for (step, what) in steps {
            match step {
                0 | 1 => {
                    serial += 1;
                    let request = Asked { what, asker: what % 3, operation: serial, stream: what as u32 % 2 };
                    match seat.enter(Time(serial), request) {
                        Entered::Waits => inside.push(request),
                        Entered::Repeats(old) => {
                            let place = inside.iter_mut().find(|known| **known == old).expect("it waits");
                            *place = request;
                        }
                        Entered::Full(_) => prop_assert!(false, "there is room"),
                    }
                }
                2 => {
                    let known = inside.iter().position(|known| known.what == what);
                    prop_assert_eq!(seat.withdraw(Time(0), &what, Unserved::Dropped), known.map(|at| inside.remove(at)));
                }
                _ => {
                    at_disk = at_disk.saturating_sub(1);
                    let begun = seat.next(Time(0), at_disk);
                    prop_assert_eq!(begun, (!inside.is_empty()).then(|| inside.remove(0)));
                    at_disk += usize::from(begun.is_some());
                }
            }
            prop_assert_eq!(seat.len(), inside.len());
            let streams: BTreeSet<u32> = inside.iter().map(|known| known.stream).collect();
            for stream in streams {
                let of_it = inside.iter().filter(|known| known.stream == stream).count();
                prop_assert_eq!(seat.queued(StreamId(stream)) as usize, of_it);
            }
        }
    }
}
