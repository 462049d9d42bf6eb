//! Replies, and how they are put into simple replies and structured chunks.
//!
//! Once structured replies are negotiated, every reply is one: clients can cut the stream without knowing the
//! requests, and errors carry their message.

use crate::output::Output;
use crate::request::{Header, RequestError};
use crate::wire::{self, chunk, command as cmd, command_flag as flag};
use base::Payload;
use bytes::{BufMut, BytesMut};

/// What a request that succeeded gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: for all but reads and block status.
    Done,
    /// For a read: exactly the bytes asked for.
    Data(Payload),
    /// For a read: pieces that together cover exactly the bytes asked for.
    Sparse(Vec<Piece>),
    /// For block status: extents from the offset asked for on, at least one, none empty. They may end before or after
    /// the range.
    Status(Vec<Extent>),
}

/// A piece of what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes.
    Data(Payload),
    /// As many zero bytes.
    Hole(u32),
}

/// A piece of an export, all of it in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many bytes.
    pub length: u64,
    /// Whether it takes up no space.
    pub hole: bool,
    /// Whether it reads as zeroes.
    pub zero: bool,
}

/// The most extents of one reply. The protocol lets a server tell less than was asked; the client asks again from where
/// the last extent ends.
const EXTENTS_MAX: usize = 8192;

impl Reply {
    /// Sends it as the answer to `request`.
    pub(crate) fn send(self, request: &Header, structured: bool, out: &mut Output<'_>) {
        match (request.kind, self) {
            (cmd::READ, Reply::Data(data)) => send_read(&data, request, structured, out),
            (cmd::READ, Reply::Sparse(pieces)) => send_sparse(pieces, request, structured, out),
            (cmd::BLOCK_STATUS, Reply::Status(extents)) => send_status(&extents, request, out),
            (cmd::READ | cmd::BLOCK_STATUS, reply) => panic!("{reply:?} does not answer {request:?}"),
            (_, Reply::Done) if structured => send_chunk(chunk::NONE, chunk::DONE, 0, request, out, |_| {}),
            (_, Reply::Done) => send_simple(0, &Payload::new(), request, out),
            (_, reply) => panic!("{reply:?} does not answer {request:?}"),
        }
    }
}

/// Sends `error` as the answer to `request`.
pub(crate) fn send_error(error: &RequestError, request: &Header, structured: bool, out: &mut Output<'_>) {
    let errno = error.errno as u32;
    if !structured {
        return send_simple(errno, &Payload::new(), request, out);
    }
    let message = wire::shorten(&error.message);
    send_chunk(chunk::ERROR, chunk::DONE, 6 + message.len(), request, out, |data| {
        data.put_u32(errno);
        data.put_u16(message.len() as u16);
        data.put_slice(message.as_bytes());
    });
}

fn send_read(data: &Payload, request: &Header, structured: bool, out: &mut Output<'_>) {
    assert_eq!(data.len(), request.data_bytes(), "data of another length than {request:?}");
    match structured {
        true => send_data(data, request.offset, chunk::DONE, request, out),
        false => send_simple(0, data, request, out),
    }
}

fn send_sparse(mut pieces: Vec<Piece>, request: &Header, structured: bool, out: &mut Output<'_>) {
    let covered: u64 = pieces.iter().map(piece_bytes).sum();
    assert_eq!(covered, u64::from(request.length), "pieces of another length than {request:?}");
    // A chunk stands for at least one byte.
    pieces.retain(|piece| piece_bytes(piece) > 0);
    if !structured || (request.has(flag::DF) && pieces.len() > 1) {
        return send_read(&whole(&pieces), request, structured, out);
    }
    let (mut offset, last) = (request.offset, pieces.len() - 1);
    for (index, piece) in pieces.iter().enumerate() {
        let flags = if index == last { chunk::DONE } else { 0 };
        match piece {
            Piece::Data(data) => send_data(data, offset, flags, request, out),
            Piece::Hole(length) => send_chunk(chunk::OFFSET_HOLE, flags, 12, request, out, |data| {
                data.put_u64(offset);
                data.put_u32(*length);
            }),
        }
        offset += piece_bytes(piece);
    }
}

fn send_data(data: &Payload, offset: u64, flags: u16, request: &Header, out: &mut Output<'_>) {
    let header = out.header(|buffer| {
        put_chunk(buffer, chunk::OFFSET_DATA, flags, 8 + data.len(), request.cookie);
        buffer.put_u64(offset);
    });
    let mut message = Payload::from(header);
    message.append(data);
    out.send(message);
}

fn send_status(extents: &[Extent], request: &Header, out: &mut Output<'_>) {
    let extents_max = if request.has(flag::REQ_ONE) { 1 } else { EXTENTS_MAX };
    let descriptors = descriptors(extents, request.length, extents_max);
    assert!(!descriptors.is_empty(), "no extent answers {request:?}");
    let length = 4 + 8 * descriptors.len();
    send_chunk(chunk::BLOCK_STATUS, chunk::DONE, length, request, out, |data| {
        data.put_u32(wire::BASE_ALLOCATION_ID);
        for (length, status) in descriptors {
            data.put_u32(length);
            data.put_u32(status);
        }
    });
}

/// Lengths and states of `extents`, cut to `length` bytes and `extents_max`; neighbours of one state are joined.
fn descriptors(extents: &[Extent], length: u32, extents_max: usize) -> Vec<(u32, u32)> {
    let mut joined: Vec<(u32, u32)> = Vec::new();
    let mut left = length;
    for extent in extents {
        let take = u32::try_from(extent.length).unwrap_or(u32::MAX).min(left);
        let hole = if extent.hole { wire::STATE_HOLE } else { 0 };
        let status = hole | if extent.zero { wire::STATE_ZERO } else { 0 };
        if take == 0 {
            break;
        }
        let full = joined.len() == extents_max;
        match joined.last_mut() {
            Some((bytes, last)) if *last == status => *bytes += take,
            _ if full => break,
            _ => joined.push((take, status)),
        }
        left -= take;
    }
    joined
}

fn send_simple(errno: u32, data: &Payload, request: &Header, out: &mut Output<'_>) {
    let header = out.header(|buffer| {
        buffer.put_u32(wire::SIMPLE_REPLY_MAGIC);
        buffer.put_u32(errno);
        buffer.put_u64(request.cookie);
    });
    let mut message = Payload::from(header);
    message.append(data);
    out.send(message);
}

/// Sends a chunk whose `length` bytes of payload `write` puts down.
fn send_chunk(
    kind: u16,
    flags: u16,
    length: usize,
    request: &Header,
    out: &mut Output<'_>,
    write: impl FnOnce(&mut BytesMut),
) {
    let message = out.header(|buffer| {
        put_chunk(buffer, kind, flags, length, request.cookie);
        write(buffer);
    });
    out.send(Payload::from(message));
}

fn put_chunk(buffer: &mut BytesMut, kind: u16, flags: u16, length: usize, cookie: u64) {
    buffer.put_u32(wire::STRUCTURED_REPLY_MAGIC);
    buffer.put_u16(flags);
    buffer.put_u16(kind);
    buffer.put_u64(cookie);
    buffer.put_u32(u32::try_from(length).expect("a chunk is bounded by the maximum block size"));
}

fn piece_bytes(piece: &Piece) -> u64 {
    match piece {
        Piece::Data(data) => data.len() as u64,
        Piece::Hole(length) => u64::from(*length),
    }
}

/// All pieces as one payload, holes as zeroes.
fn whole(pieces: &[Piece]) -> Payload {
    let mut payload = Payload::new();
    for piece in pieces {
        match piece {
            Piece::Data(data) => payload.append(data),
            Piece::Hole(length) => payload.append(&Payload::zeros(*length as usize)),
        }
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(length: u64, hole: bool) -> Extent {
        Extent { length, hole, zero: hole }
    }

    #[test]
    fn extents_are_cut_and_joined() {
        let extents = [extent(10, true), extent(20, true), extent(5, false), extent(1 << 40, true)];
        assert_eq!(descriptors(&extents, 100, 9), [(30, 3), (5, 0), (65, 3)]);
        assert_eq!(descriptors(&extents, 100, 1), [(30, 3)]);
        assert_eq!(descriptors(&extents, 25, 9), [(25, 3)]);
        assert_eq!(descriptors(&[extent(u64::MAX, false)], u32::MAX, 9), [(u32::MAX, 0)]);
    }
}
