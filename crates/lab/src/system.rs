//! A measured cluster as a job, and which of its figures a table can have.

use crate::experiment::{Job, Sample};
use base::Time;
use serde_json::json;
use sim::central;
use sim::timed::{
    self, Arrival, Arrivals, BrickMeasured, BrickSpec, Buses, Cluster, Conditions, Interval, Length,
    Measured, Message, Mix, RequestRecord, Scheme, Threads, Window, Workload,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone)]
pub enum Load {
    /// So many requests outstanding in each replica group.
    Closed {
        outstanding: u32,
        /// What they ask for.
        mix: Mix,
    },
    /// Requests that come whatever became of those before.
    Open {
        /// How many, to all groups together.
        per_second: f64,
        /// How they follow one another.
        arrivals: Arrivals,
        /// What they ask for.
        mix: Mix,
    },
    /// Requests that come as they are told.
    Stream(Arc<dyn Stream>),
    /// The same requests without their times: so many outstanding in each replica group.
    Replayed { outstanding: u32, stream: Arc<dyn Stream> },
    /// Threads of each replica group, each of which waits for its answer before it asks again.
    Threads(Threads),
}

/// Requests told one by one: a trace, or what is generated like one.
pub trait Stream: Send + Sync {
    /// All that decides the requests, apart from the seed.
    fn describe(&self) -> String;
    /// The requests from the beginning, by rising time. What goes wrong later ends them, and is put into `seen`; what is
    /// odd too, at the latest when they are dropped.
    ///
    /// # Errors
    /// If a trace cannot be read, with file and line.
    fn open(&self, seed: u64, seen: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String>;
    /// Whether addresses beyond the cluster's end wrap around, or are a mistake.
    fn may_wrap(&self) -> bool {
        true
    }
}

/// What was seen of a stream while it was told.
#[derive(Debug, Default)]
pub struct Seen {
    /// Why it ended before its end, if it did.
    pub failure: Option<String>,
    /// What was odd about it.
    pub notes: Vec<String>,
}

/// The same for the stream and who asks for it.
pub type SeenByAll = Rc<RefCell<Seen>>;

/// A cluster under a load.
#[derive(Clone)]
pub struct System {
    pub cluster: Cluster,
    pub load: Load,
    pub length: Length,
    /// Layout and incidents: of whole machines only.
    pub conditions: Conditions,
    /// What names the drives and their parameters, as the cluster has only what was read from their files: one, or one for each brick
    /// with [`DRIVES_BETWEEN`] between them.
    pub drives: String,
}

/// An open loop of which less than this share is answered is one that the cluster cannot serve.
const SERVED_MIN: f64 = 0.9;
/// A short run has fewer requests by chance: so many standard deviations of their number are one.
const CHANCE: f64 = 4.0;

/// Stands between the names of drives that differ.
pub const DRIVES_BETWEEN: &str = "; ";

impl Job for System {
    fn describe(&self) -> serde_json::Value {
        let mut all = System::describe_cluster(&self.cluster, &self.drives);
        all["job"] = json!("system");
        all["conditions"] = json!(format!("{:?}", self.conditions));
        all["load"] = json!(self.load.describe());
        all["length"] = json!(format!("{:?}", self.length));
        all
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        self.sample(seed).map(|(sample, _)| sample)
    }

    fn run_recorded(&self, seed: u64) -> Result<(Sample, Vec<RequestRecord>), String> {
        let conditions = Conditions { keeps_requests: true, ..self.conditions.clone() };
        System { conditions, ..self.clone() }.sample(seed)
    }
}

impl System {
    fn sample(&self, seed: u64) -> Result<(Sample, Vec<RequestRecord>), String> {
        let seen = SeenByAll::default();
        let workload = self.load.open(self.cluster.groups.0.len(), seed, &seen)?;
        let (mut measured, windows) = self.measure(workload, seed)?;
        let Seen { failure, mut notes } = seen.take();
        if let Some(why) = failure {
            return Err(why);
        }
        if measured.answered.requests == 0 {
            let Length { warmup, .. } = self.length;
            return Err(format!(
                "no request was measured: no more than {warmup} were answered, which are the warm-up (length.warm_up)"
            ));
        }
        notes.extend(self.load.beyond(measured.wrapped)?);
        notes.extend(self.load.unserved(measured.requests_per_second(), measured.answered.requests));
        notes.extend(idle_bricks(&self.cluster));
        let requests = core::mem::take(&mut measured.requests);
        let mut sample = sample(&measured);
        sample.series.extend(over_time(&windows));
        Ok((Sample { notes, ..sample }, requests))
    }
}

/// What is to be said when groups leave some bricks over.
fn idle_bricks(cluster: &Cluster) -> Option<String> {
    let (bricks, groups) = (cluster.bricks.len(), &cluster.groups.0);
    let in_groups = groups.iter().map(Vec::len).sum();
    let (idle, size) = (bricks.saturating_sub(in_groups), groups.first()?.len());
    (idle > 0).then(|| {
        format!("{bricks} bricks are no multiple of the {size} of a group: {idle} of them are in none, and serve nothing.")
    })
}

/// What clients saw from interval to interval, without the last one, which ends with the load.
pub fn over_time(windows: &[Window]) -> [(String, Vec<[f64; 2]>); 2] {
    let windows = &windows[..windows.len().saturating_sub(1)];
    let curve = |of: &dyn Fn(&Window) -> Option<f64>| {
        let middle = |window: &Window| window.from_s + window.seconds / 2.0;
        windows.iter().filter_map(|window| Some([middle(window), of(window)?])).collect()
    };
    let is_answered = |window: &Window| window.requests > 0;
    [
        (RATE_OVER_TIME.to_owned(), curve(&|window| Some(window.requests as f64 / window.seconds))),
        // Where nothing was answered nothing can be said of how long it took.
        (P99_OVER_TIME.to_owned(), curve(&|window| is_answered(window).then_some(window.p99_ms))),
    ]
}

/// Milliseconds, and the share of requests that did not take longer.
pub const DISTRIBUTION: &str = "response_cdf";

/// The curves of [`over_time`].
pub const RATE_OVER_TIME: &str = "requests_per_second_over_time";
pub const P99_OVER_TIME: &str = "response_p99_ms_over_time";

impl System {
    /// All that decides what a cluster does, apart from what is asked of it.
    pub(crate) fn describe_cluster(cluster: &Cluster, drives: &str) -> serde_json::Value {
        // Taken apart, so that a field that is new to clusters cannot be forgotten here.
        let Cluster {
            bricks,
            groups,
            network,
            scheme,
            write_release,
            exclusive,
            synchronised,
            gateways,
            hosts,
            buses,
            machines,
        } = cluster;
        json!({
            "drives": drives, "groups": format!("{:?}", groups.0),
            "bricks": bricks.iter().map(describe_brick).collect::<Vec<_>>(),
            "network": format!("{network:?}"), "scheme": format!("{scheme:?}"),
            "write_release": format!("{write_release:?}"), "exclusive": exclusive, "synchronised": synchronised,
            "gateways": gateways, "hosts": format!("{hosts:?}"), "buses": format!("{buses:?}"),
            "machines": format!("{machines:?}"),
        })
    }

    /// Whole machines, and for the ideal that no machines can be its own scheduler.
    fn measure(&self, workload: Workload, seed: u64) -> Result<(Measured, Vec<Window>), String> {
        let System { cluster, length, conditions, .. } = self;
        if !matches!(cluster.scheme, Scheme::Central) {
            let lived = timed::live_through(cluster, workload, *length, conditions, seed);
            return lived.map(|lived| (lived.measured, lived.windows)).map_err(|error| error.to_string());
        }
        let has_buses = cluster.buses != Buses::default() || cluster.network.has_ports;
        if matches!(self.load, Load::Threads(_)) {
            return Err(
                "central has no threads: requests come in a closed or an open loop, or as they are told"
                    .to_owned(),
            );
        }
        let plain = Conditions { keeps_requests: conditions.keeps_requests, ..Conditions::default() };
        if *conditions != plain || cluster.hosts.is_some() || has_buses {
            return Err(
                "central has no machines: no layout, incidents, processors, buses, ports or intervals"
                    .to_owned(),
            );
        }
        if cluster.bricks.iter().any(|brick| brick.background.is_some()) {
            return Err("central has its disks for itself: no background".to_owned());
        }
        let run = if conditions.keeps_requests { central::run_recorded } else { central::run };
        let measured = run(cluster, workload, *length, seed);
        measured.map(|measured| (measured, Vec::new())).map_err(|error| error.to_string())
    }
}

/// A share in whole percent: what differs from seed to seed in a decimal is one note.
fn percent(share: f64) -> String {
    if share < 0.01 { "Less than 1%".to_owned() } else { format!("{:.0}%", share * 100.0) }
}

fn describe_brick(brick: &BrickSpec) -> String {
    let BrickSpec { drive, options, policy, depth, stripe_bytes, run_bytes, speed, .. } = brick;
    let BrickSpec { cache_bytes, journal_bytes, data_bytes, writes_through, background, .. } = brick;
    let name = drive.name();
    format!(
        "{name} {options:?} {policy:?} {depth} {stripe_bytes:?} {run_bytes:?} {speed:?} {cache_bytes} {journal_bytes} {data_bytes:?} {writes_through} {background:?}"
    )
}

impl Load {
    fn describe(&self) -> String {
        match self {
            Load::Closed { outstanding, mix } => format!("closed {outstanding} {mix:?}"),
            Load::Open { per_second, arrivals, mix } => format!("open {per_second} {arrivals:?} {mix:?}"),
            Load::Stream(stream) => format!("stream {}", stream.describe()),
            Load::Replayed { outstanding, stream } => format!("replayed {outstanding} {}", stream.describe()),
            Load::Threads(threads) => format!("{threads:?}"),
        }
    }

    /// What is to be said when this share of the requests lies beyond the cluster's end.
    ///
    /// # Errors
    /// When they are a mistake there.
    pub fn beyond(&self, wrapped: f64) -> Result<Option<String>, String> {
        if wrapped == 0.0 {
            return Ok(None);
        }
        let beyond = format!("{} of the requests lie beyond the cluster's end", percent(wrapped));
        let may_wrap = match self {
            Load::Closed { .. } | Load::Open { .. } | Load::Threads(_) => true,
            Load::Stream(stream) | Load::Replayed { stream, .. } => stream.may_wrap(),
        };
        if !may_wrap {
            return Err(format!("{beyond}: give larger disks, more bricks, or beyond = \"wrap\""));
        }
        Ok(Some(format!("{beyond}, where addresses begin anew.")))
    }

    /// What is to be said when an open loop asks for more than is answered.
    fn unserved(&self, answered: f64, requests: u64) -> Option<String> {
        let Load::Open { per_second, .. } = self else { return None };
        let served_min = SERVED_MIN.min(1.0 - CHANCE / (requests as f64).sqrt());
        (answered < per_second * served_min).then(|| {
            format!(
                "{per_second:.0} requests a second were offered, and {answered:.0} answered: no cluster of this kind can serve so \
                 many, and response times grow as long as the load lasts."
            )
        })
    }

    /// The requests from the beginning, of a cluster of so many replica groups; see [`Stream::open`].
    ///
    /// # Errors
    /// If a trace cannot be read, with file and line.
    pub fn open(&self, groups: usize, seed: u64, seen: &SeenByAll) -> Result<Workload, String> {
        Ok(match self {
            Load::Closed { outstanding, mix } => Workload::Closed { outstanding: *outstanding, mix: *mix },
            Load::Open { per_second, arrivals, mix } => {
                Workload::Open { per_second: *per_second, arrivals: *arrivals, mix: *mix }
            }
            Load::Stream(stream) => Workload::Stream(stream.open(seed, seen)?),
            Load::Replayed { outstanding, stream } => {
                Workload::Replayed { outstanding: *outstanding, requests: stream.open(seed, seen)? }
            }
            Load::Threads(threads) => Workload::Threads(vec![threads.clone(); groups]),
        })
    }
}

/// What [`sample`] can say of a run, with what it means: the figures that a user's own experiment may ask for.
pub const FIGURES: &[(&str, &str)] = &[
    ("throughput_iops", "disk accesses a second of a brick, in the mean over bricks"),
    ("idle", "the share of time in which a disk does nothing"),
    ("service_ms", "the mean time of a disk access"),
    ("queue_seen", "the mean number of accesses that a disk's next one is chosen from"),
    ("requests_per_second", "requests answered, by all bricks"),
    ("response_ms", "the mean response time of all requests"),
    ("response_p50_ms", "half of the requests are not longer"),
    ("response_p95_ms", "95% of the requests are not longer"),
    ("response_p99_ms", "99% of the requests are not longer"),
    ("read_response_ms", "the mean response time of reads"),
    ("read_response_p99_ms", "99% of the reads are not longer"),
    ("write_response_ms", "the mean response time of writes, until they are acknowledged"),
    ("write_response_p99_ms", "99% of the writes are not longer"),
    ("disk_read_response_ms", "the mean response time of reads for which a disk was needed"),
    ("hit_rate", "the share of reads that a brick's cache answers"),
    ("messages_per_request", "messages between gateways and bricks, and among bricks"),
    ("conflicts_per_request", "the share of requests that more than one brick claims"),
    ("claims_per_request", "claims, each counted as one message to every holder"),
    ("device_reads_per_read", "disk reads for each read that no cache answers"),
    ("control_bytes_per_request", "bytes of messages without data"),
    ("data_bytes_per_request", "bytes of messages with data"),
    ("moved_addresses", "addresses that LARD gave to another brick"),
    ("identity_error", "the largest |throughput x service time - (1 - idle)| of a brick"),
];

fn sample(measured: &Measured) -> Sample {
    let per_request = |count: u64| count as f64 / measured.answered.requests.max(1) as f64;
    let (all, read, write) =
        (measured.answered.response, measured.answered.read_response, measured.answered.write_response);
    let figures = [
        ("throughput_iops", measured.throughput_iops()),
        ("idle", measured.idle()),
        ("service_ms", measured.service_ms()),
        ("queue_seen", measured.queue_seen()),
        ("requests_per_second", measured.requests_per_second()),
        ("response_ms", all.mean_ms),
        ("response_p50_ms", all.p50_ms),
        ("response_p95_ms", all.p95_ms),
        ("response_p99_ms", all.p99_ms),
        ("read_response_ms", read.mean_ms),
        ("read_response_p99_ms", read.p99_ms),
        ("write_response_ms", write.mean_ms),
        ("write_response_p99_ms", write.p99_ms),
        ("disk_read_response_ms", measured.answered.disk_read_response.mean_ms),
        ("hit_rate", measured.hit_rate()),
        ("messages_per_request", measured.messages_per_request()),
        ("conflicts_per_request", measured.conflicts_per_request()),
        ("claims_per_request", per_request(measured.contention.claims)),
        ("device_reads_per_read", measured.device_reads_per_read()),
        ("control_bytes_per_request", per_request(measured.traffic.bytes[1])),
        ("data_bytes_per_request", per_request(measured.traffic.bytes[0])),
        ("moved_addresses", measured.moves as f64),
        ("identity_error", measured.bricks.iter().map(identity_error).fold(0.0, f64::max)),
    ];
    debug_assert!(figures.iter().map(|(name, _)| *name).eq(FIGURES.iter().map(|(name, _)| *name)));
    let mut values: BTreeMap<String, f64> =
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for (at, brick) in measured.bricks.iter().enumerate() {
        values.insert(format!("brick{at}_throughput_iops"), brick.throughput_iops);
    }
    for kind in Message::ALL {
        values.insert(format!("{kind:?}_per_request").to_lowercase(), measured.messages(kind));
    }
    let curve = |intervals: &[Interval], of: fn(&Interval) -> f64| {
        let spot = |interval: &Interval| [interval.from_s + interval.seconds / 2.0, of(interval)];
        intervals.iter().map(spot).collect()
    };
    let answered = &measured.answered;
    let ([all, disk_reads], time) =
        ([&answered.series, &answered.disk_read_series], |at: &Interval| at.response_ms);
    let count = |at: &Interval| at.requests as f64;
    Sample {
        values,
        series: [
            ("response_ms".to_owned(), curve(all, time)),
            ("answered".to_owned(), curve(all, count)),
            ("disk_read_response_ms".to_owned(), curve(disk_reads, time)),
            ("disk_reads".to_owned(), curve(disk_reads, count)),
            (DISTRIBUTION.to_owned(), answered.distribution.clone()),
        ]
        .into(),
        simulated_ns: Time((measured.simulated_s * 1e9) as u64).0,
        events: measured.events,
        notes: Vec::new(),
    }
}

/// Zero but for rounding: the three are sides of one account.
fn identity_error(brick: &BrickMeasured) -> f64 {
    (brick.throughput_iops * brick.service_ms / 1e3 - (1.0 - brick.idle)).abs()
}
