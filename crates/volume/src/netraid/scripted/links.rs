//! Parts that are decided together by a record, on two groups of two mirrors; and whoever finds such a part in doubt.

use super::{Asked, FAMILY, GROUP, Script, block, view};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::context::links::{Address, Kept, Records};
use crate::netraid::link::{LinkOperation, RECORDS, record_of};
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::settle::SettleOperation;
use base::{BrickId, ClientId, GroupId, RequestId, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use wire::{
    Fate, GroupView, IoError, Link, Message, PrepareOutcome, ReadOutcome, Scope, Slots, Span, WriteId,
};

const LAYOUT: &str = "raid1x2";
/// With bricks 1 and 2; bricks 3 and 4 are the other's.
const OTHER: GroupId = GroupId(2);
const COUNT: u32 = 4;

fn other_view(number: u64, current: u32) -> GroupView {
    GroupView {
        group: OTHER,
        members: vec![BrickId(3), BrickId(4)],
        current: Slots(current),
        ..view(LAYOUT, number, 0b11, 0)
    }
}

fn script() -> Script {
    let mut script = Script::new(LAYOUT, 0b11, 0);
    assert!(script.coordinator.shared().views.adopt(other_view(1, 0b11)));
    script
}

fn path(group: GroupId) -> (Path, Origin) {
    let span = Span { volume: FAMILY, lba: group.0, count: 1 };
    let request = RequestId { client: ClientId(1), sequence: 1 };
    let origin = Origin { request, floor: 0, part: group.0 };
    (Path::new(group, span, Scope::Row, Content::Blocks(block(group.0 as u8))), origin)
}

/// Writes both parts; nothing is at the addresses of records, or this record.
fn writing(found: Option<(Stamp, &[WriteId])>) -> Script {
    let mut script = script();
    let records = Records { volume: FAMILY, group: GROUP, first: RECORDS, count: COUNT };
    script.begin(Operation::new(LinkOperation::new(vec![path(OTHER), path(GROUP)], records)));
    let looked = script.wait();
    assert_eq!((looked.len(), looked[0].span().lba, looked[0].span().count), (1, RECORDS, COUNT));
    let mut content = block(0);
    let mut stamps = vec![Stamp::ZERO; COUNT as usize];
    if let Some((stamp, writes)) = found {
        let mut record = wire::Wire::to_bytes(&writes.to_vec());
        record.resize(base::BLOCK, 0);
        content = record.into();
        stamps[0] = stamp;
    }
    (1..COUNT).for_each(|_| content.append(&block(0)));
    let outcome = ReadOutcome::Done { leased: true, stamps, unreadable: Vec::new() };
    script.answer(&looked[0], Answer::Read(outcome, content));
    script
}

fn write_of(asked: &Asked) -> WriteId {
    match asked.message {
        Message::Prepare { write, .. } | Message::Query { write, .. } => write,
        _ => panic!("{asked:?}"),
    }
}

/// All four members are asked to prepare the parts, and no record.
fn parts(script: &mut Script) -> (Vec<Asked>, Link) {
    let asked = script.wait();
    assert_eq!(Script::slots(&asked), [0, 1, 2, 3]);
    let link = write_of(&asked[0]).link.expect("a record");
    assert!(asked.iter().all(|asked| write_of(asked).link == Some(link)) && link.group == GROUP);
    (asked, link)
}

fn takes_all(script: &mut Script, asked: &[Asked]) {
    let yes = PrepareOutcome::Prepared { previous: Vec::new() };
    asked.iter().for_each(|asked| script.prepared(asked, yes.clone()));
}

/// The members of the first group are asked to prepare the record.
fn record(script: &mut Script, link: Link) -> Vec<Asked> {
    let asked = script.asked();
    let is_record = |asked: &Asked| write_of(asked).stamp == link.stamp && asked.span().lba == link.lba();
    assert!(Script::slots(&asked) == [0, 1] && asked.iter().all(is_record), "{asked:?}");
    asked
}

fn written(script: &mut Script) -> Option<Result<Written, IoError>> {
    match script.outcome()? {
        Outcome::Written(written) => Some(written),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn parts_take_effect_when_their_record_is_prepared() {
    let mut script = writing(None);
    let (asked, link) = parts(&mut script);
    takes_all(&mut script, &asked[1..]);
    assert!(script.asked().is_empty(), "one member lacks a part");
    takes_all(&mut script, &asked[..1]);
    let record = record(&mut script, link);
    takes_all(&mut script, &record[..1]);
    assert_eq!(written(&mut script), None);
    takes_all(&mut script, &record[1..]);
    assert_eq!(written(&mut script), Some(Ok(Written::Done)));
    assert_eq!(script.committed_at(), [0, 1, 2, 3]);
}

#[test]
fn where_one_part_is_refused_all_begin_anew_with_another_record() {
    let mut script = writing(None);
    let (asked, before) = parts(&mut script);
    takes_all(&mut script, &asked[..3]);
    script.prepared(&asked[3], PrepareOutcome::Late { newest: Stamp(9 << 40) });
    let rest = script.refuse_queries();
    assert!(rest.is_empty(), "{rest:?}");
    let (asked, link) = parts(&mut script);
    assert!(link.stamp > before.stamp && link.lba() != before.lba());
    assert!(script.committed_at_most_queries());
    takes_all(&mut script, &asked);
    let record = record(&mut script, link);
    takes_all(&mut script, &record);
    assert_eq!(written(&mut script), Some(Ok(Written::Done)));
}

#[test]
fn where_an_earlier_attempt_made_one_part_the_other_is_made_still() {
    let mut script = writing(None);
    let (asked, before) = parts(&mut script);
    takes_all(&mut script, &asked[2..]);
    // The first group has it from a gateway that knows no records.
    asked[..2].iter().for_each(|asked| script.prepared(asked, PrepareOutcome::Duplicate));
    let asked = loop {
        let asked = script.refuse_queries();
        if asked.iter().any(Asked::is_prepare) {
            break asked;
        }
        script.pass(Duration::from_millis(1));
    };
    let link = write_of(&asked[0]).link.expect("a record");
    assert!(Script::slots(&asked) == [2, 3] && link.stamp > before.stamp, "{asked:?}");
    takes_all(&mut script, &asked);
    let record = script.asked();
    assert!(Script::slots(&record) == [0, 1], "{record:?}");
    takes_all(&mut script, &record);
    assert_eq!(written(&mut script), Some(Ok(Written::Done)));
}

#[test]
fn what_one_group_holds_is_given_up_where_another_cannot_be_reached() {
    let mut script = writing(None);
    let (asked, before) = parts(&mut script);
    takes_all(&mut script, &asked[..2]);
    script.pass(Duration::from_millis(2100));
    let given_up = |(slot, _, aborts): &&(u8, Vec<wire::Decision>, Vec<wire::Decision>)| {
        *slot < 2 && aborts.iter().any(|abort| abort.lba == GROUP.0)
    };
    script.pass(Duration::from_millis(20));
    assert_eq!(script.decided.iter().filter(given_up).count(), 2);
    let again = script.asked().into_iter().filter(|asked| asked.is_prepare());
    assert!(
        again.filter(|asked| write_of(asked).link.is_some_and(|link| link.stamp > before.stamp)).count() > 0
    );
}

#[test]
fn a_record_is_written_only_over_what_was_found() {
    let mut script = writing(None);
    let (asked, link) = parts(&mut script);
    takes_all(&mut script, &asked);
    for asked in record(&mut script, link) {
        let Message::Prepare { base, .. } = asked.message else { panic!("{asked:?}") };
        assert_eq!(base, Some(Stamp::ZERO));
        script.prepared(&asked, PrepareOutcome::Changed);
    }
    // Somebody else's record is there: neither takes effect, and all addresses are looked at once more.
    let asked = loop {
        let asked = script.refuse_queries();
        if !asked.is_empty() {
            break asked;
        }
        script.pass(Duration::from_millis(1));
    };
    assert!(matches!(asked[0].message, Message::Read { span, .. } if span.lba == RECORDS), "{asked:?}");
    assert!(script.committed_at_most_queries());
}

#[test]
fn a_member_that_lacks_what_a_record_is_written_over_is_repaired() {
    let mut script = writing(None);
    let (asked, link) = parts(&mut script);
    takes_all(&mut script, &asked);
    let record = record(&mut script, link);
    takes_all(&mut script, &record[..1]);
    script.prepared(&record[1], PrepareOutcome::Unreadable);
    let asked = loop {
        let asked = script.refuse_queries();
        if !asked.is_empty() {
            break asked;
        }
        script.pass(Duration::from_millis(1));
    };
    assert!(matches!(asked[0].message, Message::Read { span, .. } if span.lba == link.lba()), "{asked:?}");
    assert!(script.committed_at_most_queries());
}

#[test]
fn parts_begin_anew_only_when_no_member_has_their_record() {
    let mut script = writing(None);
    let (asked, link) = parts(&mut script);
    takes_all(&mut script, &asked);
    let record = record(&mut script, link);
    // A settler of a part was there first: the record is refused for ever at one member.
    takes_all(&mut script, &record[..1]);
    script.prepared(&record[1], PrepareOutcome::Late { newest: link.stamp });
    let mut fates = |at_first| {
        for asked in script.wait() {
            assert_eq!(write_of(&asked).stamp, link.stamp);
            let fate = if asked.slot == 0 { at_first } else { Fate::Refused };
            script.answer(&asked, Answer::Fate(Ok(fate)));
        }
    };
    fates(Fate::Prepared);
    fates(Fate::Prepared);
    fates(Fate::Refused);
    let (_, again) = parts(&mut script);
    assert!(again.stamp > link.stamp);
    assert!(script.committed_at_most_queries());
}

#[test]
fn a_new_view_of_the_records_group_leaves_in_doubt_what_became_of_the_record() {
    let mut script = writing(None);
    let (asked, link) = parts(&mut script);
    takes_all(&mut script, &asked);
    record(&mut script, link);
    script.coordinator.on_views(vec![view(LAYOUT, 2, 0b01, 0)]);
    let asked = script.asked();
    assert_eq!((Script::slots(&asked), write_of(&asked[0]).stamp), (vec![0], link.stamp));
    script.answer(&asked[0], Answer::Fate(Ok(Fate::Committed)));
    assert_eq!(written(&mut script), Some(Ok(Written::Done)));
    assert_eq!(script.committed_at(), [0, 1, 2, 3]);
}

#[test]
fn what_an_earlier_gateway_left_is_decided_before_it_is_written_over() {
    let stamp = Stamp(1 << 40);
    let link = Some(Link::new(GROUP, RECORDS, stamp));
    let span = Span { volume: FAMILY, lba: 2, count: 1 };
    let part = WriteId { group: OTHER, span, stamp: Stamp(2 << 40), scope: Scope::Row, link };
    let mut script = writing(Some((stamp, &[WriteId { link: None, ..part }])));
    let (_, link) = parts(&mut script);
    assert_eq!(link.lba(), RECORDS + 3);
    // One more, and half of the addresses are in use.
    let records = Records { volume: FAMILY, group: GROUP, first: RECORDS, count: COUNT };
    let at = Address { lba: RECORDS + 2, stamp: Stamp(5) };
    script.coordinator.shared().links.keep(records, Kept { at, writes: Vec::new() });
    script.begin(Operation::new(LinkOperation::new(vec![path(OTHER), path(GROUP)], records)));
    let asked = script.asked();
    let is_decided = |asked: &&Asked| matches!(asked.message, Message::AreDecided { .. });
    let questions: Vec<&Asked> = asked.iter().filter(is_decided).collect();
    assert_eq!(questions.iter().map(|asked| asked.slot).collect::<Vec<_>>(), [2, 3]);
    let Message::AreDecided { ref writes, .. } = questions[0].message else { unreachable!() };
    assert_eq!(writes, &[part], "with its record, by which it goes");
    // One member has not heard of it: it is settled, by its record.
    script.answer(questions[0], Answer::Undecided(Ok(vec![part])));
    script.answer(questions[1], Answer::Undecided(Ok(Vec::new())));
    let queries: Vec<Asked> =
        script.asked().into_iter().filter(|asked| matches!(asked.message, Message::Query { .. })).collect();
    assert!(queries.iter().all(|query| write_of(query) == part) && queries.len() == 2, "{queries:?}");
}

/// A settler of a part on the other group, all of whose members have it.
fn settling() -> (Script, WriteId, Vec<Asked>) {
    let mut script = script();
    let link = Link::new(GROUP, RECORDS, Stamp(8 << 40));
    let span = Span { volume: FAMILY, lba: 2, count: 1 };
    let part = WriteId { group: OTHER, span, stamp: Stamp(9 << 40), scope: Scope::Row, link: Some(link) };
    script.coordinator.begin_alone(SettleOperation::new(part));
    script.coordinator.wake();
    for asked in script.asked() {
        script.answer(&asked, Answer::Fate(Ok(Fate::Prepared)));
    }
    let asked = script.asked();
    let record = record_of(&super::geometry(LAYOUT), FAMILY, link);
    assert!(Script::slots(&asked) == [0, 1] && asked.iter().all(|asked| write_of(asked) == record));
    (script, part, asked)
}

#[test]
fn a_part_that_all_have_goes_by_its_record() {
    let (mut script, _, asked) = settling();
    script.answer(&asked[0], Answer::Fate(Ok(Fate::Refused)));
    assert!(script.asked().is_empty(), "the other may know more");
    script.answer(&asked[1], Answer::Fate(Ok(Fate::Committed)));
    assert_eq!(script.committed_at(), [0, 1, 2, 3]);
    assert_eq!(script.counted(Counter::RecordAskedByASettler), 1);

    let (mut script, _, asked) = settling();
    asked.iter().for_each(|asked| script.answer(asked, Answer::Fate(Ok(Fate::Refused))));
    assert!(script.committed_at().is_empty());
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 2);
}

#[test]
fn another_record_at_its_address_says_that_it_never_took_effect() {
    let (mut script, _, asked) = settling();
    asked.iter().for_each(|asked| script.answer(asked, Answer::Fate(Ok(Fate::Unreadable))));
    script.pass(Duration::from_millis(2));
    assert!(script.committed_at().is_empty());
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 2);
}

#[test]
fn who_does_not_know_the_records_group_leaves_the_part_to_others() {
    let mut script = Script::new(LAYOUT, 0b11, 0);
    let link = Some(Link::new(OTHER, RECORDS, Stamp(8 << 40)));
    let span = Span { volume: FAMILY, lba: 1, count: 1 };
    let part = WriteId { group: GROUP, span, stamp: Stamp(9 << 40), scope: Scope::Row, link };
    script.coordinator.begin_alone(SettleOperation::new(part));
    script.coordinator.wake();
    for asked in script.asked() {
        script.answer(&asked, Answer::Fate(Ok(Fate::Prepared)));
    }
    assert!(script.committed_at().is_empty());
    assert_eq!(script.counted(Counter::WriteInDoubtAborted), 0);
}
