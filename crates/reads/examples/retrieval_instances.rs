//! Writes drawn requests with the last arrivals that the solver finds, for `tests/retrieval/check.py` to judge.
//!
//! ```text
//! cargo run --profile ci -p brickwork-reads --example retrieval_instances -- copies FILE [SEED]
//! cargo run --profile ci -p brickwork-reads --example retrieval_instances -- coded FILE [SEED]
//! ```
//!
//! `copies`: 1,000 requests of up to 4,096 buckets with 2 to 5 copies on 100 or 1,000 disks. `coded`: 300 requests of up to 30 buckets
//! that are read from any k of n holders among 12 disks.

#[path = "../benches/retrieval/drawn.rs"]
mod drawn;
#[path = "../benches/retrieval/json.rs"]
mod json;

use base::Rng;
use drawn::Shape;
use reads::distribute::retrieval::Solver;
use std::fmt::Write;

const USAGE: &str = "retrieval_instances copies|coded FILE [SEED]";
const COPIES: u64 = 1_000;
const CODED: u64 = 300;
/// The most buckets of requests by turns: one request in eight is as large as the largest may be, or nearly.
const BUCKETS_MAX: [u64; 8] = [64, 128, 256, 512, 512, 1_024, 2_048, 4_096];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file, rest @ ..] = &words[..] else { panic!("{USAGE}") };
    let seed = rest.first().map_or(1, |word| word.parse().expect(USAGE));
    let mut random = Rng::with_seed(seed);
    let shapes: Vec<Shape> = match kind.as_str() {
        "copies" => (0..COPIES).map(|number| copies(number, &mut random)).collect(),
        "coded" => (0..CODED).map(|_| coded(&mut random)).collect(),
        _ => panic!("{USAGE}"),
    };
    let (mut solver, mut chosen, mut text) = (Solver::default(), Vec::new(), String::new());
    for shape in shapes {
        let instance = shape.draw(&mut random);
        let last_ns = solver.solve(&instance.disks, &instance.request, &mut chosen);
        assert!(instance.request.is_possible(&chosen), "{shape:?}: {chosen:?}");
        assert_eq!(instance.request.finish_ns(&instance.disks, &chosen), last_ns, "{shape:?}");
        writeln!(text, "{}", json::line(&instance, last_ns)).expect("text takes all");
    }
    std::fs::write(file, text).expect("the file can be written");
}

fn copies(number: u64, random: &mut Rng) -> Shape {
    let most = BUCKETS_MAX[number as usize % BUCKETS_MAX.len()];
    Shape {
        buckets: random.u64(most - most / 4..=most) as u32,
        copies: random.u64(2..=5) as u32,
        needed: 1,
        disks: if random.bool() { 100 } else { 1_000 },
        is_mixed: random.bool(),
        is_loaded: random.bool(),
    }
}

fn coded(random: &mut Rng) -> Shape {
    let copies = random.u64(3..=8) as u32;
    Shape {
        buckets: random.u64(1..=30) as u32,
        copies,
        needed: random.u64(2..u64::from(copies)) as u32,
        disks: 12,
        is_mixed: random.bool(),
        is_loaded: random.bool(),
    }
}
