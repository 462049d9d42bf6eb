//! What a session asks of its driver, what a driver may allow it, and how its phases go on. Knows no phase.

use crate::request::Request;
use base::Payload;
use core::convert::Infallible;
use thiserror::Error;

/// What one client may make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests handed out and not yet answered. At least 1.
    pub in_flight_max: usize,
    /// Bytes of data of the reads and writes in flight. A request that exceeds it alone is served alone, once the driver
    /// has lent its bytes ([`Action::Borrow`]).
    pub in_flight_bytes_max: usize,
    /// Bytes of replies that the client has not read, above which nothing more is taken from it.
    pub unsent_bytes_max: usize,
    /// Bytes of data of one option.
    pub option_bytes_max: usize,
}

impl Default for Limits {
    /// Room for deep queues of small requests and a few large ones: 256 requests, 16 MiB of them, 1 MiB unread.
    fn default() -> Limits {
        Limits {
            in_flight_max: 256,
            in_flight_bytes_max: 16 << 20,
            unsent_bytes_max: 1 << 20,
            option_bytes_max: 16 << 10,
        }
    }
}

/// Whether a client may, or must, upgrade to TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPolicy {
    /// There is no TLS: unix sockets, loopback.
    None,
    /// A client may, and must for exports whose lookup gives [`TlsRequired`](crate::LookupError::TlsRequired).
    Offered,
    /// Nothing else is answered before.
    Required,
}

/// What the driver has to do, in this order.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send these bytes, and report them by [`Session::sent`](crate::Session::sent).
    Send(Payload),
    /// Find this export and answer by [`Session::looked_up`](crate::Session::looked_up). The empty name asks for the default export.
    Lookup {
        /// The name that the client gave.
        name: String,
        purpose: Purpose,
    },
    /// List the exports and answer by [`Session::listed`](crate::Session::listed).
    List,
    /// Send what is to be sent, do the TLS handshake as its server, then call [`Session::tls_started`](crate::Session::tls_started). All further
    /// bytes travel inside TLS. If the handshake fails, close the connection.
    StartTls,
    /// A read or a write of this many bytes exceeds [`Limits::in_flight_bytes_max`] alone. Call [`Session::lend`](crate::Session::lend) when there
    /// is memory for it; until then the session takes nothing more from the client.
    Borrow(usize),
    /// Serve this request and answer by [`Session::reply`](crate::Session::reply).
    Request(Request),
    /// Send what is to be sent, then close the connection (TLS first). The session does nothing any more.
    Close(CloseReason),
}

/// What an export is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To tell the client about it.
    Describe,
    /// To serve requests on it: when the lookup succeeds, they follow.
    Attach,
}

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// The client said so during negotiation.
    #[error("the client ended the negotiation")]
    Aborted,
    /// The client said so, and all its requests are answered.
    #[error("the client disconnected")]
    Disconnected,
    /// The client asked for an export in the one way that leaves no room for an error.
    #[error("the client asked for an export by NBD_OPT_EXPORT_NAME, which cannot be refused otherwise: {0}")]
    Refused(String),
    /// The client broke the protocol in a way that leaves no common ground.
    #[error("the client broke the protocol: {0}")]
    Violation(String),
}

impl CloseReason {
    /// Whether the client ended the session in good order.
    pub fn is_clean(&self) -> bool {
        matches!(self, CloseReason::Aborted | CloseReason::Disconnected)
    }
}

/// What a phase made of the input. `T` is the phase that may follow on it: none on the last one.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// It went on; there may be more to do.
    Again,
    /// It needs more input, or an answer, or room.
    Wait,
    Attach(T),
    /// The session is over.
    Close(CloseReason),
}

impl Step<Infallible> {
    /// The same step of a session, which has a phase that can attach.
    pub(crate) fn without_attaching<T>(self) -> Step<T> {
        match self {
            Step::Again => Step::Again,
            Step::Wait => Step::Wait,
            Step::Attach(never) => match never {},
            Step::Close(reason) => Step::Close(reason),
        }
    }
}
