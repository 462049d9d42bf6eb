//! `brickwork disk probe`: how long a real device or file takes, and a model of it.
//!
//! Reading order: this file, [`target`] (what is measured), [`measure`] (how), [`fit`] (the model).

mod fit;
mod measure;
mod target;

use crate::global::Global;
use crate::output;
use anyhow::{Result, ensure};
use fit::Model;
use measure::Cell;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use target::Target;

/// Requests at a time, of [`BLOCK_BYTES`].
const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Request sizes, one at a time.
const SIZES: [usize; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
const BLOCK_BYTES: usize = base::BLOCK;
const SECONDS_MAX: f64 = 600.0;

/// `disk probe`.
#[derive(clap::Args)]
#[command(after_help = "\
Reads at random places, past the page cache, and prints what it measured as a drive's file (TOML): a device of constant
access time, which `brickwork disk show`, the simulator and emulated disks take as any other drive. Reading is all that is
done to PATH: it may hold data, and may be in use, although what uses it then disturbs the measurement.

How long a write takes to be durable is measured only with --write-file, in a new file of 64 MiB that is made for it (on the
file system to be measured), filled, written at random places block by block, each waited for (O_DSYNC), and removed.
Without it the model's writes take as long as its reads.

Measured: 4 KiB reads at depths 1 to 32, and reads of 16 KiB to 1 MiB one at a time, each for an equal part of --seconds.
The model's access time and transfer rate are those of the medians of 4 KiB and of 1 MiB, one at a time. A file's blocks that
were never written read as zeros without the device being asked: probe a file that is full of data, at best much larger than
the device's own cache.

Examples:
  brickwork disk probe /dev/sdb
  brickwork disk probe /dev/nvme0n1 --seconds 20 > nvme.toml && brickwork disk show nvme.toml
  brickwork disk probe /dev/sdb > /var/lib/brickwork/sdb.toml   # and in brick.toml beside it:
    disks = [{ path = \"/dev/sdb\", model = \"sdb.toml\" }]
  brickwork disk probe /var/lib/brickwork/disk --write-file /var/lib/brickwork/probe
  brickwork disk probe /dev/sdb --json | jq '.reads[] | select(.depth == 16).p99_us'")]
pub(super) struct Probe {
    /// A block device or a regular file, of 4 MiB at least
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// How long to measure, 0.1 to 600 seconds for the reads and as much again for the writes
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Measure durable writes too, in this new file, which is removed afterwards
    #[arg(long, value_name = "FILE")]
    write_file: Option<PathBuf>,
}

/// All that was measured.
struct Measured {
    size_bytes: u64,
    reads: Vec<Cell>,
    writes: Option<Cell>,
}

/// Measures, and prints the model.
pub(super) fn probe(global: &Global, args: &Probe) -> Result<()> {
    ensure!(
        (0.1..=SECONDS_MAX).contains(&args.seconds),
        "--seconds is {}; it must be between 0.1 and {SECONDS_MAX}",
        args.seconds
    );
    let measured = measure(args)?;
    let model = Model::of(&measured.reads, measured.writes.as_ref());
    let text = model.toml(&args.path, measured.size_bytes, &measured.reads, measured.writes.as_ref());
    if global.json {
        output::print_json(&to_json(&args.path, &measured, &model, &text));
    } else {
        print!("{text}");
    }
    Ok(())
}

fn measure(args: &Probe) -> Result<Measured> {
    let target = Target::open(&args.path)?;
    if let Some(warning) = target.warning() {
        eprintln!("warning: {warning}");
    }
    let cells: Vec<(usize, usize)> =
        DEPTHS.iter().map(|&depth| (BLOCK_BYTES, depth)).chain(SIZES.iter().map(|&size| (size, 1))).collect();
    let share = Duration::from_secs_f64(args.seconds / cells.len() as f64);
    let bar = output::progress(cells.len() as u64, "reading", false);
    let reads = cells.iter().map(|&(size, depth)| {
        let cell = measure::reads(&target, size, depth, share);
        bar.inc(1);
        cell
    });
    let reads = reads.collect::<Result<_>>()?;
    bar.finish_and_clear();
    let budget = Duration::from_secs_f64(args.seconds);
    let writes = args.write_file.as_deref().map(|path| measure::durable_writes(path, budget)).transpose()?;
    Ok(Measured { size_bytes: target.size_bytes(), reads, writes })
}

fn to_json(path: &Path, measured: &Measured, model: &Model, text: &str) -> Value {
    json!({
        "path": path,
        "size_bytes": measured.size_bytes,
        "reads": measured.reads.iter().map(Cell::to_json).collect::<Vec<_>>(),
        "durable_writes": measured.writes.as_ref().map(Cell::to_json),
        "model": {
            "read_ms": model.read_ms,
            "write_ms": model.write_ms,
            "writes_measured": measured.writes.is_some(),
            "bytes_per_second": model.bytes_per_second,
        },
        "toml": text,
    })
}
