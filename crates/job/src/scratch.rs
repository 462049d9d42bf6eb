//! Where programs of this workspace leave logs, clusters and images: `xtask` in cargo's target folder, or memory.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Files that cargo leaves in its target folder: the second one also where somebody else made the folder.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", ".rustc_info.json"];

/// A folder of this name, on the disk of the target folder.
pub fn scratch(name: &str) -> Result<PathBuf> {
    let path = target()?.join("xtask").join(name);
    fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
    Ok(path)
}

/// Cargo's target folder: the one in which this program lies.
pub fn target() -> Result<&'static Path> {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(known) = TARGET.get() {
        return Ok(known);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let is_marked = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).is_file());
    let found = program.ancestors().find(is_marked);
    let found = found.with_context(|| format!("{} does not lie in a target folder", program.display()))?;
    Ok(TARGET.get_or_init(|| found.to_owned()))
}

/// Where Linux has a file system in memory for everybody, and the folder of this workspace there.
const MEMORY: &str = "/dev/shm";
const IN_MEMORY: &str = "/dev/shm/brickwork-xtask";

/// A folder in memory.
pub fn in_memory() -> Result<PathBuf> {
    ensure!(Path::new(MEMORY).is_dir(), "there is no {MEMORY}: nothing can be put into memory");
    fs::create_dir_all(IN_MEMORY).with_context(|| format!("making {IN_MEMORY}"))?;
    Ok(IN_MEMORY.into())
}

/// Removes what earlier runs left: logs and clusters begin with the id of a process, and that one has ended.
pub fn sweep() -> Result<()> {
    let folders = [scratch("log")?, scratch("clusters")?, IN_MEMORY.into()];
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.split('-').next().unwrap_or_default();
            if !Path::new("/proc").join(owner).exists() {
                // What is still mounted or in use stays, and costs nothing but space.
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
        }
    }
    Ok(())
}
