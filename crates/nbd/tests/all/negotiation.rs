//! Option haggling as a client sees it.

use crate::common::{
    Driven, client_flags, context_data, info_data, option, option_replies, u16_at, u32_at, u64_at,
};
use nbd::wire::{self, info, option as opt, option_reply as rep, transmission as flag};
use nbd::{Action, CloseReason, Limits, TlsPolicy};

fn greeted(tls: TlsPolicy) -> Driven {
    let mut driven = Driven::new(Limits::default(), tls);
    assert_eq!(driven.sent(), *b"NBDMAGICIHAVEOPT\0\x03");
    driven.feed(&client_flags());
    driven
}

/// The types of the replies to one option.
fn kinds(driven: &mut Driven, code: u32, data: &[u8]) -> Vec<u32> {
    driven.feed(&option(code, data));
    let replies = option_replies(&driven.sent());
    assert!(replies.iter().all(|(option, ..)| *option == code));
    replies.into_iter().map(|(_, kind, _)| kind).collect()
}

fn violates(driven: &Driven) -> bool {
    driven.session.is_closed()
        && matches!(driven.trace.last(), Some(Action::Close(CloseReason::Violation(_))))
}

#[test]
fn go_describes_and_attaches() {
    let mut driven = greeted(TlsPolicy::None);
    driven.export.description = "words".into();
    driven.feed(&option(opt::GO, &info_data("v", &[info::NAME, info::DESCRIPTION, 77])));
    let replies = option_replies(&driven.sent());
    let data = |kind| {
        replies.iter().find(|(_, _, data)| data.len() > 1 && u16_at(data, 0) == kind).unwrap().2.clone()
    };
    let export = data(info::EXPORT);
    assert_eq!((u64_at(&export, 2), export.len()), (crate::common::SIZE_BYTES, 12));
    let expected = flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::CAN_MULTI_CONN;
    assert_eq!(u16_at(&export, 10), expected);
    let sizes = data(info::BLOCK_SIZE);
    assert_eq!((u32_at(&sizes, 2), u32_at(&sizes, 6), u32_at(&sizes, 10)), (512, 4096, 32 << 20));
    assert_eq!(
        (data(info::NAME)[2..].to_vec(), data(info::DESCRIPTION)[2..].to_vec()),
        (b"v".to_vec(), b"words".to_vec())
    );
    assert_eq!(replies.last().unwrap(), &(opt::GO, rep::ACK, vec![]));
    assert!(driven.session.is_attached());
}

#[test]
fn info_does_not_attach_and_failure_is_no_end() {
    let mut driven = greeted(TlsPolicy::None);
    assert_eq!(kinds(&mut driven, opt::INFO, &info_data("v", &[])), [rep::INFO, rep::INFO, rep::ACK]);
    assert_eq!(kinds(&mut driven, opt::GO, &info_data("w", &[])), [rep::ERR_UNKNOWN]);
    assert_eq!(kinds(&mut driven, opt::GO, b"nonsense"), [rep::ERR_INVALID]);
    assert_eq!(kinds(&mut driven, opt::GO, &info_data("v\0", &[])), [rep::ERR_INVALID]);
    assert!(!driven.session.is_attached());
    assert_eq!(kinds(&mut driven, opt::GO, &info_data("v", &[])), [rep::INFO, rep::INFO, rep::ACK]);
    assert!(driven.session.is_attached());
}

#[test]
fn export_name_answers_with_and_without_zeroes() {
    for (flags, len) in [([0, 0, 0, 3], 10), ([0, 0, 0, 1], 134), ([0, 0, 0, 0], 134)] {
        let mut driven = Driven::new(Limits::default(), TlsPolicy::None);
        driven.sent();
        driven.feed(&flags);
        driven.feed(&option(opt::EXPORT_NAME, b"v"));
        let answer = driven.sent();
        assert_eq!((u64_at(&answer, 0), answer.len()), (crate::common::SIZE_BYTES, len));
        assert!(driven.session.is_attached());
    }
}

#[test]
fn export_name_of_nothing_ends_the_session() {
    for name in [&b"w"[..], b"\xff", &[b'n'; 5000], &[b'n'; 100_000]] {
        let mut driven = greeted(TlsPolicy::None);
        driven.feed(&option(opt::EXPORT_NAME, name));
        assert!(matches!(driven.trace[..], [Action::Close(CloseReason::Refused(_))]));
    }
}

#[test]
fn list_gives_names_and_descriptions() {
    let mut driven = greeted(TlsPolicy::None);
    driven.feed(&option(opt::LIST, b""));
    let replies = option_replies(&driven.sent());
    assert_eq!(replies[0], (opt::LIST, rep::SERVER, b"\0\0\0\x01va volume".to_vec()));
    assert_eq!(replies[1], (opt::LIST, rep::ACK, vec![]));
    assert_eq!(kinds(&mut driven, opt::LIST, b"x"), [rep::ERR_INVALID]);
}

#[test]
fn unknown_and_oversized_options_are_refused_and_skipped() {
    let mut driven = greeted(TlsPolicy::None);
    for code in [0, 4, 11, 12, u32::MAX] {
        assert_eq!(kinds(&mut driven, code, &[1; 100_000]), [rep::ERR_UNSUP]);
    }
    assert_eq!(kinds(&mut driven, opt::GO, &[0; 100_000]), [rep::ERR_TOO_BIG]);
    assert_eq!(kinds(&mut driven, opt::STARTTLS, b""), [rep::ERR_POLICY]);
    assert_eq!(kinds(&mut driven, opt::LIST, b""), [rep::SERVER, rep::ACK]);
    assert_eq!(driven.session.buffered_bytes(), 0);
}

#[test]
fn an_oversized_option_is_not_kept() {
    let mut driven = greeted(TlsPolicy::None);
    let mut header = option(opt::GO, b"");
    header[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    driven.feed(&header);
    for _ in 0..100 {
        driven.feed(&[0; 65536]);
        assert_eq!(driven.session.buffered_bytes(), 0);
    }
}

#[test]
fn abort_is_acknowledged() {
    let mut driven = greeted(TlsPolicy::Required);
    assert_eq!(kinds(&mut driven, opt::ABORT, b""), [rep::ACK]);
    assert_eq!(driven.trace, [Action::Close(CloseReason::Aborted)]);
    assert!(!driven.session.wants_input());
}

#[test]
fn required_tls_comes_first_and_once() {
    let mut driven = greeted(TlsPolicy::Required);
    for code in [opt::LIST, opt::GO, opt::INFO, opt::STRUCTURED_REPLY, opt::SET_META_CONTEXT, 99] {
        assert_eq!(kinds(&mut driven, code, b""), [rep::ERR_TLS_REQD]);
    }
    assert_eq!(kinds(&mut driven, opt::STARTTLS, b""), [rep::ACK]);
    assert_eq!(driven.trace, [Action::StartTls]);
    assert!(!driven.session.wants_input());
    driven.tls_started();
    assert_eq!(kinds(&mut driven, opt::STARTTLS, b""), [rep::ERR_INVALID]);
    assert_eq!(kinds(&mut driven, opt::LIST, b""), [rep::SERVER, rep::ACK]);
}

#[test]
fn required_tls_refuses_export_name() {
    let mut driven = greeted(TlsPolicy::Required);
    driven.feed(&option(opt::EXPORT_NAME, b"v"));
    assert!(matches!(driven.trace[..], [Action::Close(CloseReason::Refused(_))]));
}

#[test]
fn plain_text_around_starttls_is_a_violation() {
    let mut before = greeted(TlsPolicy::Offered);
    before.feed(&[option(opt::STARTTLS, b""), option(opt::LIST, b"")].concat());
    assert!(violates(&before) && before.sent().is_empty());

    let mut after = greeted(TlsPolicy::Offered);
    after.feed(&option(opt::STARTTLS, b""));
    after.feed(b"x");
    assert!(violates(&after));
}

#[test]
fn tls_forgets_what_was_agreed_in_plain_text() {
    let mut driven = greeted(TlsPolicy::Offered);
    assert_eq!(kinds(&mut driven, opt::STRUCTURED_REPLY, b""), [rep::ACK]);
    assert_eq!(kinds(&mut driven, opt::STARTTLS, b""), [rep::ACK]);
    driven.tls_started();
    let data = context_data("v", &[wire::BASE_ALLOCATION]);
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &data), [rep::ERR_INVALID]);
}

#[test]
fn contexts_need_structured_replies() {
    let mut driven = greeted(TlsPolicy::None);
    let data = context_data("v", &["x:y", wire::BASE_ALLOCATION]);
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &data), [rep::ERR_INVALID]);
    assert_eq!(kinds(&mut driven, opt::STRUCTURED_REPLY, b""), [rep::ACK]);
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &data), [rep::META_CONTEXT, rep::ACK]);
    assert_eq!(
        kinds(&mut driven, opt::LIST_META_CONTEXT, &context_data("v", &[])),
        [rep::META_CONTEXT, rep::ACK]
    );
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &context_data("v", &["x:y"])), [rep::ACK]);
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &context_data("w", &[])), [rep::ERR_UNKNOWN]);
    assert_eq!(kinds(&mut driven, opt::SET_META_CONTEXT, &data[1..]), [rep::ERR_INVALID]);
}

#[test]
fn an_export_may_require_tls() {
    let secret = info_data("secret", &[]);
    let mut offered = greeted(TlsPolicy::Offered);
    assert_eq!(kinds(&mut offered, opt::GO, &secret), [rep::ERR_TLS_REQD]);
    assert_eq!(kinds(&mut greeted(TlsPolicy::None), opt::GO, &secret), [rep::ERR_POLICY]);
    assert_eq!(kinds(&mut offered, opt::STARTTLS, b""), [rep::ACK]);
    offered.tls_started();
    assert_eq!(kinds(&mut offered, opt::GO, &secret), [rep::ERR_POLICY]);
}

#[test]
fn contexts_count_for_the_export_of_the_last_selection() {
    let base = wire::BASE_ALLOCATION;
    let cases = [
        (vec![context_data("v", &[base])], true),
        (vec![context_data("other", &[base])], false),
        (vec![context_data("v", &[base]), context_data("v", &[])], false),
        (vec![context_data("v", &[base]), b"nonsense".to_vec()], false),
        (vec![context_data("v", &[]), context_data("v", &[base])], true),
    ];
    for (selections, served) in cases {
        let mut driven = greeted(TlsPolicy::None);
        kinds(&mut driven, opt::STRUCTURED_REPLY, b"");
        selections.iter().for_each(|data| drop(kinds(&mut driven, opt::SET_META_CONTEXT, data)));
        kinds(&mut driven, opt::GO, &info_data("v", &[]));
        driven.feed(&crate::common::request(wire::command::BLOCK_STATUS, 0, 1, 0, 512));
        assert_eq!(driven.requests().len(), usize::from(served), "{selections:?}");
    }
}

#[test]
fn strange_clients_are_dropped() {
    let mut unknown_flag = Driven::new(Limits::default(), TlsPolicy::None);
    unknown_flag.feed(&[0, 0, 0, 7]);
    assert!(violates(&unknown_flag));

    let mut no_magic = greeted(TlsPolicy::None);
    no_magic.feed(b"GET / HTTP/1.1\r\n");
    assert!(violates(&no_magic));

    let mut not_fixed = Driven::new(Limits::default(), TlsPolicy::None);
    not_fixed.feed(&[0, 0, 0, 0]);
    not_fixed.feed(&option(opt::LIST, b""));
    assert!(violates(&not_fixed));
}

#[test]
fn a_server_that_shuts_down_says_so() {
    let mut driven = greeted(TlsPolicy::None);
    driven.session.shut_down();
    assert_eq!(kinds(&mut driven, opt::LIST, b""), [rep::ERR_SHUTDOWN]);
    assert_eq!(kinds(&mut driven, opt::ABORT, b""), [rep::ACK]);
}
