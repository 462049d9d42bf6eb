//! A machine whose invariant is broken panics. In a simulated run that is a finding like any other.

use sim::Violation;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

thread_local! {
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

struct Panic {
    text: String,
    place: String,
}

/// From now on panics are kept, and not printed where they happen to interrupt a progress bar. `RUST_BACKTRACE` brings the usual
/// noise back.
pub(super) fn keep() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
        let text = panic.payload_as_str().unwrap_or("a machine panicked").to_owned();
        LAST.set(Some(Panic { text, place }));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            usual(panic);
        }
    }));
}

/// What a run returns, or the invariant that it broke.
pub(super) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Violation> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        let last = LAST.take();
        let Panic { text, place } =
            last.unwrap_or_else(|| Panic { text: "a machine panicked".to_owned(), place: String::new() });
        let what = if place.is_empty() { text } else { format!("{text} ({place})") };
        Violation::at("invariant", what, &place)
    })
}
