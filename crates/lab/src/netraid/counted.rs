//! What an operation places on memories and in messages: counted from the machines that do it, one after another in a quiet cluster.

use super::setup::{
    self, Bed, ClusterShape, DIRECT_NONE, DIRECT_SLOCK, DIRECT_TS, Disks, GW_SLOCK, GW_TS, PROTOCOLS,
    Topology, directs, find, is_papers, offloading, papers,
};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use base::Time;
use core::time::Duration;
use rules::layout::Layout;
use serde_json::json;
use sim::timed::{self, Arrival, Cluster, Conditions, Crossed, Crossings, Length, Workload};

/// Between two operations: longer than any takes, with its decision and its way to disks.
const GAP: Duration = Duration::from_millis(50);
/// Operations before those that are counted: a client has found its coordinator then.
const WARM_UP: u64 = 4;
/// Data units of the paper's rank of five.
pub(super) const DATA: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Read,
    /// Of one unit.
    SmallWrite,
    /// Of all units of a stripe.
    FullStripe,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Raid {
    /// Two copies.
    One,
    /// Four data units and their parity.
    Four,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::SmallWrite => "small write",
            Operation::FullStripe => "full stripe",
        }
    }
}

impl Raid {
    pub(super) fn name(self) -> &'static str {
        match self {
            Raid::One => "RAID 1",
            Raid::Four => "RAID 4",
        }
    }

    fn layout(self) -> Layout {
        match self {
            Raid::One => Layout::Raid1 { copies: 2 },
            Raid::Four => Layout::Raid4 { data: DATA as u8 },
        }
    }
}

/// Operations of one kind under a protocol.
pub(super) struct Counted {
    protocol: &'static str,
    raid: Raid,
    operation: Operation,
    cluster: Cluster,
    unit_bytes: u64,
    /// Which data unit of a stripe is read or written.
    unit: u64,
    operations: u64,
}

impl Counted {
    pub(super) fn new(bed: Bed<'_>, protocol: &'static str, (raid, operation): (Raid, Operation)) -> Counted {
        let width = u32::from(raid.layout().width());
        let topology = Topology::of(protocol);
        // The first member coordinates where a brick does. It holds something of copies and of full stripes: who is to hold nothing of them
        // stands on a machine of its own.
        let is_apart = bed.parameters.flag("coordinator_apart");
        let has_other_units = raid == Raid::Four && operation != Operation::FullStripe;
        let has_machine = match topology {
            Topology::Gateway => true,
            Topology::Coordinator => is_apart && !has_other_units,
            Topology::Direct | Topology::Amongst => false,
        };
        Counted {
            protocol,
            raid,
            operation,
            cluster: bed.cluster(
                bed.brick(Disks::Ram, 0),
                ClusterShape {
                    bricks: width,
                    topology,
                    clients: 1,
                    gateways_on_bricks: !has_machine,
                    client_link_us: None,
                },
            ),
            unit_bytes: bed.unit_bytes(),
            unit: u64::from(is_apart && has_other_units),
            operations: bed.parameters.count("operations"),
        }
    }

    fn units(&self) -> u64 {
        if self.operation == Operation::FullStripe { DATA } else { 1 }
    }

    fn arrivals(&self) -> impl Iterator<Item = Arrival> + use<> {
        let sectors = self.unit_bytes / base::SECTOR_BYTES;
        let (unit, units, is_write) = (self.unit, self.units(), self.operation != Operation::Read);
        let stripe = u64::from(self.raid.layout().data());
        (0..WARM_UP + self.operations).map(move |number| Arrival {
            at: Time(number * GAP.as_nanos() as u64),
            sector: (number * stripe + unit) * sectors,
            count: (units * sectors) as u32,
            is_write,
        })
    }
}

impl Job for Counted {
    fn describe(&self) -> serde_json::Value {
        json!({
            "job": "counted", "protocol": self.protocol, "raid": self.raid.name(),
            "operation": self.operation.name(), "unit_bytes": self.unit_bytes, "unit": self.unit,
            "operations": self.operations, "cluster": format!("{:?}", self.cluster),
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let protocol = self.protocol.parse();
        let conditions = Conditions {
            layout: Some(self.raid.layout()),
            protocol: protocol.map_err(|error| format!("{error}"))?,
            unit_bytes: Some(self.unit_bytes),
            counts_crossings: Some(GAP),
            are_blocks: true,
            ..Conditions::default()
        };
        let length = Length { warmup: WARM_UP, requests: u64::MAX };
        let workload = Workload::Stream(Box::new(self.arrivals()));
        let lived = timed::live_through(&self.cluster, workload, length, &conditions, seed)
            .map_err(|error| error.to_string())?;
        let mut sample = Sample {
            simulated_ns: (lived.measured.simulated_s * 1e9) as u64,
            events: lived.measured.events,
            ..Sample::default()
        };
        for (participant, crossed) in PARTICIPANTS.iter().zip(self.participants(&lived.crossings)) {
            for (counted, count) in COUNTED.iter().zip(self.each(&crossed)) {
                sample.values.insert(key(participant, counted), count);
            }
        }
        Ok(sample)
    }
}

/// Whose counts stand in a table.
const PARTICIPANTS: [&str; 6] = ["client", "coordinator", "data_brick", "parity_brick", "bricks", "total"];
/// What is counted: stripe units that cross memory, messages of the request, and messages that tell of a decision.
const COUNTED: [&str; 3] = [UNITS, "messages", "decisions"];
const UNITS: &str = "units";

fn key(participant: &str, counted: &str) -> String {
    format!("{participant} {counted}")
}

impl Counted {
    /// What was counted for an operation.
    fn each(&self, crossed: &Crossed) -> [f64; 3] {
        let operations = self.operations as f64;
        let units = crossed.bytes() as f64 / self.unit_bytes as f64;
        [units, crossed.messages() as f64, crossed.decisions() as f64].map(|count| count / operations)
    }

    /// Who did what, as [`PARTICIPANTS`] has them. The data brick is the one of the unit that is read or written, the parity brick the last
    /// one; the second of two copies.
    fn participants(&self, crossings: &Crossings) -> [Crossed; 6] {
        let slot = |slot: usize| crossings.bricks[crossings.members[0][slot] as usize];
        let last = crossings.members[0].len() - 1;
        let bricks = crossings.bricks.iter().fold(Crossed::default(), |sum, more| sum + *more);
        let (clients, gateways) = (crossings.clients, crossings.gateways);
        // A gateway beside the data brick is that brick.
        let (client, coordinator, beside) = match Topology::of(self.protocol) {
            Topology::Direct => (gateways, Crossed::default(), Crossed::default()),
            Topology::Gateway | Topology::Coordinator => (clients, gateways, Crossed::default()),
            Topology::Amongst => (clients, Crossed::default(), gateways),
        };
        let (data_brick, bricks) = (slot(self.unit as usize) + beside, bricks + beside);
        let total = client + coordinator + bricks;
        [client, coordinator, data_brick, slot(last), bricks, total]
    }
}

/// What section 3 counts for an operation: crossings by participant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Form {
    pub(super) client: f64,
    pub(super) coordinator: f64,
    pub(super) bricks: f64,
}

impl Form {
    pub(super) const fn new(client: f64, coordinator: f64, bricks: f64) -> Form {
        Form { client, coordinator, bricks }
    }

    pub(super) fn total(self) -> f64 {
        self.client + self.coordinator + self.bricks
    }

    /// The shares of the data brick and of the parity brick of a small write: the data brick sends the difference, if anybody does but who coordinates.
    fn of_two_bricks(self) -> [f64; 2] {
        [libm::ceil(self.bricks / 2.0), libm::floor(self.bricks / 2.0)]
    }
}

/// A figure that counts: its operations, and what the paper counts for each.
pub(super) struct Counting {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) operations: &'static [(Raid, Operation)],
    /// Whether ours are shown as well: they differ in small writes.
    pub(super) with_ours: bool,
    pub(super) form: fn(Topology, (Raid, Operation)) -> Form,
    /// What the text says beside that.
    pub(super) in_text: fn(&Table) -> Vec<Claim>,
}

impl Experiment for Counting {
    fn id(&self) -> &str {
        self.id
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        self.title
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, &["coordinator_apart", "operations"]].concat()
    }

    fn points(&self, parameters: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let point = |(what, protocol): ((Raid, Operation), &'static str)| {
            let point = Point::new(Counted::new(bed, protocol, what));
            point.with("layout", what.0.name()).with("protocol", protocol)
        };
        Ok(self.cases().map(point).collect())
    }

    /// Three rows a point, for what is counted.
    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let row = |(labels, sample): &(Row, Sample), counted: &str| {
            let labels = labels.clone().with("counted", counted);
            PARTICIPANTS.iter().fold(labels, |row, participant| {
                row.with(*participant, sample.value(&key(participant, counted)))
            })
        };
        runs.runs.iter().flat_map(|run| COUNTED.map(|counted| row(run, counted))).collect()
    }

    /// A claim for each participant of each operation, where the protocol is one that the paper counts.
    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for ((raid, operation), protocol) in self.cases() {
            // Only where parity is computed from old content does it matter by whom.
            if !is_papers(protocol) && (raid, operation) == (Raid::Four, Operation::SmallWrite) {
                continue;
            }
            let form = (self.form)(Topology::of(protocol), (raid, operation));
            let mut counts = vec![
                ("client", form.client),
                ("coordinator", form.coordinator),
                ("bricks", form.bricks),
                ("total", form.total()),
            ];
            if (raid, operation) == (Raid::Four, Operation::SmallWrite) {
                let [data_brick, parity_brick] = form.of_two_bricks();
                counts.extend([("data_brick", data_brick), ("parity_brick", parity_brick)]);
            }
            for (participant, count) in counts {
                let what =
                    format!("{} {}, {}: {participant} (units)", raid.name(), operation.name(), protocol);
                let measured = figure(table, raid, protocol, participant);
                claims.push(claim(what, count, measured, [count, count]));
            }
        }
        claims.extend((self.in_text)(table));
        claims
    }

    /// A picture for each operation: what each protocol places on client, coordinator and bricks.
    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |(letter, what): (char, &(Raid, Operation))| {
            let protocols = self.protocols();
            let groups = protocols.iter().map(|protocol| (*protocol).to_owned()).collect();
            let series = ["client", "coordinator", "bricks"].map(|participant| {
                let spot = |(at, protocol): (usize, &&str)| Spot {
                    x: at as f64,
                    y: figure(table, what.0, protocol, participant),
                    ci95: None,
                };
                Series {
                    name: participant.to_owned(),
                    spots: protocols.iter().enumerate().map(spot).collect(),
                }
            });
            let title = format!("{} {}: memory load", what.0.name(), what.1.name());
            let y = Axis::new("crossings of memory buses", "units");
            Chart::bars(&format!("{}.{letter}", self.id), &title, y, groups, series.into())
        };
        ('a'..).zip(self.operations).map(chart).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "A unit is a stripe unit of content; what a message has beside its content is not counted. Bricks have no cache, so that all that is read comes \
             from a disk."
                .to_owned(),
            "A decision is one message to a member, which is not answered. The paper counts two messages of a commit exchange for each member."
                .to_owned(),
        ]
    }
}

impl Counting {
    fn cases(&self) -> impl Iterator<Item = ((Raid, Operation), &'static str)> {
        self.operations.iter().flat_map(|what| self.protocols().into_iter().map(|protocol| (*what, protocol)))
    }

    fn protocols(&self) -> Vec<&'static str> {
        if self.with_ours { PROTOCOLS.to_vec() } else { papers().collect() }
    }
}

/// Units that an operation moves across the memory of a participant.
pub(super) fn figure(table: &Table, raid: Raid, protocol: &str, participant: &str) -> f64 {
    let cells = [
        ("layout", Cell::from(raid.name())),
        ("protocol", Cell::from(protocol)),
        ("counted", Cell::from(UNITS)),
    ];
    table.number(&cells, participant)
}

/// The text's "no difference in memory traffic" between locks and stamps, for each who coordinates.
pub(super) fn same_for_locks_and_stamps(table: &Table, raid: Raid) -> Vec<Claim> {
    let pairs = [(DIRECT_SLOCK, DIRECT_TS), (GW_SLOCK, GW_TS)];
    let pairs = pairs.into_iter().filter_map(|(slock, ts)| Some((find(slock)?, find(ts)?)));
    let total = |protocol: &str| figure(table, raid, protocol, "total");
    pairs
        .map(|(slock, ts)| {
            let what = format!("{}: total, {slock} less {ts} (units)", raid.name());
            claim(what, 0.0, total(slock) - total(ts), [0.0, 0.0])
        })
        .collect()
}

/// What the text says of messages: two with the lock server, and a commit exchange with each member that takes part.
pub(super) fn exchanges(table: &Table, members: f64) -> Vec<Claim> {
    // What is sent is also received.
    let sent = |protocol: &str, counted: &str| {
        let cells = [
            ("layout", Cell::from(Raid::Four.name())),
            ("protocol", Cell::from(protocol)),
            ("counted", Cell::from(counted)),
        ];
        table.number(&cells, "total") / 2.0
    };
    let mut claims = Vec::new();
    if let (Some(slock), Some(none)) = (find(DIRECT_SLOCK), find(DIRECT_NONE)) {
        let locks = sent(slock, "messages") - sent(none, "messages");
        claims.push(claim(format!("RAID 4, {slock}: messages for the lock"), 2.0, locks, [2.0, 2.0]));
    }
    if let Some(ts) = find(DIRECT_TS) {
        let what = format!("RAID 4, {ts}: members that are told of the decision");
        claims.push(claim(what, members, sent(ts, "decisions"), [members, members]));
    }
    claims
}

/// Of full stripes: a client that coordinates has the most to do, and all together the least.
pub(super) fn direct_is_extreme(table: &Table) -> Vec<Claim> {
    let of = |participant: &str, is_direct: bool| {
        let protocols: Vec<&str> = if is_direct { directs().collect() } else { offloading().collect() };
        protocols
            .iter()
            .map(|protocol| figure(table, Raid::Four, protocol, participant))
            .collect::<Vec<f64>>()
    };
    let most = |of: &[f64]| of.iter().copied().fold(f64::NAN, f64::max);
    let least = |of: &[f64]| of.iter().copied().fold(f64::NAN, f64::min);
    vec![
        shape(
            "total, direct over the least of the others",
            most(&of("total", true)) / least(&of("total", false)),
            [0.0, 0.99],
        ),
        shape(
            "client, direct over the most of the others",
            least(&of("client", true)) / most(&of("client", false)),
            [1.01, 1e3],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netraid::experiments;
    use crate::papers::parameters;

    /// What differs from the paper: a lock is asked for, granted, and given back.
    const DIFFER: [&str; 2] = [
        "RAID 4, direct,slock,none,rmw: messages for the lock",
        "RAID 4, direct,slock,none,rmw: messages for the lock",
    ];

    /// All else that running machines cross is what can be counted by hand, to the last unit.
    #[test]
    fn each_protocol_crosses_what_section_3_counts() {
        let parameters = parameters("network-raid").with("operations", crate::parameters::Value::Number(4.0));
        let mut differ = Vec::new();
        for experiment in experiments().iter().take(3) {
            let points = experiment.points(&parameters, Scale::Quick).unwrap();
            let run = |point: Point| (point.labels, point.job.run(1).unwrap());
            let runs = Runs { runs: points.into_iter().map(run).collect() };
            let rows = experiment.rows(&runs);
            let claims = experiment.claims(&Table(&rows));
            assert!(claims.len() >= 8, "{}", experiment.id());
            differ.extend(claims.into_iter().filter(|claim| !claim.holds).map(|claim| claim.what));
        }
        assert_eq!(differ, DIFFER);
    }
}
