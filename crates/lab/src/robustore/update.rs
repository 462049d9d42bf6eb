//! How many stored blocks an update of one original block changes.
//!
//! All codes here are linear. So each original block is given a bit of its own, and the bits of a stored block say what it contains.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;
use code::fountain::{Lt, Precoded, Schedule, Scratch};
use serde_json::json;

pub(super) struct Update;

const BLOCKS: u32 = 1024;
/// With 300% redundancy.
const STORED: u32 = 4096;
const RAID0: &str = "RAID-0";
const RRAID: &str = "RRAID";
const ROBUSTORE: &str = "RobuSTore";
const PRECODED: &str = "lt-precoded";
const SCHEMES: [&str; 4] = [RAID0, RRAID, ROBUSTORE, PRECODED];

/// A bit for each original block.
type Bits = [u8; BLOCKS as usize / 8];

struct Changed {
    scheme: &'static str,
}

impl Job for Changed {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "robustore update", "scheme": self.scheme, "blocks": BLOCKS, "stored": STORED })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let original: Vec<Bits> = (0..BLOCKS).map(bit).collect();
        let stored = match self.scheme {
            RAID0 => original.clone(),
            RRAID => original.repeat((STORED / BLOCKS) as usize),
            ROBUSTORE => {
                let (code, _) = Lt::decodable(BLOCKS, STORED, seed).ok_or("no code of this seed decodes")?;
                sums(&code.encode(&(0..STORED).collect::<Vec<_>>()), &original)
            }
            _ => {
                let (source, repair): (Vec<u32>, Vec<u32>) = (0..STORED).partition(|symbol| *symbol < BLOCKS);
                let schedule = Precoded::new(BLOCKS).schedule(&source, &repair);
                let schedule = schedule.map_err(|_| "the source does not give itself back".to_owned())?;
                [original.clone(), sums(&schedule, &original)].concat()
            }
        };
        let changed = |block: u32| stored.iter().filter(|bits| contains(bits, block)).count() as f64;
        let counts: Vec<f64> = (0..BLOCKS).map(changed).collect();
        let mean = counts.iter().sum::<f64>() / f64::from(BLOCKS);
        let most = counts.iter().copied().fold(0.0, f64::max);
        let percent = |count: f64| 100.0 * count / stored.len() as f64;
        let values = [
            ("changed_blocks", mean),
            ("changed_blocks_most", most),
            ("changed_percent", percent(mean)),
            ("changed_percent_most", percent(most)),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(Sample { values, events: u64::from(BLOCKS), ..Sample::default() })
    }
}

fn bit(block: u32) -> Bits {
    let mut bits = [0; BLOCKS as usize / 8];
    bits[block as usize / 8] = 1 << (block % 8);
    bits
}

fn contains(bits: &Bits, block: u32) -> bool {
    bits[block as usize / 8] & 1 << (block % 8) != 0
}

/// What a schedule makes of the original blocks.
fn sums(schedule: &Schedule, original: &[Bits]) -> Vec<Bits> {
    let inputs: Vec<&[u8]> = original.iter().map(Bits::as_slice).collect();
    let mut made = vec![[0; BLOCKS as usize / 8]; schedule.outputs()];
    let mut outputs: Vec<&mut [u8]> = made.iter_mut().map(Bits::as_mut_slice).collect();
    schedule.run(&inputs, &mut outputs, &mut Scratch::default());
    made
}

impl Experiment for Update {
    fn id(&self) -> &str {
        "robustore.update"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "Stored blocks that an update of one of 1,024 original blocks changes, with 300% redundancy"
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn points(&self, _: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        Ok(SCHEMES.map(|scheme| Point::new(Changed { scheme }).with("scheme", scheme)).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["changed_blocks", "changed_blocks_most", "changed_percent", "changed_percent_most"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |scheme: &str, figure: &str| table.number(&[("scheme", Cell::from(scheme))], figure);
        vec![
            claim(
                "RobuSTore: stored blocks that change (about 20)",
                20.0,
                of(ROBUSTORE, "changed_blocks"),
                [16.0, 24.0],
            ),
            claim(
                "RobuSTore: the same, of all, at most (%)",
                0.5,
                of(ROBUSTORE, "changed_percent_most"),
                [0.0, 0.5],
            ),
            shape("RRAID: stored blocks that change, one a copy", of(RRAID, "changed_blocks"), [4.0, 4.0]),
        ]
    }

    fn charts(&self, _: &Table, _: &[Runs]) -> Vec<Chart> {
        Vec::new()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "An update in place of `lt-precoded` would change a large part of its repair symbols. So `brickwork object patch` puts a changed segment anew, and \
             leaves all others as they are."
                .to_owned(),
        ]
    }
}
