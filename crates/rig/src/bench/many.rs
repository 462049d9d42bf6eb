//! `cargo xtask bench many`: what many volumes and groups cost real daemons, and how long it takes until all are served again.
//!
//! Three bricks on files, one directory, one gateway. The figures: volumes made in a second, the processor of each daemon while nobody asks for anything, what peers
//! send each other then, `status`, memory; and how long it takes after a brick was killed, after it came back, and after the directory was.

use super::rebuild::parse_size;
use crate::place;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use job::process;
use rig::cluster::{Cluster, Spec, Storage};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wire::{AdminReply, AdminRequest, ClusterStatus, StatusPart};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A member that dies is left out of all its groups within this time, or this fails; and so on.
const WITHIN: Duration = Duration::from_secs(600);
/// So often the status is asked for.
const STATUSES: usize = 20;
const VOLUME_BYTES: u64 = 64 << 20;

/// How many of what.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench many --volumes 10000
  cargo xtask bench many --volumes 3 --groups 1000 --json")]
pub(crate) struct Options {
    /// How many volumes are made
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    volumes: u32,
    /// Groups of each volume
    #[arg(long, default_value_t = 1)]
    groups: u32,
    /// The layout of all volumes: one that bears the loss of a brick
    #[arg(long, default_value = "raid1x3")]
    layout: String,
    /// How many bricks there are
    #[arg(long, default_value_t = 3)]
    bricks: usize,
    /// The size of each brick's disk, a sparse file
    #[arg(long, default_value = "8GiB", value_parser = parse_size)]
    disk: u64,
    /// How many volumes are made at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    at_once: u32,
    /// For how many seconds daemons are watched while nobody asks for anything
    #[arg(long, default_value_t = 20)]
    idle_seconds: u64,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Of a daemon while nobody asks for anything.
struct Idle {
    name: String,
    cores: f64,
    resident_bytes: u64,
}

/// What was found.
struct Found {
    made_a_second: f64,
    last_made_a_second: f64,
    idle: Vec<Idle>,
    /// What all daemons together sent each other, bytes a second.
    sent_a_second: f64,
    summary_ms: f64,
    whole_status_ms: f64,
    left_out_s: f64,
    /// The longest that one write of a client took since the brick was killed.
    write_s: f64,
    back_s: f64,
    /// Until a volume that nobody had open took a write, since the directory was killed.
    opened_s: f64,
    directory_s: f64,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let spec = Spec {
        name: "many",
        bricks: options.bricks,
        metrics: true,
        storage: Storage { disk_bytes: options.disk, ..Storage::default() },
        ..Spec::default()
    };
    let mut cluster = Cluster::start(&binary, &spec)?;
    let found = measure(options, &mut cluster)?;
    if options.json {
        println!("{}", found.json(options));
    } else {
        found.print(options);
    }
    Ok(())
}

fn measure(options: &Options, cluster: &mut Cluster) -> Result<Found> {
    let say = |what: &str| {
        if !options.json {
            println!("{what}");
        }
    };
    say(&format!("making {} volumes of {} groups", options.volumes, options.groups));
    let (made_a_second, last_made_a_second) = make(options, cluster)?;
    cluster.wait_until_redundant(WITHIN)?;
    say(&format!("watching daemons for {} s", options.idle_seconds));
    let (idle, sent_a_second) = watch(options, cluster)?;
    let summary_ms = time_status(|| summary(cluster).map(drop))?;
    let whole_status_ms = time_status(|| whole_status(cluster).map(drop))?;
    say("killing a brick");
    let (left_out_s, write_s) = lose_brick(cluster)?;
    let begun = Instant::now();
    cluster.start_again("brick-1")?;
    wait_for(cluster, "all is redundant again", |status| {
        status.counts.is_some_and(|counts| counts.unwell_volumes == 0)
            && status.bricks.iter().all(|brick| brick.alive)
    })?;
    let back_s = begun.elapsed().as_secs_f64();
    say("killing the directory");
    let begun = Instant::now();
    cluster.kill("directory")?;
    cluster.start_again("directory")?;
    // Nobody has it open: the gateway has to ask the directory for it.
    let unopened = format!("v{}", options.volumes - 1);
    let mut client = cluster.connect_patiently(0, &unopened)?;
    client.write(0, &[3; 4096])?;
    let opened_s = begun.elapsed().as_secs_f64();
    wait_for(cluster, "all bricks are known again and all is redundant", |status| {
        let counts = status.counts.unwrap_or_default();
        let is_known = status.bricks.len() == options.bricks && status.bricks.iter().all(|brick| brick.alive);
        is_known && counts.unwell_volumes == 0 && counts.unwell_bricks == 0
    })?;
    let directory_s = begun.elapsed().as_secs_f64();
    Ok(Found {
        made_a_second,
        last_made_a_second,
        idle,
        sent_a_second,
        summary_ms,
        whole_status_ms,
        left_out_s,
        write_s,
        back_s,
        opened_s,
        directory_s,
    })
}

/// Makes the volumes; how many a second, in all and of the last tenth.
fn make(options: &Options, cluster: &Cluster) -> Result<(f64, f64)> {
    let (next, tenth) = (AtomicU64::new(0), u64::from(options.volumes) * 9 / 10);
    let (begun, last_begun_us) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= u64::from(options.volumes) {
                    return Ok(());
                }
                if number == tenth {
                    last_begun_us.store(begun.elapsed().as_micros() as u64, Ordering::SeqCst);
                }
                cluster.create_in(&format!("v{number}"), VOLUME_BYTES, &options.layout, options.groups)?;
            }
        };
        let workers: Vec<_> = (0..options.at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    let all_s = begun.elapsed().as_secs_f64();
    let last_s = all_s - last_begun_us.load(Ordering::SeqCst) as f64 / 1e6;
    Ok((f64::from(options.volumes) / all_s, (u64::from(options.volumes) - tenth) as f64 / last_s))
}

fn watch(options: &Options, cluster: &Cluster) -> Result<(Vec<Idle>, f64)> {
    let daemons = cluster.daemons();
    let processor =
        || -> Result<Vec<u64>> { daemons.iter().map(|daemon| process::processor_us(daemon.pid())).collect() };
    let (pages, before, begun) = (cluster.metrics(), processor()?, Instant::now());
    sleep(Duration::from_secs(options.idle_seconds));
    let (after, seconds) = (processor()?, begun.elapsed().as_secs_f64());
    let sent = cluster.metrics().grown(&pages, "brickwork_peer_bytes_sent_total");
    let mut idle = Vec::new();
    for (daemon, (after, before)) in daemons.iter().zip(after.iter().zip(&before)) {
        idle.push(Idle {
            name: daemon.name().to_owned(),
            cores: (after - before) as f64 / 1e6 / seconds,
            resident_bytes: process::resident_bytes(daemon.pid())?,
        });
    }
    Ok((idle, sent / seconds))
}

fn summary(cluster: &Cluster) -> Result<ClusterStatus> {
    ask(cluster, StatusPart::Summary { most: 1000 })
}

fn ask(cluster: &Cluster, part: StatusPart) -> Result<ClusterStatus> {
    match cluster.call(AdminRequest::Status { part })? {
        AdminReply::Status(status) => Ok(*status),
        other => bail!("the directory answered a question about its status with {other:?}"),
    }
}

/// All of it, a page at a time.
fn whole_status(cluster: &Cluster) -> Result<ClusterStatus> {
    let mut status = ask(cluster, StatusPart::From(base::VolumeId(0)))?;
    let mut next = status.next;
    while let Some(from) = next {
        next = status.take_page(ask(cluster, StatusPart::From(from))?);
    }
    Ok(status)
}

/// The median, in milliseconds, with a connection for each question.
fn time_status(question: impl Fn() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..STATUSES {
        let begun = Instant::now();
        question()?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn wait_for(cluster: &Cluster, what: &str, is: impl Fn(&ClusterStatus) -> bool) -> Result<()> {
    let begun = Instant::now();
    loop {
        match summary(cluster) {
            Ok(status) if is(&status) => return Ok(()),
            _ => ensure!(begun.elapsed() < WITHIN, "waited {} s until {what}", WITHIN.as_secs()),
        }
        sleep(LOOK_EVERY);
    }
}

/// Kills the first brick: after how many seconds no group counts on it, and the longest write of a client meanwhile.
fn lose_brick(cluster: &mut Cluster) -> Result<(f64, f64)> {
    let id = cluster.brick_id(1)?;
    let mut client = cluster.connect(0, "v0").context("connecting to the gateway")?;
    client.write(0, &[1; 4096])?;
    cluster.kill("brick-1")?;
    let begun = Instant::now();
    let writes = std::thread::spawn(move || -> Result<f64> {
        let mut longest = 0.0_f64;
        while begun.elapsed() < Duration::from_secs(5) {
            let one = Instant::now();
            client.write(0, &[2; 4096])?;
            longest = longest.max(one.elapsed().as_secs_f64());
        }
        Ok(longest)
    });
    wait_for(cluster, "no group counts on the brick", |status| {
        let brick = status.bricks.iter().find(|brick| brick.id.0.to_string() == id);
        brick.is_some_and(|brick| !brick.alive && brick.stale_groups == brick.groups)
    })?;
    let left_out_s = begun.elapsed().as_secs_f64();
    let longest = writes.join().expect("no writer panics")?;
    Ok((left_out_s, longest))
}

impl Found {
    fn json(&self, options: &Options) -> Value {
        let idle = self.idle.iter().map(|daemon| {
            json!({"daemon": daemon.name, "cores": daemon.cores, "resident_bytes": daemon.resident_bytes})
        });
        json!({
            "bricks": options.bricks, "volumes": options.volumes, "groups": options.volumes * options.groups, "layout": options.layout,
            "made_a_second": self.made_a_second, "last_made_a_second": self.last_made_a_second,
            "idle": idle.collect::<Vec<Value>>(), "idle_bytes_a_second": self.sent_a_second,
            "summary_ms": self.summary_ms, "whole_status_ms": self.whole_status_ms,
            "brick_left_out_s": self.left_out_s, "longest_write_s": self.write_s, "brick_back_s": self.back_s,
            "volume_opened_s": self.opened_s, "directory_back_s": self.directory_s,
        })
    }

    fn print(&self, options: &Options) {
        println!(
            "\n{} volumes {} of {} groups on {} bricks",
            options.volumes, options.layout, options.groups, options.bricks
        );
        println!(
            "made             {:.0} a second, {:.0} of the last tenth",
            self.made_a_second, self.last_made_a_second
        );
        for daemon in &self.idle {
            println!(
                "idle             {:<12} {:.3} of a core, {} MiB",
                daemon.name,
                daemon.cores,
                daemon.resident_bytes / (1 << 20)
            );
        }
        println!("sent when idle   {:.0} bytes a second, all daemons together", self.sent_a_second);
        println!(
            "status           {:.1} ms its summary, {:.1} ms all of it",
            self.summary_ms, self.whole_status_ms
        );
        println!(
            "a brick killed   {:.1} s until no group counts on it; the longest write {:.1} s",
            self.left_out_s, self.write_s
        );
        println!("it is back       {:.1} s until all is redundant", self.back_s);
        println!(
            "directory killed {:.2} s until a volume that nobody had open takes a write, {:.2} s until all is well",
            self.opened_s, self.directory_s
        );
    }
}
