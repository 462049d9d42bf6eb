//! What holds for every client, however it cuts its bytes.

use crate::common::{
    Driven, SIZE_BYTES, client_flags, context_data, fitting, hello, info_data, option, request, structured,
};
use nbd::wire::{self, command as cmd};
use nbd::{Action, Export, Limits, TlsPolicy};
use proptest::collection::vec;
use proptest::prelude::*;

/// Requests that are good, bad, or nearly good.
fn a_request() -> impl Strategy<Value = Vec<u8>> {
    let near = prop_oneof![0..SIZE_BYTES, Just(SIZE_BYTES), any::<u64>()];
    let offset = prop_oneof![4 => near.clone().prop_map(|at| at & !511), 1 => near];
    let length =
        prop_oneof![4 => (0u32..64).prop_map(|blocks| blocks * 512), 1 => 0u32..5000, 1 => any::<u32>()];
    let kind = prop_oneof![8 => 0u16..9, 1 => any::<u16>()];
    let flags = prop_oneof![4 => Just(0u16), 2 => 0u16..32, 1 => any::<u16>()];
    (kind, flags, 0u64..4, offset, length).prop_map(|(kind, flags, cookie, offset, length)| {
        let kind = if kind == cmd::DISC { cmd::FLUSH } else { kind };
        let length = if kind == cmd::WRITE { length % 20_000 } else { length };
        let mut bytes = request(kind, flags, cookie, offset, length);
        if kind == cmd::WRITE {
            bytes.extend((0..length).map(|at| at as u8));
        }
        bytes
    })
}

fn an_option() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just("v"), Just("w"), Just("")];
    prop_oneof![
        Just(option(wire::option::LIST, b"")),
        Just(option(wire::option::STARTTLS, b"")),
        Just(option(wire::option::STRUCTURED_REPLY, b"")),
        (name.clone(), 6u32..8).prop_map(|(name, code)| option(code, &info_data(name, &[1, 2, 3]))),
        (name, 9u32..11).prop_map(|(name, code)| option(code, &context_data(name, &[wire::BASE_ALLOCATION]))),
        (0u32..14, vec(any::<u8>(), 0..40)).prop_map(|(code, data)| option(code, &data)),
        (0u32..14, Just(vec![0; 20_000])).prop_map(|(code, data)| option(code, &data)),
    ]
}

/// A client from its flags to its last request.
fn a_client() -> impl Strategy<Value = Vec<u8>> {
    (vec(an_option(), 0..6), any::<bool>(), vec(a_request(), 0..20), vec(any::<u8>(), 0..40)).prop_map(
        |(options, structured, requests, rest)| {
            let mut bytes = client_flags();
            bytes.extend(options.concat());
            bytes.extend(&hello(structured, structured)[4..]);
            bytes.extend(requests.concat());
            bytes.extend(rest);
            bytes
        },
    )
}

fn trace(chunks: impl Iterator<Item = Vec<u8>>) -> Vec<Action> {
    let mut driven = Driven::new(Limits::default(), TlsPolicy::None);
    chunks.for_each(|chunk| driven.feed(&chunk));
    driven.trace
}

/// `bytes` in pieces of the sizes given, again and again.
fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut sizes = sizes.iter().cycle();
    let mut rest = bytes;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cuts_between_received_bytes_do_not_matter(client in a_client(), sizes in vec(1usize..6000, 1..8)) {
        let whole = trace(std::iter::once(client.clone()));
        prop_assert_eq!(&trace(cut(&client, &sizes).into_iter()), &whole);
        prop_assert_eq!(&trace(cut(&client, &[7]).into_iter()), &whole);
    }

    #[test]
    fn every_request_gets_exactly_one_reply(
        requests in vec(a_request().prop_filter("4 GiB do not fit in a test", |bytes| bytes.len() < 1 << 16), 1..40),
        order in vec(any::<prop::sample::Index>(), 40),
        in_flight_max in 1usize..5,
        in_flight_bytes_max in 0usize..40_000,
        unsent_bytes_max in 0usize..40_000,
    ) {
        let limits = Limits { in_flight_max, in_flight_bytes_max, unsent_bytes_max, ..Limits::default() };
        let mut driven = Driven::attached(Export::new("v", SIZE_BYTES), limits, true, true);
        driven.feed(&requests.concat());
        let (mut open, mut order) = (driven.requests(), order.iter().cycle());
        let mut sent = driven.sent();
        while !open.is_empty() {
            prop_assert!(open.len() <= in_flight_max);
            prop_assert_eq!(open.len(), driven.session.in_flight());
            let next = open.swap_remove(order.next().unwrap().index(open.len()));
            driven.reply(&next, fitting(&next.command));
            open.extend(driven.requests());
            sent.extend(driven.sent());
        }
        let mut asked: Vec<u64> = requests.iter().map(|bytes| crate::common::u64_at(bytes, 8)).collect();
        let mut answered: Vec<u64> = structured(&sent).iter().map(|answer| answer.cookie).collect();
        asked.sort_unstable();
        answered.sort_unstable();
        prop_assert_eq!(asked, answered);
        prop_assert!(driven.session.wants_input());
    }

    #[test]
    fn a_session_holds_no_more_than_its_limits(client in a_client(), noise in vec(any::<u8>(), 0..2000), at in any::<prop::sample::Index>()) {
        let limits = Limits { in_flight_max: 4, in_flight_bytes_max: 8192, option_bytes_max: 1000, ..Limits::default() };
        let mut driven = Driven::new(limits, TlsPolicy::None);
        let mut bytes = client;
        bytes.splice(at.index(bytes.len()).., noise);
        for chunk in cut(&bytes, &[1000]) {
            if driven.session.wants_input() {
                // What a driver allocates for: a payload, never what a refused length announces.
                prop_assert!(driven.session.payload_bytes() <= 32 << 20);
                driven.feed(&chunk);
            } else if let Some(open) = driven.requests().first() {
                driven.reply(open, fitting(&open.command));
            }
            // A chunk, a payload under way, and an option under way.
            prop_assert!(driven.session.buffered_bytes() <= 1000 + 20_000 + 1000);
            prop_assert!(driven.session.in_flight() <= 4);
        }
    }
}
