//! Bytes that travel: reference-counted, sliced and joined without being copied.

use crate::{BLOCK, Checksum, Digest, checksum};
use bytes::Bytes;
use core::fmt;

/// The content of a request or a reply. Slicing and joining share the bytes; only [`Payload::to_vec`],
/// [`Payload::contiguous`] (when there is more than one part) and [`Payload::xor`] copy.
#[derive(Clone, Default)]
pub struct Payload {
    parts: Parts,
    len: usize,
}

#[derive(Clone)]
enum Parts {
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Default for Parts {
    fn default() -> Parts {
        Parts::One(Bytes::new())
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Payload {
    /// Of no bytes.
    pub fn new() -> Payload {
        Payload::default()
    }

    /// `len` zero bytes, from one shared page of them.
    pub fn zeros(len: usize) -> Payload {
        let mut payload = Payload::new();
        let mut left = len;
        while left > 0 {
            let part = left.min(ZEROS.len());
            payload.push(Bytes::from_static(&ZEROS[..part]));
            left -= part;
        }
        payload
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts in order; none is empty.
    pub fn parts(&self) -> &[Bytes] {
        match &self.parts {
            Parts::One(part) if part.is_empty() => &[],
            Parts::One(part) => core::slice::from_ref(part),
            Parts::Many(parts) => parts,
        }
    }

    /// Adds `part` at the end.
    pub fn push(&mut self, part: Bytes) {
        if part.is_empty() {
            return;
        }
        self.len += part.len();
        match &mut self.parts {
            Parts::One(one) if one.is_empty() => *one = part,
            Parts::One(one) => self.parts = Parts::Many(vec![core::mem::take(one), part]),
            Parts::Many(parts) => parts.push(part),
        }
    }

    /// Adds all of `other` at the end.
    pub fn append(&mut self, other: &Payload) {
        other.parts().iter().for_each(|part| self.push(part.clone()));
    }

    /// The bytes from `start` on, `len` of them. Panics when they are not all there.
    pub fn slice(&self, start: usize, len: usize) -> Payload {
        assert!(start + len <= self.len, "slice {start}+{len} of a payload of {}", self.len);
        if let Parts::One(part) = &self.parts {
            return Payload::from(part.slice(start..start + len));
        }
        let mut slice = Payload::new();
        let (mut skip, mut left) = (start, len);
        for part in self.parts() {
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let take = left.min(part.len() - skip);
            slice.push(part.slice(skip..skip + take));
            (skip, left) = (0, left - take);
            if left == 0 {
                break;
            }
        }
        slice
    }

    /// Block number `index` of it. Panics when it is not there.
    pub fn block(&self, index: usize) -> Payload {
        self.slice(index * BLOCK, BLOCK)
    }

    /// All bytes in one piece; copies when there is more than one part.
    pub fn contiguous(&self) -> Bytes {
        match self.parts() {
            [] => Bytes::new(),
            [part] => part.clone(),
            _ => Bytes::from(self.to_vec()),
        }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::with_capacity(self.len);
        self.parts().iter().for_each(|part| copy.extend_from_slice(part));
        copy
    }

    /// Copies all bytes into `target`, which has exactly their length.
    pub fn copy_to(&self, target: &mut [u8]) {
        assert_eq!(target.len(), self.len, "copy of a payload into a place of another size");
        let mut at = 0;
        for part in self.parts() {
            target[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// The bytewise exclusive or of two payloads of one length.
    pub fn xor(&self, other: &Payload) -> Payload {
        let mut sum = self.to_vec();
        other.xor_into(&mut sum);
        Payload::from(sum)
    }

    /// `target ^= self`, over exactly their common length.
    pub fn xor_into(&self, target: &mut [u8]) {
        assert_eq!(target.len(), self.len, "exclusive or of two lengths");
        let mut at = 0;
        for part in self.parts() {
            target[at..at + part.len()].iter_mut().zip(part.iter()).for_each(|(t, s)| *t ^= s);
            at += part.len();
        }
    }

    /// Whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        self.parts().iter().all(|part| {
            let (words, tail) = part.as_chunks::<8>();
            words.iter().all(|word| *word == [0; 8]) && tail.iter().all(|&byte| byte == 0)
        })
    }

    /// The checksum of all bytes.
    pub fn checksum(&self) -> Checksum {
        self.checksum_behind(0)
    }

    /// What tells these bytes from all others.
    pub fn digest(&self) -> Digest {
        Digest::of(self.parts().iter().map(|part| &part[..]))
    }

    /// The checksum of all bytes behind others of which `sum` is the checksum.
    pub fn checksum_behind(&self, sum: Checksum) -> Checksum {
        self.parts().iter().fold(sum, |sum, part| checksum::checksum_append(sum, part))
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload { len: bytes.len(), parts: Parts::One(bytes) }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::from(Bytes::from(bytes))
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.len == other.len
            && match (self.parts(), other.parts()) {
                ([a], [b]) => a == b,
                (a, b) => a.iter().flatten().eq(b.iter().flatten()),
            }
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.len)?;
        if !self.is_empty() {
            write!(f, " #{:08x}", self.checksum())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cross_parts() {
        let mut payload = Payload::from(vec![1, 2, 3]);
        payload.push(Bytes::from_static(&[4, 5]));
        payload.push(Bytes::from_static(&[6]));
        assert_eq!(payload.slice(2, 3).to_vec(), [3, 4, 5]);
        assert_eq!(payload.slice(0, 6), Payload::from(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(payload.slice(6, 0).len(), 0);
        assert_eq!(payload.xor(&payload.clone()), Payload::zeros(6));
        assert!(payload.xor(&payload).is_zero() && !payload.is_zero());
    }
}
