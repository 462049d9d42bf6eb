//! Events through a queue that stays as long as it is.

use crate::per_second;
use base::{Rng, Time};
use sim::EventQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much later an event comes back, in nanoseconds.
type Increments = (&'static str, fn(&mut Rng) -> f64);

const MEAN_NS: f64 = 1e6;

const INCREMENTS: &[Increments] = &[
    ("exponential", |rng| -MEAN_NS * (1.0 - rng.f64()).ln()),
    ("uniform", |rng| 2.0 * MEAN_NS * rng.f64()),
    ("bimodal", |rng| if rng.f64() < 0.9 { 0.1 * MEAN_NS * rng.f64() } else { MEAN_NS * (9.0 + rng.f64()) }),
    ("heavy tail", |rng| 0.1 * MEAN_NS * (1.0 - rng.f64()).powf(-1.0 / 1.1)),
    ("half at once", |rng| if rng.bool() { 0.0 } else { 4.0 * MEAN_NS * rng.f64() }),
    ("constant", |_| MEAN_NS),
];

/// Drawn before the time is taken.
const DRAWN: usize = 1 << 16;

/// What an event of a simulation weighs: what happens, and to whom.
type Event = [u64; 2];

/// Prints the table.
pub(crate) fn bench() {
    println!("queue of events: millions of (pop, push) a processor second");
    println!(
        "{:>9}  {:<13} {:>12} {:>12} {:>7}",
        "pending", "increments", "this queue", "binary heap", "ratio"
    );
    for pending in [1_000, 30_000, 1_000_000] {
        for (name, draw) in INCREMENTS {
            let mut rng = Rng::with_seed(1);
            let drawn: Vec<u64> = (0..DRAWN).map(|_| draw(&mut rng) as u64).collect();
            let this = hold_queue(pending, &drawn);
            print!("{pending:>9}  {name:<13} {:>12.1}", this / 1e6);
            // The heap takes its time; one distribution is enough to compare.
            if *name == "exponential" {
                let heap = hold_heap(pending, &drawn);
                print!(" {:>12.1} {:>7.1}", heap / 1e6, this / heap);
            }
            println!();
        }
    }
    println!();
}

fn hold_queue(pending: usize, drawn: &[u64]) -> f64 {
    let mut queue = EventQueue::<Event>::new();
    let mut next = 0;
    let mut later = |at: u64| {
        next += 1;
        Time(at + drawn[next % DRAWN])
    };
    (0..pending).for_each(|event| queue.push(later(0), [event as u64; 2]));
    let mut hold = |times: u64| {
        for _ in 0..times {
            let (at, event) = queue.pop().expect("it stays as long as it is");
            queue.push(later(at.0), event);
        }
    };
    // Until the queue has the shape that it keeps.
    hold(2 * pending as u64);
    per_second(hold)
}

fn hold_heap(pending: usize, drawn: &[u64]) -> f64 {
    // The order of pushing at one moment needs a number.
    let mut heap = BinaryHeap::<Reverse<(u64, u64, Event)>>::new();
    let (mut next, mut pushed) = (0, 0);
    let mut later = |at: u64| {
        next += 1;
        at + drawn[next % DRAWN]
    };
    (0..pending).for_each(|event| heap.push(Reverse((later(0), event as u64, [event as u64; 2]))));
    pushed += pending as u64;
    let mut hold = |times: u64| {
        for _ in 0..times {
            let Reverse((at, _, event)) = heap.pop().expect("it stays as long as it is");
            pushed += 1;
            heap.push(Reverse((later(at), pushed, event)));
        }
    };
    hold(2 * pending as u64);
    per_second(hold)
}
