//! Reads: served from blocks without a write in doubt, held back where there is one.

use super::branches::Looked;
use super::contests::Begun;
use super::views::bear_witness;
use super::{Context, Lookup, Participant, QUEUE_MAX, ReadRequest, admits, read_answer};
use base::{GroupId, NodeId, Payload, Time};
use wire::disk::{Blocks, Command, Contested, StoreError};
use wire::{Message, ReadOutcome, Span};

impl Participant {
    /// A gateway asks for blocks.
    pub fn on_read(&mut self, cx: &mut Context<'_>, read: ReadRequest) {
        self.serial += 1;
        if !read.span.is_valid() || !(1..=32).contains(&read.width) {
            return read_answer(cx, &read, ReadOutcome::Failed, Payload::new());
        }
        if !read.content && !read.stamps {
            return bear_witness(cx, &read);
        }
        self.admit_read(cx, self.serial, cx.now, read);
    }

    pub(super) fn admit_read(&mut self, cx: &mut Context<'_>, id: u64, since: Time, read: ReadRequest) {
        if let Err(view) = admits(cx, &read) {
            if view.is_some() {
                cx.counters.count("request under an old view refused");
            }
            return read_answer(cx, &read, ReadOutcome::Stale { view }, Payload::new());
        }
        if self.pending.in_doubt(read.span).next().is_none() {
            return match read.contest {
                Some(_) => self.contend(cx, read),
                None => self.serve(cx, read, false, None),
            };
        }
        self.hold_read(cx, id, since, read);
    }

    /// Until the writes that touch it are decided.
    pub(super) fn hold_read(&mut self, cx: &mut Context<'_>, id: u64, since: Time, read: ReadRequest) {
        if self.held.len() >= QUEUE_MAX {
            return read_answer(cx, &read, ReadOutcome::Busy, Payload::new());
        }
        cx.counters.count("read waited for a decision");
        self.held.insert(id, (since, read));
    }

    /// Looks the blocks up; `claimed` where other members were asked as well and leave the read to
    /// this one, `contested` where the disk is to find out which of them serves it.
    pub(super) fn serve(
        &mut self,
        cx: &mut Context<'_>,
        read: ReadRequest,
        claimed: bool,
        contested: Option<Contested>,
    ) {
        let begun = self.contests.begin(cx.now, claimed, read.content, read.span.count);
        let ReadRequest { group, span, width, content, .. } = read;
        let looked = Looked { group, span, width, content };
        let lookup = Lookup::Read { request: read, leased: cx.leased, begun };
        self.look_contested(cx, looked, contested, lookup);
    }

    pub(super) fn on_read_done(
        &mut self,
        cx: &mut Context<'_>,
        read: &ReadRequest,
        (leased, begun): (bool, Begun),
        result: Result<Blocks, StoreError>,
    ) {
        self.on_served(cx, begun);
        if self.left_disk(cx, read, matches!(result, Err(StoreError::Left))) {
            return;
        }
        self.answer_read(cx, read, leased, result);
    }

    fn answer_read(
        &mut self,
        cx: &mut Context<'_>,
        read: &ReadRequest,
        leased: bool,
        result: Result<Blocks, StoreError>,
    ) {
        // The group may have been left meanwhile, and its space given back.
        if let Err(view) = admits(cx, read) {
            return read_answer(cx, read, ReadOutcome::Stale { view }, Payload::new());
        }
        let blocks = match result {
            Ok(blocks) => blocks,
            // Left without a contest that knows of it: a packet came twice. It says nothing of the disk.
            Err(StoreError::Busy | StoreError::Left) => {
                return read_answer(cx, read, ReadOutcome::Busy, Payload::new());
            }
            Err(_) => return read_answer(cx, read, ReadOutcome::Failed, Payload::new()),
        };
        // The disk may have taken longer than the lease lasted.
        let leased = leased && cx.leased;
        if !leased {
            cx.counters.count("read answered without a lease");
        }
        let stamps = if read.stamps { blocks.stamps } else { Vec::new() };
        let outcome = ReadOutcome::Done { leased, stamps, unreadable: blocks.unreadable };
        read_answer(cx, read, outcome, blocks.content);
    }

    /// Which blocks hold data? Only who is sure to know of every acknowledged write may call a block a hole.
    pub fn on_allocation(
        &mut self,
        cx: &mut Context<'_>,
        from: NodeId,
        operation: u64,
        group: GroupId,
        span: Span,
    ) {
        if !cx.leased || self.pending.in_doubt(span).next().is_some() {
            let runs = Ok(vec![(span.count, true)]);
            return cx.send(from, Message::AllocationDone { operation, runs }, Payload::new());
        }
        let (token, above) = (self.token(), None);
        let lookup = Lookup::Allocation { from, operation, group, span, above };
        self.ask(cx, token, lookup, Command::Allocation { token, span });
    }
}
