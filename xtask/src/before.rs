//! The release before: the last commit that speaks the version of the protocol before this one's, built to stand beside it.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use job::process::Job;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The last commit that does not speak version 6. A commit that raises the version names the one before itself here.
const COMMIT: &str = "e0c9874e77a17379d01ebcf8e6559ef3038bcaf5";

/// Whether the history reaches back to it: that of a shallow clone does not.
pub(crate) fn is_known() -> bool {
    git(&["cat-file", "-e", COMMIT]).is_ok()
}

/// Builds it, unless that was done before, and says where the binary is.
pub(crate) fn build(profile: &str) -> Result<PathBuf> {
    let folder = job::target()?.join("before");
    let (sources, target) = (folder.join("sources"), folder.join("target"));
    let binary = target.join(profile).join("brickwork");
    if binary.exists() {
        return Ok(binary);
    }
    if !sources.exists() {
        let from = workspace::root().to_str().context("the workspace has a name in UTF-8")?;
        let to = sources.to_str().context("the target folder has a name in UTF-8")?;
        git(&["clone", "--quiet", "--no-checkout", "--shared", from, to])?;
        git(&["-C", to, "checkout", "--quiet", "--detach", COMMIT])?;
    }
    let mut command = workspace::cargo(&["build", "--profile", profile, "-p", "brickwork"]);
    command.current_dir(&sources).env("CARGO_TARGET_DIR", &target);
    Job::spawn("build-before", &mut command)?.wait_showing(Duration::from_secs(1500))?.success()?;
    ensure!(binary.exists(), "{} was not built", binary.display());
    Ok(binary)
}

fn git(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    let output = command.current_dir(workspace::root()).args(arguments).output().context("running git")?;
    ensure!(output.status.success(), "git {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr));
    Ok(())
}
