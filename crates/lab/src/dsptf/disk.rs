//! One disk, a scheduler and a closed loop: what Figure 1 needs, below bricks and networks.

use crate::experiment::{Job, Sample};
use base::{Mechanics, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, SECTOR_BYTES};
use proto::heads::{HeadQueue, Policy};
use serde_json::json;
use std::sync::Arc;

/// A constant number of small random reads at one disk.
pub(super) struct DiskLoop {
    pub(super) drive: String,
    pub(super) model: Arc<DriveModel>,
    pub(super) options: DriveOptions,
    pub(super) policy: Policy,
    /// Accesses pending at any time, the one in service included: with two there is nothing to choose from.
    pub(super) pending: u32,
    pub(super) bytes: u64,
    pub(super) warm_up: u64,
    pub(super) requests: u64,
}

impl Job for DiskLoop {
    fn describe(&self) -> serde_json::Value {
        json!({
            "job": "disk loop", "drive": self.drive, "options": format!("{:?}", self.options),
            "policy": format!("{:?}", self.policy), "pending": self.pending, "bytes": self.bytes,
            "warm_up": self.warm_up, "requests": self.requests,
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut drive = Drive::with_options(self.model.clone(), self.options);
        let mut queue = HeadQueue::new(self.policy);
        let count =
            u32::try_from(self.bytes / SECTOR_BYTES).map_err(|_| "accesses are too long".to_owned())?;
        let last = self.model.capacity_sectors() - u64::from(count);
        let mut push = |queue: &mut HeadQueue<Access>, drive: &Drive| {
            let sector = random.u64(..=last);
            queue.push(drive.position_of(sector, false), Access { sector, count, is_write: false });
        };
        (0..self.pending).for_each(|_| push(&mut queue, &drive));
        let (mut now, mut begin) = (Time::ZERO, Time::ZERO);
        let mut serving = queue.pick(now, &drive);
        for done in 0..self.warm_up + self.requests {
            if done == self.warm_up {
                begin = now;
            }
            now = drive.serve(now, serving.expect("the loop is closed").item).done;
            // The next access is chosen before the successor of this one comes, unless there is none.
            let next = queue.pick(now, &drive);
            push(&mut queue, &drive);
            serving = next.or_else(|| queue.pick(now, &drive));
        }
        let seconds = now.since(begin).as_secs_f64();
        let values = [("throughput_iops".to_owned(), self.requests as f64 / seconds)].into();
        Ok(Sample { values, simulated_ns: now.0, events: self.warm_up + self.requests, ..Sample::default() })
    }
}
