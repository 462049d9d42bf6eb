//! `brickwork object`: puts, patches, reads, lists, checks and removes objects.

mod content;
mod get;
mod list;
mod once;
mod patch;
mod put;
mod resume;

use super::daemon;
use crate::config::{self, ClientFile, GatewayFile, TlsFile};
use crate::global::Global;
use crate::security::{certificates, files};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use host::{NodeOptions, ObjectUser, Shutdown, run_objects};
use serde_json::{Value, json};
use wire::{ObjectInfo, ObjectName};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
An object is named BUCKET/KEY. A bucket has 3 to 63 of a-z, 0-9, '.' and '-', and is there as soon as an object is in it; a key
has up to 1024 bytes, in which '/' is a character like any other.

An object is cut into segments of 32 MiB. Each is coded into more fragments than are needed to read it, and these go to as many
bricks as there are; a segment of up to 512 KiB is copied instead. A slow brick delays neither a put nor a get of whole
segments. A put is seen whole or not at all. Whoever reads an object that
is replaced meanwhile reads the old one to its end.

This process coordinates by itself, as `brickwork attach --direct` does: it needs a gateway's certificate, and reads gateway.toml,
of which it uses `directory`, `cluster`, `tls` and `plaintext`.

Examples:
  brickwork object put backup.tar backups/monday.tar --config /var/lib/brickwork/gateway.toml
  brickwork object get backups/monday.tar restored.tar
  brickwork object patch today.log backups/all.log --append
  tar c /home | brickwork object put - backups/home.tar
  brickwork object ls backups
  brickwork object verify backups/monday.tar")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put a file as an object
    Put(put::Args),
    /// Replace a part of an object by a file, or append one to it
    Patch(patch::Args),
    /// Read an object into a file
    Get(get::Args),
    /// List the objects of a bucket
    Ls(list::Args),
    /// Show what is known of an object, and how it is kept
    Stat(once::Stat),
    /// Remove an object
    Rm(once::Remove),
    /// Read objects and check that they are what was put
    Verify(get::Verify),
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Put(args) => put::run(global, args),
        Command::Patch(args) => patch::run(global, args),
        Command::Get(args) => get::run(global, args),
        Command::Ls(args) => list::run(global, &args),
        Command::Stat(args) => once::stat(global, &args),
        Command::Rm(args) => once::remove(global, &args),
        Command::Verify(args) => get::verify(global, args),
    }
}

/// Who asks bricks for fragments.
const NEEDS_A_GATEWAYS: &str = "who reads and puts objects asks the bricks themselves, as a gateway does, and needs a gateway's; `brickwork \
     gateway init` makes one, and --config names its gateway.toml";

/// The way to the cluster, for as long as the verb runs.
struct Way {
    node: NodeOptions,
    directory: String,
    shutdown: Shutdown,
}

impl Way {
    fn find(global: &Global) -> Result<Way> {
        let path = daemon::config_path(global, "gateway")?;
        let is_clients = config::load::<ClientFile>(Some(path), toml::Table::new()).is_ok();
        ensure!(!is_clients, "{} is a client's configuration: {NEEDS_A_GATEWAYS}", path.display());
        let file: GatewayFile = config::load(Some(path), toml::Table::new())?;
        if let Some(TlsFile { cert, .. }) = &file.tls {
            let certificate = certificates::first_certificate(&files::read(cert)?)?;
            let is_clients = host::is_of_client(&certificate);
            ensure!(!is_clients, "{} is a client's certificate: {NEEDS_A_GATEWAYS}", cert.display());
        }
        daemon::start_logs(global);
        let node = daemon::node(&file.cluster, file.tls.as_ref(), None)?;
        let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
        Ok(Way { node, directory: file.directory, shutdown })
    }

    /// Does what `user` wants.
    fn go(&self, user: &mut impl ObjectUser) -> Result<()> {
        Ok(run_objects(&self.node, &self.directory, &self.shutdown, user)?)
    }
}

/// `BUCKET/KEY`.
fn name(text: &str) -> Result<ObjectName, String> {
    let (bucket, key) = text.split_once('/').unwrap_or((text, ""));
    let name = ObjectName { bucket: bucket.to_owned(), key: key.to_owned() };
    name.check().map(|()| name)
}

/// 16 hexadecimal digits.
fn version(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| format!("'{text}' is not a version: it has 16 hexadecimal digits"))
}

fn info_json(name: &ObjectName, info: &ObjectInfo) -> Value {
    json!({
        "bucket": name.bucket,
        "key": name.key,
        "version": format!("{:016x}", info.version.0),
        "bytes": info.bytes,
        "crc32c": format!("{:08x}", info.checksum),
        "put": time(info.put_ms),
    })
}

/// In UTC, to the second.
fn time(ms: u64) -> String {
    let stamp = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX));
    stamp.map_or_else(|_| "unknown".to_owned(), |stamp| stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
