//! Reads that go back to an older version (`log`), and writers that ask for the time (`version`).

use super::{Asked, FAMILY, GROUP, Script, block, span, view};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::order::gate::{Work, ordered};
use crate::netraid::outcome::{Fetched, Outcome};
use crate::netraid::path::gw::{Content, Path};
use base::{ClusterTime, RequestId, Stamp, ViewNumber};
use core::time::Duration;
use rules::counters::Counter;
use rules::layout::Layout;
use wire::{Fate, Message, Order, ReadOutcome, ReadPolicy, Reads, Scope, Sight, Slots, VolumeInfo, WriteId};

const OLD: u8 = 1;
const NEW: u8 = 2;

/// A reader of mirrors whose protocol is `gw,version,log`, or as told.
fn reader(protocol: &str) -> Script {
    let layout = "raid1x3";
    let width = layout.parse::<Layout>().expect("a layout").width();
    let mut script = Script::new(layout, (1 << width) - 1, 0);
    let (protocol, read_policy) = (protocol.parse().expect("a protocol"), ReadPolicy::Hash);
    let volume = VolumeInfo { protocol, read_policy, ..VolumeInfo::new(FAMILY, "v", 1 << 30, layout) };
    script.coordinator.serve(&volume);
    script.begin(ordered(
        Order::TsWait,
        Work::Read { group: GROUP, span: span(FAMILY), data_index: 0, reads: Reads::Leased },
    ));
    script
}

fn newer() -> WriteId {
    WriteId { group: GROUP, span: span(FAMILY), stamp: Stamp(9 << 40), scope: Scope::Row, link: None }
}

/// The member shows what was there before the newer write.
fn shows_older(script: &mut Script, asked: &Asked, leased: bool) {
    let Message::Read { sight, .. } = asked.message else { panic!("a read: {asked:?}") };
    assert_eq!(sight, Sight::Committed);
    let (stamps, unreadable) = (Vec::new(), Vec::new());
    let outcome = ReadOutcome::Older { leased, stamps, unreadable, newer: vec![newer()] };
    script.answer(asked, Answer::Read(outcome, block(OLD)));
}

/// What members are asked about the newer write: nothing is refused for that.
fn looks(script: &mut Script) -> Vec<Asked> {
    let asked = script.asked();
    let is_look = |asked: &Asked| matches!(asked.message, Message::Query { only_looks: true, write, .. } if write == newer());
    assert!(asked.len() == 3 && asked.iter().all(is_look), "{asked:?}");
    asked
}

fn read(script: &mut Script) -> Option<u8> {
    match script.outcome()? {
        Outcome::Read(Ok(Fetched { content, .. })) => Some(content.to_vec()[0]),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn a_read_goes_back_where_one_member_lacks_the_newer_write() {
    let mut script = reader("gw,version,log");
    let asked = script.asked();
    shows_older(&mut script, &asked[0], true);
    let looks = looks(&mut script);
    script.answer(&looks[0], Answer::Fate(Ok(Fate::Prepared)));
    assert_eq!(read(&mut script), None, "the others may have it");
    script.answer(&looks[1], Answer::Fate(Ok(Fate::Absent)));
    assert_eq!(read(&mut script), Some(OLD));
    assert!(script.committed_at().is_empty());
}

#[test]
fn a_write_that_all_have_is_decided_and_read() {
    let mut script = reader("gw,version,log");
    let asked = script.asked();
    shows_older(&mut script, &asked[0], true);
    for look in looks(&mut script) {
        script.answer(&look, Answer::Fate(Ok(Fate::Prepared)));
    }
    let asked = script.wait();
    assert_eq!(asked.len(), 1);
    script.shows(&asked[0], NEW, &[], true);
    assert_eq!(read(&mut script), Some(NEW));
    assert_eq!(script.committed_at(), [0, 1, 2]);
    assert_eq!(script.counted(Counter::ReadWentBackToAnOlderVersion), 0);
}

#[test]
fn without_a_lease_nobody_goes_back() {
    for protocol in ["gw,version,log", "gw,version,log+read"] {
        let mut script = reader(protocol);
        let asked = script.asked();
        shows_older(&mut script, &asked[0], false);
        let asked = script.wait();
        let Message::Read { sight, .. } = asked[0].message else { panic!("{asked:?}") };
        assert_eq!(sight, Sight::Decided, "{protocol}");
        assert_eq!(read(&mut script), None);
    }
}

#[test]
fn a_new_view_has_decided_what_was_looked_at() {
    let mut script = reader("gw,version,log");
    let asked = script.asked();
    shows_older(&mut script, &asked[0], true);
    looks(&mut script);
    script.coordinator.on_views(vec![view("raid1x3", 2, 0b011, 0)]);
    let asked = script.wait();
    let Message::Read { view, .. } = asked[0].message else { panic!("{asked:?}") };
    assert_eq!((view, read(&mut script)), (ViewNumber(2), None));
}

#[test]
fn a_writer_draws_a_stamp_later_than_all_versions() {
    let mut script = reader("gw,version,log");
    let asked = script.asked();
    script.shows(&asked[0], OLD, &[], true);
    assert_eq!(read(&mut script), Some(OLD));
    // Far ahead of this gateway's clock, and not so far that no member would have taken them.
    let later = |seconds| Stamp((ClusterTime::FIRST + Duration::from_secs(seconds)).0 << 14);
    let (committed, staged) = (later(1200), later(2400));
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    let path = Path::new(GROUP, span(FAMILY), Scope::Row, Content::Blocks(block(NEW)));
    script.begin(ordered(Order::Version, Work::Write { path, origin }));
    let asked = script.asked();
    assert!(matches!(asked[..], [Asked { message: Message::Read { stamps: true, content: false, .. }, .. }]));
    let newer = vec![WriteId { stamp: staged, ..newer() }];
    let outcome = ReadOutcome::Older { leased: true, stamps: vec![committed], unreadable: Vec::new(), newer };
    script.answer(&asked[0], Answer::Read(outcome, base::Payload::new()));
    let asked = script.asked();
    let slots: Slots = asked.iter().fold(Slots::default(), |slots, asked| slots.with(asked.slot));
    assert_eq!(slots, Slots::all(3));
    for asked in &asked {
        let Message::Prepare { write, .. } = &asked.message else { panic!("{asked:?}") };
        assert!(write.stamp > staged);
    }
}

#[test]
fn a_row_stands_in_with_what_was_before_a_write_that_is_not_complete() {
    let protocol = "gw,version,log";
    let mut script = Script::new("raid5-4+1", 0b11110, 0);
    let volume = VolumeInfo {
        protocol: protocol.parse().expect("a protocol"),
        read_policy: ReadPolicy::Hash,
        ..VolumeInfo::new(FAMILY, "v", 1 << 30, "raid5-4+1")
    };
    script.coordinator.serve(&volume);
    let data_index =
        super::geometry("raid5-4+1").data_index_at(0, 0).expect("slot 0 has data of the first row");
    script.begin(ordered(
        Order::TsWait,
        Work::Read { group: GROUP, span: span(FAMILY), data_index, reads: Reads::Leased },
    ));
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1, 2, 3, 4], "the first brick is away");
    let (own, other) = (Scope::Unit { index: data_index }, Scope::Unit { index: data_index ^ 1 });
    for asked in &asked {
        let Message::Read { width, sight, .. } = asked.message else { panic!("{asked:?}") };
        assert_eq!(sight, Sight::Committed);
        let (stamps, unreadable) = (vec![Stamp(1 << 40); usize::from(width)], Vec::new());
        let newer = match width {
            1 => vec![],
            _ => vec![
                WriteId { scope: own, ..newer() },
                WriteId { scope: other, stamp: Stamp(8 << 40), ..newer() },
            ],
        };
        let outcome = match newer.is_empty() {
            true => ReadOutcome::Done { leased: true, stamps, unreadable },
            false => ReadOutcome::Older { leased: true, stamps, unreadable, newer },
        };
        script.answer(asked, Answer::Read(outcome, block(OLD)));
    }
    let looks = script.asked();
    let is_own = |asked: &Asked| matches!(asked.message, Message::Query { only_looks: true, write, .. } if write.scope == own);
    assert!(!looks.is_empty() && looks.iter().all(is_own), "writes of other units do not matter: {looks:?}");
    script.answer(&looks[0], Answer::Fate(Ok(Fate::Absent)));
    // Four times the same byte, xored.
    assert_eq!(read(&mut script), Some(0));
    assert_eq!(script.counted(Counter::DegradedReadWentBackToAnOlderVersion), 1);
}
