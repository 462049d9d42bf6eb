//! Who may speak to whom: the cluster's authority, its certificates, and the tokens with which a machine joins.
//!
//! Reading order: [`certificates`], [`token`] (what an operator carries to a new machine), [`secrets`] (what the
//! directory keeps of it), [`files`].

pub mod certificates;
pub mod files;
pub mod secrets;
pub mod token;

pub use certificates::{Authority, Role};
pub use secrets::Secrets;
pub use token::Token;

use ring::rand::SecureRandom;

/// Bytes that nobody can guess, from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
