//! Every checker catches a bug that is planted for it, and lets the sound neighbour of that bug pass.

use base::{
    BLOCK, BrickId, ClientId, GatewayId, GroupId, NodeId, Payload, RequestId, Stamp, ViewNumber, VolumeId,
};
use rules::layout::{Geometry, Layout};
use sim::checkers::evicted::Evicted;
use sim::checkers::live::Excuses;
use sim::checkers::once::Once;
use sim::checkers::redundancy::{self, Held};
use sim::checkers::snapshot::{self, Snapshot};
use sim::checkers::{bounded, bytes, durable, live};
use sim::history::{History, Kind, Operation, Register};
use wire::{Change, Decision, GroupView, IoError, Message, ReadOutcome, Scope, Slots, Span, WriteId};

const SPAN: Span = Span { volume: VolumeId(1), lba: 5, count: 1 };

fn write_id(stamp: u64) -> WriteId {
    WriteId { group: GroupId(1), span: SPAN, stamp: Stamp(stamp), scope: Scope::Row, link: None }
}

fn prepare(stamp: u64, sequence: u64) -> Message {
    Message::Prepare {
        operation: stamp,
        view: ViewNumber(1),
        write: write_id(stamp),
        change: Change::Data,
        base: None,
        want_delta: false,
        request: RequestId { client: ClientId(9), sequence },
        floor: 0,
        part: 0,
        service: wire::Service::default(),
        order: wire::Order::default(),
    }
}

fn decide(commits: &[u64], aborts: &[u64]) -> Message {
    let decisions = |stamps: &[u64]| stamps.iter().map(|&stamp| Decision::from(&write_id(stamp))).collect();
    Message::Decide { commits: decisions(commits), aborts: decisions(aborts) }
}

fn view(number: u64, current: &[u8]) -> GroupView {
    GroupView {
        group: GroupId(1),
        volume: VolumeId(1),
        number: ViewNumber(number),
        members: vec![BrickId(1), BrickId(2)],
        current: current.iter().fold(Slots::default(), |slots, &slot| slots.with(slot)),
        joining: Slots::default(),
        lineage: Box::default(),
        sealed: Vec::new(),
    }
}

#[test]
fn a_request_that_takes_effect_twice_is_caught() {
    let mut once = Once::default();
    let retried =
        [prepare(10, 1), decide(&[], &[10]), prepare(20, 1), decide(&[20], &[]), decide(&[20], &[])];
    assert!(retried.iter().all(|message| once.watch(message).is_ok()));
    assert!(once.watch(&prepare(30, 1)).is_ok());
    assert!(once.watch(&decide(&[30], &[])).is_err());
}

#[test]
fn a_decision_that_is_taken_back_is_caught() {
    let mut once = Once::default();
    assert!(once.watch(&prepare(10, 1)).is_ok() && once.watch(&decide(&[10], &[])).is_ok());
    assert!(once.watch(&decide(&[], &[10])).is_err());
    let mut once = Once::default();
    let revived = [prepare(10, 1), decide(&[], &[10]), prepare(20, 2), decide(&[20], &[])];
    assert!(revived.iter().all(|message| once.watch(message).is_ok()));
    assert!(
        once.watch(&decide(&[10], &[])).is_err(),
        "a write that was given up comes back after a later one"
    );
}

#[test]
fn an_answer_of_an_evicted_brick_is_caught() {
    let (gateway, directory) = (NodeId::Gateway(GatewayId(3)), NodeId::Directory);
    let brick = NodeId::Brick(BrickId(2));
    let question = |operation, content| Message::Read {
        operation,
        group: GroupId(1),
        view: ViewNumber(1),
        span: SPAN,
        width: 1,
        stamps: true,
        content,
        contest: None,
        service: wire::Service::default(),
        sight: wire::Sight::Decided,
    };
    let read = |operation| question(operation, true);
    let done = |operation, leased| Message::ReadDone {
        operation,
        outcome: ReadOutcome::Done { leased, stamps: vec![], unreadable: vec![] },
        wait: wire::Wait::default(),
    };
    let published =
        |view| Message::Published { views: vec![view], volumes: vec![], deleted: vec![], bricks: vec![] };
    let mut evicted = Evicted::default();
    let mut watch = |from, to, message| evicted.watch(from, to, &message);
    assert!(watch(directory, gateway, published(view(1, &[0, 1]))).is_ok());
    assert!(watch(gateway, brick, read(1)).is_ok() && watch(brick, gateway, done(1, true)).is_ok());
    assert!(watch(directory, gateway, published(view(2, &[0]))).is_ok());
    assert!(watch(gateway, brick, read(2)).is_ok() && watch(brick, gateway, done(2, false)).is_ok());
    assert!(watch(gateway, brick, read(3)).is_ok() && watch(brick, gateway, done(3, true)).is_err());
    // Lost; after a restart the same number asks for stamps alone, which is vouching for nothing.
    assert!(watch(gateway, brick, read(4)).is_ok() && watch(gateway, brick, question(4, false)).is_ok());
    assert!(watch(brick, gateway, done(4, true)).is_ok());
}

#[test]
fn wrong_bytes_are_caught() {
    let (here, there) = (Register::block(0, 1), Register::block(0, 2));
    let mut history = History::default();
    history.announce(7, here);
    assert!(bytes::check(&history, here, 7).is_ok() && bytes::check(&history, there, 0).is_ok());
    assert!(bytes::check(&history, there, 7).is_err(), "another block's content");
    assert!(bytes::check(&history, here, 8).is_err(), "content that nobody wrote");
    let mut content = 7u64.to_le_bytes().repeat(BLOCK / 8);
    assert_eq!(bytes::value_of(&Payload::from(content.clone()), here), Ok(7));
    content[4000] = 1;
    assert!(bytes::value_of(&Payload::from(content), here).is_err(), "a torn block");
}

#[test]
fn a_lost_write_is_caught() {
    let write = |value, asked_ns, answered_ns| Operation {
        client: 1,
        register: Register(1),
        kind: Kind::Write,
        value,
        asked_ns,
        answered_ns,
    };
    let operations = [write(1, 0, Some(10)), write(2, 20, Some(30)), write(3, 40, None)];
    assert!(durable::check(&operations, 2, 100).is_ok() && durable::check(&operations, 3, 100).is_ok());
    assert!(durable::check(&operations, 1, 100).is_err(), "rolled back");
    assert!(durable::check(&operations, 0, 100).is_err(), "gone");
}

#[test]
fn what_is_late_or_wrongly_refused_is_caught() {
    let waiting = [(5, "a read".to_owned())];
    assert!(live::check_answered(&waiting, 100, 90, 50).is_ok());
    assert!(live::check_answered(&waiting, 200, 90, 50).is_err());
    let full = Excuses { full: true, ..Excuses::default() };
    assert!(live::check_error(IoError::NoSpace, full, "a write").is_ok());
    assert!(live::check_error(IoError::NoSpace, Excuses::default(), "a write").is_err());
    assert!(live::check_error(IoError::Unreadable, full, "a read").is_err());
    assert!(bounded::check("effects", 3, 3).is_ok() && bounded::check("effects", 4, 3).is_err());
}

fn held(slot: u8, stamps: &[u64], byte: u8) -> Held {
    let stamps = stamps.iter().map(|&stamp| Stamp(stamp)).collect();
    Held { slot, stamps, content: Payload::from(vec![byte; BLOCK]) }
}

#[test]
fn copies_and_parity_that_disagree_are_caught() {
    let mirror = Geometry::new(Layout::Raid1 { copies: 2 }, 1, 1024).unwrap();
    assert!(redundancy::check(&mirror, 0, &[held(0, &[5], 1), held(1, &[5], 1)]).is_ok());
    assert!(redundancy::check(&mirror, 0, &[held(0, &[5], 1), held(1, &[5], 2)]).is_err(), "content");
    assert!(redundancy::check(&mirror, 0, &[held(0, &[5], 1), held(1, &[6], 1)]).is_err(), "stamps");
    let parity = Geometry::new(Layout::Raid4 { data: 2 }, 1, 1024).unwrap();
    let good = [held(0, &[5], 1), held(1, &[6], 2), held(2, &[5, 6], 3)];
    assert!(redundancy::check(&parity, 0, &good).is_ok());
    assert!(redundancy::check(&parity, 0, &good[1..]).is_ok(), "one member is out");
    let hole = [held(0, &[5], 1), held(1, &[6], 2), held(2, &[5, 6], 9)];
    assert!(redundancy::check(&parity, 0, &hole).is_err(), "the write hole");
    let old = [held(0, &[5], 1), held(1, &[7], 2), held(2, &[5, 6], 3)];
    assert!(redundancy::check(&parity, 0, &old[1..]).is_err(), "parity of an older write");
}

#[test]
fn a_snapshot_that_is_no_cut_is_caught() {
    let (here, there) = (Register::block(0, 1), Register::block(0, 2));
    let write = |register, value, asked_ns, answered_ns| Operation {
        client: value,
        register,
        kind: Kind::Write,
        value,
        asked_ns,
        answered_ns: Some(answered_ns),
    };
    let at_here = [write(here, 1, 0, 10), write(here, 2, 20, 30)];
    let at_there = [write(there, 3, 40, 50)];
    let index = base::HashMap::from_iter([(here, &at_here[..]), (there, &at_there[..])]);
    let check = |asked_ns, answered_ns, values: [u64; 2]| {
        let values = vec![(here, values[0]), (there, values[1])];
        let snapshot =
            Snapshot { name: "volume@s".to_owned(), asked_ns, answered_ns, reads_tell: true, values };
        snapshot::check(&snapshot, &index)
    };
    assert!(check(15, 60, [2, 3]).is_ok() && check(15, 60, [1, 0]).is_ok() && check(15, 60, [2, 0]).is_ok());
    assert!(check(15, 60, [1, 3]).is_err(), "an effect without its cause");
    assert!(check(35, 60, [1, 0]).is_err(), "what was acknowledged before is missing");
    assert!(check(15, 25, [1, 3]).is_err(), "what was begun later is in it");
}

#[test]
fn a_block_that_does_not_hold_what_was_read_is_caught() {
    let words = |value: u64| value.to_le_bytes().repeat(BLOCK / 8);
    let held = |value| Held { slot: 0, stamps: vec![Stamp(1)], content: Payload::from(words(value)) };
    assert!(redundancy::check_content(0, &held(7), &[7]).is_ok());
    assert!(redundancy::check_content(0, &held(7), &[7; 8]).is_ok());
    assert!(redundancy::check_content(0, &held(7), &[8]).is_err());
    assert!(redundancy::check_content(0, &held(7), &[7, 7, 7, 7, 7, 7, 7, 6]).is_err());
}

#[test]
fn a_register_says_which_block_or_sector_of_which_volume_it_is() {
    let texts =
        [Register::block(0, 1), Register::block(3, 7), Register::sector(2, 41)].map(|it| it.to_string());
    assert_eq!(texts, ["block 1 of volume 0", "block 7 of volume 3", "sector 41 of volume 2"]);
}
