//! Each kind of thing that a user may name, and each that a stranger may put in the way.

use crate::{Outfile, Part, Place, Regular, write, write_private};
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

/// A folder of its own, and how many names are in it.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("it can be read").count()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn regular(path: &Path) -> Regular {
    match Place::find(path).expect("it can be written") {
        Place::Regular(regular) => regular,
        Place::Direct(_) => panic!("{} is a regular file", path.display()),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_device_is_written_to_and_stays_a_device() {
    let before = fs::metadata("/dev/null").expect("it is there").ino();
    write(Path::new("/dev/null"), b"gone").expect("it takes everything");
    let after = fs::symlink_metadata("/dev/null").expect("it is there");
    assert!(after.file_type().is_char_device() && after.ino() == before);
    let error = write(Path::new("/dev/full"), b"no").expect_err("it takes nothing");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

/// As `/dev/null` for root, where the folder can be written, too.
#[test]
fn a_device_in_a_folder_of_ours_is_not_replaced() {
    let folder = folder();
    let device = folder.path().join("null");
    if rustix::fs::mknodat(
        CWD,
        &device,
        FileType::CharacterDevice,
        Mode::RUSR | Mode::WUSR,
        rustix::fs::makedev(1, 3),
    )
    .is_err()
        || write(&device, b"gone").is_err()
    {
        eprintln!("no device can be made or used here: skipped");
        return;
    }
    assert!(fs::symlink_metadata(&device).expect("it is there").file_type().is_char_device());
    assert_eq!(names(folder.path()), 1);
}

#[test]
fn a_pipe_and_a_socket_get_the_content() {
    let folder = folder();
    let (pipe, socket) = (folder.path().join("pipe"), folder.path().join("socket"));
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let from_socket = thread::spawn(move || {
        let mut text = String::new();
        listener.accept().expect("a writer").0.read_to_string(&mut text).map(|_| text)
    });
    let reading = pipe.clone();
    let from_pipe = thread::spawn(move || fs::read_to_string(reading));
    for place in [&pipe, &socket] {
        write(place, b"hello").expect("it is written");
    }
    assert_eq!(from_pipe.join().expect("it ends").expect("it is read"), "hello");
    assert_eq!(from_socket.join().expect("it ends").expect("it is read"), "hello");
    assert!(fs::symlink_metadata(&pipe).expect("it is there").file_type().is_fifo());
    assert!(fs::symlink_metadata(&socket).expect("it is there").file_type().is_socket());
    assert_eq!(names(folder.path()), 2);
}

#[test]
fn a_link_is_followed_also_where_it_leads_to_nothing_yet() {
    let folder = folder();
    let [first, second, target] = ["first", "second", "target"].map(|name| folder.path().join(name));
    symlink("second", &first).expect("a link");
    symlink(&target, &second).expect("a link");
    for content in ["new", "old is replaced"] {
        write(&first, content.as_bytes()).expect("it is written");
        assert_eq!(fs::read_to_string(&target).expect("it is there"), content);
        assert!([&first, &second].iter().all(|link| link.is_symlink()), "the links stay");
    }
    symlink("round", folder.path().join("round")).expect("a link");
    assert!(write(&folder.path().join("round"), b"").is_err());
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_owner_and_mode() {
    let folder = folder();
    let path = folder.path().join("file");
    fs::write(&path, "old").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("its mode");
    if is_root() {
        std::os::unix::fs::chown(&path, Some(4711), Some(4712)).expect("its owner");
    }
    let before = fs::metadata(&path).expect("it is there");
    let mut file = Outfile::create(&path).expect("it can be written");
    file.write_all(b"new").expect("it is written");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "old");
    file.finish().expect("it is whole");
    let after = fs::metadata(&path).expect("it is there");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    drop(Outfile::create(&path).expect("it can be written"));
    assert_eq!((names(folder.path()), fs::read_to_string(&path).expect("it stays")), (1, "new".to_owned()));
}

#[test]
fn a_secret_is_its_owners_and_other_files_are_what_the_umask_leaves() {
    let folder = folder();
    let [secret, public, usual] = ["secret", "public", "usual"].map(|name| folder.path().join(name));
    write_private(&secret, b"x").expect("it is written");
    write(&public, b"x").expect("it is written");
    File::create(&usual).expect("a file");
    assert_eq!((mode(&secret), mode(&public)), (0o600, mode(&usual)));
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("file");
    write(&path, b"old").expect("it is written");
    let error = Outfile::create_new(&path).expect_err("it is there");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    let early = Outfile::create_new(&folder.path().join("late")).expect("it is not there");
    write(&folder.path().join("late"), b"mine").expect("it is written");
    assert!(early.finish().is_err(), "somebody was faster");
    assert_eq!(fs::read_to_string(folder.path().join("late")).expect("it stays"), "mine");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("its mode");
    assert!(is_root() || write(&path, b"new").is_err());
    for nonsense in ["", "/", "..", "folder/", "no/such/folder"] {
        assert!(write(&folder.path().join(nonsense), b"x").is_err(), "{nonsense}");
    }
}

#[test]
fn what_takes_the_place_meanwhile_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("file");
    write(&path, b"old").expect("it is written");
    let file = Outfile::create(&path).expect("it can be written");
    fs::remove_file(&path).expect("it goes");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    assert!(file.finish().is_err());
    assert!(fs::symlink_metadata(&path).expect("it stays").file_type().is_fifo());
}

/// What a shell has opened for us is written to, and not exchanged behind its back.
#[test]
fn a_file_that_was_handed_over_is_written_in_place() {
    use std::os::fd::AsRawFd;
    let folder = folder();
    let path = folder.path().join("file");
    let opened = File::create(&path).expect("a file");
    let inode = fs::metadata(&path).expect("it is there").ino();
    write(Path::new(&format!("/dev/fd/{}", opened.as_raw_fd())), b"handed").expect("it is written");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "handed");
    assert_eq!((fs::metadata(&path).expect("it is there").ino(), names(folder.path())), (inode, 1));
}

/// The parts of a file that are in its folder.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).expect("it can be read").map(|entry| entry.expect("an entry").path());
    all.filter(|path| path.to_string_lossy().contains(".part-")).collect()
}

#[test]
fn a_part_goes_on_where_it_ended_and_takes_the_place_when_it_is_whole() {
    let folder = folder();
    let path = folder.path().join("file");
    let open = |tag| Part::open(regular(&path), tag).expect("it can be written");
    open("7").file().write_all(b"first ").expect("it is written");
    let mut second = open("7");
    let mut before = String::new();
    second.file().read_to_string(&mut before).expect("it is read");
    second.file().write_all(b"second").expect("it is written");
    assert_eq!((before.as_str(), second.file().metadata().expect("it is there").len()), ("first ", 12));
    // Another tag, and another run at the same time, have parts of their own.
    assert_eq!(open("8").file().metadata().expect("it is there").len(), 0);
    assert_eq!(open("7").file().metadata().expect("it is there").len(), 0);
    second.finish().expect("it is whole");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "first second");
    assert_eq!(parts(folder.path()).len(), 2);
}

#[test]
fn what_a_stranger_may_have_put_there_is_no_part_of_ours() {
    let folder = folder();
    let [path, victim, named] = ["file", "victim", "file.part-7-abcdef"].map(|name| folder.path().join(name));
    fs::write(&victim, "precious").expect("a file");
    let begin = || Part::open(regular(&path), "7").expect("it begins anew");
    let is_fresh = |mut part: Part| {
        part.file().write_all(b"x").expect("it is written");
        let is_fresh = part.path() != named && part.file().metadata().is_ok_and(|found| found.len() == 1);
        fs::remove_file(part.path()).expect("it goes");
        is_fresh
    };
    symlink(&victim, &named).expect("a link");
    assert!(is_fresh(begin()), "a link");
    fs::remove_file(&named).expect("it goes");
    fs::hard_link(&victim, &named).expect("a second name");
    assert!(is_fresh(begin()), "a second name");
    fs::remove_file(&named).expect("it goes");
    rustix::fs::mknodat(CWD, &named, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    assert!(is_fresh(begin()), "a pipe");
    fs::remove_file(&named).expect("it goes");
    if is_root() {
        fs::write(&named, "of another user").expect("a file");
        std::os::unix::fs::chown(&named, Some(4711), None).expect("its owner");
        assert!(is_fresh(begin()), "of another user");
    }
    assert_eq!(fs::read_to_string(&victim).expect("it stays"), "precious");
}
