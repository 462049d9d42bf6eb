//! One connection to a peer: handshake, frames in, frames out.

use super::hello::{self, HELLO_BYTES, Refusal};
use crate::channel::Channel;
use crate::framing::{Fill, Input};
use crate::output::Output;
use crate::{identity, tls};
use base::{ClientId, ClusterId, NodeId, StreamId, Time};
use bytes::Buf;
use std::io;
use wire::frame::FrameError;
use wire::{Message, Packet, Spoken, Version};

/// Bytes taken from one connection in one turn of the loop, so that the others get theirs.
const TURN_BYTES: usize = 2 << 20;
/// The nonce of the transport's own pings, which no machine sees.
const KEEPALIVE: u64 = u64::MAX;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("closed by the other side")]
    Closed,
    #[error("closed by the other side during the handshake (is it of another cluster or release?)")]
    Declined,
    #[error("refused: {0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("silent for too long")]
    Silent,
    #[error("did not complete the handshake in time")]
    Late,
    #[error("replaced by a newer connection")]
    Replaced,
    #[error("not needed for long")]
    Idle,
    #[error("the peer is gone from the cluster")]
    Forgotten,
    #[error("all places are taken, and another caller has its place")]
    GaveWay,
    #[error("all places are taken")]
    Full,
}

pub(super) struct Connection {
    channel: Channel,
    input: Input,
    pub(super) output: Output,
    /// Whom this side has called; `None` when it was called.
    pub(super) called: Option<NodeId>,
    /// Who it is, once the handshake is done.
    pub(super) peer: Option<NodeId>,
    /// The client that it is, and the stream that its certificate names.
    pub(super) certified: Option<(ClientId, StreamId)>,
    /// What is spoken with it from then on.
    version: Version,
    pub(super) opened: Time,
    pub(super) heard: Time,
    /// When a packet passed last, in either direction, as far as a tick has seen it; pings do not count.
    pub(super) used: Time,
    /// A packet passed since the last tick.
    pub(super) is_used: bool,
    /// Waits in the list of connections with output.
    pub(super) is_dirty: bool,
    /// Waits in the list of connections with more to read.
    pub(super) is_unread: bool,
    /// The peer has closed its side, and the socket tells so only once: read until the end is found.
    pub(super) is_ended: bool,
    /// Bytes that arrived and are not counted yet.
    pub(super) arrived_bytes: u64,
}

/// What became of a turn of reading.
pub(super) enum Progress {
    Drained,
    /// There may be more; ask again in the next turn.
    More,
}

/// What a connection brings.
#[allow(clippy::large_enum_variant, reason = "nearly all are packets")]
pub(super) enum Incoming {
    Opened(NodeId),
    Packet(Packet),
}

/// How this node introduces itself.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) me: NodeId,
    pub(super) cluster: ClusterId,
    /// The versions of the protocol that it speaks.
    pub(super) spoken: Spoken,
}

impl Connection {
    pub(super) fn new(channel: Channel, called: Option<NodeId>, identity: Identity, now: Time) -> Connection {
        let mut connection = Connection {
            channel,
            input: Input::default(),
            output: Output::default(),
            called,
            peer: None,
            certified: None,
            version: Version::OLDEST,
            opened: now,
            heard: now,
            used: now,
            is_used: false,
            is_dirty: false,
            is_unread: false,
            is_ended: false,
            arrived_bytes: 0,
        };
        if called.is_some() {
            connection.greet(identity);
        }
        connection
    }

    /// Reads what has arrived, and gives it out piece by piece.
    pub(super) fn read(
        &mut self,
        identity: Identity,
        now: Time,
        mut sink: impl FnMut(Incoming),
    ) -> Result<Progress, Broken> {
        let mut budget = TURN_BYTES;
        loop {
            let (count, last) = match self.input.fill(&mut self.channel)? {
                Fill::More(count) => (count, false),
                Fill::Last(count) => (count, !self.is_ended),
                Fill::Nothing => return Ok(Progress::Drained),
                Fill::End if self.peer.is_none() => return Err(Broken::Declined),
                Fill::End => return Err(Broken::Closed),
            };
            self.heard = now;
            self.arrived_bytes += count as u64;
            self.take(identity, &mut sink)?;
            if last {
                return Ok(Progress::Drained);
            }
            budget = budget.saturating_sub(count);
            if budget == 0 {
                return Ok(Progress::More);
            }
        }
    }

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn write(&mut self) -> Result<(), Broken> {
        self.output.send(&mut self.channel)?;
        Ok(())
    }

    /// Whether something waits to be sent, encrypted or not.
    pub(super) fn has_output(&self) -> bool {
        self.output.bytes() > 0 || self.channel.has_cipher()
    }

    /// The connection attempt's error, if it failed.
    pub(super) fn check(&self) -> Result<(), Broken> {
        self.channel.socket().take_error()?.map_or(Ok(()), |error| Err(error.into()))
    }

    pub(super) fn ping(&mut self) {
        self.push(&Message::Ping { nonce: KEEPALIVE }.into()).expect("a short message");
    }

    /// Whether the other side knows such a message.
    pub(super) fn knows(&self, message: &Message) -> bool {
        message.since() <= self.version
    }

    /// Queues a packet that it knows, unless that is too long.
    pub(super) fn push(&mut self, packet: &Packet) -> Result<(), FrameError> {
        self.output.push_packet(self.version, packet)
    }

    pub(super) fn shrink(&mut self) {
        self.input.shrink();
        self.output.shrink();
    }

    fn greet(&mut self, identity: Identity) {
        self.output.push_head(|out| hello::encode(identity.spoken, identity.cluster, identity.me, out));
    }

    fn take(&mut self, identity: Identity, sink: &mut impl FnMut(Incoming)) -> Result<(), Broken> {
        if self.peer.is_none() {
            let Some(&hello) = self.input.buffered().first_chunk::<HELLO_BYTES>() else { return Ok(()) };
            let (peer, version) = hello::parse(&hello, identity.spoken, identity.cluster)?;
            let peer = self.accept(peer, version)?;
            self.version = version;
            self.input.buffered().advance(HELLO_BYTES);
            self.peer = Some(peer);
            self.certified = self.certificate_of(peer);
            self.input.open(version);
            if self.called.is_none() {
                self.greet(identity);
            }
            sink(Incoming::Opened(peer));
        }
        while let Some(packet) = self.input.next_packet()? {
            match packet.message {
                Message::Ping { nonce: KEEPALIVE } => {
                    self.push(&Message::Pong { nonce: KEEPALIVE }.into()).expect("a short message");
                }
                Message::Pong { nonce: KEEPALIVE } => {}
                _ => {
                    self.is_used = true;
                    sink(Incoming::Packet(packet));
                }
            }
        }
        Ok(())
    }

    fn certificate_of(&self, peer: NodeId) -> Option<(ClientId, StreamId)> {
        let NodeId::Client(client) = peer else { return None };
        Some((client, tls::stream_of_peer(self.channel.tls()?)?))
    }

    /// Whether its certificate shows that the id is its own. That of an earlier release cannot, and there is none in a cluster without.
    pub(super) fn is_proven(&self) -> bool {
        self.channel.tls().is_none() || self.version >= identity::SINCE
    }

    /// Whether both sides' certificates are the same one.
    pub(super) fn is_of_the_same_owner(&self, other: &Connection) -> bool {
        let certificate = |of: &Connection| of.channel.tls()?.peer_certificates()?.first().cloned();
        certificate(self) == certificate(other)
    }

    fn accept(&self, found: NodeId, version: Version) -> Result<NodeId, Refusal> {
        if let Some(expected) = self.called
            && found != expected
        {
            return Err(Refusal::Node { found, expected });
        }
        match self.channel.tls() {
            Some(connection) if !tls::names(connection, found, version) => Err(Refusal::Certificate(found)),
            _ => Ok(found),
        }
    }
}
