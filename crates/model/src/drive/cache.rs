//! The on-board cache.

use super::DriveError;
use super::form::{CacheForm, ReadAhead, Source, WriteBack};

/// What stays the same about a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheShape {
    pub(super) segments: u32,
    pub(super) segment_sectors: u32,
    pub(super) write_segments: u32,
    pub(super) read_ahead_sectors: u32,
    pub(super) read_ahead: ReadAhead,
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
            write_back: form.write_back,
        })
    }
}
