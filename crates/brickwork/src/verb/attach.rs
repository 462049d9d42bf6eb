//! `brickwork attach`: an NBD socket beside the client, which goes on through another gateway when one dies.

use super::{client, daemon};
use crate::global::Global;
use anyhow::{Context, Result};
use host::{AttachOptions, Shutdown};
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Serves one volume over NBD on a unix socket, through any live gateway. When a gateway dies, attach continues through another
one within 2 s, and the client sees no error. Prints `ready attach VOLUME listening on SOCKET` when it serves.

What is read and written belongs to the stream of the volume, or to the stream that the certificate of client.toml names
(`brickwork cluster token --stream`).

Examples:
  brickwork attach first --socket /run/first.sock &
  nbdinfo 'nbd+unix:///first?socket=/run/first.sock'
  qemu-system-x86_64 -drive file=nbd:unix:/run/first.sock:exportname=first,format=raw
  fio --name=try --ioengine=nbd --uri='nbd+unix:///first?socket=/run/first.sock' --rw=randrw --bs=4k --size=64m")]
pub struct Args {
    /// The volume
    volume: String,
    /// The unix socket to listen on
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// A group whose members may use the socket too; otherwise only the user who runs this may
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

/// Runs the daemon.
pub fn run(global: &Global, args: Args) -> Result<()> {
    let file = client::load(global)?;
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let options = AttachOptions {
        node: daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?,
        directory: file.directory,
        volume: args.volume,
        socket: args.socket,
        group: args.group,
    };
    host::run_attach(options, &shutdown, Box::new(|ready| daemon::announce(global.json, ready)))?;
    Ok(())
}
