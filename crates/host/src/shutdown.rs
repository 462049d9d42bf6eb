//! Ends the loops: a flag and an eventfd that every loop watches.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A request to stop; clones are one and the same.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    event: OwnedFd,
}

/// The eventfd that the signal handler writes to; -1 before [`Shutdown::on_signals`].
static SIGNALLED: AtomicI32 = AtomicI32::new(-1);

impl Shutdown {
    /// Nothing is requested yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Shutdown> {
        Ok(Shutdown(Arc::new(Inner { requested: AtomicBool::new(false), event: event_fd()? })))
    }

    /// Requested by SIGTERM or SIGINT. SIGPIPE is ignored from now on.
    ///
    /// # Errors
    /// As [`Shutdown::new`].
    pub fn on_signals() -> io::Result<Shutdown> {
        let shutdown = Shutdown::new()?;
        SIGNALLED.store(shutdown.fd(), Ordering::SeqCst);
        // The handler may run as long as the process does, so that its descriptor is never closed.
        std::mem::forget(shutdown.clone());
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the handler only loads an atomic and calls write(2), which is async-signal-safe.
            unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        }
        // SAFETY: ignoring a signal has no handler to be unsafe in.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        Ok(shutdown)
    }

    /// Asks all loops to end.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        signal_event(self.fd());
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst) || self.is_signalled()
    }

    /// Becomes readable, for good, when it is asked for.
    pub fn fd(&self) -> RawFd {
        self.0.event.as_raw_fd()
    }

    fn is_signalled(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        SIGNALLED.load(Ordering::Relaxed) == self.fd()
            // SAFETY: `poll` is one valid pollfd for the length of the call.
            && unsafe { libc::poll(&mut poll, 1, 0) } > 0
    }
}

extern "C" fn on_signal(_signal: libc::c_int) {
    signal_event(SIGNALLED.load(Ordering::Relaxed));
}

/// A new eventfd that never blocks.
pub(crate) fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no pointers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes an eventfd readable.
pub(crate) fn signal_event(fd: RawFd) {
    let one = 1u64;
    // SAFETY: eight valid bytes; a full counter or a bad descriptor is an error that changes nothing.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}
