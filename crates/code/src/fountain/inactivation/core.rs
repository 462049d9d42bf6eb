//! The small dense system that is left over.

use super::peeled::{Column, Peeled};
use super::{Lacking, System};
use crate::elimination::eliminate;
use crate::fountain::bits::Bits;

/// The inactive columns, from the rows that are left over.
#[derive(Debug)]
pub(super) struct Core {
    /// The rows that say what they are.
    pub(super) rows: Vec<u32>,
    /// The inactive columns that the rows determine up to those in `free`.
    pub(super) pivots: Vec<Pivot>,
    /// The inactive columns that take the dense equations.
    pub(super) free: Vec<Free>,
}

/// An inactive column: the sum of some of [`Core::rows`] and of free columns.
#[derive(Debug)]
pub(super) struct Pivot {
    pub(super) inactive: u32,
    pub(super) rows: Vec<u32>,
    pub(super) free: Vec<u32>,
}

/// A free column: a sum of multiples of other values.
#[derive(Debug)]
pub(super) struct Free {
    pub(super) inactive: u32,
    /// Which value, and what it is multiplied by. First are counted the found bound columns' partial values, and then the
    /// pivots' sums of rows.
    pub(super) terms: Vec<(u32, u8)>,
}

impl Core {
    pub(super) fn new(system: &System, peeled: &Peeled) -> Result<Core, Lacking> {
        let width = peeled.inactive.len();
        let (mut matrix, mut chosen) = (Bits::new(width + 1, width), Vec::new());
        let mut made_of = Bits::new(width + 1, width);
        // The row that has its pivot in this column.
        let mut pivot_of: Vec<Option<u32>> = vec![None; width];
        for row in &peeled.left_over {
            let at = chosen.len();
            if at == width {
                break;
            }
            for column in system.rows.row(*row as usize) {
                match peeled.columns[*column as usize] {
                    Column::Inactive(bit) => matrix.flip(at, bit as usize),
                    Column::Peeled(found) => {
                        for bit in peeled.within.ones(found as usize) {
                            matrix.flip(at, bit);
                        }
                    }
                    Column::Active => unreachable!("no column is active in the end"),
                }
            }
            made_of.flip(at, at);
            // No row with a pivot has another's pivot: what is added here changes nothing of what is left to add.
            let pivots: Vec<u32> = matrix.ones(at).filter_map(|bit| pivot_of[bit]).collect();
            for other in pivots {
                matrix.add(at, other as usize);
                made_of.add(at, other as usize);
            }
            let pivot = matrix.ones(at).find(|bit| pivot_of[*bit].is_none());
            match pivot {
                Some(bit) => {
                    for other in 0..at {
                        if matrix.has(other, bit) {
                            matrix.add(other, at);
                            made_of.add(other, at);
                        }
                    }
                    pivot_of[bit] = Some(at as u32);
                    chosen.push(*row);
                }
                None => {
                    matrix.clear(at);
                    made_of.clear(at);
                }
            }
        }
        let free: Vec<u32> = (0..width as u32).filter(|bit| pivot_of[*bit as usize].is_none()).collect();
        let pivots: Vec<Pivot> = (0..width as u32)
            .filter_map(|bit| {
                let row = pivot_of[bit as usize]? as usize;
                let is_in = |free: &&u32| matrix.has(row, **free as usize);
                Some(Pivot {
                    inactive: bit,
                    rows: made_of.ones(row).map(|index| index as u32).collect(),
                    free: free.iter().filter(is_in).copied().collect(),
                })
            })
            .collect();
        let free = by_dense_equations(system, peeled, &pivots, &free)?;
        Ok(Core { rows: chosen, pivots, free })
    }
}

/// What the free columns are, by the dense equations: each says that a sum over the bound columns is zero.
fn by_dense_equations(
    system: &System,
    peeled: &Peeled,
    pivots: &[Pivot],
    free: &[u32],
) -> Result<Vec<Free>, Lacking> {
    if free.len() > system.dense as usize {
        return Err(Lacking { symbols: free.len() - system.dense as usize });
    }
    // Of each equation: the coefficients of the free columns, then those of the bound columns that are found, then those of the pivots.
    let found = peeled.found_bound(system);
    let mut equations: Vec<Vec<u8>> = (0..system.dense)
        .map(|equation| {
            let mut inactive = vec![0; peeled.inactive.len()];
            for column in 0..system.bound {
                let coefficient = system.coefficient(equation, column);
                match peeled.columns[column as usize] {
                    Column::Inactive(bit) => inactive[bit as usize] ^= coefficient,
                    Column::Peeled(found) => {
                        peeled.within.ones(found as usize).for_each(|bit| inactive[bit] ^= coefficient);
                    }
                    Column::Active => unreachable!("no column is active in the end"),
                }
            }
            let mut row: Vec<u8> = free.iter().map(|bit| inactive[*bit as usize]).collect();
            for pivot in pivots {
                for added in &pivot.free {
                    let at = free.iter().position(|inactive| inactive == added).expect("it is free");
                    row[at] ^= inactive[pivot.inactive as usize];
                }
            }
            row.extend(found.iter().map(|column| system.coefficient(equation, *column)));
            row.extend(pivots.iter().map(|pivot| inactive[pivot.inactive as usize]));
            row
        })
        .collect();
    if !eliminate(&mut equations, free.len()) {
        return Err(Lacking { symbols: 1 });
    }
    let solved = free.iter().zip(equations).map(|(inactive, equation)| Free {
        inactive: *inactive,
        terms: (0..).zip(equation[free.len()..].iter().copied()).filter(|(_, factor)| *factor != 0).collect(),
    });
    Ok(solved.collect())
}
