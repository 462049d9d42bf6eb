//! One shard of the index: the names that fall to it, and the versions that it gave out.
//!
//! A change of a name looks at the version that is visible and is then stored. Meanwhile other changes of that name wait, so that what was
//! looked at still holds when it is stored. Nothing is told before it is on stable storage; what is read is there already.
//!
//! A version's life: *open* (it is being put; nobody sees it), *visible*, *past* (replaced or removed; whoever reads it may go on), gone. Ids are
//! never used twice, so "gone" is final. A putter that slept until its version was not held open any more cannot make it visible.

use super::buckets::BucketStreams;
use super::held::{Held, Over};
use super::ids::Ids;
use super::keys::{self, HeldRecord, NameRecord};
use super::log::Log;
use super::sharing;
use super::{Page, Pair, Put, ReadToken, ShardEffect, StoreToken};
use crate::object::{Manifest, Mover};
use base::{Checksum, ObjectVersion, StreamId, Time};
use core::time::Duration;
use rules::promises::{Rules, SOUND};
use std::collections::{BTreeMap, VecDeque};
use wire::{Condition, DecodeError, IndexError, IndexReply, ObjectInfo, ObjectName, Share, Wire};

/// Names an answer to whoever asked the shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ticket(pub(super) u64);

/// What a shard is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Open { name: ObjectName, keep: Duration },
    Change { name: ObjectName, change: Change },
    Look { name: ObjectName },
    List { bucket: String, prefix: String, after: Option<String>, limit: u32 },
    Hold { versions: Vec<ObjectVersion>, only_open: bool },
    Gone { versions: Vec<ObjectVersion> },
    Abandon { version: ObjectVersion },
    Manifest { version: ObjectVersion, segment: Option<u32> },
    Amend { version: ObjectVersion, amendment: Amendment },
}

/// A manifest that is to take the place of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Amendment {
    /// The checksum of the one that it was made from.
    pub(super) was: Checksum,
    pub(super) manifest: Vec<u8>,
    pub(super) by: Mover,
}

/// How a name changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Commit {
        condition: Condition,
        info: ObjectInfo,
        manifest: Vec<u8>,
        parts: Vec<Share>,
    },
    Patch {
        base: ObjectVersion,
        was: Checksum,
        shares: Vec<Share>,
        info: ObjectInfo,
        manifest: Vec<u8>,
        parts: Vec<Share>,
    },
    Remove {
        version: ObjectVersion,
    },
}

impl Change {
    /// The version whose fragments become those of another one, too.
    fn base(&self) -> Option<ObjectVersion> {
        match self {
            Change::Patch { base, .. } => Some(*base),
            Change::Commit { .. } | Change::Remove { .. } => None,
        }
    }
}

pub(super) type Told = Result<IndexReply, IndexError>;

/// What is read, and what for.
#[derive(Debug)]
enum Reading {
    /// What a restart has to know.
    Start,
    Current {
        ticket: Ticket,
        name: ObjectName,
        change: Box<Change>,
    },
    Look {
        ticket: Ticket,
        name: ObjectName,
        times: u32,
    },
    Manifest {
        ticket: Ticket,
        name: ObjectName,
        info: ObjectInfo,
        times: u32,
    },
    List {
        ticket: Ticket,
        bucket: String,
        limit: u32,
    },
    /// Whether these versions are visible; the others are not held any more, as those in `gone` are.
    Holding {
        ticket: Ticket,
        versions: Vec<ObjectVersion>,
        gone: Vec<ObjectVersion>,
    },
    /// Whether these versions are visible, or shared; the others are gone.
    Gone {
        ticket: Ticket,
        versions: Vec<ObjectVersion>,
    },
    /// Which version was the last that shares a version's fragments, and the version's own manifest.
    Whereabouts {
        ticket: Ticket,
        version: ObjectVersion,
        segment: Option<u32>,
        times: u32,
    },
    /// The manifest of the last version that shares a version's fragments.
    OfSharer {
        ticket: Ticket,
        version: ObjectVersion,
        segment: Option<u32>,
        sharer: ObjectVersion,
        /// Whether an older one shares some of it, which may still be read.
        has_older: bool,
        times: u32,
    },
    /// Where a version is that is kept elsewhere from now on.
    Amending {
        ticket: Ticket,
        version: ObjectVersion,
        amendment: Amendment,
    },
}

/// What follows once a change is stored.
#[derive(Debug)]
enum After {
    Opened { ticket: Ticket, version: ObjectVersion, held: Duration, stream: StreamId },
    Committed { ticket: Ticket, name: ObjectName, held: Vec<ObjectVersion>, replaced: Option<NameRecord> },
    Removed { ticket: Ticket, name: ObjectName, removed: NameRecord },
    Ended { ticket: Option<Ticket>, version: ObjectVersion },
    Amended { ticket: Ticket, version: ObjectVersion },
}

#[derive(Debug)]
enum State {
    /// Nobody has asked for anything yet.
    Asleep,
    /// It reads what it has to know; these wait.
    Starting {
        ids: Option<Ids>,
        waiting: Vec<(Ticket, Ask)>,
    },
    Serving(Ids),
}

#[derive(Debug)]
pub(super) struct Shard {
    rules: &'static dyn Rules,
    number: u16,
    /// Another number for each start.
    drawn: u64,
    state: State,
    held: Held,
    streams: BucketStreams,
    /// Names that are being changed.
    changing: BTreeMap<ObjectName, Changing>,
    /// Versions whose manifests are being replaced. One that ends meanwhile is taken out: what is gone must not be written again.
    amending: BTreeMap<ObjectVersion, ReadToken>,
    reads: BTreeMap<ReadToken, Reading>,
    last_read: u64,
    log: Log<After>,
    told: Vec<(Ticket, Told)>,
    fx: Vec<ShardEffect>,
}

/// The change of a name that is under way, and what waits for that.
#[derive(Debug)]
struct Changing {
    /// The version whose fragments become those of another one, too. It stays where it is meanwhile.
    base: Option<ObjectVersion>,
    waiting: VecDeque<(Ticket, Change)>,
}

/// So many records are read at a time at the start.
const PAGE: u32 = 1000;
/// So many versions that share a version's fragments are looked at, to learn which ones these are. If there are more, it is all of them.
const SHARERS: u32 = 64;
/// The same, to learn which of them shares a segment: it may be the oldest. Nobody patches an object as often while an older version is read.
const SHARERS_OF_SEGMENT: u32 = 4096;
/// A version that was replaced, and is gone, while it was looked at is looked for again so often.
const LOOKS_MAX: u32 = 5;

impl Shard {
    pub(super) fn new(number: u16, drawn: u64, hold: Duration) -> Shard {
        Shard {
            rules: SOUND,
            number,
            drawn,
            state: State::Asleep,
            held: Held::new(hold),
            streams: BucketStreams::default(),
            changing: BTreeMap::new(),
            amending: BTreeMap::new(),
            reads: BTreeMap::new(),
            last_read: 0,
            log: Log::new(),
            told: Vec::new(),
            fx: Vec::new(),
        }
    }

    pub(super) fn set_streams(&mut self, streams: BucketStreams) {
        self.streams = streams;
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// Answers that are due.
    pub(super) fn take_told(&mut self) -> Vec<(Ticket, Told)> {
        core::mem::take(&mut self.told)
    }

    pub(super) fn take_effects(&mut self) -> Vec<ShardEffect> {
        core::mem::take(&mut self.fx)
    }

    pub(super) fn ask(&mut self, now: Time, ticket: Ticket, ask: Ask) {
        match &mut self.state {
            State::Serving(_) => self.carry_out(now, ticket, ask),
            State::Starting { waiting, .. } => waiting.push((ticket, ask)),
            State::Asleep => {
                self.state = State::Starting { ids: None, waiting: vec![(ticket, ask)] };
                let of_ids = [keys::COUNTS, keys::LIVES].map(|key| keys::only(key.to_vec()));
                let pages = of_ids.into_iter().chain([keys::page_of_held(None, PAGE)]).collect();
                self.read(pages, Reading::Start);
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm a question")]
    fn carry_out(&mut self, now: Time, ticket: Ticket, ask: Ask) {
        match ask {
            Ask::Open { .. } | Ask::Change { .. } | Ask::Abandon { .. } | Ask::Amend { .. }
                if self.log.failure().is_some() =>
            {
                let why = self.log.failure().unwrap_or_default().to_owned();
                self.tell(ticket, Err(IndexError::Storage(why)));
            }
            Ask::Open { name, keep } => self.open(now, ticket, name, keep),
            Ask::Change { name, change } => self.change(ticket, name, change),
            Ask::Abandon { version } => {
                if self.held.abandon(version) {
                    let puts = [(keys::held(version), None)];
                    self.log.put(puts, After::Ended { ticket: Some(ticket), version });
                } else {
                    self.tell(ticket, Ok(IndexReply::Abandoned));
                }
            }
            Ask::Look { name } => self.look(ticket, name, 1),
            // Where it will be is not known yet.
            Ask::Manifest { version, .. } if self.held.is_to_come(version) => {
                self.tell(ticket, Err(IndexError::NotAsExpected));
            }
            Ask::Manifest { version, segment } => self.find(ticket, (version, segment), 1),
            Ask::Amend { version, .. } if self.held.is_ending(version) => {
                self.tell(ticket, Err(IndexError::NoObject));
            }
            // A later one may have what it shares by now.
            Ask::Amend { version, .. } if self.held.shares_anything(version) => {
                self.tell(ticket, Err(IndexError::NotAsExpected));
            }
            // It is asked again when that is over: another version may have been made of it, or where it is may have been amended, or neither.
            Ask::Amend { version, .. }
                if self.is_being_patched(version) || self.amending.contains_key(&version) =>
            {
                self.tell(ticket, Err(IndexError::Busy));
            }
            Ask::Amend { version, amendment } => {
                let pages =
                    vec![keys::only(keys::manifest(version)), keys::page_of_sharers(version, 1, false)];
                let token = self.read(pages, Reading::Amending { ticket, version, amendment });
                self.amending.insert(version, token);
            }
            Ask::List { bucket, prefix, after, limit } => {
                let page = keys::page_of_names(&bucket, &prefix, after.as_deref(), limit);
                self.read(vec![page], Reading::List { ticket, bucket, limit });
            }
            Ask::Hold { versions, only_open } => {
                let (mut gone, mut unknown) = (Vec::new(), Vec::new());
                for version in versions {
                    if only_open && !self.held.is_being_put(version) {
                        gone.push(version);
                        continue;
                    }
                    match self.held.renew(now, version) {
                        Some(true) => {}
                        Some(false) => gone.push(version),
                        None if self.gave(version) => unknown.push(version),
                        None => gone.push(version),
                    }
                }
                if unknown.is_empty() {
                    return self.tell(ticket, Ok(IndexReply::Held { gone }));
                }
                let presence = |version: &ObjectVersion| keys::presence(keys::manifest(*version));
                let pages = unknown.iter().map(presence).collect();
                self.read(pages, Reading::Holding { ticket, versions: unknown, gone });
            }
            Ask::Gone { versions } => {
                // What another index gave out is not for this one to judge.
                let unknown = |version: &ObjectVersion| self.gave(*version) && !self.held.knows(*version);
                let versions: Vec<ObjectVersion> = versions.into_iter().filter(unknown).collect();
                // Who shares a version has stored that before the version ends: so these are read behind it.
                let pages = |version: &ObjectVersion| {
                    let sharers = keys::page_of_sharers(*version, SHARERS, true);
                    [keys::presence(keys::manifest(*version)), sharers]
                };
                let pages = versions.iter().flat_map(pages).collect();
                self.read(pages, Reading::Gone { ticket, versions });
            }
        }
    }

    fn gave(&self, version: ObjectVersion) -> bool {
        matches!(&self.state, State::Serving(ids) if ids.gave(version))
    }

    fn tell(&mut self, ticket: Ticket, told: Told) {
        self.told.push((ticket, told));
    }

    fn read(&mut self, pages: Vec<Page>, what: Reading) -> ReadToken {
        self.last_read += 1;
        let token = ReadToken(self.last_read);
        self.reads.insert(token, what);
        self.fx.push(ShardEffect::Read { token, pages });
        token
    }

    fn is_being_patched(&self, version: ObjectVersion) -> bool {
        self.changing.values().any(|changing| changing.base == Some(version))
    }

    /// Says where a version's fragments are, or those of one segment of it.
    fn find(&mut self, ticket: Ticket, of: (ObjectVersion, Option<u32>), times: u32) {
        let (version, segment) = of;
        if times > LOOKS_MAX {
            let why = format!("versions that share fragments of {version} come and go");
            return self.tell(ticket, Err(IndexError::Storage(why)));
        }
        let sharers = match segment {
            None => keys::page_of_sharers(version, 2, false),
            Some(_) => keys::page_of_sharers(version, SHARERS_OF_SEGMENT, true),
        };
        let pages = vec![sharers, keys::only(keys::manifest(version))];
        self.read(pages, Reading::Whereabouts { ticket, version, segment, times });
    }

    fn look(&mut self, ticket: Ticket, name: ObjectName, times: u32) {
        if times > LOOKS_MAX {
            let why = format!("the record of {name} names a version that is not there");
            return self.tell(ticket, Err(IndexError::Storage(why)));
        }
        self.read(vec![keys::only(keys::name(&name))], Reading::Look { ticket, name, times });
    }

    /// A version was visible a moment ago. From now on it is held, so that its manifest is there when it is read.
    fn look_at(&mut self, now: Time, ticket: Ticket, name: ObjectName, info: ObjectInfo, times: u32) {
        match self.held.renew(now, info.version) {
            Some(false) => self.look(ticket, name, times + 1),
            // One that is visible is held when it is replaced.
            Some(true) | None => {
                let page = keys::only(keys::manifest(info.version));
                self.read(vec![page], Reading::Manifest { ticket, name, info, times });
            }
        }
    }

    // ---- changes ----

    fn open(&mut self, now: Time, ticket: Ticket, name: ObjectName, keep: Duration) {
        let State::Serving(ids) = &mut self.state else { return };
        let (version, is_first) = ids.take();
        let lives = is_first.then(|| (keys::LIVES.to_vec(), Some(ids.lives().to_bytes())));
        let record = HeldRecord::Open { name: name.clone(), keep_ns: keep.as_nanos() as u64 };
        let puts = [
            (keys::COUNTS.to_vec(), Some(ids.counts().to_bytes())),
            (keys::held(version), Some(record.to_bytes())),
        ];
        let puts = puts.into_iter().chain(lives);
        let (held, stream) = (self.held.length(keep), self.streams.of(&name.bucket));
        self.held.open(now, version, name, keep);
        self.log.put(puts, After::Opened { ticket, version, held, stream });
    }

    fn change(&mut self, ticket: Ticket, name: ObjectName, change: Change) {
        match self.changing.get_mut(&name) {
            Some(changing) => changing.waiting.push_back((ticket, change)),
            None => self.begin_one(name, [(ticket, change)].into()),
        }
    }

    /// The change of a name has ended: the next one begins.
    fn changed(&mut self, name: ObjectName) {
        if let Some(Changing { waiting, .. }) = self.changing.remove(&name) {
            self.begin_one(name, waiting);
        }
    }

    /// Begins the first of these changes that can begin.
    fn begin_one(&mut self, name: ObjectName, mut waiting: VecDeque<(Ticket, Change)>) {
        while let Some((ticket, change)) = waiting.pop_front() {
            let base = change.base();
            // It is asked again when it is known where the version is.
            if base.is_some_and(|base| self.amending.contains_key(&base)) {
                self.tell(ticket, Err(IndexError::Busy));
                continue;
            }
            let mut pages = vec![keys::only(keys::name(&name))];
            if let Change::Patch { base, shares, .. } = &change {
                pages.push(keys::only(keys::manifest(*base)));
                let others = shares.iter().filter(|share| share.version != *base);
                pages.extend(others.map(|share| keys::only(keys::share(share.version, *base))));
            }
            self.changing.insert(name.clone(), Changing { base, waiting });
            self.read(pages, Reading::Current { ticket, name, change: Box::new(change) });
            return;
        }
    }

    /// What has to be known for the change of a name has been read.
    fn on_current(
        &mut self,
        (ticket, name, change): (Ticket, ObjectName, Change),
        current: Option<NameRecord>,
        pages: &[Vec<Pair>],
    ) {
        let visible = current.as_ref().map(|record| record.info.version);
        let told = match change {
            Change::Commit { info, .. } | Change::Patch { info, .. }
                // Asked again, another version may have replaced it since.
                if visible == Some(info.version) || self.held.was_visible(info.version) =>
            {
                Ok(IndexReply::Committed)
            }
            Change::Commit { info, .. } | Change::Patch { info, .. }
                if !self.rules.commits(self.held.is_open(info.version, &name)) =>
            {
                Err(IndexError::Expired)
            }
            Change::Commit { condition, .. } if !self.rules.replaces(condition.holds(visible)) => {
                Err(IndexError::NotAsExpected)
            }
            Change::Patch { base, .. } if !self.rules.replaces(visible == Some(base)) => {
                Err(IndexError::NotAsExpected)
            }
            Change::Commit { ref parts, .. } | Change::Patch { ref parts, .. }
                if !parts.iter().all(|part| self.rules.commits(self.held.is_open(part.version, &name))) =>
            {
                Err(IndexError::Expired)
            }
            Change::Patch { was, ref shares, base, info, .. } => {
                match what_keeps_from_sharing(self.rules, (was, base, info.version), shares, pages) {
                    Some(error) => Err(error),
                    None => return self.commit(ticket, name, change, current),
                }
            }
            Change::Commit { .. } => return self.commit(ticket, name, change, current),
            Change::Remove { version } => match current {
                Some(record) if record.info.version == version => return self.remove(ticket, name, record),
                // It was there when it was asked for, and was replaced: that it was removed before is as good.
                _ => Ok(IndexReply::Removed),
            },
        };
        self.tell(ticket, told);
        self.changed(name);
    }

    fn commit(&mut self, ticket: Ticket, name: ObjectName, change: Change, replaced: Option<NameRecord>) {
        let (info, manifest, mut shares, parts) = match change {
            Change::Commit { info, manifest, parts, .. } => (info, manifest, Vec::new(), parts),
            Change::Patch { info, manifest, shares, parts, .. } => (info, manifest, shares, parts),
            Change::Remove { .. } => unreachable!("a removal makes nothing visible"),
        };
        let version = info.version;
        // A part has no name of its own from now on, and stays as long as somebody shares it.
        let held: Vec<ObjectVersion> = parts.iter().map(|part| part.version).chain([version]).collect();
        held.iter().for_each(|version| self.held.commit(*version));
        shares.extend(parts);
        shares.sort_unstable_by_key(|share| share.version);
        let record = NameRecord { info, shares: shares.iter().map(|share| share.version).collect() };
        let puts = visible(&name, &record, manifest);
        let ends = held.iter().map(|version| (keys::held(*version), None));
        let shared =
            shares.iter().map(|share| (keys::share(share.version, version), Some(share.segments.to_bytes())));
        let marked = self.mark_sharing(!shares.is_empty());
        let puts =
            puts.into_iter().chain(ends).chain(shared).chain(replaced.as_ref().map(past)).chain(marked);
        self.log.put(puts, After::Committed { ticket, name, held: held.clone(), replaced });
    }

    /// From the first version on that shares something, an earlier release must not judge what is gone.
    fn mark_sharing(&mut self, shares: bool) -> Option<Put> {
        let State::Serving(ids) = &mut self.state else { return None };
        let counts = ids.counts();
        if !shares || core::mem::replace(&mut counts.has_shares, true) {
            return None;
        }
        Some((keys::COUNTS.to_vec(), Some(counts.to_bytes())))
    }

    fn remove(&mut self, ticket: Ticket, name: ObjectName, removed: NameRecord) {
        let puts: [Put; 2] = [(keys::name(&name), None), past(&removed)];
        self.log.put(puts, After::Removed { ticket, name, removed });
    }

    /// A version is kept elsewhere, if it is still where whoever says so has seen it, and if that brick may say so.
    fn amend(
        &mut self,
        ticket: Ticket,
        version: ObjectVersion,
        amendment: Amendment,
        current: Option<Vec<u8>>,
    ) {
        let told = match current {
            None => Err(IndexError::NoObject),
            // It was asked for again.
            Some(current) if current == amendment.manifest => Ok(IndexReply::Amended),
            Some(current) if base::checksum(&current) != amendment.was => Err(IndexError::NotAsExpected),
            Some(current) => match self.what_is_wrong(version, &amendment, &current) {
                Some(error) => Err(error),
                None => {
                    let put = (keys::manifest(version), Some(amendment.manifest));
                    return self.log.put([put], After::Amended { ticket, version });
                }
            },
        };
        self.amending.remove(&version);
        self.tell(ticket, told);
    }

    fn what_is_wrong(
        &self,
        version: ObjectVersion,
        amendment: &Amendment,
        current: &[u8],
    ) -> Option<IndexError> {
        let before = match Manifest::read(current, version) {
            Ok(before) => before,
            Err(why) => {
                return Some(IndexError::Storage(format!(
                    "the manifest of version {version} is corrupt: {why}"
                )));
            }
        };
        let wrong = match Manifest::read(&amendment.manifest, version) {
            Ok(after) => amendment.by.what_is_wrong(&before, &after),
            Err(_) => Some("what takes the place of a manifest is one"),
        };
        wrong.filter(|_| !self.rules.amends(false)).map(|wrong| IndexError::Invalid(wrong.to_owned()))
    }

    // ---- what comes back ----

    pub(super) fn on_read(&mut self, now: Time, token: ReadToken, result: Result<Vec<Vec<Pair>>, String>) {
        let Some(reading) = self.reads.remove(&token) else { return };
        let pages = match result {
            Ok(pages) => pages,
            Err(why) => return self.fail(reading, why),
        };
        if let Err((reading, why)) = self.take_in(now, (token, reading), pages) {
            self.fail(reading, format!("a record of the index is corrupt: {why}"));
        }
    }

    #[expect(clippy::too_many_lines, reason = "an arm a record of the log; not cut up yet")]
    fn take_in(
        &mut self,
        now: Time,
        (token, reading): (ReadToken, Reading),
        pages: Vec<Vec<Pair>>,
    ) -> Result<(), (Reading, DecodeError)> {
        let first =
            |pages: &[Vec<Pair>]| pages.first().and_then(|page| page.first()).map(|(_, value)| value.clone());
        match reading {
            Reading::Start => self.on_start(now, &pages).map_err(|why| (Reading::Start, why))?,
            Reading::Current { ticket, name, change } => {
                match first(&pages).map(|value| NameRecord::from_bytes(&value)).transpose() {
                    Ok(current) => self.on_current((ticket, name, *change), current, &pages),
                    Err(why) => return Err((Reading::Current { ticket, name, change }, why)),
                }
            }
            Reading::Look { ticket, name, times } => match first(&pages) {
                None => self.tell(ticket, Err(IndexError::NoObject)),
                Some(value) => match NameRecord::from_bytes(&value) {
                    Ok(record) => self.look_at(now, ticket, name, record.info, times),
                    Err(why) => return Err((Reading::Look { ticket, name, times }, why)),
                },
            },
            Reading::Manifest { ticket, name, info, times } => match first(&pages) {
                // It was replaced since, and its time is over.
                None => self.look(ticket, name, times + 1),
                Some(manifest) => {
                    let held_ns = self.held.length(Duration::ZERO).as_nanos() as u64;
                    let stream = self.streams.of(&name.bucket);
                    self.tell(ticket, Ok(IndexReply::Found { info, manifest, held_ns, stream }));
                }
            },
            Reading::List { ticket, bucket, limit } => {
                let page = pages.into_iter().next().unwrap_or_default();
                let more = page.len() >= limit as usize;
                let object = |(key, value): &Pair| {
                    Ok((keys::key_of_name(&bucket, key)?, NameRecord::from_bytes(value)?.info))
                };
                match page.iter().map(object).collect() {
                    Ok(objects) => self.tell(ticket, Ok(IndexReply::Listed { objects, more })),
                    Err(why) => return Err((Reading::List { ticket, bucket, limit }, why)),
                }
            }
            Reading::Holding { ticket, versions, mut gone } => {
                let missing = versions.into_iter().zip(&pages).filter(|(_, page)| page.is_empty());
                gone.extend(missing.map(|(version, _)| version));
                self.tell(ticket, Ok(IndexReply::Held { gone }));
            }
            Reading::Gone { ticket, versions } => {
                let (mut gone, mut partly, mut spans) = (Vec::new(), Vec::new(), 0);
                for (version, pages) in versions.into_iter().zip(pages.chunks(2)) {
                    let [own, sharers] = pages else { continue };
                    if own.is_empty() && !self.rules.keeps(!sharers.is_empty()) {
                        gone.push(version);
                    } else if own.is_empty()
                        && sharers.len() < SHARERS as usize
                        && let Ok(segments) = sharing::all_shared(sharers)
                        && spans + segments.len() <= sharing::SPANS_MAX
                    {
                        spans += segments.len();
                        partly.push(Share { version, segments });
                    }
                }
                self.tell(ticket, Ok(IndexReply::Gone { versions: gone, partly }));
            }
            Reading::Whereabouts { ticket, version, segment, times } => {
                let own = pages[1].first().map(|(_, manifest)| manifest.clone());
                match (sharing::last_sharer(&pages[0], segment), own) {
                    (Ok(Some(sharer)), _) => {
                        let page = keys::only(keys::manifest(sharer));
                        let has_older = pages[0].len() > 1;
                        let reading =
                            Reading::OfSharer { ticket, version, segment, sharer, has_older, times };
                        self.read(vec![page], reading);
                    }
                    (Ok(None), Some(manifest)) => {
                        let is_held = self.held.was_visible(version);
                        self.tell(ticket, Ok(IndexReply::Manifest { manifest, of: version, is_held }));
                    }
                    (Ok(None), None) => self.tell(ticket, Err(IndexError::NoObject)),
                    (Err(why), _) => {
                        return Err((Reading::Whereabouts { ticket, version, segment, times }, why));
                    }
                }
            }
            Reading::OfSharer { ticket, version, segment, sharer, has_older, times } => match first(&pages) {
                Some(manifest) => {
                    let is_held = has_older || self.held.was_visible(version);
                    self.tell(ticket, Ok(IndexReply::Manifest { manifest, of: sharer, is_held }));
                }
                // It has ended since.
                None => self.find(ticket, (version, segment), times + 1),
            },
            Reading::Amending { ticket, version, amendment } => {
                let current = first(&pages);
                let is_shared = pages.get(1).is_some_and(|sharers| !sharers.is_empty());
                // It may have ended since it was asked for.
                if self.amending.get(&version) == Some(&token) && !is_shared {
                    self.amend(ticket, version, amendment, current);
                } else {
                    self.amending.remove(&version);
                    self.tell(ticket, Err(IndexError::NotAsExpected));
                }
            }
        }
        Ok(())
    }

    fn on_start(&mut self, now: Time, pages: &[Vec<Pair>]) -> Result<(), DecodeError> {
        let State::Starting { ids, waiting } = &mut self.state else { return Ok(()) };
        let held = pages.last().map(Vec::as_slice).unwrap_or_default();
        if let [counts, lives, _] = pages {
            let stored = |page: &[Pair]| page.first().map(|(_, value)| value.clone());
            let (counts, lives) = (stored(counts), stored(lives));
            *ids = Some(Ids::start(self.number, self.drawn, counts.as_deref(), lives.as_deref())?);
        }
        for pair in held {
            match keys::read_held(pair)? {
                (version, HeldRecord::Open { name, keep_ns }) => {
                    self.held.open(now, version, name, Duration::from_nanos(keep_ns));
                }
                (version, HeldRecord::Past { shares }) => self.held.leave(now, version, shares),
            }
        }
        match (held.last(), ids.take()) {
            (Some((last, _)), known) if held.len() >= PAGE as usize => {
                *ids = known;
                self.read(vec![keys::page_of_held(Some(last), PAGE)], Reading::Start);
            }
            (_, Some(ids)) => {
                let waiting = core::mem::take(waiting);
                self.state = State::Serving(ids);
                waiting.into_iter().for_each(|(ticket, ask)| self.carry_out(now, ticket, ask));
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// What was to be read cannot be.
    fn fail(&mut self, reading: Reading, why: String) {
        let error = || Err(IndexError::Storage(why.clone()));
        match reading {
            Reading::Start => {
                if let State::Starting { waiting, .. } = core::mem::replace(&mut self.state, State::Asleep) {
                    self.held = Held::new(self.held.length(Duration::ZERO));
                    waiting.into_iter().for_each(|(ticket, _)| self.told.push((ticket, error())));
                }
            }
            Reading::Current { ticket, name, .. } => {
                self.tell(ticket, error());
                self.changed(name);
            }
            Reading::Amending { ticket, version, .. } => {
                self.amending.remove(&version);
                self.tell(ticket, error());
            }
            Reading::Look { ticket, .. }
            | Reading::Whereabouts { ticket, .. }
            | Reading::OfSharer { ticket, .. }
            | Reading::Manifest { ticket, .. }
            | Reading::List { ticket, .. }
            | Reading::Holding { ticket, .. }
            | Reading::Gone { ticket, .. } => self.tell(ticket, error()),
        }
    }

    pub(super) fn on_stored(&mut self, now: Time, token: StoreToken, result: Result<(), String>) {
        for after in self.log.on_stored(now, token, result) {
            match after {
                After::Opened { ticket, version, held, stream } => {
                    self.held.renew(now, version);
                    let held_ns = held.as_nanos() as u64;
                    self.tell(ticket, Ok(IndexReply::Opened { version, held_ns, stream }));
                }
                After::Committed { ticket, name, held, replaced } => {
                    held.into_iter().for_each(|version| self.held.forget(version));
                    if let Some(NameRecord { info, shares }) = replaced {
                        self.held.leave(now, info.version, shares);
                    }
                    self.tell(ticket, Ok(IndexReply::Committed));
                    self.changed(name);
                }
                After::Removed { ticket, name, removed: NameRecord { info, shares } } => {
                    self.held.leave(now, info.version, shares);
                    self.tell(ticket, Ok(IndexReply::Removed));
                    self.changed(name);
                }
                After::Ended { ticket, version } => {
                    self.held.forget(version);
                    ticket.into_iter().for_each(|ticket| self.told.push((ticket, Ok(IndexReply::Abandoned))));
                }
                After::Amended { ticket, version } => {
                    self.amending.remove(&version);
                    self.tell(ticket, Ok(IndexReply::Amended));
                }
            }
        }
    }

    pub(super) fn wake(&mut self, now: Time) {
        if let Some((token, puts)) = self.log.take_again(now) {
            self.fx.push(ShardEffect::Store { token, puts });
        }
        for over in self.held.take_due(now) {
            let Over { version, was_visible } = over;
            self.amending.remove(&version);
            let manifest = was_visible.is_some().then(|| (keys::manifest(version), None));
            let shares = was_visible.into_iter().flatten().map(|shared| (keys::share(shared, version), None));
            let puts = core::iter::once((keys::held(version), None)).chain(manifest).chain(shares);
            self.log.put(puts, After::Ended { ticket: None, version });
        }
    }

    /// What came in one batch is stored in one.
    pub(super) fn settle(&mut self) {
        if let Some((token, puts)) = self.log.take() {
            self.fx.push(ShardEffect::Store { token, puts });
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Serving(_) => self.held.deadline().into_iter().chain(self.log.deadline()).min(),
            State::Asleep | State::Starting { .. } => None,
        }
    }

    pub(super) fn check(&self) {
        self.held.check();
    }
}

/// What is kept of a version that is visible, beside what it shares with others.
pub(super) fn visible(name: &ObjectName, record: &NameRecord, manifest: Vec<u8>) -> [Put; 2] {
    [(keys::name(name), Some(record.to_bytes())), (keys::manifest(record.info.version), Some(manifest))]
}

/// What is kept of a version that is visible no more.
fn past(record: &NameRecord) -> Put {
    let held = HeldRecord::Past { shares: record.shares.clone() };
    (keys::held(record.info.version), Some(held.to_bytes()))
}

/// Why a version cannot share with others what it says, if so: by the manifest of its base, and by what the base shares with others.
fn what_keeps_from_sharing(
    rules: &dyn Rules,
    (was, base, version): (Checksum, ObjectVersion, ObjectVersion),
    shares: &[Share],
    pages: &[Vec<Pair>],
) -> Option<IndexError> {
    let is_there = pages[1].first().is_some_and(|(_, manifest)| base::checksum(manifest) == was);
    if !rules.shares(is_there) {
        return Some(IndexError::Moved);
    }
    let others = shares.iter().filter(|share| share.version != base).zip(&pages[2..]);
    let are_shared = others.into_iter().all(|(share, page)| {
        let of_base = sharing::all_shared(page);
        of_base.is_ok_and(|of_base| sharing::has_all(&of_base, &share.segments))
    });
    // Versions that come later have larger ids: the last sharer is known by that.
    let why = "a version shares what its base has, and comes after it";
    (!are_shared || version <= base).then(|| IndexError::Invalid(why.to_owned()))
}

/// Whether it holds where `current` is visible.
trait Holds {
    fn holds(&self, current: Option<ObjectVersion>) -> bool;
}

impl Holds for Condition {
    fn holds(&self, current: Option<ObjectVersion>) -> bool {
        match self {
            Condition::Always => true,
            Condition::Absent => current.is_none(),
            Condition::Is(version) => current == Some(*version),
        }
    }
}
