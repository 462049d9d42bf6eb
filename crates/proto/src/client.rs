//! A client: keeps one volume's I/O going through any gateway (`brickwork attach`). A request that was not answered
//! is asked again, under its own id, through the next gateway.

use crate::counters::{Counter, Counters};
use crate::gateway::GIVEN_UP_KEPT;
use base::{ClientId, Depth, GatewayId, Machine, NodeId, Payload, RequestId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{
    AdminError, AdminReply, AdminRequest, GatewayStatus, Io, IoError, IoReply, Message, Packet, Service,
    VolumeInfo,
};

/// What happens to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// A packet came. `from` is what the transport has authenticated.
    Packet { from: NodeId, packet: Packet },
    /// A peer can be reached (again).
    Up(NodeId),
    /// The connection to a peer is gone.
    Down(NodeId),
    /// I/O. Answered by [`ClientEffect::Reply`]. The caller keeps at most [`ClientConfig::window`] unanswered.
    Io {
        tag: u64,
        io: Io,
        /// The content of a write.
        payload: Payload,
    },
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEffect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// This is where a peer is reached; keep a connection to it from now on.
    Address {
        node: NodeId,
        /// Where.
        address: String,
    },
    /// The volume was found, or changed; `Err` when there is none.
    Opened { volume: Result<VolumeInfo, AdminError> },
    /// Answers [`ClientEvent::Io`].
    Reply {
        tag: u64,
        /// What became of it.
        result: Result<IoReply, IoError>,
        /// The content of a read.
        payload: Payload,
    },
}

/// What a client is told when it starts.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Its id: drawn by the driver, new for each run.
    pub id: ClientId,
    pub volume: String,
    /// The most requests unanswered at a time.
    pub window: usize,
}

const TICK: Duration = Duration::from_millis(250);
/// A gateway that says nothing for this long is left for another one.
const SILENCE: Duration = Duration::from_millis(1500);
/// A request unanswered for this long is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);
const REFRESH: Duration = Duration::from_secs(5);

struct Outstanding {
    tag: u64,
    io: Io,
    payload: Payload,
    sent: Time,
}

pub struct Client {
    config: ClientConfig,
    gateways: BTreeMap<GatewayId, String>,
    up: BTreeSet<GatewayId>,
    gateway: Option<GatewayId>,
    /// The question of the attachment under way; `None` when attached.
    attaching: Option<u64>,
    volume: Option<VolumeInfo>,
    outstanding: BTreeMap<u64, Outstanding>,
    sequence: u64,
    serial: u64,
    /// Requests that a gateway gave up, and when: they count as unanswered for a while.
    given_up: BTreeMap<u64, Time>,
    heard: Time,
    next_tick: Time,
    next_refresh: Time,
    counters: Counters,
}

impl Client {
    /// A client that knows nobody but the directory.
    pub fn new(config: ClientConfig, now: Time) -> Client {
        Client {
            config,
            gateways: BTreeMap::new(),
            up: BTreeSet::new(),
            gateway: None,
            attaching: None,
            volume: None,
            outstanding: BTreeMap::new(),
            sequence: 0,
            serial: 0,
            given_up: BTreeMap::new(),
            heard: now,
            next_tick: now,
            next_refresh: now,
            counters: Counters::default(),
        }
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The gateway that serves it now.
    pub fn gateway(&self) -> Option<GatewayId> {
        self.gateway.filter(|_| self.attaching.is_none())
    }

    fn on_packet(&mut self, now: Time, from: NodeId, packet: Packet, fx: &mut Vec<ClientEffect>) {
        match (from, packet.message) {
            (NodeId::Directory, Message::AdminDone { result: Ok(AdminReply::Status(status)), .. }) => {
                self.on_gateways(now, status.gateways, fx);
            }
            (NodeId::Gateway(gateway), message) if self.gateway == Some(gateway) => {
                self.heard = now;
                self.on_gateway(now, message, packet.payload, fx);
            }
            // A late answer through the gateway used before is as good.
            (NodeId::Gateway(_), Message::Reply { sequence, result: Ok(result) }) => {
                self.reply(sequence, Ok(result), packet.payload, fx);
            }
            _ => {}
        }
    }

    fn on_gateways(&mut self, now: Time, gateways: Vec<GatewayStatus>, fx: &mut Vec<ClientEffect>) {
        // Those without an address serve the client in their own process only.
        for GatewayStatus { id, address, .. } in gateways.into_iter().filter(|of| !of.address.is_empty()) {
            if self.gateways.insert(id, address.clone()).as_ref() != Some(&address) {
                fx.push(ClientEffect::Address { node: NodeId::Gateway(id), address });
            }
        }
        if self.gateway.is_none() {
            self.choose(now, fx);
        }
    }

    fn on_gateway(&mut self, now: Time, message: Message, payload: Payload, fx: &mut Vec<ClientEffect>) {
        match message {
            Message::Attached { operation, volume } if self.attaching == Some(operation) => match volume {
                Ok(volume) => self.on_attached(now, volume, fx),
                Err(error) => self.on_refused(error, fx),
            },
            Message::Reply { result: Err(IoError::NoVolume), .. } => self.attach(now, fx),
            Message::Reply { sequence, result } => self.reply(sequence, result, payload, fx),
            _ => {}
        }
    }

    fn on_attached(&mut self, now: Time, volume: VolumeInfo, fx: &mut Vec<ClientEffect>) {
        self.attaching = None;
        if self.volume.as_ref() != Some(&volume) {
            self.volume = Some(volume.clone());
            fx.push(ClientEffect::Opened { volume: Ok(volume) });
        }
        for sequence in self.outstanding.keys().copied().collect::<Vec<_>>() {
            self.ask(now, sequence, fx);
        }
    }

    fn on_refused(&mut self, error: AdminError, fx: &mut Vec<ClientEffect>) {
        for sequence in self.outstanding.keys().copied().collect::<Vec<_>>() {
            self.reply(sequence, Err(IoError::NoVolume), Payload::new(), fx);
        }
        self.attaching = None;
        self.gateway = None;
        self.volume = None;
        fx.push(ClientEffect::Opened { volume: Err(error) });
    }

    fn reply(
        &mut self,
        sequence: u64,
        result: Result<IoReply, IoError>,
        payload: Payload,
        fx: &mut Vec<ClientEffect>,
    ) {
        let Some(request) = self.outstanding.remove(&sequence) else { return };
        if result == Err(IoError::TimedOut) {
            self.given_up.insert(sequence, self.heard);
        }
        fx.push(ClientEffect::Reply { tag: request.tag, result, payload });
    }

    /// Goes to the next gateway that can be reached.
    fn choose(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        let after = self.gateway;
        let candidates: Vec<GatewayId> =
            self.gateways.keys().copied().filter(|gateway| self.up.contains(gateway)).collect();
        let next = candidates.iter().copied().find(|gateway| Some(*gateway) > after);
        let Some(gateway) = next.or_else(|| candidates.first().copied()) else {
            self.gateway = None;
            return;
        };
        if after.is_some_and(|before| before != gateway) {
            self.counters.count(Counter::ClientWentToAnotherGateway);
        }
        self.gateway = Some(gateway);
        self.heard = now;
        self.attach(now, fx);
    }

    fn attach(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        let Some(gateway) = self.gateway else { return };
        self.serial += 1;
        self.attaching = Some(self.serial);
        self.next_tick = self.next_tick.min(now + TICK);
        let message = Message::Attach { operation: self.serial, volume: self.config.volume.clone() };
        fx.push(ClientEffect::Send { to: NodeId::Gateway(gateway), packet: message.into() });
    }

    fn ask(&mut self, now: Time, sequence: u64, fx: &mut Vec<ClientEffect>) {
        let (Some(gateway), Some(volume)) = (self.gateway(), &self.volume) else { return };
        self.given_up.retain(|_, since| now < *since + GIVEN_UP_KEPT);
        let unanswered = self.outstanding.keys().next().into_iter().chain(self.given_up.keys().next());
        let floor = unanswered.min().copied().unwrap_or(sequence);
        let Some(request) = self.outstanding.get_mut(&sequence) else { return };
        request.sent = now;
        let id = RequestId { client: self.config.id, sequence };
        let service = Service { stream: volume.stream, delay: 0 };
        let message = Message::Request { id, floor, volume: volume.id, io: request.io.clone(), service };
        let packet = Packet { message, payload: request.payload.clone() };
        fx.push(ClientEffect::Send { to: NodeId::Gateway(gateway), packet });
    }

    fn tick(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        self.next_tick = now + TICK;
        let Some(gateway) = self.gateway else { return self.choose(now, fx) };
        if now.since(self.heard) > SILENCE {
            self.next_refresh = now;
            return self.choose(now, fx);
        }
        self.serial += 1;
        let ping = Message::Ping { nonce: self.serial };
        fx.push(ClientEffect::Send { to: NodeId::Gateway(gateway), packet: ping.into() });
        if self.attaching.is_some() {
            return self.attach(now, fx);
        }
        let late: Vec<u64> = self
            .outstanding
            .iter()
            .filter(|(_, request)| now.since(request.sent) > ASK_AGAIN)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in late {
            self.counters.count(Counter::ClientAskedAgain);
            self.ask(now, sequence, fx);
        }
    }

    fn refresh(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        self.next_refresh = now + if self.gateway.is_some() { REFRESH } else { TICK * 2 };
        self.serial += 1;
        let message = Message::Admin { operation: self.serial, request: AdminRequest::Status };
        fx.push(ClientEffect::Send { to: NodeId::Directory, packet: message.into() });
    }
}

impl Machine for Client {
    type Event = ClientEvent;
    type Effect = ClientEffect;

    fn step(&mut self, now: Time, event: ClientEvent, fx: &mut Vec<ClientEffect>) {
        match event {
            ClientEvent::Packet { from, packet } => self.on_packet(now, from, packet, fx),
            ClientEvent::Up(NodeId::Directory) => self.next_refresh = now,
            ClientEvent::Up(NodeId::Gateway(gateway)) => {
                self.up.insert(gateway);
                if self.gateway.is_none() {
                    self.choose(now, fx);
                }
            }
            ClientEvent::Down(NodeId::Gateway(gateway)) => {
                self.up.remove(&gateway);
                if self.gateway == Some(gateway) {
                    self.next_refresh = now;
                    self.choose(now, fx);
                }
            }
            ClientEvent::Up(_) | ClientEvent::Down(_) => {}
            ClientEvent::Io { tag, io, payload } => {
                self.sequence += 1;
                self.outstanding.insert(self.sequence, Outstanding { tag, io, payload, sent: now });
                self.ask(now, self.sequence, fx);
            }
        }
    }

    fn settle(&mut self, _now: Time, _fx: &mut Vec<ClientEffect>) {}

    fn wake(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        if now >= self.next_tick {
            self.tick(now, fx);
        }
        if now >= self.next_refresh {
            self.refresh(now, fx);
        }
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        Some((self.next_tick, "sign of life").min((self.next_refresh, "gateways are asked for")))
    }

    fn check(&self, _depth: Depth) {
        assert!(self.outstanding.len() <= self.config.window, "the caller keeps to the window");
    }
}
