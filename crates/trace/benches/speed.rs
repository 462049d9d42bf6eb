//! How many requests a second are read, looked at, written and generated, on one core: `cargo bench -p brickwork-trace`.
//! Reading is set beside counting the newlines of the same bytes, which nothing that reads lines can beat.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::io::{Cursor, Read};
use std::time::Instant;
use trace::compress::Compression;
use trace::{Description, Format, Options, Reader, Record, Statistics, Target, Writer};

const REQUESTS: u64 = 1_000_000;

fn main() {
    let records: Vec<Record> = timed("generate sap", || {
        Description::find("sap").unwrap().with_requests(REQUESTS).source(1).collect()
    });
    timed("statistics", || {
        let mut statistics = Statistics::default();
        records.iter().for_each(|record| statistics.add(record));
        black_box(statistics.summary());
    });
    for target in Target::ALL {
        let text = timed(&format!("write {target}"), || write(&records, target, Compression::None));
        let lines = timed("  newlines alone", || memchr::memchr_iter(b'\n', &text).count());
        assert!(lines as u64 >= REQUESTS);
        read(target.name(), text);
    }
    for (name, line) in FORMATS {
        let text: Vec<u8> = (0..REQUESTS).flat_map(|number| line(number).into_bytes()).collect();
        read(name, text);
    }
    for compression in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
        let packed =
            timed(&format!("write {compression:?}"), || write(&records, Target::Brickwork, compression));
        timed(&format!("  unpack {compression:?} ({} bytes)", packed.len()), || {
            let mut plain = trace::compress::plain(Box::new(Cursor::new(packed.clone()))).unwrap();
            let mut buffer = vec![0; 1 << 18];
            while plain.read(&mut buffer).unwrap() > 0 {}
        });
    }
}

type Line = fn(u64) -> String;

const FORMATS: &[(&str, Line)] = &[
    ("msr", |n| {
        format!(
            "{},hm,1,Read,{},4096,{}\n",
            128_166_372_003_061_629 + n * 971,
            n * 7_919 % 1_000_000 * 512,
            1_000 + n % 997
        )
    }),
    ("disksim-ns", |n| format!("{} {} {} 16 1\n", n * 40_000, n % 16, n * 7_919 % 1_000_000)),
    ("systor", |n| {
        let (at, place) = (n * 53, n * 7_919 % 1_000_000 * 512);
        format!(
            "{}.{:06},0.000{},R,{},{place},8192\n",
            1_455_000_000 + at / 1_000_000,
            at % 1_000_000,
            n % 97,
            n % 6
        )
    }),
    ("etw", |n| {
        let place = n * 7_919 % 1_000_000 * 512;
        format!(
            "                DiskRead,   {:>10},      sqlservr.exe (2432),       2680, 0xfffffadf9d0d5010, 0x{place:010x}, 0x00002000,        \
             {:>4},  {},  0x060043,        512,   Normal, Original, 0xfffffadf9c86aa10, \"Unknown\"\n",
            5_000 + n * 20,
            400 + n % 100,
            n % 8
        )
    }),
    ("blkparse", |n| {
        let (at, action, place) =
            (n / 2 * 30 + n % 2 * 20, if n % 2 == 0 { 'D' } else { 'C' }, n / 2 * 7_919 % 1_000_000);
        format!(
            "  8,0    1 {n:>8} {:>5}.{:09}   697  {action}   R {place} + 8 [fio]\n",
            at / 1_000_000,
            at % 1_000_000 * 1_000
        )
    }),
    ("arc", |n| format!("{} 8 0 {n}\n", n * 7_919 % 1_000_000)),
];

fn write(records: &[Record], target: Target, compression: Compression) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), target, compression).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap()
}

fn read(name: &str, text: Vec<u8>) {
    let mut reader = Reader::open(name, Box::new(Cursor::new(text)), Options::default()).unwrap();
    assert_eq!(Some(reader.format()), Format::find(name));
    timed(&format!("read {name}"), || {
        for record in &mut reader {
            black_box(record.unwrap());
        }
    });
}

/// Runs it, and prints how many millions of requests a second that is.
fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    println!("{what:<36} {:>8.2} M/s", REQUESTS as f64 / 1e6 / start.elapsed().as_secs_f64());
    result
}
