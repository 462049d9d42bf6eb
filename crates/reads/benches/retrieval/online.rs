//! The paper's `online`: each bucket in turn goes to the holder that would finish it first.

use reads::distribute::retrieval::{Disk, Request};

/// Keeps its buffer from request to request.
#[derive(Default)]
pub(crate) struct Online {
    /// For each disk the request that touched it last, and when the disk has read all that was chosen so far.
    finish_ns: Vec<(u32, u64)>,
    requests: u32,
}

impl Online {
    /// For requests of copies: one holder of each bucket.
    pub(crate) fn choose(&mut self, disks: &[Disk], request: &Request, chosen: &mut Vec<u32>) -> u64 {
        self.requests += 1;
        if self.finish_ns.len() < disks.len() {
            self.finish_ns.resize(disks.len(), (0, 0));
        }
        chosen.clear();
        let mut last_ns = 0;
        for (holders, _) in request.buckets() {
            let (mut best, mut best_ns) = (holders[0], u64::MAX);
            for disk in holders {
                let Disk { free_ns, access_ns, .. } = disks[*disk as usize];
                let (seen, busy_ns) = self.finish_ns[*disk as usize];
                let finish_ns = access_ns + if seen == self.requests { busy_ns } else { free_ns };
                if finish_ns < best_ns {
                    (best, best_ns) = (*disk, finish_ns);
                }
            }
            self.finish_ns[best as usize] = (self.requests, best_ns);
            chosen.push(best);
            last_ns = last_ns.max(best_ns);
        }
        last_ns
    }
}
