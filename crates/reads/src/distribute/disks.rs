//! How busy bricks' disks are for one asker, and how long they take: what answers told of that, and what was asked since.
//!
//! In the words of the paper on continuous retrieval: the load X, the access time C and the delay D of each disk. X is what the
//! brick said last would be before a request of the asker's stream, less by the time since then, and what this asker asked of it since.

use super::pace::Kind;
use super::retrieval::Disk;
use base::{BrickId, HashMap, Time};
use core::time::Duration;
use wire::Wait;

/// How much the newest answer weighs.
const NEWEST: f64 = 0.1;

/// What is known of a brick.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// What the disk takes, for short and for long reads.
    access_ns: [f64; 2],
    /// What else an answer takes.
    delay_ns: Option<f64>,
    /// How many were before a request at the last answer,
    queued: u32,
    /// which came then,
    told: Time,
    /// and how many were asked since.
    since: u32,
}

/// What is assumed of a disk that has not answered yet.
const UNKNOWN_NS: f64 = 100_000.0;

#[derive(Debug, Default)]
pub struct Disks {
    bricks: HashMap<BrickId, Known>,
}

impl Disks {
    /// A question that may lead to an access of its disk goes to a brick, a read or a write.
    pub fn asked(&mut self, brick: BrickId) {
        let known = self.bricks.entry(brick).or_default();
        known.since = known.since.saturating_add(1);
    }

    /// A brick answers a read after so long, not counted for how long it waited for its turn.
    pub fn answered(&mut self, now: Time, brick: BrickId, kind: Kind, response: Duration, wait: Wait) {
        let known = self.bricks.entry(brick).or_default();
        let disk_ns = f64::from(wait.disk_us) * 1e3;
        if wait.disk_us > 0 {
            blend(&mut known.access_ns[usize::from(kind == Kind::LongRead)], disk_ns);
        }
        let delay_ns = (response.as_nanos() as f64 - disk_ns).max(0.0);
        blend(known.delay_ns.get_or_insert(delay_ns), delay_ns);
        known.told(now, wait.queued);
    }

    /// A brick answers a write: it tells how busy it is, and nothing of how fast it reads.
    pub fn heard(&mut self, now: Time, brick: BrickId, wait: Wait) {
        self.bricks.entry(brick).or_default().told(now, wait.queued);
    }

    /// A brick as a disk, for reads of a kind; times count from the simulated or real time's origin. `queue` are this asker's own
    /// questions outstanding there: it is no less busy than that.
    pub fn disk(&self, now: Time, brick: BrickId, kind: Kind, queue: u32) -> Disk {
        let known = self.bricks.get(&brick).copied().unwrap_or_default();
        let [short_ns, long_ns] = known.access_ns;
        let (own_ns, other_ns) =
            if kind == Kind::LongRead { (long_ns, short_ns) } else { (short_ns, long_ns) };
        let access_ns = [own_ns, other_ns, UNKNOWN_NS].into_iter().find(|ns| *ns > 0.0).unwrap_or(UNKNOWN_NS);
        let age_ns = now.since(known.told).as_nanos() as f64;
        let told_ns = (f64::from(known.queued) * access_ns - age_ns).max(0.0);
        // What was asked since and is not outstanding any more was withdrawn, or answered by another.
        let since = known.since.min(queue);
        let load_ns = (told_ns + f64::from(since) * access_ns).max(f64::from(queue) * access_ns);
        Disk {
            free_ns: now.0 + (known.delay_ns.unwrap_or(0.0) + load_ns) as u64,
            access_ns: (access_ns as u64).max(1),
            queue,
        }
    }
}

impl Known {
    fn told(&mut self, now: Time, queued: u32) {
        (self.queued, self.told, self.since) = (queued, now, 0);
    }
}

fn blend(old: &mut f64, new: f64) {
    *old = if *old > 0.0 { *old + (new - *old) * NEWEST } else { new };
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BrickId = BrickId(1);
    const US: u64 = 1_000;

    fn wait(disk_us: u32, queued: u32) -> Wait {
        Wait { turn_us: 0, disk_us, queued }
    }

    fn answered(disks: &mut Disks, at_us: u64, disk_us: u32, queued: u32) {
        let response = Duration::from_micros(u64::from(disk_us) + 50);
        disks.answered(Time(at_us * US), A, Kind::Read, response, wait(disk_us, queued));
    }

    #[test]
    fn what_was_told_ages_and_what_was_asked_since_is_added() {
        let mut disks = Disks::default();
        answered(&mut disks, 0, 1_000, 4);
        let busy_us = |disks: &Disks, at_us: u64, queue: u32| {
            disks.disk(Time(at_us * US), A, Kind::Read, queue).free_ns / US - at_us
        };
        assert_eq!(busy_us(&disks, 0, 0), 50 + 4_000);
        assert_eq!(busy_us(&disks, 3_000, 0), 50 + 1_000);
        assert_eq!(busy_us(&disks, 9_000, 0), 50);
        disks.asked(A);
        disks.asked(A);
        assert_eq!(busy_us(&disks, 3_000, 2), 50 + 3_000);
        assert_eq!(busy_us(&disks, 9_000, 0), 50, "both were withdrawn");
        answered(&mut disks, 10_000, 1_000, 1);
        assert_eq!(busy_us(&disks, 10_000, 0), 50 + 1_000, "the newest word counts");
        assert_eq!(disks.disk(Time(10_000 * US), A, Kind::Read, 7).free_ns, (10_000 + 50 + 7_000) * US);
    }

    #[test]
    fn memory_says_nothing_of_the_disk_and_a_long_way_is_no_slow_disk() {
        let mut disks = Disks::default();
        answered(&mut disks, 0, 800, 0);
        answered(&mut disks, 1, 0, 0);
        assert_eq!(disks.disk(Time(US), A, Kind::Read, 0).access_ns, 800 * US);
        let late = Duration::from_millis(20);
        (0..200).for_each(|_| disks.answered(Time(US), A, Kind::Read, late, wait(800, 0)));
        let disk = disks.disk(Time(US), A, Kind::Read, 0);
        assert_eq!(disk.access_ns, 800 * US);
        assert!(disk.free_ns > Time(19_000 * US).0, "{disk:?}");
    }
}
