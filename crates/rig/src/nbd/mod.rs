//! The NBD client of tests, measurements and the demo: fixed newstyle, `NBD_OPT_GO`, simple replies. Numbers are those of the
//! protocol's specification.
//!
//! Reading order: [`Nbd`] (one request after another, also broken ones), [`Sender`] and [`Receiver`] (both halves of it, for
//! load that keeps many requests outstanding: neither side waits for the other's full socket), `stream`.

mod stream;

pub use stream::{Stream, connect};

use anyhow::{Context, Result, bail, ensure};
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::path::Path;
use std::time::Duration;

/// `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;

/// What is asked of a server that understands it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Command {
    Read = command::READ,
    Write = command::WRITE,
    Disconnect = command::DISCONNECT,
    /// Makes all acknowledged writes durable.
    Flush = command::FLUSH,
    Trim = command::TRIM,
    WriteZeroes = command::WRITE_ZEROES,
}

pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    /// Makes all acknowledged writes durable.
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
}

/// What a server answers errors with.
pub mod error {
    /// Nothing permitted: read-only.
    pub const EPERM: u32 = 1;
    /// What cannot be made out.
    pub const EIO: u32 = 5;
    /// The request makes no sense.
    pub const EINVAL: u32 = 22;
    /// No room.
    pub const ENOSPC: u32 = 28;
    /// Too large for this server.
    pub const EOVERFLOW: u32 = 75;
}

/// A connection that has been negotiated.
pub struct Nbd {
    stream: Stream,
    /// Bytes in the export.
    pub size: u64,
    pub flags: u16,
}

/// A request as it goes over the wire.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub command: Command,
    pub handle: u64,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub length: u32,
}

/// A reply to a request, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// 0, or an error.
    pub error: u32,
    pub handle: u64,
}

/// The half of a connection that asks.
pub struct Sender {
    stream: Stream,
}

/// The half of a connection that gets the replies.
pub struct Receiver {
    stream: BufReader<Stream>,
}

impl Nbd {
    /// Connects over TCP to a port of this machine; every wait is bounded.
    pub fn tcp(port: u16, export: &str) -> Result<Nbd> {
        Nbd::negotiate(Stream::Tcp(connect(port)?), export)
    }

    /// Connects to a unix socket; every wait is bounded.
    pub fn unix(path: &Path, export: &str) -> Result<Nbd> {
        Nbd::negotiate(Stream::unix(path)?, export)
    }

    /// Connects to `tcp:HOST:PORT` or `unix:/PATH`; every wait is bounded.
    pub fn open(endpoint: &str, export: &str) -> Result<Nbd> {
        let open = || Nbd::negotiate(Stream::open(endpoint)?, export);
        open().with_context(|| format!("cannot open the NBD export '{export}' at {endpoint}"))
    }

    fn negotiate(mut stream: Stream, export: &str) -> Result<Nbd> {
        greet(&mut stream)?;
        let mut data = Vec::from((export.len() as u32).to_be_bytes());
        data.extend_from_slice(export.as_bytes());
        data.extend_from_slice(&0u16.to_be_bytes());
        send_option(&mut stream, OPTION_GO, &data)?;
        let (mut size, mut flags) = (None, 0);
        loop {
            let (kind, data) = read_option_reply(&mut stream)?;
            match kind {
                REPLY_ACK => {
                    let size = size.context("the server did not say how large the export is")?;
                    return Ok(Nbd { stream, size, flags });
                }
                REPLY_INFO if data.len() >= 12 && data[..2] == [0, 0] => {
                    size = Some(u64::from_be_bytes(data[2..10].try_into()?));
                    flags = u16::from_be_bytes(data[10..12].try_into()?);
                }
                REPLY_INFO => {}
                other => bail!("export {export} refused with {other:#x}: {}", String::from_utf8_lossy(&data)),
            }
        }
    }

    /// Both halves of the connection.
    pub fn split(self) -> Result<(Sender, Receiver)> {
        let receiver = Receiver { stream: BufReader::with_capacity(256 << 10, self.stream.try_clone()?) };
        Ok((Sender { stream: self.stream }, receiver))
    }

    /// Bounds how long sending may block.
    pub fn write_timeout(&self, timeout: Duration) -> Result<()> {
        self.stream.write_timeout(timeout)
    }

    /// Sends the head of a request, of a command that there need not be.
    pub fn request(&mut self, command: u16, handle: u64, offset: u64, length: u32) -> Result<()> {
        Ok(self.stream.write_all(&head(command, handle, offset, length))?)
    }

    /// Sends a write with its payload.
    pub fn send_write(&mut self, handle: u64, offset: u64, data: &[u8]) -> Result<()> {
        Ok(write_both(&mut self.stream, &head(command::WRITE, handle, offset, data.len() as u32), data)?)
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, data: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(data)?)
    }

    /// Receives the head of a reply.
    pub fn reply(&mut self) -> Result<Reply> {
        read_reply(&mut self.stream).context("waiting for a reply")
    }

    pub fn payload(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).context("waiting for a payload")?;
        Ok(data)
    }

    /// Reads, and waits for it.
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>> {
        self.request(command::READ, 1, offset, length)?;
        let reply = self.reply()?;
        ensure!(reply.error == 0, "reading {length} bytes at {offset}: error {}", reply.error);
        self.payload(length as usize)
    }

    /// Reads, and waits for it: nothing where the answer is EIO.
    pub fn read_unless_lost(&mut self, offset: u64, length: u32) -> Result<Option<Vec<u8>>> {
        self.request(command::READ, 1, offset, length)?;
        match self.reply()?.error {
            0 => self.payload(length as usize).map(Some),
            error::EIO => Ok(None),
            error => bail!("reading {length} bytes at {offset}: error {error}, which is not EIO"),
        }
    }

    /// Writes, and waits for it.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.send_write(2, offset, data)?;
        let reply = self.reply()?;
        ensure!(reply.error == 0, "writing {} bytes at {offset}: error {}", data.len(), reply.error);
        Ok(())
    }

    /// A request without payload either way; its error number.
    pub fn ask(&mut self, command: u16, offset: u64, length: u32) -> Result<u32> {
        self.request(command, 3, offset, length)?;
        Ok(self.reply()?.error)
    }

    /// Whether the server has closed the connection.
    pub fn closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

impl Sender {
    /// Sends a request; `payload` is what a write writes, and else empty.
    pub fn send(&mut self, request: Request, payload: &[u8]) -> io::Result<()> {
        let Request { command, handle, offset, length } = request;
        write_both(&mut self.stream, &head(command as u16, handle, offset, length), payload)
    }

    /// Ends the connection politely.
    pub fn disconnect(mut self) -> io::Result<()> {
        self.send(Request { command: Command::Disconnect, handle: 0, offset: 0, length: 0 }, &[])
    }

    /// Breaks the connection, so that the receiving half ends too.
    pub fn abort(&self) {
        self.stream.shutdown();
    }
}

impl Receiver {
    /// The next reply. The payload of a read follows; get it with [`payload`](Receiver::payload).
    pub fn reply(&mut self) -> io::Result<Reply> {
        read_reply(&mut self.stream)
    }

    /// The payload of a read that succeeded.
    pub fn payload(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(out)
    }
}

/// Reads the server's greeting and answers with fixed newstyle, no zeroes.
pub fn greet(stream: &mut (impl Read + Write)) -> Result<()> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).context("waiting for the server's greeting")?;
    ensure!(greeting[..8] == *b"NBDMAGIC", "the greeting begins with {:02x?}", &greeting[..8]);
    Ok(stream.write_all(&3u32.to_be_bytes())?)
}

pub fn send_option(stream: &mut (impl Read + Write), option: u32, data: &[u8]) -> Result<()> {
    let mut message = Vec::from(OPTION_MAGIC.to_be_bytes());
    message.extend_from_slice(&option.to_be_bytes());
    message.extend_from_slice(&(data.len() as u32).to_be_bytes());
    message.extend_from_slice(data);
    Ok(stream.write_all(&message)?)
}

/// Receives the reply to an option: its kind and data.
pub fn read_option_reply(stream: &mut (impl Read + Write)) -> Result<(u32, Vec<u8>)> {
    let mut head = [0; 20];
    stream.read_exact(&mut head).context("waiting for the reply to an option")?;
    ensure!(
        head[..8] == OPTION_REPLY_MAGIC.to_be_bytes(),
        "an option's reply begins with {:02x?}",
        &head[..8]
    );
    let length = u32::from_be_bytes(head[16..].try_into()?) as usize;
    ensure!(length <= 1 << 20, "an option's reply of {length} bytes");
    let mut data = vec![0; length];
    stream.read_exact(&mut data)?;
    Ok((u32::from_be_bytes(head[12..16].try_into()?), data))
}

fn read_reply(stream: &mut impl Read) -> io::Result<Reply> {
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    if head[..4] != REPLY_MAGIC.to_be_bytes() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the server's reply has a wrong magic number",
        ));
    }
    let error = u32::from_be_bytes(head[4..8].try_into().expect("4 bytes"));
    Ok(Reply { error, handle: u64::from_be_bytes(head[8..].try_into().expect("8 bytes")) })
}

/// Head and payload in one call to the kernel where it takes both.
fn write_both(stream: &mut Stream, head: &[u8], payload: &[u8]) -> io::Result<()> {
    let sent = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(payload)])?;
    if sent < head.len() {
        stream.write_all(&head[sent..])?;
    }
    stream.write_all(&payload[sent.saturating_sub(head.len())..])
}

/// The head of a request, of a command that there need not be.
pub fn head(command: u16, handle: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut head = [0; 28];
    head[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    head[6..8].copy_from_slice(&command.to_be_bytes());
    head[8..16].copy_from_slice(&handle.to_be_bytes());
    head[16..24].copy_from_slice(&offset.to_be_bytes());
    head[24..].copy_from_slice(&length.to_be_bytes());
    head
}
