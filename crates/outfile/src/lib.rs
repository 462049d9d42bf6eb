//! Files that a command writes where its user says: a download, a report, a trace, notes, certificates.
//!
//! A command may run as root, and its user may name anything. Therefore:
//!
//! - A device, a pipe or a socket is written to, and stays what it is.
//! - A link is followed.
//! - A regular file is replaced as a whole, when all is written and on stable storage. It keeps its owner and its permissions.
//! - Until then the content is in a file beside it, of a random name, that nobody else can have put there.
//!
//! Access control lists and extended attributes of a file that is replaced are lost. Where its owner cannot be kept, the file is left
//! alone.
//!
//! Reading order: [`Outfile`], `place` (what a path leads to), [`Part`] (a file that several runs write).
//!
//! Deliberately absent: formats, and files that daemons keep open.

mod part;
mod place;
#[cfg(test)]
mod tests;

pub use part::Part;
pub use place::{Place, Regular};

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Permissions of a new file, of which the umask takes away.
const PUBLIC: u32 = 0o666;
/// Of one that holds a secret.
const PRIVATE: u32 = 0o600;

/// A file that is being written. Without [`finish`](Outfile::finish) a regular file stays as it was.
#[derive(Debug)]
pub struct Outfile(To);

#[derive(Debug)]
enum To {
    Direct(File),
    Regular { place: Regular, part: NamedTempFile },
}

impl Outfile {
    /// Begins to write to `path`.
    ///
    /// # Errors
    /// What the system says; a regular file that may not be written, or whose owner cannot be kept.
    pub fn create(path: &Path) -> io::Result<Outfile> {
        Outfile::at(Place::find(path)?)
    }

    /// Begins to write to a place that was found.
    ///
    /// # Errors
    /// As [`create`](Outfile::create).
    pub fn at(place: Place) -> io::Result<Outfile> {
        Outfile::new(place, PUBLIC)
    }

    /// Begins to write to `path`, where no regular file may be replaced.
    ///
    /// # Errors
    /// Also [`io::ErrorKind::AlreadyExists`], now or from [`finish`](Outfile::finish).
    pub fn create_new(path: &Path) -> io::Result<Outfile> {
        Outfile::at(Place::find(path)?.new_only()?)
    }

    /// Where there was nothing, the file gets these permissions.
    fn new(place: Place, permissions: u32) -> io::Result<Outfile> {
        Ok(Outfile(match place {
            Place::Direct(file) => {
                place::empty(&file)?;
                To::Direct(file)
            }
            Place::Regular(place) => {
                let part = place.part(permissions)?;
                To::Regular { place, part }
            }
        }))
    }

    /// All is written: puts it on stable storage, and in its place.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            To::Direct(file) => place::sync_direct(&file),
            To::Regular { place, part } => place.replace(part),
        }
    }

    /// The same for what can be made again at any time: a power cut may leave an empty file.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish_unsynced(self) -> io::Result<()> {
        match self.0 {
            To::Direct(_) => Ok(()),
            To::Regular { place, part } => place.rename(part),
        }
    }
}

impl Write for Outfile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            To::Direct(file) => file.write(bytes),
            To::Regular { part, .. } => part.as_file_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            To::Direct(file) => file.flush(),
            To::Regular { part, .. } => part.as_file_mut().flush(),
        }
    }
}

/// Writes a whole file.
///
/// # Errors
/// As [`Outfile::create`] and [`Outfile::finish`].
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    write_to(Outfile::create(path)?, content)
}

/// Writes a whole file that holds a secret: a new one is its owner's only.
///
/// # Errors
/// As [`write`].
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    write_to(Outfile::new(Place::find(path)?, PRIVATE)?, content)
}

fn write_to(mut file: Outfile, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.finish()
}
