//! What a modelled Atlas 10K costs its user: finding an access's place (once, when it is queued), predicting how soon the
//! head is there (for every candidate of every choice), and serving it. Nanoseconds of the clock each, the best of five.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use base::{Mechanics, Position, Rng, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, find};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ACCESSES: usize = 200_000;

fn main() {
    let entry = find("quantum-atlas-10k").expect("it is in the library");
    let model = Arc::new(DriveModel::parse(entry.id, entry.text).expect("the library's files are right"));
    let mut random = Rng::with_seed(1);
    let mut access = || Access {
        sector: random.u64(..model.capacity_sectors() - 64),
        count: random.u32(1..=32),
        is_write: random.u32(..3) == 0,
    };
    let accesses: Vec<Access> = (0..ACCESSES).map(|_| access()).collect();
    let mut drive = Drive::with_options(model, DriveOptions::UNCACHED);
    let position = |access: &Access| drive.position_of(access.sector, access.is_write);
    let positions: Vec<Position> = accesses.iter().map(position).collect();
    report("position_of", || accesses.iter().map(|access| position(access).angle_ns).sum());
    let free = Time(1_234_567_891);
    report("positioning_ns", || positions.iter().map(|to| drive.positioning_ns(free, to)).sum());
    report("serve", || {
        let mut now = Time::ZERO;
        accesses.iter().for_each(|&access| now = drive.serve(now, access).done);
        now.0
    });
}

fn report(what: &str, mut work: impl FnMut() -> u64) {
    let round = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    let best = (0..5).map(round).min().expect("five rounds");
    println!("{what:<16} {:6.1} ns", best.as_nanos() as f64 / ACCESSES as f64);
}
