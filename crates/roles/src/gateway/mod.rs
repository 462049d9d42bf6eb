//! A gateway: takes clients' I/O and coordinates it among the bricks of each extent's group.
//!
//! [`requests`] cuts I/O into parts and puts answers together, [`metadata`] speaks with the directory,
//! [`volume::netraid::coordinator`] does the work on groups. This file routes events.

mod allowance;
mod metadata;
mod objects;
mod requests;
#[cfg(test)]
mod tests;
mod users;

use crate::admission::{Role, admit};
use ::objects::object::{Get, ObjectNews, ObjectWish, Put};
use base::{
    BrickId, ClientId, Depth, GatewayId, Machine, NodeId, Payload, RequestId, StreamId, Time, VolumeId,
};
use code::{Computation, Computed};
use core::time::Duration;
use metadata::{Metadata, Waiter};
use objects::OfObjects;
pub use objects::Segment;
use reads::distribute::policy::Policy;
pub(crate) use requests::GIVEN_UP_KEPT;
use requests::{Asked, Origins, Requests};
use rules::counters::{Counter, Counters};
use rules::fair::Cost;
use std::collections::BTreeMap;
use users::User;
use volume::netraid::answer::{Answer, Received};
use volume::netraid::context::computations::ComputationId;
use volume::netraid::coordinator::Coordinator;
use volume::netraid::traffic::Traffic;
use wire::{AdminError, Io, IoError, IoReply, Message, Packet, ReadPolicy, VolumeInfo};

/// What happens to a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// A packet came. `from` is what the transport has authenticated.
    Packet { from: NodeId, packet: Packet },
    /// A peer can be reached (again).
    Up(NodeId),
    /// The connection to a peer is gone.
    Down(NodeId),
    /// The certificate of a client that has just come up names a stream: its requests belong to that stream until it is down.
    Certified { client: ClientId, stream: StreamId },
    /// A plain client of this gateway's own front end wants a volume. Answered by [`GatewayEffect::Opened`].
    Open {
        /// The client's session; chosen by the driver, never used twice.
        session: u64,
        name: String,
    },
    /// A plain client wants to know the volumes. Answered by [`GatewayEffect::Listed`].
    List { session: u64 },
    /// I/O of a plain client. Answered by [`GatewayEffect::Reply`].
    Io {
        session: u64,
        /// Names the answer within the session.
        tag: u64,
        /// The volume, opened before.
        volume: VolumeId,
        /// The stream that the client's certificate names, to which its requests belong; `None` leaves them to that of the volume.
        stream: Option<StreamId>,
        io: Io,
        /// The content of a write.
        payload: Payload,
    },
    /// A segment of an object is to be put. Answered by [`GatewayEffect::Segment`].
    Put { tag: u64, put: Box<Put> },
    /// A segment of an object is to be read. Answered by [`GatewayEffect::Segment`].
    Get { tag: u64, get: Box<Get> },
    /// Somebody wants something of objects. It is told by [`GatewayEffect::Object`] what comes of it.
    Object { tag: u64, wish: Box<ObjectWish> },
    /// Answers [`GatewayEffect::Compute`].
    Computed { number: u64, made: Computed },
    /// A plain client is gone; its requests under way go on, and nobody waits for their answers.
    Close { session: u64 },
}

/// What a gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEffect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// This is where a peer is reached; keep a connection to it from now on.
    Address {
        node: NodeId,
        /// Where.
        address: String,
    },
    /// Answers [`GatewayEvent::Open`].
    Opened { session: u64, volume: Result<VolumeInfo, AdminError> },
    /// Answers [`GatewayEvent::List`].
    Listed { session: u64, volumes: Result<Vec<VolumeInfo>, AdminError> },
    /// Answers [`GatewayEvent::Io`].
    Reply {
        session: u64,
        tag: u64,
        /// What became of it.
        result: Result<IoReply, IoError>,
        /// The content of a read.
        payload: Payload,
    },
    /// Compute this, where there is a processor for it. Answered by [`GatewayEvent::Computed`] under the same number, always.
    Compute { number: u64, computation: Computation },
    /// Answers [`GatewayEvent::Put`] and [`GatewayEvent::Get`].
    Segment { tag: u64, segment: Segment },
    /// What is told of a [`GatewayEvent::Object`].
    Object { tag: u64, news: ObjectNews },
    /// A volume that sessions have open was resized (or made read-only).
    Changed { volume: VolumeInfo },
}

/// What a gateway is told when it starts.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Its id: drawn by the driver, new for each run.
    pub id: GatewayId,
    /// What operators call it; where it is empty the directory gives it a name.
    pub name: String,
    /// Where clients reach it; empty where they do not.
    pub address: String,
    pub serves: Serves,
    /// The brick on its machine.
    pub beside: Option<BrickId>,
}

/// Whose requests a gateway coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Serves {
    /// Those of clients, wherever they are.
    Anyone,
    /// Those of the client in its own process: the data path `direct`.
    OwnClient,
    /// No volume: objects alone. It takes no number for stamps.
    Nobody,
}

/// A request that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// Of a plain client.
    Session { session: u64, tag: u64 },
    /// Of an attached client.
    Client(RequestId),
}

/// A gateway that did not run for so long was paused: its deadlines are never further away than some seconds. Clients leave
/// a silent gateway much sooner.
const PAUSED: Duration = Duration::from_secs(5);

pub struct Gateway {
    /// When it ran last.
    ran: Time,
    coordinator: Coordinator,
    requests: Requests,
    metadata: Metadata,
    objects: OfObjects,
    /// The streams that the certificates of connected clients name.
    certified: BTreeMap<ClientId, StreamId>,
}

impl Gateway {
    /// A gateway that knows nobody but the directory.
    pub fn new(config: GatewayConfig, now: Time) -> Gateway {
        let mut coordinator = Coordinator::new(config.id.0, StreamId::REPAIR);
        coordinator.stand_beside(config.beside);
        Gateway {
            ran: now,
            coordinator,
            requests: Requests::new(config.id),
            metadata: Metadata::new(config, now),
            objects: OfObjects::default(),
            certified: BTreeMap::new(),
        }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.coordinator.set_rules(rules);
        self.objects.set_rules(rules);
    }

    /// Serves volumes of `policy` by this one: for studies, which set policies otherwise than they are shipped.
    pub fn set_policy(&mut self, policy: ReadPolicy, to: Box<dyn Policy>) {
        self.coordinator.set_policy(policy, to);
    }

    /// Counts requests for the delays that they carry at this cost, as bricks do: for studies, which count otherwise than it is shipped.
    pub fn set_cost(&mut self, cost: Cost) {
        self.coordinator.set_cost(cost);
        self.objects.set_cost(cost);
    }

    /// What happened so far, by name.
    pub fn counters(&self) -> &Counters {
        self.coordinator.counters()
    }

    /// What its reads cost it.
    pub fn traffic(&self) -> &Traffic {
        self.coordinator.traffic()
    }

    /// Requests of clients that are not answered yet.
    pub fn requests_under_way(&self) -> usize {
        self.requests.len()
    }

    /// What a request that is not answered yet waits for, a line for each thing: for people who look for what holds it up.
    pub fn describe(&self, awaited: Awaited) -> Vec<String> {
        let Some((serial, mut lines)) = self.requests.describe(awaited, self.coordinator.now()) else {
            return vec!["it has no such request, or has answered it".to_owned()];
        };
        lines.extend(self.coordinator.describe_parts(serial));
        lines
    }

    /// The same of all that is put and read of objects.
    pub fn describe_objects(&self) -> Vec<String> {
        self.objects.describe(self.coordinator.now())
    }

    /// Time goes on. A gateway that was paused lets go of what clients asked of it before: they have gone to another one with
    /// it, or ask again when they are told. So no write of long ago is made anew under a stamp of now; all other ideas of
    /// long ago are found out by the bricks (`docs/protocol`).
    fn on_time(&mut self, now: Time, fx: &mut Vec<GatewayEffect>) {
        self.coordinator.set_now(now);
        let away = now.since(core::mem::replace(&mut self.ran, now));
        if away < PAUSED {
            return;
        }
        self.coordinator.count(Counter::GatewayWasPaused);
        self.requests.forget_waiting(fx);
        // What waited for its turn begins when that before it ends.
        while self.coordinator.abandon_parts(|request| self.requests.is_remote(request)) {
            self.collect(fx);
        }
    }

    /// Answers requests whose volume's time for them is over.
    fn give_up(&mut self, now: Time, fx: &mut Vec<GatewayEffect>) {
        if !self.requests.expire(now) {
            return;
        }
        self.coordinator.count(Counter::RequestsGivenUpAtTheirVolumesTime);
        // What waited for its turn begins when that before it ends.
        while self.coordinator.abandon_parts(|request| self.requests.is_given_up(request)) {
            self.collect(fx);
        }
        self.requests.end_waiting(fx);
    }

    /// A client is gone, and what it asked for is of use to nobody.
    fn on_client_down(&mut self, client: ClientId, fx: &mut Vec<GatewayEffect>) {
        self.certified.remove(&client);
        if !self.requests.leave(NodeId::Client(client), fx) {
            return;
        }
        while self.coordinator.abandon_parts(|request| self.requests.is_unwanted(request)) {
            self.collect(fx);
        }
    }

    fn on_packet(&mut self, from: NodeId, packet: Packet, fx: &mut Vec<GatewayEffect>) {
        if admit(Role::Gateway, from, &packet.message).is_err() {
            return self.coordinator.count(Counter::MessageFromAStrangerToThisRoleIgnored);
        }
        match from {
            NodeId::Brick(brick) => self.on_brick(brick, packet, fx),
            NodeId::Directory => self.on_directory(packet.message, fx),
            NodeId::Client(_) => self.on_client(from, packet, fx),
            NodeId::Gateway(_) => {}
        }
    }

    fn on_brick(&mut self, from: BrickId, packet: Packet, fx: &mut Vec<GatewayEffect>) {
        self.coordinator.on_heard(from);
        let now = self.coordinator.now();
        match &packet.message {
            Message::FragmentPut { .. } | Message::Fragment { .. } => {
                return self.objects.on_packet(now, from, packet, fx);
            }
            Message::Waiting { .. } | Message::Cancelled { .. } => {
                self.objects.on_packet(now, from, packet.clone(), fx);
            }
            _ => {}
        }
        match Answer::from_packet(packet) {
            Received::Answer(call, answer, wait) => self.coordinator.on_answer(call, answer, wait),
            Received::Waiting(calls) => self.coordinator.on_waiting(from, &calls),
            Received::Cancelled { withdrawn, late } => self.coordinator.on_cancelled(from, &withdrawn, &late),
            Received::Other(Message::Doubtful { writes }) => self.coordinator.on_doubtful(from, writes),
            Received::Other(_) => self.coordinator.count(Counter::MessageFromAStrangerToThisRoleIgnored),
        }
    }

    fn on_client(&mut self, from: NodeId, packet: Packet, fx: &mut Vec<GatewayEffect>) {
        match packet.message {
            Message::Attach { operation, volume } => {
                let waiter = Waiter::Client { node: from, operation };
                self.metadata.open(self.coordinator.now(), waiter, volume, fx);
            }
            Message::Request { id, floor, volume, io, .. } => {
                let origin = Origins::Client { node: from, request: id, floor };
                // Not what the message says of its stream: anybody may say anything.
                let stream = self.certified.get(&id.client).copied();
                let asked = Asked { origin, volume, stream, io, payload: packet.payload };
                self.requests.begin(&mut self.coordinator, &self.metadata, asked, fx);
            }
            Message::Ping { nonce } => send(fx, from, Message::Pong { nonce }),
            _ => {}
        }
    }

    /// Parts that ended end requests, which may begin further parts.
    fn collect(&mut self, fx: &mut Vec<GatewayEffect>) {
        loop {
            let finished = self.coordinator.take_finished();
            if finished.is_empty() {
                break;
            }
            for (parent, outcome) in finished {
                self.requests.on_finished(&mut self.coordinator, &self.metadata, parent, outcome, fx);
            }
        }
    }
}

fn send(fx: &mut Vec<GatewayEffect>, to: NodeId, message: Message) {
    fx.push(GatewayEffect::Send { to, packet: message.into() });
}

impl Machine for Gateway {
    type Event = GatewayEvent;
    type Effect = GatewayEffect;

    fn step(&mut self, now: Time, event: GatewayEvent, fx: &mut Vec<GatewayEffect>) {
        self.on_time(now, fx);
        match event {
            GatewayEvent::Packet { from, packet } => self.on_packet(from, packet, fx),
            GatewayEvent::Up(NodeId::Brick(brick)) => {
                self.coordinator.on_brick_up(brick);
                self.objects.on_up(now, brick, fx);
            }
            GatewayEvent::Up(NodeId::Directory) => {
                self.metadata.ask_now(now);
                self.objects.on_directory_up(now, fx);
            }
            GatewayEvent::Up(_) => {}
            GatewayEvent::Down(NodeId::Brick(brick)) => self.coordinator.on_brick_down(brick),
            GatewayEvent::Down(node @ NodeId::Client(client)) => {
                self.metadata.users.left(User::Client(node));
                self.on_client_down(client, fx);
            }
            GatewayEvent::Down(_) => {}
            GatewayEvent::Certified { client, stream } => drop(self.certified.insert(client, stream)),
            GatewayEvent::Open { session, name } => {
                self.metadata.open(now, Waiter::Session(session), name, fx);
            }
            GatewayEvent::List { session } => self.metadata.list(session, now, fx),
            GatewayEvent::Io { session, tag, volume, stream, io, payload } => {
                let origin = Origins::Session { session, tag };
                let asked = Asked { origin, volume, stream, io, payload };
                self.requests.begin(&mut self.coordinator, &self.metadata, asked, fx);
            }
            GatewayEvent::Put { tag, put } => self.objects.put(now, tag, *put, fx),
            GatewayEvent::Get { tag, get } => self.objects.get(now, tag, *get, fx),
            GatewayEvent::Object { tag, wish } => self.objects.on_wish(now, tag, *wish, fx),
            GatewayEvent::Computed { number, made } => {
                if let Err(made) = self.objects.on_computed(now, number, made, fx) {
                    self.coordinator.on_computed(ComputationId(number), made);
                }
            }
            GatewayEvent::Close { session } => {
                self.metadata.users.left(User::Session(session));
                self.requests.close(session)
            }
        }
        self.collect(fx);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<GatewayEffect>) {
        self.coordinator.set_now(now);
        self.metadata.ask_for_views(&mut self.coordinator, fx);
        self.metadata.ask_for_time(&mut self.coordinator, fx);
        self.metadata.report(&mut self.coordinator, fx);
        let begun = self.coordinator.take_computations();
        fx.extend(
            begun.into_iter().map(|(id, computation)| GatewayEffect::Compute { number: id.0, computation }),
        );
        let messages = self.coordinator.take_messages();
        fx.extend(
            messages
                .into_iter()
                .map(|(brick, packet)| GatewayEffect::Send { to: NodeId::Brick(brick), packet }),
        );
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<GatewayEffect>) {
        self.on_time(now, fx);
        self.give_up(now, fx);
        self.coordinator.wake();
        self.objects.wake(now, fx);
        self.metadata.wake(now, self.coordinator.time(), fx);
        self.collect(fx);
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let others = [self.coordinator.deadline(), self.requests.deadline()];
        others.into_iter().flatten().chain(self.objects.deadline()).chain([self.metadata.deadline()]).min()
    }

    fn check(&self, _depth: Depth) {
        self.requests.check();
    }
}
