//! What is said of objects' names and versions, between those who put and get objects and the index that knows them.

use crate::{Version, wire_enum, wire_struct};
use base::{ObjectVersion, StreamId};

/// What an object is called. Objects are listed in the order of these.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectName {
    pub bucket: String,
    pub key: String,
}

/// What is known of a version of an object without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectInfo {
    pub version: ObjectVersion,
    pub bytes: u64,
    /// The CRC-32C of all bytes.
    pub checksum: u32,
    /// When it was put, by the putter's clock, in milliseconds since 1970; 0 where that is not known.
    pub put_ms: u64,
}

/// What has to hold of a name for a version to become visible under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Nothing: whatever is there is replaced.
    Always,
    /// There is no object of that name.
    Absent,
    /// This version is visible.
    Is(ObjectVersion),
}

/// Segments of an object, from one to before another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentSpan {
    pub from: u32,
    pub to: u32,
}

/// What a version has of an older one: the fragments of these segments were put with that one. The spans are in order, and do not touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    pub version: ObjectVersion,
    pub segments: Vec<SegmentSpan>,
}

/// What the index is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexRequest {
    /// A version is to be put: a new id for it, which is held open for a while; for `keep_ns` where that is longer, whenever it is renewed, and after a
    /// restart. At most [`KEEP_MAX_NS`].
    Open { name: ObjectName, keep_ns: u64 },
    /// A version that is held open becomes visible, if the condition holds. `manifest` says where it is; nobody but readers looks into it. Some segments may
    /// have been put with other versions of this name (`parts`) that are held open: these cannot become visible from then on.
    Commit { name: ObjectName, condition: Condition, info: ObjectInfo, manifest: Vec<u8>, parts: Vec<Share> },
    /// Which version is visible, and where it is. It is readable for a while, also when it is replaced.
    Look { name: ObjectName },
    /// This version is not to be visible any more.
    Remove { name: ObjectName, version: ObjectVersion },
    /// Names of a bucket that begin with `prefix` and come behind `after`, in order.
    List { bucket: String, prefix: String, after: Option<String>, limit: u32 },
    /// These versions are still being put or read: hold them for another while. At most [`crate::object::VERSIONS_MAX`].
    /// With `only_open` only those that are held open for a put: those that are visible, were visible or are becoming visible count as gone.
    Hold { versions: Vec<ObjectVersion>, only_open: bool },
    /// Nobody puts this version any more.
    Abandon { version: ObjectVersion },
    /// Which of these will never be visible or read again? At most [`crate::object::VERSIONS_MAX`].
    Gone { versions: Vec<ObjectVersion> },
    /// Where are this version's fragments, if it was ever visible and is not gone? `NotAsExpected` as long as it is being put. Where later versions
    /// share them, the manifest of the last one of these says it; with `segment` that of the last one which shares this segment.
    Manifest { version: ObjectVersion, segment: Option<u32> },
    /// The version is kept elsewhere from now on. `was` is the checksum of the manifest that this one replaces. `NotAsExpected` where a later version
    /// has taken its place and shares fragments of it.
    Amend { version: ObjectVersion, was: u32, manifest: Vec<u8> },
    /// As `Commit`, of a version that takes the place of `base` and has fragments in common with it. `was` is the checksum of the manifest that this was made
    /// from: if that is not `base`'s any more, the answer is `Moved`. `parts` are as in `Commit`: what earlier tries of the patch have stored.
    Patch {
        name: ObjectName,
        base: ObjectVersion,
        was: u32,
        shares: Vec<Share>,
        info: ObjectInfo,
        manifest: Vec<u8>,
        parts: Vec<Share>,
    },
}

/// What the index answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexReply {
    Opened {
        version: ObjectVersion,
        held_ns: u64,
        /// To which the bucket belongs.
        stream: StreamId,
    },
    Committed,
    Found {
        info: ObjectInfo,
        manifest: Vec<u8>,
        held_ns: u64,
        /// To which the bucket belongs.
        stream: StreamId,
    },
    Removed,
    /// With `more`, others follow.
    Listed {
        objects: Vec<(String, ObjectInfo)>,
        more: bool,
    },
    /// All but these are held.
    Held {
        gone: Vec<ObjectVersion>,
    },
    Abandoned,
    /// With `partly`, of which nothing is wanted any more but these segments: later versions share them.
    Gone {
        versions: Vec<ObjectVersion>,
        partly: Vec<Share>,
    },
    /// It is that of the version `of`; zero is that which was asked for. With `is_held` older versions, which may still be read, have fragments of the one that was
    /// asked for; they may have others than this manifest says.
    Manifest {
        manifest: Vec<u8>,
        of: ObjectVersion,
        is_held: bool,
    },
    Amended,
}

/// Why the index does not do as asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexError {
    #[error("there is no such object")]
    NoObject,
    #[error("the object is not as expected: another version of it was put or removed in the meantime")]
    NotAsExpected,
    #[error("the put took too long: its version is not held open any more")]
    Expired,
    #[error("{0}")]
    Invalid(String),
    /// Ask again later.
    #[error("the index has too much to do")]
    Busy,
    #[error("the index cannot store anything: {0}")]
    Storage(String),
    #[error("fragments of the object were moved to other bricks in the meantime")]
    Moved,
}

impl IndexRequest {
    /// The version of the protocol with which it came.
    pub(crate) fn since(&self) -> Version {
        match self {
            IndexRequest::Manifest { .. } | IndexRequest::Amend { .. } => Version(14),
            IndexRequest::Patch { parts, .. } if !parts.is_empty() => Version(19),
            IndexRequest::Patch { .. } => Version(15),
            IndexRequest::Open { keep_ns: 1.., .. } => Version(16),
            IndexRequest::Commit { parts, .. } if !parts.is_empty() => Version(16),
            IndexRequest::Hold { only_open: true, .. } => Version(16),
            _ => Version(13),
        }
    }
}

impl ObjectName {
    pub const BUCKET_MAX: usize = 63;
    pub const KEY_MAX: usize = 1024;

    /// # Errors
    /// What is wrong with it, in words for a user.
    pub fn check(&self) -> Result<(), String> {
        check_bucket(&self.bucket)?;
        match self.key.len() {
            0 => Err("an object needs a key: BUCKET/KEY".to_owned()),
            length if length > ObjectName::KEY_MAX => {
                Err(format!("a key of {length} bytes is too long: at most {}", ObjectName::KEY_MAX))
            }
            _ if self.key.contains('\0') => Err("a key has no zero bytes".to_owned()),
            _ => Ok(()),
        }
    }
}

/// As S3 has it for general purpose buckets: 3 to 63 of `a`-`z`, `0`-`9`, `.` and `-`, neither of the last two at an end, no two dots
/// beside each other, no address, and none of the names that S3 keeps for itself.
///
/// # Errors
/// What is wrong with it, in words for a user.
pub fn check_bucket(bucket: &str) -> Result<(), String> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    let is_outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let fits = (3..=ObjectName::BUCKET_MAX).contains(&bucket.len())
        && bucket.chars().all(is_inner)
        && is_outer(bucket.chars().next())
        && is_outer(bucket.chars().last());
    if fits {
        return check_form(bucket);
    }
    Err(format!(
        "'{}' is no name for a bucket: it has 3 to {} of a-z, 0-9, '.' and '-', and begins and ends with a letter or digit",
        bucket.escape_default(),
        ObjectName::BUCKET_MAX
    ))
}

/// How names begin and end that S3 keeps for itself.
const KEPT_BEGINNINGS: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
const KEPT_ENDINGS: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// What S3 refuses of names whose characters are right.
fn check_form(bucket: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("'{bucket}' is no name for a bucket: {why}"));
    if bucket.contains("..") {
        return refuse("it has two dots beside each other");
    }
    if bucket.parse::<core::net::Ipv4Addr>().is_ok() {
        return refuse("it is written as an IP address");
    }
    if let Some(kept) = KEPT_BEGINNINGS.iter().find(|kept| bucket.starts_with(*kept)) {
        return refuse(&format!("S3 keeps names that begin with '{kept}' for itself"));
    }
    if let Some(kept) = KEPT_ENDINGS.iter().find(|kept| bucket.ends_with(*kept)) {
        return refuse(&format!("S3 keeps names that end with '{kept}' for itself"));
    }
    Ok(())
}

impl core::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.bucket, self.key)
    }
}

/// A version is held open for so long at the most, if nobody renews that: a week.
pub const KEEP_MAX_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;
/// The most versions with which one may share fragments.
pub const SHARES_MAX: usize = 4096;
/// The most names in one [`IndexReply::Listed`].
pub const LIST_MAX: u32 = 1000;
/// The longest manifest: it goes in one message.
pub const MANIFEST_MAX: usize = 3 << 20;
const _: () = assert!(MANIFEST_MAX + (64 << 10) < crate::frame::MESSAGE_BYTES_MAX);

wire_struct!(ObjectName { bucket, key });
wire_struct!(SegmentSpan { from, to });
wire_struct!(Share { version, segments });
wire_struct!(ObjectInfo { version, bytes, checksum, put_ms });
wire_enum!(Condition { 0 => Always, 1 => Absent, 2 => Is(version) });
wire_enum!(IndexRequest {
    0 => Open { name; since 16: keep_ns }, 1 => Commit { name, condition, info, manifest; since 16: parts }, 2 => Look { name },
    3 => Remove { name, version }, 4 => List { bucket, prefix, after, limit }, 5 => Hold { versions; since 16: only_open },
    6 => Abandon { version }, 7 => Gone { versions }, 8 => Manifest { version; since 18: segment }, 9 => Amend { version, was, manifest },
    10 => Patch { name, base, was, shares, info, manifest; since 19: parts },
});
wire_enum!(IndexReply {
    0 => Opened { version, held_ns; since 18: stream }, 1 => Committed, 2 => Found { info, manifest, held_ns; since 18: stream }, 3 => Removed,
    4 => Listed { objects, more }, 5 => Held { gone }, 6 => Abandoned, 7 => Gone { versions; since 15: partly }, 8 => Manifest { manifest; since 15: of, is_held }, 9 => Amended,
});
wire_enum!(IndexError {
    0 => NoObject, 1 => NotAsExpected, 2 => Expired, 3 => Invalid(why), 4 => Busy, 5 => Storage(why), 6 => Moved,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let check = |bucket: &str, key: &str| {
            ObjectName { bucket: bucket.to_owned(), key: key.to_owned() }.check().is_ok()
        };
        assert!(check("photos.2026-11", "a/b c\n") && check("abc", &"k".repeat(1024)));
        assert!(!check("ab", "k") && !check("Photos", "k") && !check("-abc", "k") && !check("abc.", "k"));
        // What S3 refuses, so that a bucket can be served by its protocol one day.
        for refused in [
            "a..b",
            "192.168.5.4",
            "xn--abc",
            "sthree-abc",
            "amzn-s3-demo-x",
            "abc-s3alias",
            "abc--ol-s3",
            "abc.mrap",
        ] {
            assert!(check_bucket(refused).is_err_and(|why| why.contains(refused)), "{refused}");
        }
        assert!(
            check("a.b.c", "k") && check("192.168.5", "k") && check("1.2.3.400", "k") && check("xn-abc", "k")
        );
        assert!(!check("abc", "") && !check("abc", &"k".repeat(1025)) && !check("abc", "a\0b"));
    }
}
