//! The first thing that both sides of a connection say: who they are, and which versions of the protocol they speak.
//!
//! ```text
//! 0  u32       magic "BRKH"
//! 4  u32       oldest version spoken
//! 8  16 bytes  cluster
//! 24 9 bytes   the sender (a wire `NodeId`), zeros behind it
//! 36 u32       newest version spoken; 0 where it is the oldest
//! ```
//! The side that connected speaks first, and the other answers only to one that it accepts: a stranger gets nothing. Both
//! speak the lower of the two newest versions from then on. Releases that spoke one version alone said it at 4 and zeros at 36.

use base::{ClusterId, NodeId};
use wire::{Reader, Spoken, Version, Wire};

pub(crate) const HELLO_BYTES: usize = 40;

const MAGIC: u32 = u32::from_le_bytes(*b"BRKH");
const NEWEST_AT: usize = 36;

/// Why a peer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it does not speak Brickwork's protocol")]
    Foreign,
    #[error("it speaks {0}, and this node {ours}: update the older one first", ours = Spoken::OURS)]
    Version(Spoken),
    #[error("it belongs to cluster {0}, not to this one")]
    Cluster(ClusterId),
    #[error("it is {found}, not {expected}")]
    Node { found: NodeId, expected: NodeId },
    #[error(
        "its certificate does not name {0}: gateways and clients have ids that follow from their certificates"
    )]
    Certificate(NodeId),
    #[error("{0} is connected under another certificate")]
    Taken(NodeId),
}

pub(crate) fn encode(spoken: Spoken, cluster: ClusterId, node: NodeId, out: &mut Vec<u8>) {
    let start = out.len();
    MAGIC.append(out);
    spoken.oldest.0.append(out);
    cluster.append(out);
    node.append(out);
    out.resize(start + NEWEST_AT, 0);
    spoken.newest.0.append(out);
}

/// Who says it, and which version is spoken with it, if it is of this cluster.
pub(crate) fn parse(
    bytes: &[u8; HELLO_BYTES],
    ours: Spoken,
    cluster: ClusterId,
) -> Result<(NodeId, Version), Refusal> {
    let mut reader = Reader::new(bytes);
    let mut word = || u32::decode(&mut reader).map_err(|_| Refusal::Foreign);
    let (magic, oldest) = (word()?, word()?);
    if magic != MAGIC {
        return Err(Refusal::Foreign);
    }
    let newest = bytes.last_chunk().map_or(0, |newest| u32::from_le_bytes(*newest)).max(oldest);
    let theirs = Spoken { oldest: Version(oldest), newest: Version(newest) };
    let version = Version::agreed(ours, theirs).ok_or(Refusal::Version(theirs))?;
    let of = ClusterId::decode(&mut reader).map_err(|_| Refusal::Foreign)?;
    if of != cluster {
        return Err(Refusal::Cluster(of));
    }
    Ok((NodeId::decode(&mut reader).map_err(|_| Refusal::Foreign)?, version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    const OURS: ClusterId = ClusterId([7; 16]);
    const NODE: NodeId = NodeId::Brick(BrickId(3));

    fn hello(oldest: u32, newest: u32) -> [u8; HELLO_BYTES] {
        let mut bytes = Vec::new();
        encode(Spoken { oldest: Version(oldest), newest: Version(newest) }, OURS, NODE, &mut bytes);
        bytes.try_into().expect("as long as a hello is")
    }

    #[test]
    fn a_hello_is_read_back_and_others_are_refused() {
        let spoken = Spoken { oldest: Version(3), newest: Version(4) };
        let mut said = hello(3, 4);
        assert_eq!(parse(&said, spoken, OURS), Ok((NODE, Version(4))));
        assert_eq!(parse(&said, spoken, ClusterId([8; 16])), Err(Refusal::Cluster(OURS)));
        let newer = Spoken { oldest: Version(5), newest: Version(6) };
        assert_eq!(parse(&said, newer, OURS), Err(Refusal::Version(spoken)));
        said[0] = 0;
        assert_eq!(parse(&said, spoken, OURS), Err(Refusal::Foreign));
    }

    #[test]
    fn a_release_that_speaks_one_version_alone_is_met_at_that() {
        let spoken = Spoken { oldest: Version(3), newest: Version(4) };
        let mut said = hello(3, 3);
        said[NEWEST_AT..].fill(0);
        assert_eq!(parse(&said, spoken, OURS), Ok((NODE, Version(3))));
        // And what is said to it begins as it expects.
        assert_eq!(hello(3, 4)[4..8], 3u32.to_le_bytes());
    }
}
