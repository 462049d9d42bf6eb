//! The copy that would arrive first, bucket by bucket: the paper's `online`.

use super::chooser::{Chooser, bucket_by_bucket};
use super::request::{Disk, Request};

#[derive(Debug, Default)]
pub struct Online {
    looks: u64,
}

impl Chooser for Online {
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>) {
        self.looks += request.copies() as u64;
        bucket_by_bucket(disks, request, chosen, |disk| disk.finish_ns(1));
    }

    fn looks(&self) -> u64 {
        self.looks
    }
}
