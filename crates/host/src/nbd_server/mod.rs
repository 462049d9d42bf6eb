//! The NBD front: listeners and connections around the pure sessions of crate `nbd`.
//!
//! A client that does not read its replies, or sends half a request, holds what its session's limits allow and costs
//! nobody else anything: its socket is left alone until it moves. No length that a client announces makes the server
//! allocate: a session keeps to its share, requests beyond it wait for a loan ([`lender`]), and what is refused is dropped
//! as it arrives.
//!
//! `client` is one connection, `commands` how each NBD command is carried out.

mod client;
mod commands;
mod feed;
mod lender;
#[cfg(test)]
mod tests;

use crate::address::Address;
use crate::admission::{Bound, Bounds, Entry, Origin, Room, Standing};
use crate::channel::Channel;
use crate::door::{Door, Knock, turned_away};
use crate::metrics::{Latency, Meter};
use crate::refusals::refused;
use crate::slots::Slots;
use crate::socket::{Socket, group_id};
use crate::tls::TlsConfigs;
use crate::{HostError, NbdOptions, descriptors};
use base::{Payload, StreamId, Time, VolumeId};
use client::{Client, Served};
use commands::Kind;
use lender::Lender;
use mio::{Registry, Token};
use nbd::{Limits, TlsPolicy};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use wire::{AdminError, Io, IoError, IoReply, VolumeInfo};

/// Tokens from here on belong to NBD: clients, then listeners.
const CLIENTS: usize = 2 << 32;
const LISTENERS: usize = 3 << 32;
/// Callers. A machine of many disks opens them all at once, and an NBD client that is sent away does not call again: so there are as
/// many places for strangers as for attached clients. These are never sent away, since their users would see errors: so one address has
/// at most half the places. There are no members of the cluster here.
const BOUNDS: Bounds = Bounds {
    strangers: Bound { in_all: 1024, per_origin: 256, gives_way: true },
    clients: Bound { in_all: 1024, per_origin: 512, gives_way: false },
    members: Bound { in_all: 0, per_origin: 0, gives_way: false },
};
/// Data that all clients together may have in flight, roughly; each gets a share, within bounds.
const IN_FLIGHT_BYTES: usize = 32 << 20;
const IN_FLIGHT_BYTES_MIN: usize = 256 << 10;
const IN_FLIGHT_BYTES_MAX: usize = 8 << 20;
/// Bytes taken from all clients in one turn of the loop; the others have theirs in the next.
const TURN_BYTES_MAX: usize = 16 << 20;
const TICK: Duration = Duration::from_secs(2);
/// Low bits of a session's id: its slot. Above them a serial number, so that no id comes twice.
const SLOT_BITS: u32 = 20;

/// What clients want of the machine.
#[derive(Debug)]
pub(crate) enum FrontEvent {
    Open {
        session: u64,
        name: String,
    },
    List {
        session: u64,
    },
    Io {
        session: u64,
        tag: u64,
        volume: VolumeId,
        /// The stream that the client's certificate names.
        stream: Option<StreamId>,
        io: Io,
        payload: Payload,
    },
    Close {
        session: u64,
    },
}

pub(crate) struct NbdServer {
    registry: Registry,
    tls: Option<TlsConfigs>,
    doors: Vec<Door>,
    room: Room<usize>,
    clients: Slots<Box<Client>>,
    serial: u64,
    dirty: Vec<usize>,
    unread: VecDeque<usize>,
    lender: Lender,
    events: Vec<FrontEvent>,
    tick_at: Time,
    is_ending: bool,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    others: u64,
    read_latency: Latency,
    write_latency: Latency,
}

impl NbdServer {
    pub(crate) fn new(options: &NbdOptions, registry: &Registry) -> Result<NbdServer, HostError> {
        let tls = options.tls.as_ref().map(TlsConfigs::load).transpose()?;
        let group = options.group.as_deref().map(group_id).transpose()?;
        let mut doors = Vec::new();
        for text in &options.listen {
            let address: Address = text.parse()?;
            if tls.is_none() {
                address.require_local()?;
            }
            doors.push(Door::open(&address, group, registry, Token(LISTENERS + doors.len()))?);
        }
        Ok(NbdServer {
            registry: registry.try_clone().map_err(crate::error::system("epoll"))?,
            tls,
            doors,
            room: Room::new(BOUNDS.within(descriptors::raise())),
            clients: Slots::default(),
            serial: 0,
            dirty: Vec::new(),
            unread: VecDeque::new(),
            lender: Lender::default(),
            events: Vec::new(),
            tick_at: Time::ZERO,
            is_ending: false,
            figures: Figures::default(),
        })
    }

    /// Where it listens, with the ports that were drawn.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let name = |address: Address| match address {
            Address::Tcp(place) => format!("nbd:tcp:{place}"),
            unix => format!("nbd:{unix}"),
        };
        self.doors.iter().filter_map(|door| door.address().ok()).map(name).collect()
    }

    /// Takes a readiness event.
    pub(crate) fn ready(&mut self, event: &mio::event::Event, now: Time) {
        if event.token().0 >= LISTENERS {
            return self.accept(event.token().0 - LISTENERS, now);
        }
        let slot = event.token().0 - CLIENTS;
        let Some(client) = self.clients.get_mut(slot) else { return };
        if event.is_writable() && client.has_output() {
            client.mark_dirty(&mut self.dirty, slot);
        }
        client.is_ended |= event.is_read_closed();
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            client.mark_unread(&mut self.unread, slot);
        }
    }

    /// Reads from the clients that have something, and gives out what they want.
    pub(crate) fn gather(&mut self, now: Time) -> std::vec::Drain<'_, FrontEvent> {
        for door in 0..self.doors.len() {
            if self.doors[door].deadline() <= now {
                self.accept(door, now);
            }
        }
        self.read_all(now);
        if now >= self.tick_at {
            self.tick_at = now + TICK;
            self.tick(now);
        }
        self.events.drain(..)
    }

    /// Whether [`NbdServer::gather`] has something at once.
    pub(crate) fn has_more(&self) -> bool {
        !self.unread.is_empty() || !self.events.is_empty()
    }

    pub(crate) fn deadline(&self) -> Time {
        self.doors.iter().map(Door::deadline).fold(self.tick_at, Time::min)
    }

    /// Sends the replies of this turn: one system call a client where its socket takes it.
    pub(crate) fn flush(&mut self, now: Time) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(client) = self.clients.get_mut(slot) else { continue };
            client.is_dirty = false;
            match client.write(now, self.tls.as_ref(), &mut self.events) {
                Ok(()) => self.follow_up(slot),
                Err(error) => self.drop_client(slot, &error),
            }
        }
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
        self.lend(now);
    }

    pub(crate) fn opened(&mut self, session: u64, volume: Result<VolumeInfo, AdminError>, now: Time) {
        self.with(session, |client, events| client.opened(volume, now, events));
        let slot = slot_of(session);
        let client = self.clients.get_mut(slot).filter(|client| client.id == session);
        if client.is_some_and(|client| client.is_attached()) {
            self.settle(slot, now);
        }
    }

    /// A client has attached: it takes a place for good, or goes.
    fn settle(&mut self, slot: usize, now: Time) {
        if self.room.rise(slot, Standing::Client, now) == Entry::Refused {
            refused(|| tracing::warn!("all places for attached NBD clients are taken; a new one is closed"));
            self.drop_client(slot, &io::ErrorKind::ConnectionAborted.into());
        }
    }

    pub(crate) fn listed(&mut self, session: u64, volumes: Result<Vec<VolumeInfo>, AdminError>, now: Time) {
        self.with(session, |client, events| client.listed(volumes, now, events));
    }

    pub(crate) fn reply(
        &mut self,
        session: u64,
        tag: u64,
        result: Result<IoReply, IoError>,
        payload: Payload,
        now: Time,
    ) {
        let served = self.with(session, |client, events| client.reply(tag, result, payload, now, events));
        if let Some(served) = served.flatten() {
            self.figures.count(&served);
        }
    }

    /// Refuses new requests; `true` when all that were taken are answered and sent.
    pub(crate) fn end(&mut self) -> bool {
        if !self.is_ending {
            self.is_ending = true;
            self.doors.clear();
            self.clients.iter_mut().for_each(|(_, client)| client.shut_down());
        }
        self.clients.iter_mut().all(|(_, client)| client.is_idle())
    }

    pub(crate) fn measure(&mut self, meter: &mut Meter) {
        let attached = self.clients.iter_mut().filter(|(_, client)| client.is_attached()).count();
        meter.gauge("brickwork_nbd_connections", self.clients.len() as f64);
        meter.gauge("brickwork_nbd_attached", attached as f64);
        meter.gauge("brickwork_nbd_lent_bytes", self.lender.lent_bytes() as f64);
        self.figures.publish(meter);
    }

    fn with<T>(
        &mut self,
        session: u64,
        act: impl FnOnce(&mut Client, &mut Vec<FrontEvent>) -> T,
    ) -> Option<T> {
        let slot = slot_of(session);
        let client = self.clients.get_mut(slot).filter(|client| client.id == session)?;
        let value = act(client, &mut self.events);
        if client.has_output() {
            client.mark_dirty(&mut self.dirty, slot);
        }
        self.follow_up(slot);
        Some(value)
    }

    /// Notes what a client wants after it was served: to be read, a loan, or to give one back.
    fn follow_up(&mut self, slot: usize) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if client.wants_held_back() || client.awaits_handshake() {
            client.mark_unread(&mut self.unread, slot);
        }
        if self.lender.has_lent(client.id) && !client.has_loan() {
            self.lender.end(client.id);
        }
        if let Some(bytes) = client.take_wish() {
            self.lender.ask(client.id, bytes);
        }
    }

    /// Lends to those who wait, as far as there is room.
    fn lend(&mut self, now: Time) {
        while let Some(session) = self.lender.grant(now) {
            self.with(session, |client, events| client.lend(now, events));
        }
    }

    fn accept(&mut self, door: usize, now: Time) {
        let Some(turn) = self.doors.get_mut(door).map(Door::turn) else { return };
        for number in turn {
            match self.doors[door].next(number, now) {
                Knock::Caller(socket, origin) => self.welcome(socket, origin, now),
                Knock::LastCaller(socket, origin) => match self.room.give_way() {
                    Some(slot) => {
                        self.send_away(slot);
                        self.welcome(socket, origin, now);
                    }
                    None => turned_away(),
                },
                Knock::Nobody => break,
            }
        }
    }

    fn send_away(&mut self, slot: usize) {
        refused(|| tracing::warn!("all places for NBD clients that attach are taken; the most silent goes"));
        self.drop_client(slot, &io::ErrorKind::ConnectionAborted.into());
    }

    fn welcome(&mut self, mut socket: Socket, origin: Origin, now: Time) {
        match self.room.knock(origin) {
            Entry::Free => {}
            Entry::Instead(slot) => self.send_away(slot),
            Entry::Refused => return refused(|| tracing::warn!("too many NBD clients; a new one is closed")),
        }
        let policy =
            if self.tls.is_some() && socket.is_tcp() { TlsPolicy::Required } else { TlsPolicy::None };
        let slot = self.clients.vacant();
        if let Err(error) = socket.register(&self.registry, Token(CLIENTS + slot)) {
            return tracing::warn!(%error, "cannot watch an NBD client");
        }
        self.serial += 1;
        let id = self.serial << SLOT_BITS | slot as u64;
        let mut client = Client::new(id, Channel::plain(socket), policy, self.limits(), now);
        client.act(now, &mut self.events);
        client.mark_dirty(&mut self.dirty, slot);
        self.clients.insert(Box::new(client));
        self.room.enter(slot, origin, now);
    }

    fn limits(&self) -> Limits {
        let share = IN_FLIGHT_BYTES / (self.clients.len() + 1);
        let in_flight_bytes_max = share.clamp(IN_FLIGHT_BYTES_MIN, IN_FLIGHT_BYTES_MAX);
        Limits { in_flight_bytes_max, unsent_bytes_max: in_flight_bytes_max, ..Limits::default() }
    }

    /// Reads from those who have something, in turn, until the turn's bytes are used up.
    fn read_all(&mut self, now: Time) {
        let mut bytes = 0;
        // Who is marked meanwhile has had its share of this turn.
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.pop_front() else { break };
            bytes += self.read(slot, now);
            if bytes >= TURN_BYTES_MAX {
                break;
            }
        }
        self.lend(now);
    }

    /// How many bytes it read.
    fn read(&mut self, slot: usize, now: Time) -> usize {
        let Some(client) = self.clients.get_mut(slot) else { return 0 };
        client.is_unread = false;
        match client.read(now, &mut self.events) {
            Ok(taken) => {
                if taken.has_more {
                    client.mark_unread(&mut self.unread, slot);
                }
                if client.has_output() {
                    client.mark_dirty(&mut self.dirty, slot);
                }
                self.follow_up(slot);
                taken.bytes
            }
            Err(error) => {
                self.drop_client(slot, &error);
                0
            }
        }
    }

    fn tick(&mut self, now: Time) {
        for slot in self.clients.range() {
            let Some(client) = self.clients.get_mut(slot) else { continue };
            if client.is_late(now) {
                self.drop_client(slot, &io::ErrorKind::TimedOut.into());
            } else if client.is_idle() {
                client.shrink();
            }
        }
        for session in self.lender.overdue(now) {
            let slot = slot_of(session);
            if self.clients.get_mut(slot).is_some_and(|client| client.id == session && client.is_waited_for())
            {
                refused(|| {
                    tracing::warn!(
                        session,
                        "an NBD client neither ends its large request nor reads its reply while others wait; it is let go"
                    );
                });
                self.drop_client(slot, &io::ErrorKind::TimedOut.into());
            }
        }
        self.lend(now);
    }

    fn drop_client(&mut self, slot: usize, error: &io::Error) {
        let Some(client) = self.clients.remove(slot) else { return };
        self.lender.end(client.id);
        self.room.leave(slot);
        tracing::debug!(session = client.id, %error, "NBD connection ends");
        self.events.push(FrontEvent::Close { session: client.id });
    }
}

impl Figures {
    fn count(&mut self, served: &Served) {
        match served.kind {
            Kind::Read => {
                (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + served.bytes);
                self.read_latency.record(served.latency);
            }
            Kind::Write => {
                (self.writes, self.written_bytes) = (self.writes + 1, self.written_bytes + served.bytes);
                self.write_latency.record(served.latency);
            }
            Kind::Other => self.others += 1,
        }
    }

    fn publish(&self, meter: &mut Meter) {
        meter.counter("brickwork_nbd_reads_total", self.reads);
        meter.counter("brickwork_nbd_read_bytes_total", self.read_bytes);
        meter.counter("brickwork_nbd_writes_total", self.writes);
        meter.counter("brickwork_nbd_written_bytes_total", self.written_bytes);
        meter.counter("brickwork_nbd_other_requests_total", self.others);
        meter.latency("brickwork_nbd_read_seconds", &self.read_latency);
        meter.latency("brickwork_nbd_write_seconds", &self.write_latency);
    }
}

fn slot_of(session: u64) -> usize {
    (session & ((1 << SLOT_BITS) - 1)) as usize
}
