//! Who serves a read: from a [`Scheme`] to the policy that the run's gateway has, and the rule of who keeps what was written.
//!
//! A scheme that gateways ship under a name is left as it is. All others are made here, with the settings of the study, and take
//! the place of the shipped one at the gateway ([`roles::gateway::Gateway::set_policy`]); its clients ask once, as those of papers do.

use super::cluster::{Network, Scheme};
use super::grain::Grain;
use base::{BLOCK_U64, BrickId, Time};
use core::time::Duration;
use reads::distribute::contest::Contest;
use reads::distribute::hash::{self, Hash};
use reads::distribute::hedged::Hedged;
use reads::distribute::lard::{Lard, LardConfig};
use reads::distribute::load::Load;
use reads::distribute::pace::Kind;
use reads::distribute::policy::{Course, Moved, Next, Part, PartId, Plan, Policy, Told};
use reads::distribute::probing::Probing;
use reads::distribute::shortest_queue::ShortestQueue;
use reads::distribute::tied::Tied;
use reads::distribute::weighted_hash::{Weighted, WeightedHash};
use std::cell::RefCell;
use std::rc::Rc;
use wire::{ReadPolicy, Span};

/// Longer than any read of a study takes: who asks once waits for the answer. Of nothing else but claims is anything lost.
const ASKED_ONCE: Duration = Duration::from_secs(60);

/// A policy of which the gateway has one handle, and who asks after its homes and moves another.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Rc<RefCell<Box<dyn Policy>>>);

impl Policy for Shared {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.0.borrow_mut().one(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        self.0.borrow_mut().first(now, part, load)
    }

    fn plan(&mut self, now: Time, parts: &[Part<'_>], load: &mut Load) -> Vec<Option<Plan>> {
        self.0.borrow_mut().plan(now, parts, load)
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        self.0.borrow_mut().next(now, part, course, load)
    }

    fn patience(&self, usual: Duration) -> Duration {
        usual.max(ASKED_ONCE)
    }

    fn answered(&mut self, told: &Told) {
        self.0.borrow_mut().answered(told);
    }

    fn take_moved(&mut self) -> Vec<Moved> {
        self.0.borrow_mut().take_moved()
    }

    fn ended(&mut self, part: PartId) {
        self.0.borrow_mut().ended(part);
    }

    fn home(&self, part: &Part<'_>) -> Option<BrickId> {
        self.0.borrow().home(part)
    }

    fn moves(&self) -> u64 {
        self.0.borrow().moves()
    }
}

/// The name under which volumes have a scheme; none for the ideal that no machines can be.
pub(super) fn name(scheme: &Scheme) -> Option<ReadPolicy> {
    Some(match scheme {
        Scheme::Central => return None,
        Scheme::Claim(_) => ReadPolicy::Claim,
        Scheme::Hash => ReadPolicy::Hash,
        Scheme::WeightedHash(_) => ReadPolicy::WeightedHash,
        Scheme::Lard(_) => ReadPolicy::Lard,
        Scheme::ShortestQueue => ReadPolicy::ShortestQueue,
        Scheme::Hedged(_) => ReadPolicy::Hedged,
        Scheme::Tied => ReadPolicy::Tied,
        Scheme::Probing => ReadPolicy::Probing,
        Scheme::Policy(policy) => *policy,
    })
}

/// The scheme with its settings; none where it is as it is shipped. `order` says which brick of the cluster has the first id,
/// the second, and so on.
pub(super) fn set(scheme: &Scheme, network: &Network, grain: Grain, order: &[usize]) -> Option<Shared> {
    // Addresses count blocks of the protocol.
    let granule = grain.in_protocol(BLOCK_U64);
    let queues = ShortestQueue::default();
    let policy: Box<dyn Policy> = match scheme {
        Scheme::Central | Scheme::Policy(_) => return None,
        Scheme::Claim(_) => Box::new(Contest::unattended()),
        Scheme::Hash => Box::new(Hash { granule }),
        Scheme::WeightedHash(weights) => {
            let weight =
                |(number, brick): (usize, &usize)| Some((BrickId(number as u32 + 1), *weights.get(*brick)?));
            let weights = WeightedHash::new(order.iter().enumerate().filter_map(weight));
            Box::new(Weighted { weights, granule })
        }
        Scheme::Lard(config) => {
            Box::new(Lard::new(LardConfig { granule: grain.in_protocol(config.granule), ..*config }))
        }
        Scheme::ShortestQueue => Box::new(queues),
        Scheme::Hedged(percent) => Box::new(Hedged::new(*percent, 0, queues)),
        Scheme::Tied => {
            // Twice a message's way, so that an idle first holder has started and said so (the paper's own remedy).
            let way_ns = network.one_way_ns.max(network.client_one_way_ns);
            Box::new(Tied { queues, delay: Duration::from_nanos(2 * way_ns) })
        }
        Scheme::Probing => Box::new(Probing::new(1)),
    };
    Some(Shared(Rc::new(RefCell::new(policy))))
}

/// Which blocks that were written stay in a brick's cache: each at one of its holders only (D-SPTF, section 3), at the one where
/// the policy serves it, or whom a hash names. Bricks that ship keep what they wrote; a study may assume this.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(super) me: BrickId,
    pub(super) holders: Vec<(u8, BrickId)>,
    pub(super) policy: Option<Shared>,
    pub(super) granule: u64,
}

impl Keeper {
    pub(crate) fn keeps(&self, span: Span) -> bool {
        // As reads of it are known to policies.
        let address = (span.volume.0 << 24 ^ span.lba).wrapping_mul(BLOCK_U64);
        let part = Part { id: PartId::default(), address, kind: Kind::Read, holders: &self.holders };
        let home = self.policy.as_ref().and_then(|policy| policy.home(&part));
        let bricks = self.holders.iter().map(|(_, brick)| *brick);
        let keeper = home.or_else(|| hash::keeper(address / self.granule, &bricks.collect::<Vec<_>>()));
        keeper == Some(self.me)
    }
}
