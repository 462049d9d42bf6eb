//! File descriptors: how many this process may have, and one that is kept for the moment when there are none.

use std::fs::File;
use std::io;

/// What is assumed where the system does not say.
const USUAL: usize = 1024;

/// Raises the soft limit to the hard one: the soft one is small for the sake of programs that use `select`. How many this process
/// may have from now on.
pub fn raise() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files; it stays as it is");
            limit.current
        }
    };
    current.map_or(usize::MAX, |current| usize::try_from(current).unwrap_or(USUAL))
}

/// Whether a connection could not be taken because the process, or the system, has no descriptor or memory left for it.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM]
        .into_iter()
        .any(|code| error.raw_os_error() == Some(code))
}

/// A descriptor that is given up to take a connection for which there is no other.
#[derive(Debug, Default)]
pub(crate) struct Reserve(Option<File>);

impl Reserve {
    /// Takes one into reserve again, where that is possible.
    pub(crate) fn restock(&mut self) {
        if self.0.is_none() {
            self.0 = File::open("/dev/null").ok();
        }
    }

    /// Gives it up. `false` where there is none.
    pub(crate) fn spend(&mut self) -> bool {
        self.0.take().is_some()
    }
}
