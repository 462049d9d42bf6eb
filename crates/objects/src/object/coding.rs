//! What the symbols of a segment are, and which of them are enough.

use super::access::Place;
use base::BrickId;
use code::fountain::{Lt, Peeling, Precoded, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use wire::{DecodeError, Reader, Wire, Writer};

/// The code of a segment. Symbols are numbered; those below [`Coding::blocks`] are the blocks themselves, but under `lt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Symbol `i` is block `i` modulo the number of blocks: stripes, and copies of them.
    Copies { blocks: u32 },
    /// See [`Precoded`].
    Precoded(Systematic),
    /// The code of the RobuSTore paper; see [`Lt`].
    Lt { blocks: u32, seed: u64, decoder: LtDecoder },
}

/// A [`Precoded`] code whose symbols give its source back. There is no value for any other seed: whoever makes symbols counts on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Systematic {
    blocks: u32,
    seed: u16,
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

/// Stored segments have at most so many blocks (see `manifest::Plan`).
pub(super) const STORED_BLOCKS_MAX: u32 = 64;

/// The seeds that [`Precoded::new`] finds for 1, 2, ... blocks. To find one takes long, and a manifest may name thousands.
#[rustfmt::skip]
const SEEDS: [u16; STORED_BLOCKS_MAX as usize] = [
    0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1,
    0, 1, 0, 1, 0, 3, 0, 0, 1, 1, 0, 0, 1, 1, 1, 4, 4, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
];

impl Systematic {
    /// Panics where there is no such code, as [`Precoded::new`] does.
    fn new(blocks: u32) -> Systematic {
        let seed = Systematic::stored_seed(blocks).unwrap_or_else(|| Precoded::new(blocks).seed());
        Systematic { blocks, seed }
    }

    /// The seed of every stored segment that has so many blocks.
    fn stored_seed(blocks: u32) -> Option<u16> {
        SEEDS.get(blocks.checked_sub(1)? as usize).copied()
    }

    pub fn blocks(self) -> u32 {
        self.blocks
    }

    pub fn code(self) -> Precoded {
        Precoded::with_seed(self.blocks, self.seed)
    }
}

impl Coding {
    /// A precoded code of so many blocks.
    pub fn precoded(blocks: u32) -> Coding {
        Coding::Precoded(Systematic::new(blocks))
    }

    /// How many blocks a segment has.
    pub fn blocks(self) -> u32 {
        match self {
            Coding::Copies { blocks } | Coding::Lt { blocks, .. } => blocks,
            Coding::Precoded(code) => code.blocks,
        }
    }

    /// Whether there is such a code.
    pub(crate) fn is_valid(self) -> bool {
        (1..=Precoded::BLOCKS_MAX).contains(&self.blocks())
    }

    /// Whether all symbols give the blocks back: whoever makes lost ones again counts on it.
    pub fn gives_its_blocks(self) -> bool {
        match self {
            Coding::Precoded(code) => {
                code.code().schedule(&(0..code.blocks).collect::<Vec<u32>>(), &[]).is_ok()
            }
            Coding::Copies { .. } | Coding::Lt { .. } => true,
        }
    }

    /// `symbols` is one more than the highest number that will be asked for.
    pub(crate) fn coder(self, symbols: u32) -> Coder {
        match self {
            Coding::Copies { blocks } => Coder::Copies { blocks },
            Coding::Precoded(code) => Coder::Precoded(code.code()),
            Coding::Lt { blocks, seed, decoder } => {
                let mut code = Lt::new(blocks, seed);
                code.extend_to(symbols);
                Coder::Lt(Box::new(code), decoder)
            }
        }
    }
}

/// As manifests have it. What nobody stores is not read: the code `lt` is for experiments, and a seed other than the one that is found for so many
/// blocks may give nothing back.
impl Wire for Coding {
    fn encode(&self, out: &mut Writer<'_>) {
        match *self {
            Coding::Copies { blocks } => {
                out.push(0);
                blocks.encode(out);
            }
            Coding::Precoded(Systematic { blocks, seed }) => {
                out.push(1);
                blocks.encode(out);
                seed.encode(out);
            }
            Coding::Lt { .. } => out.push(2),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Coding, DecodeError> {
        match (u8::decode(reader)?, u32::decode(reader)?) {
            (0, blocks @ 1..=STORED_BLOCKS_MAX) => Ok(Coding::Copies { blocks }),
            (1, blocks) => {
                let seed = u16::decode(reader)?;
                match Systematic::stored_seed(blocks) == Some(seed) || planted::reads_any_code(blocks) {
                    true => Ok(Coding::Precoded(Systematic { blocks, seed })),
                    false => Err(DecodeError::OutOfRange { what: "the code of a segment" }),
                }
            }
            (0, _) => Err(DecodeError::OutOfRange { what: "the number of a segment's blocks" }),
            (tag, _) => Err(DecodeError::UnknownTag { what: "code of a segment", tag }),
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
        let is_enough_without = |lost: &[BrickId]| {
            let left = stored.iter().filter(|(_, brick)| !lost.contains(brick));
            self.decode(&left.map(|(symbol, _)| *symbol).collect::<Vec<u32>>()).is_ok()
        };
        match (self, losses) {
            (_, 0) => is_enough_without(&[]),
            (Coder::Copies { blocks }, _) => {
                let copies: BTreeSet<(u32, BrickId)> =
                    stored.iter().map(|(symbol, brick)| (symbol % blocks, *brick)).collect();
                let of = |block| copies.range((block, BrickId(0))..=(block, BrickId(u32::MAX))).count();
                (0..*blocks).all(|block| of(block) > losses as usize)
            }
            // What is enough follows from no count: of symbols in any number a few choices in a thousand are not.
            (Coder::Precoded(_) | Coder::Lt(..), _) => {
                choices(stored, losses as usize).iter().all(|lost| is_enough_without(lost))
            }
        }
    }
}

/// So many choices of bricks are tried; of more, those are that have most of the symbols.
const CHOICES_MAX: usize = 500;

/// The choices of so many bricks of those that have symbols, or all of them where these are fewer.
fn choices(stored: &[Place], losses: usize) -> Vec<Vec<BrickId>> {
    let mut counts: BTreeMap<BrickId, usize> = BTreeMap::new();
    stored.iter().for_each(|(_, brick)| *counts.entry(*brick).or_default() += 1);
    let mut bricks: Vec<BrickId> = counts.keys().copied().collect();
    bricks.sort_by_key(|brick| core::cmp::Reverse(counts[brick]));
    let mut choices: Vec<Vec<BrickId>> = vec![Vec::new()];
    for _ in 0..losses.min(bricks.len()) {
        let longer = |choice: &Vec<BrickId>| {
            let behind = choice
                .last()
                .map_or(0, |last| bricks.iter().position(|brick| brick == last).map_or(0, |at| at + 1));
            let choice = choice.clone();
            bricks[behind..]
                .iter()
                .take(CHOICES_MAX)
                .map(move |brick| [&choice[..], &[*brick]].concat())
                .collect::<Vec<_>>()
        };
        choices = choices.iter().flat_map(longer).take(CHOICES_MAX).collect();
    }
    choices
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

/// What a code is read with is a function of its bytes alone: no rules can be handed in.
#[cfg(feature = "planted")]
pub mod planted {
    use core::cell::Cell;

    std::thread_local! {
        static ANY: Cell<bool> = const { Cell::new(false) };
    }

    /// As long as it is there its thread reads manifests of codes that give nothing back.
    #[must_use]
    pub struct AnyCode(());

    impl Drop for AnyCode {
        fn drop(&mut self) {
            ANY.set(false);
        }
    }

    pub fn read_any_code() -> AnyCode {
        ANY.set(true);
        AnyCode(())
    }

    pub(super) fn reads_any_code(blocks: u32) -> bool {
        ANY.get() && (1..=super::STORED_BLOCKS_MAX).contains(&blocks)
    }
}

#[cfg(not(feature = "planted"))]
mod planted {
    pub(super) fn reads_any_code(_blocks: u32) -> bool {
        false
    }
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
        let mut order: Vec<u32> = (0..160).collect();
        rng.shuffle(&mut order);
        let needed = codings.map(|coding| {
            let coder = coding.coder(160);
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
        assert!(precoded < solved && solved <= peeled && peeled < copies, "{needed:?}");
    }

    /// A put of which the loss of brick 10 left 45 symbols of 40 blocks counted as one that survives it: these 45 do not suffice.
    #[test]
    fn what_survives_is_tried_and_not_counted() {
        let coder = Coding::precoded(40).coder(160);
        let mut order: Vec<u32> = (0..160).collect();
        base::Rng::with_seed(3).shuffle(&mut order);
        let least = enough(40) as usize;
        assert!(
            coder.decode(&order[..least]).is_err() && coder.decode(&order[..70]).is_ok(),
            "an unlucky choice"
        );
        let at = |(number, symbol): (usize, &u32)| {
            (*symbol, BrickId(if number < least { number as u32 % 9 } else { 10 }))
        };
        let stored: Vec<Place> = order[..70].iter().enumerate().map(at).collect();
        assert!(coder.survives(&stored, 0) && !coder.survives(&stored, 1));
        let spread: Vec<Place> =
            order.iter().enumerate().map(|(at, symbol)| (*symbol, BrickId(at as u32 % 10))).collect();
        assert!(coder.survives(&spread, 1) && coder.survives(&spread, 2));
    }

    #[test]
    fn choices_are_of_those_that_have_most() {
        let stored: Vec<Place> = [(0, 1), (1, 2), (2, 2), (3, 3), (4, 3), (5, 3)]
            .map(|(symbol, brick)| (symbol, BrickId(brick)))
            .into();
        let [one, two, three] = [1, 2, 3].map(BrickId);
        assert_eq!(choices(&stored, 1), [[three], [two], [one]]);
        assert_eq!(choices(&stored, 2), [[three, two], [three, one], [two, one]]);
        assert_eq!(choices(&stored, 4), [[three, two, one]]);
        let many: Vec<Place> = (0..100).map(|symbol| (symbol, BrickId(symbol))).collect();
        assert_eq!(choices(&many, 3).len(), CHOICES_MAX);
    }

    /// What is stored must be read by every later release.
    #[test]
    fn the_seeds_of_stored_codes_are_those_that_are_found() {
        let found: Vec<u16> = (1..=STORED_BLOCKS_MAX).map(|blocks| Precoded::new(blocks).seed()).collect();
        assert_eq!(found, SEEDS);
    }

    #[test]
    fn a_code_without_its_source_is_not_read() {
        let of = |tag: u8, blocks: u32, seed: u16| {
            Coding::from_bytes(&[&[tag][..], &blocks.to_le_bytes(), &seed.to_le_bytes()].concat())
        };
        assert_eq!(Coding::from_bytes(&Coding::precoded(21).to_bytes()), Ok(Coding::precoded(21)));
        let (mut accepted, mut without) = (0, 0);
        for seed in 0..2000 {
            let has_its_source =
                Precoded::with_seed(21, seed).schedule(&(0..21).collect::<Vec<u32>>(), &[]).is_ok();
            without += u32::from(!has_its_source);
            accepted += u32::from(of(1, 21, seed).is_ok());
            assert!(
                has_its_source || of(1, 21, seed).is_err(),
                "seed {seed} would end whoever makes a symbol"
            );
        }
        assert!(accepted == 1 && without > 0, "{accepted} seeds are read, {without} give nothing back");
        assert!(of(1, 0, 0).is_err() && of(1, 65, 0).is_err() && of(1, u32::MAX, 0).is_err());
        assert!(
            Coding::from_bytes(&[0, 0, 0, 0, 0]).is_err() && Coding::from_bytes(&[2, 9, 0, 0, 0]).is_err()
        );
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
