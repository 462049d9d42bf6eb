//! What chooses, for one request, from which copies its buckets are read. Each chooser is a file.
//!
//! A new chooser is a file with its `mod` line, and a line in [`Choice::chooser`].

use super::max_flow::MaxFlow;
use super::online::Online;
use super::random::Random;
use super::request::{Disk, Request};
use super::shortest_queue::ShortestQueue;
use super::two_choices::TwoChoices;

pub trait Chooser: core::fmt::Debug {
    /// Writes into `chosen` from which disk each bucket is read, for each as many as it needs, and adds what is chosen to `disks`.
    /// The free times of the request's disks are no earlier than the time at which they could begin.
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>);

    /// How many copies were looked at, over all requests: what the time that choosing takes is counted in.
    fn looks(&self) -> u64;
}

/// Which chooser.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Choice {
    Random,
    ShortestQueue,
    TwoChoices,
    Online,
    MaxFlow,
}

impl Choice {
    /// A fresh one. Those that draw do so from `seed`.
    pub fn chooser(self, seed: u64) -> Box<dyn Chooser> {
        match self {
            Choice::Random => Box::new(Random::new(seed)),
            Choice::ShortestQueue => Box::new(ShortestQueue::default()),
            Choice::TwoChoices => Box::new(TwoChoices::new(seed)),
            Choice::Online => Box::new(Online::default()),
            Choice::MaxFlow => Box::new(MaxFlow::default()),
        }
    }
}

/// Chooses bucket by bucket: for each as many holders as it needs, those first that `key` puts first, each as if those chosen
/// before had been asked.
pub(super) fn bucket_by_bucket<K: Ord>(
    disks: &mut [Disk],
    request: &Request,
    chosen: &mut Vec<u32>,
    mut key: impl FnMut(&Disk) -> K,
) {
    chosen.clear();
    for (holders, needed) in request.buckets() {
        let ours = chosen.len();
        for _ in 0..needed {
            let others = holders.iter().filter(|holder| !chosen[ours..].contains(holder));
            let best = others.min_by_key(|holder| key(&disks[**holder as usize]));
            let best = *best.expect("a bucket needs no more than it has");
            disks[best as usize].add();
            chosen.push(best);
        }
    }
}
