//! What orders put before a write: locks of a server, the coordinator's own line, one brick before the others.

use super::{Asked, FAMILY, GROUP, Script, block, span, view};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::operate::Operation;
use crate::netraid::order::gate::{Work, ordered};
use crate::netraid::outcome::{Outcome, Written};
use crate::netraid::path::gw::{Content, Path};
use base::{RequestId, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use wire::{LockOutcome, Message, Order, PrepareOutcome, Reads, Scope, Span};

const LAYOUT: &str = "raid1x3";

fn script() -> Script {
    Script::new(LAYOUT, 0b111, 0)
}

fn write_at(order: Order, lba: u64) -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: lba };
    let span = Span { lba, ..span(FAMILY) };
    ordered(
        order,
        Work::Write { path: Path::new(GROUP, span, Scope::Row, Content::Blocks(block(1))), origin },
    )
}

fn read_at(order: Order, lba: u64) -> Operation {
    ordered(
        order,
        Work::Read { group: GROUP, span: Span { lba, ..span(FAMILY) }, data_index: 0, reads: Reads::Leased },
    )
}

fn holder(asked: &Asked) -> u64 {
    let Message::Lock { holder, .. } = asked.message else { panic!("a lock is asked for: {asked:?}") };
    holder
}

fn order(asked: &Asked) -> Order {
    let Message::Prepare { order, .. } = asked.message else { panic!("a prepare: {asked:?}") };
    order
}

/// All members take what is asked.
fn take(script: &mut Script, asked: &[Asked]) {
    asked.iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
}

fn is_done(script: &mut Script) -> bool {
    matches!(script.outcome(), Some(Outcome::Written(Ok(Written::Done))))
}

#[test]
fn a_writer_has_its_lock_before_anyone_hears_of_the_write_and_gives_it_back() {
    let mut script = script();
    script.begin(write_at(Order::ServerLock, 0));
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0], "the first current member is the lock server");
    let lock = holder(&asked[0]);
    script.answer(&asked[0], Answer::Locked(LockOutcome::Granted { waited: false }));
    let asked = script.asked();
    assert!(asked.len() == 3 && asked.iter().all(Asked::is_prepare), "{asked:?}");
    assert!(script.unlocked.is_empty());
    take(&mut script, &asked);
    assert!(is_done(&mut script));
    assert_eq!(script.unlocked, [(0, lock)]);
}

#[test]
fn a_lock_that_is_not_granted_is_asked_for_again_under_its_name_and_then_done_without() {
    let mut script = script();
    script.begin(write_at(Order::ServerLock, 0));
    let first = holder(&script.asked()[0]);
    let mut asked = script.wait();
    while !asked[0].is_prepare() {
        assert_eq!(holder(&asked[0]), first, "it keeps its turn");
        asked = script.wait();
    }
    assert_eq!(script.counted(Counter::WriteWentOnWithoutALock), 1);
    take(&mut script, &asked);
    assert!(is_done(&mut script));
    assert_eq!(script.unlocked, [(0, first)], "it may have been granted after all");
}

#[test]
fn the_next_view_has_another_lock_server_and_the_write_begins_anew() {
    let mut script = script();
    script.begin(write_at(Order::ServerLock, 0));
    let asked = script.asked();
    script.answer(&asked[0], Answer::Locked(LockOutcome::Granted { waited: false }));
    script.asked();
    script.coordinator.on_views(vec![view(LAYOUT, 2, 0b110, 0)]);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1], "nobody but the new server is asked");
    script.answer(&asked[0], Answer::Locked(LockOutcome::Granted { waited: false }));
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1, 2]);
    take(&mut script, &asked);
    assert!(is_done(&mut script));
}

#[test]
fn a_hybrid_write_asks_for_a_lock_once_it_was_refused_and_so_do_others_of_its_rows() {
    let mut script = script();
    script.begin(write_at(Order::Hybrid, 0));
    let asked = script.asked();
    assert!(asked.iter().all(|asked| order(asked) == Order::Ts), "{asked:?}");
    script.prepared(&asked[0], PrepareOutcome::Late { newest: Stamp::ZERO });
    assert!(script.refuse_queries().is_empty(), "the attempt is settled first");
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0]);
    let lock = holder(&asked[0]);
    script.answer(&asked[0], Answer::Locked(LockOutcome::Granted { waited: false }));
    let asked = script.asked();
    assert!(asked.iter().all(|asked| order(asked) == Order::TsWait), "who has the lock waits for others");
    take(&mut script, &asked);
    assert!(is_done(&mut script));
    assert_eq!(script.unlocked, [(0, lock)]);

    script.begin(write_at(Order::Hybrid, 3));
    let asked = script.asked();
    assert!(matches!(asked[..], [Asked { message: Message::Lock { .. }, .. }]), "{asked:?}");
    script.begin(write_at(Order::Hybrid, 99));
    assert!(script.asked().iter().all(Asked::is_prepare), "elsewhere nobody met");
    script.pass(Duration::from_secs(11));
    script.asked();
    script.begin(write_at(Order::Hybrid, 3));
    assert!(script.asked().iter().all(Asked::is_prepare), "long ago");
}

#[test]
fn a_sequencer_lets_requests_of_the_same_rows_pass_one_after_the_other() {
    let mut script = script();
    for operation in
        [write_at(Order::Sequencer, 0), read_at(Order::Sequencer, 0), write_at(Order::Sequencer, 9)]
    {
        script.begin(operation);
    }
    let asked = script.asked();
    assert!(asked.len() == 6 && asked.iter().all(Asked::is_prepare), "two writes, and no read: {asked:?}");
    let first: Vec<&Asked> = asked.iter().filter(|asked| asked.span().lba == 0).collect();
    first.into_iter().for_each(|asked| script.takes(asked, 0, Stamp::ZERO));
    let asked = script.asked();
    assert!(asked.len() == 1 && !asked[0].is_prepare(), "the read's turn has come: {asked:?}");
}

#[test]
fn reads_go_past_a_sequencer_of_writes() {
    let mut script = script();
    for operation in [
        write_at(Order::SequencerOfWrites, 0),
        write_at(Order::SequencerOfWrites, 0),
        read_at(Order::SequencerOfWrites, 0),
    ] {
        script.begin(operation);
    }
    let asked = script.asked();
    assert_eq!(asked.iter().filter(|asked| asked.is_prepare()).count(), 3, "one write");
    assert_eq!(asked.len(), 4, "and a read");
}

#[test]
fn under_data_locks_one_brick_is_asked_before_the_others() {
    let mut script = script();
    script.begin(write_at(Order::DataLock, 0));
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [0]);
    script.pass(Duration::from_millis(1));
    take(&mut script, &asked);
    let asked = script.asked();
    assert_eq!(Script::slots(&asked), [1, 2]);
    take(&mut script, &asked);
    assert!(is_done(&mut script));
}
