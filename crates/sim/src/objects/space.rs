//! What objects take on disks, when all is healed: bricks come to have nothing that nobody can read, also where they are restarted again and again, and what a putter sends
//! beyond what it needs is given back at once.

use super::named::NAMES;
use super::redundancy::Looked;
use crate::checkers::Violation;
use crate::units::SECOND;
use crate::world::World;
use crate::world::event::Event;
use base::{BrickId, ObjectVersion};
use model::PowerCut;
use proto::object::Manifest;
use std::collections::BTreeSet;

/// Bricks have given garbage back within this time: they look for it every half minute, and less often where that takes them long.
const GARBAGE_NS: u64 = 600 * SECOND;
/// The same where no brick lives for longer than that.
const RESTLESS_NS: u64 = 150 * SECOND;
const LIFE_NS: u64 = 5 * SECOND;
const OUTAGE_NS: u64 = SECOND / 2;
/// What was called off has gone within this time.
const CALLED_OFF_NS: u64 = 15 * SECOND;

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
        let manifests = self.manifests();
        let numbered = manifests.into_iter().flat_map(|manifest| (0..).zip(manifest.segments));
        numbered.map(|(number, segment)| (segment.version, number)).collect()
    }

    fn manifests(&mut self) -> Vec<Manifest> {
        let looked: Vec<Looked> = (0..NAMES.len()).map(|name| self.look_at_object(name)).collect();
        looked.into_iter().flatten().flatten().map(|(_, manifest)| manifest).collect()
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
        self.put_all_objects_anew();
        let end_ns = self.time.now_ns() + CALLED_OFF_NS;
        while self.judges.are_content()
            && let Some(unnamed) = self.unnamed()
        {
            if self.time.now_ns() >= end_ns {
                return self.judge(Err(Violation::new("space", unnamed)));
            }
            self.run_until(self.time.now_ns() + SECOND);
        }
    }

    /// What a brick has of an object although it is not named for that.
    fn unnamed(&mut self) -> Option<String> {
        for manifest in self.manifests() {
            for (number, segment) in (0_u64..).zip(&manifest.segments) {
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
