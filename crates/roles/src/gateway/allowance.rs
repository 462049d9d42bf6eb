//! How much of what attached clients ask for is worked on at a time. A read's content is in memory from its first block on until the whole is on its
//! way, so that what clients may ask for is what they can make a gateway hold. What is asked for beyond that waits, and clients take turns.

use base::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// Of one client, so many bytes are worked on: twice what `brickwork attach` asks for at a time.
const CLIENT_BYTES_MAX: u64 = 64 << 20;
/// Of all clients together.
const ALL_BYTES_MAX: u64 = 256 << 20;
/// Of one client, so many bytes of content wait to be written, and so many requests. What comes beyond is not taken: it is asked again.
const WAITING_BYTES_MAX: u64 = 64 << 20;
const WAITING_MAX: usize = 4096;

/// What a request takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Needs {
    pub(super) serial: u64,
    /// While it is worked on.
    pub(super) bytes: u64,
    /// While it waits.
    pub(super) content_bytes: u64,
}

/// What becomes of a request that comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    Begins,
    Waits,
    /// Its client has too much waiting.
    Refused,
}

#[derive(Debug, Default)]
pub(super) struct Allowance {
    bytes: u64,
    clients: BTreeMap<NodeId, OfClient>,
    /// Clients of whom something waits: the first has its turn next.
    turns: VecDeque<NodeId>,
}

#[derive(Debug, Default)]
struct OfClient {
    /// What is worked on.
    bytes: u64,
    waiting: VecDeque<Needs>,
    waiting_bytes: u64,
}

impl OfClient {
    /// The first that waits, if the client may have it worked on. One request always may.
    fn next(&self) -> Option<&Needs> {
        self.waiting.front().filter(|next| self.bytes == 0 || self.bytes + next.bytes <= CLIENT_BYTES_MAX)
    }

    fn has_room(&self, needs: &Needs) -> bool {
        self.waiting.len() < WAITING_MAX && self.waiting_bytes + needs.content_bytes <= WAITING_BYTES_MAX
    }
}

impl Allowance {
    pub(super) fn arrive(&mut self, of: NodeId, needs: Needs) -> Arrival {
        let client = self.clients.entry(of).or_default();
        if !client.has_room(&needs) {
            return Arrival::Refused;
        }
        client.waiting_bytes += needs.content_bytes;
        client.waiting.push_back(needs);
        if client.waiting.len() == 1 {
            self.turns.push_back(of);
        }
        match self.take(of) {
            true => Arrival::Begins,
            false => Arrival::Waits,
        }
    }

    /// The next request that is to begin.
    pub(super) fn next(&mut self) -> Option<u64> {
        let of = self.turns.iter().copied().find(|of| self.may_take(*of))?;
        let serial = self.clients[&of].waiting.front().map(|needs| needs.serial);
        self.take(of);
        serial
    }

    /// A request has ended, or nobody waits for it any more.
    pub(super) fn end(&mut self, of: NodeId, needs: Needs) {
        let Some(client) = self.clients.get_mut(&of) else { return };
        match client.waiting.iter().position(|waiting| waiting.serial == needs.serial) {
            Some(at) => {
                client.waiting.remove(at);
                client.waiting_bytes -= needs.content_bytes;
            }
            None => {
                client.bytes -= needs.bytes;
                self.bytes -= needs.bytes;
            }
        }
        if client.waiting.is_empty() {
            self.turns.retain(|turn| *turn != of);
            if client.bytes == 0 {
                self.clients.remove(&of);
            }
        }
    }

    fn may_take(&self, of: NodeId) -> bool {
        let next = self.clients.get(&of).and_then(OfClient::next);
        next.is_some_and(|next| self.bytes == 0 || self.bytes + next.bytes <= ALL_BYTES_MAX)
    }

    /// The client's first request begins, if it may.
    fn take(&mut self, of: NodeId) -> bool {
        if !self.may_take(of) {
            return false;
        }
        let client = self.clients.get_mut(&of).expect("a client that waits");
        let needs = client.waiting.pop_front().expect("something of it waits");
        client.waiting_bytes -= needs.content_bytes;
        client.bytes += needs.bytes;
        self.bytes += needs.bytes;
        self.turns.retain(|turn| *turn != of);
        if !client.waiting.is_empty() {
            self.turns.push_back(of);
        }
        true
    }

    pub(super) fn check(&self) {
        let bytes: u64 = self.clients.values().map(|client| client.bytes).sum();
        assert_eq!(bytes, self.bytes, "what is worked on is that of all clients");
        assert!(self.bytes <= ALL_BYTES_MAX, "what is worked on is bounded");
        assert!(self.turns.iter().all(|of| !self.clients[of].waiting.is_empty()), "who has turns waits");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ClientId;

    const LARGE: u64 = 32 << 20;

    fn client(id: u64) -> NodeId {
        NodeId::Client(ClientId(id))
    }

    fn needs(serial: u64, content_bytes: u64) -> Needs {
        Needs { serial, bytes: LARGE, content_bytes }
    }

    #[test]
    fn clients_have_a_share_each_and_take_turns() {
        let mut allowance = Allowance::default();
        let mut arrive = |of, serial| allowance.arrive(client(of), needs(serial, 0));
        use Arrival::{Begins, Waits};
        assert_eq!([1, 2, 3].map(|serial| arrive(1, serial)), [Begins, Begins, Waits]);
        for of in 2..5 {
            assert_eq!([0, 1].map(|at| arrive(of, of * 10 + at)), [Begins, Begins]);
        }
        assert_eq!([arrive(5, 50), arrive(6, 60), arrive(1, 4)], [Waits, Waits, Waits]);
        allowance.check();
        allowance.end(client(2), needs(20, 0));
        assert_eq!((allowance.next(), allowance.next()), (Some(50), None), "the first has its share");
        allowance.end(client(1), needs(1, 0));
        assert_eq!(allowance.next(), Some(3));
        allowance.end(client(1), needs(2, 0));
        assert_eq!(allowance.next(), Some(60), "it has had its turn");
        allowance.end(client(1), needs(4, 0));
        allowance.end(client(1), needs(3, 0));
        allowance.check();
        assert_eq!(allowance.next(), None);
    }

    #[test]
    fn of_what_waits_only_so_much_is_kept() {
        let mut allowance = Allowance::default();
        let arrivals = (0..6).map(|serial| allowance.arrive(client(1), needs(serial, LARGE)));
        use Arrival::{Begins, Refused, Waits};
        assert_eq!(arrivals.collect::<Vec<_>>(), [Begins, Begins, Waits, Waits, Refused, Refused]);
        (0..4).for_each(|serial| allowance.end(client(1), needs(serial, LARGE)));
        assert!(allowance.clients.is_empty() && allowance.turns.is_empty(), "nothing is left of it");
    }
}
