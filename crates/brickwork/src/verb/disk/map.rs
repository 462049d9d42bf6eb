//! `brickwork disk map`: where sectors lie.

use crate::global::Global;
use crate::output;
use anyhow::{Context, Result, bail, ensure};
use model::drive::{DriveModel, Place};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Sectors that are shown when none is named.
const SAMPLES: u64 = 16;

/// `disk map`.
#[derive(clap::Args)]
#[command(after_help = "\
Cylinders are counted from the outermost, angles in turns from where the platter is at time zero. A track's first and
last sector are those of the mapping, of which the drive may not offer all. Without sectors, some are shown from the
first to the last.

Examples:
  brickwork disk map quantum-atlas-10k 0 334 17938985
  brickwork disk map quantum-atlas-10k --sectors lbns.csv --json
  seq 0 1000 5000 | brickwork disk map hp-c3323a --sectors -")]
pub(super) struct Map {
    /// A drive of the list, or a file
    drive: String,
    /// Sectors of 512 bytes
    #[arg(value_name = "SECTOR")]
    sector: Vec<u64>,
    /// Read sectors from a file, the first number of each line; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "sector")]
    sectors: Option<PathBuf>,
}

/// Prints where sectors lie.
pub(super) fn map(global: &Global, args: &Map) -> Result<()> {
    let model = super::model_of(&args.drive)?;
    ensure!(model.revolution_ns().is_some(), "{} has no platters: its sectors lie nowhere", args.drive);
    let sectors = match &args.sectors {
        Some(path) => sectors_of(path)?,
        None if args.sector.is_empty() => samples(&model),
        None => args.sector.clone(),
    };
    let capacity = model.capacity_sectors();
    if let Some(beyond) = sectors.iter().find(|&&sector| sector >= capacity) {
        bail!("sector {beyond} is beyond the drive, whose last is {}", capacity - 1);
    }
    let places =
        sectors.iter().filter_map(|&sector| Some((sector, model.place(sector)?, model.track(sector)?)));
    if global.json {
        output::print_json(&places.map(|(sector, place, track)| json_of(sector, place, track)).collect());
        return Ok(());
    }
    let headings = ["lbn", "zone", "cylinder", "surface", "sector", "of", "angle", "track from", "to"];
    let mut table = output::table(&headings);
    for (sector, place, (first, last)) in places {
        let counts = [place.zone, place.cylinder, place.surface, place.sector, place.sectors_per_track];
        let mut cells = vec![sector.to_string()];
        cells.extend(counts.iter().map(u32::to_string));
        cells.extend([format!("{:.6}", turns(place)), first.to_string(), last.to_string()]);
        table.add_row(cells);
    }
    output::align_right(&mut table, &(0..headings.len()).collect::<Vec<_>>());
    println!("{}", output::render(&table));
    Ok(())
}

fn samples(model: &DriveModel) -> Vec<u64> {
    let last = model.capacity_sectors() - 1;
    (0..SAMPLES)
        .map(|sample| (u128::from(last) * u128::from(sample) / u128::from(SAMPLES - 1)) as u64)
        .collect()
}

/// The first number of each line; a heading may stand above them.
fn sectors_of(path: &Path) -> Result<Vec<u64>> {
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("standard input does not read")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("{} does not read", path.display()))?;
    }
    let mut sectors = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let cell = line.split([',', ' ', '\t']).find(|cell| !cell.is_empty()).unwrap_or("");
        match cell.parse() {
            Ok(sector) => sectors.push(sector),
            Err(_) if index == 0 => {}
            Err(_) => {
                bail!("{}:{}: lbn: is `{cell}`; it must be the number of a sector", path.display(), index + 1)
            }
        }
    }
    Ok(sectors)
}

fn json_of(sector: u64, place: Place, (first, last): (u64, u64)) -> Value {
    json!({
        "lbn": sector, "zone": place.zone, "cylinder": place.cylinder, "surface": place.surface,
        "sector": place.sector, "angle_rev": turns(place), "track_first_lbn": first, "track_last_lbn": last,
        "sectors_on_track": place.sectors_per_track,
    })
}

/// Where in a turn a place comes by.
pub(super) fn turns(place: Place) -> f64 {
    place.turn as f64 / 2f64.powi(64)
}
