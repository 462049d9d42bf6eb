//! Free ports on loopback.

use anyhow::{Result, bail};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which kernels take ports for outgoing connections, so that none of those takes a port between
/// its choice and its use, or while a killed daemon is away.
const FIRST: u32 = 11_000;
const LAST: u32 = 32_000;

/// A port that nobody listens on now. Processes begin at different places, and none gives the same port twice.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let span = LAST - FIRST;
    for _ in 0..span {
        let place = std::process::id().wrapping_mul(61) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + place % span) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {LAST}")
}
