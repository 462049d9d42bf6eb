//! Members that join: they must have every write, serve no read, and fail no client.

use super::{FAMILY, GROUP, Script, block, geometry, span, view};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::members::participants;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::read::ReadOperation;
use crate::netraid::settle::SettleOperation;
use crate::netraid::write::WriteOperation;
use base::{BrickId, Payload, RequestId, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use wire::RepairOutcome::{NoSpace, Refused, Taken};
use wire::{
    Change, Fate, IoError, Message, PrepareOutcome, ReadOutcome, RepairOutcome, Scope, Slots, WriteId,
};

const OLD: Stamp = Stamp(100 << 32);

fn write(scope: Scope, base: Option<Stamp>) -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    let content = Content::Blocks(block(9));
    let path = Path::new(GROUP, span(FAMILY), scope, content);
    let path = match base {
        Some(base) => path.only_over(base),
        None => path,
    };
    Operation::new(WriteOperation::new(path, origin))
}

fn read() -> Operation {
    Operation::new(ReadOperation::new(GROUP, span(FAMILY), 0, true))
}

fn unit() -> Operation {
    write(Scope::Unit { index: 0 }, None)
}

#[test]
fn a_write_waits_for_a_member_that_joins() {
    let mut script = Script::new("raid1x3", 0b011, 0b100);
    script.begin(write(Scope::Row, None));
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    script.takes(&asked[0], 0, OLD);
    script.takes(&asked[1], 0, OLD);
    assert!(script.outcome().is_none(), "the joining member does not have it");
    script.takes(&asked[2], 0, OLD);
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
    assert_eq!(script.committed_at(), [0, 1, 2]);
}

#[test]
fn a_patch_compares_its_base_at_current_members_alone() {
    let mut script = Script::new("raid1x2", 0b01, 0b10);
    script.begin(write(Scope::Row, Some(OLD)));
    let bases = script.asked().into_iter().map(|asked| match asked.message {
        Message::Prepare { base, .. } => base,
        other => panic!("{other:?}"),
    });
    assert_eq!(bases.collect::<Vec<_>>(), [Some(OLD), None]);
}

#[test]
fn no_read_goes_to_a_member_that_joins() {
    let mut script = Script::new("raid1x3", 0b011, 0b100);
    for _ in 0..8 {
        script.begin(read());
        let asked = script.asked();
        assert!(asked.len() == 1 && asked[0].slot < 2);
        script.shows(&asked[0], 1, &[OLD], false);
        let asked = script.asked();
        assert_eq!(Script::slots(&asked), [0, 1, 2], "without a lease the current members confirm");
        asked[..2].iter().for_each(|asked| script.shows(asked, 1, &[OLD], false));
        assert!(script.outcome().is_none(), "that no later view began is to be seen from all writers");
        bears_witness(&mut script, &asked[2]);
        assert!(matches!(script.outcome(), Some(Outcome::Read(Ok(_)))));
    }
}

/// A member that joins says that the view is in force, and nothing of its stamps.
fn bears_witness(script: &mut Script, asked: &super::Asked) {
    assert!(matches!(asked.message, Message::Read { stamps: false, content: false, .. }), "{asked:?}");
    let outcome = ReadOutcome::Done { leased: false, stamps: Vec::new(), unreadable: Vec::new() };
    script.answer(asked, Answer::Read(outcome, Payload::new()));
}

/// View 8 = {A}, B joins; view 9 = {A, B} is to come, of which A hears nothing; A is silent and left out: view 10 = {B}.
/// A gateway that hears no more of the directory than A still reaches both.
#[test]
fn a_member_that_was_left_out_unheard_is_found_out_by_the_one_that_had_joined() {
    let mut script = Script::new("raid1x2", 0b01, 0b10);
    script.begin(read());
    let asked = script.asked();
    script.shows(&asked[0], 1, &[OLD], false);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1]);
    script.shows(&asked[0], 1, &[OLD], false);
    let view = Some(view("raid1x2", 10, 0b10, 0));
    script.answer(&asked[1], Answer::Read(ReadOutcome::Stale { view }, Payload::new()));
    assert!(script.outcome().is_none(), "stale");
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1]);
}

#[test]
fn a_reconstruction_without_leases_needs_the_witness_of_all_writers() {
    let mut script = Script::new("rs-2+2", 0b0110, 0b1000);
    script.begin(read());
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1, 2]);
    script.shows(&asked[0], 2, &[OLD], false);
    script.shows(&asked[1], 3, &[OLD, OLD], false);
    let asked = script.wait();
    assert_eq!(Script::slots(&asked), [1, 2, 3]);
    script.shows(&asked[0], 2, &[OLD], false);
    script.shows(&asked[1], 3, &[OLD, OLD], false);
    assert!(script.outcome().is_none());
    bears_witness(&mut script, &asked[2]);
    assert!(matches!(script.outcome(), Some(Outcome::Read(Ok(_)))));
}

#[test]
fn a_unit_whose_member_joins_is_written_from_what_the_others_say() {
    // At row 0 of raid5-2+1 the units are at slots 0 and 1, the parity at 2.
    let mut script = Script::new("raid5-2+1", 0b110, 0b001);
    script.begin(unit());
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1, 2], "the old content comes from current members");
    script.shows(&asked[0], 2, &[OLD], true);
    script.shows(&asked[1], 3, &[Stamp(OLD.0 - 1), OLD], true);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 2]);
    let Message::Prepare { change, base, want_delta, .. } = &asked[0].message else { panic!("{asked:?}") };
    assert_eq!((change, base, want_delta), (&Change::Data, &None, &false));
    assert_eq!(asked[0].payload, block(9), "the whole block");
    let Message::Prepare { change: Change::Xor { index: 0, previous, .. }, .. } = &asked[1].message else {
        panic!("{asked:?}")
    };
    assert_eq!(previous, &[Stamp(OLD.0 - 1)]);
    assert_eq!(asked[1].payload, block(9 ^ 2 ^ 3));
    asked.iter().for_each(|asked| script.takes(asked, 0, OLD));
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
    assert_eq!(script.committed_at(), [0, 2]);
}

#[test]
fn a_parity_member_that_joins_gets_the_delta() {
    let mut script = Script::new("raid5-2+1", 0b011, 0b100);
    script.begin(unit());
    let asked = script.asked();
    assert!(matches!(
        asked[..],
        [super::Asked { slot: 0, message: Message::Prepare { want_delta: true, .. }, .. }]
    ));
    script.takes(&asked[0], 4, OLD);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [2]);
    assert_eq!(asked[0].payload, block(9 ^ 4));
    assert!(script.outcome().is_none());
}

/// One round in which the parity member at slot 2 lacks what the delta builds on; true when the write goes on.
fn round_of_lacking(script: &mut Script, taken: bool) {
    let asked = script.wait();
    assert_eq!(Script::slots(&asked), [0], "the write begins at its data member");
    script.takes(&asked[0], 4, OLD);
    let asked = script.asked();
    script.prepared(&asked[0], PrepareOutcome::Unreadable);
    // Settled before it is repaired: what it left at the data member would hold up the repair.
    let mut asked = script.refuse_queries();
    let (mut offers, mut reads) = (0, 0);
    loop {
        for asked in &asked {
            match &asked.message {
                Message::Read { .. } => {
                    assert!(asked.slot < 2, "the row is read from current members");
                    reads += 1;
                    script.shows(asked, 1, &[OLD], true);
                }
                Message::Repair { width, .. } => {
                    assert_eq!((asked.slot, *width), (2, 2));
                    offers += 1;
                    script.answer(asked, Answer::Repaired(if taken { Taken } else { Refused }));
                }
                other => panic!("{other:?}"),
            }
        }
        asked = script.wait();
        assert!(!asked.is_empty(), "the write goes on: {:?}", script.outcome());
        if asked.iter().any(super::Asked::is_prepare) {
            break script.keep(asked);
        }
    }
    assert_eq!(reads, 2 * offers, "what is good is read anew for each offer");
    assert!(
        if taken { offers == 1 } else { offers > 1 },
        "a repair that is refused is offered again: {offers}"
    );
}

#[test]
fn a_write_has_what_a_joining_member_lacks_repaired_however_often() {
    let mut script = Script::new("raid5-2+1", 0b011, 0b100);
    script.begin(unit());
    (0..40).for_each(|round| round_of_lacking(&mut script, round % 2 == 0));
    let asked = script.wait();
    script.takes(&asked[0], 4, OLD);
    let asked = script.asked();
    script.takes(&asked[0], 0, OLD);
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
}

#[test]
fn a_current_member_that_cannot_be_repaired_fails_the_write_in_the_end() {
    for (bad, repair, error) in [
        (0, Refused, IoError::Unreadable),
        (1, Refused, IoError::Unreadable),
        (0, NoSpace, IoError::NoSpace),
        (1, NoSpace, IoError::NoSpace),
    ] {
        let mut script = Script::new("raid1x2", 0b11, 0);
        script.begin(write(Scope::Row, Some(OLD)));
        let outcome = (0..10_000).find_map(|_| {
            script.asked().iter().for_each(|asked| answer_badly(&mut script, asked, bad, repair));
            script.pass(Duration::from_millis(5));
            script.outcome()
        });
        assert!(matches!(outcome, Some(Outcome::Written(Err(why))) if why == error), "{outcome:?}");
    }
}

/// As a member, of which the one at slot `bad` cannot read its stamps, and takes no repair.
fn answer_badly(script: &mut Script, asked: &super::Asked, bad: u8, repair: RepairOutcome) {
    match asked.message {
        Message::Prepare { .. } if asked.slot != bad => script.takes(asked, 0, OLD),
        Message::Prepare { .. } => script.prepared(asked, PrepareOutcome::Unreadable),
        Message::Query { .. } => script.answer(asked, Answer::Fate(Ok(Fate::Refused))),
        Message::Read { .. } => {
            assert_ne!(asked.slot, bad, "what is good is at the other member");
            script.shows(asked, 1, &[OLD], true);
        }
        _ => script.answer(asked, Answer::Repaired(repair)),
    }
}

#[test]
fn a_joining_member_without_room_makes_a_write_wait_and_a_current_one_fails_it() {
    for (current, joining) in [(0b01, 0b10), (0b11, 0)] {
        let mut script = Script::new("raid1x2", current, joining);
        script.begin(write(Scope::Row, None));
        let mut asked = script.asked();
        for _ in 0..40 {
            assert_eq!(Script::slots(&asked), [0, 1]);
            script.takes(&asked[0], 0, OLD);
            script.prepared(&asked[1], PrepareOutcome::NoSpace);
            assert!(script.refuse_queries().is_empty());
            if joining == 0 {
                assert!(matches!(script.outcome(), Some(Outcome::Written(Err(IoError::NoSpace)))));
                break;
            }
            assert!(script.outcome().is_none());
            asked = script.wait();
        }
        if joining != 0 {
            script.coordinator.on_views(vec![view("raid1x2", 2, 0b01, 0)]);
            let asked = script.asked();
            assert_eq!(Script::slots(&asked), [0], "left out: the write goes on without it");
            script.takes(&asked[0], 0, OLD);
            assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
        }
    }
}

#[test]
fn a_member_that_joins_may_ask_to_settle_and_is_asked() {
    let mut script = Script::new("raid1x3", 0b001, 0b010);
    let write = WriteId { group: GROUP, span: span(FAMILY), stamp: OLD, scope: Scope::Row, link: None };
    script.coordinator.on_doubtful(BrickId(3), vec![write]);
    assert!(script.asked().is_empty(), "it takes no writes: the view settled them without it");
    script.coordinator.on_doubtful(BrickId(2), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1]);
    script.answer(&asked[0], Answer::Fate(Ok(Fate::Prepared)));
    assert_eq!(script.counted(Counter::WriteInDoubtCommitted), 0);
    script.answer(&asked[1], Answer::Fate(Ok(Fate::Refused)));
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 1);
}

/// Bricks 2 and 3 were left out and do not know it, nor does the gateway: they refuse a write that was made without them.
#[test]
fn what_a_brick_reports_under_a_later_view_is_not_aborted_by_members_that_were_left_out() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    let write = WriteId { group: GROUP, span: span(FAMILY), stamp: OLD, scope: Scope::Row, link: None };
    script.coordinator.on_doubtful(BrickId(1), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    for left_out in &asked[1..] {
        script.answer(left_out, Answer::Fate(Ok(Fate::Refused)));
    }
    assert_eq!(
        script.counted(Counter::WriteInDoubtAborted),
        0,
        "who reports it has not said under which view"
    );
    script.answer(&asked[0], Answer::Fate(Err(Some(view("raid1x3", 2, 0b001, 0)))));
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 0);
    script.coordinator.on_doubtful(BrickId(1), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0], "under the later view there is nobody else");
    script.answer(&asked[0], Answer::Fate(Ok(Fate::Prepared)));
    assert_eq!(script.counted(Counter::WriteInDoubtCommitted), 1);
}

/// Found by torture seed 2500250: a process whose disk was copied reported a write that was decided before the one with the copy joined.
#[test]
fn a_member_that_joins_aborts_nothing_that_it_reports_before_a_current_one_has_answered() {
    let mut script = Script::new("raid1x3", 0b101, 0b010);
    let write = WriteId { group: GROUP, span: span(FAMILY), stamp: OLD, scope: Scope::Row, link: None };
    script.coordinator.on_doubtful(BrickId(2), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    script.answer(&asked[1], Answer::Fate(Ok(Fate::Refused)));
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 0);
    script.answer(&asked[0], Answer::Fate(Ok(Fate::Committed)));
    assert_eq!(script.counted(Counter::WriteInDoubtCommitted), 1);
}

/// Who reported it may be dead. Another brick that has it reports it too, and is then the one that has to answer.
#[test]
fn nobody_waits_for_ever_for_the_brick_that_reported_a_write() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    let write = WriteId { group: GROUP, span: span(FAMILY), stamp: OLD, scope: Scope::Row, link: None };
    script.coordinator.on_doubtful(BrickId(1), vec![write]);
    let asked = script.asked();
    script.answer(&asked[2], Answer::Fate(Ok(Fate::Refused)));
    script.coordinator.on_doubtful(BrickId(2), vec![write]);
    assert!(script.asked().is_empty(), "it is being settled");
    while !script.wait().is_empty() {}
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 0);
    script.coordinator.on_doubtful(BrickId(2), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    script.answer(&asked[2], Answer::Fate(Ok(Fate::Refused)));
    script.answer(&asked[1], Answer::Fate(Ok(Fate::Prepared)));
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 1);
}

/// A member may not hear that an attempt was aborted. While the write repairs another member, which reads these very blocks, it
/// would wait for itself for ever otherwise.
#[test]
fn an_attempt_that_was_aborted_can_be_settled_again_while_its_write_goes_on() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    script.begin(write(Scope::Row, None));
    let asked = script.asked();
    let Message::Prepare { write, .. } = asked[0].message.clone() else { panic!("{asked:?}") };
    script.takes(&asked[0], 0, OLD);
    script.prepared(&asked[1], PrepareOutcome::Unreadable);
    let fates = [Fate::Prepared, Fate::Refused];
    for (asked, fate) in script.asked().iter().zip(fates) {
        script.answer(asked, Answer::Fate(Ok(fate)));
    }
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 1);
    let repairs = script.asked();
    assert!(!repairs.is_empty() && script.outcome().is_none(), "the write goes on with a repair");
    script.coordinator.on_doubtful(BrickId(1), vec![write]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1]);
    assert!(asked.iter().all(|asked| matches!(asked.message, Message::Query { .. })), "{asked:?}");
}

#[test]
fn those_who_take_part_are_among_those_named() {
    let (geometry, mut write) = (
        geometry("rs-2+2"),
        WriteId { group: GROUP, span: span(FAMILY), stamp: OLD, scope: Scope::Unit { index: 0 }, link: None },
    );
    let data = geometry.slot_of(0, 0);
    let unit = geometry.parity_slots(0).fold(Slots::one(data), |slots, (_, slot)| slots.with(slot));
    assert_eq!(participants(&geometry, Slots::all(4), &write), unit);
    assert_eq!(participants(&geometry, Slots::all(4).without(data), &write), unit.without(data));
    write.scope = Scope::Row;
    assert_eq!(participants(&geometry, Slots(0b101), &write), Slots(0b101));
    write.scope = Scope::Unit { index: 2 };
    assert!(participants(&geometry, Slots::all(4), &write).is_empty(), "a stranger's invention");
}

/// A write in doubt, of which the members say this, and say it again.
fn settled(current: u32, joining: u32, fates: &[Fate]) -> Script {
    let layout = if fates.len() == 2 { "raid1x2" } else { "raid1x3" };
    let mut script = Script::new(layout, current, joining);
    let write =
        WriteId { group: GROUP, span: span(FAMILY), stamp: Stamp(9 << 40), scope: Scope::Row, link: None };
    script.coordinator.begin_alone(SettleOperation::new(write));
    script.coordinator.wake();
    let asked = script.asked();
    assert_eq!(asked.len(), fates.len());
    asked.iter().for_each(|asked| script.answer(asked, Answer::Fate(Ok(fates[usize::from(asked.slot)]))));
    for asked in script.asked() {
        script.answer(&asked, Answer::Fate(Ok(fates[usize::from(asked.slot)])));
    }
    script
}

#[test]
fn a_write_that_only_a_joining_member_has_was_never_acknowledged() {
    // The current one has newer writes: it refused this one, or it would have, had it come.
    let script = settled(0b01, 0b10, &[Fate::Unreadable, Fate::Prepared]);
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 1);
    // It may have been acknowledged if a current one has it.
    let script = settled(0b011, 0b100, &[Fate::Unreadable, Fate::Prepared, Fate::Prepared]);
    assert_eq!(script.counted(Counter::WriteInDoubtCommitted), 1);
    let script = settled(0b01, 0b10, &[Fate::Committed, Fate::Prepared]);
    assert_eq!(script.counted(Counter::WriteInDoubtCommitted), 1);
}
