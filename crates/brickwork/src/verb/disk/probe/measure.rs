//! Measuring: as many threads as requests are to be under way, each asking for one after the other.

use super::target::Target;
use crate::security::random;
use anyhow::{Context, Result, ensure};
use base::Rng;
use host::buffer::AlignedBuffer;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Requests of one thread at most, so that memory is bounded however fast the device is.
const REQUESTS_MAX: usize = 1_000_000;
const WRITE_FILE_BYTES: u64 = 64 << 20;
const FILL_BYTES: usize = 1 << 20;

/// Requests of one size, so many at a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) size_bytes: usize,
    pub(super) depth: usize,
    pub(super) requests: usize,
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) per_second: f64,
}

impl Cell {
    /// From all latencies, and the time that they took together.
    pub(super) fn new(size_bytes: usize, depth: usize, mut latencies: Vec<Duration>, took: Duration) -> Cell {
        latencies.sort_unstable();
        let us = |latency: Duration| latency.as_secs_f64() * 1e6;
        let at = |share: f64| {
            let index = (latencies.len() as f64 * share).ceil() as usize;
            us(latencies[index.saturating_sub(1)])
        };
        Cell {
            size_bytes,
            depth,
            requests: latencies.len(),
            mean_us: us(latencies.iter().sum::<Duration>()) / latencies.len() as f64,
            p50_us: at(0.5),
            p99_us: at(0.99),
            per_second: latencies.len() as f64 / took.as_secs_f64(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "size_bytes": self.size_bytes,
            "depth": self.depth,
            "requests": self.requests,
            "mean_us": self.mean_us,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "per_second": self.per_second,
        })
    }
}

/// Reads of `size` bytes at random places, `depth` at a time, for `budget`.
pub(super) fn reads(target: &Target, size: usize, depth: usize, budget: Duration) -> Result<Cell> {
    let start = Instant::now();
    let end = start + budget;
    let latencies = std::thread::scope(|scope| {
        let reader = |_| {
            scope.spawn(move || {
                let mut buffer = AlignedBuffer::new(size);
                repeat(target.size_bytes(), size, end, |offset| target.read(offset, &mut buffer))
            })
        };
        let readers: Vec<_> = (0..depth).map(reader).collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, Result<Vec<Duration>>>| {
            reader.join().expect("a reader does not panic")
        };
        readers.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    Ok(Cell::new(size, depth, latencies.concat(), start.elapsed()))
}

/// Durable writes of a block at random places, one at a time, for `budget`, in a new file that is removed afterwards.
pub(super) fn durable_writes(path: &Path, budget: Duration) -> Result<Cell> {
    let file = create(path)?;
    let result = write_at_random(&file, budget).with_context(|| format!("cannot write '{}'", path.display()));
    let removed = std::fs::remove_file(path).with_context(|| format!("cannot remove '{}'", path.display()));
    let cell = result?;
    removed.map(|()| cell)
}

#[expect(clippy::disallowed_methods, reason = "a file that is measured, written past all caches and removed")]
fn create(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(libc::O_DIRECT | libc::O_DSYNC);
    options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::EEXIST) => anyhow::anyhow!(
            "'{}' exists, and is not overwritten: --write-file wants the name of a new file",
            path.display()
        ),
        Some(libc::EINVAL) => anyhow::anyhow!("the file system of '{}' has no direct I/O", path.display()),
        _ => anyhow::Error::new(error).context(format!("cannot create '{}'", path.display())),
    })
}

fn write_at_random(file: &File, budget: Duration) -> Result<Cell> {
    let mut fill = AlignedBuffer::new(FILL_BYTES);
    Rng::with_seed(u64::from_le_bytes(random())).fill(&mut fill);
    for offset in (0..WRITE_FILE_BYTES).step_by(FILL_BYTES) {
        file.write_all_at(&fill, offset)?;
    }
    file.sync_all()?;
    let start = Instant::now();
    let block = &fill[..super::BLOCK_BYTES];
    let write = |offset| file.write_all_at(block, offset).map_err(anyhow::Error::new);
    let latencies = repeat(WRITE_FILE_BYTES, super::BLOCK_BYTES, start + budget, write)?;
    Ok(Cell::new(super::BLOCK_BYTES, 1, latencies, start.elapsed()))
}

/// Asks at random places, once at least, until `end`; how long each took.
fn repeat(
    space_bytes: u64,
    size: usize,
    end: Instant,
    mut ask: impl FnMut(u64) -> Result<()>,
) -> Result<Vec<Duration>> {
    let places = space_bytes / size as u64;
    ensure!(places > 0, "{space_bytes} bytes have no room for a request of {size}");
    let mut rng = Rng::with_seed(u64::from_le_bytes(random()));
    let mut latencies = Vec::new();
    let mut now = Instant::now();
    while latencies.is_empty() || (now < end && latencies.len() < REQUESTS_MAX) {
        ask(rng.u64(..places) * size as u64)?;
        let then = Instant::now();
        latencies.push(then - now);
        now = then;
    }
    Ok(latencies)
}
