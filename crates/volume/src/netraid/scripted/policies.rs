//! Who is asked for a read under each policy, and who else when that takes long.

use super::{Asked, FAMILY, GROUP, Script, span};
use crate::netraid::answer::Answer;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Fetched, Outcome, Parent};
use crate::netraid::read::ReadOperation;
use base::{BrickId, Payload, Stamp, Time};
use core::time::Duration;
use reads::distribute::load::Load;
use reads::distribute::pace::{Kind, QuestionId};
use reads::distribute::policy::{First, Part, Plan, Policy};
use rules::counters::Counter;
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Contest, GroupView, Message, ReadOutcome, ReadPolicy, Slots, Span, VolumeInfo};

const MS: Duration = Duration::from_millis(1);

fn script(layout: &str, members: u32, policy: ReadPolicy) -> Script {
    let mut script = Script::new(layout, (1 << members) - 1, 0);
    let volume = VolumeInfo { read_policy: policy, ..VolumeInfo::new(FAMILY, "v", 1 << 30, layout) };
    script.coordinator.serve(&volume);
    script
}

fn read(script: &mut Script) -> Vec<Asked> {
    script.begin(Operation::new(ReadOperation::new(GROUP, span(FAMILY), 0, false)));
    script.asked()
}

fn contest(asked: &Asked) -> Option<Contest> {
    match asked.message {
        Message::Read { contest, .. } => contest,
        _ => panic!("no read: {asked:?}"),
    }
}

fn wants_content(asked: &Asked) -> bool {
    matches!(asked.message, Message::Read { content: true, .. })
}

/// Members that are not slow answer in turn, `after` so long a time; other questions are dropped.
fn reads_take(script: &mut Script, slow: Option<u8>, after: Duration, count: usize) {
    for turn in 0..count {
        let mut quick = read(script);
        quick.retain(|asked| Some(asked.slot) != slow);
        let first = quick.swap_remove(turn % quick.len());
        script.coordinator.shared().now += after;
        script.shows(&first, 1, &[], true);
        assert!(script.outcome().is_some());
    }
}

fn content(script: &mut Script) -> u8 {
    match script.outcome() {
        Some(Outcome::Read(Ok(Fetched { content, .. }))) => content.to_vec()[0],
        other => panic!("not read: {other:?}"),
    }
}

#[test]
fn a_claimed_read_is_asked_of_all_and_the_first_answer_counts() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    let asked = read(&mut script);
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    let contests: Vec<Contest> = asked.iter().filter_map(contest).collect();
    assert_eq!(contests.len(), 3);
    assert!(contests.iter().all(|c| *c == contests[0] && c.holders == Slots::all(3) && !c.tied));
    script.shows(&asked[1], 7, &[], true);
    assert_eq!(content(&mut script), 7);
    script.shows(&asked[2], 7, &[], true);
    assert_eq!(script.counted(Counter::DuplicateAnswersToARead), 1);
    let traffic = script.coordinator.traffic();
    assert_eq!((traffic.reads, traffic.questions, traffic.duplicate_answers), (1, 3, 1));
    assert!(script.wait().is_empty(), "nothing is left to ask");
}

/// Chooses by the place of a part among those that it is shown, and remembers how many these were.
#[derive(Debug)]
struct InTurn(Rc<RefCell<Vec<usize>>>);

impl Policy for InTurn {
    fn one(&mut self, _now: Time, _part: &Part<'_>, _load: &Load) -> Option<u8> {
        panic!("parts of a request are planned together");
    }

    fn plan(&mut self, _now: Time, parts: &[Part<'_>], load: &mut Load) -> Vec<Option<Plan>> {
        assert!((1..=3).all(|brick| load.queue(BrickId(brick)) == 0), "a brick was asked before the plan");
        self.0.borrow_mut().push(parts.len());
        (0..parts.len()).map(|at| Some(Plan { first: First::One(at as u8), wait: None })).collect()
    }
}

#[test]
fn the_parts_of_a_request_are_planned_before_any_is_asked() {
    let mut script = script("raid1x3", 3, ReadPolicy::Random);
    let seen = Rc::default();
    script.coordinator.set_policy(ReadPolicy::Random, Box::new(InTurn(Rc::clone(&seen))));
    let read = |lba| {
        let span = Span { lba, ..span(FAMILY) };
        (Parent::Part(1, lba), Operation::new(ReadOperation::new(GROUP, span, 0, false)))
    };
    script.coordinator.begin_parts([30, 20, 10].map(read).into());
    let asked: Vec<(u8, u64)> = script.asked().iter().map(|asked| (asked.slot, asked.span().lba)).collect();
    assert_eq!(*seen.borrow(), [3]);
    assert_eq!(asked, [(0, 30), (1, 20), (2, 10)]);
    assert_eq!(script.counted(Counter::ReadsPlannedTogether), 1);
}

/// What does not weigh parts against each other chooses as if each was asked before the next.
#[test]
fn the_parts_of_a_request_lie_in_each_others_queues() {
    let mut script = script("raid1x3", 3, ReadPolicy::ShortestQueue);
    let read =
        |lba| (Parent::Part(1, lba), Operation::new(ReadOperation::new(GROUP, span(FAMILY), 0, false)));
    script.coordinator.begin_parts((0..6).map(read).collect());
    assert_eq!(Script::slots(&script.asked()), [0, 0, 1, 1, 2, 2]);
}

/// One that answers from its memory would make those that read their disks look slow.
#[test]
fn an_answer_from_memory_is_no_measure_in_a_contest() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    let expected_ns = |script: &mut Script| {
        let now = script.coordinator.now();
        script.coordinator.shared().choice.load().pace().expected_ns(now, BrickId(1), Kind::Read)
    };
    script.disk_us = 0;
    let asked = read(&mut script);
    script.shows(&asked[0], 1, &[], true);
    assert_eq!(expected_ns(&mut script), 0);
    script.disk_us = 900;
    let asked = read(&mut script);
    script.pass(MS);
    script.shows(&asked[0], 1, &[], true);
    assert_eq!(expected_ns(&mut script), 1_000_000);
}

#[test]
fn a_read_that_nobody_answers_is_rescued_by_each_member_in_turn() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    reads_take(&mut script, None, MS / 4, 30);
    let begun = script.coordinator.now();
    read(&mut script);
    let mut rescuers = Vec::new();
    for rescue in 1..=3u32 {
        let asked = script.wait();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(contest(&asked[0]).is_none(), "whoever is asked now is to answer whatever was claimed");
        let passed = script.coordinator.now().since(begun);
        assert!(passed >= MS * rescue && passed <= 2 * MS * rescue, "rescue {rescue} after {passed:?}");
        rescuers.push(asked[0].slot);
    }
    rescuers.sort_unstable();
    assert_eq!(rescuers, [0, 1, 2]);
    let anew = script.wait();
    assert!(script.coordinator.now().since(begun) >= 250 * MS);
    assert!(anew.len() == 1 && contest(&anew[0]).is_none(), "{anew:?}");
    script.shows(&anew[0], 3, &[], true);
    assert_eq!(content(&mut script), 3);
    assert_eq!(script.counted(Counter::ReadRescued), 3);
}

#[test]
fn a_claimer_without_a_lease_is_confirmed_by_the_others() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    let asked = read(&mut script);
    script.shows(&asked[2], 7, &[], false);
    let confirm = script.asked();
    assert_eq!(Script::slots(&confirm), [0, 1, 2]);
    assert!(confirm.iter().all(|asked| contest(asked).is_none()));
    assert_eq!(confirm.iter().filter(|asked| wants_content(asked)).count(), 1);
    script.shows(&asked[0], 8, &[], true);
    assert!(script.outcome().is_none(), "an answer to what is not asked any more counts for nothing");
    let stamps = [Stamp(7 << 33)];
    confirm.iter().for_each(|asked| script.shows(asked, 9, &stamps, false));
    assert_eq!(content(&mut script), 9);
}

fn busy(script: &mut Script, asked: &Asked) {
    script.answer(asked, Answer::Read(ReadOutcome::Busy, Payload::new()));
}

#[test]
fn a_witness_that_is_busy_is_asked_again_soon() {
    let mut script = script("raid1x2", 2, ReadPolicy::ShortestQueue);
    let asked = read(&mut script);
    script.shows(&asked[0], 7, &[], false);
    let confirm = script.asked();
    let witness = confirm.iter().find(|asked| !wants_content(asked)).expect("the other one confirms");
    let begun = script.coordinator.now();
    busy(&mut script, witness);
    assert_eq!(script.wait().len(), 2);
    assert!(script.coordinator.now().since(begun) <= 20 * MS, "nobody else can say what it says");
}

#[test]
fn a_member_that_is_busy_leaves_a_contest_to_the_others() {
    let mut script = script("raid1x2", 2, ReadPolicy::Claim);
    let asked = read(&mut script);
    busy(&mut script, &asked[0]);
    assert!(script.asked().is_empty());
    script.shows(&asked[1], 5, &[], true);
    assert_eq!(content(&mut script), 5);
    let asked = read(&mut script);
    asked.iter().for_each(|asked| busy(&mut script, asked));
    let begun = script.coordinator.now();
    let again = script.wait();
    assert_eq!(again.len(), 1);
    assert!(script.coordinator.now().since(begun) >= 10 * MS, "not before it makes sense");
}

#[test]
fn hedged_reads_ask_a_second_member_when_the_first_takes_longer_than_usual() {
    let mut script = script("raid1x3", 3, ReadPolicy::Hedged);
    reads_take(&mut script, None, MS / 2, 64);
    let begun = script.coordinator.now();
    let first = read(&mut script);
    assert!(first.len() == 1 && contest(&first[0]).is_none(), "{first:?}");
    let second = script.wait();
    assert!(second.len() == 1 && second[0].slot != first[0].slot, "{second:?}");
    let passed = script.coordinator.now().since(begun);
    assert!(passed >= MS / 2 && passed <= MS, "{passed:?}");
    script.pass(100 * MS);
    assert!(script.asked().is_empty(), "two are enough");
    script.shows(&first[0], 4, &[], true);
    assert_eq!(content(&mut script), 4);
}

#[test]
fn the_second_of_two_tied_members_is_asked_only_when_the_first_is_not_done_at_once() {
    let mut script = script("raid1x3", 3, ReadPolicy::Tied);
    reads_take(&mut script, None, MS / 10, 3);
    assert!(script.asked().is_empty());
    let first = read(&mut script);
    let second = script.wait();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(first[0].slot != second[0].slot);
    let tie = contest(&first[0]).expect("tied");
    assert!(tie.tied && tie.holders.len() == 2 && contest(&second[0]) == Some(tie));
}

#[test]
fn a_hash_names_one_member_and_an_unanswered_read_goes_to_another() {
    let mut script = script("raid1x3", 3, ReadPolicy::Hash);
    let slots: Vec<u8> = (0..8)
        .map(|_| {
            let asked = read(&mut script);
            script.shows(&asked[0], 1, &[], true);
            assert_eq!(content(&mut script), 1);
            asked[0].slot
        })
        .collect();
    assert!(slots.iter().all(|slot| *slot == slots[0]), "{slots:?}");
    assert_eq!(Script::slots(&read(&mut script)), slots[..1]);
    let mut others: Vec<u8> = (0..2).map(|_| script.wait()[0].slot).collect();
    others.push(slots[0]);
    others.sort_unstable();
    others.dedup();
    assert!(others.len() > 1, "asked again of the one that does not answer: {others:?}");
}

fn holder_slot(script: &mut Script) -> u8 {
    let asked = read(script);
    assert_eq!(asked.len(), 1, "{asked:?}");
    script.shows(&asked[0], 0, &[], true);
    assert!(script.outcome().is_some());
    asked[0].slot
}

#[test]
fn a_member_that_takes_a_few_times_as_long_contends_all_the_same() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    measured(&mut script, 3, None);
    let (since, brick) = (script.coordinator.now(), BrickId(2));
    for call in 0..60 {
        let pace = script.coordinator.shared().choice.load_mut().pace_mut();
        pace.begin(since, brick, Kind::Read, QuestionId(1 << 41 | call));
        pace.answered(since + MS * 3 / 2, brick, Kind::Read, QuestionId(1 << 41 | call), since);
        pace.heard(brick);
    }
    script.coordinator.shared().now += 2 * MS;
    let asked = read(&mut script);
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    assert!(asked.iter().all(|asked| contest(asked).is_some()), "the bids tell who is slower");
}

#[test]
fn a_row_stands_in_for_a_member_that_takes_long() {
    let mut script = script("raid5-4+1", 5, ReadPolicy::Claim);
    let holder = holder_slot(&mut script);
    measured(&mut script, 5, None);
    let begun = script.coordinator.now();
    read(&mut script);
    let row = script.wait();
    let passed = script.coordinator.now().since(begun);
    assert!((MS..=2 * MS).contains(&passed), "{passed:?}");
    assert_eq!(row.len(), 4);
    assert!(row.iter().all(|asked| asked.slot != holder));
    script.coordinator.shared().now += MS / 4;
    row_shows_zeros(&mut script, &row);
    assert!(script.outcome().is_some(), "without the holder");
    assert_eq!(script.coordinator.traffic().reconstructions, 1);

    // While nothing comes from the holder, it is not waited for again.
    let mut row = read(&mut script);
    row.retain(|asked| asked.slot != holder);
    assert_eq!(row.len(), 4, "at once");
    row_shows_zeros(&mut script, &row);
    assert!(script.outcome().is_some());
    script.coordinator.on_heard(BrickId(u32::from(holder) + 1));
    assert_eq!(Script::slots(&read(&mut script)), [holder]);
}

#[test]
fn a_member_that_flushes_a_write_is_asked_for_reads() {
    let mut script = script("raid5-4+1", 5, ReadPolicy::Claim);
    let holder = holder_slot(&mut script);
    measured(&mut script, 5, None);
    let shared = script.coordinator.shared();
    shared.choice.load_mut().pace_mut().begin(
        shared.now,
        BrickId(u32::from(holder) + 1),
        Kind::Prepare,
        QuestionId(1 << 41),
    );
    shared.now += 5 * MS;
    assert_eq!(Script::slots(&read(&mut script)), [holder]);
}

#[test]
fn the_row_of_an_unreadable_block_is_asked_for_once_however_long_it_takes() {
    let mut script = script("raid5-4+1", 5, ReadPolicy::Claim);
    let asked = read(&mut script);
    let outcome = ReadOutcome::Done { leased: true, stamps: Vec::new(), unreadable: vec![0] };
    script.answer(&asked[0], Answer::Read(outcome, Payload::new()));
    assert_eq!(script.asked().len(), 4);
    for _ in 0..4 {
        assert_eq!(script.wait().len(), 4, "asked again, by one who reconstructs");
    }
}

/// The row's members show zeros that nobody wrote: one stamp for data, one for each unit for parity.
fn row_shows_zeros(script: &mut Script, asked: &[Asked]) {
    for asked in asked {
        let Message::Read { width, .. } = asked.message else { panic!("{asked:?}") };
        script.shows(asked, 0, &vec![Stamp::ZERO; usize::from(width)], true);
    }
}

/// Of so many members one was 20 ms late lately, if any, and the others were not.
fn measured(script: &mut Script, members: u8, slow: Option<u8>) {
    measured_late(script, members, slow, 20 * MS);
}

/// The same, with one that was so late.
fn measured_late(script: &mut Script, members: u8, slow: Option<u8>, late: Duration) {
    let since = Time(script.coordinator.now().0 - 1_000_000_000);
    for slot in 0..members {
        let (brick, lasts) = (BrickId(u32::from(slot) + 1), if Some(slot) == slow { late } else { MS / 4 });
        for call in 0..20 {
            let pace = script.coordinator.shared().choice.load_mut().pace_mut();
            pace.begin(since, brick, Kind::Read, QuestionId(1 << 40 | call));
            pace.answered(since + lasts, brick, Kind::Read, QuestionId(1 << 40 | call), since);
            pace.heard(brick);
        }
    }
}

#[test]
fn a_slow_member_has_no_part_in_a_contest_and_is_asked_beside_it_now_and_then() {
    let mut script = script("raid1x3", 3, ReadPolicy::Claim);
    measured(&mut script, 3, Some(1));
    let (mut beside, begun) = (0, script.coordinator.now());
    for turn in 0..400 {
        let asked = read(&mut script);
        let (contested, looked): (Vec<Asked>, Vec<Asked>) =
            asked.into_iter().partition(|asked| contest(asked).is_some());
        assert_eq!(Script::slots(&contested), [0, 2]);
        assert!(contested.iter().filter_map(contest).all(|c| c.holders == Slots(0b101)));
        assert!(looked.iter().all(|asked| asked.slot == 1));
        beside += looked.len() as u32;
        script.coordinator.shared().now += MS;
        script.shows(&contested[turn % 2], 1, &[], true);
        assert!(script.outcome().is_some());
        script.coordinator.shared().now += 20 * MS;
        looked.iter().for_each(|asked| script.shows(asked, 1, &[], true));
    }
    let passed = script.coordinator.now().since(begun);
    assert!(beside >= 2 && beside * 50 * MS <= passed, "asked beside {beside} times in {passed:?}");
    // When it is as fast as the others again it takes part again.
    (0..6).for_each(|_| measured(&mut script, 3, None));
    assert_eq!(Script::slots(&read(&mut script)), [0, 1, 2]);
}

#[test]
fn a_slow_member_is_gone_around_at_once_and_asked_now_and_then() {
    let mut script = script("raid5-4+1", 5, ReadPolicy::ShortestQueue);
    let holder = holder_slot(&mut script);
    measured(&mut script, 5, Some(holder));
    let (mut beside, mut all) = (0, 0);
    for _ in 0..400 {
        let asked = read(&mut script);
        let row: Vec<Asked> = asked
            .into_iter()
            .filter(|asked| {
                asked.slot != holder || {
                    beside += 1;
                    false
                }
            })
            .collect();
        assert_eq!(row.len(), 4, "at once");
        script.coordinator.shared().now += MS;
        row_shows_zeros(&mut script, &row);
        assert!(script.outcome().is_some());
        all += 1;
    }
    assert!(beside >= 2 && beside * 20 <= all, "asked beside {beside} of {all} times");
}

/// A group had lost one brick, and a slow one was kept, as the group could not bear to lose it as well. Reads and writes of what lay on the
/// lost brick waited for the slow one, although the four others were enough; its queue grew, and all else there waited in it.
#[test]
fn a_slow_member_has_no_part_in_a_row_where_enough_others_are_left() {
    let geometry = super::geometry("rs-4+2");
    let (lost, slow) = (geometry.slot_of(0, 0), geometry.slot_of(0, 1));
    let current = Slots::all(6).without(lost);
    let mut script = Script::new("rs-4+2", current.0, 0);
    let sources = |asked: &[Asked]| {
        let sources = asked.iter().filter(|asked| wants_content(asked));
        sources.fold(Slots::default(), |slots, asked| slots.with(asked.slot))
    };
    let last = geometry.slot_of_shard(0, 5);
    measured(&mut script, 6, None);
    let asked = read(&mut script);
    assert_eq!(sources(&asked), current.without(last), "data before parity where all are alike");
    row_shows_zeros(&mut script, &asked);
    assert!(script.outcome().is_some());
    measured(&mut script, 6, Some(slow));
    let asked = read(&mut script);
    assert_eq!(sources(&asked), current.without(slow));
    assert_eq!(asked.len(), 5, "its stamps it has in memory");
    row_shows_zeros(&mut script, &asked);
    assert!(script.outcome().is_some());
    // Without it there would be too few.
    measured(&mut script, 6, Some(slow));
    let view = GroupView { current: current.without(last), ..super::view("rs-4+2", 2, 0, 0) };
    assert!(script.coordinator.shared().views.adopt(view));
    assert_eq!(sources(&read(&mut script)), current.without(last));
}

/// A group had lost one brick, and each row needed a slow one. Rows were asked anew each 250 ms while they waited in its queue; it had to read all that
/// again, which made the queue grow without bound.
#[test]
fn a_row_is_not_asked_anew_before_the_slowest_member_that_it_needs_can_answer() {
    let geometry = super::geometry("raid5-4+1");
    let (lost, slow) = (geometry.slot_of(0, 0), geometry.slot_of(0, 1));
    let mut script = Script::new("raid5-4+1", Slots::all(5).without(lost).0, 0);
    measured_late(&mut script, 5, Some(slow), 200 * MS);
    let (asked, begun) = (read(&mut script), script.coordinator.now());
    let (late, quick): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|asked| asked.slot == slow);
    assert_eq!((late.len(), quick.len()), (1, 3));
    row_shows_zeros(&mut script, &quick);
    let again = script.wait();
    let passed = script.coordinator.now().since(begun);
    assert!(passed >= 1200 * MS && passed < 2000 * MS, "asked anew after {passed:?}: an answer may be lost");
    assert_eq!(again.len(), 4);
    row_shows_zeros(&mut script, &again);
    assert!(script.outcome().is_some());
}
