//! Which members hold up writes: how long each takes to prepare, beside the other members of the same writes.
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
            is_known || member.gathered.legs > 0 || member.share > 0
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
