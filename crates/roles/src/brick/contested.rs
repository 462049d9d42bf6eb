//! Reads that another member was asked for as well, at the brick: its disk is played by the test.

use super::tests::{Bench, GATEWAY, GROUP, NOW, VOLUME};
use super::*;
use base::{GatewayId, ViewNumber};
use core::time::Duration;
use rules::counters::Counter;
use wire::disk::Command;
use wire::disk::StoreError;
use wire::{Contest, ReadOutcome, Slots};

const OTHER: BrickId = BrickId(2);
/// Longer than any member is given to claim what it is expected to.
const LONG: Duration = Duration::from_millis(30);

fn bench() -> Bench {
    let mut bench = Bench::new(1, Vec::new());
    bench.begin(1, 3);
    bench.answer_all();
    bench.sent.clear();
    bench
}

fn read_of(lba: u64, number: u64, contested: bool) -> BrickEvent {
    let span = Span { volume: VOLUME, lba, count: 1 };
    let contest = Contest { number, holders: Slots::all(2), tied: false };
    let message = Message::Read {
        operation: number,
        group: GROUP,
        view: ViewNumber(1),
        span,
        width: 1,
        stamps: false,
        content: true,
        contest: contested.then_some(contest),
        service: wire::Service::default(),
        sight: wire::Sight::Decided,
    };
    BrickEvent::Packet { from: GATEWAY, packet: message.into() }
}

fn claim_of(lba: u64, number: u64) -> BrickEvent {
    let NodeId::Gateway(gateway) = GATEWAY else { panic!("a gateway") };
    let claim = Claim { gateway, number, volume: VOLUME, lba, bid_ns: 100_000 };
    let packet = Message::Claims { claims: vec![claim] }.into();
    BrickEvent::Packet { from: NodeId::Brick(OTHER), packet }
}

fn ask(bench: &mut Bench, lba: u64, number: u64, contested: bool) {
    bench.step(read_of(lba, number, contested));
}

fn claim(bench: &mut Bench, lba: u64, number: u64) {
    bench.step(claim_of(lba, number));
}

fn reads(bench: &Bench) -> usize {
    bench.asked.iter().filter(|(_, command)| matches!(command, Command::Read { content: true, .. })).count()
}

/// The claims told since the last look.
fn told(bench: &mut Bench) -> Vec<(BrickId, Claim)> {
    core::mem::take(&mut bench.claims)
}

fn answers(bench: &mut Bench) -> Vec<(u64, bool)> {
    let sent = core::mem::take(&mut bench.sent);
    let answers = sent.into_iter().filter_map(|message| match message {
        Message::ReadDone { operation, outcome, .. } => {
            Some((operation, matches!(outcome, ReadOutcome::Done { .. })))
        }
        _ => None,
    });
    answers.collect()
}

/// The first block that is left to the other member, and the first that is not, of those in stretches of their own.
fn places() -> (u64, u64) {
    let mut bench = bench();
    let (mut others, mut own) = (None, None);
    for lba in (0..64).map(|i| i * 16) {
        let before = reads(&bench);
        ask(&mut bench, lba, lba + 1, true);
        let place = if reads(&bench) > before { &mut own } else { &mut others };
        place.get_or_insert(lba);
    }
    (others.expect("some are the other's"), own.expect("some are its own"))
}

#[test]
fn a_read_that_is_its_own_turn_is_claimed_and_served_at_once() {
    let (_, own) = places();
    let mut bench = bench();
    ask(&mut bench, own, 7, true);
    assert_eq!(reads(&bench), 1);
    let told = told(&mut bench);
    assert!(matches!(told[..], [(OTHER, Claim { gateway: GatewayId(9), number: 7, .. })]), "{told:?}");
    // The other's claim comes too late to save anything.
    claim(&mut bench, own, 7);
    bench.answer_all();
    assert_eq!(answers(&mut bench), [(7, true)]);
}

/// The other half, from `brick.toml`'s `model` to the calibration, is tested beside the verb that reads it.
#[test]
fn a_first_bid_is_what_the_calibration_says_of_the_disk() {
    for access_ns in [100_000, 5_400_000] {
        let mut bench = Bench::calibrated(vec![Calibration { access_ns, block_ns: 0 }], Vec::new());
        bench.begin(1, 3);
        bench.answer_all();
        ask(&mut bench, 0, 7, true);
        // Whoever is expected to be first stays silent.
        bench.wake(NOW + LONG);
        let bids: Vec<u64> = told(&mut bench).iter().map(|(_, claim)| claim.bid_ns).collect();
        assert_eq!(bids, [access_ns]);
    }
}

#[test]
fn what_others_claimed_while_a_brick_stood_still_is_not_served_when_it_wakes() {
    let (_, own) = places();
    let mut bench = bench();
    let mut fx = Vec::new();
    bench.brick.step(NOW, read_of(own, 7, true), &mut fx);
    bench.brick.step(NOW, claim_of(own, 7), &mut fx);
    bench.brick.settle(NOW, &mut fx);
    bench.take(fx);
    assert_eq!((reads(&bench), told(&mut bench).len()), (0, 0), "one batch brought both");
}

#[test]
fn a_read_that_another_claims_is_dropped_without_a_word() {
    let (others, _) = places();
    let mut bench = bench();
    ask(&mut bench, others, 7, true);
    assert_eq!((reads(&bench), told(&mut bench).len()), (0, 0), "it waits for the claim");
    claim(&mut bench, others, 7);
    bench.wake(NOW + LONG);
    assert_eq!((reads(&bench), answers(&mut bench)), (0, Vec::new()));
    let forgets =
        |(_, command): &(usize, Command)| matches!(command, Command::Forget { span } if span.lba == others);
    assert!(bench.asked.iter().any(forgets), "the claimer has it in memory");
    assert_eq!(bench.brick.counters().get(Counter::ReadLeftToAnotherMember), 1);
}

#[test]
fn a_read_that_memory_answers_is_claimed_where_the_head_is_seen() {
    let mut bench = bench();
    bench.step(BrickEvent::HeadsSeen(true));
    ask(&mut bench, 0, 7, true);
    bench.answer_all();
    let told = told(&mut bench);
    assert!(matches!(told[..], [(OTHER, Claim { number: 7, bid_ns: 0, .. })]), "{told:?}");
    assert_eq!(answers(&mut bench), [(7, true)]);
}

/// Whoever else was asked may have what is not to be had here.
#[test]
fn a_read_that_fails_is_not_claimed() {
    let mut bench = bench();
    bench.step(BrickEvent::HeadsSeen(true));
    ask(&mut bench, 0, 7, true);
    assert!(bench.answer(Err(StoreError::Busy), |_, _| true));
    let told = told(&mut bench);
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn a_read_whose_expected_server_stays_silent_is_taken_over() {
    let (others, _) = places();
    let mut bench = bench();
    ask(&mut bench, others, 7, true);
    let due = bench.brick.participants[0].deadline().expect("the claim is awaited");
    assert!(due < NOW + LONG);
    bench.wake(due);
    assert_eq!((reads(&bench), told(&mut bench).len()), (1, 1));
    ask(&mut bench, others, 8, true);
    assert_eq!(reads(&bench), 2, "who was silent is not expected to be first again");
    claim(&mut bench, others, 99);
    ask(&mut bench, others, 9, true);
    assert_eq!(reads(&bench), 2, "until it is heard");
    bench.answer_all();
    assert_eq!(answers(&mut bench), [(7, true), (8, true)]);
}

#[test]
fn a_claim_that_overtakes_its_read_spares_the_disk_and_a_rescue_does_not_care() {
    let (_, own) = places();
    let mut bench = bench();
    claim(&mut bench, own, 7);
    ask(&mut bench, own, 7, true);
    bench.wake(NOW + LONG);
    assert_eq!(reads(&bench), 0);
    assert_eq!(bench.brick.counters().get(Counter::ClaimOvertookItsRead), 1);
    ask(&mut bench, own, 7, false);
    assert_eq!(reads(&bench), 1, "whoever is asked alone serves, claimed or not");
    bench.answer_all();
    assert_eq!(answers(&mut bench), [(7, true)]);
}

#[test]
fn who_claimed_answers_also_when_a_write_comes_between() {
    let mut bench = bench();
    let own = (0..64).map(|i| i * 1024).find(|lba| {
        ask(&mut bench, *lba, lba + 1, true);
        reads(&bench) > 0
    });
    assert!(own.is_some());
    bench.answer_all();
    bench.sent.clear();
    // Block 0 has a write in doubt; the read of it waits for the decision, and claims nothing meanwhile.
    bench.write(1, 5);
    bench.answer_all();
    bench.sent.clear();
    told(&mut bench);
    ask(&mut bench, 0, 500, true);
    bench.wake(NOW + LONG);
    assert_eq!((reads(&bench), told(&mut bench).len()), (0, 0));
    let decision = Decision { volume: VOLUME, lba: 0, stamp: base::Stamp(5 << 33) };
    bench.ask(Message::Decide { commits: vec![decision], aborts: Vec::new() });
    bench.wake(NOW + LONG * 2);
    assert_eq!((reads(&bench), told(&mut bench).len()), (1, 1));
    bench.answer_all();
    assert_eq!(answers(&mut bench), [(500, true)]);
}

#[test]
fn a_read_held_for_a_write_in_doubt_is_left_to_whoever_claims_it() {
    let mut bench = bench();
    bench.write(1, 5);
    bench.answer_all();
    bench.sent.clear();
    ask(&mut bench, 0, 7, true);
    claim(&mut bench, 0, 7);
    bench.wake(NOW + Duration::from_millis(300));
    assert_eq!(answers(&mut bench), [], "not even that it is in doubt");
}

#[test]
fn a_contest_that_names_strangers_is_served_alone() {
    let mut bench = bench();
    let span = Span { volume: VOLUME, lba: 0, count: 1 };
    for (number, holders) in [(1, Slots(0b110)), (2, Slots(0b10)), (3, Slots::default()), (4, Slots(0b1))] {
        let contest = Some(Contest { number, holders, tied: false });
        let (operation, group, view) = (number, GROUP, ViewNumber(1));
        bench.ask(Message::Read {
            operation,
            group,
            view,
            span,
            width: 1,
            stamps: false,
            content: true,
            contest,
            service: wire::Service::default(),
            sight: wire::Sight::Decided,
        });
    }
    assert_eq!((reads(&bench), told(&mut bench).len()), (4, 0));
}

#[test]
fn a_read_that_is_served_as_its_batch_ends_is_followed_to_its_end() {
    let (_, own) = places();
    let mut bench = bench();
    ask(&mut bench, own, 7, true);
    assert_eq!(reads(&bench), 1);
    assert_eq!(bench.brick.vitals.report(NOW + Duration::from_millis(5), core::iter::empty()).read_us, 5000);
}

#[test]
fn a_read_that_is_due_at_once_does_not_make_the_process_late() {
    let (_, own) = places();
    let mut bench = bench();
    bench.wake(NOW);
    let mut fx = Vec::new();
    bench.brick.step(NOW, read_of(own, 7, true), &mut fx);
    assert!(bench.brick.deadline().is_some_and(|(due, _)| due < NOW), "as soon as the batch ends");
    bench.brick.wake(NOW, &mut fx);
    assert_eq!(bench.brick.vitals.report(NOW, core::iter::empty()).late_us, 0);
}
