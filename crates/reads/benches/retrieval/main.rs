//! What the best choice for a request costs, in one run beside others' ways to it: the greedy choice, the published integrated
//! push-relabel, and one maximum flow of OR-tools at the last arrival that is known already.
//!
//! ```text
//! cargo bench -p brickwork-reads --bench retrieval
//! ```
//!
//! Each answers the same 32 requests in turns, many times; what counts is the fastest time, of each request or of all where they are
//! small. Push-relabel must find the solver's last arrival for each request. OR-tools is installed from PyPI below the target folder, if Python can do that.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod drawn;
#[path = "../filter/mod.rs"]
mod filter;
mod json;
mod online;
mod ortools;
mod push_relabel;

use base::Rng;
use drawn::{Instance, Shape};
use online::Online;
use ortools::Ortools;
use push_relabel::PushRelabel;
use reads::distribute::retrieval::{Disk, Fairness, Plan, Request, Solver};
use std::time::{Duration, Instant};

/// Requests of each row.
const INSTANCES: usize = 32;
/// At least so many rounds over them, and more until this time has been measured.
const ROUNDS_MIN: u32 = 8;
const MEASURED: Duration = Duration::from_millis(60);
/// Requests of so many buckets are timed one by one.
const TIMED_ALONE: usize = 512;
/// The seed of all instances.
const SEED: u64 = 1;

fn main() {
    if !filter::is_asked_for("retrieval") {
        return;
    }
    let mut ortools = Ortools::start();
    println!(
        "microseconds a request; the mean of {INSTANCES} drawn requests, the fastest of several rounds; seed {SEED}"
    );
    println!(
        "disks: all of 13.2 ms a bucket, or mixed of 13.2, 8.3, 6.1, 0.5 and 0.2 ms; idle, or loaded with up to 8 buckets of their own"
    );
    println!(
        "solver, push-relabel: the optimum. online: greedy, and by how much it is later than the optimum in the mean"
    );
    match &ortools {
        Ok(_) => println!(
            "OR-tools: one maximum flow at the optimum that is known already; to add its arcs is not timed"
        ),
        Err(reason) => println!("OR-tools: not measured ({reason})"),
    }
    let mut random = Rng::with_seed(SEED);
    for (is_mixed, is_loaded) in [(false, false), (true, false), (false, true), (true, true)] {
        let kind = if is_mixed { "mixed" } else { "homogeneous" };
        let load = if is_loaded { "loaded" } else { "idle" };
        println!("\n{kind} disks, {load}");
        println!(
            "{:>7} {:>6} {:>5} | {:>7} {:>7} {:>5} {:>12} {:>8} | {:>12} {:>15}",
            "buckets",
            "copies",
            "disks",
            "solver",
            "online",
            "later",
            "push-relabel",
            "OR-tools",
            "p.-r./solver",
            "OR-tools/solver"
        );
        for buckets in [8, 64, 512, 4096] {
            for disks in [100, 1000] {
                for copies in 2..=5 {
                    let shape = Shape { buckets, copies, needed: 1, disks, is_mixed, is_loaded };
                    row(&shape, &mut random, ortools.as_mut().ok());
                }
            }
        }
    }
    replanning(&mut random);
}

/// What a few buckets more cost where a plan is kept, beside the solution of all that waits then.
fn replanning(random: &mut Rng) {
    println!("\na plan that is kept, 100 mixed disks, 3 copies: microseconds for so many buckets more");
    println!("{:>8} | {:>7} {:>7} {:>7} | {:>20}", "waiting", "1", "8", "64", "all, from the start");
    for buckets in [64, 512, 4096] {
        let shape = Shape { buckets, copies: 3, needed: 1, disks: 100, is_mixed: true, is_loaded: false };
        let first = shape.draw(random);
        let mut plan = Plan::new(&first.disks, Fairness::Promise);
        plan.ask(&first.request, 0, &mut Vec::new(), &mut Vec::new());
        let [one, few, many] =
            [1, 8, 64].map(|more| replanned_us(&plan, Shape { buckets: more, ..shape }, random));
        let (mut solver, mut chosen) = (Solver::default(), Vec::new());
        let all = fastest_us(&[(first, 0)], |disks, request| solver.solve(disks, request, &mut chosen));
        println!("{buckets:>8} | {one:>7.2} {few:>7.2} {many:>7.2} | {all:>20.2}");
    }
}

/// The mean time of a request of this shape that comes to a plan.
fn replanned_us(plan: &Plan, shape: Shape, random: &mut Rng) -> f64 {
    let (mut waiting, mut moves) = (Vec::new(), Vec::new());
    let mut fastest = |request: &Request| {
        let rounds = (0..ROUNDS_MIN).map(|_| {
            let mut kept = plan.clone();
            let began = Instant::now();
            std::hint::black_box(kept.ask(request, 0, &mut waiting, &mut moves));
            let took = began.elapsed();
            moves.clear();
            took
        });
        rounds.min().unwrap_or_default().as_secs_f64() * 1e6
    };
    let requests = (0..INSTANCES).map(|_| shape.draw(random).request);
    requests.map(|request| fastest(&request)).sum::<f64>() / INSTANCES as f64
}

fn row(shape: &Shape, random: &mut Rng, ortools: Option<&mut Ortools>) {
    let (mut solver, mut push_relabel, mut online) =
        (Solver::default(), PushRelabel::default(), Online::default());
    let (mut chosen, mut later) = (Vec::new(), 0.0);
    let mut instances: Vec<(Instance, u64)> = Vec::new();
    for _ in 0..INSTANCES {
        let instance = shape.draw(random);
        let Instance { disks, request } = &instance;
        let last_ns = solver.solve(disks, request, &mut chosen);
        assert_eq!(last_ns, push_relabel.solve(disks, request, &mut chosen), "of two optima of {shape:?}");
        assert!(request.is_possible(&chosen) && request.finish_ns(disks, &chosen) == last_ns, "{shape:?}");
        later += online.choose(disks, request, &mut chosen) as f64 / last_ns as f64 - 1.0;
        instances.push((instance, last_ns));
    }
    let ours = fastest_us(&instances, |disks, request| solver.solve(disks, request, &mut chosen));
    let greedy = fastest_us(&instances, |disks, request| online.choose(disks, request, &mut chosen));
    let published = fastest_us(&instances, |disks, request| push_relabel.solve(disks, request, &mut chosen));
    let theirs = ortools.map(|ortools| ortools.microseconds(&instances));
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let Shape { buckets, copies, disks, .. } = shape;
    println!(
        "{buckets:>7} {copies:>6} {disks:>5} | {ours:>7.2} {greedy:>7.2} {:>4.1}% {published:>12.1} {:>8} | {:>12.1} {:>15}",
        100.0 * later / INSTANCES as f64,
        shown(theirs),
        published / ours,
        shown(theirs.map(|theirs| theirs / ours)),
    );
}

/// The mean time of a request, of the fastest rounds.
fn fastest_us(instances: &[(Instance, u64)], mut solve: impl FnMut(&[Disk], &Request) -> u64) -> f64 {
    // The clock takes 30 ns: small requests are timed together. Large ones are timed one by one, because other programs seldom leave the
    // processor alone for all of them.
    let together = if instances[0].0.request.len() < TIMED_ALONE { INSTANCES } else { 1 };
    let mut fastest = vec![Duration::MAX; instances.len().div_ceil(together)];
    let (mut measured, mut rounds) = (Duration::ZERO, 0);
    while rounds < ROUNDS_MIN || measured < MEASURED {
        for (part, fastest) in instances.chunks(together).zip(&mut fastest) {
            let began = Instant::now();
            for (Instance { disks, request }, _) in part {
                std::hint::black_box(solve(disks, request));
            }
            let took = began.elapsed();
            *fastest = took.min(*fastest);
            measured += took;
        }
        rounds += 1;
    }
    fastest.iter().sum::<Duration>().as_secs_f64() * 1e6 / instances.len() as f64
}
