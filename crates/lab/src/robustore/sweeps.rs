//! What the paper varied beside redundancy, and shows nothing of: the network's latency, disks, the size of objects and of blocks, and the load of
//! other applications on the disks. And what it names as open: several clients that read at the same time.

use super::setup::{self, Bed, FIGURES, MIB, Measures, PACED, RAID0, ROBUSTORE, RRAID_A, Striping};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

/// Reads with one thing varied.
pub(super) struct Sweep {
    id: &'static str,
    title: &'static str,
    /// What is varied: the name of its column, what the picture's axis says, and its unit.
    varied: &'static str,
    axis: (&'static str, &'static str),
    values: &'static [f64],
    set: fn(Bed<'_>, f64) -> Bed<'_>,
    /// What it depends on beyond what all do.
    also_assumed: &'static [&'static str],
    expected: fn(&Figures<'_>) -> Vec<Claim>,
}

/// There and back, over the paper's range.
pub(super) const LATENCY: Sweep = Sweep {
    id: "robustore.latency",
    title: "1 GB read from 64 of 128 disks that differ a hundredfold, by the network's latency",
    varied: "round_trip_ms",
    axis: ("network, there and back", "ms"),
    values: &[1.0, 10.0, 30.0, 100.0],
    set: |bed, round_trip_ms| Bed { round_trip_ms, ..bed },
    also_assumed: &[],
    expected: |of| {
        let transfer_s = |scheme: &str, round_trip_ms: f64| of.at(scheme, round_trip_ms, "transfer_s");
        let trips = |scheme: &str| (transfer_s(scheme, 100.0) - transfer_s(scheme, 1.0)) / 99e-3;
        vec![
            shape(
                "RobuSTore: round trips that a read waits for, beside those for metadata",
                trips(ROBUSTORE),
                [0.5, 2.0],
            ),
            shape("lt-precoded, paced: the same", trips(PACED), [0.5, 2.0]),
            shape(
                "latency at 100 ms without metadata, RRAID-A over RobuSTore",
                transfer_s(RRAID_A, 100.0) / transfer_s(ROBUSTORE, 100.0),
                [1.0, 1e3],
            ),
        ]
    },
};

pub(super) const DISKS: Sweep = Sweep {
    id: "robustore.disks",
    title: "1 GB read, by the number of disks that it is on",
    varied: "disks",
    axis: ("disks of an object, of 128", ""),
    values: &[8.0, 16.0, 32.0, 64.0, 128.0],
    set: |bed, disks| Bed { spread: disks as u32, ..bed },
    also_assumed: &[],
    expected: |of| {
        vec![
            shape("RobuSTore's bandwidth, 128 disks over 8", of.ends(ROBUSTORE), [10.0, 20.0]),
            shape("RAID-0's bandwidth, the same: the slowest disk decides", of.ends(RAID0), [1.0, 16.0]),
            shape("RobuSTore over RAID-0, least of all", of.least(ROBUSTORE, RAID0), [1.0, 1e3]),
            shape("lt-precoded, paced over RobuSTore, least of all", of.least(PACED, ROBUSTORE), [1.0, 1.5]),
        ]
    },
};

pub(super) const SIZES: Sweep = Sweep {
    id: "robustore.sizes",
    title: "Objects of 128 MB to 1 GB read from 64 disks",
    varied: "object_mb",
    axis: ("size of an object", "MB"),
    values: &[128.0, 256.0, 512.0, 1024.0],
    set: |bed, mb| Bed { blocks: mb as u32, ..bed },
    also_assumed: &[],
    expected: |of| {
        vec![
            shape("RobuSTore's bandwidth, 1 GB over 128 MB", of.ends(ROBUSTORE), [1.0, 2.0]),
            shape("RobuSTore over RAID-0, least of all", of.least(ROBUSTORE, RAID0), [4.0, 1e3]),
            shape("lt-precoded, paced over RobuSTore, least of all", of.least(PACED, ROBUSTORE), [1.0, 2.0]),
        ]
    },
};

pub(super) const BLOCKS: Sweep = Sweep {
    id: "robustore.blocks",
    title: "1 GB read in blocks of 0.5 to 4 MB",
    varied: "block_mb",
    axis: ("size of a block", "MB"),
    values: &[0.5, 1.0, 2.0, 4.0],
    set: |bed, mb| Bed { blocks: (1024.0 / mb) as u32, block_bytes: (mb * MIB as f64) as u64, ..bed },
    also_assumed: &[],
    expected: |of| {
        vec![
            // Slow disks have few blocks, and what they work on at the end is in vain.
            shape("RobuSTore's bandwidth, 4 MB over 0.5 MB", of.ends(ROBUSTORE), [0.5, 1.0]),
            shape("lt-precoded, paced: the same", of.ends(PACED), [0.5, 1.0]),
            shape("RobuSTore over RAID-0, least of all", of.least(ROBUSTORE, RAID0), [4.0, 1e3]),
        ]
    },
};

pub(super) const COMPETING: Sweep = Sweep {
    id: "robustore.competing",
    title: "Several clients read 1 GB each at the same time, from 64 of the same 128 disks",
    varied: "clients",
    axis: ("clients", ""),
    values: &[1.0, 2.0, 4.0, 8.0],
    set: |bed, clients| Bed { clients: clients as u32, ..bed },
    also_assumed: &[],
    expected: |of| {
        vec![
            // Two of them have as many disks as there are.
            shape(
                "RobuSTore: all bandwidths together, 8 clients over 1",
                8.0 * of.ends(ROBUSTORE),
                [1.0, 2.0],
            ),
            shape("lt-precoded, paced: the same", 8.0 * of.ends(PACED), [1.0, 2.0]),
            shape("RobuSTore over RAID-0, least of all", of.least(ROBUSTORE, RAID0), [1.0, 1e3]),
            shape("lt-precoded, paced over RobuSTore, least of all", of.least(PACED, ROBUSTORE), [1.0, 2.0]),
        ]
    },
};

/// An access of another application takes 7.5 ms: half a turn of 3 ms, a mean seek of 4.44 ms, and 0.07 ms for 4 KiB. So they take nothing, 15,
/// 30, 60 and 75% of each disk's time.
pub(super) const BACKGROUND: Sweep = Sweep {
    id: "robustore.background",
    title: "1 GB read from disks that serve random accesses of other applications as well",
    varied: "background_per_second",
    axis: ("other applications' accesses at each disk", "1/s"),
    values: &[0.0, 20.0, 40.0, 80.0, 100.0],
    set: |bed, background_per_second| Bed { background_per_second, ..bed },
    also_assumed: setup::ASSUMED_OF_BACKGROUND,
    expected: |of| {
        let most = |of_value: &dyn Fn(f64) -> f64| {
            BACKGROUND.values.iter().map(|value| of_value(*value)).fold(f64::NEG_INFINITY, f64::max)
        };
        let overhead = |per_second: f64| of.at(ROBUSTORE, per_second, FIGURES[3]);
        vec![
            // The slowest disk decides, and moves its arm for each run anyway: it loses what the others take.
            shape("RAID-0's bandwidth, 100 accesses a second over none", of.ends(RAID0), [0.2, 0.3]),
            // A fast disk reads on in one run: to return there costs a movement as well.
            shape("RobuSTore's bandwidth, the same", of.ends(ROBUSTORE), [0.1, 0.25]),
            shape("RobuSTore over RAID-0, least of all", of.least(ROBUSTORE, RAID0), [5.0, 1e3]),
            shape("lt-precoded, paced over RobuSTore, least of all", of.least(PACED, ROBUSTORE), [1.0, 1.6]),
            shape(
                "RobuSTore's standard deviation over its latency, most of all",
                most(&|value| of.at(ROBUSTORE, value, FIGURES[2]) / of.at(ROBUSTORE, value, FIGURES[1])),
                [0.0, 0.25],
            ),
            shape(
                "RobuSTore's I/O overhead, 100 accesses a second less none",
                overhead(100.0) - overhead(0.0),
                [-0.1, 0.1],
            ),
        ]
    },
};

/// What was measured, by scheme and value.
struct Figures<'a> {
    table: &'a Table<'a>,
    sweep: &'a Sweep,
}

impl Figures<'_> {
    fn at(&self, scheme: &str, value: f64, figure: &str) -> f64 {
        let cells = [("scheme", Cell::from(scheme)), (self.sweep.varied, Cell::from(value))];
        self.table.number(&cells, figure)
    }

    /// MB/s.
    fn bandwidth(&self, scheme: &str, value: f64) -> f64 {
        self.at(scheme, value, FIGURES[0])
    }

    /// The bandwidth at the last value over that at the first.
    fn ends(&self, scheme: &str) -> f64 {
        let [first, .., last] = self.sweep.values else { return f64::NAN };
        self.bandwidth(scheme, *last) / self.bandwidth(scheme, *first)
    }

    /// The least of one bandwidth over another.
    fn least(&self, scheme: &str, over: &str) -> f64 {
        let values = self.table.distinct(self.sweep.varied);
        let ratio = |value: f64| self.bandwidth(scheme, value) / self.bandwidth(over, value);
        values.iter().filter_map(Cell::number).map(ratio).fold(f64::INFINITY, f64::min)
    }
}

impl Experiment for Sweep {
    fn id(&self) -> &str {
        self.id
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        self.title
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, self.also_assumed].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let values: Vec<f64> = match (scale, self.values) {
            (Scale::Quick, [first, .., last]) => vec![*first, *last],
            (_, values) => values.to_vec(),
        };
        let mut points = Vec::new();
        for (stored, redundancy) in setup::STORED {
            for value in &values {
                let bed = (self.set)(Bed::new(parameters, scale), *value);
                let accesses = bed.accesses((stored, Striping::Unbalanced), redundancy, Measures::Reads);
                points.push(Point::new(accesses).with(self.varied, *value));
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, false)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        (self.expected)(&Figures { table, sweep: self })
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = setup::READ.map(|scheme| setup::series(table, scheme, &[], (self.varied, FIGURES[0])));
        let x = Axis::new(self.axis.0, self.axis.1);
        let y = Axis::new("bandwidth of a read", "MB/s").logarithmic();
        vec![Chart::lines(self.id, self.title, x, y, series.into())]
    }

    fn notes(&self) -> Vec<String> {
        vec![setup::MB_NOTE.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use code::fountain::{Lt, Peeling};

    /// How many of the symbols in this order give the blocks back, over the number of blocks.
    fn needed(code: &Lt, order: &[u32]) -> f64 {
        let mut peeling = Peeling::new(code.blocks());
        let is_enough = |symbol: &u32| {
            peeling.arrive(code.blocks_of(*symbol));
            peeling.is_complete()
        };
        let last = order.iter().position(is_enough).expect("all symbols give the blocks back");
        (last + 1) as f64 / f64::from(code.blocks())
    }

    /// Why the paper's code reads fastest with 512 blocks: symbols come about in the order in which they were made.
    #[test]
    fn of_512_blocks_fewer_of_the_first_symbols_are_needed_than_of_1024() {
        const CODES: u64 = 40;
        let mut draw = base::Rng::with_seed(7);
        let mut means = |blocks: u32| {
            let (mut first, mut drawn) = (0.0, 0.0);
            for seed in 0..CODES {
                let (mut code, _) =
                    Lt::decodable(blocks, 4 * blocks, seed * 7919 + 1).expect("some graph does");
                code.extend_to(4 * blocks);
                let mut order: Vec<u32> = (0..4 * blocks).collect();
                first += needed(&code, &order) / CODES as f64;
                draw.shuffle(&mut order);
                drawn += needed(&code, &order) / CODES as f64;
            }
            (first, drawn)
        };
        let (short, long) = (means(512), means(1024));
        assert!(short.0 + 0.15 < long.0, "in the order in which they were made: {short:?} {long:?}");
        assert!(short.1 > long.1, "in a drawn order it is the other way round: {short:?} {long:?}");
    }
}
