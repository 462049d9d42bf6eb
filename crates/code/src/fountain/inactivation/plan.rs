//! What is added up, in which order.
//!
//! Every found block is summed up twice at most: once with the inactive blocks taken for zero, where an equation that is left
//! over needs it, and once in earnest, where somebody wants it.

use super::System;
use super::core::Core;
use super::peeled::{Column, Peeled};
use crate::fountain::rows::Rows;
use crate::fountain::schedule::{Schedule, Target};

/// How the values are made, in which order.
pub(super) struct Plan<'a> {
    system: &'a System<'a>,
    peeled: &'a Peeled,
    core: &'a Core,
    wanted: &'a Rows,
    /// Of each found column: whether its value up to inactive columns is needed, and how its value is made where that is.
    partial: Vec<bool>,
    whole: Vec<Whole>,
    schedule: Schedule,
    /// Where a column's value is, partial or whole.
    slots: Vec<Option<u32>>,
}

/// How a found column's value is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whole {
    NotNeeded,
    /// The partial value has no inactive columns.
    IsPartial,
    /// The partial value, and the inactive columns in it.
    FromPartial,
    /// From its equation.
    FromRow,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        system: &'a System<'a>,
        peeled: &'a Peeled,
        core: &'a Core,
        wanted: &'a Rows,
    ) -> Plan<'a> {
        let mut partial = vec![false; peeled.order.len()];
        let mut whole = vec![Whole::NotNeeded; peeled.order.len()];
        let found = |column: &u32| match peeled.columns[*column as usize] {
            Column::Peeled(found) => Some(found as usize),
            _ => None,
        };
        for row in &core.rows {
            system.rows.row(*row as usize).iter().filter_map(found).for_each(|found| partial[found] = true);
        }
        if !core.free.is_empty() {
            (0..system.bound).filter_map(|column| found(&column)).for_each(|found| partial[found] = true);
        }
        for row in wanted.iter() {
            row.iter().filter_map(found).for_each(|found| whole[found] = Whole::FromRow);
        }
        for (at, (column, row)) in peeled.order.iter().enumerate().rev() {
            let row = system.rows.row(*row as usize);
            let earlier = row.iter().filter(|other| *other != column).filter_map(found);
            if whole[at] == Whole::FromRow {
                let inactive = peeled.within.count(at);
                if inactive == 0 {
                    (partial[at], whole[at]) = (true, Whole::IsPartial);
                } else if partial[at] && inactive < row.len() {
                    whole[at] = Whole::FromPartial;
                } else {
                    earlier.clone().for_each(|found| whole[found] = Whole::FromRow);
                }
            }
            if partial[at] {
                earlier.for_each(|found| partial[found] = true);
            }
        }
        let inputs = system.rows.len() - system.constraints;
        let schedule = Schedule::new(inputs, wanted.len());
        Plan {
            system,
            peeled,
            core,
            wanted,
            partial,
            whole,
            schedule,
            slots: vec![None; system.columns as usize],
        }
    }

    pub(super) fn schedule(mut self) -> Schedule {
        for at in 0..self.peeled.order.len() {
            if self.partial[at] {
                let (column, row) = self.peeled.order[at];
                let target = self.slot_of(column);
                self.sum_up(target, row, column, false);
            }
        }
        self.inactive_columns();
        for at in 0..self.peeled.order.len() {
            let (column, row) = self.peeled.order[at];
            match self.whole[at] {
                Whole::NotNeeded | Whole::IsPartial => {}
                Whole::FromPartial => {
                    let target = self.slot_of(column);
                    let inactive: Vec<u32> =
                        self.peeled.within.ones(at).map(|inactive| self.peeled.inactive[inactive]).collect();
                    let inactive: Vec<u32> =
                        inactive.into_iter().map(|column| self.slot_of(column)).collect();
                    self.schedule.sum(Target::Slot(target), [], [target].into_iter().chain(inactive));
                }
                Whole::FromRow => {
                    let target = self.slot_of(column);
                    self.sum_up(target, row, column, true);
                }
            }
        }
        for (output, row) in (0..).zip(self.wanted.iter()) {
            let terms: Vec<u32> = row.iter().map(|column| self.slot_of(*column)).collect();
            self.schedule.sum(Target::Output(output), [], terms);
        }
        self.schedule
    }

    fn slot_of(&mut self, column: u32) -> u32 {
        let schedule = &mut self.schedule;
        *self.slots[column as usize].get_or_insert_with(|| schedule.slot())
    }

    /// The sum of a row but for `without`, with its inactive columns or with these taken for zero.
    fn sum_up(&mut self, target: u32, row: u32, without: u32, with_inactive: bool) {
        let is_in = |column: &u32| {
            *column != without
                && (with_inactive || matches!(self.peeled.columns[*column as usize], Column::Peeled(_)))
        };
        let columns: Vec<u32> = self.system.rows.row(row as usize).iter().copied().filter(is_in).collect();
        let terms: Vec<u32> = columns.into_iter().map(|column| self.slot_of(column)).collect();
        let input = (row as usize).checked_sub(self.system.constraints).map(|input| input as u32);
        self.schedule.sum(Target::Slot(target), input, terms);
    }

    /// The left-over rows, and the inactive columns from them: four rows at a time, whose sums are made once ("the four
    /// Russians").
    fn inactive_columns(&mut self) {
        let rows: Vec<u32> = self.core.rows.clone();
        let sums: Vec<u32> = rows
            .iter()
            .map(|row| {
                let target = self.schedule.slot();
                self.sum_up(target, *row, u32::MAX, false);
                target
            })
            .collect();
        // For each four rows, where the sum of each subset is.
        let mut subsets: Vec<[Option<u32>; 16]> = vec![[None; 16]; sums.len().div_ceil(4)];
        for (index, sum) in sums.iter().enumerate() {
            subsets[index / 4][1 << (index % 4)] = Some(*sum);
        }
        let mut values = Vec::new();
        for pivot in &self.core.pivots {
            let mut patterns = vec![0_usize; subsets.len()];
            pivot.rows.iter().for_each(|row| patterns[*row as usize / 4] |= 1 << (row % 4));
            let mut terms = Vec::new();
            for (group, pattern) in patterns.into_iter().enumerate().filter(|(_, pattern)| *pattern != 0) {
                terms.push(subset(&mut self.schedule, &mut subsets[group], pattern));
            }
            let target = self.slot_of(self.peeled.inactive[pivot.inactive as usize]);
            self.schedule.sum(Target::Slot(target), [], terms);
            values.push(target);
        }
        let bound: Vec<u32> =
            self.peeled.found_bound(self.system).into_iter().map(|column| self.slot_of(column)).collect();
        let mut free_slots = std::collections::BTreeMap::new();
        for free in &self.core.free {
            let target = self.slot_of(self.peeled.inactive[free.inactive as usize]);
            self.schedule.sum(Target::Slot(target), [], []);
            for (term, coefficient) in &free.terms {
                let slot = bound.iter().chain(&values).nth(*term as usize).expect("a term of the equation");
                self.schedule.multiply_add(target, *coefficient, *slot);
            }
            free_slots.insert(free.inactive, target);
        }
        for (pivot, value) in self.core.pivots.iter().zip(&values) {
            if !pivot.free.is_empty() {
                let terms = pivot.free.iter().map(|inactive| free_slots[inactive]);
                self.schedule.sum(Target::Slot(*value), [], [*value].into_iter().chain(terms));
            }
        }
    }
}

/// Where the sum of these of four rows is: made from a smaller one where it was not needed before.
fn subset(schedule: &mut Schedule, sums: &mut [Option<u32>; 16], pattern: usize) -> u32 {
    if let Some(slot) = sums[pattern] {
        return slot;
    }
    let without_lowest = pattern & (pattern - 1);
    let (one, other) =
        (subset(schedule, sums, without_lowest), subset(schedule, sums, pattern ^ without_lowest));
    let slot = schedule.slot();
    schedule.sum(Target::Slot(slot), [], [one, other]);
    sums[pattern] = Some(slot);
    slot
}
