//! A file with a line for each request of an experiment: comma-separated values, or Parquet where its name ends so.
//!
//! | column | |
//! |---|---|
//! | what is varied, `seed` | of which point the request is |
//! | `asked_ms`, `answered_ms`, `response_ms` | from the beginning of the load on; in between |
//! | `op` | `read` or `write` |
//! | `group`, `sector`, `sectors` | which bricks hold it, where in their common addresses it begins, and how many sectors of 512 bytes it has |
//! | `served_by` | `disk`; `memory`, a cache or a journal; `several` accesses together, as with parity |
//! | `brick`, `disk_sector` | which disk, and where on it; empty unless `disk` |
//! | `waiting` | how many accesses waited for that disk when this one was begun; empty where the device chooses by itself (flash, several at a time) |
//! | `disk_begun_ms`, `disk_done_ms` | when the disk began it, and was done |

use crate::cell::{Cell, Row, quoted};
use crate::error::LabError;
use crate::experiment::Point;
use outfile::Outfile;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use sim::timed::{DiskAccess, RequestRecord, ServedBy};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file, while points are run in any order.
pub struct RequestsFile {
    path: PathBuf,
    labels: Vec<String>,
    order: Mutex<Order>,
}

/// Points are written in their order, whichever is done first.
struct Order {
    next: usize,
    early: BTreeMap<usize, Recorded>,
    writer: Writer,
    written: u64,
}

/// The requests of one point from one seed.
struct Recorded {
    labels: Row,
    seed: u64,
    requests: Vec<RequestRecord>,
}

enum Writer {
    Csv(BufWriter<Outfile>),
    Parquet(Box<SerializedFileWriter<Outfile>>),
}

/// What stands in a column for a request.
#[derive(Clone, Copy)]
enum Value {
    Text(&'static str),
    Milliseconds(f64),
    Count(u64),
    Nothing,
}

/// A column of every file: its name, its physical type, and what it says of a request.
type Column = (&'static str, Physical, fn(&RequestRecord) -> Value);

const COLUMNS: &[Column] = &[
    ("asked_ms", Physical::DOUBLE, |request| ms(request.asked.0)),
    ("answered_ms", Physical::DOUBLE, |request| ms(request.answered.0)),
    ("response_ms", Physical::DOUBLE, |request| ms(request.response_ns())),
    ("op", Physical::BYTE_ARRAY, |request| Value::Text(if request.is_write { "write" } else { "read" })),
    ("group", Physical::INT64, |request| Value::Count(u64::from(request.group))),
    ("sector", Physical::INT64, |request| Value::Count(request.sector)),
    ("sectors", Physical::INT64, |request| Value::Count(u64::from(request.count))),
    ("served_by", Physical::BYTE_ARRAY, |request| {
        Value::Text(match request.served_by {
            ServedBy::Disk(_) => "disk",
            ServedBy::Memory => "memory",
            ServedBy::Several => "several",
        })
    }),
    ("brick", Physical::INT64, |request| of_disk(request, |access| Value::Count(u64::from(access.brick)))),
    ("disk_sector", Physical::INT64, |request| of_disk(request, |access| Value::Count(access.sector))),
    ("waiting", Physical::INT64, |request| {
        of_disk(request, |access| {
            access.waiting.map_or(Value::Nothing, |waiting| Value::Count(u64::from(waiting)))
        })
    }),
    ("disk_begun_ms", Physical::DOUBLE, |request| of_disk(request, |access| ms(access.begun.0))),
    ("disk_done_ms", Physical::DOUBLE, |request| of_disk(request, |access| ms(access.done.0))),
];

fn ms(ns: u64) -> Value {
    Value::Milliseconds(ns as f64 / 1e6)
}

fn of_disk(request: &RequestRecord, value: fn(&DiskAccess) -> Value) -> Value {
    match &request.served_by {
        ServedBy::Disk(access) => value(access),
        ServedBy::Memory | ServedBy::Several => Value::Nothing,
    }
}

impl RequestsFile {
    /// Begins a file for these points. It gets its name when it is [finished](RequestsFile::finish).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, points: &[Point]) -> Result<RequestsFile, LabError> {
        let mut labels: Vec<String> = Vec::new();
        for (name, _) in points.iter().flat_map(|point| point.labels.cells()) {
            if !labels.iter().any(|known| known == name) {
                labels.push(name.to_owned());
            }
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(LabError::writing(folder))?;
        }
        let file = Outfile::create(path).map_err(LabError::writing(path))?;
        let is_parquet = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let writer = match is_parquet {
            false => {
                let mut file = BufWriter::new(file);
                let names = labels.iter().map(|name| quoted(name)).chain(["seed".to_owned()]);
                let names: Vec<String> =
                    names.chain(COLUMNS.iter().map(|(name, ..)| (*name).to_owned())).collect();
                writeln!(file, "{}", names.join(",")).map_err(LabError::writing(path))?;
                Writer::Csv(file)
            }
            true => {
                let compression = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let schema = schema(&labels, points).map_err(of_parquet(path))?;
                let writer = SerializedFileWriter::new(file, schema, Arc::new(compression));
                Writer::Parquet(Box::new(writer.map_err(of_parquet(path))?))
            }
        };
        let order = Order { next: 0, early: BTreeMap::new(), writer, written: 0 };
        Ok(RequestsFile { path: path.to_owned(), labels, order: Mutex::new(order) })
    }

    /// The requests of the `at`-th run, in the order of points within seeds.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn add(
        &self,
        at: usize,
        (labels, seed): (&Row, u64),
        requests: Vec<RequestRecord>,
    ) -> Result<(), LabError> {
        let mut order = self.order.lock().expect("no holder panics");
        order.early.insert(at, Recorded { labels: labels.clone(), seed, requests });
        loop {
            let next = order.next;
            let Some(recorded) = order.early.remove(&next) else { return Ok(()) };
            match &mut order.writer {
                Writer::Csv(file) => {
                    csv(file, &self.labels, &recorded).map_err(LabError::writing(&self.path))?;
                }
                Writer::Parquet(writer) => {
                    group(writer, &self.labels, &recorded).map_err(of_parquet(&self.path))?;
                }
            }
            order.next += 1;
            order.written += recorded.requests.len() as u64;
        }
    }

    /// Ends the file: how many requests are in it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<u64, LabError> {
        let Order { writer, written, .. } = self.order.into_inner().expect("no holder panics");
        let file = match writer {
            Writer::Csv(file) => {
                file.into_inner().map_err(|error| LabError::writing(&self.path)(error.into_error()))?
            }
            Writer::Parquet(writer) => writer.into_inner().map_err(of_parquet(&self.path))?,
        };
        file.finish().map_err(LabError::writing(&self.path))?;
        Ok(written)
    }
}

fn csv(file: &mut impl Write, labels: &[String], recorded: &Recorded) -> std::io::Result<()> {
    let cell = |name: &String| match recorded.labels.get(name) {
        Some(Cell::Text(text)) => quoted(text),
        Some(Cell::Number(value, _)) => value.to_string(),
        None => String::new(),
    };
    let cells: Vec<String> = labels.iter().map(cell).chain([recorded.seed.to_string()]).collect();
    let point = cells.join(",");
    for request in &recorded.requests {
        write!(file, "{point}")?;
        for (_, _, value) in COLUMNS {
            match value(request) {
                Value::Text(text) => write!(file, ",{text}")?,
                // Nanoseconds, exactly.
                Value::Milliseconds(ms) => write!(file, ",{ms:.6}")?,
                Value::Count(count) => write!(file, ",{count}")?,
                Value::Nothing => write!(file, ",")?,
            }
        }
        writeln!(file)?;
    }
    Ok(())
}

fn of_parquet(path: &Path) -> impl Fn(ParquetError) -> LabError {
    move |error| LabError::writing(path)(std::io::Error::other(error))
}

/// Whether all points have numbers there.
fn is_number(label: &str, points: &[Point]) -> bool {
    points.iter().filter_map(|point| point.labels.get(label)).all(|cell| cell.number().is_some())
}

fn schema(labels: &[String], points: &[Point]) -> Result<Arc<Type>, ParquetError> {
    let column = |name: &str, physical: Physical| {
        let built = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        built.with_logical_type(text).build().map(Arc::new)
    };
    let of_label = |label: &String| {
        let physical = if is_number(label, points) { Physical::DOUBLE } else { Physical::BYTE_ARRAY };
        column(label, physical)
    };
    let labels = labels.iter().map(of_label).chain([column("seed", Physical::INT64)]);
    let fields = labels.chain(COLUMNS.iter().map(|(name, physical, _)| column(name, *physical)));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("requests").with_fields(fields).build().map(Arc::new)
}

/// A row group for a point: column after column.
fn group(
    writer: &mut SerializedFileWriter<Outfile>,
    labels: &[String],
    Recorded { labels: row, seed, requests }: &Recorded,
) -> Result<(), ParquetError> {
    let physicals: Vec<Physical> =
        writer.schema_descr().columns().iter().map(|column| column.physical_type()).collect();
    let mut group = writer.next_row_group()?;
    for (at, label) in labels.iter().enumerate() {
        match (row.get(label), physicals[at]) {
            (Some(Cell::Number(value, _)), Physical::DOUBLE) => {
                numbers(&mut group, requests, |_| Some(*value))?;
            }
            (Some(cell), _) => {
                let text = ByteArray::from(cell.text().as_str());
                texts(&mut group, requests, |_| Some(text.clone()))?;
            }
            (None, Physical::DOUBLE) => numbers(&mut group, requests, |_| None)?,
            (None, _) => texts(&mut group, requests, |_| None)?,
        }
    }
    counts(&mut group, requests, |_| Some(*seed as i64))?;
    for (_, physical, value) in COLUMNS {
        match *physical {
            Physical::DOUBLE => numbers(&mut group, requests, |request| match value(request) {
                Value::Milliseconds(ms) => Some(ms),
                _ => None,
            })?,
            Physical::INT64 => counts(&mut group, requests, |request| match value(request) {
                Value::Count(count) => Some(count as i64),
                _ => None,
            })?,
            _ => texts(&mut group, requests, |request| match value(request) {
                Value::Text(text) => Some(ByteArray::from(text)),
                _ => None,
            })?,
        }
    }
    group.close().map(drop)
}

macro_rules! writes {
    ($name:ident, $kind:ty, $value:ty) => {
        fn $name(
            group: &mut SerializedRowGroupWriter<'_, Outfile>,
            requests: &[RequestRecord],
            value: impl Fn(&RequestRecord) -> Option<$value>,
        ) -> Result<(), ParquetError> {
            let values: Vec<Option<$value>> = requests.iter().map(value).collect();
            let is_there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let values: Vec<$value> = values.into_iter().flatten().collect();
            let Some(mut column) = group.next_column()? else {
                return Err(ParquetError::General("the file has fewer columns than it says".to_owned()));
            };
            column.typed::<$kind>().write_batch(&values, Some(&is_there), None)?;
            column.close()
        }
    };
}

writes!(numbers, DoubleType, f64);
writes!(counts, Int64Type, i64);
writes!(texts, ByteArrayType, ByteArray);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Job, Sample};
    use base::Time;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use serde_json::json;

    struct Nothing;

    impl Job for Nothing {
        fn describe(&self) -> serde_json::Value {
            json!({})
        }
        fn run(&self, _: u64) -> Result<Sample, String> {
            Err("it only has labels".to_owned())
        }
    }

    fn request(at_ns: u64, served_by: ServedBy) -> RequestRecord {
        let (asked, answered) = (Time(at_ns), Time(at_ns + 1_500_001));
        RequestRecord { asked, answered, group: 2, sector: 77, count: 8, is_write: false, served_by }
    }

    fn requests() -> [Vec<RequestRecord>; 2] {
        let access = DiskAccess {
            brick: 5,
            sector: 9,
            waiting: Some(3),
            begun: Time(1_000_000),
            done: Time(2_500_001),
        };
        [vec![request(1_000_000, ServedBy::Disk(access)), request(3_000_000, ServedBy::Memory)], Vec::new()]
    }

    /// Two points whose runs end in the other order.
    fn write(path: &Path) -> u64 {
        let point = |load: f64| Point::new(Nothing).with("policy", "a,b").with("load", load);
        let points = [point(0.5), point(2.0), point(4.0)];
        let file = RequestsFile::create(path, &points).unwrap();
        let [first, last] = requests();
        file.add(1, (&points[1].labels, 7), first.clone()).unwrap();
        file.add(0, (&points[0].labels, 7), first).unwrap();
        file.add(2, (&points[2].labels, 7), last).unwrap();
        file.finish().unwrap()
    }

    #[test]
    fn a_table_has_every_request_in_the_order_of_points() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/requests.csv");
        assert_eq!(write(&path), 4);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "policy,load,seed,asked_ms,answered_ms,response_ms,op,group,sector,sectors,served_by,brick,disk_sector,waiting,\
             disk_begun_ms,disk_done_ms"
        );
        assert_eq!(
            lines[1],
            "\"a,b\",0.5,7,1.000000,2.500001,1.500001,read,2,77,8,disk,5,9,3,1.000000,2.500001"
        );
        assert_eq!(lines[2], "\"a,b\",0.5,7,3.000000,4.500001,1.500001,read,2,77,8,memory,,,,,");
        assert!(lines.len() == 5 && lines[3].starts_with("\"a,b\",2,7,"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_parquet_file_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.parquet");
        assert_eq!(write(&path), 4);
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 3);
        let rows: Vec<String> = reader.into_iter().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 4);
        assert!(rows[0].contains("policy: \"a,b\"") && rows[0].contains("load: 0.5"), "{}", rows[0]);
        assert!(
            rows[0].contains("response_ms: 1.500001") && rows[0].contains("disk_sector: 9"),
            "{}",
            rows[0]
        );
        assert!(rows[1].contains("served_by: \"memory\"") && rows[1].contains("brick: null"), "{}", rows[1]);
    }
}
