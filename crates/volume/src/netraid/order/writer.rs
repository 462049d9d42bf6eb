//! The writer's side: each attempt has a later stamp, and a write that was refused or finds members busy comes back in a
//! way that keeps writers from holding each other up for ever.

use crate::netraid::context::stamps::Stamps;
use base::{Stamp, Time};
use core::time::Duration;
use wire::Scope;

/// How often a write is offered to a member with full queues before it lets go of what others have prepared.
const BUSY_MAX: u32 = 3;
/// When a write that goes from member to member asks one with full queues again: as soon as one that asks all at once does
/// the first time.
const BUSY_AGAIN: Duration = Duration::from_millis(20);

/// After so long at one busy member a write that goes from member to member lets go as well; up to twice as long, so that not all do at once.
const IN_TURN_PATIENCE: Duration = Duration::from_secs(5);

/// In which order members are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// All at once. A member with full queues is asked again, and when that has not helped for a while the others are let
    /// go of: writes may hold at one member what another waits for, and wait for what that one holds.
    Together,
    /// One after the other, in the order of the bricks' numbers. Writes that all go this way never wait for each other in
    /// a circle: whoever is busy is asked again, alone and under the same stamp. Only after a long while the others are let go of, since a write of a
    /// unit does not go this way: it holds room at its data brick while it waits, at the parity's, for an earlier write of the same row.
    InTurn,
    /// The first of them alone, and all others once it is prepared: the order `dlock`.
    FirstAlone,
}

/// What a write does that met a member with full queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Busy {
    /// Asks again after so long, under the same stamp.
    Again(Duration),
    /// Lets go of what other members have prepared, and comes back.
    GivesWay,
}

/// A write's place in the order, over all its attempts.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Of the present attempt.
    stamp: Stamp,
    refusals: u32,
    /// Whether it let go of what members had prepared, for others that were busy.
    has_given_way: bool,
    /// The member that is busy, by its slot, and since when it has been, as far as this write goes from one to the next.
    busy: Option<(u8, Time)>,
}

impl Writer {
    /// Whose only attempt has this stamp.
    pub(crate) fn under(stamp: Stamp) -> Writer {
        Writer { stamp, ..Writer::default() }
    }

    /// Begins an attempt, under a stamp that is later than all that this gateway has seen; if it may draw one.
    #[must_use]
    pub(crate) fn begin(&mut self, stamps: &mut Stamps, now: Time) -> bool {
        let drawn = stamps.begin_write(now, self.stamp);
        self.stamp = drawn.unwrap_or_default();
        self.busy = None;
        drawn.is_some()
    }

    /// The stamp of the present attempt.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// In which order the members of this attempt are asked. A unit's data brick comes before its parity in any case.
    pub(crate) fn way(&self, scope: Scope, first_alone: bool) -> Way {
        match scope {
            Scope::Row if self.has_given_way => Way::InTurn,
            _ if first_alone => Way::FirstAlone,
            Scope::Row | Scope::Unit { .. } => Way::Together,
        }
    }

    /// How often it was refused.
    pub(crate) fn refusals(&self) -> u32 {
        self.refusals
    }

    /// A member has full queues, and was asked `attempt` times before.
    pub(crate) fn on_busy(&mut self, now: Time, way: Way, slot: u8, attempt: u32) -> Busy {
        self.busy.take_if(|(busy, _)| *busy != slot);
        match way {
            Way::InTurn => {
                let (_, since) = *self.busy.get_or_insert((slot, now));
                if now.since(since) < IN_TURN_PATIENCE + IN_TURN_PATIENCE / 16 * self.spread() {
                    return Busy::Again(BUSY_AGAIN);
                }
                Busy::GivesWay
            }
            Way::Together | Way::FirstAlone if attempt > BUSY_MAX => {
                self.has_given_way = true;
                Busy::GivesWay
            }
            Way::Together | Way::FirstAlone => Busy::Again(Duration::from_millis(20 << attempt.min(5))),
        }
    }

    /// The attempt was refused; how long to wait before the next. Writers that refuse each other come back at different
    /// times: the stamp's low bits tell them apart.
    pub(crate) fn back_off(&mut self) -> Duration {
        self.refusals += 1;
        Duration::from_micros((1000 + 100 * u64::from(self.spread())) << self.refusals.min(7))
    }

    fn spread(&self) -> u32 {
        spread(self.stamp)
    }
}

/// 0 to 15, by a stamp: tells writers apart that refused each other.
pub(crate) fn spread(stamp: Stamp) -> u32 {
    (stamp.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u32
}
