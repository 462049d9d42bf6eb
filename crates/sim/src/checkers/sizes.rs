//! `short messages`: what one node tells another is bounded by what it is about, and not by how much there is in the cluster.
//!
//! Each packet is encoded as on a connection and decoded again. What asks for a bounded number of blocks, or lists what a client asked for, has
//! the bound of a frame; of all else no message may be longer than a page of changes and [`BEYOND_BYTES`].

use super::Violation;
use base::NodeId;
use wire::{Message, Packet, Version, Wire, Writer, frame};

const NAME: &str = "short messages";
/// What a message has beside a page: the last change of the page, which may be the largest family of the run.
const BEYOND_BYTES: usize = 24 << 10;

/// The longest message of a kind so far, for a page of so many bytes.
#[derive(Default)]
pub(crate) struct Sizes {
    buffer: Vec<u8>,
    page_bytes: usize,
}

impl Sizes {
    pub(crate) fn new(page_bytes: usize) -> Sizes {
        Sizes { buffer: Vec::new(), page_bytes }
    }

    /// Looks at a packet as it is sent.
    pub(crate) fn watch(&mut self, from: NodeId, to: NodeId, packet: &Packet) -> Result<(), Violation> {
        self.buffer.clear();
        let what =
            |why: String| Violation::new(NAME, format!("{from} to {to}: {why}: {}", told(&packet.message)));
        packet.message.encode(&mut Writer::of(Version::CURRENT, &mut self.buffer));
        let bytes = self.buffer.len();
        let limit = match packet.message {
            Message::Heartbeat { .. } | Message::HeartbeatDone { .. } | Message::Published { .. } => {
                self.page_bytes + BEYOND_BYTES
            }
            _ => frame::MESSAGE_BYTES_MAX,
        };
        if bytes > limit {
            return Err(what(format!("a message of {bytes} bytes, where {limit} are enough")));
        }
        match Message::from_bytes(&self.buffer) {
            Ok(again) if again == packet.message => Ok(()),
            Ok(_) => Err(what("it comes as another message".to_owned())),
            Err(why) => Err(what(why.to_string())),
        }
    }
}

/// The message, cut to what a line takes.
fn told(message: &Message) -> String {
    format!("{message:?}").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BrickId, ClusterTime, Time, VolumeId};
    use wire::Orders;

    #[test]
    fn an_answer_longer_than_a_page_is_seen() {
        let mut sizes = Sizes::new(300);
        let mut watch = |deletions: usize| {
            let deleted = vec![VolumeId(7); deletions];
            let (views, orders, time) = (Vec::new(), Box::new(Orders::default()), ClusterTime::FIRST);
            let (sent, version, lease_ns) = (Time(1), 1, 0);
            let message = Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time };
            sizes.watch(NodeId::Directory, NodeId::Brick(BrickId(1)), &message.into())
        };
        assert_eq!(watch(30), Ok(()));
        let why = watch(4000).unwrap_err();
        assert!(why.what.contains("a message of 32"), "{}", why.what);
    }
}
