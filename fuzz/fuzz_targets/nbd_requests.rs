//! A client that says anything after negotiation. Every request handed out is within the export, and its reply, given in
//! an order that the input chooses, is taken.

#![no_main]

use base::Payload;
use libfuzzer_sys::fuzz_target;
use nbd::{
    Action, Command, Errno, Export, Extent, Limits, Piece, Reply, Request, RequestError, Session, TlsPolicy,
};

const SIZE_BYTES: u64 = 1 << 20;
/// The longest payload of a request.
const MAXIMUM_BYTES: usize = 32 << 20;
const LIMITS: Limits =
    Limits { in_flight_max: 8, in_flight_bytes_max: 65536, unsent_bytes_max: 4096, option_bytes_max: 4096 };

fuzz_target!(|input: &[u8]| {
    let &[choice, cut, ref bytes @ ..] = input else { return };
    let mut actions = Vec::new();
    let mut session = attach(choice, &mut actions);
    let mut open = Vec::new();
    for chunk in bytes.chunks(usize::from(cut) + 1) {
        collect(&mut session, &mut actions, &mut open);
        if !session.wants_input() && !open.is_empty() {
            let next = open.swap_remove(usize::from(choice) % open.len());
            answer(&mut session, &next, choice, &mut actions);
        }
        session.receive(chunk.to_vec().into(), &mut actions);
        assert!(session.in_flight() <= LIMITS.in_flight_max);
        assert_wants_little(&session);
    }
    collect(&mut session, &mut actions, &mut open);
    while let Some(next) = open.pop() {
        answer(&mut session, &next, choice, &mut actions);
        collect(&mut session, &mut actions, &mut open);
    }
    assert!(session.is_closed() || (session.in_flight() == 0 && session.wants_input()));
});

/// What a driver makes room for: a payload within the session's share, or within its loan.
fn assert_wants_little(session: &Session) {
    let allowed = LIMITS.in_flight_bytes_max.max(session.borrowed_bytes());
    assert!(session.payload_bytes() <= allowed, "it wants {} of {allowed} bytes", session.payload_bytes());
    assert!(session.borrowed_bytes() <= MAXIMUM_BYTES);
}

/// A session in transmission: the low bits of `choice` say what was negotiated.
fn attach(choice: u8, actions: &mut Vec<Action>) -> Session {
    let mut session = Session::new(LIMITS, TlsPolicy::None, actions);
    let mut hello = b"\0\0\0\x03".to_vec();
    if choice & 1 != 0 {
        hello.extend(b"IHAVEOPT\0\0\0\x08\0\0\0\0");
        hello.extend(b"IHAVEOPT\0\0\0\x0a\0\0\0\x1c\0\0\0\x01v\0\0\0\x01\0\0\0\x0fbase:allocation");
    }
    hello.extend(b"IHAVEOPT\0\0\0\x01\0\0\0\x01v");
    session.receive(hello.into(), actions);
    collect_with(&mut session, actions, &mut Vec::new(), choice);
    assert!(session.is_attached());
    session
}

fn collect(session: &mut Session, actions: &mut Vec<Action>, open: &mut Vec<Request>) {
    collect_with(session, actions, open, 0);
}

fn collect_with(session: &mut Session, actions: &mut Vec<Action>, open: &mut Vec<Request>, choice: u8) {
    while !actions.is_empty() {
        for action in std::mem::take(actions) {
            match action {
                Action::Send(payload) => session.sent(payload.len(), actions),
                Action::Lookup { name, .. } => session.looked_up(Ok(export(name, choice)), actions),
                Action::Request(request) => {
                    check(&request.command);
                    open.push(request);
                }
                Action::Borrow(bytes) => {
                    assert!(bytes <= MAXIMUM_BYTES);
                    session.lend(actions);
                }
                Action::Close(_) => {}
                other => panic!("{other:?} after negotiation"),
            }
        }
    }
}

fn export(name: String, choice: u8) -> Export {
    let (cache, fast_zero, read_only) = (choice & 2 != 0, choice & 4 != 0, choice & 8 != 0);
    Export { cache, fast_zero, read_only, ..Export::new(name, SIZE_BYTES) }
}

fn check(command: &Command) {
    let (offset, length) = match command {
        Command::Flush => return,
        Command::Write { offset, payload, .. } => (*offset, payload.len() as u64),
        Command::Read { offset, length }
        | Command::Cache { offset, length }
        | Command::Trim { offset, length, .. }
        | Command::WriteZeroes { offset, length, .. }
        | Command::BlockStatus { offset, length, .. } => (*offset, u64::from(*length)),
    };
    assert!(length > 0 && offset + length <= SIZE_BYTES);
}

fn answer(session: &mut Session, request: &Request, choice: u8, actions: &mut Vec<Action>) {
    let reply = match &request.command {
        _ if choice & 16 != 0 => Err(RequestError::new(Errno::Io, "the disk is gone")),
        Command::Read { length, .. } if choice & 32 != 0 && *length > 512 => {
            Ok(Reply::Sparse(vec![Piece::Data(Payload::zeros(512)), Piece::Hole(length - 512)]))
        }
        Command::Read { length, .. } => Ok(Reply::Data(Payload::zeros(*length as usize))),
        Command::BlockStatus { .. } => {
            let extent = |hole| Extent { length: 700, hole, zero: hole };
            Ok(Reply::Status(vec![extent(true), extent(false), extent(true)]))
        }
        _ => Ok(Reply::Done),
    };
    session.reply(request.tag, reply, actions);
}
