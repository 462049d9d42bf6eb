//! What a brick does when the file system under one of its disks is full: it says so, waits until there is room, and begins
//! anew as after a restart. A store ends its work at the first failed write, since nobody knows what reached the disk, and
//! recovery finds that out. What a store does when the disk itself has no room left is in `store::full_disk`.

use crate::disk::DiskFile;
use base::Time;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest pause before a brick begins anew, and between two looks for room.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest. A brick that finds room for a moment only holds up its groups' writes once in this time.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// A brick that ran for so long had room: the next pause is short again.
const CALM: Duration = Duration::from_secs(600);
/// With less than this on the file system it would fail again at once: a journal writes more in a second of load.
const ROOM_MIN_BYTES: u64 = 1 << 20;

/// How long the next wait lasts at least: each time twice as long, until the brick ran in peace.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    pub(crate) fn new() -> Pauses {
        Pauses(PAUSE_MIN)
    }

    pub(crate) fn next(&self) -> Duration {
        self.0
    }

    /// The brick ran for `time` until it met a full disk.
    pub(crate) fn ran(&mut self, time: Duration) {
        self.0 = if time >= CALM { PAUSE_MIN } else { (self.0 * 2).min(PAUSE_MAX) };
    }
}

/// A brick that waits for room.
#[derive(Debug)]
pub(crate) struct Wait {
    path: PathBuf,
    next_look: Time,
}

impl Wait {
    pub(crate) fn begin(now: Time, pause: Duration, disk: &DiskFile) -> Wait {
        tracing::error!(
            disk = %disk.path().display(),
            pause_s = pause.as_secs(),
            "no space left on the file system of this disk: the brick serves nothing until some is freed there; it looks \
             every second, and begins anew by itself after the pause at the earliest"
        );
        Wait { path: disk.path().to_owned(), next_look: now + pause }
    }

    /// When it looks for room next.
    pub(crate) fn next_look(&self) -> Time {
        self.next_look
    }

    /// Looks, if it is time to. `true` when the brick can begin anew.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + PAUSE_MIN;
        let has_room = has_room(&self.path);
        if has_room {
            tracing::warn!(disk = %self.path.display(), "there is room again: the brick begins anew");
        }
        has_room
    }
}

/// A device (thinly provisioned, say) does not tell: it is tried.
fn has_room(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    !is_file || free_bytes(path).is_none_or(|free| free >= ROOM_MIN_BYTES)
}

/// What the file system of `path` has left for this process; `None` where it does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all zeros is a valid `statvfs`.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends in zero, and a valid place for the answer.
    (unsafe { libc::statvfs(path.as_ptr(), &mut stat) } == 0).then(|| stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute_and_are_short_again_after_calm() {
        let mut pauses = Pauses::new();
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(pauses.next().as_secs());
            pauses.ran(Duration::from_secs(5));
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        pauses.ran(CALM);
        assert_eq!(pauses.next(), PAUSE_MIN);
    }
}
