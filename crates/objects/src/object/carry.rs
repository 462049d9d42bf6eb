//! Fragments of a segment are copied from one brick to another, as they are.

use super::calls::{Call, Wish};
use super::{Context, Place, Transfer, TransferEffect};
use base::{BLOCK, BrickId, ObjectVersion, Payload, StreamId};
use std::collections::BTreeSet;
use wire::{FragmentId, FragmentOutcome};

/// What is to be copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carry {
    pub version: ObjectVersion,
    pub segment: u32,
    /// Blocks of 4 KiB in each symbol.
    pub symbol_blocks: u32,
    pub symbols: Vec<u32>,
    pub from: BrickId,
    pub to: BrickId,
    /// For whom it is.
    pub stream: StreamId,
}

#[derive(Debug)]
pub(super) struct Carrying {
    carry: Carry,
    /// Who is asked for which fragment, or is to take it.
    open: BTreeSet<Place>,
    stored: Vec<Place>,
}

impl Carrying {
    pub(super) fn begin(cx: &mut Context<'_>, carry: Carry) -> Option<Carrying> {
        assert_ne!(carry.from, carry.to, "a brick has what it has");
        let (symbols, from) = (carry.symbols.clone(), carry.from);
        let mut carrying = Carrying { carry, open: BTreeSet::new(), stored: Vec::new() };
        symbols.into_iter().for_each(|symbol| carrying.ask(cx, (symbol, from), Wish::Get));
        carrying.go_on(cx)
    }

    fn ask(&mut self, cx: &mut Context<'_>, place: Place, wish: Wish) {
        let Carry { version, segment, symbol_blocks: blocks, stream, .. } = self.carry;
        let (index, brick) = place;
        self.open.insert(place);
        let fragment = FragmentId { version, segment, index };
        cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, wish, blocks, stream });
    }

    /// A fragment has come from the one brick, or is stored at the other.
    pub(super) fn on_fragment(
        mut self,
        cx: &mut Context<'_>,
        place: Place,
        outcome: FragmentOutcome,
        content: Payload,
    ) -> Option<Transfer> {
        self.open.remove(&place);
        let (symbol, brick) = place;
        let is_whole = content.len() == self.carry.symbol_blocks as usize * BLOCK;
        match outcome {
            FragmentOutcome::Done if brick == self.carry.to => self.stored.push(place),
            FragmentOutcome::Done if is_whole => {
                self.ask(cx, (symbol, self.carry.to), Wish::Put { content, is_new: false });
            }
            // This one is not copied.
            _ => {}
        }
        self.go_on(cx).map(Transfer::Carry)
    }

    fn go_on(self, cx: &mut Context<'_>) -> Option<Carrying> {
        if !self.open.is_empty() {
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
