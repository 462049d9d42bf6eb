//! Members with full queues: what a write does that some of them tell to come again.

use super::{Asked, FAMILY, GROUP, Script, block, span};
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::write::WriteOperation;
use base::{ClientId, RequestId, Stamp};
use rules::counters::Counter;
use wire::{Message, PrepareOutcome, Scope};

pub(super) fn write() -> Operation {
    let request = RequestId { client: ClientId(5), sequence: 1 };
    let origin = Origin { request, floor: 0, part: 0 };
    let content = Content::Blocks(block(1));
    Operation::new(WriteOperation::new(Path::new(GROUP, span(FAMILY), Scope::Row, content), origin))
}

pub(super) fn stamp_of(asked: &Asked) -> Stamp {
    let Message::Prepare { write, .. } = &asked.message else { panic!("no prepare: {asked:?}") };
    write.stamp
}

/// The members at 0 and 2 take what they are asked, and the one at 1 is busy, until the write lets go of all.
fn gives_way(script: &mut Script) {
    script.begin(write());
    let first = script.asked();
    assert_eq!(Script::slots(&first), [0, 1, 2]);
    script.takes(&first[0], 0, Stamp::ZERO);
    script.takes(&first[2], 0, Stamp::ZERO);
    let mut busy = first.into_iter().find(|asked| asked.slot == 1).expect("asked");
    loop {
        let stamp = stamp_of(&busy);
        script.prepared(&busy, PrepareOutcome::Busy);
        let asked = script.wait();
        if !asked[0].is_prepare() {
            script.keep(asked);
            assert!(script.refuse_queries().is_empty());
            return;
        }
        assert_eq!(Script::slots(&asked), [1], "what the others have prepared is kept");
        assert_eq!(stamp_of(&asked[0]), stamp);
        busy = asked.into_iter().next().expect("one");
    }
}

#[test]
fn a_write_that_gave_way_goes_from_member_to_member_and_lets_go_of_nothing() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    gives_way(&mut script);
    let first = script.wait();
    assert_eq!(Script::slots(&first), [0], "the first in the order that all such writes keep");
    let stamp = stamp_of(&first[0]);
    script.takes(&first[0], 0, Stamp::ZERO);
    let mut second = script.wait();
    for _ in 0..50 {
        assert_eq!(Script::slots(&second), [1]);
        assert_eq!(stamp_of(&second[0]), stamp, "the busy member is asked alone, under the same stamp");
        script.prepared(&second[0], PrepareOutcome::Busy);
        second = script.wait();
    }
    script.takes(&second[0], 0, Stamp::ZERO);
    let third = script.wait();
    assert_eq!(Script::slots(&third), [2]);
    script.takes(&third[0], 0, Stamp::ZERO);
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
    assert_eq!(script.committed_at(), [0, 1, 2]);
    assert_eq!(script.counted(Counter::WriteGaveWayToOthers), 1);
}

/// A write of a unit may hold what it wants, and wait for a write that waits for this one.
#[test]
fn a_write_that_goes_from_member_to_member_lets_go_after_a_long_while() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    gives_way(&mut script);
    let first = script.wait();
    script.takes(&first[0], 0, Stamp::ZERO);
    let mut asked = script.wait();
    let since = script.coordinator.now();
    while asked[0].is_prepare() {
        assert_eq!(Script::slots(&asked), [1]);
        assert!(
            script.coordinator.now() < since + core::time::Duration::from_secs(11),
            "it holds the first for ever"
        );
        script.prepared(&asked[0], PrepareOutcome::Busy);
        asked = script.wait();
    }
    assert!(script.coordinator.now() >= since + core::time::Duration::from_secs(5));
    script.keep(asked);
    assert!(script.refuse_queries().is_empty());
    assert_eq!(script.counted(Counter::WriteGaveWayToOthers), 2);
    assert_eq!(Script::slots(&script.wait()), [0], "from the first on again");
}
