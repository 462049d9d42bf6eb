//! The rare states that a full run must reach: a test that cannot get there proves nothing.
//!
//! Machines count most of them ([`Counter`]); a few only the world can see ([`Seen`]). Each is named once, where it is
//! declared.

use rules::Counters;
use rules::counters::Counter;
use std::collections::BTreeMap;

/// From so many seeds on, a run in which one of [`REQUIRED`], or with objects of [`REQUIRED_OF_OBJECTS`], was never reached fails.
pub const SEEDS_MIN: u64 = 1000;

base::named! {
    /// A rare state that only the world can see.
    pub enum Seen {
        NoSpaceAnswered: "ENOSPC answered",
        ClientServedWithinSecondsAfterItsGatewayWasKilled: "client served within seconds after its gateway was killed",
        GatewayLiedAboutADelay: "a gateway lied about a delay",
        BrickVouchedForAReadAsItsClockHadStood: "a brick vouched for a read as its clock had stood",
        DisksLostInTheMiddleOfARebuild: "disks lost in the middle of a rebuild",
        JoinerCrashedWhileCatchingUp: "joiner crashed while catching up",
        RottenBrickScrubbedClean: "rotten brick scrubbed clean",
        SourceCrashedWhileAnotherCaughtUp: "source crashed while another caught up",
        WriteDecidedBesideAStandIn: "write decided beside a stand-in",
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rare {
    /// One that machines count.
    Machine(Counter),
    /// One that the world counts.
    World(Seen),
}

impl Rare {
    pub fn text(self) -> &'static str {
        match self {
            Rare::Machine(counter) => counter.text(),
            Rare::World(seen) => seen.text(),
        }
    }
}

/// Those that a full run must reach.
pub const REQUIRED: &[Rare] = &[
    Rare::World(Seen::BrickVouchedForAReadAsItsClockHadStood),
    Rare::Machine(Counter::AskedForPatienceByABrick),
    Rare::Machine(Counter::BaseOfAPatchHadChanged),
    Rare::Machine(Counter::BrickCameWithAnOldDisk),
    Rare::Machine(Counter::BrickCameWithOtherDisks),
    Rare::Machine(Counter::BrickCaughtUpAndBecameCurrent),
    Rare::Machine(Counter::CancelCrossedItsAnswer),
    Rare::Machine(Counter::ClaimOvertookItsRead),
    Rare::World(Seen::ClientServedWithinSecondsAfterItsGatewayWasKilled),
    Rare::Machine(Counter::ClientLeftTheGatewayBesideABrick),
    Rare::Machine(Counter::ClientWentToAnotherGateway),
    Rare::Machine(Counter::CompletionRememberedAnew),
    Rare::Machine(Counter::ComputedForNobody),
    Rare::Machine(Counter::ContentWaitedForItsTurnToBeDestaged),
    Rare::Machine(Counter::CutBegun),
    Rare::Machine(Counter::CutBegunBesideAStandIn),
    Rare::Machine(Counter::DegradedReadWentBackToAnOlderVersion),
    Rare::Machine(Counter::DirectoryRestartedInsideAViewChange),
    Rare::World(Seen::DisksLostInTheMiddleOfARebuild),
    Rare::Machine(Counter::DiskOpenedByAllItsPages),
    Rare::Machine(Counter::DiskOpenedByItsMap),
    Rare::Machine(Counter::DiskOpenedByItsMapAfterAnInterruptedCycle),
    Rare::Machine(Counter::DuplicateAnswersToARead),
    Rare::Machine(Counter::DuplicateRequestSuppressed),
    Rare::World(Seen::GatewayLiedAboutADelay),
    Rare::World(Seen::NoSpaceAnswered),
    Rare::Machine(Counter::InDoubtWriteSettledByAnotherGateway),
    Rare::World(Seen::JoinerCrashedWhileCatchingUp),
    Rare::Machine(Counter::JoiningBrickLost),
    Rare::Machine(Counter::LeaseGivenBack),
    Rare::Machine(Counter::LeaseRanOut),
    Rare::Machine(Counter::LockGranted),
    Rare::Machine(Counter::LockTakenBack),
    Rare::Machine(Counter::LockWaitedFor),
    Rare::Machine(Counter::MaintenanceWaitedForItsTurn),
    Rare::Machine(Counter::OldRowMetAWriteUnderWay),
    Rare::Machine(Counter::ParityLeftToTheDataBrick),
    Rare::Machine(Counter::ReadAnsweredWithoutALease),
    Rare::Machine(Counter::ReadConfirmedWithoutALease),
    Rare::Machine(Counter::ReadInDoubt),
    Rare::Machine(Counter::ReadLeftAtItsDisk),
    Rare::Machine(Counter::ReadLeftBeforeItsTurn),
    Rare::Machine(Counter::ReadLeftToAnotherMember),
    Rare::Machine(Counter::ReadRescued),
    Rare::Machine(Counter::ReadAskedBackFromAHolder),
    Rare::Machine(Counter::ReadMovedToAnotherHolder),
    Rare::Machine(Counter::ReadSawAWriteThatIsNotDecided),
    Rare::Machine(Counter::ReadWaitedForALease),
    Rare::Machine(Counter::ReadWentBackToAnOlderVersion),
    Rare::Machine(Counter::ReadWentAroundASlowBrick),
    Rare::Machine(Counter::ReadsPlannedTogether),
    Rare::Machine(Counter::RecoveredWithWritesInDoubt),
    Rare::Machine(Counter::RepairTakenByAMember),
    Rare::Machine(Counter::RepeatOfARequestThatWaits),
    Rare::Machine(Counter::RequestUnderAnOldViewRefused),
    Rare::Machine(Counter::RequestWaitedInLine),
    Rare::Machine(Counter::RequestWentToTheGatewayBesideABrick),
    Rare::Machine(Counter::RequestWithdrawnBeforeItsTurn),
    Rare::Machine(Counter::ReservationRefused),
    Rare::World(Seen::RottenBrickScrubbedClean),
    Rare::Machine(Counter::SealedMemberReturned),
    Rare::Machine(Counter::SlotGivenToAnotherBrick),
    Rare::Machine(Counter::SlowMemberCameBack),
    Rare::Machine(Counter::SlowMemberLeftOut),
    Rare::Machine(Counter::SlowMemberNeededAgain),
    Rare::World(Seen::SourceCrashedWhileAnotherCaughtUp),
    Rare::Machine(Counter::StandInNamed),
    Rare::Machine(Counter::StreamChangedWhileItsRequestsWaited),
    Rare::Machine(Counter::TornJournalTailAtRecovery),
    Rare::Machine(Counter::UnitReconstructedFromItsRow),
    Rare::Machine(Counter::UnreadableBlocksRepaired),
    Rare::Machine(Counter::ViewChangeRevoked),
    Rare::Machine(Counter::WriteAbortedByAViewChange),
    Rare::World(Seen::WriteDecidedBesideAStandIn),
    Rare::Machine(Counter::WriteDecidedByAViewChange),
    Rare::Machine(Counter::WriteDroppedByAViewChange),
    Rare::Machine(Counter::WriteGaveWayToOthers),
    Rare::Machine(Counter::WriteGivenUpBeforeItsTurn),
    Rare::Machine(Counter::WriteRefusedByWaitDie),
    Rare::Machine(Counter::WriteRefusedForAnotherUnderWay),
    Rare::Machine(Counter::WriteRefusedForEver),
    Rare::Machine(Counter::WriteWaitedBehindAnUndecidedOne),
    Rare::Machine(Counter::WriteWentAheadAsItsFateWasAsked),
    Rare::Machine(Counter::WriteWentOnWithoutALock),
    Rare::Machine(Counter::WriteWentToTheLockServer),
    Rare::Machine(Counter::WriteWhileItsDataBrickJoins),
];

/// Those that a full run with objects must reach besides.
pub const REQUIRED_OF_OBJECTS: &[Rare] = &[
    Rare::Machine(Counter::FragmentsMadeAgain),
    Rare::Machine(Counter::FragmentsMoved),
    Rare::Machine(Counter::SmallFragmentsErased),
    Rare::Machine(Counter::UnwantedFragmentsGivenBack),
];

/// Those that were never reached, by how often each was, in a run with objects or without.
pub fn missing(reached: &BTreeMap<String, u64>, has_objects: bool) -> Vec<&'static str> {
    let of_objects = REQUIRED_OF_OBJECTS.iter().filter(|_| has_objects);
    let texts = REQUIRED.iter().chain(of_objects).map(|rare| rare.text());
    texts.filter(|text| reached.get(*text).is_none_or(|&count| count == 0)).collect()
}

/// How often each state was reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached {
    machines: Counters,
    world: BTreeMap<Seen, u64>,
}

impl Reached {
    /// One more that the world saw.
    pub(crate) fn count(&mut self, seen: Seen) {
        *self.world.entry(seen).or_default() += 1;
    }

    /// What a machine counted.
    pub(crate) fn add(&mut self, counters: &Counters) {
        self.machines.add(counters);
    }

    pub(crate) fn get(&self, rare: Rare) -> u64 {
        match rare {
            Rare::Machine(counter) => self.machines.get(counter),
            Rare::World(seen) => self.world.get(&seen).copied().unwrap_or(0),
        }
    }

    /// All that was reached, for people.
    pub(crate) fn by_text(&self) -> BTreeMap<String, u64> {
        let machines = self.machines.all().map(|(counter, count)| (counter.text(), count));
        let world = self.world.iter().map(|(seen, count)| (seen.text(), *count));
        machines.chain(world).map(|(text, count)| (text.to_owned(), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every run of a thousand seeds without objects failed for a state that only objects reach.
    #[test]
    fn a_run_without_objects_need_not_reach_what_only_objects_reach() {
        let reached = REQUIRED.iter().map(|rare| (rare.text().to_owned(), 1)).collect();
        assert!(missing(&reached, false).is_empty());
        assert_eq!(missing(&reached, true).len(), REQUIRED_OF_OBJECTS.len());
    }
}
