//! Scrubbing: all groups in which this brick is current, one after the other, checked on the disk and compared with the
//! other members.

use super::context::Context;
use super::disks::Effect;
use super::job::{Place, Stretch};
use super::lineage::heir;
use super::members::{Column, Page};
use super::turn::Turn;
use super::walk::{Progress, Route, Visit, Walk};
use crate::counters::Counter;
use crate::view::Families;
use base::{BrickId, GroupId, Time};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use wire::{Care, GroupView, ScrubStatus};

const AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug)]
enum Step {
    Listing {
        after: Option<Stretch>,
        found: BTreeSet<Stretch>,
        turn: Turn,
    },
    /// All stretches are known.
    Listed(BTreeSet<Stretch>),
    Walking(Walk),
}

/// What is done with one group.
#[derive(Debug)]
struct At {
    group: GroupId,
    step: Step,
}

#[derive(Debug)]
struct Running {
    groups: VecDeque<GroupId>,
    at: Option<At>,
    is_urgent: bool,
}

/// What became of a group that is through.
pub(super) struct Scrubbed {
    pub(super) group: GroupId,
    /// Blocks that nobody can make out.
    pub(super) lost: BTreeSet<Place>,
}

/// The scrub of a brick.
#[derive(Debug)]
pub(super) struct Scrub {
    me: BrickId,
    /// The number of the last one asked for that was begun.
    number: u64,
    asked: u64,
    running: Option<Running>,
    interval_s: u64,
    next: Option<Time>,
    completed: u64,
    /// Of the groups that are through.
    through: Progress,
}

impl Scrub {
    pub(super) fn new(me: BrickId, number: u64) -> Scrub {
        Scrub {
            me,
            number,
            asked: number,
            running: None,
            interval_s: 0,
            next: None,
            completed: 0,
            through: Progress::default(),
        }
    }

    /// How often, how fast, and whether now.
    pub(super) fn on_care(&mut self, cx: &mut Context, care: Care) {
        cx.budget_mut().set_care(care, self.is_urgent());
        self.asked = self.asked.max(care.scrub);
        if care.scrub_interval_s != self.interval_s {
            self.interval_s = care.scrub_interval_s;
            // Bricks begin at different times: the id is spread over the interval.
            let phase = u64::from(self.me.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let interval_ms = u128::from(self.interval_s) * 1000;
            let wait_ms = ((interval_ms * u128::from(phase)) >> 32) as u64;
            self.next = (self.interval_s > 0).then(|| cx.now() + Duration::from_millis(wait_ms));
        }
    }

    /// Whether somebody waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        self.running.as_ref().map_or(self.asked > self.number, |running| running.is_urgent)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        let is_asked = self.asked > self.number;
        is_asked || self.running.is_none() && self.next.is_some_and(|next| next <= now)
    }

    /// Begins, or begins anew because it was asked for once more.
    pub(super) fn begin(&mut self, cx: &mut Context) {
        let current = cx.views().filter(|view| view.is_current(self.me));
        let groups = current.map(|view| view.group).collect();
        cx.members().forget_scrub();
        let is_urgent = self.asked > self.number;
        self.number = self.asked;
        self.through = Progress::default();
        self.running = Some(Running { groups, at: None, is_urgent });
        if self.interval_s > 0 {
            self.next = Some(cx.now() + Duration::from_secs(self.interval_s));
        }
        let care = cx.budget().care();
        self.on_care(cx, care);
    }

    pub(super) fn status(&self) -> ScrubStatus {
        let progress = self.progress();
        ScrubStatus {
            number: self.number,
            running: self.running.is_some(),
            completed: self.completed,
            checked_blocks: progress.compared_blocks,
            total_blocks: progress.total_blocks,
            found_blocks: progress.found_blocks,
            repaired_blocks: progress.repaired_blocks,
        }
    }

    fn progress(&self) -> Progress {
        let (through, walk) = (self.through, self.walk().map(Walk::progress).unwrap_or_default());
        Progress {
            compared_blocks: through.compared_blocks + walk.compared_blocks,
            total_blocks: through.total_blocks + walk.total_blocks,
            found_blocks: through.found_blocks + walk.found_blocks,
            repaired_blocks: through.repaired_blocks + walk.repaired_blocks,
            fetched_bytes: through.fetched_bytes + walk.fetched_bytes,
        }
    }

    pub(super) fn walk(&self) -> Option<&Walk> {
        match &self.running.as_ref()?.at.as_ref()?.step {
            Step::Walking(walk) => Some(walk),
            Step::Listing { .. } | Step::Listed(_) => None,
        }
    }

    pub(super) fn walk_mut(&mut self) -> Option<&mut Walk> {
        match &mut self.running.as_mut()?.at.as_mut()?.step {
            Step::Walking(walk) => Some(walk),
            Step::Listing { .. } | Step::Listed(_) => None,
        }
    }

    /// A view of a group began: the walk goes on under it, if this brick is still current.
    pub(super) fn on_view(&mut self, view: &GroupView) {
        if !view.is_current(self.me) {
            return self.on_group_gone(view.group);
        }
        let slot = view.slot_of(self.me).expect("a current member");
        if let Some(walk) = self.walk_of(view.group) {
            walk.set_slot(slot);
        }
    }

    fn walk_of(&mut self, group: GroupId) -> Option<&mut Walk> {
        self.walk_mut().filter(|walk| walk.route().group == group)
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        let Some(running) = &mut self.running else { return };
        running.groups.retain(|of| *of != group);
        if running.at.as_ref().is_some_and(|at| at.group == group) {
            running.at = None;
        }
    }

    /// The view changed while a span was looked at.
    pub(super) fn look_again(&mut self, now: Time, group: GroupId, visit: Visit, unrepaired: u64) {
        if let Some(walk) = self.walk_of(group) {
            walk.again(now, visit, unrepaired);
        }
    }

    /// The view changed: a page that is outstanding is asked for again.
    pub(super) fn list_again(&mut self, group: GroupId) {
        if let Some(At { group: of, step: Step::Listing { turn, .. } }) = self.at()
            && *of == group
            && *turn == Turn::Waiting
        {
            *turn = Turn::Ready;
        }
    }

    fn at(&mut self) -> Option<&mut At> {
        self.running.as_mut()?.at.as_mut()
    }

    pub(super) fn on_page(&mut self, now: Time, page: Page) {
        let Some(at) = self.at() else { return };
        let Step::Listing { after, found, turn } = &mut at.step else { return };
        let Page::Stretches(page) = page else {
            *turn = Turn::After(now + AGAIN);
            return;
        };
        found.extend(page.stretches);
        (*after, *turn) = (page.next, Turn::Ready);
        if page.next.is_none() {
            at.step = Step::Listed(core::mem::take(found));
        }
    }

    pub(super) fn deadline(&self, may_check_at: Time) -> Option<(Time, &'static str)> {
        let Some(running) = &self.running else {
            return self.next.map(|next| (next, "a scrub begins"));
        };
        let due = match running.at.as_ref().map(|at| &at.step) {
            Some(Step::Listing { turn, .. }) => turn.due(),
            Some(Step::Walking(walk)) => {
                // The end of a span begins what is due; without one outstanding the rate does.
                let more = walk.has_more().then_some(Time::ZERO);
                let due = [walk.due(), more].into_iter().flatten().min().filter(|_| walk.outstanding() == 0);
                due.map(|due| due.max(may_check_at))
            }
            Some(Step::Listed(_)) | None => Some(Time::ZERO),
        };
        due.map(|due| (due, "the scrub goes on"))
    }

    /// Goes on to the next page, the walk, or the next group, until a span or an answer is to be waited for. Gives the
    /// groups that are through.
    pub(super) fn advance(&mut self, cx: &mut Context) -> Vec<Scrubbed> {
        let mut through = Vec::new();
        while let Some(running) = &mut self.running {
            let Some(at) = &mut running.at else {
                match running.groups.pop_front() {
                    Some(group) => running.at = Some(At { group, step: Step::first() }),
                    None => self.end(cx),
                }
                continue;
            };
            let Some(view) = cx.view(at.group) else {
                running.at = None;
                continue;
            };
            match &mut at.step {
                Step::Walking(walk) if walk.is_through() => through.extend(self.finish_group()),
                Step::Walking(_) => break,
                Step::Listed(found) => {
                    let found = core::mem::take(found).into_iter();
                    let found =
                        found.map(|(branch, stretch)| (heir(&view.lineage, branch), stretch)).collect();
                    at.step = Step::Walking(Walk::new(route(view, self.me), found));
                }
                Step::Listing { turn, .. } if !turn.is_ready(cx.now()) => break,
                Step::Listing { after, turn, .. } => {
                    *turn = Turn::Waiting;
                    let (Route { group, slot, .. }, after) = (route(view, self.me), *after);
                    cx.members().list_for_scrub(Column { group, slot }, after);
                    break;
                }
            }
        }
        through
    }

    /// The next span to look at.
    pub(super) fn next(&mut self, cx: &Context, families: &Families) -> Option<Visit> {
        let most = cx.budget().scrub_spans_max(self.is_urgent());
        self.walk_mut().filter(|walk| walk.outstanding() < most)?.next(cx.now(), families)
    }

    /// The group whose blocks are walked over, if all of it is checked now: the scrub leaves it.
    pub(super) fn finish_group(&mut self) -> Option<Scrubbed> {
        let walk = self.walk_mut().filter(|walk| walk.is_through())?;
        let (group, lost) = (walk.route().group, walk.take_lost());
        self.through = self.progress();
        if let Some(running) = &mut self.running {
            running.at = None;
        }
        Some(Scrubbed { group, lost })
    }

    fn end(&mut self, cx: &mut Context) {
        let running = self.running.take();
        self.completed += 1;
        cx.count(Counter::ScrubCompleted);
        if running.is_some_and(|running| running.is_urgent) {
            cx.disks().tell(Effect::NoteScrub(self.number));
        }
        cx.report();
        let care = cx.budget().care();
        self.on_care(cx, care);
    }
}

impl Step {
    fn first() -> Step {
        Step::Listing { after: None, found: BTreeSet::new(), turn: Turn::Ready }
    }
}

/// Over this brick's blocks of a group.
fn route(view: &GroupView, me: BrickId) -> Route {
    let slot = view.slot_of(me).expect("a member of its own group");
    Route { group: view.group, family: view.volume, slot, verify: true }
}
