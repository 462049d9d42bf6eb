//! Committed content that is not in its final place: applied but not journalled, journalled, being destaged. A version in an
//! upper layer hides the ones below.

use crate::discard::Region;
use crate::overlay::{Need, Overlay, Setting, Version};
use crate::record::Extent;
use base::{Stamp, Time, VolumeId};
use wire::Span;

#[derive(Default)]
pub(crate) struct Layers {
    /// Applied, not journalled.
    fresh: Overlay,
    durable: Overlay,
    /// On its way to its final place.
    destaging: Overlay,
    /// Since when there is journalled content.
    durable_since: Option<Time>,
}

impl Layers {
    fn all(&self) -> impl Iterator<Item = &Overlay> {
        [&self.fresh, &self.durable, &self.destaging].into_iter()
    }

    /// The versions of a block, newest first.
    pub(crate) fn versions(&self, volume: VolumeId, lba: u64) -> impl Iterator<Item = &Version> {
        self.all().filter_map(move |layer| layer.get(volume, lba))
    }

    /// Whether any layer has something at a slot's blocks.
    pub(crate) fn has_group(&self, volume: VolumeId, number: u64) -> bool {
        self.all().any(|layer| layer.group(volume, number).is_some())
    }

    pub(crate) fn holds_any(&self, region: Region) -> bool {
        self.all().any(|layer| layer.holds_any(region))
    }

    /// The first slot's address from `key` on at which there is something.
    pub(crate) fn first_from(&self, key: (VolumeId, u64)) -> Option<(VolumeId, u64)> {
        self.all().filter_map(|layer| layer.first_from(key)).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().all(Overlay::is_empty)
    }

    /// Bytes of journalled content in memory.
    pub(crate) fn journalled_bytes(&self) -> usize {
        self.durable.bytes() + self.destaging.bytes()
    }

    /// The journalled content that no cycle has begun to write.
    pub(crate) fn durable(&self) -> &Overlay {
        &self.durable
    }

    /// Since when there is some.
    pub(crate) fn durable_since(&self) -> Option<Time> {
        self.durable_since
    }

    /// The content that the cycle writes.
    pub(crate) fn destaging(&self) -> &Overlay {
        &self.destaging
    }

    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// A write is applied.
    pub(crate) fn apply(&mut self, span: Span, stamp: Stamp, setting: Setting<'_>, extents: &[Extent]) {
        self.fresh.put(span, stamp, setting, extents);
    }

    /// The journal knows that a write is applied.
    pub(crate) fn journal(&mut self, span: Span, stamp: Stamp, setting: Setting<'_>, extents: &[Extent]) {
        self.fresh.remove(span, stamp);
        self.durable.put(span, stamp, setting, extents);
    }

    /// The journal has a mend.
    pub(crate) fn mend(&mut self, span: Span, setting: Setting<'_>, extents: &[Extent]) {
        self.durable.put(span, Stamp::ZERO, setting, extents);
    }

    /// Room that was set aside for what was just journalled.
    pub(crate) fn take_over(&mut self, need: Need) {
        self.durable.need.add(need);
    }

    /// The journal has a discard. Gives back the slots that large writes brought.
    pub(crate) fn discard(&mut self, region: Region) -> Vec<u32> {
        self.durable.remove_region(region)
    }

    /// A group is durable.
    pub(crate) fn note_durable(&mut self, now: Time) {
        if self.durable_since.is_none() && !self.durable.is_empty() {
            self.durable_since = Some(now);
        }
    }

    /// A cycle begins with all that is journalled.
    pub(crate) fn begin_destaging(&mut self) {
        assert!(self.destaging.is_empty(), "two cycles at once");
        self.destaging = core::mem::take(&mut self.durable);
        self.durable_since = None;
    }

    /// The cycle has ended. Gives back the room that it did not need.
    pub(crate) fn end_destaging(&mut self) -> Need {
        core::mem::take(&mut self.destaging).need
    }

    /// More room is set aside for the cycle.
    pub(crate) fn add_to_cycle(&mut self, need: Need) {
        self.destaging.need.add(need);
    }

    /// Takes one of the pages that were set aside for the cycle, if there is one.
    pub(crate) fn spend_page(&mut self) -> bool {
        let has_one = self.destaging.need.pages > 0;
        self.destaging.need.pages -= u32::from(has_one);
        has_one
    }

    /// Takes one of the slots that were set aside for the cycle, if there is one.
    pub(crate) fn spend_slot(&mut self) -> bool {
        let has_one = self.destaging.need.slots > 0;
        self.destaging.need.slots -= u32::from(has_one);
        has_one
    }

    /// Recovery counts slots anew: those that were replaced are free.
    pub(crate) fn forget_replaced(&mut self) {
        self.durable.forget_replaced();
    }

    pub(crate) fn check(&self) {
        self.all().for_each(Overlay::check);
    }
}
