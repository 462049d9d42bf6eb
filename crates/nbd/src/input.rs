//! Received bytes that wait to be parsed.

use base::{BLOCK, Payload};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// A queue of received bytes. Taking a payload out of it shares the bytes.
#[derive(Default, Debug)]
pub(crate) struct Input {
    parts: VecDeque<Bytes>,
    len: usize,
}

impl Input {
    pub(crate) fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.len += part.len();
            self.parts.push_back(part);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        *self = Input::default();
    }

    /// The next `N` bytes, once they are all there.
    pub(crate) fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut array = [0; N];
        self.take_exact(&mut array).then_some(array)
    }

    /// The next `len` bytes, once they are all there.
    pub(crate) fn take_vec(&mut self, len: usize) -> Option<Vec<u8>> {
        if self.len < len {
            return None;
        }
        let mut bytes = vec![0; len];
        self.take_exact(&mut bytes).then_some(bytes)
    }

    /// Drops up to `limit` bytes and says how many.
    pub(crate) fn skip(&mut self, limit: usize) -> usize {
        let mut left = limit;
        while let Some(part) = self.take_part(left) {
            left -= part.len();
        }
        limit - left
    }

    /// Between 1 and `limit` bytes that lie together.
    fn take_part(&mut self, limit: usize) -> Option<Bytes> {
        if limit == 0 {
            return None;
        }
        let mut part = self.parts.pop_front()?;
        if part.len() > limit {
            let rest = part.split_off(limit);
            self.parts.push_front(rest);
        }
        self.len -= part.len();
        Some(part)
    }

    fn take_exact(&mut self, target: &mut [u8]) -> bool {
        if self.len < target.len() {
            return false;
        }
        let mut at = 0;
        while let Some(part) = self.take_part(target.len() - at) {
            target[at..at + part.len()].copy_from_slice(&part);
            at += part.len();
        }
        true
    }
}

/// A payload that arrives in parts.
#[derive(Debug)]
pub(crate) struct Gather {
    payload: Payload,
    /// Parts below [`BLOCK`] bytes are copied together here. A client that sends single bytes would else make each of
    /// them hold on to a receive buffer of its own.
    small: BytesMut,
    left: usize,
}

impl Gather {
    pub(crate) fn new(len: usize) -> Gather {
        Gather { payload: Payload::new(), small: BytesMut::new(), left: len }
    }

    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.payload.len() + self.small.len()
    }

    /// Takes what has arrived; gives the payload once it is complete.
    pub(crate) fn take(&mut self, input: &mut Input) -> Option<Payload> {
        while let Some(part) = input.take_part(self.left) {
            let whole = self.len() == 0 && part.len() == self.left;
            self.left -= part.len();
            if whole || part.len() >= BLOCK {
                self.join_small();
                self.payload.push(part);
            } else {
                self.small.extend_from_slice(&part);
            }
        }
        (self.left == 0).then(|| {
            self.join_small();
            std::mem::take(&mut self.payload)
        })
    }

    fn join_small(&mut self) {
        self.payload.push(std::mem::take(&mut self.small).freeze());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_in_single_bytes_becomes_one_part() {
        let mut input = Input::default();
        let mut gather = Gather::new(3000);
        for byte in 0..2999u16 {
            input.push(Bytes::copy_from_slice(&[byte as u8]));
            assert!(gather.take(&mut input).is_none());
        }
        input.push(Bytes::from_static(&[9, 7]));
        let payload = gather.take(&mut input).unwrap();
        assert_eq!((payload.len(), payload.parts().len(), input.len()), (3000, 1, 1));
        assert_eq!(input.take_array(), Some([7]));
    }

    #[test]
    fn a_payload_in_one_part_is_shared() {
        let received = Bytes::from(vec![5; 600]);
        let mut input = Input::default();
        input.push(received.clone());
        assert_eq!(input.skip(88), 88);
        let payload = Gather::new(512).take(&mut input).unwrap();
        assert_eq!(payload.parts()[0].as_ptr(), received[88..].as_ptr());
    }
}
