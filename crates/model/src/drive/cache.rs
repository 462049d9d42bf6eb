//! The on-board cache: segments that each hold one run of sectors, reading on after a read, and writes that are
//! acknowledged before they are on the platter.
//!
//! Reading on goes on until another command needs the arm. How far it has come is not followed sector by sector but
//! caught up when somebody asks, which is the same: nothing but commands can change it.

use super::DriveError;
use super::disk::{Arm, DiskModel};
use super::form::{CacheForm, ReadAhead, ReadAheadAfter, Source, WriteBack};
use base::Time;
use std::collections::VecDeque;

/// What stays the same about a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheShape {
    pub(super) segments: u32,
    pub(super) segment_sectors: u32,
    pub(super) write_segments: u32,
    pub(super) read_ahead_sectors: u32,
    pub(super) read_ahead: ReadAhead,
    pub(super) read_ahead_after: ReadAheadAfter,
    pub(super) write_back: WriteBack,
}

impl CacheShape {
    pub(super) fn new(source: &Source<'_>, form: &CacheForm) -> Result<CacheShape, DriveError> {
        let check = |is_right: bool, field: &str, must: &str| {
            if is_right {
                return Ok(());
            }
            Err(source.error(source.find(field), &format!("cache.{field}"), format!("must be {must}")))
        };
        check((1..=1 << 16).contains(&form.segments), "segments", "from 1 to 65536")?;
        check((1..=1 << 24).contains(&form.segment_sectors), "segment_sectors", "from 1 to 16777216")?;
        check(form.write_segments <= form.segments, "write_segments", "at most `segments`")?;
        check(
            form.read_ahead_sectors <= form.segment_sectors,
            "read_ahead_sectors",
            "at most `segment_sectors`",
        )?;
        Ok(CacheShape {
            segments: form.segments,
            segment_sectors: form.segment_sectors,
            write_segments: form.write_segments,
            read_ahead_sectors: form.read_ahead_sectors,
            read_ahead: form.read_ahead,
            read_ahead_after: form.read_ahead_after,
            write_back: form.write_back,
        })
    }
}

/// A run of sectors in the cache.
#[derive(Clone, Copy, Debug)]
struct Segment {
    begin: u64,
    end: u64,
    is_written: bool,
}

/// The drive reads on by itself, at the end of the segment used last.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// Up to where.
    limit: u64,
    /// When the head was free to read the sector at the segment's end.
    at: Time,
}

/// What a cache has of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Nothing,
    All,
    /// The first `count` sectors; the rest is read from `at` on, which is before now when the head is there already.
    Part {
        count: u32,
        at: Time,
    },
}

/// What a cache holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// The one used last comes first.
    segments: Vec<Segment>,
    reading: Option<Reading>,
    /// When each acknowledged write will be on the platter, rising.
    destages: VecDeque<Time>,
    /// Where the access before ended, if it was a read.
    read_until: Option<u64>,
    /// Whether the read that is served follows on the one before.
    is_sequential: bool,
}

impl Cache {
    /// What there is of a read, whose segment becomes the one used last. The read-ahead is caught up before.
    pub(super) fn find(&mut self, now: Time, sector: u64, count: u32) -> Found {
        self.is_sequential = self.read_until.replace(sector + u64::from(count)) == Some(sector);
        let is_here = |segment: &Segment| (segment.begin..segment.end).contains(&sector);
        // Who reads on where the drive is reading has its segment, even when none of it has come yet.
        let is_next =
            self.reading.is_some() && self.segments.first().is_some_and(|first| first.end == sector);
        let index = if is_next { Some(0) } else { self.segments.iter().position(is_here) };
        let Some(index) = index else { return Found::Nothing };
        let reading = if index == 0 { self.reading } else { None };
        let segment = self.segments[index];
        let has_all = segment.end - sector >= u64::from(count);
        if !(has_all && self.reading.is_some()) {
            // While the drive reads on elsewhere, the segment that it fills stays the first.
            let segment = self.segments.remove(index);
            self.segments.insert(0, segment);
        }
        if has_all {
            return Found::All;
        }
        Found::Part { count: (segment.end - sector) as u32, at: reading.map_or(now, |reading| reading.at) }
    }

    /// After all of a read was found: the drive that reads on there may read on so much farther.
    pub(super) fn read_on_farther(&mut self, shape: &CacheShape, disk: &DiskModel, end: u64) {
        let Some(first) = self.segments.first() else { return };
        let is_here = (first.begin..=first.end).contains(&end);
        if let Some(reading) = self.reading.as_mut().filter(|_| is_here) {
            reading.limit = reading.limit.max(limit(shape, disk, first.begin, end));
        }
    }

    /// After the rest of a read has come, up to `end`, into the segment used last.
    pub(super) fn extend(&mut self, shape: &CacheShape, disk: &DiskModel, end: u64, at: Time) {
        let first = self.segments.first_mut().expect("part of the read was found in it");
        first.end = first.end.max(end);
        first.begin = first.begin.max(first.end.saturating_sub(u64::from(shape.segment_sectors)));
        let begin = first.begin;
        self.read_on(shape, limit(shape, disk, begin, end), at);
    }

    /// After a read from the platter, which was done `at`; reading on begins.
    pub(super) fn fill(&mut self, shape: &CacheShape, disk: &DiskModel, sector: u64, end: u64, at: Time) {
        let begin = sector.max(end.saturating_sub(u64::from(shape.segment_sectors)));
        self.segments.truncate(shape.segments as usize - 1);
        self.segments.insert(0, Segment { begin, end, is_written: false });
        self.read_on(shape, limit(shape, disk, begin, end), at);
    }

    /// Reading on begins, if it does after such a read.
    fn read_on(&mut self, shape: &CacheShape, limit: u64, at: Time) {
        let begins = shape.read_ahead_after == ReadAheadAfter::All || self.is_sequential;
        self.reading = begins.then_some(Reading { limit, at });
    }

    /// Takes written data; what was read from there is no longer true. Returns whether it follows on the write before.
    pub(super) fn write(&mut self, shape: &CacheShape, sector: u64, end: u64) -> bool {
        (self.reading, self.read_until) = (None, None);
        let is_apart = |segment: &Segment| end <= segment.begin || segment.end <= sector;
        let before = self.segments.iter().position(|segment| segment.is_written && segment.end == sector);
        let mut segment = match before {
            Some(index) => self.segments.remove(index),
            None => Segment { begin: sector, end, is_written: true },
        };
        segment.end = end;
        segment.begin = segment.begin.max(end.saturating_sub(u64::from(shape.segment_sectors)));
        self.segments.retain(is_apart);
        self.make_room(shape);
        if shape.write_segments > 0 {
            self.segments.insert(0, segment);
        }
        before.is_some()
    }

    /// Room for one more written segment.
    fn make_room(&mut self, shape: &CacheShape) {
        let written = self.segments.iter().filter(|segment| segment.is_written).count();
        if written >= shape.write_segments as usize
            && let Some(oldest) = self.segments.iter().rposition(|segment| segment.is_written)
        {
            self.segments.remove(oldest);
        }
        self.segments.truncate(shape.segments as usize - 1);
    }

    /// Whether a write that follows on the one before, or does not, is acknowledged before it is on the platter.
    pub(super) fn takes_writes(shape: &CacheShape, is_sequential: bool) -> bool {
        let is_early = match shape.write_back {
            WriteBack::Off => false,
            WriteBack::Sequential => is_sequential,
            WriteBack::Always => true,
        };
        is_early && shape.write_segments > 0
    }

    /// When a segment is free for one more write.
    pub(super) fn free_for_write(&mut self, shape: &CacheShape, now: Time) -> Time {
        while self.destages.front().is_some_and(|&done| done <= now) {
            self.destages.pop_front();
        }
        let over = self.destages.len().checked_sub(shape.write_segments as usize);
        over.map_or(now, |over| self.destages[over])
    }

    /// An acknowledged write will be on the platter at `done`.
    pub(super) fn destage(&mut self, done: Time) {
        self.destages.push_back(done);
    }

    /// Catches up with what was read on until `now`, and moves the arm along.
    pub(super) fn catch_up(&mut self, disk: &DiskModel, arm: &mut Arm, now: Time) {
        let (Some(reading), Some(first)) = (&mut self.reading, self.segments.first_mut()) else { return };
        while first.end < reading.limit && reading.at < now {
            let left = u32::try_from(reading.limit - first.end).unwrap_or(u32::MAX);
            let step = disk.read_on(arm, reading.at, now, first.end, left);
            first.end += u64::from(step.count);
            reading.at = step.at;
            if !step.is_whole {
                break;
            }
        }
        if first.end >= reading.limit {
            self.reading = None;
        }
    }

    /// Another command takes the arm.
    pub(super) fn stop_reading(&mut self) {
        self.reading = None;
    }
}

/// Up to where a drive reads on after a read that ended before `end`, in a segment from `begin` on.
fn limit(shape: &CacheShape, disk: &DiskModel, begin: u64, end: u64) -> u64 {
    let most = (end + u64::from(shape.read_ahead_sectors)).min(disk.geometry.capacity());
    let mut at = end;
    let home = disk.geometry.place(end - 1);
    let is_home = |sector| {
        let place = disk.geometry.place(sector);
        let is_track = shape.read_ahead == ReadAhead::Cylinder || place.surface == home.surface;
        place.cylinder == home.cylinder && is_track
    };
    match shape.read_ahead {
        ReadAhead::Tracks if end < disk.geometry.capacity() => {
            let (first, last) = disk.geometry.track(end);
            let next = if begin < first { (last + 1).min(disk.geometry.capacity() - 1) } else { last };
            (disk.geometry.track(next).1 + 1).min(most)
        }
        ReadAhead::Off | ReadAhead::Tracks => end,
        ReadAhead::Segment => most,
        ReadAhead::Track | ReadAhead::Cylinder => {
            while at < most && is_home(at) {
                at += u64::from(disk.geometry.run(at, (most - at) as u32).count);
            }
            at
        }
    }
}
