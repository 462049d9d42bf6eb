//! What came of a soak.

use super::harm::{Harm, Round};
use super::{Args, VOLUMES};
use crate::args::Global;
use crate::load::shared::{Arena, Failures};
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
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
    pub(super) longest_return: Duration,
    plain: Failures,
    attach: Failures,
    violations: Vec<String>,
    /// Why the run did not come to its end.
    pub(super) stuck: Option<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.violations.is_empty() && self.attach == Failures::default() && self.stuck.is_none()
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
    pub(super) fn judge(&mut self, arena: &Arena, path: Option<&Path>) -> Result<()> {
        let (history, torn) = arena.take();
        self.operations = history.operations().len() as u64;
        self.violations = torn;
        if let Some(path) = path {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            let mut out = BufWriter::new(file);
            history.write_json(&mut out)?;
            out.flush()?;
        }
        let registers = history.by_register();
        self.registers = registers.len() as u64;
        let broken = registers.into_iter().filter_map(|operations| linearizable::check(&operations).err());
        self.violations.extend(broken.map(|violation| violation.to_string()));
        Ok(())
    }

    /// Tells it.
    pub(super) fn print(&self, global: &Global, args: &Args, seed: u64) {
        if global.json {
            self.print_json(args, seed);
            return;
        }
        println!(
            "{} on {} of {}.",
            output::count(self.operations, "operation"),
            output::count(self.registers, "block"),
            VOLUMES.map(|(_, layout)| layout).join(", ")
        );
        for (role, blows) in &self.blows {
            println!("{role}: {} SIGKILL, {} SIGSTOP, {} SIGTERM", blows.kills, blows.pauses, blows.restarts);
        }
        println!("Everything was killed at once at the end.");
        println!(
            "The longest SIGSTOP lasted {:.1} s; all data were redundant again {:.1} s after a round at most.",
            self.longest_pause_ms as f64 / 1000.0,
            self.longest_return.as_secs_f64()
        );
        println!(
            "{} broke off with their gateway, as they may, and {} got an error (the last one is {}); of attach: {} and {}, which \
             must be 0.",
            output::count(self.plain.lost, "plain request"),
            self.plain.refused,
            self.plain.errno,
            self.attach.lost,
            self.attach.refused
        );
        self.print_verdict(args, seed);
    }

    fn print_verdict(&self, args: &Args, seed: u64) {
        self.violations.iter().take(3).for_each(|violation| println!("! {violation}"));
        if let Some(why) = &self.stuck {
            println!("! The run did not come to its end: {why}");
        }
        match self.violations.len() {
            0 => println!(
                "Some order explains all that clients saw: no acknowledged write lost, no stale read."
            ),
            count => println!("{} found.", output::count(count as u64, "violation")),
        }
        if !self.is_good() {
            println!("Repeat with: brickwork soak --rounds {} --seed {seed}", args.rounds);
        }
    }

    fn print_json(&self, args: &Args, seed: u64) {
        let blows: serde_json::Map<_, _> = self
            .blows
            .iter()
            .map(|(role, blows)| {
                let counts =
                    json!({ "kills": blows.kills, "pauses": blows.pauses, "restarts": blows.restarts });
                ((*role).to_owned(), counts)
            })
            .collect();
        output::print_json(&json!({
            "seed": seed, "rounds": args.rounds, "operations": self.operations, "blocks": self.registers,
            "hurt": blows, "longest_pause_ms": self.longest_pause_ms,
            "longest_return_ms": self.longest_return.as_millis() as u64,
            "plain_lost": self.plain.lost, "plain_refused": self.plain.refused, "plain_errno": self.plain.errno,
            "attach_lost": self.attach.lost, "attach_refused": self.attach.refused, "attach_errno": self.attach.errno,
            "violations": self.violations, "stuck": self.stuck, "history": args.history,
        }));
    }
}
