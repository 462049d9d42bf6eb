//! Notes of a put that can go on later: a file that says what is stored, for `object put --resume`.
//!
//! The file begins with a line that says what it is. Then come the object's name, how many bricks may be lost and what is stored, as between
//! daemons, and the CRC-32C of all of it.

use crate::config::Bytes;
use crate::security::files;
use anyhow::{Context, Error, Result, anyhow, bail};
use proto::object::{ObjectError, PutProgress, Resumable, SegmentRecord};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use wire::{ObjectInfo, ObjectName, Wire};

/// What is stored is kept for so long when nobody goes on.
const KEEP: Duration = Duration::from_secs(24 * 3600);
const HEAD: &[u8] = b"brickwork object put: what is stored, version 1\n";

/// What is stored of an object, and the file that says so.
pub(super) struct Notes {
    path: PathBuf,
    object: ObjectName,
    survive: u32,
    stored: PutProgress,
    /// So much was stored before, and need not be put again.
    taken_over: u64,
}

impl Notes {
    /// Those of an earlier try, or new ones.
    pub(super) fn open(path: PathBuf, object: &ObjectName, survive: u32) -> Result<Notes> {
        let stored = match fs::read(&path) {
            Ok(content) => read(&content, object, survive)
                .with_context(|| format!("cannot go on from {}", path.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => PutProgress::default(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let notes = Notes { path, object: object.clone(), survive, stored, taken_over: 0 };
        // That it can be written is known before anything is sent.
        notes.write()?;
        Ok(notes)
    }

    pub(super) fn resumable(&self) -> Resumable {
        Resumable { keep: KEEP, stored: self.stored.clone() }
    }

    pub(super) fn taken_over(&self) -> u64 {
        self.taken_over
    }

    /// One more segment is stored.
    pub(super) fn note(&mut self, segment: u32, record: SegmentRecord) -> Result<()> {
        if self.stored.has(segment, &record) {
            self.taken_over += u64::from(record.bytes);
            return Ok(());
        }
        self.stored.note(segment, record);
        self.write()
    }

    /// The put has ended. Where it has failed, and can go on, that is said.
    pub(super) fn end(self, result: Result<ObjectInfo>) -> Result<ObjectInfo> {
        let may_go_on = |error: &Error| error.downcast_ref::<ObjectError>().is_none_or(ObjectError::may_pass);
        match result {
            Err(error) if !self.stored.is_empty() && may_go_on(&error) => {
                let stored = Bytes(self.stored.bytes());
                Err(anyhow!(
                    "{error:#}\nUp to {stored} are stored, and kept for a day: the same command goes on from there"
                ))
            }
            result => {
                if let Err(error) = fs::remove_file(&self.path)
                    && error.kind() != ErrorKind::NotFound
                {
                    eprintln!(
                        "brickwork: cannot remove {}, which is of no use any more: {error}",
                        self.path.display()
                    );
                }
                result
            }
        }
    }

    fn write(&self) -> Result<()> {
        let mut content = HEAD.to_vec();
        content.extend(self.object.to_bytes());
        content.extend(self.survive.to_bytes());
        content.extend(self.stored.to_bytes());
        content.extend(base::checksum(&content).to_le_bytes());
        files::replace(&self.path, &content)
    }
}

fn read(content: &[u8], object: &ObjectName, survive: u32) -> Result<PutProgress> {
    let Some((content, checksum)) = content.split_last_chunk::<4>().filter(|_| content.starts_with(HEAD))
    else {
        bail!("it is not a file that `object put --resume` has written");
    };
    if base::checksum(content) != u32::from_le_bytes(*checksum) {
        bail!("it is damaged: its checksum differs. Remove it to put the object from the beginning");
    }
    let mut reader = wire::Reader::new(&content[HEAD.len()..]);
    let (noted, survived) = (ObjectName::decode(&mut reader)?, u32::decode(&mut reader)?);
    let stored = PutProgress::decode(&mut reader)?;
    if stored.is_empty() {
        return Ok(stored);
    }
    if noted != *object {
        bail!("it is of a put of {noted}");
    }
    if survived != survive {
        bail!("it is of a put with --survive {survived}");
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: &str) -> ObjectName {
        ObjectName { bucket: "abc".to_owned(), key: key.to_owned() }
    }

    #[test]
    fn notes_are_read_back_and_those_of_something_else_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notes");
        let record = SegmentRecord {
            version: base::ObjectVersion(7),
            bytes: 100,
            checksum: Some(1),
            coding: proto::object::Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: vec![(0, base::BrickId(1))],
            mark: 0,
        };
        let open = |key, survive| Notes::open(path.clone(), &named(key), survive);
        // Those of a put of which nothing was stored are anybody's.
        drop(open("mistyped", 2).expect("new notes"));
        let mut notes = open("k", 1).expect("notes without a segment");
        notes.note(0, record.clone()).expect("they can be written");
        let mut notes = open("k", 1).expect("the same put");
        assert_eq!(notes.stored.bytes(), 100);
        notes.note(0, record).expect("it is there");
        assert_eq!(notes.taken_over(), 100);
        let why = |result: Result<Notes>| format!("{:#}", result.err().expect("it is refused"));
        assert!(why(open("other", 1)).contains("of a put of abc/k"));
        assert!(why(open("k", 2)).contains("--survive 1"));
        let content = fs::read(&path).expect("they are there");
        fs::write(&path, &content[..content.len() - 1]).expect("cut");
        assert!(why(open("k", 1)).contains("damaged"));
        fs::write(&path, "of a user").expect("something else");
        assert!(why(open("k", 1)).contains("not a file that"));
        assert_eq!(fs::read(&path).expect("it stays"), b"of a user");
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1, "nothing is left beside them");
    }
}
