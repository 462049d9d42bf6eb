//! `regular`: what atomicity `none` promises of a block. A read gives the content of some write that was not overwritten before the read
//! began: of the last acknowledged one, or of one that was under way, whatever becomes of it.
//!
//! (Lamport, "On interprocess communication", for one writer; with several, writes that ran at the same time count as being in
//! either order.) It is weaker than `linearizable` in two ways: of two reads during a write the later one may see the old content, and
//! what a dead writer left may be seen and gone again.

use super::Violation;
use crate::history::{Kind, Operation};

const NAME: &str = "regular";

/// Checks the operations of one register, which begins with the value 0.
pub fn check(operations: &[Operation]) -> Result<(), Violation> {
    let writes: Vec<&Operation> = operations.iter().filter(|op| op.kind == Kind::Write).collect();
    let reads = operations.iter().filter(|op| op.kind == Kind::Read);
    for (read, answered_ns) in reads.filter_map(|op| Some((op, op.answered_ns?))) {
        // All that had begun when the read ended may be what it saw, unless another write came wholly between it and the read.
        let is_overwritten = |until: Option<u64>| {
            until.is_some_and(|until| {
                writes
                    .iter()
                    .any(|write| write.asked_ns > until && is_before(write.answered_ns, read.asked_ns))
            })
        };
        let seen = |write: &&&Operation| write.value == read.value && write.asked_ns <= answered_ns;
        let is_of_a_write = writes.iter().filter(seen).any(|write| !is_overwritten(write.answered_ns));
        let is_initial =
            read.value == 0 && !writes.iter().any(|write| is_before(write.answered_ns, read.asked_ns));
        if !is_of_a_write && !is_initial {
            let why = format!("{} was overwritten, or never written", read.to_json());
            return Err(Violation::new(NAME, why));
        }
    }
    Ok(())
}

fn is_before(answered_ns: Option<u64>, asked_ns: u64) -> bool {
    answered_ns.is_some_and(|answered| answered < asked_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Register;

    fn operation(kind: Kind, value: u64, asked_ns: u64, answered_ns: Option<u64>) -> Operation {
        Operation { client: 0, register: Register(0), kind, value, asked_ns, answered_ns }
    }

    fn write(value: u64, asked_ns: u64, answered_ns: Option<u64>) -> Operation {
        operation(Kind::Write, value, asked_ns, answered_ns)
    }

    fn read(value: u64, asked_ns: u64) -> Operation {
        operation(Kind::Read, value, asked_ns, Some(asked_ns + 1))
    }

    #[test]
    fn a_read_sees_the_last_write_or_one_under_way() {
        let during = [write(1, 0, Some(5)), write(2, 10, Some(20)), read(2, 12), read(1, 14), read(2, 21)];
        assert_eq!(check(&during), Ok(()), "new and old during a write");
        let doubtful = [write(1, 0, Some(5)), write(2, 10, None), read(2, 12), read(1, 14), read(2, 30)];
        assert_eq!(check(&doubtful), Ok(()), "what a dead writer left may come and go");
        assert_eq!(check(&[read(0, 1), write(1, 0, Some(9))]), Ok(()));
    }

    #[test]
    fn what_was_overwritten_is_not_seen_again() {
        assert!(check(&[write(1, 0, Some(5)), write(2, 10, Some(20)), read(1, 21)]).is_err());
        assert!(check(&[write(1, 0, Some(5)), read(0, 6)]).is_err());
        assert!(check(&[write(1, 10, Some(20)), read(1, 2)]).is_err(), "before it was written");
        assert!(check(&[read(7, 1)]).is_err());
    }
}
