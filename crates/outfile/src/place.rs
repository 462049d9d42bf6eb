//! What the path of a file leads to, and how a regular file there is replaced.

use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// As many links as Linux follows before it speaks of a loop.
const LINKS_MAX: usize = 40;
/// What is kept of the permissions of a file: new content does not run as another user because the old content did.
const KEPT: u32 = 0o777;

/// What a path leads to.
#[derive(Debug)]
pub enum Place {
    /// A device, a pipe, a socket, or what the process was given open (`/dev/stdout`): it is written to as the content comes.
    Direct(File),
    /// A regular file, or nothing yet: it appears as a whole.
    Regular(Regular),
}

/// Where a regular file is or will be.
#[derive(Debug)]
pub struct Regular {
    path: PathBuf,
    old: Old,
    /// Nothing may be replaced, also not what somebody else makes meanwhile.
    is_new_only: bool,
}

/// What was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Old {
    Nothing,
    File(Kept),
}

/// What the new file takes over from the one that it replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kept {
    user: u32,
    group: u32,
    permissions: u32,
}

impl Place {
    /// Follows links, and opens what is not a regular file. Waits for a reader of a pipe, as a shell does.
    ///
    /// # Errors
    /// What the system says: also when a regular file may not be written, although it would be replaced.
    pub fn find(path: &Path) -> io::Result<Place> {
        let (path, is_handed) = follow(path)?;
        let file = match open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place::Regular(Regular { path, old: Old::Nothing, is_new_only: false }));
            }
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if is_handed || !found.is_file() {
            return Ok(Place::Direct(file));
        }
        Ok(Place::Regular(Regular { path, old: Old::File(Kept::of(&found)), is_new_only: false }))
    }

    /// It, unless a regular file is there already.
    pub(crate) fn new_only(self) -> io::Result<Place> {
        match self {
            Place::Regular(Regular { old: Old::File(_), .. }) => Err(io::ErrorKind::AlreadyExists.into()),
            Place::Regular(place) => Ok(Place::Regular(Regular { is_new_only: true, ..place })),
            Place::Direct(file) => Ok(Place::Direct(file)),
        }
    }
}

impl Regular {
    /// Where it is, with all links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        parent_of(&self.path)
    }

    pub(crate) fn name(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }

    /// Whether a file of this user may be the part of what becomes this one: it is ours, or its owner's.
    pub(crate) fn is_trusted(&self, user: u32) -> bool {
        let is_owners = matches!(self.old, Old::File(old) if old.user == user);
        is_owners || user == rustix::process::geteuid().as_raw()
    }

    /// A file beside it, which is removed unless it takes this place.
    pub(crate) fn part(&self, permissions: u32) -> io::Result<NamedTempFile> {
        let mut builder = Builder::new();
        builder.prefix(".brickwork-").suffix(".part");
        let part = self.make(&mut builder, permissions)?;
        self.adopt(part.as_file())?;
        Ok(part)
    }

    /// Makes a file beside it: `O_EXCL`, under a random name. Where there is a file, nobody else may read the new one before it
    /// has the owner of the old one.
    pub(crate) fn make(&self, builder: &mut Builder, permissions: u32) -> io::Result<NamedTempFile> {
        let permissions = match self.old {
            Old::Nothing => permissions,
            Old::File(_) => crate::PRIVATE,
        };
        builder.permissions(Permissions::from_mode(permissions)).tempfile_in(self.folder())
    }

    /// Gives a file the owner and the permissions of the one that it will replace.
    pub(crate) fn adopt(&self, file: &File) -> io::Result<()> {
        let Old::File(old) = self.old else { return Ok(()) };
        let found = Kept::of(&file.metadata()?);
        if (found.user, found.group) != (old.user, old.group) {
            fchown(file, Some(old.user), Some(old.group)).map_err(|error| cannot_keep(old, &error))?;
        }
        file.set_permissions(Permissions::from_mode(old.permissions))
    }

    /// Puts a file that is whole in this place, and both on stable storage.
    pub(crate) fn replace(self, part: NamedTempFile) -> io::Result<()> {
        part.as_file().sync_all()?;
        let folder = self.folder().to_owned();
        self.rename(part)?;
        File::open(folder)?.sync_all()
    }

    /// Puts a file in this place.
    pub(crate) fn rename(self, part: NamedTempFile) -> io::Result<()> {
        if self.is_new_only {
            return part.persist_noclobber(&self.path).map(drop).map_err(|error| error.error);
        }
        if is_other(&self.path)? {
            return Err(io::Error::other(CHANGED));
        }
        part.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

/// Why a place is left alone although it could be written to at first.
const CHANGED: &str = "it was replaced meanwhile by something that is no regular file";

impl Kept {
    fn of(metadata: &Metadata) -> Kept {
        Kept { user: metadata.uid(), group: metadata.gid(), permissions: metadata.mode() & KEPT }
    }
}

fn cannot_keep(old: Kept, error: &io::Error) -> io::Error {
    let Kept { user, group, .. } = old;
    let why = format!(
        "it belongs to user {user} and group {group}, and would not any more ({error}): remove it first, or name another file"
    );
    io::Error::new(error.kind(), why)
}

/// Whether something other than a regular file is there.
fn is_other(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(!found.is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The place that a path leads to, which is no link, and whether it stands for a file that a process has open (`/dev/stdout`
/// leads to `/proc/self/fd/1`): replacing such a file would not reach who opened it.
fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Some(name) = at.file_name().filter(|_| !at.as_os_str().as_bytes().ends_with(b"/")) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = fs::canonicalize(parent_of(&at)).map_err(|error| no_folder(&at, &error))?;
        let place = folder.join(name);
        if folder.starts_with("/proc") {
            return Ok((place, true));
        }
        match fs::read_link(&place) {
            Ok(target) => at = folder.join(target),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Ok((place, false));
            }
            Err(error) => return Err(error),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn no_folder(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot use the folder {}: {error}", parent_of(path).display()))
}

/// Opens for writing, without a change to what is there.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOCTTY.bits() as i32;
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let is_socket = || fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match opened {
        Err(_) if is_socket() => UnixStream::connect(path).map(|stream| File::from(OwnedFd::from(stream))),
        opened => opened,
    }
}

/// Empties what has a length, as a shell does before it writes.
pub(crate) fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

/// Waits for a device to have it. Pipes and sockets have nothing to wait for.
pub(crate) fn sync_direct(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_block_device() { file.sync_all() } else { Ok(()) }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
