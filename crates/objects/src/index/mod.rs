//! The index of objects: which versions there are, which of them is visible under which name, and which are gone.
//!
//! It has shards, among which names are distributed by hash. Each keeps its records in a store of its own, which it reads a page at a time: memory
//! holds only what is under way. From below to above: `keys` (what is stored), `ids` (how versions are numbered), `held` (versions that are not visible), `sharing` (segments that
//! versions have in common), `log` (what is being stored), `shard`, then this file, which finds the shard for a question and puts answers together. Beside it stands `fill`
//! (an index that is made with objects in it, for measurements). Why it is so: `docs/decisions/2026-11-25-large-objects.md`.
//!
//! Deliberately absent: where fragments are. A version's *manifest* says it. It is looked into here only to see whether it is one, and whether it
//! follows from the one before.

mod buckets;
mod fill;
mod held;
mod ids;
mod keys;
mod log;
mod shard;
mod sharing;
#[cfg(test)]
mod tests;

pub use buckets::BucketStreams;
pub use fill::{EmptyObject, Filling};

use crate::object::{Manifest, Mover};
use base::{BrickId, NodeId, ObjectVersion, Time};
use core::time::Duration;
use shard::{Amendment, Ask, Change, Shard, Ticket, Told};
use std::collections::{BTreeMap, BTreeSet};
use wire::index::{KEEP_MAX_NS, LIST_MAX, MANIFEST_MAX, check_bucket};
use wire::object::VERSIONS_MAX;
use wire::{FragmentId, IndexError, IndexReply, IndexRequest, Message, ObjectInfo, ObjectName, Share};

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);
/// A change of a shard's store: `None` removes the key.
pub type Put = (Vec<u8>, Option<Vec<u8>>);

/// The records whose keys are in `from..to`, in order, at most `limit` of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    pub limit: u32,
    /// Whether values are wanted; without them they come back empty.
    pub values: bool,
}

/// Names a read of a shard, and its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReadToken(pub u64);

/// Names a change of a shard's store, and its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoreToken(pub u64);

/// What a shard asks of its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShardEffect {
    /// Read these pages, as they are on stable storage.
    Read { token: ReadToken, pages: Vec<Page> },
    /// Put all of these on stable storage, or none. There is one at a time; after an error it is asked again under the same token.
    Store { token: StoreToken, puts: Vec<Put> },
}

/// What its store answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShardEvent {
    /// What each of the pages holds, or why it cannot be read.
    Read {
        token: ReadToken,
        result: Result<Vec<Vec<Pair>>, String>,
    },
    Stored {
        token: StoreToken,
        result: Result<(), String>,
    },
}

/// What the index asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexEffect {
    Send { to: NodeId, message: Message },
    Shard { shard: u16, effect: ShardEffect },
}

/// What the index is told when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexConfig {
    /// How many there are. It cannot change while there are objects.
    pub shards: u16,
    /// Random bits, others at each start.
    pub drawn: u64,
    /// For how long a version is held for whoever puts or reads it, until that is renewed.
    pub hold: Duration,
}

impl IndexConfig {
    /// What is usual.
    pub const USUAL: IndexConfig = IndexConfig { shards: 4, drawn: 0, hold: Duration::from_secs(60) };

    fn count(&self) -> u16 {
        self.shards.clamp(1, ids::SHARDS_MAX)
    }
}

impl Default for IndexConfig {
    fn default() -> IndexConfig {
        IndexConfig::USUAL
    }
}

/// What it has in hand at a time, at the most.
const UNDER_WAY_MAX: usize = 4096;

pub struct Index {
    shards: Vec<Shard>,
    under_way: BTreeMap<Ticket, Waiter>,
    gathers: BTreeMap<u64, Gather>,
    /// Questions that will be answered: one that comes again is not another one.
    asked: BTreeSet<Asker>,
    last: u64,
    /// The bricks that are there and take fragments: what these have, only they move.
    staying: BTreeSet<BrickId>,
}

/// Who asked, and under which number.
type Asker = (NodeId, u64);

#[derive(Debug)]
enum Waiter {
    Asker(Asker),
    /// A part of an answer.
    Gather(u64),
}

/// An answer that comes from several shards.
#[derive(Debug)]
struct Gather {
    asker: Asker,
    missing: usize,
    answer: Result<Gathered, IndexError>,
}

#[derive(Debug)]
enum Gathered {
    Listed { objects: Vec<(String, ObjectInfo)>, more: bool, limit: usize },
    Held(Vec<ObjectVersion>),
    Gone { versions: Vec<ObjectVersion>, partly: Vec<Share> },
}

impl Index {
    pub fn new(config: &IndexConfig) -> Index {
        let shards = config.count();
        let shard = |number| Shard::new(number, config.drawn, config.hold);
        Index {
            shards: (0..shards).map(shard).collect(),
            under_way: BTreeMap::new(),
            gathers: BTreeMap::new(),
            asked: BTreeSet::new(),
            last: 0,
            staying: BTreeSet::new(),
        }
    }

    /// These bricks are there and take fragments.
    pub fn set_staying(&mut self, bricks: BTreeSet<BrickId>) {
        self.staying = bricks;
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.shards.iter_mut().for_each(|shard| shard.set_rules(rules));
    }

    /// Buckets belong to these streams from now on.
    pub fn set_streams(&mut self, streams: &BucketStreams) {
        self.shards.iter_mut().for_each(|shard| shard.set_streams(streams.clone()));
    }

    /// Somebody asks.
    #[expect(clippy::too_many_lines, reason = "not cut up yet")]
    pub fn on_request(
        &mut self,
        now: Time,
        from: NodeId,
        operation: u64,
        request: IndexRequest,
        fx: &mut Vec<IndexEffect>,
    ) {
        let asker = (from, operation);
        if self.asked.contains(&asker) {
            return;
        }
        if let Err(error) = check(&request) {
            return answer(fx, asker, Err(error));
        }
        if self.under_way.len() >= UNDER_WAY_MAX {
            return answer(fx, asker, Err(IndexError::Busy));
        }
        self.asked.insert(asker);
        let of = |index: &Index, name: &ObjectName| index.shard_of_name(name);
        match request {
            IndexRequest::Open { name, keep_ns } => {
                let keep = Duration::from_nanos(keep_ns);
                self.ask(now, of(self, &name), Waiter::Asker(asker), Ask::Open { name, keep });
            }
            IndexRequest::Commit { name, condition, info, manifest, parts } => {
                let (shard, change) = (of(self, &name), Change::Commit { condition, info, manifest, parts });
                self.ask(now, shard, Waiter::Asker(asker), Ask::Change { name, change });
            }
            IndexRequest::Patch { name, base, was, shares, info, manifest, parts } => {
                let change = Change::Patch { base, was, shares, info, manifest, parts };
                let shard = of(self, &name);
                self.ask(now, shard, Waiter::Asker(asker), Ask::Change { name, change });
            }
            IndexRequest::Remove { name, version } => {
                let (shard, change) = (of(self, &name), Change::Remove { version });
                self.ask(now, shard, Waiter::Asker(asker), Ask::Change { name, change });
            }
            IndexRequest::Look { name } => {
                self.ask(now, of(self, &name), Waiter::Asker(asker), Ask::Look { name })
            }
            IndexRequest::Abandon { version } => {
                self.ask(now, self.giver_of(version), Waiter::Asker(asker), Ask::Abandon { version });
            }
            IndexRequest::Manifest { version, segment } => {
                self.ask(
                    now,
                    self.giver_of(version),
                    Waiter::Asker(asker),
                    Ask::Manifest { version, segment },
                );
            }
            IndexRequest::Amend { version, was, manifest } => {
                let NodeId::Brick(brick) = from else {
                    let why = "only bricks move fragments".to_owned();
                    self.asked.remove(&asker);
                    return answer(fx, asker, Err(IndexError::Invalid(why)));
                };
                let by = Mover { brick, staying: self.staying.clone() };
                let ask = Ask::Amend { version, amendment: Amendment { was, manifest, by } };
                self.ask(now, self.giver_of(version), Waiter::Asker(asker), ask);
            }
            IndexRequest::List { bucket, prefix, after, limit } => {
                let limit = limit.clamp(1, LIST_MAX);
                let ask = Ask::List { bucket, prefix, after, limit };
                let asks = (0..self.shards.len()).map(|shard| (shard, ask.clone())).collect();
                let gathered = Gathered::Listed { objects: Vec::new(), more: false, limit: limit as usize };
                self.gather(now, asker, gathered, asks);
            }
            IndexRequest::Hold { versions, only_open } => {
                let asks = self.by_shard(versions, |versions| Ask::Hold { versions, only_open });
                self.gather(now, asker, Gathered::Held(Vec::new()), asks);
            }
            IndexRequest::Gone { versions } => {
                let asks = self.by_shard(versions, |versions| Ask::Gone { versions });
                let gathered = Gathered::Gone { versions: Vec::new(), partly: Vec::new() };
                self.gather(now, asker, gathered, asks);
            }
        }
        self.collect(fx);
    }

    /// A shard's store answers.
    pub fn on_shard(&mut self, now: Time, shard: u16, event: ShardEvent, fx: &mut Vec<IndexEffect>) {
        let shard = &mut self.shards[usize::from(shard)];
        match event {
            ShardEvent::Read { token, result } => shard.on_read(now, token, result),
            ShardEvent::Stored { token, result } => shard.on_stored(now, token, result),
        }
        self.collect(fx);
    }

    pub fn settle(&mut self, fx: &mut Vec<IndexEffect>) {
        self.shards.iter_mut().for_each(Shard::settle);
        self.collect(fx);
    }

    pub fn wake(&mut self, now: Time, fx: &mut Vec<IndexEffect>) {
        self.shards.iter_mut().for_each(|shard| shard.wake(now));
        self.collect(fx);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.shards.iter().filter_map(Shard::deadline).min()
    }

    pub fn check(&self) {
        self.shards.iter().for_each(Shard::check);
        assert!(self.asked.len() <= self.under_way.len() + self.gathers.len(), "whoever asked is answered");
    }

    fn shard_of_name(&self, name: &ObjectName) -> usize {
        shard_of_name(&keys::name(name), self.shards.len())
    }

    /// The shard that gave a version out; one of another index goes to any, which does not know it.
    fn giver_of(&self, version: ObjectVersion) -> usize {
        usize::from(ids::shard_of(version)).min(self.shards.len() - 1)
    }

    /// Versions by who gave them out; nobody here knows those of other shards.
    fn by_shard(
        &self,
        versions: Vec<ObjectVersion>,
        ask: impl Fn(Vec<ObjectVersion>) -> Ask,
    ) -> Vec<(usize, Ask)> {
        let mut of: BTreeMap<usize, Vec<ObjectVersion>> = BTreeMap::new();
        for version in versions {
            of.entry(self.giver_of(version)).or_default().push(version);
        }
        of.into_iter().map(|(shard, versions)| (shard, ask(versions))).collect()
    }

    fn gather(&mut self, now: Time, asker: Asker, gathered: Gathered, asks: Vec<(usize, Ask)>) {
        self.last += 1;
        let (number, missing) = (self.last, asks.len());
        self.gathers.insert(number, Gather { asker, missing, answer: Ok(gathered) });
        for (shard, ask) in asks {
            self.ask(now, shard, Waiter::Gather(number), ask);
        }
    }

    fn ask(&mut self, now: Time, shard: usize, waiter: Waiter, ask: Ask) {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.under_way.insert(ticket, waiter);
        self.shards[shard].ask(now, ticket, ask);
    }

    /// Hands over what shards have to say.
    fn collect(&mut self, fx: &mut Vec<IndexEffect>) {
        for number in 0..self.shards.len() {
            let shard = &mut self.shards[number];
            let (told, effects) = (shard.take_told(), shard.take_effects());
            let shard = number as u16;
            fx.extend(effects.into_iter().map(|effect| IndexEffect::Shard { shard, effect }));
            told.into_iter().for_each(|(ticket, told)| self.on_told(ticket, told, fx));
        }
        let complete = self.gathers.extract_if(.., |_, gather| gather.missing == 0);
        for (_, Gather { asker, answer: gathered, .. }) in complete {
            self.asked.remove(&asker);
            answer(fx, asker, gathered.map(Gathered::into_reply));
        }
    }

    fn on_told(&mut self, ticket: Ticket, told: Told, fx: &mut Vec<IndexEffect>) {
        match self.under_way.remove(&ticket) {
            Some(Waiter::Asker(asker)) => {
                self.asked.remove(&asker);
                answer(fx, asker, told);
            }
            Some(Waiter::Gather(number)) => {
                let gather = self.gathers.get_mut(&number).expect("it waits for its parts");
                gather.missing -= 1;
                match (&mut gather.answer, told) {
                    (Ok(gathered), Ok(part)) => gathered.add(part),
                    // A shard that cannot tell what is gone keeps nobody from hearing it of the others.
                    (Ok(Gathered::Gone { .. }), Err(_)) => {}
                    (answer @ Ok(_), Err(error)) => *answer = Err(error),
                    (Err(_), _) => {}
                }
            }
            None => unreachable!("a question is answered once"),
        }
    }
}

impl Gathered {
    fn add(&mut self, part: IndexReply) {
        match (self, part) {
            (Gathered::Listed { objects, more, .. }, IndexReply::Listed { objects: some, more: others }) => {
                objects.extend(some);
                *more |= others;
            }
            (Gathered::Held(all), IndexReply::Held { gone: some }) => all.extend(some),
            (Gathered::Gone { versions, partly }, IndexReply::Gone { versions: gone, partly: others }) => {
                versions.extend(gone);
                partly.extend(others);
            }
            (gathered, part) => unreachable!("{gathered:?} was asked for, and {part:?} came"),
        }
    }

    fn into_reply(self) -> IndexReply {
        match self {
            Gathered::Listed { mut objects, more, limit } => {
                objects.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
                let more = more || objects.len() > limit;
                objects.truncate(limit);
                IndexReply::Listed { objects, more }
            }
            Gathered::Held(gone) => IndexReply::Held { gone },
            Gathered::Gone { versions, partly } => IndexReply::Gone { versions, partly },
        }
    }
}

/// To which of so many shards a name falls, by the key of its record.
fn shard_of_name(key: &[u8], shards: usize) -> usize {
    base::checksum(key) as usize % shards
}

fn answer(fx: &mut Vec<IndexEffect>, (to, operation): Asker, result: Told) {
    fx.push(IndexEffect::Send { to, message: Message::IndexDone { operation, result: Box::new(result) } });
}

/// Whether a stranger's request is one that may be carried out.
fn check(request: &IndexRequest) -> Result<(), IndexError> {
    let result = match request {
        IndexRequest::Open { keep_ns, .. } if *keep_ns > KEEP_MAX_NS => {
            Err("a version is not kept for so long that nobody puts".to_owned())
        }
        IndexRequest::Open { name, .. } | IndexRequest::Look { name } | IndexRequest::Remove { name, .. } => {
            name.check()
        }
        IndexRequest::Commit { manifest, .. }
        | IndexRequest::Patch { manifest, .. }
        | IndexRequest::Amend { manifest, .. }
            if manifest.len() > MANIFEST_MAX =>
        {
            Err(format!("a manifest of {} bytes is too long", manifest.len()))
        }
        IndexRequest::Commit { info, parts, .. } | IndexRequest::Patch { info, parts, .. }
            if parts.iter().any(|part| part.version == info.version) =>
        {
            Err("a version is no part of itself".to_owned())
        }
        IndexRequest::Commit { name, info, manifest, parts, .. } => {
            name.check().and_then(|()| check_shares(parts)).and_then(|()| check_manifest(info, manifest))
        }
        IndexRequest::Patch { name, shares, info, manifest, parts, .. } => name
            .check()
            .and_then(|()| check_shares(shares))
            .and_then(|()| check_shares(parts))
            .and_then(|()| check_manifest(info, manifest)),
        IndexRequest::Amend { version, .. } if !FragmentId::is_version(*version) => {
            Err(format!("{version} is no version"))
        }
        IndexRequest::List { bucket, .. } => check_bucket(bucket),
        IndexRequest::Hold { versions, .. } | IndexRequest::Gone { versions }
            if versions.len() > VERSIONS_MAX =>
        {
            Err(format!("{} versions are too many at a time", versions.len()))
        }
        IndexRequest::Hold { .. }
        | IndexRequest::Gone { .. }
        | IndexRequest::Abandon { .. }
        | IndexRequest::Manifest { .. }
        | IndexRequest::Amend { .. } => Ok(()),
    };
    result.map_err(IndexError::Invalid)
}

/// Whoever reads a manifest relies on it: what is none never gets here.
fn check_manifest(info: &ObjectInfo, manifest: &[u8]) -> Result<(), String> {
    if !FragmentId::is_version(info.version) {
        return Err(format!("{} is no version", info.version));
    }
    let read = Manifest::read(manifest, info.version).map_err(|why| format!("it has no manifest: {why}"))?;
    match read.bytes() == info.bytes {
        true => Ok(()),
        false => Err(format!("its segments have {} bytes, and it has {}", read.bytes(), info.bytes)),
    }
}

fn check_shares(shares: &[Share]) -> Result<(), String> {
    sharing::what_is_wrong(shares).map_or(Ok(()), |what| Err(format!("a version shares {what}")))
}
