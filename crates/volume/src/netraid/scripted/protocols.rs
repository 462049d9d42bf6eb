//! What a volume's protocol changes of its operations, and what these cost.

use super::{FAMILY, GROUP, Script, block, span};
use crate::netraid::answer::Answer;
use crate::netraid::atomicity::two_phase::round::Origin;
use crate::netraid::cost::{Cost, Operation as Kind, cost};
use crate::netraid::operate::Operation;
use crate::netraid::order::gate::{Work, ordered};
use crate::netraid::outcome::Outcome;
use crate::netraid::path::gw::{Content, Path};
use base::{BrickId, RequestId, Stamp};
use rules::counters::Counter;
use rules::layout::Layout;
use wire::{LockOutcome, Message, Order, Protocol, ReadPolicy, Reads, Scope, VolumeInfo};

fn script(layout: &str, protocol: &str) -> Script {
    let width = layout.parse::<Layout>().expect("a layout").width();
    let mut script = Script::new(layout, (1 << width) - 1, 0);
    let (protocol, read_policy) = (protocol.parse().expect("a protocol"), ReadPolicy::Hash);
    let volume = VolumeInfo { protocol, read_policy, ..VolumeInfo::new(FAMILY, "v", 1 << 30, layout) };
    script.coordinator.serve(&volume);
    script
}

fn write(protocol: Protocol, scope: Scope, content: Content) -> Operation {
    let origin = Origin { request: RequestId::default(), floor: 0, part: 0 };
    let path = Path::new(GROUP, span(FAMILY), scope, content).by(protocol.small_writes);
    ordered(protocol.order, Work::Write { path, origin })
}

fn read(protocol: Protocol) -> Operation {
    ordered(
        protocol.order,
        Work::Read { group: GROUP, span: span(FAMILY), data_index: 0, reads: Reads::Leased },
    )
}

/// Answers all that is asked, at once, until the operation ends: what it cost.
fn counted(script: &mut Script, operation: Operation) -> Cost {
    let mut cost = Cost { messages: 0, rounds: 0, flushes: 0 };
    script.begin(operation);
    loop {
        let asked = script.asked();
        if asked.is_empty() {
            break;
        }
        cost.rounds += 1;
        for asked in &asked {
            cost.messages += 2;
            if asked.is_prepare() {
                cost.flushes += 1;
                script.takes(asked, 0, Stamp::ZERO);
            } else if let Message::Lock { .. } = asked.message {
                script.answer(asked, Answer::Locked(LockOutcome::Granted { waited: false }));
            } else {
                script.shows(asked, 0, &[], true);
            }
        }
    }
    assert!(matches!(script.outcome(), Some(Outcome::Written(Ok(_)) | Outcome::Read(Ok(_)))), "it is done");
    cost
}

#[test]
fn operations_cost_what_is_said_of_them_under_each_protocol() {
    for of in Protocol::all() {
        let protocol = of.to_string();
        for name in ["raid0x4", "raid1x2", "raid1x3", "raid4-4+1", "raid5-4+1", "rs-4+2"] {
            let layout: Layout = name.parse().expect("a layout");
            let data = layout.data();
            let small = if data > 1 { Scope::Unit { index: 0 } } else { Scope::Row };
            let is = |kind, operation| {
                let counted = counted(&mut script(name, &protocol), operation);
                assert_eq!(counted, cost(of, layout, kind), "{kind:?} on {name} under {protocol}");
            };
            is(Kind::Read, read(of));
            is(Kind::SmallWrite, write(of, small, Content::Blocks(block(1))));
            if data > 1 {
                let rows = (0..data).map(block).collect();
                is(Kind::FullStripe, write(of, Scope::Row, Content::Rows(rows)));
            }
        }
    }
}

#[test]
fn members_hear_by_which_order_a_volume_is_written() {
    for (protocol, expected) in [("gw,ts,2pcw", Order::Ts), ("gw,ts-wait,2pcw", Order::TsWait)] {
        let mut script = script("raid1x3", protocol);
        script.begin(write(protocol.parse().expect("a protocol"), Scope::Row, Content::Blocks(block(1))));
        for asked in script.asked() {
            let Message::Prepare { order, .. } = asked.message else { panic!("{asked:?}") };
            assert_eq!(order, expected);
        }
    }
}

#[test]
fn among_bricks_a_coordinator_reads_its_own_copy_first_and_others_when_it_is_silent() {
    let protocol = "amongst,ts,2pcw";
    for beside in [1, 2, 3] {
        let mut script = script("raid1x3", protocol);
        script.coordinator.stand_beside(Some(BrickId(beside)));
        script.begin(read(protocol.parse().expect("a protocol")));
        assert_eq!(Script::slots(&script.asked()), [beside as u8 - 1]);
        let mut slots = Vec::new();
        while slots.len() < 4 {
            slots.extend(Script::slots(&script.wait()));
        }
        assert!(slots.iter().any(|slot| *slot != beside as u8 - 1), "{slots:?}");
    }
}

#[test]
fn without_a_lease_a_read_is_checked_or_waits_for_one() {
    let mut checks = script("raid1x3", "gw,ts,2pcw+read");
    checks.begin(read("gw,ts,2pcw".parse().expect("a protocol")));
    let asked = checks.asked();
    checks.shows(&asked[0], 1, &[], false);
    assert_eq!(checks.asked().len(), 3, "the others are to confirm");

    let mut waits = script("raid1x3", "gw,ts,2pcw");
    waits.begin(read("gw,ts,2pcw".parse().expect("a protocol")));
    for _ in 0..3 {
        let asked = waits.wait();
        assert_eq!(asked.len(), 1, "nobody else is asked");
        waits.shows(&asked[0], 1, &[], false);
        assert!(waits.outcome().is_none());
    }
    assert_eq!(waits.counted(Counter::ReadWaitedForALease), 3);
    let asked = waits.wait();
    waits.shows(&asked[0], 1, &[], true);
    assert!(waits.outcome().is_some());
}
