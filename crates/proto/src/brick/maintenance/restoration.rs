//! Fragments of objects that bricks have lost are made again.
//!
//! The brick goes through the versions that its disks have, and has each looked after ([`crate::object::Inspection`]). It does so when another brick
//! is lost, or has other disks than before: then holders look for what any brick does not have, at first one of them for each version, and then
//! some more, as that one may have lost all that it had. And it does so with each scrub: then it reads its own.
//!
//! A pass that left something undone is followed by another one. A brick that is to be emptied gives a version back once others have all of it.

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
use std::collections::{BTreeMap, VecDeque};
use wire::disk::StoreError;

/// So many versions are looked at together.
const VERSIONS_TOGETHER: usize = 8;
/// One looks at first, and then so many of the holders of a version: no more can have lost all that they had.
const FIRST: Range<usize> = 0..1;
const OTHERS: Range<usize> = 1..4;
/// What was left undone is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);

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
    versions: Versions,
    is_last_page: bool,
    to_come: VecDeque<ObjectVersion>,
    under_way: BTreeMap<u64, ObjectVersion>,
    /// Who wants to read, and how much.
    wanting: VecDeque<(u64, u64)>,
    /// Who reads.
    reading: Option<u64>,
    is_complete: bool,
}

#[derive(Debug)]
pub(super) struct Restoration {
    rules: &'static dyn Rules,
    /// So often it looks whether a brick is lost.
    every: Duration,
    /// When to look; none while there are no fragments.
    due: Option<Time>,
    /// With these bricks all was there.
    done: Option<u64>,
    /// A scrub has begun.
    is_scrub_due: bool,
    pass: Option<Pass>,
    tags: u64,
}

impl Restoration {
    pub(super) fn new(every: Duration) -> Restoration {
        Restoration { rules: SOUND, every, due: None, done: None, is_scrub_due: false, pass: None, tags: 0 }
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

    /// A scrub has begun.
    pub(super) fn scrub(&mut self) {
        self.is_scrub_due = self.due.is_some();
    }

    pub(super) fn deadline(&self, may_fetch_at: Time) -> Option<(Time, &'static str)> {
        let reads = self.pass.as_ref().filter(|pass| pass.reading.is_none() && !pass.wanting.is_empty());
        let reads = reads.map(|_| (may_fetch_at, "the rate of rebuilding allows more of an object"));
        let due = self.due.filter(|_| self.pass.is_none());
        reads.or(due.map(|due| (due, "lost fragments are looked for")))
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let now = cx.now();
        match &mut self.pass {
            Some(pass) => {
                pass.advance(cx, &mut self.tags);
                if pass.is_over() {
                    self.end(now);
                }
            }
            None if core::mem::take(&mut self.is_scrub_due) => self.pass = Some(Pass::new(Purpose::Scrub)),
            None if self.due.is_some_and(|due| due <= now) => {
                self.due = Some(now + self.every);
                cx.disks().tell(Effect::LookAtBricks);
            }
            None => {}
        }
    }

    /// The directory says which bricks there are, and which of them are lost.
    pub(super) fn on_bricks(&mut self, fingerprint: u64) {
        if self.rules.restores() && self.pass.is_none() && self.done != Some(fingerprint) {
            self.pass = Some(Pass::new(Purpose::Lost { fingerprint, ranks: FIRST }));
        }
    }

    /// A disk has these stretches.
    pub(super) fn on_stretches(&mut self, result: Result<Vec<Stretch>, StoreError>) {
        if let Some(pass) = &mut self.pass {
            pass.to_come.extend(pass.versions.on_page(result));
        }
    }

    /// Whoever restores wants to read so much.
    pub(super) fn on_wants(&mut self, tag: u64, bytes: u64) {
        let Some(pass) = self.pass.as_mut().filter(|pass| pass.under_way.contains_key(&tag)) else { return };
        pass.reading.take_if(|reading| *reading == tag);
        pass.wanting.push_back((tag, bytes));
    }

    /// A version was looked after.
    pub(super) fn on_restored(&mut self, cx: &mut Context, tag: u64, result: Result<Restored, ObjectError>) {
        let Some(pass) = &mut self.pass else { return };
        let Some(version) = pass.under_way.remove(&tag) else { return };
        pass.reading.take_if(|reading| *reading == tag);
        let restored = result.unwrap_or(Restored { lacking: 1, ..Restored::default() });
        (0..restored.made).for_each(|_| cx.count(Counter::FragmentsMadeAgain));
        pass.is_complete &= restored.lacking == 0;
        if restored.is_elsewhere {
            cx.disks().tell(Effect::DropVersion(version));
        }
    }

    fn end(&mut self, now: Time) {
        let Some(Pass { purpose, is_complete, .. }) = self.pass.take() else { return };
        match purpose {
            Purpose::Lost { fingerprint, ranks: FIRST } => {
                let mut pass = Pass::new(Purpose::Lost { fingerprint, ranks: OTHERS });
                pass.is_complete = is_complete;
                self.pass = Some(pass);
            }
            Purpose::Lost { fingerprint, .. } => {
                self.done = is_complete.then_some(fingerprint);
                self.due = Some(now + if is_complete { self.every } else { AGAIN });
            }
            Purpose::Scrub => {}
        }
    }
}

impl Pass {
    fn new(purpose: Purpose) -> Pass {
        Pass {
            purpose,
            versions: Versions::of(Walker::Restoration),
            is_last_page: false,
            to_come: VecDeque::new(),
            under_way: BTreeMap::new(),
            wanting: VecDeque::new(),
            reading: None,
            is_complete: true,
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
            self.is_last_page = !self.versions.list(cx);
        }
        if self.reading.is_none()
            && cx.is_fetching_open()
            && let Some((tag, bytes)) = self.wanting.pop_front()
        {
            cx.budget_mut().fetching().take(bytes);
            self.reading = Some(tag);
            cx.disks().tell(Effect::ReadMore { tag });
        }
    }

    fn is_over(&self) -> bool {
        self.is_last_page && self.to_come.is_empty() && self.under_way.is_empty()
    }
}
