//! What objects take on disks, when all is healed: bricks come to have nothing that nobody can read, also where they are restarted again and again, and what a putter sends
//! beyond what it needs is given back at once.

use super::named::{NAMES, Named};
use super::redundancy::Looked;
use crate::checkers::Violation;
use crate::units::SECOND;
use crate::world::World;
use crate::world::event::Event;
use base::{BrickId, ObjectVersion};
use model::PowerCut;
use objects::object::Manifest;
use std::collections::BTreeSet;
use wire::ObjectInfo;

/// Bricks have given garbage back within this time: they look for it every half minute, and less often where that takes them long.
const GARBAGE_NS: u64 = 600 * SECOND;
/// The same where no brick lives for longer than that.
const RESTLESS_NS: u64 = 150 * SECOND;
const LIFE_NS: u64 = 5 * SECOND;
const OUTAGE_NS: u64 = SECOND / 2;
/// What was called off has gone within this time.
const CALLED_OFF_NS: u64 = 15 * SECOND;
/// What no record names a brick for any more has gone within this time: bricks that found nothing to do look for it again after ten minutes.
const UNNAMED_NS: u64 = 1500 * SECOND;

/// So often, a second apart, bricks must have none: a brick that has just started does not say what it has.
const LOOKS: u32 = 3;

/// A segment by the version with which it was put.
type Segment = (ObjectVersion, u64);

impl World {
    /// Bricks come to have nothing that is neither visible nor held.
    pub(super) fn audit_garbage(&mut self) {
        self.await_no_garbage(GARBAGE_NS, |_| {});
    }

    /// The same while each brick is killed every few seconds: none may need a longer life to come to its garbage.
    pub(super) fn audit_garbage_while_bricks_restart(&mut self) {
        if !self.judges.are_content() || self.shape.disks.are_small {
            return;
        }
        self.put_all_objects_anew();
        let mut next_ns = self.time.now_ns();
        self.await_no_garbage(RESTLESS_NS, |world| {
            if world.time.now_ns() >= next_ns {
                next_ns = world.time.now_ns() + LIFE_NS;
                world.restart_bricks();
            }
        });
        // Their volumes come together again.
        self.run_until(self.time.now_ns() + 2 * LIFE_NS);
    }

    fn restart_bricks(&mut self) {
        let bricks: Vec<usize> = (0..self.nodes.len()).filter(|node| self.is_running_brick(*node)).collect();
        for node in bricks {
            self.crash(node, PowerCut::ProcessOnly);
            self.later(OUTAGE_NS, Event::Boot { node });
        }
    }

    fn is_running_brick(&self, node: usize) -> bool {
        self.nodes[node].brick().is_some() && self.nodes[node].is_alive()
    }

    fn await_no_garbage(&mut self, most_ns: u64, mut meanwhile: impl FnMut(&mut World)) {
        if !self.judges.are_content() {
            return;
        }
        self.list_objects();
        let shared = self.segments_of_objects();
        let end_ns = self.time.now_ns() + most_ns;
        let mut looks = 0;
        while self.judges.are_content() && looks < LOOKS {
            match self.leaked(&shared) {
                None => looks += 1,
                Some(leaked) if self.time.now_ns() >= end_ns => {
                    return self.judge(Err(Violation::new("garbage", leaked)));
                }
                Some(_) => looks = 0,
            }
            meanwhile(self);
            self.run_until(self.time.now_ns() + SECOND);
        }
    }

    /// The segments that are part of some object.
    fn segments_of_objects(&mut self) -> BTreeSet<Segment> {
        let objects = self.objects();
        let numbered = objects.into_iter().flat_map(|(_, manifest)| (0..).zip(manifest.segments));
        numbered.map(|(number, segment)| (segment.version, number)).collect()
    }

    fn objects(&mut self) -> Vec<(ObjectInfo, Manifest)> {
        let looked: Vec<Looked> = (0..NAMES.len()).map(|name| self.look_at_object(name)).collect();
        looked.into_iter().flatten().flatten().collect()
    }

    /// What a brick has of a version, although that is visible under no name, and no other version shares it.
    fn leaked(&self, shared: &BTreeSet<Segment>) -> Option<String> {
        let named = self.named.as_ref()?;
        let visible = named.listed();
        let is_kept = |segment: &Segment| {
            let version = segment.0;
            // Those of segments alone have small numbers, which no index gives out.
            version.0 >> 32 == 0
                || shared.contains(segment)
                || named.put_of(version).is_some_and(|number| visible.contains(&number))
        };
        self.nodes.iter().find_map(|node| {
            let (version, segment) = node.segments().into_iter().find(|segment| !is_kept(segment))?;
            let id = node.id();
            Some(format!("{id} still has segment {segment} of {version}, which nobody can read any more"))
        })
    }

    /// An object that was just put lies on the bricks that it names, and on no others.
    pub(super) fn audit_space(&mut self) {
        if !self.judges.are_content() || self.shape.disks.are_small {
            return;
        }
        let Some(before) = self.named.as_ref().map(Named::puts) else { return };
        self.put_all_objects_anew();
        self.await_all_named(before, CALLED_OFF_NS);
    }

    /// Bricks come to have nothing of objects that is named elsewhere: what an old disk brought back, what others made again while a brick was away, and what a
    /// brick had that is to be emptied.
    pub(super) fn audit_unnamed(&mut self) {
        if !self.shape.disks.are_small {
            self.await_all_named(0, UNNAMED_NS);
        }
    }

    fn await_all_named(&mut self, before: u64, most_ns: u64) {
        let end_ns = self.time.now_ns() + most_ns;
        while self.judges.are_content()
            && let Some(unnamed) = self.unnamed(before)
        {
            if self.time.now_ns() >= end_ns {
                return self.judge(Err(Violation::new("space", unnamed)));
            }
            self.run_until(self.time.now_ns() + SECOND);
        }
    }

    /// What a brick has of an object that was put after the first so many, although it is not named for that. Where a put fails for want of bricks an
    /// older object stays, and a brick that is to be emptied may still have some of it.
    fn unnamed(&mut self, before: u64) -> Option<String> {
        for (info, manifest) in self.objects() {
            if info.put_ms <= before {
                continue;
            }
            for (number, segment) in (0_u64..).zip(&manifest.segments) {
                // What was lost is not all made again: what is named elsewhere may be the last there is.
                if segment.places.iter().any(|(_, brick)| !self.stays(*brick)) {
                    continue;
                }
                let is_named = |brick: BrickId| segment.places.iter().any(|(_, at)| *at == brick);
                let has_it = |brick: &(usize, BrickId)| {
                    self.nodes[brick.0].segments().contains(&(segment.version, number))
                };
                let bricks = (0..self.nodes.len()).filter_map(|node| Some((node, self.nodes[node].brick()?)));
                let mut others = bricks.filter(|(_, brick)| !is_named(*brick));
                if let Some((_, brick)) = others.find(has_it) {
                    let version = segment.version;
                    return Some(format!(
                        "{brick} has segment {number} of {version}, and is not named for it"
                    ));
                }
            }
        }
        None
    }
}
