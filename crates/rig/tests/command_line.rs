//! What `cargo xtask clients` and its like pass on is understood.

use std::process::Command;

fn said(words: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_rig")).args(words).output().expect("the program runs");
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

#[test]
fn cases_are_listed_and_chosen_by_a_part_of_their_names() {
    let (all, code) = said(&["clients", "--list"]);
    assert_eq!(code, Some(0));
    assert!(all.lines().count() > 50 && all.contains("fio/rs-4+2/brick-killed"), "{all}");
    let (some, _) = said(&["clients", "pgbench", "--list"]);
    assert_eq!(some.lines().count(), 3, "{some}");
}

#[test]
fn every_run_says_how_it_is_used() {
    for verb in ["clients", "soak", "partition", "rot"] {
        let (help, code) = said(&[verb, "--help"]);
        assert!(code == Some(0) && help.contains("--binary"), "{verb}: {help}");
    }
    for bench in ["block", "netraid"] {
        let (help, code) = said(&["bench", bench, "--help"]);
        assert!(code == Some(0) && help.contains("--binary"), "{bench}: {help}");
    }
    assert_eq!(said(&["no-such-run"]).1, Some(2));
}
