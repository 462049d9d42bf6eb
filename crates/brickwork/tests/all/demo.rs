//! The demo when something goes wrong with it.

use crate::common::BINARY;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Far above what the demo takes to notice; only a failure waits for so long.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_demo_in_which_nothing_moves_ends_with_an_error() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let mut command = Command::new(BINARY);
    command.args(["demo", "--bricks", "5", "--volume-size", "64MiB", "--patience", "2s", "--dir"]);
    command.arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = command.spawn().expect("the binary runs");
    let said = BufReader::new(demo.stdout.take().expect("a pipe"));
    let is_created = said.lines().any(|line| line.is_ok_and(|line| line.contains("Created")));
    assert!(is_created, "the demo makes its volumes");
    let pid = std::fs::read_to_string(dir.path().join("pids/gateway-1")).expect("the gateway runs");
    let pid = pid.split(' ').next().expect("its number");
    let stopped = Command::new("kill").args(["-STOP", pid]).status().expect("kill runs");
    assert!(stopped.success());
    let stopped = Instant::now();
    let code = loop {
        if let Some(status) = demo.try_wait().expect("it is there") {
            break status.code();
        }
        assert!(stopped.elapsed() < LIMIT, "the demo goes on although nothing moves");
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut complaint = String::new();
    demo.stderr.take().expect("a pipe").read_to_string(&mut complaint).expect("text");
    assert!(code == Some(1) && complaint.contains("nothing was answered for 2 s"), "{code:?}: {complaint}");
}
