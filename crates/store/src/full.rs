//! Disks that are full of metadata pages, for measurements: what a brick would have written in years, in minutes. Pages, map and headers are
//! encoded by the code that a brick writes them with; content there is none.

use crate::header::Header;
use crate::metadata::{Entry as Block, Key, Kind, PAGE_SLOTS, Page, Site};
use crate::page_map::{Said, write_full_map};
use crate::superblock::{FormatError, FormatOptions, Geometry, HEADERS_AT, SLOT_BLOCKS, format};
use base::{BLOCK_U64, Stamp, VolumeId, checksum};
use bytes::Bytes;

/// Pages of a volume: as many as one of a TiB has.
const VOLUME_PAGES: u64 = 1 << 20;

/// What the disk holds.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// How much of all slots is in use, in percent.
    pub percent: u8,
    /// Whether the slots of a page lie apart, as those of old disks may. Otherwise they follow one another.
    pub is_scattered: bool,
    /// Whether there is a map of the pages.
    pub has_map: bool,
    /// Whether the pages are written. Who opens the disk by its map reads none of them, but those of the cycle that was interrupted.
    pub has_pages: bool,
    /// A cycle was interrupted that was about to write so many pages, as far from one another as can be.
    pub interrupted: u32,
}

/// Makes such a disk over one of zeros, by writes of `(offset, content)`. Gives back how many pages it has.
///
/// # Errors
/// As [`format()`], and what the first write says that fails.
pub fn write_full<E: From<FormatError>>(
    options: FormatOptions,
    full: Full,
    write: &mut dyn FnMut(u64, Bytes) -> Result<(), E>,
) -> Result<u32, E> {
    let geometry = Geometry::plan(options.disk_bytes, options.journal_bytes)?;
    let seed = checksum(&options.uuid);
    for (offset, content) in format(options)? {
        write(offset, content.contiguous())?;
    }
    let places = u64::from(geometry.page_count - geometry.map_places());
    let pages = u64::from(geometry.slot_count) * u64::from(full.percent.min(100)) / 100 / PAGE_SLOTS;
    let pages = pages.min(places) as u32;
    let step = (pages / full.interrupted.max(1)).max(1);
    let stale: Vec<u32> = (0..full.interrupted.min(pages)).map(|number| number * step).collect();
    let written: &mut dyn Iterator<Item = u32> =
        if full.has_pages { &mut (0..pages) } else { &mut stale.clone().into_iter() };
    for place in written {
        let (key, page) = page_at(place, &geometry, full.is_scattered);
        let bytes = page.encode(key, Site { place, is_after_loss: false }, seed);
        write(geometry.page_offset(place), Bytes::from(bytes))?;
    }
    let said = |place: u32| {
        let (key, page) = page_at(place, &geometry, full.is_scattered);
        Said::of(key, &page)
    };
    let map = match full.has_map {
        true => Some(write_full_map(&geometry, seed, pages, said, stale, write)?),
        false => None,
    };
    let header = Header { generation: 1, tail: 0, head: 0, pages_high: pages, map };
    // The headers are written in turn.
    write(HEADERS_AT + BLOCK_U64, Bytes::from(header.encode_sector(seed)))?;
    Ok(pages)
}

/// The page at a place.
fn page_at(place: u32, geometry: &Geometry, is_scattered: bool) -> (Key, Page) {
    let number = u64::from(place);
    let key = Key { volume: VolumeId(1 + number / VOLUME_PAGES), page: number % VOLUME_PAGES, plane: 0 };
    let mut page = Page::of(Kind::Absent);
    let used = u64::from(geometry.slot_count) / PAGE_SLOTS;
    for slot in 0..PAGE_SLOTS {
        // Those that lie apart are in different sixteenths of the disk.
        let at = if is_scattered { slot * used + number } else { number * PAGE_SLOTS + slot };
        let first = slot * SLOT_BLOCKS;
        page.set_slot(first, Some(at as u32));
        for lba in first..first + SLOT_BLOCKS {
            page.set_entry(lba, Block { kind: Kind::Data, stamp: Stamp(number + 1), sum: 0 });
        }
    }
    (key, page)
}
