//! `brickwork attach`: an NBD socket beside the client, which goes on through another gateway when one dies.

use super::{client, daemon};
use crate::config::{self, GatewayFile};
use crate::global::Global;
use anyhow::{Context, Result};
use host::{AttachOptions, Shutdown};
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Serves one volume over NBD on a unix socket, through any live gateway. When a gateway dies, attach continues through another
one within 2 s, and the client sees no error. Prints `ready attach VOLUME listening on SOCKET` when it has found the volume, and
ends with an error if there is none. Clients that connect after a resize see the new size.

With --direct, attach is a gateway itself, for its own client only: it asks the bricks without the way to a gateway and back,
and does a gateway's work (parity, copies to each brick). It needs a gateway's certificate and reads gateway.toml, of which it
uses `directory`, `cluster`, `tls` and `plaintext`. A volume with the data path `direct` is served in no other way. What is read
and written then belongs to the stream of the volume.

Otherwise what is read and written belongs to the stream of the volume, or to the stream that the certificate of client.toml names
(`brickwork cluster token --stream`).

Examples:
  brickwork attach first --socket /run/first.sock &
  brickwork attach first --socket /run/first.sock --direct --config /var/lib/brickwork/gateway.toml
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
    /// Coordinate in this process, without a gateway
    #[arg(long)]
    direct: bool,
}

/// Runs the daemon.
pub fn run(global: &Global, args: Args) -> Result<()> {
    let (node, directory) = match args.direct {
        true => {
            let file: GatewayFile =
                config::load(Some(daemon::config_path(global, "gateway")?), toml::Table::new())?;
            (daemon::node(&file.cluster, file.tls.as_ref(), None)?, file.directory)
        }
        false => {
            let file = client::load(global)?;
            (daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?, file.directory)
        }
    };
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let Args { volume, socket, group, direct } = args;
    let options = AttachOptions { node, directory, volume, socket, group };
    let on_ready: host::OnReady<'_> = Box::new(|ready| daemon::announce(global.json, ready));
    match direct {
        true => host::run_attach_direct(options, &shutdown, on_ready)?,
        false => host::run_attach(options, &shutdown, on_ready)?,
    }
    Ok(())
}
