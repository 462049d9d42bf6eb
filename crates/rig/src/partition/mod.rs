//! `cargo xtask partition`: daemons in network namespaces, packets between them dropped, under clients at both gateways.
//!
//! Reading order: [`verb`], [`Arena::round`] (what is asserted), `cut` (who is cut off from whom). The cut-off side must
//! acknowledge nothing and return nothing stale, the other side must go on, and after healing all must be whole again. What
//! clients saw is judged by porcupine at the end.

mod cut;

use crate::history::{Blocks, Client, History, Tally};
use crate::{place, porcupine};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use cut::{BRICKS, Cut, GATEWAYS, KINDS, Way, gateway_name};
use job::process::installed;
use rig::cluster::{Cluster, Spec, Storage, Ways};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A volume, how many bricks its groups can lose, and how many they need.
struct Volume {
    name: &'static str,
    layout: &'static str,
    tolerates: usize,
    needs: usize,
}

const VOLUMES: [Volume; 3] = [
    Volume { name: "mirror", layout: "raid1x3", tolerates: 2, needs: 1 },
    Volume { name: "parity", layout: "raid5-4+1", tolerates: 1, needs: 4 },
    Volume { name: "coded", layout: "rs-4+2", tolerates: 2, needs: 4 },
];

/// So few blocks that clients meet on them.
const BLOCKS: u64 = 64;
/// Clients of each volume at each gateway.
const CLIENTS: usize = 2;
/// Writes that show that a way gets on.
const ENOUGH: u64 = 25;
/// Generous: a view change takes a lease (0.3 to 4 s) and some messages.
const GOES_ON_WITHIN: Duration = Duration::from_secs(30);
/// Connections that were cut are made anew after growing pauses.
const HEALS_WITHIN: Duration = Duration::from_secs(60);

/// How many rounds.
#[derive(Args)]
#[command(after_help = "\
Needs root, iproute2 and nftables. Each round draws a cut: a gateway with a minority of the bricks, a gateway alone, the
directory alone, some bricks alone, bricks that are heard by nobody or hear nobody, a gateway that one brick does not hear, or
most bricks without the directory. Asserts: by a cut-off gateway no write is acknowledged; by the others writes get on; after
healing writes get on everywhere, all data are redundant again, and both gateways read the same; porcupine accepts the history.

Examples:
  cargo xtask partition --rounds 20
  cargo xtask partition --rounds 3 --seed 9 --json")]
pub(crate) struct Options {
    /// How many cuts
    #[arg(long, value_name = "N", default_value_t = 20)]
    rounds: u64,
    /// Decides who is cut off when
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Seconds within which all data must be redundant again after healing; 0 begins each round with a new cluster instead
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    redundant_within: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Cuts, heals, judges and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    if let Some(why) = cannot_run() {
        bail!("{why}");
    }
    let binary = place::binary(options.binary.as_deref())?;
    let summary = run(&binary, options.rounds, options.seed, options.redundant_within)?;
    if options.json {
        println!("{}", summary.json());
    } else {
        println!("{}", summary.sentence());
    }
    Ok(())
}

/// Why this machine cannot do it.
pub(crate) fn cannot_run() -> Option<String> {
    if let Some(missing) = ["ip", "nft", "go"].into_iter().find(|program| !installed(program)) {
        return Some(format!("{missing} is not installed"));
    }
    (!job::process::is_root()).then(|| "network namespaces need root".to_owned())
}

/// What happened.
pub(crate) struct Summary {
    rounds: Vec<Value>,
    slowest_s: f64,
    slowest_return_s: f64,
    accepted: porcupine::Accepted,
}

/// Runs so many rounds and judges them.
pub(crate) fn run(binary: &Path, rounds: u64, seed: u64, redundant_within: u64) -> Result<Summary> {
    let path = job::scratch("clusters")?.join(format!("{}-partition.jsonl", std::process::id()));
    let history = History::create(&path)?;
    let mut told = Vec::new();
    let mut arena = Arena::start(binary, 0, seed)?;
    let mut noise = rig::noise::Noise::new(seed);
    for number in 0..rounds {
        if number > 0 && redundant_within == 0 {
            drop(arena);
            arena = Arena::start(binary, number, seed)?;
        }
        let cut = Cut::draw(KINDS[number as usize % KINDS.len()], &mut noise);
        eprintln!("    round {}: {cut} for {:.1} s", number + 1, cut.hold_ms as f64 / 1000.0);
        let round = arena.round(&history, &cut, redundant_within);
        told.push(round.with_context(|| {
            format!("round {} of seed {seed}, {cut}; the history so far is {}", number + 1, path.display())
        })?);
    }
    drop(arena);
    history.finish()?;
    let accepted = porcupine::judge(&path)?;
    std::fs::remove_file(&path)?;
    let slowest = |key: &str| told.iter().filter_map(|round| round[key].as_f64()).fold(0.0, f64::max);
    let (slowest_s, slowest_return_s) = (slowest("goes_on_s"), slowest("redundant_s"));
    Ok(Summary { rounds: told, slowest_s, slowest_return_s, accepted })
}

impl Summary {
    /// For people.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "partition: {} rounds: cut-off gateways acknowledged nothing, the others went on within {:.1} s, healing converged \
             (redundant again within {:.1} s) and both gateways read the same; porcupine accepts {} operations on {} blocks",
            self.rounds.len(),
            self.slowest_s,
            self.slowest_return_s,
            self.accepted.operations,
            self.accepted.registers
        )
    }

    fn json(&self) -> Value {
        json!({ "rounds": self.rounds, "porcupine": self.accepted.json() })
    }
}

/// A cluster in namespaces, and how far writes get by each way into it.
struct Arena {
    cluster: Cluster,
    /// Distinguishes its blocks from those of clusters before it.
    generation: u64,
    seed: u64,
    /// By gateway and volume.
    tallies: Vec<Vec<Tally>>,
}

impl Arena {
    fn start(binary: &Path, generation: u64, seed: u64) -> Result<Arena> {
        let spec = Spec {
            bricks: BRICKS,
            gateways: GATEWAYS,
            ways: Ways::Namespaces { late: None },
            storage: Storage {
                disk_bytes: 256 << 20,
                journal_bytes: 32 << 20,
                cache_bytes: 16 << 20,
                ..Storage::default()
            },
            ..Spec::default()
        };
        let cluster = Cluster::start(binary, &spec)?;
        for volume in &VOLUMES {
            cluster.create(volume.name, 16 << 20, volume.layout)?;
        }
        let of_gateway = |_| VOLUMES.iter().map(|_| Tally::default()).collect();
        Ok(Arena { cluster, generation, seed, tallies: (0..GATEWAYS).map(of_gateway).collect() })
    }

    /// Cuts under load, checks, heals, checks; what is worth telling of it.
    fn round(&mut self, history: &History, cut: &Cut, redundant_within: u64) -> Result<Value> {
        let stop = AtomicBool::new(false);
        let timings = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..GATEWAYS * VOLUMES.len() * CLIENTS)
                .map(|number| {
                    scope.spawn({
                        let (arena, stop) = (&*self, &stop);
                        move || arena.live(history, number, stop)
                    })
                })
                .collect();
            let timings = self.cut_and_heal(history, cut, redundant_within);
            let _ = self.cluster.network().and_then(|network| network.heal());
            stop.store(true, Ordering::SeqCst);
            for client in clients {
                client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            timings
        })?;
        self.cluster.all_alive()?;
        self.read_alike(history)?;
        let (cut_off, goes_on) = (cut.refused.len(), cut.goes_on.len());
        let [goes_on_s, heals_s, redundant_s] = timings.map(|time| time.as_secs_f64());
        Ok(json!({
            "cut": cut.to_string(), "hold_ms": cut.hold_ms, "ways_cut_off": cut_off, "ways_that_go_on": goes_on,
            "goes_on_s": goes_on_s, "heals_s": heals_s, "redundant_s": redundant_s,
        }))
    }

    fn live(&self, history: &History, number: usize, stop: &AtomicBool) -> Result<()> {
        let (gateway, volume) = (number % GATEWAYS, number / GATEWAYS % VOLUMES.len());
        let seed = self.seed ^ (self.generation << 8) ^ number as u64;
        let connect = || self.cluster.connect(gateway, VOLUMES[volume].name);
        Client::new(history, self.blocks(volume), seed).live(connect, &self.tallies[gateway][volume], stop)
    }

    fn blocks(&self, volume: usize) -> Blocks {
        Blocks { count: BLOCKS, first: (self.generation << 32) + ((volume as u64) << 24) }
    }

    /// How long it took until writes went on during the cut, and after it, and until all was redundant.
    fn cut_and_heal(&self, history: &History, cut: &Cut, redundant_within: u64) -> Result<[Duration; 3]> {
        let everywhere: Vec<Way> = (0..GATEWAYS)
            .flat_map(|gateway| (0..VOLUMES.len()).map(move |volume| (gateway, volume)))
            .collect();
        let network = self.cluster.network()?;
        self.mark(history);
        self.get_on(&everywhere, GOES_ON_WITHIN).context("before the cut")?;
        network.cut(&cut.pairs)?;
        let began = Instant::now();
        self.mark(history);
        let went_on = self.get_on(&cut.goes_on, GOES_ON_WITHIN).context("during the cut")?;
        std::thread::sleep(Duration::from_millis(cut.hold_ms).saturating_sub(began.elapsed()));
        self.nothing_acknowledged(&cut.refused)?;
        network.heal()?;
        self.mark(history);
        let healed = self.get_on(&everywhere, HEALS_WITHIN).context("after healing")?;
        let redundant = self.wait_until_redundant(redundant_within)?;
        Ok([went_on, healed, redundant])
    }

    fn mark(&self, history: &History) {
        self.tallies.iter().flatten().for_each(|tally| tally.mark(history));
    }

    /// Waits until enough writes were acknowledged by every way.
    fn get_on(&self, ways: &[Way], within: Duration) -> Result<Duration> {
        let started = Instant::now();
        let slow =
            || ways.iter().find(|&&(gateway, volume)| self.tallies[gateway][volume].acknowledged() < ENOUGH);
        while let Some(&(gateway, volume)) = slow() {
            let tally = &self.tallies[gateway][volume];
            ensure!(
                started.elapsed() < within,
                "by {} only {} writes to {} were acknowledged within {} s, and {} failed",
                gateway_name(gateway),
                tally.acknowledged(),
                VOLUMES[volume].layout,
                within.as_secs(),
                tally.refused()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(started.elapsed())
    }

    fn nothing_acknowledged(&self, ways: &[Way]) -> Result<()> {
        for &(gateway, volume) in ways {
            let count = self.tallies[gateway][volume].acknowledged();
            ensure!(
                count == 0,
                "{} was cut off and acknowledged {count} writes to {}",
                gateway_name(gateway),
                VOLUMES[volume].layout
            );
        }
        Ok(())
    }

    fn wait_until_redundant(&self, within_s: u64) -> Result<Duration> {
        match within_s {
            0 => Ok(Duration::ZERO),
            seconds => self.cluster.wait_until_redundant(Duration::from_secs(seconds)),
        }
    }

    /// Nobody writes any more: both gateways must read the same.
    fn read_alike(&self, history: &History) -> Result<()> {
        for (volume, Volume { name, layout, .. }) in VOLUMES.iter().enumerate() {
            let read = |gateway| -> Result<Vec<u64>> {
                let mut nbd = self.cluster.connect(gateway, name)?;
                Client::new(history, self.blocks(volume), 0)
                    .sweep(&mut nbd)
                    .with_context(|| format!("reading {layout} by {}", gateway_name(gateway)))
            };
            let (first, second) = (read(0)?, read(1)?);
            let differ = (0..BLOCKS as usize).filter(|&block| first[block] != second[block]).count();
            ensure!(differ == 0, "the gateways read {differ} blocks of {layout} differently");
        }
        Ok(())
    }
}
