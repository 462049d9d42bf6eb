//! The four traces of Table 2, generated from what the paper says of them, and two replicas that replay them.

use super::setup;
use crate::error::LabError;
use crate::experiment::{Job, Sample, Scale};
use crate::parameters::Parameters;
use crate::system::{Load, SeenByAll, Stream, System};
use base::Time;
use sim::timed::{Arrival, Cluster, Conditions, Length, RequestRecord, Scheme};
use std::sync::Arc;
use trace::Description;
use trace::generate::description::Arrivals;

/// The names of the paper's tables, and of the generator's descriptions.
pub(super) const TRACES: [(&str, &str); 4] =
    [("SAP", "sap"), ("Cello2002", "cello2002"), ("WebSearch", "websearch"), ("Financial", "financial")];

/// What experiments with traces depend on, beside the cluster.
pub(super) const ASSUMED: &[&str] =
    &["cache_bytes", "trace_scale", "trace_rate", "trace_arrivals", "trace_addresses"];

/// A trace from its description, all LUNs one after the other.
#[derive(Clone)]
pub(super) struct Generated {
    description: Description,
    /// Sectors from one LUN's beginning to the next one's.
    lun_sectors: u64,
    /// Each mebibyte of a LUN begins so many mebibytes behind the one before.
    apart: u64,
    /// Of the original's data.
    footprint_bytes: u64,
}

impl Generated {
    /// The trace of this name at its scale, stretched to the rate that is assumed.
    ///
    /// # Errors
    /// If it is scaled down to less than it needs to be a trace.
    pub(super) fn new(parameters: &Parameters, scale: Scale, name: &str) -> Result<Generated, LabError> {
        let part = part(parameters, scale);
        let description = Description::find(name).unwrap_or_else(|| panic!("no description is named {name}"));
        let footprint_bytes = description.luns.footprint_bytes;
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
        let lun_bytes = lun_bytes.next_multiple_of(MIB);
        let apart = match parameters.text("trace_addresses") {
            "spread" => (1.0 / part) as u64,
            "together" => 1,
            other => panic!("the parameter file allows unknown trace_addresses {other}"),
        };
        Ok(Generated {
            lun_sectors: lun_bytes * apart / trace::SECTOR_BYTES,
            apart,
            footprint_bytes,
            description,
        })
    }

    pub(super) fn requests(&self) -> u64 {
        self.description.requests
    }

    /// How many groups of replicas have room for the original's data.
    pub(super) fn groups(&self, parameters: &Parameters) -> u32 {
        let capacity_bytes = setup::drive(parameters).capacity_sectors() * trace::SECTOR_BYTES;
        match parameters.text("trace_groups") {
            "footprint" => self.footprint_bytes.div_ceil(capacity_bytes) as u32,
            "one" => 1,
            other => panic!("the parameter file allows unknown trace_groups {other}"),
        }
    }

    /// When the last request comes.
    pub(super) fn end(&self, seed: u64) -> Time {
        Time(self.description.source(seed).last().map_or(0, |record| record.at_ns))
    }
}

impl Stream for Generated {
    fn describe(&self) -> String {
        let Generated { description, lun_sectors, apart, footprint_bytes: _ } = self;
        format!("{description:?} {lun_sectors} {apart}")
    }

    fn open(&self, seed: u64, _: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let (lun_sectors, apart) = (self.lun_sectors, self.apart);
        let mib_sectors = MIB / trace::SECTOR_BYTES;
        let spread = move |sector: u64| sector / mib_sectors * apart * mib_sectors + sector % mib_sectors;
        let arrival = move |record: trace::Record| Arrival {
            at: Time(record.at_ns),
            sector: u64::from(record.device) * lun_sectors + spread(record.sector),
            count: record.count,
            is_write: record.is_write,
        };
        Ok(Box::new(self.description.source(seed).map(arrival)))
    }
}

/// What of a LUN lies together.
const MIB: u64 = 1 << 20;

/// The figure, and the curves of times and counts, of the response times that figures of traces show.
pub(super) fn shown(parameters: &Parameters) -> [&'static str; 3] {
    match parameters.text("trace_response") {
        "disk reads" => ["disk_read_response_ms", "disk_read_response_ms", "disk_reads"],
        "all requests" => ["response_ms", "response_ms", "answered"],
        other => panic!("the parameter file allows an unknown trace_response {other}"),
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

/// A replayed trace, with the mean response time that figures show.
pub(super) struct Shown {
    pub(super) system: System,
    pub(super) figure: &'static str,
}

/// What [`Shown`] adds.
pub(super) const SHOWN_MS: &str = "shown_ms";

impl Job for Shown {
    fn describe(&self) -> serde_json::Value {
        serde_json::json!({ "job": "shown", "figure": self.figure, "system": self.system.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        self.system.run(seed).map(|sample| self.with_shown(sample))
    }

    fn run_recorded(&self, seed: u64) -> Result<(Sample, Vec<RequestRecord>), String> {
        let (sample, requests) = self.system.run_recorded(seed)?;
        Ok((self.with_shown(sample), requests))
    }
}

impl Shown {
    fn with_shown(&self, mut sample: Sample) -> Sample {
        let shown = sample.value(self.figure);
        sample.values.insert(SHOWN_MS.to_owned(), shown);
        sample
    }
}

/// Assumptions of figures of response times while a trace is replayed.
pub(super) fn assumptions_of_figures() -> Vec<&'static str> {
    [assumptions(), vec!["trace_groups", "trace_response"]].concat()
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
