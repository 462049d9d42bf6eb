//! One request of a trace.

/// Bytes of the sectors in which a [`Record`] counts.
pub const SECTOR_BYTES: u64 = 512;

/// One request of a trace, in the units that all formats are brought to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// When it was issued: nanoseconds from the origin of the trace.
    pub at_ns: u64,
    /// Which device, numbered as the trace does.
    pub device: u32,
    /// The first sector, of [`SECTOR_BYTES`].
    pub sector: u64,
    /// Sectors.
    pub count: u32,
    /// Whether it writes. Formats that do not say count as reads.
    pub is_write: bool,
    /// How long it took where the trace was recorded, in nanoseconds, if the trace says so.
    pub response_ns: Option<u64>,
}

impl Record {
    /// The sector after the last one; saturates.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.count))
    }

    /// Bytes asked for.
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * SECTOR_BYTES
    }
}

/// The sectors that `bytes` bytes from byte `offset` on touch: first sector and count. `None` when they are too many.
pub(crate) fn sectors(offset: u64, bytes: u64) -> Option<(u64, u32)> {
    let end = offset.checked_add(bytes)?.div_ceil(SECTOR_BYTES);
    let sector = offset / SECTOR_BYTES;
    let count = if bytes == 0 { 0 } else { end - sector };
    Some((sector, u32::try_from(count).ok()?))
}
