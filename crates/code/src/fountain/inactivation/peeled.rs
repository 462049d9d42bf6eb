//! Which equation finds which block, one after another.

use super::System;
use crate::fountain::bits::Bits;
use crate::fountain::rows::Rows;

/// What has become of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Active,
    /// Found; its place in the order.
    Peeled(u32),
    /// Set aside; its place among those.
    Inactive(u32),
}

/// Which equation finds which block.
#[derive(Debug)]
pub(super) struct Peeled {
    pub(super) columns: Vec<Column>,
    pub(super) inactive: Vec<u32>,
    /// (column, row), in the order in which they are found.
    pub(super) order: Vec<(u32, u32)>,
    /// The rows that find nothing, the shortest first.
    pub(super) left_over: Vec<u32>,
    /// For each found column, the inactive ones in it.
    pub(super) within: Bits,
}

/// Equations in which few columns are active yet.
struct Ripple {
    transposed: Rows,
    /// Of each row: its active columns, how many and their exclusive or.
    active: Vec<(u32, u32)>,
    /// Rows that had one active column when they came here: the short and the long ones.
    ready: [Vec<u32>; 2],
    constraints: usize,
}

impl Ripple {
    fn new(rows: &Rows, columns: u32, constraints: usize) -> Ripple {
        let active: Vec<(u32, u32)> = rows
            .iter()
            .map(|row| (row.len() as u32, row.iter().fold(0, |sum, column| sum ^ column)))
            .collect();
        let mut ready = [Vec::new(), Vec::new()];
        for (row, _) in (0..).zip(&active).filter(|(_, (count, _))| *count == 1) {
            ready[usize::from((row as usize) < constraints)].push(row);
        }
        Ripple { transposed: rows.transposed(columns), active, ready, constraints }
    }

    /// A column is active no more.
    fn retire(&mut self, column: u32) {
        for row in self.transposed.row(column as usize) {
            let (count, sum) = &mut self.active[*row as usize];
            *count -= 1;
            *sum ^= column;
            if *count == 1 {
                self.ready[usize::from((*row as usize) < self.constraints)].push(*row);
            }
        }
    }

    /// A row that has one active column, and that column.
    fn next(&mut self) -> Option<(u32, u32)> {
        while let Some(row) = self.ready[0].pop().or_else(|| self.ready[1].pop()) {
            if let (1, column) = self.active[row as usize] {
                return Some((column, row));
            }
        }
        None
    }
}

impl Peeled {
    pub(super) fn new(system: &System) -> Peeled {
        let mut ripple = Ripple::new(system.rows, system.columns, system.constraints);
        let mut columns = vec![Column::Active; system.columns as usize];
        let mut inactive = Vec::new();
        let mut order = Vec::new();
        let mut is_used = vec![false; system.rows.len()];
        let mut set_aside = |column: u32, columns: &mut [Column], ripple: &mut Ripple| {
            columns[column as usize] = Column::Inactive(inactive.len() as u32);
            inactive.push(column);
            ripple.retire(column);
        };
        loop {
            while let Some((column, row)) = ripple.next() {
                columns[column as usize] = Column::Peeled(order.len() as u32);
                order.push((column, row));
                is_used[row as usize] = true;
                ripple.retire(column);
            }
            match most_useful(system, &columns, &ripple.active) {
                Some(column) => set_aside(column, &mut columns, &mut ripple),
                None => break,
            }
        }
        let mut left_over: Vec<u32> =
            (0..system.rows.len() as u32).filter(|row| !is_used[*row as usize]).collect();
        left_over.sort_by_key(|row| (system.rows.row(*row as usize).len(), *row));
        let mut within = Bits::new(order.len(), inactive.len());
        for (found, (column, row)) in order.iter().enumerate() {
            for other in system.rows.row(*row as usize).iter().filter(|other| *other != column) {
                match columns[*other as usize] {
                    Column::Inactive(bit) => within.flip(found, bit as usize),
                    Column::Peeled(earlier) => within.add(found, earlier as usize),
                    Column::Active => unreachable!("no column is active in the end"),
                }
            }
        }
        Peeled { columns, inactive, order, left_over, within }
    }

    /// The bound columns that are found.
    pub(super) fn found_bound(&self, system: &System) -> Vec<u32> {
        (0..system.bound)
            .filter(|column| matches!(self.columns[*column as usize], Column::Peeled(_)))
            .collect()
    }
}

/// The column to set aside: with it gone, the most others are found. Rows with two active columns join these to parts of which
/// each is found as soon as one of its columns is; so it is a column of the largest part, the one with the most such rows.
fn most_useful(system: &System, columns: &[Column], active: &[(u32, u32)]) -> Option<u32> {
    let mut parts = Parts::new(system.columns);
    let mut pairs = vec![0_u32; system.columns as usize];
    for (row, _) in active.iter().enumerate().filter(|(_, (count, _))| *count == 2) {
        let mut pair =
            system.rows.row(row).iter().filter(|column| columns[**column as usize] == Column::Active);
        let (Some(one), Some(other)) = (pair.next(), pair.next()) else { continue };
        parts.join(*one, *other);
        pairs[*one as usize] += 1;
        pairs[*other as usize] += 1;
    }
    let is_active = |column: &u32| columns[*column as usize] == Column::Active;
    (0..system.columns)
        .filter(is_active)
        .max_by_key(|column| (parts.size(*column), pairs[*column as usize], std::cmp::Reverse(*column)))
}

/// Disjoint sets.
struct Parts {
    above: Vec<u32>,
    sizes: Vec<u32>,
}

impl Parts {
    fn new(count: u32) -> Parts {
        Parts { above: (0..count).collect(), sizes: vec![1; count as usize] }
    }

    fn root(&mut self, mut of: u32) -> u32 {
        while self.above[of as usize] != of {
            self.above[of as usize] = self.above[self.above[of as usize] as usize];
            of = self.above[of as usize];
        }
        of
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            let (small, large) = if self.sizes[one as usize] < self.sizes[other as usize] {
                (one, other)
            } else {
                (other, one)
            };
            self.above[small as usize] = large;
            self.sizes[large as usize] += self.sizes[small as usize];
        }
    }

    fn size(&mut self, of: u32) -> u32 {
        let root = self.root(of);
        self.sizes[root as usize]
    }
}
