//! Repeatable bytes and draws for tests: a seed gives the same ones on every machine.

use std::time::Duration;

/// A small generator (xorshift64*); good enough to tell blocks apart, no more.
pub struct Noise(u64);

impl Noise {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A draw below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// The time between two arrivals of a Poisson process.
    pub fn gap(&mut self, mean: Duration) -> Duration {
        let uniform = ((self.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        mean.mul_f64(-uniform.ln())
    }

    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let word = self.draw().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// That many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut buffer = vec![0; count];
        self.fill(&mut buffer);
        buffer
    }
}
