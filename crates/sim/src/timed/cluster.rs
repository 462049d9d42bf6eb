//! What can be set about a modelled cluster.

use super::background::Background;
use base::Time;
use model::drive::{DriveModel, DriveOptions, SECTOR_BYTES};
use model::host::Costs;
use reads::distribute::lard::LardConfig;
use rules::heads::Policy;
use std::sync::Arc;
use thiserror::Error;

#[derive(Clone, Debug)]
pub struct Cluster {
    pub bricks: Vec<BrickSpec>,
    /// Which bricks hold the same data.
    pub groups: Groups,
    pub network: Network,
    /// Who serves a read.
    pub scheme: Scheme,
    /// When a write leaves a closed loop.
    pub write_release: WriteRelease,
    /// Whether a block that was written stays cached at one holder only (D-SPTF, section 3), or at all.
    pub exclusive: bool,
    /// Whether all platters turn in step. Those of real disks do not, and disks in step often want the same read.
    pub synchronised: bool,
    /// Gateways, among which each group's requests are divided evenly.
    pub gateways: u32,
    /// The processors, where they take time.
    pub hosts: Option<Hosts>,
    pub buses: Buses,
    pub machines: Machines,
}

/// Which machines there are beside those of bricks, and who stands on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Machines {
    /// Machines of clients, which are attached to gateways over the network. Where there are none, a client is part of its gateway's process, or
    /// its way to the gateway counts for nothing.
    pub clients: u32,
    /// Through which gateway they ask, where the volume's data path does not say so.
    pub through: Through,
    /// Whether gateways stand on bricks' machines: the first on the first brick's, and so on.
    pub gateways_on_bricks: bool,
}

/// Through which gateway a client asks that has a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Through {
    /// Through all in turn.
    #[default]
    All,
    /// Through the one on the machine that has the first block of what it asks for.
    Holders,
    /// Through one, as long as that one lives: the first machine's through the first gateway, and so on.
    One,
}

/// A cache that holds whatever is read from the beginning.
pub const CACHED: u64 = u64::MAX;

/// A brick: a disk, a cache, a journal.
#[derive(Clone, Debug)]
pub struct BrickSpec {
    pub drive: Arc<DriveModel>,
    /// What of the disk's file is in force.
    pub options: DriveOptions,
    /// How the disk chooses what is next.
    pub policy: Policy,
    /// Accesses at the disk at a time; more than one only for devices of constant access time, or for several disks.
    pub depth: u32,
    /// The accesses at a time are those of as many disks, each with every so many bytes in turn (RAID-0), and an access goes to the disk of its
    /// first byte. Each serves in the order in which accesses come. Without it any access takes any place.
    pub stripe_bytes: Option<u64>,
    /// What is written lies on the disk in runs of so many bytes, each anywhere, and is served in the order in which it comes. Without it
    /// everything lies where its address says. It needs a depth of 1.
    pub run_bytes: Option<u64>,
    /// Every time of the disk is stretched to so many percent from these moments on; 200 is half as fast.
    pub speed: Vec<(Time, u32)>,
    /// Bytes of its block cache; 0 for none, and [`CACHED`] where all is in it from the beginning.
    pub cache_bytes: u64,
    /// Bytes of written data that may wait for the disk. A write that finds no room waits for its acknowledgement.
    pub journal_bytes: u64,
    /// Whether the disk has what is written before it is acknowledged. The journal has what was there until the write is decided.
    pub writes_through: bool,
    /// Bytes of data, which are spread evenly over the disk; as many as it has when absent.
    pub data_bytes: Option<u64>,
    /// Other applications that share the disk. Its head must not be seen: it has `run_bytes`, `stripe_bytes`, or constant access times.
    pub background: Option<Background>,
}

impl BrickSpec {
    /// The brick of D-SPTF, section 4, but without a cache: random addresses all over the disk miss a cold one.
    pub fn new(drive: Arc<DriveModel>) -> BrickSpec {
        BrickSpec {
            drive,
            options: DriveOptions::UNCACHED,
            policy: Policy::Sptf,
            depth: 1,
            writes_through: false,
            stripe_bytes: None,
            run_bytes: None,
            speed: Vec::new(),
            cache_bytes: 0,
            journal_bytes: 64 << 20,
            data_bytes: None,
            background: None,
        }
    }
}

impl BrickSpec {
    /// Whether a brick chooses what its disk serves next by where the head is. Other disks serve in the order of arrival.
    pub(crate) fn shows_heads(&self) -> bool {
        self.depth == 1 && self.run_bytes.is_none() && self.drive.revolution_ns().is_some()
    }

    /// Sectors that can hold data.
    pub fn data_sectors(&self) -> u64 {
        let all = self.drive.capacity_sectors();
        self.data_bytes.map_or(all, |bytes| (bytes / SECTOR_BYTES).min(all))
    }
}

/// Which bricks hold the same data: the replica groups, each a list of indices of bricks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups(pub Vec<Vec<u32>>);

impl Groups {
    /// As many groups of `replicas` as `bricks` suffice for, no brick in two. What is left over is idle.
    pub fn disjoint(bricks: u32, replicas: u32) -> Groups {
        let groups = bricks.checked_div(replicas).unwrap_or(0);
        Groups((0..groups).map(|group| (group * replicas..(group + 1) * replicas).collect()).collect())
    }
}

/// The processors of a cluster's machines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hosts {
    /// What work costs.
    pub costs: Costs,
    /// Processors of each machine.
    pub processors: u32,
    /// Whether all daemons and the clients run on one machine, or each on a machine of its own.
    pub is_shared: bool,
}

impl Hosts {
    fn can_be(&self) -> bool {
        let Costs { ns, sleep_ns } = &self.costs;
        (1..=4096).contains(&self.processors)
            && ns.iter().chain([sleep_ns]).all(|ns| (0.0..=1e9).contains(ns))
    }
}

/// The network between clients and bricks, and among bricks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// A message's way between bricks, in nanoseconds.
    pub one_way_ns: u64,
    /// A message's way between a client and a brick, in nanoseconds.
    pub client_one_way_ns: u64,
    /// What a node can send; `None` for as much as it likes.
    pub bytes_per_second: Option<u64>,
    /// Whether what is sent to one node waits at the switch's port to it, which is as fast as a node can send.
    pub has_ports: bool,
    /// A message without data. The paper has 50 bytes (section 5.3.1).
    pub message_bytes: u64,
    /// Of a million claims to a brick, so many are lost.
    pub claims_lost_ppm: u32,
}

impl Default for Network {
    /// 50 microseconds, D-SPTF's.
    fn default() -> Network {
        Network {
            one_way_ns: 50_000,
            client_one_way_ns: 50_000,
            bytes_per_second: None,
            has_ports: false,
            message_bytes: 50,
            claims_lost_ppm: 0,
        }
    }
}

/// What content crosses inside each machine, and what computes with it, in bytes a second; `None` for what takes no time. A client in
/// its gateway's process takes none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buses {
    /// Once for each time that content is read from memory or written there.
    pub memory: Option<u64>,
    /// Between memory and the network card or a disk.
    pub io: Option<u64>,
    /// An engine that multiplies and adds content. Without one the processors do it, where they take time.
    pub xor: Option<u64>,
    /// Whether what is computed with is read over the memory bus, and the result written there.
    pub xor_in_memory: bool,
}

/// When a write frees its slot in a closed loop (never before it is acknowledged). The text of D-SPTF does not say, and
/// its figures depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteRelease {
    /// When it is acknowledged: in the journals of all holders.
    Nvram,
    /// When half of its holders, rounded up, have it on their disks.
    #[default]
    Half,
    /// When so many of its holders have it on their disks.
    Of(u32),
    /// When all of its holders have it on their disks.
    All,
}

impl WriteRelease {
    /// How many of `holders` must have written.
    pub(crate) fn needed(self, holders: usize) -> u32 {
        let holders = holders as u32;
        match self {
            WriteRelease::Nvram => 0,
            WriteRelease::Half => holders.div_ceil(2),
            WriteRelease::Of(count) => count.min(holders),
            WriteRelease::All => holders,
        }
    }
}

/// Who serves a read.
#[derive(Clone, Debug)]
pub enum Scheme {
    /// D-SPTF: [`reads::distribute::claim`].
    Claim(ClaimOptions),
    /// One queue over all disks and one cache: the ideal.
    Central,
    /// [`reads::distribute::hash`].
    Hash,
    /// [`reads::distribute::weighted_hash`], a weight for each brick.
    WeightedHash(Vec<f64>),
    /// [`reads::distribute::lard`].
    Lard(LardConfig),
    /// [`reads::distribute::shortest_queue`].
    ShortestQueue,
    /// [`reads::distribute::hedged`]: after the time in which so many percent of the reads are answered.
    Hedged(f64),
    /// [`reads::distribute::tied`].
    Tied,
    /// [`reads::distribute::probing`].
    Probing,
    /// Another one, just as gateways have it.
    Policy(wire::ReadPolicy),
}

impl Scheme {
    /// A scheme by its name, with its defaults.
    pub fn named(name: &str) -> Option<Scheme> {
        Some(match name {
            "claim" => Scheme::Claim(ClaimOptions::default()),
            "central" => Scheme::Central,
            "hash" => Scheme::Hash,
            "weighted-hash" => Scheme::WeightedHash(Vec::new()),
            "lard" => Scheme::Lard(LardConfig::default()),
            "shortest-queue" => Scheme::ShortestQueue,
            "hedged" => Scheme::Hedged(95.0),
            "tied" => Scheme::Tied,
            "probing" => Scheme::Probing,
            other => Scheme::Policy(other.parse().ok()?),
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Claim(_) => "claim",
            Scheme::Central => "central",
            Scheme::Hash => "hash",
            Scheme::WeightedHash(_) => "weighted-hash",
            Scheme::Lard(_) => "lard",
            Scheme::ShortestQueue => "shortest-queue",
            Scheme::Hedged(_) => "hedged",
            Scheme::Tied => "tied",
            Scheme::Probing => "probing",
            Scheme::Policy(policy) => policy.name(),
        }
    }
}

/// How disks whose heads are seen claim. Others are served as bricks do it, whatever is set here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimOptions {
    /// How much more than two one-way latencies before a disk is free its next access is chosen.
    pub slack_ns: u64,
    /// See [`reads::distribute::claim::Config::hold_rotation_only`].
    pub hold_rotation_only: bool,
}

impl Default for ClaimOptions {
    fn default() -> ClaimOptions {
        ClaimOptions { slack_ns: 5_000, hold_rotation_only: false }
    }
}

/// Why a cluster cannot be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ClusterError {
    /// No group.
    #[error("the cluster has no group: give fewer replicas than bricks")]
    NoGroup,
    /// A group with no brick, or more than there can be.
    #[error("group {group} has {bricks} bricks: it needs 1 to 64")]
    GroupSize { group: usize, bricks: usize },
    /// A group names a brick that is not there, or twice.
    #[error("group {group} names brick {brick}, which does not exist or is in it twice")]
    GroupBrick { group: usize, brick: u32 },
    /// A brick takes no access at a time.
    #[error("brick {brick}: depth must be 1 to 4096")]
    Depth { brick: usize },
    /// A brick whose disk turns, and is to do several things at a time.
    #[error(
        "brick {brick}: depth must be 1 for a disk that turns, as one head serves one access at a time; give stripe_bytes for several disks"
    )]
    Turning { brick: usize },
    /// Runs on several disks, or on one that serves several accesses at a time.
    #[error("brick {brick}: run_bytes is for one disk that serves one access at a time")]
    Runs { brick: usize },
    /// Other applications at a disk whose brick chooses what is next, or that ask never or too often.
    #[error(
        "brick {brick}: background needs 1e-9 to 1e9 accesses a second, and a disk that serves in the order of arrival: give run_bytes or stripe_bytes"
    )]
    Background { brick: usize },
    #[error("there are {gateways} gateways: it needs 1 to 64")]
    Gateways { gateways: u32 },
    /// More gateways than machines of bricks for them.
    #[error("there are {gateways} gateways on the machines of {bricks} bricks: each needs one of its own")]
    GatewaysOnBricks { gateways: u32, bricks: usize },
    /// Machines without processors, or work that takes no time or for ever.
    #[error("machines need 1 to 4096 processors, and costs of 0 to 1 s")]
    Hosts,
    /// A brick that is infinitely fast.
    #[error("brick {brick}: speed must be 1 to 100000 percent, at times that do not decrease")]
    Speed { brick: usize },
}

impl Cluster {
    /// Bricks that are alike, in disjoint groups of `replicas`.
    pub fn uniform(brick: BrickSpec, bricks: u32, replicas: u32, scheme: Scheme) -> Cluster {
        Cluster {
            bricks: vec![brick; bricks as usize],
            groups: Groups::disjoint(bricks, replicas),
            network: Network::default(),
            scheme,
            write_release: WriteRelease::default(),
            exclusive: true,
            synchronised: false,
            gateways: 1,
            hosts: None,
            buses: Buses::default(),
            machines: Machines::default(),
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let groups = &self.groups.0;
        if groups.is_empty() {
            return Err(ClusterError::NoGroup);
        }
        if !(1..=64).contains(&self.gateways) {
            return Err(ClusterError::Gateways { gateways: self.gateways });
        }
        if self.hosts.is_some_and(|hosts| !hosts.can_be()) {
            return Err(ClusterError::Hosts);
        }
        let bricks = self.bricks.len();
        if self.machines.gateways_on_bricks && self.gateways as usize > bricks {
            return Err(ClusterError::GatewaysOnBricks { gateways: self.gateways, bricks });
        }
        groups.iter().enumerate().try_for_each(|(group, bricks)| self.validate_group(group, bricks))?;
        self.bricks.iter().enumerate().try_for_each(|(brick, spec)| validate_brick(brick, spec))
    }

    fn validate_group(&self, group: usize, bricks: &[u32]) -> Result<(), ClusterError> {
        if !(1..=64).contains(&bricks.len()) {
            return Err(ClusterError::GroupSize { group, bricks: bricks.len() });
        }
        let is_wrong = |(at, brick): &(usize, &u32)| {
            **brick as usize >= self.bricks.len() || bricks[..*at].contains(brick)
        };
        match bricks.iter().enumerate().find(is_wrong) {
            Some((_, &brick)) => Err(ClusterError::GroupBrick { group, brick }),
            None => Ok(()),
        }
    }
}

fn validate_brick(brick: usize, spec: &BrickSpec) -> Result<(), ClusterError> {
    if !(1..=4096).contains(&spec.depth) {
        return Err(ClusterError::Depth { brick });
    }
    if spec.depth > 1 && spec.stripe_bytes.is_none() && spec.drive.revolution_ns().is_some() {
        return Err(ClusterError::Turning { brick });
    }
    if spec.run_bytes.is_some() && (spec.depth > 1 || spec.stripe_bytes.is_some()) {
        return Err(ClusterError::Runs { brick });
    }
    if spec.background.is_some_and(|background| spec.shows_heads() || !background.can_be()) {
        return Err(ClusterError::Background { brick });
    }
    let is_ordered = spec.speed.is_sorted_by_key(|(at, _)| *at);
    if !is_ordered || spec.speed.iter().any(|(_, percent)| !(1..=100_000).contains(percent)) {
        return Err(ClusterError::Speed { brick });
    }
    Ok(())
}
