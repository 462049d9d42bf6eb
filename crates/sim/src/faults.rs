//! Faults: what goes wrong, when, and what must not go wrong at the same time.
//!
//! The safety phase draws one fault after the other. Crashes and restarts, pauses, partitions, slow disks and a bad
//! network are free: disks survive them. What is lost for good (a brick that never returns, rotten blocks) is bounded
//! by what each layout promises to survive, counted with the members that the views have left out already.

use crate::checkers::live::Excuses;
use crate::options::Shape;
use crate::world::event::Event;
use crate::world::{Kind, MS, SECOND, World};
use base::{BrickId, GroupId};
use model::link::Arrivals;
use model::{Draw, LinkConfig, PowerCut};
use std::collections::{BTreeMap, BTreeSet};
use wire::GroupView;

/// A fault that ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Packets vanish between these, one way.
    Cut(Vec<(usize, usize)>),
    /// A brick's disks are slow.
    SlowDisks(usize),
    /// The network loses, repeats and holds up packets.
    Noise,
}

/// Draws faults and keeps count.
pub(crate) struct Faults {
    /// How often each kind happened.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// Bricks that never return.
    pub(crate) lost: BTreeSet<BrickId>,
    /// Bricks with rotten blocks.
    pub(crate) rotten: BTreeSet<BrickId>,
    draw: Draw,
    /// The kinds that this seed draws from.
    kinds: Vec<Trouble>,
    interval_ns: u64,
    until_ns: u64,
    /// Until when nodes were cut off, at least.
    disturbed_ns: u64,
    /// Until when disks or the network were slow, at least.
    hindered_ns: u64,
    /// The brick that crashes in the middle of its next write.
    armed: Option<usize>,
    /// No further fault before.
    quiet_until_ns: u64,
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    CrashBrick,
    CrashAll,
    CrashGateway,
    CrashDirectory,
    CrashClient,
    LoseBrick,
    Partition,
    Pause,
    SlowDisks,
    Noise,
    Reset,
    Rot,
}

const KINDS: [(Trouble, u32); 12] = [
    (Trouble::CrashBrick, 70),
    (Trouble::CrashAll, 15),
    (Trouble::CrashGateway, 60),
    (Trouble::CrashDirectory, 40),
    (Trouble::CrashClient, 40),
    (Trouble::LoseBrick, 25),
    (Trouble::Partition, 50),
    (Trouble::Pause, 50),
    (Trouble::SlowDisks, 40),
    (Trouble::Noise, 50),
    (Trouble::Reset, 40),
    (Trouble::Rot, 40),
];

impl Faults {
    pub(crate) fn new(mut draw: Draw, shape: &Shape) -> Faults {
        let kinds =
            KINDS.iter().filter(|(_, percent)| draw.percent(*percent)).map(|(kind, _)| *kind).collect();
        let mut counts = BTreeMap::new();
        if shape.skew_ppm > 0 {
            counts.insert("skewed clocks", u64::from(shape.bricks + shape.gateways + 1));
        }
        if shape.small_disks {
            counts.insert("small disks", u64::from(shape.bricks * shape.disks));
        }
        Faults {
            counts,
            lost: BTreeSet::new(),
            rotten: BTreeSet::new(),
            kinds,
            interval_ns: draw.between(300 * MS, 6 * SECOND),
            draw,
            until_ns: 0,
            disturbed_ns: 0,
            hindered_ns: 0,
            armed: None,
            quiet_until_ns: 0,
        }
    }

    /// Counts what the network did to a packet.
    pub(crate) fn note_arrivals(&mut self, arrivals: &Arrivals) {
        match arrivals {
            Arrivals { first_ns: None, .. } => self.count("packets lost"),
            Arrivals { second_ns, reordered, .. } => {
                if second_ns.is_some() {
                    self.count("packets repeated");
                }
                if *reordered {
                    self.count("packets reordered");
                }
            }
        }
    }

    /// Until when nodes were cut off or slow, at least.
    pub(crate) fn disturbed_ns(&self) -> u64 {
        self.disturbed_ns.max(self.hindered_ns)
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

impl World {
    /// Lets faults happen for `span_ns`.
    pub(crate) fn start_faults(&mut self, span_ns: u64) {
        if self.shape.faults && !self.faults.kinds.is_empty() {
            self.faults.until_ns = self.now_ns + span_ns;
            self.later(0, Event::Fault);
        }
    }

    /// The next fault.
    pub(crate) fn on_fault(&mut self) {
        if self.now_ns >= self.faults.until_ns {
            return;
        }
        if self.now_ns < self.faults.quiet_until_ns {
            let delay_ns = self.faults.quiet_until_ns - self.now_ns;
            return self.later(delay_ns, Event::Fault);
        }
        let Faults { draw, kinds, .. } = &mut self.faults;
        let trouble = *draw.pick(kinds);
        self.begin(trouble);
        let delay_ns = self.faults.draw.below(2 * self.faults.interval_ns);
        self.later(delay_ns, Event::Fault);
    }

    /// A fault is over.
    pub(crate) fn end_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Cut(pairs) => {
                pairs.iter().for_each(|&(from, to)| self.net.unblock(from, to));
                self.note(0, "a partition is over");
            }
            Fault::SlowDisks(node) => self.set_slowness(node, 100),
            Fault::Noise => self.net.config = LinkConfig::CLEAN,
        }
    }

    /// Ends all faults: everyone who can returns, and the network is perfect.
    pub(crate) fn heal(&mut self) {
        self.note(0, "all is healed");
        (self.faults.until_ns, self.faults.armed) = (0, None);
        self.net.unblock_all();
        self.net.config = LinkConfig::CLEAN;
        for node in 0..self.nodes.len() {
            self.resume(node);
            self.set_slowness(node, 100);
            if self.nodes[node].kind != Kind::Operator {
                self.boot(node);
            }
        }
    }

    /// Which errors are true for a volume now.
    pub(crate) fn excuses(&self, volume: usize) -> Excuses {
        let id = self.volume_ids.get(volume).copied();
        let views = self.evicted.newest().values().filter(|view| Some(view.volume) == id);
        let beyond =
            |view: &GroupView| self.failures(view, None) > self.shape.volumes[volume].layout.tolerates();
        Excuses { full: self.shape.small_disks, unreadable: views.into_iter().any(beyond) }
    }

    fn begin(&mut self, kind: Trouble) {
        self.failover.clear();
        match kind {
            Trouble::CrashBrick => self.crash_brick(),
            Trouble::CrashAll => self.crash_all(),
            Trouble::CrashGateway => self.crash_gateway(),
            Trouble::CrashDirectory => self.crash_directory(),
            Trouble::CrashClient => self.crash_client(),
            Trouble::LoseBrick => self.lose_brick(),
            Trouble::Partition => self.partition(),
            Trouble::Pause => self.pause_one(),
            Trouble::SlowDisks => self.slow_disks(),
            Trouble::Noise => self.noise(),
            Trouble::Reset => self.reset_one(),
            Trouble::Rot => self.rot(),
        }
    }

    fn running_gateways(&self) -> Vec<usize> {
        self.nodes_where(|node| node.alive && matches!(node.kind, Kind::Gateway(_)))
    }

    fn running_bricks(&self) -> Vec<usize> {
        self.nodes_where(|node| node.alive && matches!(node.kind, Kind::Brick(_)))
    }

    fn draw_one(&mut self, nodes: &[usize]) -> Option<usize> {
        (!nodes.is_empty()).then(|| *self.faults.draw.pick(nodes))
    }

    fn draw_cut(&mut self) -> PowerCut {
        *self.faults.draw.pick(&[
            PowerCut::ProcessOnly,
            PowerCut::ProcessOnly,
            PowerCut::LoseAll,
            PowerCut::LoseWrites,
            PowerCut::TearSectors,
        ])
    }

    /// Short outages, which a lease outlasts, and long ones, after which a member is left out.
    fn draw_outage_ns(&mut self) -> u64 {
        let draw = &mut self.faults.draw;
        let short = draw.percent(60);
        let outage_ns =
            if short { draw.between(50 * MS, 1500 * MS) } else { draw.between(SECOND, 15 * SECOND) };
        self.faults.disturbed_ns = self.faults.disturbed_ns.max(self.now_ns + outage_ns);
        outage_ns
    }

    fn crash_brick(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        if self.faults.draw.percent(30) {
            // It comes in the middle of the brick's next write to a disk.
            self.faults.armed = Some(node);
            return;
        }
        self.crash_brick_now(node);
    }

    /// A disk of a brick was given a write, which takes `delay_ns`.
    pub(crate) fn on_disk_write(&mut self, node: usize, delay_ns: u64) {
        if self.faults.armed == Some(node) {
            self.faults.armed = None;
            let (life, delay_ns) = (self.nodes[node].life, self.faults.draw.below(delay_ns.max(1)));
            self.later(delay_ns, Event::Crash { node, life });
        }
    }

    /// The crash of a brick that was to come in the middle of a write.
    pub(crate) fn on_crash(&mut self, node: usize) {
        if self.faults.until_ns > 0 {
            self.failover.clear();
            self.crash_brick_now(node);
        }
    }

    fn crash_brick_now(&mut self, node: usize) {
        let (cut, outage_ns) = (self.draw_cut(), self.draw_outage_ns());
        self.faults.count(if cut == PowerCut::ProcessOnly {
            "bricks killed"
        } else {
            "bricks without power"
        });
        self.crash(node, cut);
        self.later(outage_ns, Event::Boot { node });
    }

    /// The power of the whole room.
    fn crash_all(&mut self) {
        self.faults.count("power cuts of all");
        for node in self.nodes_where(|node| node.alive && node.kind != Kind::Operator) {
            let (cut, outage_ns) = (self.draw_cut(), self.draw_outage_ns());
            self.crash_any(node, cut, outage_ns.min(3 * SECOND));
        }
    }

    fn crash_any(&mut self, node: usize, cut: PowerCut, outage_ns: u64) {
        self.crash(node, cut);
        match self.nodes[node].kind.clone() {
            Kind::Gateway(_) => {
                let next = self.add_gateway();
                self.later(outage_ns, Event::Boot { node: next });
            }
            Kind::Client(_, volume) => {
                let next = self.add_client(volume);
                self.later(outage_ns, Event::Boot { node: next });
            }
            _ => self.later(outage_ns, Event::Boot { node }),
        }
    }

    fn crash_gateway(&mut self) {
        let Some(node) = self.draw_one(&self.running_gateways()) else { return };
        self.faults.count("gateways killed");
        // Often nothing else goes wrong until its clients must have been served by another one.
        if self.watch_failover(node) && self.faults.draw.percent(60) {
            self.faults.quiet_until_ns = self.now_ns + 7 * SECOND;
        }
        let outage_ns = self.faults.draw.between(20 * MS, 4 * SECOND);
        self.crash_any(node, PowerCut::ProcessOnly, outage_ns);
    }

    fn crash_directory(&mut self) {
        self.faults.count("directory killed");
        let outage_ns = self.draw_outage_ns().min(6 * SECOND);
        self.crash(0, PowerCut::ProcessOnly);
        self.later(outage_ns, Event::Boot { node: 0 });
    }

    fn crash_client(&mut self) {
        let clients = self.nodes_where(|node| node.alive && matches!(node.kind, Kind::Client(..)));
        let Some(node) = self.draw_one(&clients) else { return };
        self.faults.count("clients killed");
        let outage_ns = self.faults.draw.between(20 * MS, 2 * SECOND);
        self.crash_any(node, PowerCut::ProcessOnly, outage_ns);
    }

    /// A brick never returns, if all of its groups survive that.
    fn lose_brick(&mut self) {
        let bricks = self.running_bricks();
        let all_there = bricks.len() + self.faults.lost.len() == self.shape.bricks as usize;
        let standing_still = !self.nodes_where(|node| node.paused).is_empty();
        let quiet = all_there && !standing_still && self.now_ns > self.faults.disturbed_ns + SECOND;
        let Some(node) = self.draw_one(&bricks).filter(|_| quiet && self.nodes[0].alive) else { return };
        let Kind::Brick(id) = self.nodes[node].kind else { return };
        if !self.may_fail(id) {
            return;
        }
        self.faults.count("bricks lost for good");
        self.faults.lost.insert(id);
        let cut = self.draw_cut();
        self.crash(node, cut);
        self.nodes[node].gone = true;
    }

    /// Whether every group of which this brick is a member survives one failure more than it has.
    fn may_fail(&self, id: BrickId) -> bool {
        let views = self.evicted.newest().values().filter(|view| view.slot_of(id).is_some());
        views.into_iter().all(|view| self.failures(view, Some(id)) <= self.tolerates(view.group))
    }

    /// Members that are left out, lost or rotten, and `one_more`.
    fn failures(&self, view: &GroupView, one_more: Option<BrickId>) -> u8 {
        let Faults { lost, rotten, .. } = &self.faults;
        let is_bad =
            |brick: &BrickId| Some(*brick) == one_more || lost.contains(brick) || rotten.contains(brick);
        let bad = (0..).zip(&view.members).filter(|&(slot, brick)| !view.current.has(slot) || is_bad(brick));
        bad.count() as u8
    }

    fn partition(&mut self) {
        let nodes = self.nodes_where(|node| node.alive && node.kind != Kind::Operator);
        let draw = &mut self.faults.draw;
        if nodes.is_empty() {
            return;
        }
        let (alone, both_ways) = (draw.percent(60), draw.percent(70));
        let island: Vec<usize> = if alone {
            vec![*draw.pick(&nodes)]
        } else {
            nodes.iter().copied().filter(|_| draw.percent(35)).collect()
        };
        let span_ns = if draw.percent(50) {
            draw.between(100 * MS, 2 * SECOND)
        } else {
            draw.between(SECOND, 10 * SECOND)
        };
        self.faults.disturbed_ns = self.faults.disturbed_ns.max(self.now_ns + span_ns);
        let rest: Vec<usize> = nodes.into_iter().filter(|node| !island.contains(node)).collect();
        let mut pairs: Vec<(usize, usize)> =
            island.iter().flat_map(|&a| rest.iter().map(move |&b| (a, b))).collect();
        if both_ways {
            pairs.extend(pairs.clone().into_iter().map(|(a, b)| (b, a)));
        }
        self.faults.count(if both_ways { "partitions" } else { "one-way partitions" });
        for &(from, to) in &pairs {
            self.net.block(from, to);
            let what = format!("reaches {} no more", self.nodes[to].id);
            self.note(from, &what);
            let delay_ns = self.faults.draw.between(500 * MS, 5 * SECOND);
            self.reset_if_cut((from.min(to), from.max(to)), delay_ns.max(span_ns / 2));
        }
        self.later(span_ns, Event::FaultEnd(Fault::Cut(pairs)));
    }

    /// A connection across a partition breaks when its sides find out; some survive a short one.
    fn reset_if_cut(&mut self, pair: (usize, usize), delay_ns: u64) {
        if self.faults.draw.percent(70) {
            self.reset(pair, delay_ns);
        }
    }

    fn pause_one(&mut self) {
        let nodes = self.nodes_where(|node| node.alive && !node.paused && node.kind != Kind::Operator);
        let Some(node) = self.draw_one(&nodes) else { return };
        self.faults.count("pauses");
        let draw = &mut self.faults.draw;
        let span_ns = if draw.percent(60) {
            draw.between(10 * MS, 2 * SECOND)
        } else {
            draw.between(SECOND, 20 * SECOND)
        };
        self.faults.disturbed_ns = self.faults.disturbed_ns.max(self.now_ns + span_ns);
        self.pause(node);
        self.later(span_ns, Event::Resume { node });
    }

    fn slow_disks(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        self.faults.count("slow disks");
        let draw = &mut self.faults.draw;
        let (percent, span_ns) = (draw.between(1_000, 50_000), draw.between(500 * MS, 8 * SECOND));
        self.faults.hindered_ns = self.faults.hindered_ns.max(self.now_ns + span_ns);
        self.set_slowness(node, percent);
        self.note(node, &format!("has disks of {percent} percent latency"));
        self.later(span_ns, Event::FaultEnd(Fault::SlowDisks(node)));
    }

    fn set_slowness(&mut self, node: usize, percent: u64) {
        if let Some(bay) = &mut self.nodes[node].bay {
            bay.disks_mut().iter_mut().for_each(|disk| disk.set_slowness(percent));
        }
    }

    fn noise(&mut self) {
        self.faults.count("noisy networks");
        let draw = &mut self.faults.draw;
        self.net.config = LinkConfig {
            latency_ns: draw.between(50_000, 5 * MS),
            spread_ns: draw.between(50_000, 20 * MS),
            loss_ppm: draw.below(100_000) as u32,
            duplicate_ppm: draw.below(100_000) as u32,
            reorder_ppm: draw.below(200_000) as u32,
            reorder_ns: draw.between(MS, 500 * MS),
        };
        let span_ns = draw.between(500 * MS, 10 * SECOND);
        self.faults.hindered_ns = self.faults.hindered_ns.max(self.now_ns + span_ns);
        self.later(span_ns, Event::FaultEnd(Fault::Noise));
    }

    fn reset_one(&mut self) {
        let standing = self.net.standing();
        if !standing.is_empty() {
            self.faults.count("connections reset");
            let pair = *self.faults.draw.pick(&standing);
            self.reset(pair, 0);
        }
    }

    /// Some stable page with a block of a redundant group rots, if its group can repair that.
    fn rot(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let Kind::Brick(id) = self.nodes[node].kind else { return };
        if !self.faults.rotten.contains(&id) && !self.may_fail(id) {
            return;
        }
        let disk = self.faults.draw.below(u64::from(self.shape.disks)) as usize;
        let pages = self.rottable(node, disk);
        if pages.is_empty() {
            return;
        }
        self.faults.rotten.insert(id);
        let bad_sector = self.faults.draw.percent(25);
        self.faults.count(if bad_sector { "unreadable sectors" } else { "rotten sectors" });
        let page = *self.faults.draw.pick(&pages);
        let bay = self.nodes[node].bay.as_mut().expect("a brick has disks");
        let disk = &mut bay.disks_mut()[disk];
        let what = format!("page {page} rots");
        if bad_sector {
            disk.spoil(page)
        } else {
            disk.rot(page, &mut self.faults.draw)
        }
        self.note(node, &what);
    }

    fn tolerates(&self, group: GroupId) -> u8 {
        let volume = self.evicted.newest().get(&group).map(|view| view.volume);
        let plan = self.volume_ids.iter().position(|id| Some(*id) == volume);
        plan.map_or(0, |plan| self.shape.volumes[plan].layout.tolerates())
    }

    /// Pages of a brick's disk that hold a block and nothing else.
    fn rottable(&self, node: usize, disk: usize) -> Vec<u64> {
        let bay = self.nodes[node].bay.as_ref().expect("a brick has disks");
        let is_block = |page: &[u8]| {
            page[..8] != [0; 8] && page.as_chunks::<8>().0.iter().all(|word| *word == page[..8])
        };
        let first = self.shape.journal_end() / model::disk::PAGE as u64;
        let pages =
            bay.disks()[disk].stable_pages().filter(|(index, page)| *index >= first && is_block(page));
        pages.map(|(index, _)| index).collect()
    }
}
