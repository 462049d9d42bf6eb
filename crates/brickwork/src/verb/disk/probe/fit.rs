//! The model: an access takes a constant time, and each byte the same on top.

use super::measure::Cell;
use std::fmt::Write;
use std::path::Path;

/// A device of constant access time, as a drive's file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) read_ms: f64,
    pub(super) write_ms: f64,
    /// `None` when large reads take no longer than small ones.
    pub(super) bytes_per_second: Option<f64>,
}

impl Model {
    /// Medians, because a few requests that waited for something else would tilt the line.
    ///
    /// The line through the medians of the smallest and the largest read, one at a time. Writes share its slope, and take
    /// what reads do where they were not measured.
    pub(super) fn of(reads: &[Cell], writes: Option<&Cell>) -> Model {
        let alone = || reads.iter().filter(|cell| cell.depth == 1);
        let small = alone().min_by_key(|cell| cell.size_bytes).expect("something was read");
        let large = alone().max_by_key(|cell| cell.size_bytes).expect("something was read");
        let bytes = (large.size_bytes - small.size_bytes) as f64;
        let us_per_byte = if bytes > 0.0 { (large.p50_us - small.p50_us) / bytes } else { 0.0 };
        let us_per_byte = us_per_byte.max(0.0);
        let access_ms = |cell: &Cell| ((cell.p50_us - us_per_byte * cell.size_bytes as f64) * 1e-3).max(0.0);
        Model {
            read_ms: access_ms(small),
            write_ms: access_ms(writes.unwrap_or(small)),
            bytes_per_second: (us_per_byte > 0.0).then(|| 1e6 / us_per_byte),
        }
    }

    /// What the model says that a read takes, in microseconds.
    fn predicted_us(&self, size_bytes: usize) -> f64 {
        self.read_ms * 1e3 + self.bytes_per_second.map_or(0.0, |rate| size_bytes as f64 / rate * 1e6)
    }

    /// The drive's file, with what was measured as comments.
    pub(super) fn toml(&self, path: &Path, size_bytes: u64, reads: &[Cell], writes: Option<&Cell>) -> String {
        let mut text =
            format!("# Measured by `brickwork disk probe {}`, past the page cache.\n#\n", path.display());
        text.push_str(
            "#         size  depth   requests     mean us      p50 us      p99 us  requests/s    model us\n",
        );
        for cell in reads {
            // The model knows no queue: it speaks of one request at a time.
            let model = if cell.depth == 1 {
                format!("{:.1}", self.predicted_us(cell.size_bytes))
            } else {
                "-".to_owned()
            };
            line(&mut text, "read", cell, &model);
        }
        if let Some(cell) = writes {
            line(&mut text, "write", cell, "-");
        }
        let name = format!("{} (probed)", path.display());
        let capacity = size_bytes / 512;
        let _ =
            write!(text, "name = {}\ncapacity_sectors = {capacity}\n\n[access]\n", toml::Value::String(name));
        let _ = writeln!(text, "read_ms = {:.6}", self.read_ms);
        let note = if writes.is_some() {
            ""
        } else {
            "   # as reads: durable writes were not measured, see --write-file"
        };
        let _ = writeln!(text, "write_ms = {:.6}{note}", self.write_ms);
        if let Some(rate) = self.bytes_per_second {
            let _ = writeln!(text, "bytes_per_second = {rate:.0}.0");
        }
        text
    }
}

fn line(text: &mut String, what: &str, cell: &Cell, model: &str) {
    let Cell { size_bytes, depth, requests, mean_us, p50_us, p99_us, per_second } = cell;
    let _ = writeln!(
        text,
        "# {what:5} {size_bytes:7} {depth:6} {requests:10} {mean_us:11.1} {p50_us:11.1} {p99_us:11.1} {per_second:11.0} {model:>11}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::drive::{DriveModel, Summary};
    use std::time::Duration;

    fn cell(size: usize, depth: usize, us: u64) -> Cell {
        Cell::new(size, depth, vec![Duration::from_micros(us); 3], Duration::from_micros(3 * us))
    }

    #[test]
    fn the_line_goes_through_small_and_large_reads() {
        let reads = [cell(4096, 1, 104), cell(4096, 8, 400), cell(65_536, 1, 200), cell(1 << 20, 1, 1124)];
        let model = Model::of(&reads, None);
        assert!((model.read_ms - 0.1).abs() < 1e-9 && model.read_ms == model.write_ms, "{model:?}");
        assert!((model.bytes_per_second.expect("a rate") - 1.024e9).abs() < 1.0, "{model:?}");
        let flat = Model::of(&[cell(4096, 1, 100), cell(1 << 20, 1, 90)], Some(&cell(4096, 1, 700)));
        assert_eq!(flat.bytes_per_second, None);
        assert!((flat.read_ms - 0.1).abs() < 1e-9 && (flat.write_ms - 0.7).abs() < 1e-9, "{flat:?}");
    }

    #[test]
    fn what_is_printed_is_a_drive() {
        let reads = [cell(4096, 1, 104), cell(1 << 20, 1, 1124)];
        let path = Path::new("/dev/with \"quotes\"");
        for writes in [None, Some(cell(4096, 1, 2000))] {
            let text = Model::of(&reads, writes.as_ref()).toml(path, 1 << 30, &reads, writes.as_ref());
            let drive = DriveModel::parse("probed", &text).expect("a drive");
            assert_eq!(drive.capacity_bytes(), 1 << 30);
            let Summary::Constant(access) = drive.summary() else { panic!("{text}") };
            assert_eq!(access.read_ns, 100_000);
            assert_eq!(access.write_ns, if writes.is_some() { 1_996_000 } else { 100_000 });
        }
    }
}
