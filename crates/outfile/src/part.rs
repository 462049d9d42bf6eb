//! A file that several runs of a command write, such as a download that is interrupted and goes on.

use crate::place::Regular;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

/// What has come of a file. It stays where it is, beside the place of the whole, until it is whole.
#[derive(Debug)]
pub struct Part {
    whole: Regular,
    part: NamedTempFile,
}

impl Part {
    /// Goes on with what an earlier run has left under this tag, or begins anew. What comes is appended.
    ///
    /// The name is that of the whole, the tag, and something random: nobody can put a link or a file of their own where it will
    /// be. A part is taken up only if it is a regular file with this one name, belongs to us or to the owner of the whole, and no
    /// other run is writing it.
    ///
    /// # Errors
    /// What the system says, and what [`Outfile::create`](crate::Outfile::create) refuses.
    pub fn open(whole: Regular, tag: &str) -> io::Result<Part> {
        let mut prefix = whole.name();
        prefix.push(format!(".part-{tag}"));
        let part = match longest(&whole, &prefix)? {
            Some(part) => part,
            None => begin(&whole, prefix)?,
        };
        whole.adopt(part.as_file())?;
        Ok(Part { whole, part })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.part.path()
    }

    /// To read what is there, and to append to it.
    pub fn file(&mut self) -> &mut File {
        self.part.as_file_mut()
    }

    /// It is whole: puts it on stable storage, and in its place.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self) -> io::Result<()> {
        self.whole.replace(self.part)
    }
}

fn begin(whole: &Regular, mut prefix: OsString) -> io::Result<NamedTempFile> {
    prefix.push("-");
    let mut builder = Builder::new();
    builder.prefix(&prefix).append(true).disable_cleanup(true);
    let part = whole.make(&mut builder, crate::PUBLIC)?;
    part.as_file().try_lock()?;
    Ok(part)
}

/// The one of which most has come.
fn longest(whole: &Regular, prefix: &OsString) -> io::Result<Option<NamedTempFile>> {
    let mut best: Option<(u64, File, PathBuf)> = None;
    for entry in fs::read_dir(whole.folder())? {
        let entry = entry?;
        if !entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        if let Some((length, file)) = take_up(whole, &entry.path())
            && best.as_ref().is_none_or(|(most, ..)| length > *most)
        {
            best = Some((length, file, entry.path()));
        }
    }
    let Some((_, file, path)) = best else { return Ok(None) };
    let mut part = NamedTempFile::from_parts(file, TempPath::try_from_path(path)?);
    part.disable_cleanup(true);
    Ok(Some(part))
}

/// Opens a part that an earlier run may have left. What cannot be opened, or may be somebody else's, is left alone.
fn take_up(whole: &Regular, path: &Path) -> Option<(u64, File)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.is_file() && found.nlink() == 1 && whole.is_trusted(found.uid());
    (is_ours && file.try_lock().is_ok()).then_some((found.len(), file))
}
