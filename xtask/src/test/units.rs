//! Unit, property and integration tests of the workspace: `cargo test`, its counts added up.

use crate::workspace;
use anyhow::{Result, bail};
use job::process::{Job, tail};
use job::report::{Outcome, Report};
use std::time::Duration;

/// Compiles and runs them all, also after a failure. False when something does not compile: then there is no binary either.
pub(super) fn run(report: &mut Report, profile: &str) -> bool {
    let compile = ["test", "--workspace", "--profile", profile, "--no-run"];
    let compiles = report.step("compile all tests and programs", || {
        let mut command = workspace::cargo(&compile);
        Job::spawn("cargo-test-no-run", &mut command)?.wait_showing(Duration::from_secs(1800))?.success()?;
        Ok(Outcome::Passed(1))
    });
    if compiles {
        report.step("unit, property and integration tests", || {
            let Counts { passed, failed, ignored, why } = cargo_test(profile)?;
            Ok(Outcome::Mixed { passed, failed, skipped: ignored, why })
        });
    }
    compiles
}

#[derive(Default, Debug, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
    why: String,
}

fn cargo_test(profile: &str) -> Result<Counts> {
    let mut command = workspace::cargo(&["test", "--workspace", "--profile", profile, "--no-fail-fast"]);
    let finished = Job::spawn("cargo-test", &mut command)?.wait_showing(Duration::from_secs(1500))?;
    let mut counts = count(&finished.stdout);
    if !finished.status.success() && counts.failed == 0 {
        bail!("cargo test did not get to its end:\n{}", tail(&finished.stderr, 40));
    }
    counts.why = failures(&finished.stdout).join("\n");
    Ok(counts)
}

/// Of what one failed test says, so many lines are shown.
const SHOWN_MAX: usize = 30;

/// Which tests failed, and what each says of it, without the calls that led there: the words of a property name the input, which is drawn anew the next time.
fn failures(text: &str) -> Vec<&str> {
    let (mut shown, mut left) = (Vec::new(), 0);
    for line in text.lines() {
        if line.contains("panicked at") {
            left = SHOWN_MAX;
        } else if line == "stack backtrace:" || line == "failures:" || line.starts_with("---- ") {
            left = 0;
        }
        if left > 0 || line.ends_with("FAILED") {
            shown.push(line);
            left = left.saturating_sub(1);
        }
    }
    shown
}

/// Adds up the lines `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn count(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("test result: ")) {
        for part in line.split([';', '.']).map(str::trim) {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let number: u64 = number.parse().unwrap_or(0);
            match what {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "ignored" => counts.ignored += number,
                _ => {}
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_failed_tests_say() {
        let text = "test one ... ok\ntest two ... FAILED\n\nfailures:\n\n---- two stdout ----\nlong before\n\n\
                    thread 'two' panicked at two.rs:3:1:\nTest failed.\nminimal failing input: seed = 183965\n\n\
                    stack backtrace:\n   0: rust_begin_unwind\n\nfailures:\n    two\n";
        let said = [
            "thread 'two' panicked at two.rs:3:1:",
            "Test failed.",
            "minimal failing input: seed = 183965",
            "",
        ];
        assert_eq!(failures(text), [&["test two ... FAILED"], &said[..]].concat());
    }

    #[test]
    fn adds_up_what_cargo_prints() {
        let text = "running 4 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.5s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s\n";
        assert_eq!(count(text), Counts { passed: 4, failed: 2, ignored: 1, why: String::new() });
    }
}
