//! Who is asked for a read, by the volume's policy, and who else when that takes long.
//!
//! Whatever was asked, the first answer with content counts, and the gateway alone sees to it that there is one: a member
//! that left a read to another may forget it. So each wait ends, the last one with all asked anew ([`Shared::retry_delay`]).

use super::ReadOperation;
use crate::counters::Counter;
use crate::netraid::coordinator::{Operation, Shared};
use crate::netraid::pace::Kind;
use crate::netraid::reconstruct::ReconstructOperation;
use base::{BLOCK_U64, BrickId};
use core::time::Duration;
use wire::{Contest, GroupView, ReadPolicy, Slots};

/// Members of a group: their slots, and who is there.
type Members = Vec<(u8, BrickId)>;

/// A second member is asked when a read lasts so many times as long as nearly all do at the fastest member,
const RESCUE_FACTOR: u32 = 3;
/// within these bounds,
const RESCUE_MIN: Duration = Duration::from_millis(1);
const RESCUE_MAX: Duration = Duration::from_millis(100);
/// and after this while none was measured.
const RESCUE_UNKNOWN: Duration = Duration::from_millis(10);
/// All is asked anew when a read lasts so many times as long as nearly all do at the fastest member,
const PATIENCE_FACTOR: u32 = 6;
/// but for so long at most is that the measure.
const PATIENCE_MAX: Duration = Duration::from_secs(10);
/// So many answers tell how long nearly all take.
const MEASURED: u64 = 8;
/// The second of two tied reads waits so long: about as long as the first one's claim is on its way.
const TIE_DELAY: Duration = Duration::from_micros(300);
/// A member is slow that is expected to take so many times as long as others, and so much longer: a row stands in for it at
/// once.
const SLOW_FACTOR: u64 = 2;
/// A contest goes without a member that is so many times as slow. Less is for the bids to tell: among busy disks each answers
/// what it was nearest to, and one that was left out for some unlucky answers would answer what it alone is asked for much later.
const CONTEST_FACTOR: u64 = 8;
const SLOW_MIN_NS: u64 = 500_000;

impl ReadOperation {
    pub(super) fn policy(&self, shared: &Shared) -> ReadPolicy {
        let of = self.volume.and_then(|volume| shared.policy_of.get(&volume));
        // What works on branches is a brick that catches up, and there is no hurry.
        of.copied().unwrap_or(ReadPolicy::ShortestQueue)
    }

    fn kind(&self) -> Kind {
        Kind::of_read(self.span.count)
    }

    /// All holders that are not slow: whoever can first claims it. A slow one is asked beside them now and then.
    pub(super) fn contend(&mut self, shared: &mut Shared, view: &GroupView, holders: &[(u8, BrickId)]) {
        let (quick, slow) = self.by_pace(shared, holders);
        match quick.as_slice() {
            [(only, _)] => self.ask_directly(shared, view, *only),
            _ => {
                let contest = contest(shared, quick.iter().map(|(slot, _)| *slot), false);
                quick.iter().for_each(|(slot, _)| self.ask(shared, view, *slot, true, Some(contest)));
            }
        }
        if !slow.is_empty() {
            shared.counters.count(Counter::ReadWentAroundASlowBrick);
        }
        for (slot, brick) in slow {
            if shared.is_look_due(brick, self.kind()) {
                self.ask(shared, view, slot, true, None);
            }
        }
        shared.wake_after(self.rescue_delay(shared, holders));
    }

    /// Holders, apart from those that are expected to take so much longer than the fastest.
    fn by_pace(&self, shared: &Shared, holders: &[(u8, BrickId)]) -> (Members, Members) {
        let expected = |brick: BrickId| shared.pace.expected_ns(shared.now, brick, self.kind());
        let fastest_ns = holders.iter().map(|(_, brick)| expected(*brick)).min().unwrap_or(0);
        let bound_ns = fastest_ns.saturating_mul(CONTEST_FACTOR).saturating_add(SLOW_MIN_NS);
        holders.iter().copied().partition(|(_, brick)| fastest_ns == 0 || expected(*brick) <= bound_ns)
    }

    /// Two holders, the second a little later.
    pub(super) fn tie(&mut self, shared: &mut Shared, view: &GroupView, holders: &[(u8, BrickId)]) {
        let Some(first) = self.choose(shared, holders) else { return };
        let others: Vec<(u8, BrickId)> = holders.iter().copied().filter(|(slot, _)| *slot != first).collect();
        let Some(second) = self.choose(shared, &others) else { return };
        let contest = contest(shared, [first, second].into_iter(), true);
        self.tie = Some((second, contest));
        self.ask(shared, view, first, true, Some(contest));
        shared.wake_after(TIE_DELAY);
    }

    /// One holder, and without a lease the witness of the others.
    pub(super) fn ask_one(&mut self, shared: &mut Shared, view: &GroupView, holders: &[(u8, BrickId)]) {
        let is_hedged = self.attempt == 0 && !self.confirm;
        if !self.confirm && self.goes_around(shared, view, holders) {
            return;
        }
        let slot = match self.attempt {
            0 => self.choose(shared, holders),
            // Who was asked before did not answer in time, whatever is known of it.
            again => self.ranked(shared, holders).get(again as usize % holders.len()).map(|(slot, _)| *slot),
        };
        let Some(slot) = slot else { return };
        self.ask_directly(shared, view, slot);
        if self.confirm {
            let others = self.witnesses(shared, view).without(slot);
            others.iter().for_each(|other| self.ask(shared, view, other, false, None));
        } else if is_hedged && holders.len() > 1 && self.policy(shared) == ReadPolicy::Hedged {
            shared.policies.hedge_delay().into_iter().for_each(|delay| shared.wake_after(delay));
        } else if is_hedged && self.has_row(shared, view) {
            let members = members(view);
            shared.wake_after(self.rescue_delay(shared, &members));
        }
    }

    fn ask_directly(&mut self, shared: &mut Shared, view: &GroupView, slot: u8) {
        self.direct = self.direct.with(slot);
        self.ask(shared, view, slot, true, None);
    }

    /// It takes long: someone else is asked as well, if there is anyone.
    pub(super) fn ask_further(&mut self, shared: &mut Shared) -> bool {
        let view = shared.view(self.group);
        if self.confirm || self.asked.is_empty() {
            return false;
        }
        if let Some((second, contest)) = self.tie.take() {
            self.ask(shared, &view, second, true, Some(contest));
            shared.wake_after(self.retry_at.since(shared.now));
            return true;
        }
        if self.has_row(shared, &view) && !self.is_reconstructing {
            shared.traffic.reconstructions += 1;
            self.stand_in(shared);
            shared.wake_after(self.retry_at.since(shared.now));
            return true;
        }
        let holders = self.holders(shared, &view);
        match self.policy(shared) {
            ReadPolicy::Claim => self.rescue(shared, &view, &holders),
            ReadPolicy::Hedged if self.direct.len() < 2 => self.rescue(shared, &view, &holders),
            _ => false,
        }
    }

    /// Whether those that were asked can still answer, and nobody else is left to ask.
    pub(super) fn waits_on(&self, shared: &mut Shared) -> bool {
        let view = shared.view(self.group);
        let is_up =
            |slot: u8| view.members.get(usize::from(slot)).is_some_and(|brick| shared.up.contains(brick));
        let waits = !self.asked.is_empty() && self.asked.iter().all(is_up);
        if waits {
            shared.wake_after(self.retry_at.since(shared.now));
        }
        waits
    }

    /// Asks a holder that was not asked to answer by itself before.
    fn rescue(&mut self, shared: &mut Shared, view: &GroupView, holders: &[(u8, BrickId)]) -> bool {
        let ranked = self.ranked(shared, holders);
        let Some((slot, _)) = ranked.into_iter().find(|(slot, _)| !self.direct.has(*slot)) else {
            return false;
        };
        shared.counters.count(Counter::ReadRescued);
        shared.traffic.rescues += 1;
        self.ask_directly(shared, view, slot);
        let left = self.retry_at.since(shared.now);
        shared.wake_after(self.rescue_delay(shared, holders).min(left));
        true
    }

    fn choose(&self, shared: &mut Shared, candidates: &[(u8, BrickId)]) -> Option<u8> {
        let (now, policy, kind) = (shared.now, self.policy(shared), self.kind());
        let address = (self.span.volume.0 << 24 ^ self.span.lba).wrapping_mul(BLOCK_U64);
        let pace = &shared.pace;
        let speed = |brick| pace.measure(now, brick, kind).map(|measure| measure.mean_ns);
        shared.policies.choose(now, policy, address, candidates, speed)
    }

    /// Holders, those first that are expected to answer soonest.
    fn ranked(&self, shared: &Shared, holders: &[(u8, BrickId)]) -> Vec<(u8, BrickId)> {
        let mut ranked = holders.to_vec();
        ranked.sort_by_key(|(slot, brick)| {
            (shared.pace.expected_ns(shared.now, *brick, self.kind()), self.direct.has(*slot), *slot)
        });
        ranked
    }

    /// How long answers may take before all is asked anew. Where even the fastest holder takes long, asking twice would only
    /// make it take longer.
    pub(super) fn patience(&self, shared: &Shared, holders: &[(u8, BrickId)]) -> Duration {
        let usual = self.nearly_all(shared, holders).unwrap_or_default().saturating_mul(PATIENCE_FACTOR);
        Shared::retry_delay(self.attempt).max(usual.min(PATIENCE_MAX))
    }

    /// How long an answer may take before another member is asked: a multiple of what nearly all answers take at the member
    /// that is fastest, since what is slow must not set the measure.
    fn rescue_delay(&self, shared: &Shared, members: &[(u8, BrickId)]) -> Duration {
        let high = self.nearly_all(shared, members);
        // Where nearly all take longer than the bound, asking again before they can answer would help nobody.
        let bound = RESCUE_MAX.max(high.unwrap_or_default() * 2);
        high.map_or(RESCUE_UNKNOWN, |high| high * RESCUE_FACTOR).clamp(RESCUE_MIN, bound)
    }

    /// In what time the fastest of `members` gives nearly all its answers; none where that was not measured.
    fn nearly_all(&self, shared: &Shared, members: &[(u8, BrickId)]) -> Option<Duration> {
        let measure = |brick: BrickId| shared.pace.measure(shared.now, brick, self.kind());
        let measures = members.iter().filter_map(|(_, brick)| measure(*brick));
        let high_ns = measures.filter(|measure| measure.weight >= MEASURED).map(|m| m.high_ns).min();
        high_ns.map(Duration::from_nanos)
    }

    // ---- rows of parity layouts ----

    /// Whether the other members of the row can stand in for the one that has the content.
    fn has_row(&self, shared: &Shared, view: &GroupView) -> bool {
        let layout = self.geometry(shared).layout();
        layout.parity() > 0 && view.current.len() > layout.data()
    }

    /// Whether the others stand in for the one brick that has the content: it does not answer, or is expected to take so
    /// much longer than they. It is asked as well, now and then where it is slow. Whichever answers first is taken.
    fn goes_around(&mut self, shared: &mut Shared, view: &GroupView, holders: &[(u8, BrickId)]) -> bool {
        if !self.has_row(shared, view) {
            return false;
        }
        let is_lost = self.attempt > 0 || holders.iter().all(|(_, brick)| !shared.up.contains(brick));
        let is_slow = !is_lost && self.is_row_faster(shared, view, holders);
        if (is_lost || is_slow) && !self.is_reconstructing {
            shared.counters.count(match is_lost {
                true => Counter::ReadWentAroundABrickThatDidNotAnswer,
                false => Counter::ReadWentAroundASlowBrick,
            });
            shared.traffic.reconstructions += u64::from(is_slow);
            self.stand_in(shared);
        }
        is_slow && !holders.iter().any(|(_, brick)| shared.is_look_due(*brick, self.kind()))
    }

    fn is_row_faster(&self, shared: &Shared, view: &GroupView, holders: &[(u8, BrickId)]) -> bool {
        let expected = |brick: BrickId| shared.pace.expected_ns(shared.now, brick, self.kind());
        let slots = Slots(holders.iter().fold(0, |slots, (slot, _)| slots | 1 << slot));
        let others = members(view).into_iter().filter(|(slot, _)| !slots.has(*slot));
        let mut others: Vec<u64> = others.map(|(_, brick)| expected(brick)).collect();
        others.sort_unstable();
        let needed = usize::from(self.geometry(shared).layout().data());
        let Some(row_ns) = needed.checked_sub(1).and_then(|last| others.get(last)) else { return false };
        let bound_ns = row_ns.saturating_mul(SLOW_FACTOR).saturating_add(SLOW_MIN_NS);
        // Who has been silent for as long as a read is given would most likely let this one wait as long.
        let silent = self.rescue_delay(shared, &members(view));
        let is_slower = |brick| {
            expected(brick) > bound_ns || shared.pace.silence(shared.now, brick, self.kind()) > silent
        };
        *row_ns > 0 && holders.iter().all(|(_, brick)| is_slower(*brick))
    }

    fn stand_in(&mut self, shared: &mut Shared) {
        self.is_reconstructing = true;
        let reconstruct = ReconstructOperation::new(self.group, self.span, self.data_index, Slots::default());
        shared.begin(Operation::Reconstruct(Box::new(reconstruct)));
    }
}

fn contest(shared: &mut Shared, slots: impl Iterator<Item = u8>, tied: bool) -> Contest {
    let holders = slots.fold(Slots::default(), Slots::with);
    Contest { number: shared.draw_number(), holders, tied }
}

fn members(view: &GroupView) -> Vec<(u8, BrickId)> {
    view.current.iter().filter_map(|slot| Some((slot, *view.members.get(usize::from(slot))?))).collect()
}
