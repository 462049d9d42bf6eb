//! `bounded queues`: no machine asks for more at a time than a fixed bound, and none is woken for nothing for ever.
//!
//! The machines assert the bounds of their own queues (`Machine::check`); this watches them from outside.

use super::Violation;

const NAME: &str = "bounded queues";
/// Requests of one disk under way at a time.
pub const DISK_REQUESTS_MAX: usize = 4096;
/// Effects of one batch.
pub const EFFECTS_MAX: usize = 100_000;
/// Wakes of one machine at one moment.
pub const WAKES_MAX: u32 = 10_000;

/// Gateways that a client calls though they run no more: those that died since the directory listed them last.
pub const GONE_GATEWAYS_MAX: usize = 0;

/// Checks one figure against its bound.
pub fn check(what: &str, count: usize, bound: usize) -> Result<(), Violation> {
    if count <= bound {
        return Ok(());
    }
    Err(Violation::new(NAME, format!("{count} {what}, at most {bound} are expected")))
}
