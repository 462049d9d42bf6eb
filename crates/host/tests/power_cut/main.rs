//! A durable write survives a power cut also where the disk's file is on a file system that does not honour write-through:
//! on FUSE, io_uring's write with `RWF_DSYNC` was answered as durable, and the file system was never asked to sync.

mod power;

use base::{BLOCK, BLOCK_U64, BrickId, ClusterId, Payload};
use bytes::Bytes;
use host::disk::{DiskEngine, DiskFile};
use host::{DiskIdentity, DiskSpec, IoEngine};
use power::Mounted;
use store::{Io, IoKind, IoToken};
use wire::Durability;

const BLOCKS: u64 = 64;
const ENGINES: [IoEngine; 3] = [IoEngine::Auto, IoEngine::IoUring, IoEngine::Plain];

/// Asks for one request and waits for its answer.
fn ask(engine: &mut DiskEngine, kind: IoKind) {
    engine.push(0, Io { token: IoToken(7), kind });
    let mut done = Vec::new();
    while done.is_empty() {
        engine.submit();
        let mut poll = libc::pollfd { fd: engine.event_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(&mut poll, 1, 10_000) };
        assert!(ready != 0, "no answer within 10 s");
        engine.complete(&mut done);
    }
    assert_eq!((done.len(), &done[0].1.result), (1, &Ok(Bytes::new())));
}

fn block(seed: u64) -> Vec<u8> {
    vec![seed as u8 + 1; BLOCK]
}

fn write(number: u64, durable: bool) -> IoKind {
    IoKind::Write { offset: number * BLOCK_U64, payload: Payload::from(Bytes::from(block(number))), durable }
}

fn range(number: u64) -> std::ops::Range<usize> {
    number as usize * BLOCK..(number as usize + 1) * BLOCK
}

#[test]
fn a_power_cut_on_fuse_leaves_what_was_answered_as_durable() {
    for kind in ENGINES {
        let Some(mounted) = Mounted::new((BLOCKS * BLOCK_U64) as usize) else { return };
        let file = DiskFile::open(&DiskSpec { path: mounted.path(), size_bytes: None }).unwrap();
        assert!(file.is_direct() && file.durability() == Durability::WriteThenSync);
        let mut engine = DiskEngine::new(kind, vec![file]).unwrap();
        for number in 0..BLOCKS / 2 {
            ask(&mut engine, write(number, true));
            assert!(mounted.survives(range(number)) == block(number), "{kind:?}: block {number} is lost");
            assert_eq!(mounted.syncs(), number + 1, "{kind:?}");
        }
        let last = BLOCKS - 1;
        ask(&mut engine, write(last, false));
        assert_eq!(mounted.survives(range(last)), vec![0; BLOCK], "nobody asked for a sync");
        ask(&mut engine, IoKind::Flush);
        assert_eq!(mounted.survives(range(last)), block(last));
    }
}

#[test]
fn many_durable_writes_at_a_time_are_each_synced_before_their_answer() {
    for kind in ENGINES {
        let Some(mounted) = Mounted::new((BLOCKS * BLOCK_U64) as usize) else { return };
        let file = DiskFile::open(&DiskSpec { path: mounted.path(), size_bytes: None }).unwrap();
        let mut engine = DiskEngine::new(kind, vec![file]).unwrap();
        // More than the ring has room for; each block has one content, however often it is written.
        let asked = 10 * BLOCKS;
        for token in 0..asked {
            engine.push(0, Io { token: IoToken(token), kind: write(token % BLOCKS, true) });
        }
        let (mut done, mut answered) = (Vec::new(), 0);
        while answered < asked {
            engine.submit();
            let mut poll = libc::pollfd { fd: engine.event_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd.
            assert!(unsafe { libc::poll(&mut poll, 1, 10_000) } != 0, "no answer within 10 s");
            engine.complete(&mut done);
            for (_, io) in done.drain(..) {
                answered += 1;
                assert_eq!(io.result, Ok(Bytes::new()));
                let number = io.token.0 % BLOCKS;
                assert!(mounted.survives(range(number)) == block(number), "{kind:?}: block {number} is lost");
            }
        }
        assert_eq!(engine.in_flight(), 0);
    }
}

#[test]
fn a_power_cut_after_format_leaves_the_whole_disk_and_its_name() {
    let bytes: u64 = 64 << 20;
    let Some(mounted) = Mounted::new(bytes as usize) else { return };
    let spec = DiskSpec { path: mounted.path(), size_bytes: Some(bytes) };
    let (cluster, brick) = (ClusterId([4; 16]), BrickId(1));
    let identity = DiskIdentity { cluster, brick, index: 0, journal_bytes: None };
    host::format_disk(&spec, &identity).unwrap();
    let whole = std::fs::read(mounted.path()).unwrap();
    assert!(whole.iter().any(|byte| *byte != 0) && mounted.survives(0..bytes as usize) == whole);
    assert!(mounted.folder_syncs() > 0, "the file's name may be lost");
}
