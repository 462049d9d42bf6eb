//! Counts of what happened in a machine: for metrics, and for the torture, which demands that rare states are reached.
//!
//! What is counted is listed here once, with the text under which operators see it.

base::named! {
    /// Something that machines count.
    pub enum Counter {
        AbortIgnoredUnderAFence: "abort ignored under a fence",
        AnswerOfAnotherRunIgnored: "answer of another run ignored",
        AnswerToAnotherRunIgnored: "answer to another run ignored",
        AnswerToAnotherQuestionThanWasAsked: "answer to another question than was asked",
        AskedForPatienceByABrick: "asked for patience by a brick",
        BaseOfAPatchHadChanged: "base of a patch had changed",
        BlocksOfAnotherSlotFound: "blocks of another slot found",
        BlockThatNobodyCanMakeOutMarkedAsLost: "block that nobody can make out marked as lost",
        BranchMergedIntoItsChild: "branch merged into its child",
        BrickCameWithOtherDisks: "brick came with other disks",
        BrickCameElsewhere: "brick came with its disks elsewhere",
        BrickCameWithAnOldDisk: "brick came with an old disk",
        BrickRanTwice: "brick ran twice",
        BrickCaughtUpAndBecameCurrent: "brick caught up and became current",
        BrickLetsItselfBeCaughtUp: "brick lets itself be caught up",
        CancelCrossedItsAnswer: "cancel crossed its answer",
        CatchingUpStoppedForLackOfRoom: "catching up stopped for lack of room",
        CaughtUpWithAGroup: "caught up with a group",
        ClaimOvertookItsRead: "claim overtook its read",
        ClientAskedAgain: "client asked again",
        ClientWentToAnotherGateway: "client went to another gateway",
        CommitImpliedByTheNextDelta: "commit implied by the next delta",
        CommitOfAWriteThatIsNotStagedIgnored: "commit of a write that is not staged ignored",
        CompletionRememberedAnew: "completion remembered anew",
        ComputedForNobody: "computed for nobody",
        ContentWaitedForItsTurnToBeDestaged: "content waited for its turn to be destaged",
        ContentWaitedForRoom: "content waited for room",
        ContestedReadCameTwice: "contested read came twice",
        ContestedReadCancelled: "contested read cancelled",
        ContestedReadFoundTheQueueFull: "contested read found the queue full",
        ContestedReadThatMakesNoSenseServedAlone: "contested read that makes no sense served alone",
        CutBegun: "cut begun",
        CutBegunBesideAStandIn: "cut begun beside a stand-in",
        DegradedReadMetAWriteUnderWay: "degraded read met a write under way",
        DirectoryRestartedInsideAViewChange: "directory restarted inside a view change",
        DirectoryWasPaused: "directory was paused",
        DiskFailed: "disk failed",
        DiskOpenedByAllItsPages: "disk opened by all of its pages",
        DiskOpenedByItsMap: "disk opened by its map of pages",
        DiskOpenedByItsMapAfterAnInterruptedCycle: "disk opened by its map and the pages of an interrupted cycle",
        DuplicateAnswersToARead: "duplicate answers to a read",
        DuplicateRequestSuppressed: "duplicate request suppressed",
        FateOfAWaitingWriteAsked: "fate of a waiting write asked",
        FenceNotAnsweredForWantOfMemory: "fence not answered for want of memory",
        FirstViewBegunElsewhere: "first view begun on other bricks",
        GatewayWasPaused: "gateway was paused",
        GroupLeft: "group left",
        GroupWentOnWithoutBlocksThatAreLost: "group went on without blocks that are lost",
        GroupsForgottenWithADisk: "groups forgotten with a disk",
        HeartbeatOfABrickThatWasNeverAdmitted: "heartbeat of a brick that was never admitted",
        GatewayWaitsForANumber: "gateway waits for a number of its stamps",
        GroupsHeldBackForAnOldDisk: "groups held back for an old disk",
        InDoubtWriteSettledByAnotherGateway: "in-doubt write settled by another gateway",
        InheritedBlockCopiedUp: "inherited block copied up",
        JoiningBrickLost: "joining brick lost",
        LearnedThatItWasLeftOutOfAView: "learned that it was left out of a view",
        LeaseGivenBack: "lease given back",
        LeaseRanOut: "lease ran out",
        MaintenanceWaitedForItsTurn: "maintenance waited for its turn",
        MalformedPrepareRefused: "malformed prepare refused",
        MemberHeldForSlow: "member held for slow",
        MembersTimesToldToTheDirectory: "members' times told to the directory",
        MessageFromAStrangerToThisRoleIgnored: "message from a stranger to this role ignored",
        NoSpace: "no space",
        NoSpaceAtAJoiningMember: "no space at a joining member",
        ObjectWithARecordThatIsNone: "object with a record that is none",
        OldBlocksCaughtUp: "old blocks caught up",
        OldRowMetAWriteUnderWay: "old row met a write under way",
        ParityLeftToTheDataBrick: "parity of a small write left to the data brick",
        ParityHadChanged: "parity had changed",
        PartsBeganAnewTogether: "parts that are decided together began anew",
        PartsDecidedTogether: "parts decided together",
        PartsWaitedForARecord: "parts waited for a free record",
        ReadAnsweredWithoutALease: "read answered without a lease",
        ReadConfirmedWithoutALease: "read confirmed without a lease",
        ReadInDoubt: "read in doubt",
        ReadLeftAtItsDisk: "read left to another member at its disk",
        ReadLeftBeforeItsTurn: "read left to another member before its turn",
        ReadLeftToAnotherMember: "read left to another member",
        ReadMetWritesInDoubt: "read met writes in doubt",
        ReadBeganAnewAsWhatItSawWasDecided: "read began anew as what it saw was decided",
        ReadSawAWriteThatIsNotDecided: "read saw a write that is not decided",
        ReadRescued: "read rescued",
        ReadAskedBackFromAHolder: "read asked back from a holder",
        ReadMovedToAnotherHolder: "read moved to another holder",
        DegradedReadWentBackToAnOlderVersion: "degraded read went back to an older version",
        ReadWasToldOfWritesThatAreNotDecided: "read was told of writes that are not decided",
        ReadWentBackToAnOlderVersion: "read went back to an older version",
        ReadWaitedForADecision: "read waited for a decision",
        ReadWentAroundABrickThatDidNotAnswer: "read went around a brick that did not answer",
        ReadWentAroundASlowBrick: "read went around a slow brick",
        ReadsPlannedTogether: "reads of a request planned together",
        RecordAskedByASettler: "record asked by a settler",
        RecordAskedByAViewChange: "record asked by a view change",
        RecoveredWithWritesInDoubt: "recovered with writes in doubt",
        RepairRefusedAndOfferedAgain: "repair refused and offered again",
        RepairTakenByAMember: "repair taken by a member",
        RepeatOfARequestThatWaits: "repeat of a request that waits",
        RequestHadTakenEffectBefore: "request had taken effect before",
        RequestUnderAnOldView: "request under an old view",
        RequestUnderAnOldViewRefused: "request under an old view refused",
        RequestWaitedForItsTurn: "request waited for its turn",
        RequestWithdrawnBeforeItsTurn: "request withdrawn before its turn",
        RequestsGivenUpAtTheirVolumesTime: "requests given up at their volume's time",
        ScrubCompleted: "scrub completed",
        ReservationRefused: "reservation refused that bricks cannot meet",
        RunOustedByALaterOne: "run ousted by a later one",
        ScrubFoundNoRoomForARepair: "scrub found no room for a repair",
        SlotGivenToAnotherBrick: "slot given to another brick",
        StandInNamed: "stand-in named",
        SealedMemberReturned: "sealed member returned",
        SlowMemberCameBack: "slow member came back",
        SlowMemberKeptWhereItsGroupsNeedIt: "slow member kept where its groups need it",
        SlowMemberLeftOut: "slow member left out",
        SlowMemberNeededAgain: "slow member needed again",
        StampFarAheadOfTheClusterRefused: "stamp refused that is far ahead of the cluster's time",
        StreamChangedWhileItsRequestsWaited: "stream was made, changed or deleted while its requests waited",
        StretchGivenBack: "stretch given back",
        FragmentsMoved: "fragment of an object moved to a brick with more room",
        FragmentsMadeAgain: "fragment of an object made again",
        UnwantedFragmentsGivenBack: "fragment given back that its putter called off",
        SmallFragmentsErased: "small fragment erased from beside others",
        SmallFragmentsLookedForAlone: "small fragment looked for where earlier releases put it",
        GoneVersionsGivenBack: "version of an object that is gone given back",
        UnnamedStretchesGivenBack: "stretch of a version given back that no manifest names here any more",
        UnsharedStretchesGivenBack: "stretch of an old version given back that no later one shares",
        TornJournalTailAtRecovery: "torn journal tail at recovery",
        UnitReconstructedFromItsRow: "unit reconstructed from its row",
        UnreadableBlocksMetByARead: "unreadable blocks met by a read",
        UnreadableBlocksRepaired: "unreadable blocks repaired",
        ViewChangeBegun: "view change begun",
        ViewChangeForWritesInDoubt: "view change for writes in doubt",
        ViewAskedToBeConfirmedForReads: "view asked to be confirmed for reads",
        ViewChangeRevoked: "view change revoked",
        ViewChangeWentOnWithoutAJoiningBrick: "view change went on without a joining brick",
        ViewForAnotherProcessIgnored: "view for another process of the brick ignored",
        ViewOfADeletedVolumeIgnored: "view of a deleted volume ignored",
        ViewWaitsForBlocksOfAnotherSlot: "view waits for blocks of another slot",
        VolumeUnknownToAView: "volume unknown to a view",
        WriteAbortedByAViewChange: "write aborted by a view change",
        WriteCameTooLateAndWasTriedAgain: "write came too late and was tried again",
        WriteDecidedByAViewChange: "write decided by a view change",
        WriteDroppedByAViewChange: "write dropped by a view change",
        WriteFoundCompleteByAReader: "write found complete by a reader",
        WriteGaveWayToOthers: "write gave way to others",
        WriteGivenUpBeforeItsTurn: "write given up before its turn",
        WriteInDoubtAborted: "write in doubt aborted",
        WriteInDoubtCommitted: "write in doubt committed",
        WriteMetUnreadableBlocks: "write met unreadable blocks",
        WriteRefusedByWaitDie: "write refused by wait-die",
        ReadWaitedForALease: "read waited for a lease",
        WriteRefusedForAnotherUnderWay: "write refused since another was under way",
        WriteRefusedForEver: "write refused for ever",
        WriteToAFrozenBranchRefused: "write to a frozen branch refused",
        WriteWaitedForALoan: "write waited for its gateway's number to be lent for longer",
        WriteWaitedBehindAnUndecidedOne: "write waited behind an undecided one",
        WriteWentAheadAsItsFateWasAsked: "write went ahead as its fate was asked",
        ClientLeftTheGatewayBesideABrick: "client left the gateway beside a brick",
        RequestWentToTheGatewayBesideABrick: "request went to the gateway beside a brick",
        LockAskedFor: "lock asked for",
        LockGranted: "lock granted",
        LockWaitedFor: "lock waited for",
        LockTakenBack: "lock taken back",
        WriteWentOnWithoutALock: "write went on without a lock",
        WriteWentToTheLockServer: "write went to the lock server",
        RequestWaitedInLine: "request waited in line",
        WriteWhileItsDataBrickIsAway: "write while its data brick is away",
        WriteWhileItsDataBrickJoins: "write while its data brick joins",
    }
}

/// How often each happened.
#[derive(Clone, Debug)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Counter::ALL.len()])
    }
}

impl Counters {
    pub fn count(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    /// All that happened at least once, in the order of their texts.
    pub fn all(&self) -> impl Iterator<Item = (Counter, u64)> {
        Counter::ALL.iter().copied().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// What another run or machine counted, too.
    pub fn add(&mut self, other: &Counters) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Hands over all that it has.
    pub fn take(&mut self) -> Counters {
        core::mem::take(self)
    }

    /// How often this happened.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }
}
