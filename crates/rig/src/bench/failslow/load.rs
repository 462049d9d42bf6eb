//! Load from outside: jobs of depth 1 that arrive by a Poisson process whatever became of those before (an *open* loop), and
//! a closed loop for throughput.
//!
//! Latency counts from the moment at which a request was to be made. fio counts from when it is made: a job that waits
//! for its last answer makes nothing in the meantime, and the stall that a client would see is one slow answer there.
//! By how much an idle job woke too late is the load's own lateness: it is told apart, and not counted. Each run asks for
//! other blocks at other moments than those before it: what one has left in the caches is not what the next one measures.

use super::super::mean::Mean;
use anyhow::{Context, Result, anyhow};
use rig::nbd::Nbd;
use rig::noise::Noise;
use serde_json::{Value, json};
use std::cell::Cell;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Requests that were to be made and are not when this much has passed since the last arrival count as lasting until then.
const PATIENCE: Duration = Duration::from_secs(20);

/// What jobs do, anywhere in the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
}

/// A request: when it was to be made, since the beginning, and how long its client waited.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: Duration,
    pub(super) took: Duration,
    /// How late the load itself was.
    pub(super) overslept: Duration,
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Percentiles {
    pub(super) samples: usize,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) most_ms: f64,
    /// How late the load itself was, at the 99th percentile.
    pub(super) overslept_ms: f64,
}

impl Percentiles {
    /// Of the requests that were to be made between two moments.
    pub(super) fn of(samples: &[Sample], from: Duration, until: Duration) -> Percentiles {
        let within = || samples.iter().filter(|sample| sample.at >= from && sample.at < until);
        let took = sorted(within().map(|sample| sample.took));
        let overslept = sorted(within().map(|sample| sample.overslept));
        Percentiles {
            samples: took.len(),
            p50_ms: at(&took, 0.5),
            p99_ms: at(&took, 0.99),
            p999_ms: at(&took, 0.999),
            most_ms: at(&took, 1.0),
            overslept_ms: at(&overslept, 0.99),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "requests": self.samples, "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "p999_ms": self.p999_ms,
            "most_ms": self.most_ms, "load_late_p99_ms": self.overslept_ms,
        })
    }
}

fn sorted(times: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times
}

/// The time that `part` of all do not exceed, in milliseconds; 0 of none.
fn at(sorted: &[Duration], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// Where and what.
pub(super) struct Load {
    /// `tcp:HOST:PORT` or `unix:/PATH`.
    endpoint: String,
    volume: String,
    kind: Kind,
    /// Of each request.
    bytes: u32,
    runs: Cell<u64>,
}

/// Paced jobs that run.
pub(super) struct Paced {
    /// When they began.
    pub(super) began: Instant,
    jobs: Vec<JoinHandle<Result<Vec<Sample>>>>,
}

impl Paced {
    /// All requests, once the jobs are done.
    pub(super) fn finish(self) -> Result<Vec<Sample>> {
        let mut all = Vec::new();
        for job in self.jobs {
            all.append(&mut job.join().map_err(|_| anyhow!("a job of the load panicked"))??);
        }
        Ok(all)
    }
}

impl Load {
    /// Does `kind` to the volume of that name, so many bytes at a time. Loads from new make the same runs one after the other.
    pub(super) fn new(endpoint: String, volume: &str, kind: Kind, bytes: u32) -> Load {
        Load { endpoint, volume: volume.to_owned(), kind, bytes, runs: Cell::new(0) }
    }

    /// Draws for the jobs of the next run.
    fn next_run(&self) -> impl Fn(usize) -> Noise + use<> {
        let run = self.runs.replace(self.runs.get() + 1);
        move |job| Noise::new(run << 16 | (job as u64 + 1))
    }

    /// Starts jobs that together ask `rate` times a second.
    pub(super) fn start(&self, jobs: u64, rate: f64, span: Duration) -> Result<Paced> {
        let connections = (0..jobs).map(|_| self.connect()).collect::<Result<Vec<_>>>()?;
        let noise = self.next_run();
        let began = Instant::now();
        let mean = Duration::from_secs_f64(jobs as f64 / rate);
        let start = |(job, nbd): (usize, Nbd)| {
            let mut job =
                Job { nbd, kind: self.kind, noise: noise(job), buffer: vec![0; self.bytes as usize] };
            thread::spawn(move || job.paced(began, mean, span))
        };
        Ok(Paced { began, jobs: connections.into_iter().enumerate().map(start).collect() })
    }

    /// Runs paced jobs to their end.
    pub(super) fn paced(&self, jobs: u64, rate: f64, span: Duration) -> Result<Percentiles> {
        let samples = self.start(jobs, rate, span)?.finish()?;
        Ok(Percentiles::of(&samples, Duration::ZERO, span))
    }

    /// Requests a second with so many under way all the time: of several runs of that span, as one tells a fifth at best.
    pub(super) fn throughput(&self, depth: u64, span: Duration, runs: usize) -> Result<Mean> {
        let runs = (0..runs).map(|_| self.closed(depth, span)).collect::<Result<Vec<_>>>()?;
        Ok(Mean::of(&runs))
    }

    /// Requests a second of one run.
    pub(super) fn closed(&self, depth: u64, span: Duration) -> Result<f64> {
        let connections = (0..depth).map(|_| self.connect()).collect::<Result<Vec<_>>>()?;
        let noise = self.next_run();
        let began = Instant::now();
        let start = |(job, nbd): (usize, Nbd)| {
            let mut job =
                Job { nbd, kind: self.kind, noise: noise(job), buffer: vec![0; self.bytes as usize] };
            thread::spawn(move || -> Result<u64> {
                let mut done = 0;
                while began.elapsed() < span {
                    job.ask()?;
                    done += 1;
                }
                Ok(done)
            })
        };
        let jobs: Vec<_> = connections.into_iter().enumerate().map(start).collect();
        let mut done = 0;
        for job in jobs {
            done += job.join().map_err(|_| anyhow!("a job of the load panicked"))??;
        }
        Ok(done as f64 / began.elapsed().as_secs_f64())
    }

    /// Writes all of the volume once.
    pub(super) fn fill(&self, bytes: u64) -> Result<()> {
        let mut nbd = self.connect()?;
        let chunk = Noise::new(99).bytes(1 << 20);
        for offset in (0..bytes).step_by(chunk.len()) {
            nbd.write(offset, &chunk[..chunk.len().min((bytes - offset) as usize)])?;
        }
        Ok(())
    }

    fn connect(&self) -> Result<Nbd> {
        Nbd::open(&self.endpoint, &self.volume).context("connecting a job of the load")
    }
}

struct Job {
    nbd: Nbd,
    kind: Kind,
    noise: Noise,
    buffer: Vec<u8>,
}

impl Job {
    fn paced(&mut self, began: Instant, mean: Duration, span: Duration) -> Result<Vec<Sample>> {
        let (mut samples, mut at) = (Vec::new(), self.noise.gap(mean));
        while at < span {
            let idle = (began + at).saturating_duration_since(Instant::now());
            thread::sleep(idle);
            let overslept = if idle.is_zero() { idle } else { began.elapsed().saturating_sub(at) };
            if began.elapsed() < span + PATIENCE {
                self.ask()?;
            }
            let took = began.elapsed().saturating_sub(at + overslept);
            samples.push(Sample { at, took, overslept });
            at += self.noise.gap(mean);
        }
        Ok(samples)
    }

    fn ask(&mut self) -> Result<()> {
        let bytes = self.buffer.len() as u64;
        let offset = self.noise.below(self.nbd.size / bytes) * bytes;
        match self.kind {
            Kind::Read => self.nbd.read(offset, bytes as u32).map(drop),
            Kind::Write => {
                self.noise.fill(&mut self.buffer);
                self.nbd.write(offset, &self.buffer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_jobs_and_no_two_runs_ask_alike() {
        let load = Load::new(String::new(), "v", Kind::Read, 4096);
        let runs: Vec<_> = (0..4).map(|_| load.next_run()).collect();
        let jobs = runs.iter().flat_map(|noise| (0..16).map(|job| noise(job).draw()));
        assert_eq!(jobs.collect::<std::collections::BTreeSet<u64>>().len(), 64);
    }

    #[test]
    fn percentiles_are_of_the_requests_in_between() {
        let millis = Duration::from_millis;
        let samples: Vec<Sample> = (0..1000)
            .map(|n| Sample { at: millis(n), took: millis(1 + n / 100), overslept: millis(n / 990) })
            .collect();
        let all = Percentiles::of(&samples, millis(0), millis(1000));
        assert_eq!((all.samples, all.p50_ms, all.p99_ms, all.most_ms), (1000, 5.0, 10.0, 10.0));
        assert_eq!(all.overslept_ms, 0.0);
        let first = Percentiles::of(&samples, millis(0), millis(100));
        assert_eq!((first.samples, first.p99_ms), (100, 1.0));
        assert_eq!(Percentiles::of(&[], millis(0), millis(9)), Percentiles::default());
    }
}
