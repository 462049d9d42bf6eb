//! A brick that is slow for a reason of its own leaves the writes of its groups, once, and returns when it is well: the
//! machines together, with nobody told which brick it is.

use crate::common::{Bench, SIZE};
use base::{BLOCK, BrickId, NodeId};
use core::time::Duration;
use wire::{AdminReply, AdminRequest, Io, IoReply, Message, SlowEntry};

/// Layouts that have redundancy left without the slow brick.
const LAYOUTS: [(&str, u32); 2] = [("raid1x3", 3), ("rs-4+2", 6)];
const SLOW: BrickId = BrickId(2);

impl Bench {
    /// A write of a block every 20 ms, by one gateway after the other. All are answered, in their order.
    fn write_for(&mut self, span: Duration) {
        let mut open = Vec::new();
        for turn in 0..span.as_millis() as u64 / 20 {
            let offset = self.rng.u64(0..SIZE / BLOCK as u64) * BLOCK as u64;
            let bytes: Vec<u8> = (0..BLOCK).map(|_| self.rng.u8(..)).collect();
            self.copy[offset as usize..][..BLOCK].copy_from_slice(&bytes);
            open.push(self.cluster.begin(1 + turn % 2, self.volume, Io::Write { offset }, bytes.into()));
            self.cluster.run(Duration::from_millis(20));
        }
        open.into_iter().for_each(|of| self.cluster.finish(of));
    }

    fn slow(&mut self, brick: BrickId) -> Option<SlowEntry> {
        match self.cluster.admin(AdminRequest::STATUS) {
            Ok(AdminReply::Status(status)) => {
                status.bricks.into_iter().find(|entry| entry.id == brick).expect("known").slow
            }
            other => panic!("{other:?}"),
        }
    }

    fn is_out(&self, brick: BrickId) -> bool {
        self.cluster.directory.views().all(|view| !view.is_writer(brick))
    }

    /// How long a write takes.
    fn one_write_ms(&mut self) -> u128 {
        let before = self.cluster.now;
        let of = self.cluster.begin(1, self.volume, Io::Write { offset: 0 }, vec![7; BLOCK].into());
        self.copy[..BLOCK].fill(7);
        while self.cluster.now.since(before) < Duration::from_secs(5) {
            if let Some((result, _)) = self.cluster.reply(of) {
                assert_eq!(result, Ok(IoReply::Done));
                return self.cluster.now.since(before).as_millis();
            }
            self.cluster.run(Duration::from_millis(1));
        }
        panic!("no answer");
    }
}

#[test]
fn a_brick_with_a_slow_disk_leaves_once_and_returns_when_its_disk_is_well() {
    for (layout, bricks) in LAYOUTS {
        let mut bench = Bench::new(layout, bricks, 4);
        bench.write_for(Duration::from_secs(3));
        assert_eq!(bench.slow(SLOW), None);
        bench.cluster.late_disk = Some((SLOW, Duration::from_millis(20)));
        bench.write_for(Duration::from_secs(10));
        assert!(bench.is_out(SLOW), "{layout}");
        assert!(bench.one_write_ms() < 10, "{layout}");
        bench.write_for(Duration::from_secs(40));
        let entry = bench.slow(SLOW).expect("slow");
        assert!(entry.is_out && entry.relapses == 0 && bench.is_out(SLOW), "{layout}: {entry:?}");
        bench.cluster.late_disk = None;
        bench.write_for(Duration::from_secs(2));
        bench.cluster.run_until_whole();
        assert_eq!(bench.slow(SLOW), None);
        bench.write_for(Duration::from_secs(1));
        bench.cluster.kill(NodeId::Brick(BrickId(1)));
        bench.check();
    }
}

/// Writes wait for it, and a failure that comes meanwhile loses nothing.
#[test]
fn a_group_does_not_give_its_last_redundancy_because_a_disk_is_slow() {
    for (layout, bricks) in [("raid5-4+1", 5), ("raid1x2", 2)] {
        let mut bench = Bench::new(layout, bricks, 4);
        bench.cluster.late_disk = Some((SLOW, Duration::from_millis(20)));
        bench.write_for(Duration::from_secs(10));
        let entry = bench.slow(SLOW).expect("slow");
        assert!(!entry.is_out && entry.needed_by.is_some() && !bench.is_out(SLOW), "{layout}: {entry:?}");
        bench.cluster.kill(NodeId::Brick(BrickId(1)));
        bench.check();
    }
}

/// Only what the brick says to one of two gateways is late.
fn bad_link(from: NodeId, to: NodeId, message: &Message) -> bool {
    let is_answer = matches!(message, Message::Prepared { .. });
    from == NodeId::Brick(SLOW) && to == NodeId::Gateway(base::GatewayId(1)) && is_answer
}

#[test]
fn one_gateway_with_a_bad_link_does_not_take_a_brick_from_all() {
    let mut bench = Bench::new("raid1x3", 3, 4);
    bench.cluster.late_messages = Some((bad_link, Duration::from_millis(50)));
    for _ in 0..150 {
        bench.write_for(Duration::from_millis(100));
        assert!(!bench.is_out(SLOW));
    }
    assert_eq!(bench.slow(SLOW), None);
    // The only gateway that writes is believed.
    bench.cluster.kill(NodeId::Gateway(base::GatewayId(2)));
    for _ in 0..400 {
        bench.cluster.run(Duration::from_millis(20));
        bench.one_write_ms();
    }
    assert!(bench.is_out(SLOW));
    bench.check();
}
