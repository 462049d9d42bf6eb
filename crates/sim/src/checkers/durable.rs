//! `durable`: after all is healed, every block can be read, and holds no value older than the latest acknowledged one.

use super::Violation;
use crate::history::{Kind, Operation};

const NAME: &str = "durable";

/// Checks the last `value` read from a register (asked at `asked_ns`) against all operations on it. Zero is excused
/// when any zero write could be it.
pub fn check(operations: &[Operation], value: u64, asked_ns: u64) -> Result<(), Violation> {
    let writes = || operations.iter().filter(|op| op.kind == Kind::Write);
    let source_answered_ns =
        writes().filter(|op| op.value == value).map(|op| op.answered_ns.unwrap_or(u64::MAX)).max();
    let source_answered_ns = match (source_answered_ns, value) {
        (None, 0) => 0,
        (None, _) => return Err(Violation::new(NAME, format!("the value {value} was never written"))),
        (Some(answered), _) => answered,
    };
    let lost = writes().find(|op| {
        op.value != value && op.asked_ns > source_answered_ns && op.answered_ns.is_some_and(|t| t < asked_ns)
    });
    lost.map_or(Ok(()), |op| {
        Err(Violation::new(
            NAME,
            format!("{value} is read at the end; lost is the acknowledged {}", op.to_json()),
        ))
    })
}
