//! Properties of the queue and its policies, with a drive that exists only here.

use super::{HeadQueue, Policy, Ticket};
use base::{Mechanics, Position, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

const REVOLUTION_NS: u64 = 6_000_000;

/// An arm whose seeks take a square root of the distance, over a platter that turns.
#[derive(Clone, Copy, Debug)]
struct Arm {
    cylinder: u32,
    surface: u32,
    turns: bool,
}

impl Arm {
    fn seek_ns(distance: u32) -> u64 {
        if distance == 0 { 0 } else { 800_000 + u64::from(distance.isqrt()) * 100_000 }
    }
}

impl Mechanics for Arm {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        let angle_ns = sector * 7919 % 97 * (REVOLUTION_NS / 97);
        Position { cylinder: (sector / 100) as u32, surface: (sector / 10 % 10) as u32, angle_ns, is_write }
    }

    fn cylinder(&self) -> u32 {
        self.cylinder
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        let seek_ns = Arm::seek_ns(self.cylinder.abs_diff(to.cylinder));
        let switch_ns = if self.surface == to.surface { 0 } else { 200_000 };
        let settled_ns = seek_ns.max(switch_ns) + if to.is_write { 500_000 } else { 0 };
        let angle_ns = (free.0 + settled_ns) % REVOLUTION_NS;
        let wait_ns = (to.angle_ns + REVOLUTION_NS - angle_ns) % REVOLUTION_NS;
        settled_ns + if self.turns { wait_ns } else { 0 }
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.positioning_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        Arm::seek_ns(cylinders)
    }
}

/// A queue, and what it should hold: the position of each push that has not left, in the order of pushing.
struct Checked {
    queue: HeadQueue<u64>,
    waiting: BTreeMap<u64, (Ticket, Position)>,
    left: Vec<Ticket>,
    pushed: u64,
}

impl Checked {
    fn new(policy: Policy) -> Checked {
        Checked { queue: HeadQueue::new(policy), waiting: BTreeMap::new(), left: Vec::new(), pushed: 0 }
    }

    fn push(&mut self, position: Position) {
        let ticket = self.queue.push(position, self.pushed);
        self.waiting.insert(self.pushed, (ticket, position));
        self.pushed += 1;
    }

    fn remove(&mut self, draw: usize) {
        let Some((&number, &(ticket, _))) = self.waiting.iter().nth(draw % self.waiting.len().max(1)) else {
            return;
        };
        assert_eq!(self.queue.get(ticket), Some(&number));
        assert_eq!(self.queue.remove(ticket), Some(number));
        self.waiting.remove(&number);
        self.left.push(ticket);
    }

    /// The position that was picked.
    fn pick(&mut self, free: Time, arm: &Arm) -> Option<Position> {
        let expected = self.expected(free, arm);
        let chosen = self.queue.choose(free, arm);
        let picked = self.queue.pick(free, arm);
        assert_eq!(picked.map(|picked| picked.item), expected);
        assert_eq!(picked.map(|picked| (picked.ticket, picked.positioning_ns)), chosen);
        let picked = picked?;
        let (ticket, position) = self.waiting.remove(&picked.item).expect("served once");
        assert_eq!((ticket, arm.positioning_ns(free, &position)), (picked.ticket, picked.positioning_ns));
        self.left.push(ticket);
        Some(position)
    }

    /// The policy's choice by brute force.
    fn expected(&self, free: Time, arm: &Arm) -> Option<u64> {
        let key = |position: &Position| match self.queue.policy() {
            Policy::Fcfs => 0,
            Policy::Sstf => u64::from(position.cylinder.abs_diff(arm.cylinder)),
            Policy::Clook => {
                let is_behind = u64::from(position.cylinder < arm.cylinder);
                is_behind << 32 | u64::from(position.cylinder)
            }
            Policy::Sptf => arm.positioning_ns(free, position),
            Policy::AgedSptf { later_max } => {
                let (&oldest, (_, first)) = self.waiting.first_key_value().expect("somebody waits");
                let is_overdue = self.pushed - 1 - oldest >= u64::from(later_max);
                if is_overdue && first == position { 0 } else { 1 + arm.positioning_ns(free, position) }
            }
        };
        self.waiting
            .iter()
            .min_by_key(|(number, (_, position))| (key(position), **number))
            .map(|(number, _)| *number)
    }

    fn check(&mut self) {
        self.left[self.left.len().saturating_sub(50)..].iter().for_each(|&ticket| {
            assert_eq!(self.queue.get(ticket), None);
            assert_eq!(self.queue.remove(ticket), None, "a ticket is good for one access");
        });
        assert_eq!(self.queue.len(), self.waiting.len());
        assert_eq!(self.queue.is_empty(), self.waiting.is_empty());
        let held: BTreeMap<u64, Ticket> =
            self.queue.iter().map(|(ticket, &number)| (number, ticket)).collect();
        let expected: BTreeMap<u64, Ticket> =
            self.waiting.iter().map(|(&number, &(ticket, _))| (number, ticket)).collect();
        assert_eq!(held, expected);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<(u64, bool)>),
    Remove(usize),
    Pick(u64),
}

fn steps(cylinders: u64) -> impl Strategy<Value = Vec<Step>> {
    let access = (0..cylinders * 100, any::<bool>());
    let step = prop_oneof![
        3 => prop::collection::vec(access, 0..40).prop_map(Step::Push),
        2 => any::<usize>().prop_map(Step::Remove),
        20 => (0..20_000_000u64).prop_map(Step::Pick),
    ];
    prop::collection::vec(step, 1..120)
}

fn policies() -> impl Strategy<Value = Policy> {
    let aged = (0..200u32).prop_map(|later_max| Policy::AgedSptf { later_max });
    prop_oneof![Just(Policy::Fcfs), Just(Policy::Sstf), Just(Policy::Clook), Just(Policy::Sptf), aged]
}

fn run(policy: Policy, mut arm: Arm, steps: Vec<Step>) {
    let mut checked = Checked::new(policy);
    let mut now = Time::ZERO;
    for step in steps {
        match step {
            Step::Push(accesses) => accesses.iter().for_each(|&(sector, is_write)| {
                checked.push(arm.position_of(sector, is_write));
            }),
            Step::Remove(draw) => checked.remove(draw),
            Step::Pick(later_ns) => {
                now.0 += later_ns;
                if let Some(position) = checked.pick(now, &arm) {
                    (arm.cylinder, arm.surface) = (position.cylinder, position.surface);
                }
            }
        }
        checked.check();
    }
    while let Some(position) = checked.pick(now, &arm) {
        (arm.cylinder, arm.surface) = (position.cylinder, position.surface);
    }
    checked.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn each_policy_picks_what_brute_force_picks(
        policy in policies(), cylinder in 0..10_000u32, turns in any::<bool>(), steps in steps(10_000)
    ) {
        run(policy, Arm { cylinder, surface: 0, turns }, steps);
    }

    #[test]
    fn ties_go_to_whoever_was_pushed_first(policy in policies(), steps in steps(3)) {
        run(policy, Arm { cylinder: 1, surface: 0, turns: false }, steps);
    }

    #[test]
    fn clook_never_goes_back_within_a_sweep(sectors in prop::collection::vec(0..1_000_000u64, 1..300), arm in 0..10_000u32) {
        let mut arm = Arm { cylinder: arm, surface: 0, turns: true };
        let mut queue = HeadQueue::new(Policy::Clook);
        sectors.iter().for_each(|&sector| { queue.push(arm.position_of(sector, false), (sector / 100) as u32); });
        let mut sweeps = 1;
        while let Some(picked) = queue.pick(Time::ZERO, &arm) {
            sweeps += u32::from(picked.item < arm.cylinder);
            arm.cylinder = picked.item;
        }
        prop_assert!(sweeps <= 2);
    }
}

/// Counts the evaluations of an arm.
struct Counted(Arm, core::cell::Cell<u64>);

impl Mechanics for Counted {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        self.0.position_of(sector, is_write)
    }
    fn cylinder(&self) -> u32 {
        self.0.cylinder()
    }
    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        self.1.set(self.1.get() + 1);
        self.0.positioning_ns(free, to)
    }
    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.0.rotation_ns(free, to)
    }
    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.0.seek_floor_ns(cylinders)
    }
}

fn evaluations(queued: u64, turns: bool, sectors: u64) -> u64 {
    let mut rng = base::Rng::with_seed(1);
    let mut arm = Counted(Arm { cylinder: 0, surface: 0, turns }, core::cell::Cell::new(0));
    let mut queue = HeadQueue::new(Policy::Sptf);
    let mut push = |queue: &mut HeadQueue<u32>, arm: &Counted| {
        let position = arm.position_of(rng.u64(..sectors), false);
        queue.push(position, position.cylinder);
    };
    (0..queued).for_each(|_| push(&mut queue, &arm));
    for turn in 0..1_000 {
        arm.0.cylinder = queue.pick(Time(turn * 7_654_321), &arm).expect("never empty").item;
        push(&mut queue, &arm);
    }
    arm.1.get() / 1_000
}

#[test]
fn a_long_queue_is_not_evaluated_whole() {
    assert!(evaluations(1_000, true, 1_000_000) < 100);
    assert!(evaluations(10_000, true, 1_000_000) < 100);
    assert!(evaluations(10_000, false, 10) <= 1, "where the floor is reached the search ends");
}
