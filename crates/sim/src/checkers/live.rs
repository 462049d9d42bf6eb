//! `live`: once all is healed, every request is answered within a bound, and no error is an excuse that is not true.

use super::Violation;
use wire::IoError;

const NAME: &str = "live";

/// After healing, the oldest request must have been answered by now.
pub fn check_answered(
    unanswered: &[(u64, String)],
    now_ns: u64,
    healed_ns: u64,
    bound_ns: u64,
) -> Result<(), Violation> {
    let late = unanswered.iter().find(|(asked_ns, _)| now_ns - (*asked_ns).max(healed_ns) > bound_ns);
    late.map_or(Ok(()), |(asked_ns, what)| {
        let seconds = (now_ns - asked_ns) / 1_000_000_000;
        let count = unanswered.len();
        Err(Violation::new(NAME, format!("{what} is unanswered after {seconds} s ({count} requests are)")))
    })
}

/// Which errors may be answered in this run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excuses {
    pub full: bool,
    /// The volume lost more than its layout survives (bit rot on top of members left out).
    pub unreadable: bool,
    /// The volume was deleted.
    pub deleted: bool,
}

/// Whether an error is true.
pub fn check_error(error: IoError, excuses: Excuses, what: &str) -> Result<(), Violation> {
    let excused = match error {
        IoError::NoSpace => excuses.full,
        IoError::Unreadable | IoError::Failed => excuses.unreadable,
        IoError::NoVolume => excuses.deleted,
        IoError::OutOfRange | IoError::ReadOnly | IoError::TimedOut => false,
    };
    if excused { Ok(()) } else { Err(Violation::new(NAME, format!("{what} was answered with '{error}'"))) }
}
