//! What was measured, and how it is told.

use serde_json::{Value, json};

/// Of an index that was filled without its protocol.
pub(super) struct Filled {
    pub(super) per_second: f64,
    /// What the process that filled it had in memory at most.
    pub(super) peak_bytes: u64,
    /// What the files had afterwards.
    pub(super) file_bytes: u64,
    /// From the first start of the directory over it until names were listed.
    pub(super) until_listed_s: f64,
}

/// Of a directory that was killed while names were put.
pub(super) struct Loaded {
    /// Put from the beginning to the end, the kill and the start included.
    pub(super) puts: u64,
    /// Puts that failed, or of which it is not known whether they were done.
    pub(super) failed: u64,
    /// Of those that were done, so many were looked up again, and are there.
    pub(super) looked_up: u64,
    pub(super) until_listed_s: f64,
}

pub(super) struct Figures {
    /// Names in the index when the others were looked up.
    pub(super) objects: u64,
    pub(super) object_bytes: u32,
    pub(super) filled: Option<Filled>,
    /// Names that were put through the protocol.
    pub(super) puts: u64,
    pub(super) puts_per_second: f64,
    pub(super) looks_per_second: f64,
    pub(super) removes_per_second: f64,
    /// Names in a list.
    pub(super) first_names: usize,
    pub(super) list_median_ms: f64,
    pub(super) list_worst_ms: f64,
    pub(super) lists: usize,
    /// The directory's memory before it was ended, and at most until then.
    pub(super) resident_bytes: u64,
    pub(super) peak_bytes: u64,
    /// The same since it was killed without load.
    pub(super) resident_again_bytes: u64,
    pub(super) peak_again_bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) disks_used_bytes: u64,
    pub(super) after_end_s: f64,
    pub(super) after_kill_s: f64,
    pub(super) loaded: Loaded,
}

impl Figures {
    pub(super) fn json(&self) -> Value {
        let filled = self.filled.as_ref().map(|filled| {
            json!({
                "objects": self.objects - self.puts, "objects_per_second": filled.per_second, "peak_bytes": filled.peak_bytes,
                "index_file_bytes": filled.file_bytes, "seconds_until_listed": filled.until_listed_s,
            })
        });
        json!({
            "objects": self.objects, "object_bytes": self.object_bytes, "filled": filled, "puts": self.puts, "puts_per_second": self.puts_per_second,
            "looks_per_second": self.looks_per_second, "removes_per_second": self.removes_per_second,
            "first_names": self.first_names, "list_median_ms": self.list_median_ms, "list_worst_ms": self.list_worst_ms,
            "directory_resident_bytes": self.resident_bytes, "directory_peak_bytes": self.peak_bytes,
            "disks_used_bytes": self.disks_used_bytes, "index_file_bytes": self.file_bytes,
            "directory_resident_bytes_after_kill": self.resident_again_bytes, "directory_peak_bytes_after_kill": self.peak_again_bytes,
            "seconds_until_listed_after_end": self.after_end_s, "seconds_until_listed_after_kill": self.after_kill_s,
            "killed_under_load": {
                "puts": self.loaded.puts, "failed": self.loaded.failed, "looked_up": self.loaded.looked_up,
                "seconds_until_listed": self.loaded.until_listed_s,
            },
        })
    }

    pub(super) fn print(&self) {
        if let Some(filled) = &self.filled {
            println!(
                "{} objects filled in without the protocol, {:.0} a second; that took {} MiB of memory at most, and made files of {} MiB",
                self.objects - self.puts,
                filled.per_second,
                filled.peak_bytes >> 20,
                filled.file_bytes >> 20
            );
            println!(
                "a directory that was started over them lists names {:.1} s after its start",
                filled.until_listed_s
            );
        }
        println!(
            "{} objects put, {:.0} a second; names looked up: {:.0} a second; removed: {:.0}",
            self.puts, self.puts_per_second, self.looks_per_second, self.removes_per_second
        );
        println!(
            "the first {} names listed in {:.1} ms (median of {}; {:.1} at worst)",
            self.first_names, self.list_median_ms, self.lists, self.list_worst_ms
        );
        println!(
            "the directory has {} MiB resident, and had {} at most; {} and {} after it had been killed",
            self.resident_bytes >> 20,
            self.peak_bytes >> 20,
            self.resident_again_bytes >> 20,
            self.peak_again_bytes >> 20
        );
        println!(
            "the index has {} MiB on the directory's disk; all bricks have {} MiB in use",
            self.file_bytes >> 20,
            self.disks_used_bytes >> 20
        );
        println!(
            "a directory that was ended lists names {:.1} s after its start; one that was killed, {:.1} s",
            self.after_end_s, self.after_kill_s
        );
        println!(
            "one that was killed while names were put, {:.1} s: {} were put by then and until it had served for a while again, of which {} were looked up and are there; {} failed",
            self.loaded.until_listed_s, self.loaded.puts, self.loaded.looked_up, self.loaded.failed
        );
    }
}
