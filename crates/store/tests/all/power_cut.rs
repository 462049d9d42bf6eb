//! Power cuts on real files.
//!
//! Between the store and the file stands a shim at the boundary of the system calls: a write that was not synced is kept
//! beside the file, and gets into it by `fdatasync`, or by its own `RWF_DSYNC`. When the power goes, any subset of the
//! 512-byte sectors of all writes that are beside the file, and of those under way, gets into it: writes are lost, torn and
//! reordered. Then the file is opened anew, and compared with a model: what was acknowledged is there, what was not is
//! there as a whole or not at all, and nothing else has changed.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real files are the point here")]

use crate::common::oracle::{Reached, Test};
use crate::common::{Cuts, Disk, Medium, World};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Rounds of an ordinary run.
const ROUNDS: u64 = 60;
/// Rounds on one file, before the next one with another journal.
const ROUNDS_A_FILE: u64 = 20;
const DISK_BYTES: u64 = 8 << 20;

/// A file for one test; gone with it.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("brickwork-{name}-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.set_len(DISK_BYTES).unwrap();
        Scratch { path }
    }

    fn open(&self) -> Rc<dyn Medium> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path).unwrap();
        Rc::new(Synced { file })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

/// What is synced is in the file.
struct Synced {
    file: File,
}

impl Medium for Synced {
    fn pwrite(&self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset).unwrap();
    }

    fn pread(&self, offset: u64, bytes: &mut [u8]) {
        self.file.read_exact_at(bytes, offset).unwrap();
    }
}

/// Rounds on one file: load, a cut at a random moment, a look at what is there.
fn run(seed: u64, rounds: u64) -> (Reached, Cuts) {
    let scratch = Scratch::new(&format!("power-cut-{seed}"));
    let journal_bytes = [128, 192, 256, 1024][seed as usize % 4] * 1024;
    let disk = Disk::on(DISK_BYTES, scratch.open());
    let mut test = Test::over(World::on(disk, journal_bytes, seed));
    for _ in 0..rounds {
        let steps = test.world.rng.usize(1..1200);
        (0..steps).for_each(|_| test.go());
        test.world.disk.swap_medium(scratch.open());
        test.crash();
    }
    test.finish();
    (test.reached, test.world.disk.cuts)
}

/// `POWER_CUTS=500` makes it the long one.
#[test]
fn every_acknowledged_write_outlives_a_power_cut() {
    let rounds = std::env::var("POWER_CUTS").map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let files: Vec<(Reached, Cuts)> =
        (0..rounds.div_ceil(ROUNDS_A_FILE)).map(|seed| run(seed, ROUNDS_A_FILE)).collect();
    let reached = |of: fn(&Reached) -> u64| files.iter().map(|(reached, _)| of(reached)).sum::<u64>();
    let cut = |of: fn(&Cuts) -> u64| files.iter().map(|(_, cuts)| of(cuts)).sum::<u64>();
    let (lost, kept, torn) = (cut(|c| c.lost), cut(|c| c.kept), cut(|c| c.torn));
    println!(
        "{} power cuts, {} of them while blocks went home: {} writes acknowledged, {} staged again; of what was not synced \
         {lost} sectors lost, {kept} kept, {torn} writes torn, {} torn journal tails",
        reached(|r| r.crashes),
        reached(|r| r.crashes_while_going_home),
        reached(|r| r.acknowledged),
        reached(|r| r.staged_again),
        reached(|r| r.torn_tails),
    );
    assert!(reached(|r| r.crashes) >= rounds && reached(|r| r.acknowledged) > rounds * 20);
    assert!(lost > rounds * 10 && kept > rounds * 10 && torn > rounds / 2);
}
