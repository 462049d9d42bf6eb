//! A segment comes back: its fragments are asked for until they are enough, and then made into its blocks.
//!
//! If these are not what was put, although each fragment has passed its checksums, more fragments are asked for, and the segment is made of others
//! ([`super::doubt`]). The wrong ones are to be replaced then.

use super::access::{Access, AccessStrategy, Place};
use super::calls::{Call, Wish};
use super::coding::{Coder, Coding, Decoding, Tally};
use super::doubt::{Expected, Trials};
use super::remake::Remake;
use super::{Context, Transfer, TransferEffect};
use base::{BLOCK, ObjectVersion, Payload, StreamId, Time};
use code::Computation;
use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;
use wire::{FragmentId, FragmentOutcome};

/// What is to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Get {
    pub version: ObjectVersion,
    pub segment: u32,
    pub coding: Coding,
    /// Blocks of 4 KiB in each symbol.
    pub symbol_blocks: u32,
    /// Who has which symbol.
    pub places: Vec<Place>,
    /// The blocks that are wanted, of a code that stores them as they are: the others may come back empty. All without.
    pub wanted: Option<Range<u32>>,
    /// What the segment holds, if that is known. Where only a part of it comes that is not compared.
    pub expected: Option<Expected>,
    pub strategy: AccessStrategy,
    /// For whom it is.
    pub stream: StreamId,
}

/// Why a segment could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum GetError {
    #[error("of {places} fragments {came} came, which do not give the segment's {blocks} blocks back")]
    TooFewFragments { came: usize, places: usize, blocks: u32 },
    #[error(
        "of {places} fragments {came} came, and give other content than was put, also where some of them are left out"
    )]
    Wrong { came: usize, places: usize },
    #[error("no segment has {0}")]
    Invalid(&'static str),
}

#[derive(Debug)]
pub(super) struct Getting {
    get: Get,
    access: Box<dyn Access + Send>,
    coder: Coder,
    /// Asked for and not answered.
    open: usize,
    came: BTreeMap<u32, Payload>,
    tally: Tally,
    /// The blocks that are being made of what came.
    missing: Vec<u32>,
    doubt: Doubt,
}

/// Whether what came gives the right content.
#[derive(Debug)]
enum Doubt {
    /// As far as is known.
    None,
    /// It does not, and all else is asked for until then, so that there is something to choose from.
    Gathering(Time),
    /// What is left out, and what else may be.
    Trying { left_out: BTreeSet<u32>, trials: Trials },
}

/// For so long further fragments are waited for when some are wrong.
const GATHERING: Duration = Duration::from_secs(3);

impl Get {
    fn what_is_wrong(&self) -> Option<&'static str> {
        let is_symbol = |(symbol, _): &Place| *symbol < FragmentId::INDEXES;
        let is_part = |wanted: &Range<u32>| {
            let stores_blocks = matches!(self.coding, Coding::Precoded { .. });
            stores_blocks && !wanted.is_empty() && wanted.end <= self.coding.blocks()
        };
        match () {
            () if self.segment >= FragmentId::SEGMENTS => Some("such a number"),
            () if !self.coding.is_valid() => Some("such a code"),
            () if !(1..=FragmentId::BLOCKS_MAX).contains(&self.symbol_blocks) => Some("symbols of that size"),
            () if !self.places.iter().all(is_symbol) => Some("symbols of such numbers"),
            () if !self.wanted.as_ref().is_none_or(is_part) => Some("such a part"),
            () => None,
        }
    }
}

impl Getting {
    pub(super) fn begin(cx: &mut Context<'_>, get: Get) -> Option<Getting> {
        if let Some(what) = get.what_is_wrong() {
            cx.fx.push(TransferEffect::Got {
                transfer: cx.transfer,
                result: Err(GetError::Invalid(what)),
                mends: None,
            });
            return None;
        }
        let symbols = get.places.iter().map(|(index, _)| index + 1).max().unwrap_or(0);
        let wanted = get.wanted.clone().map(|wanted| {
            let patience = cx.calls.patience(cx.now, &get.places, &wanted, get.symbol_blocks);
            (wanted, patience)
        });
        let mut access = get.strategy.access(get.coding.blocks(), wanted);
        let first = access.begin(cx.now, &get.places);
        let coder = get.coding.coder(symbols);
        let tally = Tally::new(&coder);
        let (came, missing, doubt) = (BTreeMap::new(), Vec::new(), Doubt::None);
        let getting = Getting { get, access, coder, open: 0, came, tally, missing, doubt };
        getting.go_on(cx, first)
    }

    /// Asks for these, and calls off what is not wanted any more.
    fn ask(&mut self, cx: &mut Context<'_>, places: Vec<Place>) {
        let unwanted = self.access.unwanted();
        self.open -= cx.calls.call_off_some(cx.now, cx.transfer, &unwanted);
        let Get { version, segment, symbol_blocks: blocks, stream, .. } = self.get;
        self.open += places.len();
        for (index, brick) in places {
            let fragment = FragmentId { version, segment, index };
            cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, wish: Wish::Get, blocks, stream });
        }
    }

    /// A fragment was asked for again.
    pub(super) fn on_late(&mut self, cx: &mut Context<'_>, place: Place) {
        if !matches!(self.doubt, Doubt::None) {
            return;
        }
        let instead = self.access.late(cx.now, place);
        self.ask(cx, instead);
    }

    /// When it goes on although nothing comes.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.doubt {
            Doubt::None => self.access.deadline().filter(|_| self.missing.is_empty()),
            Doubt::Gathering(until) => Some(until),
            Doubt::Trying { .. } => None,
        }
    }

    pub(super) fn wake(&mut self, cx: &mut Context<'_>) {
        let places = self.access.wake(cx.now);
        self.ask(cx, places);
    }

    /// Whether it has waited for further fragments for long enough.
    pub(super) fn has_gathered(&self, now: Time) -> bool {
        matches!(self.doubt, Doubt::Gathering(until) if until <= now)
    }

    /// It goes on with what has come by now.
    pub(super) fn on_gathered(self, cx: &mut Context<'_>) -> Option<Transfer> {
        self.try_others(cx).map(Transfer::Get)
    }

    /// Goes on, unless there is nothing more to ask for.
    fn go_on(mut self, cx: &mut Context<'_>, places: Vec<Place>) -> Option<Getting> {
        self.ask(cx, places);
        if self.open > 0 {
            return Some(self);
        }
        self.give_up(cx);
        None
    }

    /// Nothing more comes.
    pub(super) fn give_up(&self, cx: &mut Context<'_>) {
        let (came, places, blocks) = (self.came.len(), self.get.places.len(), self.get.coding.blocks());
        let result = Err(GetError::TooFewFragments { came, places, blocks });
        cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result, mends: None });
    }

    /// A fragment came, or will not come.
    pub(super) fn on_fragment(
        mut self,
        cx: &mut Context<'_>,
        place: Place,
        outcome: FragmentOutcome,
        content: Payload,
    ) -> Option<Transfer> {
        self.open -= 1;
        let is_whole = content.len() == self.get.symbol_blocks as usize * BLOCK;
        let has_come = outcome == FragmentOutcome::Done && is_whole;
        if matches!(self.doubt, Doubt::Gathering(_)) {
            if has_come {
                self.came.insert(place.0, content);
            }
            let is_over = self.open == 0;
            return if is_over { self.on_gathered(cx) } else { Some(Transfer::Get(self)) };
        }
        if has_come {
            let is_new = self.came.insert(place.0, content).is_none();
            if self.is_part_there() {
                cx.calls.call_off(cx.now, cx.transfer);
                return self.end(cx, &[], Vec::new()).map(Transfer::Get);
            }
            if is_new && self.tally.add(&self.coder, place.0) {
                let have: Vec<u32> = self.came.keys().copied().collect();
                match self.coder.decode(&have) {
                    Ok(decoding) => return self.decode(cx, decoding).map(Transfer::Get),
                    Err(lacking) => self.tally.lacks(lacking),
                }
            }
        }
        let next = self.access.ended(cx.now, place, has_come);
        self.go_on(cx, next).map(Transfer::Get)
    }

    /// Whether only some blocks are wanted, and these have come as they are.
    fn is_part_there(&self) -> bool {
        let has_come = |wanted: &Range<u32>| wanted.clone().all(|block| self.came.contains_key(&block));
        self.get.wanted.as_ref().is_some_and(has_come)
    }

    /// What came is enough: nothing more is wanted of bricks.
    fn decode(mut self, cx: &mut Context<'_>, decoding: Decoding) -> Option<Getting> {
        cx.calls.call_off(cx.now, cx.transfer);
        self.open = 0;
        self.make(cx, decoding)
    }

    fn make(mut self, cx: &mut Context<'_>, Decoding { missing, schedule }: Decoding) -> Option<Getting> {
        let Some(schedule) = schedule else { return self.end(cx, &[], Vec::new()) };
        let blocks = self.used().map(|(_, content)| content.clone()).collect();
        cx.compute(Computation::Sums { schedule: Arc::new(schedule), blocks });
        self.missing = missing;
        Some(self)
    }

    /// What has come and is not left out.
    fn used(&self) -> impl Iterator<Item = (&u32, &Payload)> {
        self.came.iter().filter(|(symbol, _)| match &self.doubt {
            Doubt::None | Doubt::Gathering(_) => true,
            Doubt::Trying { left_out, .. } => !left_out.contains(symbol),
        })
    }

    pub(super) fn on_computed(mut self, cx: &mut Context<'_>, made: Vec<Payload>) -> Option<Transfer> {
        let missing = core::mem::take(&mut self.missing);
        self.end(cx, &missing, made).map(Transfer::Get)
    }

    /// The blocks are there, as they came or as they were made. Unless they are not what was put, that is all.
    fn end(self, cx: &mut Context<'_>, missing: &[u32], made: Vec<Payload>) -> Option<Getting> {
        let mut blocks = vec![Payload::new(); self.get.coding.blocks() as usize];
        for (symbol, content) in self.used() {
            if let Some(block) = self.coder.block_of(*symbol) {
                blocks[block as usize] = content.clone();
            }
        }
        missing.iter().zip(made).for_each(|(block, content)| blocks[*block as usize] = content);
        // Of a part the other blocks may not be there.
        let is_part = blocks.iter().any(Payload::is_empty);
        let is_right = |expected: Expected| is_part || expected.is_content(&blocks);
        if !cx.rules.trusts(self.get.expected.is_none_or(is_right)) {
            return self.doubt(cx);
        }
        let mends = self.mends(&blocks);
        cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result: Ok(blocks), mends });
        None
    }

    /// Some fragment is wrong: all others are asked for, if that has not been done, and then one choice of them is tried after another.
    fn doubt(mut self, cx: &mut Context<'_>) -> Option<Getting> {
        if matches!(self.doubt, Doubt::Trying { .. }) {
            return self.try_others(cx);
        }
        // As many as the segment has blocks leave enough without any one brick, or nearly; all would take memory without bound.
        let most = self.get.coding.blocks() as usize;
        let others = self.get.places.iter().filter(|(symbol, _)| !self.came.contains_key(symbol));
        let others: Vec<Place> = others.copied().take(most.max(FURTHER_MIN)).collect();
        self.doubt = Doubt::Gathering(cx.now + GATHERING);
        if others.is_empty() {
            return self.try_others(cx);
        }
        self.ask(cx, others);
        Some(self)
    }

    /// Leaves others out than before.
    fn try_others(mut self, cx: &mut Context<'_>) -> Option<Getting> {
        cx.calls.call_off(cx.now, cx.transfer);
        self.open = 0;
        let mut trials = match core::mem::replace(&mut self.doubt, Doubt::None) {
            Doubt::Trying { trials, .. } => trials,
            Doubt::None | Doubt::Gathering(_) => {
                Trials::of(self.get.coding, &self.places_of(self.came.keys()))
            }
        };
        while let Some(left_out) = trials.next() {
            let have: Vec<u32> =
                self.came.keys().filter(|symbol| !left_out.contains(symbol)).copied().collect();
            if let Ok(decoding) = self.coder.decode(&have) {
                self.doubt = Doubt::Trying { left_out, trials };
                return self.make(cx, decoding);
            }
        }
        let result = Err(GetError::Wrong { came: self.came.len(), places: self.get.places.len() });
        cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result, mends: None });
        None
    }

    /// The fragments that are to be replaced, as they are not what the segment's blocks give. Of one that is a sum of blocks that is not computed: it is replaced if it
    /// was left out.
    fn mends(&self, blocks: &[Payload]) -> Option<Remake> {
        let Doubt::Trying { left_out, .. } = &self.doubt else { return None };
        let is_wrong = |symbol: &&u32| match self.coder.block_of(**symbol) {
            Some(block) => self.came[*symbol] != blocks[block as usize],
            None => true,
        };
        let Get { version, segment, coding, .. } = self.get;
        let places = self.places_of(left_out.iter().filter(is_wrong));
        Some(Remake {
            version,
            segment,
            coding,
            blocks: blocks.to_vec(),
            places,
            stream: StreamId::MAINTENANCE,
        })
    }

    /// Who has these symbols.
    fn places_of<'a>(&self, symbols: impl Iterator<Item = &'a u32>) -> Vec<Place> {
        let symbols: BTreeSet<&u32> = symbols.collect();
        self.get.places.iter().filter(|(symbol, _)| symbols.contains(symbol)).copied().collect()
    }
}

/// So many further fragments are asked for at least where some are wrong.
const FURTHER_MIN: usize = 8;
