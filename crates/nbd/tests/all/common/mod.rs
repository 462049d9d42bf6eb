//! A client that writes bytes, and a driver that answers sessions from memory.

// Each test binary uses its own part of it.
#![allow(dead_code)]

use base::Payload;
use nbd::wire::{self, command as cmd};
use nbd::{
    Action, Command, Export, Extent, Limits, Listed, LookupError, Piece, Reply, Request, Session, TlsPolicy,
};

/// The size of the export "v".
pub(crate) const SIZE_BYTES: u64 = 1 << 20;

/// The client flags: fixed newstyle, no zeroes.
pub(crate) fn client_flags() -> Vec<u8> {
    vec![0, 0, 0, 3]
}

pub(crate) fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of `INFO` and `GO`.
pub(crate) fn info_data(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut data = sized(name);
    data.extend((kinds.len() as u16).to_be_bytes());
    kinds.iter().for_each(|kind| data.extend(kind.to_be_bytes()));
    data
}

/// The data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
pub(crate) fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = sized(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(sized(query)));
    data
}

fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A request without its payload.
pub(crate) fn request(kind: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

pub(crate) fn write(cookie: u64, offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = request(cmd::WRITE, 0, cookie, offset, payload.len() as u32);
    bytes.extend(payload);
    bytes
}

/// All that a client says to reach transmission on "v".
pub(crate) fn hello(structured: bool, contexts: bool) -> Vec<u8> {
    let mut bytes = client_flags();
    if structured {
        bytes.extend(option(wire::option::STRUCTURED_REPLY, b""));
    }
    if contexts {
        bytes.extend(option(wire::option::SET_META_CONTEXT, &context_data("v", &[wire::BASE_ALLOCATION])));
    }
    bytes.extend(option(wire::option::GO, &info_data("v", &[])));
    bytes
}

/// A session with a driver that answers lookups, and sends all at once.
pub(crate) struct Driven {
    pub(crate) session: Session,
    pub(crate) export: Export,
    /// All that happened, less lookups and lists; sends in one run are joined.
    pub(crate) trace: Vec<Action>,
    /// Whether sends are reported as done at once, or by [`Driven::flush`].
    pub(crate) sends_at_once: bool,
    /// Whether a loan is granted at once, or stays in the trace.
    pub(crate) lends: bool,
    actions: Vec<Action>,
}

impl Driven {
    pub(crate) fn new(limits: Limits, tls: TlsPolicy) -> Driven {
        let mut actions = Vec::new();
        let session = Session::new(limits, tls, &mut actions);
        let mut driven = Driven {
            session,
            export: Export::new("v", SIZE_BYTES),
            trace: Vec::new(),
            sends_at_once: true,
            lends: true,
            actions,
        };
        driven.drive();
        driven
    }

    /// One in transmission, with an empty trace.
    pub(crate) fn attached(export: Export, limits: Limits, structured: bool, contexts: bool) -> Driven {
        let mut driven = Driven::new(limits, TlsPolicy::None);
        driven.export = export;
        driven.feed(&hello(structured, contexts));
        assert!(driven.session.is_attached());
        driven.trace.clear();
        driven
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.session.receive(bytes.to_vec().into(), &mut self.actions);
        self.drive();
    }

    pub(crate) fn reply(&mut self, request: &Request, reply: Reply) {
        self.session.reply(request.tag, Ok(reply), &mut self.actions);
        self.drive();
    }

    pub(crate) fn tls_started(&mut self) {
        self.session.tls_started(&mut self.actions);
        self.drive();
    }

    pub(crate) fn lend(&mut self) {
        self.session.lend(&mut self.actions);
        self.drive();
    }

    /// All that was handed out is sent.
    pub(crate) fn flush(&mut self) {
        self.session.sent(self.session.unsent_bytes(), &mut self.actions);
        self.drive();
    }

    /// The requests since the last call.
    pub(crate) fn requests(&mut self) -> Vec<Request> {
        let (requests, others) = std::mem::take(&mut self.trace)
            .into_iter()
            .partition(|action| matches!(action, Action::Request(_)));
        self.trace = others;
        Vec::into_iter(requests)
            .filter_map(|action| match action {
                Action::Request(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    /// What was sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.trace.retain(|action| match action {
            Action::Send(payload) => {
                bytes.extend(payload.to_vec());
                false
            }
            _ => true,
        });
        bytes
    }

    fn drive(&mut self) {
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                self.on_action(action);
            }
        }
    }

    fn find(&self, name: &str) -> Result<Export, LookupError> {
        match name {
            "v" => Ok(self.export.clone()),
            "other" => Ok(Export::new("other", SIZE_BYTES)),
            "secret" => Err(LookupError::TlsRequired("only over TLS".into())),
            _ => Err(LookupError::Unknown("no such export".into())),
        }
    }

    fn on_action(&mut self, action: Action) {
        match action {
            Action::Send(payload) => {
                if self.sends_at_once {
                    self.session.sent(payload.len(), &mut self.actions);
                }
                match self.trace.last_mut() {
                    Some(Action::Send(last)) => last.append(&payload),
                    _ => self.trace.push(Action::Send(payload)),
                }
            }
            Action::Lookup { name, .. } => {
                let found = self.find(&name);
                self.session.looked_up(found, &mut self.actions);
            }
            Action::Borrow(_) if self.lends => self.session.lend(&mut self.actions),
            Action::List => {
                let listed = Listed { name: "v".into(), description: "a volume".into() };
                self.session.listed(Ok(vec![listed]), &mut self.actions);
            }
            other => self.trace.push(other),
        }
    }
}

/// A reply that fits.
pub(crate) fn fitting(command: &Command) -> Reply {
    match command {
        Command::Read { length, .. } if *length >= 1024 => {
            let data = Payload::from(vec![7; *length as usize - 512]);
            Reply::Sparse(vec![Piece::Hole(512), Piece::Data(data)])
        }
        Command::Read { length, .. } => Reply::Data(Payload::from(vec![7; *length as usize])),
        Command::BlockStatus { length, .. } => {
            let half = u64::from(*length) / 2;
            let extent = |length, hole| Extent { length, hole, zero: hole };
            Reply::Status(vec![extent(half, true), extent(u64::from(*length) - half, false)])
        }
        _ => Reply::Done,
    }
}

/// A reply as a client reads it.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Answer {
    pub(crate) cookie: u64,
    pub(crate) errno: u32,
    /// Content of a read; what lies in holes is zero.
    pub(crate) data: Vec<u8>,
    /// Where the first content chunk begins.
    pub(crate) offset: Option<u64>,
    /// Lengths and states of block status.
    pub(crate) status: Vec<(u32, u32)>,
    pub(crate) chunks: usize,
}

/// Reads all structured replies in `bytes`; panics unless they are whole and in order.
pub(crate) fn structured(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut open = false;
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(20);
        assert_eq!(u32_at(head, 0), wire::STRUCTURED_REPLY_MAGIC);
        let (flags, kind, cookie) = (u16_at(head, 4), u16_at(head, 6), u64_at(head, 8));
        let (body, rest) = rest.split_at(u32_at(head, 16) as usize);
        bytes = rest;
        if !open {
            answers.push(Answer { cookie, errno: 0, data: vec![], offset: None, status: vec![], chunks: 0 });
        }
        let answer = answers.last_mut().unwrap();
        assert_eq!(answer.cookie, cookie, "chunks of two replies are mixed");
        answer.chunks += 1;
        take_chunk(answer, kind, body);
        open = flags & wire::chunk::DONE == 0;
    }
    assert!(!open, "a reply without its last chunk");
    answers
}

fn take_chunk(answer: &mut Answer, kind: u16, body: &[u8]) {
    match kind {
        wire::chunk::NONE => assert!(body.is_empty()),
        wire::chunk::OFFSET_DATA | wire::chunk::OFFSET_HOLE => {
            let offset = u64_at(body, 0);
            let start = *answer.offset.get_or_insert(offset);
            assert_eq!(offset, start + answer.data.len() as u64, "chunks out of order");
            match kind {
                wire::chunk::OFFSET_DATA => answer.data.extend(&body[8..]),
                _ => answer.data.extend(vec![0; u32_at(body, 8) as usize]),
            }
        }
        wire::chunk::BLOCK_STATUS => {
            assert_eq!(u32_at(body, 0), wire::BASE_ALLOCATION_ID);
            answer.status = body[4..].chunks(8).map(|pair| (u32_at(pair, 0), u32_at(pair, 4))).collect();
        }
        wire::chunk::ERROR => {
            answer.errno = u32_at(body, 0);
            assert_eq!(body.len(), 6 + usize::from(u16_at(body, 4)));
            assert!(std::str::from_utf8(&body[6..]).is_ok());
        }
        kind => panic!("chunk of type {kind}"),
    }
}

/// Replies to options: option, type, data.
pub(crate) fn option_replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(u64_at(bytes, 0), wire::OPTION_REPLY_MAGIC);
        let len = u32_at(bytes, 16) as usize;
        replies.push((u32_at(bytes, 8), u32_at(bytes, 12), bytes[20..20 + len].to_vec()));
        bytes = &bytes[20 + len..];
    }
    replies
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}
