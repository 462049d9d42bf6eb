//! What a shard keeps on stable storage, and under which keys.
//!
//! `c`: the counts. `l`: what lives of the shard gave out. `h` + version: one that is open, or was visible. `n` + bucket + zero + key: the version that is visible. `v` + version: its
//! manifest. `s` + version + sharer: which of a version's segments a later one shares; the last sharer comes first. So names are listed without reading
//! manifests, and what is for a restart to know is little and lies together.

use super::{Page, Pair, ids};
use base::ObjectVersion;
use wire::{DecodeError, ObjectInfo, ObjectName, Reader, Wire, Writer};

/// How versions get their ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    /// Drawn when the index was made: versions of another index are not judged by this one. Lives may come to later ones.
    pub(super) epoch: u32,
    /// Lower numbers were given out.
    pub(super) next: u64,
    /// Whether some version shares fragments of another one. The records of before ended here: an earlier release finds a byte too much, and serves nothing,
    /// as it would give back what is shared.
    pub(super) has_shares: bool,
}

/// Why a version is kept that may not be visible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum HeldRecord {
    /// It is being put, under this name, and is held for so long whenever that is renewed, if that is longer than usual.
    Open { name: ObjectName, keep_ns: u64 },
    /// It was visible, and shares fragments with these versions.
    Past { shares: Vec<ObjectVersion> },
}

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NameRecord {
    pub(super) info: ObjectInfo,
    /// The versions with which it shares fragments.
    pub(super) shares: Vec<ObjectVersion>,
}

impl Wire for HeldRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            HeldRecord::Open { name, keep_ns } => {
                0_u8.encode(out);
                name.encode(out);
                // The first records did not say it.
                if *keep_ns > 0 {
                    keep_ns.encode(out);
                }
            }
            HeldRecord::Past { shares } => {
                1_u8.encode(out);
                encode_shares(shares, out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<HeldRecord, DecodeError> {
        match u8::decode(reader)? {
            0 => {
                let name = Wire::decode(reader)?;
                let keep_ns = if reader.left() > 0 { Wire::decode(reader)? } else { 0 };
                Ok(HeldRecord::Open { name, keep_ns })
            }
            1 => Ok(HeldRecord::Past { shares: decode_shares(reader)? }),
            tag => Err(DecodeError::UnknownTag { what: "HeldRecord", tag }),
        }
    }
}

impl Wire for NameRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        self.info.encode(out);
        encode_shares(&self.shares, out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<NameRecord, DecodeError> {
        Ok(NameRecord { info: Wire::decode(reader)?, shares: decode_shares(reader)? })
    }
}

/// At the end of a record, where there are any: most versions share nothing, and the first records did not say so.
fn encode_shares(shares: &Vec<ObjectVersion>, out: &mut Writer<'_>) {
    if !shares.is_empty() {
        shares.encode(out);
    }
}

fn decode_shares(reader: &mut Reader<'_>) -> Result<Vec<ObjectVersion>, DecodeError> {
    if reader.left() > 0 { Wire::decode(reader) } else { Ok(Vec::new()) }
}

impl Wire for Counts {
    fn encode(&self, out: &mut Writer<'_>) {
        self.epoch.encode(out);
        self.next.encode(out);
        if self.has_shares {
            true.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Counts, DecodeError> {
        let (epoch, next) = (Wire::decode(reader)?, Wire::decode(reader)?);
        let has_shares = reader.left() > 0 && Wire::decode(reader)?;
        let counts = Counts { epoch, next, has_shares };
        if ids::is_sound(counts.epoch, counts.next) {
            Ok(counts)
        } else {
            Err(DecodeError::OutOfRange { what: "the counts of a shard" })
        }
    }
}

impl Counts {
    /// Of an index that is new.
    pub(super) fn new(drawn: u64) -> Counts {
        Counts { epoch: (drawn & ((1 << ids::EPOCH_BITS) - 1)) as u32, next: 1, has_shares: false }
    }
}

pub(super) const COUNTS: &[u8] = b"c";
pub(super) const LIVES: &[u8] = b"l";

pub(super) fn held(version: ObjectVersion) -> Vec<u8> {
    keyed(b'h', &version.0.to_be_bytes())
}

pub(super) fn manifest(version: ObjectVersion) -> Vec<u8> {
    keyed(b'v', &version.0.to_be_bytes())
}

/// That `sharer` has fragments of `version`.
pub(super) fn share(version: ObjectVersion, sharer: ObjectVersion) -> Vec<u8> {
    let mut key = of_shared(version);
    // So that the last one comes first.
    key.extend_from_slice(&(!sharer.0).to_be_bytes());
    key
}

fn of_shared(version: ObjectVersion) -> Vec<u8> {
    keyed(b's', &version.0.to_be_bytes())
}

/// Those that share fragments of a version, the last one first.
pub(super) fn page_of_sharers(version: ObjectVersion, limit: u32, values: bool) -> Page {
    let from = of_shared(version);
    let mut to = from.clone();
    to.extend_from_slice(&[0xff; 9]);
    Page { from, to, limit, values }
}

/// The sharer in the key of a record.
pub(super) fn read_sharer(key: &[u8]) -> Result<ObjectVersion, DecodeError> {
    let id = key.get(9..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
    id.map(|id| ObjectVersion(!id)).ok_or(DecodeError::OutOfRange { what: "key of a sharer" })
}

pub(super) fn name(name: &ObjectName) -> Vec<u8> {
    let mut key = of_bucket(&name.bucket);
    key.extend_from_slice(name.key.as_bytes());
    key
}

fn of_bucket(bucket: &str) -> Vec<u8> {
    let mut key = keyed(b'n', bucket.as_bytes());
    key.push(0);
    key
}

fn keyed(table: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(rest.len() + 1);
    key.push(table);
    key.extend_from_slice(rest);
    key
}

/// One key alone.
pub(super) fn only(key: Vec<u8>) -> Page {
    let mut to = key.clone();
    to.push(0);
    Page { from: key, to, limit: 1, values: true }
}

/// Whether there is this key.
pub(super) fn presence(key: Vec<u8>) -> Page {
    Page { values: false, ..only(key) }
}

/// Records of versions that are held, behind `after`.
pub(super) fn page_of_held(after: Option<&[u8]>, limit: u32) -> Page {
    let from = after.map_or_else(
        || b"h".to_vec(),
        |after| {
            let mut from = after.to_vec();
            from.push(0);
            from
        },
    );
    Page { from, to: b"i".to_vec(), limit, values: true }
}

/// Names of a bucket that begin with `prefix`, behind `after`.
pub(super) fn page_of_names(bucket: &str, prefix: &str, after: Option<&str>, limit: u32) -> Page {
    let with = |rest: &[u8]| {
        let mut key = of_bucket(bucket);
        key.extend_from_slice(rest);
        key
    };
    let begin = with(prefix.as_bytes());
    // No text has this byte.
    let to = with(&[prefix.as_bytes(), &[0xff]].concat());
    let behind = after.map(|after| with(&[after.as_bytes(), &[0]].concat()));
    let from = behind.map_or_else(|| begin.clone(), |behind| behind.max(begin.clone())).min(to.clone());
    Page { from, to, limit, values: true }
}

/// The object's key in the key of its record.
pub(super) fn key_of_name(bucket: &str, stored: &[u8]) -> Result<String, DecodeError> {
    let key = stored.get(bucket.len() + 2..).unwrap_or_default();
    String::from_utf8(key.to_vec())
        .map_err(|_| DecodeError::OutOfRange { what: "name of an object (not UTF-8)" })
}

/// A held version's record.
pub(super) fn read_held((key, value): &Pair) -> Result<(ObjectVersion, HeldRecord), DecodeError> {
    let id = key.get(1..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
    let id = id.ok_or(DecodeError::OutOfRange { what: "key of a held version" })?;
    Ok((ObjectVersion(id), HeldRecord::from_bytes(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sharer_comes_first() {
        let (shared, next) = (ObjectVersion(7), ObjectVersion(8));
        let page = page_of_sharers(shared, 1, false);
        let keys = [9, 300, u64::MAX].map(|sharer| share(shared, ObjectVersion(sharer)));
        assert!(keys.iter().all(|key| page.from <= *key && *key < page.to));
        assert!(keys.is_sorted_by(|older, newer| older > newer));
        assert!(share(next, ObjectVersion(9)) >= page.to);
        assert_eq!(read_sharer(&keys[1]), Ok(ObjectVersion(300)));
    }

    #[test]
    fn records_of_before_are_read() {
        for counts in [Counts::new(7), Counts { has_shares: true, ..Counts::new(7) }] {
            assert_eq!(Counts::from_bytes(&counts.to_bytes()), Ok(counts));
        }
        assert_eq!(Counts::new(7).to_bytes().len(), 12, "as before, until something is shared");
        let info = ObjectInfo { version: ObjectVersion(7), bytes: 1, checksum: 2, put_ms: 3 };
        assert_eq!(NameRecord::from_bytes(&info.to_bytes()), Ok(NameRecord { info, shares: Vec::new() }));
        assert_eq!(HeldRecord::from_bytes(&[1]), Ok(HeldRecord::Past { shares: Vec::new() }));
        let shares = vec![ObjectVersion(5), ObjectVersion(6)];
        let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
        let open = |keep_ns| HeldRecord::Open { name: name.clone(), keep_ns };
        let past = |shares| HeldRecord::Past { shares };
        for held in [past(shares.clone()), past(Vec::new()), open(0), open(9)] {
            assert_eq!(HeldRecord::from_bytes(&held.to_bytes()), Ok(held));
        }
        let name = NameRecord { info, shares };
        assert_eq!(NameRecord::from_bytes(&name.to_bytes()), Ok(name));
    }

    #[test]
    fn pages_of_names_hold_those_of_their_bucket_and_prefix() {
        let has = |page: &Page, bucket: &str, key: &str| {
            let name = name(&ObjectName { bucket: bucket.to_owned(), key: key.to_owned() });
            page.from <= name && name < page.to
        };
        let all = page_of_names("abc", "", None, 9);
        assert!(has(&all, "abc", "\u{10ffff}") && !has(&all, "abcd", "a") && !has(&all, "abb", "z"));
        let some = page_of_names("abc", "ph", Some("photo"), 9);
        assert!(!has(&some, "abc", "photo") && has(&some, "abc", "photo1") && !has(&some, "abc", "pi"));
        let beyond = page_of_names("abc", "ph", Some("zz"), 9);
        assert!(beyond.from <= beyond.to);
        assert!(!has(&page_of_names("abc", "ph", Some("a"), 9), "abc", "b"));
        assert_eq!(
            key_of_name("abc", &name(&ObjectName { bucket: "abc".into(), key: "k".into() })),
            Ok("k".into())
        );
    }
}
