//! Notes of a put or patch that can go on later: a file that says what is stored, for `object put --resume` and `object patch --resume`.
//!
//! The file begins with a line that says what it is of. Then come the object's name, how many bricks may be lost or what is patched, and what is stored,
//! as between daemons, and the CRC-32C of all of it.

use crate::config::Bytes;
use crate::security::files;
use anyhow::{Context, Error, Result, anyhow, bail};
use base::ObjectVersion;
use objects::object::{ObjectError, PutProgress, Resumable, StoredSegment};
use outfile::Place;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{IndexError, ObjectInfo, ObjectName, Wire};

/// What is stored is kept for so long when nobody goes on.
const KEEP: Duration = Duration::from_secs(24 * 3600);
const HEAD_OF_PUT: &[u8] = b"brickwork object put: what is stored, version 2\n";
const HEAD_OF_PATCH: &[u8] = b"brickwork object patch: what is stored, version 2\n";
/// The first notes told content from other content by a checksum only: nothing is taken over from them.
const FIRST_HEAD_OF_PUT: &[u8] = b"brickwork object put: what is stored, version 1\n";
const FIRST_HEAD_OF_PATCH: &[u8] = b"brickwork object patch: what is stored, version 1\n";

/// What is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// An object that survives the loss of so many bricks.
    Put { survive: u32 },
    /// A part of an object, from that byte on, or what is appended to it.
    Patch { at: Option<u64> },
}

/// What is stored of an object, and the file that says so.
pub(super) struct Notes {
    path: PathBuf,
    object: ObjectName,
    work: Work,
    /// To which version an append was begun, now or earlier.
    appended_to: Option<ObjectVersion>,
    /// The same of earlier tries, of which one may have been done.
    tried: Option<ObjectVersion>,
    stored: PutProgress,
    /// So much was stored before, and need not be put again.
    taken_over: u64,
}

impl Notes {
    /// Those of an earlier try, or new ones.
    pub(super) fn open(path: PathBuf, object: &ObjectName, work: Work) -> Result<Notes> {
        let path = place(&path).with_context(|| format!("cannot keep notes in {}", path.display()))?;
        let (tried, stored) = match fs::read(&path) {
            Ok(content) => read(&content, object, &work)
                .with_context(|| format!("cannot go on from {}", path.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Default::default(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let object = object.clone();
        let notes = Notes { path, object, work, appended_to: tried, tried, stored, taken_over: 0 };
        // That it can be written is known before anything is sent.
        notes.write()?;
        Ok(notes)
    }

    /// The only version that may be patched, where `wanted` is what the user says of it. An append that was tried before may have been done, and must not be
    /// done twice: it is of the version of then.
    pub(super) fn only_of(&self, wanted: Option<ObjectVersion>) -> Result<Option<ObjectVersion>> {
        match self.tried {
            Some(tried) if wanted.is_some_and(|wanted| wanted != tried) => Err(self.in_doubt(tried)),
            tried => Ok(tried.or(wanted)),
        }
    }

    /// This version is patched. That it is appended to is noted before anything can come of it.
    pub(super) fn begun(&mut self, base: ObjectVersion) -> Result<()> {
        if self.work != (Work::Patch { at: None }) || self.appended_to == Some(base) {
            return Ok(());
        }
        self.appended_to = Some(base);
        self.write()
    }

    fn in_doubt(&self, tried: ObjectVersion) -> Error {
        anyhow!(
            "{} is not to be appended to any more: it was begun with version {:016x}, and may have been done, as `brickwork object stat` shows. Remove {} to append once more",
            self.object,
            tried.0,
            self.path.display()
        )
    }

    pub(super) fn resumable(&self) -> Resumable {
        Resumable { keep: KEEP, stored: self.stored.clone() }
    }

    pub(super) fn taken_over(&self) -> u64 {
        self.taken_over
    }

    /// One more segment is stored.
    pub(super) fn note(&mut self, segment: u32, stored: StoredSegment) -> Result<()> {
        if self.stored.has(segment, &stored) {
            self.taken_over += u64::from(stored.record.bytes);
            return Ok(());
        }
        let before = self.stored.clone();
        self.stored.note(segment, stored);
        self.write().inspect_err(|_| self.stored = before)
    }

    /// It has ended. Where it has failed, and can go on, that is said.
    pub(super) fn end(self, result: Result<ObjectInfo>) -> Result<ObjectInfo> {
        let error = match result {
            Ok(info) => {
                self.remove();
                return Ok(info);
            }
            Err(error) => error,
        };
        let why = error.downcast_ref::<ObjectError>();
        let is_over =
            matches!(why, Some(ObjectError::Index(IndexError::NotAsExpected | IndexError::NoObject)));
        if let Some(tried) = self.tried
            && is_over
        {
            return Err(self.in_doubt(tried));
        }
        if !self.stored.is_empty() && why.is_none_or(ObjectError::may_pass) {
            let stored = Bytes(self.stored.bytes());
            return Err(anyhow!(
                "{error:#}\nUp to {stored} are stored, and kept for a day: the same command goes on from there"
            ));
        }
        let is_known = why.is_some_and(|why| *why != ObjectError::InDoubt);
        let may_be_done = self.tried.is_some() || (self.appended_to.is_some() && !is_known);
        if !may_be_done {
            self.remove();
        }
        Err(error)
    }

    fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            eprintln!(
                "brickwork: cannot remove {}, which is of no use any more: {error}",
                self.path.display()
            );
        }
    }

    fn write(&self) -> Result<()> {
        let mut content = self.work.head().to_vec();
        content.extend(self.object.to_bytes());
        match &self.work {
            Work::Put { survive } => content.extend(survive.to_bytes()),
            Work::Patch { at } => content.extend((*at, self.appended_to).to_bytes()),
        }
        content.extend(self.stored.to_bytes());
        content.extend(base::checksum(&content).to_le_bytes());
        files::replace(&self.path, &content)
    }
}

/// Where notes are kept, with links followed: they are removed when they are of no use any more, and a link is not.
fn place(path: &Path) -> Result<PathBuf> {
    // A pipe would wait for its reader.
    let may_be_kept = fs::metadata(path).map_or(true, |found| found.is_file());
    match may_be_kept.then(|| Place::find(path)).transpose()? {
        Some(Place::Regular(place)) => Ok(place.path().to_owned()),
        Some(Place::Direct(_)) | None => bail!("it is no regular file"),
    }
}

impl Work {
    fn head(&self) -> &'static [u8] {
        match self {
            Work::Put { .. } => HEAD_OF_PUT,
            Work::Patch { .. } => HEAD_OF_PATCH,
        }
    }
}

impl Display for Work {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Work::Put { survive } => write!(f, "a put with --survive {survive}"),
            Work::Patch { at: Some(at) } => write!(f, "a patch with --at {at}"),
            Work::Patch { at: None } => f.write_str("a patch with --append"),
        }
    }
}

/// To which version notes say that something was to be appended, and what is stored. Those of what cannot have been done, and of which nothing is stored, are
/// anybody's.
fn read(content: &[u8], object: &ObjectName, work: &Work) -> Result<(Option<ObjectVersion>, PutProgress)> {
    let heads = [HEAD_OF_PUT, FIRST_HEAD_OF_PUT, HEAD_OF_PATCH, FIRST_HEAD_OF_PATCH];
    let head = heads.into_iter().find(|head| content.starts_with(head));
    let is_of_put = [Some(HEAD_OF_PUT), Some(FIRST_HEAD_OF_PUT)].contains(&head);
    let is_first = [Some(FIRST_HEAD_OF_PUT), Some(FIRST_HEAD_OF_PATCH)].contains(&head);
    let (Some(head), Some((content, checksum))) = (head, content.split_last_chunk::<4>()) else {
        bail!("it is not a file that `object put --resume` or `object patch --resume` has written");
    };
    if base::checksum(content) != u32::from_le_bytes(*checksum) {
        bail!(
            "it is damaged: its checksum differs. Remove it to send all from the beginning (look with `brickwork object stat` first if it is of an append: that may have been done)"
        );
    }
    let mut reader = wire::Reader::new(&content[head.len()..]);
    let noted = ObjectName::decode(&mut reader)?;
    let (of, tried) = if is_of_put {
        (Work::Put { survive: u32::decode(&mut reader)? }, None)
    } else {
        (Work::Patch { at: Wire::decode(&mut reader)? }, Wire::decode(&mut reader)?)
    };
    let stored = if is_first { PutProgress::default() } else { PutProgress::decode(&mut reader)? };
    if stored.is_empty() && tried.is_none() {
        return Ok((None, stored));
    }
    if noted != *object || of != *work {
        bail!("it is of {of} of {noted}");
    }
    Ok((tried, stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: &str) -> ObjectName {
        ObjectName { bucket: "abc".to_owned(), key: key.to_owned() }
    }

    /// A link stays where it leads, and what can hold no notes is refused before anything is sent.
    #[test]
    fn notes_are_kept_where_a_link_leads_and_in_no_device() {
        let dir = tempfile::tempdir().expect("a folder");
        let [link, file] = ["link", "file"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("file", &link).expect("a link");
        let open = |path: &Path| Notes::open(path.to_owned(), &named("k"), Work::Put { survive: 1 });
        let notes = open(&link).expect("new notes");
        assert!(link.is_symlink() && file.exists());
        let info = ObjectInfo { version: ObjectVersion(1), bytes: 1, checksum: 0, put_ms: 0 };
        notes.end(Ok(info)).expect("it is done");
        assert!(link.is_symlink() && !file.exists());
        let why = format!("{:#}", open(Path::new("/dev/null")).err().expect("it keeps nothing"));
        assert!(why.contains("/dev/null") && why.contains("no regular file"), "{why}");
    }

    #[test]
    fn notes_are_read_back_and_those_of_something_else_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notes");
        let record = objects::object::SegmentRecord {
            version: base::ObjectVersion(7),
            bytes: 100,
            checksum: Some(1),
            coding: objects::object::Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: vec![(0, base::BrickId(1))],
            mark: 0,
        };
        let record = StoredSegment { record, content: base::Digest([7; 32]) };
        let open = |key, survive| Notes::open(path.clone(), &named(key), Work::Put { survive });
        // Those of a put of which nothing was stored are anybody's.
        drop(open("mistyped", 2).expect("new notes"));
        let mut notes = open("k", 1).expect("notes without a segment");
        notes.note(0, record.clone()).expect("they can be written");
        let mut notes = open("k", 1).expect("the same put");
        assert_eq!(notes.stored.bytes(), 100);
        notes.note(0, record).expect("it is there");
        assert_eq!(notes.taken_over(), 100);
        let why = |result: Result<Notes>| format!("{:#}", result.err().expect("it is refused"));
        assert!(why(open("other", 1)).contains("of a put with --survive 1 of abc/k"));
        assert!(why(open("k", 2)).contains("--survive 1"));
        let patch = |at| Notes::open(path.clone(), &named("k"), Work::Patch { at });
        assert!(why(patch(None)).contains("of a put with"));
        let content = fs::read(&path).expect("they are there");
        fs::write(&path, &content[..content.len() - 1]).expect("cut");
        assert!(why(open("k", 1)).contains("damaged"));
        fs::write(&path, "of a user").expect("something else");
        assert!(why(open("k", 1)).contains("not a file that"));
        assert_eq!(fs::read(&path).expect("it stays"), b"of a user");
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1, "nothing is left beside them");
    }

    #[test]
    fn of_the_first_notes_nothing_is_taken_over_but_that_something_may_have_been_appended() {
        let first = |head: &[u8], rest: Vec<u8>| {
            let mut content = [head, &named("k").to_bytes()[..], &rest[..]].concat();
            content.extend(base::checksum(&content).to_le_bytes());
            content
        };
        // What is stored stood behind these, without what tells it from other content.
        let put = first(FIRST_HEAD_OF_PUT, [&1_u32.to_bytes()[..], b"segments"].concat());
        let (tried, stored) = read(&put, &named("k"), &Work::Put { survive: 1 }).expect("they are ours");
        assert!(tried.is_none() && stored.is_empty());
        let of = Some(ObjectVersion(7));
        let patch = first(FIRST_HEAD_OF_PATCH, [&(None::<u64>, of).to_bytes()[..], b"segments"].concat());
        let (tried, stored) = read(&patch, &named("k"), &Work::Patch { at: None }).expect("they are ours");
        assert!(tried == of && stored.is_empty());
    }

    #[test]
    fn what_may_have_been_appended_is_not_appended_twice() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notes");
        let open = || Notes::open(path.clone(), &named("k"), Work::Patch { at: None });
        let (old, other) = (ObjectVersion(7), ObjectVersion(8));
        let index = |error| Err(Error::new(ObjectError::Index(error)));
        // What is known to have failed leaves nothing.
        let mut notes = open().expect("new notes");
        assert_eq!(notes.only_of(Some(other)).ok(), Some(Some(other)));
        notes.begun(old).expect("they can be written");
        assert!(notes.end(index(IndexError::NotAsExpected)).is_err() && !path.exists());
        // It was killed after that, and nothing was stored as far as its notes tell.
        open().expect("new notes").begun(old).expect("they can be written");
        let notes = open().expect("the same append");
        assert_eq!(notes.only_of(None).ok(), Some(Some(old)));
        let why = notes.only_of(Some(other)).expect_err("that may be what the first try made").to_string();
        assert!(why.contains("may have been done") && why.contains("0000000000000007"), "{why}");
        for error in [IndexError::NotAsExpected, IndexError::NoObject] {
            let why = open().expect("they stay").end(index(error)).expect_err("it is refused").to_string();
            assert!(why.contains("may have been done") && path.exists(), "{why}");
        }
        // Also where this try fails for another reason, and where it is begun once more.
        let mut notes = open().expect("they stay");
        notes.begun(old).expect("it is the same");
        assert!(notes.end(Err(Error::new(ObjectError::TooLarge))).is_err() && path.exists());
        let why = Notes::open(path.clone(), &named("k"), Work::Patch { at: Some(5) }).err().expect("another");
        assert!(format!("{why:#}").contains("a patch with --append"), "{why:#}");
        // In doubt the first time, too.
        fs::remove_file(&path).expect("the user gives up");
        let mut notes = open().expect("new notes");
        notes.begun(old).expect("they can be written");
        assert!(notes.end(Err(Error::new(ObjectError::InDoubt))).is_err() && path.exists());
        let info = ObjectInfo { version: other, bytes: 1, checksum: 0, put_ms: 0 };
        assert!(open().expect("they stay").end(Ok(info)).is_ok() && !path.exists());
    }
}
