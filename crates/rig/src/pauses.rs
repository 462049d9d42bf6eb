//! `cargo xtask pauses`: a brick and a gateway that are paused together while their clocks stand, as a hypervisor pauses virtual machines, and what
//! reads through that gateway return as it wakes.
//!
//! Each read policy has two volumes, with leased and with confirmed reads. While both stand still all blocks are overwritten through another
//! gateway. Then every block is asked for through the gateway that stands, both clocks are set back by as long as they stood, and both go on. A
//! read is *old* when it returns what had been overwritten. Each round has a cluster of its own: a brick that falls silent again and again is kept
//! out for longer each time.

use crate::bench::failslow::POLICIES;
use crate::place;
use anyhow::{Context, Result, ensure};
use clap::Args;
use job::process::installed;
use rig::cluster::{Cluster, Daemon, Spec, set_behind};
use rig::nbd::{Nbd, command};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// Time for the others to leave the brick out (its lease ends after 0.3 to 4 s) and to overwrite all that is to be read.
const SECONDS_MIN: u64 = 7;
const WHOLE_WITHIN: Duration = Duration::from_secs(60);

/// How long, and how often.
#[derive(Args)]
#[command(after_help = "\
Needs libfaketime (Debian's package faketime). A round takes some five seconds more than its pause. The verb fails if a
confirmed read is old; old leased reads are counted, since such a pause makes them possible (docs/operations/paused-machines.md).

Examples:
  cargo xtask pauses
  cargo xtask pauses --seconds 7 --seconds 60 --rounds 20 --json
  cargo xtask pauses --lease-ms 300")]
pub(crate) struct Options {
    /// How long both are paused; may be repeated
    #[arg(long, default_values_t = [7, 10], value_parser = clap::value_parser!(u64).range(SECONDS_MIN..=600))]
    seconds: Vec<u64>,
    /// How many pauses of each length
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Blocks of each volume
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=4096))]
    blocks: u64,
    /// How long a brick's lease is, in milliseconds. With the directory's default, 300, the brick is left out so soon that the
    /// gateway's socket has the news when it wakes; the network of a machine that is paused as a whole would not
    #[arg(long, default_value_t = 2000)]
    lease_ms: u32,
    /// Only this read policy; may be repeated
    #[arg(long = "policy", value_parser = POLICIES)]
    policies: Vec<String>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What reads returned, in sum.
#[derive(Clone, Copy, Default)]
struct Tally {
    old: u64,
    new: u64,
    failed: u64,
    /// Rounds in which a read was old.
    rounds: u32,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.old += other.old;
        self.new += other.new;
        self.failed += other.failed;
        self.rounds += u32::from(other.old > 0);
    }

    fn json(&self) -> Value {
        json!({"old": self.old, "new": self.new, "failed": self.failed, "rounds_with_old": self.rounds})
    }
}

/// One volume.
struct Volume {
    /// Through the gateway that is paused, and through the other.
    paused: Nbd,
    other: Nbd,
}

struct Pair {
    cluster: Cluster,
    clock: PathBuf,
    volumes: Vec<Volume>,
    blocks: u64,
    generation: u8,
}

/// Pauses, reads, counts and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    ensure!(installed("faketime"), "faketime is not installed: the clocks of paused daemons would go on");
    let binary = place::binary(options.binary.as_deref())?;
    let is_meant =
        |policy: &&str| options.policies.is_empty() || options.policies.iter().any(|p| p == policy);
    let policies: Vec<&str> = POLICIES.into_iter().filter(is_meant).collect();
    let volumes: Vec<(&str, bool)> =
        policies.iter().flat_map(|policy| [(*policy, false), (*policy, true)]).collect();
    let mut told = Vec::new();
    let (mut is_kept, mut has_old) = (true, false);
    for &seconds in &options.seconds {
        let mut tallies = vec![Tally::default(); volumes.len()];
        for round in 1..=options.rounds {
            let mut pair = Pair::start(&binary, &volumes, options)?;
            let (found, first) =
                pair.round(seconds).with_context(|| format!("round {round} of {seconds} s"))?;
            let old = |is_confirmed| {
                let of_kind = volumes.iter().zip(&found).filter(|((_, of), _)| *of == is_confirmed);
                of_kind.map(|(_, tally)| tally.old).sum::<u64>()
            };
            eprintln!(
                "    {seconds} s, round {round}: {} leased and {} confirmed reads were old; the first answer came after {} ms",
                old(false),
                old(true),
                first.as_millis()
            );
            tallies.iter_mut().zip(found).for_each(|(sum, tally)| sum.add(tally));
        }
        let mut rows = Vec::new();
        for ((policy, is_confirmed), tally) in volumes.iter().zip(&tallies) {
            is_kept &= tally.old == 0 || !is_confirmed;
            has_old |= tally.old > 0;
            rows.push(json!({"policy": policy, "confirmed": is_confirmed, "reads": tally.json()}));
        }
        if !options.json {
            print_table(seconds, options.rounds, &policies, &tallies);
        }
        told.push(json!({"seconds": seconds, "rounds": options.rounds, "volumes": rows}));
    }
    if options.json {
        println!("{}", json!({"pauses": told}));
    }
    if !has_old {
        eprintln!(
            "No leased read was old either: these pauses show nothing of confirmed ones (longer leases would: --lease-ms)."
        );
    }
    ensure!(is_kept, "confirmed reads were old");
    Ok(())
}

fn print_table(seconds: u64, rounds: u32, policies: &[&str], tallies: &[Tally]) {
    println!("\nPaused for {seconds} s, {rounds} times: old reads, and reads that failed, of all\n");
    println!("{:24} {:>22} {:>22}", "policy", "leased", "confirmed");
    for (policy, tallies) in policies.iter().zip(tallies.chunks(2)) {
        let cell = |tally: &Tally| {
            format!("{} + {} of {}", tally.old, tally.failed, tally.old + tally.new + tally.failed)
        };
        println!("{policy:24} {:>22} {:>22}", cell(&tallies[0]), cell(&tallies[1]));
    }
}

impl Pair {
    fn start(binary: &Path, volumes: &[(&str, bool)], options: &Options) -> Result<Pair> {
        let clock = job::scratch("clusters")?.join(format!("{}-clock", std::process::id()));
        set_behind(&clock, Duration::ZERO)?;
        let spec = Spec {
            gateways: 2,
            behind: Some(clock.clone()),
            lease_ms: Some(options.lease_ms),
            ..Spec::default()
        };
        let cluster = Cluster::start(binary, &spec)?;
        let open = |(policy, is_confirmed): &(&str, bool)| {
            let reads = if *is_confirmed { "confirmed" } else { "leased" };
            let size = (options.blocks * BLOCK as u64).max(1 << 20).to_string();
            let name = format!("{policy}-{reads}");
            let mut words = vec!["volume", "create", &name, "--size", &size, "--layout", "raid1x3"];
            words.extend(["--read-policy", policy, "--reads", reads]);
            cluster.admin(&words)?;
            Ok(Volume { paused: cluster.connect(0, &name)?, other: cluster.connect(1, &name)? })
        };
        let volumes = volumes.iter().map(open).collect::<Result<_>>()?;
        Ok(Pair { cluster, clock, volumes, blocks: options.blocks, generation: 0 })
    }

    /// Pauses both for so long; what the reads of each volume returned then, and after how long the first one did.
    fn round(&mut self, seconds: u64) -> Result<(Vec<Tally>, Duration)> {
        self.cluster.wait_until_redundant(WHOLE_WITHIN)?;
        self.overwrite()?;
        // The gateway that is paused knows the view, and the brick has a lease.
        self.ask()?;
        let (read, _) = self.take_answers()?;
        ensure!(
            read.iter().all(|tally| tally.old + tally.failed == 0),
            "a gateway reads old content before any pause"
        );
        let begun = Instant::now();
        for daemon in self.both() {
            daemon.stand_still()?;
        }
        self.overwrite()?;
        let pause = Duration::from_secs(seconds);
        let left = pause.checked_sub(begun.elapsed());
        let left = left.with_context(|| format!("overwriting took longer than the pause of {seconds} s"))?;
        std::thread::sleep(left);
        // So that it reads before it hears what it missed.
        self.ask()?;
        set_behind(&self.clock, begun.elapsed())?;
        for daemon in self.both() {
            daemon.go_on()?;
        }
        self.take_answers()
    }

    fn both(&self) -> [&Daemon; 2] {
        [&self.cluster.bricks[0], &self.cluster.gateways[0].daemon]
    }

    /// Writes the next content through the gateway that is not paused.
    fn overwrite(&mut self) -> Result<()> {
        self.generation += 1;
        let content = [self.generation; BLOCK];
        for volume in &mut self.volumes {
            for block in 0..self.blocks {
                volume.other.write(block * BLOCK as u64, &content)?;
            }
        }
        Ok(())
    }

    /// Asks the gateway that is paused at times for every block, one of each volume by turns.
    fn ask(&mut self) -> Result<()> {
        for block in 0..self.blocks {
            for volume in &mut self.volumes {
                volume.paused.request(command::READ, block, block * BLOCK as u64, BLOCK as u32)?;
            }
        }
        Ok(())
    }

    /// What it answers, and after how long the first answer comes.
    fn take_answers(&mut self) -> Result<(Vec<Tally>, Duration)> {
        let (begun, mut first) = (Instant::now(), None);
        let mut tallies = vec![Tally::default(); self.volumes.len()];
        for (volume, tally) in self.volumes.iter_mut().zip(&mut tallies) {
            for _ in 0..self.blocks {
                let reply = volume.paused.reply()?;
                first.get_or_insert_with(|| begun.elapsed());
                if reply.error != 0 {
                    tally.failed += 1;
                } else if volume.paused.payload(BLOCK)? == [self.generation; BLOCK] {
                    tally.new += 1;
                } else {
                    tally.old += 1;
                }
            }
        }
        Ok((tallies, first.unwrap_or_default()))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.clock));
    }
}
