//! Dense rows over GF(2).

/// Rows of bits, all of one width.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: usize,
    content: Vec<u64>,
}

impl Bits {
    pub(super) fn new(rows: usize, width: usize) -> Bits {
        let words = width.div_ceil(64);
        Bits { words, content: vec![0; rows * words] }
    }

    pub(super) fn row(&self, row: usize) -> &[u64] {
        &self.content[row * self.words..][..self.words]
    }

    pub(super) fn flip(&mut self, row: usize, bit: usize) {
        self.content[row * self.words + bit / 64] ^= 1 << (bit % 64);
    }

    pub(super) fn has(&self, row: usize, bit: usize) -> bool {
        self.content[row * self.words + bit / 64] >> (bit % 64) & 1 == 1
    }

    /// `row ^= other`.
    pub(super) fn add(&mut self, row: usize, other: usize) {
        for word in 0..self.words {
            self.content[row * self.words + word] ^= self.content[other * self.words + word];
        }
    }

    pub(super) fn clear(&mut self, row: usize) {
        self.content[row * self.words..][..self.words].fill(0);
    }

    pub(super) fn count(&self, row: usize) -> usize {
        self.row(row).iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The bits of a row that are one, in order.
    pub(super) fn ones(&self, row: usize) -> impl Iterator<Item = usize> {
        self.row(row).iter().enumerate().flat_map(|(at, word)| {
            std::iter::successors(Some(*word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|left| *left != 0)
                .map(move |left| at * 64 + left.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_and_tell_their_ones() {
        let mut bits = Bits::new(2, 130);
        [0, 63, 64, 129].into_iter().for_each(|bit| bits.flip(0, bit));
        [63, 100].into_iter().for_each(|bit| bits.flip(1, bit));
        bits.add(1, 0);
        assert_eq!(bits.ones(1).collect::<Vec<_>>(), [0, 64, 100, 129]);
        assert_eq!((bits.count(1), bits.has(1, 64), bits.has(1, 63)), (4, true, false));
        bits.clear(1);
        assert_eq!(bits.count(1), 0);
    }
}
