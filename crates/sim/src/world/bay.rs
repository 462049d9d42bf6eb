//! A brick's disks: the store's words turned into the disk model's.

use base::Payload;
use bytes::Bytes;
use model::{Disk, DiskConfig, DiskFault, DiskRequest, Draw, PowerCut};
use store::{IoDone, IoFault, IoKind, IoToken};

/// The disks of one brick. They outlive its process.
pub(crate) struct Bay {
    disks: Vec<Disk>,
    /// Whether their heads are seen.
    pub(crate) shows_heads: bool,
}

impl Bay {
    pub(crate) fn new(configs: impl Iterator<Item = DiskConfig>, shows_heads: bool) -> Bay {
        Bay { disks: configs.map(Disk::new).collect(), shows_heads }
    }

    /// Other disks with what these would show after their brick's process ended.
    pub(crate) fn copy(&self) -> Bay {
        Bay { disks: self.disks.iter().map(Disk::copy).collect(), ..*self }
    }

    pub(crate) fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// The disks, to be hurt.
    pub(crate) fn disks_mut(&mut self) -> &mut [Disk] {
        &mut self.disks
    }

    /// Puts content on stable storage at once, without a request.
    pub(crate) fn put(&mut self, disk: usize, offset: u64, content: Payload) {
        self.disks[disk].put(offset, &content);
    }

    /// Takes a store's request: the disk's ticket, and when it is done, in nanoseconds from now.
    pub(crate) fn submit(&mut self, disk: usize, kind: IoKind, draw: &mut Draw) -> (u64, u64) {
        let request = match kind {
            IoKind::Read { offset, length, .. } => DiskRequest::Read { offset, length },
            IoKind::Write { offset, payload, durable } => DiskRequest::Write { offset, payload, durable },
            IoKind::Flush => DiskRequest::Flush,
        };
        self.disks[disk].submit(request, draw)
    }

    /// The answer to a request.
    pub(crate) fn complete(&mut self, disk: usize, ticket: u64, token: IoToken) -> IoDone {
        let result: Result<Bytes, IoFault> = self.disks[disk].complete(ticket).map_err(|fault| match fault {
            DiskFault::Unreadable => IoFault::Unreadable,
            DiskFault::Misplaced => {
                IoFault::Failed("a request outside the disk or not in whole sectors".to_owned())
            }
        });
        IoDone { token, result }
    }

    /// The brick's process, or its machine, is gone.
    pub(crate) fn crash(&mut self, cut: PowerCut, draw: &mut Draw) {
        self.disks.iter_mut().for_each(|disk| disk.crash(cut, draw));
    }
}
