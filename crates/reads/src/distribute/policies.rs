//! The list of all policies, with the numbers that gateways set them to.
//!
//! A new policy is a file beside this one (with its `mod` line), a line in [`shipped`], and its name in [`wire::ReadPolicy`].

use super::contest::Contest;
use super::hash::Hash;
use super::hedged::Hedged;
use super::lard::{Lard, LardConfig};
use super::load::Load;
use super::max_flow_adaptive::MaxFlowAdaptive;
use super::planned::Planned;
use super::policy::{Course, Moved, Next, Part, PartId, Plan, Policy, Told};
use super::probing::Probing;
use super::quickest::Quickest;
use super::random::Random;
use super::shortest_queue::ShortestQueue;
use super::tied::Tied;
use super::two_choices::TwoChoices;
use super::usual::Usual;
use super::weighted_hash::Measured;
use base::Time;
use core::time::Duration;
use rules::layout::Geometry;
use wire::ReadPolicy;

/// How many bytes are served by one brick, as far as the policies by address are concerned.
pub const GRANULE_BYTES: u64 = 64 << 10;
/// A gateway's share of LARD's thresholds, which are those of a web server: a brick is busy with fewer.
pub const LARD_SCALE: f64 = 0.25;
/// Addresses whose home LARD remembers.
const LARD_ADDRESSES: usize = 1 << 17;
/// The percentage of reads that is answered before a second question, as the paper has it; and none is asked sooner.
const HEDGE_PERCENT: f64 = 95.0;
const HEDGE_FLOOR_NS: u64 = 200_000;
/// Parts that are planned have so many blocks at least, which is a stripe unit.
const PLANNED_BLOCKS: u64 = 16;
/// How long a claim is on its way, about.
const TIE_DELAY: Duration = Duration::from_micros(300);

const QUEUES: ShortestQueue = ShortestQueue { granule: GRANULE_BYTES };

/// Each policy as gateways have it; those that draw do so from `seed`. The names that volumes store are listed in
/// `wire::policy`.
pub fn shipped(policy: ReadPolicy, seed: u64) -> Box<dyn Policy> {
    match policy {
        ReadPolicy::Claim => Box::new(Contest::rescued(QUEUES)),
        ReadPolicy::Hash => Box::new(Hash { granule: GRANULE_BYTES }),
        ReadPolicy::WeightedHash => Box::new(Measured::new(GRANULE_BYTES)),
        ReadPolicy::Lard => Box::new(Lard::new(lard())),
        ReadPolicy::ShortestQueue => Box::new(QUEUES),
        ReadPolicy::Hedged => Box::new(Hedged::new(HEDGE_PERCENT, HEDGE_FLOOR_NS, QUEUES)),
        ReadPolicy::Tied => Box::new(Tied { queues: QUEUES, delay: TIE_DELAY }),
        ReadPolicy::Probing => Box::new(Probing::new(1)),
        ReadPolicy::Random => Box::new(Random::new(seed)),
        ReadPolicy::TwoChoices => Box::new(TwoChoices::new(seed)),
        ReadPolicy::Quickest => Box::new(Quickest::default()),
        ReadPolicy::Online => Box::new(Planned::online()),
        ReadPolicy::MaxFlowConservative => Box::new(Planned::max_flow()),
        ReadPolicy::MaxFlowAdaptive => Box::new(MaxFlowAdaptive::default()),
        ReadPolicy::Usual => Box::new(Usual::new(Contest::rescued(QUEUES), Quickest::default())),
    }
}

/// The longest part that a read of so many blocks is cut into under a policy, in blocks, where each of so many copies has all of them.
/// Policies that plan a request as a whole get twice as many parts as there are copies, to share them unevenly; each is an access of a
/// disk.
pub fn longest_part(policy: ReadPolicy, blocks: u64, copies: u8) -> u32 {
    let planned = (blocks / (2 * u64::from(copies.max(1)))).max(PLANNED_BLOCKS);
    match policy {
        ReadPolicy::Online | ReadPolicy::MaxFlowConservative | ReadPolicy::MaxFlowAdaptive => {
            planned.min(u64::from(Geometry::PIECE_BLOCKS)) as u32
        }
        _ => Geometry::PIECE_BLOCKS,
    }
}

fn lard() -> LardConfig {
    LardConfig {
        scale: LARD_SCALE,
        addresses: LARD_ADDRESSES,
        granule: GRANULE_BYTES,
        ..LardConfig::default()
    }
}

/// All policies of a gateway: a volume's may change at any time, so each learns from all answers.
#[derive(Debug)]
pub struct Policies {
    all: Vec<(ReadPolicy, Box<dyn Policy>)>,
    /// Reads that are to be moved.
    moved: Vec<Moved>,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies::new(0)
    }
}

impl Policies {
    /// All draws follow from `seed`. Two gateways have different ones: with the same draws they would run to the same bricks.
    pub fn new(seed: u64) -> Policies {
        let all = ReadPolicy::ALL.into_iter().map(|policy| (policy, shipped(policy, seed))).collect();
        Policies { all, moved: Vec::new() }
    }

    /// From now on `policy` is this one: for studies, which set policies otherwise than gateways ship them.
    pub fn set(&mut self, policy: ReadPolicy, to: Box<dyn Policy>) {
        self.all.retain(|(of, _)| *of != policy);
        self.all.push((policy, to));
    }

    fn of(&mut self, policy: ReadPolicy) -> &mut dyn Policy {
        let found = self.all.iter_mut().find(|(of, _)| *of == policy);
        &mut *found.expect("all are there").1
    }

    /// See [`Policy::one`].
    pub fn one(&mut self, policy: ReadPolicy, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.of(policy).one(now, part, load)
    }

    /// See [`Policy::first`].
    pub fn first(&mut self, policy: ReadPolicy, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let policy = self.of(policy);
        let plan = policy.first(now, part, load);
        let moved = policy.take_moved();
        self.moved.extend(moved);
        plan
    }

    /// See [`Policy::plan`].
    pub fn plan(
        &mut self,
        policy: ReadPolicy,
        now: Time,
        parts: &[Part<'_>],
        load: &mut Load,
    ) -> Vec<Option<Plan>> {
        let planner = self.of(policy);
        let (plans, moved) = (planner.plan(now, parts, load), planner.take_moved());
        assert_eq!(plans.len(), parts.len(), "{policy:?} plans each part of a request");
        self.moved.extend(moved);
        plans
    }

    /// The reads that are to be moved since the last time, under whichever policy.
    pub fn take_moved(&mut self) -> Vec<Moved> {
        core::mem::take(&mut self.moved)
    }

    /// See [`Policy::ended`].
    pub fn ended(&mut self, policy: ReadPolicy, part: PartId) {
        self.of(policy).ended(part);
    }

    /// See [`Policy::patience`].
    pub fn patience(&mut self, policy: ReadPolicy, usual: Duration) -> Duration {
        self.of(policy).patience(usual)
    }

    /// See [`Policy::next`].
    pub fn next(
        &mut self,
        policy: ReadPolicy,
        now: Time,
        part: &Part<'_>,
        (course, load): (&Course, &Load),
    ) -> Next {
        self.of(policy).next(now, part, course, load)
    }

    /// An answer came to a read under any of them.
    pub fn answered(&mut self, told: &Told) {
        self.all.iter_mut().for_each(|(_, policy)| policy.answered(told));
    }
}
