//! Machines whose wall clocks differ.

use anyhow::{Context, Result, ensure};
use rig::cluster::{Cluster, Spec};
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// By how much the second gateway's clock is ahead of the first one's: a minute, an hour and a year behind; and a year ahead.
const AHEAD_S: [i64; 4] = [-60, -3600, -31_536_000, 31_536_000];
/// How often each gateway overwrites the other's block.
const TURNS: u8 = 20;

/// Two gateways overwrite each other's block by turns, and each finds what it wrote; `status` names the clock that is wrong.
pub(super) fn two_gateways_apart(binary: &Path) -> Result<()> {
    AHEAD_S.into_iter().try_for_each(|ahead_s| {
        apart(binary, ahead_s).with_context(|| format!("a clock that is {ahead_s} s ahead"))
    })
}

fn apart(binary: &Path, ahead_s: i64) -> Result<()> {
    let gateway_clocks_s = vec![0, ahead_s];
    let mut cluster = Cluster::start(binary, &Spec { gateways: 2, gateway_clocks_s, ..Spec::default() })?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    // A write that is held up for as long as clocks differ ends with an error.
    cluster.admin(&["volume", "set", "v", "--io-timeout", "10s"])?;
    let mut gateways = [cluster.connect(0, "v")?, cluster.connect(1, "v")?];
    let mut longest = Duration::ZERO;
    for turn in 1..=TURNS {
        for (number, nbd) in gateways.iter_mut().enumerate() {
            let content = [turn * 2 + number as u8; BLOCK];
            let begun = Instant::now();
            nbd.write(0, &content).with_context(|| format!("turn {turn}, gateway {number}"))?;
            longest = longest.max(begun.elapsed());
            ensure!(
                nbd.read(0, BLOCK as u32)? == content,
                "turn {turn}: gateway {number} reads something else"
            );
        }
    }
    eprintln!("clocks {ahead_s} s apart: the longest of {} writes took {longest:.1?}", 2 * TURNS);
    let warnings = cluster.health()?.warnings;
    let named = warnings.iter().any(|line| line.starts_with("the clock of gateway-"));
    ensure!(named, "status does not name the clock that is wrong: {warnings:?}");
    cluster.all_alive()
}
