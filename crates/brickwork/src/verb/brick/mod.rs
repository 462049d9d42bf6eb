//! `brickwork brick`: a storage server.
//!
//! Reading order: this file (the daemon), [`init`] (making one, and its disks), [`room`] (for these), [`members`] (all bricks of a cluster, and
//! which of them take part).

mod init;
mod members;
mod room;

pub use init::{Init, init};
pub(super) use members::parse_brick;

use super::daemon;
use crate::config::keys::IoChoice;
use crate::config::{self, BrickFile, Bytes, DiskFile};
use crate::global::Global;
use anyhow::{Context, Result};
use base::{BLOCK, BrickId};
use clap::Subcommand;
use host::{BrickOptions, Calibration, DiskSpec, IoEngine, Shutdown};
use model::drive::AccessTime;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Prints `ready brick-3 listening on ADDRESS` when it serves; ends cleanly on SIGTERM and SIGINT.

Keys of brick.toml (environment: BRICKWORK_<KEY>; a flag of the same name wins):
  listen         HOST:PORT for gateways and other bricks
  advertise      HOST:PORT that others use for `listen`, when it is not the same
  directory      HOST:PORT of the directory
  cluster        the cluster's id, 32 hexadecimal digits
  id             this brick's id, given by `brick init`
  disks          [{ path, size, model }]: files or block devices, formatted by `brick init`; size in bytes or
                 \"10GiB\"; model: what `disk probe` printed of it, a file, or a drive of `disk list`
  cache_bytes    memory for cached blocks, over all disks                   default 256MiB
  journal_bytes  journal on each disk, in force when it is formatted        default by its size
  destage_bytes  journalled content at which a disk brings it home         default 4MiB
  io             \"auto\", \"io_uring\" or \"plain\"                              default \"auto\"
  emulation      a file that makes the disks look slower than they are (for tests), read again
                 when it changes: late_ms = 20                          default none
  labels         failure domains, { host = \"a\", rack = \"2\" }                default { host = this machine }
  metrics        HOST:PORT for Prometheus                                   default none
  tls            { ca, cert, key }, PEM files
  plaintext      true: no TLS, loopback only                                default false

With a verb it is an operator's command instead: list, evict, forget, readmit, replace.

Examples:
  brickwork brick list
  brickwork brick init --dir /var/lib/brickwork --disk /dev/sdb --listen 10.0.0.2:7003 --join TOKEN
  brickwork brick --config /var/lib/brickwork/brick.toml
  BRICKWORK_CACHE_BYTES=4GiB brickwork brick --config brick.toml --metrics 127.0.0.1:9101"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Join a cluster as a brick: get an id and a certificate, format disks, write brick.toml
    Init(Box<Init>),
    /// Format exchanged disks of this machine's brick
    Format(init::Format),
    /// List all bricks and how they are
    #[command(after_help = members::LIST_HELP)]
    List,
    /// Take a brick out of all groups for good; its blocks and fragments are made again on other bricks
    Evict(members::Evict),
    /// Remove a brick that is gone from the cluster's records
    Forget(members::Forget),
    /// Let an evicted brick take part again
    Readmit(members::Readmit),
    /// Rebuild the blocks of a brick onto another one, now
    Replace(members::Replace),
}

#[derive(clap::Args)]
struct Flags {
    /// Overrides `listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Overrides `advertise`
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Overrides `directory`
    #[arg(long, value_name = "HOST:PORT")]
    directory: Option<String>,
    /// Overrides `cache_bytes`
    #[arg(long, value_name = "SIZE")]
    cache_bytes: Option<Bytes>,
    /// Overrides `destage_bytes`
    #[arg(long, value_name = "SIZE")]
    destage_bytes: Option<Bytes>,
    /// Overrides `io`: auto, io_uring or plain
    #[arg(long, value_name = "HOW")]
    io: Option<String>,
    /// Overrides `emulation`: the file that says how slow the disks look
    #[arg(long, value_name = "FILE")]
    emulation: Option<PathBuf>,
    /// Overrides `metrics`
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match args.command {
        Some(Command::Init(args)) => init::print_init(global, &args).map(done),
        Some(Command::Format(args)) => init::format_exchanged(global, &args).map(done),
        Some(Command::List) => members::list(global).map(done),
        Some(Command::Evict(args)) => members::evict(global, &args).map(done),
        Some(Command::Forget(args)) => members::forget(global, &args).map(done),
        Some(Command::Readmit(args)) => members::readmit(global, &args).map(done),
        Some(Command::Replace(args)) => members::replace(global, &args),
        None => serve(global, args.flags).map(done),
    }
}

fn serve(global: &Global, args: Flags) -> Result<()> {
    let path = daemon::config_path(global, "brick")?;
    let flags = daemon::flags([
        ("listen", daemon::text(args.listen.as_ref())),
        ("advertise", daemon::text(args.advertise.as_ref())),
        ("directory", daemon::text(args.directory.as_ref())),
        ("cache_bytes", args.cache_bytes.map(|bytes| toml::Value::String(bytes.to_string()))),
        ("destage_bytes", args.destage_bytes.map(|bytes| toml::Value::String(bytes.to_string()))),
        ("io", daemon::text(args.io.as_ref())),
        ("emulation", args.emulation.as_deref().map(absolute).transpose()?),
        ("metrics", daemon::text(args.metrics.as_ref())),
    ]);
    let file: BrickFile = config::load(Some(path), flags)?;
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    host::run_brick(options(file)?, &shutdown, Box::new(|ready| daemon::announce(global.json, ready)))?;
    Ok(())
}

/// The configuration as the host takes it.
fn options(file: BrickFile) -> Result<BrickOptions> {
    Ok(BrickOptions {
        node: daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?,
        id: BrickId(file.id),
        listen: file.listen,
        advertise: file.advertise,
        directory: file.directory,
        disks: file.disks.iter().map(spec).collect(),
        calibrations: file.disks.iter().map(calibration).collect::<Result<_>>()?,
        io: engine(file.io),
        destage_bytes: file.destage_bytes.map(|bytes| bytes.0),
        emulation: file.emulation,
        cache_bytes: file.cache_bytes.0,
        labels: file.labels.into_iter().collect(),
    })
}

/// A path of the command line begins where that was typed, not where the configuration is.
fn absolute(path: &Path) -> Result<toml::Value> {
    let path = std::path::absolute(path)?;
    let text = path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?;
    Ok(toml::Value::String(text.to_owned()))
}

fn engine(io: IoChoice) -> IoEngine {
    match io {
        IoChoice::Auto => IoEngine::Auto,
        IoChoice::IoUring => IoEngine::IoUring,
        IoChoice::Plain => IoEngine::Plain,
    }
}

fn spec(disk: &DiskFile) -> DiskSpec {
    DiskSpec { path: disk.path.clone(), size_bytes: disk.size.map(|size| size.0) }
}

/// What its model says of a disk, so that what it bids for reads is right from the first one on, and for reads of all sizes.
fn calibration(disk: &DiskFile) -> Result<Calibration> {
    let Some(name) = &disk.model else { return Ok(Calibration::default()) };
    let model = crate::verb::disk::model_of(name)
        .with_context(|| format!("the model of the disk {}", disk.path.display()))?;
    let AccessTime { read_ns, bytes_per_second, .. } = model.mean_access();
    let block_ns = bytes_per_second.map_or(0, |rate| (BLOCK as f64 / rate * 1e9) as u64);
    Ok(Calibration { access_ns: read_ns, block_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reads::distribute::claim::estimate::Estimate;

    /// The other half, from the calibration to the bid that others are told, is tested with the brick's machine.
    #[test]
    fn a_model_in_brick_toml_is_what_its_disk_bids_by() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("brick.toml");
        let text = "listen = \"127.0.0.1:7003\"\ndirectory = \"127.0.0.1:7001\"\nid = 3\nplaintext = true\n\
            cluster = \"0102030405060708090a0b0c0d0e0f10\"\n\
            disks = [{ path = \"/a\", model = \"quantum-atlas-10k\" }, { path = \"/b\" }]\n";
        std::fs::write(&path, text).expect("written");
        let file: BrickFile = config::load(Some(&path), toml::Table::new()).expect("a configuration");
        let options = options(file).expect("options");
        let bids: Vec<u64> =
            options.calibrations.iter().map(|disk| Estimate::new(disk.access_ns).next_ns()).collect();
        let drive = crate::verb::disk::model_of("quantum-atlas-10k").expect("a drive").mean_access().read_ns;
        assert_eq!(bids, [drive, Calibration::default().access_ns]);
        assert!(drive > 3_000_000, "a drive with an arm takes milliseconds: {drive} ns");
    }
}
