//! The disk as the store's parts see it: requests on their way, what each answer is for, and the effects on their way out.
//!
//! A request and its answer are a typed pair: reads answer with bytes, writes and flushes with nothing. After a failed write or
//! flush nobody knows what is on the disk, and asking again may be answered with a success that is none: from then on the
//! device is broken, and no answer counts.

use crate::event::StoreEffect;
use crate::io::{Io, IoDone, IoFault, IoKind, IoToken};
use crate::metadata::Key;
use crate::stats::DiskStats;
use crate::superblock::{Geometry, Superblock};
use base::{Checksum, HashMap, Payload, Time};
use bytes::Bytes;
use wire::disk::{Contested, Reply, StoreError, Token};

/// Requests of an open store are numbered from here on, so that a late answer to a request of opening finds nobody.
const TOKENS_FROM: IoToken = IoToken(1 << 32);

/// Names a read of blocks as long as it lasts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct ReadId(pub(crate) u64);

/// Adjacent blocks that one request reads.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) first: u64,
    /// Each block's index within the read, and its expected checksum.
    pub(crate) blocks: Vec<(u32, Checksum)>,
}

/// A metadata page that is held against what the disk has of it.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) key: Key,
    /// How many cycles had ended when the disk was asked: a cycle in between may have changed the page.
    pub(crate) cycles: u64,
}

/// What a read is for.
#[derive(Debug)]
pub(crate) enum ReadPurpose {
    /// A metadata page that somebody waits for.
    Page(Key),
    /// A metadata page that is in memory.
    Look(Look),
    /// Blocks of a read.
    Blocks(ReadId, Run),
    /// Metadata pages of which the map is to say what is there.
    Map,
}

/// What a write is for.
#[derive(Debug)]
pub(crate) enum WritePurpose {
    /// Part of the journal group in flight.
    Group,
    /// So many blocks in their final place.
    Blocks(u64),
    /// A metadata page, which stays in memory until it is written; none when its place becomes free.
    Page(Option<Key>),
    /// What the map of pages says.
    Map,
    /// The journal header that moves the tail.
    Header,
}

/// What a flush is for.
#[derive(Debug)]
pub(crate) enum FlushPurpose {
    /// The journal group in flight, with the slots that it brought.
    Group,
    /// What a cycle has written.
    Cycle,
}

/// An answer of the disk with what it is for.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Of a read: no bytes when the sectors cannot be read.
    Read(ReadPurpose, Option<Bytes>),
    /// Another brick reads it for whoever asked.
    Left(ReadPurpose),
    Written(WritePurpose),
    Flushed(FlushPurpose),
}

#[derive(Debug)]
enum Purpose {
    Read(ReadPurpose),
    Write(WritePurpose),
    Flush(FlushPurpose),
}

/// The disk of an open store.
pub(crate) struct Device {
    geometry: Geometry,
    seed: Checksum,
    identity: u64,
    now: Time,
    out: Vec<StoreEffect>,
    last_token: IoToken,
    in_flight: HashMap<IoToken, Purpose>,
    is_broken: bool,
    stats: DiskStats,
}

impl Device {
    pub(crate) fn new(superblock: &Superblock) -> Device {
        Device {
            geometry: superblock.geometry,
            seed: superblock.seed(),
            identity: superblock.identity(),
            now: Time::ZERO,
            out: Vec::new(),
            last_token: TOKENS_FROM,
            in_flight: HashMap::default(),
            is_broken: false,
            stats: DiskStats::default(),
        }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// What every checksum but the superblock's and the blocks' starts from.
    pub(crate) fn seed(&self) -> Checksum {
        self.seed
    }

    /// What tells this disk from others.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(crate) fn stats(&self) -> DiskStats {
        self.stats
    }

    pub(crate) fn begin(&mut self, now: Time) {
        self.now = now;
    }

    /// A step ends: hands its effects over.
    pub(crate) fn end(&mut self, fx: &mut Vec<StoreEffect>) {
        fx.append(&mut self.out);
    }

    pub(crate) fn reply(&mut self, reply: Reply) {
        self.out.push(StoreEffect::Reply(reply));
    }

    /// The answer to whoever staged or mended.
    pub(crate) fn staged(&mut self, token: Token, result: Result<(), StoreError>) {
        self.reply(Reply::Staged { token, result });
    }

    /// The answer to whoever left a note or asked for a barrier.
    pub(crate) fn noted(&mut self, token: Token, result: Result<(), StoreError>) {
        self.reply(Reply::Noted { token, result });
    }

    pub(crate) fn read(&mut self, purpose: ReadPurpose, offset: u64, length: usize) {
        self.read_contested(purpose, offset, length, None);
    }

    /// A read that another brick may claim, and that is left to it then.
    pub(crate) fn read_contested(
        &mut self,
        purpose: ReadPurpose,
        offset: u64,
        length: usize,
        contested: Option<Contested>,
    ) {
        self.ask(Purpose::Read(purpose), IoKind::Read { offset, length, contested });
    }

    /// A write that is `durable` is answered when it is on stable storage.
    pub(crate) fn write(&mut self, purpose: WritePurpose, offset: u64, payload: Payload, durable: bool) {
        self.stats.durable_writes += u64::from(durable);
        self.ask(Purpose::Write(purpose), IoKind::Write { offset, payload, durable });
    }

    pub(crate) fn flush(&mut self, purpose: FlushPurpose) {
        self.stats.flushes += 1;
        self.ask(Purpose::Flush(purpose), IoKind::Flush);
    }

    fn ask(&mut self, purpose: Purpose, kind: IoKind) {
        self.last_token.0 += 1;
        self.in_flight.insert(self.last_token, purpose);
        self.out.push(StoreEffect::Io(Io { token: self.last_token, kind }));
    }

    /// Finds what an answer is for; none once the disk is broken. An error says what broke it.
    pub(crate) fn answered(&mut self, done: IoDone) -> Result<Option<Answer>, String> {
        let Some(purpose) = self.in_flight.remove(&done.token).filter(|_| !self.is_broken) else {
            return Ok(None);
        };
        match (purpose, done.result) {
            (_, Err(IoFault::Failed(why))) => Err(why),
            (Purpose::Read(read), Ok(bytes)) => Ok(Some(Answer::Read(read, Some(bytes)))),
            (Purpose::Read(read), Err(IoFault::Unreadable)) => Ok(Some(Answer::Read(read, None))),
            (Purpose::Read(read), Err(IoFault::Left)) => Ok(Some(Answer::Left(read))),
            (Purpose::Write(write), Ok(_)) => Ok(Some(Answer::Written(write))),
            (Purpose::Flush(flush), Ok(_)) => Ok(Some(Answer::Flushed(flush))),
            (Purpose::Write(write), Err(fault)) => Err(format!("{}: {fault}", write.what())),
            (Purpose::Flush(flush), Err(fault)) => Err(format!("{}: {fault}", flush.what())),
        }
    }

    /// No answer counts from now on.
    pub(crate) fn break_down(&mut self, why: &str) {
        self.is_broken = true;
        self.reply(Reply::Broken { why: why.to_string() });
    }
}

impl WritePurpose {
    fn what(&self) -> &'static str {
        match self {
            WritePurpose::Group => "journal write",
            WritePurpose::Blocks(_) => "data write",
            WritePurpose::Page(_) => "metadata write",
            WritePurpose::Map => "write to the map of metadata pages",
            WritePurpose::Header => "journal header write",
        }
    }
}

impl FlushPurpose {
    fn what(&self) -> &'static str {
        match self {
            FlushPurpose::Group => "journal flush",
            FlushPurpose::Cycle => "data flush",
        }
    }
}
