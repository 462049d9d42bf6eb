//! Blocks that are copied up into a branch: for a parity delta, which changes a block where it is, and out of a branch
//! that goes.

use super::branches::Found;
use super::disk::MergeRequest;
use crate::netraid::pending::WriteKey;
use base::{BLOCK, Stamp};
use std::collections::BTreeMap;
use wire::Span;
use wire::disk::{Command, StoreError, Token};

/// What a delta that met inherited blocks does.
pub(super) enum Turn {
    /// It copies them up.
    Begin,
    /// Another delta copies blocks of it up: it looks again afterwards.
    Behind,
    /// Blocks were copied up since it looked: it looks again.
    LookAgain,
}

/// What is being copied up for deltas, and who looks again afterwards.
#[derive(Debug, Default)]
pub(super) struct CopyUps {
    /// How many runs of blocks are not in place yet, and what went wrong.
    under_way: BTreeMap<WriteKey, UnderWay>,
    behind: Vec<WriteKey>,
    /// How many were made so far.
    made: u64,
}

#[derive(Debug)]
struct UnderWay {
    runs_left: usize,
    result: Result<(), StoreError>,
}

/// A copy up ended: how, and who looks again.
pub(super) struct Ended {
    pub(super) result: Result<(), StoreError>,
    pub(super) behind: Vec<WriteKey>,
}

impl CopyUps {
    /// How many were made so far: who looked before another was made has to look again.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// What the delta `key` does that looked when `made_before` copies up were made.
    pub(super) fn turn(
        &mut self,
        key: WriteKey,
        made_before: u64,
        overlaps: impl Fn(&WriteKey) -> bool,
    ) -> Turn {
        if self.under_way.keys().any(overlaps) {
            self.behind.push(key);
            return Turn::Behind;
        }
        if self.made == made_before { Turn::Begin } else { Turn::LookAgain }
    }

    /// So many runs of blocks are being put in place.
    pub(super) fn begin(&mut self, key: WriteKey, runs_left: usize) {
        self.under_way.insert(key, UnderWay { runs_left, result: Ok(()) });
    }

    /// A run is in place, or not.
    pub(super) fn on_run(&mut self, key: WriteKey, result: Result<(), StoreError>) -> Option<Ended> {
        let copy_up = self.under_way.get_mut(&key).expect("its run was asked for");
        copy_up.runs_left -= 1;
        copy_up.result = copy_up.result.and(result);
        if copy_up.runs_left > 0 {
            return None;
        }
        let UnderWay { result, .. } = self.under_way.remove(&key).expect("just seen");
        self.made += 1;
        Some(Ended { result, behind: core::mem::take(&mut self.behind) })
    }
}

/// Blocks that are being copied up out of a branch that goes.
#[derive(Debug)]
struct Merge {
    request: MergeRequest,
    runs_left: usize,
    /// The blocks that could not be read.
    result: Result<Vec<u32>, StoreError>,
}

/// A merge of a span ended.
pub(super) struct Merged {
    pub(super) request: MergeRequest,
    /// The blocks that could not be read.
    pub(super) result: Result<Vec<u32>, StoreError>,
}

/// What is being copied up out of branches that go.
#[derive(Debug, Default)]
pub(super) struct Merges {
    under_way: BTreeMap<WriteKey, Merge>,
}

impl Merges {
    /// So many runs of blocks are being put in place.
    pub(super) fn begin(&mut self, request: MergeRequest, runs_left: usize, unreadable: Vec<u32>) {
        self.under_way.insert(request.key, Merge { request, runs_left, result: Ok(unreadable) });
    }

    /// A run is in place, or not.
    pub(super) fn on_run(&mut self, key: WriteKey, result: Result<(), StoreError>) -> Option<Merged> {
        let merge = self.under_way.get_mut(&key).expect("its run was asked for");
        merge.runs_left -= 1;
        if let Err(error) = result {
            merge.result = Err(error);
        }
        if merge.runs_left > 0 {
            return None;
        }
        let Merge { request, result, .. } = self.under_way.remove(&key).expect("just seen");
        Some(Merged { request, result })
    }
}

/// Adjacent blocks that were found further down.
pub(super) struct Run {
    span: Span,
    width: u8,
    stamps: Vec<Stamp>,
    payload: base::Payload,
}

impl Run {
    /// What puts the run in place.
    pub(super) fn mend(self, token: Token) -> Command {
        let Run { span, width, stamps, payload } = self;
        Command::Mend { token, span, width, stamps, payload }
    }
}

/// The runs of `blocks` of `span`, as they were found.
pub(super) fn runs(span: Span, width: u8, found: &Found, mut blocks: Vec<u32>) -> Vec<Run> {
    blocks.sort_unstable();
    let runs = blocks.chunk_by(|a, b| a + 1 == *b);
    runs.map(|run| {
        let (first, count) = (run[0] as usize, run.len());
        let entries = first * usize::from(width)..(first + count) * usize::from(width);
        let stamps = found.blocks.stamps[entries].to_vec();
        let payload = found.blocks.content.slice(first * BLOCK, count * BLOCK);
        let span = Span { lba: span.lba + first as u64, count: count as u32, ..span };
        Run { span, width, stamps, payload }
    })
    .collect()
}
