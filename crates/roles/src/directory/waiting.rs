//! Commands that wait: for a volume to be ready, or for groups to be in order.

use super::store::Asker;
use base::{Time, VolumeId};
use std::collections::BTreeMap;
use wire::AdminRequest;

/// A request for a cut that has to wait until the groups are in order.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) until: Time,
    pub(super) asker: Asker,
    pub(super) request: AdminRequest,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    creating: BTreeMap<VolumeId, Vec<Asker>>,
    wishes: Vec<Wish>,
}

impl Waiting {
    /// Whoever asks is answered when the volume is ready.
    pub(super) fn for_volume(&mut self, volume: VolumeId, asker: Asker) {
        self.creating.entry(volume).or_default().push(asker);
    }

    /// The volume is ready, or will never be: who waited for it.
    pub(super) fn take_for(&mut self, volume: VolumeId) -> Vec<Asker> {
        self.creating.remove(&volume).unwrap_or_default()
    }

    /// The same command does not wait twice.
    pub(super) fn wish(&mut self, wish: Wish) {
        if !self.wishes.iter().any(|of| of.asker == wish.asker) {
            self.wishes.push(wish);
        }
    }

    pub(super) fn take_wishes(&mut self) -> Vec<Wish> {
        core::mem::take(&mut self.wishes)
    }

    pub(super) fn has(&self, asker: Asker) -> bool {
        self.creating.values().flatten().any(|of| *of == asker)
            || self.wishes.iter().any(|of| of.asker == asker)
    }

    /// Nobody waits any more.
    pub(super) fn take_all(&mut self) -> Vec<Asker> {
        let creating = core::mem::take(&mut self.creating).into_values().flatten();
        creating.chain(self.take_wishes().into_iter().map(|wish| wish.asker)).collect()
    }
}
