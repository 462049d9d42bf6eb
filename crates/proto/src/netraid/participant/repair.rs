//! Good content in place of blocks that cannot be read, unless something newer is there or under way.

use super::{Context, Lookup, Participant, RepairRequest};
use crate::netraid::pending::{Key, Pending, Prepare, State};
use base::{NodeId, Payload, RequestId, Stamp};
use wire::disk::{Blocks, Command, StoreError};
use wire::{Change, Message, Scope, WriteId};

impl Participant {
    /// Puts good content in place of unreadable blocks, unless something newer is there or under way.
    pub fn on_repair(&mut self, cx: &mut Context<'_>, request: RepairRequest) {
        let serves = cx.groups.serves(request.group, request.view).is_ok();
        let fits = request.span.is_valid()
            && (1..=32).contains(&request.width)
            && request.content.len() == request.span.bytes()
            && request.stamps.len() == request.span.count as usize * usize::from(request.width);
        if !serves || !fits || self.pending.overlapping(request.span).next().is_some() {
            return repaired(cx, request.from, request.operation, false);
        }
        // Writes that come meanwhile wait behind this place-holder: its stamp is earlier than every real one.
        self.serial += 1;
        let (from, span, width, token) = (request.from, request.span, request.width, self.token());
        let write = WriteId { group: request.group, span, stamp: Stamp(self.serial), scope: Scope::Row };
        let prepare = Prepare {
            reply_to: Some((from, request.operation)),
            view: request.view,
            write,
            change: Change::Data,
            base: None,
            want_delta: false,
            request: RequestId::default(),
            part: 0,
            payload: Payload::new(),
        };
        let key = prepare.key();
        let state = State::Mending;
        self.pending.insert(Pending { prepare, state, doomed: false, token, since: cx.now, answer: None });
        let lookup = Lookup::RepairCheck { key, request: Box::new(request) };
        self.ask(cx, token, lookup, Command::Read { token, span, width, content: true });
    }

    pub(super) fn on_repair_checked(
        &mut self,
        cx: &mut Context<'_>,
        key: Key,
        request: RepairRequest,
        result: Result<Blocks, StoreError>,
    ) {
        let width = usize::from(request.width);
        let fits = result.is_ok_and(|blocks| {
            !blocks.unreadable.is_empty()
                && (0..request.span.count as usize).all(|block| {
                    let place = block * width..(block + 1) * width;
                    let (here, good) = (&blocks.stamps[place.clone()], &request.stamps[place]);
                    // Where the stamps cannot be read either, they come as zeros.
                    let lost = blocks.unreadable.contains(&(block as u32))
                        && here.iter().all(|stamp| stamp.is_zero());
                    lost || here == good
                })
        });
        if !fits {
            self.remove(cx, key);
            return repaired(cx, request.from, request.operation, false);
        }
        cx.counters.count("unreadable blocks repaired");
        let token = self.token();
        let lookup = Lookup::Repair { key, from: request.from, operation: request.operation };
        let (span, width, stamps) = (request.span, request.width, request.stamps);
        self.ask(cx, token, lookup, Command::Mend { token, span, width, stamps, payload: request.content });
    }
}

pub(super) fn repaired(cx: &mut Context<'_>, to: NodeId, operation: u64, taken: bool) {
    cx.send(to, Message::Repaired { operation, taken }, Payload::new());
}
