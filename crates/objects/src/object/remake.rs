//! Fragments of a segment that are lost are made again from its blocks, and brought to bricks.

use super::access::Place;
use super::calls::{Call, Wish};
use super::coding::Coding;
use super::{Context, Transfer, TransferEffect};
use base::{BLOCK, ObjectVersion, Payload, StreamId};
use code::Computation;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::{FragmentId, FragmentOutcome};

/// What is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remake {
    pub version: ObjectVersion,
    pub segment: u32,
    pub coding: Coding,
    /// The segment's blocks, all of one length in whole 4 KiB.
    pub blocks: Vec<Payload>,
    /// Which symbols, and which brick is to have each.
    pub places: Vec<Place>,
    /// For whom it is.
    pub stream: StreamId,
}

#[derive(Debug)]
pub(super) struct Remaking {
    remake: Remake,
    /// Those that are being computed.
    being_made: Vec<Place>,
    /// Those that are on their way.
    open: BTreeSet<Place>,
    stored: Vec<Place>,
}

impl Remaking {
    pub(super) fn begin(cx: &mut Context<'_>, remake: Remake) -> Option<Remaking> {
        let symbols = remake.places.iter().map(|(symbol, _)| symbol + 1).max().unwrap_or(0);
        let coder = remake.coding.coder(symbols);
        let (blocks, sums): (Vec<Place>, Vec<Place>) =
            remake.places.iter().partition(|(symbol, _)| coder.block_of(*symbol).is_some());
        let mut remaking = Remaking { remake, being_made: sums, open: BTreeSet::new(), stored: Vec::new() };
        for place in blocks {
            let block = coder.block_of(place.0).expect("those that are blocks") as usize;
            let content = remaking.remake.blocks[block].clone();
            remaking.send(cx, place, content);
        }
        let symbols: Vec<u32> = remaking.being_made.iter().map(|(symbol, _)| *symbol).collect();
        if let (false, Some(schedule)) = (symbols.is_empty(), coder.encode(&symbols)) {
            let blocks = remaking.remake.blocks.clone();
            cx.compute(Computation::Sums { schedule: Arc::new(schedule), blocks });
        }
        remaking.go_on(cx)
    }

    fn send(&mut self, cx: &mut Context<'_>, place: Place, content: Payload) {
        let Remake { version, segment, stream, .. } = self.remake;
        let (index, brick) = place;
        let blocks = (content.len() / BLOCK) as u32;
        self.open.insert(place);
        let (fragment, wish) = (FragmentId { version, segment, index }, Wish::Put { content, is_new: false });
        cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, wish, blocks, stream });
    }

    pub(super) fn on_computed(mut self, cx: &mut Context<'_>, made: Vec<Payload>) -> Option<Transfer> {
        let places = core::mem::take(&mut self.being_made);
        places.into_iter().zip(made).for_each(|(place, content)| self.send(cx, place, content));
        self.go_on(cx).map(Transfer::Remake)
    }

    /// A brick has a fragment, or does not take it.
    pub(super) fn on_put(
        mut self,
        cx: &mut Context<'_>,
        place: Place,
        outcome: FragmentOutcome,
    ) -> Option<Transfer> {
        self.open.remove(&place);
        if outcome == FragmentOutcome::Done {
            self.stored.push(place);
        }
        self.go_on(cx).map(Transfer::Remake)
    }

    fn go_on(self, cx: &mut Context<'_>) -> Option<Remaking> {
        if !self.open.is_empty() || !self.being_made.is_empty() {
            return Some(self);
        }
        self.give_up(cx);
        None
    }

    /// What is on stable storage by now is all that will be.
    pub(super) fn give_up(self, cx: &mut Context<'_>) {
        cx.fx.push(TransferEffect::Stored { transfer: cx.transfer, stored: self.stored });
    }
}
