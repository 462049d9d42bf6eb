//! Where a disk is: which machine, which file system or device, and which start of the machine. A copy of the disk is elsewhere, unless the machine was cloned
//! as a whole: then only the start is another one.

use super::file::file_system;
use ring::digest::{SHA256, digest};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use wire::Place;

/// The place of a disk that this process has locked. What cannot be found out is 0: then nothing is concluded from it.
pub(super) fn of(file: &File) -> Place {
    let Ok(metadata) = file.metadata() else { return Place::default() };
    let (disk, now) = match metadata.file_type().is_block_device() {
        true => (device(&metadata), format!("device {} {}", metadata.rdev(), sequence(&metadata))),
        false => (inode(file, &metadata), format!("file {} {}", metadata.dev(), metadata.ino())),
    };
    let machine = read("/etc/machine-id").unwrap_or_default();
    let disk = disk.map_or(0, |disk| hash(&format!("{machine} {disk}")));
    let boot = read("/proc/sys/kernel/random/boot_id").map_or(0, |boot| hash(&format!("{boot} {now}")));
    Place { disk, boot }
}

/// The same file after a restart of the machine, where its file system has a number of its own, as ext4 and btrfs do. Others make one of their device's
/// number, which may change: then the file seems to be elsewhere.
fn inode(file: &File, metadata: &Metadata) -> Option<String> {
    let id = file_system(file).ok()?.f_fsid;
    // SAFETY: the type is two numbers of 32 bits, and hides them.
    let id: [i32; 2] = unsafe { std::mem::transmute(id) };
    (id != [0, 0]).then(|| format!("file {} {} {}", id[0], id[1], metadata.ino()))
}

/// The same device after a restart of the machine, where it has a name that stays.
fn device(metadata: &Metadata) -> Option<String> {
    let of = sys(metadata);
    let partition = read(&format!("{of}/partition"));
    // Names of a partition's disk are a level above it.
    let above = if partition.is_some() { "/.." } else { "" };
    let names = ["wwid", "device/wwid", "serial", "device/serial", "dm/uuid"];
    let name = names.iter().find_map(|name| read(&format!("{of}{above}/{name}")));
    name.map(|name| format!("device {name} {}", partition.unwrap_or_default()))
}

/// Counts devices since the start of the machine, so that one which took another's number is told from it.
fn sequence(metadata: &Metadata) -> String {
    let of = sys(metadata);
    let above = if fs::exists(format!("{of}/partition")).unwrap_or(false) { "/.." } else { "" };
    read(&format!("{of}{above}/diskseq")).unwrap_or_default()
}

fn sys(metadata: &Metadata) -> String {
    format!("/sys/dev/block/{}:{}", libc::major(metadata.rdev()), libc::minor(metadata.rdev()))
}

/// A line of a file, if there is one that says anything.
fn read(path: &str) -> Option<String> {
    let line: io::Result<String> = fs::read_to_string(path);
    line.ok().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Never 0.
fn hash(of: &str) -> u64 {
    let hash = digest(&SHA256, of.as_bytes());
    let first = hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
    u64::from_be_bytes(*first).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_elsewhere_and_the_same_file_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let (first, second) = (dir.path().join("disk"), dir.path().join("copy"));
        fs::write(&first, "content").expect("a file");
        fs::copy(&first, &second).expect("a copy");
        let place = |path| of(&File::open(path).expect("it is there"));
        assert_ne!(place(&first).boot, 0);
        assert!(place(&first).ends_with(place(&first)));
        assert!(!place(&first).ends_with(place(&second)));
        assert!(place(&first).disk == 0 || place(&first).is_elsewhere(place(&second)));
        assert!(!place(&first).is_elsewhere(place(&first)));
    }
}
