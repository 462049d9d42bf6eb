//! How values become bytes: little-endian integers, lengths before sequences, a tag byte before a variant.
//!
//! Decoding trusts nothing: a length is checked against what is left before anything is allocated for it.

use crate::Version;
use base::{
    BrickId, ClientId, ClusterId, ClusterTime, Digest, GatewayId, GroupId, Loan, NodeId, ObjectVersion,
    RequestId, Stamp, StreamId, Time, ViewNumber, VolumeId,
};

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside a value.
    #[error("truncated: {what} needs {needed} more bytes, {left} are left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A tag that names no variant.
    #[error("unknown {what} tag {tag}")]
    UnknownTag { what: &'static str, tag: u8 },
    /// A value outside its range.
    #[error("{what} out of range")]
    OutOfRange { what: &'static str },
    /// Bytes behind the last value.
    #[error("{0} bytes behind the end of the message")]
    Trailing(usize),
}

/// Reads values from bytes.
pub struct Reader<'a> {
    bytes: &'a [u8],
    version: Version,
}

impl<'a> Reader<'a> {
    /// From the start of `bytes`, which this release wrote, or one that knew the same fields.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader::of(Version::CURRENT, bytes)
    }

    /// From the start of `bytes`, in which no field is younger than `version`.
    pub fn of(version: Version, bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, version }
    }

    /// The version of whoever wrote the bytes.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether fields are there that came with `version`.
    pub fn knows(&self, version: u32) -> bool {
        self.version.0 >= version
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        if len > self.bytes.len() {
            return Err(DecodeError::Truncated { what, needed: len, left: self.bytes.len() });
        }
        let (head, tail) = self.bytes.split_at(len);
        self.bytes = tail;
        Ok(head)
    }

    /// A value in which no field is younger than `version`, whatever the rest is.
    pub fn decode_as_of<T: Wire>(&mut self, version: Version) -> Result<T, DecodeError> {
        let mut inner = Reader::of(version, self.bytes);
        let value = T::decode(&mut inner)?;
        self.bytes = inner.bytes;
        Ok(value)
    }

    /// The next byte, which stays there.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Ends the reading; bytes left over are an error.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.bytes.len())) }
    }
}

/// Appends the bytes of values, for a reader that knows fields up to a version.
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Writer<'a> {
    /// Behind what `bytes` hold.
    pub fn of(version: Version, bytes: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { bytes, version }
    }

    /// The version of the reader.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the reader knows fields that came with `version`.
    pub fn knows(&self, version: u32) -> bool {
        self.version.0 >= version
    }

    /// Behind these, for a reader that knows fields up to another version.
    pub fn as_of(&mut self, version: Version) -> Writer<'_> {
        Writer { bytes: self.bytes, version }
    }

    /// One byte.
    pub fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Bytes as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// A value with one encoding a version.
pub trait Wire: Sized {
    /// Appends its bytes.
    fn encode(&self, out: &mut Writer<'_>);
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// All of `bytes` as one value.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// Its bytes.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append(&mut out);
        out
    }

    /// The same, behind what `out` holds.
    fn append(&self, out: &mut Vec<u8>) {
        self.encode(&mut Writer::of(Version::CURRENT, out));
    }
}

macro_rules! integers {
    ($($int:ident),*) => {$(
        impl Wire for $int {
            fn encode(&self, out: &mut Writer<'_>) {
                out.put(&self.to_le_bytes());
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let bytes = reader.take(size_of::<$int>(), stringify!($int))?;
                Ok($int::from_le_bytes(bytes.try_into().expect("take gives the length asked for")))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

macro_rules! newtypes {
    ($($name:ident),*) => {$(
        impl Wire for $name {
            fn encode(&self, out: &mut Writer<'_>) {
                self.0.encode(out);
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok($name(Wire::decode(reader)?))
            }
        }
    )*};
}

newtypes!(
    Time,
    ClusterTime,
    BrickId,
    GatewayId,
    ClientId,
    VolumeId,
    ObjectVersion,
    GroupId,
    ViewNumber,
    Stamp,
    StreamId
);

impl Wire for bool {
    fn encode(&self, out: &mut Writer<'_>) {
        out.push(u8::from(*self));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match u8::decode(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(DecodeError::UnknownTag { what: "bool", tag }),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bool::decode(reader)?.then(|| T::decode(reader)).transpose()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        (**self).encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Box::new(T::decode(reader)?))
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn encode(&self, out: &mut Writer<'_>) {
        self.is_ok().encode(out);
        match self {
            Ok(value) => value.encode(out),
            Err(error) => error.encode(out),
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::decode(reader)? { Ok(T::decode(reader)?) } else { Err(E::decode(reader)?) })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn encode(&self, out: &mut Writer<'_>) {
        (self.len() as u32).encode(out);
        self.iter().for_each(|item| item.encode(out));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = u32::decode(reader)? as usize;
        // Each item takes at least one byte, so that a wild count cannot reserve memory that no bytes back.
        if count > reader.left() {
            return Err(DecodeError::Truncated { what: "sequence", needed: count, left: reader.left() });
        }
        (0..count).map(|_| T::decode(reader)).collect()
    }
}

impl Wire for String {
    fn encode(&self, out: &mut Writer<'_>) {
        (self.len() as u32).encode(out);
        out.put(self.as_bytes());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = u32::decode(reader)? as usize;
        let bytes = reader.take(len, "text")?;
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::OutOfRange { what: "text (not UTF-8)" })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut Writer<'_>) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn encode(&self, out: &mut Writer<'_>) {
        self.0.encode(out);
        self.1.encode(out);
        self.2.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(reader)?, B::decode(reader)?, C::decode(reader)?))
    }
}

impl Wire for () {
    fn encode(&self, _out: &mut Writer<'_>) {}
    fn decode(_reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Wire for Digest {
    fn encode(&self, out: &mut Writer<'_>) {
        out.put(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Digest(reader.take(32, "digest")?.try_into().expect("32 bytes")))
    }
}

impl Wire for ClusterId {
    fn encode(&self, out: &mut Writer<'_>) {
        out.put(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ClusterId(reader.take(16, "cluster id")?.try_into().expect("sixteen bytes")))
    }
}

/// Implements [`Wire`] for a struct: its fields in the order given, those behind `since N:` as in [`wire_enum`].
#[macro_export]
macro_rules! wire_struct {
    ($name:ident { $($field:ident),* $(,)? $(; since $age:literal: $($late:ident),+)* }) => {
        impl $crate::Wire for $name {
            fn encode(&self, out: &mut $crate::Writer<'_>) {
                $($crate::Wire::encode(&self.$field, out);)*
                $(if out.knows($age) { $($crate::Wire::encode(&self.$late, out);)+ })*
            }
            fn decode(reader: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                Ok($name {
                    $($field: $crate::Wire::decode(reader)?,)*
                    $($($late: $crate::codec::since($age, reader)?,)+)*
                })
            }
        }
    };
}

/// Implements [`Wire`] for an enum: a tag byte, then the fields of the variant in the order given. What stands behind
/// `since N:` came with version *N* of the protocol: it is neither written for nor read from who speaks an earlier one, and is
/// its type's default there. A variant `before N: T` is told with the tag `T`, of a variant with the same fields, to who speaks an earlier one.
#[macro_export]
macro_rules! wire_enum {
    ($name:ident { $($tag:literal => $variant:ident
        $({ $($field:ident),* $(,)? $(; since $age:literal: $($late:ident),+)* })?
        $(( $($item:ident),* $(; before $new:literal: $former:literal)? ))?),* $(,)? }) => {
        impl $crate::Wire for $name {
            fn encode(&self, out: &mut $crate::Writer<'_>) {
                match self {
                    $($name::$variant $({ $($field,)* $($($late,)+)* })? $(( $($item),* ))? => {
                        let tag: u8 = $tag;
                        $($(let tag: u8 = if out.knows($new) { tag } else { $former };)?)?
                        out.push(tag);
                        $($($crate::Wire::encode($field, out);)*)?
                        $($(if out.knows($age) { $($crate::Wire::encode($late, out);)+ })*)?
                        $($($crate::Wire::encode($item, out);)*)?
                    })*
                }
            }
            fn decode(reader: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                match <u8 as $crate::Wire>::decode(reader)? {
                    $($tag => {
                        $($(if !reader.knows($new) {
                            return Err($crate::DecodeError::UnknownTag { what: stringify!($name), tag: $tag });
                        })?)?
                        $($(let $field = $crate::Wire::decode(reader)?;)*)?
                        $($($(let $late = $crate::codec::since($age, reader)?;)+)*)?
                        $($(let $item = $crate::Wire::decode(reader)?;)*)?
                        Ok($name::$variant $({ $($field,)* $($($late,)+)* })? $(( $($item),* ))?)
                    })*
                    tag => Err($crate::DecodeError::UnknownTag { what: stringify!($name), tag }),
                }
            }
        }
    };
}

/// A field that came with `version`: its default where the bytes are older.
#[doc(hidden)]
pub fn since<T: Wire + Default>(version: u32, reader: &mut Reader<'_>) -> Result<T, DecodeError> {
    if reader.knows(version) { T::decode(reader) } else { Ok(T::default()) }
}

wire_struct!(Loan { from, until });
wire_struct!(RequestId { client, sequence });
wire_enum!(NodeId { 0 => Directory, 1 => Brick(id), 2 => Gateway(id), 3 => Client(id) });
