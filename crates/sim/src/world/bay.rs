//! A brick's disks: the store's words turned into the disk model's.
//!
//! Some show their heads: they choose among contested reads themselves, claim what they choose, and leave what another
//! brick claims before.

use base::Payload;
use bytes::Bytes;
use model::{Disk, DiskConfig, DiskFault, DiskRequest, Draw, PowerCut};
use std::collections::{BTreeMap, BTreeSet};
use store::{IoDone, IoFault, IoKind, IoToken};
use wire::disk::{Attempt, Contested};

/// A request, by its disk and the store's token.
type Request = (usize, IoToken);

/// The disks of one brick. They outlive its process.
pub(crate) struct Bay {
    disks: Vec<Disk>,
    /// Whether the disks choose among contested reads.
    pub(crate) shows_heads: bool,
    /// Contested reads that wait.
    contested: BTreeMap<Request, Contested>,
    /// Those that another brick serves, whose answer from the disk is nobody's.
    left: BTreeSet<Request>,
}

impl Bay {
    pub(crate) fn new(configs: impl Iterator<Item = DiskConfig>, shows_heads: bool) -> Bay {
        let disks = configs.map(Disk::new).collect();
        Bay { disks, shows_heads, contested: BTreeMap::new(), left: BTreeSet::new() }
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
    pub(crate) fn submit(
        &mut self,
        disk: usize,
        token: IoToken,
        kind: IoKind,
        draw: &mut Draw,
    ) -> (u64, u64) {
        let request = match kind {
            IoKind::Read { offset, length, contested } => {
                self.contested.extend(contested.map(|contested| ((disk, token), contested)));
                DiskRequest::Read { offset, length }
            }
            IoKind::Write { offset, payload, durable } => DiskRequest::Write { offset, payload, durable },
            IoKind::Flush => DiskRequest::Flush,
        };
        self.disks[disk].submit(request, draw)
    }

    /// Whether a request is a read that may still be left to another brick.
    pub(crate) fn is_contested(&self, disk: usize, token: IoToken) -> bool {
        self.contested.contains_key(&(disk, token))
    }

    /// The disk chooses a contested read, if it still waits: what to claim.
    pub(crate) fn choose(&mut self, disk: usize, token: IoToken) -> Option<Contested> {
        self.contested.remove(&(disk, token))
    }

    /// Another brick serves a read: the token of the request that is over with this, if it still waits.
    pub(crate) fn leave(&mut self, disk: usize, attempt: Attempt) -> Option<IoToken> {
        let is_it = |(request, contested): (&Request, &Contested)| {
            (request.0 == disk && contested.attempt.read == attempt.read).then_some(*request)
        };
        let request = self.contested.iter().find_map(is_it)?;
        self.contested.remove(&request);
        self.left.insert(request);
        Some(request.1)
    }

    /// The answer to a request, by the store's `token`; none where it was left to another brick.
    pub(crate) fn complete(&mut self, disk: usize, ticket: u64, token: IoToken) -> Option<IoDone> {
        self.contested.remove(&(disk, token));
        let result: Result<Bytes, IoFault> = self.disks[disk].complete(ticket).map_err(|fault| match fault {
            DiskFault::Unreadable => IoFault::Unreadable,
            DiskFault::Misplaced => {
                IoFault::Failed("a request outside the disk or not in whole sectors".to_owned())
            }
        });
        (!self.left.remove(&(disk, token))).then_some(IoDone { token, result })
    }

    /// The brick's process, or its machine, is gone.
    pub(crate) fn crash(&mut self, cut: PowerCut, draw: &mut Draw) {
        self.contested.clear();
        self.left.clear();
        self.disks.iter_mut().for_each(|disk| disk.crash(cut, draw));
    }
}
