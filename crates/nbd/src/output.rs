//! What a session asks for, and how much of what it said is still unsent.

use crate::action::Action;
use base::Payload;
use bytes::{Bytes, BytesMut};

/// Headers are cut from pieces of this size, so that most replies allocate nothing.
const HEADERS_BYTES: usize = 4096;

/// Counts what was handed out to be sent, and holds the memory of headers.
#[derive(Debug)]
pub(crate) struct Sender {
    headers: BytesMut,
    unsent_bytes: usize,
    unsent_bytes_max: usize,
}

impl Sender {
    pub(crate) fn new(unsent_bytes_max: usize) -> Sender {
        Sender { headers: BytesMut::new(), unsent_bytes: 0, unsent_bytes_max }
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        assert!(bytes <= self.unsent_bytes, "{bytes} B sent of {} B", self.unsent_bytes);
        self.unsent_bytes -= bytes;
    }

    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Whether so much is unsent that nothing new is taken on.
    pub(crate) fn is_congested(&self) -> bool {
        self.unsent_bytes > self.unsent_bytes_max
    }
}

/// The actions of one call, and the sender behind them.
pub(crate) struct Output<'a> {
    pub(crate) sender: &'a mut Sender,
    pub(crate) actions: &'a mut Vec<Action>,
}

impl Output<'_> {
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn send(&mut self, payload: Payload) {
        self.sender.unsent_bytes += payload.len();
        self.actions.push(Action::Send(payload));
    }

    /// Bytes that `write` puts together.
    pub(crate) fn header(&mut self, write: impl FnOnce(&mut BytesMut)) -> Bytes {
        let headers = &mut self.sender.headers;
        if headers.capacity() < 64 {
            headers.reserve(HEADERS_BYTES);
        }
        write(headers);
        headers.split().freeze()
    }
}
