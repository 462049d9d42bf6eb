//! `lt-precoded`: a systematic fountain code that needs hardly more symbols than there are blocks.

use super::draw::{Draw, prime_from};
use super::inactivation::{Lacking, System};
use super::rows::Rows;
use super::schedule::Schedule;
use super::soliton::Degrees;

/// A systematic code of some source blocks and of as many repair symbols as anybody wants. Symbol `i` is source block `i`, and
/// the symbols from [`Precoded::blocks`] on are for repair.
///
/// Between source and repair stand the *intermediate* blocks (Shokrollahi, "Raptor Codes", 2006; the construction follows RFC
/// 6330, section 5.3.3, with degrees and equations of our own). Each symbol is the sum of a few of them, which its number chooses.
/// Sparse equations bind all of them, and find the blocks that no symbol covers. A few dense equations over GF(256) bind sixteen
/// of them, and make up for symbols that say the same. The intermediate blocks are those from which the first symbols come out
/// as the source. Whether there are such is a matter of the graph, and so of the seed from which it is drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Precoded {
    blocks: u32,
    seed: u16,
    shape: Shape,
    degrees: Degrees,
}

/// How many intermediate blocks and equations there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    /// Blocks that have no sparse equation of their own: as many as source blocks and dense equations.
    plain: u32,
    /// Sparse equations, with one more block each. A prime.
    sparse: u32,
    /// The prime around which the choice of blocks goes.
    prime: u32,
}

/// Found by trial (`docs/decisions/2026-11-25-large-objects.md` has the table). Larger degrees and more equations lower the
/// overhead that is left, and cost more sums.
const DEGREE_MAX: u32 = 16;
const SHARE_OF_DEGREE_ONE: f64 = 0.005;
/// In how many sparse equations each plain block is.
const EQUATIONS_OF_A_BLOCK: u32 = 4;
const DENSE: u32 = 4;
/// The first so many blocks are in the dense equations.
const BOUND: u32 = 16;
/// A seed that will do is found within a few.
const SEEDS: u16 = 1000;
/// Each seed is tried with so many random choices of symbols.
const TRIALS: u64 = 8;

impl Shape {
    fn new(blocks: u32) -> Shape {
        let root = (1..).find(|x| x * (x - 1) >= 2 * blocks).expect("squares grow");
        let sparse = prime_from(blocks.div_ceil(100) + root);
        let plain = blocks + DENSE;
        Shape { plain, sparse, prime: prime_from(plain + sparse) }
    }

    fn columns(self) -> u32 {
        self.plain + self.sparse
    }

    /// The sparse equations (RFC 6330, section 5.3.3.3, without the columns that are never peeled).
    fn equations(self) -> Rows {
        let mut sums: Vec<Vec<u32>> = (0..self.sparse).map(|index| vec![self.plain + index]).collect();
        for block in 0..self.plain {
            let step = 1 + block / self.sparse % (self.sparse - 1);
            for time in 0..EQUATIONS_OF_A_BLOCK {
                sums[((block + time * step) % self.sparse) as usize].push(block);
            }
        }
        let mut rows = Rows::default();
        sums.into_iter().for_each(|sum| rows.push(sum));
        rows
    }
}

impl Precoded {
    /// The most source blocks of a code: beyond, to find a schedule takes longer than to follow it.
    pub const BLOCKS_MAX: u32 = 8192;

    /// A code of `blocks` source blocks, 1 to [`Precoded::BLOCKS_MAX`]. It has the first seed whose symbols have the source among
    /// them, and give it back from random choices that are about one per cent larger than it. Panics for other numbers.
    pub fn new(blocks: u32) -> Precoded {
        (0..SEEDS)
            .map(|seed| Precoded::with_seed(blocks, seed))
            .find(Precoded::is_good)
            .expect("one of a thousand graphs will do")
    }

    /// The code that [`Precoded::new`] found, by its seed.
    pub fn with_seed(blocks: u32, seed: u16) -> Precoded {
        assert!((1..=Precoded::BLOCKS_MAX).contains(&blocks), "a code of {blocks} blocks");
        let degrees = Degrees::truncated_soliton(SHARE_OF_DEGREE_ONE, DEGREE_MAX);
        Precoded { blocks, seed, shape: Shape::new(blocks), degrees }
    }

    fn is_good(&self) -> bool {
        let is_enough = |symbols: &[u32]| self.schedule(symbols, &[]).is_ok();
        let source: Vec<u32> = (0..self.blocks).collect();
        is_enough(&source)
            && (0..TRIALS).all(|trial| {
                let mut draw = Draw::new(u64::MAX, trial);
                let all = 2 * self.blocks + 2;
                let enough = self.blocks + self.blocks.div_ceil(100) + 1;
                let mut symbols: Vec<u32> = (0..all).collect();
                for at in 0..enough {
                    symbols.swap(at as usize, (at + draw.below(all - at)) as usize);
                }
                is_enough(&symbols[..enough as usize])
            })
    }

    /// Source blocks.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    pub fn seed(&self) -> u16 {
        self.seed
    }

    /// How to make the symbols `want` from the symbols `have`. Who encodes has the source, `0..blocks`. Who reads has what came
    /// first, and wants the source blocks that did not come. Who replaces a lost repair symbol wants that.
    ///
    /// # Errors
    /// If those that there are do not determine all.
    pub fn schedule(&self, have: &[u32], want: &[u32]) -> Result<Schedule, Lacking> {
        if have.len() < self.blocks as usize {
            return Err(Lacking { symbols: self.blocks as usize - have.len() });
        }
        let mut rows = self.shape.equations();
        let mut wanted = Rows::default();
        have.iter().for_each(|symbol| rows.push(self.neighbours(*symbol)));
        want.iter().for_each(|symbol| wanted.push(self.neighbours(*symbol)));
        let system = System {
            rows: &rows,
            constraints: self.shape.sparse as usize,
            columns: self.shape.columns(),
            dense: DENSE,
            bound: BOUND.min(self.shape.plain),
        };
        system.solve(&wanted)
    }

    /// The intermediate blocks whose sum a symbol is: at equal steps around a prime (RFC 6330, section 5.3.5.3).
    fn neighbours(&self, symbol: u32) -> impl Iterator<Item = u32> {
        let (columns, prime) = (self.shape.columns(), self.shape.prime);
        let mut draw = Draw::new(u64::from(self.seed), u64::from(symbol));
        let degree = self.degrees.draw(&mut draw).min(columns);
        let step = 1 + draw.below(prime - 1);
        let start = draw.below(prime);
        std::iter::successors(Some(start), move |at| Some((at + step) % prime))
            .filter(move |at| *at < columns)
            .take(degree as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;
    use proptest::prelude::*;

    fn bytes(length: usize, rng: &mut base::Rng) -> Vec<u8> {
        (0..length).map(|_| rng.u8(..)).collect()
    }

    fn run(schedule: &Schedule, inputs: &[&[u8]], length: usize) -> Vec<Vec<u8>> {
        let mut outputs = vec![vec![0; length]; schedule.outputs()];
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        schedule.run(inputs, &mut slices, &mut Scratch::default());
        outputs
    }

    fn encode(code: &Precoded, source: &[Vec<u8>], want: &[u32]) -> Vec<Vec<u8>> {
        let have: Vec<u32> = (0..code.blocks()).collect();
        let inputs: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
        run(&code.schedule(&have, want).expect("a code has its source"), &inputs, source[0].len())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn symbols_that_came_give_back_those_that_did_not(blocks in 1..200_u32, length in 1..1200_usize, extra in 0..10_u32, seed: u64) {
            let code = Precoded::new(blocks);
            let mut rng = base::Rng::with_seed(seed);
            let source: Vec<Vec<u8>> = (0..blocks).map(|_| bytes(length, &mut rng)).collect();
            let all: Vec<u32> = (0..3 * blocks + 20).collect();
            let symbols = encode(&code, &source, &all);
            prop_assert_eq!(&symbols[..blocks as usize], &source[..], "systematic");
            let mut order = all.clone();
            rng.shuffle(&mut order);
            let (have, want) = order.split_at((blocks + extra) as usize);
            match code.schedule(have, want) {
                Ok(schedule) => {
                    let inputs: Vec<&[u8]> = have.iter().map(|symbol| symbols[*symbol as usize].as_slice()).collect();
                    let made = run(&schedule, &inputs, length);
                    for (symbol, made) in want.iter().zip(&made) {
                        prop_assert_eq!(made, &symbols[*symbol as usize], "symbol {}", symbol);
                    }
                }
                Err(_) => prop_assert!(extra < 10, "ten symbols more than blocks were too few"),
            }
        }
    }

    #[test]
    fn too_few_symbols_are_said_to_be_too_few() {
        let code = Precoded::new(10);
        assert_eq!(code.schedule(&[0, 1, 2], &[3]), Err(Lacking { symbols: 7 }));
        let twice: Vec<u32> = (0..9).chain([0]).collect();
        assert!(code.schedule(&twice, &[9]).is_err(), "the same symbol twice says it once");
    }

    /// Mean and 99th percentile, in symbols more than blocks. The benchmark has 10,000 trials of this.
    #[test]
    fn the_overhead_is_a_few_symbols() {
        for (blocks, trials, mean_max) in [(16, 500, 0.1), (128, 300, 0.02), (1024, 20, 0.01)] {
            let code = Precoded::new(blocks);
            let mut rng = base::Rng::with_seed(u64::from(blocks));
            let overheads = (0..trials).map(|_| {
                let mut symbols: Vec<u32> = (0..4 * blocks).collect();
                rng.shuffle(&mut symbols);
                let needed = (blocks as usize..).find(|count| code.schedule(&symbols[..*count], &[]).is_ok());
                needed.expect("all symbols are enough") as f64 / f64::from(blocks) - 1.0
            });
            let mean = overheads.sum::<f64>() / f64::from(trials);
            assert!(mean <= mean_max, "{blocks} blocks: {mean}");
        }
    }

    /// What is stored must be read by every later release.
    #[test]
    fn the_graph_never_changes() {
        let mut rng = base::Rng::with_seed(1);
        let found = [1, 10, 128, 1024].map(|blocks| {
            let code = Precoded::new(blocks);
            let source: Vec<Vec<u8>> = (0..blocks).map(|_| bytes(8, &mut rng)).collect();
            let repair: Vec<u32> = (blocks..blocks + 100).collect();
            (code.seed(), base::checksum(&encode(&code, &source, &repair).concat()))
        });
        assert_eq!(found, [(0, 2326906337), (0, 196835926), (1, 3996370373), (2, 3868016005)]);
    }
}
