//! Puts and gets of segments of large objects, through whichever gateway: what is acknowledged must come back, and nothing else.
//!
//! Nothing here has a name: each put has a version of its own, and what it stored is read again as long as the run goes on, and once more
//! when all is healed.

use super::actors::{Actors, Pending};
use crate::checkers::Violation;
use crate::schedule::{By, Whether};
use crate::units::{MS, SECOND};
use crate::world::event::{Event, Input};
use crate::world::{Kind, World};
use base::{BLOCK, BrickId, ObjectVersion, Payload};
use model::Draw;
use objects::object::{AccessStrategy, Coding, Get, Place, Placing, Put};
use roles::gateway::Segment;
use std::collections::BTreeMap;

/// Sessions of those who put and get segments: no client of a volume has one of these.
const SESSIONS: u64 = 1 << 62;
/// How many puts and gets there are at a time.
const ACTORS: usize = 3;
/// So many segments are stored in a run; all else is read.
const PUTS_MAX: u64 = 12;
/// A segment that all bricks can give comes back within this time.
const LIVE_NS: u64 = 40 * SECOND;

/// Who puts and gets segments, and what is stored.
pub(crate) struct Segments {
    draw: Draw,
    actors: Actors<What>,
    stored: Vec<Stored>,
    versions: u64,
    counts: BTreeMap<&'static str, u64>,
    issuing: bool,
}

enum What {
    Put(Put, u64),
    Get(usize),
}

/// A put that was acknowledged.
struct Stored {
    put: Put,
    places: Vec<Place>,
    /// Disks and sectors that were lost before it was asked for.
    lost_before: u64,
}

impl Segments {
    pub(crate) fn new(seed: u64) -> Segments {
        let draw = Draw::new(seed ^ 0x000b_1ec7);
        let (stored, counts) = (Vec::new(), BTreeMap::new());
        Segments { draw, actors: Actors::new(ACTORS, 0), stored, versions: 0, counts, issuing: true }
    }

    /// How many puts and gets ended how.
    pub(crate) fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// No new puts and gets from now on.
    pub(crate) fn stop(&mut self) {
        self.issuing = false;
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// A put on these bricks that survives the loss of one or more, as many as there are bricks for.
    fn draw_put(&mut self, bricks: Vec<BrickId>) -> Put {
        self.versions += 1;
        let version = self.versions;
        let blocks = self.draw.between(1, 7) as u32;
        let coding = match self.draw.below(4) {
            0 => Coding::Copies { blocks },
            _ => Coding::precoded(blocks),
        };
        let symbol_blocks = *self.draw.pick(&[1_usize, 1, 2, 16]);
        let count = bricks.len() as u32;
        let most = (count - 1) / 2;
        let losses = self.draw.between(u64::from(most.min(1)), u64::from(most)) as u32;
        // As many as leave enough without the shares of those that may be lost, although as many others are silent.
        let least = match coding {
            Coding::Precoded { .. } if losses > 0 => {
                ((blocks + 5) * (count - losses)).div_ceil(count - 2 * losses) + losses
            }
            Coding::Precoded { .. } => blocks + 5,
            _ => blocks * (losses + 1),
        };
        Put {
            version: ObjectVersion(version),
            segment: self.draw.below(3) as u32,
            coding,
            blocks: (0..blocks).map(|block| content(version, block, symbol_blocks * BLOCK)).collect(),
            symbols: if matches!(coding, Coding::Copies { .. }) {
                least
            } else {
                least + self.draw.below(3) as u32
            },
            least,
            bricks,
            placing: Placing::ByPace,
            losses,
            window: self.draw.between(1, 4) as u32,
            stream: base::StreamId::default(),
        }
    }

    fn draw_get(&mut self, stored: usize) -> Get {
        let Stored { put, places, .. } = &self.stored[stored];
        let window = self.draw.between(1, 4) as usize;
        let strategy = match (self.draw.below(4), put.coding) {
            (0, _) => AccessStrategy::Speculative,
            (3, _) => AccessStrategy::Claimed { window },
            (1, Coding::Copies { .. }) => AccessStrategy::Adaptive { window },
            _ => AccessStrategy::Paced { window },
        };
        Get {
            version: put.version,
            segment: put.segment,
            coding: put.coding,
            symbol_blocks: (put.blocks[0].len() / BLOCK) as u32,
            places: places.clone(),
            wanted: None,
            expected: None,
            strategy,
            stream: base::StreamId::default(),
        }
    }
}

/// What a block of a version holds: no other block holds it.
fn content(version: u64, block: u32, bytes: usize) -> Payload {
    let word = (version << 16 | u64::from(block) | 1 << 63).to_le_bytes();
    Payload::from(word.repeat(bytes / word.len()))
}

impl World {
    pub(crate) fn start_segments(&mut self) {
        for actor in 0..self.segments.as_ref().map_or(0, |segments| segments.actors.count()) {
            self.next_segment_turn(actor, 0);
        }
    }

    fn next_segment_turn(&mut self, actor: usize, delay_ns: u64) {
        let Some(segments) = &mut self.segments else { return };
        let turn = segments.actors.next_turn(actor);
        self.later(delay_ns, Event::Segment { actor, turn });
    }

    /// An actor's turn: it puts or gets a segment.
    pub(crate) fn on_segment_turn(&mut self, actor: usize, turn: u64) {
        let gateways = self.running_gateways();
        let brick = |node: &crate::world::Node| match node.kind() {
            Kind::Brick(brick) if node.is_alive() => Some(*brick),
            _ => None,
        };
        let bricks: Vec<BrickId> = self.nodes.iter().filter_map(brick).collect();
        let lost_before = self.lost_of_objects();
        let now_ns = self.time.now_ns();
        let Some(segments) = &mut self.segments else { return };
        if !segments.actors.is_turn(actor, turn) || segments.actors.is_waiting(actor) || !segments.issuing {
            return;
        }
        match self.turns.take(By::Segment, actor, now_ns, &mut segments.draw) {
            Whether::Now => {}
            Whether::In(delay_ns) => return self.next_segment_turn(actor, delay_ns),
            Whether::Never => return,
        }
        if gateways.is_empty() || bricks.is_empty() {
            return self.next_segment_turn(actor, 50 * MS);
        }
        let node = *segments.draw.pick(&gateways);
        let puts = segments.versions < PUTS_MAX && (segments.stored.is_empty() || segments.draw.percent(40));
        if puts {
            let put = segments.draw_put(bricks);
            return self.ask_for_segment(actor, node, What::Put(put, lost_before));
        }
        if segments.stored.is_empty() {
            return self.next_segment_turn(actor, 50 * MS);
        }
        let stored = segments.draw.index(segments.stored.len());
        self.ask_for_segment(actor, node, What::Get(stored));
    }

    fn ask_for_segment(&mut self, actor: usize, node: usize, what: What) {
        let asked_ns = self.time.now_ns();
        let Some(segments) = &mut self.segments else { return };
        let (tag, is_excused) = (segments.actors.next_tag(), segments.issuing);
        let input = match &what {
            What::Put(put, _) => Input::Put { tag, put: Box::new(put.clone()) },
            What::Get(stored) => Input::Get { tag, get: Box::new(segments.draw_get(*stored)) },
        };
        segments.actors.begin(actor, Pending { tag, node, asked_ns, is_excused, what });
        // A gateway learns where bricks are with its first volume.
        let name = self.workload.plan(0).name.clone();
        self.deliver(node, Input::Open { session: SESSIONS | tag, name });
        self.deliver(node, input);
    }

    /// A gateway has put or got a segment.
    pub(crate) fn on_segment(&mut self, tag: u64, segment: Segment) {
        let lost = self.lost_of_objects();
        let Some(segments) = &mut self.segments else { return };
        let Some(actor) = segments.actors.with_tag(tag) else { return self.on_probed(tag, segment) };
        let Some(pending) = segments.actors.take(actor) else { return };
        let verdict = match (pending.what, segment) {
            (What::Put(put, lost_before), Segment::Put(Ok(places))) => {
                segments.count("segments put");
                segments.stored.push(Stored { put, places, lost_before });
                Ok(())
            }
            (What::Put(..), Segment::Put(Err(_))) => {
                segments.count("segments not put");
                Ok(())
            }
            (What::Get(stored), Segment::Got(result)) => {
                segments.count(if result.is_ok() { "segments got" } else { "segments not got" });
                let is_excused = pending.is_excused || segments.stored[stored].may_be_lost(lost);
                segments.stored[stored].judge(result.map_err(|error| error.to_string()), is_excused)
            }
            (_, segment) => {
                Err(Violation::new("objects", format!("segment #{tag} was answered with {segment:?}")))
            }
        };
        self.judge(verdict);
        let Some(segments) = &mut self.segments else { return };
        let pause_ns = segments.draw.below(200 * MS);
        let pause_ns = self.turns.pause_ns(By::Segment, actor, self.time.now_ns(), pause_ns);
        self.next_segment_turn(actor, pause_ns);
    }

    /// A gateway died: nobody knows what became of its puts, and nobody will read them.
    pub(crate) fn abandon_segments(&mut self, node: usize) {
        let Some(segments) = &mut self.segments else { return };
        let there = segments.actors.take_of(node);
        there.into_iter().for_each(|(actor, _)| self.next_segment_turn(actor, 50 * MS));
    }

    /// All that was stored is read once more, now that all is healed.
    pub(crate) fn read_all_segments(&mut self) {
        let Some(segments) = &mut self.segments else { return };
        segments.stop();
        let count = segments.stored.len();
        self.await_segments();
        for stored in 0..count {
            let gateways = self.running_gateways();
            let Some(node) = gateways.first().filter(|_| self.judges.are_content()) else { return };
            self.ask_for_segment(0, *node, What::Get(stored));
            self.await_segments();
        }
    }

    fn await_segments(&mut self) {
        let oldest = |world: &World| world.segments.as_ref().and_then(|segments| segments.actors.oldest());
        self.await_ends("a segment", oldest, LIVE_NS);
    }
}

impl Stored {
    /// Whether more was lost since then than it survives.
    fn may_be_lost(&self, lost: u64) -> bool {
        lost - self.lost_before > u64::from(self.put.losses)
    }

    fn judge(&self, got: Result<Vec<Payload>, String>, is_excused: bool) -> Result<(), Violation> {
        let Put { version, segment, .. } = self.put;
        match got {
            Ok(blocks) if blocks == self.put.blocks => Ok(()),
            Ok(_) => {
                let what = format!("{version}, segment {segment}, came back with other bytes than were put");
                Err(Violation::new("no wrong bytes", what))
            }
            Err(_) if is_excused => Ok(()),
            Err(error) => {
                let what = format!("{version}, segment {segment}, was acknowledged and is lost: {error}");
                Err(Violation::new("durable", what))
            }
        }
    }
}
