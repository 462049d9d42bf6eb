//! A bare NBD client, for what the real ones will not do: broken requests, and a record of what was acknowledged.
//!
//! Fixed newstyle, `NBD_OPT_GO`, simple replies only. Numbers are those of the protocol's specification.

use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
/// Begins each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;

/// Command numbers.
pub mod command {
    /// Reads.
    pub const READ: u16 = 0;
    /// Writes.
    pub const WRITE: u16 = 1;
    /// Makes all acknowledged writes durable.
    pub const FLUSH: u16 = 3;
    /// Discards.
    pub const TRIM: u16 = 4;
    /// Zeroes.
    pub const WRITE_ZEROES: u16 = 6;
}

/// What a server answers errors with.
pub mod error {
    /// Nothing permitted: read-only.
    pub const EPERM: u32 = 1;
    /// The request makes no sense.
    pub const EINVAL: u32 = 22;
    /// No room.
    pub const ENOSPC: u32 = 28;
    /// Too large for this server.
    pub const EOVERFLOW: u32 = 75;
}

/// A stream to a server.
pub trait Stream: Read + Write + Send {
    /// Bounds how long sending may block.
    fn write_timeout(&self, timeout: Duration) -> Result<()>;
}

impl Stream for TcpStream {
    fn write_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.set_write_timeout(Some(timeout))?)
    }
}

impl Stream for UnixStream {
    fn write_timeout(&self, timeout: Duration) -> Result<()> {
        Ok(self.set_write_timeout(Some(timeout))?)
    }
}

/// A connection that has been negotiated.
pub struct Nbd {
    stream: Box<dyn Stream>,
    /// Bytes in the export.
    pub size: u64,
    /// Transmission flags.
    pub flags: u16,
}

/// A reply to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// 0, or an error.
    pub error: u32,
    /// Which request.
    pub handle: u64,
}

impl Nbd {
    /// Connects over TCP; every wait is bounded by 60 s.
    pub fn tcp(port: u16, export: &str) -> Result<Nbd> {
        Nbd::negotiate(Box::new(connect(port)?), export)
    }

    /// Connects to a unix socket; every wait is bounded by 60 s.
    pub fn unix(path: &Path, export: &str) -> Result<Nbd> {
        let stream =
            UnixStream::connect(path).with_context(|| format!("connecting to {}", path.display()))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        Nbd::negotiate(Box::new(stream), export)
    }

    fn negotiate(mut stream: Box<dyn Stream>, export: &str) -> Result<Nbd> {
        greet(&mut *stream)?;
        let mut data = Vec::from((export.len() as u32).to_be_bytes());
        data.extend_from_slice(export.as_bytes());
        data.extend_from_slice(&0u16.to_be_bytes());
        send_option(&mut *stream, OPTION_GO, &data)?;
        let (mut size, mut flags) = (0, 0);
        loop {
            let (kind, data) = read_option_reply(&mut *stream)?;
            match kind {
                REPLY_ACK => return Ok(Nbd { stream, size, flags }),
                REPLY_INFO if data.len() >= 12 && data[..2] == [0, 0] => {
                    size = u64::from_be_bytes(data[2..10].try_into()?);
                    flags = u16::from_be_bytes(data[10..12].try_into()?);
                }
                REPLY_INFO => {}
                other => bail!("export {export} refused with {other:#x}: {}", String::from_utf8_lossy(&data)),
            }
        }
    }

    /// Bounds how long sending may block.
    pub fn write_timeout(&self, timeout: Duration) -> Result<()> {
        self.stream.write_timeout(timeout)
    }

    /// Sends the head of a request.
    pub fn request(&mut self, command: u16, handle: u64, offset: u64, length: u32) -> Result<()> {
        Ok(self.stream.write_all(&head(command, handle, offset, length))?)
    }

    /// Sends a write with its payload.
    pub fn send_write(&mut self, handle: u64, offset: u64, data: &[u8]) -> Result<()> {
        let mut message = Vec::from(head(command::WRITE, handle, offset, data.len() as u32));
        message.extend_from_slice(data);
        Ok(self.stream.write_all(&message)?)
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, data: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(data)?)
    }

    /// Receives the head of a reply.
    pub fn reply(&mut self) -> Result<Reply> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).context("waiting for a reply")?;
        ensure!(head[..4] == REPLY_MAGIC.to_be_bytes(), "a reply begins with {:02x?}", &head[..4]);
        let error = u32::from_be_bytes(head[4..8].try_into()?);
        Ok(Reply { error, handle: u64::from_be_bytes(head[8..].try_into()?) })
    }

    /// Receives a payload.
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
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A TCP connection to a port of this machine, with every wait bounded.
pub fn connect(port: u16) -> Result<TcpStream> {
    let address = ("127.0.0.1", port).to_socket_addrs()?.next().context("loopback has no address")?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(20))
        .with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// Reads the server's greeting and answers with fixed newstyle, no zeroes.
pub fn greet(stream: &mut dyn Stream) -> Result<()> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).context("waiting for the server's greeting")?;
    ensure!(greeting[..8] == *b"NBDMAGIC", "the greeting begins with {:02x?}", &greeting[..8]);
    Ok(stream.write_all(&3u32.to_be_bytes())?)
}

/// Sends an option.
pub fn send_option(stream: &mut dyn Stream, option: u32, data: &[u8]) -> Result<()> {
    let mut message = Vec::from(OPTION_MAGIC.to_be_bytes());
    message.extend_from_slice(&option.to_be_bytes());
    message.extend_from_slice(&(data.len() as u32).to_be_bytes());
    message.extend_from_slice(data);
    Ok(stream.write_all(&message)?)
}

/// Receives the reply to an option: its kind and data.
pub fn read_option_reply(stream: &mut dyn Stream) -> Result<(u32, Vec<u8>)> {
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

fn head(command: u16, handle: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut head = [0; 28];
    head[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    head[6..8].copy_from_slice(&command.to_be_bytes());
    head[8..16].copy_from_slice(&handle.to_be_bytes());
    head[16..24].copy_from_slice(&offset.to_be_bytes());
    head[24..].copy_from_slice(&length.to_be_bytes());
    head
}
