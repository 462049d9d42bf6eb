//! How long a disk works to bring a block home, as it is told ([`Reply::Home`]): where content waits for that, bricks are compared by it.

use base::Time;
use core::time::Duration;
use wire::disk::Reply;

/// So many blocks, or so much of the disk's time, and at the end of each round of work it is told how long the disk takes to bring blocks home.
const TOLD_BLOCKS: u64 = 256;
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// How long the disk works to bring blocks home, since that was told last.
#[derive(Debug, Default)]
pub struct Labour {
    /// Since when it works.
    since: Option<Time>,
    worked: Duration,
    blocks: u64,
}

impl Labour {
    /// The disk works from now on, or does not.
    pub fn note(&mut self, now: Time, is_at_work: bool) {
        match self.since {
            None if is_at_work => self.since = Some(now),
            Some(since) if !is_at_work => {
                self.worked += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// So many blocks came home.
    pub fn brought(&mut self, blocks: u64) {
        self.blocks += blocks;
    }

    /// What is to be told: at the end of a round of work, or of enough.
    pub fn tell(&mut self, now: Time, is_over: bool) -> Option<Reply> {
        let lasting = self.since.map_or(Duration::ZERO, |since| now.since(since));
        let took = self.worked + lasting;
        if self.blocks == 0 || (self.blocks < TOLD_BLOCKS && took < TOLD_AFTER && !is_over) {
            return None;
        }
        let told = Reply::Home { blocks: self.blocks, took_ns: took.as_nanos() as u64 };
        *self = Labour { since: self.since.map(|_| now), ..Labour::default() };
        Some(told)
    }
}
