//! One direction between two nodes: how long a packet takes, and whether it is lost, repeated or overtaken.

use crate::Draw;

/// What a link does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub latency_ns: u64,
    /// Up to this much more, drawn for each packet.
    pub spread_ns: u64,
    /// Packets lost, of a million.
    pub loss_ppm: u32,
    /// Packets that come twice, of a million.
    pub duplicate_ppm: u32,
    /// Packets that are held up, so that later ones overtake them, of a million.
    pub reorder_ppm: u32,
    /// For how long such a packet is held up at the most.
    pub reorder_ns: u64,
}

impl LinkConfig {
    /// A local network without faults: 50 to 100 microseconds, in order.
    pub const CLEAN: LinkConfig = LinkConfig {
        latency_ns: 50_000,
        spread_ns: 50_000,
        loss_ppm: 0,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        reorder_ns: 0,
    };
}

/// What became of a packet: up to two moments at which it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The packet itself; `None` when it was lost.
    pub first_ns: Option<u64>,
    pub second_ns: Option<u64>,
    /// Whether it was held up.
    pub reordered: bool,
}

/// One direction between two nodes. Packets that are not held up stay in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    last_ns: u64,
}

impl Link {
    /// When a packet sent at `now_ns` arrives.
    pub fn send(&mut self, now_ns: u64, config: &LinkConfig, draw: &mut Draw) -> Arrivals {
        if draw.chance(config.loss_ppm) {
            return Arrivals::default();
        }
        let way_ns = config.latency_ns + draw.between(0, config.spread_ns);
        let reordered = draw.chance(config.reorder_ppm);
        let first_ns = if reordered {
            now_ns + way_ns + draw.between(0, config.reorder_ns)
        } else {
            self.last_ns = self.last_ns.max(now_ns + way_ns);
            self.last_ns
        };
        let again = draw.chance(config.duplicate_ppm);
        let second_ns = again.then(|| first_ns + draw.between(0, config.reorder_ns.max(config.latency_ns)));
        Arrivals { first_ns: Some(first_ns), second_ns, reordered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_link_keeps_order_and_a_bad_one_does_not() {
        let mut draw = Draw::new(1);
        let bad = LinkConfig {
            loss_ppm: 100_000,
            duplicate_ppm: 100_000,
            reorder_ppm: 100_000,
            reorder_ns: 1_000_000,
            ..LinkConfig::CLEAN
        };
        let mut run = |config: &LinkConfig| {
            let mut link = Link::default();
            let sent: Vec<Arrivals> = (0..1000).map(|at| link.send(at * 1000, config, &mut draw)).collect();
            let lost = sent.iter().filter(|a| a.first_ns.is_none()).count();
            let twice = sent.iter().filter(|a| a.second_ns.is_some()).count();
            let arrived: Vec<u64> = sent.iter().filter_map(|a| a.first_ns).collect();
            (lost, twice, arrived.is_sorted())
        };
        assert_eq!(run(&LinkConfig::CLEAN), (0, 0, true));
        let (lost, twice, sorted) = run(&bad);
        assert!((50..200).contains(&lost) && (50..200).contains(&twice) && !sorted);
    }
}
