//! A fault that tests plant on purpose, to see that the checkers find it: checksums of blocks are not looked at.

use core::cell::Cell;

thread_local! {
    static IGNORES_SUMS: Cell<bool> = const { Cell::new(false) };
}

/// From now on stores on this thread take rotten blocks for good ones, or no more.
pub fn ignore_sums(ignores: bool) {
    IGNORES_SUMS.set(ignores);
}

/// Whether they do.
pub(crate) fn ignores_sums() -> bool {
    IGNORES_SUMS.get()
}
