//! `brickwork soak`: real processes, killed at random, under clients that share blocks; then the history of what the
//! clients saw is checked. The simulator's torture, with real disks, sockets and a real kernel.

use crate::args::Global;
use crate::cluster::{Cluster, Shape};
use crate::config::Bytes;
use crate::load::shared::{Arena, Client};
use crate::load::{self};
use crate::security::{files, hex, random};
use crate::{nbd_client, output};
use anyhow::{Context, Result};
use base::Rng;
use serde_json::json;
use sim::checkers::linearizable;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const VOLUMES: [(&str, &str); 2] = [("mirror", "raid1x3"), ("parity", "raid5-4+1")];
/// So few blocks that clients meet on them.
const BLOCKS: u64 = 48;
/// Clients of each volume at each way in.
const CLIENTS: usize = 2;
/// How long a killed brick is away, in milliseconds: less than its lease (2 s), after which it would be left out.
const AWAY_MS: std::ops::Range<u64> = 0..800;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Starts a directory, six bricks, two gateways and an `attach` for each volume on loopback; lets clients share blocks
through all of them; and in each round kills a brick or a gateway with SIGKILL and starts it again. In the end it
kills everything at once, starts it again, reads every block, and checks that some order explains all that was seen.
Ends with code 1 if there is none, or if a client of `attach` saw an error.

Examples:
  brickwork soak --rounds 10
  brickwork soak --rounds 100 --seed 7 --history h.jsonl --json")]
pub struct Args {
    /// How many rounds; one takes about two seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Decides what is killed when, and what clients ask; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Write what clients saw: one JSON line for each operation on a block
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Where the cluster keeps its files; kept if given, else made for this and removed if all is well
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
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

/// What came of it.
#[derive(Default)]
struct Findings {
    operations: u64,
    brick_kills: u64,
    gateway_kills: u64,
    broken_requests: u64,
    attach_errors: u64,
    violations: Vec<String>,
}

/// A way to a volume: through one of the gateways, whichever lives, or through its `attach`.
#[derive(Clone)]
struct Way {
    endpoints: Vec<String>,
    attach: bool,
    volume: usize,
}

fn soak(args: &Args, seed: u64, dir: &std::path::Path) -> Result<Findings> {
    let mut cluster = start(dir)?;
    let arena = Arena::new();
    let ways = ways(&cluster);
    let mut findings = Findings::default();
    std::thread::scope(|scope| {
        let work = |(index, way): (usize, &Way)| {
            let (arena, way, seed) = (arena.clone(), way.clone(), seed.wrapping_add(index as u64));
            scope.spawn(move || (way.attach, live(&arena, &way, seed)))
        };
        let clients: Vec<_> = ways.iter().cycle().take(ways.len() * CLIENTS).enumerate().map(work).collect();
        let hurt = hurt(&mut cluster, args.rounds, &mut Rng::with_seed(seed), &mut findings);
        arena.stop();
        for client in clients {
            let (attach, failures) = client.join().expect("a client does not panic");
            *(if attach { &mut findings.attach_errors } else { &mut findings.broken_requests }) += failures;
        }
        hurt
    })?;
    cut_power(&mut cluster)?;
    read_all(&arena, &ways)?;
    judge(&arena, args, &mut findings)?;
    Ok(findings)
}

fn start(dir: &std::path::Path) -> Result<Cluster> {
    let shape = Shape {
        bricks: 6,
        gateways: 2,
        disk: Bytes(256 << 20),
        journal: Bytes(32 << 20),
        cache: Bytes(16 << 20),
        keep: false,
    };
    let mut cluster = Cluster::start(dir, &shape)?;
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

fn ways(cluster: &Cluster) -> Vec<Way> {
    let socket = |name: &str| format!("unix:{}", cluster.dir().join(format!("{name}.sock")).display());
    let both = |(volume, (name, _)): (usize, &(&str, &str))| {
        let mut ways = vec![Way { endpoints: vec![socket(name)], attach: true, volume }];
        // Each client prefers another gateway, and takes the other one when that is dead.
        for first in 0..cluster.nbd().len() {
            let mut endpoints = cluster.nbd().to_vec();
            endpoints.rotate_left(first);
            ways.push(Way { endpoints, attach: false, volume });
        }
        ways
    };
    VOLUMES.iter().enumerate().flat_map(both).collect()
}

/// A client's life: when its connection breaks it goes on, under another id, through the next way. Returns how many
/// requests were not answered well.
fn live(arena: &Arc<Arena>, way: &Way, seed: u64) -> u64 {
    let mut client = Client::new(arena, way.volume, BLOCKS, seed);
    let name = VOLUMES[way.volume].0;
    for endpoint in way.endpoints.iter().cycle() {
        if arena.is_stopped() {
            break;
        }
        let Ok((sender, receiver, _)) = nbd_client::connect(endpoint, name) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        // A broken connection is what this is about; the workload has counted what it lost.
        let _ = load::drive(sender, receiver, 1, &mut client);
    }
    client.failures
}

fn hurt(cluster: &mut Cluster, rounds: u32, rng: &mut Rng, findings: &mut Findings) -> Result<()> {
    let bar = output::progress(u64::from(rounds), "rounds of kills", false);
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..rounds {
        let victim = choose(cluster, rng)?;
        cluster.kill(&victim)?;
        *(if victim.starts_with("brick") {
            &mut findings.brick_kills
        } else {
            &mut findings.gateway_kills
        }) += 1;
        std::thread::sleep(Duration::from_millis(rng.u64(AWAY_MS)));
        cluster.restart(&victim)?;
        cluster.wait_ready().with_context(|| format!("{victim} was killed and did not come back"))?;
        std::thread::sleep(Duration::from_millis(rng.u64(500..2000)));
        cluster.check_alive()?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// A gateway, or a brick if no volume is degraded already: a second failure would be more than RAID-5 promises.
fn choose(cluster: &Cluster, rng: &mut Rng) -> Result<String> {
    let whole = cluster.status()?.volumes.iter().all(|volume| volume.degraded == 0);
    let wanted = if whole && rng.u32(0..3) > 0 { "brick" } else { "gateway" };
    let names: Vec<String> = cluster.names().into_iter().filter(|name| name.starts_with(wanted)).collect();
    Ok(names[rng.usize(..names.len())].clone())
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

/// Reads every block once through every way. Nobody else is there, so a read that fails is asked again for a while.
fn read_all(arena: &Arc<Arena>, ways: &[Way]) -> Result<()> {
    for way in ways {
        let name = VOLUMES[way.volume].0;
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let mut sweep = Client::sweeping(arena, way.volume, BLOCKS);
            let result = nbd_client::connect(&way.endpoints[0], name)
                .and_then(|(sender, receiver, _)| load::drive(sender, receiver, 1, &mut sweep));
            if result.is_ok() && sweep.failures == 0 {
                break;
            }
            if Instant::now() > end {
                return result
                    .and_then(|()| anyhow::bail!("reads still fail"))
                    .with_context(|| format!("'{name}' cannot be read after the restart"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

fn judge(arena: &Arena, args: &Args, findings: &mut Findings) -> Result<()> {
    let (history, torn) = arena.take();
    findings.operations = history.operations().len() as u64;
    findings.violations = torn;
    if let Some(path) = &args.history {
        let mut out =
            BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?);
        history.write_json(&mut out)?;
        out.flush()?;
    }
    let broken =
        history.by_register().into_iter().filter_map(|operations| linearizable::check(&operations).err());
    findings.violations.extend(broken.map(|violation| violation.to_string()));
    Ok(())
}

impl Findings {
    fn is_good(&self) -> bool {
        self.violations.is_empty() && self.attach_errors == 0
    }

    fn print(&self, global: &Global, args: &Args, seed: u64) {
        if global.json {
            output::print_json(&json!({
                "seed": seed, "rounds": args.rounds, "operations": self.operations, "brick_kills": self.brick_kills,
                "gateway_kills": self.gateway_kills, "broken_requests": self.broken_requests,
                "attach_errors": self.attach_errors, "violations": self.violations, "history": args.history,
            }));
            return;
        }
        println!(
            "{} operations; killed: {}, {}, and everything at once at the end.",
            self.operations,
            output::count(self.brick_kills, "brick"),
            output::count(self.gateway_kills, "gateway")
        );
        println!(
            "{} broke off with their gateway, as they may; {} errors of attach.",
            output::count(self.broken_requests, "plain request"),
            self.attach_errors
        );
        self.violations.iter().take(3).for_each(|violation| println!("! {violation}"));
        match self.violations.len() {
            0 => println!("Some order explains all that clients saw: no violation."),
            count => println!("{}; repeat with --seed {seed}.", output::count(count as u64, "violation")),
        }
    }
}
