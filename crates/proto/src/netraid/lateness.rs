//! Which members hold up writes, as one gateway sees it: how long each takes to prepare, beside the other members of the
//! same writes. The directory judges by what all gateways say ([`crate::directory`], `slow`).
//!
//! Time is cut into slots of about half a second, a slot into ticks. For each brick a slot knows in which ticks writes
//! were under way there, and in which of these one was *late*: longer under way than [`FLOOR`] and than [`TIMES`] as
//! long as the median of the write's other legs took. A brick that is late for a [`SHARE`] of the time, and for several
//! times the other bricks' share, for [`ROUNDS`] slots in a row is slow. Time is what counts, not writes: of a brick
//! that stops twice a second a busy gateway sees a thousand fast answers and a few late ones, and half of its time gone.
//! Comparing within a write leaves out what writes differ in; comparing bricks, what parts of writes do.

use base::{BrickId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::Observed;

const TICK_NS: u64 = 4_000_000;
/// 128 ticks: as many as a word has bits.
const SLOT_NS: u64 = 128 * TICK_NS;
/// A leg is never late before: a disk that must flush for a neighbour first takes as long.
const FLOOR: Duration = Duration::from_millis(8);
const TIMES: u32 = 3;
/// A brick that is late for one in so many ticks holds others up.
const SHARE: u32 = 4;
/// How many ticks it must be late for, and how many legs must be known, for a slot to say anything.
const LATE_TICKS_MIN: u32 = 8;
const LEGS_MIN: u32 = 4;
/// Slots in a row: one and a half seconds.
const ROUNDS: u32 = 3;
/// What was gathered in so many slots without being enough is thrown away.
const SLOTS_MAX: u32 = 8;

#[derive(Debug, Default)]
struct Member {
    /// The ticks of the slot under way in which a write was under way, was late.
    busy: u128,
    late: u128,
    gathered: Gathered,
    /// The share of its time that it was late in the last slot that said anything, in parts of 1024.
    share: u32,
    rounds: u32,
    /// When it was last judged, and by what.
    judged: Option<(Time, Gathered)>,
}

/// Of one or more slots.
#[derive(Clone, Copy, Debug, Default)]
struct Gathered {
    slots: u32,
    busy: u32,
    late: u32,
    legs: u32,
    took_ns: u64,
    others_ns: u64,
}

impl Gathered {
    fn says_something(&self) -> bool {
        self.legs >= LEGS_MIN && self.busy >= LEGS_MIN
    }

    fn mean_us(&self, sum_ns: u64) -> u32 {
        u32::try_from(sum_ns / u64::from(self.legs.max(1)) / 1000).unwrap_or(u32::MAX)
    }
}

/// What a gateway knows of its bricks.
#[derive(Debug, Default)]
pub struct Lateness {
    members: BTreeMap<BrickId, Member>,
    /// When the slot under way began.
    slot: Time,
    /// Whether something was judged that was not reported.
    is_due: bool,
}

impl Lateness {
    /// What is judged counts for so long.
    pub const FRESH: Duration = Duration::from_secs(3);

    /// A leg of a write to `brick` was sent at `sent` and took so long, or has taken so long already and is not answered;
    /// the median of the write's other legs took `others`.
    pub fn note(&mut self, now: Time, brick: BrickId, sent: Time, took: Duration, others: Duration) {
        let (bound, end) = (FLOOR.max(others * TIMES), sent + took);
        self.mark(brick, sent, end, sent + bound);
        if now.0 >= self.slot.0 + SLOT_NS {
            self.end_slot(now);
            self.mark(brick, sent, end, sent + bound);
        }
        let gathered = &mut self.members.entry(brick).or_default().gathered;
        gathered.legs += 1;
        gathered.took_ns = gathered.took_ns.saturating_add(took.as_nanos() as u64);
        gathered.others_ns = gathered.others_ns.saturating_add(others.as_nanos() as u64);
    }

    /// What there is to tell, once after each slot that said anything.
    pub fn take_report(&mut self, now: Time) -> Option<Vec<Observed>> {
        if !core::mem::take(&mut self.is_due) {
            return None;
        }
        let known = self.members.iter().filter_map(|(brick, member)| {
            let (at, by) = member.judged?;
            (now.since(at) < Self::FRESH).then(|| Observed {
                brick: *brick,
                is_slow: member.rounds >= ROUNDS,
                prepare_us: by.mean_us(by.took_ns),
                others_us: by.mean_us(by.others_ns),
            })
        });
        Some(known.collect())
    }

    fn mark(&mut self, brick: BrickId, sent: Time, end: Time, late: Time) {
        let (slot, member) = (self.slot, self.members.entry(brick).or_default());
        member.busy |= ticks(slot, sent, end + Duration::from_nanos(TICK_NS));
        member.late |= ticks(slot, late, end);
    }

    fn end_slot(&mut self, now: Time) {
        // After a pause in the writes what was gathered before is old.
        if now.0 - self.slot.0 > u64::from(SLOTS_MAX) * SLOT_NS {
            for member in self.members.values_mut() {
                let Member { judged, share, .. } = *member;
                *member = Member { judged, share, ..Member::default() };
            }
        }
        self.slot = Time(now.0 / SLOT_NS * SLOT_NS);
        let mut judged = Vec::new();
        for (brick, member) in &mut self.members {
            let Member { busy, late, gathered, .. } = member;
            gathered.slots += 1;
            gathered.busy += core::mem::take(busy).count_ones();
            gathered.late += core::mem::take(late).count_ones();
            if gathered.says_something() {
                member.share = 1024 * gathered.late / gathered.busy.max(1);
                judged.push((*brick, core::mem::take(gathered)));
            } else if gathered.slots >= SLOTS_MAX {
                *gathered = Gathered::default();
            }
        }
        self.members.retain(|_, member| {
            let is_known = member.judged.is_some_and(|(at, _)| now.since(at) < 10 * Self::FRESH);
            is_known || member.gathered.legs > 0
        });
        for (brick, by) in judged {
            let of_others = self.share_of_others(brick);
            let member = self.members.entry(brick).or_default();
            let is_late = by.late >= LATE_TICKS_MIN
                && member.share * SHARE >= 1024
                && member.share >= of_others.saturating_mul(TIMES);
            member.rounds = if is_late { member.rounds.saturating_add(1) } else { 0 };
            member.judged = Some((now, by));
            self.is_due = true;
        }
    }

    /// The upper median of the other bricks' shares.
    fn share_of_others(&self, brick: BrickId) -> u32 {
        let others = self.members.iter().filter(|(other, _)| **other != brick);
        let mut shares: Vec<u32> = others.map(|(_, member)| member.share).collect();
        shares.sort_unstable();
        shares.get(shares.len() / 2).copied().unwrap_or(0)
    }
}

/// The ticks of a slot in which the time from `from` until `to` passes the end of a tick; the last one not.
fn ticks(slot: Time, from: Time, to: Time) -> u128 {
    let tick = |time: Time| time.0.saturating_sub(slot.0).min(SLOT_NS) / TICK_NS;
    let below = |n: u64| if n >= 128 { u128::MAX } else { (1 << n) - 1 };
    if to > from { below(tick(to)) & !below(tick(from)) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: u32 = 3;

    /// Writes, one every `every_ms`, to three bricks of which each takes as long as `took_ms` says at that moment.
    fn run(span_ms: u64, every_ms: u64, took_ms: impl Fn(u64, u32) -> f64) -> Vec<Vec<Observed>> {
        let mut lateness = Lateness::default();
        let mut ends: Vec<(u64, u64, Vec<Duration>)> = (0..span_ms / every_ms)
            .map(|write| {
                let sent_ms = 1000 + write * every_ms;
                let took: Vec<Duration> = (0..MEMBERS)
                    .map(|member| Duration::from_micros((1000.0 * took_ms(sent_ms, member)) as u64))
                    .collect();
                let last = took.iter().max().expect("members").as_millis() as u64;
                (sent_ms + last, sent_ms, took)
            })
            .collect();
        ends.sort();
        let mut reports = Vec::new();
        for (end_ms, sent_ms, took) in ends {
            let (now, sent) = (Time(end_ms * 1_000_000), Time(sent_ms * 1_000_000));
            for member in 0..MEMBERS {
                let mut others = took.clone();
                let own = others.remove(member as usize);
                let median = others.into_iter().max().expect("two");
                lateness.note(now, BrickId(member), sent, own, median);
            }
            reports.extend(lateness.take_report(now));
        }
        reports
    }

    fn slow(reports: &[Vec<Observed>]) -> Vec<u32> {
        let mut slow: Vec<u32> =
            reports.iter().flatten().filter(|of| of.is_slow).map(|of| of.brick.0).collect();
        slow.dedup();
        slow
    }

    #[test]
    fn a_disk_that_is_late_on_each_access_is_slow_at_any_rate_of_writes() {
        for every_ms in [1, 12, 25, 100, 400] {
            let reports = run(8000, every_ms, |_, member| if member == 1 { 21.0 } else { 1.5 });
            assert_eq!(slow(&reports), [1], "a write every {every_ms} ms");
            assert!(reports.len() <= 16, "reports are bounded");
        }
    }

    #[test]
    fn a_brick_that_stops_half_of_the_time_is_slow_however_many_fast_answers_there_are() {
        let stopped = |at_ms: u64| if at_ms % 400 < 200 { (200 - at_ms % 400) as f64 } else { 0.0 };
        for every_ms in [1, 12, 25] {
            let reports =
                run(6000, every_ms, |at_ms, member| 1.5 + if member == 2 { stopped(at_ms) } else { 0.0 });
            assert_eq!(slow(&reports), [2], "a write every {every_ms} ms");
        }
    }

    #[test]
    fn nobody_is_slow_for_a_hiccup_for_a_share_of_noise_or_when_all_are() {
        // One stall of 800 ms.
        let stall = |at_ms: u64, member| {
            if member == 1 && (3000..3800).contains(&at_ms) { (3800 - at_ms) as f64 } else { 2.0 }
        };
        assert_eq!(slow(&run(10_000, 12, stall)), [0; 0]);
        // Each brick's disk flushes for 60 ms now and then, each at its own time.
        let flushes = |at_ms: u64, member: u32| {
            if (at_ms / 60 + 7 * u64::from(member)).is_multiple_of(13) { 60.0 } else { 2.0 }
        };
        assert_eq!(slow(&run(20_000, 5, flushes)), [0; 0]);
        // A machine with too much to do.
        assert_eq!(
            slow(&run(8000, 12, |at_ms, member| ((at_ms * 7 + u64::from(member) * 31) % 90) as f64)),
            [0; 0]
        );
        // Three times the others, and too little to matter.
        assert_eq!(slow(&run(8000, 12, |_, member| if member == 1 { 7.0 } else { 1.0 })), [0; 0]);
    }

    #[test]
    fn a_leg_that_is_never_answered_counts_as_long_as_it_lasts() {
        let mut lateness = Lateness::default();
        let mut reports = Vec::new();
        for ms in (1000..6000).step_by(50) {
            let now = Time(ms * 1_000_000);
            let sent = Time(1_000_000_000);
            lateness.note(
                now,
                BrickId(1),
                now - Duration::from_millis(2),
                Duration::from_millis(2),
                Duration::from_millis(2),
            );
            lateness.note(now, BrickId(0), sent, now.since(sent), Duration::from_millis(2));
            reports.extend(lateness.take_report(now));
        }
        assert_eq!(slow(&reports), [0]);
    }

    #[test]
    fn what_was_seen_long_ago_is_not_told() {
        let mut lateness = Lateness::default();
        let leg = |lateness: &mut Lateness, ms: u64, brick| {
            let (now, took) = (Time(ms * 1_000_000), Duration::from_millis(2));
            lateness.note(now, BrickId(brick), now - took, took, took);
            lateness.take_report(now)
        };
        // Brick 7 was late when it was left out.
        for ms in 1000..3000 {
            let (now, took, others) =
                (Time(ms * 1_000_000), Duration::from_millis(300), Duration::from_millis(2));
            lateness.note(now, BrickId(7), now - took, took, others);
        }
        assert!(lateness.members[&BrickId(7)].share > 0);
        let told: Vec<Observed> =
            (60_000..62_000).filter_map(|ms| leg(&mut lateness, ms, 8)).flatten().collect();
        assert!(!told.is_empty() && told.iter().all(|of| of.brick == BrickId(8)));
        assert!(!lateness.members.contains_key(&BrickId(7)), "and forgotten");
    }
}
