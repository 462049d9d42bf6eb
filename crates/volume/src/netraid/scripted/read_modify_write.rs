//! Small writes whose parity the coordinator computes.

use super::{Asked, FAMILY, GROUP, Script, block, span};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::write::WriteOperation;
use base::{Payload, RequestId, Stamp};
use rules::counters::Counter;
use wire::{Change, Message, PrepareOutcome, ReadOutcome, Scope, SmallWrites};

/// Two data units, and their parity at slot 2.
const LAYOUT: &str = "raid4-2+1";
const PARITY: u8 = 2;
const OLD: [Stamp; 2] = [Stamp(5 << 32), Stamp(6 << 32)];

fn path() -> Path {
    Path::new(GROUP, span(FAMILY), Scope::Unit { index: 0 }, Content::Blocks(block(9)))
        .by(SmallWrites::ReadModifyWrite)
}

fn write() -> Operation {
    writing(path())
}

fn writing(path: Path) -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    Operation::new(WriteOperation::new(path, origin))
}

/// The old row: 3 and 5, and their sum.
fn show_old_row(script: &mut Script, asked: &[Asked], parity_names: [Stamp; 2]) {
    assert_eq!(Script::slots(asked), [0, PARITY], "{asked:?}");
    script.shows(&asked[0], 3, &OLD[..1], false);
    script.shows(&asked[1], 3 ^ 5, &parity_names, false);
}

fn replacement(asked: &[Asked]) -> (&Change, &Payload) {
    assert!(asked.iter().all(Asked::is_prepare), "{asked:?}");
    assert_eq!(Script::slots(asked), [0, PARITY], "both at once");
    let Message::Prepare { change, .. } = &asked[1].message else { unreachable!("a prepare") };
    (change, &asked[1].payload)
}

#[test]
fn the_coordinator_computes_the_parity_from_what_it_read_and_it_is_taken_over_nothing_else() {
    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(write());
    let asked = script.asked();
    show_old_row(&mut script, &asked, OLD);
    let asked = script.asked();
    let (change, parity) = replacement(&asked);
    assert_eq!(*change, Change::Replace { index: 0, width: 2, previous: OLD.to_vec() });
    assert_eq!(*parity, block(9 ^ 5));
    asked.iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
}

#[test]
fn a_row_that_changed_meanwhile_is_read_anew_once_the_attempt_is_settled() {
    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(write());
    let asked = script.asked();
    show_old_row(&mut script, &asked, OLD);
    let asked = script.asked();
    script.takes(&asked[0], 0, Stamp::ZERO);
    script.prepared(&asked[1], PrepareOutcome::Changed);
    assert!(script.refuse_queries().is_empty(), "what the data brick has staged is settled first");
    let asked = script.wait();
    show_old_row(&mut script, &asked, OLD);
    replacement(&script.asked());
    assert_eq!(script.counted(Counter::ParityHadChanged), 1);
}

/// Found by the torture (`coord,seq,none,rmw`, seed 81001): the parity brick took it, since its parity was made of what was there, and the data
/// brick, which refused it, was left out before the attempt was settled.
#[test]
fn a_patch_of_what_is_not_there_any_more_is_sent_to_nobody() {
    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(writing(path().only_over(Stamp(4 << 32))));
    let asked = script.asked();
    show_old_row(&mut script, &asked, OLD);
    assert!(script.asked().is_empty());
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Changed)))));

    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(writing(path().only_over(OLD[0])));
    let asked = script.asked();
    show_old_row(&mut script, &asked, OLD);
    replacement(&script.asked());
}

#[test]
fn parity_that_names_another_version_of_the_data_is_not_used() {
    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(write());
    let asked = script.asked();
    show_old_row(&mut script, &asked, [Stamp(4 << 32), OLD[1]]);
    assert_eq!(script.counted(Counter::OldRowMetAWriteUnderWay), 1);
    let asked = script.wait();
    show_old_row(&mut script, &asked, OLD);
    replacement(&script.asked());
}

#[test]
fn where_a_member_cannot_tell_the_data_brick_computes_the_difference() {
    let mut script = Script::new(LAYOUT, 0b111, 0);
    script.begin(write());
    let asked = script.asked();
    let outcome = ReadOutcome::Done { leased: true, stamps: OLD.to_vec(), unreadable: vec![0] };
    script.answer(&asked[1], Answer::Read(outcome, block(0)));
    let asked = script.asked();
    assert!(asked.len() == 1 && asked[0].is_prepare() && asked[0].slot == 0, "{asked:?}");
    assert_eq!(script.counted(Counter::ParityLeftToTheDataBrick), 1);
}
