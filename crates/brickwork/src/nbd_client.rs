//! A small NBD client for verified load: fixed newstyle negotiation, simple replies, many requests in flight. It has a
//! sending and a receiving half, so that neither side waits for the other's full socket.

use anyhow::{Context, Result, bail, ensure};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long an answer may take before the connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(60);

const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const INFO_EXPORT: u16 = 0;

/// What is asked of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Command {
    /// Bytes, please.
    Read = 0,
    /// Here are bytes.
    Write = 1,
    /// Goodbye.
    Disconnect = 2,
    /// All answered writes to stable storage.
    Flush = 3,
    /// Bytes that nobody needs any more.
    Trim = 4,
    /// Zeros.
    WriteZeroes = 6,
}

/// A request as it goes over the wire.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What.
    pub command: Command,
    /// Names the answer.
    pub cookie: u64,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub length: u32,
}

/// An answer without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The request it answers.
    pub cookie: u64,
    /// 0, or an errno.
    pub error: u32,
}

/// Asks.
pub struct Sender {
    stream: Stream,
}

/// Gets the answers.
pub struct Receiver {
    stream: BufReader<Stream>,
}

/// Connects to `endpoint` (`tcp:HOST:PORT` or `unix:/PATH`) and opens `export`. Returns its size in bytes too.
pub fn connect(endpoint: &str, export: &str) -> Result<(Sender, Receiver, u64)> {
    let open = || -> Result<(Sender, Receiver, u64)> {
        let mut stream = Stream::connect(endpoint)?;
        let size_bytes = negotiate(&mut stream, export)?;
        let receiver = Receiver { stream: BufReader::with_capacity(256 << 10, stream.try_clone()?) };
        Ok((Sender { stream }, receiver, size_bytes))
    };
    open().with_context(|| format!("cannot open the NBD export '{export}' at {endpoint}"))
}

impl Sender {
    /// Sends a request; `payload` is what a write writes, and else empty.
    pub fn send(&mut self, request: Request, payload: &[u8]) -> io::Result<()> {
        let mut head = [0; 28];
        head[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        head[6..8].copy_from_slice(&(request.command as u16).to_be_bytes());
        head[8..16].copy_from_slice(&request.cookie.to_be_bytes());
        head[16..24].copy_from_slice(&request.offset.to_be_bytes());
        head[24..].copy_from_slice(&request.length.to_be_bytes());
        write_both(&mut self.stream, &head, payload)
    }

    /// Ends the connection politely.
    pub fn disconnect(mut self) -> io::Result<()> {
        self.send(Request { command: Command::Disconnect, cookie: 0, offset: 0, length: 0 }, &[])
    }

    /// Breaks the connection, so that the receiving half ends too.
    pub fn abort(&self) {
        self.stream.shutdown();
    }
}

impl Receiver {
    /// The next answer. The payload of a read follows; get it with [`payload`](Receiver::payload).
    pub fn reply(&mut self) -> io::Result<Reply> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        if head[..4] != SIMPLE_REPLY_MAGIC.to_be_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server's answer has a wrong magic number",
            ));
        }
        let error = u32::from_be_bytes(head[4..8].try_into().expect("4 bytes"));
        let cookie = u64::from_be_bytes(head[8..].try_into().expect("8 bytes"));
        Ok(Reply { cookie, error })
    }

    /// The payload of a read that succeeded.
    pub fn payload(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(out)
    }
}

fn negotiate(stream: &mut Stream, export: &str) -> Result<u64> {
    ensure!(read_u64(stream)? == NBD_MAGIC && read_u64(stream)? == OPTION_MAGIC, "there is no NBD server");
    let flags = read_array::<2>(stream)?[1];
    ensure!(flags & 1 == 1, "the server does not speak fixed newstyle NBD");
    let no_zeroes = u32::from(flags & 2);
    stream.write_all(&(1 | no_zeroes).to_be_bytes())?;
    let mut go = Vec::new();
    go.extend(OPTION_MAGIC.to_be_bytes());
    go.extend(OPTION_GO.to_be_bytes());
    go.extend((export.len() as u32 + 6).to_be_bytes());
    go.extend((export.len() as u32).to_be_bytes());
    go.extend(export.as_bytes());
    go.extend(0u16.to_be_bytes());
    stream.write_all(&go)?;
    option_replies(stream)
}

/// Reads until the server says that the export is open; returns its size.
fn option_replies(stream: &mut Stream) -> Result<u64> {
    let mut size = None;
    loop {
        ensure!(read_u64(stream)? == OPTION_REPLY_MAGIC, "the server's negotiation makes no sense");
        let _option = read_array::<4>(stream)?;
        let kind = u32::from_be_bytes(read_array(stream)?);
        let length = u32::from_be_bytes(read_array(stream)?);
        ensure!(length <= 64 << 10, "the server's negotiation is too long");
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match kind {
            REPLY_ACK => return size.context("the server did not say how large the export is"),
            REPLY_INFO if data.len() >= 10 && data[..2] == INFO_EXPORT.to_be_bytes() => {
                size = Some(u64::from_be_bytes(data[2..10].try_into()?));
            }
            REPLY_INFO => {}
            error => bail!("the server refused ({:#x}): {}", error, String::from_utf8_lossy(&data)),
        }
    }
}

fn read_u64(stream: &mut Stream) -> io::Result<u64> {
    read_array(stream).map(u64::from_be_bytes)
}

fn read_array<const N: usize>(stream: &mut Stream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_both(stream: &mut Stream, head: &[u8], payload: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(payload)])?;
    if sent < head.len() {
        stream.write_all(&head[sent..])?;
    }
    stream.write_all(&payload[sent.saturating_sub(head.len())..])
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(endpoint: &str) -> Result<Stream> {
        let stream = match endpoint.strip_prefix("unix:") {
            Some(path) => Stream::Unix(UnixStream::connect(path)?),
            None => Stream::Tcp(TcpStream::connect(endpoint.strip_prefix("tcp:").unwrap_or(endpoint))?),
        };
        match &stream {
            Stream::Tcp(tcp) => {
                tcp.set_nodelay(true)?;
                tcp.set_read_timeout(Some(PATIENCE))?;
                tcp.set_write_timeout(Some(PATIENCE))?;
            }
            Stream::Unix(unix) => {
                unix.set_read_timeout(Some(PATIENCE))?;
                unix.set_write_timeout(Some(PATIENCE))?;
            }
        }
        Ok(stream)
    }

    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// A connection that is gone already needs no shutdown, so its error says nothing.
    fn shutdown(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
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
