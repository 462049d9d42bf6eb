//! `brickwork brick`: a storage server; `brick init` makes one.

use super::daemon::{self, Joining};
use crate::args::Global;
use crate::config::keys::IoChoice;
use crate::config::{self, BrickFile, Bytes, DiskFile, keys};
use crate::output;
use crate::security::token::JoinRole;
use anyhow::{Context, Result, anyhow, ensure};
use base::BrickId;
use clap::Subcommand;
use host::{BrickOptions, DiskIdentity, DiskSpec, IoEngine, Shutdown};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

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
  disks          [{ path, size }]: files or block devices, formatted by `brick init`; size in bytes or \"10GiB\"
  cache_bytes    memory for cached blocks, over all disks                   default 256MiB
  journal_bytes  journal on each disk, in force when it is formatted        default by its size
  io             \"auto\", \"io_uring\" or \"plain\"                              default \"auto\"
  labels         failure domains, { host = \"a\", rack = \"2\" }                default { host = this machine }
  metrics        HOST:PORT for Prometheus                                   default none
  tls            { ca, cert, key }, PEM files
  plaintext      true: no TLS, loopback only                                default false

Examples:
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
    Init(Init),
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
    /// Overrides `io`: auto, io_uring or plain
    #[arg(long, value_name = "HOW")]
    io: Option<String>,
    /// Overrides `metrics`
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// `brick init`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A disk is a block device, or a file: a file that does not exist is made with the size behind the colon. A disk on which
there is something (a file system, another brick) is refused, unless --force is given.

Examples:
  brickwork brick init --dir /var/lib/brickwork --disk /dev/sdb --disk /dev/sdc --listen 10.0.0.2:7003 --join TOKEN
  brickwork brick init --dir b0 --disk b0/disk:10GiB --label host=a --label rack=2 --join TOKEN")]
pub struct Init {
    /// What joining needs.
    #[command(flatten)]
    pub joining: Joining,
    /// A disk: PATH of a block device or file, or PATH:SIZE to make a file; may be repeated
    #[arg(long = "disk", value_name = "PATH[:SIZE]", required = true, value_parser = parse_disk)]
    pub disks: Vec<DiskFile>,
    /// Where the brick listens
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7003")]
    pub listen: String,
    /// The address that others use for --listen, when it is not the same
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// A failure domain, such as host=a or rack=2; copies go to different ones; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Memory for cached blocks, over all disks
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub cache_bytes: Bytes,
    /// Journal on each disk; what suits the disk when absent
    #[arg(long, value_name = "SIZE")]
    pub journal_bytes: Option<Bytes>,
    /// Overwrite disks on which there is something
    #[arg(long)]
    pub force: bool,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Some(Command::Init(init)) => print_init(global, &init),
        None => serve(global, args.flags),
    }
}

/// Makes a brick; returns its configuration and where that is.
pub fn init(args: &Init) -> Result<(BrickFile, PathBuf)> {
    if !args.force {
        args.disks.iter().try_for_each(require_blank)?;
    }
    let admission = daemon::join(&args.joining, JoinRole::Brick, "brick", Vec::new())?;
    let id = admission.brick.context("the directory gave this brick no id; it is of another version")?;
    let file = BrickFile {
        listen: args.listen.clone(),
        advertise: args.advertise.clone(),
        directory: admission.directory,
        cluster: admission.cluster,
        id,
        cache_bytes: args.cache_bytes,
        journal_bytes: args.journal_bytes,
        io: IoChoice::Auto,
        metrics: None,
        plaintext: admission.certificate.is_none(),
        disks: args.disks.iter().map(absolute).collect::<Result<_>>()?,
        labels: labels(&args.labels),
        tls: admission.certificate.is_some().then(|| super::cluster::tls_files("brick")),
    };
    config::Configuration::check(&file).map_err(anyhow::Error::msg)?;
    format(&file)?;
    let path = daemon::write_config(&args.joining.dir, "brick", &file)?;
    Ok((file, path))
}

fn format(file: &BrickFile) -> Result<()> {
    for (index, disk) in (0..).zip(&file.disks) {
        let identity = DiskIdentity {
            cluster: keys::cluster_id(&file.cluster).map_err(anyhow::Error::msg)?,
            brick: BrickId(file.id),
            index,
            journal_bytes: file.journal_bytes.map(|bytes| bytes.0),
        };
        host::format_disk(&spec(disk), &identity).context("cannot make the brick's disks")?;
    }
    Ok(())
}

/// Refuses a disk on which there is something: a file system, a partition table, another brick.
fn require_blank(disk: &DiskFile) -> Result<()> {
    let path = disk.path.display();
    let mut start = vec![0; 8192];
    let read = match File::open(&disk.path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read the disk {path}")),
        Ok(mut file) => file.read(&mut start).with_context(|| format!("cannot read the disk {path}"))?,
    };
    ensure!(
        start[..read].iter().all(|&byte| byte == 0),
        "{path} holds data (a file system, a partition table or another brick); give --force if all of it may be lost"
    );
    Ok(())
}

fn print_init(global: &Global, args: &Init) -> Result<()> {
    let (file, path) = init(args)?;
    if global.json {
        output::print_json(&json!({ "id": file.id, "cluster": file.cluster, "config": path }));
    } else {
        println!(
            "This is brick-{} of cluster {}, with {}.",
            file.id,
            file.cluster,
            output::count(file.disks.len() as u64, "disk")
        );
        println!("Start it:\n  brickwork brick --config {}", path.display());
    }
    Ok(())
}

fn serve(global: &Global, args: Flags) -> Result<()> {
    let path = daemon::config_path(global, "brick")?;
    let flags = daemon::flags([
        ("listen", daemon::text(args.listen.as_ref())),
        ("advertise", daemon::text(args.advertise.as_ref())),
        ("directory", daemon::text(args.directory.as_ref())),
        ("cache_bytes", args.cache_bytes.map(|bytes| toml::Value::String(bytes.to_string()))),
        ("io", daemon::text(args.io.as_ref())),
        ("metrics", daemon::text(args.metrics.as_ref())),
    ]);
    let file: BrickFile = config::load(Some(path), flags)?;
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let options = BrickOptions {
        node: daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?,
        id: BrickId(file.id),
        listen: file.listen,
        advertise: file.advertise,
        directory: file.directory,
        disks: file.disks.iter().map(spec).collect(),
        io: engine(file.io),
        cache_bytes: file.cache_bytes.0,
        labels: file.labels.into_iter().collect(),
    };
    host::run_brick(options, &shutdown, |ready| daemon::announce(global.json, ready))?;
    Ok(())
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

/// The configuration may be read from elsewhere than where this ran.
fn absolute(disk: &DiskFile) -> Result<DiskFile> {
    let path = std::path::absolute(&disk.path)
        .with_context(|| format!("disk '{}' is no path", disk.path.display()))?;
    Ok(DiskFile { path, size: disk.size })
}

/// Bricks on one machine fail together, so that the machine is a failure domain unless the operator names others.
fn labels(given: &[(String, String)]) -> BTreeMap<String, String> {
    if !given.is_empty() {
        return given.iter().cloned().collect();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { BTreeMap::new() } else { BTreeMap::from([("host".to_owned(), name.to_owned())]) }
}

fn parse_disk(text: &str) -> Result<DiskFile> {
    match text.rsplit_once(':') {
        Some((path, size)) if !path.is_empty() => {
            let size = size.parse().with_context(|| format!("in '{text}', behind the colon"))?;
            Ok(DiskFile { path: path.into(), size: Some(size) })
        }
        _ if text.is_empty() => Err(anyhow!("a disk needs a path")),
        _ => Ok(DiskFile { path: text.into(), size: None }),
    }
}

fn parse_label(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(anyhow!("'{text}' is not a label; write host=a")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_and_labels_are_read() {
        assert_eq!(parse_disk("/dev/sdb").expect("device"), DiskFile { path: "/dev/sdb".into(), size: None });
        let file = DiskFile { path: "a:b/disk".into(), size: Some(Bytes(1 << 30)) };
        assert_eq!(parse_disk("a:b/disk:1GiB").expect("file"), file);
        assert!(parse_disk("disk:huge").is_err());
        assert!(parse_label("host").is_err());
        assert_eq!(labels(&[("rack".to_owned(), "2".to_owned())]).get("rack").map(String::as_str), Some("2"));
    }
}
