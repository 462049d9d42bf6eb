//! A brick looks after its own share of a version: what is to be elsewhere is moved, and what nobody looks for here any more is given back.
//!
//! A brick that is fuller than others moves all that it has of a segment to one brick that has nothing of it. So the segment is on as many bricks as
//! before, and survives the loss of as many. What a brick has of a segment that is not named in the manifest was made again elsewhere while the brick
//! was away, or came late from a putter that did not wait for it.
//!
//! **What is given back must not be named by anybody later.** Whoever makes lost fragments again may just have stored one here, and be about to say so. So
//! a brick first takes no more fragments of the segment. Then it has the index store a manifest in which the segment has another mark
//! ([`SegmentRecord::mark`]). Only then does it give back what it has. Whoever read the manifest before that is refused by the index.

use super::access::Place;
use super::bricks::drawn;
use super::carry::Carry;
use super::check::{Check, Checked};
use super::manifest::{Manifest, SegmentRecord};
use super::objects::{ObjectError, ObjectNews, Step};
use super::questions::Answer;
use base::{BrickId, Checksum, ObjectVersion, StreamId};
use std::collections::VecDeque;
use wire::object::Pack;
use wire::{IndexError, IndexReply, IndexRequest, Wire};

/// What a brick is to look after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebalance {
    pub version: ObjectVersion,
    pub me: BrickId,
    /// Of these segments it has something.
    pub segments: Vec<u32>,
    /// Another number for each pass over all versions, if it is to move what others have more room for.
    pub moves: Option<u64>,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rebalanced {
    /// So many fragments were moved.
    pub moved: u32,
    /// So many segments were left as they are, although something was to be done.
    pub lacking: u32,
}

/// A version whose manifest changes again and again is left as it is.
const TRIES_MAX: u32 = 5;
/// So many segments are told to the index at a time.
const SEGMENTS_TOGETHER: usize = 16;
/// Multiples of the golden ratio are even between 0 and 1, here 2^64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
enum Stage {
    /// The index is being asked where the version is.
    Asking,
    /// Others are asked whether they have what they are named for of the first segment.
    Checking,
    /// What the brick has of the first segment may be read when somebody allows it.
    Waiting,
    /// It may, once it is known which bricks there are.
    Allowed,
    Copying,
    /// The index is to be told, once it is known which bricks there are.
    Settling,
    Amending,
}

/// A segment of which the brick is to have nothing any more.
#[derive(Debug)]
struct Leaving {
    segment: u32,
    were: Vec<Place>,
    mark: u64,
    are: Vec<Place>,
    /// Who has got the brick's share, and a number that is another one if that comes with other disks; none where nobody looked for anything here.
    to: Option<(BrickId, u64)>,
}

#[derive(Debug)]
pub(super) struct Rebalancing {
    version: ObjectVersion,
    me: BrickId,
    moves: Option<u64>,
    /// What is still to be looked at.
    segments: VecDeque<u32>,
    /// What the index is to be told.
    leaving: Vec<Leaving>,
    /// The version that has these fragments, and its manifest.
    holder: ObjectVersion,
    manifest: Manifest,
    /// The checksum of the manifest as the index has it.
    was: Checksum,
    /// So often the index has refused since it took something.
    tries: u32,
    stage: Stage,
    done: Rebalanced,
}

impl Rebalancing {
    pub(super) fn begin(step: &mut Step<'_>, wanted: Rebalance) -> Rebalancing {
        let Rebalance { version, me, segments, moves } = wanted;
        step.bricks.are_fresh(step.now);
        step.ask(IndexRequest::Manifest { version, segment: None });
        Rebalancing {
            version,
            me,
            moves,
            segments: segments.into(),
            leaving: Vec::new(),
            holder: version,
            manifest: Manifest::default(),
            was: 0,
            tries: 0,
            stage: Stage::Asking,
            done: Rebalanced::default(),
        }
    }

    pub(super) fn on_answer(mut self, step: &mut Step<'_>, answer: Answer) -> Option<Rebalancing> {
        match (&self.stage, answer) {
            // Whoever reads an older version, or this one although it is past, may look here for what no later manifest names.
            (Stage::Asking, Answer::Told(Ok(IndexReply::Manifest { is_held: true, .. }))) => {
                self.done.lacking += (self.segments.len() + self.leaving.len()) as u32;
                self.end(step, Ok(()))
            }
            (Stage::Asking, Answer::Told(Ok(IndexReply::Manifest { manifest, of, .. }))) => {
                match Manifest::read(&manifest, of) {
                    Ok(read) => {
                        (self.manifest, self.holder, self.was) = (read, of, base::checksum(&manifest));
                        self.look_anew();
                        self.look(step)
                    }
                    Err(why) => self.end(step, Err(ObjectError::Manifest(why.to_string()))),
                }
            }
            (Stage::Amending, answer)
                if step.rules().gives_back(matches!(answer, Answer::Told(Ok(IndexReply::Amended)))) =>
            {
                self.was = base::checksum(&self.manifest.to_bytes());
                self.tries = 0;
                let count = |left: &Leaving| left.were.iter().filter(|(_, brick)| *brick == self.me).count();
                self.done.moved += self.leaving.iter().map(count).sum::<usize>() as u32;
                self.leave(step, true);
                self.leaving.clear();
                self.look(step)
            }
            // The manifest was changed meanwhile, or a later version has taken its place.
            (Stage::Amending, Answer::Told(Err(IndexError::NotAsExpected | IndexError::NoObject)))
                if self.tries < TRIES_MAX =>
            {
                self.leave(step, false);
                self.tries += 1;
                self.stage = Stage::Asking;
                step.ask(IndexRequest::Manifest { version: self.version, segment: None });
                Some(self)
            }
            // It is gone, or is not visible yet.
            (Stage::Asking, Answer::Told(Err(IndexError::NoObject | IndexError::NotAsExpected))) => {
                self.end(step, Ok(()))
            }
            (_, Answer::Told(Err(error))) => self.end(step, Err(ObjectError::Index(error))),
            (_, Answer::Silence | Answer::Gone(_)) => self.end(step, Err(ObjectError::NoAnswer)),
            (stage, Answer::Told(Ok(reply))) => unreachable!("{reply:?} while {stage:?}"),
        }
    }

    /// What was to be told of segments that others have changed since is of no use: these are looked at again.
    fn look_anew(&mut self) {
        for left in core::mem::take(&mut self.leaving) {
            let now = self.segment(left.segment);
            match now.is_some_and(|now| now.places == left.were && now.mark == left.mark) {
                true => self.leaving.push(left),
                false => self.segments.push_front(left.segment),
            }
        }
    }

    /// Goes on with the next segment of which something is to be done.
    fn look(mut self, step: &mut Step<'_>) -> Option<Rebalancing> {
        step.bricks.are_fresh(step.now);
        while self.leaving.len() < SEGMENTS_TOGETHER
            && let Some(number) = self.segments.front().copied()
        {
            // What the last version that shares them does not have is given back with all that nobody shares.
            if let Some(segment) = self.segment(number) {
                let is_concerned = self.own_symbols(segment).is_empty() || self.better_place(step).is_some();
                let others = segment.places.iter().filter(|(_, brick)| *brick != self.me);
                if is_concerned && others.clone().any(|(_, brick)| step.bricks.is_away(*brick)) {
                    self.done.lacking += 1;
                } else if is_concerned {
                    let check = Check {
                        version: self.version,
                        segment: number,
                        symbol_blocks: segment.symbol_blocks,
                        places: others.copied().collect(),
                        reads: false,
                        stream: StreamId::MAINTENANCE,
                    };
                    step.check(check);
                    self.stage = Stage::Checking;
                    return Some(self);
                }
            }
            self.segments.pop_front();
        }
        if self.leaving.is_empty() {
            return self.end(step, Ok(()));
        }
        self.stage = Stage::Settling;
        self.wake(step)
    }

    /// The segment, if its fragments are still those of this version.
    fn segment(&self, number: u32) -> Option<&SegmentRecord> {
        let segment = self.manifest.segments.get(number as usize);
        segment.filter(|segment| segment.version == self.version)
    }

    /// The first segment, which is being looked at.
    fn first(&self) -> &SegmentRecord {
        self.segment(self.segments[0]).expect("a segment that is looked at")
    }

    /// Who is to have the brick's share of the first segment, if that is to be moved.
    fn better_place(&self, step: &Step<'_>) -> Option<BrickId> {
        // Even over the segments of a version, so that of a few segments hardly more or fewer are moved than are to be.
        let of_segment = u64::from(self.segments[0]).wrapping_mul(GOLDEN);
        // What lies together goes together: nothing else gives room back.
        let of = Pack::neighbours(self.version, self.first().symbol_blocks);
        let draw = drawn(of.0 ^ self.moves?, self.me).wrapping_add(of_segment);
        step.bricks.better_place(self.me, &self.first().places, draw)
    }

    fn own_symbols(&self, segment: &SegmentRecord) -> Vec<u32> {
        let own = segment.places.iter().filter(|(_, brick)| *brick == self.me);
        own.map(|(symbol, _)| *symbol).collect()
    }

    /// Others have said whether they have what they are named for. If some do not, what is here may be the last there is, named or not.
    pub(super) fn on_checked(mut self, step: &mut Step<'_>, checked: &Checked) -> Option<Rebalancing> {
        let own = self.own_symbols(self.first()).len();
        if !checked.missing.is_empty() || !checked.silent.is_empty() {
            self.done.lacking += 1;
        } else if own > 0 {
            let bytes = (own * self.first().symbol_bytes()) as u64;
            self.stage = Stage::Waiting;
            step.tell(ObjectNews::WantsToRead { bytes });
            return Some(self);
        } else {
            let SegmentRecord { ref places, mark, .. } = *self.first();
            let (were, segment) = (places.clone(), self.segments[0]);
            self.leaving.push(Leaving { segment, are: were.clone(), were, mark, to: None });
        }
        self.segments.pop_front();
        self.look(step)
    }

    /// It may read what it wants to.
    pub(super) fn on_more(mut self, step: &mut Step<'_>) -> Option<Rebalancing> {
        self.stage = Stage::Allowed;
        self.wake(step)
    }

    /// What is known of bricks may have changed.
    pub(super) fn wake(self, step: &mut Step<'_>) -> Option<Rebalancing> {
        match self.stage {
            Stage::Allowed | Stage::Settling if !step.bricks.are_fresh(step.now) => Some(self),
            Stage::Allowed => self.copy(step),
            Stage::Settling => self.settle(step),
            _ => Some(self),
        }
    }

    fn copy(mut self, step: &mut Step<'_>) -> Option<Rebalancing> {
        // Others may have more room by now.
        let Some(to) = self.better_place(step) else {
            self.segments.pop_front();
            return self.look(step);
        };
        let segment = self.first();
        let carry = Carry {
            version: self.version,
            segment: self.segments[0],
            symbol_blocks: segment.symbol_blocks,
            symbols: self.own_symbols(segment),
            from: self.me,
            to,
            stream: StreamId::MAINTENANCE,
        };
        let disks = step.bricks.disks(to);
        let moved = |(symbol, brick): &Place| (*symbol, if *brick == self.me { to } else { *brick });
        self.leaving.push(Leaving {
            segment: self.segments[0],
            were: segment.places.clone(),
            mark: segment.mark,
            are: segment.places.iter().map(moved).collect(),
            to: Some((to, disks)),
        });
        step.carry(carry);
        self.stage = Stage::Copying;
        Some(self)
    }

    /// These are where they are to be.
    pub(super) fn on_stored(mut self, step: &mut Step<'_>, stored: &[Place]) -> Option<Rebalancing> {
        if stored.len() < self.own_symbols(self.first()).len() {
            // Something cannot be read here, or the other brick does not take it.
            self.done.lacking += 1;
            self.leaving.pop();
        }
        self.segments.pop_front();
        self.look(step)
    }

    /// Nobody is to count on what the brick has of these segments any more.
    fn settle(mut self, step: &mut Step<'_>) -> Option<Rebalancing> {
        let count = self.leaving.len();
        let takes =
            |(brick, disks): (BrickId, u64)| !step.bricks.is_away(brick) && step.bricks.disks(brick) == disks;
        self.leaving.retain(|left| left.to.is_none_or(takes));
        self.done.lacking += (count - self.leaving.len()) as u32;
        if self.leaving.is_empty() {
            return self.look(step);
        }
        for left in &self.leaving {
            step.tell(ObjectNews::Leaving { version: self.version, segment: left.segment });
            let segment = &mut self.manifest.segments[left.segment as usize];
            segment.places.clone_from(&left.are);
            segment.mark = step.mark(self.me);
        }
        let manifest = self.manifest.to_bytes();
        step.ask(IndexRequest::Amend { version: self.holder, was: self.was, manifest });
        self.stage = Stage::Amending;
        Some(self)
    }

    /// Whether the brick's shares of these segments may be given back is known.
    fn leave(&self, step: &mut Step<'_>, is_elsewhere: bool) {
        for left in &self.leaving {
            step.tell(ObjectNews::Left { version: self.version, segment: left.segment, is_elsewhere });
        }
    }

    fn end(self, step: &mut Step<'_>, result: Result<(), ObjectError>) -> Option<Rebalancing> {
        if matches!(self.stage, Stage::Amending) {
            self.leave(step, false);
        }
        step.tell(ObjectNews::Rebalanced(result.map(|()| self.done)));
        None
    }
}
