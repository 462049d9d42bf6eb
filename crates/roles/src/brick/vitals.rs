//! How a brick finds itself: how long its disks, its process and its way to the directory take.
//!
//! At each disk one durable write and one read at a time are followed from command to answer, which costs nothing; a
//! disk without writes gets a small note from time to time. What is told are medians of the latest samples, of the worst
//! disk, so that one hiccup is none. A brick that is left out for being slow also wakes itself often: a process that is
//! stopped now and then is otherwise on time whenever it looks.

use super::BrickEffect;
use super::tokens::Asker;
use base::Time;
use core::time::Duration;
use std::collections::VecDeque;
use wire::disk::{Command, Reply, Token};
use wire::{Health, Wire};

/// The note that probes write.
const PROBE_KEY: &[u8] = b"p";
/// A disk without writes is probed after so many heartbeats; after each while the brick is left out for being slow.
const QUIET_BEATS: u32 = 10;
/// Of what was brought home so long counts.
const HOME_LATELY: Duration = Duration::from_secs(5);
/// And no more of what was told than this.
const HOMES_MAX: usize = 256;
/// How often a brick that is left out wakes itself.
const BEAT: Duration = Duration::from_millis(50);

/// The latest samples of something, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    latest: [u32; 8],
    count: usize,
    under_way: Option<(Token, Time)>,
}

impl Samples {
    fn begin(&mut self, now: Time, token: Token) {
        self.under_way.get_or_insert((token, now));
    }

    fn end(&mut self, now: Time, token: Token) {
        if let Some((_, begun)) = self.under_way.take_if(|(of, _)| *of == token) {
            self.note(now.since(begun));
        }
    }

    fn note(&mut self, took: Duration) {
        self.latest[self.count % self.latest.len()] = micros(took);
        self.count += 1;
    }

    /// The median; what is under way counts once it has lasted longer.
    fn median_us(&self, now: Time) -> u32 {
        let mut known = self.latest;
        let known = &mut known[..self.count.min(self.latest.len())];
        known.sort_unstable();
        let lasting = self.under_way.map_or(0, |(_, begun)| micros(now.since(begun)));
        known.get(known.len().saturating_sub(1) / 2).copied().unwrap_or(0).max(lasting)
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[derive(Clone, Debug, Default)]
struct Disk {
    writes: Samples,
    reads: Samples,
    /// Content that was brought home lately: when that was told, blocks, and nanoseconds of the disk's time.
    homes: VecDeque<(Time, u64, u64)>,
    /// For how long content had waited for room, all in all, when that was told last.
    held: Duration,
    /// Heartbeats since the last write began.
    quiet: u32,
}

impl Disk {
    /// How long it takes to bring a block home, in microseconds, by what was told lately; 0 if nothing was.
    fn home_us(&mut self, now: Time) -> u32 {
        while self.homes.front().is_some_and(|(at, ..)| now.since(*at) >= HOME_LATELY) {
            self.homes.pop_front();
        }
        let (blocks, took_ns) =
            self.homes.iter().fold((0, 0), |(blocks, took), of| (blocks + of.1, took + of.2));
        let us = (took_ns / 1000).checked_div(blocks);
        us.map_or(0, |us| u32::try_from(us).unwrap_or(u32::MAX).max(1))
    }
}

/// What a brick measures of itself.
#[derive(Debug)]
pub(super) struct Vitals {
    disks: Vec<Disk>,
    round_trips: Samples,
    late_us: u32,
    told: Time,
    /// Whether it is left out for being slow.
    is_slow: bool,
    next: Time,
    serial: u64,
}

impl Vitals {
    pub(super) fn new(disks: usize) -> Vitals {
        let disks = vec![Disk::default(); disks];
        Vitals {
            disks,
            round_trips: Samples::default(),
            late_us: 0,
            told: Time::ZERO,
            is_slow: false,
            next: Time::MAX,
            serial: 0,
        }
    }

    pub(super) fn on_asked(&mut self, now: Time, asked: &[BrickEffect]) {
        for effect in asked {
            let BrickEffect::Store { disk, command } = effect else { continue };
            let Some(disk) = self.disks.get_mut(*disk) else { continue };
            match command {
                Command::Stage { token, .. } => {
                    disk.quiet = 0;
                    disk.writes.begin(now, *token);
                }
                Command::Read { token, .. } | Command::Verify { token, .. } => disk.reads.begin(now, *token),
                _ => {}
            }
        }
    }

    pub(super) fn on_answered(&mut self, now: Time, disk: usize, reply: &Reply) {
        let Some(disk) = self.disks.get_mut(disk) else { return };
        match reply {
            Reply::Staged { token, .. } | Reply::Noted { token, .. } => disk.writes.end(now, *token),
            Reply::Read { token, .. } => disk.reads.end(now, *token),
            Reply::Home { blocks, took_ns } => {
                disk.homes.push_back((now, *blocks, *took_ns));
                if disk.homes.len() > HOMES_MAX {
                    disk.homes.pop_front();
                }
            }
            _ => {}
        }
    }

    /// The directory answers a renewal.
    pub(super) fn on_renewed(&mut self, now: Time, sent: Time) {
        self.round_trips.note(now.since(sent));
    }

    /// The directory answers a heartbeat.
    pub(super) fn on_heartbeat_done(&mut self, now: Time, sent: Time, is_slow: bool) {
        self.round_trips.note(now.since(sent));
        if is_slow != self.is_slow {
            self.is_slow = is_slow;
            self.next = if is_slow { now + BEAT } else { Time::MAX };
        }
    }

    /// Time goes on; something was due at `due`.
    pub(super) fn wake(&mut self, now: Time, due: Time) {
        self.late_us = self.late_us.max(micros(now.since(due)));
        if self.next <= now {
            self.next = now + BEAT;
        }
    }

    pub(super) fn deadline(&self) -> (Time, &'static str) {
        (self.next, "a slow brick feels its vitals")
    }

    /// With each heartbeat: disks that nobody writes to are probed.
    pub(super) fn probe(&mut self, now: Time, fx: &mut Vec<BrickEffect>) {
        for (index, disk) in self.disks.iter_mut().enumerate() {
            disk.quiet += 1;
            if disk.writes.under_way.is_some() || !(self.is_slow || disk.quiet >= QUIET_BEATS) {
                continue;
            }
            disk.quiet = 0;
            self.serial += 1;
            let token = Asker::Vitals.token(self.serial);
            disk.writes.begin(now, token);
            let command =
                Command::Note { token, key: PROBE_KEY.to_vec(), value: Some(self.serial.to_bytes()) };
            fx.push(BrickEffect::Store { disk: index, command });
        }
    }

    /// What there is to tell with a heartbeat. `held`: for how long content has waited for room so far, of each disk.
    pub(super) fn report(&mut self, now: Time, held: impl Iterator<Item = Duration>) -> Health {
        let since = now.since(core::mem::replace(&mut self.told, now)).as_micros().max(1);
        // Both figures of the disk where content waited longest: what another takes is no reason for that.
        let of_disks = self.disks.iter_mut().zip(held).map(|(disk, held)| {
            let lately = held.saturating_sub(core::mem::replace(&mut disk.held, held));
            ((lately.as_micros() * 1000 / since).min(1000) as u32, disk.home_us(now))
        });
        let (held_permille, home_us) = of_disks.max().unwrap_or((0, 0));
        let late_us = core::mem::take(&mut self.late_us);
        let worst = |of: fn(&Disk) -> &Samples| {
            self.disks.iter().map(|disk| of(disk).median_us(now)).max().unwrap_or(0)
        };
        Health {
            write_us: worst(|disk| &disk.writes),
            read_us: worst(|disk| &disk.reads),
            late_us,
            round_trip_us: self.round_trips.median_us(now),
            home_us,
            held_permille,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::disk::StoreError;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn verify(token: Token) -> BrickEffect {
        let span = wire::Span { volume: base::VolumeId(1), lba: 0, count: 1 };
        BrickEffect::Store { disk: 0, command: Command::Verify { token, span, width: 1 } }
    }

    fn probes(vitals: &mut Vitals, now: Time) -> Vec<(usize, Token)> {
        let mut fx = Vec::new();
        vitals.probe(now, &mut fx);
        let token = |effect| match effect {
            BrickEffect::Store { disk, command: Command::Note { token, .. } } => (disk, token),
            other => panic!("{other:?}"),
        };
        fx.into_iter().map(token).collect()
    }

    fn answer(vitals: &mut Vitals, now: Time, (disk, token): (usize, Token)) {
        vitals.on_answered(now, disk, &Reply::Noted { token, result: Err(StoreError::NoSpace) });
    }

    #[test]
    fn a_disk_that_nobody_writes_to_is_probed_seldom_and_often_when_the_brick_is_out() {
        let mut vitals = Vitals::new(2);
        let seldom: Vec<usize> = (0..20).map(|beat| probes(&mut vitals, ms(400 * beat)).len()).collect();
        assert_eq!(seldom.iter().sum::<usize>(), 2, "each once, and not again while that is under way");
        let under_way = (1..=2).map(|serial| Asker::Vitals.token(serial));
        under_way.zip(0..).for_each(|(token, disk)| answer(&mut vitals, ms(4000), (disk, token)));
        vitals.on_heartbeat_done(ms(8000), ms(7999), true);
        for beat in 20..24 {
            let found = probes(&mut vitals, ms(400 * beat));
            assert_eq!(found.len(), 2);
            found.into_iter().for_each(|probe| answer(&mut vitals, ms(400 * beat + 3), probe));
        }
        assert_eq!(vitals.report(ms(9999), core::iter::empty()).write_us, 3000);
        assert_eq!(Asker::of(Asker::Vitals.token(1)), Asker::Vitals);
    }

    #[test]
    fn one_hiccup_is_none_and_what_is_never_answered_shows() {
        let mut vitals = Vitals::new(1);
        for read in 0..9 {
            vitals.on_asked(ms(100 * read), &[verify(Token(read)), verify(Token(77))]);
            let took = if read == 4 { 90 } else { 2 };
            let reply = Reply::Read { token: Token(read), result: Err(StoreError::Busy) };
            vitals.on_answered(ms(100 * read + took), 0, &reply);
        }
        assert_eq!(vitals.report(ms(1000), core::iter::empty()).read_us, 2000);
        vitals.on_asked(ms(1000), &[verify(Token(78))]);
        assert_eq!(vitals.report(ms(31_000), core::iter::empty()).read_us, 30_000_000);
    }

    #[test]
    fn the_worst_disk_counts() {
        let mut vitals = Vitals::new(2);
        vitals.on_heartbeat_done(ms(1), ms(1), true);
        for beat in 0..4 {
            for probe in probes(&mut vitals, ms(400 * beat)) {
                answer(&mut vitals, ms(400 * beat + if probe.0 == 1 { 40 } else { 1 }), probe);
            }
        }
        assert_eq!(vitals.report(ms(5000), core::iter::empty()).write_us, 40_000);
    }

    #[test]
    fn a_process_that_is_stopped_now_and_then_notices_when_it_is_out() {
        let mut vitals = Vitals::new(1);
        assert_eq!(vitals.deadline().0, Time::MAX);
        vitals.on_heartbeat_done(ms(0), ms(0), true);
        // It stands still from 200 to 400, from 600 to 800 and so on.
        let mut now = ms(0);
        let mut worst = 0;
        while now < ms(4000) {
            let due = vitals.deadline().0;
            let in_turn = due.millis() % 400;
            now = if in_turn < 200 { due } else { ms(due.millis() - in_turn + 400) };
            vitals.wake(now, due);
            worst = worst.max(vitals.report(now, core::iter::empty()).late_us);
        }
        assert!(worst >= 150_000, "{worst}");
        assert_eq!(vitals.report(now, core::iter::empty()).late_us, 0, "told once");
    }

    #[test]
    fn it_tells_how_fast_content_goes_home_and_for_how_long_some_waited() {
        let mut vitals = Vitals::new(2);
        let home = |blocks, took_ms: u64| Reply::Home { blocks, took_ns: took_ms * 1_000_000 };
        vitals.on_answered(ms(10), 0, &home(256, 2048));
        vitals.on_answered(ms(10), 1, &home(300, 100));
        vitals.on_answered(ms(20), 1, &home(100, 900));
        let held = |first, second| [first, second].map(Duration::from_millis).into_iter();
        vitals.report(ms(1000), held(0, 100));
        let told = vitals.report(ms(1400), held(40, 300));
        let found = (told.home_us, told.held_permille);
        assert_eq!(found, (2500, 500), "of the disk where most waits, and since the last time");
        assert_eq!(vitals.report(ms(1800), held(40, 300)).held_permille, 0);
        assert_eq!(vitals.report(ms(6000), held(40, 400)).home_us, 0, "that was long ago");
    }
}
