//! Closed loops under head schedulers, against curves.

use super::checks::{Check, check_inside};
use super::reference::{Kind, Reference};
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result, anyhow};
use indicatif::ProgressBar;
use model::drive::{Access, Drive, DriveModel};
use serde_json::{Value, json};
use sim::reference::{self, CurvePoint};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points of curves must agree as closely as this.
const CURVES_PERCENT: f64 = 0.5;
/// A point of a curve, and what the model came to.
pub(super) struct Compared {
    pub(super) point: CurvePoint,
    pub(super) iops: f64,
    pub(super) service_ms: f64,
    pub(super) response_ms: f64,
}

impl Compared {
    /// How far the model's throughput is from the reference, in percent of it.
    pub(super) fn percent_apart(&self) -> f64 {
        (self.iops / self.point.iops - 1.0) * 100.0
    }

    pub(super) fn json(&self) -> Value {
        let point = &self.point;
        json!({
            "configuration": point.configuration, "mix": point.mix, "scheduler": point.scheduler,
            "outstanding": point.depth, "candidates": point.depth.saturating_sub(1).max(1),
            "reference_iops": point.iops, "iops": self.iops, "percent_apart": self.percent_apart(),
            "reference_service_ms": point.service_ms, "service_ms": self.service_ms,
            "reference_response_ms": point.response_ms, "response_ms": self.response_ms,
        })
    }
}

/// All points that are the model's to meet, on all processors.
pub(super) fn curves(
    global: &Global,
    model: &Arc<DriveModel>,
    curves: &Reference,
    references: &[Reference],
) -> Result<Vec<Compared>> {
    let workload = references.iter().find(|reference| reference.kind == Kind::Workload).ok_or_else(|| {
        anyhow!(
            "{} needs the stream of accesses, `lbn,blocks,read_in_r90,read_in_r67`, beside it",
            curves.name()
        )
    })?;
    let mut points =
        reference::parse_curves(&curves.text).with_context(|| curves.path.display().to_string())?;
    let unknown: Vec<CurvePoint> =
        points.extract_if(.., |point| reference::loop_of(point).is_none()).collect();
    warn_of(curves, &unknown);
    let stream = |percent| {
        let context = || workload.path.display().to_string();
        let accesses = reference::parse_workload(&workload.text, percent).with_context(context)?;
        check_inside(model, accesses.iter().copied()).with_context(context)?;
        Ok((percent, accesses))
    };
    let streams = [100, 90, 67].into_iter().map(stream).collect::<Result<Vec<_>>>()?;
    let progress = if global.json {
        ProgressBar::hidden()
    } else {
        output::progress(points.len() as u64, "closed loops", false)
    };
    let compared = on_all_processors(points, |point| {
        let compared = compare(model, point, &streams);
        progress.inc(1);
        compared
    });
    progress.finish_and_clear();
    compared.into_iter().collect()
}

/// Names the curves that nothing is run for.
fn warn_of(curves: &Reference, unknown: &[CurvePoint]) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for point in unknown {
        *counts.entry((&point.configuration, &point.scheduler)).or_default() += 1;
    }
    for ((configuration, scheduler), count) in counts {
        let (file, points) = (curves.path.display(), output::count(count, "point"));
        eprintln!(
            "warning: {file}: {points} not compared: nothing is known of {configuration} under {scheduler}"
        );
    }
}

fn compare(model: &Arc<DriveModel>, point: &CurvePoint, streams: &[(u32, Vec<Access>)]) -> Result<Compared> {
    let stream = streams.iter().find(|(percent, _)| *percent == point.read_percent());
    let (_, accesses) =
        stream.ok_or_else(|| anyhow!("there is no stream of {} reads and writes", point.mix))?;
    let (config, options) =
        reference::loop_of(point).ok_or_else(|| anyhow!("{} is unknown", point.scheduler))?;
    if config.depth == 0 || config.depth > accesses.len() {
        return Err(anyhow!(
            "outstanding_Q: is {}; the stream has {} accesses",
            config.depth,
            accesses.len()
        ));
    }
    let found = reference::closed_loop(&mut Drive::with_options(model.clone(), options), config, accesses);
    Ok(Compared {
        point: point.clone(),
        iops: found.iops(),
        service_ms: found.service_ms(),
        response_ms: found.response_ms(),
    })
}

/// `work` on every item, the results in the items' order.
fn on_all_processors<T: Sync, R: Send>(items: Vec<T>, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            done.push((index, work(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// One line for each curve.
pub(super) fn curve_checks(compared: &[Compared]) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    let curve = |compared: &Compared| {
        let point = &compared.point;
        (point.configuration.clone(), point.mix.clone(), point.scheduler.clone())
    };
    for points in compared.chunk_by(|one, next| curve(one) == curve(next)) {
        let (configuration, mix, scheduler) = curve(&points[0]);
        let worst = points
            .iter()
            .map(|point| point.percent_apart())
            .fold(0f64, |worst, percent| if percent.abs() > worst.abs() { percent } else { worst });
        let is_promised = configuration != "C_stock";
        checks.push(Check {
            what: "throughput",
            of: format!("{configuration} {mix} {scheduler}"),
            compared: points.len() as u64,
            found: format!("worst {worst:+.2}%"),
            bound: if is_promised { format!("{CURVES_PERCENT}%") } else { "-".to_owned() },
            holds: is_promised.then_some(worst.abs() <= CURVES_PERCENT),
            details: json!({ "worst_percent": worst }),
        });
    }
    checks
}
