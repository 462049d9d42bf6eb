//! Reading the ring back: which frames are whole, and what the last one is worth.
//!
//! One frame is in flight at a time, so only the last one can be torn. It was never acknowledged, and the next frame takes its
//! place. A frame that is not whole with a later one behind it was on stable storage once: the disk is damaged.

use crate::header::Header;
use crate::journal::Journal;
use crate::open_error::OpenError;
use crate::record::{FrameHeader, Record};
use base::{BLOCK, BLOCK_U64, Checksum};
use bytes::Bytes;

/// Bytes read at a time.
pub(crate) const CHUNK: u64 = 1 << 20;

struct Frame {
    begins_at: u64,
    ends_at: u64,
    records: Vec<Record>,
}

/// What has been read of the ring.
pub(crate) struct Frames {
    journal: Journal,
    header: Header,
    seed: Checksum,
    /// The journal's bytes from `at` on that no frame was made of yet.
    window: Vec<u8>,
    /// How many bytes of the window are used up.
    taken: usize,
    at: u64,
    /// Where the next bytes come from.
    fetched: u64,
    /// Up to here one sector is read at a time, because some cannot be read.
    careful_until: u64,
    /// Where the first frame is that is not whole; later ones are looked for from there on.
    torn: Option<u64>,
    has_torn_tail: bool,
    /// The last checkpoint behind the one at which the journal begins: of a cycle that did not end.
    last_checkpoint: Option<u64>,
    /// The last whole frame.
    last: Option<Frame>,
    /// Records of the frames before it.
    records: Vec<Record>,
}

impl Frames {
    /// Nothing is read yet.
    pub(crate) fn new(journal: Journal, header: Header, seed: Checksum) -> Frames {
        let (at, fetched, careful_until) = (header.tail, header.tail, header.tail);
        let (window, records) = (Vec::new(), Vec::new());
        Frames {
            journal,
            header,
            seed,
            window,
            taken: 0,
            at,
            fetched,
            careful_until,
            torn: None,
            has_torn_tail: false,
            last_checkpoint: None,
            last: None,
            records,
        }
    }

    /// The next piece of the ring, as `(offset on the disk, length)`; none when all of it was read.
    pub(crate) fn piece(&self) -> Option<(u64, usize)> {
        let left = self.end() - self.fetched;
        let to_end = self.journal.capacity() - self.fetched % self.journal.capacity();
        let most = if self.fetched < self.careful_until { BLOCK_U64 } else { CHUNK };
        (left > 0).then(|| (self.journal.offset_of(self.fetched), left.min(to_end).min(most) as usize))
    }

    /// Takes that piece, or learns that it cannot be read as a whole.
    pub(crate) fn take(&mut self, bytes: Option<Bytes>) -> Result<(), OpenError> {
        let (_, length) = self.piece().expect("a piece was asked for");
        match bytes.filter(|bytes| bytes.len() == length) {
            Some(bytes) => self.window.extend_from_slice(&bytes),
            // Whole frames beside a bad sector are whole.
            None if length > BLOCK => {
                self.careful_until = self.fetched + length as u64;
                return Ok(());
            }
            // Sectors that cannot be read match no checksum, as zeros do not.
            None => self.window.resize(self.window.len() + length, 0),
        }
        self.fetched += length as u64;
        self.take_frames()
    }

    /// The ring was read once round. Gives back the slots of the last frame whose presence is not certain, and their checksums.
    pub(crate) fn end_reading(&mut self) -> Result<Vec<(u32, Vec<Checksum>)>, OpenError> {
        // What is left in the window is no whole frame.
        self.torn.get_or_insert(self.at);
        self.look_for_later_frames()?;
        if self.at < self.header.head {
            return Err(self.damage());
        }
        self.drop_last_checkpoint();
        let last = self.last.as_ref().filter(|last| last.ends_at > self.header.head);
        let fresh = last.into_iter().flat_map(|last| &last.records).flat_map(Record::fresh_slots);
        Ok(fresh.map(|(slot, sums)| (slot, sums.to_vec())).collect())
    }

    /// The last frame's slots did not make it: the frame was never acknowledged, and the next one takes its place.
    pub(crate) fn drop_last(&mut self) {
        let last = self.last.take().expect("the last frame is being verified");
        self.has_torn_tail = true;
        self.at = last.begins_at;
    }

    /// Takes out the records of all frames but the last.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        core::mem::take(&mut self.records)
    }

    /// Takes out the records of the last frame.
    pub(crate) fn take_last(&mut self) -> Vec<Record> {
        self.last.take().map(|last| last.records).unwrap_or_default()
    }

    /// Where the next frame begins.
    pub(crate) fn head(&self) -> u64 {
        self.at
    }

    /// The position of the last checkpoint of a cycle that did not end, if the journal has one.
    pub(crate) fn last_checkpoint(&self) -> Option<u64> {
        self.last_checkpoint
    }

    pub(crate) fn has_torn_tail(&self) -> bool {
        self.has_torn_tail
    }

    /// What is wrong where the next frame should be.
    pub(crate) fn damage(&self) -> OpenError {
        OpenError::JournalCorrupt { offset: self.journal.offset_of(self.at) }
    }

    /// One past the last byte that a frame may have.
    fn end(&self) -> u64 {
        self.header.tail + self.journal.capacity()
    }

    /// Takes what frames the window holds.
    fn take_frames(&mut self) -> Result<(), OpenError> {
        while self.torn.is_none() && self.window.len() - self.taken >= BLOCK {
            let left = &self.window[self.taken..];
            let header = FrameHeader::decode(left, self.at, self.seed);
            let Some(header) = header.filter(|header| header.position + header.length <= self.end()) else {
                self.torn = Some(self.at);
                break;
            };
            if (left.len() as u64) < header.length {
                break;
            }
            self.take_frame(&header);
        }
        if self.torn.is_some() {
            return self.look_for_later_frames();
        }
        self.window.drain(..self.taken);
        self.taken = 0;
        Ok(())
    }

    fn take_frame(&mut self, header: &FrameHeader) {
        let frame = Bytes::copy_from_slice(&self.window[self.taken..self.taken + header.length as usize]);
        match header.records(&frame, self.seed) {
            Some(records) => {
                let is_checkpoint = records.iter().any(|record| matches!(record, Record::Checkpoint { .. }));
                if is_checkpoint && header.position > self.header.tail {
                    self.last_checkpoint = Some(header.position);
                }
                let before = self.take_last();
                self.records.extend(before);
                self.taken += frame.len();
                self.at += header.length;
                self.last = Some(Frame { begins_at: header.position, ends_at: self.at, records });
            }
            None => {
                self.has_torn_tail = true;
                self.torn = Some(self.at);
            }
        }
    }

    /// A checkpoint at the very end, whose cycle did not end, may have taken the last of the room. It says nothing that the
    /// journal before it does not say: it is dropped, so that the next one finds room in its place.
    ///
    /// Not when a torn frame stands behind it: that one found room, so there is enough, and its header would make a frame
    /// that took the checkpoint's place, and was torn as well, look like damage.
    fn drop_last_checkpoint(&mut self) {
        let Some(Frame { begins_at, records, .. }) = &self.last else { return };
        let is_checkpoint = records.iter().any(|record| matches!(record, Record::Checkpoint { .. }));
        let is_behind = *begins_at > self.header.tail && *begins_at >= self.header.head;
        if is_checkpoint && is_behind && !self.has_torn_tail {
            self.at = *begins_at;
            self.last = None;
        }
    }

    /// Behind a torn frame there can be none: only one is in flight. If there is, the torn one was whole once. What has
    /// been looked at is given away.
    fn look_for_later_frames(&mut self) -> Result<(), OpenError> {
        let begin = self.fetched - self.window.len() as u64;
        for (i, sector) in self.window.chunks_exact(BLOCK).enumerate() {
            let position = begin + i as u64 * BLOCK_U64;
            if position > self.at && FrameHeader::decode(sector, position, self.seed).is_some() {
                return Err(self.damage());
            }
        }
        self.window.clear();
        self.taken = 0;
        Ok(())
    }
}
