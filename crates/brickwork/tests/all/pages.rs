//! Pages whose commands a reader types: each of them is run as it stands there.

use std::path::Path;
use std::process::Command;

/// The commands of a page: lines that begin with `$` in its blocks of `console`.
fn commands(page: &str) -> Vec<&str> {
    let mut is_console = false;
    let mut commands = Vec::new();
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            is_console = kind == "console";
        } else if is_console {
            commands.extend(line.strip_prefix("$ "));
        }
    }
    commands
}

/// Runs a command in a folder as a shell does there, where `brickwork` is the binary.
fn run(folder: &Path, command: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_brickwork"));
    let folders = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{folders}", binary.parent().expect("it lies in a folder").display());
    let out = Command::new("sh").args(["-c", command]).current_dir(folder).env("PATH", path).output();
    let out = out.expect("there is a shell");
    let [said, errors] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(out.status.success(), "{command}\n{said}\n{errors}");
    said
}

#[test]
fn the_page_on_one_drive_is_right() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(repository.join("docs/lab/one-drive.md")).expect("the page is there");
    let folder = tempfile::tempdir().expect("there is room");
    let lab = folder.path().join("docs/lab");
    std::fs::create_dir_all(&lab).expect("there is room");
    let example = "drives.toml";
    std::fs::copy(repository.join("docs/lab").join(example), lab.join(example))
        .expect("the example is there");
    let commands = commands(&page);
    assert_eq!(commands.len(), 8, "{commands:?}");
    let said: Vec<String> = commands.iter().map(|command| run(folder.path(), command)).collect();
    assert!(said[6].contains("seagate-cheetah-9lp") && said[6].contains("requests.csv"), "{}", said[6]);
    let results = folder.path().join("results");
    // What the page says is there.
    for name in
        ["drives.cdf.svg", "drives.cdf.png", "drives.cdf.data.csv", "drives.response_ms.svg", "drives.csv"]
    {
        assert!(results.join(name).exists(), "{name}");
    }
    let requests = std::fs::read_to_string(results.join("requests.csv")).expect("it was written");
    let points = requests.lines().skip(1).filter(|line| line.contains(",disk,")).count();
    assert!(points > 4 * 1000, "{points} accesses of disks");
    let outcome = std::fs::read(results.join("drives.json")).expect("it was written");
    let outcome: serde_json::Value = serde_json::from_slice(&outcome).expect("it is whole");
    let provenance = &outcome["provenance"];
    assert!(provenance["command"].as_str().is_some_and(|command| command.contains("docs/lab/drives.toml")));
    assert!(provenance["description"].as_str().is_some_and(|text| text.contains("[drive]")));
    assert_eq!(provenance["points"].as_array().map(Vec::len), Some(4));
    let page = std::fs::read_to_string(folder.path().join("drives.html")).expect("it was written");
    assert!(page.contains("distribution of response times"));
}
