//! What a gateway is told of a write that it asked to prepare.

use super::context::Context;
use crate::netraid::atomicity::two_phase::{self, member::refusal};
use crate::netraid::pending::{OldContent, Prepare};
use base::Payload;
use wire::disk::{Blocks, StoreError};
use wire::{Message, PrepareOutcome};

/// What the delta of a write is computed from.
pub(super) fn old_content(prepare: &Prepare, blocks: Blocks) -> OldContent {
    let delta = two_phase::member::delta_of(prepare, &blocks);
    OldContent { stamps: blocks.stamps, delta }
}

pub(super) fn answer(cx: &mut Context<'_>, prepare: &Prepare, outcome: PrepareOutcome) {
    if let Some((to, operation)) = prepare.reply_to {
        let message = Message::Prepared { operation, outcome, wait: prepare.stay.wait(cx.now) };
        cx.answer(to, (prepare.service, prepare.stay), message, Payload::new());
    }
}

/// A staged write was found again after a restart, and its delta computed anew from the old content.
pub(super) fn answer_again(
    cx: &mut Context<'_>,
    prepare: &Prepare,
    old: &mut Option<OldContent>,
    result: Result<Blocks, StoreError>,
) {
    match result {
        Ok(blocks) if blocks.unreadable.is_empty() => {
            *old = Some(old_content(prepare, blocks));
            answer_prepared(cx, prepare, old.as_ref());
        }
        Ok(_) => answer(cx, prepare, PrepareOutcome::Unreadable),
        Err(error) => answer(cx, prepare, refusal(error)),
    }
}

pub(super) fn answer_prepared(cx: &mut Context<'_>, prepare: &Prepare, old: Option<&OldContent>) {
    let Some((to, operation)) = prepare.reply_to else { return };
    let (previous, delta) = old.map(|old| (old.stamps.clone(), old.delta.clone())).unwrap_or_default();
    let outcome = PrepareOutcome::Prepared { previous };
    let message = Message::Prepared { operation, outcome, wait: prepare.stay.wait(cx.now) };
    cx.answer(to, (prepare.service, prepare.stay), message, delta);
}
