//! Disk I/O through io_uring: requests are queued in shared memory, asked with one system call, and answered in shared
//! memory; an eventfd wakes the loop.

use super::file::DiskFile;
use super::operation::{Completions, Kind, Operation};
use crate::shutdown::event_fd;
use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use store::Io;

/// Requests at the kernel at a time; more wait here.
const ENTRIES: u32 = 256;

pub struct Ring {
    ring: IoUring,
    files: Vec<DiskFile>,
    event: OwnedFd,
    /// What is at the kernel, by its number.
    slots: Vec<Slot>,
    free: Vec<usize>,
    waiting: VecDeque<(usize, Io)>,
    /// Slots of writes that are answered and must be synced, while the answers are gone through.
    to_sync: Vec<(usize, Operation)>,
}

/// Room for one request at the kernel. Its iovecs are used again and again.
#[derive(Default)]
struct Slot {
    operation: Option<Operation>,
    iovecs: Vec<libc::iovec>,
}

impl Ring {
    pub(super) fn new(disks: &[DiskFile]) -> io::Result<Ring> {
        let ring = build()?;
        let event = event_fd()?;
        let fds: Vec<RawFd> = disks.iter().map(DiskFile::fd).collect();
        ring.submitter().register_files(&fds)?;
        ring.submitter().register_eventfd(event.as_raw_fd())?;
        let slots = (0..ENTRIES).map(|_| Slot::default()).collect();
        let free = (0..ENTRIES as usize).rev().collect();
        Ok(Ring {
            ring,
            files: Vec::new(),
            event,
            slots,
            free,
            waiting: VecDeque::new(),
            to_sync: Vec::new(),
        })
    }

    /// Takes the files over, once there is a ring for them.
    pub(super) fn with_files(mut self, files: Vec<DiskFile>) -> Ring {
        self.files = files;
        self
    }

    pub(super) fn files(&self) -> &[DiskFile] {
        &self.files
    }

    pub(super) fn event_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    pub(super) fn push(&mut self, disk: usize, io: Io) {
        self.waiting.push_back((disk, io));
        self.fill();
    }

    pub(super) fn submit(&mut self) {
        self.fill();
        if self.ring.submission().is_empty() {
            return;
        }
        if let Err(error) = self.ring.submit() {
            // Out of memory for a moment, or interrupted: the entries stay queued, and the next turn asks again.
            tracing::debug!(%error, "io_uring did not take the requests; asking again");
        }
    }

    pub(super) fn complete(&mut self, done: &mut Completions) {
        for entry in self.ring.completion() {
            let slot = entry.user_data() as usize;
            let mut operation =
                self.slots[slot].operation.take().expect("the kernel answers what it was asked");
            let result =
                usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result()));
            if operation.wants_sync(&result) {
                self.to_sync.push((slot, operation));
                continue;
            }
            let file = &self.files[operation.disk];
            done.push(operation.finish(file, result));
            self.free.push(slot);
        }
        self.ask_syncs();
    }

    /// Asks for the `fdatasync` of writes that are answered; each keeps its slot.
    fn ask_syncs(&mut self) {
        while let Some((slot, operation)) = self.to_sync.pop() {
            self.ask(slot, operation);
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.waiting.len() + self.slots.len() - self.free.len()
    }

    fn fill(&mut self) {
        while let Some(&slot) = self.free.last()
            && let Some((disk, io)) = self.waiting.pop_front()
        {
            self.free.pop();
            self.ask(slot, Operation::new(disk, &self.files[disk], io));
        }
    }

    fn ask(&mut self, slot: usize, operation: Operation) {
        let entry = self.slots[slot].prepare(operation).user_data(slot as u64);
        // SAFETY: what the entry points at stays in its slot until the kernel has answered, see `Drop` too.
        unsafe { self.ring.submission().push(&entry) }.expect("as many slots as entries");
    }
}

impl Slot {
    /// Keeps the operation, and describes it to the kernel.
    fn prepare(&mut self, operation: Operation) -> squeue::Entry {
        let operation = self.operation.insert(operation);
        let file = Fixed(operation.disk as u32);
        match &mut operation.kind {
            Kind::Read { offset, buffer } => {
                opcode::Read::new(file, buffer.as_mut_ptr(), buffer.len() as u32).offset(*offset).build()
            }
            Kind::Write { offset, content, sync, .. } => {
                content.iovecs(&mut self.iovecs);
                let flags = sync.flags();
                match &self.iovecs[..] {
                    [one] => opcode::Write::new(file, one.iov_base.cast(), one.iov_len as u32)
                        .offset(*offset)
                        .rw_flags(flags)
                        .build(),
                    many => opcode::Writev::new(file, many.as_ptr(), many.len() as u32)
                        .offset(*offset)
                        .rw_flags(flags)
                        .build(),
                }
            }
            Kind::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel still writes to, and reads from, what the slots hold.
        let mut done = Vec::new();
        self.waiting.clear();
        while self.free.len() < self.slots.len() {
            if let Err(error) = self.ring.submit_and_wait(1)
                && error.kind() != io::ErrorKind::Interrupted
            {
                // Memory that the kernel may still use must not be freed.
                tracing::error!(%error, "io_uring does not answer; its buffers are left behind");
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            self.complete(&mut done);
        }
        // The kernel takes a ring apart at leisure, and would keep the files open, and locked, until then.
        if let Err(error) = self.ring.submitter().unregister_files() {
            tracing::debug!(%error, "io_uring keeps its files for a while");
        }
    }
}

fn build() -> io::Result<IoUring> {
    // Completions are noticed when the loop enters the kernel anyway, not by interrupting it.
    let modern = IoUring::builder().setup_coop_taskrun().setup_single_issuer().build(ENTRIES);
    match modern {
        Ok(ring) => Ok(ring),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(ENTRIES),
        Err(error) => Err(error),
    }
}
