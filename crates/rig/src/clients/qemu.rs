//! QEMU's tools: images converted and compared, patterns, zeroes, discards, and a gateway that comes back.

use super::volume::Volume;
use anyhow::{Result, ensure};
use job::process::Job;
use rig::cluster::{Cluster, Spec, text};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Raw to NBD, compared; NBD to qcow2, compared.
pub(super) fn image(volume: &Volume) -> Result<()> {
    let image = volume.image("image", volume.bytes, 3)?;
    let copy = volume.file("copy.qcow2");
    let (image, copy) = (text(&image)?, text(&copy)?);
    volume.tool("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", image, &volume.uri])?;
    volume.tool("qemu-img", &["compare", "-f", "raw", "-F", "raw", image, &volume.uri])?;
    volume.tool("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &volume.uri, copy])?;
    volume.tool("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", image, copy])?;
    Ok(())
}

/// Patterns over blocks, inside blocks, across stripe units; zeroes; discards.
pub(super) fn io(volume: &Volume) -> Result<()> {
    let mut pattern = 1;
    patterns(volume, pattern)?;
    volume.until_killed(|| {
        pattern = pattern % 200 + 1;
        patterns(volume, pattern)
    })?;
    patterns(volume, 201)
}

fn patterns(volume: &Volume, pattern: u32) -> Result<()> {
    let other = pattern + 1;
    commands(
        volume,
        &[
            &format!("write -P {pattern} 0 8M"),
            &format!("read -P {pattern} 0 8M"),
            &format!("write -P {other} 4097 1023"),
            &format!("read -P {other} 4097 1023"),
            &format!("read -P {pattern} 5120 100000"),
            &format!("write -f -P {other} 65000 200000"),
            &format!("read -P {other} 65000 200000"),
            "write -z 1M 1M",
            "read -P 0 1M 1M",
            "write -z -u 2560000 12345",
            "read -P 0 2560000 12345",
            &format!("read -P {pattern} 2572345 100000"),
            "discard 3M 1M",
            &format!("read -P {pattern} 4M 4M"),
            &format!("write -P {other} 3M 64k"),
            &format!("read -P {other} 3M 64k"),
            &format!("aio_write -P {pattern} 16M 4M"),
            &format!("aio_write -P {other} 20M 4M"),
            "aio_flush",
            "flush",
            &format!("read -P {pattern} 16M 4M"),
            &format!("read -P {other} 20M 4M"),
        ],
    )
}

fn commands(volume: &Volume, commands: &[&str]) -> Result<()> {
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    arguments.push(&volume.uri);
    let finished = volume.tool("qemu-io", &arguments)?;
    ensure!(!finished.stdout.contains("failed"), "qemu-io: {}", finished.stdout);
    Ok(())
}

/// A plain client with `reconnect-delay` finds its gateway again after it was killed and started again.
pub(super) fn reconnect(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec::default())?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let port = cluster.gateways[0].nbd_port;
    let image = format!(
        "driver=nbd,server.type=inet,server.host=127.0.0.1,server.port={port},export=v,reconnect-delay=30"
    );
    let mut command = Command::new("qemu-io");
    command.args(["--image-opts", "-c", "write -P 7 0 1M", "-c", "sleep 1500", "-c", "read -P 7 0 1M"]);
    command.args(["-c", "write -P 8 1M 1M", "-c", "read -P 8 1M 1M", "-c", "read -P 7 0 1M", &image]);
    let job = Job::spawn("qemu-io-reconnect", &mut command)?;
    while !job.stdout().contains("wrote") {
        ensure!(job.stderr().is_empty(), "qemu-io: {}", job.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    cluster.gateways[0].daemon.kill()?;
    cluster.gateways[0].daemon.restart()?;
    let finished = job.wait(Duration::from_secs(60))?.success()?;
    ensure!(!finished.stdout.contains("failed"), "qemu-io: {}", finished.stdout);
    cluster.all_alive()
}
