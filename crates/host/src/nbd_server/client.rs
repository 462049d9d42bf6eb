//! One NBD connection: a socket, a [`Session`], and the requests that the machine has not answered.

use super::FrontEvent;
use super::commands::{self, Carried, Kind};
use super::feed::{Feed, Large};
use crate::admission::HELLO_MAX;
use crate::channel::Channel;
use crate::framing::Fill;
use crate::output::Output;
use crate::refusals::refused;
use crate::slots::Slots;
use crate::tls::{self, TlsConfigs};
use base::{Payload, StreamId, Time, VolumeId};
use nbd::{Action, Export, Limits, Listed, LookupError, Purpose, Reply, Request, Session, Tag, TlsPolicy};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use wire::{AdminError, Io, IoError, IoReply, VolumeInfo};

/// Bytes taken from one client in one turn of the loop.
const TURN_BYTES: usize = 1 << 20;
/// A client whose question about a volume is not answered after this time is let go; one that asks nothing has [`HELLO_MAX`].
const NEGOTIATION_MAX: Duration = Duration::from_secs(15);

/// What happened to requests, for the figures.
pub(super) struct Served {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) latency: Duration,
}

struct Pending {
    tag: Tag,
    kind: Kind,
    since: Time,
    bytes: u64,
}

pub(super) struct Client {
    pub(super) id: u64,
    channel: Channel,
    session: Session,
    feed: Feed,
    large: Option<Large>,
    output: Output,
    actions: Vec<Action>,
    pending: Slots<Pending>,
    volume: Option<VolumeInfo>,
    /// The stream that its certificate names; none before the TLS handshake and without TLS.
    stream: Option<StreamId>,
    /// What the lookup under way is for.
    lookup: Option<Purpose>,
    /// The names of all volumes are being asked for.
    is_listing: bool,
    /// The loan that the session wants and that nobody has heard of yet.
    wish: Option<usize>,
    tls: Tls,
    is_closing: bool,
    pub(super) opened: Time,
    /// Waits in the list of clients with output.
    pub(super) is_dirty: bool,
    /// Waits in the list of clients to read from.
    pub(super) is_unread: bool,
    /// There may be something to read that the session did not want.
    is_held_back: bool,
    /// The client has closed its side, and the socket tells so only once: read until the end is found.
    pub(super) is_ended: bool,
}

#[derive(PartialEq, Eq)]
enum Tls {
    Off,
    /// Begins when the output is sent.
    Asked,
    Handshake,
    On,
}

/// What a turn of reading took from a client.
pub(super) struct Taken {
    pub(super) bytes: usize,
    /// There may be more; ask again in the next turn.
    pub(super) has_more: bool,
}

impl Client {
    pub(super) fn new(id: u64, channel: Channel, tls: TlsPolicy, limits: Limits, now: Time) -> Client {
        let mut actions = Vec::new();
        let session = Session::new(limits, tls, &mut actions);
        Client {
            id,
            channel,
            session,
            feed: Feed::default(),
            large: None,
            output: Output::default(),
            actions,
            pending: Slots::default(),
            volume: None,
            stream: None,
            lookup: None,
            is_listing: false,
            wish: None,
            tls: Tls::Off,
            is_closing: false,
            opened: now,
            is_dirty: false,
            is_unread: false,
            is_held_back: false,
            is_ended: false,
        }
    }

    /// Reads what has arrived, as far as the session wants it.
    pub(super) fn read(&mut self, now: Time, sink: &mut Vec<FrontEvent>) -> io::Result<Taken> {
        let mut bytes = 0;
        self.is_held_back = false;
        loop {
            if self.tls == Tls::Handshake {
                if !self.channel.shake_hands()? {
                    return Ok(Taken { bytes, has_more: false });
                }
                self.tls = Tls::On;
                if !self.channel.tls().is_some_and(tls::is_of_a_client) {
                    refused(|| {
                        tracing::info!("an NBD client showed the certificate of one of the cluster's daemons")
                    });
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                self.stream = self.channel.tls().and_then(tls::stream_of_peer);
                self.session.tls_started(&mut self.actions);
                self.act(now, sink);
            }
            if !self.session.wants_input() {
                self.is_held_back = true;
                return Ok(Taken { bytes, has_more: false });
            }
            let fill =
                self.feed.fill(&mut self.channel, &mut self.session, &mut self.large, &mut self.actions);
            let (count, last) = match fill? {
                Fill::More(count) => (count, false),
                Fill::Last(count) => (count, !self.is_ended),
                Fill::Nothing => return Ok(Taken { bytes, has_more: false }),
                Fill::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            self.act(now, sink);
            bytes += count;
            if last || bytes >= TURN_BYTES {
                return Ok(Taken { bytes, has_more: !last });
            }
        }
    }

    /// Sends what waits. `Err` when the connection is to be dropped, now that it has ended or broken.
    pub(super) fn write(
        &mut self,
        now: Time,
        tls: Option<&TlsConfigs>,
        sink: &mut Vec<FrontEvent>,
    ) -> io::Result<()> {
        loop {
            let before = self.output.bytes();
            let drained = self.output.send(&mut self.channel)?;
            let sent = before - self.output.bytes();
            if sent > 0 && !self.session.is_closed() {
                self.session.sent(sent, &mut self.actions);
                self.act(now, sink);
            }
            if drained && self.is_closing {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if drained && self.tls == Tls::Asked {
                self.begin_handshake(tls)?;
            }
            if !drained || self.output.bytes() == 0 {
                return Ok(());
            }
        }
    }

    /// Whether there is something to send, or to begin.
    pub(super) fn has_output(&self) -> bool {
        self.output.bytes() > 0 || self.channel.has_cipher() || self.is_closing || self.tls == Tls::Asked
    }

    /// Whether input that was left in the socket is wanted by now.
    pub(super) fn wants_held_back(&self) -> bool {
        self.is_held_back && self.session.wants_input()
    }

    /// Whether it has overstayed without attaching.
    pub(super) fn is_late(&self, now: Time) -> bool {
        let is_waiting = self.lookup.is_some() || self.is_listing;
        let patience = if is_waiting { NEGOTIATION_MAX } else { HELLO_MAX };
        !self.session.is_attached() && now.since(self.opened) > patience
    }

    /// Puts it into the list of clients with output, once.
    pub(super) fn mark_dirty(&mut self, list: &mut Vec<usize>, slot: usize) {
        if !std::mem::replace(&mut self.is_dirty, true) {
            list.push(slot);
        }
    }

    /// Puts it into the list of clients to read from, once.
    pub(super) fn mark_unread(&mut self, list: &mut VecDeque<usize>, slot: usize) {
        if !std::mem::replace(&mut self.is_unread, true) {
            list.push_back(slot);
        }
    }

    pub(super) fn is_attached(&self) -> bool {
        self.session.is_attached()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.len() == 0 && self.output.bytes() == 0
    }

    pub(super) fn shrink(&mut self) {
        if self.large.is_none() {
            self.feed.shrink();
        }
        self.output.shrink();
    }

    /// The loan that the session has begun to wait for.
    pub(super) fn take_wish(&mut self) -> Option<usize> {
        self.wish.take()
    }

    pub(super) fn lend(&mut self, now: Time, sink: &mut Vec<FrontEvent>) {
        self.session.lend(&mut self.actions);
        self.act(now, sink);
    }

    pub(super) fn has_loan(&self) -> bool {
        self.session.borrowed_bytes() > 0
    }

    /// Whether it is the client that keeps its request from ending.
    pub(super) fn is_waited_for(&self) -> bool {
        self.session.awaits_client()
    }

    pub(super) fn shut_down(&mut self) {
        self.session.shut_down();
    }

    pub(super) fn opened(
        &mut self,
        volume: Result<VolumeInfo, AdminError>,
        now: Time,
        sink: &mut Vec<FrontEvent>,
    ) {
        let Some(purpose) = self.lookup.take() else { return };
        let found = match volume {
            Ok(volume) => {
                let export = export(&volume);
                if purpose == Purpose::Attach {
                    self.volume = Some(volume);
                }
                Ok(export)
            }
            Err(AdminError::NoVolume(name)) => {
                Err(LookupError::Unknown(format!("no volume named '{name}'").into()))
            }
            Err(error) => Err(LookupError::Refused(error.to_string().into())),
        };
        self.session.looked_up(found, &mut self.actions);
        self.act(now, sink);
    }

    pub(super) fn listed(
        &mut self,
        volumes: Result<Vec<VolumeInfo>, AdminError>,
        now: Time,
        sink: &mut Vec<FrontEvent>,
    ) {
        self.is_listing = false;
        let lines = |volumes: Vec<VolumeInfo>| {
            volumes.into_iter().map(|v| Listed { description: describe(&v), name: v.name }).collect()
        };
        let refused = |error: AdminError| LookupError::Refused(error.to_string().into());
        self.session.listed(volumes.map(lines).map_err(refused), &mut self.actions);
        self.act(now, sink);
    }

    pub(super) fn reply(
        &mut self,
        tag: u64,
        result: Result<IoReply, IoError>,
        payload: Payload,
        now: Time,
        sink: &mut Vec<FrontEvent>,
    ) -> Option<Served> {
        let pending = self.pending.remove(tag as usize)?;
        let reply = commands::reply(pending.kind, result, payload);
        self.session.reply(pending.tag, reply, &mut self.actions);
        self.act(now, sink);
        Some(Served { kind: pending.kind, bytes: pending.bytes, latency: now.since(pending.since) })
    }

    /// Does what the session says.
    pub(super) fn act(&mut self, now: Time, sink: &mut Vec<FrontEvent>) {
        while !self.actions.is_empty() {
            let mut actions = std::mem::take(&mut self.actions);
            for action in actions.drain(..) {
                self.act_one(action, now, sink);
            }
            // What was added meanwhile is rare; the memory is kept.
            actions.append(&mut self.actions);
            self.actions = actions;
        }
    }

    fn act_one(&mut self, action: Action, now: Time, sink: &mut Vec<FrontEvent>) {
        match action {
            Action::Send(payload) => self.output.push_payload(&payload),
            Action::Lookup { name, purpose } => {
                self.lookup = Some(purpose);
                sink.push(FrontEvent::Open { session: self.id, name });
            }
            Action::List => {
                self.is_listing = true;
                sink.push(FrontEvent::List { session: self.id });
            }
            Action::StartTls => self.tls = Tls::Asked,
            Action::Borrow(bytes) => self.wish = Some(bytes),
            Action::Request(request) => self.ask(request, now, sink),
            Action::Close(reason) => {
                tracing::debug!(session = self.id, %reason, "NBD session ends");
                self.is_closing = true;
            }
        }
    }

    fn ask(&mut self, Request { tag, command }: Request, now: Time, sink: &mut Vec<FrontEvent>) {
        let Carried::Out { kind, io, payload } = commands::carry_out(command) else {
            return self.session.reply(tag, Ok(Reply::Done), &mut self.actions);
        };
        let bytes = match &io {
            Io::Read { length, .. } => u64::from(*length),
            _ => payload.len() as u64,
        };
        let tag = self.pending.insert(Pending { tag, kind, since: now, bytes }) as u64;
        let (volume, stream) = (self.volume_id(), self.stream);
        sink.push(FrontEvent::Io { session: self.id, tag, volume, stream, io, payload });
    }

    fn volume_id(&self) -> VolumeId {
        self.volume.as_ref().expect("requests come after the lookup").id
    }

    fn begin_handshake(&mut self, tls: Option<&TlsConfigs>) -> io::Result<()> {
        let tls = tls.expect("TLS is offered only where there are certificates");
        self.channel.start_tls(tls.accept().map_err(io::Error::other)?);
        self.tls = Tls::Handshake;
        // The client's first bytes may be here already.
        self.is_held_back = true;
        Ok(())
    }

    /// Whether the handshake has just begun, and must be read for.
    pub(super) fn awaits_handshake(&self) -> bool {
        self.tls == Tls::Handshake && self.is_held_back
    }
}

/// A volume as an NBD export. A snapshot is one like the others, under its name `volume@snapshot`, and never written.
fn export(volume: &VolumeInfo) -> Export {
    Export {
        read_only: volume.read_only || volume.is_snapshot,
        description: describe(volume),
        ..Export::new(&*volume.name, volume.size_bytes)
    }
}

fn describe(volume: &VolumeInfo) -> String {
    let kind = if volume.is_snapshot { ", snapshot" } else { "" };
    format!("{}{kind}", volume.layout)
}
