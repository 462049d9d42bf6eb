//! What others compute: when it is waited for, and what happens meanwhile.

use super::{FAMILY, GROUP, Script, block, span, view};
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Fetched, Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::reconstruct::ReconstructOperation;
use crate::netraid::write::WriteOperation;
use base::{ClusterTime, RequestId, Stamp, ViewNumber};
use code::CodeError;
use rules::counters::Counter;
use wire::{IoError, Message, Scope, Slots};

const LAYOUT: &str = "raid5-2+1";
const OLD: Stamp = Stamp(100 << 32);

fn script() -> Script {
    Script { computes: true, ..Script::new(LAYOUT, 0b111, 0) }
}

/// A row of fives and nines.
fn row() -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    let content = Content::Rows(vec![block(5), block(9)]);
    Operation::new(WriteOperation::new(Path::new(GROUP, span(FAMILY), Scope::Row, content), origin))
}

/// What unit 0 holds, from the others: fives, as the row's parity says.
fn reconstruct(script: &mut Script) {
    script.begin(Operation::new(ReconstructOperation::new(GROUP, span(FAMILY), 0, Slots::default())));
    for asked in script.asked() {
        let (byte, stamps) = if asked.slot == 2 { (5 ^ 9, vec![OLD; 2]) } else { (9, vec![OLD]) };
        script.shows(&asked, byte, &stamps, true);
    }
}

fn views_asked(script: &mut Script) -> Vec<ViewNumber> {
    let view = |message| match message {
        Message::Prepare { view, .. } => view,
        other => panic!("asked: {other:?}"),
    };
    script.asked().into_iter().map(|asked| view(asked.message)).collect()
}

#[test]
fn a_row_is_sent_when_its_parity_is_computed_and_under_a_stamp_of_then() {
    let mut script = script();
    script.begin(row());
    assert!(script.asked().is_empty(), "the parity is not there yet");
    let (now, seen) = (script.coordinator.now(), Stamp((ClusterTime::FIRST.0 + 1_000_000) << 14));
    script.coordinator.shared().stamps.see(now, seen);
    script.compute();
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    assert_eq!(asked[2].payload, block(5 ^ 9));
    for asked in &asked {
        let Message::Prepare { write, .. } = &asked.message else { panic!("asked: {asked:?}") };
        assert!(write.stamp > seen, "what was seen meanwhile is earlier");
        script.takes(asked, 0, OLD);
    }
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
}

#[test]
fn a_view_that_begins_meanwhile_needs_the_same_parity() {
    let mut script = script();
    script.begin(row());
    let computing = script.computing();
    script.coordinator.on_views(vec![view(LAYOUT, 2, 0b101, 0)]);
    assert!(script.computing().is_empty() && script.asked().is_empty(), "it waits for what it wanted");
    for (id, computation) in computing {
        script.coordinator.on_computed(id, computation.run());
        script.coordinator.on_computed(id, computation.run());
    }
    assert_eq!(views_asked(&mut script), [ViewNumber(2); 2]);
    script.coordinator.on_views(vec![view(LAYOUT, 3, 0b111, 0)]);
    assert!(script.computing().is_empty(), "the parity of a row is the same in each attempt");
    assert_eq!(views_asked(&mut script), [ViewNumber(3); 3]);
}

#[test]
fn a_unit_that_is_being_reconstructed_when_a_view_begins_is_read_anew() {
    let mut script = script();
    reconstruct(&mut script);
    let earlier = script.computing();
    script.coordinator.on_views(vec![view(LAYOUT, 2, 0b101, 0)]);
    for (id, computation) in earlier {
        script.coordinator.on_computed(id, computation.run());
    }
    assert_eq!(script.counted(Counter::ComputedForNobody), 1);
    assert!(script.outcome().is_none());
}

#[test]
fn a_unit_comes_back_with_the_stamps_that_its_row_agreed_on() {
    let mut script = script();
    reconstruct(&mut script);
    assert!(script.outcome().is_none(), "it is not computed yet");
    script.compute();
    let Some(Outcome::Read(Ok(Fetched { content, stamps }))) = script.outcome() else { panic!("no content") };
    assert_eq!((content, stamps), (block(5), vec![OLD]));
}

#[test]
fn what_cannot_be_computed_fails_the_one_who_wanted_it() {
    let mut script = script();
    reconstruct(&mut script);
    for (id, _) in script.computing() {
        script.coordinator.on_computed(id, Err(CodeError::Repeated { index: 1 }));
    }
    assert!(matches!(script.outcome(), Some(Outcome::Read(Err(IoError::Unreadable)))));
}

#[test]
fn nobody_hears_of_what_was_computed_for_a_group_that_is_abandoned() {
    let mut script = script();
    reconstruct(&mut script);
    script.coordinator.abandon(GROUP);
    script.compute();
    assert!(script.outcome().is_none());
    assert_eq!(script.counted(Counter::ComputedForNobody), 1);
}
