//! Formats of which no public file is at hand, from their descriptions; and how each is told from the others.

use std::io::Cursor;
use trace::{Format, Options, Reader, Record, Warning};

#[track_caller]
fn read(name: &str, bytes: &[u8]) -> Vec<Record> {
    let mut reader = Reader::open(name, Box::new(Cursor::new(bytes.to_vec())), Options::default()).unwrap();
    assert_eq!(reader.format().name(), name);
    let records = reader.by_ref().map(Result::unwrap).collect();
    assert!(
        reader.warnings().iter().all(|warning| matches!(warning, Warning::Sorted { .. })),
        "{:?}",
        reader.warnings()
    );
    records
}

fn record(
    at_ns: u64,
    device: u32,
    sector: u64,
    count: u32,
    is_write: bool,
    response_ns: Option<u64>,
) -> Record {
    Record { at_ns, device, sector, count, is_write, response_ns }
}

#[test]
fn spc_as_in_its_specification() {
    let text =
        b" 0, 20941264, 8192, W, 0.551706, Alpha/NT\n0,20939840,8192,W,0.554041\n1,3072,3584,r,0.559\n";
    let records = read("spc", text);
    assert_eq!(records[0], record(551_706_000, 0, 20_941_264, 16, true, None));
    assert_eq!(records[2], record(559_000_000, 1, 3_072, 7, false, None));
}

#[test]
fn msr_is_sorted_and_counts_from_its_first_request() {
    let text = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
        128166372003061639,hm,1,Write,4096,512,100\n\
        128166372003061629,hm,1,Read,383496192,32768,413\n\
        128166372003061729,usr,0,Read,700,1000,5\n";
    let records = read("msr", text);
    assert_eq!(records[0], record(0, 1, 383_496_192 / 512, 64, false, Some(41_300)));
    assert_eq!(records[1], record(1_000, 1, 8, 1, true, Some(10_000)));
    // Another host has devices of its own; bytes 700 to 1700 lie in sectors 1 to 3.
    assert_eq!(records[2], record(10_000, 65_536, 1, 3, false, Some(500)));
}

#[test]
fn etw_is_logged_at_completion_and_its_file_names_may_have_commas() {
    let text = b"BeginHeader\n\
        DiskRead,  TimeStamp, Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName\n\
        EndHeader\n\
        OS Version: 5.2.3790, Trace Size: 1KB, Events Lost: 0\n\
        DiskReadInit, 900, sqlservr.exe (2432), 2680, 0xfffffadf9d0d5010\n\
        FileIoRead, 950, x, 1\n\
        DiskWrite,  1500, System (   4),  60, 0xfffffadf, 0x000a00, 0x00000200,  100,  3, 0x060043, 90, Normal, Original, 0xfff, \"C:\\a, b,c.mdf\"\n\
        DiskRead,   1600, sqlservr.exe (2432), 2680, 0xfffffadf9d0d5010, 0x0042c5e000, 0x00002000,  700,  5, 0x060043, 512, Normal, Original, 0xfffffadf9c86aa10, \"E:\\db.mdf\"\n";
    let records = read("etw", text);
    assert_eq!(records[0], record(900_000, 5, 0x42c5_e000 / 512, 16, false, Some(700_000)));
    assert_eq!(records[1], record(1_400_000, 3, 5, 1, true, Some(100_000)));
}

#[test]
fn etw_rows_from_before_the_trace_began_are_issued_at_its_beginning() {
    let text = b"BeginHeader\nEndHeader\n\
        DiskRead, 100, p, 1, 0x1, 0x200, 0x200, 700, 5, 0x0\n\
        DiskRead, 800, p, 1, 0x1, 0x400, 0x200, 100, 5, 0x0\n\
        DiskWrite, 900, p, 1, 0x1, 0x600, 0x200, 400, 5, 0x0\n";
    let mut reader = Reader::open("x.csv", Box::new(Cursor::new(text.to_vec())), Options::default()).unwrap();
    let records: Vec<Record> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(records[0], record(0, 5, 1, 1, false, Some(700_000)));
    // What was logged later and issued earlier is still sorted.
    assert_eq!(records[1], record(500_000, 5, 3, 1, true, Some(400_000)));
    assert_eq!(records[2], record(700_000, 5, 2, 1, false, Some(100_000)));
    assert_eq!(reader.warnings(), [Warning::Negative { count: 1 }, Warning::Sorted { count: 1 }]);
}

#[test]
fn both_versions_of_vscsi() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (number, command) in [0x28_u16, 0x8a, 0x12].into_iter().enumerate() {
        let (n, at, lbn, version) = (number as u32, 1_000_000 + 50 * number as u64, 77_u64, 0x0100_u16);
        first.extend([n.to_le_bytes(), 4096_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        first.extend([command.to_le_bytes(), version.to_le_bytes()].concat());
        first.extend([lbn.to_le_bytes(), at.to_le_bytes()].concat());
        second.extend([command.to_le_bytes(), (version * 2).to_le_bytes()].concat());
        second.extend([n.to_le_bytes(), 4096_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        second.extend([lbn.to_le_bytes(), at.to_le_bytes(), 300_u64.to_le_bytes()].concat());
    }
    // Inquiries move no data.
    assert_eq!(
        read("vscsi1", &first),
        [record(0, 0, 77, 8, false, None), record(50_000, 0, 77, 8, true, None)]
    );
    let response_ns = Some(300_000);
    assert_eq!(
        read("vscsi2", &second),
        [record(0, 0, 77, 8, false, response_ns), record(50_000, 0, 77, 8, true, response_ns)]
    );
}

#[test]
fn systor_leaves_out_what_is_neither_read_nor_written() {
    let text = b"Timestamp,Response,IOType,LUN,Offset,Size\n\
        1455592800.023221,0.000543,W,4,78249922560,4096\n\
        1455592800.023230,0.000001,,4,0,0\n\
        1455592800.033221,,R,0,1024,512\n";
    let records = read("systor", text);
    assert_eq!(records[0], record(0, 4, 78_249_922_560 / 512, 8, true, Some(543_000)));
    assert_eq!(records[1], record(10_000_000, 0, 2, 1, false, None));
    assert_eq!(records.len(), 2);
}

#[test]
fn blkparse_joins_issue_and_completion() {
    let text = b"  8,0    1        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
        \x20 8,0    1        2     0.000001829   697  D   W 223490 + 8 [kjournald]\n\
        \x20 8,0    1        3     0.000005000   697  D   R 100 + 16 [fio]\n\
        \x20 8,0    0        4     0.000010000     0  C   R 100 + 16 [0]\n\
        \x20 8,0    0        5     0.000100829     0  C   W 223490 + 8 [0]\n\
        \x20 8,16   0        6     0.000200000     9  D  WS 5 + 1 [fio]\n\
        \x20 8,0    0        7     0.000210000     9  D  FN [fio]\n\
        \x20 8,0    0        8     0.000220000     9  D  DS 9 + 1 [fio]\n\
        \x20 8,0    0        9     0.000230000     9  D FWS [jbd2/sda1-8]\n\
        \x20 8,0    0       10     0.000240000     0  C  WS 0 [0]\n\
        \x20 8,0    0       11     0.000250000     9  D   R 36 (12 00 00 00 24 00 ..) [smartctl]\n\
        \x20 8,0    0       12     0.000260000     0  C   R (12 00 00 00 24 00 ..) [0]\n\
        CPU0 (8,0):\n Reads Queued:           1,        8KiB\n";
    let records = read("blkparse", text);
    assert_eq!(records[0], record(1_829, 8 << 20, 223_490, 8, true, Some(99_000)));
    assert_eq!(records[1], record(5_000, 8 << 20, 100, 16, false, Some(5_000)));
    // Never completed.
    assert_eq!(records[2], record(200_000, 8 << 20 | 16, 5, 1, true, None));
    assert_eq!(records.len(), 3);
}

#[test]
fn disksim_tells_milliseconds_from_nanoseconds_by_the_point() {
    assert_eq!(
        read("disksim", b"13.191135\t30\t0\t5\t1\n17.8 20 576560 6 0\n")[0],
        record(13_191_135, 30, 0, 5, false, None)
    );
    assert_eq!(
        read("disksim-ns", b"0 0 303567 7 0\n26214000 0 303574 7 1\n")[1],
        record(26_214_000, 0, 303_574, 7, false, None)
    );
}

#[test]
fn validation_issues_the_next_request_a_think_time_after_the_end_of_the_one_before() {
    let text =
        b"W Hit    4583176   4    663.00000  45422.00000\nR Hit    3962268  12   6657.00000  64047.00000\n";
    assert_eq!(read("validation", text)[1], record(46_085_000, 0, 3_962_268, 12, false, Some(6_657_000)));
}

#[test]
fn names_are_found_and_differ() {
    let mut names: Vec<&str> = Format::all().map(|format| format.name()).collect();
    assert!(names.iter().all(|name| Format::find(name).is_some_and(|format| format.name() == *name)));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), Format::find("none").is_none()), (count, true));
}

#[test]
fn a_table_names_its_columns_in_any_order() {
    let text = b"op, Offset, size, time_ms, pid, device, response_us\nread,4096,8192,0.5,17,3,250\nW,8191,2,1.25,17,0,\n";
    let records = read("columns", text);
    assert_eq!(records[0], record(0, 3, 8, 16, false, Some(250_000)), "times count from the first request");
    // Bytes 8191 and 8192 lie in two sectors.
    assert_eq!(records[1], record(750_000, 0, 15, 2, true, None));
    let sectors = read("columns", b"timestamp,lba,blocks,rw\n10.5,77,8,w\n");
    assert_eq!(sectors, [record(0, 0, 77, 8, true, None)]);
    let marked = read("columns", b"\xef\xbb\xbf\"time_s\",\"op\",\"sector\",\"count\"\n1,r,77,8\n");
    assert_eq!(marked, [record(0, 0, 77, 8, false, None)]);
    let untimed = read("columns-without-times", b"sector,count,op\n5,8,r\n9,8,w\n");
    assert_eq!(untimed, [record(0, 0, 5, 8, false, None), record(0, 0, 9, 8, true, None)]);
}

#[test]
fn a_table_that_names_too_little_or_twice_is_refused_by_its_first_line() {
    let said = |name: &str, text: &[u8]| {
        let options = Options { format: Format::find(name), ..Options::default() };
        let mut reader = Reader::open("my.csv", Box::new(Cursor::new(text.to_vec())), options).unwrap();
        reader.find_map(Result::err).expect("a mistake").to_string()
    };
    for (name, text, why) in [
        ("columns", &b"time_s,op,sector\n"[..], "no column is named count"),
        ("columns", b"time_s,sector,count\n", "no column is named op"),
        ("columns", b"op,sector,count\n", "none is named time_s"),
        ("columns", b"time_s,time_ms,op,sector,count\n", "a second column for what `time_ms` says"),
        ("columns", b"time_s,op,sector,offset,count\n", "a second column for what `offset` says"),
        ("columns", b"time_s,op,sector,count\n1,r,x,8\n", "field `sector`"),
        ("columns", b"time_s,op,sector,count\n1,r,8\n", "field `count` is missing"),
    ] {
        let message = said(name, text);
        assert!(message.contains(why) && message.starts_with("my.csv, line "), "{message}");
    }
}
