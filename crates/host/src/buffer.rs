//! Memory for payloads: aligned for direct I/O, reused, handed out as [`Bytes`] without a copy.
//!
//! A fresh megabyte costs 256 page faults, more than it costs to move it, so that freed buffers wait in a small pool of
//! the thread that freed them. No locks: each daemon's loop is one thread.

use base::BLOCK;
use bytes::Bytes;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Pooled sizes: 4 KiB times the powers of two up to 2 MiB. Larger ones are mapped of their own, so that memory is taken page
/// by page as content arrives, and go back to the system at once.
const CLASSES: usize = 10;
const POOLED_BYTES_MAX: usize = BLOCK << (CLASSES - 1);
/// Free memory a class keeps, in bytes.
const CLASS_BYTES_MAX: usize = 16 << 20;
/// Classes below this one (4 to 16 KiB) are cut from slabs and never go back: alone, each would cost as much again for its
/// alignment, and they fill the caches.
const CUT_CLASSES: usize = 3;
const SLAB_BYTES: usize = 256 << 10;

/// A buffer whose start is a multiple of 4096, of a length given at its birth.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
}

// SAFETY: the buffer owns its memory alone, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuffer {}

#[derive(Default)]
struct Pool {
    free: [Vec<NonNull<u8>>; CLASSES],
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

impl AlignedBuffer {
    /// `len` bytes of whatever was there before (zeros at first).
    pub fn new(len: usize) -> AlignedBuffer {
        let capacity = match len.max(BLOCK).next_power_of_two() {
            rounded if class_of(rounded).is_some() => rounded,
            _ => len.next_multiple_of(BLOCK),
        };
        let pooled = class_of(capacity).and_then(|class| POOL.with_borrow_mut(|pool| pool.free[class].pop()));
        let start = pooled.unwrap_or_else(|| match class_of(capacity) {
            Some(class) if class < CUT_CLASSES => cut(class, capacity),
            _ => allocate(capacity),
        });
        AlignedBuffer { start, len, capacity }
    }

    /// As reference-counted bytes; the memory returns to the pool with the last of them.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

/// Gives the memory that nobody has used of late back to the system.
pub fn trim_pool() {
    POOL.with_borrow_mut(|pool| {
        for class in CUT_CLASSES..CLASSES {
            pool.free[class].drain(..).for_each(|start| release(start, BLOCK << class));
        }
    });
    #[cfg(target_env = "gnu")]
    // SAFETY: it only gives unused pages of the heap back.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (class, free) in self.free.iter_mut().enumerate() {
            if class >= CUT_CLASSES {
                free.drain(..).for_each(|start| release(start, BLOCK << class));
            }
        }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let kept = class_of(self.capacity).is_some_and(|class| {
            // At the thread's end the pool is gone already.
            POOL.try_with(|pool| pool.borrow_mut().keep(class, self.start, self.capacity)).unwrap_or(false)
        });
        if !kept && class_of(self.capacity).is_none_or(|class| class >= CUT_CLASSES) {
            release(self.start, self.capacity);
        }
    }
}

impl Pool {
    fn keep(&mut self, class: usize, start: NonNull<u8>, capacity: usize) -> bool {
        let room = class < CUT_CLASSES || (self.free[class].len() + 1) * capacity <= CLASS_BYTES_MAX;
        if room {
            self.free[class].push(start);
        }
        room
    }
}

/// One buffer of a new slab; the others wait in the pool.
fn cut(class: usize, capacity: usize) -> NonNull<u8> {
    let slab = allocate(SLAB_BYTES);
    // SAFETY: the offset lies within the slab.
    let rest = (1..SLAB_BYTES / capacity).map(|index| unsafe { slab.add(index * capacity) });
    POOL.with_borrow_mut(|pool| pool.free[class].extend(rest));
    slab
}

fn class_of(capacity: usize) -> Option<usize> {
    let class = (capacity / BLOCK).trailing_zeros() as usize;
    (capacity <= POOLED_BYTES_MAX).then_some(class)
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK).expect("a multiple of 4096 that memory can hold")
}

fn allocate(capacity: usize) -> NonNull<u8> {
    if capacity > POOLED_BYTES_MAX {
        return map(capacity);
    }
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout(capacity)) })
        .unwrap_or_else(|| handle_alloc_error(layout(capacity)))
}

fn map(capacity: usize) -> NonNull<u8> {
    // SAFETY: a new private mapping; no other memory is concerned.
    let start = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), capacity, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    };
    match NonNull::new(start.cast()) {
        Some(mapped) if start != libc::MAP_FAILED => mapped,
        _ => handle_alloc_error(layout(capacity)),
    }
}

fn release(start: NonNull<u8>, capacity: usize) {
    if capacity > POOLED_BYTES_MAX {
        // SAFETY: `start` came from `map` with this capacity, and is released once.
        unsafe { libc::munmap(start.as_ptr().cast(), capacity) };
        return;
    }
    // SAFETY: `start` came from `allocate` with this capacity, and is released once.
    unsafe { dealloc(start.as_ptr(), layout(capacity)) };
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes within the capacity, initialized since their allocation, owned by this value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let buffer = AlignedBuffer::new(70_000);
        let start = buffer.as_ptr() as usize;
        assert_eq!((start % BLOCK, buffer.len()), (0, 70_000));
        let bytes = buffer.into_bytes();
        let slice = bytes.slice(5..);
        drop(bytes);
        assert_ne!(AlignedBuffer::new(70_000).as_ptr() as usize, start, "a slice still holds it");
        drop(slice);
        assert_eq!(AlignedBuffer::new(100_000).as_ptr() as usize, start, "the same class, reused");
    }

    #[test]
    fn buffers_beyond_the_pool_are_zero_and_writable_to_their_end() {
        let mut buffer = AlignedBuffer::new((5 << 20) + 1);
        assert_eq!((buffer.as_ptr() as usize % BLOCK, buffer.len()), (0, (5 << 20) + 1));
        assert!(buffer.iter().all(|byte| *byte == 0));
        buffer.fill(7);
        assert_eq!(buffer.into_bytes()[5 << 20], 7);
    }
}
