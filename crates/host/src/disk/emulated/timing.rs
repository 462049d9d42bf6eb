//! When an answer is due: a value that is told the time, so that it is tested without a clock.
//!
//! A request goes to the real disk at once. Where a drive is emulated it also takes its turn at the drive, and its answer
//! is due when the drive is done; then it may be late on top of that.

use super::device::{Device, Happening, Served};
use super::lateness::Lateness;
use super::settings::Settings;
use crate::disk::Completions;
use base::{BrickId, HashMap, Time};
use proto::distribute::claim::{Attempt, Holders};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;
use store::{Io, IoDone, IoFault, IoKind, IoToken};

/// The emulated disks of a brick.
#[derive(Debug)]
pub struct Timing {
    brick: BrickId,
    settings: Settings,
    /// Where each disk's blocks are; other bytes cost no time: journal and metadata stand for non-volatile memory.
    areas: Vec<Range<u64>>,
    /// Up to when drives have gone on.
    advanced: Time,
    /// When the drives that are emulated began, in their own time.
    began: Option<Time>,
    /// Empty where no drive is emulated.
    devices: Vec<Device>,
    /// What takes its turn at a drive, by disk and token: what is known of its end.
    turns: HashMap<(usize, IoToken), Turn>,
    /// Answers that wait for nothing: reads left to other bricks.
    left: Completions,
    claims: Vec<DiskClaim>,
    held: BinaryHeap<Reverse<Held>>,
    /// Answers that were held so far: those due at the same time leave in the order in which they came.
    count: u64,
    lateness: Lateness,
    /// What drives have done that are no longer emulated.
    past: Served,
}

/// A request at a drive. Its answer is due when both are there.
#[derive(Debug, Default)]
struct Turn {
    answer: Option<IoDone>,
    /// When the drive is done.
    done: Option<Time>,
    /// Another brick serves it: the real disk's answer is of no use any more.
    is_left: bool,
}

/// A disk is about to serve a contested read.
#[derive(Debug, Clone)]
pub struct DiskClaim {
    pub disk: usize,
    pub attempt: Attempt,
    /// What it will take, in nanoseconds of the drive's time.
    pub bid_ns: u64,
    pub holders: Holders,
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
    /// Disks of `brick` as `settings` say, with their blocks at `areas`.
    pub fn new(brick: BrickId, settings: Settings, areas: Vec<Range<u64>>, now: Time) -> Timing {
        let mut timing = Timing {
            brick,
            settings: Settings::default(),
            left: Vec::new(),
            claims: Vec::new(),
            areas,
            advanced: now,
            began: None,
            devices: Vec::new(),
            turns: HashMap::default(),
            held: BinaryHeap::new(),
            count: 0,
            lateness: Lateness::default(),
            past: Served::default(),
        };
        timing.set(now, settings);
        timing
    }

    /// From now on as `settings` say. What waits at a drive is done; what is late stays due when it was.
    pub fn set(&mut self, now: Time, settings: Settings) {
        self.advance(now);
        self.past = self.served();
        self.devices.clear();
        let mut waiting: Vec<(usize, IoToken)> = self.turns.keys().copied().collect();
        waiting.sort_unstable();
        waiting.into_iter().for_each(|(disk, token)| self.done_by_drive(disk, token, now));
        (self.settings, self.began) = (settings, None);
        if let Some(drive) = &self.settings.drive {
            let start = self.drive_time(now);
            self.began = Some(start);
            let device = |area: &Range<u64>| Device::new(drive, self.brick, area.clone(), start);
            self.devices = self.areas.iter().map(device).collect();
        }
    }

    /// A request goes to the real disk.
    pub fn asked(&mut self, now: Time, disk: usize, io: &Io) {
        self.catch_up(now);
        let Some(device) = self.devices.get_mut(disk) else { return };
        let is_timed = match &io.kind {
            IoKind::Read { offset, length, contested } => {
                device.read(*offset, *length as u64, io.token, contested.clone())
            }
            IoKind::Write { offset, payload, .. } => device.write(*offset, payload.len() as u64, io.token),
            IoKind::Flush => false,
        };
        if is_timed {
            self.turns.insert((disk, io.token), Turn::default());
        }
    }

    /// Another brick serves a read that may wait here.
    pub fn claimed(&mut self, now: Time, disk: usize, attempt: Attempt, bid: (u64, BrickId)) {
        self.catch_up(now);
        if let Some(device) = self.devices.get_mut(disk) {
            device.claimed(attempt, bid.0, bid.1);
        }
    }

    /// Reads that are about to be served here, of which other bricks must hear.
    pub fn take_claims(&mut self) -> impl Iterator<Item = DiskClaim> + use<> {
        std::mem::take(&mut self.claims).into_iter()
    }

    /// Whether disks look like drives, whose heads are seen.
    pub fn is_drive(&self) -> bool {
        !self.devices.is_empty()
    }

    /// The real disk has answered.
    pub fn answered(&mut self, now: Time, disk: usize, answer: IoDone) {
        match self.turns.get_mut(&(disk, answer.token)) {
            Some(turn) if turn.is_left => {
                self.turns.remove(&(disk, answer.token));
            }
            Some(turn) => {
                let token = answer.token;
                turn.answer = Some(answer);
                self.meet(disk, token);
            }
            None => self.hold(now, disk, answer, !self.settings.late.is_zero()),
        }
    }

    /// Does what was due before `now`: what comes at the same time is chosen from together.
    fn catch_up(&mut self, now: Time) {
        if now > self.advanced {
            self.advance(now);
        }
    }

    /// Lets the drives go on: what is done by `now` is, and what waits begins.
    pub fn advance(&mut self, now: Time) {
        self.advanced = now;
        let now = self.drive_time(now);
        let mut all = Vec::new();
        for (disk, device) in self.devices.iter_mut().enumerate() {
            device.advance(now, |happening| all.push((disk, happening)));
        }
        for (disk, happening) in all {
            match happening {
                Happening::Done(end, token) => self.done_by_drive(disk, token, self.real_time(end)),
                Happening::Left(token) => self.leave(disk, token),
                Happening::Claim(attempt, bid_ns, holders) => {
                    self.claims.push(DiskClaim { disk, attempt, bid_ns, holders });
                }
            }
        }
    }

    /// Gives the answers that are due, in the order in which they are.
    pub fn due(&mut self, now: Time, done: &mut Completions) {
        self.advance(now);
        done.append(&mut self.left);
        while self.held.peek().is_some_and(|Reverse(held)| held.due <= now)
            && let Some(Reverse(held)) = self.held.pop()
        {
            if held.is_emulated {
                self.lateness.record(now.since(held.due));
            }
            done.push((held.disk, held.answer));
        }
    }

    /// When the next answer is due, or a drive is to go on.
    pub fn deadline(&self) -> Option<Time> {
        let drives = self.devices.iter().filter_map(Device::deadline).map(|at| self.real_time(at));
        let left = self.left.first().map(|_| Time::ZERO);
        drives.chain(self.held.peek().map(|Reverse(held)| held.due)).chain(left).min()
    }

    /// What is emulated now.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Answers that wait for their time.
    pub fn held(&self) -> usize {
        self.held.len() + self.turns.len()
    }

    /// How late answers were given that had a turn at a drive, or were made late.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// What all drives have done, together.
    pub fn served(&self) -> Served {
        self.devices.iter().map(Device::served).fold(self.past, |sum, served| sum + served)
    }

    /// For how long drives have been emulated, in their own time; zero while none is.
    pub fn clock(&self, now: Time) -> Duration {
        self.began.map_or(Duration::ZERO, |began| self.drive_time(now).since(began))
    }

    /// The drives' time: platters of all bricks of a machine turn together, as in a simulation that begins at zero.
    fn drive_time(&self, now: Time) -> Time {
        Time(now.0 / u64::from(self.settings.dilate))
    }

    fn real_time(&self, drive: Time) -> Time {
        Time(drive.0.saturating_mul(u64::from(self.settings.dilate)))
    }

    /// Another brick has it: the store need not wait, whatever the real disk still does.
    fn leave(&mut self, disk: usize, token: IoToken) {
        let Some(turn) = self.turns.get_mut(&(disk, token)) else { return };
        turn.is_left = true;
        if turn.answer.is_some() {
            self.turns.remove(&(disk, token));
        }
        self.left.push((disk, IoDone { token, result: Err(IoFault::Left) }));
    }

    fn done_by_drive(&mut self, disk: usize, token: IoToken, end: Time) {
        if let Some(turn) = self.turns.get_mut(&(disk, token)) {
            turn.done = Some(end);
            self.meet(disk, token);
        }
    }

    /// Drive and real disk have both done their part, or one is waited for.
    fn meet(&mut self, disk: usize, token: IoToken) {
        let both = |turn: &Turn| turn.done.is_some() && turn.answer.is_some();
        if !self.turns.get(&(disk, token)).is_some_and(both) {
            return;
        }
        if let Some(Turn { answer: Some(answer), done: Some(done), .. }) = self.turns.remove(&(disk, token)) {
            self.hold(done, disk, answer, true);
        }
    }

    fn hold(&mut self, done: Time, disk: usize, answer: IoDone, is_emulated: bool) {
        self.count += 1;
        let due = done + self.settings.late;
        self.held.push(Reverse(Held { due, number: self.count, disk, answer, is_emulated }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::path::Path;
    use wire::disk::Contested;

    /// Blocks from the second MiB on.
    const AREA: Range<u64> = (1 << 20)..(65 << 20);
    const MS: u64 = 1_000_000;
    const ME: BrickId = BrickId(3);

    fn answer(token: u64) -> IoDone {
        IoDone { token: IoToken(token), result: Ok(Bytes::new()) }
    }

    fn late(late: Duration) -> Settings {
        Settings { late, ..Settings::default() }
    }

    fn timing(settings: Settings) -> Timing {
        Timing::new(ME, settings, vec![AREA], Time(0))
    }

    fn tokens(timing: &mut Timing, now: Time) -> Vec<u64> {
        let mut done = Vec::new();
        timing.due(now, &mut done);
        done.into_iter().map(|(_, done)| done.token.0).collect()
    }

    #[test]
    fn without_lateness_answers_pass_at_once() {
        let mut timing = timing(Settings::default());
        timing.answered(Time(5), 0, answer(1));
        assert_eq!(tokens(&mut timing, Time(5)), [1]);
        assert_eq!(timing.deadline(), None);
    }

    #[test]
    fn a_change_holds_for_what_is_answered_later() {
        let mut timing = timing(late(Duration::from_millis(20)));
        timing.answered(Time(0), 0, answer(1));
        timing.set(Time(1), late(Duration::ZERO));
        timing.answered(Time(1), 0, answer(2));
        assert_eq!(tokens(&mut timing, Time(1)), [2]);
        assert_eq!(timing.deadline(), Some(Time(20_000_000)));
        assert_eq!(tokens(&mut timing, Time(19_999_999)), []);
        assert_eq!(tokens(&mut timing, Time(20_000_500)), [1]);
        assert_eq!(timing.lateness().count(), 1, "the second was not held back");
    }

    fn atlas(more: &str) -> Settings {
        let text = format!("{more}\nmodel = \"quantum-atlas-10k\"");
        Settings::parse(&text, Path::new(".")).expect("settings")
    }

    fn read_of(token: u64, offset: u64) -> Io {
        Io { token: IoToken(token), kind: IoKind::read(offset, 4096) }
    }

    fn contested_read(token: u64, offset: u64, attempt: Attempt) -> Io {
        let contested = Some(Contested { attempt, holders: [ME, BrickId(7)].into() });
        Io { token: IoToken(token), kind: IoKind::Read { offset, length: 4096, contested } }
    }

    fn write(token: u64, offset: u64) -> Io {
        Io {
            token: IoToken(token),
            kind: IoKind::Write { offset, payload: base::Payload::zeros(4096), durable: false },
        }
    }

    /// Runs until nothing is held: `(token, when it was due)`.
    fn run(timing: &mut Timing) -> Vec<(u64, u64)> {
        let mut seen = Vec::new();
        timing.advance(Time(0));
        while let Some(due) = timing.deadline() {
            seen.extend(tokens(timing, due).into_iter().map(|token| (token, due.0)));
        }
        seen
    }

    fn ask(timing: &mut Timing, now: Time, io: &Io) {
        timing.asked(now, 0, io);
        timing.answered(now, 0, answer(io.token.0));
    }

    #[test]
    fn a_drive_serves_one_at_a_time_and_journal_and_metadata_cost_nothing() {
        let mut timing = timing(atlas("[drive]"));
        ask(&mut timing, Time(0), &write(1, 0));
        ask(&mut timing, Time(0), &read_of(2, 66 << 20));
        ask(&mut timing, Time(0), &Io { token: IoToken(3), kind: IoKind::Flush });
        assert_eq!(tokens(&mut timing, Time(0)), [1, 2, 3]);
        (4..20).for_each(|token| ask(&mut timing, Time(0), &read_of(token, (token << 21) + (1 << 20))));
        let seen = run(&mut timing);
        assert_eq!(seen.len(), 16);
        assert!(
            seen.is_sorted_by_key(|&(_, due)| due) && seen.windows(2).all(|two| two[1].1 - two[0].1 > MS / 2)
        );
        let served = timing.served();
        assert_eq!((served.reads, served.writes, served.choices, served.seen), (16, 0, 16, (1..=16).sum()));
        assert_eq!(served.busy, Duration::from_nanos(seen[15].1));
        assert!(seen[15].1 < 16 * 8 * MS, "{} ns for 16 reads chosen by positioning time", seen[15].1);
    }

    #[test]
    fn dilated_time_passes_slower_and_nothing_else() {
        let mut dues = [1u64, 5].map(|dilate| {
            let mut timing = timing(atlas(&format!("dilate = {dilate}\n[drive]\nheads = \"clook\"")));
            (0..9).for_each(|token| ask(&mut timing, Time(0), &read_of(token, (token << 22) + (1 << 20))));
            run(&mut timing)
        });
        dues[0].iter_mut().for_each(|(_, due)| *due *= 5);
        assert_eq!(dues[0], dues[1]);
    }

    #[test]
    fn memory_answers_writes_until_it_is_full_and_again_when_they_are_destaged() {
        let mut timing = timing(atlas("[drive]\nnvram_bytes = 8192"));
        (1..=3).for_each(|token| ask(&mut timing, Time(0), &write(token, token << 24)));
        assert_eq!(tokens(&mut timing, Time(0)), [1, 2], "the third finds no room");
        let third = run(&mut timing);
        assert_eq!((third.len(), third[0].0), (1, 3));
        let after = Time(100 * MS);
        ask(&mut timing, after, &write(4, 1 << 24));
        assert_eq!(tokens(&mut timing, after), [4]);
        run(&mut timing);
        let served = timing.served();
        assert_eq!((served.writes, served.nvram_full), (4, 1));
    }

    fn contested(timing: &mut Timing, now: Time, token: u64, offset: u64) -> Attempt {
        let read = proto::distribute::claim::ReadId { asker: 9, sequence: token };
        let attempt = Attempt { read, number: 0 };
        ask(timing, now, &contested_read(token, offset, attempt));
        attempt
    }

    fn claimed(timing: &mut Timing) -> Vec<u64> {
        timing.take_claims().map(|claim| claim.attempt.read.sequence).collect()
    }

    #[test]
    fn a_contested_read_is_claimed_before_it_is_served() {
        let mut timing = timing(atlas("[drive]\nclaim_one_way_us = 50"));
        for token in 1..=4 {
            contested(&mut timing, Time(0), token, token << 23);
        }
        timing.advance(Time(0));
        let first = claimed(&mut timing);
        assert_eq!(first.len(), 1, "one is chosen: {first:?}");
        let seen = run(&mut timing);
        let mut claims = first;
        claims.extend(claimed(&mut timing));
        assert_eq!(
            claims,
            seen.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
            "in the order of service"
        );
        assert_eq!((timing.served().reads, timing.held()), (4, 0));
    }

    #[test]
    fn a_read_that_another_brick_claims_is_left_to_it() {
        let mut timing = timing(atlas("[drive]\nclaim_one_way_us = 50"));
        let attempts = [1, 2, 3].map(|token| contested(&mut timing, Time(0), token, token << 23));
        timing.advance(Time(0));
        let chosen = claimed(&mut timing);
        let other =
            attempts.iter().find(|attempt| !chosen.contains(&attempt.read.sequence)).expect("one waits");
        timing.claimed(Time(1_000), 0, *other, (MS, BrickId(7)));
        let mut done = Vec::new();
        timing.due(Time(1_000), &mut done);
        let left = IoDone { token: IoToken(other.read.sequence), result: Err(IoFault::Left) };
        assert_eq!(done, [(0, left)]);
        assert_eq!(run(&mut timing).len(), 2);
        let late = contested(&mut timing, Time(900 * MS), 4, 4 << 23);
        timing.claimed(Time(900 * MS), 0, late, (0, BrickId(7)));
        assert_eq!((tokens(&mut timing, Time(900 * MS)), timing.held()), (vec![4], 0), "the chosen one, too");
        assert_eq!((timing.served().reads, timing.served().left), (2, 2));
    }

    #[test]
    fn a_read_that_is_left_is_answered_once_whenever_the_real_disk_answers() {
        let mut timing = timing(atlas("[drive]"));
        let read = proto::distribute::claim::ReadId { asker: 9, sequence: 1 };
        let attempt = Attempt { read, number: 0 };
        timing.asked(Time(0), 0, &contested_read(1, 1 << 23, attempt));
        timing.claimed(Time(0), 0, attempt, (MS, BrickId(7)));
        assert_eq!(tokens(&mut timing, Time(0)), [1]);
        timing.answered(Time(9), 0, answer(1));
        assert_eq!((tokens(&mut timing, Time(100 * MS)), timing.held()), (vec![], 0));
    }

    #[test]
    fn a_slow_real_disk_makes_the_answer_late_and_is_told_of() {
        let mut timing = timing(atlas("[drive]"));
        timing.asked(Time(0), 0, &read_of(1, 1 << 20));
        timing.advance(Time(0));
        let due = timing.deadline().expect("the drive is busy");
        assert_eq!(tokens(&mut timing, due), [], "the bytes are not there yet");
        timing.answered(due + Duration::from_millis(3), 0, answer(1));
        assert_eq!(tokens(&mut timing, due + Duration::from_millis(3)), [1]);
        assert_eq!(timing.lateness().sum(), Duration::from_millis(3));
    }

    #[test]
    fn lateness_is_of_what_the_emulation_held_back_alone() {
        let mut timing = timing(atlas("[drive]\nnvram_bytes = 4096"));
        // Journal, metadata, a flush, and a block that memory takes: as good as the real disk.
        ask(&mut timing, Time(0), &write(1, 0));
        ask(&mut timing, Time(0), &read_of(2, 66 << 20));
        ask(&mut timing, Time(0), &Io { token: IoToken(3), kind: IoKind::Flush });
        ask(&mut timing, Time(0), &write(4, 1 << 20));
        assert_eq!(tokens(&mut timing, Time(0)), [1, 2, 3, 4]);
        assert_eq!(timing.lateness().count(), 0);
        ask(&mut timing, Time(0), &read_of(5, 8 << 20));
        ask(&mut timing, Time(0), &write(6, 16 << 20));
        run(&mut timing);
        assert_eq!(timing.lateness().count(), 2, "a read, and a write for which memory had no room");
        timing.set(Time(100 * MS), late(Duration::from_millis(20)));
        ask(&mut timing, Time(100 * MS), &Io { token: IoToken(7), kind: IoKind::Flush });
        assert_eq!(tokens(&mut timing, Time(123 * MS)), [7]);
        assert_eq!((timing.lateness().count(), timing.lateness().sum()), (3, Duration::from_millis(3)));
    }

    #[test]
    fn a_drive_that_goes_answers_what_waited_for_it() {
        let mut timing = timing(atlas("[drive]"));
        (0..5).for_each(|token| ask(&mut timing, Time(0), &read_of(token, (token << 23) + (1 << 20))));
        timing.asked(Time(0), 0, &read_of(5, 1 << 20));
        timing.advance(Time(0));
        timing.set(Time(7), Settings::default());
        let mut given = tokens(&mut timing, Time(7));
        given.sort_unstable();
        assert_eq!(given, [0, 1, 2, 3, 4]);
        timing.answered(Time(8), 0, answer(5));
        assert_eq!(tokens(&mut timing, Time(8)), [5]);
        assert_eq!((timing.held(), timing.deadline()), (0, None));
    }

    proptest! {
        #[test]
        fn answers_leave_at_their_time_once_and_in_order(
            steps in proptest::collection::vec((0u64..50, 0u64..30), 1..100),
        ) {
            let mut timing = timing(Settings::default());
            let (mut now, mut expected, mut seen) = (0, Vec::new(), Vec::new());
            for (token, (pause, late)) in steps.iter().enumerate() {
                now += pause;
                timing.set(Time(now), super::tests::late(Duration::from_nanos(*late)));
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
