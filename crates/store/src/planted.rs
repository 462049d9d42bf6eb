//! A fault that tests plant on purpose, to see that the checkers find it: checksums of blocks are not looked at.

use crate::config::SumCheck;

/// Takes rotten blocks for good ones.
pub const ANY_SUM: SumCheck = |_, _| true;
