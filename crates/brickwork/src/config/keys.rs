//! Every key of every configuration file. `docs/operations/configuration.md` says the same in prose.

use super::{Bytes, Configuration, Period};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// A daemon's certificate, and whom it trusts. All files are PEM.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// The cluster's authority; peers with a certificate of another are strangers.
    pub ca: PathBuf,
    pub cert: PathBuf,
    /// Its private key, readable by its owner only.
    pub key: PathBuf,
}

/// A disk of a brick: a file or a block device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskFile {
    /// Where it is.
    pub path: PathBuf,
    /// How much of it to use when it is formatted; all of a device, or of a file that exists, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// A drive's file, as `brickwork disk probe` prints it, or a drive of `brickwork disk list`: how long its accesses take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How a brick reads and writes its disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoChoice {
    /// io_uring where the kernel offers it, else plain.
    #[default]
    Auto,
    /// io_uring, or refuse to start.
    IoUring,
    /// Ordinary system calls on threads.
    Plain,
}

/// `directory.toml`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryFile {
    /// Where bricks, gateways and administrators reach the directory.
    pub listen: String,
    /// Where a machine with a token joins.
    pub join_listen: String,
    /// The address that others use for `listen`, when it is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertise: Option<String>,
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// The cluster's name, for people.
    #[serde(default = "default_name")]
    pub name: String,
    /// The directory's own store.
    #[serde(default = "default_store")]
    pub store: PathBuf,
    /// Where the authority's key and the hashes of join tokens are: the directory of `cluster init`.
    #[serde(default = "here")]
    pub authority: PathBuf,
    /// Milliseconds for which a brick may trust its views after a heartbeat or a renewal.
    #[serde(default = "default_lease_ms")]
    pub lease_ms: u64,
    /// How long a brick may be away before its blocks are rebuilt on other bricks.
    #[serde(default = "default_rebuild_after")]
    pub rebuild_after: Period,
    /// Whether bricks that are to spare take the new writes of members that are away.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub stand_ins: bool,
    /// Bytes a second that a brick fetches at most, to catch up.
    #[serde(default = "default_rebuild_rate")]
    pub rebuild_rate: Bytes,
    /// Time between the beginnings of two scrubs of a brick; `off` for none but those asked for.
    #[serde(default = "default_scrub_every")]
    pub scrub_every: Period,
    /// Bytes a second that a brick reads at most, to check its blocks.
    #[serde(default = "default_scrub_rate")]
    pub scrub_rate: Bytes,
    /// Where Prometheus reads metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFile>,
    /// Speak without TLS; loopback and unix sockets only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plaintext: bool,
}

/// `brick.toml`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrickFile {
    /// Where gateways reach the brick.
    pub listen: String,
    /// The address that others use for `listen`, when it is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertise: Option<String>,
    /// Where the directory is reached.
    pub directory: String,
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// The brick's id, given when it joined.
    pub id: u32,
    /// Memory for cached blocks, over all disks.
    #[serde(default = "default_cache")]
    pub cache_bytes: Bytes,
    /// Room for the journal on each disk, in force when it is formatted; by the disk's size when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_bytes: Option<Bytes>,
    /// Journalled content at which a disk brings it home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_bytes: Option<Bytes>,
    /// How disks are read and written.
    #[serde(default)]
    pub io: IoChoice,
    /// A file that says how disks are made to look slower than they are; read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<PathBuf>,
    /// Where Prometheus reads metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Speak without TLS; loopback and unix sockets only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plaintext: bool,
    pub disks: Vec<DiskFile>,
    /// Failure domains: `host`, `rack`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFile>,
}

/// `gateway.toml`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayFile {
    /// Where `brickwork attach` reaches the gateway.
    pub listen: String,
    /// The address that others use for `listen`, when it is not the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertise: Option<String>,
    /// Where the directory is reached.
    pub directory: String,
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// What `status` and errors call the gateway; without one the directory counts: `gateway-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The brick on the same machine, `brick-3`: the gateway coordinates its volumes of the paths `coord` and `amongst`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// NBD endpoints: `tcp:127.0.0.1:10809`, `unix:/run/brickwork/nbd.sock`.
    #[serde(default)]
    pub nbd: Vec<String>,
    /// The group that may use the unix sockets of `nbd`; without one, only the gateway's own user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbd_group: Option<String>,
    /// Where Prometheus reads metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Speak without TLS to the cluster; loopback and unix sockets only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plaintext: bool,
    /// TLS for NBD clients: they need a certificate of this authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbd_tls: Option<TlsFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFile>,
}

/// `client.toml`, for `attach` and for the commands that administer a cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientFile {
    /// Where the directory is reached.
    pub directory: String,
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// Where Prometheus reads metrics of `attach`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// Speak without TLS; loopback and unix sockets only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plaintext: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsFile>,
}

const TLS_KEYS: [&str; 3] = ["tls.ca", "tls.cert", "tls.key"];

impl DirectoryFile {
    /// How bricks look after their blocks, until an operator says otherwise.
    pub fn care(&self) -> wire::Care {
        wire::Care {
            rebuild_bytes_per_second: self.rebuild_rate.0,
            scrub_bytes_per_second: self.scrub_rate.0,
            scrub_interval_s: self.scrub_every.seconds,
            rebuild_after_s: self.rebuild_after.seconds,
            ..wire::Care::default()
        }
    }
}

impl Configuration for DirectoryFile {
    const WHAT: &'static str = "directory";
    const ENVIRONMENT: &'static [&'static str] = &[
        "listen",
        "join_listen",
        "advertise",
        "cluster",
        "name",
        "store",
        "authority",
        "lease_ms",
        "rebuild_after",
        "stand_ins",
        "rebuild_rate",
        "scrub_every",
        "scrub_rate",
        "metrics",
        "plaintext",
        TLS_KEYS[0],
        TLS_KEYS[1],
        TLS_KEYS[2],
    ];

    fn check(&self) -> Result<(), String> {
        cluster_id(&self.cluster)?;
        if !(100..=600_000).contains(&self.lease_ms) {
            return Err(format!("lease_ms is {}; it must be between 100 and 600000", self.lease_ms));
        }
        check_after("rebuild_after", self.rebuild_after)?;
        check_rate("rebuild_rate", self.rebuild_rate)?;
        check_rate("scrub_rate", self.scrub_rate)?;
        let addresses =
            [Some(&self.listen), Some(&self.join_listen), self.advertise.as_ref(), self.metrics.as_ref()];
        check_addresses(&addresses)?;
        check_transport(self.tls.as_ref(), self.plaintext, &addresses[..3])
    }

    fn resolve(&mut self, base: &Path) {
        self.store = base.join(&self.store);
        self.authority = base.join(&self.authority);
        resolve_tls(&mut self.tls, base);
    }
}

impl Configuration for BrickFile {
    const WHAT: &'static str = "brick";
    const ENVIRONMENT: &'static [&'static str] = &[
        "listen",
        "advertise",
        "directory",
        "cluster",
        "id",
        "cache_bytes",
        "journal_bytes",
        "destage_bytes",
        "io",
        "emulation",
        "metrics",
        "plaintext",
        "disks",
        "labels",
        TLS_KEYS[0],
        TLS_KEYS[1],
        TLS_KEYS[2],
    ];

    fn check(&self) -> Result<(), String> {
        cluster_id(&self.cluster)?;
        if self.disks.is_empty() {
            return Err("it has no disks; give at least one: disks = [{ path = \"/dev/sdb\" }]".to_owned());
        }
        let addresses =
            [Some(&self.listen), Some(&self.directory), self.advertise.as_ref(), self.metrics.as_ref()];
        check_addresses(&addresses)?;
        reachable(&self.listen, self.advertise.as_deref())?;
        check_transport(self.tls.as_ref(), self.plaintext, &addresses[..3])
    }

    fn resolve(&mut self, base: &Path) {
        for disk in &mut self.disks {
            disk.path = base.join(&disk.path);
            let file = disk.model.as_mut().filter(|model| model::drive::find(model).is_none());
            if let Some(file) = file {
                *file = base.join(&*file).to_string_lossy().into_owned();
            }
        }
        if let Some(emulation) = &mut self.emulation {
            *emulation = base.join(&*emulation);
        }
        resolve_tls(&mut self.tls, base);
    }
}

impl Configuration for GatewayFile {
    const WHAT: &'static str = "gateway";
    const ENVIRONMENT: &'static [&'static str] = &[
        "listen",
        "advertise",
        "directory",
        "cluster",
        "name",
        "nbd",
        "nbd_group",
        "metrics",
        "plaintext",
        "nbd_tls.ca",
        "nbd_tls.cert",
        "nbd_tls.key",
        TLS_KEYS[0],
        TLS_KEYS[1],
        TLS_KEYS[2],
    ];

    fn check(&self) -> Result<(), String> {
        cluster_id(&self.cluster)?;
        for endpoint in &self.nbd {
            check_endpoint(endpoint, self.nbd_tls.is_some())?;
        }
        let addresses =
            [Some(&self.listen), Some(&self.directory), self.advertise.as_ref(), self.metrics.as_ref()];
        check_addresses(&addresses)?;
        reachable(&self.listen, self.advertise.as_deref())?;
        check_transport(self.tls.as_ref(), self.plaintext, &addresses[..3])
    }

    fn resolve(&mut self, base: &Path) {
        resolve_tls(&mut self.tls, base);
        resolve_tls(&mut self.nbd_tls, base);
        for endpoint in &mut self.nbd {
            if let Some(path) = endpoint.strip_prefix("unix:") {
                *endpoint = format!("unix:{}", base.join(path).display());
            }
        }
    }
}

impl Configuration for ClientFile {
    const WHAT: &'static str = "client";
    const ENVIRONMENT: &'static [&'static str] =
        &["directory", "cluster", "metrics", "plaintext", TLS_KEYS[0], TLS_KEYS[1], TLS_KEYS[2]];

    fn check(&self) -> Result<(), String> {
        cluster_id(&self.cluster)?;
        check_addresses(&[Some(&self.directory), self.metrics.as_ref()])?;
        check_transport(self.tls.as_ref(), self.plaintext, &[Some(&self.directory)])
    }

    fn resolve(&mut self, base: &Path) {
        resolve_tls(&mut self.tls, base);
    }
}

/// A cluster's id from its 32 hexadecimal digits.
pub fn cluster_id(text: &str) -> Result<base::ClusterId, String> {
    let wrong = || {
        format!(
            "cluster is '{text}'; it must be the 32 hexadecimal digits that `brickwork cluster init` printed"
        )
    };
    if text.len() != 32 || !text.is_ascii() {
        return Err(wrong());
    }
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| wrong())?;
    }
    Ok(base::ClusterId(bytes))
}

/// The address under which others reach who listens at `listen`.
pub fn reachable<'a>(listen: &'a str, advertise: Option<&'a str>) -> Result<&'a str, String> {
    let address = advertise.unwrap_or(listen);
    match is_unspecified(address) {
        true => Err(format!(
            "'{address}' means every address of this machine, and others need one; give --advertise HOST:PORT"
        )),
        false => Ok(address),
    }
}

/// Whether an address means all addresses of a machine.
pub fn is_unspecified(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified())
}

/// Whether nobody but this machine can hear what is said at `address`.
pub fn is_local(address: &str) -> bool {
    if address.starts_with("unix:") || address.starts_with("localhost:") {
        return true;
    }
    address.parse::<SocketAddr>().is_ok_and(|address| match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback(),
    })
}

/// The least rate: slower, and a rebuild takes longer than disks live.
const RATE_MIN: Bytes = Bytes(64 << 10);

/// Refuses a rate at which nothing would ever be done; `key` names it.
pub fn check_rate(key: &str, rate: Bytes) -> Result<(), String> {
    if rate >= RATE_MIN {
        return Ok(());
    }
    Err(format!("{key} is {rate} a second; the least is {RATE_MIN}"))
}

/// Refuses to rebuild what a brick had before it can be said to be away; `key` names it.
pub fn check_after(key: &str, after: Period) -> Result<(), String> {
    if after.seconds > 0 {
        return Ok(());
    }
    Err(format!("{key} is {after}; the least is 1s, and 3650d is as good as never"))
}

fn check_addresses(addresses: &[Option<&String>]) -> Result<(), String> {
    addresses.iter().flatten().try_for_each(|address| check_address(address))
}

fn check_address(address: &str) -> Result<(), String> {
    let port =
        address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(_)) => Ok(()),
        _ => Err(format!("'{address}' is no address; write HOST:PORT, such as 10.0.0.3:7003 or [::1]:7003")),
    }
}

fn check_endpoint(endpoint: &str, has_tls: bool) -> Result<(), String> {
    if endpoint.strip_prefix("unix:").is_some_and(|path| !path.is_empty()) {
        return Ok(());
    }
    let address = endpoint
        .strip_prefix("tcp:")
        .ok_or_else(|| format!("nbd endpoint '{endpoint}' must be tcp:HOST:PORT or unix:/PATH"))?;
    check_address(address)?;
    if has_tls || is_local(address) {
        return Ok(());
    }
    Err(format!(
        "nbd endpoint '{endpoint}' would speak plain text to the network; set nbd_tls, or listen on loopback or a unix socket"
    ))
}

fn check_transport(
    tls: Option<&TlsFile>,
    plaintext: bool,
    addresses: &[Option<&String>],
) -> Result<(), String> {
    match (tls, plaintext) {
        (Some(_), true) => Err("it has tls and plaintext = true; remove one of them".to_owned()),
        (None, false) => {
            Err("it has no certificate; set tls = { ca, cert, key } (the init commands write it), or plaintext = true on loopback".to_owned())
        }
        (Some(_), false) => Ok(()),
        (None, true) => match addresses.iter().flatten().find(|address| !is_local(address)) {
            None => Ok(()),
            Some(address) => {
                Err(format!("plaintext = true is for loopback and unix sockets only, and '{address}' is neither; use tls"))
            }
        },
    }
}

fn resolve_tls(tls: &mut Option<TlsFile>, base: &Path) {
    if let Some(tls) = tls {
        for path in [&mut tls.ca, &mut tls.cert, &mut tls.key] {
            *path = base.join(&*path);
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn here() -> PathBuf {
    PathBuf::from(".")
}

fn default_name() -> String {
    "brickwork".to_owned()
}

fn default_store() -> PathBuf {
    PathBuf::from("directory.db")
}

pub(crate) fn default_lease_ms() -> u64 {
    300
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn default_rebuild_after() -> Period {
    Period { seconds: wire::Care::default().rebuild_after_s }
}

fn default_rebuild_rate() -> Bytes {
    Bytes(wire::Care::default().rebuild_bytes_per_second)
}

fn default_scrub_every() -> Period {
    Period { seconds: wire::Care::default().scrub_interval_s }
}

fn default_scrub_rate() -> Bytes {
    Bytes(wire::Care::default().scrub_bytes_per_second)
}

fn default_cache() -> Bytes {
    Bytes(256 << 20)
}
