//! What a description of the laboratory is to real daemons, and to the simulator: the same.
//!
//! What daemons on one machine cannot be is refused by name: several groups, bricks that are not alike, a network that is not this
//! machine's. Requests are rounded out to whole blocks, as every block is checked.

use super::asked::{Asked, List, OUTSTANDING_MOST};
use super::bed::{Bed, Folder, Setting, Spent};
use super::load::{Client, Lateness};
use crate::config::Bytes;
use anyhow::{Context, Result, bail, ensure};
use base::SECTOR_BYTES;
use lab::system::{DRIVES_BETWEEN, Load, System};
use model::drive::DriveOptions;
use model::host::Work;
use rules::heads::Policy;
use sim::timed::{
    self, BrickSpec, Buses, Conditions, Incident, Length, Lived, Scheme, Victim, Window, Worked, WriteRelease,
};
use std::time::{Duration, Instant};
use wire::ReadPolicy;

/// Bytes of the volume on each brick, where the description does not say how many.
const SHARE: u64 = 128 << 20;
const SHARE_MOST: u64 = 1 << 30;
/// Bytes of all bricks together: files are in memory.
const ALL_MOST: u64 = 8 << 30;
/// The drive that is a file in memory, and has no time of its own.
const MEMORY: &str = "ram-disk";
/// How long a cluster takes at the most to be steady again after something happened to a brick.
const STEADY: Duration = Duration::from_secs(5);
/// A first look at how fast the prediction is.
const LOOK: Length = Length { warmup: 2_000, requests: 6_000 };
/// As many as there are.
const ALL: Length = Length { warmup: 0, requests: u64::MAX };
/// More requests a second than any machine answers.
const RATE_MOST: f64 = 1e7;
/// Runs over which a prediction is averaged.
const RUNS: u64 = 3;
/// Of requests that are all due before a whole run would be over, this part warms up.
const WARM_UP_PART: u32 = 6;

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) warm_up: Duration,
    pub(super) measure: Duration,
}

/// What clients saw, and what a request cost.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) requests_per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Microseconds of processors a request.
    pub(super) spent: Spent,
    /// What clients saw from interval to interval, where the description asks for it.
    pub(super) windows: Vec<Window>,
    /// How late real clients sent what was due.
    pub(super) lateness: Lateness,
}

/// A prediction, and what it took to make it.
#[derive(Clone, Debug, Default)]
pub(super) struct Predicted {
    pub(super) figures: Figures,
    /// The work of one request.
    pub(super) worked: Worked,
    pub(super) simulated_s: f64,
    pub(super) events: u64,
}

/// A description that can run on daemons.
#[derive(Clone)]
pub(super) struct Described {
    system: System,
    pub(super) setting: Setting,
    policy: ReadPolicy,
    pub(super) asked: Asked,
    brick: BrickSpec,
    /// How each brick's drive chooses what is next.
    heads: Vec<&'static str>,
    /// The drive of each brick.
    drives: Vec<String>,
}

impl Described {
    /// What runs so long, and whose requests are drawn from `seed`.
    #[expect(clippy::too_many_lines, reason = "not cut up yet")]
    pub(super) fn new(mut system: System, times: &Times, seed: u64) -> Result<Described> {
        // As gateways have it, and not with the settings of a study.
        let policy = policy(&system.cluster.scheme)?;
        system.cluster.scheme = Scheme::Policy(policy);
        // Bricks keep what they wrote in their caches; that one holder alone does is a study's.
        system.cluster.exclusive = false;
        let share = system.cluster.bricks.first().and_then(|brick| brick.data_bytes).unwrap_or(SHARE);
        ensure!(
            share <= SHARE_MOST && share * system.cluster.bricks.len() as u64 <= ALL_MOST,
            "--live has brick.data_bytes of {SHARE_MOST} at most, and {ALL_MOST} on all bricks: files are in memory"
        );
        system.cluster.bricks.iter_mut().for_each(|brick| brick.data_bytes = Some(share));
        let cluster = &system.cluster;
        ensure!(
            cluster.network.bytes_per_second.is_none(),
            "--live has the network of this machine: without cluster.megabytes_per_second"
        );
        ensure!(
            cluster.buses == Buses::default(),
            "--live has the buses of this machine, and its processors compute parity: without cluster.memory_megabytes_per_second, \
             cluster.io_megabytes_per_second and cluster.xor_megabytes_per_second"
        );
        ensure!(
            cluster.hosts.is_none_or(|hosts| hosts.is_shared),
            "--live runs everything on this machine: processors.shared must be true"
        );
        check_incidents(&system.conditions.incidents)?;
        let [group] = cluster.groups.0.as_slice() else {
            bail!("--live has one group: cluster.replicas must be cluster.bricks");
        };
        ensure!(group.len() == cluster.bricks.len(), "--live has one group of all bricks");
        let Conditions { window, end, .. } = system.conditions;
        ensure!(
            window.is_zero() != end.is_some(),
            "--live over time needs both show.window_s and length.seconds, and without it neither"
        );
        let drives = drives(&system)?;
        let layout = match system.conditions.layout {
            Some(layout) => layout,
            None => format!("raid1x{}", group.len()).parse()?,
        };
        if let Load::Threads(threads) = &system.load {
            ensure!(
                threads.count.len() == 1 || end.is_some(),
                "--live of threads that come and go needs both show.window_s and length.seconds"
            );
        }
        let is_closed = matches!(system.load, Load::Closed { .. });
        ensure!(
            !is_closed || cluster.write_release == WriteRelease::Nvram,
            "clients of daemons go on when a write is acknowledged: cluster.write_release must be nvram"
        );
        let brick = cluster.bricks[0].clone();
        let are_files = drives.iter().filter(|name| *name == MEMORY).count();
        ensure!(
            are_files == 0 || are_files == drives.len(),
            "--live has a {MEMORY} in all bricks or in none: the others would wait for drives that do not come"
        );
        for (spec, name) in cluster.bricks.iter().zip(&drives) {
            let is_slow_throughout = matches!(spec.speed.as_slice(), [] | [(base::Time::ZERO, _)]);
            ensure!(
                is_slow_throughout,
                "--live has bricks that are slow from the beginning to the end, or not at all"
            );
            ensure!(
                name != MEMORY || spec.speed.is_empty(),
                "a {MEMORY} has no time of its own that could be slower"
            );
        }
        let setting = Setting {
            bricks: group.len() as u32,
            gateways: cluster.gateways,
            layout: layout.to_string(),
            volume: Bytes(share * u64::from(layout.data())),
            cache: Bytes(brick.cache_bytes),
        };
        let Times { warm_up, measure } = steady(&system.conditions, times);
        let end = end.unwrap_or(warm_up + measure);
        let asked = Asked::new(&system.load, setting.volume.0 / SECTOR_BYTES, end, seed)?;
        ensure!(cluster.gateways <= asked.outstanding(), "there are more gateways than requests outstanding");
        if let Asked::List(List { length, .. }) = asked {
            ensure!(
                system.conditions.incidents.is_empty() || length == end,
                "what happens to bricks takes {:.0} s, and the requests of [workload] end after {:.1} s",
                end.as_secs_f64(),
                length.as_secs_f64()
            );
        }
        let heads = cluster.bricks.iter().map(|brick| heads(brick.policy)).collect::<Result<_>>()?;
        system.conditions.are_blocks = true;
        system.conditions.outstanding_max = Some(OUTSTANDING_MOST);
        Ok(Described { policy, asked, brick, heads, drives, setting, system })
    }

    /// The same with other processors.
    pub(super) fn on(mut self, hosts: timed::Hosts) -> Described {
        self.system.cluster.hosts = Some(hosts);
        self
    }

    pub(super) fn has_processors(&self) -> bool {
        self.system.cluster.hosts.is_some()
    }

    /// Predicts. `seed` and the next ones are drawn from.
    pub(super) fn predict(&self, times: &Times, seed: u64) -> Result<Predicted> {
        if self.is_over_time() {
            return Ok(self.predicted(&[self.simulate(ALL, None, seed)?], times));
        }
        let Times { warm_up, measure } = self.times(times);
        let look = match self.asked {
            Asked::Loop(_) => self.simulate(LOOK, None, seed)?,
            Asked::List(_) => self.simulate(ALL, Some(warm_up), seed)?,
        };
        let per_second = look.measured.requests_per_second();
        ensure!(
            per_second < RATE_MOST,
            "nothing that was described takes time: more than {RATE_MOST} requests a second are predicted"
        );
        let requests = |time: Duration| (per_second * time.as_secs_f64()).round() as u64;
        let (warmup, requests, end) = match self.asked {
            Asked::Loop(_) => (requests(warm_up), requests(measure).max(1_000), None),
            Asked::List(_) => (look.measured.answered.requests, ALL.requests, Some(warm_up + measure)),
        };
        let length = Length { warmup, requests };
        let runs = (1..=RUNS).map(|more| self.simulate(length, end, seed.wrapping_add(more)));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let mut predicted = self.predicted(&runs, times);
        (predicted.simulated_s, predicted.events) =
            (predicted.simulated_s + look.measured.simulated_s, predicted.events + look.measured.events);
        Ok(predicted)
    }

    /// Whether what clients see over time is asked for, from the beginning of the load.
    fn is_over_time(&self) -> bool {
        !self.system.conditions.window.is_zero()
    }

    /// The means of these runs, and the intervals of the first.
    fn predicted(&self, runs: &[Lived], times: &Times) -> Predicted {
        let mean = |of: &dyn Fn(&Lived) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let requests = runs.iter().map(|run| run.measured.answered.requests as f64).sum::<f64>();
        let mut worked = Worked::default();
        for run in runs {
            worked.clients.extend(&run.worked.clients);
            worked.gateways.extend(&run.worked.gateways);
            worked.bricks.extend(&run.worked.bricks);
        }
        let a_request = |work: Work| Work(work.0.map(|count| count / requests.max(1.0)));
        let worked = Worked {
            clients: a_request(worked.clients),
            gateways: a_request(worked.gateways),
            bricks: a_request(worked.bricks),
        };
        let us = |work: &Work| self.system.cluster.hosts.map_or(0.0, |hosts| hosts.costs.ns_of(work) / 1e3);
        let figures = Figures {
            requests_per_second: mean(&|run| match self.asked {
                Asked::Loop(_) => run.measured.requests_per_second(),
                Asked::List(_) => {
                    let last = Duration::from_secs_f64(run.measured.simulated_s);
                    run.measured.answered.requests as f64 / self.seconds(times, last)
                }
            }),
            p50_ms: mean(&|run| run.measured.answered.response.p50_ms),
            p99_ms: mean(&|run| run.measured.answered.response.p99_ms),
            spent: Spent {
                clients: us(&worked.clients),
                gateways: us(&worked.gateways),
                bricks: us(&worked.bricks),
            },
            windows: runs.first().map_or_else(Vec::new, |run| run.windows.clone()),
            lateness: Lateness::default(),
        };
        Predicted {
            figures,
            worked,
            simulated_s: runs.iter().map(|run| run.measured.simulated_s).sum(),
            events: runs.iter().map(|run| run.measured.events).sum(),
        }
    }

    /// The load ends at `end` at the latest, or when the description says.
    fn simulate(&self, length: Length, end: Option<Duration>, seed: u64) -> Result<Lived> {
        let System { cluster, conditions, .. } = &self.system;
        let conditions = Conditions { end: end.or(conditions.end), ..conditions.clone() };
        Ok(timed::live_through(cluster, self.asked.workload(), length, &conditions, seed)?)
    }

    /// Long enough after the last thing that happens to a brick; of few requests, a part warms up.
    fn times(&self, times: &Times) -> Times {
        let times = steady(&self.system.conditions, times);
        match &self.asked {
            Asked::List(List { length, .. }) if *length < times.warm_up + times.measure => {
                Times { warm_up: times.warm_up.min(*length / WARM_UP_PART), ..times }
            }
            _ => times,
        }
    }

    /// For how long it is measured: until the last answer where all requests are over before.
    fn seconds(&self, times: &Times, last: Duration) -> f64 {
        let Times { warm_up, measure } = self.times(times);
        let (from, end) = match self.system.conditions.end {
            Some(end) => (Duration::ZERO, end),
            None => (warm_up, warm_up + measure),
        };
        let is_over_before = matches!(&self.asked, Asked::List(List { length, .. }) if *length < end);
        let until = if is_over_before { last.min(end) } else { end };
        until.saturating_sub(from).as_secs_f64().max(1e-9)
    }

    /// Measures it on a cluster of its own.
    pub(super) fn measure(&self, times: &Times, folder: &Folder) -> Result<Figures> {
        let mut bed = Bed::start(&self.setting, folder)?;
        bed.fill()?;
        self.measure_on(&mut bed, times)
    }

    /// Measures it on a cluster that has its setting, and is filled.
    pub(super) fn measure_on(&self, bed: &mut Bed, times: &Times) -> Result<Figures> {
        bed.read_by(self.policy)?;
        bed.emulate(|brick| self.emulation(brick))?;
        bed.await_drives(self.drives.iter().all(|drive| drive != MEMORY))?;
        let endpoints: Vec<String> =
            (0..self.setting.gateways).map(|gateway| bed.endpoint(gateway as usize)).collect();
        let client = Client::start(&self.asked, &endpoints)?;
        let result = self.watch(&client, bed, &self.times(times));
        let seen = client.stop();
        let spent = result?;
        let mut seen = seen?;
        let [p50_ms, p99_ms] = seen.percentiles_ms([0.5, 0.99]);
        let requests = seen.requests();
        ensure!(requests > 0.0, "no request was answered while it was measured");
        let spent = spent.since(Spent::default(), requests);
        let Conditions { window, end, .. } = self.system.conditions;
        let windows = match end {
            Some(end) if self.is_over_time() => seen.windows(window, end),
            _ => Vec::new(),
        };
        let requests_per_second = requests / self.seconds(times, seen.last());
        let lateness = seen.lateness;
        Ok(Figures { requests_per_second, p50_ms, p99_ms, spent, windows, lateness })
    }

    /// Warms up, lets happen what is to happen, and measures: what was spent meanwhile.
    fn watch(&self, client: &Client, bed: &mut Bed, times: &Times) -> Result<Spent> {
        let began = Instant::now();
        let (before, is_over_time) = (bed.spent(), self.is_over_time());
        client.measure(is_over_time);
        let mut incidents: Vec<(Duration, Victim)> = self.system.conditions.incidents.clone();
        incidents.sort_by_key(|(at, _)| *at);
        for (at, victim) in incidents {
            let (brick, incident) = at_brick(victim)?;
            client.sleep(at.saturating_sub(began.elapsed()));
            bed.befall(brick, incident).with_context(|| format!("brick {brick}: {incident:?}"))?;
        }
        if let (true, Some(end)) = (is_over_time, self.system.conditions.end) {
            client.sleep(end.saturating_sub(began.elapsed()));
            client.measure(false);
            return Ok(bed.spent().since(before, 1.0));
        }
        client.sleep(times.warm_up.saturating_sub(began.elapsed()));
        let before = bed.spent();
        client.measure(true);
        client.sleep(times.measure);
        client.measure(false);
        Ok(bed.spent().since(before, 1.0))
    }

    /// What a brick, counted from 0, reads of its drive.
    fn emulation(&self, brick: u32) -> String {
        let (drive, heads) = (&self.drives[brick as usize], self.heads[brick as usize]);
        if drive == MEMORY {
            return String::new();
        }
        let parts = match self.brick.options {
            DriveOptions::FULL => "full",
            DriveOptions::MECHANICS => "mechanics",
            _ => "uncached",
        };
        let speed = &self.system.cluster.bricks[brick as usize].speed;
        let slow_percent = speed.first().map_or(100, |(_, percent)| *percent);
        format!(
            "[drive]\nmodel = \"{drive}\"\nheads = \"{heads}\"\nparts = \"{parts}\"\nslow_percent = {slow_percent}\n\
             claim_one_way_us = {}\nnvram_bytes = {}\ndata_bytes = {}\n",
            self.system.cluster.network.one_way_ns / 1_000,
            self.brick.journal_bytes,
            self.brick.data_bytes.unwrap_or(SHARE),
        )
    }
}

/// The name of each brick's drive.
fn drives(system: &System) -> Result<Vec<String>> {
    let name = |drive: &str| drive.split_once(' ').map_or(drive, |(name, _)| name).to_owned();
    let mut names: Vec<String> = system.drives.split(DRIVES_BETWEEN).map(name).collect();
    if let [name] = names.as_slice() {
        names = vec![name.clone(); system.cluster.bricks.len()];
    }
    for name in &names {
        ensure!(
            model::drive::find(name).is_some(),
            "--live has drives of the library only, and {name} is a file: bricks would have to find it"
        );
    }
    Ok(names)
}

/// Long enough after the last thing that happens to a brick.
fn steady(conditions: &Conditions, times: &Times) -> Times {
    let last = conditions.incidents.iter().map(|(at, ..)| *at + STEADY).max();
    Times { warm_up: times.warm_up.max(last.unwrap_or_default()), ..*times }
}

/// Bricks are killed while they run, started while they do not, and go on while they stand still. Nothing happens to gateways.
fn check_incidents(incidents: &[(Duration, Victim)]) -> Result<()> {
    let each = |(at, victim): &(Duration, Victim)| at_brick(*victim).map(|(brick, what)| (*at, brick, what));
    let mut incidents = incidents.iter().map(each).collect::<Result<Vec<_>>>()?;
    incidents.sort_by_key(|(at, brick, _)| (*brick, *at));
    for of_brick in incidents.chunk_by(|(_, brick, _), (_, other, _)| brick == other) {
        let mut last = Incident::Started;
        for (at, brick, incident) in of_brick {
            let fits = match incident {
                Incident::Started => last == Incident::Killed,
                Incident::Continued => last == Incident::Stopped,
                Incident::Killed | Incident::Stopped => {
                    matches!(last, Incident::Started | Incident::Continued)
                }
            };
            ensure!(fits, "brick {brick} cannot be {incident:?} at {:.1} s", at.as_secs_f64());
            last = *incident;
        }
    }
    Ok(())
}

fn at_brick(victim: Victim) -> Result<(u32, Incident)> {
    match victim {
        Victim::Brick(brick, incident) => Ok((brick, incident)),
        Victim::Gateway(gateway) => bail!("--live kills bricks only, and gateway {gateway} is to be killed"),
    }
}

fn heads(policy: Policy) -> Result<&'static str> {
    Ok(match policy {
        Policy::Fcfs => "fcfs",
        Policy::Sstf => "sstf",
        Policy::Clook => "clook",
        Policy::Sptf => "sptf",
        Policy::AgedSptf { .. } => bail!("--live has no aged sptf"),
    })
}

fn policy(scheme: &Scheme) -> Result<ReadPolicy> {
    match scheme {
        Scheme::Policy(policy) => Ok(*policy),
        Scheme::Central | Scheme::WeightedHash(_) => bail!("--live has no policy '{}'", scheme.name()),
        other => Ok(other.name().parse()?),
    }
}
