//! Where requests come from: a closed loop, an open stream of draws, or a trace.

use super::threads::Crew;
use super::workload::{Arrival, Drawn, Moments, Shape, Workload};
use base::Time;
use model::Draw;

/// What all draws of a load are apart from other draws of a seed.
const LOAD: u64 = 0x6c6f_6164;

/// Sectors that lie together on one group when a stream's address space is cut among groups: 64 MiB.
const EXTENT_SECTORS: u64 = 1 << 17;

/// Where requests come from.
pub(crate) enum Source {
    Closed { outstanding: u32, drawn: Drawn },
    Open { moments: Moments, drawn: Drawn },
    Threads(Vec<Crew>),
    Stream { records: Box<dyn Iterator<Item = Arrival>>, next: Option<Arrival>, told: Told },
    Replayed { outstanding: u32, records: Box<dyn Iterator<Item = Arrival>>, told: Told },
}

/// The requests of an open workload or a stream, by rising time, as a cluster of one group is asked for them: what clients of real daemons ask
/// for. A closed loop has none.
pub struct Arriving {
    source: Source,
    draw: Draw,
    /// Of the cluster's address space.
    sectors: u64,
}

/// What a stream told of.
#[derive(Default)]
pub(crate) struct Told {
    requests: u64,
    /// Those beyond the cluster's end.
    wrapped: u64,
}

impl Source {
    pub(crate) fn new(workload: Workload, draw: &mut Draw) -> Source {
        match workload {
            Workload::Closed { outstanding, mix } => {
                Source::Closed { outstanding, drawn: Drawn::new(mix, draw.fork()) }
            }
            Workload::Open { per_second, arrivals, mix } => {
                let moments = Moments::new(arrivals, per_second, draw.fork());
                Source::Open { moments, drawn: Drawn::new(mix, draw.fork()) }
            }
            Workload::Threads(threads) => {
                Source::Threads(threads.into_iter().map(|threads| Crew::new(threads, draw.fork())).collect())
            }
            Workload::Stream(records) => Source::Stream { records, next: None, told: Told::default() },
            Workload::Replayed { outstanding, requests: records } => {
                Source::Replayed { outstanding, records, told: Told::default() }
            }
        }
    }

    /// When the next request comes of a load that does not wait for answers. None when no more come.
    pub(crate) fn next_at(&mut self) -> Option<Time> {
        match self {
            Source::Closed { .. } | Source::Threads(_) | Source::Replayed { .. } => None,
            Source::Open { moments, .. } => Some(moments.next()),
            Source::Stream { records, next, .. } => {
                *next = records.next();
                next.map(|record| record.at)
            }
        }
    }

    /// The request that comes then: its group, of so many of `sectors` each, and what it asks for.
    pub(crate) fn take(&mut self, groups: u64, sectors: u64, draw: &mut Draw) -> Option<(u32, Shape)> {
        match self {
            Source::Closed { .. } | Source::Threads(_) | Source::Replayed { .. } => None,
            Source::Open { drawn, .. } => Some((draw.below(groups) as u32, drawn.next(sectors))),
            Source::Stream { next, told, .. } => {
                next.as_ref().map(|record| told.place(record, groups, sectors))
            }
        }
    }

    /// How many requests are outstanding in each group of a load that waits for answers, but for that of threads.
    pub(crate) fn outstanding(&self) -> Option<u32> {
        match self {
            Source::Closed { outstanding, .. } | Source::Replayed { outstanding, .. } => Some(*outstanding),
            Source::Open { .. } | Source::Threads(_) | Source::Stream { .. } => None,
        }
    }

    /// What is asked for when a slot is free in a group, and in which group: of what is replayed the next, wherever it lies.
    pub(crate) fn next_of_loop(&mut self, group: u32, groups: u64, sectors: u64) -> Option<(u32, Shape)> {
        match self {
            Source::Threads(crews) => crews[group as usize].next(sectors).map(|shape| (group, shape)),
            Source::Closed { drawn, .. } => Some((group, drawn.next(sectors))),
            Source::Replayed { records, told, .. } => {
                records.next().map(|record| told.place(&record, groups, sectors))
            }
            Source::Open { .. } | Source::Stream { .. } => None,
        }
    }

    /// The share of a stream's requests that were beyond the cluster's end.
    pub(crate) fn wrapped(&self) -> f64 {
        match self {
            Source::Stream { told, .. } | Source::Replayed { told, .. } => {
                told.wrapped as f64 / told.requests.max(1) as f64
            }
            Source::Closed { .. } | Source::Threads(_) | Source::Open { .. } => 0.0,
        }
    }
}

/// The draws of a load, of a run's seed.
pub(super) fn draws(seed: u64) -> Draw {
    Draw::new(seed ^ LOAD)
}

impl Arriving {
    /// The requests that [`run`](super::run) asks a cluster of one group for, which has so many sectors, with this seed.
    pub fn new(workload: Workload, sectors: u64, seed: u64) -> Arriving {
        let mut draw = draws(seed);
        Arriving { source: Source::new(workload, &mut draw), draw, sectors }
    }

    /// The share of a stream's requests, until now, that were beyond the cluster's end.
    pub fn wrapped(&self) -> f64 {
        self.source.wrapped()
    }
}

impl Iterator for Arriving {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let at = self.source.next_at()?;
        let (_, Shape { sector, count, is_write }) = self.source.take(1, self.sectors, &mut self.draw)?;
        Some(Arrival { at, sector, count, is_write })
    }
}

impl Told {
    /// In which group a request is, and where. Beyond the end addresses begin anew; a request that crosses the end is
    /// moved back from it.
    pub(crate) fn place(&mut self, record: &Arrival, groups: u64, sectors: u64) -> (u32, Shape) {
        let extent = record.sector / EXTENT_SECTORS;
        let within = extent / groups * EXTENT_SECTORS + record.sector % EXTENT_SECTORS;
        let count = record.count.clamp(1, u32::try_from(sectors).unwrap_or(u32::MAX));
        let last = sectors - u64::from(count);
        self.requests += 1;
        self.wrapped += u64::from(within > last);
        let sector = (within % sectors).min(last);
        ((extent % groups) as u32, Shape { sector, count, is_write: record.is_write })
    }
}
