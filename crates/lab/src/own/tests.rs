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

/// All that the text says of its workload.
const CLOSED: &str = "kind = \"closed\"\noutstanding = 4\nmix.reads = 0.9";

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
    let runner = Runner { jobs: 2, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
    let samples = runner.run("mine", &points, &[1]).unwrap();
    assert!(samples[0].iter().all(|sample| sample.value("throughput_iops") > 10.0));
}

/// What is said of a run of this text, and what its table has for this figure.
fn notes_and_figure(text: &str, figure: &str) -> (String, String) {
    let own = parse(Path::new("mine.toml"), text).expect("it makes sense");
    let options = crate::outcome::Options { seed: 1, seeds: 2, scale: Scale::Full, sensitivity: false };
    let runner = Runner { jobs: 2, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
    let outcome = crate::outcome::run(&own, &own.parameters(), &options, &runner).expect("it runs");
    let shown = outcome.rows[0].get(figure).map_or(String::new(), Cell::text);
    (outcome.notes.join("\n"), shown)
}

#[test]
fn what_a_table_does_not_show_is_said_beside_it() {
    let plain = "title = \"t\"\n[workload]\nkind = \"open\"\nper_second = PER_SECOND\n[length]\nwarm_up = 10\nrequests = 500\n\
                 [show]\nfigures = [\"write_response_p99_ms\"]\n";
    let (notes, writes) = notes_and_figure(&plain.replace("PER_SECOND", "3000"), "write_response_p99_ms");
    assert!(notes.contains("3000 requests a second were offered") && notes.contains("answered"), "{notes}");
    assert!(notes.contains("Processors take no time") && notes.contains("Journals take no time"), "{notes}");
    assert_eq!(writes, "none", "reads alone have no slowest write");
    let served = plain.replace("PER_SECOND", "20").replace("[show]", "[cluster]\nbricks = 5\n[show]");
    let (notes, _) = notes_and_figure(&served, "write_response_p99_ms");
    assert!(!notes.contains("offered") && notes.contains("2 of them are in none"), "{notes}");
}

#[test]
fn a_layout_without_its_number_of_bricks_names_the_field() {
    let parity = TEXT.replace("bricks = 2\nreplicas = 2", "bricks = 5\nlayout = \"raid5-4+1\"");
    let said = error(&parity);
    assert!(said.contains("cluster.replicas") && said.contains("say replicas = 5"), "{said}");
}

#[test]
fn without_a_journal_a_write_takes_as_long_as_its_disk() {
    let text = with_workload("kind = \"closed\"\noutstanding = 1\nmix.reads = 0").replacen(
        "\"cluster.policy\" = [\"claim\", \"hash\"]",
        "\"brick.journal_bytes\" = [0, 1048576]",
        1,
    );
    let own = parse(Path::new("mine.toml"), &text).expect("it makes sense");
    let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
    let runner = Runner { jobs: 2, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
    let samples = runner.run("mine", &points, &[1]).expect("it runs");
    let response_ms: Vec<f64> = samples[0].iter().map(|sample| sample.value("response_ms")).collect();
    // A seek and half a turn of the Atlas 10K, at both replicas at once; and a journal's answer.
    assert!((8.0..14.0).contains(&response_ms[0]) && response_ms[1] < 1.0, "{response_ms:?}");
}

#[test]
fn postmark_runs_with_threads_of_every_form() {
    for threads in [
        "{ count = 4 }",
        "{ count = 4, form = \"on-off\", period_s = 1 }",
        "{ count = 4, form = \"sine\", period_s = 2 }",
    ] {
        let workload = format!("kind = \"postmark\"\nthreads = {threads}\npostmark.files = 50");
        let text = with_workload(&workload).replacen("requests = 100", "seconds = 3", 1);
        let own = parse(Path::new("mine.toml"), &text).expect("it makes sense");
        let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
        let runner =
            Runner { jobs: 2, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
        let samples = runner.run("mine", &points, &[1]).expect("it runs");
        let all = samples[0].iter().map(|sample| sample.value("requests_per_second"));
        assert!(all.into_iter().all(|requests| requests > 10.0), "{threads}");
    }
}

/// The text with this workload, of which nothing is varied.
fn with_workload(workload: &str) -> String {
    TEXT.replacen(CLOSED, workload, 1).replacen("\"workload.outstanding\" = [2, 8]\n", "", 1)
}

#[test]
fn mistakes_of_threads_and_files_name_their_field() {
    let cases = [
        ("kind = \"postmark\"", "mine.toml:3: workload.threads: is missing"),
        ("kind = \"postmark\"\nthreads.count = 0", "mine.toml:5: workload.threads.count: 0 is not between"),
        (
            "kind = \"threads\"\nthreads = { count = 4, form = \"square\" }",
            "mine.toml:5: workload.threads.form: 'square' is not constant",
        ),
        (
            "kind = \"postmark\"\nthreads.count = 4\nthreads.least = 2",
            "mine.toml:6: workload.threads.least: belongs to form = \"sine\"",
        ),
        (
            "kind = \"postmark\"\nthreads.count = 4\nthreads.form = \"on-off\"",
            "mine.toml:3: workload.threads.period_s: is missing",
        ),
        (
            "kind = \"postmark\"\nthreads = { count = 4, form = \"sine\", period_s = 9 }",
            "mine.toml:11: length.seconds: is missing",
        ),
        (
            "kind = \"threads\"\nthreads.count = 4\npostmark.files = 3",
            "mine.toml:3: workload.postmark: belongs to kind = \"postmark\"",
        ),
        (
            "kind = \"postmark\"\nthreads.count = 4\npostmark.bytes_most = 9",
            "mine.toml:3: workload.postmark.bytes_least: sizes go from",
        ),
        (
            "kind = \"postmark\"\nthreads.count = 4\npostmark.files = 4000000000",
            "mine.toml:6: workload.postmark.files: 4000000000 files need room for",
        ),
        (
            "kind = \"postmark\"\nthreads.count = 4\npostmark.reads = 2",
            "mine.toml:6: workload.postmark.reads: 2 is not between",
        ),
    ];
    for (workload, expected) in cases {
        let message = error(&with_workload(workload));
        assert!(message.starts_with(expected), "{message}\n  instead of {expected}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of mistakes")]
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
        ("bricks = 2", "bricks = 1", "mine.toml:10: cluster.replicas: give 1 to 1"),
        ("replicas = 2", "replicas = 0", "mine.toml:10: cluster.replicas: give 1 to 2"),
        (
            "replicas = 2",
            "replicas = 2\nmegabytes_per_second = -1",
            "mine.toml:11: cluster.megabytes_per_second: -1 is not between",
        ),
        (
            "replicas = 2",
            "replicas = 2\nports = true",
            "mine.toml:11: cluster.ports: needs megabytes_per_second",
        ),
        (
            "replicas = 2",
            "replicas = 2\nio_megabytes_per_second = 0",
            "mine.toml:11: cluster.io_megabytes_per_second: 0 is not between",
        ),
        (
            "replicas = 2",
            "replicas = 2\nmegabytes_per_second = nan",
            "mine.toml:11: cluster.megabytes_per_second: NaN is not between",
        ),
        (
            "[\"claim\", \"hash\"]",
            "[\"weighted-hash\"]\n\"cluster.weights\" = [[1, -1]]",
            "mine.toml:18: cluster.weights: -1 is not between",
        ),
        ("[length]", "[brick]\ndepth = 0\n[length]", "mine.toml:13: brick.depth: "),
        ("[length]", "[brick]\ndepth = 2\n[length]", "mine.toml:13: brick.depth: a disk that turns takes 1"),
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
        (
            "[length]",
            "[[slow]]\nbrick = 1\npercent = 0\n[length]",
            "mine.toml:14: slow.0.percent: 0 is not between",
        ),
        (
            "[length]",
            "[[slow]]\nbrick = 1\npercent = 200\nfrom_s = -1\n[length]",
            "mine.toml:15: slow.0.from_s: -1 is not between",
        ),
        (
            "[length]",
            "[[slow]]\nbrick = 1\npercent = 200\nfrom_s = 9\nuntil_s = 8\n[length]",
            "mine.toml:16: slow.0.until_s: 8 is not between 9",
        ),
        (
            "[length]",
            "[[slow]]\nbrick = 1\npercent = 200\nuntil_s = 8\n[[slow]]\nbrick = 1\npercent = 300\nfrom_s = 7\n[length]",
            "mine.toml:19: slow.1.from_s: brick 1 is already slow",
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
        let runner = Runner { jobs, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
        let mut outcome = crate::outcome::run(&own, &own.parameters(), &options, &runner).unwrap();
        outcome.effort.wall_s = 0.0;
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
    let runner = Runner { jobs: 1, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
    let error = runner.run("t", &points, &[1]).unwrap_err().to_string();
    assert!(error.contains("t.spc") && error.contains("line 3"), "{error}");
}

const FLASH: &str = "name = \"flash\"\ncapacity_sectors = 100000\n[access]\nread_ms = 0.1\nwrite_ms = 0.1\n";

/// What comes out of an experiment whose folder has these files.
fn outcome(files: &[(&str, &str)], text: &str) -> Result<crate::outcome::Outcome, LabError> {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, content)| std::fs::write(folder.path().join(name), content).unwrap());
    let own = parse(&folder.path().join("t.toml"), text)?;
    let options = crate::outcome::Options { seed: 1, seeds: 2, scale: Scale::Full, sensitivity: false };
    let runner = Runner { jobs: 1, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
    crate::outcome::run(&own, &own.parameters(), &options, &runner)
}

/// Where nothing turns, idle holders do not all begin at once, as they do not on bricks.
#[test]
fn flash_bricks_that_claim_read_once() {
    let text = "title = \"t\"\n[workload]\nkind = \"open\"\nper_second = 3000\n[brick]\ndisk = \"flash.toml\"\n\
                [length]\nrequests = 2000\n[show]\nfigures = [\"device_reads_per_read\"]\n";
    let outcome = outcome(&[("flash.toml", FLASH)], text).unwrap();
    let reads = outcome.rows[0].get("device_reads_per_read").unwrap().number().unwrap();
    assert!(reads <= 1.01, "{reads} device reads a read");
}

#[test]
fn what_is_odd_about_a_trace_is_noted_once_and_its_unit_can_be_said() {
    let trace = "0,100,4096,R,0.1\n0,200,4096,W,0.2\n0,99999,4096,W,0.15\n0,300,4096,W,1.1";
    let text = "title = \"t\"\n[workload]\nkind = \"trace\"\nfile = \"t.spc\"\nformat = \"spc\"\norder = \"sort\"\n\
                [length]\nwarm_up = 0\n[vary]\n\"brick.disk\" = [\"flash.toml\", \"large.toml\"]\n";
    let large = FLASH.replace("100000", "200000");
    let files = [("flash.toml", FLASH), ("large.toml", &large), ("t.spc", trace)];
    let run = outcome(&files, text).unwrap();
    let expected = [
        "Processors take no time",
        "Journals take no time",
        "no newline",
        "out of order",
        "brick.disk flash.toml: 25% of the requests lie beyond",
    ];
    assert_eq!(run.notes.len(), expected.len(), "{:?}", run.notes);
    for (note, expected) in run.notes.iter().zip(expected) {
        assert!(note.contains(expected), "{note}");
    }
    let mistake = text.replace("[length]", "time_unit = \"min\"\n[length]");
    let message = outcome(&files, &mistake).err().expect("no unit").to_string();
    assert!(message.contains("t.toml:7: workload.time_unit: 'min' is not s, ms, us or ns"), "{message}");
    let shorter = outcome(&files, &text.replace("[length]", "time_unit = \"ms\"\n[length]")).unwrap();
    assert!(
        shorter.effort.simulated_s * 100.0 < run.effort.simulated_s,
        "{} {}",
        shorter.effort.simulated_s,
        run.effort.simulated_s
    );
    let refused = outcome(&files, &text.replace("[length]", "beyond = \"refuse\"\n[length]"));
    let message = refused.err().expect("it lies beyond").to_string();
    assert!(
        message.contains("brick.disk flash.toml") && message.contains("beyond the cluster's end"),
        "{message}"
    );
}

const DRIVE: &str = "title = \"A trace on two drives\"

[workload]
kind = \"trace\"
file = \"FILE\"

[drive]
model = \"quantum-atlas-10k\"

[length]
warm_up = 0

[vary]
\"drive.model\" = [\"quantum-atlas-10k\", \"seagate-cheetah-9lp\"]
\"drive.scheduler\" = [\"fcfs\", \"sptf\"]

[show]
figures = [\"response_ms\", \"throughput_iops\"]
cdf = true
";

/// The text with a trace in a file beside it, of requests that come too fast for any order but the scheduler's.
fn on_drives(folder: &Path, header: &str, line: impl Fn(u64) -> String, more: &str) -> String {
    let mut text = format!("{header}\n");
    (0..400).for_each(|at| text += &format!("{}\n", line(at)));
    std::fs::write(folder.join("trace.csv"), text).expect("it is written");
    DRIVE.replacen("file = \"FILE\"", &format!("file = \"trace.csv\"\n{more}"), 1)
}

fn sector(at: u64) -> u64 {
    at * 7_919_993 % 17_000_000
}

#[test]
fn a_trace_runs_on_two_drives_under_two_schedulers() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u64| {
        format!(
            "{}.5,{},{},4096,{}",
            at * 3,
            if at.is_multiple_of(4) { "w" } else { "r" },
            sector(at) % 8_000_000 * 512,
            at % 2
        )
    };
    let text = on_drives(
        folder.path(),
        "time_ms,op,offset,size,device",
        line,
        "devices = [1, 0]\ndevice_bytes = 4096000000",
    );
    let own = parse(&folder.path().join("mine.toml"), &text).expect("it makes sense");
    let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
    let path = folder.path().join("requests.csv");
    let file = crate::requests::RequestsFile::create(&path, &points).expect("it can be written");
    let runner =
        Runner { jobs: 2, kept_in: None, build: String::new(), recorder: Some(&file), on_point: &|| () };
    let options = crate::outcome::Options { seed: 1, seeds: 1, scale: Scale::Full, sensitivity: true };
    let outcome = crate::outcome::run(&own, &own.parameters(), &options, &runner).expect("it runs");
    assert_eq!(file.finish().expect("it is written"), 4 * 400);
    let figure = |at: usize| outcome.rows[at].get("response_ms").and_then(Cell::number).expect("a number");
    assert!(figure(1) < figure(0) && figure(3) < figure(2), "{:?}", outcome.rows);
    let cdf = outcome.charts.iter().find(|chart| chart.name == "mine.cdf").expect("it was asked for");
    assert_eq!(cdf.series().len(), 4);
    assert_eq!(outcome.provenance.points.len(), 4);
    assert_eq!(outcome.provenance.description.as_deref(), Some(text.as_str()));
    let lines = std::fs::read_to_string(&path).expect("it is there");
    assert!(
        lines.lines().nth(1).expect("a request").starts_with("quantum-atlas-10k,fcfs,1,"),
        "{lines:.300}"
    );
    // Device 1 comes first, and device 0 behind its 4,096,000,000 bytes.
    let place = |line: &str| line.split(',').nth(8).expect("a column of sectors").parse().expect("a number");
    let places: Vec<u64> = lines.lines().skip(1).map(place).collect();
    for at in 0..400 {
        let begins = if at % 2 == 1 { 0 } else { 8_000_000 };
        assert!(places.contains(&(begins + sector(at) % 8_000_000)), "request {at}");
    }
}

#[test]
fn a_rate_counts_the_requests_of_devices_that_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u64| format!("r,{},8,{}", sector(at), at % 8);
    let text = on_drives(folder.path(), "op,sector,count,device", line, "rate = 50\ndevices = [3]");
    let own = parse(&folder.path().join("mine.toml"), &text).expect("it makes sense");
    let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
    let (sample, requests) = points[0].job.run_recorded(1).expect("it runs");
    assert_eq!(requests.len(), 50, "an eighth of them");
    let mut asked: Vec<u64> = requests.iter().map(|request| request.asked.0).collect();
    asked.sort_unstable();
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] == 20_000_000), "{asked:?}");
    assert!(sample.value("requests_per_second") > 45.0);
}

#[test]
fn a_trace_without_times_needs_a_rate_or_a_number_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u64| format!("r,{},8", sector(at));
    let parsed = |more: &str| {
        let text = on_drives(folder.path(), "op,sector,count", line, more);
        parse(&folder.path().join("mine.toml"), &text)
    };
    let refused = |more: &str| parsed(more).err().expect("a mistake").to_string();
    let message = refused("");
    assert!(
        message.contains("mine.toml:5: workload.file: ") && message.contains("has no times"),
        "{message}"
    );
    assert!(
        refused("rate = 50\noutstanding = 4").contains("workload.outstanding: stands beside workload.rate")
    );
    assert!(refused("rate = 50\nspeed_up = 4").contains("workload.speed_up: stands beside workload.rate"));
    assert!(refused("rate = 0").contains("workload.rate: 0 is not between"));
    assert!(refused("rate = 50\ndevices = []").contains("workload.devices: names none"));
    assert!(refused("rate = 50\ndevice_bytes = 5").contains("workload.device_bytes: give a multiple"));
    for more in ["rate = 50", "outstanding = 4"] {
        let own = parsed(more).expect("it makes sense");
        let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
        let runner =
            Runner { jobs: 2, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
        let samples = runner.run("mine", &points, &[1]).expect("it runs");
        let per_second = samples[0][0].value("requests_per_second");
        match more {
            "rate = 50" => assert!((45.0..55.0).contains(&per_second), "{per_second}"),
            _ => assert!(per_second > 80.0, "{per_second}"),
        }
    }
}

#[test]
fn what_measures_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        on_drives(folder.path(), "time_ms,op,sector,count", |at| format!("{at},r,{},8", sector(at)), "");
    let failed = |text: &str| {
        let own = parse(&folder.path().join("mine.toml"), text).expect("it makes sense");
        let points = own.points(&own.parameters(), Scale::Full).expect("it makes sense");
        let runner =
            Runner { jobs: 1, kept_in: None, build: String::new(), recorder: None, on_point: &|| () };
        runner.run("mine", &points, &[1]).unwrap_err().to_string()
    };
    for warm_up in [400, 401, 1000] {
        let message = failed(&text.replacen("warm_up = 0", &format!("warm_up = {warm_up}"), 1));
        assert!(
            message.contains("no request was measured") && message.contains("length.warm_up"),
            "{message}"
        );
    }
    let message = failed(&text.replacen("[drive]", "devices = [7]\n\n[drive]", 1));
    assert!(message.contains("has no requests of devices [7]"), "{message}");
    let refused =
        |text: &str| parse(&folder.path().join("mine.toml"), text).err().expect("a mistake").to_string();
    let message = refused(&text.replacen("warm_up = 0", "warm_up = 0\nseconds = 5", 1));
    assert!(message.contains("length.seconds: is for clusters"), "{message}");
    let empty = DRIVE.replacen(
        "kind = \"trace\"\nfile = \"FILE\"",
        "kind = \"generate\"\ndescription = \"sap\"\nrequests = 0",
        1,
    );
    assert!(
        error(&empty).starts_with("mine.toml:6: workload.requests: 0 is not between"),
        "{}",
        error(&empty)
    );
    let both = DRIVE.replacen("[length]", "[brick]\ndepth = 1\n\n[length]", 1);
    assert!(error(&both).contains("stands beside [brick]"), "{}", error(&both));
}
