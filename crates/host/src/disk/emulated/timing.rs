//! When an answer is due: a value that is told the time, so that it is tested without a clock.

use super::lateness::Lateness;
use super::settings::Settings;
use crate::disk::Completions;
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;
use store::IoDone;

/// Answers that are held back.
#[derive(Debug)]
pub struct Timing {
    settings: Settings,
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
    /// Disks as `settings` say.
    pub fn new(settings: Settings) -> Timing {
        Timing { settings, held: BinaryHeap::new(), count: 0, lateness: Lateness::default() }
    }

    /// From now on as `settings` say; what is held stays due when it was.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// The real disk has answered.
    pub fn answered(&mut self, now: Time, disk: usize, answer: IoDone) {
        self.count += 1;
        let due = now + self.settings.late;
        self.held.push(Reverse(Held { due, number: self.count, disk, answer }));
    }

    /// Gives the answers that are due, in the order in which they are.
    pub fn due(&mut self, now: Time, done: &mut Completions) {
        while self.held.peek().is_some_and(|Reverse(held)| held.due <= now)
            && let Some(Reverse(held)) = self.held.pop()
        {
            self.lateness.record(now.since(held.due));
            done.push((held.disk, held.answer));
        }
    }

    /// When the next answer is due.
    pub fn deadline(&self) -> Option<Time> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// How much later than the real disk an access is answered now.
    pub fn late(&self) -> Duration {
        self.settings.late
    }

    /// Answers that wait for their time.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// How late answers were given.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn answer(token: u64) -> IoDone {
        IoDone { token, result: Ok(Bytes::new()) }
    }

    fn late(ms: u64) -> Settings {
        Settings { late: Duration::from_millis(ms) }
    }

    fn tokens(timing: &mut Timing, now: Time) -> Vec<u64> {
        let mut done = Vec::new();
        timing.due(now, &mut done);
        done.into_iter().map(|(_, done)| done.token).collect()
    }

    #[test]
    fn without_lateness_answers_pass_at_once() {
        let mut timing = Timing::new(Settings::default());
        timing.answered(Time(5), 0, answer(1));
        assert_eq!(tokens(&mut timing, Time(5)), [1]);
        assert_eq!(timing.deadline(), None);
    }

    #[test]
    fn a_change_holds_for_what_is_answered_later() {
        let mut timing = Timing::new(late(20));
        timing.answered(Time(0), 0, answer(1));
        timing.set(late(0));
        timing.answered(Time(1), 0, answer(2));
        assert_eq!(tokens(&mut timing, Time(1)), [2]);
        assert_eq!(timing.deadline(), Some(Time(20_000_000)));
        assert_eq!(tokens(&mut timing, Time(19_999_999)), []);
        assert_eq!(tokens(&mut timing, Time(20_000_500)), [1]);
        assert_eq!(timing.lateness().count(), 2);
    }

    proptest! {
        #[test]
        fn answers_leave_at_their_time_once_and_in_order(
            steps in proptest::collection::vec((0u64..50, 0u64..30), 1..100),
        ) {
            let mut timing = Timing::new(Settings::default());
            let (mut now, mut expected, mut seen) = (0, Vec::new(), Vec::new());
            for (token, (pause, late)) in steps.iter().enumerate() {
                now += pause;
                timing.set(Settings { late: Duration::from_nanos(*late) });
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
