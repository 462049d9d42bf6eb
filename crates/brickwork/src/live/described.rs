//! What a description of the laboratory is to real daemons, and to the simulator: the same.
//!
//! What daemons on one machine cannot be is refused by name: several groups, bricks that are not alike, traces, requests of parts
//! of blocks.

use super::bed::{Bed, Folder, Setting, Spent};
use super::load::{Asked, Client};
use crate::config::Bytes;
use anyhow::{Context, Result, bail, ensure};
use base::BLOCK_U64;
use lab::system::{Load, System};
use model::drive::DriveOptions;
use model::host::Work;
use proto::heads::Policy;
use sim::timed::{
    self, BrickSpec, Conditions, Incident, Length, Lived, Locality, Scheme, Sizes, Window, Worked, Workload,
    WriteRelease,
};
use std::time::{Duration, Instant};
use wire::ReadPolicy;

/// Bytes of the volume on each brick, where the description does not say how many.
const SHARE: u64 = 128 << 20;
const SHARE_MOST: u64 = 1 << 30;
/// Bytes of all bricks together: files are in memory.
const ALL_MOST: u64 = 8 << 30;
/// What every NBD client may ask for at a time: 1 MiB.
const REQUEST_BLOCKS_MOST: u64 = 256;
/// The drive that is a file in memory, and has no time of its own.
const MEMORY: &str = "ram-disk";
/// How long a cluster takes at the most to be steady again after something happened to a brick.
const STEADY: Duration = Duration::from_secs(5);
/// A first look at how fast the prediction is.
const LOOK: Length = Length { warmup: 2_000, requests: 6_000 };
/// More requests a second than any machine answers.
const RATE_MOST: f64 = 1e7;
/// Runs over which a prediction is averaged.
const RUNS: u64 = 3;

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
    asked: Asked,
    brick: BrickSpec,
    /// How its drive chooses what is next.
    heads: &'static str,
    drive: String,
}

impl Described {
    pub(super) fn new(mut system: System) -> Result<Described> {
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
        let Load::Closed { outstanding, mix } = &system.load else {
            bail!("--live has closed loops only: workload.kind = \"closed\"");
        };
        ensure!(
            mix.locality == Locality::Uniform,
            "--live asks for all places alike: without workload.mix.hot_share"
        );
        ensure!(
            cluster.network.bytes_per_second.is_none(),
            "--live has the network of this machine: without cluster.megabytes_per_second"
        );
        ensure!(
            cluster.hosts.is_none_or(|hosts| hosts.is_shared),
            "--live runs everything on this machine: processors.shared must be true"
        );
        ensure!(cluster.gateways <= *outstanding, "there are more gateways than requests outstanding");
        check_incidents(&system.conditions.incidents)?;
        let Sizes::Blocks(request_blocks) = mix.sizes else {
            bail!("--live asks for whole blocks only: workload.mix.bytes must be a multiple of {BLOCK_U64}");
        };
        let [group] = cluster.groups.0.as_slice() else {
            bail!("--live has one group: cluster.replicas must be cluster.bricks");
        };
        ensure!(group.len() == cluster.bricks.len(), "--live has one group of all bricks");
        let Conditions { window, end, .. } = system.conditions;
        ensure!(
            window.is_zero() != end.is_some(),
            "--live over time needs both show.window_s and length.seconds, and without it neither"
        );
        let (name, _) = system.drives.split_once(' ').unwrap_or((&system.drives, ""));
        ensure!(
            model::drive::find(name).is_some(),
            "--live has drives of the library only, and {name} is a file: bricks would have to find it"
        );
        let layout = match system.conditions.layout {
            Some(layout) => layout,
            None => format!("raid1x{}", group.len()).parse()?,
        };
        let is_nvram = cluster.write_release == WriteRelease::Nvram;
        ensure!(
            is_nvram,
            "clients of daemons go on when a write is acknowledged: cluster.write_release must be nvram"
        );
        let brick = cluster.bricks[0].clone();
        for spec in &cluster.bricks {
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
        let blocks = setting.volume.0 / BLOCK_U64;
        ensure!(
            u64::from(request_blocks) <= blocks.min(REQUEST_BLOCKS_MOST),
            "workload.mix.bytes is more than {} or than the volume has",
            REQUEST_BLOCKS_MOST * BLOCK_U64
        );
        let asked = Asked { seed: 1, blocks, request_blocks, reads: mix.reads, outstanding: *outstanding };
        let (heads, drive) = (heads(brick.policy)?, name.to_owned());
        Ok(Described { policy, asked, brick, heads, drive, setting, system })
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
            return self.predict_once(seed);
        }
        let look = self.simulate(LOOK, seed)?;
        let per_second = look.measured.requests_per_second();
        ensure!(
            per_second < RATE_MOST,
            "nothing that was described takes time: more than {RATE_MOST} requests a second are predicted"
        );
        let requests = |time: Duration| (per_second * time.as_secs_f64()).round() as u64;
        let Times { warm_up, measure } = self.times(times);
        let length = Length { warmup: requests(warm_up), requests: requests(measure).max(1_000) };
        let runs = (1..=RUNS).map(|more| self.simulate(length, seed.wrapping_add(more)));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let mut predicted = self.predicted(&runs);
        (predicted.simulated_s, predicted.events) =
            (predicted.simulated_s + look.measured.simulated_s, predicted.events + look.measured.events);
        Ok(predicted)
    }

    /// One run from the beginning to the end that the description has.
    fn predict_once(&self, seed: u64) -> Result<Predicted> {
        Ok(self.predicted(&[self.simulate(self.system.length, seed)?]))
    }

    /// Whether what clients see over time is asked for, from the beginning of the load.
    fn is_over_time(&self) -> bool {
        !self.system.conditions.window.is_zero()
    }

    /// The means of these runs, and the intervals of the first.
    fn predicted(&self, runs: &[Lived]) -> Predicted {
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
            requests_per_second: mean(&|run| run.measured.requests_per_second()),
            p50_ms: mean(&|run| run.measured.answered.response.p50_ms),
            p99_ms: mean(&|run| run.measured.answered.response.p99_ms),
            spent: Spent {
                clients: us(&worked.clients),
                gateways: us(&worked.gateways),
                bricks: us(&worked.bricks),
            },
            windows: runs.first().map_or_else(Vec::new, |run| run.windows.clone()),
        };
        Predicted {
            figures,
            worked,
            simulated_s: runs.iter().map(|run| run.measured.simulated_s).sum(),
            events: runs.iter().map(|run| run.measured.events).sum(),
        }
    }

    fn simulate(&self, length: Length, seed: u64) -> Result<Lived> {
        let System { cluster, load, conditions, .. } = &self.system;
        let Load::Closed { outstanding, mix } = load else { bail!("--live has closed loops only") };
        let workload = Workload::Closed { outstanding: *outstanding, mix: *mix };
        Ok(timed::live_through(cluster, workload, length, conditions, seed)?)
    }

    /// Long enough after the last thing that happens to a brick.
    fn times(&self, times: &Times) -> Times {
        let last = self.system.conditions.incidents.iter().map(|(at, ..)| *at + STEADY).max();
        Times { warm_up: times.warm_up.max(last.unwrap_or_default()), ..*times }
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
        bed.await_drives(
            |page| page.get("brickwork_emulated_drive_clock_seconds").copied().unwrap_or(0.0),
            self.drive != MEMORY,
        )?;
        let endpoints: Vec<String> =
            (0..self.setting.gateways).map(|gateway| bed.endpoint(gateway as usize)).collect();
        let client = Client::start(&self.asked, &endpoints)?;
        let result = self.watch(&client, bed, &self.times(times));
        let seen = client.stop();
        let spent = result?;
        let mut seen = seen?;
        let [p50_ms, p99_ms] = seen.percentiles_ms([0.5, 0.99]);
        let requests = (seen.reads.count + seen.writes.count) as f64;
        ensure!(requests > 0.0, "no request was answered while it was measured");
        let spent = spent.since(Spent::default(), requests);
        let Conditions { window, end, .. } = self.system.conditions;
        let windows = match end {
            Some(end) if self.is_over_time() => seen.windows(window, end),
            _ => Vec::new(),
        };
        Ok(Figures { requests_per_second: seen.requests_per_second(), p50_ms, p99_ms, spent, windows })
    }

    /// Warms up, lets happen what is to happen, and measures: what was spent meanwhile.
    fn watch(&self, client: &Client, bed: &mut Bed, times: &Times) -> Result<Spent> {
        let began = Instant::now();
        let (before, is_over_time) = (bed.spent(), self.is_over_time());
        client.measure(is_over_time);
        let mut incidents: Vec<(Duration, u32, Incident)> = self.system.conditions.incidents.clone();
        incidents.sort_by_key(|(at, ..)| *at);
        for (at, brick, incident) in incidents {
            client.sleep(at.saturating_sub(began.elapsed()))?;
            bed.befall(brick, incident).with_context(|| format!("brick {brick}: {incident:?}"))?;
        }
        if let (true, Some(end)) = (is_over_time, self.system.conditions.end) {
            client.sleep(end.saturating_sub(began.elapsed()))?;
            client.measure(false);
            return Ok(bed.spent().since(before, 1.0));
        }
        client.sleep(times.warm_up.saturating_sub(began.elapsed()))?;
        let before = bed.spent();
        client.measure(true);
        client.sleep(times.measure)?;
        client.measure(false);
        Ok(bed.spent().since(before, 1.0))
    }

    /// What a brick, counted from 0, reads of its drive.
    fn emulation(&self, brick: u32) -> String {
        if self.drive == MEMORY {
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
            "[drive]\nmodel = \"{}\"\nheads = \"{}\"\nparts = \"{parts}\"\nslow_percent = {slow_percent}\n\
             claim_one_way_us = {}\nnvram_bytes = {}\ndata_bytes = {}\n",
            self.drive,
            self.heads,
            self.system.cluster.network.one_way_ns / 1_000,
            self.brick.journal_bytes,
            self.brick.data_bytes.unwrap_or(SHARE),
        )
    }
}

/// Bricks are killed while they run, started while they do not, and go on while they stand still.
fn check_incidents(incidents: &[(Duration, u32, Incident)]) -> Result<()> {
    let mut incidents = incidents.to_vec();
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
