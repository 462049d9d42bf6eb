//! Data locks (`dlock`): each brick is the lock server of what it holds, and a write takes the lock as it is prepared there.
//! (Kenchammana-Hosekote et al., section 2.2.2, after the T10 proposal.)
//!
//! A small write of a parity layout begins at its data brick in any case. A write of several bricks begins at the one with the lowest number,
//! alone, and goes on to the others once it has its turn there: so writes of the same blocks meet at one brick only.

use super::{Manner, Rule};

#[derive(Debug)]
pub(super) struct DataLock;

impl Rule for DataLock {
    fn manner(&self, _is_behind_gate: bool) -> Manner {
        Manner { first_alone: true, ..Manner::WAITS }
    }

    fn about(&self) -> &'static str {
        "a write is prepared at one brick first, where it waits for earlier ones, and at the others then"
    }
}
