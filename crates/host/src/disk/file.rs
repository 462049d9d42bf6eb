//! A disk as a file: opened for direct I/O where the file system has it, and for one brick alone.

use crate::buffer::AlignedBuffer;
use crate::{DiskSpec, HostError};
use base::{BLOCK_U64, Payload};
use bytes::Bytes;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::Durability;

/// How long the lock of an owner that has died may linger: on a loaded machine the kernel takes seconds to end a process that had
/// requests outstanding.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// After so long it is said what is waited for.
const LOCK_QUIET: Duration = Duration::from_millis(500);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// An open disk. Nobody else can open it as one until it is dropped.
#[derive(Debug)]
pub struct DiskFile {
    file: File,
    path: PathBuf,
    size_bytes: u64,
    /// What addresses and lengths of direct I/O must be multiples of; 1 where I/O is not direct.
    alignment: usize,
    durability: Durability,
    /// A request failed because the file system is full. Set for good: the store on it has ended its work.
    is_full: AtomicBool,
}

impl DiskFile {
    /// Opens a disk that is there. Its size is `spec.size_bytes`, or all of it, in whole blocks.
    ///
    /// # Errors
    /// [`HostError::Disk`]: not there, in use, too small, or neither a regular file nor a block device.
    pub fn open(spec: &DiskSpec) -> Result<DiskFile, HostError> {
        let failed = |why: String| HostError::Disk { path: spec.path.clone(), why };
        let disk = DiskFile::open_any(&spec.path, 0)?;
        let wanted = spec.size_bytes.unwrap_or(disk.size_bytes) / BLOCK_U64 * BLOCK_U64;
        if wanted == 0 || wanted > disk.size_bytes {
            return Err(failed(format!(
                "it has {} bytes, {wanted} are configured: was it cut short? Restore it, or replace the disk",
                disk.size_bytes
            )));
        }
        Ok(DiskFile { size_bytes: wanted, ..disk })
    }

    /// Makes a disk of its size, or opens what is there (a block device; a file, which is made larger where needed).
    /// All its blocks are allocated, so that later writes change no metadata of the file system. What fails leaves the file
    /// as it was, or none.
    ///
    /// # Errors
    /// As [`DiskFile::open`]; also when there is no room, or no size was given for a new file.
    pub fn create(spec: &DiskSpec) -> Result<DiskFile, HostError> {
        let before = DiskBefore::of(&spec.path)?;
        let created = DiskFile::open_any(&spec.path, libc::O_CREAT)?.made_whole(spec);
        if created.is_err()
            && let Err(error) = before.restore()
        {
            tracing::warn!(disk = %spec.path.display(), %error, "what was allocated in vain could not be given back");
        }
        created
    }

    fn made_whole(self, spec: &DiskSpec) -> Result<DiskFile, HostError> {
        let (failed, disk) = (|why: String| HostError::Disk { path: spec.path.clone(), why }, self);
        let wanted = spec.size_bytes.unwrap_or(disk.size_bytes) / BLOCK_U64 * BLOCK_U64;
        if wanted == 0 {
            return Err(failed("how large shall it be? Give its size as PATH:SIZE".to_owned()));
        }
        if is_device(&disk.file).map_err(|error| failed(error.to_string()))? {
            return DiskFile::open_device(disk, wanted);
        }
        disk.allocate(wanted).map_err(|error| failed(format!("cannot allocate {wanted} bytes: {error}")))?;
        sync_folder_of(&spec.path).map_err(|error| failed(format!("cannot sync its folder: {error}")))?;
        Ok(DiskFile { size_bytes: wanted, ..disk })
    }

    /// Its size in bytes, a multiple of 4096.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether I/O goes past the page cache.
    pub fn is_direct(&self) -> bool {
        self.alignment > 1
    }

    /// How a durable write of a [`super::DiskEngine`] reaches stable storage here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Where it is. This process has it locked.
    pub(crate) fn place(&self) -> wire::Place {
        super::place::of(&self.file)
    }

    /// Reads, and waits for it.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let mut buffer = AlignedBuffer::new(length);
        self.file.read_exact_at(&mut buffer, offset)?;
        Ok(buffer.into_bytes())
    }

    /// Writes, and waits for it. Not on stable storage before [`DiskFile::sync`].
    ///
    /// # Errors
    /// What the system says.
    pub fn write_at(&self, offset: u64, content: &Payload) -> io::Result<()> {
        let mut copy = AlignedBuffer::new(content.len());
        content.copy_to(&mut copy);
        self.file.write_all_at(&copy, offset)
    }

    /// Puts all that was written, and the size, on stable storage.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Whether a request failed for lack of room on the file system since the disk was opened.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(super) fn note_full(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    pub(super) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether these bytes can go to the disk as they are.
    pub(super) fn takes(&self, bytes: &[u8]) -> bool {
        (bytes.as_ptr() as usize).is_multiple_of(self.alignment) && bytes.len().is_multiple_of(self.alignment)
    }

    fn open_any(path: &Path, flags: i32) -> Result<DiskFile, HostError> {
        let failed = |why: String| HostError::Disk { path: path.to_owned(), why };
        // A block device that is opened exclusively is nobody else's: no mount, no other brick.
        let exclusive = match std::fs::metadata(path) {
            Ok(metadata) if metadata.file_type().is_block_device() => libc::O_EXCL,
            Ok(metadata) if !metadata.is_file() => {
                return Err(failed("is neither a regular file nor a block device".to_owned()));
            }
            _ => flags,
        };
        let (file, alignment) = open_direct(path, exclusive).map_err(|error| failed(open_failed(&error)))?;
        lock(&file, path).map_err(failed)?;
        let size = (&file).seek(SeekFrom::End(0)).map_err(|error| failed(error.to_string()))?;
        let durability = durability_of(&file).map_err(|error| failed(error.to_string()))?;
        if alignment == 1 {
            forget_cached(&file);
        }
        let size_bytes = size / BLOCK_U64 * BLOCK_U64;
        let (path, is_full) = (path.to_owned(), AtomicBool::new(false));
        Ok(DiskFile { file, path, size_bytes, alignment, durability, is_full })
    }

    fn open_device(disk: DiskFile, wanted: u64) -> Result<DiskFile, HostError> {
        if wanted > disk.size_bytes {
            let why = format!("the device has {} bytes, {wanted} are wanted", disk.size_bytes);
            return Err(HostError::Disk { path: disk.path, why });
        }
        Ok(DiskFile { size_bytes: wanted, ..disk })
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        // SAFETY: a call on a descriptor that is open.
        match unsafe { libc::posix_fallocate(self.fd(), 0, bytes as libc::off_t) } {
            0 => self.file.sync_all(),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// What was at the path of a disk before the disk was made there, so that a failure later on can take it back.
#[derive(Debug)]
pub struct DiskBefore {
    path: PathBuf,
    what: Before,
}

#[derive(Debug)]
enum Before {
    Nothing,
    File {
        bytes: u64,
    },
    /// Or whatever else has a size of its own.
    Device,
}

impl DiskBefore {
    /// Looks at what is there now.
    ///
    /// # Errors
    /// [`HostError::Disk`] when that cannot be seen.
    pub fn of(path: &Path) -> Result<DiskBefore, HostError> {
        let what = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Before::File { bytes: metadata.len() },
            Ok(_) => Before::Device,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Before::Nothing,
            Err(error) => {
                return Err(HostError::Disk { path: path.to_owned(), why: open_failed(&error) });
            }
        };
        Ok(DiskBefore { path: path.to_owned(), what })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a file that was made since, and cuts one that has grown to its length. What was written within that length
    /// stays.
    ///
    /// # Errors
    /// What the system says.
    pub fn restore(&self) -> io::Result<()> {
        match self.what {
            Before::Nothing => std::fs::remove_file(&self.path),
            Before::Device => Ok(()),
            Before::File { bytes } => {
                let file = OpenOptions::new().write(true).open(&self.path)?;
                if file.metadata()?.len() > bytes { file.set_len(bytes) } else { Ok(()) }
            }
        }
    }
}

/// Makes the file this process's. One that was killed just now may hold it for a moment longer, until the kernel has
/// finished what it had under way; that must not reach the disk under a new owner.
fn lock(file: &File, path: &Path) -> Result<(), String> {
    let since = Instant::now();
    let mut is_told = false;
    loop {
        if !is_told && since.elapsed() >= LOCK_QUIET {
            is_told = true;
            tracing::warn!(
                disk = %path.display(), seconds = LOCK_WAIT.as_secs(),
                "the disk is in use; waiting, in case its last owner was killed and is still ending"
            );
        }
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < LOCK_WAIT => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(error)) => return Err(format!("cannot lock it: {error}")),
        }
    }
}

fn open_direct(path: &Path, flags: i32) -> io::Result<(File, usize)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(flags | libc::O_DIRECT).open(path) {
        Ok(file) => {
            let alignment = direct_alignment(&file);
            Ok((file, alignment))
        }
        // Some file systems (tmpfs before 6.5, some network ones) have no direct I/O.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((options.custom_flags(flags).open(path)?, 1))
        }
        Err(error) => Err(error),
    }
}

/// Has the next reads come from the disk. Where a sync failed earlier, the kernel may have kept what it could not write, and
/// takes it for clean: recovery would find a write there that no power cut spares.
pub(crate) fn forget_cached(file: &File) {
    // SAFETY: an open descriptor. It is advice: what is not followed leaves reads as they were.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// What the file system wants addresses and lengths to be multiples of; 4096 where it does not say.
fn direct_alignment(file: &File) -> usize {
    // SAFETY: all zeros is a valid `statx`.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty path as AT_EMPTY_PATH wants it, and a valid place for the answer.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, &mut stat)
    };
    let known = result == 0 && stat.stx_mask & libc::STATX_DIOALIGN != 0 && stat.stx_dio_offset_align > 0;
    if known { stat.stx_dio_mem_align.max(stat.stx_dio_offset_align) as usize } else { base::BLOCK }
}

/// Puts the name of a new file on stable storage: `fsync` of the file alone need not.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Write-through is used only where it is known to work. On FUSE, an io_uring write with `RWF_DSYNC` is answered as if it
/// were durable, and the file system is never asked to sync (seen on Linux 6.18): a power cut then loses it. Network and
/// paravirtual file systems (NFS, 9p, virtiofs) share that path, and of an unknown one nothing is known.
fn durability_of(file: &File) -> io::Result<Durability> {
    if is_device(file)? {
        return Ok(Durability::WriteThrough);
    }
    Ok(durability_on(file_system(file)?.f_type))
}

/// What the system says of the file system that has the file.
pub(super) fn file_system(file: &File) -> io::Result<libc::statfs> {
    // SAFETY: all zeros is a valid `statfs`.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and a valid place for the answer.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat)
}

/// By the magic number of the file system, as `statfs` tells it.
fn durability_on(magic: libc::__fsword_t) -> Durability {
    match magic {
        libc::EXT4_SUPER_MAGIC | libc::XFS_SUPER_MAGIC | libc::BTRFS_SUPER_MAGIC => Durability::WriteThrough,
        _ => Durability::WriteThenSync,
    }
}

fn is_device(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_block_device())
}

fn open_failed(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ResourceBusy => in_use(),
        io::ErrorKind::NotFound => {
            "is not there; `brickwork brick init` makes the disks of a brick".to_owned()
        }
        _ => format!("cannot open it: {error}"),
    }
}

fn in_use() -> String {
    "is in use, perhaps by another brick; stop that one, or give this brick a disk of its own".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_known_to_honour_write_through_are_trusted_with_it() {
        assert_eq!(durability_on(libc::EXT4_SUPER_MAGIC), Durability::WriteThrough);
        assert_eq!(durability_on(libc::XFS_SUPER_MAGIC), Durability::WriteThrough);
        assert_eq!(durability_on(libc::BTRFS_SUPER_MAGIC), Durability::WriteThrough);
        let plan_9 = 0x0102_1997;
        for magic in [libc::FUSE_SUPER_MAGIC, libc::NFS_SUPER_MAGIC, libc::TMPFS_MAGIC, plan_9, 1] {
            assert_eq!(durability_on(magic), Durability::WriteThenSync, "{magic:#x}");
        }
    }
}
