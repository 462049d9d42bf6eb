//! Objects by name, as whoever puts and reads them has them: [`Objects`] takes wishes, and tells what comes of each.
//!
//! A put's or patch's content comes a segment at a time, when [`ObjectNews::WantsContent`] asks for it; a get's goes out a segment at a time, for each
//! [`ObjectWish::More`]. So memory is bounded by the size of a segment, whatever an object's is.

use super::access::Place;
use super::bricks::{Bricks, Room, drawn};
use super::carry::Carry;
use super::check::{Check, Checked};
use super::download::{Downloading, WantedObject};
use super::get::{Get, GetError};
use super::manifest::Manifest;
use super::parts::Incomplete;
use super::patch::ObjectPatch;
use super::put::{Put, PutError};
use super::questions::{Answer, Questions};
use super::rebalance::{Rebalance, Rebalanced, Rebalancing};
use super::remake::Remake;
use super::restore::{Inspection, Restored, Restoring};
use super::resume::StoredSegment;
use super::upload::{NewObject, Uploading};
use super::{TransferEffect, TransferId, Transfers, first_of_run};
use base::{BrickId, NodeId, ObjectVersion, Payload, Time};
use code::{Computation, Computed};
use rules::fair::Cost;
use std::collections::BTreeMap;
use thiserror::Error;
use wire::{IndexError, IndexReply, IndexRequest, Message, ObjectInfo, ObjectName, Packet};

/// What somebody wants of objects. It names its wish by a tag, which it does not use for another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectWish {
    Put(NewObject),
    Patch(ObjectPatch),
    /// The next content of what is being put: as much as is wanted, or less where it is the last.
    Content {
        content: Payload,
        is_last: bool,
    },
    Get(WantedObject),
    /// One more segment of what is being read, or of what is being restored.
    More,
    /// What is known of an object, and where it is.
    Look {
        name: ObjectName,
    },
    Remove {
        name: ObjectName,
    },
    List {
        bucket: String,
        prefix: String,
        after: Option<String>,
        limit: u32,
    },
    /// What bricks have lost of a version is to be made again; the brick that wants it is `me`.
    Restore {
        version: ObjectVersion,
        me: BrickId,
        inspection: Inspection,
    },
    /// A brick looks after its own share of a version.
    Rebalance(Rebalance),
    /// Nobody wants it any more.
    CallOff,
}

/// What is told of a wish. All but [`ObjectNews::WantsContent`], [`ObjectNews::Stored`], [`ObjectNews::Begun`], [`ObjectNews::Content`],
/// [`ObjectNews::WantsToRead`], [`ObjectNews::Leaving`] and [`ObjectNews::Left`] end it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectNews {
    /// There is room for so much more content.
    WantsContent {
        bytes: usize,
    },
    /// A segment of a put that can go on later is stored: it need not be put again.
    Stored {
        segment: u32,
        stored: StoredSegment,
    },
    /// What was put, or patched.
    Put(Result<ObjectInfo, ObjectError>),
    /// The version that is read, or patched.
    Begun(ObjectInfo),
    /// The next part of it.
    Content(Payload),
    Got(Result<(), ObjectError>),
    Looked(Result<(ObjectInfo, Manifest), ObjectError>),
    Removed(Result<(), ObjectError>),
    /// Names and what they stand for; whether others follow.
    Listed(Result<(Vec<(String, ObjectInfo)>, bool), ObjectError>),
    /// A segment has lost fragments: so much is to be read to make them again, when [`ObjectWish::More`] allows it.
    WantsToRead {
        bytes: u64,
    },
    Restored(Result<Restored, ObjectError>),
    /// Until it has left, the brick must take no more fragments of this segment.
    Leaving {
        version: ObjectVersion,
        segment: u32,
    },
    /// It takes fragments again. If all is elsewhere, what it had is to be given back first.
    Left {
        version: ObjectVersion,
        segment: u32,
        is_elsewhere: bool,
    },
    Rebalanced(Result<Rebalanced, ObjectError>),
}

/// Why a wish is not fulfilled.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ObjectError {
    #[error("{0}")]
    Index(IndexError),
    #[error("the directory does not answer")]
    NoAnswer,
    #[error("the directory does not answer: the object may have been put or not")]
    InDoubt,
    #[error(
        "{bricks} bricks take objects, which is too few to survive the loss of {losses}: {} are needed",
        2 * losses + 1
    )]
    TooFewBricks { bricks: usize, losses: u32 },
    #[error("{0}")]
    Put(PutError),
    #[error("segment {segment} cannot be read: {error}")]
    Get { segment: u32, error: GetError },
    #[error("the record of the object is damaged: {0}")]
    Manifest(String),
    #[error("that is behind the end of the object, which has {bytes} bytes")]
    OutOfRange { bytes: u64 },
    #[error("what was read is not what was put: the checksum differs")]
    Corrupt,
    #[error("the object was replaced or removed, and this reader was away for too long to read on")]
    Gone,
    #[error("the object is too large: the record of where it is may have {} KiB", wire::index::MANIFEST_MAX >> 10)]
    TooLarge,
    #[error("the object was put by an earlier release, which did not note what a patch needs: put it anew")]
    TooOld,
    #[error("the object has parts of more than {} versions: put it anew", wire::index::SHARES_MAX)]
    TooScattered,
    #[error("the object was not put, as a mistake of this program would have left a hole in it: {0}")]
    Incomplete(Incomplete),
    #[error("content came that was not asked for")]
    OutOfTurn,
    #[error("the object was put, patched or removed in the meantime")]
    BaseReplaced,
    #[error("nobody wants it any more")]
    CalledOff,
}

impl ObjectError {
    /// Whether the same wish may be fulfilled later.
    pub fn may_pass(&self) -> bool {
        match self {
            ObjectError::Index(IndexError::Busy | IndexError::Storage(_) | IndexError::Expired) => true,
            ObjectError::NoAnswer | ObjectError::InDoubt | ObjectError::BaseReplaced => true,
            ObjectError::TooFewBricks { .. } | ObjectError::CalledOff => true,
            ObjectError::Put(error) => {
                matches!(error, PutError::NoBrickTakesMore { .. } | PutError::LessRedundancy { .. })
            }
            ObjectError::Get { error, .. } => matches!(error, GetError::TooFewFragments { .. }),
            _ => false,
        }
    }
}

/// What is asked for, and told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectEffect {
    /// Send this; it may get lost.
    Send {
        to: NodeId,
        packet: Packet,
    },
    /// This is where a peer is reached.
    Address {
        node: NodeId,
        address: String,
    },
    /// Answered by [`Objects::on_computed`], always.
    Compute {
        transfer: TransferId,
        computation: Computation,
    },
    News {
        tag: u64,
        news: ObjectNews,
    },
    /// A segment was put that was asked for alone.
    Put {
        tag: u64,
        result: Result<Vec<Place>, PutError>,
    },
    /// A segment was read that was asked for alone.
    Got {
        tag: u64,
        result: Result<Vec<Payload>, GetError>,
    },
}

/// All objects that a process puts and reads.
#[derive(Debug, Default)]
pub struct Objects {
    transfers: Transfers,
    owners: BTreeMap<TransferId, Owner>,
    /// Segments that have come, while wrong fragments of them are being replaced: whoever wants one is told then, as it may end its process at once.
    mending: BTreeMap<TransferId, (TransferId, Vec<Payload>)>,
    questions: Questions,
    bricks: Bricks,
    work: BTreeMap<u64, Work>,
    transfer_fx: Vec<TransferEffect>,
    news: Vec<(u64, ObjectNews)>,
    /// The number of the last mark.
    marks: u64,
}

/// Whose segment it is.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// Of nobody's object: whoever has this tag.
    Segment(u64),
    /// Of what is put or read under this tag.
    Object(u64),
}

#[derive(Debug)]
enum Work {
    Put(Box<Uploading>),
    Get(Box<Downloading>),
    Look,
    Remove(Removing),
    List,
    Restore(Box<Restoring>),
    Rebalance(Box<Rebalancing>),
}

/// A version is looked up and then removed: the one that was there, whatever comes after it.
#[derive(Debug)]
enum Removing {
    Looking(ObjectName),
    Asked,
}

/// What a step of a put or get may do beside its own fields.
pub(super) struct Step<'a> {
    pub(super) now: Time,
    tag: u64,
    pub(super) bricks: &'a mut Bricks,
    transfers: &'a mut Transfers,
    owners: &'a mut BTreeMap<TransferId, Owner>,
    questions: &'a mut Questions,
    transfer_fx: &'a mut Vec<TransferEffect>,
    news: &'a mut Vec<(u64, ObjectNews)>,
    marks: &'a mut u64,
}

impl Step<'_> {
    pub(super) fn ask(&mut self, request: IndexRequest) {
        self.questions.ask(self.now, self.tag, request);
    }

    pub(super) fn call_off_questions(&mut self) {
        self.questions.call_off(self.tag);
    }

    pub(super) fn tell(&mut self, news: ObjectNews) {
        self.news.push((self.tag, news));
    }

    pub(super) fn put(&mut self, put: Put) -> TransferId {
        let transfer = self.transfers.put(self.now, put, self.transfer_fx);
        self.owners.insert(transfer, Owner::Object(self.tag));
        transfer
    }

    pub(super) fn get(&mut self, get: Get) -> TransferId {
        let transfer = self.transfers.get(self.now, get, self.transfer_fx);
        self.owners.insert(transfer, Owner::Object(self.tag));
        transfer
    }

    pub(super) fn check(&mut self, check: Check) -> TransferId {
        let transfer = self.transfers.check(self.now, check, self.transfer_fx);
        self.owners.insert(transfer, Owner::Object(self.tag));
        transfer
    }

    pub(super) fn remake(&mut self, remake: Remake) -> TransferId {
        let transfer = self.transfers.remake(self.now, remake, self.transfer_fx);
        self.owners.insert(transfer, Owner::Object(self.tag));
        transfer
    }

    /// A number that hardly any other brick or run draws.
    pub(super) fn mark(&mut self, me: BrickId) -> u64 {
        *self.marks += 1;
        drawn(drawn(*self.marks, BrickId(0)), me) | 1
    }

    /// What is done at which a mistake would break a promise.
    pub(super) fn rules(&self) -> &'static dyn rules::promises::Rules {
        self.transfers.rules
    }

    pub(super) fn carry(&mut self, carry: Carry) -> TransferId {
        let transfer = self.transfers.carry(self.now, carry, self.transfer_fx);
        self.owners.insert(transfer, Owner::Object(self.tag));
        transfer
    }

    /// Segments that are not wanted any more.
    pub(super) fn forget(&mut self, transfers: impl IntoIterator<Item = TransferId>) {
        for transfer in transfers {
            self.owners.remove(&transfer);
            self.transfers.call_off(self.now, transfer, self.transfer_fx);
        }
    }
}

impl Objects {
    /// Of a process whose peers may have questions of an earlier run of it under way: its questions have other numbers than those.
    pub fn of_run(run: u64) -> Objects {
        let (transfers, questions) = (Transfers::of_run(run), Questions::of_run(run));
        Objects { transfers, questions, marks: first_of_run(run), ..Objects::default() }
    }

    /// What requests cost in this cluster.
    pub fn set_cost(&mut self, cost: Cost) {
        self.transfers.set_cost(cost);
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.transfers.set_rules(rules);
    }

    /// What bricks and the index are asked and have not answered, a line for each question. For people.
    pub fn describe(&self, now: Time) -> Vec<String> {
        self.questions.describe().chain(self.transfers.describe(now)).collect()
    }

    /// Puts a segment of nobody's object.
    pub fn put_segment(&mut self, now: Time, tag: u64, put: Put, fx: &mut Vec<ObjectEffect>) {
        let transfer = self.transfers.put(now, put, &mut self.transfer_fx);
        self.owners.insert(transfer, Owner::Segment(tag));
        self.settle(now, fx);
    }

    /// Reads a segment of nobody's object.
    pub fn get_segment(&mut self, now: Time, tag: u64, get: Get, fx: &mut Vec<ObjectEffect>) {
        let transfer = self.transfers.get(now, get, &mut self.transfer_fx);
        self.owners.insert(transfer, Owner::Segment(tag));
        self.settle(now, fx);
    }

    pub fn on_wish(&mut self, now: Time, tag: u64, wish: ObjectWish, fx: &mut Vec<ObjectEffect>) {
        let (work, mut step) = self.take(now, tag);
        let work = match (work, wish) {
            (None, ObjectWish::Put(object)) => Some(Work::Put(Box::new(Uploading::begin(&mut step, object)))),
            (None, ObjectWish::Patch(patch)) => Some(Work::put(Uploading::begin_patch(&mut step, patch))),
            (None, ObjectWish::Get(wanted)) => {
                Some(Work::Get(Box::new(Downloading::begin(&mut step, wanted))))
            }
            (None, ObjectWish::Look { name }) => {
                step.ask(IndexRequest::Look { name });
                Some(Work::Look)
            }
            (None, ObjectWish::Remove { name }) => {
                step.ask(IndexRequest::Look { name: name.clone() });
                Some(Work::Remove(Removing::Looking(name)))
            }
            (None, ObjectWish::List { bucket, prefix, after, limit }) => {
                step.ask(IndexRequest::List { bucket, prefix, after, limit });
                Some(Work::List)
            }
            (None, ObjectWish::Restore { version, me, inspection }) => {
                Some(Work::restore(Restoring::begin(&mut step, version, me, inspection)))
            }
            (None, ObjectWish::Rebalance(wanted)) => {
                Some(Work::rebalance(Rebalancing::begin(&mut step, wanted)))
            }
            (Some(Work::Rebalance(work)), ObjectWish::More) => work.on_more(&mut step).map(Work::rebalance),
            (Some(Work::Restore(restore)), ObjectWish::More) => restore.on_more(&mut step).map(Work::restore),
            (Some(Work::Restore(restore)), ObjectWish::CallOff) => {
                restore.call_off(&mut step);
                None
            }
            (Some(Work::Put(put)), ObjectWish::Content { content, is_last }) => {
                put.on_content(&mut step, content, is_last).map(Work::put)
            }
            (Some(Work::Put(put)), ObjectWish::CallOff) => put.call_off(&mut step).map(Work::put),
            (Some(Work::Get(get)), ObjectWish::More) => get.on_more(&mut step).map(Work::get),
            (Some(Work::Get(get)), ObjectWish::CallOff) => get.call_off(&mut step).map(Work::get),
            (Some(_), ObjectWish::CallOff) => {
                step.call_off_questions();
                None
            }
            // It has ended in the meantime.
            (None, ObjectWish::Content { .. } | ObjectWish::More | ObjectWish::CallOff) => None,
            (Some(work), wish) => unreachable!("{wish:?} of {work:?}"),
        };
        self.keep(tag, work);
        self.settle(now, fx);
    }

    pub fn on_brick(&mut self, now: Time, from: BrickId, packet: Packet, fx: &mut Vec<ObjectEffect>) {
        self.transfers.on_packet(now, from, packet, &mut self.transfer_fx);
        self.settle(now, fx);
    }

    /// The directory says something; what is not about objects is not for here.
    pub fn on_directory(&mut self, now: Time, message: Message, fx: &mut Vec<ObjectEffect>) {
        match message {
            Message::IndexDone { operation, result } => {
                if let Some((tag, answer)) = self.questions.on_done(now, operation, *result) {
                    self.on_answer(now, tag, answer);
                }
            }
            Message::Bricks { operation, bricks } => {
                let moved = self.bricks.on_bricks(operation, bricks);
                fx.extend(moved.into_iter().map(|(node, address)| ObjectEffect::Address { node, address }));
                self.wake_work(now);
            }
            _ => {}
        }
        self.settle(now, fx);
    }

    /// What is known of all bricks, for the brick `me`; none while that is not known, and then the directory is asked.
    pub fn room_of_bricks(&mut self, now: Time, me: BrickId, fx: &mut Vec<ObjectEffect>) -> Option<Room> {
        let is_fresh = self.bricks.are_fresh(now);
        self.settle(now, fx);
        is_fresh.then(|| self.bricks.room(me))
    }

    /// The directory can be reached again.
    pub fn on_directory_up(&mut self, now: Time, fx: &mut Vec<ObjectEffect>) {
        self.questions.on_up(now);
        self.bricks.on_up(now);
        self.settle(now, fx);
    }

    /// A brick can be reached again.
    pub fn on_up(&mut self, now: Time, brick: BrickId, fx: &mut Vec<ObjectEffect>) {
        self.transfers.on_up(now, brick, &mut self.transfer_fx);
        self.settle(now, fx);
    }

    pub fn on_computed(
        &mut self,
        now: Time,
        transfer: TransferId,
        made: Computed,
        fx: &mut Vec<ObjectEffect>,
    ) {
        self.transfers.on_computed(now, transfer, made, &mut self.transfer_fx);
        self.settle(now, fx);
    }

    pub fn wake(&mut self, now: Time, fx: &mut Vec<ObjectEffect>) {
        self.transfers.wake(now, &mut self.transfer_fx);
        for (tag, answer) in self.questions.wake(now) {
            self.on_answer(now, tag, answer);
        }
        self.wake_work(now);
        self.settle(now, fx);
    }

    pub fn deadline(&self) -> Option<Time> {
        let of_work = self.work.values().filter_map(|work| match work {
            Work::Put(put) => put.deadline(),
            Work::Get(get) => get.deadline(),
            Work::Look | Work::Remove(_) | Work::List | Work::Restore(_) | Work::Rebalance(_) => None,
        });
        let others = [self.transfers.deadline(), self.questions.deadline(), self.bricks.deadline()];
        of_work.chain(others.into_iter().flatten()).min()
    }

    fn wake_work(&mut self, now: Time) {
        for tag in self.work.keys().copied().collect::<Vec<_>>() {
            let (work, mut step) = self.take(now, tag);
            let work = match work {
                Some(Work::Put(put)) => put.wake(&mut step).map(Work::put),
                Some(Work::Get(get)) => get.wake(&mut step).map(Work::get),
                Some(Work::Rebalance(work)) => work.wake(&mut step).map(Work::rebalance),
                other => other,
            };
            self.keep(tag, work);
        }
    }

    fn on_answer(&mut self, now: Time, tag: u64, answer: Answer) {
        let (work, mut step) = self.take(now, tag);
        let work = match work {
            Some(Work::Put(put)) => put.on_answer(&mut step, answer).map(Work::put),
            Some(Work::Get(get)) => get.on_answer(&mut step, answer).map(Work::get),
            Some(Work::Restore(restore)) => restore.on_answer(&mut step, answer).map(Work::restore),
            Some(Work::Rebalance(work)) => work.on_answer(&mut step, answer).map(Work::rebalance),
            Some(Work::Look) => {
                step.tell(ObjectNews::Looked(found(answer)));
                None
            }
            Some(Work::Remove(Removing::Looking(name))) => match known(answer) {
                Ok((info, _)) => {
                    step.ask(IndexRequest::Remove { name, version: info.version });
                    Some(Work::Remove(Removing::Asked))
                }
                Err(error) => {
                    step.tell(ObjectNews::Removed(Err(error)));
                    None
                }
            },
            Some(Work::Remove(Removing::Asked)) => {
                step.tell(ObjectNews::Removed(match answer {
                    Answer::Told(Ok(_)) => Ok(()),
                    Answer::Told(Err(error)) => Err(ObjectError::Index(error)),
                    Answer::Silence | Answer::Gone(_) => Err(ObjectError::InDoubt),
                }));
                None
            }
            Some(Work::List) => {
                step.tell(ObjectNews::Listed(match answer {
                    Answer::Told(Ok(IndexReply::Listed { objects, more })) => Ok((objects, more)),
                    Answer::Told(Ok(reply)) => unreachable!("{reply:?} to a list"),
                    Answer::Told(Err(error)) => Err(ObjectError::Index(error)),
                    Answer::Silence | Answer::Gone(_) => Err(ObjectError::NoAnswer),
                }));
                None
            }
            None => None,
        };
        self.keep(tag, work);
    }

    /// What is under way under a tag, and what it may work with.
    fn take(&mut self, now: Time, tag: u64) -> (Option<Work>, Step<'_>) {
        let Objects { transfers, owners, questions, bricks, work, transfer_fx, news, marks, .. } = self;
        let step = Step { now, tag, bricks, transfers, owners, questions, transfer_fx, news, marks };
        (work.remove(&tag), step)
    }

    fn keep(&mut self, tag: u64, work: Option<Work>) {
        match work {
            Some(work) => drop(self.work.insert(tag, work)),
            // What it asked and did not wait for.
            None => self.questions.call_off(tag),
        }
    }

    /// Hands over what is to be done, until nothing follows from it here.
    fn settle(&mut self, now: Time, fx: &mut Vec<ObjectEffect>) {
        while !self.transfer_fx.is_empty() {
            for effect in core::mem::take(&mut self.transfer_fx) {
                match effect {
                    TransferEffect::Send { to, packet } => fx.push(ObjectEffect::Send { to, packet }),
                    TransferEffect::Compute { transfer, computation } => {
                        fx.push(ObjectEffect::Compute { transfer, computation });
                    }
                    TransferEffect::Put { transfer, result } => self.on_put(now, transfer, result, fx),
                    TransferEffect::Got { transfer, result: Ok(blocks), mends: Some(mends) } => {
                        let mending = self.transfers.remake(now, mends, &mut self.transfer_fx);
                        self.mending.insert(mending, (transfer, blocks));
                    }
                    TransferEffect::Got { transfer, result, .. } => self.on_got(now, transfer, result, fx),
                    TransferEffect::Checked { transfer, checked } => self.on_checked(now, transfer, checked),
                    TransferEffect::Stored { transfer, stored } => match self.mending.remove(&transfer) {
                        Some((get, blocks)) => self.on_got(now, get, Ok(blocks), fx),
                        None => self.on_stored(now, transfer, &stored),
                    },
                }
            }
        }
        if let Some(question) = self.bricks.wake(now) {
            fx.push(ObjectEffect::Send { to: NodeId::Directory, packet: question.into() });
        }
        let questions = self.questions.take_outbox();
        fx.extend(questions.map(|(to, message)| ObjectEffect::Send { to, packet: message.into() }));
        fx.extend(self.news.drain(..).map(|(tag, news)| ObjectEffect::News { tag, news }));
    }

    fn on_put(
        &mut self,
        now: Time,
        transfer: TransferId,
        result: Result<Vec<Place>, PutError>,
        fx: &mut Vec<ObjectEffect>,
    ) {
        match self.owners.remove(&transfer) {
            Some(Owner::Segment(tag)) => fx.push(ObjectEffect::Put { tag, result }),
            Some(Owner::Object(tag)) => {
                let (work, mut step) = self.take(now, tag);
                let Some(Work::Put(put)) = work else { unreachable!("a segment that is put has an object") };
                let work = put.on_segment(&mut step, transfer, result).map(Work::put);
                self.keep(tag, work);
            }
            None => {}
        }
    }

    fn on_got(
        &mut self,
        now: Time,
        transfer: TransferId,
        result: Result<Vec<Payload>, GetError>,
        fx: &mut Vec<ObjectEffect>,
    ) {
        match self.owners.remove(&transfer) {
            Some(Owner::Segment(tag)) => fx.push(ObjectEffect::Got { tag, result }),
            Some(Owner::Object(tag)) => {
                let (work, mut step) = self.take(now, tag);
                let work = match work {
                    Some(Work::Get(get)) => get.on_segment(&mut step, transfer, result).map(Work::get),
                    Some(Work::Put(put)) => put.on_old(&mut step, transfer, result).map(Work::put),
                    Some(Work::Restore(restore)) => restore.on_segment(&mut step, result).map(Work::restore),
                    other => unreachable!("a segment is read for {other:?}"),
                };
                self.keep(tag, work);
            }
            None => {}
        }
    }

    fn on_checked(&mut self, now: Time, transfer: TransferId, checked: Checked) {
        let Some(Owner::Object(tag)) = self.owners.remove(&transfer) else { return };
        let (work, mut step) = self.take(now, tag);
        let work = match work {
            Some(Work::Restore(restore)) => restore.on_checked(&mut step, checked).map(Work::restore),
            Some(Work::Rebalance(work)) => work.on_checked(&mut step, &checked).map(Work::rebalance),
            Some(Work::Put(put)) => put.on_checked(&mut step, transfer, &checked).map(Work::put),
            other => unreachable!("fragments are looked for by {other:?}"),
        };
        self.keep(tag, work);
    }

    fn on_stored(&mut self, now: Time, transfer: TransferId, stored: &[Place]) {
        let Some(Owner::Object(tag)) = self.owners.remove(&transfer) else { return };
        let (work, mut step) = self.take(now, tag);
        let work = match work {
            Some(Work::Restore(restore)) => restore.on_remade(&mut step, stored).map(Work::restore),
            Some(Work::Rebalance(work)) => work.on_stored(&mut step, stored).map(Work::rebalance),
            other => unreachable!("fragments are brought to bricks by {other:?}"),
        };
        self.keep(tag, work);
    }
}

impl Work {
    fn put(put: Uploading) -> Work {
        Work::Put(Box::new(put))
    }

    fn get(get: Downloading) -> Work {
        Work::Get(Box::new(get))
    }

    fn restore(restore: Restoring) -> Work {
        Work::Restore(Box::new(restore))
    }

    fn rebalance(work: Rebalancing) -> Work {
        Work::Rebalance(Box::new(work))
    }
}

/// What the index knows of an object, and its manifest as it is kept.
fn known(answer: Answer) -> Result<(ObjectInfo, Vec<u8>), ObjectError> {
    match answer {
        Answer::Told(Ok(IndexReply::Found { info, manifest, .. })) => Ok((info, manifest)),
        Answer::Told(Ok(reply)) => unreachable!("{reply:?} to a look"),
        Answer::Told(Err(error)) => Err(ObjectError::Index(error)),
        Answer::Silence | Answer::Gone(_) => Err(ObjectError::NoAnswer),
    }
}

fn found(answer: Answer) -> Result<(ObjectInfo, Manifest), ObjectError> {
    let (info, manifest) = known(answer)?;
    let manifest = Manifest::read(&manifest, info.version);
    Ok((info, manifest.map_err(|why| ObjectError::Manifest(why.to_string()))?))
}

#[cfg(test)]
mod tests;
