//! How long a disk works to bring a block home, as it is told ([`Reply::Home`]): where content waits for that, bricks are compared by it.

use base::Time;
use core::time::Duration;
use wire::disk::Reply;

/// So many blocks, or so much of the disk's time, and at the end of each round of work it is told how long the disk takes to bring blocks home.
const TOLD_BLOCKS: u64 = 256;
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// How long the disk works to bring blocks home, since that was told last.
#[derive(Debug, Default)]
pub struct Labour {
    /// Since when it works.
    since: Option<Time>,
    worked: Duration,
    blocks: u64,
}

impl Labour {
    /// The disk works from now on, or does not.
    pub fn note(&mut self, now: Time, is_at_work: bool) {
        match self.since {
            None if is_at_work => self.since = Some(now),
            Some(since) if !is_at_work => {
                self.worked += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// So many blocks came home.
    pub fn brought(&mut self, blocks: u64) {
        self.blocks += blocks;
    }

    /// What is to be told: at the end of a round of work, or of enough.
    pub fn tell(&mut self, now: Time, is_over: bool) -> Option<Reply> {
        let lasting = self.since.map_or(Duration::ZERO, |since| now.since(since));
        let took = self.worked + lasting;
        if self.blocks == 0 || (self.blocks < TOLD_BLOCKS && took < TOLD_AFTER && !is_over) {
            return None;
        }
        let told = Reply::Home { blocks: self.blocks, took_ns: took.as_nanos() as u64 };
        *self = Labour { since: self.since.map(|_| now), ..Labour::default() };
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_at_the_end_of_a_round_and_of_enough() {
        let mut labour = Labour::default();
        let ms = |ms: u64| Time(ms * 1_000_000);
        let told = |labour: &mut Labour, at, is_over| match labour.tell(ms(at), is_over) {
            Some(Reply::Home { blocks, took_ns }) => Some((blocks, took_ns / 1_000_000)),
            _ => None,
        };
        labour.note(ms(0), true);
        assert_eq!(told(&mut labour, 50, true), None, "no block has come home");
        labour.brought(10);
        labour.note(ms(100), false);
        labour.note(ms(300), true);
        labour.note(ms(350), true);
        assert_eq!(told(&mut labour, 400, false), None);
        assert_eq!(told(&mut labour, 400, true), Some((10, 200)), "no work was done for 200 ms");
        labour.brought(1);
        assert_eq!(told(&mut labour, 1399, false), None);
        assert_eq!(
            told(&mut labour, 1400, false),
            Some((1, 1000)),
            "the disk goes on from where that was told"
        );
        labour.brought(TOLD_BLOCKS);
        assert_eq!(told(&mut labour, 1500, false), Some((TOLD_BLOCKS, 100)));
        labour.brought(1);
        labour.note(ms(1600), false);
        assert_eq!(told(&mut labour, 9000, true), Some((1, 100)));
    }
}
