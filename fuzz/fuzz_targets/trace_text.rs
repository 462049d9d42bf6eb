//! Text traces: whatever the lines hold, requests that keep what the options promise or an error that names the file; what is read
//! can be written, and reads back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::num::NonZeroU64;
use trace::compress::Compression;
use trace::{Bounds, Format, Options, Order, Origin, Reader, Record, Sizes, Target, Writer};

const VOLUME: u64 = 1 << 40;

fuzz_target!(|bytes: &[u8]| {
    let [choice, kinds, text @ ..] = bytes else { return };
    let (choice, kinds) = (*choice, *kinds);
    let names = ["brickwork", "spc", "msr", "etw", "systor", "cloudphysics", "validation", "blkparse", "disksim", "disksim-ns", "arc"];
    // The last choice is detection.
    let format = names.get(usize::from(choice & 15)).map(|name| Format::find(name).expect("the format is known"));
    let order = [None, Some(Order::Refuse), Some(Order::Clamp), Some(Order::Sort { window: 3 })][usize::from(choice >> 4 & 3)];
    let options = Options {
        format,
        order,
        is_negative_allowed: kinds & 1 != 0,
        bounds: if choice & 64 == 0 { Bounds::None } else { Bounds::Wrap(NonZeroU64::new(VOLUME).expect("not zero")) },
        sizes: if choice & 128 == 0 { Sizes::Refuse } else { Sizes::Skip },
        ..Options::default()
    };
    let Ok(mut reader) = Reader::open("fuzz", Box::new(Cursor::new(text.to_vec())), options) else { return };
    let mut records = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => {
                assert!(records.last().is_none_or(|before: &Record| before.at_ns <= record.at_ns));
                assert!(record.count > 0 && (choice & 64 == 0 || record.end() <= VOLUME));
                records.push(record);
            }
            Err(error) => assert!(error.to_string().starts_with("fuzz")),
        }
    }
    drop(reader.warnings());
    again(&records);
});

fn again(records: &[Record]) {
    let mut writer = Writer::new(Vec::new(), Target::Brickwork, Compression::None).expect("memory");
    records.iter().for_each(|record| writer.write(record).expect("memory"));
    let written = writer.finish().expect("memory");
    let options = Options { origin: Origin::Keep, ..Options::default() };
    let reader = Reader::open("again", Box::new(Cursor::new(written)), options).expect("our own format");
    assert!(reader.map(|record| record.expect("our own format")).eq(records.iter().copied()));
}
