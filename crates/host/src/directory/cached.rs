//! Which pages of a file are in the kernel's cache.
//!
//! After a failed write or sync the kernel takes pages for clean that never reached the disk. Once it has dropped them, what is read comes from
//! the disk: so a file of gigabytes whose writer is gone is trustworthy again within moments, without being written again. Not every file
//! system drops what it is asked to (tmpfs has nothing else): what stays is told here, and is written again.

use crate::disk::file::forget_cached;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Looked at so many bytes at a time.
const WINDOW_BYTES: u64 = 1 << 30;

/// Has the kernel drop what it holds of the file and need not keep; returns the ranges that it holds all the same.
pub(super) fn drop_cached(file: &File) -> io::Result<Vec<Range<u64>>> {
    // What is dirty is kept until it is written.
    file.sync_data()?;
    forget_cached(file);
    let length = file.metadata()?.len();
    let mut kept: Vec<Range<u64>> = Vec::new();
    for from in (0..length).step_by(WINDOW_BYTES as usize) {
        let window = from..length.min(from + WINDOW_BYTES);
        for range in cached(file, window)? {
            match kept.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => kept.push(range),
            }
        }
    }
    Ok(kept)
}

/// The ranges of the window that are cached.
fn cached(file: &File, window: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    // SAFETY: asks for a number.
    let page_bytes = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let length = usize::try_from(window.end - window.start).expect("a window fits into memory");
    let mut pages = vec![0_u8; length.div_ceil(page_bytes as usize)];
    // SAFETY: a mapping of its own that nobody reads or writes through; `pages` has a byte for each of its pages; it goes before anybody else
    // learns of it. The offset is a multiple of the page's size.
    let result = unsafe {
        let offset = window.start as libc::off_t;
        let none = std::ptr::null_mut();
        let place = libc::mmap(none, length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset);
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = match libc::mincore(place, length, pages.as_mut_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        libc::munmap(place, length);
        result
    };
    result?;
    let is_cached = (0_u64..).zip(&pages).filter(|(_, page)| **page & 1 == 1);
    let range = |(number, _)| {
        let start = window.start + number * page_bytes;
        start..window.end.min(start + page_bytes)
    };
    Ok(is_cached.map(range).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const LENGTH: u64 = 8 << 20;

    fn written(file: &File) {
        file.write_all_at(&vec![7; LENGTH as usize], 0).unwrap();
    }

    /// Pages that somebody has mapped are kept, and are told.
    #[test]
    fn what_the_kernel_keeps_is_told() {
        let file = tempfile::tempfile().unwrap();
        written(&file);
        let at = 5 << 20;
        // SAFETY: a mapping of its own, of a part of the file that stays there, read once.
        let first = unsafe {
            let none = std::ptr::null_mut();
            let place = libc::mmap(none, 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), at);
            assert_ne!(place, libc::MAP_FAILED);
            place.cast::<u8>().read_volatile()
        };
        assert_eq!(first, 7);
        let kept = drop_cached(&file).unwrap();
        assert!(kept.iter().any(|range| range.contains(&(at as u64))), "{kept:?}");
        assert!(kept.windows(2).all(|two| two[0].end < two[1].start), "{kept:?}");
    }

    #[test]
    fn all_of_a_file_in_memory_is_told() {
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else { return };
        written(&file);
        let kept = drop_cached(&file).unwrap();
        assert_eq!((kept.len(), kept.first()), (1, Some(&(0..LENGTH))));
    }
}
