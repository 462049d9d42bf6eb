//! A disk whose journal, headers or metadata say anything. Opening it ends in an error or in a store that works on:
//! what is staged can be applied and read, and all invariants hold.
//!
//! Most inputs become the records of a frame with matching checksums, so that what lies behind the checksums is reached.

#![no_main]

use base::checksum::checksum_append;
use base::{BLOCK, BrickId, ClusterId, Depth, Machine, Time, VolumeId, checksum};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use store::{FormatOptions, Io, IoDone, IoKind, Store, StoreConfig, StoreEffect, StoreEvent};
use wire::Span;
use wire::disk::{Command, Recovered, Token};

const DISK_BYTES: usize = 2 << 20;
const JOURNAL_AT: usize = 64 << 10;
const JOURNAL_BYTES: usize = 128 << 10;
const UUID: [u8; 16] = [5; 16];

fuzz_target!(|input: &[u8]| {
    let &[mode, ref bytes @ ..] = input else { return };
    let mut disk = fresh_disk();
    if mode % 4 == 0 { patch(&mut disk, bytes) } else { frames(&mut disk, bytes) }
    let mut config = StoreConfig::new(ClusterId([1; 16]), BrickId(1), 0, DISK_BYTES as u64);
    config.cache_bytes = 64 << 10;
    let mut store = Store::open(config);
    let mut fx = Vec::new();
    store.settle(Time(1), &mut fx);
    if let Some(recovered) = drive(&mut store, &mut disk, &mut fx) {
        work(&mut store, &mut disk, &recovered);
    }
});

fn fresh_disk() -> Vec<u8> {
    let mut disk = vec![0; DISK_BYTES];
    let options = FormatOptions {
        cluster: ClusterId([1; 16]),
        brick: BrickId(1),
        disk_index: 0,
        uuid: UUID,
        disk_bytes: DISK_BYTES as u64,
        journal_bytes: JOURNAL_BYTES as u64,
    };
    for (offset, content) in store::format(options).expect("the sizes are sound") {
        disk[offset as usize..offset as usize + content.len()].copy_from_slice(&content.to_vec());
    }
    disk
}

/// Puts pieces of the input anywhere: three bytes say where, one how long.
fn patch(disk: &mut [u8], mut bytes: &[u8]) {
    while let &[a, b, c, length, ref rest @ ..] = bytes {
        let at = u32::from_le_bytes([a, b, c, 0]) as usize % DISK_BYTES;
        let length = (length as usize).min(rest.len()).min(DISK_BYTES - at);
        disk[at..at + length].copy_from_slice(&rest[..length]);
        bytes = &rest[length..];
    }
}

/// Makes the input the records of frames, two bytes of length before each. The blocks that a frame brings are zero.
fn frames(disk: &mut [u8], mut bytes: &[u8]) {
    let mut position = 0;
    while let &[a, b, blocks, ref rest @ ..] = bytes {
        let length = (u16::from_le_bytes([a, b]) as usize).min(rest.len());
        let frame = frame(position, &rest[..length], blocks as usize % 8);
        if position + frame.len() > JOURNAL_BYTES {
            break;
        }
        disk[JOURNAL_AT + position..][..frame.len()].copy_from_slice(&frame);
        position += frame.len();
        bytes = &rest[length..];
    }
}

fn frame(position: usize, records: &[u8], blocks: usize) -> Vec<u8> {
    let seed = checksum(&UUID);
    let length = (40 + records.len()).next_multiple_of(BLOCK) + blocks * BLOCK;
    let mut frame = vec![0; length];
    frame[..8].copy_from_slice(b"BWFRAME1");
    frame[8..16].copy_from_slice(&(position as u64).to_le_bytes());
    frame[16..24].copy_from_slice(&(length as u64).to_le_bytes());
    frame[24..28].copy_from_slice(&(records.len() as u32).to_le_bytes());
    frame[28..32].copy_from_slice(&checksum_append(seed, records).to_le_bytes());
    let sum = checksum_append(seed, &frame[..32]);
    frame[32..36].copy_from_slice(&sum.to_le_bytes());
    frame[40..40 + records.len()].copy_from_slice(records);
    frame
}

/// Applies all that is staged, reads it, and brings it home.
fn work(store: &mut Store, disk: &mut [u8], recovered: &Recovered) {
    let mut fx = Vec::new();
    for staged in &recovered.staged {
        let span = staged.write.span;
        store.step(Time(2), StoreEvent::Command(Command::Apply { stamp: staged.write.stamp }), &mut fx);
        store.step(Time(2), StoreEvent::Command(Command::Read { token: Token(1), span, width: 3, content: true, contested: None }), &mut fx);
    }
    drive(store, disk, &mut fx);
    let span = Span { volume: VolumeId(1), lba: 0, count: 64 };
    store.step(Time(3), StoreEvent::Command(Command::Read { token: Token(2), span, width: 1, content: true, contested: None }), &mut fx);
    drive(store, disk, &mut fx);
    for _ in 0..8 {
        let Some((at, _)) = store.deadline() else { break };
        store.wake(at, &mut fx);
        drive(store, disk, &mut fx);
    }
    store.check(Depth::Deep);
}

/// Answers the store's requests until there are none.
fn drive(store: &mut Store, disk: &mut [u8], fx: &mut Vec<StoreEffect>) -> Option<Box<Recovered>> {
    let mut opened = None;
    let mut now = 10;
    while !fx.is_empty() {
        let mut next = Vec::new();
        for effect in fx.drain(..) {
            now += 1;
            match effect {
                StoreEffect::Io(io) => store.step(Time(now), StoreEvent::Io(serve(disk, io)), &mut next),
                StoreEffect::Opened(result) => opened = result.ok(),
                StoreEffect::Reply(_) => {}
            }
        }
        store.settle(Time(now), &mut next);
        *fx = next;
    }
    opened
}

fn serve(disk: &mut [u8], io: Io) -> IoDone {
    let bytes = match io.kind {
        IoKind::Read { offset, length, .. } => Bytes::copy_from_slice(&disk[offset as usize..][..length]),
        IoKind::Write { offset, payload, .. } => {
            payload.copy_to(&mut disk[offset as usize..][..payload.len()]);
            Bytes::new()
        }
        IoKind::Flush => Bytes::new(),
    };
    IoDone { token: io.token, result: Ok(bytes) }
}
