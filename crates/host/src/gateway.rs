//! The gateway daemon: NBD clients in front, `attach` clients and bricks as peers.

use crate::address::Address;
use crate::attach::Opening;
use crate::metrics::Meter;
use crate::nbd_server::{FrontEvent, NbdServer};
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, WORKERS, World, draw_id};
use crate::workers::Workers;
use crate::{
    AttachOptions, GatewayOptions, HostError, NbdOptions, NodeOptions, OnReady, Ready, Security, Shutdown,
    identity,
};
use base::{BrickId, GatewayId, NodeId, Time};
use roles::gateway::{Gateway, GatewayConfig, GatewayEffect, GatewayEvent, Serves};
use wire::{AdminError, VolumeInfo};

/// Runs a gateway until the shutdown is requested.
///
/// # Errors
/// When an address, a certificate or a socket cannot be used.
pub fn run_gateway(
    options: GatewayOptions,
    shutdown: &Shutdown,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let mut system = System::start(&options.node, &options.directory, shutdown)?;
    let nbd = NbdServer::new(&options.nbd, system.core.registry())?;
    let bound = system.peers.listen(&options.listen.parse()?)?;
    warn_of_plain_nbd(&options);
    let addresses = std::iter::once(bound.to_string()).chain(nbd.addresses()).collect();
    let meter = Meter::new(options.node.metrics)?;
    on_ready(&Ready { name: "gateway".to_owned(), addresses });
    let address = options.advertise.unwrap_or_else(|| bound.to_string());
    let name = options.name.unwrap_or_default();
    let serving = Serving { name, address, serves: Serves::Anyone, beside: options.beside };
    system.run(serving, nbd, None, meter)
}

/// Serves one volume on a unix socket by a gateway within this process, which no other client reaches: the data path `direct`.
///
/// # Errors
/// When an address, a certificate or the socket cannot be used.
pub fn run_attach_direct(
    options: AttachOptions,
    shutdown: &Shutdown,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let listen = vec![Address::Unix(options.socket).to_string()];
    let nbd = NbdOptions { listen, tls: None, group: options.group };
    let system = System::start(&options.node, &options.directory, shutdown)?;
    let nbd = NbdServer::new(&nbd, system.core.registry())?;
    let meter = Meter::new(options.node.metrics)?;
    let opening = Opening::new(&options.volume, &nbd, on_ready);
    let (name, address) = (String::new(), String::new());
    let serving = Serving { name, address, serves: Serves::OwnClient, beside: None };
    system.run(serving, nbd, Some(Only { volume: options.volume, opening, has_asked: false }), meter)
}

/// Whom a gateway serves, and where.
struct Serving {
    /// What operators call it; where it is empty the directory gives it a name.
    name: String,
    /// Where clients reach it; empty where no `attach` does.
    address: String,
    serves: Serves,
    /// The brick on its machine.
    beside: Option<BrickId>,
}

/// What a gateway's machine is put into.
pub(crate) struct System {
    pub(crate) core: Core,
    pub(crate) id: GatewayId,
    pub(crate) peers: Peers,
    pub(crate) workers: Workers,
    pub(crate) now: Time,
}

impl System {
    /// A gateway of a new id, which calls the directory.
    pub(crate) fn start(
        node: &NodeOptions,
        directory: &str,
        shutdown: &Shutdown,
    ) -> Result<System, HostError> {
        crate::clock::warn_of_a_virtual_machine();
        let core = Core::new(shutdown)?;
        let id = identity::of_gateway(&node.security, draw_id())?;
        let mut peers =
            Peers::new(NodeId::Gateway(id), node.cluster, &node.security, core.registry(), draw_id())?;
        let directory: Address = directory.parse()?;
        let now = core.clock.now();
        peers.learn(NodeId::Directory, &directory, now, &mut |_| {});
        let workers = Workers::start()?;
        core.watch(workers.event_fd(), WORKERS)?;
        Ok(System { core, id, peers, workers, now })
    }

    /// Serves all volumes, or only one.
    fn run(
        self,
        Serving { name, address, serves, beside }: Serving,
        nbd: NbdServer,
        only: Option<Only<'_>>,
        meter: Meter,
    ) -> Result<(), HostError> {
        let System { core, id, peers, workers, now } = self;
        let machine = Gateway::new(GatewayConfig { id, name, address, serves, beside }, now);
        let role = GatewayRole { nbd, workers, only, events: Vec::new() };
        Driver::new(core, peers, machine, role, meter).run()
    }
}

/// In a cluster with TLS, a plain TCP endpoint is a door without a lock for every user of the machine.
fn warn_of_plain_nbd(options: &GatewayOptions) {
    if matches!(options.node.security, Security::Plain) || options.nbd.tls.is_some() {
        return;
    }
    for endpoint in options.nbd.listen.iter().filter(|endpoint| !endpoint.starts_with("unix:")) {
        tracing::warn!(
            endpoint,
            "NBD without TLS over TCP: every local user of this machine can read and write every volume; use a unix socket \
             (nbd = [\"unix:nbd.sock\"]) or nbd_tls"
        );
    }
}

/// The session by which a gateway that serves one volume asks whether there is such a volume. No NBD client has it.
const OPENING: u64 = u64::MAX;

/// The one volume that a gateway serves, also as the default export.
struct Only<'a> {
    volume: String,
    opening: Opening<'a>,
    has_asked: bool,
}

struct GatewayRole<'a> {
    nbd: NbdServer,
    workers: Workers,
    /// None where it serves all.
    only: Option<Only<'a>>,
    /// What clients want, kept so that no turn allocates.
    events: Vec<FrontEvent>,
}

impl GatewayRole<'_> {
    /// What an NBD client wants of the machine, if it may.
    fn take(&mut self, event: FrontEvent, now: Time) -> Option<GatewayEvent> {
        let only = self.only.as_ref().map(|only| &only.volume);
        Some(match (event, only) {
            (FrontEvent::Open { session, name }, Some(only)) if name.is_empty() || name == *only => {
                GatewayEvent::Open { session, name: only.clone() }
            }
            (FrontEvent::Open { session, name }, Some(_)) => {
                self.nbd.opened(session, Err(AdminError::NoVolume(name)), now);
                return None;
            }
            (FrontEvent::Open { session, name }, None) => GatewayEvent::Open { session, name },
            (FrontEvent::List { session }, _) => GatewayEvent::List { session },
            (FrontEvent::Io { session, tag, volume, stream, io, payload }, _) => {
                GatewayEvent::Io { session, tag, volume, stream, io, payload }
            }
            (FrontEvent::Close { session }, _) => GatewayEvent::Close { session },
        })
    }

    /// The volumes that its clients see.
    fn shown(&self, mut volumes: Vec<VolumeInfo>) -> Vec<VolumeInfo> {
        volumes.retain(|volume| self.only.as_ref().is_none_or(|only| volume.name == only.volume));
        volumes
    }
}

/// What a gateway's machine is told of its peers.
pub(crate) fn event_of(event: PeerEvent) -> Option<GatewayEvent> {
    Some(match event {
        PeerEvent::Packet { from, packet } => GatewayEvent::Packet { from, packet },
        PeerEvent::Up(node) => GatewayEvent::Up(node),
        PeerEvent::Down(node) => GatewayEvent::Down(node),
        PeerEvent::Certified { client, stream } => GatewayEvent::Certified { client, stream },
        PeerEvent::Gone(_) => return None,
    })
}

impl Role for GatewayRole<'_> {
    type Machine = Gateway;
    const ROLE: roles::admission::Role = roles::admission::Role::Gateway;

    fn peer_event(event: PeerEvent) -> Option<GatewayEvent> {
        event_of(event)
    }

    fn effect(&mut self, effect: GatewayEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        let now = world.now;
        match effect {
            GatewayEffect::Send { to, packet } => world.peers.send(to, &packet),
            GatewayEffect::Compute { number, computation } => self.workers.compute(number, computation),
            GatewayEffect::Address { node, address } => world.learn(node, &address),
            GatewayEffect::Opened { session: OPENING, volume } => {
                if let Some(only) = &mut self.only {
                    only.opening.hear(&volume);
                }
                world.inbox.push(GatewayEvent::Close { session: OPENING });
            }
            GatewayEffect::Opened { session, volume } => self.nbd.opened(session, volume, now),
            GatewayEffect::Listed { session, volumes } => {
                let shown = volumes.map(|volumes| self.shown(volumes));
                self.nbd.listed(session, shown, now);
            }
            GatewayEffect::Reply { session, tag, result, payload } => {
                self.nbd.reply(session, tag, result, payload, now);
            }
            // Whoever puts and reads objects has a gateway of its own, and none asks for segments alone.
            GatewayEffect::Segment { .. } | GatewayEffect::Object { .. } => {}
            // NBD cannot tell a client that an export has changed; who connects from now on gets the new size.
            GatewayEffect::Changed { volume } => tracing::info!(volume = %volume.name, "volume changed"),
        }
        Ok(())
    }

    fn ready(&mut self, event: &mio::event::Event, world: &mut World<'_, Self>) {
        self.nbd.ready(event, world.now);
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        if let Some(only) = &mut self.only
            && !std::mem::replace(&mut only.has_asked, true)
        {
            world.inbox.push(GatewayEvent::Open { session: OPENING, name: only.volume.clone() });
        }
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.nbd.gather(world.now));
        world.inbox.extend(events.drain(..).filter_map(|event| self.take(event, world.now)));
        self.events = events;
        let made = self.workers.take();
        world.inbox.extend(made.map(|(number, made)| GatewayEvent::Computed { number, made }));
    }

    fn flush(&mut self, world: &mut World<'_, Self>) {
        self.nbd.flush(world.now);
    }

    fn has_more(&self) -> bool {
        self.nbd.has_more() || self.workers.has_more()
    }

    fn deadline(&self) -> Time {
        self.nbd.deadline()
    }

    fn farewell(&mut self) -> bool {
        self.nbd.end()
    }

    fn breaks_off(&mut self, _now: Time) -> Option<HostError> {
        self.only.as_mut().and_then(|only| only.opening.refusal())
    }

    fn measure(&mut self, machine: &Gateway, _now: Time, meter: &mut Meter) {
        if let Some(only) = &mut self.only {
            only.opening.tick(&only.volume);
        }
        meter.counters(machine.counters());
        machine.traffic().all().into_iter().for_each(|(name, value)| meter.counter(name, value));
        meter.gauge("brickwork_requests_under_way", machine.requests_under_way() as f64);
        self.nbd.measure(meter);
    }
}
