//! What came of a soak.

use super::Options;
use super::harm::{Harm, Round};
use crate::porcupine::Accepted;
use anyhow::{Context, Result};
use rig::load::shared::{Arena, Failures};
use serde_json::{Value, json};
use sim::checkers::linearizable;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// How often a role was hurt in each way.
#[derive(Clone, Copy, Default)]
struct Blows {
    kills: u64,
    pauses: u64,
    restarts: u64,
}

/// All that is known at the end.
#[derive(Default)]
pub(super) struct Findings {
    operations: u64,
    registers: u64,
    blows: BTreeMap<&'static str, Blows>,
    longest_pause_ms: u64,
    /// The longest that it took until all data were redundant again.
    longest_return: Duration,
    plain: Failures,
    attach: Failures,
    violations: Vec<String>,
    /// Why the run did not come to its end.
    pub(super) stuck: Option<String>,
}

impl Findings {
    /// How many operations clients made.
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    /// Notes how long it took until all data were redundant again.
    pub(super) fn returned(&mut self, took: Duration) {
        self.longest_return = self.longest_return.max(took);
    }

    /// Counts a round's blows.
    pub(super) fn add_round(&mut self, round: &Round) {
        for blow in &round.blows {
            let role = ["brick", "gateway"].into_iter().find(|role| blow.name.starts_with(role));
            let blows = self.blows.entry(role.unwrap_or("directory")).or_default();
            match blow.harm {
                Harm::Kill => blows.kills += 1,
                Harm::Restart => blows.restarts += 1,
                Harm::Pause => {
                    blows.pauses += 1;
                    self.longest_pause_ms = self.longest_pause_ms.max(blow.length_ms());
                }
            }
        }
    }

    /// Counts what went wrong with a client's requests.
    pub(super) fn add_client(&mut self, attach: bool, failures: Failures) {
        let sum = if attach { &mut self.attach } else { &mut self.plain };
        sum.lost += failures.lost;
        sum.refused += failures.refused;
        sum.errno = if failures.refused > 0 { failures.errno } else { sum.errno };
    }

    /// Writes the history and looks for an order that explains it.
    pub(super) fn judge(&mut self, arena: &Arena, path: &Path) -> Result<()> {
        let (history, torn) = arena.take();
        self.operations = history.operations().len() as u64;
        self.violations = torn;
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut out = BufWriter::new(file);
        history.write_json(&mut out)?;
        out.flush()?;
        let registers = history.by_register();
        self.registers = registers.len() as u64;
        let broken = registers.into_iter().filter_map(|operations| linearizable::check(&operations).err());
        self.violations.extend(broken.map(|violation| violation.to_string()));
        Ok(())
    }

    /// What is wrong, if something is.
    pub(super) fn complaint(&self) -> Option<String> {
        if let Some(first) = self.violations.first() {
            return Some(format!("{} violations; the first: {first}", self.violations.len()));
        }
        if let Some(why) = &self.stuck {
            return Some(format!("it did not come to its end: {why}"));
        }
        let Failures { lost, refused, errno } = self.attach;
        (lost != 0 || refused != 0).then(|| {
            format!("{lost} requests through attach were lost, and {refused} refused (last error {errno})")
        })
    }

    /// What happened, for people.
    pub(super) fn sentence(&self, options: &Options, accepted: &Accepted) -> String {
        let hurt = |role: &str| {
            let Blows { kills, pauses, restarts } = self.blows.get(role).copied().unwrap_or_default();
            format!("{kills}/{pauses}/{restarts}")
        };
        format!(
            "soak: {} rounds, seed {}: {} operations on {} blocks; SIGKILL/SIGSTOP/SIGTERM to bricks {}, gateways {}, directory \
             {}, the longest stop {:.1} s, redundant again within {:.1} s; no acknowledged write lost, no stale read, {} plain \
             requests lost with their gateway and {} refused; porcupine accepts it ({:.1} s)",
            options.rounds,
            options.seed,
            self.operations,
            self.registers,
            hurt("brick"),
            hurt("gateway"),
            hurt("directory"),
            self.longest_pause_ms as f64 / 1000.0,
            self.longest_return.as_secs_f64(),
            self.plain.lost,
            self.plain.refused,
            accepted.seconds
        )
    }

    /// The same for programs.
    pub(super) fn json(&self, options: &Options) -> Value {
        let blows = self.blows.iter().map(|(role, Blows { kills, pauses, restarts })| {
            ((*role).to_owned(), json!({ "kills": kills, "pauses": pauses, "restarts": restarts }))
        });
        json!({
            "seed": options.seed, "rounds": options.rounds, "operations": self.operations, "blocks": self.registers,
            "hurt": blows.collect::<serde_json::Map<_, _>>(), "longest_pause_ms": self.longest_pause_ms,
            "longest_return_ms": self.longest_return.as_millis() as u64,
            "plain_lost": self.plain.lost, "plain_refused": self.plain.refused, "plain_errno": self.plain.errno,
            "attach_lost": self.attach.lost, "attach_refused": self.attach.refused,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(Findings::default().complaint(), None);
        let refused = Failures { refused: 2, ..Failures::default() };
        let bad = [
            Findings { violations: vec!["no order".to_owned()], ..Findings::default() },
            Findings { stuck: Some("brick-1 ended".to_owned()), ..Findings::default() },
            Findings { attach: refused, ..Findings::default() },
        ];
        assert!(bad.iter().all(|findings| findings.complaint().is_some()));
        assert_eq!(Findings { plain: refused, ..Findings::default() }.complaint(), None);
    }
}
