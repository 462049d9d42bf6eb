//! How many accesses of the disk a read takes.

use crate::common::*;
use store::IoKind;
use wire::disk::Command;
use wire::{Change, Span};

const VOLUME: u64 = 1;
/// Blocks of a slot: what is written whole and at its beginning goes straight to a slot.
const SLOT: u64 = 16;

/// Blocks hold their numbers.
fn write_slot(world: &mut World, number: u64, stamp: u64) {
    let (first, count) = (number * SLOT, SLOT as u32);
    let write = staged(span(VOLUME, first, count), stamp, Change::Data);
    world.write(write, payload(first..first + SLOT)).unwrap();
    world.run(true);
}

/// A world with so many slots one after the other on its disk, and nothing in memory.
fn filled(slots: u64) -> World {
    let mut world = World::new(64 << 20, 1 << 20, 1);
    (0..slots).for_each(|number| write_slot(&mut world, number, number + 1));
    world.open().unwrap();
    world
}

/// The lengths of the reads of blocks that the disk is asked for, after the metadata page is there.
fn accesses(world: &mut World, span: Span) -> Vec<usize> {
    let token = world.next_token();
    world.command(Command::Read { token, span, width: 1, content: true, contested: None });
    world.settle();
    world.complete_one();
    let length = |kind: &IoKind| match kind {
        IoKind::Read { length, .. } => Some(*length / base::BLOCK),
        IoKind::Write { .. } | IoKind::Flush => None,
    };
    let lengths = world.in_flight().filter_map(length).collect();
    world.run(false);
    lengths
}

#[test]
fn a_read_across_slots_that_lie_together_is_one_access() {
    let mut world = filled(4);
    assert_eq!(accesses(&mut world, span(VOLUME, 5, 17)), [17]);
    let read = world.read(span(VOLUME, 3, 60), 1).unwrap();
    assert_eq!(words(&read.content), (3..63).collect::<Vec<_>>());
}

#[test]
fn slots_that_do_not_lie_together_are_an_access_each() {
    let mut world = filled(3);
    // What is written anew takes a fresh slot, behind the others.
    write_slot(&mut world, 1, 10);
    world.open().unwrap();
    assert_eq!(accesses(&mut world, span(VOLUME, 0, 48)), [16, 16, 16]);
    let read = world.read(span(VOLUME, 0, 48), 1).unwrap();
    assert_eq!(words(&read.content), (0..48).collect::<Vec<_>>());
}

#[test]
fn a_block_that_cannot_be_read_does_not_cost_its_neighbours_in_other_slots() {
    let mut world = filled(2);
    world.command(Command::Read {
        token: wire::disk::Token(77),
        span: span(VOLUME, 0, 32),
        width: 1,
        content: true,
        contested: None,
    });
    world.settle();
    world.complete_one();
    let Some(&IoKind::Read { offset, length, .. }) = world.in_flight().next() else { panic!("a read") };
    assert_eq!(length, 32 * base::BLOCK);
    // A sector of block 20.
    world.disk.bad.insert((offset + 20 * base::BLOCK_U64) / 512);
    world.run(false);
    let read = world.read(span(VOLUME, 0, 32), 1).unwrap();
    assert_eq!(read.unreadable, [20]);
    let expected: Vec<u64> = (0..32).map(|block| if block == 20 { 0 } else { block }).collect();
    assert_eq!(words(&read.content), expected);
}
