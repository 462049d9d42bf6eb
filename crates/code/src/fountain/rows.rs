//! Sums of columns, one after another.

/// Rows of a sparse matrix over GF(2): for each, the columns that it adds up.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    ends: Vec<u32>,
    columns: Vec<u32>,
}

impl Rows {
    /// Adds a row; a column that comes twice is no column.
    pub(super) fn push(&mut self, columns: impl IntoIterator<Item = u32>) {
        let start = self.columns.len();
        for column in columns {
            match self.columns[start..].iter().position(|other| *other == column) {
                Some(at) => {
                    self.columns.swap_remove(start + at);
                }
                None => self.columns.push(column),
            }
        }
        self.ends.push(self.columns.len() as u32);
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn row(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.columns[start as usize..self.ends[index] as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// For each of `columns` columns, the rows it is in.
    pub(super) fn transposed(&self, columns: u32) -> Rows {
        let mut ends = vec![0; columns as usize + 1];
        for column in &self.columns {
            ends[*column as usize + 1] += 1;
        }
        for column in 0..columns as usize {
            ends[column + 1] += ends[column];
        }
        let mut rows = vec![0; self.columns.len()];
        // Each end is a start until its column has all its rows.
        for (index, row) in self.iter().enumerate() {
            for column in row {
                let next = &mut ends[*column as usize];
                rows[*next as usize] = index as u32;
                *next += 1;
            }
        }
        ends.truncate(columns as usize);
        Rows { ends, columns: rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_matrix_has_the_same_entries() {
        let mut rows = Rows::default();
        rows.push([2, 0]);
        rows.push([]);
        rows.push([0, 3, 3]);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [&[2, 0][..], &[], &[0]]);
        let columns = rows.transposed(4);
        assert_eq!(columns.iter().collect::<Vec<_>>(), [&[0, 2][..], &[], &[0], &[]]);
    }
}
