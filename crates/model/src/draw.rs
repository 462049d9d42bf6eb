//! Draws from a seed that are the same on every machine.

use base::Rng;

/// A source of draws. It never draws a `usize`, whose draws differ between 32-bit and 64-bit machines.
#[derive(Clone, Debug)]
pub struct Draw(Rng);

impl Draw {
    /// All draws from `seed`.
    pub fn new(seed: u64) -> Draw {
        Draw(Rng::with_seed(seed))
    }

    /// A source of its own, so that one concern's draws do not move another's.
    pub fn fork(&mut self) -> Draw {
        Draw::new(self.bits())
    }

    /// What all further draws depend on: [`Draw::new`] of it draws the same.
    pub fn state(&self) -> u64 {
        self.0.get_seed()
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.u64(low..=high)
    }

    /// An index below `length`, which is not zero.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True once in a million times `ppm`.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// True in `percent` of a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.chance(percent * 10_000)
    }

    /// One of `choices`, which are not none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.index(choices.len())]
    }
}
