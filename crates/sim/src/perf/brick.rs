//! A brick: the claims before its disk, its cache, its journal.

use super::device::Device;
use super::request::Ref;
use crate::shelf::cache::Lru;
use crate::timed::cluster::{BrickSpec, Cluster, Scheme};
use crate::timed::measured::BrickMeasured;
use base::{BLOCK_U64, BrickId, Time};
use model::drive::{Access, Drive, SECTOR_BYTES};
use proto::distribute::claim::{Claims, Config, Counts};
use proto::distribute::tied;
use std::collections::VecDeque;
use std::sync::Arc;

/// Sectors of a cached block.
pub(super) const BLOCK_SECTORS: u64 = BLOCK_U64 / SECTOR_BYTES;

/// An access for a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) request: Ref,
    pub(super) access: Access,
}

/// An access at a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) job: Job,
    pub(super) since: Time,
    /// How many accesses the disk was at with it.
    pub(super) depth: u32,
}

#[derive(Debug)]
pub(super) struct Brick {
    pub(super) claims: Claims<Device, Job>,
    pub(super) cache: Lru,
    journal_bytes: u64,
    journal_max: u64,
    /// Writes that found no room in the journal.
    pub(super) blocked: VecDeque<Ref>,
    /// What the disk does: a place for each access that it takes at a time.
    pub(super) serving: Vec<Option<Serving>>,
    /// The earliest wake-up that is on its way.
    pub(super) wake: Option<Time>,
    /// From when its network card is free.
    pub(super) card_free: Time,
    pub(super) account: Account,
}

/// What its disk did since the warm-up.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Account {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) hits: u64,
    /// Within the time measured.
    busy_ns: u64,
    since: Time,
    before: Counts,
}

impl Brick {
    pub(super) fn new(id: u32, spec: &BrickSpec, cluster: &Cluster, phase_ns: u64) -> Brick {
        let drive = Drive::with_options(Arc::clone(&spec.drive), spec.options);
        let is_blind = matches!(&cluster.scheme, Scheme::Claim(options) if options.blind);
        let device = Device::new(drive, phase_ns, is_blind);
        Brick {
            claims: Claims::new(claim_config(id, spec, cluster), device),
            cache: Lru::new(spec.cache_bytes / BLOCK_U64),
            journal_bytes: 0,
            journal_max: spec.journal_bytes,
            blocked: VecDeque::new(),
            serving: vec![None; spec.depth as usize],
            wake: None,
            card_free: Time::ZERO,
            account: Account::default(),
        }
    }

    /// Takes a write into the journal when there is room. An empty journal takes any.
    pub(super) fn journal(&mut self, sectors: u32) -> bool {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let has_room = self.journal_bytes == 0 || self.journal_bytes + bytes <= self.journal_max;
        if has_room {
            self.journal_bytes += bytes;
        }
        has_room
    }

    /// An access is done.
    pub(super) fn done(&mut self, now: Time, served: &Serving) {
        self.claims.device_mut().served(served.depth, now.0 - served.since.0);
        self.account.busy_ns += now.0 - served.since.max(self.account.since).0;
        if served.job.access.is_write {
            self.account.writes += 1;
            self.journal_bytes -= u64::from(served.job.access.count) * SECTOR_BYTES;
        } else {
            self.account.reads += 1;
        }
    }

    /// Begins to count anew.
    pub(super) fn forget(&mut self, now: Time) {
        self.account = Account { since: now, before: self.claims.counts(), ..Account::default() };
    }

    /// What it did in the `seconds` that end now.
    pub(super) fn measured(&self, now: Time, seconds: f64) -> BrickMeasured {
        let account = &self.account;
        let accesses = (account.reads + account.writes) as f64;
        let begun = self.serving.iter().flatten().map(|serving| now.0 - serving.since.max(account.since).0);
        let busy_s = (account.busy_ns + begun.sum::<u64>()) as f64 / 1e9;
        let (counts, before) = (self.claims.counts(), account.before);
        let seen = (counts.choices_seen - before.choices_seen) as f64;
        BrickMeasured {
            throughput_iops: accesses / seconds,
            idle: 1.0 - busy_s / self.serving.len() as f64 / seconds,
            service_ms: busy_s * 1e3 / accesses.max(1.0),
            reads: account.reads,
            writes: account.writes,
            hits: account.hits,
            queue_seen: seen / (counts.choices - before.choices).max(1) as f64,
        }
    }

    /// What its claims counted since the warm-up: claims sent, reads taken over.
    pub(super) fn claimed(&self) -> (u64, u64) {
        let (counts, before) = (self.claims.counts(), self.account.before);
        (counts.claims - before.claims, counts.overtaken - before.overtaken)
    }
}

/// The cache's blocks that an access of `count` sectors at `sector` of `group` touches.
pub(super) fn blocks(group: u32, sector: u64, count: u32) -> impl Iterator<Item = u64> + Clone {
    let last = (sector + u64::from(count) - 1) / BLOCK_SECTORS;
    (sector / BLOCK_SECTORS..=last).map(move |block| u64::from(group) << 40 | block)
}

fn claim_config(id: u32, spec: &BrickSpec, cluster: &Cluster) -> Config {
    let disk = Config { policy: spec.policy, depth: spec.depth, ..Config::disk(BrickId(id), 0) };
    match &cluster.scheme {
        Scheme::Claim(options) => Config {
            one_way_ns: cluster.network.one_way_ns,
            slack_ns: cluster.network.one_way_ns * options.slack_percent / 100,
            hold_rotation_only: options.hold_rotation_only,
            defer: options.defer,
            ..disk
        },
        Scheme::Tied => tied::config(disk),
        _ => disk,
    }
}
