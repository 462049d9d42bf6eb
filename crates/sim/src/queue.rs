//! The queue of events of a simulation: what happens next, and at one moment in the order in which it was scheduled.
//!
//! It is a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", 1990) with
//! digits of six bits and a sorted front. What is pending lies in a bucket by the highest digit in which its moment
//! differs from the present one, and by that digit. When the front runs empty the first bucket takes its place: a small
//! one is sorted, a large one distributed among the finer buckets, which are empty then. Since a bucket keeps the order
//! of pushing and is distributed in it, events of one moment need no sequence number to come out in that order.
//!
//! | operation | cost |
//! |---|---|
//! | push | O(1); into the sorted front, at most 64 entries are moved |
//! | pop | O(1) amortised: an event is moved at most 11 times, with a million pending about four times |
//! | push for a moment before the last one popped | O(log n); a simulation has no need of it |
//! | memory | at most 4 times what is or was pending since the queue was last this long, and 352 KiB for events of 8 bytes |
//!
//! Nothing is tuned to a distribution of times, so that none can be unlucky: not bursts, not equal times, not gaps.
//!
//! Considered as well, by popping and pushing events of 8 bytes with exponential increments: a heap with four children and
//! packed keys apart from the events is 1.2 times as fast as `std`'s binary heap with 1,000 pending and 1.6 times with
//! 1,000,000; this queue is about twice and more than ten times as fast. Calendar and ladder queues (Brown 1988; Tang, Goh
//! and Thng 2005)
//! have to guess the width of their buckets from what they see, and pay when it changes. `cargo bench -p brickwork-sim`
//! runs the binary heap beside this queue.

use base::Time;
use std::collections::{BTreeMap, VecDeque};

/// Bits of a moment that one level of buckets tells apart.
const DIGIT_BITS: u32 = 6;
/// Buckets of a level.
const WIDTH: usize = 1 << DIGIT_BITS;
/// Levels: enough digits for every moment.
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;
/// A bucket of at most so many is sorted, a larger one is distributed: the best of 8, 16, 20 and 32.
const SORTED_MAX: usize = 20;
/// The room that an empty bucket may keep: what a vector that grew to [`SORTED_MAX`] has.
const KEPT: usize = SORTED_MAX.next_power_of_two();
/// The front is sorted up to this length, and distributed when it grows beyond it.
const FRONT_MAX: usize = 64;

/// Events in the order of time; at one moment, in the order in which they were pushed.
#[derive(Debug)]
pub struct EventQueue<E> {
    // In order, all that is pending in `floor..=front_last`.
    front: VecDeque<Entry<E>>,
    front_last: u64,
    // `WIDTH` for each level: what is pending after `front_last`.
    buckets: Vec<Vec<Entry<E>>>,
    // For each level the buckets that are not empty, and the levels that have such.
    occupied: [u64; LEVELS],
    levels: u32,
    // Buckets are told by the difference from this moment; nothing in them or in the front is earlier.
    floor: u64,
    // What was pushed for a moment before `floor`, in the order of time and pushing.
    early: BTreeMap<(u64, u64), E>,
    early_pushed: u64,
    len: usize,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    event: E,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue {
            front: VecDeque::new(),
            front_last: 0,
            buckets: (0..LEVELS * WIDTH).map(|_| Vec::new()).collect(),
            occupied: [0; LEVELS],
            levels: 0,
            floor: 0,
            early: BTreeMap::new(),
            early_pushed: 0,
            len: 0,
        }
    }
}

impl<E> EventQueue<E> {
    pub fn new() -> EventQueue<E> {
        EventQueue::default()
    }

    /// Events that are pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Schedules `event`.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        self.len += 1;
        let entry = Entry { at: at.0, event };
        if entry.at > self.front_last {
            self.put(entry);
        } else if entry.at >= self.floor {
            self.push_front(entry);
        } else {
            self.early_pushed += 1;
            self.early.insert((entry.at, self.early_pushed), entry.event);
        }
    }

    /// Takes out the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.front.is_empty() || !self.early.is_empty() {
            return self.pop_slowly();
        }
        let entry = self.front.pop_front()?;
        self.len -= 1;
        Some((Time(entry.at), entry.event))
    }

    /// Takes out the next event if it is due by `until`.
    pub fn pop_due(&mut self, until: Time) -> Option<(Time, E)> {
        if self.early.is_empty() {
            self.fill_front(until.0);
            return if self.front.front()?.at > until.0 { None } else { self.pop() };
        }
        if self.next_at()? > until { None } else { self.pop() }
    }

    /// When the next event happens.
    pub fn next_at(&mut self) -> Option<Time> {
        if let Some((&(at, _), _)) = self.early.first_key_value() {
            return Some(Time(at));
        }
        self.fill_front(u64::MAX);
        self.front.front().map(|entry| Time(entry.at))
    }

    /// Puts an entry after `front_last`, and so not at `floor`, into its bucket.
    #[inline]
    fn put(&mut self, entry: Entry<E>) {
        let level = (entry.at ^ self.floor).ilog2() / DIGIT_BITS;
        let digit = (entry.at >> (level * DIGIT_BITS)) as usize % WIDTH;
        self.occupied[level as usize] |= 1 << digit;
        self.levels |= 1 << level;
        self.buckets[level as usize * WIDTH + digit].push(entry);
    }

    fn push_front(&mut self, entry: Entry<E>) {
        let later = self.front.iter().rev().take_while(|other| other.at > entry.at).count();
        self.front.insert(self.front.len() - later, entry);
        // A front of one moment is only appended to, and may be as long as it likes.
        if self.front.len() > FRONT_MAX && self.front[0].at < self.front_last {
            let entries = Vec::from(core::mem::take(&mut self.front));
            self.distribute(entries);
        }
    }

    #[inline(never)]
    fn pop_slowly(&mut self) -> Option<(Time, E)> {
        if let Some(((at, _), event)) = self.early.pop_first() {
            self.len -= 1;
            return Some((Time(at), event));
        }
        self.fill_front(u64::MAX);
        let entry = self.front.pop_front()?;
        self.len -= 1;
        Some((Time(entry.at), entry.event))
    }

    /// Makes the first bucket the front, if that is empty and the bucket's span begins by `until`: beyond that the floor
    /// would rise above moments that are still to come.
    fn fill_front(&mut self, until: u64) {
        if !self.front.is_empty() || self.levels == 0 {
            return;
        }
        let level = self.levels.trailing_zeros();
        let digit = self.occupied[level as usize].trailing_zeros();
        let bucket = level as usize * WIDTH + digit as usize;
        let span_bits = level * DIGIT_BITS;
        if self.buckets[bucket][0].at >> span_bits > until >> span_bits {
            return;
        }
        if self.front.capacity() > 4 * FRONT_MAX {
            self.front = VecDeque::new();
        }
        self.occupied[level as usize] &= !(1 << digit);
        if self.occupied[level as usize] == 0 {
            self.levels &= !(1 << level);
        }
        if level == 0 || self.buckets[bucket].len() <= SORTED_MAX {
            self.sort(bucket, span_bits);
        } else {
            let entries = core::mem::take(&mut self.buckets[bucket]);
            self.distribute(entries);
        }
    }

    /// The bucket's whole span becomes the front. One of the lowest level spans a single moment.
    fn sort(&mut self, bucket: usize, span_bits: u32) {
        let entries = &mut self.buckets[bucket];
        self.floor = entries[0].at >> span_bits << span_bits;
        self.front_last = self.floor | ((1 << span_bits) - 1);
        if span_bits > 0 {
            entries.sort_by_key(|entry| entry.at);
        }
        self.front.extend(entries.drain(..));
        if entries.capacity() > KEPT {
            *entries = Vec::new();
        }
    }

    /// The earliest moment of `entries`, which are in the order of pushing at each moment, becomes the front; later ones
    /// go to buckets. Those in which they belong are empty.
    fn distribute(&mut self, entries: Vec<Entry<E>>) {
        let first =
            entries.iter().map(|entry| entry.at).min().expect("only what is not empty is distributed");
        (self.floor, self.front_last) = (first, first);
        for entry in entries {
            if entry.at == first {
                self.front.push_back(entry);
            } else {
                self.put(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// So many, each so long after the present.
        Push(Vec<u64>),
        /// For a moment that may have passed.
        PushAt(u64),
        Pop(usize),
        /// What is due so long after the present.
        PopDue(u64),
    }

    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..4u64,
            0..300u64,
            Just(1_000_000),
            0..5_000_000u64,
            (0..64u32, 0..64u64).prop_map(|(bits, more)| (1u64 << bits).saturating_add(more)),
            Just(u64::MAX),
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let burst = (delay(), 1..200usize).prop_map(|(delay, count)| Step::Push(vec![delay; count]));
        let step = prop_oneof![
            4 => prop::collection::vec(delay(), 1..10).prop_map(Step::Push),
            1 => prop::collection::vec(0..100_000u64, 50..300).prop_map(Step::Push),
            1 => burst,
            1 => delay().prop_map(Step::PushAt),
            4 => (1..30usize).prop_map(Step::Pop),
            1 => (100..500usize).prop_map(Step::Pop),
            2 => delay().prop_map(Step::PopDue),
        ];
        prop::collection::vec(step, 1..60)
    }

    /// The queue, and a map that says what it should hold.
    #[derive(Default)]
    struct Checked {
        queue: EventQueue<u64>,
        pending: BTreeMap<(u64, u64), u64>,
        pushed: u64,
        now: u64,
    }

    impl Checked {
        fn push(&mut self, at: u64) {
            self.pushed += 1;
            self.queue.push(Time(at), self.pushed);
            self.pending.insert((at, self.pushed), self.pushed);
        }

        fn pop(&mut self) {
            let expected = self.pending.pop_first().map(|((at, _), event)| (Time(at), event));
            assert_eq!(self.queue.pop(), expected);
            self.now = expected.map_or(self.now, |(at, _)| at.0);
        }

        fn pop_due(&mut self, until: u64) {
            let next = self.pending.first_key_value().map(|((at, _), _)| Time(*at));
            assert_eq!(self.queue.next_at(), next);
            if next.is_some_and(|next| next.0 <= until) {
                return self.pop();
            }
            assert_eq!(self.queue.pop_due(Time(until)), None);
        }

        fn step(&mut self, step: Step) {
            match step {
                Step::Push(delays) => {
                    delays.iter().for_each(|delay| self.push(self.now.saturating_add(*delay)))
                }
                Step::PushAt(at) => self.push(at),
                Step::Pop(count) => (0..count).for_each(|_| self.pop()),
                Step::PopDue(after) => self.pop_due(self.now.saturating_add(after)),
            }
            assert_eq!(self.queue.len(), self.pending.len());
            assert_eq!(self.queue.is_empty(), self.pending.is_empty());
        }
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_pushing(steps in steps()) {
            let mut checked = Checked::default();
            steps.into_iter().for_each(|step| checked.step(step));
            while !checked.pending.is_empty() {
                checked.pop();
            }
            prop_assert_eq!(checked.queue.pop(), None);
        }
    }

    fn capacity(queue: &EventQueue<u64>) -> usize {
        queue.front.capacity() + queue.buckets.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Pops and pushes back `count` times.
    fn hold(queue: &mut EventQueue<u64>, rng: &mut base::Rng, count: usize) {
        for _ in 0..count {
            let (at, event) = queue.pop().expect("as many are pushed as are popped");
            queue.push(Time(at.0 + rng.u64(..1_000_000)), event);
        }
    }

    #[test]
    fn memory_is_bounded_by_what_is_pending() {
        let mut rng = base::Rng::with_seed(1);
        let mut queue = EventQueue::new();
        (0..100_000).for_each(|event| queue.push(Time(rng.u64(..1_000_000)), event));
        hold(&mut queue, &mut rng, 300_000);
        assert!(capacity(&queue) <= 4 * 100_000 + LEVELS * WIDTH * KEPT);
        (0..99_900).for_each(|_| assert!(queue.pop().is_some()));
        hold(&mut queue, &mut rng, 10_000);
        let now = queue.next_at().expect("a hundred are pending").0;
        (0..64_000).for_each(|event| queue.push(Time(now + 2_000_000 + event / 1000), event));
        (0..64_000).for_each(|_| assert!(queue.pop().is_some()));
        hold(&mut queue, &mut rng, 10_000);
        assert!(capacity(&queue) <= 4 * 100 + LEVELS * WIDTH * KEPT + 4 * FRONT_MAX);
    }

    #[test]
    fn a_burst_at_one_moment_is_not_sorted_again_and_again() {
        let mut queue = EventQueue::new();
        (0..100_000u64).for_each(|event| queue.push(Time(5), event));
        for event in 0..300_000u64 {
            assert_eq!(queue.pop(), Some((Time(5), event)));
            queue.push(Time(5), event + 100_000);
        }
    }
}
