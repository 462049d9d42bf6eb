//! What takes time: links and network cards. Each is a resource that serves one after another.

use crate::timed::{Grain, Network};

/// The network of a cluster: one way between bricks, another between a gateway and a brick, and a card at each node that
/// sends one packet after another, where a rate is given.
pub(crate) struct Wires {
    network: Network,
    /// What content stands for.
    grain: Grain,
    /// From when each node's card is free.
    card_free_ns: Vec<u64>,
}

/// What a packet is to the network.
#[derive(Clone, Copy)]
pub(crate) struct Parcel {
    pub(crate) is_between_bricks: bool,
    pub(crate) content_bytes: u64,
}

impl Wires {
    pub(crate) fn new(network: Network, grain: Grain) -> Wires {
        Wires { network, grain, card_free_ns: Vec::new() }
    }

    /// When a packet arrives that `from` sends now.
    pub(super) fn send(&mut self, now_ns: u64, from: usize, parcel: Parcel) -> u64 {
        let Network { one_way_ns, client_one_way_ns, bytes_per_second, message_bytes, .. } = self.network;
        let way_ns = if parcel.is_between_bricks { one_way_ns } else { client_one_way_ns };
        let Some(per_second) = bytes_per_second else { return now_ns + way_ns };
        if self.card_free_ns.len() <= from {
            self.card_free_ns.resize(from + 1, 0);
        }
        let bytes = message_bytes + self.grain.on_disk(parcel.content_bytes);
        let gone_ns = self.card_free_ns[from].max(now_ns) + bytes * 1_000_000_000 / per_second.max(1);
        self.card_free_ns[from] = gone_ns;
        gone_ns + way_ns
    }
}
