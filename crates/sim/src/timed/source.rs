//! Where requests come from: a closed loop, an open stream of draws, or a trace.

use super::workload::{Arrival, Drawn, Moments, Shape, Workload};
use model::Draw;

/// Sectors that lie together on one group when a stream's address space is cut among groups: 64 MiB.
const EXTENT_SECTORS: u64 = 1 << 17;

/// Where requests come from.
pub(crate) enum Source {
    Closed { outstanding: u32, drawn: Drawn },
    Open { moments: Moments, drawn: Drawn },
    Stream { records: Box<dyn Iterator<Item = Arrival>>, next: Option<Arrival>, told: Told },
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
            Workload::Stream(records) => Source::Stream { records, next: None, told: Told::default() },
        }
    }

    /// The share of a stream's requests that were beyond the cluster's end.
    pub(crate) fn wrapped(&self) -> f64 {
        match self {
            Source::Stream { told, .. } => told.wrapped as f64 / told.requests.max(1) as f64,
            Source::Closed { .. } | Source::Open { .. } => 0.0,
        }
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
