//! `brickwork lab run dsfq.fig8 --live`, and `dsfq.fig9a` and `dsfq.fig12`: streams on daemons with emulated disks, beside a simulation of the same
//! ([`lab::dsfq::live`]), which is run first.

use super::bed::{self, Folder};
use anyhow::{Context, Result, anyhow};
use base::BLOCK_U64;
use lab::dsfq::live::{BLOCKS, Figure, Point, Times, VOLUME_BYTES};
use lab::experiment::Sample;
use lab::outcome::{Assumed, Effort, Extent, Outcome, Provenance, Subject};
use lab::parameters::Parameters;
use rig::cluster::{Cluster, Emulation, Spec, Storage};
use rig::load::steady::{self, Arrivals, Steady};
use sim::timed::Served;
use std::time::{Duration, Instant};

const JOURNAL_BYTES: u64 = 32 << 20;
/// Beside the volumes: superblocks, metadata, slots that change places.
const SPARE: u64 = 64 << 20;
/// Nothing is kept in memory that a disk could be asked for.
const CACHE_BYTES: u64 = 1 << 20;
/// What threads do, of the paper's assumptions, and what bricks have.
pub const ASSUMPTIONS: [&str; 4] = ["disks", "random_access_ms", "disk_megabytes_per_second", "places"];

/// What is to be run.
pub struct Live {
    pub figure: Figure,
    pub parameters: Parameters,
    pub seed: u64,
    pub is_quick: bool,
}

impl Live {
    fn times(&self) -> Times {
        let (warm_up_s, seconds) = if self.is_quick { (2, 4) } else { (3, 10) };
        Times { warm_up_s, seconds, is_quick: self.is_quick }
    }
}

/// The figure of this name, if it runs on daemons.
pub fn figure(id: &str) -> Option<Figure> {
    Figure::ALL.into_iter().find(|figure| figure.id() == id)
}

/// Runs all points. `say` is told what happens.
///
/// # Errors
/// When the cluster cannot be made, or a request fails, or a block holds what it must not.
pub fn run(live: &Live, say: &dyn Fn(&str)) -> Result<Outcome> {
    let (begin, times) = (Instant::now(), live.times());
    let points = live.figure.points(&live.parameters, times);
    say("simulating");
    let predicted = points.iter().map(|point| point.simulate(live.seed).map_err(|why| anyhow!(why)));
    let predicted = predicted.collect::<Result<Vec<Sample>>>()?;
    let folder = Folder::make(&bed::folder())?;
    let measured = measure(live, &folder, &points, say)
        .with_context(|| format!("the live run failed; its logs stay in {}", folder.logs().display()))?;
    if let Err(error) = folder.remove() {
        say(&format!("{error:#}"));
    }
    Ok(outcome(live, &points, measured, predicted, begin.elapsed()))
}

fn measure(live: &Live, folder: &Folder, points: &[Point], say: &dyn Fn(&str)) -> Result<Vec<Sample>> {
    let first = points.first().context("the figure has no points")?;
    say(&format!("starting {} bricks, and filling volumes", first.bricks()));
    let bed = Bed::start(first, folder, &Point::drive(&live.parameters))?;
    let mut samples = Vec::new();
    for (number, point) in (1..).zip(points) {
        say(&format!("{} of {}: {}", number, points.len(), point.name()));
        samples.push(point.measured(&bed.measure(point, live.times(), live.seed)?));
    }
    Ok(samples)
}

fn outcome(
    live: &Live,
    points: &[Point],
    measured: Vec<Sample>,
    predicted: Vec<Sample>,
    wall: Duration,
) -> Outcome {
    let (figure, times) = (live.figure, live.times());
    let simulated_ns: u64 = predicted.iter().map(|sample| sample.simulated_ns).sum();
    let effort = Effort {
        seed: live.seed,
        wall_s: wall.as_secs_f64(),
        simulated_s: simulated_ns as f64 / 1e9,
        events: predicted.iter().map(|sample| sample.events).sum(),
    };
    let [measured, predicted] = [measured, predicted].map(|samples| figure.rows(points, samples));
    let mut rows = Vec::new();
    for (live, predicted) in measured.iter().zip(&predicted) {
        rows.extend([live.clone().with("world", "live"), predicted.clone().with("world", "simulated")]);
    }
    Outcome {
        subject: Subject {
            id: format!("{}.live", figure.id()),
            paper: "dsfq".to_owned(),
            title: format!("{} - on daemons with emulated disks, beside their simulation", figure.title()),
        },
        effort,
        assumptions: ASSUMPTIONS.map(|name| Assumed::of(&live.parameters, name)).into(),
        claims: figure.claims(&measured, &predicted, live.is_quick),
        rows,
        extent: Extent { seeds: 1, quick: live.is_quick },
        sensitivity: Vec::new(),
        notes: vec![
            format!(
                "Each point: {} s of warm-up and {} s measured. Bricks, gateway, directory and load are processes of their own, over TCP. Every \
                 block that was read was checked.",
                times.warm_up_s, times.seconds
            ),
            "A brick has one emulated disk that is as fast as the four disks of the simulated figure together, and serves requests as they come. \
             Requests are reads of 8 KiB, and cost 10 units."
                .to_owned(),
            "Streams owe what their minimum kept from being applied, in both worlds.".to_owned(),
        ],
        provenance: Provenance::default(),
        charts: vec![figure.chart(&measured, &predicted)],
    }
}

/// The cluster, which ends with it.
struct Bed {
    cluster: Cluster,
}

impl Bed {
    /// All volumes of the figure, which are the same at all its points, are there and filled, and disks are emulated.
    fn start(point: &Point, folder: &Folder, drive: &str) -> Result<Bed> {
        let volumes = point.volumes();
        let data_bytes = volumes.len() as u64 * VOLUME_BYTES;
        let spec = Spec {
            name: "live",
            folder: Some(folder.cluster()),
            bricks: point.bricks(),
            metrics: true,
            storage: Storage {
                disk_bytes: data_bytes + data_bytes / 8 + JOURNAL_BYTES + SPARE,
                journal_bytes: JOURNAL_BYTES,
                cache_bytes: CACHE_BYTES,
                destage_bytes: Some(BLOCK_U64),
                emulation: Emulation::Each,
                ..Storage::default()
            },
            ..Spec::default()
        };
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut bed = Bed { cluster: Cluster::start(&program, &spec)? };
        for (name, share) in point.shares() {
            let (weight, minimum) = (share.weight().to_string(), share.minimum().to_string());
            bed.cluster.admin(&["stream", "create", name, "--weight", &weight, "--minimum", &minimum])?;
        }
        for volume in &volumes {
            bed.cluster.create_on(volume.name, VOLUME_BYTES, volume.brick + 1)?;
            bed.cluster.admin(&["volume", "set", volume.name, "--stream", volume.stream()])?;
            steady::fill(bed.cluster.connect_patiently(0, volume.name)?, tag(volume.name))?;
        }
        bed.cluster.wait_until_destaged();
        let file = bed.cluster.dir.join("disk.toml");
        outfile::write(&file, drive.as_bytes())
            .with_context(|| format!("cannot write {}", file.display()))?;
        let emulation =
            format!("[drive]\nmodel = \"{}\"\nheads = \"fcfs\"\ndata_bytes = {data_bytes}\n", file.display());
        (1..=point.bricks()).try_for_each(|number| bed.cluster.emulate(number, &emulation))?;
        bed.cluster.wait_for_drives(true)?;
        bed.cluster.admin(&["stream", "places", &point.places().to_string()])?;
        bed.cluster.wait_for_streams()?;
        Ok(bed)
    }

    /// What each volume was served in each second after the warm-up.
    fn measure(&self, point: &Point, times: Times, seed: u64) -> Result<Vec<Vec<Served>>> {
        let (epoch, volumes) = (Instant::now(), point.volumes());
        let mut loads = Vec::new();
        for (number, volume) in (1..).zip(&volumes) {
            let steady = Steady {
                arrivals: Arrivals::Closed(volume.threads),
                blocks: [BLOCKS; 2],
                read_percent: 100,
                seed: seed << 8 | number,
                tag: tag(volume.name),
            };
            let start = || steady.start(self.cluster.connect(0, volume.name)?, epoch);
            loads.push(if volume.threads > 0 { Some(start()?) } else { None });
        }
        let end = Duration::from_secs(times.warm_up_s + times.seconds);
        while epoch.elapsed() < end && !loads.iter().flatten().any(steady::Running::is_over) {
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_sub(epoch.elapsed())));
        }
        let samples =
            |load: Option<steady::Running>| load.map_or_else(|| Ok(Vec::new()), |load| load.finish());
        let seen: Vec<Vec<steady::Sample>> = loads.into_iter().map(samples).collect::<Result<_>>()?;
        let windows = |samples: &Vec<steady::Sample>| {
            (times.warm_up_s..times.warm_up_s + times.seconds).map(|second| window(samples, second)).collect()
        };
        Ok(seen.iter().map(windows).collect())
    }
}

/// What was answered in a second.
fn window(samples: &[steady::Sample], second: u64) -> Served {
    let mut served = Served { from_s: second as f64, seconds: 1.0, ..Served::default() };
    for sample in samples.iter().filter(|sample| sample.at.as_secs() == second) {
        served.requests += 1;
        served.bytes += u64::from(sample.blocks) * BLOCK_U64;
        served.response_ms += sample.took.as_secs_f64() * 1e3;
    }
    served
}

/// What names a volume in its blocks.
fn tag(name: &str) -> u64 {
    name.bytes().fold(1, |tag, byte| tag << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_in_their_second() {
        let sample = |ms: u64, blocks| steady::Sample {
            at: Duration::from_millis(ms),
            took: Duration::from_millis(2),
            blocks,
        };
        let served = window(&[sample(999, 9), sample(1000, 1), sample(1999, 3), sample(2000, 9)], 1);
        assert_eq!((served.requests, served.bytes), (2, 4 * BLOCK_U64));
        assert!((served.response_ms - 4.0).abs() < 1e-9);
    }
}
