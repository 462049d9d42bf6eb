//! What the symbols of a segment are, and which of them are enough.

use super::access::Place;
use base::BrickId;
use code::fountain::{Lt, Peeling, Precoded, Schedule};
use std::collections::BTreeSet;

/// The code of a segment. Symbols are numbered; those below [`Coding::blocks`] are the blocks themselves, but under `lt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Symbol `i` is block `i` modulo the number of blocks: stripes, and copies of them.
    Copies { blocks: u32 },
    /// See [`Precoded`].
    Precoded { blocks: u32, seed: u16 },
    /// The code of the RobuSTore paper; see [`Lt`].
    Lt { blocks: u32, seed: u64, decoder: LtDecoder },
}

/// How the blocks of `lt` come back. Who puts must know: what is stored is to give the blocks back to whoever reads them so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LtDecoder {
    /// The paper's: a symbol of which one block is unknown tells that block.
    Peeling,
    /// Solves the equations. It needs fewer symbols, and takes longer.
    Solving,
}

/// A code that is ready to be worked with. To draw its graph takes time: it is made once for a segment.
#[derive(Clone, Debug)]
pub(crate) enum Coder {
    Copies { blocks: u32 },
    Precoded(Precoded),
    Lt(Box<Lt>, LtDecoder),
}

impl Coding {
    /// A precoded code of so many blocks.
    pub fn precoded(blocks: u32) -> Coding {
        Coding::Precoded { blocks, seed: Precoded::new(blocks).seed() }
    }

    /// How many blocks a segment has.
    pub fn blocks(self) -> u32 {
        match self {
            Coding::Copies { blocks } | Coding::Precoded { blocks, .. } | Coding::Lt { blocks, .. } => blocks,
        }
    }

    /// Whether there is such a code.
    pub(crate) fn is_valid(self) -> bool {
        (1..=Precoded::BLOCKS_MAX).contains(&self.blocks())
    }

    /// `symbols` is one more than the highest number that will be asked for.
    pub(crate) fn coder(self, symbols: u32) -> Coder {
        match self {
            Coding::Copies { blocks } => Coder::Copies { blocks },
            Coding::Precoded { blocks, seed } => Coder::Precoded(Precoded::with_seed(blocks, seed)),
            Coding::Lt { blocks, seed, decoder } => {
                let mut code = Lt::new(blocks, seed);
                code.extend_to(symbols);
                Coder::Lt(Box::new(code), decoder)
            }
        }
    }
}

impl Coder {
    fn blocks(&self) -> u32 {
        match self {
            Coder::Copies { blocks } => *blocks,
            Coder::Precoded(code) => code.blocks(),
            Coder::Lt(code, _) => code.blocks(),
        }
    }

    /// How to make symbols from the blocks. `None` where these are copied only.
    pub(crate) fn encode(&self, want: &[u32]) -> Option<Schedule> {
        match self {
            Coder::Copies { .. } => None,
            Coder::Precoded(code) => {
                let have: Vec<u32> = (0..code.blocks()).collect();
                Some(code.schedule(&have, want).expect("a code has its source"))
            }
            Coder::Lt(code, _) => Some(code.encode(want)),
        }
    }

    /// Which block a symbol is, as it stands.
    pub(crate) fn block_of(&self, symbol: u32) -> Option<u32> {
        match self {
            Coder::Copies { blocks } => Some(symbol % blocks),
            Coder::Precoded(code) => (symbol < code.blocks()).then_some(symbol),
            Coder::Lt(..) => None,
        }
    }

    /// How to make the blocks that are not among these symbols.
    ///
    /// # Errors
    /// If they do not suffice: how many more are needed at least.
    pub(crate) fn decode(&self, have: &[u32]) -> Result<Decoding, usize> {
        let as_they_are: BTreeSet<u32> = have.iter().filter_map(|symbol| self.block_of(*symbol)).collect();
        let missing: Vec<u32> = (0..self.blocks()).filter(|block| !as_they_are.contains(block)).collect();
        if missing.is_empty() {
            return Ok(Decoding { missing, schedule: None });
        }
        let lacking = (self.blocks() as usize).saturating_sub(have.len());
        let schedule = match self {
            Coder::Copies { .. } => return Err(missing.len()),
            _ if lacking > 0 => return Err(lacking),
            Coder::Precoded(code) => code.schedule(have, &missing),
            Coder::Lt(code, LtDecoder::Peeling) => code.peel(have),
            Coder::Lt(code, LtDecoder::Solving) => code.solve(have, &missing),
        };
        let schedule = Some(schedule.map_err(|lacking| lacking.symbols)?);
        Ok(Decoding { missing, schedule })
    }

    /// Whether what is stored gives the blocks back, also after the loss of any so many bricks.
    pub(crate) fn survives(&self, stored: &[Place], losses: u32) -> bool {
        let is_enough = |places: &mut dyn Iterator<Item = &Place>| {
            let have: Vec<u32> = places.map(|(symbol, _)| *symbol).collect();
            self.decode(&have).is_ok()
        };
        let bricks: BTreeSet<BrickId> = stored.iter().map(|(_, brick)| *brick).collect();
        match (self, losses) {
            (_, 0) => is_enough(&mut stored.iter()),
            (Coder::Copies { blocks }, _) => {
                let copies: BTreeSet<(u32, BrickId)> =
                    stored.iter().map(|(symbol, brick)| (symbol % blocks, *brick)).collect();
                let of = |block| copies.range((block, BrickId(0))..=(block, BrickId(u32::MAX))).count();
                (0..*blocks).all(|block| of(block) > losses as usize)
            }
            (Coder::Precoded(code), _) => {
                let mut counts: Vec<usize> =
                    bricks.iter().map(|brick| stored.iter().filter(|(_, at)| at == brick).count()).collect();
                counts.sort_unstable_by_key(|count| core::cmp::Reverse(*count));
                let lost: usize = counts.iter().take(losses as usize).sum();
                stored.len() - lost >= enough(code.blocks()) as usize && is_enough(&mut stored.iter())
            }
            // With these degrees what is enough follows from no count.
            (Coder::Lt(..), 1) => {
                bricks.iter().all(|brick| is_enough(&mut stored.iter().filter(|(_, at)| at != brick)))
            }
            (Coder::Lt(..), _) => false,
        }
    }
}

/// Symbols that come one by one, and when it is worth trying whether they are enough: a trial goes through all of them.
#[derive(Clone, Debug)]
pub(crate) enum Tally {
    /// The blocks of which no copy came.
    Copies {
        missing: BTreeSet<u32>,
    },
    Peeled(Peeling),
    /// With fewer than `enough` symbols there is no hope.
    Counted {
        came: BTreeSet<u32>,
        enough: usize,
    },
}

impl Tally {
    pub(crate) fn new(coder: &Coder) -> Tally {
        let blocks = coder.blocks();
        match coder {
            Coder::Copies { .. } => Tally::Copies { missing: (0..blocks).collect() },
            Coder::Lt(_, LtDecoder::Peeling) => Tally::Peeled(Peeling::new(blocks)),
            Coder::Precoded(_) | Coder::Lt(_, LtDecoder::Solving) => {
                Tally::Counted { came: BTreeSet::new(), enough: blocks as usize }
            }
        }
    }

    /// A symbol came: whether it is worth trying now.
    pub(crate) fn add(&mut self, coder: &Coder, symbol: u32) -> bool {
        match (self, coder) {
            (Tally::Copies { missing }, coder) => {
                missing.remove(&(symbol % coder.blocks()));
                missing.is_empty()
            }
            (Tally::Peeled(peeling), Coder::Lt(code, _)) => {
                peeling.arrive(code.blocks_of(symbol));
                peeling.is_complete()
            }
            (Tally::Counted { came, enough }, _) => {
                came.insert(symbol);
                came.len() >= *enough
            }
            (Tally::Peeled(_), _) => unreachable!("only `lt` is peeled"),
        }
    }

    /// It was tried, and at least so many more are needed.
    pub(crate) fn lacks(&mut self, symbols: usize) {
        if let Tally::Counted { came, enough } = self {
            *enough = came.len() + symbols;
        }
    }
}

/// With so many symbols `lt-precoded` gives its blocks back, but for one time in many.
pub(crate) fn enough(blocks: u32) -> u32 {
    blocks + blocks.div_ceil(64) + 4
}

/// How a segment comes back: its blocks that are among the symbols, and the others by sums.
#[derive(Clone, Debug)]
pub(crate) struct Decoding {
    pub(crate) missing: Vec<u32>,
    pub(crate) schedule: Option<Schedule>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_enough_when_each_block_is_there() {
        let coder = Coding::Copies { blocks: 3 }.coder(9);
        assert_eq!(coder.decode(&[0, 3, 4, 7]).unwrap_err(), 1);
        assert!(coder.decode(&[0, 4, 8]).is_ok_and(|decoding| decoding.schedule.is_none()));
    }

    #[test]
    fn copies_survive_on_different_bricks_only() {
        let coder = Coding::Copies { blocks: 2 }.coder(4);
        let at = |bricks: [u32; 4]| -> Vec<Place> { (0..).zip(bricks.map(BrickId)).collect() };
        assert!(coder.survives(&at([1, 2, 2, 1]), 1));
        assert!(!coder.survives(&at([1, 2, 1, 3]), 1), "both copies of block 0 are at brick 1");
        assert!(coder.survives(&at([1, 2, 1, 3]), 0) && !coder.survives(&at([1, 2, 2, 1]), 2));
    }

    /// However the symbols come, a trial that is worth it succeeds for copies and peeling, and none that would succeed is left out.
    #[test]
    fn a_tally_says_when_symbols_are_enough() {
        let mut rng = base::Rng::with_seed(3);
        let lt = |decoder| Coding::Lt { blocks: 40, seed: 1, decoder };
        let codings = [
            Coding::Copies { blocks: 40 },
            Coding::precoded(40),
            lt(LtDecoder::Peeling),
            lt(LtDecoder::Solving),
        ];
        let needed = codings.map(|coding| {
            let coder = coding.coder(160);
            let mut order: Vec<u32> = (0..160).collect();
            rng.shuffle(&mut order);
            let mut tally = Tally::new(&coder);
            let enough = (1..=160).find(|count| {
                let is_worth = tally.add(&coder, order[count - 1]);
                let decoding = coder.decode(&order[..*count]);
                assert!(is_worth || decoding.is_err(), "{coding:?}: {count} are enough, and it is not tried");
                let is_exact = matches!(tally, Tally::Copies { .. } | Tally::Peeled(_));
                assert!(!is_exact || is_worth == decoding.is_ok(), "{coding:?}: {count} symbols");
                let lacking = decoding.err();
                lacking.filter(|_| is_worth).into_iter().for_each(|symbols| tally.lacks(symbols));
                lacking.is_none()
            });
            enough.expect("all are enough")
        });
        let [copies, precoded, peeled, solved] = needed;
        assert!(precoded < solved.max(44) && solved <= peeled && peeled < copies, "{needed:?}");
    }

    #[test]
    fn source_symbols_need_no_sums() {
        let coder = Coding::precoded(8).coder(20);
        let decoding = coder.decode(&(0..8).collect::<Vec<u32>>()).unwrap();
        assert!(decoding.missing.is_empty() && decoding.schedule.is_none());
        let without_one: Vec<u32> = (1..10).collect();
        assert_eq!(coder.decode(&without_one).unwrap().missing, [0]);
    }
}
