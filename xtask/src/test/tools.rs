//! Programs that the tests drive. What is missing is installed if this machine lets us; what cannot be is named, and the
//! steps that need it are skipped.

use anyhow::{Result, bail};
use job::process::{Job, installed};
use job::report::{Outcome, Report};
use std::process::Command;
use std::time::Duration;

/// A program, the Debian package that holds it, and which steps run it.
struct Program {
    name: &'static str,
    package: &'static str,
    why: &'static str,
}

impl Program {
    /// Debian's Python may come without what makes environments.
    fn is_here(&self) -> bool {
        installed(self.name) && (self.name != PYTHON || makes_environments())
    }
}

fn makes_environments() -> bool {
    Command::new(PYTHON)
        .args(["-c", "import ensurepip, venv"])
        .output()
        .is_ok_and(|output| output.status.success())
}

const PYTHON: &str = "python3";

const fn program(name: &'static str, package: &'static str, why: &'static str) -> Program {
    Program { name, package, why }
}

const PROGRAMS: [Program; 21] = [
    program("fio", "fio", "real clients: random writes that are read back and compared; bench"),
    program("nbdkit", "nbdkit", "bench: another NBD server to compare with"),
    program("nbdinfo", "libnbd-bin", "real clients: what an export says of itself, plainly and over TLS"),
    program("nbdcopy", "libnbd-bin", "real clients: images copied in and out"),
    program("nbdfuse", "nbdfuse", "real clients: ext4 and PostgreSQL on a volume without the kernel's NBD"),
    program("qemu-img", "qemu-utils", "real clients: images converted and compared"),
    program("qemu-io", "qemu-utils", "real clients: patterns, discards, reconnecting"),
    program("mkfs.ext4", "e2fsprogs", "real clients: a file system on a volume"),
    program("fsck.ext4", "e2fsprogs", "real clients: that file system checked after a brick was killed"),
    program("losetup", "mount", "real clients: that file system mounted"),
    program(
        "faketime",
        "faketime",
        "real clients: gateways whose clocks differ by hours; pairs whose clocks stand",
    ),
    program("strace", "strace", "bench: flushes for each acknowledged write"),
    program("node", "nodejs", "wasm: a seed run in wasm has the trace hash that it has natively"),
    program(PYTHON, "python3-venv", "retrieval: OR-tools judges the solver"),
    program("openssl", "openssl", "real clients: certificates of strangers"),
    program(
        "promtool",
        "prometheus",
        "real clients: what daemons tell Prometheus of themselves, judged by its own tool",
    ),
    program("git", "git", "tidy: which files belong to the repository"),
    program("go", "golang-go", "soak, partition: porcupine judges what clients saw"),
    program("ip", "iproute2", "partition: daemons in network namespaces"),
    program("nft", "nftables", "partition: packets dropped between them"),
    program("pg_ctlcluster", "postgresql", "real clients: pgbench while a brick and the server are killed"),
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
    for Program { name, package, why } in &missing {
        eprintln!("    {name} is not here; installing Debian's {package}. It is for {why}");
    }
    if missing.is_empty() {
        return Ok(Outcome::Passed(1));
    }
    let refused = apt_install(&missing).err().map(|error| format!(" ({error:#})")).unwrap_or_default();
    let left = self::missing();
    if left.is_empty() {
        return Ok(Outcome::Passed(1));
    }
    let told = left.iter().map(|program| format!("{}: without it no {}", program.name, program.why));
    Ok(Outcome::Skipped(format!("cannot be installed{refused}: {}", told.collect::<Vec<_>>().join("; "))))
}

fn missing() -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !program.is_here()).collect()
}

fn apt_install(programs: &[&Program]) -> Result<()> {
    if !installed("apt-get") {
        bail!("no apt-get here; install them by other means");
    }
    let root = job::process::is_root();
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
    for program in programs.iter().filter(|program| !program.is_here()) {
        let _ = apt(&["install", "-y", "-q", "--no-install-recommends", program.package]);
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
