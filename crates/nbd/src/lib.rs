//! The server side of the NBD protocol as a pure [`Session`]: bytes come in, [`Action`]s go out.
//!
//! The driver owns the socket. It feeds what it received, sends what it is told to, looks up exports, and answers
//! requests in any order:
//!
//! ```
//! use nbd::{Action, Export, Limits, Purpose, Session, TlsPolicy};
//!
//! let mut actions = Vec::new();
//! let mut session = Session::new(Limits::default(), TlsPolicy::None, &mut actions);
//! assert!(matches!(&actions[..], [Action::Send(greeting)] if greeting.len() == 18));
//! session.sent(18, &mut actions);
//! // The client's flags, then NBD_OPT_EXPORT_NAME for the export "v".
//! session.receive(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x01v".as_slice().into(), &mut actions);
//! assert!(matches!(&actions[1..], [Action::Lookup { name, purpose: Purpose::Attach }] if name == "v"));
//! session.looked_up(Ok(Export::new("v", 1 << 30)), &mut actions);
//! assert!(session.is_attached());
//! ```
//!
//! The source is `doc/proto.md` of the NetworkBlockDevice project; where it leaves a choice, the place that chooses
//! says so. Reading order: [`session`], [`action`], [`export`], [`request`], [`reply`], then `negotiation` with `option`,
//! `transmission`, and [`wire`] for the numbers.
//!
//! What a client can make a session hold is bounded by [`Limits`]: it stops taking requests (and says so by
//! [`Session::wants_input`]) while too many are in flight or too much of what it answered is unread.
//!
//! Deliberately absent: sockets, TLS, timeouts and the volumes themselves; the client side; extended headers and
//! oldstyle negotiation.

pub mod action;
pub mod export;
mod input;
mod negotiation;
mod option;
mod output;
pub mod reply;
pub mod request;
pub mod session;
mod transmission;
pub mod wire;

pub use action::{Action, CloseReason, Limits, Purpose, TlsPolicy};
pub use export::{BlockSizes, Export, Listed, LookupError};
pub use reply::{Extent, Piece, Reply};
pub use request::{Command, Errno, Request, RequestError, Tag};
pub use session::Session;
