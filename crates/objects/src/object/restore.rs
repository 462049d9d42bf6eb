//! A version of an object is looked after: what bricks have lost of it is made again, and the index is told where it is. It is looked after where its
//! fragments are named last: in the manifest of the last version that shares them, if it is not its own.
//!
//! Segment by segment: whoever should have fragments is asked, what is missing is made from what is left, and goes to its brick again, or to
//! another one if that brick is lost. Then the manifest is replaced, if nobody else has replaced it meanwhile. A fragment has the same content
//! wherever it is, so that it does no harm if two do this at a time, or if one does it twice.

use super::TransferId;
use super::access::{AccessStrategy, Place};
use super::bricks::{Bricks, drawn};
use super::check::{Check, Checked};
use super::coding::{Coding, enough};
use super::get::{Get, GetError};
use super::manifest::{Manifest, SegmentRecord};
use super::objects::{ObjectError, ObjectNews, Step};
use super::questions::Answer;
use super::remake::Remake;
use base::{BrickId, Checksum, ObjectVersion, Payload, StreamId};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use wire::object::Pack;
use wire::{IndexError, IndexReply, IndexRequest, Wire};

/// What a brick looks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inspection {
    /// What any brick does not have. All holders of a version know of it, and each has a rank among them, which differs from version to version:
    /// only those whose rank is one of these look. Of all others those look that find that the first ones have lost all that they had, and so do not know of it.
    Everywhere { ranks: Range<usize> },
    /// What it cannot read of its own.
    Own,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// So many fragments were made again.
    pub made: u32,
    /// So many are missing still, or may be: it has to be looked at again.
    pub lacking: u32,
}

#[derive(Debug)]
enum Stage {
    /// The index is being asked where the version is.
    Asking,
    /// Those of the first ranks are asked whether they still know of the version.
    AskingTheFirst(TransferId),
    /// The brick's own fragments of a segment may be read when somebody allows it.
    Allowing(Check),
    Checking(TransferId),
    /// These are missing, as far as the manifest is right: the index is being asked whether it still says so.
    Confirming(Vec<Place>),
    /// These are missing, and their segment may be read when somebody allows it.
    Waiting(Vec<Place>),
    Reading(TransferId, Vec<Place>),
    /// What is made, and instead of what it is.
    Making(TransferId, BTreeMap<Place, Option<Place>>),
    Amending(Change),
    /// What was to be amended was not as it had been: the index is being asked where the version is now.
    AskingAgain(Change),
}

/// Where a segment's fragments were, and where they are.
#[derive(Clone, Debug)]
struct Change {
    were: Vec<Place>,
    /// What mark the segment had: nobody may count on what was stored at a brick before it got another one.
    mark: u64,
    are: Vec<Place>,
    /// So often it was to be noted.
    times: u32,
}

impl Change {
    /// Whether the segment's fragments still are where they were.
    fn fits(&self, segment: &SegmentRecord) -> bool {
        segment.places == self.were && segment.mark == self.mark
    }
}

/// So many holders of a version look at it in their turns, whatever the others know: one would do, if it has not lost what it had.
const FIRST_RANKS: usize = 4;

/// What a brick is among those that have something of a version.
enum Rank {
    /// It is not its turn.
    NotAsked,
    First,
    /// These come before it.
    Behind(BTreeSet<BrickId>),
}

/// A version whose manifest changes again and again is looked at later.
const AMENDMENTS_MAX: u32 = 5;

#[derive(Debug)]
pub(super) struct Restoring {
    /// With which the fragments were put.
    version: ObjectVersion,
    me: BrickId,
    inspection: Inspection,
    /// The version that has these fragments, and its manifest.
    holder: ObjectVersion,
    manifest: Manifest,
    /// The checksum of the manifest as the index has it.
    was: Checksum,
    /// The segment that is looked at.
    at: usize,
    stage: Stage,
    restored: Restored,
}

impl Restoring {
    pub(super) fn begin(
        step: &mut Step<'_>,
        version: ObjectVersion,
        me: BrickId,
        inspection: Inspection,
    ) -> Restoring {
        step.bricks.are_fresh(step.now);
        step.ask(IndexRequest::Manifest { version, segment: None });
        Restoring {
            version,
            me,
            inspection,
            holder: version,
            manifest: Manifest::default(),
            was: 0,
            at: 0,
            stage: Stage::Asking,
            restored: Restored::default(),
        }
    }

    pub(super) fn on_answer(mut self, step: &mut Step<'_>, answer: Answer) -> Option<Restoring> {
        match (&self.stage, answer) {
            (Stage::Asking, Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                if let Err(error) = self.take_manifest(&manifest, of) {
                    return self.end(step, Err(error));
                }
                let is_named = self.places().any(|(_, brick)| *brick == self.me);
                if step.bricks.is_evicted(self.me) && is_named {
                    // Others come to take it over.
                    self.restored.lacking = 1;
                }
                match self.rank(step.bricks) {
                    Rank::NotAsked => {
                        let restored = self.restored;
                        self.end(step, Ok(restored))
                    }
                    Rank::First => self.look(step),
                    Rank::Behind(first) => self.ask_the_first(step, &first),
                }
            }
            (Stage::Amending(_), Answer::Told(Ok(IndexReply::Amended))) => {
                self.was = base::checksum(&self.manifest.to_bytes());
                self.at += 1;
                self.look(step)
            }
            // Another part of it was amended, or a later version has taken its place.
            (
                Stage::Amending(change),
                Answer::Told(Err(IndexError::NotAsExpected | IndexError::NoObject)),
            ) => {
                self.stage = Stage::AskingAgain(change.clone());
                step.ask(IndexRequest::Manifest { version: self.version, segment: None });
                Some(self)
            }
            (Stage::Confirming(missing), Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                let (missing, was) = (missing.clone(), self.manifest.segments.get(self.at).cloned());
                if let Err(error) = self.take_manifest(&manifest, of) {
                    return self.end(step, Err(error));
                }
                match self.manifest.segments.get(self.at) == was.as_ref() {
                    true => self.want(step, missing),
                    false => self.look(step),
                }
            }
            (Stage::AskingAgain(change), Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                let change = change.clone();
                if let Err(error) = self.take_manifest(&manifest, of) {
                    return self.end(step, Err(error));
                }
                self.amend(step, change)
            }
            // It is gone, or was never visible.
            (_, Answer::Told(Err(IndexError::NoObject))) => self.end(step, Ok(Restored::default())),
            (_, Answer::Told(Err(error))) => self.end(step, Err(ObjectError::Index(error))),
            (_, Answer::Silence | Answer::Gone(_)) => self.end(step, Err(ObjectError::NoAnswer)),
            (stage, Answer::Told(Ok(reply))) => unreachable!("{reply:?} while {stage:?}"),
        }
    }

    /// Where all fragments are that were put with the version.
    fn places(&self) -> impl Iterator<Item = &Place> {
        let its = self.manifest.segments.iter().filter(|segment| segment.version == self.version);
        its.flat_map(|segment| &segment.places)
    }

    /// Whether it is for this brick to look.
    fn rank(&self, bricks: &Bricks) -> Rank {
        let Inspection::Everywhere { ranks } = &self.inspection else { return Rank::First };
        let mut holders: Vec<BrickId> = self.places().map(|(_, brick)| *brick).collect();
        holders.sort_unstable();
        holders.dedup();
        holders.sort_by_key(|brick| (bricks.is_lost(*brick), drawn(self.version.0, *brick)));
        match holders.iter().position(|brick| *brick == self.me).filter(|rank| ranks.contains(rank)) {
            None => Rank::NotAsked,
            Some(rank) if rank < FIRST_RANKS => Rank::First,
            Some(_) => Rank::Behind(holders[..FIRST_RANKS].iter().copied().collect()),
        }
    }

    /// Asks each of these for one fragment. Who has it knows of the version, and looks after it: it is not for this brick to do so.
    fn ask_the_first(mut self, step: &mut Step<'_>, first: &BTreeSet<BrickId>) -> Option<Restoring> {
        let may_know = |place: &&Place| first.contains(&place.1) && !step.bricks.is_away(place.1);
        let its = (0..).zip(&self.manifest.segments).filter(|(_, segment)| segment.version == self.version);
        let of_segment = its.map(|(number, segment): (u32, _)| {
            let one_of_each: BTreeMap<BrickId, u32> =
                segment.places.iter().filter(may_know).map(|(symbol, brick)| (*brick, *symbol)).collect();
            (number, segment, one_of_each)
        });
        let Some((segment, record, one_of_each)) = of_segment.max_by_key(|(.., of)| of.len()) else {
            return self.look(step);
        };
        let check = Check {
            version: self.version,
            segment,
            symbol_blocks: record.symbol_blocks,
            places: one_of_each.into_iter().map(|(brick, symbol)| (symbol, brick)).collect(),
            reads: false,
            stream: StreamId::MAINTENANCE,
        };
        if check.places.is_empty() {
            return self.look(step);
        }
        self.stage = Stage::AskingTheFirst(step.check(check));
        Some(self)
    }

    /// Asks bricks of the next segment that any of these concerns.
    fn look(mut self, step: &mut Step<'_>) -> Option<Restoring> {
        step.bricks.are_fresh(step.now);
        while let Some(segment) = self.manifest.segments.get(self.at) {
            if segment.version != self.version {
                self.at += 1;
                continue;
            }
            let is_looked_at = |(_, brick): &&Place| match self.inspection {
                Inspection::Own => *brick == self.me,
                Inspection::Everywhere { .. } => step.bricks.is_heard(*brick) && !step.bricks.is_lost(*brick),
            };
            let places: Vec<Place> = segment.places.iter().filter(is_looked_at).copied().collect();
            let reads = self.inspection == Inspection::Own;
            if !reads {
                let is_silent =
                    |(_, brick): &&Place| !step.bricks.is_heard(*brick) && !step.bricks.is_lost(*brick);
                self.restored.lacking += segment.places.iter().filter(is_silent).count() as u32;
            } else if places.is_empty() {
                self.at += 1;
                continue;
            }
            let (version, number, symbol_blocks) = (self.version, self.at as u32, segment.symbol_blocks);
            let stream = StreamId::MAINTENANCE;
            let bytes = places.len() as u64 * segment.symbol_bytes() as u64;
            let check = Check { version, segment: number, symbol_blocks, places, reads, stream };
            if reads {
                self.stage = Stage::Allowing(check);
                step.tell(ObjectNews::WantsToRead { bytes });
            } else {
                self.stage = Stage::Checking(step.check(check));
            }
            return Some(self);
        }
        let restored = self.restored;
        self.end(step, Ok(restored))
    }

    /// Bricks have said what they have of the segment.
    pub(super) fn on_checked(mut self, step: &mut Step<'_>, checked: Checked) -> Option<Restoring> {
        if let Stage::AskingTheFirst(_) = self.stage {
            let restored = self.restored;
            return if checked.there.is_empty() { self.look(step) } else { self.end(step, Ok(restored)) };
        }
        self.restored.lacking += checked.silent.len() as u32;
        let mut missing = checked.missing;
        let segment = &self.manifest.segments[self.at];
        if matches!(self.inspection, Inspection::Everywhere { .. }) {
            let is_lost = |place: &&Place| step.bricks.is_lost(place.1) && !missing.contains(place);
            let lost: Vec<Place> = segment.places.iter().filter(is_lost).copied().collect();
            missing.extend(lost);
        }
        if missing.is_empty() && self.survives(segment) {
            self.at += 1;
            return self.look(step);
        }
        // Who is there and does not have it may have moved it.
        if missing.iter().any(|(_, brick)| !step.bricks.is_lost(*brick)) {
            self.stage = Stage::Confirming(missing);
            step.ask(IndexRequest::Manifest { version: self.version, segment: None });
            return Some(self);
        }
        self.want(step, missing)
    }

    /// These are missing: the segment is to be read.
    fn want(mut self, step: &mut Step<'_>, missing: Vec<Place>) -> Option<Restoring> {
        let segment = &self.manifest.segments[self.at];
        let bytes = segment.coding.blocks() as u64 * segment.symbol_bytes() as u64;
        self.stage = Stage::Waiting(missing);
        step.tell(ObjectNews::WantsToRead { bytes });
        Some(self)
    }

    /// Whether a segment whose fragments are all there survives what it was put to survive.
    fn survives(&self, segment: &SegmentRecord) -> bool {
        if self.inspection == Inspection::Own {
            return true;
        }
        let losses = self.manifest.losses;
        // Of a code whose fragments are as good as each other many are nearly always enough, and that these are was tried when they were made.
        let are_many = matches!(segment.coding, Coding::Precoded(code)
            if left_of(&segment.places, losses) >= enough(code.blocks()) as usize);
        are_many || segment.coder(&[]).survives(&segment.places, losses)
    }

    /// It may read what it wants to.
    pub(super) fn on_more(mut self, step: &mut Step<'_>) -> Option<Restoring> {
        let missing = match core::mem::replace(&mut self.stage, Stage::Asking) {
            Stage::Waiting(missing) => missing,
            Stage::Allowing(check) => {
                self.stage = Stage::Checking(step.check(check));
                return Some(self);
            }
            stage => unreachable!("{stage:?} wants to read nothing"),
        };
        let segment = &self.manifest.segments[self.at];
        let SegmentRecord { coding, symbol_blocks, ref places, .. } = *segment;
        // A brick that is lost may well be alive: one that is to be emptied.
        let is_there = |place: &&Place| step.bricks.is_lost(place.1) || !missing.contains(place);
        let get = Get {
            version: self.version,
            segment: self.at as u32,
            coding,
            symbol_blocks,
            places: places.iter().filter(is_there).copied().collect(),
            wanted: None,
            expected: segment.expected(),
            strategy: AccessStrategy::USUAL,
            stream: StreamId::MAINTENANCE,
        };
        self.stage = Stage::Reading(step.get(get), missing);
        Some(self)
    }

    /// The segment has come, or cannot be read.
    pub(super) fn on_segment(
        mut self,
        step: &mut Step<'_>,
        result: Result<Vec<Payload>, GetError>,
    ) -> Option<Restoring> {
        let Stage::Reading(_, missing) = core::mem::replace(&mut self.stage, Stage::Asking) else {
            unreachable!("a segment that was asked for")
        };
        let number = self.at as u32;
        let blocks = match result {
            Ok(blocks) => blocks,
            // Others of the object may be read all the same.
            Err(_) => {
                self.restored.lacking += 1;
                self.at += 1;
                return self.look(step);
            }
        };
        let segment = &self.manifest.segments[self.at];
        let losses = if self.inspection == Inspection::Own { 0 } else { self.manifest.losses };
        let Plan { instead, is_enough } = plan(self.version, (segment, losses), &missing, step.bricks);
        self.restored.lacking += u32::from(!is_enough);
        let remake = Remake {
            version: self.version,
            segment: number,
            coding: segment.coding,
            blocks,
            places: instead.keys().copied().collect(),
            stream: StreamId::MAINTENANCE,
        };
        self.stage = Stage::Making(step.remake(remake), instead);
        Some(self)
    }

    /// These were made, and are on stable storage.
    pub(super) fn on_remade(mut self, step: &mut Step<'_>, stored: &[Place]) -> Option<Restoring> {
        let Stage::Making(_, mut instead) = core::mem::replace(&mut self.stage, Stage::Asking) else {
            unreachable!("fragments that were to be made")
        };
        let SegmentRecord { places: ref were, mark, .. } = self.manifest.segments[self.at];
        let were = were.clone();
        let mut are = were.clone();
        for place in stored {
            let old = instead.remove(place).expect("what was to be made");
            self.restored.made += 1;
            match are.iter_mut().find(|kept| Some(**kept) == old) {
                Some(kept) => *kept = *place,
                None => are.push(*place),
            }
        }
        self.restored.lacking += instead.len() as u32;
        if were == are {
            self.at += 1;
            return self.look(step);
        }
        // At once, so that no long object's work is for nothing.
        self.amend(step, Change { were, mark, are, times: 0 })
    }

    /// The index is told where the segment's fragments are, if they still were where they had been.
    fn amend(mut self, step: &mut Step<'_>, change: Change) -> Option<Restoring> {
        let version = self.version;
        let segment = self.manifest.segments.get_mut(self.at).filter(|segment| segment.version == version);
        match segment {
            // Nobody shares it any more.
            None => {
                self.at += 1;
                self.look(step)
            }
            Some(segment) if change.fits(segment) && change.times < AMENDMENTS_MAX => {
                segment.places.clone_from(&change.are);
                let manifest = self.manifest.to_bytes();
                step.ask(IndexRequest::Amend { version: self.holder, was: self.was, manifest });
                self.stage = Stage::Amending(Change { times: change.times + 1, ..change });
                Some(self)
            }
            // Somebody else has made the same again, or will.
            Some(_) => {
                self.restored.lacking += 1;
                self.at += 1;
                self.look(step)
            }
        }
    }

    /// The version's fragments are where this manifest says, which is that of the version `of`.
    fn take_manifest(&mut self, manifest: &[u8], of: ObjectVersion) -> Result<(), ObjectError> {
        let read = Manifest::read(manifest, of).map_err(|why| ObjectError::Manifest(why.to_string()))?;
        (self.manifest, self.holder, self.was) = (read, of, base::checksum(manifest));
        Ok(())
    }

    /// The brick has lost interest.
    pub(super) fn call_off(self, step: &mut Step<'_>) {
        step.call_off_questions();
        match self.stage {
            Stage::AskingTheFirst(transfer)
            | Stage::Checking(transfer)
            | Stage::Reading(transfer, _)
            | Stage::Making(transfer, _) => {
                step.forget([transfer]);
            }
            Stage::Asking
            | Stage::Confirming(_)
            | Stage::Allowing(_)
            | Stage::Waiting(_)
            | Stage::Amending(_)
            | Stage::AskingAgain(_) => {}
        }
    }

    fn end(self, step: &mut Step<'_>, result: Result<Restored, ObjectError>) -> Option<Restoring> {
        step.tell(ObjectNews::Restored(result));
        None
    }
}

/// What is to be made of a segment.
struct Plan {
    /// Which symbols, at which bricks, and instead of which places that are lost.
    instead: BTreeMap<Place, Option<Place>>,
    /// Whether the segment survives then what it is to survive, and nothing is missing.
    is_enough: bool,
}

/// What is missing goes to its brick again if that takes more; else to a brick that has fewest of the segment's fragments, and no other copy of
/// the block. If that would not survive the loss of so many bricks as are `wanted`, as fewer bricks share the fragments than before, further symbols are made.
fn plan(
    version: ObjectVersion,
    (segment, wanted): (&SegmentRecord, u32),
    missing: &[Place],
    bricks: &Bricks,
) -> Plan {
    let takers = bricks.that_take_more();
    // What lay together goes together.
    let neighbours = Pack::neighbours(version, segment.symbol_blocks);
    let mut kept: Vec<Place> =
        segment.places.iter().filter(|place| !missing.contains(place)).copied().collect();
    let taker_of = |symbol: u32, kept: &[Place], of: Option<BrickId>| {
        let is_copy = |(other, _): &&Place| match segment.coding {
            Coding::Copies { blocks } => other % blocks == symbol % blocks,
            Coding::Precoded { .. } | Coding::Lt { .. } => *other == symbol,
        };
        let has_copy = |taker: &BrickId| kept.iter().filter(is_copy).any(|(_, at)| at == taker);
        let few = |taker: &BrickId| {
            let count = kept.iter().filter(|(_, at)| at == taker).count();
            (Some(*taker) != of, count, drawn(neighbours.0 ^ u64::from(symbol), *taker))
        };
        takers.iter().filter(|taker| !has_copy(taker)).min_by_key(|taker| few(taker)).copied()
    };
    let mut instead = BTreeMap::new();
    for old in missing {
        if let Some(taker) = taker_of(old.0, &kept, Some(old.1)) {
            kept.push((old.0, taker));
            instead.insert((old.0, taker), Some(*old));
        }
    }
    let has_all = instead.len() == missing.len();
    let few = kept.iter().map(|(_, brick)| *brick).chain(takers.iter().copied()).collect::<BTreeSet<_>>();
    // So few bricks survive the loss of all but one.
    let losses = wanted.min((few.len() as u32).saturating_sub(1));
    let first = kept.iter().chain(missing).map(|(symbol, _)| symbol + 1).max().unwrap_or(0);
    let further = first..first + segment.coding.blocks() * (losses + 1) + FURTHER_SLACK;
    let coder = segment.coder(&[further.end]);
    let mut survives = coder.survives(&kept, losses);
    for symbol in further {
        if survives {
            break;
        }
        if let Some(taker) = taker_of(symbol, &kept, None) {
            kept.push((symbol, taker));
            instead.insert((symbol, taker), None);
            let may_survive = left_of(&kept, losses) >= segment.coding.blocks() as usize;
            survives = may_survive && coder.survives(&kept, losses);
        }
    }
    if !survives {
        // There are too few bricks: what is of no use yet is not made.
        instead.retain(|_, old| old.is_some());
    }
    Plan { instead, is_enough: has_all && survives && losses == wanted }
}

/// So many symbols are made beyond those that would do if they were shared evenly.
const FURTHER_SLACK: u32 = 64;

/// How many are left when those bricks are lost that have most.
fn left_of(kept: &[Place], losses: u32) -> usize {
    let mut counts: BTreeMap<BrickId, usize> = BTreeMap::new();
    kept.iter().for_each(|(_, brick)| *counts.entry(*brick).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable();
    let left = counts.len().saturating_sub(losses as usize);
    counts[..left].iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;
    use wire::BrickPlace;

    const V: ObjectVersion = ObjectVersion(7);

    fn bricks(all: &[(u32, bool)]) -> Bricks {
        let place = |(brick, takes_more): &(u32, bool)| BrickPlace {
            brick: BrickId(*brick),
            address: String::new(),
            takes_more: *takes_more,
            free_bytes: 0,
            is_heard: true,
            is_evicted: false,
            is_lost: !takes_more,
            disks: 0,
            capacity_bytes: 0,
        };
        let mut bricks = Bricks::default();
        bricks.are_fresh(Time(1));
        bricks.wake(Time(1));
        bricks.on_bricks(1, all.iter().map(place).collect());
        bricks
    }

    fn segment(coding: Coding, places: &[(u32, u32)]) -> SegmentRecord {
        let places = places.iter().map(|(symbol, brick)| (*symbol, BrickId(*brick))).collect();
        SegmentRecord { version: V, bytes: 1, checksum: None, coding, symbol_blocks: 1, places, mark: 0 }
    }

    #[test]
    fn what_is_missing_goes_where_least_is() {
        let segment =
            segment(Coding::precoded(4), &[(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)]);
        let lost = [(6, BrickId(4)), (7, BrickId(4))];
        let all = bricks(&[(1, true), (2, true), (3, true), (4, false), (5, true)]);
        let Plan { instead, is_enough } = plan(V, (&segment, 1), &lost, &all);
        assert_eq!(instead.keys().map(|(_, brick)| brick.0).collect::<Vec<_>>(), [5, 5]);
        assert!(is_enough);
        let again = plan(V, (&segment, 1), &[(0, BrickId(1))], &all).instead;
        assert_eq!(again.into_iter().collect::<Vec<_>>(), [((0, BrickId(1)), Some((0, BrickId(1))))]);
        let spread =
            plan(V, (&segment, 0), &lost, &bricks(&[(1, true), (2, true), (3, true), (4, false)])).instead;
        let mut takers: Vec<BrickId> = spread.keys().map(|(_, brick)| *brick).collect();
        takers.dedup();
        assert_eq!(takers.len(), 2, "{spread:?}");
    }

    #[test]
    fn no_brick_gets_two_copies_of_a_block() {
        let segment = segment(Coding::Copies { blocks: 1 }, &[(0, 1), (1, 2), (2, 3)]);
        let lost = [(1, BrickId(2)), (2, BrickId(3))];
        let two = bricks(&[(1, true), (2, false), (3, false), (4, true)]);
        let Plan { instead, is_enough } = plan(V, (&segment, 2), &lost, &two);
        assert_eq!(instead.into_iter().collect::<Vec<_>>(), [((1, BrickId(4)), Some((1, BrickId(2))))]);
        assert!(!is_enough, "two bricks do not survive the loss of two");
    }

    #[test]
    fn what_lay_together_goes_together() {
        let all = bricks(&[(1, true), (2, false), (3, true), (4, true), (5, true), (6, true)]);
        let takers = |symbol_blocks| {
            let segment =
                SegmentRecord { symbol_blocks, ..segment(Coding::Copies { blocks: 1 }, &[(0, 1), (1, 2)]) };
            let taker = |version| {
                let Plan { instead, .. } =
                    plan(ObjectVersion(version), (&segment, 1), &[(1, BrickId(2))], &all);
                instead.into_keys().next().expect("there is a taker").1
            };
            (256..256 + Pack::VERSIONS).map(taker).collect::<BTreeSet<_>>()
        };
        assert_eq!(takers(1).len(), 1, "of small fragments");
        assert_eq!(takers(Pack::BLOCKS_MAX + 1).len(), 4, "of large ones all bricks get some");
    }

    #[test]
    fn nothing_further_is_made_where_it_is_of_no_use() {
        let segment = segment(Coding::precoded(4), &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (5, 2)]);
        let lost = [(4, BrickId(2)), (5, BrickId(2))];
        let Plan { instead, is_enough } = plan(V, (&segment, 1), &lost, &bricks(&[(1, true), (2, false)]));
        assert!(!is_enough && instead.len() == 2 && instead.values().all(Option::is_some), "{instead:?}");
    }

    /// Nothing further was made where no more bricks were left than may be lost: then the loss of one could be one too many.
    #[test]
    fn where_few_bricks_are_left_all_but_one_may_be_lost() {
        let places: Vec<(u32, u32)> = (0..20).map(|symbol| (symbol, 1 + symbol % 5)).collect();
        let segment = segment(Coding::precoded(10), &places);
        let lost: Vec<Place> = segment.places.iter().filter(|(_, brick)| brick.0 > 2).copied().collect();
        let two = bricks(&[(1, true), (2, true), (3, false), (4, false), (5, false)]);
        let Plan { instead, is_enough } = plan(V, (&segment, 2), &lost, &two);
        let kept = segment.places.iter().filter(|place| !lost.contains(place)).chain(instead.keys()).copied();
        let kept: Vec<Place> = kept.collect();
        assert!(segment.coder(&[]).survives(&kept, 1), "{kept:?}");
        assert!(!is_enough, "it was put to survive the loss of two");
    }

    /// Found by the torture (seed 14): 16 symbols of 10 blocks were shared by two bricks, and neither had enough.
    #[test]
    fn further_symbols_are_made_where_fewer_bricks_share_them() {
        let places: Vec<(u32, u32)> = (0..16).map(|symbol| (symbol, 1 + symbol % 4)).collect();
        let segment = segment(Coding::precoded(10), &places);
        let lost: Vec<Place> = segment.places.iter().filter(|(_, brick)| brick.0 > 2).copied().collect();
        let two = bricks(&[(1, true), (2, true), (3, false), (4, false)]);
        let Plan { instead, is_enough } = plan(V, (&segment, 1), &lost, &two);
        let kept = segment.places.iter().filter(|place| !lost.contains(place)).chain(instead.keys()).copied();
        let kept: Vec<Place> = kept.collect();
        assert!(is_enough && segment.coder(&[]).survives(&kept, 1));
        assert!((20..=40).contains(&kept.len()), "{kept:?}");
    }
}
