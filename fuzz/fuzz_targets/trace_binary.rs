//! Binary and compressed traces: whatever the bytes, requests or an error that names the file, in bounded memory; statistics of them never
//! panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use trace::{Format, Options, Order, Reader, Sizes, Statistics};

/// What a decompressor may make of a few bytes would take long to look at.
const REQUESTS_MAX: usize = 4_096;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, data)) = bytes.split_first() else { return };
    let names = ["srt", "vscsi1", "vscsi2", "oracle-general", "keys"];
    // The last choices are detection, of compressed text too.
    let format = names.get(usize::from(choice & 7)).map(|name| Format::find(name).expect("the format is known"));
    let options = Options {
        format,
        order: (choice & 8 == 0).then_some(Order::Clamp),
        sizes: if choice & 16 == 0 { Sizes::Refuse } else { Sizes::Skip },
        is_cut_allowed: choice & 32 != 0,
        count_max: 1 << 12,
        ..Options::default()
    };
    let Ok(reader) = Reader::open("fuzz", Box::new(Cursor::new(data.to_vec())), options) else { return };
    let mut statistics = Statistics::default();
    for record in reader.take(REQUESTS_MAX) {
        match record {
            Ok(record) => statistics.add(&record),
            Err(error) => assert!(error.to_string().starts_with("fuzz")),
        }
    }
    let summary = statistics.summary();
    assert!((0.0..=1.0).contains(&summary.reuse.cold_share));
});
