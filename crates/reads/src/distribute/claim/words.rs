//! The words of a [`Claims`](super::Claims): what can be set, what can happen, what it asks for, what it counts.

use super::bids;
use base::{BrickId, Time};
use rules::heads::Policy;

pub use wire::disk::{Attempt, Holders, ReadId};

/// How a brick claims.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub brick: BrickId,
    /// How the disk's next access is chosen.
    pub policy: Policy,
    /// The bound on a message's way to another brick that claims reckon with, in nanoseconds.
    pub one_way_ns: u64,
    /// How much longer than two one-way latencies others are heard, in nanoseconds: room for jitter.
    pub slack_ns: u64,
    /// Whether a claim whose wait does not end with the access before it, as that is too short, holds the idle disk only
    /// for the rotational latency. The paper holds it for all of the wait (section 5.3.2).
    pub hold_rotation_only: bool,
    /// Accesses that the device takes at a time: 1 for a disk.
    pub depth: u32,
    /// Accesses that may wait; a read beyond them is dropped. Who admits local work bounds that.
    pub waiting_max: usize,
    /// Claims that are remembered, in case one has overtaken its read.
    pub recent: usize,
    /// For devices without rotation: who is not the best bidder waits.
    pub defer: Option<bids::Defer>,
}

impl Config {
    /// A disk at `brick` whose messages take `one_way_ns`, with the paper's rules.
    pub fn disk(brick: BrickId, one_way_ns: u64) -> Config {
        Config {
            brick,
            policy: Policy::Sptf,
            one_way_ns,
            slack_ns: one_way_ns / 10,
            hold_rotation_only: false,
            depth: 1,
            waiting_max: 1 << 16,
            recent: 1024,
            defer: None,
        }
    }

    /// A device without rotation at `brick` that takes `depth` accesses at a time.
    pub fn flash(brick: BrickId, one_way_ns: u64, depth: u32) -> Config {
        Config {
            policy: Policy::Fcfs,
            depth,
            defer: Some(bids::Defer::default()),
            ..Config::disk(brick, one_way_ns)
        }
    }

    /// How long after its claim a brick hears the others': for a read that was told to all at one moment, and for one
    /// that this brick passed on and another has in memory.
    pub(super) fn wait_ns(&self) -> u64 {
        2 * self.one_way_ns + self.slack_ns
    }
}

/// What can happen. `T` is the driver's own word for an access; it comes back with [`Effect::Issue`] or
/// [`Effect::Drop`], exactly once.
#[derive(Clone, Debug)]
pub enum Event<T> {
    /// A read that any of `holders` may serve arrived, from its client or from another holder.
    Read {
        /// Which, and for which time.
        attempt: Attempt,
        /// What names the data, the same at every holder: where bids do not decide, reads of the same data go to the
        /// same holder, which has them in memory then.
        data: u64,
        /// Where on this disk, in sectors of 512 bytes.
        sector: u64,
        /// Who else was told.
        holders: Holders,
        item: T,
    },
    /// A read of which each of `holders` is to begin as soon as it can, whoever is expected to be first.
    Tied {
        /// Which, and for which time.
        attempt: Attempt,
        /// Where on this disk, in sectors of 512 bytes.
        sector: u64,
        /// Who else was told.
        holders: Holders,
        item: T,
    },
    /// Work that only this disk can do: a destaged write, a read of its own.
    Local {
        /// Where, in sectors of 512 bytes.
        sector: u64,
        is_write: bool,
        item: T,
    },
    /// A read is answered from this brick's memory: the others need not serve it, nor this one's disk if it waits.
    Hit {
        attempt: Attempt,
        /// Who else was told.
        holders: Holders,
    },
    /// Another holder claims a read.
    Claim {
        attempt: Attempt,
        /// What it predicts to need, in nanoseconds; 0 from memory.
        bid_ns: u64,
        brick: BrickId,
    },
    /// Nobody wants a read any more.
    Cancel { read: ReadId },
    /// What was issued will end at `free`, as far as the driver can tell. Without it the next access is chosen only when
    /// this one has ended.
    Busy {
        /// When.
        free: Time,
    },
    /// An access that was issued has ended.
    Done,
}

/// What it asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<T> {
    /// Tell `holders` but this brick.
    Claim {
        attempt: Attempt,
        /// What this brick predicts to need, in nanoseconds.
        bid_ns: u64,
        holders: Holders,
    },
    /// Give this to the device now.
    Issue { item: T },
    /// This will not be served here.
    Drop { item: T, why: Dropped },
}

/// Why an access left without being served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// Another holder claimed it.
    Claimed(BrickId),
    /// It came a second time, or after a claim of it.
    Squashed,
    /// Nobody wants it any more.
    Cancelled,
    /// Too many wait here ([`Config::waiting_max`]); other holders may have room.
    Full,
}

/// How often things happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Accesses that came, local ones too.
    pub arrived: u64,
    /// Claims that were sent out (each to all other holders).
    pub claims: u64,
    /// Claims heard of a read that was chosen here.
    pub conflicts: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Accesses dropped because another holder claimed them.
    pub claimed_away: u64,
    /// Reads that came again, or after their claim.
    pub squashed: u64,
    /// Reads that were cancelled.
    pub cancelled: u64,
    /// Reads that found too many waiting.
    pub refused: u64,
    /// Reads that were taken over since their best bidder let its time pass.
    pub overtaken: u64,
    /// Accesses given to the device.
    pub issued: u64,
    /// Times that an access was chosen.
    pub choices: u64,
    /// The sum over them of the accesses that could be chosen from.
    pub choices_seen: u64,
}
