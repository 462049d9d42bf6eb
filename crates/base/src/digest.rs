//! The identity of content: its BLAKE3 hash. A checksum of 32 bits finds damage; it does not tell apart contents that somebody chose, or very many.

use core::fmt;

/// Two contents with the same one are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of all bytes of these parts.
    pub fn of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {

    use crate::Payload;
    use bytes::Bytes;

    #[test]
    fn a_digest_is_that_of_all_parts_together() {
        let mut payload = Payload::new();
        payload.push(Bytes::from_static(b"ab"));
        payload.push(Bytes::from_static(b"c"));
        assert_eq!(payload.digest(), Payload::from(b"abc".to_vec()).digest());
        // The first bytes of the published test vector for no input.
        assert_eq!(Payload::new().digest().0[..4], [0xaf, 0x13, 0x49, 0xb9]);
    }
}
