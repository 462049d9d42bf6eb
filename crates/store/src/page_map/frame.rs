//! What the ring holds: frames of whole sectors. Each says where it begins, at its beginning and at its end, so that it can be found from
//! both sides; and which cycle wrote it.
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 8 | `BWPGMAP1`, combined by exclusive or with the checksum of the disk's uuid, twice |
//! | 8 | 8 | its position, combined with the same |
//! | 16 | 4 | its length |
//! | 20 | 8 | the position in the journal of the cycle's checkpoint |
//! | 28 | 1 | 0: an intent; 1: a part; 2: void |
//! | 29 | 4 | how many places or entries |
//! | 33 | 4 | checksum of all from 41 on |
//! | 37 | 4 | checksum of bytes 0-37 |
//! | 41 | | of an intent: places (4 bytes each); of a part: entries |
//! | the last 8 | 8 | its position |

use crate::metadata::{Key, NO_SLOT, PAGE_SLOTS, Page};
use crate::pages::Home;
use crate::record::aligned;
use base::{BLOCK, Checksum, VolumeId, checksum::checksum_append};
use bytes::Bytes;
use wire::{DecodeError, FragmentId, Reader, Wire, Writer, wire_struct};

const MAGIC: u64 = u64::from_le_bytes(*b"BWPGMAP1");
/// Where the fields stand, their checksum, and what follows.
const FIELDS_AT: usize = 8;
const SUM_AT: usize = 37;
const BODY_AT: usize = 41;
const FOOTER: usize = 8;
/// No frame is longer: a cycle changes some thousand pages, and a round adds some thousand to them.
pub(super) const FRAME_BYTES_MAX: u64 = 64 << 20;
/// The longest entry: of a page whose slots lie apart.
pub(super) const ENTRY_BYTES_MAX: usize = 92;

/// What magic and position are combined with, so that frames of an earlier format of the disk are none of this one's.
fn mask(seed: Checksum) -> u64 {
    u64::from(seed) << 32 | u64::from(seed)
}

/// What is said of a place in the page region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    /// A page was lost there once.
    pub(crate) is_after_loss: bool,
    pub(crate) said: Said,
}

/// What is at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    Free,
    /// The place has to be read.
    Unread,
    Page {
        key: Key,
        slots: [u32; PAGE_SLOTS as usize],
        unsure: u16,
        /// It is one of objects, and says of no block that it was ever written.
        is_blank: bool,
    },
}

/// A frame of the ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Places that a cycle is about to write.
    Intent(Vec<u32>),
    /// What is where.
    Part(Vec<Entry>),
    /// A cycle is about to write places, and does not know the map before it, which counts no more.
    Void,
}

/// What a frame says of itself, in its first 512 bytes.
#[derive(Debug)]
pub(super) struct FrameHead {
    position: u64,
    pub(super) length: u32,
    pub(super) checkpoint: u64,
    kind: u8,
    count: u32,
    sum: Checksum,
}

wire_struct!(FrameHead { position, length, checkpoint, kind, count, sum });

/// What is found where a frame may begin.
pub(super) enum Found {
    Frame(FrameHead),
    /// Something that has to do with this place of the ring no longer, or never had.
    Nothing,
    /// It was a frame once.
    Damaged,
}

impl Said {
    /// A page that has just been written, or read.
    pub(crate) fn of(key: Key, page: &Page) -> Said {
        let is_blank = FragmentId::version_of(key.volume).is_some() && page.is_blank();
        Said::Page { key, slots: page.slot_numbers(), unsure: page.unsure_mask(), is_blank }
    }

    /// Where the page is at home.
    pub(super) fn home(slots: &[u32; PAGE_SLOTS as usize], unsure: u16, place: u32) -> Home {
        let has = |at: &usize| slots[*at] != NO_SLOT;
        let mask = (0..slots.len()).filter(has).fold(0, |mask, at| mask | 1 << at);
        Home { place, slots: mask, unsure }
    }
}

impl Frame {
    /// Its bytes, for a position, in a buffer as direct I/O wants it.
    pub(super) fn encode(&self, position: u64, checkpoint: u64, seed: Checksum) -> Bytes {
        let mut body = Vec::new();
        let (kind, count) = match self {
            Frame::Intent(places) => {
                places.iter().for_each(|place| body.extend_from_slice(&place.to_le_bytes()));
                (INTENT, places.len())
            }
            Frame::Part(entries) => {
                entries.iter().for_each(|entry| entry.append(&mut body));
                (PART, entries.len())
            }
            Frame::Void => (VOID, 0),
        };
        let length = (BODY_AT + body.len() + FOOTER).next_multiple_of(BLOCK);
        let (mut buffer, start) = aligned(length);
        let frame = &mut buffer[start..start + length];
        frame[BODY_AT..BODY_AT + body.len()].copy_from_slice(&body);
        frame[length - FOOTER..].copy_from_slice(&position.to_le_bytes());
        let sum = checksum_append(seed, &frame[BODY_AT..]);
        let head = FrameHead {
            position: position ^ mask(seed),
            length: length as u32,
            checkpoint,
            kind,
            count: count as u32,
            sum,
        };
        frame[..FIELDS_AT].copy_from_slice(&(MAGIC ^ mask(seed)).to_le_bytes());
        frame[FIELDS_AT..SUM_AT].copy_from_slice(&head.to_bytes());
        let sum = checksum_append(seed, &frame[..SUM_AT]);
        frame[SUM_AT..BODY_AT].copy_from_slice(&sum.to_le_bytes());
        Bytes::from(buffer).slice(start..start + length)
    }

    /// What the first sector of a frame that begins at `position` says.
    pub(super) fn head(sector: &[u8], position: u64, seed: Checksum) -> Found {
        let Some(fields) = sector.get(..BODY_AT) else { return Found::Damaged };
        let sum = u32::from_le_bytes(fields[SUM_AT..].try_into().expect("four bytes"));
        let has_magic = fields[..FIELDS_AT] == (MAGIC ^ mask(seed)).to_le_bytes();
        let is_whole = sum == checksum_append(seed, &fields[..SUM_AT]);
        let Ok(head) = FrameHead::from_bytes(&fields[FIELDS_AT..SUM_AT]) else { return Found::Nothing };
        let (is_here, length) = (head.position == position ^ mask(seed), u64::from(head.length));
        // What a later release may write is no reason to believe what stands before it.
        let is_sound = length > 0
            && length <= FRAME_BYTES_MAX
            && length.is_multiple_of(BLOCK as u64)
            && head.kind <= VOID;
        match (has_magic, is_here) {
            (true, true) if is_whole && is_sound => Found::Frame(head),
            (true, false) if is_whole => Found::Nothing,
            (false, false) => Found::Nothing,
            _ => Found::Damaged,
        }
    }

    /// Where a frame begins that ends with these bytes.
    pub(super) fn begins_at(bytes: &[u8]) -> Option<u64> {
        let footer = bytes.get(bytes.len().checked_sub(FOOTER)?..)?;
        Some(u64::from_le_bytes(footer.try_into().expect("eight bytes")))
    }

    /// A whole frame that begins at `position`.
    pub(super) fn decode(bytes: &[u8], position: u64, seed: Checksum) -> Option<Frame> {
        let Found::Frame(head) = Frame::head(bytes, position, seed) else { return None };
        if bytes.len() != head.length as usize || head.sum != checksum_append(seed, &bytes[BODY_AT..]) {
            return None;
        }
        let mut reader = Reader::new(bytes.get(BODY_AT..bytes.len() - FOOTER)?);
        let numbers = 0..head.count;
        match head.kind {
            INTENT => {
                let places = numbers.map(|_| u32::decode(&mut reader)).collect::<Result<_, _>>();
                places.ok().map(Frame::Intent)
            }
            PART => {
                let entries = numbers.map(|_| Entry::decode(&mut reader)).collect::<Result<_, _>>();
                entries.ok().map(Frame::Part)
            }
            VOID => Some(Frame::Void),
            _ => None,
        }
    }
}

impl FrameHead {
    pub(super) fn is_intent(&self) -> bool {
        self.kind == INTENT
    }

    pub(super) fn is_void(&self) -> bool {
        self.kind == VOID
    }
}

const INTENT: u8 = 0;
const PART: u8 = 1;
const VOID: u8 = 2;
const FREE: u8 = 0;
const UNREAD: u8 = 1;
const PAGE: u8 = 2;
const AFTER_LOSS: u8 = 4;
const BLANK: u8 = 8;

/// Place (4) and tag (1); of a page: volume, page number, plane, the mask of unsure groups, the mask of slots, the mask of those whose number follows
/// that of the one before, and the numbers of the others.
impl Wire for Entry {
    fn encode(&self, out: &mut Writer<'_>) {
        self.place.encode(out);
        let lost = if self.is_after_loss { AFTER_LOSS } else { 0 };
        match &self.said {
            Said::Free => out.push(FREE | lost),
            Said::Unread => out.push(UNREAD | lost),
            Said::Page { key, slots, unsure, is_blank } => {
                out.push(PAGE | lost | if *is_blank { BLANK } else { 0 });
                key.volume.0.encode(out);
                key.page.encode(out);
                key.plane.encode(out);
                unsure.encode(out);
                let (mut mask, mut follows) = (0_u16, 0_u16);
                let mut others = Vec::with_capacity(slots.len());
                for (at, &slot) in slots.iter().enumerate().filter(|(_, slot)| **slot != NO_SLOT) {
                    mask |= 1 << at;
                    if at > 0 && slots[at - 1].checked_add(1) == Some(slot) {
                        follows |= 1 << at;
                    } else {
                        others.push(slot);
                    }
                }
                mask.encode(out);
                follows.encode(out);
                others.iter().for_each(|slot| slot.encode(out));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Entry, DecodeError> {
        let (place, tag) = (u32::decode(reader)?, u8::decode(reader)?);
        let said = match tag & 3 {
            FREE => Said::Free,
            UNREAD => Said::Unread,
            PAGE => {
                let key = Key {
                    volume: VolumeId(u64::decode(reader)?),
                    page: u64::decode(reader)?,
                    plane: u8::decode(reader)?,
                };
                let (unsure, mask, follows) =
                    (u16::decode(reader)?, u16::decode(reader)?, u16::decode(reader)?);
                let mut slots = [NO_SLOT; PAGE_SLOTS as usize];
                for at in (0..slots.len()).filter(|at| mask & 1 << at != 0) {
                    slots[at] = match follows & 1 << at {
                        0 => u32::decode(reader)?,
                        _ if at == 0 => return Err(DecodeError::OutOfRange { what: "slot of a page" }),
                        _ => slots[at - 1].wrapping_add(1),
                    };
                }
                Said::Page { key, slots, unsure, is_blank: tag & BLANK != 0 }
            }
            _ => return Err(DecodeError::OutOfRange { what: "entry of the map of pages" }),
        };
        Ok(Entry { place, is_after_loss: tag & AFTER_LOSS != 0, said })
    }
}
