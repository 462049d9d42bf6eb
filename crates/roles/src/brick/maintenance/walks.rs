//! All walks of this brick: those that catch up, and the scrub's; and the blocks that any of them found lost.

use super::catch_up::CatchUps;
use super::context::Context;
use super::job::{Owner, Place};
use super::scrub::{Scrub, Scrubbed};
use super::walk::Walk;
use base::{BLOCK_U64, BrickId, GroupId, Time};
use std::collections::{BTreeMap, BTreeSet};
use volume::view::{Families, Groups};
use wire::{BrickStatus, GroupView, LostBlocks};

/// The most lost blocks that are named.
const LOST_MAX: usize = 64;

pub(super) struct Walks {
    catch_ups: CatchUps,
    scrub: Scrub,
    /// Blocks that nobody could make out, by walks that are over.
    lost: BTreeMap<GroupId, BTreeSet<Place>>,
}

impl Walks {
    pub(super) fn new(me: BrickId, scrubbed: u64) -> Walks {
        Walks { catch_ups: CatchUps::default(), scrub: Scrub::new(me, scrubbed), lost: BTreeMap::new() }
    }

    pub(super) fn catch_ups(&mut self) -> &mut CatchUps {
        &mut self.catch_ups
    }

    pub(super) fn scrub(&mut self) -> &mut Scrub {
        &mut self.scrub
    }

    pub(super) fn walk_mut(&mut self, owner: Owner) -> Option<&mut Walk> {
        match owner {
            Owner::CatchUp(group) => self.catch_ups.walk_mut(group),
            Owner::Scrub => self.scrub.walk_mut(),
        }
    }

    /// A view under which this brick works began.
    pub(super) fn on_view(&mut self, now: Time, view: &GroupView, me: BrickId) {
        // What was lost stays named, until the scrub has looked again.
        if let Some(mut before) = self.catch_ups.on_view(view, me) {
            self.lost.entry(view.group).or_default().extend(before.take_lost());
        }
        self.scrub.on_view(now, view, self.lost.get(&view.group));
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        self.catch_ups.on_group_gone(group);
        self.scrub.on_group_gone(group);
        // Only what is lost of groups that this brick still has is of interest.
        self.lost.remove(&group);
    }

    /// The scrub goes on to its next group as far as it can.
    pub(super) fn advance_scrub(&mut self, cx: &mut Context) {
        let through = self.scrub.advance(cx);
        through.into_iter().for_each(|scrubbed| self.on_scrubbed(scrubbed));
    }

    /// A span is settled: it may have been its group's last.
    pub(super) fn on_settled(&mut self, cx: &mut Context, owner: Owner) {
        match owner {
            Owner::CatchUp(group) => self.catch_ups.finish(cx, group),
            Owner::Scrub => {
                if let Some(scrubbed) = self.scrub.finish_group() {
                    self.on_scrubbed(scrubbed);
                }
            }
        }
    }

    fn on_scrubbed(&mut self, scrubbed: Scrubbed) {
        self.lost.insert(scrubbed.group, scrubbed.lost);
    }

    /// Writes down how far they are.
    pub(super) fn report(
        &self,
        cx: &Context,
        status: &mut BrickStatus,
        families: &Families,
        groups: &Groups,
    ) {
        status.groups.catching_up = self.catch_ups.status();
        status.scrub = self.scrub.status(&status.scrub, status.unreadable_blocks);
        let running = self.catch_ups.walks().chain(self.scrub.walk());
        let running = running.map(|walk| (walk.route().group, walk.lost()));
        let over = self.lost.iter().map(|(group, lost)| (*group, lost));
        let lost: BTreeSet<(GroupId, Place)> = over
            .chain(running)
            .flat_map(|(group, lost)| lost.iter().map(move |place| (group, *place)))
            .collect();
        status.rot.lost_blocks = lost.len() as u64;
        let named = lost.into_iter().filter_map(|(group, place)| {
            let view = cx.view(group)?;
            let (slot, geometry) = (view.slot_of(cx.me())?, families.geometry(view.volume)?);
            let block = geometry.volume_block(place.lba, geometry.data_index_at(place.lba, slot)?);
            let volume = groups.volume_of(group, place.branch);
            Some(LostBlocks { volume, offset: block * BLOCK_U64, length: BLOCK_U64 })
        });
        status.rot.lost = named.take(LOST_MAX).collect();
    }

    pub(super) fn parts(&self) -> (&CatchUps, &Scrub) {
        (&self.catch_ups, &self.scrub)
    }
}
