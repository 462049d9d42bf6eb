//! Sequences in which reads and writes are mixed. The paper has them among its workloads, and shows nothing of them.

use super::reads::ends;
use super::setup::{self, Bed, FIGURES, PACED, PRECODED, RAID0, ROBUSTORE, Striping};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Mixed;

/// Of all accesses, so many percent are writes.
const WRITES_PERCENT: [f64; 5] = [0.0, 25.0, 50.0, 75.0, 100.0];
/// One client has the disks for itself. Of several, reads compete with writes.
const ALONE: f64 = 1.0;
const SEVERAL: f64 = 4.0;
const CLIENTS: [f64; 2] = [ALONE, SEVERAL];
const READS: &str = "read";
const WRITES: &str = "write";

/// Reads or writes of a scheme.
struct Figures<'a> {
    table: &'a Table<'a>,
    clients: f64,
    access: &'static str,
}

impl Figures<'_> {
    fn at(&self, scheme: &str, writes_percent: f64, figure: &str) -> f64 {
        let cells = [
            ("scheme", Cell::from(scheme)),
            ("clients", Cell::from(self.clients)),
            ("writes_percent", Cell::from(writes_percent)),
            ("access", Cell::from(self.access)),
        ];
        self.table.number(&cells, figure)
    }

    fn latency(&self, scheme: &str, writes_percent: f64) -> f64 {
        self.at(scheme, writes_percent, "latency_s")
    }

    /// The shares of writes at which there are such accesses.
    fn shares(&self) -> &'static [f64] {
        if self.access == READS { &WRITES_PERCENT[..4] } else { &WRITES_PERCENT[1..] }
    }

    /// A ratio of two figures, the least and the most by the share of writes.
    fn ratios(&self, one: (&str, &str), over: (&str, &str)) -> (f64, f64) {
        let ratio = |share: &f64| self.at(one.0, *share, one.1) / self.at(over.0, *share, over.1);
        ends(&self.shares().iter().map(ratio).collect::<Vec<f64>>())
    }
}

impl Experiment for Mixed {
    fn id(&self) -> &str {
        "robustore.mixed"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "Reads and writes of 1 GB, mixed, by one client and by several at the same time"
    }

    fn assumptions(&self) -> Vec<&str> {
        // What is read lies where this cluster's disks took it.
        let of_all = setup::ASSUMED.iter().filter(|name| **name != "read_rates");
        of_all.chain(&["sequence_accesses"]).copied().collect()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for (stored, redundancy) in setup::STORED {
            for clients in CLIENTS {
                let bed = Bed { clients: clients as u32, ..Bed::new(parameters, scale) };
                for share in WRITES_PERCENT {
                    let jobs = bed.sequences((stored, Striping::Unbalanced), redundancy, share / 100.0);
                    let point = |job| Point::new(job).with("clients", clients).with("writes_percent", share);
                    points.extend(jobs.into_iter().map(point));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let of = |(access, are_writes): (&'static str, bool)| {
            setup::rows(runs, are_writes).into_iter().map(move |row| row.with("access", access))
        };
        [(READS, false), (WRITES, true)].into_iter().flat_map(of).collect()
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |clients: f64, access: &'static str| Figures { table, clients, access };
        let (alone, several) = (of(ALONE, READS), of(SEVERAL, READS));
        let (alone_writes, several_writes) = (of(ALONE, WRITES), of(SEVERAL, WRITES));
        let mut claims = vec![
            // Of what was called off a disk has one block at most.
            shape(
                "RobuSTore, one client: latency of a read, 75% of writes over none",
                alone.latency(ROBUSTORE, 75.0) / alone.latency(ROBUSTORE, 0.0),
                [0.9, 1.1],
            ),
            shape(
                "RobuSTore, one client: latency of a write, 25% of writes over all",
                alone_writes.latency(ROBUSTORE, 25.0) / alone_writes.latency(ROBUSTORE, 100.0),
                [0.9, 1.1],
            ),
            // Both have a few blocks at each disk, and take turns.
            shape(
                "lt-precoded, paced, 4 clients: latency of a read, 75% of writes over none",
                several.latency(PACED, 75.0) / several.latency(PACED, 0.0),
                [0.75, 1.33],
            ),
            // A speculative read asks for everything at once, and so is before most of what is written meanwhile.
            shape(
                "lt-precoded, 4 clients: latency of a read, 75% of writes over none",
                several.latency(PRECODED, 75.0) / several.latency(PRECODED, 0.0),
                [0.3, 1.0],
            ),
            shape(
                "4 clients, 25% of writes: latency of a write beside speculative reads over beside paced ones",
                several_writes.latency(PRECODED, 25.0) / several_writes.latency(PACED, 25.0),
                [1.0, 3.0],
            ),
            shape(
                "RobuSTore, 4 clients: standard deviation of reads over their latency, most by share",
                several.ratios((ROBUSTORE, FIGURES[2]), (ROBUSTORE, FIGURES[1])).1,
                [0.0, 0.5],
            ),
        ];
        for of in [several, several_writes] {
            let access = of.access;
            claims.push(shape(
                format!("4 clients: bandwidth of a {access}, RobuSTore over RAID-0, least by share"),
                of.ratios((ROBUSTORE, FIGURES[0]), (RAID0, FIGURES[0])).0,
                [1.0, 1e3],
            ));
            claims.push(shape(
                format!("4 clients: standard deviation of a {access}, RAID-0 over RobuSTore, least by share"),
                of.ratios((RAID0, FIGURES[2]), (ROBUSTORE, FIGURES[2])).0,
                [1.0, 1e3],
            ));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let panels = [
            ("a", READS, "bandwidth", FIGURES[0], "MB/s"),
            ("b", WRITES, "bandwidth", FIGURES[0], "MB/s"),
            ("c", READS, "standard deviation of latency", FIGURES[2], "s"),
            ("d", WRITES, "standard deviation of latency", FIGURES[2], "s"),
        ];
        let panel = |(panel, access, what, figure, unit): (&str, &'static str, &str, &str, &str)| {
            let cells = [("clients", Cell::from(SEVERAL)), ("access", Cell::from(access))];
            let over = ("writes_percent", figure);
            let series = setup::READ.map(|scheme| setup::series(table, scheme, &cells, over));
            let title = format!("A {access} of 1 GB, by 4 clients that read and write: {what}");
            let (x, y) = (Axis::new("writes, of all accesses", "%"), Axis::new(what, unit).logarithmic());
            Chart::lines(&format!("{}.{panel}", self.id()), &title, x, y, series.into())
        };
        panels.map(panel).into()
    }

    fn notes(&self) -> Vec<String> {
        vec!["MB are 2^20 bytes. Each client does one access after another, and each access is to an object of its own.".to_owned()]
    }
}
