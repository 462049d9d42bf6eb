//! Requests and replies as a client sees them.

use crate::common::{Driven, SIZE_BYTES, fitting, request, structured, u32_at, write};
use base::Payload;
use nbd::wire::{self, command as cmd, command_flag as flag};
use nbd::{Action, CloseReason, Command, Errno, Export, Limits, Piece, Reply, RequestError};

fn attached() -> Driven {
    Driven::attached(Export::new("v", SIZE_BYTES), Limits::default(), true, true)
}

/// The error that answers `bytes`, a request that must not reach the driver.
fn refused(driven: &mut Driven, bytes: &[u8]) -> u32 {
    driven.feed(bytes);
    assert_eq!(driven.requests(), [], "a bad request was handed out");
    let answers = structured(&driven.sent());
    assert_eq!((answers.len(), answers[0].cookie), (1, 9));
    answers[0].errno
}

#[test]
fn bad_requests_are_answered_with_the_right_error() {
    let (invalid, no_space) = (Errno::Invalid as u32, Errno::NoSpace as u32);
    let (end, max) = (SIZE_BYTES, !511u32);
    let cases = [
        (cmd::READ, 0, end, 512, invalid),
        (cmd::READ, 0, end - 512, 1024, invalid),
        (cmd::READ, 0, u64::MAX - 511, 512, invalid),
        (cmd::READ, 0, u64::MAX, u32::MAX, invalid),
        (cmd::READ, 0, 0, 0, invalid),
        (cmd::READ, 0, 0, max, invalid),
        (cmd::READ, flag::DF, 0, max, Errno::Overflow as u32),
        (cmd::READ, flag::REQ_ONE, 0, 512, invalid),
        (cmd::READ, 1 << 15, 0, 512, invalid),
        (cmd::TRIM, 0, end, 512, invalid),
        (cmd::TRIM, 0, 0, max, invalid),
        (cmd::TRIM, 0, 0, 0, invalid),
        (cmd::WRITE_ZEROES, 0, end, 512, no_space),
        (cmd::WRITE_ZEROES, 0, 0, max, no_space),
        (cmd::WRITE_ZEROES, flag::FAST_ZERO, 0, 512, invalid),
        (cmd::BLOCK_STATUS, 0, 0, max, invalid),
        (cmd::FLUSH, 0, 512, 0, invalid),
        (cmd::FLUSH, 0, 0, 512, invalid),
        (cmd::CACHE, 0, 0, 512, invalid),
        (8, 0, 0, 512, invalid),
        (u16::MAX, 0, 0, 512, invalid),
    ];
    let mut driven = attached();
    for (kind, flags, offset, length, errno) in cases {
        let got = refused(&mut driven, &request(kind, flags, 9, offset, length));
        assert_eq!(got, errno, "type {kind} flags {flags:#x} {offset}+{length}");
    }
}

#[test]
fn a_refused_write_consumes_its_payload_and_keeps_nothing() {
    let mut driven = attached();
    for (offset, len, errno) in [
        (SIZE_BYTES, 1 << 16, Errno::NoSpace),
        (SIZE_BYTES - 511, 512, Errno::NoSpace),
        (0, 0, Errno::Invalid),
        (0, (32 << 20) + 512, Errno::Invalid),
    ] {
        driven.feed(&request(cmd::WRITE, 0, 9, offset, len));
        for _ in 0..len / 512 {
            assert!(driven.sent().is_empty(), "the answer comes when the payload is through");
            assert!(driven.session.wants_input());
            driven.feed(&wire::REQUEST_MAGIC.to_be_bytes().repeat(128));
            assert_eq!(driven.session.buffered_bytes(), 0);
        }
        assert_eq!(structured(&driven.sent())[0].errno, errno as u32);
    }
    driven.feed(&write(1, 0, &[3; 512]));
    assert_eq!(driven.requests().len(), 1);
}

#[test]
fn a_read_only_export_refuses_writes() {
    let export = Export { read_only: true, ..Export::new("v", SIZE_BYTES) };
    let mut driven = Driven::attached(export, Limits::default(), true, false);
    for kind in [cmd::TRIM, cmd::WRITE_ZEROES] {
        assert_eq!(refused(&mut driven, &request(kind, 0, 9, 0, 512)), Errno::NotPermitted as u32);
    }
    assert_eq!(refused(&mut driven, &write(9, 0, &[1; 512])), Errno::NotPermitted as u32);
    driven.feed(&request(cmd::READ, 0, 9, 0, 512));
    assert_eq!(driven.requests().len(), 1);
}

#[test]
fn commands_keep_their_flags() {
    let export = Export { cache: true, fast_zero: true, ..Export::new("v", 1 << 40) };
    let mut driven = Driven::attached(export, Limits::default(), true, true);
    let max = !511u32;
    driven.feed(&request(cmd::WRITE_ZEROES, flag::FUA | flag::NO_HOLE | flag::FAST_ZERO, 1, 512, max));
    driven.feed(&request(cmd::TRIM, flag::FUA, 2, 0, max));
    driven.feed(&request(cmd::BLOCK_STATUS, flag::REQ_ONE, 3, 0, max));
    driven.feed(&request(cmd::CACHE, 0, 4, 0, max));
    driven.feed(&request(cmd::FLUSH, flag::FUA, 5, 0, 0));
    let mut written = request(cmd::WRITE, flag::FUA, 6, 4096, 512);
    written.extend([8; 512]);
    driven.feed(&written);
    let commands: Vec<Command> = driven.requests().into_iter().map(|request| request.command).collect();
    let expected = [
        Command::WriteZeroes { offset: 512, length: max, fua: true, no_hole: true, fast: true },
        Command::Trim { offset: 0, length: max, fua: true },
        Command::BlockStatus { offset: 0, length: max, one: true },
        Command::Cache { offset: 0, length: max },
        Command::Flush,
        Command::Write { offset: 4096, payload: Payload::from(vec![8; 512]), fua: true },
    ];
    assert_eq!(commands, expected);
}

#[test]
fn block_status_needs_its_context() {
    let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), Limits::default(), true, false);
    assert_eq!(refused(&mut driven, &request(cmd::BLOCK_STATUS, 0, 9, 0, 512)), Errno::Invalid as u32);
}

#[test]
fn holes_travel_as_holes_unless_the_client_forbids() {
    let mut driven = attached();
    for (flags, chunks) in [(0, 2), (flag::DF, 1)] {
        driven.feed(&request(cmd::READ, flags, 5, 4096, 1536));
        let asked = driven.requests().remove(0);
        driven.reply(&asked, fitting(&asked.command));
        let answer = structured(&driven.sent()).remove(0);
        assert_eq!((answer.chunks, answer.errno, answer.offset), (chunks, 0, Some(4096)));
        assert_eq!(answer.data, [vec![0; 512], vec![7; 1024]].concat());
    }
}

#[test]
fn simple_replies_carry_whole_reads_and_bare_errors() {
    let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), Limits::default(), false, false);
    driven.feed(&request(cmd::READ, 0, 5, 0, 1024));
    let asked = driven.requests().remove(0);
    let data = Payload::from(vec![7; 512]);
    driven.reply(&asked, Reply::Sparse(vec![Piece::Data(data), Piece::Hole(512)]));
    let sent = driven.sent();
    assert_eq!((u32_at(&sent, 0), u32_at(&sent, 4), sent.len()), (wire::SIMPLE_REPLY_MAGIC, 0, 16 + 1024));
    assert_eq!(sent[16..], [vec![7; 512], vec![0; 512]].concat());

    driven.feed(&request(cmd::READ, flag::DF, 5, 0, 1024));
    let sent = driven.sent();
    assert_eq!((u32_at(&sent, 4), sent.len()), (Errno::Invalid as u32, 16));
}

#[test]
fn status_is_cut_to_what_was_asked() {
    let mut driven = attached();
    for (flags, expected) in [(0, vec![(2048, 3), (2048, 0)]), (flag::REQ_ONE, vec![(2048, 3)])] {
        driven.feed(&request(cmd::BLOCK_STATUS, flags, 5, 4096, 4096));
        let asked = driven.requests().remove(0);
        driven.reply(&asked, fitting(&asked.command));
        assert_eq!(structured(&driven.sent())[0].status, expected);
    }
}

#[test]
fn a_cookie_may_be_used_twice() {
    let mut driven = attached();
    driven.feed(&request(cmd::READ, 0, 5, 0, 512));
    driven.feed(&request(cmd::FLUSH, 0, 5, 0, 0));
    let asked = driven.requests();
    driven.reply(&asked[1], Reply::Done);
    driven.reply(&asked[0], Reply::Data(Payload::from(vec![1; 512])));
    let answers = structured(&driven.sent());
    assert_eq!(answers.iter().map(|a| (a.cookie, a.data.len())).collect::<Vec<_>>(), [(5, 0), (5, 512)]);
}

#[test]
fn requests_wait_for_room() {
    let limits = Limits { in_flight_max: 3, in_flight_bytes_max: 8192, ..Limits::default() };
    let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), limits, true, false);
    driven.feed(&request(cmd::READ, 0, 1, 0, 16384));
    driven.feed(&request(cmd::FLUSH, 0, 2, 0, 0));
    assert!(driven.session.wants_input(), "a flush needs no room for data");
    driven.feed(&write(3, 0, &[1; 512]));
    assert!(!driven.session.wants_input());
    let mut asked = driven.requests();
    assert_eq!(asked.len(), 2);
    driven.reply(&asked.remove(0), Reply::Data(Payload::zeros(16384)));
    asked.extend(driven.requests());
    assert_eq!(asked.len(), 2, "the write found room");
    driven.feed(&request(cmd::FLUSH, 0, 4, 0, 0));
    assert_eq!((driven.session.in_flight(), driven.session.wants_input()), (3, false));
    driven.feed(&request(cmd::FLUSH, 0, 5, 0, 0));
    assert_eq!(driven.requests().len(), 1);
    driven.reply(&asked[0], Reply::Done);
    assert_eq!(driven.requests().len(), 1);
}

#[test]
fn requests_on_any_byte_are_served() {
    let mut driven = attached();
    for (offset, length) in [(1, 1), (511, 2), (4095, 2), (3, 9000), (SIZE_BYTES - 1, 1)] {
        for kind in [cmd::READ, cmd::TRIM, cmd::WRITE_ZEROES, cmd::BLOCK_STATUS] {
            driven.feed(&request(kind, 0, 9, offset, length));
            assert_eq!(driven.requests().len(), 1, "type {kind} {offset}+{length}");
        }
        driven.feed(&write(9, offset, &vec![1; length as usize]));
        assert_eq!(driven.requests().len(), 1, "a write {offset}+{length}");
    }
}

#[test]
fn what_is_dropped_is_not_wanted() {
    let mut driven = attached();
    driven.feed(&request(cmd::WRITE, 0, 9, 0, u32::MAX));
    assert_eq!((driven.session.payload_bytes(), driven.session.wants_input()), (0, true));
    driven.feed(&[0; 4]);
    assert_eq!((driven.session.payload_bytes(), driven.session.buffered_bytes()), (0, 0));
}

#[test]
fn a_request_beyond_the_share_waits_for_a_loan_and_gives_it_back() {
    let limits = Limits { in_flight_bytes_max: 8192, unsent_bytes_max: 8192, ..Limits::default() };
    let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), limits, true, false);
    (driven.lends, driven.sends_at_once) = (false, false);
    driven.feed(&[request(cmd::READ, 0, 1, 0, 8192), request(cmd::READ, 0, 2, 0, 16384)].concat());
    let [first] = &driven.requests()[..] else { panic!("the share is free") };
    assert_eq!(driven.trace, [], "a loan is asked for when nothing else is in flight");
    driven.reply(first, Reply::Data(Payload::zeros(8192)));
    driven.sent();
    assert_eq!(driven.trace, [Action::Borrow(16384)]);
    assert!(!driven.session.wants_input() && driven.session.in_flight() == 0);
    driven.trace.clear();
    driven.flush();
    driven.lend();
    let [second] = &driven.requests()[..] else { panic!("a loan serves the request") };
    assert_eq!((driven.session.borrowed_bytes(), driven.session.awaits_client()), (16384, false));
    driven.reply(second, Reply::Data(Payload::zeros(16384)));
    assert_eq!(driven.session.borrowed_bytes(), 16384, "the reply is not read yet");
    assert!(driven.session.awaits_client());
    driven.flush();
    assert_eq!(driven.session.borrowed_bytes(), 0);
}

#[test]
fn a_client_that_reads_nothing_is_not_read_either() {
    let limits = Limits { unsent_bytes_max: 1000, ..Limits::default() };
    let mut actions = Vec::new();
    let mut session = nbd::Session::new(limits, nbd::TlsPolicy::None, &mut actions);
    session.receive(crate::common::client_flags().into(), &mut actions);
    for _ in 0..1000 {
        if session.wants_input() {
            session.receive(crate::common::option(99, b"").into(), &mut actions);
        }
    }
    let unsent = session.unsent_bytes();
    assert!(unsent < 1100 && !session.wants_input());
    session.sent(unsent, &mut actions);
    assert!(session.wants_input());
}

#[test]
fn replies_never_read_stop_the_requests() {
    let limits = Limits { unsent_bytes_max: 1000, ..Limits::default() };
    let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), limits, true, false);
    driven.sends_at_once = false;
    driven.feed(&request(cmd::FLUSH, 1 << 15, 9, 0, 0).repeat(10_000));
    assert!(driven.session.unsent_bytes() < 1200 && !driven.session.wants_input());
    let mut answers = 0;
    while driven.session.unsent_bytes() > 0 {
        answers += structured(&driven.sent()).len();
        driven.flush();
    }
    assert_eq!(answers, 10_000);
}

#[test]
fn a_disconnect_waits_for_what_is_in_flight() {
    let mut driven = attached();
    driven.feed(&write(1, 0, &[1; 512]));
    driven.feed(&request(cmd::DISC, 0, 2, 0, 0));
    driven.feed(&write(3, 0, &[1; 512]));
    let asked = driven.requests();
    assert_eq!((asked.len(), driven.session.is_closed(), driven.session.wants_input()), (1, false, false));
    assert_eq!(driven.session.buffered_bytes(), 0, "what follows a disconnect is dropped");
    driven.reply(&asked[0], Reply::Done);
    assert_eq!(driven.trace.len(), 2);
    assert_eq!(driven.trace[1], Action::Close(CloseReason::Disconnected));
}

#[test]
fn bad_magic_ends_the_session_and_late_replies_are_dropped() {
    let mut driven = attached();
    driven.feed(&write(1, 0, &[1; 512]));
    let asked = driven.requests();
    driven.feed(&[0; 28]);
    assert!(matches!(driven.trace[..], [Action::Close(CloseReason::Violation(_))]));
    driven.reply(&asked[0], Reply::Done);
    assert!(driven.sent().is_empty());
}

#[test]
fn a_server_that_shuts_down_answers_what_is_in_flight() {
    let mut driven = attached();
    driven.feed(&write(1, 0, &[1; 512]));
    driven.session.shut_down();
    let asked = driven.requests();
    driven.reply(&asked[0], Reply::Done);
    assert_eq!(structured(&driven.sent())[0].errno, 0);
    assert_eq!(refused(&mut driven, &write(9, 0, &[1; 512])), Errno::Shutdown as u32);
}

#[test]
fn a_message_too_long_is_cut_between_characters() {
    let mut driven = attached();
    driven.feed(&request(cmd::FLUSH, 0, 7, 0, 0));
    let asked = driven.requests().remove(0);
    let mut actions = Vec::new();
    let error = RequestError::new(Errno::Io, "\u{20ac}".repeat(30_000));
    driven.session.reply(asked.tag, Err(error), &mut actions);
    let [Action::Send(sent)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(structured(&sent.to_vec())[0].errno, Errno::Io as u32);
    assert_eq!(sent.len(), 20 + 6 + 4095);
}

#[test]
fn a_large_payload_in_a_buffer_of_its_own_is_not_copied() {
    let mut driven = attached();
    driven.feed(&request(cmd::WRITE, 0, 1, 0, 1 << 16));
    assert_eq!(driven.session.payload_bytes(), 1 << 16);
    let buffer = bytes::Bytes::from(vec![6; 1 << 16]);
    let mut actions = Vec::new();
    driven.session.receive(buffer.clone(), &mut actions);
    let [Action::Request(request)] = &actions[..] else { panic!("{actions:?}") };
    let Command::Write { payload, .. } = &request.command else { panic!("{request:?}") };
    assert_eq!((payload.parts().len(), payload.parts()[0].as_ptr()), (1, buffer.as_ptr()));
}
