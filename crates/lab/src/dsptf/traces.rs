//! The four traces of Table 2, generated from what the paper says of them, and two replicas that replay them.

use super::setup;
use crate::error::LabError;
use crate::experiment::Scale;
use crate::parameters::Parameters;
use crate::system::{Load, SeenByAll, Stream, System};
use base::Time;
use sim::timed::{Arrival, Cluster, Conditions, Length, Scheme};
use std::sync::Arc;
use trace::Description;
use trace::generate::description::Arrivals;

/// The names of the paper's tables, and of the generator's descriptions.
pub(super) const TRACES: [(&str, &str); 4] =
    [("SAP", "sap"), ("Cello2002", "cello2002"), ("WebSearch", "websearch"), ("Financial", "financial")];

/// What experiments with traces depend on, beside the cluster.
pub(super) const ASSUMED: &[&str] = &["cache_bytes", "trace_scale", "trace_rate", "trace_arrivals"];

/// A trace from its description, all LUNs one after the other.
#[derive(Clone)]
pub(super) struct Generated {
    description: Description,
    /// Sectors from one LUN's beginning to the next one's.
    lun_sectors: u64,
}

impl Generated {
    /// The trace of this name at its scale, stretched to the rate that is assumed.
    ///
    /// # Errors
    /// If it is scaled down to less than it needs to be a trace.
    pub(super) fn new(parameters: &Parameters, scale: Scale, name: &str) -> Result<Generated, LabError> {
        let part = part(parameters, scale);
        let description = Description::find(name).unwrap_or_else(|| panic!("no description is named {name}"));
        let requests = (description.requests as f64 * part) as u64;
        let mut description =
            description.with_requests(requests).stretched(1.0 / parameters.number("trace_rate"));
        if parameters.text("trace_arrivals") == "poisson" {
            description.arrivals = Arrivals::Poisson;
        }
        let scaled = |bytes: u64| ((bytes as f64 * part) as u64).max(1 << 20);
        description.luns.footprint_bytes = scaled(description.luns.footprint_bytes);
        description.locality.reuse.iter_mut().for_each(|step| step.within_bytes = scaled(step.within_bytes));
        // LUNs begin at whole mebibytes: what lies in blocks of its own within a LUN does so on the cluster.
        let lun_bytes = description.luns.footprint_bytes / u64::from(description.luns.count);
        description.check().map_err(|why| LabError::Parameter {
            place: format!("trace_scale = {part}"),
            why: format!("{name}: {why}"),
        })?;
        Ok(Generated { lun_sectors: lun_bytes.next_multiple_of(1 << 20) / trace::SECTOR_BYTES, description })
    }

    pub(super) fn requests(&self) -> u64 {
        self.description.requests
    }

    /// When the last request comes.
    pub(super) fn end(&self, seed: u64) -> Time {
        Time(self.description.source(seed).last().map_or(0, |record| record.at_ns))
    }
}

impl Stream for Generated {
    fn describe(&self) -> String {
        format!("{:?}", self.description)
    }

    fn open(&self, seed: u64, _: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let lun_sectors = self.lun_sectors;
        let arrival = move |record: trace::Record| Arrival {
            at: Time(record.at_ns),
            sector: u64::from(record.device) * lun_sectors + record.sector,
            count: record.count,
            is_write: record.is_write,
        };
        Ok(Box::new(self.description.source(seed).map(arrival)))
    }
}

/// The part of the originals that is run.
fn part(parameters: &Parameters, scale: Scale) -> f64 {
    let part = parameters.number("trace_scale");
    if scale == Scale::Quick { part / 10.0 } else { part }
}

/// A cluster whose caches are scaled as the traces are, with `cache_bytes` a brick at full scale.
pub(super) fn cluster(
    parameters: &Parameters,
    scale: Scale,
    bricks: u32,
    replicas: u32,
    scheme: Scheme,
) -> Cluster {
    let mut cluster = setup::cluster(parameters, bricks, replicas, scheme);
    let cache_bytes = (parameters.number("cache_bytes") * part(parameters, scale)) as u64;
    cluster.bricks.iter_mut().for_each(|brick| brick.cache_bytes = cache_bytes);
    cluster
}

/// The whole trace, measured from its first request.
pub(super) fn replay(parameters: &Parameters, cluster: Cluster, trace: Generated) -> System {
    let length = Length { warmup: 0, requests: trace.requests() };
    System {
        conditions: Conditions::default(),
        cluster,
        load: Load::Stream(Arc::new(trace)),
        length,
        drives: parameters.text("drive").to_owned(),
    }
}

/// Assumptions of an experiment that replays traces: a closed loop's do not matter.
pub(super) fn assumptions() -> Vec<&'static str> {
    let closed = ["request_mean_bytes", "requests", "warm_up_requests", "write_release"];
    setup::CLUSTER
        .iter()
        .copied()
        .filter(|name| !closed.contains(name))
        .chain(ASSUMED.iter().copied())
        .collect()
}
