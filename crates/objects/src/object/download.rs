//! An object comes back: the version that is visible when it begins, segment by segment, as fast as somebody takes them.

use super::TransferId;
use super::access::AccessStrategy;
use super::coding::Coding;
use super::get::{Get, GetError};
use super::hold::Hold;
use super::manifest::{Manifest, SegmentRecord};
use super::objects::{ObjectError, ObjectNews, Step};
use super::questions::Answer;
use base::{Checksum, ObjectVersion, Payload, StreamId, Time};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::{IndexReply, IndexRequest, ObjectInfo, ObjectName};

/// Segments that are read ahead of whoever takes them.
const AHEAD_MAX: usize = 2;

/// An object that is to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedObject {
    pub name: ObjectName,
    /// Bytes from where, and how many at most; all where it is none.
    pub range: Option<(u64, u64)>,
    /// Which fragments are asked for, and when.
    pub access: AccessStrategy,
}

#[derive(Debug)]
enum Stage {
    /// Which version is visible is being asked.
    Looking,
    Reading(Reading),
}

#[derive(Debug)]
pub(super) struct Downloading {
    wanted: WantedObject,
    stage: Stage,
    /// Segments that somebody waits for.
    credit: usize,
    /// Whether it began anew because its version was gone.
    has_begun_anew: bool,
    /// Whether somebody was told which version it is.
    is_told: bool,
}

#[derive(Debug)]
struct Reading {
    info: ObjectInfo,
    hold: Hold,
    /// That of its bucket.
    stream: StreamId,
    /// What is still to be asked for: segments, and what is wanted of each.
    to_come: VecDeque<(u32, SegmentRecord, Range<usize>)>,
    under_way: BTreeMap<TransferId, Part>,
    /// Could not be read from where they were: the index is asked whether they are elsewhere by now.
    failed: Vec<(Part, GetError)>,
    /// Segments that were so asked for.
    looked_again: BTreeSet<u32>,
    /// Has come before those before it, or before it is wanted.
    ready: BTreeMap<u32, Payload>,
    /// The next segment to be handed over, and what follows the last one.
    next: u32,
    end: u32,
    /// Of all that was handed over; for a part of an object it says nothing.
    checksum: Checksum,
    is_whole: bool,
}

impl Downloading {
    pub(super) fn begin(step: &mut Step<'_>, wanted: WantedObject) -> Downloading {
        step.bricks.are_fresh(step.now);
        step.ask(IndexRequest::Look { name: wanted.name.clone() });
        Downloading { wanted, stage: Stage::Looking, credit: 0, has_begun_anew: false, is_told: false }
    }

    /// One more segment is wanted.
    pub(super) fn on_more(mut self, step: &mut Step<'_>) -> Option<Downloading> {
        self.credit += 1;
        self.go_on(step)
    }

    pub(super) fn on_answer(mut self, step: &mut Step<'_>, answer: Answer) -> Option<Downloading> {
        match (&mut self.stage, answer) {
            (Stage::Looking, Answer::Told(Ok(IndexReply::Found { info, manifest, held_ns, stream }))) => {
                let hold = Hold::new(info.version, held_ns, step.now);
                match Reading::new((info, hold, stream), &manifest, self.wanted.range) {
                    Ok(reading) => self.stage = Stage::Reading(reading),
                    Err(error) => return self.end(step, Err(error)),
                }
            }
            (Stage::Looking, Answer::Told(Err(error))) => {
                return self.end(step, Err(ObjectError::Index(error)));
            }
            (Stage::Looking, Answer::Silence) => return self.end(step, Err(ObjectError::NoAnswer)),
            (Stage::Reading(reading), Answer::Gone(gone)) if gone.contains(&reading.info.version) => {
                return self.end(step, Err(ObjectError::Gone));
            }
            (_, Answer::Gone(_)) => {}
            (Stage::Reading(reading), Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                match reading.look_again(&manifest, of) {
                    Ok(None) => {}
                    Ok(Some(question)) => step.ask(question),
                    Err(error) => return self.end(step, Err(error)),
                }
            }
            (Stage::Reading(reading), Answer::Told(Err(_)) | Answer::Silence) => {
                let (part, error) = reading.failed.first().expect("it was asked for what has failed");
                let (segment, error) = (part.number, *error);
                return self.end(step, Err(ObjectError::Get { segment, error }));
            }
            (stage, Answer::Told(Ok(reply))) => unreachable!("{reply:?} while {stage:?}"),
        }
        self.go_on(step)
    }

    /// A segment has come, or cannot be read.
    pub(super) fn on_segment(
        mut self,
        step: &mut Step<'_>,
        transfer: TransferId,
        result: Result<Vec<Payload>, GetError>,
    ) -> Option<Downloading> {
        let Stage::Reading(reading) = &mut self.stage else { return Some(self) };
        let part = reading.under_way.remove(&transfer).expect("a segment of this object");
        let Part { number, first, ref range, .. } = part;
        match result {
            Ok(blocks) => {
                let mut content = Payload::new();
                blocks.iter().skip(first as usize).for_each(|block| content.append(block));
                reading.ready.insert(number, content.slice(range.start, range.len()));
                self.go_on(step)
            }
            // The version may have been replaced, and be gone.
            Err(_) if !self.is_told && !self.has_begun_anew => {
                step.forget(core::mem::take(&mut reading.under_way).into_keys());
                step.call_off_questions();
                step.ask(IndexRequest::Look { name: self.wanted.name.clone() });
                (self.stage, self.has_begun_anew) = (Stage::Looking, true);
                Some(self)
            }
            // Bricks may have moved its fragments.
            Err(error) if reading.looked_again.insert(number) => {
                // One question at a time: its answer may say where others are that have failed.
                if reading.failed.is_empty() {
                    step.ask(part.whereabouts());
                }
                reading.failed.push((part, error));
                Some(self)
            }
            Err(error) => self.end(step, Err(ObjectError::Get { segment: number, error })),
        }
    }

    pub(super) fn wake(mut self, step: &mut Step<'_>) -> Option<Downloading> {
        if let Stage::Reading(reading) = &mut self.stage {
            reading.hold.wake(step);
        }
        self.go_on(step)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Reading(reading) => Some(reading.hold.deadline()),
            Stage::Looking => None,
        }
    }

    /// Nobody wants it any more.
    pub(super) fn call_off(self, step: &mut Step<'_>) -> Option<Downloading> {
        self.end(step, Err(ObjectError::CalledOff))
    }

    /// It is over, whatever is still under way.
    fn end(self, step: &mut Step<'_>, result: Result<(), ObjectError>) -> Option<Downloading> {
        if let Stage::Reading(reading) = self.stage {
            step.forget(reading.under_way.into_keys());
        }
        step.call_off_questions();
        step.tell(ObjectNews::Got(result));
        None
    }

    fn go_on(mut self, step: &mut Step<'_>) -> Option<Downloading> {
        let Stage::Reading(reading) = &mut self.stage else { return Some(self) };
        let has_first = reading.next == reading.end || reading.ready.contains_key(&reading.next);
        if has_first && !core::mem::replace(&mut self.is_told, true) {
            step.tell(ObjectNews::Begun(reading.info));
        }
        while self.credit > 0
            && let Some(content) = reading.ready.remove(&reading.next)
        {
            self.credit -= 1;
            reading.next += 1;
            reading.checksum = content.checksum_behind(reading.checksum);
            step.tell(ObjectNews::Content(content));
        }
        if reading.next == reading.end {
            let is_intact = !reading.is_whole || reading.checksum == reading.info.checksum;
            let result = if is_intact { Ok(()) } else { Err(ObjectError::Corrupt) };
            return self.end(step, result);
        }
        // Where bricks are reached may have changed.
        step.bricks.are_fresh(step.now);
        if !step.bricks.are_known() {
            return Some(self);
        }
        while reading.under_way.len() + reading.ready.len() < AHEAD_MAX
            && let Some((number, record, range)) = reading.to_come.pop_front()
        {
            let blocks = wanted_blocks(&record, &range);
            let (symbol_bytes, first) =
                (record.symbol_bytes(), blocks.as_ref().map_or(0, |blocks| blocks.start));
            // Blocks before those that are wanted are left out of what comes.
            let skipped = first as usize * symbol_bytes;
            let range = range.start - skipped..range.end - skipped;
            let get = Get {
                version: record.version,
                segment: number,
                coding: record.coding,
                symbol_blocks: record.symbol_blocks,
                places: record.places.clone(),
                wanted: blocks.clone(),
                expected: record.expected(),
                strategy: self.wanted.access,
                stream: reading.stream,
            };
            reading.under_way.insert(step.get(get), Part { number, first, range, record });
        }
        Some(self)
    }
}

/// What is wanted of a segment.
#[derive(Debug)]
struct Part {
    number: u32,
    /// The first of its blocks that is wanted.
    first: u32,
    /// The bytes, from that block's beginning.
    range: Range<usize>,
    /// Where it was read from.
    record: SegmentRecord,
}

impl Part {
    /// The question where its segment is by now.
    fn whereabouts(&self) -> IndexRequest {
        IndexRequest::Manifest { version: self.record.version, segment: Some(self.number) }
    }
}

/// The blocks that these bytes are in; none where that is all of them, or they are not stored as they are.
fn wanted_blocks(record: &SegmentRecord, bytes: &Range<usize>) -> Option<Range<u32>> {
    let symbol_bytes = record.symbol_bytes();
    let blocks = (bytes.start / symbol_bytes) as u32..bytes.end.div_ceil(symbol_bytes) as u32;
    let is_part = blocks.len() < record.coding.blocks() as usize;
    (is_part && matches!(record.coding, Coding::Precoded { .. })).then_some(blocks)
}

impl Reading {
    /// Where what failed first is by now: that is asked for again, as is all that failed and is elsewhere by this answer. What the index is to be asked next, if
    /// something is left.
    fn look_again(
        &mut self,
        manifest: &[u8],
        of: ObjectVersion,
    ) -> Result<Option<IndexRequest>, ObjectError> {
        let read = Manifest::read(manifest, of).map_err(|why| ObjectError::Manifest(why.to_string()))?;
        // It may be the manifest of another version that shares these segments, and has others of its own.
        let now = |number: u32, old: &SegmentRecord| {
            let record = read.segments.get(number as usize);
            record.filter(|record| record.version == old.version).cloned()
        };
        for (number, record, _) in &mut self.to_come {
            if let Some(moved) = now(*number, record) {
                *record = moved;
            }
        }
        let moved = |part: &Part| now(part.number, &part.record).filter(|now| now.is_elsewhere(&part.record));
        let mut found = Vec::new();
        for (at, (part, error)) in core::mem::take(&mut self.failed).into_iter().enumerate() {
            match moved(&part) {
                Some(record) => found.push((part, record)),
                // It was asked for this one.
                None if at == 0 => return Err(ObjectError::Get { segment: part.number, error }),
                None => self.failed.push((part, error)),
            }
        }
        for (Part { number, first, range, .. }, record) in found.into_iter().rev() {
            let skipped = first as usize * record.symbol_bytes();
            self.to_come.push_front((number, record, range.start + skipped..range.end + skipped));
        }
        Ok(self.failed.first().map(|(part, _)| part.whereabouts()))
    }

    fn new(
        (info, hold, stream): (ObjectInfo, Hold, StreamId),
        manifest: &[u8],
        range: Option<(u64, u64)>,
    ) -> Result<Reading, ObjectError> {
        let manifest = Manifest::read(manifest, info.version);
        let manifest = manifest.map_err(|why| ObjectError::Manifest(why.to_string()))?;
        let total = manifest.bytes();
        if total != info.bytes {
            return Err(ObjectError::Manifest(format!(
                "its segments have {total} bytes, and it has {}",
                info.bytes
            )));
        }
        let wanted = match range {
            None => 0..total,
            Some((from, _)) if from >= total => return Err(ObjectError::OutOfRange { bytes: total }),
            Some((from, bytes)) => from..from.saturating_add(bytes).min(total),
        };
        let (mut to_come, mut at) = (VecDeque::new(), 0);
        for (number, segment) in (0..).zip(manifest.segments) {
            let bytes = u64::from(segment.bytes);
            let (from, to) = (wanted.start.clamp(at, at + bytes), wanted.end.clamp(at, at + bytes));
            if from < to {
                let part = (from - at) as usize..(to - at) as usize;
                to_come.push_back((number, segment, part));
            }
            at += bytes;
        }
        let next = to_come.front().map_or(0, |(number, ..)| *number);
        let end = next + to_come.len() as u32;
        Ok(Reading {
            info,
            hold,
            stream,
            to_come,
            under_way: BTreeMap::new(),
            failed: Vec::new(),
            looked_again: BTreeSet::new(),
            ready: BTreeMap::new(),
            next,
            end,
            checksum: 0,
            is_whole: wanted == (0..total),
        })
    }
}
