//! `brickwork fsck` as an operator meets it: exit codes, words, and disks that are in use.

use base::{BrickId, ClusterId};
use host::disk::DiskFile;
use host::{DiskIdentity, DiskSpec};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CLUSTER: &str = "0102030405060708090a0b0c0d0e0f10";

/// A directory with a formatted disk and the configuration of its brick; gone with it.
struct Brick {
    dir: PathBuf,
}

impl Brick {
    fn new(name: &str) -> Brick {
        let dir = std::env::temp_dir().join(format!("brickwork-fsck-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let brick = Brick { dir };
        let cluster = ClusterId((1..=16).collect::<Vec<u8>>().try_into().expect("sixteen bytes"));
        let identity = DiskIdentity { cluster, brick: BrickId(3), index: 0, journal_bytes: None };
        host::format_disk(&brick.spec(), &identity).expect("a disk");
        let disk = brick.disk();
        let config = format!(
            "listen = \"127.0.0.1:7003\"\ndirectory = \"127.0.0.1:7001\"\ncluster = \"{CLUSTER}\"\nid = 3\nplaintext = true\n\
             disks = [{{ path = {disk:?} }}]\n"
        );
        std::fs::write(brick.dir.join("brick.toml"), config).expect("a configuration");
        brick
    }

    fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    fn spec(&self) -> DiskSpec {
        DiskSpec { path: self.disk(), size_bytes: Some(8 << 20) }
    }

    /// Makes noise of a byte.
    fn spoil(&self, offset: u64) {
        let file = OpenOptions::new().read(true).write(true).open(self.disk()).expect("the disk");
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).expect("a byte");
        file.write_all_at(&[byte[0] ^ 0x40], offset).expect("a byte");
    }

    fn fsck(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
        command.arg("fsck").args(arguments).current_dir(&self.dir);
        command.env_remove("BRICKWORK_CONFIG").output().expect("the binary runs")
    }
}

impl Drop for Brick {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).expect("the directory goes");
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ends by itself")
}

fn text(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn finds_repairs_and_says_so() {
    let brick = Brick::new("repair");
    for arguments in [["--config", "brick.toml"].as_slice(), &["disk"]] {
        let output = brick.fsck(arguments);
        assert_eq!(code(&output), 0, "{output:?}");
        assert!(text(&output).contains("clean. Disk 0 of brick-3"), "{output:?}");
    }
    brick.spoil(20);
    brick.spoil(4096);
    let output = brick.fsck(&["disk"]);
    assert_eq!(code(&output), 4, "{output:?}");
    assert!(text(&output).contains("byte 0: the superblock is damaged (can be repaired)"), "{output:?}");
    assert!(text(&output).contains("brickwork fsck --repair"), "{output:?}");
    let output = brick.fsck(&["disk", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (code(&output), &found["code"], &found["disks"][0]["outcome"]),
        (4, &4.into(), &"damaged".into())
    );
    assert_eq!(found["disks"][0]["findings"][0]["kind"], "superblock");
    // The only journal header cannot be made up.
    let output = brick.fsck(&["disk", "--repair"]);
    assert_eq!(code(&output), 4, "{output:?}");
    assert!(text(&output).contains("cannot be repaired here"), "{output:?}");
    brick.spoil(4096);
    brick.spoil((8 << 20) - 4000);
    let output = brick.fsck(&["disk", "--repair"]);
    assert_eq!(code(&output), 1, "{output:?}");
    assert_eq!(code(&brick.fsck(&["disk"])), 0);
}

#[test]
fn refuses_what_it_must_not_touch() {
    let brick = Brick::new("refuse");
    let held = DiskFile::open(&brick.spec()).expect("the disk");
    let output = brick.fsck(&["--config", "brick.toml", "--repair"]);
    assert_eq!(code(&output), 8, "{output:?}");
    assert!(text(&output).contains("is in use"), "{output:?}");
    drop(held);
    let empty = brick.dir.join("empty");
    File::create(&empty).and_then(|file| file.set_len(1 << 20)).expect("a file");
    let output = brick.fsck(&["disk", "empty"]);
    assert_eq!(code(&output), 8, "one of them could not be checked: {output:?}");
    assert!(text(&output).contains("no Brickwork superblock"), "{output:?}");
    replace(&brick.dir.join("brick.toml"), "id = 3", "id = 4");
    let output = brick.fsck(&["--config", "brick.toml", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((code(&output), &found["disks"][0]["outcome"]), (8, &"not-checked".into()));
    assert_eq!(code(&brick.fsck(&[])), 1, "which disks?");
}

#[test]
fn repairs_though_nobody_reads_what_it_says() {
    let brick = Brick::new("unread");
    brick.spoil(20);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(["fsck", "disk", "--repair"]).current_dir(&brick.dir).env_remove("BRICKWORK_CONFIG");
    let status = command.stdout(writer).status().expect("the binary runs");
    assert_eq!(status.code(), Some(1), "repaired, and it says so by its code");
    assert_eq!(code(&brick.fsck(&["disk"])), 0);
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("the configuration");
    std::fs::write(path, text.replace(from, to)).expect("the configuration");
}
