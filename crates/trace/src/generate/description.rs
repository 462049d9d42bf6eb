//! What a synthetic trace is like, as a file of TOML says it. Built in are the traces of the D-SPTF paper's Table 2 and those of the
//! continuous-retrieval paper.
//!
//! ```toml
//! name = "example"
//! title = "Something busy"
//! requests = 100000
//! duration_s = 600
//! read_share = 0.9
//! intervals = [                # may be absent: one rate throughout
//!   { duration_s = 200, requests = 90000 },
//!   { duration_s = 400, requests = 10000 },
//! ]
//!
//! [sizes]                      # fixed (bytes), exponential (mean_bytes, max_bytes) or table (bytes and weight)
//! kind = "exponential"
//! mean_bytes = 4096
//! max_bytes = 65536
//!
//! [arrivals]                   # even, poisson, hyperexponential (cv), on-off (on_s, off_s) or b-model (bias, slice_s)
//! kind = "hyperexponential"
//! cv = 3
//!
//! [locality]
//! fresh_share = 0.3            # requests for what was never touched before
//! run_requests = 4             # how many of those are sequential, on average
//! reuse = [                    # of all others: the share whose reuse distance is below so many bytes
//!   { within_bytes = 1048576, share = 0.5 },
//!   { within_bytes = 1073741824, share = 1 },
//! ]
//!
//! [luns]
//! count = 8
//! footprint_bytes = 17179869184  # of all LUNs together: where fresh requests may go
//! skew = 0                     # the n-th LUN is as popular as 1 / n^skew
//! ```

use super::TraceSource;
use crate::record::SECTOR_BYTES;
use serde::Deserialize;
use thiserror::Error;

/// Fresh requests begin at multiples of this, so that caches of such blocks find nothing of them: 4 KiB.
pub(super) const BLOCK_BYTES: u64 = base::BLOCK_U64;

/// A description that makes no sense: which one, and why.
#[derive(Debug, Error)]
#[error("trace description {name}: {why}")]
pub struct DescriptionError {
    /// Its file, or its name.
    pub name: String,
    /// The field and what is wrong with it.
    pub why: String,
}

/// What a synthetic trace is like.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub name: String,
    /// What it stands for.
    pub title: String,
    pub requests: u64,
    /// How long they last, in seconds; with random gaps only on average.
    pub duration_s: f64,
    /// The share of requests that read.
    pub read_share: f64,
    /// Parts with a rate each, one after the other, of which `requests` and `duration_s` are the sums. Empty: one rate throughout.
    #[serde(default)]
    pub intervals: Vec<Interval>,
    /// How large requests are.
    pub sizes: Sizes,
    /// When they come.
    pub arrivals: Arrivals,
    /// What they touch again.
    pub locality: Locality,
    /// Where they go.
    pub luns: Luns,
    /// What was assumed, and why.
    #[serde(default, rename = "assumption")]
    pub assumptions: Vec<Assumption>,
}

/// A part of a trace with a rate of its own.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Seconds; with random gaps only on average.
    pub duration_s: f64,
    /// May be 0: then nothing comes for so long.
    pub requests: u64,
}

/// How large requests are. All are rounded up to sectors of 512 bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Sizes {
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    Exponential {
        /// The mean without the cut, in bytes.
        mean_bytes: f64,
        /// The largest, in bytes.
        max_bytes: u64,
    },
    /// Some sizes with their weights.
    Table { table: Vec<Weighted> },
}

/// A size and how often it comes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// Bytes.
    pub bytes: u64,
    /// Any unit; only proportions count.
    pub weight: f64,
}

/// When requests come.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "kebab-case")]
pub enum Arrivals {
    /// Always the same gap.
    Even,
    Poisson,
    /// Gaps from two exponential phases with balanced means.
    Hyperexponential {
        /// Their coefficient of variation, at least 1.
        cv: f64,
    },
    /// Poisson while on, nothing while off; both periods exponential.
    OnOff {
        /// The mean time on, in seconds.
        on_s: f64,
        /// The mean time off, in seconds.
        off_s: f64,
    },
    /// The b-model (Wang et al., ICDE 2002): of each span of time, one half has `bias` of the requests; down to slices, within which
    /// they lie anywhere. Bursty at all scales above a slice. Its duration is exact.
    BModel {
        /// Between 0.5 (even) and 1.
        bias: f64,
        /// Slices are not longer than this, in seconds.
        slice_s: f64,
    },
}

/// What requests touch again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// The share of requests for what was never touched before; the misses of an infinite cache.
    pub fresh_share: f64,
    /// Requests in a sequential run of fresh ones, on average; 1 for none. Each begins at the next block of 4 KiB.
    pub run_requests: f64,
    /// Reuse distances of all others, with rising shares; the last share is 1. The distance counts the bytes of all other requests'
    /// extents touched in between, each once.
    #[serde(default)]
    pub reuse: Vec<Step>,
}

/// A step of a distribution.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Reuse distances below this, in bytes,
    pub within_bytes: u64,
    pub share: f64,
}

/// Where requests go.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Luns {
    /// How many; they are the trace's devices from 0 on.
    pub count: u32,
    /// Where fresh requests may go, in bytes: the same part of each LUN, from its beginning on.
    pub footprint_bytes: u64,
    /// The n-th LUN is as popular as `1 / n^skew`.
    #[serde(default)]
    pub skew: f64,
}

/// What was assumed, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    pub name: String,
    /// Its value in words.
    pub value: String,
    pub why: String,
}

/// The built-in descriptions: name and text.
pub const LIBRARY: &[(&str, &str)] = &[
    ("sap", include_str!("../../descriptions/sap.toml")),
    ("cello2002", include_str!("../../descriptions/cello2002.toml")),
    ("websearch", include_str!("../../descriptions/websearch.toml")),
    ("financial", include_str!("../../descriptions/financial.toml")),
    ("exchange", include_str!("../../descriptions/exchange.toml")),
    ("tpc-c", include_str!("../../descriptions/tpc-c.toml")),
    ("tpc-e", include_str!("../../descriptions/tpc-e.toml")),
];

impl Description {
    /// Reads a description. `file` is its name, for errors.
    ///
    /// # Errors
    /// Names the field that is missing, unknown or makes no sense, and with errors of syntax the line.
    pub fn parse(file: &str, text: &str) -> Result<Description, DescriptionError> {
        let failed = |why| DescriptionError { name: file.to_owned(), why };
        let description: Description =
            toml::from_str(text).map_err(|error| failed(error.to_string().trim_end().to_owned()))?;
        description.check().map_err(failed)?;
        Ok(description)
    }

    pub fn find(name: &str) -> Option<Description> {
        let (name, text) = LIBRARY.iter().find(|(known, _)| *known == name)?;
        Some(Description::parse(name, text).expect("built-in descriptions are right"))
    }

    /// The trace of this seed, to be taken one by one.
    ///
    /// # Panics
    /// When [`Description::check`] would complain.
    pub fn source(&self, seed: u64) -> TraceSource {
        if let Err(why) = self.check() {
            panic!("trace description {}: {why}", self.name);
        }
        TraceSource::new(self, seed)
    }

    /// The intervals; of a description with one rate throughout, the whole.
    pub fn parts(&self) -> Vec<Interval> {
        let whole = Interval { duration_s: self.duration_s, requests: self.requests };
        if self.intervals.is_empty() { vec![whole] } else { self.intervals.clone() }
    }

    /// One of [`Description::parts`] by itself, from the time zero on.
    pub fn part(&self, interval: Interval) -> Description {
        let Interval { duration_s, requests } = interval;
        Description { requests, duration_s, intervals: Vec::new(), ..self.clone() }
    }

    /// The same with another number of requests, at the same rates: each interval has its share, and is as much shorter.
    pub fn with_requests(&self, requests: u64) -> Description {
        let factor = requests as f64 / self.requests as f64;
        let mut before = 0;
        // Rounded where an interval ends, so that they add up.
        let ends =
            |before: u64| (u128::from(before) * u128::from(requests) / u128::from(self.requests)) as u64;
        let scaled = |interval: &Interval| {
            let begin = ends(before);
            before += interval.requests;
            Interval { duration_s: interval.duration_s * factor, requests: ends(before) - begin }
        };
        let intervals = self.intervals.iter().map(scaled).collect();
        let duration_s = self.duration_s * requests as f64 / self.requests as f64;
        Description { requests, duration_s, intervals, ..self.clone() }
    }

    /// The same with times stretched: 2 lasts twice as long and comes half as fast.
    pub fn stretched(&self, factor: f64) -> Description {
        let stretched =
            |interval: &Interval| Interval { duration_s: interval.duration_s * factor, ..*interval };
        let intervals = self.intervals.iter().map(stretched).collect();
        Description { duration_s: self.duration_s * factor, intervals, ..self.clone() }
    }

    /// Bytes of a chunk: a run of fresh requests stays in one. Twice a run's mean, so that few are cut off, and no less than the
    /// largest request.
    pub fn chunk_bytes(&self) -> u64 {
        let wanted = 2.0 * self.locality.run_requests * self.sizes.mean_in(BLOCK_BYTES);
        (wanted as u64).max(self.sizes.max_bytes()).max(BLOCK_BYTES).next_power_of_two()
    }

    pub(super) fn chunks_per_lun(&self) -> u64 {
        self.luns.footprint_bytes / u64::from(self.luns.count.max(1)) / self.chunk_bytes()
    }

    /// Whether all of it makes sense.
    ///
    /// # Errors
    /// The field, what it says, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        within("requests", self.requests as f64, 1.0, 1e12)?;
        within("duration_s", self.duration_s, 1e-9, 1e10)?;
        within("read_share", self.read_share, 0.0, 1.0)?;
        self.check_intervals()?;
        self.sizes.check()?;
        self.arrivals.check()?;
        self.locality.check()?;
        within("luns.count", f64::from(self.luns.count), 1.0, 65_536.0)?;
        within("luns.skew", self.luns.skew, 0.0, 10.0)?;
        within("luns.footprint_bytes", self.luns.footprint_bytes as f64, SECTOR_BYTES as f64, 1e18)?;
        self.check_space()
    }

    /// Whether the intervals add up to the whole.
    fn check_intervals(&self) -> Result<(), String> {
        for (index, interval) in self.intervals.iter().enumerate() {
            within(&format!("intervals[{index}].duration_s"), interval.duration_s, 1e-9, 1e10)?;
            within(&format!("intervals[{index}].requests"), interval.requests as f64, 0.0, 1e12)?;
        }
        let parts = self.parts();
        let requests: u64 = parts.iter().map(|part| part.requests).sum();
        if requests != self.requests {
            return Err(format!("requests is {}: the intervals have {requests}", self.requests));
        }
        let duration_s: f64 = parts.iter().map(|part| part.duration_s).sum();
        // Seconds are written in decimal: sums of them differ in the last digits.
        if (duration_s / self.duration_s - 1.0).abs() > 1e-9 {
            return Err(format!("duration_s is {}: the intervals last {duration_s}", self.duration_s));
        }
        Ok(())
    }

    /// Whether fresh requests find room.
    fn check_space(&self) -> Result<(), String> {
        let runs = self.requests as f64 * self.locality.fresh_share / self.locality.run_requests;
        // Runs that a chunk cuts off make more of them: a geometric run is longer than twice its mean with 1/e^2.
        let chunks = 1.0 + runs * 1.25;
        let needed = chunks * self.chunk_bytes() as f64;
        if chunks > self.chunks_per_lun() as f64 * f64::from(self.luns.count) {
            return Err(format!(
                "luns.footprint_bytes is {}: fresh requests need about {needed:.0} (runs of {} requests in chunks of {} bytes)",
                self.luns.footprint_bytes,
                self.locality.run_requests,
                self.chunk_bytes()
            ));
        }
        Ok(())
    }
}

impl Sizes {
    /// The mean, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.mean_in(SECTOR_BYTES)
    }

    /// The mean when each size is rounded up to multiples of `unit` bytes.
    fn mean_in(&self, unit: u64) -> f64 {
        let rounded = |bytes: u64| bytes.next_multiple_of(unit) as f64;
        match self {
            Sizes::Fixed { bytes } => rounded(*bytes),
            Sizes::Exponential { mean_bytes, max_bytes } => {
                let beyond = |bytes: f64| libm::exp(-bytes / mean_bytes);
                unit as f64 * (1.0 - beyond(rounded(*max_bytes))) / (1.0 - beyond(unit as f64))
            }
            Sizes::Table { table } => {
                let weight: f64 = table.iter().map(|row| row.weight).sum();
                table.iter().map(|row| rounded(row.bytes) * row.weight).sum::<f64>() / weight
            }
        }
    }

    fn max_bytes(&self) -> u64 {
        match self {
            Sizes::Fixed { bytes } => *bytes,
            Sizes::Exponential { max_bytes, .. } => *max_bytes,
            Sizes::Table { table } => table.iter().map(|row| row.bytes).max().unwrap_or(0),
        }
    }

    fn check(&self) -> Result<(), String> {
        let in_sectors = |field: &str, bytes: u64| match bytes % SECTOR_BYTES {
            0 => within(field, bytes as f64, SECTOR_BYTES as f64, f64::from(1 << 30)),
            _ => Err(format!("{field} is {bytes}: whole sectors of {SECTOR_BYTES} bytes are expected")),
        };
        match self {
            Sizes::Fixed { bytes } => in_sectors("sizes.bytes", *bytes),
            Sizes::Exponential { mean_bytes, max_bytes } => {
                within("sizes.mean_bytes", *mean_bytes, 1.0, 1e9)?;
                in_sectors("sizes.max_bytes", *max_bytes)
            }
            Sizes::Table { table } => {
                for (index, row) in table.iter().enumerate() {
                    in_sectors(&format!("sizes.table[{index}].bytes"), row.bytes)?;
                    within(&format!("sizes.table[{index}].weight"), row.weight, 0.0, 1e12)?;
                }
                within(
                    "the sum of sizes.table[].weight",
                    table.iter().map(|row| row.weight).sum(),
                    1e-12,
                    1e15,
                )
            }
        }
    }
}

impl Arrivals {
    fn check(&self) -> Result<(), String> {
        match *self {
            Arrivals::Even | Arrivals::Poisson => Ok(()),
            Arrivals::Hyperexponential { cv } => within("arrivals.cv", cv, 1.0, 1e3),
            Arrivals::OnOff { on_s, off_s } => {
                within("arrivals.on_s", on_s, 1e-6, 1e9)?;
                within("arrivals.off_s", off_s, 0.0, 1e9)
            }
            Arrivals::BModel { bias, slice_s } => {
                within("arrivals.bias", bias, 0.5, 0.999)?;
                within("arrivals.slice_s", slice_s, 1e-6, 1e9)
            }
        }
    }
}

impl Locality {
    fn check(&self) -> Result<(), String> {
        within("locality.fresh_share", self.fresh_share, 0.0, 1.0)?;
        within("locality.run_requests", self.run_requests, 1.0, 1e6)?;
        let (mut bytes, mut share) = (0, 0.0);
        for (index, step) in self.reuse.iter().enumerate() {
            if step.within_bytes <= bytes || step.share.is_nan() || step.share <= share || step.share > 1.0 {
                return Err(format!(
                    "locality.reuse[{index}] is ({}, {}): within_bytes and share have to rise, up to a share of 1",
                    step.within_bytes, step.share
                ));
            }
            (bytes, share) = (step.within_bytes, step.share);
        }
        if self.fresh_share < 1.0 && share != 1.0 {
            return Err(format!("locality.reuse ends at a share of {share}: its last step needs share = 1"));
        }
        Ok(())
    }
}

impl Luns {
    pub(super) fn popularity(&self) -> Vec<f64> {
        let weights: Vec<f64> = (1..=self.count).map(|n| libm::pow(f64::from(n), -self.skew)).collect();
        let sum: f64 = weights.iter().sum();
        let mut share = 0.0;
        let cumulate = |weight: &f64| {
            share += weight / sum;
            share
        };
        weights.iter().map(cumulate).collect()
    }
}

fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{field} is {value}: {low} to {high} is expected"))
    }
}
