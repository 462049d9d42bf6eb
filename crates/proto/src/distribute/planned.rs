//! Reads are planned as a request: each goes to the holder that a chooser of [`super::retrieval`] picks, which knows how busy disks
//! are and how long they take ([`super::disks`]). `online` picks read by read, `max-flow-conservative` so that the last read of the
//! request is answered as early as can be.
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

/// Makes a request of parts, each with those of its holders that are not late, by the numbers that `number` gives to bricks; a part without
/// holders is left out. Gives who is late of each part.
pub(super) fn gather(
    now: Time,
    parts: &[Part<'_>],
    load: &Load,
    request: &mut Request,
    mut number: impl FnMut(BrickId) -> u32,
) -> Vec<Members> {
    request.clear();
    let mut lates = Vec::with_capacity(parts.len());
    for part in parts {
        let late = late(now, part, load);
        lates.push(late);
        let (mut holders, mut count) = ([0; 64], 0);
        for (_, brick) in part.holders.iter().filter(|(slot, _)| !late.has(*slot)) {
            holders[count] = number(*brick);
            count += 1;
        }
        if count > 0 {
            request.push(&holders[..count]);
        }
    }
    lates
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
pub(super) fn begins(
    now: Time,
    part: &Part<'_>,
    (slot, at_ns): (u8, u64),
    late: Members,
    load: &mut Load,
) -> Plan {
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
        let lates = gather(now, parts, load, request, |brick| numbers.of(brick));
        // The parts of a request are of one kind but for what is left over at its ends.
        let kind = parts.first().map_or(Kind::Read, |part| part.kind);
        disks.extend(numbers.bricks().map(|brick| load.disk(now, brick, kind)));
        chooser.choose(disks, request, chosen);
        keep_together(request, chosen);
        let mut chosen = chosen.iter();
        let plans = parts.iter().zip(lates).map(|(part, late)| {
            if part.holders.is_empty() {
                return None;
            }
            let number = *chosen.next()?;
            let brick = numbers.brick(number);
            let slot = part.holders.iter().find(|(_, holder)| *holder == brick)?.0;
            Some(begins(now, part, (slot, disks[number as usize].free_ns), late, load))
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
}
