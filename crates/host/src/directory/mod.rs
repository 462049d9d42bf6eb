//! The directory daemon: its machine, its peers, its [`store`], and those of the index's [`shards`]. Beside it stands [`fill`], for measurements.

mod cached;
pub(crate) mod fill;
mod mark;
mod shards;
mod shrink;
pub(crate) mod store;

use crate::metrics::Meter;
use crate::refusals::refused;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, WORKERS, World, draw_id};
use crate::{DirectoryOptions, HostError, OnReady, Ready, Shutdown};
use base::{NodeId, Time};
use objects::index::ShardEvent;
use roles::directory::{Directory, DirectoryEffect, DirectoryEvent, Put, StoreToken};
use shards::Shards;
use store::{Kind, Store};
use wire::{IndexError, Message};

/// Runs the directory until the shutdown is requested.
///
/// # Errors
/// When an address, a certificate, a socket or the store cannot be used.
pub fn run_directory(
    options: DirectoryOptions,
    shutdown: &Shutdown,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let node = &options.node;
    let failed = |why: String| HostError::Store { path: options.store.clone(), why };
    let store = Store::open_synced(&options.store, Kind::Directory).map_err(failed)?;
    let contents = store.contents().map_err(failed)?;
    let shards = Shards::new(&options.store, options.config.index.shards)?;
    core.watch(shards.event_fd(), WORKERS)?;
    let mut config = options.config.clone();
    config.index.drawn = draw_id();
    let machine = Directory::new(config, contents, core.clock.now()).map_err(failed)?;
    let mut peers = Peers::new(NodeId::Directory, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&options.listen.parse()?)?;
    let meter = Meter::new(node.metrics)?;
    on_ready(&Ready { name: "directory".to_owned(), addresses: vec![bound.to_string()] });
    Driver::new(
        core,
        peers,
        machine,
        DirectoryRole {
            shards,
            store,
            to_store: Vec::new(),
            transactions: 0,
            index_transactions: 0,
            alarms: Vec::new(),
        },
        meter,
    )
    .run()
}

/// What a directory, or one that is made anew, is told of its peers.
pub(crate) fn event_of(event: PeerEvent) -> Option<DirectoryEvent> {
    match event {
        PeerEvent::Packet { from, packet } => Some(DirectoryEvent::Packet { from, packet }),
        PeerEvent::Down(node) => Some(DirectoryEvent::Down(node)),
        PeerEvent::Up(_) | PeerEvent::Gone(_) | PeerEvent::Certified { .. } => None,
    }
}

/// A brick that is not believed is either of another release or no friend: somebody should know.
fn log_refusal(to: NodeId, message: &Message) {
    if let (NodeId::Brick(brick), Message::IndexDone { result, .. }) = (to, message)
        && let Err(IndexError::Invalid(why)) = &**result
    {
        refused(|| tracing::warn!(%brick, why, "the index refused what a brick said"));
    }
}

struct DirectoryRole {
    /// Closed before the store, whose lock keeps others from these.
    shards: Shards,
    store: Store,
    /// What this turn has to store, in order.
    to_store: Vec<(StoreToken, Vec<Put>)>,
    transactions: u64,
    index_transactions: u64,
    /// What is wrong, as the log has it.
    alarms: Vec<String>,
}

impl DirectoryRole {
    /// What is wrong goes to the log once.
    fn log_alarms(&mut self, machine: &Directory, now: Time) {
        let alarms = machine.alarms(now);
        let new = alarms.iter().filter(|alarm| !self.alarms.contains(alarm));
        new.for_each(|alarm| tracing::error!("{alarm}"));
        self.alarms = alarms;
    }
}

impl Role for DirectoryRole {
    type Machine = Directory;
    const ROLE: roles::admission::Role = roles::admission::Role::Directory;

    fn peer_event(event: PeerEvent) -> Option<DirectoryEvent> {
        event_of(event)
    }

    fn effect(&mut self, effect: DirectoryEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            DirectoryEffect::Send { to, packet } => {
                log_refusal(to, &packet.message);
                world.peers.send(to, &packet);
            }
            DirectoryEffect::Store { token, puts } => self.to_store.push((token, puts)),
            DirectoryEffect::Shard { shard, effect } => self.shards.ask(shard, effect)?,
            DirectoryEffect::Tell(news) if news.is_trouble() => {
                tracing::warn!(brick = %news.brick(), "{news}")
            }
            DirectoryEffect::Tell(news) => tracing::info!(brick = %news.brick(), "{news}"),
        }
        Ok(())
    }

    /// Changes are rare and small: the loop waits for them, and no order can be lost. Those of a turn are one transaction: when a brick dies a view of each
    /// of its groups is stored.
    fn flush(&mut self, world: &mut World<'_, Self>) {
        if self.to_store.is_empty() {
            return;
        }
        let (tokens, result) = self.store.put_all(core::mem::take(&mut self.to_store));
        self.transactions += u64::from(result.is_ok());
        let stored = |token| DirectoryEvent::Stored { token, result: result.clone() };
        world.inbox.extend(tokens.into_iter().map(stored));
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        for (shard, event) in self.shards.take() {
            self.index_transactions += u64::from(matches!(event, ShardEvent::Stored { result: Ok(()), .. }));
            world.inbox.push(DirectoryEvent::Shard { shard, event });
        }
    }

    fn measure(&mut self, machine: &Directory, now: Time, meter: &mut Meter) {
        self.log_alarms(machine, now);
        meter.counter("brickwork_directory_transactions_total", self.transactions);
        meter.counter("brickwork_index_transactions_total", self.index_transactions);
        meter.counters(machine.counters());
        let [groups, degraded, rebuilding] = machine.group_counts().map(|count| count as f64);
        meter.gauge("brickwork_groups", groups);
        meter.gauge("brickwork_groups_degraded", degraded);
        meter.gauge("brickwork_groups_rebuilding", rebuilding);
        let is_failing = if machine.store_is_failing() { 1.0 } else { 0.0 };
        meter.gauge("brickwork_directory_store_failing", is_failing);
        meter.gauge("brickwork_bricks_slow", machine.slow_bricks() as f64);
    }
}
