//! Public traces read whole, against what their README says of them. The data are not in the repository: set
//! `BRICKWORK_SHARED` to the folder that holds `data/traces`, or put it beside the workspace.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use trace::{Format, Options, Reader, Record, Warning};

/// A file, its format (detected unless told), requests, span in seconds, % reads, mean KiB, devices.
type Row = (&'static str, &'static str, u64, f64, f64, f64, usize);

const TABLE: &[Row] = &[
    ("mqsim-wsrch-small.trace", "disksim-ns", 24_783, 60.055, 100.0, 15.06, 6),
    ("mqsim-tpcc-small.trace", "disksim-ns", 6_999, 0.136, 62.6, 8.33, 16),
    ("ssdsim-example.ascii", "disksim-ns", 10_000, 259.6, 40.8, 5.40, 22),
    ("DTRS100M.trace.gz", "disksim-ns", 127_043, 29_999.95, 89.0, 55.3, 1),
    ("ascii.trace.gz", "disksim", 100_000, 1_532.9, 79.6, 5.08, 14),
    ("ssd-postmark-aligned2.trace.gz", "disksim", 62_257, 490.4, 83.2, 222.0, 1),
    ("ssd-iozone-aligned2-100K.trace.gz", "disksim", 100_000, 936.4, 0.0, 360.0, 1),
    ("ajw.1week.srt.gz", "srt", 44_519, 603_064.6, 29.3, 5.78, 2),
    ("atlas10k.trace", "validation", 10_000, 500.771, 65.69, 3.15, 1),
    ("cloudPhysicsIO.csv.gz", "cloudphysics", 113_872, 7_200.09, 41.3, 36.1, 1),
    ("cloudPhysicsIO.vscsi.gz", "vscsi1", 113_872, 7_200.09, 41.3, 36.1, 1),
    // No operations; and of a block requested with several sizes one only, so that the mean differs.
    ("cloudPhysicsIO.oracleGeneral.bin.gz", "oracle-general", 113_872, 7_200.09, 100.0, 37.46, 1),
    ("cloudphysics-w106.trace.xz", "keys", 5_292_456, 0.0, 100.0, 4.0, 1),
    ("arc-OLTP.lis.zst", "arc", 914_145, 0.0, 100.0, f64::NAN, 1),
    ("arc-P2.lis.zst", "arc", 666_176, 0.0, 100.0, f64::NAN, 1),
    ("arc-P3.lis.zst", "arc", 238_578, 0.0, 100.0, f64::NAN, 1),
    ("arc-P6.lis.zst", "arc", 519_711, 0.0, 100.0, f64::NAN, 1),
    ("arc-P12.lis.zst", "arc", 547_147, 0.0, 100.0, f64::NAN, 1),
];

/// Where the traces are; a word on standard error when they are not.
fn folder() -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("BRICKWORK_SHARED").map_or_else(beside, PathBuf::from);
    let folder = shared.join("data/traces");
    if !folder.is_dir() {
        eprintln!("skipped: no public traces in {}; see BRICKWORK_SHARED", folder.display());
        return None;
    }
    Some(folder)
}

fn open(name: &str, format: &str) -> Option<Reader> {
    let file = std::fs::read(folder()?.join(name)).expect(name);
    // Keys look like any binary file; they have to be named.
    let format = if format == "keys" { Format::find("keys") } else { None };
    Some(Reader::open(name, Box::new(Cursor::new(file)), Options { format, ..Options::default() }).unwrap())
}

#[derive(Default)]
struct Sum {
    requests: u64,
    reads: u64,
    bytes: u64,
    last_ns: u64,
    first_ns: Option<u64>,
    devices: BTreeSet<u32>,
    sectors: u64,
}

fn sum(reader: &mut Reader) -> Sum {
    let mut sum = Sum::default();
    for record in reader {
        let record: Record = record.unwrap();
        sum.requests += 1;
        sum.reads += u64::from(!record.is_write);
        sum.bytes += record.bytes();
        sum.last_ns = record.at_ns;
        sum.first_ns.get_or_insert(record.at_ns);
        sum.devices.insert(record.device);
        sum.sectors += u64::from(record.count);
    }
    sum
}

fn close(found: f64, said: f64, within: f64) -> bool {
    said.is_nan() || (found - said).abs() <= within
}

#[test]
fn every_file_of_the_table_is_read_as_the_table_says() {
    for &(name, format, requests, span_s, read_percent, mean_kib, devices) in TABLE {
        let Some(mut reader) = open(name, format) else { return };
        assert_eq!(reader.format().name(), format, "{name}");
        let sum = sum(&mut reader);
        let span = (sum.last_ns - sum.first_ns.unwrap()) as f64 / 1e9;
        let percent = 100.0 * sum.reads as f64 / sum.requests as f64;
        let mean = sum.bytes as f64 / sum.requests as f64 / 1024.0;
        let found = format!(
            "{name}: {} in {span} s, {percent} % reads, {mean} KiB, {} devices",
            sum.requests,
            sum.devices.len()
        );
        println!("{found} {:?}", reader.warnings());
        assert_eq!(sum.requests, requests, "{found}");
        assert_eq!(sum.devices.len(), devices, "{found}");
        // Whole seconds in two of the encodings of one trace.
        assert!(close(span, span_s, span_s * 0.001 + 0.1), "{found}");
        assert!(close(percent, read_percent, 0.05), "{found}");
        assert!(close(mean, mean_kib, 0.05 + mean_kib * 0.002), "{found}");
    }
}

#[test]
fn pages_of_the_arc_traces_are_those_of_its_table_iii() {
    for (name, pages) in [("arc-OLTP.lis.zst", 914_145), ("arc-P3.lis.zst", 3_912_296)] {
        let Some(mut reader) = open(name, "arc") else { return };
        assert_eq!(sum(&mut reader).sectors, pages, "{name}");
    }
}

#[test]
fn the_encodings_of_one_trace_agree() {
    let all = |name| open(name, "").map(|reader| reader.map(Result::unwrap).collect::<Vec<Record>>());
    let Some(csv) = all("cloudPhysicsIO.csv.gz") else { return };
    let vscsi = all("cloudPhysicsIO.vscsi.gz").unwrap();
    for (csv, vscsi) in csv.iter().zip(&vscsi) {
        assert_eq!((csv.sector, csv.count, csv.is_write), (vscsi.sector, vscsi.count, vscsi.is_write));
        assert!(csv.at_ns.abs_diff(vscsi.at_ns) < 2_000_000_000);
    }
}

#[test]
fn srt_agrees_with_the_table_made_from_it_elsewhere() {
    let Some(reader) = open("ajw.1week.srt.gz", "srt") else { return };
    let mut plain = String::new();
    let table = std::fs::read(folder().unwrap().join("hplajw-1week.csv.gz")).unwrap();
    trace::compress::plain(Box::new(Cursor::new(table))).unwrap().read_to_string(&mut plain).unwrap();
    let mut lines = 0;
    for (record, line) in reader.map(Result::unwrap).zip(plain.lines().skip(1)) {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        assert!((record.at_ns as f64 / 1e9 - fields[0]).abs() < 1e-5, "{line}");
        // Its sectors are those of the disk, of 256 bytes.
        assert_eq!((f64::from(record.device), record.sector as f64), (fields[1], fields[2] / 2.0), "{line}");
        assert_eq!((record.bytes() as f64, !record.is_write), (fields[3], fields[4] == 1.0), "{line}");
        assert_eq!(record.response_ns, Some(fields[6] as u64 * 1000), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 44_519);
}

#[test]
fn a_last_line_without_its_end_earns_a_warning() {
    let Some(mut reader) = open("mqsim-wsrch-small.trace", "disksim-ns") else { return };
    sum(&mut reader);
    assert_eq!(reader.warnings(), [Warning::NoNewline { line: 24_783 }]);
}
