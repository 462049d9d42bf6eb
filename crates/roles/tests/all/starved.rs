//! A stream that gets no turn at one brick for a minute: nobody takes that for a slow brick, and nobody asks twice.

use crate::common::{Cluster, pattern};
use base::{BLOCK, BrickId, Payload, StreamId, Time};
use core::time::Duration;
use reads::seat::Places;
use rules::counters::Counter;
use rules::fair::{Discipline, Entry, Ticket, Unserved};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{AdminReply, AdminRequest, Io, IoReply, ReadPolicy, Service};

const BRICK: BrickId = BrickId(2);
const POOR: StreamId = StreamId(7);
const MINUTE: Duration = Duration::from_secs(60);

/// First come, first served, but for the poor stream while it is starved.
#[derive(Debug)]
struct Starving {
    is_starved: Arc<AtomicBool>,
    waiting: BTreeMap<Ticket, StreamId>,
}

impl Discipline for Starving {
    fn admits(&mut self, _: Time, service: Service, _cost: u32) -> bool {
        service.stream != POOR || !self.is_starved.load(Ordering::Relaxed)
    }

    fn push(&mut self, _: Time, entry: Entry) {
        self.waiting.insert(entry.ticket, entry.service.stream);
    }

    fn pop(&mut self, _: Time) -> Option<Ticket> {
        let is_starved = self.is_starved.load(Ordering::Relaxed);
        let next = self.waiting.iter().find(|(_, stream)| !is_starved || **stream != POOR);
        let next = *next?.0;
        self.waiting.remove(&next);
        Some(next)
    }

    fn remove(&mut self, _: Time, entry: Entry, _: Unserved) {
        self.waiting.remove(&entry.ticket);
    }
}

/// How often something was asked for twice, and asked for because something else took long.
fn repeats(cluster: &Cluster) -> u64 {
    let asked_again = [Counter::RepeatOfARequestThatWaits, Counter::DuplicateRequestSuppressed];
    let of_bricks = cluster.bricks.values().map(|(brick, _)| brick.counters());
    let of_gateways = cluster.gateways.values().map(|gateway| gateway.counters().get(Counter::ReadRescued));
    let repeated = of_bricks.flat_map(|counters| asked_again.map(|counter| counters.get(counter)));
    repeated.chain(of_gateways).sum()
}

fn prepares(cluster: &Cluster) -> u64 {
    cluster.bricks[&BRICK].0.counters().get(Counter::RequestWaitedForItsTurn)
}

#[test]
fn a_stream_that_is_starved_at_one_brick_for_a_minute_evicts_no_brick_and_is_not_asked_for_twice() {
    for (layout, bricks) in [("raid1x3", 3), ("raid5-4+1", 5)] {
        let mut cluster = Cluster::new(bricks, 2);
        let rich = cluster.volume_of(layout, 1 << 20, (ReadPolicy::ShortestQueue, StreamId(1)));
        let poor = cluster.volume_of(layout, 1 << 20, (ReadPolicy::ShortestQueue, POOR));
        let content = pattern(5, 1 << 20);
        for (at, chunk) in content.chunks(256 << 10).enumerate() {
            for volume in [rich, poor] {
                let written = cluster.write(1, volume, (at * (256 << 10)) as u64, chunk.to_vec());
                assert_eq!(written, Ok(IoReply::Done));
            }
        }
        let is_starved = Arc::new(AtomicBool::new(true));
        let discipline = Starving { is_starved: is_starved.clone(), waiting: BTreeMap::new() };
        let (now, mut fx) = (cluster.now, Vec::new());
        let (brick, _) = cluster.bricks.get_mut(&BRICK).expect("there");
        brick.set_discipline(now, 0, Box::new(discipline), Places::UNLIMITED, &mut fx);
        assert!(fx.is_empty());
        let before = repeats(&cluster);

        // Whatever touches the brick waits; the poor volume's other reads are served, and the rich volume as ever.
        let mut open = Vec::new();
        for offset in (0..1 << 20).step_by(64 << 10) {
            let gateway = 1 + (offset >> 16) % 2;
            open.push(cluster.begin(
                gateway,
                poor,
                Io::Read { offset, length: BLOCK as u32 },
                Payload::new(),
            ));
            let bytes = Payload::from(vec![3; BLOCK]);
            let offset = offset + BLOCK as u64;
            open.push(cluster.begin(gateway, poor, Io::Write { offset }, bytes));
        }
        let end = cluster.now + MINUTE;
        let mut writes = 0;
        while cluster.now < end {
            let offset = cluster.now.millis() / 20 % 256 * BLOCK as u64;
            assert_eq!(cluster.write(1, rich, offset, vec![4; BLOCK]), Ok(IoReply::Done));
            cluster.read(2, rich, offset, BLOCK as u32);
            writes += 1;
        }
        assert!(writes > 200, "{layout}: the rich are served, {writes} times");
        let waits = prepares(&cluster);
        assert!(waits >= 8, "{layout}: {waits} requests waited");
        assert_eq!(repeats(&cluster) - before, 0, "{layout}");
        assert!(cluster.directory.views().all(|view| view.is_writer(BRICK)), "{layout}: nobody was left out");
        let Ok(AdminReply::Status(status)) = cluster.admin(AdminRequest::STATUS) else { panic!("a status") };
        assert!(status.bricks.iter().all(|brick| brick.slow.is_none()), "{layout}: {status:?}");

        // Its turn comes with the next step of the disk.
        is_starved.store(false, Ordering::Relaxed);
        assert_eq!(cluster.write(1, rich, 0, vec![4; BLOCK]), Ok(IoReply::Done));
        open.into_iter().for_each(|of| cluster.finish(of));
        for offset in (0..1 << 20).step_by(64 << 10) {
            let read = cluster.read(2, poor, offset, 2 * BLOCK as u32);
            let start = offset as usize;
            assert!(
                read[..BLOCK] == content[start..start + BLOCK] && read[BLOCK..] == [3; BLOCK],
                "{layout}"
            );
        }
    }
}
