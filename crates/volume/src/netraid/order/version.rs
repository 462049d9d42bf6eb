//! Versions (`version`): a writer asks a current member which versions of its blocks there are, and draws a stamp that is later than all
//! of them. (Goodson et al., "Efficient consistency for erasure-coded data via versioning servers", where a writer asks for the logical time
//! first; Kenchammana-Hosekote et al., section 2.2.2.)
//!
//! One member is enough: a current member has every write that was acknowledged before it is asked. So a gateway whose clock is behind is not
//! refused for it. A write that comes meanwhile with a later stamp still is met as under `ts-wait`, since a brick keeps two versions.
//! What readers do with versions is in `atomicity::log`, without which the order is not offered.

use super::{Gate, Rule};
use crate::netraid::answer::ReadAnswer;
use crate::netraid::members::is_mirrored;
use crate::netraid::operate::{BlocksWanted, Context, Operate, retry_delay};
use crate::netraid::outcome::{LatestStamp, NoChild, Progress};
use crate::netraid::path::gw::Path;
use base::{GroupId, VolumeId};
use core::time::Duration;
use rules::layout::Geometry;
use wire::{GroupView, ReadOutcome, Scope, Sight};

#[derive(Debug)]
pub(super) struct Version;

impl Rule for Version {
    fn gate(&self) -> Gate {
        Gate::Time
    }

    fn about(&self) -> &'static str {
        "a writer asks a brick which versions it has, and writes a later one; where two write at once, the later waits at the bricks"
    }
}

/// After so many questions a write begins with the time of its own clock: a member that refuses it tells a later one.
const TRIES: u32 = 3;

/// Asks for the latest stamp of the blocks of a write.
pub(super) struct TimeOperation {
    path: Path,
    attempt: u32,
}

impl TimeOperation {
    pub(super) fn before(path: Path) -> TimeOperation {
        TimeOperation { path, attempt: 0 }
    }

    /// The current members that have the blocks of the write, or its parity, which knows the stamps of its data units.
    fn sources(&self, geometry: &Geometry, view: &GroupView) -> Vec<u8> {
        let lba = self.path.span().lba;
        let has_all = |slot: &u8| match self.path.scope() {
            _ if is_mirrored(geometry) => true,
            Scope::Row => geometry.data_index_at(lba, *slot).is_none(),
            Scope::Unit { index } => geometry.data_index_at(lba, *slot).is_none_or(|of| of == index),
        };
        view.current.iter().filter(has_all).collect()
    }
}

type Asking = Progress<LatestStamp>;

impl Operate for TimeOperation {
    type Answer = ReadAnswer;
    type Child = NoChild;
    type Outcome = LatestStamp;

    fn start(&mut self, cx: &mut Context<'_>) -> Asking {
        let view = cx.views.view(self.path.group());
        let sources = self.sources(&cx.views.geometry(self.path.group()), &view);
        let branch = cx.branch_of(&view, self.path.volume());
        let (Some(branch), false) = (branch, sources.is_empty() || self.attempt >= TRIES) else {
            return Progress::Ended(LatestStamp(None));
        };
        // Of copies a different one for neighbouring blocks.
        let first = self.path.span().lba / u64::from(self.path.span().count) + u64::from(self.attempt);
        let slot = sources[(first % sources.len() as u64) as usize];
        let span = wire::Span { volume: branch, ..self.path.span() };
        let wanted = BlocksWanted { sight: Sight::Committed, ..BlocksWanted::decided(span, true, false) };
        cx.read(&view, slot, wanted);
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, _slot: u8, answer: ReadAnswer) -> Asking {
        match answer.outcome {
            ReadOutcome::Done { stamps, .. } => Progress::Ended(LatestStamp(stamps.into_iter().max())),
            ReadOutcome::Older { stamps, newer, .. } => {
                let newer = newer.iter().map(|write| write.stamp);
                Progress::Ended(LatestStamp(stamps.into_iter().chain(newer).max()))
            }
            ReadOutcome::Stale { view } => {
                cx.on_stale(self.path.group(), view);
                cx.again_after(Duration::from_millis(20))
            }
            ReadOutcome::InDoubt { .. } | ReadOutcome::Busy | ReadOutcome::Failed => self.on_timer(cx),
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Asking {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Asking {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.path.group()
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.path.volume())
    }
}
