//! A disk with a constant number of random accesses outstanding.

use crate::per_second;
use base::{Mechanics, Rng, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, find};
use rules::heads::{HeadQueue, Policy};
use sim::EventQueue;
use std::sync::Arc;

const DRIVE: &str = "quantum-atlas-10k";
const READ_SHARE: f64 = 0.67;
const MEAN_SECTORS: f64 = 8.0;

/// Prints the table.
pub(crate) fn bench() {
    let entry = find(DRIVE).expect("the library has it");
    let model = Arc::new(DriveModel::parse(entry.id, entry.text).expect("the library's files are right"));
    println!("{DRIVE}, random accesses of 4 KiB on average, {READ_SHARE} reads");
    println!(
        "{:>11}  {:<7} {:<10} {:>22} {:>16}",
        "outstanding", "policy", "in force", "requests/processor s", "simulated IO/s"
    );
    let policies =
        [Policy::Fcfs, Policy::Sstf, Policy::Clook, Policy::Sptf, Policy::AgedSptf { later_max: 200 }];
    for (outstanding, policy) in policies.map(|policy| (16, policy)).into_iter().chain([
        (4, Policy::Sptf),
        (64, Policy::Sptf),
        (256, Policy::Sptf),
        (1_000, Policy::Sptf),
        (10_000, Policy::Sptf),
    ]) {
        row(&model, outstanding, policy, "mechanics", DriveOptions::MECHANICS);
    }
    row(&model, 16, Policy::Sptf, "no cache", DriveOptions::UNCACHED);
    println!();
}

fn row(model: &Arc<DriveModel>, outstanding: usize, policy: Policy, name: &str, options: DriveOptions) {
    let mut bench = Closed::new(Drive::with_options(model.clone(), options), policy, outstanding);
    let speed = per_second(|times| (0..times).for_each(|_| bench.next()));
    let simulated = bench.served as f64 / (bench.now.0 as f64 / 1e9);
    let policy = match policy {
        Policy::Fcfs => "FCFS",
        Policy::Sstf => "SSTF",
        Policy::Clook => "C-LOOK",
        Policy::Sptf => "SPTF",
        Policy::AgedSptf { .. } => "aged",
    };
    println!("{outstanding:>11}  {policy:<7} {name:<10} {:>20.2} M {simulated:>16.1}", speed / 1e6);
}

/// A closed loop. As in DiskSim the next access is chosen before the one that ended is replaced.
struct Closed {
    drive: Drive,
    queue: HeadQueue<Access>,
    events: EventQueue<()>,
    rng: Rng,
    now: Time,
    served: u64,
}

impl Closed {
    fn new(drive: Drive, policy: Policy, outstanding: usize) -> Closed {
        let (queue, events, rng) = (HeadQueue::new(policy), EventQueue::new(), Rng::with_seed(1));
        let mut closed = Closed { drive, queue, events, rng, now: Time::ZERO, served: 0 };
        (0..outstanding).for_each(|_| closed.arrive());
        closed.begin();
        closed
    }

    /// Until the next access ends.
    fn next(&mut self) {
        let (now, ()) = self.events.pop().expect("one is under way");
        self.now = now;
        self.served += 1;
        self.begin();
        self.arrive();
    }

    fn begin(&mut self) {
        let Some(picked) = self.queue.pick(self.now, &self.drive) else { return };
        let service = self.drive.serve(self.now, picked.item);
        self.events.push(service.done, ());
    }

    fn arrive(&mut self) {
        let count = (-MEAN_SECTORS * (1.0 - self.rng.f64()).ln()).ceil().max(1.0) as u32;
        let sector = self.rng.u64(..self.drive.model().capacity_sectors() - u64::from(count));
        let is_write = self.rng.f64() >= READ_SHARE;
        self.queue.push(self.drive.position_of(sector, is_write), Access { sector, count, is_write });
    }
}
