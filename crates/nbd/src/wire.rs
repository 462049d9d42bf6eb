//! The numbers of the protocol, named as in its text without the `NBD_` prefix. All integers travel big-endian.

/// First eight bytes of the greeting.
pub const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second eight bytes of the greeting, and the start of every option.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Start of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Start of every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Start of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of an option before its data: magic, option, length.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Bytes of a request before its payload: magic, flags, type, cookie, offset, length.
pub const REQUEST_HEADER_BYTES: usize = 28;
/// The longest string: export names, descriptions, messages.
pub const STRING_BYTES_MAX: usize = 4096;
/// Zero bytes at the end of the answer to `EXPORT_NAME`, unless the client asked to leave them out.
pub const EXPORT_NAME_ZEROES: usize = 124;

/// Handshake flags (16 bits, from the server) and client flags (32 bits, the same bits back).
pub mod handshake {
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The zeroes at the end of the answer to `EXPORT_NAME` are left out.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options (`NBD_OPT_*`).
pub mod option {
    /// Attach to an export, with no way to report an error.
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    /// Upgrade the connection to TLS.
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    /// Describe an export and attach to it.
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List the metadata contexts of an export.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Select the metadata contexts of an export.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options (`NBD_REP_*`).
pub mod option_reply {
    const ERROR: u32 = 1 << 31;
    pub const ACK: u32 = 1;
    /// One export of a list.
    pub const SERVER: u32 = 2;
    /// One piece of information on an export.
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    /// The option is unknown.
    pub const ERR_UNSUP: u32 = ERROR + 1;
    /// The option is known and forbidden.
    pub const ERR_POLICY: u32 = ERROR + 2;
    /// The option's data are malformed, or it comes at a wrong moment.
    pub const ERR_INVALID: u32 = ERROR + 3;
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    /// The export is unknown.
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = ERROR + 7;
    /// The option's data are too long.
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Pieces of information on an export (`NBD_INFO_*`).
pub mod info {
    /// Its size and transmission flags.
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    /// A line for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags (`NBD_FLAG_*`).
pub mod transmission {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH` is served.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The `FUA` flag is honoured.
    pub const SEND_FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    /// `TRIM` is served.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is served.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The `DF` flag is honoured.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush through one connection covers the writes of all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// `CACHE` is served.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The `FAST_ZERO` flag is honoured.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Requests (`NBD_CMD_*`).
pub mod command {
    pub const READ: u16 = 0;
    /// Write; its payload follows.
    pub const WRITE: u16 = 1;
    /// End the session; it has no reply.
    pub const DISC: u16 = 2;
    /// Make acknowledged writes durable.
    pub const FLUSH: u16 = 3;
    /// The content is no longer needed.
    pub const TRIM: u16 = 4;
    /// The content will be read soon.
    pub const CACHE: u16 = 5;
    /// Write zeroes, without a payload.
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests (`NBD_CMD_FLAG_*`).
pub mod command_flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    /// The data in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent is enough.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail if zeroing is no faster than writing.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of chunks of a structured reply (`NBD_REPLY_TYPE_*`), and their one flag.
pub mod chunk {
    /// The flag of a reply's last chunk.
    pub const DONE: u16 = 1 << 0;
    /// Nothing: success of a request that has no data.
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    /// Content that is zero.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of one metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// The name of the one metadata context that is served.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The number that stands for [`BASE_ALLOCATION`] in replies.
pub const BASE_ALLOCATION_ID: u32 = 1;
/// In a status of [`BASE_ALLOCATION`]: not allocated.
pub const STATE_HOLE: u32 = 1 << 0;
/// In a status of [`BASE_ALLOCATION`]: reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;

/// As much of `text` as a string of the protocol holds.
pub(crate) fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(STRING_BYTES_MAX)]
}
