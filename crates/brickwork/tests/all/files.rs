//! Files that commands write: whatever a user names is written to and stays what it is.

use crate::common::{BINARY, Site, content, text};
use crate::lab::OWN;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

/// What a user may name: a link to a file that only its group may read, and a pipe. Root also a device, where it can be made.
struct Places {
    folder: tempfile::TempDir,
    inode_of_device: Option<u64>,
}

impl Places {
    fn make() -> Places {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old").expect("a file");
        fs::set_permissions(at("file"), Permissions::from_mode(0o640)).expect("its mode");
        symlink("file", at("link")).expect("a link");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        let null = rustix::fs::makedev(1, 3);
        let made = rustix::fs::mknodat(CWD, at("device"), FileType::CharacterDevice, mode, null);
        let is_of_use = made.is_ok() && fs::write(at("device"), "x").is_ok();
        let inode_of_device = is_of_use.then(|| fs::metadata(at("device")).expect("it is there").ino());
        Places { folder, inode_of_device }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What comes through the pipe, once.
    fn read_pipe(&self) -> JoinHandle<Vec<u8>> {
        let pipe = self.at("pipe");
        thread::spawn(move || fs::read(pipe).expect("it is read"))
    }

    /// Runs a command once for each place; it gets the content that came.
    fn write_each(&self, command: impl Fn(&Path)) -> [Vec<u8>; 2] {
        if self.inode_of_device.is_some() {
            command(&self.at("device"));
        }
        let piped = self.read_pipe();
        command(&self.at("pipe"));
        command(&self.at("link"));
        let (piped, linked) =
            (piped.join().expect("it ends"), fs::read(self.at("file")).expect("it is there"));
        self.check();
        [piped, linked]
    }

    /// Everything is still what it was, and nothing is left beside it.
    fn check(&self) {
        let found = |name: &str| fs::symlink_metadata(self.at(name)).expect("it is there");
        assert!(found("pipe").file_type().is_fifo() && found("link").is_symlink());
        assert_eq!(found("file").mode() & 0o7777, 0o640);
        if let Some(inode) = self.inode_of_device {
            assert!(found("device").file_type().is_char_device() && found("device").ino() == inode);
        }
        let names = fs::read_dir(self.folder.path()).expect("it can be read");
        let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        let known = ["file", "link", "pipe", "device", "mine.toml"];
        assert!(names.iter().all(|name| known.iter().any(|known| name == known)), "{names:?}");
    }
}

fn brickwork(folder: &Path, arguments: &str, place: &Path) {
    let mut command = Command::new(BINARY);
    command.args(arguments.split_whitespace()).arg(place).current_dir(folder);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{arguments} {}: {}", place.display(), text(&output.stderr));
}

#[test]
fn traces_reports_and_records_go_where_a_user_says() {
    let places = Places::make();
    fs::write(places.at("mine.toml"), OWN).expect("a file");
    for (arguments, begins) in [
        ("trace generate sap --requests 100 --force", "at_ns"),
        ("lab report mine.toml --no-sensitivity --out", "<!doctype html>"),
        ("lab run mine.toml --requests-out", "policy"),
        ("sim torture --seeds 1 --bricks 3 --history", "{"),
    ] {
        let written = places.write_each(|place| brickwork(places.folder.path(), arguments, place));
        for written in written {
            let written = text(&written).to_lowercase();
            assert!(written.contains(begins) && written.len() > 100, "{arguments}: {written}");
        }
    }
}

/// An object of this content, and the version that it has.
fn put(site: &Site, content: &[u8]) -> String {
    let source = site.dir.path().join("source");
    fs::write(&source, content).expect("a file");
    site.text(&object(site, &format!("put {} files/one", source.display())));
    let stat: Value = serde_json::from_str(&site.text(&object(site, "stat files/one --json"))).expect("JSON");
    stat["version"].as_str().expect("it has a version").to_owned()
}

fn object(site: &Site, arguments: &str) -> String {
    format!("object {arguments} --config {}", site.dir.path().join("gateway-1/gateway.toml").display())
}

#[test]
fn downloads_go_where_a_user_says_and_go_on_where_they_ended() {
    let (site, places, content) = (Site::start(3), Places::make(), content(3 << 20, 9));
    let version = put(&site, &content);
    let get = |place: &Path, further: &str| {
        site.text(&object(&site, &format!("get files/one {} --json {further}", place.display())))
    };
    let got = places.write_each(|place| drop(get(place, "")));
    assert!(got.iter().all(|got| *got == content), "all of it came");
    let got = places.write_each(|place| drop(get(place, "--from 1MiB --bytes 1000")));
    assert!(got.iter().all(|got| *got == content[1 << 20..][..1000]), "a part of it came");

    // What an earlier get has left is taken up, and what somebody else may have left is not.
    let part = |name: &str| places.at(&format!("file.part-{version}{name}"));
    fs::write(part("-earlier"), &content[..1 << 20]).expect("a file");
    let victim = places.at("mine.toml");
    fs::write(&victim, "precious").expect("a file");
    symlink(&victim, part("")).expect("a link");
    let said: Value = serde_json::from_str(&get(&places.at("link"), "")).expect("JSON");
    assert_eq!(said["read_bytes"].as_u64(), Some(2 << 20), "{said}");
    assert_eq!(fs::read(places.at("file")).expect("it is there"), content);
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious");
    fs::remove_file(part("")).expect("the link is still there");
    places.check();

    let error = site.refusal(&object(&site, &format!("get files/none {}", places.at("link").display())));
    assert!(error.contains("files/none") && error.contains("no such object"), "{error}");
}

#[test]
fn the_directorys_store_is_its_owners_only() {
    let site = Site::start(3);
    put(&site, b"an object makes the index");
    let names = fs::read_dir(site.dir.path()).expect("it can be read").map(|entry| entry.expect("an entry"));
    let stores: Vec<_> =
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("directory.db")).collect();
    assert!(!stores.is_empty());
    for store in stores {
        assert_eq!(store.metadata().expect("it is there").mode() & 0o777, 0o600, "{:?}", store.file_name());
    }
}
