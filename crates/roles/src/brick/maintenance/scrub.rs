//! Scrubbing: all groups in which this brick is current, one after the other, checked on the disk and compared with the
//! other members.
//!
//! A block that nobody can make out is named as lost, and the scrub goes on. A member that was away may have what it takes:
//! under each later view of the group such blocks are looked at again, between scrubs, too.

use super::context::Context;
use super::disks::Effect;
use super::job::{Place, Stretch};
use super::lineage::heir;
use super::members::{Column, Page};
use super::turn::Turn;
use super::walk::{Progress, Route, Visit, Walk};
use base::{BrickId, GroupId, Time};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeSet, VecDeque};
use volume::view::Families;
use wire::{Care, GroupView, ScrubStatus};

const AGAIN: Duration = Duration::from_millis(200);

/// A group to scrub.
#[derive(Debug)]
struct Wanted {
    group: GroupId,
    /// Only these blocks, which an earlier walk named as lost; all that there are otherwise.
    lost: Option<BTreeSet<Place>>,
}

#[derive(Debug)]
enum Step {
    Listing {
        after: Option<Stretch>,
        found: BTreeSet<Stretch>,
        turn: Turn,
    },
    /// All stretches are known.
    Listed(BTreeSet<Stretch>),
    /// These blocks are to be looked at again.
    Lost(BTreeSet<Place>),
    Walking(Walk),
}

/// What is done with one group.
#[derive(Debug)]
struct At {
    group: GroupId,
    step: Step,
    /// Whether its blocks were walked over before.
    is_again: bool,
}

/// What a run over groups is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The scrub that somebody asked for.
    Asked,
    /// The scrub that is due by the clock.
    Regular,
    /// No scrub: blocks that one named as lost.
    Lost,
}

#[derive(Debug)]
struct Running {
    groups: VecDeque<Wanted>,
    at: Option<At>,
    purpose: Purpose,
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
        self.running.as_ref().map_or(self.asked > self.number, |running| running.purpose == Purpose::Asked)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        let is_asked = self.asked > self.number;
        is_asked || self.running.is_none() && self.next.is_some_and(|next| next <= now)
    }

    /// Begins, or begins anew because it was asked for once more.
    pub(super) fn begin(&mut self, cx: &mut Context) {
        let current = cx.views().filter(|view| view.is_current(self.me));
        let groups = current.map(|view| Wanted { group: view.group, lost: None }).collect();
        cx.members().forget_scrub();
        let purpose = if self.asked > self.number { Purpose::Asked } else { Purpose::Regular };
        self.number = self.asked;
        self.through = Progress::default();
        self.running = Some(Running { groups, at: None, purpose });
        if self.interval_s > 0 {
            self.next = Some(cx.now() + Duration::from_secs(self.interval_s));
        }
        let care = cx.budget().care();
        self.on_care(cx, care);
    }

    /// After `before`, at a brick that found so many blocks unreadable since it started.
    pub(super) fn status(&self, before: &ScrubStatus, unreadable_blocks: u64) -> ScrubStatus {
        let progress = self.progress();
        // What was unreadable and is not found any more was overwritten, or given back.
        let has_ended = self.completed > before.completed && self.running.is_none();
        let is_clean = has_ended && progress.found_blocks == 0;
        ScrubStatus {
            number: self.number,
            running: self.running.is_some(),
            completed: self.completed,
            checked_blocks: progress.compared_blocks,
            total_blocks: progress.total_blocks,
            found_blocks: progress.found_blocks,
            repaired_blocks: progress.repaired_blocks,
            settled_blocks: if is_clean { unreadable_blocks } else { before.settled_blocks },
        }
    }

    fn progress(&self) -> Progress {
        let (through, walk) = (self.through, self.walk().map(Walk::progress).unwrap_or_default());
        if self.running.as_ref().and_then(|running| running.at.as_ref()).is_some_and(|at| at.is_again) {
            // What a scrub named as lost was counted as found before, and may be well by now: somebody else repaired it.
            let found_before = through.found_blocks.saturating_sub(walk.compared_blocks);
            return Progress {
                found_blocks: found_before + walk.found_blocks,
                repaired_blocks: through.repaired_blocks + walk.repaired_blocks,
                ..through
            };
        }
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
            Step::Listing { .. } | Step::Listed(_) | Step::Lost(_) => None,
        }
    }

    pub(super) fn walk_mut(&mut self) -> Option<&mut Walk> {
        match &mut self.running.as_mut()?.at.as_mut()?.step {
            Step::Walking(walk) => Some(walk),
            Step::Listing { .. } | Step::Listed(_) | Step::Lost(_) => None,
        }
    }

    /// A view of a group began: the walk goes on under it, if this brick is still current. `lost` is what earlier walks named.
    pub(super) fn on_view(&mut self, now: Time, view: &GroupView, lost: Option<&BTreeSet<Place>>) {
        if !view.is_current(self.me) {
            return self.on_group_gone(view.group);
        }
        let slot = view.slot_of(self.me).expect("a current member");
        if let Some(walk) = self.walk_of(view.group) {
            walk.set_slot(slot);
            walk.revisit_lost(now);
        }
        if let Some(lost) = lost.filter(|lost| !lost.is_empty()) {
            self.look_for_lost(view.group, lost);
        }
    }

    /// Looks at these blocks again, unless the group is still to be scrubbed in any case.
    fn look_for_lost(&mut self, group: GroupId, lost: &BTreeSet<Place>) {
        let nothing = Running { groups: VecDeque::new(), at: None, purpose: Purpose::Lost };
        let running = self.running.get_or_insert(nothing);
        let is_ahead = running.groups.iter().any(|wanted| wanted.group == group);
        if !is_ahead && running.at.as_ref().is_none_or(|at| at.group != group) {
            running.groups.push_back(Wanted { group, lost: Some(lost.clone()) });
        }
    }

    fn walk_of(&mut self, group: GroupId) -> Option<&mut Walk> {
        self.walk_mut().filter(|walk| walk.route().group == group)
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        let Some(running) = &mut self.running else { return };
        running.groups.retain(|wanted| wanted.group != group);
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
        if let Some(At { group: of, step: Step::Listing { turn, .. }, .. }) = self.at()
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
            Some(Step::Listed(_) | Step::Lost(_)) | None => Some(Time::ZERO),
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
                    Some(wanted) => running.at = Some(At::begin(wanted)),
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
                Step::Lost(lost) => {
                    let heir_of = |Place { branch, lba }| Place { branch: heir(&view.lineage, branch), lba };
                    let lost = core::mem::take(lost).into_iter().map(heir_of).collect();
                    at.step = Step::Walking(Walk::over(route(view, self.me), lost, cx.now()));
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
        let Some(Running { purpose, .. }) = self.running.take() else { return };
        cx.report();
        if purpose == Purpose::Lost {
            return;
        }
        self.completed += 1;
        cx.count(Counter::ScrubCompleted);
        if purpose == Purpose::Asked {
            cx.disks().tell(Effect::NoteScrub(self.number));
        }
        let care = cx.budget().care();
        self.on_care(cx, care);
    }
}

impl At {
    fn begin(Wanted { group, lost }: Wanted) -> At {
        let is_again = lost.is_some();
        let listing = || Step::Listing { after: None, found: BTreeSet::new(), turn: Turn::Ready };
        At { group, step: lost.map_or_else(listing, Step::Lost), is_again }
    }
}

/// Over this brick's blocks of a group.
fn route(view: &GroupView, me: BrickId) -> Route {
    let slot = view.slot_of(me).expect("a member of its own group");
    Route { group: view.group, family: view.volume, slot, verify: true }
}
