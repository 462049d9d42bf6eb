//! Where things are: the workspace, its target folder, the binaries built from it.

use crate::process::Job;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// A cargo command in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// What `cargo metadata` says of the workspace's own packages.
pub(crate) fn metadata() -> Result<&'static Value> {
    static METADATA: OnceLock<Value> = OnceLock::new();
    if let Some(known) = METADATA.get() {
        return Ok(known);
    }
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("running cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    Ok(METADATA.get_or_init(|| value))
}

/// Cargo's target folder.
pub(crate) fn target() -> Result<PathBuf> {
    let path =
        metadata()?["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(path))
}

/// A folder for what xtask leaves behind (logs, clusters, images), on the disk of the target folder.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let path = target()?.join("xtask").join(name);
    std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
    Ok(path)
}

/// Removes what earlier runs left: logs and clusters begin with the id of a process, and that one has ended.
pub(crate) fn sweep() -> Result<()> {
    for folder in ["log", "clusters"] {
        for entry in std::fs::read_dir(scratch(folder)?)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let owner = name.split('-').next().unwrap_or_default();
            if !Path::new("/proc").join(owner).exists() {
                // What is still mounted or in use stays, and costs nothing but space.
                let _ = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
            }
        }
    }
    Ok(())
}

/// The binary that was given, or one built in a profile.
pub(crate) fn binary(given: Option<&Path>, profile: &str) -> Result<PathBuf> {
    match given {
        Some(path) => path.canonicalize().with_context(|| format!("no binary {}", path.display())),
        None => build(profile),
    }
}

/// Builds the binary in a profile and says where it lies.
pub(crate) fn build(profile: &str) -> Result<PathBuf> {
    let mut command = cargo(&["build", "-p", "brickwork", "--profile", profile]);
    Job::spawn(&format!("build-{profile}"), &mut command)?
        .wait_showing(Duration::from_secs(1500))?
        .success()?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target()?.join(folder).join("brickwork"))
}
