//! What Figures 12 to 14 show of a trace: requests, their rate, their sizes and the gaps between them, for each interval.

use super::workload::{self, Extent, Interval, Request, Workload};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Plot, Series, Spot};
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn assumptions() -> Vec<&'static str> {
    workload::ASSUMED.iter().copied().chain(["statistics_s"]).collect()
}

/// A point for each interval.
pub(super) fn points(
    workload: Workload,
    parameters: &Parameters,
    scale: Scale,
) -> Result<Vec<Point>, LabError> {
    let tenth = if scale == Scale::Quick { 10.0 } else { 1.0 };
    let lasting_s = parameters.number("statistics_s") / tenth;
    let point = |interval: Interval| {
        let number = interval.number;
        Point::new(Described(interval.lasting(lasting_s))).with("interval", number)
    };
    Ok(workload.intervals(parameters, scale)?.into_iter().map(point).collect())
}

pub(super) fn rows(runs: &Runs) -> Vec<Row> {
    runs.rows(&["requests", "minutes", "per_s", "per_s_max", "size", "size_max", "gap_ms", "gap_max_ms"])
}

pub(super) fn notes() -> Vec<String> {
    vec![
        "Requests and minutes are those of whole intervals. Requests a second, sizes (in buckets of 4 KB) and gaps between requests are measured \
         in a slice of each interval, its first requests; with --full, in all of it. A slice's mean is that of its interval, but for \
         chance. A slice's maximum is a lower bound."
            .to_owned(),
        "Where the traces are generated, requests and minutes are the paper's if its text has them. Sizes and gaps follow from what is assumed. \
         --trace reads recorded files instead."
            .to_owned(),
    ]
}

/// An interval that is described, and not simulated.
struct Described(Interval);

impl Job for Described {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "interval", "interval": self.0.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let extent = self.0.extent()?;
        let mut seen = Seen::default();
        for request in self.0.requests(seed)? {
            seen.add(request?);
        }
        let mut sample = seen.sample(extent);
        if self.0.is_recorded() {
            sample.notes.push("Recorded files were read here, and nothing was generated.".to_owned());
        }
        Ok(sample)
    }
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    requests: u64,
    buckets: u64,
    buckets_max: u32,
    last_ns: u64,
    gap_max_ns: u64,
    /// The second that is being counted, its requests, and the most requests of any second so far.
    second: u64,
    in_second: u64,
    in_second_max: u64,
}

impl Seen {
    fn add(&mut self, Request { at_ns, buckets }: Request) {
        if self.requests > 0 {
            self.gap_max_ns = self.gap_max_ns.max(at_ns - self.last_ns);
        }
        let second = at_ns / 1_000_000_000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.in_second_max = self.in_second_max.max(self.in_second);
        self.requests += 1;
        self.buckets += u64::from(buckets);
        self.buckets_max = self.buckets_max.max(buckets);
        self.last_ns = at_ns;
    }

    fn sample(&self, whole: Extent) -> Sample {
        let requests = self.requests as f64;
        // A recorded slice may be over at once: what was issued before the trace began is issued at its beginning.
        let seconds = self.last_ns.max(1) as f64 / 1e9;
        let values = [
            ("requests", whole.requests as f64),
            ("minutes", whole.duration_s / 60.0),
            ("per_s", requests / seconds),
            ("per_s_max", self.in_second_max as f64),
            ("size", self.buckets as f64 / requests),
            ("size_max", f64::from(self.buckets_max)),
            ("gap_ms", seconds * 1e3 / requests),
            ("gap_max_ms", self.gap_max_ns as f64 / 1e6),
        ];
        Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            series: BTreeMap::new(),
            simulated_ns: self.last_ns,
            events: self.requests,
            notes: Vec::new(),
        }
    }
}

/// What stands in this column, interval by interval.
pub(super) fn column(table: &Table, name: &str) -> Vec<f64> {
    table.0.iter().filter_map(|row| row.get(name)?.number()).collect()
}

/// What the text says of a whole trace.
pub(super) struct Whole {
    pub(super) intervals: u32,
    pub(super) minutes: f64,
    /// In millions, with the band of "around".
    pub(super) millions: f64,
    pub(super) millions_band: [f64; 2],
}

/// The trace is as long as the text says and has as many requests, as described and as found in slices.
pub(super) fn whole(table: &Table, text: Whole) -> Vec<Claim> {
    let (requests, minutes) = (column(table, "requests"), column(table, "minutes"));
    let rates = column(table, "per_s");
    let found: f64 = rates.iter().zip(&minutes).map(|(per_s, minutes)| per_s * minutes * 60.0).sum();
    let minutes_in_all: f64 = minutes.iter().sum();
    let intervals = f64::from(text.intervals);
    let mean_per_s = text.millions * 1e6 / (text.minutes * 60.0);
    let rate_band = text.millions_band.map(|millions| millions * 1e6 / (text.minutes * 60.0));
    vec![
        claim("intervals", intervals, minutes.len() as f64, [intervals, intervals]),
        claim("minutes in all", text.minutes, minutes_in_all, [text.minutes * 0.99, text.minutes * 1.01]),
        claim(
            "requests in all (millions)",
            text.millions,
            requests.iter().sum::<f64>() / 1e6,
            text.millions_band,
        ),
        claim(
            "requests in all, extrapolated from the slices' rates (millions)",
            text.millions,
            found / 1e6,
            text.millions_band,
        ),
        claim(
            "requests a second, mean over time, from the same",
            mean_per_s,
            found / minutes_in_all / 60.0,
            rate_band,
        ),
    ]
}

/// Intervals up to which each has bars of its own; more of them are curves.
const BARS_MAX: usize = 12;
/// Axes are in thousands where requests of whole intervals are counted: millions have more digits than there is room for.
const THOUSAND: f64 = 1e3;

/// A figure's four panels. `marks` are the intervals of which the text has the requests, with their number.
pub(super) fn charts(id: &str, workload: Workload, table: &Table, marks: &[(f64, f64)]) -> Vec<Chart> {
    let panels = Panels { id, workload, table };
    let requests = panels.chart(
        "a",
        "requests of each interval",
        ("requests", "thousands"),
        &[("requests", "requests")],
    );
    let is_curve = matches!(requests.plot, Plot::Lines { .. });
    let marked = |chart: Chart, (interval, requests): &(f64, f64)| {
        chart.marked("requests", *interval, requests / THOUSAND)
    };
    let marks = if is_curve { marks } else { &[] };
    vec![
        marks.iter().fold(requests, marked),
        panels.chart(
            "b",
            "requests in one second",
            ("requests in a second", ""),
            &[("mean", "per_s"), ("maximum", "per_s_max")],
        ),
        panels.chart(
            "c",
            "sizes of requests",
            ("size", "buckets"),
            &[("mean", "size"), ("maximum", "size_max")],
        ),
        panels.chart(
            "d",
            "time from one request to the next",
            ("interarrival time", "ms"),
            &[("mean", "gap_ms"), ("maximum", "gap_max_ms")],
        ),
    ]
}

struct Panels<'a> {
    id: &'a str,
    workload: Workload,
    table: &'a Table<'a>,
}

impl Panels<'_> {
    /// Bars for a few intervals, or curves over many of them, which differ by orders of magnitude.
    fn chart(&self, panel: &str, title: &str, (y, unit): (&str, &str), lines: &[(&str, &str)]) -> Chart {
        let (name, title) = (format!("{}.{panel}", self.id), format!("{}: {title}", self.workload.title()));
        let y = Axis::new(y, unit);
        let intervals = column(self.table, "interval");
        let is_bars = intervals.len() <= BARS_MAX;
        let per = if unit == "thousands" { THOUSAND } else { 1.0 };
        let spot = |(place, row): (usize, &Row), of: &str| {
            let Cell::Number(value, half) = row.get(of)? else { return None };
            let x = if is_bars { place as f64 } else { row.get("interval")?.number()? };
            Some(Spot { x, y: value / per, ci95: half.map(|half| half / per) })
        };
        let line = |(name, of): &(&str, &str)| {
            let spots = self.table.0.iter().enumerate().filter_map(|row| spot(row, of)).collect();
            Series { name: (*name).to_owned(), spots }
        };
        let series = lines.iter().map(line).collect();
        if is_bars {
            let groups = intervals.iter().map(|number| format!("interval {number}")).collect();
            return Chart::bars(&name, &title, y, groups, series);
        }
        Chart::lines(&name, &title, Axis::new("interval", ""), y.logarithmic(), series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_counted_by_hand() {
        let mut seen = Seen::default();
        // Three requests in the first second, four in the fourth, none between.
        for (at_ms, buckets) in [(250, 1), (500, 2), (750, 9), (3_000, 1), (3_100, 1), (3_200, 1), (3_500, 2)]
        {
            seen.add(Request { at_ns: at_ms * 1_000_000, buckets });
        }
        let sample = seen.sample(Extent { requests: 70, duration_s: 90.0 });
        let of = |name: &str| sample.value(name);
        assert_eq!((of("requests"), of("minutes")), (70.0, 1.5));
        assert_eq!((of("per_s"), of("per_s_max")), (2.0, 4.0));
        assert_eq!((of("size_max"), of("gap_ms"), of("gap_max_ms")), (9.0, 500.0, 2_250.0));
        assert!((of("size") - 17.0 / 7.0).abs() < 1e-12);
    }

    /// The table of a trace with these rates, in intervals of a minute.
    fn rows(rates: &[f64]) -> Vec<Row> {
        let row = |(number, per_s): (u32, &f64)| {
            let row = Row::new().with("interval", number).with("requests", per_s * 60.0).with("minutes", 1.0);
            let row =
                row.with("per_s", *per_s).with("per_s_max", *per_s).with("size", 2.0).with("size_max", 2.0);
            row.with("gap_ms", 1e3 / per_s).with("gap_max_ms", 1e4 / per_s)
        };
        (1..).zip(rates).map(row).collect()
    }

    #[test]
    fn another_trace_than_the_papers_is_found_out() {
        let text = || Whole { intervals: 2, minutes: 2.0, millions: 6.0, millions_band: [5.0, 7.0] };
        let fails = |rows: &[Row]| {
            let claims = whole(&Table(rows), text());
            claims.into_iter().filter(|claim| !claim.holds).map(|claim| claim.what).collect::<Vec<_>>()
        };
        assert_eq!(fails(&rows(&[20e3, 80e3])), Vec::<String>::new());
        assert_eq!(fails(&rows(&[20e3, 20e3])).len(), 3);
        assert_eq!(fails(&rows(&[20e3, 70e3, 10e3]))[..2], ["intervals", "minutes in all"]);
        // Slices that come at another rate than their intervals.
        let mut slow = rows(&[20e3, 80e3]);
        slow.iter_mut()
            .for_each(|row| *row = Row::new().with("requests", 3e6).with("minutes", 1.0).with("per_s", 1e3));
        assert_eq!(fails(&slow).len(), 2);
    }

    #[test]
    fn few_intervals_are_bars_and_many_are_curves_with_the_papers_marks() {
        let of = |count: usize| {
            let rows = rows(&vec![1e3; count]);
            charts("retrieval.x", Workload::Exchange, &Table(&rows), &[(3.0, 6e4)])
        };
        for (count, marks) in [(BARS_MAX, 0), (BARS_MAX + 1, 1)] {
            let charts = of(count);
            assert_eq!(charts.len(), 4);
            assert_eq!(matches!(charts[0].plot, Plot::Bars { .. }), marks == 0);
            assert_eq!(charts[0].marks.len(), marks);
            assert!(
                charts.iter().all(|chart| chart.series().iter().all(|series| series.spots.len() == count))
            );
            // In thousands.
            assert_eq!(charts[0].series()[0].spots[2].y, 60.0);
        }
    }
}
