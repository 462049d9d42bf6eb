//! Fragments of objects that bricks have lost are made again.
//!
//! The brick goes through the versions that its disks have, and has each looked after ([`objects::object::Inspection`]). It does so when another brick
//! is lost, or has other disks than before: then holders look for what any brick does not have, at first one of them for each version, and then
//! the others, as that one may have lost all that it had. And it does so with each scrub: then it reads its own.
//!
//! After a start it does not know whether all was gone through before. If nothing is lost it then takes its time, so that clients notice nothing.
//!
//! Versions of which something is left undone are tried again.

use super::context::Context;
use super::disks::{Effect, Walker};
use super::versions::{Listed, Versions, versions_of};
use base::{ObjectVersion, Time};
use core::ops::Range;
use core::time::Duration;
use objects::object::{Inspection, ObjectError, Restored, Room};
use rules::counters::Counter;
use rules::promises::{Rules, SOUND};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// So many versions are looked at together; one where there is time, and then nothing is done for so many times as long as that took.
const VERSIONS_TOGETHER: usize = 8;
const RESTS: u32 = 9;
/// Which holders of a version look at it: one at first, and then all others, as that one may have lost all that it had. Most of these only ask whether those before
/// them know of the version ([`Inspection::Everywhere`]).
const FIRST: Range<usize> = 0..1;
const OTHERS: Range<usize> = 1..usize::MAX;
const ALL: Range<usize> = 0..usize::MAX;
/// After a start it looks this soon for the first time: a brick that starts again and again is to come to it as well.
const SOON: Duration = Duration::from_secs(1);
/// What was left undone is tried again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// A pass over all versions that left much undone is followed by a pause that is so many times as long, and no longer than this.
const PAUSES: u32 = 20;
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// So many versions are remembered as left undone. If there are more, all are gone through again.
const LACKING_MAX: usize = 4096;

/// What is to be tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Left {
    These(BTreeSet<ObjectVersion>),
    All,
}

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
    begun: Time,
    purpose: Purpose,
    /// Whether there is time: what to do next began then, or begins then.
    leisure: Option<Time>,
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
    again: Option<(Time, Left)>,
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
        self.due.get_or_insert(now + self.every.min(SOON));
    }

    /// A scrub has begun. One that is under way goes on.
    pub(super) fn scrub(&mut self, now: Time) {
        if self.due.is_some() && self.scrub.is_none() {
            self.scrub = Some(Pass::over_all(now, Purpose::Scrub, Walker::Scrub));
        }
    }

    pub(super) fn deadline(&self, may_fetch_at: Time, may_check_at: Time) -> Option<(Time, &'static str)> {
        let waits = |pass: &Option<Pass>| pass.as_ref().is_some_and(Pass::waits_to_read);
        let reads =
            waits(&self.lost).then_some((may_fetch_at, "the rate of rebuilding allows more of an object"));
        let checks =
            waits(&self.scrub).then_some((may_check_at, "the rate of scrubs allows more of an object"));
        let due = self.due.map(|due| (due, "lost fragments are looked for"));
        let again = self.again.as_ref().filter(|_| self.lost.is_none());
        let again =
            again.map(|(again, _)| (*again, "fragments that could not be made again are tried again"));
        let rests = self.lost.as_ref().and_then(Pass::rests_until);
        let rests = rests.map(|until| (until, "fragments are looked for at leisure"));
        let passes = [&self.lost, &self.scrub].into_iter().flatten();
        let busy = passes.filter_map(|pass| pass.versions.as_ref()?.again()).min();
        let busy = busy.map(|again| (again, "a disk that was busy is asked again what it has"));
        [reads, checks, due, again, rests, busy].into_iter().flatten().min()
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let now = cx.now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = Some(now + self.every);
            cx.disks().tell(Effect::LookAtBricks);
        }
        if let (None, Some(fingerprint)) = (&self.lost, self.done)
            && let Some((_, left)) = self.again.take_if(|(again, _)| *again <= now)
        {
            let purpose = Purpose::Lost { fingerprint, ranks: ALL };
            self.lost = Some(match left {
                Left::These(versions) => Pass::over(now, purpose, versions),
                Left::All => Pass::over_all(now, purpose, Walker::Lost),
            });
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
    pub(super) fn on_bricks(&mut self, now: Time, room: Room) {
        let fingerprint = room.fingerprint;
        let is_urgent = room.is_any_lost || self.done.is_some();
        // While a disk lists what it has it is waited for: the list would be taken for that of the next pass.
        let is_under_way =
            |pass: &Pass| pass.leisure.is_none() || pass.is_for(fingerprint) || pass.is_listing();
        if self.rules.restores()
            && !self.lost.as_ref().is_some_and(is_under_way)
            && self.done != Some(fingerprint)
        {
            self.again = None;
            let purpose = Purpose::Lost { fingerprint, ranks: FIRST };
            let leisure = (!is_urgent).then_some(now);
            let mut pass = Pass { leisure, ..Pass::over_all(now, purpose, Walker::Lost) };
            if let Some(before) = self.lost.take() {
                // What it has under way goes on.
                let Pass { under_way, wanting, reading, .. } = before;
                pass = Pass { under_way, wanting, reading, ..pass };
            }
            self.lost = Some(pass);
        }
    }

    /// Whether nothing is known to be lost with these bricks that was not looked for.
    pub(super) fn is_calm(&self, fingerprint: u64) -> bool {
        match &self.lost {
            None => self.done == Some(fingerprint),
            Some(pass) => pass.leisure.is_some() && pass.is_for(fingerprint),
        }
    }

    /// What a disk has.
    pub(super) fn on_listed(&mut self, of: Walker, listed: Listed) {
        let pass = if of == Walker::Scrub { &mut self.scrub } else { &mut self.lost };
        let Some(pass) = pass else { return };
        if let Some(versions) = &mut pass.versions {
            pass.to_come.extend(versions_of(&versions.on_listed(listed, true)));
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
        if let Err(ObjectError::Manifest(_)) = result {
            cx.count(Counter::ObjectWithARecordThatIsNone);
        }
        let restored = result.unwrap_or(Restored { lacking: 1, ..Restored::default() });
        pass.rest(cx.now(), restored.made > 0);
        (0..restored.made).for_each(|_| cx.count(Counter::FragmentsMadeAgain));
        if restored.lacking > 0 && pass.lacking.len() <= LACKING_MAX {
            pass.lacking.insert(version);
        }
    }

    /// A pass for what is lost has ended.
    fn end(&mut self, now: Time) {
        let Some(pass) = self.lost.take() else { return };
        let Pass { begun, purpose: Purpose::Lost { fingerprint, ranks }, leisure, lacking, .. } = pass else {
            return;
        };
        if ranks == FIRST {
            let purpose = Purpose::Lost { fingerprint, ranks: OTHERS };
            let pass = Pass::over_all(begun, purpose, Walker::Lost);
            self.lost = Some(Pass { leisure, lacking, ..pass });
            return;
        }
        self.done = Some(fingerprint);
        self.again = match lacking.len() {
            0 => None,
            1..=LACKING_MAX => Some((now + AGAIN, Left::These(lacking))),
            _ => Some((now + (now.since(begun) * PAUSES).clamp(AGAIN, PAUSE_MAX), Left::All)),
        };
    }
}

impl Pass {
    fn over_all(now: Time, purpose: Purpose, walker: Walker) -> Pass {
        Pass { versions: Some(Versions::of(walker)), ..Pass::over(now, purpose, BTreeSet::new()) }
    }

    fn over(begun: Time, purpose: Purpose, versions: BTreeSet<ObjectVersion>) -> Pass {
        Pass {
            begun,
            purpose,
            leisure: None,
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
        while self.begins(cx.now())
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

    /// Whether one more is to be looked at.
    fn begins(&mut self, now: Time) -> bool {
        match &mut self.leisure {
            None => self.under_way.len() < VERSIONS_TOGETHER,
            Some(due) => {
                let is_due = self.under_way.is_empty() && *due <= now;
                if is_due && !self.to_come.is_empty() {
                    *due = now;
                }
                is_due
            }
        }
    }

    /// Something was looked at. Where some of it was lost, there is no time: more may be.
    fn rest(&mut self, now: Time, was_lost: bool) {
        let begun = self.leisure.filter(|_| !was_lost);
        self.leisure = begun.map(|begun| now + now.since(begun) * RESTS);
    }

    /// When it goes on, if it rests.
    fn rests_until(&self) -> Option<Time> {
        self.leisure.filter(|_| self.under_way.is_empty() && !self.to_come.is_empty())
    }

    fn is_listing(&self) -> bool {
        self.versions.as_ref().is_some_and(Versions::is_listing)
    }

    fn is_for(&self, bricks: u64) -> bool {
        matches!(self.purpose, Purpose::Lost { fingerprint, .. } if fingerprint == bricks)
    }

    fn waits_to_read(&self) -> bool {
        self.reading.is_none() && !self.wanting.is_empty()
    }

    fn is_over(&self) -> bool {
        self.is_last_page && self.to_come.is_empty() && self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_time_does_one_thing_after_another_and_rests_in_between() {
        let at = |ms: u64| Time(ms * 1_000_000);
        let versions = (1..=3).map(ObjectVersion).collect();
        let pass = Pass::over(at(100), Purpose::Lost { fingerprint: 1, ranks: ALL }, versions);
        let mut pass = Pass { leisure: Some(at(100)), ..pass };
        assert!(pass.begins(at(103)));
        let version = pass.to_come.pop_front().expect("three");
        pass.under_way.insert(1, version);
        assert!(!pass.begins(at(104)) && pass.rests_until().is_none());
        pass.under_way.clear();
        pass.rest(at(113), false);
        assert!(!pass.begins(at(202)));
        assert_eq!(pass.rests_until(), Some(at(203)));
        assert!(pass.begins(at(203)));
        pass.rest(at(204), true);
        pass.under_way.extend((0..7).map(|tag| (tag, version)));
        assert!(pass.begins(at(204)), "and without time eight at once");
        pass.under_way.insert(7, version);
        assert!(!pass.begins(at(204)));
    }
}
