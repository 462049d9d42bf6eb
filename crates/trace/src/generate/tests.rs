//! What is described is what comes out.

use super::description::{LIBRARY, Step};
use super::*;
use crate::info::{Statistics, Summary};
use proptest::prelude::*;

const EXAMPLE: &str = r#"
name = "example"
title = "An example"
requests = 60000
duration_s = 600
read_share = 0.7
[sizes]
kind = "fixed"
bytes = 4096
[arrivals]
kind = "poisson"
[locality]
fresh_share = 0.3
run_requests = 4
reuse = [{ within_bytes = 1048576, share = 0.5 }, { within_bytes = 33554432, share = 1 }]
[luns]
count = 8
footprint_bytes = 1073741824
"#;

fn example() -> Description {
    Description::parse("example", EXAMPLE).unwrap()
}

fn summary(description: &Description, seed: u64) -> Summary {
    let mut statistics = Statistics::default();
    description.source(seed).for_each(|record| statistics.add(&record));
    statistics.summary()
}

#[track_caller]
fn near(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{found} is not within {within} of {wanted}");
}

#[test]
fn the_trace_is_as_described() {
    let summary = summary(&example(), 1);
    assert_eq!((summary.amount.requests, summary.devices), (60_000, 8));
    near(summary.span_s, 600.0, 10.0);
    near(summary.amount.read_share, 0.7, 0.01);
    near(summary.arrivals.gap_cv.unwrap(), 1.0, 0.03);
    // A block a request, so request and block distances agree.
    near(summary.reuse.cold_share, 0.3, 0.01);
    let hits = |bytes| summary.reuse.hits(bytes);
    near(hits(1 << 20), 0.7 * 0.5, 0.015);
    near(hits(32 << 20), 0.7, 0.01);
    // Runs of four: three of four fresh requests go on, reused ones hardly ever.
    near(summary.sequential_share, 0.3 * 0.75, 0.03);
}

/// The share of requests of which every block of 4 KiB was touched before: the hits of a cache without end.
fn hit_share(description: &Description) -> f64 {
    let (mut touched, mut hits) = (base::HashSet::default(), 0_u64);
    for record in description.source(1) {
        let mut is_hit = true;
        for block in record.sector / 8..record.end().div_ceil(8) {
            is_hit &= !touched.insert((record.device, block));
        }
        hits += u64::from(is_hit);
    }
    hits as f64 / description.requests as f64
}

#[test]
fn a_seed_is_the_trace() {
    let all = |seed| example().with_requests(5_000).source(seed).collect::<Vec<_>>();
    assert_eq!(all(7), all(7));
    assert_ne!(all(7), all(8));
}

#[test]
fn arrivals_keep_their_order_rate_and_burstiness() {
    let kinds = [
        ("kind = \"even\"", 0.0, 0.001),
        ("kind = \"poisson\"", 1.0, 0.03),
        ("kind = \"hyperexponential\"\ncv = 3", 3.0, 0.3),
        // An interrupted Poisson process: 1 + 2 * 400/s * 2/s / (2/s + 0.667/s)^2 = 15.03^2.
        ("kind = \"on-off\"\non_s = 0.5\noff_s = 1.5", 15.03, 1.5),
    ];
    for (kind, cv, within) in kinds {
        let text = EXAMPLE.replace("kind = \"poisson\"", kind);
        let description = Description::parse("example", &text).unwrap();
        let summary = summary(&description, 3);
        near(summary.span_s, 600.0, 60.0);
        near(summary.arrivals.gap_cv.unwrap(), cv, within);
    }
}

#[test]
fn the_b_model_is_as_long_as_described_and_burstier_with_more_bias() {
    let peak = |bias: &str| {
        let text =
            EXAMPLE.replace("kind = \"poisson\"", &format!("kind = \"b-model\"\nbias = {bias}\nslice_s = 1"));
        let summary = summary(&Description::parse("example", &text).unwrap(), 3);
        near(summary.span_s, 600.0, 5.0);
        assert_eq!(summary.amount.requests, 60_000);
        summary.arrivals.rate_peak_per_s
    };
    let peaks = [peak("0.5"), peak("0.6"), peak("0.7")];
    assert!(peaks[0] < 200 && peaks[0] * 2 < peaks[1] && peaks[1] * 2 < peaks[2], "{peaks:?}");
}

#[test]
fn the_traces_of_table_2_have_its_figures() {
    // Requests, hours, read share, mean KB; hits of Table 3.
    let table = [
        ("sap", 4_512_361, 15.0, 0.62, 10.0, 0.74),
        ("cello2002", 5_248_101, 24.0, 0.68, 11.5, 0.76),
        ("websearch", 4_579_809, 4.0, 0.90, 8.2, 0.68),
        ("financial", 5_334_987, 12.0, 0.85, 9.0, 0.71),
    ];
    for (name, requests, hours, read_share, mean_kib, hits) in table {
        let description = Description::find(name).unwrap();
        assert_eq!(description.requests, requests);
        assert_eq!((description.duration_s, description.read_share), (hours * 3600.0, read_share));
        near(description.sizes.mean_bytes(), mean_kib * 1024.0, 0.01);
        assert!(description.assumptions.len() >= 5);
        assert!(description.intervals.is_empty());
        let summary = summary(&description.with_requests(60_000), 1);
        near(summary.amount.read_share, read_share, 0.01);
        near(summary.sizes.mean_bytes, mean_kib * 1024.0, 200.0);
        near(summary.span_s, description.duration_s * 60_000.0 / requests as f64, 30.0);
        near(hit_share(&description.with_requests(60_000)), hits, 0.008);
    }
}

#[test]
fn the_traces_of_continuous_retrieval_have_its_counts() {
    // Reads, minutes and intervals of section IV.A.
    let table = [
        ("exchange", 40_000_000, 1440.0, 96),
        ("tpc-c", 210_000_000, 36.0, 6),
        ("tpc-e", 101_000_000, 84.0, 6),
    ];
    for (name, reads, minutes, intervals) in table {
        let description = Description::find(name).unwrap();
        assert_eq!((description.requests, description.read_share), (reads, 1.0));
        assert_eq!((description.duration_s, description.intervals.len()), (minutes * 60.0, intervals));
        assert!(description.assumptions.len() >= 4);
    }
    let exchange = Description::find("exchange").unwrap().intervals;
    let counts: Vec<u64> = exchange.iter().map(|interval| interval.requests).collect();
    assert!(exchange.iter().all(|interval| interval.duration_s == 900.0));
    let [most, least] = [counts[51], counts[47]];
    assert_eq!((most, least), (7_000_000, 15_000));
    assert!(
        counts
            .iter()
            .enumerate()
            .all(|(at, count)| at == 51 || at == 47 || (least < *count && *count < most))
    );
    // The cosine that the description assumes, but for interval 52.
    for (number, count) in (1_i32..).zip(&counts).filter(|(number, _)| *number != 52) {
        let angle = std::f64::consts::TAU * f64::from(number - 48) / 96.0;
        near(*count as f64, 15_000.0 + 658_046.0 * (1.0 - libm::cos(angle)) / 2.0, 3.5);
    }
    let buckets = Description::find("exchange").unwrap().sizes.mean_bytes() / 4096.0;
    near(buckets, 8.0, 0.1);
}

#[test]
fn every_description_that_is_built_in_can_be_generated_whole() {
    for (name, _) in LIBRARY {
        assert_eq!(Description::find(name).unwrap().check(), Ok(()), "{name}");
    }
}

/// Three rates, the second of which is none.
const INTERVALS: &str = "read_share = 0.7
intervals = [
  { duration_s = 100, requests = 40000 },
  { duration_s = 200, requests = 0 },
  { duration_s = 300, requests = 20000 },
]";

#[test]
fn an_interval_has_a_rate_of_its_own_whatever_the_arrivals() {
    for kind in [
        "kind = \"even\"",
        "kind = \"poisson\"",
        "kind = \"hyperexponential\"\ncv = 3",
        "kind = \"on-off\"\non_s = 0.1\noff_s = 0.1",
        "kind = \"b-model\"\nbias = 0.6\nslice_s = 1",
    ] {
        let text = EXAMPLE.replace("read_share = 0.7", INTERVALS).replace("kind = \"poisson\"", kind);
        let description = Description::parse("example", &text).unwrap();
        let mut counts = [0_u32; 3];
        let mut before_ns = 0;
        for record in description.source(5) {
            assert!(record.at_ns >= before_ns);
            before_ns = record.at_ns;
            counts[[100, 300].iter().filter(|end| record.at_ns >= **end * 1_000_000_000).count()] += 1;
        }
        // Random gaps end an interval a little early or late.
        near(f64::from(counts[0]), 40_000.0, 2_000.0);
        near(f64::from(counts[1]), 0.0, 2_000.0);
        near(f64::from(counts[2]), 20_000.0, 2_000.0);
    }
}

#[test]
fn a_description_with_intervals_is_shortened_and_stretched_interval_by_interval() {
    let text = EXAMPLE.replace("read_share = 0.7", INTERVALS);
    let whole = Description::parse("example", &text).unwrap();
    for requests in [1, 7, 6_000, 60_000, 90_001] {
        let other = whole.with_requests(requests).stretched(3.0);
        assert_eq!(other.check(), Ok(()));
        assert_eq!(other.source(1).count() as u64, requests);
        for (interval, other) in whole.parts().iter().zip(other.parts()) {
            let expected = interval.requests as f64 * requests as f64 / 60_000.0;
            near(other.requests as f64, expected, 1.0);
            near(other.duration_s, interval.duration_s * 3.0 * requests as f64 / 60_000.0, 1e-6);
        }
    }
    let second = whole.part(whole.parts()[2]);
    assert_eq!((second.requests, second.duration_s, second.parts().len()), (20_000, 300.0, 1));
}

#[test]
fn nonsense_is_refused_by_name() {
    let cases = [
        ("requests = 60000", "requests = 0", "requests is 0"),
        ("read_share = 0.7", "read_share = 1.5", "read_share is 1.5"),
        ("read_share = 0.7", "read_share = nan", "read_share is NaN"),
        ("duration_s = 600", "duration_s = -1", "duration_s is -1"),
        ("bytes = 4096", "bytes = 1000", "sizes.bytes is 1000"),
        ("kind = \"poisson\"", "kind = \"gamma\"", "gamma"),
        ("kind = \"poisson\"", "kind = \"hyperexponential\"\ncv = 0.5", "arrivals.cv is 0.5"),
        ("share = 1 }", "share = 0.9 }", "ends at a share of 0.9"),
        ("share = 0.5 }", "share = 2 }", "locality.reuse[0]"),
        ("run_requests = 4", "run_requests = 0", "locality.run_requests is 0"),
        ("footprint_bytes = 1073741824", "footprint_bytes = 1048576", "luns.footprint_bytes is 1048576"),
        ("count = 8", "count = 8\ncolour = 1", "colour"),
        ("title = \"An example\"", "", "title"),
        (
            "read_share = 0.7",
            "read_share = 0.7\nintervals = [{ duration_s = 600, requests = 1 }]",
            "the intervals have 1",
        ),
        (
            "read_share = 0.7",
            "read_share = 0.7\nintervals = [{ duration_s = 1, requests = 60000 }]",
            "the intervals last 1",
        ),
        (
            "read_share = 0.7",
            "read_share = 0.7\nintervals = [{ duration_s = -1, requests = 60000 }]",
            "intervals[0].duration_s is -1",
        ),
    ];
    for (good, bad, says) in cases {
        let text = EXAMPLE.replace(good, bad);
        assert_ne!(text, EXAMPLE, "{good}");
        let error = Description::parse("example.toml", &text).expect_err(bad).to_string();
        assert!(error.contains("example.toml") && error.contains(says), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is described: as many requests, in order, inside the footprint, and fresh ones never overlap.
    #[test]
    fn every_trace_keeps_its_bounds(
        seed: u64,
        fresh in 0.0_f64..=1.0,
        run in 1.0_f64..20.0,
        luns in 1_u32..20,
        skew in 0.0_f64..2.0,
        mean in 512.0_f64..30_000.0,
    ) {
        let mut description = example();
        description.requests = 2_000;
        description.locality.fresh_share = fresh;
        description.locality.run_requests = run;
        description.locality.reuse = vec![Step { within_bytes: 1 << 16, share: 0.4 }, Step { within_bytes: 1 << 22, share: 1.0 }];
        description.luns.count = luns;
        description.luns.skew = skew;
        description.luns.footprint_bytes = 8 << 30;
        description.sizes = Sizes::Exponential { mean_bytes: mean, max_bytes: 65_536 };
        prop_assert!(description.check().is_ok(), "{:?}", description.check());
        let per_lun = description.luns.footprint_bytes / u64::from(luns) / SECTOR_BYTES;
        let (mut before, mut touched) = (0, std::collections::BTreeMap::new());
        let records: Vec<_> = description.source(seed).collect();
        prop_assert_eq!(records.len(), 2_000);
        for record in records {
            prop_assert!(record.at_ns >= before && record.count > 0 && record.end() <= per_lun && record.device < luns);
            before = record.at_ns;
            // In blocks of their own.
            prop_assert_eq!(record.sector % 8, 0);
            touched.insert((record.device, record.sector / 8), record.end().div_ceil(8));
        }
        for (((device, _), end), ((next_device, next), _)) in touched.iter().zip(touched.iter().skip(1)) {
            prop_assert!(device != next_device || end <= next, "extents overlap at {next}");
        }
    }
}
