//! What names a write and what it does to one brick's blocks.

use crate::{DecodeError, Reader, Wire, Writer, wire_enum, wire_struct};
use base::{BLOCK, ClientId, GroupId, RequestId, Stamp, VolumeId};
use core::num::NonZeroU64;

/// Blocks of one member's column: `count` blocks of `volume` from the brick-local block address `lba`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span {
    pub volume: VolumeId,
    /// The first block, in the address space that the brick keeps for the volume.
    pub lba: u64,
    /// How many blocks; at least 1 and at most [`Span::BLOCKS_MAX`].
    pub count: u32,
}

impl Span {
    /// The most blocks that one request to a brick may cover (1 MiB).
    pub const BLOCKS_MAX: u32 = 256;

    /// No span crosses a multiple of this many blocks: a brick spreads such stretches over its disks.
    pub const STRETCH_BLOCKS: u64 = 1024;

    /// One past the last block.
    pub fn end(&self) -> u64 {
        self.lba + u64::from(self.count)
    }

    pub fn bytes(&self) -> usize {
        self.count as usize * BLOCK
    }

    /// Whether both name some block.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.volume == other.volume && self.lba < other.end() && other.lba < self.end()
    }

    /// Whether a stranger's span is one that a brick may work on.
    pub fn is_valid(&self) -> bool {
        (1..=Span::BLOCKS_MAX).contains(&self.count)
            && self.lba < 1 << 44
            && self.lba / Span::STRETCH_BLOCKS == (self.end() - 1) / Span::STRETCH_BLOCKS
    }
}

/// Which members of a group take part in a write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// All of them: a mirrored write, or one that covers whole rows of a parity layout.
    Row,
    /// The member that holds data unit `index` of the row, and those that hold its parity.
    Unit {
        /// The data index, from 0.
        index: u8,
    },
}

/// Makes a write one with others, in whatever groups: they take effect if their record does. The record is a write of a block to an address of
/// the same branch beyond all that a volume has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    /// The group that has the record, and so decides.
    pub group: GroupId,
    /// Never the first block, which every volume has: so that the link takes no room where there is none.
    lba: NonZeroU64,
    /// The stamp of the record.
    pub stamp: Stamp,
}

impl Link {
    /// To a record at an address of a group, with this stamp.
    ///
    /// # Panics
    /// When the address is the first one.
    pub fn new(group: GroupId, lba: u64, stamp: Stamp) -> Link {
        Link { group, lba: NonZeroU64::new(lba).expect("no record is the first block"), stamp }
    }

    /// The address of the record.
    pub fn lba(&self) -> u64 {
        self.lba.get()
    }
}

/// A write of blocks in one group. The stamp alone is unique; the rest says where to look for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteId {
    pub group: GroupId,
    /// The blocks, at the same addresses on every member that takes part.
    pub span: Span,
    pub stamp: Stamp,
    pub scope: Scope,
    /// Whether it is decided by a record, and by which.
    pub link: Option<Link>,
}

/// What a write does to the blocks of one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Replaces data blocks by the payload.
    Data,
    /// Replaces data blocks by zeros and gives their space back.
    Zero,
    /// Adds the payload to parity blocks, and moves entry `index` of their stamps.
    Xor {
        /// The data index whose change this is.
        index: u8,
        /// How many data units the parity covers: stamps a block.
        width: u8,
        /// The stamps that entry `index` has before, one a block.
        previous: Vec<Stamp>,
    },
    /// Replaces parity blocks by the payload; all `width` entries of their stamps become the write's.
    Parity {
        /// How many data units the parity covers.
        width: u8,
    },
    /// Replaces parity blocks by the payload, which was computed from what was there, and moves entry `index` of their stamps.
    Replace {
        /// The data index whose change this is.
        index: u8,
        /// How many data units the parity covers: stamps a block.
        width: u8,
        /// All stamps that the blocks have before, `width` a block.
        previous: Vec<Stamp>,
    },
}

/// What is known at one member of a write in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// On stable storage here, not known to be decided.
    Prepared,
    /// Known to be decided: it took effect here.
    Committed,
    /// Not here, and durably refused from now on: it can never be decided.
    Refused,
    /// The blocks' stamps cannot be read here: this member has no say.
    Unreadable,
    /// Not here now, and may still come: told where the question only looks.
    Absent,
}

/// The outcome of a write, as told to a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Decision {
    pub volume: VolumeId,
    /// The first block of the write.
    pub lba: u64,
    pub stamp: Stamp,
}

/// A part of a client's request took effect, by a write. Kept durably, so that a retry of the request takes effect once.
///
/// One of them can stand for all of a client's requests before its *floor* ([`Completion::floor`]): the client has their answers, and
/// never asks for them again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    pub request: RequestId,
    /// Which part of it: its first block.
    pub part: u64,
    /// The write by which it took effect; of a floor, the client's latest write.
    pub stamp: Stamp,
}

/// No part of a request begins there: it stands for all parts, and for those of the client's earlier requests.
const ALL_UP_TO_HERE: u64 = u64::MAX;

impl Change {
    /// Stamps a block that the member keeps for blocks changed so.
    pub fn width(&self) -> u8 {
        match self {
            Change::Data | Change::Zero => 1,
            Change::Xor { width, .. } | Change::Parity { width } | Change::Replace { width, .. } => *width,
        }
    }

    /// The stamps that the blocks must have before, as far as it names them.
    pub fn previous(&self) -> &[Stamp] {
        match self {
            Change::Xor { previous, .. } | Change::Replace { previous, .. } => previous,
            Change::Data | Change::Zero | Change::Parity { .. } => &[],
        }
    }

    /// Whether it moves one entry of the blocks' stamps and leaves the others.
    pub fn keeps_other_stamps(&self) -> bool {
        matches!(self, Change::Xor { .. } | Change::Replace { .. })
    }
}

impl Completion {
    /// Stands for all parts of the client's requests before `floor`, which is at least 1.
    pub fn floor(client: ClientId, floor: u64, latest: Stamp) -> Completion {
        let request = RequestId { client, sequence: floor - 1 };
        Completion { request, part: ALL_UP_TO_HERE, stamp: latest }
    }

    /// The floor, if it is one.
    pub fn as_floor(&self) -> Option<u64> {
        (self.part == ALL_UP_TO_HERE).then(|| self.request.sequence.saturating_add(1))
    }
}

impl WriteId {
    /// The stamp of what decides it: of its record, or its own.
    pub fn decided_by(&self) -> Stamp {
        self.link.map_or(self.stamp, |link| link.stamp)
    }
}

impl From<&WriteId> for Decision {
    fn from(write: &WriteId) -> Decision {
        Decision { volume: write.span.volume, lba: write.span.lba, stamp: write.stamp }
    }
}

wire_struct!(Span { volume, lba, count });
wire_enum!(Scope { 0 => Row, 1 => Unit { index } });
wire_enum!(Change { 0 => Data, 1 => Zero, 2 => Xor { index, width, previous }, 3 => Parity { width }, 4 => Replace { index, width, previous } });
wire_enum!(Fate { 0 => Prepared, 1 => Committed, 2 => Refused, 3 => Unreadable, 4 => Absent });
wire_struct!(Decision { volume, lba, stamp });
wire_struct!(Completion { request, part, stamp });

impl Wire for Link {
    fn encode(&self, out: &mut Writer<'_>) {
        self.group.encode(out);
        self.lba().encode(out);
        self.stamp.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Link, DecodeError> {
        let (group, lba, stamp) = (Wire::decode(reader)?, u64::decode(reader)?, Wire::decode(reader)?);
        let lba = NonZeroU64::new(lba).ok_or(DecodeError::OutOfRange { what: "address of a record" })?;
        Ok(Link { group, lba, stamp })
    }
}

/// In the place of a scope, where a link comes before it. There was none at first.
const LINKED: u8 = 2;

impl Wire for WriteId {
    fn encode(&self, out: &mut Writer<'_>) {
        self.group.encode(out);
        self.span.encode(out);
        self.stamp.encode(out);
        if let Some(link) = &self.link {
            out.push(LINKED);
            link.encode(out);
        }
        self.scope.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<WriteId, DecodeError> {
        let (group, span, stamp) = (Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?);
        let link = match reader.peek() {
            Some(LINKED) => {
                u8::decode(reader)?;
                Some(Wire::decode(reader)?)
            }
            _ => None,
        };
        Ok(WriteId { group, span, stamp, scope: Wire::decode(reader)?, link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_without_a_record_is_what_it_was_before_there_were_any() {
        let span = Span { volume: VolumeId(2), lba: 3, count: 4 };
        let alone =
            WriteId { group: GroupId(1), span, stamp: Stamp(5), scope: Scope::Unit { index: 6 }, link: None };
        let mut before = Vec::new();
        alone.group.append(&mut before);
        alone.span.append(&mut before);
        alone.stamp.append(&mut before);
        alone.scope.append(&mut before);
        assert_eq!(alone.to_bytes(), before);
        let link = Link::new(GroupId(7), 8, Stamp(9));
        let linked = WriteId { link: Some(link), ..alone };
        for write in [alone, linked, WriteId { scope: Scope::Row, ..linked }] {
            assert_eq!(WriteId::from_bytes(&write.to_bytes()), Ok(write));
        }
        assert_eq!((alone.decided_by(), linked.decided_by()), (Stamp(5), Stamp(9)));
        let twice = [&before[..36], &[LINKED], &link.to_bytes(), &[LINKED]].concat();
        assert!(WriteId::from_bytes(&twice).is_err(), "it has one");
        let first = [&before[..36], &[LINKED], &[0; 24], &before[36..]].concat();
        assert!(WriteId::from_bytes(&first).is_err(), "no record is there");
    }
}
