//! Reads of a request are planned together with those of earlier requests that have not begun yet: the paper's
//! `immediate-adaptive`, by [`super::retrieval::Plan`].
//!
//! A gateway does not see when a disk begins with a read. A read that should begin within an access from now is left where it is. For
//! any other that is to be moved the brick is asked to withdraw it, and only when the brick has, the other holder is asked: a read is never
//! read twice for being moved. Each is moved once at most. What was promised to earlier requests is kept, as far as bricks keep to
//! their pace.
//!
//! Late holders and reads that take long are treated as in [`super::planned`].

use super::load::Load;
use super::pace::Kind;
use super::planned::{Numbers, earliest, gather};
use super::policy::{Course, Moved, Next, Part, PartId, Plan, Policy};
use super::rescue;
use super::retrieval::{self, Fairness, Move, Request, Waiting};
use base::{BrickId, HashMap, Time};
use core::time::Duration;
use std::collections::VecDeque;

/// Reads that may still be moved: so many, and asked so lately. Those before count as begun.
const KEPT_MAX: usize = 512;
const KEPT_FOR: Duration = Duration::from_secs(5);

/// A read in the plan.
#[derive(Clone, Debug)]
struct Kept {
    waiting: Waiting,
    /// Who was asked, by its number.
    at: u32,
    holders: Vec<(u8, BrickId)>,
}

impl Kept {
    fn slot(&self, brick: BrickId) -> Option<u8> {
        self.holders.iter().find(|(_, holder)| *holder == brick).map(|(slot, _)| *slot)
    }
}

#[derive(Debug)]
pub struct MaxFlowAdaptive {
    plan: retrieval::Plan,
    numbers: Numbers,
    kept: HashMap<PartId, Kept>,
    /// In the order in which they were asked.
    order: VecDeque<(Time, PartId)>,
    /// Whose each bucket of the plan is, by its number.
    of: Vec<PartId>,
    moved: Vec<Moved>,
    request: Request,
    waiting: Vec<Waiting>,
    moves: Vec<Move>,
}

impl Default for MaxFlowAdaptive {
    fn default() -> MaxFlowAdaptive {
        MaxFlowAdaptive {
            plan: retrieval::Plan::new(&[], Fairness::Promise),
            numbers: Numbers::default(),
            kept: HashMap::default(),
            order: VecDeque::new(),
            of: Vec::new(),
            moved: Vec::new(),
            request: Request::default(),
            waiting: Vec::new(),
            moves: Vec::new(),
        }
    }
}

impl MaxFlowAdaptive {
    /// A read is not moved any more.
    fn forget(&mut self, part: PartId) {
        if let Some(kept) = self.kept.remove(&part) {
            self.plan.withdraw(kept.waiting);
        }
    }

    /// What is long ago, and what is too much, is not moved any more.
    fn expire(&mut self, now: Time) {
        while let Some((asked, part)) = self.order.front().copied()
            && (self.kept.len() > KEPT_MAX || !self.kept.contains_key(&part) || asked + KEPT_FOR < now)
        {
            self.order.pop_front();
            self.forget(part);
        }
    }

    /// Tells the plan how busy disks are, apart from what waits there and may be moved; what is about to begin may not be.
    fn refresh(&mut self, now: Time, kind: Kind, load: &Load) {
        for number in 0..self.numbers.len() {
            let disk = load.disk(now, self.numbers.brick(number), kind);
            let waiting_ns = u64::from(self.plan.waiting(number)) * disk.access_ns;
            let free_ns = disk.free_ns.saturating_sub(waiting_ns).max(now.0);
            self.plan.set_disk(number, free_ns, disk.access_ns);
            let due_ns = now.0 + disk.access_ns;
            while self.plan.begins_ns(number).is_some_and(|begins_ns| begins_ns < due_ns) {
                let (bucket, _, _) = self.plan.begin(number).expect("one begins");
                self.kept.remove(&self.of[bucket.index()]);
            }
        }
    }

    /// Earlier reads that wait elsewhere now are to be moved, and then never again.
    fn take_moves(&mut self) {
        let mut moves = core::mem::take(&mut self.moves);
        for Move { bucket, .. } in moves.drain(..) {
            // One of the request that is being planned is nobody's yet: it is asked where it waits in the end.
            let Some(part) = self.of.get(bucket.index()).copied() else { continue };
            let (Some(kept), Some(to)) = (self.kept.get(&part), self.plan.waits_at(bucket)) else { continue };
            if kept.waiting != bucket || kept.at == to {
                continue;
            }
            let slots = [kept.at, to].map(|number| kept.slot(self.numbers.brick(number)));
            if let [Some(from), Some(to)] = slots {
                self.moved.push(Moved { part, from, to });
            }
            self.forget(part);
        }
        self.moves = moves;
    }
}

impl Policy for MaxFlowAdaptive {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        earliest(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        self.plan(now, core::slice::from_ref(part), load).pop()?
    }

    fn plan(&mut self, now: Time, parts: &[Part<'_>], load: &mut Load) -> Vec<Option<Plan>> {
        let Some(kind) = parts.first().map(|part| part.kind) else { return Vec::new() };
        self.expire(now);
        let numbers = &mut self.numbers;
        let known = gather(now, parts, load, &mut self.request, |brick| numbers.of(brick));
        self.plan.grow(self.numbers.len());
        self.refresh(now, kind, load);
        self.plan.ask(&self.request, now.0, &mut self.waiting, &mut self.moves);
        self.take_moves();
        let asked = core::mem::take(&mut self.waiting);
        let mut waiting = asked.iter().copied();
        let plans = parts.iter().zip(known).map(|(part, known)| {
            known.begins(now, part, load, || {
                let bucket = waiting.next()?;
                let at = self.plan.waits_at(bucket)?;
                let kept = Kept { waiting: bucket, at, holders: part.holders.to_vec() };
                let slot = kept.slot(self.numbers.brick(at))?;
                self.of.resize(self.of.len().max(bucket.index() + 1), part.id);
                self.of[bucket.index()] = part.id;
                self.order.push_back((now, part.id));
                self.forget(part.id);
                self.kept.insert(part.id, kept);
                Some((slot, self.plan.finish_ns(at)))
            })
        });
        let plans = plans.collect();
        self.waiting = asked;
        plans
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        self.forget(part.id);
        rescue::next(now, part, course, load)
    }

    fn take_moved(&mut self) -> Vec<Moved> {
        core::mem::take(&mut self.moved)
    }

    fn ended(&mut self, part: PartId) {
        self.forget(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::policy::First;
    use wire::Wait;

    const ACCESS_US: [u32; 3] = [1_000, 1_000, 30_000];

    fn known() -> Load {
        let mut load = Load::default();
        for (brick, disk_us) in (1..).zip(ACCESS_US) {
            let wait = Wait { turn_us: 0, disk_us, queued: 0 };
            let response = Duration::from_micros(u64::from(disk_us));
            load.disks_mut().answered(Time::ZERO, BrickId(brick), Kind::Read, response, wait);
        }
        load
    }

    /// Reads that these bricks hold, which are asked as planned: how many of each brick.
    fn ask(
        policy: &mut MaxFlowAdaptive,
        load: &mut Load,
        ids: core::ops::Range<u64>,
        holders: &[u32],
    ) -> [u32; 3] {
        let holders: Vec<(u8, BrickId)> = (0..).zip(holders.iter().map(|brick| BrickId(*brick))).collect();
        let part = |id| Part { id: PartId(id), address: id << 16, kind: Kind::Read, holders: &holders };
        let parts: Vec<Part<'_>> = ids.map(part).collect();
        let mut counts = [0; 3];
        for plan in policy.plan(Time::ZERO, &parts, load) {
            let Some(Plan { first: First::One(slot), .. }) = plan else { panic!("{plan:?}") };
            let brick = holders[usize::from(slot)].1;
            load.begin(brick);
            load.disks_mut().asked(brick);
            counts[brick.0 as usize - 1] += 1;
        }
        counts
    }

    #[test]
    fn what_waits_makes_room_as_far_as_its_request_loses_nothing() {
        let (mut policy, mut load) = (MaxFlowAdaptive::default(), known());
        assert_eq!(ask(&mut policy, &mut load, 0..12, &[1, 2]), [6, 6, 0]);
        assert_eq!(ask(&mut policy, &mut load, 20..26, &[1]), [6, 0, 0]);
        assert_eq!(
            policy.take_moved(),
            [],
            "whatever moves to the second brick would be later than promised"
        );
        let (mut policy, mut load) = (MaxFlowAdaptive::default(), known());
        // One read of a slow disk makes the request late enough.
        let holders = [vec![(0, BrickId(3))], vec![(0, BrickId(1)), (1, BrickId(2))]];
        let part = |id: u64| {
            let holders = &holders[usize::from(id > 0)];
            Part { id: PartId(id), address: id << 16, kind: Kind::Read, holders }
        };
        let parts: Vec<Part<'_>> = (0..13).map(part).collect();
        for (plan, part) in policy.plan(Time::ZERO, &parts, &mut load).into_iter().zip(&parts) {
            let Some(Plan { first: First::One(slot), .. }) = plan else { panic!("{plan:?}") };
            let brick = part.holders[usize::from(slot)].1;
            load.begin(brick);
            load.disks_mut().asked(brick);
        }
        ask(&mut policy, &mut load, 20..26, &[1]);
        let moved = policy.take_moved();
        assert_eq!(moved.len(), 3, "six and six, and six more for the first: nine each");
        assert!(moved.iter().all(|moved| (moved.from, moved.to) == (0, 1)), "{moved:?}");
        ask(&mut policy, &mut load, 30..36, &[1]);
        let again = policy.take_moved();
        assert!(!again.iter().any(|later| moved.iter().any(|moved| moved.part == later.part)), "{again:?}");
    }

    #[test]
    fn parts_of_one_request_make_room_for_each_other_and_are_asked_once() {
        let (mut policy, mut load) = (MaxFlowAdaptive::default(), known());
        let holders = [vec![(0, BrickId(1)), (1, BrickId(2))], vec![(0, BrickId(1))]];
        // The first part is put on the first brick, where the second must be: it makes room.
        let part = |id: u64| Part {
            id: PartId(id),
            address: id << 16,
            kind: Kind::Read,
            holders: &holders[id as usize],
        };
        let plans = policy.plan(Time::ZERO, &[part(0), part(1)], &mut load);
        let first = |plan: &Option<Plan>| plan.map(|plan| plan.first);
        assert_eq!(plans.iter().map(first).collect::<Vec<_>>(), [Some(First::One(1)), Some(First::One(0))]);
        assert_eq!(policy.take_moved(), [], "nobody has been asked yet");
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let (mut policy, mut load) = (MaxFlowAdaptive::default(), known());
        ask(&mut policy, &mut load, 0..40, &[1, 2]);
        assert!(!policy.kept.is_empty());
        (0..40).for_each(|id| policy.ended(PartId(id)));
        assert!(policy.kept.is_empty());
        assert_eq!([0, 1].map(|number| policy.plan.waiting(number)), [0, 0]);
    }
}
