//! What may be wrong with a trace: the file, the place and the field are named, and nothing panics.

use proptest::prelude::*;
use std::io::Cursor;
use std::num::NonZeroU64;
use trace::compress::{Compression, Sink};
use trace::{
    Bounds, Fault, Format, Options, Order, Origin, Place, Reader, Record, Sizes, Target, TraceError, Warning,
    Writer,
};

fn reader(text: &[u8], options: Options) -> Result<Reader, TraceError> {
    Reader::open("t.spc", Box::new(Cursor::new(text.to_vec())), options)
}

fn all(text: &[u8], options: Options) -> Result<(Vec<Record>, Vec<Warning>), TraceError> {
    let mut reader = reader(text, options)?;
    let records: Result<Vec<Record>, TraceError> = reader.by_ref().collect();
    Ok((records?, reader.warnings()))
}

fn format(name: &str) -> Options {
    Options { format: Some(Format::find(name).expect(name)), ..Options::default() }
}

/// The error of reading this; it names the file and all of `says`.
#[track_caller]
fn refused(text: &[u8], options: Options, says: &[&str]) -> TraceError {
    let error = all(text, options).expect_err("this is refused");
    let shown = error.to_string();
    assert!(shown.starts_with("t.spc"), "{shown}");
    for word in says {
        assert!(shown.contains(word), "`{shown}` does not say `{word}`");
    }
    error
}

const GOOD: &str = "0,100,4096,r,0.5\n1,200,512,W,0.75,more\n";

#[test]
fn a_good_one_is_read() {
    let (records, warnings) = all(GOOD.as_bytes(), Options::default()).unwrap();
    let first =
        Record { at_ns: 500_000_000, device: 0, sector: 100, count: 8, is_write: false, response_ns: None };
    let second =
        Record { at_ns: 750_000_000, device: 1, sector: 200, count: 1, is_write: true, response_ns: None };
    assert_eq!((records, warnings), (vec![first, second], vec![]));
}

#[test]
fn a_beginning_that_no_format_has_says_what_is_missing() {
    let usual = Options::default;
    assert!(matches!(refused(b"", usual(), &["empty"]).fault(), Fault::Empty));
    refused(b"\n# nothing\n\n", usual(), &["empty"]);
    refused(b"timestamp,op,lba\n0.1,r,100\n", usual(), &["names the columns", "count, sectors", "size"]);
    refused(b"time_ms,size,offset\n0.1,512,100\n", usual(), &["op, operation, type or rw"]);
    refused(b"one,two,three\n1,2,3\n", usual(), &["none of the formats", "--format"]);
}

#[test]
fn fields_that_make_no_sense_are_named_with_their_line() {
    let cases: &[(&[u8], &[&str])] = &[
        (b"0,x,4096,r,0.5\n", &["line 2", "`LBA`", "`x`"]),
        (b"0,-5,4096,r,0.5\n", &["`LBA`", "negative"]),
        (b"0,100,,r,0.5\n", &["`size`"]),
        (b"0,100,4096,q,0.5\n", &["`opcode`", "`q`"]),
        (b"0,100,4096,r,noon\n", &["`timestamp`", "`noon`"]),
        (b"0,100,4096,r,-0.5\n", &["`timestamp`", "negative", "--allow-negative"]),
        (b"0,100,4096,r,nan\n", &["`timestamp`", "finite"]),
        (b"0,100,4096,r,99999999999999\n", &["`timestamp`", "584 years", "--time-unit"]),
        (b"0,100,4096,r\n", &["`timestamp` is missing"]),
        (b"4294967296,100,4096,r,0.5\n", &["`ASU`", "4294967296"]),
        (b"0,99999999999999999999,4096,r,0.5\n", &["`LBA`"]),
        (b"0,18446744073709551615,4096,r,0.5\n", &["`LBA`", "beyond"]),
        (b"0,100,2147483648,r,0.5\n", &["`size`", "2147483648", "--max-request", "--bad-size skip"]),
        (b"0,100,0,r,0.5\n", &["`size`", "empty", "--bad-size skip"]),
        (b"0,1\xff\xfe0,4096,r,0.5\n", &["`LBA`", "\\xff\\xfe"]),
    ];
    for (bad, says) in cases {
        let text = [b"0,1,512,r,0.1\n", *bad, b"0,1,512,r,9.9\n"].concat();
        let error = refused(&text, format("spc"), says);
        assert_eq!(error.place(), Place::Line(2));
    }
}

#[test]
fn a_line_of_a_binary_file_is_not_read_for_ever() {
    refused(&vec![b'7'; 1 << 20], format("spc"), &["line 1", "longer than", "--format"]);
}

#[test]
fn a_cut_line_is_an_error_or_the_end() {
    let cut = &GOOD.as_bytes()[..GOOD.len() - 13];
    let error = refused(cut, Options::default(), &["line 2", "in the middle of this line", "--allow-cut"]);
    assert!(matches!(error.fault(), Fault::Cut { .. }));
    let (records, warnings) = all(cut, Options { is_cut_allowed: true, ..Options::default() }).unwrap();
    assert_eq!(records.len(), 1);
    assert!(matches!(warnings[..], [Warning::EndLeftOut { place: Place::Line(2), .. }]), "{warnings:?}");
    // Cut inside its last field, a line looks whole.
    let (records, warnings) = all(b"0,1,512,r,0.123\n0,2,512,r,0.4", format("spc")).unwrap();
    assert_eq!((records.len(), warnings), (2, vec![Warning::NoNewline { line: 2 }]));
}

/// Two requests of blkparse: issued, and completed in the other order.
const ISSUED: &str = "8,0 1 1 0.1 697 D W 500 + 8 [fio]\n8,0 1 2 0.2 697 D R 100 + 16 [fio]\n\
    8,0 0 3 0.3 0 C R 100 + 16 [0]\n8,0 0 4 0.4 0 C W 500 + 8 [0]\n";

#[test]
fn a_cut_line_that_is_no_request_so_far_is_cut_too() {
    let etw = "BeginHeader\nEndHeader\nDiskRead, 100, p, 1, 0x1, 0x200, 0x200, 7, 5, 0x0\n";
    let cases = [
        (ISSUED, "8,0 1 5 0.5 697 D W 223490", Place::Line(5), 2),
        (ISSUED, "8,0 1 5 0.5 697 D W", Place::Line(5), 2),
        (ISSUED, "8,0 1 5 0.5 697 D WS 223490 +", Place::Line(5), 2),
        (ISSUED, "CPU0 (8", Place::Line(5), 2),
        (etw, "DiskRe", Place::Line(4), 1),
    ];
    for (whole, cut, place, count) in cases {
        let text = [whole, cut].concat();
        let error =
            refused(text.as_bytes(), Options::default(), &["in the middle of this line", "--allow-cut"]);
        assert_eq!(error.place(), place, "{cut}");
        let options = Options { is_cut_allowed: true, ..Options::default() };
        let (records, warnings) = all(text.as_bytes(), options).unwrap();
        assert_eq!(records.len(), count, "{cut}");
        assert!(
            matches!(warnings[0], Warning::EndLeftOut { place: left_out, .. } if left_out == place),
            "{cut}"
        );
        assert!(!warnings.iter().any(|warning| matches!(warning, Warning::NoNewline { .. })), "{cut}");
    }
    // A request that waits for its completion has been read.
    let text = [ISSUED, "8,0 1 5 0.5 697 D W 223490 + 8 [fi"].concat();
    let (records, warnings) = all(text.as_bytes(), Options::default()).unwrap();
    assert_eq!((records.len(), &warnings[0]), (3, &Warning::NoNewline { line: 5 }));
}

#[test]
fn a_damaged_line_of_blkparse_is_no_flush() {
    for (damaged, says) in [
        ("8,0 1 5 0.5 697 D W 223490", "`+` is missing"),
        ("8,0 1 5 0.5 697 C R 223490", "`+` is missing"),
        ("8,0 1 5 0.5 697 D W", "`sector` is missing"),
        ("8,0 1 5 0.5 697 D W 223490 8 [fio]", "field `+` is `8`"),
    ] {
        let text = [ISSUED, damaged, "\n"].concat();
        refused(text.as_bytes(), Options::default(), &["line 5", says]);
    }
}

#[test]
fn requests_that_were_held_back_are_named_where_they_were_issued() {
    let place = |text: String| refused(text.as_bytes(), Options::default(), &["`sectors`", "empty"]).place();
    assert_eq!(place(ISSUED.replace("+ 16", "+ 0")), Place::Line(2));
    // Never completed.
    let never = |lines: usize| ISSUED.lines().take(lines).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(place(never(2).replace("+ 8", "+ 0")), Place::Line(1));
    assert_eq!(place(never(3).replace("+ 8", "+ 0")), Place::Line(1));
}

#[test]
fn records_that_are_no_request_count() {
    let mut bytes = Vec::new();
    for command in [0x28_u16, 0x12, 0x28] {
        bytes.extend([7_u32, 4096, 1].map(u32::to_le_bytes).concat());
        bytes.extend([command, 0x0100].map(u16::to_le_bytes).concat());
        bytes.extend([77_u64, 1_000].map(u64::to_le_bytes).concat());
    }
    let error = refused(&bytes[..80], Options::default(), &["record 3 (byte 64)", "16 bytes are left"]);
    assert_eq!(error.place(), Place::Record { number: 3, byte: 64 });
}

#[test]
fn a_cut_record_is_an_error_or_the_end() {
    let mut bytes = Vec::new();
    for second in 0..3_u32 {
        bytes.extend(second.to_le_bytes());
        bytes.extend(77_u64.to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    let cut = &bytes[..70];
    let error = refused(cut, Options::default(), &["record 3 (byte 48)", "22 bytes are left", "--allow-cut"]);
    assert_eq!(error.place(), Place::Record { number: 3, byte: 48 });
    let (records, _) = all(cut, Options { is_cut_allowed: true, ..Options::default() }).unwrap();
    assert_eq!(records.len(), 2);
}

#[test]
fn a_cut_compressed_file_is_an_error_or_the_end() {
    for compression in [Compression::Gzip, Compression::Xz, Compression::Zstd] {
        let mut sink = Sink::new(Vec::new(), compression).unwrap();
        let lines = (0..40_000_u64).map(|n| format!("{},{},512,r,{n}.5\n", n % 7, n * n % 7_919));
        std::io::Write::write_all(&mut sink, lines.collect::<String>().as_bytes()).unwrap();
        let packed = sink.finish().unwrap();
        let cut = &packed[..packed.len() / 2];
        refused(cut, format("spc"), &["reading failed"]);
        let (records, warnings) = all(cut, Options { is_cut_allowed: true, ..format("spc") }).unwrap();
        assert!(records.len() > 100 && records.len() < 40_000, "{compression:?}: {}", records.len());
        assert!(warnings.iter().any(|warning| matches!(warning, Warning::EndLeftOut { .. })), "{warnings:?}");
    }
}

const BACKWARDS: &[u8] = b"0,1,512,r,1.0\n0,2,512,r,3.0\n0,3,512,r,2.5\n0,4,512,r,4.0\n0,5,512,r,3.5\n";

#[test]
fn times_that_go_backwards_are_refused_sorted_or_raised() {
    refused(BACKWARDS, Options::default(), &["line 3", "`timestamp`", "500000000 ns", "--sort", "--clamp"]);
    let ordered = |order| all(BACKWARDS, Options { order: Some(order), ..Options::default() });
    let seconds =
        |records: &[Record]| records.iter().map(|record| record.at_ns as f64 / 1e9).collect::<Vec<_>>();
    let (records, warnings) = ordered(Order::Sort { window: 2 }).unwrap();
    assert_eq!(seconds(&records), [1.0, 2.5, 3.0, 3.5, 4.0]);
    assert_eq!(warnings, [Warning::Sorted { count: 2 }]);
    let (records, warnings) = ordered(Order::Clamp).unwrap();
    assert_eq!(seconds(&records), [1.0, 3.0, 3.0, 4.0, 4.0]);
    assert_eq!(warnings, [Warning::Clamped { count: 2, most_ns: 500_000_000 }]);
}

#[test]
fn what_comes_too_late_for_the_window_is_refused_with_its_line() {
    let text: String =
        (0..10).map(|n| format!("0,1,512,r,{}\n", if n == 9 { 0.5 } else { f64::from(n) + 1.0 })).collect();
    let order = Some(Order::Sort { window: 4 });
    refused(
        text.as_bytes(),
        Options { order, ..Options::default() },
        &["line 10", "window of 4", "--window"],
    );
}

#[test]
fn negative_times_become_zero_where_that_is_allowed_in_every_order() {
    let text = b"3.0,0.1,R,0,512,512\n-1.0,0.1,R,0,1024,512\n2.0,0.1,R,0,1536,512\n";
    let with = |order| Options { order, is_negative_allowed: true, origin: Origin::Keep, ..format("systor") };
    let seconds = |order| {
        let (records, warnings) = all(text, with(order)).unwrap();
        (records.iter().map(|record| record.at_ns / 1_000_000_000).collect::<Vec<_>>(), warnings)
    };
    let negative = Warning::Negative { count: 1 };
    assert_eq!(seconds(None), (vec![0, 2, 3], vec![negative.clone(), Warning::Sorted { count: 2 }]));
    let clamped = Warning::Clamped { count: 2, most_ns: 3_000_000_000 };
    assert_eq!(seconds(Some(Order::Clamp)), (vec![3, 3, 3], vec![negative, clamped]));
    // Times that go backwards are another matter.
    refused(text, with(Some(Order::Refuse)), &["line 2", "`Timestamp`", "3000000000 ns before"]);
    for order in [None, Some(Order::Clamp)] {
        refused(text, Options { order, ..format("systor") }, &["line 2", "`Timestamp`", "--allow-negative"]);
    }
}

#[test]
fn addresses_beyond_the_volume_are_refused_or_wrapped() {
    let text = b"0,95,4096,r,1\n0,250,1024,r,2\n0,10,512,r,3\n";
    let volume = NonZeroU64::new(100).unwrap();
    let with = |bounds| all(text, Options { bounds, ..Options::default() });
    let error = with(Bounds::Refuse(volume)).unwrap_err().to_string();
    assert!(
        error.contains("line 1")
            && error.contains("`LBA`")
            && error.contains("95..103")
            && error.contains("--beyond wrap"),
        "{error}"
    );
    let (records, warnings) = with(Bounds::Wrap(volume)).unwrap();
    assert_eq!(records.iter().map(|record| record.sector).collect::<Vec<_>>(), [92, 50, 10]);
    assert_eq!(warnings, [Warning::Wrapped { count: 2 }]);
    // What is larger than the volume cannot be wrapped.
    let error = with(Bounds::Wrap(NonZeroU64::new(4).unwrap())).unwrap_err();
    assert!(matches!(error.fault(), Fault::Beyond { volume: 4, .. }));
}

#[test]
fn absurd_sizes_may_be_left_out() {
    let text = b"0,1,0,r,1\n0,2,512,r,2\n0,3,1099511627776,r,3\n0,4,4194304,r,4\n";
    let (records, warnings) =
        all(text, Options { sizes: Sizes::Skip, count_max: 1 << 12, ..format("spc") }).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(warnings, [Warning::SizesSkipped { count: 3 }]);
}

#[test]
fn wrong_units_earn_a_warning() {
    // 100 requests a second, in milliseconds.
    let text: String = (0..2_000).map(|n| format!("{}.0 0 {} 8 1\n", n * 10, n * 64)).collect();
    let unit =
        |unit_ns| all(text.as_bytes(), Options { unit_ns: Some(unit_ns), ..format("disksim") }).unwrap().1;
    assert_eq!(unit(1_000_000), []);
    assert!(matches!(unit(1)[..], [Warning::TooFast { unit: "nanoseconds", .. }]), "{:?}", unit(1));
    let slow: String = (0..2_000_u64).map(|n| format!("{}.0 0 {} 8 1\n", n * 10_000_000, n * 64)).collect();
    let (_, warnings) = all(slow.as_bytes(), format("disksim")).unwrap();
    assert!(matches!(warnings[..], [Warning::TooSlow { unit: "milliseconds", .. }]), "{warnings:?}");
}

#[test]
fn srt_takes_no_other_unit() {
    let word = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let record = word(&[56, 4 << 16 | 1, 7, 500, 0, 20, 4096, 16, 0, 0, 0, 1, 0, 0]);
    let text = [&b"$$TR_IOREC\n\x0c"[..], &record].concat();
    let with = |unit_ns| Options { unit_ns, ..Options::default() };
    refused(&text, with(Some(1_000_000)), &["seconds and microseconds", "--time-unit"]);
    for unit_ns in [None, Some(1_000_000_000)] {
        let (records, _) = all(&text, with(unit_ns)).unwrap();
        assert_eq!(records[0].at_ns, 7_000_500_000);
    }
}

#[test]
fn an_unknown_format_is_told_with_all_that_are_known() {
    let error =
        reader(b"once upon a time\nthere was no trace\n", Options::default()).err().unwrap().to_string();
    for format in Format::all() {
        assert!(error.contains(format.name()), "{error}");
    }
    assert!(error.contains("--format"), "{error}");
    assert!(reader(b"", Options::default()).is_err());
}

#[test]
fn another_version_of_our_own_format_is_refused() {
    let text = "# brickwork-trace 2: everything is different\nat_ns,device,sector,count,op,response_ns\n0,0,1,1,r,\n";
    refused(text.as_bytes(), Options::default(), &["line 1", "version 2", "newer"]);
}

#[test]
fn even_times_replace_those_of_a_format_without() {
    let (records, _) =
        all(b"5 2 0 0\n9 1 0 1\n7 1 0 2\n", Options { rate_per_s: Some(4.0), ..Options::default() }).unwrap();
    assert_eq!(records.iter().map(|record| record.at_ns).collect::<Vec<_>>(), [0, 250_000_000, 500_000_000]);
    assert_eq!(records[0].count, 2);
}

fn any_record() -> impl Strategy<Value = Record> {
    let response = proptest::option::of(0..1_u64 << 60);
    (0..1_u64 << 62, 0..u32::MAX, 0..1_u64 << 54, 1..1_u32 << 21, any::<bool>(), response).prop_map(
        |(at_ns, device, sector, count, is_write, response_ns)| Record {
            at_ns,
            device,
            sector,
            count,
            is_write,
            response_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// All that is written is read back: exactly, but for the response times that only our own format keeps.
    #[test]
    fn what_is_written_is_read(mut records in proptest::collection::vec(any_record(), 1..50)) {
        records.sort_by_key(|record| record.at_ns);
        for target in Target::ALL {
            for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
                let mut writer = Writer::new(Vec::new(), target, compression).unwrap();
                records.iter().for_each(|record| writer.write(record).unwrap());
                let bytes = writer.finish().unwrap();
                let options = Options { format: Format::find(target.name()), origin: Origin::Keep, ..Options::default() };
                let (again, _) = all(&bytes, options).unwrap();
                let kept = |record: &Record| Record { response_ns: record.response_ns.filter(|_| target == Target::Brickwork), ..*record };
                prop_assert_eq!(&again, &records.iter().map(kept).collect::<Vec<_>>());
                // Nobody has to be told the format.
                let detected = reader(&bytes, Options::default()).unwrap().format().name();
                prop_assert_eq!(detected, target.name());
            }
        }
    }

    /// A window as wide as the disorder brings any order back.
    #[test]
    fn a_wide_enough_window_sorts(count in 1_usize..300, width in 1_usize..20, seed: u64) {
        let mut order: Vec<usize> = (0..count).collect();
        let mut random = base::Rng::with_seed(seed);
        order.chunks_mut(width).for_each(|chunk| random.shuffle(chunk));
        let text: String = order.iter().map(|n| format!("0,{n},512,r,{n}\n")).collect();
        let options = Options { order: Some(Order::Sort { window: width + 1 }), ..format("spc") };
        let (records, _) = all(text.as_bytes(), options).unwrap();
        prop_assert!(records.iter().map(|record| record.sector as usize).eq(0..count));
    }

    /// Any bytes in any format: records that keep the promises, or an error that names the file; never a panic, never an endless loop.
    #[test]
    fn whatever_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), lines: bool, volume in 1_u64..1 << 40) {
        let bytes = if lines { bytes.iter().map(|byte| b"0123456789,.- \nRWrwDCx+"[usize::from(*byte) % 23]).collect() } else { bytes };
        for format in Format::all() {
            let bounds = Bounds::Wrap(NonZeroU64::new(volume).unwrap());
            let options = Options { format: Some(format), bounds, sizes: Sizes::Skip, order: Some(Order::Clamp), is_negative_allowed: true, ..Options::default() };
            let Ok(reader) = reader(&bytes, options) else { continue };
            let mut before = 0;
            for record in reader {
                match record {
                    Ok(record) => {
                        prop_assert!(record.at_ns >= before && record.count > 0 && record.end() <= volume);
                        before = record.at_ns;
                    }
                    Err(error) => prop_assert!(error.to_string().starts_with("t.spc")),
                }
            }
        }
    }
}
