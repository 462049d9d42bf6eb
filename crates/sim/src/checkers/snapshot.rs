//! `snapshot`: what a snapshot holds is a consistent cut of its volume.
//!
//! Every write that was acknowledged before it was asked for is in it, none that was begun after it was answered, and
//! with a write all that happened before that write was begun: to whatever block. A write counts as acknowledged also
//! when somebody has read it, where reads see decided writes only.

use super::Violation;
use crate::history::{Kind, Operation, Register};
use base::HashMap;

const NAME: &str = "snapshot";

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub name: String,
    /// When it was asked for.
    pub asked_ns: u64,
    /// When it was answered.
    pub answered_ns: u64,
    /// Whether a read of the volume sees decided writes only, and so tells that one took effect.
    pub reads_tell: bool,
    /// What each register of the volume holds in it.
    pub values: Vec<(Register, u64)>,
}

/// Checks a snapshot against the operations on its volume, by register.
pub fn check(snapshot: &Snapshot, by_register: &HashMap<Register, &[Operation]>) -> Result<(), Violation> {
    let mut latest = Latest { asked_ns: snapshot.asked_ns, why: String::new() };
    for &(register, value) in &snapshot.values {
        let operations = by_register.get(&register).copied().unwrap_or_default();
        check_begun(snapshot, register, value, operations, &mut latest)?;
    }
    for &(register, value) in &snapshot.values {
        let operations = by_register.get(&register).copied().unwrap_or_default();
        check_complete(snapshot, value, operations, &latest)?;
    }
    Ok(())
}

/// What is known to be in the snapshot, begun latest: all that was acknowledged before must be in it as well.
struct Latest {
    asked_ns: u64,
    why: String,
}

fn check_begun(
    snapshot: &Snapshot,
    register: Register,
    value: u64,
    operations: &[Operation],
    latest: &mut Latest,
) -> Result<(), Violation> {
    let sources = || operations.iter().filter(|op| op.kind == Kind::Write && op.value == value);
    // Zeros may be those with which the register began; a value may have been rolled back to.
    let Some(first) = sources().min_by_key(|op| op.asked_ns).filter(|_| value != 0) else {
        let is_known = value == 0;
        let what = || format!("'{}' holds {value} at {register}, which was never written", snapshot.name);
        return if is_known { Ok(()) } else { Err(Violation::new(NAME, what())) };
    };
    if first.asked_ns > snapshot.answered_ns {
        let what =
            format!("'{}' holds what was begun after it was answered: {}", snapshot.name, first.to_json());
        return Err(Violation::new(NAME, what));
    }
    if first.asked_ns > latest.asked_ns {
        *latest = Latest { asked_ns: first.asked_ns, why: format!(", but {}", first.to_json()) };
    }
    Ok(())
}

fn check_complete(
    snapshot: &Snapshot,
    value: u64,
    operations: &[Operation],
    latest: &Latest,
) -> Result<(), Violation> {
    let writes = || operations.iter().filter(|op| op.kind == Kind::Write);
    let known_ns = |write: &Operation| known_ns(write, operations, snapshot.reads_tell);
    let sources = writes().filter(|op| op.value == value && op.asked_ns <= snapshot.answered_ns);
    let source_known_ns = sources.map(known_ns).max().unwrap_or(0);
    let lost = writes()
        .find(|op| op.value != value && op.asked_ns > source_known_ns && known_ns(op) < latest.asked_ns);
    lost.map_or(Ok(()), |op| {
        let (name, why) = (&snapshot.name, &latest.why);
        let what = format!("'{name}' lacks {} (it holds {value} there){why}", op.to_json());
        Err(Violation::new(NAME, what))
    })
}

/// When somebody knew for certain that a write had taken effect. Where a value was written twice (zeros; a rollback brings one
/// back) a read does not tell which of them it saw.
fn known_ns(write: &Operation, operations: &[Operation], reads_tell: bool) -> u64 {
    let same = |op: &&Operation| op.value == write.value;
    let writes = operations.iter().filter(|op| op.kind == Kind::Write).filter(same).count();
    let tells = reads_tell && write.value != 0 && writes == 1;
    let reads = operations.iter().filter(|op| tells && op.kind == Kind::Read).filter(same);
    let read_ns = reads.filter_map(|op| op.answered_ns).min();
    [write.answered_ns, read_ns].into_iter().flatten().min().unwrap_or(u64::MAX)
}
