//! Who is asked for a read: the very policies that gateways have, and where they are consulted.

use super::request::{Bound, NOBODY, Request};
use crate::timed::cluster::{Network, Scheme};
use base::{BrickId, Time};
use core::time::Duration;
use model::drive::SECTOR_BYTES;
use proto::distribute;
use proto::distribute::contest::Contest;
use proto::distribute::hash::Hash;
use proto::distribute::hedged::Hedged;
use proto::distribute::lard::Lard;
use proto::distribute::load::Load;
use proto::distribute::pace::{Kind, QuestionId};
use proto::distribute::policy::{Course, Members, Next, Part, Plan, Policy, Told};
use proto::distribute::probing::Probing;
use proto::distribute::shortest_queue::ShortestQueue;
use proto::distribute::tied::Tied;
use proto::distribute::weighted_hash::{Weighted, WeightedHash};

const BLOCK_SECTORS: u32 = (base::BLOCK_U64 / SECTOR_BYTES) as u32;

/// Where a read's policy is consulted: it says how many messages a read takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consults {
    /// At the client, which then asks whom it wants.
    Client,
    /// At the brick that the client asks first, any one.
    AnyBrick,
    /// At one brick through which all reads go.
    FrontEnd,
}

/// The policy of a run, and what the asker knows of bricks.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) consults: Consults,
    /// None for the ideal that knows all queues.
    policy: Option<Box<dyn Policy>>,
    load: Load,
    /// Whether answers' times are learned: what does not look at them is spared the work.
    learns_pace: bool,
}

impl Asker {
    pub(super) fn new(scheme: &Scheme, network: &Network) -> Asker {
        let (consults, policy) = policy(scheme, network);
        let learns_pace = matches!(scheme, Scheme::Hedged(_) | Scheme::Policy(_));
        Asker { consults, policy, load: Load::default(), learns_pace }
    }

    /// Whether this is the ideal that knows all queues.
    pub(super) fn is_central(&self) -> bool {
        self.policy.is_none()
    }

    pub(super) fn plan(&mut self, now: Time, known: &Request, holders: &[(u8, BrickId)]) -> Option<Plan> {
        self.policy.as_mut()?.plan(now, &part(known, holders), &mut self.load)
    }

    pub(super) fn next(&mut self, now: Time, known: &Request, holders: &[(u8, BrickId)]) -> Next {
        let Some(policy) = &mut self.policy else { return Next::Nothing };
        policy.next(now, &part(known, holders), &course(known), &self.load)
    }

    /// Where a place is served and cached, where the policy has a home for it.
    pub(super) fn home(&self, known: &Request, holders: &[(u8, BrickId)]) -> Option<BrickId> {
        self.policy.as_ref()?.home(&part(known, holders))
    }

    pub(super) fn moves(&self) -> u64 {
        self.policy.as_ref().map_or(0, |policy| policy.moves())
    }

    /// `brick` is asked.
    pub(super) fn begin(&mut self, now: Time, brick: BrickId, known: &Request, question: QuestionId) {
        self.load.begin(brick);
        if self.learns_pace {
            self.load.pace_mut().begin(now, brick, kind(known), question);
        }
    }

    /// A brick that was asked answered first.
    pub(super) fn answered(&mut self, now: Time, told: &Told, known: &Request, question: QuestionId) {
        self.load.end(told.brick);
        if self.learns_pace {
            let since = Time(now.0 - told.response_ns);
            self.load.pace_mut().heard(told.brick);
            self.load.pace_mut().answered(now, told.brick, kind(known), question, since);
        }
        if let Some(policy) = &mut self.policy {
            policy.answered(told);
        }
    }

    /// A brick that was asked as well was not the first.
    pub(super) fn given_up(
        &mut self,
        now: Time,
        brick: BrickId,
        known: &Request,
        (question, since): (QuestionId, Time),
    ) {
        self.load.end(brick);
        if self.learns_pace {
            self.load.pace_mut().given_up(now, brick, kind(known), question, since);
        }
    }
}

fn kind(known: &Request) -> Kind {
    Kind::of_read(known.count.div_ceil(BLOCK_SECTORS))
}

fn part<'a>(known: &Request, holders: &'a [(u8, BrickId)]) -> Part<'a> {
    let address = (u64::from(known.group) << 52) | (known.sector * SECTOR_BYTES);
    Part { address, kind: kind(known), holders }
}

fn course(known: &Request) -> Course {
    let slots = known.asked.into_iter().filter(|slot| *slot != NOBODY);
    let asked = slots.fold(Members::default(), Members::with);
    match known.bound {
        Bound::Tied => Course { asked, direct: Members::default(), second: Some(known.asked[1]) },
        Bound::Undecided | Bound::Alone | Bound::Contest => Course { asked, direct: asked, second: None },
    }
}

fn policy(scheme: &Scheme, network: &Network) -> (Consults, Option<Box<dyn Policy>>) {
    let queues = ShortestQueue::default();
    let granule = base::BLOCK_U64;
    match scheme {
        Scheme::Claim(options) if options.told_by_client => {
            (Consults::Client, Some(Box::new(Contest::unattended())))
        }
        Scheme::Claim(_) => (Consults::AnyBrick, Some(Box::new(Contest::unattended()))),
        Scheme::Central => (Consults::AnyBrick, None),
        Scheme::Hash => (Consults::AnyBrick, Some(Box::new(Hash { granule }))),
        Scheme::WeightedHash(weights) => {
            let weights = weights.iter().enumerate().map(|(brick, &weight)| (BrickId(brick as u32), weight));
            let weights = WeightedHash::new(weights);
            (Consults::AnyBrick, Some(Box::new(Weighted { weights, granule })))
        }
        Scheme::Lard(config) => (Consults::FrontEnd, Some(Box::new(Lard::new(*config)))),
        Scheme::ShortestQueue => (Consults::Client, Some(Box::new(queues))),
        Scheme::Hedged(percent) => (Consults::Client, Some(Box::new(Hedged::new(*percent, 0, queues)))),
        Scheme::Tied => {
            // Twice a message's way, so that an idle first holder has started and said so (the paper's own remedy).
            let way_ns = network.one_way_ns.max(network.client_one_way_ns);
            let delay = Duration::from_nanos(2 * way_ns);
            (Consults::Client, Some(Box::new(Tied { queues, delay })))
        }
        Scheme::Probing => (Consults::Client, Some(Box::new(Probing::new(1)))),
        Scheme::Policy(policy) => (Consults::Client, Some(distribute::shipped(*policy, 1))),
    }
}
