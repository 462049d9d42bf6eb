//! A FUSE file system of one file that forgets, at a power cut, what nobody has synced, and counts who does.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

/// Of the file in the folder.
const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
/// Attributes are asked for anew each time.
const TTL: Duration = Duration::ZERO;

/// What the file system has of its file.
struct Content {
    written: Vec<u8>,
    /// What a power cut leaves.
    synced: Vec<u8>,
    syncs: u64,
    folder_syncs: u64,
}

/// A mounted file system; it is unmounted when this is dropped.
pub(super) struct Mounted {
    content: Arc<Mutex<Content>>,
    folder: tempfile::TempDir,
    _session: fuser::BackgroundSession,
}

impl Mounted {
    /// Mounts it with a file of `bytes` zeros; `None`, and a word why, where that is not permitted.
    pub(super) fn new(bytes: usize) -> Option<Mounted> {
        if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
            eprintln!("skipped: cannot open /dev/fuse: {error}");
            return None;
        }
        let zeros = vec![0; bytes];
        let content = Content { written: zeros.clone(), synced: zeros, syncs: 0, folder_syncs: 0 };
        let content = Arc::new(Mutex::new(content));
        let folder = tempfile::tempdir().unwrap();
        match fuser::spawn_mount(OneFile(content.clone()), folder.path(), &Config::default()) {
            Ok(session) => Some(Mounted { content, folder, _session: session }),
            Err(error) => {
                eprintln!("skipped: cannot mount a FUSE file system: {error}");
                None
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new(self.folder.path()).join(NAME)
    }

    /// What a power cut leaves of these bytes. A copy: a test that fails while it holds the lock would stop the file system.
    pub(super) fn survives(&self, range: Range<usize>) -> Vec<u8> {
        self.content.lock().unwrap().synced[range].to_vec()
    }

    pub(super) fn syncs(&self) -> u64 {
        self.content.lock().unwrap().syncs
    }

    pub(super) fn folder_syncs(&self) -> u64 {
        self.content.lock().unwrap().folder_syncs
    }
}

struct OneFile(Arc<Mutex<Content>>);

impl OneFile {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE;
        let size = if is_file { self.0.lock().unwrap().written.len() as u64 } else { 0 };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Direct I/O under way while its caller goes on: what io_uring meets on sshfs, virtiofs and the like.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| std::io::ErrorKind::Unsupported.into())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some(NAME) => reply.entry(&TTL, &self.attributes(FILE), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(inode));
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let content = self.0.lock().unwrap();
        let end = (offset as usize + size as usize).min(content.written.len());
        reply.data(&content.written[(offset as usize).min(end)..end]);
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let at = offset as usize;
        self.0.lock().unwrap().written[at..at + data.len()].copy_from_slice(data);
        reply.written(data.len() as u32);
    }

    fn fsync(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _data: bool,
        reply: ReplyEmpty,
    ) {
        let mut content = self.0.lock().unwrap();
        content.synced = content.written.clone();
        content.syncs += 1;
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _data: bool,
        reply: ReplyEmpty,
    ) {
        self.0.lock().unwrap().folder_syncs += 1;
        reply.ok();
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }
}
