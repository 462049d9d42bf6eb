//! What clients of streams ask, and what they see.

use anyhow::Result;
use rig::cluster::Cluster;
use rig::load::steady::{Arrivals, Running, Sample, Steady};
use std::time::{Duration, Instant};

/// A connection to a volume through a gateway, that asks for 4 KiB at a time.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) volume: String,
    /// Counted from 0.
    pub(super) gateway: usize,
    pub(super) arrivals: Arrivals,
    pub(super) read_percent: u64,
}

impl Client {
    /// Reads of 4 KiB.
    pub(super) fn reads(volume: &str, gateway: usize, arrivals: Arrivals) -> Client {
        Client { volume: volume.to_owned(), gateway, arrivals, read_percent: 100 }
    }
}

/// Clients at work.
pub(super) struct Load(Vec<Running>);

impl Load {
    pub(super) fn start(cluster: &Cluster, clients: &[Client], epoch: Instant) -> Result<Load> {
        let start = |(number, client): (u64, &Client)| {
            let &Client { gateway, arrivals, read_percent, .. } = client;
            let tag = Load::tag(&client.volume);
            let steady = Steady { arrivals, blocks: [1; 2], read_percent, seed: number + 1, tag };
            steady.start(cluster.connect(gateway, &client.volume)?, epoch)
        };
        (0..).zip(clients).map(start).collect::<Result<_>>().map(Load)
    }

    /// What names a volume in its blocks.
    pub(super) fn tag(volume: &str) -> u64 {
        volume.bytes().fold(1, |tag, byte| tag * 31 + u64::from(byte))
    }

    /// Waits; for less, if a client ends because something went wrong.
    pub(super) fn run(&self, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end && !self.0.iter().any(Running::is_over) {
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Ends it: what each client saw, or what went wrong.
    pub(super) fn finish(self) -> Result<Vec<Seen>> {
        self.0.into_iter().map(|client| client.finish().map(Seen)).collect()
    }
}

/// The answers that a client got.
pub(super) struct Seen(Vec<Sample>);

impl Seen {
    fn within(&self, from: Duration, until: Duration) -> impl Iterator<Item = &Sample> {
        self.0.iter().filter(move |sample| sample.at >= from && sample.at < until)
    }

    /// Answers between two moments.
    pub(super) fn count(&self, from: Duration, until: Duration) -> usize {
        self.within(from, until).count()
    }

    /// Answers a second between two moments.
    pub(super) fn rate(&self, from: Duration, until: Duration) -> f64 {
        self.count(from, until) as f64 / (until - from).as_secs_f64()
    }

    /// The time in milliseconds that this share of the answers between two moments did not exceed.
    pub(super) fn percentile_ms(&self, share: f64, from: Duration, until: Duration) -> f64 {
        let mut took: Vec<Duration> = self.within(from, until).map(|sample| sample.took).collect();
        took.sort_unstable();
        let rank = (took.len() as f64 * share).ceil() as usize;
        let found = took.get(rank.clamp(1, took.len().max(1)) - 1);
        found.map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }

    /// The most answers in any stretch of time so long, that lies between two moments.
    pub(super) fn most_in_any(&self, stretch: Duration, from: Duration, until: Duration) -> usize {
        let mut at: Vec<Duration> = self.within(from, until).map(|sample| sample.at).collect();
        at.sort_unstable();
        let within =
            |(first, from): (usize, &Duration)| at[first..].partition_point(|at| *at < *from + stretch);
        at.iter().enumerate().map(within).max().unwrap_or(0)
    }
}

/// How far the worst of these is from its part by weight, as a part of that.
pub(super) fn share_error(got: &[f64], weights: &[f64]) -> f64 {
    let (all, weight): (f64, f64) = (got.iter().sum(), weights.iter().sum());
    let error = |(got, due): (&f64, &f64)| (got / all / (due / weight) - 1.0).abs();
    got.iter().zip(weights).map(error).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn answers_are_counted_in_any_stretch() {
        let seen = Seen((0..100).map(|n| Sample { at: MS * n * n, took: MS * n, blocks: 1 }).collect());
        assert_eq!(seen.most_in_any(MS * 100, Duration::ZERO, MS * 10_000), 10);
        assert_eq!(seen.count(MS * 100, MS * 400), 10);
        assert!((seen.rate(Duration::ZERO, MS * 10_000) - 10.0).abs() < 1e-9);
        assert!((seen.percentile_ms(0.5, Duration::ZERO, MS * 10_000) - 49.0).abs() < 1e-9);
        assert!(seen.percentile_ms(0.5, MS * 20_000, MS * 30_000).is_nan());
    }

    #[test]
    fn the_worst_share_is_judged_by_what_is_due_to_it() {
        assert!(share_error(&[100.0, 200.0, 400.0], &[1.0, 2.0, 4.0]) < 1e-9);
        assert!((share_error(&[110.0, 200.0, 390.0], &[1.0, 2.0, 4.0]) - 0.1).abs() < 1e-9);
    }
}
