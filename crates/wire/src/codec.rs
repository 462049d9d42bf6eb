//! How values become bytes: little-endian integers, lengths before sequences, a tag byte before a variant.
//!
//! Decoding trusts nothing: a length is checked against what is left before anything is allocated for it.

use base::{
    BrickId, ClientId, ClusterId, GatewayId, GroupId, NodeId, RequestId, Stamp, Time, ViewNumber, VolumeId,
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
}

impl<'a> Reader<'a> {
    /// From the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
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

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Ends the reading; bytes left over are an error.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.bytes.len())) }
    }
}

/// A value with one encoding.
pub trait Wire: Sized {
    /// Appends its bytes.
    fn encode(&self, out: &mut Vec<u8>);
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
        self.encode(&mut out);
        out
    }
}

macro_rules! integers {
    ($($int:ident),*) => {$(
        impl Wire for $int {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
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
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok($name(Wire::decode(reader)?))
            }
        }
    )*};
}

newtypes!(Time, BrickId, GatewayId, ClientId, VolumeId, GroupId, ViewNumber, Stamp);

impl Wire for bool {
    fn encode(&self, out: &mut Vec<u8>) {
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
    fn encode(&self, out: &mut Vec<u8>) {
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
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Box::new(T::decode(reader)?))
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn encode(&self, out: &mut Vec<u8>) {
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
    fn encode(&self, out: &mut Vec<u8>) {
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
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = u32::decode(reader)? as usize;
        let bytes = reader.take(len, "text")?;
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::OutOfRange { what: "text (not UTF-8)" })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(reader)?, B::decode(reader)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
        self.2.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::decode(reader)?, B::decode(reader)?, C::decode(reader)?))
    }
}

impl Wire for () {
    fn encode(&self, _out: &mut Vec<u8>) {}
    fn decode(_reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

impl Wire for ClusterId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ClusterId(reader.take(16, "cluster id")?.try_into().expect("sixteen bytes")))
    }
}

/// Implements [`Wire`] for a struct: its fields in the order given.
#[macro_export]
macro_rules! wire_struct {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $($crate::Wire::encode(&self.$field, out);)*
            }
            fn decode(reader: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                Ok($name { $($field: $crate::Wire::decode(reader)?),* })
            }
        }
    };
}

/// Implements [`Wire`] for an enum: a tag byte, then the fields of the variant in the order given.
#[macro_export]
macro_rules! wire_enum {
    ($name:ident { $($tag:literal => $variant:ident $({ $($field:ident),* $(,)? })? $(( $($item:ident),* ))?),* $(,)? }) => {
        impl $crate::Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $({ $($field),* })? $(( $($item),* ))? => {
                        out.push($tag);
                        $($($crate::Wire::encode($field, out);)*)?
                        $($($crate::Wire::encode($item, out);)*)?
                    })*
                }
            }
            fn decode(reader: &mut $crate::Reader<'_>) -> Result<Self, $crate::DecodeError> {
                match <u8 as $crate::Wire>::decode(reader)? {
                    $($tag => {
                        $($(let $field = $crate::Wire::decode(reader)?;)*)?
                        $($(let $item = $crate::Wire::decode(reader)?;)*)?
                        Ok($name::$variant $({ $($field),* })? $(( $($item),* ))?)
                    })*
                    tag => Err($crate::DecodeError::UnknownTag { what: stringify!($name), tag }),
                }
            }
        }
    };
}

wire_struct!(RequestId { client, sequence });
wire_enum!(NodeId { 0 => Directory, 1 => Brick(id), 2 => Gateway(id), 3 => Client(id) });
