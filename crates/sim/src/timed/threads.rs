//! Threads: each keeps one request outstanding at its volume, and there are more or fewer of them as time goes on.

use super::workload::{Asks, Drawn, Shape};
use core::time::Duration;
use model::Draw;

/// The threads of one volume.
#[derive(Clone, PartialEq, Debug)]
pub struct Threads {
    /// What they ask for.
    pub asks: Asks,
    /// From these moments of the load on there are so many, by rising time. Nobody asks before the first.
    pub count: Vec<(Duration, u32)>,
}

impl Threads {
    /// Always as many.
    pub fn constant(asks: impl Into<Asks>, count: u32) -> Threads {
        Threads { asks: asks.into(), count: vec![(Duration::ZERO, count)] }
    }

    /// All for so long, and none for as long again, from the beginning until `end`.
    pub fn on_off(asks: impl Into<Asks>, count: u32, half: Duration, end: Duration) -> Threads {
        let halves = (end.as_nanos() / half.as_nanos().max(1)) as u32;
        let step = |number: u32| (half * number, if number.is_multiple_of(2) { count } else { 0 });
        Threads { asks: asks.into(), count: (0..=halves).map(step).collect() }
    }

    /// From `least` to `most` and back along a sine of this period, which begins in the middle and rises; looked at once a second until `end`.
    pub fn sine(asks: impl Into<Asks>, [least, most]: [u32; 2], period: Duration, end: Duration) -> Threads {
        let (middle, swing) = (f64::from(least + most) / 2.0, f64::from(most - least) / 2.0);
        let step = |second: u64| {
            let turns = second as f64 / period.as_secs_f64().max(1e-9);
            let count = middle + swing * libm::sin(turns * core::f64::consts::TAU);
            (Duration::from_secs(second), libm::round(count) as u32)
        };
        Threads { asks: asks.into(), count: (0..=end.as_secs()).map(step).collect() }
    }

    /// How many there are at the most at a time.
    pub fn most(&self) -> u32 {
        self.count.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }
}

/// The threads of a volume while they run.
#[derive(Debug)]
pub(crate) struct Crew {
    drawn: Drawn,
    pub(super) count: Vec<(Duration, u32)>,
    wanted: u32,
    running: u32,
}

impl Crew {
    pub(super) fn new(threads: Threads, draw: Draw) -> Crew {
        Crew { drawn: Drawn::new(threads.asks, draw), count: threads.count, wanted: 0, running: 0 }
    }

    /// From now on there are to be so many: how many begin. Those that are too many end with their next answer.
    pub(super) fn set(&mut self, wanted: u32) -> u32 {
        let begin = wanted.saturating_sub(self.running);
        (self.wanted, self.running) = (wanted, self.running + begin);
        begin
    }

    /// What a thread that waits for nothing asks for next; it ends where there are too many.
    pub(super) fn next(&mut self, sectors: u64) -> Option<Shape> {
        if self.running > self.wanted {
            self.running -= 1;
            return None;
        }
        Some(self.drawn.next(sectors))
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Mix;
    use super::*;

    const END: Duration = Duration::from_secs(40);

    #[test]
    fn a_sine_goes_from_the_least_to_the_most() {
        let sine = Threads::sine(Mix::random(1.0), [15, 35], Duration::from_secs(20), END);
        let at = |second: usize| sine.count[second].1;
        assert_eq!([0, 5, 10, 15, 20].map(at), [25, 35, 25, 15, 25]);
        assert_eq!(sine.count.len(), 41);
    }

    #[test]
    fn threads_are_on_and_off() {
        let threads = Threads::on_off(Mix::random(1.0), 7, Duration::from_secs(10), END);
        let counts: Vec<(u64, u32)> =
            threads.count.iter().map(|(at, count)| (at.as_secs(), *count)).collect();
        assert_eq!(counts, [(0, 7), (10, 0), (20, 7), (30, 0), (40, 7)]);
    }

    #[test]
    fn threads_that_are_too_many_end_with_their_next_answer() {
        let mut crew = Crew::new(Threads::constant(Mix::random(1.0), 3), Draw::new(1));
        assert_eq!(crew.set(3), 3);
        assert_eq!(crew.set(2), 0);
        let next = [(); 3].map(|()| crew.next(1000).is_some());
        assert_eq!(next, [false, true, true]);
        assert_eq!(crew.set(4), 2);
    }
}
