//! What is the same in the simulation and on the cluster.

use crate::config::Bytes;
use crate::live::asked::{Asked, Loop};
use crate::live::bed::{self, Setting};
use anyhow::{Result, ensure};
use base::BLOCK_U64;
use lab::outcome::Assumed;
use lab::parameters::{Parameters, Value};
use model::drive::{DriveModel, DriveOptions, SECTOR_BYTES};
use reads::distribute::GRANULE_BYTES;
use sim::timed::{Locality, Mix, Sizes, Threads};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Bricks, and copies of everything.
pub(super) const BRICKS: u32 = 8;
pub(super) const OUTSTANDING: u32 = 16;
/// The share of reads.
pub(super) const READS: f64 = 0.9;
/// Every request is one block of the cluster: the mean of the paper's exponential sizes.
pub(super) const REQUEST_BYTES: u64 = BLOCK_U64;
/// 99% of the answers that the emulation held back must not be later than this share of the mean service time.
pub(super) const LATE_SHARE_MAX: f64 = 0.02;
/// The simulation must be this near.
pub(super) const ERROR_MAX: f64 = 0.05;

const DILATE_MAX: u32 = 1_000;

/// Those of the laboratory's assumptions that a live run shares; the rest of them is as the cluster does it.
pub const ASSUMPTIONS: [&str; 4] = ["drive", "drive_parts", "journal_bytes", "network_one_way_us"];

#[derive(Clone, Debug)]
pub struct Plan {
    /// How many times slower than the clock the drives' time passes.
    pub dilate: u32,
    /// The drives' time before measuring.
    pub warm_up: Duration,
    /// The drives' time that is measured.
    pub measure: Duration,
    /// Whether it is a tenth as long, for a first look.
    pub quick: bool,
    /// Of the load and of the simulation.
    pub seed: u64,
    /// The volume, spread over the whole drive.
    pub volume: Bytes,
    /// Where bricks keep their files.
    pub folder: PathBuf,
    pub drive: Drive,
    /// A message's way, as the simulation reckons with it.
    pub one_way_ns: u64,
    /// What is assumed, [`ASSUMPTIONS`] and how slowly the drives' time passes, and why.
    pub assumptions: Vec<Assumed>,
}

/// The drive that each brick has.
#[derive(Clone, Debug)]
pub struct Drive {
    pub model: Arc<DriveModel>,
    /// Its name in the library.
    pub id: String,
    /// Which parts of it are in force.
    pub parts: String,
    /// Written blocks that may wait for it.
    pub nvram_bytes: u64,
}

impl Drive {
    fn of(parameters: &Parameters) -> Result<Drive> {
        let id = parameters.text("drive").to_owned();
        let entry = model::drive::find(&id).expect("the parameter file names a drive of the library");
        Ok(Drive {
            model: Arc::new(DriveModel::parse(entry.id, entry.text)?),
            id,
            parts: parameters.text("drive_parts").to_owned(),
            nvram_bytes: parameters.count("journal_bytes"),
        })
    }

    /// The parts of the drive in force.
    pub fn options(&self) -> DriveOptions {
        if self.parts == "mechanics" { DriveOptions::MECHANICS } else { DriveOptions::UNCACHED }
    }
}

impl Plan {
    /// As the laboratory's parameters say.
    ///
    /// # Errors
    /// When `dilate` makes no sense.
    pub fn new(parameters: &Parameters, dilate: u32, seed: u64, is_quick: bool) -> Result<Plan> {
        ensure!(
            (1..=DILATE_MAX).contains(&dilate),
            "--dilate is {dilate}; it must be between 1 and {DILATE_MAX}"
        );
        let length = |seconds| Duration::from_secs(seconds) / if is_quick { 10 } else { 1 };
        Ok(Plan {
            dilate,
            quick: is_quick,
            warm_up: length(10),
            measure: length(60),
            seed,
            volume: Bytes(256 << 20),
            folder: bed::folder(),
            drive: Drive::of(parameters)?,
            one_way_ns: (parameters.number("network_one_way_us") * 1e3) as u64,
            assumptions: assumptions(parameters, dilate),
        })
    }

    /// The cluster: a copy on every brick.
    pub(super) fn setting(&self) -> Setting {
        Setting {
            bricks: BRICKS,
            gateways: 1,
            layout: format!("raid1x{BRICKS}"),
            volume: self.volume,
            cache: Bytes(0),
        }
    }

    /// What clients ask for.
    pub(super) fn asked(&self) -> Asked {
        let mix = Mix { reads: READS, sizes: Sizes::Blocks(1), locality: Locality::Uniform };
        Asked::Loop(Loop {
            threads: Threads::constant(mix, OUTSTANDING),
            sectors: self.volume.0 / SECTOR_BYTES,
            seed: self.seed,
        })
    }

    /// So many bytes of the drive are one granule of the volume.
    pub fn granule_on_drive(&self) -> u64 {
        let granules = (self.volume.0 / GRANULE_BYTES).max(1);
        self.drive.model.capacity_sectors() * SECTOR_BYTES / granules
    }

    /// What bricks read of their drives.
    pub fn emulation(&self) -> String {
        let Plan { dilate, drive: Drive { id, parts, nvram_bytes, .. }, .. } = self;
        let one_way_us = self.one_way_ns / 1_000;
        format!(
            "dilate = {dilate}\n\n[drive]\nmodel = \"{id}\"\nheads = \"sptf\"\nparts = \"{parts}\"\n\
             claim_one_way_us = {one_way_us}\nnvram_bytes = {nvram_bytes}\ndata_bytes = {}\n",
            self.volume.0
        )
    }
}

fn assumptions(parameters: &Parameters, dilate: u32) -> Vec<Assumed> {
    let assumed = |name| Assumed::of(parameters, name);
    let dilate = Assumed {
        name: "dilate".to_owned(),
        value: Value::Number(dilate.into()),
        why: "The drives' time passes so many times slower than the clock, so that the machine keeps up with them."
            .to_owned(),
    };
    ASSUMPTIONS.into_iter().map(assumed).chain([dilate]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::disk::emulated::Settings;
    use std::path::Path;

    #[test]
    fn bricks_take_what_the_plan_says_of_their_drives() {
        let plan = Plan::new(&lab::papers::parameters("d-sptf"), 12, 1, true).expect("a plan");
        let settings = Settings::parse(&plan.emulation(), Path::new(".")).expect("settings");
        let drive = settings.drive.expect("a drive");
        assert_eq!((settings.dilate, drive.data_bytes), (12, Some(plan.volume.0)));
        assert_eq!((drive.options, drive.nvram_bytes), (plan.drive.options(), plan.drive.nvram_bytes));
        assert_eq!(drive.claim_one_way_ns, plan.one_way_ns);
        assert_eq!(drive.model.capacity_sectors(), plan.drive.model.capacity_sectors());
        assert!(Plan::new(&lab::papers::parameters("d-sptf"), 0, 1, true).is_err());
    }

    #[test]
    fn a_quick_run_is_a_tenth_as_long_and_says_what_it_assumes() {
        let plan = |is_quick| Plan::new(&lab::papers::parameters("d-sptf"), 3, 1, is_quick).expect("a plan");
        let (full, quick) = (plan(false), plan(true));
        assert_eq!((full.warm_up, full.measure), (quick.warm_up * 10, quick.measure * 10));
        let assumed: Vec<(&str, String)> =
            full.assumptions.iter().map(|one| (one.name.as_str(), one.value.to_string())).collect();
        assert_eq!(assumed[0], ("drive", full.drive.id.clone()));
        assert_eq!(assumed[2], ("journal_bytes", full.drive.nvram_bytes.to_string()));
        assert_eq!(assumed[4], ("dilate", "3".to_owned()));
    }
}
