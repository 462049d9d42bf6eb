//! What the symbols of a segment are, and which of them are enough.

use code::fountain::{Lt, Precoded, Schedule};
use std::collections::BTreeSet;

/// The code of a segment. Symbols are numbered; those below [`Coding::blocks`] are the blocks themselves, but under `lt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Symbol `i` is block `i` modulo the number of blocks: stripes, and copies of them.
    Copies { blocks: u32 },
    /// See [`Precoded`].
    Precoded { blocks: u32, seed: u16 },
    /// The code of the RobuSTore paper; see [`Lt`].
    Lt { blocks: u32, seed: u64 },
}

/// A code that is ready to be worked with. To draw its graph takes time: it is made once for a segment.
#[derive(Clone, Debug)]
pub(crate) enum Coder {
    Copies { blocks: u32 },
    Precoded(Precoded),
    Lt(Box<Lt>),
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

    /// `symbols` is one more than the highest number that will be asked for.
    pub(crate) fn coder(self, symbols: u32) -> Coder {
        match self {
            Coding::Copies { blocks } => Coder::Copies { blocks },
            Coding::Precoded { blocks, seed } => Coder::Precoded(Precoded::with_seed(blocks, seed)),
            Coding::Lt { blocks, seed } => {
                let mut code = Lt::new(blocks, seed);
                code.extend_to(symbols);
                Coder::Lt(Box::new(code))
            }
        }
    }
}

impl Coder {
    fn blocks(&self) -> u32 {
        match self {
            Coder::Copies { blocks } => *blocks,
            Coder::Precoded(code) => code.blocks(),
            Coder::Lt(code) => code.blocks(),
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
            Coder::Lt(code) => Some(code.encode(want)),
        }
    }

    /// Which block a symbol is, as it stands.
    pub(crate) fn block_of(&self, symbol: u32) -> Option<u32> {
        match self {
            Coder::Copies { blocks } => Some(symbol % blocks),
            Coder::Precoded(code) => (symbol < code.blocks()).then_some(symbol),
            Coder::Lt(_) => None,
        }
    }

    /// How to make the blocks that are not among these symbols. `None` where they do not suffice.
    pub(crate) fn decode(&self, have: &[u32]) -> Option<Decoding> {
        if have.len() < self.blocks() as usize {
            return None;
        }
        let as_they_are: BTreeSet<u32> = have.iter().filter_map(|symbol| self.block_of(*symbol)).collect();
        let missing: Vec<u32> = (0..self.blocks()).filter(|block| !as_they_are.contains(block)).collect();
        if missing.is_empty() {
            return Some(Decoding { missing, schedule: None });
        }
        let schedule = match self {
            Coder::Copies { .. } => return None,
            Coder::Precoded(code) => code.schedule(have, &missing).ok()?,
            Coder::Lt(code) => code.solve(have, &missing).ok()?,
        };
        Some(Decoding { missing, schedule: Some(schedule) })
    }
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
        assert!(coder.decode(&[0, 3, 4, 7]).is_none());
        assert!(coder.decode(&[0, 4, 8]).is_some_and(|decoding| decoding.schedule.is_none()));
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
