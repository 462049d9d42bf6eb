//! Who may talk to a cluster with certificates: its own, and nobody else.

use anyhow::{Context, Result, ensure};
use job::process::{Job, run};
use rig::cluster::{Cluster, Spec, text};
use rig::nbd::{self, connect};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// NBD over TLS: a client with a certificate of the cluster is served; one without, one with a certificate of another
/// authority and one that speaks plain text are not.
pub(super) fn client_certificates(binary: &Path) -> Result<()> {
    let spec = Spec { tls: true, nbd_tls: true, ..Spec::default() };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let own = certificates(&cluster)?;
    let port = cluster.gateways[0].nbd_port;
    let uri = format!("nbds://127.0.0.1:{port}/v");
    let with = |folder: &Path| Ok::<_, anyhow::Error>(format!("{uri}?tls-certificates={}", text(folder)?));
    run("nbdinfo", Command::new("nbdinfo").arg(with(&own)?), 30)
        .context("a client with the cluster's certificate")?;
    let stranger = foreign_certificates(&cluster, &own)?;
    refused(&with(&stranger)?, "a client with a certificate of another authority")?;
    let only_ca = cluster.dir.join("only-ca");
    fs::create_dir_all(&only_ca)?;
    fs::copy(own.join("ca-cert.pem"), only_ca.join("ca-cert.pem"))?;
    refused(&with(&only_ca)?, "a client without a certificate")?;
    refused(&format!("nbd://127.0.0.1:{port}/v"), "a client that speaks plain text")?;
    cluster.all_alive()
}

fn refused(uri: &str, who: &str) -> Result<()> {
    let finished = Job::spawn("nbdinfo", Command::new("nbdinfo").arg(uri))?.wait(Duration::from_secs(30))?;
    ensure!(!finished.status.success(), "{who} was served: {}", finished.stdout);
    Ok(())
}

/// The administrator's certificate under the names that libnbd looks for.
fn certificates(cluster: &Cluster) -> Result<PathBuf> {
    let (admin, folder) = (cluster.dir.join("admin"), cluster.dir.join("certificates"));
    fs::create_dir_all(&folder)?;
    let files =
        [("../ca.pem", "ca-cert.pem"), ("client.pem", "client-cert.pem"), ("client.key", "client-key.pem")];
    for (name, target) in files {
        let source = admin.join(name);
        fs::copy(&source, folder.join(target)).with_context(|| format!("copying {}", source.display()))?;
    }
    Ok(folder)
}

/// A certificate of an authority of our own, beside the cluster's authority to trust.
fn foreign_certificates(cluster: &Cluster, own: &Path) -> Result<PathBuf> {
    let folder = cluster.dir.join("foreign");
    fs::create_dir_all(&folder)?;
    fs::copy(own.join("ca-cert.pem"), folder.join("ca-cert.pem"))?;
    let (key, certificate) = (folder.join("client-key.pem"), folder.join("client-cert.pem"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=stranger"]);
    command.args(["-keyout", text(&key)?, "-out", text(&certificate)?]);
    run("openssl", &mut command, 60)?;
    Ok(folder)
}

/// Strangers get nothing from any port of a cluster with certificates: no answer in plain text, and no harm done.
pub(super) fn strangers(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec { tls: true, ..Spec::default() })?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let mut ports = vec![cluster.directory_port, cluster.gateways[0].port];
    ports.extend(&cluster.brick_ports);
    for port in ports {
        gets_nothing(port).with_context(|| format!("a stranger at port {port}"))?;
    }
    let mut nbd = cluster.connect(0, "v")?;
    nbd.write(0, &[9; 4096])?;
    ensure!(nbd.read(0, 4096)? == [9; 4096], "the cluster no longer keeps what is written");
    cluster.all_alive()
}

/// Sends plain text and whatever comes back must be at most a TLS alert (21) before the connection ends.
fn gets_nothing(port: u16) -> Result<()> {
    let mut stream = connect(port)?;
    let mut message = Vec::from(nbd::OPTION_MAGIC.to_be_bytes());
    message.extend_from_slice(&[0; 256]);
    stream.write_all(&message)?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    ensure!(
        answer.is_empty() || (answer[0] == 21 && answer.len() < 64),
        "got {} bytes: {:02x?}",
        answer.len(),
        &answer[..answer.len().min(16)]
    );
    Ok(())
}
