//! What the journal says: records, and the frames that carry a group of them.
//!
//! A frame is a header, the records, and then the blocks that the records bring along, each part filled up to whole
//! sectors. The header's checksum covers the records, the records' checksums the blocks, so that each byte of content is
//! summed once.

use crate::discard::Region;
use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK, Checksum, Payload, Stamp, VolumeId, checksum, checksum::checksum_append};
use bytes::Bytes;
use wire::disk::Staged;
use wire::{Change, Completion, DecodeError, Reader, Span, Wire, wire_enum, wire_struct};

const MAGIC: u64 = u64::from_le_bytes(*b"BWFRAME1");
/// The most stamps a block that a write may set.
pub(crate) const WIDTH_MAX: u8 = 32;
/// Bytes of a frame's header.
const HEADER: usize = 40;

/// Consecutive blocks of a write, and where their content is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// The first block, counted from the write's first.
    pub(crate) offset: u32,
    pub(crate) count: u32,
    /// Their checksums; none for blocks without content.
    pub(crate) sums: Vec<Checksum>,
    pub(crate) body: Body,
}

/// Where content is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Inline(Payload),
    /// In a slot of its own, written beside the frame.
    Slot(u32),
    /// There is none: zeros.
    Zero,
    Lost,
}

impl Extent {
    /// Its bytes in the frame.
    pub(crate) fn inline(&self) -> Option<&Payload> {
        match &self.body {
            Body::Inline(payload) => Some(payload),
            _ => None,
        }
    }

    /// Whether it lies within `span`, with a checksum for each block of content; slots are used as a whole.
    fn is_sound(&self, span: Span) -> bool {
        let (has_sums, whole) = match self.body {
            Body::Inline(_) => (true, true),
            Body::Slot(_) => {
                let first = span.lba + u64::from(self.offset);
                (true, u64::from(self.count) == SLOT_BLOCKS && first.is_multiple_of(SLOT_BLOCKS))
            }
            Body::Zero | Body::Lost => (false, true),
        };
        let sums = if has_sums { self.count as usize } else { 0 };
        let end = self.offset.checked_add(self.count);
        self.count > 0 && whole && self.sums.len() == sums && end.is_some_and(|end| end <= span.count)
    }
}

/// The blocks that extents bring along in their frame.
pub(crate) fn inline_bytes(extents: &[Extent]) -> usize {
    extents.iter().filter_map(Extent::inline).map(Payload::len).sum()
}

/// An entry of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    /// A write is staged (again, when it is carried forward).
    Stage { staged: Staged, extents: Vec<Extent>, fresh: bool },
    /// A staged write became the committed content.
    Apply { stamp: Stamp },
    /// A staged delta became the committed content, which is this.
    Image { stamp: Stamp, extents: Vec<Extent> },
    /// A staged write is forgotten.
    Drop { stamp: Stamp },
    /// Content was put in place.
    Mend { span: Span, width: u8, stamps: Vec<Stamp>, extents: Vec<Extent>, fresh: bool },
    /// A note is set or removed.
    Note { key: Vec<u8>, value: Option<Vec<u8>> },
    /// A volume's space is given back.
    Discard { volume: VolumeId },
    /// All small state, instead of what the records before say of it. Stretches being discarded follow in records of
    /// their own.
    Checkpoint { notes: Vec<(Vec<u8>, Vec<u8>)>, completions: Vec<Completion>, discards: Vec<VolumeId> },
    /// A stretch's space is given back.
    DiscardStretch { volume: VolumeId, stretch: u64 },
    /// Requests took effect elsewhere.
    Remember { completions: Vec<Completion> },
    /// Behind a checkpoint: where the notes are that it does not repeat. Keys that they say and that are gone follow as notes.
    Sheets { sheets: Vec<SheetAt> },
}

/// Where a sheet of notes is, and the checksums of its blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SheetAt {
    /// Those of the first copy, and then those of the second.
    pub(crate) slots: Vec<u32>,
    pub(crate) sums: Vec<Checksum>,
}

impl SheetAt {
    fn is_sound(&self) -> bool {
        let blocks = self.sums.len() as u64;
        blocks > 0
            && blocks.is_multiple_of(SLOT_BLOCKS)
            && self.slots.len() as u64 * SLOT_BLOCKS == 2 * blocks
    }

    /// A bound of what it takes of a record.
    pub(crate) fn bytes(&self) -> usize {
        16 + 4 * (self.slots.len() + self.sums.len())
    }

    /// Whether this is the content of a copy's slot of that number.
    pub(crate) fn is_slot(&self, number: usize, content: &[u8]) -> bool {
        let sums = self.sums.chunks(SLOT_BLOCKS as usize).nth(number).unwrap_or_default();
        content.chunks(BLOCK).map(checksum).eq(sums.iter().copied())
    }
}

impl Record {
    /// That of a discard.
    pub(crate) fn discard(region: Region) -> Record {
        let volume = region.volume;
        match region.stretch {
            None => Record::Discard { volume },
            Some(stretch) => Record::DiscardStretch { volume, stretch },
        }
    }

    fn extents_mut(&mut self) -> &mut [Extent] {
        match self {
            Record::Stage { extents, .. } | Record::Image { extents, .. } | Record::Mend { extents, .. } => {
                extents
            }
            _ => &mut [],
        }
    }

    fn extents(&self) -> &[Extent] {
        match self {
            Record::Stage { extents, .. } | Record::Image { extents, .. } | Record::Mend { extents, .. } => {
                extents
            }
            _ => &[],
        }
    }

    /// Extents whose slots were written together with the frame, and may be lost together with it.
    pub(crate) fn fresh_slots(&self) -> impl Iterator<Item = (u32, &[Checksum])> {
        let fresh = matches!(self, Record::Stage { fresh: true, .. } | Record::Mend { fresh: true, .. });
        self.extents().iter().filter(move |_| fresh).filter_map(|extent| match extent.body {
            Body::Slot(slot) => Some((slot, extent.sums.as_slice())),
            _ => None,
        })
    }

    /// Whether it is one that a store writes, however well its checksum matches.
    fn is_sound(&self) -> bool {
        let span = match self {
            Record::Stage { staged, .. } if is_change_sound(&staged.change) => staged.write.span,
            Record::Mend { span, width, stamps, .. }
                if *width <= WIDTH_MAX && stamps.len() == span.count as usize * *width as usize =>
            {
                *span
            }
            Record::Stage { .. } | Record::Mend { .. } => return false,
            Record::DiscardStretch { volume, stretch } => {
                return Region { volume: *volume, stretch: Some(*stretch) }.is_sound();
            }
            Record::Sheets { sheets } => return sheets.iter().all(SheetAt::is_sound),
            // The blocks of an image are those of its write, which is known elsewhere.
            _ => Span { volume: VolumeId(0), lba: 1, count: Span::BLOCKS_MAX },
        };
        span.is_valid() && self.extents().iter().all(|extent| extent.is_sound(span))
    }
}

fn is_change_sound(change: &Change) -> bool {
    match change {
        Change::Data | Change::Zero => true,
        Change::Xor { index, .. } | Change::Replace { index, .. } => *index < WIDTH_MAX,
        Change::Parity { width } => (1..=WIDTH_MAX).contains(width),
    }
}

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    /// Where the frame begins, in bytes of journal ever written.
    pub(crate) position: u64,
    /// Its length in bytes.
    pub(crate) length: u64,
    records: u32,
    sum: Checksum,
}

impl FrameHeader {
    /// Reads the header of a frame that begins at `position`.
    pub(crate) fn decode(sector: &[u8], position: u64, seed: Checksum) -> Option<FrameHeader> {
        let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
        let header = FrameHeader { position: word(8), length: word(16), records: half(24), sum: half(28) };
        let whole = word(0) == MAGIC && half(32) == checksum_append(seed, &sector[..32]);
        let sound = header.length.is_multiple_of(BLOCK as u64) && header.length >= header.body_at();
        (whole && sound && header.position == position).then_some(header)
    }

    /// Whether a sector was, or was to be, the header of a frame at `position`, and is neither that nor one of an earlier
    /// frame that was here before.
    pub(crate) fn is_damaged(sector: &[u8], position: u64, seed: Checksum) -> bool {
        let Some(start) = sector.get(..16) else { return true };
        let word = |at: usize| u64::from_le_bytes(start[at..at + 8].try_into().expect("eight bytes"));
        let is_header = word(0) == MAGIC || word(8) == position && position > 0;
        is_header && FrameHeader::decode(sector, word(8), seed).is_none()
    }

    /// Where the blocks begin. It is asked of headers that may be rubbish.
    fn body_at(&self) -> u64 {
        (HEADER as u64 + u64::from(self.records)).next_multiple_of(BLOCK as u64)
    }

    /// The records of a whole frame, which share its bytes; `None` when any of it does not match its checksum.
    pub(crate) fn records(&self, frame: &Bytes, seed: Checksum) -> Option<Vec<Record>> {
        let encoded = frame.get(HEADER..HEADER + self.records as usize)?;
        if checksum_append(seed, encoded) != self.sum {
            return None;
        }
        let mut records = decode_records(encoded).ok()?;
        let mut at = usize::try_from(self.body_at()).ok()?;
        for extent in records.iter_mut().flat_map(Record::extents_mut) {
            fill(extent, frame, &mut at)?;
        }
        (at as u64 == self.length).then_some(records)
    }
}

/// Gives a decoded extent its blocks from the frame.
fn fill(extent: &mut Extent, frame: &Bytes, at: &mut usize) -> Option<()> {
    if extent.inline().is_none() {
        return Some(());
    }
    let len = extent.count as usize * BLOCK;
    if *at + len > frame.len() {
        return None;
    }
    let blocks = frame.slice(*at..*at + len);
    *at += len;
    let good = blocks.chunks(BLOCK).zip(&extent.sums).all(|(block, &sum)| checksum(block) == sum);
    extent.body = Body::Inline(Payload::from(blocks));
    good.then_some(())
}

fn decode_records(encoded: &[u8]) -> Result<Vec<Record>, DecodeError> {
    let mut reader = Reader::new(encoded);
    let mut records = Vec::new();
    while reader.left() > 0 {
        let record = Record::decode(&mut reader)?;
        if !record.is_sound() {
            return Err(DecodeError::OutOfRange { what: "journal record" });
        }
        records.push(record);
    }
    Ok(records)
}

#[derive(Default)]
pub(crate) struct FrameBuilder {
    records: Vec<u8>,
    blocks: Vec<Payload>,
    block_bytes: usize,
}

impl FrameBuilder {
    /// Adds a record. Gives back where its blocks begin among all blocks, in bytes.
    pub(crate) fn push(&mut self, record: &Record) -> usize {
        let start = self.block_bytes;
        record.append(&mut self.records);
        for payload in record.extents().iter().filter_map(Extent::inline) {
            self.block_bytes += payload.len();
            self.blocks.push(payload.clone());
        }
        start
    }

    /// Its length so far.
    pub(crate) fn length(&self) -> usize {
        (HEADER + self.records.len()).next_multiple_of(BLOCK) + self.block_bytes
    }

    /// The frame for `position`.
    pub(crate) fn finish(self, position: u64, seed: Checksum) -> Frame {
        let length = self.length();
        let body_at = length - self.block_bytes;
        let (mut buffer, start) = aligned(length);
        let frame = &mut buffer[start..start + length];
        frame[..8].copy_from_slice(&MAGIC.to_le_bytes());
        frame[8..16].copy_from_slice(&position.to_le_bytes());
        frame[16..24].copy_from_slice(&(length as u64).to_le_bytes());
        frame[24..28].copy_from_slice(&(self.records.len() as u32).to_le_bytes());
        frame[28..32].copy_from_slice(&checksum_append(seed, &self.records).to_le_bytes());
        let sum = checksum_append(seed, &frame[..32]);
        frame[32..36].copy_from_slice(&sum.to_le_bytes());
        frame[HEADER..HEADER + self.records.len()].copy_from_slice(&self.records);
        let mut at = body_at;
        for payload in &self.blocks {
            payload.copy_to(&mut frame[at..at + payload.len()]);
            at += payload.len();
        }
        Frame { bytes: Bytes::from(buffer).slice(start..start + length), body_at }
    }
}

/// A frame as it goes to the disk.
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    body_at: usize,
}

impl Frame {
    /// Makes extents, whose blocks begin at `start` among the frame's, share the frame's bytes instead of the client's.
    pub(crate) fn adopt(&self, extents: &mut [Extent], start: usize) {
        let mut at = self.body_at + start;
        for extent in extents {
            if let Body::Inline(payload) = &mut extent.body {
                let len = payload.len();
                *payload = Payload::from(self.bytes.slice(at..at + len));
                at += len;
            }
        }
    }
}

/// `length` zero bytes that begin at a multiple of 4096 in memory, as direct I/O wants it: the buffer, and where in it.
pub(crate) fn aligned(length: usize) -> (Vec<u8>, usize) {
    let buffer = vec![0; length + BLOCK - 1];
    let start = buffer.as_ptr().align_offset(BLOCK).min(BLOCK - 1);
    (buffer, start)
}

/// `bytes` in a buffer as [`aligned`] makes it.
pub(crate) fn aligned_copy(bytes: &[u8]) -> Bytes {
    let (mut buffer, start) = aligned(bytes.len());
    buffer[start..start + bytes.len()].copy_from_slice(bytes);
    Bytes::from(buffer).slice(start..start + bytes.len())
}

impl Wire for Body {
    fn encode(&self, out: &mut wire::Writer<'_>) {
        match self {
            Body::Inline(_) => out.push(0),
            Body::Slot(slot) => {
                out.push(1);
                slot.encode(out);
            }
            Body::Zero => out.push(2),
            Body::Lost => out.push(3),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Body, DecodeError> {
        match u8::decode(reader)? {
            0 => Ok(Body::Inline(Payload::new())),
            1 => Ok(Body::Slot(u32::decode(reader)?)),
            2 => Ok(Body::Zero),
            3 => Ok(Body::Lost),
            tag => Err(DecodeError::UnknownTag { what: "content", tag }),
        }
    }
}

wire_struct!(Extent { offset, count, sums, body });
wire_struct!(SheetAt { slots, sums });
wire_enum!(Record {
    0 => Stage { staged, extents, fresh },
    1 => Apply { stamp },
    2 => Image { stamp, extents },
    3 => Drop { stamp },
    4 => Mend { span, width, stamps, extents, fresh },
    5 => Note { key, value },
    6 => Discard { volume },
    7 => Checkpoint { notes, completions, discards },
    8 => DiscardStretch { volume, stretch },
    9 => Remember { completions },
    10 => Sheets { sheets },
});

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ClientId, GroupId, RequestId};
    use wire::{Scope, WriteId};

    const SEED: Checksum = 7;

    fn stage(change: Change, count: u32, extent: Extent) -> Record {
        let span = Span { volume: VolumeId(1), lba: 32, count };
        let write = WriteId { group: GroupId(1), span, stamp: Stamp(1), scope: Scope::Row, link: None };
        let request = RequestId { client: ClientId(1), sequence: 1 };
        Record::Stage {
            staged: Staged { write, change, request, part: 0 },
            extents: vec![extent],
            fresh: true,
        }
    }

    fn extent(offset: u32, count: u32, sums: usize, body: Body) -> Extent {
        Extent { offset, count, sums: vec![0; sums], body }
    }

    fn sheet(slots: u32, sums: usize) -> SheetAt {
        SheetAt { slots: (0..slots).collect(), sums: vec![0; sums] }
    }

    /// What comes back of a frame with this record.
    fn reread(record: &Record) -> Option<Vec<Record>> {
        let mut builder = FrameBuilder::default();
        builder.push(record);
        let frame = builder.finish(8192, SEED).bytes;
        FrameHeader::decode(&frame, 8192, SEED).expect("the header is whole").records(&frame, SEED)
    }

    #[test]
    fn sound_records_come_back() {
        let zero = extent(0, 16, 0, Body::Zero);
        for record in [
            stage(Change::Data, 16, extent(0, 16, 16, Body::Slot(3))),
            stage(
                Change::Xor { index: WIDTH_MAX - 1, width: WIDTH_MAX, previous: vec![Stamp(1); 16] },
                16,
                zero.clone(),
            ),
            stage(Change::Parity { width: WIDTH_MAX }, 16, zero.clone()),
            stage(Change::Zero, 16, zero),
            Record::DiscardStretch { volume: VolumeId(1), stretch: 9 },
            Record::Remember { completions: vec![] },
            Record::Sheets { sheets: vec![sheet(2, 16), sheet(4, 32)] },
        ] {
            assert_eq!(reread(&record), Some(vec![record]));
        }
    }

    /// However well its checksums match, a record that no store writes makes a frame that is not whole.
    #[test]
    fn unsound_records_do_not() {
        let zero = |count| extent(0, count, 0, Body::Zero);
        let xor = |index| Change::Xor { index, width: 3, previous: vec![Stamp(1); 4] };
        let mend = |width: u8, stamps| Record::Mend {
            span: Span { volume: VolumeId(1), lba: 0, count: 2 },
            width,
            stamps: vec![Stamp(1); stamps],
            extents: vec![zero(2)],
            fresh: false,
        };
        assert!(reread(&mend(3, 6)).is_some());
        for record in [
            stage(xor(WIDTH_MAX), 4, zero(4)),
            stage(Change::Parity { width: 0 }, 4, zero(4)),
            stage(Change::Parity { width: WIDTH_MAX + 1 }, 4, zero(4)),
            stage(Change::Data, 0, zero(1)),
            stage(Change::Data, 4, zero(0)),
            stage(Change::Data, 4, zero(5)),
            stage(Change::Data, 4, extent(u32::MAX, 2, 0, Body::Zero)),
            stage(Change::Data, 4, extent(0, 4, 4, Body::Zero)),
            stage(Change::Data, 16, extent(0, 16, 15, Body::Slot(3))),
            stage(Change::Data, 16, extent(0, 15, 15, Body::Slot(3))),
            stage(Change::Data, 17, extent(1, 16, 16, Body::Slot(3))),
            mend(3, 5),
            mend(WIDTH_MAX + 1, 2 * (usize::from(WIDTH_MAX) + 1)),
            Record::DiscardStretch { volume: VolumeId(1), stretch: u64::MAX },
            Record::Sheets { sheets: vec![sheet(0, 0)] },
            Record::Sheets { sheets: vec![sheet(2, 15)] },
            Record::Sheets { sheets: vec![sheet(2, 32)] },
        ] {
            assert_eq!(reread(&record), None, "{record:?}");
        }
    }

    #[test]
    fn a_damaged_header_is_told_from_an_earlier_one() {
        let mut builder = FrameBuilder::default();
        builder.push(&Record::Drop { stamp: Stamp(1) });
        let mut frame = builder.finish(8192, SEED).bytes.to_vec();
        let is_damaged = |frame: &[u8], position| FrameHeader::is_damaged(frame, position, SEED);
        assert!(
            !is_damaged(&frame, 8192) && !is_damaged(&frame, 4096),
            "whole, of here or of an earlier lap"
        );
        assert!(!is_damaged(&[0; BLOCK], 0) && !is_damaged(&[0; BLOCK], 4096) && is_damaged(&[], 4096));
        frame[20] ^= 1;
        assert!(is_damaged(&frame, 8192) && is_damaged(&frame, 4096));
        frame[0] ^= 1;
        assert!(is_damaged(&frame, 8192) && !is_damaged(&frame, 4096));
    }
}
