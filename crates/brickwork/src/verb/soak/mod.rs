//! `brickwork soak`: real processes, killed, stopped and restarted at random, under clients that share blocks; then the
//! history of what the clients saw is checked. The simulator's torture, with real disks, sockets and a real kernel.
//!
//! Reading order: this file (the run), [`clients`] (who asks), [`harm`] (what is done to whom), [`findings`].

mod clients;
mod findings;
mod harm;

use crate::args::Global;
use crate::cluster::{Cluster, Shape};
use crate::config::Bytes;
use crate::load::shared::Arena;
use crate::security::{files, hex, random};
use crate::{output, view};
use anyhow::{Context, Result};
use base::Rng;
use clients::{Way, read_all};
use findings::Findings;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use wire::{AdminRequest, ClusterStatus};

/// Volumes by name and layout.
const VOLUMES: [(&str, &str); 3] = [("mirror", "raid1x3"), ("parity", "raid5-4+1"), ("coded", "rs-4+2")];
/// One more than the widest layout needs, so that groups differ.
const BRICKS: u32 = 7;
/// Clients of each volume at each way in.
const CLIENTS: usize = 2;
/// A brick that is away for longer is replaced by another one, and comes back to nothing: so that this happens too.
const REBUILD_AFTER_S: u64 = 5;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Starts a directory, seven bricks, two gateways and an `attach` for each of three volumes (raid1x3, raid5-4+1, rs-4+2) on
loopback; lets clients share blocks through all of them; and in each round hurts some daemons: a brick (more if every
volume can lose more), a gateway, the directory. One gets SIGKILL, or SIGSTOP for up to 20 s and then SIGCONT, or SIGTERM;
what ended is started again. The next round begins when all data are redundant again. In the end it kills everything at once,
starts it again, reads every block through every way in, and checks that some order explains all that was seen.
Ends with code 1 if there is none, if a client of `attach` saw an error, or if data did not become redundant in time.

Examples:
  brickwork soak --rounds 10
  brickwork soak --rounds 100 --seed 7 --history h.jsonl --json")]
pub struct Args {
    /// How many rounds; one takes some seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Decides what is hurt when, and what clients ask; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Write what clients saw: one JSON line for each operation on a block
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Where the cluster keeps its files; kept if given, else made for this and removed if all is well
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seconds within which all data must be redundant again after a round; 0 goes on without, sparing bricks then
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    redundant_within: u64,
    /// Milliseconds that a client thinks between two operations
    #[arg(long, value_name = "MS", default_value_t = 5)]
    think: u64,
}

/// Runs it.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    let seed = args.seed.unwrap_or_else(|| u64::from(u32::from_le_bytes(random())));
    let dir = match &args.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => PathBuf::from("/var/tmp").join(format!("brickwork-soak-{}", hex(&random::<4>()))),
    };
    files::make_dir(&dir)?;
    if !global.json {
        println!("Soak with seed {seed}, version {}, in {}", env!("CARGO_PKG_VERSION"), dir.display());
    }
    let findings = soak(&args, seed, &dir)?;
    findings.print(global, &args, seed);
    if findings.is_good() && args.dir.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(if findings.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(args: &Args, seed: u64, dir: &Path) -> Result<Findings> {
    let mut cluster = start(dir)?;
    let arena = Arena::new();
    let ways = clients::ways(&cluster);
    let think = Duration::from_millis(args.think);
    let mut findings = Findings::default();
    clients::fill(&arena, &ways)?;
    std::thread::scope(|scope| {
        let work = |(index, way): (usize, &Way)| {
            let (arena, way, seed) = (arena.clone(), way.clone(), seed.wrapping_add(index as u64));
            scope.spawn(move || (way.attach, clients::live(&arena, &way, seed, think)))
        };
        let clients: Vec<_> = ways.iter().cycle().take(ways.len() * CLIENTS).enumerate().map(work).collect();
        let hurt = hurt(&mut cluster, args, &mut Rng::with_seed(seed), &mut findings);
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
    findings.judge(&arena, args.history.as_deref())?;
    Ok(findings)
}

fn start(dir: &Path) -> Result<Cluster> {
    let shape = Shape {
        bricks: BRICKS,
        gateways: 2,
        disk: Bytes(256 << 20),
        journal: Bytes(32 << 20),
        cache: Bytes(16 << 20),
        keep: false,
        instruments: None,
    };
    let mut cluster = Cluster::start(dir, &shape)?;
    cluster.call(AdminRequest::SetCare {
        rebuild_bytes_per_second: None,
        scrub_bytes_per_second: None,
        scrub_interval_s: None,
        rebuild_after_s: Some(REBUILD_AFTER_S),
    })?;
    let config = dir.join("admin/client.toml").display().to_string();
    for (name, layout) in VOLUMES {
        cluster.create_volume(name, Bytes(16 << 20), layout)?;
        let socket = dir.join(format!("{name}.sock")).display().to_string();
        cluster
            .spawn(&format!("attach-{name}"), &["attach", name, "--socket", &socket, "--config", &config])?;
    }
    cluster.wait_ready()?;
    Ok(cluster)
}

fn hurt(cluster: &mut Cluster, args: &Args, rng: &mut Rng, findings: &mut Findings) -> Result<()> {
    let bar = output::progress(u64::from(args.rounds), "rounds of harm", false);
    std::thread::sleep(Duration::from_millis(500));
    for number in 1..=args.rounds {
        let round = harm::Round::draw(&cluster.names(), spare(&cluster.status()?), rng);
        tell(&bar, number, &round.to_string());
        round
            .run(cluster)
            .and_then(|()| cluster.wait_ready())
            .with_context(|| format!("round {number}: {round}"))?;
        findings.add_round(&round);
        std::thread::sleep(Duration::from_millis(rng.u64(300..1500)));
        cluster.check_alive()?;
        wait_until_redundant(cluster, args, findings)
            .with_context(|| format!("after round {number}: {round}"))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Shows a round on a terminal, and writes it as a line elsewhere: what a soak was at must be known when it hangs.
fn tell(bar: &ProgressBar, number: u32, round: &str) {
    if bar.is_hidden() {
        eprintln!("round {number}: {round}");
    } else {
        bar.set_message(round.to_owned());
    }
}

fn wait_until_redundant(cluster: &Cluster, args: &Args, findings: &mut Findings) -> Result<()> {
    if args.redundant_within == 0 {
        return Ok(());
    }
    let patience = Duration::from_secs(args.redundant_within);
    let took = cluster.wait_for(patience, "all data are redundant again", is_redundant)?;
    findings.longest_return = findings.longest_return.max(took);
    Ok(())
}

fn is_redundant(status: &ClusterStatus) -> bool {
    view::is_redundant(status) && status.bricks.iter().all(|brick| brick.alive)
}

/// How many bricks may be hurt at once: what every volume can lose, and none while something is missing already.
fn spare(status: &ClusterStatus) -> usize {
    let least = status.volumes.iter().map(|volume| usize::from(volume.can_lose)).min();
    if is_redundant(status) { least.unwrap_or(0) } else { 0 }
}

/// Kills every daemon at once, and starts all again.
fn cut_power(cluster: &mut Cluster) -> Result<()> {
    let names: Vec<String> = cluster.names().into_iter().filter(|name| !name.starts_with("attach")).collect();
    names.iter().try_for_each(|name| cluster.kill(name))?;
    names.iter().try_for_each(|name| cluster.restart(name))?;
    cluster.wait_ready().context("a daemon did not come back after all were killed at once")?;
    cluster.wait_until("every volume can serve again", |status| {
        status.bricks.iter().all(|brick| brick.alive)
            && status.volumes.iter().all(|volume| volume.unavailable == 0)
    })
}
