//! A participant's notes: all of them in memory, the latest in the journal, the others in *sheets*.
//!
//! A checkpoint repeats every note that no sheet says, so these may take only a share of the journal. Beyond half of that share, a
//! checkpoint first writes the notes around those that changed to sheets: slots of their own, two copies each, that go to the disk with
//! the checkpoint, which says where all sheets are. Each sheet has the notes of one range of keys; to change it is to write it anew.
//! A checkpoint that a crash finds at the journal's end is dropped (`frames`), so its sheets need not be looked at: they may not have come to
//! the disk. So the sheets of the checkpoint before stay as they are until the journal begins behind it: only then are their slots free.
//!
//! Deliberately absent: when a checkpoint is made (`destage`), and which outcomes it repeats (`completions`).

use crate::blocks::Blocks;
use crate::record::{Record, SheetAt, aligned};
use crate::superblock::SLOT_BYTES;
use base::{BLOCK, Payload};
use bytes::Bytes;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};
use wire::disk::{HORIZON_NOTE, StoreError};
use wire::{Reader, Wire};

/// What a note takes beside key and value.
const NOTE_BYTES: usize = 8;
/// What the place of a sheet of one slot takes in a checkpoint: [`SheetAt::bytes`].
const SHEET_BYTES: usize = 96;
/// How full a new sheet is made: there is room for what comes to it later.
const FILL_BYTES: usize = SLOT_BYTES as usize / 4 * 3;
/// Sheets that one checkpoint writes, unless a single range makes more.
const WRITTEN_MAX: usize = 16;
const COPIES: usize = 2;

/// Notes, as `(key, value)`.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Debug)]
struct Note {
    value: Vec<u8>,
    /// Whether a sheet may say anything of its key.
    in_sheet: bool,
}

#[derive(Debug)]
struct Sheet {
    at: SheetAt,
    /// One of its copies cannot be read.
    is_worn: bool,
    /// What it says in vain, in bytes: of keys that are gone, or of which something else is so.
    vain_bytes: usize,
}

/// How far the sheets are read when a disk is opened.
#[derive(Debug, Default)]
struct Reading {
    sheet: usize,
    /// How many of its slots: both copies of the first one, then both of the next.
    slots: usize,
    /// What there is of it.
    content: Vec<u8>,
    is_worn: bool,
    /// Loose keys of which sheets say something, in vain.
    named: BTreeSet<Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Notes {
    all: BTreeMap<Vec<u8>, Note>,
    /// Keys of which no sheet says what is so now; those that are in none of `all` are gone.
    loose: BTreeSet<Vec<u8>>,
    loose_bytes: usize,
    /// By their first keys.
    sheets: BTreeMap<Vec<u8>, Sheet>,
    /// What all of them say in vain, in bytes.
    vain_bytes: usize,
    /// What their places take in a checkpoint.
    places_bytes: usize,
    /// As the journal names them, before they are read.
    unread: Vec<SheetAt>,
    reading: Reading,
    /// Slots of sheets that were written anew.
    retired: BTreeSet<u32>,
    /// How many slots there were when the last checkpoint found no room for a sheet.
    stuck_at: Option<u32>,
    /// How many sheets were ever written since the disk was opened.
    sheets_written: u64,
    bytes_max: usize,
}

impl Notes {
    /// None. Those that no sheet says take at most so many bytes of a checkpoint, and the places of sheets as much.
    pub(crate) fn new(bytes_max: usize) -> Notes {
        Notes {
            all: BTreeMap::new(),
            loose: BTreeSet::new(),
            loose_bytes: 0,
            sheets: BTreeMap::new(),
            vain_bytes: 0,
            places_bytes: 0,
            unread: Vec::new(),
            reading: Reading::default(),
            retired: BTreeSet::new(),
            stuck_at: None,
            sheets_written: 0,
            bytes_max,
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.all.get(key).map(|note| &note.value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.all.iter().map(|(key, note)| (key, &note.value))
    }

    /// Those that a checkpoint repeats.
    pub(crate) fn loose(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.loose.iter().filter_map(|key| Some((key, &self.all.get(key)?.value)))
    }

    /// Refuses a note that is longer than all may be.
    pub(crate) fn check_size(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let bytes = value.map_or(0, |value| note_bytes(key, value));
        if bytes > self.bytes_max { Err(StoreError::NoSpace) } else { Ok(()) }
    }

    /// Whether the next checkpoint has room for a note, beside so many slots that are left for sheets: [`StoreError::NoRoomYet`] where it first has to
    /// write some, and [`StoreError::NoSpace`] where it cannot. One that takes no more than what it replaces always has room.
    pub(crate) fn admit(&self, key: &[u8], value: Option<&[u8]>, slots: u32) -> Result<(), StoreError> {
        let new = value.map_or(key.len() + NOTE_BYTES, |value| note_bytes(key, value));
        let (old, others) = (self.loose_bytes_of(key), self.loose_bytes - self.loose_bytes_of(key));
        let replaced = self.get(key).map_or(0, |value| note_bytes(key, value));
        if new <= old || others + new <= self.bytes_max || !self.wants_sheets() {
            return Ok(());
        }
        if self.are_due(slots) {
            return Err(StoreError::NoRoomYet);
        }
        // Who says that something is gone gives room, if not at once; and who says something else as short takes none in the end.
        let is_short = value.is_none() || new <= replaced;
        let is_welcome = is_short && others + new <= 2 * self.bytes_max;
        if is_welcome { Ok(()) } else { Err(StoreError::NoSpace) }
    }

    /// Sets or removes a note.
    pub(crate) fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.loose_bytes -= self.loose_bytes_of(&key);
        let old = self.all.remove(&key);
        let in_sheet = match &old {
            Some(old) => old.in_sheet,
            None => self.loose.contains(&key) || !self.unread.is_empty(),
        };
        if let Some(old) = old.filter(|old| old.in_sheet && !self.loose.contains(&key)) {
            self.say_in_vain(&key, note_bytes(&key, &old.value));
        }
        match value {
            Some(value) => {
                self.loose.insert(key.clone());
                self.all.insert(key.clone(), Note { value, in_sheet });
            }
            None if in_sheet => drop(self.loose.insert(key.clone())),
            None => drop(self.loose.remove(&key)),
        }
        self.loose_bytes += self.loose_bytes_of(&key);
    }

    /// A checkpoint says which notes there are; where its sheets are follows.
    pub(crate) fn reset(&mut self, notes: Pairs) {
        // The journal still begins before: the slots are not free.
        let superseded = self.unread.drain(..).flat_map(|sheet| sheet.slots);
        self.retired.extend(superseded);
        self.loose = notes.iter().map(|(key, _)| key.clone()).collect();
        self.loose_bytes = notes.iter().map(|(key, value)| note_bytes(key, value)).sum();
        self.all = notes.into_iter().map(|(key, value)| (key, Note { value, in_sheet: false })).collect();
    }

    /// The same checkpoint says where sheets are.
    pub(crate) fn reset_sheets(&mut self, sheets: Vec<SheetAt>) {
        self.all.values_mut().for_each(|note| note.in_sheet = true);
        for slot in sheets.iter().flat_map(|sheet| &sheet.slots) {
            self.retired.remove(slot);
        }
        self.unread = sheets;
    }

    /// Which slot to read next, when a disk is opened.
    pub(crate) fn to_read(&self) -> Option<u32> {
        let sheet = self.unread.get(self.reading.sheet)?;
        let (number, copy) = (self.reading.slots / COPIES, self.reading.slots % COPIES);
        Some(sheet.slots[copy * (sheet.slots.len() / COPIES) + number])
    }

    /// Takes the content of that slot, nothing where it cannot be read. An error is a slot that no copy says.
    pub(crate) fn take(&mut self, content: Option<&Bytes>) -> Result<(), u32> {
        let slot = self.to_read().expect("a slot was asked for");
        let sheet = &self.unread[self.reading.sheet];
        let reading = &mut self.reading;
        let number = reading.slots / COPIES;
        let is_last_copy = reading.slots % COPIES + 1 == COPIES;
        match content.filter(|content| sheet.is_slot(number, content)) {
            Some(content) if reading.content.len() == number * SLOT_BYTES as usize => {
                reading.content.extend_from_slice(content);
            }
            Some(_) => {}
            None => reading.is_worn = true,
        }
        if is_last_copy && reading.content.len() == number * SLOT_BYTES as usize {
            return Err(slot);
        }
        reading.slots += 1;
        if reading.slots < sheet.slots.len() {
            return Ok(());
        }
        let Reading { sheet: index, content, is_worn, named, .. } = core::mem::take(reading);
        self.reading = Reading { sheet: index + 1, named, ..Reading::default() };
        let pairs = Pairs::decode(&mut Reader::new(&content)).map_err(|_| slot)?;
        let (first, _) = pairs.first().ok_or(slot)?;
        let at = self.unread[index].clone();
        self.places_bytes += at.bytes();
        let mut sheet = Sheet { at, is_worn, vain_bytes: 0 };
        let first = first.clone();
        for (key, value) in pairs {
            if self.loose.contains(&key) {
                sheet.vain_bytes += note_bytes(&key, &value);
                self.reading.named.insert(key);
            } else {
                self.all.insert(key, Note { value, in_sheet: true });
            }
        }
        self.vain_bytes += sheet.vain_bytes;
        self.sheets.insert(first, sheet);
        if self.to_read().is_none() {
            self.end_reading();
        }
        Ok(())
    }

    /// All sheets are read: what came and went since is in none of them, and no checkpoint need say that it is gone.
    fn end_reading(&mut self) {
        self.unread.clear();
        let named = core::mem::take(&mut self.reading).named;
        for key in core::mem::take(&mut self.loose) {
            let in_sheet = named.contains(&key);
            let note = self.all.get_mut(&key);
            if note.is_some() || in_sheet {
                note.into_iter().for_each(|note| note.in_sheet = in_sheet);
                self.loose.insert(key);
            }
        }
        self.loose_bytes = self.loose.iter().map(|key| self.loose_bytes_of(key)).sum();
    }

    /// The slots that are taken.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        let of_sheets = self.sheets.values().flat_map(|sheet| &sheet.at.slots);
        of_sheets.chain(&self.retired).copied()
    }

    /// The first slot of each sheet of which a copy cannot be read.
    pub(crate) fn worn(&self) -> impl Iterator<Item = u32> {
        self.sheets.values().filter(|sheet| sheet.is_worn).map(|sheet| sheet.at.slots[0])
    }

    /// Whether it is time for a checkpoint that writes sheets, where so many slots are left for them.
    pub(crate) fn are_due(&self, slots: u32) -> bool {
        self.wants_sheets() && self.stuck_at.is_none_or(|had| slots > had)
    }

    /// How many sheets there are.
    pub(crate) fn sheets(&self) -> usize {
        self.sheets.len()
    }

    /// How many were written since the disk was opened.
    pub(crate) fn sheets_written(&self) -> u64 {
        self.sheets_written
    }

    /// Whether the next checkpoint writes sheets: a good part of the share is taken, or half of what sheets say is in vain.
    fn wants_sheets(&self) -> bool {
        self.loose_bytes > self.bytes_max / 2 || self.vain_bytes > self.sheets.len().max(2) * FILL_BYTES / 2
    }

    /// A sheet says something of this key that is no longer so.
    fn say_in_vain(&mut self, key: &[u8], bytes: usize) {
        let mut before = self.sheets.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        if let Some((_, sheet)) = before.next_back() {
            sheet.vain_bytes += bytes;
            self.vain_bytes += bytes;
        }
    }

    /// Writes sheets, if it is time. Gives back what is to be written, by slots.
    pub(crate) fn write_sheets(&mut self, blocks: &mut Blocks) -> Vec<(u32, Payload)> {
        let mut written = Vec::new();
        self.stuck_at = None;
        let is_worn = |notes: &Notes| notes.sheets.values().any(|sheet| sheet.is_worn);
        if !self.wants_sheets() && !is_worn(self) {
            return written;
        }
        let mut sheets = 0;
        for first in self.ranges() {
            let is_enough = self.loose_bytes <= self.bytes_max / 4
                && self.vain_bytes <= self.sheets.len().max(4) * FILL_BYTES / 4;
            let is_worn = self.sheets.get(&first).is_some_and(|sheet| sheet.is_worn);
            if sheets >= WRITTEN_MAX || is_enough && !is_worn {
                break;
            }
            match self.write_range(&first, blocks, &mut written) {
                Some(count) => sheets += count,
                // Another one may take less room, or give some.
                None => continue,
            }
        }
        let is_stuck = written.is_empty() && self.wants_sheets();
        self.stuck_at = is_stuck.then(|| blocks.slots.available());
        written
    }

    /// The first keys of the sheets that are to be written: worn ones, and then those of which most is loose or in vain.
    fn ranges(&self) -> Vec<Vec<u8>> {
        let weight = |sheet: &Sheet| if sheet.is_worn { usize::MAX / 2 } else { sheet.vain_bytes };
        let sheets = self.sheets.iter().map(|(first, sheet)| (first.as_slice(), weight(sheet)));
        let mut loose: BTreeMap<&[u8], usize> = sheets.filter(|(_, weight)| *weight > 0).collect();
        for key in self.loose.iter().filter(|key| *key != HORIZON_NOTE) {
            let before =
                self.sheets.range::<[u8], _>((Bound::Unbounded, Bound::Included(key.as_slice()))).next_back();
            let first = before.or_else(|| self.sheets.first_key_value()).map_or(&[][..], |(first, _)| first);
            *loose.entry(first).or_default() += self.loose_bytes_of(key);
        }
        let mut ranges: Vec<(&[u8], usize)> = loose.into_iter().collect();
        ranges.sort_by_key(|(_, bytes)| core::cmp::Reverse(*bytes));
        ranges.into_iter().map(|(first, _)| first.to_vec()).collect()
    }

    /// Writes the notes of one range to sheets, with those of the ranges behind it as long as they fit into the same one. Gives back how many
    /// sheets that takes; nothing where there is no room, or the range is gone.
    fn write_range(
        &mut self,
        first: &[u8],
        blocks: &mut Blocks,
        written: &mut Vec<(u32, Payload)>,
    ) -> Option<usize> {
        if !self.sheets.is_empty() && !self.sheets.contains_key(first) {
            return Some(0);
        }
        let is_first = self.sheets.first_key_value().is_none_or(|(key, _)| key == first);
        let from = if is_first { Bound::Unbounded } else { Bound::Included(first) };
        let next = |key: &[u8]| {
            let mut behind = self.sheets.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded));
            behind.next().map(|(key, _)| key.clone())
        };
        let bytes = |until: Option<&[u8]>| {
            let pairs = self.pairs((from, until.map_or(Bound::Unbounded, Bound::Excluded)));
            pairs.map(|(key, value)| note_bytes(key, value)).sum::<usize>()
        };
        let mut until = next(first);
        while let Some(after) =
            until.as_deref().map(next).filter(|after| bytes(after.as_deref()) <= FILL_BYTES)
        {
            until = after;
        }
        let range = (from, until.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let contents = cut(self.pairs(range));
        let slots: usize =
            contents.iter().map(|(_, content)| COPIES * content.len() / SLOT_BYTES as usize).sum();
        let replaced = self.sheets.range::<[u8], _>(range).count();
        let grows = (slots / COPIES).saturating_sub(replaced) * SHEET_BYTES;
        let is_listed = grows == 0 || self.places_bytes + grows <= self.bytes_max;
        if slots > blocks.slots.available() as usize || !is_listed {
            return None;
        }
        let keys: Vec<Vec<u8>> = self.sheets.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let sheet = self.sheets.remove(&key).expect("just seen");
            self.vain_bytes -= sheet.vain_bytes;
            self.places_bytes -= sheet.at.bytes();
            self.retired.extend(sheet.at.slots);
        }
        let count = contents.len();
        self.sheets_written += count as u64;
        for (first, content) in contents {
            let per_copy = content.len() / SLOT_BYTES as usize;
            let sums = (0..content.len() / BLOCK).map(|block| content.block(block).checksum()).collect();
            let slots: Vec<u32> = (0..COPIES * per_copy).map(|_| blocks.direct_slot()).collect();
            for (place, slot) in slots.iter().enumerate() {
                let at = place % per_copy * SLOT_BYTES as usize;
                written.push((*slot, content.slice(at, SLOT_BYTES as usize)));
            }
            let at = SheetAt { slots, sums };
            self.places_bytes += at.bytes();
            self.sheets.insert(first, Sheet { at, is_worn: false, vain_bytes: 0 });
        }
        let said: Vec<Vec<u8>> =
            self.loose.range::<[u8], _>(range).filter(|key| *key != HORIZON_NOTE).cloned().collect();
        for key in said {
            self.loose_bytes -= self.loose_bytes_of(&key);
            self.loose.remove(&key);
        }
        for (_, note) in self.all.range_mut::<[u8], _>(range) {
            note.in_sheet = true;
        }
        Some(count)
    }

    /// The notes of a range, without the horizon, which every checkpoint says.
    fn pairs(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        let pairs = self.all.range::<[u8], _>(range).map(|(key, note)| (key, &note.value));
        pairs.filter(|(key, _)| *key != HORIZON_NOTE)
    }

    /// What follows the checkpoint's own record in its frame: where the sheets are, and which keys that they say are gone.
    pub(crate) fn records(&self) -> Vec<Record> {
        let sheets: Vec<SheetAt> = self.sheets.values().map(|sheet| sheet.at.clone()).collect();
        let places = (!sheets.is_empty()).then_some(Record::Sheets { sheets });
        let gone = self.loose.iter().filter(|key| !self.all.contains_key(*key));
        let gone = gone.map(|key| Record::Note { key: key.clone(), value: None });
        places.into_iter().chain(gone).collect()
    }

    /// A bound of what they take of the next checkpoint.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        self.loose_bytes + self.places_bytes + WRITTEN_MAX * SHEET_BYTES
    }

    /// The journal begins behind the checkpoint that wrote sheets anew: the slots of the old ones are free.
    pub(crate) fn take_retired(&mut self) -> BTreeSet<u32> {
        core::mem::take(&mut self.retired)
    }

    fn loose_bytes_of(&self, key: &[u8]) -> usize {
        if !self.loose.contains(key) {
            return 0;
        }
        self.all.get(key).map_or(key.len() + NOTE_BYTES, |note| note_bytes(key, &note.value))
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check(&self) {
        let bytes: usize = self.loose.iter().map(|key| self.loose_bytes_of(key)).sum();
        assert_eq!(bytes, self.loose_bytes, "the account of notes that no sheet says");
        let places: usize = self.sheets.values().map(|sheet| sheet.at.bytes()).sum();
        assert_eq!(places, self.places_bytes, "the account of the places of sheets");
        let vain: usize = self.sheets.values().map(|sheet| sheet.vain_bytes).sum();
        assert_eq!(vain, self.vain_bytes, "the account of what sheets say in vain");
        let said = self.all.iter().all(|(key, note)| note.in_sheet || self.loose.contains(key));
        assert!(said, "a note is in no sheet and in no checkpoint");
    }
}

fn note_bytes(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + NOTE_BYTES
}

/// Notes cut into the contents of sheets, each with its first key; whole slots.
fn cut<'a>(pairs: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) -> Vec<(Vec<u8>, Payload)> {
    let mut sheets: Vec<(Pairs, usize)> = Vec::new();
    for (key, value) in pairs {
        let bytes = note_bytes(key, value);
        match sheets.last_mut() {
            Some((pairs, length)) if *length + bytes <= FILL_BYTES => {
                pairs.push((key.clone(), value.clone()));
                *length += bytes;
            }
            _ => sheets.push((vec![(key.clone(), value.clone())], bytes)),
        }
    }
    let content = |pairs: &Pairs| {
        let encoded = pairs.to_bytes();
        let length = encoded.len().next_multiple_of(SLOT_BYTES as usize);
        let (mut buffer, start) = aligned(length);
        buffer[start..start + encoded.len()].copy_from_slice(&encoded);
        Payload::from(Bytes::from(buffer).slice(start..start + length))
    };
    sheets.iter().map(|(pairs, _)| (pairs[0].0.clone(), content(pairs))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The journal still begins before the checkpoint that named them, and a repair of its end may bring that one back.
    #[test]
    fn the_slots_of_a_superseded_checkpoint_are_taken_while_the_journal_has_it() {
        let mut notes = Notes::new(1000);
        let sheet = |slots: [u32; 2]| SheetAt { slots: slots.to_vec(), sums: vec![0; 16] };
        for sheets in [vec![sheet([1, 2]), sheet([3, 4])], vec![sheet([1, 2]), sheet([5, 6])]] {
            notes.reset(Vec::new());
            notes.reset_sheets(sheets);
        }
        assert_eq!(notes.retired, BTreeSet::from([3, 4]));
    }
}
