//! `brickwork directory`: the metadata service, and the service with which machines join; [`rebuild`] makes a lost one anew.

mod rebuild;

use super::{cluster, daemon};
use crate::config::{self, DirectoryFile};
use crate::global::Global;
use crate::join::service::{self, Admit, JoinService};
use crate::security::{Authority, Role, certificates, files};
use anyhow::{Context, Result};
use base::BrickId;
use clap::Subcommand;
use host::{AdminOptions, DirectoryOptions, Shutdown};
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use wire::{AdminReply, AdminRequest};

/// Arguments.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Prints `ready directory listening on ADDRESS` when it serves, and ends cleanly on SIGTERM and SIGINT. A cluster has one
directory. While the directory is away, I/O on open volumes continues. Nothing else can be opened, created or changed, and writes
to the groups of a brick that dies in that time wait. If its store is lost: `brickwork directory rebuild`.

Keys of directory.toml (environment: BRICKWORK_<KEY>):
  listen        HOST:PORT for bricks, gateways and operators
  join_listen   HOST:PORT for machines with a join token
  advertise     HOST:PORT under which others reach `listen`, if it differs
  cluster       the cluster's id, 32 hexadecimal digits
  name          the cluster's name                                          default \"brickwork\"
  store         file of the directory's own store                           default \"directory.db\"
  authority     directory with ca.pem, ca.key and tokens.json               default \".\"
  lease_ms      milliseconds a brick trusts its views after its last word   default 300
  rebuild_after how long a brick may be away before it is rebuilt           default 10m
  stand_ins     false: no spare brick takes new writes of one that is away  default true
  rebuild_rate  bytes a second that a brick may fetch                       default 256MiB
  scrub_every   time between two scrubs of a brick, or off                  default 7d
  scrub_rate    bytes a second that a brick reads at most to check          default 32MiB
  metrics       HOST:PORT for Prometheus                                    default none
  tls           { ca, cert, key }, PEM files
  plaintext     true: no TLS, loopback only                                 default false

Examples:
  brickwork directory --config /etc/brickwork/directory.toml
  BRICKWORK_METRICS=127.0.0.1:9100 brickwork directory --config directory.toml --log-format json"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Command {
    /// Make the store of a lost directory anew from what the bricks know
    Rebuild(rebuild::Args),
}

#[derive(clap::Args)]
struct Flags {
    /// Overrides `listen`
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Overrides `join_listen`
    #[arg(long, value_name = "HOST:PORT")]
    join_listen: Option<String>,
    /// Overrides `metrics`
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    match args.command {
        Some(Command::Rebuild(args)) => rebuild::run(global, &args),
        None => serve(global, &args.flags).map(|()| ExitCode::SUCCESS),
    }
}

fn serve(global: &Global, args: &Flags) -> Result<()> {
    let path = daemon::config_path(global, "directory")?;
    let flags = daemon::flags([
        ("listen", daemon::text(args.listen.as_ref())),
        ("join_listen", daemon::text(args.join_listen.as_ref())),
        ("metrics", daemon::text(args.metrics.as_ref())),
    ]);
    let file: DirectoryFile = config::load(Some(path), flags)?;
    daemon::start_logs(global);
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let node = daemon::node(&file.cluster, file.tls.as_ref(), file.metrics.as_ref())?;
    let lease_ns = file.lease_ms * 1_000_000;
    let anyone_administers = file.tls.is_none();
    let config = roles::directory::DirectoryConfig {
        lease_ns,
        care: file.care(),
        stand_ins: file.stand_ins,
        anyone_administers,
        ..Default::default()
    };
    let options = DirectoryOptions { node, listen: file.listen.clone(), store: file.store.clone(), config };
    let listener = TcpListener::bind(&file.join_listen).with_context(|| {
        format!("cannot listen for joining machines on {}; is another directory running?", file.join_listen)
    })?;
    let service = join_service(&file, &options)?;
    service::serve(service, listener)?;
    host::run_directory(options, &shutdown, Box::new(|ready| daemon::announce(global.json, ready)))?;
    Ok(())
}

/// The service asks its own directory as any operator does.
fn join_service(file: &DirectoryFile, options: &DirectoryOptions) -> Result<JoinService> {
    let admin = file.authority.join("admin");
    let mut node = options.node.clone();
    node.metrics = None;
    if file.tls.is_some() {
        renew_operators_certificate(&file.authority)?;
        let mut tls = cluster::tls_files("client");
        for path in [&mut tls.ca, &mut tls.cert, &mut tls.key] {
            *path = admin.join(&*path);
        }
        node.security = host::Security::Tls(daemon::tls_files(&tls));
    }
    let call = AdminOptions { node, directory: file.listen.clone(), timeout: Duration::from_secs(5) };
    Ok(JoinService {
        cluster: file.cluster.clone(),
        directory: cluster::reachable(file)?,
        authority: file.authority.clone(),
        identity: file.tls.as_ref().map(|tls| (tls.cert.clone(), tls.key.clone())),
        admit: admit(call),
    })
}

/// Releases before operators had certificates of their own wrote a client's beside the authority, for the same use.
fn renew_operators_certificate(authority: &Path) -> Result<()> {
    let admin = authority.join("admin");
    let pem = files::read(&admin.join("client.pem"))?;
    if host::is_operators(&certificates::first_certificate(&pem)?) {
        return Ok(());
    }
    Authority::open(authority)?.issue(&admin, "client", Role::Operator, &[])?;
    tracing::info!(
        folder = %admin.display(),
        "an earlier release wrote a client's certificate for the operator; it is an operator's now. Copies elsewhere are still clients': copy \
         the folder again, or join as an operator (`brickwork cluster token --role operator`)"
    );
    Ok(())
}

fn admit(call: AdminOptions) -> Admit {
    Box::new(move |nonce| -> Result<BrickId, String> {
        match host::admin_call(&call, AdminRequest::AdmitBrick { nonce }) {
            Ok(AdminReply::Brick(id)) => Ok(id),
            Ok(other) => Err(format!("the directory answered something else: {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    })
}
