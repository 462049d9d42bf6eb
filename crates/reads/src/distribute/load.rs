//! What an asker knows of bricks: its own questions outstanding at each, and how long answers take lately.

use super::cached::Cached;
use super::disks::Disks;
use super::pace::{Kind, Pace};
use super::retrieval::Disk;
use base::{BrickId, HashMap, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// A slow brick is asked beside those that stand in for it so often, and no more than a part of its time.
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(2);
const LOOK_SHARE: u32 = 4;

/// Queues and paces, by brick.
#[derive(Debug, Default)]
pub struct Load {
    outstanding: HashMap<BrickId, u32>,
    pace: Pace,
    disks: Disks,
    cached: Cached,
    /// When a slow brick that others stand in for is asked again, to see whether it still is.
    looked: BTreeMap<BrickId, Time>,
}

impl Load {
    /// A question went to `brick`, which is to answer by itself.
    pub fn begin(&mut self, brick: BrickId) {
        *self.outstanding.entry(brick).or_default() += 1;
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        if let Some(outstanding) = self.outstanding.get_mut(&brick) {
            *outstanding = outstanding.saturating_sub(1);
        }
    }

    /// Questions outstanding at `brick`.
    pub fn queue(&self, brick: BrickId) -> u32 {
        self.outstanding.get(&brick).copied().unwrap_or(0)
    }

    /// How long bricks take to answer.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The same, to learn.
    pub fn pace_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// How busy their disks are.
    pub fn disks_mut(&mut self) -> &mut Disks {
        &mut self.disks
    }

    /// What they are likely to have in memory.
    pub fn cached_mut(&mut self) -> &mut Cached {
        &mut self.cached
    }

    /// A brick's disk as far as is known, for reads of a kind.
    pub fn disk(&self, now: Time, brick: BrickId, kind: Kind) -> Disk {
        self.disks.disk(now, brick, kind, self.queue(brick))
    }

    /// Whether `brick`, for which others stand in, is due to be asked as well, to see whether it is still slow.
    pub fn is_look_due(&mut self, now: Time, brick: BrickId, kind: Kind) -> bool {
        let expected = Duration::from_nanos(self.pace.expected_ns(now, brick, kind));
        let next = now + LOOK_MIN.max(expected * LOOK_SHARE).min(LOOK_MAX);
        let due = self.looked.get(&brick).is_none_or(|due| *due <= now);
        if due {
            self.looked.insert(brick, next);
        }
        due
    }
}
