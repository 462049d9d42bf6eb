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
