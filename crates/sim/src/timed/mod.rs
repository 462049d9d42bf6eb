//! How fast a cluster is: whole machines, in a world in which things take the time that they take.
//!
//! A run is a [`Cluster`], a [`Workload`] and a [`Length`]; it gives back what was [`Measured`].
//! Here the directory, the gateways and the bricks are the machines that run for real, each brick over a
//! [shelf](crate::shelf) for its disk.
//!
//! Reading order: [`cluster`] (what can be set), [`workload`], [`measured`], `grain` (what a block is), `hardware` (what the cluster is
//! built of), `background` (who else uses its disks), `crossed` (what crosses its memories), [`sharing`] and [`threads`] (streams that share bricks), `policy` (who serves a read), `load`, `requests`, `record` and `routes` (what is asked of it, and what became of it), `packets` (what is counted of what machines
//! say), `conditions` (what happens to it, and what checkers and clients see), [`standings`] (what its directory says of bricks), this file; [`objects`] (one client that puts and gets large objects, in
//! the place of a load).

mod background;
pub mod cluster;
mod conditions;
mod crossed;
pub(crate) mod device;
mod grain;
mod hardware;
mod load;
pub mod measured;
pub mod objects;
mod packets;
mod policy;
mod postmark;
mod record;
mod requests;
mod routes;
mod scattered;
pub mod sharing;
pub(crate) mod source;
pub mod standings;
pub mod threads;
pub mod workload;

use crate::checkers::Violation;
use crate::options::{
    Bounds, Clocks, Date, Disks, Intrigues, Load as Clients, Phases, Shape, Upkeep, VolumePlan,
};
use crate::trace::Trace;
use crate::units::{MS, SECOND};
use crate::world::event::{Event, Input};
use crate::world::hosts::Who;
use crate::world::{Kind, World};
pub use background::Background;
use base::{BrickId, NodeId, StreamId, Time};
pub use cluster::{
    BrickSpec, Buses, CACHED, ClaimOptions, Cluster, ClusterError, Groups, Hosts, Machines, Network, Scheme,
    Through, WriteRelease,
};
pub use conditions::{Conditions, Incident, Victim, Window};
use core::time::Duration;
pub(crate) use crossed::Class;
pub use crossed::{Crossed, Crossings};
pub(crate) use grain::Grain;
pub(crate) use hardware::{Hardware, ShelfDisk};
use load::{Door, Port};
pub(crate) use load::{Load, LoadEvent};
pub use measured::{BrickMeasured, Contention, Interval, Measured, Message, Traffic};
use model::DiskConfig;
use model::host::Work;
pub(crate) use objects::Watch;
pub(crate) use policy::Keeper;
use policy::Shared;
pub use postmark::{Nonsense, Postmark};
use reads::distribute::policy::Policy as _;
use reads::seat::Turns;
use reads::seat::heads;
pub use record::{DiskAccess, RequestRecord, ServedBy};
use requests::Sight;
use routes::Routes;
pub use routes::Spread;
use rules::fair::Shares;
use rules::layout::Layout;
pub use sharing::{Served, Sharing, VolumeSpec};
pub use source::Arriving;
pub use standings::Standings;
use std::collections::BTreeSet;
use std::rc::Rc;
use thiserror::Error;
pub use threads::Threads;
use wire::{ReadPolicy, StatusPart};
pub use workload::{Arrival, Arrivals, Asks, Drawn, Length, Locality, Mix, Sizes, Workload};

/// Bytes of the disk in a stripe unit.
const UNIT_BYTES: u64 = 64 << 10;

/// Why a run could not be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TimedError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// No machines can be this scheme.
    #[error("whole machines have no scheme '{0}': it is an ideal (sim::central)")]
    Scheme(&'static str),
    /// Groups that are not disjoint and alike.
    #[error(
        "whole machines need disjoint groups of one size: the directory places each group's volume on bricks of its own"
    )]
    Groups,
    /// What machines cannot have, or not together.
    #[error("whole machines cannot be measured with {0}")]
    Conditions(String),
    /// A layout that the groups cannot have.
    #[error("{0}")]
    Layout(String),
    /// The cluster did not come up, or refused a request.
    #[error("{0}")]
    Failed(String),
}

/// What came of a run.
#[derive(Debug)]
pub struct Lived {
    pub measured: Measured,
    /// What clients saw in each interval.
    pub windows: Vec<Window>,
    /// What each volume was served in each interval; where streams share bricks.
    pub served: Vec<Vec<Served>>,
    /// Requests that were not answered before their clients died, each with its gateway.
    pub lost: u64,
    /// What a checker found, if any watched.
    pub violation: Option<Violation>,
    /// What the directory said of bricks, ten times a second.
    pub standings: Standings,
    /// What processors did while it was measured, where they take time.
    pub worked: Worked,
    /// What crossed the machines' memories, where that is counted.
    pub crossings: Crossings,
}

/// The work of all that stand on a cluster's machines.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Worked {
    pub clients: Work,
    pub gateways: Work,
    pub bricks: Work,
}

/// Runs `workload` on `cluster` and measures. All draws are from `seed`.
///
/// # Errors
/// When the cluster cannot be, or does not work.
pub fn run(cluster: &Cluster, workload: Workload, length: Length, seed: u64) -> Result<Measured, TimedError> {
    live_through(cluster, workload, length, &Conditions::default(), seed).map(|lived| lived.measured)
}

/// As [`run`], under these conditions.
///
/// # Errors
/// As [`run`].
pub fn live_through(
    cluster: &Cluster,
    workload: Workload,
    length: Length,
    conditions: &Conditions,
    seed: u64,
) -> Result<Lived, TimedError> {
    cluster.validate()?;
    let policy = policy::name(&cluster.scheme).ok_or(TimedError::Scheme(cluster.scheme.name()))?;
    let grain = Grain::of(&workload, conditions);
    check_conditions(cluster, &workload, conditions)?;
    if let Some(sharing) = &conditions.sharing {
        sharing.validate(cluster.bricks.len(), cluster.gateways)?;
        let plans = sharing.volumes.iter().map(|volume| (volume.layout, volume.stream)).collect();
        let order = (0..cluster.bricks.len()).collect();
        let bricks = Placed { order, replicas: 1, plans, sharing: conditions.sharing.clone() };
        let timed = Timed::new(cluster, (policy, bricks), (workload, grain), (length, conditions), seed);
        return timed.run(cluster.scheme.name(), conditions);
    }
    let replicas = cluster.groups.0[0].len();
    let mut grouped: Vec<u32> = cluster.groups.0.iter().flatten().copied().collect();
    let in_groups = grouped.len();
    grouped.sort_unstable();
    grouped.dedup();
    if cluster.groups.0.iter().any(|group| group.len() != replicas) || grouped.len() < in_groups {
        return Err(TimedError::Groups);
    }
    let copies = || format!("raid1x{replicas}").parse::<Layout>();
    let layout =
        conditions.layout.map_or_else(copies, Ok).map_err(|error| TimedError::Layout(error.to_string()))?;
    let is_spread = conditions.spread.is_some() && cluster.groups.0.len() == 1;
    if usize::from(layout.width()) != replicas && !(is_spread && usize::from(layout.width()) < replicas) {
        return Err(TimedError::Layout(format!("{layout} needs groups of {} bricks", layout.width())));
    }
    if write_release(cluster, &workload) != WriteRelease::Nvram && layout.data() > 1 {
        let why = format!("a write of {layout} leaves when it is acknowledged: set write_release to nvram");
        return Err(TimedError::Layout(why));
    }
    let order = cluster.groups.0.iter().flatten().map(|brick| *brick as usize).collect();
    let plans = vec![(layout, StreamId::default()); cluster.groups.0.len()];
    let bricks = Placed { order, replicas: replicas as u32, plans, sharing: None };
    let timed = Timed::new(cluster, (policy, bricks), (workload, grain), (length, conditions), seed);
    timed.run(cluster.scheme.name(), conditions)
}

/// What whole machines, or a run that is judged, cannot have is refused, and not left out.
fn check_conditions(
    cluster: &Cluster,
    workload: &Workload,
    conditions: &Conditions,
) -> Result<(), TimedError> {
    let refuse = |why: &str| Err(TimedError::Conditions(why.to_owned()));
    let release = write_release(cluster, workload);
    match (workload, &conditions.sharing) {
        (Workload::Threads(threads), Some(sharing)) if threads.len() == sharing.volumes.len() => {}
        (Workload::Threads(threads), None) if threads.len() == cluster.groups.0.len() => {}
        (Workload::Threads(_), _) => return refuse("threads that are not those of each volume"),
        (Workload::Open { .. }, _) | (_, None) => {}
        (_, Some(_)) => {
            return refuse("several volumes on its bricks, and a load that is neither open nor of threads");
        }
    }
    let Machines { clients, through, gateways_on_bricks } = cluster.machines;
    if clients > 0 && cluster.hosts.is_some() {
        return refuse("machines of clients, and processors that take time");
    }
    if clients > 0 && conditions.sharing.is_some() {
        return refuse("machines of clients, and several volumes on its bricks");
    }
    let is_one_a_brick = gateways_on_bricks && cluster.gateways as usize == cluster.bricks.len();
    if through == Through::Holders && !(is_one_a_brick && clients > 0 && cluster.groups.0.len() == 1) {
        return refuse("clients that go to holders, and bricks without a gateway each, or several volumes");
    }
    if conditions.spread.is_some() && (cluster.groups.0.len() != 1 || conditions.sharing.is_some()) {
        return refuse("a volume over all bricks, and other volumes");
    }
    if !conditions.incidents.is_empty() && release != WriteRelease::Nvram {
        return refuse("incidents, and writes that leave when disks have them: a disk may be away");
    }
    check_victims(cluster, conditions)?;
    if conditions.is_judged && Grain::of(workload, conditions) != Grain::Block {
        return refuse("checkers that watch requests of other sizes than whole blocks");
    }
    Ok(())
}

/// Whoever something happens to is there, and a gateway is left for clients.
fn check_victims(cluster: &Cluster, conditions: &Conditions) -> Result<(), TimedError> {
    let refuse = |why: String| Err(TimedError::Conditions(why));
    let mut killed = BTreeSet::new();
    for (_, victim) in &conditions.incidents {
        match *victim {
            Victim::Brick(brick, _) if !is_grouped(cluster, brick) => {
                return refuse(format!("an incident at brick {brick}, which is in no group"));
            }
            Victim::Gateway(gateway) if gateway >= cluster.gateways => {
                return refuse(format!("an incident at gateway {gateway}, which does not exist"));
            }
            Victim::Gateway(gateway) => _ = killed.insert(gateway),
            Victim::Brick(..) => {}
        }
    }
    if killed.len() == cluster.gateways as usize {
        return refuse("all gateways killed: nobody is left to ask".to_owned());
    }
    if !killed.is_empty() && conditions.sharing.is_some() {
        return refuse("a gateway killed, and volumes that are asked through some gateways only".to_owned());
    }
    Ok(())
}

/// When a write leaves the loop; there is none to leave where requests come whatever became of those before.
fn write_release(cluster: &Cluster, workload: &Workload) -> WriteRelease {
    match workload {
        Workload::Closed { .. } | Workload::Replayed { .. } => cluster.write_release,
        Workload::Open { .. } | Workload::Threads(_) | Workload::Stream(_) => WriteRelease::Nvram,
    }
}

/// Which bricks join, and what lies on them.
struct Placed {
    /// Which of the cluster's bricks is the first that joins, the second, and so on.
    order: Vec<usize>,
    /// The size of a group of bricks with the same data.
    replicas: u32,
    /// Each volume's layout and stream.
    plans: Vec<(Layout, StreamId)>,
    /// Where volumes lie, if not each on a group of its own.
    sharing: Option<Sharing>,
}

fn is_grouped(cluster: &Cluster, brick: u32) -> bool {
    cluster.groups.0.iter().any(|group| group.contains(&brick))
}

struct Timed {
    world: World,
    volumes: Vec<VolumePlan>,
    placed: Placed,
    /// Accesses at a time of each of the cluster's bricks; those in no group do not join.
    depths: Vec<u32>,
    gateways: u32,
    hosts: Option<Hosts>,
    machines: Machines,
    spread: Option<Spread>,
    /// Whether clients with machines of their own find the gateways for their requests by themselves.
    roams: bool,
    /// Nodes of clients' machines: each machine has one for each volume, and for each gateway if it keeps to it.
    clients: Vec<Vec<usize>>,
    /// The volumes' read policy, and what stands for it at each gateway where it is not as shipped.
    policy: (ReadPolicy, Vec<Shared>),
    /// What had been done when the measuring began.
    before: Done,
    events: u64,
    standings: Standings,
}

/// How often it is looked at how bricks stand.
const LOOK_NS: u64 = 100 * MS;
/// Bricks of which that is told at the most.
const LOOK_MAX: u32 = 1000;

/// What was done by some moment.
#[derive(Default)]
struct Done {
    bricks: Vec<DoneByBrick>,
    /// Answers to reads that were answered before.
    duplicates: u64,
    /// Places that moved to another home.
    moves: u64,
    worked: Worked,
}

#[derive(Clone, Copy, Default)]
struct DoneByBrick {
    served: heads::Served,
    hits: u64,
}

impl Timed {
    #[expect(clippy::too_many_lines, reason = "not cut up yet")]
    fn new(
        cluster: &Cluster,
        (policy, placed): (ReadPolicy, Placed),
        (workload, grain): (Workload, Grain),
        (length, conditions): (Length, &Conditions),
        seed: u64,
    ) -> Timed {
        let order = &placed.order;
        let sharing = placed.sharing.as_ref();
        let volumes_max = sharing.map_or(1, |sharing| sharing.volumes_on_a_brick(order.len()));
        let disk_sectors = cluster.bricks.iter().map(BrickSpec::data_sectors).min().unwrap_or(0);
        let block_sectors = grain.block_sectors();
        // Whole blocks of 4 KiB, so that a trace wraps around where it does under the ideal.
        let whole_sectors = block_sectors.max(Grain::Block.block_sectors());
        let blocks = disk_sectors / volumes_max.max(1) / whole_sectors * (whole_sectors / block_sectors);
        let unit_blocks = |layout: Layout| match layout.data() {
            1 => 1,
            _ => (conditions.unit_bytes.unwrap_or(UNIT_BYTES) / grain.block_bytes()).clamp(1, blocks),
        };
        let stripes = |layout: Layout| match &conditions.spread {
            Some(spread) => spread.stripes(layout, unit_blocks(layout)),
            None => blocks / unit_blocks(layout),
        };
        let plan = |(number, (layout, stream)): (usize, &(Layout, StreamId))| VolumePlan {
            name: format!("volume{number}"),
            writable: true,
            layout: *layout,
            read_policy: policy,
            reads: wire::Reads::default(),
            placement: conditions.spread.map_or_else(wire::Placement::default, |spread| spread.placement),
            protocol: conditions.protocol,
            stream: *stream,
            unit_blocks: unit_blocks(*layout) as u32,
            hot_stripes: stripes(*layout),
            spread: conditions.spread.map_or(1, |spread| spread.groups),
            far_stripes: 0,
            far_block: 0,
            sector_blocks: 0,
        };
        let volumes: Vec<VolumePlan> = placed.plans.iter().enumerate().map(plan).collect();
        let claims = match &cluster.scheme {
            Scheme::Claim(options) => Some(*options),
            Scheme::Policy(ReadPolicy::Claim | ReadPolicy::Usual) => Some(ClaimOptions::default()),
            _ => None,
        };
        let set = || policy::set(&cluster.scheme, &cluster.network, grain, order);
        let set: Vec<Shared> = (0..cluster.gateways).filter_map(|_| set()).collect();
        let hardware = Hardware {
            bricks: order.iter().map(|brick| cluster.bricks[*brick].clone()).collect(),
            network: cluster.network,
            buses: cluster.buses,
            claims,
            is_synchronised: cluster.synchronised,
            volumes: volumes_max,
            grain,
            replicas: placed.replicas,
            is_exclusive: cluster.exclusive,
            policy: set.first().cloned(),
        };
        let sectors_of =
            |layout: Layout| stripes(layout) * unit_blocks(layout) * u64::from(layout.data()) * block_sectors;
        let sectors = placed.plans.iter().map(|(layout, _)| sectors_of(*layout)).min().unwrap_or(0);
        let (turns, shares) =
            sharing.map_or_else(Default::default, |sharing| (sharing.turns, sharing.shares.clone()));
        let plant = conditions.plant.clone();
        let shape = Shape { turns, shares, plant, ..shape(volumes.clone(), hardware) };
        let mut world = World::new(seed, shape, Trace::new(None));
        world.plant_all();
        let draw = source::draws(seed);
        let release = write_release(cluster, &workload);
        let message_bytes = cluster.network.message_bytes;
        let mut load = Load::new(workload, length, release, (sectors, grain), message_bytes, draw);
        *load.routes() = Routes::new(cluster.machines.clients);
        let is_one_access = placed.plans.iter().all(|(layout, _)| layout.data() == 1);
        let sight = match is_one_access && conditions.spread.is_none() && placed.sharing.is_none() {
            false => Sight::Nothing,
            true if cluster.bricks.iter().all(|brick| brick.writes_through) => Sight::All,
            true => Sight::Reads,
        };
        load.see(sight, order);
        if let (Some(spread), Some((layout, _))) = (conditions.spread, placed.plans.first()) {
            load.spread_over(spread, *layout);
        }
        world.load = Some(Box::new(load));
        let depths = cluster.bricks.iter().map(|brick| brick.depth).collect();
        Timed {
            world,
            volumes,
            placed,
            depths,
            gateways: cluster.gateways,
            hosts: cluster.hosts,
            machines: cluster.machines,
            spread: conditions.spread,
            roams: conditions.protocol.path.is_of_bricks(),
            clients: vec![Vec::new(); cluster.machines.clients as usize],
            policy: (policy, set),
            before: Done::default(),
            events: 0,
            standings: Standings::default(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "not cut up yet")]
    fn run(mut self, scheme: &'static str, conditions: &Conditions) -> Result<Lived, TimedError> {
        if !conditions.is_judged {
            self.world.watch_no_more();
        }
        self.set_up()?;
        self.place_nodes();
        if let Some(hosts) = self.hosts {
            self.world.start_hosts(hosts);
        }
        let now = Time(self.world.time.now_ns());
        self.schedule(now, conditions);
        self.world.nodes.iter().for_each(|node| node.begin_speeds(now.0));
        let began = now;
        let events = self.load().begin(now, conditions);
        events.into_iter().for_each(|(at, what)| self.world.time.at(at.0, Event::Load(what)));
        self.before = self.done();
        if conditions.counts_crossings.is_some() {
            self.count();
        }
        let (mut count_at, mut look_at) = (None, now);
        while !self.load().is_over() && self.world.judges.are_content() {
            let Some(event) = self.world.next_event() else { break };
            self.events += 1;
            self.world.on_event(event);
            let now = Time(self.world.time.now_ns());
            if conditions.watches_bricks && now >= look_at {
                look_at = Time(now.0 + LOOK_NS);
                self.look_at_bricks(now.since(began));
            }
            if let Some(why) = self.load().stalled(now) {
                return Err(TimedError::Failed(why));
            }
            if self.load().take_warm() {
                self.warmed_up();
                // What was asked before is over then, with all that follows on an answer.
                count_at = conditions.counts_crossings.map(|quiet| now + quiet / 2);
            }
            if count_at.is_some_and(|at| now >= at) {
                count_at = None;
                self.count();
            }
        }
        if let Some(why) = self.load().take_refused() {
            return Err(TimedError::Failed(why));
        }
        let verdict = self.load().judge();
        self.world.judge(verdict);
        let (windows, violation) = (self.load().windows(), self.world.judges.take_violation());
        let now = Time(self.world.time.now_ns());
        if conditions.watches_bricks {
            self.look_at_bricks(now.since(began));
        }
        let standings = core::mem::take(&mut self.standings);
        let (served, lost) = (self.load().served(now), self.load().lost());
        let worked = self.worked().since(&self.before.worked);
        let done = self.done();
        let crossings = match conditions.counts_crossings {
            Some(quiet) => {
                self.world.run_until((now + quiet).0);
                self.crossings()?
            }
            None => Crossings::default(),
        };
        Ok(Lived {
            measured: self.finish(scheme, (now, done)),
            windows,
            served,
            lost,
            violation,
            standings,
            worked,
            crossings,
        })
    }

    /// Sees what the directory says of bricks, as if an operator had asked: nobody in the world notices.
    fn look_at_bricks(&mut self, after: Duration) {
        let node = self.world.nodes.slot(NodeId::Directory).map(|node| &self.world.nodes[node]);
        let Some((node, directory)) = node.and_then(|node| Some((node, node.directory()?))) else { return };
        let now = node.local(self.world.time.now_ns());
        self.standings.look(after, &directory.status(now, StatusPart::Summary { most: LOOK_MAX }));
    }

    /// Counts what crosses memories from now on.
    fn count(&mut self) {
        self.world.physics.wires().expect("a world in which things take time").count();
    }

    /// What happens to bricks and gateways, from now on.
    fn schedule(&mut self, now: Time, conditions: &Conditions) {
        let gateways = self.world.nodes.matching(|node| matches!(node.kind(), Kind::Gateway(..)));
        for &(after, victim) in &conditions.incidents {
            let event = match victim {
                Victim::Brick(brick, incident) => {
                    let number = self.placed.order.iter().position(|at| *at == brick as usize);
                    let id = number.map(|number| NodeId::Brick(BrickId(number as u32 + 1)));
                    let node = id.and_then(|id| self.world.nodes.slot(id));
                    node.map(|node| LoadEvent::Incident { node, incident })
                }
                Victim::Gateway(gateway) => {
                    Some(LoadEvent::GatewayKilled { node: gateways[gateway as usize] })
                }
            };
            if let Some(event) = event {
                self.world.time.at((now + after).0, Event::Load(event));
            }
        }
    }

    fn load(&mut self) -> &mut Load {
        self.world.load.as_mut().expect("it has a load")
    }

    /// Directory, gateway, and group by group the bricks and their volume. The bricks of a group join when those of others are
    /// full already, so that the directory puts the volume nowhere else.
    fn set_up(&mut self) -> Result<(), TimedError> {
        let failed = |violation: Violation| TimedError::Failed(violation.to_string());
        self.world.add_directory();
        // The first brick that joins has the first id.
        let beside = |at: u32| self.machines.gateways_on_bricks.then_some(BrickId(at + 1));
        let places: Vec<Option<BrickId>> = (0..self.gateways).map(beside).collect();
        let gateways: Vec<usize> = places.into_iter().map(|place| self.world.add_gateway(place)).collect();
        gateways.iter().for_each(|gateway| self.world.boot(*gateway));
        let (name, set) = &self.policy;
        for (gateway, set) in gateways.iter().zip(set) {
            let machine = self.world.nodes[*gateway].gateway_mut().expect("a gateway that was just started");
            machine.set_policy(*name, Box::new(set.clone()));
        }
        if let Some(sharing) = self.placed.sharing.clone() {
            self.set_up_sharing(&gateways, &sharing)?;
            return self.world.set_care().map_err(failed);
        }
        let holders = self.placed.replicas;
        for (number, plan) in (0..).zip(self.volumes.clone()) {
            let first = self.world.shape.bricks;
            self.world.shape.bricks += holders;
            let nonces = u64::from(first) + 1..=u64::from(self.world.shape.bricks);
            self.world.add_bricks(nonces).map_err(failed)?;
            self.world.await_bricks().map_err(failed)?;
            self.world.create_volume(&plan).map_err(failed)?;
            // All of them, also those whose disks a first write of a coded volume leaves out.
            for brick in first..self.world.shape.bricks {
                let slot = self.world.nodes.slot(NodeId::Brick(BrickId(brick + 1)));
                let slot = slot.expect("a brick that was just started");
                self.world.nodes[slot].close_shelves(true);
            }
            let holders = self.spread.map_or(holders, |_| u32::from(plan.layout.copies()));
            self.open((number, holders), &plan.name, &gateways)?;
            if self.machines.through == Through::Holders {
                let map = self.map_of(plan.name)?;
                self.load().routes().go_to_holders(&map, plan.layout);
            }
        }
        self.world.set_care().map_err(failed)
    }

    /// Opens a group's volume for its clients, and waits until the volume is written, and the directory knows that its disks are full.
    fn open(
        &mut self,
        (group, holders): (u32, u32),
        name: &str,
        gateways: &[usize],
    ) -> Result<(), TimedError> {
        let mut ports = Vec::new();
        for (at, node) in (0..).zip(gateways) {
            let door = Door::Session { session: u64::from(group * self.gateways + at), volume: None };
            ports.push(Port { node: *node, door, holders });
        }
        if self.machines.clients > 0 {
            let machines = 0..self.machines.clients;
            let nodes: Vec<usize> = match (self.roams, self.machines.through) {
                (true, _) => machines.map(|machine| self.attach(machine, None, name)).collect(),
                (false, Through::One) => {
                    let first = |machine: u32| gateways[machine as usize % gateways.len()];
                    machines.map(|machine| self.attach(machine, Some(first(machine)), name)).collect()
                }
                (false, Through::All | Through::Holders) => {
                    let ends =
                        machines.flat_map(|machine| gateways.iter().map(move |at| (machine, Some(*at))));
                    ends.map(|(machine, gateway)| self.attach(machine, gateway, name)).collect()
                }
            };
            let door = Door::Attached { is_open: false };
            ports = nodes.into_iter().map(|node| Port { node, door, holders }).collect();
        }
        self.load().add_ports(ports.clone());
        for Port { node, door, .. } in ports {
            match door {
                Door::Session { session, .. } => {
                    self.world.deliver(node, Input::Open { session, name: name.to_owned() });
                }
                Door::Attached { .. } => self.world.boot(node),
            }
        }
        self.wait(10 * SECOND, "no gateway opened the volume", Load::is_open)?;
        self.world.write_to_name(group);
        self.wait(10 * SECOND, "a volume was written, and no disk heard of it", Load::has_names)?;
        self.world.run_until(self.world.time.now_ns() + 3 * SECOND);
        Ok(())
    }

    /// A client on a machine, which does not run yet, and will be attached to this gateway alone while that one lives, if to any.
    fn attach(&mut self, machine: u32, gateway: Option<usize>, volume: &str) -> usize {
        let node = self.world.add_client(volume.to_owned());
        if let Some(gateway) = gateway {
            let gateway = self.world.nodes[gateway].id();
            self.world.nodes[node].keep_to(gateway);
        }
        self.clients[machine as usize].push(node);
        node
    }

    /// Who stands on whose machine, from now on.
    fn place_nodes(&mut self) {
        if self.machines == Machines::default() {
            return;
        }
        let gateways = self.world.nodes.matching(|node| matches!(node.kind(), Kind::Gateway(..)));
        let bricks = self.world.nodes.matching(|node| matches!(node.kind(), Kind::Brick(_)));
        let wires = self.world.physics.wires().expect("a world in which things take time");
        let mut machines = Vec::new();
        for nodes in self.clients.iter().filter(|nodes| !nodes.is_empty()) {
            nodes.iter().for_each(|node| wires.settle_at(*node, nodes[0]));
            machines.push(nodes[0]);
        }
        match self.machines.gateways_on_bricks {
            true => {
                gateways.iter().zip(&bricks).for_each(|(gateway, brick)| wires.settle_at(*gateway, *brick))
            }
            false if machines.is_empty() => machines = gateways,
            false => {}
        }
        wires.name_clients(machines);
    }

    fn map_of(&mut self, name: String) -> Result<Box<wire::VolumeMap>, TimedError> {
        let map = self.world.map_of(name).map(Box::new);
        map.ok_or_else(|| TimedError::Failed("the directory answers no more".to_owned()))
    }

    /// What crossed memories since it is counted.
    fn crossings(&mut self) -> Result<Crossings, TimedError> {
        let names: Vec<String> = self.volumes.iter().map(|plan| plan.name.clone()).collect();
        let mut members = Vec::new();
        for name in names {
            let map = self.map_of(name)?;
            let brick = |brick: &BrickId| self.placed.order[brick.0 as usize - 1] as u32;
            members.push(
                map.groups.first().map_or_else(Vec::new, |view| view.members.iter().map(brick).collect()),
            );
        }
        let mut crossings = Crossings { members, ..Crossings::default() };
        crossings.bricks = vec![Crossed::default(); self.depths.len()];
        let nodes = 0..self.world.nodes.len();
        let kinds: Vec<(usize, Kind)> =
            nodes.map(|node| (node, self.world.nodes[node].kind().clone())).collect();
        let wires = self.world.physics.wires().expect("a world in which things take time");
        for (node, kind) in kinds {
            let crossed = wires.crossed(node);
            match kind {
                Kind::Client(..) => crossings.clients += crossed,
                Kind::Gateway(..) => crossings.gateways += crossed,
                Kind::Brick(id) => crossings.bricks[self.placed.order[id.0 as usize - 1]] += crossed,
                Kind::Directory | Kind::Operator => {}
            }
        }
        Ok(crossings)
    }

    fn wait(
        &mut self,
        within_ns: u64,
        otherwise: &str,
        is_so: impl Fn(&Load) -> bool,
    ) -> Result<(), TimedError> {
        let end_ns = self.world.time.now_ns() + within_ns;
        while !is_so(self.load()) {
            if self.world.time.now_ns() >= end_ns {
                return Err(TimedError::Failed(otherwise.to_owned()));
            }
            self.world.run_until(self.world.time.now_ns() + 10 * MS);
        }
        Ok(())
    }

    fn warmed_up(&mut self) {
        self.before = self.done();
        let now = Time(self.world.time.now_ns());
        self.load().measure_from(now);
    }

    fn done(&mut self) -> Done {
        let now_ns = self.world.time.now_ns();
        let of_brick = |number: usize| {
            let slot = self.world.nodes.slot(NodeId::Brick(BrickId(number as u32 + 1)));
            let Some(node) = slot.map(|slot| &self.world.nodes[slot]) else { return DoneByBrick::default() };
            let mut served = node.served();
            // An access counts when it begins, and its time when it passes.
            served.busy = served.busy.saturating_sub(node.ahead(now_ns));
            DoneByBrick { served, hits: node.cache_hits() }
        };
        let bricks = (0..self.placed.order.len()).map(of_brick).collect();
        let moves = self.policy.1.iter().map(|policy| policy.moves()).sum();
        Done { bricks, duplicates: self.duplicates(), moves, worked: self.worked() }
    }

    fn duplicates(&mut self) -> u64 {
        let gateways = self.world.nodes.matching(|node| matches!(node.id(), NodeId::Gateway(_)));
        gateways.into_iter().map(|node| self.world.nodes[node].duplicate_answers()).sum()
    }

    /// What processors have done until now.
    fn worked(&self) -> Worked {
        let Some(hosts) = &self.world.hosts else { return Worked::default() };
        let mut worked = Worked { clients: hosts.work(Who::Clients), ..Worked::default() };
        for node in 0..self.world.nodes.len() {
            match self.world.nodes[node].kind() {
                Kind::Brick(_) => worked.bricks.extend(&hosts.work_of_daemon(node)),
                Kind::Gateway(..) => worked.gateways.extend(&hosts.work_of_daemon(node)),
                Kind::Directory | Kind::Client(..) | Kind::Operator => {}
            }
        }
        worked
    }

    fn finish(mut self, scheme: &'static str, (now, done): (Time, Done)) -> Measured {
        let load = *self.world.load.take().expect("it has a load");
        let mut measured = load.finish(scheme, now);
        measured.events = self.events;
        measured.moves = done.moves - self.before.moves;
        measured.contention.duplicates = done.duplicates - self.before.duplicates;
        let seconds = measured.seconds;
        measured.bricks = vec![BrickMeasured { idle: 1.0, ..BrickMeasured::default() }; self.depths.len()];
        for ((at, before), after) in self.placed.order.iter().zip(&self.before.bricks).zip(&done.bricks) {
            let places = f64::from(self.depths[*at]);
            measured.bricks[*at] = brick(before, after, (seconds, places));
        }
        measured
    }
}

impl Worked {
    /// What was done since `before`.
    fn since(&self, before: &Worked) -> Worked {
        Worked {
            clients: self.clients.since(&before.clients),
            gateways: self.gateways.since(&before.gateways),
            bricks: self.bricks.since(&before.bricks),
        }
    }
}

/// What a brick did between two moments. An access counts when it begins.
fn brick(before: &DoneByBrick, after: &DoneByBrick, (seconds, places): (f64, f64)) -> BrickMeasured {
    let since = |of: fn(&heads::Served) -> u64| of(&after.served) - of(&before.served);
    let (reads, writes) = (since(|served| served.reads), since(|served| served.writes));
    let busy_s = after.served.busy.saturating_sub(before.served.busy).as_secs_f64();
    let accesses = (reads + writes) as f64;
    let choices = since(|served| served.choices);
    BrickMeasured {
        throughput_iops: accesses / seconds,
        idle: 1.0 - busy_s / places / seconds,
        service_ms: busy_s * 1e3 / accesses.max(1.0),
        reads,
        writes,
        hits: after.hits - before.hits,
        queue_seen: since(|served| served.seen) as f64 / choices.max(1) as f64,
    }
}

/// A cluster in which nothing goes wrong.
fn shape(volumes: Vec<VolumePlan>, hardware: Hardware) -> Shape {
    Shape {
        bricks: 0,
        gateways: 1,
        disks: Disks {
            per_brick: 1,
            model: DiskConfig { bytes: 0, read_ns: 0, write_ns: 0, flush_ns: 0 },
            journal_bytes: 0,
            cache_bytes: 0,
            limits: store::Limits::default(),
            map: store::MapUse::Trusted,
            are_small: false,
        },
        volumes,
        // A client that is attached has as many requests outstanding as come.
        load: Clients { clients: 0, actors: 0, window: usize::MAX, operations: 1 },
        phases: Phases { safety_ns: 0, liveness_ns: 0 },
        upkeep: Upkeep {
            rebuild_after_s: 86_400,
            rebuild_bytes_per_second: wire::Care::default().rebuild_bytes_per_second,
            scrub_interval_s: 0,
        },
        clocks: Clocks::exact(Date::EPOCH),
        bounds: Bounds::USUAL,
        turns: Turns::default(),
        shares: Shares::default(),
        intrigues: Intrigues::default(),
        faults: false,
        objects: false,
        plant: None,
        hardware: Some(Rc::new(hardware)),
    }
}
