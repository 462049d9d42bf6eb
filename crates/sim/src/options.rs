//! What a run is asked to be, and what its seed then draws.

use crate::world::{MS, SECOND};
use model::{DiskConfig, Draw};
use proto::layout::Layout;
use serde::{Deserialize, Serialize};
use store::Limits;

/// What a run is asked to be. `None` lets the seed draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How long the safety phase is, in simulated seconds.
    pub simulated_s: Option<u64>,
    /// Shards a brick, each with a disk of its own.
    pub shards: Option<u16>,
    /// Bricks.
    pub bricks: Option<u32>,
    /// The only layouts to draw from, such as `raid1x3`; empty for all.
    pub layouts: Vec<String>,
    /// Whether there are faults.
    pub faults: bool,
    /// About how many operations clients issue.
    pub operations: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            simulated_s: None,
            shards: None,
            bricks: None,
            layouts: Vec::new(),
            faults: true,
            operations: None,
        }
    }
}

/// A volume of the run.
#[derive(Clone, Debug)]
pub(crate) struct VolumePlan {
    pub(crate) name: String,
    pub(crate) layout: Layout,
    pub(crate) unit_blocks: u32,
    /// Rows of stripe units whose blocks are written whole.
    pub(crate) hot_stripes: u64,
    /// Blocks behind them that are written by sectors.
    pub(crate) sector_blocks: u64,
}

impl VolumePlan {
    /// Blocks that a whole stripe holds.
    pub(crate) fn stripe_blocks(&self) -> u64 {
        u64::from(self.layout.data()) * u64::from(self.unit_blocks)
    }

    /// Blocks that are written whole: those from 0.
    pub(crate) fn hot_blocks(&self) -> u64 {
        self.hot_stripes * self.stripe_blocks()
    }

    /// All blocks in use.
    pub(crate) fn blocks(&self) -> u64 {
        self.hot_blocks() + self.sector_blocks
    }
}

/// What the seed drew.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) bricks: u32,
    pub(crate) disks: u32,
    pub(crate) disk: DiskConfig,
    pub(crate) journal_bytes: u64,
    pub(crate) cache_bytes: usize,
    pub(crate) store_limits: Limits,
    pub(crate) small_disks: bool,
    pub(crate) gateways: u32,
    pub(crate) clients: u32,
    pub(crate) actors: u32,
    pub(crate) window: usize,
    pub(crate) volumes: Vec<VolumePlan>,
    pub(crate) safety_ns: u64,
    pub(crate) liveness_ns: u64,
    pub(crate) operations: u64,
    pub(crate) faults: bool,
    /// Clocks run at most so much too fast or too slow.
    pub(crate) skew_ppm: u32,
    /// Clocks start at most so far apart.
    pub(crate) offset_ns: u64,
}

/// Room for about 1 MiB of data behind a journal of 1 MiB.
const SMALL_DISK_BYTES: u64 = 2400 << 10;
/// Blocks written on small disks: more than fit.
const FULL_BLOCKS: u64 = 500;

const LAYOUTS: [&str; 8] =
    ["raid0x1", "raid0x2", "raid1x2", "raid1x3", "raid4-2+1", "raid5-4+1", "rs-4+2", "raid5-2+1"];

impl Shape {
    /// Draws what `options` leave open.
    pub(crate) fn draw(seed: u64, options: &Options) -> Shape {
        let draw = &mut Draw::new(seed);
        let bricks = options.bricks.unwrap_or(draw.between(4, 8) as u32);
        let disks = options.shards.unwrap_or(*draw.pick(&[1, 1, 2, 4]));
        let small_disks = options.faults && draw.percent(10);
        let safety_ns = options.simulated_s.unwrap_or(draw.between(20, 70)) * SECOND;
        let skewed = options.faults && draw.percent(70);
        let base_ns = draw.between(20_000, 200_000);
        Shape {
            bricks,
            disks: if small_disks { 1 } else { u32::from(disks) },
            disk: DiskConfig {
                bytes: if small_disks { SMALL_DISK_BYTES } else { 64 << 20 },
                read_ns: base_ns,
                write_ns: base_ns / 2,
                flush_ns: base_ns * draw.between(1, 8),
            },
            cache_bytes: *draw.pick(&[0, 0, 64 << 10, 64 << 20]),
            store_limits: draw_limits(draw),
            journal_bytes: if small_disks { 1 << 20 } else { *draw.pick(&[128 << 10, 1 << 20, 4 << 20]) },
            small_disks,
            gateways: draw.between(1, 3) as u32,
            clients: draw.between(1, 3) as u32,
            actors: draw.between(6, 14) as u32,
            window: 16,
            volumes: draw_volumes(draw, bricks, &options.layouts, small_disks),
            safety_ns,
            liveness_ns: 12 * SECOND,
            operations: options.operations.unwrap_or(draw.between(1000, 4000)),
            faults: options.faults,
            skew_ppm: if skewed { draw.between(0, 5000) as u32 } else { 0 },
            offset_ns: if skewed { draw.between(0, 20_000 * MS) } else { 0 },
        }
    }

    /// Where the journal of every disk ends: rot behind it hits blocks.
    pub(crate) fn journal_end(&self) -> u64 {
        (64 << 10) + self.journal_bytes
    }

    /// In a few words.
    pub(crate) fn describe(&self) -> String {
        let volumes: Vec<String> = self.volumes.iter().map(|plan| plan.layout.to_string()).collect();
        format!(
            "{} bricks of {} disks, {} gateways, {} clients, {} actors on {}",
            self.bricks,
            self.disks,
            self.gateways,
            self.clients,
            self.actors,
            volumes.join(", ")
        )
    }
}

/// Small bounds, so that blocks go home soon and queues are full at times.
fn draw_limits(draw: &mut Draw) -> Limits {
    let usual = Limits::default();
    if draw.percent(25) {
        return usual;
    }
    Limits {
        destage_bytes: *draw.pick(&[16 << 10, 64 << 10, 1 << 20]),
        pages_max: *draw.pick(&[16, 64, 512]),
        lazy_ns: draw.between(MS, 50 * MS),
        idle_ns: draw.between(10 * MS, 1000 * MS),
        ..usual
    }
}

fn draw_volumes(draw: &mut Draw, bricks: u32, wanted: &[String], small_disks: bool) -> Vec<VolumePlan> {
    let parse = |name: &str| name.parse::<Layout>().unwrap_or_else(|error| panic!("{error}"));
    let all: Vec<Layout> = if wanted.is_empty() {
        LAYOUTS.iter().map(|name| parse(name)).collect()
    } else {
        wanted.iter().map(|name| parse(name)).collect()
    };
    let fitting: Vec<Layout> = all.into_iter().filter(|layout| u32::from(layout.width()) <= bricks).collect();
    assert!(!fitting.is_empty(), "no layout fits on {bricks} bricks");
    let count = draw.between(1, 3);
    let mut volumes: Vec<VolumePlan> = (0..count).map(|number| draw_volume(draw, number, &fitting)).collect();
    if small_disks {
        let first = &mut volumes[0];
        first.hot_stripes = FULL_BLOCKS / u64::from(first.unit_blocks);
    }
    volumes
}

fn draw_volume(draw: &mut Draw, number: u64, layouts: &[Layout]) -> VolumePlan {
    VolumePlan {
        name: format!("volume{number}"),
        layout: *draw.pick(layouts),
        unit_blocks: *draw.pick(&[1, 1, 2, 4]),
        hot_stripes: draw.between(1, 3),
        sector_blocks: draw.between(0, 2),
    }
}
