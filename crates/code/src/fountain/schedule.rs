//! Sums of blocks, planned once and done for each strip of them.

/// What is added up for what: found once from the symbols' numbers, and then done with their bytes, as often as there are
/// strips. Many threads may do strips of one schedule at once.
///
/// A strip is so short that all values between what comes in and what goes out stay in the processor's caches: each byte that
/// comes in is read from memory once or twice, each that goes out is written once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    inputs: usize,
    outputs: usize,
    slots: usize,
    sums: Vec<Sum>,
    /// What the sums add up, one after another: of each, its inputs and then its slots.
    terms: Vec<u32>,
}

/// One value is the sum of others, each times a coefficient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sum {
    target: Target,
    inputs: u32,
    slots: u32,
    /// What the first slot is multiplied by before it is added to what the target has: then there are no other terms.
    coefficient: Option<u8>,
}

/// Where a sum goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Slot(u32),
    Output(u32),
}

/// What a schedule costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Blocks that are read, from what comes in or from between.
    pub reads: usize,
    /// Blocks that are written, to between or to what goes out.
    pub writes: usize,
}

/// The values between, kept from strip to strip so that they need no new memory.
#[derive(Default, Debug)]
pub struct Scratch(Vec<Tile>);

/// So much of a block is summed up in registers: eight of the widest. With less, finding the terms takes longer than adding them.
const TILE: usize = 512;
/// So many tiles of a block are summed up one after another, before the next sum. With fewer, the walk from block to block costs
/// more than the sums: each time another page, and memory that no processor guesses. With more, nothing is gained, and the values
/// between take more room.
const TILES: usize = 4;
/// Inputs and outputs are asked for so many sums before they are needed.
const AHEAD: usize = 8;

/// A part of one value, which no load of a register has to fetch from two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Tile([u8; TILE]);

impl Schedule {
    pub(super) fn new(inputs: usize, outputs: usize) -> Schedule {
        Schedule { inputs, outputs, ..Schedule::default() }
    }

    /// A place for a value between.
    pub(super) fn slot(&mut self) -> u32 {
        self.slots += 1;
        self.slots as u32 - 1
    }

    /// `target` becomes the sum of some inputs and slots, of which it may be one.
    pub(super) fn sum(
        &mut self,
        target: Target,
        inputs: impl IntoIterator<Item = u32>,
        slots: impl IntoIterator<Item = u32>,
    ) {
        let start = self.terms.len();
        self.terms.extend(inputs);
        let inputs = self.terms.len() - start;
        self.terms.extend(slots);
        let slots = self.terms.len() - start - inputs;
        self.sums.push(Sum { target, inputs: inputs as u32, slots: slots as u32, coefficient: None });
    }

    /// `target += coefficient * slot`.
    pub(super) fn multiply_add(&mut self, target: u32, coefficient: u8, slot: u32) {
        self.terms.push(slot);
        self.sums.push(Sum {
            target: Target::Slot(target),
            inputs: 0,
            slots: 1,
            coefficient: Some(coefficient),
        });
    }

    /// Blocks that come in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Blocks that go out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    pub fn cost(&self) -> Cost {
        Cost { reads: self.terms.len(), writes: self.sums.len() }
    }

    /// Does it. All inputs and outputs have one length in bytes, be it a part of the blocks. Panics where they differ or are
    /// not as many as planned.
    pub fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], scratch: &mut Scratch) {
        assert_eq!((inputs.len(), outputs.len()), (self.inputs, self.outputs), "blocks of a schedule");
        let Some(length) = outputs.first().map(|output| output.len()) else { return };
        let lengths = inputs.iter().map(|input| input.len()).chain(outputs.iter().map(|output| output.len()));
        lengths.for_each(|other| assert_eq!(other, length, "blocks of one length"));
        scratch.0.resize(self.slots * TILES, Tile([0; TILE]));
        crate::simd::widest(Strips { schedule: self, length, inputs, outputs, slots: &mut scratch.0 });
    }
}

/// All strips of some blocks, as work for the widest registers there are.
struct Strips<'a, 'b> {
    schedule: &'a Schedule,
    length: usize,
    inputs: &'a [&'a [u8]],
    outputs: &'a mut [&'b mut [u8]],
    /// The first tiles of all values, then the second ones.
    slots: &'a mut [Tile],
}

impl crate::simd::Work for Strips<'_, '_> {
    #[inline(always)]
    fn run(mut self) {
        // No closure: what an iterator calls is compiled for the narrowest registers.
        let mut at = 0;
        while at < self.length {
            let left = self.length - at;
            let length = if left < TILE { left } else { (left / TILE).min(TILES) * TILE };
            self.strip(at, length);
            at += length;
        }
    }
}

impl Strips<'_, '_> {
    /// Does all sums for the bytes from `at` on: whole tiles, or less than one.
    #[inline(always)]
    fn strip(&mut self, at: usize, length: usize) {
        let (mut coming, mut coming_terms) = (self.schedule.sums.iter(), &self.schedule.terms[..]);
        for sum in coming.by_ref().take(AHEAD) {
            coming_terms = &coming_terms[(sum.inputs + sum.slots) as usize..];
        }
        let mut terms = &self.schedule.terms[..];
        for sum in &self.schedule.sums {
            if let Some(sum) = coming.next() {
                let (inputs, rest) = coming_terms.split_at(sum.inputs as usize);
                for input in inputs {
                    crate::simd::prefetch(&self.inputs[*input as usize][at..][..length]);
                }
                if let Target::Output(output) = sum.target {
                    crate::simd::prefetch(&self.outputs[output as usize][at..][..length]);
                }
                coming_terms = &rest[sum.slots as usize..];
            }
            let (inputs, rest) = terms.split_at(sum.inputs as usize);
            let (slots, rest) = rest.split_at(sum.slots as usize);
            terms = rest;
            match (sum.coefficient, sum.target) {
                (Some(coefficient), Target::Slot(target)) => {
                    for tile in 0..length.div_ceil(TILE) {
                        let source = *self.slot(slots[0], tile);
                        crate::multiply_add(self.slot_mut(target, tile), coefficient, &source);
                    }
                }
                _ if length < TILE => self.part_of_tile(sum.target, inputs, slots, at..at + length),
                _ => {
                    for tile in 0..length / TILE {
                        self.sum(sum.target, inputs, slots, at, tile);
                    }
                }
            }
        }
    }

    /// A tile of a value between.
    #[inline(always)]
    fn slot(&self, slot: u32, tile: usize) -> &[u8; TILE] {
        &self.slots[tile * self.schedule.slots + slot as usize].0
    }

    #[inline(always)]
    fn slot_mut(&mut self, slot: u32, tile: usize) -> &mut [u8; TILE] {
        &mut self.slots[tile * self.schedule.slots + slot as usize].0
    }

    /// Does one sum for a tile of the strip that begins at `at`.
    #[inline(always)]
    fn sum(&mut self, target: Target, inputs: &[u32], slots: &[u32], at: usize, tile: usize) {
        let bytes = at + tile * TILE..at + (tile + 1) * TILE;
        let mut sum = [0_u64; TILE / 8];
        for input in inputs {
            add(&mut sum, &self.inputs[*input as usize][bytes.clone()]);
        }
        for slot in slots {
            add(&mut sum, self.slot(*slot, tile));
        }
        let target = match target {
            Target::Slot(slot) => self.slot_mut(slot, tile),
            Target::Output(output) => &mut self.outputs[output as usize][bytes],
        };
        for (to, word) in target.as_chunks_mut::<8>().0.iter_mut().zip(sum) {
            *to = word.to_le_bytes();
        }
    }

    /// The same for the last bytes of blocks whose length is no multiple of a tile.
    #[inline(never)]
    fn part_of_tile(&mut self, target: Target, inputs: &[u32], slots: &[u32], bytes: std::ops::Range<usize>) {
        for (at, place) in bytes.enumerate() {
            let inputs = inputs.iter().map(|input| self.inputs[*input as usize][place]);
            let slots = slots.iter().map(|slot| self.slot(*slot, 0)[at]);
            let sum = inputs.chain(slots).fold(0, |sum, byte| sum ^ byte);
            match target {
                Target::Slot(slot) => self.slot_mut(slot, 0)[at] = sum,
                Target::Output(output) => self.outputs[output as usize][place] = sum,
            }
        }
    }
}

#[inline(always)]
fn add(sum: &mut [u64; TILE / 8], bytes: &[u8]) {
    for (word, bytes) in sum.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word ^= u64::from_le_bytes(*bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_of_any_length(length in 0..5000_usize, seed: u64) {
            let mut rng = base::Rng::with_seed(seed);
            let inputs: Vec<Vec<u8>> = (0..3).map(|_| (0..length).map(|_| rng.u8(..)).collect()).collect();
            let mut schedule = Schedule::new(3, 2);
            let [a, b] = [schedule.slot(), schedule.slot()];
            schedule.sum(Target::Slot(a), [0, 1], []);
            schedule.sum(Target::Slot(b), [2], [a]);
            schedule.multiply_add(a, 7, b);
            schedule.sum(Target::Output(0), [], [a]);
            schedule.sum(Target::Slot(b), [], [a, b]);
            schedule.sum(Target::Output(1), [1], [b]);
            let mut outputs = [vec![0; length], vec![0; length]];
            let [first, second] = &mut outputs;
            let blocks: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            schedule.run(&blocks, &mut [first, second], &mut Scratch::default());
            for at in 0..length {
                let (a, all) = (inputs[0][at] ^ inputs[1][at], inputs[0][at] ^ inputs[1][at] ^ inputs[2][at]);
                let a = a ^ crate::field::product(7, all);
                prop_assert_eq!([outputs[0][at], outputs[1][at]], [a, inputs[1][at] ^ a ^ all]);
            }
        }
    }
}
