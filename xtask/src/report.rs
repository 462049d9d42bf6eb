//! Steps of a run: shown while they go, counted at the end.

use anyhow::Result;
use std::time::Instant;

/// What came of a step.
pub(crate) enum Outcome {
    /// So many tests passed.
    Passed(u64),
    /// Some failed.
    Failed {
        /// Tests that passed.
        passed: u64,
        /// Tests that failed.
        failed: u64,
        /// What to look at.
        why: String,
    },
    /// It could not run here.
    Skipped(String),
}

struct Step {
    name: String,
    outcome: Outcome,
    ignored: u64,
    seconds: f64,
}

/// All steps of a run.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<Step>,
}

impl Report {
    /// Runs a step; an error is a failure of it.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Outcome>) -> bool {
        eprintln!("==> {name}");
        let started = Instant::now();
        let outcome = work().unwrap_or_else(|error| Outcome::Failed {
            passed: 0,
            failed: 1,
            why: format!("{error:#}"),
        });
        let seconds = started.elapsed().as_secs_f64();
        let word = match &outcome {
            Outcome::Passed(_) => "passed".to_owned(),
            Outcome::Failed { why, .. } => format!("FAILED\n{why}"),
            Outcome::Skipped(why) => format!("skipped: {why}"),
        };
        eprintln!("    {name}: {word} ({seconds:.1} s)");
        let good = !matches!(outcome, Outcome::Failed { .. });
        self.steps.push(Step { name: name.to_owned(), outcome, ignored: 0, seconds });
        good
    }

    /// Notes that a step cannot run, and why.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        self.step(name, || Ok(Outcome::Skipped(why.to_owned())));
    }

    /// Counts further tests of the last step as skipped.
    pub(crate) fn also_skipped(&mut self, count: u64) {
        if let Some(step) = self.steps.last_mut() {
            step.ignored += count;
        }
    }

    /// Tests that passed, failed and were skipped.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        self.steps.iter().fold((0, 0, 0), |(passed, failed, skipped), step| match step.outcome {
            Outcome::Passed(count) => (passed + count, failed, skipped + step.ignored),
            Outcome::Failed { passed: good, failed: bad, .. } => {
                (passed + good, failed + bad, skipped + step.ignored)
            }
            Outcome::Skipped(_) => (passed, failed, skipped + 1 + step.ignored),
        })
    }

    /// Prints the table, and the totals alone on the last line; an error if anything failed.
    pub(crate) fn close(self) -> Result<()> {
        println!("\n{:<44} {:>8} {:>8} {:>8} {:>8}", "step", "passed", "failed", "skipped", "seconds");
        for step in &self.steps {
            print_step(step);
        }
        let (passed, failed, skipped) = self.totals();
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed > 0 {
            std::process::exit(1);
        }
        Ok(())
    }
}

fn print_step(step: &Step) {
    let (passed, failed, skipped, note) = match &step.outcome {
        Outcome::Passed(count) => (*count, 0, step.ignored, None),
        Outcome::Failed { passed, failed, why } => (*passed, *failed, step.ignored, Some(why)),
        Outcome::Skipped(why) => (0, 0, 1 + step.ignored, Some(why)),
    };
    println!("{:<44} {passed:>8} {failed:>8} {skipped:>8} {:>8.1}", step.name, step.seconds);
    if let Some(line) = note.and_then(|text| text.lines().find(|line| !line.trim().is_empty())) {
        println!("    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_failure_and_a_skip_is_counted() {
        let mut report = Report::default();
        assert!(report.step("good", || Ok(Outcome::Passed(7))));
        assert!(!report.step("bad", || anyhow::bail!("broken")));
        report.skip("absent", "no such tool");
        report.also_skipped(2);
        assert_eq!(report.totals(), (7, 1, 3));
    }
}
