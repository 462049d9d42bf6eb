//! How a brick looks after its blocks: it *catches up* where it joins a group, and *scrubs* where it is current.
//!
//! Both are a [`walk`] over the blocks of a group. For each span: look at what is here (a scrub checks the disk, too), ask
//! the current members which stamps should be here ([`ExpectedOperation`]), and have what differs fetched and mended
//! ([`RepairOperation`]), which is the very operation that mends a rotten block for a gateway. The questions to other
//! members are those of a gateway, asked by a [`Coordinator`] of the brick's own; those to itself come back to it without
//! the network. It never writes, so it draws no stamps.
//!
//! What it costs others is bounded: bytes a second by a [`bucket`], spans under way by a number, which is small while
//! clients wait here.
//!
//! Reading order: this file ([`Maintenance::advance`] begins work, [`Maintenance::on_own`] and the outcomes carry a span through),
//! [`catch_up`], [`scrub`], [`leave`], [`merge`].

mod bucket;
mod catch_up;
mod leave;
mod merge;
mod scrub;
mod span;
mod walk;

use crate::netraid::coordinator::{Answer, Coordinator, Operation, Outcome, Parent};
use crate::netraid::participant::own::Own;
use crate::planted::Plant;
use crate::view::{Families, Groups};
use base::{BLOCK_U64, BrickId, GroupId, Stamp, Time, ViewNumber, VolumeId};
use bucket::Bucket;
use catch_up::CatchUpRun;
use leave::Leaving;
use merge::Merging;
use scrub::Scrub;
use span::SpanJob;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use walk::Walk;
use wire::{BrickStatus, Care, Completion, GroupView, LostBlocks, Packet, Span};

/// The most spans under way; and while clients wait here.
const SPANS_MAX: usize = 16;
const SPANS_MAX_UNDER_LOAD: usize = 4;
/// The most lost blocks that are named.
const LOST_MAX: usize = 64;

/// What is asked of the brick's own disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// The stamps of own blocks, answered by [`Own::Blocks`].
    Examine {
        /// Names the answer.
        job: u64,
        /// The group.
        group: GroupId,
        /// The blocks.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// Whether the disk is checked.
        verify: bool,
    },
    /// Marks a block as lost that nobody can make out, answered by [`Own::Lost`].
    Lose {
        /// Names the answer.
        job: u64,
        /// The group.
        group: GroupId,
        /// The view under which it is known to be lost.
        view: ViewNumber,
        /// The block.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// The stamps that it should have.
        stamps: Vec<Stamp>,
    },
    /// Effects of other members, for every disk; each answers with [`Own::Remembered`].
    Remember {
        /// Names the answers.
        job: u64,
        /// `(request, part, stamp)`.
        completions: Vec<Completion>,
    },
    /// The stretches on one disk, answered by [`Own::Stretches`].
    Stretches {
        /// Names the answer.
        job: u64,
        /// Which disk.
        disk: usize,
        /// Those after this one.
        after: Option<(VolumeId, u64)>,
    },
    /// Gives a stretch of a branch back, on every disk.
    Discard {
        /// The branch.
        branch: VolumeId,
        /// The stretch.
        stretch: u64,
    },
    /// Copies blocks of an ancestor up that a branch lacks, answered by [`Own::CopiedUp`].
    CopyUp {
        /// Names the answer.
        job: u64,
        /// The group.
        group: GroupId,
        /// The blocks, of the branch.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// The ancestor.
        from: VolumeId,
    },
    /// Gives a stretch of a merged branch back once no read that began before can come to it; each disk answers with
    /// [`Own::Remembered`].
    DiscardMerged {
        /// Names the answer.
        job: u64,
        /// The branch.
        branch: VolumeId,
        /// The stretch.
        stretch: u64,
    },
    /// Says, for every disk with [`Own::Remembered`], when all that was given back is gone for good.
    Settle {
        /// Names the answers.
        job: u64,
    },
    /// Forgets a group of which this brick is no member any more, durably; answered by [`Maintenance::on_dropped`].
    Drop(GroupView),
    /// Notes the number of the last scrub that was asked for and is done.
    NoteScrub(u64),
    /// Tells the directory soon.
    Report,
}

/// What goes on under a number.
enum Job {
    Span(SpanJob),
    /// A page of what a member has, for a group that catches up or is scrubbed.
    CatchUpPage(GroupId),
    ScrubPage,
    /// Effects that are being remembered, and by how many disks still.
    Remember(GroupId, usize),
    /// Own stretches, to leave groups.
    Leave,
    /// What was given back is becoming durable.
    Settle,
    /// A branch merges into its child.
    Merge(GroupId, VolumeId),
}

/// For whom a span is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    CatchUp(GroupId),
    Scrub,
}

/// The machine.
pub(crate) struct Maintenance {
    me: BrickId,
    disks: usize,
    now: Time,
    coordinator: Coordinator,
    down: BTreeSet<BrickId>,
    views: BTreeMap<GroupId, GroupView>,
    care: Care,
    fetching: Bucket,
    checking: Bucket,
    catch_ups: BTreeMap<GroupId, CatchUpRun>,
    scrub: Scrub,
    leaving: Leaving,
    merging: Merging,
    jobs: BTreeMap<u64, Job>,
    /// Blocks to be fetched when the rate allows it, by job.
    mends: VecDeque<(u64, Span)>,
    serial: u64,
    wishes: Vec<Wish>,
    lost: BTreeMap<GroupId, BTreeSet<(VolumeId, u64)>>,
    repaired_blocks: u64,
    plant: Plant,
}

impl Maintenance {
    /// Of the brick `me` with so many disks; the scrub numbered `scrubbed` was the last that it completed on request.
    pub(crate) fn new(me: BrickId, disks: usize, scrubbed: u64, now: Time) -> Maintenance {
        let care = Care::default();
        Maintenance {
            me,
            disks,
            now,
            coordinator: Coordinator::default(),
            down: BTreeSet::new(),
            views: BTreeMap::new(),
            fetching: Bucket::new(care.rebuild_bytes_per_second, now),
            checking: Bucket::new(care.scrub_bytes_per_second, now),
            catch_ups: BTreeMap::new(),
            scrub: Scrub::new(me, scrubbed),
            leaving: Leaving::default(),
            merging: Merging::default(),
            jobs: BTreeMap::new(),
            mends: VecDeque::new(),
            serial: 0,
            wishes: Vec::new(),
            lost: BTreeMap::new(),
            repaired_blocks: 0,
            plant: Plant::default(),
            care,
        }
    }

    /// Breaks something, in tests.
    #[cfg(feature = "planted")]
    pub(crate) fn set_plant(&mut self, plant: Plant) {
        self.plant = plant;
        self.coordinator.shared.plant = plant;
    }

    // ---- what happens ----

    /// How blocks are looked after from now on.
    pub(crate) fn on_care(&mut self, now: Time, care: Care) {
        self.fetching.set_rate(care.rebuild_bytes_per_second);
        self.checking.set_rate(match self.scrub.is_urgent() {
            true => care.rebuild_bytes_per_second,
            false => care.scrub_bytes_per_second,
        });
        self.care = care;
        self.scrub.on_care(now, &care);
    }

    /// The views under which the brick works changed, or what it knows of families did.
    pub(crate) fn on_groups(&mut self, now: Time, groups: &Groups, families: &Families) {
        self.set_now(now);
        let mut gone: BTreeSet<GroupId> = self.views.keys().copied().collect();
        for view in groups.working() {
            gone.remove(&view.group);
            if self.views.get(&view.group) != Some(view) {
                self.on_view(view, families);
            }
        }
        for group in gone {
            self.views.remove(&group);
            self.abandon(group);
            self.catch_ups.remove(&group);
            self.scrub.on_group_gone(group);
            self.merging.on_group_gone(group);
        }
        let views = &self.views;
        self.lost.retain(|group, _| views.contains_key(group));
    }

    fn on_view(&mut self, view: &GroupView, families: &Families) {
        let group = view.group;
        self.abandon(group);
        self.views.insert(group, view.clone());
        for brick in view.members.iter().filter(|brick| !self.down.contains(brick)) {
            self.coordinator.shared.up.insert(*brick);
        }
        let Some(geometry) = families.geometry(view.volume) else {
            // Its family has not been heard of yet: then it is a view all the same, and looked at once it has.
            self.views.remove(&group);
            return;
        };
        self.coordinator.shared.geometries.insert(view.volume, geometry);
        self.coordinator.on_views(vec![view.clone()]);
        let before = match view.is_joining(self.me) {
            true => self.catch_ups.insert(group, CatchUpRun::new(view, self.me)),
            false => self.catch_ups.remove(&group),
        };
        // What was lost stays named, until a scrub looks again.
        if let Some(walk) = before.as_ref().and_then(CatchUpRun::walk) {
            self.lost.entry(group).or_default().extend(walk.lost.iter().copied());
        }
        self.scrub.on_view(view, self.me);
        self.merging.on_lineage(group, &view.lineage);
    }

    /// What was under way for a group counts for nothing under another view.
    fn abandon(&mut self, group: GroupId) {
        self.coordinator.abandon(group);
        let now = self.now;
        let scrub = &mut self.scrub;
        self.jobs.retain(|_, job| match job {
            Job::Span(span) if span.group == group => {
                if span.owner == Owner::Scrub {
                    scrub.look_again(now, span);
                }
                false
            }
            Job::CatchUpPage(of) | Job::Remember(of, _) | Job::Merge(of, _) => *of != group,
            Job::ScrubPage if scrub.lists(group) => {
                scrub.list_again();
                false
            }
            _ => true,
        });
    }

    /// A brick can be reached again.
    pub(crate) fn on_up(&mut self, brick: BrickId) {
        self.down.remove(&brick);
        self.coordinator.shared.up.insert(brick);
    }

    /// A brick cannot be reached.
    pub(crate) fn on_down(&mut self, now: Time, brick: BrickId) {
        self.set_now(now);
        self.down.insert(brick);
        self.coordinator.shared.up.remove(&brick);
        self.coordinator.on_brick_down(brick);
        self.take_outcomes();
    }

    /// A member answers.
    pub(crate) fn on_answer(&mut self, now: Time, call: u64, answer: Answer) {
        self.set_now(now);
        self.coordinator.on_answer(call, answer);
        self.take_outcomes();
    }

    /// A disk of this brick answers.
    pub(crate) fn on_own(&mut self, now: Time, job: u64, own: Own) {
        self.set_now(now);
        match (self.jobs.get(&job), own) {
            (Some(Job::Span(_)), Own::Blocks(result)) => self.on_examined(job, result),
            (Some(Job::Span(_)), Own::Lost(span, marked)) => self.on_lost(job, span, marked),
            (Some(Job::Remember(group, _)), Own::Remembered(durable)) => {
                let group = *group;
                self.on_remembered(job, group, durable);
            }
            (Some(Job::Merge(group, branch)), Own::CopiedUp(span, result)) => {
                let of = (*group, *branch);
                self.jobs.remove(&job);
                self.on_copied_up(of, span, result);
            }
            (Some(Job::Merge(group, branch)), Own::Remembered(_)) => {
                let (group, branch) = (*group, *branch);
                self.jobs.remove(&job);
                self.on_discarded(group, branch);
            }
            (Some(Job::Settle), Own::Remembered(durable)) => self.on_settled_disk(job, durable),
            (Some(Job::Leave), Own::Stretches(result)) => {
                self.jobs.remove(&job);
                self.leaving.on_stretches(self.now, result);
            }
            _ => {}
        }
        self.take_outcomes();
    }

    /// A group was forgotten, durably.
    pub(crate) fn on_dropped(&mut self, group: GroupId) {
        self.leaving.on_dropped(group);
    }

    // ---- what is to be done ----

    /// Begins what can be begun. `load` is how many requests of clients wait here.
    pub(crate) fn advance(&mut self, now: Time, groups: &Groups, families: &Families, load: usize) {
        self.set_now(now);
        self.coordinator.wake();
        self.take_outcomes();
        self.list_for_catch_ups();
        self.begin_mends();
        self.begin_spans(families, load);
        self.begin_scrub(families, load);
        self.leave(groups, families);
        self.merge(families);
    }

    fn begin_spans(&mut self, families: &Families, load: usize) {
        let most = if load > 0 { SPANS_MAX_UNDER_LOAD } else { SPANS_MAX };
        for group in self.catch_ups.keys().copied().collect::<Vec<_>>() {
            while self.spans_under_way() < most && self.fetching.is_open(self.now) {
                let run = self.catch_ups.get_mut(&group).expect("listed");
                let Some((span, attempts)) = run.next(self.now, families) else { break };
                self.begin_span(Owner::CatchUp(group), group, span, attempts);
            }
        }
    }

    fn spans_under_way(&self) -> usize {
        self.jobs.values().filter(|job| matches!(job, Job::Span(_))).count()
    }

    /// What the brick is to do at its own disks, since the last call.
    pub(crate) fn take_wishes(&mut self) -> Vec<Wish> {
        core::mem::take(&mut self.wishes)
    }

    /// What is to be sent, since the last call; to this brick itself, too.
    pub(crate) fn take_messages(&mut self) -> Vec<(BrickId, Packet)> {
        self.coordinator.take_messages()
    }

    /// When something is to be done, and what.
    pub(crate) fn deadline(&self) -> Option<(Time, &'static str)> {
        let operations = self.coordinator.deadline();
        let runs = self.catch_ups.values();
        // Where spans are under way their ends begin what is due; where the rate is used up it begins nothing.
        let again = runs.clone().filter_map(CatchUpRun::due).min();
        let again = again.filter(|_| self.spans_under_way() < SPANS_MAX_UNDER_LOAD);
        let again = again.map(|due| (due.max(self.fetching.opens_at()), "a span is looked at again"));
        let waits =
            !self.mends.is_empty() || runs.clone().any(CatchUpRun::has_more) && self.spans_under_way() == 0;
        let rate = waits.then(|| (self.fetching.opens_at(), "the rate of rebuilding allows more"));
        let scrub = self.scrub.deadline(&self.checking);
        [operations, again, rate, scrub, self.leaving.deadline(), self.merging.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Writes down how far all is.
    pub(crate) fn report(&self, status: &mut BrickStatus, families: &Families, groups: &Groups) {
        status.catching_up = self.catch_ups.values().map(CatchUpRun::status).collect();
        status.scrub = self.scrub.status();
        status.left = self.leaving.left();
        status.merged = self.merging.merged();
        status.repaired_blocks = self.repaired_blocks;
        let catching = self.catch_ups.values().filter_map(|run| Some((run.group, &run.walk()?.lost)));
        let scrubbed = self.scrub.walk().map(|walk| (walk.group, &walk.lost));
        let lost: BTreeSet<(GroupId, VolumeId, u64)> = (self.lost.iter().map(|(group, lost)| (*group, lost)))
            .chain(catching)
            .chain(scrubbed)
            .flat_map(|(group, lost)| lost.iter().map(move |(branch, lba)| (group, *branch, *lba)))
            .collect();
        status.lost_blocks = lost.len() as u64;
        let named = lost.iter().filter_map(|(group, branch, lba)| {
            let slot = self.views.get(group)?.slot_of(self.me)?;
            let geometry = families.geometry(self.views.get(group)?.volume)?;
            let block = geometry.volume_block(*lba, geometry.data_index_at(*lba, slot)?);
            let volume = groups.volume_of(*group, *branch);
            Some(LostBlocks { volume, offset: block * BLOCK_U64, length: BLOCK_U64 })
        });
        status.lost = named.take(LOST_MAX).collect();
    }

    // ---- inside ----

    fn set_now(&mut self, now: Time) {
        self.now = now;
        self.coordinator.shared.now = now;
    }

    fn begin_job(&mut self, job: Job) -> u64 {
        self.serial += 1;
        self.jobs.insert(self.serial, job);
        self.serial
    }

    fn operate(&mut self, job: u64, part: u64, operation: Operation) {
        self.coordinator.begin(Parent::Part(job, part), operation);
    }

    fn walk_of(&mut self, owner: Owner) -> Option<&mut Walk> {
        match owner {
            Owner::CatchUp(group) => self.catch_ups.get_mut(&group)?.walk_mut(),
            Owner::Scrub => self.scrub.walk_mut(),
        }
    }

    fn take_outcomes(&mut self) {
        loop {
            let finished = self.coordinator.take_finished();
            if finished.is_empty() {
                return;
            }
            for (parent, outcome) in finished {
                let Parent::Part(job, part) = parent else { continue };
                self.on_outcome(job, part, outcome);
            }
        }
    }

    fn on_outcome(&mut self, job: u64, part: u64, outcome: Outcome) {
        match self.jobs.get(&job) {
            Some(Job::Span(_)) => self.on_span_outcome(job, part, outcome),
            Some(Job::CatchUpPage(group)) => {
                let group = *group;
                self.jobs.remove(&job);
                self.on_page(group, outcome);
            }
            Some(Job::Merge(group, branch)) => {
                let (group, branch) = (*group, *branch);
                self.jobs.remove(&job);
                self.on_merge_outcome(group, branch, outcome);
            }
            Some(Job::ScrubPage) => {
                self.jobs.remove(&job);
                self.scrub.on_page(self.now, outcome);
            }
            _ => {}
        }
    }
}

/// The number of no view.
const NO_VIEW: ViewNumber = ViewNumber(0);
