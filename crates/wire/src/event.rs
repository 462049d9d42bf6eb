//! What happened to bricks, as the directory remembers it.

use crate::wire_struct;
use base::{BrickId, Time};

/// Something that happened to a brick.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Events are numbered in the order in which they happened. No number is given twice, and a directory that is made anew goes on with
    /// higher ones.
    pub number: u64,
    /// By the directory's clock: nanoseconds since 1970 by its wall clock when it started, and on from there. After a restart this may be
    /// earlier than that of the event before.
    pub at: Time,
    pub brick: BrickId,
    /// What happened, in a word that programs may go by. A later release may have more of them.
    pub kind: String,
    /// Why a member was left out, in a word that programs may go by. Empty where something else happened.
    pub cause: String,
    /// Whether an operator may have to do something.
    pub is_trouble: bool,
    /// What the log says: what happened, and by what that is known. It begins with the brick's name, has one line and
    /// [`Event::TEXT_BYTES_MAX`] bytes at most.
    pub text: String,
}

impl Event {
    /// Enough for all that the directory says by itself; what a disk said when it failed may be longer and is cut.
    pub const TEXT_BYTES_MAX: usize = 512;
}

/// Some of the events that the directory remembers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// By their numbers.
    pub events: Vec<Event>,
    /// The number of the first event that is still remembered; 0 where there is none.
    pub oldest: u64,
    /// The number of the last one; 0 where there is none.
    pub newest: u64,
}

impl Events {
    /// So many events are remembered, the latest ones: those of a bad day of a large cluster, and half a MiB at most.
    pub const KEPT: usize = 1000;
}

wire_struct!(Event { number, at, brick, kind, cause, is_trouble, text });
wire_struct!(Events { events, oldest, newest });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::MESSAGE_BYTES_MAX;
    use crate::{AdminReply, AdminRequest, Message, Version, Wire};

    fn event(number: u64, length: usize) -> Event {
        let (kind, cause) = ("left-out".to_owned(), "silent".to_owned());
        let (at, brick, text) = (Time(7), BrickId(3), "x".repeat(length));
        Event { number, at, brick, kind, cause, is_trouble: true, text }
    }

    #[test]
    fn a_directory_of_before_is_not_asked_for_events() {
        let request = AdminRequest::ListEvents { after: 17, most: 50 };
        let message = Message::Admin { operation: 1, request };
        assert_eq!(message.since(), Version(22));
        assert_eq!(Message::from_bytes(&message.to_bytes()), Ok(message));
    }

    #[test]
    fn all_events_at_their_longest_fit_into_a_message() {
        let events = (1..=Events::KEPT as u64).map(|number| event(number, Event::TEXT_BYTES_MAX));
        let events = Events { events: events.collect(), oldest: 1, newest: Events::KEPT as u64 };
        let result = Ok(AdminReply::Events(Box::new(events)));
        let message = Message::AdminDone { operation: 1, result };
        let bytes = message.to_bytes();
        assert!(bytes.len() < MESSAGE_BYTES_MAX / 4, "{} bytes", bytes.len());
        assert_eq!(Message::from_bytes(&bytes), Ok(message));
    }
}
