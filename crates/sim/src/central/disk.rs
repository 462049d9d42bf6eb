//! A disk of a group: what waits for it, what it does, the journal before it.

use super::requests::Ref;
use crate::timed::cluster::BrickSpec;
use crate::timed::device::{Device, Speeds};
use crate::timed::measured::BrickMeasured;
use base::{BrickId, Depth, SECTOR_BYTES, Time};
use core::time::Duration;
use model::drive::{Access, Drive};
use reads::distribute::claim::{Claims, Config, Counts};
use std::collections::VecDeque;
use std::sync::Arc;

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
    /// How many waited when it began.
    pub(super) waiting: u32,
}

#[derive(Debug)]
pub(super) struct Disk {
    /// What waits for it. Other disks' choices are told to it at once.
    pub(super) claims: Claims<Device, Job>,
    journal_bytes: u64,
    journal_max: u64,
    /// Whether writes are acknowledged when the disk has them.
    pub(super) writes_through: bool,
    /// Writes that found no room in the journal.
    pub(super) blocked: VecDeque<Ref>,
    /// What it does: a place for each access that it takes at a time.
    serving: Vec<Option<Serving>>,
    /// The earliest wake-up that is on its way.
    pub(super) wake: Option<Time>,
    /// From when its brick's network card is free.
    card_free: Time,
    account: Account,
}

/// What a disk did since the warm-up.
#[derive(Clone, Copy, Default, Debug)]
struct Account {
    reads: u64,
    writes: u64,
    hits: u64,
    /// Within the time measured.
    busy_ns: u64,
    since: Time,
    before: Counts,
}

impl Disk {
    pub(super) fn new(id: u32, spec: &BrickSpec, phase_ns: u64) -> Disk {
        let drive = Drive::with_options(Arc::clone(&spec.drive), spec.options);
        let device = Device::new(drive, phase_ns, Arc::new(Speeds::from_the_beginning(spec.speed.clone())));
        let config = Config { policy: spec.policy, depth: spec.depth, ..Config::disk(BrickId(id), 0) };
        Disk {
            claims: Claims::new(config, device),
            journal_bytes: 0,
            // What is written through waits for its disk, however much it is.
            journal_max: if spec.writes_through { u64::MAX } else { spec.journal_bytes },
            writes_through: spec.writes_through,
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

    /// Begins an access: at which place, and when it is done.
    pub(super) fn begin(&mut self, now: Time, job: Job) -> (u32, Time) {
        let place = self.serving.iter().position(Option::is_none);
        let place = place.expect("the machine knows how many the disk takes");
        let waiting = self.claims.waiting() as u32;
        self.serving[place] = Some(Serving { job, since: now, waiting });
        (place as u32, base::Device::serve(self.claims.device_mut(), now, job.access))
    }

    /// The access at a place is done.
    pub(super) fn end(&mut self, now: Time, place: u32) -> Serving {
        let served = self.serving[place as usize].take().expect("the disk was at it");
        self.account.busy_ns += now.0 - served.since.max(self.account.since).0;
        if served.job.access.is_write {
            self.account.writes += 1;
            self.journal_bytes -= u64::from(served.job.access.count) * SECTOR_BYTES;
        } else {
            self.account.reads += 1;
        }
        served
    }

    /// A read was answered from memory.
    pub(super) fn hit(&mut self) {
        self.account.hits += 1;
    }

    /// When a message of so many bytes has left the card.
    pub(super) fn send(&mut self, now: Time, bytes: u64, bytes_per_second: Option<u64>) -> Time {
        let Some(per_second) = bytes_per_second else { return now };
        let gone = now.max(self.card_free) + Duration::from_nanos(bytes * 1_000_000_000 / per_second.max(1));
        self.card_free = gone;
        gone
    }

    /// Begins to count anew.
    pub(super) fn forget(&mut self, now: Time) {
        self.account = Account { since: now, before: self.claims.counts(), ..Account::default() };
    }

    /// What it did in the `seconds` that end now.
    pub(super) fn measured(&self, now: Time, seconds: f64) -> BrickMeasured {
        base::Machine::check(&self.claims, Depth::Deep);
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
}
