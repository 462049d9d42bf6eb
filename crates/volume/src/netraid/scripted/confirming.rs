//! Reads that count on no clock: they end once enough members have said, after they were asked, that the view is in force.

use super::{Asked, FAMILY, GROUP, Script, span, view};
use crate::netraid::answer::Answer;
use crate::netraid::order::gate::{Work, ordered};
use crate::netraid::outcome::Outcome;
use base::Payload;
use core::time::Duration;
use wire::{Message, Order, ReadOutcome, Reads};

fn read(script: &mut Script) {
    let (span, reads) = (span(FAMILY), Reads::Confirmed);
    script.begin(ordered(Order::TsWait, Work::Read { group: GROUP, span, data_index: 0, reads }));
}

/// Questions for the content, and those whether the view is in force.
fn split(asked: Vec<Asked>) -> (Vec<Asked>, Vec<Asked>) {
    asked.into_iter().partition(|asked| matches!(asked.message, Message::Read { content: true, .. }))
}

fn confirms(script: &mut Script, asked: &Asked) {
    let outcome = ReadOutcome::Done { leased: false, stamps: Vec::new(), unreadable: Vec::new() };
    script.answer(asked, Answer::Read(outcome, Payload::new()));
}

/// How many reads have ended since the last look, each with what it read.
fn count_read(script: &mut Script) -> usize {
    let ended = script.coordinator.take_finished();
    ended.into_iter().filter(|(_, outcome)| matches!(outcome, Outcome::Read(Ok(_)))).count()
}

/// A member knows no such view, and shows none.
fn refuses(script: &mut Script, asked: &Asked) {
    script.answer(asked, Answer::Read(ReadOutcome::Stale { view: None }, Payload::new()));
}

fn is_read(script: &mut Script) -> bool {
    matches!(script.outcome(), Some(Outcome::Read(Ok(_))))
}

#[test]
fn as_many_members_confirm_as_a_later_view_cannot_do_without() {
    // With one that joins, and where two are left out already.
    for (layout, current, joining, enough) in [
        ("raid1x2", 0b11, 0, 2),
        ("raid1x3", 0b111, 0, 3),
        ("raid1x3", 0b001, 0, 1),
        ("raid1x3", 0b001, 0b010, 2),
        ("raid5-2+1", 0b111, 0, 2),
        ("rs-4+2", 0b11_1111, 0, 3),
        ("rs-4+2", 0b00_1111, 0, 1),
        ("rs-4+2", 0b00_1111, 0b11_0000, 3),
    ] {
        let mut script = Script::new(layout, current, joining);
        read(&mut script);
        let (content, questions) = split(script.asked());
        assert_eq!(questions.len(), enough, "{layout} {current:b} {joining:b}");
        script.shows(&content[0], 1, &[], true);
        for question in &questions {
            assert!(script.outcome().is_none(), "{layout} {current:b} {joining:b}: not all have confirmed");
            confirms(&mut script, question);
        }
        assert!(is_read(&mut script), "{layout} {current:b} {joining:b}");
    }
}

#[test]
fn a_read_ends_with_its_content_where_it_was_confirmed_before() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    read(&mut script);
    let (content, questions) = split(script.asked());
    questions.iter().for_each(|question| confirms(&mut script, question));
    assert!(script.outcome().is_none());
    script.shows(&content[0], 1, &[], true);
    assert!(is_read(&mut script));
}

#[test]
fn a_round_serves_the_reads_that_were_asked_before_it_and_no_later_one() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    read(&mut script);
    read(&mut script);
    let (contents, questions) = split(script.asked());
    assert_eq!((contents.len(), questions.len()), (2, 2), "one round for both");
    read(&mut script);
    read(&mut script);
    let (later, none) = split(script.asked());
    assert!(later.len() == 2 && none.is_empty(), "the round under way began before");
    contents.iter().chain(&later).for_each(|content| script.shows(content, 1, &[], true));
    assert!(script.outcome().is_none());
    questions.iter().for_each(|question| confirms(&mut script, question));
    assert_eq!(count_read(&mut script), 2, "both that were asked before");
    let (none, questions) = split(script.asked());
    assert!(none.is_empty() && questions.len() == 2, "the next round serves both that came later");
    questions.iter().for_each(|question| confirms(&mut script, question));
    assert_eq!(count_read(&mut script), 2);
    assert!(script.asked().is_empty(), "nobody waits any more");
}

#[test]
fn what_was_read_under_a_view_that_is_over_is_read_again() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    read(&mut script);
    let (content, questions) = split(script.asked());
    script.shows(&content[0], 1, &[], true);
    let one_that_knows =
        questions.iter().find(|asked| asked.slot != content[0].slot).expect("another member");
    let later = view("raid1x3", 2, 0b111 & !(1 << content[0].slot), 0);
    script.answer(one_that_knows, Answer::Read(ReadOutcome::Stale { view: Some(later) }, Payload::new()));
    assert!(script.outcome().is_none(), "it had come from a member that the view leaves out");
    let (again, questions) = split(script.asked());
    assert!(again.len() == 1 && again[0].slot != content[0].slot && questions.len() == 2);
    script.shows(&again[0], 2, &[], true);
    assert!(script.outcome().is_none(), "that the view before was in force says nothing of this one");
    questions.iter().for_each(|question| confirms(&mut script, question));
    assert!(is_read(&mut script));
}

#[test]
fn others_are_asked_soon_where_some_do_not_answer_and_then_first() {
    let mut script = Script::new("rs-4+2", 0b11_1111, 0);
    read(&mut script);
    let (content, questions) = split(script.asked());
    script.shows(&content[0], 1, &[], true);
    questions[1..].iter().for_each(|question| confirms(&mut script, question));
    script.pass(Duration::from_millis(25));
    let others = script.asked();
    assert_eq!(Script::slots(&others), [3, 4, 5]);
    read(&mut script);
    confirms(&mut script, &others[0]);
    assert!(is_read(&mut script));
    let (_, next) = split(script.asked());
    assert!(next.len() == 3 && !Script::slots(&next).contains(&questions[0].slot), "{next:?}");
}

/// A brick whose old disk waits for a person, say.
#[test]
fn who_knows_no_such_view_keeps_nobody_from_asking_others_and_is_asked_last() {
    let mut script = Script::new("raid0x4", 0b1111, 0);
    read(&mut script);
    let (content, questions) = split(script.asked());
    script.shows(&content[0], 1, &[], true);
    assert_eq!(Script::slots(&questions), [0], "any one is enough");
    refuses(&mut script, &questions[0]);
    let others = script.asked();
    assert_eq!(Script::slots(&others), [1, 2, 3]);
    read(&mut script);
    confirms(&mut script, &others[0]);
    assert_eq!(count_read(&mut script), 1);
    let (content, next) = split(script.asked());
    assert!(Script::slots(&next) == [1] && content.len() == 1, "{next:?}");
    confirms(&mut script, &next[0]);
    script.shows(&content[0], 1, &[], true);
    assert_eq!(count_read(&mut script), 1);
}

#[test]
fn where_too_few_know_the_view_all_are_asked_again_soon() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    read(&mut script);
    let (content, questions) = split(script.asked());
    script.shows(&content[0], 1, &[], true);
    confirms(&mut script, &questions[1]);
    refuses(&mut script, &questions[0]);
    assert!(script.asked().is_empty());
    script.pass(Duration::from_millis(15));
    let again = script.asked();
    assert_eq!(Script::slots(&again), [0, 1]);
    confirms(&mut script, &again[0]);
    assert_eq!(count_read(&mut script), 0, "what the other one said before is too old");
    confirms(&mut script, &again[1]);
    assert_eq!(count_read(&mut script), 1);
}

#[test]
fn members_that_stay_silent_are_asked_again() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    read(&mut script);
    let (content, _lost) = split(script.asked());
    script.shows(&content[0], 1, &[], true);
    let again = script.wait();
    assert_eq!(Script::slots(&again), [0, 1]);
    again.iter().for_each(|question| confirms(&mut script, question));
    assert!(is_read(&mut script));
}
