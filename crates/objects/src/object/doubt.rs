//! Fragments that came, passed their checksums, and give other content than was put: some of them are wrong, and which is not known.
//!
//! So the segment is made of others, of one choice after another, until its content is the right one. What is different from that is wrong.

use super::access::Place;
use super::coding::Coding;
use base::{BrickId, Checksum, Payload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a segment holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    pub bytes: u32,
    pub checksum: Checksum,
}

impl Expected {
    /// Whether these blocks are it, filled up with anything.
    pub(super) fn is_content(&self, blocks: &[Payload]) -> bool {
        let mut content = Payload::new();
        blocks.iter().for_each(|block| content.append(block));
        let bytes = self.bytes as usize;
        content.len() >= bytes && content.slice(0, bytes).checksum() == self.checksum
    }
}

/// So many choices are tried at most: each costs the decoding of the segment.
const TRIALS_MAX: usize = 256;

/// Which symbols are still to be left out, one choice after another.
#[derive(Debug)]
pub(super) struct Trials {
    to_come: VecDeque<BTreeSet<u32>>,
}

impl Trials {
    /// Of what came. A brick whose memory or disk is bad gives several wrong fragments, so that all of one are left out first; then single fragments, and then
    /// those of two bricks. Of copies each is tried alone.
    pub(super) fn of(coding: Coding, came: &[Place]) -> Trials {
        let all: BTreeSet<u32> = came.iter().map(|(symbol, _)| *symbol).collect();
        let mut of: BTreeMap<BrickId, BTreeSet<u32>> = BTreeMap::new();
        came.iter().for_each(|(symbol, brick)| {
            of.entry(*brick).or_default().insert(*symbol);
        });
        let bricks: Vec<BTreeSet<u32>> = of.into_values().collect();
        let single = all.iter().map(|symbol| BTreeSet::from([*symbol]));
        let mut choices: Vec<BTreeSet<u32>> = match coding {
            Coding::Copies { .. } => single.map(|one| &all - &one).collect(),
            Coding::Precoded { .. } | Coding::Lt { .. } => {
                let pairs = bricks
                    .iter()
                    .enumerate()
                    .flat_map(|(at, one)| bricks[at + 1..].iter().map(move |other| one | other));
                bricks.iter().cloned().chain(single).chain(pairs).collect()
            }
        };
        choices.truncate(TRIALS_MAX);
        Trials { to_come: choices.into() }
    }

    /// The symbols that are left out next.
    pub(super) fn next(&mut self) -> Option<BTreeSet<u32>> {
        self.to_come.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(coding: Coding, came: &[(u32, u32)]) -> Vec<Vec<u32>> {
        let came: Vec<Place> = came.iter().map(|(symbol, brick)| (*symbol, BrickId(*brick))).collect();
        let mut trials = Trials::of(coding, &came);
        core::iter::from_fn(|| trials.next()).map(|choice| choice.into_iter().collect()).collect()
    }

    #[test]
    fn bricks_are_doubted_first_and_of_copies_each_is_tried_alone() {
        assert_eq!(
            choices(Coding::precoded(2), &[(0, 1), (1, 2), (2, 1)]),
            [vec![0, 2], vec![1], vec![0], vec![1], vec![2], vec![0, 1, 2]]
        );
        let copies = choices(Coding::Copies { blocks: 1 }, &[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(copies, [[1, 2], [0, 2], [0, 1]]);
        let many: Vec<(u32, u32)> = (0..640).map(|symbol| (symbol, symbol % 8)).collect();
        assert_eq!(choices(Coding::precoded(64), &many).len(), TRIALS_MAX);
    }
}
