//! The map of pages: what a brick has to know of every metadata page to open a disk, without reading the pages.
//!
//! A page takes 4 KiB, and a full disk has one for each MiB: to read them all takes minutes. The map says of each page whose it is
//! and which slots it has, in some 30 to 90 bytes, one after the other in a ring at the end of the page region. Two kinds of
//! frames ([`frame`]) follow one another in it:
//!
//! - an *intent* names the places that a destage cycle is about to write, and is on stable storage before the first of them is written;
//! - a *part* says what is at each of these places when the cycle ends, and goes on with a *round* over all places: it adds the
//!   next stretch of them, so that what was said long ago need not be kept. The cycle's flush covers it, and the header that ends the cycle
//!   names it.
//!
//! What counts of a place is what was said last. So opening reads the parts of the last whole round and what follows
//! ([`scan`]), from the newest to the oldest. A cycle that did not end has left its intent behind the newest part: the
//! places that it names are read themselves. Wherever the map is damaged, missing, or says what cannot be, all
//! pages are read instead, and a new round begins. Then the first cycle writes a *void* frame in place of its intent: the map that the header still
//! names counts no more, whether or not it can be read next time.
//!
//! Deliberately absent: which pages there are while the disk is open ([`crate::pages`]).

mod frame;
mod scan;

pub(crate) use frame::{Entry, Said};
pub(crate) use scan::{Looked, MapScan, Untrusted};

use crate::blocks::Blocks;
use crate::device::{Device, ReadPurpose, WritePurpose};
use crate::metadata::Page;
use crate::superblock::Geometry;
use base::{BLOCK, BLOCK_U64, Payload, Time};
use bytes::Bytes;
use core::ops::Range;
use core::time::Duration;
use frame::{ENTRY_BYTES_MAX, Frame};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::wire_struct;

/// Pages that are read by one request.
const READ_PAGES: u32 = 256;
/// Bytes of the ring in which a round is done, for each place that was ever used.
const ROUND_BYTES: u64 = 128;
/// Places that a cycle adds at most: 256 MiB of pages.
const PLACES_MAX: u128 = 65_536;
/// Nobody ever writes so many bytes to a ring.
const POSITION_MAX: u64 = 1 << 62;
/// A disk without a map gets one if one in so many places was never used: what its journal was promised fits beside the ring.
const FREE_SHARE: u32 = 16;
/// Places that a cycle adds at least as long as no round is whole, so that a disk without a map soon has one.
const FIRST_ROUND_PLACES: u64 = 4096;

/// What of the ring counts. Positions count all bytes ever written to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MapAt {
    /// Where the last whole round begins; [`MapAt::NONE`] when there is none.
    from: u64,
    /// Where the last part ends.
    head: u64,
    /// Where the round under way begins, and which place it adds next.
    round_at: u64,
    cursor: u32,
}

wire_struct!(MapAt { from, head, round_at, cursor });

impl MapAt {
    /// Its length.
    pub(crate) const BYTES: usize = 28;
    const NONE: u64 = u64::MAX;

    /// No round is whole, and the first one begins at `head`.
    fn beginning_at(head: u64) -> MapAt {
        MapAt { from: MapAt::NONE, head, round_at: head, cursor: 0 }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.from != MapAt::NONE
    }

    /// Whether it can be said of a ring, on a disk on which places below `high` were used.
    fn is_sound(&self, ring: Ring, high: u32) -> bool {
        let lies_before =
            |from: u64| from.is_multiple_of(BLOCK_U64) && from <= self.head && self.head - from <= ring.bytes;
        self.head.is_multiple_of(BLOCK_U64)
            && self.head < POSITION_MAX
            && self.cursor <= high
            && lies_before(self.round_at)
            && (!self.is_whole() || lies_before(self.from))
    }
}

/// Where the frames lie.
#[derive(Clone, Copy, Debug)]
struct Ring {
    at: u64,
    bytes: u64,
}

impl Ring {
    /// That of a disk, if it has one.
    fn of(geometry: &Geometry) -> Option<Ring> {
        let bytes = u64::from(geometry.map_places()) * BLOCK_U64;
        let at = geometry.page_offset(geometry.page_count - geometry.map_places());
        (bytes > 0).then_some(Ring { at, bytes })
    }

    /// Where positions from `from` on lie, up to `to` or the ring's end, as an offset and a length.
    fn piece(&self, from: u64, to: u64) -> (u64, u64) {
        let place = from % self.bytes;
        (self.at + place, (to - from).min(self.bytes - place))
    }
}

/// The map of an open disk.
#[derive(Debug)]
pub(crate) struct PageMap {
    ring: Option<Ring>,
    at: MapAt,
    /// Places that cycles which did not end may have written. The next cycle says what is there.
    stale: BTreeSet<u32>,
    cycle: Option<Saying>,
    /// The header on the disk may name a map that this one does not go on with.
    is_anew: bool,
    /// Since when no cycle has gone on with a round that has never been whole.
    incomplete_since: Option<Time>,
}

/// What a cycle says.
#[derive(Debug)]
struct Saying {
    /// Where the checkpoint of the cycle is, in the journal.
    checkpoint: u64,
    /// The places that its intent names.
    intent: BTreeSet<u32>,
    entries: BTreeMap<u32, Entry>,
    /// Places that are still to be read: of the round, and stale ones.
    to_read: VecDeque<Range<u32>>,
    is_reading: bool,
    progress: Progress,
    /// What counts when the cycle has ended.
    next: MapAt,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// So many writes of the intent are not durable yet.
    Intending(usize),
    /// The cycle writes its pages.
    Waiting,
    /// They are written, and places are read.
    Reading,
    /// So many writes of the part are not done yet.
    Writing(usize),
}

impl PageMap {
    /// Of a disk on which places below `high` were used, as `header_at` has it.
    pub(crate) fn new(geometry: &Geometry, high: u32, header_at: Option<MapAt>) -> PageMap {
        let limit = geometry.page_count - geometry.map_places();
        let has_room = if header_at.is_some() { high <= limit } else { high <= limit - limit / FREE_SHARE };
        let ring = Ring::of(geometry).filter(|_| has_room);
        let sound = header_at.zip(ring).filter(|(at, ring)| at.is_sound(*ring, high));
        // Frames that are there name checkpoints that the journal has left behind: none of them counts.
        let at = sound.map_or(MapAt::beginning_at(0), |(at, _)| at);
        PageMap { ring, at, stale: BTreeSet::new(), cycle: None, is_anew: false, incomplete_since: None }
    }

    /// The map that was read counts, up to `head`, where the next frame goes; places are stale.
    fn resume(&mut self, head: u64, stale: BTreeSet<u32>) {
        self.at.head = head;
        self.stale = stale;
    }

    /// All pages are read instead of the map: a new one begins.
    pub(crate) fn begin_anew(&mut self, now: Time, high: u32) {
        (self.at, self.is_anew) = (MapAt::beginning_at(self.at.head), true);
        self.stale.clear();
        self.incomplete_since = (high > 0 && self.ring.is_some()).then_some(now);
    }

    /// How many places of the region may have pages.
    pub(crate) fn places(&self, geometry: &Geometry) -> u32 {
        geometry.page_count - self.ring.map_or(0, |ring| (ring.bytes / BLOCK_U64) as u32)
    }

    /// When a cycle is due for the sake of a round that has never been whole.
    pub(crate) fn due(&self, idle_ns: u64) -> Option<Time> {
        self.incomplete_since.map(|since| since + Duration::from_nanos(idle_ns))
    }

    /// A cycle, whose checkpoint is at that position of the journal, is about to write these places. False when it need not wait until the intent is durable.
    pub(crate) fn begin_cycle(
        &mut self,
        checkpoint: u64,
        places: BTreeSet<u32>,
        device: &mut Device,
    ) -> bool {
        let Some(ring) = self.ring else { return false };
        let intent = if self.is_anew { Frame::Void } else { Frame::Intent(places.iter().copied().collect()) };
        let parts = append(ring, &mut self.at.head, &intent, checkpoint, true, device);
        self.cycle = Some(Saying {
            checkpoint,
            intent: places,
            entries: BTreeMap::new(),
            to_read: VecDeque::new(),
            is_reading: false,
            progress: Progress::Intending(parts),
            next: self.at,
        });
        true
    }

    /// A write is done. True when the intent is durable now.
    pub(crate) fn on_written(&mut self) -> bool {
        let saying = self.cycle.as_mut().expect("a cycle has asked for it");
        match &mut saying.progress {
            Progress::Intending(parts) => {
                *parts -= 1;
                let is_durable = *parts == 0;
                if is_durable {
                    saying.progress = Progress::Waiting;
                }
                is_durable
            }
            Progress::Writing(parts) => {
                *parts -= 1;
                false
            }
            Progress::Waiting | Progress::Reading => unreachable!("nothing of the map is being written"),
        }
    }

    /// The cycle has written all of its pages and leaves these entries. True when the part that says so is written, too.
    pub(crate) fn finish(&mut self, entries: &mut Vec<Entry>, blocks: &Blocks, device: &mut Device) -> bool {
        let (Some(ring), Some(saying)) = (self.ring, self.cycle.as_mut()) else { return true };
        if saying.progress == Progress::Waiting {
            for entry in entries.drain(..) {
                debug_assert!(
                    saying.intent.contains(&entry.place),
                    "place {} was written unannounced",
                    entry.place
                );
                saying.entries.insert(entry.place, entry);
            }
            let high = blocks.pages.high();
            saying.next.cursor = round(&self.at, ring, saying.entries.len(), high);
            for &place in self.stale.range(..high).filter(|place| !saying.entries.contains_key(place)) {
                join(&mut saying.to_read, place);
            }
            saying.to_read.extend(pieces(self.at.cursor..saying.next.cursor));
            saying.progress = Progress::Reading;
        }
        match saying.progress {
            Progress::Reading if saying.is_reading => false,
            Progress::Reading => match saying.to_read.front() {
                Some(places) => {
                    let (offset, length) =
                        (device.geometry().page_offset(places.start), places.len() * BLOCK);
                    device.read(ReadPurpose::Map, offset, length);
                    saying.is_reading = true;
                    false
                }
                None => self.write_part(blocks, device),
            },
            Progress::Writing(parts) => parts == 0,
            Progress::Intending(_) | Progress::Waiting => unreachable!("the cycle has written its pages"),
        }
    }

    /// Takes the pages that were asked for; nothing when they cannot be read.
    pub(crate) fn on_read(&mut self, bytes: Option<&Bytes>, blocks: &Blocks, device: &Device) {
        let saying = self.cycle.as_mut().expect("a cycle has asked for it");
        let places = saying.to_read.pop_front().expect("places are being read");
        saying.is_reading = false;
        for (i, place) in places.enumerate() {
            if saying.entries.contains_key(&place) {
                continue;
            }
            let bytes = bytes.and_then(|bytes| bytes.get(i * BLOCK..(i + 1) * BLOCK)).unwrap_or_default();
            // A stale place is said to be free, a place of the round need not be.
            let entry = entry_of(place, bytes, blocks, device);
            if entry.said != Said::Free || entry.is_after_loss || self.stale.contains(&place) {
                saying.entries.insert(place, entry);
            }
        }
    }

    /// Writes what the cycle says. True when it says nothing.
    fn write_part(&mut self, blocks: &Blocks, device: &mut Device) -> bool {
        let (Some(ring), Some(saying)) = (self.ring, self.cycle.as_mut()) else { return true };
        let entries: Vec<Entry> = core::mem::take(&mut saying.entries).into_values().collect();
        let is_round_whole = saying.next.cursor >= blocks.pages.high();
        let mut parts = 0;
        if !entries.is_empty() {
            parts = append(ring, &mut self.at.head, &Frame::Part(entries), saying.checkpoint, false, device);
        }
        saying.progress = Progress::Writing(parts);
        let (before, end) = (self.at, self.at.head);
        let fits = |from: u64| end - from <= ring.bytes;
        let next = &mut saying.next;
        next.head = end;
        if is_round_whole {
            (next.from, next.round_at, next.cursor) = (before.round_at, end, 0);
        }
        // Of what is overwritten nothing counts.
        if next.is_whole() && !fits(next.from) {
            next.from = MapAt::NONE;
        }
        if !fits(next.round_at) {
            (next.round_at, next.cursor) = (end, 0);
        }
        parts == 0
    }

    /// What the header that ends the cycle says.
    pub(crate) fn for_header(&self) -> Option<MapAt> {
        self.cycle.as_ref().map(|saying| saying.next)
    }

    /// The header that ends the cycle is durable.
    pub(crate) fn end_cycle(&mut self, now: Time) {
        let Some(saying) = self.cycle.take() else { return };
        (self.at, self.is_anew) = (saying.next, false);
        self.stale.clear();
        self.incomplete_since = (!self.at.is_whole()).then_some(now);
    }
}

/// Which place the round under way has come to when it keeps up with the ring: it is over before half of the ring is full, and before what has
/// to be read grows long. `said` entries are to be written with what it adds.
fn round(at: &MapAt, ring: Ring, said: usize, high: u32) -> u32 {
    let budget = u128::from((u64::from(high) * ROUND_BYTES).max(BLOCK_U64).min(ring.bytes / 2));
    let entry = ENTRY_BYTES_MAX as u64;
    let spent = u128::from(at.head - at.round_at + BLOCK_U64 + said as u64 * entry);
    let (all, done) = (u128::from(high), u128::from(at.cursor));
    // So many that `(done + more) / all = (spent + more * entry) / budget`.
    let lag = (all * spent).saturating_sub(done * budget);
    let more = match budget.saturating_sub(all * u128::from(entry)) {
        0 => all,
        gain => lag.div_ceil(gain),
    };
    let least = if at.is_whole() { 0 } else { FIRST_ROUND_PLACES };
    (done + more.max(u128::from(least)).min(PLACES_MAX)).min(all) as u32
}

/// Writes a frame at the head; how many writes that takes.
fn append(
    ring: Ring,
    head: &mut u64,
    frame: &Frame,
    checkpoint: u64,
    durable: bool,
    device: &mut Device,
) -> usize {
    let bytes = frame.encode(*head, checkpoint, device.seed());
    let (end, mut at, mut parts) = (*head + bytes.len() as u64, *head, 0);
    while at < end {
        let (offset, length) = ring.piece(at, end);
        let from = (at - *head) as usize;
        let payload = Payload::from(bytes.slice(from..from + length as usize));
        device.write(WritePurpose::Map, offset, payload, durable);
        at += length;
        parts += 1;
    }
    *head = end;
    parts
}

/// What is at a place, as the disk has it.
fn entry_of(place: u32, bytes: &[u8], blocks: &Blocks, device: &Device) -> Entry {
    let is_after_loss = blocks.pages.site(place).is_after_loss;
    if !blocks.pages.places().is_used(place) {
        return Entry { place, is_after_loss, said: Said::Free };
    }
    let decoded = Page::decode(bytes, place, device.geometry().slot_count, device.seed());
    let is_at_home = |key| blocks.pages.home(key).is_some_and(|home| home.place == place);
    let key = decoded.key.filter(|&key| decoded.damaged == 0 && is_at_home(key));
    // Whoever opens the disk is to look there.
    let said = key.map_or(Said::Unread, |key| Said::of(key, &decoded.page));
    Entry { place, is_after_loss, said }
}

/// Cuts a range into pieces that one request reads.
fn pieces(places: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let end = places.end;
    places.step_by(READ_PAGES as usize).map(move |start| start..end.min(start + READ_PAGES))
}

/// Adds a place behind all others to what is read, to the last range if it goes on there.
fn join(ranges: &mut VecDeque<Range<u32>>, place: u32) {
    match ranges.back_mut() {
        Some(last) if last.end == place && last.len() < READ_PAGES as usize => last.end += 1,
        _ => ranges.push_back(place..place + 1),
    }
}

/// Writes a map that says what is at so many places, and behind it the intent of an interrupted cycle. Gives back what the header says of it.
#[cfg(feature = "full")]
pub(crate) fn write_full_map<E>(
    geometry: &Geometry,
    seed: base::Checksum,
    places: u32,
    said: impl Fn(u32) -> Said,
    interrupted: Vec<u32>,
    write: &mut dyn FnMut(u64, Bytes) -> Result<(), E>,
) -> Result<MapAt, E> {
    let ring = Ring::of(geometry).expect("a disk that is large enough for a map");
    let mut at = 0;
    let mut put = |frame: Frame| {
        let bytes = frame.encode(at, 1, seed);
        let length = bytes.len() as u64;
        let (offset, piece) = ring.piece(at, at + length);
        assert_eq!(length, piece, "a round takes half of the ring at most");
        at += length;
        write(offset, bytes).map(|()| at)
    };
    let mut head = 0;
    for first in (0..places).step_by(FIRST_ROUND_PLACES as usize) {
        let all = first..places.min(first + FIRST_ROUND_PLACES as u32);
        let entry = |place| Entry { place, is_after_loss: false, said: said(place) };
        head = put(Frame::Part(all.map(entry).collect()))?;
    }
    if !interrupted.is_empty() {
        put(Frame::Intent(interrupted))?;
    }
    Ok(MapAt { from: 0, head, round_at: head, cursor: 0 })
}
