//! Peers that lie: the committed corpus of each fuzz target, and mutations of it from a fixed seed.

use base::Rng;
use sim::hostile::{self, Victim};
use std::path::Path;

/// Mutations of a victim's corpus that are tried; `cargo xtask fuzz` searches for longer.
const MUTATIONS: usize = 40;
/// Inputs that nobody has committed.
const FRESH: usize = 10;
const SEED: u64 = 11;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// A part of one input behind a part of another, with some bytes changed.
fn mutate(inputs: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut pick = || {
        let input = &inputs[rng.usize(..inputs.len())];
        let at = rng.usize(..=input.len());
        (input[..at].to_vec(), input[at..].to_vec())
    };
    let (mut bytes, (_, tail)) = (pick().0, pick());
    bytes.extend(tail);
    bytes.truncate(400);
    for _ in 0..rng.usize(..24) {
        if !bytes.is_empty() {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.u8(..);
        }
    }
    bytes
}

fn try_one(victim: Victim, input: &[u8]) {
    if std::panic::catch_unwind(|| hostile::run(victim, input)).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{victim:?} does not bear this input:\n{hex}");
    }
}

fn replay(victim: Victim) {
    let (_, target) = Victim::ALL.into_iter().find(|(other, _)| *other == victim).expect("all are listed");
    let inputs = corpus(target);
    assert!(!inputs.is_empty());
    inputs.iter().for_each(|input| try_one(victim, input));
    let mut rng = Rng::with_seed(SEED);
    for _ in 0..MUTATIONS {
        try_one(victim, &mutate(&inputs, &mut rng));
    }
    // And what no committed input has yet.
    for _ in 0..FRESH {
        let fresh: Vec<u8> = (0..200).map(|_| rng.u8(..)).collect();
        try_one(victim, &fresh);
    }
    for _ in 0..FRESH {
        try_one(victim, &committing(&mut rng));
    }
}

#[test]
fn a_brick_bears_lies() {
    replay(Victim::Brick);
}

#[test]
fn the_directory_bears_lies() {
    replay(Victim::Directory);
}

#[test]
fn a_gateway_bears_lies() {
    replay(Victim::Gateway);
}

/// A brick that has no part in an object replaces its record: the bug is planted again, and lies find it.
#[cfg(feature = "planted")]
#[test]
fn a_brick_whose_word_is_taken_for_any_object_is_found() {
    let mut rng = Rng::with_seed(SEED);
    let is_found = |_: &u32| {
        let input: Vec<u8> = (0..200).map(|_| rng.u8(..)).collect();
        let run = || hostile::run_planted(Victim::Directory, &input, rules::planted::Plant::AmendsUnasked);
        std::panic::catch_unwind(run).is_err()
    };
    assert!((0..200).find(is_found).is_some(), "nobody finds it");
}

/// A manifest may name a code that gives nothing back: whoever made lost fragments again ended, at each start. It is planted again, and lies find it.
#[cfg(feature = "planted")]
#[test]
fn a_code_that_cannot_be_is_found() {
    let _planted = objects::object::planted::read_any_code();
    let mut rng = Rng::with_seed(SEED);
    let is_found = |_: &u32| {
        let input = committing(&mut rng);
        std::panic::catch_unwind(|| hostile::run(Victim::Directory, &input)).is_err()
    };
    assert!((0..1000).find(is_found).is_some(), "nobody finds it");
}

/// Has large objects put and something else committed: any input may be this one.
fn committing(rng: &mut Rng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..20 {
        input.extend([240, 0, rng.u8(..), rng.u8(..), rng.u8(..), rng.u8(..)]);
        input.extend([160, 0, rng.u8(..), 255, rng.u8(..)]);
        input.extend([3, 127]);
    }
    input
}
