//! `atomic`: a write that is one write at every member takes effect as a whole or not at all, and no read of a stripe unit sees a part of it.
//!
//! Of any two blocks that one read shows of a unit, the writes that they are of must fit together: neither shows a write that the other's was
//! written over without. What is read last of all, when nobody writes, counts as one read of everything.

use super::Violation;
use crate::history::{Kind, Operation, Register};
use base::HashMap;
use std::collections::BTreeMap;

const NAME: &str = "atomic";

/// A write that is whole or not there.
struct Whole {
    /// All of its blocks, in the volume that it went to.
    registers: Vec<Register>,
    asked_ns: u64,
    answered_ns: Option<u64>,
}

/// What volumes promise.
pub trait Promise {
    /// Whether a write of these blocks, which follow one another, is one write at every member.
    fn is_one_write(&self, registers: &[Register]) -> bool;

    /// Whether one read sees two blocks at the same moment.
    fn are_read_together(&self, one: Register, other: Register) -> bool;
}

/// Checks all reads of blocks, and what is left at the end.
pub fn check(
    operations: &[Operation],
    finals: &BTreeMap<Register, u64>,
    promise: &impl Promise,
) -> Result<(), Violation> {
    let mut requests: BTreeMap<(u64, u64, bool), Vec<&Operation>> = BTreeMap::new();
    for op in operations {
        requests.entry((op.client, op.asked_ns, op.kind == Kind::Write)).or_default().push(op);
    }
    let mut wholes: Vec<Whole> = Vec::new();
    let mut by_value: HashMap<u64, Option<usize>> = HashMap::default();
    // What snapshots, clones and rollbacks brought back has the highest numbers of clients, and comes last: a value is of the write that had it
    // first, whole or not.
    for ((.., is_write), parts) in &requests {
        if !is_write {
            continue;
        }
        let mut registers: Vec<Register> = parts.iter().map(|op| op.register).collect();
        registers.sort_unstable();
        let is_whole = promise.is_one_write(&registers);
        for op in parts.iter().filter(|op| op.value != 0) {
            by_value.entry(op.value).or_insert(is_whole.then_some(wholes.len()));
        }
        if is_whole {
            let Operation { asked_ns, answered_ns, .. } = *parts[0];
            wholes.push(Whole { registers, asked_ns, answered_ns });
        }
    }
    let writes = Writes { wholes, by_value };
    let reads = requests.iter().filter(|((.., is_write), parts)| !is_write && parts[0].answered_ns.is_some());
    for (_, parts) in reads {
        let read = parts.iter().map(|op| (op.register, op.value)).collect();
        writes.check(&read, |one, other| promise.are_read_together(one, other))?;
    }
    writes.check(finals, |_, _| true)
}

struct Writes {
    wholes: Vec<Whole>,
    /// The write that a value is of, if that is whole or not there.
    by_value: HashMap<u64, Option<usize>>,
}

impl Writes {
    fn whole_of(&self, value: u64) -> Option<usize> {
        self.by_value.get(&value).copied().flatten()
    }

    /// Whether what was read at one moment, as far as blocks are seen together, shows no half of a write.
    fn check(
        &self,
        read: &BTreeMap<Register, u64>,
        are_together: impl Fn(Register, Register) -> bool,
    ) -> Result<(), Violation> {
        for (&here, &value) in read {
            let Some(first) = self.whole_of(value) else { continue };
            // A snapshot or clone has the blocks of what it was made of.
            let of_write = self.wholes[first].registers.iter().map(|register| register.of(here.volume()));
            let others = of_write.filter(|there| *there != here && are_together(here, *there));
            for there in others {
                let Some(&other) = read.get(&there) else { continue };
                let Some(later) = self.whole_of(other).filter(|later| *later != first) else { continue };
                if !may_follow(&self.wholes[later], here, &self.wholes[first]) {
                    let what = format!(
                        "a read shows {value} at {here}, and at {there} {other}, over which it was written"
                    );
                    return Err(Violation::new(NAME, what));
                }
            }
        }
        Ok(())
    }
}

/// Whether `later` may have gone over a part of `first`, and not over the block at `here`, which still shows the first.
fn may_follow(later: &Whole, here: Register, first: &Whole) -> bool {
    let covers = later.registers.iter().any(|of| here.of(of.volume()) == *of);
    !covers && later.answered_ns.is_none_or(|ended| ended >= first.asked_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(client, kind, block, value, asked, answered)`.
    type Entry = (u64, Kind, u64, u64, u64, Option<u64>);

    fn history(of: &[Entry]) -> Vec<Operation> {
        let operation = |&(client, kind, block, value, asked_ns, answered_ns)| Operation {
            client,
            register: Register::block(0, block),
            kind,
            value,
            asked_ns,
            answered_ns,
        };
        of.iter().map(operation).collect()
    }

    fn verdict(of: &[Entry], finals: &[(u64, u64)]) -> bool {
        let finals = finals.iter().map(|(block, value)| (Register::block(0, *block), *value)).collect();
        check(&history(of), &finals, &OfFour).is_ok()
    }

    /// Writes within four blocks are one; reads are so within two.
    struct OfFour;

    impl Promise for OfFour {
        fn is_one_write(&self, registers: &[Register]) -> bool {
            registers.iter().all(|register| register.0 / 4 == registers[0].0 / 4)
        }

        fn are_read_together(&self, one: Register, other: Register) -> bool {
            one.0 / 2 == other.0 / 2
        }
    }

    use Kind::{Read, Write};

    #[test]
    fn half_a_write_is_found_in_a_read_and_at_the_end() {
        let torn = [
            (1, Write, 0, 10, 0, Some(5)),
            (1, Write, 1, 11, 0, Some(5)),
            (2, Write, 0, 20, 6, None),
            (2, Write, 1, 21, 6, None),
        ];
        assert!(verdict(&torn, &[(0, 20), (1, 21)]));
        assert!(verdict(&torn, &[(0, 10), (1, 11)]));
        assert!(!verdict(&torn, &[(0, 20), (1, 11)]), "left half-written");
        let mut seen = torn.to_vec();
        seen.extend([(3, Read, 0, 10, 7, Some(8)), (3, Read, 1, 21, 7, Some(8))]);
        assert!(!verdict(&seen, &[]), "seen half-written");
    }

    #[test]
    fn values_that_are_brought_back_are_of_the_write_that_had_them_first() {
        // One write of two units, one block of it written over; then all is brought back, a unit at a time.
        let mut of: Vec<Entry> = (2..6).map(|block| (2, Write, block, 10 + block, 0, Some(5))).collect();
        of.push((3, Write, 2, 20, 6, Some(7)));
        of.extend([(9, Write, 2, 20, 8, Some(9)), (9, Write, 3, 13, 8, Some(9))]);
        assert!(verdict(&of, &[(2, 20), (3, 13)]));
    }

    #[test]
    fn a_part_may_be_written_over_later_and_not_before() {
        let over = |asked, answered| {
            verdict(
                &[
                    (1, Write, 0, 10, 10, Some(20)),
                    (1, Write, 1, 11, 10, Some(20)),
                    (2, Write, 1, 21, asked, Some(answered)),
                ],
                &[(0, 10), (1, 21)],
            )
        };
        assert!(over(30, 40) && over(15, 17), "later, or at the same time");
        assert!(!over(1, 5), "what ended before it began");
    }

    #[test]
    fn a_longer_read_may_see_a_part_of_a_write_and_the_end_may_not() {
        let old_and_new = [
            (1, Write, 1, 11, 0, Some(5)),
            (1, Write, 2, 12, 0, Some(5)),
            (2, Write, 1, 21, 6, Some(9)),
            (2, Write, 2, 22, 6, Some(9)),
            (3, Read, 1, 21, 7, Some(8)),
            (3, Read, 2, 12, 7, Some(8)),
        ];
        assert!(verdict(&old_and_new, &[(1, 21), (2, 22)]));
        assert!(!verdict(&old_and_new, &[(1, 21), (2, 12)]));
    }

    #[test]
    fn writes_of_several_units_are_several() {
        let two = [
            (1, Write, 3, 13, 0, None),
            (1, Write, 4, 14, 0, None),
            (2, Write, 3, 23, 0, None),
            (2, Write, 4, 24, 0, None),
        ];
        assert!(verdict(&two, &[(3, 13), (4, 24)]));
    }
}
