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
    fn encode(&self, out: &mut crate::Writer<'_>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Slots(u32::decode(reader)?))
    }
}

/// Where the blocks of a family of volumes are: a volume, its snapshots and their clones share groups.
///
/// A *branch* is an address space of blocks at the members, named by a [`VolumeId`]. A volume writes to its head; a
/// snapshot freezes the head, which takes the snapshot's name, and puts a new branch on top. A block that a branch does
/// not have is its parent's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lineage {
    /// Grows with every change of it.
    pub number: u64,
    /// The branch to which each writable volume writes, by volume.
    pub heads: Vec<(VolumeId, VolumeId)>,
    /// The parent of each branch that has one, by child.
    pub parents: Vec<(VolumeId, VolumeId)>,
    /// Branches whose snapshot is deleted: what they have and their only child lacks moves to the child.
    pub merging: Vec<VolumeId>,
}

impl Lineage {
    /// The branch that holds the blocks of `volume`: its head, or for a snapshot itself.
    pub fn branch_of(&self, volume: VolumeId) -> VolumeId {
        self.heads.iter().find(|(of, _)| *of == volume).map_or(volume, |(_, head)| *head)
    }

    /// Whether writes go to `branch`. Where nothing is said of any volume, they go to all.
    pub fn is_head(&self, branch: VolumeId) -> bool {
        self.heads.is_empty() || self.heads.iter().any(|(_, head)| *head == branch)
    }

    /// All branches of which it says anything; some of them several times.
    pub fn branches(&self) -> impl Iterator<Item = VolumeId> + '_ {
        let heads = self.heads.iter().map(|(_, head)| *head);
        heads.chain(self.parents.iter().flat_map(|(child, parent)| [*child, *parent]))
    }

    pub fn parent_of(&self, branch: VolumeId) -> Option<VolumeId> {
        self.parents.iter().find(|(child, _)| *child == branch).map(|(_, parent)| *parent)
    }

    pub fn children_of(&self, branch: VolumeId) -> impl Iterator<Item = VolumeId> + '_ {
        self.parents.iter().filter(move |(_, parent)| *parent == branch).map(|(child, _)| *child)
    }

    /// Whether it says anything of `branch`.
    pub fn knows(&self, branch: VolumeId) -> bool {
        self.heads.iter().any(|(_, head)| *head == branch)
            || self.parents.iter().any(|(child, parent)| *child == branch || *parent == branch)
    }
}

/// A view of a group. Every request of a gateway names the number under which it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    pub group: GroupId,
    /// The family of volumes whose extents it holds, named by its first volume.
    pub volume: VolumeId,
    /// The view's number, from 1 upward.
    pub number: ViewNumber,
    /// The brick at each slot: a member, or one that stands in for it.
    pub members: Vec<BrickId>,
    /// The *current set*: the slots whose bricks hold every acknowledged write. A write is acknowledged when all of
    /// these, and those that join, have it on stable storage.
    pub current: Slots,
    /// Slots whose bricks take every write like current members, and serve no reads: those that are catching up, and stand-ins.
    pub joining: Slots,
    /// Where the family's volumes have their blocks.
    pub lineage: Box<Lineage>,
    /// Members that were *sealed*, by the slots that *stand-ins* have: these join and do not catch up. A member that returns has what was written before
    /// it was sealed, and takes its slot again.
    pub sealed: Vec<(u8, BrickId)>,
}

impl GroupView {
    /// The slots whose bricks take every write: a write is acknowledged when all of these have it.
    pub fn writers(&self) -> Slots {
        Slots(self.current.0 | self.joining.0)
    }

    /// Whether `brick` takes writes.
    pub fn is_writer(&self, brick: BrickId) -> bool {
        self.slot_of(brick).is_some_and(|slot| self.writers().has(slot))
    }

    /// Whether `brick` takes writes and is not current.
    pub fn is_joining(&self, brick: BrickId) -> bool {
        self.slot_of(brick).is_some_and(|slot| self.joining.has(slot))
    }

    /// Whether `brick` joins to become current.
    pub fn is_catching_up(&self, brick: BrickId) -> bool {
        self.slot_of(brick).is_some_and(|slot| self.catching_up().has(slot))
    }

    /// The slots whose bricks join to become current.
    pub fn catching_up(&self) -> Slots {
        Slots(self.joining.0 & !self.stand_ins().0)
    }

    /// The bricks at these.
    pub fn catching_up_bricks(&self) -> impl Iterator<Item = BrickId> + '_ {
        let slots = self.catching_up();
        self.joining_bricks().filter(move |(slot, _)| slots.has(*slot)).map(|(_, brick)| brick)
    }

    /// Whether `brick` has the slot of a member that was sealed.
    pub fn stands_in(&self, brick: BrickId) -> bool {
        self.slot_of(brick).is_some_and(|slot| self.sealed_at(slot).is_some())
    }

    /// The member that was sealed and had this slot.
    pub fn sealed_at(&self, slot: u8) -> Option<BrickId> {
        self.sealed.iter().find(|(of, _)| *of == slot).map(|(_, brick)| *brick)
    }

    /// The brick that stands in for the member with this slot.
    pub fn stands_in_at(&self, slot: u8) -> Option<BrickId> {
        self.sealed_at(slot).and_then(|_| self.members.get(usize::from(slot)).copied())
    }

    /// The slots that stand-ins have.
    pub fn stand_ins(&self) -> Slots {
        let slots = self.sealed.iter().map(|(slot, _)| *slot).filter(|slot| self.joining.has(*slot));
        slots.fold(Slots::default(), Slots::with)
    }

    /// The brick that the group counts on for a slot: the member that was sealed, where one stands in for it.
    pub fn member_at(&self, slot: u8) -> Option<BrickId> {
        self.sealed_at(slot).or_else(|| self.members.get(usize::from(slot)).copied())
    }

    /// All that have a part in the group: the bricks at the slots, and members that were sealed.
    pub fn parties(&self) -> impl Iterator<Item = BrickId> + '_ {
        self.members.iter().copied().chain(self.sealed.iter().map(|(_, brick)| *brick))
    }

    /// The slot that `brick` has, or had when it was sealed.
    pub fn place_of(&self, brick: BrickId) -> Option<u8> {
        let sealed = self.sealed.iter().find(|(_, member)| *member == brick).map(|(slot, _)| *slot);
        self.slot_of(brick).or(sealed)
    }

    /// Whether `brick` is one of these.
    pub fn has_part(&self, brick: BrickId) -> bool {
        self.parties().any(|party| party == brick)
    }

    /// Takes no more writes at these slots. Where one stood in the slot is the sealed member's again.
    pub fn close(&mut self, slots: Slots) {
        (self.current, self.joining) = (Slots(self.current.0 & !slots.0), Slots(self.joining.0 & !slots.0));
        for (slot, member) in self.sealed.extract_if(.., |(slot, _)| slots.has(*slot)) {
            if let Some(of) = self.members.get_mut(usize::from(slot)) {
                *of = member;
            }
        }
    }

    /// Seals the member at a slot: this brick takes its writes.
    pub fn seal(&mut self, slot: u8, stand_in: BrickId) {
        self.close(Slots::default().with(slot));
        if let Some(of) = self.members.get_mut(usize::from(slot)) {
            self.sealed.push((slot, core::mem::replace(of, stand_in)));
            self.joining = self.joining.with(slot);
        }
    }

    /// Lets the brick at a slot catch up: the member that was sealed has left.
    pub fn keep_stand_in(&mut self, slot: u8) {
        self.sealed.retain(|(of, _)| *of != slot);
    }

    /// The bricks that take writes, by slot.
    pub fn writing_bricks(&self) -> impl Iterator<Item = (u8, BrickId)> + '_ {
        self.writers().iter().filter_map(|slot| Some((slot, *self.members.get(usize::from(slot))?)))
    }

    /// The bricks that catch up, by slot, and stand-ins.
    pub fn joining_bricks(&self) -> impl Iterator<Item = (u8, BrickId)> + '_ {
        self.joining.iter().filter_map(|slot| Some((slot, *self.members.get(usize::from(slot))?)))
    }

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

wire_struct!(Lineage { number, heads, parents, merging });
wire_struct!(GroupView { group, volume, number, members, current, joining, lineage; since 23: sealed });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Version, Wire, Writer};

    fn view() -> GroupView {
        GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(1),
            members: vec![BrickId(1), BrickId(2), BrickId(3)],
            current: Slots(0b111),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        }
    }

    #[test]
    fn a_slot_that_is_closed_is_the_sealed_member_s_again() {
        let mut sealed = view();
        sealed.seal(1, BrickId(4));
        assert_eq!(
            (sealed.current, sealed.joining, sealed.writers()),
            (Slots(0b101), Slots(0b010), Slots(0b111))
        );
        assert!(sealed.stands_in(BrickId(4)) && !sealed.is_catching_up(BrickId(4)));
        assert!(sealed.has_part(BrickId(2)) && !sealed.is_writer(BrickId(2)));
        assert_eq!((sealed.member_at(1), sealed.stands_in_at(1)), (Some(BrickId(2)), Some(BrickId(4))));
        assert_eq!((sealed.member_at(0), sealed.stands_in_at(0)), (Some(BrickId(1)), None));
        // Another one stands in for the same member, and not for the first stand-in.
        let mut again = sealed.clone();
        again.seal(1, BrickId(5));
        assert_eq!(
            (&again.members[..], &again.sealed[..]),
            (&[1, 5, 3].map(BrickId)[..], &[(1, BrickId(2))][..])
        );
        let mut closed = sealed.clone();
        closed.close(Slots(0b010));
        assert_eq!(closed, GroupView { current: Slots(0b101), ..view() });
        sealed.keep_stand_in(1);
        assert!(sealed.is_catching_up(BrickId(4)) && !sealed.has_part(BrickId(2)));
        let mut wild = view();
        wild.sealed = vec![(30, BrickId(9))];
        wild.close(Slots(u32::MAX));
        wild.seal(31, BrickId(9));
        assert_eq!((&wild.members, wild.sealed.len()), (&view().members, 0));
    }

    #[test]
    fn an_older_release_is_told_of_a_stand_in_as_of_one_that_catches_up() {
        let mut sealed = view();
        sealed.seal(1, BrickId(4));
        let mut bytes = Vec::new();
        sealed.encode(&mut Writer::of(Version::BEFORE_STAND_INS, &mut bytes));
        let told = GroupView::decode(&mut Reader::of(Version::BEFORE_STAND_INS, &bytes)).expect("a view");
        assert!(told.is_catching_up(BrickId(4)) && told.sealed.is_empty());
        assert_eq!(GroupView::from_bytes(&sealed.to_bytes()), Ok(sealed));
    }
}
