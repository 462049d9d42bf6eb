//! What machines say to each other for the sake of requests, counted where they send it.

use super::measured::{Contention, Message, Meter};
use base::{BrickId, HashMap, NodeId};
use std::collections::VecDeque;
use wire::{Claim, Packet, ReadOutcome};

/// Reads of which it is known who has claimed them: more than ever wait at a time.
const READS_MAX: usize = 1 << 14;

/// A read that several bricks were asked for.
type Read = (base::GatewayId, u64);

/// Looks at packets.
#[derive(Default)]
pub(super) struct Packets {
    /// Bricks that have claimed a read, one bit each.
    claimed: HashMap<Read, u128>,
    /// The same reads, in the order in which they were claimed first.
    reads: VecDeque<Read>,
}

impl Packets {
    /// A packet is sent; its content is so many bytes on the wires.
    pub(super) fn sent(
        &mut self,
        (from, to): (NodeId, NodeId),
        packet: &Packet,
        content_bytes: u64,
        message_bytes: u64,
        meter: &mut Meter,
    ) {
        let Some(kind) = kind((from, to), &packet.message) else { return };
        meter.sent(kind, message_bytes + content_bytes);
        if let (wire::Message::Claims { claims }, NodeId::Brick(brick)) = (&packet.message, from) {
            claims.iter().for_each(|claim| self.claim(brick, claim, &mut meter.contention));
        }
    }

    /// A brick claims a read. It tells each of the others, and that counts once.
    fn claim(&mut self, brick: BrickId, claim: &Claim, contention: &mut Contention) {
        let read = (claim.gateway, claim.number);
        let bit = 1u128 << (brick.0 % u128::BITS);
        let known = self.claimed.get(&read).copied().unwrap_or_default();
        if known & bit != 0 {
            return;
        }
        self.claimed.insert(read, known | bit);
        if known == 0 {
            self.reads.push_back(read);
            if self.reads.len() > READS_MAX
                && let Some(oldest) = self.reads.pop_front()
            {
                self.claimed.remove(&oldest);
            }
        }
        contention.claims += 1;
        contention.conflicts += u64::from(known != 0);
        contention.contested += u64::from(known.count_ones() == 1);
    }
}

/// As what a message between a gateway and bricks, or among bricks, counts; others are the cluster's own affairs.
fn kind((from, to): (NodeId, NodeId), message: &wire::Message) -> Option<Message> {
    let is_of_requests =
        matches!((from, to), (NodeId::Gateway(_) | NodeId::Brick(_), NodeId::Gateway(_) | NodeId::Brick(_)));
    let kind = match message {
        wire::Message::Read { .. } => Message::Read,
        wire::Message::ReadDone { outcome: ReadOutcome::Done { .. } | ReadOutcome::Older { .. }, .. } => {
            Message::Data
        }
        wire::Message::ReadDone { .. } => Message::Refused,
        wire::Message::Claims { .. } => Message::Claim,
        wire::Message::Cancel { .. } => Message::Cancel,
        wire::Message::Cancelled { .. } => Message::Cancelled,
        wire::Message::Prepare { .. } => Message::Write,
        wire::Message::Prepared { .. } => Message::Prepared,
        wire::Message::Decide { .. } => Message::Decide,
        wire::Message::Waiting { .. } => Message::Waiting,
        _ => return None,
    };
    is_of_requests.then_some(kind)
}
