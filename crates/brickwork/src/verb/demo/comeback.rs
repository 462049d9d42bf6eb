//! The killed brick comes back: it fetches what it missed, and nothing else.

use crate::verb::watch::Fetched;
use crate::{output, view};
use anyhow::{Context, Result};
use rig::cluster::Cluster;
use std::time::{Duration, Instant};

/// How long the brick may take. It has a few thousand blocks to fetch.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bricks say how far they are a few times a second.
const LOOK: Duration = Duration::from_millis(100);

/// How the brick came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Comeback {
    /// From its start until all data were redundant; none when they were not in time.
    pub(super) took: Option<Duration>,
    pub(super) fetched_bytes: u64,
    pub(super) held_bytes: u64,
}

/// Starts the brick again, and waits until every volume has its full redundancy.
pub(super) fn run(cluster: &mut Cluster, name: &str) -> Result<Comeback> {
    let mut fetched = Fetched::default();
    fetched.note(&cluster.health()?);
    let start = Instant::now();
    cluster.daemon(name)?.restart()?;
    let bar = output::progress(100, &format!("{name} catches up"), false);
    loop {
        let status = cluster.health()?;
        fetched.note(&status);
        let brick = status.bricks.iter().find(|brick| brick.id.to_string() == name);
        let brick = brick.with_context(|| format!("the directory forgot {name}"))?;
        bar.set_position(view::caught_up(brick).unwrap_or_default());
        // It is as it was before its death until the directory hears of it again.
        let is_done = brick.alive && view::is_redundant(&status);
        if is_done || start.elapsed() > PATIENCE {
            bar.finish_and_clear();
            return Ok(Comeback {
                took: is_done.then(|| start.elapsed()),
                fetched_bytes: fetched.bytes(),
                held_bytes: brick.status.space.used_bytes,
            });
        }
        std::thread::sleep(LOOK);
        cluster.all_alive()?;
    }
}
