//! `lt`: the code of the RobuSTore paper, with what its authors did to it.

use super::draw::Draw;
use super::inactivation::{Lacking, System};
use super::peeling::Peeling;
use super::rows::Rows;
use super::schedule::{Schedule, Target};
use super::soliton::{Degrees, Spike};

/// An LT code (Luby 2002) with uniform coverage: the blocks of its symbols are taken from shuffled lists of all blocks, one list
/// after another, so that each block is in as many symbols as any other, but for one (Uyeda, Xia and Chien 2004).
///
/// It is rateless: there are as many symbols as anybody asks for, in the order of their numbers. A block is in so few of them that
/// an update writes few symbols anew.
#[derive(Clone, Debug)]
pub struct Lt {
    blocks: u32,
    degrees: Degrees,
    draw: Draw,
    /// The list that blocks are taken from, and how many of it are taken.
    list: Vec<u32>,
    taken: usize,
    symbols: Rows,
}

/// The paper's constants of the robust soliton.
const C: f64 = 1.1;
const DELTA: f64 = 0.5;

impl Lt {
    /// The code with the paper's parameters.
    pub fn new(blocks: u32, seed: u64) -> Lt {
        Lt::with_degrees(blocks, Degrees::robust_soliton(blocks, C, DELTA, Spike::Round), seed)
    }

    /// A code of `blocks` blocks, at least one.
    pub fn with_degrees(blocks: u32, degrees: Degrees, seed: u64) -> Lt {
        assert!(blocks > 0, "a code of no blocks");
        Lt { blocks, degrees, draw: Draw::new(seed, 0), list: Vec::new(), taken: 0, symbols: Rows::default() }
    }

    /// The code of the first seed from `seed` on at which peeling gives all blocks back from the first `stored` symbols, and that
    /// seed. None of a thousand may do, where `stored` is hardly more than `blocks`.
    pub fn decodable(blocks: u32, stored: u32, seed: u64) -> Option<(Lt, u64)> {
        (seed..seed + 1000).find_map(|seed| {
            let mut code = Lt::new(blocks, seed);
            code.extend_to(stored);
            code.is_decodable(0..stored).then_some((code, seed))
        })
    }

    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Symbols that are drawn.
    pub fn symbols(&self) -> u32 {
        self.symbols.len() as u32
    }

    /// Draws more symbols, until there are `symbols`.
    pub fn extend_to(&mut self, symbols: u32) {
        while self.symbols() < symbols {
            let degree = self.degrees.draw(&mut self.draw);
            let mut sum = Vec::with_capacity(degree as usize);
            for _ in 0..degree {
                let block = self.take(&sum);
                sum.push(block);
            }
            self.symbols.push(sum);
        }
    }

    /// The next block that is not in `sum` yet. Panics if all are.
    fn take(&mut self, sum: &[u32]) -> u32 {
        loop {
            let fresh = (self.taken..self.list.len()).find(|at| !sum.contains(&self.list[*at]));
            if let Some(at) = fresh {
                self.list.swap(self.taken, at);
                self.taken += 1;
                return self.list[self.taken - 1];
            }
            // What is left of this list is in the sum: it stays, before another list.
            self.list.drain(..self.taken);
            self.taken = 0;
            let start = self.list.len();
            self.list.extend(0..self.blocks);
            for last in (start + 1..self.list.len()).rev() {
                let other = start + self.draw.below((last - start) as u32 + 1) as usize;
                self.list.swap(last, other);
            }
        }
    }

    /// The blocks of a symbol that is drawn.
    pub fn blocks_of(&self, symbol: u32) -> &[u32] {
        self.symbols.row(symbol as usize)
    }

    /// The symbols, of those drawn, that a change of one block changes.
    pub fn symbols_with(&self, block: u32) -> impl Iterator<Item = u32> {
        (0..).zip(self.symbols.iter()).filter(move |(_, sum)| sum.contains(&block)).map(|(symbol, _)| symbol)
    }

    /// Whether peeling gives all blocks back from these symbols.
    pub fn is_decodable(&self, symbols: impl IntoIterator<Item = u32>) -> bool {
        let mut peeling = Peeling::new(self.blocks);
        symbols.into_iter().any(|symbol| {
            peeling.arrive(self.blocks_of(symbol));
            peeling.is_complete()
        })
    }

    /// How to make symbols from the blocks.
    pub fn encode(&self, want: &[u32]) -> Schedule {
        let mut schedule = Schedule::new(self.blocks as usize, want.len());
        for (output, symbol) in (0..).zip(want) {
            schedule.sum(Target::Output(output), self.blocks_of(*symbol).iter().copied(), []);
        }
        schedule
    }

    /// How the paper's decoder makes all blocks from symbols that came in this order.
    ///
    /// # Errors
    /// If peeling does not find all.
    pub fn peel(&self, have: &[u32]) -> Result<Schedule, Lacking> {
        let mut schedule = Schedule::new(have.len(), self.blocks as usize);
        let mut slots = vec![None; self.blocks as usize];
        let mut peeling = Peeling::new(self.blocks);
        for symbol in have {
            for found in peeling.arrive(self.blocks_of(*symbol)) {
                let terms: Vec<u32> =
                    found.others.iter().filter_map(|other| slots[*other as usize]).collect();
                let slot = schedule.slot();
                schedule.sum(Target::Slot(slot), [found.symbol], terms);
                slots[found.block as usize] = Some(slot);
            }
        }
        for (output, slot) in (0..).zip(&slots) {
            let slot = slot.ok_or(Lacking { symbols: 1 })?;
            schedule.sum(Target::Output(output), [], [slot]);
        }
        Ok(schedule)
    }

    /// How to make blocks from symbols, where they determine them at all.
    ///
    /// # Errors
    /// If they do not.
    pub fn solve(&self, have: &[u32], want: &[u32]) -> Result<Schedule, Lacking> {
        let mut rows = Rows::default();
        have.iter().for_each(|symbol| rows.push(self.blocks_of(*symbol).iter().copied()));
        let mut wanted = Rows::default();
        want.iter().for_each(|block| wanted.push([*block]));
        System { rows: &rows, constraints: 0, columns: self.blocks, dense: 0, bound: 0 }.solve(&wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;

    #[test]
    fn every_block_is_in_as_many_symbols_as_any_other() {
        let mut code = Lt::new(100, 7);
        code.extend_to(400);
        let counts: Vec<usize> = (0..100).map(|block| code.symbols_with(block).count()).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
        for symbol in 0..400 {
            let mut blocks = code.blocks_of(symbol).to_vec();
            blocks.sort_unstable();
            blocks.dedup();
            assert_eq!(blocks.len(), code.blocks_of(symbol).len(), "no block twice in symbol {symbol}");
        }
    }

    /// The paper: "about 0.5% of the total encoded data".
    #[test]
    fn an_update_changes_a_half_per_cent_of_the_symbols() {
        let (code, _) = Lt::decodable(1024, 4096, 1).unwrap();
        let most = (0..1024).map(|block| code.symbols_with(block).count()).max().unwrap();
        assert!(most as f64 / 4096.0 <= 0.005, "{most} of 4096");
    }

    #[test]
    fn more_symbols_change_none_of_those_before() {
        let (mut few, mut many) = (Lt::new(50, 3), Lt::new(50, 3));
        few.extend_to(80);
        many.extend_to(200);
        assert!((0..80).all(|symbol| few.blocks_of(symbol) == many.blocks_of(symbol)));
    }

    #[test]
    fn both_decoders_give_back_what_was_encoded() {
        let mut rng = base::Rng::with_seed(5);
        let (code, _) = Lt::decodable(60, 240, 1).unwrap();
        let source: Vec<Vec<u8>> = (0..60).map(|_| (0..700).map(|_| rng.u8(..)).collect()).collect();
        let mut order: Vec<u32> = (0..240).collect();
        let run = |schedule: &Schedule, inputs: Vec<&[u8]>| {
            let mut outputs = vec![vec![0; 700]; schedule.outputs()];
            let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            schedule.run(&inputs, &mut slices, &mut Scratch::default());
            outputs
        };
        let symbols = run(&code.encode(&order), source.iter().map(Vec::as_slice).collect());
        let all: Vec<u32> = (0..60).collect();
        for _ in 0..20 {
            rng.shuffle(&mut order);
            let first = |from: usize, is_enough: &dyn Fn(&[u32]) -> Option<Schedule>| {
                (from..=240)
                    .find_map(|count| Some((count, is_enough(&order[..count])?)))
                    .expect("all are enough")
            };
            let (least, solved) = first(60, &|have| code.solve(have, &all).ok());
            let (more, peeled) = first(least, &|have| code.peel(have).ok());
            for (count, schedule) in [(least, solved), (more, peeled)] {
                let inputs =
                    order[..count].iter().map(|symbol| symbols[*symbol as usize].as_slice()).collect();
                assert_eq!(run(&schedule, inputs), source, "from {count} symbols");
            }
        }
    }
}
