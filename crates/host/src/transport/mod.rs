//! Connections to peers, carrying packets. See [`Peers`].
//!
//! Reading order: `hello` (the handshake), `connection`, `contact` (whom to call when), then this file.

mod connection;
mod contact;
mod hello;

use crate::address::Address;
use crate::admission::{Bound, Bounds, Entry, HELLO_MAX, Origin, Room, Standing};
use crate::channel::Channel;
use crate::door::{Door, Knock, turned_away};
use crate::refusals::refused;
use crate::slots::Slots;
use crate::socket::{Socket, Target};
use crate::tls::TlsConfigs;
use crate::{HostError, Security, descriptors};
use base::{ClientId, ClusterId, HashMap, NodeId, Rng, StreamId, Time};
use connection::{Broken, Connection, Identity, Incoming, Progress};
use contact::{Contact, Keep};
use hello::Refusal;
use mio::{Registry, Token};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use wire::{Packet, Spoken};

/// Tokens of this and the numbers above, below the next multiple of it, belong to peers.
pub(crate) const TOKENS: usize = 1 << 32;
const LISTENER: Token = Token(TOKENS + u32::MAX as usize);

/// Output that waits for one peer; packets beyond are dropped whole, and the machines ask again.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// Callers. 64 places of one address for handshakes suffice for all machines behind one address that come back together, since a
/// handshake takes milliseconds; 1024 for as many `attach` on one machine. Whoever has gone for another one calls again.
const BOUNDS: Bounds = Bounds {
    strangers: Bound { in_all: 256, per_origin: 64, gives_way: true },
    clients: Bound { in_all: 4096, per_origin: 1024, gives_way: true },
    members: Bound { in_all: 4096, per_origin: 4096, gives_way: true },
};
/// A peer that is silent for this long is pinged, at every tick.
const PING_AFTER: Duration = Duration::from_millis(500);
/// A peer that is silent for this long, pings and all, is down.
const DOWN_AFTER: Duration = Duration::from_millis(1500);
const TICK: Duration = Duration::from_millis(250);
/// A connection on demand is closed by the side that called when nothing but pings passed for so long.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// A connection that is silent but for pings gives its buffers back.
const TICKS_TO_SHRINK: u64 = 8;

/// What a peer does.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all are packets")]
pub enum PeerEvent {
    Packet {
        /// Who, by handshake and certificate.
        from: NodeId,
        packet: Packet,
    },
    /// It can be reached.
    Up(NodeId),
    /// The certificate of a client that has just come up names a stream. Nothing comes of one that names none.
    Certified { client: ClientId, stream: StreamId },
    /// It cannot any more; what was under way may be lost.
    Down(NodeId),
    /// Somebody else answers where it was, and it will not be there again: ids of gateways are drawn anew for each run. It is not
    /// called any more.
    Gone(NodeId),
}

/// What the transport has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    pub received: u64,
    /// Packets taken to be sent.
    pub sent: u64,
    /// Bytes received, as they are framed (not as they are encrypted).
    pub received_bytes: u64,
    /// Bytes taken to be sent.
    pub sent_bytes: u64,
    /// Packets dropped because too much waited for the peer.
    pub dropped: u64,
    /// Packets dropped because there was no connection.
    pub unroutable: u64,
    /// Packets dropped because the peer is of a release that does not know them.
    pub unspoken: u64,
    /// Packets dropped because they are longer than a packet may be.
    pub too_long: u64,
    pub connections: u64,
    /// Connections refused or broken.
    pub broken: u64,
}

/// The two connections there may be to one peer.
#[derive(Default)]
struct Route {
    called: Option<usize>,
    accepted: Option<usize>,
}

impl Route {
    fn best(&self) -> Option<usize> {
        self.called.or(self.accepted)
    }
}

/// All peers of a node.
pub struct Peers {
    identity: Identity,
    tls: Option<TlsConfigs>,
    registry: Registry,
    door: Option<Door>,
    /// Those who called.
    room: Room<usize>,
    connections: Slots<Box<Connection>>,
    contacts: BTreeMap<NodeId, Contact>,
    routes: HashMap<NodeId, Route>,
    dirty: Vec<usize>,
    unread: Vec<usize>,
    tick_at: Time,
    ticks: u64,
    rng: Rng,
    counters: TransportCounters,
}

impl Peers {
    /// Knows nobody yet. `seed` spreads calls in time.
    ///
    /// # Errors
    /// When the certificates cannot be used, or the system has no descriptor left.
    pub fn new(
        me: NodeId,
        cluster: ClusterId,
        security: &Security,
        registry: &Registry,
        seed: u64,
    ) -> Result<Peers, HostError> {
        let tls = match security {
            Security::Plain => None,
            Security::Tls(files) => Some(TlsConfigs::load(files)?),
        };
        Ok(Peers {
            identity: Identity { me, cluster, spoken: Spoken::OURS },
            tls,
            registry: registry.try_clone().map_err(crate::error::system("epoll"))?,
            door: None,
            room: Room::new(BOUNDS.within(descriptors::raise())),
            connections: Slots::default(),
            contacts: BTreeMap::new(),
            routes: HashMap::default(),
            dirty: Vec::new(),
            unread: Vec::new(),
            tick_at: Time::ZERO,
            ticks: 0,
            rng: Rng::with_seed(seed),
            counters: TransportCounters::default(),
        })
    }

    /// Takes connections at `address`; where, with the port that was drawn.
    ///
    /// # Errors
    /// When the address is taken, or reachable from elsewhere without TLS.
    pub fn listen(&mut self, address: &Address) -> Result<Address, HostError> {
        if self.tls.is_none() {
            address.require_local()?;
        }
        let door = Door::open(address, None, &self.registry, LISTENER)?;
        let bound = door
            .address()
            .map_err(|error| HostError::Listen { address: address.to_string(), why: error.to_string() })?;
        self.door = Some(door);
        Ok(bound)
    }

    /// `node` is reached at `address`: keep a connection to it from now on.
    pub fn learn(&mut self, node: NodeId, address: &Address, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        self.note(node, address, Keep::Always, now, sink);
    }

    /// `node` is reached at `address`: call it when there is something to say, and part when there was nothing for long.
    pub fn learn_on_demand(
        &mut self,
        node: NodeId,
        address: &Address,
        now: Time,
        sink: &mut dyn FnMut(PeerEvent),
    ) {
        self.note(node, address, Keep::OnDemand, now, sink);
    }

    fn note(
        &mut self,
        node: NodeId,
        address: &Address,
        keep: Keep,
        now: Time,
        sink: &mut dyn FnMut(PeerEvent),
    ) {
        if node == self.identity.me
            || self.contacts.get(&node).is_some_and(|contact| contact.address == *address)
        {
            return;
        }
        let old = self.contacts.insert(node, Contact::new(address.clone(), keep, now));
        if let Some(slot) = old.and_then(|contact| contact.slot) {
            self.close(slot, &Broken::Replaced, now, sink);
        }
        if keep == Keep::Always {
            self.call(node, now);
        }
    }

    /// Nobody calls `node` any more, and a connection to it that this side opened ends.
    pub fn forget(&mut self, node: NodeId, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        if let Some(slot) = self.contacts.remove(&node).and_then(|contact| contact.slot) {
            self.close(slot, &Broken::Forgotten, now, sink);
        }
    }

    /// How many peers are called, reached or not.
    pub fn contacts(&self) -> usize {
        self.contacts.len()
    }

    /// Queues a packet; it goes out with the next [`Peers::flush`].
    pub fn send(&mut self, to: NodeId, packet: &Packet) {
        let Some(slot) = self.routes.get(&to).and_then(Route::best) else { return self.hold(to, packet) };
        let connection = self.connections.get_mut(slot).expect("routes lead to connections");
        if !connection.knows(&packet.message) {
            self.counters.unspoken += 1;
            return;
        }
        if connection.output.bytes() + packet.payload.len() > OUTPUT_BYTES_MAX {
            self.counters.dropped += 1;
            return;
        }
        let before = connection.output.bytes();
        if let Err(why) = connection.push(packet) {
            self.counters.too_long += 1;
            tracing::error!(%to, %why, "a packet was not sent");
            // Whoever waits for it is told at least that it cannot come.
            if let Some(message) = packet.message.instead(&why) {
                self.send(to, &message.into());
            }
            return;
        }
        self.counters.sent += 1;
        connection.is_used = true;
        self.counters.sent_bytes += (connection.output.bytes() - before) as u64;
        mark(&mut connection.is_dirty, &mut self.dirty, slot);
    }

    /// There is no connection: the packet waits where one is made on demand, and is lost elsewhere.
    fn hold(&mut self, to: NodeId, packet: &Packet) {
        let Some(contact) = self.contacts.get_mut(&to) else {
            self.counters.unroutable += 1;
            return;
        };
        if !contact.wait(packet) {
            self.counters.unroutable += 1;
            if contact.keep == Keep::Always && contact.slot.is_none() {
                contact.hurry();
                self.tick_at = self.tick_at.min(contact.call_at);
            }
            return;
        }
        // A tick calls it, in the next turn of the loop unless it failed just now.
        if contact.slot.is_none() {
            self.tick_at = self.tick_at.min(contact.call_at);
        }
    }

    /// Speaks these versions with whoever is connected from now on, as a release of before does: for tests.
    pub fn speak(&mut self, spoken: Spoken) {
        self.identity.spoken = spoken;
    }

    /// Whether there is a connection to `node`.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.routes.contains_key(&node)
    }

    /// How many peers there are connections to.
    pub fn peers_up(&self) -> usize {
        self.routes.len()
    }

    /// Counters since the start.
    pub fn counters(&self) -> TransportCounters {
        self.counters
    }

    /// Why `node` could not be called the last time.
    pub fn last_failure(&self, node: NodeId) -> Option<&str> {
        self.contacts.get(&node).map(|contact| contact.why.as_str()).filter(|why| !why.is_empty())
    }

    /// Takes a readiness event of one of [`TOKENS`].
    pub fn ready(&mut self, event: &mio::event::Event, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        if event.token() == LISTENER {
            return self.accept(now, sink);
        }
        let slot = event.token().0 - TOKENS;
        if event.is_writable()
            && let Some(connection) = self.connections.get_mut(slot)
            // Most of these edges tell only that acknowledgements came; there is nothing to send then.
            && (connection.has_output() || connection.peer.is_none())
        {
            mark(&mut connection.is_dirty, &mut self.dirty, slot);
        }
        if event.is_error()
            && let Some(connection) = self.connections.get_mut(slot)
            && let Err(why) = connection.check()
        {
            return self.close(slot, &why, now, sink);
        }
        if event.is_read_closed()
            && let Some(connection) = self.connections.get_mut(slot)
        {
            connection.is_ended = true;
        }
        if event.is_readable() || event.is_read_closed() {
            self.read(slot, now, sink);
        }
    }

    /// Goes on with connections that had more to read than a turn takes. `true` when some still have.
    pub fn read_on(&mut self, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        for slot in std::mem::take(&mut self.unread) {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.is_unread = false;
                self.read(slot, now, sink);
            }
        }
    }

    /// Whether [`Peers::read_on`] has something to do at once.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Sends what was queued: one system call a connection where the socket takes it.
    pub fn flush(&mut self, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            connection.is_dirty = false;
            if let Err(why) = connection.write() {
                self.close(slot, &why, now, sink);
            }
        }
        // Closing may have marked others; the reused memory is the larger one.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    /// When [`Peers::tick`] has something to do.
    pub fn deadline(&self) -> Time {
        self.door.as_ref().map_or(self.tick_at, |door| door.deadline().min(self.tick_at))
    }

    /// Calls who is not connected, pings the silent, closes the dead.
    pub fn tick(&mut self, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        if self.door.as_ref().is_some_and(|door| door.deadline() <= now) {
            self.accept(now, sink);
        }
        if now < self.tick_at {
            return;
        }
        self.ticks += 1;
        for slot in self.room.late(now) {
            self.close(slot, &Broken::Late, now, sink);
        }
        for slot in self.connections.range() {
            if let Err(why) = self.examine(slot, now) {
                self.close(slot, &why, now, sink);
            }
        }
        let missing = |contact: &Contact| contact.slot.is_none() && contact.is_wanted();
        let due = |contact: &Contact| missing(contact) && contact.call_at <= now;
        let nodes: Vec<NodeId> =
            self.contacts.iter().filter(|(_, c)| due(c)).map(|(&node, _)| node).collect();
        nodes.into_iter().for_each(|node| self.call(node, now));
        let calls = self.contacts.values().filter(|contact| missing(contact)).map(|contact| contact.call_at);
        self.tick_at = calls.fold(now + TICK, Time::min);
    }

    fn examine(&mut self, slot: usize, now: Time) -> Result<(), Broken> {
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(()) };
        let silent = now.since(connection.heard);
        if connection.peer.is_none() {
            // Those who called have the room's time.
            let late = connection.called.is_some() && now.since(connection.opened) > HELLO_MAX;
            return if late { Err(Broken::Late) } else { Ok(()) };
        }
        if silent >= DOWN_AFTER {
            return Err(Broken::Silent);
        }
        if std::mem::take(&mut connection.is_used) {
            connection.used = now;
            self.room.is_used(slot, now);
        }
        let on_demand = |node| self.contacts.get(&node).is_some_and(|contact| contact.keep == Keep::OnDemand);
        if now.since(connection.used) >= IDLE_MAX && connection.called.is_some_and(on_demand) {
            return Err(Broken::Idle);
        }
        if silent >= PING_AFTER {
            connection.ping();
            mark(&mut connection.is_dirty, &mut self.dirty, slot);
        }
        if self.ticks.is_multiple_of(TICKS_TO_SHRINK) && silent >= TICK {
            connection.shrink();
        }
        Ok(())
    }

    fn accept(&mut self, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        let Some(mut door) = self.door.take() else { return };
        for number in door.turn() {
            match door.next(number, now) {
                Knock::Caller(socket, origin) => self.welcome(socket, origin, now, sink),
                Knock::LastCaller(socket, origin) => match self.room.give_way() {
                    Some(slot) => {
                        self.close(slot, &Broken::GaveWay, now, sink);
                        self.welcome(socket, origin, now, sink);
                    }
                    None => turned_away(),
                },
                Knock::Nobody => break,
            }
        }
        self.door = Some(door);
    }

    fn welcome(&mut self, socket: Socket, origin: Origin, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        match self.room.knock(origin) {
            Entry::Free => {}
            Entry::Instead(slot) => self.close(slot, &Broken::GaveWay, now, sink),
            Entry::Refused => {
                self.counters.broken += 1;
                return refused(|| tracing::warn!("too many callers; a new one is closed"));
            }
        }
        let channel = match &self.tls {
            // Unix sockets are guarded by the file system.
            Some(tls) if socket.is_tcp() => tls.accept().map(|connection| (socket, Some(connection))),
            _ => Ok((socket, None)),
        };
        match channel {
            Ok((socket, connection)) => match self.open(socket, connection, None, now) {
                Ok(slot) => self.room.enter(slot, origin, now),
                Err(error) => refused(|| tracing::warn!(%error, "cannot watch a peer's connection")),
            },
            Err(error) => refused(|| tracing::warn!(%error, "cannot begin TLS")),
        }
    }

    fn call(&mut self, node: NodeId, now: Time) {
        let contact = self.contacts.get_mut(&node).expect("only contacts are called");
        let Some(target) = contact.target(now) else { return };
        match target.and_then(|target| self.dial(node, &target, now)) {
            Ok(slot) => self.contacts.get_mut(&node).expect("still there").slot = Some(slot),
            Err(error) => self.call_failed(node, error.to_string(), now),
        }
    }

    fn dial(&mut self, node: NodeId, target: &Target, now: Time) -> io::Result<usize> {
        let tls = match &self.tls {
            Some(tls) if matches!(target, Target::Tcp(_)) => {
                Some(tls.connect(node).map_err(io::Error::other)?)
            }
            None if !target.is_local() => {
                return Err(io::Error::other("not a loopback address: plain text is refused, configure TLS"));
            }
            _ => None,
        };
        self.open(Socket::connect(target)?, tls, Some(node), now)
    }

    fn open(
        &mut self,
        mut socket: Socket,
        tls: Option<rustls::Connection>,
        called: Option<NodeId>,
        now: Time,
    ) -> io::Result<usize> {
        let slot = self.connections.vacant();
        socket.register(&self.registry, Token(TOKENS + slot))?;
        let channel = match tls {
            Some(connection) => Channel::over_tls(socket, connection),
            None => Channel::plain(socket),
        };
        self.connections.insert(Box::new(Connection::new(channel, called, self.identity, now)));
        Ok(slot)
    }

    fn call_failed(&mut self, node: NodeId, why: String, now: Time) {
        let Some(contact) = self.contacts.get_mut(&node) else { return };
        if contact.is_news(now) {
            tracing::info!(%node, address = %contact.address, why, "no connection; trying again");
        }
        contact.failed(why, now, &mut self.rng);
        self.tick_at = self.tick_at.min(contact.call_at);
    }

    fn read(&mut self, slot: usize, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let mut from = connection.peer;
        let mut opened = None;
        let mut early = Vec::new();
        let received = &mut self.counters.received;
        let result = connection.read(self.identity, now, |incoming| match incoming {
            Incoming::Opened(peer) => opened = Some(peer),
            Incoming::Packet(packet) => {
                *received += 1;
                match from {
                    Some(from) => sink(PeerEvent::Packet { from, packet }),
                    // Behind the hello in the same read: `Up` comes first.
                    None => early.push(packet),
                }
            }
        });
        let arrived_bytes = core::mem::take(&mut connection.arrived_bytes);
        self.counters.received_bytes += arrived_bytes;
        if arrived_bytes > 0 && connection.peer.is_none() {
            self.room.has_spoken(slot);
        }
        if connection.has_output() {
            mark(&mut connection.is_dirty, &mut self.dirty, slot);
        }
        if let Some(peer) = opened {
            if self.is_taken(slot, peer) {
                return self.close(slot, &Broken::Refused(Refusal::Taken(peer)), now, sink);
            }
            if !self.makes_room(slot, peer, now, sink) {
                return self.close(slot, &Broken::Full, now, sink);
            }
            from = Some(peer);
            self.opened(slot, peer, now, sink);
        }
        if let Some(from) = from {
            early.into_iter().for_each(|packet| sink(PeerEvent::Packet { from, packet }));
        }
        match result {
            Ok(Progress::Drained) => {}
            Ok(Progress::More) => {
                if let Some(connection) = self.connections.get_mut(slot) {
                    mark(&mut connection.is_unread, &mut self.unread, slot);
                }
            }
            Err(why) => self.close(slot, &why, now, sink),
        }
    }

    /// Gives a caller the place of one that is known.
    fn makes_room(&mut self, slot: usize, peer: NodeId, now: Time, sink: &mut dyn FnMut(PeerEvent)) -> bool {
        if self.connections.get_mut(slot).is_none_or(|connection| connection.called.is_some()) {
            return true;
        }
        let standing = match peer {
            // Clients that fill their places keep no operator out.
            NodeId::Client(client) if client.is_operator() => Standing::Member,
            NodeId::Client(_) => Standing::Client,
            NodeId::Directory | NodeId::Brick(_) | NodeId::Gateway(_) => Standing::Member,
        };
        match self.room.rise(slot, standing, now) {
            Entry::Free => true,
            Entry::Instead(other) => {
                self.close(other, &Broken::GaveWay, now, sink);
                true
            }
            Entry::Refused => false,
        }
    }

    fn opened(&mut self, slot: usize, peer: NodeId, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (called, certified) = (connection.called.is_some(), connection.certified);
        self.counters.connections += 1;
        if called && let Some(contact) = self.contacts.get_mut(&peer) {
            (contact.failures, contact.why) = (0, String::new());
        }
        // Who calls here can be answered on that connection, so that what waits goes out either way.
        let waiting = self.contacts.get_mut(&peer).map(Contact::take_waiting).unwrap_or_default();
        let old = self.routes.get(&peer).and_then(|route| if called { route.called } else { route.accepted });
        if let Some(old) = old {
            // The newer connection is the living one: the other end opened it because the older broke there.
            self.close(old, &Broken::Replaced, now, sink);
        }
        let route = self.routes.entry(peer).or_default();
        let is_new = route.best().is_none();
        *(if called { &mut route.called } else { &mut route.accepted }) = Some(slot);
        if is_new {
            tracing::debug!(%peer, "connected");
            sink(PeerEvent::Up(peer));
        }
        if let Some((client, stream)) = certified {
            sink(PeerEvent::Certified { client, stream });
        }
        waiting.iter().for_each(|packet| self.send(peer, packet));
    }

    /// Whether an id is that of somebody else who is connected, as far as this can be known of a release that cannot show whose it is.
    fn is_taken(&self, slot: usize, peer: NodeId) -> bool {
        let Some(connection) = self.connections.get(slot).filter(|of| !of.is_proven()) else { return false };
        let Some(route) = self.routes.get(&peer) else { return false };
        let there = [route.called, route.accepted].into_iter().flatten();
        there
            .filter_map(|slot| self.connections.get(slot))
            .any(|other| !connection.is_of_the_same_owner(other))
    }

    fn close(&mut self, slot: usize, why: &Broken, now: Time, sink: &mut dyn FnMut(PeerEvent)) {
        let Some(connection) = self.connections.remove(slot) else { return };
        self.counters.broken += 1;
        self.room.leave(slot);
        match connection.called {
            Some(node @ NodeId::Gateway(_)) if matches!(why, Broken::Refused(Refusal::Node { .. })) => {
                self.contacts.remove(&node);
                tracing::info!(%node, %why, "no longer called");
                sink(PeerEvent::Gone(node));
            }
            Some(node) if matches!(why, Broken::Idle) => {
                self.contacts.entry(node).and_modify(|contact| contact.slot = None);
            }
            Some(node) if self.contacts.get(&node).is_some_and(|contact| contact.slot == Some(slot)) => {
                self.call_failed(node, why.to_string(), now);
            }
            None if connection.peer.is_none() => refused(|| tracing::info!(%why, "a caller was not let in")),
            _ => {}
        }
        if let Some(peer) = connection.peer {
            self.unroute(peer, slot, why, sink);
        }
    }

    fn unroute(&mut self, peer: NodeId, slot: usize, why: &Broken, sink: &mut dyn FnMut(PeerEvent)) {
        let Some(route) = self.routes.get_mut(&peer) else { return };
        route.called.take_if(|called| *called == slot);
        route.accepted.take_if(|accepted| *accepted == slot);
        if route.best().is_none() {
            self.routes.remove(&peer);
            tracing::debug!(%peer, %why, "disconnected");
            sink(PeerEvent::Down(peer));
        }
    }
}

fn mark(flag: &mut bool, list: &mut Vec<usize>, slot: usize) {
    if !*flag {
        *flag = true;
        list.push(slot);
    }
}
