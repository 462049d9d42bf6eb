//! Finds out what an earlier gateway with the same number left at the addresses of records: writes that go by those may be in doubt still,
//! on bricks that were away since.

use crate::netraid::answer::NoAnswer;
use crate::netraid::context::gates::Leaving;
use crate::netraid::context::links::{Address, Found, Kept, Records};
use crate::netraid::operate::{Context, Operate};
use crate::netraid::outcome::{Fetched, OperationId, Progress, Released};
use crate::netraid::read::ReadOperation;
use base::{BLOCK, GroupId, VolumeId};
use core::cell::Cell;
use wire::{IoError, Link, Reader, Span, Wire, WriteId};

/// Reads all records of a volume that a group decides for a gateway.
pub(super) struct InspectOperation {
    records: Records,
    /// How many addresses were looked at.
    at: u32,
    /// How many are being read.
    count: u32,
    /// Up to where they are read one by one, since one of them cannot be read.
    single_until: u32,
    found: Cell<Found>,
}

type Inspecting = Progress<Released>;

impl InspectOperation {
    pub(super) fn new(records: Records) -> InspectOperation {
        InspectOperation { records, at: 0, count: 0, single_until: 0, found: Cell::default() }
    }

    /// Reads on: up to the end of a stripe unit at a time.
    fn read(&mut self, cx: &mut Context<'_>) -> Inspecting {
        if self.at == self.records.count {
            return Progress::Ended(Released);
        }
        let unit = u64::from(cx.views.geometry(self.records.group).stripe_unit_blocks());
        let lba = self.records.first + u64::from(self.at);
        let left = u64::from(self.records.count - self.at);
        self.count = if self.at < self.single_until { 1 } else { (unit - lba % unit).min(left) as u32 };
        let span = Span { volume: self.records.volume, lba, count: self.count };
        cx.begin(ReadOperation::new(self.records.group, span, 0, true));
        Progress::Sleeps
    }

    fn note(&mut self, Fetched { content, stamps }: &Fetched) {
        let bytes = content.to_vec();
        for (block, &stamp) in bytes.chunks(BLOCK).zip(stamps) {
            let at = Address { lba: self.records.first + u64::from(self.at), stamp };
            self.at += 1;
            if stamp.is_zero() {
                self.found.get_mut().free.push(at);
                continue;
            }
            let link = Some(Link::new(self.records.group, at.lba, stamp));
            // What is no record is left alone.
            if let Ok(writes) = Vec::<WriteId>::decode(&mut Reader::new(block)) {
                let writes = writes.into_iter().map(|write| WriteId { link, ..write }).collect();
                self.found.get_mut().kept.push(Kept { at, writes });
            }
        }
    }

    /// Not all of what was read is readable: what is not is left alone.
    fn on_unreadable(&mut self) {
        match self.count {
            1 => self.at += 1,
            count => self.single_until = self.at + count,
        }
    }
}

impl Operate for InspectOperation {
    type Answer = NoAnswer;
    type Child = Result<Fetched, IoError>;
    type Outcome = Released;

    fn start(&mut self, cx: &mut Context<'_>) -> Inspecting {
        (self.at, self.single_until) = (0, 0);
        *self.found.get_mut() = Found::default();
        self.read(cx)
    }

    fn on_answer(&mut self, _: &mut Context<'_>, _: u8, answer: NoAnswer) -> Inspecting {
        match answer {}
    }

    fn on_child(&mut self, cx: &mut Context<'_>, read: Result<Fetched, IoError>) -> Inspecting {
        match read {
            Ok(fetched) if fetched.stamps.len() == self.count as usize => self.note(&fetched),
            Ok(_) | Err(IoError::Unreadable) => self.on_unreadable(),
            // Who wants an address has it looked at once more.
            Err(_) => return Progress::Ended(Released),
        }
        self.read(cx)
    }

    fn on_timer(&mut self, _: &mut Context<'_>) -> Inspecting {
        Progress::Sleeps
    }

    fn group(&self) -> GroupId {
        self.records.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.records.volume)
    }

    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        let is_done = self.at == self.records.count;
        left.links.on_looked_at(self.records, is_done.then(|| self.found.take()));
    }
}
