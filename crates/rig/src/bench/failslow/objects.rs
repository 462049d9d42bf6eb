//! Objects beside a slow or dead brick: puts, gets and ranges through one gateway.

use super::super::object::processor_s;
use super::awake::Awake;
use super::load::{Percentiles, Sample};
use super::state::State;
use super::transfers::{self, OBJECT_BYTES, Pace, RANGE_BYTES, Ran, What};
use super::{Plan, cluster_of};
use anyhow::{Context, Result};
use rig::cluster::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// A put takes three of them; the ranges of a sixth of the objects' blocks need the one that ails.
pub(super) const BRICKS: usize = 6;
/// Transfers a second, however many begin at a time.
pub(super) const RATE: f64 = 200.0;
/// A gateway that has just begun knows nobody: what it does in its first moments is not counted.
const WARM: Duration = Duration::from_secs(1);
/// The brick begins to ail so long after a hundred transfers have begun: they are at work by then.
const AMID: Duration = Duration::from_millis(20);
/// What clients see of it at first, and what they see later.
const FIRST: Duration = Duration::from_secs(1);
/// A brick is alive again within this time.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Then it does what it missed, and the others what they did for it.
const SETTLED: Duration = Duration::from_secs(1);

/// One kind of transfer in one state, all turns together.
pub(super) struct Objects {
    /// So many begin at a time.
    pub(super) together: usize,
    pub(super) state: State,
    pub(super) what: What,
    /// Before the brick began to ail, in the first second in which it did, and from then on.
    pub(super) before: Percentiles,
    pub(super) first: Percentiles,
    pub(super) later: Percentiles,
    /// Transfers that failed, and why the first one did of all kinds.
    pub(super) errors: u64,
    pub(super) error: Option<String>,
    /// The most transfers that were open at a time.
    pub(super) most_open: usize,
    /// What part of the machine's processors was used before the brick began to ail.
    pub(super) processors: f64,
}

impl Objects {
    /// The longest transfer of those that were due after the brick began to ail.
    pub(super) fn longest_ms(&self) -> f64 {
        self.first.most_ms.max(self.later.most_ms)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "transfers": self.together, "state": self.state.name(), "what": self.what.name(),
            "before": self.before.json(), "first_second": self.first.json(), "after_a_second": self.later.json(),
            "longest_ms": self.longest_ms(), "errors": self.errors, "error": self.error,
            "most_open": self.most_open, "processors_used": self.processors,
        })
    }
}

pub(super) fn setting_json() -> Value {
    json!({
        "bricks": BRICKS, "transfers_per_second": RATE, "object_bytes": OBJECT_BYTES, "range_bytes": RANGE_BYTES,
    })
}

/// Measures one state, on a cluster of its own.
pub(super) fn measure(binary: &Path, state: State, plan: &Plan) -> Result<Vec<Objects>> {
    let mut cluster = cluster_of(binary, BRICKS)?;
    transfers::fill(&cluster.admin_options()?)?;
    let mut all = Vec::new();
    for together in &plan.transfers {
        let mut seen = Seen::default();
        for turn in 0..plan.turns {
            seen.look(&mut cluster, *together, state, plan, turn as u64).with_context(|| {
                format!("objects, {together} transfers at a time, one brick {}", state.name())
            })?;
        }
        all.extend(What::ALL.map(|what| seen.of(*together, state, what)));
    }
    Ok(all)
}

/// What was seen in one state, of all turns.
#[derive(Default)]
struct Seen {
    before: Vec<(What, Sample)>,
    first: Vec<(What, Sample)>,
    later: Vec<(What, Sample)>,
    errors: BTreeMap<What, u64>,
    error: Option<String>,
    most_open: usize,
    processors: f64,
}

impl Seen {
    fn look(
        &mut self,
        cluster: &mut Cluster,
        together: usize,
        state: State,
        plan: &Plan,
        turn: u64,
    ) -> Result<()> {
        let (admin, span) = (cluster.admin_options()?, plan.object_span);
        let pace = Pace { together, rate: RATE, span: WARM + span + FIRST + span };
        let ill = pace.next_after(WARM + span) + AMID;
        let awake = Awake::begin()?;
        let began = Instant::now();
        let load = thread::spawn(move || transfers::paced(&admin, began, pace, turn));
        sleep_until(began + WARM);
        let before = processor_s(cluster)?;
        sleep_until(began + ill);
        let used_s = processor_s(cluster)? - before;
        let available = thread::available_parallelism().map_or(1, usize::from) as f64;
        let trouble = state.begin(cluster)?;
        let ran = load.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        awake.end()?;
        trouble.end(cluster)?;
        self.add(ran?, ill);
        self.processors = self.processors.max(used_s / (ill - WARM).as_secs_f64() / available);
        cluster.wait_until_redundant(BACK_WITHIN)?;
        sleep(SETTLED);
        cluster.all_alive()
    }

    fn add(&mut self, ran: Ran, ill: Duration) {
        for (what, sample) in ran
            .samples
            .into_iter()
            .flat_map(|(what, samples)| samples.into_iter().map(move |one| (what, one)))
        {
            // What was open when the brick began to ail is as much beside it as what came then.
            let ends = sample.at + sample.took;
            match sample.at {
                at if at < WARM => {}
                _ if ends < ill => self.before.push((what, sample)),
                at if at < ill + FIRST => self.first.push((what, sample)),
                _ => self.later.push((what, sample)),
            }
        }
        for (what, errors) in ran.errors {
            *self.errors.entry(what).or_default() += errors;
        }
        self.error = self.error.take().or(ran.error);
        self.most_open = self.most_open.max(ran.most_open);
    }

    fn of(&self, together: usize, state: State, what: What) -> Objects {
        let of = |samples: &[(What, Sample)]| {
            let its: Vec<Sample> =
                samples.iter().filter(|(of, _)| *of == what).map(|(_, sample)| *sample).collect();
            Percentiles::of(&its, Duration::ZERO, Duration::MAX)
        };
        Objects {
            together,
            state,
            what,
            before: of(&self.before),
            first: of(&self.first),
            later: of(&self.later),
            errors: self.errors.get(&what).copied().unwrap_or(0),
            error: self.error.clone(),
            most_open: self.most_open,
            processors: self.processors,
        }
    }
}

fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_when_the_brick_began_to_ail_is_of_the_first_second() {
        let ms = Duration::from_millis;
        let sample = |at, took| Sample { at: ms(at), took: ms(took), overslept: Duration::ZERO };
        let samples = [sample(10, 5), sample(1990, 5), sample(1990, 900), sample(2500, 3), sample(3100, 3)];
        let ran = Ran { samples: [(What::Put, samples.to_vec())].into(), ..Ran::default() };
        let mut seen = Seen::default();
        seen.add(ran, ms(2000));
        let puts = seen.of(1, State::Dead, What::Put);
        assert_eq!([puts.before.samples, puts.first.samples, puts.later.samples], [1, 2, 1]);
        assert_eq!(puts.longest_ms(), 900.0);
        assert_eq!(seen.of(1, State::Dead, What::Get).before.samples, 0);
    }
}
