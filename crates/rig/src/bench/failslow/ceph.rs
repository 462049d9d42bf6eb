//! Writes to Ceph while one of its OSDs ails: three copies, the same load, asked over NBD from librbd.
//!
//! Nothing here makes the disk of an OSD late, so the states are those that a process has.

use super::load::{Kind, Load};
use super::state::{Ailing, BRICK, State};
use super::writes::{self, Writes, Written};
use super::{CACHE_BYTES, Plan, WRITE_BYTES, wait_until_steady};
use crate::bench::ceph::{self, Ceph};
use anyhow::{Context, Result, bail};
use job::process::{capture, installed};
use std::process::Command;
use std::time::Duration;

const OSDS: usize = 3;
const POOL: &str = "copies";
const IMAGE: &str = "v";

/// What must be installed before Ceph can be measured, if anything must.
pub(super) fn missing() -> Result<Option<String>> {
    let mut absent = Vec::new();
    if installed("qemu-img") {
        let help = capture("qemu-img", Command::new("qemu-img").arg("--help"), ceph::COMMAND_LIMIT)?.stdout;
        let formats = help.lines().find_map(|line| line.strip_prefix("Supported formats:"));
        let has_rbd = formats.is_some_and(|formats| formats.split_whitespace().any(|one| one == "rbd"));
        absent.extend((!has_rbd).then_some("QEMU's driver rbd"));
    }
    Ok(ceph::missing(&["qemu-nbd", "qemu-img"], &absent, "qemu-utils qemu-block-extra"))
}

/// All states that Ceph can be in here, each on a cluster of its own.
pub(super) fn measure(plan: &Plan, mut each: impl FnMut(&Writes)) -> Result<Vec<Writes>> {
    let layout = format!("ceph {}", ceph::version()?.split('.').take(2).collect::<Vec<_>>().join("."));
    let can_be = |state: &&State| !matches!(state, State::Late(_));
    let mut all = Vec::new();
    for state in plan.states.iter().filter(can_be) {
        let mut ceph = Filled::new(plan)?;
        let writes = writes::in_state(&mut ceph, &layout, *state, plan)
            .with_context(|| format!("Ceph written, one OSD {}", state.name()))?;
        each(&writes);
        all.push(writes);
    }
    Ok(all)
}

/// A cluster with an image that is written all over.
struct Filled {
    ceph: Ceph,
    endpoint: String,
}

impl Filled {
    fn new(plan: &Plan) -> Result<Filled> {
        let mut ceph = Ceph::start(OSDS, CACHE_BYTES)?;
        ceph.create_pool_of_copies(POOL, OSDS)?;
        ceph.create_image(POOL, IMAGE, plan.bytes)?;
        let endpoint = ceph.serve(POOL, IMAGE)?;
        let filled = Filled { ceph, endpoint };
        filled.writes().fill(plan.bytes)?;
        let reads = Load::new(filled.endpoint.clone(), IMAGE, Kind::Read, plan.read_bytes);
        wait_until_steady(&reads, plan)?;
        Ok(filled)
    }
}

impl Ailing for Filled {
    fn pid(&self) -> Result<u32> {
        self.ceph.osd_pid(BRICK)
    }

    fn set_late(&mut self, _: u64) -> Result<()> {
        bail!("nothing here makes the disk of an OSD late")
    }

    fn kill(&mut self) -> Result<()> {
        self.ceph.kill_osd(BRICK)
    }

    fn restart(&mut self) -> Result<()> {
        self.ceph.restart_osd(BRICK)
    }
}

impl Written for Filled {
    /// An OSD that says nothing is down after 20 s, as usual.
    const LEAVES_WITHIN: Duration = Duration::from_secs(40);

    fn writes(&self) -> Load {
        Load::new(self.endpoint.clone(), IMAGE, Kind::Write, WRITE_BYTES)
    }

    /// By the last that the monitor logged of it.
    fn is_out(&self, _: State) -> Result<(bool, bool)> {
        let osd = format!("osd.{} ", BRICK - 1);
        let said = self.ceph.monitor_said();
        let mut words =
            said.lines().rev().filter_map(|line| line.split_once(&osd)?.1.split_whitespace().next());
        let last = words.find(|word| ["failed", "marked", "boot"].contains(word));
        Ok((false, last.is_some_and(|word| word != "boot")))
    }

    /// Until an OSD has all data again only a manager could tell.
    fn wait_until_back(&mut self) -> Result<Option<Duration>> {
        self.ceph.wait_until_all_up(OSDS)?;
        Ok(None)
    }
}
