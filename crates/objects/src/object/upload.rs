//! An object goes out: a version is opened, its segments are put while their content comes, and then it becomes visible at once.
//!
//! A patch begins with the version that is there ([`Base`]), and has all segments of it at first. What was interrupted has what was stored by then
//! ([`Earlier`]).

use super::access::AccessStrategy;
use super::check::{Check, Checked};
use super::get::{Get, GetError};
use super::hold::Hold;
use super::manifest::{Manifest, Plan, SEGMENT_BYTES, SegmentRecord};
use super::objects::{ObjectError, ObjectNews, Step};
use super::parts::Parts;
use super::patch::{Base, Gap, ObjectPatch};
use super::put::{Put, PutError};
use super::questions::Answer;
use super::ready::Placing;
use super::resume::{Earlier, Resumable, StoredSegment};
use super::{Place, TransferId};
use base::{BLOCK, Digest, ObjectVersion, Payload, StreamId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::index::{MANIFEST_MAX, SHARES_MAX};
use wire::{Condition, IndexError, IndexReply, IndexRequest, ObjectInfo, ObjectName, Share, Wire};

/// Segments of one object that are put at a time: one is sent while the next one comes.
const SEGMENTS_MAX: usize = 2;
/// Fragments that are on their way to a brick at a time, or from it.
const WINDOW: u32 = 4;
/// What a manifest takes beside its segments.
const MANIFEST_SLACK: usize = 64;

/// An object that is to be put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewObject {
    pub name: ObjectName,
    /// What has to hold when it becomes visible.
    pub condition: Condition,
    /// So many bricks may be lost.
    pub losses: u32,
    /// More than that takes is stored, if this is more: D, in percent of the object.
    pub redundancy: u32,
    /// By the putter's clock, in milliseconds since 1970.
    pub put_ms: u64,
    /// How much is put at a time: at most [`SEGMENT_BYTES`], which is usual.
    pub segment_bytes: usize,
    /// Whether it can go on later where it is interrupted, and what is stored of it.
    pub resumable: Option<Resumable>,
}

impl NewObject {
    /// One that survives the loss of a brick, replaces what has its name, and says no time.
    pub fn usual(name: ObjectName) -> NewObject {
        NewObject {
            name,
            condition: Condition::Always,
            losses: 1,
            redundancy: 0,
            put_ms: 0,
            segment_bytes: SEGMENT_BYTES,
            resumable: None,
        }
    }
}

#[derive(Debug)]
enum Stage {
    /// Which version is to be patched is being asked; from where on, and which one it has to be.
    Looking {
        at: Option<u64>,
        of: Option<ObjectVersion>,
    },
    Opening,
    /// Whether what earlier tries have stored is still held is being asked.
    Renewing {
        hold: Hold,
        held_ns: u64,
    },
    Putting(Hold),
    /// All segments are stored.
    Committing(Hold),
    /// The version that is patched was moved meanwhile: where to is being asked.
    Finding(Hold),
    /// It has failed; its version is given up.
    Abandoning(ObjectError),
}

#[derive(Debug)]
pub(super) struct Uploading {
    object: NewObject,
    stage: Stage,
    /// That of its bucket, once a version is opened.
    stream: StreamId,
    /// What is patched.
    base: Option<Base>,
    /// Whether it is patched from a given byte on, whatever it is: then another version of it may be patched as well.
    has_place: bool,
    earlier: Earlier,
    /// Where the next content goes.
    at: u64,
    /// Content that waits for the version, or for the bricks, and where it goes.
    waiting: Option<(Gap, Payload)>,
    is_complete: bool,
    segments: Parts,
    under_way: BTreeMap<TransferId, Part>,
    /// Segments that could not be read: the index is asked whether they are elsewhere by now.
    failed: Vec<(Read, GetError)>,
    /// Whether the putter was told that there is room for more content.
    has_asked: bool,
}

/// What is done for a segment.
#[derive(Debug)]
enum Part {
    /// An earlier try has stored it: bricks are asked whether they have it.
    Checking { segment: usize, content: Payload, stored: StoredSegment },
    /// It is read: some of it stays.
    Reading(Read),
    Putting {
        segment: usize,
        record: SegmentRecord,
        /// Of its content, if another try may go on with it.
        digest: Option<Digest>,
    },
}

/// A segment of which some stays, and what goes into it.
#[derive(Debug)]
struct Read {
    gap: Gap,
    content: Payload,
    old: SegmentRecord,
}

impl Uploading {
    pub(super) fn begin(step: &mut Step<'_>, object: NewObject) -> Uploading {
        step.bricks.are_fresh(step.now);
        let uploading = Uploading::new(object, Stage::Opening);
        uploading.open(step);
        uploading
    }

    /// A version is opened, and kept for who goes on with it.
    fn open(&self, step: &mut Step<'_>) {
        let keep = self.object.resumable.as_ref().map_or(Duration::ZERO, |resumable| resumable.keep);
        step.ask(IndexRequest::Open { name: self.object.name.clone(), keep_ns: keep.as_nanos() as u64 });
    }

    fn new(mut object: NewObject, stage: Stage) -> Uploading {
        let stored = object.resumable.as_mut().map(|resumable| core::mem::take(&mut resumable.stored));
        Uploading {
            object,
            stage,
            stream: StreamId::default(),
            base: None,
            has_place: false,
            earlier: Earlier::new(stored.unwrap_or_default()),
            at: 0,
            waiting: None,
            is_complete: false,
            segments: Parts::default(),
            under_way: BTreeMap::new(),
            failed: Vec::new(),
            has_asked: false,
        }
    }

    pub(super) fn begin_patch(step: &mut Step<'_>, patch: ObjectPatch) -> Uploading {
        let ObjectPatch { name, at, of, redundancy, put_ms, segment_bytes, resumable } = patch;
        step.ask(IndexRequest::Look { name: name.clone() });
        step.bricks.are_fresh(step.now);
        // What is patched survives what it was put to survive, and its version is the condition.
        let condition = Condition::Always;
        let losses = 0;
        let object = NewObject { name, condition, losses, redundancy, put_ms, segment_bytes, resumable };
        let has_place = at.is_some() && of.is_none();
        Uploading { has_place, ..Uploading::new(object, Stage::Looking { at, of }) }
    }

    /// Where the next content goes.
    fn gap(&self) -> Gap {
        let there = self.base.as_ref().map_or(&[][..], |base| &base.manifest().segments);
        Gap::at(self.at, there, self.object.segment_bytes.min(SEGMENT_BYTES))
    }

    /// The next content. Only the last one may be shorter than was asked for.
    pub(super) fn on_content(
        mut self,
        step: &mut Step<'_>,
        content: Payload,
        is_last: bool,
    ) -> Option<Uploading> {
        let gap = self.gap();
        let fits = content.len() == gap.most || (is_last && content.len() < gap.most);
        if !fits || self.is_complete || !self.has_asked {
            return self.fail(step, ObjectError::OutOfTurn);
        }
        self.has_asked = false;
        self.at += content.len() as u64;
        self.is_complete = is_last;
        self.waiting = (!content.is_empty()).then_some((gap, content));
        self.go_on(step)
    }

    #[expect(clippy::too_many_lines, reason = "put, patch and resume are one; not cut up yet")]
    pub(super) fn on_answer(mut self, step: &mut Step<'_>, answer: Answer) -> Option<Uploading> {
        match (&mut self.stage, answer) {
            (Stage::Abandoning(error), _) => {
                step.tell(ObjectNews::Put(Err(error.clone())));
                return None;
            }
            (
                Stage::Looking { at, of },
                Answer::Told(Ok(IndexReply::Found { info, manifest, held_ns, .. })),
            ) => {
                self.at = at.unwrap_or(info.bytes);
                let is_expected = of.is_none_or(|of| of == info.version);
                match Base::new((info, held_ns), &manifest, step.now) {
                    _ if !is_expected => {
                        return self.fail(step, ObjectError::Index(IndexError::NotAsExpected));
                    }
                    Ok(_) if self.at > info.bytes => {
                        return self.fail(step, ObjectError::OutOfRange { bytes: info.bytes });
                    }
                    Ok(base) if base.manifest().shares(ObjectVersion(0)).len() > SHARES_MAX => {
                        return self.fail(step, ObjectError::TooScattered);
                    }
                    Ok(base) => self.open_patch(step, base),
                    Err(error) => return self.fail(step, error),
                }
            }
            (Stage::Opening, Answer::Told(Ok(IndexReply::Opened { version, held_ns, stream }))) => {
                self.stream = stream;
                let (hold, versions) = (Hold::new(version, held_ns, step.now), self.earlier.versions());
                self.stage = match versions.is_empty() {
                    true => Stage::Putting(hold),
                    false => {
                        step.ask(IndexRequest::Hold { versions, only_open: true });
                        Stage::Renewing { hold, held_ns }
                    }
                };
            }
            (Stage::Renewing { hold, held_ns }, Answer::Gone(gone)) => {
                self.earlier.are_gone(&gone, *held_ns, step.now);
                self.stage = Stage::Putting(*hold);
            }
            (Stage::Putting(hold), Answer::Gone(gone))
                if gone.contains(&hold.version()) || self.earlier.had(&gone) =>
            {
                return self.fail(step, ObjectError::Index(IndexError::Expired));
            }
            // Another version has taken its place for so long that nobody keeps it any more. That is told when this one is to do so.
            (_, Answer::Gone(_)) => {}
            (Stage::Committing(hold), Answer::Told(Ok(IndexReply::Committed))) => {
                let version = hold.version();
                let info = match self.manifest() {
                    Ok(manifest) => self.info(version, &manifest),
                    Err(error) => return self.fail(step, error),
                };
                // What is not taken over of earlier tries need not be kept.
                let is_part = |version: &ObjectVersion| self.segments.has_some_of(*version);
                self.earlier.held().filter(|version| !is_part(version)).for_each(|version| {
                    step.ask(IndexRequest::Abandon { version });
                });
                step.tell(ObjectNews::Put(Ok(info)));
                return None;
            }
            (Stage::Committing(hold), Answer::Told(Err(IndexError::Moved))) => {
                let (hold, base) = (*hold, self.base.as_ref().expect("a patch has one"));
                step.ask(IndexRequest::Manifest { version: base.info().version, segment: None });
                self.stage = Stage::Finding(hold);
            }
            (Stage::Putting(_), Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                if let Err(error) = self.follow_base(&manifest, of) {
                    return self.fail(step, error);
                }
                if let Err(error) = self.read_again(step) {
                    return self.fail(step, error);
                }
            }
            (Stage::Finding(hold), Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                let hold = *hold;
                if let Err(error) = self.follow_base(&manifest, of) {
                    return self.fail(step, error);
                }
                return self.commit(step, hold);
            }
            // It may be visible, or become it yet: its fragments have to stay.
            (Stage::Committing(_), Answer::Silence) => {
                step.tell(ObjectNews::Put(Err(ObjectError::InDoubt)));
                return None;
            }
            (_, Answer::Silence) => return self.fail(step, ObjectError::NoAnswer),
            (Stage::Committing(_), Answer::Told(Err(IndexError::NotAsExpected))) => {
                let error = self.replaced();
                return self.fail(step, error);
            }
            (_, Answer::Told(Err(error))) => return self.fail(step, ObjectError::Index(error)),
            (stage, Answer::Told(Ok(reply))) => unreachable!("{reply:?} while {stage:?}"),
        }
        self.go_on(step)
    }

    /// The version that is patched is known: a new one is opened, which has all of its segments at first.
    fn open_patch(&mut self, step: &mut Step<'_>, base: Base) {
        step.tell(ObjectNews::Begun(base.info()));
        self.open(step);
        self.object.losses = base.manifest().losses;
        self.segments = Parts::of(base.manifest());
        (self.base, self.stage) = (Some(base), Stage::Opening);
    }

    /// A segment is stored, or cannot be.
    pub(super) fn on_segment(
        mut self,
        step: &mut Step<'_>,
        transfer: TransferId,
        result: Result<Vec<Place>, PutError>,
    ) -> Option<Uploading> {
        let Some(Part::Putting { segment, mut record, digest }) = self.under_way.remove(&transfer) else {
            unreachable!("a segment of this object that is put")
        };
        match result {
            Ok(places) => {
                record.places = places;
                if let Some(content) = digest {
                    let stored = StoredSegment { record: record.clone(), content };
                    step.tell(ObjectNews::Stored { segment: segment as u32, stored });
                }
                self.segments.is_stored(segment, record);
                let bytes: usize = self.segments.stored().map(|(_, record)| record.recorded_bytes()).sum();
                if bytes > MANIFEST_MAX - MANIFEST_SLACK {
                    return self.fail(step, ObjectError::TooLarge);
                }
                self.go_on(step)
            }
            Err(error) => self.fail(step, ObjectError::Put(error)),
        }
    }

    /// Bricks have what an earlier try has stored of a segment, or it is put once more.
    pub(super) fn on_checked(
        mut self,
        step: &mut Step<'_>,
        transfer: TransferId,
        checked: &Checked,
    ) -> Option<Uploading> {
        let Some(Part::Checking { segment, content, stored }) = self.under_way.remove(&transfer) else {
            unreachable!("a segment of this object that may be stored")
        };
        if checked.missing.is_empty() && checked.silent.is_empty() {
            self.segments.is_stored(segment, stored.record.clone());
            step.tell(ObjectNews::Stored { segment: segment as u32, stored });
            return self.go_on(step);
        }
        match self.put_segment(step, segment, &content, Some(stored.content)) {
            Ok(()) => self.go_on(step),
            Err(error) => self.fail(step, error),
        }
    }

    /// A segment has come that is to be patched, or cannot be read.
    pub(super) fn on_old(
        mut self,
        step: &mut Step<'_>,
        transfer: TransferId,
        result: Result<Vec<Payload>, GetError>,
    ) -> Option<Uploading> {
        let Some(Part::Reading(read)) = self.under_way.remove(&transfer) else {
            unreachable!("a segment of this object that is read")
        };
        let blocks = match result {
            Ok(blocks) => blocks,
            // Bricks may have moved its fragments.
            Err(error) => {
                if self.failed.is_empty() {
                    let base = self.base.as_ref().expect("only what is patched is read");
                    step.ask(IndexRequest::Manifest { version: base.info().version, segment: None });
                }
                self.failed.push((read, error));
                return Some(self);
            }
        };
        let Read { gap, content, old } = read;
        match self.place_segment(step, gap.segment, gap.merge(&old.content(&blocks), &content)) {
            Ok(()) => self.go_on(step),
            Err(error) => self.fail(step, error),
        }
    }

    /// What could not be read is read where it is now. What has not been moved is lost.
    fn read_again(&mut self, step: &mut Step<'_>) -> Result<(), ObjectError> {
        for (Read { gap, content, old }, error) in core::mem::take(&mut self.failed) {
            let there = self.base.as_ref().and_then(|base| base.manifest().segments.get(gap.segment));
            if there.is_none_or(|there| !there.is_elsewhere(&old)) {
                return Err(ObjectError::Get { segment: gap.segment as u32, error });
            }
            self.begin_segment(step, gap, content)?;
        }
        Ok(())
    }

    /// Time goes on, or the bricks are known.
    pub(super) fn wake(mut self, step: &mut Step<'_>) -> Option<Uploading> {
        if let Stage::Renewing { hold, .. }
        | Stage::Putting(hold)
        | Stage::Committing(hold)
        | Stage::Finding(hold) = &mut self.stage
        {
            hold.wake(step);
        }
        self.earlier.wake(step);
        if let Some(base) = &mut self.base {
            base.wake(step);
        }
        self.go_on(step)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let of_version = match &self.stage {
            Stage::Renewing { hold, .. }
            | Stage::Putting(hold)
            | Stage::Committing(hold)
            | Stage::Finding(hold) => Some(hold.deadline()),
            Stage::Looking { .. } | Stage::Opening | Stage::Abandoning(_) => None,
        };
        let of_others = self.base.as_ref().map(Base::deadline).into_iter().chain(self.earlier.deadline());
        of_version.into_iter().chain(of_others).min()
    }

    /// Whoever puts it has lost interest.
    pub(super) fn call_off(self, step: &mut Step<'_>) -> Option<Uploading> {
        match self.stage {
            // What is asked for cannot be taken back, and it is about to end.
            Stage::Committing(_) | Stage::Abandoning(_) => Some(self),
            Stage::Looking { .. }
            | Stage::Opening
            | Stage::Renewing { .. }
            | Stage::Putting(_)
            | Stage::Finding(_) => self.fail(step, ObjectError::CalledOff),
        }
    }

    /// All of it, when all is stored: what came, and what is left behind that of the version that is patched.
    fn manifest(&self) -> Result<Manifest, ObjectError> {
        let left = self.base.as_ref().map_or(0, |base| base.info().bytes);
        let manifest = self.segments.manifest(self.at.max(left), self.object.losses);
        manifest.map_err(ObjectError::Incomplete)
    }

    fn info(&self, version: ObjectVersion, manifest: &Manifest) -> ObjectInfo {
        manifest.info(version, self.object.put_ms)
    }

    fn go_on(mut self, step: &mut Step<'_>) -> Option<Uploading> {
        let Stage::Putting(hold) = self.stage else { return Some(self) };
        if self.waiting.is_some()
            && step.bricks.are_fresh(step.now)
            && let Some((gap, content)) = self.waiting.take()
            && let Err(error) = self.begin_segment(step, gap, content)
        {
            return self.fail(step, error);
        }
        let is_stored = self.waiting.is_none() && self.under_way.is_empty() && self.failed.is_empty();
        if self.is_complete && is_stored {
            return self.commit(step, hold);
        }
        let has_room = self.waiting.is_none() && self.under_way.len() < SEGMENTS_MAX;
        if has_room && !self.is_complete && !self.has_asked {
            self.has_asked = true;
            step.tell(ObjectNews::WantsContent { bytes: self.gap().most });
        }
        Some(self)
    }

    /// Puts what has come, or reads what it is to be put into.
    fn begin_segment(&mut self, step: &mut Step<'_>, gap: Gap, content: Payload) -> Result<(), ObjectError> {
        self.segments.awaits(gap.segment);
        let there = self.base.as_ref().and_then(|base| base.manifest().segments.get(gap.segment));
        let Some(old) = there.filter(|old| !gap.replaces(old, content.len())).cloned() else {
            return self.place_segment(step, gap.segment, content);
        };
        let get = Get {
            version: old.version,
            segment: gap.segment as u32,
            coding: old.coding,
            symbol_blocks: old.symbol_blocks,
            places: old.places.clone(),
            wanted: None,
            expected: old.expected(),
            strategy: AccessStrategy::USUAL,
            stream: self.stream,
        };
        self.under_way.insert(step.get(get), Part::Reading(Read { gap, content, old }));
        Ok(())
    }

    /// A segment's whole content is known: it is put, unless an earlier try has stored it, and bricks still have it.
    fn place_segment(
        &mut self,
        step: &mut Step<'_>,
        segment: usize,
        content: Payload,
    ) -> Result<(), ObjectError> {
        let losses = self.object.losses;
        let digest = self.object.resumable.as_ref().map(|_| content.digest());
        let stored = digest.and_then(|digest| {
            let record = self.earlier.take(segment, digest, |brick| step.bricks.is_away(brick), losses)?;
            Some(StoredSegment { record, content: digest })
        });
        let Some(stored) = stored else { return self.put_segment(step, segment, &content, digest) };
        let record = &stored.record;
        let check = Check {
            version: record.version,
            segment: segment as u32,
            symbol_blocks: record.symbol_blocks,
            places: record.places.clone(),
            reads: false,
            stream: self.stream,
        };
        self.under_way.insert(step.check(check), Part::Checking { segment, content, stored });
        Ok(())
    }

    fn put_segment(
        &mut self,
        step: &mut Step<'_>,
        segment: usize,
        content: &Payload,
        digest: Option<Digest>,
    ) -> Result<(), ObjectError> {
        let Stage::Putting(hold) = &self.stage else { unreachable!("content comes while it is put") };
        let version = hold.version();
        let (count, losses) = (step.bricks.that_take_more().len(), self.object.losses);
        if count <= 2 * losses as usize {
            return Err(ObjectError::TooFewBricks { bricks: count, losses });
        }
        let plan = Plan::new(content.len(), count, losses, self.object.redundancy);
        let bricks = step.bricks.in_drawn_order((version, segment as u32), plan.symbol_blocks);
        let put = Put {
            version,
            segment: segment as u32,
            coding: plan.coding,
            blocks: blocks_of(content, plan),
            symbols: plan.symbols,
            least: plan.least,
            bricks,
            placing: Placing::ByPace,
            losses,
            window: WINDOW,
            stream: self.stream,
        };
        let record = SegmentRecord {
            version,
            bytes: content.len() as u32,
            checksum: Some(content.checksum()),
            coding: plan.coding,
            symbol_blocks: plan.symbol_blocks,
            places: Vec::new(),
            mark: 0,
        };
        self.under_way.insert(step.put(put), Part::Putting { segment, record, digest });
        Ok(())
    }

    fn commit(mut self, step: &mut Step<'_>, hold: Hold) -> Option<Uploading> {
        let manifest = match self.manifest() {
            Ok(manifest) => manifest,
            Err(error) => return self.fail(step, error),
        };
        let (version, name, condition) = (hold.version(), self.object.name.clone(), self.object.condition);
        let info = self.info(version, &manifest);
        let is_part = |share: &Share| self.earlier.had(&[share.version]);
        let (parts, shares) = manifest.shares(version).into_iter().partition(is_part);
        let manifest = manifest.to_bytes();
        step.ask(match &self.base {
            None => IndexRequest::Commit { name, condition, info, manifest, parts },
            Some(patched) => {
                let (base, was) = (patched.info().version, patched.was());
                IndexRequest::Patch { name, base, was, shares, info, manifest, parts }
            }
        });
        self.stage = Stage::Committing(hold);
        Some(self)
    }

    /// What is patched is where this manifest says, unless another version has taken its place.
    fn follow_base(&mut self, manifest: &[u8], of: ObjectVersion) -> Result<(), ObjectError> {
        let base = self.base.as_mut().expect("a patch has one");
        if of != base.info().version {
            return Err(self.replaced());
        }
        base.is_marked(manifest, &mut self.segments)
    }

    /// Why it fails when another version has taken the place of what is there, or of what was to be patched.
    fn replaced(&self) -> ObjectError {
        if self.has_place { ObjectError::BaseReplaced } else { ObjectError::Index(IndexError::NotAsExpected) }
    }

    /// Whether somebody may go on with what is stored.
    fn is_worth_keeping(&self, version: ObjectVersion, error: &ObjectError) -> bool {
        self.object.resumable.is_some() && error.may_pass() && self.segments.has_some_of(version)
    }

    /// It is not put. Its version is given up, and whoever puts it is told when that is known; or it is kept for who goes on.
    fn fail(mut self, step: &mut Step<'_>, error: ObjectError) -> Option<Uploading> {
        step.forget(core::mem::take(&mut self.under_way).into_keys());
        (self.waiting, self.base) = (None, None);
        self.failed.clear();
        match self.stage {
            Stage::Renewing { hold, .. }
            | Stage::Putting(hold)
            | Stage::Committing(hold)
            | Stage::Finding(hold)
                if !self.is_worth_keeping(hold.version(), &error) =>
            {
                step.call_off_questions();
                if !error.may_pass() {
                    self.earlier.held().for_each(|version| step.ask(IndexRequest::Abandon { version }));
                }
                step.ask(IndexRequest::Abandon { version: hold.version() });
                self.stage = Stage::Abandoning(error);
                Some(self)
            }
            _ => {
                step.call_off_questions();
                if !error.may_pass() {
                    self.earlier.versions().into_iter().for_each(|version| {
                        step.ask(IndexRequest::Abandon { version });
                    });
                }
                step.tell(ObjectNews::Put(Err(error)));
                None
            }
        }
    }
}

/// The content as blocks of one length, the last ones filled up with zeros.
fn blocks_of(content: &Payload, plan: Plan) -> Vec<Payload> {
    let length = plan.symbol_blocks as usize * BLOCK;
    let block = |at: usize| {
        let start = (at * length).min(content.len());
        let mut block = content.slice(start, length.min(content.len() - start));
        let missing = length - block.len();
        if missing > 0 {
            block.append(&Payload::zeros(missing));
        }
        block
    };
    (0..plan.coding.blocks() as usize).map(block).collect()
}
