//! `brickwork disk probe` as an operator meets it.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder on a real disk; gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("probe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, bytes: usize) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, vec![7; bytes]).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is the system's to clean up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn probe(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(["disk", "probe"]).args(arguments);
    command.env_remove("BRICKWORK_CONFIG").output().expect("the binary runs")
}

fn refusal(arguments: &[&str]) -> String {
    let output = probe(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_file_is_measured_and_left_as_it_was() {
    let folder = Folder::new("file");
    let file = folder.file("disk", 5 << 20);
    let path = file.to_str().expect("a path");
    let writes = folder.0.join("writes");
    let output =
        probe(&[path, "--json", "--seconds", "0.1", "--write-file", writes.to_str().expect("a path")]);
    assert!(output.status.success(), "{output:?}");
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["reads"].as_array().expect("cells").len(), 10);
    assert!(value["reads"].as_array().expect("cells").iter().all(|cell| cell["requests"].as_u64() > Some(0)));
    assert!(value["durable_writes"]["requests"].as_u64() > Some(0));
    assert!(value["toml"].as_str().expect("a model").contains("capacity_sectors = 10240\n"), "{value}");
    assert!(!writes.exists(), "the file of the writes is removed");
    assert!(std::fs::read(&file).expect("the file").iter().all(|&byte| byte == 7));
    let text = probe(&[path, "--seconds", "0.1"]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.starts_with("# Measured by") && text.contains("durable writes were not measured"), "{text}");
}

#[test]
fn what_cannot_be_measured_is_named() {
    let folder = Folder::new("bad");
    let small = folder.file("small", 4096);
    let small = small.to_str().expect("a path");
    assert!(refusal(&[small]).contains("has 4096 bytes"));
    let full = folder.file("full", 4 << 20);
    let full = full.to_str().expect("a path");
    assert!(refusal(&[full, "--seconds", "0.1", "--write-file", small]).contains("is not overwritten"));
    assert!(
        refusal(&[folder.0.to_str().expect("a path")]).contains("neither a block device nor a regular file")
    );
    assert!(refusal(&["/no/such/file"]).contains("cannot probe '/no/such/file'"));
    assert!(refusal(&[full, "--seconds", "0"]).contains("--seconds is 0"));
}
