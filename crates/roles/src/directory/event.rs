//! What happens to the directory, and what it asks for.

use super::news::News;
use base::{ClusterTime, NodeId};
use core::time::Duration;
use objects::index::{IndexConfig, ShardEffect, ShardEvent};
use wire::{Care, Message, Packet};

/// What happens to the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryEvent {
    /// A packet came. `from` is what the transport has authenticated.
    Packet { from: NodeId, packet: Packet },
    /// The connection to a peer is gone.
    Down(NodeId),
    /// A [`DirectoryEffect::Store`] is on stable storage, or why not.
    Stored {
        /// As in the effect.
        token: StoreToken,
        /// An error in words that an operator understands.
        result: Result<(), String>,
    },
    /// A shard's store answers a [`DirectoryEffect::Shard`].
    Shard { shard: u16, event: ShardEvent },
}

/// A change of the directory's store: `None` removes the key.
pub type Put = (Vec<u8>, Option<Vec<u8>>);

/// Names a [`DirectoryEffect::Store`] and its answer; grows with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreToken(pub u64);

/// What the directory asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryEffect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// Put all of these on stable storage, or none. Asked in order, and answered in order. Where one has failed, all that
    /// were asked after it fail as well, until its token is asked for again: no later change is stored ahead of it.
    Store { token: StoreToken, puts: Vec<Put> },
    /// Asks the store of a shard of the index of objects; each has one of its own.
    Shard { shard: u16, effect: ShardEffect },
    /// A line for the log.
    Tell(News),
}

/// What the directory is told when it starts.
#[derive(Clone, Debug)]
pub struct DirectoryConfig {
    /// For how long a brick may trust its views after a heartbeat or a renewal, where it is heard regularly.
    pub lease_ns: u64,
    /// By how much clocks may differ in rate, in parts per million.
    pub drift_ppm: u32,
    /// Failure-domain labels, the widest first.
    pub domains: Vec<String>,
    /// How bricks look after their blocks, until a command says otherwise.
    pub care: Care,
    /// For how long a brick that was left out for being slow must be well again before it returns: doubled each time,
    /// between these.
    pub slow_hold_ns: (u64, u64),
    /// Whether bricks stand in for members that are away.
    pub stand_ins: bool,
    /// The index of objects.
    pub index: IndexConfig,
    /// The time at which a new cluster begins; simulated ones are not always young.
    pub first_time: ClusterTime,
    /// What a brick is told of changes at a time ends behind so many bytes.
    pub page_bytes: usize,
    /// For so long at least a gateway has its number, and [`base::ClusterClock::AHEAD`] longer.
    pub shortest_loan: Duration,
    /// Whether any client may administer: in clusters without certificates nobody can be told from an operator.
    pub anyone_administers: bool,
}

impl Default for DirectoryConfig {
    fn default() -> DirectoryConfig {
        DirectoryConfig {
            lease_ns: 300_000_000,
            drift_ppm: 10_000,
            domains: vec!["rack".to_owned(), "host".to_owned()],
            care: Care::default(),
            slow_hold_ns: DirectoryConfig::SLOW_HOLD_NS,
            stand_ins: true,
            index: IndexConfig::default(),
            first_time: ClusterTime::FIRST,
            page_bytes: DirectoryConfig::PAGE_BYTES,
            shortest_loan: DirectoryConfig::SHORTEST_LOAN,
            anyone_administers: false,
        }
    }
}

impl DirectoryConfig {
    /// A quarter of the longest message: the last change of a page may be a large family.
    pub const PAGE_BYTES: usize = 1 << 20;
    /// A brick that was left out for being slow must be well again for so long the first time, and at most.
    pub const SLOW_HOLD_NS: (u64, u64) = (10_000_000_000, 600_000_000_000);
    /// Usually a loan of a number is not shorter.
    pub const SHORTEST_LOAN: Duration = Duration::from_secs(600);
}

pub(super) fn send(fx: &mut Vec<DirectoryEffect>, to: NodeId, message: Message) {
    fx.push(DirectoryEffect::Send { to, packet: message.into() });
}
