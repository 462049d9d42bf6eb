//! The peeling decoder, which works while symbols arrive.

/// Which blocks are known from the symbols so far. It knows numbers only: whoever has the bytes adds them up.
#[derive(Clone, Debug)]
pub struct Peeling {
    known: Vec<bool>,
    known_count: usize,
    /// Of each symbol that came: its blocks.
    symbols: Vec<Vec<u32>>,
    /// Of each symbol: how many of its blocks are not known, and their exclusive or.
    unknown: Vec<(u32, u32)>,
    /// Of each block: the symbols that came before it was known.
    waiting: Vec<Vec<u32>>,
}

/// A block that has become known: the sum of a symbol and of blocks known before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub block: u32,
    /// The symbol's place in the order in which they came.
    pub symbol: u32,
    pub others: Vec<u32>,
}

impl Peeling {
    /// Nothing is known of `blocks` blocks.
    pub fn new(blocks: u32) -> Peeling {
        let count = blocks as usize;
        let waiting = vec![Vec::new(); count];
        Peeling {
            known: vec![false; count],
            known_count: 0,
            symbols: Vec::new(),
            unknown: Vec::new(),
            waiting,
        }
    }

    /// A symbol came that is the sum of these blocks. Tells what is found with it, in an order in which it can be added up.
    pub fn arrive(&mut self, blocks: &[u32]) -> Vec<Found> {
        let symbol = self.symbols.len() as u32;
        let unknown = blocks.iter().filter(|block| !self.known[**block as usize]);
        let state = unknown.clone().fold((0, 0), |(count, sum), block| (count + 1, sum ^ block));
        unknown.for_each(|block| self.waiting[*block as usize].push(symbol));
        self.symbols.push(blocks.to_vec());
        self.unknown.push(state);
        let mut found = Vec::new();
        let mut ready = Vec::from_iter((state.0 == 1).then_some(symbol));
        while let Some(symbol) = ready.pop() {
            // Another symbol may have told the same in the meantime.
            let (1, block) = self.unknown[symbol as usize] else { continue };
            let others =
                self.symbols[symbol as usize].iter().copied().filter(|other| *other != block).collect();
            found.push(Found { block, symbol, others });
            self.known[block as usize] = true;
            self.known_count += 1;
            for waiting in std::mem::take(&mut self.waiting[block as usize]) {
                let (count, sum) = &mut self.unknown[waiting as usize];
                *count -= 1;
                *sum ^= block;
                if *count == 1 {
                    ready.push(waiting);
                }
            }
        }
        found
    }

    /// Whether all blocks are known.
    pub fn is_complete(&self) -> bool {
        self.known_count == self.known.len()
    }

    /// How many symbols came.
    pub fn arrived(&self) -> usize {
        self.symbols.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_symbol_may_find_many_blocks() {
        let mut peeling = Peeling::new(3);
        assert_eq!(peeling.arrive(&[0, 1]), []);
        assert_eq!(peeling.arrive(&[0, 1, 2]), []);
        let found = peeling.arrive(&[1]);
        let blocks: Vec<u32> = found.iter().map(|found| found.block).collect();
        assert_eq!(blocks, [1, 0, 2]);
        assert_eq!(found[2], Found { block: 2, symbol: 1, others: vec![0, 1] });
        assert!(peeling.is_complete());
        assert_eq!(peeling.arrive(&[0, 2]), [], "nothing is left to find");
    }
}
