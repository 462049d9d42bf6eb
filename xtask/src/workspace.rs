//! Where things are: the workspace, the programs built from it.

use crate::words::Words;
use anyhow::{Context, Result};
use job::process::Job;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
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

/// The folder of what is built in a profile.
pub(crate) fn built(profile: &str) -> Result<PathBuf> {
    Ok(job::target()?.join(if profile == "dev" { "debug" } else { profile }))
}

/// Builds the binary, where it is needed, and what drives it, and runs the latter with the words that are left.
pub(crate) fn rig(profile: &str, verb: &str, words: Words) -> Result<ExitCode> {
    let words: Vec<String> = words.collect();
    // Both packages are named either way: the features of what they share are then the same, and nothing is built twice.
    let mut build =
        vec!["build", "--profile", profile, "-p", "brickwork", "-p", "brickwork-rig", "--bin", "rig"];
    if needs_binary(&words) {
        build.extend(["--bin", "brickwork"]);
    }
    Job::spawn(&format!("build-{profile}"), &mut cargo(&build))?
        .wait_showing(Duration::from_secs(1500))?
        .success()?;
    let status = Command::new(built(profile)?.join("rig")).arg(verb).args(words).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a run wants the binary built: it is given none, and does more than to tell what there is.
fn needs_binary(words: &[String]) -> bool {
    let does_without = |word: &String| {
        let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
        matches!(option, "--binary" | "--list" | "--help" | "-h")
    };
    !words.iter().any(does_without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_built_unless_one_is_given_or_none_is_run() {
        let needs = |line: &str| needs_binary(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(needs("") && needs("--all") && needs("block --quick") && needs("--binary-less"));
        assert!(!needs("--binary /tmp/brickwork nbdinfo") && !needs("block --binary=/tmp/brickwork"));
        assert!(!needs("--list") && !needs("rebuild --help") && !needs("-h"));
    }
}
