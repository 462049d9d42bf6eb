//! Bricks that come back, on a perfect network: they catch up, are promoted, and hold what was acknowledged meanwhile.

mod common;

use base::{BLOCK, BrickId, NodeId, Payload, VolumeId};
use common::Cluster;
use core::time::Duration;
use wire::{Io, IoReply};

const LAYOUTS: [(&str, u32, u32); 3] = [("raid1x3", 3, 2), ("raid5-4+1", 5, 1), ("rs-4+2", 6, 2)];
const SIZE: u64 = 4 << 20;

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = base::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}

struct Bench {
    cluster: Cluster,
    volume: VolumeId,
    copy: Vec<u8>,
    rng: base::Rng,
}

impl Bench {
    fn new(layout: &str, bricks: u32, seed: u64) -> Bench {
        let mut cluster = Cluster::new(bricks, 2);
        let volume = cluster.volume(layout, SIZE);
        Bench { cluster, volume, copy: vec![0; SIZE as usize], rng: base::Rng::with_seed(seed) }
    }

    /// Writes of all sizes.
    fn write(&mut self, count: u32) {
        for _ in 0..count {
            let offset = self.rng.u64(0..SIZE - 512) / 512 * 512;
            let longest = (SIZE - offset).min([512, 4096, 70_000, 600_000][self.rng.usize(0..4)]);
            let length = (self.rng.u64(0..longest) / 512 * 512 + 512).min(SIZE - offset) as usize;
            let bytes = pattern(self.rng.u64(..), length);
            let gateway = self.rng.u64(1..3);
            assert_eq!(self.cluster.write(gateway, self.volume, offset, bytes.clone()), Ok(IoReply::Done));
            self.copy[offset as usize..][..length].copy_from_slice(&bytes);
        }
    }

    fn check(&mut self) {
        for offset in (0..SIZE).step_by(1 << 20) {
            let read = self.cluster.read(1, self.volume, offset, 1 << 20);
            assert!(read == self.copy[offset as usize..][..1 << 20], "wrong bytes from {offset} on");
        }
    }

    /// Reads everything without so many of the other bricks: `back` must have what it should.
    fn check_without_others(&mut self, back: u32, others: u32) {
        let bricks = self.cluster.bricks.len() as u32;
        for dead in (1..=bricks).filter(|brick| *brick != back).take(others as usize) {
            self.cluster.kill(NodeId::Brick(BrickId(dead)));
        }
        self.check();
    }
}

#[test]
fn a_brick_that_was_away_catches_up_and_serves() {
    for (layout, bricks, tolerates) in LAYOUTS {
        for back in [1, bricks] {
            let mut bench = Bench::new(layout, bricks, u64::from(back));
            bench.write(30);
            bench.cluster.kill(NodeId::Brick(BrickId(back)));
            bench.write(30);
            bench.cluster.restart(BrickId(back));
            bench.write(10);
            bench.cluster.run_until_whole();
            bench.write(5);
            bench.check_without_others(back, tolerates);
        }
    }
}

#[test]
fn writes_go_on_while_a_brick_catches_up() {
    for (layout, bricks, tolerates) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 7);
        bench.write(20);
        bench.cluster.kill(NodeId::Brick(BrickId(2)));
        bench.write(20);
        bench.cluster.restart(BrickId(2));
        // Many at once, on few blocks.
        for round in 0..40 {
            let writes: Vec<_> = (0..8u64)
                .map(|n| {
                    let offset = (round * 3 + n) % 40 * BLOCK as u64;
                    let bytes = pattern(round * 100 + n, BLOCK);
                    self::keep(&mut bench.copy, offset, &bytes);
                    let io = Io::Write { offset };
                    bench.cluster.begin(1 + n % 2, bench.volume, io, Payload::from(bytes))
                })
                .collect();
            bench.cluster.run(Duration::from_millis(5 * round));
            for write in writes {
                bench.cluster.finish(write);
            }
        }
        bench.cluster.run_until_whole();
        bench.check_without_others(2, tolerates);
    }
}

fn keep(copy: &mut [u8], offset: u64, bytes: &[u8]) {
    copy[offset as usize..][..bytes.len()].copy_from_slice(bytes);
}
