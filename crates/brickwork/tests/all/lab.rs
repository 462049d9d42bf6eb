//! The laboratory as its users meet it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const OWN: &str = "title = \"t\"\n[workload]\nkind = \"closed\"\noutstanding = 4\n[length]\nwarm_up = 10\nrequests = 200\n\
                   [vary]\n\"cluster.policy\" = [\"claim\", \"hash\"]\n";

fn lab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.arg("lab").args(arguments).current_dir(folder).env_remove("COLUMNS");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

#[test]
fn the_list_names_every_experiment_in_80_columns() {
    let folder = tempfile::tempdir().unwrap();
    let out = text(&lab(folder.path(), &["list"]).stdout);
    for id in ["dsptf.fig1", "dsptf.table1", "dsptf.text"] {
        assert!(out.contains(id), "{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let out = text(&lab(folder.path(), &["list", "dsptf.table1"]).stdout);
    assert!(out.contains("write_release = half"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
}

#[test]
fn what_cannot_be_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), OWN.replace("\"hash\"", "\"luck\"")).unwrap();
    for (arguments, expected) in [
        (vec!["run", "dsptf.table2"], "no experiment is named 'dsptf.table2'"),
        (vec!["run", "table1"], "did you mean 'dsptf.table1'?"),
        (vec!["run", "mine.toml"], "mine.toml:9: cluster.policy: 'luck' is not one of claim"),
        (vec!["run", "none.toml"], "cannot read none.toml"),
        (vec!["run", "dsptf.fig1", "--set", "drive=x"], "--set drive=x: x is not one of quantum-atlas-10k"),
        (vec!["run", "dsptf.fig1", "--set", "speed=1"], "d-sptf has no assumption `speed`"),
        (vec!["run", "dsptf.fig1", "--measured"], "--measured: dsptf.fig1 plans nothing"),
        (vec!["run", "dsptf.table1", "--live", "--measured"], "--measured is for the simulator alone"),
        (vec!["run", "dsptf.fig1", "--full"], "--full: dsptf.fig1 runs no slices of a trace"),
        (
            vec!["run", "dsptf.fig1", "--trace", "sap=x"],
            "--trace sap=x: d-sptf has no trace for which a file",
        ),
        (vec!["run", "retrieval", "--trace", "mail=x"], "`mail`; it has exchange, tpc-c, tpc-e"),
        (
            vec!["run", "retrieval.fig12", "--trace", "exchange=none"],
            "--trace exchange=none: cannot read none",
        ),
        (vec!["run", "retrieval.fig12", "--trace", "exchange=mine.toml"], "mine.toml"),
        (vec!["run", "dsptf.table1", "--live", "--full"], "--full is for the simulator alone"),
        (
            vec!["run", "dsptf.table1", "--live", "--set", "read_share=0.5"],
            "--set read_share is for the simulator alone; --live has drive, drive_parts",
        ),
    ] {
        let out = lab(folder.path(), &arguments);
        let said = text(&out.stderr);
        assert!(out.status.code() == Some(1) && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn recorded_files_stand_in_for_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let etw = "BeginHeader\nEndHeader\nDiskRead, 10, p, 1, 0x1, 0x0, 0x2000, 5, 0, 0x0\n\
               DiskRead, 2000, p, 1, 0x1, 0x0, 0x2000, 5, 0, 0x0\n";
    std::fs::create_dir(folder.path().join("mail")).unwrap();
    for name in ["1.csv", "2.csv", "3.csv"] {
        std::fs::write(folder.path().join("mail").join(name), etw).unwrap();
    }
    for flags in [vec![], vec!["--full"]] {
        let mut arguments = vec!["run", "retrieval.fig12", "--trace", "exchange=mail", "--json"];
        arguments.extend(flags);
        let out = lab(folder.path(), &arguments);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let json: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(json["rows"].as_array().unwrap().len(), 3);
        assert_eq!((&json["rows"][2]["requests"], &json["rows"][2]["size"]), (&2.0.into(), &2.0.into()));
        assert!(json["notes"].to_string().contains("Recorded files were read"), "{}", json["notes"]);
    }
}

#[test]
fn results_repeat_and_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), OWN).unwrap();
    let run = |jobs: &str| {
        let arguments =
            ["run", "mine.toml", "--json", "--jobs", jobs, "--seeds", "2", "--plot", "--out", "out"];
        let out = lab(folder.path(), &arguments);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let mut value: Value = serde_json::from_slice(&out.stdout).unwrap();
        value["wall_s"] = Value::Null;
        value
    };
    let first = run("1");
    assert_eq!(first["rows"].as_array().unwrap().len(), 2);
    assert!(first["rows"][0]["response_ms"].as_f64().unwrap() > 0.0);
    let kept = || std::fs::read_dir(folder.path().join("out/points")).unwrap().count();
    assert_eq!(kept(), 4);
    assert_eq!(first, run("2"));
    assert_eq!(kept(), 4);
    for file in
        ["mine.json", "mine.csv", "mine.response_ms.svg", "mine.response_ms.png", "mine.response_ms.data.csv"]
    {
        assert!(folder.path().join("out").join(file).metadata().is_ok_and(|file| file.len() > 0), "{file}");
    }
}

#[test]
fn the_report_needs_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.toml"), OWN).unwrap();
    let out = lab(folder.path(), &["report", "mine.toml", "--no-sensitivity", "--out", "r.html"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("brickwork lab report mine.toml --seed 1 --no-sensitivity")
    );
    for outside in ["src=", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "the page asks for something outside: {outside}");
    }
}

/// An open loop of many sizes through two gateways, and a recorded trace that is over after half a second.
#[test]
fn open_loops_and_traces_run_on_daemons_beside_their_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("costs.toml", COSTS);
    let open = "kind = \"open\"\nper_second = 200\narrivals = { kind = \"bursts\" }\n\
                mix = { reads = 0.5, mean_bytes = 6000, hot_share = 0.5, hot_space = 0.1 }";
    write("open.toml", &live("bursts", open));
    write("trace.toml", &live("trace", "kind = \"trace\"\nfile = \"trace.csv\""));
    let requests = (0..50u64).map(|at| {
        let (sector, operation) = (at * 1_000_003, if at % 2 == 0 { "r" } else { "w" });
        format!("{},0,{sector},9,{operation},\n", at * 10_000_000)
    });
    write(
        "trace.csv",
        &format!("at_ns,device,sector,count,op,response_ns\n{}", requests.collect::<String>()),
    );
    let out = lab(folder.path(), &["run", "open.toml", "trace.toml", "--live", "--quick", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let outcome: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = outcome["rows"].as_array().unwrap();
    let worlds: Vec<_> = rows.iter().map(|row| (row["what"].as_str(), row["world"].as_str())).collect();
    let both = |what| [(Some(what), Some("live")), (Some(what), Some("predicted"))];
    assert_eq!(worlds, [both("bursts"), both("trace")].concat());
    assert!(rows.iter().all(|row| row["p99_ms"].as_f64() > Some(0.0)), "{rows:?}");
    let notes = outcome["notes"].to_string();
    for note in [
        "bursts: Requests are for all blocks",
        "trace: Requests are for all blocks",
        "beyond the cluster's end",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
}

/// What work costs some machine: nothing is asserted of how long anything takes.
const COSTS: &str = "processors = 2\nreference_us = 70\nsleep_ns = 3000\nturn_ns = 4000\nwake_ns = 4000\npacket_ns = 2000\n\
                     kibibyte_ns = 200\nrequest_ns = 4000\nclient_ns = 8000\nread_ns = 4000\nwrite_ns = 10000\nbatch_ns = 10000\n\
                     rouse_ns = 10000\nwritten_ns = 200\ncoded_ns = 50\n";

fn live(title: &str, workload: &str) -> String {
    format!(
        "title = \"{title}\"\n[workload]\n{workload}\n[cluster]\nbricks = 2\nreplicas = 2\npolicy = \"usual\"\ngateways = 2\n\
         one_way_us = 0\n[brick]\ndisk = \"ram-disk\"\ndepth = 64\ndata_bytes = 16777216\n[processors]\ncosts = \"costs.toml\"\n"
    )
}

#[test]
fn a_live_run_that_is_interrupted_leaves_nothing_behind() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(["lab", "run", "dsptf.table1", "--live", "--quick"]).stderr(Stdio::null());
    let mut run = command.spawn().expect("the binary runs");
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let files = place.join(format!("brickwork-live-{}", run.id()));
    let end = Instant::now() + Duration::from_secs(120);
    while !files.join("cluster/pids/brick-1").exists() {
        assert!(
            run.try_wait().expect("it is there").is_none() && Instant::now() < end,
            "no brick is started"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let signalled = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(signalled.expect("kill runs").success());
    assert_eq!(run.wait().expect("it ends").code(), Some(130));
    assert!(!files.exists(), "{} is left", files.display());
}
