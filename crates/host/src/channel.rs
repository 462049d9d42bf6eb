//! A byte stream over a socket, plain or under TLS, that never blocks.

use crate::socket::Socket;
use rustls::Connection;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;

/// Encrypted bytes taken from the socket at a time.
const CIPHER_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Channel {
    socket: Socket,
    tls: Option<Box<Tls>>,
}

#[derive(Debug)]
struct Tls {
    connection: Connection,
    /// Encrypted bytes that were received and not yet taken in, from `start` on.
    received: Vec<u8>,
    start: usize,
}

impl Channel {
    pub(crate) fn plain(socket: Socket) -> Channel {
        Channel { socket, tls: None }
    }

    pub(crate) fn over_tls(socket: Socket, connection: Connection) -> Channel {
        let mut channel = Channel::plain(socket);
        channel.start_tls(connection);
        channel
    }

    /// Goes on under TLS. What was received before must have been used up.
    pub(crate) fn start_tls(&mut self, connection: Connection) {
        self.tls = Some(Box::new(Tls { connection, received: Vec::new(), start: 0 }));
    }

    pub(crate) fn tls(&self) -> Option<&Connection> {
        self.tls.as_deref().map(|tls| &tls.connection)
    }

    /// Goes on with the handshake. `Ok(true)` once it is done; content that came right behind it waits in here, so that
    /// the caller learns of the upgrade before it sees what was sent under it.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.connection.is_handshaking() {
            match tls.take_in(&mut self.socket) {
                Ok(()) if tls.received.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether encrypted bytes wait to be sent.
    pub(crate) fn has_cipher(&self) -> bool {
        self.tls().is_some_and(|connection| connection.wants_write())
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether a read that did not fill its place has taken all there was, so that no second one need ask.
    pub(crate) fn short_read_is_last(&self) -> bool {
        self.tls.is_none()
    }

    /// Reads into two places in turn. The number of bytes; 0 at the end of the stream.
    pub(crate) fn read_two(
        &mut self,
        first: &mut [MaybeUninit<u8>],
        second: &mut [MaybeUninit<u8>],
    ) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read_two(first, second),
            Some(tls) => tls.read(&mut self.socket, if first.is_empty() { second } else { first }),
        }
    }

    /// Writes some of `parts`; under TLS the bytes may still wait in here, see [`Channel::flush`].
    pub(crate) fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write_vectored(parts) };
        if !tls.write_out(&mut self.socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match tls.connection.writer().write_vectored(parts)? {
            // Not one byte is taken while the handshake has filled the buffer.
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Sends what waits in here. `Ok(true)` when nothing does any more.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.write_out(&mut self.socket),
        }
    }
}

impl Tls {
    fn read(&mut self, socket: &mut Socket, into: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let length = into.len().min(CIPHER_BYTES);
        let into = &mut into[..length];
        into.fill(MaybeUninit::new(0));
        // SAFETY: every byte was just written.
        let into = unsafe { &mut *(std::ptr::from_mut(into) as *mut [u8]) };
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A stream that ends without the closing alert ends all the same: frames know where they end.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            self.take_in(socket)?;
        }
    }

    /// Takes in at least one more encrypted byte, or the end of the stream.
    fn take_in(&mut self, socket: &mut Socket) -> io::Result<()> {
        if self.start == self.received.len() {
            self.received.resize(CIPHER_BYTES, 0);
            let count = socket.read(&mut self.received);
            self.start = 0;
            self.received.truncate(*count.as_ref().unwrap_or(&0));
            count?;
        }
        let mut left = &self.received[self.start..];
        let count = self.connection.read_tls(&mut left)?;
        self.start += count;
        let taken = self.connection.process_new_packets();
        // Handshake replies, and the alert that tells the other side what was wrong.
        let sent = self.write_out(socket);
        taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        sent?;
        Ok(())
    }

    fn write_out(&mut self, socket: &mut Socket) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
