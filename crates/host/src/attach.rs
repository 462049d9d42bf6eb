//! `attach`: a client machine behind an NBD endpoint on a unix socket, so that a local client's I/O goes on when its
//! gateway dies.

use crate::address::Address;
use crate::metrics::Meter;
use crate::nbd_server::{FrontEvent, NbdServer};
use crate::slots::Slots;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, World, draw_id};
use crate::{AttachOptions, HostError, NbdOptions, OnReady, Ready, Shutdown, identity};
use base::{NodeId, Payload, Time};
use roles::client::{Client, ClientConfig, ClientEffect, ClientEvent};
use std::collections::VecDeque;
use wire::{AdminError, Io, VolumeInfo};

/// Requests that the machine may have at a time; more wait in order.
const WINDOW: usize = 256;

/// Serves one volume on a unix socket until the shutdown is requested.
///
/// # Errors
/// When an address, a certificate or the socket cannot be used.
pub fn run_attach(
    options: AttachOptions,
    shutdown: &Shutdown,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let node = &options.node;
    let id = identity::of_client(&node.security, draw_id())?;
    let mut peers = Peers::new(NodeId::Client(id), node.cluster, &node.security, core.registry(), draw_id())?;
    let directory: Address = options.directory.parse()?;
    let now = core.clock.now();
    peers.learn(NodeId::Directory, &directory, now, &mut |_| {});
    let listen = vec![Address::Unix(options.socket).to_string()];
    let nbd = NbdServer::new(&NbdOptions { listen, tls: None, group: options.group }, core.registry())?;
    let machine = Client::new(ClientConfig { id, volume: options.volume.clone(), window: WINDOW }, now);
    let opening = Opening::new(&options.volume, &nbd, on_ready);
    let meter = Meter::new(node.metrics)?;
    let role = AttachRole {
        nbd,
        name: options.volume,
        opening,
        volume: None,
        openers: Vec::new(),
        listers: Vec::new(),
        asked: Slots::default(),
        waiting: VecDeque::new(),
    };
    Driver::new(core, peers, machine, role, meter).run()
}

/// The start of a daemon that serves one volume: it says that it serves once the volume is found, and does not start if there is none.
pub(crate) enum Opening<'a> {
    Waits { ready: Ready, on_ready: OnReady<'a>, has_warned: bool, turns: u32 },
    Serves,
    Refused(AdminError),
}

/// Seconds after which it is said what is waited for.
const WARN_AFTER: u32 = 5;

impl<'a> Opening<'a> {
    pub(crate) fn new(volume: &str, nbd: &NbdServer, on_ready: OnReady<'a>) -> Opening<'a> {
        let ready = Ready { name: format!("attach {volume}"), addresses: nbd.addresses() };
        Opening::Waits { ready, on_ready, has_warned: false, turns: 0 }
    }

    /// The volume was found, or there is none. Only the first word counts: a volume that is deleted later ends no daemon.
    pub(crate) fn hear(&mut self, volume: &Result<VolumeInfo, AdminError>) {
        if !matches!(self, Opening::Waits { .. }) {
            return;
        }
        let next = match volume {
            Ok(_) => Opening::Serves,
            Err(error) => Opening::Refused(error.clone()),
        };
        if let (Opening::Waits { ready, on_ready, .. }, Opening::Serves) =
            (std::mem::replace(self, next), &self)
        {
            on_ready(&ready);
        }
    }

    /// Why the daemon does not start, if it does not.
    pub(crate) fn refusal(&mut self) -> Option<HostError> {
        match self {
            Opening::Refused(error) => Some(error.clone().into()),
            Opening::Waits { .. } | Opening::Serves => None,
        }
    }

    /// A second has passed.
    pub(crate) fn tick(&mut self, volume: &str) {
        if let Opening::Waits { has_warned, turns, .. } = self {
            *turns += 1;
            if *turns > WARN_AFTER && !std::mem::replace(has_warned, true) {
                tracing::warn!(
                    volume,
                    "not found yet: neither directory nor gateway has answered; waiting for them"
                );
            }
        }
    }
}

struct AttachRole<'a> {
    nbd: NbdServer,
    opening: Opening<'a>,
    /// The volume's name; clients may also ask for the default export.
    name: String,
    /// What the machine found, once it did.
    volume: Option<Result<VolumeInfo, AdminError>>,
    /// Sessions that wait for the volume to be found.
    openers: Vec<u64>,
    listers: Vec<u64>,
    /// `(session, tag)` of the requests at the machine, by its own tag.
    asked: Slots<(u64, u64)>,
    waiting: VecDeque<FrontEvent>,
}

impl Role for AttachRole<'_> {
    type Machine = Client;
    const ROLE: roles::admission::Role = roles::admission::Role::Client;

    fn peer_event(event: PeerEvent) -> Option<ClientEvent> {
        Some(match event {
            PeerEvent::Packet { from, packet } => ClientEvent::Packet { from, packet },
            PeerEvent::Up(node) => ClientEvent::Up(node),
            PeerEvent::Down(node) => ClientEvent::Down(node),
            PeerEvent::Gone(node) => ClientEvent::Gone(node),
            PeerEvent::Certified { .. } => return None,
        })
    }

    fn effect(&mut self, effect: ClientEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        let now = world.now;
        match effect {
            ClientEffect::Send { to, packet } => world.peers.send(to, &packet),
            ClientEffect::Address { node, address } => world.learn(node, &address),
            ClientEffect::Forget(node) => world.forget(node),
            ClientEffect::Opened { volume } => self.found(volume, now),
            ClientEffect::Reply { tag, result, payload } => {
                if let Some((session, tag)) = self.asked.remove(tag as usize) {
                    self.nbd.reply(session, tag, result, payload, now);
                }
            }
        }
        Ok(())
    }

    fn ready(&mut self, event: &mio::event::Event, world: &mut World<'_, Self>) {
        self.nbd.ready(event, world.now);
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        self.waiting.extend(self.nbd.gather(world.now));
        while self.asked.len() < WINDOW
            && let Some(event) = self.waiting.pop_front()
        {
            world.inbox.extend(self.take(event, world.now));
        }
    }

    fn flush(&mut self, world: &mut World<'_, Self>) {
        self.nbd.flush(world.now);
    }

    fn has_more(&self) -> bool {
        self.nbd.has_more() || (!self.waiting.is_empty() && self.asked.len() < WINDOW)
    }

    fn deadline(&self) -> Time {
        self.nbd.deadline()
    }

    fn farewell(&mut self) -> bool {
        self.nbd.end()
    }

    fn breaks_off(&mut self, _now: Time) -> Option<HostError> {
        self.opening.refusal()
    }

    fn measure(&mut self, _machine: &Client, _now: Time, meter: &mut Meter) {
        self.opening.tick(&self.name);
        self.nbd.measure(meter);
    }
}

impl AttachRole<'_> {
    fn take(&mut self, event: FrontEvent, now: Time) -> Option<ClientEvent> {
        match event {
            FrontEvent::Open { session, name } if name.is_empty() || name == self.name => {
                self.openers.push(session);
                self.answer(now);
            }
            FrontEvent::Open { session, name } => {
                self.nbd.opened(session, Err(AdminError::NoVolume(name)), now)
            }
            FrontEvent::List { session } => {
                self.listers.push(session);
                self.answer(now);
            }
            // The gateway knows the stream of this process from its certificate.
            FrontEvent::Io { session, tag, volume: _, stream: _, io, payload } => {
                return Some(self.ask(session, tag, io, payload));
            }
            // The machine finishes what it was asked; the answers find nobody.
            FrontEvent::Close { .. } => {}
        }
        None
    }

    fn ask(&mut self, session: u64, tag: u64, io: Io, payload: Payload) -> ClientEvent {
        let tag = self.asked.insert((session, tag)) as u64;
        ClientEvent::Io { tag, io, payload }
    }

    fn found(&mut self, volume: Result<VolumeInfo, AdminError>, now: Time) {
        self.opening.hear(&volume);
        // NBD cannot tell a client that an export has changed; who connects from now on gets the new size.
        if let (Ok(found), Some(Ok(before))) = (&volume, &self.volume)
            && found.size_bytes != before.size_bytes
        {
            tracing::info!(volume = %found.name, size_bytes = found.size_bytes, "volume was resized");
        }
        self.volume = Some(volume);
        self.answer(now);
    }

    /// Answers who waits for the volume, once it is known.
    fn answer(&mut self, now: Time) {
        let Some(volume) = self.volume.clone() else { return };
        for session in self.openers.drain(..) {
            self.nbd.opened(session, volume.clone(), now);
        }
        for session in self.listers.drain(..) {
            self.nbd.listed(session, volume.clone().map(|volume| vec![volume]), now);
        }
    }
}
