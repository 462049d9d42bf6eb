//! Steps of a run: shown while they go, counted at the end.

use crate::process::processor_s_of_children;
use anyhow::Result;
use std::time::Instant;

/// What came of a step.
pub enum Outcome {
    /// So many tests passed, and no other.
    Passed(u64),
    /// Tests with different ends.
    Mixed {
        passed: u64,
        failed: u64,
        /// Tests that could not run here.
        skipped: u64,
        /// What to look at.
        why: String,
    },
    /// It could not run here.
    Skipped(String),
}

impl Outcome {
    fn counts(&self) -> (u64, u64, u64) {
        match self {
            Outcome::Passed(count) => (*count, 0, 0),
            Outcome::Mixed { passed, failed, skipped, .. } => (*passed, *failed, *skipped),
            Outcome::Skipped(_) => (0, 0, 1),
        }
    }

    /// What is to be said of it, if something is.
    fn why(&self) -> Option<&str> {
        match self {
            Outcome::Passed(_) => None,
            Outcome::Mixed { failed: 0, skipped: 0, .. } => None,
            Outcome::Mixed { why, .. } | Outcome::Skipped(why) => Some(why),
        }
    }
}

struct Step {
    name: String,
    outcome: Outcome,
    seconds: f64,
    /// Processor time of all programs that the step started and waited for.
    processor_s: f64,
}

/// All steps of a run.
#[derive(Default)]
pub struct Report {
    steps: Vec<Step>,
}

impl Report {
    /// Runs a step; an error is a failure of it. Whether nothing in it failed.
    pub fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Outcome>) -> bool {
        eprintln!("==> {name}");
        let (started, processor_s) = (Instant::now(), processor_s_of_children());
        let failed = |error| Outcome::Mixed { passed: 0, failed: 1, skipped: 0, why: format!("{error:#}") };
        let outcome = work().unwrap_or_else(failed);
        let seconds = started.elapsed().as_secs_f64();
        let processor_s = processor_s_of_children() - processor_s;
        let good = outcome.counts().1 == 0;
        let word = match (&outcome, good) {
            (Outcome::Skipped(why), _) => format!("skipped: {why}"),
            (_, true) => "passed".to_owned(),
            (_, false) => format!("FAILED\n{}", outcome.why().unwrap_or_default()),
        };
        eprintln!("    {name}: {word} ({seconds:.1} s, of processors {processor_s:.1} s)");
        self.steps.push(Step { name: name.to_owned(), outcome, seconds, processor_s });
        good
    }

    /// Notes that a step cannot run, and why.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.step(name, || Ok(Outcome::Skipped(why.to_owned())));
    }

    /// Tests that passed, failed and were skipped.
    pub fn totals(&self) -> (u64, u64, u64) {
        self.steps.iter().fold((0, 0, 0), |sum, step| {
            let counts = step.outcome.counts();
            (sum.0 + counts.0, sum.1 + counts.1, sum.2 + counts.2)
        })
    }

    /// Prints the table, and the totals alone on the last line; ends the process with 1 if anything failed.
    pub fn close(self) -> Result<()> {
        println!(
            "\n{:<44} {:>7} {:>7} {:>7} {:>9} {:>11}",
            "step", "passed", "failed", "skipped", "seconds", "processor s"
        );
        self.steps.iter().for_each(print_step);
        let (passed, failed, skipped) = self.totals();
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed > 0 {
            std::process::exit(1);
        }
        Ok(())
    }
}

/// Of a failure so many lines are told below its step.
const TOLD_MAX: usize = 16;

fn print_step(step: &Step) {
    let (passed, failed, skipped) = step.outcome.counts();
    let Step { name, seconds, processor_s, .. } = step;
    println!("{name:<44} {passed:>7} {failed:>7} {skipped:>7} {seconds:>9.1} {processor_s:>11.1}");
    let told = told(step.outcome.why().unwrap_or_default(), if failed > 0 { TOLD_MAX } else { 1 });
    told.iter().for_each(|line| println!("    {line}"));
}

/// The first line of a text, and of what follows as many of the last ones as there is room for: what went wrong often stands behind warnings.
fn told(text: &str, most: usize) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let over = lines.len().saturating_sub(most);
    lines.drain(lines.len().min(1)..lines.len().min(1 + over));
    lines
}

/// What the last line of another report says: tests that passed, failed and were skipped.
pub fn totals_of(text: &str) -> Option<(u64, u64, u64)> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let mut parts = line.split(", ");
    let mut count = |word: &str| parts.next()?.strip_suffix(word)?.parse().ok();
    Some((count(" passed")?, count(" failed")?, count(" skipped")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_failure_and_a_skip_is_counted() {
        let mut report = Report::default();
        assert!(report.step("good", || Ok(Outcome::Passed(7))));
        assert!(!report.step("bad", || anyhow::bail!("broken")));
        let mixed = || Outcome::Mixed { passed: 1, failed: 0, skipped: 2, why: String::new() };
        assert!(report.step("mixed", || Ok(mixed())));
        report.skip("absent", "no such tool");
        assert_eq!(report.totals(), (8, 1, 3));
    }

    #[test]
    fn of_a_long_error_the_beginning_and_the_end_are_told() {
        assert_eq!(told("put: a warning\n\nmore\nno room\n", 2), ["put: a warning", "no room"]);
        assert_eq!(told("one\ntwo\n", 8), ["one", "two"]);
        assert_eq!((told("one\ntwo\n", 1), told("", 8)), (vec!["one"], vec![]));
    }

    #[test]
    fn the_totals_of_another_report_are_its_last_line() {
        assert_eq!(totals_of("step\n\n3 passed, 1 failed, 0 skipped\n"), Some((3, 1, 0)));
        assert_eq!(totals_of("3 passed, 1 failed, 0 skipped\nended"), None);
    }
}
