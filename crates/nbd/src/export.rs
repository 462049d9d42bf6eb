//! What a session knows of a volume: its [`Export`], and why there may be none.

use crate::wire::transmission as flag;
use std::borrow::Cow;
use thiserror::Error;

/// A volume as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its canonical name, of at most [`STRING_BYTES_MAX`](crate::wire::STRING_BYTES_MAX) bytes.
    pub name: String,
    /// A line for people; may be empty.
    pub description: String,
    /// Its size. A tail shorter than the minimum block is out of reach.
    pub size_bytes: u64,
    /// The sizes and alignments that clients are told. Requests on other alignments are served too.
    pub block_sizes: BlockSizes,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether a flush through one connection covers the acknowledged writes of all.
    pub multi_connection: bool,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// Whether [`Command::Cache`](crate::Command::Cache) is served.
    pub cache: bool,
    /// Whether [`Command::WriteZeroes`](crate::Command::WriteZeroes) knows when it is fast.
    pub fast_zero: bool,
}

impl Export {
    /// A writable export that may be used through several connections, with the usual block sizes.
    pub fn new(name: impl Into<String>, size_bytes: u64) -> Export {
        Export {
            name: name.into(),
            description: String::new(),
            size_bytes,
            block_sizes: BlockSizes::default(),
            read_only: false,
            multi_connection: true,
            rotational: false,
            cache: false,
            fast_zero: false,
        }
    }

    /// The size that clients are told: whole minimum blocks.
    pub(crate) fn reachable_bytes(&self) -> u64 {
        self.size_bytes - self.size_bytes % u64::from(self.block_sizes.minimum)
    }

    pub(crate) fn flags(&self, structured: bool) -> u16 {
        let choices = [
            (true, flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA),
            (self.read_only, flag::READ_ONLY),
            (!self.read_only, flag::SEND_TRIM | flag::SEND_WRITE_ZEROES),
            (!self.read_only && self.fast_zero, flag::SEND_FAST_ZERO),
            (self.rotational, flag::ROTATIONAL),
            (self.multi_connection, flag::CAN_MULTI_CONN),
            (self.cache, flag::SEND_CACHE),
            (structured, flag::SEND_DF),
        ];
        choices.iter().filter(|(set, _)| *set).fold(0, |flags, (_, bits)| flags | bits)
    }
}

/// The block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    minimum: u32,
    preferred: u32,
    maximum: u32,
}

/// Block sizes that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "block sizes of {minimum} B minimum, {preferred} B preferred and {maximum} B maximum are not allowed: the minimum is \
     a power of two up to 64 KiB, the preferred size a power of two from 512 B and not below the minimum, the maximum a \
     multiple of the minimum and not below the preferred size"
)]
pub struct BadBlockSizes {
    minimum: u32,
    preferred: u32,
    maximum: u32,
}

impl BlockSizes {
    /// Clients are asked to keep to multiples of `minimum` bytes, do best on multiples of `preferred`, and may carry at
    /// most `maximum` bytes of data. The rules are those of the protocol's section on block size constraints.
    pub fn new(minimum: u32, preferred: u32, maximum: u32) -> Result<BlockSizes, BadBlockSizes> {
        let allowed = minimum.is_power_of_two()
            && minimum <= 1 << 16
            && preferred.is_power_of_two()
            && preferred >= minimum.max(512)
            && maximum >= preferred
            && maximum.is_multiple_of(minimum);
        if !allowed {
            return Err(BadBlockSizes { minimum, preferred, maximum });
        }
        Ok(BlockSizes { minimum, preferred, maximum })
    }

    /// The alignment that clients are asked to keep to, in bytes.
    pub fn minimum(&self) -> u32 {
        self.minimum
    }

    /// The alignment that is served best, in bytes.
    pub fn preferred(&self) -> u32 {
        self.preferred
    }

    /// The most data that a read or a write carries, in bytes.
    pub fn maximum(&self) -> u32 {
        self.maximum
    }
}

impl Default for BlockSizes {
    /// 512 B, 4 KiB, 32 MiB: what clients assume of a server that does not say.
    fn default() -> BlockSizes {
        BlockSizes { minimum: 512, preferred: 4096, maximum: 32 << 20 }
    }
}

/// One line of the list of exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The export's name. A name longer than [`STRING_BYTES_MAX`](crate::wire::STRING_BYTES_MAX) bytes is left out.
    pub name: String,
    /// A line for people; may be empty.
    pub description: String,
}

/// Why an export, or the list of them, is not to be had. The text goes to the client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LookupError {
    /// There is none of that name.
    #[error("{0}")]
    Unknown(Cow<'static, str>),
    /// There is, but not for this client, or not now.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// There is, but only over TLS.
    #[error("{0}")]
    TlsRequired(Cow<'static, str>),
    /// The server is about to end.
    #[error("{0}")]
    ShuttingDown(Cow<'static, str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_follow_the_protocol() {
        assert!(BlockSizes::new(1, 512, 1024).is_ok());
        assert!(BlockSizes::new(4096, 4096, 32 << 20).is_ok());
        for (minimum, preferred, maximum) in [
            (0, 512, 512),
            (3, 512, 513),
            (1 << 17, 1 << 17, 1 << 17),
            (1, 256, 512),
            (512, 4096, 2048),
            (512, 4096, 4097),
        ] {
            assert!(BlockSizes::new(minimum, preferred, maximum).is_err(), "{minimum} {preferred} {maximum}");
        }
    }

    #[test]
    fn a_read_only_export_offers_no_writes() {
        let export = Export { read_only: true, fast_zero: true, ..Export::new("v", 1000) };
        let writes = flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
        assert_eq!(export.flags(true) & writes, 0);
        assert_eq!(export.reachable_bytes(), 512);
    }
}
