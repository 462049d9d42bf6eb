//! What a run is asked to be, and what its seed then draws.

use crate::history::Register;
use crate::plants::OF_OBJECTS;
use crate::schedule::Schedule;
use crate::timed::Hardware;
use crate::units::{MS, SECOND};
use base::{ClusterTime, StreamId, VolumeId};
use core::time::Duration;
use model::{DiskConfig, Draw};
use reads::seat::{Places, Turns};
use roles::brick::BrickConfig;
use roles::directory::{DirectoryConfig, Past};
use rules::fair::{Order, Share, Shares};
use rules::layout::{Geometry, Layout, placement};
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use store::{Limits, MapUse};
use wire::{AdminRequest, DataPath, Placement, Protocol, ReadPolicy, Reads};

/// What a run is asked to be. `None` lets the seed draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How long the safety phase is, in simulated seconds.
    pub simulated_s: Option<u64>,
    /// Shards a brick, each with a disk of its own.
    pub shards: Option<u16>,
    pub bricks: Option<u32>,
    /// The only layouts to draw from, such as `raid1x3`; empty for all.
    pub layouts: Vec<String>,
    /// The only read policies to draw from, such as `claim`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_policies: Vec<String>,
    /// The only placement rules to draw from, such as `periodic`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<String>,
    /// The only protocols to draw from, such as `gw,ts,2pcw+read`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<String>,
    /// Whether there are faults.
    pub faults: bool,
    /// About how many operations clients issue.
    pub operations: Option<u64>,
    /// Whether objects, and segments of objects, are put, patched and read beside. It changes nothing else that a seed draws.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub objects: bool,
    /// The bug that is planted on purpose; see [`crate::plants`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plant: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            simulated_s: None,
            shards: None,
            bricks: None,
            layouts: Vec::new(),
            read_policies: Vec::new(),
            placements: Vec::new(),
            protocols: Vec::new(),
            faults: true,
            operations: None,
            objects: false,
            plant: None,
        }
    }
}

/// A volume of the run, one of its snapshots, or a clone of one.
#[derive(Clone, Debug)]
pub(crate) struct VolumePlan {
    pub(crate) name: String,
    /// Whether clients write to it.
    pub(crate) writable: bool,
    pub(crate) layout: Layout,
    pub(crate) read_policy: ReadPolicy,
    pub(crate) reads: Reads,
    pub(crate) placement: Placement,
    pub(crate) protocol: Protocol,
    pub(crate) stream: StreamId,
    pub(crate) unit_blocks: u32,
    /// Rows of stripe units whose blocks are written whole.
    pub(crate) hot_stripes: u64,
    /// Groups that hold its extents, where none of them is far.
    pub(crate) spread: u32,
    /// More of them, in an extent that another group holds; 0 for a volume of one group.
    pub(crate) far_stripes: u64,
    /// Where that extent begins, once the volume's id says which group holds it.
    pub(crate) far_block: u64,
    /// Blocks behind them that are written by sectors.
    pub(crate) sector_blocks: u64,
}

impl VolumePlan {
    /// The command that makes it.
    pub(crate) fn creation(&self, nonce: u64) -> AdminRequest {
        AdminRequest::CreateVolume {
            name: self.name.clone(),
            size_bytes: self.size_blocks() * base::BLOCK_U64,
            layout: self.layout.to_string(),
            stripe_unit_blocks: self.unit_blocks,
            groups: self.groups(),
            read_policy: self.read_policy,
            io_timeout: wire::IoTimeout::default(),
            protocol: self.protocol,
            placement: self.placement,
            stream: self.stream,
            reads: self.reads,
            nonce,
        }
    }

    /// Its layout, and what about it is not usual.
    fn describe(&self) -> String {
        let placement = Some(self.placement).filter(|placement| *placement != Placement::default());
        let protocol = Some(self.protocol).filter(|protocol| *protocol != Protocol::default());
        let of = placement.map(|placement| placement.to_string());
        let of = of.into_iter().chain(protocol.map(|protocol| protocol.to_string()));
        let of = of.chain((self.reads == Reads::Confirmed).then(|| "confirmed reads".to_owned()));
        let unusual: String = of.map(|name| format!(", {name}")).collect();
        format!("{} ({}{unusual})", self.layout, self.read_policy)
    }

    /// Whether its clients coordinate by themselves: a client machine goes through no gateway to it.
    pub(crate) fn is_direct(&self) -> bool {
        self.protocol.path == DataPath::Direct
    }

    /// Whether its requests go to gateways beside bricks.
    pub(crate) fn has_gateways_beside_bricks(&self) -> bool {
        self.protocol.path.is_of_bricks()
    }

    /// Blocks that a whole stripe holds.
    pub(crate) fn stripe_blocks(&self) -> u64 {
        u64::from(self.layout.data()) * u64::from(self.unit_blocks)
    }

    /// Blocks that are written whole: those from 0.
    pub(crate) fn hot_blocks(&self) -> u64 {
        self.hot_stripes * self.stripe_blocks()
    }

    /// Blocks in the extent of another group that are written whole: those from `far_block`.
    pub(crate) fn far_blocks(&self) -> u64 {
        self.far_stripes * self.stripe_blocks()
    }

    /// All blocks in use.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> + use<> {
        let (near, far) = (self.hot_blocks() + self.sector_blocks, self.far_block);
        (0..near).chain(far..far + self.far_blocks())
    }

    /// The registers of a block in use.
    pub(crate) fn registers(&self, volume: usize, block: u64) -> Vec<Register> {
        let first = self.hot_blocks();
        if !(first..first + self.sector_blocks).contains(&block) {
            return vec![Register::block(volume, block)];
        }
        (block * SECTORS..(block + 1) * SECTORS).map(|sector| Register::sector(volume, sector)).collect()
    }

    /// How many groups it has.
    pub(crate) fn groups(&self) -> u32 {
        if self.far_stripes > 0 { 2 } else { self.spread }
    }

    /// Blocks that it must have room for: with several groups, enough extents for one of them to lie on the second.
    pub(crate) fn size_blocks(&self) -> u64 {
        let extents = if self.far_stripes > 0 { EXTENTS } else { 0 };
        (self.hot_blocks() + self.sector_blocks).max(extents * self.extent_blocks())
    }

    /// Blocks of an extent.
    pub(crate) fn extent_blocks(&self) -> u64 {
        u64::from(self.layout.data()) * u64::from(Geometry::COLUMN_BLOCKS)
    }

    /// Whether the parts of a request are decided together.
    pub(crate) fn links(&self) -> bool {
        self.protocol.atomicity.links()
    }

    /// Looks for an extent that does not lie on the first one's group. Where parts are decided together the blocks there begin with the last stripe of
    /// the extent before, which lies on another group.
    pub(crate) fn find_far_block(&mut self, family: VolumeId) {
        let rule = placement::rule(self.placement);
        let group_of = |extent| rule.group_of(family, extent, self.groups() as usize);
        if self.links() && self.far_stripes > 0 {
            let border = (1..EXTENTS).find(|extent| group_of(*extent) != group_of(*extent - 1));
            self.far_block = border.unwrap_or(1) * self.extent_blocks() - self.stripe_blocks();
            return;
        }
        let other = (1..EXTENTS).find(|extent| group_of(*extent) != group_of(0));
        match other {
            Some(extent) => self.far_block = extent * self.extent_blocks(),
            None => self.far_block = self.extent_blocks(),
        }
    }
}

/// The disks of each brick.
#[derive(Clone, Debug)]
pub(crate) struct Disks {
    pub(crate) per_brick: u32,
    pub(crate) model: DiskConfig,
    pub(crate) journal_bytes: u64,
    pub(crate) cache_bytes: usize,
    pub(crate) limits: Limits,
    /// Whether what the map of a disk's pages says is compared with the pages each time it is opened.
    pub(crate) map: MapUse,
    /// Whether clients write more than fits.
    pub(crate) are_small: bool,
}

impl Disks {
    /// Where the journal of every disk ends: rot behind it hits blocks.
    pub(crate) fn journal_end(&self) -> u64 {
        (64 << 10) + self.journal_bytes
    }
}

/// What clients ask for.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) clients: u32,
    pub(crate) actors: u32,
    /// Requests that an attached client has outstanding at most.
    pub(crate) window: usize,
    /// About how many operations all of them issue.
    pub(crate) operations: u64,
}

/// How long the run is: with faults, and after they have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    pub(crate) safety_ns: u64,
    pub(crate) liveness_ns: u64,
}

/// How bricks look after their blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upkeep {
    /// For how long a brick may be away before its blocks are rebuilt onto another.
    pub(crate) rebuild_after_s: u64,
    pub(crate) rebuild_bytes_per_second: u64,
    /// 0 for no scrubs but those asked for.
    pub(crate) scrub_interval_s: u64,
}

/// What clocks show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// When the run begins, since 1970.
    pub(crate) date: Date,
    /// They run at most so much too fast or too slow.
    pub(crate) skew_ppm: u32,
    /// They start at most so far apart.
    pub(crate) offset_ns: u64,
    /// How old the cluster is, in years: stamps are drawn from its time.
    pub(crate) age_years: u64,
    /// Whether a clock stands while its machine is paused, as that of a virtual machine may. Volumes that count on leases do not bear it.
    pub(crate) stand: bool,
}

impl Clocks {
    /// Clocks that agree.
    pub(crate) fn exact(date: Date) -> Clocks {
        Clocks { date, skew_ppm: 0, offset_ns: 0, age_years: 0, stand: false }
    }

    /// The time at which the cluster begins.
    pub(crate) fn first_time(&self) -> ClusterTime {
        ClusterTime::FIRST + Duration::from_secs(self.age_years * 365 * 24 * 3600)
    }
}

/// A day on which runs begin: a world that always begins near zero, or today, sees no counter of time that wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) name: &'static str,
    pub(crate) since_1970_s: u64,
}

impl Date {
    /// Where measurements begin: another date would turn the platters of their drives a little further, and so change the last digits of
    /// published figures and nothing else.
    pub(crate) const EPOCH: Date = Date { name: "1970-01-01", since_1970_s: 1 };
    /// Each with what may wrap there.
    const ALL: [Date; 5] = [
        // The day on which this was written.
        Date { name: "2026-11-28", since_1970_s: 1_795_824_000 },
        // Seconds of 31 bits.
        Date { name: "2038-01-19", since_1970_s: 2_147_483_640 },
        // Units of 1.024 us of 51 bits.
        Date { name: "2043-01-24", since_1970_s: 2_305_843_002 },
        // Seconds of 32 bits.
        Date { name: "2106-02-07", since_1970_s: 4_294_967_290 },
        // Nanoseconds of 63 bits.
        Date { name: "2262-04-11", since_1970_s: 9_223_372_030 },
    ];

    pub(crate) fn ns(self) -> u64 {
        self.since_1970_s * SECOND
    }
}

/// What many bricks and years bring, low enough for a few bricks and a minute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// What a brick is told of changes at a time ends behind so many bytes.
    pub(crate) page_bytes: usize,
    /// What lies behind the directory.
    pub(crate) past: Past,
    /// So many families a brick names at a time.
    pub(crate) held_at_once: usize,
    /// For so long at least a gateway has its number.
    pub(crate) shortest_loan: Duration,
    /// For how long a brick that was left out for being slow must be well again, at least and at most.
    pub(crate) slow_hold_ns: (u64, u64),
}

impl Bounds {
    /// As they are in every new cluster.
    pub(crate) const USUAL: Bounds = Bounds {
        page_bytes: DirectoryConfig::PAGE_BYTES,
        past: Past::NONE,
        held_at_once: BrickConfig::HELD_AT_ONCE,
        shortest_loan: DirectoryConfig::SHORTEST_LOAN,
        slow_hold_ns: DirectoryConfig::SLOW_HOLD_NS,
    };
}

/// What is done beside in a run: each a seed of draws of its own, so that runs without it are as they would be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intrigues {
    /// One gateway lies about delays, and whoever comes in its place.
    pub(crate) lies: Option<u64>,
    /// An operator makes, changes and deletes streams.
    pub(crate) commands: Option<u64>,
    /// An operator makes, cuts and deletes volumes that nobody opens.
    pub(crate) churn: Option<u64>,
    /// Disks are copied while their brick runs, and put back later.
    pub(crate) old_disks: bool,
    /// The directory's store is copied, and put back later.
    pub(crate) old_store: bool,
    /// A second process runs with a copy of a brick's disks.
    pub(crate) twins: bool,
    /// So many volumes of one group are there before all others, and nobody ever opens them.
    pub(crate) prefilled: u32,
}

/// What the seed drew.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) bricks: u32,
    pub(crate) gateways: u32,
    pub(crate) disks: Disks,
    pub(crate) volumes: Vec<VolumePlan>,
    pub(crate) load: Load,
    pub(crate) phases: Phases,
    pub(crate) upkeep: Upkeep,
    pub(crate) clocks: Clocks,
    pub(crate) bounds: Bounds,
    /// How requests take their turns at disks.
    pub(crate) turns: Turns,
    /// What streams are entitled to there.
    pub(crate) shares: Shares,
    /// What is done with streams beside that.
    pub(crate) intrigues: Intrigues,
    pub(crate) faults: bool,
    /// Whether objects, and segments of objects, are put, patched and read.
    pub(crate) objects: bool,
    /// The bug that is planted.
    pub(crate) plant: Option<String>,
    /// What the cluster is built of where things take the time that they take.
    pub(crate) hardware: Option<Rc<Hardware>>,
}

/// Room for about 1 MiB of data behind a journal of 1 MiB.
const SMALL_DISK_BYTES: u64 = 2400 << 10;
/// Blocks written on small disks: more than fit.
const FULL_BLOCKS: u64 = 500;

/// Sectors of a block.
const SECTORS: u64 = 8;
/// Extents of a volume of two groups.
const EXTENTS: u64 = 8;
/// Those that tolerate failures; some more than once, so that they are drawn more often.
const REDUNDANT: [&str; 10] = [
    "raid1x2",
    "raid1x2",
    "raid1x3",
    "raid1x3",
    "raid4-2+1",
    "raid4-4+1",
    "raid5-2+1",
    "raid5-4+1",
    "rs-2+2",
    "rs-4+2",
];
/// Those that do not: a seed that has them loses no disk, as long as they use it.
const BARE: [&str; 2] = ["raid0x1", "raid0x2"];
/// Of a hundred seeds, so many may draw a layout of [`BARE`].
const BARE_PERCENT: u32 = 12;

impl Shape {
    /// Draws what `options` leave open.
    pub(crate) fn draw(seed: u64, options: &Options) -> Shape {
        let draw = &mut Draw::new(seed);
        let bricks = options.bricks.unwrap_or(draw.between(4, 9) as u32);
        let per_brick = options.shards.unwrap_or(*draw.pick(&[1, 1, 2, 4]));
        let are_small = options.faults && draw.percent(10);
        let safety_ns = options.simulated_s.unwrap_or(draw.between(20, 70)) * SECOND;
        let is_skewed = options.faults && draw.percent(70);
        let mut disks = Disks::draw(draw, u32::from(per_brick), are_small);
        let (gateways, clients) = (draw.between(1, 3) as u32, draw.between(1, 3) as u32);
        let actors = draw.between(6, 14) as u32;
        let policies = draw_policies(seed, &options.read_policies);
        let mut volumes = draw_volumes(draw, bricks, &options.layouts, are_small, policies);
        draw_placements(seed, &options.placements, &mut volumes);
        draw_protocols(seed, &options.protocols, are_small, &mut volumes);
        let clocks_stand = options.faults && draw_standing(seed, options.plant.as_deref());
        draw_reads(seed, clocks_stand, &mut volumes);
        if volumes.iter().any(VolumePlan::links) {
            // Room for all parts of a few requests at once.
            disks.journal_bytes = disks.journal_bytes.max(1 << 20);
        }
        let operations = options.operations.unwrap_or(draw.between(1000, 4000));
        let mut intrigues = match options.faults {
            true => draw_intrigues(seed, options.plant.as_deref()),
            false => Intrigues::default(),
        };
        let mut bounds = draw_bounds(seed);
        if are_small {
            // What bricks note of so many groups would not fit.
            intrigues.prefilled = 0;
        } else if intrigues.prefilled > 0 {
            bounds.page_bytes = bounds.page_bytes.max(PREFILLED_PAGE_BYTES);
        }
        Shape {
            bricks,
            gateways,
            disks,
            volumes,
            load: Load { clients, actors, window: 16, operations },
            phases: Phases { safety_ns, liveness_ns: 12 * SECOND },
            upkeep: Upkeep {
                rebuild_after_s: draw.between(3, 12),
                rebuild_bytes_per_second: draw.between(128, 4096) << 10,
                scrub_interval_s: *draw.pick(&[0, 0, 0, 10, 30]),
            },
            clocks: Clocks { stand: clocks_stand, ..draw_clocks(seed, draw, is_skewed) },
            bounds,
            turns: draw_turns(seed),
            shares: draw_shares(seed),
            intrigues,
            faults: options.faults,
            objects: options.objects
                || options.plant.as_deref().is_some_and(|plant| OF_OBJECTS.contains(&plant)),
            plant: options.plant.clone(),
            hardware: None,
        }
    }

    /// Makes the cluster as simple as a schedule has it. What the seed drew beside is as it was.
    pub(crate) fn change(&mut self, schedule: &Schedule) {
        let changes = &schedule.changes;
        self.phases.safety_ns = schedule.safety_ns.unwrap_or(self.phases.safety_ns);
        self.bricks = changes.bricks.unwrap_or(self.bricks);
        self.gateways = changes.gateways.unwrap_or(self.gateways);
        self.load.clients = changes.clients.unwrap_or(self.load.clients);
        if changes.one_disk {
            self.disks.per_brick = 1;
        }
        if changes.exact_clocks {
            self.clocks = Clocks { skew_ppm: 0, offset_ns: 0, stand: false, ..self.clocks };
        }
        if changes.no_lies {
            self.intrigues.lies = None;
        }
    }

    /// Bricks that the widest volume does without.
    pub(crate) fn spares(&self) -> u32 {
        let widest = self.volumes.iter().map(|plan| u32::from(plan.layout.width())).max();
        self.bricks - widest.unwrap_or(0).min(self.bricks)
    }

    /// In a few words.
    pub(crate) fn describe(&self) -> String {
        let volumes = self.volumes.iter().map(VolumePlan::describe);
        let volumes: Vec<String> = volumes.collect();
        format!(
            "from {} on: {} bricks of {} disks{}, {} gateways{}, {} clients, {} actors on {}",
            self.clocks.date.name,
            self.bricks,
            self.disks.per_brick,
            self.describe_turns(),
            self.gateways,
            if self.intrigues.lies.is_some() { " of which one lies" } else { "" },
            self.load.clients,
            self.load.actors,
            volumes.join(", ")
        ) + &match self.intrigues.prefilled {
            0 => String::new(),
            volumes => format!(", beside {volumes} that nobody opens"),
        }
    }
}

impl Shape {
    fn describe_turns(&self) -> String {
        let Turns { order, places, .. } = self.turns;
        match places {
            Places::UNLIMITED => String::new(),
            Places(places) => {
                let order = match order {
                    Order::Arrival => "in order",
                    Order::Drawn { .. } => "in any order",
                    Order::Shares { .. } => "by shares",
                };
                format!(" that take {places} at a time {order}")
            }
        }
    }
}

impl Disks {
    fn draw(draw: &mut Draw, per_brick: u32, are_small: bool) -> Disks {
        let base_ns = draw.between(20_000, 200_000);
        let model = DiskConfig {
            bytes: if are_small { SMALL_DISK_BYTES } else { 64 << 20 },
            read_ns: base_ns,
            write_ns: base_ns / 2,
            flush_ns: base_ns * draw.between(1, 8),
        };
        Disks {
            per_brick: if are_small { 1 } else { per_brick },
            model,
            cache_bytes: *draw.pick(&[0, 0, 64 << 10, 64 << 20]),
            limits: draw_limits(draw),
            journal_bytes: if are_small { 1 << 20 } else { *draw.pick(&[128 << 10, 1 << 20, 4 << 20]) },
            map: MapUse::Compared,
            are_small,
        }
    }
}

/// Small bounds, so that blocks are destaged soon and queues are full at times.
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

/// One run in three has clocks that are hours apart.
const FAR_APART_PERCENT: u32 = 33;
const FAR_APART_NS: u64 = 5 * 3600 * SECOND;

/// Dates and large differences are drawn apart from all else.
fn draw_clocks(seed: u64, usual: &mut Draw, is_skewed: bool) -> Clocks {
    let mut draw = Draw::new(seed ^ 0x636c_6f63);
    let date = *draw.pick(&Date::ALL);
    let age_years = *draw.pick(&[0, 1, 40, 290]);
    if !is_skewed {
        return Clocks { age_years, ..Clocks::exact(date) };
    }
    let (skew_ppm, near_ns) = (usual.between(0, 5000) as u32, usual.between(0, 20 * SECOND));
    let is_far = draw.percent(FAR_APART_PERCENT);
    let offset_ns = if is_far { draw.between(near_ns, FAR_APART_NS) } else { near_ns };
    Clocks { date, skew_ppm, offset_ns, age_years, stand: false }
}

/// In so many of a hundred seeds clocks stand while machines are paused.
const STANDING_PERCENT: u32 = 20;
/// So many volumes of a hundred have confirmed reads where no clock stands.
const CONFIRMED_PERCENT: u32 = 20;

/// Drawn apart from all else.
fn draw_standing(seed: u64, plant: Option<&str>) -> bool {
    Draw::new(seed ^ 0x7374_616e).percent(STANDING_PERCENT) || plant == Some("believes_one")
}

/// What volumes' reads count on, drawn apart from all else: on no lease where clocks stand.
fn draw_reads(seed: u64, clocks_stand: bool, volumes: &mut [VolumePlan]) {
    let mut draw = Draw::new(seed ^ 0x7265_6164);
    for plan in volumes {
        if draw.percent(CONFIRMED_PERCENT) || clocks_stand {
            plan.reads = Reads::Confirmed;
        }
    }
}

/// Drawn apart from all else.
fn draw_bounds(seed: u64) -> Bounds {
    let mut draw = Draw::new(seed ^ 0x626f_756e);
    let page_bytes = *draw.pick(&[1, 300, 2000, DirectoryConfig::PAGE_BYTES]);
    let held_at_once = *draw.pick(&[1, 3, BrickConfig::HELD_AT_ONCE]);
    // Of numbers that are lent for seconds most are lent for longer in time.
    let mut of_loans = Draw::new(seed ^ 0x6c6f_616e);
    let shortest_loan = *of_loans.pick(&[Duration::from_secs(4), DirectoryConfig::SHORTEST_LOAN]);
    let lent = *of_loans.pick(&[0, 500]);
    // A run is short: who was slow must be able to return within it, and more than once.
    let slow_hold_ns = (2 * SECOND, 8 * SECOND);
    let bounds = Bounds { page_bytes, past: Past::NONE, held_at_once, shortest_loan, slow_hold_ns };
    if draw.percent(25) {
        return bounds;
    }
    // A little before what is a number of more than 13, 32, 48 bits.
    let mut near = |ends: &[u64]| *draw.pick(ends) - draw.below(40);
    let past = Past {
        version: near(&[1 << 13, 1 << 32, 1 << 48]),
        next_volume: near(&[1 << 13, 1 << 32, 1 << 48]),
        next_group: near(&[1 << 13, 1 << 32, 1 << 48]),
        next_writer: near(&[50, 1 << 14]) as u16,
        lent,
        deletions: 0,
        is_numbered: draw.percent(50),
    };
    let deletions = *draw.pick(&[0, 100, 4000]);
    Bounds { past: Past { deletions, ..past }, ..bounds }
}

/// Half of the seeds have few places at their disks, and so requests that wait. Drawn apart from all else.
fn draw_turns(seed: u64) -> Turns {
    let mut draw = Draw::new(seed ^ 0x7475_726e);
    if draw.percent(50) {
        return Turns::default();
    }
    let places = Places(*draw.pick(&[1, 1, 2, 4, 16]));
    let order = match draw.below(4) {
        0 => Order::Arrival,
        1 => Order::Drawn { seed: draw.bits() },
        _ => Order::FAIR,
    };
    Turns { order, places, ..Turns::default() }
}

/// Shares of the streams of a seed's volumes: anything goes, but for limits that would keep a run from ending.
fn draw_shares(seed: u64) -> Shares {
    let mut draw = Draw::new(seed ^ 0x7368_6172);
    let share = |stream| {
        let weight = draw.between(1, 200) as u32;
        let minimum = *draw.pick(&[0, weight / 10, weight]);
        let reservation = if draw.percent(25) { draw.between(100, 20_000) } else { 0 };
        let limit = if draw.percent(25) { reservation + draw.between(2_000, 50_000) } else { 0 };
        (StreamId(stream), Share::total(weight).with_minimum(minimum).with_rates(reservation, limit))
    };
    (0..8).map(share).collect()
}

/// In so many of a hundred seeds old copies of disks are put back.
const OLD_DISKS_PERCENT: u32 = 40;
/// In so many the directory's store is put back from an older copy.
const OLD_STORE_PERCENT: u32 = 25;

/// In so many a brick runs twice.
const TWINS_PERCENT: u32 = 20;

/// In so many volumes come and go that nobody opens.
const CHURN_PERCENT: u32 = 25;

/// In so many there are volumes before all others.
const PREFILLED_PERCENT: u32 = 2;
/// There a page has at least so much, for what is told in pages of a change each is not told within a run.
const PREFILLED_PAGE_BYTES: usize = 16 << 10;

/// In three of ten seeds an operator works on streams, and in half of these, and some others, a gateway lies about delays.
fn draw_intrigues(seed: u64, plant: Option<&str>) -> Intrigues {
    let mut draw = Draw::new(seed ^ 0x6c69_6573);
    let commands = draw.percent(30).then(|| draw.bits());
    let lies = draw.percent(if commands.is_some() { 50 } else { 10 }).then(|| draw.bits());
    // Whoever is to be found must have happened.
    let is_planted = |name| plant == Some(name);
    let old_disks =
        Draw::new(seed ^ 0x6469_736b).percent(OLD_DISKS_PERCENT) || is_planted("old_disk_unnoticed");
    let old_store =
        Draw::new(seed ^ 0x7374_6f72).percent(OLD_STORE_PERCENT) || is_planted("old_store_unnoticed");
    let twins = Draw::new(seed ^ 0x7477_696e).percent(TWINS_PERCENT) || is_planted("counts_at_once");
    let mut of_churn = Draw::new(seed ^ 0x6368_726e);
    let churn = of_churn.percent(CHURN_PERCENT).then(|| of_churn.bits());
    let mut of_prefilled = Draw::new(seed ^ 0x7072_6566);
    let prefilled =
        if of_prefilled.percent(PREFILLED_PERCENT) { of_prefilled.between(200, 2000) as u32 } else { 0 };
    Intrigues { lies, commands, churn, old_disks, old_store, twins, prefilled }
}

/// Policies of a seed's volumes, drawn apart from all else. Half of them are one of those with the most to go wrong.
fn draw_policies(seed: u64, wanted: &[String]) -> impl Iterator<Item = ReadPolicy> {
    let parse = |name: &String| name.parse().unwrap_or_else(|error| panic!("{error}"));
    let wanted: Vec<ReadPolicy> = wanted.iter().map(parse).collect();
    let mut draw = Draw::new(seed ^ 0x7265_6164);
    core::iter::repeat_with(move || match &wanted[..] {
        [] if draw.percent(40) => ReadPolicy::Claim,
        [] if draw.percent(30) => ReadPolicy::MaxFlowAdaptive,
        [] => *draw.pick(&ReadPolicy::ALL),
        wanted => *draw.pick(wanted),
    })
}

/// Placement rules of a seed's volumes, drawn apart from all else. Half of them are hashed, which are most of those in the field.
fn draw_placements(seed: u64, wanted: &[String], volumes: &mut [VolumePlan]) {
    let parse = |name: &String| name.parse().unwrap_or_else(|error| panic!("{error}"));
    let wanted: Vec<Placement> = wanted.iter().map(parse).collect();
    let mut draw = Draw::new(seed ^ 0x706c_6163);
    for plan in volumes {
        plan.placement = match &wanted[..] {
            [] if draw.percent(50) => Placement::Hashed,
            [] => *draw.pick(&[Placement::Periodic, Placement::Weighted]),
            wanted => *draw.pick(wanted),
        };
    }
}

/// Protocols of a seed's volumes, drawn apart from all else. Half of them are the default one.
fn draw_protocols(seed: u64, wanted: &[String], are_small: bool, volumes: &mut [VolumePlan]) {
    let parse = |name: &String| name.parse().unwrap_or_else(|error| panic!("{error}"));
    let wanted: Vec<Protocol> = wanted.iter().map(parse).collect();
    let all: Vec<Protocol> = Protocol::all().filter(|protocol| !protocol.atomicity.links()).collect();
    let mut draw = Draw::new(seed ^ 0x7072_6f74);
    let mut links = Draw::new(seed ^ 0x6c69_6e6b);
    for (number, plan) in volumes.iter_mut().enumerate() {
        plan.protocol = match &wanted[..] {
            [] if draw.percent(50) => Protocol::default(),
            [] => *draw.pick(&all),
            wanted => *draw.pick(wanted),
        };
        if let Some(linked) = plan.protocol.linked()
            && wanted.is_empty()
            && links.percent(15)
        {
            plan.protocol = linked;
        }
        // Two groups, of which one decides what is written to both.
        if plan.links() && !(are_small && number == 0) {
            plan.far_stripes = 2;
        }
    }
}

fn draw_volumes(
    draw: &mut Draw,
    bricks: u32,
    wanted: &[String],
    small_disks: bool,
    policies: impl Iterator<Item = ReadPolicy>,
) -> Vec<VolumePlan> {
    let parse = |name: &str| name.parse::<Layout>().unwrap_or_else(|error| panic!("{error}"));
    let bare = if draw.percent(BARE_PERCENT) { &BARE[..] } else { &[] };
    let all: Vec<Layout> = if wanted.is_empty() {
        REDUNDANT.iter().chain(bare).map(|name| parse(name)).collect()
    } else {
        wanted.iter().map(|name| parse(name)).collect()
    };
    let mut fitting: Vec<Layout> =
        all.into_iter().filter(|layout| u32::from(layout.width()) <= bricks).collect();
    assert!(!fitting.is_empty(), "no layout fits on {bricks} bricks");
    // Most seeds have bricks to spare: a rebuild needs a place to go.
    let narrow: Vec<Layout> =
        fitting.iter().filter(|layout| u32::from(layout.width()) < bricks).copied().collect();
    if draw.percent(75) && !narrow.is_empty() {
        fitting = narrow;
    }
    let count = draw.between(1, 3);
    let mut volumes: Vec<VolumePlan> = (0..count).map(|number| draw_volume(draw, number, &fitting)).collect();
    volumes.iter_mut().zip(policies).for_each(|(plan, policy)| plan.read_policy = policy);
    if small_disks {
        let first = &mut volumes[0];
        first.far_stripes = 0;
        first.hot_stripes = FULL_BLOCKS / u64::from(first.unit_blocks);
    }
    volumes
}

fn draw_volume(draw: &mut Draw, number: u64, layouts: &[Layout]) -> VolumePlan {
    VolumePlan {
        name: format!("volume{number}"),
        writable: true,
        layout: *draw.pick(layouts),
        read_policy: ReadPolicy::default(),
        reads: Reads::default(),
        placement: Placement::default(),
        protocol: Protocol::default(),
        stream: StreamId(number as u32),
        unit_blocks: *draw.pick(&[1, 2, 4, 4]),
        hot_stripes: draw.between(1, 3),
        spread: 1,
        far_stripes: if draw.percent(50) { draw.between(1, 2) } else { 0 },
        far_block: 0,
        sector_blocks: draw.between(0, 2),
    }
}
