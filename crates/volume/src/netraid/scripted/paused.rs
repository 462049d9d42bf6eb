//! A gateway that stood still for a while, and comes back with old ideas.

use super::{FAMILY, GROUP, Script, block, span, view};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::write::WriteOperation;
use base::{ClientId, RequestId, Stamp};
use core::time::Duration;
use wire::{Fate, Message, PrepareOutcome, Scope};

const REQUEST: RequestId = RequestId { client: ClientId(5), sequence: 77 };
const PAUSE: Duration = Duration::from_secs(20);

fn script_with_a_write() -> Script {
    let mut script = Script::new("raid1x2", 0b11, 0);
    let origin = Origin { request: REQUEST, floor: 70, part: 0 };
    let content = Content::Blocks(block(9));
    let write = WriteOperation::new(Path::new(GROUP, span(FAMILY), Scope::Row, content), origin);
    script.begin(Operation::new(write));
    script
}

fn stamp_of(asked: &super::Asked) -> Stamp {
    let Message::Prepare { write, request, .. } = &asked.message else { panic!("{asked:?}") };
    assert_eq!(*request, REQUEST, "asked again under the same name, so that it takes effect once");
    write.stamp
}

#[test]
fn a_write_that_was_settled_meanwhile_is_not_acknowledged_for_its_old_answers() {
    let mut script = script_with_a_write();
    let first = script.asked();
    script.takes(&first[0], 0, Stamp::ZERO);
    // The second member never got it; another gateway has had it refused there and dropped at the first.
    script.coordinator.shared().now += PAUSE;
    script.coordinator.wake();
    let again = script.asked();
    assert_eq!(Script::slots(&again), [1]);
    assert_eq!(stamp_of(&again[0]), stamp_of(&first[0]));
    script.prepared(&again[0], PrepareOutcome::Late { newest: stamp_of(&first[0]) });
    for query in script.asked() {
        script.answer(&query, Answer::Fate(Ok(Fate::Refused)));
    }
    assert!(script.outcome().is_none());
    let second = script.wait();
    assert_eq!(Script::slots(&second), [0, 1]);
    assert!(stamp_of(&second[0]) > stamp_of(&first[0]));
    second.iter().for_each(|asked| script.prepared(asked, PrepareOutcome::Duplicate));
    assert!(
        matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))),
        "it took effect through another gateway"
    );
    assert!(script.committed_at_most_queries());
}

#[test]
fn what_is_asked_under_a_view_of_long_ago_is_asked_anew_under_the_one_that_is_shown() {
    let mut script = script_with_a_write();
    let first = script.asked();
    script.takes(&first[0], 0, Stamp::ZERO);
    script.coordinator.shared().now += PAUSE;
    script.coordinator.wake();
    let again = script.asked();
    let now = view("raid1x2", 9, 0b10, 0);
    script.prepared(&again[0], PrepareOutcome::Stale { view: Some(now) });
    let anew = script.asked();
    assert_eq!(Script::slots(&anew), [1]);
    let Message::Prepare { view, .. } = &anew[0].message else { panic!("{anew:?}") };
    assert_eq!(view.0, 9);
    assert!(stamp_of(&anew[0]) > stamp_of(&first[0]));
    // The answer of a member that is none any more, which lay in a socket all the while.
    script.takes(&first[1], 0, Stamp::ZERO);
    assert!(script.outcome().is_none());
    script.takes(&anew[0], 0, Stamp::ZERO);
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
    assert_eq!(script.committed_at(), [1]);
}
