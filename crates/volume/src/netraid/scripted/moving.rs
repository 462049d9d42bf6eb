//! A read that its policy wants moved: it is asked of the other holder when the first has withdrawn it, and not before.

use super::turns::write;
use super::{Asked, FAMILY, GROUP, Script, span};
use crate::netraid::operate::Operation;
use crate::netraid::read::ReadOperation;
use base::{BrickId, Stamp, Time};
use reads::distribute::load::Load;
use reads::distribute::policy::{Moved, Part, PartId, Policy};
use rules::counters::Counter;
use wire::{ReadPolicy, VolumeInfo};

/// Asks the first holder; each read moves the one before it to the second.
#[derive(Debug, Default)]
struct Moves {
    before: Option<PartId>,
    moved: Vec<Moved>,
}

impl Policy for Moves {
    fn one(&mut self, _now: Time, part: &Part<'_>, _load: &Load) -> Option<u8> {
        let before = self.before.replace(part.id);
        self.moved.extend(before.map(|part| Moved { part, from: 0, to: 1 }));
        Some(0)
    }

    fn take_moved(&mut self) -> Vec<Moved> {
        core::mem::take(&mut self.moved)
    }
}

/// Two reads, of which the second moves the first: what was asked, of the first member each.
fn two_reads() -> (Script, Asked, Asked) {
    let mut script = Script::new("raid1x3", 0b111, 0);
    let volume =
        VolumeInfo { read_policy: ReadPolicy::Random, ..VolumeInfo::new(FAMILY, "v", 1 << 30, "raid1x3") };
    script.coordinator.serve(&volume);
    script.coordinator.set_policy(ReadPolicy::Random, Box::new(Moves::default()));
    let mut read = || {
        script.begin(Operation::new(ReadOperation::new(GROUP, span(FAMILY), 0, false)));
        let mut asked = script.asked();
        assert_eq!(Script::slots(&asked), [0]);
        asked.remove(0)
    };
    let (first, second) = (read(), read());
    assert_eq!(script.called_off, [(0, first.call())]);
    assert_eq!(script.counted(Counter::ReadAskedBackFromAHolder), 1);
    (script, first, second)
}

#[test]
fn it_is_asked_of_the_other_when_it_is_withdrawn() {
    let (mut script, first, _) = two_reads();
    assert!(script.asked().is_empty(), "the first member has not confirmed");
    script.coordinator.on_cancelled(BrickId(1), &[first.call()], &[]);
    let moved = script.asked();
    assert_eq!(Script::slots(&moved), [1]);
    assert_eq!(script.counted(Counter::ReadMovedToAnotherHolder), 1);
    script.shows(&moved[0], 9, &[], true);
    assert!(script.outcome().is_some());
}

#[test]
fn one_that_has_begun_stays() {
    let (mut script, first, _) = two_reads();
    script.coordinator.on_cancelled(BrickId(1), &[], &[first.call()]);
    assert!(script.asked().is_empty());
    script.shows(&first, 9, &[], true);
    assert!(script.outcome().is_some());
    assert_eq!(script.counted(Counter::ReadMovedToAnotherHolder), 0);
}

#[test]
fn an_answer_that_crosses_the_wish_counts() {
    let (mut script, first, _) = two_reads();
    script.shows(&first, 9, &[], true);
    assert!(script.outcome().is_some());
    script.coordinator.on_cancelled(BrickId(1), &[first.call()], &[]);
    assert!(script.asked().is_empty(), "there is nothing to move any more");
}

#[test]
fn nobody_withdraws_what_another_was_asked() {
    let (mut script, first, second) = two_reads();
    script.coordinator.on_cancelled(BrickId(2), &[first.call(), second.call()], &[]);
    assert!(script.asked().is_empty());
    script.shows(&first, 9, &[], true);
    assert!(script.outcome().is_some());
}

#[test]
fn what_nobody_asked_back_is_not_withdrawn() {
    let (mut script, _, second) = two_reads();
    script.coordinator.on_cancelled(BrickId(1), &[second.call()], &[]);
    assert!(script.asked().is_empty());
    script.shows(&second, 9, &[], true);
    assert!(script.outcome().is_some());
}

/// Nobody asks a prepare back. A write whose member says that it has withdrawn its prepare waits for the answer all the same.
#[test]
fn no_prepare_is_withdrawn() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    script.begin(write());
    let asked = script.asked();
    script.coordinator.on_cancelled(BrickId(1), &[asked[0].call()], &[]);
    assert!(script.asked().is_empty(), "nothing begins anew");
    asked.iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
    assert!(script.outcome().is_some());
}
