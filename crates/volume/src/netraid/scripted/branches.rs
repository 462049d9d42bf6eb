//! Volumes write to branches, and a view says to which: no operation goes to the branch of an old view under a new one.

use super::{FAMILY, GROUP, Script, block, span, view};
use crate::netraid::allocation::AllocationOperation;
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use crate::netraid::read::ReadOperation;
use crate::netraid::settle::SettleOperation;
use crate::netraid::write::WriteOperation;
use base::{BrickId, GroupId, RequestId, Stamp, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use rules::layout::Piece;
use wire::{Fate, GroupView, IoError, Lineage, Message, Scope, Slots, WriteId};

const FIRST: VolumeId = VolumeId(20);
const SECOND: VolumeId = VolumeId(21);
const CLONE: VolumeId = VolumeId(8);
const CLONED: VolumeId = VolumeId(22);

fn write(volume: VolumeId) -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    let content = Content::Blocks(block(9));
    Operation::new(WriteOperation::new(Path::new(GROUP, span(volume), Scope::Row, content), origin))
}

fn read(volume: VolumeId) -> Operation {
    Operation::new(ReadOperation::new(GROUP, span(volume), 0, true))
}

fn allocation(volume: VolumeId) -> Operation {
    let piece = Piece { volume_block: 0, count: 1, extent: 0, data_index: 0, slot: 0, lba: 0 };
    Operation::new(AllocationOperation::new(volume, GROUP, piece))
}

/// View `number`, in which volumes have these heads, and each head but the first has the one before for its parent.
fn with_heads(number: u64, heads: &[(VolumeId, VolumeId)]) -> GroupView {
    let parents = match number {
        0..=2 => Vec::new(),
        _ => vec![(SECOND, FIRST), (CLONED, FIRST)],
    };
    let lineage = Lineage { heads: heads.to_vec(), parents, ..Lineage::default() };
    GroupView { lineage: Box::new(lineage), ..view("raid1x2", number, 0b11, 0) }
}

fn branches(script: &mut Script) -> Vec<VolumeId> {
    let mut branches: Vec<VolumeId> = script.asked().iter().map(|asked| asked.span().volume).collect();
    branches.dedup();
    branches
}

#[test]
fn what_is_under_way_goes_to_the_new_head_once_a_view_has_it() {
    for make in [write, read, allocation] {
        let mut script = Script::new("raid1x2", 0b11, 0);
        script.coordinator.on_views(vec![with_heads(2, &[(FAMILY, FIRST)])]);
        script.begin(make(FAMILY));
        assert_eq!(branches(&mut script), [FIRST]);
        script.coordinator.on_views(vec![with_heads(3, &[(FAMILY, SECOND)])]);
        assert_eq!(branches(&mut script), [SECOND]);
        script.pass(Duration::from_millis(300));
        assert_eq!(branches(&mut script), [SECOND], "asked again");
    }
}

#[test]
fn what_was_answered_of_an_old_branch_does_not_count_under_a_new_view() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    script.coordinator.on_views(vec![with_heads(2, &[(FAMILY, FIRST)])]);
    script.begin(write(FAMILY));
    let old = script.asked();
    script.takes(&old[0], 0, Stamp::ZERO);
    script.coordinator.on_views(vec![with_heads(3, &[(FAMILY, SECOND)])]);
    script.takes(&old[1], 0, Stamp::ZERO);
    assert!(script.outcome().is_none(), "both have it, each in another branch");
    let new = script.asked();
    assert_eq!(Script::slots(&new), [0, 1]);
    new.iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
}

/// Found by torture seed 2410478: a process whose disk was copied reported a write that was decided in a branch that a rollback had left. The
/// members had given the branch back, and refused the write.
#[test]
fn a_write_is_not_settled_in_a_branch_that_a_view_has_frozen_or_left_out() {
    let frozen = with_heads(3, &[(FAMILY, SECOND)]);
    let left_out = GroupView { number: frozen.number, ..with_heads(2, &[(FAMILY, SECOND)]) };
    for next in [frozen, left_out] {
        let mut script = Script::new("raid1x2", 0b11, 0);
        let write =
            WriteId { group: GROUP, span: span(FIRST), stamp: Stamp(5), scope: Scope::Row, link: None };
        script.coordinator.on_views(vec![with_heads(2, &[(FAMILY, FIRST)])]);
        script.coordinator.on_doubtful(BrickId(1), vec![write]);
        assert_eq!(Script::slots(&script.asked()), [0, 1]);
        script.coordinator.on_views(vec![next]);
        script.coordinator.on_doubtful(BrickId(1), vec![write]);
        script.coordinator.on_doubtful(BrickId(2), vec![write]);
        let asked = script.asked();
        asked.iter().for_each(|asked| script.answer(asked, Answer::Fate(Ok(Fate::Refused))));
        assert_eq!(script.counted(Counter::WriteInDoubtAborted), 0, "it may have been decided before");
        assert!(asked.is_empty(), "the view has settled it: {asked:?}");
        script.coordinator.begin_alone(SettleOperation::record(write));
        script.coordinator.wake();
        assert_eq!(Script::slots(&script.asked()), [0, 1], "a part under an older view may rest on a record");
    }
}

#[test]
fn a_snapshot_is_read_in_its_own_branch_and_takes_no_write() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    script.coordinator.on_views(vec![with_heads(3, &[(FAMILY, SECOND)])]);
    script.begin(read(FIRST));
    assert_eq!(branches(&mut script), [FIRST]);
    script.begin(write(FIRST));
    script.pass(Duration::from_secs(3));
    let asked = script.asked();
    assert!(!asked.iter().any(super::Asked::is_prepare), "a frozen branch is not written: {asked:?}");
}

#[test]
fn a_volume_that_the_view_does_not_know_is_not_read_as_empty() {
    for make in [write, read] {
        let mut script = Script::new("raid1x2", 0b11, 0);
        script.coordinator.on_views(vec![with_heads(3, &[(FAMILY, SECOND)])]);
        script.begin(make(CLONE));
        script.pass(Duration::from_millis(200));
        assert!(script.asked().is_empty());
        assert!(script.coordinator.take_stale().contains(&GROUP), "the directory is asked");
        script.coordinator.on_views(vec![with_heads(4, &[(FAMILY, SECOND), (CLONE, CLONED)])]);
        assert_eq!(branches(&mut script), [CLONED]);
    }
}

#[test]
fn a_deleted_volume_ends_its_own_operations_and_no_other_s() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    script.coordinator.on_views(vec![with_heads(4, &[(FAMILY, SECOND), (CLONE, CLONED)])]);
    script.begin(write(CLONE));
    script.coordinator.forget(FAMILY);
    assert!(script.outcome().is_none());
    let asked = script.asked();
    asked.iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done)))));
    script.begin(read(CLONE));
    script.coordinator.forget(CLONE);
    assert!(matches!(script.outcome(), Some(Outcome::Gone(IoError::NoVolume))));
    script.coordinator.forget_family(FAMILY);
    let views = script.coordinator.views();
    assert!(views.is_empty() && views.geometry_of_family(FAMILY).is_none());
    script.begin(read(CLONE));
    assert!(matches!(script.outcome(), Some(Outcome::Gone(IoError::NoVolume))));
}

#[test]
fn views_that_cannot_be_are_not_taken() {
    let mut script = Script::new("raid1x2", 0b11, 0);
    let views = &mut script.coordinator.shared().views;
    views.open_family(CLONE, super::geometry("raid1x2"));
    let good = view("raid1x2", 2, 0b01, 0b10);
    let huge = vec![(FIRST, SECOND); 1 << 15];
    let bad = [
        GroupView { current: Slots(0b11), ..good.clone() },
        GroupView { joining: Slots(0b110), ..good.clone() },
        GroupView { current: Slots(0b101), joining: Slots::default(), ..good.clone() },
        GroupView { volume: CLONE, ..good.clone() },
        GroupView { group: GroupId(2), volume: VolumeId(99), ..good.clone() },
        GroupView {
            members: good.members[..1].to_vec(),
            current: Slots(1),
            joining: Slots(0),
            ..good.clone()
        },
        GroupView { lineage: Lineage { parents: huge, ..Lineage::default() }.into(), ..good.clone() },
        GroupView { number: base::ViewNumber(1), ..good.clone() },
    ];
    for view in bad {
        assert!(!views.adopt(view.clone()), "{:?}", (view.group, view.volume, view.members, view.joining));
    }
    assert!(views.adopt(good));
}

#[test]
fn the_branch_of_a_child_is_its_parent_s() {
    let mut script = Script::new("raid5-2+1", 0b111, 0);
    let lineage = Lineage { heads: vec![(FAMILY, FIRST)], ..Lineage::default() };
    let mut next = GroupView { lineage: Box::new(lineage), ..view("raid5-2+1", 2, 0b110, 0) };
    script.coordinator.on_views(vec![next.clone()]);
    script.begin(read(FAMILY));
    let asked = script.asked();
    assert!(asked.len() == 2 && asked.iter().all(|asked| asked.span().volume == FIRST), "reconstructed");
    next.number.0 += 1;
    next.lineage.heads = vec![(FAMILY, SECOND)];
    script.coordinator.on_views(vec![next]);
    let asked = script.asked();
    assert!(asked.len() == 2 && asked.iter().all(|asked| asked.span().volume == SECOND), "{asked:?}");
    assert!(asked.iter().all(|asked| matches!(asked.message, Message::Read { view, .. } if view.0 == 3)));
}
