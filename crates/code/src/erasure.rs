//! Systematic erasure codes: the data shards as they are, and parity shards that are sums of multiples of them.

use crate::elimination::eliminate;
use crate::field::quotient;
use crate::kernel::{accumulate, multiply};
use base::Payload;
use thiserror::Error;

/// A code of `data` + `parity` shards of one length; any `data` of them give back all others. Shards are numbered
/// with the data shards first.
///
/// The coefficients are a Cauchy matrix whose columns are scaled so that its first row is all ones (Blömer et al.,
/// "An XOR-Based Erasure-Resilient Coding Scheme", 1995): scaling keeps every square part of it invertible, and makes
/// the first parity shard the exclusive or of the data, which is RAID-4 and RAID-5. They depend on neither `data` nor
/// `parity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    data: u8,
    parity: u8,
}

/// Why a shard cannot be reconstructed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CodeError {
    /// Fewer shards than data shards.
    #[error(
        "{have} shards of a {data}+{parity} code are too few to reconstruct shard {wanted}: {data} are needed"
    )]
    TooFewShards {
        /// Shards of data in the code.
        data: u8,
        /// Shards of parity in the code.
        parity: u8,
        /// The shard asked for.
        wanted: u8,
        have: usize,
    },
    /// A shard's number is beyond the code.
    #[error("a {data}+{parity} code has no shard {index}")]
    NoSuchShard {
        /// Shards of data in the code.
        data: u8,
        /// Shards of parity in the code.
        parity: u8,
        index: u8,
    },
    /// A shard was given twice.
    #[error("shard {index} was given twice")]
    Repeated { index: u8 },
    /// Two shards differ in length.
    #[error(
        "shard {index} has {len} bytes, but shard {other} has {other_len}: the shards of a stripe have one length"
    )]
    Lengths {
        index: u8,
        /// Its length in bytes.
        len: usize,
        other: u8,
        /// Its length in bytes.
        other_len: usize,
    },
}

impl Code {
    /// A code of at least one data shard and at most 255 shards. Panics otherwise.
    pub fn new(data: u8, parity: u8) -> Code {
        assert!(
            data > 0 && data.checked_add(parity).is_some(),
            "no code of {data}+{parity} shards: 1 to 255 fit"
        );
        Code { data, parity }
    }

    /// How many data shards.
    pub fn data(self) -> u8 {
        self.data
    }

    /// How many parity shards.
    pub fn parity(self) -> u8 {
        self.parity
    }

    /// What data shard `data_index` is multiplied by in parity shard `parity_index` (from 0). Never zero.
    pub fn coefficient(self, parity_index: u8, data_index: u8) -> u8 {
        assert!(
            parity_index < self.parity && data_index < self.data,
            "no coefficient of data shard {data_index} in parity shard {parity_index} of a {}+{} code",
            self.data,
            self.parity
        );
        // 255 - parity and data are distinct numbers, as 255 shards at most fit.
        quotient(255 ^ data_index, (255 - parity_index) ^ data_index)
    }

    /// The parity shards of all data shards. Panics when there are not `data` shards of one length.
    pub fn encode(self, shards: &[Payload]) -> Vec<Payload> {
        assert_eq!(
            shards.len(),
            usize::from(self.data),
            "data shards of a {}+{} code",
            self.data,
            self.parity
        );
        let len = shards[0].len();
        let mut sums = vec![vec![0; len]; usize::from(self.parity)];
        for (data_index, shard) in (0..self.data).zip(shards) {
            for (parity_index, sum) in (0..self.parity).zip(&mut sums) {
                accumulate(sum, self.coefficient(parity_index, data_index), shard);
            }
        }
        sums.into_iter().map(Payload::from).collect()
    }

    /// What to add (exclusive or) to parity shard `parity_index` when data shard `data_index` goes from `old` to `new`.
    /// Panics when their lengths differ.
    pub fn delta(self, parity_index: u8, data_index: u8, old: &Payload, new: &Payload) -> Payload {
        multiply(&old.xor(new), self.coefficient(parity_index, data_index))
    }

    /// The `wanted` shard, data or parity, from any `data` others of one stripe. More than that are welcome: the ones
    /// that cost least are used.
    pub fn reconstruct(self, shards: &[(u8, Payload)], wanted: u8) -> Result<Payload, CodeError> {
        let mut order: Vec<usize> = (0..shards.len()).collect();
        order.sort_by_key(|&at| shards[at].0);
        let indexes: Vec<u8> = order.iter().map(|&at| shards[at].0).collect();
        let coefficients = self.recovery(&indexes, wanted)?;
        let Some((first, others)) = shards.split_first() else {
            unreachable!("recovery from no shards");
        };
        if let Some((index, other)) = others.iter().find(|(_, shard)| shard.len() != first.1.len()) {
            let (len, other_len) = (other.len(), first.1.len());
            return Err(CodeError::Lengths { index: *index, len, other: first.0, other_len });
        }
        if let Some((_, shard)) = shards.iter().find(|(index, _)| *index == wanted) {
            return Ok(shard.clone());
        }
        let mut sum = vec![0; first.1.len()];
        for (at, coefficient) in order.into_iter().zip(coefficients) {
            accumulate(&mut sum, coefficient, &shards[at].1);
        }
        Ok(Payload::from(sum))
    }

    /// How to make the `wanted` shard: what to multiply the first `data` of the shards `indexes` by before they are added
    /// up. Lets each holder of a shard multiply its own.
    pub fn recovery(self, indexes: &[u8], wanted: u8) -> Result<Vec<u8>, CodeError> {
        self.check(indexes, wanted)?;
        let used = &indexes[..usize::from(self.data)];
        // One equation for each data shard: what it contributes to the used shards adds up to what it does to the wanted.
        let mut equations: Vec<Vec<u8>> = (0..self.data)
            .map(|data_index| {
                let contribution = |&shard: &u8| self.contribution(data_index, shard);
                used.iter().chain([&wanted]).map(contribution).collect()
            })
            .collect();
        let is_solved = eliminate(&mut equations, used.len());
        assert!(is_solved, "any {} shards of the code are independent", used.len());
        Ok(equations.into_iter().map(|equation| equation[used.len()]).collect())
    }

    fn check(self, indexes: &[u8], wanted: u8) -> Result<(), CodeError> {
        let Code { data, parity } = self;
        if let Some(&index) = indexes.iter().chain([&wanted]).find(|&&index| index >= data + parity) {
            return Err(CodeError::NoSuchShard { data, parity, index });
        }
        if let Some((_, &index)) =
            indexes.iter().enumerate().find(|(at, index)| indexes[..*at].contains(index))
        {
            return Err(CodeError::Repeated { index });
        }
        if indexes.len() < usize::from(data) {
            return Err(CodeError::TooFewShards { data, parity, wanted, have: indexes.len() });
        }
        Ok(())
    }

    /// What data shard `data_index` is multiplied by in `shard`, which may be a data shard too.
    fn contribution(self, data_index: u8, shard: u8) -> u8 {
        match shard.checked_sub(self.data) {
            Some(parity_index) => self.coefficient(parity_index, data_index),
            None => u8::from(shard == data_index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shards(code: Code, len: usize, rng: &mut base::Rng) -> Vec<(u8, Payload)> {
        let data: Vec<Payload> = (0..code.data).map(|_| payload(len, rng)).collect();
        let parity = code.encode(&data);
        (0..code.data + code.parity).zip(data.into_iter().chain(parity)).collect()
    }

    fn payload(len: usize, rng: &mut base::Rng) -> Payload {
        Payload::from((0..len).map(|_| rng.u8(..)).collect::<Vec<u8>>())
    }

    #[test]
    fn the_first_parity_is_the_exclusive_or() {
        let shards = shards(Code::new(4, 2), 100, &mut base::Rng::with_seed(1));
        let sum = shards[..4].iter().fold(Payload::zeros(100), |sum, (_, shard)| sum.xor(shard));
        assert_eq!(shards[4].1, sum);
        assert_ne!(shards[5].1, sum);
    }

    #[test]
    fn all_pairs_of_losses_of_4_2() {
        let code = Code::new(4, 2);
        let all = shards(code, 64, &mut base::Rng::with_seed(2));
        for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
            let left: Vec<_> = all.iter().filter(|(index, _)| *index != a && *index != b).cloned().collect();
            assert_eq!(
                code.reconstruct(&left, a).as_ref(),
                Ok(&all[usize::from(a)].1),
                "{a} without {a}, {b}"
            );
        }
    }

    #[test]
    fn the_largest_codes_work() {
        for code in [Code::new(1, 254), Code::new(254, 1), Code::new(127, 128), Code::new(255, 0)] {
            let mut rng = base::Rng::with_seed(3);
            let mut all = shards(code, 8, &mut rng);
            let expected = all[0].1.clone();
            if code.parity > 0 {
                all.remove(0);
            }
            rng.shuffle(&mut all);
            all.truncate(usize::from(code.data));
            assert_eq!(code.reconstruct(&all, 0), Ok(expected), "{code:?}");
        }
    }

    #[test]
    fn what_cannot_be_reconstructed_is_refused() {
        let code = Code::new(2, 1);
        let shard = |index, len| (index, Payload::zeros(len));
        let refused = |shards: &[_], wanted| code.reconstruct(shards, wanted).unwrap_err();
        assert!(matches!(refused(&[], 0), CodeError::TooFewShards { have: 0, .. }));
        assert!(matches!(refused(&[shard(1, 8)], 0), CodeError::TooFewShards { have: 1, .. }));
        assert!(matches!(refused(&[shard(1, 8), shard(1, 8)], 0), CodeError::Repeated { index: 1 }));
        assert!(matches!(refused(&[shard(1, 8), shard(3, 8)], 0), CodeError::NoSuchShard { index: 3, .. }));
        assert!(matches!(refused(&[shard(1, 8), shard(2, 8)], 9), CodeError::NoSuchShard { index: 9, .. }));
        assert!(matches!(
            refused(&[shard(1, 8), shard(2, 9)], 0),
            CodeError::Lengths { index: 2, len: 9, .. }
        ));
    }

    proptest! {
        #[test]
        fn any_survivors_restore_everything(data in 1..20_u8, parity in 0..6_u8, len in 0..200_usize, seed: u64) {
            let (code, mut rng) = (Code::new(data, parity), base::Rng::with_seed(seed));
            let all = shards(code, len, &mut rng);
            let mut survivors = all.clone();
            rng.shuffle(&mut survivors);
            survivors.truncate(usize::from(data) + rng.usize(..=usize::from(parity)));
            for (index, shard) in &all {
                prop_assert_eq!(code.reconstruct(&survivors, *index), Ok(shard.clone()));
            }
        }

        #[test]
        fn an_update_by_deltas_is_a_new_encoding(data in 1..20_u8, parity in 1..6_u8, changed: u8, seed: u64) {
            let (code, mut rng) = (Code::new(data, parity), base::Rng::with_seed(seed));
            let changed = changed % data;
            let mut old: Vec<Payload> = (0..data).map(|_| payload(50, &mut rng)).collect();
            let before = code.encode(&old);
            let new = payload(50, &mut rng);
            let updated: Vec<Payload> = (0..parity)
                .map(|parity| before[usize::from(parity)].xor(&code.delta(parity, changed, &old[usize::from(changed)], &new)))
                .collect();
            old[usize::from(changed)] = new;
            prop_assert_eq!(updated, code.encode(&old));
        }
    }
}
