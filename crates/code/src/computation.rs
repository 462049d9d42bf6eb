//! Work on content as a value, so that whoever wants it need not be who does it.

use crate::fountain::{Schedule, Scratch};
use crate::{Code, CodeError};
use base::Payload;
use std::sync::Arc;

/// What is to be computed. Nothing else goes in and nothing else comes out, so it may be done by anybody at any time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Computation {
    /// The parity shards of all data shards, which have one length.
    Encode { code: Code, data: Vec<Payload> },
    /// One shard from others of its stripe, each with its index.
    Reconstruct { code: Code, shards: Vec<(u8, Payload)>, wanted: u8 },
    /// Blocks from the sums of others, all of one length, as a schedule says.
    Sums { schedule: Arc<Schedule>, blocks: Vec<Payload> },
}

/// From so many bytes on it takes longer than to hand it to another thread, and whoever else waits for this one notices.
const LARGE_BYTES: u64 = 256 << 10;

/// The shards that were made: all of parity, or the one that was wanted.
pub type Computed = Result<Vec<Payload>, CodeError>;

impl Computation {
    /// Bytes of content that are multiplied or added: what it costs.
    pub fn bytes(&self) -> u64 {
        match self {
            Computation::Encode { code, data } => length(data) * u64::from(code.parity()),
            Computation::Reconstruct { code, shards, .. } => {
                length(shards.iter().take(usize::from(code.data())).map(|(_, shard)| shard))
            }
            Computation::Sums { schedule, blocks } => {
                blocks.first().map_or(0, |block| block.len() as u64) * schedule.cost().reads as u64
            }
        }
    }

    /// Whether it is better left to another thread, where there is a processor for that.
    pub fn is_large(&self) -> bool {
        self.bytes() >= LARGE_BYTES
    }

    /// Does it.
    ///
    /// # Errors
    /// See [`Code::reconstruct`].
    pub fn run(&self) -> Computed {
        match self {
            Computation::Encode { code, data } => Ok(code.encode(data)),
            Computation::Reconstruct { code, shards, wanted } => {
                code.reconstruct(shards, *wanted).map(|shard| vec![shard])
            }
            Computation::Sums { schedule, blocks } => Ok(sums(schedule, blocks)),
        }
    }
}

fn sums(schedule: &Schedule, blocks: &[Payload]) -> Vec<Payload> {
    let length = blocks.first().map_or(0, Payload::len);
    let inputs: Vec<_> = blocks.iter().map(Payload::contiguous).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(|block| &block[..]).collect();
    let mut outputs = vec![vec![0; length]; schedule.outputs()];
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    schedule.run(&inputs, &mut slices, &mut Scratch::default());
    outputs.into_iter().map(Payload::from).collect()
}

fn length<'a>(shards: impl IntoIterator<Item = &'a Payload>) -> u64 {
    shards.into_iter().map(|shard| shard.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_and_what_it_costs_are_those_of_the_code() {
        let code = Code::new(4, 2);
        let data: Vec<Payload> = (1..=4).map(|byte| Payload::from(vec![byte; 100])).collect();
        let encode = Computation::Encode { code, data: data.clone() };
        assert_eq!(encode.bytes(), 800, "four shards, into two each");
        let parity = encode.run().expect("data of one length");
        assert_eq!(parity, code.encode(&data));

        let mut shards: Vec<(u8, Payload)> = (0..).zip(data.iter().cloned()).skip(1).collect();
        let too_few = Computation::Reconstruct { code, shards: shards.clone(), wanted: 0 };
        assert!(matches!(too_few.run(), Err(CodeError::TooFewShards { have: 3, .. })));
        shards.extend((4..).zip(parity));
        let one = Computation::Reconstruct { code, shards, wanted: 0 };
        assert_eq!((one.bytes(), one.run()), (400, Ok(vec![data[0].clone()])), "four of the five suffice");
    }
}
