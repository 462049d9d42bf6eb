//! Wakes the loop: a timer of the kernel's, because the wait of the loop counts in whole milliseconds.

use base::Time;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

#[derive(Debug)]
pub(super) struct Timer {
    fd: OwnedFd,
    armed: Option<Time>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Timer> {
        // SAFETY: timerfd_create takes no pointers.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Timer { fd: unsafe { OwnedFd::from_raw_fd(fd) }, armed: None })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Makes it readable at `due`; at once when that has passed. A new time replaces the one before.
    pub(super) fn arm(&mut self, now: Time, due: Time) {
        if self.armed == Some(due) && due > now {
            return;
        }
        self.armed = Some(due);
        // Zero would disarm it.
        let left = due.since(now).as_nanos().max(1);
        let it_value = libc::timespec {
            tv_sec: (left / 1_000_000_000) as libc::time_t,
            tv_nsec: (left % 1_000_000_000) as libc::c_long,
        };
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        // SAFETY: an open timer, one valid itimerspec, and no place for the old one.
        let result = unsafe { libc::timerfd_settime(self.fd(), 0, &spec, std::ptr::null_mut()) };
        assert_eq!(result, 0, "the kernel refuses {left} ns: {}", io::Error::last_os_error());
    }
}
