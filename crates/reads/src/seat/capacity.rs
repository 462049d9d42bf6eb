//! What a disk can serve, in units of cost a second, as reservations count it.
//!
//! *Definition.* Time counts while the disk has at least one request (it is *busy*). A window is a second of busy time or more; its rate is the units
//! that were completed in it, divided by its busy time. The capacity is the best rate of the latest [`WINDOWS`] windows in which the disk was *loaded*:
//! for most of the time it had all requests that it may have at a time, or [`LOADED`] at least. It is 0 as long as there was no such window.
//! A disk that a latency target holds below both is not measured meanwhile.
//!
//! *Bias.* A disk that is loaded and not saturated could serve more than it did, so the capacity is a lower bound of what the disk can do. It is
//! above that by a sixteenth at the most: by what was outstanding when a window began, and was served in part before, and by the sizes of
//! what is outstanding, of which the seat knows the sum alone. A window goes on until each of both is a thirty-fourth of what is counted: then sixteen seventeenths of
//! that were served within it.
//!
//! The capacity is that of the requests that came. Units are about the time of a disk ([`rules::fair::Cost`]), and not exactly: a hard disk serves
//! more units a second in large requests than in small ones, and a request that the store answers from memory counts like any other.

use base::Time;
use core::time::Duration;

/// The least busy time of a window: long enough that a hard disk completes a hundred requests, short enough that a test load shows.
const WINDOW: Duration = Duration::from_secs(1);
/// So many windows are remembered. While the disk is loaded all the time they are of the last half minute at least.
const WINDOWS: usize = 32;
/// A disk with so many requests at a time is loaded, whatever its places: a hard disk serves three quarters then of what it serves at most, and
/// flash a half or more. With fewer, the wait between requests is measured and not the disk.
const LOADED: usize = 8;
/// What is outstanding at either end of a window is this part of what was completed in it, or less.
const OUTSTANDING_PART: u64 = 34;

/// Measures one disk. The seat says what it charges and how many requests are at the disk.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    /// Since when the figures below hold.
    at: Time,
    at_disk: usize,
    is_loaded: bool,
    /// The cost of what is at the disk.
    outstanding: u64,
    /// Requests that were charged and refunded since `at`.
    charged: usize,
    refunded: usize,
    window: Window,
    /// Rates of the latest windows, in units a second; the next one goes to `next`.
    rates: [u64; WINDOWS],
    next: usize,
}

/// A window that is not over.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    busy: Duration,
    /// The part of `busy` during which the disk was loaded.
    loaded: Duration,
    completed: u64,
    /// The cost of what was outstanding when it began.
    before: u64,
}

impl Capacity {
    /// A request goes to the disk.
    pub(super) fn charge(&mut self, cost: u32) {
        self.charged += 1;
        self.outstanding += u64::from(cost);
    }

    /// One that went to the disk left it without being served.
    pub(super) fn refund(&mut self, cost: u32) {
        self.refunded += 1;
        self.outstanding = self.outstanding.saturating_sub(u64::from(cost));
    }

    /// From now on so many requests are at the disk, which takes `places` at a time.
    pub(super) fn observe(&mut self, now: Time, at_disk: usize, places: usize) {
        if (at_disk, self.charged, self.refunded) == (self.at_disk, 0, 0) {
            return;
        }
        let over = now.since(self.at);
        if self.at_disk > 0 {
            self.window.busy += over;
            self.window.loaded += if self.is_loaded { over } else { Duration::ZERO };
        }
        // Which of them were completed is not known: they count as the mean of what was there.
        let there = (self.at_disk + self.charged).saturating_sub(self.refunded);
        let completed = match there.saturating_sub(at_disk) {
            _ if at_disk == 0 => self.outstanding,
            gone => self.outstanding * gone as u64 / there.max(1) as u64,
        };
        self.outstanding -= completed;
        self.window.completed += completed;
        (self.at, self.at_disk, self.charged, self.refunded) = (now, at_disk, 0, 0);
        self.is_loaded = at_disk >= places.min(LOADED);
        self.end_window();
    }

    fn end_window(&mut self) {
        let Window { busy, loaded, completed, before } = self.window;
        if busy < WINDOW || completed < OUTSTANDING_PART * before.max(self.outstanding) {
            return;
        }
        if loaded >= busy * 3 / 4 {
            let rate = u128::from(completed) * 1_000_000_000 / busy.as_nanos();
            self.rates[self.next] = u64::try_from(rate).unwrap_or(u64::MAX);
            self.next = (self.next + 1) % WINDOWS;
        }
        self.window = Window { before: self.outstanding, ..Window::default() };
    }

    /// In units of cost a second; 0 as long as it is not known.
    pub(super) fn units_per_second(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A disk that serves some requests side by side, each unit of cost in the same time.
    struct Disk {
        now: Time,
        unit: Duration,
        /// When each of its servers is done with what it has, and what that costs.
        servers: Vec<Option<Time>>,
        queue: VecDeque<u32>,
        places: usize,
        capacity: Capacity,
    }

    impl Disk {
        fn new(servers: usize, unit: Duration, places: usize) -> Disk {
            let servers = vec![None; servers];
            let (now, queue, capacity) = (Time(1), VecDeque::new(), Capacity::default());
            Disk { now, unit, servers, queue, places, capacity }
        }

        /// What it can serve, in units a second.
        fn can_serve(&self) -> f64 {
            self.servers.len() as f64 / self.unit.as_secs_f64()
        }

        fn at_disk(&self) -> usize {
            self.queue.len() + self.servers.iter().flatten().count()
        }

        fn begin(&mut self) {
            for server in self.servers.iter_mut().filter(|server| server.is_none()) {
                *server = self.queue.pop_front().map(|cost| self.now + self.unit * cost);
            }
        }

        fn ask(&mut self, cost: u32) {
            self.capacity.charge(cost);
            self.queue.push_back(cost);
            self.begin();
            self.capacity.observe(self.now, self.at_disk(), self.places);
        }

        /// Lets the next request end, or so much time pass.
        fn go_on(&mut self, at_most: Duration) {
            let until = self.now + at_most;
            let Some(done) = self.servers.iter().flatten().min().copied().filter(|done| *done <= until)
            else {
                self.now = until;
                return;
            };
            self.now = done;
            let server = self.servers.iter_mut().find(|server| **server == Some(done)).expect("just found");
            *server = None;
            self.begin();
            self.capacity.observe(self.now, self.at_disk(), self.places);
        }

        fn measured(&self) -> f64 {
            self.capacity.units_per_second() as f64
        }
    }

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn a_disk_that_is_saturated_is_measured_within_a_few_percent() {
        for (servers, unit, depth, places) in
            [(1, 100 * US, 32, 32), (1, 900 * US, 8, usize::MAX), (16, 10 * US, 64, 64), (2, 222 * US, 2, 2)]
        {
            let mut disk = Disk::new(servers, unit, places);
            while disk.now < Time(40_000_000_000) {
                while disk.at_disk() < depth {
                    disk.ask(9);
                }
                disk.go_on(Duration::from_secs(1));
            }
            let ratio = disk.measured() / disk.can_serve();
            assert!((0.96..=1.03).contains(&ratio), "{servers} {unit:?} {depth}: {ratio}");
        }
    }

    #[test]
    fn a_disk_that_was_never_loaded_is_not_known() {
        let mut disk = Disk::new(4, 10 * US, usize::MAX);
        while disk.now < Time(20_000_000_000) {
            disk.ask(9);
            disk.go_on(Duration::from_secs(1));
        }
        assert_eq!(disk.measured(), 0.0, "one request at a time says nothing of what four can do");
    }

    #[test]
    fn what_was_served_by_others_is_not_counted_and_what_was_measured_stays_known_while_idle() {
        let mut disk = Disk::new(1, 100 * US, 8);
        let run = |disk: &mut Disk, seconds: u64, refunds: bool| {
            let end = disk.now + Duration::from_secs(seconds);
            while disk.now < end {
                while disk.at_disk() < 8 {
                    disk.ask(9);
                }
                if refunds && let Some(cost) = disk.queue.pop_back() {
                    disk.capacity.refund(cost);
                }
                disk.go_on(Duration::from_secs(1));
            }
        };
        run(&mut disk, 10, true);
        let ratio = disk.measured() / disk.can_serve();
        assert!((0.9..=1.03).contains(&ratio), "{ratio}");
        disk.now += Duration::from_secs(1000);
        assert!(disk.measured() > 0.0);
        // A disk that has become slower is known for what it is after some load.
        disk.unit = 200 * US;
        run(&mut disk, 60, false);
        let ratio = disk.measured() / disk.can_serve();
        assert!((0.9..=1.07).contains(&ratio), "{ratio}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever comes, of whatever size: no disk is taken for more than it is, but for a sixteenth.
        #[test]
        fn no_disk_is_taken_for_more_than_it_is(
            servers in 1usize..5,
            unit_us in 5u32..300,
            bursts in prop::collection::vec((1usize..40, 0usize..4, 0u64..200), 1..60),
            limited in any::<bool>(),
        ) {
            let mut disk = Disk::new(servers, US * unit_us, if limited { 4 } else { usize::MAX });
            let mut turn = 0;
            while disk.now < Time(6_000_000_000) {
                let (requests, size, pause_ms) = bursts[turn % bursts.len()];
                turn += 1;
                let room = 200usize.saturating_sub(disk.at_disk());
                (0..requests.min(room)).for_each(|_| disk.ask([9, 12, 24, 72][size]));
                let end = disk.now + Duration::from_millis(pause_ms + 1);
                while disk.now < end {
                    disk.go_on(end.since(disk.now));
                }
            }
            let ratio = disk.measured() / disk.can_serve();
            prop_assert!(ratio <= 1.0 + 1.0 / 16.0, "{}", ratio);
        }
    }
}
