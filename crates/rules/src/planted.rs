//! Rules of which one is broken on purpose, to see that the checkers find it. They exist only with the feature `planted`.

use crate::promises::{Rules, SOUND};
use base::{BrickId, NodeId, Stamp};
use core::time::Duration;
use wire::{GroupView, PrepareOutcome};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// A brick works on requests under any view once it has one.
    FencingOff,
    /// Nobody notices that a disk is older than what was told of it.
    OldDiskUnnoticed,
    CountsAtOnce,
    /// A brick trusts its views for ever once it had a lease.
    LeaseOutlivesView,
    /// A write is decided before those have it who stand in for members.
    StandInCountsEarly,
    /// A member that was sealed serves reads under whatever view they name.
    SealedIsBelieved,
    /// The directory acts on a store that is older than what bricks know.
    OldStoreUnnoticed,
    /// A brick is told all that it missed at once.
    TellsAllAtOnce,
    /// The directory keeps every deletion.
    KeepsDeletions,
    /// The directory repeats questions as often as it did the first time.
    RepeatsAtOnce,
    /// A brick knows for ever of the volumes that are deleted.
    ForgetsNoVolume,
    /// A brick that missed a deletion keeps what it has of the branch.
    KeepsBranches,
    /// A number is lent again as soon as its turn comes.
    LendsTwice,
    /// A member takes a write whatever stamps are there.
    TimestampCheckOff,
    /// A gateway whose write was refused for a later stamp draws stamps as before.
    LaterStampsUnseen,
    /// A member that catches up takes one block in many for equal without looking.
    ResyncSkipsABlock,
    /// A member that catches up fetches from members that themselves lack writes.
    RebuildReadsStaleCopy,
    /// The groups of a family move to a new head each at its own time.
    SnapshotBrickByBrick,
    /// A read that sees what is not decided is given what is decided, and waits for nothing.
    UndecidedUnseen,
    /// A reader that meets a newer write goes back to what was before, complete or not.
    GoesBackUnasked,
    /// A write of several blocks within a unit is a write for each block.
    UnitsInPieces,
    /// A write that has a record is decided like one that has none.
    RecordUnasked,
    /// A put of a segment is over once the first fragment is stored.
    PutEndsEarly,
    /// A version of an object becomes visible although it is not held open any more.
    CommitsUnheld,
    /// For a read that counts on no clock one member's word is enough, whichever.
    BelievesOne,
    /// Bricks do not make again what was lost of objects.
    RestoresNothing,
    /// A version of an object becomes visible whatever its putter asked for.
    ReplacesUnasked,
    /// Fragments of an old version go although a later one shares them.
    ForgetsSharers,
    /// A version shares fragments of its base, wherever these are by now.
    SharesMoved,
    /// A brick gives back what it has of a segment although the index has not noted that it is elsewhere.
    GivesBackUnnoted,
    /// A reader takes what its fragments give, whether or not that was put.
    TrustsFragments,
    /// What a putter calls off stays where it is stored.
    KeepsCalledOff,
    /// A brick looks for garbage of objects half a minute after its start at the earliest.
    LooksLate,
    /// The index takes any brick's word of where fragments are.
    AmendsUnasked,
    /// Content goes to a disk whether or not there is room.
    DoorStandsOpen,
    /// Once content is held back, none goes to the disk before the disk takes all that comes.
    DoorOpensLate,
}

/// The rules with this broken.
pub fn rules(plant: Option<Plant>) -> &'static dyn Rules {
    match plant {
        None => SOUND,
        Some(Plant::FencingOff) => &FencingOff,
        Some(Plant::OldDiskUnnoticed) => &OldDiskUnnoticed,
        Some(Plant::CountsAtOnce) => &CountsAtOnce,
        Some(Plant::LeaseOutlivesView) => &LeaseOutlivesView,
        Some(Plant::StandInCountsEarly) => &StandInCountsEarly,
        Some(Plant::SealedIsBelieved) => &SealedIsBelieved,
        Some(Plant::OldStoreUnnoticed) => &OldStoreUnnoticed,
        Some(Plant::TellsAllAtOnce) => &TellsAllAtOnce,
        Some(Plant::KeepsDeletions) => &KeepsDeletions,
        Some(Plant::RepeatsAtOnce) => &RepeatsAtOnce,
        Some(Plant::ForgetsNoVolume) => &ForgetsNoVolume,
        Some(Plant::KeepsBranches) => &KeepsBranches,
        Some(Plant::LendsTwice) => &LendsTwice,
        Some(Plant::TimestampCheckOff) => &TimestampCheckOff,
        Some(Plant::LaterStampsUnseen) => &LaterStampsUnseen,
        Some(Plant::ResyncSkipsABlock) => &ResyncSkipsABlock,
        Some(Plant::RebuildReadsStaleCopy) => &RebuildReadsStaleCopy,
        Some(Plant::SnapshotBrickByBrick) => &SnapshotBrickByBrick,
        Some(Plant::UndecidedUnseen) => &UndecidedUnseen,
        Some(Plant::GoesBackUnasked) => &GoesBackUnasked,
        Some(Plant::UnitsInPieces) => &UnitsInPieces,
        Some(Plant::RecordUnasked) => &RecordUnasked,
        Some(Plant::PutEndsEarly) => &PutEndsEarly,
        Some(Plant::CommitsUnheld) => &CommitsUnheld,
        Some(Plant::BelievesOne) => &BelievesOne,
        Some(Plant::RestoresNothing) => &RestoresNothing,
        Some(Plant::ReplacesUnasked) => &ReplacesUnasked,
        Some(Plant::ForgetsSharers) => &ForgetsSharers,
        Some(Plant::SharesMoved) => &SharesMoved,
        Some(Plant::GivesBackUnnoted) => &GivesBackUnnoted,
        Some(Plant::TrustsFragments) => &TrustsFragments,
        Some(Plant::KeepsCalledOff) => &KeepsCalledOff,
        Some(Plant::LooksLate) => &LooksLate,
        Some(Plant::AmendsUnasked) => &AmendsUnasked,
        Some(Plant::DoorStandsOpen) => &DoorStandsOpen,
        Some(Plant::DoorOpensLate) => &DoorOpensLate,
    }
}

#[derive(Debug)]
struct FencingOff;

impl Rules for FencingOff {
    fn works_under(&self, _is_in_force: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct OldDiskUnnoticed;

impl Rules for OldDiskUnnoticed {
    fn doubts(&self, _may_lack: bool) -> bool {
        false
    }

    fn is_old_disk(&self, _ends_before: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct LeaseOutlivesView;

impl Rules for LeaseOutlivesView {
    fn counts_on_lease(&self, _is_leased: bool, was_leased: bool) -> bool {
        was_leased
    }
}

#[derive(Debug)]
struct StandInCountsEarly;

impl Rules for StandInCountsEarly {
    fn waits_for_stand_ins(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct SealedIsBelieved;

impl Rules for SealedIsBelieved {
    fn serves_read(
        &self,
        admitted: Result<(), Option<GroupView>>,
        _from: NodeId,
        (in_force, me): (Option<&GroupView>, BrickId),
    ) -> Result<(), Option<GroupView>> {
        let is_sealed = in_force.is_some_and(|view| view.sealed.iter().any(|(_, brick)| *brick == me));
        if is_sealed { Ok(()) } else { admitted }
    }
}

#[derive(Debug)]
struct CountsAtOnce;

impl Rules for CountsAtOnce {
    fn may_count(&self, _lease_has_ended: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct OldStoreUnnoticed;

impl Rules for OldStoreUnnoticed {
    fn refuses_as_old(&self, _is_old: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct TellsAllAtOnce;

impl Rules for TellsAllAtOnce {
    fn page_bytes(&self, _configured: usize) -> usize {
        usize::MAX
    }
}

#[derive(Debug)]
struct KeepsDeletions;

impl Rules for KeepsDeletions {
    fn forgets_up_to(&self, _confirmed: u64) -> Option<u64> {
        None
    }
}

#[derive(Debug)]
struct RepeatsAtOnce;

impl Rules for RepeatsAtOnce {
    fn repeats_after(&self, first: Duration, _now: Duration) -> Duration {
        first
    }
}

#[derive(Debug)]
struct ForgetsNoVolume;

impl Rules for ForgetsNoVolume {
    fn forgets(&self, _is_gone: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct LendsTwice;

impl Rules for LendsTwice {
    fn lends(&self, _is_free: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct KeepsBranches;

impl Rules for KeepsBranches {
    fn lets_go(&self, _is_left_out: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct TimestampCheckOff;

impl Rules for TimestampCheckOff {
    fn verdict(&self, _by_stamps: Result<(), PrepareOutcome>) -> Result<(), PrepareOutcome> {
        Ok(())
    }
}

#[derive(Debug)]
struct LaterStampsUnseen;

impl Rules for LaterStampsUnseen {
    fn seen(&self, _stamp: Stamp) -> Stamp {
        Stamp::ZERO
    }
}

#[derive(Debug)]
struct ResyncSkipsABlock;

impl Rules for ResyncSkipsABlock {
    fn compares(&self, lba: u64) -> bool {
        lba % 8 != 3
    }
}

#[derive(Debug)]
struct RebuildReadsStaleCopy;

impl Rules for RebuildReadsStaleCopy {
    /// The first one that is not current, if there is any.
    fn repair_source(&self, view: &GroupView, slot: u8) -> Option<u8> {
        (0..view.members.len() as u8).find(|of| *of != slot && !view.current.has(*of))
    }

    fn repair_replaces(&self, _is_later_here: bool) -> bool {
        true
    }

    fn serves_read(
        &self,
        admitted: Result<(), Option<GroupView>>,
        from: NodeId,
        _in_force: (Option<&GroupView>, BrickId),
    ) -> Result<(), Option<GroupView>> {
        admitted.or_else(|view| if matches!(from, NodeId::Brick(_)) { Ok(()) } else { Err(view) })
    }
}

#[derive(Debug)]
struct SnapshotBrickByBrick;

impl Rules for SnapshotBrickByBrick {
    fn fences_family(&self, _moves_a_head: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct UndecidedUnseen;

impl Rules for UndecidedUnseen {
    fn shows_undecided(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct GoesBackUnasked;

impl Rules for GoesBackUnasked {
    fn asks_whether_complete(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct UnitsInPieces;

impl Rules for UnitsInPieces {
    fn keeps_units_whole(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct RecordUnasked;

impl Rules for RecordUnasked {
    fn asks_the_record(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct PutEndsEarly;

impl Rules for PutEndsEarly {
    fn ends_put(&self, _is_enough: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct CommitsUnheld;

impl Rules for CommitsUnheld {
    fn commits(&self, _is_open: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct BelievesOne;

impl Rules for BelievesOne {
    fn confirmations(&self, _enough: u8) -> u8 {
        1
    }
}

#[derive(Debug)]
struct ReplacesUnasked;

impl Rules for ReplacesUnasked {
    fn replaces(&self, _condition_holds: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct ForgetsSharers;

impl Rules for ForgetsSharers {
    fn keeps(&self, _is_shared: bool) -> bool {
        false
    }
}

#[derive(Debug)]
struct SharesMoved;

impl Rules for SharesMoved {
    fn shares(&self, _is_there: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct GivesBackUnnoted;

impl Rules for GivesBackUnnoted {
    fn gives_back(&self, _is_noted: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct TrustsFragments;

impl Rules for TrustsFragments {
    fn trusts(&self, _is_right: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct AmendsUnasked;

impl Rules for AmendsUnasked {
    fn amends(&self, _follows: bool) -> bool {
        true
    }
}

#[derive(Debug)]
struct DoorStandsOpen;

impl Rules for DoorStandsOpen {
    fn room(&self, _told: u64) -> u64 {
        u64::MAX
    }
}

#[derive(Debug)]
struct DoorOpensLate;

impl Rules for DoorOpensLate {
    fn room(&self, told: u64) -> u64 {
        if told == u64::MAX { told } else { 0 }
    }
}

#[derive(Debug)]
struct KeepsCalledOff;

impl Rules for KeepsCalledOff {
    fn gives_back_called_off(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct LooksLate;

impl Rules for LooksLate {
    fn first_look(&self, _soon: Duration, every: Duration) -> Duration {
        every
    }
}

#[derive(Debug)]
struct RestoresNothing;

impl Rules for RestoresNothing {
    fn restores(&self) -> bool {
        false
    }
}
