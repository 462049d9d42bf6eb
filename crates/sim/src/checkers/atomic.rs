//! `atomic`: a write of several blocks within one stripe unit takes effect as a whole or not at all, and no read of the unit sees a part of it.
//!
//! Of any two blocks that one read shows, the writes that they are of must fit together: neither shows a write that the other's was written
//! over without. What is read last of all, when nobody writes, counts as one read.

use super::Violation;
use crate::history::{Kind, Operation, Register};
use base::HashMap;
use std::collections::BTreeMap;

const NAME: &str = "atomic";

/// A write of blocks within one unit.
struct Whole {
    /// All of its blocks, in the volume that it went to.
    registers: Vec<Register>,
    asked_ns: u64,
    answered_ns: Option<u64>,
}

/// Checks all reads of blocks; `unit_of` gives a block's stripe unit, `None` for what is not written by blocks.
pub fn check(
    operations: &[Operation],
    finals: &BTreeMap<Register, u64>,
    unit_of: impl Fn(Register) -> Option<u64>,
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
        let unit = unit_of(parts[0].register);
        let is_whole = unit.is_some() && parts.iter().all(|op| unit_of(op.register) == unit);
        let whole = is_whole.then_some(wholes.len());
        for op in parts.iter().filter(|op| op.value != 0) {
            by_value.entry(op.value).or_insert(whole);
        }
        if is_whole {
            let registers = parts.iter().map(|op| op.register).collect();
            let Operation { asked_ns, answered_ns, .. } = *parts[0];
            wholes.push(Whole { registers, asked_ns, answered_ns });
        }
    }
    let reads = requests.iter().filter(|((.., is_write), parts)| !is_write && parts[0].answered_ns.is_some());
    let reads = reads.map(|(_, parts)| parts.iter().map(|op| (op.register, op.value)).collect::<Vec<_>>());
    let last: Vec<(Register, u64)> = finals.iter().map(|(register, value)| (*register, *value)).collect();
    reads.chain([last]).try_for_each(|read| check_read(&read, &wholes, &by_value, &unit_of))
}

/// A block, its value, and the write that it is of, by its number.
type Seen = (Register, u64, usize);

fn check_read(
    read: &[(Register, u64)],
    wholes: &[Whole],
    by_value: &HashMap<u64, Option<usize>>,
    unit_of: &impl Fn(Register) -> Option<u64>,
) -> Result<(), Violation> {
    let mut units: BTreeMap<(usize, u64), Vec<Seen>> = BTreeMap::new();
    for (register, value) in read {
        if let (Some(unit), Some(&Some(whole))) = (unit_of(*register), by_value.get(value)) {
            units.entry((register.volume(), unit)).or_default().push((*register, *value, whole));
        }
    }
    for seen in units.values() {
        for &(here, value, whole) in seen {
            let torn = seen.iter().find(|(there, _, other)| {
                *other != whole
                    && is_in(&wholes[whole], *there)
                    && !may_follow(&wholes[*other], here, &wholes[whole])
            });
            if let Some((there, other, _)) = torn {
                let what = format!(
                    "a read shows {value} at {here:?}, and at {there:?} {other}, over which it was written"
                );
                return Err(Violation::new(NAME, what));
            }
        }
    }
    Ok(())
}

/// Whether a write covers the block; a snapshot or clone has the blocks of what it was made of.
fn is_in(whole: &Whole, register: Register) -> bool {
    whole.registers.iter().any(|of| register.of(of.volume()) == *of)
}

/// Whether `later` may have gone over a part of `first`, and not over the block at `here`, which still shows the first.
fn may_follow(later: &Whole, here: Register, first: &Whole) -> bool {
    !is_in(later, here) && later.answered_ns.is_none_or(|ended| ended >= first.asked_ns)
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
        check(&history(of), &finals, |register| Some(register.0 / 4)).is_ok()
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
