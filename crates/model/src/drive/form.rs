//! A drive's file as it is written, and the checks that each field must pass. Times are in milliseconds, sizes in sectors
//! of 512 bytes, skews in sectors of their zone. `docs` of the fields are the format's documentation.

use super::DriveError;
use serde::Deserialize;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriveForm {
    /// Maker, model and size, for people.
    pub(super) name: String,
    /// Sectors that can be addressed; the mapping may have room for more.
    pub(super) capacity_sectors: Spanned<u64>,
    /// A disk with an arm and platters; otherwise `access` stands.
    pub(super) disk: Option<DiskForm>,
    /// A device whose accesses all take the same time.
    pub(super) access: Option<AccessForm>,
    /// How far the model may be from a trace of the real drive: the RMS demerit in milliseconds. Nobody knows when absent.
    pub(super) demerit_max_ms: Option<Spanned<f64>>,
    /// Overheads and bus; none when absent.
    #[serde(default)]
    pub(super) controller: ControllerForm,
    /// The on-board cache; none when absent.
    pub(super) cache: Option<CacheForm>,
    /// The zones of a disk, from the outermost.
    #[serde(default)]
    pub(super) zone: Vec<Spanned<ZoneForm>>,
}

/// The mechanics of a disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskForm {
    /// Cylinders, used or not.
    pub(super) cylinders: Spanned<u32>,
    /// Surfaces, each with a head.
    pub(super) surfaces: Spanned<u32>,
    /// Turns in a minute.
    pub(super) rpm: Spanned<f64>,
    /// How addresses wind over the surfaces of a zone.
    pub(super) mapping: Mapping,
    /// Where the spare sectors lie.
    #[serde(default)]
    pub(super) sparing: Sparing,
    /// Cylinders that share spares, for `range-end`.
    pub(super) sparing_cylinders: Option<Spanned<u32>>,
    /// To another surface of the same cylinder. A seek hides it.
    pub(super) head_switch_ms: Spanned<f64>,
    /// Added to any movement before a write; some drives seek faster to write than to read.
    pub(super) write_settle_ms: Spanned<f64>,
    /// `[cylinders, milliseconds]`, measured, by rising distance. Straight lines lead from point to point, and on.
    #[serde(default)]
    pub(super) seek_ms: Vec<Spanned<(u32, f64)>>,
    /// Beyond the last point of `seek_ms`, instead of a straight line.
    pub(super) seek_equation: Option<Spanned<SeekEquation>>,
}

/// `a + b sqrt(d)` below a distance, `c + e d` from it on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeekEquation {
    /// The distance from which the line holds.
    pub(super) line_from: u32,
    /// `a`.
    pub(super) root_base_ms: f64,
    /// `b`.
    pub(super) root_ms: f64,
    /// `c`.
    pub(super) line_base_ms: f64,
    /// `e`.
    pub(super) line_ms: f64,
}

/// How addresses wind over the surfaces of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mapping {
    /// All surfaces of a cylinder in order, then the next cylinder from the first surface.
    Cylinder,
    /// As before, every second cylinder of a zone backwards, so that a step to the next cylinder keeps its head.
    Serpentine,
}

/// Where the spare sectors lie. Defective sectors are slipped over, and shift what follows up to the next spares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sparing {
    /// `spares` sectors at the end of each zone.
    #[default]
    ZoneEnd,
    /// At the end of the disk: what is slipped moves all that follows.
    DiskEnd,
    /// `spares` whole tracks at the end of each zone; `slipped` are tracks.
    ZoneTracks,
    /// `spares` sectors at the end of each track.
    TrackEnd,
    /// `spares` sectors at the end of every `sparing_cylinders` cylinders of a zone.
    RangeEnd,
}

/// A run of cylinders with as many sectors a track.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ZoneForm {
    pub(super) first_cylinder: Spanned<u32>,
    /// The last cylinder, included.
    pub(super) last_cylinder: Spanned<u32>,
    /// Sectors of each track, spares included.
    pub(super) sectors_per_track: Spanned<u32>,
    /// From a track's first sector to that of the next surface.
    pub(super) track_skew: Spanned<f64>,
    /// From the last track of a cylinder to the first of the next.
    pub(super) cylinder_skew: Spanned<f64>,
    /// Where the zone's first track begins.
    #[serde(default)]
    pub(super) first_offset: Option<Spanned<f64>>,
    /// Sectors at the zone's front that have no address.
    #[serde(default)]
    pub(super) reserved: u32,
    /// Spare sectors or tracks, see `sparing`.
    #[serde(default)]
    pub(super) spares: Option<Spanned<u32>>,
    /// Defective sectors (tracks with `zone-tracks`), counted from the zone's start, rising.
    #[serde(default)]
    pub(super) slipped: Vec<Spanned<u64>>,
}

/// A device whose accesses all take the same time.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessForm {
    pub(super) read_ms: f64,
    pub(super) write_ms: f64,
    /// Beside it, each byte; not counted when absent.
    pub(super) bytes_per_second: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ControllerForm {
    /// Each sector over the bus. It overlaps with the platter.
    pub(super) bus_ms_per_sector: f64,
    /// The same for writes, where that is different.
    pub(super) bus_write_ms_per_sector: Option<f64>,
    /// The command, for a read found in the cache, after a read and after a write.
    pub(super) read_hit_ms: [f64; 2],
    /// The command, for a read of the platter, after a read and after a write.
    pub(super) read_miss_ms: [f64; 2],
    /// The command, for a write that the cache takes, after a read and after a write.
    pub(super) write_hit_ms: [f64; 2],
    /// The command, for a write to the platter, after a read and after a write.
    pub(super) write_miss_ms: [f64; 2],
    /// The bus begins when this part of a read has passed the head; with its first sector where it is 0.
    pub(super) read_watermark: f64,
    /// A write to the platter begins when the bus keeps ahead of it: no sector passes the head before it has come.
    pub(super) write_keeps_ahead: bool,
    /// The drive leaves the bus between a write's command and its data for so long, if the write is one of the platter.
    pub(super) write_disconnect_ms: f64,
    /// When a read ends.
    pub(super) read_completion_ms: f64,
    /// When a write ends.
    pub(super) write_completion_ms: f64,
    /// Reads begin at whatever sector of theirs comes by first.
    pub(super) zero_latency_read: bool,
    /// Writes begin at whatever sector of theirs comes by first.
    pub(super) zero_latency_write: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheForm {
    /// Segments, each of which holds one run of sectors.
    pub(super) segments: u32,
    /// Sectors in a segment.
    pub(super) segment_sectors: u32,
    /// Segments that may hold written data.
    pub(super) write_segments: u32,
    /// Sectors read on after a read, at most; 0 for none.
    pub(super) read_ahead_sectors: u32,
    /// Whether reading on stops when it has read as far as the end of the track, or goes on.
    #[serde(default)]
    pub(super) read_ahead: ReadAhead,
    /// After which reads it reads on.
    #[serde(default)]
    pub(super) read_ahead_after: ReadAheadAfter,
    /// When a write is acknowledged.
    #[serde(default)]
    pub(super) write_back: WriteBack,
}

/// How far a drive reads on by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReadAhead {
    /// Not at all.
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the track on which the next sector lies, and of the one behind it where the segment begins on a track before.
    Tracks,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    #[default]
    Segment,
}

/// After which reads a drive reads on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReadAheadAfter {
    #[default]
    All,
    /// Those that follow on the read before.
    Sequential,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WriteBack {
    /// When it is on the platter.
    #[default]
    Off,
    /// When it is in the cache, if it follows on the write before.
    Sequential,
    /// When it is in the cache.
    Always,
}

/// A file's name and text, for errors that name the line.
pub(super) struct Source<'a> {
    /// As the caller named it.
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// The file's fields, of the right types.
    pub(super) fn form(&self) -> Result<DriveForm, DriveError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map(|span| span.start);
            let field = quoted(error.message()).or_else(|| self.key_at(at?)).unwrap_or("the file").to_owned();
            self.error(at, &field, error.message().trim().to_owned())
        })
    }

    /// The byte at which a line begins with `key`, if one does.
    pub(super) fn find(&self, key: &str) -> Option<usize> {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            if line.trim_start().starts_with(key) {
                return Some(at);
            }
            at += line.len();
        }
        None
    }

    /// The key on whose line this byte is.
    fn key_at(&self, at: usize) -> Option<&str> {
        let begin = self.text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
        let (key, _) = self.text[begin..].lines().next()?.split_once('=')?;
        Some(key.trim())
    }

    /// That `field`, at this byte, is wrong.
    pub(super) fn error(&self, at: Option<usize>, field: &str, why: String) -> DriveError {
        let line = at.map(|at| self.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1);
        DriveError { file: self.file.to_owned(), line, field: field.to_owned(), why }
    }

    /// Passes on a value that satisfies `is_right`.
    pub(super) fn check<T: Copy + std::fmt::Debug>(
        &self,
        value: &Spanned<T>,
        field: &str,
        is_right: impl Fn(T) -> bool,
        must: &str,
    ) -> Result<T, DriveError> {
        let found = *value.get_ref();
        if is_right(found) {
            return Ok(found);
        }
        Err(self.error(Some(value.span().start), field, format!("is {found:?}; it must be {must}")))
    }
}

/// What stands in the first backquotes: the field, in the parser's messages.
fn quoted(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}
