//! The brick and its [`Maintenance`]: carries out what it asks for, and brings it the answers of disks and members.
//!
//! What the maintenance asks of this brick itself goes the way of any other member's questions, without the network. So there
//! is one path into a participant, with all its checks.

use super::maintenance::{DiskQuestion, Effect};
use super::{Brick, BrickEffect, reply};
use base::{BrickId, GroupId, NodeId, RequestId, Time, ViewNumber, VolumeId};
use objects::object::ObjectWish;
use rules::counters::Counter;
use std::collections::BTreeMap;
use volume::netraid::answer::{Answer, Received};
use volume::netraid::participant::jobs::Finding;
use wire::disk::{INVENTORY_MAX, StoreError};
use wire::{
    CLAIMS_MAX, COMPLETIONS_MAX, Completion, FragmentId, GroupView, IndexRequest, Inventory, Message, Packet,
    Span,
};

/// Jobs of questions from other bricks have this bit, those of the maintenance do not.
const LISTING_JOB: u64 = 1 << 63;

type Page = Result<Vec<(VolumeId, u64)>, StoreError>;

/// A question for stretches, while the disks look.
#[derive(Debug)]
pub(super) struct Listing {
    from: NodeId,
    operation: u64,
    group: GroupId,
    family: VolumeId,
    pages: Vec<Page>,
}

impl Brick {
    // ---- what other bricks ask ----

    pub(super) fn on_brick(&mut self, now: Time, from: BrickId, packet: Packet, fx: &mut Vec<BrickEffect>) {
        let node = NodeId::Brick(from);
        if !self.is_of_its_groups(from, &packet.message) {
            return self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored);
        }
        if matches!(packet.message, Message::Waiting { .. } | Message::Cancelled { .. }) {
            // Of questions about fragments, or of others.
            self.restores.on_brick(now, from, packet.clone());
        }
        match packet.message {
            Message::Inventory { operation, group, view, after } => {
                self.on_inventory(now, from, (operation, group, view), after, fx);
            }
            Message::GetCompletions { operation, group, view, after } => {
                let completions = match self.groups.serves(group, view) {
                    Ok(()) => Ok(self.completions_after(after)),
                    Err(view) => Err(view),
                };
                reply(fx, node, Message::CompletionsDone { operation, completions });
            }
            Message::Read { .. }
            | Message::Repair { .. }
            | Message::Query { .. }
            | Message::Decide { .. }
            | Message::PutFragment { .. }
            | Message::GetFragment { .. }
            | Message::CheckFragment { .. }
            | Message::Cancel { .. } => {
                self.on_gateway(now, node, packet, fx);
            }
            Message::FragmentPut { .. } | Message::Fragment { .. } => {
                self.restores.on_brick(now, from, packet);
            }
            Message::Claims { claims } => {
                for claim in claims.into_iter().take(CLAIMS_MAX) {
                    let span = Span { volume: claim.volume, lba: claim.lba, count: 1 };
                    self.with(now, fx, span, |participant, cx| participant.on_claim(cx, from, claim));
                }
            }
            _ => match Answer::from_packet(packet) {
                Received::Answer(call, answer, wait) => self.maintenance.on_answer(now, call, answer, wait),
                Received::Waiting(calls) => self.maintenance.on_waiting(now, from, &calls),
                Received::Cancelled { withdrawn, late } => {
                    self.maintenance.on_cancelled(now, from, &withdrawn, &late);
                }
                Received::Other(_) => self.counters.count(Counter::MessageFromAStrangerToThisRoleIgnored),
            },
        }
    }

    /// Whether what a brick says or asks of blocks is of a group of which it is a member, under a view that is known here.
    fn is_of_its_groups(&self, from: BrickId, message: &Message) -> bool {
        let is_member = |group: GroupId, number: ViewNumber| {
            let view = self.groups.active(group).filter(|view| view.number == number);
            view.is_none_or(|view| view.members.contains(&from))
        };
        match message {
            Message::Read { group, view, .. }
            | Message::Repair { group, view, .. }
            | Message::Inventory { group, view, .. }
            | Message::GetCompletions { group, view, .. } => is_member(*group, *view),
            Message::Query { view, write, .. } => is_member(write.group, *view),
            Message::Decide { commits, aborts } => {
                commits.iter().chain(aborts).all(|decision| self.may_decide(from, decision.volume))
            }
            _ => true,
        }
    }

    /// Whether a brick is a member of any group on which a branch lies.
    fn may_decide(&self, from: BrickId, branch: VolumeId) -> bool {
        let views = self.groups.states().filter_map(|state| state.active.as_ref());
        let mut of = views.filter(|view| view.volume == branch || view.lineage.knows(branch)).peekable();
        of.peek().is_none() || of.any(|view| view.members.contains(&from))
    }

    fn completions_after(&self, after: Option<(RequestId, u64)>) -> Vec<Completion> {
        // Each disk remembers its own; what was taken over from others is at all of them.
        let mut all: BTreeMap<(RequestId, u64), Completion> = BTreeMap::new();
        for participant in &self.participants {
            for completion in participant.list_completions(after, COMPLETIONS_MAX) {
                all.insert((completion.request, completion.part), completion);
            }
        }
        all.into_values().take(COMPLETIONS_MAX).collect()
    }

    fn on_inventory(
        &mut self,
        now: Time,
        from: BrickId,
        (operation, group, view): (u64, GroupId, ViewNumber),
        after: Option<(VolumeId, u64)>,
        fx: &mut Vec<BrickEffect>,
    ) {
        let is_own = from == self.groups.me();
        let admitted = if is_own { self.groups.takes(group, view) } else { self.groups.serves(group, view) };
        let family = self.groups.active(group).map(|view| view.volume);
        let known = family.filter(|family| self.families.geometry(*family).is_some());
        let (Ok(()), Some(family)) = (&admitted, known) else {
            let stretches = Err(admitted.err().flatten());
            return reply(fx, NodeId::Brick(from), Message::InventoryDone { operation, stretches });
        };
        self.listings_begun += 1;
        let job = LISTING_JOB | self.listings_begun;
        // Whoever asks again has no use of the earlier answer.
        self.listings.retain(|_, listing| (listing.from, listing.group) != (NodeId::Brick(from), group));
        let listing = Listing { from: NodeId::Brick(from), operation, group, family, pages: Vec::new() };
        self.listings.insert(job, listing);
        self.with_all(now, fx, |participant, cx| participant.list_stretches(cx, job, after));
    }

    fn on_listed(&mut self, job: u64, page: Page, fx: &mut Vec<BrickEffect>) {
        let Some(listing) = self.listings.get_mut(&job) else { return };
        listing.pages.push(page);
        if listing.pages.len() < self.participants.len() {
            return;
        }
        let Listing { from, operation, group, family, pages } =
            self.listings.remove(&job).expect("just seen");
        let pages: Result<Vec<_>, StoreError> = pages.into_iter().collect();
        let Ok(pages) = pages else {
            return reply(fx, from, Message::InventoryDone { operation, stretches: Err(None) });
        };
        // A full page says nothing of what is beyond its last stretch.
        let next =
            pages.iter().filter(|page| page.len() >= INVENTORY_MAX).filter_map(|page| page.last()).min();
        // Versions of objects come behind all volumes, and no group has any.
        let next = next.copied().filter(|(branch, _)| FragmentId::version_of(*branch).is_none());
        let mut stretches: Vec<(VolumeId, u64)> = pages.into_iter().flatten().collect();
        stretches.retain(|place| next.is_none_or(|next| *place <= next) && self.is_of(*place, family, group));
        stretches.sort_unstable();
        stretches.dedup();
        let stretches = Ok(Inventory { stretches, next });
        reply(fx, from, Message::InventoryDone { operation, stretches });
    }

    fn is_of(&self, (branch, stretch): (VolumeId, u64), family: VolumeId, group: GroupId) -> bool {
        self.groups.family_of(branch) == family
            && self.families.groups_of_stretch(family, stretch).contains(&group)
    }

    // ---- the maintenance ----

    /// Lets the maintenance go on. `begun` is where the effects of this step begin: what is sent to this brick itself is taken
    /// out of them.
    pub(super) fn tend(&mut self, now: Time, begun: usize, fx: &mut Vec<BrickEffect>) {
        if !self.awake {
            return;
        }
        let load = self.participants.iter().map(|participant| participant.load()).sum();
        loop {
            let mut is_quiet = !self.bring_own(now, fx);
            self.maintenance.advance(now, &self.groups, &self.families, load);
            for effect in self.maintenance.take_effects() {
                is_quiet = false;
                self.carry_out(now, effect, fx);
            }
            for (id, computation) in self.maintenance.take_computations() {
                fx.push(BrickEffect::Compute { number: id.0, computation });
            }
            for (to, packet) in self.maintenance.take_messages() {
                fx.push(BrickEffect::Send { to: NodeId::Brick(to), packet });
            }
            is_quiet &= !self.bring_restored(now, fx);
            is_quiet &= !self.deliver_own(now, begun, fx);
            if is_quiet {
                self.counters.add(&self.maintenance.take_counters());
                return;
            }
        }
    }

    /// What the disks found.
    fn bring_own(&mut self, now: Time, fx: &mut Vec<BrickEffect>) -> bool {
        let found: Vec<(u64, Finding)> =
            self.participants.iter_mut().flat_map(|p| p.take_findings()).collect();
        let any = !found.is_empty();
        for (job, own) in found {
            match own {
                Finding::Stretches(page) if job & LISTING_JOB != 0 => self.on_listed(job, page, fx),
                own => self.maintenance.on_own(now, DiskQuestion(job), own),
            }
        }
        any
    }

    fn deliver_own(&mut self, now: Time, begun: usize, fx: &mut Vec<BrickEffect>) -> bool {
        let me = NodeId::Brick(self.groups.me());
        let is_own = |effect: &BrickEffect| matches!(effect, BrickEffect::Send { to, .. } if *to == me);
        if !fx[begun..].iter().any(is_own) {
            return false;
        }
        let (own, others): (Vec<_>, Vec<_>) = fx.drain(begun..).partition(is_own);
        fx.extend(others);
        for effect in own {
            if let BrickEffect::Send { packet, .. } = effect {
                self.on_brick(now, self.groups.me(), packet, fx);
            }
        }
        true
    }

    pub(super) fn carry_out(&mut self, now: Time, effect: Effect, fx: &mut Vec<BrickEffect>) {
        match effect {
            Effect::Examine { question, group, span, width, verify } => {
                self.with(now, fx, span, |participant, cx| {
                    participant.examine(cx, question.0, group, span, width, verify);
                });
            }
            Effect::Lose { question, group, view, span, width, stamps } => {
                self.with(now, fx, span, |participant, cx| {
                    participant.lose(cx, question.0, (group, view), span, width, stamps);
                });
            }
            Effect::Remember { question, completions } => {
                self.with_all(now, fx, |participant, cx| {
                    participant.remember(cx, question.0, completions.clone())
                });
            }
            Effect::Stretches { question, disk, after } => {
                self.with_disk(now, fx, disk, |participant, cx| {
                    participant.list_stretches(cx, question.0, after)
                });
            }
            Effect::Versions { question, disk, after } => {
                self.with_disk(now, fx, disk, |participant, cx| {
                    participant.list_stretches(cx, question.0, Some(after));
                });
            }
            Effect::Survey { question, disk, span } => {
                self.with_disk(now, fx, disk, |participant, cx| participant.survey(cx, question.0, span));
            }
            Effect::Erase { disk, span } => {
                self.with_disk(now, fx, disk, |participant, cx| participant.erase(cx, span));
            }
            Effect::AskGone { operation, versions } => {
                let request = Box::new(IndexRequest::Gone { versions });
                reply(fx, NodeId::Directory, Message::Index { operation, request });
            }
            Effect::Restore { tag, version, inspection } => {
                let wish = ObjectWish::Restore { version, me: self.groups.me(), inspection };
                self.restores.wish(now, tag, wish);
            }
            Effect::Rebalance { tag, wanted } => {
                self.restores.wish(now, tag, ObjectWish::Rebalance(wanted));
            }
            Effect::ReadMore { tag } => self.restores.wish(now, tag, ObjectWish::More),
            Effect::LookAtBricks => self.restores.look_at_bricks(),
            Effect::DropVersion(version) => self.drop_version(now, version, fx),
            Effect::Discard { branch, stretch } => {
                self.with_all(now, fx, |participant, cx| participant.discard_stretch(cx, branch, stretch));
            }
            Effect::CopyUp { question, group, span, width, from } => {
                self.with(now, fx, span, |participant, cx| {
                    participant.merge(cx, question.0, group, span, width, from);
                });
            }
            Effect::DiscardMerged { question, branch, stretch } => {
                let span = Span { volume: branch, lba: stretch * Span::STRETCH_BLOCKS, count: 1 };
                self.with(now, fx, span, |participant, cx| {
                    participant.discard_merged(cx, question.0, branch, stretch);
                });
            }
            Effect::Settle { question } => {
                self.with_all(now, fx, |participant, cx| participant.settle(cx, question.0))
            }
            Effect::Drop(view) => self.drop_group(now, &view, fx),
            Effect::NoteScrub(number) => self.note_scrub(number, fx),
            Effect::Report => self.membership.report_soon(now),
        }
    }

    /// Of a group that this brick left nothing is served any more.
    fn drop_group(&mut self, now: Time, view: &GroupView, fx: &mut Vec<BrickEffect>) {
        self.counters.count(Counter::GroupLeft);
        self.groups.bury(view.group, view.number);
        self.with_all(now, fx, |participant, cx| participant.activate(cx, view, &[]));
        self.note_dropped(view.group, fx);
        self.look_at_group(now, view.group);
    }

    /// The view of one group changed. The cost does not grow with the number of groups.
    pub(super) fn look_at_group(&mut self, now: Time, group: GroupId) {
        self.maintenance.on_group(now, group, &self.groups, &self.families);
        self.locks.on_groups(now, &self.groups);
    }

    /// The views of many groups or the families changed.
    pub(super) fn look_at_groups(&mut self, now: Time) {
        self.maintenance.on_groups(now, &self.groups, &self.families);
        self.locks.on_groups(now, &self.groups);
    }

    /// A span that holds one block, to find its disk.
    pub(super) fn place_of(&self, span: Span) -> usize {
        let family = self.groups.family_of(span.volume);
        super::disk_of(Span { volume: family, ..span }, self.participants.len())
    }
}
