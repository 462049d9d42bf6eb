//! Which members hold up writes, as one gateway sees it: how long each takes to prepare, beside the other members of the
//! same writes. The directory judges by what all gateways say ([`roles::directory`], `slow`).
//!
//! Time is cut into slots of about an eighth of a second, a slot into ticks. For each brick a slot knows in which ticks writes
//! were under way there, and in which of these one was *late*: longer under way than [`FLOOR`] and than [`TIMES`] as
//! long as the median of the write's other legs took. Time is what counts, not writes: of a brick
//! that stops twice a second a busy gateway sees a thousand fast answers and a few late ones, and half of its time gone.
//! Comparing within a write leaves out what writes differ in; comparing bricks, what parts of writes do.
//!
//! A brick is slow if its legs take half as long again on average as the others of the same writes, and one of these holds, three times as much as of the
//! other bricks:
//!
//! - It *stalls*: in the latest [`WINDOW`] slots there was a late leg, and none that was answered in time, for half of the time that it was busy and for
//!   [`HALF_TICKS_MIN`]; and for half of [`CONFIRMED`] after that. (Of hundreds under way one leg is nearly always late.) Where at least half of the
//!   other bricks had a hiccup, a stall of [`HICCUP_TICKS`], within [`HICCUP_FRESH`], a stall counts only if the brick's one before was within [`HICCUP_ALONE`].
//! - There was a late leg for a quarter of the time of [`ROUNDS`] such windows in a row, whatever else was answered: a brick has several disks. Where legs queue
//!   up at it, of [`ROUNDS_OF_A_QUEUE`]: under more writes than the disks take, whoever is behind for a moment has nearly all that are under way.

use base::{BrickId, Time};
use core::time::Duration;
use rules::median::upper_median;
use std::collections::BTreeMap;
use wire::Observed;

const TICK_NS: u64 = 1_000_000;
/// 128 ticks: as many as a word has bits.
const SLOT_NS: u64 = 128 * TICK_NS;
/// Slots that are looked at together: half a second.
const WINDOW: usize = 4;
/// A leg is never late before: a disk that must flush for a neighbour first takes as long.
const FLOOR: Duration = Duration::from_millis(8);
const TIMES: u32 = 3;
/// A brick stalls if it did for one in so many of the ticks in which it was busy.
const HALF: u32 = 2;
/// It does not stall if it did for fewer ticks than that.
const HALF_TICKS_MIN: u32 = 240;
/// A stall counts if the brick stalled for half of so much time after it, too: a gateway that stood still itself sees none of its answers before.
const CONFIRMED: Duration = Duration::from_millis(64);
/// A window speaks against a brick if a leg was late for one in so many of the ticks in which it was busy.
const QUARTER: u32 = 4;
/// It does not if legs were late for fewer ticks than that.
const QUARTER_TICKS_MIN: u32 = 32;
/// Who stalled for so many ticks of the latest slots had a hiccup at least.
const HICCUP_TICKS: u32 = 96;
/// For so long after it a hiccup says something of what is usual here.
const HICCUP_FRESH: Duration = Duration::from_secs(300);
/// Where hiccups are usual, a stall counts if it follows the brick's last one within this time.
const HICCUP_ALONE: Duration = Duration::from_secs(10);
/// Two stalls that are less apart are the same one, which is looked at after a slot at the latest.
const HICCUP_APART: Duration = Duration::from_millis(200);
/// Who was told to stall is not told to be well again before so long has passed.
const HELD: Duration = Duration::from_millis(512);
/// The latest slots are looked at so often at the most.
const JUDGE_EVERY: Duration = Duration::from_millis(16);
/// A leg that takes so long is looked at by itself, and not only when a slot is over.
const LONG: Duration = Duration::from_millis(100);
/// How many legs must be known, and in how many ticks, for a window to say anything.
const LEGS_MIN: u32 = 4;
const BUSY_TICKS_MIN: u32 = 8;
/// Windows in a row: one and a half seconds,
const ROUNDS: u32 = 3;
/// and four seconds of a brick at which legs queue up and are answered.
const ROUNDS_OF_A_QUEUE: u32 = 8;
/// Legs under way at a time, on average, that are a queue.
const QUEUE: u64 = 8;
/// In a queue legs are answered all the time but for this part of it, of 1024: a brick that answers none for more is no queue.
const STANDS_STILL: u64 = 410;
/// What was gathered in so many windows without being enough is thrown away.
const WINDOWS_MAX: u32 = 8;

#[derive(Debug, Default)]
struct Member {
    /// The latest slots, each in its turn.
    latest: [Slot; WINDOW],
    gathered: Gathered,
    /// What was gathered in so many windows said nothing yet.
    windows: u32,
    /// The share of its time that it was late in the last windows that said anything, in parts of 1024.
    share: u32,
    rounds: u32,
    /// Since when it has stalled for most of the latest slots, and whether it is slow for that.
    stalled_since: Option<Time>,
    is_late: bool,
    /// When it last stalled for longer than a hiccup, and that was taken for one.
    excused: Option<Time>,
    /// When it was last judged, and by what.
    judged: Option<(Time, Gathered)>,
}

/// The ticks of a slot in which a write was under way, was late, was answered in time just then; and the legs that became known in it.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    busy: u128,
    late: u128,
    good: u128,
    legs: u32,
    took_ns: u64,
    others_ns: u64,
}

/// Of several slots.
#[derive(Clone, Copy, Debug, Default)]
struct Gathered {
    busy: u32,
    late: u32,
    /// When it was late and none was answered in time.
    stalled: u32,
    legs: u32,
    took_ns: u64,
    others_ns: u64,
}

impl Gathered {
    fn add(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.busy += slot.busy.count_ones();
            self.late += slot.late.count_ones();
            self.stalled += (slot.late & !slot.good).count_ones();
            self.legs += slot.legs;
            self.took_ns = self.took_ns.saturating_add(slot.took_ns);
            self.others_ns = self.others_ns.saturating_add(slot.others_ns);
        }
    }

    fn says_something(&self) -> bool {
        self.legs >= LEGS_MIN && self.busy >= BUSY_TICKS_MIN
    }

    /// The share of its time that the brick was late, in parts of 1024.
    fn share(&self) -> u32 {
        1024 * self.late / self.busy.max(1)
    }

    /// The share of its time that it stalled.
    fn stalled_share(&self) -> u32 {
        1024 * self.stalled / self.busy.max(1)
    }

    /// Whether its legs took longer on average, too: one of many under way that waits for long makes a disk late for much of its time, and not slow.
    fn takes_longer(&self) -> bool {
        self.took_ns.saturating_mul(2) >= self.others_ns.saturating_mul(3)
    }

    /// For how many windows in a row it must have been late if this is the last one. By Little's law as many legs were under way at a time as
    /// they took together in the time that it was busy.
    fn rounds(&self) -> u32 {
        let is_queue = self.took_ns >= QUEUE * u64::from(self.busy) * TICK_NS;
        let is_answered = u64::from(self.stalled) * 1024 < STANDS_STILL * u64::from(self.busy);
        if is_queue && is_answered { ROUNDS_OF_A_QUEUE } else { ROUNDS }
    }

    fn mean_us(&self, sum_ns: u64) -> u32 {
        u32::try_from(sum_ns / u64::from(self.legs.max(1)) / 1000).unwrap_or(u32::MAX)
    }
}

/// What a gateway knows of its bricks.
#[derive(Debug, Default)]
pub struct Lateness {
    members: BTreeMap<BrickId, Member>,
    /// When each brick last had a hiccup, for as long as that says something: also of those that are not written to just now.
    hiccups: BTreeMap<BrickId, Time>,
    /// When the slot under way began.
    slot: Time,
    /// When the latest slots were looked at.
    judged: Time,
    /// Whether something was judged that was not reported.
    is_due: bool,
}

impl Lateness {
    /// What is judged counts for so long.
    pub const FRESH: Duration = Duration::from_secs(3);

    /// A leg of a write to `brick` was sent at `sent` and took so long, or has taken so long already and is not answered;
    /// the median of the write's other legs took `others`.
    pub fn note(&mut self, now: Time, brick: BrickId, sent: Time, took: Duration, others: Duration) {
        let begins_slot = now.0 >= self.slot.0 + SLOT_NS;
        if begins_slot {
            self.begin_slot(now);
        }
        let (bound, end, slot) = (FLOOR.max(others * TIMES), sent + took, self.slot);
        let latest = &mut self.members.entry(brick).or_default().latest;
        for back in 0..(WINDOW as u64).min(slot.0 / SLOT_NS + 1) {
            let begin = Time(slot.0 - back * SLOT_NS);
            let of_slot = &mut latest[place(begin)];
            of_slot.busy |= ticks(begin, sent, end + Duration::from_nanos(TICK_NS));
            if took > bound {
                of_slot.late |= ticks(begin, sent + bound, end);
            } else {
                of_slot.good |= ticks(begin, sent, end + FLOOR);
            }
        }
        let of_slot = &mut latest[place(slot)];
        of_slot.legs += 1;
        of_slot.took_ns = of_slot.took_ns.saturating_add(took.as_nanos() as u64);
        of_slot.others_ns = of_slot.others_ns.saturating_add(others.as_nanos() as u64);
        if begins_slot || took >= LONG {
            self.judge_latest(now);
        }
    }

    /// What there is to tell: after each window that said anything, and whenever a brick has become slow by its latest slots.
    pub fn take_report(&mut self, now: Time) -> Option<Vec<Observed>> {
        if !core::mem::take(&mut self.is_due) {
            return None;
        }
        let known = self.members.iter().filter_map(|(brick, member)| {
            let (at, by) = member.judged?;
            (now.since(at) < Self::FRESH).then(|| Observed {
                brick: *brick,
                is_slow: member.is_late || member.rounds >= by.rounds(),
                prepare_us: by.mean_us(by.took_ns),
                others_us: by.mean_us(by.others_ns),
            })
        });
        Some(known.collect())
    }

    fn begin_slot(&mut self, now: Time) {
        let (before, next) = (self.slot.0 / SLOT_NS, now.0 / SLOT_NS);
        // After a pause in the writes what was gathered before is old.
        if next - before > u64::from(WINDOWS_MAX) * WINDOW as u64 {
            for member in self.members.values_mut() {
                let Member { judged, share, .. } = *member;
                *member = Member { judged, share, ..Member::default() };
            }
            self.forget(now);
        } else {
            for slot in before + 1..=next {
                if slot.is_multiple_of(WINDOW as u64) {
                    self.end_window(now);
                }
                let place = place(Time(slot * SLOT_NS));
                self.members.values_mut().for_each(|member| member.latest[place] = Slot::default());
            }
        }
        self.slot = Time(next * SLOT_NS);
    }

    /// A brick that stalls for half of its time at last is slow, if it still does a moment later: after a pause of this gateway itself all is as
    /// it was before.
    fn judge_latest(&mut self, now: Time) {
        if now.since(self.judged) < JUDGE_EVERY {
            return;
        }
        self.judged = now;
        self.hiccups.retain(|_, at| now.since(*at) < HICCUP_FRESH);
        let mut all = Vec::with_capacity(self.members.len());
        for (brick, member) in &self.members {
            let mut by = Gathered::default();
            by.add(&member.latest);
            all.push((*brick, by));
        }
        for (brick, by) in &all {
            if by.stalled >= HICCUP_TICKS {
                self.hiccups.insert(*brick, now);
            }
            let Some(member) = self.members.get_mut(brick) else { continue };
            let is_stalled = by.says_something()
                && by.takes_longer()
                && by.stalled >= HALF_TICKS_MIN
                && by.stalled * HALF >= by.busy;
            if !is_stalled {
                // Who was told is not told to be well again at once.
                if member.stalled_since.is_none_or(|since| now.since(since) >= HELD) {
                    (member.stalled_since, member.is_late) = (None, false);
                }
                continue;
            }
            let others = all.iter().filter(|(other, _)| other != brick);
            let of_others = upper_median(others.clone().map(|(_, of)| of.stalled_share())).unwrap_or(0);
            if by.stalled_share() < of_others.saturating_mul(TIMES) {
                continue;
            }
            let had_hiccup = |(other, _): &(BrickId, Gathered)| self.hiccups.contains_key(other);
            let are_restless = upper_median(others.map(had_hiccup)).unwrap_or(false);
            let is_apart = |at| (HICCUP_APART..HICCUP_ALONE).contains(&now.since(at));
            if are_restless && !member.excused.is_some_and(is_apart) {
                member.excused = Some(now);
                continue;
            }
            let since = *member.stalled_since.get_or_insert(now);
            let lasted = now.since(since);
            let meanwhile = stalled_between(&member.latest, self.slot, since, now);
            if member.is_late || lasted < CONFIRMED {
                continue;
            }
            if u64::from(meanwhile) * TICK_NS * 2 >= lasted.as_nanos() as u64 {
                (member.is_late, member.stalled_since, member.judged) = (true, Some(now), Some((now, *by)));
                self.is_due = true;
            } else {
                member.stalled_since = Some(now);
            }
        }
    }

    fn end_window(&mut self, now: Time) {
        let mut judged = Vec::new();
        for (brick, member) in &mut self.members {
            member.windows += 1;
            member.gathered.add(&member.latest);
            if member.gathered.says_something() {
                member.share = member.gathered.share();
                judged.push((*brick, core::mem::take(&mut member.gathered)));
                member.windows = 0;
            } else if member.windows >= WINDOWS_MAX {
                (member.gathered, member.windows) = (Gathered::default(), 0);
            }
        }
        self.forget(now);
        for (brick, by) in judged {
            let others = self.members.iter().filter(|(other, _)| **other != brick);
            let of_others = upper_median(others.map(|(_, member)| member.share)).unwrap_or(0);
            let member = self.members.entry(brick).or_default();
            let is_late = by.takes_longer()
                && by.late >= QUARTER_TICKS_MIN
                && member.share * QUARTER >= 1024
                && member.share >= of_others.saturating_mul(TIMES);
            member.rounds = if is_late { member.rounds.saturating_add(1) } else { 0 };
            member.judged = Some((now, by));
            self.is_due = true;
        }
    }

    /// Bricks to which nothing was written for long.
    fn forget(&mut self, now: Time) {
        self.members.retain(|_, member| {
            let is_known = member.judged.is_some_and(|(at, _)| now.since(at) < 10 * Self::FRESH);
            is_known || member.gathered.legs > 0 || member.latest.iter().any(|slot| slot.legs > 0)
        });
    }
}

/// The ticks between two moments in which a brick stalled, as far as the latest slots know.
fn stalled_between(latest: &[Slot; WINDOW], slot: Time, from: Time, to: Time) -> u32 {
    let begins = (0..WINDOW as u64).filter_map(|back| slot.0.checked_sub(back * SLOT_NS)).map(Time);
    let stalled = |begin: Time| {
        let of_slot = &latest[place(begin)];
        of_slot.late & !of_slot.good & ticks(begin, from, to)
    };
    begins.map(|begin| stalled(begin).count_ones()).sum()
}

/// Where a slot is among the latest.
fn place(begin: Time) -> usize {
    (begin.0 / SLOT_NS) as usize % WINDOW
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
        // One stall of 200 ms.
        let stall = |at_ms: u64, member| {
            if member == 1 && (3000..3200).contains(&at_ms) { (3200 - at_ms) as f64 } else { 2.0 }
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
    fn one_leg_of_hundreds_that_waits_for_long_does_not_mean_that_its_brick_stalls() {
        // For a second there is always one write under way there that takes 300 ms.
        let is_late = |at_ms: u64| (3000..4000).contains(&at_ms) && at_ms.is_multiple_of(200);
        let took = |at_ms: u64, member| if member == 1 && is_late(at_ms) { 300.0 } else { 2.0 };
        assert_eq!(slow(&run(6000, 1, took)), [0; 0]);
        // One of a brick's disks hangs.
        let hangs = |at_ms: u64, member| if member == 1 && at_ms.is_multiple_of(4) { 900.0 } else { 2.0 };
        assert_eq!(slow(&run(6000, 1, hangs)), [1]);
    }

    /// Seen on real daemons, on a machine that was busy: *its writes take 51.4 ms, those of the others in its groups 22.6 ms*, and it was left out.
    #[test]
    fn who_is_behind_for_two_seconds_under_more_writes_than_disks_take_is_not_slow() {
        // Of each half second it is late for half, and answers many writes all the time.
        let took = |span_ms: u64, every_ms: u64, late_ms: f64| {
            let late = move |at_ms: u64| (4096..4096 + span_ms).contains(&at_ms) && at_ms.is_multiple_of(8);
            run(20_000, every_ms, move |at_ms, member| match member {
                1 if late(at_ms) => late_ms,
                1 => 20.0,
                _ => 10.0 + (at_ms % 3) as f64,
            })
        };
        assert_eq!(slow(&took(2500, 1, 120.0)), [0; 0]);
        assert_eq!(slow(&took(6000, 1, 120.0)), [1]);
        // Where nothing queues up it is slow sooner.
        let few = |at_ms: u64, member| match member {
            1 if (4096..6600).contains(&at_ms) && (at_ms / 40).is_multiple_of(2) => 50.0,
            _ => 2.0,
        };
        assert_eq!(slow(&run(20_000, 40, few)), [1]);
    }

    /// Seen on real daemons, on a machine that was busy: *its writes take 6.4 ms, those of the others in its groups 9.3 ms*, and it was left out.
    #[test]
    fn whose_legs_are_faster_on_average_is_not_slow_for_a_few_that_wait_for_long() {
        // Hundreds a second of which two wait for long, as at a drive that prefers near blocks.
        let took = |at_ms: u64, member| match member {
            1 if at_ms.is_multiple_of(250) => 180.0,
            1 => 5.0,
            // Never three times as long as the other one.
            _ => 7.0 + (at_ms % 5) as f64,
        };
        assert_eq!(slow(&run(20_000, 2, took)), [0; 0]);
    }

    #[test]
    fn a_pause_of_the_gateway_itself_is_no_brick_s() {
        // The answers of one brick lay in the socket.
        for pause_ms in [200, 260, 300, 400, 700] {
            let took = |at_ms: u64, member| if member == 1 && at_ms == 4000 { pause_ms as f64 } else { 2.0 };
            let mut lateness = Lateness::default();
            let mut told = Vec::new();
            let mut now_ms = 1000;
            while now_ms < 8000 {
                let sent = Time(now_ms * 1_000_000);
                let each = [0, 1, 2].map(|member| Duration::from_millis(took(now_ms, member) as u64));
                now_ms += each.iter().max().expect("three").as_millis() as u64;
                for (member, own) in each.into_iter().enumerate() {
                    let now = Time(now_ms * 1_000_000);
                    lateness.note(now, BrickId(member as u32), sent, own, Duration::from_millis(2));
                    told.extend(lateness.take_report(now));
                }
            }
            assert_eq!(slow(&told), [0; 0], "{pause_ms} ms");
        }
    }

    /// When a brick is first reported that is so late from `from_ms` on.
    fn first_told(every_ms: u64, from_ms: u64, late_ms: f64) -> u64 {
        let took = |at_ms, member| if member == 1 && at_ms >= from_ms { late_ms } else { 1.5 };
        let mut span_ms = from_ms;
        while slow(&run(span_ms, every_ms, took)).is_empty() {
            span_ms += 20;
            assert!(span_ms < from_ms + 3000, "it is never told");
        }
        span_ms - from_ms
    }

    #[test]
    fn a_brick_that_has_become_slow_is_told_within_half_a_second() {
        for (every_ms, late_ms) in [(1, 20.0), (12, 20.0), (12, 50.0), (20, 50.0)] {
            let told_ms = first_told(every_ms, 4096, late_ms);
            assert!(
                told_ms <= 512,
                "a write every {every_ms} ms, {late_ms} ms late: told after {told_ms} ms"
            );
        }
    }

    /// Legs every 10 ms to bricks that answer within 2 ms, but stall, and are noted again and again meanwhile, from when `stalls` says. Who is told to be slow.
    fn noted(span_ms: u64, bricks: u32, stalls: impl Fn(u64, u32) -> Option<u64>) -> Vec<u32> {
        noted_while(span_ms, bricks, |_| true, stalls)
    }

    /// The same, where legs come only while `writes` says so.
    fn noted_while(
        span_ms: u64,
        bricks: u32,
        writes: impl Fn(u64) -> bool,
        stalls: impl Fn(u64, u32) -> Option<u64>,
    ) -> Vec<u32> {
        let (mut lateness, mut reports) = (Lateness::default(), Vec::new());
        let quick = Duration::from_millis(2);
        for ms in (4096..4096 + span_ms).step_by(10).filter(|ms| writes(*ms)) {
            let now = Time(ms * 1_000_000);
            for brick in 0..bricks {
                let took = stalls(ms, brick).map_or(quick, |from| Duration::from_millis(ms - from));
                lateness.note(now, BrickId(brick), now - took, took, quick);
            }
            reports.extend(lateness.take_report(now));
        }
        slow(&reports)
    }

    /// These do not answer for so long.
    fn unanswered(span_ms: u64, bricks: u32, silent: &[u32]) -> Vec<u32> {
        let stalls = |ms, brick| (silent.contains(&brick) && ms < 4096 + span_ms).then_some(4096);
        noted(span_ms + 1000, bricks, stalls)
    }

    /// Seen on real daemons beside compilers: one brick after the other stalled for a third of a second, and was left out.
    #[test]
    fn where_all_bricks_have_hiccups_nobody_is_slow_for_one() {
        // Each stalls once in 20 s, in turns.
        let stalls = |ms: u64, brick: u32, for_ms| {
            let within = (ms + 5000 * u64::from(brick)) % 20_000;
            (within < for_ms && ms > 5000).then(|| ms - within)
        };
        let longer_later = |ms, brick| stalls(ms, brick, if ms < 30_000 { 200 } else { 420 });
        assert_eq!(noted(100_000, 3, longer_later), [0; 0]);
        // Also where writes come for 10 s in each minute only.
        let longer_later = |ms: u64, brick| stalls(ms, brick, if ms < 62_000 { 200 } else { 420 });
        assert_eq!(noted_while(130_000, 3, |ms| ms % 60_000 < 20_000, longer_later), [0; 0]);
        // The first one is not known to be a hiccup.
        assert_eq!(noted(100_000, 3, |ms, brick| stalls(ms, brick, 420)), [2]);
        // Nor is a brick well that does it every two seconds.
        let often = |ms: u64, brick| match brick {
            1 if ms >= 50_000 => (ms % 2000 < 700).then(|| ms - ms % 2000),
            _ => stalls(ms, brick, 200),
        };
        assert_eq!(noted(45_000, 3, often), [0; 0]);
        assert_eq!(noted(49_000, 3, often), [1]);
        // A brick that goes on to stall is found by that.
        let dies = |ms, brick| match brick {
            1 if ms >= 50_000 => Some(50_000),
            _ => stalls(ms, brick, 200),
        };
        assert_eq!(noted(46_500, 3, dies), [0; 0]);
        assert_eq!(noted(48_200, 3, dies), [1]);
    }

    #[test]
    fn a_stall_of_a_third_of_a_second_is_told_and_a_shorter_one_or_one_of_most_bricks_is_not() {
        assert_eq!(unanswered(350, 4, &[1]), [1]);
        for short_ms in [200, 240, 290] {
            assert_eq!(unanswered(short_ms, 4, &[1]), [0; 0], "{short_ms} ms");
        }
        assert_eq!(unanswered(350, 4, &[0, 1, 2]), [0; 0]);
    }

    #[test]
    fn who_stalls_for_less_than_half_of_the_time_is_told_later() {
        // Of each half second 220 ms.
        let stopped = |at_ms: u64| if at_ms % 512 < 220 { (220 - at_ms % 512) as f64 } else { 0.0 };
        let took = |at_ms, member| 1.5 + if member == 1 && at_ms >= 4096 { stopped(at_ms) } else { 0.0 };
        assert_eq!(slow(&run(3096 + 1400, 1, took)), [0; 0]);
        assert_eq!(slow(&run(3096 + 2500, 1, took)), [1]);
    }

    #[test]
    fn who_is_told_to_stall_is_told_to_be_well_again_after_half_a_second_at_the_earliest() {
        let mut lateness = Lateness::default();
        let quick = Duration::from_millis(2);
        let mut is_told = |ms: u64, took_ms: u64| {
            let (now, took) = (Time(ms * 1_000_000), Duration::from_millis(took_ms));
            lateness.note(now, BrickId(0), now - quick, quick, quick);
            lateness.note(now, BrickId(1), now - took, took, quick);
            lateness.members[&BrickId(1)].is_late
        };
        let told = (4100..5000).step_by(10).find(|ms| is_told(*ms, ms - 4096)).expect("it is told");
        let well = (told + 10..7000).step_by(10).find(|ms| !is_told(*ms, 2)).expect("it is well again");
        assert!(well - told >= 512, "{told} {well}");
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
