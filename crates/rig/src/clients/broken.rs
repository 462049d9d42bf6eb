//! Disks that were damaged, shared or filled, and configurations with mistakes: each refusal names the thing.

use super::record::Recorder;
use anyhow::{Result, ensure};
use job::process::{Finished, Job};
use rig::cluster::{Cluster, Spec, Storage, free_port, text};
use rig::nbd::error;
use rig::noise::Noise;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SIZE: u64 = 64 << 20;

fn three_bricks(binary: &Path) -> Result<Cluster> {
    let cluster = Cluster::start(
        binary,
        &Spec { storage: Storage { disk_bytes: 256 << 20, ..Storage::default() }, ..Spec::default() },
    )?;
    cluster.create("v", SIZE, "raid1x3")?;
    cluster.connect(0, "v")?.write(0, &vec![7; 1 << 20])?;
    Ok(cluster)
}

/// A disk file that lost its second half is refused by name; the volume goes on without that brick.
pub(super) fn disk_cut_short(binary: &Path) -> Result<()> {
    let mut cluster = three_bricks(binary)?;
    cluster.bricks[0].stop()?;
    File::options().write(true).open(cluster.disk(1))?.set_len(128 << 20)?;
    refuses(&cluster, &cluster.brick_config(1), text(&cluster.disk(1))?)?;
    goes_on(&mut cluster)
}

/// A disk overwritten with noise is refused by name; the volume goes on without that brick.
pub(super) fn disk_of_noise(binary: &Path) -> Result<()> {
    let mut cluster = three_bricks(binary)?;
    cluster.bricks[0].stop()?;
    overwrite(&cluster.disk(1), 256 << 20)?;
    refuses(&cluster, &cluster.brick_config(1), text(&cluster.disk(1))?)?;
    goes_on(&mut cluster)
}

/// Noise in the data on one disk: reads give what was written, from redundancy, or the brick refuses the disk by name.
/// Never wrong bytes.
pub(super) fn noise_in_data(binary: &Path) -> Result<()> {
    let mut cluster = three_bricks(binary)?;
    let mut recorder = Recorder::new(256, 4096, 3);
    recorder.write(&mut cluster.connect(0, "v")?, 16, |count| count >= 3000)?;
    cluster.bricks[0].stop()?;
    let damaged = damage_data(&cluster.disk(1))?;
    ensure!(damaged > 0, "the data was not found on the disk");
    if cluster.bricks[0].restart().is_err() {
        refuses(&cluster, &cluster.brick_config(1), text(&cluster.disk(1))?)?;
    }
    recorder.verify(&mut cluster.connect(0, "v")?)?;
    goes_on(&mut cluster)
}

fn overwrite(path: &Path, length: u64) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let mut noise = Noise::new(99);
    (0..length >> 20).try_for_each(|mebibyte| file.write_all_at(&noise.bytes(1 << 20), mebibyte << 20))?;
    Ok(file.sync_all()?)
}

/// Puts noise over every block behind the journal that holds what `three_bricks` wrote; how many there were.
fn damage_data(path: &Path) -> Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let (mut noise, mut damaged, mut block) = (Noise::new(98), 0, [0; 4096]);
    for offset in (65 << 20..256 << 20).step_by(4096) {
        file.read_exact_at(&mut block, offset)?;
        if block == [7; 4096] {
            file.write_all_at(&noise.bytes(4096), offset)?;
            damaged += 1;
        }
    }
    file.sync_all()?;
    Ok(damaged)
}

fn goes_on(cluster: &mut Cluster) -> Result<()> {
    let mut nbd = cluster.connect(0, "v")?;
    ensure!(nbd.read(0, 1 << 20)? == vec![7; 1 << 20], "the volume lost what was written");
    nbd.write(2 << 20, &[8; 4096])?;
    ensure!(nbd.read(2 << 20, 4096)? == [8; 4096], "the volume no longer takes writes");
    cluster.all_alive()
}

/// The second brick on a disk is refused by the disk's name; the first goes on.
pub(super) fn two_bricks_one_disk(binary: &Path) -> Result<()> {
    let mut cluster = three_bricks(binary)?;
    let own = fs::read_to_string(cluster.brick_config(1))?;
    let address = format!("127.0.0.1:{}", cluster.brick_ports[0]);
    let twin = cluster.dir.join("brick-1/twin.toml");
    fs::write(&twin, own.replace(&address, &format!("127.0.0.1:{}", free_port()?)))?;
    refuses(&cluster, &twin, text(&cluster.disk(1))?)?;
    goes_on(&mut cluster)
}

/// A key that does not exist is refused by its name and the file's, by every daemon.
pub(super) fn unknown_key(binary: &Path) -> Result<()> {
    let cluster = Cluster::start(binary, &Spec::default())?;
    let files = [
        ("brick", cluster.brick_config(1)),
        ("gateway", cluster.dir.join("gateway-1/gateway.toml")),
        ("directory", cluster.dir.join("directory.toml")),
    ];
    for (verb, path) in files {
        let broken = path.with_file_name("broken.toml");
        fs::write(&broken, format!("cache_bites = 1\n{}", fs::read_to_string(&path)?))?;
        let finished = start(&cluster, verb, &broken)?;
        ensure!(!finished.status.success(), "{verb} started with an unknown key");
        let said = finished.stderr;
        ensure!(
            said.contains("cache_bites") && said.contains("broken.toml"),
            "{verb} does not name the key and file: {said}"
        );
        ensure!(said.contains('1'), "{verb} does not name the line: {said}");
    }
    Ok(())
}

fn refuses(cluster: &Cluster, config: &Path, name: &str) -> Result<()> {
    let finished = start(cluster, "brick", config)?;
    ensure!(!finished.status.success(), "a brick started on {name}");
    ensure!(!finished.stderr.contains("panicked"), "the brick panicked: {}", finished.stderr);
    ensure!(finished.stderr.contains(name), "the refusal does not name {name}: {}", finished.stderr);
    Ok(())
}

fn start(cluster: &Cluster, verb: &str, config: &Path) -> Result<Finished> {
    let mut command = Command::new(cluster.binary());
    command.args([verb, "--config", text(config)?]);
    Job::spawn(&format!("{verb}-refused"), &mut command)?.wait(Duration::from_secs(30))
}

/// Full disks refuse writes with ENOSPC, and everything acknowledged before is still there; so is a small rewrite of it.
pub(super) fn disk_full(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(
        binary,
        &Spec { storage: Storage { disk_bytes: 160 << 20, ..Storage::default() }, ..Spec::default() },
    )?;
    cluster.create("v", 1 << 30, "raid1x3")?;
    let mut nbd = cluster.connect(0, "v")?;
    let mut written = 0u64;
    let refused = loop {
        nbd.send_write(1, written << 20, &vec![written as u8; 1 << 20])?;
        match nbd.reply()?.error {
            0 => written += 1,
            refused => break refused,
        }
        ensure!(written < 160, "{written} MiB fit on disks of 160 MiB");
    };
    ensure!(refused == error::ENOSPC, "a full disk answered with error {refused} after {written} MiB");
    ensure!(written > 0, "nothing fits on disks of 160 MiB");
    for mebibyte in 0..written {
        ensure!(
            nbd.read(mebibyte << 20, 1 << 20)? == vec![mebibyte as u8; 1 << 20],
            "MiB {mebibyte} is lost"
        );
    }
    cluster.all_alive()
}
