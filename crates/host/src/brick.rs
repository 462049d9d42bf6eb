//! The brick daemon: its machine, peers, and disks.

use crate::address::Address;
use crate::disk::{Completions, DiskEngine, DiskFile};
use crate::metrics::Meter;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, DISKS, Driver, Role, World, draw_id};
use crate::{BrickOptions, HostError, Ready, Shutdown};
use base::{NodeId, Time};
use node::{BrickNode, Effect, Event};
use proto::brick::BrickConfig;
use store::StoreConfig;

/// Runs a brick until the shutdown is requested. It is ready when its disks are recovered.
///
/// # Errors
/// When an address, a certificate, a socket or a disk cannot be used; also when a disk is refused by the store.
pub fn run_brick(options: BrickOptions, shutdown: &Shutdown, on_ready: impl FnOnce(&Ready)) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let (me, node) = (NodeId::Brick(options.id), &options.node);
    let disks = options.disks.iter().map(DiskFile::open).collect::<Result<Vec<_>, _>>()?;
    let stores = store_configs(&options, &disks);
    let engine = DiskEngine::new(options.io, disks)?;
    core.watch(engine.event_fd(), DISKS)?;
    let mut peers = Peers::new(me, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&options.listen.parse()?)?.to_string();
    let directory: Address = options.directory.parse()?;
    let now = core.clock.now();
    peers.learn(NodeId::Directory, &directory, now, &mut |_| {});
    let address = options.advertise.clone().unwrap_or_else(|| bound.clone());
    let config = BrickConfig { id: options.id, address, labels: options.labels.clone() };
    let machine = BrickNode::new(config, stores, now);
    let meter = Meter::new(node.metrics)?;
    tracing::info!(brick = %options.id, engine = engine.name(), disks = options.disks.len(), "opening the disks");
    let ready = Ready { name: options.id.to_string(), addresses: vec![bound] };
    let on_ready = Some(move || on_ready(&ready));
    Driver { core, peers, machine, role: BrickRole { engine, done: Vec::new(), on_ready }, meter }.run()
}

/// All disks share the cache's memory evenly.
fn store_configs(options: &BrickOptions, disks: &[DiskFile]) -> Vec<StoreConfig> {
    let share = options.cache_bytes as usize / disks.len().max(1);
    let config = |(index, disk): (usize, &DiskFile)| StoreConfig {
        cache_bytes: share,
        ..StoreConfig::new(options.node.cluster, options.id, index as u16, disk.size_bytes())
    };
    disks.iter().enumerate().map(config).collect()
}

struct BrickRole<F> {
    engine: DiskEngine,
    done: Completions,
    on_ready: Option<F>,
}

impl<F: FnOnce()> Role for BrickRole<F> {
    type Machine = BrickNode;

    fn peer_event(event: PeerEvent) -> Option<Event> {
        Some(match event {
            PeerEvent::Packet { from, packet } => Event::Packet { from, packet },
            PeerEvent::Up(node) => Event::Up(node),
            PeerEvent::Down(node) => Event::Down(node),
        })
    }

    fn effect(&mut self, effect: Effect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            Effect::Send { to, packet } => world.peers.send(to, &packet),
            Effect::Disk { disk, io } => self.engine.push(disk, io),
            Effect::Ready => {
                if let Some(on_ready) = self.on_ready.take() {
                    on_ready();
                }
            }
            Effect::Failed { why } => return Err(HostError::Failed(why)),
        }
        Ok(())
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        // A look at shared memory, so that it is worth it in every turn, whatever has ended the wait.
        self.engine.complete(&mut self.done);
        world.inbox.extend(self.done.drain(..).map(|(disk, done)| Event::Disk { disk, done }));
    }

    fn flush(&mut self, _world: &mut World<'_, Self>) {
        self.engine.submit();
    }

    fn measure(&mut self, machine: &BrickNode, now: Time, meter: &mut Meter) {
        meter.gauge("brickwork_disk_requests_in_flight", self.engine.in_flight() as f64);
        meter.gauge("brickwork_lease_held", f64::from(u8::from(machine.is_leased(now))));
        for stats in machine.stats() {
            publish(&stats, meter);
        }
    }
}
