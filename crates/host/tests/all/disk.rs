//! Both disk engines do the same, and a disk is nobody's twice.

use crate::common::small_disk::SmallDisk;
use base::{BLOCK, BLOCK_U64, Payload};
use bytes::Bytes;
use host::buffer::AlignedBuffer;
use host::clock::Clock;
use host::disk::emulated::Emulation;
use host::disk::{DiskEngine, DiskFile};
use host::{DiskSpec, HostError, IoEngine};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use store::{Io, IoFault, IoKind, IoToken};

const BLOCKS: u64 = 64;
const ENGINES: [IoEngine; 2] = [IoEngine::IoUring, IoEngine::Plain];

/// A folder on a real disk: direct I/O is part of what is tested.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn spec(folder: &Path) -> DiskSpec {
    DiskSpec { path: folder.join("disk"), size_bytes: Some(BLOCKS * BLOCK_U64) }
}

/// Asks everything at once and waits for all answers.
fn run(engine: &mut DiskEngine, asked: Vec<IoKind>) -> BTreeMap<u64, Result<Bytes, IoFault>> {
    let count = asked.len();
    for (token, kind) in asked.into_iter().enumerate() {
        engine.push(0, Io { token: IoToken(token as u64), kind });
    }
    engine.submit();
    let mut done = Vec::new();
    while done.len() < count {
        let mut poll = libc::pollfd { fd: engine.event_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(&mut poll, 1, 10_000) };
        assert!(ready != 0, "no answer within 10 s");
        engine.complete(&mut done);
        engine.submit();
    }
    assert_eq!(engine.in_flight(), 0);
    done.into_iter().map(|(disk, done)| (disk as u64 + done.token.0, done.result)).collect()
}

/// `blocks` blocks that begin with `seed`, in pieces that are aligned, or not.
fn content(seed: u8, blocks: usize, aligned: bool) -> Payload {
    let mut buffer = AlignedBuffer::new(blocks * BLOCK + 1);
    buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = seed.wrapping_add((at / 7) as u8));
    let shift = usize::from(!aligned);
    let bytes = buffer.into_bytes().slice(shift..shift + blocks * BLOCK);
    let mut payload = Payload::from(bytes.slice(..BLOCK));
    payload.push(bytes.slice(BLOCK..));
    payload
}

#[derive(Clone, Debug)]
struct Write {
    block: u64,
    blocks: usize,
    seed: u8,
    aligned: bool,
    durable: bool,
}

fn write() -> impl Strategy<Value = Write> {
    (0..BLOCKS, 1usize..9, any::<u8>(), any::<bool>(), any::<bool>()).prop_map(
        |(block, blocks, seed, aligned, durable)| Write {
            block,
            blocks: blocks.min((BLOCKS - block) as usize),
            seed,
            aligned,
            durable,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_by_either_engine(writes in proptest::collection::vec(write(), 1..12)) {
        for engines in [[0, 1], [1, 0], [0, 0], [1, 1]] {
            let folder = folder();
            let mut model = vec![0; BLOCKS as usize * BLOCK];
            let file = DiskFile::create(&spec(folder.path())).unwrap();
            let mut engine = DiskEngine::new(ENGINES[engines[0]], vec![file]).unwrap();
            for write in &writes {
                let payload = content(write.seed, write.blocks, write.aligned);
                let at = write.block as usize * BLOCK;
                payload.copy_to(&mut model[at..at + write.blocks * BLOCK]);
                let kind = IoKind::Write { offset: write.block * BLOCK_U64, payload, durable: write.durable };
                prop_assert_eq!(&run(&mut engine, vec![kind])[&0], &Ok(Bytes::new()));
            }
            prop_assert_eq!(&run(&mut engine, vec![IoKind::Flush])[&0], &Ok(Bytes::new()));
            drop(engine);
            let file = DiskFile::open(&spec(folder.path())).unwrap();
            let mut engine = DiskEngine::new(ENGINES[engines[1]], vec![file]).unwrap();
            let reads = (0..BLOCKS).map(|b| IoKind::read(b * BLOCK_U64, BLOCK)).collect();
            for (token, result) in run(&mut engine, reads) {
                let at = token as usize * BLOCK;
                prop_assert_eq!(&result.unwrap()[..], &model[at..at + BLOCK]);
            }
        }
    }
}

#[test]
fn more_requests_than_the_ring_has_room_for_are_all_answered() {
    for kind in ENGINES {
        let folder = folder();
        let file = DiskFile::create(&spec(folder.path())).unwrap();
        let mut engine = DiskEngine::new(kind, vec![file]).unwrap();
        let reads = |n: u64| IoKind::read(n % BLOCKS * BLOCK_U64, BLOCK);
        let answers = run(&mut engine, (0..1000).map(reads).collect());
        assert!(
            answers.len() == 1000
                && answers.values().all(|answer| answer.as_ref().is_ok_and(|b| b.len() == BLOCK))
        );
    }
}

#[test]
fn a_disk_cut_short_under_way_is_a_fault_that_names_it() {
    for kind in ENGINES {
        let folder = folder();
        let file = DiskFile::create(&spec(folder.path())).unwrap();
        let mut engine = DiskEngine::new(kind, vec![file]).unwrap();
        std::fs::OpenOptions::new()
            .write(true)
            .open(folder.path().join("disk"))
            .unwrap()
            .set_len(8192)
            .unwrap();
        let read = |block: u64| IoKind::read(block * BLOCK_U64, BLOCK);
        let answers = run(&mut engine, vec![read(1), read(5)]);
        assert!(answers[&0].is_ok());
        let Err(IoFault::Failed(why)) = &answers[&1] else { panic!("{answers:?}") };
        assert!(why.contains("cut short") && why.contains("disk'"), "{why}");
    }
}

#[test]
fn a_disk_has_one_owner() {
    let folder = folder();
    let first = DiskFile::create(&spec(folder.path())).unwrap();
    let (open, create) = (|| DiskFile::open(&spec(folder.path())), || DiskFile::create(&spec(folder.path())));
    // Each waits for an owner that may be ending.
    let both = std::thread::scope(|scope| {
        let both = [scope.spawn(open), scope.spawn(create)];
        both.map(|second| second.join().unwrap())
    });
    for second in both {
        let Err(HostError::Disk { path, why }) = second else { panic!("opened twice") };
        assert!(path == spec(folder.path()).path && why.contains("in use"), "{why}");
    }
    drop(first);
    DiskFile::open(&spec(folder.path())).unwrap();
}

/// A killed owner that is still ending lets go after seconds, on a loaded machine.
#[test]
fn a_disk_is_waited_for_while_its_owner_ends() {
    let folder = folder();
    let first = DiskFile::create(&spec(folder.path())).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(3));
            drop(first);
        });
        DiskFile::open(&spec(folder.path())).unwrap();
    });
}

#[test]
fn disks_that_cannot_be_are_refused_by_name() {
    let folder = folder();
    let why = |spec: DiskSpec| match DiskFile::open(&spec) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    };
    let disk = spec(folder.path());
    assert!(why(disk.clone()).contains("is not there"));
    assert!(
        why(DiskSpec { path: folder.path().into(), size_bytes: None }).contains("neither a regular file")
    );
    assert!(
        DiskFile::create(&DiskSpec { size_bytes: None, ..disk.clone() })
            .unwrap_err()
            .to_string()
            .contains("how large")
    );
    std::fs::write(&disk.path, vec![0; 10_000]).unwrap();
    let short = why(disk);
    assert!(short.contains("8192 bytes") && short.contains("cut short"), "{short}");
}

#[test]
fn an_emulated_disk_answers_all_that_the_real_one_did() {
    let folder = folder();
    let file = folder.path().join("slow.toml");
    std::fs::write(&file, "late_ms = 2.5").unwrap();
    let disk = DiskFile::create(&spec(folder.path())).unwrap();
    let clock = Clock::start();
    let disks = vec![disk];
    let mut emulation = Emulation::new(base::BrickId(1), &file, disks.len(), clock).unwrap();
    let mut engine = DiskEngine::new(IoEngine::Auto, disks).unwrap();
    let written = content(3, 8, true);
    engine.push(
        0,
        Io { token: IoToken(1), kind: IoKind::Write { offset: 0, payload: written.clone(), durable: true } },
    );
    let mut done = Vec::new();
    while done.len() < 2 {
        engine.submit();
        emulation.arm(base::Time::MAX);
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(engine.event_fd()), poll(emulation.event_fd())];
        // SAFETY: two valid pollfds.
        let ready = unsafe { libc::poll(polls.as_mut_ptr(), 2, 10_000) };
        assert!(ready != 0, "the timer does not wake anybody");
        let before = done.len();
        emulation.complete(&mut engine, clock.now(), &mut done);
        if before == 0 && done.len() == 1 {
            engine.push(0, Io { token: IoToken(2), kind: IoKind::read(0, 8 * BLOCK) });
        }
    }
    let tokens: Vec<u64> = done.iter().map(|(_, done)| done.token.0).collect();
    assert_eq!(tokens, [1, 2]);
    assert_eq!(done[1].1.result.as_ref().unwrap()[..], written.to_vec()[..]);
    assert_eq!((emulation.timing().held(), emulation.timing().lateness().count()), (0, 2));
}

/// Found from outside: a disk for which there was no room filled the file system, and stayed.
#[test]
fn a_disk_that_does_not_fit_leaves_nothing_behind() {
    let folder = folder();
    // More than a file can have: an attempt at less would fill the file system for a while.
    let too_large = DiskSpec { size_bytes: Some(1 << 60), ..spec(folder.path()) };
    let error = DiskFile::create(&too_large).unwrap_err().to_string();
    assert!(error.contains("cannot allocate"), "{error}");
    assert!(!too_large.path.exists());
    std::fs::write(&too_large.path, vec![7; 8192]).unwrap();
    assert!(DiskFile::create(&too_large).is_err());
    assert_eq!(std::fs::read(&too_large.path).unwrap(), vec![7; 8192], "what was there is as it was");
    // A file system without the room allocates what it has, and then fails.
    if let Some(small) = SmallDisk::mount_or_skip(folder.path()) {
        let too_large = DiskSpec { size_bytes: Some(64 << 20), ..spec(&small.mounted) };
        for before in [vec![], vec![7; 8192]] {
            std::fs::write(&too_large.path, &before).unwrap();
            let error = DiskFile::create(&too_large).unwrap_err().to_string();
            assert!(error.contains("No space left"), "{error}");
            assert_eq!(std::fs::read(&too_large.path).unwrap().len(), before.len());
        }
    }
    let nameless = DiskSpec { path: folder.path().join("new"), size_bytes: None };
    assert!(DiskFile::create(&nameless).is_err() && !nameless.path.exists());
}
