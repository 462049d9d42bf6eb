//! Who is connected to whom. A connection breaks with a crash, a reset or a long partition, and is made again as long
//! as one side wants it; packets travel only while it stands.

use base::{HashMap, HashSet};
use model::{Link, LinkConfig};

/// Two nodes, the lower slot first.
pub(crate) type Pair = (usize, usize);

/// The pair of two nodes.
pub(crate) fn pair(a: usize, b: usize) -> Pair {
    (a.min(b), a.max(b))
}

/// A connection that one side wants.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) up: bool,
    /// Counts its states: an event that names an earlier one is void.
    pub(crate) epoch: u32,
    /// Whether the lower, the higher node keeps asking for it.
    pub(crate) wanted: [bool; 2],
    /// The node that does not know yet that its peer died.
    pub(crate) unaware: Option<usize>,
    links: [Link; 2],
}

/// All connections and what the network does to packets.
pub(crate) struct Net {
    config: LinkConfig,
    connections: HashMap<Pair, Connection>,
    blocked: HashSet<(usize, usize)>,
}

impl Net {
    /// A network where nobody is connected.
    pub(crate) fn new() -> Net {
        Net { config: LinkConfig::CLEAN, connections: HashMap::default(), blocked: HashSet::default() }
    }

    /// What every link does now.
    pub(crate) fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// From now on every link does so.
    pub(crate) fn set_config(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// The connection of two nodes, if one of them wants it.
    pub(crate) fn connection(&mut self, pair: Pair) -> Option<&mut Connection> {
        self.connections.get_mut(&pair)
    }

    /// From now on `dialer` wants to be connected with `peer`: whether that is news.
    pub(crate) fn want(&mut self, dialer: usize, peer: usize) -> bool {
        let connection = self.connections.entry(pair(dialer, peer)).or_default();
        let first = connection.wanted == [false; 2];
        connection.wanted[usize::from(dialer > peer)] = true;
        first
    }

    /// `dialer` asks for `peer` no more. Whether it did.
    pub(crate) fn forget(&mut self, dialer: usize, peer: usize) -> bool {
        let Some(connection) = self.connections.get_mut(&pair(dialer, peer)) else { return false };
        core::mem::take(&mut connection.wanted[usize::from(dialer > peer)])
    }

    /// `node` is gone, and wants nobody any more.
    pub(crate) fn forget_wishes(&mut self, node: usize) {
        for peer in self.peers(node) {
            if let Some(connection) = self.connections.get_mut(&pair(node, peer)) {
                connection.wanted[usize::from(node > peer)] = false;
            }
        }
    }

    /// All nodes that `node` is or wants to be connected with, or that want to be with it, in order.
    pub(crate) fn peers(&self, node: usize) -> Vec<usize> {
        let other = |&(a, b): &Pair| (a == node).then_some(b).or((b == node).then_some(a));
        let mut peers: Vec<usize> = self.connections.keys().filter_map(other).collect();
        peers.sort_unstable();
        peers
    }

    /// Those who want to be connected with `node`, in order.
    pub(crate) fn callers(&self, node: usize) -> Vec<usize> {
        let calls = |peer: &usize| {
            let connection = self.connections.get(&pair(node, *peer));
            connection.is_some_and(|connection| connection.wanted[usize::from(*peer > node)])
        };
        self.peers(node).into_iter().filter(calls).collect()
    }

    /// All pairs whose connection stands, in order.
    pub(crate) fn standing(&self) -> Vec<Pair> {
        let mut pairs: Vec<Pair> =
            self.connections.iter().filter(|(_, c)| c.up).map(|(&pair, _)| pair).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Whether two nodes are connected.
    pub(crate) fn is_standing(&self, a: usize, b: usize) -> bool {
        self.connections.get(&pair(a, b)).is_some_and(|connection| connection.up)
    }

    /// The link from one node to another while their connection stands.
    pub(crate) fn link(&mut self, from: usize, to: usize) -> Option<&mut Link> {
        let connection = self.connections.get_mut(&pair(from, to)).filter(|connection| connection.up)?;
        Some(&mut connection.links[usize::from(from > to)])
    }

    /// Whether packets from one node to another vanish.
    pub(crate) fn is_blocked(&self, from: usize, to: usize) -> bool {
        !self.blocked.is_empty() && self.blocked.contains(&(from, to))
    }

    /// Whether packets vanish in one direction at least.
    pub(crate) fn is_cut(&self, (a, b): Pair) -> bool {
        self.is_blocked(a, b) || self.is_blocked(b, a)
    }

    /// Lets packets from one node to another vanish.
    pub(crate) fn block(&mut self, from: usize, to: usize) {
        self.blocked.insert((from, to));
    }

    pub(crate) fn unblock(&mut self, from: usize, to: usize) {
        self.blocked.remove(&(from, to));
    }

    /// Ends all of that.
    pub(crate) fn unblock_all(&mut self) {
        self.blocked.clear();
    }
}
