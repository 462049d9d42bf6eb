//! The first thing that both sides of a connection say: who they are.
//!
//! ```text
//! 0  u32       magic "BRKH"
//! 4  u32       protocol version
//! 8  16 bytes  cluster
//! 24 16 bytes  the sender (a wire `NodeId`, zeros behind it)
//! ```
//! The side that connected speaks first, and the other answers only to one that it accepts: a stranger gets nothing.

use base::{ClusterId, NodeId};
use wire::{Reader, Wire};

pub(crate) const HELLO_BYTES: usize = 40;
/// Both sides must speak the same.
pub const PROTOCOL_VERSION: u32 = 3;

const MAGIC: u32 = u32::from_le_bytes(*b"BRKH");

/// Why a peer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it does not speak Brickwork's protocol")]
    Foreign,
    #[error("it speaks protocol version {0}, and this node {PROTOCOL_VERSION}: run the same release on both")]
    Version(u32),
    #[error("it belongs to cluster {0}, not to this one")]
    Cluster(ClusterId),
    #[error("it is {found}, not {expected}")]
    Node { found: NodeId, expected: NodeId },
    #[error("its certificate does not name {0}")]
    Certificate(NodeId),
}

pub(crate) fn encode(cluster: ClusterId, node: NodeId, out: &mut Vec<u8>) {
    let start = out.len();
    MAGIC.encode(out);
    PROTOCOL_VERSION.encode(out);
    cluster.encode(out);
    node.encode(out);
    out.resize(start + HELLO_BYTES, 0);
}

/// Who says it, if it is of this cluster and version.
pub(crate) fn parse(bytes: &[u8; HELLO_BYTES], cluster: ClusterId) -> Result<NodeId, Refusal> {
    let mut reader = Reader::new(bytes);
    let mut word = || u32::decode(&mut reader).map_err(|_| Refusal::Foreign);
    let (magic, version) = (word()?, word()?);
    if magic != MAGIC {
        return Err(Refusal::Foreign);
    }
    if version != PROTOCOL_VERSION {
        return Err(Refusal::Version(version));
    }
    let theirs = ClusterId::decode(&mut reader).map_err(|_| Refusal::Foreign)?;
    if theirs != cluster {
        return Err(Refusal::Cluster(theirs));
    }
    NodeId::decode(&mut reader).map_err(|_| Refusal::Foreign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    #[test]
    fn a_hello_is_read_back_and_others_are_refused() {
        let (ours, node) = (ClusterId([7; 16]), NodeId::Brick(BrickId(3)));
        let mut bytes = Vec::new();
        encode(ours, node, &mut bytes);
        let mut hello: [u8; HELLO_BYTES] = bytes.try_into().unwrap();
        assert_eq!(parse(&hello, ours), Ok(node));
        assert_eq!(parse(&hello, ClusterId([8; 16])), Err(Refusal::Cluster(ours)));
        hello[4] = 9;
        assert_eq!(parse(&hello, ours), Err(Refusal::Version(9)));
        hello[0] = 0;
        assert_eq!(parse(&hello, ours), Err(Refusal::Foreign));
    }
}
