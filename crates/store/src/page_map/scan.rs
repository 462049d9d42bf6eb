//! Reading the map when a disk is opened: first the intents behind the newest part, then the parts, from the newest to the oldest.

use super::frame::{FRAME_BYTES_MAX, Found, Frame};
use super::{Entry, MapAt, PageMap, Ring, Said};
use crate::blocks::Blocks;
use crate::metadata::PAGE_MAX;
use crate::page_scan::PageScan;
use crate::slots::Allocator;
use base::{BLOCK_U64, Checksum};
use bytes::Bytes;
use core::ops::Range;
use std::collections::BTreeSet;

/// Bytes of parts that are read at a time.
const WINDOW: u64 = 8 << 20;

/// The map is damaged, or says what cannot be.
#[derive(Debug)]
pub(crate) struct Untrusted;

/// Whether more of the map has to be read.
pub(crate) enum Looked {
    More,
    /// All pages are known but those that [`MapScan::into_pages`] reads.
    Whole,
}

/// How far the map is read.
pub(crate) struct MapScan {
    ring: Ring,
    at: MapAt,
    seed: Checksum,
    /// The journal begins here: later cycles did not end.
    tail: u64,
    /// The last checkpoint of such a cycle that the journal has, and the checkpoint of the last intent.
    last_checkpoint: Option<u64>,
    last_intent: Option<u64>,
    pages: PageScan,
    step: Step,
    /// What is being read, as positions, and what there is of it.
    wanted: Range<u64>,
    got: Vec<u8>,
    stale: BTreeSet<u32>,
    /// Places of which something newer was said.
    seen: Allocator,
    /// Places that are to be read.
    unread: BTreeSet<u32>,
}

enum Step {
    /// The first sector of an intent.
    Intent,
    /// All of it.
    WholeIntent,
    /// Parts that end with what is wanted.
    Parts,
}

impl MapScan {
    /// Of a disk with a map that counts; `pages` has read nothing yet.
    pub(crate) fn new(
        map: &PageMap,
        seed: Checksum,
        tail: u64,
        last_checkpoint: Option<u64>,
        pages: PageScan,
    ) -> Option<MapScan> {
        let (ring, at) = (map.ring?, map.at);
        if !at.is_whole() {
            return None;
        }
        Some(MapScan {
            ring,
            at,
            seed,
            tail,
            last_checkpoint,
            last_intent: None,
            seen: Allocator::new(pages.high()),
            pages,
            step: Step::Intent,
            wanted: at.head..at.head + BLOCK_U64,
            got: Vec::new(),
            stale: BTreeSet::new(),
            unread: BTreeSet::new(),
        })
    }

    /// What has to be read of the pages themselves.
    pub(crate) fn into_pages(self) -> PageScan {
        self.pages
    }

    /// What is to be read next, as `(offset, length)`; nothing when all was read.
    pub(crate) fn next(&self) -> Option<(u64, usize)> {
        let from = self.wanted.start + self.got.len() as u64;
        let (offset, length) = self.ring.piece(from, self.wanted.end);
        (length > 0).then_some((offset, length as usize))
    }

    /// Takes what was read; nothing when it cannot be read.
    pub(crate) fn take(
        &mut self,
        bytes: Option<Bytes>,
        blocks: &mut Blocks,
        map: &mut PageMap,
    ) -> Result<Looked, Untrusted> {
        self.got.extend_from_slice(&bytes.ok_or(Untrusted)?);
        if self.next().is_some() {
            return Ok(Looked::More);
        }
        let got = core::mem::take(&mut self.got);
        match self.step {
            Step::Intent => self.on_intent(&got, map),
            Step::WholeIntent => self.on_whole_intent(&got),
            Step::Parts => self.on_parts(&got, blocks),
        }
    }

    fn on_intent(&mut self, sector: &[u8], map: &mut PageMap) -> Result<Looked, Untrusted> {
        let begin = self.wanted.start;
        match Frame::head(sector, begin, self.seed) {
            // One of a cycle that did not end. A part there is of such a cycle, too, and counts for nothing.
            Found::Frame(head) if head.is_intent() && head.checkpoint > self.tail => {
                self.wanted.end = begin + u64::from(head.length);
                self.last_intent = Some(head.checkpoint);
                self.step = Step::WholeIntent;
                if self.wanted.end - self.at.head > self.ring.bytes {
                    return Err(Untrusted);
                }
                // It is read as a whole.
                Ok(Looked::More)
            }
            // A cycle began that knew nothing of this map.
            Found::Frame(head) if head.is_void() && head.checkpoint > self.tail => Err(Untrusted),
            Found::Damaged => Err(Untrusted),
            // A cycle of which the journal has the checkpoint may have had an intent, or been one of a release that knows no map. One whose checkpoint took the
            // place of that of the last intent, which was dropped, had the same content to write, and no places but those.
            _ if self.last_checkpoint > self.last_intent => Err(Untrusted),
            _ => self.end_intents(begin, map),
        }
    }

    fn on_whole_intent(&mut self, bytes: &[u8]) -> Result<Looked, Untrusted> {
        let begin = self.wanted.start;
        let Some(Frame::Intent(places)) = Frame::decode(bytes, begin, self.seed) else {
            return Err(Untrusted);
        };
        self.stale.extend(places);
        self.wanted = self.wanted.end..self.wanted.end + BLOCK_U64;
        self.step = Step::Intent;
        Ok(Looked::More)
    }

    /// The next intent goes to `head`.
    fn end_intents(&mut self, head: u64, map: &mut PageMap) -> Result<Looked, Untrusted> {
        map.resume(head, self.stale.clone());
        // Those that no header knows as used are created anew.
        let high = self.pages.high();
        self.unread = self.stale.range(..high).copied().collect();
        for &place in &self.unread {
            self.seen.mark(place);
        }
        self.step = Step::Parts;
        self.read_before(self.at.head)
    }

    /// Goes on with the parts that end at `end`.
    fn read_before(&mut self, end: u64) -> Result<Looked, Untrusted> {
        if end == self.at.from {
            let places = core::mem::take(&mut self.unread);
            self.pages.read_only(places);
            return Ok(Looked::Whole);
        }
        self.wanted = self.at.from.max(end.saturating_sub(WINDOW))..end;
        Ok(Looked::More)
    }

    /// Takes the frames that lie in a window, the last one first.
    fn on_parts(&mut self, window: &[u8], blocks: &mut Blocks) -> Result<Looked, Untrusted> {
        let begin = self.wanted.start;
        let mut end = self.wanted.end;
        while end > begin {
            let frames = &window[..(end - begin) as usize];
            let at = Frame::begins_at(frames).ok_or(Untrusted)?;
            let is_sound = at < end && at >= self.at.from && end - at <= FRAME_BYTES_MAX;
            if !is_sound {
                return Err(Untrusted);
            }
            if at < begin {
                // Too long for what is left of this window, or for any.
                self.wanted = at.min(self.at.from.max(end.saturating_sub(WINDOW)))..end;
                return Ok(Looked::More);
            }
            match Frame::decode(&frames[(at - begin) as usize..], at, self.seed).ok_or(Untrusted)? {
                Frame::Intent(_) | Frame::Void => {}
                Frame::Part(entries) => {
                    entries.into_iter().try_for_each(|entry| self.take_entry(entry, blocks))?;
                }
            }
            end = at;
        }
        self.read_before(end)
    }

    fn take_entry(&mut self, entry: Entry, blocks: &mut Blocks) -> Result<(), Untrusted> {
        let Entry { place, is_after_loss, said } = entry;
        if place >= self.pages.high() {
            return Err(Untrusted);
        }
        if !self.seen.mark(place) {
            return Ok(());
        }
        if is_after_loss {
            blocks.pages.found_lost(place);
        }
        match said {
            Said::Free => {}
            Said::Unread => drop(self.unread.insert(place)),
            Said::Page { key, slots, unsure, is_blank } => {
                let home = Said::home(&slots, unsure, place);
                let is_known = key.page < PAGE_MAX && self.pages.enter(key, home, &slots, is_blank, blocks);
                if !is_known {
                    return Err(Untrusted);
                }
            }
        }
        Ok(())
    }
}
