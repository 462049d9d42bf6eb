//! `cargo xtask bench index`: how fast names of objects are put, looked up, listed and removed, what the directory holds in memory and on its disk for
//! them, and how long it takes to start with them.
//!
//! The objects are empty unless you say otherwise: what is measured is the index, and not the bricks.

use crate::place;
use anyhow::{Context, Result, bail};
use base::{BLOCK, Payload};
use clap::Args;
use host::{ObjectUser, Shutdown, Waker, run_objects};
use job::process;
use proto::object::{NewObject, ObjectError, ObjectNews, ObjectWish, SEGMENT_BYTES};
use rig::cluster::{Cluster, Daemon, Spec};
use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::object::Pack;
use wire::{Condition, ObjectName};

/// How to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Print everything as one JSON object instead of lines
    #[arg(long)]
    json: bool,
    /// How many objects
    #[arg(long, default_value_t = 1_000_000)]
    objects: u64,
    /// The size of each object in bytes, up to 64 KiB
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65536))]
    bytes: u32,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Under way at a time.
const AT_A_TIME: u64 = 512;
/// Names that are looked up, and that are removed: a tenth of all, within this.
const SAMPLE_MAX: u64 = 1_000_000;
const BUCKET: &str = "bench";
/// How often the first names are listed.
const LISTS: usize = 20;
/// A directory that has been killed looks through its databases first.
const STARTS_WITHIN: Duration = Duration::from_secs(1800);

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let mut cluster = Cluster::start(&place::binary(options.binary.as_deref())?, &spec(options))?;
    let admin = cluster.admin_options()?;
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let content: Payload = vec![7; options.bytes as usize].into();
    let sample = (options.objects / 10).clamp(1, SAMPLE_MAX);
    let rate_of = |what: What, count| -> Result<f64> {
        let mut work = Work {
            what,
            objects: options.objects,
            begun: 0,
            ended: 0,
            count,
            content: content.clone(),
            failed: None,
            told: Instant::now(),
        };
        let begun = Instant::now();
        run_objects(&admin.node, &admin.directory, &shutdown, &mut work)?;
        if let Some(error) = work.failed {
            bail!("{} failed: {error}", what.name());
        }
        Ok(work.ended as f64 / begun.elapsed().as_secs_f64())
    };
    let puts = rate_of(What::Put, options.objects)?;
    let looks = rate_of(What::Look, sample)?;
    let mut lister = Lister { left: LISTS, asked: Instant::now(), took: Vec::new(), names: 0 };
    run_objects(&admin.node, &admin.directory, &shutdown, &mut lister)?;
    lister.took.sort_unstable();
    let median_ms = lister.took.get(LISTS / 2).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
    let worst_ms = lister.took.last().map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
    let (resident, peak) =
        (process::resident_bytes(cluster.directory.pid())?, process::peak_bytes(cluster.directory.pid())?);
    let used = used_bytes(&cluster)?;
    let files = index_bytes(&cluster)?;
    let after_end_s = until_listed(&mut cluster, &shutdown, |daemon| daemon.stop().map(drop))?;
    let after_kill_s = until_listed(&mut cluster, &shutdown, Daemon::kill)?;
    let resident_again = process::resident_bytes(cluster.directory.pid())?;
    let removes = rate_of(What::Remove, sample)?;
    let peak_again = process::peak_bytes(cluster.directory.pid())?;
    if options.json {
        println!(
            "{}",
            json!({
                "objects": options.objects, "object_bytes": options.bytes, "puts_per_second": puts, "looks_per_second": looks,
                "removes_per_second": removes,
                "first_names": lister.names, "list_median_ms": median_ms, "list_worst_ms": worst_ms,
                "directory_resident_bytes": resident, "directory_peak_bytes": peak, "disks_used_bytes": used, "index_file_bytes": files,
                "directory_resident_bytes_after_kill": resident_again, "directory_peak_bytes_after_kill": peak_again,
                "seconds_until_listed_after_end": after_end_s, "seconds_until_listed_after_kill": after_kill_s,
            })
        );
        return Ok(());
    }
    println!(
        "{} objects put, {puts:.0} a second; names looked up: {looks:.0} a second; removed: {removes:.0}",
        options.objects
    );
    println!(
        "the first {} names listed in {median_ms:.1} ms (median of {LISTS}; {worst_ms:.1} at worst)",
        lister.names
    );
    println!(
        "the directory has {} MiB resident, and had {} at most; {} and {} after it had been killed",
        resident >> 20,
        peak >> 20,
        resident_again >> 20,
        peak_again >> 20
    );
    println!(
        "the index has {} MiB on the directory's disk; all bricks have {} MiB in use",
        files >> 20,
        used >> 20
    );
    println!(
        "a directory that was ended lists names {after_end_s:.1} s after its start; one that was killed, {after_kill_s:.1} s"
    );
    Ok(())
}

/// Seconds from the start of a directory that was ended so until names are listed.
fn until_listed(
    cluster: &mut Cluster,
    shutdown: &Shutdown,
    end: impl FnOnce(&mut Daemon) -> Result<()>,
) -> Result<f64> {
    let admin = cluster.admin_options()?;
    end(&mut cluster.directory)?;
    let started = Instant::now();
    cluster.directory.restart()?;
    loop {
        let mut lister = Lister { left: 1, asked: Instant::now(), took: Vec::new(), names: 0 };
        run_objects(&admin.node, &admin.directory, shutdown, &mut lister)?;
        if !lister.took.is_empty() {
            return Ok(started.elapsed().as_secs_f64());
        }
        if started.elapsed() > STARTS_WITHIN {
            bail!("the directory lists no names {STARTS_WITHIN:?} after its start");
        }
    }
}

/// What of all disks is in use once all is in its place.
fn used_bytes(cluster: &Cluster) -> Result<u64> {
    cluster.wait_until_destaged();
    let status = cluster.status()?;
    let bricks = status["bricks"].as_array().context("no bricks in `status --json`")?;
    let used =
        bricks.iter().map(|brick| brick["used_bytes"].as_u64().context("a brick does not say what it uses"));
    used.sum()
}

/// Bricks with room for all copies. Small ones share what they lie in; a larger one takes a slot and a page of metadata, and a disk has a page for each 192 KiB.
/// Some of it stays free, as bricks refuse to be filled up.
fn spec(options: &Options) -> Spec {
    const LARGE: u64 = 256 << 10;
    let usual = Spec::default();
    if options.bytes == 0 {
        return usual;
    }
    let blocks = options.bytes.div_ceil(BLOCK as u32);
    let copy_bytes = match blocks {
        ..=Pack::BLOCKS_MAX => 2 * u64::from(blocks.next_power_of_two()) * BLOCK as u64,
        _ => LARGE,
    };
    let copies = 2 * options.objects / usual.bricks as u64;
    Spec { disk_bytes: usual.disk_bytes + copies * copy_bytes, ..usual }
}

/// What the files of the index's shards have on the disk.
fn index_bytes(cluster: &Cluster) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(&cluster.dir).context("the cluster's folder")? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains(".index-") {
            bytes += entry.metadata()?.blocks() * 512;
        }
    }
    Ok(bytes)
}

#[derive(Clone, Copy)]
enum What {
    Put,
    Look,
    Remove,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Put => "a put",
            What::Look => "looking a name up",
            What::Remove => "a removal",
        }
    }
}

/// The same with many objects.
struct Work {
    what: What,
    /// How many there are.
    objects: u64,
    begun: u64,
    ended: u64,
    count: u64,
    content: Payload,
    failed: Option<ObjectError>,
    told: Instant,
}

impl Work {
    fn next(&mut self) -> Option<(u64, ObjectWish)> {
        if self.begun == self.count {
            return None;
        }
        // A prime, so that no number comes twice, and they are spread over all objects.
        let number = self.begun.wrapping_mul(2_147_483_647) % self.objects;
        self.begun += 1;
        // Keys come in no order.
        let key = format!("{:016x}", (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let name = ObjectName { bucket: BUCKET.to_owned(), key };
        let wish = match self.what {
            What::Look => ObjectWish::Look { name },
            What::Remove => ObjectWish::Remove { name },
            What::Put => ObjectWish::Put(NewObject {
                name,
                condition: Condition::Always,
                redundancy: 0,
                losses: 1,
                put_ms: 0,
                segment_bytes: SEGMENT_BYTES,
                resumable: None,
            }),
        };
        Some((self.begun, wish))
    }
}

impl ObjectUser for Work {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        (0..AT_A_TIME).filter_map(|_| self.next()).collect()
    }

    fn told(&mut self, tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        let ended = match news {
            ObjectNews::WantsContent { .. } => {
                return vec![(tag, ObjectWish::Content { content: self.content.clone(), is_last: true })];
            }
            ObjectNews::Put(ended) => ended.map(drop),
            ObjectNews::Looked(ended) => ended.map(drop),
            ObjectNews::Removed(ended) => ended,
            _ => return Vec::new(),
        };
        match ended {
            Ok(()) => self.ended += 1,
            Err(error) => self.failed = Some(error),
        }
        if self.told.elapsed() > Duration::from_secs(10) {
            self.told = Instant::now();
            eprintln!("    {}: {} of {}", self.what.name(), self.ended, self.count);
        }
        self.next().into_iter().collect()
    }

    fn is_done(&self) -> bool {
        self.ended == self.count || self.failed.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.count = self.ended;
        Vec::new()
    }
}

struct Lister {
    left: usize,
    asked: Instant,
    took: Vec<Duration>,
    names: usize,
}

impl Lister {
    fn next(&mut self) -> Vec<(u64, ObjectWish)> {
        self.asked = Instant::now();
        let (bucket, prefix) = (BUCKET.to_owned(), String::new());
        vec![(self.left as u64, ObjectWish::List { bucket, prefix, after: None, limit: 1000 })]
    }
}

impl ObjectUser for Lister {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.next()
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        if let ObjectNews::Listed(Ok((objects, _))) = news {
            self.names = objects.len();
            self.took.push(self.asked.elapsed());
        }
        self.left -= 1;
        if self.left == 0 { Vec::new() } else { self.next() }
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.left = 0;
        Vec::new()
    }
}
