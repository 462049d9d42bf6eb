//! A running hash of all that happened: the same on every machine, and cheap.

use base::Payload;
use wire::{Packet, Wire};

/// A running 64-bit hash. Not for adversaries.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    hash: u64,
    scratch: Vec<u8>,
}

impl Default for Digest {
    fn default() -> Digest {
        Digest { hash: 0xcbf2_9ce4_8422_2325, scratch: Vec::new() }
    }
}

impl Digest {
    /// The hash so far.
    pub(crate) fn value(&self) -> u64 {
        self.hash
    }

    /// Takes in a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Takes in bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.number(u64::from_le_bytes(*word)));
        tail.iter().for_each(|&byte| self.number(u64::from(byte)));
        self.number(bytes.len() as u64);
    }

    /// Takes in content: its length and the first word of every 512 bytes, which in a simulated workload tell all.
    pub(crate) fn payload(&mut self, payload: &Payload) {
        for part in payload.parts() {
            for sector in part.chunks(512) {
                if let Some(word) = sector.first_chunk() {
                    self.number(u64::from_le_bytes(*word));
                }
            }
        }
        self.number(payload.len() as u64);
    }

    /// Takes in a packet.
    pub(crate) fn packet(&mut self, packet: &Packet) {
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        packet.message.append(&mut scratch);
        self.bytes(&scratch);
        self.scratch = scratch;
        self.payload(&packet.payload);
    }
}
