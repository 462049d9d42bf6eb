//! What all daemons share: logs, the cluster's identity, the `ready` line; and what all `init`s share: joining.

use crate::config::{TlsFile, keys};
use crate::global::{Global, LogFormat, LogLevel};
use crate::join::{Admission, JoinRequest, client};
use crate::security::token::JoinRole;
use crate::security::{Token, certificates, files, random};
use anyhow::{Context, Result, anyhow, ensure};
use host::{NodeOptions, Ready, Security, TlsFiles};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use tracing::level_filters::LevelFilter;

/// Flags that every `init` of a joining machine takes.
#[derive(clap::Args, Clone, Debug)]
pub struct Joining {
    /// Where to write the configuration, the certificate and the key; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// The join token that `brickwork cluster token` printed
    #[arg(long, value_name = "TOKEN", env = "BRICKWORK_JOIN", hide_env_values = true)]
    pub join: Token,
}

/// Starts logging to standard error.
pub fn start_logs(global: &Global) {
    let level = match global.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let colours = std::io::stderr().is_terminal();
    let logs =
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(colours);
    // It would complain of a standard error that is closed or full on that same standard error, and panic.
    let logs = logs.log_internal_errors(false);
    match global.log_format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}

/// What the host wants to know of every node.
pub fn node(cluster: &str, tls: Option<&TlsFile>, metrics: Option<&String>) -> Result<NodeOptions> {
    let cluster = keys::cluster_id(cluster).map_err(anyhow::Error::msg)?;
    let metrics = match metrics {
        None => None,
        Some(address) => {
            let first = address.to_socket_addrs().ok().and_then(|mut found| found.next());
            Some(
                first
                    .with_context(|| format!("metrics = \"{address}\" is not an address of this machine"))?,
            )
        }
    };
    let security = tls.map_or(Security::Plain, |tls| Security::Tls(tls_files(tls)));
    Ok(NodeOptions { cluster, security, metrics })
}

/// Certificates as the host takes them.
pub fn tls_files(tls: &TlsFile) -> TlsFiles {
    TlsFiles { ca: tls.ca.clone(), cert: tls.cert.clone(), key: tls.key.clone() }
}

/// Prints the line that says that a daemon serves.
pub fn announce(json: bool, ready: &Ready) {
    let line = if json {
        json!({ "ready": ready.name, "addresses": ready.addresses }).to_string()
    } else {
        ready.to_string()
    };
    let mut out = std::io::stdout().lock();
    // Whoever started the daemon may have closed its output; it serves all the same.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The configuration file of a daemon, which must be named.
pub fn config_path<'a>(global: &'a Global, what: &str) -> Result<&'a Path> {
    global
        .config
        .as_deref()
        .ok_or_else(|| anyhow!("which {what}? name its configuration with --config {what}.toml"))
}

/// Flags that were given, as a layer of configuration.
pub fn flags<'a>(given: impl IntoIterator<Item = (&'a str, Option<toml::Value>)>) -> toml::Table {
    let mut table = toml::Table::new();
    for (key, value) in given {
        if let Some(value) = value {
            crate::config::put(&mut table, key, value);
        }
    }
    table
}

/// A text flag.
pub fn text(value: Option<&String>) -> Option<toml::Value> {
    value.map(|text| toml::Value::String(text.clone()))
}

/// Joins as `role`: keeps a key and a nonce in `dir` first, so that a retry after any crash is the same machine.
pub fn join(joining: &Joining, role: JoinRole, stem: &str, addresses: Vec<String>) -> Result<Admission> {
    let (dir, token) = (&joining.dir, &joining.join);
    let config = dir.join(format!("{stem}.toml"));
    ensure!(
        !config.exists(),
        "{} exists already; choose another --dir, or remove it to join anew",
        config.display()
    );
    files::make_dir(dir)?;
    let nonce = remembered(&dir.join("join.nonce"), || Ok(u64::from_le_bytes(random()).to_string()))?;
    let request = match token.authority {
        None => None,
        Some(_) => {
            let key = remembered(&dir.join(format!("{stem}.key")), certificates::new_key)?;
            Some(certificates::request(&key)?)
        }
    };
    let nonce = nonce
        .trim()
        .parse()
        .with_context(|| format!("{} is damaged; remove it", dir.join("join.nonce").display()))?;
    let request = JoinRequest { secret: token.secret.clone(), role, nonce, request, addresses };
    let admission = client::join(token, &request)?;
    if let (Some(authority), Some(certificate)) = (&admission.authority, &admission.certificate) {
        files::replace(&dir.join("ca.pem"), authority.as_bytes())?;
        files::replace(&dir.join(format!("{stem}.pem")), certificate.as_bytes())?;
    }
    Ok(admission)
}

/// The last step of every `init`: writes the configuration, and forgets the nonce.
pub fn write_config(dir: &Path, stem: &str, config: &impl serde::Serialize) -> Result<PathBuf> {
    let path = dir.join(format!("{stem}.toml"));
    files::replace(&path, toml::to_string(config)?.as_bytes())?;
    let _ = std::fs::remove_file(dir.join("join.nonce"));
    Ok(path)
}

/// The host parts of addresses that clients may use, without those that mean every address.
pub fn hosts(addresses: &[&str]) -> Vec<String> {
    let host = |address: &&str| {
        address.strip_prefix("tcp:").unwrap_or(address).rsplit_once(':').map(|(host, _)| host.to_owned())
    };
    let mut hosts: Vec<String> =
        addresses.iter().filter(|address| !address.starts_with("unix:")).filter_map(host).collect();
    hosts.iter_mut().for_each(|host| *host = host.trim_matches(['[', ']']).to_owned());
    hosts.retain(|host| host != "0.0.0.0" && host != "::");
    hosts.sort();
    hosts.dedup();
    hosts
}

fn remembered(path: &Path, make: impl FnOnce() -> Result<String>) -> Result<String> {
    if !path.exists() {
        files::replace(path, make()?.as_bytes())?;
    }
    files::read(path)
}
