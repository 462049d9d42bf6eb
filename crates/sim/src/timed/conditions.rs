//! Under which conditions a cluster is measured: its volumes' layout, what happens to its bricks and gateways, who watches; and what
//! is seen of it from moment to moment.

use super::measured::Times;
use super::routes::Spread;
use super::sharing::Sharing;
use crate::checkers::{self, Violation, bytes};
use crate::history::{History, Kind, Operation, Register};
use ::bytes::BytesMut;
use base::{BLOCK, Payload, Time};
use core::time::Duration;
use rules::layout::Layout;
use wire::Protocol;

/// What happens to a brick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incident {
    /// Its process is killed.
    Killed,
    /// It is started again.
    Started,
    /// Its process stands still.
    Stopped,
    /// It goes on.
    Continued,
}

/// To whom something happens, and what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// One of the cluster's bricks.
    Brick(u32, Incident),
    /// A gateway is killed, and with it the clients that are part of its process: what these had asked stays unanswered, and those of the other
    /// gateways ask in their place. Clients on machines of their own go on through another gateway. Gateways come back under other ids only, and
    /// none does here.
    Gateway(u32),
}

/// The conditions of a run. Times count from the beginning of its load.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Conditions {
    /// Who shares the bricks, where that is not one stream with a volume on each of the cluster's groups. The groups count for nothing then.
    pub sharing: Option<Sharing>,
    /// How each group's volume lies on its bricks; as copies when none is named.
    pub layout: Option<Layout>,
    /// What all volumes' writes and reads go by.
    pub protocol: Protocol,
    /// One volume over all bricks, on several groups, where there is not one on each of the cluster's groups. All bricks are one group then.
    pub spread: Option<Spread>,
    /// Bytes of a stripe unit, of layouts that have any; 64 KiB when absent.
    pub unit_bytes: Option<u64>,
    /// Whether it is counted what crosses the machines' memories, from half of so long after the warm-up until so long after the
    /// last answer: requests are asked one at a time, and all is quiet then.
    pub counts_crossings: Option<Duration>,
    /// Whether the directory is asked, ten times a second, how bricks stand.
    pub watches_bricks: bool,
    /// When what happens to whom.
    pub incidents: Vec<(Duration, Victim)>,
    /// Whether requests are for whole blocks, all those that they touch: as real daemons are asked where every block is checked.
    pub are_blocks: bool,
    /// Requests that are outstanding at a time where they come whatever became of those before: further ones wait until one is
    /// answered, and their time counts from when they came. Any number when absent.
    pub outstanding_max: Option<u32>,
    /// The bug that is planted on purpose; see [`crate::plants`].
    pub plant: Option<String>,
    /// Whether all checkers watch: each message and step, and in the end what clients wrote and read, by what the protocol promises.
    pub is_judged: bool,
    /// Whether a record of each request is kept.
    pub keeps_requests: bool,
    /// Requests are counted by intervals of this length; not at all when it is zero.
    pub window: Duration,
    /// When the load ends at the latest.
    pub end: Option<Duration>,
}

/// What clients saw in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// When it begins, in seconds from the beginning of the load.
    pub from_s: f64,
    pub seconds: f64,
    /// Requests answered in it.
    pub requests: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// Counts answers by intervals.
pub(super) struct Windows {
    since: Time,
    length: Duration,
    times: Vec<Times>,
}

impl Windows {
    pub(super) fn new(since: Time, length: Duration) -> Windows {
        Windows { since, length, times: Vec::new() }
    }

    pub(super) fn add(&mut self, now: Time, response_ns: u64) {
        if self.length.is_zero() {
            return;
        }
        let at = (now.since(self.since).as_nanos() / self.length.as_nanos()) as usize;
        if self.times.len() <= at {
            self.times.resize_with(at + 1, Times::new);
        }
        self.times[at].add(response_ns);
    }

    /// All that are over, or were.
    pub(super) fn all(&self) -> Vec<Window> {
        let seconds = self.length.as_secs_f64();
        let window = |(at, times): (usize, &Times)| {
            let response = times.response();
            let (p50_ms, p99_ms, max_ms) = (response.p50_ms, response.p99_ms, response.max_ms);
            Window { from_s: at as f64 * seconds, seconds, requests: response.count, p50_ms, p99_ms, max_ms }
        };
        self.times.iter().enumerate().map(window).collect()
    }
}

/// What clients wrote and read, for the checkers.
pub(super) struct Witness {
    protocol: Protocol,
    history: History,
}

/// A request as its witness saw it go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Names it, and what it writes, like no other.
    pub(super) tag: u64,
    pub(super) group: u32,
    /// Its blocks.
    pub(super) block: u64,
    pub(super) blocks: u64,
    pub(super) is_write: bool,
    pub(super) born: Time,
}

impl Seen {
    fn registers(self) -> impl Iterator<Item = Register> {
        (self.block..self.block + self.blocks).map(move |block| Register::block(self.group as usize, block))
    }

    /// What it writes to this one of its blocks.
    fn value(self, at: usize) -> u64 {
        self.tag << 16 | (at as u64 + 1)
    }
}

impl Witness {
    /// Of volumes with that protocol.
    pub(super) fn new(protocol: Protocol) -> Witness {
        Witness { protocol, history: History::default() }
    }

    /// A write goes out: what it writes.
    pub(super) fn content(&mut self, seen: Seen) -> Payload {
        let mut bytes = BytesMut::zeroed(seen.blocks as usize * BLOCK);
        for (at, register) in seen.registers().enumerate() {
            self.history.announce(seen.value(at), register);
            let word = seen.value(at).to_le_bytes();
            let block = &mut bytes[at * BLOCK..(at + 1) * BLOCK];
            block.as_chunks_mut::<8>().0.iter_mut().for_each(|slot| *slot = word);
        }
        Payload::from(bytes.freeze())
    }

    /// A request was answered, or with `None` was not: then a write may take effect or not.
    pub(super) fn ended(
        &mut self,
        seen: Seen,
        answered: Option<Time>,
        content: &Payload,
    ) -> Result<(), Violation> {
        for (at, register) in seen.registers().enumerate() {
            let value = match (seen.is_write, answered) {
                (true, _) => seen.value(at),
                (false, None) => continue,
                (false, Some(_)) => {
                    let value = bytes::value_of(&content.slice(at * BLOCK, BLOCK), register)?;
                    bytes::check(&self.history, register, value)?;
                    value
                }
            };
            let kind = if seen.is_write { Kind::Write } else { Kind::Read };
            let (asked_ns, answered_ns) = (seen.born.0, answered.map(|time| time.0));
            self.history.push(Operation { client: seen.tag, register, kind, value, asked_ns, answered_ns });
        }
        Ok(())
    }

    /// Whether each block was read and written in an order that the protocol promises.
    pub(super) fn judge(&self) -> Result<(), Violation> {
        let blocks = self.history.by_register();
        blocks.iter().try_for_each(|operations| checkers::check_order(self.protocol, operations))
    }
}
