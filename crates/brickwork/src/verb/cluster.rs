//! `brickwork cluster`: begins a cluster (its authority, the directory's and the operator's certificates, the
//! directory's configuration) and prints tokens with which machines join.

use super::{client, stream};
use crate::config::{self, Bytes, ClientFile, DirectoryFile, Period, TlsFile, keys};
use crate::global::Global;
use crate::output;
use crate::security::token::{Grant, JoinRole};
use crate::security::{Authority, Role, Secrets, Token, files, hex, random};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the authority, the directory's configuration and the first join token
    Init(Init),
    /// Print, list or revoke join tokens
    Token(TokenArgs),
}

/// `cluster init`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Writes these files, readable by you only:
  D/ca.pem, D/ca.key                  the cluster's authority; keep ca.key safe and off other machines
  D/directory.toml, directory.pem, directory.key
  D/admin/client.toml, client.pem, client.key
                                      what an operator needs for `volume` and `status`
  D/tokens.json                       hashes of join tokens

Examples:
  brickwork cluster init --dir /etc/brickwork --listen 10.0.0.1:7000 --join-listen 10.0.0.1:7001
  brickwork directory --config /etc/brickwork/directory.toml
  brickwork cluster init --dir /tmp/try --plaintext        without TLS, on loopback only")]
pub struct Init {
    /// The folder to write; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// The cluster's name, shown to people
    #[arg(long, default_value = "brickwork")]
    pub name: String,
    /// Where the directory listens for bricks, gateways and operators
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7000")]
    pub listen: String,
    /// Where the directory listens for machines with a join token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7001")]
    pub join_listen: String,
    /// The address under which others reach --listen, if it differs (0.0.0.0, a forwarded port)
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// No TLS: loopback only, for trying things out
    #[arg(long)]
    pub plaintext: bool,
}

/// `cluster token`.
#[derive(clap::Args)]
#[command(after_help = "\
With --stream, the authority writes the stream into each certificate that the token obtains. What such a client reads and writes
over TLS, through a gateway or through `brickwork attach`, counts for that stream, whichever stream the volume belongs to. The
directory must run, since it knows the streams. A certificate keeps its stream for good: for another one, make a new token and let
the client join anew.

Clients read and write volumes and see how the cluster is. Whatever changes the cluster takes an operator's certificate, as `cluster init`
wrote one into DIR/admin. With --role operator the token gives one to a machine on which `brickwork client init` is run.

Examples:
  brickwork cluster token --dir /etc/brickwork                    for any machine, for 24 hours
  brickwork cluster token --dir /etc/brickwork --role brick --hours 1
  brickwork cluster token --dir /etc/brickwork --role client --stream gold
  brickwork cluster token --dir /etc/brickwork --role operator --hours 1
  brickwork cluster token --dir /etc/brickwork --list
  brickwork cluster token --dir /etc/brickwork --revoke 3fa81c09")]
struct TokenArgs {
    /// The folder that `cluster init` wrote
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Admit machines in this role only
    #[arg(long, value_enum)]
    role: Option<JoinRole>,
    /// Bind the certificates of clients that join with the token to this stream; needs --role client
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// For how many hours the token admits machines
    #[arg(long, default_value_t = 24, value_name = "HOURS", value_parser = clap::value_parser!(u64).range(1..=24 * 365))]
    hours: u64,
    /// List the valid tokens, without their secrets
    #[arg(long, conflicts_with_all = ["role", "stream", "revoke"])]
    list: bool,
    /// Revoke the token with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["role", "stream"])]
    revoke: Option<String>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Init(args) => print_init(global, &args),
        Command::Token(args) => tokens(global, &args),
    }
}

/// Begins a cluster in `args.dir`; returns the directory's configuration.
pub fn init(args: &Init) -> Result<DirectoryFile> {
    let path = args.dir.join("directory.toml");
    ensure!(
        !path.exists(),
        "{} exists already; a cluster is begun once, so choose another --dir",
        path.display()
    );
    let tls = (!args.plaintext).then(|| tls_files("directory"));
    let care = wire::Care::default();
    let directory = DirectoryFile {
        listen: args.listen.clone(),
        join_listen: args.join_listen.clone(),
        advertise: args.advertise.clone(),
        cluster: hex(&random::<16>()),
        name: args.name.clone(),
        store: "directory.db".into(),
        authority: ".".into(),
        lease_ms: keys::default_lease_ms(),
        rebuild_after: Period { seconds: care.rebuild_after_s },
        stand_ins: true,
        rebuild_rate: Bytes(care.rebuild_bytes_per_second),
        scrub_every: Period { seconds: care.scrub_interval_s },
        scrub_rate: Bytes(care.scrub_bytes_per_second),
        metrics: None,
        tls,
        plaintext: args.plaintext,
    };
    config::Configuration::check(&directory).map_err(anyhow::Error::msg)?;
    reachable(&directory)?;
    files::make_dir(&args.dir)?;
    if !args.plaintext {
        let authority = Authority::create(&args.dir, &args.name)?;
        authority.issue(&args.dir, "directory", Role::Directory, &[])?;
        authority.issue(&args.dir.join("admin"), "client", Role::Operator, &[])?;
    }
    write_client(&args.dir.join("admin"), &reachable(&directory)?, &directory.cluster, args.plaintext)?;
    // Last, so that an interrupted init can be run again.
    files::replace(&path, toml::to_string(&directory)?.as_bytes())?;
    Ok(directory)
}

/// A new join token for the cluster in `dir`.
pub fn new_token(dir: &Path, grant: Grant, lifetime: Duration) -> Result<(String, Token)> {
    let directory = directory_of(dir)?;
    let fingerprint = if directory.plaintext { None } else { Some(Authority::open(dir)?.fingerprint()?) };
    let token = Token::new(directory.cluster.clone(), join_address(&directory)?, fingerprint, grant);
    let id = Secrets::at(dir).add(&token.secret, grant, lifetime)?;
    Ok((id, token))
}

/// The configuration of the directory of the cluster in `dir`.
fn directory_of(dir: &Path) -> Result<DirectoryFile> {
    config::load(Some(&dir.join("directory.toml")), toml::Table::new())
        .context("this needs the directory that `brickwork cluster init --dir` wrote")
}

/// Writes `client.toml` into `dir`.
pub fn write_client(dir: &Path, directory: &str, cluster: &str, plaintext: bool) -> Result<PathBuf> {
    let client = ClientFile {
        directory: directory.to_owned(),
        cluster: cluster.to_owned(),
        metrics: None,
        plaintext,
        tls: (!plaintext).then(|| tls_files("client")),
    };
    files::make_dir(dir)?;
    let path = dir.join("client.toml");
    files::replace(&path, toml::to_string(&client)?.as_bytes())?;
    Ok(path)
}

/// The files that [`Authority::issue`] and the `init` verbs write, beside the configuration.
pub fn tls_files(stem: &str) -> TlsFile {
    TlsFile { ca: "ca.pem".into(), cert: format!("{stem}.pem").into(), key: format!("{stem}.key").into() }
}

/// Where others reach the directory.
pub fn reachable(directory: &DirectoryFile) -> Result<String> {
    let address = keys::reachable(&directory.listen, directory.advertise.as_deref());
    address.map(str::to_owned).map_err(anyhow::Error::msg)
}

fn join_address(directory: &DirectoryFile) -> Result<String> {
    if !keys::is_unspecified(&directory.join_listen) {
        return Ok(directory.join_listen.clone());
    }
    let reachable = reachable(directory)?;
    let host = reachable.rsplit_once(':').map_or(reachable.as_str(), |(host, _)| host);
    let port = directory.join_listen.rsplit_once(':').map_or("", |(_, port)| port);
    Ok(format!("{host}:{port}"))
}

fn print_init(global: &Global, args: &Init) -> Result<()> {
    let directory = init(args)?;
    let (id, token) = new_token(&args.dir, Grant::Anything, Duration::from_secs(24 * 3600))?;
    keys::cluster_id(&directory.cluster).map_err(anyhow::Error::msg)?;
    let dir = args.dir.display();
    if global.json {
        output::print_json(&json!({
            "cluster": directory.cluster, "dir": args.dir, "token": token.to_string(), "token_id": id,
            "directory_config": args.dir.join("directory.toml"), "client_config": args.dir.join("admin/client.toml"),
        }));
        return Ok(());
    }
    println!("Cluster '{}' ({}) is ready to start.\n", directory.name, directory.cluster);
    println!("1. Start the directory on this machine:");
    println!("     brickwork directory --config {dir}/directory.toml");
    println!("2. On each storage server, with this token (good for 24 hours):");
    println!(
        "     brickwork brick init --dir /var/lib/brickwork --disk /dev/sdX --listen HOST:7003 --join TOKEN"
    );
    println!("     brickwork brick --config /var/lib/brickwork/brick.toml");
    println!("3. On a gateway:");
    println!("     brickwork gateway init --dir /var/lib/brickwork --listen HOST:7004 --join TOKEN");
    println!("     brickwork gateway --config /var/lib/brickwork/gateway.toml");
    println!("4. Here:");
    println!("     export BRICKWORK_CONFIG={dir}/admin/client.toml");
    println!("     brickwork volume create first --size 10GiB --layout raid1x3\n");
    println!("Token:\n{token}");
    Ok(())
}

fn tokens(global: &Global, args: &TokenArgs) -> Result<()> {
    if args.list {
        return list_tokens(global, &args.dir);
    }
    if let Some(id) = &args.revoke {
        ensure!(
            Secrets::at(&args.dir).revoke(id)?,
            "there is no token '{id}'; `--list` shows those in force"
        );
        if global.json {
            output::print_json(&json!({ "revoked": id }));
        } else {
            println!("Token {id} is revoked; machines that joined with it stay.");
        }
        return Ok(());
    }
    let (id, token) = new_token(&args.dir, grant(args)?, Duration::from_secs(args.hours * 3600))?;
    if global.json {
        output::print_json(&json!({
            "token": token.to_string(), "token_id": id, "hours": args.hours, "stream": args.stream,
        }));
    } else {
        println!("{token}");
    }
    Ok(())
}

/// What a new token is to admit to.
fn grant(args: &TokenArgs) -> Result<Grant> {
    let Some(name) = &args.stream else { return Ok(args.role.map_or(Grant::Anything, Grant::Role)) };
    ensure!(
        args.role == Some(JoinRole::Client),
        "only a client's certificate can name a stream: give --role client with --stream {name}"
    );
    ensure!(
        !directory_of(&args.dir)?.plaintext,
        "a cluster without TLS has no certificates that could name a stream; set the stream of volumes instead \
         (`brickwork volume set VOLUME --stream {name}`)"
    );
    let admin = args.dir.join("admin/client.toml");
    let admin: ClientFile = config::load(Some(&admin), toml::Table::new())
        .context("--stream asks the directory, and needs the operator's certificate that `brickwork cluster init` wrote")?;
    Ok(Grant::ClientOf(stream::for_clients(&client::streams_with(&admin)?, name)?))
}

fn list_tokens(global: &Global, dir: &Path) -> Result<()> {
    let records = Secrets::at(dir).list()?;
    if global.json {
        let list: Vec<_> = records
            .iter()
            .map(|record| {
                let stream = record.grant().stream().map(|stream| stream.to_string());
                json!({
                    "token_id": record.id, "role": record.role, "stream": stream,
                    "expires_unix_s": record.expires_unix_s,
                })
            })
            .collect();
        output::print_json(&json!(list));
        return Ok(());
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let mut table = output::table(&["id", "role", "expires in"]);
    for record in records {
        let role = match record.grant() {
            Grant::Anything => "any".to_owned(),
            Grant::Role(role) => format!("{role:?}").to_lowercase(),
            Grant::ClientOf(stream) => format!("client of {stream}"),
        };
        let left = record.expires_unix_s.saturating_sub(now);
        table.add_row([
            record.id,
            role,
            if left == 0 {
                "expired".to_owned()
            } else {
                format!("{} h {} min", left / 3600, left / 60 % 60)
            },
        ]);
    }
    println!("{}", output::render(&table));
    Ok(())
}
