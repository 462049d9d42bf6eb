//! A client: keeps one volume's I/O going through any gateway (`brickwork attach`). A request that was not answered
//! is asked again, under its own id, through the next gateway. Which gateways there are is known in [`gateways`].
//!
//! Where the volume's data path says which brick coordinates ([`route`]), a request goes to the gateway beside that brick, if that one is
//! reached and has the volume open. All others, and all that are asked again, go through the client's own gateway.

mod gateways;
mod route;
#[cfg(test)]
mod tests;

use crate::admission::{Role, admit};
use crate::gateway::GIVEN_UP_KEPT;
use base::{ClientId, Depth, GatewayId, Machine, NodeId, Payload, RequestId, Time};
use core::time::Duration;
use gateways::{Gateways, Nearer, News};
use route::Routes;
use rules::counters::{Counter, Counters};
use std::collections::BTreeMap;
use wire::{
    AdminError, AdminReply, AdminRequest, ClusterStatus, Io, IoError, IoReply, Message, Packet, Service,
    StatusPart, VolumeInfo,
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
    /// Somebody else answers where a peer was: it is not called any more.
    Gone(NodeId),
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
    /// A peer is gone: call it no more.
    Forget(NodeId),
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
/// How long a gateway beside a brick that did not serve a request is asked nothing.
const LEFT: Duration = Duration::from_secs(10);

struct Outstanding {
    tag: u64,
    io: Io,
    payload: Payload,
    sent: Time,
    /// Whom it was asked of last.
    asked: Option<GatewayId>,
}

pub struct Client {
    config: ClientConfig,
    gateways: Gateways,
    gateway: Option<GatewayId>,
    /// The question of the attachment under way; `None` when attached.
    attaching: Option<u64>,
    volume: Option<VolumeInfo>,
    routes: Option<Routes>,
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
            gateways: Gateways::default(),
            gateway: None,
            attaching: None,
            volume: None,
            routes: None,
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

    /// The gateways that it calls.
    pub fn gateways(&self) -> impl Iterator<Item = GatewayId> + '_ {
        self.gateways.ids()
    }

    /// A request that is not answered yet: under which id it is asked, of whom it was asked last, and when. For people who look
    /// for what holds it up.
    pub fn outstanding(&self, tag: u64) -> Option<(RequestId, Option<GatewayId>, Time)> {
        let (&sequence, request) = self.outstanding.iter().find(|(_, request)| request.tag == tag)?;
        Some((RequestId { client: self.config.id, sequence }, request.asked, request.sent))
    }

    fn on_packet(&mut self, now: Time, from: NodeId, packet: Packet, fx: &mut Vec<ClientEffect>) {
        if admit(Role::Client, from, &packet.message).is_err() {
            return self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored);
        }
        match (from, packet.message) {
            (NodeId::Directory, Message::AdminDone { result: Ok(AdminReply::Status(status)), .. }) => {
                self.on_status(now, *status, fx);
            }
            (NodeId::Gateway(gateway), message) if self.gateway == Some(gateway) => {
                self.heard = now;
                self.on_gateway(now, message, packet.payload, fx);
            }
            (NodeId::Directory, Message::VolumeOpened { map, .. }) => {
                self.routes = map.ok().and_then(|map| Routes::of(*map));
            }
            // A late answer through the gateway used before is as good.
            (NodeId::Gateway(_), Message::Reply { sequence, result: Ok(result) }) => {
                self.reply(sequence, Ok(result), packet.payload, fx);
            }
            (NodeId::Gateway(gateway), message) => self.on_nearer(now, gateway, message, packet.payload, fx),
            _ => {}
        }
    }

    fn on_status(&mut self, now: Time, status: ClusterStatus, fx: &mut Vec<ClientEffect>) {
        fx.extend(self.gateways.on_listed(status.gateways).into_iter().map(|news| match news {
            News::Moved(id, address) => ClientEffect::Address { node: NodeId::Gateway(id), address },
            News::Gone(id) => ClientEffect::Forget(NodeId::Gateway(id)),
        }));
        let is_own = |volume: &VolumeInfo| {
            self.volume.as_ref().is_some_and(|own| own.id == volume.id && own != volume)
        };
        if self.gateway.is_none() {
            self.choose(now, fx);
        } else if status.volumes.iter().any(|of| is_own(&of.volume)) {
            // It was resized, say: the gateway that serves it tells from when on.
            self.attach(now, fx);
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

    /// What another gateway says to which requests go.
    fn on_nearer(
        &mut self,
        now: Time,
        gateway: GatewayId,
        message: Message,
        payload: Payload,
        fx: &mut Vec<ClientEffect>,
    ) {
        match message {
            Message::Attached { operation, volume: Ok(volume) } => {
                let is_asked = matches!(self.gateways.nearer(gateway), Some(Nearer::Asked(asked, _)) if asked == operation);
                if is_asked && self.volume.as_ref().is_some_and(|own| own.id == volume.id) {
                    self.gateways.set_nearer(gateway, Nearer::Open);
                }
            }
            Message::Reply { sequence, result } if self.is_asked_of(sequence, gateway) => match result {
                // It may know less of the volume than the client's own gateway: that one's errors count.
                Err(error) if error != IoError::TimedOut => self.leave_nearer(now, gateway, fx),
                result => self.reply(sequence, result, payload, fx),
            },
            _ => {}
        }
    }

    fn is_asked_of(&self, sequence: u64, gateway: GatewayId) -> bool {
        self.outstanding.get(&sequence).is_some_and(|request| request.asked == Some(gateway))
    }

    /// No request goes to `gateway` for now; what it was asked goes through the client's own.
    fn leave_nearer(&mut self, now: Time, gateway: GatewayId, fx: &mut Vec<ClientEffect>) {
        if self.gateways.set_nearer(gateway, Nearer::Left(now + LEFT)) != Some(Nearer::Open) {
            return;
        }
        self.counters.count(Counter::ClientLeftTheGatewayBesideABrick);
        let asked = self.outstanding.iter().filter(|(_, request)| request.asked == Some(gateway));
        for sequence in asked.map(|(sequence, _)| *sequence).collect::<Vec<_>>() {
            self.ask(now, sequence, fx);
        }
    }

    /// The gateway to ask for a request: beside the brick that coordinates it, once that one has opened the volume.
    fn gateway_for(&mut self, now: Time, io: &Io, fx: &mut Vec<ClientEffect>) -> Option<GatewayId> {
        let own = self.gateway()?;
        let brick = self.routes.as_ref().and_then(|routes| routes.coordinator(io));
        let near = brick.and_then(|brick| self.gateways.beside(brick));
        let Some(near) = near.filter(|near| *near != own) else { return Some(own) };
        match self.gateways.nearer(near) {
            Some(Nearer::Open) => return Some(near),
            Some(Nearer::Left(until)) if now < until => {}
            Some(Nearer::Asked(_, since)) if now.since(since) < ASK_AGAIN => {}
            _ => {
                self.serial += 1;
                self.gateways.set_nearer(near, Nearer::Asked(self.serial, now));
                let message = Message::Attach { operation: self.serial, volume: self.config.volume.clone() };
                fx.push(ClientEffect::Send { to: NodeId::Gateway(near), packet: message.into() });
            }
        }
        Some(own)
    }

    /// Asks the directory where the volume lies, where its data path asks for that.
    fn ask_for_routes(&mut self, fx: &mut Vec<ClientEffect>) {
        if !self.volume.as_ref().is_some_and(|volume| volume.protocol.path.is_of_bricks()) {
            return self.routes = None;
        }
        self.serial += 1;
        let message = Message::OpenVolume { operation: self.serial, name: self.config.volume.clone() };
        fx.push(ClientEffect::Send { to: NodeId::Directory, packet: message.into() });
    }

    fn on_attached(&mut self, now: Time, volume: VolumeInfo, fx: &mut Vec<ClientEffect>) {
        self.attaching = None;
        if self.volume.as_ref() != Some(&volume) {
            self.volume = Some(volume.clone());
            self.ask_for_routes(fx);
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

    /// A gateway is not reached any more.
    fn lose(&mut self, now: Time, gateway: GatewayId, fx: &mut Vec<ClientEffect>) {
        self.leave_nearer(now, gateway, fx);
        if self.gateway == Some(gateway) {
            self.next_refresh = now;
            self.choose(now, fx);
        }
    }

    /// Goes to the next gateway that can be reached.
    fn choose(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        let after = self.gateway;
        self.gateway = self.gateways.after(after);
        let Some(gateway) = self.gateway else { return };
        if after.is_some_and(|before| before != gateway) {
            self.counters.count(Counter::ClientWentToAnotherGateway);
        }
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
        let Some(io) = self.outstanding.get(&sequence).map(|request| request.io.clone()) else { return };
        let Some(gateway) = self.gateway_for(now, &io, fx) else { return };
        let Some(volume) = &self.volume else { return };
        self.given_up.retain(|_, since| now < *since + GIVEN_UP_KEPT);
        let unanswered = self.outstanding.keys().next().into_iter().chain(self.given_up.keys().next());
        let floor = unanswered.min().copied().unwrap_or(sequence);
        let Some(request) = self.outstanding.get_mut(&sequence) else { return };
        request.sent = now;
        request.asked = Some(gateway);
        if Some(gateway) != self.gateway {
            self.counters.count(Counter::RequestWentToTheGatewayBesideABrick);
        }
        let id = RequestId { client: self.config.id, sequence };
        let service = Service { stream: volume.stream, delay: 0 };
        let message = Message::Request { id, floor, volume: volume.id, io, service };
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
        let is_late = |request: &Outstanding| now.since(request.sent) > ASK_AGAIN;
        let late = self.outstanding.iter().filter(|(_, request)| is_late(request));
        let late: Vec<(u64, Option<GatewayId>)> =
            late.map(|(sequence, request)| (*sequence, request.asked)).collect();
        for (sequence, asked) in late {
            self.counters.count(Counter::ClientAskedAgain);
            // Whoever did not answer one request is asked no other; all that it was asked goes through the own gateway at once.
            if let Some(other) = asked.filter(|asked| *asked != gateway) {
                self.leave_nearer(now, other, fx);
            }
            if self.outstanding.get(&sequence).is_some_and(is_late) {
                self.ask(now, sequence, fx);
            }
        }
    }

    fn refresh(&mut self, now: Time, fx: &mut Vec<ClientEffect>) {
        self.next_refresh = now + if self.gateway.is_some() { REFRESH } else { TICK * 2 };
        self.serial += 1;
        let request =
            AdminRequest::Status { part: StatusPart::Gateways(self.volume.as_ref().map(|volume| volume.id)) };
        let message = Message::Admin { operation: self.serial, request };
        fx.push(ClientEffect::Send { to: NodeId::Directory, packet: message.into() });
        self.ask_for_routes(fx);
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
                self.gateways.on_up(gateway);
                if self.gateway.is_none() {
                    self.choose(now, fx);
                }
            }
            ClientEvent::Down(NodeId::Gateway(gateway)) => {
                self.gateways.on_down(gateway);
                self.lose(now, gateway, fx);
            }
            ClientEvent::Gone(NodeId::Gateway(gateway)) => {
                self.lose(now, gateway, fx);
                self.gateways.forget(gateway);
                // Who is there now is known to the directory.
                self.next_refresh = now;
            }
            ClientEvent::Up(_) | ClientEvent::Down(_) | ClientEvent::Gone(_) => {}
            ClientEvent::Io { tag, io, payload } => {
                self.sequence += 1;
                self.outstanding
                    .insert(self.sequence, Outstanding { tag, io, payload, sent: now, asked: None });
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
        self.gateways.check();
    }
}
