//! What a read reads, and what it met so far under the present view.

use crate::netraid::atomicity::log::ROUNDS_MAX;
use crate::netraid::members::{is_mirrored, participants};
use crate::netraid::operate::{BlocksWanted, Context};
use base::{BrickId, GroupId, Stamp, VolumeId};
use reads::distribute::pace::Kind;
use reads::distribute::policy;
use rules::layout::Geometry;
use wire::{Contest, GroupView, ReadPolicy, Scope, Sight, Slots, Span, WriteId};

pub(super) struct Target {
    pub(super) group: GroupId,
    /// The volume whose branch is read; none where the span names the branch.
    pub(super) volume: Option<VolumeId>,
    pub(super) span: Span,
    pub(super) data_index: u8,
    pub(super) want_stamps: bool,
    /// Members that are not to be read from: the content is for them.
    pub(super) excluded: Slots,
}

/// What the read met so far.
#[derive(Default)]
pub(super) struct Met {
    /// Whether a member answered without a lease under this view.
    pub(super) confirm: bool,
    /// Members that have shown that they cannot read the content.
    pub(super) bad: Slots,
    /// Whether the row stands in for a member that may still answer itself.
    pub(super) has_stand_in: bool,
    pub(super) attempt: u32,
    /// How often it looked at newer writes in vain.
    pub(super) rounds: u32,
}

impl Target {
    pub(super) fn geometry(&self, cx: &Context<'_>) -> Geometry {
        cx.views.geometry(self.group)
    }

    pub(super) fn policy(&self, cx: &Context<'_>) -> ReadPolicy {
        cx.choice.policy(self.volume)
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of_read(self.span.count)
    }

    /// Finds the branch on which the volume's blocks are under `view`; whether the view knows it.
    pub(super) fn find_branch(&mut self, cx: &mut Context<'_>, view: &GroupView) -> bool {
        let Some(volume) = self.volume else { return true };
        let branch = cx.branch_of(view, volume);
        self.span.volume = branch.unwrap_or(self.span.volume);
        branch.is_some()
    }

    /// As policies by address know it.
    pub(super) fn address(&self) -> u64 {
        policy::address(&self.span)
    }

    /// Who takes part in writes of this unit, as a current member or one that joins.
    pub(super) fn witnesses(&self, cx: &Context<'_>, view: &GroupView) -> Slots {
        let geometry = self.geometry(cx);
        let scope = if is_mirrored(&geometry) { Scope::Row } else { Scope::Unit { index: self.data_index } };
        let write = WriteId { group: self.group, span: self.span, stamp: Stamp::ZERO, scope, link: None };
        participants(&geometry, view.writers(), &write)
    }

    /// The members that have the content itself and have not shown it to be bad.
    pub(super) fn holders(&self, cx: &Context<'_>, view: &GroupView, bad: Slots) -> Vec<(u8, BrickId)> {
        let geometry = self.geometry(cx);
        let holders = match is_mirrored(&geometry) {
            true => view.current,
            false => Slots::one(geometry.slot_of(self.span.lba, self.data_index)).and(view.current),
        };
        let good = holders.iter().filter(|slot| !bad.has(*slot) && !self.excluded.has(*slot));
        let with_brick: Vec<(u8, BrickId)> =
            good.map(|slot| (slot, view.members[usize::from(slot)])).collect();
        let reachable: Vec<(u8, BrickId)> =
            with_brick.iter().copied().filter(|(_, brick)| cx.views.is_up(*brick)).collect();
        if reachable.is_empty() { with_brick } else { reachable }
    }

    /// What it sees of writes that are not decided, while it asks for no stamps.
    pub(super) fn sight(&self, cx: &Context<'_>) -> Sight {
        match self.want_stamps {
            // What decides which write a patch builds on must not see what may never be.
            true => Sight::Decided,
            false => cx.choice.protocol(self.volume).atomicity.sight(),
        }
    }

    /// Of the holders those of whom one is asked first.
    pub(super) fn first_holders(&self, cx: &Context<'_>, view: &GroupView, met: &Met) -> Vec<(u8, BrickId)> {
        let holders = self.holders(cx, view, met.bad);
        let is_first = met.attempt == 0 && !met.confirm;
        let nearest = cx.choice.nearest(self.volume).filter(|_| is_first);
        match holders.iter().find(|(_, brick)| Some(*brick) == nearest) {
            Some(nearest) => vec![*nearest],
            None => holders,
        }
    }

    fn asks_for_stamps(&self, met: &Met) -> bool {
        self.want_stamps || met.confirm || !met.bad.is_empty()
    }

    /// What a question for the content, or one that is to confirm it, sees of writes that are not decided.
    pub(super) fn sight_of(&self, cx: &Context<'_>, met: &Met, content: bool) -> Sight {
        // What says whether it was whole must not see what may never be.
        let is_free = content && !self.asks_for_stamps(met);
        match self.sight(cx) {
            Sight::Committed if met.rounds >= ROUNDS_MAX => Sight::Decided,
            sight if is_free => sight,
            _ => Sight::Decided,
        }
    }

    /// Asks the member at `slot` for the content, or just to confirm it.
    pub(super) fn ask(
        &self,
        cx: &mut Context<'_>,
        view: &GroupView,
        met: &Met,
        (slot, content): (u8, bool),
        contest: Option<Contest>,
    ) {
        let stamps = view.current.has(slot) && self.asks_for_stamps(met);
        let sight = if stamps { Sight::Decided } else { self.sight_of(cx, met, content) };
        cx.read(view, slot, BlocksWanted { span: self.span, stamps, content, contest, sight });
    }
}
