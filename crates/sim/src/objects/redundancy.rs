//! When all is healed, every object comes to survive the loss of as many bricks as it was put to survive: bricks make again what was lost. Where no more
//! bricks than that are left it survives the loss of all but one.
//!
//! That is tried with the loss of each one brick, and with some choices of as many as may be lost: each segment is read from all others. Then a brick
//! really loses all that it has, and it is tried once more: whatever went wrong before may have cost objects too much to judge them by it.

use super::named::{NAMES, Named};
use crate::checkers::Violation;
use crate::units::SECOND;
use crate::world::event::Input;
use crate::world::{Node, World};
use base::{BrickId, NodeId};
use objects::object::{AccessStrategy, Get, Manifest, ObjectError, SegmentRecord};
use roles::gateway::Segment;
use std::collections::BTreeSet;
use wire::{IndexError, ObjectInfo};

/// Bricks have made again what was lost within this time: they look whether a brick is lost every half minute, and again after a minute.
const RESTORED_NS: u64 = 900 * SECOND;
/// A segment of which enough is there is read within this time.
const READ_NS: u64 = 60 * SECOND;
const POLL_NS: u64 = 5 * SECOND;
/// So many choices of several bricks are tried of each segment.
const CHOICES: usize = 6;

/// A segment that is being read from some of its bricks.
pub(super) struct Probe {
    tag: u64,
    /// Why it could not be read.
    result: Option<Result<(), String>>,
}

impl World {
    pub(super) fn audit_redundancy_of_objects(&mut self) {
        if self.shape.disks.are_small {
            // What would fill a disk is not made again on it.
            return;
        }
        let lost = self.lost_of_objects();
        self.await_redundancy_of_objects(lost);
        self.exchange_disks();
        // The directory has noticed then.
        while self
            .nodes
            .iter()
            .filter_map(Node::brick)
            .any(|id| self.faults.is_unsettled(id, self.time.now_ns()))
        {
            self.run_until(self.time.now_ns() + POLL_NS);
        }
        let verdict = self.converge();
        self.judge(verdict);
        // They had survived all before, and this is one more.
        self.await_redundancy_of_objects(lost);
    }

    fn await_redundancy_of_objects(&mut self, lost: u64) {
        let end_ns = self.time.now_ns() + RESTORED_NS;
        for (name, key) in NAMES.iter().enumerate() {
            while self.judges.are_content()
                && let Some(why) = self.lacks(name, lost)
            {
                if self.time.now_ns() >= end_ns {
                    let what = format!("object {key} does not survive as much as it was put to: {why}");
                    return self.judge(Err(Violation::new("redundancy", what)));
                }
                self.run_until(self.time.now_ns() + POLL_NS);
            }
        }
    }

    /// What an object would not survive, if something.
    fn lacks(&mut self, name: usize, lost: u64) -> Option<String> {
        let (info, manifest) = match self.look_at_object(name)? {
            Ok(looked) => looked,
            Err(ObjectError::Index(IndexError::NoObject)) => return None,
            Err(error) => return Some(error.to_string()),
        };
        let staying =
            self.nodes.iter().filter_map(Node::brick).filter(|brick| self.stays(*brick)).count() as u32;
        let losses = self.named.as_ref().and_then(|named| named.losses_of(&info, lost)).unwrap_or(0);
        let losses = losses.min(staying.saturating_sub(1));
        if losses == 0 {
            return None;
        }
        for (number, segment) in (0..).zip(manifest.segments) {
            for lost in self.choices(&segment, losses)? {
                let get = Get {
                    version: segment.version,
                    segment: number,
                    coding: segment.coding,
                    symbol_blocks: segment.symbol_blocks,
                    places: segment.places.iter().filter(|(_, at)| !lost.contains(at)).copied().collect(),
                    wanted: None,
                    expected: segment.expected(),
                    strategy: AccessStrategy::Speculative,
                    stream: base::StreamId::default(),
                };
                if let Err(why) = self.probe(|tag| Input::Get { tag, get: Box::new(get) })? {
                    return Some(format!("without {lost:?}, segment {number}: {why}"));
                }
            }
        }
        None
    }

    /// Whether a brick is there, and is not to be emptied.
    pub(super) fn stays(&self, brick: BrickId) -> bool {
        let runs = self.nodes.slot(NodeId::Brick(brick)).is_some_and(|node| self.nodes[node].runs());
        runs && self.named.as_ref().is_none_or(|named| !named.empties(brick))
    }

    /// Which bricks are left out: each one of those that have something, and where more may be lost some choices of so many.
    fn choices(&mut self, segment: &SegmentRecord, losses: u32) -> Option<Vec<Vec<BrickId>>> {
        let bricks: BTreeSet<BrickId> = segment.places.iter().map(|(_, brick)| *brick).collect();
        let mut choices: Vec<Vec<BrickId>> = bricks.iter().map(|brick| vec![*brick]).collect();
        let draw = self.named.as_mut()?.draw();
        for _ in 0..if losses > 1 { CHOICES } else { 0 } {
            let mut left: Vec<BrickId> = bricks.iter().copied().collect();
            let count = (losses as usize).min(left.len());
            choices.push((0..count).map(|_| left.swap_remove(draw.index(left.len()))).collect());
        }
        Some(choices)
    }

    /// Reads or puts a segment; none where nobody answers any more, which was judged then.
    pub(super) fn probe(&mut self, input: impl FnOnce(u64) -> Input) -> Option<Result<(), String>> {
        let node = *self.running_gateways().first()?;
        let named = self.named.as_mut()?;
        let tag = named.begin_probe();
        self.deliver(node, input(tag));
        let end_ns = self.time.now_ns() + READ_NS;
        while self.judges.are_content() {
            if let Some(result) = self.named.as_mut().and_then(Named::take_probed) {
                return Some(result);
            }
            if self.time.now_ns() >= end_ns {
                self.judge(Err(Violation::new("live", "a segment is not read when all is healed")));
            }
            self.run_until(self.time.now_ns() + SECOND / 50);
        }
        None
    }

    /// A segment was read that belongs to an object.
    pub(super) fn on_probed(&mut self, tag: u64, segment: Segment) {
        let Some(probe) = self.named.as_mut().and_then(|named| named.probe.as_mut()) else { return };
        if probe.tag == tag {
            probe.result = Some(match segment {
                Segment::Got(result) => result.map(drop).map_err(|why| why.to_string()),
                Segment::Put(result) => result.map(drop).map_err(|why| why.to_string()),
            });
        }
    }
}

impl Named {
    fn begin_probe(&mut self) -> u64 {
        let tag = self.next_tag();
        self.probe = Some(Probe { tag, result: None });
        tag
    }

    fn take_probed(&mut self) -> Option<Result<(), String>> {
        self.probe.as_mut()?.result.take()
    }

    /// How many bricks may be lost of those that have this version. None where more was lost already.
    pub(super) fn losses_of(&self, info: &ObjectInfo, lost: u64) -> Option<u32> {
        let content = self.content_of(info)?;
        (lost - content.lost_before <= u64::from(content.losses)).then_some(content.losses)
    }
}

/// What is known of an object.
pub(super) type Looked = Option<Result<(ObjectInfo, Manifest), ObjectError>>;
