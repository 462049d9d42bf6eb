//! What can be said of a trace, in bounded memory: [`Statistics`] takes its requests one by one, and gives a [`Summary`].
//!
//! Reading order: this file, `reuse` (distances between uses of a block, sampled).

mod reuse;

pub use reuse::{BLOCK_SECTORS, Reuse};

use crate::record::Record;
use base::HashMap;
use reuse::Sampler;
use std::collections::BTreeMap;

/// Devices told apart; those beyond count together as one.
const DEVICES_MAX: usize = 4_096;
/// Ends of earlier requests to a device that a sequential request may begin at: streams that interleave.
const STREAMS: usize = 8;
/// The bins in which the highest rate is looked for.
const SECOND_NS: u64 = 1_000_000_000;
/// Cache sizes for which the share of hits is told, in bytes.
const CACHE_BYTES: [u64; 6] = [1 << 20, 16 << 20, 256 << 20, 1 << 30, 4 << 30, 16 << 30];

/// Statistics of a trace that is taken request by request.
#[derive(Default)]
pub struct Statistics {
    requests: u64,
    reads: u64,
    bytes: u64,
    read_bytes: u64,
    first_ns: u64,
    last_ns: u64,
    gaps: Moments,
    responses: Moments,
    peak: Peak,
    sizes: HashMap<u32, u64>,
    devices: BTreeMap<u32, Device>,
    sequential: u64,
    sampler: Sampler,
}

/// What can be said of a trace. Fractions are between 0 and 1.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub amount: Amount,
    /// From the first request to the last, in seconds.
    pub span_s: f64,
    /// The time of the first request, in seconds.
    pub first_s: f64,
    #[serde(flatten)]
    pub sizes: Sizes,
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// Requests, of those that say so, and the mean of their response times as recorded, in nanoseconds.
    pub responses: Option<(u64, f64)>,
    /// The share of requests that begin where one of the last 8 to the same device ended.
    pub sequential_share: f64,
    pub devices: usize,
    /// The busiest of them.
    pub busiest: Vec<DeviceSummary>,
    /// Reuse of blocks, and the footprint.
    pub reuse: Reuse,
    /// For each size of cache, in bytes, the share of block references that a least-recently-used cache would hold.
    pub lru_hits: Vec<(u64, f64)>,
}

/// How much is asked for.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Amount {
    pub requests: u64,
    /// The share of requests that read.
    pub read_share: f64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes of those that read.
    pub read_bytes: u64,
}

/// How large requests are.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Sizes {
    /// The mean size, in bytes.
    #[serde(rename = "size_mean_bytes")]
    pub mean_bytes: f64,
    /// Percentiles of sizes: percent and bytes.
    #[serde(rename = "size_percentiles_bytes")]
    pub percentiles_bytes: Vec<(f64, u64)>,
}

/// How requests follow on each other.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Arrivals {
    /// Requests a second, over the span. `None` when it is no time.
    pub rate_mean_per_s: Option<f64>,
    /// Requests in the busiest second, counted from the first request.
    pub rate_peak_per_s: u64,
    /// Mean of the times between requests, in nanoseconds.
    pub gap_mean_ns: f64,
    /// Their coefficient of variation: 1 for Poisson arrivals, more for bursts. `None` when all are zero.
    pub gap_cv: Option<f64>,
}

/// What can be said of one device.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct DeviceSummary {
    /// The device; `None` for all beyond those told apart.
    pub device: Option<u32>,
    pub requests: u64,
    pub reads: u64,
    /// The sector after the highest one asked for.
    pub end_sector: u64,
}

/// Devices that a summary names.
const BUSIEST: usize = 8;
const BEYOND: u32 = u32::MAX;

#[derive(Default)]
struct Device {
    requests: u64,
    reads: u64,
    end_sector: u64,
    ends: [u64; STREAMS],
    oldest: usize,
}

impl Statistics {
    /// Takes the next request.
    pub fn add(&mut self, record: &Record) {
        self.times(record);
        self.requests += 1;
        self.reads += u64::from(!record.is_write);
        self.bytes += record.bytes();
        self.read_bytes += if record.is_write { 0 } else { record.bytes() };
        if let Some(response_ns) = record.response_ns {
            self.responses.add(response_ns as f64);
        }
        *self.sizes.entry(record.count).or_default() += 1;
        let known = self.devices.contains_key(&record.device) || self.devices.len() < DEVICES_MAX;
        let device = self.devices.entry(if known { record.device } else { BEYOND }).or_default();
        self.sequential += u64::from(device.add(record));
        self.sampler.add(record);
    }

    /// What can be said so far.
    pub fn summary(&self) -> Summary {
        let share = |part: u64| if self.requests == 0 { 0.0 } else { part as f64 / self.requests as f64 };
        let span_s = self.last_ns.saturating_sub(self.first_ns) as f64 / 1e9;
        let reuse = self.sampler.reuse();
        let amount = Amount {
            requests: self.requests,
            read_share: share(self.reads),
            bytes: self.bytes,
            read_bytes: self.read_bytes,
        };
        let arrivals = Arrivals {
            rate_mean_per_s: (span_s > 0.0).then(|| self.requests as f64 / span_s),
            rate_peak_per_s: self.peak.most,
            gap_mean_ns: self.gaps.mean,
            gap_cv: (self.gaps.mean > 0.0).then(|| self.gaps.deviation() / self.gaps.mean),
        };
        Summary {
            amount,
            span_s,
            first_s: self.first_ns as f64 / 1e9,
            sizes: Sizes { mean_bytes: share(self.bytes), percentiles_bytes: self.percentiles() },
            arrivals,
            responses: (self.responses.count > 0).then_some((self.responses.count, self.responses.mean)),
            sequential_share: share(self.sequential),
            devices: self.devices.len(),
            busiest: self.busiest(),
            lru_hits: CACHE_BYTES.map(|bytes| (bytes, reuse.hits(bytes))).to_vec(),
            reuse,
        }
    }

    fn times(&mut self, record: &Record) {
        if self.requests == 0 {
            self.first_ns = record.at_ns;
        } else {
            self.gaps.add(record.at_ns.saturating_sub(self.last_ns) as f64);
        }
        self.last_ns = self.last_ns.max(record.at_ns);
        self.peak.add(record.at_ns.saturating_sub(self.first_ns) / SECOND_NS);
    }

    fn percentiles(&self) -> Vec<(f64, u64)> {
        let mut sizes: Vec<(u32, u64)> = self.sizes.iter().map(|(count, number)| (*count, *number)).collect();
        sizes.sort_unstable();
        let at = |percent: f64| {
            let wanted = (percent / 100.0 * self.requests as f64).max(1.0);
            let mut below = 0;
            let found = sizes.iter().find(|(_, number)| {
                below += number;
                below as f64 >= wanted
            });
            (percent, found.map_or(0, |(count, _)| u64::from(*count) * crate::SECTOR_BYTES))
        };
        [0.0, 25.0, 50.0, 75.0, 95.0, 99.0, 100.0].map(at).to_vec()
    }

    fn busiest(&self) -> Vec<DeviceSummary> {
        let summary = |(&device, of): (&u32, &Device)| DeviceSummary {
            device: (device != BEYOND).then_some(device),
            requests: of.requests,
            reads: of.reads,
            end_sector: of.end_sector,
        };
        let mut all: Vec<DeviceSummary> = self.devices.iter().map(summary).collect();
        all.sort_by_key(|device| std::cmp::Reverse(device.requests));
        all.truncate(BUSIEST);
        all
    }
}

impl Device {
    /// Whether the request goes on where an earlier one ended.
    fn add(&mut self, record: &Record) -> bool {
        self.requests += 1;
        self.reads += u64::from(!record.is_write);
        self.end_sector = self.end_sector.max(record.end());
        let stream = self.ends.iter().position(|end| *end == record.sector && *end > 0);
        let place = stream.unwrap_or(self.oldest);
        if stream.is_none() {
            self.oldest = (self.oldest + 1) % STREAMS;
        }
        self.ends[place] = record.end();
        stream.is_some()
    }
}

/// Mean and variance as they come (Welford).
#[derive(Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn deviation(&self) -> f64 {
        if self.count == 0 { 0.0 } else { libm::sqrt(self.squares / self.count as f64) }
    }
}

/// The most requests in one bin of time.
#[derive(Default)]
struct Peak {
    bin: u64,
    in_bin: u64,
    most: u64,
}

impl Peak {
    fn add(&mut self, bin: u64) {
        if bin != self.bin {
            (self.bin, self.in_bin) = (bin, 0);
        }
        self.in_bin += 1;
        self.most = self.most.max(self.in_bin);
    }
}
