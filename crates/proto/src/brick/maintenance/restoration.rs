//! Fragments of objects that bricks have lost are made again.
//!
//! The brick goes through the versions that its disks have, and has each looked after ([`crate::object::Inspection`]). It does so when another brick
//! is lost, or has other disks than before: then holders look for what any brick does not have, at first one of them for each version, and then
//! some more, as that one may have lost all that it had. And it does so with each scrub: then it reads its own.
//!
//! Versions of which something is left undone are tried again. A brick that is to be emptied gives a version back once others have all of it.

use super::context::Context;
use super::disks::{Effect, Walker};
use super::job::Stretch;
use super::versions::Versions;
use crate::counters::Counter;
use crate::object::{Inspection, ObjectError, Restored};
use crate::rules::{Rules, SOUND};
use base::{ObjectVersion, Time};
use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::disk::StoreError;

/// So many versions are looked at together.
const VERSIONS_TOGETHER: usize = 8;
/// One looks at first, and then so many of the holders of a version: it takes as many losses for nobody to know of it.
const FIRST: Range<usize> = 0..1;
const OTHERS: Range<usize> = 1..4;
const ALL: Range<usize> = 0..4;
/// What was left undone is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// So many versions are remembered as left undone. If there are more, all are gone through again.
const LACKING_MAX: usize = 4096;

/// What a pass is for.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Purpose {
    /// With that fingerprint of bricks.
    Lost {
        fingerprint: u64,
        ranks: Range<usize>,
    },
    Scrub,
}

#[derive(Debug)]
struct Pass {
    purpose: Purpose,
    /// None where only some are looked at.
    versions: Option<Versions>,
    is_last_page: bool,
    to_come: VecDeque<ObjectVersion>,
    under_way: BTreeMap<u64, ObjectVersion>,
    /// Who wants to read, and how much.
    wanting: VecDeque<(u64, u64)>,
    /// Who reads.
    reading: Option<u64>,
    /// What was left undone.
    lacking: BTreeSet<ObjectVersion>,
}

#[derive(Debug)]
pub(super) struct Restoration {
    rules: &'static dyn Rules,
    /// So often it looks whether a brick is lost.
    every: Duration,
    /// When to look; none while there are no fragments.
    due: Option<Time>,
    /// With these bricks all was gone through.
    done: Option<u64>,
    /// What was left undone then, and when it is tried again.
    lacking: BTreeSet<ObjectVersion>,
    again: Option<Time>,
    lost: Option<Pass>,
    scrub: Option<Pass>,
    tags: u64,
}

impl Restoration {
    pub(super) fn new(every: Duration) -> Restoration {
        Restoration {
            rules: SOUND,
            every,
            due: None,
            done: None,
            lacking: BTreeSet::new(),
            again: None,
            lost: None,
            scrub: None,
            tags: 0,
        }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// There are fragments here.
    pub(super) fn notice(&mut self, now: Time) {
        self.due.get_or_insert(now + self.every);
    }

    /// A scrub has begun. One that is under way goes on.
    pub(super) fn scrub(&mut self) {
        if self.due.is_some() && self.scrub.is_none() {
            self.scrub = Some(Pass::over_all(Purpose::Scrub, Walker::Scrub));
        }
    }

    pub(super) fn deadline(&self, may_fetch_at: Time, may_check_at: Time) -> Option<(Time, &'static str)> {
        let waits = |pass: &Option<Pass>| pass.as_ref().is_some_and(Pass::waits_to_read);
        let reads =
            waits(&self.lost).then_some((may_fetch_at, "the rate of rebuilding allows more of an object"));
        let checks =
            waits(&self.scrub).then_some((may_check_at, "the rate of scrubs allows more of an object"));
        let due = self.due.map(|due| (due, "lost fragments are looked for"));
        let again = self.again.filter(|_| self.lost.is_none());
        let again = again.map(|again| (again, "fragments that could not be made again are tried again"));
        [reads, checks, due, again].into_iter().flatten().min()
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let now = cx.now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = Some(now + self.every);
            cx.disks().tell(Effect::LookAtBricks);
        }
        if self.lost.is_none() && self.again.is_some_and(|again| again <= now) {
            self.again = None;
            let purpose = Purpose::Lost { fingerprint: self.done.unwrap_or_default(), ranks: ALL };
            self.lost = Some(Pass::over(purpose, core::mem::take(&mut self.lacking)));
        }
        while let Some(pass) = &mut self.lost {
            pass.advance(cx, &mut self.tags);
            if !pass.is_over() {
                break;
            }
            self.end(now);
        }
        if let Some(pass) = &mut self.scrub {
            pass.advance(cx, &mut self.tags);
            // What could not be made again is tried again with the next scrub.
            self.scrub.take_if(|pass| pass.is_over());
        }
    }

    /// The directory says which bricks there are, and which of them are lost.
    pub(super) fn on_bricks(&mut self, fingerprint: u64) {
        if self.rules.restores() && self.lost.is_none() && self.done != Some(fingerprint) {
            self.lost = Some(Pass::over_all(Purpose::Lost { fingerprint, ranks: FIRST }, Walker::Lost));
        }
    }

    /// A disk has these stretches.
    pub(super) fn on_stretches(&mut self, of: Walker, result: Result<Vec<Stretch>, StoreError>) {
        let pass = if of == Walker::Scrub { &mut self.scrub } else { &mut self.lost };
        if let Some((pass, versions)) = pass.as_mut().and_then(|pass| {
            let versions = pass.versions.as_mut()?.on_page(result);
            Some((pass, versions))
        }) {
            pass.to_come.extend(versions);
        }
    }

    /// The pass that something of this tag is for.
    fn pass_of(&mut self, tag: u64) -> Option<&mut Pass> {
        let passes = [&mut self.lost, &mut self.scrub].into_iter().flatten();
        passes.into_iter().find(|pass| pass.under_way.contains_key(&tag))
    }

    /// Whoever restores wants to read so much.
    pub(super) fn on_wants(&mut self, tag: u64, bytes: u64) {
        let Some(pass) = self.pass_of(tag) else { return };
        pass.reading.take_if(|reading| *reading == tag);
        pass.wanting.push_back((tag, bytes));
    }

    /// A version was looked after.
    pub(super) fn on_restored(&mut self, cx: &mut Context, tag: u64, result: Result<Restored, ObjectError>) {
        let Some(pass) = self.pass_of(tag) else { return };
        let Some(version) = pass.under_way.remove(&tag) else { return };
        pass.reading.take_if(|reading| *reading == tag);
        let restored = result.unwrap_or(Restored { lacking: 1, ..Restored::default() });
        (0..restored.made).for_each(|_| cx.count(Counter::FragmentsMadeAgain));
        if restored.lacking > 0 && pass.lacking.len() <= LACKING_MAX {
            pass.lacking.insert(version);
        }
        if restored.is_elsewhere {
            cx.disks().tell(Effect::DropVersion(version));
        }
    }

    /// A pass for what is lost has ended.
    fn end(&mut self, now: Time) {
        let Some(Pass { purpose: Purpose::Lost { fingerprint, ranks }, lacking, .. }) = self.lost.take()
        else {
            return;
        };
        if ranks == FIRST {
            let mut pass = Pass::over_all(Purpose::Lost { fingerprint, ranks: OTHERS }, Walker::Lost);
            pass.lacking = lacking;
            self.lost = Some(pass);
            return;
        }
        self.done = (lacking.len() <= LACKING_MAX).then_some(fingerprint);
        self.again = (!lacking.is_empty() && self.done.is_some()).then_some(now + AGAIN);
        self.lacking = lacking;
    }
}

impl Pass {
    fn over_all(purpose: Purpose, walker: Walker) -> Pass {
        Pass { versions: Some(Versions::of(walker)), ..Pass::over(purpose, BTreeSet::new()) }
    }

    fn over(purpose: Purpose, versions: BTreeSet<ObjectVersion>) -> Pass {
        Pass {
            purpose,
            versions: None,
            is_last_page: false,
            to_come: versions.into_iter().collect(),
            under_way: BTreeMap::new(),
            wanting: VecDeque::new(),
            reading: None,
            lacking: BTreeSet::new(),
        }
    }

    fn advance(&mut self, cx: &mut Context, tags: &mut u64) {
        while self.under_way.len() < VERSIONS_TOGETHER
            && let Some(version) = self.to_come.pop_front()
        {
            *tags += 1;
            self.under_way.insert(*tags, version);
            let inspection = match &self.purpose {
                Purpose::Lost { ranks, .. } => Inspection::Everywhere { ranks: ranks.clone() },
                Purpose::Scrub => Inspection::Own,
            };
            cx.disks().tell(Effect::Restore { tag: *tags, version, inspection });
        }
        if self.to_come.is_empty() {
            self.is_last_page = self.versions.as_mut().is_none_or(|versions| !versions.list(cx));
        }
        let is_open = match self.purpose {
            Purpose::Lost { .. } => cx.is_fetching_open(),
            Purpose::Scrub => cx.is_checking_open(),
        };
        if self.reading.is_none()
            && is_open
            && let Some((tag, bytes)) = self.wanting.pop_front()
        {
            match self.purpose {
                Purpose::Lost { .. } => cx.budget_mut().fetching().take(bytes),
                Purpose::Scrub => cx.budget_mut().checking().take(bytes),
            }
            self.reading = Some(tag);
            cx.disks().tell(Effect::ReadMore { tag });
        }
    }

    fn waits_to_read(&self) -> bool {
        self.reading.is_none() && !self.wanting.is_empty()
    }

    fn is_over(&self) -> bool {
        self.is_last_page && self.to_come.is_empty() && self.under_way.is_empty()
    }
}
