//! `brickwork gateway`: NBD in front of the bricks; `gateway init` makes one.

use super::brick::parse_brick;
use super::daemon::{self, Joining};
use crate::config::{self, GatewayFile, TlsFile};
use crate::global::Global;
use crate::output;
use crate::security::token::JoinRole;
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use host::{GatewayOptions, NbdOptions, Shutdown};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Prints `ready gateway listening on ADDRESSES` when it serves, and ends cleanly on SIGTERM and SIGINT. You may run any number
of gateways; all serve the same volumes.

Keys of gateway.toml (environment: BRICKWORK_<KEY>; a flag of the same name overrides both):
  listen      HOST:PORT for `brickwork attach`
  advertise   HOST:PORT under which others reach `listen`, if it differs
  directory   HOST:PORT of the directory
  cluster     the cluster's id, 32 hexadecimal digits
  name        what `status`, `volume show` and errors call this gateway                  default gateway-1, gateway-2, ...
  beside      the brick on the same machine, \"brick-3\": clients of volumes of the paths
              coord and amongst ask this gateway for what that brick coordinates          default none
  nbd         NBD endpoints, [\"unix:nbd.sock\", \"tcp:127.0.0.1:10809\"]                   default none
  nbd_group   the group that may use unix endpoints, besides the gateway's own user         default none
  nbd_tls     { ca, cert, key }: NBD over TCP with TLS; clients need a certificate of `ca`   default none
  metrics     HOST:PORT for Prometheus                                                     default none
  tls         { ca, cert, key }, PEM files
  plaintext   true: no TLS to the cluster, loopback only                                   default false

Examples:
  brickwork gateway init --dir /var/lib/brickwork --listen 10.0.0.5:7004 --nbd tcp:10.0.0.5:10809 --join TOKEN
  brickwork gateway --config /var/lib/brickwork/gateway.toml
  nbdinfo --list 'nbd+unix://?socket=/var/lib/brickwork/nbd.sock'"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Join a cluster as a gateway: get a certificate, write gateway.toml
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
    /// Overrides `name`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Overrides `beside`
    #[arg(long, value_name = "BRICK")]
    beside: Option<String>,
    /// Overrides `nbd`; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    nbd: Vec<String>,
    /// Overrides `nbd_group`
    #[arg(long, value_name = "GROUP")]
    nbd_group: Option<String>,
    /// Overrides `metrics`
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// `gateway init`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Without --nbd, NBD is served on a unix socket in DIR that only the user of the gateway may open; --nbd-group lets a
group in. NBD over TCP beyond loopback always speaks TLS, with the certificate of this gateway; its clients need a
certificate of the cluster (`brickwork client init`). TCP on loopback is plain: every local user can then read and
write every volume.

Examples:
  brickwork gateway init --dir gw --join TOKEN
  brickwork gateway init --dir gw --listen 10.0.0.5:7004 --nbd tcp:10.0.0.5:10809 --nbd unix:/run/nbd.sock --join TOKEN")]
pub struct Init {
    /// What joining needs.
    #[command(flatten)]
    pub joining: Joining,
    /// Where the gateway listens for `brickwork attach`
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7004")]
    pub listen: String,
    /// The address under which others reach --listen, if it differs
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// What `status` and errors call this gateway; without it the directory counts gateways
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The brick on the same machine, such as brick-3 (see `brickwork protocol explain coord,seq,none`)
    #[arg(long, value_name = "BRICK")]
    pub beside: Option<String>,
    /// An NBD endpoint, unix:/PATH (unix:PATH lies in DIR) or tcp:HOST:PORT; may be repeated
    #[arg(long, value_name = "ENDPOINT", default_value = "unix:nbd.sock")]
    pub nbd: Vec<String>,
    /// A group whose members may use unix endpoints
    #[arg(long, value_name = "GROUP")]
    pub nbd_group: Option<String>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Some(Command::Init(init)) => print_init(global, &init),
        None => serve(global, args.flags),
    }
}

/// Makes a gateway; returns its configuration and where that is.
pub fn init(args: &Init) -> Result<(GatewayFile, PathBuf)> {
    config::keys::reachable(&args.listen, args.advertise.as_deref()).map_err(anyhow::Error::msg)?;
    let mut addresses: Vec<&str> = args.nbd.iter().map(String::as_str).collect();
    addresses.extend(args.advertise.as_deref());
    let names = daemon::hosts(&addresses);
    ensure!(
        args.joining.join.authority.is_none()
            || !names.is_empty()
            || args.nbd.iter().all(|endpoint| is_local(endpoint)),
        "NBD clients over TLS check the gateway's name, and these endpoints have none; give --advertise HOST:PORT"
    );
    let admission = daemon::join(&args.joining, JoinRole::Gateway, "gateway", names)?;
    let tls = admission.certificate.is_some().then(|| super::cluster::tls_files("gateway"));
    let file = GatewayFile {
        listen: args.listen.clone(),
        advertise: args.advertise.clone(),
        name: args.name.clone(),
        beside: args.beside.clone(),
        directory: admission.directory,
        cluster: admission.cluster,
        nbd_tls: nbd_tls(&args.nbd, tls.as_ref()),
        nbd: args.nbd.clone(),
        nbd_group: args.nbd_group.clone(),
        metrics: None,
        plaintext: tls.is_none(),
        tls,
    };
    config::Configuration::check(&file).map_err(anyhow::Error::msg)?;
    let path = daemon::write_config(&args.joining.dir, "gateway", &file)?;
    Ok((file, path))
}

/// Clients of this machine need no TLS; others must have it.
fn nbd_tls(endpoints: &[String], tls: Option<&TlsFile>) -> Option<TlsFile> {
    if endpoints.iter().all(|endpoint| is_local(endpoint)) { None } else { tls.cloned() }
}

fn is_local(endpoint: &str) -> bool {
    config::keys::is_local(endpoint.strip_prefix("tcp:").unwrap_or(endpoint))
}

fn print_init(global: &Global, args: &Init) -> Result<()> {
    let (file, path) = init(args)?;
    if global.json {
        output::print_json(&json!({ "cluster": file.cluster, "config": path, "nbd": file.nbd }));
    } else {
        println!(
            "This is a gateway of cluster {}.\nStart it:\n  brickwork gateway --config {}\nUse it:",
            file.cluster,
            path.display()
        );
        file.nbd
            .iter()
            .for_each(|endpoint| println!("  nbdinfo --list '{}'", uri(endpoint, &args.joining.dir)));
    }
    Ok(())
}

/// How an NBD client names the endpoint.
fn uri(endpoint: &str, dir: &Path) -> String {
    match endpoint.strip_prefix("unix:") {
        Some(socket) => format!("nbd+unix://?socket={}", dir.join(socket).display()),
        None if is_local(endpoint) => endpoint.replacen("tcp:", "nbd://", 1),
        None => endpoint.replacen("tcp:", "nbds://", 1),
    }
}

fn serve(global: &Global, args: Flags) -> Result<()> {
    let path = daemon::config_path(global, "gateway")?;
    let nbd = (!args.nbd.is_empty()).then(|| toml::Value::from(args.nbd));
    let flags = daemon::flags([
        ("listen", daemon::text(args.listen.as_ref())),
        ("advertise", daemon::text(args.advertise.as_ref())),
        ("directory", daemon::text(args.directory.as_ref())),
        ("name", daemon::text(args.name.as_ref())),
        ("beside", daemon::text(args.beside.as_ref())),
        ("nbd", nbd),
        ("nbd_group", daemon::text(args.nbd_group.as_ref())),
        ("metrics", daemon::text(args.metrics.as_ref())),
    ]);
    let file: GatewayFile = config::load(Some(path), flags)?;
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let options = GatewayOptions {
        node: daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?,
        listen: file.listen,
        advertise: file.advertise,
        name: file.name,
        beside: file.beside.as_deref().map(parse_brick).transpose().context("beside")?,
        directory: file.directory,
        nbd: NbdOptions {
            listen: file.nbd,
            tls: file.nbd_tls.as_ref().map(daemon::tls_files),
            group: file.nbd_group,
        },
    };
    host::run_gateway(options, &shutdown, Box::new(|ready| daemon::announce(global.json, ready)))?;
    Ok(())
}
