//! Linear equations over GF(256).

use crate::field::{product, quotient};

/// Gauss-Jordan elimination: makes the identity of the first `columns` columns in the first rows, and says whether it could. What
/// stands behind them becomes the solution.
pub(crate) fn eliminate(equations: &mut [Vec<u8>], columns: usize) -> bool {
    for column in 0..columns {
        let Some(pivot) = (column..equations.len()).find(|&row| equations[row][column] != 0) else {
            return false;
        };
        equations.swap(column, pivot);
        let divisor = equations[column][column];
        equations[column].iter_mut().for_each(|entry| *entry = quotient(*entry, divisor));
        let pivot = equations[column].clone();
        for (row, equation) in equations.iter_mut().enumerate() {
            let factor = equation[column];
            if row != column && factor != 0 {
                equation.iter_mut().zip(&pivot).for_each(|(entry, p)| *entry ^= product(factor, *p));
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_where_they_can_be() {
        // x + y = 5, 2x = 6: x = 3, y = 6.
        let mut equations = vec![vec![1, 1, 5], vec![2, 0, 6]];
        assert!(eliminate(&mut equations, 2));
        assert_eq!(equations, [[1, 0, 3], [0, 1, 6]]);
        assert!(!eliminate(&mut [vec![1, 1, 5], vec![1, 1, 5]], 2));
    }
}
