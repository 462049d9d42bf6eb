//! A cluster of real processes, and the verbs that operators use on it.

// Each test file is a program of its own, and none uses all of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

use rig::cluster::{Cluster, Spec, Storage};
use rig::nbd::{Nbd, command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_brickwork");

/// A cluster and the directory in which it lives.
pub struct Site {
    pub cluster: Cluster,
    pub dir: tempfile::TempDir,
}

impl Site {
    /// Starts so many bricks and a gateway.
    pub fn start(bricks: u32) -> Site {
        Site::start_as(bricks, Spec::default())
    }

    /// The same, where all speak TLS, also NBD clients, and daemons tell their metrics.
    pub fn secure(bricks: u32) -> Site {
        Site::start_as(bricks, Spec { tls: true, nbd_tls: true, metrics: true, ..Spec::default() })
    }

    /// The same, where daemons speak TLS and tell their metrics, and NBD is plain.
    pub fn measured(bricks: u32) -> Site {
        Site::start_as(bricks, Spec { tls: true, metrics: true, ..Spec::default() })
    }

    fn start_as(bricks: u32, spec: Spec) -> Site {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let spec = Spec {
            folder: Some(dir.path().to_owned()),
            bricks: bricks as usize,
            storage: Storage {
                disk_bytes: 128 << 20,
                journal_bytes: 16 << 20,
                cache_bytes: 4 << 20,
                ..spec.storage
            },
            ..spec
        };
        let cluster = Cluster::start(Path::new(BINARY), &spec).expect("the cluster starts");
        Site { cluster, dir }
    }

    /// Runs `brickwork ARGUMENTS` as an operator of this cluster.
    pub fn run(&self, arguments: &str) -> Output {
        let mut command = std::process::Command::new(BINARY);
        command.args(arguments.split_whitespace()).current_dir(std::env::temp_dir());
        command.env("BRICKWORK_CONFIG", self.dir.path().join("admin/client.toml"));
        command.output().expect("the binary runs")
    }

    /// What it prints, when it ends with 0.
    pub fn text(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "brickwork {arguments}: {said}{}", text(&output.stdout));
        text(&output.stdout)
    }

    /// What it complains of, when it ends with 1.
    pub fn refusal(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "brickwork {arguments}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    /// The JSON value that it prints with `--json`, and its exit code.
    pub fn json(&self, arguments: &str) -> (Value, i32) {
        let output = self.run(&format!("{arguments} --json"));
        let value = serde_json::from_slice(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        let value = value.unwrap_or_else(|error| panic!("brickwork {arguments} --json: {error}: {said}"));
        (value, output.status.code().unwrap_or(-1))
    }

    /// A brick as `brick list` has it.
    pub fn brick(&self, id: u64) -> Value {
        let (bricks, _) = self.json("brick list");
        let bricks = bricks.as_array().expect("an array").iter();
        bricks.clone().find(|brick| brick["id"] == id).expect("the brick is listed").clone()
    }

    /// Opens an export of the gateway.
    pub fn open(&self, export: &str) -> Client {
        let nbd = Nbd::open(&self.cluster.endpoint(0), export).expect("the export opens");
        Client { size: nbd.size, nbd }
    }

    /// Where a brick keeps its disk.
    pub fn disk(&self, brick: u64) -> PathBuf {
        self.dir.path().join(format!("brick-{brick}/disk"))
    }
}

/// An NBD client with one request at a time.
pub struct Client {
    nbd: Nbd,
    pub size: u64,
}

impl Client {
    /// Writes; the errno of the answer, 0 for none.
    pub fn write(&mut self, offset: u64, content: &[u8]) -> u32 {
        self.nbd.send_write(1, offset, content).expect("the request is sent");
        self.nbd.reply().expect("it is answered").error
    }

    /// Reads; the errno instead if there is one.
    pub fn read(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, u32> {
        match self.nbd.ask(command::READ, offset, length as u32).expect("it is answered") {
            0 => Ok(self.nbd.payload(length).expect("the payload follows")),
            error => Err(error),
        }
    }
}

/// Content that tells its place and its writer.
pub fn content(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64 / 8).flat_map(|at| (at ^ (seed << 40) ^ 0x5eed_0000_0000_0000).to_le_bytes()).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
