//! Writes beside a slow brick: every member must have them, so they are slow until it has left.

use super::super::mean::Mean;
use super::awake::Awake;
use super::load::{Kind, Load, Percentiles};
use super::state::{Ailing, BRICK, State};
use super::{DEPTH, JOBS, Plan, WRITE_BYTES, WRITE_RATE, cluster, load};
use anyhow::{Context, Result};
use rig::cluster::{Cluster, of_brick};
use serde_json::{Value, json};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The last writes that waited for the brick are not of the time after it left.
const AFTER: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(100);
/// What clients see of it at first, and what they see later.
const FIRST: Duration = Duration::from_secs(1);

pub(super) struct Writes {
    pub(super) layout: String,
    pub(super) state: State,
    /// Paced jobs before the brick began to ail.
    pub(super) before: Percentiles,
    /// While it ailed and had not left; to the end, where it does not leave.
    pub(super) during: Percentiles,
    /// In the first second in which it ailed, and from then on.
    pub(super) first: Percentiles,
    pub(super) later: Percentiles,
    /// After it had left; of a healthy brick the same as before.
    pub(super) after: Percentiles,
    /// From its first ailing until the directory held it for slow, and until no group had it.
    pub(super) noticed: Option<Duration>,
    pub(super) left: Option<Duration>,
    /// Requests a second at [`DEPTH`], after it had left.
    pub(super) iops: Mean,
    /// Whether it was still out at the end, having left once.
    pub(super) stays_out: bool,
    /// From its recovery until all data were redundant again.
    pub(super) back: Option<Duration>,
}

impl Writes {
    pub(super) fn json(&self) -> Value {
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
        json!({
            "layout": self.layout, "state": self.state.name(), "before": self.before.json(),
            "until_it_left": self.during.json(), "after_it_left": self.after.json(),
            "first_second": self.first.json(), "after_a_second": self.later.json(),
            "noticed_s": seconds(self.noticed), "left_s": seconds(self.left), "iops": self.iops.mean, "iops_error": self.iops.error, "iops_runs": self.iops.runs,
            "stays_out": self.stays_out, "back_s": seconds(self.back),
        })
    }
}

/// A cluster that is written to while one of its servers ails.
pub(super) trait Written: Ailing {
    /// How long the server is given to leave: who has not left by then stays.
    const LEAVES_WITHIN: Duration;

    fn writes(&self) -> Load;

    /// Whether the server is held for slow, and whether nothing is written to it any more.
    fn is_out(&self, state: State) -> Result<(bool, bool)>;

    /// Waits until it is back after its recovery; how long that took, where it can be seen.
    fn wait_until_back(&mut self) -> Result<Option<Duration>>;
}

impl Written for Cluster {
    const LEAVES_WITHIN: Duration = Duration::from_secs(15);

    fn writes(&self) -> Load {
        load(self, Kind::Write, WRITE_BYTES)
    }

    fn is_out(&self, state: State) -> Result<(bool, bool)> {
        Ok(is_out(&self.status()?, &self.brick_id(BRICK)?, state))
    }

    fn wait_until_back(&mut self) -> Result<Option<Duration>> {
        let back = self.wait_until_redundant(Duration::from_secs(120))?;
        self.all_alive()?;
        Ok(Some(back))
    }
}

/// Measures a layout in one state, on a cluster of its own: how long a brick stays out depends on how often it has been.
pub(super) fn measure(binary: &Path, layout: &str, state: State, plan: &Plan) -> Result<Writes> {
    let mut cluster = cluster(binary, layout, plan)?;
    in_state(&mut cluster, layout, state, plan)
        .with_context(|| format!("{layout} written, one brick {}", state.name()))
}

/// Measures a cluster in one state.
pub(super) fn in_state<C: Written>(
    cluster: &mut C,
    layout: &str,
    state: State,
    plan: &Plan,
) -> Result<Writes> {
    let load = cluster.writes();
    let (span, within) =
        (plan.write_span, if state == State::Healthy { Duration::ZERO } else { C::LEAVES_WITHIN });
    let awake = Awake::begin()?;
    let paced = load.start(JOBS, WRITE_RATE, span + within + span)?;
    sleep(span);
    let ill = paced.began.elapsed();
    let trouble = state.begin(cluster)?;
    let (noticed, left) = watch(cluster, state)?;
    let samples = paced.finish()?;
    awake.end()?;
    let end = span + within + span;
    let out = left.map_or(end, |left| ill + left + AFTER);
    let before = Percentiles::of(&samples, Duration::ZERO, ill);
    let after = match state {
        State::Healthy => Percentiles::of(&samples, ill, end),
        _ => Percentiles::of(&samples, out, end),
    };
    let iops = load.throughput(DEPTH, plan.closed_span, plan.turns)?;
    let stays_out = cluster.is_out(state)?.1;
    trouble.end(cluster)?;
    let back = cluster.wait_until_back()?;
    Ok(Writes {
        layout: layout.to_owned(),
        state,
        before,
        during: Percentiles::of(&samples, ill, out.min(end)),
        first: Percentiles::of(&samples, ill, ill + FIRST),
        later: Percentiles::of(&samples, ill + FIRST, end),
        after,
        noticed,
        left,
        iops,
        stays_out,
        back: back.filter(|_| state != State::Healthy),
    })
}

/// Waits until the server is held for slow, and until it has left.
fn watch<C: Written>(cluster: &C, state: State) -> Result<(Option<Duration>, Option<Duration>)> {
    let began = Instant::now();
    let (mut noticed, mut left) = (None, None);
    while state != State::Healthy && left.is_none() && began.elapsed() < C::LEAVES_WITHIN {
        let (is_slow, is_left) = cluster.is_out(state)?;
        let now = began.elapsed();
        noticed = noticed.or(is_slow.then_some(now));
        left = left.or(is_left.then_some(now));
        sleep(POLL);
    }
    Ok((noticed, left))
}

/// Whether a brick is held for slow, and whether it is in no group any more, having left for the first time.
fn is_out(status: &Value, id: &str, state: State) -> (bool, bool) {
    let brick = of_brick(status, id);
    let slow = &brick["slow"];
    let is_gone = brick["stale_groups"] == brick["groups"] && brick["joining_groups"] == 0;
    let is_slow = slow["left_out"] == true;
    (is_slow, is_gone && (!state.is_slow() || (is_slow && slow["relapses"] == 0)))
}
