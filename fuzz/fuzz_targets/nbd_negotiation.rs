//! A client that says anything during negotiation. The first bytes choose the policy and how the rest is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nbd::{Action, Export, Limits, Listed, LookupError, Session, TlsPolicy};

/// What the session may hold besides what it was fed last: one option under way.
const LIMITS: Limits =
    Limits { in_flight_max: 8, in_flight_bytes_max: 65536, unsent_bytes_max: 4096, option_bytes_max: 4096 };

fuzz_target!(|input: &[u8]| {
    let &[choice, cut, ref bytes @ ..] = input else { return };
    let tls = [TlsPolicy::None, TlsPolicy::Offered, TlsPolicy::Required][usize::from(choice % 3)];
    let mut actions = Vec::new();
    let mut session = Session::new(LIMITS, tls, &mut actions);
    for chunk in bytes.chunks(usize::from(cut) + 1) {
        serve(&mut session, &mut actions, choice);
        if !session.is_attached() {
            assert_eq!(session.payload_bytes(), 0, "nothing of a negotiation is a payload");
        }
        session.receive(chunk.to_vec().into(), &mut actions);
        assert!(
            session.is_attached() || session.buffered_bytes() <= LIMITS.option_bytes_max + 256 + chunk.len()
        );
    }
    serve(&mut session, &mut actions, choice);
});

fn serve(session: &mut Session, actions: &mut Vec<Action>, choice: u8) {
    while !actions.is_empty() {
        for action in std::mem::take(actions) {
            match action {
                Action::Send(payload) => session.sent(payload.len(), actions),
                Action::Lookup { name, .. } => session.looked_up(find(name, choice), actions),
                Action::List => {
                    let listed = Listed { name: "v".into(), description: "a volume".into() };
                    session.listed(Ok(vec![listed]), actions);
                }
                Action::StartTls => session.tls_started(actions),
                Action::Close(_) => assert!(session.is_closed() && !session.wants_input()),
                Action::Borrow(_) => session.lend(actions),
                // Without an answer: the other target is about requests.
                Action::Request(_) => assert!(session.is_attached() || session.is_closed()),
            }
        }
    }
}

fn find(name: String, choice: u8) -> Result<Export, LookupError> {
    match choice / 3 % 4 {
        0 => Ok(Export::new(name, 1 << 20)),
        1 => Err(LookupError::TlsRequired(name.into())),
        2 => Err(LookupError::Unknown(name.into())),
        _ => Ok(Export { read_only: true, ..Export::new("default", 1000) }),
    }
}
