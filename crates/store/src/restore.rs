//! What the journal's records say is done again: to an open store that asks nothing of its disk yet.

use crate::discard::Region;
use crate::overlay::Setting;
use crate::page_scan::PageScan;
use crate::record::{Body, Extent, Record, inline_bytes};
use crate::running::Running;
use crate::split::Portion;
use crate::writes::Write;
use base::{Stamp, VolumeId};
use wire::disk::{Recovered, Staged};

/// A slot that the journal holds, and the blocks that it is for if that is decided: a volume, and the address in slots.
struct Held {
    slot: u32,
    owner: Option<(VolumeId, u64)>,
}

impl Running {
    /// Does again what a record says.
    pub(crate) fn replay(&mut self, record: Record) {
        match record {
            Record::Stage { staged, extents, .. } => self.replay_stage(staged, extents),
            Record::Apply { stamp } => self.replay_apply(stamp, None),
            Record::Image { stamp, extents } => self.replay_apply(stamp, Some(&extents)),
            Record::Drop { stamp } => self.forget(stamp),
            Record::Mend { span, width, stamps, extents, .. } => {
                self.blocks.discards.end_at(&span);
                self.blocks.layers.mend(span, Setting::Each(width, &stamps), &extents);
            }
            Record::Note { key, value } => self.log.facts.note(key, value),
            Record::Discard { volume } => self.replay_discard(Region::volume(volume)),
            Record::DiscardStretch { volume, stretch } => {
                self.replay_discard(Region { volume, stretch: Some(stretch) });
            }
            Record::Remember { completions } => {
                completions.into_iter().for_each(|completion| self.log.facts.remember(completion));
            }
            Record::Checkpoint { notes, completions, discards } => {
                self.log.facts.notes.reset(notes);
                completions.into_iter().for_each(|completion| self.log.facts.remember(completion));
                self.blocks.discards.reset(discards);
            }
            Record::Sheets { sheets } => self.log.facts.notes.reset_sheets(sheets),
        }
    }

    /// All records are replayed and all pages are known: accounts for slots, and sets room aside. An error is a slot that is
    /// claimed twice.
    pub(crate) fn end_replay(&mut self, pages: &PageScan) -> Result<Recovered, u32> {
        self.blocks.pages.set_high(pages.high());
        self.pages_read = pages.read();
        self.forget_doomed();
        for Held { slot, owner } in self.slots_in_journal() {
            // A slot that is at home already must be so at the very blocks that the journal has it for.
            let at_home = owner.is_some() && pages.owner(slot) == owner;
            if !at_home && !self.blocks.slots.mark(slot) {
                return Err(slot);
            }
        }
        for slot in self.log.facts.notes.slots() {
            if !self.blocks.slots.mark(slot) {
                return Err(slot);
            }
        }
        self.reserve_recovered();
        self.blocks.layers.note_durable(self.device.now());
        let is_discarding = !self.blocks.discards.is_empty();
        if is_discarding || self.log.facts.notes.worn().next().is_some() {
            self.destage.hurry(true);
        }
        Ok(Recovered {
            staged: self.log.writes.iter().map(|(_, write)| write.staged().clone()).collect(),
            completions: self.log.facts.completions().collect(),
            completions_max: self.log.facts.completions_max(),
            notes: self.log.facts.all_notes(),
        })
    }

    fn replay_stage(&mut self, staged: Staged, extents: Vec<Extent>) {
        self.forget(staged.write.stamp);
        self.blocks.discards.end_at(&staged.write.span);
        let previous = staged.change.previous().len() * 8;
        let cost = inline_bytes(&extents) + staged.write.span.count as usize * 28 + 160 + previous;
        self.log.writes.insert(Write::recovered(staged, extents, cost));
    }

    fn replay_apply(&mut self, stamp: Stamp, image: Option<&[Extent]>) {
        // A write that is not known is at home: it was applied before the tail.
        let Some(write) = self.log.writes.remove(stamp) else { return };
        self.log.facts.remember(write.completion());
        let (span, extents) = (write.staged().write.span, image.unwrap_or(write.extents()));
        self.blocks.layers.journal(span, stamp, write.setting(), extents);
    }

    fn replay_discard(&mut self, region: Region) {
        // The slots that it gives back count as free: recovery counts them anew.
        self.blocks.layers.discard(region);
        self.log.writes.of(region).into_iter().for_each(|stamp| self.forget(stamp));
        self.blocks.discards.log(region);
    }

    /// Writes that a checkpoint carried forward although their blocks were being given back.
    fn forget_doomed(&mut self) {
        let logged: Vec<Region> = self.blocks.discards.logged().collect();
        let doomed: Vec<Stamp> = logged.into_iter().flat_map(|region| self.log.writes.of(region)).collect();
        doomed.into_iter().for_each(|stamp| self.forget(stamp));
    }

    fn forget(&mut self, stamp: Stamp) {
        drop(self.log.writes.remove(stamp));
    }

    /// The slots that hold what was decided and is maybe not at home yet. All records are replayed.
    pub(crate) fn slots_to_bring_home(&mut self) -> Vec<u32> {
        self.slots_in_journal()
            .into_iter()
            .filter(|held| held.owner.is_some())
            .map(|held| held.slot)
            .collect()
    }

    /// The slots that the journal holds. Those that a later large write has replaced are free again.
    fn slots_in_journal(&mut self) -> Vec<Held> {
        self.blocks.layers.forget_replaced();
        let journalled = self.blocks.layers.durable().groups().filter_map(|(volume, number, group)| {
            Some(Held { slot: group.slot?, owner: Some((volume, number)) })
        });
        let staged = self.log.writes.iter().flat_map(|(_, write)| write.extents());
        let staged = staged.filter_map(|extent| match extent.body {
            Body::Slot(slot) => Some(Held { slot, owner: None }),
            _ => None,
        });
        journalled.chain(staged).collect()
    }

    /// Room for what the journal holds.
    fn reserve_recovered(&mut self) {
        let need = self.blocks.need_of(self.blocks.layers.durable());
        let need = self.blocks.reserve(need);
        self.blocks.layers.take_over(need);
        let staged: Vec<Stamp> = self.log.writes.iter().map(|(stamp, _)| stamp).collect();
        for stamp in staged {
            let write = self.log.writes.known_mut(stamp);
            let portions: Vec<Portion> = write.extents().iter().map(Portion::of).collect();
            let need = self.blocks.need_recovered(write.staged().write.span, write.setting(), &portions);
            write.set_need(self.blocks.reserve(need));
        }
    }
}
