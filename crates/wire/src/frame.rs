//! A packet as bytes on a connection: a header, the message, the payload.
//!
//! ```text
//! 0  u32  magic "BRK1"
//! 4  u32  bytes of the message
//! 8  u32  bytes of the payload
//! 12 u32  CRC-32C of the twelve bytes before and of the message
//! ```
//! The payload has no checksum of its own here: each block carries one from brick to disk and back, and TLS guards
//! the connection.

use crate::{AdminError, DecodeError, IndexError, Message, Packet, Reader, Version, Wire, Writer};
use base::{Payload, checksum};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// The longest message without its payload.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;

const MAGIC: u32 = u32::from_le_bytes(*b"BRK1");

/// Why a frame is refused. The connection it came on is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Not ours.
    #[error("not a Brickwork frame (magic {0:#010x})")]
    Magic(u32),
    #[error("a {what} of {bytes} bytes is longer than the {limit} allowed")]
    TooLong { what: &'static str, bytes: usize, limit: usize },
    /// Damaged on the way.
    #[error("checksum mismatch in a frame")]
    Checksum,
    /// Not a message.
    #[error("malformed message: {0}")]
    Message(#[from] DecodeError),
}

/// A frame's header, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the message that follows.
    pub message_bytes: usize,
    /// Bytes of the payload behind it.
    pub payload_bytes: usize,
    checksum: u32,
    seed: u32,
}

impl Header {
    /// Reads a header; lengths beyond the limits are refused before anything is allocated for them.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, FrameError> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if word(0) != MAGIC {
            return Err(FrameError::Magic(word(0)));
        }
        let (message_bytes, payload_bytes) = (word(4) as usize, word(8) as usize);
        fits("message", message_bytes, MESSAGE_BYTES_MAX)?;
        fits("payload", payload_bytes, PAYLOAD_BYTES_MAX)?;
        Ok(Header {
            message_bytes,
            payload_bytes,
            checksum: word(12),
            seed: checksum::checksum(&bytes[..12]),
        })
    }

    /// Reads the message that follows the header, from a node with which `version` is spoken.
    pub fn message(&self, version: Version, bytes: &[u8]) -> Result<Message, FrameError> {
        if checksum::checksum_append(self.seed, bytes) != self.checksum {
            return Err(FrameError::Checksum);
        }
        let mut reader = Reader::of(version, bytes);
        let message = Message::decode(&mut reader)?;
        reader.end()?;
        Ok(message)
    }
}

impl Message {
    /// What is said in its place where it cannot be sent: who asked the directory for something is told why it has no answer.
    pub fn instead(&self, why: &FrameError) -> Option<Message> {
        let why = format!("the answer cannot be told at once: {why}");
        Some(match self {
            Message::AdminDone { operation, .. } => {
                Message::AdminDone { operation: *operation, result: Err(AdminError::Invalid(why)) }
            }
            Message::VolumeOpened { operation, .. } => {
                Message::VolumeOpened { operation: *operation, map: Err(AdminError::Invalid(why)) }
            }
            Message::IndexDone { operation, .. } => {
                Message::IndexDone { operation: *operation, result: Box::new(Err(IndexError::Invalid(why))) }
            }
            _ => return None,
        })
    }
}

/// Appends header and message to `out`, for a node with which `version` is spoken; the payload's parts follow on the
/// connection as they are.
///
/// # Errors
/// [`FrameError::TooLong`], and nothing is appended: whoever receives such a frame would close the connection.
pub fn encode(version: Version, packet: &Packet, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    packet.message.encode(&mut Writer::of(version, out));
    let message_bytes = out.len() - start - HEADER_BYTES;
    let fits = fits("message", message_bytes, MESSAGE_BYTES_MAX)
        .and_then(|()| fits("payload", packet.payload.len(), PAYLOAD_BYTES_MAX));
    if fits.is_err() {
        out.truncate(start);
        return fits;
    }
    out[start..start + 4].copy_from_slice(&MAGIC.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&(message_bytes as u32).to_le_bytes());
    out[start + 8..start + 12].copy_from_slice(&(packet.payload.len() as u32).to_le_bytes());
    let sum = checksum::checksum(&out[start..start + 12]);
    let sum = checksum::checksum_append(sum, &out[start + HEADER_BYTES..]);
    out[start + 12..start + 16].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

fn fits(what: &'static str, bytes: usize, limit: usize) -> Result<(), FrameError> {
    if bytes > limit { Err(FrameError::TooLong { what, bytes, limit }) } else { Ok(()) }
}

/// One whole frame from the start of `bytes`, and how many bytes it took; `None` when more are needed.
pub fn decode(version: Version, bytes: &[u8]) -> Result<Option<(Packet, usize)>, FrameError> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let header = Header::parse(header)?;
    let (middle, end) =
        (HEADER_BYTES + header.message_bytes, HEADER_BYTES + header.message_bytes + header.payload_bytes);
    if bytes.len() < end {
        return Ok(None);
    }
    let message = header.message(version, &bytes[HEADER_BYTES..middle])?;
    Ok(Some((Packet { message, payload: Payload::from(bytes[middle..end].to_vec()) }, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_damage_is_seen() {
        let packet = Packet { message: Message::Ping { nonce: 7 }, payload: Payload::from(vec![1, 2, 3]) };
        let mut bytes = Vec::new();
        encode(Version::CURRENT, &packet, &mut bytes).unwrap();
        let decode = |bytes: &[u8]| decode(Version::CURRENT, bytes);
        packet.payload.parts().iter().for_each(|part| bytes.extend_from_slice(part));
        assert_eq!(decode(&bytes), Ok(Some((packet, bytes.len()))));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), Ok(None));
        for at in 4..HEADER_BYTES + 9 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(!matches!(decode(&damaged), Ok(Some(_))), "a flipped bit at {at} went unseen");
        }
    }

    #[test]
    fn what_is_too_long_is_an_error_of_its_sender() {
        let long = || vec![base::VolumeId(1); MESSAGE_BYTES_MAX / 8 + 1];
        let message = Message::Published { views: vec![], volumes: vec![], deleted: long(), bricks: vec![] };
        let mut bytes = vec![1, 2, 3];
        let error = encode(Version::CURRENT, &message.into(), &mut bytes).unwrap_err();
        assert!(error.to_string().starts_with("a message of 41943"), "{error}");
        assert_eq!(bytes, [1, 2, 3], "nothing is half said");
    }

    #[test]
    fn who_waits_for_an_answer_that_cannot_be_sent_is_told_why() {
        let why = FrameError::TooLong { what: "message", bytes: 5 << 20, limit: 4 << 20 };
        let (operation, nobody) = (7, || AdminError::NoVolume("v".to_owned()));
        for answer in [
            Message::AdminDone { operation, result: Err(nobody()) },
            Message::VolumeOpened { operation, map: Err(nobody()) },
            Message::IndexDone { operation, result: Box::new(Err(IndexError::Busy)) },
        ] {
            let instead = format!("{:?}", answer.instead(&why).expect("someone waits"));
            assert!(instead.contains("operation: 7") && instead.contains("of 5242880 bytes"), "{instead}");
        }
        assert_eq!(Message::Recount { from: None }.instead(&why), None);
    }
}
