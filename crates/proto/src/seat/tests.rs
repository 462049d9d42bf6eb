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
