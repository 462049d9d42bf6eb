//! Slow drives drawn from published statistics, and traps in which no drive is slow: whom the product's own detector finds, how soon, and whom it
//! accuses falsely.
//!
//! *Published.* How drives fall ill: "Fail-Slow at Scale" (FAST '18), table 4. How long an access of an ill drive takes: "hundreds of microseconds
//! to nearly a second", as "One-Size-Fits-None" (NSDI '25), section 2, cites a study of drives at Alibaba (ATC '22). *Assumed*, in `parameters/world.toml`: all else.

mod case;
mod kinds;

use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use case::{COVERED, Case};
use core::time::Duration;
use kinds::{DEVICES, Device, Healthy, Ill, SYMPTOMS, Sudden, What, assumptions, cases, kinds_of};

pub(super) struct Detection;

const LAYOUTS: [&str; 3] = ["raid1x3", "raid5-4+1", "rs-4+2"];

const FIGURES: &[&str] =
    &["found", "covered", "covered_found", "false_alarms", "false_leaves", "brick_hours"];

impl Experiment for Detection {
    fn id(&self) -> &str {
        "world.detection"
    }

    fn paper(&self) -> &str {
        "world"
    }

    fn title(&self) -> &str {
        "Slow drives as published statistics have them: which are found, how soon, and who is accused falsely"
    }

    fn assumptions(&self) -> Vec<&str> {
        assumptions().chain(["network_one_way_us"]).collect()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        let rounds = scale.of(parameters.count("detection_rounds")) as usize;
        // A quick look sees half as much of fewer drives.
        let seconds = parameters.count("detection_seconds");
        let end = Duration::from_secs(if scale == Scale::Quick { seconds / 2 } else { seconds });
        for device in DEVICES {
            for (what, nth) in cases(device, rounds) {
                let layout = LAYOUTS[nth % LAYOUTS.len()];
                let job = Case { parameters: parameters.clone(), end, device, layout, what, nth };
                let point = Point::new(job).with("device", device.name()).with("what", what.name());
                points.push(
                    point.with("severity", what.severity()).with("layout", layout).with("nth", nth as u32),
                );
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let mut rows = Vec::new();
        for device in DEVICES {
            for what in kinds_of(device) {
                rows.push(row(&of(runs, device, what), device, what));
            }
        }
        rows
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for device in DEVICES {
            let sum = |what: &[What], figure: &str| -> f64 {
                what.iter().map(|what| figure_of(table, device, *what, figure)).sum()
            };
            let ill: Vec<What> =
                kinds_of(device).into_iter().filter(|what| matches!(what, Ill(..))).collect();
            let share = sum(&ill, "covered_found") / sum(&ill, "covered");
            let what = "share found of the drives that the rule covers";
            claims.push(shape(format!("{}: {what}", device.name()), share, [1.0, 1.0]));
            let sudden = ill.iter().filter(|what| matches!(what, Ill(Sudden, _)));
            let worst = sudden.map(|what| figure_of(table, device, *what, "covered_worst_s"));
            let worst = worst.fold(0.0, f64::max);
            let what = "slow from a moment on and covered, seconds until the last is found";
            claims.push(shape(format!("{}: {what}", device.name()), worst, [0.0, COVERED.as_secs_f64()]));
            let beside = sum(&ill, "false_alarms");
            let what = "beside a slow drive, healthy bricks accused";
            claims.push(shape(format!("{}: {what}", device.name()), beside, [0.0, 0.0]));
            for trap in device.traps().map(Healthy) {
                let accused = figure_of(table, device, trap, "false_alarms");
                let what = format!("{}, {}: healthy bricks accused", device.name(), trap.name());
                claims.push(shape(what, accused, [0.0, 0.0]));
            }
        }
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let chart = |device: Device| {
            let of_symptom = |symptom| {
                let kinds =
                    kinds_of(device).into_iter().filter(|what| matches!(what, Ill(of, _) if *of == symptom));
                let samples: Vec<_> =
                    kinds.flat_map(|what| runs.iter().flat_map(move |runs| of(runs, device, what))).collect();
                let found = seconds(&samples, "found");
                let spot = |(at, s): (usize, &f64)| Spot {
                    x: *s,
                    y: (at + 1) as f64 / samples.len() as f64,
                    ci95: None,
                };
                let spots = found.iter().enumerate().map(spot).collect();
                Series { name: Ill(symptom, [0.0; 2]).name().to_owned(), spots }
            };
            let name = device.name();
            Chart::lines(
                &format!("world.detection.seconds-{name}"),
                &format!("{name}: share of all slow drives found in time, of every severity"),
                Axis::new("time since the drive fell ill", "s").logarithmic(),
                Axis::new("share found", ""),
                SYMPTOMS.into_iter().map(of_symptom).collect(),
            )
        };
        DEVICES.into_iter().map(chart).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "`found` counts drives of which the directory's status said that their brick is slow, silent or left out; seconds count from the moment it began. `covered` counts those for which the rule on the \
             page of bricks says that they are found: an access takes at least 10.7 ms and four times as long as those of the other drives, for at least 3 s at a stretch; or the brick stands still for \
             at least 2 s. `false_alarms` counts other bricks that the status called slow or named as slower than their peers, and `false_leaves` those of them that it \
             left out of their groups."
                .to_owned(),
        ]
    }
}

fn of(runs: &Runs, device: Device, what: What) -> Vec<&Sample> {
    let cells = [
        ("device", Cell::from(device.name())),
        ("what", Cell::from(what.name())),
        ("severity", Cell::from(what.severity())),
    ];
    let is_meant = |labels: &Row| cells.iter().all(|(name, cell)| labels.says(name, cell));
    runs.runs.iter().filter(|(labels, _)| is_meant(labels)).map(|(_, sample)| sample).collect()
}

/// When those were found of which the figure is 1, in rising order.
fn seconds(samples: &[&Sample], figure: &str) -> Vec<f64> {
    let found = samples.iter().filter(|sample| sample.value(figure) > 0.0);
    let mut seconds: Vec<f64> = found.map(|sample| sample.value("found_after_s")).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn row(samples: &[&Sample], device: Device, what: What) -> Row {
    let row = Row::new().with("device", device.name()).with("what", what.name());
    let row = row.with("severity", what.severity()).with("runs", samples.len() as u32);
    let sum = |figure: &str| samples.iter().map(|sample| sample.value(figure)).sum::<f64>();
    let row = FIGURES.iter().fold(row, |row, figure| row.with(*figure, sum(figure)));
    let (found, covered) = (seconds(samples, "found"), seconds(samples, "covered_found"));
    // The least that so many percent do not exceed.
    let percentile = |seconds: &[f64], percent: usize| match seconds.len() {
        0 => Cell::from("-"),
        count => Cell::from(seconds[(count * percent).div_ceil(100).max(1) - 1]),
    };
    row.with("median_s", percentile(&found, 50))
        .with("p90_s", percentile(&found, 90))
        .with("worst_s", percentile(&found, 100))
        .with("covered_worst_s", percentile(&covered, 100))
}

/// A figure of a row; 0 where there is none.
fn figure_of(table: &Table, device: Device, what: What, figure: &str) -> f64 {
    let cells = [
        ("device", Cell::from(device.name())),
        ("what", Cell::from(what.name())),
        ("severity", Cell::from(what.severity())),
    ];
    table.select(&cells).find_map(|row| row.get(figure)?.number()).unwrap_or(0.0)
}
