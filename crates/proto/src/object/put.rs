//! A segment goes out: its symbols are brought to bricks until enough of them are on stable storage.
//!
//! Which brick gets which symbol is decided when the brick has room for one: a fast brick gets more (the *speculative* write of the
//! RobuSTore paper). Symbols are made in batches, while those before them are on their way.

use super::access::Place;
use super::calls::Call;
use super::coding::{Coder, Coding};
use super::{Context, Transfer, TransferEffect};
use base::{BLOCK, BrickId, ObjectVersion, Payload};
use code::Computation;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use thiserror::Error;
use wire::{FragmentId, FragmentOutcome, Service};

/// What is to be stored.
#[derive(Clone, Debug)]
pub struct Put {
    pub version: ObjectVersion,
    pub segment: u32,
    pub coding: Coding,
    /// The segment's blocks, in order, all of one length in whole 4 KiB.
    pub blocks: Vec<Payload>,
    /// So many symbols are to be on stable storage: (1 + D) K.
    pub symbols: u32,
    pub bricks: Vec<BrickId>,
    /// After the loss of any so many bricks the others are to have enough.
    pub losses: u32,
    /// So many fragments are on their way to a brick at a time.
    pub window: u32,
    pub service: Service,
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
}

#[derive(Debug)]
pub(super) struct Putting {
    put: Put,
    coder: Coder,
    bricks: BTreeMap<BrickId, Brick>,
    /// Symbols that are made and wait for a brick.
    ready: VecDeque<(u32, Payload)>,
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
    /// Symbols on their way, with their content: another brick may have to take them.
    open: BTreeMap<u32, Payload>,
    stored: u32,
    /// It takes nothing any more.
    is_out: bool,
}

/// Of the symbols that are read beyond the blocks: with so many more a code gives its blocks back, but for one time in many.
fn enough(blocks: u32) -> u32 {
    blocks + blocks.div_ceil(64) + 4
}

impl Putting {
    pub(super) fn begin(cx: &mut Context<'_>, put: Put) -> Option<Putting> {
        let (blocks, bricks) = (put.coding.blocks(), put.bricks.len() as u32);
        // What any `losses` bricks may have together, so that the others have enough.
        let spare = put.symbols.saturating_sub(enough(blocks));
        let share = spare.checked_div(put.losses).unwrap_or(put.symbols);
        if u64::from(share) * u64::from(bricks) < u64::from(put.symbols) {
            let Put { symbols, losses, .. } = put;
            let result =
                Err(PutError::TooLittleRedundancy { symbols, blocks, bricks: put.bricks.len(), losses });
            cx.fx.push(TransferEffect::Put { transfer: cx.transfer, result });
            return None;
        }
        // A symbol that nobody takes is replaced by a new one, so numbers go beyond what is stored.
        let coder = put.coding.coder(2 * put.symbols + bricks * put.window);
        let ready = match put.coding {
            Coding::Lt { .. } => VecDeque::new(),
            Coding::Copies { .. } | Coding::Precoded { .. } => {
                (0..).zip(put.blocks.iter().cloned()).collect()
            }
        };
        let putting = Putting {
            next: ready.len() as u32,
            bricks: put.bricks.iter().map(|brick| (*brick, Brick::default())).collect(),
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
        if self.stored.len() >= self.put.symbols as usize {
            cx.fx.push(TransferEffect::Put { transfer: cx.transfer, result: Ok(self.stored) });
            return None;
        }
        while let Some(brick) = self.next_brick() {
            let Some((index, content)) = self.ready.pop_front() else { break };
            self.send(cx, brick, index, content);
        }
        self.make_more(cx);
        let is_under_way = self.bricks.values().any(|brick| !brick.open.is_empty());
        if is_under_way || (!self.being_made.is_empty() && self.next_brick().is_some()) {
            return Some(self);
        }
        let (stored, symbols) = (self.stored.len(), self.put.symbols);
        cx.fx.push(TransferEffect::Put {
            transfer: cx.transfer,
            result: Err(PutError::NoBrickTakesMore { stored, symbols }),
        });
        None
    }

    /// The brick with the most room.
    fn next_brick(&self) -> Option<BrickId> {
        let takes_more = |(_, brick): &(&BrickId, &Brick)| {
            let open = brick.open.len() as u32;
            !brick.is_out && open < self.put.window && brick.stored + open < self.share
        };
        let least = self.bricks.iter().filter(takes_more).min_by_key(|(id, brick)| (brick.open.len(), **id));
        least.map(|(id, _)| *id)
    }

    fn send(&mut self, cx: &mut Context<'_>, brick: BrickId, index: u32, content: Payload) {
        let Put { version, segment, service, .. } = self.put;
        let fragment = FragmentId { version, segment, index };
        let blocks = (content.len() / BLOCK) as u32;
        let there = self.bricks.get_mut(&brick).expect("a brick of this put");
        there.open.insert(index, content.clone());
        cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, content: Some(content), blocks, service });
    }

    /// Has a batch of symbols made, so that there are as many as windows can take beyond what is to be stored.
    fn make_more(&mut self, cx: &mut Context<'_>) {
        let open: usize = self.bricks.values().map(|brick| brick.open.len()).sum();
        let coming = self.stored.len() + open + self.ready.len();
        let wanted = self.put.symbols as usize + self.bricks.len() * self.put.window as usize;
        if !self.being_made.is_empty() || coming >= wanted {
            return;
        }
        let batch = (wanted - coming).min(self.put.coding.blocks().max(16) as usize) as u32;
        let want: Vec<u32> = (self.next..self.next + batch).collect();
        match self.coder.encode(&want) {
            Some(schedule) => {
                let blocks = self.put.blocks.clone();
                cx.compute(Computation::Sums { schedule: Arc::new(schedule), blocks });
                self.being_made = want;
            }
            None => {
                let blocks = self.put.blocks.len();
                self.ready.extend(
                    want.iter().map(|index| (*index, self.put.blocks[*index as usize % blocks].clone())),
                );
            }
        }
        self.next += batch;
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
        if outcome == FragmentOutcome::Done {
            there.stored += 1;
            self.stored.push((index, brick));
        } else {
            there.is_out = true;
            self.ready.push_front((index, content));
        }
        self.go_on(cx).map(Transfer::Put)
    }
}
