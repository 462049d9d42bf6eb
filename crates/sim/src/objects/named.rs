//! Objects by their names, through whichever gateway: each name is a register. A version that was put is its value; without an object it is 0.
//!
//! Puts come in segments, some on a condition, and some putters sleep for longer than their version is held. Patches replace a part of what is there, or
//! append to it. Some of both that fail, or whose gateway dies, are gone on with later, elsewhere. What is read must be one version, whole; what is read and
//! listed, and when, must be linearizable name by name; and when all is healed, bricks have given back what nobody will read again.

use super::actors::{Actors, Pending};
use super::redundancy::{Looked, Probe};
use crate::checkers::{Violation, linearizable};
use crate::history::{Kind as Access, Operation, Register};
use crate::schedule::{By, Whether};
use crate::units::{MS, SECOND};
use crate::world::event::{Event, Input};
use crate::world::{Node, World};
use base::{BrickId, ObjectVersion, Payload};
use core::time::Duration;
use model::Draw;
use objects::object::{
    AccessStrategy, NewObject, ObjectError, ObjectNews, ObjectPatch, ObjectWish, PutProgress, Resumable,
    WantedObject,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::{AdminRequest, Condition, IndexError, ObjectInfo, ObjectName};

/// Tags of those who put and read objects: nobody else has one of these.
const TAGS: u64 = 1 << 61;
const ACTORS: usize = 3;
pub(super) const NAMES: [&str; 3] = ["a", "a/b", "b"];
pub(crate) const BUCKET: &str = "torture";
/// So many objects are put or patched in a run; all else is read and removed.
const PUTS_MAX: u64 = 24;
/// For so long a version is held for whoever puts or reads it.
pub(crate) const HOLD_NS: u64 = 2 * SECOND;
/// Of puts and patches that somebody may go on with so many are called off instead of being given more content.
const INTERRUPTED_PERCENT: u32 = 20;
/// For so long what is stored of a put or patch is held that somebody may go on with.
const KEEP: Duration = Duration::from_secs(20);
/// When all is healed, a put or get ends within this time.
const LIVE_NS: u64 = 60 * SECOND;
/// Then content of some patches comes within this time, so that bricks make lost fragments again meanwhile.
const SLOW_PATCH_NS: u64 = 100 * SECOND;
/// And some gateways stand still for so long, so that what they put is not held any more, and bricks give its fragments back.
const STANDSTILL_NS: u64 = 45 * SECOND;
/// Within this time of a put they begin to stand still.
const SHORT_PUT_NS: u64 = 30 * MS;

pub(crate) struct Named {
    draw: Draw,
    actors: Actors<What>,
    puts: BTreeMap<u64, Content>,
    /// So many puts and patches were drawn.
    drawn: u64,
    /// How long the object of each name was when it was seen last.
    sizes: [u64; NAMES.len()],
    operations: Vec<Operation>,
    /// Puts and patches that have failed, and that somebody may go on with.
    interrupted: Vec<Change>,
    /// Versions that some put or patch replaced on the condition that they be there.
    replaced: BTreeSet<ObjectVersion>,
    /// Which put a version is.
    versions: BTreeMap<ObjectVersion, u64>,
    counts: BTreeMap<&'static str, u64>,
    issuing: bool,
    /// When all is healed, content comes within this time.
    content_ns: u64,
    /// The brick that is to be emptied when all is healed.
    emptied: Option<BrickId>,
    /// What was looked up last.
    looked: Looked,
    pub(super) probe: Option<Probe>,
}

/// What a put puts.
#[derive(Clone, Copy)]
pub(super) struct Content {
    number: u64,
    /// Of which put or patch its bytes are: of this one, or of an earlier try.
    text: u64,
    bytes: usize,
    pub(super) losses: u32,
    /// Disks and sectors that were lost before it was asked for.
    pub(super) lost_before: u64,
    /// What is of another put: all before that byte, and from the other one on.
    around: Option<(u64, usize, usize)>,
}

/// An object that is to be put.
struct NewPut {
    name: usize,
    content: Content,
    condition: Condition,
    segment_bytes: usize,
    /// What of it is stored, if somebody may go on with it.
    stored: Option<PutProgress>,
    tries: u32,
}

/// So often somebody goes on with a put or patch, at the most.
const TRIES_MAX: u32 = 4;

/// Something that somebody may go on with.
enum Change {
    Put(NewPut),
    Patch(NewPatch),
}

enum What {
    Put { put: NewPut, sent: usize, wanted: usize },
    Patch { patch: NewPatch, base: Option<ObjectVersion>, sent: usize, wanted: usize },
    Get { name: usize, range: Option<(u64, u64)>, info: Option<ObjectInfo>, got: Payload },
    Remove { name: usize },
    List,
    Look { name: usize },
}

/// A part of an object that is to be replaced.
struct NewPatch {
    name: usize,
    bytes: Replaced,
    of: Option<ObjectVersion>,
    segment_bytes: usize,
    /// What of it is stored, if somebody may go on with it.
    stored: Option<PutProgress>,
    tries: u32,
}

/// Which bytes a patch replaces, and with which.
#[derive(Clone, Copy)]
struct Replaced {
    /// Another one for each try: it may be of another version.
    number: u64,
    /// The number of its first try.
    text: u64,
    at: usize,
    bytes: usize,
    /// Disks and sectors that were lost before the first try.
    lost_before: u64,
}

impl Named {
    pub(crate) fn new(seed: u64) -> Named {
        Named {
            draw: Draw::new(seed ^ 0x00a3_ed0b),
            actors: Actors::new(ACTORS, TAGS),
            puts: BTreeMap::new(),
            drawn: 0,
            sizes: [0; NAMES.len()],
            operations: Vec::new(),
            interrupted: Vec::new(),
            replaced: BTreeSet::new(),
            versions: BTreeMap::new(),
            counts: BTreeMap::new(),
            issuing: true,
            content_ns: 20 * MS,
            emptied: None,
            looked: None,
            probe: None,
        }
    }

    pub(crate) fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Whether a store of the index fails now. When all is healed none does.
    pub(crate) fn store_fails(&mut self) -> bool {
        self.issuing && self.draw.percent(1)
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// So many puts and patches were asked for.
    pub(super) fn puts(&self) -> u64 {
        self.drawn
    }

    fn draw_put(&mut self, lost_before: u64, bricks: usize) -> What {
        self.drawn += 1;
        let number = self.drawn;
        let segment_bytes = *self.draw.pick(&SEGMENT_BYTES);
        let bytes = match self.draw.below(6) {
            0 => 0,
            1 => self.draw.between(1, 9000) as usize,
            2 => segment_bytes,
            _ => self.draw.between(1, 2 * segment_bytes as u64 + 5000) as usize,
        };
        // As many may be lost as there are bricks for, so that a put goes on while as many are silent.
        let most = (bricks.saturating_sub(1) / 2) as u32;
        let losses = match self.draw.below(2) {
            0 => most.min(1),
            _ => self.draw.between(u64::from(most.min(1)), u64::from(most)) as u32,
        };
        let content = Content { number, text: number, bytes, losses, lost_before, around: None };
        self.puts.insert(number, content);
        let versions: Vec<ObjectVersion> = self.versions.keys().copied().collect();
        let condition = match self.draw.below(5) {
            0 => Condition::Absent,
            1 if !versions.is_empty() => Condition::Is(*self.draw.pick(&versions)),
            _ => Condition::Always,
        };
        let put = NewPut {
            name: self.draw.index(NAMES.len()),
            content,
            condition,
            segment_bytes,
            stored: self.draw.percent(50).then(PutProgress::default),
            tries: 1,
        };
        What::Put { put, sent: 0, wanted: 0 }
    }

    /// A put or patch has failed, or its gateway is no more: somebody may go on with it.
    fn interrupt(&mut self, change: Change) {
        let (Change::Put(NewPut { stored, tries, .. }) | Change::Patch(NewPatch { stored, tries, .. })) =
            &change;
        if stored.is_some() && *tries < TRIES_MAX {
            self.interrupted.push(change);
        }
    }

    /// Somebody goes on with it.
    fn go_on(&mut self, change: Change) -> What {
        let has_stored =
            |stored: &Option<PutProgress>| stored.as_ref().is_some_and(|stored| !stored.is_empty());
        match change {
            Change::Put(put) => {
                if has_stored(&put.stored) {
                    self.count("puts gone on with");
                }
                What::Put { put: NewPut { tries: put.tries + 1, ..put }, sent: 0, wanted: 0 }
            }
            Change::Patch(mut patch) => {
                if has_stored(&patch.stored) {
                    self.count("patches gone on with");
                }
                self.drawn += 1;
                patch.bytes.number = self.drawn;
                patch.tries += 1;
                What::Patch { patch, base: None, sent: 0, wanted: 0 }
            }
        }
    }

    fn draw_patch(&mut self, lost_before: u64) -> What {
        self.drawn += 1;
        let name = self.draw.index(NAMES.len());
        let size = self.sizes[name];
        let at = match self.draw.below(4) {
            0 => 0,
            1 => size,
            2 => self.draw.below(size + 1),
            _ => self.draw.below(9000),
        };
        let bytes = match self.draw.below(4) {
            0 => size - at.min(size),
            1 => self.draw.below(200_000),
            _ => self.draw.below(9000),
        };
        let versions: Vec<ObjectVersion> = self.versions.keys().copied().collect();
        let of = (!versions.is_empty() && self.draw.percent(10)).then(|| *self.draw.pick(&versions));
        let segment_bytes = *self.draw.pick(&SEGMENT_BYTES);
        let stored = self.draw.percent(50).then(PutProgress::default);
        let bytes = self.replaced((at as usize, bytes as usize), lost_before);
        let patch = NewPatch { name, bytes, of, segment_bytes, stored, tries: 1 };
        What::Patch { patch, base: None, sent: 0, wanted: 0 }
    }

    /// So many bytes from a byte on, by the patch that was drawn last.
    fn replaced(&self, (at, bytes): (usize, usize), lost_before: u64) -> Replaced {
        Replaced { number: self.drawn, text: self.drawn, at, bytes, lost_before }
    }

    /// Which version is being patched is known now, and so what the object will be. Nothing where nobody put that version, which is noticed elsewhere.
    fn begin_patch(&mut self, replaced: Replaced, base: &ObjectInfo) {
        let Replaced { number, text, at, bytes, lost_before } = replaced;
        if let Some(base) = self.puts.get(&base.put_ms) {
            let around = Some((base.number, at, at + bytes));
            let (bytes, lost_before) = (base.bytes.max(at + bytes), base.lost_before.min(lost_before));
            self.puts.insert(number, Content { number, text, bytes, lost_before, around, ..*base });
        }
    }

    /// What a put is, or a patched version.
    pub(super) fn bytes_of(&self, content: &Content) -> Vec<u8> {
        let own = |from, to| own_bytes(content.text, from, to);
        let Some((base, from, to)) = content.around else { return own(0, content.bytes) };
        let mut bytes = self.bytes_of(&self.puts[&base]);
        bytes.resize(content.bytes, 0);
        bytes[from..to].copy_from_slice(&own(from, to));
        bytes
    }

    fn record(&mut self, name: usize, kind: Access, value: u64, asked_ns: u64, answered_ns: Option<u64>) {
        let register = Register(name as u64);
        self.operations.push(Operation { client: 0, register, kind, value, asked_ns, answered_ns });
    }

    pub(super) fn next_tag(&mut self) -> u64 {
        self.actors.next_tag()
    }

    pub(super) fn draw(&mut self) -> &mut Draw {
        &mut self.draw
    }

    /// The puts that are visible by the last list.
    pub(super) fn listed(&self) -> BTreeSet<u64> {
        self.operations.iter().rev().take(NAMES.len()).map(|operation| operation.value).collect()
    }

    /// Whether this brick is to be emptied.
    pub(super) fn empties(&self, brick: BrickId) -> bool {
        self.emptied == Some(brick)
    }

    /// Which put a version is, if it was seen under a name.
    pub(super) fn put_of(&self, version: ObjectVersion) -> Option<u64> {
        self.versions.get(&version).copied()
    }

    /// What the put was that this version is of.
    pub(super) fn content_of(&self, info: &ObjectInfo) -> Option<Content> {
        self.puts.get(&info.put_ms).copied()
    }

    /// The version that was seen under a name is the one of that put, and of no other.
    fn see(&mut self, name: usize, info: &ObjectInfo) -> Result<u64, Violation> {
        let number = info.put_ms;
        self.sizes[name] = info.bytes;
        match self.versions.insert(info.version, number) {
            Some(other) if other != number => {
                let what = format!("{} was put {other}, and is put {number} now", info.version);
                Err(Violation::new("objects", what))
            }
            _ => Ok(number),
        }
    }
}

/// Bytes that no other put has.
fn own_bytes(number: u64, from: usize, to: usize) -> Vec<u8> {
    let word = |at: usize| (number << 32 | (at as u64 / 8) | 1 << 63).to_le_bytes();
    (from..to).map(|at| word(at)[at % 8]).collect()
}

/// How much is in a segment.
const SEGMENT_BYTES: [usize; 2] = [96 << 10, 640 << 10];

fn named(name: usize) -> ObjectName {
    ObjectName { bucket: BUCKET.to_owned(), key: NAMES[name].to_owned() }
}

/// Mostly what losses take; otherwise some more, or as much as bricks take.
fn redundancy(number: u64) -> u32 {
    [0, 0, 0, 60, 900][number as usize % 5]
}

/// What can go on later, with what is stored of it by now.
fn resumable(stored: &Option<PutProgress>) -> Option<Resumable> {
    stored.clone().map(|stored| Resumable { keep: KEEP, stored })
}

impl What {
    fn wish(&self) -> ObjectWish {
        match self {
            What::Put { put, .. } => ObjectWish::Put(NewObject {
                name: named(put.name),
                condition: put.condition,
                losses: put.content.losses,
                redundancy: redundancy(put.content.number),
                put_ms: put.content.number,
                segment_bytes: put.segment_bytes,
                resumable: resumable(&put.stored),
            }),
            What::Patch { patch, .. } => ObjectWish::Patch(ObjectPatch {
                name: named(patch.name),
                at: Some(patch.bytes.at as u64),
                of: patch.of,
                redundancy: redundancy(patch.bytes.number),
                put_ms: patch.bytes.number,
                segment_bytes: patch.segment_bytes,
                resumable: resumable(&patch.stored),
            }),
            What::Get { name, range, .. } => {
                let at = *name + range.map_or(0, |(from, _)| from as usize / 4096);
                let (_, access) = AccessStrategy::NAMED[at % AccessStrategy::NAMED.len()];
                ObjectWish::Get(WantedObject { name: named(*name), range: *range, access })
            }
            What::Remove { name } => ObjectWish::Remove { name: named(*name) },
            What::Look { name } => ObjectWish::Look { name: named(*name) },
            What::List => ObjectWish::List {
                bucket: BUCKET.to_owned(),
                prefix: String::new(),
                after: None,
                limit: 1000,
            },
        }
    }
}

impl World {
    pub(super) fn start_named(&mut self) {
        for actor in 0..self.named.as_ref().map_or(0, |named| named.actors.count()) {
            self.next_object_turn(actor, 0);
        }
    }

    fn next_object_turn(&mut self, actor: usize, delay_ns: u64) {
        let Some(named) = &mut self.named else { return };
        let turn = named.actors.next_turn(actor);
        self.later(delay_ns, Event::Object { actor, turn });
    }

    /// An actor's turn: it asks for something, or goes on with a put after a pause.
    pub(crate) fn on_object_turn(&mut self, actor: usize, turn: u64) {
        let (gateways, lost_before) = (self.running_gateways(), self.lost_of_objects());
        let bricks = self.shape.bricks as usize;
        let Some(named) = &mut self.named else { return };
        if !named.actors.is_turn(actor, turn) {
            return;
        }
        if named.actors.is_waiting(actor) {
            return self.send_content(actor);
        }
        if !named.issuing {
            return;
        }
        match self.turns.take(By::Object, actor, self.time.now_ns(), &mut named.draw) {
            Whether::Now => {}
            Whether::In(delay_ns) => return self.next_object_turn(actor, delay_ns),
            Whether::Never => return,
        }
        let Some(node) = (!gateways.is_empty()).then(|| *named.draw.pick(&gateways)) else {
            return self.next_object_turn(actor, 50 * MS);
        };
        if !named.interrupted.is_empty() && named.draw.percent(40) {
            let at = named.draw.index(named.interrupted.len());
            let change = named.interrupted.swap_remove(at);
            let what = named.go_on(change);
            return self.wish(actor, node, what);
        }
        let may_put = named.drawn < PUTS_MAX;
        let what = match named.draw.below(12) {
            0..4 if may_put => named.draw_put(lost_before, bricks),
            4..6 if may_put => named.draw_patch(lost_before),
            // What was put last stays, so that there is something to look after.
            0..7 if may_put => What::Remove { name: named.draw.index(NAMES.len()) },
            7 => What::List,
            _ => {
                let name = named.draw.index(NAMES.len());
                let range =
                    named.draw.percent(30).then(|| (named.draw.below(9000), named.draw.below(700_000)));
                What::Get { name, range, info: None, got: Payload::new() }
            }
        };
        self.wish(actor, node, what);
    }

    fn wish(&mut self, actor: usize, node: usize, what: What) {
        let asked_ns = self.time.now_ns();
        let Some(named) = &mut self.named else { return };
        let (tag, is_excused) = (named.actors.next_tag(), named.issuing);
        let wish = Box::new(what.wish());
        named.actors.begin(actor, Pending { tag, node, asked_ns, is_excused, what });
        self.deliver(node, Input::Object { tag, wish });
    }

    fn send_content(&mut self, actor: usize) {
        let Some(named) = &mut self.named else { return };
        let is_interrupted = named.issuing && named.draw.percent(INTERRUPTED_PERCENT);
        let Some(pending) = named.actors.pending(actor) else { return };
        let may_go_on = match &pending.what {
            What::Put { put, .. } => put.stored.is_some(),
            What::Patch { patch, .. } => patch.stored.is_some(),
            _ => false,
        };
        if may_go_on && is_interrupted {
            let (tag, node) = (pending.tag, pending.node);
            return self.deliver(node, Input::Object { tag, wish: Box::new(ObjectWish::CallOff) });
        }
        let (text, at, total, sent, wanted) = match &mut pending.what {
            What::Put { put: NewPut { content, .. }, sent, wanted } => {
                (content.text, 0, content.bytes, sent, wanted)
            }
            What::Patch { patch: NewPatch { bytes, .. }, sent, wanted, .. } => {
                (bytes.text, bytes.at, bytes.bytes, sent, wanted)
            }
            _ => return,
        };
        let to = (*sent + *wanted).min(total);
        let (bytes, is_last) = (own_bytes(text, at + *sent, at + to), to == total);
        *sent = to;
        let wish = Box::new(ObjectWish::Content { content: Payload::from(bytes), is_last });
        let (tag, node) = (pending.tag, pending.node);
        self.deliver(node, Input::Object { tag, wish });
    }

    /// A gateway tells of an object.
    pub(crate) fn on_object(&mut self, tag: u64, news: ObjectNews) {
        let now_ns = self.time.now_ns();
        let Some(named) = &mut self.named else { return };
        let Some(actor) = named.actors.with_tag(tag) else { return };
        let Some(pending) = named.actors.pending(actor) else { return };
        match (&mut pending.what, news) {
            (What::Put { wanted, .. } | What::Patch { wanted, .. }, ObjectNews::WantsContent { bytes }) => {
                *wanted = bytes;
                // Now and then a putter sleeps for longer than its version is held, although it is renewed as long as its gateway lives.
                let most_ns = match named.draw.percent(5) {
                    _ if !named.issuing => named.content_ns,
                    true => 2 * HOLD_NS,
                    false => 20 * MS,
                };
                let delay_ns = named.draw.below(most_ns);
                self.next_object_turn(actor, delay_ns);
            }
            (
                What::Put { put: NewPut { stored: Some(stored), .. }, .. }
                | What::Patch { patch: NewPatch { stored: Some(stored), .. }, .. },
                ObjectNews::Stored { segment, stored: now },
            ) => {
                let is_taken_over = stored.has(segment, &now);
                stored.note(segment, now);
                if is_taken_over {
                    named.count("segments taken over");
                }
            }
            (What::Patch { patch, base, .. }, ObjectNews::Begun(begun)) => {
                *base = Some(begun.version);
                let replaced = patch.bytes;
                named.begin_patch(replaced, &begun);
            }
            (What::Get { info, .. }, ObjectNews::Begun(begun)) => {
                *info = Some(begun);
                let node = pending.node;
                self.deliver(node, Input::Object { tag, wish: Box::new(ObjectWish::More) });
            }
            (What::Get { got, .. }, ObjectNews::Content(content)) => {
                got.append(&content);
                let node = pending.node;
                self.deliver(node, Input::Object { tag, wish: Box::new(ObjectWish::More) });
            }
            (_, news) => {
                let Some(pending) = named.actors.take(actor) else { return };
                let verdict = self.judge_object(pending, news, now_ns);
                self.judge(verdict);
                let Some(named) = &mut self.named else { return };
                let pause_ns = named.draw.below(200 * MS);
                let pause_ns = self.turns.pause_ns(By::Object, actor, now_ns, pause_ns);
                self.next_object_turn(actor, pause_ns);
            }
        }
    }

    /// What was asked for has ended.
    #[expect(clippy::too_many_lines, reason = "not cut up yet")]
    fn judge_object(
        &mut self,
        pending: Pending<What>,
        news: ObjectNews,
        now_ns: u64,
    ) -> Result<(), Violation> {
        let lost = self.lost_of_objects();
        let Some(named) = &mut self.named else { return Ok(()) };
        let Pending { asked_ns, is_excused, .. } = pending;
        let answered = Some(now_ns);
        match (pending.what, news) {
            (What::Put { put, .. }, ObjectNews::Put(result)) => match result {
                Ok(info) => {
                    named.count("objects put");
                    named.see(put.name, &info)?;
                    named.record(put.name, Access::Write, put.content.number, asked_ns, answered);
                    if let Condition::Is(version) = put.condition {
                        return named.replace(version);
                    }
                }
                Err(ObjectError::InDoubt) => {
                    named.count("objects in doubt");
                    named.record(put.name, Access::Write, put.content.number, asked_ns, None);
                    named.interrupt(Change::Put(put));
                }
                Err(ObjectError::Index(IndexError::NotAsExpected)) => named.count("objects not put"),
                Err(_) => {
                    named.count("objects not put");
                    named.interrupt(Change::Put(put));
                }
            },
            (What::Patch { patch, base, .. }, ObjectNews::Put(result)) => match (result, base) {
                (Ok(info), Some(base)) => {
                    named.count("objects patched");
                    named.see(patch.name, &info)?;
                    named.record(patch.name, Access::Write, patch.bytes.number, asked_ns, answered);
                    return named.replace(base);
                }
                (Ok(_), None) => return Err(Violation::new("objects", "a patch ended that had not begun")),
                (Err(ObjectError::InDoubt), _) => {
                    named.count("objects in doubt");
                    named.record(patch.name, Access::Write, patch.bytes.number, asked_ns, None);
                    named.interrupt(Change::Patch(patch));
                }
                (Err(ObjectError::Index(IndexError::NotAsExpected)), _) => named.count("objects not patched"),
                (Err(_), _) => {
                    named.count("objects not patched");
                    named.interrupt(Change::Patch(patch));
                }
            },
            (What::Remove { name }, ObjectNews::Removed(result)) => match result {
                Ok(()) => {
                    named.count("objects removed");
                    named.record(name, Access::Write, 0, asked_ns, answered);
                }
                Err(ObjectError::Index(IndexError::NoObject)) => {
                    named.record(name, Access::Read, 0, asked_ns, answered);
                }
                Err(_) => named.record(name, Access::Write, 0, asked_ns, None),
            },
            (What::List, ObjectNews::Listed(result)) => {
                if let Ok((objects, _)) = result {
                    named.count("lists of objects");
                    for (name, key) in NAMES.iter().enumerate() {
                        let found = objects.iter().find(|(listed, _)| listed == key);
                        let value = found.map_or(Ok(0), |(_, info)| named.see(name, info))?;
                        named.record(name, Access::Read, value, asked_ns, answered);
                    }
                }
            }
            (What::Look { .. }, ObjectNews::Looked(result)) => named.looked = Some(result),
            (What::Get { name, range, info, got }, ObjectNews::Got(result)) => match (result, info) {
                (Err(ObjectError::Index(IndexError::NoObject)), _) => {
                    named.record(name, Access::Read, 0, asked_ns, answered);
                }
                (Err(ObjectError::OutOfRange { .. }), _) => {}
                (Ok(()), Some(info)) => {
                    named.count("objects got");
                    let number = named.see(name, &info)?;
                    named.record(name, Access::Read, number, asked_ns, answered);
                    return named.judge_content(&info, range, &got);
                }
                (Ok(()), None) => return Err(Violation::new("objects", "a get ended that had not begun")),
                (Err(error), info) => {
                    named.count("objects not got");
                    let content = info.and_then(|info| named.puts.get(&info.put_ms));
                    let losses = content.map_or(1, |content| content.losses);
                    let lost_before =
                        named.puts.values().map(|content| content.lost_before).min().unwrap_or(lost);
                    let lost_before = content.map_or(lost_before, |content| content.lost_before);
                    if !is_excused && lost - lost_before <= u64::from(losses) {
                        let what = format!("object {} was acknowledged and is lost: {error}", NAMES[name]);
                        return Err(Violation::new("durable", what));
                    }
                }
            },
            (_, news) => {
                return Err(Violation::new("objects", format!("an object was answered with {news:?}")));
            }
        }
        Ok(())
    }

    /// A gateway died: nobody knows what became of what it was asked.
    pub(crate) fn abandon_objects(&mut self, node: usize) {
        let Some(named) = &mut self.named else { return };
        let there = named.actors.take_of(node);
        let actors: Vec<usize> = there.iter().map(|(actor, _)| *actor).collect();
        for (_, Pending { asked_ns, what, .. }) in there {
            match what {
                What::Put { put, .. } => {
                    named.record(put.name, Access::Write, put.content.number, asked_ns, None);
                    named.interrupt(Change::Put(put));
                }
                What::Patch { patch, base, .. } => {
                    // Before it has begun it changes nothing.
                    if base.is_some() {
                        named.record(patch.name, Access::Write, patch.bytes.number, asked_ns, None);
                    }
                    named.interrupt(Change::Patch(patch));
                }
                What::Remove { name } => named.record(name, Access::Write, 0, asked_ns, None),
                What::Get { .. } | What::List | What::Look { .. } => {}
            }
        }
        actors.into_iter().for_each(|actor| self.next_object_turn(actor, 50 * MS));
    }

    /// All names are read once more, now that all is healed; then all that was seen is judged.
    pub(crate) fn read_all_objects(&mut self) {
        let Some(named) = &mut self.named else { return };
        named.issuing = false;
        self.await_objects();
        let verdict = self.patch_while_fragments_move();
        self.judge(verdict);
        self.put_while_gateways_stand_still();
        (0..NAMES.len()).for_each(|name| self.read_object(name));
        if !self.judges.are_content() {
            return;
        }
        let Some(named) = &self.named else { return };
        let of = |name: usize| -> Vec<Operation> {
            let its = named.operations.iter().filter(|op| op.register == Register(name as u64));
            its.copied().collect()
        };
        let verdict = (0..NAMES.len()).try_for_each(|name| linearizable::check(&of(name)));
        self.judge(verdict);
        self.audit_garbage();
        self.audit_garbage_while_bricks_restart();
        self.audit_space();
        self.audit_redundancy_of_objects();
        self.audit_unnamed();
        self.audit_wrong_fragments();
    }

    /// Patches each object while a brick is emptied, where others can take over what it has. It stays evicted until objects are redundant without it.
    fn patch_while_fragments_move(&mut self) -> Result<(), Violation> {
        let bricks: Vec<BrickId> =
            self.nodes.iter().filter(|node| node.runs()).filter_map(Node::brick).collect();
        if let Some(named) = &mut self.named {
            named.content_ns = SLOW_PATCH_NS;
        }
        let may_evict = bricks.len() > 3 && !self.shape.disks.are_small;
        let brick = self.named.as_mut().filter(|_| may_evict).map(|named| *named.draw.pick(&bricks));
        let lost_before = self.lost_of_objects();
        for name in 0..NAMES.len() {
            let Some(&node) = self.running_gateways().first() else { return Ok(()) };
            let Some(named) = &mut self.named else { return Ok(()) };
            let bytes = named.draw.between(1, 9000) as usize;
            named.drawn += 1;
            let bytes = named.replaced((0, bytes), lost_before);
            let segment_bytes = SEGMENT_BYTES[0];
            let patch = NewPatch { name, bytes, of: None, segment_bytes, stored: None, tries: 1 };
            self.wish(name, node, What::Patch { patch, base: None, sent: 0, wanted: 0 });
        }
        if let Some(brick) = brick {
            // It may be refused.
            let is_done = self.try_administer(AdminRequest::EvictBrick { brick })?.is_ok();
            self.named.iter_mut().for_each(|named| named.emptied = is_done.then_some(brick));
        }
        self.await_objects_for(LIVE_NS + SLOW_PATCH_NS);
        Ok(())
    }

    /// Puts objects through gateways that stand still in the middle of it.
    fn put_while_gateways_stand_still(&mut self) {
        let (lost_before, bricks) = (self.lost_of_objects(), self.shape.bricks as usize);
        for _ in 0..2 {
            let gateways = self.running_gateways();
            let Some(named) = self.named.as_mut().filter(|_| !gateways.is_empty()) else { return };
            named.content_ns = MS;
            let (node, what) = (*named.draw.pick(&gateways), named.draw_put(lost_before, bricks));
            let delay_ns = named.draw.below(SHORT_PUT_NS);
            self.wish(0, node, what);
            self.run_until(self.time.now_ns() + delay_ns);
            self.pause(node);
            self.run_until(self.time.now_ns() + STANDSTILL_NS);
            self.resume(node);
            self.await_objects();
        }
    }

    /// Reads an object as a whole.
    pub(super) fn read_object(&mut self, name: usize) {
        let Some(&node) = self.running_gateways().first() else { return };
        self.wish(0, node, What::Get { name, range: None, info: None, got: Payload::new() });
        self.await_objects();
    }

    /// Lists all names, through some gateway.
    pub(super) fn list_objects(&mut self) {
        let Some(&node) = self.running_gateways().first() else { return };
        self.wish(0, node, What::List);
        self.await_objects();
    }

    /// Puts an object under each name, whatever was there.
    pub(super) fn put_all_objects_anew(&mut self) {
        let (lost_before, bricks) = (self.lost_of_objects(), self.shape.bricks as usize);
        for name in 0..NAMES.len() {
            let gateways = self.running_gateways();
            let Some(named) = self.named.as_mut().filter(|_| !gateways.is_empty()) else { return };
            named.content_ns = MS;
            let What::Put { mut put, .. } = named.draw_put(lost_before, bricks) else { return };
            (put.name, put.condition, put.stored) = (name, Condition::Always, None);
            self.wish(0, gateways[0], What::Put { put, sent: 0, wanted: 0 });
            self.await_objects();
        }
    }

    /// What is known of an object, if there is one.
    pub(super) fn look_at_object(&mut self, name: usize) -> Looked {
        let &node = self.running_gateways().first()?;
        self.wish(0, node, What::Look { name });
        self.await_objects();
        self.named.as_mut()?.looked.take()
    }

    pub(super) fn await_objects(&mut self) {
        self.await_objects_for(LIVE_NS);
    }

    fn await_objects_for(&mut self, most_ns: u64) {
        let oldest = |world: &World| world.named.as_ref().and_then(|named| named.actors.oldest());
        self.await_ends("an object", oldest, most_ns);
    }
}

impl Named {
    /// A version was replaced on the condition that it be there.
    fn replace(&mut self, version: ObjectVersion) -> Result<(), Violation> {
        if self.replaced.insert(version) {
            return Ok(());
        }
        let what = format!("{version} was replaced twice, each time on the condition that it be there");
        Err(Violation::new("objects", what))
    }

    fn judge_content(
        &self,
        info: &ObjectInfo,
        range: Option<(u64, u64)>,
        got: &Payload,
    ) -> Result<(), Violation> {
        let Some(content) = self.puts.get(&info.put_ms) else {
            return Err(Violation::new("objects", format!("{} was never put", info.version)));
        };
        let (from, to) = match range {
            None => (0, content.bytes),
            Some((from, bytes)) => (from as usize, (from as usize + bytes as usize).min(content.bytes)),
        };
        let bytes = self.bytes_of(content);
        if got.to_vec() == bytes[from..to.max(from)] && info.bytes as usize == content.bytes {
            return Ok(());
        }
        let what = format!("{} came back with other bytes than were put", info.version);
        Err(Violation::new("no wrong bytes", what))
    }
}
