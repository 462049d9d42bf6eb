//! `brickwork trace` as its users meet it: generated, converted, looked at; what is wrong with a trace is said, and leaves no file.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn brickwork(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(arguments.split_whitespace()).current_dir(folder).output().expect("the binary runs")
}

#[track_caller]
fn done(folder: &Path, arguments: &str) -> String {
    let output = brickwork(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn refused(folder: &Path, arguments: &str, says: &[&str]) {
    let output = brickwork(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments}: {text}");
    assert!(says.iter().all(|word| text.contains(word)), "{arguments}: {text}");
}

#[test]
fn a_generated_trace_is_the_same_in_every_format_and_compression() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, "trace generate sap a.csv.zst --requests 3000 --seed 5");
    done(folder, "trace convert a.csv.zst b.spc.gz --to spc");
    done(folder, "trace convert b.spc.gz c.dis.xz --to disksim");
    done(folder, "trace convert c.dis.xz d.csv");
    done(folder, "trace generate sap e.csv --requests 3000 --seed 5");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(text("d.csv"), text("e.csv"));
    let summary: Value = serde_json::from_str(&done(folder, "trace info b.spc.gz --json")).unwrap();
    assert_eq!((&summary["requests"], &summary["format"]), (&3000.into(), &"spc".into()));
    let shown = done(folder, "trace info a.csv.zst");
    assert!(shown.contains("3000") && shown.contains("never before"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    refused(folder, "trace generate sap e.csv", &["e.csv", "exists", "--force"]);
}

#[test]
fn a_bad_trace_is_named_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("bad.spc"), "0,1,512,r,1.0\n0,2,512,r,0.5\n").unwrap();
    refused(
        folder,
        "trace convert bad.spc out.csv",
        &["bad.spc, line 2", "`timestamp`", "--sort", "--clamp"],
    );
    refused(folder, "trace info bad.spc", &["bad.spc, line 2"]);
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["bad.spc"]);
    done(folder, "trace convert bad.spc out.csv --sort");
    assert!(
        std::fs::read_to_string(folder.join("out.csv"))
            .unwrap()
            .ends_with("500000000,0,2,1,r,\n1000000000,0,1,1,r,\n")
    );
    // What was issued before the trace began is one matter, the order another.
    std::fs::write(folder.join("early.spc"), "0,1,512,r,1.0\n0,2,512,r,-0.5\n").unwrap();
    refused(folder, "trace info early.spc --sort", &["early.spc, line 2", "`timestamp`", "--allow-negative"]);
    done(folder, "trace convert early.spc early.csv --sort --allow-negative");
    let early = std::fs::read_to_string(folder.join("early.csv")).unwrap();
    assert!(early.ends_with("\n0,0,2,1,r,\n1000000000,0,1,1,r,\n"), "{early}");
    refused(folder, "trace info absent.spc", &["absent.spc"]);
    refused(folder, "trace generate absent x.csv", &["absent", "sap, cello2002, websearch, financial"]);
}

#[test]
fn a_reader_that_has_gone_ends_a_trace_without_a_word() {
    // Few requests are written at the end, many on the way.
    for requests in ["10", "100000"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
        command.args(["trace", "generate", "sap", "-", "--requests", requests]);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{requests} requests");
    }
}

#[test]
fn a_description_that_is_shown_is_one_to_begin_from() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shown = done(folder, "trace generate --show websearch");
    std::fs::write(folder.join("mine.toml"), shown.replace("read_share = 0.9", "read_share = 1.0")).unwrap();
    done(folder, "trace generate mine.toml mine.csv --requests 500");
    let summary: Value = serde_json::from_str(&done(folder, "trace info mine.csv --json")).unwrap();
    assert_eq!(summary["read_share"], 1.0);
    std::fs::write(folder.join("mine.toml"), shown.replace("read_share = 0.9", "read_share = 9")).unwrap();
    refused(folder, "trace generate mine.toml other.csv", &["mine.toml", "read_share is 9"]);
}
