//! A segment goes out: its symbols are brought to bricks until enough of them are on stable storage.
//!
//! Which brick gets which symbol is planned, or decided when the brick has room for one ([`Placing`]). Symbols are made a few at a time, while
//! those before them are on their way.

use super::access::Place;
use super::calls::{Call, Wish};
use super::coding::{Coder, Coding, enough};
use super::ready::{Placing, Ready};
use super::{Context, Transfer, TransferEffect};
use base::{BLOCK, BrickId, ObjectVersion, Payload, StreamId};
use code::Computation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;
use wire::{FragmentId, FragmentOutcome};

/// What is to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    pub version: ObjectVersion,
    pub segment: u32,
    pub coding: Coding,
    /// The segment's blocks, in order, all of one length in whole 4 KiB.
    pub blocks: Vec<Payload>,
    /// So many symbols are to be on stable storage: (1 + D) K.
    pub symbols: u32,
    /// If bricks take no more, so many do, as far as they survive the losses: what the redundancy takes that was asked for.
    pub least: u32,
    /// Those that may take symbols. If several have as much room, the first of them takes the next one.
    pub bricks: Vec<BrickId>,
    /// Which of them gets which symbol.
    pub placing: Placing,
    /// After the loss of any so many bricks the others are to have enough.
    pub losses: u32,
    /// So many fragments are on their way to a brick at a time.
    pub window: u32,
    /// For whom it is.
    pub stream: StreamId,
}

/// Why a segment could not be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PutError {
    #[error(
        "{symbols} fragments of {blocks} blocks on {bricks} bricks cannot survive the loss of {losses}: more redundancy or more bricks are needed"
    )]
    TooLittleRedundancy { symbols: u32, blocks: u32, bricks: usize, losses: u32 },
    #[error("of {symbols} fragments {stored} are stored, and no brick takes more")]
    NoBrickTakesMore { stored: usize, symbols: u32 },
    #[error(
        "of {least} fragments that the redundancy takes which was asked for {stored} are stored, and no brick takes more: make room, or ask for less"
    )]
    LessRedundancy { stored: usize, least: u32 },
    #[error("no segment has {0}")]
    Invalid(&'static str),
}

impl Put {
    fn what_is_wrong(&self) -> Option<&'static str> {
        let length = self.blocks.first().map_or(0, Payload::len);
        let blocks = length / BLOCK;
        match () {
            () if self.segment >= FragmentId::SEGMENTS => Some("such a number"),
            () if !self.coding.is_valid() => Some("such a code"),
            () if self.bricks.iter().collect::<BTreeSet<_>>().len() != self.bricks.len() => {
                Some("a brick twice")
            }
            () if self.blocks.len() != self.coding.blocks() as usize => {
                Some("another number of blocks than its code")
            }
            () if self.blocks.iter().any(|block| block.len() != length) => Some("blocks of several lengths"),
            () if !length.is_multiple_of(BLOCK) => Some("blocks that are not whole 4 KiB"),
            () if !(1..=FragmentId::BLOCKS_MAX as usize).contains(&blocks) => Some("blocks of that size"),
            () if self.symbols_max() > FragmentId::INDEXES => Some("so many symbols"),
            () if !self.is_plan_sound() => Some("such a plan of its places"),
            () if self.window == 0 => Some("nothing on its way"),
            () => None,
        }
    }

    /// Each symbol has a brick of this put, and no brick two copies of a block.
    fn is_plan_sound(&self) -> bool {
        let Placing::Planned(plan) = &self.placing else { return true };
        let bricks: BTreeSet<&BrickId> = self.bricks.iter().collect();
        let is_sound = plan.len() == self.symbols as usize && plan.iter().all(|brick| bricks.contains(brick));
        let Coding::Copies { blocks } = self.coding else { return is_sound };
        let copies = (0..).zip(plan.iter()).map(|(symbol, brick): (u32, _)| (symbol % blocks, brick));
        is_sound && copies.collect::<BTreeSet<_>>().len() == plan.len()
    }

    /// No more symbols than these are made, however unlucky it goes.
    fn symbols_max(&self) -> u32 {
        match self.placing {
            Placing::ByPace => self.symbols.saturating_mul(4).saturating_add(64),
            Placing::Planned(_) => self.symbols,
        }
    }

    fn too_little(&self) -> PutError {
        let (blocks, bricks) = (self.coding.blocks(), self.bricks.len());
        PutError::TooLittleRedundancy { symbols: self.symbols, blocks, bricks, losses: self.losses }
    }

    /// How many symbols a brick may have, so that the others have enough when it is lost; `None` where there are too few bricks or
    /// symbols. As many bricks as may be lost may as well be silent while it is stored.
    fn share(&self) -> Option<u32> {
        let (blocks, bricks) = (self.coding.blocks(), self.bricks.len() as u32);
        let others = bricks.checked_sub(self.losses).filter(|others| *others > 0)?;
        match (self.coding, self.losses) {
            (Coding::Precoded { .. }, 0) => (self.symbols >= blocks).then_some(u32::MAX),
            (Coding::Precoded { .. }, losses) => {
                let share = self.symbols.checked_sub(enough(blocks))? / losses;
                (u64::from(share) * u64::from(others) >= u64::from(self.symbols)).then_some(share)
            }
            // As many copies of each block as bricks that may be lost, and one more.
            (Coding::Copies { .. }, losses) => {
                let copies = losses + 1..=others;
                let is_possible = (blocks * copies.start()..=blocks * copies.end()).contains(&self.symbols);
                is_possible.then_some(u32::MAX)
            }
            (Coding::Lt { .. }, losses) => (losses <= 1 && self.symbols >= blocks).then_some(u32::MAX),
        }
    }
}

/// So much is made at a time, if windows do not take more.
const BATCH_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Putting {
    put: Put,
    coder: Coder,
    bricks: BTreeMap<BrickId, Brick>,
    ready: Ready,
    /// The next symbol to be made.
    next: u32,
    /// The symbols that are being computed.
    being_made: Vec<u32>,
    stored: Vec<Place>,
    /// A brick may have so many of them.
    share: u32,
}

#[derive(Clone, Debug, Default)]
struct Brick {
    /// Its place among the bricks of the put.
    rank: u32,
    /// Symbols on their way, with their content: another brick may have to take them.
    open: BTreeMap<u32, Payload>,
    stored: Vec<u32>,
    /// It takes nothing any more.
    is_out: bool,
    /// It has been waited for longer than an answer takes, and has said nothing since.
    is_late: bool,
    /// It said that it takes nothing just now, and has taken nothing since.
    is_busy: bool,
}

impl Brick {
    /// Whether it has room for one more, of which `window` may be on their way and `share` at it.
    fn takes_more(&self, window: u32, share: u32) -> bool {
        let open = self.open.len() as u32;
        !self.is_out && open < window && self.stored.len() as u32 + open < share
    }

    /// Whether it has or gets another copy of what the symbol is.
    fn has_copy(&self, coding: Coding, index: u32) -> bool {
        let Coding::Copies { blocks } = coding else { return false };
        self.open.keys().chain(&self.stored).any(|other| other % blocks == index % blocks)
    }
}

impl Putting {
    pub(super) fn begin(cx: &mut Context<'_>, put: Put) -> Option<Putting> {
        let invalid = put.what_is_wrong().map(PutError::Invalid);
        let share = invalid.map_or_else(|| put.share().ok_or_else(|| put.too_little()), Err);
        let share = match share {
            Ok(share) => share,
            Err(error) => {
                cx.fx.push(TransferEffect::Put { transfer: cx.transfer, result: Err(error) });
                return None;
            }
        };
        let coder = put.coding.coder(put.symbols_max());
        let mut ready = Ready::new(&put.placing);
        let as_they_are = match put.coding {
            Coding::Lt { .. } => 0,
            Coding::Copies { .. } | Coding::Precoded(_) => put.coding.blocks().min(put.symbols_max()),
        };
        ready.extend((0..as_they_are).zip(put.blocks.iter().cloned()));
        let putting = Putting {
            next: as_they_are,
            bricks: (0..)
                .zip(&put.bricks)
                .map(|(rank, brick)| (*brick, Brick { rank, ..Brick::default() }))
                .collect(),
            put,
            coder,
            ready,
            being_made: Vec::new(),
            stored: Vec::new(),
            share,
        };
        putting.go_on(cx)
    }

    /// Fills the windows of all bricks, and has more symbols made where there will be too few.
    fn go_on(mut self, cx: &mut Context<'_>) -> Option<Putting> {
        let is_enough = self.stored.len() >= self.put.symbols as usize
            && self.coder.survives(&self.stored, self.put.losses);
        if !self.stored.is_empty() && cx.rules.ends_put(is_enough) {
            cx.fx.push(TransferEffect::Put { transfer: cx.transfer, result: Ok(self.stored) });
            return None;
        }
        self.fill(cx);
        let is_open = self.bricks.values().any(|brick| !brick.open.is_empty());
        if is_open || !self.being_made.is_empty() {
            return Some(self);
        }
        self.give_up(cx);
        None
    }

    fn fill(&mut self, cx: &mut Context<'_>) {
        self.make_more(cx);
        loop {
            while let Some((brick, index, content)) = self.next() {
                self.send(cx, brick, index, content);
                self.make_more(cx);
            }
            if !self.is_short() {
                return;
            }
            self.share += 1;
        }
    }

    /// As many are stored as were to be, and are not enough: of symbols in any number a few choices in a thousand are not. And all bricks that answer have their share. They take
    /// more than that: what decides is whether the loss of any of them is survived.
    fn is_short(&self) -> bool {
        let answers = |brick: &&Brick| !brick.is_out && !brick.is_late && !brick.is_busy;
        let mut answering = self.bricks.values().filter(answers).peekable();
        self.stored.len() >= self.put.symbols as usize
            && self.share < self.put.symbols_max()
            && self.being_made.is_empty()
            && answering.peek().is_some()
            && answering.all(|brick| brick.open.is_empty())
    }

    /// A brick may take what it was sent, and may never take it: another one is sent a copy.
    pub(super) fn on_late(&mut self, cx: &mut Context<'_>, brick: BrickId) {
        self.bricks.get_mut(&brick).expect("a brick of this put").is_late = true;
        self.fill(cx);
    }

    /// It is asked again, and others are sent nothing in its place: where all bricks are busy, more copies would make them busier.
    pub(super) fn on_busy(&mut self, cx: &mut Context<'_>, brick: BrickId) {
        self.bricks.get_mut(&brick).expect("a brick of this put").is_busy = true;
        if self.is_short() {
            self.fill(cx);
        }
    }

    /// No brick takes more, or what they have is still not enough.
    pub(super) fn give_up(&self, cx: &mut Context<'_>) {
        let Put { symbols, least, losses, .. } = self.put;
        let stored = self.stored.len();
        let survives = matches!(self.put.placing, Placing::ByPace)
            && losses > 0
            && self.coder.survives(&self.stored, losses);
        let result = match survives {
            // Some more was to be stored than it takes: what is there is kept.
            true if stored >= least as usize => Ok(self.stored.clone()),
            // Nobody would make up for it later.
            true => Err(PutError::LessRedundancy { stored, least }),
            false => Err(PutError::NoBrickTakesMore { stored, symbols }),
        };
        cx.fx.push(TransferEffect::Put { transfer: cx.transfer, result });
    }

    /// Whether enough copies are stored or on their way to bricks that are not late. As many may become late as may be lost, and one where none may
    /// be lost, so that so many more are sent; copies for all bricks would stay on their disks until these are looked through.
    fn has_enough_under_way(&self) -> bool {
        let Coding::Copies { blocks } = self.put.coding else { return false };
        let open: usize =
            self.bricks.values().filter(|brick| !brick.is_late).map(|brick| brick.open.len()).sum();
        open > 0 && self.stored.len() + open >= (self.put.symbols + blocks * self.put.losses.max(1)) as usize
    }

    /// The brick with the most room for a symbol that is ready, the first one of several, and that symbol.
    fn next(&mut self) -> Option<(BrickId, u32, Payload)> {
        if self.has_enough_under_way() {
            return None;
        }
        let Putting { put, bricks, ready, share, .. } = self;
        let takes_more = |(_, brick): &(&BrickId, &Brick)| brick.takes_more(put.window, *share);
        let mut with_room: Vec<(&BrickId, &Brick)> = bricks.iter().filter(takes_more).collect();
        with_room.sort_by_key(|(_, brick)| (brick.open.len(), brick.rank));
        with_room.into_iter().find_map(|(id, brick)| {
            let (index, content) = ready.take(*id, |index| !brick.has_copy(put.coding, index))?;
            Some((*id, index, content))
        })
    }

    fn send(&mut self, cx: &mut Context<'_>, brick: BrickId, index: u32, content: Payload) {
        let Put { version, segment, stream, .. } = self.put;
        let fragment = FragmentId { version, segment, index };
        let blocks = (content.len() / BLOCK) as u32;
        let there = self.bricks.get_mut(&brick).expect("a brick of this put");
        there.open.insert(index, content.clone());
        let wish = Wish::Put { content, is_new: cx.rules.gives_back_called_off() };
        cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, wish, blocks, stream });
    }

    /// Has more symbols made where there are fewer than windows take. Each time the whole segment is gone through, so that a few at
    /// a time would be dear.
    fn make_more(&mut self, cx: &mut Context<'_>) {
        let windows = self.bricks.len() * self.put.window as usize;
        let left = self.put.symbols_max().saturating_sub(self.next) as usize;
        let (window, share) = (self.put.window, self.share);
        let with_room = self.bricks.iter().filter(|(_, brick)| brick.takes_more(window, share));
        let runs_short = || self.ready.runs_short(windows, with_room.map(|(id, _)| *id));
        if !self.being_made.is_empty() || left == 0 || !runs_short() {
            return;
        }
        let bearable = BATCH_BYTES / self.put.blocks[0].len();
        let batch = windows.max(bearable.min(self.put.blocks.len() / 2));
        let want: Vec<u32> = (self.next..).take(batch.min(left)).collect();
        self.next += want.len() as u32;
        match self.coder.encode(&want) {
            Some(schedule) => {
                let blocks = self.put.blocks.clone();
                cx.compute(Computation::Sums { schedule: Arc::new(schedule), blocks });
                self.being_made = want;
            }
            None => {
                let blocks = self.put.blocks.len();
                let copy = |index: &u32| (*index, self.put.blocks[*index as usize % blocks].clone());
                self.ready.extend(want.iter().map(copy));
            }
        }
    }

    pub(super) fn on_computed(mut self, cx: &mut Context<'_>, made: Vec<Payload>) -> Option<Transfer> {
        self.ready.extend(core::mem::take(&mut self.being_made).into_iter().zip(made));
        self.go_on(cx).map(Transfer::Put)
    }

    /// A brick has a fragment, or does not take it.
    pub(super) fn on_put(
        mut self,
        cx: &mut Context<'_>,
        (index, brick): Place,
        outcome: FragmentOutcome,
    ) -> Option<Transfer> {
        let there = self.bricks.get_mut(&brick).expect("a brick of this put");
        let content = there.open.remove(&index).expect("a fragment that was on its way");
        (there.is_late, there.is_busy) = (false, false);
        if outcome == FragmentOutcome::Done {
            there.stored.push(index);
            self.stored.push((index, brick));
        } else {
            there.is_out = true;
            if matches!(self.put.placing, Placing::Planned(_)) {
                // No other brick may take it.
                self.give_up(cx);
                return None;
            }
            self.ready.give_back((index, content));
        }
        self.go_on(cx).map(Transfer::Put)
    }
}
