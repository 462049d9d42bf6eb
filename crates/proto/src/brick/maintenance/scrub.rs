//! Scrubbing: all groups in which this brick is current, one after the other, checked on the disk and compared with the
//! other members.

use super::bucket::Bucket;
use super::merge::Merging;
use super::span::SpanJob;
use super::walk::Walk;
use super::{Job, Maintenance, Owner, Wish};
use crate::netraid::coordinator::{Operation, Outcome};
use crate::netraid::list::{ListOperation, Listed};
use crate::view::Families;
use base::{BrickId, GroupId, Time, VolumeId};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use wire::{Care, GroupView, ScrubStatus};

const AGAIN: Duration = Duration::from_millis(200);
/// Spans under way for one that nobody waits for.
const SPANS_MAX_UNASKED: usize = 4;
const SPANS_MAX_UNDER_LOAD: usize = 1;

#[derive(Debug)]
enum Step {
    Listing {
        after: Option<(VolumeId, u64)>,
        found: BTreeSet<(VolumeId, u64)>,
        is_waiting: bool,
        due: Option<Time>,
    },
    Walking(Walk),
}

#[derive(Debug)]
struct Running {
    groups: VecDeque<GroupId>,
    at: Option<(GroupId, Step)>,
    is_urgent: bool,
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
    through: ScrubStatus,
}

impl Scrub {
    pub(super) fn new(me: BrickId, number: u64) -> Scrub {
        let (running, next, through) = (None, None, ScrubStatus::default());
        Scrub { me, number, asked: number, running, interval_s: 0, next, completed: 0, through }
    }

    pub(super) fn on_care(&mut self, now: Time, care: &Care) {
        self.asked = self.asked.max(care.scrub);
        if care.scrub_interval_s != self.interval_s {
            self.interval_s = care.scrub_interval_s;
            // Bricks begin at different times: the id is spread over the interval.
            let phase = u64::from(self.me.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let interval_ms = u128::from(self.interval_s) * 1000;
            let wait_ms = ((interval_ms * u128::from(phase)) >> 32) as u64;
            self.next = (self.interval_s > 0).then(|| now + Duration::from_millis(wait_ms));
        }
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.running.as_ref().map_or(self.asked > self.number, |running| running.is_urgent)
    }

    fn is_due(&self, now: Time) -> bool {
        match &self.running {
            Some(_) => self.asked > self.number,
            None => self.asked > self.number || self.next.is_some_and(|next| next <= now),
        }
    }

    fn begin(&mut self, now: Time, groups: VecDeque<GroupId>) {
        let is_urgent = self.asked > self.number;
        self.number = self.asked;
        self.through = ScrubStatus::default();
        self.running = Some(Running { groups, at: None, is_urgent });
        if self.interval_s > 0 {
            self.next = Some(now + Duration::from_secs(self.interval_s));
        }
    }

    pub(super) fn status(&self) -> ScrubStatus {
        let walk = self.walk();
        let sum = |through: u64, of: fn(&Walk) -> u64| through + walk.map_or(0, of);
        ScrubStatus {
            number: self.number,
            running: self.running.is_some(),
            completed: self.completed,
            checked_blocks: sum(self.through.checked_blocks, |walk| walk.compared_blocks),
            total_blocks: sum(self.through.total_blocks, |walk| walk.total_blocks),
            found_blocks: sum(self.through.found_blocks, |walk| walk.found_blocks),
            repaired_blocks: sum(self.through.repaired_blocks, |walk| walk.repaired_blocks),
        }
    }

    pub(super) fn walk(&self) -> Option<&Walk> {
        match &self.running.as_ref()?.at.as_ref()?.1 {
            Step::Walking(walk) => Some(walk),
            Step::Listing { .. } => None,
        }
    }

    pub(super) fn walk_mut(&mut self) -> Option<&mut Walk> {
        match &mut self.running.as_mut()?.at.as_mut()?.1 {
            Step::Walking(walk) => Some(walk),
            Step::Listing { .. } => None,
        }
    }

    /// A view of a group began: the walk goes on under it, if this brick is still current.
    pub(super) fn on_view(&mut self, view: &GroupView, me: BrickId) {
        if !view.is_current(me) {
            return self.on_group_gone(view.group);
        }
        if let Some(walk) = self.walk_mut().filter(|walk| walk.group == view.group) {
            walk.number = view.number;
            walk.slot = view.slot_of(me).expect("a current member");
        }
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        let Some(running) = &mut self.running else { return };
        running.groups.retain(|of| *of != group);
        if running.at.as_ref().is_some_and(|(of, _)| *of == group) {
            running.at = None;
        }
    }

    /// What was under way when the view changed.
    pub(super) fn look_again(&mut self, now: Time, job: &SpanJob) {
        if let Some(walk) = self.walk_mut().filter(|walk| walk.group == job.group) {
            walk.again(now, job.span, job.attempts, job.unrepaired);
        }
    }

    pub(super) fn lists(&self, group: GroupId) -> bool {
        let at = self.running.as_ref().and_then(|running| running.at.as_ref());
        matches!(at, Some((of, Step::Listing { .. })) if *of == group)
    }

    pub(super) fn list_again(&mut self) {
        if let Some((_, Step::Listing { is_waiting, .. })) = self.at() {
            *is_waiting = false;
        }
    }

    fn at(&mut self) -> Option<&mut (GroupId, Step)> {
        self.running.as_mut()?.at.as_mut()
    }

    pub(super) fn on_page(&mut self, now: Time, outcome: Outcome) {
        let Some((_, Step::Listing { after, found, is_waiting, due })) = self.at() else { return };
        *is_waiting = false;
        match outcome {
            Outcome::Stretches(page) => {
                found.extend(page.stretches);
                *after = page.next;
                // The walk begins where there is no next page: see [`Maintenance::begin_scrub`].
                *due = page.next.is_none().then_some(Time::ZERO);
            }
            _ => *due = Some(now + AGAIN),
        }
    }

    pub(super) fn deadline(&self, checking: &Bucket) -> Option<(Time, &'static str)> {
        let Some(running) = &self.running else {
            return self.next.map(|next| (next, "a scrub begins"));
        };
        let due = match &running.at {
            Some((_, Step::Listing { due, .. })) => *due,
            Some((_, Step::Walking(walk))) => {
                // The end of a span begins what is due; without one under way the rate does.
                let more = walk.has_more().then_some(Time::ZERO);
                let due = [walk.due(), more].into_iter().flatten().min().filter(|_| walk.in_flight == 0);
                due.map(|due| due.max(checking.opens_at()))
            }
            None => Some(Time::ZERO),
        };
        due.map(|due| (due, "the scrub goes on"))
    }
}

impl Maintenance {
    pub(super) fn begin_scrub(&mut self, families: &Families, load: usize) {
        if self.scrub.is_due(self.now) {
            let current = self.views.values().filter(|view| view.is_current(self.me));
            let groups = current.map(|view| view.group).collect();
            self.drop_scrub_jobs();
            self.scrub.begin(self.now, groups);
            self.on_care(self.now, self.care);
        }
        while self.next_scrub_step() {}
        self.scrub_spans(families, load);
    }

    fn drop_scrub_jobs(&mut self) {
        self.jobs.retain(|_, job| match job {
            Job::Span(span) => span.owner != Owner::Scrub,
            Job::ScrubPage => false,
            _ => true,
        });
    }

    /// Goes on to the next page, the walk, or the next group. Whether there may be more to do at once.
    fn next_scrub_step(&mut self) -> bool {
        let now = self.now;
        let Some(running) = &mut self.scrub.running else { return false };
        let Some((group, step)) = &mut running.at else {
            let Some(group) = running.groups.pop_front() else {
                self.end_scrub();
                return false;
            };
            let (after, found) = (None, BTreeSet::new());
            running.at = Some((group, Step::Listing { after, found, is_waiting: false, due: None }));
            return true;
        };
        let group = *group;
        let Some(view) = self.views.get(&group) else {
            running.at = None;
            return true;
        };
        let slot = view.slot_of(self.me).expect("a member of its own group");
        match step {
            Step::Walking(walk) if walk.is_through() => self.finish_scrub(),
            Step::Walking(_) => return false,
            Step::Listing { is_waiting: true, .. } => return false,
            Step::Listing { due: Some(Time::ZERO), found, .. } => {
                let heir = |(branch, stretch)| (Merging::heir(&view.lineage, branch), stretch);
                let found = core::mem::take(found).into_iter().map(heir).collect();
                *step = Step::Walking(Walk::new((group, view.volume), (view.number, slot), true, found));
            }
            Step::Listing { due: Some(due), .. } if *due > now => return false,
            Step::Listing { after, is_waiting, due, .. } => {
                (*is_waiting, *due) = (true, None);
                let operation = ListOperation::new(group, slot, Listed::Stretches(*after));
                let job = self.begin_job(Job::ScrubPage);
                self.operate(job, 0, Operation::List(operation));
                return false;
            }
        }
        true
    }

    fn scrub_spans(&mut self, families: &Families, load: usize) {
        let most = match () {
            () if load > 0 => SPANS_MAX_UNDER_LOAD,
            () if self.scrub.is_urgent() => super::SPANS_MAX,
            () => SPANS_MAX_UNASKED,
        };
        while self.checking.is_open(self.now) {
            let now = self.now;
            let Some(walk) = self.scrub.walk_mut().filter(|walk| walk.in_flight < most) else { return };
            let group = walk.group;
            let Some((span, attempts)) = walk.next(now, families) else { return };
            self.begin_span(Owner::Scrub, group, span, attempts);
        }
    }

    /// Whether all of a group is checked now.
    pub(super) fn finish_scrub(&mut self) {
        let Some(walk) = self.scrub.walk_mut().filter(|walk| walk.is_through()) else { return };
        self.lost.insert(walk.group, core::mem::take(&mut walk.lost));
        self.scrub.through = self.scrub.status();
        if let Some(running) = &mut self.scrub.running {
            running.at = None;
        }
    }

    fn end_scrub(&mut self) {
        let running = self.scrub.running.take();
        self.scrub.completed += 1;
        self.coordinator.shared.counters.count("scrub completed");
        if running.is_some_and(|running| running.is_urgent) {
            self.wishes.push(Wish::NoteScrub(self.scrub.number));
        }
        self.wishes.push(Wish::Report);
        self.on_care(self.now, self.care);
    }
}
