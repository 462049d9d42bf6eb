//! A segment comes back: its fragments are asked for until they are enough, and then made into its blocks.

use super::access::{Access, AccessStrategy, Place};
use super::calls::{Call, Wish};
use super::coding::{Coder, Coding, Decoding, Tally};
use super::{Context, Transfer, TransferEffect};
use base::{BLOCK, ObjectVersion, Payload, StreamId, Time};
use code::Computation;
use core::ops::Range;
use std::collections::BTreeMap;
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
    pub strategy: AccessStrategy,
    /// For whom it is.
    pub stream: StreamId,
}

/// Why a segment could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum GetError {
    #[error("of {places} fragments {came} came, which do not give the segment's {blocks} blocks back")]
    TooFewFragments { came: usize, places: usize, blocks: u32 },
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
}

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
            cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result: Err(GetError::Invalid(what)) });
            return None;
        }
        let symbols = get.places.iter().map(|(index, _)| index + 1).max().unwrap_or(0);
        let mut access = get.strategy.access(get.coding.blocks(), get.wanted.clone());
        let first = access.begin(cx.now, &get.places);
        let coder = get.coding.coder(symbols);
        let tally = Tally::new(&coder);
        let (came, missing) = (BTreeMap::new(), Vec::new());
        let getting = Getting { get, access, coder, open: 0, came, tally, missing };
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
        let instead = self.access.late(cx.now, place);
        self.ask(cx, instead);
    }

    /// When it goes on although nothing comes.
    pub(super) fn deadline(&self) -> Option<Time> {
        let is_being_made = !self.missing.is_empty();
        self.access.deadline().filter(|_| !is_being_made)
    }

    pub(super) fn wake(&mut self, cx: &mut Context<'_>) {
        let places = self.access.wake(cx.now);
        self.ask(cx, places);
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
        cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result });
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
        if has_come {
            let is_new = self.came.insert(place.0, content).is_none();
            if self.is_part_there() {
                cx.calls.call_off(cx.now, cx.transfer);
                self.end(cx, &[], Vec::new());
                return None;
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
    fn decode(mut self, cx: &mut Context<'_>, Decoding { missing, schedule }: Decoding) -> Option<Getting> {
        cx.calls.call_off(cx.now, cx.transfer);
        self.open = 0;
        let Some(schedule) = schedule else {
            self.end(cx, &[], Vec::new());
            return None;
        };
        let blocks = self.came.values().cloned().collect();
        cx.compute(Computation::Sums { schedule: Arc::new(schedule), blocks });
        self.missing = missing;
        Some(self)
    }

    pub(super) fn on_computed(self, cx: &mut Context<'_>, made: Vec<Payload>) -> Option<Transfer> {
        self.end(cx, &self.missing, made);
        None
    }

    /// The blocks are there, as they came or as they were made.
    fn end(&self, cx: &mut Context<'_>, missing: &[u32], made: Vec<Payload>) {
        let mut blocks = vec![Payload::new(); self.get.coding.blocks() as usize];
        for (symbol, content) in &self.came {
            if let Some(block) = self.coder.block_of(*symbol) {
                blocks[block as usize] = content.clone();
            }
        }
        missing.iter().zip(made).for_each(|(block, content)| blocks[*block as usize] = content);
        cx.fx.push(TransferEffect::Got { transfer: cx.transfer, result: Ok(blocks) });
    }
}
