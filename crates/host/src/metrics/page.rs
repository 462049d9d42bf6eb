//! The page of a daemon's figures, as Prometheus reads it.
//!
//! What each figure is called, of which kind it is and what it means stands once, where operators read it: in
//! `docs/operations/metrics.md`. The page takes its `# HELP` from there.

use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

/// What tells the figures of one name apart.
pub(super) type Label = Option<(&'static str, String)>;

/// All figures, by name and label.
#[derive(Default)]
pub(super) struct Page(BTreeMap<&'static str, BTreeMap<Label, Value>>);

/// A figure.
pub(super) enum Value {
    /// A total since the start.
    Counter(f64),
    /// A value of now.
    Gauge(f64),
    Histogram(Buckets),
}

/// How many were up to a bound, for each bound in order; the last bound is [`Duration::MAX`].
pub(super) struct Buckets {
    pub(super) cumulative: Vec<(Duration, u64)>,
    pub(super) sum: Duration,
}

impl Page {
    pub(super) fn set(&mut self, name: &'static str, label: Label, value: Value) {
        debug_assert!(
            MEANINGS.get(name).is_some_and(|meaning| meaning.kind == value.kind()),
            "{name} is not in docs/operations/metrics.md, or is of another kind there"
        );
        self.0.entry(name).or_default().insert(label, value);
    }

    /// In the text format of Prometheus.
    pub(super) fn render(&self) -> String {
        let families: Vec<MetricFamily> =
            self.0.iter().filter_map(|(name, values)| family(name, values)).collect();
        TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| {
            tracing::error!(%error, "the metrics cannot be told");
            String::new()
        })
    }
}

fn family(name: &str, values: &BTreeMap<Label, Value>) -> Option<MetricFamily> {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(MEANINGS.get(name).map(|meaning| meaning.help.clone()).unwrap_or_default());
    family.set_field_type(values.values().next()?.kind());
    family.set_metric(values.iter().map(|(label, value)| value.metric(label.as_ref())).collect());
    Some(family)
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Value::Counter(_) => MetricType::COUNTER,
            Value::Gauge(_) => MetricType::GAUGE,
            Value::Histogram(_) => MetricType::HISTOGRAM,
        }
    }

    fn metric(&self, label: Option<&(&'static str, String)>) -> Metric {
        let mut metric = Metric::from_label(label.map(pair).into_iter().collect());
        match self {
            Value::Counter(value) => {
                let mut counter = Counter::default();
                counter.set_value(*value);
                metric.set_counter(counter);
            }
            Value::Gauge(value) => {
                let mut gauge = Gauge::default();
                gauge.set_value(*value);
                metric.set_gauge(gauge);
            }
            Value::Histogram(buckets) => metric.set_histogram(buckets.histogram()),
        }
        metric
    }
}

fn pair((name, value): &(&'static str, String)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name((*name).to_owned());
    pair.set_value(value.clone());
    pair
}

impl Buckets {
    fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.set_sample_count(self.cumulative.last().map_or(0, |(_, count)| *count));
        histogram.set_sample_sum(self.sum.as_secs_f64());
        // The bucket of all, which has no bound, follows from their number.
        let bounded = self.cumulative.iter().filter(|(bound, _)| *bound != Duration::MAX);
        let bucket = |(bound, count): &(Duration, u64)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound.as_secs_f64());
            bucket.set_cumulative_count(*count);
            bucket
        };
        histogram.set_bucket(bounded.map(bucket).collect());
        histogram
    }
}

/// What is written of a figure.
struct Meaning {
    kind: MetricType,
    help: String,
}

static MEANINGS: LazyLock<BTreeMap<&'static str, Meaning>> =
    LazyLock::new(|| meanings(include_str!("../../../../docs/operations/metrics.md")));

/// The rows of the page's table: name and labels, kind, daemon, meaning.
fn meanings(page: &'static str) -> BTreeMap<&'static str, Meaning> {
    page.lines().filter_map(meaning).collect()
}

fn meaning(row: &'static str) -> Option<(&'static str, Meaning)> {
    let mut cells = row.strip_prefix("| `brickwork_")?.strip_suffix(" |")?.split(" | ");
    let (name, kind, meaning) = (cells.next()?, cells.next()?, cells.nth(1)?);
    let kind = match kind {
        "counter" => MetricType::COUNTER,
        "gauge" => MetricType::GAUGE,
        "histogram" => MetricType::HISTOGRAM,
        _ => return None,
    };
    let length = "brickwork_".len() + name.find(['{', '`'])?;
    let name = row["| `".len()..].get(..length)?;
    Some((name, Meaning { kind, help: plain(meaning) }))
}

/// Text without the marks of links and code.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, (text, behind))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        plain.push_str(before);
        plain.push_str(text);
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_tells_kinds_and_meanings_and_real_histograms() {
        let mut page = Page::default();
        page.set("brickwork_bricks_slow", None, Value::Gauge(2.0));
        let label = |event: &str| Some(("event", event.to_owned()));
        page.set("brickwork_protocol_events_total", label("a \"b\""), Value::Counter(7.0));
        page.set("brickwork_protocol_events_total", label("c"), Value::Counter(8.0));
        let cumulative =
            vec![(Duration::from_micros(16), 1), (Duration::from_micros(32), 3), (Duration::MAX, 4)];
        let buckets = Buckets { cumulative, sum: Duration::from_millis(1500) };
        page.set("brickwork_nbd_read_seconds", None, Value::Histogram(buckets));
        let expected = "\
# HELP brickwork_bricks_slow bricks that have been left out because they are slow
# TYPE brickwork_bricks_slow gauge
brickwork_bricks_slow 2
# HELP brickwork_nbd_read_seconds how long reads took
# TYPE brickwork_nbd_read_seconds histogram
brickwork_nbd_read_seconds_bucket{le=\"0.000016\"} 1
brickwork_nbd_read_seconds_bucket{le=\"0.000032\"} 3
brickwork_nbd_read_seconds_bucket{le=\"+Inf\"} 4
brickwork_nbd_read_seconds_sum 1.5
brickwork_nbd_read_seconds_count 4
# HELP brickwork_protocol_events_total rare events of the protocol, for developers; crates/rules/src/counters.rs lists the names
# TYPE brickwork_protocol_events_total counter
brickwork_protocol_events_total{event=\"a \\\"b\\\"\"} 7
brickwork_protocol_events_total{event=\"c\"} 8
";
        assert_eq!(page.render(), expected);
    }

    /// Each row of the table is understood, whatever else is on the page.
    #[test]
    fn each_row_says_what_a_figure_means() {
        let text = include_str!("../../../../docs/operations/metrics.md");
        let rows = text.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(MEANINGS.len(), rows);
        let is_plain =
            |meaning: &Meaning| !meaning.help.is_empty() && !meaning.help.contains(['[', ']', '`']);
        assert!(MEANINGS.values().all(is_plain));
    }
}
