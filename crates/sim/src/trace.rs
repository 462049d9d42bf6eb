//! The trace of a run: a hash of every event that reaches a machine, and, when it is wanted, one JSON line each.

use crate::digest::Digest;
use crate::world::event::Input;
use base::NodeId;
use objects::index::ShardEvent;
use objects::object::ObjectWish;
use serde::{Deserialize, Serialize};
use std::io::Write;

/// One line of a trace file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which event, from 1.
    pub n: u64,
    /// When, in nanoseconds of the world.
    pub t: u64,
    pub node: String,
    pub what: String,
    /// The hash of all up to here, in hexadecimal.
    pub hash: String,
}

impl core::fmt::Display for Step {
    /// One line, however long: its number, the time, the node and what happens to it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (seconds, micros) = (self.t / 1_000_000_000, self.t / 1_000 % 1_000_000);
        let what = self.what.replace('\n', " ");
        write!(f, "{:>7} {seconds:>3}.{micros:06} {}: {what}", self.n, self.node)
    }
}

/// Hashes events and writes them down.
pub(crate) struct Trace {
    digest: Digest,
    count: u64,
    lines: Option<Box<dyn Write>>,
    error: Option<std::io::Error>,
}

impl Trace {
    /// A trace that is hashed, and written to `lines` if there is such.
    pub(crate) fn new(lines: Option<Box<dyn Write>>) -> Trace {
        Trace { digest: Digest::default(), count: 0, lines, error: None }
    }

    /// The hash so far.
    pub(crate) fn hash(&self) -> u64 {
        self.digest.value()
    }

    /// How many events so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Why not all could be written down.
    pub(crate) fn take_error(&mut self) -> Option<std::io::Error> {
        self.lines.as_mut().and_then(|lines| lines.flush().err()).or(self.error.take())
    }

    /// An input is about to reach a machine, which wants to be woken next for `reason`.
    pub(crate) fn step(&mut self, now_ns: u64, node: NodeId, input: &Input, reason: &'static str) {
        self.count += 1;
        self.digest.number(now_ns);
        self.digest.number(node_number(node));
        self.take_in(input);
        if self.lines.is_some() {
            self.put(now_ns, node, text(input, reason));
        }
    }

    /// The world does something to a node: a fault, or its end.
    pub(crate) fn note(&mut self, now_ns: u64, node: NodeId, what: &str) {
        self.count += 1;
        self.digest.number(now_ns);
        self.digest.number(node_number(node));
        self.digest.bytes(what.as_bytes());
        if self.lines.is_some() {
            self.put(now_ns, node, what.to_owned());
        }
    }

    fn take_in(&mut self, input: &Input) {
        let digest = &mut self.digest;
        match input {
            Input::Packet { from, packet } => {
                digest.number(node_number(*from));
                digest.packet(packet);
            }
            Input::Up(peer) => digest.number(node_number(*peer) ^ 1),
            Input::Down(peer) => digest.number(node_number(*peer) ^ 2),
            Input::Gone(peer) => digest.number(node_number(*peer) ^ 3),
            Input::Disk { disk, done } => {
                digest.number(*disk as u64);
                digest.number(done.token.0);
                let content = done.result.as_ref().ok().map(|bytes| base::Payload::from(bytes.clone()));
                digest.payload(&content.unwrap_or_default());
            }
            Input::Computed { number, made } => {
                digest.number(*number);
                made.iter().flatten().for_each(|shard| digest.payload(shard));
            }
            Input::Stored { token } => digest.number(*token),
            Input::Open { session, name } => {
                digest.number(*session);
                digest.bytes(name.as_bytes());
            }
            Input::SessionIo { tag, payload, .. } | Input::ClientIo { tag, payload, .. } => {
                digest.number(*tag);
                digest.payload(payload);
            }
            Input::Put { tag, .. } | Input::Get { tag, .. } | Input::Object { tag, .. } => {
                digest.number(*tag)
            }
            Input::Shard { shard, .. } => digest.number(u64::from(*shard) ^ 4),
            Input::Wake => digest.number(3),
        }
    }

    fn put(&mut self, now_ns: u64, node: NodeId, what: String) {
        let step = Step {
            n: self.count,
            t: now_ns,
            node: node.to_string(),
            what,
            hash: format!("{:016x}", self.digest.value()),
        };
        let line = serde_json::to_string(&step).expect("plain text and numbers");
        if let Some(error) = self.lines.as_mut().and_then(|lines| writeln!(lines, "{line}").err()) {
            (self.lines, self.error) = (None, Some(error));
        }
    }
}

fn text(input: &Input, reason: &'static str) -> String {
    match input {
        Input::Packet { from, packet } if packet.payload.is_empty() => {
            format!("from {from}: {:?}", packet.message)
        }
        Input::Packet { from, packet } => {
            format!("from {from}: {:?} with {:?}", packet.message, packet.payload)
        }
        Input::Up(peer) => format!("{peer} can be reached"),
        Input::Down(peer) => format!("the connection to {peer} is gone"),
        Input::Gone(peer) => format!("somebody else answers where {peer} was"),
        Input::Disk { disk, done } => match &done.result {
            Ok(bytes) if bytes.is_empty() => format!("disk {disk}: request {} done", done.token.0),
            Ok(bytes) => format!("disk {disk}: request {} read {} B", done.token.0, bytes.len()),
            Err(fault) => format!("disk {disk}: request {} failed: {fault}", done.token.0),
        },
        Input::Computed { number, made: Ok(_) } => format!("computation {number} is done"),
        Input::Computed { number, made: Err(error) } => format!("computation {number} failed: {error}"),
        Input::Stored { token } => format!("put {token} is stored"),
        Input::Open { session, name } => format!("session {session} opens {name}"),
        Input::SessionIo { session, tag, volume, io, .. } => {
            format!("session {session}: #{tag} {volume} {io:?}")
        }
        Input::ClientIo { tag, io, .. } => format!("#{tag} {io:?}"),
        Input::Put { tag, put } => format!("segment #{tag}: put {} {}", put.version, put.segment),
        Input::Get { tag, get } => format!("segment #{tag}: get {} {}", get.version, get.segment),
        Input::Object { tag, wish } => match &**wish {
            ObjectWish::Content { content, is_last } => {
                format!(
                    "object #{tag}: {} B of content{}",
                    content.len(),
                    if *is_last { ", the last" } else { "" }
                )
            }
            wish => format!("object #{tag}: {wish:?}"),
        },
        Input::Shard { shard, event: ShardEvent::Read { .. } } => format!("shard {shard} has read"),
        Input::Shard { shard, event: ShardEvent::Stored { .. } } => format!("shard {shard} has stored"),
        Input::Wake => format!("woken for {reason}"),
    }
}

fn node_number(node: NodeId) -> u64 {
    match node {
        NodeId::Directory => 0x1000_0000_0000_0000,
        NodeId::Brick(id) => 0x2000_0000_0000_0000 | u64::from(id.0),
        NodeId::Gateway(id) => 0x3000_0000_0000_0000 ^ id.0,
        NodeId::Client(id) => 0x4000_0000_0000_0000 ^ id.0,
    }
}
