//! Reads are planned as a request: each goes to the holder that a chooser of [`super::retrieval`] picks, which knows how busy disks
//! are and how long they take ([`super::disks`]). `online` picks read by read, `max-flow-conservative` so that the last read of the
//! request is answered as early as can be.
//!
//! A read that is likely answered from a brick's memory ([`super::cached`]) goes there, where that is expected to be sooner than the
//! earliest disk. It has no part in the plan then, and is never moved.
//!
//! Holders that are late are left out, and looked at now and then, as in [`super::quickest`]; a read that takes much longer than
//! planned is asked of another holder.

use super::load::Load;
use super::pace::Kind;
use super::policy::{Course, Members, Next, Part, Plan, Policy};
use super::quickest::{late, with_a_look};
use super::rescue;
use super::retrieval::{Choice, Chooser, Disk, Request};
use base::{BrickId, Time};
use core::time::Duration;

/// A second holder is asked when a read takes so many times as long as planned.
const PLANNED_FACTOR: u32 = 3;

/// Bricks by the numbers that a plan gives them.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    bricks: Vec<BrickId>,
}

impl Numbers {
    pub(super) fn clear(&mut self) {
        self.bricks.clear();
    }

    /// A brick's number.
    pub(super) fn of(&mut self, brick: BrickId) -> u32 {
        let at = self.bricks.iter().position(|known| *known == brick);
        at.unwrap_or_else(|| {
            self.bricks.push(brick);
            self.bricks.len() - 1
        }) as u32
    }

    /// All of them, by their numbers.
    fn bricks(&self) -> impl Iterator<Item = BrickId> {
        self.bricks.iter().copied()
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.bricks.len() as u32
    }

    pub(super) fn brick(&self, number: u32) -> BrickId {
        self.bricks[number as usize]
    }
}

#[derive(Debug)]
pub struct Planned {
    chooser: Box<dyn Chooser>,
    numbers: Numbers,
    disks: Vec<Disk>,
    request: Request,
    chosen: Vec<u32>,
}

impl Planned {
    /// Each read by itself.
    pub fn online() -> Planned {
        Planned::by(Choice::Online)
    }

    /// All reads of a request together, best.
    pub fn max_flow() -> Planned {
        Planned::by(Choice::MaxFlow)
    }

    fn by(choice: Choice) -> Planned {
        let (numbers, request) = (Numbers::default(), Request::default());
        Planned { chooser: choice.chooser(0), numbers, disks: Vec::new(), request, chosen: Vec::new() }
    }
}

/// What is known of a part before it is planned.
pub(super) struct Outlook {
    late: Members,
    /// Who likely has it in memory and is asked for it, and when the answer is expected. Such a part is not in the request.
    cached: Option<(u8, u64)>,
}

impl Outlook {
    /// How the part begins: at this holder and time as planned, which is not asked for where memory has it.
    pub(super) fn begins(
        self,
        now: Time,
        part: &Part<'_>,
        load: &mut Load,
        planned: impl FnOnce() -> Option<(u8, u64)>,
    ) -> Option<Plan> {
        if part.holders.is_empty() {
            return None;
        }
        let first = self.cached.or_else(planned)?;
        Some(begins(now, part, first, self.late, load))
    }
}

/// Makes a request of parts, each with those of its holders that are not late, by the numbers that `number` gives to bricks. A part without
/// holders is left out, and so is one that memory is expected to answer before any disk.
pub(super) fn gather(
    now: Time,
    parts: &[Part<'_>],
    load: &mut Load,
    request: &mut Request,
    mut number: impl FnMut(BrickId) -> u32,
) -> Vec<Outlook> {
    request.clear();
    let mut known: Vec<Outlook> = Vec::with_capacity(parts.len());
    for part in parts {
        let late = late(now, part, load);
        // What memory does not have after all waits behind what others of this request are asked of the same disk.
        let before = |slot: u8| {
            known.iter().filter(|known| known.cached.is_some_and(|(at, _)| at == slot)).count() as u32
        };
        let cached = in_memory(now, part, late, (load, before));
        known.push(Outlook { late, cached });
        if cached.is_some() {
            continue;
        }
        let (mut holders, mut count) = ([0; 64], 0);
        for (_, brick) in part.holders.iter().filter(|(slot, _)| !late.has(*slot)) {
            holders[count] = number(*brick);
            count += 1;
        }
        if count > 0 {
            request.push(&holders[..count]);
        }
    }
    known
}

/// The holder that likely has a part in memory, which is asked for so many parts of the same request before it, and when it is expected to answer, whether memory has it or the disk must: where that is no
/// later than at the earliest disk.
fn in_memory(
    now: Time,
    part: &Part<'_>,
    late: Members,
    (load, before): (&mut Load, impl Fn(u8) -> u32),
) -> Option<(u8, u64)> {
    let (cached_at, likely) = load.cached_mut().likely(part.address)?;
    let candidates = part.holders.iter().filter(|(slot, _)| !late.has(*slot));
    let wait_ns =
        |brick: BrickId, reads: u32| load.disk(now, brick, part.kind).finish_ns(reads).saturating_sub(now.0);
    let (slot, _) = candidates.clone().find(|(_, brick)| *brick == cached_at)?;
    let expected_ns = ((1.0 - likely) * wait_ns(cached_at, before(*slot) + 1) as f64) as u64;
    let earliest_ns = candidates.map(|(_, brick)| wait_ns(*brick, 1)).min()?;
    (expected_ns <= earliest_ns).then_some((*slot, now.0 + expected_ns))
}

/// The holder that is expected to answer first, of those that are not late.
pub(super) fn earliest(now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
    let late = late(now, part, load);
    let finish_ns = |brick: BrickId| load.disk(now, brick, part.kind).finish_ns(1);
    let candidates = part.holders.iter().filter(|(slot, _)| !late.has(*slot));
    candidates.min_by_key(|(slot, brick)| (finish_ns(*brick), *slot)).map(|(slot, _)| *slot)
}

/// A read begins at this holder, which is expected to answer at this time. One that is late is asked as well now and then, to see
/// whether it still is.
fn begins(now: Time, part: &Part<'_>, (slot, at_ns): (u8, u64), late: Members, load: &mut Load) -> Plan {
    let first = with_a_look(now, part, slot, late, load);
    let planned = Duration::from_nanos(at_ns.saturating_sub(now.0));
    let wait = rescue::delay(now, part.kind, part.holders, load).max(planned * PLANNED_FACTOR);
    Plan { first, wait: (part.holders.len() > 1).then_some(wait) }
}

impl Policy for Planned {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        earliest(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        self.plan(now, core::slice::from_ref(part), load).pop()?
    }

    fn plan(&mut self, now: Time, parts: &[Part<'_>], load: &mut Load) -> Vec<Option<Plan>> {
        let Planned { chooser, numbers, disks, request, chosen } = self;
        numbers.clear();
        disks.clear();
        let known = gather(now, parts, load, request, |brick| numbers.of(brick));
        // The parts of a request are of one kind but for what is left over at its ends.
        let kind = parts.first().map_or(Kind::Read, |part| part.kind);
        disks.extend(numbers.bricks().map(|brick| load.disk(now, brick, kind)));
        chooser.choose(disks, request, chosen);
        keep_together(request, chosen);
        let mut chosen = chosen.iter();
        let plans = parts.iter().zip(known).map(|(part, known)| {
            known.begins(now, part, load, || {
                let number = *chosen.next()?;
                let brick = numbers.brick(number);
                let slot = part.holders.iter().find(|(_, holder)| *holder == brick)?.0;
                Some((slot, disks[number as usize].free_ns))
            })
        });
        plans.collect()
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        rescue::next(now, part, course, load)
    }
}

/// Where neighbouring reads have the same holders it does not matter which of them goes where: neighbours go to the same one, whose
/// disk may read them in one go.
fn keep_together(request: &Request, chosen: &mut [u32]) {
    let holders: Vec<&[u32]> = request.buckets().map(|(holders, _)| holders).collect();
    let mut from = 0;
    for run in holders.chunk_by(|a, b| a == b) {
        chosen[from..from + run.len()].sort_unstable();
        from += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::policy::{First, PartId};
    use wire::Wait;

    const HOLDERS: [(u8, BrickId); 3] = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];

    fn part(number: u64) -> Part<'static> {
        Part { id: PartId(number), address: number << 16, kind: Kind::Read, holders: &HOLDERS }
    }

    /// Bricks whose disks take so many microseconds.
    fn known(access_us: [u32; 3]) -> Load {
        let mut load = Load::default();
        for ((_, brick), disk_us) in HOLDERS.into_iter().zip(access_us) {
            let wait = Wait { turn_us: 0, disk_us, queued: 0 };
            let response = Duration::from_micros(u64::from(disk_us) + 20);
            load.disks_mut().answered(Time::ZERO, brick, Kind::Read, response, wait);
        }
        load
    }

    fn slots(policy: &mut Planned, load: &mut Load, count: u64) -> Vec<u8> {
        let parts: Vec<Part<'_>> = (0..count).map(part).collect();
        let slot = |plan: Option<Plan>| match plan.map(|plan| plan.first) {
            Some(First::One(slot)) => slot,
            other => panic!("{other:?}"),
        };
        policy.plan(Time::ZERO, &parts, load).into_iter().map(slot).collect()
    }

    #[test]
    fn a_request_is_shared_by_speed_and_neighbours_stay_together() {
        for mut policy in [Planned::online(), Planned::max_flow()] {
            let even = slots(&mut policy, &mut known([100, 100, 100]), 9);
            assert_eq!(even, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
            // Two accesses of the fast disks take as long as one of the slow one.
            let uneven = slots(&mut policy, &mut known([200, 100, 100]), 10);
            assert_eq!(uneven, [0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        }
    }

    #[test]
    fn a_busy_disk_gets_less() {
        let mut load = known([100, 100, 100]);
        let wait = Wait { turn_us: 0, disk_us: 100, queued: 6 };
        load.disks_mut().heard(Time::ZERO, BrickId(2), wait);
        let shared = slots(&mut Planned::max_flow(), &mut load, 9);
        assert_eq!(shared.iter().filter(|slot| **slot == 1).count(), 0, "{shared:?}");
    }

    #[test]
    fn nobody_is_asked_where_nobody_is() {
        let nobody = Part { holders: &[], ..part(0) };
        let plans = Planned::max_flow().plan(Time::ZERO, &[part(0), nobody, part(1)], &mut known([1, 1, 1]));
        assert_eq!(plans.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn what_memory_has_is_read_there_unless_its_disk_would_be_too_late_if_it_had_not() {
        for mut policy in [Planned::online(), Planned::max_flow()] {
            let mut load = known([100, 100, 100]);
            load.cached_mut().likely(0);
            // Of what the third brick was asked again, three of four were in its memory.
            (0..100).for_each(|at| load.cached_mut().answered(BrickId(3), 0, at % 4 > 0));
            assert_eq!(slots(&mut policy, &mut load, 1), [2]);
            assert_eq!(slots(&mut policy, &mut load, 3), [2, 0, 1], "the others are planned");
            let wait = Wait { turn_us: 0, disk_us: 100, queued: 50 };
            load.disks_mut().heard(Time::ZERO, BrickId(3), wait);
            assert_eq!(slots(&mut policy, &mut load, 1), [0], "one of four would wait for long");
        }
    }
}
