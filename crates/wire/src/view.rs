//! A view: the numbered membership of a group.

use crate::{DecodeError, Reader, Wire, wire_struct};
use base::{BrickId, GroupId, ViewNumber, VolumeId};

/// A set of slots of a group (at most 32).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Slots(pub u32);

impl Slots {
    /// The most slots of a group.
    pub const MAX: usize = 32;

    /// The first `count` slots.
    pub fn all(count: u8) -> Slots {
        Slots(((1u64 << count.min(32)) - 1) as u32)
    }
    /// The set of one slot.
    pub fn one(slot: u8) -> Slots {
        Slots::default().with(slot)
    }
    /// Whether `slot` is in it.
    pub fn has(self, slot: u8) -> bool {
        slot < 32 && self.0 >> slot & 1 == 1
    }
    /// With `slot`.
    #[must_use]
    pub fn with(self, slot: u8) -> Slots {
        assert!(usize::from(slot) < Slots::MAX, "slot {slot} of a group");
        Slots(self.0 | 1 << slot)
    }
    /// Without `slot`.
    #[must_use]
    pub fn without(self, slot: u8) -> Slots {
        Slots(self.0 & !1u32.checked_shl(u32::from(slot)).unwrap_or(0))
    }
    /// What is in both.
    #[must_use]
    pub fn and(self, other: Slots) -> Slots {
        Slots(self.0 & other.0)
    }
    /// How many.
    pub fn len(self) -> u8 {
        self.0.count_ones() as u8
    }
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Each slot, from the lowest.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..32).filter(move |&slot| self.has(slot))
    }
}

impl core::fmt::Debug for Slots {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Wire for Slots {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Slots(u32::decode(reader)?))
    }
}

/// A view of a group. Every request of a gateway names the number under which it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// The group.
    pub group: GroupId,
    /// The volume whose extents it holds.
    pub volume: VolumeId,
    /// The view's number, from 1 upward.
    pub number: ViewNumber,
    /// The brick at each slot.
    pub members: Vec<BrickId>,
    /// The *current set*: the slots whose bricks hold every acknowledged write. A write is acknowledged when all of
    /// these have it on stable storage.
    pub current: Slots,
}

impl GroupView {
    /// The slot that `brick` holds.
    pub fn slot_of(&self, brick: BrickId) -> Option<u8> {
        self.members.iter().position(|&member| member == brick).map(|slot| slot as u8)
    }

    /// Whether `brick` is in the current set.
    pub fn is_current(&self, brick: BrickId) -> bool {
        self.slot_of(brick).is_some_and(|slot| self.current.has(slot))
    }

    /// The bricks of the current set, by slot.
    pub fn current_bricks(&self) -> impl Iterator<Item = (u8, BrickId)> + '_ {
        self.current.iter().filter_map(|slot| Some((slot, *self.members.get(usize::from(slot))?)))
    }
}

wire_struct!(GroupView { group, volume, number, members, current });
