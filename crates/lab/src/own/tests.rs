//! Mistakes in files, their combinations, the example of the documents, the same bytes on any number of cores.

use super::*;
use crate::runner::Runner;

const TEXT: &str = "title = \"Replicas\"

[workload]
kind = \"closed\"
outstanding = 4
mix.reads = 0.9

[cluster]
bricks = 2
replicas = 2

[length]
warm_up = 10
requests = 100

[vary]
\"cluster.policy\" = [\"claim\", \"hash\"]
\"workload.outstanding\" = [2, 8]
";

fn error(text: &str) -> String {
    parse(Path::new("mine.toml"), text).err().expect("a mistake").to_string()
}

#[test]
fn all_combinations_are_run_in_the_order_of_the_file() {
    let own = parse(Path::new("mine.toml"), TEXT).unwrap();
    let points = own.points(&own.parameters(), Scale::Full).unwrap();
    let labels: Vec<String> = points.iter().map(|point| format!("{:?}", point.labels)).collect();
    assert_eq!(labels.len(), 4);
    assert!(labels[1].contains("claim") && labels[1].contains("8.0"), "{labels:?}");
    let runner = Runner { jobs: 2, kept_in: None, build: String::new(), on_point: &|| () };
    let samples = runner.run("mine", &points, &[1]).unwrap();
    assert!(samples[0].iter().all(|sample| sample.value("throughput_iops") > 10.0));
}

#[test]
fn mistakes_name_file_line_and_field() {
    let cases = [
        ("reads = 0.9", "reads = 1.5", "mine.toml:6: workload.mix.reads: 1.5 is not between 0 and 1"),
        (
            "[\"claim\", \"hash\"]",
            "[\"claim\", \"luck\"]",
            "mine.toml:17: cluster.policy: 'luck' is not one of",
        ),
        ("[2, 8]", "[]", "mine.toml:18: workload.outstanding: give a list"),
        ("outstanding = 4", "outstanding = \"x\"", "mine.toml:5: "),
        ("outstanding = 4", "per_second = 4", "mine.toml:5: workload.per_second: belongs to kind = \"open\""),
        ("kind = \"closed\"", "kind = \"close\"", "mine.toml:4: workload.kind: 'close' is not closed"),
        ("replicas = 2", "replica = 2", "mine.toml:10: "),
        ("bricks = 2", "bricks = 1", "mine.toml:8: cluster: "),
        ("[2, 8]", "[2, true]", "mine.toml:18: workload.outstanding: with "),
        ("[length]", "[brick]\ndisk = \"x\"\n[length]", "mine.toml:13: brick.disk: no drive is named 'x'"),
        (
            "[length]",
            "[show]\nfigures = [\"speed\"]\n[length]",
            "mine.toml:13: show.figures: 'speed' is no figure",
        ),
        (
            "[length]",
            "[[slow]]\nbrick = 7\npercent = 200\n[length]",
            "mine.toml:13: slow.0.brick: there is no brick 7",
        ),
    ];
    for (right, wrong, expected) in cases {
        let message = error(&TEXT.replacen(right, wrong, 1));
        assert!(message.starts_with(expected), "{message}\n  instead of {expected}");
    }
}

const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab");

#[test]
fn the_example_of_the_documents_is_right_and_every_figure_is_explained() {
    let own = read(&Path::new(DOCUMENTS).join("own.toml")).unwrap();
    assert_eq!(own.points(&own.parameters(), Scale::Quick).unwrap().len(), 16);
    let text = std::fs::read_to_string(Path::new(DOCUMENTS).join("README.md")).unwrap();
    for (figure, _) in FIGURES {
        assert!(text.contains(&format!("| `{figure}` |")), "docs/lab/README.md does not explain {figure}");
    }
}

#[test]
fn one_core_and_many_print_the_same_bytes() {
    let own = parse(Path::new("mine.toml"), TEXT).unwrap();
    let options = crate::outcome::Options { seed: 3, seeds: 2, scale: Scale::Full, sensitivity: true };
    let print = |jobs| {
        let runner = Runner { jobs, kept_in: None, build: String::new(), on_point: &|| () };
        let mut outcome = crate::outcome::run(&own, &own.parameters(), &options, &runner).unwrap();
        outcome.wall_s = 0.0;
        serde_json::to_string(&outcome).unwrap()
    };
    let one = print(1);
    assert_eq!(one, print(4));
    assert!(one.contains("throughput_iops_ci95"), "{one}");
}

#[test]
fn a_trace_that_is_broken_in_the_middle_is_an_error_of_its_point() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.spc"), "0,100,4096,R,0.1\n0,200,4096,W,0.2\n0,x,4096,W,0.3\n")
        .unwrap();
    let text = "title = \"t\"\n[workload]\nkind = \"trace\"\nfile = \"t.spc\"\nformat = \"spc\"\n[length]\nwarm_up = 0\n";
    let own = parse(&folder.path().join("t.toml"), text).unwrap();
    let points = own.points(&own.parameters(), Scale::Full).unwrap();
    let runner = Runner { jobs: 1, kept_in: None, build: String::new(), on_point: &|| () };
    let error = runner.run("t", &points, &[1]).unwrap_err().to_string();
    assert!(error.contains("t.spc") && error.contains("line 3"), "{error}");
}
