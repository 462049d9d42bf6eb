//! Versions of objects that nobody will ever read: what dead putters left, and what was replaced or removed.
//!
//! The brick goes through the versions that its disks have, asks the index which of them are gone, and gives the space of those back. Only what
//! the index says is gone goes: it says so once that is on stable storage there, and for good. Of versions of which only some segments are shared by later
//! ones the others go. A brick that has never had a fragment does none of this.

use super::context::Context;
use super::disks::{Effect, Walker};
use super::versions::{Held, Listed, Versions, give_back, versions_of};
use base::{ObjectVersion, Time};
use core::time::Duration;
use rules::counters::Counter;
use rules::promises::{Rules, SOUND};
use wire::Share;

/// A pass that had much to do is followed by a pause that is so many times as long. Waiting for the index is not counted: a directory that was away
/// makes the next pass no later.
const PAUSES: u32 = 20;
/// A question to the index that was not answered is asked again after this time.
const AGAIN: Duration = Duration::from_millis(500);
/// After a start the first pass begins this soon: a brick that starts again and again would never come to it otherwise, and fill.
const SOON: Duration = Duration::from_secs(1);

/// What is being judged.
#[derive(Debug)]
struct Asked {
    held: Vec<Held>,
    operation: u64,
    since: Time,
    again: Time,
}

#[derive(Debug)]
struct Pass {
    begun: Time,
    /// For so long it waited for the index.
    waited: Duration,
    versions: Versions,
    asked: Option<Asked>,
}

/// The pass under way, and when the next one begins.
#[derive(Debug)]
pub(super) struct Garbage {
    rules: &'static dyn Rules,
    /// Between two passes, at least.
    every: Duration,
    /// When to begin; none while there are no fragments.
    due: Option<Time>,
    pass: Option<Pass>,
    operations: u64,
}

impl Garbage {
    pub(super) fn new(every: Duration) -> Garbage {
        Garbage { rules: SOUND, every, due: None, pass: None, operations: 0 }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// There are fragments here.
    pub(super) fn notice(&mut self, now: Time) {
        if self.pass.is_none() {
            self.due.get_or_insert(now + self.rules.first_look(self.every.min(SOON), self.every));
        }
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        let asked = self.pass.as_ref().and_then(|pass| pass.asked.as_ref());
        let again = asked.map(|asked| (asked.again, "the index is asked again which versions are gone"));
        let busy = self.pass.as_ref().and_then(|pass| pass.versions.again());
        let busy = busy.map(|again| (again, "a disk that was busy is asked again what it has"));
        again.or(busy).or(self.due.map(|due| (due, "garbage is looked for")))
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let now = cx.now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let versions = Versions::of(Walker::Garbage);
            self.pass = Some(Pass { begun: now, waited: Duration::ZERO, versions, asked: None });
        }
        let Some(pass) = &mut self.pass else { return };
        match &mut pass.asked {
            None => {
                if !pass.versions.list(cx) {
                    let worked = now.since(pass.begun).saturating_sub(pass.waited);
                    let pause = (worked * PAUSES).max(self.every);
                    (self.pass, self.due) = (None, Some(now + pause));
                }
            }
            Some(asked) if asked.again <= now => {
                asked.again = now + AGAIN;
                let (operation, versions) = (asked.operation, versions_of(&asked.held));
                cx.disks().tell(Effect::AskGone { operation, versions });
            }
            Some(_) => {}
        }
    }

    /// What a disk has.
    pub(super) fn on_listed(&mut self, now: Time, listed: Listed) {
        let Some(pass) = &mut self.pass else { return };
        let held = pass.versions.on_listed(listed, false);
        if !held.is_empty() {
            self.operations += 1;
            pass.asked = Some(Asked { held, operation: self.operations, since: now, again: now });
        }
    }

    /// The index has judged: these are gone, and of those only some segments are wanted.
    pub(super) fn on_gone(
        &mut self,
        cx: &mut Context,
        operation: u64,
        gone: &[ObjectVersion],
        partly: &[Share],
    ) {
        let Some(pass) = &mut self.pass else { return };
        let Some(asked) = pass.asked.take_if(|asked| asked.operation == operation) else { return };
        pass.waited += cx.now().since(asked.since);
        for version in versions_of(&asked.held).into_iter().filter(|version| gone.contains(version)) {
            cx.count(Counter::GoneVersionsGivenBack);
            give_back(cx, version, &asked.held);
        }
        for share in partly {
            let its = asked.held.iter().filter(|held| held.version == share.version);
            for held in its.filter(|held| !is_shared(share, held.segment())) {
                cx.count(Counter::UnsharedStretchesGivenBack);
                held.give_back(cx);
            }
        }
    }
}

/// Whether some version shares the segment.
fn is_shared(share: &Share, segment: u32) -> bool {
    share.segments.iter().any(|span| (span.from..span.to).contains(&segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;
    use wire::{FragmentId, SegmentSpan};

    const EVERY: Duration = Duration::from_secs(30);
    const V: ObjectVersion = ObjectVersion(7);

    /// A pass over one disk that has these stretches of a version. What the index answers, after this time; when the next pass is due, after this one.
    fn pass(stretches: &[u64], answer_after: Duration, partly: &[Share]) -> (Vec<Effect>, Duration) {
        let mut cx = Context::new(BrickId(1), 1, Time(0));
        let mut garbage = Garbage::new(EVERY);
        garbage.notice(Time(0));
        let mut now = Time(0) + SOON;
        cx.set_now(now);
        garbage.advance(&mut cx);
        let page = stretches.iter().map(|stretch| (FragmentId::volume(V), *stretch)).collect();
        garbage.on_listed(now, Listed::Page(Ok(page)));
        garbage.advance(&mut cx);
        now += answer_after;
        cx.set_now(now);
        garbage.on_gone(&mut cx, 1, &[], partly);
        garbage.advance(&mut cx);
        let (due, _) = garbage.deadline().expect("another pass follows");
        (cx.disks().take_effects(), due.since(now))
    }

    /// Found from outside: bricks that were restarted every few seconds never began to look for garbage, and a cluster filled in 260 s.
    #[test]
    fn a_brick_that_starts_again_and_again_looks_for_garbage() {
        let mut garbage = Garbage::new(EVERY);
        garbage.notice(Time(0));
        let (due, _) = garbage.deadline().expect("a pass");
        assert!(due.since(Time(0)) <= Duration::from_secs(2), "a life may be as short as that: {due:?}");
    }

    /// Found by the torture (seed 30836): garbage lay for a quarter of an hour, as the directory had been away for 45 s during a pass.
    #[test]
    fn a_directory_that_was_away_makes_the_next_pass_no_later() {
        assert_eq!(pass(&[1], Duration::from_secs(3600), &[]).1, EVERY);
    }

    #[test]
    fn of_a_version_that_is_shared_in_part_the_other_segments_go() {
        let of_segment = |segment: u32| {
            FragmentId { version: V, segment, index: 0 }.span(1).lba / wire::Span::STRETCH_BLOCKS
        };
        let share = Share { version: V, segments: vec![SegmentSpan { from: 1, to: 3 }] };
        let stretches = [0, 1, 2, 3].map(of_segment);
        let (effects, _) = pass(&stretches, Duration::ZERO, &[share]);
        let discarded = effects.iter().filter_map(|effect| match effect {
            Effect::Discard { branch, stretch } => Some((*branch, *stretch)),
            _ => None,
        });
        let expected = [of_segment(0), of_segment(3)].map(|stretch| (FragmentId::volume(V), stretch));
        assert_eq!(discarded.collect::<Vec<_>>(), expected);
    }
}
