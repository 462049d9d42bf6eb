//! Synthetic traces from a statistical description, for traces that are not public. A seed is the trace.
//!
//! Each request is drawn from four independent streams of randomness: when it comes ([`arrivals`](description::Arrivals)), whether it
//! reads, and what it touches: with the share [`fresh_share`](description::Locality::fresh_share) something never touched before, else
//! again what lies at a drawn depth of the stack of least recently used requests. So the hits of any least-recently-used cache are
//! under control: they are the share of reuse distances below its size.
//!
//! Reading order: [`description`] (what can be said), this file, `arrivals`, `fresh` (addresses never used before).

mod arrivals;
pub mod description;
mod fresh;

pub use description::{Description, DescriptionError};

use crate::recency::Recency;
use crate::record::{Record, SECTOR_BYTES};
use arrivals::Clock;
use base::Rng;
use description::{Sizes, Step};
use fresh::{Extent, Fresh};

/// A synthetic trace as an iterator over its requests, in the order of their issue. It is exactly
/// [`Description::requests`] long. Memory grows with the footprint: 32 bytes for each request within the largest reuse distance.
pub struct TraceSource {
    left: u64,
    clock: Clock,
    read_share: f64,
    is_read: Rng,
    sizes: Sizes,
    size: Rng,
    reuse: Rng,
    fresh_share: f64,
    steps: Vec<Step>,
    mean_bytes: f64,
    /// The deepest that a drawn distance reaches, in requests: what lies deeper is never used again.
    depth_max: usize,
    stack: Recency<Extent>,
    fresh: Fresh,
}

impl TraceSource {
    fn new(description: &Description, seed: u64) -> TraceSource {
        let mut seeds = Rng::with_seed(seed);
        let mut stream = || Rng::with_seed(seeds.u64(..));
        let mean_bytes = description.sizes.mean_bytes();
        let steps = description.locality.reuse.clone();
        let deepest = steps.last().map_or(0, |step| step.within_bytes);
        TraceSource {
            left: description.requests,
            clock: Clock::new(description, stream()),
            read_share: description.read_share,
            is_read: stream(),
            sizes: description.sizes.clone(),
            size: stream(),
            reuse: stream(),
            fresh_share: description.locality.fresh_share,
            steps,
            mean_bytes,
            depth_max: (deepest as f64 / mean_bytes) as usize + 1,
            stack: Recency::new(),
            fresh: Fresh::new(description, stream()),
        }
    }

    fn extent(&mut self) -> Extent {
        let is_fresh = self.reuse.f64() < self.fresh_share || self.stack.len() == 0;
        let extent = if is_fresh { self.fresh.next(self.sizes.draw(&mut self.size)) } else { self.again() };
        if self.steps.is_empty() {
            // Nothing is used again, so nothing has to be remembered.
            return extent;
        }
        self.stack.push(extent, |_, _| ());
        if self.stack.len() > self.depth_max {
            self.stack.remove(self.stack.at_depth(self.depth_max));
        }
        extent
    }

    /// What lies at a drawn depth. While the stack is not that deep yet, any of it: the share of fresh requests stays as described.
    fn again(&mut self) -> Extent {
        let depth = (distance_bytes(&self.steps, &mut self.reuse) / self.mean_bytes) as usize;
        let depth =
            if depth < self.stack.len() { depth } else { self.reuse.u64(..self.stack.len() as u64) as usize };
        self.stack.remove(self.stack.at_depth(depth))
    }
}

impl Iterator for TraceSource {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.left = self.left.checked_sub(1)?;
        let at_ns = self.clock.tick();
        let is_write = self.is_read.f64() >= self.read_share;
        let Extent { device, sector, count } = self.extent();
        Some(Record { at_ns, device, sector, count, is_write, response_ns: None })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

/// A reuse distance in bytes: uniform below the first step, and between steps uniform in the logarithm.
fn distance_bytes(steps: &[Step], random: &mut Rng) -> f64 {
    let drawn = random.f64();
    let (mut below, mut start) = (0.0, 0.0);
    for step in steps {
        let end = step.within_bytes as f64;
        if drawn < step.share {
            let part = (drawn - below) / (step.share - below);
            return if start == 0.0 { part * end } else { start * libm::pow(end / start, part) };
        }
        (below, start) = (step.share, end);
    }
    start
}

impl Sizes {
    /// A size in sectors.
    fn draw(&self, random: &mut Rng) -> u32 {
        match self {
            Sizes::Fixed { bytes } => sectors(*bytes as f64),
            Sizes::Exponential { mean_bytes, max_bytes } => {
                sectors((-mean_bytes * libm::log(1.0 - random.f64())).min(*max_bytes as f64))
            }
            Sizes::Table { table } => {
                let mut drawn = random.f64() * table.iter().map(|row| row.weight).sum::<f64>();
                let row = table.iter().find(|row| {
                    drawn -= row.weight;
                    drawn < 0.0
                });
                sectors(row.or(table.last()).map_or(SECTOR_BYTES, |row| row.bytes) as f64)
            }
        }
    }
}

/// Whole sectors, at least one.
fn sectors(bytes: f64) -> u32 {
    (libm::ceil(bytes / SECTOR_BYTES as f64) as u32).max(1)
}

#[cfg(test)]
mod tests;
