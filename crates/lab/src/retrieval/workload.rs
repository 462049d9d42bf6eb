//! The paper's three traces, interval by interval: generated from their descriptions, or read from recorded files.
//!
//! A figure takes a slice of each interval, its first requests, unless whole intervals are wanted. A slice begins as the whole interval
//! does, so that a longer one only adds requests at the end.

use crate::error::LabError;
use crate::experiment::Scale;
use crate::parameters::Parameters;
use base::Rng;
use std::fs::File;
use std::path::{Path, PathBuf};
use trace::generate::description::Arrivals;
use trace::{Description, Options, Origin, Reader, Record};

/// A bucket, in which the paper counts sizes: 4 KB (section IV.B).
pub(super) const BUCKET_BYTES: u64 = 4096;

/// What an experiment that uses a [`Workload`] depends on.
pub(super) const ASSUMED: &[&str] = &["slice_requests", "whole_intervals", "trace_arrivals"];

/// One of the paper's traces (section IV.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Workload {
    Exchange,
    TpcC,
    TpcE,
}

/// A part of a trace, and how much of it is run.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    /// From 1 on, as the paper numbers them.
    pub(super) number: u32,
    source: Source,
    /// All of it when absent.
    slice: Option<Slice>,
}

#[derive(Clone, Debug)]
enum Source {
    Described(Box<Description>),
    Recorded(Recorded),
}

#[derive(Clone, Debug)]
struct Recorded {
    path: PathBuf,
    /// The file's length and time of change: another file under the same name is another trace.
    stamp: String,
}

/// At least so many requests, and at least those of so much time.
#[derive(Clone, Copy, Debug)]
struct Slice {
    requests: u64,
    lasting_ns: u64,
}

/// How much a whole interval is, whatever slice of it is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Extent {
    pub(super) requests: u64,
    pub(super) duration_s: f64,
}

/// A read, for buckets that lie anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// Nanoseconds since the interval began. Never falls from one request to the next.
    pub(super) at_ns: u64,
    /// At least one.
    pub(super) buckets: u32,
}

impl Workload {
    /// The paper's name.
    pub(super) fn title(self) -> &'static str {
        match self {
            Workload::Exchange => "Exchange",
            Workload::TpcC => "TPC-C",
            Workload::TpcE => "TPC-E",
        }
    }

    /// The name of its description, and of `--trace`.
    fn name(self) -> &'static str {
        match self {
            Workload::Exchange => "exchange",
            Workload::TpcC => "tpc-c",
            Workload::TpcE => "tpc-e",
        }
    }

    /// Its intervals in their order. Of a recorded trace, each file is one.
    ///
    /// # Errors
    /// If a recorded file is no longer there. What is in it is looked at when the interval is run.
    pub(super) fn intervals(self, parameters: &Parameters, scale: Scale) -> Result<Vec<Interval>, LabError> {
        let is_whole = parameters.flag("whole_intervals") && scale == Scale::Full;
        let requests = scale.of(parameters.count("slice_requests"));
        let slice = (!is_whole).then_some(Slice { requests, lasting_ns: 0 });
        let files = parameters.recorded(self.name());
        let sources = if files.is_empty() {
            self.described(parameters)
        } else {
            files.iter().map(|file| Recorded::new(file).map(Source::Recorded)).collect::<Result<_, _>>()?
        };
        Ok((1..).zip(sources).map(|(number, source)| Interval { number, source, slice }).collect())
    }

    fn described(self, parameters: &Parameters) -> Vec<Source> {
        let name = self.name();
        let mut whole = Description::find(name).unwrap_or_else(|| panic!("no description is named {name}"));
        if parameters.text("trace_arrivals") == "poisson" {
            whole.arrivals = Arrivals::Poisson;
        }
        whole.parts().into_iter().map(|part| Source::Described(Box::new(whole.part(part)))).collect()
    }
}

impl Interval {
    /// The same with a slice of at least so many seconds.
    #[must_use]
    pub(super) fn lasting(mut self, seconds: f64) -> Interval {
        if let Some(slice) = &mut self.slice {
            slice.lasting_ns = (seconds * 1e9) as u64;
        }
        self
    }

    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.source, Source::Recorded(_))
    }

    /// All that decides which requests come, apart from the seed.
    pub(super) fn describe(&self) -> String {
        match &self.source {
            Source::Described(whole) => format!("{} {whole:?} {:?}", self.number, self.slice),
            Source::Recorded(Recorded { path, stamp }) => {
                format!("{} {stamp} {:?}", path.display(), self.slice)
            }
        }
    }

    /// How much the whole interval is. A recorded one is read to its end; it lasts from its first read to its last.
    ///
    /// # Errors
    /// What is wrong with a recorded file, with its name and the line.
    pub(super) fn extent(&self) -> Result<Extent, String> {
        match &self.source {
            Source::Described(whole) => Ok(Extent { requests: whole.requests, duration_s: whole.duration_s }),
            Source::Recorded(recorded) => recorded.extent(),
        }
    }

    /// The requests of the slice, or of all of the interval. A seed gives different intervals of a trace different randomness. Recorded
    /// requests are the same for all seeds.
    ///
    /// # Errors
    /// If a recorded file cannot be opened, or is no trace. What is wrong further down stands in place of the request.
    pub(super) fn requests(&self, seed: u64) -> Result<Requests, String> {
        let reads: Reads = match &self.source {
            Source::Described(whole) => {
                let seed = Rng::with_seed(seed.wrapping_add(u64::from(self.number) << 32)).u64(..);
                Box::new(whole.source(seed).map(Ok))
            }
            Source::Recorded(recorded) => recorded.reads()?,
        };
        Ok(Requests { reads, slice: self.slice, given: 0 })
    }
}

type Reads = Box<dyn Iterator<Item = Result<Record, String>>>;

/// The requests of an interval, one by one. After an error, or the end of the slice, there are no more.
pub(super) struct Requests {
    reads: Reads,
    slice: Option<Slice>,
    given: u64,
}

impl Iterator for Requests {
    type Item = Result<Request, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match self.reads.next()? {
            Ok(read) => read,
            Err(why) => return Some(Err(why)),
        };
        let is_over = |slice: &Slice| self.given >= slice.requests && read.at_ns >= slice.lasting_ns;
        if self.slice.as_ref().is_some_and(is_over) {
            self.reads = Box::new(std::iter::empty());
            return None;
        }
        self.given += 1;
        // A reader refuses what is larger than 1 GiB, a description too.
        let buckets = read.bytes().div_ceil(BUCKET_BYTES) as u32;
        Some(Ok(Request { at_ns: read.at_ns, buckets }))
    }
}

impl Recorded {
    fn new(path: &Path) -> Result<Recorded, LabError> {
        let about = std::fs::metadata(path).map_err(LabError::reading(path))?;
        Ok(Recorded { path: path.to_owned(), stamp: format!("{} {:?}", about.len(), about.modified().ok()) })
    }

    /// The file's reads; times count from its first request.
    fn reads(&self) -> Result<Reads, String> {
        let name = self.path.display().to_string();
        let file =
            File::open(&self.path).map_err(|error| format!("cannot read the trace {name}: {error}"))?;
        let options = Options { origin: Origin::First, ..Options::default() };
        let reader = Reader::open(&name, Box::new(file), options).map_err(|error| error.to_string())?;
        if !reader.has_times() {
            let format = reader.format().name();
            return Err(format!(
                "{name}: requests have no times in the format {format}, and times are needed here"
            ));
        }
        let reads = reader.filter(|record| !record.as_ref().is_ok_and(|record| record.is_write));
        Ok(Box::new(reads.map(|record| record.map_err(|error| error.to_string()))))
    }

    fn extent(&self) -> Result<Extent, String> {
        let (mut requests, mut first_ns, mut last_ns) = (0, None, 0);
        for read in self.reads()? {
            requests += 1;
            last_ns = read?.at_ns;
            first_ns = first_ns.or(Some(last_ns));
        }
        let duration_ns = last_ns - first_ns.unwrap_or(0);
        if duration_ns == 0 {
            return Err(format!(
                "{}: an interval needs reads at two times, and of {requests} in this file none comes later than the first",
                self.path.display()
            ));
        }
        Ok(Extent { requests, duration_s: duration_ns as f64 / 1e9 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::parameters;
    use proptest::prelude::*;

    const PAPER: &str = "continuous-retrieval";
    const ALL: [Workload; 3] = [Workload::Exchange, Workload::TpcC, Workload::TpcE];

    fn taken(interval: &Interval, seed: u64) -> Vec<Request> {
        interval.requests(seed).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn every_interval_is_as_long_and_busy_as_the_paper_says() {
        for (workload, count, requests, minutes) in [
            (Workload::Exchange, 96, 40_000_000, 1440.0),
            (Workload::TpcC, 6, 210_000_000, 36.0),
            (Workload::TpcE, 6, 101_000_000, 84.0),
        ] {
            let intervals = workload.intervals(&parameters(PAPER), Scale::Full).unwrap();
            let extents: Vec<Extent> = intervals.iter().map(|interval| interval.extent().unwrap()).collect();
            assert_eq!(intervals.len(), count);
            assert!(intervals.iter().map(|interval| interval.number).eq(1..=count as u32));
            assert_eq!(extents.iter().map(|extent| extent.requests).sum::<u64>(), requests);
            assert_eq!(extents.iter().map(|extent| extent.duration_s).sum::<f64>(), minutes * 60.0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// A slice is how its interval begins, at the interval's rate, and no longer than it has to be.
        #[test]
        fn a_slice_is_a_beginning_of_its_interval(
            workload in prop::sample::select(ALL.to_vec()),
            at in 0_usize..96,
            seed: u64,
            requests in 2_u32..400,
            longer in 1_u32..400,
        ) {
            let of = |requests: u32| {
                let mut changed = parameters(PAPER);
                changed.set(&format!("slice_requests={requests}")).unwrap();
                let intervals = workload.intervals(&changed, Scale::Full).unwrap();
                intervals[at % intervals.len()].clone()
            };
            let short = taken(&of(requests), seed);
            let long = taken(&of(requests + longer), seed);
            prop_assert_eq!(short.len(), requests as usize);
            prop_assert_eq!(&long[..short.len()], &short[..]);
            prop_assert!(long.is_sorted_by_key(|request| request.at_ns));
            prop_assert!(long.iter().all(|request| (1..=256).contains(&request.buckets)));
            // A time that ends within the longer slice, and what comes before it.
            let seconds = long[long.len() / 2].at_ns as f64 / 1e9;
            let lasting = taken(&of(2).lasting(seconds), seed);
            let before = long.partition_point(|request| request.at_ns < (seconds * 1e9) as u64);
            prop_assert_eq!(lasting.len(), before.max(2));
            prop_assert_eq!(&long[..lasting.len()], &lasting[..]);
        }
    }

    #[test]
    fn a_slice_comes_at_the_rate_of_its_interval() {
        for workload in ALL {
            for interval in workload.intervals(&parameters(PAPER), Scale::Full).unwrap() {
                let Extent { requests, duration_s } = interval.extent().unwrap();
                let slice = taken(&interval, 1);
                let wanted = 20_000.min(requests);
                assert_eq!(slice.len() as u64, wanted);
                let ratio = slice[slice.len() - 1].at_ns as f64
                    / 1e9
                    / (duration_s * wanted as f64 / requests as f64);
                // The standard deviation of 15,000 gaps' mean, with a variation of 3.2, is 2.6%.
                assert!((0.87..1.13).contains(&ratio), "{workload:?} {}: {ratio}", interval.number);
            }
        }
    }

    #[test]
    fn intervals_and_seeds_differ_and_a_seed_repeats() {
        let intervals = Workload::TpcC.intervals(&parameters(PAPER), Scale::Quick).unwrap();
        let first = taken(&intervals[0], 1);
        assert_eq!(first, taken(&intervals[0], 1));
        assert_ne!(first, taken(&intervals[0], 2));
        assert_ne!(first, taken(&intervals[1], 1));
    }

    #[test]
    fn whole_intervals_are_run_at_full_length_only() {
        let mut whole = parameters(PAPER);
        whole.set("whole_intervals=true").unwrap();
        let count = |scale: Scale| {
            let intervals = Workload::Exchange.intervals(&whole, scale).unwrap();
            intervals[46].requests(1).unwrap().count()
        };
        let intervals = Workload::Exchange.intervals(&whole, Scale::Full).unwrap();
        assert_eq!(
            (count(Scale::Full) as u64, count(Scale::Quick)),
            (intervals[46].extent().unwrap().requests, 2_000)
        );
    }

    #[test]
    fn assuming_poisson_makes_exchange_as_even_as_that() {
        let variation = |parameters: &Parameters| {
            let requests = taken(&Workload::Exchange.intervals(parameters, Scale::Full).unwrap()[0], 1);
            let gaps = requests.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64);
            let (sum, squares) =
                gaps.fold((0.0, 0.0), |(sum, squares), gap| (sum + gap, squares + gap * gap));
            let mean = sum / (requests.len() - 1) as f64;
            libm::sqrt(squares / (requests.len() - 1) as f64 / mean / mean - 1.0)
        };
        let mut poisson = parameters(PAPER);
        poisson.set("trace_arrivals=poisson").unwrap();
        assert!((variation(&parameters(PAPER)) - 3.2).abs() < 0.3);
        assert!((variation(&poisson) - 1.0).abs() < 0.05);
    }

    /// Rows are logged when a request is complete: the second one was issued first.
    const ETW: &str = "BeginHeader\n DiskRead, TimeStamp, ...\nEndHeader\n\
        DiskRead, 1000, p ( 1), 2, 0x1, 0x2000, 0x2000, 100, 3, 0x0, 90, 2, 0, 0x0, \"a,b\"\n\
        DiskRead, 2500, p ( 1), 2, 0x2, 0x4000, 0x1200, 1700, 3, 0x0, 90, 2, 0, 0x0, \"c\"\n\
        DiskWrite, 2600, p ( 1), 2, 0x3, 0x4000, 0x8000, 100, 3, 0x0, 90, 2, 0, 0x0, \"c\"\n\
        FileIoRead, 2700, p\n\
        DiskRead, 3000, p ( 1), 2, 0x4, 0x0, 0x200, 200, 4, 0x0, 90, 2, 0, 0x0, \"c\"\n";

    fn recorded(texts: &[&str]) -> (tempfile::TempDir, Parameters) {
        let folder = tempfile::tempdir().unwrap();
        for (at, text) in texts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{at}.csv")), text).unwrap();
        }
        let mut parameters = parameters(PAPER);
        parameters.take_trace(&format!("exchange={}", folder.path().display())).unwrap();
        (folder, parameters)
    }

    #[test]
    fn recorded_files_are_intervals_of_reads_in_the_order_of_their_issue() {
        let (_folder, parameters) = recorded(&[ETW, ETW]);
        let intervals = Workload::Exchange.intervals(&parameters, Scale::Full).unwrap();
        assert_eq!(intervals.len(), 2);
        assert!(intervals[1].is_recorded());
        // Issued at 800, 900 and 2800 us; 0x1200 bytes are two buckets, 0x200 bytes are one.
        let expected = [(0, 2), (100_000, 2), (2_000_000, 1)];
        let expected = expected.map(|(at_ns, buckets)| Request { at_ns, buckets });
        assert_eq!(taken(&intervals[1], 9), expected);
        assert_eq!(intervals[1].extent(), Ok(Extent { requests: 3, duration_s: 0.002 }));
        // Other traces are generated as before.
        assert!(!Workload::TpcC.intervals(&parameters, Scale::Full).unwrap()[0].is_recorded());
    }

    #[test]
    fn a_slice_of_a_recorded_interval_is_its_beginning_and_its_extent_is_whole() {
        let (_folder, mut parameters) = recorded(&[ETW]);
        parameters.set("slice_requests=2").unwrap();
        let intervals = Workload::Exchange.intervals(&parameters, Scale::Full).unwrap();
        assert_eq!(taken(&intervals[0], 1).len(), 2);
        assert_eq!(intervals[0].extent().unwrap().requests, 3);
    }

    #[test]
    fn what_is_wrong_with_a_recorded_file_is_named_with_its_line() {
        let torn = ETW.replace("0x4000, 0x1200", "0x4000, much");
        let lone = &ETW[..ETW.find("DiskRead, 2500").unwrap()];
        for (text, why) in [
            (torn.as_str(), "0.csv, line 5"),
            ("pages\nof a book\n", "0.csv"),
            (lone, "0.csv: an interval needs reads at two times"),
            ("1 2 3 4\n2 3 4 5\n", "0.csv"),
        ] {
            let (_folder, parameters) = recorded(&[text]);
            let interval = &Workload::Exchange.intervals(&parameters, Scale::Full).unwrap()[0];
            let error = interval.extent().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let (folder, parameters) = recorded(&[ETW]);
        std::fs::remove_file(folder.path().join("0.csv")).unwrap();
        let error = Workload::Exchange.intervals(&parameters, Scale::Full).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("0.csv"), "{error}");
    }
}
