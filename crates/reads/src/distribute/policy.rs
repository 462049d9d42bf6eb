//! What a read policy decides, and what it sees.
//!
//! A policy is one value that decides the first questions of a request's reads ([`Policy::plan`]) and every later one
//! ([`Policy::next`]): hedges, ties, rescues. A gateway and the simulator drive the same value. Who drives it sees to it
//! that the read is answered in the end; a policy only has to be quick about it.
//!
//! A new policy is a file beside this one, a line in [`super::policies`], and its name in [`wire::ReadPolicy`].

use super::load::Load;
use super::pace::Kind;
use base::{BLOCK_U64, BrickId, Time};
use core::time::Duration;
use wire::Span;

/// Members of a group, by slot: up to 64, as groups of the simulator may have; those of volumes have 32 (`wire::Slots`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Members(u64);

impl Members {
    /// None but the member at `slot`.
    pub fn one(slot: u8) -> Members {
        Members::default().with(slot)
    }

    /// With the member at `slot`.
    #[must_use]
    pub fn with(self, slot: u8) -> Members {
        assert!(slot < 64, "slot {slot} of a group");
        Members(self.0 | 1 << slot)
    }

    /// Without the member at `slot`.
    #[must_use]
    pub fn without(self, slot: u8) -> Members {
        Members(self.0 & !Members::one(slot).0)
    }

    /// Whether the member at `slot` is one.
    pub fn has(self, slot: u8) -> bool {
        slot < 64 && self.0 >> slot & 1 == 1
    }

    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their slots.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |slot| self.has(*slot))
    }
}

/// Names a read among those of one asker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PartId(pub u64);

/// Where blocks of a branch lie, as policies know it: the same for whoever asks.
pub fn address(span: &Span) -> u64 {
    (span.volume.0 << 24 ^ span.lba).wrapping_mul(BLOCK_U64)
}

/// A read of what lies at one place, as policies see it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub id: PartId,
    /// See [`address`].
    pub address: u64,
    /// As what its answers' times count.
    pub kind: Kind,
    /// `(slot, brick)` of the members that could serve it.
    pub holders: &'a [(u8, BrickId)],
}

/// Whom to ask first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// This holder, which must answer.
    One(u8),
    /// All holders but those left out: whoever can first claims the read. Those `beside` are left out and asked all the
    /// same, to answer by themselves.
    Contest {
        /// They have no part in the contest.
        left_out: Members,
        /// Of these who is asked nevertheless.
        beside: Members,
    },
    /// Two holders, of whom the first to begin calls the other off. The second is asked when the policy says so
    /// ([`Next::Second`]).
    Tied { first: u8, second: u8 },
}

impl First {
    /// Who of `holders` is to answer by itself.
    fn alone(self, holders: &[(u8, BrickId)]) -> Members {
        match self {
            First::One(slot) => Members::one(slot),
            First::Tied { .. } => Members::default(),
            First::Contest { left_out, beside } => {
                let mut contend = holders.iter().map(|(slot, _)| *slot).filter(|slot| !left_out.has(*slot));
                match (contend.next(), contend.next()) {
                    (Some(only), None) => beside.with(only),
                    _ => beside,
                }
            }
        }
    }
}

/// How a read begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub first: First,
    /// After how long [`Policy::next`] is asked, unless the read is answered; never where none.
    pub wait: Option<Duration>,
}

/// Who was asked so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Course {
    /// All that may still answer.
    pub asked: Members,
    /// Of these who was asked to answer by itself, not as one of several.
    pub direct: Members,
    /// The other one of two that are tied, until it is asked.
    pub second: Option<u8>,
}

/// What follows when a read takes long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nobody else is asked.
    Nothing,
    /// This holder is asked to answer by itself, and the policy is asked again after `wait`.
    Ask { slot: u8, wait: Duration },
    /// The second of two tied holders.
    Second(u8),
}

/// A read that was asked of one holder is to be asked of another instead. The first is asked to withdraw it; only when it says that it
/// has, the other is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    pub part: PartId,
    pub from: u8,
    pub to: u8,
}

/// An answer with content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    pub brick: BrickId,
    /// Since it was asked.
    pub response_ns: u64,
    /// Of this the access itself, as far as the answer tells.
    pub service_ns: u64,
    /// How many reads were before it at the brick, as far as the answer tells.
    pub queue: u32,
    /// What the device took for a short read: none where memory answered, or where the answer does not tell.
    pub device_ns: Option<u64>,
}

/// Plans parts one after the other, each as if those before it had been asked.
fn one_by_one(
    parts: &[Part<'_>],
    load: &mut Load,
    mut first: impl FnMut(&Part<'_>, &mut Load) -> Option<Plan>,
) -> Vec<Option<Plan>> {
    let mut asked = Vec::new();
    let mut plans = Vec::with_capacity(parts.len());
    for part in parts {
        let plan = first(part, load);
        let alone = plan.map_or(Members::default(), |plan| plan.first.alone(part.holders));
        for (_, brick) in part.holders.iter().filter(|(slot, _)| alone.has(*slot)) {
            load.begin(*brick);
            asked.push(*brick);
        }
        plans.push(plan);
    }
    asked.into_iter().for_each(|brick| load.end(brick));
    plans
}

pub trait Policy: core::fmt::Debug {
    /// The one holder to ask where only one is to be; `None` where there is none.
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8>;

    /// How a read begins that is planned by itself; `None` where nobody is to be asked.
    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let first = First::One(self.one(now, part, load)?);
        Some(Plan { first, wait: None })
    }

    /// How the parts of one request begin, none of which has been asked of anybody: a plan each, in their order. A policy
    /// that does not weigh them against each other takes one after the other, as if each was asked before the next.
    fn plan(&mut self, now: Time, parts: &[Part<'_>], load: &mut Load) -> Vec<Option<Plan>> {
        one_by_one(parts, load, |part, load| self.first(now, part, load))
    }

    /// A read takes long.
    fn next(&mut self, _now: Time, _part: &Part<'_>, _course: &Course, _load: &Load) -> Next {
        Next::Nothing
    }

    /// How long all that were asked may stay silent before all is asked anew, where gateways would wait for `usual`. A policy
    /// of a study may have clients that ask once.
    fn patience(&self, usual: Duration) -> Duration {
        usual
    }

    fn answered(&mut self, _told: &Told) {}

    /// The reads that are to be moved since the last time, because of others that were planned.
    fn take_moved(&mut self) -> Vec<Moved> {
        Vec::new()
    }

    /// A read is over, however it ended.
    fn ended(&mut self, _part: PartId) {}

    /// The holder where a place is served and should be cached, where the policy has one for each.
    fn home(&self, _part: &Part<'_>) -> Option<BrickId> {
        None
    }

    /// How often a place has moved to another home.
    fn moves(&self) -> u64 {
        0
    }
}
