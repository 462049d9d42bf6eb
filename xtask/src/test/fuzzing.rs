//! Fuzz targets still compile. Running them takes ten minutes each: `cargo xtask fuzz`.

use crate::fuzz;
use crate::process::{Job, installed};
use crate::report::{Outcome, Report};
use crate::workspace;
use std::process::Command;
use std::time::Duration;

/// Builds them, where a nightly toolchain and cargo-fuzz are at hand.
pub(super) fn run(report: &mut Report) {
    const STEP: &str = "fuzz targets build";
    if !fuzz::nightly() || !installed("cargo-fuzz") {
        return report
            .skip(STEP, "no nightly toolchain with cargo-fuzz here; `cargo xtask fuzz` installs them");
    }
    report.step(STEP, || {
        let targets = fuzz::targets()?;
        let mut command = Command::new("cargo");
        command.current_dir(workspace::root()).args(["+nightly", "fuzz", "build"]);
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        Job::spawn("fuzz-build", &mut command)?.wait_showing(Duration::from_secs(900))?.success()?;
        Ok(Outcome::Passed(targets.len() as u64))
    });
}
