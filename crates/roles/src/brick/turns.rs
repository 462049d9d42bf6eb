//! Requests that wait for their turn at a brick's disk, which is played by the test.

use super::tests::{Bench, GATEWAY, GROUP, VOLUME};
use super::*;
use base::{Rng, Stamp, ViewNumber};
use rules::counters::Counter;
use rules::fair::Fcfs;
use std::collections::BTreeSet;
use wire::disk::{Command, Reply};
use wire::{Contest, Fate, PrepareOutcome, ReadOutcome, Scope, Service, Slots, WriteId};

fn bench(places: usize) -> Bench {
    bench_of(1, places)
}

fn bench_of(disks: usize, places: usize) -> Bench {
    let mut bench = Bench::new(disks, Vec::new());
    bench.begin(1, 3);
    bench.answer_all();
    bench.sent.clear();
    let mut fx = Vec::new();
    for disk in 0..disks {
        let fcfs = Box::new(Fcfs::default());
        bench.brick.set_discipline(super::tests::NOW, disk, fcfs, Places(places), &mut fx);
    }
    bench.take(fx);
    bench
}

fn read(operation: u64) -> Message {
    read_of(operation, 5, 1, None)
}

fn read_of(operation: u64, lba: u64, view: u64, contest: Option<Contest>) -> Message {
    Message::Read {
        operation,
        group: GROUP,
        view: ViewNumber(view),
        span: Span { volume: VOLUME, lba, count: 1 },
        width: 1,
        stamps: false,
        content: true,
        contest,
        service: Service::default(),
        sight: wire::Sight::Decided,
    }
}

fn answered(sent: &[Message]) -> Vec<u64> {
    let reads = sent.iter().filter_map(|message| match message {
        Message::ReadDone { operation, outcome: ReadOutcome::Done { .. }, .. } => Some(*operation),
        _ => None,
    });
    reads.collect()
}

fn decide(stamp: u64, commit: bool) -> Message {
    let decision = Decision { volume: VOLUME, lba: 0, stamp: Stamp(stamp << 33) };
    let (commits, aborts) = if commit { (vec![decision], vec![]) } else { (vec![], vec![decision]) };
    Message::Decide { commits, aborts }
}

fn is_prepared(message: &Message, of: u64) -> bool {
    matches!(message, Message::Prepared { operation, outcome: PrepareOutcome::Prepared { .. }, .. } if *operation == of)
}

#[test]
fn of_a_thousand_reads_that_are_called_off_each_is_withdrawn_or_answered_once() {
    const READS: u64 = 1000;
    let mut bench = bench(4);
    let mut rng = Rng::with_seed(11);
    let mut open: Vec<u64> = Vec::new();
    let (mut next, mut called_off) = (1, 0);
    while called_off < READS || !bench.asked.is_empty() {
        match rng.u8(0..8) {
            0..=3 if next <= READS => {
                bench.ask(read(next));
                open.push(next);
                next += 1;
            }
            4 if !open.is_empty() => {
                let some = rng.usize(1..=open.len().min(8));
                rng.shuffle(&mut open);
                let operations = open.split_off(open.len() - some);
                called_off += some as u64;
                bench.ask(Message::Cancel { operations });
            }
            _ => bench.answer_some(1),
        }
    }
    bench.answer_all();
    let (mut withdrawn, mut late) = (BTreeSet::new(), BTreeSet::new());
    for message in &bench.sent {
        if let Message::Cancelled { withdrawn: in_time, late: too_late } = message {
            assert!(in_time.iter().all(|operation| withdrawn.insert(*operation)), "withdrawn once");
            assert!(too_late.iter().all(|operation| late.insert(*operation)), "late once");
        }
    }
    let answers = answered(&bench.sent);
    let unique: BTreeSet<u64> = answers.iter().copied().collect();
    assert_eq!(answers.len(), unique.len(), "answered once");
    assert!(unique.is_disjoint(&withdrawn), "what was withdrawn is not answered");
    assert_eq!(withdrawn.len() + unique.len(), READS as usize, "nothing is lost");
    assert_eq!(late, unique, "what came too late is answered");
    println!("of {READS} reads that were called off {} were withdrawn in time", withdrawn.len());
    assert!(withdrawn.len() > 300 && late.len() > 100, "both happen: {} and {}", withdrawn.len(), late.len());
}

#[test]
fn a_later_write_that_waits_for_a_decision_leaves_its_place_to_others() {
    let mut bench = bench(1);
    bench.write(1, 5);
    bench.answer_all();
    // Its block has a write in doubt: it waits for the decision, and not at the disk.
    bench.write(1, 9);
    bench.sent.clear();
    bench.ask(read(77));
    bench.answer_all();
    assert_eq!(answered(&bench.sent), [77]);
    bench.ask(decide(5, true));
    bench.answer_all();
    assert!(bench.sent.iter().any(|message| is_prepared(message, 9)));
}

#[test]
fn a_write_that_is_given_up_while_it_waits_is_never_staged() {
    let mut bench = bench(1);
    bench.ask(read(1));
    bench.write(1, 5);
    bench.ask(decide(5, false));
    bench.answer_all();
    assert!(
        !bench.sent.iter().any(|message| matches!(message, Message::Prepared { .. })),
        "{:?}",
        bench.sent
    );
    assert_eq!(bench.brick.counters().get(Counter::WriteGivenUpBeforeItsTurn), 1);
    assert!(bench.asked.is_empty());
}

#[test]
fn a_write_whose_fate_is_asked_goes_ahead_of_its_turn() {
    let mut bench = bench(1);
    // The disk does not answer, so that no turn comes.
    bench.ask(read(1));
    bench.write(1, 5);
    assert_eq!(bench.asked.len(), 1);
    let span = Span { volume: VOLUME, lba: 0, count: 1 };
    let write = WriteId { group: GROUP, span, stamp: Stamp(5 << 33), scope: Scope::Row, link: None };
    let query =
        |operation| Message::Query { operation, view: ViewNumber(1), write, width: 1, only_looks: false };
    bench.ask(query(100));
    bench.answer_writes();
    assert!(bench.sent.iter().any(|message| is_prepared(message, 5)), "{:?}", bench.sent);
    // Whoever asks asks again.
    bench.ask(query(101));
    let told = |message: &Message| {
        matches!(message, Message::QueryDone { operation: 101, fate: Ok(Fate::Prepared) })
    };
    assert!(bench.sent.iter().any(told), "{:?}", bench.sent);
    assert_eq!(bench.brick.counters().get(Counter::WriteWentAheadAsItsFateWasAsked), 1);
}

#[test]
fn a_prepare_whose_answer_was_lost_is_answered_without_a_turn() {
    let mut bench = bench(1);
    bench.write(1, 5);
    bench.answer_all();
    bench.sent.clear();
    // From here on the disk gives no turns.
    bench.ask(read(1));
    bench.ask(read(2));
    bench.write(1, 5);
    assert!(bench.sent.iter().any(|message| is_prepared(message, 5)), "{:?}", bench.sent);
}

#[test]
fn what_waits_under_a_view_that_ends_is_refused_and_what_waits_for_a_dead_asker_forgotten() {
    let mut bench = bench(1);
    bench.ask(read(1));
    bench.ask(read(2));
    bench.write(1, 5);
    bench.fence(2, 3);
    let stale = bench.sent.iter().filter(|message| {
        matches!(
            message,
            Message::ReadDone { operation: 2, outcome: ReadOutcome::Stale { .. }, .. }
                | Message::Prepared { outcome: PrepareOutcome::Stale { .. }, .. }
        )
    });
    assert_eq!(stale.count(), 2, "{:?}", bench.sent);
    bench.answer_all();
    bench.begin(2, 3);
    bench.answer_all();
    bench.sent.clear();
    bench.ask(read_of(3, 5, 2, None));
    bench.ask(read_of(4, 5, 2, None));
    bench.step(BrickEvent::Down(GATEWAY));
    bench.answer_all();
    assert!(!answered(&bench.sent).contains(&4), "{:?}", bench.sent);
}

#[test]
fn answers_tell_how_long_they_waited_and_how_many_are_before_the_next() {
    let mut bench = bench(1);
    (1..=3).for_each(|operation| bench.ask(read(operation)));
    let waiting: Vec<&Message> =
        bench.sent.iter().filter(|message| matches!(message, Message::Waiting { .. })).collect();
    assert!(
        matches!(waiting[..], [Message::Waiting { operations }, ..] if operations[..] == [2]),
        "{waiting:?}"
    );
    bench.answer_some(1);
    let waits = bench.sent.iter().filter_map(|message| match message {
        Message::ReadDone { operation: 1, wait, .. } => Some(wait.queued),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<u32>>(), [2], "two are before whoever comes now");
}

#[test]
fn contested_reads_take_places_and_give_them_back() {
    let mut bench = bench(2);
    for operation in 0..40 {
        let contest = Contest { number: operation, holders: Slots::all(2), tied: false };
        bench.ask(read_of(operation, operation * 16, 1, Some(contest)));
    }
    for turn in 1..200 {
        bench.wake(super::tests::NOW + core::time::Duration::from_millis(turn));
        bench.answer_all();
    }
    assert_eq!(answered(&bench.sent).len(), 40, "nobody else claims, and all are served here in the end");
    assert!(!bench.asked.iter().any(|(_, command)| matches!(command, Command::Read { .. })));
}

/// What is served elsewhere is not served here as well, however long it has waited; and not charged.
#[test]
fn a_read_that_another_member_claims_leaves_the_queue() {
    let mut bench = bench(1);
    bench.ask(read(1));
    let contested = |number: u64| {
        let contest = Contest { number, holders: Slots::all(2), tied: false };
        read_of(100 + number, number * 16, 1, Some(contest))
    };
    bench.ask(contested(7));
    bench.step(claim(7, 7 * 16));
    // This claim is here before its read.
    bench.step(claim(8, 8 * 16));
    bench.ask(contested(8));
    for turn in 1..100 {
        bench.wake(super::tests::NOW + core::time::Duration::from_millis(turn));
        bench.answer_all();
    }
    assert_eq!(answered(&bench.sent), [1], "the claimer answers the others");
    let count = |counter| bench.brick.counters().get(counter);
    assert_eq!((count(Counter::ReadLeftBeforeItsTurn), count(Counter::ClaimOvertookItsRead)), (1, 1));
}

fn claim(number: u64, lba: u64) -> BrickEvent {
    let NodeId::Gateway(gateway) = GATEWAY else { panic!("a gateway") };
    let claim = wire::Claim { gateway, number, volume: VOLUME, lba, bid_ns: 1 };
    let packet = Message::Claims { claims: vec![claim] }.into();
    BrickEvent::Packet { from: NodeId::Brick(BrickId(2)), packet }
}

/// The other disk of the brick does not hear of it as service.
#[test]
fn what_leaves_the_queue_unserved_counts_at_no_disk() {
    let mut bench = bench_of(2, 1);
    let on = |bench: &Bench, disk: usize| -> Vec<u64> {
        let disk_of = |lba| bench.brick.place_of(Span { volume: VOLUME, lba, count: 1 });
        (0..1 << 20).step_by(1 << 10).filter(|lba| disk_of(*lba) == disk).take(3).collect()
    };
    let (here, other) = (on(&bench, 0), on(&bench, 1));
    bench.ask(read_of(1, other[0], 1, None));
    bench.ask(read_of(2, here[0], 1, None));
    let contested = |number: u64, lba: u64| {
        let contest = Contest { number, holders: Slots::all(2), tied: false };
        read_of(100 + number, lba, 1, Some(contest))
    };
    bench.ask(contested(7, here[1]));
    bench.step(claim(7, here[1]));
    bench.step(claim(8, here[2]));
    bench.ask(contested(8, here[2]));
    // Asked for twice, and called off.
    bench.ask(read_of(3, here[1], 1, None));
    bench.ask(read_of(3, here[1], 1, None));
    bench.ask(Message::Cancel { operations: vec![3] });
    bench.answer_all();
    assert_eq!(answered(&bench.sent), [1, 2]);
    let unheard = bench.brick.sharing.elsewhere(Service::default(), 1).delay;
    assert_eq!(u64::from(unheard), wire::StreamInfo::BLOCK_UNITS, "one block was read at the first disk");
}

fn is_destaging(bench: &Bench) -> bool {
    bench.asked.iter().any(|(_, command)| matches!(command, Command::Destage { .. }))
}

#[test]
fn what_a_store_destages_waits_for_its_turn_and_takes_a_place() {
    let mut bench = bench(1);
    bench.ask(read(1));
    bench.step(BrickEvent::Store { disk: 0, reply: Reply::WantsToDestage { blocks: 64 } });
    bench.ask(read(2));
    assert!(!is_destaging(&bench), "the disk reads");
    assert_eq!(bench.brick.counters().get(Counter::ContentWaitedForItsTurnToBeDestaged), 1);
    bench.answer_some(1);
    assert!(is_destaging(&bench), "it came before the second read");
    assert_eq!(bench.asked.len(), 1, "the second read waits for the disk");
    bench.answer_all();
    assert_eq!(answered(&bench.sent), [1, 2]);
}

#[test]
fn a_full_queue_does_not_keep_content_from_being_destaged() {
    let mut bench = bench(1);
    (0..=reads::seat::WAITING_MAX as u64).for_each(|operation| bench.ask(read(operation)));
    bench.step(BrickEvent::Store { disk: 0, reply: Reply::WantsToDestage { blocks: 64 } });
    assert!(is_destaging(&bench));
}
