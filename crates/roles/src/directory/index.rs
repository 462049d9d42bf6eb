//! The index of objects, as the directory has it: questions go to it, and what it asks of its stores goes to the driver.

use super::desk::Desk;
use super::event::{DirectoryEffect, send};
use super::members::{full, fullness};
use base::{BrickId, NodeId, Time};
use objects::index::{BucketStreams, Index, IndexConfig, IndexEffect, ShardEvent};
use std::collections::BTreeSet;
use wire::{BrickPlace, IndexRequest, Version};

/// From this version on daemons know that fragments are moved to bricks with more room.
const MOVES: Version = Version(17);

pub(super) struct Objects {
    index: Index,
    fx: Vec<IndexEffect>,
}

impl Objects {
    pub(super) fn new(config: &IndexConfig, streams: &BucketStreams) -> Objects {
        let mut objects = Objects { index: Index::new(config), fx: Vec::new() };
        objects.set_streams(streams);
        objects
    }

    /// Buckets belong to these streams from now on.
    pub(super) fn set_streams(&mut self, streams: &BucketStreams) {
        self.index.set_streams(streams);
    }

    /// These bricks are there and take fragments: what they have, only they move.
    pub(super) fn set_staying(&mut self, bricks: BTreeSet<BrickId>) {
        self.index.set_staying(bricks);
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.index.set_rules(rules);
    }

    /// A gateway asks; or a brick, of versions that it has.
    pub(super) fn on_request(
        &mut self,
        now: Time,
        from: NodeId,
        operation: u64,
        request: IndexRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.index.on_request(now, from, operation, request, &mut self.fx);
        self.hand_over(fx);
    }

    pub(super) fn on_shard(
        &mut self,
        now: Time,
        shard: u16,
        event: ShardEvent,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.index.on_shard(now, shard, event, &mut self.fx);
        self.hand_over(fx);
    }

    pub(super) fn settle(&mut self, fx: &mut Vec<DirectoryEffect>) {
        self.index.settle(&mut self.fx);
        self.hand_over(fx);
    }

    pub(super) fn wake(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if self.deadline().is_some_and(|due| due <= now) {
            self.index.wake(now, &mut self.fx);
            self.hand_over(fx);
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.index.deadline()
    }

    pub(super) fn check(&self) {
        self.index.check();
    }

    fn hand_over(&mut self, fx: &mut Vec<DirectoryEffect>) {
        for effect in self.fx.drain(..) {
            match effect {
                IndexEffect::Send { to, message } => send(fx, to, message),
                IndexEffect::Shard { shard, effect } => fx.push(DirectoryEffect::Shard { shard, effect }),
            }
        }
    }
}

impl Desk {
    /// All bricks, and which of them are to get fragments of new versions. `None` as long as it is not known who is there: a moment after a start
    /// each brick that was not heard yet would seem to be away.
    pub(super) fn places_of_fragments(&self, now: Time) -> Option<Vec<BrickPlace>> {
        let bricks = self.cluster.records.bricks.keys();
        let are_known = bricks.clone().all(|brick| self.cluster.leases.is_settled(now, *brick));
        // Who is older cannot read a manifest whose segments have moved.
        let may_move = self.cluster.older_than(MOVES).is_none();
        are_known.then(|| bricks.filter_map(|brick| self.place_of_fragments(now, *brick, may_move)).collect())
    }

    /// Those that are there and take fragments.
    pub(super) fn bricks_that_stay(&self, now: Time) -> Option<BTreeSet<BrickId>> {
        let stays = |place: &BrickPlace| place.takes_more && !place.is_lost;
        Some(
            self.places_of_fragments(now)?
                .iter()
                .filter(|place| stays(place))
                .map(|place| place.brick)
                .collect(),
        )
    }

    fn place_of_fragments(&self, now: Time, brick: BrickId, may_move: bool) -> Option<BrickPlace> {
        let record = self.cluster.records.bricks.get(&brick)?;
        let status = self.cluster.leases.get(brick).map(|lease| &lease.status);
        let has_room = status.is_some_and(|status| fullness(status) < full::JOIN);
        let space = status.map(|status| status.space).unwrap_or_default();
        let is_heard = self.cluster.leases.is_alive(now, brick);
        // What an old disk lacks is as good as gone with it, although the disk is the same.
        let found_old = self.cluster.records.runs.get(&brick).map_or(0, |run| run.found_old);
        Some(BrickPlace {
            brick,
            address: record.address.clone(),
            takes_more: has_room && is_heard && self.cluster.takes_groups(brick),
            is_heard,
            is_evicted: record.evicted,
            free_bytes: space.capacity_bytes.saturating_sub(space.used_bytes),
            is_lost: self.members.is_given_up(&self.cluster, now, brick),
            disks: record.disks.iter().fold(found_old, |all: u64, disk| all.rotate_left(7) ^ disk),
            capacity_bytes: if may_move { space.capacity_bytes } else { 0 },
        })
    }
}
