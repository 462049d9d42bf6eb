//! Disk I/O by system calls on a few threads, for kernels without io_uring.

use super::file::DiskFile;
use super::operation::{Completions, Kind, Operation};
use crate::shutdown::{event_fd, signal_event};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use store::Io;

const THREADS: usize = 4;

/// The threads and what passes between them and the loop.
pub struct Plain {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    queued: Vec<Operation>,
    in_flight: usize,
}

struct Shared {
    files: Vec<DiskFile>,
    event: OwnedFd,
    queue: Mutex<Queue>,
    has_work: Condvar,
}

#[derive(Default)]
struct Queue {
    asked: VecDeque<Operation>,
    /// Finished by the loop's thread, so that buffers return to its pool.
    answered: Vec<(Operation, io::Result<usize>)>,
    is_closed: bool,
}

impl Plain {
    pub(super) fn new(files: Vec<DiskFile>) -> io::Result<Plain> {
        let shared =
            Arc::new(Shared { files, event: event_fd()?, queue: Mutex::default(), has_work: Condvar::new() });
        let start = |number| {
            let shared = shared.clone();
            thread::Builder::new().name(format!("disk-{number}")).spawn(move || shared.work())
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        Ok(Plain { shared, threads, queued: Vec::new(), in_flight: 0 })
    }

    pub(super) fn files(&self) -> &[DiskFile] {
        &self.shared.files
    }

    pub(super) fn event_fd(&self) -> RawFd {
        self.shared.event.as_raw_fd()
    }

    pub(super) fn push(&mut self, disk: usize, io: Io) {
        self.queued.push(Operation::new(disk, &self.shared.files[disk], io));
        self.in_flight += 1;
    }

    pub(super) fn submit(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        self.shared.lock().asked.extend(self.queued.drain(..));
        self.shared.has_work.notify_all();
    }

    pub(super) fn complete(&mut self, done: &mut Completions) {
        let answered = std::mem::take(&mut self.shared.lock().answered);
        self.in_flight -= answered.len();
        done.extend(answered.into_iter().map(|(operation, result)| {
            let file = &self.shared.files[operation.disk];
            operation.finish(file, result)
        }));
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.has_work.notify_all();
        self.threads.drain(..).for_each(|thread| thread.join().expect("a disk thread does not panic"));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics while it holds the queue")
    }

    fn work(&self) {
        while let Some(mut operation) = self.next() {
            let file = &self.files[operation.disk];
            let mut result = run(file, &mut operation);
            if operation.wants_sync(&result) {
                result = run(file, &mut operation);
            }
            self.lock().answered.push((operation, result));
            signal_event(self.event.as_raw_fd());
        }
    }

    fn next(&self) -> Option<Operation> {
        let idle = |queue: &mut Queue| queue.asked.is_empty() && !queue.is_closed;
        let mut queue =
            self.has_work.wait_while(self.lock(), idle).expect("no thread panics while it holds it");
        queue.asked.pop_front()
    }
}

fn run(file: &DiskFile, operation: &mut Operation) -> io::Result<usize> {
    match &mut operation.kind {
        Kind::Read { offset, buffer } => match file.file().read_exact_at(buffer, *offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            other => other.map(|()| buffer.len()),
        },
        Kind::Write { offset, content, sync, .. } => {
            let mut iovecs = Vec::new();
            content.iovecs(&mut iovecs);
            let (at, flags) = (*offset as libc::off_t, sync.flags());
            // SAFETY: the iovecs point into the content, which lives on.
            let count = unsafe { libc::pwritev2(file.fd(), iovecs.as_ptr(), iovecs.len() as i32, at, flags) };
            usize::try_from(count).map_err(|_| io::Error::last_os_error())
        }
        Kind::Flush => file.file().sync_data().map(|()| 0),
    }
}
