//! The command line as its users meet it: help that shows examples, exit codes, messages that say what to do.

use crate::common::Site;
use std::process::{Command, Output, Stdio};

/// Every verb that does something by itself.
const VERBS: [&str; 57] = [
    "",
    "demo",
    "cluster init",
    "cluster token",
    "directory",
    "directory rebuild",
    "brick",
    "brick init",
    "brick format",
    "brick list",
    "brick evict",
    "brick forget",
    "brick readmit",
    "brick replace",
    "gateway",
    "gateway init",
    "client init",
    "attach",
    "volume",
    "volume create",
    "volume list",
    "volume info",
    "volume resize",
    "volume delete",
    "volume read-only",
    "volume set",
    "volume snapshot",
    "volume clone",
    "volume rollback",
    "stream",
    "stream create",
    "stream set",
    "stream list",
    "stream delete",
    "stream places",
    "stream top",
    "rebuild",
    "scrub",
    "status",
    "events",
    "lab list",
    "lab run",
    "lab report",
    "disk",
    "disk list",
    "disk show",
    "disk map",
    "disk validate",
    "disk probe",
    "sim torture",
    "sim replay",
    "sim shrink",
    "trace",
    "trace info",
    "trace convert",
    "trace generate",
    "completions",
];

fn brickwork(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(arguments.split_whitespace()).current_dir(std::env::temp_dir());
    for name in ["BRICKWORK_CONFIG", "BRICKWORK_JOIN", "BRICKWORK_DIRECTORY", "BRICKWORK_CLUSTER"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_help_of_every_verb_shows_examples() {
    for verb in VERBS {
        let output = brickwork(&format!("{verb} --help"));
        let help = text(&output.stdout);
        assert!(output.status.success(), "{verb}");
        assert!(
            help.contains("Examples:") && help.contains("brickwork "),
            "{verb} --help shows no examples:\n{help}"
        );
        assert!(help.contains("Usage:"), "{verb}");
        let first = verb.split(' ').next().unwrap_or_default();
        assert!(help.contains(&format!("  brickwork {first}")), "{verb} --help has no example of itself");
    }
}

#[test]
fn every_key_of_every_configuration_stands_in_the_help_and_in_the_reference() {
    use brickwork_cli::config::{BrickFile, ClientFile, Configuration, DirectoryFile, GatewayFile};
    let reference = include_str!("../../../../docs/operations/configuration.md");
    for (verb, keys) in [
        ("directory", DirectoryFile::ENVIRONMENT),
        ("brick", BrickFile::ENVIRONMENT),
        ("gateway", GatewayFile::ENVIRONMENT),
        ("client init", ClientFile::ENVIRONMENT),
    ] {
        let help = text(&brickwork(&format!("{verb} --help")).stdout);
        for key in keys {
            let top = key.split('.').next().unwrap_or(key);
            assert!(help.contains(&format!("\n  {top} ")), "{verb} --help does not say what '{top}' is");
            let variable = brickwork_cli::config::variable(key);
            assert!(
                reference.contains(&format!("`{variable}`")),
                "configuration.md does not name {variable}"
            );
        }
    }
}

#[test]
fn a_command_line_that_makes_no_sense_ends_with_2() {
    for arguments in [
        "",
        "frobnicate",
        "volume create",
        "volume create x --size many",
        "volume create x --size 1GiB --placement random",
        "sim torture --placement random",
        "stream set gold",
        "stream create gold --limit fast",
        "stream create gold --latency 5",
        "demo --bricks 2",
        "sim torture --layout raid9",
        "brick evict three",
        "brick format --force",
        "rebuild --rate 1",
        "rebuild --after off",
        "rebuild --timeout 5s",
        "scrub --every sometimes",
        "events --since yesterday",
        "volume rollback first",
        "directory rebuild --dir /tmp --bricks 3 --wait 5s",
    ] {
        assert_eq!(brickwork(arguments).status.code(), Some(2), "brickwork {arguments}");
    }
}

#[test]
fn an_unknown_placement_rule_is_named_with_those_there_are() {
    let said = text(&brickwork("volume create x --size 1GiB --placement random").stderr);
    let expected = "'random' is no placement rule: there are hashed, periodic, weighted";
    assert!(said.contains(expected) && said.contains("--placement <RULE>"), "{said}");
}

#[test]
fn a_failure_ends_with_1_and_says_what_to_do() {
    for (arguments, hint) in [
        ("status", "BRICKWORK_CONFIG"),
        ("brick", "--config brick.toml"),
        ("directory --config /nonexistent/directory.toml", "/nonexistent/directory.toml"),
        ("cluster token --dir /nonexistent", "brickwork cluster init"),
        ("demo --stop /nonexistent", "brickwork demo --keep"),
        (
            "demo --volume-size 400GiB --dir /nonexistent",
            "--volume-size is 400 GiB; 6 bricks with disks of 512 MiB",
        ),
        ("disk show nosuch", "there are the drives"),
        ("disk show nvme-sdd", "did you mean nvme-ssd?"),
        ("directory rebuild --dir /nonexistent", "restore it from its backup"),
        ("sim replay /nonexistent", "/nonexistent"),
        ("sim torture --seeds 1 --layout rs-4+2", "--bricks 6"),
    ] {
        let output = brickwork(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "brickwork {arguments}: {said}");
        assert!(said.contains(hint), "brickwork {arguments} says nothing of '{hint}': {said}");
    }
}

#[test]
fn a_drive_is_not_confirmed_by_what_it_was_not_compared_with() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let stream = file("stream.csv", "lbn,blocks,read_in_r90,read_in_r67\n17093964,9,1,1\n15252283,3,1,1\n");
    let curve = "A_nocache,100/0,SPTF-own,1,1,1,105.99,9.4345,8.7587,5.5525,3.0035,0.2027,3280.7,9.434\n";
    let curves = file("curves.csv", &format!("config,read_write,scheduler,outstanding\n{curve}"));
    for (files, missing) in [
        (stream.clone(), "nothing there can be compared with quantum-atlas-10k"),
        (
            format!("{stream} {curves}"),
            "curves.csv: 1 point not compared: nothing is known of A_nocache under SPTF-own",
        ),
    ] {
        let output = brickwork(&format!("disk validate quantum-atlas-10k {files}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stdout));
        assert!(said.contains(missing), "{said}");
    }
}

#[test]
fn a_cluster_is_begun_once_and_gives_tokens() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let at = dir.path().join("c").display().to_string();
    let first = brickwork(&format!("cluster init --dir {at} --json"));
    let said: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert!(said["token"].as_str().is_some_and(|token| token.starts_with("bwt1_")), "{said}");
    let second = brickwork(&format!("cluster init --dir {at}"));
    assert!(!second.status.success() && text(&second.stderr).contains("exists already"));
    let token = text(&brickwork(&format!("cluster token --dir {at} --role brick")).stdout);
    assert!(token.trim().parse::<brickwork_cli::security::Token>().is_ok(), "{token}");
    let list = text(&brickwork(&format!("cluster token --dir {at} --list")).stdout);
    assert_eq!(list.lines().count(), 3, "a heading and two tokens:\n{list}");
}

#[test]
fn nothing_listens_beyond_loopback_without_tls() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let at = dir.path().join("c").display().to_string();
    let output = brickwork(&format!("cluster init --dir {at} --plaintext --listen 10.0.0.1:7000"));
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("10.0.0.1:7000"), "{}", text(&output.stderr));
}

#[test]
fn completions_and_manual_pages_are_written() {
    let bash = brickwork("completions bash");
    assert!(text(&bash.stdout).contains("torture"));
    let dir = tempfile::tempdir().expect("temporary directory");
    assert!(brickwork(&format!("man --dir {}", dir.path().display())).status.success());
    assert!(dir.path().join("brickwork-volume-create.1").exists());
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let site = Site::start(3);
    site.text("volume create first --size 1MiB");
    let cluster = site.dir.path().display();
    let list = format!("cluster token --dir {cluster} --list");
    for verb in [
        "disk list",
        "lab list",
        "trace --help",
        "completions bash",
        "status",
        "status --json",
        "volume list",
        "volume info first",
        "volume show first",
        "status --watch",
        "events",
        "events --follow",
        "volume set first --read-policy claim",
        "brick list",
        "rebuild",
        "scrub --every 7d",
        &list,
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_brickwork"))
            .args(verb.split_whitespace())
            .env("BRICKWORK_CONFIG", site.dir.path().join("admin/client.toml"))
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .expect("the binary runs");
        assert_eq!(text(&output.stderr), "", "{verb}");
    }
}

/// Runs a verb of which nobody reads what it prints, not even its errors. Where the output is a pipe its other end is closed;
/// otherwise it is a device on which there is never room.
fn unheard(site: &Site, verb: &str, is_pipe: bool) -> Option<i32> {
    let output = || match is_pipe {
        true => {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            Stdio::from(writer)
        }
        false => std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device").into(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_brickwork"));
    command.args(verb.split_whitespace()).env("BRICKWORK_CONFIG", site.dir.path().join("admin/client.toml"));
    command.stdout(output()).stderr(output()).status().expect("the binary runs").code()
}

/// Found from outside: these ended with 101 and no word, their work done or half done.
#[test]
fn verbs_that_do_something_do_it_whether_or_not_anybody_listens() {
    let site = Site::start(1);
    let dir = site.dir.path().display();
    let token = site.text(&format!("cluster token --dir {dir}"));
    let token = token.split_whitespace().last().expect("a token");
    for (name, is_pipe) in [("heard-by-none", true), ("full", false)] {
        // What could not be printed for lack of room is an error; that nobody reads is none.
        let end = if is_pipe { Some(0) } else { Some(1) };
        let made = |verb: &str, file: &str| {
            assert_eq!(unheard(&site, verb, is_pipe), end, "{verb}");
            assert!(site.dir.path().join(name).join(file).exists(), "{verb}: {file}");
        };
        made(&format!("cluster init --dir {dir}/{name}/new --name new"), "new/directory.toml");
        made(&format!("gateway init --dir {dir}/{name}/g --join {token}"), "g/gateway.toml");
        made(&format!("client init --dir {dir}/{name}/c --join {token}"), "c/client.toml");
        made(
            &format!("brick init --dir {dir}/{name}/b --disk {dir}/{name}/b/disk:64MiB --join {token}"),
            "b/brick.toml",
        );
        assert_eq!(unheard(&site, &format!("fsck {dir}/{name}/b/disk"), is_pipe), end);
        assert_eq!(unheard(&site, &format!("fsck {dir}/nothing"), true), Some(8));
        assert_eq!(
            unheard(&site, "brick --config nowhere.toml", is_pipe),
            Some(1),
            "no panic over its error"
        );
    }
}
