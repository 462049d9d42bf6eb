//! `cargo xtask soak`: real processes, killed, stopped and restarted at random, under clients that share blocks; what the
//! clients saw is judged twice: by the simulator's checker, and by porcupine. The simulator's torture, with real disks,
//! sockets and a real kernel.
//!
//! Reading order: this file (the run), `clients` (who asks), `harm` (what is done to whom), `findings`.

mod clients;
mod findings;
mod harm;

use crate::{place, porcupine};
use anyhow::{Context, Result, bail, ensure};
use base::Rng;
use clap::Args;
use clients::{Way, read_all};
use findings::Findings;
use rig::cluster::{self, Cluster, Spec, Storage, text};
use rig::load::shared::Arena;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{AdminRequest, ClusterStatus};

/// Volumes by name and layout.
const VOLUMES: [(&str, &str); 3] = [("mirror", "raid1x3"), ("parity", "raid5-4+1"), ("coded", "rs-4+2")];
const VOLUME_BYTES: u64 = 16 << 20;
/// One more than the widest layout needs, so that groups differ.
const BRICKS: usize = 7;
/// Clients of each volume at each way in.
const CLIENTS: usize = 2;
/// A brick that is away for longer is replaced by another one, and comes back to nothing: so that this happens too.
const REBUILD_AFTER_S: u64 = 5;
/// All daemons were started again at once.
const SERVES_WITHIN: Duration = Duration::from_secs(30);

/// How long, and from which seed.
#[derive(Args)]
#[command(after_help = "\
Starts a directory, seven bricks, two gateways and an `attach` for each of three volumes (raid1x3, raid5-4+1, rs-4+2) on
loopback; lets clients share blocks through all of them; and in each round hurts some daemons: a brick (more if every
volume can lose more), a gateway, the directory. One gets SIGKILL, or SIGSTOP for up to 20 s and then SIGCONT, or SIGTERM;
what ended is started again. The next round begins when all data are redundant again. In the end it kills everything at once,
starts it again, and reads every block through every way in. Fails if no order explains all that was seen, if a client of
`attach` saw an error, or if data did not become redundant in time.

Examples:
  cargo xtask soak --rounds 100
  cargo xtask soak --rounds 10 --seed 7 --json")]
pub(crate) struct Options {
    /// How many rounds of harm; one takes some seconds
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds: u64,
    /// Decides what is hurt when, and what clients ask
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where cluster and history are kept; made anew in the target folder, and removed if all is well, when absent
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Seconds within which all data must be redundant again after a round; 0 goes on without, sparing bricks then
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    redundant_within: u64,
    /// Milliseconds that a client thinks between two operations
    #[arg(long, value_name = "MS", default_value_t = 5)]
    think: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Soaks, judges and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    porcupine::test().context("porcupine must reject bad histories before it judges ours")?;
    let binary = place::binary(options.binary.as_deref())?;
    let dir = match &options.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => job::scratch("clusters")?.join(format!("{}-soak", std::process::id())),
    };
    std::fs::create_dir_all(&dir)?;
    let history = dir.join("history.jsonl");
    let findings = soak(options, &binary, &dir, &history)?;
    let kept = dir.display();
    let accepted = porcupine::judge(&history).with_context(|| format!("its files are in {kept}"));
    if let Some(complaint) = findings.complaint() {
        match accepted {
            Ok(_) => bail!("{complaint}; porcupine accepts the history; files are in {kept}"),
            Err(error) => bail!("{complaint}; {error:#}"),
        }
    }
    let accepted = accepted?;
    ensure!(
        findings.operations() == accepted.operations,
        "the history has {} operations, of {} that were made",
        accepted.operations,
        findings.operations()
    );
    if options.dir.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    match options.json {
        true => println!("{}", json!({ "soak": findings.json(options), "porcupine": accepted.json() })),
        false => println!("{}", findings.sentence(options, &accepted)),
    }
    Ok(())
}

fn soak(options: &Options, binary: &Path, dir: &Path, history: &Path) -> Result<Findings> {
    let (seed, think) = (options.seed, Duration::from_millis(options.think));
    let mut cluster = start(binary, &dir.join("cluster"))?;
    let arena = Arena::new();
    let ways = clients::ways(&cluster);
    let mut findings = Findings::default();
    clients::fill(&arena, &ways)?;
    std::thread::scope(|scope| {
        let work = |(index, way): (usize, &Way)| {
            let (arena, way, seed) = (arena.clone(), way.clone(), seed.wrapping_add(index as u64));
            scope.spawn(move || (way.attach, clients::live(&arena, &way, seed, think)))
        };
        let clients: Vec<_> = ways.iter().cycle().take(ways.len() * CLIENTS).enumerate().map(work).collect();
        let hurt = hurt(&mut cluster, options, &mut Rng::with_seed(seed), &mut findings);
        arena.stop();
        for client in clients {
            let (attach, failures) = client.join().expect("a client does not panic");
            findings.add_client(attach, failures);
        }
        // What clients saw is judged, and written, also when the cluster did not come through.
        findings.stuck = hurt.err().map(|error| format!("{error:#}"));
    });
    if findings.stuck.is_none() {
        let ended = cut_power(&mut cluster).and_then(|()| read_all(&arena, &ways));
        findings.stuck = ended.err().map(|error| format!("{error:#}"));
    }
    findings.judge(&arena, history)?;
    Ok(findings)
}

fn start(binary: &Path, dir: &Path) -> Result<Cluster> {
    let spec = Spec {
        folder: Some(dir.to_owned()),
        bricks: BRICKS,
        gateways: 2,
        storage: Storage {
            disk_bytes: 256 << 20,
            journal_bytes: 32 << 20,
            cache_bytes: 16 << 20,
            ..Storage::default()
        },
        ..Spec::default()
    };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.call(AdminRequest::SetCare {
        rebuild_bytes_per_second: None,
        scrub_bytes_per_second: None,
        scrub_interval_s: None,
        rebuild_after_s: Some(REBUILD_AFTER_S),
    })?;
    let config = cluster.client_config();
    for (name, layout) in VOLUMES {
        cluster.create(name, VOLUME_BYTES, layout)?;
        let socket = dir.join(format!("{name}.sock"));
        let words = ["attach", name, "--socket", text(&socket)?, "--config", text(&config)?];
        cluster.spawn(&format!("attach-{name}"), &words)?;
    }
    cluster.wait_ready()?;
    Ok(cluster)
}

fn hurt(cluster: &mut Cluster, options: &Options, rng: &mut Rng, findings: &mut Findings) -> Result<()> {
    std::thread::sleep(Duration::from_millis(500));
    for number in 1..=options.rounds {
        let round = harm::Round::draw(&cluster.names(), spare(&cluster.health()?), rng);
        // What a soak was at must be known when it hangs.
        eprintln!("    round {number}: {round}");
        round
            .run(cluster)
            .and_then(|()| cluster.wait_ready())
            .with_context(|| format!("round {number}: {round}"))?;
        findings.add_round(&round);
        std::thread::sleep(Duration::from_millis(rng.u64(300..1500)));
        cluster.all_alive()?;
        if options.redundant_within > 0 {
            let within = Duration::from_secs(options.redundant_within);
            let took = cluster.wait_until_redundant(within);
            findings.returned(took.with_context(|| format!("after round {number}: {round}"))?);
        }
    }
    Ok(())
}

/// How many bricks may be hurt at once: what every volume can lose, and none while something is missing already.
fn spare(status: &ClusterStatus) -> usize {
    let least = status.volumes.iter().map(|volume| usize::from(volume.can_lose)).min();
    if cluster::is_whole(status) { least.unwrap_or(0) } else { 0 }
}

/// Kills every daemon at once, and starts all again.
fn cut_power(cluster: &mut Cluster) -> Result<()> {
    cluster.kill_all()?;
    cluster.restart_all().context("a daemon did not come back after all were killed at once")?;
    cluster.wait_until("every volume can serve again", SERVES_WITHIN, |status| {
        status.bricks.iter().all(|brick| brick.alive)
            && status.volumes.iter().all(|volume| volume.unavailable == 0)
    })?;
    Ok(())
}
