//! The store's machine: it opens a disk, and hands everything to the open store from then on.

use crate::config::StoreConfig;
use crate::event::{StoreEffect, StoreEvent};
use crate::inventory;
use crate::io::{Io, IoFault, IoKind, IoToken};
use crate::recovery::{Next, Recovery};
use crate::refusal::refusal;
use crate::running::Running;
use crate::stats::{Space, Stats};
use base::{Depth, Machine, Time, VolumeId};
use bytes::Bytes;
use core::ops::Range;
use wire::disk::StoreError;

/// A brick's disk. The first [`Machine::settle`] (or step) asks for what recovery reads; [`StoreEffect::Opened`] ends it.
pub struct Store {
    phase: Phase,
}

enum Phase {
    Opening { recovery: Box<Recovery>, last_token: IoToken, waiting: bool },
    Refused,
    Open(Box<Running>),
}

impl Store {
    /// A store over a disk that was [formatted](crate::format).
    pub fn open(config: StoreConfig) -> Store {
        let recovery = Box::new(Recovery::new(config));
        Store { phase: Phase::Opening { recovery, last_token: IoToken::default(), waiting: false } }
    }

    /// What tells this disk, as it was formatted, from all others; `None` before it is open. Drawn by whoever formatted
    /// it: the first half of [`FormatOptions::uuid`](crate::FormatOptions::uuid).
    pub fn identity(&self) -> Option<u64> {
        let Phase::Open(running) = &self.phase else { return None };
        Some(running.identity())
    }

    /// Where the disk keeps its blocks, in bytes from its beginning; `None` before it is open.
    pub fn blocks_region(&self) -> Option<Range<u64>> {
        let Phase::Open(running) = &self.phase else { return None };
        Some(running.device.geometry().blocks_region())
    }

    /// Which stretches it holds behind `after`, a page of them; none before it is open. As [`wire::disk::Command::Inventory`], for whoever looks from outside.
    pub fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        let Phase::Open(running) = &self.phase else { return Vec::new() };
        inventory::stretches(&running.blocks, after)
    }

    /// Whether a block of data has a stamp, as far as that is known without reading. For whoever looks from outside.
    pub fn has_stamp(&self, volume: VolumeId, lba: u64) -> Option<bool> {
        let Phase::Open(running) = &self.phase else { return None };
        Some(!running.blocks.stamp(volume, lba, 0).ok()??.is_zero())
    }

    /// The room on the disk; nothing before it is open.
    pub fn space(&self) -> Space {
        let Phase::Open(running) = &self.phase else { return Space::default() };
        running.space()
    }

    /// What it has done.
    pub fn stats(&self) -> Stats {
        let Phase::Open(running) = &self.phase else { return Stats::default() };
        running.stats()
    }

    /// Goes on with opening: the first time, and with each answer of the disk.
    fn advance(&mut self, answer: Option<Result<Bytes, IoFault>>, fx: &mut Vec<StoreEffect>) {
        let Phase::Opening { recovery, last_token, waiting } = &mut self.phase else { return };
        let kind = match recovery.advance(answer) {
            Next::Read { offset, length } => IoKind::read(offset, length),
            Next::Flush => IoKind::Flush,
            Next::Done(running, recovered) => {
                self.phase = Phase::Open(running);
                return fx.push(StoreEffect::Opened(Ok(recovered)));
            }
            Next::Refused(error) => {
                self.phase = Phase::Refused;
                return fx.push(StoreEffect::Opened(Err(error)));
            }
        };
        last_token.0 += 1;
        *waiting = true;
        fx.push(StoreEffect::Io(Io { token: *last_token, kind }));
    }
}

impl Machine for Store {
    type Event = StoreEvent;
    type Effect = StoreEffect;

    fn step(&mut self, now: Time, event: StoreEvent, fx: &mut Vec<StoreEffect>) {
        match (&mut self.phase, event) {
            (Phase::Open(running), event) => running.step(now, event, fx),
            (Phase::Opening { last_token, .. }, StoreEvent::Io(done)) if done.token == *last_token => {
                self.advance(Some(done.result), fx);
            }
            (Phase::Opening { .. }, StoreEvent::Command(command)) => {
                fx.extend(refusal(&command, StoreError::Busy).map(StoreEffect::Reply));
            }
            (Phase::Refused, StoreEvent::Command(command)) => {
                fx.extend(refusal(&command, StoreError::Failed).map(StoreEffect::Reply));
            }
            (_, StoreEvent::Io(_)) => {}
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        match &mut self.phase {
            Phase::Open(running) => running.settle(now, fx),
            Phase::Opening { waiting: false, .. } => self.advance(None, fx),
            _ => {}
        }
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.settle(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        match &self.phase {
            Phase::Open(running) => running.deadline(),
            _ => None,
        }
    }

    fn check(&self, depth: Depth) {
        if let Phase::Open(running) = &self.phase {
            running.check(depth);
        }
    }
}
