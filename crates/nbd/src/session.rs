//! A [`Session`]: one connection of one client, from the greeting to its end.
//!
//! It is a switch between the two phases, `negotiation` and `transmission`; both parse the same input.

use crate::action::{Action, Limits, Step, TlsPolicy};
use crate::export::{Export, Listed, LookupError};
use crate::input::Input;
use crate::negotiation::Negotiation;
use crate::output::{Output, Sender};
use crate::reply::Reply;
use crate::request::{RequestError, Tag};
use crate::transmission::Transmission;
use bytes::Bytes;

/// One connection. See the [crate]'s example.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    input: Input,
    sender: Sender,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Negotiation(Negotiation),
    Transmission(Box<Transmission>),
    Closed,
}

impl Session {
    /// A session on a new connection; the greeting is its first action.
    pub fn new(limits: Limits, tls: TlsPolicy, actions: &mut Vec<Action>) -> Session {
        assert!(limits.in_flight_max > 0, "a session must be allowed one request in flight");
        let mut sender = Sender::new(limits.unsent_bytes_max);
        let negotiation = Negotiation::new(limits, tls, &mut Output { sender: &mut sender, actions });
        Session { limits, input: Input::default(), sender, phase: Phase::Negotiation(negotiation) }
    }

    /// Takes received bytes, in parts of any size. What cannot be used yet is kept, so respect
    /// [`Session::wants_input`]. Payloads of writes share the memory of `input`.
    pub fn receive(&mut self, input: Bytes, actions: &mut Vec<Action>) {
        self.input.push(input);
        self.advance(actions);
    }

    /// Whether to read from the connection. While it is false, leave the bytes in the socket: the client waits.
    /// Ask again after [`Session::reply`], [`Session::sent`] and every other call.
    pub fn wants_input(&self) -> bool {
        match &self.phase {
            Phase::Negotiation(negotiation) => negotiation.wants_input(&self.sender),
            Phase::Transmission(transmission) => transmission.wants_input(&self.sender),
            Phase::Closed => false,
        }
    }

    /// Bytes that are missing of the payload of a write that is taken; 0 while nothing of the kind arrives. A driver that
    /// receives a large payload into buffers of its own copies nothing. Bytes that are only dropped do not count, however
    /// many a stranger announces, and no payload is longer than the export's maximum block size.
    pub fn payload_bytes(&self) -> usize {
        match &self.phase {
            Phase::Transmission(transmission) => transmission.payload_bytes(),
            Phase::Negotiation(_) | Phase::Closed => 0,
        }
    }

    /// Lends the session the bytes that it asked for by [`Action::Borrow`]. Panics when it did not ask.
    pub fn lend(&mut self, actions: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Transmission(transmission) => transmission.lend(),
            Phase::Negotiation(_) => panic!("a session borrows after negotiation"),
            Phase::Closed => return,
        }
        self.advance(actions);
    }

    /// Bytes lent by [`Session::lend`] and not given back yet.
    pub fn borrowed_bytes(&self) -> usize {
        match &self.phase {
            Phase::Transmission(transmission) => transmission.borrowed_bytes(),
            Phase::Negotiation(_) | Phase::Closed => 0,
        }
    }

    /// Whether the next move is the client's: no request is handed out, but one is half received, or its reply unread.
    pub fn awaits_client(&self) -> bool {
        self.in_flight() == 0 && (self.payload_bytes() > 0 || self.unsent_bytes() > 0)
    }

    /// `bytes` of what was handed out by [`Action::Send`] have been written to the connection. Panics when they were not
    /// handed out.
    pub fn sent(&mut self, bytes: usize, actions: &mut Vec<Action>) {
        self.sender.sent(bytes);
        self.advance(actions);
    }

    /// Answers [`Action::Lookup`]. Panics when none is open.
    pub fn looked_up(&mut self, found: Result<Export, LookupError>, actions: &mut Vec<Action>) {
        self.answer(actions, |negotiation, out| negotiation.looked_up(found, out));
    }

    /// Answers [`Action::List`]. Panics when none is open.
    pub fn listed(&mut self, exports: Result<Vec<Listed>, LookupError>, actions: &mut Vec<Action>) {
        self.answer(actions, |negotiation, out| negotiation.listed(exports, out));
    }

    /// The TLS handshake succeeded. Panics without an [`Action::StartTls`].
    pub fn tls_started(&mut self, actions: &mut Vec<Action>) {
        self.answer(actions, |negotiation, _| negotiation.tls_started());
    }

    /// Answers the request `tag`. An answer after the session's end is dropped. Panics when no such request is in
    /// flight, and when the reply does not fit it.
    pub fn reply(&mut self, tag: Tag, reply: Result<Reply, RequestError>, actions: &mut Vec<Action>) {
        if let Phase::Transmission(transmission) = &mut self.phase {
            transmission.reply(tag, reply, &mut Output { sender: &mut self.sender, actions });
            self.advance(actions);
        }
    }

    /// From now on, options and requests are refused because the server shuts down. What is in flight still gets its
    /// reply; close the connection when [`Session::in_flight`] is 0.
    pub fn shut_down(&mut self) {
        match &mut self.phase {
            Phase::Negotiation(negotiation) => negotiation.shut_down(),
            Phase::Transmission(transmission) => transmission.shut_down(),
            Phase::Closed => {}
        }
    }

    /// Whether negotiation is over and requests are taken. Until then the client has not shown that it means well:
    /// the driver gives it limited time.
    pub fn is_attached(&self) -> bool {
        matches!(self.phase, Phase::Transmission(_))
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Requests handed out and not yet answered.
    pub fn in_flight(&self) -> usize {
        match &self.phase {
            Phase::Transmission(transmission) => transmission.in_flight(),
            _ => 0,
        }
    }

    /// Bytes of input that the session holds: unparsed, or of a payload that is not complete.
    pub fn buffered_bytes(&self) -> usize {
        let partial = match &self.phase {
            Phase::Transmission(transmission) => transmission.partial_bytes(),
            _ => 0,
        };
        self.input.len() + partial
    }

    /// Bytes handed out to be sent and not yet reported by [`Session::sent`].
    pub fn unsent_bytes(&self) -> usize {
        self.sender.unsent_bytes()
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn answer(
        &mut self,
        actions: &mut Vec<Action>,
        with: impl FnOnce(&mut Negotiation, &mut Output<'_>) -> Step<Box<Transmission>>,
    ) {
        let step = match &mut self.phase {
            Phase::Negotiation(negotiation) => {
                with(negotiation, &mut Output { sender: &mut self.sender, actions })
            }
            Phase::Transmission(_) => panic!("a lookup is answered after negotiation"),
            Phase::Closed => return,
        };
        self.take(step, actions);
        self.advance(actions);
    }

    fn advance(&mut self, actions: &mut Vec<Action>) {
        loop {
            let mut out = Output { sender: &mut self.sender, actions };
            let step = match &mut self.phase {
                Phase::Negotiation(negotiation) => negotiation.advance(&mut self.input, &mut out),
                Phase::Transmission(transmission) => {
                    transmission.advance(&mut self.input, &mut out).without_attaching()
                }
                Phase::Closed => return self.input.clear(),
            };
            if !self.take(step, actions) {
                return;
            }
        }
    }

    /// Does a step and says whether to go on.
    fn take(&mut self, step: Step<Box<Transmission>>, actions: &mut Vec<Action>) -> bool {
        match step {
            Step::Again => {}
            Step::Wait => return false,
            Step::Attach(transmission) => self.phase = Phase::Transmission(transmission),
            Step::Close(reason) => {
                self.phase = Phase::Closed;
                actions.push(Action::Close(reason));
            }
        }
        true
    }
}
