//! An object goes out: a version is opened, its segments are put while their content comes, and then it becomes visible at once.

use super::hold::Hold;
use super::manifest::{Manifest, Plan, SEGMENT_BYTES, SegmentRecord};
use super::objects::{ObjectError, ObjectNews, Step};
use super::put::{Put, PutError};
use super::questions::Answer;
use super::ready::Placing;
use super::{Place, TransferId};
use base::{BLOCK, Checksum, ObjectVersion, Payload, Time};
use std::collections::BTreeMap;
use wire::index::MANIFEST_MAX;
use wire::{Condition, IndexError, IndexReply, IndexRequest, ObjectInfo, ObjectName, Service, Wire};

/// Segments of one object that are put at a time: one is sent while the next one comes.
const SEGMENTS_MAX: usize = 2;
/// Fragments that are on their way to a brick at a time.
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
    /// By the putter's clock, in milliseconds since 1970.
    pub put_ms: u64,
    /// How much is put at a time: at most [`SEGMENT_BYTES`], which is usual.
    pub segment_bytes: usize,
    pub service: Service,
}

#[derive(Debug)]
enum Stage {
    Opening,
    Putting(Hold),
    /// All segments are stored.
    Committing(Hold),
    /// It has failed; its version is given up.
    Abandoning(ObjectError),
}

#[derive(Debug)]
pub(super) struct Uploading {
    object: NewObject,
    stage: Stage,
    bytes: u64,
    checksum: Checksum,
    /// Content that waits for the version, or for the bricks.
    waiting: Option<Payload>,
    is_complete: bool,
    segments: Vec<Option<SegmentRecord>>,
    /// What the manifest takes so far.
    manifest_bytes: usize,
    under_way: BTreeMap<TransferId, (usize, SegmentRecord)>,
    /// Whether the putter was told that there is room for another segment.
    has_asked: bool,
}

impl Uploading {
    pub(super) fn begin(step: &mut Step<'_>, object: NewObject) -> Uploading {
        step.ask(IndexRequest::Open { name: object.name.clone() });
        step.bricks.are_fresh(step.now);
        Uploading {
            object,
            stage: Stage::Opening,
            bytes: 0,
            checksum: 0,
            waiting: None,
            is_complete: false,
            segments: Vec::new(),
            manifest_bytes: 0,
            under_way: BTreeMap::new(),
            has_asked: false,
        }
    }

    /// The next segment's content. Only the last one may be shorter than the others.
    pub(super) fn on_content(
        mut self,
        step: &mut Step<'_>,
        content: Payload,
        is_last: bool,
    ) -> Option<Uploading> {
        let most = self.object.segment_bytes.min(SEGMENT_BYTES);
        let fits = content.len() == most || (is_last && content.len() < most);
        if !fits || self.is_complete || !self.has_asked {
            return self.fail(step, ObjectError::OutOfTurn);
        }
        self.has_asked = false;
        self.bytes += content.len() as u64;
        self.checksum = content.checksum_behind(self.checksum);
        self.is_complete = is_last;
        self.waiting = (!content.is_empty()).then_some(content);
        self.go_on(step)
    }

    pub(super) fn on_answer(mut self, step: &mut Step<'_>, answer: Answer) -> Option<Uploading> {
        match (&mut self.stage, answer) {
            (Stage::Abandoning(error), _) => {
                step.tell(ObjectNews::Put(Err(error.clone())));
                return None;
            }
            (Stage::Opening, Answer::Told(Ok(IndexReply::Opened { version, held_ns }))) => {
                self.stage = Stage::Putting(Hold::new(version, held_ns, step.now));
            }
            (Stage::Putting(hold), Answer::Gone(gone)) if gone.contains(&hold.version()) => {
                return self.fail(step, ObjectError::Index(IndexError::Expired));
            }
            (_, Answer::Gone(_)) => {}
            (Stage::Committing(hold), Answer::Told(Ok(IndexReply::Committed))) => {
                let version = hold.version();
                step.tell(ObjectNews::Put(Ok(self.info(version))));
                return None;
            }
            // It may be visible, or become it yet: its fragments have to stay.
            (Stage::Committing(_), Answer::Silence) => {
                step.tell(ObjectNews::Put(Err(ObjectError::InDoubt)));
                return None;
            }
            (_, Answer::Silence) => return self.fail(step, ObjectError::NoAnswer),
            (_, Answer::Told(Err(error))) => return self.fail(step, ObjectError::Index(error)),
            (stage, Answer::Told(Ok(reply))) => unreachable!("{reply:?} while {stage:?}"),
        }
        self.go_on(step)
    }

    /// A segment is stored, or cannot be.
    pub(super) fn on_segment(
        mut self,
        step: &mut Step<'_>,
        transfer: TransferId,
        result: Result<Vec<Place>, PutError>,
    ) -> Option<Uploading> {
        let (at, mut record) = self.under_way.remove(&transfer).expect("a segment of this object");
        match result {
            Ok(places) => {
                record.places = places;
                self.manifest_bytes += record.to_bytes().len();
                if self.manifest_bytes > MANIFEST_MAX - MANIFEST_SLACK {
                    return self.fail(step, ObjectError::TooLarge);
                }
                self.segments[at] = Some(record);
                self.go_on(step)
            }
            Err(error) => self.fail(step, ObjectError::Put(error)),
        }
    }

    /// Time goes on, or the bricks are known.
    pub(super) fn wake(mut self, step: &mut Step<'_>) -> Option<Uploading> {
        if let Stage::Putting(hold) | Stage::Committing(hold) = &mut self.stage {
            hold.wake(step);
        }
        self.go_on(step)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Putting(hold) | Stage::Committing(hold) => Some(hold.deadline()),
            Stage::Opening | Stage::Abandoning(_) => None,
        }
    }

    /// Whoever puts it has lost interest.
    pub(super) fn call_off(self, step: &mut Step<'_>) -> Option<Uploading> {
        match self.stage {
            // What is asked for cannot be taken back, and it is about to end.
            Stage::Committing(_) | Stage::Abandoning(_) => Some(self),
            Stage::Opening | Stage::Putting(_) => self.fail(step, ObjectError::CalledOff),
        }
    }

    fn info(&self, version: ObjectVersion) -> ObjectInfo {
        let (bytes, checksum, put_ms) = (self.bytes, self.checksum, self.object.put_ms);
        ObjectInfo { version, bytes, checksum, put_ms }
    }

    fn go_on(mut self, step: &mut Step<'_>) -> Option<Uploading> {
        let Stage::Putting(hold) = self.stage else { return Some(self) };
        if self.waiting.is_some()
            && step.bricks.are_fresh(step.now)
            && let Err(error) = self.put_segment(step, hold.version())
        {
            return self.fail(step, error);
        }
        if self.is_complete && self.waiting.is_none() && self.under_way.is_empty() {
            return self.commit(step, hold);
        }
        let has_room = self.waiting.is_none() && self.under_way.len() < SEGMENTS_MAX;
        if has_room && !self.is_complete && !self.has_asked {
            self.has_asked = true;
            step.tell(ObjectNews::WantsContent);
        }
        Some(self)
    }

    fn put_segment(&mut self, step: &mut Step<'_>, version: ObjectVersion) -> Result<(), ObjectError> {
        let Some(content) = self.waiting.take() else { return Ok(()) };
        let (bricks, losses) = (step.bricks.that_take_more(), self.object.losses);
        if bricks.len() <= 2 * losses as usize {
            return Err(ObjectError::TooFewBricks { bricks: bricks.len(), losses });
        }
        let at = self.segments.len();
        let plan = Plan::new(content.len(), bricks.len(), losses);
        let put = Put {
            version,
            segment: at as u32,
            coding: plan.coding,
            blocks: blocks_of(&content, plan),
            symbols: plan.symbols,
            bricks,
            placing: Placing::ByPace,
            losses,
            window: WINDOW,
            service: self.object.service,
        };
        let record = SegmentRecord {
            bytes: content.len() as u32,
            coding: plan.coding,
            symbol_blocks: plan.symbol_blocks,
            places: Vec::new(),
        };
        self.segments.push(None);
        let transfer = step.put(put);
        self.under_way.insert(transfer, (at, record));
        Ok(())
    }

    fn commit(mut self, step: &mut Step<'_>, hold: Hold) -> Option<Uploading> {
        let segments = core::mem::take(&mut self.segments).into_iter().flatten().collect();
        let manifest = Manifest { segments, losses: self.object.losses }.to_bytes();
        let info = self.info(hold.version());
        let (name, condition) = (self.object.name.clone(), self.object.condition);
        step.ask(IndexRequest::Commit { name, condition, info, manifest });
        self.stage = Stage::Committing(hold);
        Some(self)
    }

    /// It is not put. Its version is given up, and whoever puts it is told when that is known.
    fn fail(mut self, step: &mut Step<'_>, error: ObjectError) -> Option<Uploading> {
        step.forget(core::mem::take(&mut self.under_way).into_keys());
        self.waiting = None;
        match self.stage {
            Stage::Putting(hold) | Stage::Committing(hold) => {
                step.call_off_questions();
                step.ask(IndexRequest::Abandon { version: hold.version() });
                self.stage = Stage::Abandoning(error);
                Some(self)
            }
            Stage::Opening | Stage::Abandoning(_) => {
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
