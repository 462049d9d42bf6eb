//! What clients ask for: closed loops, open arrivals, and streams of records such as traces.

use super::postmark::{Files, Postmark};
use super::threads::Threads;
use base::Time;
use core::fmt;
use model::Draw;

/// Sectors of a block.
const BLOCK_SECTORS: u64 = base::BLOCK_U64 / base::SECTOR_BYTES;

/// Who asks, and when.
pub enum Workload {
    /// Always so many requests outstanding in each replica group; an answer is followed by the next request at once.
    Closed {
        /// Requests outstanding a group.
        outstanding: u32,
        /// What they ask for.
        mix: Mix,
    },
    /// Requests that come whatever became of those before.
    Open {
        /// Requests a second, to all groups together.
        per_second: f64,
        /// How they follow one another.
        arrivals: Arrivals,
        /// What they ask for.
        mix: Mix,
    },
    /// The threads of each volume of a [`Sharing`](super::Sharing), in its order; without one, those of each replica group.
    Threads(Vec<Threads>),
    /// Requests that come as they are told.
    Stream(Box<dyn Iterator<Item = Arrival>>),
    /// The same without their times: always so many of them outstanding as `outstanding` for each replica group makes, wherever they lie; an answer is followed by the next in
    /// their order.
    Replayed { outstanding: u32, requests: Box<dyn Iterator<Item = Arrival>> },
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Closed { outstanding, mix } => write!(f, "Closed {{ {outstanding}, {mix:?} }}"),
            Workload::Open { per_second, arrivals, mix } => {
                write!(f, "Open {{ {per_second}/s, {arrivals:?}, {mix:?} }}")
            }
            Workload::Threads(threads) => write!(f, "Threads {threads:?}"),
            Workload::Stream(_) => f.write_str("Stream"),
            Workload::Replayed { outstanding, .. } => write!(f, "Replayed {{ {outstanding} }}"),
        }
    }
}

/// A request of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it comes. One that is earlier than the one before it comes together with it.
    pub at: Time,
    /// The first sector of 512 bytes in the cluster's address space; it wraps around the end.
    pub sector: u64,
    /// How many; at least one is read or written.
    pub count: u32,
    pub is_write: bool,
}

/// How open requests follow one another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrivals {
    /// Independent of one another.
    Poisson,
    Regular,
    /// Poisson in bursts: so many times the rate during one part in so many of the time, and nothing otherwise.
    Bursts {
        /// How many times the mean rate a burst has.
        factor: f64,
        /// A burst and the silence after it.
        period_ns: u64,
    },
}

/// What requests ask for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mix {
    /// The share of reads, 0 to 1.
    pub reads: f64,
    /// How large they are.
    pub sizes: Sizes,
    /// Where they go.
    pub locality: Locality,
}

impl Mix {
    /// D-SPTF's random workload: sizes exponential with a mean of 4 KiB, all addresses equally likely.
    pub fn random(reads: f64) -> Mix {
        Mix { reads, sizes: Sizes::Exponential(4096.0), locality: Locality::Uniform }
    }
}

/// How large requests are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sizes {
    /// Exponential with this mean in bytes, rounded up to sectors.
    Exponential(f64),
    /// All the same, in sectors.
    Fixed(u32),
    /// All from the least to the most equally likely, in sectors.
    Uniform { least: u32, most: u32 },
    /// So many blocks of 4 KiB, each request beginning with a block.
    Blocks(u32),
    /// Chunks of so many blocks: a request never has parts of two of them.
    Chunks(u32),
    /// So many blocks, each request beginning with a multiple of `every` blocks.
    Spaced { blocks: u32, every: u32 },
}

/// Where requests go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Locality {
    Uniform,
    /// To a part of the space with this share of the requests, and otherwise anywhere.
    Hot {
        /// The share of requests, 0 to 1.
        share: f64,
        /// The part of the space, 0 to 1.
        space: f64,
    },
}

/// How long to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length {
    /// Requests answered before measuring begins.
    pub warmup: u64,
    /// Requests answered while measuring. A stream may end sooner.
    pub requests: u64,
}

/// What one request asks for, within a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The first sector of 512 bytes.
    pub sector: u64,
    /// How many.
    pub count: u32,
    pub is_write: bool,
}

impl Shape {
    /// The request for all blocks that this one touches.
    pub fn in_blocks(self) -> Shape {
        let end = (self.sector + u64::from(self.count)).next_multiple_of(BLOCK_SECTORS);
        let sector = self.sector - self.sector % BLOCK_SECTORS;
        Shape { sector, count: (end - sector) as u32, ..self }
    }
}

/// What threads ask for, one request after the other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Asks {
    /// Requests that have nothing to do with one another.
    Mix(Mix),
    /// Files that are read, grow, come and go.
    Postmark(Postmark),
}

impl From<Mix> for Asks {
    fn from(mix: Mix) -> Asks {
        Asks::Mix(mix)
    }
}

impl From<Postmark> for Asks {
    fn from(postmark: Postmark) -> Asks {
        Asks::Postmark(postmark)
    }
}

/// Draws what is asked for.
#[derive(Debug)]
pub struct Drawn {
    kind: Kind,
    draw: Draw,
}

#[derive(Debug)]
enum Kind {
    Mix(Mix),
    Postmark(Files),
}

impl Drawn {
    pub fn new(asks: impl Into<Asks>, draw: Draw) -> Drawn {
        let kind = match asks.into() {
            Asks::Mix(mix) => Kind::Mix(mix),
            Asks::Postmark(postmark) => Kind::Postmark(Files::new(postmark)),
        };
        Drawn { kind, draw }
    }

    /// A request within `sectors`, as many each time.
    pub fn next(&mut self, sectors: u64) -> Shape {
        match &mut self.kind {
            Kind::Mix(mix) => mix.draw(sectors, &mut self.draw),
            Kind::Postmark(files) => files.next(sectors, &mut self.draw),
        }
    }
}

impl Mix {
    /// A request within `sectors`.
    fn draw(&self, sectors: u64, draw: &mut Draw) -> Shape {
        let count = self.count(draw).min(u32::try_from(sectors).unwrap_or(u32::MAX)).max(1);
        let space = sectors - u64::from(count) + 1;
        let sector = match self.locality {
            Locality::Uniform => draw.below(space),
            Locality::Hot { share, space: part } => {
                let is_hot = uniform(draw) < share;
                let hot = ((space as f64 * part) as u64).clamp(1, space);
                draw.below(if is_hot { hot } else { space })
            }
        };
        let unit = match self.sizes {
            Sizes::Blocks(_) => BLOCK_SECTORS,
            Sizes::Chunks(count) => u64::from(count) * BLOCK_SECTORS,
            Sizes::Spaced { every, .. } => u64::from(every) * BLOCK_SECTORS,
            Sizes::Exponential(_) | Sizes::Fixed(_) | Sizes::Uniform { .. } => 1,
        };
        let sector = sector - sector % unit;
        Shape { sector, count, is_write: uniform(draw) >= self.reads }
    }

    fn count(&self, draw: &mut Draw) -> u32 {
        match self.sizes {
            Sizes::Fixed(count) => count,
            Sizes::Uniform { least, most } => draw.between(u64::from(least), u64::from(most)) as u32,
            Sizes::Blocks(count) | Sizes::Chunks(count) | Sizes::Spaced { blocks: count, .. } => {
                count * BLOCK_SECTORS as u32
            }
            Sizes::Exponential(mean) => libm::ceil(exponential(draw) * mean / 512.0) as u32,
        }
    }
}

/// The moments of an open workload.
#[derive(Debug)]
pub(crate) struct Moments {
    arrivals: Arrivals,
    mean_ns: f64,
    // Time within bursts only; silences are put in when it is told.
    busy_ns: f64,
    draw: Draw,
}

impl Moments {
    pub(crate) fn new(arrivals: Arrivals, per_second: f64, draw: Draw) -> Moments {
        Moments { arrivals, mean_ns: 1e9 / per_second.max(1e-9), busy_ns: 0.0, draw }
    }

    pub(crate) fn next(&mut self) -> Time {
        let gap = if self.arrivals == Arrivals::Regular { 1.0 } else { exponential(&mut self.draw) };
        let Arrivals::Bursts { factor, period_ns } = self.arrivals else {
            self.busy_ns += gap * self.mean_ns;
            return Time(self.busy_ns as u64);
        };
        let factor = factor.max(1.0);
        self.busy_ns += gap * self.mean_ns / factor;
        let burst_ns = period_ns.max(1) as f64 / factor;
        let bursts = libm::floor(self.busy_ns / burst_ns);
        Time((bursts * period_ns as f64 + (self.busy_ns - bursts * burst_ns)) as u64)
    }
}

/// At least 0 and less than 1.
pub(super) fn uniform(draw: &mut Draw) -> f64 {
    (draw.bits() >> 11) as f64 / (1u64 << 53) as f64
}

/// With a mean of 1.
fn exponential(draw: &mut Draw) -> f64 {
    -libm::log(1.0 - uniform(draw))
}
