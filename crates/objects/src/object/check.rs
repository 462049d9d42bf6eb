//! Whether the fragments of a segment are where they should be: each brick is asked for its own.

use super::access::Place;
use super::calls::{Call, Wish};
use super::{Context, Transfer, TransferEffect};
use base::{ObjectVersion, StreamId};
use std::collections::BTreeSet;
use wire::{FragmentId, FragmentOutcome};

/// What is to be looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    pub version: ObjectVersion,
    pub segment: u32,
    /// Blocks of 4 KiB in each symbol.
    pub symbol_blocks: u32,
    /// Who should have which symbol.
    pub places: Vec<Place>,
    /// Whether bricks read them and compare them with their checksums, or only look them up.
    pub reads: bool,
    /// For whom it is.
    pub stream: StreamId,
}

/// What bricks said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    pub there: Vec<Place>,
    /// They are not there, or cannot be read.
    pub missing: Vec<Place>,
    /// Nobody said anything of these.
    pub silent: Vec<Place>,
}

#[derive(Debug)]
pub(super) struct Checking {
    open: BTreeSet<Place>,
    checked: Checked,
}

impl Checking {
    pub(super) fn begin(cx: &mut Context<'_>, check: Check) -> Option<Checking> {
        let Check { version, segment, symbol_blocks: blocks, places, reads, stream } = check;
        for (index, brick) in &places {
            let (brick, fragment) = (*brick, FragmentId { version, segment, index: *index });
            let wish = Wish::Check { reads };
            cx.calls.ask(cx.now, cx.transfer, Call { brick, fragment, wish, blocks, stream });
        }
        Checking { open: places.into_iter().collect(), checked: Checked::default() }.go_on(cx)
    }

    /// A brick says whether it has a fragment.
    pub(super) fn on_fragment(
        mut self,
        cx: &mut Context<'_>,
        place: Place,
        outcome: FragmentOutcome,
    ) -> Option<Transfer> {
        self.open.remove(&place);
        match outcome {
            FragmentOutcome::Done => self.checked.there.push(place),
            FragmentOutcome::Missing | FragmentOutcome::Unreadable => self.checked.missing.push(place),
            FragmentOutcome::NoSpace | FragmentOutcome::Busy | FragmentOutcome::Failed => {
                self.checked.silent.push(place);
            }
        }
        self.go_on(cx).map(Transfer::Check)
    }

    fn go_on(self, cx: &mut Context<'_>) -> Option<Checking> {
        if !self.open.is_empty() {
            return Some(self);
        }
        self.give_up(cx);
        None
    }

    /// Nobody says anything any more.
    pub(super) fn give_up(mut self, cx: &mut Context<'_>) {
        self.checked.silent.extend(self.open);
        cx.fx.push(TransferEffect::Checked { transfer: cx.transfer, checked: self.checked });
    }
}
