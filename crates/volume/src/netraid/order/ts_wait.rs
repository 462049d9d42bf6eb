//! Timestamp order, by waiting (`ts-wait`): a write waits behind one with an earlier stamp, and is refused where it meets a later one
//! (wait-die).

use super::Rule;

#[derive(Debug)]
pub(super) struct TsWait;

impl Rule for TsWait {
    fn about(&self) -> &'static str {
        "a write waits at the brick behind an earlier one of the same block; an earlier one that comes late is refused, and comes again"
    }
}
