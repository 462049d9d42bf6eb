//! One holder, and a second as soon as the first is late: two packets a read as long as nobody is slow.
//!
//! The first is chosen by queues and latest answers ([`super::probing`]) among those that are not late. Late is a brick that
//! owes an answer for several times as long as nearly all of its own lately took, or whose answers take several times as
//! long as those of the fastest. Now and then it is asked beside the one that stands in for it, to see whether it still is.

use super::load::Load;
use super::pace::Measure;
use super::policy::{Course, First, Members, Next, Part, Plan, Policy, Told};
use super::probing::Probing;
use super::rescue;
use base::{BrickId, Time};
use core::time::Duration;

/// A second holder is asked when the first takes so much longer than nearly all of its own answers, in percent, but no later
/// than a rescue is ([`rescue::delay`]),
const LATE_PERCENT: u64 = 125;
/// nor sooner than this,
const LATE_MIN: Duration = Duration::from_micros(200);
/// and after this while too few of its answers are known to say.
const LATE_UNKNOWN: Duration = Duration::from_millis(10);
const KNOWN_MIN: u64 = 8;
/// What owes an answer for so many times as long is not asked alone.
const OWES_FACTOR: u32 = 2;
/// Nor is one that is expected to take so many times as long as the fastest, and so much longer.
const SLOW_FACTOR: u64 = 3;
const SLOW_MIN_NS: u64 = 500_000;

#[derive(Debug)]
pub struct Quickest {
    first: Probing,
    /// Kept between reads so that none allocates.
    quick: Vec<(u8, BrickId)>,
}

impl Default for Quickest {
    fn default() -> Quickest {
        Quickest { first: Probing::new(1), quick: Vec::new() }
    }
}

/// After how long a brick of this measure is late.
fn late_after(measure: Option<Measure>) -> Duration {
    match measure.filter(|measure| measure.weight >= KNOWN_MIN) {
        Some(measure) => {
            let late_ns = measure.high_ns.saturating_mul(LATE_PERCENT) / 100;
            Duration::from_nanos(late_ns).max(LATE_MIN)
        }
        None => LATE_UNKNOWN,
    }
}

/// The holders that are late.
pub(super) fn late(now: Time, part: &Part<'_>, load: &Load) -> Members {
    let expected = |brick: BrickId| load.pace().expected_ns(now, brick, part.kind);
    let fastest_ns = part.holders.iter().map(|(_, brick)| expected(*brick)).min().unwrap_or(0);
    let bound_ns = fastest_ns.saturating_mul(SLOW_FACTOR).saturating_add(SLOW_MIN_NS);
    let is_late = |brick: BrickId| {
        let measure = load.pace().measure(now, brick, part.kind);
        let owes = Duration::from_nanos(measure.map_or(0, |measure| measure.oldest_ns));
        (fastest_ns > 0 && expected(brick) > bound_ns) || owes > late_after(measure) * OWES_FACTOR
    };
    let late = part.holders.iter().filter(|(_, brick)| is_late(*brick)).map(|(slot, _)| *slot);
    let late = late.fold(Members::default(), Members::with);
    // Where all are late somebody is to be asked nevertheless.
    if late.len() as usize == part.holders.len() { Members::default() } else { late }
}

/// Asks one holder; one that is late is asked as well now and then, to see whether it still is.
pub(super) fn with_a_look(now: Time, part: &Part<'_>, slot: u8, late: Members, load: &mut Load) -> First {
    let mut looks = part.holders.iter().filter(|(slot, _)| late.has(*slot));
    let look = looks.find(|(_, brick)| load.is_look_due(now, *brick, part.kind)).map(|(slot, _)| *slot);
    match look {
        None => First::One(slot),
        Some(look) => {
            let all = part.holders.iter().map(|(slot, _)| *slot).fold(Members::default(), Members::with);
            First::Contest { left_out: all.without(slot), beside: Members::one(look) }
        }
    }
}

impl Quickest {
    fn of_the_quick(&mut self, now: Time, part: &Part<'_>, late: Members, load: &Load) -> Option<u8> {
        if late.is_empty() {
            return self.first.one(now, part, load);
        }
        let mut quick = core::mem::take(&mut self.quick);
        quick.clear();
        quick.extend(part.holders.iter().filter(|(slot, _)| !late.has(*slot)));
        let slot = self.first.one(now, &Part { holders: &quick, ..*part }, load);
        self.quick = quick;
        slot
    }
}

impl Policy for Quickest {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        let late = late(now, part, load);
        self.of_the_quick(now, part, late, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let [_, _, ..] = part.holders else {
            return self.one(now, part, load).map(|slot| Plan { first: First::One(slot), wait: None });
        };
        let late = late(now, part, load);
        let slot = self.of_the_quick(now, part, late, load)?;
        let brick = part.holders.iter().find(|(holder, _)| *holder == slot).map(|(_, brick)| *brick)?;
        let first = with_a_look(now, part, slot, late, load);
        // Where all are overrun, asking twice would only make it worse: a rescue's delay says so.
        let late = late_after(load.pace().measure(now, brick, part.kind));
        let wait = late.min(rescue::delay(now, part.kind, part.holders, load));
        Some(Plan { first, wait: Some(wait.max(LATE_MIN)) })
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        rescue::next(now, part, course, load)
    }

    fn answered(&mut self, told: &Told) {
        self.first.answered(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::{Kind, QuestionId};
    use crate::distribute::policy::PartId;

    const MS: u64 = 1_000_000;
    const HOLDERS: [(u8, BrickId); 3] = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];

    fn part() -> Part<'static> {
        Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &HOLDERS }
    }

    /// A policy that has had so many answers of a millisecond of each brick; the next question has this number.
    fn known() -> (Quickest, Load, u64) {
        let (mut policy, mut load, mut number) = (Quickest::default(), Load::default(), 0);
        for _ in 0..40 {
            for (_, brick) in HOLDERS {
                number += 1;
                answer(&mut policy, &mut load, brick, (number, number * MS), MS);
            }
        }
        (policy, load, number + 1)
    }

    fn answer(policy: &mut Quickest, load: &mut Load, brick: BrickId, (number, at): (u64, u64), ns: u64) {
        load.pace_mut().begin(Time(at), brick, Kind::Read, QuestionId(number));
        load.pace_mut().heard(brick);
        load.pace_mut().answered(Time(at + ns), brick, Kind::Read, QuestionId(number), Time(at));
        policy.answered(&Told { brick, response_ns: ns, service_ns: ns / 2, queue: 0, device_ns: None });
    }

    #[test]
    fn a_second_is_asked_when_the_first_is_later_than_it_usually_is() {
        let (mut policy, mut load, number) = known();
        let plan = policy.first(Time(number * MS), &part(), &mut load).expect("three holders");
        let First::One(slot) = plan.first else { panic!("nobody is late: {plan:?}") };
        let wait = plan.wait.expect("it is hedged");
        assert!(wait > Duration::from_millis(1) && wait < Duration::from_millis(2), "{wait:?}");
        let course = Course { asked: Members::one(slot), direct: Members::one(slot), second: None };
        let next = policy.next(Time(number * MS), &part(), &course, &load);
        assert!(matches!(next, Next::Ask { slot: other, .. } if other != slot), "{next:?}");
    }

    #[test]
    fn who_owes_an_answer_is_not_asked_alone_and_looked_at_now_and_then() {
        let (mut policy, mut load, number) = known();
        let since = number * MS;
        load.pace_mut().begin(Time(since), BrickId(1), Kind::Read, QuestionId(number));
        let (mut looks, mut ones) = (0, 0);
        for us in (3_000..1_000_000).step_by(1_000) {
            match policy.first(Time(since + us * 1_000), &part(), &mut load).expect("three holders").first {
                First::One(slot) => {
                    assert_ne!(slot, 0, "after {us} us");
                    ones += 1;
                }
                First::Contest { left_out, beside } => {
                    assert!(beside.has(0) && left_out.has(0) && left_out.len() == 2);
                    looks += 1;
                }
                First::Tied { .. } => panic!("nothing is tied"),
            }
        }
        assert!((1..=20).contains(&looks) && ones > 900, "{looks} looks, {ones} reads past it");
        load.pace_mut().answered(
            Time(since + 2_000 * MS),
            BrickId(1),
            Kind::Read,
            QuestionId(number),
            Time(since),
        );
        for later in 0..200 {
            answer(&mut policy, &mut load, BrickId(1), (number + later + 1, since + 3_000 * MS + later), MS);
        }
        let slots: Vec<u8> = (0..3)
            .map(|_| {
                let slot = policy.one(Time(since + 4_000 * MS), &part(), &load).expect("three holders");
                load.begin(HOLDERS[usize::from(slot)].1);
                slot
            })
            .collect();
        assert!(slots.contains(&0), "it has recovered: {slots:?}");
    }

    /// Reads at a brick that is killed are given up after two seconds each; then it is back, and only looks reach it.
    #[test]
    fn looks_alone_find_out_that_a_brick_has_recovered() {
        let (mut policy, mut load, number) = known();
        let killed = number * MS;
        for question in number..number + 16 {
            load.pace_mut().begin(Time(killed), BrickId(1), Kind::Read, QuestionId(question));
        }
        let back = killed + 2_000 * MS;
        for question in number..number + 16 {
            load.pace_mut().given_up(Time(back), BrickId(1), Kind::Read, QuestionId(question), Time(killed));
        }
        let is_late = |load: &Load, at: u64| late(Time(at), &part(), load).has(0);
        assert!(is_late(&load, back));
        let mut at = back;
        while is_late(&load, at) && at < back + 60_000 * MS {
            at += 10 * MS;
            let plan = policy.first(Time(at), &part(), &mut load).expect("three holders");
            if matches!(plan.first, First::Contest { beside, .. } if beside.has(0)) {
                answer(&mut policy, &mut load, BrickId(1), (at, at), MS);
            }
        }
        let seconds = (at - back) / (1_000 * MS);
        assert!(seconds < 15, "it was kept out for {seconds} s");
    }

    #[test]
    fn where_all_are_late_somebody_is_asked() {
        let (mut policy, mut load, number) = known();
        for (at, (_, brick)) in HOLDERS.into_iter().enumerate() {
            load.pace_mut().begin(Time(number * MS), brick, Kind::Read, QuestionId(number + at as u64));
        }
        let plan = policy.first(Time((number + 500) * MS), &part(), &mut load);
        assert!(matches!(plan, Some(Plan { first: First::One(_), .. })), "{plan:?}");
        assert_eq!(policy.first(Time(0), &Part { holders: &[], ..part() }, &mut load), None);
    }
}
