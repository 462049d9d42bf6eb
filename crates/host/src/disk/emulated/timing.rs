//! When an answer is due: a value that is told the time, so that it is tested without a clock.
//!
//! A request goes to the real disk when the emulated drive begins with it ([`reads::seat::heads`]), and the brick says when the
//! drive is done. The answer is due then, or when the real disk has answered, whichever is later; it may be late on top of that.

use super::lateness::Lateness;
use crate::disk::Completions;
use base::{HashMap, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use store::{IoDone, IoToken};

/// The answers of the emulated disks of a brick.
#[derive(Debug, Default)]
pub struct Timing {
    /// How much later than it would be each answer is given.
    late: Duration,
    /// When drives are done with what the real disks have not answered yet.
    dues: HashMap<(usize, IoToken), Time>,
    held: BinaryHeap<Reverse<Held>>,
    /// Answers that were held so far: those due at the same time leave in the order in which they came.
    count: u64,
    lateness: Lateness,
}

/// An answer and when it may be seen.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    due: Time,
    number: u64,
    disk: usize,
    answer: IoDone,
    /// Whether the emulation held it back. What it did not is given as it comes, and says nothing of how late that was.
    is_emulated: bool,
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Timing {
    /// From now on answers are so late. What is late already stays due when it was.
    pub fn set_late(&mut self, late: Duration) {
        self.late = late;
    }

    /// A request goes to the real disk with which an emulated drive is done at `due`.
    pub fn asked(&mut self, disk: usize, token: IoToken, due: Time) {
        self.dues.insert((disk, token), due);
    }

    /// The real disk has answered.
    pub fn answered(&mut self, now: Time, disk: usize, answer: IoDone) {
        let due = self.dues.remove(&(disk, answer.token));
        let is_emulated = due.is_some() || !self.late.is_zero();
        self.count += 1;
        let due = due.unwrap_or(now) + self.late;
        self.held.push(Reverse(Held { due, number: self.count, disk, answer, is_emulated }));
    }

    /// Gives the answers that are due, in the order in which they are.
    pub fn due(&mut self, now: Time, done: &mut Completions) {
        while self.held.peek().is_some_and(|Reverse(held)| held.due <= now)
            && let Some(Reverse(held)) = self.held.pop()
        {
            if held.is_emulated {
                self.lateness.record(now.since(held.due));
            }
            done.push((held.disk, held.answer));
        }
    }

    /// When the next answer is due.
    pub fn deadline(&self) -> Option<Time> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Answers that wait for their time, or for the real disk.
    pub fn held(&self) -> usize {
        self.held.len() + self.dues.len()
    }

    /// How late answers were given that a drive had a part in, or that were made late.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn answer(token: u64) -> IoDone {
        IoDone { token: IoToken(token), result: Ok(Bytes::new()) }
    }

    fn late_by(late: Duration) -> Timing {
        let mut timing = Timing::default();
        timing.set_late(late);
        timing
    }

    fn tokens(timing: &mut Timing, now: Time) -> Vec<u64> {
        let mut done = Vec::new();
        timing.due(now, &mut done);
        done.into_iter().map(|(_, done)| done.token.0).collect()
    }

    #[test]
    fn without_lateness_answers_pass_at_once() {
        let mut timing = Timing::default();
        timing.answered(Time(5), 0, answer(1));
        assert_eq!(tokens(&mut timing, Time(5)), [1]);
        assert_eq!((timing.deadline(), timing.lateness().count()), (None, 0));
    }

    #[test]
    fn a_change_holds_for_what_is_answered_later() {
        let mut timing = late_by(Duration::from_millis(20));
        timing.answered(Time(0), 0, answer(1));
        timing.set_late(Duration::ZERO);
        timing.answered(Time(1), 0, answer(2));
        assert_eq!(tokens(&mut timing, Time(1)), [2]);
        assert_eq!(timing.deadline(), Some(Time(20_000_000)));
        assert_eq!(tokens(&mut timing, Time(19_999_999)), []);
        assert_eq!(tokens(&mut timing, Time(20_000_500)), [1]);
        assert_eq!(timing.lateness().count(), 1, "the second was not held back");
    }

    #[test]
    fn an_answer_waits_for_the_drive_and_for_the_real_disk() {
        let mut timing = Timing::default();
        timing.asked(0, IoToken(1), Time(5 * MS));
        timing.asked(1, IoToken(1), Time(5 * MS));
        timing.answered(Time(MS), 0, answer(1));
        assert_eq!(timing.deadline(), Some(Time(5 * MS)));
        assert_eq!(tokens(&mut timing, Time(5 * MS)), [1], "the other disk has not answered");
        timing.answered(Time(8 * MS), 1, answer(1));
        assert_eq!(tokens(&mut timing, Time(8 * MS)), [1]);
        assert_eq!(
            (timing.lateness().sum(), timing.held()),
            (Duration::from_millis(3), 0),
            "as late as the disk was"
        );
    }

    proptest! {
        #[test]
        fn answers_leave_at_their_time_once_and_in_order(
            steps in proptest::collection::vec((0u64..50, 0u64..30), 1..100),
        ) {
            let mut timing = Timing::default();
            let (mut now, mut expected, mut seen) = (0, Vec::new(), Vec::new());
            for (token, (pause, late)) in steps.iter().enumerate() {
                now += pause;
                timing.set_late(Duration::from_nanos(*late));
                timing.answered(Time(now), 0, answer(token as u64));
                expected.push((now + late, token as u64));
                prop_assert!(timing.deadline().expect("one is held") <= Time(now + late));
                let given = tokens(&mut timing, Time(now));
                prop_assert!(given.iter().all(|&token| expected[token as usize].0 <= now));
                seen.extend(given);
            }
            seen.extend(tokens(&mut timing, Time(now + 30)));
            prop_assert_eq!(timing.held(), 0);
            let mut sorted = expected.clone();
            sorted.sort_unstable();
            prop_assert_eq!(seen, sorted.into_iter().map(|(_, token)| token).collect::<Vec<_>>());
        }
    }
}
