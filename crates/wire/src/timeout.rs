//! How long a gateway tries to serve a request of a volume.

use crate::{DecodeError, Reader, Wire};
use core::fmt;
use core::time::Duration;

/// After how long a gateway answers a request that it could not serve with an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoTimeout {
    /// It waits until it can be served.
    Never,
    /// In whole milliseconds, and at least one.
    After(Duration),
}

impl IoTimeout {
    /// Longer than a server takes to boot, so that bricks that come back by themselves are no errors to a file system; shorter
    /// than anybody waits for a command that hangs.
    pub const DEFAULT: IoTimeout = IoTimeout::After(Duration::from_secs(300));

    /// Of milliseconds as they are in records; 0 waits without end.
    pub fn of_ms(ms: u64) -> IoTimeout {
        if ms == 0 { IoTimeout::Never } else { IoTimeout::After(Duration::from_millis(ms)) }
    }

    /// The milliseconds that stand in records.
    pub fn ms(self) -> u64 {
        match self {
            IoTimeout::Never => 0,
            IoTimeout::After(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1),
        }
    }
}

impl Default for IoTimeout {
    fn default() -> IoTimeout {
        IoTimeout::DEFAULT
    }
}

impl fmt::Display for IoTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ms() {
            0 => f.pad("never"),
            ms if ms.is_multiple_of(1000) => f.pad(&format!("{} s", ms / 1000)),
            ms => f.pad(&format!("{ms} ms")),
        }
    }
}

impl Wire for IoTimeout {
    fn encode(&self, out: &mut crate::Writer<'_>) {
        self.ms().encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<IoTimeout, DecodeError> {
        Ok(IoTimeout::of_ms(u64::decode(reader)?))
    }
}
