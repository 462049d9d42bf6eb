//! `cargo xtask bench outage`: a brick that dies under load, again and again, and for how long writes pause.
//!
//! Reading order: [`verb`] (what is run), [`How`] (how a brick dies), [`Case`] (a cluster, its load, its rounds), [`Pause`] (what one round showed),
//! [`Found`] (all rounds of a case). Real daemons on files. In each round another brick dies, and comes back after three seconds. After each brick has
//! died twice there is a new cluster.

use super::demand::{self, Demand};
use crate::{clients, place};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use rig::cluster::{Cluster, Spec, Ways};
use rig::load::steady::{self, Arrivals, Sample, Steady};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::directory::VolumeStatus;

/// Blocks of the volume.
const VOLUME_BYTES: u64 = 64 << 20;
/// Load before the brick dies, from when all is redundant.
const BEFORE: Duration = Duration::from_secs(1);
/// How long a brick is dead.
const DEAD: Duration = Duration::from_secs(3);
/// A pause that is not over at the end is not measured, and is no longer than that.
const OPEN_MAX: Duration = Duration::from_millis(250);
/// Between two looks at the state of the cluster.
const LOOK: Duration = Duration::from_millis(5);
const REDUNDANT_WITHIN: Duration = Duration::from_secs(120);
/// New writes are to have full redundancy again so soon after the view without the brick.
const COVERED_WITHIN_MS: f64 = 100.0;
/// Names the volume in its blocks.
const TAG: u64 = 17;
/// So often a brick of one cluster dies. One that falls silent a third time within an hour is kept out for longer each time.
const DEATHS: usize = 2;

/// How a brick dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum How {
    /// Its process is killed; its machine ends the connections
    Killed,
    /// Its process stands still (SIGSTOP)
    Stopped,
    /// Its cable is out: nothing comes through to it or from it
    Cut,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Killed => "killed",
            How::Stopped => "stopped",
            How::Cut => "cut off",
        }
    }

    /// The longest pause that is to be, in milliseconds.
    fn bound_ms(self) -> f64 {
        match self {
            How::Killed => 500.0,
            How::Stopped | How::Cut => 1000.0,
        }
    }
}

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
A pause is the longest time in which no write was answered. `cut` needs network namespaces, and so root.

Examples:
  cargo xtask bench outage --quick
  cargo xtask bench outage --layout raid1x3 --how killed --rounds 50
  cargo xtask bench outage --layout raid1x3 --spare 1
  cargo xtask bench outage --json > outage.json")]
pub(crate) struct Options {
    /// Only this layout; may be repeated
    #[arg(long = "layout", default_values_t = ["raid1x3", "raid5-4+1", "rs-4+2"].map(str::to_owned))]
    layouts: Vec<String>,
    /// Only this way to die; may be repeated
    #[arg(long, value_enum, default_values_t = [How::Killed, How::Stopped, How::Cut])]
    how: Vec<How>,
    /// How many bricks die in each case, one after the other
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Writes of 4 KiB under way
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Bricks beside those that the layout needs: one of them stands in for the one that dies, and it is measured when new writes are redundant again
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=8))]
    spare: u32,
    /// Three rounds of copies: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A cluster, its load, and what happens to it.
struct Case {
    layout: String,
    how: How,
    rounds: u32,
    depth: u32,
    spare: usize,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let (layouts, rounds) = match options.quick {
        true => (vec!["raid1x3".to_owned()], 3),
        false => (options.layouts.clone(), options.rounds),
    };
    let cases = layouts.iter().flat_map(|layout| {
        options.how.iter().map(|how| Case {
            layout: layout.clone(),
            how: *how,
            rounds,
            depth: options.depth,
            spare: options.spare as usize,
        })
    });
    let mut all = Vec::new();
    for case in cases {
        let found = case.measure(&binary).with_context(|| case.name())?;
        if !options.json {
            found.print();
        }
        all.push(found);
    }
    let demands: Vec<Demand> = all.iter().flat_map(Found::demands).collect();
    if options.json {
        let cases: Vec<Value> = all.iter().map(Found::json).collect();
        let demands: Vec<Value> = demands.iter().map(Demand::json).collect();
        println!("{}", json!({"cases": cases, "claims": demands}));
    } else {
        demand::print(&demands);
    }
    Ok(())
}

impl Case {
    fn name(&self) -> String {
        let spare = if self.spare > 0 { format!(" and {} to spare", self.spare) } else { String::new() };
        format!("{}{spare}, a brick {}", self.layout, self.how.name())
    }

    fn measure(&self, binary: &Path) -> Result<Found> {
        let bricks = clients::width(&self.layout) + self.spare;
        let ways = if self.how == How::Cut { Ways::Namespaces { late: None } } else { Ways::Loopback };
        let spec = Spec { name: "outage", bricks, ways, ..Spec::default() };
        let rounds: Vec<u32> = (0..self.rounds).collect();
        let mut pauses = Vec::new();
        for rounds in rounds.chunks(DEATHS * bricks) {
            let mut cluster = Cluster::start(binary, &spec)?;
            cluster.create("v", VOLUME_BYTES, &self.layout)?;
            steady::fill(cluster.connect_patiently(0, "v")?, TAG)?;
            for round in rounds {
                cluster.wait_until_redundant(REDUNDANT_WITHIN)?;
                let brick = *round as usize % bricks + 1;
                pauses.push(self.round(&mut cluster, *round, brick)?);
            }
            cluster.wait_until_redundant(REDUNDANT_WITHIN)?;
            cluster.all_alive()?;
        }
        Ok(Found {
            name: self.name(),
            layout: self.layout.clone(),
            how: self.how,
            depth: self.depth,
            has_spare: self.spare > 0,
            pauses,
        })
    }

    fn round(&self, cluster: &mut Cluster, round: u32, brick: usize) -> Result<Pause> {
        let epoch = Instant::now();
        let load = Steady {
            arrivals: Arrivals::Closed(self.depth as usize),
            blocks: [1, 1],
            read_percent: 0,
            seed: u64::from(round) + 1,
            tag: TAG,
        };
        let load = load.start(cluster.connect(0, "v")?, epoch)?;
        sleep(BEFORE);
        let died = epoch.elapsed();
        let name = format!("brick-{brick}");
        match self.how {
            How::Killed => cluster.daemon(&name)?.send_kill()?,
            How::Stopped => cluster.daemon(&name)?.stand_still()?,
            How::Cut => {
                let others = cluster.names().into_iter().filter(|other| *other != name);
                let ways = others.flat_map(|other| [(name.clone(), other.clone()), (other, name.clone())]);
                cluster.network()?.cut(&ways.collect::<Vec<_>>())?;
            }
        }
        let covered = match self.spare {
            0 => {
                sleep(DEAD);
                None
            }
            _ => new_writes_are_redundant(cluster, epoch, died + DEAD)?,
        };
        let samples = load.finish().with_context(|| format!("{name} {}", self.how.name()))?;
        match self.how {
            How::Killed => {
                cluster.daemon(&name)?.reap();
                cluster.start_again(&name)?;
            }
            How::Stopped => cluster.daemon(&name)?.go_on()?,
            How::Cut => cluster.network()?.heal()?,
        }
        Pause::of(&samples, died, covered)
    }
}

/// Asks the directory again and again until it says that each group without a member has another brick in its place that takes what is written: when
/// that was asked. Returns at that moment in any case.
fn new_writes_are_redundant(cluster: &Cluster, epoch: Instant, until: Duration) -> Result<Option<Duration>> {
    while epoch.elapsed() < until {
        let asked = epoch.elapsed();
        let status = cluster.health()?;
        let of = |count: fn(&VolumeStatus) -> u32| status.volumes.iter().map(count).sum::<u32>();
        let (degraded, whole) = (of(|volume| volume.degraded), of(|volume| volume.covered));
        if degraded > 0 && degraded == whole && of(|volume| volume.unavailable) == 0 {
            sleep(until.saturating_sub(epoch.elapsed()));
            return Ok(Some(asked));
        }
        sleep(LOOK);
    }
    Ok(None)
}

/// What one round showed, in milliseconds.
struct Pause {
    /// The longest time in which no write was answered, from when the brick died on.
    longest_ms: f64,
    /// The same before it died.
    before_ms: f64,
    /// The longest write.
    write_ms: f64,
    /// From the end of the pause until somebody saw that new writes have their full redundancy.
    covered_ms: Option<f64>,
}

impl Pause {
    /// What was never seen took for ever.
    fn covered(&self) -> f64 {
        self.covered_ms.unwrap_or(f64::INFINITY)
    }

    fn of(samples: &[Sample], died: Duration, covered: Option<Duration>) -> Result<Pause> {
        let mut answers: Vec<Duration> = samples.iter().map(|sample| sample.at).collect();
        answers.sort_unstable();
        let gaps = answers.windows(2).map(|pair| (pair[1] - pair[0], pair[1]));
        let longest =
            |is_within: &dyn Fn(Duration) -> bool| gaps.clone().filter(|(_, end)| is_within(*end)).max();
        let (pause, end) = longest(&|end| end > died).unwrap_or((Duration::ZERO, died));
        let before = longest(&|end| end <= died).map_or(Duration::ZERO, |(gap, _)| gap);
        ensure!(
            answers.last().is_some_and(|last| *last > died + DEAD - OPEN_MAX),
            "no write was answered any more, {} ms after the brick had died",
            (DEAD - OPEN_MAX).as_millis()
        );
        let took =
            samples.iter().filter(|sample| sample.at > died).map(|sample| sample.took.as_secs_f64() * 1e3);
        Ok(Pause {
            longest_ms: pause.as_secs_f64() * 1e3,
            before_ms: before.as_secs_f64() * 1e3,
            write_ms: took.fold(0.0, f64::max),
            covered_ms: covered.map(|covered| covered.saturating_sub(end).as_secs_f64() * 1e3),
        })
    }
}

/// All rounds of a case.
struct Found {
    name: String,
    layout: String,
    how: How,
    depth: u32,
    has_spare: bool,
    pauses: Vec<Pause>,
}

impl Found {
    fn worst(&self, of: impl Fn(&Pause) -> f64) -> f64 {
        self.pauses.iter().map(of).fold(0.0, f64::max)
    }

    fn median(&self, of: impl Fn(&Pause) -> f64) -> f64 {
        let mut all: Vec<f64> = self.pauses.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }

    fn print(&self) {
        println!("{}, {} times, {} writes under way", self.name, self.pauses.len(), self.depth);
        println!(
            "  writes paused for {:.0} ms (median), {:.0} ms (worst); longest write {:.0} ms; before it died {:.0} ms (worst)",
            self.median(|pause| pause.longest_ms),
            self.worst(|pause| pause.longest_ms),
            self.worst(|pause| pause.write_ms),
            self.worst(|pause| pause.before_ms),
        );
        if self.has_spare {
            println!(
                "  new writes had full redundancy {:.0} ms after that pause (median), {:.0} ms (worst)",
                self.median(Pause::covered),
                self.worst(Pause::covered)
            );
        }
    }

    fn json(&self) -> Value {
        let pauses: Vec<Value> = self
            .pauses
            .iter()
            .map(|pause| {
                json!({
                    "longest_ms": pause.longest_ms, "before_ms": pause.before_ms, "write_ms": pause.write_ms,
                    "covered_ms": pause.covered_ms,
                })
            })
            .collect();
        json!({
            "layout": self.layout, "how": self.how.name(), "depth": self.depth, "rounds": pauses,
            "median_ms": self.median(|pause| pause.longest_ms), "worst_ms": self.worst(|pause| pause.longest_ms),
            "covered_worst_ms": self.has_spare.then(|| self.worst(Pause::covered)).filter(|worst| worst.is_finite()),
        })
    }

    fn demands(&self) -> Vec<Demand> {
        let worst = self.worst(|pause| pause.longest_ms);
        let pause = Demand::at_most(format!("{}: longest pause, ms", self.name), worst, self.how.bound_ms());
        let covered = self.has_spare.then(|| {
            let what = format!("{}: new writes without full redundancy after the pause, ms", self.name);
            Demand::at_most(what, self.worst(Pause::covered), COVERED_WITHIN_MS)
        });
        core::iter::once(pause).chain(covered).collect()
    }
}
