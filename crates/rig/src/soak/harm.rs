//! What is done to whom in a round: drawn as values first, so that it can be told, then carried out in order of time.

use anyhow::Result;
use base::Rng;
use rig::cluster::Cluster;
use rustix::process::Signal;
use std::fmt;
use std::time::{Duration, Instant};

/// Harm begins within so many milliseconds of a round's begin.
const BEGIN_MS: std::ops::Range<u64> = 0..400;
/// How long a daemon stands still, in milliseconds, and how often of ten times: about a brick's lease (0.3 s) and the silence that
/// is allowed (0.5 s), about the longest lease, and long after.
const PAUSES: [(u32, std::ops::Range<u64>); 3] = [(6, 20..1000), (3, 1000..5000), (1, 5000..20_000)];
/// How long a daemon that ended stays away, likewise.
const ABSENCES: [(u32, std::ops::Range<u64>); 3] = [(6, 0..800), (3, 800..3000), (1, 3000..8000)];

/// What is done to a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Harm {
    /// SIGKILL, and started again later.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Pause,
    /// SIGTERM, and started again later.
    Restart,
}

/// A daemon, and what is done to it.
#[derive(Clone, Debug)]
pub(super) struct Blow {
    pub(super) name: String,
    pub(super) harm: Harm,
    begin_ms: u64,
    end_ms: u64,
}

/// All that is done in a round.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) blows: Vec<Blow>,
}

impl Round {
    /// Draws a round: at least one daemon is hurt, and at most `spare` bricks.
    pub(super) fn draw(names: &[String], spare: usize, rng: &mut Rng) -> Round {
        let of = |role: &str| names.iter().filter(|name| name.starts_with(role)).cloned().collect::<Vec<_>>();
        let (bricks, gateways) = (of("brick"), of("gateway"));
        loop {
            let hurt_bricks = if rng.u32(0..10) < 7 { rng.usize(0..=spare.min(bricks.len())) } else { 0 };
            let hurt_gateways = if rng.u32(0..10) < 4 { rng.usize(1..=gateways.len()) } else { 0 };
            let mut names = choose(&bricks, hurt_bricks, rng);
            names.extend(choose(&gateways, hurt_gateways, rng));
            let directory = (rng.u32(0..10) < 3).then(|| "directory".to_owned());
            let blows: Vec<Blow> = names.iter().chain(&directory).map(|name| Blow::draw(name, rng)).collect();
            if !blows.is_empty() {
                return Round { blows };
            }
        }
    }

    /// Does it; returns when every daemon has been told to go on or started again.
    pub(super) fn run(&self, cluster: &mut Cluster) -> Result<()> {
        let begins = self.blows.iter().map(|blow| (blow.begin_ms, false, blow));
        let mut moments: Vec<(u64, bool, &Blow)> =
            begins.chain(self.blows.iter().map(|blow| (blow.end_ms, true, blow))).collect();
        moments.sort_by_key(|&(at, over, _)| (at, over));
        let start = Instant::now();
        for (at, over, blow) in moments {
            let moment = start + Duration::from_millis(at);
            std::thread::sleep(moment.saturating_duration_since(Instant::now()));
            if over { blow.end(cluster)? } else { blow.begin(cluster)? }
        }
        Ok(())
    }
}

impl Blow {
    fn draw(name: &str, rng: &mut Rng) -> Blow {
        let (harm, lengths) = match rng.u32(0..10) {
            0..5 => (Harm::Kill, &ABSENCES),
            5..9 => (Harm::Pause, &PAUSES),
            _ => (Harm::Restart, &ABSENCES),
        };
        let begin_ms = rng.u64(BEGIN_MS);
        Blow { name: name.to_owned(), harm, begin_ms, end_ms: begin_ms + length_ms(lengths, rng) }
    }

    /// For how long, in milliseconds.
    pub(super) fn length_ms(&self) -> u64 {
        self.end_ms - self.begin_ms
    }

    fn begin(&self, cluster: &mut Cluster) -> Result<()> {
        match self.harm {
            Harm::Kill => cluster.daemon(&self.name)?.kill(),
            Harm::Pause => cluster.daemon(&self.name)?.signal(Signal::STOP),
            Harm::Restart => cluster.daemon(&self.name)?.stop().map(drop),
        }
    }

    fn end(&self, cluster: &mut Cluster) -> Result<()> {
        match self.harm {
            Harm::Kill | Harm::Restart => cluster.daemon(&self.name)?.start_again(),
            Harm::Pause => cluster.daemon(&self.name)?.signal(Signal::CONT),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, blow) in self.blows.iter().enumerate() {
            let how = match blow.harm {
                Harm::Kill => "SIGKILL",
                Harm::Pause => "SIGSTOP",
                Harm::Restart => "SIGTERM",
            };
            let (between, seconds) = (if index > 0 { ", " } else { "" }, blow.length_ms() as f64 / 1000.0);
            write!(out, "{between}{how} {} for {seconds:.1} s", blow.name)?;
        }
        Ok(())
    }
}

fn choose(names: &[String], count: usize, rng: &mut Rng) -> Vec<String> {
    let mut left = names.to_vec();
    rng.shuffle(&mut left);
    left.truncate(count);
    left
}

fn length_ms(lengths: &[(u32, std::ops::Range<u64>)], rng: &mut Rng) -> u64 {
    let mut draw = rng.u32(0..lengths.iter().map(|(weight, _)| weight).sum());
    for (weight, range) in lengths {
        match draw.checked_sub(*weight) {
            Some(left) => draw = left,
            None => return rng.u64(range.clone()),
        }
    }
    unreachable!("a draw below the sum of the weights meets one of them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn names() -> Vec<String> {
        let bricks = (1..=7).map(|number| format!("brick-{number}"));
        bricks.chain(["gateway-1", "gateway-2", "directory", "attach-mirror"].map(str::to_owned)).collect()
    }

    #[test]
    fn rounds_spare_what_layouts_need_and_hurt_all_roles_in_all_ways() {
        let mut rng = Rng::with_seed(1);
        let mut seen = BTreeSet::new();
        for spare in (0..=2).cycle().take(600) {
            let round = Round::draw(&names(), spare, &mut rng);
            let hurt: BTreeSet<&str> = round.blows.iter().map(|blow| blow.name.as_str()).collect();
            let bricks = hurt.iter().filter(|name| name.starts_with("brick")).count();
            assert!(!hurt.is_empty() && hurt.len() == round.blows.len() && bricks <= spare, "{round}");
            assert!(round.blows.iter().all(|blow| blow.length_ms() < 20_000), "{round}");
            seen.extend(round.blows.iter().map(|blow| (blow.name[..5].to_owned(), blow.harm as u8)));
        }
        assert_eq!(seen.len(), 9, "{seen:?}");
    }
}
