//! What a measured cluster is built of.

use super::background::Coming;
use super::cluster::{BrickSpec, Buses, ClaimOptions, Network};
use super::device::{Device, Speeds};
use super::grain::Grain;
use super::policy::{Keeper, Shared};
use super::scattered::Scattered;
use crate::shelf::{Contents, Kept, Shelf, ShelfConfig};
use base::{BLOCK_U64, BrickId, Payload, Stamp, Time, VolumeId};
use core::time::Duration;
use model::Draw;
use model::drive::{Access, Drive, SECTOR_BYTES};
use reads::distribute::claim::Config;
use reads::seat::heads::{Heads, Served, Surroundings};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use store::{Io, IoKind};
use wire::Span;

/// The bricks and what connects them.
#[derive(Clone, Debug)]
pub(crate) struct Hardware {
    /// The first is the brick of the lowest id.
    pub(crate) bricks: Vec<BrickSpec>,
    pub(crate) network: Network,
    pub(crate) buses: Buses,
    /// How disks whose heads are seen claim. Without it they reckon that a claim takes no time.
    pub(crate) claims: Option<ClaimOptions>,
    /// Whether all platters turn in step.
    pub(crate) is_synchronised: bool,
    /// Volumes that share each disk.
    pub(crate) volumes: u64,
    /// What a block stands for on the disks, and as content on the wires.
    pub(crate) grain: Grain,
    /// Bricks with the same data are so many, one after another.
    pub(crate) replicas: u32,
    /// Whether what was written stays in the cache of one of them only.
    pub(crate) is_exclusive: bool,
    /// The read policy, where it is not as shipped.
    pub(crate) policy: Option<Shared>,
}

/// A disk of a brick: what outlives its process, and its device where its head is not seen.
pub(crate) struct ShelfDisk {
    spec: BrickSpec,
    claims: Config,
    phase_ns: u64,
    speeds: Arc<Speeds>,
    config: ShelfConfig,
    kept: Kept,
    keeper: Option<Keeper>,
    blind: Blind,
}

/// What takes so many accesses at a time, in the order in which they come.
struct Blind {
    devices: Devices,
    free: Vec<Time>,
    /// Of the brick's accesses.
    served: Served,
    /// Other applications' accesses. They are caught up with when the brick's next access comes: until then nobody sees what they did.
    background: Option<Coming>,
}

enum Devices {
    /// Takes any access at any place.
    One(Box<Device>),
    /// One for each place, each of which has so many bytes in turn.
    Striped { stripe_bytes: u64, disks: Vec<Device> },
    /// Has what is written in runs.
    Scattered(Box<Scattered>),
}

impl Devices {
    fn new(spec: &BrickSpec, speeds: &Arc<Speeds>, mut phase_ns: impl FnMut() -> u64) -> Devices {
        let device = |phase_ns| {
            Device::new(
                Drive::with_options(Arc::clone(&spec.drive), spec.options),
                phase_ns,
                Arc::clone(speeds),
            )
        };
        match (spec.run_bytes, spec.stripe_bytes) {
            (Some(run_bytes), _) => {
                let device = device(phase_ns());
                // Where runs lie differs from disk to disk, as their platters do.
                let places = Draw::new(phase_ns());
                Devices::Scattered(Box::new(Scattered::new(device, run_bytes, places)))
            }
            (None, Some(stripe_bytes)) => {
                let stripe_bytes = stripe_bytes.max(1);
                let disks = (0..spec.depth.max(1)).map(|_| device(phase_ns())).collect();
                Devices::Striped { stripe_bytes, disks }
            }
            (None, None) => Devices::One(Box::new(device(0))),
        }
    }

    /// As [`Devices::find`], of a byte that is not the brick's.
    fn find_bare(&mut self, offset: u64) -> (&mut dyn base::Device, Option<usize>, u64) {
        match self {
            Devices::Scattered(device) => (device.bare(), None, offset),
            Devices::One(_) | Devices::Striped { .. } => self.find(offset),
        }
    }

    /// The device that has this byte, and where it has it; none where any place will do.
    fn find(&mut self, offset: u64) -> (&mut dyn base::Device, Option<usize>, u64) {
        match self {
            Devices::One(device) => (&mut **device, None, offset),
            Devices::Scattered(device) => (&mut **device, None, offset),
            Devices::Striped { stripe_bytes, disks } => {
                let (stripe, count) = (offset / *stripe_bytes, disks.len() as u64);
                let disk = (stripe % count) as usize;
                let own = stripe / count * *stripe_bytes + offset % *stripe_bytes;
                (&mut disks[disk], Some(disk), own)
            }
        }
    }
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
            slack_ns: if self.claims.is_some() { options.slack_ns } else { 0 },
            hold_rotation_only: options.hold_rotation_only,
            ..Config::disk(id, one_way_ns)
        };
        let config = ShelfConfig {
            grain: self.grain,
            capacity_blocks: spec.data_sectors() / self.grain.block_sectors(),
            volumes: self.volumes,
            cache_bytes: spec.cache_bytes,
            nvram_bytes: spec.journal_bytes,
            writes_through: spec.writes_through,
        };
        let speeds = Arc::new(Speeds::new(spec.speed.clone()));
        let turns = spec.drive.revolution_ns().is_some();
        let phase_ns = || if turns { draw.below(turn_ns) } else { 0 };
        let mut blind = Blind {
            devices: Devices::new(&spec, &speeds, phase_ns),
            free: vec![Time::ZERO; spec.depth.max(1) as usize],
            served: Served::default(),
            background: None,
        };
        let kept = Rc::new(RefCell::new(Contents::new(draw.bits(), self.grain.keeps_content())));
        let (phase_ns, keeper) = (draw.below(turn_ns), self.keeper(id, &spec));
        if let Some(background) = &spec.background {
            // Drawn beside all else, so that the bricks are the same with it and without.
            let draw = Draw::new(draw.clone().bits() ^ BACKGROUND);
            blind.background = Some(Coming::new(background, spec.drive.capacity_sectors(), draw));
        }
        vec![ShelfDisk { spec, claims, phase_ns, speeds, config, kept, keeper, blind }]
    }

    fn keeper(&self, me: BrickId, spec: &BrickSpec) -> Option<Keeper> {
        let first = (me.0 - 1) / self.replicas * self.replicas + 1;
        let holders = (0..self.replicas).map(|member| (member as u8, BrickId(first + member))).collect();
        let (policy, granule) = (self.policy.clone(), self.grain.in_protocol(BLOCK_U64));
        (self.is_exclusive && spec.cache_bytes > 0).then_some(Keeper { me, holders, policy, granule })
    }
}

/// What the draws of other applications are apart from a brick's.
const BACKGROUND: u64 = 0x6f74_6865_7273;

/// The stamp of what was laid on a disk: any tells that it is there.
const LAID: Stamp = Stamp(1);

impl ShelfDisk {
    /// The disk, as its brick starts.
    pub(crate) fn open(&self) -> Shelf {
        Shelf::new(self.config, Rc::clone(&self.kept), self.keeper.clone())
    }

    /// Its heads, where they are seen.
    pub(crate) fn heads(&self, now: Time) -> Option<Heads<Io>> {
        if !self.spec.shows_heads() {
            return None;
        }
        let drive = Drive::with_options(Arc::clone(&self.spec.drive), self.spec.options);
        let device = Box::new(Device::new(drive, self.phase_ns, Arc::clone(&self.speeds)));
        let data_bytes = self.spec.data_bytes;
        let surroundings = Surroundings { claims: self.claims, dilate: 1, nvram_bytes: 0, data_bytes };
        Some(Heads::new(surroundings, device, now))
    }

    /// What its device has done, where its head is not seen.
    pub(crate) fn served(&self) -> Served {
        self.blind.served
    }

    /// How much of the time for which it was busy is still to come.
    pub(crate) fn ahead(&self, now: Time) -> Duration {
        self.blind.free.iter().map(|free| free.since(now)).sum()
    }

    /// From now on it is known when its speed changes.
    pub(crate) fn begin(&self, now: Time) {
        self.speeds.begin(now);
    }

    /// From now on it says that it is full, or what is so.
    pub(crate) fn close(&self, is_closed: bool) {
        self.kept.borrow_mut().is_closed = is_closed;
    }

    /// Which block of which volume lies at this byte.
    pub(crate) fn place(&self, offset: u64) -> Option<(VolumeId, u64)> {
        let block = offset / self.config.grain.block_bytes();
        let share = self.config.share_blocks();
        let volume = self.kept.borrow().volume(block / share)?;
        Some((volume, block % share))
    }

    /// Content is there from now on, without an access.
    pub(crate) fn lay(&mut self, span: Span, content: &Payload) {
        let mut kept = self.kept.borrow_mut();
        kept.put(span, &vec![LAID; span.count as usize], 1, content);
        let offset = self.config.offset(kept.number_of(span.volume), span.lba);
        if let Devices::Scattered(device) = &mut self.blind.devices {
            device.lay(offset / SECTOR_BYTES, u64::from(span.count) * self.config.grain.block_sectors());
        }
    }

    /// From when to when its device serves what it is asked now.
    pub(crate) fn serve(&mut self, now: Time, kind: &IoKind) -> [Time; 2] {
        let (offset, bytes, is_write) = match kind {
            IoKind::Read { offset, length, .. } => (*offset, *length as u64, false),
            IoKind::Write { offset, payload, .. } => (*offset, payload.len() as u64, true),
            IoKind::Flush => return [now, now],
        };
        self.blind.serve_background(now);
        let Blind { devices, free, served, .. } = &mut self.blind;
        let (start, done) = serve(devices.find(offset), free, now, (bytes, is_write));
        served.busy += done.since(start);
        *if is_write { &mut served.writes } else { &mut served.reads } += 1;
        [start, done]
    }
}

impl Blind {
    /// Other applications' accesses that have come by now are before all that comes later.
    fn serve_background(&mut self, now: Time) {
        let Blind { devices, free, background: Some(background), .. } = self else { return };
        while let Some((at, shape)) = background.come_by(now) {
            let place = devices.find_bare(shape.sector * SECTOR_BYTES);
            serve(place, free, at, (u64::from(shape.count) * SECTOR_BYTES, shape.is_write));
        }
    }
}

/// From when to when a device serves an access of so many bytes that comes now, behind all that came before.
fn serve(
    (device, disk, offset): (&mut dyn base::Device, Option<usize>, u64),
    free: &mut [Time],
    now: Time,
    (bytes, is_write): (u64, bool),
) -> (Time, Time) {
    let place = match disk {
        Some(disk) => free.get_mut(disk),
        None => free.iter_mut().min(),
    };
    let place = place.expect("a device takes something at a time");
    let start = (*place).max(now);
    let count = bytes.div_ceil(SECTOR_BYTES).max(1);
    let sector = (offset / SECTOR_BYTES).min(device.capacity_sectors() - count);
    *place = device.serve(start, Access { sector, count: count as u32, is_write });
    (start, *place)
}
