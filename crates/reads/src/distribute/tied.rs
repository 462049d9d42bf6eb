//! Tied requests (Dean and Barroso: "The tail at scale", CACM 2013): a read waits in the queues of two holders, and who
//! starts it tells the other to drop it. At the bricks that is a claim without a wait: [`config`]. The asker tells the
//! second holder two message times after the first, so that two idle ones do not both start.

use super::claim;
use super::load::Load;
use super::policy::{Course, First, Next, Part, Plan, Policy};
use super::shortest_queue::ShortestQueue;
use base::{BrickId, Time};
use core::time::Duration;

/// Two holders, the second a little later.
#[derive(Debug)]
pub struct Tied {
    /// Who is first, and then who is of the others.
    pub queues: ShortestQueue,
    /// For as long the second one waits, about as long as the first one's claim is on its way.
    pub delay: Duration,
}

/// A brick that starts what it can and tells the other then, without a wait for what it might say.
pub fn config(disk: claim::Config) -> claim::Config {
    claim::Config { one_way_ns: 0, slack_ns: 0, defer: None, ..disk }
}

impl Policy for Tied {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.queues.one(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let first = self.one(now, part, load)?;
        let others: Vec<(u8, BrickId)> =
            part.holders.iter().copied().filter(|(slot, _)| *slot != first).collect();
        let second = self.one(now, &Part { holders: &others, ..*part }, load);
        Some(match second {
            Some(second) => Plan { first: First::Tied { first, second }, wait: Some(self.delay) },
            None => Plan { first: First::One(first), wait: None },
        })
    }

    fn next(&mut self, _now: Time, _part: &Part<'_>, course: &Course, _load: &Load) -> Next {
        course.second.map_or(Next::Nothing, Next::Second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::PartId;

    #[test]
    fn the_two_shortest_queues_are_chosen() {
        let holders = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];
        let (queues, delay) = (ShortestQueue::default(), Duration::from_micros(300));
        let (mut policy, mut load) = (Tied { queues, delay }, Load::default());
        load.begin(BrickId(2));
        let mut plan = |holders| {
            policy.first(
                Time::ZERO,
                &Part { id: PartId::default(), address: 9 << 12, kind: Kind::Read, holders },
                &mut load,
            )
        };
        let Some(Plan { first: First::Tied { first, second }, wait }) = plan(&holders) else {
            panic!("two are asked")
        };
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!((both, wait), ([0, 2], Some(delay)));
        assert_eq!(plan(&holders[..1]), Some(Plan { first: First::One(0), wait: None }));
        assert_eq!(plan(&[]), None);
    }
}
