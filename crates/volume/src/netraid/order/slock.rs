//! Server locks (`slock`): a writer asks the lock server for its rows before it begins, and gives them back when it is done.
//! (Kenchammana-Hosekote et al., section 2.2.2: "requiring that the client acquire locks on all the data locations it needs to update
//! before sending updates".)
//!
//! The lock server of a group is its first current brick, so that a view change names its successor. Reads take no lock, as in the
//! paper's section 3.

use super::{Gate, Rule};

#[derive(Debug)]
pub(super) struct ServerLock;

impl Rule for ServerLock {
    fn gate(&self) -> Gate {
        Gate::Server
    }

    fn about(&self) -> &'static str {
        "a writer asks the group's first current brick for a lock on its rows, and writes once it has it"
    }
}
