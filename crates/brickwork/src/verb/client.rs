//! `brickwork client`: gives a machine what `attach`, `volume` and `status` need; and how those verbs find it.

use super::daemon::{self, Joining};
use crate::config::{self, ClientFile};
use crate::global::Global;
use crate::output;
use crate::security::certificates;
use crate::security::token::JoinRole;
use anyhow::{Context, Result, bail};
use base::{StreamId, VolumeId};
use clap::Subcommand;
use host::AdminOptions;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{AdminReply, AdminRequest, ClusterStatus, StatusPart, StreamsStatus, VolumeInfo};

/// How long a command waits for the directory.
const PATIENCE: Duration = Duration::from_secs(20);

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Join a cluster as a client: get a certificate, write client.toml
    Init(Init),
}

/// `client init`.
#[derive(clap::Args)]
#[command(after_help = "\
Keys of client.toml (environment: BRICKWORK_<KEY>):
  directory   HOST:PORT of the directory
  cluster     the cluster's id, 32 hexadecimal digits
  metrics     HOST:PORT for Prometheus, of `attach`       default none
  tls         { ca, cert, key }, PEM files
  plaintext   true: no TLS, loopback only                 default false

A token that was made with --stream gives a certificate that names the stream: what this client reads and writes counts for it,
whichever stream the volume belongs to. The command prints the stream.

Examples:
  brickwork client init --dir ~/.config/brickwork --join TOKEN
  brickwork attach first --socket /run/first.sock         finds ~/.config/brickwork/client.toml")]
struct Init {
    #[command(flatten)]
    joining: Joining,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    let Command::Init(init) = args.command;
    let admission = daemon::join(&init.joining, JoinRole::Client, "client", Vec::new())?;
    let plaintext = admission.certificate.is_none();
    let path =
        super::cluster::write_client(&init.joining.dir, &admission.directory, &admission.cluster, plaintext)?;
    let _ = std::fs::remove_file(init.joining.dir.join("join.nonce"));
    let stream = match &admission.certificate {
        Some(certificate) => host::stream_named_by(&certificates::first_certificate(certificate)?),
        None => None,
    };
    let stream = stream.map(|stream| stream_name(&path, stream));
    if global.json {
        output::print_json(&json!({ "cluster": admission.cluster, "config": path, "stream": stream }));
        return Ok(());
    }
    println!("This machine is a client of cluster {}.", admission.cluster);
    if let Some(stream) = stream {
        println!("What it reads and writes belongs to stream '{stream}'.");
    }
    println!("Use it:\n  export BRICKWORK_CONFIG={}", path.display());
    Ok(())
}

/// What the stream is called. Where the directory cannot be asked now, or does not know the stream any more, its number says.
fn stream_name(config: &Path, stream: StreamId) -> String {
    let file = config::load(Some(config), toml::Table::new());
    let status = file.map_err(Into::into).and_then(|file| streams_with(&file));
    let named = status.ok().and_then(|status| status.table.get(stream).map(|info| info.name.clone()));
    named.unwrap_or_else(|| stream.to_string())
}

/// The configuration of a client: the one that is named, or the first found of `./client.toml`,
/// `~/.config/brickwork/client.toml` and `/etc/brickwork/client.toml`.
pub fn load(global: &Global) -> Result<ClientFile> {
    let found = global.config.clone().or_else(|| places().into_iter().find(|path| path.exists()));
    let config = config::load(found.as_deref(), toml::Table::new());
    if found.is_none() {
        return config.context(
            "no client.toml here, in ~/.config/brickwork or /etc/brickwork; name one with --config or BRICKWORK_CONFIG \
             (`brickwork cluster init` writes D/admin/client.toml, `brickwork client init` makes one)",
        );
    }
    Ok(config?)
}

/// Asks the directory, for a verb that prints what comes of it, or asks again: it ends with its reader, though not while
/// it asks.
pub fn call(global: &Global, request: AdminRequest) -> Result<AdminReply> {
    output::outlive_reader();
    let reply = call_with(&load(global)?, request);
    output::end_with_reader();
    reply
}

/// How the cluster is.
pub fn status(global: &Global) -> Result<ClusterStatus> {
    let (mut whole, mut next) = (ClusterStatus::default(), Some(VolumeId(0)));
    while let Some(first) = next {
        next = whole
            .take_page(status_of(call(global, AdminRequest::Status { part: StatusPart::From(first) })?)?);
    }
    Ok(whole)
}

/// How the cluster is, with `most` bricks, gateways and volumes at most: those first that are not well. A directory of an earlier release
/// answers with all.
pub fn summary(global: &Global, most: u32) -> Result<ClusterStatus> {
    status_of(call(global, AdminRequest::Status { part: StatusPart::Summary { most } })?)
}

/// All volumes, in the order of their ids.
pub fn volumes(global: &Global) -> Result<Vec<VolumeInfo>> {
    let mut volumes: Vec<VolumeInfo> = Vec::new();
    loop {
        let from = volumes.last().map_or(VolumeId(0), |last| VolumeId(last.id.0 + 1));
        let AdminReply::Volumes(page) = call(global, AdminRequest::ListVolumes { from: Some(from) })? else {
            bail!("the directory answered something else; it is of another version");
        };
        // A directory of an earlier release answers with all, whatever is asked.
        if page.first().is_none_or(|first| first.id < from) {
            return Ok(volumes);
        }
        volumes.extend(page);
    }
}

/// The status that the directory answered with.
pub fn status_of(reply: AdminReply) -> Result<ClusterStatus> {
    match reply {
        AdminReply::Status(status) => Ok(*status),
        _ => bail!("the directory answered something else; it is of another version"),
    }
}

/// The streams that the directory answered with.
pub fn streams_of(reply: AdminReply) -> Result<StreamsStatus> {
    match reply {
        AdminReply::Streams(status) => Ok(*status),
        _ => bail!("the directory answered something else; it is of another version"),
    }
}

/// The streams of the directory that `file` names.
pub fn streams_with(file: &ClientFile) -> Result<StreamsStatus> {
    streams_of(call_with(file, AdminRequest::ListStreams)?)
}

/// Asks the directory that `file` names.
pub fn call_with(file: &ClientFile, request: AdminRequest) -> Result<AdminReply> {
    let node = daemon::node(&file.cluster, file.tls.as_ref(), None)?;
    let options = AdminOptions { node, directory: file.directory.clone(), timeout: PATIENCE };
    Ok(host::admin_call(&options, request)?)
}

fn places() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config/brickwork/client.toml"));
    [Some("client.toml".into()), home, Some("/etc/brickwork/client.toml".into())]
        .into_iter()
        .flatten()
        .collect()
}
