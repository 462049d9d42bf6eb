//! Free ports on loopback.

use crate::security::random;
use anyhow::{Result, ensure};
use std::net::TcpListener;

/// Below the range from which kernels take ports for outgoing connections, so that none of those takes a port between
/// its choice and its use, or while a killed daemon is away.
const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// `count` ports on which nobody listens now.
pub fn free(count: u32) -> Result<Vec<u16>> {
    let span = LAST - FIRST;
    let start = u16::from_le_bytes(random()) % span;
    let candidates = (0..span).map(|step| FIRST + (start + step) % span);
    let ports: Vec<u16> = candidates
        .filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .take(count as usize)
        .collect();
    ensure!(
        ports.len() == count as usize,
        "there are no {count} free ports between {FIRST} and {LAST} on loopback"
    );
    Ok(ports)
}
