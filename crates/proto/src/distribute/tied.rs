//! Tied requests (Dean and Barroso: "The tail at scale", CACM 2013): a read waits in the queues of two holders, and who
//! starts it tells the other to drop it. At the bricks that is a claim without a wait: [`config`]. The asker tells the
//! second holder two message times after the first, so that two idle ones do not both start.

use super::claim;
use super::shortest_queue::ShortestQueue;
use base::BrickId;

/// Which two.
#[derive(Debug, Default)]
pub struct Tied {
    queues: ShortestQueue,
}

/// A brick that starts what it can and tells the other then, without a wait for what it might say.
pub fn config(disk: claim::Config) -> claim::Config {
    claim::Config { one_way_ns: 0, slack_ns: 0, defer: None, ..disk }
}

impl Tied {
    /// The two holders with the shortest queues among `candidates` `(slot, brick)`, or as many as there are.
    pub fn choose(&self, address: u64, candidates: &[(u8, BrickId)]) -> (Option<u8>, Option<u8>) {
        let first = self.queues.choose(address, candidates);
        let mut second: Option<(u32, u8)> = None;
        for (slot, brick) in candidates.iter().filter(|(slot, _)| Some(*slot) != first) {
            let length = self.queues.length(*brick);
            if second.is_none_or(|(shortest, _)| length < shortest) {
                second = Some((length, *slot));
            }
        }
        (first, second.map(|(_, slot)| slot))
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        self.queues.begin(brick);
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        self.queues.end(brick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_shortest_queues_are_chosen() {
        let candidates = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];
        let mut policy = Tied::default();
        policy.begin(BrickId(2));
        let (first, second) = policy.choose(9, &candidates);
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(both, [Some(0), Some(2)]);
        assert_eq!(policy.choose(9, &candidates[..1]), (Some(0), None));
        assert_eq!(policy.choose(9, &[]), (None, None));
    }
}
