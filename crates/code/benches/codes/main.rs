//! How fast the codes are on one core, and how many symbols more than blocks they need: `cargo bench -p brickwork-code`. All is
//! measured in one run beside memcpy, ISA-L (if Debian's `libisal2` is installed), reed-solomon-simd and raptorq.
//!
//! `-- --json` prints one object a line, `-- --quick` measures less, `-- --trials N` sets how often the overhead is drawn.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use code::fountain::{Lt, Peeling, Precoded, Schedule, Scratch};
use std::time::{Duration, Instant};

mod others;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let is_given = |word: &str| words.iter().any(|given| given == word);
    let trials =
        words.iter().position(|word| word == "--trials").and_then(|at| words.get(at + 1)?.parse().ok());
    let is_quick = is_given("--quick");
    let out = Out { is_json: is_given("--json") };
    out.title("Memory, one core");
    memory(&out);
    out.title(
        "Reed-Solomon, 64 KiB shards, GB/s of data: parity made; as many data shards lost as there is parity",
    );
    for (data, parity) in [(4, 2), (10, 4), (32, 32)] {
        others::erasure(&out, data, parity);
    }
    out.title("Fountain codes, GB/s of source. Encoded: half as many and as many repair symbols as blocks. Decoded: from a random choice");
    for (blocks, bytes) in [(128, 64 << 10), (1024, 64 << 10), (128, 1 << 20), (1024, 1 << 20)] {
        if !is_quick || blocks * bytes <= 64 << 20 {
            precoded(&out, blocks as u32, bytes);
        }
    }
    lt(&out, 1024, 64 << 10);
    others::raptorq(&out, if is_quick { 128 } else { 1024 });
    out.title("Symbols needed beyond the blocks, of 4 K stored");
    let trials = trials.unwrap_or(if is_quick { 200 } else { 10_000 });
    for blocks in [128, 256, 512, 1024] {
        overhead(&out, blocks, trials);
    }
    peeling_overhead(&out, 1024, trials.min(1000));
}

struct Out {
    is_json: bool,
}

impl Out {
    fn title(&self, title: &str) {
        if !self.is_json {
            println!("\n{title}");
        }
    }

    fn line(&self, what: &str, figures: &[(&str, f64)]) {
        if self.is_json {
            let figures: String =
                figures.iter().map(|(name, figure)| format!(",\"{name}\":{figure:.5}")).collect();
            println!("{{\"what\":\"{what}\"{figures}}}");
        } else {
            let figures: String =
                figures.iter().map(|(name, figure)| format!("  {name} {figure:.2}")).collect();
            println!("  {what:<38}{figures}");
        }
    }
}

/// The shortest of several times.
fn best(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut least = f64::INFINITY;
    let mut rounds = 0;
    while rounds < 3 || (begun.elapsed() < Duration::from_millis(400) && rounds < 1000) {
        let start = Instant::now();
        work();
        least = least.min(start.elapsed().as_secs_f64());
        rounds += 1;
    }
    least
}

fn gigabytes(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / 1e9 / seconds
}

fn random(bytes: usize, rng: &mut base::Rng) -> Vec<u8> {
    let mut block = vec![0; bytes];
    rng.fill(&mut block);
    block
}

fn memory(out: &Out) {
    for bytes in [256 << 10, 8 << 20, 512 << 20] {
        let (source, mut target) = (vec![1_u8; bytes], vec![0_u8; bytes]);
        let copied =
            best(|| std::hint::black_box(&mut target).copy_from_slice(std::hint::black_box(&source)));
        let added =
            best(|| code::multiply_add(std::hint::black_box(&mut target), 1, std::hint::black_box(&source)));
        let figures =
            [("memcpy GB/s", gigabytes(bytes, copied)), ("dst ^= src GB/s", gigabytes(bytes, added))];
        out.line(&format!("{} KiB", bytes >> 10), &figures);
    }
}

fn run(schedule: &Schedule, inputs: &[&[u8]], outputs: &mut [Vec<u8>], scratch: &mut Scratch) {
    let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    schedule.run(inputs, &mut outputs, scratch);
}

fn precoded(out: &Out, blocks: u32, bytes: usize) {
    let code = Precoded::new(blocks);
    let mut rng = base::Rng::with_seed(1);
    let source: Vec<Vec<u8>> = (0..blocks).map(|_| random(bytes, &mut rng)).collect();
    let slices: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
    let have: Vec<u32> = (0..blocks).collect();
    let whole = blocks as usize * bytes;
    let mut scratch = Scratch::default();
    let mut repair = Vec::new();
    let mut figures = Vec::new();
    for (name, symbols) in [("encode +K/2", blocks / 2), ("encode +K", blocks)] {
        let want: Vec<u32> = (blocks..blocks + symbols).collect();
        let schedule = code.schedule(&have, &want).expect("a code has its source");
        repair = vec![vec![0; bytes]; want.len()];
        figures.push((name, gigabytes(whole, best(|| run(&schedule, &slices, &mut repair, &mut scratch)))));
    }
    let name = |rest: &str| format!("lt-precoded K={blocks} {} KiB{rest}", bytes >> 10);
    out.line(&name(""), &figures);
    for (rest, extra, from) in
        [(", 1% extra", 1.01, 0), (", 5% extra", 1.05, 0), (", 5%, no source", 1.05, blocks)]
    {
        let mut symbols: Vec<u32> = (from..2 * blocks).collect();
        if from > 0 {
            let more = (f64::from(blocks) * 0.05).ceil() as u32;
            let want: Vec<u32> = (2 * blocks..2 * blocks + more).collect();
            let schedule = code.schedule(&have, &want).expect("a code has its source");
            repair.resize(repair.len() + more as usize, vec![0; bytes]);
            run(&schedule, &slices, &mut repair[blocks as usize..], &mut scratch);
            symbols.extend(want);
        }
        rng.shuffle(&mut symbols);
        let came = &symbols[..(f64::from(blocks) * extra).ceil() as usize];
        let lost: Vec<u32> = (0..blocks).filter(|block| !came.contains(block)).collect();
        let inputs: Vec<&[u8]> = came
            .iter()
            .map(|symbol| {
                source.get(*symbol as usize).unwrap_or_else(|| &repair[(symbol - blocks) as usize]).as_slice()
            })
            .collect();
        let planned = best(|| drop(std::hint::black_box(code.schedule(came, &lost))));
        let schedule = code.schedule(came, &lost).expect("one per cent more is enough for this seed");
        let mut outputs = vec![vec![0; bytes]; lost.len()];
        let decoded = best(|| run(&schedule, &inputs, &mut outputs, &mut scratch));
        assert!(
            lost.iter().zip(&outputs).all(|(block, made)| source[*block as usize] == *made),
            "decoded wrongly"
        );
        let cost = schedule.cost();
        out.line(
            &name(rest),
            &[
                ("decode", gigabytes(whole, decoded + planned)),
                ("of it, planning ms", planned * 1e3),
                ("reads a block", cost.reads as f64 / f64::from(blocks)),
            ],
        );
    }
}

/// The paper's code and decoder.
fn lt(out: &Out, blocks: u32, bytes: usize) {
    let stored = 4 * blocks;
    let (code, _) = Lt::decodable(blocks, stored, 1).expect("four times is enough");
    let mut rng = base::Rng::with_seed(1);
    let source: Vec<Vec<u8>> = (0..blocks).map(|_| random(bytes, &mut rng)).collect();
    let slices: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
    let whole = blocks as usize * bytes;
    let mut scratch = Scratch::default();
    let mut order: Vec<u32> = (0..stored).collect();
    let schedule = code.encode(&order);
    let mut symbols = vec![vec![0; bytes]; stored as usize];
    let encoded = best(|| run(&schedule, &slices, &mut symbols, &mut scratch));
    rng.shuffle(&mut order);
    let schedule =
        (blocks as usize..).find_map(|count| code.peel(&order[..count]).ok()).expect("all are enough");
    let inputs: Vec<&[u8]> =
        order[..schedule.inputs()].iter().map(|symbol| symbols[*symbol as usize].as_slice()).collect();
    let mut outputs = vec![vec![0; bytes]; blocks as usize];
    let decoded = best(|| run(&schedule, &inputs, &mut outputs, &mut scratch));
    assert_eq!(outputs, source, "decoded wrongly");
    let name = format!("lt K={blocks} {} KiB, peeling", bytes >> 10);
    out.line(&name, &[("encode 4K", gigabytes(whole, encoded)), ("decode", gigabytes(whole, decoded))]);
}

fn overhead(out: &Out, blocks: u32, trials: u32) {
    let code = Precoded::new(blocks);
    let mut rng = base::Rng::with_seed(2);
    let mut overheads: Vec<f64> = (0..trials)
        .map(|_| {
            let mut symbols: Vec<u32> = (0..4 * blocks).collect();
            rng.shuffle(&mut symbols);
            let needed = (blocks as usize..).find(|count| code.schedule(&symbols[..*count], &[]).is_ok());
            needed.expect("all are enough") as f64 / f64::from(blocks) - 1.0
        })
        .collect();
    tell(out, &format!("lt-precoded K={blocks}, {trials} trials"), &mut overheads);
}

fn peeling_overhead(out: &Out, blocks: u32, trials: u32) {
    let mut rng = base::Rng::with_seed(2);
    let mut overheads: Vec<f64> = (0..trials)
        .map(|trial| {
            let (code, _) =
                Lt::decodable(blocks, 4 * blocks, u64::from(trial) << 20).expect("four times is enough");
            let mut symbols: Vec<u32> = (0..4 * blocks).collect();
            rng.shuffle(&mut symbols);
            let mut peeling = Peeling::new(blocks);
            symbols
                .iter()
                .take_while(|symbol| {
                    peeling.arrive(code.blocks_of(**symbol));
                    !peeling.is_complete()
                })
                .count();
            peeling.arrived() as f64 / f64::from(blocks) - 1.0
        })
        .collect();
    tell(out, &format!("lt K={blocks}, peeling, {trials} trials"), &mut overheads);
}

fn tell(out: &Out, what: &str, overheads: &mut [f64]) {
    overheads.sort_by(f64::total_cmp);
    let mean = overheads.iter().sum::<f64>() / overheads.len() as f64;
    let at = |share: f64| overheads[(overheads.len() as f64 * share) as usize] * 100.0;
    out.line(
        what,
        &[
            ("mean %", mean * 100.0),
            ("99th percentile %", at(0.99)),
            ("worst %", overheads[overheads.len() - 1] * 100.0),
        ],
    );
}
