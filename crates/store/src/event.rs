//! What a store is told, and what it asks for.

use crate::io::{Io, IoDone};
use crate::open_error::OpenError;
use wire::disk::{Command, Recovered, Reply};

/// What happens to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    Command(Command),
    Io(IoDone),
}

/// What a store asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEffect {
    Io(Io),
    /// An answer to the participant.
    Reply(Reply),
    /// The end of opening: what was found, or why the disk is refused. A refused store answers all with
    /// [`StoreError::Failed`].
    Opened(Result<Box<Recovered>, OpenError>),
}
