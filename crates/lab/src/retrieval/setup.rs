//! From assumptions to arrays under drivers, and from what these were asked for to figures.
//!
//! Reading order: [`Configuration`] (Tables I and II), [`Scheme`] (the paper's names for drivers with choosers), [`Bed`] (what is assumed),
//! [`Replayed`] (a trace on an array under a scheme, as a job), then how figures are made of it.

use super::workload::{self, Extent, Interval, Workload};
use crate::cell::Cell;
use crate::error::LabError;
use crate::experiment::{Job, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Series, Spot};
use reads::distribute::retrieval::{Choice, Fairness};
use serde_json::json;
use sim::array::{self, Allocation, Array, Arrival, Costs, Driver, Extra, Outcome, Planning};

/// Copies of each bucket (section IV.C).
pub(super) const COPIES: [u32; 4] = [2, 3, 4, 5];

/// A disk of Table I.
#[derive(Clone, Copy, Debug)]
struct Kind {
    access_ms: f64,
    mib_per_s: f64,
}

const BARRACUDA: Kind = Kind { access_ms: 13.2, mib_per_s: 57.0 };
const RAPTOR: Kind = Kind { access_ms: 8.3, mib_per_s: 68.0 };
const CHEETAH: Kind = Kind { access_ms: 6.1, mib_per_s: 86.0 };
const VERTEX: Kind = Kind { access_ms: 0.5, mib_per_s: 197.0 };
const X25_E: Kind = Kind { access_ms: 0.2, mib_per_s: 250.0 };

impl Kind {
    /// What it takes for a bucket.
    fn access_ns(self, with_transfer: bool) -> u64 {
        let transfer_ms = workload::BUCKET_BYTES as f64 / (self.mib_per_s * f64::from(1 << 20)) * 1e3;
        ((self.access_ms + if with_transfer { transfer_ms } else { 0.0 }) * 1e6).round() as u64
    }
}

/// What the disks of Table I take for a bucket.
pub(super) fn table_1() -> Vec<u64> {
    [BARRACUDA, RAPTOR, CHEETAH, VERTEX, X25_E].map(|kind| kind.access_ns(false)).into()
}

/// An array of Table II.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Configuration {
    /// Barracudas alone.
    Slow,
    /// X25-Es alone.
    Fast,
    /// All kinds in equal parts.
    Mixed,
    /// Three kinds of hard disks, and X25-Es that have a tenth of the data as well.
    Cached,
}

/// All, in Table II's order.
pub(super) const CONFIGURATIONS: [Configuration; 4] =
    [Configuration::Slow, Configuration::Fast, Configuration::Mixed, Configuration::Cached];

impl Configuration {
    /// The paper's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Configuration::Slow => "disk_conf1",
            Configuration::Fast => "disk_conf2",
            Configuration::Mixed => "disk_conf3",
            Configuration::Cached => "disk_conf4",
        }
    }

    /// What it consists of, for titles.
    pub(super) fn title(self) -> &'static str {
        match self {
            Configuration::Slow => "Barracudas (conf1)",
            Configuration::Fast => "X25-Es (conf2)",
            Configuration::Mixed => "five kinds of disks (conf3)",
            Configuration::Cached => "hard disks and an SSD cache (conf4)",
        }
    }

    fn kinds(self) -> &'static [Kind] {
        match self {
            Configuration::Slow => &[BARRACUDA],
            Configuration::Fast => &[X25_E],
            Configuration::Mixed => &[BARRACUDA, RAPTOR, CHEETAH, VERTEX, X25_E],
            Configuration::Cached => &[BARRACUDA, RAPTOR, CHEETAH],
        }
    }
}

/// The part of the data that disk_conf4 has in its cache, and of the disks that are X25-Es (Table II).
const CACHED_SHARE: f64 = 0.1;

/// A driver with what chooses, under the paper's name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    driver: Driver,
}

/// The names of continuous schemes, as the paper has them.
pub(super) const ONLINE: &str = "online";
pub(super) const SHORTEST_QUEUE: &str = "shortest-queue";
pub(super) const BASELINE: &str = "maxflow-baseline";
pub(super) const BATCHED: &str = "maxflow-batched";
pub(super) const CONSERVATIVE: &str = "maxflow-cons";
pub(super) const ADAPTIVE: &str = "maxflow-adp";
pub(super) const CONTINUOUS: [&str; 6] = [ADAPTIVE, CONSERVATIVE, ONLINE, SHORTEST_QUEUE, BATCHED, BASELINE];

/// What every experiment that simulates an array depends on.
pub(super) const ASSUMED: &[&str] =
    &["transfer_is_added", "planning_is_measured", "plan_ns", "heuristic_look_ns", "flow_look_ns"];

/// What those with continuous schemes depend on as well.
pub(super) const ASSUMED_CONTINUOUS: &[&str] = &["batch_buckets_max", "fairness", "moves_max"];

/// Names of assumptions in one list.
pub(super) fn assumptions(lists: &[&[&'static str]]) -> Vec<&'static str> {
    lists.concat().into_iter().chain(workload::ASSUMED.iter().copied()).collect()
}

/// What is assumed.
#[derive(Clone, Copy)]
pub(super) struct Bed<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) scale: Scale,
}

impl Bed<'_> {
    /// So many disks in the parts of Table II; those of a cache come on top.
    fn array(self, configuration: Configuration, disks: u32, copies: u32) -> Array {
        let with_transfer = self.parameters.flag("transfer_is_added");
        let kinds = configuration.kinds();
        let mut access_ns: Vec<u64> =
            (0..disks as usize).map(|at| kinds[at % kinds.len()].access_ns(with_transfer)).collect();
        let mut allocation = Allocation { copies: copies as usize, disks, extra: None };
        if configuration == Configuration::Cached {
            let cache = (f64::from(disks) * CACHED_SHARE).round() as usize;
            access_ns.extend(std::iter::repeat_n(X25_E.access_ns(with_transfer), cache));
            match self.parameters.text("conf4_cache") {
                "one copy more" => allocation.extra = Some(Extra { share: CACHED_SHARE }),
                _ => allocation.disks += cache as u32,
            }
        }
        Array { access_ns, allocation }
    }

    /// The scheme of this name among [`CONTINUOUS`].
    pub(super) fn continuous(self, name: &'static str) -> Scheme {
        let flow = Choice::MaxFlow;
        let driver = match name {
            ONLINE => Driver::Conservative(Choice::Online),
            SHORTEST_QUEUE => Driver::Conservative(Choice::ShortestQueue),
            BASELINE => Driver::Baseline(flow),
            BATCHED => {
                Driver::Batched { choice: flow, cap: self.parameters.count("batch_buckets_max") as usize }
            }
            CONSERVATIVE => Driver::Conservative(flow),
            _ => Driver::Adaptive(self.fairness()),
        };
        Scheme { name, driver }
    }

    pub(super) fn discrete(self, (name, choice): (&'static str, Choice)) -> Scheme {
        Scheme { name, driver: Driver::Discrete(choice) }
    }

    fn fairness(self) -> Fairness {
        match self.parameters.text("fairness") {
            "order" => Fairness::Order { moves_max: self.parameters.count("moves_max") as u32 },
            _ => Fairness::Promise,
        }
    }

    /// What planning takes; `None` where a clock tells.
    fn costs(self, driver: Driver) -> Option<Costs> {
        let number = |name: &str| self.parameters.number(name);
        let look_ns = match driver {
            Driver::Discrete(choice)
            | Driver::Baseline(choice)
            | Driver::Batched { choice, .. }
            | Driver::Conservative(choice)
                if choice != Choice::MaxFlow =>
            {
                number("heuristic_look_ns")
            }
            _ => number("flow_look_ns"),
        };
        let is_measured = self.parameters.flag("planning_is_measured");
        (!is_measured).then_some(Costs { plan_ns: number("plan_ns"), look_ns })
    }

    /// A trace on so many disks, with so many copies of each bucket.
    pub(super) fn replayed(
        self,
        workload: Workload,
        (configuration, disks): (Configuration, u32),
        copies: u32,
        scheme: Scheme,
    ) -> Result<Replayed, LabError> {
        Ok(Replayed {
            intervals: workload.intervals(self.parameters, self.scale)?,
            array: self.array(configuration, disks, copies),
            driver: scheme.driver,
            costs: self.costs(scheme.driver),
        })
    }
}

/// A trace on an array under a driver: interval by interval, each from an idle array.
pub(super) struct Replayed {
    intervals: Vec<Interval>,
    array: Array,
    driver: Driver,
    /// A clock tells what planning takes where this is absent.
    costs: Option<Costs>,
}

impl Job for Replayed {
    fn describe(&self) -> serde_json::Value {
        let intervals: Vec<String> = self.intervals.iter().map(Interval::describe).collect();
        json!({
            "job": "replayed", "intervals": intervals, "array": format!("{:?}", self.array),
            "driver": format!("{:?}", self.driver), "costs": format!("{:?}", self.costs),
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let mut seen = Vec::new();
        for interval in &self.intervals {
            seen.push((interval.number, interval.extent()?, self.outcome(interval, seed)?));
        }
        let mut sample = sample(&seen);
        if self.intervals.iter().any(Interval::is_recorded) {
            sample.notes.push("Recorded files were read here, and nothing was generated.".to_owned());
        }
        if self.costs.is_none() {
            sample.notes.push("Planning takes what a clock told: another run differs.".to_owned());
        }
        Ok(sample)
    }
}

impl Replayed {
    fn outcome(&self, interval: &Interval, seed: u64) -> Result<Outcome, String> {
        let mut failed = None;
        let arrivals = interval.requests(seed)?.map_while(|request| match request {
            Ok(workload::Request { at_ns, buckets }) => Some(Arrival { at_ns, buckets }),
            Err(why) => {
                failed = Some(why);
                None
            }
        });
        let begin = std::time::Instant::now();
        let mut clock = || begin.elapsed().as_nanos() as u64;
        let mut planning = match self.costs {
            Some(costs) => Planning::Modelled(costs),
            None => Planning::Measured(&mut clock),
        };
        // An interval's buckets are the same for all schemes, and others than another interval's.
        let seed = seed.wrapping_add(u64::from(interval.number) << 32);
        let outcome = array::run(&self.array, self.driver, arrivals, &mut planning, seed);
        failed.map_or(Ok(outcome), Err)
    }
}

/// Means over intervals, each with the weight of its requests; and each interval's figures.
fn sample(seen: &[(u32, Extent, Outcome)]) -> Sample {
    let rate = |extent: &Extent| extent.requests as f64 / extent.duration_s;
    let busiest = seen.iter().max_by(|one, other| rate(&one.1).total_cmp(&rate(&other.1)));
    let busiest = busiest.map_or(0, |(number, ..)| *number);
    let mean = |of: fn(&Outcome) -> f64, is_meant: &dyn Fn(u32) -> bool| {
        let meant = seen.iter().filter(|(number, ..)| is_meant(*number));
        let (sum, weight) = meant.fold((0.0, 0.0), |(sum, weight), (_, extent, outcome)| {
            let requests = extent.requests as f64;
            (sum + of(outcome) * requests, weight + requests)
        });
        sum / f64::max(weight, 1.0)
    };
    let mean_ms = |outcome: &Outcome| outcome.mean_ms;
    let service_ms = |outcome: &Outcome| outcome.mean_ms - outcome.planning_us / 1e3;
    let values = [
        ("mean_ms", mean(mean_ms, &|_| true)),
        ("busiest_ms", mean(mean_ms, &|number| number == busiest)),
        ("others_ms", mean(mean_ms, &|number| number != busiest)),
        ("service_ms", mean(service_ms, &|_| true)),
        ("planning_us", mean(|outcome| outcome.planning_us, &|_| true)),
    ];
    let curve = |of: fn(&Extent, &Outcome) -> f64| {
        seen.iter().map(|(number, extent, outcome)| [f64::from(*number), of(extent, outcome)]).collect()
    };
    let series = [
        ("mean_ms", curve(|_, outcome| outcome.mean_ms)),
        ("variation", curve(|_, outcome| outcome.variation)),
        ("per_s", curve(|extent, _| extent.requests as f64 / extent.duration_s)),
    ];
    Sample {
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        series: series.map(|(name, curve)| (name.to_owned(), curve)).into(),
        simulated_ns: seen.iter().map(|(.., outcome)| outcome.ends_ns).sum(),
        events: seen.iter().map(|(.., outcome)| outcome.buckets).sum(),
        notes: Vec::new(),
    }
}

/// What every figure's reader must know of how intervals become one figure.
pub(super) fn note() -> String {
    "A mean over intervals has each interval with the weight of its requests. Each interval begins with an idle array and runs a slice of its \
     requests at its own rate (all of them with --full)."
        .to_owned()
}

/// A figure of a scheme in each row where these cells stand, by copies.
pub(super) fn by_copies(table: &Table, cells: &[(&str, Cell)], scheme: &str, figure: &str) -> Vec<f64> {
    let wanted = [cells, &[("scheme", Cell::from(scheme))]].concat();
    COPIES
        .map(|copies| {
            let wanted = [wanted.as_slice(), &[("copies", Cell::from(copies))]].concat();
            table.number(&wanted, figure)
        })
        .into()
}

/// One figure over the other, copies by copies.
pub(super) fn ratios(figures: &[f64], others: &[f64]) -> Vec<f64> {
    figures.iter().zip(others).map(|(one, other)| one / other).collect()
}

pub(super) fn greatest(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::NAN, f64::max)
}

pub(super) fn least(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::NAN, f64::min)
}

pub(super) fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

/// A curve over copies for a picture.
pub(super) fn over_copies(name: &str, figures: &[f64]) -> Series {
    let spots = COPIES.iter().zip(figures);
    line(name, spots.map(|(copies, y)| [f64::from(*copies), *y]))
}

/// A curve for a picture.
pub(super) fn line(name: &str, spots: impl IntoIterator<Item = [f64; 2]>) -> Series {
    let spot = |[x, y]: [f64; 2]| Spot { x, y, ci95: None };
    Series { name: name.to_owned(), spots: spots.into_iter().map(spot).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::parameters;

    const PAPER: &str = "continuous-retrieval";

    fn bed(parameters: &Parameters) -> Bed<'_> {
        Bed { parameters, scale: Scale::Quick }
    }

    #[test]
    fn disks_are_those_of_tables_1_and_2() {
        let mut parameters = parameters(PAPER);
        assert_eq!(table_1(), [13_200_000, 8_300_000, 6_100_000, 500_000, 200_000]);
        let count = |array: &Array, ns: u64| array.access_ns.iter().filter(|of| **of == ns).count();
        let mixed = bed(&parameters).array(Configuration::Mixed, 100, 2);
        assert!(table_1().iter().all(|ns| count(&mixed, *ns) == 20));
        let cached = bed(&parameters).array(Configuration::Cached, 100, 3);
        let counts: Vec<usize> = table_1().iter().map(|ns| count(&cached, *ns)).collect();
        assert_eq!(counts, [34, 33, 33, 0, 10]);
        assert_eq!(
            cached.allocation,
            Allocation { copies: 3, disks: 100, extra: Some(Extra { share: 0.1 }) }
        );
        parameters.set("conf4_cache=more disks").unwrap();
        let more = bed(&parameters).array(Configuration::Cached, 100, 3);
        assert_eq!(more.allocation, Allocation { copies: 3, disks: 110, extra: None });
        // Section IV.B: a transfer takes a Barracuda 0.068 ms.
        parameters.set("transfer_is_added=true").unwrap();
        let slow = bed(&parameters).array(Configuration::Slow, 100, 2);
        assert!((13_268_000..13_270_000).contains(&slow.access_ns[0]), "{}", slow.access_ns[0]);
    }

    #[test]
    fn an_interval_weighs_as_much_as_its_requests() {
        let outcome = |mean_ms: f64, planning_us: f64| Outcome {
            requests: 1,
            buckets: 2,
            mean_ms,
            variation: 1.0,
            median_ms: 0.0,
            p99_ms: 0.0,
            planning_us,
            moves: 0,
            ends_ns: 5,
        };
        let extent = |requests| Extent { requests, duration_s: 10.0 };
        let sample = sample(&[(1, extent(100), outcome(2.0, 1e3)), (2, extent(300), outcome(10.0, 2e3))]);
        assert_eq!(sample.value("mean_ms"), 8.0);
        assert_eq!((sample.value("busiest_ms"), sample.value("others_ms")), (10.0, 2.0));
        assert_eq!((sample.value("service_ms"), sample.value("planning_us")), (6.25, 1750.0));
        assert_eq!(sample.series["per_s"], [[1.0, 10.0], [2.0, 30.0]]);
        assert_eq!((sample.events, sample.simulated_ns), (4, 10));
    }

    #[test]
    fn every_scheme_meets_the_same_requests_and_repeats() {
        let mut few = parameters(PAPER);
        few.set("slice_requests=100").unwrap();
        let run = |scheme: &'static str, seed: u64| {
            let bed = bed(&few);
            let disks = (Configuration::Cached, 100);
            let job = bed.replayed(Workload::Exchange, disks, 2, bed.continuous(scheme)).unwrap();
            job.run(seed).unwrap()
        };
        let first = run(CONTINUOUS[0], 1);
        for scheme in CONTINUOUS {
            let sample = run(scheme, 1);
            assert_eq!(sample.events, first.events, "{scheme}");
            assert_eq!(sample, run(scheme, 1), "{scheme}");
            assert!(sample.value("mean_ms") > 0.0 && sample.value("planning_us") > 0.06, "{scheme}");
        }
        assert_ne!(first, run(CONTINUOUS[0], 2));
    }

    #[test]
    fn a_clock_tells_what_planning_takes_if_that_is_wanted() {
        let mut measured = parameters(PAPER);
        let costs = |parameters: &Parameters, scheme| {
            bed(parameters).costs(bed(parameters).continuous(scheme).driver)
        };
        assert_eq!(costs(&measured, ONLINE), Some(Costs { plan_ns: 60.0, look_ns: 2.5 }));
        for scheme in [ADAPTIVE, BATCHED, BASELINE, CONSERVATIVE] {
            assert_eq!(costs(&measured, scheme), Some(Costs { plan_ns: 60.0, look_ns: 12.0 }), "{scheme}");
        }
        measured.set("planning_is_measured=true").unwrap();
        assert_eq!(costs(&measured, ADAPTIVE), None);
    }
}
