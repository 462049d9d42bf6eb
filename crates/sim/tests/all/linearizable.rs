//! The linearizability checker against a brute-force one, and against histories that are known to be wrong.

use proptest::prelude::*;
use sim::checkers::linearizable::check;
use sim::history::{Kind, Operation, Register};

fn op(kind: Kind, value: u64, asked_ns: u64, answered_ns: Option<u64>) -> Operation {
    Operation { client: asked_ns, register: Register(0), kind, value, asked_ns, answered_ns }
}

fn write(value: u64, asked_ns: u64, answered_ns: u64) -> Operation {
    op(Kind::Write, value, asked_ns, Some(answered_ns))
}

fn read(value: u64, asked_ns: u64, answered_ns: u64) -> Operation {
    op(Kind::Read, value, asked_ns, Some(answered_ns))
}

fn by_brute_force(operations: &[Operation]) -> bool {
    fn go(left: &[Operation], value: u64) -> bool {
        if left.iter().all(|op| op.answered_ns.is_none()) {
            return true;
        }
        let first_answer = left.iter().filter_map(|op| op.answered_ns).min().unwrap_or(u64::MAX);
        (0..left.len()).any(|at| {
            let op = left[at];
            let fits = op.asked_ns <= first_answer && (op.kind == Kind::Write || op.value == value);
            let rest = || {
                left.iter()
                    .enumerate()
                    .filter(|(other, _)| *other != at)
                    .map(|(_, op)| *op)
                    .collect::<Vec<_>>()
            };
            fits && go(&rest(), if op.kind == Kind::Write { op.value } else { value })
        })
    }
    let matters = |op: &&Operation| op.kind == Kind::Write || op.answered_ns.is_some();
    go(&operations.iter().filter(matters).copied().collect::<Vec<_>>(), 0)
}

/// Histories of up to nine operations: each write of a value of its own or 0, each read of any value.
fn histories() -> impl Strategy<Value = Vec<Operation>> {
    let one = (any::<bool>(), 0u64..5, 0u64..30, proptest::option::weighted(0.8, 0u64..12));
    proptest::collection::vec(one, 1..10).prop_map(|drawn| {
        let mut fresh = 0;
        let operation = |(is_write, value, asked, length): (bool, u64, u64, Option<u64>)| {
            let answered = length.map(|length| asked + length);
            if !is_write {
                return op(Kind::Read, value, asked, answered);
            }
            fresh += 1;
            op(Kind::Write, if value == 0 { 0 } else { fresh }, asked, answered)
        };
        drawn.into_iter().map(operation).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn agrees_with_brute_force(operations in histories()) {
        let mut sorted = operations.clone();
        sorted.sort_by_key(|op| op.asked_ns);
        prop_assert_eq!(check(&sorted).is_ok(), by_brute_force(&sorted), "{:?}", sorted);
    }
}

#[test]
fn wrong_histories_are_caught() {
    let wrong: [&[Operation]; 6] = [
        &[write(1, 0, 1), read(0, 2, 3)],
        &[write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)],
        &[write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)],
        &[op(Kind::Write, 1, 0, None), read(1, 1, 2), read(0, 3, 4)],
        &[read(7, 0, 1)],
        &[write(1, 0, 20), write(2, 0, 20), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6)],
    ];
    for history in wrong {
        assert!(check(history).is_err(), "{history:?}");
    }
}

#[test]
fn a_pending_write_may_take_effect_late_or_never() {
    let pending = op(Kind::Write, 1, 0, None);
    assert!(check(&[pending, read(0, 1, 2), read(1, 50, 51)]).is_ok());
    assert!(check(&[pending, read(0, 50, 51)]).is_ok());
    let zero = op(Kind::Write, 0, 0, None);
    assert!(check(&[zero, write(1, 1, 2), read(1, 3, 4), read(0, 5, 6)]).is_ok());
    assert!(check(&[zero, write(1, 1, 2), read(0, 3, 4), write(2, 5, 6), read(0, 7, 8)]).is_err());
}

#[test]
fn long_busy_histories_are_checked_fast() {
    let mut operations = Vec::new();
    for round in 0..2_000u64 {
        let at = round * 10;
        operations.extend((0..8).map(|writer| write(round * 8 + writer + 1, at, at + 15)));
        operations.push(read(round * 8 + 3, at + 16, at + 18));
    }
    operations.sort_by_key(|op| op.asked_ns);
    let _ = check(&operations);
}
