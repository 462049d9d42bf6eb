//! No order (`none`): clients do not write the same blocks at once, and nothing is done about it. (Kenchammana-Hosekote et al.: the lower
//! bound, `direct,none,none`.)
//!
//! Where two writes meet all the same, their stamps decide, as they do under every order: half of one and half of the other is never what
//! is left.

use super::Rule;

#[derive(Debug)]
pub(super) struct None;

impl Rule for None {
    fn about(&self) -> &'static str {
        "clients are expected not to write a block at the same time; if they do, bricks take the writes one after the other"
    }
}
