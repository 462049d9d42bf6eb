//! What a run leaves in its folder: for each experiment `ID.json` and `ID.csv` (the table), for each picture
//! `NAME.svg`, `NAME.png` and the figures behind it, `NAME.data.csv` and `NAME.data.json`.

use crate::cell::csv;
use crate::error::LabError;
use crate::outcome::Outcome;
use crate::plot::{Chart, png, svg};
use std::path::{Path, PathBuf};

/// Where samples of points are kept inside the folder, for a run that is interrupted.
pub fn points(folder: &Path) -> PathBuf {
    folder.join("points")
}

/// Writes the outcome, with its pictures if wanted. Returns what was written, in order.
///
/// # Errors
/// If a file cannot be written or a picture not be drawn.
pub fn write(folder: &Path, outcome: &Outcome, pictures: bool) -> Result<Vec<PathBuf>, LabError> {
    std::fs::create_dir_all(folder).map_err(LabError::writing(folder))?;
    let mut written = Vec::new();
    let mut put = |name: String, content: &[u8]| {
        let path = folder.join(name);
        outfile::write(&path, content).map_err(LabError::writing(&path))?;
        written.push(path);
        Ok::<(), LabError>(())
    };
    put(format!("{}.json", outcome.subject.id), json(outcome).as_bytes())?;
    put(format!("{}.csv", outcome.subject.id), csv(&outcome.rows).as_bytes())?;
    for chart in outcome.charts.iter().filter(|_| pictures) {
        for (ending, content) in picture(chart)? {
            put(format!("{}.{ending}", chart.name), &content)?;
        }
    }
    Ok(written)
}

fn picture(chart: &Chart) -> Result<[(&'static str, Vec<u8>); 4], LabError> {
    let drawn = svg(chart);
    let pixels = png::png(&chart.name, &drawn)?;
    let raw = serde_json::to_string_pretty(chart).expect("a chart is plain numbers") + "\n";
    Ok([
        ("svg", drawn.into_bytes()),
        ("png", pixels),
        ("data.csv", chart.csv().into_bytes()),
        ("data.json", raw.into_bytes()),
    ])
}

fn json(outcome: &Outcome) -> String {
    serde_json::to_string_pretty(outcome).expect("an outcome is plain numbers") + "\n"
}
