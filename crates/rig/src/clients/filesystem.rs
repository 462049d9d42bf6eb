//! A file system: ext4 on a loop device on nbdfuse on a volume. Everything that was mounted is taken down on any way out.

use super::volume::Volume;
use anyhow::{Context, Result, bail, ensure};
use job::process::{Job, run};
use rig::cluster::text;
use rig::noise::Noise;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Makes a file system, fills it with files, reads them back after it was mounted anew, and checks it.
pub(super) fn ext4(volume: &Volume) -> Result<()> {
    let fuse = Fuse::mount(&volume.uri, volume.file("fuse"))?;
    let device = Loop::over(&fuse.file)?;
    run("mkfs.ext4", Command::new("mkfs.ext4").args(["-q", "-F", &device.0]), 120)?;
    let folder = volume.file("mounted");
    fs::create_dir_all(&folder)?;
    let mount = Mount::new(&device.0, &folder)?;
    write_files(&folder, 0)?;
    let mut round = 1;
    volume.until_killed(|| {
        round += 1;
        write_files(&folder, round % 4)
    })?;
    write_files(&folder, 5)?;
    drop(mount);
    run("fsck.ext4", Command::new("fsck.ext4").args(["-fn", &device.0]), 120)?;
    let mount = Mount::new(&device.0, &folder)?;
    check_files(&folder, 5)?;
    check_files(&folder, 0)?;
    drop(mount);
    drop(device);
    drop(fuse);
    Ok(())
}

/// An ext4 on an NBD address, mounted until the value is dropped.
pub(super) struct Mounted {
    // Taken down in this order.
    mount: Option<Mount>,
    device: Loop,
    _fuse: Fuse,
}

impl Mounted {
    /// Makes the file system and mounts it on `folder`.
    pub(super) fn format(uri: &str, fuse: PathBuf, folder: &Path) -> Result<Mounted> {
        let fuse = Fuse::mount(uri, fuse)?;
        let device = Loop::over(&fuse.file)?;
        run("mkfs.ext4", Command::new("mkfs.ext4").args(["-q", "-F", &device.0]), 120)?;
        let mount = Some(Mount::new(&device.0, folder)?);
        Ok(Mounted { mount, device, _fuse: fuse })
    }

    /// Unmounts it and checks it.
    pub(super) fn check(mut self) -> Result<()> {
        self.mount = None;
        run("fsck.ext4", Command::new("fsck.ext4").args(["-fn", &self.device.0]), 120).map(drop)
    }
}

/// Files of a round: one of 8 MiB, and 200 small ones of odd sizes.
fn files(round: u64) -> impl Iterator<Item = (String, Vec<u8>)> {
    let mut noise = Noise::new(round + 1);
    (0..201).map(move |number| {
        let bytes = if number == 0 { 8 << 20 } else { noise.below(20_000) as usize };
        (format!("round-{round}/{}/file-{number}", number % 7), noise.bytes(bytes))
    })
}

fn write_files(folder: &Path, round: u64) -> Result<()> {
    for (name, data) in files(round) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(&path, data).with_context(|| format!("writing {}", path.display()))?;
    }
    run("sync", Command::new("sync").args(["-f", text(folder)?]), 120).map(drop)
}

fn check_files(folder: &Path, round: u64) -> Result<()> {
    for (name, data) in files(round) {
        let read = fs::read(folder.join(&name)).with_context(|| format!("reading {name}"))?;
        ensure!(read == data, "{name} reads back differently");
    }
    Ok(())
}

/// A volume as a file.
struct Fuse {
    folder: PathBuf,
    file: PathBuf,
    _job: Job,
}

impl Fuse {
    fn mount(uri: &str, folder: PathBuf) -> Result<Fuse> {
        fs::create_dir_all(&folder)?;
        let file = folder.join("volume");
        let mut command = Command::new("nbdfuse");
        let mut job = Job::spawn("nbdfuse", command.args([text(&file)?, uri]))?;
        let started = Instant::now();
        while !file.exists() {
            if !job.running() || started.elapsed() > Duration::from_secs(30) {
                bail!("nbdfuse did not mount {}: {}", folder.display(), job.stderr());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Fuse { folder, file, _job: job })
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = run("umount-fuse", Command::new("umount").arg(&self.folder), 60);
    }
}

struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Result<Loop> {
        let finished = run("losetup", Command::new("losetup").args(["--show", "-f", text(file)?]), 60)?;
        Ok(Loop(finished.stdout.trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup-d", Command::new("losetup").args(["-d", &self.0]), 60);
    }
}

struct Mount(PathBuf);

impl Mount {
    fn new(device: &str, folder: &Path) -> Result<Mount> {
        run("mount", Command::new("mount").args(["-t", "ext4", device, text(folder)?]), 60)?;
        Ok(Mount(folder.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = run("umount", Command::new("umount").arg(&self.0), 120);
    }
}
