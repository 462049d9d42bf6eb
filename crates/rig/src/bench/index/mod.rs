//! `cargo xtask bench index`: how fast names of objects are put, looked up, listed and removed, what the directory holds in memory and on its disk for
//! them, and how long it takes to start with them.
//!
//! The objects are empty unless you say otherwise: what is measured is the index, and not the bricks.
//!
//! Reading order: [`verb`] (what is done, in which order), `names` (which names there are), `users` (who puts them, looks them up, lists and removes them),
//! `figures` (how it is told).

mod figures;
mod names;
mod users;

use crate::place;
use anyhow::{Context, Result, bail, ensure};
use base::{BLOCK, Payload};
use clap::{Args, ValueEnum};
use figures::{Figures, Filled, Loaded};
use host::{Shutdown, fill_index, run_objects};
use job::process;
use objects::index::{EmptyObject, IndexConfig};
use rig::cluster::{Cluster, Daemon, Spec, Storage};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use users::{LOSSES, Lister, PUT_MS, TOLD_EVERY, What, Work};
use wire::object::Pack;

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
With `--fill direct` the index gets most of its names while no directory runs. The same code makes
its records, ids and files as in a cluster, but no message goes through a socket, and many names are
stored in one commit. Its files differ from those of a directory in one way: names come in the order
of their keys, and not in any. Then as many names are put through the protocol as are looked up. A
run that is interrupted has to begin anew.")]
pub(crate) struct Options {
    /// Print everything as one JSON object instead of lines
    #[arg(long)]
    json: bool,
    /// How many objects
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    objects: u64,
    /// The size of each object in bytes, up to 64 KiB
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=65536))]
    bytes: u32,
    /// How the index gets them: all by puts, or most without the protocol, which is faster (usual with more than a million that are empty)
    #[arg(long, value_enum)]
    fill: Option<Fill>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fill {
    Direct,
    Puts,
}

/// With more objects than these puts take a while.
const PUTS_MAX: u64 = 1_000_000;
/// Names that are looked up, that are removed, and that are put after a fill: a tenth of all, within this.
const SAMPLE_MAX: u64 = 1_000_000;
/// How often the first names are listed.
const LISTS: usize = 20;
/// A directory that has been killed looks through its databases first.
const STARTS_WITHIN: Duration = Duration::from_secs(1800);
/// For so long names are put before the directory is killed, and when it has listed names again.
const LOADED: Duration = Duration::from_secs(3);
/// Objects with content that are put meanwhile, at most: bricks have room for these.
const LOADED_MAX: u64 = 50_000;
/// The directory's own store in the cluster's folder.
const STORE: &str = "directory.db";

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let fill = options.fill()?;
    let mut bench = Bench {
        cluster: Cluster::start(&place::binary(options.binary.as_deref())?, &spec(options))?,
        shutdown: Shutdown::on_signals().context("cannot watch for signals")?,
        content: vec![7; options.bytes as usize].into(),
    };
    let figures = bench.measure(options, fill)?;
    if options.json {
        println!("{}", figures.json());
    } else {
        figures.print();
    }
    Ok(())
}

impl Options {
    fn fill(&self) -> Result<Fill> {
        match self.fill {
            Some(Fill::Direct) if self.bytes > 0 => {
                bail!("`--fill direct` makes empty objects: no brick would have the content of others")
            }
            Some(fill) => Ok(fill),
            None if self.bytes == 0 && self.objects > PUTS_MAX => Ok(Fill::Direct),
            None => Ok(Fill::Puts),
        }
    }
}

struct Bench {
    cluster: Cluster,
    shutdown: Shutdown,
    content: Payload,
}

impl Bench {
    fn measure(&mut self, options: &Options, fill: Fill) -> Result<Figures> {
        let sample = (options.objects / 10).clamp(1, SAMPLE_MAX);
        let filled = match fill {
            Fill::Direct => Some(self.fill_directly(options.objects)?),
            Fill::Puts => None,
        };
        let (puts, objects) = match fill {
            Fill::Direct => (sample, options.objects + sample),
            Fill::Puts => (options.objects, options.objects),
        };
        let first = objects - puts;
        let puts_per_second =
            self.rate_of(What::Put, names::spread(puts, puts).map(move |number| first + number))?;
        let looks_per_second = self.rate_of(What::Look, names::spread(objects, sample))?;
        let lister = self.list(LISTS)?;
        let list_ms = |at: usize| lister.took.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3);
        let pid = self.cluster.directory.pid();
        let (resident_bytes, peak_bytes) = (process::resident_bytes(pid)?, process::peak_bytes(pid)?);
        let disks_used_bytes = used_bytes(&self.cluster)?;
        let file_bytes = index_bytes(&self.cluster)?;
        let after_end_s = self.until_listed(|daemon| daemon.stop().map(drop))?;
        let after_kill_s = self.until_listed(Daemon::kill)?;
        let resident_again_bytes = process::resident_bytes(self.cluster.directory.pid())?;
        let removes_per_second = self.rate_of(What::Remove, names::spread(objects, sample))?;
        let peak_again_bytes = process::peak_bytes(self.cluster.directory.pid())?;
        let loaded = self.kill_under_load(objects)?;
        Ok(Figures {
            objects,
            object_bytes: options.bytes,
            filled,
            puts,
            puts_per_second,
            looks_per_second,
            removes_per_second,
            first_names: lister.names,
            list_median_ms: list_ms(LISTS / 2),
            list_worst_ms: list_ms(lister.took.len().saturating_sub(1)),
            lists: LISTS,
            resident_bytes,
            peak_bytes,
            resident_again_bytes,
            peak_again_bytes,
            file_bytes,
            disks_used_bytes,
            after_end_s,
            after_kill_s,
            loaded,
        })
    }

    /// Puts so many objects into the directory's index while it does not run.
    fn fill_directly(&mut self, count: u64) -> Result<Filled> {
        self.cluster.directory.stop()?;
        let store = self.cluster.dir.join(STORE);
        ensure!(store.exists(), "the directory's store is not {}", store.display());
        let begun = Instant::now();
        let mut said = begun;
        let shutdown = &self.shutdown;
        let objects = names::in_order(count).take_while(|_| !shutdown.is_requested()).map(empty_object);
        let put = fill_index(&store, &IndexConfig::USUAL, objects, |put| {
            if said.elapsed() > TOLD_EVERY {
                said = Instant::now();
                let per_second = put as f64 / begun.elapsed().as_secs_f64();
                eprintln!("    filling: {put} of {count}, {per_second:.0} a second");
            }
        })?;
        ensure!(put == count, "interrupted after {put} of {count} objects were filled in");
        let per_second = put as f64 / begun.elapsed().as_secs_f64();
        let peak_bytes = process::peak_bytes(std::process::id())?;
        let file_bytes = index_bytes(&self.cluster)?;
        let until_listed_s = self.until_listed(|_| Ok(()))?;
        Ok(Filled { per_second, peak_bytes, file_bytes, until_listed_s })
    }

    /// The same with the names of all these numbers: how many a second.
    fn rate_of(&self, what: What, numbers: impl Iterator<Item = u64> + Send + 'static) -> Result<f64> {
        let mut work = Work::new(what, numbers, self.content.clone());
        let begun = Instant::now();
        let admin = self.cluster.admin_options()?;
        run_objects(&admin.node, &admin.directory, &self.shutdown, &mut work)?;
        if let Some(error) = work.failure {
            bail!("{} failed: {error}", what.name());
        }
        ensure!(!self.shutdown.is_requested(), "interrupted");
        Ok(work.done as f64 / begun.elapsed().as_secs_f64())
    }

    /// Lists the first names so often; what took longest comes last.
    fn list(&self, times: usize) -> Result<Lister> {
        let admin = self.cluster.admin_options()?;
        let mut lister = Lister::new(times);
        run_objects(&admin.node, &admin.directory, &self.shutdown, &mut lister)?;
        lister.took.sort_unstable();
        Ok(lister)
    }

    /// Seconds from the start of a directory that was ended so until names are listed.
    fn until_listed(&mut self, end: impl FnOnce(&mut Daemon) -> Result<()>) -> Result<f64> {
        end(&mut self.cluster.directory)?;
        let started = Instant::now();
        self.cluster.directory.restart()?;
        while self.list(1)?.took.is_empty() {
            ensure!(!self.shutdown.is_requested(), "interrupted");
            if started.elapsed() > STARTS_WITHIN {
                bail!("the directory lists no names {STARTS_WITHIN:?} after its start");
            }
        }
        Ok(started.elapsed().as_secs_f64())
    }

    /// Kills the directory while names with numbers from `first` on are put. Those that were acknowledged have to be there.
    fn kill_under_load(&mut self, first: u64) -> Result<Loaded> {
        let stop = Arc::new(AtomicBool::new(false));
        let (admin, shutdown) = (self.cluster.admin_options()?, self.shutdown.clone());
        let end = if self.content.is_empty() { u64::MAX } else { first + LOADED_MAX };
        let mut work = Work::new(What::Put, first..end, self.content.clone()).enduring(&stop);
        let load = thread::spawn(move || {
            run_objects(&admin.node, &admin.directory, &shutdown, &mut work).map(|()| work)
        });
        thread::sleep(LOADED);
        let until_listed_s = self.until_listed(Daemon::kill);
        thread::sleep(LOADED);
        stop.store(true, Ordering::Relaxed);
        let work = load.join().expect("the load does not panic")?;
        let acknowledged = work.acknowledged;
        let looked_up = (acknowledged.len() as u64).min(SAMPLE_MAX);
        self.rate_of(What::Look, acknowledged.into_iter().take(SAMPLE_MAX as usize))
            .context("of names that had been put when the directory was killed")?;
        Ok(Loaded { puts: work.done, failed: work.failures, looked_up, until_listed_s: until_listed_s? })
    }
}

/// What is put under a number's name.
fn empty_object(number: u64) -> EmptyObject {
    EmptyObject { name: names::name(number), losses: LOSSES, put_ms: PUT_MS }
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
    let copies = 2 * (options.objects + LOADED_MAX) / usual.bricks as u64;
    let disk_bytes = usual.storage.disk_bytes + copies * copy_bytes;
    Spec { storage: Storage { disk_bytes, ..usual.storage }, ..usual }
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
