//! One pass over the blocks of a read: what is there already, and what has to be asked for.

use crate::device::Run;
use crate::metadata::Key;
use base::{BLOCK, Checksum};
use bytes::Bytes;
use wire::disk::Blocks;

/// What a pass over a read's blocks has found, and what it misses.
#[derive(Default)]
pub(crate) struct Pass {
    pub(crate) blocks: Blocks,
    pub(crate) pages: Vec<Key>,
    pub(crate) runs: Vec<Run>,
    pub(crate) cache_hits: u64,
    /// A stretch of one buffer that is still growing. Neighbours in a buffer leave as one part, which costs one reference
    /// for all of them.
    stretch: Option<Stretch>,
}

struct Stretch {
    buffer: Bytes,
    from: usize,
    to: usize,
}

impl Pass {
    /// Adds one block that stands alone.
    pub(crate) fn push(&mut self, block: Bytes) {
        self.close();
        self.blocks.content.push(block);
    }

    /// Adds the block at `offset` of a buffer.
    pub(crate) fn push_from(&mut self, buffer: &Bytes, offset: usize) {
        match &mut self.stretch {
            Some(open) if open.to == offset && open.buffer.as_ptr() == buffer.as_ptr() => open.to += BLOCK,
            _ => {
                self.close();
                let to = offset + BLOCK;
                self.stretch = Some(Stretch { buffer: buffer.clone(), from: offset, to });
            }
        }
    }

    /// Ends the growing stretch.
    pub(crate) fn close(&mut self) {
        if let Some(Stretch { buffer, from, to }) = self.stretch.take() {
            self.blocks.content.push(buffer.slice(from..to));
        }
    }

    /// Adds a block to the runs to be read. Slots that were written one after the other mostly lie so on the disk, and a run goes on from
    /// one to the next: it is one access of the disk.
    pub(crate) fn miss(&mut self, index: u32, physical: u64, sum: Checksum) {
        match self.runs.last_mut() {
            Some(run) if run.first + run.blocks.len() as u64 == physical => run.blocks.push((index, sum)),
            _ => self.runs.push(Run { first: physical, blocks: vec![(index, sum)] }),
        }
    }
}
