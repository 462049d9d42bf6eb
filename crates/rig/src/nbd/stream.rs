//! The socket below an NBD connection.

use anyhow::{Context, Result};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take before the connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(20);

/// A stream to a server.
pub enum Stream {
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

/// A TCP connection to a port of this machine, with every wait bounded.
pub fn connect(port: u16) -> Result<TcpStream> {
    tcp(&format!("127.0.0.1:{port}"))
}

fn tcp(address: &str) -> Result<TcpStream> {
    let found = address.to_socket_addrs()?.next().with_context(|| format!("{address} has no address"))?;
    let stream =
        TcpStream::connect_timeout(&found, CONNECT).with_context(|| format!("connecting to {found}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

impl Stream {
    /// Connects to `tcp:HOST:PORT` or `unix:/PATH`.
    pub(super) fn open(endpoint: &str) -> Result<Stream> {
        match endpoint.strip_prefix("unix:") {
            Some(path) => Stream::unix(Path::new(path)),
            None => Ok(Stream::Tcp(tcp(endpoint.strip_prefix("tcp:").unwrap_or(endpoint))?)),
        }
    }

    pub(super) fn unix(path: &Path) -> Result<Stream> {
        let stream =
            UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Stream::Unix(stream))
    }

    /// Bounds how long sending may block.
    pub(super) fn write_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(match self {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(timeout)),
        }?)
    }

    pub(super) fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// A connection that is gone already needs no shutdown, so its error says nothing.
    pub(super) fn shutdown(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buffer),
            Stream::Unix(stream) => stream.write(buffer),
        }
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(buffers),
            Stream::Unix(stream) => stream.write_vectored(buffers),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
