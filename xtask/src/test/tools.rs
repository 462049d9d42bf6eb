//! Programs that the tests drive. What is missing is installed if this machine lets us; what cannot be is named, and the
//! steps that need it are skipped.

use crate::process::{Job, installed};
use crate::report::{Outcome, Report};
use anyhow::{Result, bail};
use std::process::Command;
use std::time::Duration;

/// A program and the Debian package that holds it.
const PROGRAMS: [(&str, &str); 18] = [
    ("fio", "fio"),
    ("nbdkit", "nbdkit"),
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("nbdfuse", "nbdfuse"),
    ("qemu-img", "qemu-utils"),
    ("qemu-io", "qemu-utils"),
    ("mkfs.ext4", "e2fsprogs"),
    ("fsck.ext4", "e2fsprogs"),
    ("losetup", "mount"),
    ("strace", "strace"),
    ("node", "nodejs"),
    ("openssl", "openssl"),
    ("git", "git"),
    ("go", "golang-go"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("pg_ctlcluster", "postgresql"),
];

const COMPONENTS: [&str; 2] = ["clippy", "rustfmt"];

/// The target for which the pure crates must build.
pub(super) const WASM: &str = "wasm32-unknown-unknown";

/// Installs what is missing.
pub(super) fn install(report: &mut Report) {
    report.step("tools: programs", programs);
    report.step("tools: Rust components and wasm target", components);
}

fn programs() -> Result<Outcome> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(Outcome::Passed(1));
    }
    eprintln!("    missing: {}", missing.join(" "));
    if let Err(error) = apt_install(&missing) {
        return Ok(Outcome::Skipped(format!("cannot install {}: {error:#}", missing.join(" "))));
    }
    match self::missing() {
        left if left.is_empty() => Ok(Outcome::Passed(1)),
        left => Ok(Outcome::Skipped(format!("still missing: {}", left.join(" ")))),
    }
}

fn missing() -> Vec<&'static str> {
    let absent = PROGRAMS.iter().filter(|(program, _)| !installed(program));
    let mut packages: Vec<_> = absent.map(|(_, package)| *package).collect();
    packages.dedup();
    packages
}

fn apt_install(packages: &[&str]) -> Result<()> {
    if !installed("apt-get") {
        bail!("no apt-get here; install them by other means");
    }
    let root = rustix::process::geteuid().is_root();
    if !root && !installed("sudo") {
        bail!("neither root nor sudo");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if root { "apt-get" } else { "sudo" });
        if !root {
            command.args(["-n", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        Job::spawn("apt-get", &mut command)?.wait_showing(Duration::from_secs(600))?.success()
    };
    apt(&["update", "-q"])?;
    // One by one, and what counts is whether the program is there afterwards: releases differ in what a package holds
    // (nbdfuse is in libnbd-bin in some), and a name that is missing must not cost the others.
    for package in packages {
        let _ = apt(&["install", "-y", "-q", "--no-install-recommends", package]);
    }
    Ok(())
}

fn components() -> Result<Outcome> {
    if !installed("rustup") {
        return Ok(Outcome::Skipped(
            "no rustup here; clippy, rustfmt and the wasm target must come by other means".to_owned(),
        ));
    }
    let rustup = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        Job::spawn("rustup", command.args(arguments))?.wait_showing(Duration::from_secs(600))?.success()
    };
    let have = rustup(&["component", "list", "--installed"])?.stdout;
    for component in COMPONENTS.iter().filter(|component| !have.contains(*component)) {
        rustup(&["component", "add", component])?;
    }
    if !rustup(&["target", "list", "--installed"])?.stdout.contains(WASM) {
        rustup(&["target", "add", WASM])?;
    }
    Ok(Outcome::Passed(1))
}
