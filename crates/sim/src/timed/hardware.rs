//! What a measured cluster is built of.

use super::cluster::{BrickSpec, ClaimOptions, Network};
use super::device::Device;
use crate::shelf::{Contents, Kept, Shelf, ShelfConfig};
use base::{BLOCK_U64, BrickId, Time, VolumeId};
use core::time::Duration;
use model::Draw;
use model::drive::{Access, Drive, SECTOR_BYTES};
use proto::distribute::claim::Config;
use proto::seat::heads::{Heads, Served, Surroundings};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use store::{Io, IoKind};

/// The bricks and what connects them.
#[derive(Clone, Debug)]
pub(crate) struct Hardware {
    /// The first is the brick of the lowest id.
    pub(crate) bricks: Vec<BrickSpec>,
    pub(crate) network: Network,
    /// How disks whose heads are seen claim. Without it they reckon that a claim takes no time.
    pub(crate) claims: Option<ClaimOptions>,
    /// Whether all platters turn in step.
    pub(crate) is_synchronised: bool,
    /// Volumes that share each disk.
    pub(crate) volumes: u64,
}

/// A disk of a brick: what outlives its process, and its device where its head is not seen.
pub(crate) struct ShelfDisk {
    spec: BrickSpec,
    claims: Config,
    phase_ns: u64,
    config: ShelfConfig,
    kept: Kept,
    blind: Blind,
}

/// A device that takes so many accesses at a time, in the order in which they come.
struct Blind {
    device: Drive,
    free_ns: Vec<u64>,
    served: Served,
}

impl Hardware {
    /// The disks of a brick; where their platters are is drawn.
    pub(crate) fn shelves(&self, id: BrickId, draw: &mut Draw) -> Vec<ShelfDisk> {
        let spec = self.bricks[(id.0 as usize - 1) % self.bricks.len()].clone();
        let turn_ns = spec.drive.revolution_ns().filter(|_| !self.is_synchronised).unwrap_or(1);
        let options = self.claims.unwrap_or_default();
        let one_way_ns = if self.claims.is_some() { self.network.one_way_ns } else { 0 };
        let claims = Config {
            policy: spec.policy,
            depth: spec.depth,
            slack_ns: one_way_ns * options.slack_percent / 100,
            hold_rotation_only: options.hold_rotation_only,
            ..Config::disk(id, one_way_ns)
        };
        let config = ShelfConfig {
            capacity_blocks: spec.drive.capacity_sectors() * SECTOR_BYTES / BLOCK_U64,
            volumes: self.volumes,
            cache_bytes: spec.cache_bytes,
            nvram_bytes: spec.journal_bytes,
        };
        let blind = Blind {
            device: Drive::with_options(Arc::clone(&spec.drive), spec.options),
            free_ns: vec![0; spec.depth.max(1) as usize],
            served: Served::default(),
        };
        let kept = Rc::new(RefCell::new(Contents::new(draw.bits())));
        vec![ShelfDisk { spec, claims, phase_ns: draw.below(turn_ns), config, kept, blind }]
    }
}

impl ShelfDisk {
    /// The disk, as its brick starts.
    pub(crate) fn open(&self) -> Shelf {
        Shelf::new(self.config, Rc::clone(&self.kept))
    }

    /// Its heads, where they are seen.
    pub(crate) fn heads(&self, now: Time) -> Option<Heads<Io>> {
        self.spec.drive.revolution_ns()?;
        let drive = Drive::with_options(Arc::clone(&self.spec.drive), self.spec.options);
        let device = Box::new(Device::new(drive, self.phase_ns, false));
        let surroundings = Surroundings { claims: self.claims, dilate: 1, nvram_bytes: 0, data_bytes: None };
        Some(Heads::new(surroundings, device, now))
    }

    /// What its device has done, where its head is not seen.
    pub(crate) fn served(&self) -> Served {
        self.blind.served
    }

    /// Which block of which volume lies at this byte.
    pub(crate) fn place(&self, offset: u64) -> Option<(VolumeId, u64)> {
        let block = offset / BLOCK_U64;
        let share = self.config.share_blocks();
        let volume = self.kept.borrow().volume(block / share)?;
        Some((volume, block % share))
    }

    /// When its device is done with what it is asked now.
    pub(crate) fn done_ns(&mut self, now_ns: u64, kind: &IoKind) -> u64 {
        let (offset, bytes, is_write) = match kind {
            IoKind::Read { offset, length, .. } => (*offset, *length as u64, false),
            IoKind::Write { offset, payload, .. } => (*offset, payload.len() as u64, true),
            IoKind::Flush => return now_ns,
        };
        let Blind { device, free_ns, served } = &mut self.blind;
        let place = free_ns.iter_mut().min().expect("a device takes something at a time");
        let start_ns = (*place).max(now_ns);
        let count = bytes.div_ceil(SECTOR_BYTES).max(1);
        let sector = (offset / SECTOR_BYTES).min(device.model().capacity_sectors() - count);
        let access = Access { sector, count: count as u32, is_write };
        *place = device.serve(Time(start_ns), access).done.0;
        served.busy += Duration::from_nanos(*place - start_ns);
        *if is_write { &mut served.writes } else { &mut served.reads } += 1;
        *place
    }
}
