//! What is done to a cluster in a run: by faults, and by the administrator.

base::named! {
    /// A kind of fault or command, as a run counts it.
    pub(crate) enum Incident {
        BricksEvicted: "bricks evicted",
        BricksKilled: "bricks killed",
        BricksLostForGood: "bricks lost for good",
        BricksReadmitted: "bricks readmitted",
        BricksReplaced: "bricks replaced",
        BricksWithoutPower: "bricks without power",
        ClientsKilled: "clients killed",
        Clones: "clones",
        CommandsRefused: "commands refused",
        ConnectionsReset: "connections reset",
        DirectoryKilled: "directory killed",
        DisksExchanged: "disks exchanged",
        GatewaysKilled: "gateways killed",
        NoisyNetworks: "noisy networks",
        OneWayPartitions: "one-way partitions",
        PacketsLost: "packets lost",
        PacketsReordered: "packets reordered",
        PacketsRepeated: "packets repeated",
        Partitions: "partitions",
        Pauses: "pauses",
        PowerCutsOfAll: "power cuts of all",
        Rollbacks: "rollbacks",
        RottenSectors: "rotten sectors",
        ScrubsAskedFor: "scrubs asked for",
        SkewedClocks: "skewed clocks",
        SlowBricks: "slow bricks",
        SlowDisks: "slow disks",
        SmallDisks: "small disks",
        Snapshots: "snapshots",
        SnapshotsDeleted: "snapshots deleted",
        UnreadableSectors: "unreadable sectors",
    }
}
