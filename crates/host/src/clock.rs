//! Time as the machines get it: the Unix epoch at the start plus what the monotonic clock counted since.

use base::Time;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Never runs backwards, and a jump of the wall clock after the start changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
    start: Instant,
}

impl Clock {
    /// Reads the wall clock, for the only time. One that stands before 1970 counts as 1970.
    pub fn start() -> Clock {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { epoch_ns: epoch.as_nanos() as u64, start: Instant::now() }
    }

    pub fn now(&self) -> Time {
        Time(self.epoch_ns) + self.start.elapsed()
    }
}
