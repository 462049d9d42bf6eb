//! The copy at the disk where the fewest buckets wait, whatever the disks take for them (Tetzlaff and Flynn 1996): the paper's
//! `shortest-queue`.

use super::chooser::{Chooser, bucket_by_bucket};
use super::request::{Disk, Request};

#[derive(Debug, Default)]
pub struct ShortestQueue {
    looks: u64,
}

impl Chooser for ShortestQueue {
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>) {
        self.looks += request.copies() as u64;
        bucket_by_bucket(disks, request, chosen, |disk| disk.queue);
    }

    fn looks(&self) -> u64 {
        self.looks
    }
}
